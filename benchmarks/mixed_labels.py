"""Measure interval and test where predictions are rare and labels of several kinds are mixed.

    .venv/bin/python -m benchmarks.mixed_labels [--replications 400] [--output docs/mixed.csv]

Writes docs/mixed.csv, one row per cell: coverage and mean width of the 95% interval, and how often
the test rejects at 5%. A cell is a distribution of predictions, a kind of label, a kind of
miscalibration, a sample size, and a number of bins. Kinds of label and numbers of bins share the
predictions of a data set, so cells are not independent of each other. One process. The file is
written again after every few cells.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from scipy.special import betaincinv, expit, logit, ndtri

from benchmarks.paired import write_csv
from softcal import Bins, Reliability, smece_interval
from softcal.table.kernel import Sums, as_sums, totals

DOCS = Path(__file__).parent.parent / "docs"
LEVEL = 0.95
SIZES = (100, 200, 500, 1000, 5000)
BINS = (10, 30)
ROWS_AT_ONCE = 1_000_000

VALUES = np.array(
    [0.002, 0.01, 0.02, 0.05, 0.2]
)  # discrete predictions, and how often each is made
SHARES = np.array([0.3, 0.3, 0.2, 0.15, 0.05])


def clustered(u: Any) -> Any:
    """Return predictions in three narrow clusters, about 0.005, 0.03, and 0.5."""
    center = np.select([u < 0.6, u < 0.95], [logit(0.005), logit(0.03)], 0.0)
    inside = np.select([u < 0.6, u < 0.95], [u / 0.6, (u - 0.6) / 0.35], (u - 0.95) / 0.05)
    return expit(center + 0.15 * ndtri(np.clip(inside, 1e-9, 1 - 1e-9)))


# Quantile functions.
PREDICTIONS: dict[str, Any] = {
    "Beta(.5, 30)": lambda u: betaincinv(0.5, 30, u),
    "Beta(.6, 40)": lambda u: betaincinv(0.6, 40, u),
    "Beta(.5, 20)": lambda u: betaincinv(0.5, 20, u),
    "clustered": clustered,
    "discrete": lambda u: VALUES[np.searchsorted(np.cumsum(SHARES)[:-1], u, side="right")],
    "uniform": lambda u: u,
}
CURVES = {
    "calibrated": lambda p: p,
    "half": lambda p: p / 2,
    "double": lambda p: np.minimum(2 * p, (1 + p) / 2),
    "over-confident": lambda p: expit(0.7 * logit(np.clip(p, 1e-12, 1 - 1e-12))),
}
LABELS = (
    "outcomes", "half outcomes, half exact", "a tenth outcomes, others exact",
    "1 to 8 votes", "1 to 8 votes, number not given", "skewed soft",
)  # fmt: skip


def labels(kind: str, rate: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Draw labels of a kind; return them and the number of votes, where it is given."""
    if kind == "skewed soft":
        safe = np.clip(rate, 1e-9, 1 - 1e-9)
        return rng.beta(3 * safe, 3 * (1 - safe)), None
    if kind.startswith("1 to 8"):
        votes = rng.integers(1, 9, rate.shape)
        return rng.binomial(votes, rate) / votes, votes if kind == "1 to 8 votes" else None
    share = {"outcomes": 1.0, "half outcomes, half exact": 0.5}.get(kind, 0.1)
    single = rng.random(rate.shape) < share
    return np.where(single, rng.random(rate.shape) < rate, rate), None


def truth(prediction: str, curve: str, bins: int) -> float:
    """Return SMECE of unlimited data, by the midpoint rule in quantiles."""
    p = predicted(prediction, (np.arange(400_000) + 0.5) / 400_000)
    gap = p - CURVES[curve](p)
    return float(np.abs(np.bincount(Bins.uniform(bins).locate(p), gap)).sum() / p.size)


_GRID: dict[str, Any] = {}


def predicted(prediction: str, u: Any) -> Any:
    """Return predictions at these quantiles; betaincinv only for a grid, interpolated on logits."""
    if not prediction.startswith("Beta"):
        return PREDICTIONS[prediction](u)
    if prediction not in _GRID:
        at = np.linspace(-16, 12, 20_001)
        _GRID[prediction] = at, logit(PREDICTIONS[prediction](expit(at)))
    at, of = _GRID[prediction]
    return expit(np.interp(logit(np.clip(u, 1e-7, 1 - 1e-6)), at, of))


def many_tables(y: Any, p: Any, votes: Any) -> dict[int, Sums]:
    """Return the sums of one table per line, for each number of bins."""
    cell = np.repeat(np.arange(len(y)), y.shape[1])
    m = None if votes is None else votes.ravel()
    fine = max(BINS)
    found = totals(p.ravel(), y.ravel(), None, m, Bins.uniform(fine), cell=cell, cells=len(y))
    assert found is not None, "these are probabilities"  # noqa: S101
    lines = np.moveaxis(found, 1, 0)  # sum, table, bin
    return {
        bins: as_sums(
            np.ascontiguousarray(lines.reshape(*lines.shape[:2], bins, fine // bins).sum(axis=-1))
        )
        for bins in BINS
    }


def judged(sums: Sums, theta: float) -> Any:
    """Return one line per number: both kinds of miss, width, and whether the test rejects."""
    bins = Bins.uniform(sums.count.shape[1])
    tables = (Reliability(bins, Sums(*each)) for each in zip(*sums, strict=True))
    found = [smece_interval(table, level=LEVEL) for table in tables]
    low, high, pvalue = (np.array([getattr(x, name) for x in found])
                         for name in ("low", "high", "pvalue"))  # fmt: skip
    return np.stack([low > theta + 1e-12, high < theta - 1e-12, high - low, pvalue < 1 - LEVEL])


def simulate(prediction: str, curve: str, n: int, replications: int) -> list[dict[str, Any]]:
    names = (list(PREDICTIONS), list(CURVES))
    rng = np.random.default_rng([27, names[0].index(prediction), names[1].index(curve), n])
    found: dict[tuple[str, int], list[Any]] = {x: [] for x in itertools.product(LABELS, BINS)}
    theta = {bins: truth(prediction, curve, bins) for bins in BINS}
    at_once = max(1, ROWS_AT_ONCE // n)
    for start in range(0, replications, at_once):
        sets = min(at_once, replications - start)
        p = predicted(prediction, rng.random((sets, n)))
        for kind in LABELS:
            y, votes = labels(kind, CURVES[curve](p), rng)
            for bins, sums in many_tables(y, p, votes).items():
                found[kind, bins].append(judged(sums, theta[bins]))
    rows = []
    for (kind, bins), parts in found.items():
        above, below, width, rejected = np.mean(np.concatenate(parts, axis=1), axis=1).tolist()
        rows.append({
            "prediction": prediction, "label": kind, "curve": curve, "n": n, "bins": bins,
            "theta": round(theta[bins], 6), "coverage": round(1 - above - below, 4),
            "missed_low": round(above, 4), "missed_high": round(below, 4),
            "width": round(width, 6), "rejected": round(rejected, 4), "data_sets": replications,
        })  # fmt: skip
    return rows


def report(console: Console, rows: list[dict[str, Any]]) -> None:
    """Print, per kind of label, how many cells are covered and the size of the test."""
    for kind in LABELS:
        some = [row for row in rows if row["label"] == kind]
        coverage = np.array([row["coverage"] for row in some])
        size = np.array([row["rejected"] for row in some if row["curve"] == "calibrated"])
        console.print(
            f"{kind}: {len(some)} cells, coverage {coverage.min():.3f} to {coverage.max():.3f}, "
            f"below .945 in {(coverage < 0.945).sum()}; test rejects {size.min():.3f} to "
            f"{size.max():.3f} of calibrated, above .06 in {(size > 0.06).sum()}, below .03 in "
            f"{(size < 0.03).sum()} of {size.size}",
            soft_wrap=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--output", type=Path, default=DOCS / "mixed.csv")
    options = parser.parse_args()
    console = Console()
    cells: list[Any] = list(itertools.product(PREDICTIONS, CURVES, SIZES))
    rows: list[dict[str, Any]] = []
    for prediction, curve, n in track(cells, "cells", console=Console(stderr=True)):
        rows += simulate(prediction, curve, n, options.replications)
        write_csv(options.output, rows)
    report(console, rows)


if __name__ == "__main__":
    main()
