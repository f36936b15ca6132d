"""The sums of every class in one pass over (items, classes).

A class's column is scattered over memory: read on its own, it costs as much as all columns. So
the loop takes a row's classes together. Every class gets the same digits as its column would alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softcal.door.class_inputs import refuse
from softcal.table import kernel
from softcal.table.kernel import Sums, loop_ready

if TYPE_CHECKING:
    from softcal.door.class_inputs import ClassRows
    from softcal.door.inputs import FloatArray
    from softcal.table.bins import Bins

_ROWS_AT_ONCE = 8192  # copied, where the rows do not lie one after another


def class_sums(data: ClassRows, bins: Bins) -> list[Sums]:
    """Add up the rows of each class and bin, or refuse when some value breaks the rules."""
    if data.y_prob.shape[0] <= kernel.LARGE:
        data.check()
        found = [kernel.bin_sums(data.column(c), bins) for c in range(len(data.classes))]
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
    run = kernel.rows_per_partial_sum(len(bins))
    size = run * max(1, _ROWS_AT_ONCE // run)  # whole runs, so that no digit changes
    shape = (n_classes, len(bins), len(kernel.columns_of(data.column(0))))

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
    total = kernel.joined_blocks(block_sums, n, len(bins))
    if total is None:
        return []
    rows = data.column(0)
    return [kernel.as_sums(rows, list(np.ascontiguousarray(sums.T))) for sums in total]
