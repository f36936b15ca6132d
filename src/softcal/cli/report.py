"""`softcal report`: write an HTML report with a verdict for each model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from softcal import terminal
from softcal._display import printable
from softcal.cli.describe import BOUNDS, Described, describes
from softcal.cli.options import Level, MaybeBins, RowsOrTables, notes, source_name
from softcal.cli.tables import load_tables, saved_files

if TYPE_CHECKING:
    from softcal.report.page import About
    from softcal.table.tableset import TableSet


@describes(without=("by_rater", *BOUNDS))
def report(
    data: RowsOrTables,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="HTML file to write.", metavar="FILE")
    ] = Path("report.html"),
    bins: MaybeBins = None,
    level: Level = 0.95,
    tolerance: Annotated[
        float, typer.Option(help="SMECE to accept; a larger one is material.", metavar="T")
    ] = 0.02,
    title: Annotated[str | None, typer.Option(help="Title of the report.", metavar="TEXT")] = None,
    *,
    how: Described,
) -> None:
    """Write an HTML report on the calibration of one or more models.

    Example: softcal report data.csv --label share --pred p -o report.html
    """
    from softcal.report.page import refuse_impossible, write_page
    from softcal.scanning.sample import Sample

    refuse_impossible(output, len(how.models or ["of a saved file"]))
    from_rows = not saved_files(data)
    # Recalibration is evaluated only for rows of one probability and of all models.
    sample = Sample() if from_rows and not how.many and not how.is_long else None
    tables = load_tables(
        data, how, bins=bins, pairs=True, look=None if sample is None else sample.add
    )
    about = _about(tables, data, renamed=not from_rows and how.name is not None)
    about = about._replace(title=about.title if title is None else title, notes=notes())
    found = write_page(
        output, tables, about, by=how.by or None, level=level, tolerance=tolerance, sample=sample
    )
    console = terminal.console()
    for name, verdict in found.items():
        heading = f"{printable(name)}: {verdict.title}. "
        console.print(Text.assemble((heading, "bold"), f"{verdict.size}."))
    console.print(Text(printable(f"Saved {output}: open it in a browser.")))


def _about(tables: TableSet, data: list[str], *, renamed: bool) -> About:
    """Return the title, source, and label of the page, and the commands that recalibrate."""
    from softcal.report.commands import Commands, commands_of
    from softcal.report.page import About
    from softcal.table.tableset import TOP

    title, label = _title(tables.models), tables.about.label
    if tables.targets[0] == TOP:
        title += f" ({len(tables.classes):,} classes)"
        label = f"the share of {label} on that class"
    # Names given to the models of saved tables are not those of columns.
    commands = Commands() if renamed else commands_of(tables)
    return About(title, source_name(data), label, commands)


def _title(models: list[str] | tuple[str, ...]) -> str:
    """Return a title with the names of the models, or their number if it would be long."""
    *others, last = models
    named = f"{', '.join(others)} and {last}" if others else last
    if others and len(named) > _LONGEST:
        named = f"{len(models)} models"
    return f"Calibration of {named}"


_LONGEST = 60
