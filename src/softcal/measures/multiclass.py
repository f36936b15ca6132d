"""Calibration of many classes: class by class, and of the predicted class.

Labels and predictions have a row per item and a column per class, and rows that sum to 1. Each
question has a name of its own, since the answers differ: see docs/multiclass.md.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from softcal.door import inputs
from softcal.door.class_inputs import ClassRows, class_rows, refuse
from softcal.parallel import in_order
from softcal.table.bins import Bins
from softcal.table.class_kernel import class_sums
from softcal.table.kernel import LARGE, readable
from softcal.table.reliability import Reliability, from_rows

if TYPE_CHECKING:
    from softcal.door.inputs import FloatArray, Rows
    from softcal.table.bins import BinsLike

_ROWS_AT_ONCE = 1 << 14


def classwise_reliability(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    *,
    bins: BinsLike = 10,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
) -> dict[Any, Reliability]:
    """Give one reliability table per class: its probability against its share of the label.

    Parameters
    ----------
    y_true : Votes or array-like of shape (items, classes)
        Labels: shares that sum to 1 for each item, one-hot rows, or `Votes`, whose numbers of
        votes then go into every interval. Numbers of classes are refused; pass
        `numpy.eye(n_classes)[numbers]`.
    y_prob : array-like of shape (items, classes)
        Predictions that sum to 1 for each item, to 1e-3: room for half precision.
    bins, sample_weight, n_votes
        As in `reliability`; the same for every class.

    Returns
    -------
    dict
        By class: as the votes name it, or the columns of a frame, or by number.

    Raises
    ------
    InputError, InputTypeError
        If the data breaks a rule; rows are never made to sum to 1 silently.

    Examples
    --------
    >>> from softcal import Votes
    >>> votes = Votes([[3, 1, 0], [0, 1, 1]], classes=["cat", "dog", "fox"])
    >>> tables = classwise_reliability(votes, [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]])
    >>> {name: round(table.smece, 3) for name, table in tables.items()}
    {'cat': 0.175, 'dog': 0.025, 'fox': 0.15}
    """
    data = class_rows(y_true, y_prob, sample_weight, n_votes)
    binned = Bins.of(bins)
    tables = [Reliability(binned, sums) for sums in class_sums(data, binned)]
    if not tables[0].n:
        inputs.refuse_no_weight(data.column(0))
    return dict(zip(data.classes, tables, strict=True))


def classwise_smece(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    *,
    bins: BinsLike = 10,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""SMECE of each class against the rest, averaged over the classes with equal weight.

    \[ \frac1C \sum_c \mathrm{SMECE}(y_{\cdot c}, p_{\cdot c}) \]

    With many rare classes it is small whatever the model does: most probabilities are near 0, and
    so are their errors. With one-hot labels it is the classwise ECE (static calibration error).

    Parameters are those of `classwise_reliability`.

    Examples
    --------
    >>> round(classwise_smece([[1, 0, 0], [0, 0.5, 0.5]], [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]]), 4)
    0.2
    """
    tables = classwise_reliability(y_true, y_prob, bins=bins, sample_weight=sample_weight)
    return math.fsum(table.smece for table in tables.values()) / len(tables)


def top_label_reliability(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    *,
    bins: BinsLike = 10,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
) -> Reliability:
    """Give the table of the predicted class: its probability against its share of the label.

    The predicted class is the one of highest probability, the first of them where some are equal.
    With soft labels nothing is "correct" or not: the label is the mass it puts on that class. With
    one-hot labels that mass is 1 or 0, and this the usual table of confidence and accuracy.

    Parameters are those of `classwise_reliability`.

    Examples
    --------
    >>> print(top_label_reliability([[0.9, 0.1], [0.5, 0.5]], [[0.8, 0.2], [0.3, 0.7]], bins=4))
    n = 2   SMECE = 0.1500   bins = 4
               bin   count   mean prob   mean label       gap
    [0.000, 0.250)       0           -            -         -
    [0.250, 0.500)       0           -            -         -
    [0.500, 0.750)       1      0.7000       0.5000   +0.2000
    [0.750, 1.000]       1      0.8000       0.9000   -0.1000
    """
    data = class_rows(y_true, y_prob, sample_weight, n_votes)
    return from_rows(top_label_rows(data), Bins.of(bins))


def top_label_smece(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    *,
    bins: BinsLike = 10,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""SMECE of the predicted class: its probability against the label's mass on that class.

    \[ \mathrm{SMECE}\bigl(y_{i c_i}, p_{i c_i}\bigr), \qquad c_i = \arg\max_c p_{ic} \]

    With one-hot labels it is the usual ECE of the confidence. Against the majority of votes, which
    is what most tools do, the same model can look calibrated.

    Parameters are those of `classwise_reliability`.

    Examples
    --------
    >>> round(top_label_smece([[0.9, 0.1], [0.5, 0.5]], [[0.8, 0.2], [0.3, 0.7]]), 4)
    0.15
    """
    return top_label_reliability(y_true, y_prob, bins=bins, sample_weight=sample_weight).smece


def top_label_rows(data: ClassRows) -> Rows:
    """Give the predicted class's probability, and the label's mass on it, as rows."""
    n = data.y_prob.shape[0]
    probability, mass = np.empty(n), np.empty(n)
    if n > LARGE:
        _compiled_top(data, probability, mass)
    else:
        for part, (p, y) in data.map_blocks(_top):
            probability[part], mass[part] = p, y
    return data.column(0)._replace(y_prob=probability, y_true=mass)


def _top(p: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    top = p.argmax(axis=0)
    across = np.arange(top.size)
    return p[top, across], y[top, across]


def _compiled_top(data: ClassRows, probability: FloatArray, mass: FloatArray) -> None:
    from softcal.table.compiled import top_of_rows

    def work(part: slice) -> bool:
        p, y = readable(data.y_prob[part]), readable(data.y_true[part])
        return bool(top_of_rows(p, y, probability[part], mass[part]))

    work(slice(0))  # compile before the threads start
    parts = [slice(start, start + _ROWS_AT_ONCE) for start in range(0, mass.size, _ROWS_AT_ONCE)]
    if not all(in_order(work, parts, at_most=len(parts))):
        refuse(data)
