"""What repair would do to each model, judged on rows it was not fitted on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softcal.calibrators.preview import BINARY_METHODS, preview_of

if TYPE_CHECKING:
    from softcal.bins import Bins
    from softcal.calibrators.preview import RepairPreview, Trial
    from softcal.report.sample import Sample

FOLDS = 5
FEWEST_ROWS = 100  # with fewer, what a fold says is chance


def repair_panel(
    sample: Sample, models: list[str], bins: Bins, level: float
) -> list[dict[str, Any]]:
    """List, for each model, every method before and after; nothing when there are few rows."""
    out = []
    for name in models:
        rows = sample.rows(name)
        some = (
            rows.y_prob.size if rows.sample_weight is None else int((rows.sample_weight > 0).sum())
        )
        if some < FEWEST_ROWS:
            return []
        found = preview_of(
            rows, bins=bins, groups=None, methods=BINARY_METHODS, folds=FOLDS, level=level
        )
        trials = [_row(trial, found) for trial in (found.before, *found.after)]
        out.append({"name": name, "text": _text(found), "rows": trials, "n": some})
    return out


def _row(trial: Trial, found: RepairPreview) -> dict[str, Any]:
    return {
        "method": "as they are" if trial is found.before else trial.method,
        "best": trial.method == found.best and found.helps,
        "brier": trial.brier,
        "smece": trial.smece.value,
        "low": trial.smece.low,
        "high": trial.smece.high,
    }


def _text(found: RepairPreview) -> str:
    if not found.helps:
        return "No method improves the predictions on rows held out: leave them as they are."
    best = next(trial for trial in found.after if trial.method == found.best)
    return (
        f"On rows held out, {found.best} does best (least Brier score): SMECE "
        f"{found.before.smece.value:.3f} becomes {best.smece.value:.3f}, "
        f"interval {best.smece.low:.3f} to {best.smece.high:.3f}."
    )
