"""Groups of dependent rows: products of their sums, from which variances are computed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from softcal._validation.inputs import FloatArray, Rows, as_float64
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcal.bins import Bins
    from softcal.table.kernel import Sums

    IntArray = npt.NDArray[np.int64]

MAX_BINS = 2000
"""A table with groups stores a square matrix of sums; more bins would use too much memory."""

MAX_KNOWN = 10_000_000
"""The number of groups, counted per cell, up to which a set remembers its groups."""

MAX_SUMS = 1 << 18
"""The number of sums, one per group and bin, up to which these are kept beside their products.

Only corrections for small samples need them, and so many groups are not a small sample.
"""

_OWN = 1 << 62  # twice an integer below this fits in 64 bits
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")


class GroupNames:
    """Assign a number to each group name; no two names share a number.

    An integer k, or its text, has the number 2k, which needs no memory. Other names have odd
    numbers, in order of appearance.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self.texts: list[str] = []  # the names with numbers 1, 3, 5, ...

    def numbers(self, names: Any) -> IntArray:
        """Return the number of each name: text in a list or Arrow array, or integers."""
        if not isinstance(names, range | np.ndarray):
            texts = names if isinstance(names, list) else names.to_pylist()
            found = map(self._numbers.get, texts)
            return np.array(
                [self._new(name) if k is None else k for name, k in zip(texts, found, strict=True)],
                dtype=np.int64,
            )
        whole = np.asarray(names, dtype=np.int64)
        far = (whole >= _OWN) | (whole < -_OWN)
        numbers = whole * 2
        numbers[far] = self.numbers([str(name) for name in whole[far].tolist()])
        return numbers

    def _new(self, name: str) -> int:
        own = int(name) if _WHOLE.fullmatch(name) else _OWN
        if -_OWN <= own < _OWN:
            number = 2 * own
        else:
            number = 2 * len(self.texts) + 1
            self.texts.append(name)
        return self._numbers.setdefault(name, number)


class GroupIds(NamedTuple):
    """The groups of a set: one entry for each group and cell with rows of both.

    They are kept in memory and never saved, because the names may identify patients.
    """

    group: IntArray  # as `GroupNames` numbers them
    cell: IntArray
    texts: Sequence[str]

    def in_common(self, other: GroupIds) -> list[str]:
        """Return the names of the groups in both sets: integers first, each kind in order."""
        shared = np.intersect1d(self.group, other._renumbered(self.texts)).tolist()
        names = [str(k // 2) for k in shared if k % 2 == 0]
        return names + [self.texts[k // 2] for k in shared if k % 2]

    def added(self, other: GroupIds, cells: Sequence[int]) -> GroupIds | None:
        """Return the groups of both sets, given the new numbers of the other's cells."""
        if self.group.size + other.group.size > MAX_KNOWN:
            return None
        known = dict.fromkeys(self.texts)
        texts = [*self.texts, *(text for text in other.texts if text not in known)]
        group = np.concatenate((self.group, other._renumbered(texts)))
        cell = np.concatenate((self.cell, np.array(cells, dtype=np.int64)[other.cell]))
        return GroupIds(group, cell, texts)

    def _renumbered(self, texts: Sequence[str]) -> IntArray:
        """Return the numbers of the groups in another list of texts; -1 if a text is missing."""
        numbers = {text: 2 * k + 1 for k, text in enumerate(texts)}
        table = np.array([numbers.get(text, -1) for text in self.texts], dtype=np.int64)
        named = self.group % 2 == 1
        found = self.group.copy()
        found[named] = table[found[named] // 2]
        return found


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
        return self.effective / max(self.effective - 1, 1.0)

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


class GroupSums(NamedTuple):
    """The sums of each group in the bins that it fills. Groups have numbers, no names."""

    group: IntArray
    place: IntArray
    residual: FloatArray  # S_gb
    weight: FloatArray  #   W_gb

    @staticmethod
    def of(
        group: npt.NDArray[np.integer], place: npt.NDArray[np.integer], values: FloatArray
    ) -> GroupSums:
        """Return sorted sums. Groups are numbered by their sums, whatever their names were."""
        by_group = (np.bincount(group, each) for row in values for each in (place * row, row))
        rank = np.lexsort(tuple(by_group)).argsort()[group]
        order = np.lexsort((place, rank))
        return GroupSums(rank[order], place.astype(np.int64)[order], *values[:, order])

    def plus(self, other: GroupSums) -> GroupSums | None:
        """Add other groups, unless there are too many."""
        if self.group.size + other.group.size > MAX_SUMS:
            return None
        shifted = other._replace(group=other.group + int(self.group.max(initial=-1)) + 1)
        return GroupSums.of(
            np.concatenate((self.group, shifted.group)),
            np.concatenate((self.place, shifted.place)),
            np.concatenate((self.values, shifted.values), axis=1),
        )

    @property
    def values(self) -> FloatArray:
        """Both sums, as `clusters_of` takes them."""
        return np.array([self.residual, self.weight])

    def covariance(self, residual: FloatArray) -> tuple[FloatArray, float]:
        r"""Return the covariances of the bins' residuals, and their degrees of freedom.

        The part \(D_b = S_b/W\) of a bin in SMECE is a mean over groups with the shares
        \(h_g = W_g/W\). Its covariances are those of Bell and McCaffrey (CR2),

        \[ \sum_g \frac{(S_{gb} - D_b W_g)(S_{gc} - D_c W_g)}{1 - h_g} , \]

        and its degrees of freedom are those of Satterthwaite; see `satterthwaite`.
        """
        from scipy.sparse import csr_array

        weight = np.bincount(self.group, self.weight)
        mean, share = residual / weight.sum(), weight / weight.sum()
        # Of a group with all weight, the terms are 0, and their rounding must not grow.
        factor = 1 / np.where(share < 1 - _LEAST_REST, 1 - share, 1.0)
        of_group = factor * weight
        shape = (weight.size, residual.size)
        sums = csr_array((self.residual, (self.group, self.place)), shape=shape)
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
        total = np.bincount(self.place, self.weight, gap.size)
        share = self.weight / total[self.place]
        rest = self.residual - gap[self.place] * self.weight
        square = rest**2 / np.maximum(1 - share, _LEAST_REST)
        square[share >= 1 - _LEAST_REST] = 0.0
        variance: FloatArray = np.bincount(self.place, square, gap.size).astype(np.float64)
        return variance, satterthwaite(share, self.place, gap.size)


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


@dataclass(frozen=True, eq=False)
class Clusters:
    """The sums that a table stores for groups of rows (patients, documents, annotators).

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
        The raters' part, if rows depend on each other through raters; see `table.raters.two_way`.
    sums : GroupSums or None
        S_gb and W_gb. None with more than `MAX_SUMS` of them, and in files of earlier versions.
    """

    count: int
    residual: FloatArray
    weight: FloatArray
    raters: SharedByRaters | None = field(default=None, kw_only=True)
    sums: GroupSums | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for array in (self.residual, self.weight, *(self.sums or ())):
            array.setflags(write=False)

    def __add__(self, other: Clusters) -> Clusters:
        """Add the sums of two tables, which is valid if no group has rows in both."""
        known = self.sums is not None and other.sums is not None
        return Clusters(
            self.count + other.count, self.residual + other.residual, self.weight + other.weight,
            sums=self.sums.plus(other.sums) if known else None,  # type: ignore[union-attr, arg-type]
        )  # fmt: skip

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
        if self.sums is not None:
            place = starts.searchsorted(self.sums.place, side="right") - 1
            return clusters_of(self.sums.group, place, self.sums.values, starts.size)
        return Clusters(self.count, joined_square(self.residual, starts),
                        joined_square(self.weight, starts))  # fmt: skip


def joined_square(square: FloatArray, starts: npt.NDArray[np.intp]) -> FloatArray:
    """Merge adjacent rows and columns of a matrix of sums."""
    out: FloatArray = np.add.reduceat(np.add.reduceat(square, starts, axis=-1), starts, axis=-2)
    return (out + out.swapaxes(-1, -2)) / 2  # symmetric to the last digit, as the square was


def cluster_sums(rows: Rows, group: npt.NDArray[np.intp], bins: Bins) -> Clusters:
    """Compute each group's sums of residuals and weights per bin, and their products."""
    refuse_many_group_bins(len(bins))
    p, y = as_float64(rows.y_prob), as_float64(rows.y_true)
    w = np.ones(p.size) if rows.sample_weight is None else as_float64(rows.sample_weight)
    return clusters_of(group, bins.guide.locate(p), np.array([w * (p - y), w]), len(bins))


def clusters_of(
    group: npt.NDArray[np.integer],
    place: npt.NDArray[np.integer],
    values: FloatArray,
    n_bins: int,
) -> Clusters:
    """Compute the products of each group's sums, given w d and w by group and bin.

    Entries of the same group and bin are added up first.
    """
    from scipy.sparse import csr_array

    shape = (int(group.max(initial=-1)) + 1, n_bins)
    residual, weight = (csr_array((each, (group, place)), shape=shape) for each in values)
    sums = None
    if weight.nnz <= MAX_SUMS:
        owner = np.repeat(np.arange(shape[0]), np.diff(weight.indptr))
        here = weight.data > 0
        numbers = np.unique(owner[here], return_inverse=True)[1]
        both = np.array([residual.data[here], weight.data[here]])
        sums = GroupSums.of(numbers, weight.indices[here], both)
    return Clusters(
        int((weight.sum(axis=1) > 0).sum()),
        (residual.T @ residual).toarray(),
        (weight.T @ weight).toarray(),
        sums=sums,
    )


def refuse_many_group_bins(n_bins: int) -> None:
    """Refuse more bins than a table with groups can have."""
    if n_bins > MAX_BINS:
        message = f"with groups there can be at most {MAX_BINS} bins: got {n_bins}."
        raise InputError(message)
