"""Count the values that break a rule, over all rows of a source, and say which is the first."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np

from softcal._validation.inputs import as_float64, refuse_changed
from softcal._validation.rules import AT_MOST, Rule, Spread
from softcal.exceptions import InputError
from softcal.sources.class_batches import class_checks
from softcal.sources.columns import Check, Named, missing_values, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcal._validation.arrays import Column
    from softcal.sources.columns import Batch, Piece, Roles


def checks_of(roles: Roles) -> list[Check]:
    """List what the values of a source must be, in the order in which they are looked at."""
    found = [] if roles.classes is None else class_checks(roles, roles.classes)
    found += [_of_column(column, rules) for column, rules in roles.rules]
    if roles.bounds is not None:
        found.append(_in_order(*roles.bounds))
    return found


def _of_column(column: str | Named, rules: tuple[Rule, ...]) -> Check:
    name = column.column if isinstance(column, Named) else column
    return Check(name, rules, lambda batch: _to_check(batch, column))


def _to_check(batch: Batch, column: str | Named) -> Column:
    """Return the values of a column as rules look at them; names are only missing or not."""
    values = batch[column]
    if isinstance(column, Named):
        values = np.where(missing_values(values), np.nan, 0.0)
    return as_float64(values)


def _in_order(low: str, high: str) -> Check:
    """Check that no lower end of a label is above the upper one."""

    def above(batch: Batch) -> Column:
        return as_float64(batch[low]) - as_float64(batch[high])

    def shown(batch: Batch, row: int, _above: float) -> str:
        return f"is {float(batch[low][row])!r} with {high} = {float(batch[high][row])!r}"

    rule = AT_MOST._replace(must=AT_MOST.must.format(high))
    return Check(low, (rule,), above, shown)


class _Broken(NamedTuple):
    """How many values break a rule, and the first that does."""

    number: int = 0
    first: str = ""


class Census:
    """How many values break each rule, over all pieces that are added."""

    def __init__(self, checks: Sequence[Check]) -> None:
        self._checks = checks
        self._broken: dict[tuple[str, str], _Broken] = {}
        self._spread: dict[str, Spread] = {}

    @property
    def started(self) -> bool:
        """Whether anything was added."""
        return bool(self._spread)

    def add(self, piece: Piece, rows_before: int) -> None:
        """Count what breaks a rule in one more piece of a file, after that many of its rows."""
        rows = rows_before
        for batch in piece.batches():
            for check in self._checks:
                self._add_values(check, batch, rows, piece.place)
            rows += rows_of(batch)

    def _add_values(self, check: Check, batch: Batch, rows: int, place: str) -> None:
        values, name = check.values(batch), check.name
        spread = Spread.of(values)
        self._spread[name] = self._spread.get(name, spread).with_(spread)
        for rule in check.rules:
            marks = rule.broken(values)
            count, first = self._broken.get((name, rule.must), _Broken())
            if not count and marks.any():
                at = int(marks.argmax())
                row = at // check.per_row
                value = float(values[at])
                shown = "" if np.isnan(value) else f"{check.shown(batch, row, value)} "
                first = f", the first {shown}{_where(rows + row, place)}"
            self._broken[name, rule.must] = _Broken(count + int(marks.sum()), first)

    def refuse(self, rows: int) -> NoReturn:
        """Raise for the first rule that is broken."""
        for check in self._checks:
            for rule in check.rules:
                count, first = self._broken[check.name, rule.must]
                if count:
                    total, spread = rows * check.per_row, self._spread[check.name]
                    raise InputError(rule.message(check.name, count, total, first, spread))
        refuse_changed()


def _where(row: int, place: str) -> str:
    return f"in {place}, row {row + 1}" if place else f"at position {row}"
