"""Time metrics without bins: softcal against relplot, probcal, and scikit-learn.

    python benchmarks/smooth.py [--rows 10000 1000000]

Each figure is the lowest of several runs on the same arrays. Compare ratios, because the machine is
shared. probcal smooths on the logit scale and takes 0/1 labels only, so it computes another
quantity. relplot computes the same one, up to its grid.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import softcal as sc

Call = Callable[[], Any]


def least_times(calls: dict[str, Call], rounds: int) -> dict[str, float]:
    """Return the lowest time of each, alternated so that a busy machine affects all alike."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()  # a warm-up, for imports and caches
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: min(each) for name, each in times.items()}


def smooth_calls(y: Any, p: Any, fine: sc.Reliability) -> dict[str, Call]:
    import relplot
    from probcal.metrics import smooth_ece

    return {
        "softcal smooth_ece": lambda: sc.smooth_ece(y, p),
        "softcal smooth_ece, table": lambda: sc.smooth_ece(fine),
        "softcal kde_ece": lambda: sc.kde_ece(y, p),
        "softcal kde_ece, table": lambda: sc.kde_ece(fine),
        "probcal smooth_ece": lambda: smooth_ece(y, p),
        "relplot smECE": lambda: relplot.smECE(p, y),
    }


def other_calls(y: Any, p: Any) -> dict[str, Call]:
    from sklearn.isotonic import IsotonicRegression

    return {
        "softcal corp": lambda: sc.corp(y, p),
        "scikit-learn isotonic fit": lambda: IsotonicRegression().fit(p, y),
        "softcal ecce_mad": lambda: sc.ecce_mad(y, p),
        "softcal sweep_bins": lambda: sc.sweep_bins(y, p),
    }


def show(title: str, times: dict[str, float], ours: str, console: Console) -> None:
    table = Table(title=title, title_justify="left")
    table.add_column("call")
    table.add_column("ms", justify="right")
    table.add_column(f"x {ours}", justify="right")
    for name, seconds in times.items():
        table.add_row(name, f"{1000 * seconds:.2f}", f"{seconds / times[ours]:.2f}")
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**4, 10**5, 10**6, 10**7])
    warnings.simplefilter("ignore")
    console = Console()
    for n in parser.parse_args().rows:
        rng = np.random.default_rng(0)
        p = rng.random(n)
        large = n >= 10**7
        for what, chance in (("calibrated", p), ("too high", p**1.3)):
            y = (rng.random(n) < chance).astype(float)
            fine = sc.reliability(y, p, bins=3600)
            calls = smooth_calls(y, p, fine)
            if large and what == "calibrated":
                # With so small a bandwidth, probcal needs a table of n x 257 numbers: 20 GB.
                del calls["probcal smooth_ece"]
            times = least_times(calls, 3 if large else 15)
            show(f"n = {n:,}, {what}, 0/1 labels", times, "softcal smooth_ece", console)
        if not large:
            show(f"n = {n:,}", least_times(other_calls(y, p), 3), "softcal corp", console)


if __name__ == "__main__":
    main()
