"""Read columns of files of any size: one reader per format, a bounded number of rows at a time."""

# pyarrow.dataset does not replace these readers. Even with the lowest readahead, it holds a whole
# Parquet row group in memory: 20 million rows in one group took 720 MB, and take 240 MB here. It
# also needs the format from the caller, and does not detect it from the content.

from __future__ import annotations

import codecs
import glob
import io
import json
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from softcal._display import keyword
from softcal._io import not_utf_8, place_of, readable, refuse_elsewhere, spooled
from softcal._parallel import in_order
from softcal.exceptions import InputError
from softcal.sources.cells import (
    NotANumberError,
    RaggedRowError,
    json_columns,
    number_of,
    sheet_rows,
    table_of,
    without_signs,
)
from softcal.sources.columns import (
    BATCH_VALUES,
    Batch,
    Named,
    Piece,
    Wanted,
    columns_of,
    refuse_other_types,
    refuse_unknown,
    refuse_wide,
    rows_of,
    text_of,
    words_hint,
)
from softcal.table.files import PARQUET, is_saved, is_saved_schema, is_start_of_saved

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOOKED_AT = 4096  # bytes
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class Reading(NamedTuple):
    """The options for reading files whose content does not determine them; see `scan`."""

    sep: str | None = None
    decimal: str = "."
    encoding: str | None = None
    input_format: str | None = None
    sheet: str | None = None

    def checked(self) -> Reading:
        r"""Return validated options, with "tab" replaced by a tab character.

        >>> Reading(sep="tab").checked().sep
        '\t'
        """
        sep = "\t" if self.sep in ("tab", "\\t") else self.sep
        if sep is not None and (len(sep) != 1 or sep in '"\r\n' or not sep.isascii()):
            message = f"sep must be one character between cells, or 'tab': got {self.sep!r:.60}."
            raise InputError(message)
        if self.decimal not in (".", ","):
            message = f"decimal must be '.' or ',': got {self.decimal!r:.60}."
            raise InputError(message)
        if self.input_format not in (None, *INPUT_FORMATS):
            known = ", ".join(INPUT_FORMATS)
            message = f"input_format must be one of {known}: got {self.input_format!r:.60}."
            raise InputError(message)
        if self.encoding is not None:
            _refuse_encoding(self.encoding)
        return self._replace(sep=sep)


def _refuse_encoding(encoding: str) -> None:
    try:
        "".encode(encoding).decode(encoding)
    except (LookupError, TypeError, ValueError) as error:
        message = (
            f"encoding must be one that Python knows, such as 'latin-1', 'cp1252', or 'utf-16': "
            f"got {encoding!r:.60}."
        )
        raise InputError(message) from error


AS_IT_IS = Reading()


class Format(NamedTuple):
    """The format of a file: its kind, its compression, and the syntax of its text."""

    kind: str  # "parquet", "arrow", "jsonl", "json" (one document), "xlsx" or "text"
    compression: str | None = None
    mark: str = ","
    decimal: str = "."
    encoding: str | None = None
    sep_line: bool = False  # whether the first line is Excel's "sep=" line
    sheet: str | None = None


INPUT_FORMATS = {
    "csv": Format("text"),
    "tsv": Format("text", mark="\t"),
    "json": Format("json"),
    "jsonl": Format("jsonl"),
    "parquet": Format("parquet"),
    "arrow": Format("arrow"),
    "xlsx": Format("xlsx"),
}
"""The format for each `input_format`."""

# The start of the content, as regular expressions. If the first bytes could be the name of a
# column, a byte that is not text follows.
_KINDS = {
    "parquet": PARQUET.pattern,
    "arrow": rb"ARROW1\0|\xff{4}",
    "xlsx": rb"(?s)PK\x03\x04.{26}(\[Content_Types]|_rels/|docProps/|xl/)",
    "json": rb"(\xef\xbb\xbf)?\s*\[\s*[]{]",
    "jsonl": rb"(\xef\xbb\xbf)?\s*\{",
}
_COMPRESSIONS = {"gzip": rb"\x1f\x8b", "bz2": rb"BZh\d1AY&SY", "zstd": rb"\x28\xb5\x2f\xfd"}
_BINARY_KINDS = ("parquet", "arrow", "xlsx", *_COMPRESSIONS)
_SAVE = "Save the sheet as .xlsx, or as CSV in UTF-8."
_REFUSED = (
    (rb"FEA1\0", "a Feather file of version 1", "Save it again as Parquet."),
    (rb"PK\x03\x04.{26}mimetype", "a LibreOffice workbook", _SAVE),
    (rb"\xd0\xcf\x11\xe0", "an old Excel workbook (.xls)", _SAVE),
    (rb"PK\x03\x04", "a zip archive", "Unzip it first."),
    (rb"\xfd7zXZ\0", "xz", "Decompress it first."),
)
_SEP_LINE = re.compile(rb'(?:\xef\xbb\xbf)?"?sep=([^"\r\n])"?\r?\n')


def format_of(path: Path, reading: Reading = AS_IT_IS) -> Format:
    """Detect the format of a file from its content, unless `input_format` is given.

    A name that ends in .tsv means tabs. A name that ends in .json decides if a single object may be
    a line or a document.

    Raises
    ------
    InputError
        If the format is not supported, with a remedy.
    """
    with path.open("rb") as file:
        start = file.read(_LOOKED_AT)
    compression = _first_match(_COMPRESSIONS, start)
    if compression is not None:
        start = _decompressed_start(path, compression)
    if is_start_of_saved(start):
        _refuse_set(path)
    kind = _kind_of(start, path)
    if compression is not None and kind in _BINARY_KINDS:
        message = (
            f"cannot read {place_of(path)}: only text may be compressed as a whole. Decompress it "
            "first."
        )
        raise InputError(message)
    if kind not in _BINARY_KINDS:
        if reading.encoding is None:
            _refuse_other_text(start, path)
        start = _of_text(start, reading.encoding)
        kind = _first_match(_KINDS, start)
    form = _as_given(Format(kind or "text"), path, reading)
    form = form._replace(compression=compression, encoding=reading.encoding, sheet=reading.sheet)
    if form.kind == "text":
        return _with_marks(form, path, start, reading)
    named_json = reading.input_format is None and _has_end(path, ".json")
    if form.kind == "jsonl" and named_json and not _is_of_lines(path, form):
        return form._replace(kind="json")
    return form


def _kind_of(start: bytes, path: Path) -> str | None:
    """Return the format from the start of a file, None for text; raise if it is not supported."""
    kind = _first_match(_KINDS, start) or _first_match(_COMPRESSIONS, start)
    for pattern, what, remedy in _REFUSED:
        if kind is None and re.match(pattern, start, re.DOTALL):
            message = f"cannot read {place_of(path)}: it holds {what}. {remedy}"
            raise InputError(message)
    return kind


def _as_given(found: Format, path: Path, reading: Reading) -> Format:
    """Return the given or the detected format; raise if they differ and one is binary."""
    if reading.input_format is None:
        return found._replace(mark="\t" if _has_end(path, ".tsv") else ",")
    form = INPUT_FORMATS[reading.input_format]
    if form.kind != found.kind and {form.kind, found.kind} & {*_BINARY_KINDS}:
        message = (
            f"cannot read {place_of(path)}: its content is not {reading.input_format}. Leave "
            f"{keyword('input_format', reading.input_format)} out."
        )
        raise InputError(message)
    return form


def _has_end(path: Path, suffix: str) -> bool:
    return suffix in map(str.lower, path.suffixes)


def _of_text(start: bytes, encoding: str | None) -> bytes:
    """Return the start of a file as UTF-8, or unchanged if it cannot be decoded."""
    if encoding is None:
        return start
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    try:
        return decoder.decode(start).encode(errors="replace")
    except UnicodeError:  # the reader will raise the same error with its position
        return start


def _with_marks(form: Format, path: Path, text: bytes, reading: Reading) -> Format:
    """Return the form with its separators, from the options, Excel's first line, or the name."""
    line = _SEP_LINE.match(text)
    if line is not None:
        mark = line[1].decode()
        if reading.sep not in (None, mark):
            message = (
                f"cannot read {place_of(path)}: its first line names {mark!r} as separator. "
                f"Leave {keyword('sep', str(reading.sep))} out."
            )
            raise InputError(message)
        form = form._replace(mark=mark, sep_line=True)
    elif reading.sep is not None:
        form = form._replace(mark=reading.sep)
    if form.mark == reading.decimal != reading.sep:
        message = (
            f"cannot read {place_of(path)}: does {form.mark!r} separate the cells too? If numbers "
            f"are in quotes, pass {keyword('sep', form.mark)}; else the separator of cells, such "
            f"as {keyword('sep', ';')}."
        )
        raise InputError(message)
    return form._replace(decimal=reading.decimal)


def _is_of_lines(path: Path, form: Format) -> bool:
    """Return whether a file that starts with an object has one object per line.

    A single object is a document if each of its values is a list: the columns.
    """
    with _byte_stream(path, form) as (_, stream):
        lines = io.BufferedReader(stream)
        filled = (
            line for line in iter(partial(lines.readline, _LONGEST_LINE), b"") if not line.isspace()
        )
        first, second = next(filled), next(filled, None)
        if second is not None:
            return second.lstrip().startswith(b"{")
        try:
            found = json.loads(first)
        except (ValueError, RecursionError):
            return False
        return not all(isinstance(value, list) for value in found.values())


def _first_match(patterns: dict[str, bytes], start: bytes) -> str | None:
    return next((name for name, each in patterns.items() if re.match(each, start)), None)


def _decompressed_start(path: Path, compression: str) -> bytes:
    import pyarrow as pa

    with pa.OSFile(str(path)) as file, pa.CompressedInputStream(file, compression) as stream:
        found: bytes = stream.read(_LOOKED_AT)
        return found


def _refuse_set(path: Path) -> None:
    message = f"cannot read rows from {place_of(path)}: this is a saved set: use softcal.load."
    raise InputError(message)


def _refuse_other_text(start: bytes, path: Path) -> None:
    """Raise if text has two bytes per character, as spreadsheets save it, or is binary."""
    even, odd = start[::2].count(0), start[1::2].count(0)
    # Letters in UTF-16 have a 0 as every second byte, and nowhere else.
    if start.startswith(_UTF_16) or (min(even, odd) == 0 and 4 * max(even, odd) > len(start)):
        order = "" if start.startswith(_UTF_16) else "-be" if even else "-le"
        message = f"cannot read {place_of(path)}: {not_utf_8(f'utf-16{order}')}"
        raise InputError(message)
    if b"\0" in start:
        message = (
            f"cannot read {place_of(path)}: it must be text in UTF-8, but has a byte 0. "
            "Save the data as CSV in UTF-8."
        )
        raise InputError(message)


MARKS = {".csv": ",", ".tsv": "\t"}
"""The separator of the cells of a text file, by the end of its name."""

_NAMED = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
_ANSWERS = (
    ("yes", "no"), ("y", "n"), ("true", "false"), ("t", "f"), ("positive", "negative"),
)  # fmt: skip


def separator_hint(names: Sequence[str], mark: str) -> str:
    """Return a hint if names of columns look separated by another character; else empty."""
    line = mark.join(names)
    marks = {**_NAMED, " ": "spaces"} if len(names) == 1 else _NAMED  # names may have spaces
    often = max((other for other in marks if other != mark), key=line.count)
    if line.count(often) <= line.count(mark):
        return ""
    sep = keyword("sep", "tab" if often == "\t" else often)
    by = _NAMED.get(mark, repr(mark))
    return f" They look separated by {marks[often]}, not {by}. Pass {sep}."


def number_hint(text: str, *, percent: bool = False, of_labels: bool = True) -> str:
    """Return a hint on how to read 0,5 or 63.7% or yes as a number; empty for an empty text.

    If `percent`, the column may already hold percent signs. Without `of_labels`, options for labels
    are not named.

    >>> number_hint("63.7 %")
    ' Write 0.637. For percentages, pass pred_scale="percent" or label_scale="percent".'
    """
    if re.fullmatch(r"[+-]?\d*,\d+", text):
        return f" If the comma starts the decimals, pass {keyword('decimal', ',')}."
    if re.fullmatch(r"[+-]?\d{1,3}([.,' ]\d{3})+([.,]\d*)?", text):
        return " Write it without thousands separators."
    if signed := re.fullmatch(r"(\d+)[.,]?(\d*) ?%", text):
        whole, part = signed.groups()
        if percent:
            return f" Write {whole}.{part}%, or pass {keyword('decimal', ',')} for a text file."
        number = Decimal(f"{whole}.{part}").scaleb(-2).normalize()
        scales = keyword("pred_scale", "percent")
        scales += f" or {keyword('label_scale', 'percent')}" if of_labels else ""
        return f" Write {number:f}. For percentages, pass {scales}."
    if percent or not of_labels or not text.strip():
        return ""
    word = text  # with its spaces, as the file has it
    for one, zero in _ANSWERS:
        if word.lower() == zero:
            word = one if word.islower() else one.capitalize()
    return words_hint(word)


_QUOTE = b'"'
_LONGEST_LINE = 1 << 26
_TOO_LONG = (
    f"lines, with their quoted cells, must have at most {_LONGEST_LINE >> 20} MB: line {{}} is "
    "longer. Save the data as Parquet."
)
_NOT_CLOSED = (
    "a cell that opens with a quote must end with one, and a quote inside it must be doubled: the "
    "cell that opens in line {} does not. Fix that line."
)


class _LineError(Exception):
    """Raised for a line that cannot be read, with its place in the text and the message."""


def whole_lines(
    read_into: Callable[[memoryview], int], size: int, mark: str | None = None, start: bytes = b""
) -> Iterator[bytearray]:
    """Yield blocks of whole lines; `read_into` fills a part of a block, and returns 0 at the end.

    If `mark` separates cells, line ends inside quotes are not the end of a line. Each block is read
    in place, because copies would take half as long as parsing.
    """
    rest, done, found = bytearray(start), 0, 1
    while found:
        block = bytearray(len(rest) + max(size, len(rest)))  # doubled, so that time is linear
        block[: len(rest)] = rest
        with memoryview(block) as view, view[len(rest) :] as free:
            found = read_into(free)
        del block[len(rest) + found :]
        try:
            end = _whole_end(block, mark, last=not found)
        except _LineError as error:
            raise _LineError(done + error.args[0], error.args[1]) from None
        if len(block) - end > _LONGEST_LINE:
            raise _LineError(done + end, _TOO_LONG)
        rest = block[end:]
        del block[end:]
        done += end
        if block:
            yield block


def _whole_end(block: bytearray, mark: str | None, *, last: bool = False) -> int:
    """Return the end of the last whole line outside quotes; raise for a quote out of place."""
    end = len(block) if last else block.rfind(b"\n") + 1 or block.rfind(b"\r") + 1
    if mark is None or block.find(_QUOTE, 0, end) < 0:
        return end
    ends = b'"\r\n' + mark.encode()
    opens = _unclosed(block[:end] + b"\n" if last else block, end + last, ends)
    if opens is None:
        return end
    if last or re.compile(_IN_QUOTES + _QUOTE).match(block, opens, end):
        raise _LineError(opens, _NOT_CLOSED)
    end = 1 + max(block.rfind(b"\n", 0, opens), block.rfind(b"\r", 0, opens))
    if not end or _unclosed(block, end, ends) is None:
        return end
    # Another cell of the same line has a line end too.
    each = re.compile(_quoted(ends) + rb"|[\r\n]").finditer(block, 0, opens)
    return max((found.end() for found in each if not found[0].startswith(_QUOTE)), default=0)


_IN_QUOTES = rb'"[^"]*+(?:""[^"]*+)*+'
_CACHED_BYTES = 1 << 16


def _quoted(ends: bytes) -> bytes:
    """Return the pattern of a cell in quotes, or of its first quote if it does not end."""
    edge = rb"[^%b]" % re.escape(ends[1:])
    return rb'"(?<!%b")(?:%b"(?!%b))?' % (edge, _IN_QUOTES[1:], edge)


def _unclosed(block: bytearray, end: int, ends: bytes) -> int | None:
    """Return where the first cell opens that does not end with a quote; None if there is none.

    The text ends with a line end. `ends` are the bytes that may be next to a quote: a quote, and
    what ends a cell.
    """
    import numpy as np

    text, is_end = np.frombuffer(block, np.uint8, end), np.zeros(256, dtype=bool)
    is_end[[*ends]] = True
    inside, opens = 0, None
    # Quotes open and close in turn, and a doubled quote closes and opens again. The text is read in
    # parts, because new memory would take longer than the search.
    for start in range(0, end, _CACHED_BYTES):
        at = np.flatnonzero(text[start : start + _CACHED_BYTES] == ord(_QUOTE)) + start
        before = text[at[inside::2] - 1]  # a line end before the first byte, which is the last one
        if not (is_end[before].all() and is_end[text[at[1 - inside :: 2] + 1]].all()):
            break
        first = at[inside::2][before != ord(_QUOTE)]
        opens = int(first[-1]) if first.size else opens
        inside ^= at.size % 2
    else:
        return opens if inside else None
    # A quote inside a cell without quotes is an ordinary character: read cell by cell.
    each = re.compile(_quoted(ends)).finditer(block, 0, end)
    return next((cell.start() for cell in each if len(cell[0]) == 1), None)


_BLOCK_BYTES = 1 << 22
_START_BYTES = 1 << 17
_GROUP_VALUES = 1 << 23
_WIDE = 64  # columns; row groups with more are read some columns at a time
_WIDE_VALUES = 1 << 24
_STREAM_BYTES = 1 << 18  # of one column
_STREAMS_BYTES = 1 << 24  # of all columns


class _Part(NamedTuple):
    """A part of a file: its number of bytes, and a function that decodes it as Arrow tables."""

    size: int
    decode: Callable[[], Iterator[Any]]
    checked: bool = False  # whether Arrow already validated it, as for CSV


def pieces(path: Path, wanted: Wanted, reading: Reading = AS_IT_IS) -> Iterator[Piece]:
    """Yield the pieces of a file, after validating its columns."""
    with readable(path) as unchanged:
        parts = partial(_parts, path, format_of(path, reading), wanted)
        for number, part in enumerate(parts()):
            batches = partial(_batches, path, wanted, number, part, parts, unchanged)
            yield Piece(place_of(path), part.size, batches)


def _batches(
    path: Path,
    wanted: Wanted,
    number: int,
    part: _Part,
    parts: Callable[[], Iterator[_Part]],
    unchanged: Callable[[], None],
) -> Iterator[Batch]:
    import pyarrow as pa

    with readable(path):
        try:
            for table in part.decode():
                unchanged()
                if not part.checked:
                    table.validate(full=True)  # else Arrow may read out of bounds in a damaged file
                yield columns_of(without_signs(table, wanted), wanted)
        except NotANumberError as found:
            row = 1 + found.row + _rows_before(parts, number)
            hint = number_hint(found.text, percent=found.name in wanted.percents)
            message = (
                f"{found.name} must hold numbers: row {row} of {path.name} holds the text "
                f"{found.text!r:.60}.{hint}"
            )
            raise InputError(message) from found
        except RaggedRowError as found:
            row = found.row + _rows_before(parts, number)
            cells = "1 cell" if found.cells == 1 else f"{found.cells} cells"
            message = (
                f"every row of {path.name} must have {found.columns} cells, as its header has: row "
                f"{row} has {cells}. Fix that row, or quote cells that contain the separator."
            )
            raise InputError(message) from found
        except pa.ArrowInvalid as error:
            within = _IN_ROW.search(str(error))
            if within is None:
                raise
            place = int(within[1]) + _rows_before(parts, number)
            raise pa.ArrowInvalid(_IN_ROW.sub(f", in row {place}", str(error))) from error


def _rows_before(parts: Callable[[], Iterator[_Part]], number: int) -> int:
    """Return the number of rows before a part, which only messages need."""
    before = islice(parts(), number)
    return sum(table.num_rows for part in before for table in part.decode())


def _parts(path: Path, form: Format, wanted: Wanted) -> Iterator[_Part]:
    readers: dict[str, Callable[..., Iterator[_Part]]] = {
        "parquet": _parquet, "arrow": _arrow, "jsonl": _json_lines, "json": _json_document,
        "xlsx": _workbook, "text": _csv,
    }  # fmt: skip
    return readers[form.kind](path, form, wanted)


def column_names(path: Path, reading: Reading = AS_IT_IS) -> list[str]:
    """Return the names of a file's columns, reading as little as possible."""
    return list(schema_of(path, reading).names)


def schema_of(path: Path, reading: Reading = AS_IT_IS) -> Any:
    """Return the Arrow schema of a file; columns of CSV and Excel files are text."""
    import pyarrow as pa

    with readable(path):
        form = format_of(path, reading)
        if form.kind == "parquet":
            import pyarrow.parquet as pq

            return pq.read_schema(path)
        if form.kind == "arrow":
            with _arrow_reader(path) as (reader, _):
                return reader.schema
        if form.kind == "json":
            columns = _read_document(path, form)
            lists = {name for name, cells in columns.items() if _holds_lists(cells)}
            kinds = {name: pa.list_(pa.float64()) for name in lists}
            return pa.schema([(name, kinds.get(name, pa.string())) for name in columns])
        if form.kind == "xlsx":
            return pa.schema([(name, pa.string()) for name in next(sheet_rows(path, form.sheet))])
        first, _ = next(_text_blocks(path, form), (bytearray(), 0))
        if form.kind == "jsonl":
            return _read_json(first).schema
        return pa.schema([(name, pa.string()) for name in _csv_head(form, first)[1]])


def _holds_lists(cells: Sequence[Any]) -> bool:
    """Return whether the first value that is not missing is a list."""
    return isinstance(next((cell for cell in cells if cell is not None), None), list)


def _parquet(path: Path, _form: Format, wanted: Wanted) -> Iterator[_Part]:
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
        else:  # too large for memory: read it here, in batches; several may wait to be added up
            for batch in decode(BATCH_VALUES if wanted.classes > 1 else BATCH_VALUES // 8):
                yield _Part(round(batch.num_rows * size), partial(_once, batch))


def _row_group(path: Path, meta: Any, group: int, wanted: Wanted, values: int) -> Iterator[Any]:
    import pyarrow.parquet as pq

    # Buffered, because otherwise a whole column of the row group is read first.
    buffer = min(_STREAM_BYTES, _STREAMS_BYTES // len(wanted.names) + 1)
    with pq.ParquetFile(path, metadata=meta, buffer_size=buffer, pre_buffer=False) as file:
        rows = max(values // wanted.values_per_row, 1)
        yield from file.iter_batches(
            rows, row_groups=[group], columns=wanted.names, use_threads=False
        )


def _wide_row_group(path: Path, meta: Any, group: int, wanted: Wanted) -> Iterator[Any]:
    """Read a whole row group of many columns, a few columns at a time.

    Reading it in batches would hold a page of every column: 373 MB for 1,000 columns of 20,000
    rows, instead of 183 MB.
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


def _arrow(path: Path, _form: Format, wanted: Wanted) -> Iterator[_Part]:
    with _arrow_reader(path) as (reader, batches):
        refuse_unknown(wanted, reader.schema.names, path.name)
        refuse_other_types(wanted, reader.schema, path.name)
        in_file = hasattr(reader, "get_batch")  # else a stream, whose length is unknown
        share = path.stat().st_size / max(reader.num_record_batches, 1) if in_file else 0
        for batch in batches:
            for cut in wanted.cut(batch.num_rows):
                size = round(share * cut[1] / batch.num_rows)
                yield _Part(size, partial(_once, batch.select(wanted.names).slice(*cut)))


@contextmanager
def _arrow_reader(path: Path) -> Iterator[Any]:
    """Open an Arrow file or an Arrow stream, and yield its reader and its batches."""
    import pyarrow as pa

    with pa.OSFile(str(path)) as file:
        magic = file.read(6)
        file.seek(0)
        if magic == b"ARROW1":
            reader = pa.ipc.open_file(file)
            yield reader, map(reader.get_batch, range(reader.num_record_batches))
        else:
            reader = pa.ipc.open_stream(file)
            yield reader, _streamed(reader, file)


def _streamed(reader: Any, file: Any) -> Iterator[Any]:
    """Yield the batches of an Arrow stream; raise if it lacks its end or goes on after it."""
    import pyarrow as pa

    place = file.tell()
    for batch in reader:
        yield batch
        place = file.tell()
    if file.tell() == place:
        message = "the stream has no end mark, so rows may be missing: close its writer."
        raise pa.ArrowInvalid(message)
    if file.tell() < file.size():
        message = "the stream has more data after its end mark: save each stream to its own file."
        raise pa.ArrowInvalid(message)


def _once(batch: Any) -> Iterator[Any]:
    yield batch


@contextmanager
def _byte_stream(path: Path, form: Format) -> Iterator[tuple[Any, Any]]:
    """Open a text file, and yield the file and the stream of its text as UTF-8."""
    import pyarrow as pa

    with pa.OSFile(str(path)) as file:
        stream = file
        if form.compression is not None:
            stream = pa.CompressedInputStream(file, form.compression)
        if form.encoding is not None:
            stream = pa.transcoding_input_stream(stream, form.encoding, "utf-8")
        yield file, stream


def _text_blocks(path: Path, form: Format) -> Iterator[tuple[bytearray, int]]:
    """Yield blocks of whole lines of a text file, each with the number of bytes read."""
    mark = form.mark if form.kind == "text" else None
    with _byte_stream(path, form) as (file, stream):
        done, start = 0, stream.read(3).removeprefix(codecs.BOM_UTF8)
        blocks = whole_lines(stream.readinto, _BLOCK_BYTES, mark, start)
        try:
            for number, block in enumerate(blocks):
                line = _SEP_LINE.match(block) if number == 0 and form.sep_line else None
                del block[: line.end() if line else 0]
                yield block, file.tell() - done
                done = file.tell()
        except _LineError as error:
            place, problem = error.args
            message = f"cannot read {place_of(path)}: {problem.format(_line_at(path, form, place))}"
            raise InputError(message) from None


def refuse_bad_lines(path: Path, form: Format) -> None:
    """Raise for quotes out of place and for lines that are too long, before others read a file."""
    blocks = _text_blocks(path, form)
    first, _ = next(blocks, (bytearray(), 0))
    _csv_head(form, first)
    deque(blocks, maxlen=0)


def _line_at(path: Path, form: Format, place: int) -> int:
    """Return the number of the line at a place in the text, without a byte order mark."""
    feeds = returns = 0
    with _byte_stream(path, form) as (_, stream):
        start = stream.read(3).removeprefix(codecs.BOM_UTF8)
        blocks = chain([start], iter(partial(stream.read, _BLOCK_BYTES), b""))
        while place:
            some = next(blocks, bytes(place))  # zeros if the file has become shorter
            feeds += some.count(b"\n", 0, place)
            returns += some.count(b"\r", 0, place)
            place = max(place - len(some), 0)
    return 1 + (feeds or returns)


def _csv(path: Path, form: Format, wanted: Wanted) -> Iterator[_Part]:
    blocks = _text_blocks(path, form)
    first, size = next(blocks, (bytearray(), 0))
    head, names = _csv_head(form, first)
    refuse_unknown(wanted, names, path.name, separator_hint(names, form.mark))
    decode = partial(_csv_block, form, names, wanted, _csv_types(form, first, wanted))
    yield _Part(size, partial(decode, first[head:]), checked=True)
    for block, size in blocks:
        yield _Part(size, partial(decode, block), checked=True)


def _csv_options(form: Format, block: bytearray) -> Any:
    from pyarrow import csv

    # Without quotes a value cannot contain a line end, and Arrow need not look for one.
    return csv.ParseOptions(delimiter=form.mark, newlines_in_values=_QUOTE in block)


def _csv_head(form: Format, first: bytearray) -> tuple[int, list[str]]:
    """Return the end of the header line, and the names of the columns.

    Arrow would take 9 KB of memory per column to find the names.
    """
    import pyarrow as pa

    mark = form.mark.encode()
    own = re.escape(mark)
    cell = re.compile(rb'(%b"|[^%b\r\n]*+)(%b|\r\n?|\n)' % (_IN_QUOTES, own, own))
    at, end, names = len(first) - len(first.lstrip(b"\r\n")), mark, []
    while end == mark:
        found = cell.match(first, at)
        if found is None:
            message = "Empty CSV file: it has no line of column names."
            raise pa.ArrowInvalid(message)
        name, end = found.groups()
        quoted = name.startswith(_QUOTE)
        names.append((name[1:-1].replace(b'""', _QUOTE) if quoted else name).decode())
        at = found.end()
    refuse_wide(len(names))
    return at, names


def _at_once(block: bytearray, **options: Any) -> Any:
    """Return Arrow options for a single block, because long lines do not fit smaller ones."""
    from pyarrow import csv

    return csv.ReadOptions(use_threads=False, block_size=len(block) + 1, **options)


def _csv_types(form: Format, first: bytearray, wanted: Wanted) -> dict[str, Any]:
    """Return the Arrow type of each column: Boolean if it starts with such values, else float64.

    The type is detected from the first few thousand rows.

    Columns of names stay text, because 07 may be a name in a text file. A column that is also read
    as numbers is converted from the text.
    """
    import pyarrow as pa
    from pyarrow import csv

    start = first[:_START_BYTES]
    start = first[: _whole_end(start, form.mark)] or first
    convert = csv.ConvertOptions(include_columns=wanted.names, decimal_point=form.decimal)
    boolean: set[str] = set()
    # What cannot be parsed is refused where the rows are read, with its number.
    with suppress(pa.ArrowInvalid):
        found = csv.read_csv(
            pa.BufferReader(start), _at_once(start), _csv_options(form, start), convert
        )
        boolean = {field.name for field in found.schema if pa.types.is_boolean(field.type)}
    types = {name: pa.bool_() if name in boolean else pa.float64() for name in wanted.numbers}
    return types | {name: pa.string() for name in wanted.named}


_RAGGED = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")


def _csv_block(
    form: Format,
    names: list[str],
    wanted: Wanted,
    types: dict[str, Any],
    block: bytearray,
) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import csv

    if not block or block.isspace():
        return

    def read(types: dict[str, Any], *, text_may_be_missing: bool = False) -> Any:
        return csv.read_csv(
            pa.BufferReader(block),
            _at_once(block, column_names=names),
            _csv_options(form, block),
            csv.ConvertOptions(
                column_types=types,
                include_columns=wanted.names,
                decimal_point=form.decimal,
                strings_can_be_null=text_may_be_missing,
            ),
        )

    try:
        table = read(types)
    except pa.ArrowInvalid as error:
        ragged = _RAGGED.search(str(error))
        if ragged:
            raise RaggedRowError(*map(int, ragged.groups())) from error
        text = read(dict.fromkeys(wanted.names, pa.string()), text_may_be_missing=True)
        _refuse_text(text, wanted, form.decimal)
        if not wanted.signed:
            raise
        table = read(types | dict.fromkeys(wanted.signed, pa.string()))
        for name in wanted.signed:
            cells = text.column(name).to_pylist()
            found = [number_of(cell or "", form.decimal, percent=True) for cell in cells]
            table = table.set_column(
                table.column_names.index(name), name, pa.array(found, pa.float64())
            )
    for name in wanted.named:
        table = _with_gaps(table, name)
    yield table


def _with_gaps(table: Any, name: str) -> Any:
    """Replace empty cells, which are missing values in text files, by null."""
    import pyarrow as pa
    from pyarrow import compute as pc

    names = table.column(name)
    has_text = pc.binary_length(names).cast(pa.bool_())
    # Only arrays, because Arrow imports pandas for a scalar.
    filled = pc.if_else(has_text, names, pa.nulls(len(names), pa.string()))
    return table.set_column(table.column_names.index(name), name, filled)


def _refuse_text(table: Any, wanted: Wanted, decimal: str) -> None:
    """Raise if a cell is not a number; columns are searched in order."""
    for name in wanted.numbers:
        for row, cell in enumerate(table.column(name).to_pylist()):
            percent = name in wanted.percents
            if cell and number_of(cell, decimal, percent=percent) is None:
                raise NotANumberError(name, row, cell)


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
    """Return a type with integers as floats, because later rows may have fractions."""
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

    _refuse_nested(block)
    if parse is None:  # every key becomes a column, with a value in every row
        keys = {*re.findall(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"\s*+:', block)}
        refuse_wide(len(keys), block.count(b"{"))
    if not re.match(rb"\s*\{", block):  # Arrow crashes if the first line is null
        message = f"every line must be an object, {{...}}: one starts with {block.lstrip()[:20]!r}."
        raise pa.ArrowInvalid(message)
    # One block, because Arrow refuses a line longer than a block.
    options = json.ReadOptions(use_threads=False, block_size=len(block) + 1)
    try:
        return json.read_json(pa.BufferReader(block), options, parse)
    except pa.ArrowInvalid as error:
        message = _IN_ROW.sub(lambda row: f", in row {int(row[1]) + 1}", str(error))
        if "changed from" in message:
            message += ". Write all values of a column with quotes, or all without."
        raise pa.ArrowInvalid(message) from error


_IN_ROW = re.compile(r"[.,]? in row (\d+)")  # of a block; Arrow's first is 0
_DEEPEST = 100
_NOT_BRACKETS = bytes({*range(256)} - {*b"[]{}"})


def _refuse_nested(block: bytearray) -> None:
    """Raise if values are nested so deep that Arrow's parser overflows the stack."""
    import numpy as np
    import pyarrow as pa

    text = np.frombuffer(block, np.uint8)
    some = np.flatnonzero(text & 0xDF == ord("["))[:: _DEEPEST // 2]  # { is [ with another bit
    # A line end between } and { is between rows, because inside a row there is a comma as well.
    ends = np.flatnonzero(text[1:-1] == ord("\n"))
    ends = ends[(text[ends] == ord("}")) & (text[ends + 2] == ord("{"))]
    if (np.diff(ends.searchsorted(some)) > 0).all():  # few in every row
        return
    outside = re.sub(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', b"", block).translate(None, _NOT_BRACKETS)
    opening = np.isin(np.frombuffer(outside, np.uint8), [*b"[{"])
    if np.where(opening, 1, -1).cumsum().max(initial=0) > _DEEPEST:
        message = f"values may be nested at most {_DEEPEST} deep, and one is nested deeper."
        raise pa.ArrowInvalid(message)


def _json_document(path: Path, form: Format, wanted: Wanted) -> Iterator[_Part]:
    """Read one JSON document as a whole into memory."""
    columns = _read_document(path, form)
    refuse_unknown(wanted, list(columns), path.name)
    chosen = {name: columns[name] for name in wanted.names}
    yield _Part(path.stat().st_size, partial(_cells_block, chosen, wanted), checked=True)


def _read_document(path: Path, form: Format) -> dict[str, list[Any]]:
    with _byte_stream(path, form) as (_, stream):
        content: bytes = stream.read(_LONGEST_LINE + 1)
    if len(content) > _LONGEST_LINE:
        message = (
            f"cannot read {place_of(path)}: a JSON document must have at most "
            f"{_LONGEST_LINE >> 20} MB, because it is read as a whole. Write one object per line."
        )
        raise InputError(message)
    try:
        return json_columns(content)
    except (ValueError, RecursionError) as error:
        message = f"cannot read {place_of(path)}: {error!s:.200}"
        raise InputError(message) from error


def _cells_block(columns: dict[str, list[Any]], wanted: Wanted) -> Iterator[Any]:
    table = table_of(columns, wanted)
    for start, rows in wanted.cut(table.num_rows):
        yield table.slice(start, rows)


def _workbook(path: Path, form: Format, wanted: Wanted) -> Iterator[_Part]:
    """Read a sheet of a workbook, a few thousand rows at a time."""
    rows = sheet_rows(path, form.sheet)
    names = list(next(rows))
    refuse_unknown(wanted, names, path.name)
    at = {name: names.index(name) for name in wanted.names}
    size = path.stat().st_size
    while some := list(islice(rows, _SHEET_ROWS)):
        # Values are converted to Arrow later, so that errors about text can name the row.
        columns = {name: [row[k] for row in some] for name, k in at.items()}
        yield _Part(size, partial(_cells_block, columns, wanted), checked=True)
        size = 0  # the number of bytes of some rows is unknown


_SHEET_ROWS = 1 << 14
_TEXT = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json")
_BINARY = (".parquet", ".pq", ".arrow", ".feather", ".ipc", ".xlsx")
_COMPRESSED = (".gz", ".bz2", ".zst")
SUFFIXES = ", ".join(_TEXT + _BINARY)


Paths: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]"
"""A file, a folder, a glob pattern, or several of these."""

Progress: TypeAlias = Callable[[int, int, int], None]
"""Called at the start and after each piece with rows and bytes so far, and bytes of all files."""


def batches(
    source: Paths,
    columns: Iterable[str],
    *,
    named: Sequence[str] = (),
    reading: Reading = AS_IT_IS,
    progress: Progress | None = None,
) -> Iterator[Batch]:
    """Yield columns of files as arrays, in batches of rows, decoded on all cores.

    Memory is bounded for files of any size.

    Parameters
    ----------
    source : path, glob pattern, folder, or several
        Parquet, CSV, TSV, JSON, JSON-lines, Excel (.xlsx), or Arrow files; text may be compressed
        (.gz, .bz2, .zst). A folder stands for every such file in it and in its subfolders, sorted
        by name.
    columns : iterable of str
        The columns to read. They must hold numbers; missing values become NaN.
    named : sequence of str, optional
        More columns, of any type. They are Arrow arrays with keys `Named(name)`.
    reading : Reading, optional
        Options for files whose content does not determine the format.
    progress : callable, optional
        Called as `progress(rows, bytes, total_bytes)`, at the start and after each piece of a file.

    Yields
    ------
    dict of str to ndarray
        A batch of columns of equal length.

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
    return batches_of(source, Wanted(tuple(columns), tuple(named)), reading, progress)


def batches_of(
    source: Paths,
    wanted: Wanted,
    reading: Reading = AS_IT_IS,
    progress: Progress | None = None,
) -> Iterator[Batch]:
    """Yield the wanted columns of files, as `batches` does."""

    def decode(piece: Piece) -> tuple[Piece, list[Batch]]:
        return piece, list(piece.batches())

    paths = files_of(source)
    report = reporter(paths, progress)
    # Decoded pieces are much larger than their sums, so fewer are decoded ahead.
    for piece, found in in_order(decode, all_pieces(paths, wanted, reading), ahead=1):
        yield from found
        report(piece, sum(map(rows_of, found)))


def files_of(source: Paths) -> list[Path]:
    """Return the files that a path, a pattern, a folder, or several of these stand for."""
    several = [source] if isinstance(source, str | os.PathLike) else list(source)
    found: dict[Path, Path] = {}  # by resolved path
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
    """Raise if a file is named twice, because its rows would count twice."""
    if path.resolve() in found:
        message = f"{path} is named twice, so its rows would count twice. Name each file once."
        raise InputError(message)


def _files_of_one(path: Path) -> list[Path]:
    path = spooled(path)
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
    """Return whether a file of a folder is data, by its name; Spark adds other files."""
    named = path.relative_to(folder).parts
    *_, before, last = ("", "", *map(str.lower, path.suffixes))
    known = before in _TEXT if last in _COMPRESSED else last in _TEXT + _BINARY
    if not known or any(part.startswith(("_", ".")) for part in named):
        return False
    return last != ".json" or not is_saved(path)


def _refuse_none(path: Path) -> list[Path]:
    message = f"no data in {path}: it has no file whose name ends in one of {SUFFIXES}."
    raise InputError(message)


def all_pieces(
    paths: Iterable[Path], wanted: Wanted, reading: Reading = AS_IT_IS
) -> Iterator[Piece]:
    """Yield the pieces of all files, one file after another."""
    for path in paths:
        yield from pieces(path, wanted, reading)


def reporter(paths: list[Path], progress: Progress | None) -> Callable[[Piece, int], None]:
    """Return the function that adds up the progress and reports it to the caller."""
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
    """Return the named columns of files, for computations that need all rows at once.

    All must hold numbers, except for the one that may be text (names of groups).
    `softcal.sources.files` reads the same files in bounded memory.

    Raises
    ------
    InputError
        If a file cannot be read or lacks a column; the message lists its columns.
    """
    wanted = [name for name in dict.fromkeys(names) if name != may_be_text]
    text = () if may_be_text is None else (may_be_text,)
    found = list(batches(source, wanted, named=text))
    if not found:
        message = "the source has no rows, so there is nothing to measure."
        raise InputError(message)
    columns = joined(found)
    for name in text:
        columns[name] = columns.pop(Named(name))
    return columns


def joined(batches: list[Batch]) -> Batch:
    """Concatenate batches of the same columns."""
    import numpy as np
    import pyarrow as pa

    columns: Batch = {}
    for name in batches[0]:
        parts = [batch[name] for batch in batches]
        if isinstance(parts[0], np.ndarray):
            columns[name] = np.concatenate(parts)
            continue
        if len({part.type for part in parts}) > 1:  # 4 in a CSV file equals 4 in a Parquet file
            parts = [part.cast(_common(parts)) for part in parts]
        columns[name] = pa.chunked_array(parts)
    return columns


def _common(parts: list[Any]) -> Any:
    """Return the common type of names of several types, or of lists of numbers."""
    import pyarrow as pa

    return pa.list_(pa.float64()) if pa.types.is_nested(parts[0].type) else pa.string()


def opened(path: Path, form: Format) -> tuple[Any, Iterator[Any]]:
    """Return the Arrow schema of a file with all its columns, and its record batches.

    JSON and Excel files are read as a whole, because later rows may change the types.
    """
    import pyarrow as pa

    if form.kind == "parquet":
        import pyarrow.parquet as pq

        file = pq.ParquetFile(path)
        return file.schema_arrow, file.iter_batches(_ROWS_AT_ONCE)
    if form.kind == "arrow":
        with _arrow_reader(path) as (reader, _):
            return reader.schema, _arrow_batches(path)
    if form.kind == "text":
        from pyarrow import csv

        refuse_bad_lines(path, form)
        stream = pa.input_stream(str(path), compression=form.compression)
        parsed = csv.open_csv(
            stream,
            csv.ReadOptions(skip_rows=int(form.sep_line), encoding=form.encoding or "utf8"),
            csv.ParseOptions(delimiter=form.mark, newlines_in_values=True),
            csv.ConvertOptions(decimal_point=form.decimal),
        )
        return parsed.schema, iter(parsed)
    table = _whole_table(path, form)
    return table.schema, iter(table.to_batches(_ROWS_AT_ONCE))


_ROWS_AT_ONCE = 1 << 16


def _arrow_batches(path: Path) -> Iterator[Any]:
    with _arrow_reader(path) as (_, batches):
        for batch in batches:
            batch.validate(full=True)  # else Arrow may read out of bounds in a damaged file
            yield batch


def _whole_table(path: Path, form: Format) -> Any:
    """Return all columns of a JSON or Excel file; a column of mixed types becomes text."""
    import pyarrow as pa

    if form.kind == "jsonl":
        return _read_json(bytearray().join(block for block, _ in _text_blocks(path, form)))
    if form.kind == "json":
        columns = _read_document(path, form)
    else:
        names, *rows = sheet_rows(path, form.sheet)
        columns = {name: [row[k] for row in rows] for k, name in enumerate(names)}
    found = {}
    for name, cells in columns.items():
        try:
            found[name] = pa.array(cells)
        except (pa.ArrowException, TypeError, OverflowError):
            found[name] = pa.array([text_of(cell) for cell in cells], pa.string())
    return pa.table(found)
