"""The hot loop: rows in, per-bin sums out, in one pass and with the values checked.

The loop is `softcal._native`, in C++ (the folder `native` of the sources); where no compiler was
found at installation, `softcal.table.numpy_kernel` has the same functions. The order of additions
depends on the number of a row alone, so the same data gives the same digits whatever the number of
threads and the instruction set.

`totals(p, y, w, m, bins)` is the one call of it, for code that needs no more than numbers: it
returns an array of shape (18, bins), one row for each of `SUM_NAMES`, or None when a value breaks
the rules. `bin_sums(rows, bins)` gives these rows their names.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from softcal import _parallel
from softcal._validation.inputs import FloatArray, Rows, all_valid, as_float64
from softcal._validation.multiclass import refuse
from softcal._validation.rules import SUM_TOLERANCE
from softcal.bins import Bins

if TYPE_CHECKING:
    from collections.abc import Iterator

    from softcal._validation.arrays import Column
    from softcal._validation.multiclass import ClassRows

try:
    from softcal import _native as road
except ImportError:  # no compiler was found at installation
    from softcal.table import numpy_kernel as road  # type: ignore[no-redef]

_LARGE = 200_000
"""From so many numbers on threads save more time than starting them takes."""


@dataclass(frozen=True, eq=False)
class Sums:
    """What the table keeps of the rows of each bin. Everything adds, nothing else is kept.

    With p the prediction, y the label, d = p - y, w the weight (1 when none is given) and
    m the number of votes behind the label, where it was given. The sum of w p is not kept:
    it is label + residual. The last five are NaN in tables of schema 1 whose labels are soft: the
    file does not say. A NaN stays one in every sum of tables.
    """

    count: npt.NDArray[np.int64]  #    rows of positive weight
    weight: FloatArray  #              sum w
    weight_sq: FloatArray  #           sum w^2
    label: FloatArray  #               sum w y
    residual: FloatArray  #            sum w d
    residual_sq: FloatArray  #         sum w d^2
    residual_var: FloatArray  #        sum w^2 d^2
    prob_var: FloatArray  #            sum w^2 p(1-p)
    label_var: FloatArray  #           sum w y(1-y), 0 exactly when all labels are 0 or 1
    votes: FloatArray  #               sum m, 0 for rows that do not say
    repeated: FloatArray  #            rows with m >= 2
    vote_floor: FloatArray  #          sum w^2 p(1-p)/m
    vote_noise: FloatArray  #          sum w y(1-y)/(m-1) over rows with m >= 2
    hard_residual: FloatArray  #       sum w (p-h) with h = [y > 1/2], the hardened label
    hard_residual_sq: FloatArray  #    sum w (p-h)^2
    hard_residual_var: FloatArray  #   sum w^2 (p-h)^2
    outcome_prob_var: FloatArray  #    sum w^2 p(1-p) over rows with y = 0 or 1 and m not given
    outcome_residual_var: FloatArray  # sum w^2 d^2 over the same rows

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        """Walk through the sums in the order of `SUM_NAMES`."""
        return iter(vars(self).values())


SUM_NAMES = tuple(field.name for field in fields(Sums))
HARDENED = SUM_NAMES[SUM_NAMES.index("hard_residual") :]
"""The sums of hardened labels and of labels that are outcomes, which schema 1 did not keep."""


def unknown_hardened(shape: int | tuple[int, ...]) -> dict[str, FloatArray]:
    """Return the sums of hardened labels as not known, which is NaN."""
    return {name: np.full(shape, np.nan) for name in HARDENED}


_DIRECT = frozenset(map(np.dtype, "?bBhHiIlLqQefd"))


def readable(column: Column) -> Column:
    """Return a column as the loop reads it: only rare dtypes are copied."""
    return column if column.dtype in _DIRECT else column.astype(np.float64)


def threads_for(numbers: int) -> int:
    """Return how many threads should add up so many numbers."""
    return 1 if numbers < _LARGE else _parallel.free_cores()


def totals(
    p: Column,
    y: Column,
    w: Column | None,
    m: Column | None,
    bins: Bins,
    *,
    cell: npt.NDArray[np.intp] | None = None,
    cells: int = 1,
    tolerance: float = SUM_TOLERANCE,
) -> FloatArray | None:
    """Return the sums of each bin, of shape (18, bins); None when some value breaks the rules.

    Two-dimensional p and y are classes, whose rows sum to 1 within the tolerance: the result is
    then of shape (classes, 18, bins). With the number of each row's cell it is (cells, 18, bins).
    """
    guide = bins.guide
    n_bins = guide.upper.size
    cut = guide.equal != n_bins
    tables = p.shape[1] if p.ndim == 2 else cells
    shape = (18, n_bins) if p.ndim == 1 and cell is None else (tables, 18, n_bins)
    out = np.empty(shape)
    valid = road.sums(
        readable(p), readable(y),
        None if w is None else readable(w), None if m is None else readable(m),
        cell, guide.equal, guide.first, guide.starts if cut else None, guide.upper if cut else None,
        tolerance, tables, out, threads_for(p.size),
    )  # fmt: skip
    return out if valid else None


def bin_sums(rows: Rows, bins: Bins) -> Sums | None:
    """Add up the rows of each bin, or return None when some value breaks the rules."""
    found = totals(rows.y_prob, rows.y_true, rows.sample_weight, rows.n_votes, bins)
    return None if found is None else as_sums(found)


def as_sums(found: FloatArray) -> Sums:
    """Name the rows of `totals`."""
    sums = object.__new__(Sums)  # its own constructor sets one name at a time
    named = vars(sums)
    named.update(zip(SUM_NAMES, found, strict=True))
    named["count"] = found[0].astype(np.int64)
    return sums


_MOST_DENSE = 1 << 18  # bins of all cells together


def sparse_sums(
    rows: Rows, bins: Bins, cell: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.intp], Sums] | None:
    """Add up the rows of each cell and bin that has any.

    Returns the keys, cell * bins + bin, in rising order, and their sums; None when some value
    breaks the rules.
    """
    columns = (rows.y_prob, rows.y_true, rows.sample_weight, rows.n_votes)
    cells = int(cell.max(initial=0)) + 1
    if cells * len(bins) <= min(cell.size, _MOST_DENSE):
        found = totals(*columns, bins, cell=cell, cells=cells)
        if found is None:
            return None
        flat = np.moveaxis(found, 1, 0).reshape(18, -1)
        filled = np.flatnonzero(flat[0])
        return filled, as_sums(np.ascontiguousarray(flat[:, filled]))
    p = as_float64(rows.y_prob)
    if not all_valid(p, p, None):
        return None
    # Too many to go through one by one: number those there are, and let each be a cell.
    keys, number = np.unique(cell * len(bins) + bins.guide.locate(p), return_inverse=True)
    found = totals(*columns, Bins.uniform(1), cell=number, cells=keys.size)
    return None if found is None else (keys, as_sums(np.ascontiguousarray(found[:, :, 0].T)))


def class_sums(data: ClassRows, bins: Bins) -> list[Sums]:
    """Add up the rows of each class and bin, or refuse when some value breaks the rules."""
    found = totals(data.y_prob, data.y_true, data.sample_weight, data.n_votes, bins)
    if found is None:
        refuse(data)
    return [as_sums(each) for each in found]


def column_residuals(y: FloatArray, p: FloatArray, bins: Bins) -> FloatArray:
    """Return the sum of p - y in each bin, for each column, of shape (columns, bins)."""
    found = totals(p, y, None, None, bins, tolerance=np.inf)
    assert found is not None, "these are probabilities"  # noqa: S101
    return found[:, SUM_NAMES.index("residual")]


def top_label_rows(data: ClassRows) -> Rows:
    """Return the predicted class's probability, and the label's mass on it, as rows."""
    n = data.y_prob.shape[0]
    best, mass = np.empty(n), np.empty(n)
    p, y = readable(data.y_prob), readable(data.y_true)
    if not road.top(p, y, SUM_TOLERANCE, best, mass, threads_for(p.size)):
        refuse(data)
    return data.column(0)._replace(y_prob=best, y_true=mass)


def is_majority(data: ClassRows, mass: Column) -> FloatArray:
    """Return 1 where the predicted class, of this share of the label, has the largest share."""
    marks: FloatArray = (mass > 0.5).astype(np.float64)
    # All classes are looked at only where the share leaves it open; 0.51 allows for rounding.
    rows = np.flatnonzero((mass > 0) & (mass <= 0.51))
    marks[rows] = data.y_true[rows].argmax(axis=1) == data.y_prob[rows].argmax(axis=1)
    return marks


def residual_lattice(rows: Rows, cells: int) -> tuple[FloatArray, float] | None:
    """Split each residual w (p - y) between the two nodes beside p, at 0, 1/cells, ..., 1.

    Returns the sums of the nodes and of the weights; None when some value breaks the rules.
    """
    nodes = np.zeros(cells + 3)
    p, y, w = rows.y_prob, rows.y_true, rows.sample_weight
    weight = None if w is None else readable(w)
    if not road.lattice(readable(p), readable(y), weight, nodes, threads_for(p.size)):
        return None
    return nodes[: cells + 1], float(nodes[-1])


def cross_entropy(y: FloatArray, p: FloatArray) -> FloatArray:
    """Return each row's log loss; 0 log 0 is 0."""
    from scipy.special import xlog1py, xlogy

    loss: FloatArray = -xlogy(y, p) - xlog1py(1 - y, -p)
    return loss
