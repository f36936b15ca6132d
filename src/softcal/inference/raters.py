"""Kinds of raters: one table per kind, and a test of whether two kinds differ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import fdtrc, stdtr, stdtrit

from softcal import _display
from softcal._validation import inputs
from softcal._validation.rules import refuse_bad_level
from softcal._validation.votes import Votes, row_votes
from softcal.bins import Bins
from softcal.exceptions import InputError
from softcal.inference.tests import combined
from softcal.table.raters import gaps_of, positive, vote_terms
from softcal.table.reliability import from_rows

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray, Rows
    from softcal.bins import BinsLike
    from softcal.table.raters import VoteTerms
    from softcal.table.reliability import Reliability


def reliability_by_rater(
    y_true: Votes, y_prob: npt.ArrayLike, *, by: Any, bins: BinsLike = 10
) -> dict[Any, Reliability]:
    """Build one table per kind of rater, each from that kind's votes alone.

    Every table keeps the sums of its raters, so its intervals and tests hold for new items and new
    raters of that kind. The table of a kind omits items without a vote of that kind.

    Parameters
    ----------
    y_true : Votes
        Votes for two classes, from `Votes.from_long` with `worker`.
    y_prob : array-like of shape (n,)
        Predicted probabilities of the second class, one per item.
    by : mapping from worker to kind, or sequence
        The kind of each worker. A sequence is in the order of `votes.workers`.
    bins : int, Bins, or edges, default=10
        As in `reliability`.

    Returns
    -------
    dict from kind to Reliability
        One table per kind, sorted by the name of the kind.

    Examples
    --------
    >>> from softcal import Votes
    >>> votes = Votes.from_long(
    ...     {"text": ["a", "a", "b"], "who": [7, 8, 8], "says": ["no", "yes", "yes"]},
    ...     item="text", worker="who", label="says", positive="yes",
    ... )
    >>> reliability_by_rater(votes, [0.5, 0.75], by={7: "old", 8: "young"})
    {'old': Reliability(n=1, bins=10), 'young': Reliability(n=2, bins=10)}
    """
    binned = Bins.of(bins)
    return {
        kind: from_rows(rows, binned, votes=row_votes(votes))
        for kind, (votes, rows, _) in _by_kind(y_true, y_prob, by).items()
    }


def _by_kind(
    y_true: Any, y_prob: npt.ArrayLike, by: Any
) -> dict[Any, tuple[Votes, Rows, npt.NDArray[np.intp]]]:
    """Return the votes of each kind, their rows, and the positions of these among all rows."""
    row_votes(y_true)  # raises if labels do not store who voted
    whole = inputs.rows(y_true, y_prob)
    inputs.probabilities(whole.y_prob, "y_prob")
    found = {}
    for kind, (votes, at) in y_true.rows_by_kind(by).items():
        found[kind] = votes, inputs.rows(votes, whole.y_prob[at]), at
    return found


@dataclass(frozen=True, repr=False)
class RaterDifference(_display.Printed):
    """The difference between the calibration of a model by the votes of two kinds of raters.

    Attributes
    ----------
    a, b : object
        The two kinds.
    difference : float
        The bias by the votes of a, minus the bias by the votes of b. If it is above 0, a votes less
        often for the second class than b at equal predictions.
    low, high : float
        The confidence interval of the difference, for new items and new raters.
    level : float
        The level of the interval.
    pvalue : float
        The p-value of the hypothesis that the kinds do not differ.
    pvalue_level, pvalue_bins : float
        The two p-values that `pvalue` combines: of no difference overall, and of no difference in
        any bin.
    gap_difference : ndarray
        The gap by a minus the gap by b, per bin; NaN if a kind has no vote in the bin.
    """

    a: Any
    b: Any
    difference: float
    low: float
    high: float
    level: float
    pvalue: float
    pvalue_level: float
    pvalue_bins: float
    gap_difference: FloatArray

    def __repr__(self) -> str:
        return f"RaterDifference({self.difference:.4g}, pvalue={self.pvalue:.3g})"

    def _shown(self) -> _display.Shown:
        a, b = (_display.printable(str(kind)) for kind in (self.a, self.b))
        line = (
            f"bias by {a} minus by {b}: {self.difference:+.4f}, {_display.percent(self.level)} "
            f"interval {self.low:+.4f} to {self.high:+.4f}; p-value {self.pvalue:.3g} of no "
            f"difference (level {self.pvalue_level:.3g}, bins {self.pvalue_bins:.3g})"
        )
        return line, [], []


def rater_difference(
    y_true: Votes,
    y_prob: npt.ArrayLike,
    *,
    by: Any,
    kinds: tuple[Any, Any] | None = None,
    bins: BinsLike = 10,
    level: float = 0.95,
) -> RaterDifference:
    r"""Test whether the gaps of a model differ between two kinds of raters, without resampling.

    Let \(g^A_b\) and \(g^B_b\) be the gaps of a bin by the votes of each kind. The differences
    \(D_b = g^A_b - g^B_b\) are sums over votes. Their covariances are those over new items and new
    raters (two-way clusters), so the noise of items that both kinds rated cancels. Two tests are
    combined: one of the mean of D over the votes (Student's), and one of \(\sum_b D_b^2 / V_b\)
    with Rao and Scott's correction.

    Parameters
    ----------
    y_true, y_prob, by, bins
        As in `reliability_by_rater`.
    kinds : (kind, kind), optional
        The two kinds to compare; required if there are more than two.
    level : float, default=0.95
        The level of the interval, between 0 and 1.

    Returns
    -------
    RaterDifference
        A small p-value is evidence that the kinds differ. If the kinds rated different items, the
        items may be the reason: compare on items that both rated.

    Raises
    ------
    InputError
        If there are not exactly two kinds and `kinds` is not given, or if a kind has fewer than two
        raters.

    Examples
    --------
    >>> from softcal import Votes
    >>> rows = {"text": [0, 0, 0, 0, 1, 1, 1, 1], "who": [1, 2, 3, 4] * 2}
    >>> votes = Votes.from_long(
    ...     rows | {"says": [0, 1, 1, 1, 0, 0, 1, 1]}, item="text", worker="who", label="says"
    ... )
    >>> found = rater_difference(votes, [0.5, 0.6], by={1: "x", 2: "x", 3: "y", 4: "y"}, bins=1)
    >>> found.difference
    0.75
    """
    refuse_bad_level(level)
    parts = _by_kind(y_true, y_prob, by)
    a, b = _two(list(parts), kinds)
    binned = Bins.of(bins)
    tables, votes = [], []
    for sign, kind in ((1.0, a), (-1.0, b)):
        own, rows, at = parts[kind]
        table = from_rows(rows, binned, votes=row_votes(own))
        assert table.raters is not None  # noqa: S101 - it was built with raters
        if table.raters.count < 2:
            message = (
                f"each compared kind must have two or more raters: {kind!r:.60} has "
                f"{table.raters.count}."
            )
            raise InputError(message)
        tables.append(table)
        votes.append(_signed(sign, table, vote_terms(rows, row_votes(own), binned), at))
    rater = np.concatenate((votes[0].rater, votes[1].rater + votes[0].rater.max() + 1))
    item, place, in_bin, overall = (
        np.concatenate(both) for both in list(zip(*votes, strict=True))[1:]
    )
    effective = [each.raters.effective for each in tables if each.raters is not None]
    degrees = max(sum(effective) - 2, 1.0)
    difference = tables[0].gap - tables[1].gap
    seen = ~np.isnan(difference)
    # The raters' means were subtracted, so the variance is too low by this factor.
    factor = max(number / max(number - 1, 1.0) for number in effective)
    square = _two_way(rater, item, place, in_bin, len(binned), factor)[np.ix_(seen, seen)]
    of_bins = _of_bins(difference[seen], square, degrees)
    bias = tables[0].bias - tables[1].bias
    whole = _two_way(rater, item, np.zeros_like(place), overall, 1, factor)
    error = math.sqrt(float(whole[0, 0]))
    of_level = 2 * float(stdtr(degrees, -abs(bias) / error)) if error else float(bias == 0)
    half = -float(stdtrit(degrees, (1 - level) / 2)) * error
    return RaterDifference(
        a, b, bias, max(bias - half, -2.0), min(bias + half, 2.0), level,
        combined(of_bins, of_level), of_level, of_bins, difference,
    )  # fmt: skip


def _two(present: list[Any], kinds: tuple[Any, Any] | None) -> tuple[Any, Any]:
    if kinds is None and len(present) == 2:
        return present[0], present[1]
    if kinds is None:
        message = (
            f"there must be two kinds of raters to compare: there are {len(present)}. Select two "
            f"with kinds=({', '.join(map(repr, present[:2]))}, ...)."
        )
        raise InputError(message)
    a, b = kinds
    for kind in (a, b):
        if kind not in present:
            message = f"no rater has the kind {kind!r:.60}. The kinds are: {present!r:.200}."
            raise InputError(message)
    if a == b:
        message = f"a kind cannot be compared with itself: both are {a!r:.60}."
        raise InputError(message)
    return a, b


class _Signed(NamedTuple):
    """The centered terms of each vote of a kind, for the differences."""

    rater: npt.NDArray[np.int64]
    item: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]
    in_bin: FloatArray  #  for the difference of the bin
    overall: FloatArray  # for the difference of the biases


def _signed(sign: float, table: Reliability, terms: VoteTerms, at: npt.NDArray[np.intp]) -> _Signed:
    s, u, place = terms.residual, terms.weight, terms.place.astype(np.int64)
    weight = table.sums.weight
    in_bin = sign * (s - gaps_of(table.sums)[place] * u) / weight[place]
    overall = sign * (s - table.bias * u) / weight.sum()
    return _Signed(
        terms.rater.astype(np.int64), at[terms.row].astype(np.int64), place, in_bin, overall
    )


def _two_way(
    rater: npt.NDArray[np.int64],
    item: npt.NDArray[np.int64],
    place: npt.NDArray[np.int64],
    values: FloatArray,
    size: int,
    factor: float,
) -> FloatArray:
    """Return the covariances of sums over votes: items, plus a factor times (raters minus votes).

    Each item is in one bin. Variances are at least those over items alone, and the matrix is
    positive semidefinite.
    """
    from scipy.sparse import csr_array

    shape = int(rater.max()) + 1, size
    by_rater = csr_array((values, (rater, place)), shape=shape)
    of_item = np.bincount(item, values)
    bin_of = np.zeros(of_item.size, dtype=np.int64)
    bin_of[item] = place
    items = np.bincount(bin_of, of_item**2, size)
    votes = np.bincount(place, values**2, size)
    of_raters: FloatArray = (by_rater.T @ by_rater).toarray() - np.diag(votes)
    square = factor * of_raters + np.diag(items)
    own = np.maximum(square.diagonal(), items)
    return positive(square + np.diag(own - square.diagonal()))


def _of_bins(difference: FloatArray, square: FloatArray, degrees: float) -> float:
    """Return the p-value of the sum of squared differences, by a matched F (Rao and Scott)."""
    variance = square.diagonal()
    known = variance > 0
    if not known.any():
        return float(not difference.any())
    k = int(known.sum())
    statistic = float((difference[known] ** 2 / variance[known]).sum())
    root = np.sqrt(variance[known])
    correlation = square[np.ix_(known, known)] / np.outer(root, root)
    spread = float((correlation**2).sum())
    return float(fdtrc(k * k / spread, degrees, statistic / k))
