"""Intervals for the gap of each bin, and the band of gaps that chance explains."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import bdtrik, betaincinv, stdtrit

from softcal import _display
from softcal._validation.inputs import FloatArray
from softcal._validation.rules import refuse_bad_level
from softcal.inference.intervals import (
    Gaps,
    design_effect,
    kept,
    mean_prob,
    noise_floor,
    normal_reach,
    outcomes,
    several_groups,
)
from softcal.inference.tests import calibrated_variance
from softcal.table.owners import gaps_of
from softcal.table.reliability import Reliability, refuse_no_rows, table_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from softcal.bins import BinsLike
    from softcal.table.kernel import Sums
    from softcal.table.owners import Clusters

    _Distance = Callable[[FloatArray, FloatArray, float], FloatArray]
    _Limits = Callable[[Sums, float, Clusters | None], tuple[FloatArray, FloatArray]]


class GapIntervals(
    _display.Printed, NamedTuple("GapIntervals", [("low", FloatArray), ("high", FloatArray)])
):
    """The limits of the gap of each bin; NaN if the bin is empty."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"GapIntervals(bins={self.low.size})"

    def _shown(self) -> _display.Shown:
        rows = [
            [str(b), *("-" if np.isnan(x) else f"{x:+.4f}" for x in limits)]
            for b, limits in enumerate(zip(self.low, self.high, strict=True))
        ]
        title = f"limits of the gap in {self.low.size} bins"
        return title, ["bin", "low", "high"], _display.shortened(rows)


def gap_intervals(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    bins: BinsLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    raters: bool = False,
    level: float = 0.95,
    simultaneous: bool = False,
) -> GapIntervals:
    r"""Compute a confidence interval for the gap of each bin.

    For n 0/1 labels with k events and the mean prediction \(\bar p\), the limits are \(\bar p\)
    minus the exact limits of a proportion (Clopper and Pearson):

    \[ \bar p - B^{-1}_{1 - \alpha/2}(k + 1,\, n - k) , \qquad
       \bar p - B^{-1}_{\alpha/2}(k,\, n - k + 1) \]

    Votes and soft labels have a share \(\varphi\) of the variance of 0/1 labels, which the
    residuals show. Their limits are those of a proportion with the same variance and skewness. As
    far as the residuals determine the variance, Student's quantile replaces the normal one. See
    docs/interval_method.md.

    Parameters
    ----------
    y_true, y_prob, bins, sample_weight, n_votes, groups, raters, level
        As in `smece_interval`.
    simultaneous : bool, default=False
        Whether the level holds for all intervals simultaneously (Bonferroni's correction), rather
        than for each separately. Use it to select the worst bin of a diagram.

    Returns
    -------
    GapIntervals
        `low` and `high`, one value per bin.

    Examples
    --------
    >>> low, high = gap_intervals([0.4, 0.6, 0.5], [0.7, 0.8, 0.6], bins=1)
    >>> low.round(2), high.round(2)
    (array([-0.09]), array([0.49]))
    """
    refuse_bad_level(level)
    rel = table_of(
        "gap_intervals", y_true, y_prob, bins=bins, sample_weight=sample_weight,
        n_votes=n_votes, groups=groups, raters=raters,
    )  # fmt: skip
    return _of_bins(gap_limits, rel, level, simultaneous)


def _of_bins(limits: _Limits, rel: Reliability, level: float, together: bool) -> GapIntervals:  # noqa: FBT001
    """Return limits of each bin; `together`, the level holds for all bins (Bonferroni)."""
    bins = max(1, int((rel.count > 0).sum())) if together else 1
    return GapIntervals(*limits(rel.sums, (1 - level) / 2 / bins, rel.ties))


def gap_limits(
    s: Sums, tail: float, clusters: Clusters | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the limits of each bin's gap, for tables along any leading axes; one with groups."""
    if clusters is not None and clusters.raters is None:
        low, high = gap_limits(s, tail)  # of independent rows
        if clusters.count == s.count.sum():
            return low, high
        gap, half = gaps_of(s), _half_of_groups(s, clusters, tail)
        return np.clip(gap - half, -1.0, low), np.clip(gap + half, high, 1.0)
    parts, z = Gaps.of(s, clusters), max(normal_reach(tail), 1e-9)
    n, weight = parts.size, np.where(s.weight > 0, s.weight, np.nan)
    gap, label = s.residual / weight, np.clip(s.label / weight, 0.0, 1.0)
    spread = label * (1 - label)
    labels = _Labels.of(s, parts.weight_sq)
    own = s.residual_var if clusters is None else clusters.residual.diagonal()
    with np.errstate(divide="ignore", invalid="ignore"):
        # With weights, the first difference may be 0 by chance. The second cannot.
        rows = s.weight_sq * (s.residual_sq / weight - gap**2)
        centered = kept(np.maximum(own - parts.weight_sq * gap**2, rows), own)
        variance = centered / weight**2 * n / (n - 1)
        events = np.fmax(spread**2 / variance, 0.0)  # 0 / 0 shows no event
        unseen = np.exp(-events / z**2) + (z * labels.event) ** 2
        share = (n**2 * variance + unseen) / (n * spread + unseen)
        share = np.clip(share, labels.known, 1.0)
        unknown = np.where(share > labels.known, 1 - labels.known / share, 0.0)
        degrees = np.maximum(n - 1, 1.0)
        if parts.raters is not None:
            degrees = np.minimum(degrees, parts.raters.degrees)
        t, t_rows = (-stdtrit(np.minimum(x, 1e9), tail) for x in (degrees / unknown**2, degrees))
        predictions = t_rows * np.sqrt(kept(variance - spread / (n - 1), variance))
        up, down = (
            np.hypot(t / z * labels.farther(_to_limit, x, n, share, tail), predictions)
            for x in (1 - label, label)
        )
        # One row gives no information, and two rows count in full. Weights may put a bin between.
        second = np.clip(n - 1, 0.0, 1.0)
        low, high = (
            np.where(second > 0, second * np.clip(x, -1, 1), 0 * gap)
            for x in (gap - np.fmin(up, 2.0), gap + np.fmin(down, 2.0))  # NaN if n is barely 1
        )
    return low - (1 - second), high + (1 - second)


def _half_of_groups(s: Sums, clusters: Clusters, tail: float) -> FloatArray:
    """Return half the width of the interval of each bin's gap over groups; 2 if it is unknown.

    A bin of one group has the variance of independent rows times the design effect of the other
    bins: the ratio of their variances over groups and over rows.
    """
    weight = np.where(s.weight > 0, s.weight, 1.0)
    gap = s.residual / weight
    variance, degrees = clusters.of_gaps(gap, weight)
    rows = weight**2 / np.maximum(s.weight_sq, 1e-300)
    alone = kept(s.residual_var - s.weight_sq * gap**2, s.residual_var)
    corrected = rows / np.maximum(rows - 1, 1e-9)
    alone = np.maximum(alone, noise_floor(s)) * corrected
    several = several_groups(weight**2 / np.maximum(clusters.weight.diagonal(), 1e-300))
    ratio = design_effect(several * variance, several * alone)
    mixed = several * variance + (1 - several) * ratio * alone
    mixed = np.maximum(mixed, noise_floor(s) * corrected)
    degrees = several * degrees + (1 - several) * clusters.covariance(s)[1]
    half = -stdtrit(degrees, tail) * np.sqrt(mixed) / weight
    known = several.max()  # without a bin of two groups, nothing shows how groups vary
    half = known * np.minimum(half, 2.0) + (1 - known) * 2.0
    return np.where(s.weight > 0, half, np.nan)


class _Labels(NamedTuple):
    """What is known of the noise of each bin's labels, as shares of that of 0/1 labels."""

    known: FloatArray  # the variance that labels have at least
    outcomes: FloatArray  # the part of it from outcomes
    event: FloatArray  # `known` as a share of p(1 - p) of each row, not of the bin's mean p

    @staticmethod
    def of(s: Sums, weight_sq: FloatArray) -> _Labels:
        """Return the shares for bins whose rows, or groups, have this sum of squared weights."""
        prob = mean_prob(s)
        floor, most = noise_floor(s), weight_sq * prob * (1 - prob)
        parts = (floor, most), (outcomes(s)[0], most), (floor, s.prob_var)
        return _Labels(*(np.minimum(_share(s, part, whole), 1.0) for part, whole in parts))

    def farther(
        self, distance: _Distance, mean: FloatArray, n: FloatArray, share: FloatArray, tail: float
    ) -> FloatArray:
        r"""Return a distance of the mean of n labels, given that of a proportion.

        Labels with a share \(\varphi\) of the variance of outcomes consist of events of size u, so
        their mean moves like \(\varphi/u\) times a proportion of \(\varphi n/u^2\) trials. By the
        third cumulant, u is 1 for outcomes and \(2\varphi/(1 + \varphi)\) for Beta labels. The
        distance toward fewer events is longest if u is as small as \(\varphi\).
        """
        outcomes = np.minimum(self.outcomes, share)
        soft = share - outcomes
        of_soft = soft / np.maximum(1 - outcomes, soft)
        third = outcomes + np.where(soft > 0, soft * 2 * of_soft / (1 + of_soft), 0.0)
        units = (np.fmax(u, 1e-6) for u in (third / share, share))  # trials stay finite
        first, second = (share / u * distance(mean, n * share / u**2, tail) for u in units)
        return np.where(share > 0, np.fmax(first, second), 0 * share)


def _share(s: Sums, part: FloatArray, whole: FloatArray) -> FloatArray:
    """Return part / whole; 1 for 0/1 labels if p is 0 or 1, except for rounding."""
    tiny = np.maximum(1e-9 * s.weight_sq, 1e-300)
    out: FloatArray = (part + tiny * ~s.label_var.any(axis=-1, keepdims=True)) / (whole + tiny)
    return out


def _to_limit(mean: FloatArray, trials: FloatArray, tail: float) -> FloatArray:
    """Return the distance of a proportion to its lower limit (Clopper and Pearson)."""
    k = trials * mean
    low = np.where(k > 0, betaincinv(np.maximum(k, 1e-300), trials - k + 1, tail), 0.0)
    return np.maximum(mean - low, 0.0)


def _to_quantile(mean: FloatArray, trials: FloatArray, tail: float) -> FloatArray:
    """Return how far above its mean a proportion lies with this probability.

    An event that is less probable is not included. A proportion of 1 is.
    """
    trials = np.maximum(trials, 1e-3)  # fewer occur only if labels hardly vary
    quantile = bdtrik(1 - tail, trials, np.maximum(mean, 1e-12))
    count = np.minimum(trials * mean / tail, 1.0) * (quantile + 1)
    above = np.minimum(count / trials - mean, 1 - mean + 1e-12)  # rounding
    return np.where(mean * (1 - mean) > 0, above, 0 * mean)


def consistency_band(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    bins: BinsLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    raters: bool = False,
    level: float = 0.95,
    simultaneous: bool = False,
) -> GapIntervals:
    r"""Compute the range of each bin's gap that chance explains if the model is calibrated.

    Unlike `gap_intervals`, which surround the observed gap, the band surrounds 0. Its limits are
    quantiles of the binomial distribution, scaled to the variance V of the test. For 0/1 labels, V
    is \(\sum w^2 p(1 - p)\); for soft labels, it comes from the residuals of the bin and the table.

    With groups, V is the larger of that variance and the variance over groups. With raters, V is
    likewise the variance over new items and new raters, and the band is wider by the ratio of
    Student's quantile to the normal one.

    Parameters
    ----------
    y_true, y_prob, bins, sample_weight, n_votes, groups, raters
        As in `smece_interval`.
    level : float, default=0.95
        The probability that the gap of a calibrated model lies within the band.
    simultaneous : bool, default=False
        Whether the level holds for all bins simultaneously (Bonferroni's correction), rather than
        for each separately.

    Returns
    -------
    GapIntervals
        Limits of the gap; NaN if the bin is empty. Limits of the mean label are `rel.mean_prob -
        high` and `rel.mean_prob - low`.

    Examples
    --------
    >>> from softcal import reliability
    >>> hard = reliability([0, 1] * 50, [0.3] * 100, bins=1)
    >>> low, high = consistency_band(hard)
    >>> low.round(2), high.round(2), hard.gap.round(2)
    (array([-0.1]), array([0.09]), array([-0.2]))
    """
    refuse_bad_level(level)
    rel = table_of(
        "consistency_band", y_true, y_prob, bins=bins, sample_weight=sample_weight,
        n_votes=n_votes, groups=groups, raters=raters,
    )  # fmt: skip
    refuse_no_rows(rel)
    return _of_bins(band_limits, rel, level, simultaneous)


def band_limits(
    s: Sums, tail: float, clusters: Clusters | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the limits of the consistency band of one table."""
    variance, parts = calibrated_variance(s, s), Gaps.of(s, clusters)
    if clusters is not None:
        own = clusters.residual.diagonal()
        if clusters.raters is None:
            own, _ = clusters.of_gaps(gaps_of(s), np.where(s.weight > 0, s.weight, 1.0))
        # If every p is 0 or 1, a calibrated model has no gap.
        variance = np.maximum(variance, np.where(s.prob_var > 0, own, 0.0))
    wider = 1.0 if parts.raters is None else parts.raters.reach(tail) / normal_reach(tail)
    prob = (s.label + s.residual) / np.where(s.weight > 0, s.weight, np.nan)
    most = parts.weight_sq * prob * (1 - prob)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = _share(s, variance, most)
        more = wider * np.sqrt(np.maximum(share, 1.0))
        labels, share = _Labels.of(s, parts.weight_sq), np.minimum(share, 1.0)
        up, down = (
            more * labels.farther(_to_quantile, x, parts.size, share, tail)
            for x in (prob, 1 - prob)
        )
    return -up, down
