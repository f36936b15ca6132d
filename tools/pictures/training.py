"""Figure of calibration during the training of a network."""

from __future__ import annotations

import numpy as np
import torch
from matplotlib.figure import Figure

import softcal as sc
from pictures.style import INK, nodules
from softcal.plot.sheet import BLUE, VERMILLION
from softcal.torchmetric import SoftCalibrationError

_EPOCHS = 15


def error_by_epoch() -> Figure:
    """Train on the shares and on the majority; draw the held-out SMECE after each epoch."""
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    ax = figure.subplots()
    epochs = np.arange(1, _EPOCHS + 1)
    for hard, name, color, line, marker in (
        (True, "trained on the majority", VERMILLION, "--", "s"),
        (False, "trained on the shares", BLUE, "-", "o"),
    ):
        found = _train(hard=hard)
        low, high = [i.low for i in found], [i.high for i in found]
        ax.fill_between(epochs, low, high, color=color, alpha=0.2, linewidth=0)
        ax.plot(epochs, [i.value for i in found], color=color, linestyle=line, marker=marker,
                markersize=5, label=name)  # fmt: skip
    ax.axhline(0, color=INK, linewidth=1)
    ax.set(xlabel="epoch", ylabel="SMECE of held-out nodules", xlim=(0.5, _EPOCHS + 0.5))
    ax.legend(title="with 95% interval")
    return figure


def _train(*, hard: bool) -> list[sc.inference.Interval]:
    d = nodules()
    x = torch.tensor(np.column_stack([d["prob_lr_geometry"], d["prob_rf_all"]])).float()
    share = torch.tensor(d["soft_malignant"]).float()
    goal = (share > 0.5).float() if hard else share
    test = torch.tensor(d["fold"] < 3)
    torch.set_num_threads(1)  # threads only slow down so small a model
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1), torch.nn.Flatten(0)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    loss = torch.nn.BCEWithLogitsLoss()
    metric = SoftCalibrationError(bins=10)
    found = []
    for _ in range(_EPOCHS):
        for batch in torch.randperm(int((~test).sum())).chunk(8):
            optimizer.zero_grad()
            loss(model(x[~test][batch]), goal[~test][batch]).backward()
            optimizer.step()
        metric.reset()
        with torch.no_grad():
            metric.update(torch.sigmoid(model(x[test])), share[test])
        found.append(sc.smece_interval(metric.reliability()))
    return found
