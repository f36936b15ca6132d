"""How sure is it? Intervals from the sums of the table alone, no resampling.

Everything works on the sums of one table or of many at once: the last axis is the bin. What is
assumed, the formulas and the evidence are in docs/uncertainty.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from softcal.errors import InputError, InputTypeError
from softcal.inference.folded import mean_abs
from softcal.inference.gaps import Gaps, kept, noise_floor
from softcal.table.reliability import Reliability, refuse_no_table

if TYPE_CHECKING:
    from softcal.door.inputs import FloatArray
    from softcal.table.clusters import Clusters
    from softcal.table.kernel import Sums

ABOVE_ITS_INTERVAL = (
    "Where bins hold few rows, noise pushes SMECE up, here above its own interval, which is for "
    "the SMECE of unlimited data: use fewer bins."
)


def is_above(value: float, high: float) -> bool:
    """Whether SMECE lies above its interval by more than rounding, and needs the words for it."""
    return value > high + 1e-9


_ENOUGH_GROUPS = 50  # from which on intervals with groups were simulated


@dataclass(frozen=True)
class Interval:
    """SMECE with what the data allow it to be.

    Attributes
    ----------
    value : float
        SMECE as the paper defines it. Noise pushes it up: it is above 0 even for a perfect model.
    debiased : float
        SMECE less most of that push, and 0 where the push is larger than SMECE.
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
        From 0 to 1, with a note that says so, where the table has one row or one group only.

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
    refuse_no_table(rel, "smece_interval")
    refuse_bad_level(level)
    value = rel.smece  # refuses an empty table
    kind, independent = ("row", rel.n) if rel.clusters is None else ("group", rel.clusters.count)
    if independent < 2:
        note = f"One {kind} says nothing about the others."
        return Interval(value, value, 0.0, 1.0, level, note)
    less_noise, low, high = (float(x) for x in interval_limits(rel.sums, level, rel.clusters))
    return Interval(value, less_noise, low, high, level, _note(value, high, kind, independent))


def _note(value: float, high: float, kind: str, independent: int) -> str:
    if is_above(value, high):
        return ABOVE_ITS_INTERVAL
    if kind == "group" and independent < _ENOUGH_GROUPS:
        return (
            f"The interval rests on {independent} groups; with fewer than {_ENOUGH_GROUPS} it may "
            "be too narrow."
        )
    unseen = min(3 / independent, 1.0)
    if high - value < unseen:
        return (
            f"A kind of {kind} too rare to be among these {independent} could add up to "
            f"{unseen:.2g} (rule of three)."
        )
    return ""


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
    parts = Gaps.of(s, rel.clusters)
    own = s.residual_var if rel.clusters is None else rel.clusters.residual.diagonal()
    size = parts.size
    tail = (1 - level) / 2 / (max(1, int((s.count > 0).sum())) if simultaneous else 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        centred = kept(own - parts.weight_sq * (s.residual / s.weight) ** 2, own)
        spread = np.maximum(centred, noise_floor(s)) * size / (size - 1)
        half = -stdtrit(np.maximum(size - 1, 1), tail) * np.sqrt(spread) / s.weight
    # Of one row anything may be true; two count in full, and weights may put a bin between.
    second = np.clip(size - 1, 0.0, 1.0)
    half = second * np.where(second > 0, np.minimum(half, 2.0), 2.0) + (1 - second) * 2.0
    gap = rel.gap
    return GapIntervals(np.maximum(gap - half, -1.0), np.minimum(gap + half, 1.0))


def interval_limits(
    sums: Sums, level: float, clusters: Clusters | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Give the debiased value and both limits, for tables along any leading axes."""
    gaps = Gaps.of(sums, clusters)
    alpha = 1 - level
    low, high = _lower_limit(gaps, alpha), _upper_limit(gaps, alpha)
    # Labels that equal their predictions have no spread to go by; yet a kind of row that was
    # missed in all of these may make up this share of the rest (the rule of three).
    high = np.maximum(high, np.minimum(-np.log(alpha / 2) / gaps.rows, 1.0))
    if clusters is None:
        high = np.maximum(high, _most_of_few_events(sums, alpha))
    return _less_noise(gaps), low, high


def _most_of_few_events(sums: Sums, alpha: float) -> FloatArray:
    r"""Give the SMECE that surprises among 0/1 labels leave possible; 0 where labels are soft.

    Of predictions near 0 and 1 few labels contradict, by chance none, and no spread is seen. With
    \(k = \sum (p - y)^2\) surprises where \(E = \sum p(1 - p)\) are expected, up to \(u\) may be
    true, Poisson's upper limit by Wilson and Hilferty: an error of \((u - E)/n\).
    """
    total = sums.weight.sum(axis=-1)
    unit = sums.weight_sq.sum(axis=-1) / total  # the weight of a row
    surprises, expected = (
        values.sum(axis=-1) / unit**2 for values in (sums.residual_var, sums.prob_var)
    )
    k = surprises + 1
    most = k * (1 - 1 / (9 * k) - ndtri(alpha / 2) / (3 * np.sqrt(k))) ** 3
    hard = ~sums.label_var.any(axis=-1)
    return np.where(hard, np.clip((most - expected) * unit / total, 0.0, 1.0), 0.0)


def debiased(rel: Reliability) -> float:
    """Give SMECE less most of what noise adds to it."""
    return float(_less_noise(Gaps.of(rel.sums, rel.clusters)))


def _less_noise(gaps: Gaps) -> FloatArray:
    t, error = gaps.in_errors()
    out: FloatArray = (error * (2 * np.abs(t) - mean_abs(t))).sum(axis=-1)
    return np.maximum(out, 0.0)


def _lower_limit(gaps: Gaps, alpha: float) -> FloatArray:
    """Take the best lower limit of several coarsenings: joining bins cannot raise SMECE."""
    n_bins = gaps.residual.shape[-1]
    coarser = [k for k in ((5, 2) if n_bins > 10 else (2,)) if n_bins > 2]
    tails = {n_bins: 0.8 * alpha / 2 if coarser else alpha / 2}
    tails |= {k: 0.2 * alpha / 2 / len(coarser) for k in coarser}
    best = np.zeros_like(gaps.total)
    for k, tail in tails.items():
        # group j holds the bins with floor(b k / B) = j
        part = gaps if k == n_bins else gaps.joined(-(-np.arange(k) * n_bins // k))
        estimate, reach = part.cautious(-float(ndtri(tail)), 1 + 1 / np.maximum(2 * part.size, 1))
        best = np.maximum(best, estimate - reach)
    return best


def _upper_limit(gaps: Gaps, alpha: float) -> FloatArray:
    estimate, reach = gaps.generous(-float(ndtri(alpha / 2)))
    return np.minimum(estimate + reach, 1.0)


def refuse_bad_level(level: float) -> None:
    """Refuse a level that is no probability."""
    if not isinstance(level, Real):
        message = f"level must be a number between 0 and 1: got {level!r:.60}."
        raise InputTypeError(message)
    if not 0 < level < 1:
        message = f"level must be between 0 and 1, for instance 0.95: got {level!r}."
        raise InputError(message)
