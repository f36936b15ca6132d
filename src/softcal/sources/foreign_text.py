"""The marks between cells, and text with others: a guess for the message, never for the reading."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

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
