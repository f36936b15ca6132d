"""How often is the interval right, and the test wrong? Coverage, width, size and power.

    .venv/bin/python benchmarks/coverage.py [--replications 2000] [--quick]

Writes docs/coverage.csv (a row per cell), docs/coverage_bootstrap.csv (the bootstraps on some of
them) and docs/figures/coverage.png. A cell is a kind of label, a distribution of predictions, a
kind of miscalibration, a sample size and a number of bins. n = 100,000 is run for one distribution
and three kinds of label. About a quarter of an hour on two cores.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from scipy.special import expit, logit
from scipy.stats import beta, norm

from softcal import Bins
from softcal.chance import calibration_pvalues
from softcal.files import written_whole
from softcal.inference import interval_limits
from softcal.kernel import Sums

DOCS = Path(__file__).parent.parent / "docs"
BINS = (5, 15, 50)
FINE = 150  # which 5, 15 and 50 all divide
LEVEL = 0.95
SIZES = (100, 300, 1000, 10_000, 100_000)
ROWS_AT_ONCE = 1 << 18
LARGE_LABELS = ("hard", "votes of 5", "exact soft")

PREDICTIONS = {"uniform": (1.0, 1.0), "U-shaped": (0.5, 0.5), "rare": (1.0, 15.0)}
LABELS = {
    "hard": 1, "votes of 3": 3, "votes of 5": 5, "mixed votes of 5": 5, "noisy soft": 0,
    "exact soft": 0,
}  # fmt: skip


class Cell(NamedTuple):
    """One setting but for the number of bins, which share the data."""

    label: str
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
    """Make a gap of about one standard error of a bin of fifteen, alternating: the hardest case."""
    size = np.sqrt(p * (1 - p) * 15 / n)
    return np.clip(p + np.where(np.floor(p * 15) % 2 == 0, size, -size), 0, 1)


CURVES = {f.__name__: f for f in (calibrated, shifted, overconfident, half_calibrated, local)}


def draw_labels(kind: str, rate: Any, rng: np.random.Generator) -> Any:
    if kind == "exact soft":
        return rate
    if kind in {"noisy soft", "mixed votes of 5"}:
        safe = np.clip(rate, 1e-9, 1 - 1e-9)
        rate = rng.beta(6 * safe, 6 * (1 - safe))
        if kind == "noisy soft":
            return rate
    votes = LABELS[kind]
    return rng.binomial(votes, rate) / votes


def table(p: Any, y: Any, votes: int) -> Sums:
    """Give the sums of many data sets (rows of p) on the fine bins."""
    sets, n = p.shape
    place = Bins.uniform(FINE).locate(p.ravel()).reshape(sets, n)
    place += np.arange(sets)[:, None] * FINE
    flat = place.ravel()

    def binned(term: Any) -> Any:
        weights = None if term is None else np.ascontiguousarray(term).ravel()
        return np.bincount(flat, weights, sets * FINE).reshape(sets, FINE).astype(float)

    d = p - y
    count, square, prob_var = binned(None), binned(d * d), binned(p * (1 - p))
    zero = np.zeros_like(count)
    return Sums(
        count=count.astype(np.int64), weight=count, weight_sq=count, label=binned(y),
        residual=binned(d), residual_sq=square, residual_var=square, prob_var=prob_var,
        label_var=binned(y * (1 - y)), votes=zero, repeated=zero,
        vote_floor=prob_var / votes if votes else zero, vote_noise=zero,
    )  # fmt: skip


def coarsen(sums: Sums, bins: int) -> Sums:
    starts = np.arange(0, FINE, FINE // bins)
    return Sums(*(np.add.reduceat(values, starts, axis=-1) for values in sums))


def truth(cell: Cell) -> dict[int, float]:
    """SMECE of unlimited data at each number of bins, by the midpoint rule in quantiles."""
    a, b = PREDICTIONS[cell.prediction]
    p = beta.ppf((np.arange(2_000_000) + 0.5) / 2_000_000, a, b)
    gap = p - CURVES[cell.curve](p, cell.n)
    fine = np.bincount(Bins.uniform(FINE).locate(p), gap, FINE) / p.size
    return {k: float(np.abs(fine.reshape(k, -1).sum(axis=1)).sum()) for k in BINS}


def simulate(cell: Cell, replications: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(abs(hash_of(cell)))
    a, b = PREDICTIONS[cell.prediction]
    at_once = max(1, ROWS_AT_ONCE // cell.n)
    theta = truth(cell)
    found: dict[int, list[Any]] = {k: [] for k in BINS}
    for start in range(0, replications, at_once):
        p = rng.beta(a, b, (min(at_once, replications - start), cell.n))
        y = draw_labels(cell.label, CURVES[cell.curve](p, cell.n), rng)
        fine = table(p, y, LABELS[cell.label])
        for k in BINS:
            sums = coarsen(fine, k)
            value = np.abs(sums.residual).sum(axis=1) / cell.n
            debiased, low, high = interval_limits(sums, LEVEL)
            spread = (sums.residual_sq.sum(axis=1) / cell.n - value**2) / cell.n
            half = norm.ppf(0.5 + LEVEL / 2) * np.sqrt(np.maximum(spread, 0))
            found[k].append(np.stack([value, debiased, low, high, half, calibration_pvalues(sums)]))
    return [summary(cell, k, theta[k], np.concatenate(found[k], axis=1)) for k in BINS]


def summary(cell: Cell, bins: int, theta: float, found: Any) -> dict[str, Any]:
    value, debiased, low, high, half, pvalue = found
    slack = 1e-12
    inside = (low <= theta + slack) & (theta - slack <= high)
    naive = (value - half <= theta + slack) & (theta - slack <= value + half)
    return {
        **cell._asdict(),
        "bins": bins,
        "theta": round(theta, 6),
        "coverage": round(float(inside.mean()), 4),
        "width": round(float((high - low).mean()), 6),
        "missed_low": round(float((low > theta + slack).mean()), 4),
        "missed_high": round(float((high < theta - slack).mean()), 4),
        "naive_coverage": round(float(naive.mean()), 4),
        "naive_width": round(float(2 * half.mean()), 6),
        "bias_plug_in": round(float(value.mean() - theta), 6),
        "bias_debiased": round(float(debiased.mean() - theta), 6),
        "rejected": round(float((pvalue < 1 - LEVEL).mean()), 4),
    }


def hash_of(cell: Cell) -> int:
    """Give a seed that is the same in every process, unlike Python's own hash."""
    return int.from_bytes("/".join(map(str, cell)).encode()[-12:], "big") % (2**31)


def bootstrap(cell: Cell, bins: int, data_sets: int = 200, resamples: int = 400) -> dict[str, Any]:
    """Coverage of the percentile and BCa bootstrap of rows on the same kind of data."""
    rng = np.random.default_rng(hash_of(cell))
    a, b = PREDICTIONS[cell.prediction]
    theta = truth(cell)[bins]
    edges = Bins.uniform(bins)
    tail = (1 - LEVEL) / 2
    hits, widths = np.zeros(2), np.zeros(2)
    for _ in range(data_sets):
        p = rng.beta(a, b, cell.n)
        d = p - draw_labels(cell.label, CURVES[cell.curve](p, cell.n), rng)
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
        **cell._asdict(), "bins": bins, "theta": round(theta, 6),
        "percentile_coverage": round(hits[0], 3), "percentile_width": round(widths[0], 6),
        "bca_coverage": round(hits[1], 3), "bca_width": round(widths[1], 6),
    }  # fmt: skip


def bca(again: Any, value: float, place: Any, d: Any, bins: int, tail: float) -> list[float]:
    """Give the quantiles BCa takes, bias and acceleration from the jackknife."""
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


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    with written_whole(path) as beside, beside.open("w", newline="") as lines:
        writer = csv.DictWriter(lines, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Every cell's coverage, ours and the plain plug-in's, by kind of label."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    rng = np.random.default_rng(0)
    for ax, key, title in (
        (axes[0], "coverage", "softcal"),
        (axes[1], "naive_coverage", "plug-in ± 1.96 standard errors"),
    ):
        for place, label in enumerate(LABELS):
            values = [row[key] for row in rows if row["label"] == label]
            jitter = place + rng.uniform(-0.3, 0.3, len(values))
            ax.plot(jitter, values, "o", markersize=2.5, color="#0072B2", alpha=0.5)
        ax.axhline(LEVEL, color="#D55E00", linewidth=1)
        ax.set_title(title, fontsize=11)
        ax.set_xticks(range(len(LABELS)), [name.replace(" of ", "\nof ") for name in LABELS],
                      fontsize=8)  # fmt: skip
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set(ylabel="share of intervals that contain the truth", ylim=(0, 1.02))
    with written_whole(path) as beside:
        figure.savefig(beside, dpi=110)


def report(console: Console, rows: list[dict[str, Any]]) -> None:
    table_ = Table(title="Coverage of the 95 % interval", title_justify="left")
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
    console.print(f"Size of the 5 % test for n >= 300: {large.min():.3f} to {large.max():.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=2000)
    parser.add_argument("--quick", action="store_true", help="n up to 1000, nothing written")
    options = parser.parse_args()
    sizes = [n for n in SIZES if n <= 1000 or not options.quick]
    cells = [
        cell
        for cell in (Cell(*x) for x in itertools.product(LABELS, PREDICTIONS, CURVES, sizes))
        if cell.n < SIZES[-1] or (cell.prediction == "U-shaped" and cell.label in LARGE_LABELS)
    ]
    some = [
        Cell(label, "U-shaped", curve, n)
        for label in ("hard", "votes of 5", "exact soft")
        for curve in ("calibrated", "shifted", "overconfident", "half_calibrated")
        for n in (300, 1000)
    ]
    console = Console()
    rows: list[dict[str, Any]] = []
    boots: list[dict[str, Any]] = []
    work = sum(max(cell.n, 1000) for cell in cells)
    with Progress(console=console) as bar, ProcessPoolExecutor(os.cpu_count()) as pool:
        task = bar.add_task("cells", total=work)
        largest_first = sorted(cells, key=lambda cell: -cell.n)
        jobs = {pool.submit(simulate, cell, options.replications): cell for cell in largest_first}
        for job, cell in jobs.items():
            rows += job.result()
            bar.advance(task, max(cell.n, 1000))
        if not options.quick:
            task = bar.add_task("bootstrap", total=len(some))
            for job_ in [pool.submit(bootstrap, cell, 15) for cell in some]:
                boots.append(job_.result())
                bar.advance(task)
    order = {cell: i for i, cell in enumerate(cells)}
    rows.sort(key=lambda row: (order[Cell(*(row[f] for f in Cell._fields))], row["bins"]))
    report(console, rows)
    if not options.quick:
        write(DOCS / "coverage.csv", rows)
        write(DOCS / "coverage_bootstrap.csv", boots)
        draw(rows, DOCS / "figures" / "coverage.png")
    low = [row for row in rows if row["coverage"] < 0.945]
    for row in sorted(low, key=lambda row: row["coverage"])[:25]:
        console.print(*(f"{row[k]}" for k in ("label", "prediction", "curve", "n", "bins", "theta",
                                             "coverage", "missed_low", "missed_high")))  # fmt: skip
    assert math.isfinite(sum(row["width"] for row in rows))  # noqa: S101


if __name__ == "__main__":
    main()
