"""Scores of whole label distributions, item by item and without bins.

`dist_ce`, `ent_ce` and `rank_cs` are Baan et al.'s (2022), the last one with ties handled.
Unlike calibration errors they grow with the noise of the votes: a model that knows the true rates
exactly does not score 0. `vote_noise_floor` says what it would score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from softcal.door import inputs
from softcal.door.class_inputs import class_rows
from softcal.measures.metrics import weighted_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from softcal.door.inputs import FloatArray


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
