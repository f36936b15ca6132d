"""`Votes`: vote counts as labels, with the number of votes of each item."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from softcal._validation import arrays
from softcal._validation.rules import LARGEST_VOTES, SHARES, is_bad_count, is_number, real
from softcal.exceptions import InputError, InputTypeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Ballots(NamedTuple):
    """Single votes as integers, and the names of items, raters, and classes.

    Integers take 4 bytes, so ten million votes take 120 MB. `workers` is empty if the raters are
    unknown.
    """

    item: npt.NDArray[np.int32]
    label: npt.NDArray[np.int32]
    worker: npt.NDArray[np.int32]
    items: tuple[Any, ...]
    classes: tuple[Any, ...]
    workers: tuple[Any, ...]
    repeated: bool = False  # whether a rater may have several votes on an item

    def counts(self, weight: FloatArray | None = None) -> npt.NDArray[Any]:
        """Return the number, or the sum of weights, of the votes on each item for each class."""
        shape = len(self.items), len(self.classes)
        cell = self.item.astype(np.int64) * shape[1] + self.label
        return np.bincount(cell, weight, shape[0] * shape[1]).reshape(shape)


class RowVotes(NamedTuple):
    """Votes for two classes as tables add them up: one entry per rater and row."""

    row: npt.NDArray[np.integer]
    rater: npt.NDArray[np.integer]
    vote: npt.NDArray[np.float64]  # 1 for the second class; a mean if a rater voted repeatedly
    part: npt.NDArray[np.float64]  # of the row's label; the parts of a row sum to 1
    names: tuple[str, ...]

    def blocks(self, size: int = 1 << 20) -> Iterator[RowVotes]:
        """Yield the votes in blocks of bounded size."""
        for start in range(0, self.row.size, size):
            at = slice(start, start + size)
            yield RowVotes(self.row[at], self.rater[at], self.vote[at], self.part[at], self.names)


def ballots_of(votes: object, what: str) -> Ballots:
    """Return the single votes of raters; raise if labels do not store them."""
    if not isinstance(votes, Votes) or votes.ballots is None:
        given = "votes without raters" if isinstance(votes, Votes) else type(votes).__name__
        message = (
            f"{what} needs votes with raters: got {given}. Use Votes.from_long(frame, item=..., "
            "label=..., worker=...)."
        )
        raise InputError(message)
    return votes.ballots


def row_votes(votes: Any) -> RowVotes:
    """Return the single votes behind labels of two classes; raise if labels do not store them.

    Votes of one rater on one row are joined, and count as one vote in variances.
    """
    ballots = ballots_of(votes, "raters=True")
    weight = votes.ballot_weight
    part = weight / np.bincount(ballots.item, weight, votes.n_items)[ballots.item]
    names = tuple(map(str, ballots.workers))
    if len(set(names)) < len(names):
        message = "raters must have names that differ as text: 1 and '1' do not."
        raise InputError(message)
    row: npt.NDArray[np.integer] = ballots.item
    rater: npt.NDArray[np.integer] = ballots.worker
    vote = ballots.label.astype(np.float64)
    if ballots.repeated:
        pair, place = np.unique(row.astype(np.int64) * len(names) + rater, return_inverse=True)
        whole: FloatArray = np.bincount(place, part).astype(np.float64)
        vote, part = np.bincount(place, part * vote) / whole, whole
        row, rater = pair // len(names), pair % len(names)
    return RowVotes(row, rater, vote, part, names)


def _taken(frame: Any, name: str) -> Any:
    # Lazy frames have no columns in memory, and looking up their names may be slow.
    names = None if hasattr(frame, "collect") else arrays.column_names(frame)
    if names is None:
        message = (
            "frame must be a pandas, Polars, or Arrow table, or a dict of columns: got "
            f"{type(frame).__name__}. Collect or load it first."
        )
        raise InputTypeError(message)
    if name not in names:
        message = f"frame has no column {name!r:.60}. Its columns are: {arrays.listed(names)}."
        raise InputError(message)
    return frame[name]


def _refuse_other_lengths(sizes: dict[str, int]) -> None:
    (first, n), *others = sizes.items()
    for name, size in others:
        if size != n:
            message = (
                f"{first} and {name} must have the same length: {first} has {n} rows, {name} has "
                f"{size}. Pass one value of each per vote."
            )
            raise InputError(message)


def _in_order(
    found: list[Any], numbers: npt.NDArray[np.intp], classes: Sequence[Any] | None, name: str
) -> tuple[tuple[Any, ...], npt.NDArray[np.intp]]:
    """Return the classes in the caller's order, and the class number of each row."""
    own = (
        tuple(found)
        if classes is None
        else arrays.different_names(classes, len(classes), "classes")
    )
    place = {key: k for k, key in enumerate(own)}
    unknown = [key for key in found if key not in place]
    if unknown:
        message = (
            f"{name} must be one of classes: {len(unknown)} are not, the first is "
            f"{unknown[0]!r:.60}. The classes are {arrays.listed(own)}."
        )
        raise InputError(message)
    if len(own) < 2:
        message = (
            f"{name} must have two or more classes: every vote is for {own[0]!r:.60}. "
            "Pass all of them with classes=."
        )
        raise InputError(message)
    return own, np.array([place[key] for key in found], dtype=np.intp)[numbers]


def _refuse_second_votes(
    item: npt.NDArray[np.intp],
    items: list[Any],
    worker: npt.NDArray[np.intp],
    workers: list[Any],
) -> None:
    pair = item * len(workers) + worker
    _, first, count = np.unique(pair, return_index=True, return_counts=True)
    again = count > 1
    if again.any():
        row = int(first[again].min())
        message = (
            f"a rater must have one vote on an item: {again.sum()} have more, the first is "
            f"rater {workers[worker[row]]!r:.60} on item {items[item[row]]!r:.60}. Drop the "
            "repeats, or pass allow_repeated=True to count each as a vote."
        )
        raise InputError(message)


FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Votes:
    r"""Votes of several people on each item, for use as `y_true`.

    The label of item i and class c is the share \(k_{ic} / m_i\) of its votes. The number of votes
    \(m_i\) may differ between items, and every interval uses it. Metrics of one probability need
    votes for two classes, and use the share of the **second**; `binary` selects another class.

    Parameters
    ----------
    counts : array-like of shape (items, classes)
        The number of votes for each class: whole numbers, at least one vote per item.
    classes : sequence, optional
        Names of the classes. Default: the names of the table's columns, or 0, 1, ...
    items : sequence, optional
        Names of the items, for `for_items`.
    ordered : bool
        Whether the classes are in order, lowest first, as ratings from 1 to 5 are. `wasserstein`
        and the other metrics of ordered classes require it.

    Raises
    ------
    InputError, InputTypeError
        If a count is negative or is not a whole number, or if an item has no vote.

    Examples
    --------
    >>> votes = Votes([[3, 1], [0, 2]], classes=["benign", "malignant"])
    >>> votes
    Votes(items=2, classes=('benign', 'malignant'), votes=6)
    >>> votes.shares
    array([[0.75, 0.25],
           [0.  , 1.  ]])
    >>> from softcal import smece
    >>> smece(votes, [0.25, 0.5])
    0.25
    """

    counts: IntArray
    classes: tuple[Any, ...]
    items: tuple[Any, ...] | None
    ballots: Ballots | None
    ordered: bool
    weights: FloatArray | None  # of each rater; None if all are equal
    index: Any  # of the pandas frame of the counts, to detect misaligned rows

    def __init__(
        self,
        counts: npt.ArrayLike,
        *,
        classes: Sequence[Any] | None = None,
        items: Sequence[Any] | None = None,
        ordered: bool = False,
    ) -> None:
        hint = "Pass one column of counts per class; for two classes, column_stack([no, yes])."
        own = _checked(arrays.matrix(counts, "counts", hint))
        if classes is None:
            classes = arrays.column_names(counts) or range(own.shape[1])
        own.setflags(write=False)
        vars(self).update(
            counts=own,
            classes=arrays.different_names(classes, own.shape[1], "classes"),
            items=None if items is None else arrays.different_names(items, own.shape[0], "items"),
            ballots=None,
            ordered=bool(ordered),
            weights=None,
            index=getattr(counts, "index", None) if hasattr(counts, "iloc") else None,
        )

    @classmethod
    def from_long(
        cls,
        frame: Any,
        *,
        item: str,
        label: str,
        worker: str | None = None,
        classes: Sequence[Any] | None = None,
        positive: Any = None,
        allow_repeated: bool = False,
        ordered: bool = False,
    ) -> Votes:
        """Count votes from a table with one vote per row.

        Items are sorted by name, and so are classes, unless `classes` gives their order. Two
        classes that are words need `positive` or `classes`. With `worker`, the single votes are
        kept, for `dawid_skene` and `raters=True`.

        Parameters
        ----------
        frame : pandas, Polars, or Arrow table, or dict of columns
            The votes, one per row.
        item, label, worker : str
            Names of the columns of the items, the classes voted for, and the raters.
        classes : sequence, optional
            All classes in order, including those without votes.
        positive : value, optional
            The class that counts as 1, against all others together, as `binary` does.
        allow_repeated : bool, default=False
            Whether a rater may have several votes on an item. Each then counts as an independent
            vote in shares, intervals, and `dawid_skene`. By default a repeated vote is refused,
            because most are duplicated rows. Without `worker`, repeats cannot be detected.
        ordered : bool, default=False
            Whether the classes are in order. Classes that are not numbers then need `classes`,
            because their names would be sorted as text.

        Examples
        --------
        >>> votes = Votes.from_long(
        ...     {"text": ["a", "a", "b"], "who": [7, 8, 7], "says": ["no", "yes", "yes"]},
        ...     item="text", worker="who", label="says", positive="yes",
        ... )
        >>> votes.items, votes.classes, votes.counts.tolist()
        (('a', 'b'), ('no', 'yes'), [[1, 1], [0, 1]])
        """
        names = [item, label] if worker is None else [item, label, worker]
        columns = {name: arrays.numbered(_taken(frame, name), name) for name in names}
        _refuse_other_lengths({name: numbers.size for name, (_, numbers) in columns.items()})
        items, of_item = columns[item]
        found, of_label = _in_order(*columns[label], classes, label)
        workers, of_worker = columns[worker] if worker is not None else ([], np.zeros_like(of_item))
        if worker is not None and not allow_repeated:
            _refuse_second_votes(of_item, items, of_worker, workers)
        if classes is None and positive is None:
            _refuse_unclear(found, label, ordered=ordered)
        if ordered and positive is not None:
            message = "leave one of ordered=True and positive out: positive keeps two classes."
            raise InputError(message)
        ballots = Ballots(
            of_item.astype(np.int32), of_label.astype(np.int32), of_worker.astype(np.int32),
            tuple(items), found, tuple(workers), allow_repeated,
        )  # fmt: skip
        votes = cls(ballots.counts(), classes=found, items=items, ordered=ordered)
        if worker is not None:
            vars(votes).update(ballots=ballots)
        return votes if positive is None else votes.binary(positive)

    # Attributes

    @property
    def n_items(self) -> int:
        """The number of items."""
        return int(self.counts.shape[0])

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return int(self.counts.shape[1])

    @property
    def totals(self) -> IntArray:
        """The number of votes on each item."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def shares(self) -> FloatArray:
        """The weighted share of each item's votes for each class; rows sum to 1."""
        if self.ballots is None or self.weights is None:
            return np.asarray(self.counts / self.totals[:, None])
        weighted = self.ballots.counts(self.ballot_weight)
        return np.asarray(weighted / weighted.sum(axis=1, keepdims=True))

    @property
    def effective_totals(self) -> IntArray:
        r"""The effective number of votes of each item, rounded down.

        \((\sum \omega)^2 / \sum \omega^2\) over the item's votes: `totals` without weights.
        """
        if self.ballots is None or self.weights is None:
            return self.totals
        weight, item = self.ballot_weight, self.ballots.item
        whole, square = (np.bincount(item, each, self.n_items) for each in (weight, weight**2))
        return np.maximum(whole**2 / square + 1e-9, 1.0).astype(np.int64)

    @property
    def ballot_weight(self) -> FloatArray:
        """The weight of each single vote."""
        ballots = ballots_of(self, "a weight per vote")
        if self.weights is None:
            return np.ones(ballots.item.size)
        return self.weights[ballots.worker]

    def __len__(self) -> int:
        return self.n_items

    def __repr__(self) -> str:
        votes = int(self.counts.sum())
        names = arrays.listed(self.classes)
        return f"Votes(items={self.n_items}, classes=({names}), votes={votes})"

    def __array__(
        self, dtype: npt.DTypeLike | None = None, *, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        """Return the shares, for NumPy and functions that take an array of labels."""
        return np.array(self.shares, dtype=dtype)

    # Labels made of votes

    def binary(self, positive: Any) -> Votes:
        """Return the votes for one class against those for all others together.

        Parameters
        ----------
        positive : name of a class
            The class whose share is the label.

        Examples
        --------
        >>> votes = Votes([[1, 2, 0], [0, 1, 3]], classes=["hate", "offensive", "neither"])
        >>> votes.binary("hate").counts.tolist()
        [[2, 1], [4, 0]]
        """
        place = _place(positive, self.classes)
        if place is None:
            known = arrays.listed(self.classes)
            message = f"there is no class {positive!r:.60}: the classes are {known}."
            raise InputError(message)
        rest = self.classes[1 - place] if self.n_classes == 2 else f"not {positive}"
        return self._split(np.arange(self.n_classes) == place, (rest, positive))

    def above(self, threshold: Any) -> Votes:
        """Return the votes for the classes above a threshold, against all others.

        Parameters
        ----------
        threshold : name of a class
            One of the ordered classes, except the highest.

        Examples
        --------
        >>> votes = Votes([[1, 2, 0], [0, 1, 3]], classes=[1, 2, 3], ordered=True)
        >>> votes.above(1).counts.tolist()
        [[1, 2], [0, 4]]
        """
        refuse_unordered(self)
        place = _place(threshold, self.classes[:-1])
        if place is None:
            known = arrays.listed(self.classes[:-1])
            message = f"no class is above {threshold!r:.60}: pass one of {known}."
            raise InputError(message)
        chosen = np.arange(self.n_classes) > place
        return self._split(chosen, (f"not > {threshold}", f"> {threshold}"))

    def _split(self, chosen: npt.NDArray[np.bool_], classes: tuple[Any, Any]) -> Votes:
        """Return the votes for some classes against those for all others."""
        own = self.counts[:, chosen].sum(axis=1)
        ballots = self.ballots
        if ballots is not None:
            label = chosen[ballots.label].astype(np.int32)
            ballots = ballots._replace(label=label, classes=classes)
        counts = np.column_stack([self.totals - own, own])
        return self._with(counts=counts, classes=classes, ballots=ballots, ordered=False)

    def _with(self, **changes: Any) -> Votes:
        """Return these votes with other attributes, which are known to be valid."""
        votes = object.__new__(Votes)
        vars(votes).update(vars(self) | changes)
        votes.counts.setflags(write=False)
        return votes

    def for_items(self, items: npt.ArrayLike) -> Votes:
        """Return the votes on the named items, in the given order.

        Use it to align votes with a table of predictions.

        Parameters
        ----------
        items : array-like
            Names of items; a name may repeat.

        Examples
        --------
        >>> votes = Votes([[3, 1], [0, 2]], items=["x", "y"])
        >>> votes.for_items(["y", "x"]).counts.tolist()
        [[0, 2], [3, 1]]
        """
        if self.items is None:
            message = "these votes have no item names: pass them as Votes(counts, items=...)."
            raise InputError(message)
        place = {name: k for k, name in enumerate(self.items)}
        names, numbers = arrays.numbered(items, "items")
        unknown = [name for name in names if name not in place]
        if unknown:
            message = (
                f"items must have votes: {len(unknown)} of {len(names)} names have none, the first "
                f"is {unknown[0]!r:.60}. Leave those rows out."
            )
            raise InputError(message)
        rows = np.array([place[name] for name in names])[numbers]
        own = tuple(names[k] for k in numbers)
        ballots = None if self.ballots is None else _on_items(self.ballots, rows, own)
        return self._with(counts=self.counts[rows], items=own, ballots=ballots, index=None)

    # Raters

    @property
    def workers(self) -> tuple[Any, ...]:
        """The sorted names of the raters; empty if the raters are unknown."""
        return () if self.ballots is None else self.ballots.workers

    def weighted(self, *, by: Any, population: Mapping[Any, float]) -> Votes:
        r"""Return the votes, weighted so that kinds of raters have the shares of a population.

        A vote of kind k has the weight \(P_k / f_k\). Here P is the share of the kind in the
        population, and f is its share of the votes. The label of an item is the
        weighted share, with an effective number of \((\sum \omega)^2 / \sum \omega^2\) votes. If a
        kind is rare among the raters, its few votes have large weights. Intervals with
        `raters=True` include the resulting uncertainty.

        Parameters
        ----------
        by : mapping from rater to kind, or sequence
            The kind of each rater. A sequence is in the order of `workers`.
        population : mapping from kind to float
            The share of each kind in the population, above 0, with sum 1.

        Examples
        --------
        >>> votes = Votes.from_long(
        ...     {"text": ["a", "a", "a"], "who": [7, 8, 9], "says": ["no", "yes", "yes"]},
        ...     item="text", worker="who", label="says", positive="yes",
        ... )
        >>> kinds = {7: "old", 8: "young", 9: "young"}
        >>> votes.weighted(by=kinds, population={"old": 0.5, "young": 0.5}).shares
        array([[0.5, 0.5]])
        """
        ballots, names, kind = self._kinds(by)
        _refuse_other_population(names, population)
        seen = np.bincount(kind[ballots.worker], minlength=len(names)) / self.counts.sum()
        weight = np.array([float(population[name]) for name in names]) / seen
        return self._with(weights=weight[kind], ordered=False)

    def by_kind(self, by: Any) -> dict[Any, Votes]:
        """Return the votes of each kind of rater, on the items with votes of that kind.

        Parameters
        ----------
        by : mapping from rater to kind, or sequence
            As in `weighted`.

        Returns
        -------
        dict from kind to Votes
            The votes of each kind; `items` are the names of their items.

        Examples
        --------
        >>> votes = Votes.from_long(
        ...     {"text": ["a", "a", "b"], "who": [7, 8, 8], "says": ["no", "yes", "yes"]},
        ...     item="text", worker="who", label="says", positive="yes",
        ... )
        >>> parts = votes.by_kind({7: "old", 8: "young"})
        >>> {kind: part.items for kind, part in parts.items()}
        {'old': ('a',), 'young': ('a', 'b')}
        """
        return {kind: votes for kind, (votes, _) in self.rows_by_kind(by).items()}

    def rows_by_kind(self, by: Any) -> dict[Any, tuple[Votes, npt.NDArray[np.intp]]]:
        """Return the votes of each kind as in `by_kind`, and the rows of their items."""
        ballots, names, kind = self._kinds(by)
        of_vote = kind[ballots.worker]
        return {name: self._some(ballots, of_vote == k) for k, name in enumerate(names)}

    def _kinds(self, by: Any) -> tuple[Ballots, list[Any], npt.NDArray[np.intp]]:
        """Return the single votes, the kinds that have any, and the kind of each rater."""
        ballots = ballots_of(self, "a kind of rater")
        workers = ballots.workers
        if hasattr(by, "keys"):
            without = [name for name in workers if name not in by]
            if without:
                message = (
                    f"by must have the kind of every rater: {len(without)} of {len(workers)} have "
                    f"none, the first is {without[0]!r:.60}. Pass another kind for these, such as "
                    '"unknown".'
                )
                raise InputError(message)
            by = [by[name] for name in workers]
        names, kind = arrays.numbered(by, "by")
        if kind.size != len(workers):
            message = (
                f"by must have one kind per rater, in the order of votes.workers: there are "
                f"{len(workers)} raters, by has {kind.size}."
            )
            raise InputError(message)
        # All votes of a kind may be on items that were left out.
        voted = np.unique(kind[ballots.worker])
        kind = np.minimum(voted.searchsorted(kind), voted.size - 1)
        return ballots, [names[k] for k in voted.tolist()], kind

    def _some(
        self, ballots: Ballots, chosen: npt.NDArray[np.bool_]
    ) -> tuple[Votes, npt.NDArray[np.intp]]:
        """Return some of the single votes, and the rows of the items that have any of them."""
        rows, item = np.unique(ballots.item[chosen], return_inverse=True)
        workers, worker = np.unique(ballots.worker[chosen], return_inverse=True)
        own = ballots._replace(
            item=item.astype(np.int32), label=ballots.label[chosen], worker=worker.astype(np.int32),
            items=tuple(ballots.items[k] for k in rows.tolist()),
            workers=tuple(ballots.workers[k] for k in workers.tolist()),
        )  # fmt: skip
        votes = self._with(
            counts=own.counts(), items=own.items, ballots=own, index=None, ordered=False,
            weights=None if self.weights is None else self.weights[workers],
        )  # fmt: skip
        return votes, rows.astype(np.intp)

    def majority(self) -> npt.NDArray[np.intp]:
        """Return the column of the class with the most votes; the first of tied classes.

        This discards the uncertainty of the votes. `tied` marks the items with ties.

        Examples
        --------
        >>> Votes([[1, 3], [2, 2]]).majority()
        array([1, 0])
        """
        return np.asarray(self.counts.argmax(axis=1))

    @property
    def tied(self) -> npt.NDArray[np.bool_]:
        """Whether two or more classes of an item share the most votes."""
        most = self.counts.max(axis=1, keepdims=True)
        return np.asarray((self.counts == most).sum(axis=1) > 1)

    def smoothed(self, pseudo_votes: float) -> FloatArray:
        r"""Return shares shrunk toward equal shares, as if each class had more votes.

        \[ \frac{k_{ic} + a}{m_i + C a} \]

        This is the posterior mean under a Dirichlet prior with parameter a for each of C classes.
        No share is then 0, but the shares are biased, and so are metrics that use them.

        Parameters
        ----------
        pseudo_votes : float
            The number a of votes added to each class, above 0.

        Examples
        --------
        >>> Votes([[3, 1], [0, 2]]).smoothed(1).round(3)
        array([[0.667, 0.333],
               [0.25 , 0.75 ]])
        """
        more_votes = real(pseudo_votes)
        if not 0 < more_votes < LARGEST_VOTES:
            message = f"pseudo_votes must be above 0 and finite: got {pseudo_votes!r:.60}."
            raise InputError(message)
        more = self.counts + more_votes
        return np.asarray(more / more.sum(axis=1, keepdims=True))


def refuse_unordered(votes: Votes) -> None:
    """Raise if the classes of votes are not ordered."""
    if not votes.ordered:
        message = (
            "votes must have ordered classes: pass ordered=True to Votes, and the classes from "
            f"lowest to highest. The classes are {arrays.listed(votes.classes)}."
        )
        raise InputError(message)


def _refuse_unclear(classes: tuple[Any, ...], label: str, *, ordered: bool) -> None:
    """Refuse classes whose names do not tell their order: the second of two would count as 1."""
    names = [name for name in classes if not is_number(name)]
    if ordered and names:
        message = (
            f"ordered classes must be numbers or be listed: {len(names)} of {len(classes)} are not "
            f"numbers, the first is {names[0]!r:.60}. Pass classes= from lowest to highest."
        )
        raise InputError(message)
    if len(classes) == 2 and names:
        first, second = classes
        message = (
            f"{label} has two classes, {first!r:.60} and {second!r:.60}: name the one that counts "
            f"as 1, such as positive={first!r:.60}, or pass both in order as classes=."
        )
        raise InputError(message)


def _place(name: Any, classes: tuple[Any, ...]) -> int | None:
    """Return the place of a class; None if it is not there, or cannot be compared."""
    with np.errstate(all="ignore"), suppress(TypeError, ValueError, ArithmeticError):
        return classes.index(name)
    return None


def _refuse_other_population(kinds: list[Any], population: Mapping[Any, float]) -> None:
    if not isinstance(population, Mapping):
        message = (
            "population must map each kind of rater to its share, as in "
            f'{{"old": 0.5, "young": 0.5}}: got {population!r:.60}.'
        )
        raise InputTypeError(message)
    missing = [kind for kind in kinds if kind not in population]
    if missing:
        message = (
            f"population must have the share of every kind of rater: {len(missing)} have none, "
            f"the first is {missing[0]!r:.60}."
        )
        raise InputError(message)
    absent = [kind for kind in population if kind not in kinds]
    if absent:
        message = (
            f"population has a kind without raters, {absent[0]!r:.60}: no votes represent it. "
            "Join kinds, or leave it out and rescale the others."
        )
        raise InputError(message)
    shares = [population[kind] for kind in kinds]
    between = all(0 < real(share) <= 1 for share in shares)
    if not between or abs(sum(shares) - 1) > 1e-6:
        message = f"population must be shares above 0 that sum to 1: got {shares!r:.80}."
        raise InputError(message)


def _on_items(ballots: Ballots, rows: npt.NDArray[np.intp], items: tuple[Any, ...]) -> Ballots:
    """Return the single votes on some items, in their order; items may repeat."""
    order = ballots.item.argsort(kind="stable")
    starts = ballots.item[order].searchsorted(np.arange(len(ballots.items) + 1))
    sizes = np.diff(starts)[rows]
    item = np.repeat(np.arange(rows.size, dtype=np.int32), sizes)
    first = np.cumsum(sizes) - sizes
    at = order[np.arange(item.size) - np.repeat(first - starts[:-1][rows], sizes)]
    return ballots._replace(
        item=item, label=ballots.label[at], worker=ballots.worker[at], items=items
    )


def _checked(counts: arrays.Column) -> IntArray:
    numbers = counts.astype(np.float64)
    bad = is_bad_count(numbers)
    if bad.any():
        row, column = divmod(int(bad.argmax()), bad.shape[1])
        message = (
            f"counts must be whole numbers of 0 or more: {bad.sum()} of {bad.size} are not, the "
            f"first is counts[{row}, {column}] = {float(numbers[row, column])!r}. {SHARES}"
        )
        raise InputError(message)
    without = ~counts.any(axis=1)
    if without.any():
        message = (
            f"every item must have a vote: {without.sum()} of {without.size} have none, the first "
            f"is counts[{without.argmax()}]. Leave those items out, here and in the predictions."
        )
        raise InputError(message)
    return counts.astype(np.int64)
