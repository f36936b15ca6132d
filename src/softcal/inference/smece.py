"""SMECE with a confidence interval that agrees with the calibration test."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from softcal import _display
from softcal._validation.rules import refuse_bad_level
from softcal.inference.intervals import (
    ROUNDING,
    Events,
    few_groups,
    few_raters,
    recurring,
    table_limits,
)
from softcal.inference.tests import calibration_test
from softcal.table.owners import Groups
from softcal.table.reliability import Reliability, table_of
from softcal.votes import Votes

if TYPE_CHECKING:
    import numpy.typing as npt

    from softcal.bins import BinsLike

ABOVE_ITS_INTERVAL = (
    "The error is above its interval, because noise increases it if bins have few rows. The "
    "interval is for the error on unlimited data. Use fewer bins."
)


def is_above(value: float, high: float) -> bool:
    """Return whether SMECE lies above its interval by more than rounding."""
    return value > high + 1e-9


_LEAST_SHARE = 0.1  # of SMECE: the lower limit if only the test excludes 0
_TINY = 1e-300  # so that the logarithm of a p-value of 0 is not needed
_ENOUGH_EVENTS = 10  # with fewer, intervals of skewed soft labels may lose coverage


@dataclass(frozen=True, repr=False)
class Interval(_display.Printed):
    """SMECE with its confidence interval.

    Attributes
    ----------
    value : float
        SMECE as the paper defines it. Noise increases SMECE, so it is above 0 even for a perfect
        model.
    debiased : float
        SMECE corrected for most of that bias; 0 if the bias is larger than SMECE.
    low, high : float
        The confidence interval.
    level : float
        The coverage of the interval: how often it contains the SMECE of unlimited data.
    pvalue : float
        The p-value of `calibration_test`. The interval excludes 0 exactly if it is below 1 - level.
    note : str
        A caution, or empty.
    rater_share : float or None
        The share of the width that comes from the raters: 1 - w/W, with W the width, and w the
        width of the interval for new items with the same raters. None without `raters`. The lower
        limits of both widths do not use the test.
    """

    value: float
    debiased: float
    low: float
    high: float
    level: float
    pvalue: float
    note: str
    rater_share: float | None = None

    def __repr__(self) -> str:
        return f"Interval({self.value:.4g}, low={self.low:.4g}, high={self.high:.4g})"

    def _shown(self) -> _display.Shown:
        line = (
            f"SMECE {self.value:.4f}, {_display.percent(self.level)} interval {self.low:.4f} to "
            f"{self.high:.4f}, debiased {self.debiased:.4f}"
        )
        return "\n".join(filter(None, (line, self.about_raters, self.note))), [], []

    @property
    def about_raters(self) -> str:
        """A sentence on the raters' share of the width; empty without `raters`."""
        if self.rater_share is None:
            return ""
        return (
            "The interval is for new items and new raters; the raters account for "
            f"{self.rater_share:.0%} of its width."
        )


def smece_interval(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    bins: BinsLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    raters: bool = False,
    level: float = 0.95,
) -> Interval:
    """Compute SMECE with its confidence interval, without resampling.

    Labels of 0 and 1 are recognized. For vote shares, pass `n_votes`; without it, intervals of bins
    with few events are too narrow. Rows are assumed to be independent, unless `groups` or `raters`
    is given.

    The interval excludes 0 exactly if `calibration_test` rejects at the level 1 - `level`.

    Parameters
    ----------
    y_true : array-like or Reliability
        Labels as in `reliability`; or a table, with no other argument than `level`.
    y_prob, sample_weight, n_votes, groups, raters
        As in `reliability`.
    bins : int, Bins, or edges, default=10
        Bins chosen before seeing the labels, as in `reliability`.
    level : float, default=0.95
        The level of the interval, between 0 and 1.

    Returns
    -------
    Interval
        If there is only one row or group, the interval is from 0 to 1, with a note.

    Examples
    --------
    >>> from softcal.datasets import lidc_malignancy
    >>> d = lidc_malignancy()
    >>> print(smece_interval(d["soft_malignant"], d["prob_rf_all"], n_votes=d["n_readers"]))
    SMECE 0.0952, 95% interval 0.0812 to 0.1063, debiased 0.0938
    """
    rel = table_of(
        "smece_interval", y_true, y_prob, bins=bins, sample_weight=sample_weight,
        n_votes=n_votes, groups=groups, raters=raters,
    )  # fmt: skip
    refuse_bad_level(level)
    value = rel.smece  # raises if the table is empty
    pvalue = calibration_test(rel).pvalue
    kind, independent = ("row", rel.n) if rel.clusters is None else ("group", rel.clusters.count)
    if isinstance(rel.groups, Groups) and rel.groups.share_places:  # their number is not known
        kind, independent = "row", rel.n
    if rel.raters is not None and rel.raters.count < 2:
        kind, independent = "rater", 1
    if independent < 2:
        note = f"One {kind} does not show how much {kind}s vary."
        return Interval(value, value, 0.0, 1.0, level, pvalue, note)
    less_noise, untested, high, events = table_limits(rel, rel.ties, level)
    low = min(agreeing_low(untested, value, pvalue, 1 - level), high)
    note = _note(value, high, kind, independent, events, few_groups(rel))
    share = None if rel.raters is None else 0.0
    if rel.raters is None and isinstance(y_true, Votes):
        note = " ".join(filter(None, (note, recurring(y_true))))
    elif rel.raters is not None and rel.ties is not None:  # some raters have several votes
        _, items_low, items_high, _ = table_limits(rel, None, level)
        share = max(0.0, 1 - (items_high - items_low) / (high - untested))
        note = few_raters(rel) or note
    return Interval(value, less_noise, low, high, level, pvalue, note, share)


def agreeing_low(low: float, value: float, pvalue: float, alpha: float) -> float:
    """Return the lower limit, above 0 exactly if the test rejects.

    The limit changes continuously: it falls to 0 if the p-value rises to alpha. If the test
    rejects, the limit is at least a share of SMECE, at most a tenth, even if `low` is 0.
    """
    if pvalue >= alpha:
        return 0.0
    rejected = pvalue / alpha
    if rejected > _TINY:
        low = min(low, -value * math.log(rejected))
    return max(low, _LEAST_SHARE * (1 - rejected) * value)


def _note(
    value: float, high: float, kind: str, independent: int, events: Events, groups: str
) -> str:
    if is_above(value, high):
        return ABOVE_ITS_INTERVAL
    if groups:
        return groups
    few = not events.hard and events.number < _ENOUGH_EVENTS
    if few and events.known:
        return (
            f"Predictions near 0 or 1 lead to about {events.number:.2g} expected events among the "
            "0/1 labels and votes; the interval is wide to allow for chance in so few."
        )
    if few and events.residual_var > ROUNDING:
        return (
            f"With predictions this near 0 or 1, 0/1 labels would show about {events.number:.2g} "
            "events; if the soft labels are as skewed, the interval may be too narrow. Pass "
            "n_votes if the labels are vote shares."
        )
    unseen = min(3 / independent, 1.0)
    if high - value < unseen:
        return (
            f"A kind of {kind} too rare to be among these {independent} could add up to "
            f"{unseen:.2g} (rule of three)."
        )
    return ""
