"""Add up pieces of rows into one set of tables, every value validated in the same pass."""

from __future__ import annotations

import re
import threading
from collections import Counter
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from softcal import _parallel
from softcal._validation.inputs import as_float64, refuse_changed, refuse_zeros
from softcal._validation.rules import Rule, Spread
from softcal.bins import Bins
from softcal.exceptions import InputError
from softcal.sources.columns import Named, Piece, Rules, rows_of
from softcal.sources.files import all_pieces, batches, files_of, joined
from softcal.table.build import Builder, Coded, entries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from softcal._validation.arrays import Column
    from softcal._validation.inputs import Rows
    from softcal.sources.columns import Batch, Roles
    from softcal.sources.files import Paths
    from softcal.table.build import Entries
    from softcal.table.tableset import TableSet

    Look = Callable[[int, Mapping[str, Rows], Coded | None], None]


_ROWS_AT_ONCE = 1 << 20
_WHOLE = re.compile("-?[0-9]+")


class Found(NamedTuple):
    """What a thread makes of one piece: None where a value here, or elsewhere, broke a rule."""

    piece: Piece
    rows: int
    entries: list[Entries] | None


def collect(
    pieces: Iterable[Piece],
    roles: Roles,
    bins: Bins,
    *,
    pairs: bool = False,
    date: str | None = None,
    at_most: int | None = None,
    report: Callable[[Piece, int], None] | None = None,
    report_groups: Callable[[float], None] | None = None,
    look: Look | None = None,
) -> TableSet:
    """Add up all pieces, on all cores, into one set of tables.

    When a value breaks a rule, the rest is read all the same, to count how many do. `look` is
    called in the threads with the number of each piece, the rows of its models, and their groups.
    `report_groups` is told, after the last piece, which share of the groups is done.
    """
    grid = Bins.grid(bins) if roles.group is None else Bins.tie_grid(bins)
    broken = threading.Event()
    census = Census(roles.rules)
    builder = Builder(
        roles.y_prob, roles.by, bins=bins, grid=grid,
        pairs=Bins.tie_grid(bins) if pairs and len(roles.y_prob) > 1 else None,
        group=roles.group,
    )  # fmt: skip
    rows: Counter[str] = Counter()  # of each file

    def add_up(numbered: tuple[int, Piece]) -> Found:
        return _add_up(*numbered, roles, builder, broken, look)

    how: dict[str, Any] = {"at_most": at_most}
    if roles.group is not None:  # whose entries are about as many as the rows: few may wait
        pieces, how = _cut(pieces), {"ahead": 1}
    with closing(builder):
        for piece, here, found in _parallel.in_order(add_up, enumerate(pieces), **how):
            if found is None or census.started:
                census.add(piece, rows[piece.place])
            else:
                for each in found:
                    builder.add(each)
            rows[piece.place] += here
            if report is not None:
                report(piece, here)
        if census.started:
            census.refuse(rows.total())
        return finished(builder, rows.total(), roles, date, report_groups)


def _cut(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Cut what is in memory as one into pieces of as many rows as are read at once."""
    for piece in pieces:
        if piece.place:
            yield piece
            continue
        for batch in piece.batches():
            for start in range(0, rows_of(batch), _ROWS_AT_ONCE):
                part = {key: column[start : start + _ROWS_AT_ONCE] for key, column in batch.items()}
                yield Piece("", 0, partial(iter, [part]))


def read_rows(source: Paths, roles: Roles) -> Batch:
    """Return all rows of files at once, validated, for work that tables are not enough for.

    A refusal counts the values of all files that break a rule, and names the file and row of the
    first.
    """
    found = list(batches(source, roles.wanted.numbers, named=roles.wanted.named))
    if not found:
        _refuse_no_rows()
    columns = joined(found)
    for column, rules in roles.rules:
        values = _to_check(columns, column)
        if any(rule.broken(values).any() for rule in rules):
            census = Census(roles.rules)
            rows: Counter[str] = Counter()  # of each file
            for piece in all_pieces(files_of(source), roles.wanted):
                census.add(piece, rows[piece.place])
                rows[piece.place] += sum(map(rows_of, piece.batches()))
            census.refuse(rows.total())
    if roles.sample_weight is not None and not columns[roles.sample_weight].any():
        refuse_zeros(roles.sample_weight, rows_of(columns))
    return columns


def _refuse_no_rows() -> NoReturn:
    message = "the source has no rows: there is nothing to measure."
    raise InputError(message)


def finished(
    builder: Builder,
    rows: int,
    roles: Roles,
    date: str | None,
    report_groups: Callable[[float], None] | None = None,
) -> TableSet:
    """Return the set of all rows, refusing a source that leaves nothing to measure."""
    if not rows:
        _refuse_no_rows()
    votes = None if roles.n_votes is None else str(roles.n_votes)
    found = builder.finish(
        roles.y_true, report=report_groups, weight=roles.sample_weight, votes=votes, date=date
    )
    if not found.n:
        refuse_zeros(str(roles.sample_weight), rows)
    return found


def _add_up(
    number: int,
    piece: Piece,
    roles: Roles,
    builder: Builder,
    broken: threading.Event,
    look: Look | None,
) -> Found:
    found, rows = [], 0
    for batch in piece.batches():
        rows += rows_of(batch)
        each = None if broken.is_set() else _batch_entries(batch, roles, builder)
        if each is None:
            broken.set()
            continue
        found.append(each)
        if look is not None:
            group = roles.group
            groups = None if group is None else coded_groups(batch[Named(group)], group)
            look(number, {pred: roles.rows(batch, pred) for pred in roles.y_prob}, groups)
    return Found(piece, rows, None if broken.is_set() else found)


def _batch_entries(batch: Batch, roles: Roles, builder: Builder) -> Entries | None:
    groups = None
    if roles.group is not None:
        values = batch[Named(roles.group)]
        if missing_values(values).any():
            return None
        groups = coded_groups(values, roles.group)
    of_models = {(k, 0): roles.rows(batch, pred) for k, pred in enumerate(roles.y_prob)}
    cells = coded_cells({name: batch[Named(name)] for name in roles.by}) if roles.by else None
    return entries(of_models, builder.grid, cells, groups, pairs=builder.pairs)


def coded_cells(columns: Mapping[str, Any]) -> Coded:
    """Return the number of each row's combination of values in some Arrow columns."""
    whole = np.zeros(len(next(iter(columns.values()))), dtype=np.int64)
    each = [coded(values, name) for name, values in columns.items()]
    for one in each:
        whole = whole * max(len(one.names), 1) + one.numbers
    different, numbers = np.unique(whole, return_inverse=True)
    cells = []
    for code in different.tolist():
        cell: list[str | None] = []
        for one in reversed(each):
            code, k = divmod(code, len(one.names))  # noqa: PLW2901
            cell.insert(0, one.names[k])
        cells.append(tuple(cell))
    return Coded(numbers.astype(np.int64), cells)


def coded(values: Any, name: str) -> Coded:
    """Return the number of each value of an Arrow column, as text; a missing one is None."""
    plain = values.combine_chunks() if hasattr(values, "combine_chunks") else values
    found = plain.dictionary_encode(null_encoding="encode")
    try:
        texts = [text_of(value) for value in found.dictionary.to_pylist()]
    except (OverflowError, ValueError) as error:
        message = f"{name} must hold values that Python can hold: {error}."
        raise InputError(message) from error
    different = {text: k for k, text in enumerate(dict.fromkeys(texts))}
    renumbered = np.array([different[text] for text in texts], dtype=np.int64)
    numbers = found.indices.to_numpy(zero_copy_only=False)
    return Coded(renumbered[numbers], list(different))


def coded_groups(values: Any, name: str) -> Coded:
    """Return the number of each value of an Arrow column, which has no missing values.

    The names are an array where they are whole numbers, or the text of such, and an Arrow array of
    other text: as Python objects, those of several batches would fill the memory.
    """
    import pyarrow as pa

    plain = values.combine_chunks() if hasattr(values, "combine_chunks") else values
    is_text = pa.types.is_string(plain.type) or pa.types.is_large_string(plain.type)
    if not is_text and not pa.types.is_integer(plain.type):
        return coded(values, name)
    found = plain.dictionary_encode()
    names: Any = found.dictionary
    if not is_text or _WHOLE.fullmatch(str(names[0])):  # then others are worth a try
        try:
            whole = names.cast(pa.int64())
        except pa.ArrowInvalid:
            whole = pa.nulls(len(names), pa.int64())
        if whole.cast(names.type).equals(names):  # unlike "007", another group than "7"
            names = whole.to_numpy()
        elif not is_text:
            return coded(values, name)
    numbers = found.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return Coded(numbers, names)


def text_of(value: Any) -> str | None:
    """Return a value of a segment as text, the same for every engine; None where it is missing."""
    if isinstance(value, str):
        return value
    return None if value is None or str(value) in ("nan", "NaN", "<NA>", "NaT") else str(value)


class _Broken(NamedTuple):
    """How many values of a column break a rule, and the first that does."""

    number: int = 0
    first: str = ""


class Census:
    """How many values of each column break each rule, over all pieces that are added."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
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
            for column, rules in self._rules:
                name = column.column if isinstance(column, Named) else column
                values = _to_check(batch, column)
                self._add_column(name, values, rules, (rows, piece.place))
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
        for column, rules in self._rules:
            name = column.column if isinstance(column, Named) else column
            for rule in rules:
                count, first = self._broken[name, rule.must]
                if count:
                    raise InputError(rule.message(name, count, rows, first, self._spread[name]))
        refuse_changed()


def _to_check(batch: Batch, column: str | Named) -> Column:
    """Return the values of a column as rules look at them; names are only missing or not."""
    values = batch[column]
    if isinstance(column, Named):
        values = np.where(missing_values(values), np.nan, 0.0)
    return as_float64(values)


def _first(value: float, row: int, place: str) -> str:
    where = f"at position {row}" if not place else f"in {place}, row {row + 1}"
    return f", the first {where}" if np.isnan(value) else f", the first is {value!r} {where}"


def missing_values(values: Any) -> Column:
    """Mark the missing values of an Arrow column of any kind."""
    marks: Column = values.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    return marks
