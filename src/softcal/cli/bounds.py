"""`softcal score --label-low --label-high`: bounds for labels known only as intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from softcal import terminal
from softcal._display import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from softcal.table.tableset import TableSet

_HOW_TO_READ = (
    "For any labels within their intervals, the SMECE of these rows lies between the two bounds. "
    "Both can occur. The bounds are not a confidence interval: more rows do not narrow them, more "
    "precise labels do."
)


def show_bounds(console: Console, tables: TableSet, card: dict[str, Any], name: str) -> None:
    """Print the bounds of SMECE, and those of each segment."""
    from softcal.cli.display import segment_name, segments_of, title_of

    whole = [(Text(printable(model["pred"])), model) for model in card["models"]]
    terminal.print_titled(console, title_of(name, card, tables), _table("model", whole))
    for model in card["models"]:
        for column, parts in segments_of(card, model):
            lines = [(segment_name(one["value"]), one) for one in parts]
            terminal.print_titled(console, f"{model['pred']}, by {column}", _table("", lines))
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
    """Compute the bounds of SMECE of each model as plain numbers, ready for JSON."""
    from softcal.cli.display import about, models_of

    high = str(tables.about.label_high)
    ends = {"label_low": tables.about.label.removesuffix(f" to {high}"), "label_high": high}
    return {**about(tables), **ends, **models_of(tables, by, _numbers)}


def _numbers(tables: TableSet, pred: str) -> dict[str, float]:
    from softcal.metrics.bounds import ReliabilityBounds

    found = ReliabilityBounds(*(tables[pred, end] for end in tables.targets)).smece
    return {"smece_low": found.low, "smece_high": found.high}
