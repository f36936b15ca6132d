"""`softcal score`: how well calibrated each model is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from softcal import terminal
from softcal.cli.bounds import LabelHigh, LabelLow, score_bounds
from softcal.cli.classes import Chosen, LabelColumns, PredColumns, VoteColumns, score_classes
from softcal.cli.options import (
    DataFile,
    Format,
    Group,
    Level,
    MaybeLabel,
    NumberOfBins,
    Output,
    Votes,
    Weight,
    chance,
    given,
    print_json,
)

if TYPE_CHECKING:
    from rich.table import Table


def score(
    data: DataFile,
    label: MaybeLabel = None,
    pred: Annotated[
        list[str] | None,
        typer.Option(help="Column of predictions in [0, 1]; once per model.", metavar="COL"),
    ] = None,
    label_low: LabelLow = None,
    label_high: LabelHigh = None,
    label_columns: LabelColumns = None,
    vote_columns: VoteColumns = None,
    pred_columns: PredColumns = None,
    bins: NumberOfBins = 10,
    weight: Weight = None,
    votes: Votes = None,
    group: Group = None,
    level: Level = 0.95,
    format_: Output = Format.TABLE,
) -> None:
    """Score predictions against probabilistic labels: SMECE, and what goes with it."""
    from softcal import sketch
    from softcal.files import read_columns
    from softcal.reliability import reliability
    from softcal.scorecard import Named, scorecard

    chosen = Chosen(label_columns, vote_columns, pred_columns)
    bounds = {"--label-low": label_low, "--label-high": label_high}
    if chosen.is_asked_for:
        one = {"--label": label, "--pred": pred, "--votes": votes, "--group": group}
        chosen.refuse_with({**one, **bounds})
        score_classes(data, chosen, bins=bins, weight=weight, level=level, format_=format_)
        return
    pred = given(pred, "Missing option '--pred'.")
    if any(bounds.values()):
        others = {"--label": label, "--votes": votes, "--group": group}
        score_bounds(
            data, label_low, label_high, pred,
            bins=bins, weight=weight, format_=format_, others=others,
        )  # fmt: skip
        return
    label = given(label, "give --label COL, or --label-low COL and --label-high COL.")
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
        print_json(card)
    else:
        console = terminal.console()
        weighted = f", weighted by {weight}" if weight else ""
        title = f"{data.name}: {card['n']:,} rows, label {label}, {card['bins']} bins{weighted}"
        terminal.print_titled(console, title, score_table(card))
        console.print(f"{_HOW_TO_READ}\n", style="dim")
        tables = {
            name: reliability(
                columns[label],
                columns[name],
                bins=bins,
                sample_weight=None if weight is None else columns[weight],
                n_votes=None if votes is None else columns[votes],
                groups=None if group is None else columns[group],
            )
            for name in pred
        }
        sketch.show(console, tables, level)


_HOW_TO_READ = (
    "SMECE compares predictions with the labels as they are; with unlimited data it would most "
    "likely lie in the interval. The p-value is how often a calibrated model would show gaps this "
    "odd by chance. The hardened ECE is what is left when every label above 0.5 is made 1 and "
    "every other 0."
)


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
            Text(terminal.printable(model["pred"])),  # Text: a name is never read as markup
            f"{model['smece']:.4f}",
            f"{model['low']:.3f}-{model['high']:.3f}",
            chance(model["pvalue"]),
            f"{model['ece_hardened']:.4f}",
            f"{model['max_gap']:.3f}",
            f"{model['bias']:+.3f}",
            f"{model['brier']:.3f}",
        )
    return table
