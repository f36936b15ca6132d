"""Simulate intervals, tests, and comparisons with few and many groups.

    .venv/bin/python -m benchmarks.grouped [--sets 200]

Writes docs/grouped.csv. Groups have 40 rows each, or log-normal numbers of rows with a mean of 40,
or log-normal weights. Labels are drawn from Phi(a q + s u + r v), with u standard normal per group,
v standard normal per row, and a such that Phi(q) is calibrated and Phi(1.5 q) is not. A gap near
p = 1/2 then has a standard deviation between groups of about 0.4 s. The file has coverage and mean
width of `smece_interval` for both models, with groups and as if all rows were independent, and of
the percentile bootstrap of groups. For every fifth data set, the file also has the coverage of
`compare`, and how often the test rejects the calibrated model. It takes 10 minutes on one idle
core.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from scipy.special import ndtr, ndtri

import softcal as sc
from benchmarks.paired import write_csv
from softcal.inference.comparison import DifferenceIntervals
from softcal.table.build import tables_of_models

DOCS = Path(__file__).parent.parent / "docs"
GROUPS = (8, 12, 20, 40, 120)
SIZES = ("equal", "unequal", "weights")
LABELS = ("hard", "soft")
SPREAD = (0.0, 0.125, 0.25)  # s
OF_ROWS = 0.3  # r
BINS = (5, 10)
SHARP = 1.5
RESAMPLES = 200
COLUMNS = (
    "coverage", "width", "bootstrap_coverage", "bootstrap_width", "calibrated_coverage",
    "calibrated_width", "calibrated_bootstrap_width", "ungrouped_coverage",
)  # fmt: skip
MORE = ("compare_coverage", "compare_width", "rejected", "ungrouped_rejected")
EVERY = 5  # data sets, of which one has the columns of `MORE`


def drawn(groups: int, size: str, label: str, spread: float, rng: np.random.Generator) -> Any:
    """Return labels, calibrated q, groups, and weights of one data set."""
    rows = np.full(groups, 40)
    if size == "unequal":
        rows = np.maximum(1, 40 * np.exp(rng.standard_normal(groups) - 0.5)).astype(int)
    group = np.repeat(np.arange(groups), rows)
    of_group = rng.standard_normal((2, groups))[:, group]
    q = 0.5 * of_group[0] + np.sqrt(0.75) * rng.standard_normal(group.size)
    noise = spread * of_group[1] + OF_ROWS * rng.standard_normal(group.size)
    true = ndtr(np.sqrt(1 + spread**2 + OF_ROWS**2) * q + noise)
    y = (rng.random(true.size) < true).astype(float) if label == "hard" else true
    return y, q, group, np.exp(rng.standard_normal(y.size)) if size == "weights" else None


def truth(bins: int) -> float:
    calibrated = (np.arange(60_000) + 0.5) / 60_000
    return sc.smece(calibrated, ndtr(SHARP * ndtri(calibrated)), bins=bins)


def bootstrap(rel: sc.Reliability, rng: np.random.Generator) -> tuple[float, float]:
    """Return the percentile interval of SMECE over resampled groups."""
    assert rel.clusters is not None and rel.clusters.sums is not None  # noqa: S101, PT018
    own = rel.clusters.sums
    sums = np.zeros((2, rel.clusters.count, rel.count.size))
    sums[:, own.owner, own.place] = own.values
    times = rng.multinomial(len(sums[0]), np.full(len(sums[0]), 1 / len(sums[0])), RESAMPLES)
    drawn_again = np.abs(times @ sums[0]).sum(axis=1) / (times @ sums[1].sum(axis=1))
    low, high = np.quantile(drawn_again, [0.025, 0.975])
    return float(low), float(high)


def judged(data: Any, bins: int, theta: float, rng: np.random.Generator) -> list[float]:
    """Return whether each interval is right, and the widths, in the order of `COLUMNS`."""
    y, q, group, weight = data
    options: dict[str, Any] = {"bins": bins, "sample_weight": weight}
    rel = sc.reliability(y, ndtr(SHARP * q), groups=group, **options)
    of_calibrated = sc.reliability(y, ndtr(q), groups=group, **options)
    one, calibrated = sc.smece_interval(rel), sc.smece_interval(of_calibrated)
    low, high = bootstrap(rel, rng)
    resampled = bootstrap(of_calibrated, rng)
    alone = sc.smece_interval(y, ndtr(SHARP * q), **options)
    return [
        one.low <= theta <= one.high, one.high - one.low, low <= theta <= high, high - low,
        calibrated.low <= 0, calibrated.high - calibrated.low, resampled[1] - resampled[0],
        alone.low <= theta <= alone.high,
    ]  # fmt: skip


def compared(data: Any, bins: int, theta: float) -> list[float]:
    """Return whether the comparison and the tests are right, in the order of `MORE`."""
    y, q, group, weight = data
    models = {"a": ndtr(SHARP * q), "b": ndtr(q)}
    joint = tables_of_models(y, models, bins=bins, sample_weight=weight, groups=group).pair(
        "a", "b"
    )
    family = DifferenceIntervals(
        joint.a.sums, joint.b.sums, joint.cross, np.asarray(joint.differing),
        (joint.a.clusters, joint.b.clusters),
    )  # fmt: skip
    low, high = (float(x) for x in family.limits(0.05))
    alone = sc.calibration_test(y, models["b"], bins=bins, sample_weight=weight)
    return [low <= theta <= high, high - low, sc.calibration_test(joint.b).pvalue < 0.05,
            alone.pvalue < 0.05]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=200)
    sets = parser.parse_args().sets
    theta = {bins: truth(bins) for bins in BINS}
    cells = list(itertools.product(GROUPS, SIZES, LABELS, SPREAD))
    rows: list[dict[str, Any]] = []
    for number, cell in enumerate(track(cells, "cells", console=Console(stderr=True))):
        rng = np.random.default_rng([27, number])
        found: dict[int, list[Any]] = {bins: [] for bins in BINS}
        more: dict[int, list[Any]] = {bins: [] for bins in BINS}
        for k in range(sets):
            data = drawn(*cell, rng)
            for bins in BINS:
                found[bins].append(judged(data, bins, theta[bins], rng))
                if k % EVERY == 0:
                    more[bins].append(compared(data, bins, theta[bins]))
        for bins in BINS:
            about = zip(("groups", "sizes", "labels", "spread"), cell, strict=True)
            means = np.append(np.mean(found[bins], axis=0), np.mean(more[bins], axis=0))
            named = dict(zip((*COLUMNS, *MORE), means.round(5).tolist(), strict=True))
            rows.append({**dict(about), "bins": bins, "sets": sets, **named})
            print(*rows[-1].values(), flush=True)
    write_csv(DOCS / "grouped.csv", rows)


if __name__ == "__main__":
    main()
