"""Pool rows with equal predictions, in increasing order: one bin per distinct prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from softcal._validation.inputs import (
    FloatArray,
    Rows,
    all_valid,
    as_float64,
    refuse,
    refuse_no_weight,
)

if TYPE_CHECKING:
    from collections.abc import Callable


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
    p, y = as_float64(rows.y_prob), as_float64(rows.y_true)
    w = None if rows.sample_weight is None else as_float64(rows.sample_weight)
    if not all_valid(p, y, w):
        refuse(rows)
    if w is not None:
        here = w > 0
        if not here.any():
            refuse_no_weight(rows)
        p, y, w = p[here], y[here], w[here]
    order = np.argsort(p)  # a stable sort takes four times as long, and ties are added up anyway
    p, y = p[order], y[order]
    w = None if w is None else w[order]
    starts = np.flatnonzero(np.append(True, p[1:] != p[:-1]))
    count = np.diff(np.append(starts, p.size))
    pooled = _pooler(starts, p.size)
    d = p - y
    if w is None:
        sums = (count.astype(np.float64), pooled(y), pooled(d), pooled(d * d))
    else:
        wd = w * d
        sums = (pooled(w), pooled(w * y), pooled(wd), pooled(wd * wd))
    return Distinct(p[starts], count, *sums)


def _pooler(starts: npt.NDArray[np.intp], n: int) -> Callable[[FloatArray], FloatArray]:
    """Return a function that adds up the terms of rows with equal predictions."""

    def pooled(terms: FloatArray) -> FloatArray:
        return terms if starts.size == n else np.add.reduceat(terms, starts)

    return pooled
