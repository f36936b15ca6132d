"""Read rows from engines: DuckDB and Polars stream rows here; Dask and Spark add up theirs.

Spark runs the query of `softcal.sources.sql` for one probability per row. Otherwise each worker
returns a set of tables, and the sets are added. Groups and raters are added by name.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from softcal._optional import MissingExtraError
from softcal._validation.inputs import Coded
from softcal._validation.rules import Spread
from softcal.exceptions import SoftcalError
from softcal.sources.class_columns import Present
from softcal.sources.collect import (
    Broken,
    Counted,
    Part,
    checks_of,
    coded_cells,
    collect,
    part_of,
    part_of_sums,
)
from softcal.sources.columns import BATCH_VALUES, Values, numbers, one_array, refuse_unknown
from softcal.sources.frames import Stream, frame_pieces, in_frame
from softcal.sources.ranges import Distributions, distributions
from softcal.sources.sql import census_query, misfit_of, sums_query
from softcal.table.blocks import Sparse
from softcal.table.build import MAX_CELLS, Entries, refuse_many_cells
from softcal.table.kernel import SUM_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from softcal.bins import Bins
    from softcal.sources.columns import Piece, Roles, Wanted
    from softcal.table.tableset import TableSet

_BATCH_BYTES = 1 << 22  # Spark sends batches of 10,000 rows: fewer, larger ones are faster
_ADDED_AT_ONCE = 8


class _Job(NamedTuple):
    """The settings with which a worker adds up the rows of a partition."""

    roles: Roles
    bins: Bins
    pairs: bool
    date: str | None

    @property
    def wanted(self) -> Wanted:
        """The columns to read."""
        return self.roles.wanted

    @property
    def nothing(self) -> Part:
        """The result for no rows."""
        return Part(0, None)

    def part(self, pieces: Iterable[Piece]) -> Part:
        """Add up the rows of a partition on one core; the engine uses the other cores."""
        here = (piece._replace(place=None) for piece in pieces)
        return part_of(here, self.roles, self.bins, pairs=self.pairs, date=self.date, alone=True)


class _Counting(NamedTuple):
    """How a worker counts the numbers of columns that are to be cut into ranges."""

    nothing: Distributions

    @property
    def wanted(self) -> Wanted:
        """The columns to read."""
        return self.nothing.wanted

    def part(self, pieces: Iterable[Piece]) -> Distributions:
        """Count the numbers of a partition."""
        return distributions((batch for piece in pieces for batch in piece.batches()), self.nothing)


_Sums: TypeAlias = Any  # the parts of a job, which add


def engine_tables(
    frame: Any, roles: Roles, bins: Bins, *, pairs: bool, date: str | None
) -> TableSet:
    """Add up a lazy narwhals frame into one set of tables."""
    wanted = roles.wanted
    refuse_unknown(wanted, list(frame.collect_schema().names()), "the frame")
    chosen = _selected(frame, wanted.names).to_native()
    job = _Job(roles, bins, pairs, date)
    if frame.implementation.is_dask() or _is_spark(frame):
        part: Part
        if frame.implementation.is_dask():
            part = _of_dask(chosen, job)
        elif _is_plain(frame, job):
            part = _of_spark_sql(chosen, job)
        else:
            part = _of_spark(chosen, job)
        if part.tables is None and not part.dropped:  # perhaps no partition has rows
            part = part.with_(job.part(()))
        return part.finished(roles)
    return collect(_pieces(frame, chosen, wanted), roles, bins, pairs=pairs, date=date)


def engine_distributions(frame: Any, nothing: Distributions) -> Distributions:
    """Return the distributions of columns of a lazy narwhals frame."""
    wanted = nothing.wanted
    refuse_unknown(wanted, list(frame.collect_schema().names()), "the frame")
    chosen = _selected(frame, wanted.names).to_native()
    job = _Counting(nothing)
    if frame.implementation.is_dask():
        found: Distributions = _of_dask(chosen, job)
    elif _is_spark(frame):
        found = _of_spark(chosen, job)
    else:
        found = job.part(_pieces(frame, chosen, wanted))
    return found


def _pieces(frame: Any, chosen: Any, wanted: Wanted) -> Iterator[Piece]:
    """Yield the rows of an engine in this process."""
    # Up to eight batches per core are read ahead; for many classes, whose sums are large, one.
    values = BATCH_VALUES if wanted.classes > 1 else BATCH_VALUES // 8
    rows = max(values // wanted.values_per_row, 1)
    polars = frame.implementation.is_polars()
    stream = Stream(_polars_batches(chosen, rows) if polars else _batches(chosen, rows))
    return stream.pieces(wanted)


def collected(frame: Any, wanted: Wanted) -> Any:
    """Bring the wanted columns of a lazy narwhals frame here."""
    refuse_unknown(wanted, list(frame.collect_schema().names()), "the frame")
    names = wanted.names
    here = _selected(frame, names).collect()
    return here.rename(dict(zip(here.columns, names, strict=True)))


def in_engine(frame: Any) -> Present:
    """Return the columns of a lazy narwhals frame."""

    def list_length(name: str) -> int | None:
        first = _selected(frame, [name]).drop_nulls().head(1).collect()
        return in_frame(first).list_length(first.columns[0])

    return Present(list(frame.collect_schema().names()), list_length)


def _is_spark(frame: Any) -> bool:
    return bool(frame.implementation.is_pyspark() or frame.implementation.is_pyspark_connect())


def _selected(frame: Any, names: list[str]) -> Any:
    """Select columns of a lazy narwhals frame; in Spark, rename them to c0, c1, ...

    Spark interprets a dot in a name unless the name is in backticks, which not all calls allow.
    """
    import narwhals.stable.v2 as nw

    if not _is_spark(frame):
        return frame.select(names)
    quoted = [f"`{name.replace('`', '``')}`" for name in names]
    renamed = frame.to_native().select(*quoted).toDF(*(f"c{k}" for k in range(len(names))))
    return nw.from_native(renamed)


# Engines in this process


def _batches(relation: Any, rows: int) -> Any:
    """Return a DuckDB relation as a stream of batches; other streams keep their batch size."""
    return relation.to_arrow_reader(rows) if hasattr(relation, "to_arrow_reader") else relation


def _polars_batches(lazy: Any, rows: int) -> Any:
    import pyarrow as pa

    schema = lazy.clear().collect().to_arrow().schema

    def batches() -> Iterator[Any]:
        for frame in lazy.collect_batches(chunk_size=rows, engine="streaming"):
            yield from frame.to_arrow().cast(schema).to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())


# Engines of many processes


def _of_dask(frame: Any, job: _Job | _Counting) -> _Sums:
    from dask.delayed import delayed

    parts = [delayed(_dask_part)(partition, job) for partition in frame.to_delayed()]
    while len(parts) > 1:
        parts = [
            delayed(_added)(parts[k : k + _ADDED_AT_ONCE], job.nothing)
            for k in range(0, len(parts), _ADDED_AT_ONCE)
        ]
    return _returned(parts[0].compute())


def _dask_part(rows: Any, job: _Job | _Counting) -> _Sums | SoftcalError:
    import narwhals.stable.v2 as nw

    if not len(rows):
        return job.nothing
    try:
        return job.part(frame_pieces(nw.from_native(rows), job.wanted))
    except SoftcalError as error:
        return error


def _is_plain(frame: Any, job: _Job) -> bool:
    """Return whether a query can add up the rows: one probability per row, without ties."""
    import narwhals.stable.v2 as nw

    roles, schema = job.roles, frame.collect_schema()
    of_numbers = [schema[name] for name in roles.wanted.numbers]
    of_segments = [schema[name] for name in roles.by]
    return (
        roles.values == Values()
        and not (roles.classes or roles.bounds or roles.made or roles.group or roles.ranges)
        and not (job.pairs and len(roles.y_prob) > 1)
        and bool(roles.grid(job.bins).guide.equal)
        and all(kind.is_numeric() or kind == nw.Boolean for kind in of_numbers)
        and not any(kind.is_nested() or kind == nw.Unknown for kind in of_segments)
        and hasattr(frame.to_native(), "toArrow")  # not before version 4
    )


def _of_spark_sql(frame: Any, job: _Job) -> Part:
    """Add up the rows by a query, so that the workers need no Python."""
    roles = job.roles
    at = {name: f"c{k}" for k, name in enumerate(roles.wanted.names)}
    votes = at.get(str(roles.n_votes), roles.n_votes)
    segments = {f"by{k}": at[name] for k, name in enumerate(roles.by)}
    query = sums_query(
        "{rows}",
        at[roles.y_true],
        {str(k): at[name] for k, name in enumerate(roles.y_prob)},
        None if roles.sample_weight is None else at[roles.sample_weight],
        None if votes is None else str(votes),
        segments=segments,
        grid=roles.grid(job.bins),
    )
    sums = frame.sparkSession.sql(query, rows=frame)
    try:
        if roles.by and sums.cache().select(*segments).distinct().count() > MAX_CELLS:
            refuse_many_cells(roles.by)
        found = sums.toArrow()
    finally:
        sums.unpersist()
    model, place, rows = (
        numbers(found.column(name)) for name in ("softcal_model", "softcal_bin", "softcal_rows")
    )
    total = int(rows[model == 0].sum())
    if (place < 0).any():
        return Part(total, None, _census(frame, job, at))
    if not total:
        return Part(0, None)
    cells = Coded(np.zeros(place.size, dtype=np.int64), [()])
    if roles.by:
        cells = coded_cells({name: one_array(found.column(name)) for name in segments})
    keys = np.array([model, np.zeros_like(model), cells.numbers, place], dtype=np.int64)
    values = np.array([numbers(found.column(name)) for name in SUM_NAMES], dtype=np.float64)
    filled = values[SUM_NAMES.index("count")] > 0
    tables = Sparse.of(keys[:, filled], values[:, filled])
    return part_of_sums(Entries(total, cells.names, {"tables": tables}), roles, job.bins, job.date)


def _census(frame: Any, job: _Job, at: dict[str, str]) -> Counted:
    """Count the values that break each rule, by another query."""
    checks = checks_of(job.roles)
    stated = job.roles.n_votes
    if stated is not None:  # the label times the number of votes has a rule of its own
        votes = at.get(str(stated), str(stated))
        at = at | {checks[-1].name: misfit_of(at[job.roles.y_true], votes)}
    query = census_query("{rows}", [(at[check.name], check.rules) for check in checks])
    found = iter(frame.sparkSession.sql(query, rows=frame).collect()[0])
    next(found)
    counted = Counted({}, {})
    for check in checks:
        low, high, signs, whole = (next(found) for _ in range(4))
        low, high = (math.nan if end is None else end for end in (low, high))
        counted.spread[check.name] = Spread(low, high, signs, whole=whole)
        for rule in check.rules:
            count, first = next(found), next(found)
            known = first is not None and not math.isnan(first)
            shown = check.shown({}, 0, first) if known else ""
            text = f", the first {shown}" if shown else ""
            counted.broken[check.name, rule.must] = Broken(count, text)
    return counted


def _of_spark(frame: Any, job: _Job | _Counting) -> _Sums:
    from pyspark.errors import PySparkException

    parts = frame.mapInArrow(partial(_spark_part, job=job), "part binary")
    # The workers also add up these parts, in few tasks, so that few parts are returned.
    added = partial(_spark_added, nothing=job.nothing)
    parts = parts.hint("rebalance").mapInArrow(added, "part binary")
    try:
        found = parts.collect()
    except PySparkException as error:
        if "No module named 'softcal" not in str(error):
            raise
        message = (
            "the Spark workers need softcal to add up their rows: install softcal, narwhals, and "
            "pyarrow on them, or write the rows to Parquet and scan the files."
        )
        raise MissingExtraError(message, name="softcal") from error
    return _returned(_added(_unpacked(row[0] for row in found), job.nothing))


def _spark_part(batches: Iterator[Any], job: _Job | _Counting) -> Iterator[Any]:
    """Add up the batches of one partition in a worker process."""
    import pyarrow as pa

    first = next(batches, None)
    if first is None:
        return
    try:
        names = job.wanted.names
        schema = pa.schema(
            [field.with_name(name) for field, name in zip(first.schema, names, strict=True)]
        )
        renamed = (batch.rename_columns(names) for batch in _joined(batches, first))
        stream = Stream(pa.RecordBatchReader.from_batches(schema, renamed))
        found: _Sums | SoftcalError = job.part(stream.pieces(job.wanted))
    except SoftcalError as error:
        found = error
    yield _packed(found)


def _joined(batches: Iterator[Any], first: Any) -> Iterator[Any]:
    """Concatenate small Arrow batches."""
    import pyarrow as pa

    held, size = [first], first.nbytes
    for batch in batches:
        if size >= _BATCH_BYTES:
            yield from pa.Table.from_batches(held).combine_chunks().to_batches()
            held, size = [], 0
        held.append(batch)
        size += batch.nbytes
    yield from pa.Table.from_batches(held).combine_chunks().to_batches()


def _spark_added(batches: Iterator[Any], nothing: _Sums) -> Iterator[Any]:
    """Add up parts in a worker process."""
    packed = (part for batch in batches for part in batch.column(0).to_pylist())
    yield _packed(_added(_unpacked(packed), nothing))


def _packed(part: _Sums | SoftcalError) -> Any:
    """Return an Arrow batch with the part, serialized by Spark's own serializer."""
    import pyarrow as pa
    from pyspark.serializers import CPickleSerializer

    written = CPickleSerializer().dumps(part)  # type: ignore[no-untyped-call]
    return pa.RecordBatch.from_pydict({"part": pa.array([written], pa.binary())})


def _unpacked(parts: Iterable[bytes]) -> Iterator[_Sums | SoftcalError]:
    from pyspark.serializers import CPickleSerializer

    return map(CPickleSerializer().loads, parts)


def _added(parts: Iterable[_Sums | SoftcalError], nothing: _Sums) -> _Sums | SoftcalError:
    """Add up parts; return the first error instead if there is one."""
    total = nothing
    for part in parts:
        if isinstance(part, SoftcalError):
            return part
        total = total.with_(part)
    return total


def _returned(part: _Sums | SoftcalError) -> _Sums:
    """Return the part, or raise the error of a worker."""
    if isinstance(part, SoftcalError):
        raise part
    return part
