"""Sets of reliability tables, keyed by model, target, and segment.

A set is `about` (what the rows were), `axes` (the names along each axis of its keys), and `blocks`
(keyed sums, declared in `softcal.table.blocks`). One operation, `mapped`, renumbers an axis in all
blocks. A dense `Reliability` is built on request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softcal import _display
from softcal._display import keyword
from softcal.bins import Bins
from softcal.exceptions import BinMismatchError, InputError
from softcal.table.blocks import BLOCKS, LOSSES, IntArray, Sparse
from softcal.table.joint import JointRaters, JointTable, PairedSums, refuse_many_bins
from softcal.table.kernel import as_sums
from softcal.table.owners import MAX_GROUPS, Clusters, Groups, Raters, merged
from softcal.table.reliability import Reliability, coarser, described
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

Segment = frozenset[tuple[str, "str | None"]]


class About(NamedTuple):
    """What the rows of a set were: the columns, the date, and the rows that do not count."""

    label: str
    label_high: str | None = None
    weight: str | None = None
    votes: str | None = None
    date: str | None = None
    group: str | None = None
    rater: str | None = None
    ordered: bool = False
    rows_without_weight: int | None = None
    rows_dropped: int | None = None
    source: str | None = None  # the file of the rows
    options: str | None = None  # of the command line, as JSON; see `softcal.report.commands`


class Axes(NamedTuple):
    """The names along each axis of the keys. `by` names the parts of a cell."""

    model: tuple[str, ...]
    bin: Bins
    target: tuple[str, ...] = (LABEL,)
    by: tuple[str, ...] = ()
    cell: tuple[tuple[str | None, ...], ...] = ((),)
    pair_bin: Bins | None = None  # of sums of pairs of models; coarser than `bin`
    owner: tuple[Any, ...] = ()  # groups or raters
    segment: tuple[Segment, ...] = ()  # only sets of 0.2 with groups have it


_EQUAL_TO_ADD = {
    "label": "labels",
    "label_high": "upper ends of labels",
    "model": "models",
    "target": "targets",
    "weight": "weights",
    "votes": "numbers of votes",
    "by": "'by' columns",
    "group": "groups",
    "rater": "raters",
}


@dataclass(frozen=True, eq=False, repr=False)
class TableSet(_display.Printed, Mapping[str, Reliability]):
    """Tables from one pass over the rows, keyed by model, target, and segment. See `scan`.

    Sets can be added, for example daily sets into a weekly total. `tables["a"]` is the table of
    model a, and `tables.by("country")` maps each country to the set of its rows.

    Attributes
    ----------
    about : About
        What the rows were: the columns of labels (`label`), weights (`weight`), numbers of votes
        (`votes`), groups (`group`), and raters (`rater`), and the date of the rows (`date`), each
        None if not given.
    axes : Axes
        The names along each axis of the keys of the blocks.
    blocks : mapping from str to Sparse
        The keyed sums that `softcal.table.blocks.BLOCKS` declares.
    bins : Bins
        The bins of the tables that the set returns. `coarsen` changes them.

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

    about: About
    axes: Axes
    blocks: Mapping[str, Sparse]
    bins: Bins
    _built: dict[tuple[int, int], Reliability] = field(
        default_factory=dict, init=False, compare=False
    )

    # What the set is about

    @property
    def models(self) -> tuple[str, ...]:
        """The columns of predictions."""
        return self.axes.model

    @property
    def targets(self) -> tuple[str, ...]:
        """What the predictions are compared with: "label", or "top" and each class."""
        return self.axes.target

    @property
    def by_names(self) -> tuple[str, ...]:
        """The columns whose values define segments."""
        return self.axes.by

    @property
    def grid(self) -> Bins:
        """The finer bins on which the set is stored. `coarsen` accepts any of their edges."""
        return self.axes.bin

    @property
    def has_pairs(self) -> bool:
        """Whether the set has joint sums of its models, from which they can be compared."""
        return "losses" in self.blocks or "segment_losses" in self.blocks

    @property
    def has_owners(self) -> bool:
        """Whether rows vary together, because of groups or raters."""
        return self.about.group is not None or self.about.rater is not None

    @property
    def has_hard_labels(self) -> bool:
        """Whether every label is exactly 0 or 1, for all models and classes."""
        return self.targets != BOUNDS and all(
            self[model, target].has_hard_labels for model in self.models for target in self.targets
        )

    @property
    def n(self) -> int:
        """The number of rows with positive weight."""
        return int(self.blocks["tables"].beneath(0, 0).values[0].sum())

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes of a multiclass set; else empty."""
        if self.targets[0] != TOP:
            return ()
        return self.targets[1 : len(self.targets) // 2 + 1] if self.ordered else self.targets[1:]

    @property
    def ordered(self) -> bool:
        """Whether the classes are ordered; targets such as "> 2" then follow the classes."""
        return self.about.ordered

    @property
    def thresholds(self) -> tuple[str, ...]:
        """The targets between ordered classes; empty if the classes are not ordered."""
        return self.targets[len(self.classes) + 1 :] if self.ordered else ()

    # The tables of all rows

    def __getitem__(self, key: str | tuple[str, str]) -> Reliability:
        """Return the table of a model, or of a (model, target)."""
        model, target = key if isinstance(key, tuple) else (key, self.targets[0])
        for what, name, have in (
            ("model", model, self.models),
            ("target", target, self.targets),
        ):
            if name not in have:
                asked = _display.did_you_mean(name, have)
                listed = ", ".join(map(repr, have))
                message = f"the set has no {what} {name!r}.{asked} It has: {listed}."
                raise _NoSuchTableError(message)
        numbers = self.models.index(model), self.targets.index(target)
        if numbers not in self._built:
            self._built[numbers] = self._table(*numbers)
        return self._built[numbers]

    def __iter__(self) -> Iterator[str]:
        return iter(self.models)

    def __len__(self) -> int:
        return len(self.models)

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
        >>> from softcal import Classes, scan
        >>> label = Classes("y", ordered=True)
        >>> rows = pd.DataFrame({"p_1": [0.5, 0.25], "p_2": [0.25, 0.5], "p_3": [0.25, 0.25]})
        >>> tables = scan(rows.assign(y=[1, 3]), y_true=label, y_prob={"m": "p_*"})
        >>> {name: rel.smece for name, rel in tables.cumulative("m").items()}
        {'> 1': 0.375, '> 2': 0.25}
        """
        if not self.ordered:
            message = (
                "the set has no thresholds: its classes are not ordered. Scan the rows again with "
                f"{keyword('ordered')}."
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
        >>> from softcal import Classes, scan
        >>> rows = pd.DataFrame({"p_cat": [0.75, 0.5], "p_dog": [0.25, 0.5], "y": ["cat", "dog"]})
        >>> tables = scan(rows, y_true=Classes("y"), y_prob={"model": "p_*"})
        >>> tables.item_scores("model").brier
        0.3125
        """
        return ItemScores.of(self.score_sums(model))

    def score_sums(self, model: str) -> dict[str, float]:
        """Return the sums of `item_scores` by name."""
        self[model]  # raises if the set does not have it
        if "scores" not in self.blocks:
            message = (
                "the set has no item scores: only multiclass sets have them. Scan the rows with "
                "one column per class."
            )
            raise InputError(message)
        found: dict[str, float] = {}
        for name in ("scores", "ordered_scores"):
            if name in self.blocks:
                own = self.blocks[name].beneath(self.models.index(model))
                found |= _named(BLOCKS[name].sums, own)
        return found

    def _table(self, model: int, target: int) -> Reliability:
        found = self.blocks["tables"].beneath(model, target)
        at = self._places(self.grid)[found.keys[1]]
        sums = as_sums(np.array([_counted(at, row, len(self.bins)) for row in found.values]))
        raters = self._owners("rater_sums", Raters, model, target)
        groups: Groups | Clusters | None = self._owners("group_sums", Groups, model, target)
        if "squares" in self.blocks:
            groups = self._clusters(model, target)
        return Reliability(self.bins, sums, groups, raters)

    def _places(self, grid: Bins) -> IntArray:
        """Return, for each bin of a grid, the index of the coarser bin that contains it."""
        places: IntArray = self.bins.edges[1:-1].searchsorted(grid.edges[:-1], side="right")
        return places

    def _owners(self, block: str, kind: type[Any], model: int, target: int) -> Any:
        """Return the sums of each owner of all cells, or None if the set does not have them."""
        if block not in self.blocks:
            return None
        (_, owner, at), values = self.blocks[block].beneath(model, target)
        keys = np.array([owner, self._places(self.grid)[at]])
        return kind.of(self.axes.owner, keys, values)

    def _clusters(self, model: int, target: int) -> Clusters:
        """Return the products that a set of 0.2 stored for its groups."""
        whole = self.axes.segment.index(frozenset())
        squares = self._squares(self.grid, self.blocks["squares"].beneath(model, target, whole))
        count = self.blocks["counts"].beneath(model, target, whole).values[0].sum()
        return Clusters(int(count), *squares)

    def _squares(self, grid: Bins, entries: Sparse) -> FloatArray:
        """Add up entries whose keys end in two bins of a grid, as matrices on the set's bins."""
        size, (a, b) = len(self.bins), self._places(grid)[entries.keys[-2:]]
        found = [_counted(a * size + b, row, size * size) for row in entries.values]
        return np.array(found).reshape(-1, size, size)

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
        if not self.has_pairs or self.axes.pair_bin is None:
            message = (
                "the set has no joint sums of its models, so they cannot be compared: "
                "build it with pairs=True, from arrays, frames in memory, or files."
            )
            raise InputError(message)
        refuse_many_bins(len(self.bins))
        if not np.isin(self.bins.edges, self.axes.pair_bin.edges).all():
            message = (
                f"cannot compare models on {described(self.bins)}: the set stores their joint sums "
                f"on {described(self.axes.pair_bin)}. Coarsen to a divisor of that number, or "
                "scan the rows with these bins."
            )
            raise BinMismatchError(message)
        return self._joint(a, b, self.axes.pair_bin)

    def _of_pair(self, block: str, a: str, b: str) -> Sparse:
        """Return the entries of two models for the first target, with the signs of A minus B."""
        numbers = self.models.index(a), self.models.index(b)
        key = [*sorted(numbers), 0]
        if f"segment_{block}" in self.blocks:  # a set of 0.2 with groups
            block, key = f"segment_{block}", [*key, self.axes.segment.index(frozenset())]
        order = (0, 1) if numbers[0] < numbers[1] else (1, 0)
        found = self.blocks[block].beneath(*key).under(*order, *key[2:])
        return Sparse(*BLOCKS[block].rising(*found))

    def _joint(self, a: str, b: str, grid: Bins) -> JointTable:
        """Return the joint table of two models for the first target."""
        total = _named(LOSSES, self._of_pair("losses", a, b))
        groups: Any = self[a].groups, self[b].groups
        if "group_losses" in self.blocks:
            total |= self._losses_of_groups(a, b)
            cross = groups[0].times(groups[1], len(self.bins))
        else:
            (cross,) = self._squares(grid, self._of_pair("cross", a, b))
        return JointTable(
            self[a], self[b], cross, int(total["differing"]),
            brier=PairedSums(*(total[f"brier_{part}"] for part in PairedSums._fields)),
            log_loss=PairedSums(*(total[f"log_loss_{part}"] for part in PairedSums._fields)),
            infinite_a=int(total["infinite_a"]), infinite_b=int(total["infinite_b"]),
            loss_a=total["log_loss_a"], loss_b=total["log_loss_b"], names=(a, b),
            raters=self._joint_raters(a, b, grid),
        )  # fmt: skip

    def _losses_of_groups(self, a: str, b: str) -> dict[str, float]:
        """Return the sums of paired losses whose independent units are groups."""
        keys, values = self._of_pair("group_losses", a, b)
        each = (_counted(keys[-1], row, len(self.axes.owner)) for row in values)
        weight, differing, brier, log_loss = each
        found = {"differing": float((differing > 0).sum())}
        for name, e in (("brier", brier), ("log_loss", log_loss)):
            for part, terms in (("total", e), ("mixed", weight * e), ("square", e * e)):
                found[f"{name}_{part}"] = float(terms.sum())
        return found

    def _joint_raters(self, a: str, b: str, grid: Bins) -> JointRaters | None:
        """Return the joint sums of votes on two models, with raters as in their tables."""
        raters = self[a].raters
        if raters is None:
            return None
        keys, values = self._of_pair("rater_losses", a, b)
        number = {name: k for k, name in enumerate(raters.names)}
        own = np.array([number.get(name, -1) for name in self.axes.owner], dtype=np.int64)
        losses = [_counted(own[keys[-1]], row, raters.count) for row in values]
        return JointRaters(
            self._squares(grid, self._of_pair("vote_products", a, b)), np.array(losses)
        )

    # Operations on sets

    def mapped(
        self, axis: str, numbers: Sequence[int] | IntArray, names: Sequence[Any] | Bins
    ) -> TableSet:
        """Renumber an axis in all blocks, and add up keys that become equal.

        Parameters
        ----------
        axis : str
            An axis of `axes`.
        numbers : sequence of int
            The new number of each name; -1 drops its entries.
        names : sequence, or Bins
            The new names.

        Examples
        --------
        >>> from softcal import scan
        >>> rows = {"y": [0.5, 1.0], "p": [0.25, 0.5], "day": ["Mon", "Tue"]}
        >>> tables = scan(rows, y_true="y", y_prob="p", by="day")
        >>> tables.mapped("cell", [0, -1], [("Mon",)]).n
        1
        """
        whole = np.asarray(numbers, dtype=np.int64)
        blocks = {
            name: BLOCKS[name].mapped(each, axis, whole) for name, each in self.blocks.items()
        }
        new: Any = names if isinstance(names, Bins) else tuple(names)
        return replace(self, axes=self.axes._replace(**{axis: new}), blocks=blocks)

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
        target = coarser(bins, self.grid, "Scan the rows again with these bins.")
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
        numbers = [models.index(model) if model in models else -1 for model in self.models]
        return self.mapped("model", numbers, models)

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
        return replace(self, axes=self.axes._replace(model=models))

    def without(self, *blocks: str) -> TableSet:
        """Return the set without some of its blocks."""
        kept = {name: each for name, each in self.blocks.items() if name not in blocks}
        return replace(self, blocks=kept)

    def stored_on(self, bins: Bins) -> TableSet:
        """Return the set without segments and pairs, stored on coarser bins."""
        pairs = [name for name in self.blocks if BLOCKS[name].is_of_pairs]
        whole = [-1 if each else 0 for each in self.axes.segment]
        found = self.without(*pairs).mapped("segment", whole, [frozenset()] if whole else [])
        found = found.mapped("cell", [0] * len(self.axes.cell), [()])
        place = bins.edges[1:-1].searchsorted(self.grid.edges[:-1], side="right")
        found = found.mapped("bin", place, bins)
        axes = found.axes._replace(by=(), pair_bin=None)
        return replace(found, axes=axes)

    def __add__(self, other: TableSet) -> TableSet:
        """Return the set of the rows of both sets, which must have the same columns and grid.

        The order of the models may differ. Segments of only one set are kept. The date is kept if
        both have the same. Groups and raters are added by name. A loaded set does not have the
        names of its groups, so they count as different from all others.

        Raises
        ------
        InputError
            If the columns differ.
        BinMismatchError
            If the grids differ.
        """
        if not isinstance(other, TableSet):
            return NotImplemented
        if set(self.models) == set(other.models):
            other = other.select(self.models)
        self._refuse_other(other)
        mine = self
        for axis in ("cell", "segment", "owner"):
            most = MAX_GROUPS if axis == "owner" and self.about.group is not None else None
            both = merged(getattr(mine.axes, axis), getattr(other.axes, axis), most=most)
            mine = mine.mapped(axis, both.mine, both.names)
            other = other.mapped(axis, both.theirs, both.names)
        blocks = {
            name: Sparse.added([mine.blocks[name], other.blocks[name]])
            for name in mine.blocks
            if name in other.blocks
        }
        return replace(mine, about=_added(self.about, other.about), blocks=blocks)

    def __radd__(self, other: object) -> TableSet:
        """Support `sum(sets)`, which starts from 0."""
        return self if other == 0 else NotImplemented

    def _refuse_other(self, other: TableSet) -> None:
        mine, theirs = ({**x.about._asdict(), **x.axes._asdict()} for x in (self, other))
        for name, what in _EQUAL_TO_ADD.items():
            if mine[name] != theirs[name]:
                message = (
                    f"cannot add sets with different {what}: one has {_listed(mine[name])}, "
                    f"another {_listed(theirs[name])}."
                )
                raise InputError(message)
        if ("squares" in self.blocks) != ("squares" in other.blocks):
            message = (
                f"cannot add sets of groups ({self.about.group}) that softcal 0.2 saved to newer "
                "ones. Scan the rows of the older set again."
            )
            raise InputError(message)
        for axis in ("bin", "pair_bin"):
            left, right = mine[axis], theirs[axis]
            if left is not None and right is not None and left != right:
                message = (
                    f"cannot add sets with different grids: left has {described(left)}, right has "
                    f"{described(right)}. Scan both with the same bins."
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

    def _shown(self) -> _display.Shown:
        cells = f"   cells = {len(self.axes.cell):,}" if self.by_names else ""
        title = f"n = {self.n:,}   label = {_display.printable(self.about.label)}{cells}"
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
        return title, header, _display.shortened(rows)


class _NoSuchTableError(InputError, KeyError):
    """Raised for a model that is not in the set: a KeyError, as for any mapping."""

    __str__ = Exception.__str__  # that of KeyError would put the message in quotes


class Segments(Mapping["str | None", TableSet]):
    """The segments of a set by one column, each built on request."""

    def __init__(self, tables: TableSet, column: str) -> None:
        place, axes = tables.by_names.index(column), tables.axes
        self._tables, self._column = tables, column
        values = sorted({cell[place] for cell in axes.cell}, key=_by_number_or_name)
        self._values = {value: k for k, value in enumerate(values)}
        # For both axes of places: the segment of each place, and its name within the segment.
        inside = [dict(each) for each in axes.segment]
        of = {
            "cell": [self._values[cell[place]] for cell in axes.cell],
            "segment": [self._values.get(each[column], -1) if column in each else -1
                        for each in inside],
        }  # fmt: skip
        self._names: dict[str, list[Any]] = {
            "cell": [cell[:place] + cell[place + 1 :] for cell in axes.cell],
            "segment": [each - {(column, dict(each).get(column))} for each in axes.segment],
        }
        segment = {axis: np.array(each, dtype=np.int64) for axis, each in of.items()}
        self._places = {axis: self._split(each) for axis, each in segment.items()}
        # Sort once, so that building all segments takes as long as reading the set once.
        self._entries = {}
        for name, entries in tables.blocks.items():
            axis = "segment" if "segment" in BLOCKS[name].axes else "cell"
            part = BLOCKS[name].axes.index(axis)
            self._entries[name] = axis, part, self._split(segment[axis][entries.keys[part]])

    def _split(self, segment: IntArray) -> tuple[IntArray, IntArray]:
        """Return the positions sorted by segment, and where each segment starts among them."""
        small = segment.astype(np.min_scalar_type(-len(self) - 1))  # these are sorted faster
        order = small.argsort(kind="stable")
        return order, small[order].searchsorted(np.arange(len(self) + 1))

    def __getitem__(self, value: object) -> TableSet:
        """Return the set of the rows with this value; a number is converted to text."""
        text = value if value is None or isinstance(value, str) else str(value)
        if text not in self._values:
            first, left_out, last = _display.ends([repr(each) for each in self._values])
            listed = ", ".join([*first, *([f"{left_out} more"] if left_out else []), *last])
            message = f"no rows have {self._column} = {value!r:.60}. The values are: {listed}."
            raise _NoSuchTableError(message)
        whole, k = self._tables, self._values[text]
        places = {axis: _part(each, k) for axis, each in self._places.items()}
        blocks = {}
        for name, (axis, part, positions) in self._entries.items():
            found = whole.blocks[name].where(_part(positions, k))
            found.keys[part] = places[axis].searchsorted(found.keys[part])
            blocks[name] = found
        names: dict[str, Any] = {
            axis: tuple(each[at] for at in places[axis].tolist())
            for axis, each in self._names.items()
        }
        by = tuple(name for name in whole.by_names if name != self._column)
        about = whole.about._replace(rows_without_weight=None, rows_dropped=None)
        return TableSet(about, whole.axes._replace(by=by, **names), blocks, whole.bins)

    def __iter__(self) -> Iterator[str | None]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Segments(by={self._column!r}, n={len(self)})"


def _part(split: tuple[IntArray, IntArray], k: int) -> IntArray:
    """Return the positions of one segment."""
    order, starts = split
    return order[starts[k] : starts[k + 1]]


def _added(one: About, other: About) -> About:
    """Return what the rows of two sets were."""
    dropped = [n for n in (one.rows_dropped, other.rows_dropped) if n is not None]
    weightless = None
    if one.rows_without_weight is not None and other.rows_without_weight is not None:
        weightless = one.rows_without_weight + other.rows_without_weight
    return one._replace(
        date=one.date if one.date == other.date else None,
        rows_without_weight=weightless,
        rows_dropped=sum(dropped) if dropped else None,
        source=one.source if one.source == other.source else None,
        options=one.options if one.options == other.options else None,
    )


def _by_number_or_name(value: str | None) -> tuple[bool, float, str]:
    """Return a sort key: 9 before 10, numbers before names, rows without a value last."""
    try:
        number = float(value or "nan")
    except ValueError:
        number = np.nan
    return value is None, np.inf if np.isnan(number) else number, value or ""


def _named(names: tuple[str, ...], entries: Sparse) -> dict[str, float]:
    """Add up all entries, and name their sums."""
    return dict(zip(names, entries.values.sum(axis=1).tolist(), strict=True))


def _counted(at: IntArray, values: FloatArray, size: int) -> FloatArray:
    """Add up values by place; there may be none."""
    return np.bincount(at, values, size).astype(np.float64, copy=False)


def _listed(what: object) -> str:
    if isinstance(what, tuple):
        return ", ".join(map(repr, what)) or "none"
    return "none" if what is None else repr(what)
