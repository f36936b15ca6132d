"""`softcal watch`: calibration by day, with an alarm that is valid although checked every day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from softcal import terminal
from softcal._validation.days import Every, refuse_bad_format
from softcal.cli.describe import BOUNDS, CLASSES, RATERS, Described, describes
from softcal.cli.options import (
    DEFAULT_LEVEL,
    Figure,
    Format,
    Level,
    MaybeBins,
    Output,
    Page,
    RowsOrTables,
    asks,
    notes,
    print_card,
)
from softcal.cli.tables import as_asked, load_tables, saved_files, with_names
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from softcal.table.tableset import TableSet

DayFormat = Annotated[
    str | None,
    asks(
        "Format of dates that are not ISO dates, as in Python's strptime: %m/%d/%Y.",
        "FORMAT",
        rare=True,
    ),
]
MaybeEvery = Annotated[
    Every | None,
    asks(
        "Group dates by day, week (from Monday), or month. Default: day; each file if saved. "
        "Days with few rows are shown by week.",
        "|".join(Every),
        rare=True,
    ),
]


@describes(without=(*RATERS, *BOUNDS, *CLASSES))
def watch(
    data: RowsOrTables,
    day: Annotated[str | None, asks("Column of dates, if DATA are rows.", "COL")] = None,
    day_format: DayFormat = None,
    every: MaybeEvery = None,
    tolerance: Annotated[float, asks("Largest gap to accept.", "T")] = 0.02,
    level: Level = DEFAULT_LEVEL,
    max_weight: Annotated[
        float | None, asks("Upper bound of a row's weight.", "W", rare=True)
    ] = None,
    bins: MaybeBins = None,
    output: Page = None,
    plot: Figure = None,
    format_: Output = Format.TABLE,
    *,
    how: Described,
) -> None:
    """Watch calibration over days, and give an alarm.

    By default, the chance of any false alarm is at most 5%. DATA are saved tables of one day each,
    or rows with a column of dates (--day). The exit code is 0 without an alarm, 1 with an alarm,
    and 2 after an error.

    Example: softcal watch data.csv --label y --pred p --day date
    """
    from softcal.cards.watch import WatchCard
    from softcal.inference.sequential import Watch

    days = days_of(data, how, bins, day=day, day_format=day_format, every=every)
    most = max_weight if max_weight is not None else heaviest_group(days)
    watching = Watch(tolerance=tolerance, level=level, by=how.by or (), max_weight=most)
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


def heaviest_group(days: list[tuple[str, TableSet]]) -> float | None:
    """Return the largest weight of a group in a day; None without groups."""
    ties = (tables[model].ties for _, tables in days for model in tables)
    return max((each.sums.heaviest for each in ties if each and each.sums), default=None)


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
    from softcal.scanning.daily import Part, in_time
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
        parts = [Part(str(text), part, part.n) for text, part in found.items()]
        found_days = days if saved else Days(day)  # those of rows are parsed
        return in_time(found_days, parts, every, Every.DAY)
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
            Part(tables.about.date or path.name.removesuffix(path.suffix), tables, 1, path)
        )
    days = Days("the date of a saved table, or else its name,", format=day_format)
    return in_time(days, parts, every)
