"""Simulate intervals, tests, and comparisons with groups and weights.

    .venv/bin/python -m benchmarks.grouped [--sets 1000]

Writes docs/grouped.csv. Patients have several rows each with a common effect u, or rows are
independent. Weights are all 1, or vary by a factor of ten and more. Labels are drawn from
Phi(sqrt(2) q + u) with u standard normal, so that Phi(q) is calibrated and Phi(1.5 q) is not. The
file has the coverage of `smece_interval` for the second model and of `compare` for its difference
from the first, with groups and weights, and as if all rows were independent. It also has how often
the test rejects the first model. It takes 15 minutes.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.progress import track
from scipy.special import ndtr, ndtri

import softcal as sc
from benchmarks.paired import write_csv
from softcal.inference.comparison import DifferenceIntervals
from softcal.table.build import tables_of_models

if TYPE_CHECKING:
    from softcal.table.joint import JointTable

DOCS = Path(__file__).parent.parent / "docs"
LABELS = {"hard": 0, "votes of 5": 5, "exact soft": 0}
PATIENTS = (
    (1000, "one row"),
    (50, "6 rows"),
    (150, "6 rows"),
    (150, "1 to 20 rows"),
    (500, "6 rows"),
)
BINS = (5, 15)
SHARP = 1.5


def sizes(patients: int, rows: str, rng: np.random.Generator) -> Any:
    if rows == "1 to 20 rows":
        return rng.integers(1, 21, patients)
    return np.full(patients, 6 if rows == "6 rows" else 1)


def drawn(patients: int, rows: str, label: str, weighted: str, rng: np.random.Generator) -> Any:
    """Return labels, calibrated q, patients, and weights of one data set."""
    patient = np.repeat(np.arange(patients), sizes(patients, rows, rng))
    both = rng.standard_normal((2, patients))[:, patient]
    q = 0.5 * both[0] + np.sqrt(0.75) * rng.standard_normal(patient.size)
    true = ndtr(np.sqrt(2) * q + both[1])
    y = true
    if label != "exact soft":
        votes = LABELS[label] or 1
        y = rng.binomial(votes, true) / votes
    weight = np.exp(rng.standard_normal(patient.size)) if weighted == "weights" else None
    return y, q, patient, weight


def truth(bins: int) -> float:
    calibrated = (np.arange(60_000) + 0.5) / 60_000
    return sc.smece(calibrated, ndtr(SHARP * ndtri(calibrated)), bins=bins)


def judged(joint: JointTable, theta: float) -> list[float]:
    """Return whether the interval, the comparison, and the test are right, and two widths."""
    one = sc.smece_interval(joint.a)
    family = DifferenceIntervals(
        joint.a.sums, joint.b.sums, joint.cross, np.asarray(joint.differing),
        (joint.a.clusters, joint.b.clusters),
    )  # fmt: skip
    low, high = (float(x) for x in family.limits(0.05))
    rejected = sc.calibration_test(joint.b).pvalue < 0.05
    return [one.low <= theta <= one.high, one.high - one.low, low <= theta <= high, high - low,
            rejected]  # fmt: skip


def simulate(
    patients: int, rows: str, label: str, weighted: str, sets: int
) -> list[dict[str, Any]]:
    rng = np.random.default_rng([patients, len(rows), list(LABELS).index(label), len(weighted)])
    found: dict[int, list[Any]] = {bins: [] for bins in BINS}
    theta = {bins: truth(bins) for bins in BINS}
    for _ in range(sets):
        y, q, patient, weight = drawn(patients, rows, label, weighted, rng)
        options: dict[str, Any] = {"sample_weight": weight, "n_votes": LABELS[label] or None}
        for bins in BINS:
            models = {"a": ndtr(SHARP * q), "b": ndtr(q)}
            plain = tables_of_models(y, models, bins=bins, **options).pair("a", "b")
            grouped = plain
            if rows != "one row":
                options_ = options | {"groups": patient}
                grouped = tables_of_models(y, models, bins=bins, **options_).pair("a", "b")
            found[bins].append([judged(table, theta[bins]) for table in (grouped, plain)])
    columns = ("coverage", "width", "compare_coverage", "compare_width", "rejected")
    out = []
    for bins in BINS:
        ours, plain_means = np.mean(found[bins], axis=0)
        row: dict[str, Any] = {"patients": patients, "rows": rows, "labels": label,
                               "weights": weighted, "bins": bins, "sets": sets}  # fmt: skip
        row |= {name: round(float(x), 5) for name, x in zip(columns, ours, strict=True)}
        row |= {f"ungrouped_{name}": round(float(x), 5)
                for name, x in zip(columns, plain_means, strict=True)}  # fmt: skip
        out.append(row)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=1000)
    sets = parser.parse_args().sets
    cells = list(itertools.product(PATIENTS, LABELS, ("no weights", "weights")))
    rows: list[dict[str, Any]] = []
    for (patients, size), label, weighted in track(cells, "cells", console=Console(stderr=True)):
        rows += simulate(patients, size, label, weighted, sets)
        print(*rows[-1].values(), flush=True)
    write_csv(DOCS / "grouped.csv", rows)


if __name__ == "__main__":
    main()
