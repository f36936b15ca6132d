"""`softcal watch`: calibration by day, with an alarm that is valid although checked every day."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from softcal import terminal
from softcal._validation.days import ALIKE, NUMBERS, Every, refuse_bad_format
from softcal.cli.describe import BOUNDS, CLASSES, RATERS, Described, describes
from softcal.cli.options import (
    DEFAULT_LEVEL,
    Figure,
    Format,
    Level,
    MaybeBins,
    Output,
    RowsOrTables,
    column_option,
    notes,
    print_card,
)
from softcal.cli.tables import as_asked, load_tables, saved_files, with_names
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from softcal._validation.days import Day
    from softcal.scanning.data import Days
    from softcal.table.tableset import TableSet

DayFormat = Annotated[
    str | None,
    typer.Option(
        hidden=True,
        help="Format of dates that are not ISO dates, as in Python's strptime: %m/%d/%Y.",
        metavar="FORMAT",
    ),
]
MaybeEvery = Annotated[
    Every | None,
    typer.Option(
        hidden=True,
        help="Group dates by day, week (from Monday), or month. Default: day; each file if saved. "
        "Days with few rows are shown by week.",
        metavar="|".join(Every),
    ),
]


@describes(without=("group", *RATERS, *BOUNDS, *CLASSES))
def watch(
    data: RowsOrTables,
    day: Annotated[
        str | None, column_option("Column of dates, if one file has several days.")
    ] = None,
    day_format: DayFormat = None,
    every: MaybeEvery = None,
    tolerance: Annotated[
        float,
        typer.Option(help="Largest gap between prediction and mean label to accept.", metavar="T"),
    ] = 0.02,
    level: Level = DEFAULT_LEVEL,
    max_weight: Annotated[
        float | None, typer.Option(hidden=True, help="Upper bound of a row's weight.", metavar="W")
    ] = None,
    bins: MaybeBins = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write an HTML page to this file.", metavar="HTML"),
    ] = None,
    plot: Figure = None,
    format_: Output = Format.TABLE,
    *,
    how: Described,
) -> None:
    """Watch calibration over days; by default, the chance of any false alarm is at most 5%.

    DATA are saved tables of one day each, or rows with a column of dates (--day). The exit code is
    0 without an alarm, 1 with an alarm, and 2 after an error.

    Example: softcal watch data.csv --label y --pred p --day date
    """
    from softcal.cards.watch import WatchCard
    from softcal.inference.sequential import Watch

    if plot is not None:
        from softcal.plot.sheet import refuse_format

        refuse_format(plot)
    watching = Watch(tolerance=tolerance, level=level, by=how.by or (), max_weight=max_weight)
    days = days_of(data, how, bins, day=day, day_format=day_format, every=every)
    states = []
    with terminal.progress("Watching", len(days)) as move:
        for date, tables in days:
            states.append(watching.update(tables, date=date))
            move(1)
    if plot is not None:
        from softcal.plot import draw_watch
        from softcal.plot.sheet import save_figure

        save_figure(
            draw_watch(states, tolerance=tolerance, level=level, by_week=every is None), plot
        )
    if output is not None:
        from softcal.report.watch import write_watch_page

        write_watch_page(
            output, states, tolerance=tolerance, level=level, notes=notes(), by_week=every is None
        )
    print_card(WatchCard.of(states, tolerance, level, every), format_)
    raise typer.Exit(int(states[-1].alarm))


def days_of(
    data: list[str],
    how: Described,
    bins: int | None,
    *,
    day: str | None,
    day_format: str | None,
    every: Every | None,
) -> list[tuple[str, TableSet]]:
    """Return the tables of each day, in the order of time."""
    from softcal.scanning.data import Days
    from softcal.scanning.files import files_of

    if day_format is not None:
        refuse_bad_format(day_format)
    saved = saved_files(data)
    if day is not None:
        days = Days(day, every or Every.DAY, day_format)
        own = tuple(how.by or ())
        with_day = how._replace(by=[*own, day])
        tables = load_tables(data, with_day, bins=bins, by=(*own, days))
        found = tables.by(day)
        if None in found:  # only in saved tables
            message = (
                f"{day} must have no missing values: {found[None].n:,} of {tables.n:,} rows have "
                "none. Scan the rows again without them."
            )
            raise InputError(message)
        parts = [_Part(str(text), part, part.n) for text, part in found.items()]
        found_days = days if saved else Days(day)  # those of rows are parsed
        return _in_time(found_days, parts, every, Every.DAY)
    if not saved:
        files_of(data)  # raises if there is none
        message = "name the column of dates with --day COL, or pass one saved table per day."
        raise InputError(message)

    from softcal.table.files import load

    how.refuse_contradictions()
    parts = []
    for path in saved:
        tables = with_names(as_asked(load(path), how, bins), how.name)
        parts.append(
            _Part(tables.about.date or path.name.removesuffix(path.suffix), tables, 1, path)
        )
    days = Days("the date of a saved table, or else its name,", format=day_format)
    return _in_time(days, parts, every)


class _Part(NamedTuple):
    """Tables of one day: its text, how many values have it, and its file if it has one."""

    text: str
    tables: TableSet
    values: int
    path: Path | None = None


def _in_time(
    days: Days, parts: list[_Part], every: Every | None, default: Every | None = None
) -> list[tuple[str, TableSet]]:
    """Return the tables of each day in the order of time; raise if a day is not clear."""
    from softcal._validation.days import day_of
    from softcal._validation.rules import Spread
    from softcal.scanning.days import rule_of
    from softcal.scanning.texts import plain_word

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
    column: str, parts: list[_Part], moments: list[Day], every: Every | None
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
