"""The hot loop: rows in, per-bin sums out, in one pass and with the values checked.

Two roads give the same sums. Up to `LARGE` rows NumPy's bincount does it, which needs no
compiler and takes a few dozen microseconds; above, the loop of `softcal.table.compiled`, on all
cores. Which road is taken depends on the number of rows only, and both cut the rows in the same
fixed way on every machine, so the same data always gives the same digits.

A long row of additions drifts: 0.1 added a million times in float64 is off in the eleventh
digit. So neither road adds more than 1,024 rows (8 a bin, where there are many bins) before it
puts the partial sum aside.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from softcal._parallel import in_order
from softcal._validation.inputs import FloatArray, Rows, all_valid, as_float64
from softcal._validation.multiclass import refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from softcal._validation.arrays import Column
    from softcal._validation.multiclass import ClassRows
    from softcal.bins import Bins

LARGE = 1 << 16
"""Above so many rows it is worth loading Numba, which takes a quarter of a second."""

BLOCK = 1 << 17
"""How many rows a thread adds up at a time: a matter of digits, so the same on every machine."""


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


# The order of the columns both roads fill. The first six suffice when no row has a weight, the
# next three join when there are weights, the next four when there are votes. What depends on
# whether a label is soft comes last, one more of it where there are weights: where all labels are
# 0 or 1, these sums are copies of others.
_PLAIN = ("count", "label", "residual", "residual_sq", "prob_var", "label_var")
_WEIGHTS = ("weight", "weight_sq", "residual_var")
_VOTES = ("votes", "repeated", "vote_floor", "vote_noise")
_HARD = ("hard_residual", "hard_residual_sq", "outcome_prob_var", "outcome_residual_var")
_HARD_WITH_WEIGHTS = (*_HARD, "hard_residual_var")


def bin_sums(rows: Rows, bins: Bins) -> Sums | None:
    """Add up the rows of each bin, or give None when some value breaks the rules."""
    add_up = _numpy_sums if rows.y_prob.size <= LARGE else _compiled_sums
    totals = add_up(rows, bins)
    if totals is None:
        return None
    return as_sums(rows, totals)


def as_sums(rows: Rows, totals: list[npt.NDArray[Any]]) -> Sums:
    """Name the columns of the totals, and fill in those that follow from the others."""
    found = dict(zip(columns_of(rows), totals, strict=True))
    found["count"] = count = found["count"].astype(np.int64)
    if rows.sample_weight is None:
        found["weight"] = found["weight_sq"] = count.astype(np.float64)
        found["residual_var"] = found["residual_sq"]
        found["hard_residual_var"] = found["hard_residual_sq"]
    if rows.n_votes is None:
        found.update(dict.fromkeys(_VOTES, np.zeros(count.size)))
    return Sums(**found)


def columns_of(rows: Rows) -> tuple[str, ...]:
    """Give the names of the columns of the totals, in their order."""
    weighted = rows.sample_weight is not None
    votes = () if rows.n_votes is None else _VOTES
    if weighted:
        return _PLAIN + _WEIGHTS + votes + _HARD_WITH_WEIGHTS
    return _PLAIN + votes + _HARD


def sums_of_outcomes(plain: Sequence[FloatArray], *, votes: bool) -> tuple[FloatArray, ...]:
    """Give the sums of hardened labels where every label is 0 or 1: copies of the plain sums."""
    residual, residual_sq, prob_var = plain[2], plain[3], plain[4]
    none = np.zeros_like(residual)
    variances = (none, none) if votes else (prob_var, plain[8] if len(plain) > 6 else residual_sq)
    extra = (residual, residual_sq, *variances)
    return (*extra, plain[8]) if len(plain) > 6 else extra


def rows_per_partial_sum(n_bins: int) -> int:
    """Give how many rows are added up before the partial sums are put aside."""
    # More for many bins, or setting the partial sums aside would cost more than the rows.
    return 1024 if n_bins <= 128 else 32 * n_bins


def _numpy_sums(rows: Rows, bins: Bins) -> list[npt.NDArray[Any]] | None:
    p, y = as_float64(rows.y_prob), as_float64(rows.y_true)
    w = None if rows.sample_weight is None else as_float64(rows.sample_weight)
    m = None if rows.n_votes is None else as_float64(rows.n_votes)
    if not all_valid(p, y, w, m):
        return None
    n_bins = len(bins)
    cell = bins.guide.locate(p)
    run = rows_per_partial_sum(n_bins)
    n_runs = -(-p.size // run)
    if n_runs > 1:
        cell += np.arange(p.size) // run * n_bins

    def added(terms: Iterator[npt.NDArray[np.floating] | None]) -> list[npt.NDArray[Any]]:
        sums = [np.bincount(cell, term, n_runs * n_bins) for term in terms]
        return sums if n_runs == 1 else [each.reshape(n_runs, n_bins).sum(axis=0) for each in sums]

    plain = added(_terms(p, y, w, m))
    if ((y > 0) & (y < 1)).any():
        return plain + added(_hardened_terms(p, y, w, votes=m is not None))
    own = plain[: 6 if w is None else 9]
    return [*plain, *sums_of_outcomes(own, votes=m is not None)]


def _terms(
    p: FloatArray, y: FloatArray, w: FloatArray | None, m: FloatArray | None
) -> Iterator[npt.NDArray[np.floating] | None]:
    """Give what each row adds to each sum, in the order of the columns."""
    d = p - y
    dd = d * d
    p_var = p * (1 - p)
    y_var = y * (1 - y)
    if w is None:
        yield from (None, y, d, dd, p_var, y_var)
    else:
        ww = w * w
        yield from ((w > 0).astype(np.float64), w * y, w * d, w * dd)
        p_var = ww * p_var
        y_var = w * y_var
        yield from (p_var, y_var, w, ww, ww * dd)
    if m is not None:
        here = 1.0 if w is None else w > 0
        repeated = (m >= 2) * here
        yield from (m * here, repeated, p_var / m, repeated * y_var / np.maximum(m - 1, 1))


def _hardened_terms(
    p: FloatArray, y: FloatArray, w: FloatArray | None, *, votes: bool
) -> Iterator[npt.NDArray[np.floating]]:
    """Give what each row adds to the sums of hardened labels and of outcomes."""
    e = p - (y > 0.5)
    d = p - y
    # A label of exactly 0 or 1 is an outcome, unless it is known to be a share of votes.
    outcome = np.zeros(y.size) if votes else ((y == 0) | (y == 1)).astype(np.float64)
    # Multiplied in the order of the plain terms, so that 0/1 labels give their digits.
    ee, dd, p_var = e * e, outcome * (d * d), outcome * (p * (1 - p))
    if w is None:
        yield from (e, ee, p_var, dd)
    else:
        ww = w * w
        yield from (w * e, w * ee, ww * p_var, ww * dd, ww * ee)


_ROWS_OF_A_RUN = 1024


def sparse_sums(
    rows: Rows, bins: Bins, cell: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.intp], Sums] | None:
    """Add up the rows of each cell and bin that has any: for cells too many to visit one by one.

    Returns the keys, cell * bins + bin, in rising order, and their sums; None when some value
    breaks the rules.
    """
    p, y = as_float64(rows.y_prob), as_float64(rows.y_true)
    w = None if rows.sample_weight is None else as_float64(rows.sample_weight)
    m = None if rows.n_votes is None else as_float64(rows.n_votes)
    if not all_valid(p, y, w, m):
        return None
    key = cell * len(bins) + bins.guide.locate(p)
    order = key.argsort(kind="stable")
    key = key[order]
    is_first = np.append(True, key[1:] != key[:-1])
    first = np.flatnonzero(is_first)
    # Long runs of one key are added up in parts, so that rounding does not drift.
    place = np.arange(key.size) - np.repeat(first, np.diff(np.append(first, key.size)))
    starts = np.flatnonzero(place % _ROWS_OF_A_RUN == 0)
    of_keys = np.flatnonzero(is_first[starts])
    ones = np.ones(key.size)

    def added(term: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
        each = ones if term is None else np.asarray(term, dtype=np.float64)[order]
        out: npt.NDArray[Any] = np.add.reduceat(np.add.reduceat(each, starts), of_keys)
        return out

    terms = (*_terms(p, y, w, m), *_hardened_terms(p, y, w, votes=m is not None))
    return key[first], as_sums(rows, [added(term) for term in terms])


def _compiled_sums(rows: Rows, bins: Bins) -> list[npt.NDArray[Any]] | None:
    # Imported here, since it imports Numba: a quarter of a second, once.
    from softcal.table.compiled import add_block, compile_for

    run = rows_per_partial_sum(len(bins))
    shape = (len(bins), len(columns_of(rows)))

    def block_sums(part: slice) -> FloatArray | None:
        totals = np.zeros(shape)
        valid = add_block(*_block(rows, part), bins.edges, bins.guide.starts, run, totals)
        return totals if valid else None

    compile_for(*_block(rows, slice(0)))  # before the threads start
    total = joined_blocks(block_sums, rows.y_prob.size, len(bins))
    return None if total is None else list(np.ascontiguousarray(total.T))


def joined_blocks(
    block_sums: Callable[[slice], FloatArray | None], n_rows: int, n_bins: int
) -> FloatArray | None:
    """Add up what all blocks of the rows give, on all cores; None if some block gives that."""
    size = max(BLOCK, rows_per_partial_sum(n_bins))
    parts = [slice(start, start + size) for start in range(0, n_rows, size)]
    total = lost = np.zeros(())
    for block in in_order(block_sums, parts, at_most=len(parts)):
        if block is None:
            return None
        # Kahan's sum: what rounding loses of one block is added with the next.
        addend = block - lost
        longer = total + addend
        lost = (longer - total) - addend
        total = longer
    return total


def _block(rows: Rows, part: slice) -> list[npt.NDArray[Any] | None]:
    """Cut out some rows as the loop can read them: contiguous float64 or float32."""
    columns = (rows.y_prob, rows.y_true, rows.sample_weight, rows.n_votes)
    return [None if column is None else loop_ready(column[part]) for column in columns]


def loop_ready(part: Column) -> Column:
    """Give a block of any shape as the loop reads it: contiguous, float64 or float32."""
    native = part.dtype in (np.float32, np.float64)
    block = np.ascontiguousarray(part) if native else as_float64(part)
    # Numba compiles anew for read-only arrays, which half of our callers have: so all are.
    block.setflags(write=False)
    return block


_ROWS_AT_ONCE = 8192  # copied, where the rows do not lie one after another


def class_sums(data: ClassRows, bins: Bins) -> list[Sums]:
    """Add up the rows of each class and bin, or refuse when some value breaks the rules."""
    if data.y_prob.shape[0] <= LARGE:
        data.check()
        found = [bin_sums(data.column(c), bins) for c in range(len(data.classes))]
    else:
        found = _compiled_class_sums(data, bins)
    sums = [each for each in found if each is not None]
    if len(sums) < len(data.classes):
        refuse(data)
    return sums


def _compiled_class_sums(data: ClassRows, bins: Bins) -> list[Sums | None]:
    from softcal.table.compiled import add_class_block, compile_for

    n, n_classes = data.y_prob.shape
    columns = (data.y_prob, data.y_true, data.sample_weight, data.n_votes)
    run = rows_per_partial_sum(len(bins))
    size = run * max(1, _ROWS_AT_ONCE // run)  # whole runs, so that no digit changes
    shape = (n_classes, len(bins), len(columns_of(data.column(0))))

    def block_sums(block: slice) -> FloatArray | None:
        totals = np.zeros(shape)
        stop = min(block.stop, n)
        for start in range(block.start, stop, size):
            part = slice(start, min(start + size, stop))
            rows = [None if column is None else loop_ready(column[part]) for column in columns]
            if not add_class_block(*rows, bins.edges, bins.guide.starts, run, totals):
                return None
        return totals

    compile_for(*(None if column is None else loop_ready(column[:0]) for column in columns))
    total = joined_blocks(block_sums, n, len(bins))
    if total is None:
        return []
    rows = data.column(0)
    return [as_sums(rows, list(np.ascontiguousarray(sums.T))) for sums in total]


def cross_entropy(y: FloatArray, p: FloatArray) -> FloatArray:
    """Give each row's log loss; 0 log 0 is 0."""
    from scipy.special import xlog1py, xlogy

    loss: FloatArray = -xlogy(y, p) - xlog1py(1 - y, -p)
    return loss


_TOP_ROWS_AT_ONCE = 1 << 14


def top_label_rows(data: ClassRows) -> Rows:
    """Return the predicted class's probability, and the label's mass on it, as rows."""
    n = data.y_prob.shape[0]
    probability, mass = np.empty(n), np.empty(n)
    if n > LARGE:
        _compiled_top(data, probability, mass)
    else:
        for part, (p, y) in data.map_blocks(_top):
            probability[part], mass[part] = p, y
    return data.column(0)._replace(y_prob=probability, y_true=mass)


def is_majority(data: ClassRows) -> FloatArray:
    """Return 1 where the predicted class is the one with the largest share of the label."""
    agree = data.y_true.argmax(axis=1) == data.y_prob.argmax(axis=1)
    marks: FloatArray = agree.astype(np.float64)
    return marks


def _top(p: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    top = p.argmax(axis=0)
    across = np.arange(top.size)
    return p[top, across], y[top, across]


def _compiled_top(data: ClassRows, probability: FloatArray, mass: FloatArray) -> None:
    from softcal.table.compiled import top_of_rows

    def work(part: slice) -> bool:
        p, y = loop_ready(data.y_prob[part]), loop_ready(data.y_true[part])
        return bool(top_of_rows(p, y, probability[part], mass[part]))

    work(slice(0))  # compile before the threads start
    size = _TOP_ROWS_AT_ONCE
    parts = [slice(start, start + size) for start in range(0, mass.size, size)]
    if not all(in_order(work, parts, at_most=len(parts))):
        refuse(data)
