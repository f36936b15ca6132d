"""Read rows from frames in memory and from streams of Arrow batches."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from softcal._validation.arrays import column
from softcal.exceptions import InputError, InputTypeError
from softcal.sources.cells import NotANumberError, numbers_of, without_signs
from softcal.sources.class_columns import Present
from softcal.sources.columns import (
    Batch,
    Named,
    Piece,
    Wanted,
    columns_of,
    length_of_lists,
    numbers,
    one_array,
    plain_values,
    refuse_other_types,
    refuse_unknown,
    rows_of,
    text_hint,
)
from softcal.sources.files import number_hint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PLACE = "the frame"


def frame_pieces(frame: Any, wanted: Wanted) -> list[Piece]:
    """Return the chunks of an eager narwhals frame as pieces, without copying columns."""
    refuse_unknown(wanted, frame.columns, _PLACE)
    if not len(frame):
        return []  # without a look at types, which an empty frame may not have
    if frame.implementation.is_pandas():
        return list(_pieces(_pandas_batch(frame.to_native(), wanted), wanted))
    table = frame.select(wanted.names).to_arrow()
    refuse_other_types(wanted, table.schema, _PLACE)
    batches = [_columns(batch, wanted) for batch in table.to_batches() if batch.num_rows]
    return [piece for batch in batches for piece in _pieces(batch, wanted)]


def _pandas_batch(frame: Any, wanted: Wanted) -> Batch:
    import pyarrow as pa

    batch: Batch = {
        name: _numbers(frame[name], name, percent=name in wanted.signed) for name in wanted.numbers
    }
    for name in (*wanted.named, *wanted.lists):
        try:
            values = pa.Array.from_pandas(frame[name])
        except (pa.ArrowException, TypeError) as error:
            message = f"{name} must hold values of one simple type: {error}."
            raise InputTypeError(message) from error
        if name in wanted.lists:
            refuse_other_types(Wanted((), lists=(name,)), pa.schema([(name, values.type)]), _PLACE)
            batch[name] = one_array(values)
        else:
            batch[Named(name)] = plain_values(values, name)
    return batch


def _columns(table: Any, wanted: Wanted) -> Batch:
    with _naming_the_text():
        return columns_of(without_signs(table, wanted), wanted)


@contextmanager
def _naming_the_text() -> Iterator[None]:
    """Raise for a text that is not a percentage; its row is unknown where rows are partitioned."""
    try:
        yield
    except NotANumberError as found:
        message = (
            f"{found.name} must hold percentages: it holds the text {found.text!r:.60}."
            f"{number_hint(found.text, percent=True)}"
        )
        raise InputError(message) from found


def _numbers(series: Any, name: str, *, percent: bool) -> Any:
    """Read a pandas column of numbers; what is missing among objects becomes NaN, as elsewhere."""
    may_be_text = str(series.dtype) in ("object", "str", "string", "category")
    if percent and may_be_text:
        cells = series.astype(object).where(series.notna(), None).tolist()
        plain = [cell.item() if isinstance(cell, np.generic) else cell for cell in cells]
        with _naming_the_text():
            return numbers(numbers_of(plain, name, percent=True))
    if series.dtype == object:
        series = series.where(series.notna(), float("nan"))
    try:
        return column(series, name)
    except InputTypeError as error:
        if not may_be_text:
            raise
        message = f"{error}{text_hint()}"
        raise InputTypeError(message) from error


def in_frame(frame: Any) -> Present:
    """Return the columns of an eager narwhals frame."""

    def list_length(name: str) -> int | None:
        column = _arrow_column(frame, name)
        return length_of_lists(column.type, lambda: column)

    return Present(frame.columns, list_length)


def _arrow_column(frame: Any, name: str) -> Any:
    """Return enough of a column as Arrow to tell whether it holds lists."""
    import pyarrow as pa

    if frame.implementation.is_pandas():
        try:
            return pa.Array.from_pandas(frame.to_native()[name].dropna().head(1))
        except (pa.ArrowException, TypeError):  # mixed types, so not lists
            return pa.array([], pa.null())
    return frame.select(name).to_arrow().column(0)


def of_columns(columns: Mapping[str, Any]) -> Any:
    """Return the Arrow table of columns in memory, each a list or an array."""
    import pyarrow as pa

    try:
        return pa.table(dict(columns))
    except (pa.ArrowException, TypeError, ValueError) as error:
        message = (
            "a dict of columns must map names to lists or one-dimensional arrays of the same "
            f"length: {' '.join(str(error).split())}."
        )
        raise InputError(message) from error


class Stream:
    """An Arrow dataset, or another stream of Arrow batches, which is read once."""

    def __init__(self, source: Any) -> None:
        import pyarrow as pa

        self._dataset = source if hasattr(source, "scanner") else None
        self._first: list[Any] = []  # batches that were read to inspect them
        if self._dataset is not None:
            self._schema = source.schema
            return
        # A column also has the Arrow interface, but it has a dtype.
        if not hasattr(source, "__arrow_c_stream__") or hasattr(source, "dtype"):
            message = (
                f"cannot scan a {type(source).__name__}: pass a path, a dict of columns, or a "
                "pandas, Polars, PyArrow, DuckDB, Dask, or Spark frame."
            )
            raise InputTypeError(message)
        self._reader = pa.RecordBatchReader.from_stream(source)
        self._schema = self._reader.schema

    @property
    def present(self) -> Present:
        """The columns of the stream."""

        def list_length(name: str) -> int | None:
            return length_of_lists(self._schema.field(name).type, lambda: self._look_at(name))

        return Present(self._schema.names, list_length)

    def _look_at(self, name: str) -> Any:
        """Return the first values of a column; keep the batches read for that."""
        if self._dataset is not None:
            return self._dataset.scanner(columns=[name]).head(1).column(0)
        if not self._first:
            self._first = list(islice((batch for batch in self._reader if batch.num_rows), 1))
        return self._first[0].column(name) if self._first else self._schema.empty_table()[name]

    def pieces(self, wanted: Wanted) -> Iterator[Piece]:
        """Yield each batch of rows as a piece."""
        refuse_unknown(wanted, self._schema.names, _PLACE)
        if self._dataset is not None:
            self._reader = self._dataset.scanner(columns=wanted.names).to_reader()
        refuse_other_types(wanted, self._schema, _PLACE)
        for batch in chain(self._first, self._reader):
            if batch.num_rows:
                yield from _pieces(_columns(batch, wanted), wanted)


def _pieces(batch: Batch, wanted: Wanted) -> Iterator[Piece]:
    """Split rows of many classes into pieces without a copy; keep other rows in one piece."""
    for start, size in wanted.cut(rows_of(batch)):
        part = {name: _part(values, start, size) for name, values in batch.items()}
        yield Piece("", 0, partial(iter, [part]))


def _part(values: Any, start: int, size: int) -> Any:
    """Return a slice of a NumPy or Arrow array."""
    return values.slice(start, size) if hasattr(values, "slice") else values[start : start + size]
