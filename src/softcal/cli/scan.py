"""`softcal scan`: save the tables of rows, which other commands take instead of the rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import date as calendar_date
from pathlib import Path
from typing import Annotated

from rich.text import Text

from softcal import terminal
from softcal._display import counted, printable
from softcal.cli import options as opt
from softcal.cli.describe import Described, describes
from softcal.cli.tables import load_tables, saved_files
from softcal.exceptions import InputError


@describes(without=("by_rater",))
def scan(
    data: opt.DataFiles,
    output: Annotated[Path, opt.asks("File to write.", "FILE", "-o", "--output")],
    bins: opt.NumberOfBins = 10,
    date: Annotated[str | None, opt.asks("Date of the rows, such as 2026-05-31.", "DATE")] = None,
    *,
    how: Described,
) -> None:
    """Read rows once and save their tables for the other commands.

    Example: softcal scan monday.csv --label y --pred p -o monday.json
    """
    from softcal.cards.card import rows_text
    from softcal.table.tableset import TOP

    if saved := saved_files(data):
        message = f"{saved[0]} already holds tables: use `softcal merge` to add up tables."
        raise InputError(message)
    iso = None if date is None else _iso_date(date)
    tables = load_tables(data, how, bins=bins, pairs=True, may_be_empty=True)
    if iso is not None:
        tables = replace(tables, about=tables.about._replace(date=iso))
    tables.save(output)
    models = counted(len(tables), "model")
    if tables.targets[0] == TOP:
        models += f", {len(tables.classes):,} classes"
    by_columns = f", by {' and '.join(tables.by_names)}" if tables.by_names else ""
    rows = rows_text(tables)
    text = f"{opt.source_name(data)}: {rows}, {models}{by_columns}. Saved: {output}"
    terminal.console().print(Text(printable(text)), soft_wrap=True)


def _iso_date(date: str) -> str:
    try:
        return calendar_date.fromisoformat(date).isoformat()
    except ValueError as error:
        message = f"--date must be a date such as 2026-05-31: got {date!r:.40}."
        raise InputError(message) from error
