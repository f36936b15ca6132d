"""Figures of the page that explains calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

import softcal as sc
from pictures.style import FAINT, INK
from softcal.cards.verdict import signed
from softcal.plot.sheet import BLUE, VERMILLION

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes

    FloatArray = npt.NDArray[np.float64]

_ROWS, _VOTES = 500, 5
_PERCENT = ([0, 0.5, 1], ["0%", "50%", "100%"])

SHAPES = {
    "too high": (-0.8, 1.0),
    "too low": (0.8, 1.0),
    "overconfident": (0.0, 0.5),
    "underconfident": (0.0, 2.0),
}
"""The intercept and slope of the mean label in log odds, over the prediction in log odds."""


def mean_label(p: FloatArray, intercept: float, slope: float) -> FloatArray:
    """Return the mean label of each prediction."""
    return np.asarray(1 / (1 + np.exp(-intercept - slope * np.log(p / (1 - p)))))


def how_to_read() -> Figure:
    """Draw a reliability diagram with notes that say how to read it."""
    rel = overconfident()
    figure = Figure(figsize=(5.4, 6.5), layout="constrained")
    ax = figure.add_subplot()
    shown = rel.plot(ax, consistency=True, histogram=False, legend=False, linewidth=2)
    shown.points_.set_sizes(np.full(len(rel.bins), 60.0))
    below = ax.inset_axes((0, -0.25, 1, 0.2), sharex=ax)
    below.stairs(rel.count, rel.bins.edges, fill=True, color=BLUE, alpha=0.3)
    ax.set(xlabel="", ylabel="happened (mean label)")
    below.set(xlabel="predicted (mean prediction)", ylabel="rows")
    ax.xaxis.set_ticks(*_PERCENT)
    ax.yaxis.set_ticks(*_PERCENT)
    ax.tick_params(labelbottom=False)
    p, y = rel.mean_prob, rel.mean_label
    _note(ax, f"\npredicted {p[1]:.0%}, happened {y[1]:.0%}", (0, 1.03), (p[1], y[1]), (0.1, 0))
    _note(ax, f"\npredicted {p[8]:.0%}, happened {y[8]:.0%}", (1.03, 0.2), (p[8], y[8]), (0.8, 1))
    bold = {"color": VERMILLION, "weight": "bold"}
    ax.text(0, 1.03, "predictions too low", bold, ha="left", va="top")
    ax.text(1.03, 0.2, "predictions too high\n", bold, ha="right", va="bottom")
    end = (p[4], shown.label_high[4])
    _note(ax, "bar: 95% interval\nof the mean label", (0.15, 0.83), end, (0.7, 0))
    _note(ax, "band: where points of a\ncalibrated model lie", (1.03, -0.01), (0.2, 0.14), (0, 0.7))
    ax.text(0.77, 0.9, "predicted = happened", ha="center", va="center", rotation=45, color=FAINT)
    below.text(1.03, below.get_ylim()[1], "few rows: wide bars", ha="right", va="top")
    return figure


def overconfident() -> sc.Reliability:
    """Return the table of a simulated model that is too extreme."""
    rng = np.random.default_rng(4)
    p = np.clip(rng.beta(0.7, 1.3, _ROWS), 0.001, 0.999)
    votes = rng.binomial(_VOTES, mean_label(p, 0.0, 0.5))
    return sc.reliability(votes / _VOTES, p, n_votes=_VOTES)


def _note(
    ax: Axes, text: str, place: tuple[float, float], at: tuple[float, float],
    start: tuple[float, float],
) -> None:  # fmt: skip
    """Write a note with a line to what it is about, from a point of the box of the text."""
    line = {"arrowstyle": "-", "color": FAINT, "linewidth": 1.2, "shrinkB": 5, "relpos": start}
    ha, va = ("left", "top") if place[0] < 0.5 else ("right", "bottom")
    ax.annotate(text, at, place, color=INK, arrowprops=line, ha=ha, va=va)


def shapes_of_error() -> Figure:
    """Draw the diagrams of four typical errors, with the numbers that show them."""
    p = np.linspace(0.0005, 0.9995, 2000)
    figure = Figure(figsize=(5.4, 5.7), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True, sharey=True, gridspec_kw={"wspace": 0.08})
    for ax, (name, (intercept, slope)) in zip(panels.flat, SHAPES.items(), strict=True):
        y = mean_label(p, intercept, slope)
        rel = sc.reliability(y, p)
        rel.plot(ax, intervals=False, histogram=False, legend=False, color=VERMILLION)
        ax.fill_between(p, p, y, color=VERMILLION, alpha=0.15, linewidth=0)
        ax.set_title(name, weight="bold")
        numbers = f"bias {signed(rel.bias, 2)}\nslope {slope:g}"
        if name == "too low":
            ax.text(1.02, 0.0, numbers, ha="right", va="bottom")
        else:
            ax.text(0.0, 1.02, numbers, ha="left", va="top")
        ax.set(xlabel="", ylabel="")
        ax.xaxis.set_ticks(*_PERCENT)
        ax.yaxis.set_ticks(*_PERCENT)
    figure.supxlabel("predicted", color=INK, fontsize=12)
    figure.supylabel("happened", color=INK, fontsize=12)
    return figure
