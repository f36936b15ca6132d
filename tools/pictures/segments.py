"""Figure of an audit: the segments that are off, with intervals that hold together."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import softcal as sc
from softcal.plot.sheet import VERMILLION


def audited() -> Figure:
    """Draw the worst segments of simulated rows, of which one combination is 0.15 too high."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"p": rng.uniform(size=4000), "device": rng.choice(["phone", "web"], 4000)})
    rows["country"] = rng.choice(["DE", "FR", "US"], 4000)
    off = 0.15 * ((rows["device"] == "phone") & (rows["country"] == "FR"))
    rows["y"] = (rng.uniform(size=4000) < np.clip(rows["p"] - off, 0, 1)).astype(float)
    found = sc.audit(rows, y_true="y", y_prob="p", by=["device", "country"]).segments[:8][::-1]
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    ax = figure.subplots()
    for k, segment in enumerate(found):
        color = VERMILLION if segment.pvalue <= 0.05 else "0.5"
        ax.plot([segment.low, segment.high], [k, k], color=color, linewidth=2)
        ax.plot(segment.gap, k, "o", color=color)
    names = [" and ".join(f"{key} = {value}" for key, value in s.where.items()) for s in found]
    ax.set_yticks(range(len(found)), names)
    ax.axvline(0, color="0.3", linewidth=0.8)
    ax.locator_params(axis="x", nbins=4)
    ax.set_xlabel("mean prediction minus mean label\n(simultaneous 95% intervals)")
    return figure
