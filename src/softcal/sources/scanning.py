"""A table from data wherever it lives: files of any size, or a frame of any engine."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, overload

from softcal._optional import naming_the_extra
from softcal.bins import Bins, BinsLike
from softcal.exceptions import InputError, InputTypeError
from softcal.sources.collect import Tables, sorting_key, tally
from softcal.sources.columns import Roles
from softcal.sources.files import all_pieces, files_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcal.table.reliability import Reliability


@overload
def scan(
    source: Any,
    *,
    y_true: str,
    y_prob: str,
    sample_weight: str | None = ...,
    n_votes: str | int | None = ...,
    bins: BinsLike = ...,
) -> Reliability: ...
@overload
def scan(
    source: Any,
    *,
    y_true: str,
    y_prob: Sequence[str],
    sample_weight: str | None = ...,
    n_votes: str | int | None = ...,
    bins: BinsLike = ...,
) -> dict[str, Reliability]: ...
@naming_the_extra()
def scan(
    source: Any,
    *,
    y_true: str,
    y_prob: str | Sequence[str],
    sample_weight: str | None = None,
    n_votes: str | int | None = None,
    bins: BinsLike = 10,
) -> Reliability | dict[str, Reliability]:
    """Make the table of columns of files or of a frame, in one pass where the data lives.

    Files are read in bounded memory on all cores. A frame in memory goes through the same loop as
    arrays, without a copy. A lazy frame or a relation (Polars, DuckDB, Dask, Spark) is added up by
    its own engine, and only the table comes back; the bins are the same, row for row.

    Parameters
    ----------
    source : path, glob pattern, folder, several of these, or frame
        Parquet, CSV, TSV, JSON-lines or Arrow files; or a frame of pandas, Polars, PyArrow (also
        a dataset or a stream of batches), DuckDB, Dask or PySpark.
    y_true, y_prob, sample_weight, n_votes : str
        Names of the columns, of which `reliability` says what they hold. Several predictions may
        be named in a list: they are added up in the same pass. `n_votes` may be a number.
    bins : int, Bins or edges, default 10
        As in `reliability`. An engine takes at most 256 bins of unequal width.

    Returns
    -------
    Reliability, or dict of str to Reliability
        The table; where `y_prob` is a list, one for each of its names.

    Raises
    ------
    InputError, InputTypeError
        If a value is missing or breaks a rule, with the column and how many do; if there is no
        such column or file. No row is ever left out.

    Examples
    --------
    >>> from importlib.resources import files
    >>> items = files("softcal") / "data" / "lidc_malignancy" / "items.csv"
    >>> scan(items, y_true="soft_malignant", y_prob="prob_rf_all")
    Reliability(n=1377, bins=10)
    >>> both = scan(items, y_true="soft_malignant", y_prob=["prob_rf_all", "prob_lr_geometry"])
    >>> {name: round(rel.smece, 4) for name, rel in both.items()}
    {'prob_rf_all': 0.0952, 'prob_lr_geometry': 0.1067}
    """
    several = isinstance(y_prob, Iterable) and not isinstance(y_prob, str)
    preds: tuple[Any, ...] = tuple(y_prob) if several else (y_prob,)
    found = _tables(source, Roles(y_true, preds, sample_weight, n_votes), Bins.of(bins))
    tables = {key.y_prob: table for key, table in found.items()}
    return tables[y_prob] if isinstance(y_prob, str) else {name: tables[name] for name in preds}


@naming_the_extra()
def scan_by(
    source: Any,
    *,
    y_true: str,
    y_prob: str,
    by: str,
    sample_weight: str | None = None,
    n_votes: str | int | None = None,
    bins: BinsLike = 10,
) -> dict[Any, Reliability]:
    """Make one table for each value of a column: segments, countries, days.

    Parameters
    ----------
    source, y_true, y_prob, sample_weight, n_votes, bins
        As in `scan`.
    by : str
        The column whose values slice the rows, 10,000 different ones at most and none missing. In
        CSV files they are text, and an empty cell is missing; elsewhere they are what they are.

    Returns
    -------
    dict of value to Reliability
        Sorted by value. Their sum is the table of all rows.

    Examples
    --------
    >>> from importlib.resources import files
    >>> items = files("softcal") / "data" / "lidc_malignancy" / "items.csv"
    >>> folds = scan_by(items, y_true="soft_malignant", y_prob="prob_rf_all", by="fold")
    >>> folds["0"], sum(folds.values())
    (Reliability(n=138, bins=10), Reliability(n=1377, bins=10))
    """
    _refuse_other_names({"by": by})
    found = _tables(source, Roles(y_true, (y_prob,), sample_weight, n_votes, by), Bins.of(bins))
    return {key.value: found[key] for key in sorted(found, key=sorting_key)}


def _tables(source: Any, roles: Roles, bins: Bins) -> Tables:
    weight = {} if roles.sample_weight is None else {"sample_weight": roles.sample_weight}
    for pred in roles.y_prob:
        _refuse_other_names({"y_true": roles.y_true, "y_prob": pred, **weight})
    if roles.n_votes is not None and not isinstance(roles.n_votes, str):
        roles = roles._replace(n_votes=_whole(roles.n_votes))
    roles.refuse_impossible()
    if _are_paths(source):
        return tally(all_pieces(files_of(source), roles.wanted), roles, bins)
    # Imported here, since paths need no narwhals.
    import narwhals.stable.v2 as nw

    from softcal.sources.engines import engine_tables
    from softcal.sources.frames import frame_pieces, stream_pieces

    try:
        frame = nw.from_native(source, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        message = f"no two columns of the frame may have one name: {' '.join(str(error).split())}"
        raise InputError(message) from error
    if isinstance(frame, nw.LazyFrame):
        return engine_tables(frame, roles, bins)
    if isinstance(frame, nw.DataFrame):
        pieces = frame_pieces(frame, roles.wanted)
        return tally(pieces, roles, bins, at_most=len(pieces))
    return tally(stream_pieces(source, roles.wanted), roles, bins)


def _refuse_other_names(named: dict[str, Any]) -> None:
    for what, name in named.items():
        if not isinstance(name, str):
            message = (
                f"{what} must be the name of a column, which is text: got {name!r:.60}. Of a frame "
                "with other names, pass frame.rename(columns=str); for arrays use reliability."
            )
            raise InputTypeError(message)


def _whole(n_votes: Any) -> int:
    try:
        return operator.index(n_votes)
    except TypeError as error:
        message = f"n_votes must be a column or a whole number: got {n_votes!r:.60}."
        raise InputTypeError(message) from error


def _are_paths(source: Any) -> bool:
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(one, str | os.PathLike) for one in source)
    return isinstance(source, str | os.PathLike)
