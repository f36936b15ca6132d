"""Simulate the coverage of intervals of net benefit and of the calibration summary.

python -m benchmarks.decision_coverage RUNS FILE.csv

Each cell is added to the file when it is done; cells that are in the file are skipped.
"""

from __future__ import annotations

import csv
import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit

import softcal as sc
from softcal._validation.inputs import valid_rows
from softcal.inference import summary as parts

PREDICTIONS: dict[str, Any] = {
    "even": lambda rng, n: rng.beta(1, 2, size=n),
    "rare": lambda rng, n: rng.beta(0.5, 15, size=n),
    "U-shaped": lambda rng, n: rng.beta(0.3, 0.3, size=n),
    "discrete": lambda rng, n: rng.choice(
        [0.02, 0.05, 0.1, 0.3, 0.7], size=n, p=[0.4, 0.3, 0.15, 0.1, 0.05]
    ),
}
CURVES = {
    "calibrated": lambda p: p,
    "overconfident": lambda p: expit(0.7 * logit(p)),
    "too low": lambda p: expit(logit(p) + 0.4),
}
LABELS = {"0/1": 1, "5 votes": 5, "soft": 0}
CELLS = ((100, tuple(LABELS)), (10_000, ("0/1",)), (1_000, ("0/1", "5 votes")))
"""Rows, and labels simulated with them."""
THRESHOLDS = (0.05, 0.1, 0.3)


def predictions(kind: str, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return the predictions of two models."""
    p = np.clip(PREDICTIONS[kind](rng, n), 1e-4, 1 - 1e-4)
    return p, expit(logit(p) + rng.normal(scale=0.7, size=n))


def labels(votes: int, mean: Any, rng: np.random.Generator) -> Any:
    """Return outcomes, shares of votes, or labels from a beta distribution."""
    return rng.binomial(votes, mean) / votes if votes else rng.beta(4 * mean, 4 * (1 - mean))


def truth(kind: str, curve: str) -> dict[str, Any]:
    """Return the numbers of 300,000 rows whose labels are the probabilities themselves."""
    p, q = predictions(kind, 300_000, np.random.default_rng(99))
    m = CURVES[curve](p)
    found = sc.calibration_summary(m, p)
    rows = valid_rows(m, p)
    smooth = parts._Smooth.of(parts._Pools.of(parts._Atoms.of_rows(rows, None)))  # noqa: SLF001
    pools = smooth.pools
    gaps = np.abs(pools.prob - smooth.fitted)
    at = np.array(THRESHOLDS)
    worth = (m[:, None] - at) / (1 - at)
    value = (worth * (p[:, None] >= at)).mean(axis=0)
    return {
        "net benefit": value, "difference": value - (worth * (q[:, None] >= at)).mean(axis=0),
        "gaps": (pools.prob, gaps), "noise": (m * (1 - m)).mean(),
        **{name: each.value for name, each in found.estimates.items()},
        "miscalibration": ((p - m) ** 2).mean(), "discrimination": m.var(),
    }  # fmt: skip


def cell(kind: str, curve: str, votes: int, n: int, runs: int, true: dict[str, Any]) -> list[Any]:
    """Return the coverage and the mean width of each interval."""
    noise = true["noise"] / (votes or 5)  # a beta distribution of precision 4 has 1/5
    true = true | {
        "brier": true["miscalibration"] + noise, "uncertainty": true["discrimination"] + noise,
    }  # fmt: skip
    held: dict[str, list[Any]] = {}
    for seed in range(runs):
        rng = np.random.default_rng([27_000, votes, n, seed])
        p, q = predictions(kind, n, rng)
        y = labels(votes, CURVES[curve](p), rng)
        if y.max() == 0:
            continue  # no summary
        at, gaps = true["gaps"]
        here = (at >= p.min() - 1e-9) & (at <= p.max() + 1e-9)
        limits: dict[str, Any] = {
            "net benefit": sc.net_benefit(y, p, THRESHOLDS),
            "difference": sc.net_benefit_difference(y, {"p": p, "q": q}, THRESHOLDS),
            **sc.calibration_summary(y, p, rng=seed).estimates,
        }
        for name, each in limits.items():
            aim = gaps[here].max() if name == "emax" else true[name]
            hit = (each.low <= aim + 1e-9) & (aim <= each.high + 1e-9)
            held.setdefault(name, []).append((np.mean(hit), np.mean(each.high - each.low)))
    return [[name, len(each), *np.mean(each, axis=0)] for name, each in held.items()]


def main(runs: int, target: Path) -> None:
    """Simulate every cell that is not in the file."""
    columns = ["predictions", "curve", "labels", "rows", "number", "runs", "coverage", "width"]
    if not target.exists():
        target.write_text(",".join(columns) + "\n")
    with target.open(newline="") as file:
        done = {tuple(row[:4]) for row in csv.reader(file)}
    for (n, names), kind, curve in itertools.product(CELLS, PREDICTIONS, CURVES):
        left = [name for name in names if (kind, curve, name, str(n)) not in done]
        true = truth(kind, curve) if left else {}
        for name in left:
            found = cell(kind, curve, LABELS[name], n, runs, true)
            with target.open("a", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                for number, count, coverage, width in found:
                    measured = f"{coverage:.4f}", f"{width:.5g}"
                    writer.writerow([kind, curve, name, n, number, count, *measured])


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
