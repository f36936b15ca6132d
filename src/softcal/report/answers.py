"""The answer on each model: where it is off, what to do next, and its calibration line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from softcal._display import counted
from softcal.exceptions import InputError
from softcal.inference.summary import calibration_summary
from softcal.report.verdict import points
from softcal.table.tableset import TOP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcal.inference.summary import Estimate
    from softcal.report.costs import Sources
    from softcal.report.verdict import BinGap, Part, State, Verdict
    from softcal.table.tableset import TableSet

_CALIBRATED: dict[State, str] = {
    "miscalibrated": "no", "in part": "not in every part", "borderline": "unclear",
    "undetected": "no error shown", "undecided": "not known yet",
}  # fmt: skip


class Answer(NamedTuple):
    """What a reader asks first about a model."""

    calibrated: str
    where: list[str]
    command: str  # empty if there is nothing to do


class Line(NamedTuple):
    """The logistic calibration line of a model, and how to read it."""

    slope: Estimate
    intercept: Estimate
    reading: str


def answer_of(
    tables: TableSet,
    found: Verdict,
    parts: Sequence[Part],
    command: str,
    tolerance: float,
    error: str,
) -> Answer:
    """Return the answer on a model; `command` recalibrates it."""
    return Answer(
        _CALIBRATED[found.state],
        _where(found, parts, error),
        _next_command(tables, found, parts, command, tolerance),
    )


def _where(found: Verdict, parts: Sequence[Part], error: str) -> list[str]:
    """Name the worst bin, and the worst part that is worse than all rows; both are sure."""
    worse = [each for each in parts if each.low > found.interval.high or found.state == "in part"]
    out = [_bin_text(found.bins[0])] if found.bins else []
    if worse:
        part = max(worse, key=lambda each: each.low)
        kind = "" if part.kind == "segment" else f"{part.kind} "
        limits = f"{points(part.low)} to {points(part.high)} points"
        out.append(f"In {kind}{part.name}, {error} is {limits}.")
    return out or ["No bin or part of the rows is off for sure."]


def _bin_text(bin_: BinGap) -> str:
    low, high = sorted(map(abs, (bin_.mean.low, bin_.mean.high)))
    return (
        f"Predictions of {bin_.left:.4g} to {bin_.right:.4g} are {points(abs(bin_.mean.gap))} points "
        f"too {'high' if bin_.mean.gap > 0 else 'low'} ({points(low)} to {points(high)}), in "
        f"{counted(bin_.mean.rows, 'row')}."
    )


def _next_command(
    tables: TableSet, found: Verdict, parts: Sequence[Part], command: str, tolerance: float
) -> str:
    """Return the command of the next step: recalibrate, audit segments, or plan more labels."""
    if found.state == "miscalibrated":
        return command
    start = command.rpartition(" -o ")[0]
    of_rows = tables.targets[0] != TOP and tables.about.group is None
    if found.state == "in part":
        columns = dict.fromkeys(p.name.partition(" = ")[0] for p in parts if p.kind == "segment")
        if not (columns and of_rows):
            return "" if columns else command
        return f"{_verb(start, 'audit')} {' '.join(f'--by {column}' for column in columns)}"
    if found.interval.high <= tolerance or not (tolerance and of_rows and not tables.about.weight):
        return ""
    return f"{_verb(start, 'plan')} --half-width {tolerance:.4g}"


def _verb(command: str, verb: str) -> str:
    return command.replace("softcal recalibrate", f"softcal {verb}", 1)


def calibration_lines(source: Sources | None, level: float) -> dict[str, Line | str]:
    """Return the calibration line of each model, or why it has none."""
    return {} if source is None else {
        model: _line(data, level) for model, data in source.of_lines.items()
    }  # fmt: skip


def _line(data: dict[str, Any], level: float) -> Line | str:
    try:
        found = calibration_summary(**data, level=level)
        slope, intercept = found.slope, found.calibration_in_the_large
    except InputError as error:
        return str(error)
    readings = (
        (slope.high < 1, "Predictions are too extreme."),
        (slope.low > 1, "Predictions are not extreme enough."),
        (intercept.low > 0, "Predictions are too low on average."),
        (intercept.high < 0, "Predictions are too high on average."),
    )
    said = " ".join(text for holds, text in readings if holds)
    return Line(slope, intercept, said or "Slope 1 and intercept 0 are within the intervals.")
