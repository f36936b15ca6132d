"""Intervals for the gap of each bin, and the band of gaps that chance explains."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from softcal import _display
from softcal._validation.inputs import FloatArray
from softcal._validation.rules import refuse_bad_level
from softcal.inference.intervals import Gaps, kept, noise_floor
from softcal.inference.tests import calibrated_variance
from softcal.table.reliability import Reliability, refuse_no_rows, table_of

if TYPE_CHECKING:
    from softcal.bins import BinsLike


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
        first, left_out, last = _display.ends(rows)
        between = [[f"... {left_out} more", "", ""]] if left_out else []
        title = f"limits of the gap in {self.low.size} bins"
        return title, ["bin", "low", "high"], [*first, *between, *last]


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

    \(\mathrm{gap}_b \pm t \sqrt{V_b}/W_b\), with t a quantile of Student's distribution. V comes
    from the bin's own residuals, and is at least the known noise of votes or 0/1 labels.

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
    (array([-0.05]), array([0.45]))
    """
    refuse_bad_level(level)
    rel = table_of(
        "gap_intervals", y_true, y_prob, bins=bins, sample_weight=sample_weight,
        n_votes=n_votes, groups=groups, raters=raters,
    )  # fmt: skip
    s = rel.sums
    parts = Gaps.of(s, rel.ties)
    own = s.residual_var if rel.ties is None else rel.ties.residual.diagonal()
    size = parts.size
    degrees = np.maximum(size - 1, 1)
    if parts.raters is not None:
        degrees = np.minimum(degrees, parts.raters.degrees)
    tail = (1 - level) / 2 / (max(1, int((s.count > 0).sum())) if simultaneous else 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        centered = kept(own - parts.weight_sq * (s.residual / s.weight) ** 2, own)
        spread = np.maximum(centered, noise_floor(s)) * size / (size - 1)
        half = -stdtrit(degrees, tail) * np.sqrt(spread) / s.weight
    # One row gives no information, and two rows count in full. Weights may put a bin in between.
    second = np.clip(size - 1, 0.0, 1.0)
    half = second * np.where(second > 0, np.minimum(half, 2.0), 2.0) + (1 - second) * 2.0
    gap = rel.gap
    return GapIntervals(np.maximum(gap - half, -1.0), np.minimum(gap + half, 1.0))


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

    Unlike `gap_intervals`, which are centered at the observed gap, the band is centered at 0. It is
    \(\pm z \sqrt{V_b}/W_b\) with the variance of the test. For 0/1 labels, that is
    \(\sum w^2 p(1 - p)\); for soft labels, it comes from the residuals of the bin and of the table.

    With groups, V is the larger of that variance and the sum over groups of \((\sum w d)^2\) in the
    bin. The sum includes the gap itself, so gaps of a miscalibrated model widen the band. With
    raters, V is likewise the variance over new items and new raters, and z is a quantile of
    Student's distribution.

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
    >>> low, high = consistency_band(hard)  # 1.96 * sqrt(0.3 * 0.7 / 100)
    >>> low.round(2), high.round(2), hard.gap.round(2)
    (array([-0.09]), array([0.09]), array([-0.2]))
    """
    refuse_bad_level(level)
    rel = table_of(
        "consistency_band", y_true, y_prob, bins=bins, sample_weight=sample_weight,
        n_votes=n_votes, groups=groups, raters=raters,
    )  # fmt: skip
    refuse_no_rows(rel)
    s = rel.sums
    variance = calibrated_variance(s, s)
    ties = rel.ties
    if ties is not None:  # if every p is 0 or 1, a calibrated model has no gap
        own = np.where(s.prob_var > 0, ties.residual.diagonal(), 0.0)
        variance = np.maximum(variance, own)
    filled = int((s.count > 0).sum())
    tail = (1 - level) / 2 / (filled if simultaneous else 1)
    z = -ndtri(tail) if ties is None or ties.raters is None else ties.raters.reach(tail)
    half = z * np.sqrt(variance) / np.where(s.count > 0, s.weight, np.nan)
    return GapIntervals(-half, half)
