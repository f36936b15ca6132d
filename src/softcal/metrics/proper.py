"""Proper scores for one or many classes: the Brier score, the log loss, and its two parts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from softcal._validation import inputs
from softcal._validation.multiclass import class_rows, is_by_class
from softcal.table.kernel import cross_entropy
from softcal.table.reliability import Reliability, table_of
from softcal.votes import Votes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy.typing as npt

    from softcal._validation.inputs import FloatArray
    from softcal._validation.multiclass import ClassRows

    Terms = Callable[[FloatArray, FloatArray], FloatArray]


def brier(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Compute the Brier score against soft labels, without bins.

    \[ \frac1n \sum_i (p_i - y_i)^2, \qquad
       \frac1n \sum_i \sum_c (p_{ic} - y_{ic})^2 \text{ for classes} \]

    Let z be a 0/1 outcome drawn with probability y. The expected Brier score against z is this one
    plus the mean of y(1 - y).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Reliability
        Labels in [0, 1], which sum to 1 per row for classes. A table may be passed as the only
        argument instead.
    y_prob : array-like of shape (n_samples,) or (n_samples, n_classes), optional
        Predicted probabilities; required with labels.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.

    Returns
    -------
    float
        Between 0 and 1. For classes it is between 0 and 2, and for two classes twice the score of
        one column.

    Examples
    --------
    >>> round(brier([0.0, 0.5, 1.0], [0.2, 0.4, 0.9]), 4)
    0.02
    >>> round(brier([[0.5, 0.5, 0.0]], [[0.4, 0.4, 0.2]]), 4)
    0.06
    """
    if y_prob is not None and is_by_class(y_prob) and not isinstance(y_true, Reliability):
        return mean_of_items(squared_distance, y_true, y_prob, sample_weight)
    rel = table_of("brier", y_true, y_prob, sample_weight=sample_weight, default_bins=1)
    return rel.brier


def calibration_error_bound(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    n_votes: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Compute an upper bound of the calibration error from the Brier score, without bins.

    \[ \sqrt{\frac1n \sum_i (p_i - y_i)^2 - \frac{y_i (1 - y_i)}{m_i - 1}}, \]

    where the second term is 0 for rows without a number of votes m, or with one vote. It is the
    bound of Gruber and Buettner, Better Uncertainty Calibration via Proper Scores for
    Classification and Beyond, NeurIPS 2022, without the noise that votes reveal.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,), Votes, or Reliability
        Labels in [0, 1]. A table with any bins may be passed as the only argument instead.
    y_prob : array-like of shape (n_samples,), optional
        Predicted probabilities in [0, 1]; required with labels.
    n_votes : int or array-like of shape (n_samples,), optional
        The number of votes behind each label; omit it with `Votes`.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.

    Returns
    -------
    float
        The bound, which is 0 if the difference under the root is negative. It is an upper bound on
        \(\sqrt{E(p - E[y \mid p])^2}\), and therefore on \(E|p - E[y \mid p]|\), up to the error
        of its own estimation.

    See Also
    --------
    rms_gap : Never above the bound on the same rows without votes, for any bins.
    brier_without_vote_noise : The difference under the root, if every item has two votes or more.

    Notes
    -----
    Let \(c(p) = E[y \mid p]\). The mixed term of \(p - y = (p - c(p)) + (c(p) - y)\) has mean 0
    given p, so that

    \[ E(p - y)^2 = E(p - c(p))^2 + E\,\mathrm{Var}(y \mid p) . \]

    The first part is the squared calibration error. The second is not negative, which gives the
    bound. If y is a share of m independent votes with rate y*, it is the sum of
    \(E\,\mathrm{Var}(y^* \mid p)\) and \(E\, y^* (1 - y^*) / m\). Only the first of these is about
    items. The other is vote noise, and \(y (1 - y) / (m - 1)\) estimates it without bias. The bound
    without it is never above the root of the Brier score. Unlike the binned and smoothed errors, it
    has no bins and no bandwidth. Of two calibrated models, the one that predicts items better has
    the lower bound.

    Examples
    --------
    >>> round(calibration_error_bound([0.0, 0.5, 1.0], [0.2, 0.4, 0.9]), 4)
    0.1414
    >>> round(calibration_error_bound([0.0, 0.5, 1.0], [0.2, 0.4, 0.9], n_votes=20), 4)
    0.125
    >>> from softcal import reliability
    >>> rel = reliability([0.0, 0.5, 1.0], [0.2, 0.4, 0.9], n_votes=20)
    >>> round(calibration_error_bound(rel), 4)
    0.125
    """
    rel = table_of(
        "calibration_error_bound", y_true, y_prob,
        sample_weight=sample_weight, n_votes=n_votes, default_bins=1,
    )  # fmt: skip
    score, noise = rel.brier, math.fsum(rel.sums.vote_noise.tolist())
    return math.sqrt(max(score - noise / math.fsum(rel.sums.weight.tolist()), 0.0))


def log_loss(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Compute the log loss (cross-entropy) against soft labels, in nats.

    \[ -\frac1n \sum_i y_i \log p_i + (1 - y_i) \log(1 - p_i) = H(y) + KL(y \| p), \qquad
       -\frac1n \sum_i \sum_c y_{ic} \log p_{ic} \text{ for classes} \]

    Its lowest value is the entropy of the labels, `label_entropy`, not 0. The excess of the model
    is `kl_divergence`. Predictions are not clipped: the loss is infinite if the prediction of a
    class is exactly 0 and its label is positive.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes)
        Labels in [0, 1], which sum to 1 per row for classes.
    y_prob : array-like of shape (n_samples,) or (n_samples, n_classes)
        Predicted probabilities.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.

    Returns
    -------
    float
        At least `label_entropy`; possibly infinite.

    Examples
    --------
    >>> y_true, y_prob = [0.0, 0.5, 1.0], [0.2, 0.4, 0.9]
    >>> round(log_loss(y_true, y_prob), 4)
    0.3474
    >>> round(label_entropy(y_true) + kl_divergence(y_true, y_prob), 4)
    0.3474
    >>> round(log_loss([[0.5, 0.5, 0.0]], [[0.4, 0.4, 0.2]]), 4)
    0.9163
    """
    if is_by_class(y_prob):
        return mean_of_items(class_cross_entropy, y_true, y_prob, sample_weight)
    return _mean_of_rows(cross_entropy, y_true, y_prob, sample_weight)


def kl_divergence(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Compute the mean Kullback-Leibler divergence from prediction to label, in nats.

    \[ \frac1n \sum_i y_i \log \frac{y_i}{p_i} + (1 - y_i) \log \frac{1 - y_i}{1 - p_i}, \qquad
       \frac1n \sum_i \sum_c y_{ic} \log \frac{y_{ic}}{p_{ic}} \text{ for classes} \]

    It is the log loss minus its lowest possible value, `label_entropy`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes)
        Labels in [0, 1], which sum to 1 per row for classes.
    y_prob : array-like of shape (n_samples,) or (n_samples, n_classes)
        Predicted probabilities.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.

    Returns
    -------
    float
        0 or more; exactly 0 if every label equals its prediction.

    Examples
    --------
    >>> round(kl_divergence([0.0, 0.5, 1.0], [0.2, 0.4, 0.9]), 4)
    0.1163
    >>> round(kl_divergence([[0.5, 0.5, 0.0]], [[0.4, 0.4, 0.2]]), 4)
    0.2231
    """
    if is_by_class(y_prob):
        return mean_of_items(_class_divergence, y_true, y_prob, sample_weight)
    return _mean_of_rows(_divergence, y_true, y_prob, sample_weight)


def label_entropy(y_true: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None) -> float:
    r"""Compute the mean entropy of the labels, the lowest log loss of any model, in nats.

    \[ H(y) = -\frac1n \sum_i y_i \log y_i + (1 - y_i) \log(1 - y_i), \qquad
       -\frac1n \sum_i \sum_c y_{ic} \log y_{ic} \text{ for classes} \]

    It is 0 if every label is 0 or 1.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes)
        Labels in [0, 1]. `Votes` of two classes count as one column.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.

    Returns
    -------
    float
        0 or more.

    Examples
    --------
    >>> round(label_entropy([0.0, 0.5, 1.0]), 4)
    0.231
    >>> round(label_entropy([[0.5, 0.5, 0.0]]), 4)
    0.6931
    """
    if isinstance(y_true, Votes) and y_true.n_classes > 2:
        return log_loss(y_true, y_true.shares, sample_weight=sample_weight)
    labels = inputs.labels_of_votes(y_true)[0]
    return log_loss(labels, labels, sample_weight=sample_weight)


def squared_distance(p: FloatArray, y: FloatArray) -> FloatArray:
    """Return the sum of squared differences; p and y have shape (classes, rows)."""
    d = p - y
    distance: FloatArray = (d * d).sum(axis=0)
    return distance


def class_cross_entropy(p: FloatArray, y: FloatArray) -> FloatArray:
    """Return the log loss of each row; p and y have shape (classes, rows)."""
    from scipy.special import xlogy

    loss: FloatArray = -xlogy(y, p).sum(axis=0)
    return loss


def _class_divergence(p: FloatArray, y: FloatArray) -> FloatArray:
    from scipy.special import rel_entr

    excess: FloatArray = rel_entr(y, p).sum(axis=0)
    return np.maximum(excess, 0.0)  # never negative, except for rounding


def _divergence(y: FloatArray, p: FloatArray) -> FloatArray:
    excess: FloatArray = cross_entropy(y, p) - cross_entropy(y, y)
    return np.maximum(excess, 0.0)  # never negative, except for rounding


def _mean_of_rows(
    terms: Terms,
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None,
) -> float:
    """Return the weighted mean of the terms of rows, in blocks of bounded memory."""
    rows = inputs.rows(y_true, y_prob, sample_weight)

    def losses() -> Iterator[tuple[FloatArray, FloatArray | None]]:
        for p, y, w in rows.blocks():
            if not inputs.all_valid(p, y, w):
                inputs.refuse(rows)
            yield terms(y, p), w

    mean = weighted_mean(losses())
    if mean is None:
        inputs.refuse_no_weight(rows)
    return mean


def mean_of_items(
    terms: Terms,
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None,
) -> float:
    """Return the weighted mean of the terms of items; p and y have shape (classes, rows)."""
    data = class_rows(y_true, y_prob, sample_weight)
    return mean_of_blocks(data, data.map_blocks(terms))


def mean_of_blocks(data: ClassRows, blocks: Iterable[tuple[slice, FloatArray]]) -> float:
    """Return the weighted mean of scores per item, given in blocks of rows."""
    w = data.sample_weight
    mean = weighted_mean(
        (score, None if w is None else inputs.as_float64(w[part])) for part, score in blocks
    )
    if mean is None:
        inputs.refuse_no_weight(data.column(0))
    return mean


def weighted_mean(blocks: Iterable[tuple[FloatArray, FloatArray | None]]) -> float | None:
    """Return the weighted mean loss over blocks of rows; None if the total weight is 0."""
    totals, weights = [], []
    for loss, w in blocks:
        if w is None:
            totals.append(float(loss.sum()))
            weights.append(float(loss.size))
        else:
            # A row of weight 0 counts as absent, even if its loss is infinite.
            here = np.multiply(w, loss, out=np.zeros_like(loss), where=w > 0)
            totals.append(float(here.sum()))
            weights.append(float(w.sum()))
    return math.fsum(totals) / math.fsum(weights) if any(weights) else None
