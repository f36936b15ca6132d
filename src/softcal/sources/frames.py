"""Rows that are in memory already, or come as a stream of Arrow batches."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from softcal._validation.arrays import column
from softcal.exceptions import InputTypeError
from softcal.sources.columns import (
    Batch,
    Named,
    Piece,
    Wanted,
    columns_of,
    plain_values,
    refuse_other_types,
    refuse_unknown,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLACE = "the frame"


def frame_pieces(frame: Any, wanted: Wanted) -> list[Piece]:
    """Cut an eager narwhals frame where it is cut already; columns are not copied."""
    refuse_unknown(wanted, frame.columns, _PLACE)
    if frame.implementation.is_pandas():
        return [_piece(_pandas_batch(frame.to_native(), wanted))]
    table = frame.select(wanted.names).to_arrow()
    refuse_other_types(wanted, table.schema, _PLACE)
    return [_piece(columns_of(batch, wanted)) for batch in table.to_batches() if batch.num_rows]


def _pandas_batch(frame: Any, wanted: Wanted) -> Batch:
    import pyarrow as pa

    batch: Batch = {name: column(frame[name], name) for name in wanted.numbers}
    for name in wanted.named:
        try:
            values = pa.Array.from_pandas(frame[name])
        except (pa.ArrowException, TypeError) as error:
            message = f"{name} must hold values of one plain kind: {error}."
            raise InputTypeError(message) from error
        batch[Named(name)] = plain_values(values, name)
    return batch


def stream_pieces(source: Any, wanted: Wanted) -> Iterator[Piece]:
    """Read an Arrow dataset, or anything else that gives a stream of Arrow batches, once."""
    import pyarrow as pa

    if hasattr(source, "scanner"):
        refuse_unknown(wanted, source.schema.names, _PLACE)
        source = source.scanner(columns=wanted.names).to_reader()
    elif not hasattr(source, "__arrow_c_stream__") or hasattr(source, "dtype"):  # or a column
        message = (
            f"cannot scan a {type(source).__name__}: pass a path, or a pandas, Polars, PyArrow, "
            "DuckDB, Dask or Spark frame; for arrays use reliability(y_true, y_prob)."
        )
        raise InputTypeError(message)
    reader = pa.RecordBatchReader.from_stream(source)
    refuse_unknown(wanted, reader.schema.names, _PLACE)
    refuse_other_types(wanted, reader.schema, _PLACE)
    for batch in reader:
        if batch.num_rows:
            yield _piece(columns_of(batch, wanted))


def _piece(batch: Batch) -> Piece:
    return Piece("", 0, partial(iter, [batch]))
