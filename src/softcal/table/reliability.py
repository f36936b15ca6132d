"""The reliability table: bins, their sums, and the metrics computed from them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from softcal import _display
from softcal._validation import inputs
from softcal.bins import Bins, BinsLike, meant_bins
from softcal.exceptions import BinMismatchError, InputError, InputTypeError, warn
from softcal.table import kernel
from softcal.table.kernel import SUM_NAMES, Sums
from softcal.table.owners import Clusters, Groups, Owners, Raters, two_way
from softcal.votes import RowVotes, row_votes

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from matplotlib.axes import Axes

    from softcal._validation.inputs import Coded, FloatArray, Rows
    from softcal.plot import ReliabilityDisplay


@dataclass(frozen=True, eq=False, repr=False)
class Reliability(_display.Printed):
    r"""A reliability table: the sums of the rows in each bin. `reliability` builds it.

    Tables can be added: the table of two data sets is the sum of their tables. Chunks, files,
    and machines can therefore be processed separately. Every metric below is computed from the
    sums.

    Parameters
    ----------
    bins : Bins
        The bins of the predictions.
    sums : Sums
        The sums of each bin, as listed in `softcal.table.kernel.Sums`.
    groups : Groups or Clusters, optional
        Sums of each group, if groups were given; from a set of softcal 0.2, only their products.
    raters : Raters, optional
        Sums of each rater's votes, if built with `raters=True`.

    Examples
    --------
    >>> rel = reliability([0.0, 0.5, 1.0], [0.2, 0.4, 0.9], bins=2)
    >>> rel
    Reliability(n=3, bins=2)
    >>> print(rel)
    n = 3   SMECE = 0.0667   bins = 2
               bin   count   mean prob   mean label       gap
    [0.000, 0.500)       2      0.3000       0.2500   +0.0500
    [0.500, 1.000]       1      0.9000       1.0000   -0.1000
    """

    bins: Bins
    sums: Sums
    groups: Groups | Clusters | None = None
    raters: Raters | None = None

    def __post_init__(self) -> None:
        if self.sums.count.size != len(self.bins):
            message = f"{self.sums.count.size} sums do not fit {self.bins!r}."
            raise BinMismatchError(message)
        for array in vars(self.sums).values():
            array.setflags(write=False)

    def __reduce__(self) -> tuple[type[Reliability], tuple[Any, ...]]:
        """Pickle through the constructor, which makes the arrays read-only again."""
        return Reliability, (self.bins, self.sums, self.groups, self.raters)

    @staticmethod
    def empty(bins: BinsLike = 10) -> Reliability:
        """Return a table without rows, to which others can be added.

        Parameters
        ----------
        bins : int, Bins, or sequence of float, default=10
            As in `reliability`.

        Examples
        --------
        >>> Reliability.empty(10) + reliability([1], [0.7])
        Reliability(n=1, bins=10)
        """
        bins = Bins.of(bins)
        return Reliability(bins, kernel.as_sums(np.zeros((len(SUM_NAMES), len(bins)))))

    # Per bin

    @cached_property
    def n(self) -> int:
        """The number of rows with positive weight."""
        return sum(self.sums.count.tolist())

    @property
    def count(self) -> npt.NDArray[np.int64]:
        """The number of rows in each bin."""
        return self.sums.count

    @property
    def mean_prob(self) -> FloatArray:
        """The mean prediction in each bin; NaN if the bin is empty."""
        mean = self._per_weight(self.sums.label + self.sums.residual)
        # A mean lies in its bin; rounding must not move it outside.
        inside: FloatArray = np.clip(mean, self.bins.edges[:-1], self.bins.edges[1:])
        return inside

    @property
    def mean_label(self) -> FloatArray:
        """The mean label in each bin; NaN if the bin is empty."""
        return self._per_weight(self.sums.label)

    @property
    def gap(self) -> FloatArray:
        """Mean prediction minus mean label in each bin; positive if predictions are too high.

        NaN if the bin is empty, because an empty bin is not a calibrated one.
        """
        return self._per_weight(self.sums.residual)

    def per_bin(self) -> Iterator[tuple[float, float, int, float, float, float]]:
        """Iterate over the bins: low edge, high edge, count, mean_prob, mean_label, and gap.

        Examples
        --------
        >>> for low, high, count, *_ in reliability([0.5], [0.75], bins=2).per_bin():
        ...     print(low, high, count)
        0.0 0.5 0
        0.5 1.0 1
        """
        edges = self.bins.edges
        columns = (edges[:-1], edges[1:], self.count, self.mean_prob, self.mean_label, self.gap)
        return zip(*(column.tolist() for column in columns), strict=True)

    def _per_weight(self, sums: FloatArray) -> FloatArray:
        mean = np.full(sums.size, np.nan)
        np.divide(sums, self.sums.weight, out=mean, where=self.sums.count > 0)
        return mean

    # Of the whole table

    @property
    def smece(self) -> float:
        r"""SMECE, the soft mean expected calibration error, between 0 and 1.

        \[ \frac{\sum_b |\sum_{i \in b} w_i (p_i - y_i)|}{\sum_i w_i} \]
        """
        return smece_of(self.sums.residual, self._total_weight)

    @property
    def max_gap(self) -> float:
        """The largest absolute gap of any bin (MCE), regardless of its number of rows."""
        refuse_no_rows(self)
        return float(np.nanmax(np.abs(self.gap)))

    @property
    def rms_gap(self) -> float:
        r"""Root mean squared gap, with bins weighted by their rows (the L2 calibration error).

        \[ \sqrt{\frac{\sum_b W_b \, \mathrm{gap}_b^2}{\sum_b W_b}} \]

        Never below `smece`.
        """
        filled = self.sums.count > 0
        squares = self.sums.residual[filled] ** 2 / self.sums.weight[filled]
        root = math.sqrt(float(squares.sum()) / self._total_weight)
        # If all gaps are equal, so are the three metrics; rounding must not reorder them.
        return max(min(root, self.max_gap), self.smece)

    @property
    def bias(self) -> float:
        """Mean prediction minus mean label over all rows; positive if predictions are too high."""
        return math.fsum(self.sums.residual.tolist()) / self._total_weight

    @property
    def brier(self) -> float:
        r"""Mean squared difference between prediction and label, \(\sum w d^2 / \sum w\)."""
        return math.fsum(self.sums.residual_sq.tolist()) / self._total_weight

    @property
    def has_hard_labels(self) -> bool:
        """Whether every label is exactly 0 or 1."""
        return not self.sums.label_var.any()

    @cached_property
    def clusters(self) -> Clusters | None:
        """Products of the sums of the groups, for variances; None without groups."""
        return (
            self.groups.clusters(len(self.bins)) if isinstance(self.groups, Groups) else self.groups
        )

    @cached_property
    def ties(self) -> Clusters | None:
        """The joint variation of the bins' residuals from groups or raters; else None.

        Raters with one vote each cause none.
        """
        if self.raters is None or not self.raters.recur:
            return self.clusters
        return two_way(self.raters, self.sums)

    @property
    def _total_weight(self) -> float:
        refuse_no_rows(self)
        return math.fsum(self.sums.weight.tolist())

    # Operations on tables

    def __add__(self, other: Reliability) -> Reliability:
        """Merge two tables built with the same bins into the table of both data sets.

        Counts are exact, and sums are exact up to rounding. `sum(tables)` works. Groups and raters
        are added by name, so one may have rows in both tables.

        Raises
        ------
        BinMismatchError
            If the bins differ. Binning the data again would need the rows.

        Examples
        --------
        >>> a = reliability([0.0, 0.5], [0.2, 0.4], bins=2)
        >>> b = reliability([1.0], [0.9], bins=2)
        >>> a + b
        Reliability(n=3, bins=2)
        """
        if not isinstance(other, Reliability):
            return NotImplemented
        if self.bins != other.bins:
            message = (
                f"cannot merge tables with different bins: left has {described(self.bins)}, right "
                f"has {described(other.bins)}. Build both with the same bins, or coarsen the "
                "finer one."
            )
            raise BinMismatchError(message)
        if not self.n or not other.n:
            return other if not self.n else self
        return Reliability(
            self.bins,
            Sums(*(a + b for a, b in zip(self.sums, other.sums, strict=True))),
            _added("groups", self.groups, other.groups),
            _added("raters", self.raters, other.raters),
        )

    def __radd__(self, other: object) -> Reliability:
        """Support `sum(tables)`, which starts from 0."""
        return self if other == 0 else NotImplemented

    def coarsen(self, bins: BinsLike) -> Reliability:
        """Merge adjacent bins: return the table that the coarser bins would have given.

        Counts are exact, and sums are exact up to rounding.

        Parameters
        ----------
        bins : int, Bins, or sequence of float
            The coarser bins. Each of their edges must be an edge of the table. A number of
            equal-width bins must divide the number of bins of an equal-width table.

        Examples
        --------
        >>> fine = reliability([0.0, 0.5, 1.0], [0.2, 0.4, 0.9], bins=3600)
        >>> fine.coarsen(2).gap.round(4)
        array([ 0.05, -0.1 ])
        """
        target = coarser(bins, self.bins, "Choose a divisor of the number of bins.")
        starts = self.bins.edges.searchsorted(target.edges[:-1])
        sums = Sums(*(np.add.reduceat(a, starts) for a in self.sums))
        groups = None if self.groups is None else self.groups.coarsen(starts)
        raters = None if self.raters is None else self.raters.coarsen(starts)
        return Reliability(target, sums, groups, raters)

    def hardened(self) -> Reliability:
        r"""Return the table of the same rows with labels hardened to \(h = [y > 1/2]\).

        Its `smece` is the ordinary ECE, which most tools report after rounding labels silently.
        The result has no groups or raters, because their sums are those of the original labels.

        Examples
        --------
        >>> reliability([0.4, 0.6], [0.4, 0.6], bins=2).hardened().gap.round(2)
        array([ 0.4, -0.4])
        """
        s = self.sums
        outcome = s.votes == 0
        hard = replace(
            s,
            label=np.clip(s.label + s.residual - s.hard_residual, 0.0, s.weight),
            residual=s.hard_residual,
            residual_sq=s.hard_residual_sq,
            residual_var=s.hard_residual_var,
            label_var=np.zeros(s.count.size),
            vote_noise=np.zeros(s.count.size),
            outcome_prob_var=np.where(outcome, s.prob_var, 0.0),
            outcome_residual_var=np.where(outcome, s.hard_residual_var, 0.0),
        )
        return Reliability(self.bins, hard)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table to one file, as a set of one model named "model". See `load`.

        Parameters
        ----------
        path : str or path
            The file to write. An existing file is replaced atomically.

        Raises
        ------
        InputError
            If the table has groups or raters. Scan the rows instead, and save the set.
        """
        from softcal.table.files import save, set_of

        if self.groups is not None or self.raters is not None:
            message = (
                "a table with groups or raters is saved as a set: scan(rows, ..., groups=...)."
                "save(path)."
            )
            raise InputError(message)
        save(set_of(self), path)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reliability):
            return NotImplemented
        return _plain(self) == _plain(other)

    __hash__ = None  # type: ignore[assignment]  # equality compares arrays, which are not hashable

    # Display

    def plot(
        self,
        ax: Axes | None = None,
        *,
        name: str | None = None,
        level: float = 0.95,
        simultaneous: bool = False,
        **drawing: Any,
    ) -> ReliabilityDisplay:
        """Draw the reliability diagram with matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw on. By default, a new figure.
        name : str, optional
            The name of the model in the legend.
        level : float, default=0.95
            The confidence level of the gap intervals.
        simultaneous : bool, default=False
            Whether the intervals hold for all bins at once, rather than for each bin.
        **drawing
            Further arguments of `ReliabilityDisplay.plot`.

        Returns
        -------
        ReliabilityDisplay
            The drawn diagram.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> shown = reliability([0.0, 0.5, 1.0], [0.2, 0.4, 0.9]).plot(name="three rows")
        >>> shown.figure_.savefig("diagram.pdf")  # doctest: +SKIP
        """
        from softcal.plot import ReliabilityDisplay

        display = ReliabilityDisplay(self, name=name, level=level, simultaneous=simultaneous)
        return display.plot(ax, **drawing)

    def __repr__(self) -> str:
        return f"Reliability(n={self.n}, bins={len(self.bins)})"

    def _shown(self) -> _display.Shown:
        smece = f"{self.smece:.4f}" if self.n else "none"
        title = f"n = {self.n:,}   SMECE = {smece}   bins = {len(self.bins)}"
        digits = 3 if np.array_equal(self.bins.edges, self.bins.edges.round(3)) else 6
        rows = []
        for low, high, count, p, y, gap in self.per_bin():
            edges = f"[{low:.{digits}f}, {high:.{digits}f}{']' if high == 1 else ')'}"
            means = [f"{p:.4f}", f"{y:.4f}", f"{gap:+.4f}"] if count else ["-"] * 3
            rows.append([edges, f"{count:,}", *means])
        header = ["bin", "count", "mean prob", "mean label", "gap"]
        return title, header, _display.shortened(rows)


def reliability(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    *,
    bins: BinsLike = 10,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    raters: bool = False,
) -> Reliability:
    r"""Compute the reliability table: the sums of predictions, labels, and gaps in each bin.

    One pass over the data builds the table. Every other result is computed from the table.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels in [0, 1]: probabilities, vote shares, or 0 and 1. Lists, NumPy arrays, columns of
        pandas, Polars, and Arrow, and CPU tensors are accepted, with any real dtype.
    y_prob : array-like of shape (n_samples,)
        Predicted probabilities in [0, 1].
    bins : int, Bins, or sequence of float, default=10
        A number of equal-width bins, `Bins.quantile(...)`, or edges from 0 to 1. Bin b is
        \([e_b, e_{b+1})\), and the last bin is closed. float32 predictions are not rounded:
        `float32(0.7)` is less than 0.7, so it belongs to the bin that ends there.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights. A row of weight 0 counts as absent.
    n_votes : int or array-like of shape (n_samples,), optional
        The number of votes behind each label, which must be a whole number of them, exactly or
        rounded to two digits. It does not change the metrics, only their uncertainty. With 1, any
        label has at most the information of one outcome, as the posterior of `dawid_skene` has.
    groups : array-like of shape (n_samples,), optional
        The patient, document, or rater of each row, by any name, if rows are not independent.
        It does not change the metrics, only their uncertainty.
    raters : bool, default=False
        Whether raters are a sample, as items are. Every interval and test of the table then holds
        for new items and new raters. `y_true` must be `Votes` with raters, and `groups` must be
        omitted.

    Returns
    -------
    Reliability
        The table. `rel.smece` is its SMECE.

    Raises
    ------
    InputError, InputTypeError
        If the data is invalid: missing values, values outside [0, 1], or different lengths. They
        are a `ValueError` and a `TypeError`.

    Examples
    --------
    >>> rel = reliability([0.0, 0.5, 1.0], [0.2, 0.4, 0.9], bins=2)
    >>> rel.gap.round(4)
    array([ 0.05, -0.1 ])
    >>> round(rel.smece, 4)
    0.0667
    """
    rows = inputs.rows(y_true, y_prob, sample_weight, n_votes)
    inputs.warn_if_swapped(rows.y_true, rows.y_prob)
    votes = votes_of_raters(y_true, groups) if raters else None
    if groups is None:
        return from_rows(rows, Bins.of(bins), votes=votes)
    inputs.refuse_misaligned_groups(groups, y_true=y_true, y_prob=y_prob)
    return from_rows(rows, Bins.of(bins), inputs.coded_groups(groups, rows))


def votes_of_raters(y_true: Any, groups: object) -> RowVotes:
    """Return the single votes behind labels; raise if there are groups too."""
    if groups is not None:
        message = (
            "raters=True cannot be combined with groups: intervals account for one of the two. "
            "Omit one of them."
        )
        raise InputError(message)
    return row_votes(y_true)


def table_of(
    name: str,
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None,
    *,
    bins: BinsLike | None = None,
    raters: bool = False,
    default_bins: int = 10,
    **columns: npt.ArrayLike | None,
) -> Reliability:
    """Return the table passed to the function `name`, or the table of its rows."""
    given = {"bins": bins, "raters": raters or None, **columns}
    if (table := _passed(name, y_true, y_prob, **given)) is not None:
        return table
    bins = default_bins if bins is None else bins
    return reliability(y_true, y_prob, bins=bins, raters=raters, **columns)  # type: ignore[arg-type]


def rows_or_table(
    name: str,
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None,
    *,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    **others: object,
) -> Rows | Reliability:
    """Return the table passed to the function `name`, or its rows, with type and shape checked."""
    others |= {"sample_weight": sample_weight, "n_votes": n_votes}
    if (table := _passed(name, y_true, y_prob, **others)) is not None:
        return table
    rows = inputs.rows(y_true, y_prob, sample_weight, n_votes)  # type: ignore[arg-type]
    inputs.warn_if_swapped(rows.y_true, rows.y_prob)
    return rows


def _passed(name: str, y_true: object, y_prob: object, **others: object) -> Reliability | None:
    """Return the table passed to the function `name`, or None for rows; refuse a mixture."""
    if isinstance(y_true, Reliability):
        refuse_given(f"{name} of a Reliability", y_prob=y_prob, **others)
        return y_true
    if y_prob is None:
        message = (
            f"{name} takes labels and predictions, {name}(y_true, y_prob), or a Reliability, such "
            f"as tables[model] of a TableSet: got {type(y_true).__name__} alone."
        )
        raise InputTypeError(message)
    return None


def refuse_given(what: str, **arguments: object) -> None:
    """Refuse arguments about rows where a table was passed, because they would be ignored."""
    given = [key for key, value in arguments.items() if value is not None]
    if given:
        message = (
            f"{what} does not take {', '.join(given)}, because the table is already built: pass "
            "this to the function that builds the table, or pass the rows."
        )
        raise InputTypeError(message)


def refuse_no_rows(rel: Reliability) -> None:
    """Refuse an empty table."""
    if not rel.n:
        message = "the table has no rows, so it has no calibration error: add rows first."
        raise InputError(message)


def warn_if_hard(rel: Reliability, names: inputs.Names = inputs.DEFAULT_NAMES) -> None:
    """Warn if all predictions of a table are 0 or 1 and its labels are not."""
    if not rel.sums.prob_var.any() and rel.sums.label_var.any():
        warn(inputs.swapped(names.y_true, names.y_prob))


def refuse_products_of_groups(function: str, rel: Reliability) -> None:
    """Refuse a table that has products of the groups' sums, but not the sums themselves."""
    if isinstance(rel.groups, Clusters):
        message = (
            f"{function} of these groups has no interval: softcal 0.2, which saved the table, did "
            "not store the sums of each group. Scan the rows again, or pass them with groups=."
        )
        raise InputError(message)


def _added(what: str, mine: Any, theirs: Any) -> Any:
    """Add the owners of two tables, of which both or none must have some."""
    if (mine is None) != (theirs is None):
        message = (
            f"cannot merge a table built with {what} and one without: the dependence of rows of a "
            f"{what[:-1]} would be lost. Build both with {what}."
        )
        raise InputError(message)
    return None if mine is None else mine + theirs


def _plain(rel: Reliability) -> list[Any]:
    """Return the numbers of a table, to compare; unknown sums are equal."""
    owners = [
        [each.names, each.owner.tolist(), each.place.tolist(), each.values.tolist()]
        for each in (rel.groups, rel.raters)
        if isinstance(each, Owners)
    ]
    sums = [np.where(np.isnan(row), np.inf, row).tolist() for row in rel.sums]
    return [rel.bins.edges.tolist(), sums, owners]


def described(bins: Bins) -> str:
    """Describe bins in words where possible, for users of the command line."""
    return f"{len(bins)} bins of equal width" if bins.is_uniform else repr(bins)


def coarser(bins: BinsLike, finer: Bins, remedy: str) -> Bins:
    """Return the bins meant; refuse edges that finer bins do not have."""
    target = meant_bins(bins, finer)
    missing = ~np.isin(target.edges, finer.edges)
    if missing.any():
        message = (
            f"cannot coarsen to {described(target)}: {missing.sum()} of its {len(target) + 1} "
            f"edges are not edges of the table, the first is "
            f"{float(target.edges[missing][0])!r}. {remedy}"
        )
        raise BinMismatchError(message)
    return target


def from_rows(
    rows: Rows,
    bins: Bins,
    group: Coded | None = None,
    votes: RowVotes | None = None,
) -> Reliability:
    """Build the table of validated columns, with the group of each row, or votes by rater."""
    totals = kernel.totals(rows.y_prob, rows.y_true, rows.sample_weight, rows.n_votes, bins)
    found = _checked(totals, rows)
    found.setflags(write=False)
    sums = kernel.as_sums(found)
    sums.count.setflags(write=False)
    table = object.__new__(Reliability)  # faster than the constructor, which locks each sum
    groups = None if group is None else Groups.of_rows(rows, group, bins)
    raters = None if votes is None else Raters.of_votes(rows, votes, bins)
    vars(table).update(bins=bins, sums=sums, groups=groups, raters=raters)
    return table


def checked_gaps(rows: Rows, bins: Bins) -> FloatArray:
    """Return the sums of each bin as `kernel.gaps` does; raise for invalid rows."""
    return _checked(kernel.gaps(rows.y_prob, rows.y_true, rows.sample_weight, bins), rows)


def _checked(found: FloatArray | None, rows: Rows) -> FloatArray:
    if found is None:
        inputs.refuse(rows)
    if rows.sample_weight is not None and not found[0].any():  # no row has a weight above 0
        inputs.refuse_no_weight(rows)
    return found


def smece_of(residual: FloatArray, weight: float) -> float:
    """Compute SMECE from the sum of residuals of each bin and the weight of all bins."""
    # For few bins, plain floats are faster than arrays, and `fsum` is exact.
    return math.fsum(map(abs, residual.tolist())) / weight
