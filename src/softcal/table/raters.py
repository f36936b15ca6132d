"""Sums per rater and bin, for raters who vote on many items; tables add them by name.

A share is the mean of its votes, so the residual of an item is a sum over its votes of a(p - v).
Here a is the vote's part of the label: 1/m for m equal votes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from softcal._validation.inputs import FloatArray, Rows, as_float64
from softcal.table.groups import Clusters, SharedByRaters
from softcal.table.kernel import cross_entropy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcal._validation.votes import RowVotes
    from softcal.bins import Bins
    from softcal.table.kernel import Sums

    IntArray = npt.NDArray[np.int64]

RATER_SUMS = ("residual", "weight", "residual_sq", "mixed", "weight_sq")
"""Sums of s, u, s², s u, and u² over votes, with u = w a and s = u (p - v)."""

VOTE_PRODUCTS = ("product", "mixed_a", "mixed_b", "weight_sq")
"""Sums of s^A s^B, s^A u, s^B u, and u² over votes, for two models A and B."""

RATER_LOSSES = tuple(
    f"{loss}_{part}" for loss in ("brier", "log_loss") for part in ("total", "mixed", "square")
)
"""Sums of u e, u² e, and (u e)² over votes, with e the difference of a loss of two models."""


@dataclass(frozen=True, eq=False)
class Raters:
    """Sums over the votes of each rater in each bin, without bins in which a rater has no votes.

    Attributes
    ----------
    names : tuple of str
        The raters.
    rater, place : ndarray
        The rater and the bin of each entry. Pairs are unique and sorted.
    values : ndarray of shape (5, entries)
        The sums that `RATER_SUMS` lists.
    """

    names: tuple[str, ...]
    rater: IntArray
    place: IntArray
    values: FloatArray

    def __post_init__(self) -> None:
        for array in (self.rater, self.place, self.values):
            array.setflags(write=False)

    @staticmethod
    def of(names: Sequence[str], rater: IntArray, place: IntArray, values: FloatArray) -> Raters:
        """Add up entries of the same rater and bin, and omit raters without entries."""
        present, number = np.unique(rater, return_inverse=True)
        size = int(place.max(initial=0)) + 1
        key, values = summed(number * size + place, values)
        own = tuple(names[k] for k in present.tolist())
        return Raters(own, key // size, key % size, values)

    def __add__(self, other: Raters) -> Raters:
        """Add by name, so that the votes of a rater in both are counted together."""
        known = {name: k for k, name in enumerate(self.names)}
        numbers = np.array([known.setdefault(name, len(known)) for name in other.names])
        return Raters.of(
            tuple(known),
            np.concatenate((self.rater, numbers[other.rater])),
            np.concatenate((self.place, other.place)),
            np.concatenate((self.values, other.values), axis=1),
        )

    def coarsen(self, starts: npt.NDArray[np.intp]) -> Raters:
        """Merge adjacent bins, given the first bin of each new one."""
        place = starts.searchsorted(self.place, side="right") - 1
        return Raters.of(self.names, self.rater, place, self.values)

    @property
    def count(self) -> int:
        """The number of raters."""
        return len(self.names)

    @property
    def recur(self) -> bool:
        """Whether any rater has two votes or more.

        For one vote, the square of the sum equals the sum of the squares exactly.
        """
        s, u, s_sq, mixed, u_sq = self.values
        several = self.rater[1:] == self.rater[:-1]
        return bool(several.any() or (u * u != u_sq).any() or (s * s != s_sq).any()
                    or (s * u != mixed).any())  # fmt: skip

    @property
    def effective(self) -> float:
        r"""The effective number of raters, \((\sum W_j)^2/\sum W_j^2\)."""
        weight = np.bincount(self.rater, self.values[1])
        return float(weight.sum() ** 2 / (weight**2).sum())

    def centered(self, gap: FloatArray) -> Any:
        r"""Return \(S_{jb} - g_b W_{jb}\) as a sparse matrix with one row per rater."""
        from scipy.sparse import csr_array

        values = self.values[0] - gap[self.place] * self.values[1]
        return csr_array((values, (self.rater, self.place)), shape=(self.count, gap.size))

    def own(self, gap: FloatArray) -> FloatArray:
        r"""Return, per entry, the square of the centered sum minus the sum of squares of its votes.

        The difference is exactly 0 if the entry has one vote.
        """
        s, u, s_sq, mixed, u_sq = self.values
        g = gap[self.place]
        out: FloatArray = (s * s - s_sq) - 2 * g * (s * u - mixed) + g * g * (u * u - u_sq)
        return out

    def covariance(self, gap: FloatArray) -> FloatArray:
        r"""Return the raters' part of the covariances of the bins' sums of residuals.

        \[ \sum_j \tilde S_{jb} \tilde S_{jc} - [b = c] \sum_{votes \in b} \tilde s^2, \qquad
           \tilde s = s - g_b u , \]

        with g the gap of each bin, either observed or 0 for a calibrated model. The result is 0 if
        each rater has one vote.
        """
        centered = self.centered(gap)
        square: FloatArray = (centered.T @ centered).toarray()
        np.fill_diagonal(square, np.bincount(self.place, self.own(gap), gap.size))
        return square


def summed(key: npt.NDArray[Any], values: FloatArray) -> tuple[IntArray, FloatArray]:
    """Sort entries by an integer key, and add up those with equal keys."""
    span = int(key.max(initial=-1)) + 1
    if not span:
        return key, values
    if span <= 4 * key.size:  # few enough to count
        filled = np.flatnonzero(np.bincount(key, minlength=span))
        if filled.size == key.size and (key[1:] > key[:-1]).all():
            return key, values
        sums = np.array([np.bincount(key, row, span)[filled] for row in values])
        return filled.astype(np.int64), sums.reshape(len(values), filled.size)
    order = key.argsort(kind="stable")
    key = key[order]
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    return key[first], np.add.reduceat(values[:, order], first, axis=1)


class VoteTerms(NamedTuple):
    """The terms of each vote on a row of positive weight, for one model."""

    rater: npt.NDArray[Any]
    row: npt.NDArray[Any]
    place: npt.NDArray[Any]
    vote: FloatArray
    residual: FloatArray  # s
    weight: FloatArray  #   u

    @property
    def values(self) -> FloatArray:
        """Return the terms of `RATER_SUMS`."""
        s, u = self.residual, self.weight
        return np.array([s, u, s * s, s * u, u * u])


def vote_terms(rows: Rows, votes: RowVotes, bins: Bins) -> VoteTerms:
    """Return the terms of each vote, given the rows of a model."""
    p = as_float64(rows.y_prob)
    place = bins.guide.locate(p)
    rater, row, vote, part = votes.rater, votes.row, votes.vote, votes.part
    if rows.sample_weight is not None:
        part = part * as_float64(rows.sample_weight)[row]
        here = part > 0
        rater, row, vote, part = rater[here], row[here], vote[here], part[here]
    return VoteTerms(rater, row, place[row], vote, part * (p[row] - vote), part)


def rater_sums(rows: Rows, votes: RowVotes, bins: Bins) -> Raters:
    """Add up the votes of each rater in each bin."""
    key, values = rater_entries(rows, votes, bins, None)
    return Raters.of(votes.names, key // len(bins), key % len(bins), values)


def rater_entries(
    rows: Rows, votes: RowVotes, bins: Bins, cell: IntArray | None
) -> tuple[IntArray, FloatArray]:
    """Add up the votes of each cell, rater, and bin, a bounded number of votes at a time.

    The key is (cell * raters + rater) * bins + bin.
    """
    keys, values = [np.empty(0, dtype=np.int64)], [np.empty((len(RATER_SUMS), 0))]
    for part in votes.blocks():
        terms = vote_terms(rows, part, bins)
        rater = terms.rater.astype(np.int64)
        if cell is not None:
            rater += cell[terms.row] * len(votes.names)
        key, sums = summed(rater * len(bins) + terms.place, terms.values)
        keys.append(key)
        values.append(sums)
    return summed(np.concatenate(keys), np.concatenate(values, axis=1))


def pair_entries(
    a: Rows, b: Rows, votes: RowVotes, bins: Bins, cell: IntArray
) -> tuple[tuple[IntArray, FloatArray], tuple[IntArray, FloatArray]]:
    """Add up the joint sums of the votes on the rows of two models.

    The key of `VOTE_PRODUCTS` is (cell * bins + bin of A) * bins + bin of B. The key of
    `RATER_LOSSES` is cell * raters + rater.
    """
    size, raters = len(bins), len(votes.names)
    p_a, p_b = as_float64(a.y_prob), as_float64(b.y_prob)
    finite = np.isfinite(cross_entropy(as_float64(a.y_true), p_a))
    finite &= np.isfinite(cross_entropy(as_float64(b.y_true), p_b))
    found: list[list[tuple[IntArray, FloatArray]]] = [
        [(np.empty(0, dtype=np.int64), np.empty((len(names), 0)))]
        for names in (VOTE_PRODUCTS, RATER_LOSSES)
    ]
    for part in votes.blocks():
        one, two = vote_terms(a, part, bins), vote_terms(b, part, bins)
        row, vote, u = one.row, one.vote, one.weight
        brier = u * (p_a - p_b)[row] * (p_a[row] + p_b[row] - 2 * vote)
        log_loss = np.zeros_like(u)
        known = finite[row]
        at = row[known]
        log_loss[known] = u[known] * (
            cross_entropy(vote[known], p_a[at]) - cross_entropy(vote[known], p_b[at])
        )
        products = np.array(
            [one.residual * two.residual, one.residual * u, two.residual * u, u * u]
        )
        losses = np.array([e for x in (brier, log_loss) for e in (x, x * u, x * x)])
        own = cell[row]
        found[0].append(summed((own * size + one.place) * size + two.place, products))
        found[1].append(summed(own * raters + one.rater, losses))
    products_, losses_ = (
        summed(np.concatenate([k for k, _ in each]), np.concatenate([v for _, v in each], axis=1))
        for each in found
    )
    return products_, losses_


def gaps_of(sums: Sums) -> FloatArray:
    """Return the gap of each bin; 0 if the bin is empty."""
    gap: FloatArray = np.divide(
        sums.residual, sums.weight, out=np.zeros_like(sums.residual), where=sums.weight > 0
    )
    return gap


def two_way(raters: Raters, sums: Sums) -> Clusters:
    r"""Return the covariances of the bins' residuals over new items and new raters.

    \[ C = \mathrm{diag}\Bigl(\sum_i d_i^2\Bigr) + \sum_j \tilde S_j \tilde S_j^T
        - \mathrm{diag}\Bigl(\sum_{votes} \tilde s^2\Bigr) , \]

    the covariances over items and over raters, minus the part counted twice, made positive
    semidefinite. The number of rows in a bin depends on the items alone, so the squares of weights
    are those of the items.
    """
    gap = gaps_of(sums)
    centered = raters.centered(gap)
    extra = raters.covariance(gap)
    noise: FloatArray = (centered.power(2).T @ centered.power(2)).toarray()
    shared = SharedByRaters(extra, noise, sums.prob_var, raters.effective)
    shared = shared._replace(covariance=extra * shared.correction)
    whole = positive(np.diag(sums.residual_var) + shared.covariance)
    return Clusters(raters.count, whole, np.diag(sums.weight_sq), raters=shared)


def positive(square: FloatArray) -> FloatArray:
    """Return the nearest positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(square)
    if values[0] >= 0:
        return square
    out: FloatArray = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return (out + out.T) / 2
