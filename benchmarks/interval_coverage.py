"""Simulate coverage and width of the interval, and size and power of the test.

    .venv/bin/python -m benchmarks.interval_coverage [--replications 300] [--quick]

Writes docs/coverage.csv (a row per cell; `make docs` draws it) and docs/coverage_bootstrap.csv (the
bootstraps on some of them). A cell is a kind of label, a distribution of predictions, a kind of
miscalibration, a sample size, and a number of bins. The kinds of label and numbers of bins
share the predictions, so cells are not independent of each other. All distributions are exact:
predictions by the inverse distribution function, votes one by one.

`oracle` is the width divided by 3.92 standard deviations of the plug-in estimate. `split` is a
simple rival: signs of the gaps from one random half of the rows, sizes from the other half.
"""

from __future__ import annotations

import argparse
import itertools
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from scipy.special import expit, logit
from scipy.stats import norm

from benchmarks.paired import write_csv
from softcal import Bins, Reliability, calibration_test
from softcal.inference.intervals import (
    MEAN_AT_0,
    events_of,
    highest_plausible,
    interval_limits,
    residual_variance,
)
from softcal.inference.smece import agreeing_low
from softcal.table.kernel import Sums

DOCS = Path(__file__).parent.parent / "docs"
BINS = (5, 15, 50)
FINE = 150  # which 5, 15 and 50 all divide
LEVEL = 0.95
SIZES = (100, 1000)
SEED = 20_261_118
TABLES_AT_ONCE = 500
# Quantile functions of Beta(1, 1), Beta(1/2, 1/2) and Beta(1, 15).
PREDICTIONS = {
    "uniform": lambda u: u,
    "U-shaped": lambda u: np.sin(u * (np.pi / 2)) ** 2,
    "rare": lambda u: 1 - (1 - u) ** (1 / 15),
}
LABELS = {  # how many votes each is the share of; `add_labels` draws them in this order
    "hard": 1, "votes of 3": 3, "votes of 5": 5, "mixed votes of 5": 5, "fixed panel of 5": 5,
    "noisy soft": 0, "exact soft": 0,
}  # fmt: skip


class Cell(NamedTuple):
    """One setting, except for the kind of label and the number of bins, which share predictions."""

    prediction: str
    curve: str
    n: int


def calibrated(p: Any, _n: int) -> Any:
    return p


def shifted(p: Any, _n: int) -> Any:
    return np.clip(p - 0.05, 0, 1)


def overconfident(p: Any, _n: int) -> Any:
    return expit(0.7 * logit(np.clip(p, 1e-12, 1 - 1e-12)))


def half_calibrated(p: Any, n: int) -> Any:
    return np.where(p < 0.5, p, overconfident(p, n))


def local(p: Any, n: int) -> Any:
    """Return alternating gaps of about one standard error of a bin of 15, the hardest case."""
    size = np.sqrt(p * (1 - p) * 15 / n)
    return np.clip(p + np.where(np.floor(p * 15) % 2 == 0, size, -size), 0, 1)


CURVES = {f.__name__: f for f in (calibrated, shifted, overconfident, half_calibrated, local)}


def add_labels(
    rng: np.random.Generator, p: Any, rate: Any, place: Any, shared: Any, own: Any
) -> None:
    """Draw labels of all kinds for each row, and add up the sums of the table."""
    safe = np.clip(rate, 1e-9, 1 - 1e-9)
    noisy = rng.beta(6 * safe, 6 * (1 - safe))
    shares = [rng.binomial(votes, rate) / votes for votes in (1, 3, 5)]
    # The votes of a fixed panel vary less than those of five random raters.
    panel = np.floor(5 * rate + rng.random(p.size)) / 5
    labels = (*shares, rng.binomial(5, noisy) / 5, panel, noisy, rate)
    first = rng.random(p.size) < 0.5
    for k, term in enumerate((np.ones(p.size), p * (1 - p))):
        shared[:, k] = np.bincount(place, term, FINE)
    for y, sums in zip(labels, own, strict=True):
        single = (y == 0) | (y == 1)
        terms = (
            y, p - y, (p - y) ** 2, y * (1 - y), p * (1 - p) * single, (p - y) ** 2 * single,
            (p - y) * first,
        )  # fmt: skip
        for k, term in enumerate(terms):
            sums[:, k] = np.bincount(place, term, FINE)


def draw_labels(kind: str, rate: Any, rng: np.random.Generator) -> Any:
    """Draw labels of one kind, as `add_labels` does, for the bootstrap."""
    if kind == "exact soft":
        return rate
    return rng.binomial(LABELS[kind], rate) / LABELS[kind]


def tables(shared: Any, own: Any, votes: int, bins: int) -> Sums:
    """Return the sums of many data sets, on the requested number of bins."""
    starts = np.arange(0, FINE, FINE // bins)
    count, prob_var = np.moveaxis(np.add.reduceat(shared, starts, axis=1), -1, 0)
    label, residual, square, label_var, *outcome = np.moveaxis(
        np.add.reduceat(own[..., :6], starts, axis=1), -1, 0
    )
    zero = np.zeros_like(count)
    hardened = dict.fromkeys(("hard_residual", "hard_residual_sq", "hard_residual_var"), zero)
    if votes != 1:  # labels of 0 and 1 are outcomes only where their votes are not given
        outcome = [zero, zero] if votes else outcome
    hardened |= dict(zip(("outcome_prob_var", "outcome_residual_var"), outcome, strict=True))
    return Sums(
        count=count.astype(np.int64), weight=count, weight_sq=count, label=label,
        residual=residual, residual_sq=square, residual_var=square, prob_var=prob_var,
        label_var=label_var, votes=count * votes, repeated=count * (votes > 1),
        vote_floor=prob_var / votes if votes > 1 else zero, vote_noise=zero, **hardened,
    )  # fmt: skip


def truth(cell: Cell) -> dict[int, float]:
    """Return the SMECE of unlimited data at each number of bins, by the midpoint rule."""
    p = PREDICTIONS[cell.prediction]((np.arange(2_000_000) + 0.5) / 2_000_000)
    gap = p - CURVES[cell.curve](p, cell.n)
    fine = np.bincount(Bins.uniform(FINE).locate(p), gap, FINE) / p.size
    return {k: float(np.abs(fine.reshape(k, -1).sum(axis=1)).sum()) for k in BINS}


def simulate(cell: Cell, replications: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed_of(cell))
    theta = truth(cell)
    bins = Bins.uniform(FINE)
    found: dict[tuple[str, int], list[Any]] = {both: [] for both in itertools.product(LABELS, BINS)}
    for start in range(0, replications, TABLES_AT_ONCE):
        sets = min(TABLES_AT_ONCE, replications - start)
        shared, own = np.zeros((sets, FINE, 2)), np.zeros((sets, len(LABELS), FINE, 7))
        for k in range(sets):
            p = PREDICTIONS[cell.prediction](rng.random(cell.n))
            add_labels(rng, p, CURVES[cell.curve](p, cell.n), bins.locate(p), shared[k], own[k])
        for kind, (label, votes) in enumerate(LABELS.items()):
            for k in BINS:
                sums = tables(shared, own[:, kind], votes, k)
                first = own[:, kind, :, 6].reshape(sets, k, -1).sum(axis=2)
                found[label, k].append(intervals(sums, first, cell.n))
    return [
        summary(label, cell, k, theta[k], np.concatenate(parts, axis=1))
        for (label, k), parts in found.items()
    ]


def intervals(sums: Sums, first: Any, n: int) -> Any:
    """Return our intervals, the half-width of the plug-in, the p-value, and the split interval."""
    value = np.abs(sums.residual).sum(axis=1) / n
    debiased, low, high = interval_limits(sums, LEVEL)
    _, low_80, high_80 = interval_limits(sums, 0.8)
    spread = (sums.residual_sq.sum(axis=1) / n - value**2) / n
    half = norm.ppf(0.5 + LEVEL / 2) * np.sqrt(np.maximum(spread, 0))
    each = Bins.uniform(sums.count.shape[1])
    tables = (Reliability(each, Sums(*table)) for table in zip(*sums, strict=True))
    pvalues = [calibration_test(table).pvalue for table in tables]
    lows = [
        [agreeing_low(*each, 1 - level) for each in zip(limit, value, pvalues, strict=True)]
        for limit, level in ((low, LEVEL), (low_80, 0.8))
    ]
    low, low_80 = (np.minimum(one, top) for one, top in zip(lows, (high, high_80), strict=True))
    split = split_sign(sums, first, n)
    return np.stack([value, debiased, low, high, half, pvalues, low_80, high_80, *split])


def split_sign(sums: Sums, first: Any, n: int) -> tuple[Any, Any]:
    """Return the interval by signs of one half of the rows, and sizes of the other."""
    z = norm.ppf(0.5 + LEVEL / 2)
    second = sums.residual - first
    error = np.sqrt(residual_variance(sums)) / n
    total, square = error.sum(axis=1), np.sqrt((error**2).sum(axis=1))
    sure = (np.sign(first) * second + np.sign(second) * first).sum(axis=1) / n
    low = sure - z * np.sqrt(1 + 2 / np.pi) * square
    scale = np.where(total > 0, total, 1.0)
    seen = np.maximum(np.abs(sums.residual).sum(axis=1) / n / scale, MEAN_AT_0)
    high = highest_plausible(seen, z * square / scale) * total
    alpha = 1 - LEVEL
    few = np.array([events.most(alpha) for events in events_of(sums)])
    return np.maximum(low, 0), np.maximum(high, np.maximum(few, -np.log(alpha / 2) / n))


def summary(label: str, cell: Cell, bins: int, theta: float, found: Any) -> dict[str, Any]:
    value, debiased, low, high, half, pvalue, low_80, high_80, split_low, split_high = found
    slack = 1e-12
    inside = (low <= theta + slack) & (theta - slack <= high)
    inside_80 = (low_80 <= theta + slack) & (theta - slack <= high_80)
    naive = (value - half <= theta + slack) & (theta - slack <= value + half)
    split = (split_low <= theta + slack) & (theta - slack <= split_high)
    spread = 2 * norm.ppf(0.5 + LEVEL / 2) * value.std()
    oracle = round(float((high - low).mean() / spread), 4) if spread > slack else ""
    return {
        "label": label,
        **cell._asdict(),
        "bins": bins,
        "theta": round(theta, 6),
        "coverage": round(float(inside.mean()), 4),
        "width": round(float((high - low).mean()), 6),
        "oracle": oracle,
        "coverage_80": round(float(inside_80.mean()), 4),
        "missed_low": round(float((low > theta + slack).mean()), 4),
        "missed_high": round(float((high < theta - slack).mean()), 4),
        "naive_coverage": round(float(naive.mean()), 4),
        "naive_width": round(float(2 * half.mean()), 6),
        "split_coverage": round(float(split.mean()), 4),
        "split_width": round(float((split_high - split_low).mean()), 6),
        "bias_plug_in": round(float(value.mean() - theta), 6),
        "bias_debiased": round(float(debiased.mean() - theta), 6),
        "rejected": round(float((pvalue < 1 - LEVEL).mean()), 4),
    }


def seed_of(cell: Cell) -> list[int]:
    """Return a seed that is the same in every process, unlike Python's hash."""
    return [SEED, list(PREDICTIONS).index(cell.prediction), list(CURVES).index(cell.curve), cell.n]


def bootstrap(
    label: str, cell: Cell, bins: int, data_sets: int = 200, resamples: int = 400
) -> dict[str, Any]:
    """Return the coverage of the percentile and BCa bootstrap on the same kind of data."""
    rng = np.random.default_rng([list(LABELS).index(label), *seed_of(cell)])
    theta = truth(cell)[bins]
    edges = Bins.uniform(bins)
    tail = (1 - LEVEL) / 2
    hits, widths = np.zeros(2), np.zeros(2)
    for _ in range(data_sets):
        p = PREDICTIONS[cell.prediction](rng.random(cell.n))
        d = p - draw_labels(label, CURVES[cell.curve](p, cell.n), rng)
        place = edges.locate(p)
        value = np.abs(np.bincount(place, d, bins)).sum() / cell.n
        picks = rng.integers(0, cell.n, (resamples, cell.n))
        flat = (place[picks] + np.arange(resamples)[:, None] * bins).ravel()
        again = np.abs(np.bincount(flat, d[picks].ravel(), resamples * bins))
        again = again.reshape(resamples, bins).sum(axis=1) / cell.n
        quantiles = np.array([[tail, 1 - tail], bca(again, value, place, d, bins, tail)])
        for kind, (low, high) in enumerate(np.quantile(again, quantiles)):
            hits[kind] += low - 1e-12 <= theta <= high + 1e-12
            widths[kind] += high - low
    hits, widths = hits / data_sets, widths / data_sets
    return {
        "label": label, **cell._asdict(), "bins": bins, "theta": round(theta, 6),
        "percentile_coverage": round(hits[0], 3), "percentile_width": round(widths[0], 6),
        "bca_coverage": round(hits[1], 3), "bca_width": round(widths[1], 6),
    }  # fmt: skip


def bca(again: Any, value: float, place: Any, d: Any, bins: int, tail: float) -> list[float]:
    """Return the quantiles of BCa, with bias and acceleration from the jackknife."""
    n = d.size
    sums = np.bincount(place, d, bins)
    without = sums[place] - d
    jack = (np.abs(sums).sum() - np.abs(sums[place]) + np.abs(without)) / (n - 1)
    centred = jack.mean() - jack
    scale = (centred**2).sum() ** 1.5
    acceleration = (centred**3).sum() / (6 * scale) if scale > 0 else 0.0
    share = np.clip((again < value).mean(), 1 / again.size, 1 - 1 / again.size)
    bias = norm.ppf(share)
    shifted_ = bias + norm.ppf([tail, 1 - tail])
    return list(norm.cdf(bias + shifted_ / (1 - acceleration * shifted_)))


def report(console: Console, rows: list[dict[str, Any]]) -> None:
    table_ = Table(title="Coverage of the 95% interval", title_justify="left")
    for name in (
        "labels",
        "cells",
        "least",
        "mean",
        "below .945",
        "below .93",
        "plug-in below .93",
    ):
        table_.add_column(name, justify="right")
    for label in (*LABELS, "all"):
        chosen = [row for row in rows if label in (row["label"], "all")]
        cover = np.array([row["coverage"] for row in chosen])
        naive = np.array([row["naive_coverage"] for row in chosen])
        table_.add_row(
            label, f"{len(chosen)}", f"{cover.min():.3f}", f"{cover.mean():.3f}",
            f"{(cover < 0.945).sum()}", f"{(cover < 0.93).sum()}", f"{(naive < 0.93).sum()}",
        )  # fmt: skip
    console.print(table_)
    sizes = [row for row in rows if row["curve"] == "calibrated" and row["label"] != "exact soft"]
    large = np.array([row["rejected"] for row in sizes if row["n"] >= 300])
    console.print(f"Size of the 5% test for n >= 300: {large.min():.3f} to {large.max():.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=300)
    parser.add_argument("--quick", action="store_true", help="n up to 1000, nothing written")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    sizes = [n for n in SIZES if n <= 1000 or not options.quick]
    cells = [Cell(*x) for x in itertools.product(PREDICTIONS, CURVES, sizes)]
    some = [
        (label, Cell("U-shaped", curve, n), 15)
        for label in ("hard", "votes of 5", "exact soft")
        for curve in ("calibrated", "shifted", "overconfident", "half_calibrated")
        for n in (1000,)
    ]
    console = Console()
    rows: list[dict[str, Any]] = []
    boots: list[dict[str, Any]] = []
    work = sum(max(cell.n, 1000) for cell in cells)
    with Progress(console=console) as bar, ProcessPoolExecutor(options.processes) as pool:
        task = bar.add_task("cells", total=work)
        largest_first = sorted(cells, key=lambda cell: -cell.n)
        jobs = {pool.submit(simulate, cell, options.replications): cell for cell in largest_first}
        for job, cell in jobs.items():
            rows += job.result()
            bar.advance(task, max(cell.n, 1000))
        if not options.quick:
            task = bar.add_task("bootstrap", total=len(some))
            for job_ in [pool.submit(bootstrap, *each) for each in some]:
                boots.append(job_.result())
                bar.advance(task)
    order = {both: i for i, both in enumerate(itertools.product(LABELS, cells, BINS))}
    rows.sort(
        key=lambda row: order[row["label"], Cell(*(row[f] for f in Cell._fields)), row["bins"]]
    )
    report(console, rows)
    if not options.quick:
        write_csv(DOCS / "coverage.csv", rows)
        write_csv(DOCS / "coverage_bootstrap.csv", boots)
    low = [row for row in rows if row["coverage"] < 0.945]
    for row in sorted(low, key=lambda row: row["coverage"])[:25]:
        console.print(*(f"{row[k]}" for k in ("label", "prediction", "curve", "n", "bins", "theta",
                                             "coverage", "missed_low", "missed_high")))  # fmt: skip


if __name__ == "__main__":
    main()
