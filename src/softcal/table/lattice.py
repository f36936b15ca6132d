"""Residuals on a fine lattice of [0, 1]: one pass, after which nothing depends on the rows.

Each residual w (p - y) is split between the two nodes beside its prediction, in proportion to
how near they are ("linear binning"). That keeps the total and the mean position, so what a smooth
function sees of the lattice differs from what it sees of the rows by its curvature alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from softcal.door.inputs import FloatArray, Rows, all_valid
from softcal.parallel import in_order
from softcal.table.kernel import BLOCK, LARGE

if TYPE_CHECKING:
    from collections.abc import Callable

CELLS = 1 << 14
"""Nodes lie at 0, 1/CELLS, ..., 1. A power of two, so that the place of a p is exact."""

_Block = tuple[FloatArray, FloatArray, FloatArray | None]


class Lattice(NamedTuple):
    """Residuals by node, and the total weight of the rows."""

    residual: FloatArray
    weight: float


def residual_lattice(rows: Rows) -> Lattice | None:
    """Put the residuals of the rows on the lattice, or give None when a value breaks the rules."""
    n = rows.y_prob.size
    nodes_of = _numpy_nodes if n <= LARGE else _compiled_nodes(rows)
    parts = in_order(nodes_of, rows.blocks(BLOCK), at_most=-(-n // BLOCK))
    total, weight = np.zeros(CELLS + 1), 0.0
    for part in parts:
        if part is None:
            return None
        total += part.residual
        weight += part.weight
    return Lattice(total, weight)


def spread(place: FloatArray, mass: FloatArray) -> FloatArray:
    """Split masses at places in [0, 1] between the nodes beside them."""
    scaled = place * CELLS
    node = scaled.astype(np.intp)
    right = mass * (scaled - node)
    nodes = np.zeros(CELLS + 2)
    nodes[:-1] += np.bincount(node, mass - right, CELLS + 1)
    nodes[1:] += np.bincount(node, right, CELLS + 1)
    return nodes[:-1]


def _numpy_nodes(block: _Block) -> Lattice | None:
    p, y, w = block
    if not all_valid(p, y, w):
        return None
    d = p - y
    return Lattice(spread(p, d if w is None else w * d), _total(block))


def _compiled_nodes(rows: Rows) -> Callable[[_Block], Lattice | None]:
    # Imported here, since it imports Numba: a quarter of a second, once.
    from softcal.table.compiled import add_to_lattice, call_until_compiled

    def add_block(block: _Block) -> Lattice | None:
        nodes = np.zeros(CELLS + 2)
        valid = add_to_lattice(*map(_locked, block), nodes)
        return Lattice(nodes[:-1], _total(block)) if valid else None

    empty = _locked(np.empty(0))
    weight = None if rows.sample_weight is None else empty
    call_until_compiled(add_to_lattice, empty, empty, weight, np.zeros(CELLS + 2))
    return add_block


def _locked(column: FloatArray | None) -> FloatArray | None:
    """Make a read-only view: Numba compiles anew for those, so all are."""
    if column is None:
        return None
    view = column.view()
    view.setflags(write=False)
    return view


def _total(block: _Block) -> float:
    p, _, w = block
    return float(p.size if w is None else w.sum())
