"""`softcal score --label-low --label-high`: labels known only as intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from softcal import terminal
from softcal._display import printable
from softcal.cli.options import Format, print_json, rows_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from softcal.table.tableset import TableSet

_HOW_TO_READ = (
    "Whatever the labels are within their intervals, the SMECE of these rows lies between the two, "
    "and can be either. This says nothing of chance: more rows do not narrow it, more precise "
    "labels do."
)


def show_bounds(tables: TableSet, name: str, format_: Format, by: Sequence[str] = ()) -> None:
    """Print the bounds of a set of labels known as intervals, as text or as JSON."""
    card = bounds_card(tables, by)
    if format_ is Format.JSON:
        print_json(card)
        return
    from softcal.cli.display import segment_name

    console = terminal.console()
    weighted = f", weighted by {tables.weight}" if tables.weight else ""
    title = f"{name}: {rows_text(card)}, labels {tables.label}, {card['bins']} bins{weighted}"
    whole = [(Text(printable(model["pred"])), model) for model in card["models"]]
    terminal.print_titled(console, title, _table("model", whole))
    for model in card["models"]:
        for column in by:
            parts = [
                (segment_name(one["value"]), one)
                for one in model["slices"]
                if one.get("by", column) == column
            ]
            titled = f"{model['pred']}, by {column}"
            terminal.print_titled(console, titled, _table("", parts))
    console.print(_HOW_TO_READ, style="dim")


def _table(first: str, lines: list[tuple[Text, dict[str, Any]]]) -> Table:
    counted = "n" in lines[0][1]
    table = terminal.table(
        first, *(["rows"] if counted else []), "smallest\nSMECE", "largest\nSMECE"
    )
    for name, one in lines:
        rows = [f"{one['n']:,}"] if counted else []
        table.add_row(name, *rows, f"{one['smece_low']:.4f}", f"{one['smece_high']:.4f}")
    return table


def bounds_card(tables: TableSet, by: Sequence[str] = ()) -> dict[str, Any]:
    """Bound the SMECE of each model, as plain numbers ready for JSON."""
    from softcal.cli.display import about, models_of

    high = str(tables.label_high)
    ends = {"label_low": tables.label.removesuffix(f" to {high}"), "label_high": high}
    return {**about(tables), **ends, **models_of(tables, by, _numbers)}


def _numbers(tables: TableSet, pred: str) -> dict[str, float]:
    from softcal.metrics.bounds import ReliabilityBounds

    found = ReliabilityBounds(*(tables[pred, end] for end in tables.targets)).smece
    return {"smece_low": found.low, "smece_high": found.high}
