"""The words and digits of a table, ready to be laid out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softcal.table import tabular

if TYPE_CHECKING:
    from softcal.door.inputs import FloatArray

Bin = tuple[float, float, int, float, float, float]
"""Low edge, high edge, count, mean prediction, mean label, gap."""


def shown(
    n: int, smece: float | None, edges: FloatArray, bins: list[Bin]
) -> tuple[str, list[str], list[list[str]]]:
    """Give title, header and rows; of very many bins, those at the ends."""
    title = f"n = {n}   SMECE = {'none' if smece is None else f'{smece:.4f}'}   bins = {len(bins)}"
    header = ["bin", "count", "mean prob", "mean label", "gap"]
    digits = 3 if np.array_equal(edges, edges.round(3)) else 6
    first, left_out, last = tabular.ends(bins)
    rows = [_as_row(*bin_, digits) for bin_ in first]
    if left_out:
        rows.append([f"... {left_out} more", "", "", "", ""])
    rows += [_as_row(*bin_, digits) for bin_ in last]
    return title, header, rows


def _as_row(
    low: float, high: float, count: int, p: float, y: float, gap: float, digits: int
) -> list[str]:
    edges = f"[{low:.{digits}f}, {high:.{digits}f}{']' if high == 1 else ')'}"
    if not count:
        return [edges, "0", "-", "-", "-"]
    return [edges, f"{count}", f"{p:.4f}", f"{y:.4f}", f"{gap:+.4f}"]
