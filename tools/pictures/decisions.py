"""Figure of decision curves."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

import softcal as sc
from pictures.style import FAINT, INK, nodules
from softcal.plot import BLUE, VERMILLION


def decision_curve() -> Figure:
    """Draw the net benefit of the forest over the threshold, and what miscalibration costs."""
    at = np.linspace(0.01, 0.6, 60)
    found = sc.net_benefit(nodules()["soft_malignant"], nodules()["prob_rf_all"], at)
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    ax = figure.subplots()
    ax.fill_between(at, found.low, found.high, color=BLUE, alpha=0.25, linewidth=0)
    ax.plot(at, found.value, color=BLUE, label="forest, 95% interval")
    best = found.value + found.cost
    ax.plot(at, best, color=VERMILLION, linestyle="--", label="best recalibration")
    ax.plot(at, found.treat_all, color=FAINT, linestyle=":", label="act on all")
    ax.axhline(0, color=INK, linewidth=1)
    ax.set(xlabel="threshold", ylabel="net benefit", xlim=(0, 0.6), ylim=(-0.05, 0.3))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    ax.legend()
    return figure
