"""Tables of one day each, in the order of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from softcal._validation.days import ALIKE, NUMBERS, day_of
from softcal._validation.rules import Spread
from softcal.exceptions import InputError
from softcal.scanning.days import rule_of
from softcal.scanning.texts import plain_word

if TYPE_CHECKING:
    from pathlib import Path

    from softcal._validation.days import Day, Every
    from softcal.scanning.data import Days
    from softcal.table.tableset import TableSet


class Part(NamedTuple):
    """Tables of one day: its text, how many values have it, and its file if it has one."""

    text: str
    tables: TableSet
    values: int
    path: Path | None = None


def in_time(
    days: Days, parts: list[Part], every: Every | None, default: Every | None = None
) -> list[tuple[str, TableSet]]:
    """Return the tables of each day in the order of time; raise if a day is not clear."""
    moments = [day_of(plain_word(part.text), days.format) for part in parts]
    unclear = [part for part, moment in zip(parts, moments, strict=True) if moment is None]
    if unclear:
        text, _, _, path = unclear[0]
        first = f", the first is {text!r:.60}" + ("" if path is None else f" of {path}")
        counts = sum(part.values for part in unclear), sum(part.values for part in parts)
        spread = Spread(0, 0, signs=False)
        raise InputError(rule_of(days).message(days.column, *counts, first, spread))
    clear = [moment for moment in moments if moment is not None]
    _refuse_other_kinds(days.column, parts, clear, every)
    unit = every or default
    files: dict[Day, Path] = {}
    grouped: dict[Day, TableSet] = {}
    for part, moment in zip(parts, clear, strict=True):
        if part.path is not None and files.setdefault(moment, part.path) is not part.path:
            message = (
                f"{files[moment]} and {part.path} are both of {moment.label()}: merge files of the "
                "same day with `softcal merge` first."
            )
            raise InputError(message)
        start = moment if unit is None else moment.begin(unit)
        grouped[start] = grouped[start] + part.tables if start in grouped else part.tables
    return [(day.label(unit), grouped[day]) for day in sorted(grouped)]


def _refuse_other_kinds(
    column: str, parts: list[Part], moments: list[Day], every: Every | None
) -> None:
    """Raise if days have no order, or cannot be grouped."""
    counts: dict[str, int] = {}
    first: dict[str, str] = {}
    for part, moment in zip(parts, moments, strict=True):
        counts[moment.kind] = counts.get(moment.kind, 0) + part.values
        first.setdefault(moment.kind, moment.label())
    if len(counts) > 1:
        each = [
            f"{counts[kind]:,} are {kind}, the first {first[kind]!r}" for kind in sorted(counts)
        ]
        message = f"{column} must be {ALIKE}: {'; '.join(each)}. Write them alike."
        raise InputError(message)
    if every is not None and NUMBERS in counts:
        message = (
            f"--every groups dates, but {column} has numbers, the first {first[NUMBERS]!r}: leave "
            "--every out, or state the format of dates with --day-format."
        )
        raise InputError(message)
