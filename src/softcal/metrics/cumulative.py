r"""Cumulative calibration errors: no bins, no bandwidth, and a p-value.

Arrieta-Ibarra, Gujral, Tannen, Tygert, and Xu, Metrics of calibration for probabilistic
predictions, JMLR 23, 2022. Residuals are added up in the order of the predictions. For a calibrated
model the cumulative sum behaves like a Brownian motion, whose largest excursion and range have
known distributions. The variance is estimated from the residuals, because the p(1 - p) of the paper
is valid for labels of 0 and 1 only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from softcal import _display
from softcal.exceptions import InputError
from softcal.table.distinct import distinct
from softcal.table.reliability import Reliability, refuse_no_rows, rows_or_table

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from softcal._validation.inputs import FloatArray

_TERMS = np.arange(12)  # of each series; the next term is below 1e-16 where it is used
_CERTAIN = 1e-3  # below this the probability rounds to 1, and 1/x^2 may overflow
_ROUNDING = 1e-9  # residuals below this are treated as 0
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
) -> CumulativeTest:
    r"""Compute ECCE-MAD, the largest absolute cumulative residual, and test calibration.

    \[ \max_t |C(t)|, \qquad C(t) = \frac1n \sum_{i : p_i \le t} (p_i - y_i), \qquad
       \mathrm{scale} = \frac1n \sqrt{\textstyle\sum_i (p_i - y_i)^2} \]

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

    Returns
    -------
    CumulativeTest
        The statistic and its p-value. A small p-value is evidence of miscalibration. The test
        assumes many independent rows. With few distinct predictions it is conservative.

    Examples
    --------
    >>> test = ecce_mad([0.0, 0.5, 1.0], [0.2, 0.4, 0.7])
    >>> round(test.statistic, 4), round(test.pvalue, 2)
    (0.0667, 0.98)
    >>> from softcal import reliability
    >>> rel = reliability([0.0, 0.5, 1.0], [0.2, 0.4, 0.7], bins=100)
    >>> round(ecce_mad(rel).statistic, 4)
    0.0667
    """
    return _tested(
        _greatest, _chance_of_greatest, *_walk("ecce_mad", y_true, y_prob, sample_weight)
    )


def ecce_range(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    sample_weight: npt.ArrayLike | None = None,
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

    Returns
    -------
    CumulativeTest
        The statistic and its p-value, as in `ecce_mad`.

    Examples
    --------
    >>> test = ecce_range([0.0, 0.5, 1.0], [0.2, 0.4, 0.7])
    >>> round(test.statistic, 4), round(test.pvalue, 2)
    (0.1333, 0.9)
    """
    return _tested(_range, _chance_of_range, *_walk("ecce_range", y_true, y_prob, sample_weight))


def _walk(
    name: str,
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None,
    sample_weight: npt.ArrayLike | None,
) -> tuple[FloatArray, float, float, float]:
    """Return the cumulative residuals, from 0, and what their distribution depends on.

    These are the scale, the scale with rounding, and the factor of `possible_share`.
    """
    found = rows_or_table(name, y_true, y_prob, sample_weight=sample_weight)
    if isinstance(found, Reliability):
        return _walk_over(found)
    pools = distinct(found)
    certain = (pools.prob == 0) | (pools.prob == 1)
    return _cumulative(pools.residual, pools.residual_var, pools.weight, pools.rows, certain)


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
    return _cumulative(s.residual, s.residual_var, s.weight, s.count, s.prob_var <= 0)


def _cumulative(
    residual: FloatArray,
    variance: FloatArray,
    weight: FloatArray,
    rows: npt.NDArray[np.int64],
    certain: npt.NDArray[np.bool_],
) -> tuple[FloatArray, float, float, float]:
    total = float(weight.sum())
    walk = np.append(0.0, residual.cumsum()) / total
    n = int(rows.sum())
    scale = math.sqrt(float(variance.sum())) / total
    noise = math.hypot(scale, _ROUNDING / math.sqrt(n))
    possible = possible_share(float((variance[certain] * (n / total) ** 2).sum()))
    return walk, scale, noise, possible


def possible_share(contradiction: float) -> float:
    r"""Return the factor of a p-value due to predictions of exactly 0 and 1: 0 if contradicted.

    If a calibrated model predicts 0, the labels have mean 0, so each of them is 0, even if labels
    are soft. `contradiction` is \(\sum (p - y)^2\) over such rows. A value up to 1e-12 may be
    rounding; from 0 to 1e-12 the factor decreases from 1 to 0.
    """
    return min(max(1 - contradiction / _SLACK, 0.0), 1.0)


def _tested(
    statistic_of: Callable[[FloatArray], float],
    chance_of: Callable[[float], float],
    walk: FloatArray,
    scale: float,
    noise: float,
    possible: float,
) -> CumulativeTest:
    statistic = statistic_of(walk)
    return CumulativeTest(statistic, scale, chance_of(statistic / noise) * possible)


def _greatest(walk: FloatArray) -> float:
    return float(np.abs(walk).max())


def _range(walk: FloatArray) -> float:
    return float(walk.max() - walk.min())


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
