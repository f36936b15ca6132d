"""A reliability diagram of a dozen lines of text, for the terminal.

Each bin has a bar, to the left where the predictions are too low and to the right where they are
too high. A full bar is one whose interval leaves out 0; a light one may be chance.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich.text import Text

from softcal._display import printable
from softcal.inference.intervals import gap_intervals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console

    from softcal._validation.inputs import FloatArray
    from softcal.table.reliability import Reliability

_MOST_BINS = 10
_FEWEST_BINS = 5
_SMALL = 0.05  # a gap that needs no long bar, even where it is the largest
_WIDEST = 16  # characters of the longest bar


class _Glyphs(NamedTuple):
    """What bars are made of. Halves make a bar half a character longer; ASCII has none."""

    sure: str
    unsure: str
    left_half: str
    right_half: str
    middle: str


_BLOCKS = _Glyphs("█", "░", "▐", "▌", "│")
_ASCII = _Glyphs("#", ".", "", "", "|")


def show(console: Console, models: Mapping[str, Reliability], level: float = 0.95) -> None:
    """Print the picture of each model, all on one scale."""
    joined = {name: joined_for_a_picture(rel) for name, rel in models.items()}
    scale = max(_SMALL, *(rel.max_gap for rel in joined.values()))
    glyphs = _glyphs(console.encoding)
    for name, rel in joined.items():
        fine = len(models[name].bins)
        note = f", {fine} bins joined into {len(rel.bins)}" if len(rel.bins) < fine else ""
        console.print(Text.assemble((printable(name), "bold"), note))
        for line in _lines(rel, level, scale, glyphs, console.width):
            console.print(line, no_wrap=True, overflow="crop", crop=True)
        console.print()
    console.print(
        f"Bars: mean prediction minus mean label, {glyphs.sure} where its {100 * level:g} % "
        f"interval leaves out 0, {glyphs.unsure} where it does not.",
        style="dim",
    )


def joined_for_a_picture(rel: Reliability) -> Reliability:
    """Join neighbouring bins until few are left, all of the same number of bins if that works."""
    n = len(rel.bins)
    if n <= _MOST_BINS:
        return rel
    even = (step for step in range(2, n // _FEWEST_BINS + 1) if n % step == 0)
    step = next((step for step in even if n // step <= _MOST_BINS), -(-n // _MOST_BINS))
    return rel.coarsen([*rel.bins.edges[:-1:step], 1.0])


def _glyphs(encoding: str) -> _Glyphs:
    try:
        "".join(_BLOCKS).encode(encoding)
    except UnicodeEncodeError:
        return _ASCII
    return _BLOCKS


def _lines(
    rel: Reliability, level: float, scale: float, glyphs: _Glyphs, width: int
) -> Iterator[Text]:
    limits = gap_intervals(rel, level=level)
    sure = (limits.low > 0) | (limits.high < 0)
    bins = _ranges(rel.bins.edges)
    widths = (len(bins[0]), max(len("rows"), len(f"{rel.count.max():,}")))
    header = _numbers(widths, "bin", "rows", "prediction", "label", "gap")
    half = min(_WIDEST, max(4, (width - len(header) - 1) // 2))
    yield Text(f"{header}{'too low':>{half}} too high", style="dim")
    for bin_, (_, _, count, p, y, gap), certain in zip(bins, rel.per_bin(), sure, strict=True):
        if not count:
            yield Text(_numbers(widths, bin_, "0", "-", "-", "-") + " " * half + glyphs.middle)
            continue
        bar = _bar(gap / scale * half, glyphs, sure=bool(certain))
        low, high = (bar, "") if gap < 0 else ("", bar)
        yield Text.assemble(
            _numbers(widths, bin_, f"{count:,}", f"{p:.3f}", f"{y:.3f}", f"{gap:+.3f}"),
            (f"{low:>{half}}", "blue"), glyphs.middle, (high, "yellow"),
        )  # fmt: skip


def _ranges(edges: FloatArray) -> list[str]:
    """Say each bin by its edges, with as few digits as tell them, three at most."""
    digits = next((d for d in (1, 2) if np.array_equal(edges, edges.round(d))), 3)
    shown = [f"{edge:.{digits}f}" for edge in edges]
    return [f"{low}-{high}" for low, high in pairwise(shown)]


def _numbers(widths: tuple[int, int], bin_: str, rows: str, p: str, y: str, gap: str) -> str:
    return f"{bin_:>{widths[0]}}  {rows:>{widths[1]}}  {p:>10}  {y:>5}  {gap:>6}  "


def _bar(length: float, glyphs: _Glyphs, *, sure: bool) -> str:
    """Make a bar of so many characters, to the left where negative."""
    if not (sure and glyphs.left_half):
        return (glyphs.sure if sure else glyphs.unsure) * round(abs(length))
    whole, half = divmod(round(2 * abs(length)), 2)
    if length < 0:
        return glyphs.left_half * half + glyphs.sure * whole
    return glyphs.sure * whole + glyphs.right_half * half
