"""`softcal report`: write an HTML report with a verdict for each model."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from softcal import terminal
from softcal._display import printable
from softcal.cli.describe import BOUNDS, Described, Scale, describes
from softcal.cli.options import (
    Level,
    MaybeBins,
    RowsOrTables,
    notes,
    source_name,
)
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

    Example: softcal report data.csv --label y --pred p -o report.html
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
    about = _about(tables, data, how, from_rows=from_rows)
    about = about._replace(title=about.title if title is None else title, notes=notes())
    found = write_page(
        output, tables, about, by=how.by or None, level=level, tolerance=tolerance, sample=sample
    )
    console = terminal.console()
    for name, verdict in found.items():
        heading = f"{printable(name)}: {verdict.title}. "
        console.print(Text.assemble((heading, "bold"), f"{verdict.size}."))
    console.print(Text(printable(f"Saved {output}: open it in a browser.")))


def _about(tables: TableSet, data: list[str], how: Described, *, from_rows: bool) -> About:
    """Return the title, source, and label of the page, and the commands that recalibrate."""
    from softcal.report.page import About, apply_commands, commands_of
    from softcal.table.tableset import TOP

    title, label = _title(tables.models), tables.about.label
    if tables.targets[0] == TOP:
        title += f" ({len(tables.classes):,} classes)"
        label = f"the share of {label} on that class"
    named = how.name is not None
    if not from_rows:
        # Under other names than those of the columns, there are no commands.
        commands = () if named else commands_of(tables, "ROWS")
        return About(title, source_name(data), label, commands)
    if named:
        tables = replace(tables, axes=tables.axes._replace(model=tuple(how.models or ())))
    kinds = {"--vote-columns": how.vote_columns, "--label-columns": how.label_columns}
    class_label = next((option for option, given in kinds.items() if given), "--label")
    rows = " ".join([_rows_name(data), *how.words(*_STATED)])
    labeled = None
    if how.raw_votes or how.counts_beside:
        counts = how.vote_columns
        labeled = [] if counts is None else ["--vote-columns", counts]
    commands = commands_of(tables, rows, class_label, labeled)
    apply: tuple[str, ...] = ()
    applicable = how.pred_scale is Scale.PROBABILITY and not how.drop_missing and not how.sheet
    if commands and applicable and tables.targets[0] != TOP:
        fields = ("sep", "decimal", "encoding", "input_format")
        reading = Described(**{field: getattr(how, field) for field in fields}).words()
        apply = apply_commands(tables.models, " ".join([_rows_name(data), *reading]))
    return About(title, source_name(data), label, commands, apply)


_STATED = (
    "--label", "--pred", "--by", "--weight", "--votes", "--group", "--label-columns",
    "--vote-columns", "--pred-columns", "--classes", "--ordered", "--raters", "--name",
)  # fmt: skip
"""Options that the commands of a report state themselves, or that they do not have."""


def _rows_name(data: list[str]) -> str:
    """Return the name of the file of rows, quoted for a shell; ROWS for several files."""
    return shlex.quote(Path(data[0]).name) if len(data) == 1 else "ROWS"


def _title(models: list[str] | tuple[str, ...]) -> str:
    """Return a title with the names of the models, or their number if it would be long."""
    *others, last = models
    named = f"{', '.join(others)} and {last}" if others else last
    if others and len(named) > _LONGEST:
        named = f"{len(models)} models"
    return f"Calibration of {named}"


_LONGEST = 60
