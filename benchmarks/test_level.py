"""Count how often the tests reject calibrated models, and models that are not calibrated.

    .venv/bin/python -m benchmarks.test_level [--replications 400] [--output docs/test_level.csv]

Writes docs/test_level.csv, one row per cell: how often `calibration_test`, `ecce_mad`, and
`ecce_range` reject at 5% and at 0.0001. A cell is a distribution of predictions, a kind of label, a
kind of miscalibration, a sample size, and a number of bins. Numbers of bins and tests share data
sets. The seeds and settings were not used to choose the method. One process, about three minutes on
one idle core.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from scipy.special import expit, logit

from benchmarks.paired import write_csv
from softcal import Bins, Reliability, calibration_test, ecce_mad, ecce_range
from softcal.table.kernel import Sums, as_sums, totals

DOCS = Path(__file__).parent.parent / "docs"
LEVELS = (0.05, 1e-4)
SIZES = (100, 400, 1500, 5000)
BINS = (5, 15, 50)
CUMULATIVE = 400  # data sets of each cell for the cumulative tests
POWER = 200  # data sets of each cell that is not calibrated
ROWS_AT_ONCE = 1_000_000
SEED = 2027

VALUES = np.array([0.004, 0.015, 0.04, 0.12, 0.3, 0.45, 0.62, 0.77, 0.9, 0.985])
PREDICTIONS: dict[str, Any] = {
    "spread": lambda rng, shape: rng.beta(1.2, 0.9, shape),
    "rare": lambda rng, shape: rng.beta(0.8, 60, shape),
    "confident": lambda rng, shape: expit(rng.normal(0.5, 4.5, shape)),
    "ten values": lambda rng, shape: rng.choice(VALUES, shape),
    "one value": lambda _rng, shape: np.full(shape, 0.12),
}
CURVES: dict[str, Any] = {
    "calibrated": lambda p: p,
    "half": lambda p: p / 2,
    "overconfident": lambda p: expit(0.7 * logit(np.clip(p, 1e-12, 1 - 1e-12))),
    "wave": lambda p: p + 0.5 * np.minimum(p, 1 - p) * np.sin(12 * p),
}
LABELS = (
    "0/1", "4 votes", "3 votes, items that differ", "2 to 12 votes, most near 1/2",
    "7 votes, 1 near 1/2", "a third 0/1, others exact", "half 0/1, half Beta(5q)", "Beta(10q)",
    "Beta(2.5q)", "Beta(800q)", "Beta(40q) below 0.2, Beta(6q) above", "q ± 60% of min(q, 1 - q)",
)  # fmt: skip


def beta(rng: np.random.Generator, rate: Any, precision: Any) -> Any:
    safe = np.clip(rate, 1e-9, 1 - 1e-9)
    return rng.beta(precision * safe, precision * (1 - safe))


def labels(kind: str, p: Any, rate: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Draw labels of a kind; return them and the number of votes, where there are votes."""
    middle = np.abs(p - 0.5) < 0.25
    votes = {
        "4 votes": 4,
        "3 votes, items that differ": 3,
        "7 votes, 1 near 1/2": np.where(middle, 1, 7),
        "2 to 12 votes, most near 1/2": 2 + np.floor(40 * p * (1 - p)).astype(int),
    }.get(kind)
    if votes is not None:
        number = np.broadcast_to(votes, p.shape)
        share = beta(rng, rate, 5.0) if "differ" in kind else rate
        return rng.binomial(number, share) / number, np.ascontiguousarray(number)
    if kind == "q ± 60% of min(q, 1 - q)":
        return rate + 0.6 * np.minimum(rate, 1 - rate) * rng.uniform(-1, 1, p.shape), None
    outcome = (rng.random(p.shape) < rate).astype(float)
    if kind == "0/1":
        return outcome, None
    if kind == "a third 0/1, others exact":
        return np.where(rng.random(p.shape) < 1 / 3, outcome, rate), None
    if kind == "half 0/1, half Beta(5q)":
        return np.where(rng.random(p.shape) < 1 / 2, outcome, beta(rng, rate, 5.0)), None
    precision = {"Beta(10q)": 10.0, "Beta(2.5q)": 2.5, "Beta(800q)": 800.0}.get(kind)
    return beta(rng, rate, np.where(p < 0.2, 40.0, 6.0) if precision is None else precision), None


def binned_pvalues(y: Any, p: Any, votes: Any, bins: Bins) -> list[float]:
    """Return the p-value of `calibration_test` of each line."""
    cell = np.repeat(np.arange(len(y)), y.shape[1])
    m = None if votes is None else votes.ravel()
    found = totals(p.ravel(), y.ravel(), None, m, bins, cell=cell, cells=len(y))
    assert found is not None, "these are probabilities"  # noqa: S101
    sums = as_sums(np.ascontiguousarray(np.moveaxis(found, 1, 0)))
    tables = (Reliability(bins, Sums(*each)) for each in zip(*sums, strict=True))
    return [calibration_test(table).pvalue for table in tables]


def simulate(prediction: str, kind: str, curve: str, n: int, data_sets: int) -> list[Any]:
    places = (list(PREDICTIONS), list(LABELS), list(CURVES))
    each = zip(places, (prediction, kind, curve), strict=True)
    rng = np.random.default_rng([SEED, n, *(names.index(name) for names, name in each)])
    bins = (15,) if prediction == "one value" else BINS
    found: dict[tuple[str, Any], list[float]] = {("calibration_test", b): [] for b in bins}
    found |= {("ecce_mad", ""): [], ("ecce_range", ""): []}
    for start in range(0, data_sets, ROWS_AT_ONCE // n):
        shape = (min(ROWS_AT_ONCE // n, data_sets - start), n)
        p = PREDICTIONS[prediction](rng, shape)
        y, votes = labels(kind, p, CURVES[curve](p), rng)
        for b in bins:
            found["calibration_test", b] += binned_pvalues(y, p, votes, Bins.uniform(b))
        for k in range(min(len(y), CUMULATIVE - start)):
            m = None if votes is None else votes[k]
            found["ecce_mad", ""].append(ecce_mad(y[k], p[k], n_votes=m).pvalue)
            found["ecce_range", ""].append(ecce_range(y[k], p[k], n_votes=m).pvalue)
    rows = []
    for (test, b), pvalues in found.items():
        often = (round(float((np.array(pvalues) < level).mean()), 4) for level in LEVELS)
        rows.append({
            "test": test, "label": kind, "prediction": prediction, "curve": curve, "n": n,
            "bins": b, **dict(zip(("at_5%", "at_0.0001"), often, strict=True)),
            "data_sets": len(pvalues),
        })  # fmt: skip
    return rows


def report(console: Console, rows: list[Any]) -> None:
    """Print the size of each test by kind of label, and the mean power."""
    for test, kind in itertools.product(("calibration_test", "ecce_mad", "ecce_range"), LABELS):
        some = [row for row in rows if (row["test"], row["label"]) == (test, kind)]
        null = [row for row in some if row["curve"] == "calibrated"]
        size, far = (np.array([row[f"at_{level}"] for row in null]) for level in ("5%", "0.0001"))
        power = {
            curve: np.mean([row["at_5%"] for row in some if row["curve"] == curve])
            for curve in CURVES
            if curve != "calibrated"
        }
        console.print(
            f"{test}, {kind}: {size.size} cells, {size.min():.3f} to {size.max():.3f} / "
            f"{size.mean():.3f}, above .06 {(size > 0.06).sum()}, below .03 "
            f"{(size < 0.03).sum()}; at 1e-4 up to {far.max():.4f}; power "
            + ", ".join(f"{curve} {x:.3f}" for curve, x in power.items()),
            soft_wrap=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--output", type=Path, default=DOCS / "test_level.csv")
    options = parser.parse_args()
    cells: list[Any] = list(itertools.product(PREDICTIONS, LABELS, CURVES, SIZES))
    rows: list[Any] = []
    for prediction, kind, curve, n in track(cells, "cells", console=Console(stderr=True)):
        if curve == "calibrated":
            rows += simulate(prediction, kind, curve, n, options.replications)
        elif n == SIZES[1]:
            rows += simulate(prediction, kind, curve, n, min(POWER, options.replications))
    write_csv(options.output, rows)
    report(Console(), rows)


if __name__ == "__main__":
    main()
