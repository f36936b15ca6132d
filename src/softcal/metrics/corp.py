r"""The isotonic (CORP) curve, and score decompositions based on it.

Dimitriadis, Gneiting, and Jordan, Stable reliability diagrams for probabilistic classifiers, PNAS
118(8), 2021. Isotonic regression uses only means of labels, so labels may be soft.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import isotonic_regression

from softcal import _display
from softcal._validation import inputs
from softcal.bins import Bins
from softcal.metrics.proper import log_loss
from softcal.table.distinct import distinct
from softcal.table.kernel import cross_entropy
from softcal.table.reliability import Reliability, from_rows, rows_or_table

if TYPE_CHECKING:
    import numpy.typing as npt

    from softcal._validation.inputs import FloatArray, Rows


@dataclass(frozen=True, repr=False)
class ScoreDecomposition(_display.Printed):
    """A mean score decomposed as miscalibration - discrimination + uncertainty.

    Attributes
    ----------
    score : float
        The mean score of the original predictions; lower is better.
    miscalibration : float
        The decrease of the score under the best increasing recalibration. It is never negative,
        except from a table (see `corp`).
    discrimination : float
        The improvement of the recalibrated predictions over predicting the mean label, 0 or more.
    uncertainty : float
        The score of predicting the mean label for every row.
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float

    def __repr__(self) -> str:
        parts = (f"{name}={value:.4g}" for name, value in vars(self).items())
        return f"ScoreDecomposition({', '.join(parts)})"

    def _shown(self) -> _display.Shown:
        parts = (
            f"= miscalibration {self.miscalibration:.4f} - discrimination "
            f"{self.discrimination:.4f} + uncertainty {self.uncertainty:.4f}"
        )
        return f"score {self.score:.4f}\n{parts}", [], []


@dataclass(frozen=True, eq=False, repr=False)
class CorpCurve(_display.Printed):
    """The isotonic recalibration curve, with one step for each pool of predictions.

    Attributes
    ----------
    prob_low, prob_high : ndarray
        The lowest and highest prediction of each step; from a table, the edges of its bins.
    recalibrated : ndarray
        The mean label of each step, strictly increasing.
    count : ndarray
        The number of rows of each step.
    weight : ndarray
        The weight of the rows of each step.
    brier : ScoreDecomposition
        The decomposition of the Brier score.
    """

    prob_low: FloatArray
    prob_high: FloatArray
    recalibrated: FloatArray
    count: npt.NDArray[np.int64]
    weight: FloatArray
    brier: ScoreDecomposition

    def __repr__(self) -> str:
        return f"CorpCurve(n={self.count.sum()}, steps={self.count.size})"

    def _shown(self) -> _display.Shown:
        columns = (self.prob_low, self.prob_high, self.recalibrated)
        rows = [
            [*(f"{x:.4f}" for x in values), str(count)]
            for *values, count in zip(*columns, self.count, strict=True)
        ]
        title = f"{self.count.size} steps   Brier {self.brier}"
        return title, ["prob from", "to", "recalibrated", "count"], _display.shortened(rows)


def corp(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    sample_weight: npt.ArrayLike | None = None,
) -> CorpCurve:
    r"""Fit the best increasing recalibration, and decompose the Brier score.

    Let \(\hat y_i\) be the isotonic regression of the labels on the predictions, with equal
    predictions pooled first, and \(\bar y\) the mean label. Then

    \[ \underbrace{\overline{(p - y)^2}}_{\text{score}} =
       \underbrace{\overline{(p - y)^2} - \overline{(\hat y - y)^2}}_{\text{miscalibration}} -
       \underbrace{\overline{(\hat y - \bar y)^2}}_{\text{discrimination}} +
       \underbrace{\overline{(y - \bar y)^2}}_{\text{uncertainty}} . \]

    The uncertainty is the variance of the labels. It equals \(\bar y (1 - \bar y)\) only for labels
    of 0 and 1.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or Reliability
        Labels in [0, 1]. A table may be passed as the only argument instead.
    y_prob : array-like of shape (n_samples,), optional
        Predicted probabilities in [0, 1]; required with labels.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.

    Returns
    -------
    CorpCurve
        The curve and, as `brier`, the decomposition. It detects only miscalibration that an
        increasing map can fix. With little data the fit follows noise, and the miscalibration of a
        perfect model is positive.

    Notes
    -----
    From a table the curve is constant within a bin. Score and uncertainty equal those of the rows,
    up to rounding. Miscalibration and discrimination are too small by the same amount, at most the
    largest share of weight in one bin. That is 1/3600 for 3,600 bins with evenly spread
    predictions, and 0 if the predictions within each bin are equal. The miscalibration may be
    negative.

    Examples
    --------
    >>> curve = corp([0.0, 0.6, 0.4, 1.0], [0.1, 0.3, 0.6, 0.8])
    >>> curve.recalibrated
    array([0. , 0.5, 1. ])
    >>> curve.prob_low, curve.prob_high
    (array([0.1, 0.3, 0.8]), array([0.1, 0.6, 0.8]))
    >>> parts = curve.brier
    >>> round(parts.miscalibration, 4), round(parts.discrimination, 4), round(parts.uncertainty, 4)
    (0.04, 0.125, 0.13)
    >>> round(parts.miscalibration - parts.discrimination + parts.uncertainty - parts.score, 12)
    0.0
    >>> from softcal import reliability
    >>> corp(reliability([0.0, 0.6, 0.4, 1.0], [0.1, 0.3, 0.6, 0.8], bins=100)).recalibrated
    array([0. , 0.5, 1. ])
    """
    rows = rows_or_table("corp", y_true, y_prob, sample_weight=sample_weight)
    if isinstance(rows, Reliability):
        return _corp_of_table(rows)
    pools = distinct(rows)
    recalibrated, starts = isotonic(_means(pools.label, pools.weight), pools.weight)
    # p and the fit are constant within a pool, so only the mean label of a pool matters.
    gain = pools.weight * (pools.prob - recalibrated)
    gain *= pools.prob + recalibrated - 2 * pools.label / pools.weight
    mean = min(float(pools.label.sum() / pools.weight.sum()), 1.0)
    always_the_mean = rows._replace(y_prob=np.broadcast_to(mean, rows.y_true.size))
    brier = _decomposition(
        _brier(rows),
        float(gain.sum() / pools.weight.sum()),
        _spread_of(recalibrated, pools.weight),
        _brier(always_the_mean),
    )
    ends = np.append(starts[1:], recalibrated.size) - 1
    rows_of, weight = (np.add.reduceat(each, starts) for each in (pools.rows, pools.weight))
    curve = pools.prob[starts], pools.prob[ends], recalibrated[starts]
    return CorpCurve(*curve, rows_of, weight, brier)


def _corp_of_table(rel: Reliability) -> CorpCurve:
    score = rel.brier
    filled = rel.count > 0
    weight, label = rel.sums.weight[filled], rel.sums.label[filled]
    recalibrated, starts = isotonic(_means(label, weight), weight)
    total = weight.sum()
    mean = label.sum() / total
    squares = (label - rel.sums.label_var[filled]).sum() / total  # mean of y^2 = y - y(1 - y)
    uncertainty = max(float(squares - mean**2), 0.0)
    discrimination = _spread_of(recalibrated, weight)
    brier = ScoreDecomposition(
        score, score - uncertainty + discrimination, discrimination, uncertainty
    )
    ends = np.append(starts[1:], recalibrated.size) - 1
    low, high = rel.bins.edges[:-1][filled][starts], rel.bins.edges[1:][filled][ends]
    count, weight = (np.add.reduceat(each, starts) for each in (rel.count[filled], weight))
    return CorpCurve(low, high, recalibrated[starts], count, weight, brier)


def log_loss_decomposition(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
) -> ScoreDecomposition:
    r"""Decompose the log loss with the isotonic recalibration of `corp`.

    The log loss is linear in the label, so the same increasing recalibration is the best one. With
    \(H(q) = -q \log q - (1 - q) \log(1 - q)\), the uncertainty is \(H(\bar y)\) and the
    discrimination is \(H(\bar y) - \overline{H(\hat y)}\). With soft labels the lowest possible
    score is `label_entropy`, not 0. The score and the miscalibration are infinite if a prediction
    is exactly 0 or 1 and its label differs.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels in [0, 1].
    y_prob : array-like of shape (n_samples,)
        Predicted probabilities in [0, 1].
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.

    Returns
    -------
    ScoreDecomposition
        The log loss and its three parts, in nats.

    Examples
    --------
    >>> parts = log_loss_decomposition([0.0, 0.6, 0.4, 1.0], [0.1, 0.3, 0.6, 0.8])
    >>> round(parts.score, 4)
    0.4869
    >>> round(parts.miscalibration, 4), round(parts.discrimination, 4), round(parts.uncertainty, 4)
    (0.1403, 0.3466, 0.6931)
    """
    pools = distinct(inputs.rows(y_true, y_prob, sample_weight))
    recalibrated, _ = isotonic(_means(pools.label, pools.weight), pools.weight)
    score = log_loss(y_true, y_prob, sample_weight=sample_weight)
    share = pools.weight / pools.weight.sum()
    best = float((share * cross_entropy(recalibrated, recalibrated)).sum())
    mean = np.clip([pools.label.sum() / pools.weight.sum()], 0, 1)
    uncertainty = float(cross_entropy(mean, mean)[0])
    return _decomposition(score, score - best, uncertainty - best, uncertainty)


def _means(label: FloatArray, weight: FloatArray) -> FloatArray:
    return np.clip(label / weight, 0.0, 1.0)  # corrects rounding


def isotonic(mean: FloatArray, weight: FloatArray) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """Fit non-decreasing values to mean labels; return them and the start of each step."""
    fitted: FloatArray = isotonic_regression(mean, weights=weight).x
    starts = np.flatnonzero(np.append(True, fitted[1:] > fitted[:-1]))
    return fitted, starts


def _decomposition(
    score: float, miscalibration: float, discrimination: float, uncertainty: float
) -> ScoreDecomposition:
    """Return the decomposition, with negative parts from rounding set to 0."""
    return ScoreDecomposition(
        score, max(miscalibration, 0.0), max(discrimination, 0.0), uncertainty
    )


def _spread_of(values: FloatArray, weight: FloatArray) -> float:
    """Return the weighted variance of the values."""
    share = weight / weight.sum()
    return float((share * (values - (share * values).sum()) ** 2).sum())


def _brier(rows: Rows) -> float:
    return from_rows(rows, Bins.uniform(1)).brier
