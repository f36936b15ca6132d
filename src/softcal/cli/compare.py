"""`softcal compare`: compare the calibration of two or more models."""

from __future__ import annotations

from dataclasses import asdict
from itertools import combinations
from typing import TYPE_CHECKING, Any

from rich.text import Text

from softcal import terminal
from softcal._display import printable
from softcal.cli.describe import BOUNDS, Described, describes
from softcal.cli.options import (
    Format,
    Level,
    MaybeBins,
    Output,
    RowsOrTables,
    chance,
    infinite_loss_text,
    limits_text,
    loss_text,
    only_finite,
    print_result,
    rows_text,
    source_name,
)
from softcal.cli.tables import load_tables
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from softcal.inference.comparison import Comparison
    from softcal.table.joint import JointTable
    from softcal.table.reliability import Reliability
    from softcal.table.tableset import TableSet


@describes(without=("by_rater", "ordered", *BOUNDS))
def compare(
    data: RowsOrTables,
    bins: MaybeBins = None,
    level: Level = 0.95,
    format_: Output = Format.TABLE,
    *,
    how: Described,
) -> None:
    """Compare the calibration of two or more models on the same rows.

    Example: softcal compare data.csv --label y --pred p_a --pred p_b
    """
    from softcal._validation.rules import refuse_bad_level
    from softcal.table.joint import refuse_many_bins

    how.refuse_contradictions()
    if how.is_long and how.item is None:
        message = "models in rows are compared by item: pass --item COL."
        raise InputError(message)
    if len(how.models or ("", "")) < 2 and not how.is_long:
        option = "--pred-columns" if how.many else "--pred"
        message = f"a comparison needs two models: pass {option} two or more times."
        raise InputError(message)
    refuse_bad_level(level)
    if bins is not None:
        refuse_many_bins(bins)
    tables = load_tables(data, how, bins=bins, pairs=True)
    _refuse_without_pairs(tables)
    card = _card(tables, level)
    if by := how.by:
        from softcal.cli.display import segments

        card["by"] = by[0] if len(by) == 1 else by
        card["segments"] = [{**named, **_card(part, level)} for named, part in segments(tables, by)]
    if format_ is Format.JSON:
        print_result(card)
    else:
        from softcal.cli.display import title_of

        _show(card, title_of(source_name(data), card, tables), tables[tables.models[0]])


def _refuse_without_pairs(tables: TableSet) -> None:
    """Raise if saved tables do not have what a comparison needs."""
    from softcal.table.tableset import BOUNDS

    if tables.targets == BOUNDS:
        message = (
            "models cannot be compared if labels are known only as intervals: `softcal score` "
            "prints the bounds for each model."
        )
        raise InputError(message)
    if len(tables) < 2:
        message = f"a comparison needs two models: the tables have only {tables.models[0]!r}."
        raise InputError(message)
    if not tables.has_pairs:
        message = (
            "these tables lack the joint sums of each pair of models, which a comparison needs. "
            "Make the tables again from the rows with `softcal scan`."
        )
        raise InputError(message)


def _card(tables: TableSet, level: float) -> dict[str, Any]:
    """Compare all models of a set, as plain numbers ready for JSON."""
    from softcal.cli.classes import class_scorecard
    from softcal.cli.display import about
    from softcal.inference.comparison import compare as compare_models
    from softcal.inference.comparison import compare_pairs
    from softcal.table.tableset import TOP

    smece = {pred: rel.smece for pred, rel in tables.items()}
    if tables.targets[0] == TOP:
        card = class_scorecard(tables, level=level)
        if len(tables) == 2:
            a, b = tables
            joint = tables.pair(a, b)
            pair = _pair(tables, joint, compare_models(joint, level=level))
            del pair["a"], pair["b"]  # because `models` has them
            return card | {"top_label": pair}
        models = card.pop("models")
    else:
        card = {**about(tables), "label": tables.about.label}
        if len(tables) == 2:
            a, b = tables
            joint = tables.pair(a, b)
            return card | _pair(tables, joint, compare_models(joint, level=level))
        models = [{"pred": pred, "smece": value} for pred, value in smece.items()]
    ranked = sorted(models, key=lambda model: smece[model["pred"]])
    joints = [tables.pair(a["pred"], b["pred"]) for a, b in combinations(ranked, 2)]
    pairs = [
        _pair(tables, joint, found) | {"pvalue_holm": pvalue}
        for joint, (found, pvalue) in zip(joints, compare_pairs(joints, level), strict=True)
    ]
    return card | {
        "level": level,
        "models": ranked,
        "pairs": pairs,
        "indistinguishable": [
            [pair["a"], pair["b"]] for pair in pairs if pair["pvalue_holm"] >= 1 - level
        ],
    }


def _pair(tables: TableSet, joint: JointTable, found: Comparison) -> dict[str, Any]:
    from softcal.planning.forecast import FEWEST_ITEMS, correlation_of

    card: dict[str, Any] = asdict(found)
    card |= {"brier_a": joint.a.brier, "brier_b": joint.b.brier}
    card |= only_finite({"log_loss_a": joint.log_loss_a, "log_loss_b": joint.log_loss_b})
    card["rows_of_infinite_log_loss"] = {"a": joint.infinite_a, "b": joint.infinite_b}
    if joint.infinite_a or joint.infinite_b:  # their difference is not defined
        card["log_loss"] = dict.fromkeys(card["log_loss"])
    untied = not tables.has_owners
    alone = tables.about.weight is None and untied and joint.n >= FEWEST_ITEMS
    card["residual_correlation"] = correlation_of(joint) if alone else None  # for `softcal plan`
    return card


def _show(card: dict[str, Any], title: str, rel: Reliability) -> None:
    from softcal.cli.classes import show_class_comparison
    from softcal.cli.display import segment_name

    console = terminal.console()
    if "classes" in card:
        show_class_comparison(console, card, title)
        return
    of_raters = "" if rel.raters is None else "Intervals are for new items and new raters."
    _show_part(console, card, title, of_raters)
    if card.get("residual_correlation") is not None:
        correlation = f"--correlation {card['residual_correlation']:.2f}"
        hint = f"For `softcal plan --difference`, use {correlation}."
        console.print(Text(hint, style="dim"))
    several = isinstance(card.get("by"), list)
    for part in card.get("segments", []):
        column = part["by"] if several else card["by"]
        console.print()
        _show_part(console, part, f"{column} {segment_name(part['value'])}: {rows_text(part)}")


def _show_part(console: Console, card: dict[str, Any], title: str, said: str = "") -> None:
    """Print one comparison: all scores for two models, SMECE for more."""
    if "models" not in card:
        _show_pair(console, card, title)
        _show_note(console, said, card)
        return
    table = terminal.table("model", "SMECE")
    for model in card["models"]:
        table.add_row(Text(printable(model["pred"])), f"{model['smece']:.4f}")
    terminal.print_titled(console, title, table)
    show_pairs(console, card)
    _show_note(console, said, card["pairs"][0])  # the note of every pair, which has the same rows


def _show_note(console: Console, said: str, pair: dict[str, Any]) -> None:
    if text := f"{said} {pair['note']}".strip():
        console.print(Text(text, style="dim"))


def show_pairs(console: Console, card: dict[str, Any]) -> None:
    """Print the difference in SMECE, or top-label SMECE, for each pair of models."""
    table = terminal.table(
        "lower SMECE",
        "higher SMECE",
        "difference",
        "interval\n(Holm)",
        "p-value\n(Holm)",
    )
    table.columns[1].justify = "left"
    for column in table.columns[2:]:
        column.no_wrap = True  # wrap a long name, never a number
    for pair in card["pairs"]:
        table.add_row(
            *(Text(printable(pair[k])) for k in "ab"), f"{pair['difference']:+z.4f}",
            f"{pair['low']:+z.3f} to {pair['high']:+z.3f}", chance(pair["pvalue_holm"]),
        )  # fmt: skip
    terminal.print_table(console, table)
    if not card["indistinguishable"]:
        console.print("Every pair of models differs significantly.")
        return
    unsure = ", ".join(f"{a} and {b}" for a, b in card["indistinguishable"])
    text = f"These data do not show which is better calibrated: {unsure}."
    console.print(Text(printable(text)))


def _show_pair(console: Console, card: dict[str, Any], title: str) -> None:
    table = terminal.table(
        "", *map(printable, (card["a"], card["b"])), "difference",
        f"{100 * card['level']:g}% interval", "p-value",
    )  # fmt: skip
    for column in (table.columns[0], *table.columns[3:]):
        column.no_wrap = True  # wrap a long name, never a number
    infinite = card["rows_of_infinite_log_loss"]
    rows = {
        "SMECE": (card, f"{card['smece_a']:.4f}", f"{card['smece_b']:.4f}"),
        "Brier": (card["brier"], f"{card['brier_a']:.4f}", f"{card['brier_b']:.4f}"),
        "log loss": (card["log_loss"], *(loss_text(card[f"log_loss_{k}"]) for k in "ab")),
    }
    for name, (part, *each) in rows.items():
        difference = "-" if part["difference"] is None else f"{part['difference']:+z.4f}"
        interval = limits_text(part, "+z.3f")
        table.add_row(name, *each, difference, interval, chance(part["pvalue"]))
    terminal.print_titled(console, title, table)
    console.print(Text(printable(_verdict(card))))
    for k in filter(infinite.get, "ab"):
        console.print(Text(infinite_loss_text(card[k], infinite[k], card["n"])))


def _verdict(card: dict[str, Any]) -> str:
    level = f"{100 * card['level']:g}%"
    if card["low"] <= 0 <= card["high"]:
        return (
            f"These data do not show whether {card['a']} or {card['b']} is better calibrated: the "
            f"{level} interval of the difference in SMECE includes 0."
        )
    better, worse = (card["a"], card["b"]) if card["high"] < 0 else (card["b"], card["a"])
    return (
        f"{better} is better calibrated than {worse}: the {level} interval of the difference in "
        "SMECE excludes 0."
    )
