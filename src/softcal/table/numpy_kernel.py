"""The loops of `softcal._native` in NumPy, for installations without a C++ compiler.

The functions have the same arguments. Their results agree to 1e-13 of the terms added. They are
much slower and run in one thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softcal._validation.inputs import all_valid, as_float64
from softcal.table.terms import terms

if TYPE_CHECKING:
    import numpy.typing as npt

    from softcal._validation.arrays import Column
    from softcal._validation.inputs import FloatArray

_BLOCK = 1 << 16
_SHORT = 1024  # rows that plain summation adds accurately
_GAPS = slice(1, 5, 3)  # weight and residual among the terms


def sums(
    p: Column,
    y: Column,
    w: Column | None,
    m: Column | None,
    cell: Column | None,
    equal: int,
    first: int,  # noqa: ARG001 - a plain search does not need it
    starts: Column | None,  # noqa: ARG001
    upper: FloatArray | None,
    tolerance: float,
    tables: int,
    lines: int,
    out: FloatArray,
    threads: int,  # noqa: ARG001
) -> bool:
    """Write the sums of each bin to `out`, and return False if a row is invalid.

    `out` has shape (tables, lines, bins), with 18 lines for all sums, or 2 for those of the weights
    and the residuals.
    Tables are the classes of two-dimensional p and y, or the cells. `upper` has the upper edges of
    the bins, or is None for `equal` bins of equal width. The classes of a row must sum to 1 within
    `tolerance`.
    """
    upper = np.append(np.arange(1, equal) / equal, np.inf) if upper is None else upper
    n_bins = upper.size
    total = np.zeros((tables, lines, n_bins))
    lost = np.zeros_like(total)
    for start in range(0, p.shape[0], _BLOCK):
        part = slice(start, start + _BLOCK)
        ps, ys = _by_class(p[part]), _by_class(y[part])
        ws, ms = (None if each is None else as_float64(each[part]) for each in (w, m))
        if not all(all_valid(a, b, ws, ms) for a, b in zip(ps, ys, strict=True)):
            return False
        if p.ndim == 2 and not (_sum_to_one(ps, tolerance) and _sum_to_one(ys, tolerance)):
            return False
        block = np.empty_like(total)
        for k, (a, b) in enumerate(zip(ps, ys, strict=True)):
            place = upper.searchsorted(a, side="right")
            if cell is not None:
                place += cell[part] * n_bins
            each = _terms(a, b, ws, ms)[_GAPS if lines == 2 else slice(None)]
            found = np.array([_bincount(place, term, tables * n_bins // len(ps)) for term in each])
            own = slice(None) if cell is not None else slice(k, k + 1)
            block[own] = np.moveaxis(found.reshape(lines, -1, n_bins), 1, 0)
        # Kahan summation: the rounding error of one block is added with the next block.
        addend = block - lost
        longer = total + addend
        lost = (longer - total) - addend
        total = longer
    out[...] = total.reshape(out.shape)
    return True


def lattice(
    p: Column, y: Column, w: Column | None, cells: int, nodes: FloatArray,
    threads: int,  # noqa: ARG001
) -> bool:  # fmt: skip
    """Split each residual w (p - y) between the two nodes next to p, at 0, 1/cells, ..., 1.

    An unused node follows, and then the sums of w, w p, w p^2, and w^2.
    """
    for start in range(0, p.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        ps, ys = as_float64(p[part]), as_float64(y[part])
        ws = np.ones(ps.size) if w is None else as_float64(w[part])
        if not all_valid(ps, ys, ws):
            return False
        scaled = ps * cells
        node = scaled.astype(np.intp)
        mass = ws * (ps - ys)
        right = mass * (scaled - node)
        nodes[:-5] += np.bincount(node, mass - right, cells + 1)
        nodes[1:-4] += np.bincount(node, right, cells + 1)
        weighted = ws * ps
        nodes[-4:] += ws.sum(), weighted.sum(), (weighted * ps).sum(), (ws * ws).sum()
    return True


def top(
    p: Column, y: Column, tolerance: float, best: FloatArray, mass: FloatArray,
    threads: int,  # noqa: ARG001
) -> bool:  # fmt: skip
    """Write the highest probability of each row, and the label's mass on that class."""
    for start in range(0, best.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        ps, ys = _by_class(p[part]), _by_class(y[part])
        if not (
            all_valid(ps, ys, None) and _sum_to_one(ps, tolerance) and _sum_to_one(ys, tolerance)
        ):
            return False
        highest = ps.argmax(axis=0)
        across = np.arange(highest.size)
        best[part], mass[part] = ps[highest, across], ys[highest, across]
    return True


def _by_class(block: Column) -> FloatArray:
    """Return a block of rows as one contiguous float64 row per class."""
    return np.atleast_2d(as_float64(block.T))


def _sum_to_one(block: FloatArray, tolerance: float) -> bool:
    return bool((np.abs(block.sum(axis=0) - 1) <= tolerance).all())


def _bincount(place: npt.NDArray[np.intp], term: FloatArray, n_places: int) -> FloatArray:
    """Add up the terms of a block by place, accurately: long sums split each term in two.

    The high parts are multiples of a unit of which a block's sum has fewer than 2^53, so they add
    without rounding. The low parts are so small that their rounding errors do not matter.
    """
    if term.size <= _SHORT:
        return np.bincount(place, term, n_places).astype(np.float64, copy=False)
    exponent = np.frexp(max(term.max(), -term.min()))[1]
    anchor = 1.5 * 2.0 ** (exponent + _BLOCK.bit_length() - 1)
    high = (term + anchor) - anchor
    parts = (np.bincount(place, part, n_places) for part in (high, term - high))
    return np.add(*parts, dtype=np.float64)


def _terms(
    p: FloatArray, y: FloatArray, w: FloatArray | None, m: FloatArray | None
) -> list[FloatArray]:
    """Return the terms of each sum of `softcal.table.kernel.Sums`."""
    with np.errstate(divide="ignore", invalid="ignore"):  # one vote has no vote noise
        w = np.ones(p.size) if w is None else w
        return list(terms(p, y, w, m, lambda where, value: np.where(where, value, 0.0)).values())
