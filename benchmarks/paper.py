"""Time the four experiments of the paper: softcal against plain NumPy scripts.

    .venv/bin/python benchmarks/paper.py

All make the same draws and score the same data sets; the plain scripts differ in how a metric is
computed. Each time is the lowest of three runs. Slow scripts run on a part and are scaled up.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from softcal.paper.reproduction import run_all

BINS = 10
Metric = Callable[[Any, Any], float]


def digitize_and_loop(p: Any, y: Any) -> float:
    """Return the ECE as in notebooks: np.digitize, then a loop with a mask per bin."""
    index = np.digitize(p, np.linspace(0, 1, BINS + 1)) - 1
    total = 0.0
    for b in range(BINS):
        mask = index == b
        if mask.any():
            total += mask.mean() * abs(p[mask].mean() - y[mask].mean())
    return total


def digitize_and_bincount(p: Any, y: Any) -> float:
    """Return the ECE with correct edges, np.digitize, and one bincount of the differences."""
    index = np.digitize(p, np.arange(BINS + 1) / BINS) - 1
    gaps = np.abs(np.bincount(index, p - y, BINS + 1)[:BINS])
    return float(gaps.sum() / p.size)


def truncate_and_bincount(p: Any, y: Any) -> float:
    """Return the fastest ECE: bins by int(10 p), which is wrong for some edges."""
    index = (p * BINS).astype(np.int64)
    gaps = np.abs(np.bincount(index, p - y, BINS + 1)[:BINS])
    return float(gaps.sum() / p.size)


def sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


def score_once(rng: np.random.Generator, metric: Metric, n: int, k: float) -> None:
    x, e = rng.uniform(-3, 3, n), rng.uniform(0, 1, n)
    soft, hard = sigmoid(k * x), (x >= 0).astype(float)
    models = (soft, sigmoid(3 * k * x), sigmoid(0.4 * k * x), np.minimum(soft + 0.15, 1), e)
    for p in models:
        metric(p, soft)
        metric(p, hard)


def plain_script(metric: Metric, share: float) -> float:
    """Run the experiments with one metric on a share of the replications; scale the time."""
    steep = (0.5, 1.0, 2.0, 5.0, 10.0, 50.0)
    rng = np.random.default_rng(42)
    start = time.perf_counter()
    for k in (2.0, *steep):
        score_once(rng, metric, 5000, k)
    once = time.perf_counter() - start
    start = time.perf_counter()
    for k in steep:
        for _ in range(int(1000 * share)):
            score_once(rng, metric, 1000, k)
    for n in (500, 1000, 2000, 5000, 10_000):
        for _ in range(int(500 * share)):
            score_once(rng, metric, n, 2.0)
    return once + (time.perf_counter() - start) / share


def ours() -> float:
    start = time.perf_counter()
    run_all()
    return time.perf_counter() - start


def main() -> None:
    ours()  # a warm-up
    cases: dict[str, Callable[[], float]] = {
        "softcal run_all": ours,
        "np.digitize and loop": lambda: plain_script(digitize_and_loop, 0.05),
        "np.digitize and bincount": lambda: plain_script(digitize_and_bincount, 0.2),
        "int(10 p) and bincount": lambda: plain_script(truncate_and_bincount, 0.5),
    }
    console = Console()
    times = {
        name: min(case() for _ in range(3))
        for name, case in track(cases.items(), console=console, transient=True)
    }
    table = Table(title="The paper's four experiments", title_justify="left")
    table.add_column("script")
    table.add_column("seconds", justify="right")
    table.add_column("x softcal", justify="right")
    for name, seconds in times.items():
        table.add_row(name, f"{seconds:.2f}", f"{seconds / times['softcal run_all']:.1f}")
    console.print(table)


if __name__ == "__main__":
    main()
