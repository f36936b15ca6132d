"""`softcal paper`: reproduce the experiments of the SMECE paper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.padding import Padding
from rich.text import Text

from softcal import terminal
from softcal.cli.options import Format, Output, print_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from softcal.paper.experiments import Dimensions, Outcomes, VoteScores
    from softcal.paper.reproduction import Cell, Report


def paper(
    format_: Output = Format.TABLE,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Folder to write CSV tables and figures to.", metavar="DIR"
        ),
    ] = None,
) -> None:
    """Reproduce the tables of the SMECE paper, and list its errata."""
    if output is not None:
        import softcal.paper.figures  # noqa: F401 - fail early if matplotlib is missing
    from softcal.paper.reproduction import TOTAL_ROWS, reproduce

    with terminal.progress("Reproducing the paper", TOTAL_ROWS) as step:
        report = reproduce(step)
    if output is not None:
        report.write(output)
    if format_ is Format.JSON:
        print_json(report.as_json())
    else:
        show(terminal.console(), report)


def show(console: Console, report: Report) -> None:
    """Print the tables, the errata, and the further experiments."""
    _show_tables(console, report.cells)
    _show_errata(console, report.errata)
    _show_outcomes(console, report.outcomes)
    _show_votes(console, report.votes)
    _show_dimensions(console, report.dimensions)


def _show_tables(console: Console, cells: list[Cell]) -> None:
    from softcal.paper.reproduction import TABLES

    console.print(
        "[bold]The SMECE paper, reproduced.[/bold] 'printed = ours': the paper's number equals "
        "ours to the last digit, with the paper's binning. 'ours': our number where it differs. "
        "'closed': the number with p = 1 in the last bin, where that changes a digit. 'exact "
        "limit': the value for unlimited n, with p = 1 in the last bin.\n"
    )
    for name, title in TABLES.items():
        for part, found in _parts([cell for cell in cells if cell.table == name]).items():
            terminal.print_titled(console, f"{title}{part}", _grid(found))
    good = sum(cell.reproduced for cell in cells)
    console.print(
        f"[bold]{good} of {len(cells)} printed numbers reproduced digit for digit.[/bold]\n"
    )


def _show_errata(console: Console, errata: list[dict[str, Any]]) -> None:
    console.print("[bold]Errata[/bold], each recomputed here\n")
    for number, item in enumerate(errata, 1):
        console.print(f"[bold]{number}. {item['title']}[/bold]")
        console.print(Padding(f"The paper: {item['paper']}", (0, 0, 0, 3)), style="dim")
        console.print(Padding(f"{item['ours']}\n", (0, 0, 0, 3)))


def _show_outcomes(console: Console, outcomes: Outcomes) -> None:
    table = terminal.table("n", "drawn outcomes", "thresholded labels")
    for n, drawn, cut in zip(outcomes.n, outcomes.drawn, outcomes.thresholded, strict=True):
        table.add_row(f"{n:,}", f"{drawn:.4f}", f"{cut:.4f}")
    terminal.print_titled(console, "Experiment 5: ECE of the perfect model, k = 2", table)
    worth = ", ".join(f"{value:.0f} for {model}" for model, value in outcomes.worth.items())
    console.print(
        f"Against drawn outcomes, the ECE decreases like n^{outcomes.slope:.2f}. One soft label "
        f"scores a model as precisely as this many drawn outcomes: {worth}.\n"
    )


def _show_votes(console: Console, votes: VoteScores) -> None:
    table = terminal.table("votes K", "ECE, majority", "SMECE, share")
    for k, majority, share in zip(votes.votes, votes.ece_majority, votes.smece_share, strict=True):
        table.add_row(f"{k}", f"{majority:.4f}", f"{share:.4f}")
    title = f"Experiment 6: the perfect model against K votes, n = {votes.n:,}"
    terminal.print_titled(console, title, table)


def _show_dimensions(console: Console, dimensions: Dimensions) -> None:
    table = terminal.table("dimensions", "true: SMECE", "true: ECE", "linear: SMECE", "linear: ECE")
    for d, *values in zip(
        dimensions.d,
        dimensions.smece_true,
        dimensions.ece_true,
        dimensions.smece_linear,
        dimensions.ece_linear,
        strict=True,
    ):
        table.add_row(f"{d}", *(f"{value:.4f}" for value in values))
    title = f"Experiment 7: d dimensions, unequal covariances, n = {dimensions.n:,}"
    terminal.print_titled(console, title, table)


def _parts(cells: list[Cell]) -> dict[str, list[Cell]]:
    """Split the fourth experiment into means and standard deviations."""
    kinds = {"mean": ", mean", "std": ", standard deviation"}
    parts: dict[str, list[Cell]] = {}
    for cell in cells:
        kind = kinds.get(cell.column.rpartition(" ")[2], "")
        parts.setdefault(kind, []).append(cell)
    return parts


def _grid(cells: list[Cell]) -> Table:
    columns = list(dict.fromkeys(cell.column for cell in cells))
    by_row: dict[str, list[Cell]] = {}
    for cell in cells:
        by_row.setdefault(cell.row, []).append(cell)
    heads = (name.removesuffix(" mean").removesuffix(" std") for name in columns)
    table = terminal.table("", "", *heads)
    table.columns[1].justify = "left"
    for row, found in by_row.items():
        _add_lines(table, row, found)
    return table


def _add_lines(table: Table, row: str, cells: list[Cell]) -> None:
    good = all(cell.reproduced for cell in cells)
    printed = [cell.shown(cell.printed) for cell in cells]
    table.add_row(row, "printed = ours" if good else "printed", *printed)
    if not good:
        marked = [
            Text(cell.shown(cell.open), style="" if cell.reproduced else "bold reverse")
            for cell in cells
        ]
        table.add_row("", Text("ours", style="bold"), *marked)
    if any(cell.changed_by_closing for cell in cells):
        closed = [
            Text(cell.shown(cell.closed), style="bold" if cell.changed_by_closing else "")
            for cell in cells
        ]
        table.add_row("", "closed", *closed)
    if any(cell.limit is not None for cell in cells):
        limits = ["" if cell.limit is None else cell.shown(cell.limit) for cell in cells]
        table.add_row("", "exact limit", *limits, style="dim")
