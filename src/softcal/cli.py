"""The command line: arguments in, one call, a table or JSON out."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path  # noqa: TC003  typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text
from typer.exceptions import TyperException

from softcal import terminal
from softcal.errors import SoftcalError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

app = typer.Typer(
    add_completion=False,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def main(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)
    ] = False,
) -> None:
    """Calibration of probabilistic predictions when the label is itself a probability."""
    if version:
        from softcal import __version__

        sys.stdout.write(f"softcal {__version__}\n")
        raise typer.Exit


class Format(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    JSON = "json"


@app.command()
def score(
    data: Annotated[Path, typer.Argument(help="A .csv, .tsv or .parquet file.")],
    label: Annotated[str, typer.Option(help="Column of labels in [0, 1].", metavar="COL")],
    pred: Annotated[
        list[str],
        typer.Option(help="Column of predictions in [0, 1]; once per model.", metavar="COL"),
    ],
    bins: Annotated[int, typer.Option(help="Number of equal-width bins.", metavar="N")] = 10,
    weight: Annotated[
        str | None, typer.Option(help="Column of row weights.", metavar="COL")
    ] = None,
    format_: Annotated[Format, typer.Option("--format", help="What to print.")] = Format.TABLE,
) -> None:
    """Score predictions against probabilistic labels: SMECE, and what goes with it."""
    from softcal.files import read_columns
    from softcal.scorecard import scorecard

    wanted = [label, *pred, *([] if weight is None else [weight])]
    columns = read_columns(data, wanted)
    card = scorecard(
        (label, columns[label]),
        {name: columns[name] for name in pred},
        bins=bins,
        weight=None if weight is None else (weight, columns[weight]),
    )
    if format_ is Format.JSON:
        _print_json(card)
    else:
        console = terminal.console()
        weighted = f", weighted by {weight}" if weight else ""
        title = f"{data.name}: {card['n']:,} rows, label {label}, {card['bins']} bins{weighted}"
        terminal.print_titled(console, title, score_table(card))
        console.print(_HOW_TO_READ, style="dim")


@app.command()
def demo() -> None:
    """Show what softcal is for, on the radiologists' data that comes with it."""
    from softcal.demo import show

    show(terminal.console())


@app.command()
def paper(
    format_: Annotated[Format, typer.Option("--format", help="What to print.")] = Format.TABLE,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder for CSV tables and figures.", metavar="DIR"),
    ] = None,
) -> None:
    """Reproduce the SMECE paper, digit for digit, with its errors shown."""
    from softcal.paper.report import reproduce
    from softcal.paper.reproduction import TOTAL_ROWS

    with terminal.progress("Reproducing the paper", TOTAL_ROWS) as step:
        report = reproduce(step)
    if output is not None:
        report.write(output)
    if format_ is Format.JSON:
        _print_json(report.as_json())
    else:
        report.show(terminal.console())


_HOW_TO_READ = (
    "SMECE compares predictions with the labels as they are. The hardened column does the same "
    "after every label above 0.5 is made 1 and every other 0."
)


def _print_json(data: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(data, indent=2, allow_nan=False) + "\n")


def score_table(card: dict[str, Any]) -> Table:
    """Lay out a scorecard, models side by side."""
    table = terminal.table(
        "model", "SMECE", "ECE of the\nhardened label", "max gap", "bias", "Brier"
    )
    table.columns[1].style = "bold"
    for model in card["models"]:
        table.add_row(
            Text(model["pred"]),  # Text: a name from the data is never read as markup
            f"{model['smece']:.4f}",
            f"{model['ece_hardened']:.4f}",
            f"{model['max_gap']:.4f}",
            f"{model['bias']:+.4f}",
            f"{model['brier']:.4f}",
        )
    return table


def run(arguments: Sequence[str]) -> int:
    """Run one command; give its exit code. Refusals are one line on stderr."""
    try:
        code = app(list(arguments) or ["--help"], prog_name="softcal", standalone_mode=False)
        sys.stdout.flush()
    except (SoftcalError, TyperException, OSError) as error:
        text = error.format_message() if isinstance(error, TyperException) else str(error)
        sys.stderr.write(f"softcal: error: {' '.join(text.split())}\n")
        return 2
    return int(code or 0)  # typer gives 130 for an interruption, None when all went well
