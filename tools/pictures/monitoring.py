"""Figures of daily tables: their sum, and what `Watch` sees in them."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

import softcal as sc
from softcal.plot import draw_watch
from softcal.plot.sheet import BLUE, VERMILLION

_DAYS = 14


def days_add_up() -> Figure:
    """Draw the SMECE of each day and of all days so far."""
    rng = np.random.default_rng(5)
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    ax = figure.subplots()
    so_far: list[sc.Reliability] = []
    sums = []
    for day in range(1, _DAYS + 1):
        p = rng.beta(0.6, 0.9, 400)
        rate = np.clip(p + 0.08 * np.sin(2 * np.pi * p), 0, 1)
        so_far.append(sc.reliability(rng.binomial(3, rate) / 3, p, n_votes=np.full(400, 3)))
        one, total = sc.smece_interval(so_far[-1]), sc.smece_interval(sum(so_far[1:], so_far[0]))
        sums.append(total)
        label = "one day (400 rows)" if day == 1 else None
        ax.plot([day, day], [one.low, one.high], color=VERMILLION, alpha=0.55, linewidth=5,
                solid_capstyle="butt", label=label)  # fmt: skip
    days = range(1, _DAYS + 1)
    ax.fill_between(days, [s.low for s in sums], [s.high for s in sums], color=BLUE, alpha=0.25,
                    linewidth=0)  # fmt: skip
    ax.plot(days, [s.debiased for s in sums], color=BLUE, marker="o",
            label="all days so far (merged tables)")  # fmt: skip
    ax.set(xlabel="day", ylabel="SMECE, 95% interval", ylim=(0, None), xticks=[1, 7, 14])
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), borderpad=0)
    return figure


def watch() -> Figure:
    """Draw 30 days of a model whose predictions are 0.06 too high from day 17 on."""
    rng = np.random.default_rng(5)
    watching = sc.Watch(tolerance=0.02)
    states = []
    for day in range(1, 31):
        p = rng.beta(1, 1.5, 600)
        rate = np.clip(p - (0.06 if day >= 17 else 0.0), 0, 1)
        rel = sc.reliability(rng.binomial(3, rate) / 3, p)
        states.append(watching.update(rel, date=f"2026-03-{day:02d}"))
    return draw_watch(states, tolerance=0.02, level=0.95)
