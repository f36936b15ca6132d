"""Simulate the coverage of intervals of net benefit and of the calibration summary.

python -m benchmarks.decision_coverage RUNS
"""

from __future__ import annotations

import itertools
import sys
from typing import Any

import numpy as np
from scipy.special import expit, logit

import softcal as sc

CURVES = {
    "calibrated": lambda p: p,
    "overconfident": lambda p: expit(0.7 * logit(p)),
    "too low": lambda p: expit(logit(p) + 0.4),
}
LABELS = {"0/1": 1, "4 votes": 4}
THRESHOLDS = (0.1, 0.3)


def data(curve: str, votes: int, n: int, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Return labels, predictions, and a second model's predictions."""
    p = np.clip(rng.beta(1, 2, size=n), 1e-4, 1 - 1e-4)
    q = expit(logit(p) + rng.normal(scale=0.7, size=n))
    return rng.binomial(votes, CURVES[curve](p)) / votes, p, q


def truth(curve: str) -> dict[str, np.ndarray | float]:
    """Return the numbers of two million rows whose labels are the probabilities themselves."""
    rng = np.random.default_rng(1)
    p = np.clip(rng.beta(1, 2, size=2_000_000), 1e-4, 1 - 1e-4)
    q = expit(logit(p) + rng.normal(scale=0.7, size=p.size))
    m = CURVES[curve](p)
    d = np.abs(p - m)
    e50, e90 = np.quantile(d, [0.5, 0.9])
    worth = [(m - t) / (1 - t) for t in THRESHOLDS]
    value = np.array([(w * (p >= t)).mean() for w, t in zip(worth, THRESHOLDS, strict=True)])
    other = np.array([(w * (q >= t)).mean() for w, t in zip(worth, THRESHOLDS, strict=True)])
    return {
        "net benefit": value, "difference": value - other, "ici": d.mean(), "e50": e50, "e90": e90,
        "emax": d.max(), "miscalibration": (d**2).mean(), "discrimination": m.var(),
        "mean": m.mean(), "noise": (m * (1 - m)).mean(),
    }  # fmt: skip


def main(runs: int) -> None:
    """Print a table of coverages and of mean interval widths."""
    names = [
        "ici", "e50", "e90", "emax", "brier", "miscalibration", "discrimination", "uncertainty",
    ]  # fmt: skip
    print("| curve | labels | rows |", " | ".join(["net benefit", "difference", *names]), "|")
    print("|---" * (5 + len(names)) + "|")
    for curve, (kind, votes), n in itertools.product(CURVES, LABELS.items(), (300, 2000)):
        true = truth(curve)
        spread = true["discrimination"] + true["noise"] / votes
        true |= {
            "uncertainty": spread,
            "brier": true["miscalibration"] + true["noise"] / votes,
        }
        hits = []
        for seed in range(runs):
            rng = np.random.default_rng([4, votes, n, seed])
            y, p, q = data(curve, votes, n, rng)
            found = sc.net_benefit(y, p, THRESHOLDS)
            two = sc.net_benefit_difference(y, {"p": p, "q": q}, THRESHOLDS)
            summary = sc.calibration_summary(y, p, rng=seed).estimates
            row: list[Any] = [
                np.mean((each.low <= true[name]) & (true[name] <= each.high))
                for name, each in (("net benefit", found), ("difference", two))
            ]
            row += [summary[k].low <= true[k] + 1e-12 and true[k] <= summary[k].high for k in names]
            hits.append(row)
        rates = " | ".join(f"{rate:.2f}" for rate in np.mean(hits, axis=0))
        print(f"| {curve} | {kind} | {n:,} | {rates} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
