"""`softcal score --label-low --label-high`: labels known only as intervals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.text import Text

from softcal import terminal
from softcal._display import printable
from softcal.cli.options import Format, column_option, print_json
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from softcal._validation.inputs import Rows

LabelLow = Annotated[
    str | None,
    column_option("For labels known as intervals: column of lower ends."),
]
LabelHigh = Annotated[str | None, column_option("Column of upper ends.")]

_HOW_TO_READ = (
    "Whatever the labels are within their intervals, the SMECE of these rows lies between the two, "
    "and can be either. This says nothing of chance: more rows do not narrow it, more precise "
    "labels do."
)


def score_bounds(
    data: Path,
    low: str | None,
    high: str | None,
    pred: list[str],
    *,
    bins: int,
    weight: str | None,
    format_: Format,
    others: Mapping[str, object],
) -> None:
    """Score predictions against labels known as intervals; `others` are options of no use here."""
    useless = [option for option, value in others.items() if value is not None]
    if useless:
        message = f"--label-low and --label-high cannot go with {' and '.join(useless)}."
        raise InputError(message)
    if low is None or high is None:
        message = "give both ends of the labels: --label-low COL and --label-high COL."
        raise InputError(message)
    card = _card(data, low, high, pred, bins, weight)
    if format_ is Format.JSON:
        print_json(card)
        return
    console = terminal.console()
    table = terminal.table("model", "smallest\nSMECE", "largest\nSMECE")
    for model in card["models"]:
        name = Text(printable(model["pred"]))
        table.add_row(name, f"{model['smece_low']:.4f}", f"{model['smece_high']:.4f}")
    weighted = f", weighted by {weight}" if weight else ""
    title = (
        f"{data.name}: {card['n']:,} rows, labels {low} to {high}, {card['bins']} bins{weighted}"
    )
    terminal.print_titled(console, title, table)
    console.print(_HOW_TO_READ, style="dim")


def _card(
    data: Path, low: str, high: str, pred: list[str], bins: int, weight: str | None
) -> dict[str, Any]:
    """Bound the SMECE of each model, as plain numbers ready for JSON."""
    from softcal._validation import inputs
    from softcal._validation.inputs import Names
    from softcal.bins import Bins
    from softcal.metrics.bounds import bounds_from_rows
    from softcal.sources.columns import Roles
    from softcal.sources.files import read_columns

    for end in (low, high):
        Roles(end, tuple(pred), weight).refuse_impossible()
    columns = read_columns(data, [low, high, *pred, *([] if weight is None else [weight])])
    row_weight = None if weight is None else columns[weight]

    def rows(label: str, name: str) -> Rows:
        names = Names(label, name, weight or "sample_weight")
        return inputs.rows(columns[label], columns[name], row_weight, names=names)

    bounds = {
        name: bounds_from_rows(rows(low, name), rows(high, name), Bins.of(bins)) for name in pred
    }
    return {
        "n": bounds[pred[0]].n,
        "bins": bins,
        "label_low": low,
        "label_high": high,
        "models": [
            {"pred": name, "smece_low": found.smece.low, "smece_high": found.smece.high}
            for name, found in bounds.items()
        ],
    }
