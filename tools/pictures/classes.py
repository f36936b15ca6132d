"""Figure of multiple classes, each against the rest."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

import softcal as sc

_CLASSES = ["cat", "dog", "fox"]


def each_class() -> Figure:
    """Draw a network that is overconfident and predicts too little for one class."""
    rng = np.random.default_rng(2)
    rates = rng.dirichlet([1.2, 1.0, 0.6], 6000)
    votes = sc.Votes([rng.multinomial(10, rate) for rate in rates], classes=_CLASSES)
    sharp = rates**1.8 * np.array([1.0, 1.0, 0.55])
    model = sharp / sharp.sum(axis=1, keepdims=True)
    figure = Figure(figsize=(7.4, 3.4), layout="constrained")
    axes = figure.subplots(1, 3, sharex=True, sharey=True)
    tables = sc.classwise_reliability(votes, model)
    for ax, (name, table) in zip(axes, tables.items(), strict=True):
        table.plot(ax, legend=False)
        ax.set_title(f"{name}: SMECE {table.smece:.3f}", fontsize=12)
        ax.set(aspect="equal", xlabel="", ylabel="")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_ticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes[0].set_ylabel("mean share of votes")
    axes[1].set_xlabel("mean predicted probability")
    mean = sc.classwise_smece(votes, model)
    top = sc.top_label_smece(votes, model)
    figure.suptitle(f"classwise SMECE {mean:.3f}, top label {top:.3f}", fontsize=12, x=0.02,
                    ha="left")  # fmt: skip
    return figure
