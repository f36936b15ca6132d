"""Add up batches into tables, with every value validated in the same pass."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from softcal import _parallel
from softcal._validation.inputs import Names, Rows, as_float64, refuse_changed, refuse_zeros
from softcal._validation.rules import MISSING, Rule, Spread
from softcal.exceptions import InputError
from softcal.sources.columns import SLICES, Batch, Piece, rows_of
from softcal.sources.files import all_pieces, batches, files_of, joined
from softcal.table import kernel
from softcal.table.reliability import Reliability

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from softcal._validation.arrays import Column
    from softcal.bins import Bins
    from softcal.sources.columns import Roles
    from softcal.sources.files import Paths, Progress


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


MAX_SLICES = 10_000
"""How many values the column of slices may have: each has a table of its own in memory."""

HALF = 0.5
"""Labels above it are hardened to 1, for the usual ECE beside the SMECE."""


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

    for piece, here, found in _parallel.in_order(add_up, pieces, at_most=at_most):
        if found is None or census.started:
            census.add(piece, rows[piece.place])
        else:
            _merge_into(tables, found, roles)
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


def _merge_into(tables: Tables, found: Tables, roles: Roles) -> None:
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
        refuse_zeros(str(roles.sample_weight), rows)


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


def checked_batches(
    source: Paths, roles: Roles, progress: Progress | None = None
) -> Iterator[Batch]:
    """Walk through files in bounded memory; refuse where a value breaks a rule.

    The refusal counts the values of all files, and says in which file and row the first is. The
    column to slice by may have missing values.
    """
    rules = roles._replace(by=None).rules
    rows, some = 0, False
    for batch in batches(source, roles.wanted.numbers, by=roles.by, progress=progress):
        for name, of_column in rules:
            values = as_float64(batch[name])
            if any(rule.broken(values).any() for rule in of_column):
                _refuse(source, roles._replace(by=None))
        rows += rows_of(batch)
        some = some or has_weight(batch, roles)
        yield batch
    if not some:
        refuse_nothing({}, rows, roles)


def has_weight(batch: Batch, roles: Roles) -> bool:
    """Whether any of the rows counts: no table can be made of those that do not."""
    return roles.sample_weight is None or bool(batch[roles.sample_weight].any())


def checked_columns(source: Paths, roles: Roles, progress: Progress | None = None) -> Batch:
    """Read all rows at once, where none can be judged alone: those of a group, `roles.by`.

    Every row must have its group. The groups are under `SLICES`.
    """
    found = list(checked_batches(source, roles, progress))
    if roles.by is not None and any(missing_values(batch[SLICES]).any() for batch in found):
        _refuse(source, roles)
    return joined(found)


def _refuse(source: Paths, roles: Roles) -> NoReturn:
    census = Census(roles.rules, roles.by)
    rows: Counter[str] = Counter()  # of each file
    for piece in all_pieces(files_of(source), roles.wanted):
        census.add(piece, rows[piece.place])
        rows[piece.place] += sum(map(rows_of, piece.batches()))
    census.refuse(rows.total())
