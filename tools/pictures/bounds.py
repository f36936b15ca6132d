"""Figure of interval labels."""

from __future__ import annotations

from matplotlib.figure import Figure

import softcal as sc
from pictures.style import FAINT, INK, nodules
from softcal.plot.sheet import BLUE


def label_intervals() -> Figure:
    """Draw the possible range of the mean label of each bin, and the bounds of SMECE."""
    d = nodules()
    malignant = d["readers_rating_4"] + d["readers_rating_5"]
    low = malignant / d["n_readers"]
    high = (malignant + d["readers_rating_3"]) / d["n_readers"]
    tables = sc.reliability_bounds(low, high, d["prob_rf_all"])
    figure = Figure(figsize=(5.6, 5), layout="constrained")
    ax = figure.subplots()
    ax.plot([0, 1], [0, 1], color=FAINT, linewidth=1)
    ax.vlines(tables.low.mean_prob, tables.low.mean_label, tables.high.mean_label, color=BLUE,
              linewidth=11, alpha=0.45)  # fmt: skip
    for table, marker, name in (
        (tables.high, "v", "“indeterminate” counts as malignant"),
        (tables.low, "^", "“indeterminate” counts as benign"),
    ):
        ax.plot(table.mean_prob, table.mean_label, marker, color=BLUE, markersize=8, label=name)
    ax.set(xlim=(0, 1), ylim=(0, 1.02), aspect="equal", xlabel="mean prediction",
           ylabel="mean label")  # fmt: skip
    ax.legend(fontsize=11, loc="lower left", bbox_to_anchor=(0, 1), borderpad=0)
    found = tables.smece
    ax.text(0.97, 0.05, f"SMECE\n{found.low:.3f} to {found.high:.3f}", color=INK,
            ha="right", fontsize=13)  # fmt: skip
    return figure
