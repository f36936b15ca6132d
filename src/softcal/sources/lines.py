"""Text cut into blocks of whole lines, where a quoted cell may hold line ends of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_QUOTE, _END = b'"', b"\n"
_LONGEST_CELL = 1 << 24


def whole_lines(read: Callable[[], bytes]) -> Iterator[bytes]:
    """Give blocks that end where a line ends, whatever the blocks are that `read` gives."""
    rest = b""
    while block := read():
        rest += block
        end = _last_line_end(rest)
        if end:
            yield rest[:end]
            rest = rest[end:]
    if rest:
        yield rest


def _last_line_end(block: bytes) -> int:
    """Say where the last whole line ends; 0 if none does."""
    if _QUOTE not in block:
        return block.rfind(_END) + 1
    ends = _line_ends(block)
    if len(ends):
        return int(ends[-1])
    # A quote that nothing closes in so long a text opens no cell: it is a mark like any other.
    return block.rfind(_END) + 1 if len(block) > _LONGEST_CELL else 0


def _line_ends(block: bytes) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Find the line ends outside quotes: those before which the number of quotes is even."""
    marks = np.frombuffer(block, dtype=np.uint8)
    quoted = np.bitwise_xor.accumulate(marks == _QUOTE[0])
    return np.flatnonzero((marks == _END[0]) & ~quoted) + 1


def line_ends(block: bytes) -> Iterator[int]:
    """Walk through the places after every line end, of any kind and inside quotes too."""
    return (found.end() for found in re.finditer(rb"\r\n?|\n", block))
