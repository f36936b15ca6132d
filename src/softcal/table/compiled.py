"""The loop of the kernel, compiled by Numba. Imported only when there are many rows.

Numba keeps the machine code on disk, so it is compiled once per installation (some seconds)
and loaded later (milliseconds).
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import config, njit

from softcal._validation.rules import LARGEST_WEIGHT, SMALLEST_WEIGHT, SUM_TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from softcal._validation.arrays import Column

_lock = threading.Lock()
_compiled_for: set[tuple[str, ...]] = set()


def _compile(function: Callable[..., Any]) -> Callable[..., Any]:
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:  # no place to write a cache: compile anew in each process
        return njit(nogil=True)(function)


@_compile
def bin_of(p, edges, guide):  # type: ignore[no-untyped-def]
    """Find the bin of one prediction in [0, 1], by the `starts` of `softcal.bins`."""
    # Exact, since the number of cells is a power of two. Unsigned, so that Numba need not look
    # for an index below 0.
    cell = np.uint64(p * (guide.size - 2))
    b = guide[cell]
    last = guide[cell + np.uint64(1)]
    while b < last:
        middle = (b + last + 1) >> 1
        if p >= edges[middle]:
            b = middle
        else:
            last = middle - 1
    return b


@_compile
def add_rows(p, y, w, m, edges, guide, soft, sums):  # type: ignore[no-untyped-def] # noqa: C901
    """Add each row to the sums of its bin; say whether every value kept the rules.

    Where w or m is None, Numba leaves their branches out of the machine code.
    """
    first = sums.shape[1] - (4 if w is None else 5)
    for i in range(p.size):
        p_i = np.float64(p[i])
        y_i = np.float64(y[i])
        # NaN fails every comparison, so it is refused here too.
        if not (0.0 <= p_i <= 1.0 and 0.0 <= y_i <= 1.0):
            return False
        b = bin_of(p_i, edges, guide)
        d = p_i - y_i
        dd = d * d
        p_var = p_i * (1.0 - p_i)
        y_var = y_i * (1.0 - y_i)
        here = 1.0
        if w is None:
            sums[b, 0] += 1.0
            sums[b, 1] += y_i
            sums[b, 2] += d
            sums[b, 3] += dd
            sums[b, 4] += p_var
            sums[b, 5] += y_var
            votes = 6
        else:
            w_i = np.float64(w[i])
            if not (SMALLEST_WEIGHT <= w_i <= LARGEST_WEIGHT or w_i == 0.0):
                return False
            if w_i == 0.0:
                here = 0.0
            ww = w_i * w_i
            p_var *= ww
            y_var *= w_i
            sums[b, 0] += here
            sums[b, 1] += w_i * y_i
            sums[b, 2] += w_i * d
            sums[b, 3] += w_i * dd
            sums[b, 4] += p_var
            sums[b, 5] += y_var
            sums[b, 6] += w_i
            sums[b, 7] += ww
            dd *= ww
            sums[b, 8] += dd
            votes = 9
        if m is not None:
            m_i = np.float64(m[i])
            if not (1.0 <= m_i < 2.0**53 and m_i == np.floor(m_i)):
                return False
            sums[b, votes] += m_i * here
            sums[b, votes + 2] += p_var / m_i
            if m_i >= 2.0:
                sums[b, votes + 1] += here
                sums[b, votes + 3] += y_var / (m_i - 1.0)
        if soft:
            e = p_i - (1.0 if y_i > 0.5 else 0.0)
            if w is None:
                sums[b, first] += e
                sums[b, first + 1] += e * e
            else:
                sums[b, first] += w_i * e
                sums[b, first + 1] += w_i * (e * e)
                sums[b, first + 4] += ww * (e * e)
            if m is None and (y_i == 0.0 or y_i == 1.0):
                sums[b, first + 2] += p_var
                sums[b, first + 3] += dd
    return True


@_compile
def add_run(p, y, w, m, edges, guide, sums):  # type: ignore[no-untyped-def]
    """Add each row of a run to the sums of its bin; say whether every value kept the rules.

    The columns of `sums` are those of `softcal.table.kernel`. What depends on whether a label is
    soft is in the last ones: a run of 0/1 labels, the commonest kind, copies sums it has already.
    """
    soft = False
    for i in range(y.size):
        soft |= 0.0 < y[i] < 1.0
    if not add_rows(p, y, w, m, edges, guide, soft, sums):
        return False
    if not soft:
        first = sums.shape[1] - (4 if w is None else 5)
        residual_var = 3 if w is None else 8
        sums[:, first] = sums[:, 2]
        sums[:, first + 1] = sums[:, 3]
        if m is None:
            sums[:, first + 2] = sums[:, 4]
            sums[:, first + 3] = sums[:, residual_var]
        if w is not None:
            sums[:, first + 4] = sums[:, residual_var]
    return True


@_compile
def add_block(p, y, w, m, edges, guide, run, totals):  # type: ignore[no-untyped-def]
    """Add a block of rows to the totals, setting the sums aside every `run` rows."""
    partial = np.zeros_like(totals)
    for start in range(0, p.size, run):
        stop = start + run
        w_run = None if w is None else w[start:stop]
        m_run = None if m is None else m[start:stop]
        if not add_run(p[start:stop], y[start:stop], w_run, m_run, edges, guide, partial):
            return False
        totals += partial
        partial[:] = 0.0
    return True


@_compile
def rows_sum_to_one(values):  # type: ignore[no-untyped-def]
    """Whether the classes of each row sum to 1, to rounding."""
    for i in range(values.shape[0]):
        total = 0.0
        for c in range(values.shape[1]):
            total += np.float64(values[i, c])
        if not abs(total - 1.0) <= SUM_TOLERANCE:
            return False
    return True


@_compile
def add_class_block(p, y, w, m, edges, guide, run, totals):  # type: ignore[no-untyped-def]
    """Add a block of rows to the totals of each class, a column of p and y.

    A run of rows is short enough to stay in the cache while its columns are read one by one.
    """
    partial = np.zeros_like(totals)
    for start in range(0, p.shape[0], run):
        stop = start + run
        p_run, y_run = p[start:stop], y[start:stop]
        w_run = None if w is None else w[start:stop]
        m_run = None if m is None else m[start:stop]
        if not (rows_sum_to_one(p_run) and rows_sum_to_one(y_run)):
            return False
        for c in range(p.shape[1]):
            columns = p_run[:, c], y_run[:, c]
            if not add_run(*columns, w_run, m_run, edges, guide, partial[c]):
                return False
        totals += partial
        partial[:] = 0.0
    return True


@_compile
def top_of_rows(p, y, best, mass):  # type: ignore[no-untyped-def]
    """Write the highest probability of each row, and the label's mass there; check both.

    Without a branch inside: which class is highest, no processor can foresee.
    """
    broken = 0
    for i in range(p.shape[0]):
        top = 0
        highest = p_sum = y_sum = 0.0
        for c in range(p.shape[1]):
            p_i = np.float64(p[i, c])
            y_i = np.float64(y[i, c])
            broken += not (0.0 <= p_i <= 1.0 and 0.0 <= y_i <= 1.0)
            p_sum += p_i
            y_sum += y_i
            higher = p_i > highest
            top = c if higher else top
            highest = p_i if higher else highest
        broken += not abs(p_sum - 1.0) <= SUM_TOLERANCE
        broken += not abs(y_sum - 1.0) <= SUM_TOLERANCE
        best[i] = highest
        mass[i] = y[i, top]
    return broken == 0


def compile_for(*columns: Column | None) -> None:
    """Compile the loop for columns of these dtypes, if that is not done yet.

    Where p and y have two dimensions, it is the loop over classes.

    The six sums of a bin lie side by side, and one vector instruction adds to four of them. LLVM
    finds that by itself when its SLP pass is on; Numba leaves it off, and has no option for it but
    a setting of the whole process, which is put back at once. No digit changes.
    """
    key = tuple("" if column is None else f"{column.dtype.char}{column.ndim}" for column in columns)
    with _lock:
        if key in _compiled_for:
            return
        settings: Any = config
        before = settings.SLP_VECTORIZE
        settings.SLP_VECTORIZE = 1
        try:
            _call_without_rows(columns)
        finally:
            settings.SLP_VECTORIZE = before
        _compiled_for.add(key)


def _call_without_rows(columns: tuple[Column | None, ...]) -> None:
    from softcal.bins import Bins

    bins = Bins.uniform(1)
    none = [None if column is None else column[:0] for column in columns]
    many = none[0] is not None and none[0].ndim == 2
    loop, shape = (add_class_block, (1, 1, 18)) if many else (add_block, (1, 18))
    arguments = (*none, bins.edges, bins.guide.starts, 1, np.zeros(shape))
    call_until_compiled(loop, *arguments)


def call_until_compiled(function: Callable[..., Any], *arguments: object) -> None:
    """Call a compiled function, so that threads find it ready."""
    for _ in range(4):
        # A full disk: each time one function more is compiled, though its code is not kept.
        with suppress(OSError):
            function(*arguments)
            return
    function(*arguments)


@_compile
def add_to_lattice(p, y, w, nodes):  # type: ignore[no-untyped-def]
    """Split each residual w (p - y) between the two nodes beside p; check the values on the way.

    The nodes lie at 0, 1/m, ..., 1, and one more takes the nothing that p = 1 gives away.
    """
    last = nodes.size - 2
    for i in range(p.size):
        p_i = p[i]
        y_i = y[i]
        if not (0.0 <= p_i <= 1.0 and 0.0 <= y_i <= 1.0):
            return False
        d = p_i - y_i
        if w is not None:
            w_i = w[i]
            if not (SMALLEST_WEIGHT <= w_i <= LARGEST_WEIGHT or w_i == 0.0):
                return False
            d *= w_i
        place = p_i * last
        node = np.uint64(place)
        right = d * (place - node)
        nodes[node] += d - right
        nodes[node + np.uint64(1)] += right
    return True


@_compile
def residual_scores(p, soft, hard, edges, guide, scores):  # type: ignore[no-untyped-def]
    """Score data sets, the rows of p, against two kinds of label and under two readings.

    `scores[0, :, r]` leaves predictions of exactly 1 out of every bin, `scores[1, :, r]` puts them
    in the last; the second axis is the label, soft or hard. No values are checked.
    """
    n_bins = edges.size - 1
    sums = np.zeros((2, n_bins + 1))  # the last place takes the predictions of exactly 1
    for r in range(p.shape[0]):
        sums[:] = 0.0
        for i in range(p.shape[1]):
            p_i = p[r, i]
            b = bin_of(p_i, edges, guide) + (p_i == 1.0)
            sums[0, b] += p_i - soft[r, i]
            sums[1, b] += p_i - hard[r, i]
        for label in range(2):
            inner = np.abs(sums[label, : n_bins - 1]).sum()
            last, ones = sums[label, n_bins - 1], sums[label, n_bins]
            scores[0, label, r] = (inner + abs(last)) / p.shape[1]
            scores[1, label, r] = (inner + abs(last + ones)) / p.shape[1]
