"""Tables of arrays of several models, of one probability per row or of many classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from softcal._validation import inputs
from softcal._validation.arrays import to_array
from softcal._validation.inputs import Coded, Names
from softcal._validation.multiclass import class_rows_of_models
from softcal.bins import Bins
from softcal.exceptions import InputError
from softcal.scanning.class_sums import MANY_TARGETS, class_entries
from softcal.scanning.patterns import refuse_names_of_thresholds
from softcal.scanning.texts import text_of
from softcal.table.build import Builder, valid_entries
from softcal.table.tableset import LABEL, TOP, thresholds
from softcal.votes import Votes

if TYPE_CHECKING:
    import numpy.typing as npt

    from softcal._validation.inputs import Rows
    from softcal._validation.multiclass import ClassRows
    from softcal.bins import BinsLike
    from softcal.scanning.sample import Sample
    from softcal.table.tableset import TableSet


def tables_of_arrays(
    y_true: npt.ArrayLike | Votes,
    y_prob: Mapping[str, npt.ArrayLike],
    *,
    by: Any = None,
    groups: npt.ArrayLike | None = None,
    bins: BinsLike = 10,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    ordered: bool = False,
    sample: Sample,
) -> TableSet:
    """Return the set of tables of arrays; add rows of one probability to the sample."""
    columns = _columns(by)
    given = {"y_true": y_true, **y_prob, **columns, "groups": groups}
    inputs.refuse_misaligned((inputs.index_of(values), name) for name, values in given.items())
    rows: dict[str, Rows] = {}
    of_classes: list[ClassRows] = []
    if _has_classes(y_true, y_prob):
        by_class = class_rows_of_models(y_true, y_prob, sample_weight, n_votes)
        of_classes = list(by_class.values())
        rows = {name: data.column(0) for name, data in by_class.items()}
    else:
        for name, values in y_prob.items():
            rows[name] = inputs.rows(y_true, values, sample_weight, n_votes, Names(y_prob=name))
            inputs.warn_if_swapped(rows[name].y_true, rows[name].y_prob, rows[name].names)
    first = next(iter(rows.values()))
    cells = _cells(columns, first.y_prob.size) if columns else None
    coded = None
    if groups is not None:
        coded = inputs.coded_groups(groups, first)
    targets: tuple[str, ...] = (LABEL,)
    if ordered and not of_classes:
        message = "ordered=True needs many classes: pass labels of shape (n, classes)."
        raise InputError(message)
    ordered = ordered or bool(of_classes and isinstance(y_true, Votes) and y_true.ordered)
    if of_classes:
        names = tuple(map(str, of_classes[0].classes))
        targets = (TOP, *names, *(thresholds(names) if ordered else ()))
    binned = Bins.of(bins)
    grid = Bins.grid(binned, coarse=groups is not None or len(targets) > MANY_TARGETS)
    builder = Builder(
        list(rows), list(columns), bins=binned, grid=grid,
        pairs=Bins.tie_grid(binned) if len(rows) > 1 else None,
        group=None if coded is None else "groups",
    )  # fmt: skip
    if of_classes:
        _add_classes(of_classes, builder, cells, coded, ordered=ordered)
    else:
        found = valid_entries(_numbered(rows), builder.grid, cells, coded, pairs=builder.pairs)
        builder.add(found)
        sample.add(0, rows, coded)
    votes = "counted in the labels" if isinstance(y_true, Votes) else "n_votes"
    return builder.finish(
        "the label's share of that class" if of_classes else "the label",
        targets,
        weight=None if sample_weight is None else "sample_weight",
        votes=None if first.n_votes is None else votes,
        ordered=ordered,
    )


def _add_classes(
    models: list[ClassRows],
    builder: Builder,
    cells: Coded | None,
    groups: Coded | None,
    *,
    ordered: bool,
) -> None:
    """Add up the rows of many classes, which have been validated."""
    if TOP in map(str, models[0].classes):
        message = f"no class may be named {TOP!r}, which stands for the predicted class: rename it."
        raise InputError(message)
    if ordered:
        refuse_names_of_thresholds(models[0].classes)
    weight = models[0].sample_weight
    if weight is not None and not np.any(weight):
        inputs.refuse_no_weight(models[0].column(0))
    found = class_entries(models, builder, cells, groups, ordered=ordered)
    assert found is not None  # noqa: S101 - the weights have been validated
    builder.add(found.entries, found.dense)


def _numbered(rows: Mapping[str, Rows]) -> dict[tuple[int, int], Rows]:
    return {(k, 0): each for k, each in enumerate(rows.values())}


def _has_classes(y_true: Any, y_prob: Mapping[str, Any]) -> bool:
    """Return whether labels, or predictions for votes of two classes, have a column per class."""
    if not isinstance(y_true, Votes):
        return to_array(y_true, "y_true").ndim == 2
    return y_true.n_classes > 2 or any(to_array(p, name).ndim == 2 for name, p in y_prob.items())


def _columns(by: Any) -> dict[str, Any]:
    """Return the columns of segments by name; an unnamed one is called "segment"."""
    if isinstance(by, Mapping):
        return {str(name): values for name, values in by.items()}
    name = getattr(by, "name", None)
    return {} if by is None else {name if name and isinstance(name, str) else _UNNAMED: by}


_UNNAMED = "segment"


def _cells(columns: Mapping[str, Any], rows: int) -> Coded:
    """Return the combinations of values, and the number of the combination of each row."""
    texts = []
    for name, values in columns.items():
        what = "by" if name == _UNNAMED else name
        shape = to_array(values, what).shape
        if len(shape) != 1:
            message = f"{what} must be one column: it has shape {shape}."
            raise InputError(message)
        if shape[0] != rows:
            message = f"{what} must have one value for each of the {rows} rows: it has {shape[0]}."
            raise InputError(message)
        plain = values.to_pylist() if hasattr(values, "to_pylist") else values
        texts.append([text_of(value) for value in plain])
    cells: dict[tuple[str | None, ...], int] = {}
    numbers = [cells.setdefault(cell, len(cells)) for cell in zip(*texts, strict=True)]
    return Coded(np.array(numbers, dtype=np.int64), list(cells))
