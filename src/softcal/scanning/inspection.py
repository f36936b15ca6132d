"""Describe the columns of files, the roles that they could have, and options to try next.

Nothing here decides: each role and each set of options is a suggestion with its reason.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from softcal.exceptions import InputError, InputTypeError
from softcal.scanning.source import (
    MISSING_WORDS,
    Use,
    connected,
    naming_the_place,
    opened,
    quoted_text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcal.scanning.data import Files
    from softcal.scanning.source import Source

MOST_COLUMNS = 400
FEW = 20  # values
_SMALL = 100  # rows
_MOST_CLASSES = 100
_MOST_MODELS = 4
_LABEL = {
    "y", "label", "labels", "target", "outcome", "truth", "true", "gold", "share", "soft",
    "correct", "human", "acc", "accuracy", "passed", "success", "won", "event", "died",
}  # fmt: skip
_BARE = _LABEL - {"share"}  # names of a label that say nothing of what it is a label of
_PRED = {
    "p",
    "q",
    "pred",
    "preds",
    "prediction",
    "score",
    "confidence",
    "conf",
    "forecast",
    "estimate",
    "risk",
    "phat",
}
_CONFIDENCE = {"confidence", "conf", "probability", "forecast"}
_VOTES = {"n", "m", "votes", "nvotes", "readers", "raters", "annotators", "count", "ratings"}
_MODEL = {"model", "models", "provider", "llm", "system"}
_RATER = {"worker", "annotator", "rater", "reader", "scorer", "coder", "judge", "user"}
_WEIGHT, _PERCENT = {"weight", "weights", "w"}, {"percent", "pct"}
_GROUP = {
    "group",
    "patient",
    "hospital",
    "site",
    "subject",
    "record",
    "game",
    "document",
    "author",
    "race",
    "cluster",
}
_VOTE = {"vote", "rating", "answer", "stage", "label", "choice", "malignancy", "grade"}
_ITEM = {"item", "id", "idx", "index", "doc", "question", "sample", "task"}
_YES = ("yes", "y", "true", "t", "positive", "pos", "correct", "c", "pass", "passed", "1")


_ONCE = "count(DISTINCT (v0, v1)) = count(*)"


class Profile(NamedTuple):
    """What a column holds."""

    name: str
    kind: str
    filled: int
    missing: int
    different: int  # exact up to 20, else about
    values: list[str]  # the most frequent
    low: float | None = None  # of numbers
    high: float | None = None
    whole: bool = False
    percent: bool = False  # whether texts end in a percent sign
    days: bool = False
    roles: tuple[tuple[str, str], ...] = ()  # options, with reasons

    @property
    def words(self) -> set[str]:
        """The words of the name, in lower case."""
        parts = re.sub(r"([a-z])([A-Z])", r"\1 \2", self.name)
        return set(re.split(r"[\W_]+", parts.lower())) - {""}

    def has(self, option: str) -> bool:
        """Return whether a role is possible."""
        return option in dict(self.roles)

    @property
    def hint(self) -> int:
        """How much the name sounds like a label, minus how much it sounds like a prediction."""
        is_pred = bool(self.words & _PRED) or any(word.startswith("prob") for word in self.words)
        return len(self.words & _LABEL) - is_pred + (self.different == 2)


class Suggestion(NamedTuple):
    """A command, its options by their names in `Described`, and the reasons for them."""

    command: str
    options: dict[str, Any]
    reasons: list[str]


class Family(NamedTuple):
    """Columns of classes, and the option that they could be given to."""

    spec: str
    names: list[str]
    option: str

    @property
    def reason(self) -> str:
        """Why these are columns of classes."""
        what = "of counts" if self.option == "vote_columns" else "that sum to 1 in each row"
        return f"{len(self.names)} columns {what}"

    @property
    def classes(self) -> list[str]:
        """The names of the classes, if a pattern gives them."""
        before, _, after = self.spec.partition("*")
        return [name[len(before) : len(name) - len(after)] for name in self.names]


class Inspection(NamedTuple):
    """The columns of files, and what to try next."""

    files: Files
    place: str
    rows: int
    left_out: int  # columns
    columns: list[Profile]
    families: list[Family]
    suggestions: list[Suggestion]


def inspected(files: Files) -> Inspection:
    """Read files once, and return what their columns hold and could be."""
    source = opened(files, connected())
    names = [name for name in source.names if source.names.count(name) == 1][:MOST_COLUMNS]
    rows, columns, commas = _profiles(source, names)
    if commas and files.decimal == ".":
        return inspected(replace(files, decimal=","))
    columns = [each._replace(roles=_roles(each)) for each in columns]
    families = _families(source, columns)
    found = _suggestions(source, columns, families)
    left_out = len(source.names) - len(names)
    return Inspection(files, source.place, rows, left_out, columns, families, found)


def _profiles(source: Source, names: Sequence[str]) -> tuple[int, list[Profile], bool]:
    """Return the number of rows, the columns, and whether numbers have decimal commas."""
    uses, kinds, asked = [], [], ["count(*)"]
    words = ", ".join(map(quoted_text, MISSING_WORDS))
    for name in names:
        kinds.append(_kind(source, name))
        if kinds[-1] in ("list", "object"):  # which are not read
            asked += ["count(*)", "0", "[]", *["NULL"] * 7]
            continue
        is_text, has_numbers = kinds[-1] == "text", kinds[-1] != "value"
        v, x, bad = f"c{len(uses)}", f"CAST(c{len(uses) + 1} AS DOUBLE)", f"t{len(uses) + 1}"
        uses += [Use(name, "value"), Use(name, "percent" if has_numbers else "value")]
        there = f"{v} IS NOT NULL"
        there += f" AND trim({v}) NOT IN ({words})" if is_text else ""
        there += f" AND NOT isnan({x})" if kinds[-1] == "number" else ""
        asked += [f"{each} FILTER ({there})" for each in (
            "count(*)", f"approx_count_distinct({v})",
            f"approx_top_k(CAST({v} AS VARCHAR), {FEW + 1})",
        )]  # fmt: skip
        number = (f"min({x})", f"max({x})", f"bool_and({x} = floor({x}))")
        asked += [f"{each} FILTER ({there})" if has_numbers else "NULL" for each in number]
        text = (
            f"bool_or({bad})", f"bool_or({v} LIKE '%!%' ESCAPE '!')",
            rf"bool_and(regexp_matches({v}, '^[+-]?\d*,\d+ ?%?$'))",
            rf"bool_and(regexp_matches({v}, '^\d\d\d\d-\d\d-\d\d') "
            f"AND TRY_CAST(left({v}, 10) AS DATE) IS NOT NULL)",
        )  # fmt: skip
        asked += [f"{each} FILTER ({there})" if is_text else "NULL" for each in text]
    with naming_the_place(source.place):
        rows = source.frame(uses).to_native()
        total, *cells = rows.aggregate(", ".join(asked)).fetchall()[0]
    found = [cells[k : k + 10] for k in range(0, len(cells), 10)]
    every = zip(names, kinds, found, strict=True)
    typed = {*kinds} & {"number", "value"} != set()  # else a format that has texts only
    columns = [_profile(*each, total, typed=typed) for each in every]
    return total, columns, any(each[8] for each in found)


def _kind(source: Source, name: str) -> str:
    """Return what a column holds; "object" if it is not numbers, text, or lists of numbers."""
    import duckdb

    try:
        kind = source.kind(name)
        return "object" if kind == "list" and source.list_length(name) < 2 else kind
    except (InputError, InputTypeError, duckdb.Error):
        return "object"


def _profile(name: str, kind: str, found: Sequence[Any], rows: int, *, typed: bool) -> Profile:
    filled, different, values, low, high, whole, bad, percent, _, days = found
    values = values or []
    different = len(values) if len(values) <= FEW else min(max(different, FEW + 1), filled)
    if values and {*values} <= {"true", "false"}:
        kind = "true/false"
    elif kind == "text" and filled and not bad:
        kind = "numbers as text" if typed else "number"
    elif kind == "text":
        low = high = None
    if kind == "value" or days:
        kind, days, low, high = "date", True, None, None
    numeric = low is not None
    return Profile(name, kind, filled, rows - filled, different, values, low, high,
                   bool(numeric and whole), bool(numeric and percent), days)  # fmt: skip


def _roles(column: Profile) -> tuple[tuple[str, str], ...]:
    """Return the options that could name a column, with reasons."""
    low, high = (math.nan if x is None else x for x in (column.low, column.high))
    some, words, filled = column.different, column.words, column.filled
    is_word = column.low is None and not column.days
    inside = low >= 0 and high <= 1 and not column.percent
    discrete = (is_word or column.whole) and not column.days
    repeats = some < 0.9 * filled
    part = not inside and (not column.whole or column.percent or bool(words & _PERCENT))
    signs = "percent signs" if column.percent else "numbers from 0 to 100"
    rules = (
        (inside and some == 2 and column.whole, "label", "only 0 and 1"),
        (inside and some > 1 and not (some == 2 and column.whole), "label", "numbers in [0, 1]"),
        (is_word and some == 2, "positive", "two words: name one by --positive"),
        (inside and some > 2, "pred", "numbers in [0, 1]"),
        (part and low >= 0 and 10 < high <= 100, "percent", f"{signs}: --pred-scale percent"),
        (part and high <= 0, "logprob", "no number above 0: --pred-scale logprob"),
        (part and -50 < low < 0 < high < 50, "logit", "on both sides of 0: --pred-scale logit"),
        (column.kind == "list", "pred_columns", "lists: one number per class"),
        (column.whole and low >= 1 and high < 10_000 and repeats, "votes", "whole numbers from 1"),
        (bool(words & _MODEL) and is_word and 1 < some <= FEW, "model", "the name: models in rows"),
        (discrete and 1 < some <= FEW and some < filled, "by", "few different values"),
        (discrete and some > FEW and repeats, "group", "many values that repeat"),
        (discrete and some > FEW and repeats, "item", "many values that repeat"),
        (discrete and some > 1 and not repeats, "item", "a value of its own in almost every row"),
        (bool(words & _RATER) and discrete and repeats, "worker", "the name, and it repeats"),
        (bool(words & _WEIGHT) and low >= 0, "weight", "the name, and no negative number"),
        (column.days, "day", "dates"),
    )
    return tuple((option, why) for holds, option, why in rules if holds)


def _families(source: Source, columns: Sequence[Profile]) -> list[Family]:
    """Return columns of classes: numbers whose names differ in one part, and whose sum is 1."""
    grouped: dict[str, list[Profile]] = {}
    for each in columns:
        if each.low is None or each.low < 0 or each.different < 2 or {*each.name} & {*",*"}:
            continue
        parts = re.findall(r"prob(?=[a-z\d])|[^\W\d_]+|\d+|[\W_]+", each.name)
        for k, part in enumerate(parts):
            if part.isalnum() and len(parts) > 1:
                pattern = "".join((*parts[:k], "*", *parts[k + 1 :]))
                grouped.setdefault(pattern, []).append(each)
    found: list[tuple[Family, str]] = []
    for pattern, members in grouped.items():
        before, after = pattern.split("*")
        names = [each.name for each in members]
        counts = all(each.whole for each in members) and max(each.high or 0 for each in members) > 1
        if counts and not all(each.words & _VOTES for each in members):
            continue
        if 2 + (not counts) <= len(names) <= _MOST_CLASSES:
            matching = [n for n in source.names if n.startswith(before) and n.endswith(after)]
            spec = pattern if matching == names and len(names) > 2 else ",".join(names)
            total = " + ".join(f"n{k}" for k in range(len(names)))
            is_label = sum(each.hint for each in members) > 0
            option = "label_columns" if is_label else "pred_columns"
            family = Family(spec, names, "vote_columns" if counts else option)
            found.append((family, f"{total} > 0" if counts else f"abs({total} - 1) < 0.01"))
    good = _hold(source, [(family.names, rule) for family, rule in found])
    return [family for (family, _), holds in zip(found, good, strict=True) if holds]


def _hold(source: Source, rules: Sequence[tuple[Sequence[str], str]]) -> list[bool]:
    """Return which rules hold in all rows; n0, n1, ... are numbers of columns, v0, ... values."""
    if not rules:
        return []
    names = list(dict.fromkeys(name for columns, _ in rules for name in columns))
    asked = []
    for columns, rule in rules:
        place = {str(k): 2 * names.index(name) for k, name in enumerate(columns)}
        own = re.sub(r"\bv(\d+)", lambda m, at=place: f"c{at[m[1]]}", rule)
        own = re.sub(r"\bn(\d+)", lambda m, at=place: f"CAST(c{at[m[1]] + 1} AS DOUBLE)", own)
        asked.append(own if "count(" in own else f"bool_and({own})")
    uses = [use for name in names for use in (Use(name, "value"), Use(name, "percent"))]
    rows = source.frame(uses).to_native()
    return [bool(each) for each in rows.aggregate(", ".join(asked)).fetchall()[0]]


def _suggestions(
    source: Source, columns: Sequence[Profile], families: Sequence[Family]
) -> list[Suggestion]:
    """Return at most three commands to try, the most likely first."""
    found = _of_classes(columns, families)
    labels = [c for c in columns if c.has("label") and c.hint >= 0]
    words = [c for c in columns if c.has("positive") and not c.has("model")]
    labels += [c for c in words if c.words & _LABEL or not labels]
    named = [c for c in labels if c.words & _LABEL] or labels
    for label in sorted(named, key=lambda c: -c.hint)[:3]:
        found += _with_label(source, columns, families, label)
    if found:
        found[1:1] = _in_parts(found[0], columns)
    return found[:3]


def _of_classes(columns: Sequence[Profile], families: Sequence[Family]) -> list[Suggestion]:
    """Suggest predictions of many classes with a label of as many, or with a column of names."""
    preds = [each for each in families if each.option == "pred_columns"]
    labels = [each for each in families if each.option != "pred_columns"]
    for label in labels:
        fit = [each for each in preds if len(each.names) == len(label.names) > 2]
        if fit:
            models = [each.spec for each in fit]
            reasons = [f"{label.spec}: {label.reason}", f"{', '.join(models)}: {fit[0].reason}"]
            options = {label.option: label.spec, "pred_columns": models}
            return [Suggestion("score", options, reasons)]
    for each in preds:
        for column in columns:
            if set(column.values) == set(each.classes):
                options = {"label": column.name, "pred_columns": [each.spec]}
                reasons = [f"{column.name}: the names of the classes of {each.spec}"]
                return [Suggestion("score", options, [*reasons, f"{each.spec}: {each.reason}"])]
    return []


def _with_label(
    source: Source, columns: Sequence[Profile], families: Sequence[Family], label: Profile
) -> list[Suggestion]:
    """Suggest one probability per row with a label: what else is needed follows from the data."""
    scale, preds = _preds(columns, label, {name for each in families for name in each.names})
    if not preds:
        return []
    named = ", and the name" if label.words & _LABEL else ""
    why = dict(label.roles).get("label", "two words") + named
    options: dict[str, Any] = {"label": label.name, "pred": [each.name for each in preds]}
    reasons = [f"{label.name} as the label: {why}", *_in_rows(source, columns, options)]
    reasons[1:1] = [f"{', '.join(options['pred'])} as predictions: {dict(preds[0].roles)[scale]}"]
    if scale != "pred":
        options["pred_scale"] = scale
    if label.has("positive"):
        yes = next((word for word in label.values if word.lower() in _YES), label.values[-1])
        options["positive"] = yes
        other = next(word for word in label.values if word != yes)
        reasons.append(f"--positive is {yes!r}: change it if {other!r} counts as 1")
    votes = [c for c in columns if c.has("votes") and c.words & _VOTES and label.different > 2]
    whole = "abs(n0 * n1 - round(n0 * n1)) <= 0.005 * n1"
    holds = _hold(source, [((label.name, c.name), whole) for c in votes])
    for column, fits in zip(votes, holds, strict=True):
        if fits and "votes" not in options:
            options["votes"] = column.name
            reasons.append(f"{column.name} as numbers of votes: {label.name} times it is whole")
    lacking = [
        c.name for c in (label, *preds) if c.missing and (c is label or c.name in options["pred"])
    ]
    if lacking:
        options["drop_missing"] = True
        reasons.append(f"--drop-missing leaves out rows without {' or '.join(lacking)}")
    return [Suggestion("score", options, reasons)]


def _preds(
    columns: Sequence[Profile], label: Profile, classes: set[str]
) -> tuple[str, list[Profile]]:
    """Return the likely predictions for a label, and their role, which is a scale or `pred`."""
    for scale in ("pred", "percent", "logit", "logprob"):
        found = [
            c for c in columns
            if c.has(scale) and c is not label and c.hint <= 0 and c.name not in classes
            and (c.different > FEW or c.hint < 0 or c.filled <= _SMALL)
        ]  # fmt: skip
        paired = [c for c in found if c.words & (label.words - _BARE)]
        named = [c for c in found if c.hint < 0 or c.percent or scale in c.words]
        named = [c for c in named if c.words & _CONFIDENCE] or named
        chosen = paired or named or (found if scale == "pred" or len(found) == 1 else [])
        if chosen:
            return scale, chosen[:_MOST_MODELS]
    return "", []


def _in_rows(source: Source, columns: Sequence[Profile], options: dict[str, Any]) -> list[str]:
    """Add the options of models in rows, if a column names models, and return the reasons."""
    model = next((c for c in columns if c.has("model") and c.name != options["label"]), None)
    if model is None:
        return []
    options["model"], options["pred"] = model.name, [min(options["pred"], key=len)]
    reasons = [f"{model.name} as the model: {dict(model.roles)['model']}"]
    items = [c for c in columns if c.words & _ITEM and 1 < c.different < 0.9 * c.filled]
    once = _hold(source, [((c.name, model.name), _ONCE) for c in items])
    for item, alone in sorted(zip(items, once, strict=True), key=_fit):
        options["item"] = item.name
        reasons.append(f"{item.name} as the item, by its name: models are compared by item")
        if not alone:
            options["epochs"] = True
            reasons.append("--epochs, because an item has several rows of a model")
        break
    return reasons


def _fit(item: tuple[Profile, bool]) -> tuple[bool, int]:
    """Prefer items that have one row of each model, and short names."""
    return not item[1], len(item[0].name)


def _in_parts(first: Suggestion, columns: Sequence[Profile]) -> list[Suggestion]:
    """Suggest the first options with segments and groups, and over days."""
    used = {name for each in first.options.values() for name in
            (each if isinstance(each, list) else [each])}  # fmt: skip
    free = [c for c in columns if c.name not in used]
    by = next((c for c in free if c.has("by") and c.low is None), None)
    group = next((c for c in free if c.has("group") and c.words & _GROUP), None)
    day = next((c for c in free if c.has("day") and "epochs" not in first.options), None)
    found, more, reasons = [], {}, []
    if by is not None:
        more["by"], reasons = [by.name], [f"{by.name} as segments: {dict(by.roles)['by']}"]
    if group is not None:
        more["group"] = group.name
        reasons.append(f"{group.name} as groups: values that repeat, and the name")
    if more:
        found.append(Suggestion("score", first.options | more, reasons))
    if day is not None:
        reasons = [f"{day.name} as the day: dates"]
        found.append(Suggestion("watch", first.options | {"day": day.name}, reasons))
    return found


def joined(rows: Inspection, votes: Inspection) -> list[Suggestion]:
    """Suggest rows of predictions with a file of raw votes on the same items."""
    items = {c.name for c in rows.columns} & {c.name for c in votes.columns}
    item = next((c for c in votes.columns if c.name in items and c.different < c.filled), None)
    worker = next((c for c in votes.columns if c.has("worker")), None)
    vote = next((c for c in votes.columns if c.different == 2 and c is not worker), None)
    preds = [c for c in rows.columns if c.has("pred")]
    if item is None or vote is None or not preds:
        return []
    yes = next((word for word in vote.values if word.lower() in _YES), vote.values[-1])
    options = {"pred": [c.name for c in preds], "item": item.name, "vote": vote.name,
               "positive": yes}  # fmt: skip
    if worker is not None:
        options["worker"] = worker.name
    options["votes_file"] = votes.files.paths
    reasons = [
        f"{item.name} as the item: both files have it",
        f"{vote.name} as the vote: two values",
    ]
    return [Suggestion("score", options, reasons)]
