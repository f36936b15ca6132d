"""What is wrong in the paper, each item computed here rather than quoted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from softcal.paper.generative import HALF_WIDTH, predictions
from softcal.paper.limits import limit_smece
from softcal.paper.reproduction import SEED

if TYPE_CHECKING:
    from softcal.paper.further import Outcomes
    from softcal.paper.reproduction import Cell, Experiments


def errata(results: Experiments, cells: list[Cell], outcomes: Outcomes) -> list[dict[str, Any]]:
    """List the errors: a title, what the paper says, what we find, and the numbers behind it."""
    return [
        _dropped_ones(results, cells),
        _pair_c_e(cells),
        _ratio(cells),
        _uncertain_range(results.one.k),
        _pair_c_d(results, cells),
        _floor(outcomes),
    ]


def _entry(title: str, claim: str, finding: str, /, **numbers: Any) -> dict[str, Any]:
    return {"title": title, "paper": claim, "ours": finding, "numbers": numbers}


def _find(cells: list[Cell], table: str, row: str, column: str) -> Cell:
    return next(c for c in cells if (c.table, c.row, c.column) == (table, row, column))


def _dropped_ones(results: Experiments, cells: list[Cell]) -> dict[str, Any]:
    k, n = results.one.k, results.one.n
    x = np.random.default_rng(SEED).uniform(-HALF_WIDTH, HALF_WIDTH, n)  # experiment 1's draws
    dropped = int((predictions(k, x, x)["D"] == 1).sum())
    changed = [c for c in cells if c.changed_by_closing]
    closed, literal = limit_smece("D", k), limit_smece("D", k, last_bin_closed=False)
    return _entry(
        "Predictions of exactly 1 are in no bin",
        "Bins [(b-1)/B, b/B): p = 1 belongs to none of them, yet counts in n.",
        f"Model D predicts exactly 1 for {dropped:,} of {n:,} rows of experiment 1 "
        f"({dropped / n:.1%}). Closing the last bin changes {len(changed)} printed figures; "
        f"SMECE of D tends to {closed:.4f}, not {literal:.4f}.",
        dropped=dropped,
        rows=n,
        changed=[f"{c.table}: {c.name}: {c.shown(c.open)} -> {c.shown(c.closed)}" for c in changed],
        limit_closed=closed,
        limit_open=literal,
    )


def _pair_c_e(cells: list[Cell]) -> dict[str, Any]:
    pairs = [c for c in cells if c.table == "experiment_3_pairs" and c.column == "ECE"]
    wrong = _find(cells, "experiment_3_pairs", "C-E", "ECE")
    overall = _find(cells, "experiment_3", "ECE", "k=2")
    ours = float(np.mean([c.open for c in pairs]))
    printed = float(np.mean([c.printed for c in pairs]))
    return _entry(
        "Pair C-E under ECE at k = 2",
        f"Accuracy {wrong.printed:.3f}.",
        f"It is {wrong.open:.3f}. The paper's overall accuracy, {overall.printed:.3f}, is the mean "
        f"of the ten pairs with ours ({ours:.4f}), not with the printed one ({printed:.4f}).",
        printed=wrong.printed,
        ours=wrong.open,
        overall_printed=overall.printed,
        mean_of_ours=ours,
        mean_of_printed=printed,
    )


def _ratio(cells: list[Cell]) -> dict[str, Any]:
    a, b = (_find(cells, "experiment_1", model, "ECE").printed for model in "AB")
    return _entry(
        "How much larger the ECE of A is than that of B",
        "29 times.",
        f"{a} / {b} is {a / b:.1f} times.",
        ratio=a / b,
    )


def _uncertain_range(k: float) -> dict[str, Any]:
    share = math.log(9) / k / HALF_WIDTH  # sigmoid(kx) is 0.9 at x = log(9)/k
    return _entry(
        "Share of the inputs with a posterior between 0.1 and 0.9",
        "Approximately 60 %.",
        f"log(9)/6 = {share:.1%}.",
        share=share,
    )


def _pair_c_d(results: Experiments, cells: list[Cell]) -> dict[str, Any]:
    k = results.one.k
    c, d = limit_smece("C", k), limit_smece("D", k)
    pair = _find(cells, "experiment_3_pairs", "C-D", "SMECE")
    return _entry(
        "Pair C-D at k = 2",
        "Accuracy 0.000: an ambiguity of scalar summaries at this sample size.",
        f"Not noise: in the limit SMECE is {c:.4f} for C and {d:.4f} for D, so D is the better "
        f"calibrated, and accuracy stays {pair.limit:.0f} at any n. The claimed order is wrong.",
        limit_c=c,
        limit_d=d,
    )


def _floor(outcomes: Outcomes) -> dict[str, Any]:
    first, last = outcomes.n[0], outcomes.n[-1]
    return _entry(
        "Whether ECE of the perfect model has a floor",
        "A structural gap whenever the label is a probability and the outcome a realisation of it.",
        f"Only for thresholded labels. Against outcomes drawn with the posterior probability its "
        f"ECE falls from {outcomes.drawn[0]:.4f} at n = {first:,} to {outcomes.drawn[-1]:.4f} at "
        f"n = {last:,}, like n^{outcomes.slope:.2f} (thresholded: {outcomes.thresholded[0]:.4f} to "
        f"{outcomes.thresholded[-1]:.4f}). What soft labels buy there is variance.",
        n=list(outcomes.n),
        ece_drawn=outcomes.drawn.tolist(),
        ece_thresholded=outcomes.thresholded.tolist(),
        slope=outcomes.slope,
    )
