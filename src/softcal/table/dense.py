"""Sums of many classes on the grid, kept dense while rows are added up.

Entries of 1,000 classes, sorted by their keys for each batch of rows, would cost more than the
rows. A batch adds to one array instead, which becomes entries once, at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softcal._validation.multiclass import refuse
from softcal.table.build import Entries
from softcal.table.kernel import SUM_NAMES, totals
from softcal.table.tableset import Sparse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcal._validation.inputs import FloatArray
    from softcal._validation.multiclass import ClassRows
    from softcal.bins import Bins


def dense_sums(models: Sequence[ClassRows], grid: Bins) -> FloatArray:
    """Add up the rows of each model, class and bin: shape (models, classes, sums, bins).

    Raises
    ------
    InputError
        If a value breaks a rule.
    """
    found = [totals(d.y_prob, d.y_true, d.sample_weight, d.n_votes, grid) for d in models]
    for sums, data in zip(found, models, strict=True):
        if sums is None:
            refuse(data)
    return np.array(found)


class DenseSums:
    """Adds up what `dense_sums` gives."""

    def __init__(self) -> None:
        self.sums: FloatArray | None = None

    def add(self, sums: FloatArray | None) -> None:
        """Add the sums of more rows, all of which have some or none; the first are changed."""
        if self.sums is None or sums is None:
            self.sums = sums
        else:
            self.sums += sums

    def entries(self) -> list[Entries]:
        """Return the sums of filled bins, as entries of no further rows; none without sums."""
        if self.sums is None:
            return []
        model, class_, place = np.nonzero(self.sums[:, :, SUM_NAMES.index("count")])
        # The predicted class, target 0, is not among them.
        keys = np.array([model, class_ + 1, np.zeros_like(model), place], dtype=np.int64)
        values = np.ascontiguousarray(self.sums[model, class_, :, place].T)
        return [Entries.of_tables(0, ((),), Sparse(keys, values))]
