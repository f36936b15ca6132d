"""Calibration of many classes: class by class, and of the predicted class.

Labels and predictions have a row per item and a column per class, and rows that sum to 1. Each
question has a name of its own, since the answers differ: see docs/multiclass.md.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from softcal._parallel import in_order
from softcal._validation import inputs
from softcal._validation.multiclass import ClassRows, class_rows, refuse
from softcal.bins import Bins
from softcal.metrics.binned import weighted_mean
from softcal.table.kernel import LARGE, class_sums, loop_ready
from softcal.table.reliability import Reliability, from_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from softcal._validation.inputs import FloatArray, Rows
    from softcal.bins import BinsLike

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
        p, y = loop_ready(data.y_prob[part]), loop_ready(data.y_true[part])
        return bool(top_of_rows(p, y, probability[part], mass[part]))

    work(slice(0))  # compile before the threads start
    parts = [slice(start, start + _ROWS_AT_ONCE) for start in range(0, mass.size, _ROWS_AT_ONCE)]
    if not all(in_order(work, parts, at_most=len(parts))):
        refuse(data)


def dist_ce(
    y_true: npt.ArrayLike, y_prob: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None
) -> float:
    r"""DistCE: mean total variation distance between label and prediction, between 0 and 1.

    \[ \frac1n \sum_i \tfrac12 \sum_c |p_{ic} - y_{ic}| \]

    Half the Manhattan distance, and 1 minus the "soft accuracy". With two classes it is the mean
    absolute difference.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `classwise_reliability`.

    Examples
    --------
    >>> round(dist_ce([[0.5, 0.5, 0.0]], [[0.4, 0.4, 0.2]]), 4)
    0.2
    """
    return _mean(total_variation, y_true, y_prob, sample_weight)


def ent_ce(
    y_true: npt.ArrayLike, y_prob: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None
) -> float:
    r"""EntCE: mean absolute difference of the entropies of prediction and label, in nats.

    \[ \frac1n \sum_i |H(p_i) - H(y_i)|, \qquad H(q) = -\sum_c q_c \log q_c \]

    Whether the model is unsure where people disagree, whichever classes it thinks of.

    Parameters are those of `dist_ce`.

    Examples
    --------
    >>> round(ent_ce([[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]]), 4)
    0.3466
    """
    return _mean(absolute_entropy_gap, y_true, y_prob, sample_weight)


def ent_ce_signed(
    y_true: npt.ArrayLike, y_prob: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None
) -> float:
    r"""Mean entropy of the predictions minus that of the labels, in nats.

    \[ \frac1n \sum_i H(p_i) - H(y_i) \]

    Above 0 the model is less sure than people, below 0 surer. Items of either kind cancel, so 0
    does not mean that all is well: see `ent_ce`.

    Parameters are those of `dist_ce`.

    Examples
    --------
    >>> round(ent_ce_signed([[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]]), 4)
    0.3466
    """
    return _mean(entropy_gap, y_true, y_prob, sample_weight)


def rank_cs(
    y_true: npt.ArrayLike, y_prob: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None
) -> float:
    r"""RankCS: share of items whose classes the model puts in the order of the labels.

    An item counts when \(p_{ic} > p_{id}\) for all classes c, d with \(y_{ic} > y_{id}\). Classes
    with equal labels may be in any order, unlike in Baan et al.'s code, where the order of the
    columns decides; classes with equal predictions but different labels are out of order.

    Parameters are those of `dist_ce`.

    Returns
    -------
    float
        Between 0 and 1, and higher is better.

    Examples
    --------
    The first two classes are tied, so both orders of them are right.

    >>> rank_cs([[0.4, 0.4, 0.2], [0.4, 0.4, 0.2]], [[0.39, 0.41, 0.2], [0.41, 0.39, 0.2]])
    1.0
    """
    return _mean(same_order, y_true, y_prob, sample_weight)


def multiclass_brier(
    y_true: npt.ArrayLike, y_prob: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None
) -> float:
    r"""Brier score of many classes: squared differences, summed over classes, between 0 and 2.

    \[ \frac1n \sum_i \sum_c (p_{ic} - y_{ic})^2 \]

    With two classes it is twice `brier`.

    Parameters are those of `dist_ce`.

    Examples
    --------
    >>> round(multiclass_brier([[0.5, 0.5, 0.0]], [[0.4, 0.4, 0.2]]), 4)
    0.06
    """
    return _mean(squared_distance, y_true, y_prob, sample_weight)


def multiclass_log_loss(
    y_true: npt.ArrayLike, y_prob: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None
) -> float:
    r"""Log loss (cross-entropy) of many classes against soft labels, in nats.

    \[ -\frac1n \sum_i \sum_c y_{ic} \log p_{ic} \]

    Its least value is the entropy of the labels; what the model adds to that is
    `multiclass_kl_divergence`. Nothing is clipped: where the model rules out a class the label
    holds possible, the loss is infinite.

    Parameters are those of `dist_ce`.

    Examples
    --------
    >>> round(multiclass_log_loss([[0.5, 0.5, 0.0]], [[0.4, 0.4, 0.2]]), 4)
    0.9163
    """
    return _mean(_cross_entropy, y_true, y_prob, sample_weight)


def multiclass_kl_divergence(
    y_true: npt.ArrayLike, y_prob: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None
) -> float:
    r"""Mean Kullback-Leibler divergence of many classes, in nats: the log loss above its floor.

    \[ \frac1n \sum_i \sum_c y_{ic} \log \frac{y_{ic}}{p_{ic}} \]

    Parameters are those of `dist_ce`.

    Examples
    --------
    >>> round(multiclass_kl_divergence([[0.5, 0.5, 0.0]], [[0.4, 0.4, 0.2]]), 4)
    0.2231
    """
    return _mean(_divergence, y_true, y_prob, sample_weight)


# What one row gives; p and y have shape (classes, rows).


def total_variation(p: FloatArray, y: FloatArray) -> FloatArray:
    """Give half the sum of absolute differences."""
    distance: FloatArray = np.abs(p - y).sum(axis=0) / 2
    return distance


def entropy_gap(p: FloatArray, y: FloatArray) -> FloatArray:
    """Give the entropy of the prediction minus that of the label."""
    from scipy.special import entr

    gap: FloatArray = entr(p).sum(axis=0) - entr(y).sum(axis=0)
    return gap


def absolute_entropy_gap(p: FloatArray, y: FloatArray) -> FloatArray:
    """Give its absolute value."""
    return np.abs(entropy_gap(p, y))


def same_order(p: FloatArray, y: FloatArray) -> FloatArray:
    """Give 1 where no class has a higher label than another without a higher prediction."""
    order = np.lexsort((p, y), axis=0)  # by label and, among equal labels, by prediction
    p, y = (np.take_along_axis(values, order, axis=0) for values in (p, y))
    fine = (y[1:] == y[:-1]) | (p[1:] > p[:-1])
    consistent: FloatArray = fine.all(axis=0).astype(np.float64)
    return consistent


def squared_distance(p: FloatArray, y: FloatArray) -> FloatArray:
    """Give the sum of squared differences."""
    d = p - y
    distance: FloatArray = (d * d).sum(axis=0)
    return distance


def _cross_entropy(p: FloatArray, y: FloatArray) -> FloatArray:
    from scipy.special import xlogy

    loss: FloatArray = -xlogy(y, p).sum(axis=0)
    return loss


def _divergence(p: FloatArray, y: FloatArray) -> FloatArray:
    from scipy.special import rel_entr

    excess: FloatArray = np.maximum(rel_entr(y, p).sum(axis=0), 0.0)  # but for rounding, it is
    return excess


def _mean(
    terms: Callable[[FloatArray, FloatArray], FloatArray],
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None,
) -> float:
    data = class_rows(y_true, y_prob, sample_weight)
    w = data.sample_weight
    mean = weighted_mean(
        (loss, None if w is None else inputs.as_float64(w[part]))
        for part, loss in data.map_blocks(terms)
    )
    if mean is None:
        inputs.refuse_no_weight(data.column(0))
    return mean
