"""A count of all values that break a rule, made once it is known that one does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from softcal.door.inputs import as_float64, refuse_changed
from softcal.door.rules import MISSING, Rule, Spread
from softcal.errors import InputError
from softcal.sources.pieces import SLICES, Piece, rows_of

if TYPE_CHECKING:
    from softcal.door.arrays import Column


class _Broken(NamedTuple):
    """How many values of a column break a rule, and the first that does."""

    number: int = 0
    first: str = ""


class Census:
    """How many values of each column break each rule, over all pieces that are added."""

    def __init__(self, rules: list[tuple[str, tuple[Rule, ...]]], by: str | None) -> None:
        self._rules = rules
        self._by = by
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
            for name, rules in self._rules:
                by = name == self._by and rules == (MISSING,)
                values = np.where(missing_values(batch[SLICES]), np.nan, 0.0) if by else batch[name]
                self._add_column(name, as_float64(values), rules, (rows, piece.place))
            rows += rows_of(batch)

    def _add_column(
        self, name: str, values: Column, rules: tuple[Rule, ...], start: tuple[int, str]
    ) -> None:
        spread = Spread.of(values)
        self._spread[name] = self._spread.get(name, spread).with_(spread)
        for rule in rules:
            marks = rule.broken(values)
            count, first = self._broken.get((name, rule.must), _Broken())
            if not count and marks.any():
                row = int(marks.argmax())
                first = _first(float(values[row]), start[0] + row, start[1])
            self._broken[name, rule.must] = _Broken(count + int(marks.sum()), first)

    def refuse(self, rows: int) -> NoReturn:
        """Raise for the first rule that is broken."""
        for name, rules in self._rules:
            for rule in rules:
                count, first = self._broken[name, rule.must]
                if count:
                    raise InputError(rule.message(name, count, rows, first, self._spread[name]))
        refuse_changed()


def _first(value: float, row: int, place: str) -> str:
    where = f"at position {row}" if not place else f"in {place}, row {row + 1}"
    return f", the first {where}" if np.isnan(value) else f", the first is {value!r} {where}"


def missing_values(values: Any) -> Column:
    """Mark the missing values of an Arrow column of any kind."""
    marks: Column = values.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    return marks
