"""Keyed sums: the blocks of a set, declared once, and the operations on all of them.

A block has a key of several axes and some sums. Sets store only keys that occur. The memory
therefore depends on the number of rows, not on the number of possible keys.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from softcal.table.kernel import SUM_NAMES
from softcal.table.scores import ORDERED_SCORES, SCORES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from softcal._validation.inputs import FloatArray

IntArray = npt.NDArray[np.int64]

_ENTRIES_WAITING = 1 << 18  # entries of parts that are kept before they are added up

PAIRED = tuple(
    f"{loss}_{part}" for loss in ("brier", "log_loss") for part in ("total", "mixed", "square")
)
"""Sums of w e, w² e, and (w e)², with e the difference of a loss of two models."""

LOSSES = ("differing", *PAIRED, "infinite_a", "infinite_b", "log_loss_a", "log_loss_b")
"""Sums over rows for two models; the last two are sums of w times loss."""

GROUP_SUMS = ("residual", "weight")
"""Sums of w d and w over the rows of a group."""

GROUP_LOSSES = ("weight", "differing", "brier_total", "log_loss_total")
"""Sums over the rows of a group, for two models."""

RATER_SUMS = ("residual", "weight", "residual_sq", "mixed", "weight_sq")
"""Sums of s, u, s², s u, and u² over votes, with u = w a and s = u (p - v)."""

VOTE_PRODUCTS = ("product", "mixed_a", "mixed_b", "weight_sq")
"""Sums of s^A s^B, s^A u, s^B u, and u² over votes, for two models A and B."""


class Block(NamedTuple):
    """The axes of the key of a block, and the names of its sums.

    A block of pairs starts with two models, the first with the lower number. If they are swapped,
    sums that end in "_a" and "_b" change places, and those that end in "_total" and "_mixed", which
    are sums of differences, change their signs.
    """

    axes: tuple[str, ...]
    sums: tuple[str, ...]

    @property
    def is_of_pairs(self) -> bool:
        """Whether the block has sums of pairs of models."""
        return self.axes[:2] == ("model", "model")

    def empty(self) -> Sparse:
        """Return the block without entries."""
        return Sparse(np.empty((len(self.axes), 0), dtype=np.int64), np.empty((len(self.sums), 0)))

    def mapped(self, entries: Sparse, axis: str, numbers: IntArray) -> Sparse:
        """Renumber an axis and add up keys that become equal; drop entries numbered -1."""
        parts = [k for k, own in enumerate(self.axes) if own == axis]
        if not parts or np.array_equal(numbers, np.arange(numbers.size)):
            return entries
        keys, values = entries.keys.copy(), entries.values
        keys[parts] = numbers[keys[parts]]
        kept = (keys[parts] >= 0).all(axis=0)
        if not kept.all():
            keys, values = keys[:, kept], values[:, kept]
        if axis == "model" and self.is_of_pairs:
            keys, values = self.rising(keys, values)
        return Sparse.of(keys, values)

    def rising(self, keys: IntArray, values: FloatArray) -> tuple[IntArray, FloatArray]:
        """Put the model with the lower number first in each pair."""
        swapped = keys[0] > keys[1]
        twice = [k for k, own in enumerate(self.axes[1:]) if own == self.axes[k]]
        for k in twice:
            keys[k : k + 2, swapped] = keys[k : k + 2, swapped][::-1]
        other = {name: f"{name[:-1]}{'ba'['ab'.index(name[-1])]}"
                 for name in self.sums if name.endswith(("_a", "_b"))}  # fmt: skip
        rows = [
            np.where(swapped, values[self.sums.index(other.get(name, name))], row)
            * np.where(swapped & name.endswith(("_total", "_mixed")), -1.0, 1.0)
            for name, row in zip(self.sums, values, strict=True)
        ]
        return keys, np.array(rows)


BLOCKS: Mapping[str, Block] = {
    "tables": Block(("model", "target", "cell", "bin"), SUM_NAMES),
    "cross": Block(("model", "model", "target", "cell", "pair_bin", "pair_bin"), ("product",)),
    "losses": Block(("model", "model", "target", "cell"), LOSSES),
    "scores": Block(("model", "cell"), SCORES),
    "ordered_scores": Block(("model", "cell"), ORDERED_SCORES),
    "group_sums": Block(("model", "target", "cell", "owner", "bin"), GROUP_SUMS),
    "group_losses": Block(("model", "model", "target", "cell", "owner"), GROUP_LOSSES),
    "rater_sums": Block(("model", "target", "cell", "owner", "bin"), RATER_SUMS),
    "vote_products": Block(
        ("model", "model", "target", "cell", "pair_bin", "pair_bin"), VOTE_PRODUCTS
    ),
    "rater_losses": Block(("model", "model", "target", "cell", "owner"), PAIRED),
    # Sets of 0.2 with groups stored only products of the groups' sums, for each segment.
    "counts": Block(("model", "target", "segment"), ("count",)),
    "squares": Block(("model", "target", "segment", "bin", "bin"), GROUP_SUMS),
    "segment_cross": Block(
        ("model", "model", "target", "segment", "pair_bin", "pair_bin"), ("product",)
    ),
    "segment_losses": Block(("model", "model", "target", "segment"), LOSSES),
}
"""Everything that a set can store. A new kind of sum is one entry here."""


class Sparse(NamedTuple):
    """Entries of sums, each with a key of several integers. Keys are unique and increasing."""

    keys: IntArray  #     (parts of a key, entries)
    values: FloatArray  # (sums, entries)

    @staticmethod
    def added(parts: Sequence[Sparse]) -> Sparse:
        """Add up entries with the same key."""
        parts = [part for part in parts if part.keys.shape[1]] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        keys = np.concatenate([part.keys for part in parts], axis=1)
        values = np.concatenate([part.values for part in parts], axis=1)
        return Sparse.of(keys, values)

    @staticmethod
    def of_result(keys: IntArray, columns: Sequence[npt.NDArray[Any] | None]) -> Sparse:
        """Sort the result of a group-by, whose keys hardly ever repeat, by key.

        A column may be given several times, and None is 0.
        """
        sizes = keys.max(axis=1, initial=0) + 1
        fits = math.prod(sizes.tolist()) < 1 << 62
        flat = np.ravel_multi_index(tuple(keys), tuple(sizes)) if fits else None
        order = np.lexsort(keys[::-1]) if flat is None else flat.argsort()
        values = np.zeros((len(columns), order.size))
        first: dict[int, int] = {}
        for k, column in enumerate(columns):
            if column is not None:
                same = first.setdefault(id(column), k)
                values[k] = column[order] if same == k else values[same]
        return Sparse.of(keys[:, order], values)

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
            if (span := math.prod(sizes.tolist())) <= 4 * flat.size:  # few enough to count
                filled = np.flatnonzero(np.bincount(flat, minlength=span))
                sums = [np.bincount(flat, row, span)[filled] for row in values]
                whole = np.array(np.unravel_index(filled, sizes), dtype=np.int64)
                return Sparse(whole, np.array(sums, dtype=np.float64).reshape(-1, filled.size))
            order = flat.argsort(kind="stable")
            flat = flat[order]
            new = flat[1:] != flat[:-1]
        else:
            order = np.lexsort(keys[::-1])
            new = (keys[:, order][:, 1:] != keys[:, order][:, :-1]).any(axis=0)
        if new.all():  # as in the result of a group-by
            return Sparse(keys[:, order], values[:, order])
        first = np.flatnonzero(np.append(True, new))
        return Sparse(keys[:, order[first]], np.add.reduceat(values[:, order], first, axis=1))

    def where(self, chosen: npt.NDArray[Any]) -> Sparse:
        """Return the chosen entries."""
        return Sparse(self.keys[:, chosen], self.values[:, chosen])

    def under(self, *key: int) -> Sparse:
        """Prepend numbers, such as those of a model and a target, to all keys."""
        above = np.repeat(np.array(key, dtype=np.int64)[:, None], self.keys.shape[1], axis=1)
        return Sparse(np.concatenate((above, self.keys)), self.values)

    def beneath(self, *key: int) -> Sparse:
        """Return the entries whose keys start with these numbers, without them."""
        start, stop = 0, self.keys.shape[1]
        for part, number in enumerate(key):  # keys are increasing, so these are adjacent
            row = self.keys[part, start:stop]
            start, stop = (start + row.searchsorted([number, number + 1])).tolist()
        return Sparse(self.keys[len(key) :, start:stop], self.values[:, start:stop])


class Summed:
    """A sum of entries that arrive in many parts; waiting parts are added up regularly."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self._parts = [block.empty()]

    def add(self, part: Sparse) -> None:
        """Add more entries, whose keys may repeat."""
        self._parts.append(part)
        waiting = sum(each.keys.shape[1] for each in self._parts[1:])
        if waiting > max(_ENTRIES_WAITING, self._parts[0].keys.shape[1]):
            self.total()

    def map(self, axis: str, numbers: IntArray) -> None:
        """Renumber an axis of all entries so far."""
        self._parts = [self.block.mapped(self.total(), axis, numbers)]

    def total(self) -> Sparse:
        """Return the sum."""
        self._parts = [Sparse.added(self._parts)]
        return self._parts[0]
