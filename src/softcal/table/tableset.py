"""Sets of reliability tables, keyed by model, target, and segment.

The tables are stored sparsely, with one entry for each filled bin of a model, target, and cell. The
memory therefore depends on the number of rows, not of cells. A dense `Reliability` is built on
request.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from softcal import _display
from softcal.bins import Bins, meant_bins
from softcal.exceptions import BinMismatchError, InputError
from softcal.table.groups import MAX_SUMS, Clusters, GroupIds, clusters_of
from softcal.table.joint import JointRaters, JointTable, PairedSums, refuse_many_bins
from softcal.table.kernel import SUM_NAMES, Sums
from softcal.table.raters import RATER_LOSSES, Raters
from softcal.table.reliability import Reliability
from softcal.table.scores import ItemScores

if TYPE_CHECKING:
    import os

    from softcal._validation.inputs import FloatArray
    from softcal.bins import BinsLike

LABEL = "label"
"""The target of a set whose labels are one probability per row."""

TOP = "top"
"""The target of a multiclass set: the class each model predicts."""


def thresholds(classes: Sequence[object]) -> tuple[str, ...]:
    """Return the targets between ordered classes: "> 1" is the probability of a class above 1."""
    return tuple(f"> {name}" for name in classes[:-1])


BOUNDS = ("low", "high")
"""The targets of a set whose labels are intervals: their lower and upper ends."""

MISSING = "(missing)"
"""The displayed name of the segment of rows without a value."""

IntArray = npt.NDArray[np.int64]

_ENTRIES_WAITING = 1 << 18  # entries of parts that are kept before they are added up


class Sparse(NamedTuple):
    """Entries of sums, each with a key of several integers. Keys are unique and increasing."""

    keys: IntArray  #     (parts of a key, entries)
    values: FloatArray  # (sums, entries)

    @staticmethod
    def added(parts: Sequence[Sparse]) -> Sparse:
        """Add up entries with the same key."""
        if len(parts) == 1:
            return parts[0]
        keys = np.concatenate([part.keys for part in parts], axis=1)
        values = np.concatenate([part.values for part in parts], axis=1)
        return Sparse.of(keys, values)

    @staticmethod
    def of(keys: IntArray, values: FloatArray) -> Sparse:
        """Sort entries by key, and add up those with the same key."""
        if not keys.shape[1]:
            return Sparse(keys, values)
        sizes = keys.max(axis=1) + 1
        if math.prod(sizes.tolist()) < 1 << 62:  # then the key fits in one integer
            flat = np.ravel_multi_index(tuple(keys), tuple(sizes))
            if (flat[1:] > flat[:-1]).all():
                return Sparse(keys, values)
            order = flat.argsort(kind="stable")
            flat = flat[order]
            new = flat[1:] != flat[:-1]
        else:
            order = np.lexsort(keys[::-1])
            new = (keys[:, order][:, 1:] != keys[:, order][:, :-1]).any(axis=0)
        first = np.flatnonzero(np.append(True, new))
        return Sparse(keys[:, order[first]], np.add.reduceat(values[:, order], first, axis=1))

    def where(self, chosen: npt.NDArray[np.bool_]) -> Sparse:
        """Return the chosen entries."""
        return Sparse(self.keys[:, chosen], self.values[:, chosen])

    def renumbered(self, part: int, numbers: Sequence[int] | IntArray) -> Sparse:
        """Replace one part of the keys with other numbers, and add up keys that become equal."""
        keys = self.keys.copy()
        keys[part] = np.asarray(numbers, dtype=np.int64)[keys[part]]
        return Sparse.of(keys, self.values)


def empty_sparse(key_parts: int, sums: int) -> Sparse:
    """Return an empty set of entries."""
    return Sparse(np.empty((key_parts, 0), dtype=np.int64), np.empty((sums, 0)))


def under(key: tuple[int, ...], found: Sparse) -> Sparse:
    """Prepend the numbers of a model and target, or of two models, to the keys of entries."""
    above = np.broadcast_to(np.array(key, dtype=np.int64)[:, None], (len(key), found.keys.shape[1]))
    return Sparse(np.concatenate((above, found.keys)), found.values)


class Summed:
    """A sum of entries that arrive in many parts; waiting parts are added up regularly."""

    def __init__(self, key_parts: int, sums: int) -> None:
        self._parts = [empty_sparse(key_parts, sums)]

    def add(self, part: Sparse) -> None:
        """Add more entries, whose keys may repeat."""
        self._parts.append(part)
        waiting = sum(each.keys.shape[1] for each in self._parts[1:])
        if waiting > max(_ENTRIES_WAITING, self._parts[0].keys.shape[1]):
            self._parts = [Sparse.added(self._parts)]

    @property
    def size(self) -> int:
        """The number of entries added up so far."""
        return int(self._parts[0].keys.shape[1])

    def total(self) -> Sparse:
        """Return the sum."""
        self._parts = [Sparse.added(self._parts)]
        return self._parts[0]


class Pairs(NamedTuple):
    """Sums of pairs of models: products of residuals per pair of bins, and paired losses.

    The number of the first model is below that of the second. With groups, the place is the number
    of a segment, and the sums are those of groups. Otherwise it is the number of a cell.
    """

    cross: Sparse  #  keys (first, second, target, place, bin, bin), one sum
    losses: Sparse  # keys (first, second, target, place), the sums of `LOSSES`
    bins: Bins  #     of the products, coarser than the grid of the tables

    def changed(self, change: Callable[[Sparse], Sparse]) -> Pairs:
        """Return the pairs with a function applied to their entries."""
        return self._replace(cross=change(self.cross), losses=change(self.losses))


LOSSES = (
    "differing",
    *(f"{loss}_{part}" for loss in ("brier", "log_loss") for part in PairedSums._fields),
    "infinite_a",
    "infinite_b",
    "log_loss_a",
    "log_loss_b",
)
"""The sums of `JointTable` besides the products; the last two are sums of w times loss."""


class Groups(NamedTuple):
    """Sums of groups of rows, for each segment, because a group may be in several cells."""

    column: str
    segments: tuple[Mapping[str, str | None], ...]  # values of some `by` columns; all rows: {}
    counts: Sparse  #  keys (model, target, segment), the number of groups
    squares: Sparse  # keys (model, target, segment, bin, bin): sums of products of residual, weight
    ids: GroupIds | None = None  # if the rows were read in this process
    sums: Sparse | None = None  # keys (model, target, cell, group, bin): residual, weight, if few


class RaterTables(NamedTuple):
    """Sums of the votes of each rater; sets add them by the names of the raters."""

    column: str
    names: tuple[str, ...]
    sums: Sparse  #     keys (model, target, cell, rater, bin), the sums of `RATER_SUMS`
    products: Sparse  # keys (first, second, target, cell, bin, bin), those of `VOTE_PRODUCTS`
    losses: Sparse  #   keys (first, second, target, cell, rater), those of `RATER_LOSSES`

    def plus(self, other: RaterTables, cells: Sequence[int]) -> RaterTables:
        """Add the votes of another set, given the new numbers of its cells."""
        known = {name: k for k, name in enumerate(self.names)}
        numbers = [known.setdefault(name, len(known)) for name in other.names]
        sums = other.sums.renumbered(2, cells).renumbered(3, numbers)
        products = other.products.renumbered(3, cells)
        losses = other.losses.renumbered(3, cells).renumbered(4, numbers)
        return RaterTables(
            self.column,
            tuple(known),
            Sparse.added([self.sums, sums]),
            Sparse.added([self.products, products]),
            Sparse.added([self.losses, losses]),
        )


@dataclass(frozen=True, eq=False, repr=False)
class TableSet(Mapping[str, Reliability]):
    """Tables from one pass over the rows, keyed by model, target, and segment. See `scan`.

    Sets can be added, for example daily sets into a weekly total. `tables["a"]` is the table of
    model a, and `tables.by("country")` maps each country to the set of its rows.

    Attributes
    ----------
    label : str
        The column of labels. For labels known as intervals, both columns, joined by " to ".
    label_high : str or None
        The column of the upper ends of such labels.
    models : tuple of str
        The columns of predictions.
    targets : tuple of str
        What the predictions are compared with: "label", or "top" and each class.
    by_names : tuple of str
        The columns whose values define segments.
    bins : Bins
        The bins of the tables that the set returns.
    grid : Bins
        The finer bins on which the set is stored. `coarsen` accepts any of their edges.
    weight, votes, date : str or None
        The columns of weights and numbers of votes, and the date of the rows, if given.
    rows_without_weight : int or None
        The number of rows with weight 0; None if they were not counted.
    ordered : bool
        Whether the classes are ordered; targets such as "> 2" then follow the classes.
    rows_dropped : int or None
        The number of rows dropped by `drop_missing` and `drop_unmatched`; None if neither was used.

    Examples
    --------
    >>> from importlib.resources import files
    >>> from softcal import scan
    >>> items = files("softcal") / "data" / "lidc_malignancy" / "items.csv"
    >>> models = ["prob_rf_all", "prob_lr_geometry"]
    >>> tables = scan(items, y_true="soft_malignant", y_prob=models, by="fold")
    >>> round(tables["prob_rf_all"].smece, 4)
    0.0952
    >>> tables.by("fold")["0"]["prob_rf_all"]
    Reliability(n=138, bins=10)
    >>> sum(tables.by("fold").values()).n
    1377
    """

    label: str
    models: tuple[str, ...]
    bins: Bins
    grid: Bins
    tables: Sparse = field(repr=False)  # keys (model, target, cell, bin), the sums of `Sums`
    targets: tuple[str, ...] = (LABEL,)
    by_names: tuple[str, ...] = ()
    cells: tuple[tuple[str | None, ...], ...] = ((),)  # the values of the `by` columns
    weight: str | None = None
    votes: str | None = None
    date: str | None = None
    rows_without_weight: int | None = None
    label_high: str | None = None
    pairs: Pairs | None = None
    groups: Groups | None = None
    scores: Sparse | None = field(default=None, repr=False)  # keys (model, cell), `score_names`
    raters: RaterTables | None = None
    rows_dropped: int | None = None
    ordered: bool = False

    # The tables of all rows

    def __getitem__(self, key: str | tuple[str, str]) -> Reliability:
        """Return the table of a model, or of a (model, target)."""
        model, target = key if isinstance(key, tuple) else (key, self.targets[0])
        if model not in self.models or target not in self.targets:
            named = f"model {model!r}" if model not in self.models else f"target {target!r}"
            have = self.models if model not in self.models else self.targets
            asked = _display.did_you_mean(model if model not in self.models else target, have)
            message = f"the set has no {named}.{asked} It has: {', '.join(map(repr, have))}."
            raise _NoSuchTableError(message)
        m, t = self.models.index(model), self.targets.index(target)
        return Reliability(self.bins, self._sums(m, t), self._clusters(m, t), self._raters(m, t))

    def __iter__(self) -> Iterator[str]:
        return iter(self.models)

    def __len__(self) -> int:
        return len(self.models)

    @property
    def n(self) -> int:
        """The number of rows with positive weight."""
        first = (self.tables.keys[0] == 0) & (self.tables.keys[1] == 0)
        return int(self.tables.values[0, first].sum())

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes of a multiclass set; else empty."""
        if self.targets[0] != TOP:
            return ()
        return self.targets[1 : len(self.targets) // 2 + 1] if self.ordered else self.targets[1:]

    @property
    def thresholds(self) -> tuple[str, ...]:
        """The targets between ordered classes; empty if the classes are not ordered."""
        return self.targets[len(self.classes) + 1 :] if self.ordered else ()

    def cumulative(self, model: str) -> dict[str, Reliability]:
        r"""Return the table of \(P(\text{class} > k)\) for each threshold k of ordered classes.

        `cumulative_smece` and `cumulative_smece_interval` take the result.

        Parameters
        ----------
        model : str
            One of `models`.

        Raises
        ------
        InputError
            If the set was made without `ordered=True`.

        Examples
        --------
        >>> import pandas as pd
        >>> from softcal import scan
        >>> rows = pd.DataFrame({"p_1": [0.5, 0.25], "p_2": [0.25, 0.5], "p_3": [0.25, 0.25]})
        >>> tables = scan(rows.assign(y=[1, 3]), y_true="y", y_prob={"m": "p_*"}, ordered=True)
        >>> {name: rel.smece for name, rel in tables.cumulative("m").items()}
        {'> 1': 0.375, '> 2': 0.25}
        """
        if not self.ordered:
            message = (
                "the set has no thresholds: its classes are not ordered. Scan the rows again with "
                "ordered=True (--ordered)."
            )
            raise InputError(message)
        return {name: self[model, name] for name in self.thresholds}

    def item_scores(self, model: str) -> ItemScores:
        r"""Return the scores of single multiclass items: Brier, log loss, DistCE, and others.

        Each is a weighted mean over rows, \(\sum_i w_i s_i / \sum_i w_i\). The set stores both
        sums.

        Parameters
        ----------
        model : str
            One of `models`.

        Returns
        -------
        ItemScores
            The fields are `brier`, `log_loss`, `kl_divergence`, `dist_ce`, `ent_ce`,
            `ent_ce_signed`, `rank_cs`, `dist_ce_floor`, and `brier_without_vote_noise`. A score
            that the rows do not determine is None. `infinite` counts the rows whose log loss is
            infinite. Ordered classes also have `wasserstein`, `wasserstein_floor`,
            `ranked_probability_score`, `ranked_probability_score_without_vote_noise`,
            `manhattan`, and `manhattan_floor`.

        Raises
        ------
        InputError
            If the set has no such scores: it has a single probability per row, whose tables have
            the Brier score, or it comes from an older file.

        Examples
        --------
        >>> import pandas as pd
        >>> from softcal import scan
        >>> rows = pd.DataFrame({"p_cat": [0.75, 0.5], "p_dog": [0.25, 0.5], "y": ["cat", "dog"]})
        >>> tables = scan(rows, y_true="y", y_prob={"model": "p_*"})
        >>> tables.item_scores("model").brier
        0.3125
        """
        return ItemScores.of(self.score_sums(model))

    def score_sums(self, model: str) -> FloatArray:
        """Return the sums of `item_scores`, in the order of `score_names`."""
        self[model]  # raises if the set does not have it
        if self.scores is None:
            message = (
                "the set has no item scores: only multiclass sets have them. Scan the rows with "
                "one column per class."
            )
            raise InputError(message)
        mine = self.scores.keys[0] == self.models.index(model)
        out: FloatArray = self.scores.values[:, mine].sum(axis=1)
        return out

    def _sums(self, model: int, target: int) -> Sums:
        keys, values = self.tables
        # Keys are increasing, so the entries of a model and target are adjacent.
        start, stop = keys[0].searchsorted([model, model + 1])
        chosen = slice(*(start + keys[1, start:stop].searchsorted([target, target + 1])))
        at = self._places(self.grid)[keys[3, chosen]]
        named = {
            name: _counted(at, row, len(self.bins))
            for name, row in zip(SUM_NAMES, values[:, chosen], strict=True)
        }
        return Sums(named.pop("count").astype(np.int64), **named)

    def _places(self, grid: Bins) -> IntArray:
        """Return, for each bin of a grid, the index of the coarser bin that contains it."""
        places: IntArray = self.bins.edges[1:-1].searchsorted(grid.edges[:-1], side="right")
        return places

    def _clusters(self, model: int, target: int) -> Clusters | None:
        if self.groups is None:
            return None
        place, size = self._places(self.grid), len(self.bins)
        if self.groups.sums is not None:
            (m, t, _, group, bin_), values = self.groups.sums
            mine = (m == model) & (t == target)
            return clusters_of(group[mine], place[bin_[mine]], values[:, mine], size)
        m, t, s, *at = self.groups.squares.keys
        whole = self._segment()
        chosen = (m == model) & (t == target) & (s == whole)
        flat = place[at[0][chosen]] * size + place[at[1][chosen]]
        squares = (
            _counted(flat, row, size * size).reshape(size, size)
            for row in self.groups.squares.values[:, chosen]
        )
        m, t, s = self.groups.counts.keys
        count = self.groups.counts.values[0, (m == model) & (t == target) & (s == whole)]
        return Clusters(int(count.sum()), *squares)

    def _raters(self, model: int, target: int) -> Raters | None:
        if self.raters is None:
            return None
        keys, values = self.raters.sums
        mine = (keys[0] == model) & (keys[1] == target)
        place = self._places(self.grid)[keys[4, mine]]
        return Raters.of(self.raters.names, keys[3, mine], place, values[:, mine])

    def _segment(self) -> int:
        """Return the number of the segment of all rows."""
        return next(k for k, each in enumerate(self.groups.segments) if not each)  # type: ignore[union-attr]

    # Segments

    def by(self, column: str) -> Segments:
        """Return the sets of the segments of a column.

        Parameters
        ----------
        column : str
            One of `by_names`.

        Returns
        -------
        mapping from str to TableSet
            One set per value, in sorted order; numbers are sorted by size. The key of rows without
            a value is None.
        """
        if column not in self.by_names:
            have = ", ".join(map(repr, self.by_names)) or "none"
            asked = _display.did_you_mean(column, self.by_names)
            message = f"the set has no segments by {column!r}.{asked} It has segments by: {have}."
            raise InputError(message)
        return Segments(self, column)

    # Pairs of models

    def pair(self, a: str, b: str, target: str | None = None) -> JointTable:
        """Return the joint table of two models, from which `compare` computes differences.

        Parameters
        ----------
        a, b : str
            Two of `models`.
        target : str, optional
            Only the first of `targets`, which is the default, is supported.

        Raises
        ------
        InputError
            If the set was built without pairs.
        """
        target = self.targets[0] if target is None else target
        for model in (a, b):
            self[model, target]  # raises if the set does not have it
        if target != self.targets[0]:
            message = (
                f"multiclass models are compared by the class they predict, "
                f"{self.targets[0]!r}, not by {target!r}."
            )
            raise InputError(message)
        if a == b:
            message = f"a model cannot be compared with itself: both are {a!r}."
            raise InputError(message)
        if self.pairs is None:
            message = (
                "the set has no joint sums of its models, so they cannot be compared: "
                "build it with pairs=True, from arrays, frames in memory, or files."
            )
            raise InputError(message)
        refuse_many_bins(len(self.bins))
        if not np.isin(self.bins.edges, self.pairs.bins.edges).all():
            message = (
                f"cannot compare models on {_words(self.bins)}: the set stores their joint sums on "
                f"{_words(self.pairs.bins)}. Coarsen to a divisor of that number, or "
                "scan the rows with these bins."
            )
            raise BinMismatchError(message)
        first, second = sorted((self.models.index(a), self.models.index(b)))
        joint = self._joint(first, second, self.targets.index(target))
        return joint if self.models.index(a) == first else joint.swapped()

    def _joint(self, first: int, second: int, target: int) -> JointTable:
        assert self.pairs is not None  # noqa: S101 - `pair` has checked

        def chosen(entries: Sparse) -> Sparse:
            i, j, t, place = entries.keys[:4]
            mine = (i == first) & (j == second) & (t == target)
            if self.groups is not None:
                mine &= place == self._segment()
            return entries.where(mine)

        cross, losses = chosen(self.pairs.cross), chosen(self.pairs.losses)
        size, place = len(self.bins), self._places(self.pairs.bins)
        flat = place[cross.keys[4]] * size + place[cross.keys[5]]
        square = _counted(flat, cross.values[0], size * size).reshape(size, size)
        total = dict(zip(LOSSES, losses.values.sum(axis=1).tolist(), strict=True))
        a, b = (self[self.models[k], self.targets[target]] for k in (first, second))
        raters = None
        if self.raters is not None and a.raters is not None:
            raters = self._joint_raters(chosen, a.raters.names)
        return JointTable(
            a, b, square, int(total["differing"]),
            brier=PairedSums(*(total[f"brier_{part}"] for part in PairedSums._fields)),
            log_loss=PairedSums(*(total[f"log_loss_{part}"] for part in PairedSums._fields)),
            infinite_a=int(total["infinite_a"]), infinite_b=int(total["infinite_b"]),
            loss_a=total["log_loss_a"], loss_b=total["log_loss_b"],
            names=(self.models[first], self.models[second]), raters=raters,
        )  # fmt: skip

    def _joint_raters(
        self, chosen: Callable[[Sparse], Sparse], names: tuple[str, ...]
    ) -> JointRaters:
        """Return the joint sums of votes on two models, with raters sorted by name."""
        assert self.raters is not None  # noqa: S101 - the caller has checked
        assert self.pairs is not None  # noqa: S101
        products, losses = chosen(self.raters.products), chosen(self.raters.losses)
        size, place = len(self.bins), self._places(self.pairs.bins)
        flat = place[products.keys[4]] * size + place[products.keys[5]]
        squares = [_counted(flat, row, size * size).reshape(size, size) for row in products.values]
        number = {name: k for k, name in enumerate(names)}
        rater = np.array([number.get(name, -1) for name in self.raters.names], dtype=np.int64)
        own = rater[losses.keys[4]]
        by_rater = [_counted(own, row, len(names)) for row in losses.values]
        return JointRaters(np.array(squares), np.array(by_rater))

    # Operations on sets

    def coarsen(self, bins: BinsLike) -> TableSet:
        """Return the same set with tables on other bins.

        Parameters
        ----------
        bins : int, Bins, or sequence of float
            The new bins. Each of their edges must be an edge of `grid`.

        Raises
        ------
        BinMismatchError
            If the grid does not have these edges.
        """
        target = meant_bins(bins, self.grid)
        missing = ~np.isin(target.edges, self.grid.edges)
        if missing.any():
            message = (
                f"cannot coarsen to {_words(target)}: {missing.sum()} of {len(target) + 1} edges "
                f"are not edges of the set's grid, the first is "
                f"{float(target.edges[missing][0])!r}. Scan the rows again with these bins."
            )
            raise BinMismatchError(message)
        return replace(self, bins=target)

    def select(self, models: Sequence[str]) -> TableSet:
        """Return the set of some of the models, in this order.

        Parameters
        ----------
        models : sequence of str
            Some of `models`.

        Raises
        ------
        KeyError
            If one of them is not in the set.
        """
        for model in models:
            self[model]
        numbers = np.full(len(self.models), -1, dtype=np.int64)
        numbers[[self.models.index(model) for model in models]] = np.arange(len(models))

        def kept(entries: Sparse, *parts: int) -> Sparse:
            for part in parts:
                entries = entries.where(numbers[entries.keys[part]] >= 0)
                entries = entries.renumbered(part, numbers)
            return entries

        pairs, groups, scores = self.pairs, self.groups, self.scores
        if scores is not None:
            scores = kept(scores, 0)
        if pairs is not None:
            pairs = pairs.changed(lambda entries: _rising(kept(entries, 0, 1)))
        if groups is not None:
            groups = groups._replace(
                counts=kept(groups.counts, 0), squares=kept(groups.squares, 0),
                sums=None if groups.sums is None else kept(groups.sums, 0),
            )  # fmt: skip
        raters = self.raters
        if raters is not None:
            raters = raters._replace(
                sums=kept(raters.sums, 0),
                products=_rising(kept(raters.products, 0, 1)),
                losses=_rising(kept(raters.losses, 0, 1)),
            )
        return replace(
            self, models=tuple(models), tables=kept(self.tables, 0), pairs=pairs, groups=groups,
            scores=scores, raters=raters,
        )  # fmt: skip

    def rename(self, names: Mapping[str, str]) -> TableSet:
        """Return the same set with other names for some of its models.

        Parameters
        ----------
        names : mapping from str to str
            The new names of the models to rename.

        Raises
        ------
        InputError
            If two models would have the same name.
        KeyError
            If one of the models is not in the set.

        Examples
        --------
        >>> import pandas as pd
        >>> from softcal import scan
        >>> tables = scan(pd.DataFrame({"y": [0.5], "p7": [0.25]}), y_true="y", y_prob="p7")
        >>> tables.rename({"p7": "random forest"}).models
        ('random forest',)
        """
        for model in names:
            self[model]  # raises if the set does not have it
        models = tuple(names.get(model, model) for model in self.models)
        for model in models:
            if models.count(model) > 1:
                message = f"models must have different names: {model!r:.60} is given twice."
                raise InputError(message)
        return replace(self, models=models)

    def __add__(self, other: TableSet) -> TableSet:
        """Return the set of the rows of both sets, which must have the same columns and grid.

        The order of the models may differ. Segments of only one set are kept. The date is kept if
        both have the same. With groups, no group may have rows in both. Sets from `scan` in this
        process check this; a loaded set cannot, because it does not store the names of its groups.
        Raters are added by name.

        Raises
        ------
        InputError
            If the columns differ, or a group has rows in both.
        BinMismatchError
            If the grids differ.
        """
        if not isinstance(other, TableSet):
            return NotImplemented
        if set(self.models) == set(other.models):
            other = other.select(self.models)
        self._refuse_other(other)
        cells = {cell: k for k, cell in enumerate(self.cells)}
        numbers = [cells.setdefault(cell, len(cells)) for cell in other.cells]
        groups, places = self.groups, numbers
        if self.groups is not None and other.groups is not None:
            groups, places = _added_groups(self.groups, other.groups, numbers)
        pairs = None
        if self.pairs is not None and other.pairs is not None:
            theirs = other.pairs.changed(lambda entries: entries.renumbered(3, places))
            pairs = self.pairs._replace(
                cross=Sparse.added([self.pairs.cross, theirs.cross]),
                losses=Sparse.added([self.pairs.losses, theirs.losses]),
            )
        scores = None
        if self.scores is not None and other.scores is not None:
            scores = Sparse.added([self.scores, other.scores.renumbered(1, numbers)])
        raters = None
        if self.raters is not None and other.raters is not None:
            raters = self.raters.plus(other.raters, numbers)
        dropped = [n for n in (self.rows_dropped, other.rows_dropped) if n is not None]
        weightless = None
        if self.rows_without_weight is not None and other.rows_without_weight is not None:
            weightless = self.rows_without_weight + other.rows_without_weight
        return replace(
            self,
            tables=Sparse.added([self.tables, other.tables.renumbered(2, numbers)]),
            cells=tuple(cells),
            pairs=pairs,
            groups=groups,
            scores=scores,
            raters=raters,
            date=self.date if self.date == other.date else None,
            rows_without_weight=weightless,
            rows_dropped=sum(dropped) if dropped else None,
        )

    def __radd__(self, other: object) -> TableSet:
        """Support `sum(sets)`, which starts from 0."""
        return self if other == 0 else NotImplemented

    def _refuse_other(self, other: TableSet) -> None:
        for what, mine, theirs in (
            ("labels", self.label, other.label),
            ("upper ends of labels", self.label_high, other.label_high),
            ("models", self.models, other.models),
            ("targets", self.targets, other.targets),
            ("weights", self.weight, other.weight),
            ("numbers of votes", self.votes, other.votes),
            ("'by' columns", self.by_names, other.by_names),
            ("groups", self.groups and self.groups.column, other.groups and other.groups.column),
            ("raters", self.raters and self.raters.column, other.raters and other.raters.column),
        ):
            if mine != theirs:
                message = (
                    f"cannot add sets with different {what}: one has {_listed(mine)}, another "
                    f"{_listed(theirs)}."
                )
                raise InputError(message)
        grids = [(self.grid, other.grid)]
        if self.pairs is not None and other.pairs is not None:
            grids.append((self.pairs.bins, other.pairs.bins))
        for left, right in grids:
            if left != right:
                message = (
                    f"cannot add sets with different grids: left has {_words(left)}, right has "
                    f"{_words(right)}. Scan both with the same bins."
                )
                raise BinMismatchError(message)

    # Saving and display

    def save(self, path: str | os.PathLike[str]) -> None:
        r"""Write the set to one file: JSON, or Parquet if it has many entries. See `load`.

        The Parquet file has one row for each filled bin. DuckDB and pandas can query it.

        Parameters
        ----------
        path : str or path
            The file to write. An existing file is replaced atomically.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from softcal import load, scan
        >>> rows = Path(tempfile.mkdtemp()) / "rows.csv"
        >>> _ = rows.write_text("share,model\n0.5,0.25\n")
        >>> scan(rows, y_true="share", y_prob="model").save(rows.with_name("day.softcal"))
        >>> load(rows.with_name("day.softcal"))["model"].smece
        0.25
        """
        from softcal.table.files import save

        save(self, path)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TableSet):
            return NotImplemented
        from softcal.table.files import written

        return written(self) == written(other)

    __hash__ = None  # type: ignore[assignment]  # equality compares arrays, which are not hashable

    def __repr__(self) -> str:
        by = f", by={list(self.by_names)}" if self.by_names else ""
        return f"TableSet(n={self.n}, models={list(self.models)}, bins={len(self.bins)}{by})"

    def __str__(self) -> str:
        return _display.as_text(*self._shown())

    def _repr_html_(self) -> str:
        return _display.as_html(*self._shown())

    def _shown(self) -> tuple[str, list[str], list[list[str]]]:
        cells = f"   cells = {len(self.cells):,}" if self.by_names else ""
        title = f"n = {self.n:,}   label = {_display.printable(self.label)}{cells}"
        rows = [
            [
                _display.printable(name),
                *([_display.printable(target)] if len(self.targets) > 1 else []),
                *(f"{x:.4f}" for x in (rel.smece, rel.brier)),
                f"{rel.bias:+.4f}",
            ]
            for name in self.models
            for target in self.targets
            for rel in [self[name, target]]
            if rel.n
        ]
        header = ["model", *(["target"] if len(self.targets) > 1 else []), "SMECE", "Brier", "bias"]
        first, left_out, last = _display.ends(rows)
        between = [[f"... {left_out} more", *[""] * (len(header) - 1)]] if left_out else []
        return title, header, [*first, *between, *last]


class _NoSuchTableError(InputError, KeyError):
    """Raised for a model that is not in the set: a KeyError, as for any mapping."""

    __str__ = Exception.__str__  # that of KeyError would put the message in quotes


_CELL_OF_RATERS = (2, 3, 3)  # which part of the keys of `RaterTables` is the cell


class Segments(Mapping["str | None", TableSet]):
    """The segments of a set by one column, each built on request."""

    def __init__(self, tables: TableSet, column: str) -> None:
        place = tables.by_names.index(column)
        self._tables, self._column, self._place = tables, column, place
        values = sorted({cell[place] for cell in tables.cells}, key=_by_number_or_name)
        self._values = {value: k for k, value in enumerate(values)}
        self._of_cell = np.array([self._values[cell[place]] for cell in tables.cells])
        self._cells: list[list[int]] = [[] for _ in values]
        for k, segment in enumerate(self._of_cell):
            self._cells[segment].append(k)
        # Sort once, so that building all segments takes as long as reading the set once.
        self._sorted = self._by_place(tables.tables, 2, self._of_cell)
        scores, pairs, groups = tables.scores, tables.pairs, tables.groups
        self._scores = [] if scores is None else [self._by_place(scores, 1, self._of_cell)]
        self._segments: list[list[int]] = [[] for _ in values]
        of_place, self._groups = self._of_cell, []
        if groups is not None:
            of_place = np.full(len(groups.segments), -1)
            for k, segment in enumerate(groups.segments):
                if column in segment and segment[column] in self._values:
                    of_place[k] = self._values[segment[column]]
                    self._segments[of_place[k]].append(k)
            self._groups = [self._by_place(each, 2, of_place) for each in groups[2:4]]
        sums = None if groups is None else groups.sums
        self._sums = None if sums is None else self._by_place(sums, 2, self._of_cell)
        self._pairs = [self._by_place(each, 3, of_place) for each in (pairs or ())[:2]]
        self._raters = [
            self._by_place(each, part, self._of_cell)
            for each, part in zip((tables.raters or ())[2:], _CELL_OF_RATERS, strict=False)
        ]
        self._ids = None
        if groups is not None and groups.ids is not None:
            ids = Sparse(np.array(groups.ids[:2]), np.empty((0, groups.ids.cell.size)))
            self._ids = self._by_place(ids, 1, self._of_cell)

    def _by_place(self, entries: Sparse, part: int, segment: IntArray) -> _BySegment:
        """Sort entries by the segment that contains the cell, or the subsegment, in their keys."""
        return _BySegment(entries, segment[entries.keys[part]], len(self._values))

    def __getitem__(self, value: object) -> TableSet:
        """Return the set of the rows with this value; a number is converted to text."""
        text = value if value is None or isinstance(value, str) else str(value)
        if text not in self._values:
            first, left_out, last = _display.ends([repr(each) for each in self._values])
            listed = ", ".join([*first, *([f"{left_out} more"] if left_out else []), *last])
            message = f"no rows have {self._column} = {value!r:.60}. The values are: {listed}."
            raise _NoSuchTableError(message)
        whole, k = self._tables, self._values[text]
        cells = tuple(
            whole.cells[old][: self._place] + whole.cells[old][self._place + 1 :]
            for old in self._cells[k]
        )
        pairs = groups = None
        if whole.groups is not None:
            inside = self._segments[k]
            segments = tuple(_without(whole.groups.segments[old], self._column) for old in inside)
            counts, squares = (_numbered(each.of(k), 2, inside) for each in self._groups)
            sums = None
            if self._sums is not None:
                sums = _numbered(self._sums.of(k), 2, self._cells[k])
            groups = Groups(whole.groups.column, segments, counts, squares, sums=sums)
            if self._ids is not None and whole.groups.ids is not None:
                group, cell = _numbered(self._ids.of(k), 1, self._cells[k]).keys
                groups = groups._replace(ids=GroupIds(group, cell, whole.groups.ids.texts))
        if whole.pairs is not None:
            places = self._cells[k] if whole.groups is None else self._segments[k]
            cross, losses = (_numbered(each.of(k), 3, places) for each in self._pairs)
            pairs = whole.pairs._replace(cross=cross, losses=losses)
        raters = None
        if whole.raters is not None:
            parts = (
                _numbered(each.of(k), part, self._cells[k])
                for each, part in zip(self._raters, _CELL_OF_RATERS, strict=True)
            )
            raters = RaterTables(whole.raters.column, whole.raters.names, *parts)
        return replace(
            whole,
            tables=_numbered(self._sorted.of(k), 2, self._cells[k]),
            by_names=tuple(name for name in whole.by_names if name != self._column),
            cells=cells,
            pairs=pairs,
            groups=groups,
            scores=next((_numbered(e.of(k), 1, self._cells[k]) for e in self._scores), None),
            raters=raters,
            rows_without_weight=None,
            rows_dropped=None,
        )

    def __iter__(self) -> Iterator[str | None]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Segments(by={self._column!r}, n={len(self)})"


class _BySegment:
    """Entries sorted by segment."""

    def __init__(self, entries: Sparse, segment: npt.NDArray[Any], count: int) -> None:
        if count < 1 << 15:  # then NumPy uses a radix sort
            segment = segment.astype(np.int16)
        order = segment.argsort(kind="stable")
        self._entries = Sparse(entries.keys[:, order], entries.values[:, order])
        self._starts = segment[order].searchsorted(np.arange(count + 1))

    def of(self, k: int) -> Sparse:
        """Return the entries of one segment."""
        part = slice(self._starts[k], self._starts[k + 1])
        return Sparse(self._entries.keys[:, part], self._entries.values[:, part])


def _numbered(entries: Sparse, part: int, old: Sequence[int]) -> Sparse:
    """Renumber the cells or segments in one part of the keys from 0, in order."""
    keys = entries.keys.copy()
    keys[part] = np.searchsorted(old, keys[part])
    return Sparse(keys, entries.values)


def _without(segment: Mapping[str, str | None], column: str) -> Mapping[str, str | None]:
    return {name: value for name, value in segment.items() if name != column}


def _by_number_or_name(value: str | None) -> tuple[bool, float, str]:
    """Return a sort key: 9 before 10, numbers before names, rows without a value last."""
    try:
        number = float(value or "nan")
    except ValueError:
        number = np.nan
    return value is None, np.inf if np.isnan(number) else number, value or ""


def _added_groups(one: Groups, other: Groups, cells: list[int]) -> tuple[Groups, list[int]]:
    """Add the groups of two sets, and return the new numbers of the other's segments."""
    ids = None
    if one.ids is not None and other.ids is not None:
        _refuse_common(one.column, one.ids.in_common(other.ids))
        ids = one.ids.added(other.ids, cells)
    segments = {frozenset(each.items()): each for each in (*one.segments, *other.segments)}
    places = {key: k for k, key in enumerate(segments)}
    numbers = [places[frozenset(each.items())] for each in other.segments]
    counts = Sparse.added([one.counts, other.counts.renumbered(2, numbers)])
    squares = Sparse.added([one.squares, other.squares.renumbered(2, numbers)])
    sums = None
    if one.sums is not None and other.sums is not None:
        keys = other.sums.keys.copy()
        keys[2] = np.array(cells, dtype=np.int64)[keys[2]]
        keys[3] += int(one.sums.keys[3].max(initial=-1)) + 1
        if one.sums.keys.shape[1] + keys.shape[1] <= MAX_SUMS:
            sums = Sparse.added([one.sums, Sparse(keys, other.sums.values)])
    return Groups(one.column, tuple(segments.values()), counts, squares, ids, sums), numbers


def _refuse_common(column: str, names: Sequence[str]) -> None:
    """Refuse a group with rows in both sets, because its sums were multiplied separately."""
    if names:
        many = f"{len(names):,} values" if len(names) > 1 else "1 value"
        message = (
            f"cannot add sets with rows of the same group: {many} of {column} in both, the first "
            f"is {names[0]!r:.60}. Scan both sources together: scan([a, b], ...), or pass both "
            "files to one command."
        )
        raise InputError(message)


def _rising(entries: Sparse) -> Sparse:
    """Put the model with the lower number first in each pair, and swap the sums accordingly."""
    keys, values = entries.keys.copy(), entries.values.copy()
    swapped = keys[0] > keys[1]
    keys[:2, swapped] = keys[1::-1, swapped]
    if len(keys) == 6:  # a product of residuals: swap the bins too
        keys[4:6, swapped] = keys[5:3:-1, swapped]
        if len(values) > 1:  # products of votes have a sum for each model
            values[1:3] = np.where(swapped, values[2:0:-1], values[1:3])
    elif len(keys) == 5:  # the losses of raters
        signed = [k for k, name in enumerate(RATER_LOSSES) if not name.endswith("_square")]
        values[signed] *= np.where(swapped, -1.0, 1.0)
    else:
        for name, other in (("infinite_a", "infinite_b"), ("log_loss_a", "log_loss_b")):
            i, j = LOSSES.index(name), LOSSES.index(other)
            values[[i, j]] = np.where(swapped, values[[j, i]], values[[i, j]])
        signed = [k for k, name in enumerate(LOSSES) if name.endswith(("_total", "_mixed"))]
        values[signed] *= np.where(swapped, -1.0, 1.0)
    return Sparse.of(keys, values)


def _counted(at: IntArray, values: FloatArray, size: int) -> FloatArray:
    """Add up values by place; there may be none."""
    return np.bincount(at, values, size).astype(np.float64, copy=False)


def _listed(what: object) -> str:
    if isinstance(what, tuple):
        return ", ".join(map(repr, what)) or "none"
    return "none" if what is None else repr(what)


def _words(bins: Bins) -> str:
    if bins.is_uniform:
        return f"{len(bins)} bins of equal width"
    return f"{len(bins)} bins"
