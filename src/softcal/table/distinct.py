"""Pool rows with equal predictions, in increasing order: one bin per distinct prediction."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from softcal._validation.inputs import (
    FloatArray,
    Rows,
    all_valid,
    columns,
    refuse,
    refuse_no_weight,
)


class Distinct(NamedTuple):
    """The sums of the rows of each distinct prediction, in increasing order.

    A statistic of these sums cannot depend on the order of rows with equal predictions.
    """

    prob: FloatArray
    rows: npt.NDArray[np.int64]  #  number of rows with positive weight
    weight: FloatArray  #           sum w
    label: FloatArray  #            sum w y
    residual: FloatArray  #         sum w d
    residual_var: FloatArray  #     sum w^2 d^2


def distinct(rows: Rows) -> Distinct:
    """Sort the rows by prediction and pool equal ones, without rows of weight 0."""
    p, y, w = columns(rows)
    if not all_valid(p, y, w):
        refuse(rows)
    here = w > 0
    if not here.any():
        refuse_no_weight(rows)
    if not here.all():
        p, y, w = p[here], y[here], w[here]
    order = np.argsort(p)  # a stable sort takes four times as long, and ties are added up anyway
    p, y, w = p[order], y[order], w[order]
    starts = np.flatnonzero(np.append(True, p[1:] != p[:-1]))
    residual = w * (p - y)
    terms = (w, w * y, residual, residual * residual)
    sums = terms if starts.size == p.size else (np.add.reduceat(each, starts) for each in terms)
    return Distinct(p[starts], np.diff(np.append(starts, p.size)), *sums)
