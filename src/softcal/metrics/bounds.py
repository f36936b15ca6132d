"""Bounds of SMECE for labels that are known only as intervals."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from softcal import _display
from softcal._validation import inputs
from softcal._validation.arrays import listed
from softcal._validation.inputs import Names
from softcal.bins import Bins, BinsLike
from softcal.exceptions import BinMismatchError, InputError, InputTypeError
from softcal.table.reliability import Reliability, from_rows, refuse_given, refuse_no_rows, smece_of
from softcal.table.tableset import BOUNDS, TableSet

if TYPE_CHECKING:
    from softcal._validation.inputs import Rows


class SmeceBounds(_display.Printed, NamedTuple("SmeceBounds", [("low", float), ("high", float)])):
    """The smallest and the largest SMECE over all labels in the intervals.

    Attributes
    ----------
    low : float
        The smallest SMECE.
    high : float
        The largest SMECE.
    """

    __slots__ = ()

    def _shown(self) -> _display.Shown:
        line = f"SMECE {self.low:.4f} to {self.high:.4f} over all labels within their bounds"
        return line, [], []


@dataclass(frozen=True, repr=False)
class ReliabilityBounds(_display.Printed):
    r"""Two reliability tables of the same rows: one of their lowest labels, one of their highest.

    `reliability_bounds` builds it. In each bin the sum of p - y can be any value from
    \(\sum (p - y_\text{high})\) to \(\sum (p - y_\text{low})\), independently of the other bins.
    The two tables therefore determine the range of SMECE. Bounds can be added, as tables can.

    Parameters
    ----------
    low : Reliability
        The table of the lower ends of the labels.
    high : Reliability
        The table of the upper ends, of the same rows.

    Examples
    --------
    >>> bounds = reliability_bounds([0.0, 0.5], [0.2, 0.5], [0.1, 0.8], bins=2)
    >>> bounds
    ReliabilityBounds(n=2, bins=2)
    >>> bounds.smece
    SmeceBounds(low=0.15000000000000002, high=0.2)
    """

    low: Reliability
    high: Reliability

    def __post_init__(self) -> None:
        if self.low.bins != self.high.bins:
            message = (
                f"the two tables must have the same bins: they have {self.low.bins!r} and "
                f"{self.high.bins!r}."
            )
            raise BinMismatchError(message)
        _refuse_other_rows(self.low, self.high)

    @property
    def n(self) -> int:
        """The number of rows with positive weight."""
        return self.low.n

    @property
    def bins(self) -> Bins:
        """The bins of both tables."""
        return self.low.bins

    @property
    def smece(self) -> SmeceBounds:
        r"""The smallest and the largest SMECE over all labels in the intervals.

        Let \([a_b, c_b]\) be the range of the sum of p - y in bin b. The smallest absolute value is
        the distance of that interval from 0, and the largest that of its farther end:

        \[ \frac1n \sum_b \max(0, a_b, -c_b) \le \mathrm{SMECE}
           \le \frac1n \sum_b \max(|a_b|, |c_b|) \]
        """
        refuse_no_rows(self.low)
        least, most = self.high.sums.residual, self.low.sums.residual
        nearest = np.maximum(np.maximum(least, -most), 0.0)
        furthest = np.maximum(np.abs(least), np.abs(most))
        total = fsum(self.low.sums.weight.tolist())
        return SmeceBounds(smece_of(nearest, total), smece_of(furthest, total))

    def __add__(self, other: ReliabilityBounds) -> ReliabilityBounds:
        """Merge two bounds built with the same bins. `sum(parts)` works.

        Examples
        --------
        >>> a = reliability_bounds([0.0], [0.2], [0.1])
        >>> a + a
        ReliabilityBounds(n=2, bins=10)
        """
        if not isinstance(other, ReliabilityBounds):
            return NotImplemented
        return ReliabilityBounds(self.low + other.low, self.high + other.high)

    def __radd__(self, other: object) -> ReliabilityBounds:
        """Support `sum(parts)`, which starts from 0."""
        return self if other == 0 else NotImplemented

    def coarsen(self, bins: BinsLike) -> ReliabilityBounds:
        """Merge adjacent bins, as `Reliability.coarsen` does.

        Parameters
        ----------
        bins : int, Bins, or sequence of float
            The coarser bins. Each of their edges must be an edge of the tables.

        Examples
        --------
        >>> reliability_bounds([0.0], [0.2], [0.1], bins=100).coarsen(10)
        ReliabilityBounds(n=1, bins=10)
        """
        return ReliabilityBounds(self.low.coarsen(bins), self.high.coarsen(bins))

    def __repr__(self) -> str:
        return f"ReliabilityBounds(n={self.n}, bins={len(self.bins)})"

    def _shown(self) -> _display.Shown:
        smece = f"\n{self.smece}" if self.n else ""
        return f"n = {self.n:,}   bins = {len(self.bins)}{smece}", [], []

    __hash__ = None  # type: ignore[assignment]  # equality compares tables, which are not hashable


def smece_bounds(
    y_low: npt.ArrayLike | Reliability | ReliabilityBounds | TableSet,
    y_high: npt.ArrayLike | Reliability | None = None,
    y_prob: npt.ArrayLike | None = None,
    *,
    bins: BinsLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> SmeceBounds:
    r"""Compute the exact smallest and largest SMECE over all labels between y_low and y_high.

    With \(a_b = \sum_{i \in b} (p_i - y_{\text{high},i})\) and
    \(c_b = \sum_{i \in b} (p_i - y_{\text{low},i})\), the bounds are

    \[ \frac1n \sum_b \max(0, a_b, -c_b) \le \mathrm{SMECE}
       \le \frac1n \sum_b \max(|a_b|, |c_b|) . \]

    They describe the given rows and are not a confidence interval: more rows do not make them
    narrower, more precise labels do.

    Parameters
    ----------
    y_low : array-like of shape (n_samples,), Reliability, ReliabilityBounds, or TableSet
        The lower end of each label's interval, in [0, 1]. Instead of rows: the table of the lower
        ends, bounds, or the set of one model from `scan(..., y_true=Bounds(...))`.
    y_high : array-like of shape (n_samples,) or Reliability, optional
        The upper end of each label's interval, equal to the lower end where the label is known; or
        the table of the upper ends. Omit it with bounds or a set.
    y_prob : array-like of shape (n_samples,), optional
        Predicted probabilities in [0, 1]; required with rows.
    bins : int, Bins, or sequence of float, default=10
        A number of equal-width bins, `Bins`, or edges from 0 to 1. Only with rows.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights. Only with rows.

    Returns
    -------
    SmeceBounds
        `low` and `high`. Both are attained, as is every value between them.

    Raises
    ------
    InputError, InputTypeError
        If a lower end is above its upper end, or the data is invalid.

    Examples
    --------
    >>> smece_bounds([0.0, 0.25], [0.25, 1.0], [0.5, 0.75])
    SmeceBounds(low=0.125, high=0.5)
    >>> smece_bounds([0.5], [0.5], [0.75])
    SmeceBounds(low=0.25, high=0.25)
    >>> import pandas as pd
    >>> from softcal import Bounds, scan
    >>> rows = pd.DataFrame({"low": [0.0, 0.25], "high": [0.25, 1.0], "p": [0.5, 0.75]})
    >>> smece_bounds(scan(rows, y_true=Bounds("low", "high"), y_prob="p"))
    SmeceBounds(low=0.125, high=0.5)
    """
    return reliability_bounds(y_low, y_high, y_prob, bins=bins, sample_weight=sample_weight).smece


def reliability_bounds(
    y_low: npt.ArrayLike | Reliability | ReliabilityBounds | TableSet,
    y_high: npt.ArrayLike | Reliability | None = None,
    y_prob: npt.ArrayLike | None = None,
    *,
    bins: BinsLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> ReliabilityBounds:
    """Compute the reliability tables of the lowest and the highest labels.

    Use it instead of `smece_bounds` to merge parts of the data.

    Parameters
    ----------
    y_low : array-like of shape (n_samples,), Reliability, ReliabilityBounds, or TableSet
        The lower end of each label's interval, or tables, as in `smece_bounds`.
    y_high : array-like of shape (n_samples,) or Reliability, optional
        The upper end of each label's interval, or the table of the upper ends.
    y_prob : array-like of shape (n_samples,), optional
        Predicted probabilities in [0, 1]; required with rows.
    bins : int, Bins, or sequence of float, default=10
        A number of equal-width bins, `Bins`, or edges from 0 to 1. Only with rows.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights. Only with rows.

    Returns
    -------
    ReliabilityBounds
        Both tables. They can be added, coarsened, and saved as JSON. `bounds.smece` has the bounds.

    Examples
    --------
    >>> a = reliability_bounds([0.0], [0.25], [0.5])
    >>> b = reliability_bounds([0.25], [1.0], [0.75])
    >>> (a + b).smece
    SmeceBounds(low=0.125, high=0.5)
    """
    if isinstance(y_low, Reliability | ReliabilityBounds | TableSet):
        refuse_given("bounds of tables", y_prob=y_prob, bins=bins, sample_weight=sample_weight)
        return _of_tables(y_low, y_high)
    if y_high is None or y_prob is None or isinstance(y_high, Reliability):
        message = (
            "bounds need rows (y_low, y_high, y_prob), two tables (low, high), or a set built "
            f"with Bounds: got {type(y_low).__name__}, {type(y_high).__name__}, "
            f"{type(y_prob).__name__}."
        )
        raise InputTypeError(message)
    low = inputs.rows(y_low, y_prob, sample_weight, names=Names(y_true="y_low"))
    high = inputs.rows(y_high, y_prob, sample_weight, names=Names(y_true="y_high"))
    binned = Bins.of(10 if bins is None else bins)
    tables = from_rows(low, binned), from_rows(high, binned)
    _refuse_crossed(low, high)
    return ReliabilityBounds(*tables)


def _of_tables(
    low: Reliability | ReliabilityBounds | TableSet, high: npt.ArrayLike | Reliability | None
) -> ReliabilityBounds:
    """Return the bounds of two tables, of bounds, or of a set."""
    if isinstance(low, Reliability):
        if not isinstance(high, Reliability):
            message = (
                "y_high must be the table of the upper ends, because y_low is a table: "
                f"got {type(high).__name__}."
            )
            raise InputTypeError(message)
        return ReliabilityBounds(low, high)
    refuse_given("bounds of both ends", y_high=high)
    if isinstance(low, ReliabilityBounds):
        return low
    if low.targets != BOUNDS:
        message = (
            f"the set must have labels known as intervals: its targets are "
            f"{listed(low.targets)}. Make it with scan(..., y_true=Bounds(low, high))."
        )
        raise InputError(message)
    if len(low) > 1:
        message = (
            f"the set must have one model: it has {len(low)}. Choose one, for example "
            f"tables.select([{low.models[0]!r}])."
        )
        raise InputError(message)
    return ReliabilityBounds(*(low[low.models[0], end] for end in BOUNDS))


def _refuse_crossed(low: Rows, high: Rows) -> None:
    """Refuse intervals whose lower end is above the upper one."""
    crossed = low.y_true > high.y_true
    if not crossed.any():
        return
    first = int(crossed.argmax())
    low_name, high_name = low.names.y_true, high.names.y_true
    message = (
        f"{low_name} must be at most {high_name}: {crossed.sum()} of {crossed.size} rows are not, "
        f"the first is {low_name}[{first}] = {float(low.y_true[first])!r} with "
        f"{high_name}[{first}] = {float(high.y_true[first])!r}. Swap the ends of those rows."
    )
    raise InputError(message)


def _refuse_other_rows(low: Reliability, high: Reliability) -> None:
    """Refuse two tables that cannot come from the same rows, for example from a damaged file."""
    rounding = 1e-9 * low.sums.weight
    same = np.array_equal(low.count, high.count) and bool(
        (np.abs(low.sums.weight - high.sums.weight) <= rounding).all()
    )
    if not same or (high.sums.residual > low.sums.residual + rounding).any():
        message = (
            "the two tables are not those of the lowest and highest labels of the same rows: "
            "counts, weights, or the order of labels differ. Build them with reliability_bounds."
        )
        raise InputError(message)
