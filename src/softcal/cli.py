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
    no_args_is_help=True,
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

    wanted = [label, *pred, *([weight] if weight else [])]
    columns = read_columns(data, wanted)
    card = scorecard(
        (label, columns[label]),
        {name: columns[name] for name in pred},
        bins=bins,
        weight=(weight, columns[weight]) if weight else None,
    )
    if format_ is Format.JSON:
        sys.stdout.write(json.dumps(card, indent=2, allow_nan=False) + "\n")
    else:
        console = terminal.console()
        console.print(score_table(card, f"{data.name}: ", weight))
        console.print(_HOW_TO_READ, style="dim")


@app.command()
def demo() -> None:
    """Show what softcal is for, on the radiologists' data that comes with it."""
    from softcal.demo import show

    show(terminal.console())


_HOW_TO_READ = (
    "SMECE compares predictions with the labels as they are. The hardened column does the same "
    "after every label above 0.5 is made 1 and every other 0."
)


def score_table(card: dict[str, Any], source: str = "", weight: str | None = None) -> Table:
    """Lay out a scorecard, models side by side."""
    weighted = f", weighted by {weight}" if weight else ""
    table = terminal.table(
        f"{source}{card['n']:,} rows, label {card['label']}, {card['bins']} bins{weighted}"
    )
    table.add_column("model")
    table.add_column("SMECE", justify="right", style="bold")
    for name in ("ECE of the\nhardened label", "max gap", "bias", "Brier"):
        table.add_column(name, justify="right")
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
        app(list(arguments), prog_name="softcal", standalone_mode=False)
    except (SoftcalError, TyperException) as error:
        text = error.format_message() if isinstance(error, TyperException) else str(error)
        sys.stderr.write(f"softcal: error: {' '.join(text.split())}\n")
        return 2
    return 0
