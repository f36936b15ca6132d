"""`softcal compare`: which of two models is better calibrated."""

from __future__ import annotations

from dataclasses import asdict
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Annotated, Any

from rich.text import Text

from softcal import terminal
from softcal._display import printable
from softcal.cli.classes import Chosen, LabelColumns, PredColumns, VoteColumns, compare_classes
from softcal.cli.options import (
    DataFiles,
    Format,
    Group,
    Level,
    MaybeLabel,
    NumberOfBins,
    Output,
    Votes,
    Weight,
    chance,
    column_option,
    given,
    infinite_loss_text,
    loss_text,
    one_file,
    print_json,
    rows_text,
    source_name,
    without_infinities,
)
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from softcal.sources.columns import Batch, Roles
    from softcal.table.joint import JointTable


def compare(
    data: DataFiles,
    label: MaybeLabel = None,
    pred: Annotated[
        list[str] | None,
        column_option("Column of predictions; twice, once per model."),
    ] = None,
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
    """Compare the calibration of two models on the same rows."""
    from softcal.inference.comparison import compare as compared
    from softcal.planning.forecast import FEWEST_ITEMS, correlation_of
    from softcal.sources.columns import Roles

    chosen = Chosen(label_columns, vote_columns, pred_columns)
    if chosen.is_asked_for:
        chosen.refuse_with({"--label": label, "--pred": pred, "--votes": votes, "--group": group})
        compare_classes(
            one_file(data), chosen, bins=bins, weight=weight, level=level, format_=format_
        )
        return
    label = given(label, "Missing option '--label'.")
    pred = given(pred, "Missing option '--pred'.")
    if len(pred) != 2 or pred[0] == pred[1]:
        message = f"give --pred twice, with two different columns: got {', '.join(pred)}."
        raise InputError(message)
    rows, joint = _joined(data, Roles(label, tuple(pred), weight, votes), group, bins, level)
    card: dict[str, Any] = {"n": joint.n, "bins": bins, "label": label, "a": pred[0], "b": pred[1]}
    if weight is not None:
        card["rows_without_weight"] = rows - joint.n
    card |= asdict(compared(joint, level=level))
    card |= {"brier_a": joint.a.brier, "brier_b": joint.b.brier}
    card |= without_infinities({"log_loss_a": joint.log_loss_a, "log_loss_b": joint.log_loss_b})
    card["rows_of_infinite_log_loss"] = {"a": joint.infinite_a, "b": joint.infinite_b}
    if joint.infinite_a or joint.infinite_b:  # nothing can be said of their difference
        card["log_loss"] = dict.fromkeys(card["log_loss"])
    alone = weight is None and group is None and joint.n >= FEWEST_ITEMS
    card["residual_correlation"] = correlation_of(joint) if alone else None  # as plans need it
    if format_ is Format.JSON:
        print_json(card)
    else:
        _show_comparison(card, source_name(data))


def _joined(
    data: list[str], roles: Roles, group: str | None, bins: int, level: float
) -> tuple[int, JointTable]:
    """Add up the joint tables of all batches; rows of a group must be seen together."""
    from softcal.bins import Bins
    from softcal.inference.intervals import refuse_bad_level
    from softcal.sources.collect import checked_batches, checked_columns, has_weight
    from softcal.sources.columns import SLICES, rows_of
    from softcal.table.build import joint_table

    refuse_bad_level(level)
    roles.refuse_impossible()
    binned, rows = Bins.of(bins), 0
    weight, votes = roles.sample_weight, roles.n_votes

    def counted(batch: Batch) -> bool:
        nonlocal rows
        rows += rows_of(batch)
        return has_weight(batch, roles)

    def table_of(batch: Batch) -> JointTable:
        return joint_table(
            batch[roles.y_true],
            {name: batch[name] for name in roles.y_prob},
            bins=binned,
            sample_weight=None if weight is None else batch[weight],
            n_votes=batch[votes] if isinstance(votes, str) else None,
            groups=batch.get(SLICES),
        )

    with terminal.reading() as progress:
        batches = (
            checked_batches(data, roles, progress)
            if group is None
            else [checked_columns(data, roles._replace(by=group), progress)]
        )
        # There is at least one, or it was refused.
        joint = reduce(add, map(table_of, filter(counted, batches)))
    return rows, joint


def _show_comparison(card: dict[str, Any], source: str) -> None:
    console = terminal.console()
    table = terminal.table(
        "", *map(printable, (card["a"], card["b"])), "difference",
        f"{100 * card['level']:g} % interval", "p-value",
    )  # fmt: skip
    for column in (table.columns[0], *table.columns[3:]):
        column.no_wrap = True  # a long name of a model gives way, not a number
    certain = card["rows_of_infinite_log_loss"]
    rows = {
        "SMECE": (card, f"{card['smece_a']:.4f}", f"{card['smece_b']:.4f}"),
        "Brier": (card["brier"], f"{card['brier_a']:.4f}", f"{card['brier_b']:.4f}"),
        "log loss": (card["log_loss"], *(loss_text(card[f"log_loss_{k}"]) for k in "ab")),
    }
    for name, (part, *each) in rows.items():
        known = part["difference"] is not None
        difference = f"{part['difference']:+.4f}" if known else "-"
        interval = f"{part['low']:+.3f} to {part['high']:+.3f}" if known else "-"
        table.add_row(name, *each, difference, interval, chance(part["pvalue"]))
    title = f"{source}: {rows_text(card)}, label {card['label']}, {card['bins']} bins"
    terminal.print_titled(console, title, table)
    console.print(Text(printable(_verdict(card))))
    for k in filter(certain.get, "ab"):
        console.print(Text(infinite_loss_text(card[k], certain[k], card["n"])))
    if card["residual_correlation"] is not None:
        plans = (
            f"For `softcal plan --difference`: --correlation {card['residual_correlation']:.2f}."
        )
        console.print(Text(plans, style="dim"))


def _verdict(card: dict[str, Any]) -> str:
    level = f"{100 * card['level']:g} %"
    if card["low"] <= 0 <= card["high"]:
        return (
            f"These data cannot tell which of {card['a']} and {card['b']} is better calibrated: "
            f"the {level} interval of the difference in SMECE contains 0."
        )
    better, worse = (card["a"], card["b"]) if card["high"] < 0 else (card["b"], card["a"])
    return (
        f"{better} is better calibrated than {worse}: the {level} interval of the difference in "
        "SMECE leaves out 0."
    )
