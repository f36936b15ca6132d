"""Hints how to read a text as a number."""

from __future__ import annotations

import re
from decimal import Decimal

from softcal._display import keyword
from softcal.scanning.source import words_hint

_ANSWERS = (
    ("yes", "no"), ("y", "n"), ("true", "false"), ("t", "f"), ("positive", "negative"),
)  # fmt: skip

_WRITTEN = (
    (r"[+-]?\d*,\d+", f" If the comma starts the decimals, pass {keyword('decimal', ',')}."),
    (r"[+-]?\d{1,3}([.,' ]\d{3})+([.,]\d*)?", " Write it without thousands separators."),
)


def number_of(text: str, decimal: str = ".", *, percent: bool = False) -> float | None:
    """Return the number that a text holds; None if it is not a number.

    >>> number_of("50,5 %", ",", percent=True)
    50.5
    """
    if percent:
        text = text.rstrip().removesuffix("%")
    if "_" in text or (decimal == "," and "." in text):  # Python would read 1_0 as 10
        return None
    try:
        return float(text.replace(decimal, "."))
    except ValueError:
        return None


def number_hint(text: str, *, percent: bool = False, of_labels: bool = True) -> str:
    """Return a hint on how to read 0,5 or 63.7% or yes as a number; empty for an empty text.

    If `percent`, the column may already hold percent signs. Without `of_labels`, options for labels
    are not named.

    >>> number_hint("63.7 %", of_labels=False)
    ' Write 0.637. For percentages, pass y_prob=Column(..., scale="percent").'
    """
    for pattern, hint in _WRITTEN:
        if re.fullmatch(pattern, text):
            return hint
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
