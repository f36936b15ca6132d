"""Build sets of tables from rows: compute the entries of each batch, and add them up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from softcal._validation import inputs
from softcal._validation.inputs import Coded, Names, columns
from softcal._validation.multiclass import class_rows_of_models, is_by_class, refuse
from softcal.bins import Bins
from softcal.exceptions import InputError, InputTypeError
from softcal.table import kernel
from softcal.table.blocks import BLOCKS, GROUP_LOSSES, IntArray, Sparse, Summed
from softcal.table.joint import refuse_many_bins
from softcal.table.kernel import SUM_NAMES, Sums, cross_entropy, totals
from softcal.table.owners import (
    MAX_GROUPS,
    group_entries,
    merged,
    pair_entries,
    rater_entries,
    refuse_many_group_bins,
)
from softcal.table.reliability import votes_of_raters
from softcal.table.tableset import LABEL, About, Axes, TableSet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from softcal._validation.inputs import FloatArray, Rows
    from softcal._validation.multiclass import ClassRows
    from softcal.bins import BinsLike
    from softcal.votes import RowVotes


MAX_CELLS = 100_000
"""The largest number of combinations of `by` values; each combination has its own tables."""

_PAIRED_AT_ONCE = 1 << 13


class Entries(NamedTuple):
    """The entries that a batch of rows adds to a set, with its own numbers of cells and owners."""

    rows: int
    cells: Sequence[tuple[str | None, ...]]
    blocks: Mapping[str, Sparse]
    owners: Any = ()  # names of groups or raters


def entries(  # noqa: C901 - one branch per kind of sum
    rows: Mapping[tuple[int, int], Rows],
    grid: Bins,
    cells: Coded | None = None,
    groups: Coded | None = None,
    *,
    pairs: Bins | None = None,
    votes: RowVotes | None = None,
) -> Entries | None:
    """Compute the entries of one batch, or return None if a value is invalid.

    Parameters
    ----------
    rows : mapping from (model, target) to Rows
        The rows of each model and target, by number. All have the same length and weights.
    grid : Bins
        The bins of the tables.
    cells : Coded, optional
        The cell of each row.
    groups : Coded, optional
        The group of each row.
    pairs : Bins, optional
        The bins of the joint sums of each pair of models.
    votes : RowVotes, optional
        The single votes behind the labels, to add up by rater; not with groups.
    """
    at = _numbers(cells, next(iter(rows.values())).y_prob.size)
    parts: dict[str, list[Sparse]] = {"tables": []}
    if groups is not None:
        # More groups than a set keeps separately share places already here.
        both = merged((), groups.names, most=MAX_GROUPS)
        groups = Coded(both.theirs[groups.numbers], both.names)

    def add(name: str, key: tuple[int, ...], found: Sparse) -> None:
        parts.setdefault(name, []).append(found.under(*key))

    for key, each in rows.items():
        found = _table_entries(each, grid, cells)
        if found is None:
            return None
        add("tables", key, found)
        if groups is not None:
            add("group_sums", key, group_entries(each, groups.numbers, grid, at))
        if votes is not None:
            add("rater_sums", key, rater_entries(each, votes, grid, at))
    for two, a, b in _pairs_of(rows) if pairs is not None else ():
        assert pairs is not None  # noqa: S101 - there are no pairs without
        for found in _losses(a, b, cells):
            add("losses", two, found)
        if groups is not None:
            add("group_losses", two, _group_losses(a, b, at, groups.numbers))
        else:
            add("cross", two, _cross_entries(a, b, pairs, at))
        if votes is not None:
            products, losses = pair_entries(a, b, votes, pairs, at)
            add("vote_products", two, products)
            add("rater_losses", two, losses)
    owners = votes.names if votes is not None else () if groups is None else groups.names
    names = ((),) if cells is None else cells.names
    return Entries(at.size, names, {k: Sparse.added(v) for k, v in parts.items()}, owners)


def valid_entries(
    rows: Mapping[tuple[int, int], Rows],
    grid: Bins,
    cells: Coded | None = None,
    groups: Coded | None = None,
    *,
    pairs: Bins | None = None,
    votes: RowVotes | None = None,
) -> Entries:
    """Compute the entries of rows in memory; raise for the first invalid value.

    At least one row must have a positive weight.
    """
    found = entries(rows, grid, cells, groups, pairs=pairs, votes=votes)
    if found is None:
        broken = [each for each in rows.values() if kernel.bin_sums(each, grid) is None]
        inputs.refuse((broken or list(rows.values()))[0])  # also detects data that changed
    if not found.blocks["tables"].keys.shape[1]:
        inputs.refuse_no_weight(next(iter(rows.values())))
    return found


def hardened_by(tables: Sparse, hardened: Sparse) -> Sparse:
    """Replace the sums of hardened labels of the first target with those of other labels."""
    values = tables.values.copy()
    first = tables.keys[1] == 0
    for name in ("residual", "residual_sq", "residual_var"):
        row = values[SUM_NAMES.index(f"hard_{name}")]
        row[first] = hardened.values[SUM_NAMES.index(name)]
    return Sparse(tables.keys, values)


def _pairs_of(
    rows: Mapping[tuple[int, int], Rows],
) -> Iterator[tuple[tuple[int, int, int], Rows, Rows]]:
    """Yield the pairs of models, for the first target only.

    With 1,000 classes, each pair would have 3.6 million products of residuals.
    """
    for (i, target), (j, other) in combinations(sorted(rows), 2):
        if target == other == 0:
            yield (i, j, target), rows[i, target], rows[j, other]


def _per_cell(cells: Coded | None, terms: FloatArray) -> Sparse:
    """Add up the terms of the rows of each cell."""
    if cells is None:
        return Sparse(np.zeros((1, 1), dtype=np.int64), terms.sum(axis=1, keepdims=True))
    return Sparse.of(cells.numbers[None], terms)


def _numbers(cells: Coded | None, size: int) -> IntArray:
    return np.zeros(size, dtype=np.int64) if cells is None else cells.numbers


def _table_entries(rows: Rows, grid: Bins, cells: Coded | None) -> Sparse | None:
    """Add up the rows of each cell and bin: keys (cell, bin)."""
    if cells is None or len(cells.names) == 1:
        sums = kernel.bin_sums(rows, grid)
        return None if sums is None else _filled(sums)
    found = kernel.sparse_sums(rows, grid, cells.numbers)
    if found is None:
        return None
    keys = np.array(np.divmod(found[0], len(grid)), dtype=np.int64)
    return _with_rows(Sparse(keys, np.array(list(found[1]), dtype=np.float64)))


def _filled(sums: Sums) -> Sparse:
    values = np.array(list(sums), dtype=np.float64)
    keys = np.array([np.zeros(values.shape[1], dtype=np.int64), np.arange(values.shape[1])])
    return _with_rows(Sparse(keys, values))


def _with_rows(found: Sparse) -> Sparse:
    """Drop bins whose rows all have weight 0, because they add nothing."""
    return found.where(found.values[SUM_NAMES.index("count")] > 0)


def _pair_terms(rows_a: Rows, rows_b: Rows) -> FloatArray:
    """Return the terms of `GROUP_LOSSES` and of the last four of `LOSSES`, for each row.

    The labels of the two models may differ.
    """
    (p_a, y_a, w), (p_b, y_b, _) = columns(rows_a), columns(rows_b)
    here = w > 0
    unlike = ((p_a != p_b) | (y_a != y_b)) & here
    # Subtract p and y separately, so that equal labels cancel exactly.
    brier = ((p_a - p_b) - (y_a - y_b)) * ((p_a - y_a) + (p_b - y_b))
    losses = cross_entropy(y_a, p_a), cross_entropy(y_b, p_b)
    infinite = [np.isinf(loss) & here for loss in losses]
    finite_a, finite_b = (
        np.where(bad | ~here, 0.0, loss) for loss, bad in zip(losses, infinite, strict=True)
    )
    both = ~(infinite[0] | infinite[1])
    difference = np.where(both, finite_a - finite_b, 0.0)
    return np.array(
        [w, unlike, w * brier, w * difference, *infinite, w * finite_a, w * finite_b],
        dtype=np.float64,
    )


def _losses(a: Rows, b: Rows, cells: Coded | None) -> Iterator[Sparse]:
    """Add up `LOSSES` of each cell, for so few rows at a time that terms stay in the cache."""
    for start in range(0, a.y_prob.size, _PAIRED_AT_ONCE):
        part = slice(start, start + _PAIRED_AT_ONCE)
        here = None if cells is None else Coded(cells.numbers[part], cells.names)
        weight, differing, *losses, infinite_a, infinite_b, loss_a, loss_b = _pair_terms(
            a.taken(part), b.taken(part)
        )
        paired = [each for e in losses for each in (e, weight * e, e * e)]
        rest = (infinite_a, infinite_b, loss_a, loss_b)
        yield _per_cell(here, np.array([differing, *paired, *rest]))


def _group_losses(a: Rows, b: Rows, cell: IntArray, group: IntArray) -> Sparse:
    """Add up `GROUP_LOSSES` of each cell and group."""
    return Sparse.of(np.array([cell, group]), _pair_terms(a, b)[: len(GROUP_LOSSES)])


def _cross_entries(rows_a: Rows, rows_b: Rows, grid: Bins, cell: IntArray) -> Sparse:
    """Add up the products of two models' residuals: keys (cell, bin, bin)."""
    (p_a, y_a, w), (p_b, y_b, _) = columns(rows_a), columns(rows_b)
    product = w * w * (p_a - y_a) * (p_b - y_b)
    keys = np.array([cell, grid.guide.locate(p_a), grid.guide.locate(p_b)], dtype=np.int64)
    found = Sparse.of(keys, product[None])
    return found.where(found.values[0] != 0)


class Builder:
    """Add up the entries of batches, in the order of arrival, into one set."""

    def __init__(
        self,
        models: Sequence[str],
        by: Sequence[str] = (),
        *,
        bins: Bins,
        grid: Bins,
        pairs: Bins | None = None,
        group: str | None = None,
        rater: str | None = None,
    ) -> None:
        self.bins, self.grid, self.pairs = bins, grid, pairs
        self.rows = 0
        self._models, self._by, self._group, self._rater = tuple(models), tuple(by), group, rater
        self._cells: dict[tuple[str | None, ...], int] = {}
        self._owners: tuple[Any, ...] = ()
        self._dense: FloatArray | None = None
        wanted = {"tables": True, "group_sums": group, "rater_sums": rater}
        if pairs is not None:
            wanted |= {"losses": True, "cross": group is None, "group_losses": group,
                       "vote_products": rater, "rater_losses": rater}  # fmt: skip
        self._sums = {name: Summed(BLOCKS[name]) for name, asked in wanted.items() if asked}
        if group is not None:
            refuse_many_group_bins(len(grid))

    def add(self, found: Entries, dense: FloatArray | None = None) -> None:
        """Add the entries of one more batch, and its result of `dense_sums`, if it has one."""
        cells = [self._cells.setdefault(cell, len(self._cells)) for cell in found.cells]
        if len(self._cells) > MAX_CELLS:
            refuse_many_cells(self._by)
        most = None if self._group is None else MAX_GROUPS
        owners = merged(self._owners, found.owners, most=most)
        if not np.array_equal(owners.mine, np.arange(len(self._owners))):  # groups share places now
            for sums in self._sums.values():
                sums.map("owner", owners.mine)
        self._owners = owners.names
        self.rows += found.rows
        for name, each in found.blocks.items():
            block = BLOCKS[name]
            part = block.mapped(each, "cell", np.array(cells, dtype=np.int64))
            part = block.mapped(part, "owner", owners.theirs)
            self._sums.setdefault(name, Summed(block)).add(part)
        if self._dense is None:
            self._dense = dense
        elif dense is not None:
            self._dense += dense

    def _add_dense(self) -> None:
        """Add the sums of filled bins of `dense_sums`."""
        if self._dense is None:
            return
        model, class_, place = np.nonzero(self._dense[:, :, SUM_NAMES.index("count")])
        # Target 0 is the predicted class, which is not among them.
        keys = np.array([model, class_ + 1, np.zeros_like(model), place], dtype=np.int64)
        values = np.ascontiguousarray(self._dense[model, class_, :, place].T)
        self._dense = None
        self.add(Entries(0, ((),), {"tables": Sparse(keys, values)}))

    def finish(self, label: str, targets: tuple[str, ...] = (LABEL,), **about: Any) -> TableSet:
        """Return the set of all batches."""
        self._add_dense()
        self._sort_owners()
        axes = Axes(
            self._models, self.grid, targets, self._by, tuple(self._cells), self.pairs, self._owners
        )
        blocks = {name: each.total() for name, each in self._sums.items()}
        what = About(label, group=self._group, rater=self._rater, **about)
        found = TableSet(what, axes, blocks, self.bins)
        return replace(found, about=what._replace(rows_without_weight=self.rows - found.n))

    def _sort_owners(self) -> None:
        """Order owners by name, because engines return them in any order."""
        if not all(isinstance(name, str) for name in self._owners):
            return  # places, which have numbers
        order = sorted(range(len(self._owners)), key=self._owners.__getitem__)
        numbers = np.argsort(np.array(order, dtype=np.int64))
        for sums in self._sums.values():
            sums.map("owner", numbers)
        self._owners = tuple(self._owners[k] for k in order)


def refuse_many_cells(by: Sequence[str]) -> None:
    """Refuse `by` columns with too many combinations of values."""
    message = (
        f"{' and '.join(by)} must have at most {MAX_CELLS:,} different values: there are more. Use "
        "columns with fewer, or merge some of their values first."
    )
    raise InputError(message)


def rows_of_models(
    y_true: npt.ArrayLike,
    y_prob: Mapping[str, npt.ArrayLike],
    sample_weight: npt.ArrayLike | None,
    n_votes: npt.ArrayLike | None,
    groups: npt.ArrayLike | None,
) -> tuple[dict[str, Rows], Coded | None]:
    """Validate several models' predictions for the same rows, and their groups."""
    if not isinstance(y_prob, Mapping):
        refuse_no_mapping(y_prob)
    if len(y_prob) < 2:
        message = f"y_prob must hold two models or more: got {len(y_prob)}."
        raise InputError(message)
    (first, first_prob), *others = y_prob.items()
    if any(map(is_by_class, y_prob.values())):
        inputs.refuse_misaligned((inputs.index_of(p), name) for name, p in y_prob.items())
        by_class = class_rows_of_models(y_true, y_prob, sample_weight, n_votes)
        rows = {name: kernel.top_label_rows(data) for name, data in by_class.items()}
    else:
        for name, p in others:
            inputs.rows(first_prob, p, names=Names(first, name))  # compare lengths and indexes
        rows = {
            name: inputs.rows(y_true, p, sample_weight, n_votes, Names(y_prob=name))
            for name, p in y_prob.items()
        }
        for each in rows.values():
            inputs.warn_if_swapped(each.y_true, each.y_prob, each.names)
    inputs.refuse_misaligned_groups(groups, y_true=y_true, y_prob=first_prob)
    return rows, None if groups is None else inputs.coded_groups(groups, rows[first])


def refuse_no_mapping(y_prob: object) -> NoReturn:
    """Refuse predictions of several models without names."""
    message = (
        'y_prob must map names of models to predictions, {"old": p, "new": q}: got '
        f"{type(y_prob).__name__}."
    )
    raise InputTypeError(message)


def tables_of_models(
    y_true: npt.ArrayLike,
    y_prob: Mapping[str, npt.ArrayLike],
    *,
    bins: BinsLike,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    raters: bool = False,
) -> TableSet:
    """Return the set of several models of the same rows in arrays, with pairs, on these bins.

    For classes, each model's predicted class is used, as in `top_label_reliability`.
    """
    binned = Bins.of(bins)
    refuse_many_bins(len(binned))
    models, group = rows_of_models(y_true, y_prob, sample_weight, n_votes, groups)
    if raters and any(map(is_by_class, y_prob.values())):
        message = (
            "raters=True takes one probability per row: these predictions are of classes. Select "
            "one class: votes.binary(name) and its column of predictions."
        )
        raise InputError(message)
    votes = votes_of_raters(y_true, groups) if raters else None
    rows = {(k, 0): each for k, each in enumerate(models.values())}
    builder = Builder(
        tuple(models), bins=binned, grid=binned, pairs=binned,
        group=None if group is None else "groups", rater=None if votes is None else "raters",
    )  # fmt: skip
    builder.add(valid_entries(rows, binned, groups=group, pairs=binned, votes=votes))
    return builder.finish("label")


def dense_sums(models: Sequence[ClassRows], grid: Bins) -> FloatArray:
    """Compute the sums of each model, class, and bin: shape (models, classes, sums, bins).

    Raises
    ------
    InputError
        If a value is invalid.
    """
    found = [totals(d.y_prob, d.y_true, d.sample_weight, d.n_votes, grid) for d in models]
    for sums, data in zip(found, models, strict=True):
        if sums is None:
            refuse(data)
    return np.array(found)
