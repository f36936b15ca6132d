"""From a description to rows in roles: predictions, labels, weights, votes, segments, and checks.

A model's rows are a frame with the columns of `Roles`. Models that share rows share the frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals.stable.v2 as nw

from softcal._display import keyword
from softcal._validation.rules import (
    AT_MOST,
    CLASS_COUNT,
    HALF_STEP,
    LABEL,
    LOGIT,
    MISFIT,
    MISSING,
    NO_VOTE,
    UNIT,
    VOTES,
    WEIGHT,
    scaled_rules,
)
from softcal.exceptions import InputTypeError
from softcal.scanning.checks import NOT_A_NUMBER, Check, status
from softcal.scanning.data import Bounds, Column, Counts, Cut, Days, Shares
from softcal.scanning.expressions import added, scaled, when
from softcal.scanning.patterns import chosen_count
from softcal.scanning.source import RAW, Use, text_hint
from softcal.table.tableset import BOUNDS
from softcal.table.tableset import LABEL as LABEL_TARGET

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from softcal._validation.rules import Rule, Scale
    from softcal.scanning.data import Data, Segment
    from softcal.scanning.ranges import Ranges
    from softcal.scanning.source import Frame, Source


class Uses:
    """The columns of a source that are used, in order, and the checks of their texts."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.all: list[Use] = []
        self.texts: list[Check] = []

    def _use(self, name: str, as_: Any) -> int:
        self.source.refuse_unknown(name)
        use = Use(name, as_)
        if use not in self.all:
            self.all.append(use)
        return self.all.index(use)

    def single(self, name: str) -> nw.Expr:
        """Return a column of single values as it is."""
        found = self.value(name)
        if self.source.kind(name) == "list":
            message = f"{name} must hold single values: in {self.source.place} it holds lists."
            raise InputTypeError(message)
        return found

    def value(self, name: str) -> nw.Expr:
        """Return a column as it is."""
        self.source.refuse_unknown(name)
        self.source.kind(name)  # refuses nested values
        return nw.col(f"c{self._use(name, 'value')}")

    def text(self, name: str) -> nw.Expr:
        """Return a column as text."""
        found = self.single(name)
        return found if self.source.kind(name) == "text" else found.cast(nw.String)

    def number(self, name: str, *, percent: bool = False, what: str = "real numbers") -> nw.Expr:
        """Return a column as numbers; text of files, and percentages, are parsed."""
        self.source.refuse_unknown(name)
        kind = self.source.kind(name)
        parsed = self.source.parsed(name) and (percent or bool(self.source.files))
        if (kind == "text" and not parsed) or kind in ("list", "value"):
            self._refuse_type(name, kind, what)
        k = self._use(name, "percent" if percent and parsed else "number")
        if not parsed:
            return nw.col(f"c{k}").cast(nw.Float64)
        text = Check(
            name, nw.col(f"t{k}"), (NOT_A_NUMBER,), raw=nw.col(f"{RAW}{k}"), names=True,
            percent=percent,
        )  # fmt: skip
        if not any(check.name == name for check in self.texts):
            self.texts.append(text)
        return nw.col(f"c{k}")

    def _refuse_type(self, name: str, kind: str, what: str) -> None:
        held = {"list": "lists", "text": "text", "value": "other values"}[kind]
        message = (
            f"{name} must hold {what}: in {self.source.place} it holds {held}. Convert it to "
            f"float first.{text_hint() if kind == 'text' else ''}"
        )
        raise InputTypeError(message)


class Joined(NamedTuple):
    """Rows that are joined to votes on their items, and the single votes."""

    rows: Frame
    single: Frame | None
    dropped: int  # rows without votes, or without an item
    notes: tuple[str, ...]


class LabelRows(NamedTuple):
    """What a label needs: its name, its checks, its value for each target, and its votes.

    Of many classes, it has a value for each class, or the name of the class.
    """

    name: str
    checks: list[Check]
    y: tuple[nw.Expr, ...]
    votes: nw.Expr | None = None
    targets: tuple[str, ...] = (LABEL_TARGET,)
    of_votes: str | None = None  # what `about` calls the number of votes
    plain: Mapping[str, tuple[str, ...]] | None = None  # columns of y and m, if not converted
    words: nw.Expr | None = None  # the texts, of which one counts as 1
    positive: str | None = None
    joined: Joined | None = None


def label_rows(label: Any, uses: Uses) -> LabelRows:
    """Return what a label with one probability per row needs."""
    match label:
        case Column(name, scale, None):
            check, y = scaled_check(name, scale, uses, "label_scale")
            plain = {"y": (name,)} if scale == "probability" else None
            return LabelRows(name, [check], (y,), plain=plain)
        case Column(name, _, word):
            return _word_rows(name, word, uses)
        case Shares(name, votes, scale):
            own = label_rows(Column(name, scale), uses)
            return with_votes(own, votes, uses)
        case Counts(columns, positive):
            return _count_rows(columns, positive, uses)
        case Bounds(low, high, scale):
            return _bound_rows(low, high, scale, uses)
    message = f"unknown label: {label!r:.60}"
    raise InputTypeError(message)


def scaled_check(
    name: str, scale: Scale, uses: Uses, option: str, *, of: str = "", keep_logits: bool = False
) -> tuple[Check, nw.Expr]:
    """Return the check of a column of numbers on a scale, and the probabilities.

    `of` names all columns for which the scale is stated, if these are several.
    """
    x = uses.number(name, percent=scale == "percent")
    if keep_logits and scale == "logit":
        return Check(name, x, LOGIT), x
    rules = scaled_rules(LABEL if option == "label_scale" else UNIT, scale, option)
    return Check(name, x, rules, stated=stated(of or name, option, scale)), scaled(x, scale)


def stated(columns: str, option: str, scale: Scale) -> tuple[str, str] | None:
    """Return what a note says if the values make a scale unlikely."""
    return (columns, keyword(option, scale)) if scale in ("percent", "logit") else None


def _word_rows(name: str, word: str, uses: Uses) -> LabelRows:
    text = uses.text(name)
    own = [word, f"{word}.0"] if uses.source.kind(name) == "number" else [word]
    if uses.source.files and uses.source.kind(name) == "text" and word.lstrip("-").isdecimal():
        own = [word, f"{word}.0"]
    check = Check(name, text, (MISSING,), names=True)
    positive = (text == own[0]) | (text == own[-1])
    return LabelRows(name, [check], (when(positive, 1, 0),), words=text, positive=word)


def with_votes(own: LabelRows, votes: str | int, uses: Uses, *, named: bool = False) -> LabelRows:
    """Add the stated number of votes to a label; names of classes are no shares of them."""
    checks, plain = list(own.checks), None
    if isinstance(votes, str):
        m = uses.number(votes)
        checks.append(Check(votes, m, VOTES))
        plain = None if own.plain is None else {**own.plain, "m": (votes,)}
    else:
        m = nw.lit(float(votes))
    checks += [_misfit_check(own.name, y, votes, m) for y in own.y if not named]
    return own._replace(checks=checks, votes=m, of_votes=str(votes), plain=plain)


def _misfit_check(name: str, y: nw.Expr, votes: str | int, m: nw.Expr) -> Check:
    """Return the check that shares are whole numbers of the stated votes."""
    number = y * m
    off = (number + 0.5) % 1 - 0.5  # without `floor`, which Spark refuses for infinity
    value = when(off < 0, -off, off) - HALF_STEP * m - when(m == 1, 1, 0)
    return Check(f"{name} times {votes}", value, (MISFIT,), raw=y, shown=f"is {{}} times {votes}")


def _count_rows(columns: Any, positive: str | None, uses: Uses) -> LabelRows:
    chosen, names, label = chosen_count(columns, positive, uses.source.names)
    counts = {name: uses.number(name) for name in names}
    total = added(list(counts.values()))
    checks = [Check(name, x, CLASS_COUNT) for name, x in counts.items()]
    checks.append(Check(f"rows of {label}", total, (NO_VOTE,), shown="sums to {}"))
    return LabelRows(
        label, checks, (when(total >= 1, counts[chosen] / total, 0.0),), total, of_votes=label
    )


def _bound_rows(low: str, high: str, scale: Scale, uses: Uses) -> LabelRows:
    both = f"{low}, {high}"
    ends = [scaled_check(name, scale, uses, "label_scale", of=both) for name in (low, high)]
    rule: Rule = AT_MOST._replace(must=AT_MOST.must.format(high))
    (first, one), (second, two) = ends
    checks = [first] if low == high else [first, second]
    checks.append(Check(low, one - two, (rule,), raw=first.value, shown=f"is {{}}, above {high}"))
    # Not plain, because the kernel does not compare the ends.
    return LabelRows(f"{low} to {high}", checks, (one, two), targets=BOUNDS)


def segment_columns(by: Sequence[Segment], uses: Uses, ranges: Sequence[Ranges]) -> list[nw.Expr]:
    """Return the values of segments: of a column, the number of a range, or a day."""
    found = []
    for each in by:
        if isinstance(each, Cut):
            own = next(one for one in ranges if one.column == each.column)
            found.append(own.number_of(uses.number(each.column)))
        elif isinstance(each, Days):
            found.append(_days(each.column, uses))
        else:
            found.append(uses.single(each))
    return found


def _days(name: str, uses: Uses) -> nw.Expr:
    """Return a column of times by day, so that few values are left to convert."""
    found = uses.single(name)
    return found.dt.truncate("1d") if uses.source.is_time(name) else found


class Roles(NamedTuple):
    """Rows of a source with the columns p0, ..., y0, ..., w, m, by_0, ..., group, item, status."""

    source: Source
    uses: Sequence[Use]
    checks: list[Check]
    rows: Frame
    plain: Mapping[str, tuple[str, ...]] | None = None  # columns of roles, if not converted

    @property
    def parsed(self) -> bool:
        """Whether numbers are parsed from text, which takes longer than everything else."""
        return any(NOT_A_NUMBER in check.rules for check in self.checks)


def in_roles(
    uses: Uses,
    columns: dict[str, nw.Expr],
    checks: list[Check],
    *,
    drop: bool,
    frame: Frame | None = None,
    keep: nw.Expr | None = None,
) -> Roles:
    """Return the rows with expressions as columns, and with their status.

    `frame` are the rows of the source if they are joined to others; `keep` chooses some of them.
    """
    every = [*uses.texts, *checks]
    columns = {**columns, "status": status(every, drop=drop)}
    rows = uses.source.frame(uses.all) if frame is None else frame
    rows = rows if keep is None else rows.filter(keep)
    rows = rows.select(value.alias(name) for name, value in columns.items())
    return Roles(uses.source, uses.all, every, rows)


def common_columns(
    data: Data, uses: Uses, ranges: Sequence[Ranges]
) -> tuple[dict[str, nw.Expr], list[Check]]:
    """Return the columns that all labels share: weights, segments, and groups."""
    columns: dict[str, nw.Expr] = {}
    checks = []
    if data.sample_weight is not None:
        columns["w"] = uses.number(data.sample_weight)
        checks.append(Check(data.sample_weight, columns["w"], WEIGHT))
    segments = segment_columns(data.by, uses, ranges)
    columns |= {f"by_{k}": value for k, value in enumerate(segments)}
    for k, each in enumerate(data.by):
        if isinstance(each, Days):
            checks.append(Check(each.column, columns[f"by_{k}"], (MISSING,), names=True))
    if data.groups is not None:
        columns["group"] = uses.single(data.groups)
        checks.append(Check(data.groups, columns["group"], (MISSING,), names=True))
    return columns, checks
