"""Figures of the start page and of the page on reliability diagrams."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

import softcal as sc
from pictures.style import nodules
from softcal.plot import draw_bins, draw_gaps
from softcal.plot.sheet import VERMILLION

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def two_labels() -> Figure:
    """Draw one model against the majority label and against the share of radiologists."""
    share, forest, readers = (
        nodules()[name] for name in ("soft_malignant", "prob_rf_all", "n_readers")
    )
    figure = Figure(figsize=(6.8, 3.7), layout="constrained")
    hard, soft = figure.subplots(1, 2, sharey=True, gridspec_kw={"wspace": 0.1})
    majority = sc.reliability(sc.harden(share), forest)
    majority.plot(hard, histogram=False, legend=False, color=VERMILLION, marker="s")
    shares = sc.reliability(share, forest, n_votes=readers)
    shares.plot(soft, histogram=False, legend=False)
    _titled(hard, f"Majority label\nECE {majority.smece:.3f}: looks calibrated")
    _titled(soft, f"Share of radiologists\nSMECE {shares.smece:.3f}: too low")
    hard.set_ylabel("label: malignant")
    soft.set_ylabel("")
    return figure


def _titled(ax: Axes, title: str) -> None:
    ax.set_title(title, fontsize=12)
    ax.set(aspect="equal", xlabel="prediction")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks([0, 0.5, 1], ["0%", "50%", "100%"])


def diagram() -> Figure:
    """Draw two models with the defaults of softcal."""
    share, readers = nodules()["soft_malignant"], nodules()["n_readers"]
    shown = sc.ReliabilityDisplay.from_predictions(
        share, nodules()["prob_rf_all"], n_votes=readers, name="random forest"
    )
    regression = sc.reliability(share, nodules()["prob_lr_geometry"], n_votes=readers)
    regression.plot(shown.ax_, name="logistic regression")
    return shown.figure_


def diagram_band() -> Figure:
    """Draw one model on few rows, with the consistency band."""
    first = slice(0, 150)
    return sc.ReliabilityDisplay.from_predictions(
        nodules()["soft_malignant"][first],
        nodules()["prob_rf_all"][first],
        n_votes=nodules()["n_readers"][first],
        name="forest, 150 nodules",
        consistency=True,
    ).figure_


def _two_models() -> sc.TableSet:
    """Scan the rows, as `softcal plot` does with --name."""
    items = Path(sc.__file__).parent / "data" / "lidc_malignancy" / "items.csv"
    models = ["prob_rf_all", "prob_lr_geometry"]
    share = sc.Shares("soft_malignant", votes="n_readers")
    found = sc.scan(items, y_true=share, y_prob=models)
    return found.rename({models[0]: "random forest", models[1]: "logistic regression"})


def gaps() -> Figure:
    """Draw the gap of each bin, as `softcal plot --kind gaps` does."""
    return draw_gaps(dict(_two_models()))


def number_of_bins() -> Figure:
    """Draw SMECE for each number of bins, as `softcal plot --kind bins` does."""
    return draw_bins(_two_models())
