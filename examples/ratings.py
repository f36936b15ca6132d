"""Radiologists' ratings from 1 to 5: what training on the median rating costs.

Run as `python examples/ratings.py [FOLDER]`; the data is bundled with softcal.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

import softcal as sc
from softcal.datasets import lidc_malignancy

if TYPE_CHECKING:
    from softcal.inference.ordinal import ItemMetric

NEIGHBORS = 50
FloatArray = npt.NDArray[np.float64]


def neighbors(x: FloatArray, labels: FloatArray, fold: npt.NDArray[np.int64]) -> FloatArray:
    """Predict each nodule by the mean label of the nearest nodules in other folds."""
    found = np.empty_like(labels)
    for k in np.unique(fold):
        others = np.flatnonzero(fold != k)
        for i in np.flatnonzero(fold == k):
            near = np.abs(x[others] - x[i]).argsort(kind="stable")[:NEIGHBORS]
            found[i] = labels[others[near]].mean(axis=0)
    return found


def show(name: str, values: list[str]) -> None:
    """Print one line, with one column per model."""
    print(f"{name:26}{''.join(f'{value:>18}' for value in values)}")


def main(folder: Path) -> None:
    """Compare two models of the rating, and write a report to the folder."""
    d = lidc_malignancy()
    counts = np.column_stack([d[f"readers_rating_{k}"] for k in range(1, 6)])
    votes = sc.Votes(counts, classes=[1, 2, 3, 4, 5], ordered=True)
    above_half = votes.shares.cumsum(axis=1) >= 0.5
    median = np.eye(5)[above_half.argmax(axis=1)]
    x, fold = d["prob_rf_all"], d["fold"]
    models = {
        "all ratings": neighbors(x, votes.shares, fold),
        "median rating": neighbors(x, median, fold),
    }
    patient = d["patient"]
    print(f"{'trained on':26}{''.join(f'{name:>18}' for name in models)}")
    found = [sc.cumulative_smece_interval(votes, p, groups=patient) for p in models.values()]
    show("cumulative SMECE", [f"{each.value:.3f}" for each in found])
    show("  95% interval", [f"{each.low:.3f} to {each.high:.3f}" for each in found])
    metrics: tuple[ItemMetric, ...] = ("ranked_probability_score", "wasserstein")
    for metric in metrics:
        found = [
            sc.score_interval(votes, p, metric=metric, groups=patient) for p in models.values()
        ]
        show(metric.replace("_", " "), [f"{each.value:.3f}" for each in found])
        show("  95% interval", [f"{each.low:.3f} to {each.high:.3f}" for each in found])
        show("  floor from vote noise", [f"{each.floor:.3f}" for each in found])
    tables = [sc.cumulative_reliability(votes, p, groups=patient) for p in models.values()]
    for name in tables[0]:
        show(f"mean gap of P(rating {name})", [f"{each[name].bias:+.3f}" for each in tables])

    folder.mkdir(parents=True, exist_ok=True)
    first, second = (
        sc.ReliabilityDisplay(table["> 3"], name=f"rating > 3, {name}")
        for table, name in zip(tables, models, strict=True)
    )
    shown = first.plot()
    second.plot(shown.ax_)
    shown.figure_.savefig(folder / "ratings.png", dpi=110)
    sc.write_report(folder / "ratings.html", votes, models, groups=d["patient"])


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "examples/out"))
