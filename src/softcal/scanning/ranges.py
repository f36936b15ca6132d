"""Cut columns of numbers into ranges, as segments: at given numbers, or into equal parts."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

from softcal._validation.rules import is_whole
from softcal.exceptions import InputError
from softcal.scanning.expressions import place_of
from softcal.scanning.source import batches

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray
    from softcal.scanning.data import Cut
    from softcal.scanning.source import Frame
    from softcal.table.blocks import IntArray

_MOST_KEYS = 1 << 17  # different numbers of a column that are held in memory
_MOST_RANGES = 1_000_000
_MOVED = 0.02  # the share of a range that may be in the next one, for a cut with fewer digits
_ALL_BUT_SIGN = np.int64(2**63 - 1)
_ROWS_AT_ONCE = 1 << 17


class Ranges(NamedTuple):
    """The ranges of a column: each begins at a cut, which belongs to it."""

    column: str
    cuts: FloatArray
    labels: tuple[str, ...]

    def number_of(self, x: nw.Expr) -> nw.Expr:
        """Return the number of the range of each value; a missing value has none."""
        known = ~(x.is_null() | x.is_nan())
        return nw.when(known).then(place_of(x, self.cuts.tolist()))

    def label(self, number: float | None) -> str | None:
        """Return the name of a range."""
        return None if number is None else self.labels[int(number)]


def ranges_of(cut: Cut, numbers: Frame) -> Ranges:
    """Return the ranges of a column, given the rows of its numbers in the column x."""
    if not is_whole(cut.at):
        return _given_parts(cut.column, _cuts(cut.column, cut.at))
    if not 2 <= cut.at <= _MOST_RANGES:  # type: ignore[operator]
        message = (
            f"a column can be cut into 2 to {_MOST_RANGES:,} ranges: {cut.column!r} has "
            f"{cut.at!r:.60}."
        )
        raise InputError(message)
    found = Distribution()
    counted = numbers.group_by("x").agg(nw.len().alias("rows"))
    for batch in batches(counted, _ROWS_AT_ONCE):
        x, rows = (batch.column(k).to_numpy(zero_copy_only=False) for k in (0, 1))
        found = found.with_(Distribution.of(x.astype(np.float64), rows.astype(np.int64)))
    return _equal_parts(cut.column, found, cut.at)  # type: ignore[arg-type]


def _cuts(name: str, given: Any) -> FloatArray:
    try:
        found = np.array([] if isinstance(given, str) else given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        found = np.empty(0)
    good = (
        found.ndim == 1 and found.size and np.isfinite(found).all() and (np.diff(found) > 0).all()
    )
    if not good:
        message = (
            "a cut must have a whole number of ranges or increasing numbers to cut at, such as "
            f"[40, 60]: {name!r} has {given!r:.60}."
        )
        raise InputError(message)
    return found


def _given_parts(name: str, cuts: FloatArray) -> Ranges:
    ends = _texts(cuts)
    between = [f"{a} to {b}" for a, b in pairwise(ends)]
    return Ranges(name, cuts, (f"below {ends[0]}", *between, f"{ends[-1]} and above"))


def _equal_parts(name: str, found: Distribution, count: int) -> Ranges:
    """Return ranges with about the same number of rows. Equal numbers are in one range."""
    if not found.counts.size or not np.isfinite([found.low, found.high]).all():
        message = f"the column {name} cannot be cut into ranges: it needs finite numbers."
        raise InputError(message)
    low, high = found.low, found.high
    cuts = np.unique(found.quantiles(count))
    cuts = _short(found, cuts[(cuts > low) & (cuts < high)], count)
    ends = _texts(np.array([low, *cuts, high]))
    return Ranges(name, cuts, tuple(f"{a} to {b}" for a, b in pairwise(ends)))


def _short(found: Distribution, cuts: FloatArray, count: int) -> FloatArray:
    """Return cuts with few digits that move few rows to another range."""
    few = _MOVED * found.counts.sum() / count
    for digits in range(2, 17):
        short = np.array([float(f"{cut:.{digits}g}") for cut in cuts.tolist()])
        moved = np.abs(found.rows_below(short) - found.rows_below(cuts))
        increase = all(a < b for a, b in pairwise([found.low, *short.tolist(), found.high]))
        if increase and (moved <= few).all():
            return short
    return cuts


def _texts(edges: FloatArray) -> list[str]:
    """Return six digits of each edge, or all if six do not tell the edges apart."""
    ends = [f"{edge:.6g}" for edge in edges.tolist()]
    return ends if len(set(ends)) == len(ends) else [repr(edge) for edge in edges.tolist()]


class Distribution(NamedTuple):
    """How many rows have each number of a column, in bounded memory.

    A number is a whole-number key, in the same order as the numbers. If more than `_MOST_KEYS`
    keys differ, their last bits are dropped until they do not. How many bits depends only on the
    set of all numbers, so parts of the rows may be added up in any order.
    """

    keys: IntArray = np.empty(0, dtype=np.int64)
    counts: IntArray = np.empty(0, dtype=np.int64)
    dropped: int = 0  # bits
    low: float = np.inf
    high: float = -np.inf

    @staticmethod
    def of(numbers: FloatArray, rows: IntArray) -> Distribution:
        """Return how many rows have each number; NaN is left out."""
        here = ~np.isnan(numbers)
        known = numbers[here] + 0.0  # -0.0 becomes 0.0
        if not known.size:
            return Distribution()
        return Distribution(_in_order(known), rows[here], 0, known.min(), known.max()).pooled()

    def with_(self, other: Distribution) -> Distribution:
        """Add the numbers of another part of the rows."""
        dropped = max(self.dropped, other.dropped)
        keys = [each.keys >> (dropped - each.dropped) for each in (self, other)]
        return Distribution(
            np.concatenate(keys), np.concatenate([self.counts, other.counts]), dropped,
            min(self.low, other.low), max(self.high, other.high),
        ).pooled()  # fmt: skip

    def quantiles(self, count: int) -> FloatArray:
        """Return the smallest numbers with k/count of the rows at or below them, 0 < k < count."""
        total = int(self.counts.sum())
        ranks = [-(-k * total // count) for k in range(1, count)]
        keys = self.keys[np.cumsum(self.counts).searchsorted(ranks)] << self.dropped
        found: FloatArray = (keys ^ (keys >> 63 & _ALL_BUT_SIGN)).view(np.float64)
        return found

    def rows_below(self, numbers: FloatArray) -> IntArray:
        """Return how many rows are below each number."""
        at = self.keys.searchsorted(_in_order(numbers + 0.0) >> self.dropped)
        found: IntArray = np.append(0, np.cumsum(self.counts))[at]
        return found

    def pooled(self) -> Distribution:
        """Return different keys in order, few enough."""
        order = np.argsort(self.keys)
        keys, counts, dropped = self.keys[order], self.counts[order], self.dropped
        while True:
            starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: keys.size])
            keys = keys[starts]
            counts = np.add.reduceat(counts, starts) if starts.size else counts
            if keys.size <= _MOST_KEYS:
                return self._replace(keys=keys, counts=counts, dropped=dropped)
            keys, dropped = keys >> 1, dropped + 1


def _in_order(numbers: FloatArray) -> IntArray:
    """Return whole numbers in the same order as the numbers."""
    bits = numbers.view(np.int64)
    found: IntArray = bits ^ (bits >> 63 & _ALL_BUT_SIGN)
    return found
