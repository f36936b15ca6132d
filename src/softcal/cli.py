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
    votes: Annotated[
        str | None,
        typer.Option(help="Column: how many votes each label is the share of.", metavar="COL"),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(help="Column: rows of one group are not independent.", metavar="COL"),
    ] = None,
    level: Annotated[float, typer.Option(help="Confidence level.", metavar="P")] = 0.95,
    format_: Annotated[Format, typer.Option("--format", help="What to print.")] = Format.TABLE,
) -> None:
    """Score predictions against probabilistic labels: SMECE, and what goes with it."""
    from softcal.files import read_columns
    from softcal.scorecard import Named, scorecard

    optional = {"weight": weight, "votes": votes, "groups": group}
    columns = read_columns(
        data, [label, *pred, *(name for name in optional.values() if name is not None)], group
    )
    card = scorecard(
        Named(label, columns[label]),
        {name: columns[name] for name in pred},
        bins=bins,
        level=level,
        **{
            role: None if name is None else Named(name, columns[name])
            for role, name in optional.items()
        },
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
    "SMECE compares predictions with the labels as they are; with unlimited data it would most "
    "likely lie in the interval. The p-value is how often a calibrated model would show gaps this "
    "odd by chance. The hardened ECE is what is left when every label above 0.5 is made 1 and "
    "every other 0."
)


def _chance(pvalue: float | None) -> str:
    if pvalue is None:
        return "-"
    return "<0.001" if pvalue < 0.001 else f"{pvalue:.3f}"


def _print_json(data: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(data, indent=2, allow_nan=False) + "\n")


def score_table(card: dict[str, Any]) -> Table:
    """Lay out a scorecard, models side by side."""
    level = card["models"][0]["level"]
    table = terminal.table(
        "model", "SMECE", f"{100 * level:g} %\ninterval", "p-value",
        "hardened\nECE", "max\ngap", "bias", "Brier",
    )  # fmt: skip
    table.columns[1].style = "bold"
    for model in card["models"]:
        table.add_row(
            Text(model["pred"]),  # Text: a name from the data is never read as markup
            f"{model['smece']:.4f}",
            f"{model['low']:.3f}-{model['high']:.3f}",
            _chance(model["pvalue"]),
            f"{model['ece_hardened']:.4f}",
            f"{model['max_gap']:.3f}",
            f"{model['bias']:+.3f}",
            f"{model['brier']:.3f}",
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
