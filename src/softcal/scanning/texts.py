"""Values as texts, the same for every engine."""

from __future__ import annotations

import re
from typing import Any


def text_of(value: Any) -> str | None:
    """Return a value of a segment as text, the same for every engine; None if it is missing."""
    if isinstance(value, str):
        return value
    return None if value is None or str(value) in ("nan", "NaN", "<NA>", "NaT") else str(value)


def plain_word(text: str) -> str:
    """Return a whole number without its decimals, so that 1.0 is 1 too; other text as it is."""
    whole = re.fullmatch(r"(-?\d+)\.0*", text)
    return whole[1] if whole else text
