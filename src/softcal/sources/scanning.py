"""A table from data wherever it lives: files of any size, or a frame of any engine."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from softcal._optional import naming_the_extra
from softcal.bins import Bins, BinsLike
from softcal.exceptions import InputError, InputTypeError
from softcal.sources.collect import collect
from softcal.sources.columns import Roles
from softcal.sources.files import all_pieces, files_of

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from softcal.table.tableset import TableSet


@naming_the_extra()
def scan(
    source: Any,
    *,
    y_true: str,
    y_prob: str | Sequence[str],
    by: str | Sequence[str] = (),
    sample_weight: str | None = None,
    n_votes: str | int | None = None,
    groups: str | None = None,
    bins: BinsLike = 10,
    pairs: bool = True,
    date: str | dt.date | None = None,
) -> TableSet:
    """Return the tables of columns of files or of a frame, in one pass where the data lives.

    Files are read in bounded memory on all cores. A frame in memory goes through the same loop as
    arrays, without a copy. A lazy frame or a relation (Polars, DuckDB, Dask, Spark) is added up by
    its own engine, and only the tables come back; the bins are the same, row for row.

    Parameters
    ----------
    source : path, glob pattern, folder, several of these, or frame
        Parquet, CSV, TSV, JSON-lines or Arrow files; or a frame of pandas, Polars, PyArrow (also
        a dataset or a stream of batches), DuckDB, Dask or PySpark.
    y_true, sample_weight, n_votes : str
        Names of the columns, of which `reliability` says what they hold. `n_votes` may be a number.
    y_prob : str or sequence of str
        The column of predictions of each model, all added up in the same pass.
    by : str or sequence of str, optional
        Columns whose values make segments; rows without a value are a segment of their own. There
        may be 100,000 combinations of values.
    groups : str, optional
        The column that says which rows belong together, as in `reliability`. Its sums are kept in
        memory until all rows are read; engines do not take it.
    bins : int, Bins or edges, default 10
        The bins of the tables. The set keeps a finer grid (`Bins.grid`), so that `coarsen` can give
        others. An engine takes at most 256 bins of unequal width.
    pairs : bool, default True
        Whether to add up what each two models have in common, which `compare` needs. Engines do
        not.
    date : str or date, optional
        The day of the rows, kept with the set.

    Returns
    -------
    TableSet
        `tables["a"]` is the table of model a, `tables.by("country")` has the set of each country.

    Raises
    ------
    InputError, InputTypeError
        If a value is missing or breaks a rule, with the column and how many do; if there is no
        such column or file. No row is ever left out.

    Examples
    --------
    >>> from importlib.resources import files
    >>> items = files("softcal") / "data" / "lidc_malignancy" / "items.csv"
    >>> models = ["prob_rf_all", "prob_lr_geometry"]
    >>> tables = scan(items, y_true="soft_malignant", y_prob=models, by="fold")
    >>> {name: round(rel.smece, 4) for name, rel in tables.items()}
    {'prob_rf_all': 0.0952, 'prob_lr_geometry': 0.1067}
    >>> tables.by("fold")["0"]
    TableSet(n=138, models=['prob_rf_all', 'prob_lr_geometry'], bins=10)
    """
    preds, columns = _listed(y_prob), _listed(by)
    roles = Roles(y_true, preds, sample_weight, n_votes, columns, groups)
    optional = (("sample_weight", sample_weight), ("groups", groups))
    _refuse_other_names(
        [
            ("y_true", y_true),
            *(("y_prob", name) for name in preds),
            *(("by", name) for name in columns),
            *(each for each in optional if each[1] is not None),
        ]
    )
    if n_votes is not None and not isinstance(n_votes, str):
        roles = roles._replace(n_votes=_whole(n_votes))
    roles.refuse_impossible()
    return _tables(
        source, roles, Bins.of(bins), pairs=pairs, date=None if date is None else str(date)
    )


def _listed(names: Any) -> tuple[Any, ...]:
    several = isinstance(names, Iterable) and not isinstance(names, str)
    return tuple(names) if several else (names,)


def _tables(source: Any, roles: Roles, bins: Bins, *, pairs: bool, date: str | None) -> TableSet:
    if _are_paths(source):
        pieces = all_pieces(files_of(source), roles.wanted)
        return collect(pieces, roles, bins, pairs=pairs, date=date)
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
        return engine_tables(frame, roles, bins, date)
    at_most, found = None, None
    if isinstance(frame, nw.DataFrame):
        found = frame_pieces(frame, roles.wanted)
        at_most = len(found)
    streamed = stream_pieces(source, roles.wanted) if found is None else found
    return collect(streamed, roles, bins, pairs=pairs, date=date, at_most=at_most)


def _refuse_other_names(named: Iterable[tuple[str, Any]]) -> None:
    for what, name in named:
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
