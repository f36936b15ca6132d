"""Expressions of narwhals that every engine computes: scales, bins, and comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from softcal._validation.rules import Scale
    from softcal.bins import Bins
    from softcal.scanning.source import Frame

_FLAT = 745.0  # beyond this, the exponential of a negative number is 0


_PART = 32  # expressions: engines cannot evaluate a chain of several hundred


def in_parts(combine: Callable[..., nw.Expr], values: Sequence[nw.Expr]) -> nw.Expr:
    """Combine many expressions, a few at a time, so that the result is not too deep."""
    if len(values) <= _PART:
        return combine(*values)
    parts = [combine(*values[k : k + _PART]) for k in range(0, len(values), _PART)]
    return in_parts(combine, parts)


def added(values: Sequence[nw.Expr]) -> nw.Expr:
    """Return the sum of values; null if one is."""
    return in_parts(lambda first, *others: sum(others, first), values)


def when(condition: Any, then: Any, otherwise: Any) -> nw.Expr:
    """Return one of two expressions or numbers."""
    return nw.when(condition).then(_of(then)).otherwise(_of(otherwise))


def where(condition: Any, value: Any) -> nw.Expr:
    """Return a value where a condition holds, else 0."""
    return when(condition, value, 0.0)


def _of(value: Any) -> nw.Expr:
    return value if isinstance(value, nw.Expr) else nw.lit(float(value))


def divided(x: nw.Expr, number: float) -> nw.Expr:
    """Divide by a constant, correctly rounded.

    Polars would multiply by its reciprocal, so the divisor is a column.
    """
    return x / (x * 0.0 + float(number))


def scaled(x: nw.Expr, scale: Scale) -> nw.Expr:
    """Return numbers of a scale as probabilities."""
    if scale == "percent":
        return divided(x, 100)
    if scale == "logit":
        # Neither overflows nor underflows, which some databases refuse.
        low = when(x < 0, x, -x)
        part = when(low < -_FLAT, 0.0, when(low < -_FLAT, -_FLAT, low).exp())
        return when(x < 0, part, 1.0) / (part + 1.0)
    if scale == "logprob":
        return when(x < -_FLAT, 0.0, when(x > 1, 2.0, x).exp())
    return x


def bin_of(p: nw.Expr, bins: Bins) -> nw.Expr:
    """Return the bin of p in [0, 1], exactly as `Bins.locate` does."""
    equal, first, edges = bins.guide.equal, bins.guide.first, bins.edges.tolist()
    if not equal:
        return _search(p, edges[1:-1], 0)
    near = (p * float(equal) + 0.5).floor()
    inside = near + float(first) - when(p < divided(near, equal), 1, 0)
    if len(bins) == equal:
        return when(p < 1, inside, equal - 1)
    last = first + equal - 1
    inside = when(p < edges[first + 1], _search(p, edges[1 : first + 1], 0), inside)
    return when(p >= edges[last], _search(p, edges[first + equal : -1], last), inside)


def _search(p: nw.Expr, edges: Sequence[float], first: int) -> nw.Expr:
    """Find the bin of p between edges by bisection."""
    if not edges:
        return nw.lit(float(first))
    middle = len(edges) // 2
    below, above = edges[:middle], edges[middle + 1 :]
    return when(p < edges[middle], _search(p, below, first), _search(p, above, first + middle + 1))


def with_log_loss(rows: Frame, p: str, y: str, name: str) -> Frame:
    """Add the log loss of each row as a column; null where it is infinite.

    It is computed step by step, so that no engine computes a logarithm twice, or that of 0.
    """
    inside = (nw.col(p) > 0) & (nw.col(p) < 1)
    rows = rows.with_columns(when(inside, nw.col(p), 0.5).alias("q"))
    rows = rows.with_columns((1.0 - nw.col("q")).alias("rest"))
    if rows.implementation.is_duckdb():  # narwhals writes log(x) / log(e), with cases for x <= 0
        logs = rows.to_native().project("*, ln(q) AS log_q, ln(rest) AS log_r")
        rows = nw.from_native(logs)
    else:
        rows = rows.with_columns(
            nw.col("q").log().alias("log_q"), nw.col("rest").log().alias("log_r")
        )
    q, rest, label = nw.col("q"), nw.col("rest"), nw.col(y)
    # To full precision, because 1 - rest is exact.
    log_rest = nw.col("log_r") + ((1.0 - rest) - q) / rest
    loss = -(label * nw.col("log_q") + (1.0 - label) * log_rest)
    at_ends = nw.when(nw.col(p) == label).then(nw.lit(0.0))
    loss = nw.when(inside).then(loss).otherwise(at_ends)
    return rows.with_columns(loss.alias(name)).drop("q", "rest", "log_q", "log_r")


def place_of(x: nw.Expr, cuts: Sequence[float]) -> nw.Expr:
    """Return the number of cuts that are at or below a number."""
    return _search(x, cuts, 0)
