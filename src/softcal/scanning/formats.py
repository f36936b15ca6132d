"""Detect the format of a file from its content: its kind, its compression, and its separators."""

from __future__ import annotations

import codecs
import io
import json
import re
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from softcal._display import keyword
from softcal._io import Remote, not_utf_8, place_of
from softcal.exceptions import InputError
from softcal.table.files import PARQUET, is_start_of_saved

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from softcal.scanning.data import Files

_LOOKED_AT = 4096  # bytes
LONGEST = 1 << 26  # characters of a line, and of a document
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class Format(NamedTuple):
    """The format of a file: its kind, its compression, and the syntax of its text."""

    kind: str  # "parquet", "arrow", "jsonl", "json" (one document), "xlsx" or "text"
    compression: str | None = None
    mark: str = ","
    encoding: str | None = None
    sep_line: bool = False  # whether the first line is Excel's "sep=" line


_GIVEN = {
    "csv": Format("text"),
    "tsv": Format("text", mark="\t"),
    **{kind: Format(kind) for kind in ("json", "jsonl", "parquet", "arrow", "xlsx")},
}

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
_BINARY = ("parquet", "arrow", "xlsx", *_COMPRESSIONS)
_SAVE = "Save the sheet as .xlsx, or as CSV in UTF-8."
_REFUSED = (
    (rb"FEA1\0", "a Feather file of version 1", "Save it again as Parquet."),
    (rb"PK\x03\x04.{26}mimetype", "a LibreOffice workbook", _SAVE),
    (rb"\xd0\xcf\x11\xe0", "an old Excel workbook (.xls)", _SAVE),
    (rb"PK\x03\x04", "a zip archive", "Unzip it first."),
    (rb"\xfd7zXZ\0", "xz", "Decompress it first."),
)
_SEP_LINE = re.compile(rb'(?:\xef\xbb\xbf)?"?sep=([^"\r\n])"?\r?\n')


def format_of(path: Path, how: Files) -> Format:
    """Detect the format of a file from its content, unless it is stated.

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
        with stream_of(path, compression) as stream:
            start = stream.read(_LOOKED_AT)
    if is_start_of_saved(start):
        refuse_set(path)
    kind = _kind_of(start, path)
    if compression is not None and kind in _BINARY:
        refuse(path, "only text may be compressed as a whole. Decompress it first.")
    if kind not in _BINARY:
        if how.encoding is None:
            _refuse_other_text(start, path)
        start = _as_utf_8(start, how.encoding)
        kind = _first_match(_KINDS, start)
    form = _as_given(Format(kind or "text"), path, how)
    form = form._replace(compression=compression, encoding=how.encoding)
    if form.kind == "jsonl" and how.format is None:
        whole = how.records or (_has_end(path, ".json") and not _is_of_lines(path, form))
        form = form._replace(kind="json") if whole else form
    if how.records and form.kind != "json":
        refuse(path, f"it is not a JSON document. Leave {keyword('records', how.records)} out.")
    return _with_marks(form, path, start, how) if form.kind == "text" else form


def stream_of(path: Path, compression: str | None) -> Any:
    """Open a file, decompressed, as a stream of bytes."""
    import pyarrow as pa

    file = path.open("rb") if isinstance(path, Remote) else str(path)  # which Arrow closes
    return pa.input_stream(file, compression=compression)


@contextmanager
def text_of(path: Path, form: Format) -> Iterator[Iterator[str]]:
    """Open a text file, and yield its lines, with their ends and without a byte order mark."""
    with stream_of(path, form.compression) as stream:
        encoding = form.encoding or "utf-8-sig"
        lines = _lines(io.TextIOWrapper(io.BufferedReader(stream), encoding, newline=""), path)
        yield (line.removeprefix("\ufeff") if k == 0 else line for k, line in enumerate(lines))


def _lines(text: io.TextIOWrapper, path: Path) -> Iterator[str]:
    for number, line in enumerate(iter(partial(text.readline, LONGEST + 1), ""), 1):
        if len(line) > LONGEST:
            refuse_long(path, number)
        yield line


def refuse_long(path: Path, line: int) -> NoReturn:
    """Raise because a line is too long."""
    refuse(
        path,
        f"lines, with their quoted cells, must have at most "
        f"{LONGEST >> 20} MB: line {line} is longer. Save the data as Parquet.",
    )


def refuse(path: Any, problem: str) -> NoReturn:
    """Raise because a file cannot be read."""
    message = f"cannot read {place_of(path)}: {problem}"
    raise InputError(message)


def refuse_set(path: Path) -> NoReturn:
    """Raise because a file is a saved set."""
    message = f"cannot read rows from {place_of(path)}: this is a saved set: use softcal.load."
    raise InputError(message)


def _kind_of(start: bytes, path: Path) -> str | None:
    """Return the format from the start of a file, None for text; raise if it is not supported."""
    kind = _first_match(_KINDS, start) or _first_match(_COMPRESSIONS, start)
    for pattern, what, remedy in _REFUSED:
        if kind is None and re.match(pattern, start, re.DOTALL):
            refuse(path, f"it holds {what}. {remedy}")
    return kind


def _as_given(found: Format, path: Path, how: Files) -> Format:
    """Return the given or the detected format; raise if they differ and one is binary."""
    if how.format is None:
        return found._replace(mark="\t" if _has_end(path, ".tsv") else ",")
    form = _GIVEN[how.format]
    if form.kind != found.kind and {form.kind, found.kind} & {*_BINARY}:
        refuse(
            path,
            f"its content is not {how.format}. Leave {keyword('input_format', how.format)} out.",
        )
    return form


def _has_end(path: Path, suffix: str) -> bool:
    return suffix in map(str.lower, path.suffixes)


def _as_utf_8(start: bytes, encoding: str | None) -> bytes:
    """Return the start of a file as UTF-8, or unchanged if it cannot be decoded."""
    if encoding is None:
        return start
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    try:
        return decoder.decode(start).encode(errors="replace")
    except UnicodeError:  # reading the file will raise the same error with its position
        return start


def _with_marks(form: Format, path: Path, text: bytes, how: Files) -> Format:
    """Return the form with its separator, from the options, Excel's first line, or the name."""
    line = _SEP_LINE.match(text)
    if line is not None:
        mark = line[1].decode()
        if how.sep not in (None, mark):
            refuse(
                path,
                f"its first line names {mark!r} as separator. "
                f"Leave {keyword('sep', str(how.sep))} out.",
            )
        form = form._replace(mark=mark, sep_line=True)
    elif how.sep is not None:
        form = form._replace(mark=how.sep)
    if form.mark == how.decimal != how.sep:
        refuse(
            path,
            f"does {form.mark!r} separate the cells too? If numbers "
            f"are in quotes, pass {keyword('sep', form.mark)}; else the separator of cells, such "
            f"as {keyword('sep', ';')}.",
        )
    return form


def _is_of_lines(path: Path, form: Format) -> bool:
    """Return whether a file that starts with an object has one object per line.

    A single object is a document if each of its values is a list: the columns.
    """
    with text_of(path, form) as lines:
        filled = (line for line in lines if not line.isspace())
        first, second = next(filled, ""), next(filled, None)
        if second is not None:
            return second.lstrip().startswith("{")
        try:
            found = json.loads(first)
        except (ValueError, RecursionError):
            return False
        return not all(isinstance(value, list) for value in found.values())


def _first_match(patterns: dict[str, bytes], start: bytes) -> str | None:
    return next((name for name, each in patterns.items() if re.match(each, start)), None)


def _refuse_other_text(start: bytes, path: Path) -> None:
    """Raise if text has two bytes per character, as spreadsheets save it, or is binary."""
    even, odd = start[::2].count(0), start[1::2].count(0)
    # Letters in UTF-16 have a 0 as every second byte, and nowhere else.
    if start.startswith(_UTF_16) or (min(even, odd) == 0 and 4 * max(even, odd) > len(start)):
        order = "" if start.startswith(_UTF_16) else "-be" if even else "-le"
        refuse(path, not_utf_8(f"utf-16{order}"))
    if b"\0" in start:
        refuse(path, "it must be text in UTF-8, but has a byte 0. Save the data as CSV in UTF-8.")


_NAMED = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}


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
