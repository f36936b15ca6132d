"""The figure of the page that compares calibration errors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

import softcal as sc
from pictures.style import FAINT, INK
from softcal.plot.sheet import BLUE, VERMILLION

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float64]

ROWS, MANY_ROWS, VOTES, _SAMPLES = 2000, 200_000, 5, 60

SITUATIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "calibrated": lambda p: p,
    "too high\nby 0.06": lambda p: p - 0.06,
    "too extreme": lambda p: 0.5 + 0.7 * (p - 0.5),
    "wave inside\neach bin": lambda p: p + 0.09 * np.sin(20 * np.pi * p),
}
"""The mean label of each prediction."""

METRICS: dict[str, Callable[[FloatArray, FloatArray], float]] = {
    "smece": sc.smece,
    "smooth_ece": sc.smooth_ece,
    "kde_ece": sc.kde_ece,
    "squared_gap_debiased": lambda y, p: math.sqrt(max(sc.squared_gap_debiased(y, p), 0.0)),
    "corp": lambda y, p: math.sqrt(sc.corp(y, p).brier.miscalibration),
    "ecce_range": lambda y, p: sc.ecce_range(y, p).statistic,
}
"""Each metric; the root of the squared ones."""


def sample(
    mean_label: Callable[[FloatArray], FloatArray], rows: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw vote shares and predictions from 0.1 to 0.9."""
    p = rng.uniform(0.1, 0.9, rows)
    return rng.binomial(VOTES, mean_label(p)) / VOTES, p


def found_in(rows: tuple[FloatArray, FloatArray]) -> list[float]:
    """Return the value of each metric."""
    return [metric(*rows) for metric in METRICS.values()]


def which_error() -> Figure:
    """Draw what each metric finds in four situations, and the true error."""
    figure = Figure(figsize=(8.4, 4.1), layout="constrained")
    places = np.arange(len(METRICS))[::-1]
    every = np.linspace(0.1, 0.9, 10_001)
    for ax, (name, mean_label) in zip(
        figure.subplots(1, len(SITUATIONS), sharex=True, sharey=True),
        SITUATIONS.items(),
        strict=True,
    ):
        rng = np.random.default_rng(0)
        found = [found_in(sample(mean_label, ROWS, rng)) for _ in range(_SAMPLES)]
        low, middle, high = np.quantile(found, (0.05, 0.5, 0.95), axis=0)
        gap = every - mean_label(every)
        ax.axvline(np.abs(gap).mean(), color=FAINT, linewidth=1.5, linestyle="--")
        ax.axvline(math.sqrt((gap**2).mean()), color=FAINT, linewidth=1.5, linestyle=":")
        ax.hlines(places + 0.12, low, high, color=BLUE, linewidth=3, alpha=0.5)
        ax.plot(middle, places + 0.12, "o", color=BLUE, markersize=6)
        many = found_in(sample(mean_label, MANY_ROWS, rng))
        ax.plot(many, places - 0.16, "D", color=VERMILLION, markersize=5)
        ax.set_title(name, fontsize=12)
        ax.set(xlim=(-0.005, 0.105), xticks=(0, 0.05, 0.1))
        ax.set_yticks(places, METRICS, family="monospace", fontsize=11)
        ax.tick_params(axis="y", length=0)
    figure.supxlabel(
        f"circle: median and 90% range of {_SAMPLES} samples of {ROWS:,} rows; "
        f"diamond: {MANY_ROWS:,} rows\n"
        "true error, dashed: mean absolute; dotted: root mean square",
        fontsize=11, color=INK,
    )  # fmt: skip
    return figure
