"""The verdict on one model in plain words, and the recommended next step.

The severity compares the interval of SMECE with the tolerance. Every other claim rests on an
interval, too. A model is miscalibrated if the interval of SMECE and the calibration test agree. A
direction rests on the interval of a mean gap, a bin on that of its gap.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from softcal._display import counted, percent
from softcal.bins import Bins
from softcal.cards.card import limit
from softcal.inference.checks import amounts, amounts_text
from softcal.inference.gaps import gap_intervals
from softcal.inference.smece import smece_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcal.cards.parts import Off
    from softcal.inference.smece import Interval
    from softcal.table.reliability import Reliability

TOLERANCE = 0.02  # 2 percentage points
TOO_LARGE_TO_LEAVE_OPEN = 0.1  # 10 percentage points
_ENOUGH_TO_NAME_A_HALF = 0.005  # of the rows
_ENOUGH_FOR_BOTH_HALVES = 0.1  # of the rows, in each
_PARTS_NAMED = 3
_SPARE = 1.25  # of the width, so that advised rows are enough in 9 of 10 simulated cases

Severity = Literal[
    "none shown", "small", "material", "off, size unclear", "off in part", "undecided"
]
State = Literal["miscalibrated", "in part", "borderline", "undetected", "undecided"]


class Gap(NamedTuple):
    """The mean gap of a set of rows, with its interval."""

    rows: int
    share: float  # of all rows, by weight
    gap: float  # above 0 where predictions are too high
    low: float
    high: float

    @property
    def sign(self) -> int:
        """The sign that the interval establishes; 0 if the interval includes 0."""
        return int(self.low > 0) - int(self.high < 0)


class BinGap(NamedTuple):
    """A bin whose simultaneous interval excludes 0."""

    left: float
    right: float
    mean: Gap


class Verdict(NamedTuple):
    """The verdict on a model in words."""

    severity: Severity
    state: State
    headline: str
    size: str
    sentences: list[str]
    bins: list[BinGap]  # those that stand out, largest contribution to SMECE first
    next_step: str
    interval: Interval
    pvalue: float

    @property
    def title(self) -> str:
        """The severity and the headline, or the headline alone if it includes the severity."""
        if self.headline == self.severity or self.severity == "off in part":
            return self.headline
        return f"{self.severity}{':' if ',' in self.severity else ','} {self.headline}"


def verdict(
    fine: Reliability,
    hard: Reliability | None,
    bins: Bins,
    level: float,
    *,
    tolerance: float = TOLERANCE,
    top_label: bool = False,
    parts: Sequence[Off] = (),
    measure: str = "SMECE",
) -> Verdict:
    """Return the verdict on a model from its fine table; `hard` has hardened labels, if known.

    With `top_label`, a probability that is too high is overconfident on either side of 0.5. `parts`
    are the segments, classes, and thresholds that are off, whatever the rows as a whole show.
    `measure` is the name of the error in the texts.
    """
    soft = fine.coarsen(bins)
    interval = smece_interval(soft, level=level)
    size = f"{measure} {limit(interval.value)}, {percent(level)} interval {_range(interval)}"
    outstanding = _outstanding(soft, level)
    state = _state(interval, tolerance, bins_off=bool(outstanding))
    severity = severity_of(interval, tolerance, sure=state == "miscalibrated")
    undecided = state == "undecided"
    could_be = (
        f"{measure} could be as large as {limit(interval.high)} with {counted(soft.n, 'row')}."
    )
    if parts and state != "miscalibrated":
        state, headline = "in part", f"off in {_kinds_text(parts)}"
        severity = severity if severity == "small" else "off in part"
        sentences = [
            f"{_parts_text(parts, measure)} {measure} of all rows does not show it; {could_be}"
        ]
    elif undecided:
        headline = "undecided"
        sentences = [
            f"The interval is too wide for a verdict: {size}, with {counted(soft.n, 'row')}. It "
            f"includes both a calibrated model and one that is {100 * interval.high:.0f} "
            "percentage points off."
        ]
    elif state == "undetected":
        headline = "no miscalibration detected"
        sentences = [f"No miscalibration detected; {could_be}"]
    elif state == "borderline":
        headline = "borderline"
        sentences = [f"The interval of {measure} includes 0; {could_be}"]
    else:
        headline, sentences = _directions(fine, level, top_label=top_label)
    if not undecided:
        filled = int((soft.count > 0).sum())
        sentences.append(_bins_text(len(outstanding), filled, level, state, measure))
        if hard is not None and not soft.has_hard_labels:
            hardened = "the majority class" if top_label else "the labels hardened to yes or no"
            usual = smece_interval(hard.coarsen(bins), level=level)
            # Tables of hardened labels have no groups, so their intervals may be too narrow.
            comparable = soft.ties is None
            sentences.append(_against_hard(interval, usual, hardened, comparable=comparable))
    sentences += filter(None, (interval.about_raters, interval.note))
    return Verdict(
        severity, state, headline, size, sentences, [] if undecided else outstanding,
        _next_step(interval, soft, state, tolerance, parts, measure), interval, interval.pvalue,
    )  # fmt: skip


def _state(interval: Interval, tolerance: float, *, bins_off: bool) -> State:
    """Return the state from the interval of SMECE, which agrees with the test.

    With bins that stand out, a model is at least borderline.
    """
    if interval.low > 0:
        return "miscalibrated"
    if interval.high > max(tolerance, TOO_LARGE_TO_LEAVE_OPEN):
        return "undecided"
    return "borderline" if bins_off else "undetected"


def severity_of(interval: Interval, tolerance: float, *, sure: bool) -> Severity:
    """Return the severity: where the interval of SMECE lies relative to the tolerance.

    `sure` tells whether the model is miscalibrated, so that only the size may be open.

    >>> from softcal.inference.smece import smece_interval
    >>> from softcal.table.reliability import reliability
    >>> severity_of(smece_interval(reliability([0.5] * 500, [0.9] * 500)), 0.02, sure=True)
    'material'
    """
    if interval.low > tolerance:
        return "material"
    if interval.low > 0 and interval.high <= 2 * tolerance:
        return "small"
    if interval.low <= 0 and interval.high <= tolerance:
        return "none shown"
    return "off, size unclear" if sure else "undecided"


def _kinds_text(parts: Sequence[Off]) -> str:
    """Count segments, classes, and thresholds.

    >>> from softcal.cards.parts import Off
    >>> _kinds_text([Off("segment", "a = 1", 0.1, 0.2), Off("class", "cat", 0.1, 0.3)])
    '1 segment and 1 class'
    """
    kinds = Counter(part.kind for part in parts).items()
    plural = {"class": "classes"}
    return " and ".join(
        f"{n:,} {kind if n == 1 else plural.get(kind, f'{kind}s')}" for kind, n in kinds
    )


def _parts_text(parts: Sequence[Off], measure: str) -> str:
    """Name the parts with the largest error that is sure."""
    worst = sorted(parts, key=lambda part: -part.low)[:_PARTS_NAMED]
    more = f", and {len(parts) - len(worst):,} more" if len(parts) > len(worst) else ""
    verb = "has a simultaneous interval" if len(parts) == 1 else "have simultaneous intervals"
    names = ", ".join(part.name for part in worst)
    return f"{_kinds_text(parts)} {verb} of {measure} above 0: {names}{more}."


_SAID = {
    "overconfident": "overconfident, more certain than the labels",
    "underconfident": "underconfident, less certain than the labels",
    "miscalibrated": "miscalibrated, in no clear direction",
}
_WORDS = {1: "too high", -1: "too low"}
_WORDS_OF_THE_PREDICTED_CLASS = {1: "overconfident", -1: "underconfident"}


def _directions(fine: Reliability, level: float, *, top_label: bool) -> tuple[str, list[str]]:
    """Return the direction of the error, and sentences with the mean gaps that establish it."""
    words = _WORDS_OF_THE_PREDICTED_CLASS if top_label else _WORDS
    (overall,) = _gaps(fine.coarsen(1), level)
    middle = _middle(fine)
    halves = [
        (f"{side} {middle:.3g}", gap)
        for side, gap in zip(("below", "above"), _gaps(_halves(fine, middle), level), strict=True)
        if gap.share >= _ENOUGH_TO_NAME_A_HALF
    ]
    signs = [gap.sign for _, gap in halves if gap.share >= _ENOUGH_FOR_BOTH_HALVES]
    named = [f"{words[gap.sign]} {name}" for name, gap in halves if gap.sign]
    headline = "miscalibrated"
    if signs in ([-1, 1], [1, -1]) and not top_label:
        headline = "overconfident" if signs == [-1, 1] else "underconfident"
    elif overall.sign:
        headline = words[overall.sign]
    elif named:
        headline = " and ".join(named)
    return headline, [
        f"The predictions are {_SAID.get(headline, headline)}: over all rows the mean gap is "
        f"{_with_limits(overall)}.",
        " ".join(_half_text(name, gap) for name, gap in halves),
    ]


def _middle(fine: Reliability) -> float:
    """Return the edge nearest to 0.5, which divides the predictions into two halves."""
    edges = fine.bins.edges
    return float(edges[np.searchsorted(edges[:-1] + edges[1:], 1.0)])


def _halves(fine: Reliability, middle: float) -> Reliability:
    return fine.coarsen(Bins([0.0, middle, 1.0]))


def _gaps(rel: Reliability, level: float) -> list[Gap]:
    """Return the mean gap of each bin with simultaneous intervals; an empty bin has share 0."""
    low, high = gap_intervals(rel, level=level, simultaneous=True)
    columns = (rel.count, rel.sums.weight / rel.sums.weight.sum(), rel.gap, low, high)
    return [Gap(*values) for values in zip(*(c.tolist() for c in columns), strict=True)]


def _half_text(name: str, half: Gap) -> str:
    rows = f"Where the model predicts {name} ({_share(half.share)} of the rows),"
    if not half.sign:
        return f"{rows} the mean gap is {_with_limits(half)}: no clear direction."
    points = f"{abs(100 * half.gap):.1f} percentage points {_WORDS[half.sign]}"
    return f"{rows} it is {points} on average, {_with_limits(half)}."


def _share(share: float) -> str:
    """Return a share in percent, which is 0% or 100% only if it is exactly that.

    >>> _share(0.996), _share(1.0), _share(0.5), _share(0.004)
    ('more than 99%', '100%', '50%', 'less than 1%')
    """
    if 0 < share < 0.005:
        return "less than 1%"
    return "more than 99%" if 0.995 <= share < 1 else f"{share:.0%}"


def _with_limits(mean: Gap) -> str:
    return f"{signed(mean.gap)} ({signed_limit(mean.low)} to {signed_limit(mean.high)})"


def _outstanding(rel: Reliability, level: float) -> list[BinGap]:
    """Return the bins whose simultaneous intervals exclude 0, largest contribution first."""
    edges = rel.bins.edges.tolist()
    found = [
        BinGap(left, right, gap)
        for left, right, gap in zip(edges[:-1], edges[1:], _gaps(rel, level), strict=True)
        if gap.sign
    ]
    return sorted(found, key=lambda bin_: -abs(bin_.mean.share * bin_.mean.gap))


def _bins_text(outstanding: int, filled: int, level: float, state: State, measure: str) -> str:
    together = f"{percent(level)} intervals adjusted to hold for all bins simultaneously"
    if not outstanding:
        return f"No single bin stands out: all {together} include 0."
    few = outstanding == 1
    text = (
        f"{outstanding} of {filled} {'bin' if filled == 1 else 'bins'} "
        f"{'stands' if few else 'stand'} out, with {together}."
    )
    if state == "miscalibrated":
        return text
    return f"{text} {measure} as a whole does not confirm {'it' if few else 'them'}."


def _against_hard(soft: Interval, hard: Interval, hardened: str, *, comparable: bool) -> str:
    """Contrast both errors; interpret the difference only if their intervals do not overlap."""
    against = f"Against {hardened}, the usual ECE is {limit(hard.value)}"
    if comparable and hard.high < soft.low:
        far = "no error"
        if hard.value > 0.0005:
            far = f"SMECE is {soft.value / hard.value:.1f} times as large"
        return f"{against}: {far}. Hardening the labels would hide the problem."
    if comparable and hard.low > soft.high:
        # A ratio to an error that is shown as 0 has no meaning.
        far = f": {hard.value / soft.value:.1f} times SMECE" if soft.value > 0.0005 else ""
        return (
            f"{against}{far}. Hardening the labels counts their uncertainty as an error of the "
            "model."
        )
    return f"{against}."


def _next_step(
    interval: Interval, rel: Reliability, state: State, matters: float, parts: Sequence[Off],
    measure: str,
) -> str:  # fmt: skip
    large = [part for part in parts if part.low > matters >= interval.low]
    also = f" {measure} is above {matters} in {_kinds_text(large)}: see below." if large else ""
    if state == "in part":
        return f"Recalibrate where the error is, because one map for all rows may not help.{also}"
    if state == "miscalibrated":
        if large and interval.high <= matters:
            return f"Small over all rows, but not everywhere. Recalibrate where the error is.{also}"
        return _off_text(interval, matters) + also
    if not matters:  # every error matters, and no number of rows rules out all of them
        return "These rows give no reason to recalibrate; label more rows to be certain."
    if interval.high <= matters:
        most = limit(interval.high)
        return f"Use these probabilities: the interval excludes {measure} above {most}."
    if state == "borderline":
        return "Label more rows before you recalibrate."
    start = {
        "undecided": "Label more rows before you draw a conclusion",
        "undetected": "These rows give no reason to recalibrate; label more rows to be certain",
    }[state]
    enough = amounts_text(amounts(rel, (_SPARE * interval.high / matters) ** 2))
    return (
        f"{start}. If the model is calibrated, ruling out {measure} above {matters} takes roughly "
        f"{enough}."
    )


def _off_text(interval: Interval, matters: float) -> str:
    if interval.high <= matters:
        return (
            f"The error is real but small: at most {limit(interval.high)}. Recalibrate only if "
            "decisions depend on such small differences."
        )
    if interval.low <= matters:
        return (
            f"The error is real, but it may be small: {_range(interval)}. Recalibrate if an "
            f"error of {limit(interval.high)} would change decisions."
        )
    return "Recalibrate these probabilities before you use them."


def _range(interval: Interval) -> str:
    return f"{limit(interval.low)} to {limit(interval.high)}"


def points(value: float) -> str:
    """Write a share in percentage points, with more digits if it would be shown as 0 but is not.

    >>> points(0.0951), points(0.0003)
    ('9.5', '0.03')
    """
    return limit(100 * value, 1)


def signed(value: float, digits: int = 3) -> str:
    """Write a difference with its sign and a real minus.

    >>> signed(0.1234), signed(0.0)
    ('+0.123', '0.000')
    """
    return _with_sign(value, f"{abs(value):.{digits}f}")


def signed_limit(value: float, digits: int = 3) -> str:
    """Write the end of an interval of a difference, as `limit` does.

    >>> signed_limit(0.00031)
    '+0.0003'
    """
    return _with_sign(value, limit(abs(value), digits))


def _with_sign(value: float, shown: str) -> str:
    """Prepend the sign to a number as shown; 0 has none."""
    sign = "\N{MINUS SIGN}" if value < 0 else "+"
    return f"{sign}{shown}" if float(shown) else shown
