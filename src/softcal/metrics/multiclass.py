"""Multiclass calibration: per class, and of the predicted class.

Labels and predictions have one row per item and one column per class, and rows sum to 1. The
metrics answer different questions; see docs/multiclass.md.
"""

from __future__ import annotations

import math
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from softcal._validation import inputs
from softcal._validation.multiclass import class_rows
from softcal.bins import Bins
from softcal.metrics.proper import mean_of_items
from softcal.table.kernel import class_gaps, class_sums, top_label_rows
from softcal.table.owners import Groups
from softcal.table.reliability import Reliability, from_rows, smece_of

if TYPE_CHECKING:
    from softcal._validation.inputs import Coded, FloatArray
    from softcal._validation.multiclass import ClassRows
    from softcal.bins import BinsLike


def classwise_reliability(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    *,
    bins: BinsLike = 10,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
) -> dict[Any, Reliability]:
    r"""Compute one reliability table per class, of its probability and its share of the label.

    The table of class c is `reliability` of \(y_{\cdot c}\) and \(p_{\cdot c}\).

    Parameters
    ----------
    y_true : Votes or array-like of shape (n_samples, n_classes)
        Labels: shares that sum to 1 for each item, one-hot rows, or `Votes`, whose numbers of
        votes enter every interval. For class numbers, pass `numpy.eye(n_classes)[numbers]`.
    y_prob : array-like of shape (n_samples, n_classes)
        Predictions that sum to 1 for each item within 1e-3, a tolerance for half precision.
    bins : int, Bins, or sequence of float, default=10
        A number of equal-width bins, `Bins`, or edges from 0 to 1, for every class.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.
    n_votes : int or array-like of shape (n_samples,), optional
        The number of votes behind each label. It changes only the uncertainty.
    groups : array-like of shape (n_samples,), optional
        The group of each item, if items are not independent. It changes only the uncertainty.

    Returns
    -------
    dict
        The table of each class, by the name in the votes or in the columns of a frame, or by
        number.

    Raises
    ------
    InputError, InputTypeError
        If the data is invalid. Rows are never normalized silently.

    Examples
    --------
    >>> from softcal import Votes
    >>> votes = Votes([[3, 1, 0], [0, 1, 1]], classes=["cat", "dog", "fox"])
    >>> tables = classwise_reliability(votes, [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]])
    >>> {name: round(table.smece, 3) for name, table in tables.items()}
    {'cat': 0.175, 'dog': 0.025, 'fox': 0.15}
    """
    data = class_rows(y_true, y_prob, sample_weight, n_votes)
    group = groups_of(groups, data, y_true, y_prob)
    binned = Bins.of(bins)
    sums = class_sums(data, binned)
    if not sums[0].count.any():
        inputs.refuse_no_weight(data.column(0))
    of_groups = (
        None if group is None else Groups.of_rows(data.column(c), group, binned)
        for c in range(len(sums))
    )
    tables = map(Reliability, repeat(binned), sums, of_groups)
    return dict(zip(data.classes, tables, strict=True))


def groups_of(
    groups: npt.ArrayLike | None, data: ClassRows, y_true: npt.ArrayLike, y_prob: npt.ArrayLike
) -> Coded | None:
    """Return the group of each row, or None without groups."""
    inputs.refuse_misaligned_groups(groups, y_true=y_true, y_prob=y_prob)
    return None if groups is None else inputs.coded_groups(groups, data.column(0))


def classwise_smece(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    *,
    bins: BinsLike = 10,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Compute the mean SMECE over classes, each class against the rest, with equal weights.

    \[ \frac1C \sum_c \mathrm{SMECE}(y_{\cdot c}, p_{\cdot c}) \]

    With many rare classes it is small for any model, because most probabilities and their errors
    are near 0. With one-hot labels it is the classwise ECE (static calibration error).

    Parameters
    ----------
    y_true : Votes or array-like of shape (n_samples, n_classes)
        Labels: shares that sum to 1 for each item, one-hot rows, or `Votes`.
    y_prob : array-like of shape (n_samples, n_classes)
        Predictions that sum to 1 for each item.
    bins : int, Bins, or sequence of float, default=10
        A number of equal-width bins, `Bins`, or edges from 0 to 1, for every class.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> round(classwise_smece([[1, 0, 0], [0, 0.5, 0.5]], [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]]), 4)
    0.2
    """
    data = class_rows(y_true, y_prob, sample_weight, None)
    gaps = class_gaps(data, Bins.of(bins))
    total = math.fsum(gaps[0, 0].tolist())  # the weights are those of the rows, in every class
    if not total:
        inputs.refuse_no_weight(data.column(0))
    return math.fsum(smece_of(residual, total) for residual in gaps[:, 1]) / len(gaps)


def top_label_reliability(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    *,
    bins: BinsLike = 10,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
) -> Reliability:
    r"""Compute the reliability table of the predicted class.

    The predicted class \(c_i = \arg\max_c p_{ic}\) has the highest probability; the first one is
    used if several are equal. The table is `reliability` of the label's mass on that class,
    \(y_{i c_i}\), and \(p_{i c_i}\). With one-hot labels that mass is 1 or 0, and this is the usual
    table of confidence and accuracy.

    Parameters
    ----------
    y_true : Votes or array-like of shape (n_samples, n_classes)
        Labels: shares that sum to 1 for each item, one-hot rows, or `Votes`.
    y_prob : array-like of shape (n_samples, n_classes)
        Predictions that sum to 1 for each item.
    bins : int, Bins, or sequence of float, default=10
        A number of equal-width bins, `Bins`, or edges from 0 to 1.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.
    n_votes : int or array-like of shape (n_samples,), optional
        The number of votes behind each label. It changes only the uncertainty.
    groups : array-like of shape (n_samples,), optional
        The group of each item, if items are not independent. It changes only the uncertainty.

    Returns
    -------
    Reliability
        The table of the predicted class.

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
    group = groups_of(groups, data, y_true, y_prob)
    return from_rows(top_label_rows(data), Bins.of(bins), group)


def top_label_smece(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    *,
    bins: BinsLike = 10,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Compute the SMECE of the predicted class against the label's mass on that class.

    \[ \mathrm{SMECE}\bigl(y_{i c_i}, p_{i c_i}\bigr), \qquad c_i = \arg\max_c p_{ic} \]

    With one-hot labels it is the usual confidence ECE. Most tools use the majority vote as the
    label, and the same model can then appear calibrated.

    Parameters
    ----------
    y_true : Votes or array-like of shape (n_samples, n_classes)
        Labels: shares that sum to 1 for each item, one-hot rows, or `Votes`.
    y_prob : array-like of shape (n_samples, n_classes)
        Predictions that sum to 1 for each item.
    bins : int, Bins, or sequence of float, default=10
        A number of equal-width bins, `Bins`, or edges from 0 to 1.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> round(top_label_smece([[0.9, 0.1], [0.5, 0.5]], [[0.8, 0.2], [0.3, 0.7]]), 4)
    0.15
    """
    return top_label_reliability(y_true, y_prob, bins=bins, sample_weight=sample_weight).smece


def dist_ce(
    y_true: npt.ArrayLike, y_prob: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None
) -> float:
    r"""Compute DistCE, the mean total variation distance between label and prediction.

    \[ \frac1n \sum_i \tfrac12 \sum_c |p_{ic} - y_{ic}| \]

    It is half the Manhattan distance, and 1 minus the "soft accuracy". With two classes it is the
    mean absolute difference.

    Parameters
    ----------
    y_true : Votes or array-like of shape (n_samples, n_classes)
        Labels: shares that sum to 1 for each item, one-hot rows, or `Votes`.
    y_prob : array-like of shape (n_samples, n_classes)
        Predictions that sum to 1 for each item.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> round(dist_ce([[0.5, 0.5, 0.0]], [[0.4, 0.4, 0.2]]), 4)
    0.2
    """
    return mean_of_items(total_variation, y_true, y_prob, sample_weight)


def ent_ce(
    y_true: npt.ArrayLike, y_prob: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None
) -> float:
    r"""Compute EntCE, the mean absolute difference between the entropies of prediction and label.

    \[ \frac1n \sum_i |H(p_i) - H(y_i)|, \qquad H(q) = -\sum_c q_c \log q_c \]

    It measures whether the model is uncertain where people disagree, regardless of the classes.

    Parameters
    ----------
    y_true : Votes or array-like of shape (n_samples, n_classes)
        Labels: shares that sum to 1 for each item, one-hot rows, or `Votes`.
    y_prob : array-like of shape (n_samples, n_classes)
        Predictions that sum to 1 for each item.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.

    Returns
    -------
    float
        0 or more, in nats.

    Examples
    --------
    >>> round(ent_ce([[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]]), 4)
    0.3466
    """
    return mean_of_items(absolute_entropy_gap, y_true, y_prob, sample_weight)


def ent_ce_signed(
    y_true: npt.ArrayLike, y_prob: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None
) -> float:
    r"""Compute the mean entropy of the predictions minus that of the labels, in nats.

    \[ \frac1n \sum_i H(p_i) - H(y_i) \]

    Items with opposite signs cancel, so a value of 0 does not imply that entropies agree; see
    `ent_ce`.

    Parameters
    ----------
    y_true : Votes or array-like of shape (n_samples, n_classes)
        Labels: shares that sum to 1 for each item, one-hot rows, or `Votes`.
    y_prob : array-like of shape (n_samples, n_classes)
        Predictions that sum to 1 for each item.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.

    Returns
    -------
    float
        Positive if the model is less certain than people, negative if it is more certain.

    Examples
    --------
    >>> round(ent_ce_signed([[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]]), 4)
    0.3466
    """
    return mean_of_items(entropy_gap, y_true, y_prob, sample_weight)


def rank_cs(
    y_true: npt.ArrayLike, y_prob: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None
) -> float:
    r"""Compute RankCS, the share of items whose predictions rank the classes as the labels do.

    An item counts if \(p_{ic} > p_{id}\) for all classes c, d with \(y_{ic} > y_{id}\). Classes
    with equal labels may be in any order; in the code of Baan et al. the order of the columns
    decides. An item with equal predictions for classes of different labels does not count.

    Parameters
    ----------
    y_true : Votes or array-like of shape (n_samples, n_classes)
        Labels: shares that sum to 1 for each item, one-hot rows, or `Votes`.
    y_prob : array-like of shape (n_samples, n_classes)
        Predictions that sum to 1 for each item.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.

    Returns
    -------
    float
        Between 0 and 1; higher is better.

    Examples
    --------
    The first two classes are tied, so both of their orders are correct.

    >>> rank_cs([[0.4, 0.4, 0.2], [0.4, 0.4, 0.2]], [[0.39, 0.41, 0.2], [0.41, 0.39, 0.2]])
    1.0
    """
    return mean_of_items(same_order, y_true, y_prob, sample_weight)


# Scores per row; p and y have shape (classes, rows).


def total_variation(p: FloatArray, y: FloatArray) -> FloatArray:
    """Return half the sum of absolute differences."""
    distance: FloatArray = np.abs(p - y).sum(axis=0) / 2
    return distance


def entropy_gap(p: FloatArray, y: FloatArray) -> FloatArray:
    """Return the entropy of the prediction minus that of the label."""
    return entropy(p) - entropy(y)


def entropy(q: FloatArray) -> FloatArray:
    """Return the entropy of each row."""
    from scipy.special import entr

    found: FloatArray = entr(q).sum(axis=0)
    return found


def absolute_entropy_gap(p: FloatArray, y: FloatArray) -> FloatArray:
    """Return the absolute value of `entropy_gap`."""
    return np.abs(entropy_gap(p, y))


def same_order(p: FloatArray, y: FloatArray) -> FloatArray:
    """Return 1 if every class with a higher label also has a higher prediction."""
    if ((y == 0) | (y == 1)).all():  # one class per row: no need to sort
        one = y == 1
        least = p.min(axis=0, where=one, initial=np.inf)
        first: FloatArray = (least > p.max(axis=0, where=~one, initial=-np.inf)).astype(np.float64)
        return first
    order = np.lexsort((p, y), axis=0)  # by label and, among equal labels, by prediction
    p, y = (np.take_along_axis(values, order, axis=0) for values in (p, y))
    fine = (y[1:] == y[:-1]) | (p[1:] > p[:-1])
    consistent: FloatArray = fine.all(axis=0).astype(np.float64)
    return consistent
