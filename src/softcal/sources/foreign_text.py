"""What a text file is that is not as ours are: a guess for the message, never for the reading."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NoReturn

from softcal.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_NAMED = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
_SUFFIXES = {",": ".csv", "\t": ".tsv"}


def refuse_utf_16(start: bytes, path: Path) -> None:
    """Refuse text of two bytes a character, as spreadsheets save it under the name of Unicode."""
    if start.startswith(_UTF_16) or b"\0" in start[:1000]:
        refuse_encoding(path, "UTF-16")


def refuse_encoding(path: Path, guess: str = "LATIN1") -> NoReturn:
    """Refuse a file that is not UTF-8."""
    message = (
        f"cannot read {path}: it must be text in UTF-8, and looks like {guess}. Save it again as "
        f"UTF-8 (in a shell, iconv -f {guess} -t UTF-8)."
    )
    raise InputError(message)


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


def decimal_hint(text: str) -> str:
    """Say what is wrong with 0,5."""
    return " Write decimals with a point." if re.fullmatch(r"[+-]?\d*,\d+", text) else ""
