"""Cut columns of numbers into ranges, as segments: at given numbers, or into equal parts."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softcal._validation.rules import is_whole
from softcal.exceptions import InputError, InputTypeError
from softcal.sources.columns import Named, Wanted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from softcal._validation.inputs import FloatArray
    from softcal.sources.columns import Batch
    from softcal.table.blocks import IntArray

_MOST_KEYS = 1 << 17  # different numbers of a column that are held in memory
_MOST_RANGES = 1_000_000
_MOVED = 0.02  # the share of a range that may be in the next one, for a cut with fewer digits
_ALL_BUT_SIGN = np.int64(2**63 - 1)


class Ranges(NamedTuple):
    """The ranges of a column: each begins at a cut, which belongs to it."""

    column: str
    cuts: FloatArray
    labels: tuple[str, ...]
    decimal: str  # the decimal mark of numbers in text

    def names(self, values: Any) -> Any:
        """Return the range of each value of an Arrow array as text; a missing value has none."""
        import pyarrow as pa

        numbers = _numbers(values, self.column, self.decimal)
        at = self.cuts.searchsorted(numbers, side="right")
        return pa.array(self.labels).take(pa.array(at, mask=np.isnan(numbers)))


class Features(NamedTuple):
    """The columns to cut: into a number of ranges with about the same rows, or at given numbers."""

    counts: Mapping[str, int]
    cuts: Mapping[str, FloatArray]

    @staticmethod
    def of(features: object) -> Features:
        """Validate a mapping from columns to numbers of ranges or to cuts."""
        if not isinstance(features, Mapping):
            message = (
                'features must map columns to numbers of ranges or to cuts, as in {"age": 10} or '
                f'{{"age": [40, 60]}}: got {features!r:.60}.'
            )
            raise InputTypeError(message)
        counts = {name: given for name, given in features.items() if is_whole(given)}
        for name, count in counts.items():
            if not 2 <= count <= _MOST_RANGES:
                message = (
                    f"features must divide each column into 2 to {_MOST_RANGES:,} ranges: {name!r} "
                    f"has {count!r:.60}."
                )
                raise InputError(message)
        others = {name: given for name, given in features.items() if name not in counts}
        return Features(counts, {name: _cuts(name, given) for name, given in others.items()})

    def ranges(self, found: Distributions, decimal: str) -> tuple[Ranges, ...]:
        """Return the ranges of each column, given the distributions of those in `counts`."""
        cut = [_equal_parts(name, found.of[name], n, decimal) for name, n in self.counts.items()]
        return (*cut, *(_given_parts(name, cuts, decimal) for name, cuts in self.cuts.items()))


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
            f"features must have a whole number of ranges or increasing numbers to cut at, such as "
            f"[40, 60]: {name!r} has {given!r:.60}."
        )
        raise InputError(message)
    return found


def _given_parts(name: str, cuts: FloatArray, decimal: str) -> Ranges:
    ends = _texts(cuts)
    between = [f"{a} to {b}" for a, b in pairwise(ends)]
    return Ranges(name, cuts, (f"below {ends[0]}", *between, f"{ends[-1]} and above"), decimal)


def _equal_parts(name: str, found: Distribution, count: int, decimal: str) -> Ranges:
    """Return ranges with about the same number of rows. Equal numbers are in one range."""
    if not found.counts.size or not np.isfinite([found.low, found.high]).all():
        message = f"the column {name} cannot be cut into ranges: it needs finite numbers."
        raise InputError(message)
    low, high = found.low, found.high
    cuts = np.unique(found.quantiles(count))
    cuts = _short(found, cuts[(cuts > low) & (cuts < high)], count)
    ends = _texts(np.array([low, *cuts, high]))
    return Ranges(name, cuts, tuple(f"{a} to {b}" for a, b in pairwise(ends)), decimal)


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
    def of(numbers: FloatArray) -> Distribution:
        """Count numbers; NaN is left out."""
        known = numbers[~np.isnan(numbers)] + 0.0  # -0.0 becomes 0.0
        if not known.size:
            return Distribution()
        ones = np.ones(known.size, dtype=np.int64)
        return Distribution(_in_order(known), ones, 0, known.min(), known.max()).pooled()

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


class Distributions(NamedTuple):
    """The distributions of several columns."""

    of: dict[str, Distribution]

    @staticmethod
    def none(names: Iterable[str]) -> Distributions:
        """Return the distributions of no rows."""
        return Distributions({name: Distribution() for name in names})

    def with_(self, other: Distributions) -> Distributions:
        """Add the distributions of another part of the rows."""
        return Distributions({name: each.with_(other.of[name]) for name, each in self.of.items()})

    def with_rows(self, batch: Batch, decimal: str = ".") -> Distributions:
        """Add the rows of a batch."""
        numbers = {name: _numbers(batch[Named(name)], name, decimal) for name in self.of}
        return self.with_(
            Distributions({name: Distribution.of(each) for name, each in numbers.items()})
        )

    @property
    def wanted(self) -> Wanted:
        """The columns to read."""
        return Wanted((), tuple(self.of))


def distributions(
    batches: Iterable[Batch], nothing: Distributions, decimal: str = "."
) -> Distributions:
    """Return the distributions of the columns of all batches."""
    found = nothing
    for batch in batches:
        found = found.with_rows(batch, decimal)
    return found


def _numbers(values: Any, name: str, decimal: str) -> FloatArray:
    import pyarrow as pa
    from pyarrow import compute

    if decimal == "," and pa.types.is_string(values.type):
        values = compute.replace_substring(values, ",", ".")
    try:
        found: FloatArray = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        message = (
            f"the column {name} cannot be cut into ranges: it must hold numbers. Use by= (--by) "
            "for a column of words."
        )
        raise InputError(message) from error
    return found
