"""`softcal report`: one HTML file that says what is wrong and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from softcal import terminal
from softcal.cli.options import DataFile, Label, Level, NumberOfBins, Votes, Weight


def report(
    data: DataFile,
    label: Label,
    pred: Annotated[
        list[str],
        typer.Option(help="Column of predictions in [0, 1]; once per model.", metavar="COL"),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The HTML file to write.", metavar="FILE")
    ] = Path("report.html"),
    by: Annotated[
        str | None, typer.Option(help="Column: report each of its values too.", metavar="COL")
    ] = None,
    bins: NumberOfBins = 10,
    weight: Weight = None,
    votes: Votes = None,
    level: Level = 0.95,
) -> None:
    """Write a report on the calibration of one or more models, as one HTML file."""
    from softcal.files import read_columns
    from softcal.report.gather import Roles
    from softcal.report.page import write_page

    roles = Roles(label, tuple(pred), weight, votes, by)
    columns = read_columns(data, roles.columns, by)
    found = write_page(
        output, [columns], roles, bins=bins, level=level, title=_title(pred), source=data.name
    )
    console = terminal.console()
    for name, verdict in found.items():
        console.print(
            Text.assemble(
                (f"{terminal.printable(name)}: {verdict.headline}. ", "bold"), verdict.sentences[0]
            )
        )
    console.print(Text(f"The report is in {output}: open it in a browser."))


def _title(models: list[str]) -> str:
    *others, last = models
    return f"Calibration of {', '.join(others)} and {last}" if others else f"Calibration of {last}"
