"""Columns of files of any size: one reader per format, a bounded number of rows at a time."""

# pyarrow.dataset does not replace these readers: even with the least readahead it holds a Parquet
# row group whole (20 million rows in one group took 720 MB, and 240 MB here), and it takes the
# format from the caller, not from the content.

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from softcal._io import not_utf_8, readable, refuse_elsewhere
from softcal._parallel import in_order
from softcal.exceptions import InputError
from softcal.sources.columns import (
    BATCH_VALUES,
    Batch,
    Named,
    Piece,
    Wanted,
    columns_of,
    refuse_other_types,
    refuse_unknown,
    rows_of,
)
from softcal.table.files import PARQUET, is_saved_schema, is_start_of_saved

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOOKED_AT = 4096  # bytes
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class Format(NamedTuple):
    """How a file is read: its kind, what it is compressed with, and what separates its cells."""

    kind: str  # "parquet", "arrow", "json" (lines) or "text"
    compression: str | None = None
    mark: str = ","


# How content starts, as regular expressions. A byte that no text has follows where the first ones
# alone could be the name of a column.
_KINDS = {
    "parquet": PARQUET.pattern,
    "arrow": rb"ARROW1\0|\xff{4}",
    "json": rb"(\xef\xbb\xbf)?\s*\{",
}
_COMPRESSIONS = {"gzip": rb"\x1f\x8b", "bz2": rb"BZh\d1AY&SY", "zstd": rb"\x28\xb5\x2f\xfd"}
_SAVE = "Save the sheet as CSV in UTF-8."
_REFUSED = (
    (rb"FEA1\0", "a Feather file of version 1", "Save it again as Parquet."),
    (rb"PK\x03\x04.{26}(\[Content_Types]|_rels/|docProps/|xl/|mimetype)",
     "a workbook of Excel or LibreOffice", _SAVE),
    (rb"\xd0\xcf\x11\xe0", "an old workbook of Excel (.xls)", _SAVE),
    (rb"PK\x03\x04", "a zip archive", "Unzip it first."),
    (rb"\xfd7zXZ\0", "xz", "Decompress it first."),
    (rb"(\xef\xbb\xbf)?\s*\[\s*\{", "a JSON array", "Write one object per line (JSON lines)."),
)  # fmt: skip


def format_of(path: Path) -> Format:
    """Recognize a file by its content, whatever it is called; a name in .tsv means tabs.

    Raises
    ------
    InputError
        If it holds something that is not read, with the remedy.
    """
    mark = "\t" if ".tsv" in map(str.lower, path.suffixes) else ","
    with path.open("rb") as file:
        start = file.read(_LOOKED_AT)
    compression = _first_match(_COMPRESSIONS, start)
    if compression is not None:
        start = _decompressed_start(path, compression)
    if is_start_of_saved(start):
        _refuse_set(path)
    for pattern, what, remedy in _REFUSED:
        if re.match(pattern, start, re.DOTALL):
            message = f"cannot read {path}: it holds {what}. {remedy}"
            raise InputError(message)
    kind = _first_match(_KINDS, start) or "text"
    binary = kind in ("parquet", "arrow") or _first_match(_COMPRESSIONS, start) is not None
    if compression is not None and binary:
        message = (
            f"cannot read {path}: only text may be compressed as a whole. Decompress it first."
        )
        raise InputError(message)
    if not binary:
        _refuse_other_text(start, path)
    return Format(kind, compression, mark)


def _first_match(patterns: dict[str, bytes], start: bytes) -> str | None:
    return next((name for name, each in patterns.items() if re.match(each, start)), None)


def _decompressed_start(path: Path, compression: str) -> bytes:
    import pyarrow as pa

    with pa.OSFile(str(path)) as file, pa.CompressedInputStream(file, compression) as stream:
        found: bytes = stream.read(_LOOKED_AT)
        return found


def _refuse_set(path: Path) -> None:
    message = f"cannot read rows from {path}: this is a saved set: use softcal.load."
    raise InputError(message)


def _refuse_other_text(start: bytes, path: Path) -> None:
    """Refuse text of two bytes per character, as spreadsheets save it, and what is not text."""
    zeros = sorted((start[::2].count(0), start[1::2].count(0)))
    # Of letters in UTF-16 every second byte is 0, and no other.
    if start.startswith(_UTF_16) or (zeros[0] == 0 and 4 * zeros[1] > len(start)):
        message = f"cannot read {path}: {not_utf_8('UTF-16')}"
        raise InputError(message)
    if b"\0" in start:
        message = (
            f"cannot read {path}: it must be text in UTF-8, and has a byte 0, which no text has. "
            "Save the data as CSV in UTF-8."
        )
        raise InputError(message)


MARKS = {".csv": ",", ".tsv": "\t"}
"""What separates the cells of a text file, by the end of its name."""

_NAMED = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
_ANSWERS = (
    ("yes", "no"), ("y", "n"), ("true", "false"), ("t", "f"), ("positive", "negative"),
)  # fmt: skip
_SUFFIXES = {mark: suffix for suffix, mark in MARKS.items()}


def separator_hint(names: Sequence[str], mark: str) -> str:
    """Say, where names of columns look separated by another mark, by which; else nothing."""
    line = mark.join(names)
    often = max((other for other in _NAMED if other != mark), key=line.count)
    if line.count(often) <= line.count(mark):
        return ""
    remedy = f"Save it with {_NAMED[mark]}, and decimals with a point."
    if often in _SUFFIXES:
        remedy = f"Let its name end in {_SUFFIXES[often]}."
    return f" They look separated by {_NAMED[often]}, not {_NAMED[mark]}. {remedy}"


def number_hint(text: str) -> str:
    """Say how to write 0,5 or 63.7% or yes as a number; nothing for other text.

    >>> number_hint("63.7 %")
    ' Write 0.637.'
    """
    if re.fullmatch(r"[+-]?\d*,\d+", text):
        return " Write decimals with a point."
    if percent := re.fullmatch(r"(\d+)[.,]?(\d*) ?%", text):
        whole, part = percent.groups()
        return f" Write {Decimal(f'{whole}.{part}').scaleb(-2).normalize():f}."
    for one, zero in _ANSWERS:
        if text.strip().lower() in {one, zero}:
            return f" Write 1 for {one} and 0 for {zero}."
    return ""


_QUOTE, _END = b'"', b"\n"
_LONGEST_CELL = 1 << 24


def whole_lines(read_into: Callable[[memoryview], int], size: int) -> Iterator[bytearray]:
    """Yield blocks that end where a line ends; `read_into` fills a part of a block, 0 at the end.

    Each block is read in its place: copies would take as long as half of the parsing.
    """
    rest = bytearray()
    while True:
        block = bytearray(len(rest) + size)
        block[: len(rest)] = rest
        with memoryview(block) as view, view[len(rest) :] as free:
            found = read_into(free)
        del block[len(rest) + found :]
        if not found:
            break
        end = _last_line_end(block)
        rest = block[end:]
        del block[end:]
        if block:
            yield block
    if rest:
        yield rest


def _last_line_end(block: bytearray) -> int:
    """Say where the last whole line ends, outside quotes; 0 if none does."""
    end = block.rfind(_END) + 1
    if _QUOTE not in block:
        return end
    quotes = block.count(_QUOTE, 0, end)
    before = end
    while before and quotes % 2:  # in a quoted cell
        before, after = block.rfind(_END, 0, before - 1) + 1, before
        quotes -= block.count(_QUOTE, before, after)
    # A quote that nothing closes in so long a text opens no cell: it is a mark like any other.
    return end if not before and len(block) > _LONGEST_CELL else before


def line_ends(block: bytes | bytearray) -> Iterator[int]:
    """Walk through the places after every line end, of any kind and inside quotes too."""
    return (found.end() for found in re.finditer(rb"\r\n?|\n", block))


_BLOCK_BYTES = 1 << 22
_START_BYTES = 1 << 17
_GROUP_VALUES = 1 << 23
_WIDE = 64  # columns, from which on a row group is read some columns at a time
_WIDE_VALUES = 1 << 24
_STREAM_BYTES = 1 << 18  # of one column
_STREAMS_BYTES = 1 << 24  # of all columns


class _Part(NamedTuple):
    """A part of a file: how many of its bytes, and how to decode it as Arrow tables."""

    size: int
    decode: Callable[[], Iterator[Any]]
    checked: bool = False  # by Arrow, as it reads CSV


class _NotANumber(Exception):  # noqa: N818 - a finding on its way to a message, not the error itself
    """A cell of text where a number should be, and its row within the piece."""

    def __init__(self, name: str, row: int, text: str) -> None:
        super().__init__(name, row, text)
        self.name, self.row, self.text = name, row, text


def pieces(path: Path, wanted: Wanted) -> Iterator[Piece]:
    """Cut a file into pieces, after a look at its columns."""
    with readable(path) as unchanged:
        parts = partial(_parts, path, format_of(path), wanted)
        for number, part in enumerate(parts()):
            batches = partial(_batches, path, wanted, number, part, parts, unchanged)
            yield Piece(str(path), part.size, batches)


def _batches(
    path: Path,
    wanted: Wanted,
    number: int,
    part: _Part,
    parts: Callable[[], Iterator[_Part]],
    unchanged: Callable[[], None],
) -> Iterator[Batch]:
    with readable(path):
        try:
            for table in part.decode():
                unchanged()
                if not part.checked:
                    table.validate(full=True)  # else a damaged file leads Arrow out of bounds
                yield columns_of(table, wanted)
        except _NotANumber as found:
            # Only now does the row's number in the file matter: count the rows before the piece.
            before = islice(parts(), number)
            row = 1 + found.row + sum(table.num_rows for one in before for table in one.decode())
            message = (
                f"{found.name} must hold numbers: row {row} of {path.name} holds the text "
                f"{found.text!r:.60}.{number_hint(found.text)}"
            )
            raise InputError(message) from found


def _parts(path: Path, form: Format, wanted: Wanted) -> Iterator[_Part]:
    if form.kind == "parquet":
        return _parquet(path, wanted)
    if form.kind == "arrow":
        return _arrow(path, wanted)
    return _json_lines(path, form, wanted) if form.kind == "json" else _csv(path, form, wanted)


def column_names(path: Path) -> list[str]:
    """Read the names of a file's columns, and as little else of it as possible."""
    return list(schema_of(path).names)


def schema_of(path: Path) -> Any:
    """Read the Arrow schema of a file; in a text file with a line of names, all is text."""
    import pyarrow as pa

    with readable(path):
        form = format_of(path)
        if form.kind == "parquet":
            import pyarrow.parquet as pq

            return pq.read_schema(path)
        if form.kind == "arrow":
            with _arrow_reader(path) as reader:
                return reader.schema
        first, _ = next(_text_blocks(path, form), (bytearray(), 0))
        if form.kind == "json":
            return _read_json(first).schema
        return pa.schema([(name, pa.string()) for name in _csv_head(_csv_options(form), first)[1]])


def _parquet(path: Path, wanted: Wanted) -> Iterator[_Part]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        meta = file.metadata
        if is_saved_schema(file.schema_arrow):
            _refuse_set(path)
        refuse_unknown(wanted, file.schema_arrow.names, path.name)
        refuse_other_types(wanted, file.schema_arrow, path.name)
    size = path.stat().st_size / max(meta.num_rows, 1)
    wide = len(wanted.names) > _WIDE
    for group in range(meta.num_row_groups):
        rows = meta.row_group(group).num_rows
        values = rows * wanted.values_per_row
        decode = partial(_row_group, path, meta, group, wanted)
        if wide and values <= _WIDE_VALUES:
            yield _Part(round(rows * size), partial(_wide_row_group, path, meta, group, wanted))
        elif values <= _GROUP_VALUES:
            yield _Part(round(rows * size), partial(decode, BATCH_VALUES))
        else:  # too large to hold: read it here, bit by bit; several of them wait to be added up
            for batch in decode(BATCH_VALUES if wanted.classes > 1 else BATCH_VALUES // 8):
                yield _Part(round(batch.num_rows * size), partial(_once, batch))


def _row_group(path: Path, meta: Any, group: int, wanted: Wanted, values: int) -> Iterator[Any]:
    import pyarrow.parquet as pq

    # Buffered: else a column of the row group is first read whole, however large it is.
    buffer = min(_STREAM_BYTES, _STREAMS_BYTES // len(wanted.names) + 1)
    with pq.ParquetFile(path, metadata=meta, buffer_size=buffer, pre_buffer=False) as file:
        rows = max(values // wanted.values_per_row, 1)
        yield from file.iter_batches(
            rows, row_groups=[group], columns=wanted.names, use_threads=False
        )


def _wide_row_group(path: Path, meta: Any, group: int, wanted: Wanted) -> Iterator[Any]:
    """Read a row group of many columns whole, but the pages of few columns at a time.

    Batch by batch, a page of every column would be held: of 1,000 columns of 20,000 rows 373 MB,
    and so 183 MB.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {}
    with pq.ParquetFile(path, metadata=meta, buffer_size=_STREAM_BYTES, pre_buffer=False) as file:
        for start in range(0, len(wanted.names), _WIDE):
            some = wanted.names[start : start + _WIDE]
            part = file.read_row_group(group, columns=some, use_threads=False)
            columns |= {name: part.column(name) for name in some}
    yield from pa.table(columns).to_batches(max(BATCH_VALUES // wanted.values_per_row, 1))


def _arrow(path: Path, wanted: Wanted) -> Iterator[_Part]:
    with _arrow_reader(path) as reader:
        refuse_unknown(wanted, reader.schema.names, path.name)
        refuse_other_types(wanted, reader.schema, path.name)
        in_file = hasattr(reader, "get_batch")  # else a stream, which does not know its length
        batches = map(reader.get_batch, range(reader.num_record_batches)) if in_file else reader
        share = path.stat().st_size / max(reader.num_record_batches, 1) if in_file else 0
        for batch in batches:
            for cut in wanted.cut(batch.num_rows):
                size = round(share * cut[1] / batch.num_rows)
                yield _Part(size, partial(_once, batch.select(wanted.names).slice(*cut)))


@contextmanager
def _arrow_reader(path: Path) -> Iterator[Any]:
    """Open an Arrow file or an Arrow stream."""
    import pyarrow as pa

    with pa.OSFile(str(path)) as file:
        magic = file.read(6)
        file.seek(0)
        yield pa.ipc.open_file(file) if magic == b"ARROW1" else pa.ipc.open_stream(file)


def _once(batch: Any) -> Iterator[Any]:
    yield batch


def _text_blocks(path: Path, form: Format) -> Iterator[tuple[bytearray, int]]:
    """Walk through a text file by blocks of whole lines; with each, the bytes read for it."""
    import pyarrow as pa

    with pa.OSFile(str(path)) as file:
        stream = file
        if form.compression is not None:
            stream = pa.CompressedInputStream(file, form.compression)
        done = 0
        for block in whole_lines(stream.readinto, _BLOCK_BYTES):
            yield block, file.tell() - done
            done = file.tell()


def _csv(path: Path, form: Format, wanted: Wanted) -> Iterator[_Part]:
    parse = _csv_options(form)
    blocks = _text_blocks(path, form)
    first, size = next(blocks, (bytearray(), 0))
    head, names = _csv_head(parse, first)
    refuse_unknown(wanted, names, path.name, separator_hint(names, form.mark))
    decode = partial(_csv_block, parse, names, wanted, _csv_types(parse, first, wanted))
    yield _Part(size, partial(decode, first[len(head) :]), checked=True)
    for block, size in blocks:
        yield _Part(size, partial(decode, block), checked=True)


def _csv_options(form: Format) -> Any:
    from pyarrow import csv

    return csv.ParseOptions(delimiter=form.mark, newlines_in_values=True)


def _csv_head(parse: Any, first: bytearray) -> tuple[bytearray, list[str]]:
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


def _at_once(block: bytearray, **options: Any) -> Any:
    """Let Arrow read text whole, here: cut in smaller blocks, a long line would be refused."""
    from pyarrow import csv

    return csv.ReadOptions(use_threads=False, block_size=len(block) + 1, **options)


def _csv_types(parse: Any, first: bytearray, wanted: Wanted) -> dict[str, Any]:
    """Say how to read each column: truth values where the file starts with them, else float64.

    A few thousand rows are enough to see that.

    The names of slices stay text, since in a text file 07 may be a name; a column that is read as
    numbers too is made so from the text.
    """
    import pyarrow as pa
    from pyarrow import csv

    start = first[:_START_BYTES]
    start = first[: _last_line_end(start)] or first
    convert = csv.ConvertOptions(include_columns=wanted.names)
    found = csv.read_csv(pa.BufferReader(start), _at_once(start), parse, convert)
    types = {
        name: pa.bool_() if pa.types.is_boolean(found.schema.field(name).type) else pa.float64()
        for name in wanted.numbers
    }
    return types | {name: pa.string() for name in wanted.named}


def _csv_block(
    parse: Any, names: list[str], wanted: Wanted, types: dict[str, Any], block: bytearray
) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import csv

    if not block or block.isspace():
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
    for name in wanted.named:
        table = _with_gaps(table, name)
    yield table


def _with_gaps(table: Any, name: str) -> Any:
    """Take an empty cell for no value, which is how text files write one."""
    import pyarrow as pa
    from pyarrow import compute as pc

    names = table.column(name)
    has_text = pc.binary_length(names).cast(pa.bool_())
    # Arrays only: for a scalar, Arrow imports pandas.
    filled = pc.if_else(has_text, names, pa.nulls(len(names), pa.string()))
    return table.set_column(table.column_names.index(name), name, filled)


def _refuse_text(table: Any, wanted: Wanted) -> None:
    """Find the first cell that is not a number, in the order of the columns."""
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


def _json_lines(path: Path, form: Format, wanted: Wanted) -> Iterator[_Part]:
    import pyarrow as pa
    from pyarrow import json

    blocks = _text_blocks(path, form)
    first, size = next(blocks, (bytearray(), 0))
    found = _read_json(first).schema
    refuse_unknown(wanted, found.names, path.name)
    refuse_other_types(wanted, found, path.name)
    types = {name: found.field(name).type for name in wanted.names}
    types |= {name: _json_type(types[name]) for name in (*wanted.numbers, *wanted.lists)}
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

    if pa.types.is_list(found):
        return pa.list_(_json_type(found.value_type))
    return pa.float64() if pa.types.is_integer(found) or pa.types.is_null(found) else found


def _json_block(parse: Any, block: bytearray) -> Iterator[Any]:
    if block and not block.isspace():
        yield _read_json(block, parse)


def _read_json(block: bytearray, parse: Any = None) -> Any:
    import pyarrow as pa
    from pyarrow import json

    if not re.match(rb"\s*\{", block):  # Arrow crashes where the first line is null
        message = f"every line must be an object, {{...}}: one starts with {block.lstrip()[:20]!r}."
        raise pa.ArrowInvalid(message)
    # One block, however long its lines are: Arrow would refuse a line longer than a block.
    options = json.ReadOptions(use_threads=False, block_size=len(block) + 1)
    return json.read_json(pa.BufferReader(block), options, parse)


_TEXT = (".csv", ".tsv", ".jsonl", ".ndjson")
_BINARY = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
_COMPRESSED = (".gz", ".bz2", ".zst")
SUFFIXES = ", ".join(_TEXT + _BINARY)


Paths: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]"
"""A file, a folder, a glob pattern, or several of these."""

Progress: TypeAlias = Callable[[int, int, int], None]
"""Told at the start and after each piece: rows and bytes so far, bytes of all files."""


def batches(
    source: Paths,
    columns: Iterable[str],
    *,
    named: Sequence[str] = (),
    progress: Progress | None = None,
) -> Iterator[Batch]:
    """Walk through columns of files as arrays, few rows at a time, decoded on all cores.

    Memory stays bounded whatever the size of the files.

    Parameters
    ----------
    source : path, glob pattern, folder, or several
        Parquet, CSV, TSV, JSON-lines or Arrow files; the text formats may be compressed
        (.gz, .bz2, .zst). Of a folder, every such file in it and below, in the order of the names.
    columns : iterable of str
        The columns to read. They must hold numbers; missing values become NaN.
    named : sequence of str, optional
        More columns, of any kind, given as Arrow arrays under `Named`.
    progress : callable, optional
        Called as `progress(rows, bytes, total_bytes)`, at the start and after each piece of a file.

    Yields
    ------
    dict of str to ndarray
        Columns of one length.

    Raises
    ------
    InputError, InputTypeError
        If a file cannot be read, lacks a column, or holds something other than numbers in it.

    Examples
    --------
    >>> from importlib.resources import files
    >>> items = files("softcal") / "data" / "lidc_malignancy" / "items.csv"
    >>> sum(batch["prob_rf_all"].size for batch in batches(items, ["prob_rf_all"]))
    1377
    """
    return batches_of(source, Wanted(tuple(columns), tuple(named)), progress)


def batches_of(source: Paths, wanted: Wanted, progress: Progress | None = None) -> Iterator[Batch]:
    """Walk through the wanted columns of files, as `batches` does."""

    def decode(piece: Piece) -> tuple[Piece, list[Batch]]:
        return piece, list(piece.batches())

    paths = files_of(source)
    report = reporter(paths, progress)
    # Decoded pieces are much larger than what is made of them, so fewer may wait.
    for piece, found in in_order(decode, all_pieces(paths, wanted), ahead=1):
        yield from found
        report(piece, sum(map(rows_of, found)))


def files_of(source: Paths) -> list[Path]:
    """List the files that a path, a pattern, a folder or several of these stand for."""
    several = [source] if isinstance(source, str | os.PathLike) else list(source)
    found: dict[Path, Path] = {}  # by what they really are
    for one in several:
        try:
            for path in _files_of_one(Path(one)):
                _refuse_twice(path, found)
                found[path.resolve()] = path
        except (OSError, UnicodeEncodeError) as error:
            message = f"cannot read {one!s:.100}: {error!s:.100}"
            raise InputError(message) from error
    return list(found.values())


def _refuse_twice(path: Path, found: dict[Path, Path]) -> None:
    """Refuse a file named twice: its rows would count twice, and look surer than they are."""
    if path.resolve() in found:
        message = f"{path} is named twice, so its rows would count twice. Name each file once."
        raise InputError(message)


def _files_of_one(path: Path) -> list[Path]:
    refuse_elsewhere(path)
    if path.is_dir():
        inside = sorted(below for below in path.rglob("*") if _is_data(below, path))
        return inside or _refuse_none(path)
    if glob.has_magic(str(path)) and not path.exists():
        names = glob.glob(str(path), recursive=True)  # noqa: PTH207 - Path has no absolute ones
        found = [Path(name) for name in sorted(names)]
        return [below for one in found for below in _files_of_one(one)] or _refuse_none(path)
    if not path.exists():
        message = f"no such file: {path}"
        raise InputError(message)
    return [path]


def _is_data(path: Path, folder: Path) -> bool:
    """Whether a file of a folder counts, by its name: not what Spark puts beside the data."""
    named = path.relative_to(folder).parts
    *_, before, last = ("", "", *map(str.lower, path.suffixes))
    known = before in _TEXT if last in _COMPRESSED else last in _TEXT + _BINARY
    return known and not any(part.startswith(("_", ".")) for part in named)


def _refuse_none(path: Path) -> list[Path]:
    message = f"no data in {path}: it has no file whose name ends in one of {SUFFIXES}."
    raise InputError(message)


def all_pieces(paths: Iterable[Path], wanted: Wanted) -> Iterator[Piece]:
    """Cut all files into pieces, one file after another."""
    for path in paths:
        yield from pieces(path, wanted)


def reporter(paths: list[Path], progress: Progress | None) -> Callable[[Piece, int], None]:
    """Make the function that adds up what is done and tells the caller."""
    total = sum(path.stat().st_size for path in paths if path.is_file())
    rows = done = 0
    if progress is not None:
        progress(0, 0, total)

    def report(piece: Piece, more: int) -> None:
        nonlocal rows, done
        rows += more
        done += piece.size
        if progress is not None:
            progress(rows, min(done, total), total)

    return report


def read_columns(
    source: Paths, names: Iterable[str], may_be_text: str | None = None
) -> dict[str, Any]:
    """Read the named columns of files whole, for work that needs all rows at once.

    All must hold numbers, but for the one that may be text (names of groups).
    `softcal.sources.files` reads the same files in bounded memory.

    Raises
    ------
    InputError
        If a file cannot be read, or has no such column; the message lists those it has.
    """
    wanted = [name for name in dict.fromkeys(names) if name != may_be_text]
    text = () if may_be_text is None else (may_be_text,)
    found = list(batches(source, wanted, named=text))
    if not found:
        message = "the source has no rows: there is nothing to measure."
        raise InputError(message)
    columns = joined(found)
    for name in text:
        columns[name] = columns.pop(Named(name))
    return columns


def joined(batches: list[Batch]) -> Batch:
    """Put batches of the same columns below each other."""
    import numpy as np
    import pyarrow as pa

    columns: Batch = {}
    for name in batches[0]:
        parts = [batch[name] for batch in batches]
        if isinstance(parts[0], np.ndarray):
            columns[name] = np.concatenate(parts)
            continue
        if len({part.type for part in parts}) > 1:  # 4 from a CSV file is the 4 of a Parquet file
            parts = [part.cast(_common(parts)) for part in parts]
        columns[name] = pa.chunked_array(parts)
    return columns


def _common(parts: list[Any]) -> Any:
    """Return a type for names of several types, or for lists of numbers."""
    import pyarrow as pa

    return pa.list_(pa.float64()) if pa.types.is_nested(parts[0].type) else pa.string()


def refuse_same_file(output: Path, data: Iterable[Path]) -> None:
    """Refuse to write over the data that is being read."""
    for path in data:
        if path.exists() and output.exists() and path.samefile(output):
            message = f"{output} is the data itself: give another name for what is written."
            raise InputError(message)
