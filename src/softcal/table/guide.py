"""Which bin a prediction belongs to: found exactly, and mostly without a search."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from softcal.door.inputs import FloatArray

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
        return Guide(starts, inner, upper, int(np.diff(starts).max()))

    def locate(self, p: FloatArray) -> npt.NDArray[np.intp]:
        """Give the number of the bin each prediction belongs to, from 0."""
        if self.most_edges > 1:
            return self.inner.searchsorted(p, side="right")
        bin_ = self.starts.take((p * (self.starts.size - 2)).astype(np.intp))
        bin_ += p >= self.upper.take(bin_)
        return bin_
