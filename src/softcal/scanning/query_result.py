"""Read the result of a query that `softcal.scanning.sql` wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softcal._optional import naming_the_extra
from softcal._validation.inputs import Names
from softcal.bins import Bins
from softcal.exceptions import InputError, InputTypeError
from softcal.table.blocks import Sparse
from softcal.table.build import Builder, Entries
from softcal.table.files import checked_blocks
from softcal.table.kernel import SUM_NAMES
from softcal.table.reliability import warn_if_hard
from softcal.table.tableset import BOUNDS, LABEL

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray
    from softcal.bins import BinsLike
    from softcal.table.tableset import TableSet

SEGMENT = "softcal_by_"  # before the names of segment columns, which may be those of sums
TEXTS = (
    "softcal_label", "softcal_label_high", "softcal_positive", "softcal_weight", "softcal_votes",
    "softcal_model", "softcal_target",
)  # fmt: skip
NUMBERS = ("softcal_bin", "softcal_rows", *SUM_NAMES)


@naming_the_extra()
def tables_from_query(result: Any, *, bins: BinsLike = 10, date: str | None = None) -> TableSet:
    """Read the result of `sql_query` into a set of tables.

    Parameters
    ----------
    result : data frame
        All rows of the result: pandas, Polars, an Arrow table, or any frame that narwhals knows.
    bins : int, Bins, or edges, default=10
        The bins of the tables, of which every edge must be an edge of `Bins.grid`, such as a
        multiple of 1/600.
    date : str, optional
        The date of the rows.

    Returns
    -------
    TableSet
        The result of `scan` for the same rows.

    Raises
    ------
    InputError
        If rows of the table broke a rule, or if this is not the result of such a query.
    """
    found = _read(result)
    _refuse_broken(found)
    label, high, word, weight, votes = (found.texts[name][0] for name in TEXTS[:5])
    if word is not None and not found.sums[SUM_NAMES.index("label")].any():  # it may be misspelled
        message = f"{label} must have the value {word!r:.60}, which counts as 1, in some row."
        raise InputError(message)
    targets = (LABEL,) if high is None else BOUNDS
    models = list(dict.fromkeys(found.texts["softcal_model"]))
    segments = list(zip(*(found.texts[name] for name in found.by), strict=True))
    segments = segments or [()] * found.rows.size
    cells = {cell: k for k, cell in enumerate(dict.fromkeys(segments))}
    grid, by = Bins.grid(), [name.removeprefix(SEGMENT) for name in found.by]
    builder = Builder(models, by, bins=grid, grid=grid)
    try:
        keys = np.array([
            [models.index(each) for each in found.texts["softcal_model"]],
            [targets.index(each) for each in found.texts["softcal_target"]],
            [cells[each] for each in segments],
            found.bin,
        ], dtype=np.int64)  # fmt: skip
        rows = int(found.rows[(keys[:2] == 0).all(axis=0)].sum())
        builder.add(Entries(rows, [*cells], {"tables": Sparse.of(keys, found.sums)}))
        about = {"label_high": high, "weight": weight, "votes": votes, "date": date}
        whole = builder.finish(label, targets, **about)
        checked_blocks(whole.axes, whole.blocks)
    except ValueError as error:
        message = f"the result has values that no query gives: {error!s:.200}"
        raise InputError(message) from error
    for model in models:
        warn_if_hard(whole[model], Names(label, model))
    return whole.coarsen(bins)


class _Result(NamedTuple):
    """The columns of a result; `by` are the names of segments."""

    by: list[str]
    texts: dict[str, list[Any]]
    bin: FloatArray
    rows: FloatArray
    sums: FloatArray


def _read(result: Any) -> _Result:
    import narwhals.stable.v2 as nw
    import pyarrow as pa

    frame = nw.from_native(result, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        message = f"the result must be a data frame in memory, not {type(result).__name__}."
        raise InputTypeError(message)
    missing = [name for name in (*TEXTS, *NUMBERS) if name not in frame.columns]
    if missing:
        message = (
            f"this is not the result of a query of softcal: it has no column {missing[0]!r}. Run "
            "the query that `softcal sql` prints, and keep all its columns."
        )
        raise InputError(message)
    by = [name for name in frame.columns if name not in (*TEXTS, *NUMBERS)]
    try:
        table = frame.to_arrow()
        numbers = np.array([table[name].cast(pa.float64()).to_numpy() for name in NUMBERS])
        texts = {name: table[name].cast(pa.string()).to_pylist() for name in (*by, *TEXTS)}
    except (pa.ArrowException, OverflowError, TypeError) as error:
        message = f"the result must have the types that the query returns: {error}"
        raise InputError(message) from error
    return _Result(by, texts, numbers[0], numbers[1], numbers[2:])


def _refuse_broken(found: _Result) -> None:
    """Refuse rows that break a rule, and a result without rows or with gaps."""
    if (found.bin < 0).any():
        # A row that breaks a rule is in the result once per model and target.
        times = len({*zip(*(found.texts[name] for name in TEXTS[5:]), strict=True)})
        message = (
            f"{np.nansum(found.rows[found.bin < 0]) / times:,.0f} rows break a rule: labels and "
            "predictions must be in [0, 1], weights must not be negative, and a label times its "
            "number of votes must be a whole number. None may be NULL. Exclude or fix them in the "
            "table."
        )
        raise InputError(message)
    if not all(np.isfinite(each).all() for each in (found.rows, found.bin, found.sums)):
        message = "the result must have finite numbers, in every row."
        raise InputError(message)
    if not found.rows.size:
        message = "the table has no rows, so there is nothing to measure."
        raise InputError(message)
