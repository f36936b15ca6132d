"""Rules for values as expressions, and messages: the rule, how many break it, the first row."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import narwhals.stable.v2 as nw

from softcal._validation.inputs import refuse_changed
from softcal._validation.rules import DROPPED, MISSING, NOWHERE, Rule, Spread
from softcal.exceptions import InputError
from softcal.scanning.expressions import in_parts
from softcal.scanning.numbers import number_hint
from softcal.scanning.source import AT, ROW_BITS, Here, collected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcal.scanning.source import Frame, Source, Use

COUNTS, BROKEN, GONE = 0, -1, -2
"""The status of a row: it counts, a value breaks a rule, or it is dropped for a missing one."""

NOT_A_NUMBER = Rule("must hold numbers", lambda x: x == True)  # noqa: E712


class Check(NamedTuple):
    """What a rule is about: an expression of a source's columns, named as in messages."""

    name: str
    value: nw.Expr
    rules: tuple[Rule, ...]
    shown: str = "is {}"  # how a message shows the first value
    raw: nw.Expr | None = None  # what it shows, if not the value
    names: bool = False  # whether the values are names, which have no range
    percent: bool = False  # whether a text may have a percent sign
    stated: tuple[str, str] | None = None  # columns, and the option that states their scale

    def broken(self, rule: Rule) -> nw.Expr:
        """Return whether a value breaks a rule; it may be null where a value is missing."""
        return self.missing if rule.must == MISSING.must else rule.broken(self.value)

    @property
    def missing(self) -> nw.Expr:
        """Whether a value is missing."""
        return self.value.is_null() if self.names else self.value.is_null() | self.value.is_nan()


def status(checks: Sequence[Check], *, drop: bool) -> nw.Expr:
    """Return whether each row counts, breaks a rule, or is dropped."""
    # What keeps the last rule of a check keeps its other rules too. Null is not true.
    kept = [~check.broken(check.rules[-1]) for check in checks]
    every = in_parts(partial(nw.all_horizontal, ignore_nulls=False), kept)
    found = nw.when(every).then(nw.lit(COUNTS))
    whole = found.otherwise(nw.lit(BROKEN))
    if not drop:
        return whole
    gone = in_parts(partial(nw.any_horizontal, ignore_nulls=True), _gaps(checks))
    return nw.when(gone).then(nw.lit(GONE)).otherwise(whole)


def _gaps(checks: Sequence[Check]) -> list[nw.Expr]:
    return [check.missing for check in checks if check.rules[0].must == MISSING.must]


def refuse(source: Source, uses: Sequence[Use], checks: Sequence[Check], *, drop: bool) -> NoReturn:
    """Count the values that break each rule, and raise for the first rule that is broken."""
    numbered = isinstance(source, Here)
    rows = source.numbered(uses) if isinstance(source, Here) else source.frame(uses)
    if drop:
        gone = in_parts(partial(nw.any_horizontal, ignore_nulls=True), _gaps(checks))
        rows = rows.filter(~gone)
    marks = {}
    for k, check in enumerate(checks):
        for j, rule in enumerate(check.rules):
            marks[k, j] = nw.when(check.broken(rule)).then(nw.lit(1)).otherwise(nw.lit(0))
    rows = rows.with_columns(mark.alias(f"bad{k}_{j}") for (k, j), mark in marks.items())
    total = [nw.len().alias("n"), *(nw.col(f"bad{k}_{j}").sum() for k, j in marks)]
    found = collected(rows.select(*total)).to_pylist()[0]
    for k, j in marks:
        count = int(found[f"bad{k}_{j}"] or 0)
        if count:
            check, rule = checks[k], checks[k].rules[j]
            broken = rows.filter(nw.col(f"bad{k}_{j}") == 1)
            first = _first(source, broken, check, rule, numbered=numbered)
            spread = NOWHERE if check.names else _spread(rows, check)
            rule = DROPPED if rule.must == MISSING.must else rule
            message = rule.message(check.name, count, int(found["n"]), first.where, spread)
            hint = number_hint(first.text, percent=check.percent) if first.text else ""
            raise InputError(message.rstrip() + hint)
    refuse_changed()


class _First(NamedTuple):
    where: str
    text: str = ""


def _first(source: Source, broken: Frame, check: Check, rule: Rule, *, numbered: bool) -> _First:
    """Describe the first value that breaks a rule, with its file and row if these are known."""
    value = check.value if check.raw is None else check.raw
    columns = [value.alias("value")] + [nw.col(AT)] * numbered
    few = broken.select(*columns)
    few = few.sort(AT).head(1) if numbered else few.head(1)
    one = collected(few).to_pylist()[0]
    found, shown, text = one["value"], [], ""
    if rule is NOT_A_NUMBER:
        text = str(found)
        shown.append(f"is the text {text!r:.60}")
    elif found is not None and not (isinstance(found, float) and math.isnan(found)):
        plain = f"{found:.7g}" if check.shown.startswith("sums") else f"{found!r:.60}"
        shown.append(check.shown.format(plain))
    if numbered:
        shown.append(where_is(source, one[AT]))
    return _First(f", the first {' '.join(shown)}" if shown else "", text)


def where_is(source: Source, at: int) -> str:
    """Return the file and the row of a number of a row."""
    assert isinstance(source, Here)  # noqa: S101 - other rows have no numbers
    file, row = at >> ROW_BITS, at & ((1 << ROW_BITS) - 1)
    return f"in {source.files[file]}, row {row}" if source.files else f"at position {row - 1}"


def _spread(rows: Frame, check: Check) -> Spread:
    """Return the range of a column's values, from which a message guesses what they may be."""
    x = check.value
    known = nw.when(~(x.is_null() | x.is_nan())).then(x)
    other = nw.when((x == 1) | (x == -1)).then(nw.lit(0)).otherwise(nw.lit(1))
    part = nw.when(x % 1 == 0).then(nw.lit(0)).otherwise(nw.lit(1))
    found = collected(
        rows.select(
            known.min().alias("low"),
            known.max().alias("high"),
            other.max().alias("other"),
            part.max().alias("part"),
        )
    ).to_pylist()[0]
    low, high = (math.nan if found[k] is None else float(found[k]) for k in ("low", "high"))
    return Spread(low, high, signs=not found["other"], whole=not found["part"])
