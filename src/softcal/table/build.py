"""Build sets of tables from rows: compute the entries of each batch, and add them up."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from softcal._validation import inputs
from softcal._validation.inputs import Names, as_float64
from softcal._validation.multiclass import class_rows_of_models, is_by_class, refuse
from softcal.bins import Bins
from softcal.exceptions import InputError, InputTypeError
from softcal.table import kernel
from softcal.table.groups import MAX_KNOWN, GroupIds, GroupNames, refuse_many_group_bins
from softcal.table.joint import refuse_many_bins
from softcal.table.kernel import SUM_NAMES, Sums, cross_entropy, totals
from softcal.table.raters import (
    RATER_LOSSES,
    RATER_SUMS,
    VOTE_PRODUCTS,
    pair_entries,
    rater_entries,
)
from softcal.table.reliability import votes_of_raters
from softcal.table.spill import Gathered, Spill
from softcal.table.tableset import (
    LABEL,
    LOSSES,
    Groups,
    IntArray,
    Pairs,
    RaterTables,
    Sparse,
    Summed,
    TableSet,
    empty_sparse,
)
from softcal.table.tableset import under as _under
from softcal.table.ties import (
    GROUP_TERMS,
    cuts,
    paired,
    place_of,
    table_number,
    tied,
    tied_losses,
    with_cells,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from softcal._validation.inputs import FloatArray, Rows
    from softcal._validation.multiclass import ClassRows
    from softcal._validation.votes import RowVotes
    from softcal.bins import BinsLike
    from softcal.table.joint import JointTable


MAX_CELLS = 100_000
"""The largest number of combinations of `by` values; each combination has its own tables."""

_PAIRED_AT_ONCE = 1 << 13


class Coded(NamedTuple):
    """The name of each row, as an index into `names`. Groups may be integers in an array."""

    numbers: IntArray
    names: Sequence[Any]


class Entries(NamedTuple):
    """The entries that one batch of rows adds to a set, with the batch's own cell numbers."""

    rows: int
    cells: Sequence[tuple[str | None, ...]]
    groups: Sequence[Any]
    tables: Sparse
    cross: Sparse
    losses: Sparse
    grouped: Sequence[Gathered]  # per model and target: w d and w by group, cell, and bin
    grouped_losses: Sequence[Gathered]  # per pair of models: `GROUP_TERMS` by group and cell
    scores: Sparse | None = None  # multiclass only: keys (model, cell), the sums of `SCORES`
    raters: RaterTables | None = None

    @staticmethod
    def of_tables(rows: int, cells: Sequence[tuple[str | None, ...]], tables: Sparse) -> Entries:
        """Return entries without pairs and groups, from sums that an engine has computed."""
        return Entries(
            rows, cells, [], tables, empty_sparse(6, 1), empty_sparse(4, len(LOSSES)), [], [],
        )  # fmt: skip


_PAIR_TERMS = (*GROUP_TERMS, *LOSSES[-4:])


def entries(
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
        The bins of the joint sums of each pair of models. With groups, they are the grid.
    votes : RowVotes, optional
        The single votes behind the labels, to add up by rater; not with groups.
    """
    tables = []
    for key, each in rows.items():
        found = _table_entries(each, grid, cells)
        if found is None:
            return None
        tables.append(_under(key, found))
    at = _numbers(cells, next(iter(rows.values())).y_prob.size)
    cross, losses = [empty_sparse(6, 1)], [empty_sparse(4, len(LOSSES))]
    grouped, grouped_losses = [], []
    if groups is not None:
        owners = _Owners(groups, at, 1 if cells is None else len(cells.names))
        grouped = [_group_entries(each, grid, owners, key) for key, each in rows.items()]
    for two, a, b in _pairs_of(rows):
        if pairs is None:
            break
        if groups is None:
            cross.append(_under(two, _cross_entries(a, b, pairs, at)))
            losses += [_under(two, part) for part in _row_losses(a, b, cells)]
            continue
        terms = _pair_terms(a, b)
        of_groups = terms[: len(GROUP_TERMS)].copy()  # a view would keep all terms in memory
        grouped_losses.append(owners.gathered(two, np.zeros_like(at), 1, of_groups))
        # The other terms are sums over rows, regardless of their group.
        terms = np.concatenate((np.zeros_like(of_groups), terms[len(GROUP_TERMS) :]))
        losses.append(_under(two, _per_cell(cells, _losses(terms))))
    names = ((),) if cells is None else cells.names
    return Entries(
        at.size, names, [] if groups is None else groups.names,
        Sparse.added(tables), Sparse.added(cross), Sparse.added(losses), grouped, grouped_losses,
        raters=None if votes is None else _rater_tables(rows, grid, at, votes, pairs),
    )  # fmt: skip


def _rater_tables(
    rows: Mapping[tuple[int, int], Rows],
    grid: Bins,
    cell: IntArray,
    votes: RowVotes,
    pairs: Bins | None,
) -> RaterTables:
    """Add up the single votes on the rows of each model, and of each pair of models."""
    raters = len(votes.names)
    sums = [empty_sparse(5, len(RATER_SUMS))]
    for key, each in rows.items():
        flat, values = rater_entries(each, votes, grid, cell)
        own, place = np.divmod(flat, len(grid))
        keys = np.array([*np.divmod(own, raters), place], dtype=np.int64)
        sums.append(_under(key, Sparse(keys, values)))
    products, losses = empty_sparse(6, len(VOTE_PRODUCTS)), empty_sparse(5, len(RATER_LOSSES))
    for two, a, b in _pairs_of(rows):
        if pairs is None:
            break
        (flat, values), (owner, of_raters) = pair_entries(a, b, votes, pairs, cell)
        found = _under(two, Sparse(_unraveled(flat, len(pairs)), values))
        products = Sparse.added([products, found])
        keys = np.array(np.divmod(owner, raters), dtype=np.int64)
        losses = Sparse.added([losses, _under(two, Sparse(keys, of_raters))])
    return RaterTables("", votes.names, Sparse.added(sums), products, losses)


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
    if not found.tables.keys.shape[1]:
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


class _Owners(NamedTuple):
    """The group and the cell of each row."""

    groups: Coded
    cell: IntArray
    cells: int

    def gathered(
        self, key: tuple[int, ...], at: IntArray, bins: int, terms: FloatArray
    ) -> Gathered:
        """Add up rows of the same group, cell, and bin if few combinations are possible."""
        table = table_number(key)
        possible = len(self.groups.names) * self.cells * bins
        if possible > 4 * at.size:
            return Gathered(self.groups.numbers, place_of(table, self.cell, at), terms)
        flat = (self.groups.numbers * self.cells + self.cell) * bins + at
        filled = np.flatnonzero(np.bincount(flat, minlength=possible))
        owner, at = np.divmod(filled, bins)
        group, cell = np.divmod(owner, self.cells)
        sums = np.array([np.bincount(flat, row, possible)[filled] for row in terms])
        return Gathered(group, place_of(table, cell, at), sums)


def _group_entries(rows: Rows, grid: Bins, owners: _Owners, key: tuple[int, int]) -> Gathered:
    """Add up w d and w over the rows of each group, cell, and bin."""
    p, y, w = _columns(rows)
    found = owners.gathered(key, grid.guide.locate(p), len(grid), np.array([w * (p - y), w]))
    here = found.values[1] > 0
    if here.all():
        return found
    return Gathered(found.group[here], found.place[here], found.values[:, here])


def _columns(rows: Rows) -> tuple[FloatArray, FloatArray, FloatArray]:
    weight = rows.sample_weight
    w = np.ones(rows.y_prob.size) if weight is None else as_float64(weight)
    return as_float64(rows.y_prob), as_float64(rows.y_true), w


def _pair_terms(rows_a: Rows, rows_b: Rows) -> FloatArray:
    """Return the terms of each row in `_PAIR_TERMS`. The labels of the two models may differ."""
    (p_a, y_a, w), (p_b, y_b, _) = _columns(rows_a), _columns(rows_b)
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


def _row_losses(a: Rows, b: Rows, cells: Coded | None) -> Iterator[Sparse]:
    """Add up `LOSSES` of each cell, for so few rows at a time that terms stay in the cache."""
    for start in range(0, a.y_prob.size, _PAIRED_AT_ONCE):
        part = slice(start, start + _PAIRED_AT_ONCE)
        here = None if cells is None else Coded(cells.numbers[part], cells.names)
        yield _per_cell(here, _losses(_pair_terms(a.taken(part), b.taken(part))))


def _losses(terms: FloatArray) -> FloatArray:
    """Return the terms of each row in `LOSSES`, from its pair terms."""
    return np.concatenate((paired(terms[: len(GROUP_TERMS)]), terms[len(GROUP_TERMS) :]))


def _cross_entries(rows_a: Rows, rows_b: Rows, grid: Bins, cell: IntArray) -> Sparse:
    """Add up the products of two models' residuals: keys (cell, bin, bin)."""
    (p_a, y_a, w), (p_b, y_b, _) = _columns(rows_a), _columns(rows_b)
    product = w * w * (p_a - y_a) * (p_b - y_b)
    size = len(grid)
    flat = (cell * size + grid.guide.locate(p_a)) * size + grid.guide.locate(p_b)
    if int(flat.max(initial=0)) < 4 * flat.size:  # dense enough to count
        sums = np.bincount(flat, product).astype(np.float64, copy=False)
        filled = np.flatnonzero(sums)
        return Sparse(_unraveled(filled, size), sums[filled][None])
    found = Sparse.of(flat[None], product[None])
    return Sparse(_unraveled(found.keys[0], size), found.values)


def _unraveled(flat: npt.NDArray[Any], size: int) -> IntArray:
    rest, second = np.divmod(flat, size)
    cell, first = np.divmod(rest, size)
    return np.array([cell, first, second], dtype=np.int64)


class Builder:
    """Add up the entries of batches, in the order of arrival, into one set."""

    def __init__(
        self,
        models: Sequence[str],
        by_names: Sequence[str] = (),
        *,
        bins: Bins,
        grid: Bins,
        pairs: Bins | None = None,
        group: str | None = None,
        rater: str | None = None,
    ) -> None:
        self.models, self.by_names = tuple(models), tuple(by_names)
        self.bins, self.grid, self.pairs, self.group = bins, grid, pairs, group
        self.rows = 0
        self._cells: dict[tuple[str | None, ...], int] = {}
        self._tables = Summed(4, len(SUM_NAMES))
        self._cross, self._losses = Summed(6, 1), Summed(4, len(LOSSES))
        self._scores: Sparse | None = None
        self._raters: RaterTables | None = None
        if rater is not None:
            self._raters = RaterTables(
                rater, (), empty_sparse(5, len(RATER_SUMS)), empty_sparse(6, len(VOTE_PRODUCTS)),
                empty_sparse(5, len(RATER_LOSSES)),
            )  # fmt: skip
        self._names = GroupNames()
        self._grouped, self._grouped_losses = Spill(), Spill()
        if group is not None:
            refuse_many_group_bins(len(grid))

    def add(self, found: Entries) -> None:
        """Add the entries of one more batch."""
        cells = [self._cells.setdefault(cell, len(self._cells)) for cell in found.cells]
        if len(self._cells) > MAX_CELLS:
            refuse_many_cells(self.by_names)
        self.rows += found.rows
        self._tables.add(found.tables.renumbered(2, cells))
        self._cross.add(found.cross.renumbered(3, cells))
        self._losses.add(found.losses.renumbered(3, cells))
        if found.scores is not None:
            scores = found.scores.renumbered(1, cells)
            before = self._scores
            self._scores = scores if before is None else Sparse.added([before, scores])
        if self._raters is not None and found.raters is not None:
            self._raters = self._raters.plus(found.raters, cells)
        if self.group is not None:
            self._add_groups(found, np.array(cells, dtype=np.int64))

    def add_all(self, found: list[Entries]) -> None:
        """Add the entries of several batches, and free each one after it is added."""
        found.reverse()
        while found:
            self.add(found.pop())

    def _add_groups(self, found: Entries, cells: IntArray) -> None:
        names = self._names.numbers(found.groups)
        for spill, parts in (
            (self._grouped, found.grouped), (self._grouped_losses, found.grouped_losses)
        ):  # fmt: skip
            for group, place, values in parts:
                spill.add(Gathered(names[group], with_cells(place, cells), values))

    def finish(
        self,
        label: str,
        targets: tuple[str, ...] = (LABEL,),
        *,
        report: Callable[[float], None] | None = None,
        **about: Any,
    ) -> TableSet:
        """Return the set of all batches; `report` receives the share of groups processed."""
        pairs, groups = None, None
        if self.pairs is not None:
            pairs = Pairs(self._cross.total(), self._losses.total(), self.pairs)
        cells = tuple(self._cells)
        if self.group is not None:
            with closing(self):
                groups, pairs = self._tied(self.group, cells, report)
        found = TableSet(
            label, self.models, self.bins, self.grid, self._tables.total(), targets, self.by_names,
            cells, pairs=pairs, groups=groups, scores=self._scores, raters=self._raters, **about,
        )  # fmt: skip
        return replace(found, rows_without_weight=self.rows - found.n)

    def _tied(
        self,
        column: str,
        cells: tuple[tuple[str | None, ...], ...],
        report: Callable[[float], None] | None,
    ) -> tuple[Groups, Pairs | None]:
        segments, found = cuts(self.by_names, cells)
        counts, squares, cross, group, cell, sums = tied(
            self._grouped, found, len(self.grid), pairs=self.pairs is not None, report=report
        )
        ids = GroupIds(group, cell, self._names.texts) if group.size <= MAX_KNOWN else None
        groups = Groups(column, segments, counts, squares, ids, sums)
        if self.pairs is None:
            return groups, None
        own = self._losses.total()
        losses = [own.renumbered(3, cut.of_cell + cut.first) for cut in found]
        losses.append(tied_losses(self._grouped_losses, found))
        return groups, Pairs(cross, Sparse.added(losses), self.grid)

    def close(self) -> None:
        """Remove temporary files."""
        self._grouped.close()
        self._grouped_losses.close()


def refuse_many_cells(by: Sequence[str]) -> None:
    """Refuse `by` columns with too many combinations of values."""
    message = (
        f"{' and '.join(by)} must have at most {MAX_CELLS:,} different values: there are more. Use "
        "columns with fewer, or merge some of their values first."
    )
    raise InputError(message)


def joint_table(
    y_true: npt.ArrayLike,
    y_prob: Mapping[str, npt.ArrayLike],
    *,
    bins: BinsLike = 10,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    raters: bool = False,
) -> JointTable:
    r"""Compute the joint table of two models: their tables, and products between them.

    The product of bin b of model A and bin c of model B is \(\sum_i w_i^2 d^A_i d^B_i\) over the
    rows in both bins. Here \(d = p - y\).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes)
        Labels, as in `reliability`.
    y_prob : mapping from str to array-like of shape (n_samples,) or (n_samples, n_classes)
        The predictions of two models, A first. For classes, each model's predicted class is used,
        as in `top_label_reliability`.
    bins : int, Bins, or sequence of float, default=10
        As in `reliability`; at most 2,000 bins.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.
    n_votes : int or array-like of shape (n_samples,), optional
        The number of votes behind each label.
    groups : array-like of shape (n_samples,), optional
        The group of each row, if rows are not independent. Joint tables with groups can be added
        if no group has rows in two of them.
    raters : bool, default=False
        Whether raters are a sample, as in `reliability`. Predictions must be one probability per
        row.

    Returns
    -------
    JointTable
        The joint table, from which `compare` computes differences.

    Examples
    --------
    >>> joint = joint_table([0.5, 1.0], {"old": [0.4, 0.9], "new": [0.6, 0.9]}, bins=2)
    >>> joint.cross.round(3)
    array([[ 0.  , -0.01],
           [ 0.  ,  0.01]])
    """
    binned = Bins.of(bins)
    refuse_many_bins(len(binned))
    rows, group = rows_of_models(y_true, y_prob, sample_weight, n_votes, groups)
    if len(rows) != 2:
        message = f"y_prob must hold two models: got {len(rows)}. Use compare_many for more."
        raise InputError(message)
    votes = votes_on_models(y_true, y_prob, groups) if raters else None
    return joined_rows(rows, binned, group, votes)


def votes_on_models(
    y_true: npt.ArrayLike, y_prob: Mapping[str, npt.ArrayLike], groups: object
) -> RowVotes:
    """Return the single votes behind the labels of all models."""
    if any(map(is_by_class, y_prob.values())):
        message = (
            "raters=True takes one probability per row: these predictions are of classes. Select "
            "one class: votes.binary(name) and its column of predictions."
        )
        raise InputError(message)
    return votes_of_raters(y_true, groups)


def rows_of_models(
    y_true: npt.ArrayLike,
    y_prob: Mapping[str, npt.ArrayLike],
    sample_weight: npt.ArrayLike | None,
    n_votes: npt.ArrayLike | None,
    groups: npt.ArrayLike | None,
) -> tuple[dict[str, Rows], npt.NDArray[np.intp] | None]:
    """Validate several models' predictions for the same rows, and number the groups."""
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
    return rows, None if groups is None else inputs.group_numbers(groups, rows[first])


def refuse_no_mapping(y_prob: object) -> NoReturn:
    """Refuse predictions of several models without names."""
    message = (
        'y_prob must map names of models to predictions, {"old": p, "new": q}: got '
        f"{type(y_prob).__name__}."
    )
    raise InputTypeError(message)


def joined_rows(
    models: Mapping[str, Rows],
    bins: Bins,
    group: npt.NDArray[np.intp] | None = None,
    votes: RowVotes | None = None,
) -> JointTable:
    """Return the joint table of two models. Their labels may differ, as for predicted classes."""
    groups = None if group is None else Coded(group.astype(np.int64), range(int(group.max()) + 1))
    rows_a, rows_b = models.values()
    both = {(0, 0): rows_a, (1, 0): rows_b}
    found = valid_entries(both, bins, groups=groups, pairs=bins, votes=votes)
    column, rater = None if group is None else "groups", None if votes is None else "raters"
    builder = Builder(tuple(models), bins=bins, grid=bins, pairs=bins, group=column, rater=rater)
    builder.add(found)
    return builder.finish("label").pair(*models)


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


class DenseSums:
    """Add up the results of `dense_sums`."""

    def __init__(self) -> None:
        self.sums: FloatArray | None = None

    def add(self, sums: FloatArray | None) -> None:
        """Add the sums of more rows in place; all batches have sums, or none has."""
        if self.sums is None or sums is None:
            self.sums = sums
        else:
            self.sums += sums

    def entries(self) -> list[Entries]:
        """Return the sums of filled bins as entries, or an empty list without sums."""
        if self.sums is None:
            return []
        model, class_, place = np.nonzero(self.sums[:, :, SUM_NAMES.index("count")])
        # Target 0 is the predicted class, which is not among them.
        keys = np.array([model, class_ + 1, np.zeros_like(model), place], dtype=np.int64)
        values = np.ascontiguousarray(self.sums[model, class_, :, place].T)
        return [Entries.of_tables(0, ((),), Sparse(keys, values))]
