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
_ENDS = (0.05, 0.1, 0.2, 0.5, 1.0)  # of the axes, because rare classes have small probabilities


def class_panel(tables: TableSet, classes: Sequence[str], level: float) -> list[dict[str, Any]]:
    """Return the classes or thresholds of each model, worst first, with simultaneous intervals."""
    panel, fine = [], tables.coarsen(tables.grid)
    together = 1 - (1 - level) / (len(classes) * len(tables))
    for model in tables:
        rows = sorted(
            (part_row(name, tables[model, name], together) for name in classes), key=surest
        )
        worst = [_diagram(fine[model, row["value"]], row, level) for row in rows[:_DIAGRAMS]]
        panel.append({"name": model, "rows": rows, "diagrams": worst})
    return panel


def surest(row: dict[str, Any]) -> tuple[float, float]:
    """Return the key that orders rows by the SMECE that is sure, then by its estimate."""
    return -row["low"], -row["debiased"]


def part_row(value: str, rel: Reliability, level: float) -> dict[str, Any]:
    """Return the error of a class or segment, with its interval."""
    found = smece_interval(rel, level=level)
    return {
        "value": value, "n": rel.n, "share": float(rel.sums.label.sum() / rel.sums.weight.sum()),
        "smece": rel.smece, "debiased": found.debiased, "low": found.low, "high": found.high,
        "bias": rel.bias,
    }  # fmt: skip


def _diagram(fine: Reliability, row: dict[str, Any], level: float) -> dict[str, Any]:
    """Return the points of a small reliability diagram and the end of its axes."""
    joined = ((end, _up_to(fine, end)) for end in _ENDS)
    end, rel = next((end, rel) for end, rel in joined if end == _ENDS[-1] or _highest(rel) <= end)
    return small_diagram(rel, row["value"], row["smece"], level, end)


def small_diagram(
    rel: Reliability, title: str, smece: float, level: float, end: float = 1.0
) -> dict[str, Any]:
    """Return the points of a small reliability diagram."""
    low, high = gap_intervals(rel, level=level)
    x, share = rel.mean_prob, rel.sums.weight / rel.sums.weight.sum()
    columns = (x, rel.mean_label, x - high, x - low, share)
    return diagram_of_points(title, smece, *(each[rel.count > 0] for each in columns), end=end)


def diagram_of_points(
    title: str, smece: float, *columns: FloatArray, end: float = 1.0
) -> dict[str, Any]:
    """Return points (x, y, the ends of y, their shares of the rows) and the end of both axes."""
    points = list(zip(*(each.tolist() for each in columns), strict=True))
    return {"value": title, "smece": smece, "end": end, "points": points}


def _highest(rel: Reliability) -> float:
    """Return the highest mean prediction or label of a bin."""
    return float(np.nanmax([rel.mean_prob, rel.mean_label]))


def _up_to(fine: Reliability, end: float) -> Reliability:
    """Merge bins into about ten up to the end of an axis, and one above it."""
    edges = fine.bins.edges
    nearest = edges[np.abs(edges[:, None] - np.linspace(0.0, end, _POINTS + 1)).argmin(axis=0)]
    return fine.coarsen(np.unique([*nearest, 1.0]))
