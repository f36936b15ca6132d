"""Many classes in the report: the error of each class, worst first, and diagrams of the worst."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softcal.inference.gaps import gap_intervals
from softcal.inference.smece import smece_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcal._validation.inputs import FloatArray
    from softcal.table.reliability import Reliability
    from softcal.table.tableset import TableSet

MOST_ROWS = 200
"""The number of classes per model that the page lists; the CSV download has all."""

_DIAGRAMS = 6
_POINTS = 10
_SIDE = 100.0  # the side of a diagram in SVG units
_ENDS = (0.05, 0.1, 0.2, 0.5, 1.0)  # of the axes, because rare classes have small probabilities


def class_panel(tables: TableSet, classes: Sequence[str], level: float) -> list[dict[str, Any]]:
    """Return the classes or thresholds of each model, worst first, with simultaneous intervals."""
    panel, fine = [], tables.coarsen(tables.grid)
    for model in tables:
        found = {name: tables[model, name] for name in classes}
        limits = _limits(list(found.values()), 1 - (1 - level) / (len(classes) * len(tables)))
        rows = [
            _row(name, rel, *each) for (name, rel), each in zip(found.items(), limits, strict=True)
        ]
        rows.sort(key=surest)
        worst = [_diagram(fine[model, row["value"]], row, level) for row in rows[:_DIAGRAMS]]
        panel.append({"name": model, "rows": rows, "diagrams": worst})
    return panel


def surest(row: dict[str, Any]) -> tuple[float, float]:
    """Return the key that orders rows by the SMECE that is sure, then by its estimate."""
    return -row["low"], -row["debiased"]


def _limits(tables: Sequence[Reliability], level: float) -> list[tuple[float, float, float]]:
    """Return the debiased SMECE and the interval of each table."""
    each = (smece_interval(rel, level=level) for rel in tables)
    return [(found.debiased, found.low, found.high) for found in each]


def _row(name: str, rel: Reliability, debiased: float, low: float, high: float) -> dict[str, Any]:
    return {
        "value": name,
        "share": float(rel.sums.label.sum() / rel.sums.weight.sum()),
        "smece": rel.smece,
        "debiased": debiased,
        "low": low,
        "high": high,
        "bias": rel.bias,
    }


def _diagram(fine: Reliability, row: dict[str, Any], level: float) -> dict[str, Any]:
    """Return the points of a small reliability diagram and the end of its axes."""
    joined = ((end, _up_to(fine, end)) for end in _ENDS)
    end, rel = next((end, rel) for end, rel in joined if end == _ENDS[-1] or _highest(rel) <= end)
    return small_diagram(rel, row["value"], row["smece"], level, end)


def small_diagram(
    rel: Reliability, title: str, smece: float, level: float, end: float = 1.0
) -> dict[str, Any]:
    """Return the points of a small reliability diagram, in SVG units."""
    filled = np.flatnonzero(rel.count)
    x, y = rel.mean_prob[filled], rel.mean_label[filled]
    low, high = (limits[filled] for limits in gap_intervals(rel, level=level))
    share = (rel.sums.weight / rel.sums.weight.sum())[filled]
    return diagram_of_points(title, smece, x, y, x - high, x - low, share, end)


def diagram_of_points(
    title: str,
    smece: float,
    x: FloatArray,
    y: FloatArray,
    low: FloatArray,
    high: FloatArray,
    share: FloatArray,
    end: float = 1.0,
) -> dict[str, Any]:
    """Return points with their intervals, in SVG units, and the end of both axes."""
    scale = _SIDE / end
    bottom, top = np.clip([low, high], 0.0, end) * scale
    points = zip(x * scale, _SIDE - y * scale, _SIDE - top, _SIDE - bottom, share, strict=True)
    return {
        "value": title,
        "smece": smece,
        "end": end,
        "points": [
            {"x": at, "y": up, "top": top, "bottom": bottom, "size": 1.6 + 3.4 * share**0.5}
            for at, up, top, bottom, share in points
        ],
    }


def _highest(rel: Reliability) -> float:
    """Return the highest mean prediction or label of a bin."""
    return float(np.nanmax([rel.mean_prob, rel.mean_label]))


def _up_to(fine: Reliability, end: float) -> Reliability:
    """Merge bins into about ten up to the end of an axis, and one above it."""
    edges = fine.bins.edges
    nearest = edges[np.abs(edges[:, None] - np.linspace(0.0, end, _POINTS + 1)).argmin(axis=0)]
    return fine.coarsen(np.unique([*nearest, 1.0]))
