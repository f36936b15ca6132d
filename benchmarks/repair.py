"""Time the fit of calibrators against scikit-learn.

    .venv/bin/python benchmarks/repair.py [--rows 1000000] [--runs 5]

Prints a table. The ratio is scikit-learn's time over softcal's, each the lowest of several
alternated runs. Above 1, softcal is faster. Labels are 0/1, because scikit-learn takes no others.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import expit, logit
from sklearn.calibration import _TemperatureScaling
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

import softcal as sc

if TYPE_CHECKING:
    from collections.abc import Callable


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def cases(n: int) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    rng = np.random.default_rng(0)
    p = rng.random(n)
    y = (rng.random(n) < expit(0.6 * logit(p) - 0.4)).astype(float)
    both = np.column_stack([1 - p, p])
    z = logit(p)[:, None]
    classes = rng.dirichlet(np.ones(10), n // 10)
    number = (rng.random((n // 10, 1)) > classes.cumsum(axis=1)).sum(axis=1).clip(max=9)
    labels = np.eye(10)[number]
    return {
        "isotonic": (
            lambda: sc.calibrators.IsotonicCalibrator().fit(p, y),
            lambda: IsotonicRegression(out_of_bounds="clip").fit(p, y),
        ),
        "temperature": (
            lambda: sc.calibrators.TemperatureCalibrator().fit(p, y),
            lambda: _TemperatureScaling().fit(both, y),
        ),
        f"temperature, 10 classes, {n // 10:,} rows": (
            lambda: sc.calibrators.TemperatureCalibrator().fit(classes, labels),
            lambda: _TemperatureScaling().fit(classes, number),
        ),
        "platt (LogisticRegression on the logit)": (
            lambda: sc.calibrators.PlattCalibrator().fit(p, y),
            lambda: LogisticRegression(C=np.inf).fit(z, y),
        ),
        "beta (no peer in scikit-learn)": (
            lambda: sc.calibrators.BetaCalibrator().fit(p, y),
            lambda: None,
        ),
        "histogram (no peer)": (
            lambda: sc.calibrators.HistogramCalibrator().fit(p, y),
            lambda: None,
        ),
        "repair_preview (no peer)": (lambda: sc.calibrators.repair_preview(y, p), lambda: None),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    table = Table("fit", "softcal, s", "scikit-learn, s", "ratio", title=f"{options.rows:,} rows")
    for name, (ours, theirs) in cases(options.rows).items():
        taken = np.array([[seconds(ours), seconds(theirs)] for _ in range(options.runs)]).min(
            axis=0
        )
        ratio = f"{taken[1] / taken[0]:.1f}" if "no peer" not in name else "-"
        table.add_row(name, f"{taken[0]:.3f}", f"{taken[1]:.3f}", ratio)
    Console().print(table)


if __name__ == "__main__":
    main()
