"""Describe the columns of files, the roles that they could have, and options to try next.

Nothing here decides: each role and each set of options is a suggestion with its reason.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import duckdb

from softcal.exceptions import InputError
from softcal.scanning.source import MISSING_WORDS, Session, Use, answered, opened, quoted_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcal.scanning.data import Files
    from softcal.scanning.source import Source

MOST_COLUMNS, FEW = 400, 20
_NAMES = {
    "label": r"y|labels?|target|outcome|truth|true|gold|share|soft|correct|human|acc|success|died",
    "pred": r"p|q|prob.*|pred.*|score|conf|confidence|forecast|risk",
    "sure": r"confidence|probability|forecast",
    "votes": r"n|m|n?votes|readers|raters|annotators|ratings",
    "model": r"models?|provider|llm|system",
    "worker": r"worker|annotator|rater|reader|scorer|judge",
    "group": r"group|patient|hospital|site|subject|record|game|document|race",
    "item": r"item|id|idx|index|doc|question|sample",
    "weight": r"w|weights?",
    "percent": r"percent|pct",
    "logit": "logits?",
    "logprob": "logprobs?",
}
"""Words in the names of columns that have a role, as patterns."""

Classes: TypeAlias = "dict[str, tuple[str, list[str]]]"
"""Columns of classes: the option and the columns of each pattern."""

_PREDS = "pred_columns"
_YES = ("yes", "y", "true", "t", "positive", "pos", "correct", "c", "pass", "passed", "1")
_BARE = {"y", "label", "target", "outcome", "truth", "true", "gold", "soft", "human"}
_WHOLE = "bool_and(abs(n0 * n1 - round(n0 * n1)) <= 0.005 * n1)"
_ONCE = "count(DISTINCT (v0, v1)) = count(*)"
_SAME = "count(DISTINCT (v0, v1)) = count(DISTINCT (v0, v1, v2))"


class Profile(NamedTuple):
    """What a column holds, and the options that could name it, with reasons."""

    name: str
    kind: str
    filled: int
    missing: int
    different: int  # exact up to 20, else an estimate
    examples: list[str]  # the most frequent values, up to 21
    low: float | None = None  # of numbers
    high: float | None = None
    whole: bool = False
    percent: bool = False  # whether texts end in a percent sign
    roles: tuple[tuple[str, str], ...] = ()

    @property
    def words(self) -> set[str]:
        """The words of the name, in lower case."""
        return set(re.findall(r"[^\W_]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", self.name).lower()))

    def named(self, role: str) -> bool:
        """Return whether a word of the name suggests a role."""
        return any(re.fullmatch(_NAMES[role], word) for word in self.words)

    def has(self, role: str) -> bool:
        """Return whether a role is possible."""
        return any(role == option for option, _ in self.roles)

    @property
    def yes(self) -> str | None:
        """The value that answers yes, if one does."""
        return next((each for each in self.examples if each.lower() in _YES), None)

    @property
    def hint(self) -> int:
        """How much a column looks like a label, minus how much it looks like a prediction."""
        return self.named("label") - self.named("pred") + (self.different == 2)


class Suggestion(NamedTuple):
    """A command and its options, by their names in `Described`, and the reasons for them."""

    command: str
    options: dict[str, Any]
    reasons: list[str]


class Inspection(NamedTuple):
    """The columns of files, and what to try next."""

    files: Files
    place: str
    rows: int
    names: list[str]
    columns: list[Profile]
    classes: Classes
    suggestions: list[Suggestion]


def inspected(files: Files) -> Inspection:
    """Read files once, and return what their columns hold and could be."""
    con = Session()
    if files.sep is None and _width(files) < 2:  # also if a file cannot be read
        files = max((files, *(replace(files, sep=mark) for mark in ";\t")), key=_width)
    return answered(con, lambda: _inspected(files, con))


def _inspected(files: Files, con: Session) -> Inspection:
    source = opened(files, con)
    names = [name for name in source.names if source.names.count(name) == 1][:MOST_COLUMNS]
    rows, columns, commas = _profiles(source, names)
    if commas and files.decimal == ".":
        return _inspected(replace(files, decimal=","), con)
    classes = _classes(source, columns)
    found = _suggestions(source, columns, classes)
    return Inspection(files, source.place, rows, source.names, columns, classes, found)


def _width(files: Files) -> int:
    """Return the number of columns; 0 if files cannot be read."""
    try:
        return len(opened(files, Session()).names)
    except InputError:
        return 0


def _profiles(source: Source, names: Sequence[str]) -> tuple[int, list[Profile], bool]:
    """Return the number of rows, the columns, and whether numbers have decimal commas."""
    uses: list[Use] = []
    asked = ["count(*)"]
    kinds = [_kind(source, name) for name in names]
    words = ", ".join(map(quoted_text, MISSING_WORDS))
    for name, kind in zip(names, kinds, strict=True):
        v, x, t = f"c{len(uses)}", f"CAST(c{len(uses) + 1} AS DOUBLE)", f"t{len(uses) + 1}"
        there = f"trim({v}) NOT IN ({words})" if kind == "text" else f"{v} IS NOT NULL"
        there += f" AND NOT isnan({x})" if kind == "number" else ""
        every = ["count(*)", f"approx_count_distinct({v})", f"approx_top_k({v}::TEXT, {FEW + 1})"]
        number = [f"min({x})", f"max({x})", f"bool_and({x} = floor({x}))"]
        text = [
            f"bool_or({t})", rf"bool_or({v} LIKE '%!%' ESCAPE '!')",
            rf"bool_and(regexp_matches({v}, '^[+-]?\d*,\d+ ?%?$'))",
            f"bool_and({v}[5:5] = '-' AND TRY_CAST({v}[:10] AS DATE) IS NOT NULL)",
        ]  # fmt: skip
        every += number if kind in ("text", "number") else ["NULL"] * 3
        every += text if kind == "text" else ["NULL"] * 4
        if kind in ("list", "object"):  # which are not read
            asked += ["count(*)", "0", *["NULL"] * 8]
            continue
        uses += [Use(name, "value"), Use(name, "value" if kind == "value" else "percent")]
        asked += [f"{each} FILTER ({there})" if each != "NULL" else each for each in every]
    total, *cells = source.frame(uses).to_native().aggregate(", ".join(asked)).fetchall()[0]
    found = [cells[k : k + 10] for k in range(0, len(cells), 10)]
    typed = bool({*kinds} & {"number", "value"})  # else of a format that has texts only
    columns = [
        _profile(name, kind, part, total, typed=typed)
        for name, kind, part in zip(names, kinds, found, strict=True)
    ]
    return total, columns, any(each[8] for each in found)


def _kind(source: Source, name: str) -> str:
    """Return what a column holds; "object" if it is not numbers, text, or lists of numbers."""
    try:
        kind = source.kind(name)
        return "object" if kind == "list" and source.list_length(name) < 2 else kind
    except (InputError, TypeError, duckdb.Error):
        return "object"


def _profile(name: str, kind: str, found: Sequence[Any], rows: int, *, typed: bool) -> Profile:
    filled, different, values, low, high, whole, bad, percent, _, days = found
    values = values or []
    different = len(values) if len(values) <= FEW else min(max(different, FEW + 1), filled)
    if values and {*values} <= {"true", "false"}:
        kind = "true/false"
    elif days or (kind == "value" and re.match(r"\d{4}-\d\d-\d\d", "".join(values[:1]))):
        kind, low, high = "date", None, None
    elif kind == "value":
        kind = "text"
    elif kind == "text" and filled and not bad:
        kind = "numbers as text" if typed else "number"
    elif kind == "text":
        low = high = None
    signs = bool(percent) and low is not None
    whole = bool(whole) and low is not None
    missing = rows - filled
    column = Profile(name, kind, filled, missing, different, values, low, high, whole, signs)
    return column._replace(roles=_roles(column))


def _roles(column: Profile) -> tuple[tuple[str, str], ...]:
    """Return the options that could name a column, with reasons."""
    low, high = (math.nan if x is None else x for x in (column.low, column.high))
    some, is_word, by_name = column.different, column.kind == "text", column.named
    inside = low >= 0 and high <= 1 and not column.percent
    binary = inside and column.whole and some == 2
    discrete, repeats = is_word or column.whole, some < 0.8 * column.filled
    scaled = not inside and (not column.whole or column.percent or by_name("percent"))
    signs = "percent signs" if column.percent else "numbers from 0 to 100"
    rules = (
        (binary, "label", "only 0 and 1"),
        (inside and some > 1 and not binary, "label", "numbers in [0, 1]"),
        (is_word and some == 2, "positive", "two words, of which --positive names one"),
        (inside and some > 2, "pred", "numbers in [0, 1]"),
        (scaled and low >= 0 and 10 < high <= 100, "percent", f"{signs}: --pred-scale percent"),
        (scaled and high <= 0, "logprob", "none above 0: --pred-scale logprob"),
        (scaled and -50 < low < 0 < high < 50, "logit", "around 0: --pred-scale logit"),
        (column.kind == "list", "pred_columns", "lists: one number per class"),
        (column.whole and low >= 1 < high <= 1000 and repeats, "votes", "whole numbers from 1"),
        (by_name("model") and is_word and 1 < some <= FEW, "model", "the name, and few values"),
        (discrete and 1 < some <= FEW and repeats, "by", "few different values"),
        (discrete and some > FEW and repeats, "group", "many values that repeat"),
        (discrete and some > FEW and repeats, "item", "many values that repeat"),
        (discrete and some > 1 and not repeats, "item", "another value in almost every row"),
        (by_name("worker") and discrete and repeats, "worker", "the name, and values that repeat"),
        (by_name("weight") and low >= 0, "weight", "the name, and no negative number"),
        (column.kind == "date" and some > 1, "day", "dates"),
    )
    return tuple((option, why) for holds, option, why in rules if holds)


def _classes(source: Source, columns: Sequence[Profile]) -> Classes:
    """Return columns of classes: numbers whose names differ in one part, and whose sum is 1."""
    grouped: dict[str, list[Profile]] = {}
    for each in columns:
        if each.low is None or each.low < 0 or each.different < 2 or {*each.name} & {*",*"}:
            continue
        split = r"[\W_]+|[^\W_]+" if re.search(r"[\W_]", each.name) else r"^prob|\d+|\D+"
        parts = re.findall(split, each.name)
        for k, part in enumerate(parts):
            if part.isalnum() and len(parts) > 1:
                grouped.setdefault("".join((*parts[:k], "*", *parts[k + 1 :])), []).append(each)
    found, rules = [], []
    for pattern, members in grouped.items():
        names = [each.name for each in members]
        counts = all(each.whole for each in members) and max(each.high or 0 for each in members) > 1
        if not 3 <= len(names) <= 100 or (counts and not all(c.named("votes") for c in members)):
            continue
        before, after = pattern.split("*")
        matching = [n for n in source.names if n.startswith(before) and n.endswith(after)]
        total = " + ".join(f"n{k}" for k in range(len(names)))
        rules.append(
            (names, f"bool_and({total} > 0)" if counts else f"bool_and(abs({total} - 1) < 0.01)")
        )
        option = "label_columns" if sum(each.hint for each in members) > 0 else "pred_columns"
        spec = pattern if matching == names else ",".join(names)
        found.append((spec, ("vote_columns" if counts else option, names)))
    return {
        spec: each for (spec, each), holds in zip(found, _hold(source, rules), strict=True) if holds
    }


def _hold(source: Source, rules: Sequence[tuple[Sequence[str], str]]) -> list[bool]:
    """Return which rules hold; n0, n1, ... are numbers of columns, and v0, v1, ... values."""
    names = list(dict.fromkeys(name for columns, _ in rules for name in columns))
    uses = [use for name in names for use in (Use(name, "value"), Use(name, "percent"))]
    asked = []
    for columns, rule in rules:
        at = {str(k): 2 * names.index(name) for k, name in enumerate(columns)}
        for mark, (k, place) in ((mark, each) for mark in "vn" for each in at.items()):
            value = f"c{place}" if mark == "v" else f"CAST(c{place + 1} AS DOUBLE)"
            rule = re.sub(rf"\b{mark}{k}\b", value, rule)  # noqa: PLW2901
        asked.append(rule)
    rows = source.frame(uses).to_native() if rules else None
    return [bool(x) for x in rows.aggregate(", ".join(asked)).fetchall()[0]] if rows else []


def _suggestions(source: Source, columns: Sequence[Profile], classes: Classes) -> list[Suggestion]:
    """Return at most three commands to try, the most likely first."""
    found = []
    for spec, (option, names) in classes.items():
        fit = [s for s, each in classes.items() if each[0] == _PREDS and len(each[1]) == len(names)]
        if option != _PREDS and fit:
            reasons = [f"{each}: {classes_text(*classes[each])}" for each in (spec, *fit)]
            found.append(Suggestion("score", {option: spec, _PREDS: fit}, reasons))
    free = [c for c in columns if not any(c.name in names for _, names in classes.values())]
    labels = [c for c in free if c.has("label") and c.hint >= 0]
    labels += [c for c in free if c.has("positive") and (c.named("label") or c.yes)]
    labels = [c for c in labels if c.named("label") and not c.has("model")] or labels
    for label in sorted(labels, key=lambda c: -c.hint)[:3]:
        found += _with_label(source, free, label)
    if found:
        found[1:1] = _in_parts(found[0], free)
    return found[:3]


def _with_label(source: Source, columns: Sequence[Profile], label: Profile) -> list[Suggestion]:
    """Suggest one probability per row, and what else the label needs."""
    scale, preds = _preds(columns, label)
    if not preds:
        return []
    options: dict[str, Any] = {"label": label.name, "pred": [c.name for c in preds]}
    reasons = _models_in_rows(source, columns, options)
    names = ", ".join(options["pred"])
    by_name = ", and the name" if label.named("label") else ""
    reasons[:0] = [f"{label.name} as the label: {label.roles[0][1]}{by_name}",
                   f"{names} as predictions: {dict(preds[0].roles)[scale]}"]  # fmt: skip
    if scale != "pred":
        options["pred_scale"] = scale
    if label.has("positive"):
        options["positive"] = label.yes or label.examples[-1]
        reasons.append(f"{options['positive']!r} counts as 1: change it if the other word does")
    votes = [c.name for c in columns if c.has("votes") and c.named("votes") and label.different > 2]
    fits = _hold(source, [((label.name, name), _WHOLE) for name in votes])
    for name in [name for name, fit in zip(votes, fits, strict=True) if fit][:1]:
        options["votes"] = name
        reasons.append(f"{name} as numbers of votes: {label.name} times it is whole")
    if any(c.missing for c in (label, *preds)):
        options["drop_missing"] = True
        reasons.append("--drop-missing leaves out rows in which one of these is missing")
    return [Suggestion("score", options, reasons)]


def _preds(columns: Sequence[Profile], label: Profile) -> tuple[str, list[Profile]]:
    """Return the likely predictions for a label, at most four, and their role: pred or a scale."""
    for scale in ("pred", "percent", "logit", "logprob"):
        found = [c for c in columns if c.has(scale) and c is not label and c.hint <= 0]
        found = [c for c in found if c.different > FEW or c.hint < 0 or c.filled <= 100]
        paired = [c for c in found if c.words & (label.words - _BARE)]
        named = [
            c for c in found if c.hint < 0 or c.percent or (scale != "pred" and c.named(scale))
        ]
        named = [c for c in named if c.named("sure")] or named
        chosen = paired or named or (found if scale == "pred" or len(found) == 1 else [])
        if chosen:
            return scale, chosen[:4]
    return "", []


def _models_in_rows(
    source: Source, columns: Sequence[Profile], options: dict[str, Any]
) -> list[str]:
    """Add options if a column names models, and return the reasons."""
    model = next((c.name for c in columns if c.has("model") and c.name != options["label"]), None)
    if model is None:
        return []
    options |= {"model": model, "pred": [min(options["pred"], key=len)]}
    items = [c.name for c in columns if c.named("item") and 1 < c.different < 0.8 * c.filled]
    rows = [(item, model, options["pred"][0]) for item in items]
    once, same = (_hold(source, [(names, rule) for names in rows]) for rule in (_ONCE, _SAME))
    fit = sorted(zip(items, once, same, strict=True), key=lambda x: (not x[1], not x[2], len(x[0])))
    reasons = [f"{model} as the model: the name, and few values"]
    for item, alone, repeated in fit[:1]:
        more = {"item": item} if alone else {"item": item, "epochs": True}
        options |= more if alone or repeated else {"group": item}
        again = "" if alone else ", and it has several rows of a model"
        reasons.append(f"{item} as the item: the name{again}")
    return reasons


def _in_parts(first: Suggestion, columns: Sequence[Profile]) -> list[Suggestion]:
    """Suggest the first options with segments and groups, and over days."""
    free = [c for c in columns if c.name not in str(first.options)]
    by = [c.name for c in free if c.has("by") and c.kind == "text"][:1]
    group = [c.name for c in free if c.has("group") and c.named("group")]
    group = [] if "group" in first.options else group[:1]
    day = [c.name for c in free if c.has("day") and "label" in first.options][:1]
    parts = ({"by": by} if by else {}) | ({"group": group[0]} if group else {})
    why = [f"{name} as segments: few different values" for name in by]
    why += [f"{name} as groups: the name, and values that repeat" for name in group]
    found = [Suggestion("score", first.options | parts, why)] if parts else []
    over = [Suggestion("watch", first.options | {"day": name}, [f"{name}: dates"]) for name in day]
    return found + ([] if "epochs" in first.options else over)


def classes_text(option: str, names: Sequence[str]) -> str:
    """Return why columns could be of classes."""
    return f"{len(names)} columns {'of counts' if option == 'vote_columns' else 'that sum to 1'}"
