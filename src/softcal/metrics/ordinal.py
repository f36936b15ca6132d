"""Metrics of ordered classes, such as ratings from 1 to 5.

Labels and predictions have one column per class, lowest class first. All metrics depend on the
probability that the class lies above each threshold, except the Manhattan distance, which ignores
the order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from softcal._validation.multiclass import by_class, class_rows
from softcal.bins import Bins
from softcal.exceptions import InputError
from softcal.metrics import multiclass
from softcal.metrics.proper import mean_of_items
from softcal.table.reliability import Reliability, from_rows, refuse_given
from softcal.table.tableset import thresholds
from softcal.votes import Votes, refuse_unordered

if TYPE_CHECKING:
    import numpy.typing as npt

    from softcal._validation.inputs import FloatArray, Rows
    from softcal._validation.multiclass import ClassRows
    from softcal.bins import BinsLike


def cumulative_reliability(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    *,
    bins: BinsLike = 10,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
) -> dict[str, Reliability]:
    r"""Build one reliability table per threshold of ordered classes.

    The table of threshold k compares \(P(\text{class} > k) = \sum_{c > k} p_{ic} / \sum_c p_{ic}\)
    with the share of the label above k.

    Parameters
    ----------
    y_true : Votes or array-like of shape (items, classes)
        `Votes` with `ordered=True`, or shares that sum to 1 for each item, lowest class first.
    y_prob : array-like of shape (items, classes)
        Predictions that sum to 1 for each item, in the same order.
    bins, sample_weight, n_votes, groups
        As in `reliability`; every threshold uses the same values.

    Returns
    -------
    dict
        One table per threshold: "> 1" is the table of the classes above 1. No class is above the
        highest.

    Examples
    --------
    >>> votes = Votes([[3, 1, 0], [0, 1, 1]], classes=[1, 2, 3], ordered=True)
    >>> tables = cumulative_reliability(votes, [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]])
    >>> {name: table.smece for name, table in tables.items()}
    {'> 1': 0.25, '> 2': 0.0}
    """
    if isinstance(y_true, Votes):
        refuse_unordered(y_true)
    data = class_rows(y_true, y_prob, sample_weight, n_votes)
    data.check()
    group = multiclass.groups_of(groups, data, y_true, y_prob)
    binned = Bins.of(bins)
    tables = (from_rows(rows, binned, group) for rows in cumulative_rows(data))
    return dict(zip(thresholds(data.classes), tables, strict=True))


def cumulative_smece(
    y_true: npt.ArrayLike | Mapping[str, Reliability],
    y_prob: npt.ArrayLike | None = None,
    *,
    bins: BinsLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Average the SMECE of \(P(\text{class} > k)\) over the thresholds k of ordered classes.

    \[ \frac{1}{K - 1} \sum_{k=1}^{K-1} \mathrm{SMECE}\Bigl(\sum_{c > k} y_{\cdot c},
       \sum_{c > k} p_{\cdot c}\Bigr) \]

    Vote noise averages out within bins, so no floor is needed. With two classes, the result is
    `smece`. Reversing the order of the classes does not change the result, except for predictions
    exactly on the edge of a bin.

    Parameters
    ----------
    y_true : Votes, array-like of shape (items, classes), or mapping
        Labels as in `cumulative_reliability`. Or the tables that it or `TableSet.cumulative(model)`
        returns, which are then the only argument.
    y_prob, bins, sample_weight
        As in `cumulative_reliability`.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> votes = Votes([[3, 1, 0], [0, 1, 1]], ordered=True)
    >>> cumulative_smece(votes, [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]])
    0.125
    """
    tables = tables_of("cumulative_smece", y_true, y_prob, bins=bins, sample_weight=sample_weight)
    return math.fsum(table.smece for table in tables.values()) / len(tables)


def tables_of(
    function: str, y_true: Any, y_prob: npt.ArrayLike | None, **others: Any
) -> Mapping[str, Reliability]:
    """Return the tables of all thresholds, given these or the rows they are built from."""
    given = {name: value for name, value in others.items() if value is not None}
    if isinstance(y_true, Mapping) and all(isinstance(t, Reliability) for t in y_true.values()):
        refuse_given(f"{function} of tables", y_prob=y_prob, **given)
        if not y_true:
            message = f"{function} needs the table of one threshold or more: got none."
            raise InputError(message)
        return y_true
    if y_prob is None:
        message = (
            f"{function} needs y_true and y_prob, or the tables of `cumulative_reliability` or "
            f"`TableSet.cumulative`: got {type(y_true).__name__} alone."
        )
        raise InputError(message)
    return cumulative_reliability(y_true, y_prob, **given)


def wasserstein(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    *,
    normalized: bool = False,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Compute the mean Wasserstein distance between label and prediction, in classes.

    \[ \frac1n \sum_i \sum_{k=1}^{K-1} |F_{ik} - G_{ik}| \]

    with F and G the cumulative distributions of prediction and label. It is the mean number of
    classes by which the mass must move. LeWiDi 2025 uses it for ordinal tasks.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `cumulative_reliability`.
    normalized : bool, default=False
        Whether to divide by K - 1, the largest possible distance.

    Returns
    -------
    float
        Between 0 and K - 1, or between 0 and 1 if normalized.

    Examples
    --------
    Half of the mass is one class off, then two classes off:

    >>> wasserstein([[0.5, 0.5, 0.0]], [[1.0, 0.0, 0.0]])
    0.5
    >>> wasserstein([[0.5, 0.0, 0.5]], [[1.0, 0.0, 0.0]])
    1.0
    """
    return _mean(distance, y_true, y_prob, sample_weight, normalized=normalized)


def ranked_probability_score(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    *,
    normalized: bool = False,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Compute the mean ranked probability score, a proper score of ordered classes.

    \[ \frac1n \sum_i \sum_{k=1}^{K-1} (F_{ik} - G_{ik})^2 \]

    It is the sum over thresholds of the Brier score of \(P(\text{class} > k)\).

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `cumulative_reliability`.
    normalized : bool, default=False
        Whether to divide by K - 1.

    Returns
    -------
    float
        Between 0 and K - 1, or between 0 and 1 if normalized; lower is better.

    Examples
    --------
    >>> ranked_probability_score([[0.5, 0.0, 0.5]], [[1.0, 0.0, 0.0]])
    0.5
    """
    return _mean(squared_distance, y_true, y_prob, sample_weight, normalized=normalized)


def manhattan(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    *,
    normalized: bool = False,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Compute the mean Manhattan distance between label and prediction (LeWiDi 2025).

    \[ \frac1n \sum_i \sum_c |p_{ic} - y_{ic}| \]

    It ignores the order of the classes, unlike `wasserstein`.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `classwise_reliability`; votes need not be ordered.
    normalized : bool, default=False
        Whether to divide by 2, the largest possible distance. The result is then `dist_ce`.

    Returns
    -------
    float
        Between 0 and 2, or between 0 and 1 if normalized.

    Examples
    --------
    >>> manhattan([[0.5, 0.5, 0.0]], [[1.0, 0.0, 0.0]])
    1.0
    >>> manhattan([[0.5, 0.0, 0.5]], [[1.0, 0.0, 0.0]], normalized=True)
    0.5
    """
    mean = mean_of_items(multiclass.total_variation, y_true, y_prob, sample_weight)
    return mean if normalized else 2 * mean


def _mean(
    terms: Any,
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None,
    *,
    normalized: bool,
) -> float:
    if isinstance(y_true, Votes):
        refuse_unordered(y_true)

    def scaled(p: FloatArray, y: FloatArray) -> FloatArray:
        score: FloatArray = terms(p, y)
        return score / (p.shape[0] - 1) if normalized else score

    return mean_of_items(scaled, y_true, y_prob, sample_weight)


def cumulative_rows(data: ClassRows) -> list[Rows]:
    """Return the rows of each threshold, lowest first. The values must be validated already."""
    y, p = above(by_class(data.y_true)), above(by_class(data.y_prob))
    one = data.column(0)
    return [one._replace(y_true=y[k], y_prob=p[k]) for k in range(len(p))]


# Scores of single rows; p and y have shape (classes, rows).


def above(q: FloatArray) -> FloatArray:
    """Return the mass above each threshold, of shape (classes - 1, rows).

    It is divided by the mass of the row, which may differ from 1 by rounding, so that it is never
    above 1.
    """
    mass = np.cumsum(q[::-1], axis=0)
    share: FloatArray = mass[-2::-1] / mass[-1]
    return share


def distance(p: FloatArray, y: FloatArray) -> FloatArray:
    """Return the Wasserstein distance."""
    total: FloatArray = np.abs(above(p) - above(y)).sum(axis=0)
    return total


def squared_distance(p: FloatArray, y: FloatArray) -> FloatArray:
    """Return the ranked probability score."""
    d = above(p) - above(y)
    total: FloatArray = (d * d).sum(axis=0)
    return total
