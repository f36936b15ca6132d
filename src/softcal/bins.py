"""Bins of [0, 1]: their edges, and the bin of each prediction."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from softcal._exact import weighted_starts
from softcal._validation.arrays import Column, column
from softcal._validation.inputs import (
    FloatArray,
    Names,
    as_float64,
    check_weights_and_votes,
    probabilities,
    refuse_no_weight,
    rows,
)
from softcal._validation.rules import is_whole
from softcal.exceptions import InputError, InputTypeError

if TYPE_CHECKING:
    from collections.abc import Sequence

_CELLS_PER_BIN = 32
_MAX_CELLS = 1 << 17


class Guide(NamedTuple):
    """Lookup table that finds the bins of predictions known to lie in [0, 1].

    `starts` has one entry per cell of a grid finer than the bins: the bin in which the cell starts.
    The number of cells is a power of two, so p * cells is exact and the cell of p is found without
    rounding. Only a comparison with the few edges inside the cell remains. The last entry is
    repeated, so that p = 1 has a next cell too.
    """

    starts: npt.NDArray[np.intp]
    inner: FloatArray  # the edges between bins
    upper: FloatArray  # where each bin ends; infinity for the last one, which is closed
    most_edges: int  # inside one cell
    equal: int  # number of equal-width bins, of which only the first and last may be cut; or 0
    first: int  # number of edges that cut the first of them

    @staticmethod
    def of(edges: FloatArray) -> Guide:
        """Build the lookup table of bins from all their edges."""
        n = edges.size - 1
        inner = edges[1:-1]
        upper = np.append(inner, np.inf)
        cells = min(1 << (_CELLS_PER_BIN * n - 1).bit_length(), _MAX_CELLS)
        starts = inner.searchsorted(np.arange(cells + 1) / cells, side="right")
        starts = np.append(starts, starts[-1]).astype(np.intp)
        for array in (upper, starts):
            array.setflags(write=False)
        return Guide(starts, inner, upper, int(np.diff(starts).max()), *_equal_bins(edges))

    def locate(self, p: FloatArray) -> npt.NDArray[np.intp]:
        """Return the index of each prediction's bin, from 0."""
        cell = (p * (self.starts.size - 2)).astype(np.intp)
        bin_ = self.starts.take(cell)
        if self.most_edges > 1:  # search the cells that contain several edges
            several = np.flatnonzero(self.starts.take(cell + 1) - bin_ > 1)
            bin_[several] = self.inner.searchsorted(p[several], side="right")
        bin_ += p >= self.upper.take(bin_)
        return bin_


def _equal_bins(edges: FloatArray) -> tuple[int, int]:
    """Return the number of equal-width bins these edges contain, and the cuts of the first.

    Other edges may only cut the first and the last of them. Without such bins, return (0, 0).
    """
    n = edges.size - 1
    width = float(edges[n // 2 + 1] - edges[n // 2])
    equal = round(1 / width) if width * n >= 0.5 else 0
    first = int(edges.searchsorted(1 / equal)) - 1 if equal else 0
    if (equal == 1) != (n == 1):
        return 0, 0
    inner = edges[first + 1 : first + equal]
    return (equal, first) if np.array_equal(inner, np.arange(1, equal) / equal) else (0, 0)


BinsLike: TypeAlias = "int | np.integer[Any] | Bins | Sequence[float] | FloatArray"
"""What every `bins=` accepts: a number of equal-width bins, a `Bins`, or edges."""

MAX_BINS = 1_000_000


class Bins:
    r"""Bins that cover [0, 1]: bin b is \([e_b, e_{b+1})\), and the last bin is closed.

    Parameters
    ----------
    edges : sequence of float
        Strictly increasing edges, from 0 to 1. They are stored as a read-only float64 array.

    Examples
    --------
    >>> bins = Bins([0, 0.5, 0.9, 1])
    >>> len(bins)
    3
    >>> bins.locate([0.5, 0.89, 1.0])
    array([1, 1, 2])
    """

    __slots__ = ("edges", "guide")

    edges: FloatArray
    guide: Guide

    def __init__(self, edges: Sequence[float] | FloatArray) -> None:
        # A copy, because the caller may change theirs. Adding 0 turns an edge of -0 into 0.
        own = column(edges, "edges").astype(np.float64) + 0.0
        _refuse_bad_edges(own)
        own.setflags(write=False)
        object.__setattr__(self, "edges", own.view())  # a view cannot be made writable again
        object.__setattr__(self, "guide", Guide.of(self.edges))

    def __setattr__(self, name: str, value: object) -> None:
        """Raise: bins are shared between tables, so they cannot change."""
        message = f"Bins are immutable: create new bins instead of changing {name!r}."
        raise AttributeError(message)

    def __delattr__(self, name: str) -> None:
        """Raise, as above."""
        self.__setattr__(name, None)

    def __reduce__(self) -> tuple[type[Bins], tuple[FloatArray]]:
        """Pickle the edges alone; the lookup table is rebuilt from them."""
        return Bins, (self.edges,)

    @staticmethod
    def uniform(n: int) -> Bins:
        r"""Return n bins of equal width, with edges \(k/n\) computed by division.

        Division puts 0.3, 0.6, and 0.7 in the bins that exact arithmetic gives; `linspace` does
        not. It also makes every edge of n bins an edge of any multiple of n bins: 360/3600 and
        1/10 are the same double.

        Parameters
        ----------
        n : int
            Number of bins, from 1 to 1,000,000.

        Examples
        --------
        >>> Bins.uniform(4).edges
        array([0.  , 0.25, 0.5 , 0.75, 1.  ])
        """
        if not is_whole(n):
            message = f"bins must be a whole number, Bins, or edges: got {n!r:.60}."
            raise InputTypeError(message)
        return _uniform(int(n))

    @staticmethod
    def grid(bins: BinsLike = 10, *, coarse: bool = False) -> Bins:
        r"""Return the fine grid of a `TableSet`, which coarsens exactly to the given bins.

        The grid has 600 equal-width bins, or another number that is a multiple of the given
        number of bins. Its first and last bins are cut again in equal ratios toward 0 and 1, down
        to \(10^{-7}\), because logits change fast there. Bins of unequal width are their own grid.

        Parameters
        ----------
        bins : int, Bins, or sequence of float, default=10
            The bins to which the grid must coarsen.
        coarse : bool, default=False
            Whether to start from 60 equal-width bins, as sets with groups or with more than 100
            classes do. More than 600 bins are then their own grid.

        Examples
        --------
        >>> len(Bins.grid(10)), len(Bins.grid(7)), len(Bins.grid(10, coarse=True))
        (648, 888, 120)
        """
        wanted = Bins.of(bins)
        if not wanted.is_uniform or (coarse and len(wanted) > _GRID_BINS):
            return wanted
        if coarse:
            return _grid(len(wanted), _GRID_DIVISORS, _MOST_COARSE_BINS)
        return _grid(len(wanted), _GRID_BINS, _MOST_GRID_BINS)

    @staticmethod
    def tie_grid(bins: BinsLike = 10) -> Bins:
        """Return the coarser grid for products between models.

        These products have one entry per pair of bins. The grid therefore has 60 equal-width bins,
        or up to 120 if the given number does not divide 60. If no such number exists, the given
        bins are the grid.

        Parameters
        ----------
        bins : int, Bins, or sequence of float, default=10
            The bins to which the grid must coarsen.

        Examples
        --------
        >>> len(Bins.tie_grid(10)), len(Bins.tie_grid(8)), len(Bins.tie_grid(7))
        (60, 120, 7)
        """
        wanted = Bins.of(bins)
        shared = math.lcm(len(wanted), _GRID_DIVISORS)
        return Bins.uniform(shared) if wanted.is_uniform and shared <= _MOST_TIED_BINS else wanted

    @staticmethod
    def quantile(y_prob: npt.ArrayLike, n: int, sample_weight: npt.ArrayLike | None = None) -> Bins:
        """Return at most n bins with about the same number of predictions in each.

        Equal predictions always share a bin, so many ties give fewer than n bins. No bin is
        empty, and two different predictions are enough for two bins.

        Parameters
        ----------
        y_prob : array-like of shape (n_samples,)
            Predictions in [0, 1].
        n : int
            Number of bins wanted.
        sample_weight : array-like of shape (n_samples,), optional
            Weights. A weight of k equals k equal predictions.

        Examples
        --------
        >>> Bins.quantile([0.1, 0.2, 0.3, 0.4], 2).edges
        array([0. , 0.3, 1. ])
        >>> Bins.quantile([0.1, 0.9, 0.9, 0.9], 4).edges
        array([0. , 0.9, 1. ])
        """
        wanted = len(Bins.uniform(n))
        p = probabilities(y_prob, "y_prob")
        if sample_weight is None:
            starts = np.unique(np.arange(1, wanted) * p.size // wanted)
            values = as_float64(np.partition(p, starts)[starts]) if starts.size else starts
        else:
            p, w = _present(y_prob, sample_weight)
            order = np.argsort(p)
            values = p[order][weighted_starts(w[order], wanted)]
        inner = np.unique(_off_the_ends(np.unique(values), p))
        return Bins(np.concatenate(([0.0], inner, [1.0])))

    @staticmethod
    def of(bins: BinsLike) -> Bins:
        """Convert a `bins=` argument to `Bins`.

        Parameters
        ----------
        bins : int, Bins, or sequence of float
            A number of equal-width bins, bins, or edges.

        Examples
        --------
        >>> Bins.of(10) == Bins.uniform(10)
        True
        """
        if type(bins) is int:  # not a bool
            return _uniform(bins)
        if isinstance(bins, Bins):
            return bins
        if isinstance(bins, (int, float, str, np.generic)) or bins is None:  # a union is slow
            return Bins.uniform(cast("int", bins))
        return Bins(cast("Sequence[float]", bins))

    def locate(self, y_prob: npt.ArrayLike) -> npt.NDArray[np.intp]:
        """Return the index of each prediction's bin, from 0.

        Parameters
        ----------
        y_prob : array-like of shape (n_samples,)
            Predictions in [0, 1].

        Examples
        --------
        >>> Bins.uniform(10).locate([0.0, 0.29, 0.3, 1.0])
        array([0, 2, 3, 9])
        """
        return self.guide.locate(as_float64(probabilities(y_prob, "y_prob")))

    @property
    def is_uniform(self) -> bool:
        """Whether the edges are exactly those of `Bins.uniform`."""
        return self.guide.equal == len(self)

    def __len__(self) -> int:
        return self.edges.size - 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bins):
            return NotImplemented
        return self is other or np.array_equal(self.edges, other.edges)

    def __hash__(self) -> int:
        return hash(self.edges.tobytes())

    def __repr__(self) -> str:
        if self.is_uniform:
            return f"Bins.uniform({len(self)})"
        shown = [f"{edge:.6g}" for edge in self.edges]
        if len(shown) > 12:
            shown[6:-6] = ["..."]
        return f"Bins([{', '.join(shown)}])"


_MEANT = 1e-9


def meant(values: FloatArray, edges: FloatArray) -> FloatArray:
    """Return numbers in which each that is within 1e-9 of an edge is that edge.

    Numbers from `numpy.arange` differ from edges in the last digit.

    >>> meant(np.array([0.15000000000000002, 0.2001]), np.array([0.0, 0.15, 0.2, 1.0]))
    array([0.15  , 0.2001])
    """
    above = edges.searchsorted(values).clip(1, edges.size - 1)
    low, high = edges[above - 1], edges[above]
    near = np.where(values - low < high - values, low, high)
    found: FloatArray = np.where(np.abs(values - near) <= _MEANT, near, values)
    return found


def meant_bins(bins: BinsLike, finer: Bins) -> Bins:
    """Return bins whose edges are those of finer bins where these are meant."""
    wanted = Bins.of(bins)
    edges = meant(wanted.edges, finer.edges)
    return wanted if np.array_equal(edges, wanted.edges) else Bins(edges)


@lru_cache(maxsize=64)
def _uniform(n: int) -> Bins:
    if not 1 <= n <= MAX_BINS:
        message = f"the number of bins must be between 1 and {MAX_BINS}: got {n}."
        raise InputError(message)
    return Bins(np.arange(n + 1) / n)


def _present(y_prob: npt.ArrayLike, sample_weight: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return validated predictions and weights, without the rows of weight 0."""
    data = rows(y_prob, y_prob, sample_weight, names=Names(y_true="y_prob"))
    check_weights_and_votes(data)
    w = as_float64(np.asarray(data.sample_weight))
    if not w.any():
        refuse_no_weight(data)
    return as_float64(data.y_prob)[w > 0], w[w > 0]


_GRID_BINS, _GRID_DIVISORS, _MOST_GRID_BINS = 600, 60, 6000
_GRID_RATIO, _GRID_END = 1.5, 1e-7
_MOST_COARSE_BINS, _MOST_TIED_BINS = 1800, 120


@lru_cache(maxsize=64)
def _grid(n: int, least: int, most: int) -> Bins:
    shared = math.lcm(n, _GRID_DIVISORS)
    # If no multiple is small enough, the grid coarsens to these bins only.
    uniform = n if shared > most else shared * math.ceil(least / shared)
    number = math.ceil(math.log(1 / uniform / _GRID_END, _GRID_RATIO))
    cuts = 1 / uniform / _GRID_RATIO ** np.arange(1, number + 1)
    inner = np.arange(1, uniform) / uniform
    return Bins(np.concatenate(([0.0], cuts[::-1], inner, 1 - cuts, [1.0])))


def _off_the_ends(inner: FloatArray, p: Column) -> FloatArray:
    """Move edges that would leave the first or last bin empty because of ties."""
    least = float(p.min())
    if inner.size and inner[0] <= least:  # at the lowest prediction: use the next higher one
        above = p[p > least]
        inner = np.append(inner[inner > least], as_float64(above).min() if above.size else ())
    if (inner == 1).any():  # no bin can start at 1: use a point between the last two values
        below = float(p[p < 1].max())
        between = (below + 1) / 2
        inner = np.append(inner[inner < 1], between if between < 1 else below)
    return inner[(inner > least) & (inner < 1)]


def _refuse_bad_edges(edges: Column) -> None:
    rule = "edges must increase strictly from 0 to 1"
    if edges.size < 2 or edges[0] != 0 or edges[-1] != 1:
        message = (
            f"{rule}: there are {edges.size}, from {float(edges[0])!r} to {float(edges[-1])!r}. "
            "Add 0 and 1 at the ends, so that every prediction has a bin."
        )
        raise InputError(message)
    if edges.size - 1 > MAX_BINS:
        message = f"the number of bins must be between 1 and {MAX_BINS}: got {edges.size - 1}."
        raise InputError(message)
    falling = ~(edges[1:] > edges[:-1])  # ~(>), not <=, so that NaN counts as falling
    if falling.any():
        first = int(falling.argmax())
        message = (
            f"{rule}: {falling.sum()} of {falling.size} steps do not, the first is from "
            f"{float(edges[first])!r} to {float(edges[first + 1])!r}. "
            "Sort the edges and drop duplicates."
        )
        raise InputError(message)
