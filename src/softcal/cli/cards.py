"""How scores are shown, whichever command made them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from softcal import terminal
from softcal.cli.options import Format, chance, print_json, rows_text
from softcal.names import printable

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
    terminal.print_titled(console, title, score_table(card))
    notes = dict.fromkeys(model["note"] for model in card["models"])
    console.print(" ".join(filter(None, (_HOW_TO_READ, *notes))) + "\n", style="dim")
    sketch.show(console, {pred: one.soft for pred, one in scores.models.items()}, level)


def score_table(card: dict[str, Any]) -> Table:
    """Lay out a scorecard, models side by side, each with its slices below it."""
    level = card["models"][0]["level"]
    table = terminal.table(
        "model", "SMECE", f"{100 * level:g} %\ninterval", "p-value",
        "hardened\nECE", "max\ngap", "bias", "Brier",
    )  # fmt: skip
    table.columns[1].style = "bold"
    for model in card["models"]:
        _add(table, model["pred"], model)
        for one in model.get("slices", ()):
            _add(table, f"  {card['by']} {one['value']}: {one['n']:,}", one)
    return table


def _add(table: Table, name: str, numbers: dict[str, Any]) -> None:
    table.add_row(
        Text(printable(name)),  # Text: a name is never read as markup
        f"{numbers['smece']:.4f}",
        f"{numbers['low']:.3f}-{numbers['high']:.3f}",
        chance(numbers["pvalue"]),
        "-" if numbers["ece_hardened"] is None else f"{numbers['ece_hardened']:.4f}",
        f"{numbers['max_gap']:.3f}",
        f"{numbers['bias']:+.3f}",
        f"{numbers['brier']:.3f}",
    )
