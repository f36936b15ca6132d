"""`softcal paper`: reproduce the experiments of the SMECE paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from softcal import terminal
from softcal.cli import options as opt


def paper(
    format_: opt.Output = opt.Format.TABLE,
    output: Annotated[
        Path | None, opt.asks("Folder for CSV tables and figures.", "DIR", "-o", "--output")
    ] = None,
) -> None:
    """Reproduce the tables of the SMECE paper, and list its errata.

    Example: softcal paper --output tables
    """
    if output is not None:
        import softcal.paper.figures  # noqa: F401 - fail early if matplotlib is missing
    from softcal.paper.reproduction import TOTAL_ROWS, reproduce

    with terminal.progress("Reproducing the paper", TOTAL_ROWS) as step:
        report = reproduce(step)
    if output is not None:
        report.write(output)
    opt.print_card(report.card(), format_)
