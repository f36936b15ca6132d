"""Figures of metrics without bins: smoothed, isotonic, and cumulative."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

import softcal as sc
from pictures.style import FAINT, INK, nodules
from softcal.plot.sheet import BLUE, VERMILLION

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes

    FloatArray = npt.NDArray[np.float64]

_STYLES = {
    "random forest": ("prob_rf_all", BLUE, "-"),
    "logistic regression": ("prob_lr_geometry", VERMILLION, "--"),
}


def smoothed_gap(y: FloatArray, p: FloatArray, at: FloatArray, width: float) -> FloatArray:
    """Smooth p - y with a Gaussian kernel reflected at 0 and 1, the integrand of smECE."""
    centers = np.concatenate([p, -p, 2 - p])
    kernel = np.exp(-0.5 * ((at[:, None] - centers) / width) ** 2)
    found = kernel @ np.tile(p - y, 3) / (p.size * width * np.sqrt(2 * np.pi))
    return np.asarray(found, dtype=np.float64)


def smooth_curve() -> Figure:
    """Draw the smoothed differences at the bandwidth of smECE; smECE is the area."""
    share, forest = nodules()["soft_malignant"], nodules()["prob_rf_all"]
    width = sc.smooth_ece(share, forest)
    at = np.linspace(0, 1, 401)
    gap = smoothed_gap(share, forest, at, width)
    figure = Figure(figsize=(6.4, 3.9), layout="constrained")
    ax = figure.subplots()
    ax.axhline(0, color=INK, linewidth=1)
    ax.fill_between(at, gap, 0, where=gap < 0, color=BLUE, alpha=0.3, linewidth=0)
    ax.fill_between(at, gap, 0, where=gap > 0, color=VERMILLION, alpha=0.4, linewidth=0)
    ax.plot(at, gap, color=INK, linewidth=1.5)
    ax.text(0.2, -0.3, "predictions\ntoo low", color=BLUE)
    ax.text(0.84, -0.11, "too high", color=VERMILLION, ha="center")
    ax.set(xlabel="prediction", ylabel="smoothed p - y, times density", xlim=(0, 1))
    ax.set_title(f"SmoothECE of the forest: shaded area = {width:.3f}")
    return figure


def corp_curve() -> Figure:
    """Draw the increasing curve that recalibrates each model best, and its gain."""
    share = nodules()["soft_malignant"]
    figure = Figure(figsize=(5.2, 5), layout="constrained")
    ax = figure.subplots()
    ax.plot([0, 1], [0, 1], color=FAINT, linewidth=1)
    ax.text(0.5, 0.4, "calibrated", color=FAINT, rotation=45, ha="center", va="center")
    for name, (column, color, line) in _STYLES.items():
        curve = sc.corp(share, nodules()[column])
        steps = np.column_stack([curve.prob_low, curve.prob_high]).ravel()
        label = f"{name}: {curve.brier.miscalibration:.4f}"
        ax.plot(steps, np.repeat(curve.recalibrated, 2), color=color, linestyle=line, label=label)
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="prediction", ylabel="recalibrated")
    ax.legend(title="miscalibration part of the Brier score", fontsize=11, title_fontsize=11,
              loc="upper left", bbox_to_anchor=(0, 1.2), borderpad=0)  # fmt: skip
    return figure


def cumulative_differences() -> Figure:
    """Draw the running sum of p - y in the order of p, and the range of chance."""
    share, forest = nodules()["soft_malignant"], nodules()["prob_rf_all"]
    repaired = sc.calibrators.BetaCalibrator().fit(forest, share).predict(forest)
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    ax = figure.subplots()
    _draw_sum(ax, forest, "forest", BLUE, "-")
    _draw_sum(ax, repaired, "recalibrated", VERMILLION, "--")
    found = sc.ecce_range(share, forest)
    ax.axhspan(-2 * found.scale, 2 * found.scale, color=FAINT, alpha=0.25, linewidth=0)
    ax.text(0.02, 2.5 * found.scale, "± 2 standard errors", fontsize=11, color=INK)
    ax.set(xlabel="rows, sorted by prediction", ylabel="sum of (p - y) / n",
           xlim=(0, 1), ylim=(None, 0.025))  # fmt: skip
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    ax.legend(loc="lower left")
    ax.set_title("The sum of a calibrated model stays near 0")
    return figure


def _draw_sum(ax: Axes, p: FloatArray, name: str, color: str, line: str) -> None:
    order = np.argsort(p, kind="stable")
    total = np.cumsum((p - nodules()["soft_malignant"])[order]) / p.size
    ax.plot(np.arange(1, p.size + 1) / p.size, total, color=color, linestyle=line, label=name)
