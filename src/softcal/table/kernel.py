"""Compute sums per bin from rows, and validate the values in the same pass.

The loop is `softcal._native`, in C++ (folder `native` of the sources). If no compiler was found at
installation, `softcal.table.numpy_kernel` provides the same functions. The order of additions
depends only on the index of a row. The result is therefore identical for every number of threads
and every instruction set.

`totals(p, y, w, m, bins)` calls the loop. It returns an array of shape (18, bins), one row for each
of `SUM_NAMES`, or None if a value is invalid. `bin_sums(rows, bins)` names these rows.
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
    from softcal import _native as loops
except ImportError:  # no compiler was found at installation
    from softcal.table import numpy_kernel as loops  # type: ignore[no-redef]

native_limits: Any = getattr(loops, "limits", None)
"""The limits of SMECE in C++; None without the extension, because NumPy then computes them."""

_LARGE = 200_000
"""The number of values from which threads save more time than starting them takes."""


@dataclass(frozen=True, eq=False)
class Sums:
    """The sums that a table stores for each bin. All of them can be added.

    p is the prediction, y the label, and d = p - y. w is the weight (1 by default), and m the
    number of votes, if given. The sum of w p is not stored, because it is label + residual.
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
    votes: FloatArray  #               sum m, 0 for rows without m
    repeated: FloatArray  #            rows with m >= 2
    vote_floor: FloatArray  #          sum w^2 p(1-p)/m
    vote_noise: FloatArray  #          sum w y(1-y)/(m-1) over rows with m >= 2
    hard_residual: FloatArray  #       sum w (p-h) with h = [y > 1/2], the hardened label
    hard_residual_sq: FloatArray  #    sum w (p-h)^2
    hard_residual_var: FloatArray  #   sum w^2 (p-h)^2
    outcome_prob_var: FloatArray  #    sum w^2 p(1-p) over rows with y = 0 or 1 and m not given
    outcome_residual_var: FloatArray  # sum w^2 d^2 over the same rows

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        """Iterate over the sums in the order of `SUM_NAMES`."""
        return iter(vars(self).values())


SUM_NAMES = tuple(field.name for field in fields(Sums))

_DIRECT = frozenset(map(np.dtype, "?bBhHiIlLqQefd"))


def readable(column: Column) -> Column:
    """Return a column with a dtype the loop can read; only rare dtypes are copied."""
    return column if column.dtype in _DIRECT else column.astype(np.float64)


def threads_for(numbers: int) -> int:
    """Return how many threads to use for this number of values."""
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
    lines: int = 18,
) -> FloatArray | None:
    """Return the sums of each bin, of shape (18, bins), or None if a value is invalid.

    Two-dimensional p and y are classes, whose rows must sum to 1 within `SUM_TOLERANCE`. The result
    then has shape (classes, 18, bins). With the cell index of each row it has shape
    (cells, 18, bins).
    """
    guide = bins.guide
    n_bins = guide.upper.size
    cut = guide.equal != n_bins
    tables = p.shape[1] if p.ndim == 2 else cells
    shape = (lines, n_bins) if p.ndim == 1 and cell is None else (tables, lines, n_bins)
    out = np.empty(shape)
    valid = loops.sums(
        readable(p), readable(y),
        None if w is None else readable(w), None if m is None else readable(m),
        cell, guide.equal, guide.first, guide.starts if cut else None, guide.upper if cut else None,
        SUM_TOLERANCE, tables, lines, out, threads_for(p.size),
    )  # fmt: skip
    return out if valid else None


def gaps(
    p: Column,
    y: Column,
    w: Column | None,
    bins: Bins,
    *,
    cell: npt.NDArray[np.intp] | None = None,
    cells: int = 1,
) -> FloatArray | None:
    """Return only `weight` and `residual` of each bin, of shape (2, bins); None as in `totals`.

    Classes and cells add a dimension, as in `totals`. All digits equal those of `totals`, but rows
    without weights take less time.
    """
    return totals(p, y, w, None, bins, cell=cell, cells=cells, lines=2)


def bin_sums(rows: Rows, bins: Bins) -> Sums | None:
    """Return the sums of each bin by name, or None if a value is invalid."""
    found = totals(rows.y_prob, rows.y_true, rows.sample_weight, rows.n_votes, bins)
    return None if found is None else as_sums(found)


def as_sums(found: FloatArray) -> Sums:
    """Convert the array of `totals` to `Sums`."""
    sums = object.__new__(Sums)  # the constructor is slower: it sets one attribute at a time
    named = vars(sums)
    named.update(zip(SUM_NAMES, found, strict=True))
    named["count"] = found[0].astype(np.int64)
    return sums


_MOST_DENSE = 1 << 18  # bins of all cells together


def sparse_sums(
    rows: Rows, bins: Bins, cell: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.intp], Sums] | None:
    """Compute the sums of each cell and bin that contains rows.

    Return the keys, cell * bins + bin, in increasing order, and their sums. Return None if a value
    is invalid.
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
    # Too many combinations for a dense array: treat each one that occurs as a cell.
    keys, number = np.unique(cell * len(bins) + bins.guide.locate(p), return_inverse=True)
    found = totals(*columns, Bins.uniform(1), cell=number, cells=keys.size)
    return None if found is None else (keys, as_sums(np.ascontiguousarray(found[:, :, 0].T)))


def class_sums(data: ClassRows, bins: Bins) -> list[Sums]:
    """Return the sums of each class and bin; raise if a value is invalid."""
    found = totals(data.y_prob, data.y_true, data.sample_weight, data.n_votes, bins)
    if found is None:
        refuse(data)
    return [as_sums(each) for each in found]


def class_gaps(data: ClassRows, bins: Bins) -> FloatArray:
    """Return `gaps` of each class, of shape (classes, 2, bins); raise if a value is invalid."""
    found = gaps(data.y_prob, data.y_true, data.sample_weight, bins)
    if found is None:
        refuse(data)
    return found


def residuals_by_sample(y: FloatArray, p: FloatArray, bins: Bins) -> FloatArray:
    """Return the sum of p - y in each bin, for each row of a matrix, of shape (rows, bins)."""
    sample = np.repeat(np.arange(len(p)), p.shape[1])
    found = gaps(p.ravel(), y.ravel(), None, bins, cell=sample, cells=len(p))
    assert found is not None, "these are probabilities"  # noqa: S101
    return found[:, 1]


def top_label_rows(data: ClassRows) -> Rows:
    """Return the predicted class's probability, and the label's mass on it, as rows."""
    n = data.y_prob.shape[0]
    best, mass = np.empty(n), np.empty(n)
    p, y = readable(data.y_prob), readable(data.y_true)
    if not loops.top(p, y, SUM_TOLERANCE, best, mass, threads_for(p.size)):
        refuse(data)
    return data.column(0)._replace(y_prob=best, y_true=mass)


def is_majority(data: ClassRows, mass: Column) -> FloatArray:
    """Return 1 where the predicted class has the largest share of the label, given its share."""
    marks: FloatArray = (mass > 0.5).astype(np.float64)
    # Compare all classes only where the share does not decide; 0.51 allows for rounding.
    rows = np.flatnonzero((mass > 0) & (mass <= 0.51))
    marks[rows] = data.y_true[rows].argmax(axis=1) == data.y_prob[rows].argmax(axis=1)
    return marks


def residual_lattice(rows: Rows, cells: int) -> tuple[FloatArray, FloatArray] | None:
    """Split each residual w (p - y) between the two nodes next to p, at 0, 1/cells, ..., 1.

    Return the sums of the nodes, and those of w, w p, w p^2, and w^2, or None if a value is
    invalid.
    """
    nodes = np.zeros(cells + 6)
    p, y, w = rows.y_prob, rows.y_true, rows.sample_weight
    weight = None if w is None else readable(w)
    if not loops.lattice(readable(p), readable(y), weight, cells, nodes, threads_for(p.size)):
        return None
    return nodes[: cells + 1], nodes[cells + 2 :]


def cross_entropy(y: FloatArray, p: FloatArray) -> FloatArray:
    """Return each row's log loss; 0 log 0 is 0."""
    from scipy.special import xlog1py, xlogy

    loss: FloatArray = -xlogy(y, p) - xlog1py(1 - y, -p)
    return loss
