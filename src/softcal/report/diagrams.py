"""Small reliability diagrams: of the worst classes, and before and after recalibration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softcal.inference.gaps import gap_intervals

if TYPE_CHECKING:
    from softcal.cards.parts import PartScore
    from softcal.table.reliability import Reliability
    from softcal.table.tableset import TableSet

_DIAGRAMS = 6
_POINTS = 10
_ENDS = (0.05, 0.1, 0.2, 0.5, 1.0)  # of the axes, because rare classes have small probabilities


def class_panel(
    tables: TableSet, found: dict[str, list[PartScore]], level: float
) -> list[dict[str, Any]]:
    """Return the classes or thresholds of each model, with diagrams of the worst."""
    out, fine = [], tables.coarsen(tables.grid)
    for model, rows in found.items():
        worst = [_enlarged(fine[model, row.value], row, level) for row in rows[:_DIAGRAMS]]
        out.append({"name": model, "rows": rows, "diagrams": worst})
    return out


def _enlarged(fine: Reliability, row: PartScore, level: float) -> dict[str, Any]:
    """Return a diagram whose axes end where the points do."""
    joined = ((end, _up_to(fine, end)) for end in _ENDS)
    end, rel = next((end, rel) for end, rel in joined if end == _ENDS[-1] or _highest(rel) <= end)
    return small_diagram(rel, row.value, level) | {"smece": row.smece, "end": end}


def small_diagram(rel: Reliability, title: str, level: float | None) -> dict[str, Any]:
    """Return points (x, y, the ends of y, share of the rows); without a level, y has no ends."""
    x, y = rel.mean_prob, rel.mean_label
    low, high = (x - y, x - y) if level is None else gap_intervals(rel, level=level)
    columns = (x, y, x - high, x - low, rel.sums.weight / rel.sums.weight.sum())
    points = list(zip(*(each[rel.count > 0].tolist() for each in columns), strict=True))
    return {"value": title, "smece": rel.smece, "end": 1.0, "points": points}


def _highest(rel: Reliability) -> float:
    """Return the highest mean prediction or label of a bin."""
    return float(np.nanmax([rel.mean_prob, rel.mean_label]))


def _up_to(fine: Reliability, end: float) -> Reliability:
    """Merge bins into about ten up to the end of an axis, and one above it."""
    edges = fine.bins.edges
    nearest = edges[np.abs(edges[:, None] - np.linspace(0.0, end, _POINTS + 1)).argmin(axis=0)]
    return fine.coarsen(np.unique([*nearest, 1.0]))
