"""Labels known only as intervals: the smallest and the largest SMECE they leave possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from softcal import _display, _io
from softcal._validation import inputs
from softcal._validation.arrays import listed
from softcal._validation.inputs import Names
from softcal.bins import Bins, BinsLike
from softcal.exceptions import BinMismatchError, InputError, InputTypeError
from softcal.table.reliability import Reliability, from_rows, refuse_given, refuse_no_rows, smece_of
from softcal.table.tableset import BOUNDS, TableSet

if TYPE_CHECKING:
    from softcal._validation.inputs import Rows

FORMAT = "softcal.reliability_bounds"
SCHEMA = 1


class SmeceBounds(_display.Printed, NamedTuple("SmeceBounds", [("low", float), ("high", float)])):
    """The smallest and the largest SMECE that labels in the intervals can give."""

    __slots__ = ()

    def _shown(self) -> _display.Shown:
        return (
            f"SMECE {self.low:.4f} to {self.high:.4f} over all labels within their bounds",
            [],
            [],
        )


@dataclass(frozen=True, repr=False)
class ReliabilityBounds(_display.Printed):
    r"""Two reliability tables of the same rows: of their lowest and of their highest labels.

    Made by `reliability_bounds`. In a bin the sum of p - y can be anything from
    \(\sum (p - y_\text{high})\) to \(\sum (p - y_\text{low})\), and bins share no rows: so the two
    tables hold all there is to know about SMECE. They add, as tables do.

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
        """The number of rows; rows of weight 0 are not counted."""
        return self.low.n

    @property
    def bins(self) -> Bins:
        """The bins of both tables."""
        return self.low.bins

    @property
    def smece(self) -> SmeceBounds:
        r"""The smallest and the largest SMECE over all labels in the intervals.

        With \([a_b, c_b]\) what the sum of p - y of bin b can be, its least absolute value is the
        distance of that interval to 0, its greatest that of the end further off:

        \[ \frac1n \sum_b \max(0, a_b, -c_b) \le \mathrm{SMECE}
           \le \frac1n \sum_b \max(|a_b|, |c_b|) \]
        """
        refuse_no_rows(self.low)
        least, most = self.high.sums.residual, self.low.sums.residual
        nearest = np.maximum(np.maximum(least, -most), 0.0)
        furthest = np.maximum(np.abs(least), np.abs(most))
        weight = self.low.sums.weight
        return SmeceBounds(smece_of(nearest, weight), smece_of(furthest, weight))

    def __add__(self, other: ReliabilityBounds) -> ReliabilityBounds:
        """Merge two of them built with the same bins. `sum(parts)` works.

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
        """Let `sum(parts)`, which starts from 0, work."""
        return self if other == 0 else NotImplemented

    def coarsen(self, bins: BinsLike) -> ReliabilityBounds:
        """Join neighbouring bins into fewer, as `Reliability.coarsen` does.

        Examples
        --------
        >>> reliability_bounds([0.0], [0.2], [0.1], bins=100).coarsen(10)
        ReliabilityBounds(n=1, bins=10)
        """
        return ReliabilityBounds(self.low.coarsen(bins), self.high.coarsen(bins))

    def to_dict(self) -> dict[str, Any]:
        """Give both tables as plain numbers and lists, to be saved as JSON.

        Examples
        --------
        >>> bounds = reliability_bounds([0.0], [0.2], [0.1])
        >>> ReliabilityBounds.from_dict(bounds.to_dict()) == bounds
        True
        """
        return {
            "format": FORMAT,
            "schema": SCHEMA,
            "low": self.low.to_dict(),
            "high": self.high.to_dict(),
        }

    @staticmethod
    def from_dict(saved: dict[str, Any]) -> ReliabilityBounds:
        """Read back what `to_dict` gave, trusting nothing.

        Raises
        ------
        InputError, InputTypeError
            If this is no such thing, or one of a newer softcal.
        """
        _io.schema_of(saved, FORMAT, SCHEMA, "saved reliability bounds")
        return ReliabilityBounds(
            *(Reliability.from_dict(saved.get(end, {})) for end in ("low", "high"))
        )

    def __repr__(self) -> str:
        return f"ReliabilityBounds(n={self.n}, bins={len(self.bins)})"

    def _shown(self) -> _display.Shown:
        smece = f"\n{self.smece}" if self.n else ""
        return f"n = {self.n:,}   bins = {len(self.bins)}{smece}", [], []

    __hash__ = None  # type: ignore[assignment]  # equal by its tables, which cannot be hashed


def smece_bounds(
    y_low: npt.ArrayLike | Reliability | ReliabilityBounds | TableSet,
    y_high: npt.ArrayLike | Reliability | None = None,
    y_prob: npt.ArrayLike | None = None,
    *,
    bins: BinsLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> SmeceBounds:
    """Compute the smallest and largest SMECE over all labels between y_low and y_high, exactly.

    These bounds speak of the rows at hand, not of chance: they do not become narrower with more
    rows, only with more precise labels.

    Parameters
    ----------
    y_low, y_high : array-like of shape (n,)
        The ends of each label's interval, in [0, 1]; equal where the label is known. Instead of
        rows: the tables of both ends, or as `y_low` alone the set of one model that
        `scan(..., label_bounds=...)` made, or `ReliabilityBounds`.
    y_prob, bins, sample_weight
        As in `reliability`; only with rows.

    Returns
    -------
    SmeceBounds
        `low` and `high`. Both are attained; any value between them is, too.

    Raises
    ------
    InputError, InputTypeError
        If a lower end is above its upper end, or the data breaks a rule of `reliability`.

    Examples
    --------
    >>> smece_bounds([0.0, 0.25], [0.25, 1.0], [0.5, 0.75])
    SmeceBounds(low=0.125, high=0.5)
    >>> smece_bounds([0.5], [0.5], [0.75])
    SmeceBounds(low=0.25, high=0.25)
    >>> import pandas as pd
    >>> from softcal import scan
    >>> rows = pd.DataFrame({"low": [0.0, 0.25], "high": [0.25, 1.0], "p": [0.5, 0.75]})
    >>> smece_bounds(scan(rows, label_bounds=("low", "high"), y_prob="p"))
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
    """Add up the lowest and the highest labels per bin, for `smece_bounds` of merged parts.

    Parameters
    ----------
    y_low, y_high, y_prob, bins, sample_weight
        As in `smece_bounds`.

    Returns
    -------
    ReliabilityBounds
        Adds, coarsens and saves as JSON; `bounds.smece` are its bounds.

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
            "bounds are of rows (y_low, y_high, y_prob), of two tables (low, high), or of a set "
            f"made with label_bounds: got {type(y_low).__name__}, {type(y_high).__name__}, "
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
    """Return both tables of what holds them."""
    if isinstance(low, Reliability):
        if not isinstance(high, Reliability):
            message = (
                "y_high must be the table of the upper ends, as y_low is that of the lower ones: "
                f"got {type(high).__name__}."
            )
            raise InputTypeError(message)
        return ReliabilityBounds(low, high)
    refuse_given("bounds of both ends", y_high=high)
    if isinstance(low, ReliabilityBounds):
        return low
    if low.targets != BOUNDS:
        message = (
            f"the set must be one of labels known as intervals: its targets are "
            f"{listed(low.targets)}. Make it with scan(..., label_bounds=(low, high))."
        )
        raise InputError(message)
    if len(low) > 1:
        message = (
            f"the set must have one model: it has {len(low)}. Choose one, as in "
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
    """Refuse two tables that cannot be of the same rows, as a damaged file might hold."""
    rounding = 1e-9 * low.sums.weight
    same = np.array_equal(low.count, high.count) and bool(
        (np.abs(low.sums.weight - high.sums.weight) <= rounding).all()
    )
    if not same or (high.sums.residual > low.sums.residual + rounding).any():
        message = (
            "the two tables are not of the lowest and highest labels of the same rows: counts, "
            "weights or the order of their labels differ. Build them with reliability_bounds."
        )
        raise InputError(message)
