"""Measure the coverage and width of the interval of the Brier score, by simulation.

Student's interval of the mean loss is the comparison. Run `python -m benchmarks.brier` (about 10
minutes on one core). Only the interval is computed, not the rest of the calibration summary.
"""

from __future__ import annotations

import argparse
import itertools
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit, stdtrit

from benchmarks.paired import write_csv
from softcal._validation.inputs import valid_rows
from softcal.inference import summary

if TYPE_CHECKING:
    from collections.abc import Callable

    Draw = Callable[[np.random.Generator, Any], Any]

ROWS = (20, 50, 100, 300, 1_000)
PREDICTIONS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "even": lambda rng, n: rng.uniform(0.02, 0.98, n),
    "rare": lambda rng, n: rng.beta(0.5, 15, n),
    "tied": lambda rng, n: rng.integers(1, 10, n) / 10,
}
LABELS: dict[str, Draw] = {
    "0/1": lambda rng, p: 1.0 * rng.binomial(1, p),
    "3 votes": lambda rng, p: rng.binomial(3, p) / 3,
    "10 votes": lambda rng, p: rng.binomial(10, p) / 10,
    "soft, skewed": lambda rng, p: rng.beta(2 * p, 2 * (1 - p)),
    "soft": lambda rng, p: rng.beta(20 * p, 20 * (1 - p)),
    "soft, cut": lambda rng, p: np.clip(p + rng.normal(0, 0.07, p.size), 0, 1),
    "soft, in tenths": lambda rng, p: np.clip(p + rng.normal(0, 0.1, p.size), 0, 1).round(1),
    "half 0/1, half soft": lambda rng, p: np.where(
        rng.random(p.size) < 0.5, rng.random(p.size) < p, rng.beta(50 * p, 50 * (1 - p))
    ),
}
CURVES: dict[str, Callable[[Any], Any]] = {
    "calibrated": lambda p: p,
    "overconfident": lambda p: expit(0.7 * logit(p)),
    "too low": lambda p: expit(logit(p) + 0.4),
}


def limits(y: Any, p: Any) -> tuple[float, float]:
    """Return the interval of the Brier score, as `calibration_summary` does."""
    atoms = summary._Atoms.of_rows(valid_rows(y, p), None)  # noqa: SLF001
    pools = summary._Pools.of(atoms)  # noqa: SLF001
    curve = isotonic_regression(pools.label, weights=pools.weight).x[pools.place]
    loss = (atoms.label - atoms.prob) ** 2
    return atoms.limits(loss, float(atoms.weight @ loss), atoms.prob, curve, level=0.95)


def students(y: Any, p: Any) -> tuple[float, float]:
    """Return Student's interval of the mean loss."""
    loss = (y - p) ** 2
    half = -float(stdtrit(loss.size - 1, 0.025)) * loss.std(ddof=1) / math.sqrt(loss.size)
    return loss.mean() - half, loss.mean() + half


def drawn(rng: np.random.Generator, shape: str, curve: str, kind: str, n: int) -> tuple[Any, Any]:
    """Return labels and predictions."""
    p = np.clip(PREDICTIONS[shape](rng, n), 1e-4, 1 - 1e-4)
    return LABELS[kind](rng, CURVES[curve](p)), p


def main() -> None:
    """Simulate every cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--output", type=Path, default=Path("docs/brier_coverage.csv"))
    chosen = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for shape, curve, kind in itertools.product(PREDICTIONS, CURVES, LABELS):
        many = drawn(np.random.default_rng(1), shape, curve, kind, 1_000_000)
        truth = np.mean((many[0] - many[1]) ** 2)
        for n in ROWS:
            rng = np.random.default_rng([3, n])
            found = []
            for _ in range(chosen.samples):
                y, p = drawn(rng, shape, curve, kind, n)
                found.append((*limits(y, p), *students(y, p)))
            low, high, t_low, t_high = np.array(found).T
            rows.append({
                "predictions": shape, "curve": curve, "labels": kind, "rows": n,
                "samples": chosen.samples, "brier": round(truth, 5),
                "coverage": np.mean((low <= truth) & (truth <= high)).round(4),
                "student_coverage": np.mean((t_low <= truth) & (truth <= t_high)).round(4),
                "width": round(np.median(high - low), 5),
                "student_width": round(np.median(t_high - t_low), 5),
            })  # fmt: skip
        write_csv(chosen.output, rows)


if __name__ == "__main__":
    main()
