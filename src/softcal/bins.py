"""Bins of [0, 1]: their edges, and which bin a prediction belongs to."""

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
    """Finds the bins of predictions that are known to lie in [0, 1].

    `starts` has, for a grid finer than the bins, the bin in which each cell starts. The number of
    cells is a power of two, so p * cells is exact and the cell of p is known without rounding: all
    that is left is to compare p with the few edges inside its cell. The last entry stands twice,
    so that p = 1 has a next cell too.
    """

    starts: npt.NDArray[np.intp]
    inner: FloatArray  # the edges between bins
    upper: FloatArray  # where each bin ends; nothing lies above the last one, which is closed
    most_edges: int  # inside one cell
    equal: (
        int  # how many bins of equal width these are, but for cuts of the first and the last; or 0
    )
    first: int  # how many edges cut the first of them

    @staticmethod
    def of(edges: FloatArray) -> Guide:
        """Make the guide of bins, given all their edges."""
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
        """Give the number of the bin each prediction belongs to, from 0."""
        cell = (p * (self.starts.size - 2)).astype(np.intp)
        bin_ = self.starts.take(cell)
        if self.most_edges > 1:  # a search, in the cells that have several edges
            several = np.flatnonzero(self.starts.take(cell + 1) - bin_ > 1)
            bin_[several] = self.inner.searchsorted(p[several], side="right")
        bin_ += p >= self.upper.take(bin_)
        return bin_


def _equal_bins(edges: FloatArray) -> tuple[int, int]:
    """Find bins of equal width of which others only cut the first and last: how many, and cuts."""
    n = edges.size - 1
    width = float(edges[n // 2 + 1] - edges[n // 2])
    equal = round(1 / width) if width * n >= 0.5 else 0
    first = int(edges.searchsorted(1 / equal)) - 1 if equal else 0
    if (equal == 1) != (n == 1):
        return 0, 0
    inner = edges[first + 1 : first + equal]
    return (equal, first) if np.array_equal(inner, np.arange(1, equal) / equal) else (0, 0)


BinsLike: TypeAlias = "int | np.integer[Any] | Bins | Sequence[float] | FloatArray"
"""What every `bins=` takes: a number of equal-width bins, a `Bins`, or edges."""

MAX_BINS = 1_000_000


class Bins:
    r"""Bins that cover [0, 1]: bin b is \([e_b, e_{b+1})\), and the last one is closed.

    Parameters
    ----------
    edges : sequence of float
        Strictly increasing, the first 0 and the last 1. Kept as a read-only float64 array.

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
        # A copy, since the caller keeps theirs; plus 0, which turns an edge of -0 into 0.
        own = column(edges, "edges").astype(np.float64) + 0.0
        _refuse_bad_edges(own)
        own.setflags(write=False)
        object.__setattr__(self, "edges", own.view())  # of which nobody can unlock the base
        object.__setattr__(self, "guide", Guide.of(self.edges))

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: bins are shared between tables, so they never change."""
        message = f"Bins are frozen: make new ones instead of changing {name!r}."
        raise AttributeError(message)

    def __delattr__(self, name: str) -> None:
        """Refuse, as above."""
        self.__setattr__(name, None)

    def __reduce__(self) -> tuple[type[Bins], tuple[FloatArray]]:
        """Travel between processes as the edges alone; the rest is made from them."""
        return Bins, (self.edges,)

    @staticmethod
    def uniform(n: int) -> Bins:
        r"""Give n bins of equal width, with edges \(k/n\) by division.

        Division, not `linspace`, puts 0.3, 0.6 and 0.7 where exact arithmetic says, and makes
        every edge of n bins an edge of any multiple of n: 360/3600 is the double 1/10.

        Examples
        --------
        >>> Bins.uniform(4).edges
        array([0.  , 0.25, 0.5 , 0.75, 1.  ])
        """
        if not is_whole(n):
            message = f"bins must be a whole number, Bins or edges: got {n!r:.60}."
            raise InputTypeError(message)
        if not 1 <= n <= MAX_BINS:
            message = f"the number of bins must be between 1 and {MAX_BINS}: got {n}."
            raise InputError(message)
        return _uniform(int(n))

    @staticmethod
    def grid(bins: BinsLike = 10, *, coarse: bool = False) -> Bins:
        r"""Return the fine grid on which a `TableSet` is kept: it coarsens to these bins.

        600 equal-width bins, or as many as the number asked for divides, of which the first and
        the last are cut again in equal ratios toward 0 and 1, down to \(10^{-7}\), because
        logits change fast there. Bins of unequal width are their own grid. A coarse grid, which
        sets of more than 100 classes are kept on, starts from 60 equal-width bins.

        Examples
        --------
        >>> len(Bins.grid(10)), len(Bins.grid(7)), len(Bins.grid(10, coarse=True))
        (648, 888, 120)
        """
        wanted = Bins.of(bins)
        least = _GRID_DIVISORS if coarse else _GRID_BINS
        return _grid(len(wanted), least) if wanted.is_uniform else wanted

    @staticmethod
    def tie_grid(bins: BinsLike = 10) -> Bins:
        """Return the coarser grid for what ties models, or the rows of a group, together.

        It has one entry per pair of bins, so 60 equal-width bins are enough, or as many as the
        number asked for divides, up to 120. Where there is no such number, these bins are the grid.

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
        """Return at most n bins that hold about the same number of these predictions.

        Equal predictions always share a bin, so with many ties there are fewer than n bins;
        none of them is empty, and two different predictions are enough for two bins. A weight of
        k is the prediction k times.

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
        """Read what a `bins=` argument may be: an int, `Bins`, or edges.

        Examples
        --------
        >>> Bins.of(10) == Bins.uniform(10)
        True
        """
        if isinstance(bins, Bins):
            return bins
        if isinstance(bins, int | float | str | np.generic) or bins is None:
            return Bins.uniform(cast("int", bins))
        return Bins(cast("Sequence[float]", bins))

    def locate(self, y_prob: npt.ArrayLike) -> npt.NDArray[np.intp]:
        """Give the number of the bin each prediction belongs to, from 0.

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


@lru_cache(maxsize=64)
def _uniform(n: int) -> Bins:
    return Bins(np.arange(n + 1) / n)


def _present(y_prob: npt.ArrayLike, sample_weight: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return predictions and weights, checked, without the rows of weight 0."""
    data = rows(y_prob, y_prob, sample_weight, names=Names(y_true="y_prob"))
    check_weights_and_votes(data)
    w = as_float64(np.asarray(data.sample_weight))
    if not w.any():
        refuse_no_weight(data)
    return as_float64(data.y_prob)[w > 0], w[w > 0]


_GRID_BINS, _GRID_DIVISORS, _MOST_GRID_BINS = 600, 60, 6000
_GRID_RATIO, _GRID_END = 1.5, 1e-7
_MOST_TIED_BINS = 120


@lru_cache(maxsize=64)
def _grid(n: int, least: int) -> Bins:
    shared = math.lcm(n, _GRID_DIVISORS)
    # Where no multiple is small enough, the grid gives these bins and no others.
    uniform = n if shared > _MOST_GRID_BINS else shared * math.ceil(least / shared)
    number = math.ceil(math.log(1 / uniform / _GRID_END, _GRID_RATIO))
    cuts = 1 / uniform / _GRID_RATIO ** np.arange(1, number + 1)
    inner = np.arange(1, uniform) / uniform
    return Bins(np.concatenate(([0.0], cuts[::-1], inner, 1 - cuts, [1.0])))


def _off_the_ends(inner: FloatArray, p: Column) -> FloatArray:
    """Move edges that would leave the first or last bin empty, where many predictions tie."""
    least = float(p.min())
    if inner.size and inner[0] <= least:  # at the least prediction: take the next one up
        above = p[p > least]
        inner = np.append(inner[inner > least], as_float64(above).min() if above.size else ())
    if (inner == 1).any():  # at 1, where no bin can start: anywhere between the last two values
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
    falling = ~(edges[1:] > edges[:-1])  # ~(>) rather than <=, so that NaN counts as falling
    if falling.any():
        first = int(falling.argmax())
        message = (
            f"{rule}: {falling.sum()} of {falling.size} steps do not, the first is from "
            f"{float(edges[first])!r} to {float(edges[first + 1])!r}. "
            "Sort the edges and drop duplicates."
        )
        raise InputError(message)
