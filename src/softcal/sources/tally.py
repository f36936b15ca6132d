"""Pieces in, tables out: one pass, with the values checked, whatever the pieces are from."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softcal import parallel
from softcal.door.inputs import Names, Rows
from softcal.door.rules import LABEL, LARGEST_VOTES, MISSING, UNIT, VOTES, WEIGHT, Rule
from softcal.errors import InputError
from softcal.sources.census import Census, missing_values
from softcal.sources.pieces import SLICES, Batch, Piece, Wanted, rows_of
from softcal.table import kernel
from softcal.table.reliability import Reliability

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from softcal.table.bins import Bins

MAX_SLICES = 10_000
"""How many values the column of slices may have: each has a table of its own in memory."""


HALF = 0.5
"""Labels above it are hardened to 1, for the usual ECE beside the SMECE."""


class Roles(NamedTuple):
    """Which column plays which part."""

    y_true: str
    y_prob: tuple[str, ...]
    sample_weight: str | None = None
    n_votes: str | int | None = None
    by: str | None = None

    @property
    def wanted(self) -> Wanted:
        """The columns to read."""
        optional = (self.sample_weight, self.n_votes)
        named = [name for name in optional if isinstance(name, str)]
        return Wanted((self.y_true, *self.y_prob, *named), self.by)

    @property
    def rules(self) -> list[tuple[str, tuple[Rule, ...]]]:
        """What the values of each column must be, in the order in which they are looked at."""
        found: list[tuple[str, tuple[Rule, ...]]] = [
            (self.y_true, LABEL),
            *((name, UNIT) for name in self.y_prob),
        ]
        if self.sample_weight is not None:
            found.append((self.sample_weight, WEIGHT))
        if isinstance(self.n_votes, str):
            found.append((self.n_votes, VOTES))
        return found if self.by is None else [(self.by, (MISSING,)), *found]

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
        if isinstance(self.n_votes, int) and not 1 <= self.n_votes < LARGEST_VOTES:
            message = f"n_votes must be 1 or more: got {self.n_votes}."
            raise InputError(message)


class Key(NamedTuple):
    """Which table: of which prediction, of which slice, with labels as they are or hardened."""

    y_prob: str
    value: Any = None
    hardened: bool = False


Tables = dict[Key, Reliability]


def sorting_key(key: Key) -> tuple[str, bool, str, Any]:
    """Sort keys by model, hardened or not, and value; values of several types side by side."""
    return key.y_prob, key.hardened, type(key.value).__name__, key.value


def tally(
    pieces: Iterable[Piece],
    roles: Roles,
    bins: Bins,
    *,
    at_most: int | None = None,
    report: Callable[[Piece, int], None] | None = None,
    harden: bool = False,
) -> Tables:
    """Add up all pieces, on all cores, into one table for each key.

    With `harden` there is a second table for each, of the labels hardened at 0.5. When a value
    breaks a rule, the rest is read all the same, to count how many do.
    """
    broken = threading.Event()
    census = Census(roles.rules, roles.by)
    tables: Tables = {}
    rows: Counter[str] = Counter()  # of each file

    def add_up(piece: Piece) -> tuple[Piece, int, Tables | None]:
        return piece, *_piece_tables(piece, roles, bins, broken, harden=harden)

    for piece, here, found in parallel.in_order(add_up, pieces, at_most=at_most):
        if found is None or census.started:
            census.add(piece, rows[piece.place])
        else:
            merge_into(tables, found, roles)
        rows[piece.place] += here
        if report is not None:
            report(piece, here)
    if census.started:
        census.refuse(rows.total())
    refuse_nothing(tables, rows.total(), roles)
    return tables


def _piece_tables(
    piece: Piece, roles: Roles, bins: Bins, broken: threading.Event, *, harden: bool
) -> tuple[int, Tables | None]:
    """Add up one piece; count its rows. None when a value here, or elsewhere, broke a rule."""
    tables: Tables = {}
    rows = 0
    for batch in piece.batches():
        rows += rows_of(batch)
        if roles.by is not None and missing_values(batch[SLICES]).any():
            broken.set()
        for key, sums in () if broken.is_set() else _batch_sums(batch, roles, bins, harden=harden):
            if sums is None:
                broken.set()
                break
            table = Reliability(bins, sums)
            tables[key] = tables[key] + table if key in tables else table
    return rows, None if broken.is_set() else tables


def merge_into(tables: Tables, found: Tables, roles: Roles) -> None:
    """Add tables to those there are."""
    for key, table in found.items():
        tables[key] = tables[key] + table if key in tables else table
    if len(tables) > MAX_SLICES:
        refuse_many_slices(len({key.value for key in tables}), roles.by)


def refuse_many_slices(values: int, by: str | None) -> None:
    """Refuse to slice by a column that has about as many values as rows."""
    if values > MAX_SLICES:
        message = (
            f"{by} must have at most {MAX_SLICES} different values: there are more. Slice by a "
            "column with fewer, or join some of its values first."
        )
        raise InputError(message)


def refuse_nothing(tables: Tables, rows: int, roles: Roles) -> None:
    """Refuse a source that leaves nothing to measure."""
    if not rows:
        message = "the source has no rows: there is nothing to measure."
        raise InputError(message)
    if not any(table.n for table in tables.values()):
        message = (
            f"{roles.sample_weight} must have a positive value somewhere: all {rows} are 0, which "
            f"leaves no row. Leave {roles.sample_weight} out to count every row once."
        )
        raise InputError(message)


def _batch_sums(
    batch: Batch, roles: Roles, bins: Bins, *, harden: bool
) -> Iterator[tuple[Key, kernel.Sums | None]]:
    slices: Iterable[tuple[Any, Batch]] = [(None, batch)]
    if roles.by is not None:
        slices = _sliced(batch, roles.by)
    for value, part in slices:
        for pred in roles.y_prob:
            rows = _rows(part, roles, pred)
            yield Key(pred, value), kernel.bin_sums(rows, bins)
            if harden:
                hard = rows._replace(y_true=rows.y_true > HALF)
                yield Key(pred, value, hardened=True), kernel.bin_sums(hard, bins)


def _rows(batch: Batch, roles: Roles, pred: str) -> Rows:
    w, m = roles.sample_weight, roles.n_votes
    y, p = batch[roles.y_true], batch[pred]
    votes = np.broadcast_to(np.float64(m), p.shape) if isinstance(m, int) else None
    votes = batch[m] if isinstance(m, str) else votes
    names = Names(roles.y_true, pred)
    return Rows(y, p, None if w is None else batch[w], votes, names)


def _sliced(batch: Batch, by: str) -> Iterator[tuple[Any, Batch]]:
    """Cut a batch by the values of one column, each row to one slice."""
    coded = batch[SLICES].dictionary_encode()
    refuse_many_slices(len(coded.dictionary), by)
    codes = coded.indices.to_numpy(zero_copy_only=False)
    order = codes.argsort(kind="stable")
    starts = codes[order].searchsorted(np.arange(len(coded.dictionary) + 1))
    columns = {name: column[order] for name, column in batch.items() if name != SLICES}
    try:
        values = coded.dictionary.to_pylist()
    except (OverflowError, ValueError) as error:
        message = f"{by} must hold values that Python can hold to slice by: {error}."
        raise InputError(message) from error
    for k, value in enumerate(values):
        part = slice(starts[k], starts[k + 1])
        yield value, {name: column[part] for name, column in columns.items()}
