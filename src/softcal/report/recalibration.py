"""What recalibration would do: on held-out rows of a sample, or fitted to a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softcal.calibrators.preview import preview_of
from softcal.cards.recalibrate import with_beta_map
from softcal.report.diagrams import small_diagram

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
        best = next(trial for trial in found.after if trial.method == found.best)
        drawn = {"before": found.before, f"after {best.method}": best}
        out.append({
            "name": name, "text": _text(found, best, error), "n": size,
            "rows": [found.before, *found.after], "best": best if found.helps else None,
            "diagrams": [small_diagram(each.table, title, level) for title, each in drawn.items()],
        })  # fmt: skip
    return out


def table_panel(
    tables: Mapping[str, Reliability], bins: Bins, level: float, error: str
) -> list[dict[str, Any]]:
    """Return diagrams before and after a beta map that is fitted to each table."""
    if min(fine.n for fine in tables.values()) < FEWEST_ROWS:
        return []
    out = []
    for name, fine in tables.items():
        before, after = fine.coarsen(bins), with_beta_map(fine, bins)
        said = f"does not lower {error} ({before.smece:.3f})"
        if after.smece < before.smece:
            said = f"changes {error} from {before.smece:.3f} to {after.smece:.3f}"
        out.append({
            "name": name, "text": f"A beta map fitted to these tables {said}.", "rows": [],
            "diagrams": [
                small_diagram(before, "before", level), small_diagram(after, "after beta", None)
            ],
        })  # fmt: skip
    return out


def _text(found: RepairPreview, best: Trial, error: str) -> str:
    if not found.helps:
        return f"{found.verdict}."
    return " ".join([
        f"{found.verdict}. It changes {error} from {found.before.smece.value:.3f} to "
        f"{best.smece.value:.3f}, interval {best.smece.low:.3f} to {best.smece.high:.3f}.",
        *found.notes,
    ])  # fmt: skip
