"""What a file really holds, told by its first bytes: its name may say something else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from softcal.errors import InputError
from softcal.reading import not_utf_8

if TYPE_CHECKING:
    from pathlib import Path

_LOOKED_AT = 1000  # bytes
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class _Content(NamedTuple):
    """How a kind of content starts, its name, the suffixes it may have, and the remedy."""

    start: bytes  # as a regular expression
    kind: str
    suffixes: tuple[str, ...]
    remedy: str


_ARROW = (".arrow", ".feather", ".ipc")
_TEXT = (".csv", ".tsv", ".jsonl", ".ndjson")
_AS_ARROW = "Let its name end in .arrow, or save it as Parquet."
_SAVE = "Save the sheet as CSV in UTF-8."
# A byte that no text has follows where the first ones alone could be the name of a column.
_CONTENTS = (
    _Content(rb"PAR1[\0-\x08\x0e-\x1f]", "a Parquet file", (".parquet", ".pq"),
             "Let its name end in .parquet."),
    _Content(rb"ARROW1\0", "an Arrow file", _ARROW, _AS_ARROW),
    _Content(rb"\xff{4}", "an Arrow stream", _ARROW, _AS_ARROW),
    _Content(rb"FEA1\0", "a Feather file of version 1", (), "Save it again as Parquet."),
    _Content(rb"PK\x03\x04.{26}(\[Content_Types]|_rels/|docProps/|xl/|mimetype)",
             "a workbook of Excel or LibreOffice", (), _SAVE),
    _Content(rb"\xd0\xcf\x11\xe0", "an old workbook of Excel (.xls)", (), _SAVE),
    _Content(rb"PK\x03\x04", "a zip archive", (), "Unzip it first."),
    _Content(rb"\x1f\x8b", "gzip", (".gz",), "Let its name end in .csv.gz, or decompress it."),
    _Content(rb"BZh\d1AY&SY", "bzip2", (".bz2",),
             "Let its name end in .csv.bz2, or decompress it."),
    _Content(rb"\x28\xb5\x2f\xfd", "Zstandard", (".zst",),
             "Let its name end in .csv.zst, or decompress it."),
    _Content(rb"\xfd7zXZ\0", "xz", (), "Decompress it first."),
    _Content(rb"(\xef\xbb\xbf)?[\t\r\n -~]{16}", "text", _TEXT,
             "Let its name end in .csv, .tsv or .jsonl."),
)  # fmt: skip


def refuse_other_file(path: Path) -> None:
    """Refuse a file whose first bytes are of another kind than the end of its name says."""
    with path.open("rb") as file:
        refuse_other_content(file.read(_LOOKED_AT), path.suffix.lower(), path)


def refuse_other_content(content: bytes, suffix: str, path: Path) -> None:
    """Refuse content of another kind than a suffix says; that of a compressed file may be new."""
    start = content[:_LOOKED_AT]
    found = next((one for one in _CONTENTS if re.match(one.start, start, re.DOTALL)), None)
    if found is not None and suffix not in found.suffixes:
        message = (
            f"cannot read {path}: it holds {found.kind}, though its name says {suffix}. "
            f"{found.remedy}"
        )
        raise InputError(message)
    if suffix in _TEXT:
        _refuse_other_text(start, path)


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
