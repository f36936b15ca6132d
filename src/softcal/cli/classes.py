"""`score` and `compare` for many classes: the predicted class, each class, and single items."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rich.text import Text

from softcal import terminal
from softcal._display import printable
from softcal.cli.options import (
    chance,
    infinite_loss_text,
    loss_text,
    only_finite,
    rows_text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from softcal.table.tableset import TableSet


def show_class_scores(console: Console, tables: TableSet, card: dict[str, Any], name: str) -> None:
    """Print the scores of a set of many classes, and those of each segment."""
    from softcal.cli.display import segments_of, title_of
    from softcal.inference.smece import ABOVE_ITS_INTERVAL, is_above

    _show_models(console, card, title_of(name, card, tables))
    _show_worst_classes(console, card)
    for model in card["models"]:
        for column, parts in segments_of(card, model):
            terminal.print_titled(
                console, f"{model['pred']}, by {column}", _segments_table(card, model, parts)
            )
    above = any(is_above(model["top_label_smece"], model["high"]) for model in card["models"])
    console.print(f"{_HOW_TO_READ}{f' {ABOVE_ITS_INTERVAL}' * above}", style="dim")


def class_scorecard(
    tables: TableSet, by: Sequence[str] = (), level: float = 0.95
) -> dict[str, Any]:
    """Score each model by every metric for many classes, as plain numbers ready for JSON.

    A metric that needs numbers of votes is None without them, and so is an infinite loss. With
    `by`, each model also has a list of its segments.
    """
    from softcal.cli.display import about, models_of

    return {
        **about(tables),
        "label": tables.about.label,
        "classes": list(tables.classes),
        **({"ordered": True} if tables.ordered else {}),
        **models_of(tables, by, lambda part, pred: _numbers(part, pred, level)),
    }


def _numbers(tables: TableSet, pred: str, level: float) -> dict[str, Any]:
    from softcal.inference.smece import smece_interval

    top = tables[pred]
    interval = smece_interval(top, level=level)
    by_class = {name: tables[pred, name].smece for name in tables.classes}
    return {
        "top_label_smece": top.smece,
        "debiased": interval.debiased,
        "low": interval.low,
        "high": interval.high,
        "level": level,
        "pvalue": interval.pvalue,
        "classwise_smece": math.fsum(by_class.values()) / len(by_class),
        "smece_by_class": by_class,
        **_item_scores(tables, pred),
        **(_ordered_scores(tables, pred, level) if tables.ordered else {}),
    }


def _ordered_scores(tables: TableSet, pred: str, level: float) -> dict[str, Any]:
    """Return the scores of ordered classes under the names they have in JSON."""
    from softcal.inference.ordinal import (
        ORDERED_METRICS,
        cumulative_smece_interval,
        score_interval,
    )

    thresholds = tables.cumulative(pred)
    found = cumulative_smece_interval(thresholds, level=level)
    item = tables.item_scores(pred)
    scores = {
        "cumulative_smece": found.value,
        "cumulative_low": found.low,
        "cumulative_high": found.high,
        "smece_by_threshold": {name: rel.smece for name, rel in thresholds.items()},
        "wasserstein": item.wasserstein,
        "wasserstein_floor": item.wasserstein_floor,
        "ranked_probability_score": item.ranked_probability_score,
        "ranked_probability_score_without_vote_noise": (
            item.ranked_probability_score_without_vote_noise
        ),
        "manhattan": item.manhattan,
        "manhattan_floor": item.manhattan_floor,
    }
    for metric in ORDERED_METRICS:
        low = high = None
        if tables.about.group is None:
            interval = score_interval(tables, pred, metric=metric, level=level)
            low, high = interval.low, interval.high
        scores |= {f"{metric}_low": low, f"{metric}_high": high}
    return scores


def _item_scores(tables: TableSet, pred: str) -> dict[str, Any]:
    """Return the scores of single items under their names in JSON."""
    from softcal.table.scores import ItemScores

    if "scores" not in tables.blocks:
        found: dict[str, Any] = dict.fromkeys(ItemScores._fields)
    else:
        found = only_finite(tables.item_scores(pred)._asdict())
    names = [key for _, key, _ in _ITEM_ROWS]
    return {
        **{name: found[name] for name in names},
        "log_loss": found["log_loss"],
        "rows_of_infinite_log_loss": found["infinite"],
        "kl_divergence": found["kl_divergence"],
    }


def _show_models(console: Console, card: dict[str, Any], title: str) -> None:
    """Print the scores, a few models per table, so that no number is cut in 80 columns."""
    models = card["models"]
    for start in range(0, len(models), _MODELS_PER_TABLE):
        some = models[start : start + _MODELS_PER_TABLE]
        terminal.print_titled(console, title, _models_side_by_side(some))
    if "ordered" in card:
        order = " < ".join(map(printable, card["classes"]))
        console.print(
            Text(
                f"Order of the classes: {order}. Cumulative: each threshold between "
                "them, averaged. Wasserstein: in classes."
            ),
            style="dim",
        )
    for model in models:
        if infinite := model["rows_of_infinite_log_loss"]:
            console.print(Text(infinite_loss_text(model["pred"], infinite, card["n"])))


_MODELS_PER_TABLE = 3
_WORST_CLASSES = 5
_FEW_CLASSES = 12

_ITEM_ROWS = (
    ("DistCE", "dist_ce", ".4f"),
    ("  floor from vote noise", "dist_ce_floor", ".4f"),
    ("EntCE", "ent_ce", ".4f"),
    ("  signed", "ent_ce_signed", "+z.4f"),
    ("RankCS", "rank_cs", ".4f"),
    ("Brier", "brier", ".4f"),
    ("  without vote noise", "brier_without_vote_noise", ".4f"),
)

_ORDERED_ROWS = (
    ("Wasserstein", "wasserstein", ".4f"),
    ("  floor from vote noise", "wasserstein_floor", ".4f"),
    ("ranked probability score", "ranked_probability_score", ".4f"),
    ("  without vote noise", "ranked_probability_score_without_vote_noise", ".4f"),
    ("Manhattan distance", "manhattan", ".4f"),
    ("  floor from vote noise", "manhattan_floor", ".4f"),
)

_HOW_TO_READ = (
    "Top-label compares the predicted class's probability with its share of the label. Classwise "
    "averages the SMECE of each class. DistCE, EntCE, Brier, and KL compare single items, so they "
    "include vote noise. RankCS is the share of items with classes in the right order. Higher "
    "RankCS is better; for all other scores, lower is better."
)


def _models_side_by_side(models: list[dict[str, Any]]) -> Table:
    table = terminal.table("", *(printable(model["pred"]) for model in models))
    table.columns[0].no_wrap = True  # wrap the names of models instead
    table.add_row("top-label SMECE", *(f"{model['top_label_smece']:.4f}" for model in models))
    level = f"  {100 * models[0]['level']:g}% interval"
    table.add_row(level, *(f"{m['low']:.3f} to {m['high']:.3f}" for m in models))
    table.add_row("  p-value", *(chance(model["pvalue"]) for model in models))
    table.add_row("classwise SMECE", *(f"{model['classwise_smece']:.4f}" for model in models))
    ordered = "cumulative_smece" in models[0]
    if ordered:
        table.add_row("cumulative SMECE", *(f"{model['cumulative_smece']:.4f}" for model in models))
        table.add_row(
            level, *(f"{m['cumulative_low']:.3f} to {m['cumulative_high']:.3f}" for m in models)
        )
    for name, key, form in (*(_ORDERED_ROWS if ordered else ()), *_ITEM_ROWS):
        values = [model[key] for model in models]
        if any(value is not None for value in values):
            table.add_row(name, *("-" if v is None else f"{v:{form}}" for v in values))
        if models[0].get(f"{key}_low") is not None:
            table.add_row(
                level, *(f"{m[f'{key}_low']:.3f} to {m[f'{key}_high']:.3f}" for m in models)
            )
    if models[0]["rows_of_infinite_log_loss"] is not None:
        for name, key in (("log loss", "log_loss"), ("KL divergence", "kl_divergence")):
            table.add_row(name, *(loss_text(model[key]) for model in models))
    return table


def _show_worst_classes(console: Console, card: dict[str, Any]) -> None:
    """Print the SMECE of classes, ranked by their worst model; of many classes only the worst."""
    classes, models = card["classes"], card["models"]
    worst = sorted(classes, key=lambda name: -max(m["smece_by_class"][name] for m in models))
    shown = worst if len(classes) <= _FEW_CLASSES else worst[:_WORST_CLASSES]
    title = "SMECE by class, worst first"
    if len(shown) < len(classes):
        title += f": {len(shown)} of {len(classes):,} (all with --format json)"
    for start in range(0, len(models), _MODELS_PER_TABLE):
        some = models[start : start + _MODELS_PER_TABLE]
        table = terminal.table("class", *(printable(model["pred"]) for model in some))
        for name in shown:
            numbers = (f"{model['smece_by_class'][name]:.4f}" for model in some)
            table.add_row(Text(printable(name)), *numbers)
        terminal.print_titled(console, title, table)


def _segments_table(
    card: dict[str, Any], model: dict[str, Any], parts: list[dict[str, Any]]
) -> Table:
    """Lay out the scores of one model and, below it, of each segment."""
    from softcal.cli.display import segment_name

    table = terminal.table(
        "", "rows", "top-label\nSMECE", f"{100 * model['level']:g}%\ninterval", "p-value",
        "classwise\nSMECE", "Brier",
    )  # fmt: skip
    for column in table.columns[1:]:
        column.no_wrap = True  # wrap a long name, never a number
    whole = {**model, "n": card["n"]}
    for name, one in [(Text("all"), whole), *((segment_name(p["value"]), p) for p in parts)]:
        table.add_row(
            name, f"{one['n']:,}", f"{one['top_label_smece']:.4f}",
            f"{one['low']:.3f} to {one['high']:.3f}", chance(one["pvalue"]),
            f"{one['classwise_smece']:.4f}",
            "-" if one["brier"] is None else f"{one['brier']:.3f}",
        )  # fmt: skip
    return table


def show_class_comparison(console: Console, card: dict[str, Any], title: str) -> None:
    """Print a comparison of models of many classes, and those of each segment."""
    from softcal.cli.display import segment_name

    _show_models(console, card, title)
    _show_conclusion(console, card)
    several = isinstance(card.get("by"), list)
    for part in card.get("segments", []):
        column = part["by"] if several else card["by"]
        title = f"{column} {segment_name(part['value'])}: {rows_text(part)}"
        table = terminal.table("model", "top-label\nSMECE", "classwise\nSMECE", "Brier")
        for model in part["models"]:
            numbers = (model[key] for key in ("top_label_smece", "classwise_smece", "brier"))
            name = Text(printable(model["pred"]))
            table.add_row(name, *("-" if v is None else f"{v:.4f}" for v in numbers))
        console.print()
        terminal.print_titled(console, title, table)
        _show_conclusion(console, part)


def _show_conclusion(console: Console, card: dict[str, Any]) -> None:
    """Print which top label is better calibrated, for two models or for each pair."""
    if "top_label" in card:
        a, b = (model["pred"] for model in card["models"])
        console.print(Text(printable(_verdict(a, b, card["top_label"]))))
        return
    from softcal.cli.compare import show_pairs

    show_pairs(console, card)


def _verdict(a: str, b: str, found: dict[str, Any]) -> str:
    interval = f"{found['low']:+z.3f} to {found['high']:+z.3f}"
    level = f"{100 * found['level']:g}%"
    if found["low"] <= 0 <= found["high"]:
        return (
            f"These data do not show whether the top label of {a} or {b} is better calibrated: the "
            f"{level} interval of the difference, {interval}, includes 0."
        )
    better, worse = (a, b) if found["high"] < 0 else (b, a)
    return (
        f"The top label of {better} is better calibrated than that of {worse}: the {level} "
        f"interval of the difference, {interval}, excludes 0."
    )
