"""`softcal watch`: calibration by day, with an alarm that is valid although checked every day."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from softcal import terminal
from softcal._display import printable
from softcal.cli.options import (
    DEFAULT_LEVEL,
    By,
    Figure,
    Format,
    Level,
    MaybeBins,
    MaybeLabel,
    MaybePreds,
    Output,
    RowOptions,
    RowsOrTables,
    VoteColumns,
    Votes,
    Weight,
    chance,
    column_option,
    print_json,
    reads_rows,
)
from softcal.cli.tables import Columns, as_asked, load_tables, saved_files, with_names
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from softcal.inference.sequential import StreamState, WatchState
    from softcal.table.tableset import TableSet

_MOST_SEGMENTS = 10  # shown on the terminal, those with the most evidence


@reads_rows
def watch(
    data: RowsOrTables,
    label: MaybeLabel = None,
    pred: MaybePreds = None,
    day: Annotated[
        str | None, column_option("Column of dates, if one file has several days.")
    ] = None,
    by: By = None,
    weight: Weight = None,
    votes: Votes = None,
    vote_columns: VoteColumns = None,
    tolerance: Annotated[
        float,
        typer.Option(help="Largest gap between prediction and mean label to accept.", metavar="T"),
    ] = 0.02,
    level: Level = DEFAULT_LEVEL,
    max_weight: Annotated[
        float | None, typer.Option(help="Upper bound of a row's weight.", metavar="W")
    ] = None,
    bins: MaybeBins = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write an HTML page to this file.", metavar="HTML"),
    ] = None,
    plot: Figure = None,
    format_: Output = Format.TABLE,
    *,
    how: RowOptions,
) -> None:
    """Watch calibration over days; by default, the chance of any false alarm is at most 5%.

    DATA are saved tables of one day each, or rows with a column of dates (--day). The exit code is
    0 without an alarm, 1 with an alarm, and 2 after an error.
    """
    from softcal.inference.sequential import Watch

    if plot is not None:
        from softcal.plot import refuse_format

        refuse_format(plot)
    watching = Watch(tolerance=tolerance, level=level, by=by or (), max_weight=max_weight)
    columns = Columns(
        label, pred, weight, votes, tuple(by or ()), vote_columns=vote_columns, how=how
    )
    days = days_of(data, columns, day, bins)
    states = []
    with terminal.progress("Watching", len(days)) as move:
        for date, tables in days:
            states.append(watching.update(tables, date=date))
            move(1)
    if plot is not None:
        from softcal.plot import draw_watch, save_figure

        save_figure(draw_watch(states, tolerance=tolerance, level=level), plot)
    if output is not None:
        from softcal.report.watch import write_watch_page

        write_watch_page(output, states, tolerance=tolerance, level=level)
    if format_ is Format.JSON:
        print_json(_card(states, tolerance, level))
    else:
        _show(states, tolerance, level)
    raise typer.Exit(int(states[-1].alarm))


def days_of(
    data: list[str], columns: Columns, day: str | None, bins: int | None
) -> list[tuple[str, TableSet]]:
    """Return the tables of each day, in the order of the dates."""
    from softcal.sources.files import files_of

    saved = saved_files(data)
    if day is not None:
        with_day = columns._replace(by=(*columns.by, day))
        found = list(load_tables(data, with_day, bins=bins).by(day).items())
        if found[-1][0] is None:
            message = f"some rows have no value in {day!r}: every row needs a date."
            raise InputError(message)
        return sorted((str(date), tables) for date, tables in found)
    if not saved:
        files_of(data)  # raises if there is none
        message = "name the column of dates with --day COL, or pass one saved table per day."
        raise InputError(message)

    from softcal.table.files import load

    columns.refuse_contradictions()
    files: dict[str, Path] = {}
    days = []
    for path in saved:
        tables = with_names(as_asked(load(path), columns, bins), columns.how.name)
        date = tables.date or path.name.removesuffix(path.suffix)
        if date in files:
            message = (
                f"{files[date]} and {path} are both of {date}: merge files of the same day with "
                "`softcal merge` first."
            )
            raise InputError(message)
        files[date] = path
        days.append((date, tables))
    return sorted(days, key=lambda each: each[0])


def _card(states: list[WatchState], tolerance: float, level: float) -> dict[str, Any]:
    """Return the history as plain numbers, ready for JSON."""
    last = states[-1]
    return {
        "tolerance": tolerance,
        "level": level,
        "alarm": last.alarm,
        "alarm_date": last.alarm_date,
        "since": last.since,
        "direction": last.direction,
        "worst": _stream(last.worst),
        "days": [
            {
                "date": state.date,
                "n": state.n,
                "log_evidence": state.log_evidence,
                "pvalue": state.pvalue,
                "alarm": state.alarm,
                "streams": [_stream(stream) for stream in state.streams if stream.column is None],
            }
            for state in states
        ],
        "segments": [_stream(stream) for stream in last.streams if stream.column is not None],
    }


def _stream(stream: StreamState) -> dict[str, Any]:
    named: dict[str, str | None] = {"pred": stream.model}
    if stream.column is not None:
        named |= {"by": stream.column, "value": stream.value}
    numbers = {
        "smece_new": stream.smece_new, "smece": stream.smece, "low": stream.low,
        "high": stream.high,
    }  # fmt: skip
    return {
        **named,
        "n": stream.n,
        "log_evidence": stream.log_evidence,
        "alarm": stream.alarm,
        **{key: None if isnan(number) else number for key, number in numbers.items()},
    }


def _show(states: list[WatchState], tolerance: float, level: float) -> None:
    console = terminal.console()
    last = states[-1]
    model = last.worst.model
    title = (
        f"{model}: {len(states)} days, tolerance {tolerance:g}, alarm at evidence "
        f"{1 / (1 - level):.4g}"
    )
    table = terminal.table(
        "day", "rows", "SMECE\nthat day", "SMECE\nso far", f"{100 * level:g}% band", "evidence",
        "p-value", "",
    )  # fmt: skip
    for state in states:
        whole = next(s for s in state.streams if s.model == model and s.column is None)
        table.add_row(
            Text(printable(str(state.date))),
            f"{state.n:,}",
            _digits(whole.smece_new),
            _digits(whole.smece),
            f"{_digits(whole.low, 3)} to {_digits(whole.high, 3)}" if whole.n else "-",
            _amount(state.evidence),
            chance(state.pvalue),
            Text("ALARM", style="bold red") if state.alarm else "",
        )
    terminal.print_titled(console, title, table)
    segments = sorted(
        (s for s in last.streams if s.column is not None), key=lambda s: -s.log_evidence
    )
    if segments:
        table = terminal.table("segment", "rows", "SMECE\nso far", "evidence", "")
        for each in segments[:_MOST_SEGMENTS]:
            mark = Text("ALARM", style="bold red") if each.alarm else ""
            table.add_row(
                Text(printable(each.name)), f"{each.n:,}", _digits(each.smece),
                _amount(each.evidence), mark,
            )  # fmt: skip
        more = len(segments) - _MOST_SEGMENTS
        below = f"; {more:,} more have less evidence" if more > 0 else ""
        terminal.print_titled(console, f"Segments, most evidence first{below}", table)
    console.print(Text(printable(last.sentence), style="bold red" if last.alarm else "bold green"))
    console.print(_HOW_TO_READ, style="dim")


_HOW_TO_READ = (
    "The band holds on all days simultaneously. Evidence counts against the model. If every mean "
    "label is within the tolerance of its prediction, evidence ever reaches the alarm line with "
    "probability at most 1 - level. Rows must not repeat, and rows or raters must not vary "
    "together."
)


def _digits(value: float, digits: int = 4) -> str:
    return "-" if isnan(value) else f"{value:.{digits}f}"


def _amount(evidence: float) -> str:
    """Write the evidence in at most nine characters."""
    return f"{evidence:.2f}" if evidence < 1000 else f"{evidence:.1e}"
