"""`softcal audit`: find the segments whose predictions are too high or too low."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from softcal.cli.describe import BOUNDS, CLASSES, RATERS, Described, describes
from softcal.cli.describe import cut as read_cut
from softcal.cli.describe import feature as read_feature
from softcal.cli.options import (
    DEFAULT_LEVEL,
    Format,
    Level,
    Output,
    RowsOrTables,
    notes,
    print_card,
    source_name,
)
from softcal.cli.tables import load_tables, saved_files
from softcal.exceptions import InputError


@describes(without=(*RATERS, *BOUNDS, *CLASSES))
def audit(
    data: RowsOrTables,
    feature: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of numbers and the number of ranges to divide it into, such as age:10; "
            "may be repeated.",
            metavar="COL:N",
        ),
    ] = None,
    cut: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of numbers and the numbers to cut it at, such as age:40,60; may be "
            "repeated.",
            metavar="COL:X,...",
        ),
    ] = None,
    depth: Annotated[
        int, typer.Option(help="Largest number of columns that define a segment.", metavar="N")
    ] = 2,
    min_rows: Annotated[
        int, typer.Option(hidden=True, help="Rows a segment needs to be tested.", metavar="N")
    ] = 30,
    level: Level = DEFAULT_LEVEL,
    draws: Annotated[
        int, typer.Option(hidden=True, help="Number of simulated data sets.", metavar="N")
    ] = 2000,
    seed: Annotated[
        int, typer.Option(hidden=True, help="Seed of the simulation.", metavar="N")
    ] = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write an HTML page to this file.", metavar="HTML"),
    ] = None,
    format_: Output = Format.TABLE,
    *,
    how: Described,
) -> None:
    """Find the segments whose predictions are too high or too low, worst first.

    The p-values and intervals hold for all segments of a model simultaneously.

    Example: softcal audit data.csv --label y --pred p --by sex --cut age:40,60
    """
    from softcal.cards.audit import AuditCard
    from softcal.inference.segments import audit_tables

    tables = load_tables(data, how, by=_segments(data, how, feature or [], cut or []))
    named = None if feature or cut or not how.by else how.by  # None: all columns of the tables
    audits = [
        audit_tables(
            tables, model=model, by=named, depth=depth, level=level, min_rows=min_rows,
            draws=draws, rng=seed,
        )
        for model in tables
    ]  # fmt: skip
    if output is not None:
        from softcal.report.audit import write_audit_page

        write_audit_page(
            output, audits, source=source_name(data), label=tables.about.label, notes=notes()
        )
    card = AuditCard.of(tables, audits, source=source_name(data), draws=draws, seed=seed)
    print_card(card, format_)


def _segments(
    data: list[str], how: Described, features: list[str], cuts: list[str]
) -> list[Any] | None:
    """Return the segments of rows: values of columns, and ranges of numbers."""
    ranges = [read_feature(each) for each in features] + [read_cut(each) for each in cuts]
    if not ranges:
        return None
    if saved_files(data):
        message = (
            f"{'--feature' if features else '--cut'} is for rows: leave it out with saved tables."
        )
        raise InputError(message)
    from softcal.scanning.data import Cut

    return [*(how.by or ()), *(Cut(*each) for each in ranges)]
