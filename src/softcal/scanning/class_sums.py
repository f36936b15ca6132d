"""Add up rows of many classes: the predicted class, each class, and the scores of single rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softcal.metrics.item_scores import score_entries
from softcal.metrics.ordinal import cumulative_rows
from softcal.scanning.texts import plain_word
from softcal.table.blocks import Sparse
from softcal.table.build import dense_sums, entries, hardened_by
from softcal.table.kernel import is_majority, top_label_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcal._validation.inputs import Coded, FloatArray, Rows
    from softcal._validation.multiclass import ClassRows
    from softcal.table.build import Builder, Entries

MANY_TARGETS = 101
"""With more targets than this, a set uses a coarser grid: 100 classes and the predicted one."""


class ClassEntries(NamedTuple):
    """The sums of rows of many classes: entries, sums per class, and rows of predicted classes."""

    entries: Entries
    dense: FloatArray | None  # None with cells or groups, whose entries include the classes
    tops: list[Rows]


def class_entries(
    models: Sequence[ClassRows],
    builder: Builder,
    cells: Coded | None,
    groups: Coded | None,
    *,
    ordered: bool = False,
) -> ClassEntries | None:
    """Add up rows of many classes for each model; return None if a weight breaks a rule.

    Raises
    ------
    InputError
        If a label or prediction breaks a rule.
    """
    tops = [top_label_rows(data) for data in models]
    dense = dense_sums(models, builder.grid) if cells is None and groups is None else None
    rows = {(k, 0): top for k, top in enumerate(tops)}
    if dense is None:
        of_classes = range(len(models[0].classes))
        rows |= {(k, c + 1): data.column(c) for k, data in enumerate(models) for c in of_classes}
    if ordered:
        size = len(models[0].classes)
        for k, data in enumerate(models):
            rows |= {(k, size + 1 + t): each for t, each in enumerate(cumulative_rows(data))}
    added = entries(rows, builder.grid, cells, groups, pairs=builder.pairs)
    majority = entries(
        {
            (k, 0): top._replace(y_true=is_majority(data, top.y_true))
            for k, (top, data) in enumerate(zip(tops, models, strict=True))
        },
        builder.grid,
        cells,
    )
    if added is None or majority is None:
        return None
    tables = hardened_by(added.blocks["tables"], majority.blocks["tables"])
    parts = [score_entries(data, cells, ordered=ordered) for data in models]
    scores = {
        name: Sparse.added([each[name].under(k) for k, each in enumerate(parts)])
        for name in parts[0]
    }
    blocks = {**added.blocks, "tables": tables, **scores}
    return ClassEntries(added._replace(blocks=blocks), dense, tops)


def one_hot(labels: Sequence[str | None], numbers: Any, classes: Sequence[str]) -> Any:
    """Return which class each row has, given the different labels; None if one is unknown."""
    place = {name: k for k, name in enumerate(classes)}
    at = [-1 if name is None else place.get(name, place.get(plain_word(name), -1))
          for name in labels]  # fmt: skip
    number = np.array(at, dtype=np.int64)[numbers]
    return None if (number < 0).any() else number[:, None] == np.arange(len(classes))
