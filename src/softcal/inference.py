"""How sure is it? Intervals from the sums of the table alone, no resampling.

Everything works on the sums of one table or of many at once: the last axis is the bin. What is
assumed, the formulas and the evidence are in docs/uncertainty.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from softcal.clusters import Clusters, joined_square
from softcal.errors import InputError
from softcal.folded import (
    MEAN_AT_0,
    cautious_abs,
    highest_plausible,
    inverse_mean_abs,
    mean_abs,
    soft_sign,
)

if TYPE_CHECKING:
    from softcal.inputs import FloatArray
    from softcal.kernel import Sums
    from softcal.reliability import Reliability

# Constants of the method, set by simulation; docs/uncertainty.md says how.
_SHARPNESS = 0.8  # of the cautious absolute value in the lower limit
_FAR = 3.0  # standard errors from which a bin's gap cannot be folded at 0
_ENOUGH_ROWS = 5  # from which a bin's own variance is believed


@dataclass(frozen=True)
class Interval:
    """SMECE with what the data allow it to be.

    Attributes
    ----------
    value : float
        SMECE as the paper defines it. Noise pushes it up: it is above 0 even for a perfect model.
    debiased : float
        The same with most of that push taken off.
    low, high : float
        The confidence interval.
    level : float
        How often such an interval contains the SMECE of unlimited data.
    note : str
        A caution where there is one, else empty.
    """

    value: float
    debiased: float
    low: float
    high: float
    level: float
    note: str


class GapIntervals(NamedTuple):
    """Per bin, where its gap may lie; NaN where the bin is empty."""

    low: FloatArray
    high: FloatArray


def smece_interval(rel: Reliability, level: float = 0.95) -> Interval:
    """Give SMECE with its confidence interval, from the table alone.

    Labels of 0 and 1 are recognised; for shares of votes, build the table with `n_votes=`, or
    bins with few events look surer than they are. Rows are taken as independent.

    Parameters
    ----------
    rel : Reliability
        The table, on the bins that were fixed beforehand.
    level : float
        Between 0 and 1.

    Returns
    -------
    Interval

    Examples
    --------
    >>> from softcal import reliability
    >>> from softcal.datasets import lidc_malignancy
    >>> d = lidc_malignancy()
    >>> rel = reliability(d["soft_malignant"], d["prob_rf_all"], n_votes=d["n_readers"])
    >>> found = smece_interval(rel)
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.095, 0.081, 0.106)
    """
    refuse_bad_level(level)
    value = rel.smece  # refuses an empty table
    if rel.n < 2:
        return Interval(value, value, 0.0, 1.0, level, "One row says nothing about the others.")
    less_noise, low, high = (float(x) for x in interval_limits(rel.sums, level, rel.clusters))
    independent = rel.n if rel.clusters is None else rel.clusters.count
    unseen = 3 / independent
    note = ""
    if high - value < unseen:
        note = (
            f"A kind of row too rare to be among these {independent} could add up to {unseen:.2g} "
            "(rule of three)."
        )
    return Interval(value, less_noise, low, high, level, note)


def gap_intervals(
    rel: Reliability, level: float = 0.95, *, simultaneous: bool = False
) -> GapIntervals:
    r"""Give a confidence interval for the gap of each bin.

    \(\mathrm{gap}_b \pm t \sqrt{V_b}/W_b\), with V from the bin's own residuals, t of Student's
    distribution, and not below the noise the votes, or 0/1 labels, are known to have.

    Parameters
    ----------
    simultaneous : bool
        Whether all intervals together should hold at this level (Bonferroni's correction), as
        when the worst-looking bin is picked from a diagram, rather than each for itself.

    Examples
    --------
    >>> from softcal import reliability
    >>> low, high = gap_intervals(reliability([0.4, 0.6, 0.5], [0.7, 0.8, 0.6], bins=1))
    >>> low.round(2), high.round(2)
    (array([-0.05]), array([0.45]))
    """
    refuse_bad_level(level)
    s = rel.sums
    parts = _Gaps.of(s, rel.clusters)
    own = s.residual_var if rel.clusters is None else rel.clusters.residual.diagonal()
    size = parts.size
    tail = (1 - level) / 2 / (max(1, int((s.count > 0).sum())) if simultaneous else 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        centred = own - parts.weight_sq * (s.residual / s.weight) ** 2
        spread = np.maximum(centred, noise_floor(s)) * size / (size - 1)
        half = -stdtrit(np.maximum(size - 1, 1), tail) * np.sqrt(np.maximum(spread, 0)) / s.weight
    half = np.where(size > 1 + 1e-9, half, 2.0)  # of one row anything may be true
    gap = rel.gap
    return GapIntervals(np.maximum(gap - half, -1.0), np.minimum(gap + half, 1.0))


def interval_limits(
    sums: Sums, level: float, clusters: Clusters | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Give the debiased value and both limits, for tables along any leading axes."""
    gaps = _Gaps.of(sums, clusters)
    t, error = gaps.in_errors()
    less_noise = (error * (2 * np.abs(t) - mean_abs(t))).sum(axis=-1)
    alpha = 1 - level
    low, high = _lower_limit(gaps, alpha), _upper_limit(gaps, alpha)
    # Labels that all equal their predictions have no spread to go by; yet a kind of row that was
    # missed in all of these may make up this share of the rest (the rule of three).
    unseen = np.minimum(-np.log(alpha / 2) / gaps.rows, 1.0)
    high = np.where(gaps.variance.any(axis=-1), high, unseen)
    return np.maximum(less_noise, 0.0), low, high


class _Gaps(NamedTuple):
    """What the limits are made of. Squares are None where rows are independent."""

    residual: FloatArray
    variance: FloatArray  # of each residual
    square: FloatArray | None  # their covariances, with that variance in the diagonal
    weight: FloatArray
    weight_sq: FloatArray
    weight_square: FloatArray | None

    @staticmethod
    def of(sums: Sums, clusters: Clusters | None) -> _Gaps:
        own, weight_sq, square = sums.residual_var, sums.weight_sq, None
        if clusters is not None:
            own, weight_sq = clusters.residual.diagonal(), clusters.weight.diagonal()
        variance = np.maximum(own, noise_floor(sums))
        if clusters is not None:
            square = clusters.residual + np.diag(variance - own)
        return _Gaps(
            sums.residual, variance, square, sums.weight, weight_sq,
            None if clusters is None else clusters.weight,
        )  # fmt: skip

    def joined(self, starts: npt.NDArray[np.intp]) -> _Gaps:
        def along(values: FloatArray) -> FloatArray:
            out: FloatArray = np.add.reduceat(values, starts, axis=-1)
            return out

        if self.square is None or self.weight_square is None:
            return _Gaps(
                along(self.residual), along(self.variance), None, along(self.weight),
                along(self.weight_sq), None,
            )  # fmt: skip
        square = joined_square(self.square, starts)
        weight_square = joined_square(self.weight_square, starts)
        return _Gaps(
            along(self.residual), np.maximum(square.diagonal(), 0.0), square, along(self.weight),
            weight_square.diagonal(), weight_square,
        )  # fmt: skip

    @property
    def total(self) -> FloatArray:
        total: FloatArray = self.weight.sum(axis=-1)
        return total

    @property
    def rows(self) -> FloatArray:
        """The effective number of rows (Kish's), or of groups."""
        if self.weight_square is not None:
            return np.asarray(self.total**2 / self.weight_square.sum())
        out: FloatArray = self.total**2 / self.weight_sq.sum(axis=-1)
        return out

    @property
    def size(self) -> FloatArray:
        """The same of each bin."""
        out: FloatArray = self.weight**2 / np.maximum(self.weight_sq, 1e-300)
        return out

    def in_errors(self, inflation: FloatArray | float = 1.0) -> tuple[FloatArray, FloatArray]:
        """Give each bin's part of SMECE in standard errors, and the standard errors."""
        total = self.total[..., None]
        error = np.sqrt(self.variance * inflation) / total
        gap = self.residual / total
        return np.divide(gap, error, out=np.zeros_like(gap), where=error > 0), error

    def spread(self, sign: FloatArray) -> FloatArray:
        """Variance of the signed sum of residuals, each bin's own in full."""
        own: FloatArray = self.variance.sum(axis=-1)
        if self.square is None:
            return own
        between = float(sign @ self.square @ sign) - (sign**2 * self.variance).sum()
        out: FloatArray = np.maximum(own + between, 0.0)
        return out


def _lower_limit(gaps: _Gaps, alpha: float) -> FloatArray:
    """Take the best lower limit of several coarsenings: joining bins cannot raise SMECE."""
    n_bins = gaps.residual.shape[-1]
    coarser = [k for k in ((5, 2) if n_bins > 10 else (2,)) if n_bins > 2]
    tails = {n_bins: 0.8 * alpha / 2 if coarser else alpha / 2}
    tails |= {k: 0.2 * alpha / 2 / len(coarser) for k in coarser}
    best = np.zeros_like(gaps.total)
    for k, tail in tails.items():
        # group j holds the bins with floor(b k / B) = j
        part = gaps.joined(-(-np.arange(k) * n_bins // k))
        t, error = part.in_errors(1 + 1 / np.maximum(2 * part.size, 1))
        estimate = (error * cautious_abs(t, _SHARPNESS)).sum(axis=-1)
        spread = part.spread(soft_sign(t, _SHARPNESS)) / gaps.total**2
        spread = np.maximum(spread - np.maximum(estimate, 0) ** 2 / gaps.rows, 0)
        best = np.maximum(best, estimate + ndtri(tail) * np.sqrt(spread))
    return best


def _upper_limit(gaps: _Gaps, alpha: float) -> FloatArray:
    """Unfold the bins near 0 as if all were alike, which is the least favourable case."""
    z = -ndtri(alpha / 2)
    t, error = gaps.in_errors()
    near = (np.abs(t) < _FAR) & (gaps.size >= _ENOUGH_ROWS)
    absolute = np.abs(gaps.residual) / gaps.total[..., None]
    near_error = np.where(near, error, 0.0).sum(axis=-1)
    near_gap = np.where(near, absolute, 0.0).sum(axis=-1)
    far_gap = np.where(near, 0.0, absolute).sum(axis=-1)
    near_square, far_square = _near_and_far(gaps, near, error)

    scale = np.where(near_error > 0, near_error, 1.0)
    seen = near_gap / scale
    floor = np.maximum(seen, MEAN_AT_0)  # a lucky draw must not make the limit 0
    width = z * np.sqrt(near_square) / scale
    most = np.where(near_error > 0, highest_plausible(floor, width), 0.0)
    middle = np.minimum(np.where(seen > MEAN_AT_0, inverse_mean_abs(seen), 0.0), most)
    middle = np.where(near_error > 0, middle, 0.0)
    far_variance = np.maximum(far_square - far_gap**2 / gaps.rows, 0.0)
    reach = np.sqrt(((most - middle) * near_error) ** 2 + z**2 * far_variance)
    out: FloatArray = np.minimum(middle * near_error + far_gap + reach, 1.0)
    return out


def _near_and_far(
    gaps: _Gaps, near: npt.NDArray[np.bool_], error: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Give the variance of the near bins' sum and of the far bins', where groups tie bins too."""
    if gaps.square is None:
        return (
            np.where(near, error**2, 0.0).sum(axis=-1),
            np.where(near, 0.0, error**2).sum(axis=-1),
        )
    total = float(gaps.total) ** 2
    # The sign of a near bin is unknown, so what it shares with others is taken at its worst.
    near_square = np.abs(gaps.square[np.ix_(near, near)]).sum() / total
    sign = np.where(near, 0.0, np.sign(gaps.residual))
    return np.asarray(near_square), np.asarray(max(float(sign @ gaps.square @ sign), 0.0) / total)


def noise_floor(sums: Sums) -> FloatArray:
    """Give the least variance the labels are known to have: that of votes, or of 0/1 outcomes."""
    hard = ~sums.label_var.any(axis=-1, keepdims=True)
    return np.where(hard, sums.prob_var, sums.vote_floor)


def debiased(sums: Sums) -> float:
    """Give SMECE of one table less most of what noise adds to it."""
    return float(interval_limits(sums, 0.5)[0])


def refuse_bad_level(level: float) -> None:
    """Refuse a level that is no probability."""
    if not 0 < level < 1:
        message = f"level must be between 0 and 1, for instance 0.95: got {level!r}."
        raise InputError(message)
