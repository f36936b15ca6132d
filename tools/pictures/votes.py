"""Figure of what vote noise adds to a score."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

import softcal as sc
from pictures.style import FAINT
from softcal.plot.sheet import BLUE, GREEN, VERMILLION


def vote_noise() -> Figure:
    """Draw the scores of a model that knows every rate, over the number of votes."""
    rng = np.random.default_rng(4)
    rate = rng.beta(2, 2, 20_000)
    numbers = [2, 3, 5, 10, 20, 50, 100]
    scores: dict[str, list[float]] = {"absolute": [], "smece": [], "brier": [], "corrected": []}
    for m in numbers:
        ayes = rng.binomial(m, rate)
        votes = sc.Votes(np.column_stack([m - ayes, ayes]))
        scores["absolute"].append(sc.vote_noise_floor(votes, rate, metric="dist_ce"))
        scores["smece"].append(sc.smece(votes, rate))
        scores["brier"].append(sc.brier(votes, rate))
        scores["corrected"].append(sc.brier_without_vote_noise(votes, rate))
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    ax = figure.subplots()
    for name, color, line, marker, label in (
        ("absolute", VERMILLION, "-", "s", "mean |p - y|, dist_ce"),
        ("brier", GREEN, "--", "D", "Brier score"),
        ("corrected", GREEN, ":", "d", "Brier without vote noise"),
        ("smece", BLUE, "-.", "o", "SMECE"),
    ):
        ax.plot(numbers, scores[name], color=color, linestyle=line, marker=marker, label=label)
    ax.set(xscale="log", xlabel="votes per item", ylabel="score (ideally 0)",
           ylim=(-0.008, None))  # fmt: skip
    ax.set_xticks(numbers, [str(m) for m in numbers])
    ax.minorticks_off()
    ax.axhline(0, color=FAINT, linewidth=1)
    ax.legend()
    ax.set_title("A model that knows every rate exactly (20,000 items)")
    return figure
