"""A reliability diagram of text."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich.text import Text

from softcal._display import printable
from softcal.inference.gaps import gap_intervals
from softcal.plot.sheet import MARKS, style_of, with_many_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console

    from softcal._validation.inputs import FloatArray
    from softcal.table.reliability import Reliability

# A reliability diagram of a dozen lines of text. Each bin has a bar, to the left where the
# predictions are too low and to the right where they are too high. The interval of a full bar
# excludes 0; a light bar may be chance. Bins with few rows do not set the scale of the bars, and
# those with one row are dim and short. Each model has the color and mark that it has in figures.

_MOST_BINS = 10
_FEWEST_BINS = 5
_SMALL = 0.05  # the smallest gap that gets a bar of full length
_WIDEST = 16  # characters of the longest bar


class _Glyphs(NamedTuple):
    """The characters of a bar. Halves make it half a character longer; ASCII has none."""

    sure: str
    unsure: str
    left_half: str
    right_half: str
    middle: str
    marks: str


_BLOCKS = _Glyphs("█", "░", "▐", "▌", "│", "".join(mark.character for mark in MARKS))
_ASCII = _Glyphs("#", ".", "", "", "|", "")


def show_sketch(console: Console, models: Mapping[str, Reliability], level: float = 0.95) -> None:
    """Print the diagram of each model, all on one scale."""
    joined = {name: with_few_bins(rel) for name, rel in models.items()}
    scale = max(
        _SMALL, *(np.abs(rel.gap[with_many_rows(rel.count)]).max() for rel in joined.values())
    )
    cut = any((np.abs(rel.gap[rel.count > 0]) > scale).any() for rel in joined.values())
    glyphs = _glyphs(console.encoding)
    for k, (name, rel) in enumerate(joined.items()):
        fine, color = len(models[name].bins), style_of(k)["color"]
        note = f", {fine} bins merged into {len(rel.bins)}" if len(rel.bins) < fine else ""
        mark = f"{glyphs.marks[k % len(MARKS)]} " if glyphs.marks and len(models) > 1 else ""
        console.print(Text.assemble((mark, color), (printable(name), "bold"), note))
        for line in _lines(rel, level, scale, glyphs, console.width, color):
            console.print(line, no_wrap=True, overflow="crop", crop=True)
        console.print()
    console.print(
        f"Bars show mean prediction minus mean label: {glyphs.sure} if its {100 * level:g}% "
        f"interval excludes 0, {glyphs.unsure} if not.{' Longer bars are cut.' * cut}",
        style="dim",
    )


def with_few_bins(rel: Reliability) -> Reliability:
    """Merge adjacent bins until at most ten are left, in equal numbers if possible."""
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
    rel: Reliability, level: float, scale: float, glyphs: _Glyphs, width: int, color: str
) -> Iterator[Text]:
    limits = gap_intervals(rel, level=level)
    sure = (limits.low > 0) | (limits.high < 0)
    bins = _ranges(rel.bins.edges)
    widths = (len(bins[0]), max(len("rows"), len(f"{rel.count.max():,}")))
    header = _line_start(widths, "bin", "rows", "prediction", "label", "gap")
    half = min(_WIDEST, max(4, (width - len(header) - 1) // 2))
    yield Text(f"{header}{'too low':>{half}} too high", style="dim")
    for bin_, (_, _, count, p, y, gap), certain in zip(bins, rel.per_bin(), sure, strict=True):
        if not count:
            yield Text(_line_start(widths, bin_, "0", "-", "-", "-") + " " * half + glyphs.middle)
            continue
        longest = half if count > 1 else 1
        length = float(np.clip(gap / scale * half, -longest, longest))
        bar = _bar(length, glyphs, sure=bool(certain))
        low, high = (bar, "") if gap < 0 else ("", bar)
        yield Text.assemble(
            _line_start(widths, bin_, f"{count:,}", f"{p:.3f}", f"{y:.3f}", f"{gap:+z.3f}"),
            (f"{low:>{half}}", color), glyphs.middle, (high, color), style="dim" * (count == 1),
        )  # fmt: skip


def _ranges(edges: FloatArray) -> list[str]:
    """Write each bin as its edges, with as few digits as needed, three at most."""
    digits = next((d for d in (1, 2) if np.array_equal(edges, edges.round(d))), 3)
    shown = [f"{edge:.{digits}f}" for edge in edges]
    return [f"{low} to {high}" for low, high in pairwise(shown)]


def _line_start(widths: tuple[int, int], bin_: str, rows: str, p: str, y: str, gap: str) -> str:
    return f"{bin_:>{widths[0]}}  {rows:>{widths[1]}}  {p:>10}  {y:>5}  {gap:>6}  "


def _bar(length: float, glyphs: _Glyphs, *, sure: bool) -> str:
    """Return a bar of the given length in characters; a negative one extends to the left."""
    if not (sure and glyphs.left_half):
        return (glyphs.sure if sure else glyphs.unsure) * round(abs(length))
    whole, half = divmod(round(2 * abs(length)), 2)
    if length < 0:
        return glyphs.left_half * half + glyphs.sure * whole
    return glyphs.sure * whole + glyphs.right_half * half
