"""One reader for each kind of file: it cuts the file into pieces that threads can decode.

A piece is small however large the file is: a row group of Parquet, a record batch of Arrow, a
block of whole lines of text. Nothing is decoded before someone asks for it, so that the pieces
can be handed to several threads, which decode them there.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from softcal.errors import InputError
from softcal.reading import readable
from softcal.sources.contents import refuse_other_content, refuse_other_file
from softcal.sources.foreign_text import MARKS, number_hint, separator_hint
from softcal.sources.lines import line_ends, whole_lines
from softcal.sources.pieces import (
    Batch,
    Piece,
    Wanted,
    columns_of,
    refuse_other_types,
    refuse_unknown,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_BLOCK_BYTES = 1 << 22
_GROUP_VALUES = 1 << 23
_BATCH_VALUES = 1 << 21
_STREAM_BYTES = 1 << 18
_COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


class _Part(NamedTuple):
    """A part of a file: how many of its bytes, and how to decode it as Arrow tables."""

    size: int
    decode: Callable[[], Iterator[Any]]


class _NotANumber(Exception):  # noqa: N818 - a finding on its way to a message, not the error itself
    """A cell of text where a number should be, and its row within the piece."""

    def __init__(self, name: str, row: int, text: str) -> None:
        super().__init__(name, row, text)
        self.name, self.row, self.text = name, row, text


def pieces(path: Path, wanted: Wanted) -> Iterator[Piece]:
    """Cut a file into pieces, after a look at its columns."""
    with readable(path) as unchanged:
        refuse_other_file(path)
        for number, part in enumerate(_READERS[kind(path)](path, wanted)):
            batches = partial(_batches, path, wanted, number, part, unchanged)
            yield Piece(str(path), part.size, batches)


def _batches(
    path: Path, wanted: Wanted, number: int, part: _Part, unchanged: Callable[[], None]
) -> Iterator[Batch]:
    with readable(path):
        try:
            for table in part.decode():
                unchanged()
                if table.num_rows:
                    table.validate(full=True)  # else a damaged file leads Arrow out of bounds
                    yield columns_of(table, wanted)
        except _NotANumber as found:
            # Only now does the row's number in the file matter: count the rows before the piece.
            before = islice(_READERS[kind(path)](path, wanted), number)
            row = 1 + found.row + sum(table.num_rows for one in before for table in one.decode())
            message = (
                f"{found.name} must hold numbers: row {row} of {path.name} holds the text "
                f"{found.text!r:.60}.{number_hint(found.text)}"
            )
            raise InputError(message) from found


def kind(path: Path) -> str:
    """Give the suffix that says how a file is read, '.csv' for data.csv.gz; '' if none does."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
        return suffixes[-1] if suffixes and suffixes[-1] in _TEXT else ""
    return suffixes[-1] if suffixes and suffixes[-1] in _READERS else ""


def _parquet(path: Path, wanted: Wanted) -> Iterator[_Part]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        meta = file.metadata
        refuse_unknown(wanted, file.schema_arrow.names, path.name)
        refuse_other_types(wanted, file.schema_arrow, path.name)
    size = path.stat().st_size / max(meta.num_rows, 1)
    for group in range(meta.num_row_groups):
        rows = meta.row_group(group).num_rows
        decode = partial(_row_group, path, meta, group, wanted.names)
        if rows * len(wanted.names) <= _GROUP_VALUES:
            yield _Part(round(rows * size), partial(decode, _BATCH_VALUES))
        else:  # too large to hold: read it here, bit by bit; several of them wait to be added up
            for batch in decode(_BATCH_VALUES // 8):
                yield _Part(round(batch.num_rows * size), partial(_once, batch))


def _row_group(path: Path, meta: Any, group: int, names: list[str], values: int) -> Iterator[Any]:
    import pyarrow.parquet as pq

    # Buffered: else a column of the row group is first read whole, however large it is.
    with pq.ParquetFile(path, metadata=meta, buffer_size=_STREAM_BYTES, pre_buffer=False) as file:
        rows = max(values // len(names), 1)
        yield from file.iter_batches(rows, row_groups=[group], columns=names, use_threads=False)


def _arrow(path: Path, wanted: Wanted) -> Iterator[_Part]:
    import pyarrow as pa

    with pa.OSFile(str(path)) as file:
        magic = file.read(6)
        file.seek(0)
        if magic == b"ARROW1":
            yield from _arrow_batches(path, pa.ipc.open_file(file), wanted)
        else:
            yield from _arrow_batches(path, pa.ipc.open_stream(file), wanted)


def _arrow_batches(path: Path, reader: Any, wanted: Wanted) -> Iterator[_Part]:
    refuse_unknown(wanted, reader.schema.names, path.name)
    refuse_other_types(wanted, reader.schema, path.name)
    random_access = hasattr(reader, "get_batch")
    batches = map(reader.get_batch, range(reader.num_record_batches)) if random_access else reader
    size = path.stat().st_size
    for batch in batches:
        share = 1 / reader.num_record_batches if random_access else 0
        yield _Part(round(size * share), partial(_once, batch.select(wanted.names)))


def _once(batch: Any) -> Iterator[Any]:
    yield batch


def _text_blocks(path: Path) -> Iterator[tuple[bytes, int]]:
    """Walk through a text file by blocks of whole lines; with each, the bytes read for it."""
    import pyarrow as pa

    with pa.OSFile(str(path)) as file:
        compression = _COMPRESSED.get(path.suffix.lower())
        stream = file if compression is None else pa.CompressedInputStream(file, compression)
        done = 0
        for block in whole_lines(partial(stream.read, _BLOCK_BYTES)):
            if not done:
                refuse_other_content(block, kind(path), path)
            yield block, file.tell() - done
            done = file.tell()


def _csv(path: Path, wanted: Wanted) -> Iterator[_Part]:
    from pyarrow import csv

    mark = MARKS[kind(path)]
    parse = csv.ParseOptions(delimiter=mark, newlines_in_values=True)
    blocks = _text_blocks(path)
    first, size = next(blocks, (b"", 0))
    head, names = _csv_head(parse, first)
    refuse_unknown(wanted, names, path.name, separator_hint(names, mark))
    decode = partial(_csv_block, parse, names, wanted, _csv_types(parse, first, wanted))
    yield _Part(size, partial(decode, first[len(head) :]))
    for block, size in blocks:
        yield _Part(size, partial(decode, block))


def _csv_head(parse: Any, first: bytes) -> tuple[bytes, list[str]]:
    """Find where the line of names ends, as the parser sees it: with no row of data in it."""
    import pyarrow as pa
    from pyarrow import csv

    for end in line_ends(first):
        try:
            found = csv.read_csv(pa.BufferReader(first[:end]), _at_once(first), parse)
        except pa.ArrowInvalid:  # blank lines, or the middle of a quoted name
            continue
        return first[:end], found.schema.names
    return first, csv.read_csv(pa.BufferReader(first), _at_once(first), parse).schema.names


def _at_once(block: bytes, **options: Any) -> Any:
    """Let Arrow read text whole, here: cut in smaller blocks, a long line would be refused."""
    from pyarrow import csv

    return csv.ReadOptions(use_threads=False, block_size=len(block) + 1, **options)


def _csv_types(parse: Any, first: bytes, wanted: Wanted) -> dict[str, Any]:
    """Say how to read each column: truth values where the file starts with them, else float64.

    The names of slices stay text, since in a text file 07 may be a name; a column that is read as
    numbers too is made so from the text.
    """
    import pyarrow as pa
    from pyarrow import csv

    convert = csv.ConvertOptions(include_columns=wanted.names)
    found = csv.read_csv(pa.BufferReader(first), _at_once(first), parse, convert)
    types = {
        name: pa.bool_() if pa.types.is_boolean(found.schema.field(name).type) else pa.float64()
        for name in wanted.numbers
    }
    return types if wanted.by is None else {**types, wanted.by: pa.string()}


def _csv_block(
    parse: Any, names: list[str], wanted: Wanted, types: dict[str, Any], block: bytes
) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import csv

    if not block.strip():
        return

    def read(types: dict[str, Any]) -> Any:
        return csv.read_csv(
            pa.BufferReader(block),
            _at_once(block, column_names=names),
            parse,
            csv.ConvertOptions(column_types=types, include_columns=wanted.names),
        )

    try:
        table = read(types)
    except pa.ArrowInvalid:
        _refuse_text(read({name: pa.string() for name in wanted.names}), wanted)
        raise
    yield table if wanted.by is None else _with_gaps(table, wanted.by)


def _with_gaps(table: Any, by: str) -> Any:
    """Take an empty cell for no value, which is how text files write one."""
    import pyarrow as pa
    from pyarrow import compute as pc

    names = table.column(by)
    filled = pc.if_else(pc.equal(names, ""), pa.scalar(None, pa.string()), names)
    return table.set_column(table.column_names.index(by), by, filled)


def _refuse_text(table: Any, wanted: Wanted) -> None:
    """Find the first cell that is no number, in the order of the columns."""
    for name in wanted.numbers:
        for row, cell in enumerate(table.column(name).to_pylist()):
            if cell and not _is_number(cell):
                raise _NotANumber(name, row, cell)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _json_lines(path: Path, wanted: Wanted) -> Iterator[_Part]:
    import pyarrow as pa
    from pyarrow import json

    blocks = _text_blocks(path)
    first, size = next(blocks, (b"", 0))
    found = _read_json(first).schema
    refuse_unknown(wanted, found.names, path.name)
    refuse_other_types(wanted, found, path.name)
    types = {name: found.field(name).type for name in wanted.names}
    types |= {name: _json_type(types[name]) for name in wanted.numbers}
    parse = json.ParseOptions(
        explicit_schema=pa.schema(types.items()), unexpected_field_behavior="ignore"
    )
    decode = partial(_json_block, parse)
    yield _Part(size, partial(decode, first))
    for block, size in blocks:
        yield _Part(size, partial(decode, block))


def _json_type(found: Any) -> Any:
    """Widen whole numbers, which need not stay whole further down the file."""
    import pyarrow as pa

    return pa.float64() if pa.types.is_integer(found) or pa.types.is_null(found) else found


def _json_block(parse: Any, block: bytes) -> Iterator[Any]:
    if block.strip():
        yield _read_json(block, parse)


def _read_json(block: bytes, parse: Any = None) -> Any:
    import pyarrow as pa
    from pyarrow import json

    if not block.lstrip().startswith(b"{"):  # Arrow crashes where the first line is null
        message = f"every line must be an object, {{...}}: one starts with {block.lstrip()[:20]!r}."
        raise pa.ArrowInvalid(message)
    # One block, however long its lines are: Arrow would refuse a line longer than a block.
    options = json.ReadOptions(use_threads=False, block_size=len(block) + 1)
    return json.read_json(pa.BufferReader(block), options, parse)


_TEXT = {".csv": _csv, ".tsv": _csv, ".jsonl": _json_lines, ".ndjson": _json_lines}
_READERS: dict[str, Callable[[Path, Wanted], Iterator[_Part]]] = {
    **_TEXT,
    ".parquet": _parquet,
    ".pq": _parquet,
    ".arrow": _arrow,
    ".feather": _arrow,
    ".ipc": _arrow,
}

SUFFIXES = ", ".join(_READERS)
