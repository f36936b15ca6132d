"""Draw the figures of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from softcal.paper.experiments import STEEPNESSES
from softcal.paper.model import HALF_WIDTH, MODELS, SEED, limit_ece, limit_smece, predictions
from softcal.plot import ReliabilityDisplay
from softcal.plot.sheet import BLUE, GREEN, VERMILLION, bare, style_of
from softcal.table.reliability import reliability

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from softcal.paper.experiments import Outcomes, PairAccuracy, Spread, Sweep

STYLES = {letter: style_of(k) for k, letter in enumerate(MODELS)}
_SOFT: dict[str, Any] = {"color": BLUE, "marker": "o", "linestyle": "-"}
_HARD: dict[str, Any] = {"color": VERMILLION, "marker": "s", "linestyle": "--"}
_CLOSED, _OPEN = 1, 0  # the reading of the last bin, as in `experiments.READINGS`


def reliability_diagrams() -> Figure:
    """Draw each model's mean soft and thresholded labels per bin over its mean predictions."""
    rng = np.random.default_rng(SEED)
    x, e = rng.uniform(-HALF_WIDTH, HALF_WIDTH, 5000), rng.uniform(0, 1, 5000)
    models = predictions(2.0, x, e)
    figure = Figure(figsize=(7.2, 5.3), layout="constrained")
    axes = figure.subplot_mosaic("ABC;DE.", sharex=True, sharey=True)
    for letter, p in models.items():
        ax = axes[letter]
        soft, hard = reliability(models["A"], p), reliability(x >= 0, p)
        for rel, name, style in (
            (hard, "thresholded\n(ECE)", _HARD),
            (soft, "soft label\n(SMECE)", _SOFT),
        ):
            looks = {"label": name, "markersize": 5, **style}
            ReliabilityDisplay(rel).plot(
                ax, intervals=False, histogram=False, legend=False, **looks
            )
        errors = f"SMECE {soft.smece:.3f}, ECE {hard.smece:.3f}"
        ax.set_title(f"{letter}  {MODELS[letter]}\n{errors}", fontsize=10, loc="left")
        ax.set(aspect="equal", xlabel="", ylabel="")
        ax.tick_params(labelbottom=letter in "CDE")  # nothing is below C
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_ticks([0, 0.5, 1], ["0", "0.5", "1"])
    figure.supxlabel("mean prediction in the bin", fontsize=11)
    figure.supylabel("mean label in the bin", fontsize=11)
    lines, names = axes["A"].get_legend_handles_labels()
    figure.legend(
        lines[::-1], names[::-1], frameon=False, fontsize=11, loc="center left",
        bbox_to_anchor=(0.7, 0.29),
    )  # fmt: skip
    return figure


def over_steepness(sweep: Sweep) -> Figure:
    """Draw both metrics over k, with exact limits as lines and experiment 2 as points."""
    figure = Figure(figsize=(7.4, 4.2), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    fine = np.geomspace(min(STEEPNESSES), max(STEEPNESSES), 200)
    for m, (ax, name, limit) in enumerate(
        zip(axes, ("SMECE", "ECE, thresholded label"), (limit_smece, limit_ece), strict=True)
    ):
        for j, (letter, style) in enumerate(STYLES.items()):
            curve = [limit(letter, k) for k in fine]
            ax.plot(fine, curve, **{**style, "marker": ""}, linewidth=1.5)
            ax.plot(
                sweep.k, sweep.value[_CLOSED, m, j], color=style["color"], marker=style["marker"],
                linestyle="", markersize=6,
                label=f"{letter}  {MODELS[letter]}", clip_on=False,
            )  # fmt: skip
        ax.set_title(name, fontsize=11)
        ax.set(xscale="log", xlabel="steepness k of the posterior", ylim=(0, 0.45))
        _plain_ticks(ax, STEEPNESSES)
        bare(ax)
    axes[0].set_ylabel("calibration error")
    names = axes[1].get_legend_handles_labels()
    figure.legend(*names, frameon=False, fontsize=10, loc="outside lower left", ncols=3)
    axes[0].text(0.98, 0.97, "lines: exact limits\npoints: n = 5,000", ha="right", va="top",
                 transform=axes[0].transAxes, fontsize=9, color="0.3")  # fmt: skip
    return figure


def ranking_accuracy(result: PairAccuracy) -> Figure:
    """Draw how often each metric ranks a pair of models in the claimed order, over k."""
    figure = Figure(figsize=(5.6, 3.8), layout="constrained")
    ax = figure.subplots()
    overall = result.overall
    ax.axhline(0.55, color="0.6", linewidth=1, linestyle=":")
    ax.text(50, 0.555, "random order", fontsize=9, color="0.35", ha="right", va="bottom")
    for m, (name, style) in enumerate((("SMECE", _SOFT), ("ECE, thresholded label", _HARD))):
        face = "white" if m else style["color"]
        ax.plot(
            result.k, overall[_CLOSED, m], **style, markerfacecolor=face, label=name, clip_on=False
        )
    printed = result.k[1], overall[_OPEN, 0, 1]
    ax.plot(*printed, **_SOFT | {"linestyle": ""}, markerfacecolor="white")
    _note(ax, "as printed", printed, (7, 0), color="0.3", va="center")
    ax.set(
        xscale="log", xlabel="steepness k of the posterior", ylim=(0.3, 1.02),
        ylabel="pairs in the claimed order",
    )  # fmt: skip
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    _plain_ticks(ax, result.k)
    bare(ax)
    ax.legend(frameon=False, fontsize=9, loc="lower right")
    return figure


def confidently_wrong(spread: Spread, outcomes: Outcomes) -> Figure:
    """Draw the scores of the perfect model over n, against three kinds of labels."""
    figure = Figure(figsize=(5.6, 3.8), layout="constrained")
    ax = figure.subplots()
    n = np.array(spread.n)
    mean, std = spread.mean[_CLOSED, 1, 0], spread.std[_CLOSED, 1, 0]
    low, high, color = mean - 2 * std, mean + 2 * std, _HARD["color"]
    ax.fill_between(n, low, high, color=color, alpha=0.25, linewidth=0)
    ax.plot(n, mean, **_HARD)
    text = "ECE, thresholded label\n(mean and 2 standard deviations)"
    _note(ax, text, (n[2], mean[2]), (0, 14), ha="center", va="bottom")
    ax.plot(outcomes.n, outcomes.drawn, color=GREEN, marker="D", linestyle="-.")
    text = "ECE, outcomes drawn with\nthe posterior probability"
    _note(ax, text, (outcomes.n[2], outcomes.drawn[2]), (0, 8), ha="left", va="bottom")
    ax.plot(n, spread.mean[_CLOSED, 0, 0], **_SOFT, clip_on=False)
    _note(ax, "SMECE: 0", (n[0], 0), (8, 5))
    ax.set(xscale="log", xlabel="sample size n", ylabel="error of the perfect model",
           ylim=(0, 0.16))  # fmt: skip
    _plain_ticks(ax, spread.n)
    bare(ax)
    return figure


def _note(ax: Axes, text: str, at: Any, away: tuple[float, float], **options: Any) -> None:
    ax.annotate(text, at, xytext=away, textcoords="offset points", fontsize=9, **options)


def _plain_ticks(ax: Axes, values: Any) -> None:
    """Label a log axis with the values used, not with powers of ten."""
    ax.xaxis.set_ticks(list(values), [f"{value:,g}" for value in values])
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.xaxis.set_ticks([], minor=True)
