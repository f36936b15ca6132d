"""Compute the products of the sums of each group, for every segment at once."""

from __future__ import annotations

from itertools import chain, combinations, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softcal.exceptions import InputError
from softcal.table.groups import MAX_SUMS
from softcal.table.spill import numbered
from softcal.table.tableset import LOSSES, Sparse, Summed, empty_sparse, under

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from softcal._validation.inputs import FloatArray
    from softcal.table.spill import Spill
    from softcal.table.tableset import IntArray

MAX_PRODUCTS = 1 << 25
"""The largest number of products of two bins, over all segments of a set, at 56 bytes each."""

MAX_MODELS, MAX_TARGETS = 1 << 10, 1 << 14
"""With these limits, two models, a target, a cell, and a bin fit in one 63-bit integer."""

_CELL_BITS, _BIN_BITS = 17, 11  # for 100,000 cells and 2,000 bins
_DENSE_SHARE = 4  # if a quarter of a matrix is filled, dense multiplication is faster

GROUP_TERMS = ("weight", "differing", "brier", "log_loss")
"""The terms that are added up per group for each pair of models."""


class Cut(NamedTuple):
    """The segments by some of the `by` columns; without columns, all rows are one segment."""

    first: int  # the number of the first of its segments
    segments: int
    of_cell: IntArray  # the segment of each cell, from 0


def cuts(
    by: Sequence[str], cells: Sequence[tuple[str | None, ...]]
) -> tuple[tuple[Mapping[str, str | None], ...], list[Cut]]:
    """List the segments: all rows, each value of each column, and each observed combination."""
    chosen = chain.from_iterable(combinations(range(len(by)), k) for k in range(len(by) + 1))
    segments: list[Mapping[str, str | None]] = []
    found = []
    for columns in chosen:
        numbers: dict[tuple[str | None, ...], int] = {} if columns else {(): 0}  # also if empty
        of_cell = [
            numbers.setdefault(tuple(cell[k] for k in columns), len(numbers)) for cell in cells
        ]
        found.append(Cut(len(segments), len(numbers), np.array(of_cell, dtype=np.int64)))
        segments += [dict(zip((by[k] for k in columns), each, strict=True)) for each in numbers]
    return tuple(segments), found


def table_number(key: tuple[int, ...]) -> int:
    """Pack the numbers of one or two models and of a target into one integer."""
    *models, target = key
    if max(models) >= MAX_MODELS or target >= MAX_TARGETS:
        message = (
            f"with groups there can be at most {MAX_MODELS:,} models and {MAX_TARGETS:,} targets."
        )
        raise InputError(message)
    number = 0
    for model in models:
        number = number * MAX_MODELS + model
    return number * MAX_TARGETS + target


def place_of(table: int, cell: IntArray, at: IntArray) -> IntArray:
    """Pack the numbers of a table, a cell, and a bin into one integer."""
    return table << _CELL_BITS + _BIN_BITS | cell << _BIN_BITS | at


def with_cells(place: IntArray, numbers: IntArray) -> IntArray:
    """Return packed places with renumbered cells."""
    if np.array_equal(numbers, np.arange(numbers.size)):
        return place
    table, cell, at = _parts_of(place)
    return table << _CELL_BITS + _BIN_BITS | numbers[cell] << _BIN_BITS | at


def _parts_of(place: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    return (
        place >> _CELL_BITS + _BIN_BITS,
        place >> _BIN_BITS & (1 << _CELL_BITS) - 1,
        place & (1 << _BIN_BITS) - 1,
    )


class Tied(NamedTuple):
    """The entries that the groups add to a set."""

    counts: Sparse
    squares: Sparse
    cross: Sparse
    group: IntArray  # one entry for each group and cell with rows of both
    cell: IntArray
    sums: Sparse | None


def tied(
    spill: Spill,
    found: Sequence[Cut],
    bins: int,
    *,
    pairs: bool,
    report: Callable[[float], None] | None = None,
) -> Tied:
    """Compute the products of the sums of each group, in each segment."""
    counts, squares, cross = Summed(3, 1), Summed(5, 2), Summed(6, 1)
    groups, cells = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    sums: Sparse | None = empty_sparse(5, 2)
    for share, part in spill.parts():
        if report is not None:
            report(share)
        names, group = numbered(part.group)
        table, cell, at = _parts_of(part.place)
        tables, of_table = numbered(table)
        mine = _split(of_table, tables.size)
        if sums is not None:
            model, target = np.divmod(table, MAX_TARGETS)
            own = group + int(sums.keys[3].max(initial=-1)) + 1
            more = Sparse.of(np.array([model, target, cell, own, at]), part.values)
            few = sums.keys.shape[1] + more.keys.shape[1] <= MAX_SUMS
            sums = Sparse.added([sums, more]) if few else None
        for cut in found:
            lines, line = numbered(cut.of_cell[cell] * names.size + group)
            segment, member = np.divmod(lines, names.size)
            layout = _Layout.of(segment, cut.segments, line, tables.size, bins)
            of_models = {}
            for chosen, key in zip(mine, tables.tolist(), strict=True):
                above = model_, target_ = divmod(key, MAX_TARGETS)
                here = np.zeros(lines.size, dtype=np.bool_)
                here[line[chosen]] = True
                counts.add(under(above, _number_of(segment[here], cut)))
                residual, weight = (
                    _Matrices(layout, line[chosen], at[chosen], row[chosen]) for row in part.values
                )
                found_here = _entries(layout, residual.times(residual), weight.times(weight))
                squares.add(under(above, _shifted(found_here, cut)))
                if pairs and target_ == 0:  # as `entries` makes pairs
                    of_models[model_] = residual
            for i, j in combinations(of_models, 2):
                product = _entries(layout, of_models[i].times(of_models[j]))
                cross.add(under((i, j, 0), _shifted(product, cut)))
        _refuse_many(squares.size)
        groups.append(names[member])
        cells.append(segment)  # those of the last cut are the cells
    return Tied(
        counts.total(), squares.total(), cross.total(), np.concatenate(groups),
        np.concatenate(cells), sums,
    )  # fmt: skip


def _split(numbers: IntArray, count: int) -> list[IntArray]:
    """Return the positions of each number."""
    order = numbers.argsort(kind="stable")
    starts = numbers[order].searchsorted(np.arange(count + 1))
    return [order[a:b] for a, b in pairwise(starts.tolist())]


def _number_of(segment: IntArray, cut: Cut) -> Sparse:
    number = np.bincount(segment, minlength=cut.segments)
    filled = np.flatnonzero(number)
    return Sparse(filled[None] + cut.first, number[None, filled].astype(np.float64))


def _shifted(entries: Sparse, cut: Cut) -> Sparse:
    """Convert the segment numbers of a cut to those of the set."""
    entries.keys[0] += cut.first
    return entries


def _refuse_many(products: int) -> None:
    """Refuse more products than fit in memory."""
    if products > MAX_PRODUCTS:
        message = (
            f"segments of rows with groups can have {MAX_PRODUCTS:,} products of two bins in all: "
            "there are more. Use fewer bins, or 'by' columns with fewer values."
        )
        raise InputError(message)


def tied_losses(spill: Spill, found: Sequence[Cut]) -> Sparse:
    """Compute the paired losses of each group, and add up the groups of each segment."""
    total = Summed(4, len(LOSSES))
    for _, part in spill.parts():
        names, group = numbered(part.group)
        table, cell, _ = _parts_of(part.place)
        tables, of_table = numbered(table)
        for cut in found:
            owner = of_table * cut.segments + cut.of_cell[cell]
            lines, line = numbered(owner * names.size + group)
            terms = np.array([np.bincount(line, row, lines.size) for row in part.values])
            terms[GROUP_TERMS.index("differing")] = terms[GROUP_TERMS.index("differing")] > 0
            table, segment = np.divmod(lines // names.size, cut.segments)
            pair, target = np.divmod(tables[table], MAX_TARGETS)
            keys = np.array([*np.divmod(pair, MAX_MODELS), target, segment + cut.first])
            rest = np.zeros((len(LOSSES) - 7, lines.size))
            total.add(Sparse.of(keys, np.concatenate((paired(terms), rest))))
    return total.total()


def paired(terms: FloatArray) -> FloatArray:
    """Return the first sums of `LOSSES` per independent unit (row or group), from `GROUP_TERMS`."""
    weight, differing, brier, log_loss = terms
    parts = [part for each in (brier, log_loss) for part in (each, weight * each, each * each)]
    return np.array([differing, *parts])


class _Layout(NamedTuple):
    """The lines (one per group) of each segment, and which segments use a dense matrix."""

    segment: IntArray  #  of each line, increasing
    segments: int
    bins: int
    dense: IntArray  #    the segments with a dense matrix
    starts: IntArray  #   where the lines of each of these start
    position: IntArray  # of each line among these lines, -1 if it is not one of them

    @staticmethod
    def of(segment: IntArray, segments: int, line: IntArray, tables: int, bins: int) -> _Layout:
        """Choose dense matrices by how much is filled; small matrices are faster as one sparse."""
        entries = np.bincount(segment[line], minlength=segments) / tables
        lines = np.bincount(segment, minlength=segments)
        is_dense = (_DENSE_SHARE * entries >= lines * bins) & (entries >= bins * bins)
        inside = is_dense[segment]
        position = np.where(inside, np.cumsum(inside) - 1, -1)
        dense = np.flatnonzero(is_dense)
        starts = np.append(0, np.cumsum(lines[dense]))
        return _Layout(segment, segments, bins, dense, starts, position)


class _Matrices:
    """The sums of one model and target: per segment, one line per group and one column per bin."""

    def __init__(self, layout: _Layout, line: IntArray, at: IntArray, values: FloatArray) -> None:
        place, self._layout = layout.position[line], layout
        inside = place >= 0
        size = int(layout.starts[-1])
        flat = place[inside] * layout.bins + at[inside]
        sums = np.bincount(flat, values[inside], size * layout.bins)
        self._dense = sums.reshape(size, layout.bins)
        self._rest = None
        if not inside.all():
            from scipy.sparse import csr_array

            # Each segment has its own columns, so that one product computes every segment.
            column = layout.segment[line[~inside]] * layout.bins + at[~inside]
            shape = layout.segment.size, layout.segments * layout.bins
            self._rest = csr_array((values[~inside], (line[~inside], column)), shape=shape)

    def times(self, other: _Matrices) -> tuple[FloatArray, Any]:
        """Multiply two matrices in each segment; the product sums over groups."""
        bins = self._layout.bins
        dense = np.empty((self._layout.dense.size, bins, bins))
        for k, (start, end) in enumerate(pairwise(self._layout.starts.tolist())):
            np.matmul(self._dense[start:end].T, other._dense[start:end], out=dense[k])
        return dense, None if self._rest is None else (self._rest.T @ other._rest).tocsr()


def _entries(layout: _Layout, *products: tuple[FloatArray, Any]) -> Sparse:
    """Return products as entries (segment, bin, bin), where the last product is not 0."""
    dense, rest = products[-1]
    k, a, b = np.nonzero(dense)
    keys = np.array([layout.dense[k], a, b])
    values = np.array([each[k, a, b] for each, _ in products])
    if rest is not None and rest.nnz:
        found = rest.tocoo()
        segment, a = np.divmod(found.row, layout.bins)
        more = np.array([segment, a, found.col % layout.bins])
        keys = np.concatenate((keys, more), axis=1)
        sums = [np.asarray(each[found.row, found.col]).ravel() for _, each in products]
        values = np.concatenate((values, sums), axis=1)
    return Sparse(keys.astype(np.int64, copy=False), values)
