"""Figures of recalibration: one model before and after, and every method on held-out rows."""

from __future__ import annotations

from functools import cache

import numpy as np
from matplotlib.figure import Figure

import softcal as sc
from pictures.style import FAINT, INK, nodules
from softcal.plot.sheet import BLUE, VERMILLION


@cache
def _preview() -> sc.calibrators.RepairPreview:
    d = nodules()
    return sc.calibrators.repair_preview(
        d["soft_malignant"], d["prob_rf_all"], n_votes=d["n_readers"], groups=d["patient"]
    )


def repaired() -> Figure:
    """Draw the forest before and after beta calibration, on held-out patients."""
    found = _preview()
    best = next(trial for trial in found.after if trial.method == found.best)
    shown = sc.ReliabilityDisplay(found.before.table, name="original").plot()
    sc.ReliabilityDisplay(best.table, name=f"recalibrated, {best.method}").plot(shown.ax_)
    return shown.figure_


def methods_judged() -> Figure:
    """Draw the held-out SMECE with its interval, and the Brier score, of each method."""
    found = _preview()
    trials = [found.before, *found.after][::-1]
    place = np.arange(len(trials))
    figure = Figure(figsize=(6.8, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    for at, trial in zip(place, trials, strict=True):
        color = VERMILLION if trial is found.before else BLUE
        left.plot([trial.smece.low, trial.smece.high], [at, at], color=color, linewidth=4,
                  alpha=0.5, solid_capstyle="butt")  # fmt: skip
        left.plot(trial.smece.value, at, "o", color=color, markersize=8)
        right.plot(trial.brier, at, "D", color=color, markersize=7)
    left.set_yticks(place, ["original" if t is found.before else t.method for t in trials])
    left.axvline(0, color=INK, linewidth=1)
    left.set_title("SMECE, 95% interval", fontsize=12)
    right.set_title("Brier score", fontsize=12)
    for ax in (left, right):
        ax.grid(axis="x", color=FAINT, alpha=0.25)
        ax.locator_params(axis="x", nbins=4)
    figure.supxlabel("held-out patients; lower is better", fontsize=12)
    return figure
