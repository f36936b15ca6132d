"""How scores are shown, whichever command made them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from softcal import terminal
from softcal._display import printable
from softcal.cli.options import Format, chance, print_json, rows_text

if TYPE_CHECKING:
    from rich.table import Table

    from softcal.cli.saved_scores import Scores

_HOW_TO_READ = (
    "SMECE compares predictions with the labels as they are; with unlimited data it would most "
    "likely lie in the interval. The p-value is how often a calibrated model would show gaps this "
    "odd by chance. The hardened ECE is what is left when every label above 0.5 is made 1 and "
    "every other 0."
)


def show_scores(scores: Scores, name: str, level: float, format_: Format) -> None:
    """Print scores as a table or as JSON."""
    from softcal.cli import sketch
    from softcal.cli.scorecard import scorecard

    card = scorecard(scores, level)
    if format_ is Format.JSON:
        print_json(card)
        return
    console = terminal.console()
    weighted = f", weighted by {scores.weight}" if scores.weight else ""
    title = f"{name}: {rows_text(card)}, label {scores.label}, {card['bins']} bins{weighted}"
    if scores.by is None:
        terminal.print_titled(console, title, _models_table(card))
    else:
        console.print(Text(printable(title), style="bold"))
        for model in card["models"]:
            console.print()
            terminal.print_titled(console, f"{model['pred']}, by {scores.by}", _slices(model))
    notes = dict.fromkeys(model["note"] for model in card["models"])
    console.print(" ".join(filter(None, (_HOW_TO_READ, *notes))) + "\n", style="dim")
    sketch.show(console, {pred: one.soft for pred, one in scores.models.items()}, level)


def _models_table(card: dict[str, Any]) -> Table:
    """Lay out a scorecard, models side by side."""
    table = _table(card["models"][0], "model")
    for model in card["models"]:
        table.add_row(Text(printable(model["pred"])), *_cells(model))  # a name is never markup
    return table


def _slices(model: dict[str, Any]) -> Table:
    """Lay out one model and its slices below it, each with its number of rows."""
    table = _table(model, "", "rows")
    whole = sum(one["n"] for one in model["slices"])
    table.add_row("all", f"{whole:,}", *_cells(model))
    for one in model["slices"]:
        table.add_row(Text(printable(str(one["value"]))), f"{one['n']:,}", *_cells(one))
    return table


def _table(model: dict[str, Any], *first: str) -> Table:
    table = terminal.table(
        *first, "SMECE", f"{100 * model['level']:g} %\ninterval", "p-value",
        "hardened\nECE", "max\ngap", "bias", "Brier",
    )  # fmt: skip
    table.columns[len(first)].style = "bold"
    for column in table.columns[1:]:
        column.no_wrap = True  # a long name gives way, not a number
    return table


def _cells(numbers: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"{numbers['smece']:.4f}",
        f"{numbers['low']:.3f}-{numbers['high']:.3f}",
        chance(numbers["pvalue"]),
        "-" if numbers["ece_hardened"] is None else f"{numbers['ece_hardened']:.4f}",
        f"{numbers['max_gap']:.3f}",
        f"{numbers['bias']:+.3f}",
        f"{numbers['brier']:.3f}",
    )
