"""`softcal paper`: the SMECE paper, reproduced."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softcal import terminal
from softcal.cli.options import Format, Output, print_json


def paper(
    format_: Output = Format.TABLE,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder for CSV tables and figures.", metavar="DIR"),
    ] = None,
) -> None:
    """Reproduce the SMECE paper, digit for digit, with its errors shown."""
    if output is not None:
        import softcal.paper.figures  # noqa: F401 - if matplotlib is missing, say so before the work
    from softcal.paper.report import reproduce
    from softcal.paper.reproduction import TOTAL_ROWS

    with terminal.progress("Reproducing the paper", TOTAL_ROWS) as step:
        report = reproduce(step)
    if output is not None:
        report.write(output)
    if format_ is Format.JSON:
        print_json(report.as_json())
    else:
        report.show(terminal.console())
