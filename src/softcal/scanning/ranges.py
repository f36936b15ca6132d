"""Cut columns of numbers into ranges, as segments: at given numbers, or into equal parts."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

from softcal._validation.rules import is_whole
from softcal.exceptions import InputError
from softcal.scanning.expressions import place_of
from softcal.scanning.rows import Uses
from softcal.scanning.source import created

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray
    from softcal.scanning.data import Cut
    from softcal.scanning.source import Session, Source

_MOST_RANGES = 1_000_000
_MOVED = 0.02  # the share of a range that may be in the next one, for a cut with fewer digits


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


def ranges_of(cut: Cut, source: Source, con: Session) -> Ranges:
    """Return the ranges of a column."""
    uses = Uses(source)
    x = uses.number(cut.column, what="numbers, to be cut into ranges")
    if not is_whole(cut.at):
        return _given_parts(cut.column, _cuts(cut.column, cut.at))
    if not 2 <= cut.at <= _MOST_RANGES:  # type: ignore[operator]
        message = (
            f"a column can be cut into 2 to {_MOST_RANGES:,} ranges: {cut.column!r} has "
            f"{cut.at!r:.60}."
        )
        raise InputError(message)
    known = source.frame(uses.all).select(x.alias("x")).drop_nulls()
    counted = known.filter(~nw.col("x").is_nan()).group_by("x").agg(nw.len().alias("n"))
    found = Numbers(source.fetched(counted, con), con)
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


def _equal_parts(name: str, found: Numbers, count: int) -> Ranges:
    """Return ranges with about the same number of rows. Equal numbers are in one range."""
    low, high = found.ends
    if low is None or not np.isfinite([low, high]).all():
        message = f"the column {name} cannot be cut into ranges: it needs finite numbers."
        raise InputError(message)
    cuts = found.quantiles(count)
    cuts = _short(found, cuts[(cuts > low) & (cuts < high)], count)
    ends = _texts(np.array([low, *cuts, high]))
    return Ranges(name, cuts, tuple(f"{a} to {b}" for a, b in pairwise(ends)))


def _short(found: Numbers, cuts: FloatArray, count: int) -> FloatArray:
    """Return cuts with few digits that move few rows to another range."""
    few, below, (low, high) = _MOVED * found.rows / count, found.rows_below(cuts), found.ends
    for digits in range(2, 17):
        short = np.array([float(f"{cut:.{digits}g}") for cut in cuts.tolist()])
        increase = all(a < b for a, b in pairwise([low, *short.tolist(), high]))
        if increase and (np.abs(found.rows_below(short) - below) <= few).all():
            return short
    return cuts


class Numbers:
    """The different numbers of a column, in DuckDB, each with the rows at or below it.

    `counted` has the numbers in the column x, and in n how many rows have each.
    """

    def __init__(self, counted: Any, con: Session) -> None:
        upto = counted.project("x + 0.0 AS x, n, sum(n) OVER (ORDER BY x)::BIGINT AS upto")
        self._con, self._name = con, created(upto)
        *self.ends, self.rows = self._asked("SELECT min(x), max(x), max(upto) FROM t")[0]

    def _asked(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the result of a query on the table t."""
        whole = f"WITH t AS (FROM {self._name}) {query}"
        found: list[tuple[Any, ...]] = self._con.execute(whole, values).fetchall()
        return found

    def quantiles(self, count: int) -> FloatArray:
        """Return the smallest numbers with k/count of the rows at or below them, 0 < k < count."""
        ranks = "SELECT (k * $1::HUGEINT + $2 - 1) // $2 AS rank FROM range(1, $2) AS r(k)"
        query = f"SELECT DISTINCT x FROM ({ranks}) ASOF JOIN t ON rank <= upto ORDER BY x"  # noqa: S608
        return np.array([x for (x,) in self._asked(query, self.rows, count)])

    def rows_below(self, numbers: FloatArray) -> FloatArray:
        """Return how many rows are below each number; these increase."""
        query = (
            "SELECT coalesce(upto, 0) FROM (SELECT unnest($1::DOUBLE[]) AS cut) "
            "ASOF LEFT JOIN t ON cut > x ORDER BY cut"
        )
        found = self._asked(query, numbers.tolist())
        return np.array([rows for (rows,) in found], dtype=np.float64)


def _texts(edges: FloatArray) -> list[str]:
    """Return six digits of each edge, or all if six do not tell the edges apart."""
    ends = [f"{edge:.6g}" for edge in edges.tolist()]
    return ends if len(set(ends)) == len(ends) else [repr(edge) for edge in edges.tolist()]
