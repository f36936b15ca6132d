"""Draw the diagrams of docs/diagram.md into docs/figures, and try out the consistency band.

python benchmarks/diagrams.py          # the figures: seconds
python benchmarks/diagrams.py band     # how often calibrated gaps lie within the band: a minute
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

import softcal as sc
from softcal.datasets import lidc_malignancy

FIGURES = Path(__file__).parent.parent / "docs" / "figures"
REPEATS = 600


def draw() -> None:
    mpl.use("agg")
    nodules = lidc_malignancy()
    share, readers = nodules["soft_malignant"], nodules["n_readers"]
    both = sc.ReliabilityDisplay.from_predictions(
        share, nodules["prob_rf_all"], n_votes=readers, name="random forest"
    )
    regression = sc.reliability(share, nodules["prob_lr_geometry"], n_votes=readers)
    regression.plot(both.ax_, name="logistic regression")
    few = slice(0, 150)
    band = sc.ReliabilityDisplay.from_predictions(
        share[few], nodules["prob_rf_all"][few], n_votes=readers[few],
        name="forest, 150 nodules", consistency=True,
    )  # fmt: skip
    for name, shown in (("diagram", both), ("diagram_band", band)):
        shown.figure_.savefig(FIGURES / f"{name}.png", dpi=110)


def calibrated_labels(rng: np.random.Generator, kind: str, p: Any) -> tuple[Any, dict[str, Any]]:
    """Draw labels of mean p, and give what else the table should be told."""
    n = p.size
    if kind == "groups":  # five rows or so share their luck
        groups = rng.integers(0, n // 5, n)
        return (rng.random(n // 5)[groups] < p).astype(float), {"groups": groups}
    if kind == "tight":
        return np.clip(p + rng.normal(0, 0.1, n) * np.minimum(p, 1 - p), 0, 1), {}
    if kind in {"0/1", "5 votes"}:
        votes = 1 if kind == "0/1" else 5
        return rng.binomial(votes, p) / votes, {"n_votes": votes}
    y = np.clip(rng.beta(4 * p + 1e-9, 4 - 4 * p + 1e-9), 0, 1)
    return y, {"sample_weight": rng.exponential(1, n)} if kind == "weighted" else {}


def try_band() -> None:
    rng = np.random.default_rng(1)
    print("kind       predictions     n   within the band: all bins' mean, worst bin; all together")
    for kind in ("0/1", "5 votes", "soft", "tight", "weighted", "groups"):
        for shape, (a, b) in {"uniform": (1, 1), "skewed": (0.3, 2)}.items():
            for n in (50, 300, 3000):
                inside, filled, together = np.zeros(10), np.zeros(10), 0
                for _ in range(REPEATS):
                    p = rng.beta(a, b, n)
                    y, options = calibrated_labels(rng, kind, p)
                    rel = sc.reliability(y, p, **options)
                    inside += np.abs(rel.gap) <= sc.consistency_band(rel).high
                    filled += rel.count > 0
                    wide = sc.consistency_band(rel, simultaneous=True).high
                    together += int((np.abs(rel.gap) <= wide).sum() == (rel.count > 0).sum())
                often = filled > REPEATS / 2
                print(
                    f"{kind:10} {shape:11} {n:5,}   {inside.sum() / filled.sum():.3f} "
                    f"{(inside[often] / filled[often]).min():.3f} {together / REPEATS:.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    try_band() if sys.argv[1:] == ["band"] else draw()
