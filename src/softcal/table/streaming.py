"""Reliability tables updated batch by batch; a group may have rows in several batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from softcal._validation import arrays, inputs
from softcal._validation.inputs import as_float64
from softcal.bins import Bins
from softcal.exceptions import InputError
from softcal.table import kernel
from softcal.table.groups import clusters_of, refuse_many_group_bins
from softcal.table.reliability import Reliability, warn_if_hard
from softcal.table.tableset import Sparse, empty_sparse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcal._validation.inputs import Rows
    from softcal.bins import BinsLike
    from softcal.table.groups import Clusters


class StreamingReliability:
    """A reliability table updated batch by batch, equal to the table of all rows at once.

    For any batches in any order, the counts equal those of `reliability` on all rows, and the sums
    agree up to rounding. The memory needed is constant. With groups, it grows with the number of
    groups and the bins that each one fills. In a torch training loop, use
    `softcal.torchmetric.SoftCalibrationError`.

    Parameters
    ----------
    bins : int, Bins, or sequence of float, default=10
        As in `reliability`.

    Examples
    --------
    >>> stream = StreamingReliability(bins=2)
    >>> for y_true, y_prob in [([0.0, 0.5], [0.2, 0.4]), ([1.0], [0.9])]:
    ...     stream.update(y_true, y_prob)
    StreamingReliability(n=2, bins=2)
    StreamingReliability(n=3, bins=2)
    >>> round(stream.smece, 4)
    0.0667
    >>> stream.reliability
    Reliability(n=3, bins=2)

    With groups, the rows of a patient may be in several batches.

    >>> stream = StreamingReliability(bins=2)
    >>> for day in (["ann", "ben"], ["ann", "cy"]):
    ...     stream.update([0.0, 1.0], [0.2, 0.9], groups=day)
    StreamingReliability(n=2, bins=2)
    StreamingReliability(n=4, bins=2)
    >>> stream.reliability.clusters.count
    3
    """

    def __init__(self, bins: BinsLike = 10) -> None:
        self._start(Bins.of(bins))

    def _start(self, bins: Bins) -> None:
        self._sums = Reliability.empty(bins)  # without the sums of groups
        self._groups: _GroupSums | None = None
        self._reliability: Reliability | None = self._sums  # None after a new batch

    @property
    def reliability(self) -> Reliability:
        """The table of the rows so far. It is immutable: a later batch does not change it."""
        if self._reliability is None:
            rel, groups = self._sums, self._groups
            clusters = None if groups is None else groups.clusters(len(rel.bins))
            self._reliability = Reliability(rel.bins, rel.sums, clusters)
            warn_if_hard(rel)
        return self._reliability

    @property
    def smece(self) -> float:
        """SMECE of the rows so far. `reliability` has every other metric."""
        return self._sums.smece

    def update(
        self,
        y_true: npt.ArrayLike,
        y_prob: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        n_votes: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
    ) -> StreamingReliability:
        """Add a batch of rows.

        A batch without rows, or with only zero weights, adds nothing. An invalid batch is refused
        as a whole, and the table does not change. Either all batches must have groups, or none.

        Parameters
        ----------
        y_true, y_prob, sample_weight, n_votes, groups : array-like
            As in `reliability`. Use the same group names in every batch.

        Returns
        -------
        StreamingReliability
            The object itself.

        Raises
        ------
        InputError, InputTypeError
            As `reliability` does.
        """
        if _is_empty(y_true, "y_true") and _is_empty(y_prob, "y_prob"):
            return self
        bins = self._sums.bins
        rows = inputs.rows(y_true, y_prob, sample_weight, n_votes)
        inputs.refuse_misaligned_groups(groups, y_true=y_true, y_prob=y_prob)
        names, numbers = ([], None) if groups is None else inputs.group_names(groups, rows)
        sums = kernel.bin_sums(rows, bins)
        if sums is None:
            inputs.refuse(rows)
        batch = Reliability(bins, sums)
        if not batch.n:
            return self
        self._refuse_mixture(with_groups=numbers is not None)
        if numbers is not None:
            refuse_many_group_bins(len(bins))
            self._groups = self._groups or _GroupSums()
            self._groups.add(names, _per_group(rows, numbers, bins))
        self._sums += batch
        self._reliability = None
        return self

    def _refuse_mixture(self, *, with_groups: bool) -> None:
        """Refuse a mixture of rows with groups and rows without."""
        if self._sums.n and with_groups != (self._groups is not None):
            message = (
                "all batches must have groups, or none: this one has "
                f"{'groups' if with_groups else 'none'}, the {self._sums.n} rows before it have "
                f"{'none' if with_groups else 'groups'}. Pass groups with every batch."
            )
            raise InputError(message)

    def reset(self) -> StreamingReliability:
        """Discard all rows, for example at the start of an epoch. The bins stay the same."""
        self._start(self._sums.bins)
        return self

    def __add__(self, other: StreamingReliability) -> StreamingReliability:
        """Merge two streams with the same bins into a new one. A group may have rows in both.

        Raises
        ------
        BinMismatchError
            If the bins differ.
        InputError
            If one has groups and the other none.

        Examples
        --------
        >>> morning = StreamingReliability().update([0.5], [0.4])
        >>> morning + StreamingReliability().update([1.0], [0.9])
        StreamingReliability(n=2, bins=10)
        """
        if not isinstance(other, StreamingReliability):
            return NotImplemented
        if other._sums.n:
            self._refuse_mixture(with_groups=other._groups is not None)
        both = StreamingReliability(self._sums.bins)
        both._sums = self._sums + other._sums
        both._groups = _GroupSums.of_all([self._groups, other._groups])
        both._reliability = None
        return both

    def __radd__(self, other: object) -> StreamingReliability:
        """Support `sum(streams)`, which starts from 0."""
        return self if other == 0 else NotImplemented

    def __repr__(self) -> str:
        return f"Streaming{self._sums!r}"


class _GroupSums:
    """The sums of w d and w of each group, by name, in each bin that the group fills."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self.parts = [empty_sparse(2, 2)]

    @staticmethod
    def of_all(streams: Sequence[_GroupSums | None]) -> _GroupSums | None:
        """Add up the groups of several streams, some of which may have none."""
        found = [each for each in streams if each is not None]
        total = _GroupSums()
        for each in found:
            total.add(list(each.numbers), Sparse.added(each.parts))
        return total if found else None

    def add(self, names: Sequence[Any], batch: Sparse) -> None:
        """Add the entries of a batch, given the names of its groups."""
        numbers = [self.numbers.setdefault(name, len(self.numbers)) for name in names]
        self.parts.append(batch.renumbered(0, numbers))
        # Not with every batch: the time would grow with the square of the number of batches.
        if sum(part.keys.shape[1] for part in self.parts[1:]) > self.parts[0].keys.shape[1]:
            self.parts = [Sparse.added(self.parts)]

    def clusters(self, n_bins: int) -> Clusters:
        """Compute the products of sums that the table stores for groups."""
        (group, place), values = Sparse.added(self.parts)
        return clusters_of(group, place, values, n_bins)


def _per_group(rows: Rows, group: npt.NDArray[np.intp], bins: Bins) -> Sparse:
    """Add up w d and w over the rows of each group and bin, without rows of weight 0."""
    p, y = as_float64(rows.y_prob), as_float64(rows.y_true)
    w = np.ones(p.size) if rows.sample_weight is None else as_float64(rows.sample_weight)
    found = Sparse.of(np.array([group, bins.guide.locate(p)]), np.array([w * (p - y), w]))
    return found.where(found.values[1] > 0)


def _is_empty(column: npt.ArrayLike, name: str) -> bool:
    return arrays.to_array(column, name).shape == (0,)
