"""What recalibration would do: on held-out rows of a sample, or fitted to a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softcal.calibrators.base import Data
from softcal.calibrators.maps import MAPS
from softcal.calibrators.preview import preview_of
from softcal.report.classes import diagram_of_points, small_diagram

if TYPE_CHECKING:
    from collections.abc import Mapping

    from softcal.bins import Bins
    from softcal.calibrators.preview import RepairPreview, Trial
    from softcal.scanning.sample import Sample
    from softcal.table.reliability import Reliability

MOST_ROWS = 200_000
FOLDS = 5
FEWEST_ROWS = 100  # with fewer, the result of a fold is mostly chance


def recalibration_panel(
    sample: Sample, models: tuple[str, ...], bins: Bins, level: float, error: str
) -> list[dict[str, Any]]:
    """Return the scores of each method for each model; nothing if there are too few rows."""
    out = []
    for name in models:
        rows, groups = sample.rows(name, MOST_ROWS)
        weight = rows.sample_weight
        size = rows.y_prob.size if weight is None else int((weight > 0).sum())
        if size < FEWEST_ROWS or (groups is not None and len(set(groups)) < FOLDS):
            return []
        found = preview_of(rows, bins=bins, groups=groups, folds=FOLDS, level=level)
        trials = [_row(trial, found) for trial in (found.before, *found.after)]
        best = next(trial for trial in found.after if trial.method == found.best)
        drawn = {"before": found.before, f"after {best.method}": best}
        diagrams = [
            small_diagram(trial.table, title, trial.smece.value, level)
            for title, trial in drawn.items()
        ]
        out.append(
            {
                "name": name,
                "text": _text(found, error),
                "rows": trials,
                "n": size,
                "diagrams": diagrams,
            }
        )
    return out


def table_panel(
    tables: Mapping[str, Reliability], bins: Bins, level: float, error: str
) -> list[dict[str, Any]]:
    """Return diagrams before and after a beta map that is fitted to each table.

    A bin stands for its rows with its mean prediction. The map has three parameters only, because
    the same rows fit it and evaluate it.
    """
    out = []
    for name, fine in tables.items():
        if fine.n < FEWEST_ROWS:
            return []
        filled = fine.count > 0
        p, weight = fine.mean_prob[filled], fine.sums.weight[filled]
        q = MAPS["beta"].fit(Data(p, fine.mean_label[filled], weight)).apply(p)
        place = bins.edges[1:-1].searchsorted(q, side="right")
        size, prob, label = (
            np.bincount(place, weights=each)
            for each in (weight, weight * q, fine.sums.label[filled])
        )
        used = size > 0
        after = float(np.abs(prob - label).sum() / size.sum())
        before = fine.coarsen(bins)
        x, y, share = prob[used] / size[used], label[used] / size[used], size[used] / size.sum()
        diagrams = [
            small_diagram(before, "before", before.smece, level),
            diagram_of_points("after beta", after, x, y, y, y, share),
        ]
        text = _table_text(before.smece, after, error)
        out.append({"name": name, "text": text, "rows": [], "diagrams": diagrams})
    return out


def _table_text(before: float, after: float, error: str) -> str:
    if after >= before:
        return f"A beta map fitted to these tables does not lower {error} ({before:.3f})."
    return f"A beta map fitted to these tables changes {error} from {before:.3f} to {after:.3f}."


def _row(trial: Trial, found: RepairPreview) -> dict[str, Any]:
    return {
        "method": "unchanged" if trial is found.before else trial.method,
        "best": trial.method == found.best and found.helps,
        "brier": trial.brier,
        "smece": trial.smece.value,
        "low": trial.smece.low,
        "high": trial.smece.high,
    }


def _text(found: RepairPreview, error: str) -> str:
    if not found.helps:
        return f"{found.verdict}."
    best = next(trial for trial in found.after if trial.method == found.best)
    return " ".join([
        f"{found.verdict}. It changes {error} from {found.before.smece.value:.3f} to "
        f"{best.smece.value:.3f}, interval {best.smece.low:.3f} to {best.smece.high:.3f}.",
        *found.notes,
    ])  # fmt: skip
