"""Figures of intervals, coverage, and plans."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

import softcal as sc
from pictures.style import FAINT, INK
from softcal.plot.sheet import BLUE, GREEN, VERMILLION

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from matplotlib.axes import Axes

    FloatArray = npt.NDArray[np.float64]

_COVERAGE = Path(__file__).parents[2] / "docs" / "coverage.csv"
_STUDIES, _ROWS, _RESAMPLES = 30, 1000, 300
_HIT_OR_MISS = (BLUE, VERMILLION)
_LABELS = {
    "hard": "0/1",
    "votes of 3": "3 votes",
    "votes of 5": "5 votes",
    "mixed votes of 5": "5 votes,\nitems differ",
    "fixed panel of 5": "fixed\npanel",
    "noisy soft": "noisy",
    "exact soft": "exact",
}


def thirty_studies() -> Figure:
    """Draw the intervals of softcal and of the bootstrap for thirty data sets."""
    figure = Figure(figsize=(7.2, 5.4), layout="constrained")
    rows = figure.subplots(2, 2, sharex=True, sharey="row")
    for pair, excess in zip(rows, (0.0, 0.15), strict=True):
        _draw_studies(pair, excess)
    figure.supxlabel(f"{_STUDIES} data sets of {_ROWS:,} outcomes each", fontsize=12)
    figure.supylabel("95% interval of the error", fontsize=12)
    lines = {color: rows[0][0].plot([], [], color=color, linewidth=3)[0] for color in _HIT_OR_MISS}
    names = ["contains the true error", "misses it"]
    figure.legend(lines.values(), names, loc="outside upper left", ncols=2, borderpad=0)
    return figure


def _draw_studies(pair: Sequence[Axes], excess: float) -> None:
    """Draw one model that predicts p where the rate is p - excess (p - 1/2)."""
    rng = np.random.default_rng(8)
    # Ten bins of width 1/10: the gap at the middle of each is its mean, and their mean is exact.
    truth = excess * 0.25
    hits = [0, 0]
    for study in range(_STUDIES):
        p = rng.random(_ROWS)
        y = (rng.random(_ROWS) < p - excess * (p - 0.5)).astype(float)
        found = sc.smece_interval(sc.reliability(y, p))
        for k, (low, high) in enumerate(((found.low, found.high), _bootstrap(y, p, rng))):
            hit = low <= truth <= high
            hits[k] += hit
            color = _HIT_OR_MISS[not hit]
            pair[k].plot([study, study], [low, high], color=color, linewidth=3)
    kind = "Calibrated" if truth == 0 else "Overconfident"
    for ax, name, number in zip(pair, ("softcal", "bootstrap"), hits, strict=True):
        ax.axhline(truth, color=INK, linewidth=1.5, linestyle="--")
        ax.set_title(f"{kind} model, error {truth:g}\n{name}: {number} of {_STUDIES}", fontsize=12)
        ax.set_xticks([])
        ax.set_ylim(bottom=-0.004)


def _bootstrap(y: FloatArray, p: FloatArray, rng: np.random.Generator) -> tuple[float, float]:
    """Return the interval of the percentile bootstrap."""
    rows = rng.integers(0, _ROWS, (_RESAMPLES, _ROWS))
    place = (p * 10).astype(int)[rows] + 10 * np.arange(_RESAMPLES)[:, None]
    gaps = np.bincount(place.ravel(), (p - y)[rows].ravel(), 10 * _RESAMPLES)
    sizes = np.abs(gaps).reshape(_RESAMPLES, 10).sum(axis=1) / _ROWS
    low, high = np.quantile(sizes, [0.025, 0.975])
    return float(low), float(high)


def coverage() -> Figure:
    """Draw the coverage of every cell of `benchmarks/interval_coverage.py`."""
    cells: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with _COVERAGE.open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            cells[row["label"]].append((float(row["coverage"]), float(row["naive_coverage"])))
    figure = Figure(figsize=(7, 6), layout="constrained")
    axes = figure.subplots(2, 1, sharex=True, sharey=True)
    rng = np.random.default_rng(0)
    titles = ("softcal's interval", "Plug-in value ± 1.96 standard errors")
    for k, (ax, title, color) in enumerate(zip(axes, titles, (BLUE, VERMILLION), strict=True)):
        for place, found in enumerate(cells.values()):
            where = place + rng.uniform(-0.3, 0.3, len(found))
            ax.plot(where, [c[k] for c in found], "o", markersize=3, color=color, alpha=0.4)
        ax.axhline(0.95, color=INK, linewidth=1.5, linestyle="--")
        ax.set(ylim=(-0.03, 1.03), yticks=[0, 0.5, 0.95], ylabel="coverage")
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        ax.set_title(title)
    names = [_LABELS[label] for label in cells]
    axes[1].set_xticks(range(len(names)), names, fontsize=11)
    axes[1].set_xlabel("labels")
    return figure


def how_many_items() -> Figure:
    """Draw the number of items for a half-width, by votes per item."""
    reach = np.array([0.01, 0.02, 0.03, 0.04])
    figure = Figure(figsize=(6.2, 4), layout="constrained")
    ax = figure.subplots()
    assumed = sc.planning.Assumptions.stated(smece=0.05, label_spread=0.15)
    for votes, color, line in ((1, VERMILLION, "-"), (3, GREEN, "--"), (10, BLUE, "-.")):
        items = [sc.planning.plan(assumed, half_width=half, votes=votes).items for half in reach]
        name = "1 vote per item" if votes == 1 else f"{votes} votes per item"
        ax.plot(reach, items, color=color, linestyle=line, marker="o", markersize=5, label=name)
    ax.set(yscale="log", xlabel="half-width of the 95% interval", ylabel="items needed")
    ax.set_xticks(reach, [f"±{half:g}" for half in reach])
    ticks = [100, 300, 1000, 3000, 10_000]
    ax.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
    ax.minorticks_off()
    ax.grid(axis="y", color=FAINT, alpha=0.25)
    ax.legend()
    ax.set_title("Items needed for SMECE 0.05 and a label spread of 0.15", fontsize=12)
    return figure
