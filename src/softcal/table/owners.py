"""Owners of rows: groups (patients, documents) and raters, whose rows or votes vary together.

A table keeps the sums of each owner in each bin, from which variances are computed. Owners are
added by name. Saved sets contain the names of raters, but not those of groups, which may identify
patients.

A set keeps the sums of every rater, and of at most `MAX_GROUPS` groups. More groups share this
number of places, by a hash of their names. The union of independent groups is an independent group,
so variances stay valid. Their relative standard error is about sqrt(2 / `MAX_GROUPS`), or 2%.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self
from zlib import crc32

import numpy as np
import numpy.typing as npt

from softcal._validation.inputs import Coded, FloatArray, Rows, as_float64, columns
from softcal.exceptions import InputError
from softcal.table.blocks import BLOCKS, Sparse
from softcal.table.kernel import cross_entropy

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from softcal.bins import Bins
    from softcal.table.blocks import IntArray
    from softcal.table.kernel import Sums
    from softcal.votes import RowVotes

MAX_BINS = 2000
"""Variances of a table with groups need a square matrix; more bins would use too much memory."""

MAX_GROUPS = 1 << 12
"""The number of groups that a set or a table keeps separately."""

_MIX, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(52)  # 2^64 / golden ratio; 64 - 12 bits
_loads = count()


class Place(NamedTuple):
    """The name of several groups that share a place."""

    number: int


class Anonymous(NamedTuple):
    """The name of a group whose name was not saved: the number of the loading, and its own."""

    load: int
    number: int


def anonymous(size: int) -> tuple[Anonymous, ...]:
    """Return different names for groups that were saved without names."""
    load = next(_loads)
    return tuple(Anonymous(load, k) for k in range(size))


class Merged(NamedTuple):
    """The names of the owners of two parts, and the new numbers of the owners of each part."""

    names: tuple[Hashable, ...]
    mine: IntArray
    theirs: IntArray


def merged(mine: Sequence[Any], theirs: Any, *, most: int | None = None) -> Merged:
    """Merge two lists of names; more than `most` names share places."""
    if most is not None:
        shared = any(len(each) and isinstance(each[0], Place) for each in (mine, theirs))
        if not shared and len(theirs) <= most:
            theirs = _names(theirs)
            shared = len({*mine, *theirs}) > most
        if shared or len(theirs) > most:
            return Merged(tuple(map(Place, range(most))), places_of(mine), places_of(theirs))
    number = {name: k for k, name in enumerate(mine)}
    numbers = [number.setdefault(name, len(number)) for name in theirs]
    return Merged(tuple(number), np.arange(len(mine)), np.array(numbers, dtype=np.int64))


def _names(names: Any) -> list[Hashable]:
    """Return the names of groups as texts: an integer and its text are the same name."""
    found = names.to_pylist() if hasattr(names, "to_pylist") else names
    return [name if isinstance(name, Place | Anonymous) else str(name) for name in found]


def places_of(names: Any) -> IntArray:
    """Return the place of each group, by a hash of its name."""
    if isinstance(names, np.ndarray | range):
        numbers = np.asarray(names, dtype=np.int64).astype(np.uint64)
    else:
        numbers = np.array([_number(name) for name in _names(names)], dtype=np.uint64)
    hashed: IntArray = (numbers * _MIX >> _SHIFT).astype(np.int64)
    if len(names) and isinstance(names[0], Place):
        return np.arange(len(names))
    return hashed


def _number(name: Any) -> int:
    """Return the integer that a name stands for, or a hash of the name."""
    if isinstance(name, Place | Anonymous):
        return name.number
    own = int(name) if len(name) <= 20 and name.removeprefix("-").isdecimal() else None
    if own is not None and str(own) == name:
        return own % (1 << 64)
    return crc32(name.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, eq=False)
class Owners:
    """Sums of each owner in each bin, without bins in which an owner has no rows.

    Attributes
    ----------
    names : tuple
        The owners.
    owner, place : ndarray
        The owner and the bin of each entry. Pairs are unique and sorted.
    values : ndarray of shape (sums, entries)
        The sums.
    """

    names: tuple[Any, ...]
    owner: IntArray
    place: IntArray
    values: FloatArray

    _most: ClassVar[int | None] = None  # the largest number of owners

    def __post_init__(self) -> None:
        for array in (self.owner, self.place, self.values):
            array.setflags(write=False)

    @classmethod
    def of(cls, names: Sequence[Any], keys: IntArray, values: FloatArray) -> Self:
        """Add up entries of the same owner and bin, and omit owners without entries."""
        (owner, place), sums = Sparse.of(np.asarray(keys, dtype=np.int64), values)
        present, number = np.unique(owner, return_inverse=True)
        own = names if present.size == len(names) else [names[k] for k in present.tolist()]
        return cls(tuple(own), number.astype(np.int64), place, sums)

    def __add__(self, other: Self) -> Self:
        """Add by name, so that an owner with rows in both is one owner."""
        both = merged(self.names, other.names, most=self._most)
        mine = Sparse(np.array([both.mine[self.owner], self.place]), self.values)
        theirs = Sparse(np.array([both.theirs[other.owner], other.place]), other.values)
        return self.of(both.names, *Sparse.added([mine, theirs]))

    def coarsen(self, starts: npt.NDArray[np.intp]) -> Self:
        """Merge adjacent bins, given the first bin of each new one."""
        place = starts.searchsorted(self.place, side="right") - 1
        return self.of(self.names, np.array([self.owner, place]), self.values)

    @property
    def count(self) -> int:
        """The number of owners."""
        return len(self.names)

    @property
    def effective(self) -> float:
        r"""The effective number of owners, \((\sum W_j)^2/\sum W_j^2\)."""
        weight = np.bincount(self.owner, self.values[1])
        return float(weight.sum() ** 2 / (weight**2).sum())

    @property
    def heaviest(self) -> float:
        """The largest weight of an owner; 0 without owners."""
        return float(np.bincount(self.owner, self.values[1]).max(initial=0.0))

    def matrix(self, values: FloatArray, n_bins: int) -> Any:
        """Return values as a sparse matrix with one row per owner and one column per bin."""
        from scipy.sparse import csr_array

        return csr_array((values, (self.owner, self.place)), shape=(self.count, n_bins))


class Groups(Owners):
    """The sums of w d and w of each group in each bin; more than `MAX_GROUPS` share places."""

    _most: ClassVar[int | None] = MAX_GROUPS

    @property
    def share_places(self) -> bool:
        """Whether several groups share a place, because there are more than `MAX_GROUPS`."""
        return any(isinstance(name, Place) for name in self.names[:1])

    @staticmethod
    def of_rows(rows: Rows, group: Coded, bins: Bins) -> Groups:
        """Add up rows by group and bin, without rows of weight 0."""
        refuse_many_group_bins(len(bins))
        both = merged((), group.names, most=MAX_GROUPS)
        cell = np.zeros(group.numbers.size, dtype=np.int64)
        found = group_entries(rows, both.theirs[group.numbers], bins, cell)
        return Groups.of(both.names, *found.beneath(0))

    def labels(self, sums: Sums) -> FloatArray:
        """Return the sum of labels of each entry, whose rows count with the bin's mean prediction.

        Each is from 0 to the weight of the entry. Those of a bin add up to the label of its rows.
        """
        weight, total = self.values[1], np.maximum(sums.weight, 1e-300)
        mean_prob = (sums.label + sums.residual) / total
        found = np.clip(weight * mean_prob[self.place] - self.values[0], 0.0, weight)
        seen = np.bincount(self.place, found, total.size)
        down = np.minimum(sums.label / np.maximum(seen, 1e-300), 1.0)
        up = np.minimum((total - sums.label) / np.maximum(total - seen, 1e-300), 1.0)
        out: FloatArray = weight - up[self.place] * (weight - down[self.place] * found)
        return np.clip(out, 0.0, weight)

    def clusters(self, n_bins: int) -> Clusters:
        """Return the products of the groups' sums, for variances."""
        residual, weight = (self.matrix(row, n_bins) for row in self.values)
        squares = ((each.T @ each).toarray() for each in (residual, weight))
        return Clusters(self.count, *squares, sums=self)

    def covariance(self, residual: FloatArray) -> tuple[FloatArray, float]:
        r"""Return the covariances of the bins' residuals, and their degrees of freedom.

        The part \(D_b = S_b/W\) of a bin in SMECE is a mean over groups with the shares
        \(h_g = W_g/W\). Its covariances are those of Bell and McCaffrey (CR2),

        \[ \sum_g \frac{(S_{gb} - D_b W_g)(S_{gc} - D_c W_g)}{1 - h_g} , \]

        and its degrees of freedom are those of Satterthwaite; see `satterthwaite`.
        """
        weight = np.bincount(self.owner, self.values[1])
        mean, share = residual / weight.sum(), weight / weight.sum()
        # Of a group with all weight, the terms are 0, and their rounding must not grow.
        factor = 1 / np.where(share < 1 - _LEAST_REST, 1 - share, 1.0)
        of_group = factor * weight
        sums = self.matrix(self.values[0], residual.size)
        mixed = np.outer(sums.T @ of_group, mean)
        square = (sums.T @ sums.multiply(factor[:, None])).toarray() - mixed - mixed.T
        out: FloatArray = square + (of_group @ weight) * np.outer(mean, mean)
        everywhere = np.zeros(share.size, dtype=np.int64)
        return (out + out.T) / 2, float(satterthwaite(share, everywhere, 1)[0])

    def of_gaps(self, gap: FloatArray) -> tuple[FloatArray, FloatArray]:
        r"""Return the variance of each bin's residual given its weight, and its degrees of freedom.

        The gap of a bin is a mean over groups with the shares \(h_g = W_{gb}/W_b\). The variance
        \(\sum_g (S_{gb} - \mathrm{gap}_b W_{gb})^2 / (1 - h_g)\) is CR2 for rows that have, in the
        working model, independent labels of variance 1/w. It is 0 if one group fills the bin.
        """
        total = np.bincount(self.place, self.values[1], gap.size)
        share = self.values[1] / total[self.place]
        rest = self.values[0] - gap[self.place] * self.values[1]
        square = rest**2 / np.maximum(1 - share, _LEAST_REST)
        square[share >= 1 - _LEAST_REST] = 0.0
        variance: FloatArray = np.bincount(self.place, square, gap.size).astype(np.float64)
        return variance, satterthwaite(share, self.place, gap.size)

    def times(self, other: Groups, n_bins: int) -> FloatArray:
        """Return the products of the groups' residuals of two models, per pair of bins."""
        number = {name: k for k, name in enumerate(self.names)}
        own = np.array([number[name] for name in other.names], dtype=np.int64)
        theirs = Groups(self.names, own[other.owner], other.place, other.values)
        one, two = (each.matrix(each.values[0], n_bins) for each in (self, theirs))
        out: FloatArray = (one.T @ two).toarray()
        return out


_LEAST_REST = 1e-6  # of the weight: with less in all other groups, nothing shows how groups vary


def satterthwaite(share: FloatArray, place: IntArray, size: int) -> FloatArray:
    r"""Return the degrees of freedom of CR2 variances of means over groups, at least 1.

    In the working model, the terms of the variance have the covariances
    \(f_g f_k h_g ([g = k] - h_k)\), with \(f_g^2 = 1/(1 - h_g)\). The sum of their squares is the
    inverse of the degrees of freedom:

    \[ \nu = \Bigl( \sum h_g^2 + \bigl(\sum q_g\bigr)^2 - \sum q_g^2 \Bigr)^{-1} , \qquad
       q_g = \frac{h_g^2}{1 - h_g} . \]

    Equal groups have G - 1. `place` is the number of the mean of each share.
    """
    q = share**2 / np.maximum(1 - share, _LEAST_REST)
    of_h, of_q, squares = (np.bincount(place, each, size) for each in (share**2, q, q**2))
    out: FloatArray = 1 / np.maximum(of_h + np.maximum(of_q**2 - squares, 0.0), 1e-300)
    return np.maximum(out, 1.0)


def group_entries(rows: Rows, owner: IntArray, bins: Bins, cell: IntArray) -> Sparse:
    """Add up w d and w by cell, owner, and bin."""
    p, y, w = columns(rows)
    keys = np.array([cell, owner, bins.guide.locate(p)], dtype=np.int64)
    found = Sparse.of(keys, np.array([w * (p - y), w]))
    return found.where(found.values[1] > 0)


@dataclass(frozen=True, eq=False)
class Clusters:
    """Products of the sums of groups of rows, from which variances are computed.

    S_gb is the sum of w d over the rows of group g in bin b, and W_gb the sum of w.

    Attributes
    ----------
    count : int
        The number of groups with a row of positive weight.
    residual : ndarray of shape (bins, bins)
        Sum over groups of S_gb S_gc.
    weight : ndarray of shape (bins, bins)
        Sum over groups of W_gb W_gc.
    raters : SharedByRaters or None
        The raters' part, if rows depend on each other through raters; see `two_way`.
    sums : Groups or None
        S_gb and W_gb; None in sets that softcal 0.2 saved.
    """

    count: int
    residual: FloatArray
    weight: FloatArray
    raters: SharedByRaters | None = field(default=None, kw_only=True)
    sums: Groups | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for array in (self.residual, self.weight):
            array.setflags(write=False)

    def __add__(self, other: Clusters) -> Clusters:
        """Add products, as if no group had rows in both."""
        return Clusters(
            self.count + other.count, self.residual + other.residual, self.weight + other.weight
        )

    def covariance(self, sums: Sums) -> tuple[FloatArray, float]:
        """Return the covariances of the bins' residuals, and their degrees of freedom.

        From products alone, they are corrected by G/(G - 1), with G - 1 degrees of freedom and G
        the effective number of groups.
        """
        if self.sums is not None:
            return self.sums.covariance(sums.residual)
        groups = max(sums.weight.sum() ** 2 / self.weight.sum(), 1.0)
        degrees = max(groups - 1, 1.0)
        centered = self.residual - np.outer(sums.residual, sums.residual) / groups
        return centered * groups / degrees, float(degrees)

    def of_gaps(self, gap: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the variance of each bin's residual given its weight, and its degrees of freedom.

        From products alone, both are corrected by the effective number of groups of the bin.
        """
        if self.sums is not None:
            return self.sums.of_gaps(gap)
        own = self.weight.diagonal()
        groups = weight**2 / np.maximum(own, 1e-300)
        centered = np.maximum(self.residual.diagonal() - own * gap**2, 0.0)
        return centered * groups / np.maximum(groups - 1, 1e-9), np.maximum(groups - 1, 1.0)

    def coarsen(self, starts: npt.NDArray[np.intp]) -> Clusters:
        """Merge adjacent bins, given the first bin of each new one."""
        squares = (joined_square(each, starts) for each in (self.residual, self.weight))
        return Clusters(self.count, *squares)


def joined_square(square: FloatArray, starts: npt.NDArray[np.intp]) -> FloatArray:
    """Merge adjacent rows and columns of a matrix of sums."""
    out: FloatArray = np.add.reduceat(np.add.reduceat(square, starts, axis=-1), starts, axis=-2)
    return (out + out.swapaxes(-1, -2)) / 2  # symmetric to the last digit, as the square was


def refuse_many_group_bins(n_bins: int) -> None:
    """Refuse more bins than a table with groups can have."""
    if n_bins > MAX_BINS:
        message = f"with groups there can be at most {MAX_BINS} bins: got {n_bins}."
        raise InputError(message)


class SharedByRaters(NamedTuple):
    """The raters' part of the covariances of bins, for intervals.

    Attributes
    ----------
    covariance : ndarray of shape (bins, bins)
        The part of the covariances that comes from the raters.
    noise : ndarray of shape (bins, bins)
        The variance of each of these.
    shape : ndarray of shape (bins,)
        The shift of each bin for a small bias of a rater on the log-odds scale: the sum of w² p(1 -
        p).
    effective : float
        The effective number of raters.
    """

    covariance: FloatArray
    noise: FloatArray
    shape: FloatArray
    effective: float

    @property
    def correction(self) -> float:
        """The factor that corrects for subtracting the raters' own mean."""
        return self.effective / self.degrees

    @property
    def degrees(self) -> float:
        """Degrees of freedom of Student's distribution."""
        return max(self.effective - 1, 1.0)

    def reach(self, tail: float) -> float:
        """Return the number of standard errors beyond which a tail has this probability."""
        from scipy.special import stdtrit

        return -float(stdtrit(self.degrees, tail))

    def radius(self, reach: float) -> float:
        """Return the radius of a disc with the same outside probability as both tails.

        It is a quantile of F with 2 degrees of freedom, whose tail has a closed form.
        """
        from scipy.special import stdtr

        outside = min(2 * float(stdtr(self.degrees, -reach)), 1.0)
        return float(np.sqrt(self.degrees * (outside ** (-2 / self.degrees) - 1)))

    def joined(self, starts: npt.NDArray[np.intp]) -> SharedByRaters:
        """Merge adjacent bins, given the first bin of each new one."""
        return self._replace(
            covariance=joined_square(self.covariance, starts),
            noise=joined_square(self.noise, starts),
            shape=np.add.reduceat(self.shape, starts),
        )

    def direction(self, variance: FloatArray) -> FloatArray:
        """Return the direction in which biased raters move all bins, given the bins' variances.

        It is the covariance of the bins with the sum weighted by `shape`, in standard errors of
        that sum. The shape is fixed beforehand. An eigenvector would be the direction in which
        these raters vary most by chance, and leave too little variance to other directions.
        """
        along = self.covariance @ self.shape
        spread = float(self.shape @ along)
        if spread <= 0:
            return np.zeros_like(along)
        most = np.sqrt(variance)
        out: FloatArray = np.clip(along / np.sqrt(spread), -most, most)
        return out


class Raters(Owners):
    """The sums of `RATER_SUMS` over the votes of each rater in each bin.

    A share is the mean of its votes, so the residual of an item is a sum over its votes of
    a(p - v). Here a is the vote's part of the label: 1/m for m equal votes.
    """

    @staticmethod
    def of_votes(rows: Rows, votes: RowVotes, bins: Bins) -> Raters:
        """Add up the votes of each rater in each bin."""
        cell = np.zeros(rows.y_prob.size, dtype=np.int64)
        return Raters.of(votes.names, *rater_entries(rows, votes, bins, cell).beneath(0))

    @property
    def recur(self) -> bool:
        """Whether any rater has two votes or more.

        For one vote, the square of the sum equals the sum of the squares exactly.
        """
        s, u, s_sq, mixed, u_sq = self.values
        several = self.owner[1:] == self.owner[:-1]
        return bool(several.any() or (u * u != u_sq).any() or (s * s != s_sq).any()
                    or (s * u != mixed).any())  # fmt: skip

    def centered(self, gap: FloatArray) -> Any:
        r"""Return \(S_{jb} - g_b W_{jb}\) as a sparse matrix with one row per rater."""
        return self.matrix(self.values[0] - gap[self.place] * self.values[1], gap.size)

    def covariance(self, gap: FloatArray) -> FloatArray:
        r"""Return the raters' part of the covariances of the bins' sums of residuals.

        \[ \sum_j \tilde S_{jb} \tilde S_{jc} - [b = c] \sum_{votes \in b} \tilde s^2, \qquad
           \tilde s = s - g_b u , \]

        with g the gap of each bin, either observed or 0 for a calibrated model. The result is 0 if
        each rater has one vote.
        """
        centered = self.centered(gap)
        square: FloatArray = (centered.T @ centered).toarray()
        s, u, s_sq, mixed, u_sq = self.values
        g = gap[self.place]
        # Exactly 0 for an entry of one vote.
        own = (s * s - s_sq) - 2 * g * (s * u - mixed) + g * g * (u * u - u_sq)
        np.fill_diagonal(square, np.bincount(self.place, own, gap.size))
        return square


class VoteTerms(NamedTuple):
    """The terms of each vote on a row of positive weight, for one model."""

    rater: npt.NDArray[Any]
    row: npt.NDArray[Any]
    place: npt.NDArray[Any]
    vote: FloatArray
    residual: FloatArray  # s
    weight: FloatArray  #   u


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


def rater_entries(rows: Rows, votes: RowVotes, bins: Bins, cell: IntArray) -> Sparse:
    """Add up votes by cell, rater, and bin, a bounded number of votes at a time."""
    parts = [BLOCKS["rater_sums"].empty().beneath(0, 0)]
    for part in votes.blocks():
        terms = vote_terms(rows, part, bins)
        keys = np.array([cell[terms.row], terms.rater, terms.place], dtype=np.int64)
        s, u = terms.residual, terms.weight
        parts.append(Sparse.of(keys, np.array([s, u, s * s, s * u, u * u])))
    return Sparse.added(parts)


def pair_entries(
    a: Rows, b: Rows, votes: RowVotes, bins: Bins, cell: IntArray
) -> tuple[Sparse, Sparse]:
    """Add up the joint sums of the votes on two models, by cell, bin of A, and bin of B.

    Also add up the paired losses, by cell and rater.
    """
    (p_a, y_a, _), (p_b, y_b, _) = columns(a), columns(b)
    finite = np.isfinite(cross_entropy(y_a, p_a)) & np.isfinite(cross_entropy(y_b, p_b))
    products, losses = (
        [BLOCKS[name].empty().beneath(0, 0, 0)] for name in ("vote_products", "rater_losses")
    )
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
        s_a, s_b = one.residual, two.residual
        values = np.array([s_a * s_b, s_a * u, s_b * u, u * u])
        products.append(Sparse.of(np.array([cell[row], one.place, two.place]), values))
        values = np.array([e for x in (brier, log_loss) for e in (x, x * u, x * x)])
        losses.append(Sparse.of(np.array([cell[row], one.rater], dtype=np.int64), values))
    return Sparse.added(products), Sparse.added(losses)


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
