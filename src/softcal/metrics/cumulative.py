r"""Cumulative calibration errors: no bins, no bandwidth, and a p-value.

Arrieta-Ibarra, Gujral, Tannen, Tygert, and Xu, Metrics of calibration for probabilistic
predictions, JMLR 23, 2022. Residuals are added up in the order of the predictions. For a calibrated
model the cumulative sum behaves like a Brownian motion, whose largest excursion and range have
known distributions. The p(1 - p) of the paper is the variance of labels of 0 and 1 only. For other
labels, it is estimated from the residuals, and votes have at least their known noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from softcal import _display
from softcal._validation.inputs import refuse
from softcal.bins import Bins
from softcal.exceptions import InputError
from softcal.metrics.label_noise import skewed, unanimous_votes
from softcal.table.distinct import distinct
from softcal.table.kernel import bin_sums
from softcal.table.reliability import Reliability, refuse_no_rows, rows_or_table

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from softcal._validation.inputs import FloatArray
    from softcal.table.kernel import Sums

_TERMS = np.arange(12)  # of each series; the next term is below 1e-16 where it is used
_CERTAIN = 1e-3  # below this the probability rounds to 1, and 1/x^2 may overflow
_ROUNDING = 1e-9  # residuals below this are treated as 0
_TINY = 1e-300  # variance below which outcomes show nothing
_SLACK = 1e-12  # sum of squares that rounding of labels may cause
_SWITCH = 1.5  # below this the series in 1/x converge faster; above, those in x


@dataclass(frozen=True, repr=False)
class CumulativeTest(_display.Printed):
    """The largest cumulative residual, or the range of cumulative residuals, with a test.

    Attributes
    ----------
    statistic : float
        The largest excursion, or the range, on the scale of a calibration error.
    scale : float
        The standard deviation of the last cumulative sum under calibration.
    pvalue : float
        The probability, for many rows, of a statistic at least this large under calibration. It is
        0 if a label contradicts a prediction of exactly 0 or 1.
    """

    statistic: float
    scale: float
    pvalue: float

    def __repr__(self) -> str:
        return f"CumulativeTest({self.statistic:.4g}, pvalue={self.pvalue:.3g})"

    def _shown(self) -> _display.Shown:
        line = f"statistic {self.statistic:.4f} (scale {self.scale:.4f}), p-value {self.pvalue:.3g}"
        return line, [], []


def ecce_mad(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
) -> CumulativeTest:
    r"""Compute ECCE-MAD, the largest absolute cumulative residual, and test calibration.

    \[ \max_t |C(t)|, \qquad C(t) = \frac1n \sum_{i : p_i \le t} (p_i - y_i), \qquad
       \mathrm{scale} = \frac1n \sqrt{\max(E, R) + \max(gQ, F)} \]

    E is the sum of \(p(1 - p)\), and R that of \((p - y)^2\), over labels of 0 and 1 without a
    number of votes. Q is \(\sum (p - y)^2\) of the other labels, and F is \(\sum p(1 - p)/m\) of
    those with m votes. Skewed labels that show too few events have too small a Q. The factor g
    corrects for that (docs/without_bins_method.md).

    The sum is evaluated after each distinct prediction, so the order of equal predictions does not
    matter. For a table it is evaluated after each bin only. The statistic is then never above that
    of the rows, and below it by at most
    \(\max_b \frac1n \sqrt{n_b \sum_{i \in b} (p_i - y_i)^2}\). The p-value is conservative.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or Reliability
        Labels in [0, 1]. A table built without groups may be passed as the only argument instead.
    y_prob : array-like of shape (n_samples,), optional
        Predicted probabilities in [0, 1]; required with labels.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.
    n_votes : int or array-like of shape (n_samples,), optional
        The number of votes behind each label, as in `reliability`.

    Returns
    -------
    CumulativeTest
        The statistic and its p-value. A small p-value is evidence of miscalibration. The test
        assumes many independent rows. With few distinct predictions it is conservative.

    Examples
    --------
    >>> test = ecce_mad([0.0, 0.5, 1.0], [0.2, 0.4, 0.7])
    >>> round(test.statistic, 4), round(test.pvalue, 2)
    (0.0667, 1.0)
    >>> from softcal import reliability
    >>> rel = reliability([0.0, 0.5, 1.0], [0.2, 0.4, 0.7], bins=100)
    >>> round(ecce_mad(rel).statistic, 4)
    0.0667
    """
    walk, *spread = _walk("ecce_mad", y_true, y_prob, sample_weight, n_votes)
    return _tested(float(np.abs(walk).max()), _chance_of_greatest, *spread)


def ecce_range(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
) -> CumulativeTest:
    r"""Compute ECCE-R, the range of the cumulative residuals, and test calibration.

    \[ \max_t C(t) - \min_t C(t), \qquad C(t) = \frac1n \sum_{i : p_i \le t} (p_i - y_i), \]

    including the initial value 0. This is the largest absolute bias over any interval of
    predictions, times the share of rows in the interval.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or Reliability
        Labels in [0, 1]. A table built without groups may be passed as the only argument instead.
        The statistic is then below that of the rows by at most twice the bound of `ecce_mad`.
    y_prob : array-like of shape (n_samples,), optional
        Predicted probabilities in [0, 1]; required with labels.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.
    n_votes : int or array-like of shape (n_samples,), optional
        The number of votes behind each label, as in `reliability`.

    Returns
    -------
    CumulativeTest
        The statistic and its p-value, as in `ecce_mad`.

    Examples
    --------
    >>> test = ecce_range([0.0, 0.5, 1.0], [0.2, 0.4, 0.7])
    >>> round(test.statistic, 4), round(test.pvalue, 2)
    (0.1333, 1.0)
    """
    walk, *spread = _walk("ecce_range", y_true, y_prob, sample_weight, n_votes)
    return _tested(float(walk.max() - walk.min()), _chance_of_range, *spread)


def _walk(
    name: str,
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None,
    sample_weight: npt.ArrayLike | None,
    n_votes: npt.ArrayLike | None,
) -> tuple[FloatArray, float, float, float]:
    """Return the cumulative residuals, from 0, and what their distribution depends on.

    These are the scale, the scale with rounding, and the factor of `possible_share`.
    """
    found = rows_or_table(name, y_true, y_prob, sample_weight=sample_weight, n_votes=n_votes)
    if isinstance(found, Reliability):
        return _walk_over(found)
    sums = bin_sums(found, Bins.uniform(1))
    if sums is None:
        refuse(found)
    pools = distinct(found)
    certain = (pools.prob == 0) | (pools.prob == 1)
    return _cumulative(pools.residual, float(pools.residual_var[certain].sum()), sums)


def _walk_over(rel: Reliability) -> tuple[FloatArray, float, float, float]:
    refuse_no_rows(rel)
    if rel.ties is not None:
        message = (
            "the test assumes independent rows, and this table was built with "
            f"{'groups' if rel.raters is None else 'raters'}. Check instead "
            "whether smece_interval contains 0."
        )
        raise InputError(message)
    s = rel.sums
    return _cumulative(s.residual, float(s.residual_var[s.prob_var <= 0].sum()), s)


def _cumulative(
    residual: FloatArray, contradiction: float, s: Sums
) -> tuple[FloatArray, float, float, float]:
    total, n = float(s.weight.sum()), int(s.count.sum())
    walk = np.append(0.0, residual.cumsum()) / total
    scale = math.sqrt(_variance(s)) / total
    noise = math.hypot(scale, _ROUNDING / math.sqrt(n))
    return walk, scale, noise, possible_share(contradiction * (n / total) ** 2)


def _variance(s: Sums) -> float:
    """Return the variance of the sum of all residuals: from the labels, or their known noise."""
    lines = (
        s.prob_var, s.residual_var, s.vote_floor, s.outcome_prob_var,
        s.outcome_residual_var, s.label_var, s.weight_sq, s.weight,
    )  # fmt: skip
    most, squares, floor, expected, seen, unsure, weight_sq, weight = (
        float(line.sum()) for line in lines
    )
    unsure *= weight_sq / weight
    soft = max(squares - seen, 0.0)
    if unsure > 0 and expected > _TINY:
        fewer = most - squares - unsure - (expected - seen)
        worth = int(s.count.sum()) / weight_sq
        outcomes = 1 - unanimous_votes(expected, seen, fewer, soft, worth)
        expected, seen = outcomes * expected, outcomes * seen
        soft = max(squares - seen, 0.0)
    soft *= skewed(soft, max(most - expected, 0.0), unsure)
    return max(expected, seen) + max(soft, floor)


def possible_share(contradiction: float) -> float:
    r"""Return the factor of a p-value due to predictions of exactly 0 and 1: 0 if contradicted.

    If a calibrated model predicts 0, the labels have mean 0, so each of them is 0, even if labels
    are soft. `contradiction` is \(\sum (p - y)^2\) over such rows. A value up to 1e-12 may be
    rounding; from 0 to 1e-12 the factor decreases from 1 to 0.
    """
    return min(max(1 - contradiction / _SLACK, 0.0), 1.0)


def _tested(
    statistic: float,
    chance_of: Callable[[float], float],
    scale: float,
    noise: float,
    possible: float,
) -> CumulativeTest:
    return CumulativeTest(statistic, scale, chance_of(statistic / noise) * possible)


def _chance_of_greatest(x: float) -> float:
    r"""Compute P(max |B| > x) for a Brownian motion B on [0, 1].

    \[ 4 \sum_{k \ge 0} (-1)^k \Phi(-(2k + 1) x)
       = 1 - \frac4\pi \sum_{k \ge 0} \frac{(-1)^k}{2k + 1} e^{-(2k + 1)^2 \pi^2 / 8 x^2} \]
    """
    if x < _CERTAIN:
        return 1.0
    odd, sign = 2 * _TERMS + 1, (-1.0) ** _TERMS
    if x > _SWITCH:
        chance = 4 * float((sign * ndtr(-odd * x)).sum())
    else:
        chance = 1 - 4 / np.pi * float((sign / odd * np.exp(-((odd * np.pi / x) ** 2) / 8)).sum())
    return min(max(chance, 0.0), 1.0)


def _chance_of_range(x: float) -> float:
    r"""Compute P(max B - min B > x) for a Brownian motion B on [0, 1].

    Feller, The asymptotic distribution of the range of sums of independent random variables, Ann.
    Math. Statist. 22, 1951, has the density \(8 \sum_{k \ge 1} (-1)^{k-1} k^2 \varphi(kx)\).
    Direct integration, and integration after Poisson's summation formula, give

    \[ 8 \sum_{k \ge 1} (-1)^{k-1} k\, \Phi(-kx) = 1 - 8 \sum_{k \ge 0}
       \Bigl( \frac1{x^2} + \frac1{(2k + 1)^2 \pi^2} \Bigr) e^{-(2k + 1)^2 \pi^2 / 2 x^2} \]
    """
    if x < _CERTAIN:
        return 1.0
    if x > _SWITCH:
        k = _TERMS + 1
        chance = 8 * float(((-1.0) ** _TERMS * k * ndtr(-k * x)).sum())
    else:
        c = ((2 * _TERMS + 1) * np.pi) ** 2
        chance = 1 - 8 * float(((1 / x**2 + 1 / c) * np.exp(-c / (2 * x**2))).sum())
    return min(max(chance, 0.0), 1.0)
