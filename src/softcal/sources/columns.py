"""Columns of a source: which are wanted, their roles, and batches of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from softcal._validation.inputs import Names, Rows
from softcal._validation.rules import LABEL, LARGEST_VOTES, MISSING, UNIT, VOTES, WEIGHT, Rule
from softcal.exceptions import InputError, InputTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from softcal._validation.arrays import Column

Batch: TypeAlias = dict[Any, Any]
"""Columns of one length: NumPy arrays of numbers, and Arrow arrays under `Named`."""


class Named(NamedTuple):
    """Under which a batch keeps a column of names: it may be one of the numbers as well."""

    column: str


class Wanted(NamedTuple):
    """The columns to read: those that must hold numbers, and those that may hold anything."""

    numbers: tuple[str, ...]
    named: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """All of them, each once."""
        return list(dict.fromkeys((*self.numbers, *self.named)))


class Piece(NamedTuple):
    """A part of the rows: where it is from, the bytes it stands for, and how to get its batches.

    It may be asked for its batches more than once. A frame has no place, and counts no bytes.
    """

    place: str
    size: int
    batches: Callable[[], Iterator[Batch]]


def rows_of(batch: Batch) -> int:
    """Count the rows of a batch."""
    return len(next(iter(batch.values())))


def columns_of(table: Any, wanted: Wanted) -> Batch:
    """Take the wanted columns out of an Arrow table, without a copy where NumPy can do without."""
    columns: Batch = {name: _numbers(table.column(name)) for name in wanted.numbers}
    for name in wanted.named:
        columns[Named(name)] = plain_values(table.column(name), name)
    return columns


def _numbers(column: Any) -> Column:
    """Read an Arrow column as a NumPy one; a missing value becomes NaN."""
    import pyarrow as pa

    floating = pa.types.is_floating(column.type)
    if not floating and (column.null_count or not pa.types.is_integer(column.type)):
        column = column.cast(pa.float64())
    whole = _one_array(column)
    if whole.null_count:
        out: Column = whole.to_numpy(zero_copy_only=False)
        return out
    return np.from_dlpack(whole)  # unlike `to_numpy`, it does not import pandas: half a second


def plain_values(column: Any, name: str) -> Any:
    """Make one plain Arrow array of a column of names; categories become their values."""
    import pyarrow as pa

    whole = _one_array(column)
    if pa.types.is_dictionary(whole.type):
        whole = whole.dictionary_decode()
    if pa.types.is_nested(whole.type) or isinstance(whole.type, pa.BaseExtensionType):
        message = f"{name} must hold single values: it holds {whole.type}."
        raise InputTypeError(message)
    return whole


def _one_array(column: Any) -> Any:
    import pyarrow as pa

    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def refuse_other_types(wanted: Wanted, schema: Any, place: str) -> None:
    """Refuse an Arrow column that holds something other than numbers."""
    from pyarrow import types

    fits = (types.is_floating, types.is_integer, types.is_boolean, types.is_decimal, types.is_null)
    for name in wanted.numbers:
        found = schema.field(name).type
        if not any(is_one(found) for is_one in fits):
            refuse_type(name, found, place)


def refuse_type(name: str, found: Any, place: str) -> None:
    """Refuse a column because of what it holds."""
    message = (
        f"{name} must hold real numbers: in {place} it holds {found}. Convert it to float first."
    )
    raise InputTypeError(message)


def refuse_unknown(wanted: Wanted, present: list[str], place: str, hint: str = "") -> None:
    """Refuse a name that no column has, or several have; the hint may say why."""
    for name in wanted.names:
        if present.count(name) != 1:
            problem = f"more than one column {name!r}" if name in present else f"no column {name!r}"
            names = ", ".join(map(repr, present))
            message = f"{place} has {problem}. Its columns are: {names}.{hint}"
            raise InputError(message)


Rules: TypeAlias = "list[tuple[str | Named, tuple[Rule, ...]]]"
"""Columns, and what their values must be."""


class Roles(NamedTuple):
    """Which column plays which part."""

    y_true: str
    y_prob: tuple[str, ...]
    sample_weight: str | None = None
    n_votes: str | int | None = None
    by: tuple[str, ...] = ()
    group: str | None = None

    @property
    def wanted(self) -> Wanted:
        """The columns to read."""
        optional = (self.sample_weight, self.n_votes)
        numbers = [name for name in optional if isinstance(name, str)]
        named = self.by if self.group is None else (*self.by, self.group)
        return Wanted((self.y_true, *self.y_prob, *numbers), tuple(dict.fromkeys(named)))

    @property
    def rules(self) -> Rules:
        """What the values of each column must be, in the order in which they are looked at."""
        found: Rules = [
            (self.y_true, LABEL),
            *((name, UNIT) for name in self.y_prob),
        ]
        if self.sample_weight is not None:
            found.append((self.sample_weight, WEIGHT))
        if isinstance(self.n_votes, str):
            found.append((self.n_votes, VOTES))
        return found if self.group is None else [*found, (Named(self.group), (MISSING,))]

    def rows(self, columns: Mapping[Any, Any], pred: str) -> Rows:
        """Return the columns of one prediction, by the names they have in the source."""
        w, m = self.sample_weight, self.n_votes
        p = columns[pred]
        votes = np.broadcast_to(np.float64(m), p.shape) if isinstance(m, int) else None
        return Rows(
            columns[self.y_true],
            p,
            None if w is None else columns[w],
            columns[m] if isinstance(m, str) else votes,
            Names(self.y_true, pred, w or "", str(m)),
        )

    def refuse_impossible(self) -> None:
        """Refuse parts no column can play: both label and prediction, or one model twice."""
        if not self.y_prob:
            message = "y_prob must name at least one column."
            raise InputError(message)
        for pred in self.y_prob:
            if pred == self.y_true:
                message = f"label and prediction must be different columns: both are {pred!r}."
                raise InputError(message)
            if self.y_prob.count(pred) > 1:
                message = f"each prediction must be named once: {pred!r} is named more often."
                raise InputError(message)
        if len(set(self.by)) < len(self.by):
            message = f"each 'by' column must be named once: got {', '.join(map(repr, self.by))}."
            raise InputError(message)
        if isinstance(self.n_votes, int) and not 1 <= self.n_votes < LARGEST_VOTES:
            message = f"n_votes must be 1 or more: got {self.n_votes}."
            raise InputError(message)
