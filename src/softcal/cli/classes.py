"""`score` and `compare` of many classes, whose labels and predictions take several columns."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.text import Text

from softcal import terminal
from softcal._display import printable
from softcal.cli.options import (
    Format,
    chance,
    infinite_loss_text,
    loss_text,
    print_json,
    rows_text,
    without_infinities,
)
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt
    from rich.console import Console

LabelColumns = Annotated[
    str | None,
    typer.Option(help="Many classes: columns of label shares, a,b,c or PREFIX*.", metavar="COLS"),
]
VoteColumns = Annotated[
    str | None,
    typer.Option(help="Many classes: columns of counts of votes instead.", metavar="COLS"),
]
PredColumns = Annotated[
    list[str] | None,
    typer.Option(help="Many classes: columns of predictions; once per model.", metavar="COLS"),
]


class Chosen(NamedTuple):
    """What the options say about the columns of many classes."""

    label_columns: str | None
    vote_columns: str | None
    pred_columns: list[str] | None

    @property
    def is_asked_for(self) -> bool:
        """Whether there are many classes at all."""
        return any(self)

    def refuse_with(self, others: Mapping[str, object]) -> None:
        """Refuse options that are for one probability per row."""
        if self.vote_columns and not self.pred_columns and others.get("--pred"):
            message = (
                "--vote-columns goes with --pred-columns, one column of predictions per class. For "
                "one prediction per row make a column of the share of votes and one of their "
                "number: --label SHARE --votes NUMBER."
            )
            raise InputError(message)
        for name, value in others.items():
            if value:
                message = f"{name} is for one probability per row: leave it out with many classes."
                raise InputError(message)


class Loaded(NamedTuple):
    """Labels, predictions of each model, and weights, as the library takes them."""

    y_true: npt.ArrayLike
    predictions: dict[str, npt.ArrayLike]
    sample_weight: npt.ArrayLike | None
    label: str
    classes: tuple[str, ...]
    columns: dict[str, tuple[str, ...]]  # of each model, in the order of the classes
    n: int  # rows with weight
    without_weight: int | None  # and how many more; None where all count the same


def score_classes(
    data: Path, chosen: Chosen, *, bins: int, weight: str | None, level: float, format_: Format
) -> None:
    """Score models of many classes by all that can be asked of them."""
    from softcal.inference.intervals import ABOVE_ITS_INTERVAL, is_above

    loaded = load(data, chosen, weight)
    models = _models(loaded, bins, level)
    card = {**_head(loaded, bins), "models": models}
    if format_ is Format.JSON:
        print_json(card)
        return
    console = terminal.console()
    _show_models(console, card, data)
    above = any(is_above(model["top_label_smece"], model["high"]) for model in models)
    console.print(f"{_HOW_TO_READ}{f' {ABOVE_ITS_INTERVAL}' * above}", style="dim")


def compare_classes(
    data: Path, chosen: Chosen, *, bins: int, weight: str | None, level: float, format_: Format
) -> None:
    """Compare two models of many classes, by all of that and by the predicted class's interval."""
    from softcal.inference.comparison import compare

    loaded = load(data, chosen, weight)
    if len(loaded.predictions) != 2:
        message = "give --pred-columns twice, with different columns, to compare two models."
        raise InputError(message)
    comparison = compare(
        loaded.y_true,
        loaded.predictions,
        bins=bins,
        sample_weight=loaded.sample_weight,
        level=level,
    )
    found, models = asdict(comparison), _models(loaded, bins, level)
    del found["a"], found["b"]  # which `models` has
    card = {**_head(loaded, bins), "models": models, "top_label": without_infinities(found)}
    if format_ is Format.JSON:
        print_json(card)
        return
    console = terminal.console()
    _show_models(console, card, data)
    a, b = loaded.predictions
    console.print(Text(printable(_verdict(a, b, found))))


def load(data: Path, chosen: Chosen, weight: str | None) -> Loaded:
    """Read the columns of many classes."""
    import numpy as np

    from softcal._validation.arrays import column
    from softcal._validation.inputs import Names
    from softcal._validation.multiclass import class_rows
    from softcal._validation.votes import Votes
    from softcal.sources.class_columns import Present, class_roles, names_of_columns
    from softcal.sources.files import read_columns

    label = chosen.vote_columns or chosen.label_columns
    if (chosen.vote_columns is None) == (chosen.label_columns is None) or label is None:
        message = "give one of --label-columns (shares) and --vote-columns (counts)."
        raise InputError(message)
    if not chosen.pred_columns:
        message = "Missing option '--pred-columns'."
        raise InputError(message)
    for spec in chosen.pred_columns:
        if chosen.pred_columns.count(spec) > 1:
            message = f"each model must be named once: --pred-columns {spec!r} is given twice."
            raise InputError(message)
    present = Present(names_of_columns(data), lambda _name: None)
    specs = {spec: spec for spec in chosen.pred_columns}
    found = class_roles(label, specs, present, counts=chosen.vote_columns is not None)
    models = dict(zip(specs, found.models, strict=True))
    wanted = [*found.label, *(name for names in models.values() for name in names)]
    columns = read_columns(data, wanted if weight is None else [*wanted, weight])

    def matrix(names: tuple[str, ...]) -> npt.NDArray[Any]:
        return np.column_stack([column(columns[name], name) for name in names])

    classes = found.names
    y_true: npt.ArrayLike = matrix(found.label)
    if chosen.vote_columns is not None:
        y_true = Votes(y_true, classes=classes)
    predictions: dict[str, npt.ArrayLike] = {spec: matrix(names) for spec, names in models.items()}
    w = None if weight is None else columns[weight]
    for spec, y_prob in predictions.items():  # so that messages name the columns as the user does
        class_rows(y_true, y_prob, w, names=Names(label, spec, weight or "")).check()
    rows = len(columns[wanted[0]])
    n = rows if w is None else int(np.count_nonzero(w))
    without = None if w is None else rows - n
    return Loaded(y_true, predictions, w, label, classes, models, n, without)


def _models(loaded: Loaded, bins: int, level: float) -> list[dict[str, Any]]:
    from softcal.cli.display import class_scorecard

    return class_scorecard(
        loaded.y_true,
        loaded.predictions,
        loaded.classes,
        bins=bins,
        sample_weight=loaded.sample_weight,
        level=level,
    )


def _head(loaded: Loaded, bins: int) -> dict[str, Any]:
    none = loaded.without_weight
    weight = {} if none is None else {"rows_without_weight": none}
    return {"n": loaded.n, **weight, "bins": bins, "label": loaded.label, "classes": loaded.classes}


def _title(card: dict[str, Any], data: Path) -> str:
    return (
        f"{data.name}: {rows_text(card)}, label {card['label']}, {len(card['classes'])} classes, "
        f"{card['bins']} bins"
    )


def _show_models(console: Console, card: dict[str, Any], data: Path) -> None:
    """Print the scores, a few models to a table, so that no number is cut in 80 columns."""
    models, title = card["models"], _title(card, data)
    for start in range(0, len(models), _MODELS_PER_TABLE):
        some = models[start : start + _MODELS_PER_TABLE]
        terminal.print_titled(console, title, _models_side_by_side(some))
    for model in models:
        if infinite := model["rows_of_infinite_log_loss"]:
            console.print(Text(infinite_loss_text(model["pred"], infinite, card["n"])))


_MODELS_PER_TABLE = 4

_ROWS = {
    "top-label SMECE": ("top_label_smece", ".4f"),
    "classwise SMECE": ("classwise_smece", ".4f"),
    "DistCE": ("dist_ce", ".4f"),
    "  floor by vote noise": ("dist_ce_floor", ".4f"),
    "EntCE": ("ent_ce", ".4f"),
    "  signed": ("ent_ce_signed", "+.4f"),
    "RankCS": ("rank_cs", ".4f"),
    "Brier": ("brier", ".4f"),
    "  without vote noise": ("brier_without_vote_noise", ".4f"),
}

_HOW_TO_READ = (
    "Top-label: the predicted class's probability against the label's mass on that class. "
    "Classwise: each class against the rest, averaged. DistCE, EntCE, Brier, KL: item by item, so "
    "the noise of few votes counts too. RankCS: share of items in the right order; higher is "
    "better, of all others lower."
)


def _models_side_by_side(models: list[dict[str, Any]]) -> Any:
    table = terminal.table("", *(printable(model["pred"]) for model in models))
    table.columns[0].no_wrap = True  # the names of models give way
    for name, (key, form) in _ROWS.items():
        values = [model[key] for model in models]
        if any(value is not None for value in values):
            table.add_row(name, *("-" if v is None else f"{v:{form}}" for v in values))
        if key == "top_label_smece":
            level = f"  {100 * models[0]['level']:g}% interval"
            table.add_row(level, *(f"{m['low']:.3f}-{m['high']:.3f}" for m in models))
            table.add_row("  p-value", *(chance(model["pvalue"]) for model in models))
    for name, key in (("log loss", "log_loss"), ("KL divergence", "kl_divergence")):
        table.add_row(name, *(loss_text(model[key]) for model in models))
    return table


def _verdict(a: str, b: str, found: dict[str, Any]) -> str:
    interval = f"{found['low']:+.3f} to {found['high']:+.3f}"
    level = f"{100 * found['level']:g}%"
    if found["low"] <= 0 <= found["high"]:
        return (
            f"These data cannot tell whose top label is better calibrated, {a}'s or {b}'s: the "
            f"{level} interval of the difference, {interval}, contains 0."
        )
    better, worse = (a, b) if found["high"] < 0 else (b, a)
    return (
        f"The top label of {better} is better calibrated than that of {worse}: the {level} "
        f"interval of the difference, {interval}, leaves out 0."
    )
