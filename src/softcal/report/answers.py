"""What a reader asks first about a model: where it is off, and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softcal._display import quoted
from softcal.exceptions import InputError
from softcal.inference.summary import calibration_summary
from softcal.planning.forecast import FEWEST_ITEMS
from softcal.table.tableset import TOP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcal.cards.parts import Off
    from softcal.cards.verdict import Verdict
    from softcal.inference.summary import CalibrationSummary
    from softcal.table.tableset import TableSet


def worst_part(found: Verdict, parts: Sequence[Off]) -> Off | None:
    """Return the part with the largest error that is sure, if that is above the error of all rows.

    `parts` are segments, classes, and thresholds whose simultaneous intervals exclude 0.
    """
    worse = [each for each in parts if each.low > found.interval.high or found.state == "in part"]
    return max(worse, key=lambda each: each.low, default=None)


def next_command(
    tables: TableSet, found: Verdict, parts: Sequence[Off], command: str, tolerance: float
) -> str:
    """Return the command of the next step; empty if there is none.

    `command` recalibrates the model. The others audit segments that are off, or plan more labels.
    """
    segments = [part.column for part in parts if part.kind == "segment"]
    if found.state == "miscalibrated" or (found.state == "in part" and not segments):
        return command
    about, start = tables.about, command.rpartition(" -o ")[0]
    if tables.targets[0] == TOP or about.rater is not None:
        return ""  # which these commands do not take
    if found.state == "in part":
        columns = " ".join(f"--by {quoted(name)}" for name in dict.fromkeys(segments))
        return f"{start} {columns}".replace("recalibrate", "audit", 1)
    certain = found.interval.high <= tolerance
    dependent = about.weight is not None or about.group is not None  # which `plan` does not take
    if certain or not tolerance or dependent or tables.n < FEWEST_ITEMS:
        return ""
    if about.votes is not None:  # the option has another meaning there
        start = start.replace(f" --votes {quoted(about.votes)}", "", 1)
    return f"{start} --half-width {tolerance:.4g}".replace("recalibrate", "plan", 1)


def line_of(tables: TableSet, model: str, level: float) -> CalibrationSummary | str | None:
    """Return the summary that has the calibration line of a model, or why there is none.

    Return None for one row, which has no interval.
    """
    if tables.n < 2:
        return None
    try:
        found = calibration_summary(tables.coarsen(tables.grid)[model], level=level)
    except InputError as error:
        return str(error)
    return found.note or found
