"""Time multiclass metrics against other libraries. Run as `python benchmarks/multiclass.py`.

Compare ratios, not seconds, if the machine is busy. Wall time is what a user waits for. CPU time is
the sum over all threads, which depends less on other work on the machine.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table

import softcal as sc

if TYPE_CHECKING:
    from collections.abc import Callable

BINS = 10


def least(call: Callable[[], object], runs: int) -> tuple[float, float]:
    """Return the lowest wall and CPU time of several runs, after a warm-up."""
    call()
    times = []
    for _ in range(runs):
        wall, cpu = time.perf_counter(), time.process_time()
        call()
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    walls, cpus = zip(*times, strict=True)
    return min(walls), min(cpus)


def data(n: int, classes: int) -> tuple[Any, Any, Any]:
    """Return calibrated data: (class of each row, one-hot labels, probabilities)."""
    rng = np.random.default_rng(0)
    e = np.exp(2 * rng.normal(size=(n, classes)))
    p = e / e.sum(axis=1, keepdims=True)
    truth = (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return truth, np.eye(classes)[truth], p


def calls(truth: Any, y: Any, p: Any) -> dict[str, dict[str, Callable[[], object]]]:
    """Return the calls of each question, softcal first."""
    import torch
    from netcal.metrics import ECE
    from torchmetrics.functional.classification import (
        binary_calibration_error,
        multiclass_calibration_error,
    )

    classes = p.shape[1]
    tensor_p, tensor_y = torch.as_tensor(p), torch.as_tensor(truth)
    return {
        "top label": {
            "softcal top_label_smece": lambda: sc.top_label_smece(y, p, bins=BINS),
            "torchmetrics multiclass_calibration_error": lambda: multiclass_calibration_error(
                tensor_p, tensor_y, classes, n_bins=BINS
            ),
            "netcal ECE": lambda: ECE(BINS).measure(p, truth),
        },
        "classwise": {
            "softcal classwise_smece": lambda: sc.classwise_smece(y, p, bins=BINS),
            "softcal smece, column by column": lambda: [
                sc.smece(y[:, c], p[:, c], bins=BINS) for c in range(classes)
            ],
            "torchmetrics binary_calibration_error, column by column": lambda: [
                binary_calibration_error(tensor_p[:, c], (tensor_y == c).long(), n_bins=BINS)
                for c in range(classes)
            ],
            "torchmetrics multiclass_calibration_error (top label only)": lambda: (
                multiclass_calibration_error(tensor_p, tensor_y, classes, n_bins=BINS)
            ),
            "netcal ECE (top label only)": lambda: ECE(BINS).measure(p, truth),
        },
        "item by item": {
            "softcal dist_ce": lambda: sc.dist_ce(y, p),
            "softcal ent_ce": lambda: sc.ent_ce(y, p),
            "softcal rank_cs": lambda: sc.rank_cs(y, p),
            "softcal brier": lambda: sc.brier(y, p),
        },
    }


def main() -> None:
    """Print one table per question."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    truth, y, p = data(options.rows, options.classes)
    console = Console()
    for question, asked in calls(truth, y, p).items():
        title = f"{question}: {options.rows:,} x {options.classes}, float64, {BINS} bins"
        table = Table(title=title, title_justify="left")
        table.add_column("call")
        for name in ("wall", "CPU", "x wall", "x CPU"):
            table.add_column(name, justify="right")
        times = {name: least(call, options.runs) for name, call in asked.items()}
        ours = next(iter(times.values()))
        for name, (wall, cpu) in times.items():
            ratios = (f"{wall / ours[0]:.1f}", f"{cpu / ours[1]:.1f}")
            table.add_row(name, f"{wall * 1e3:.0f} ms", f"{cpu * 1e3:.0f} ms", *ratios)
        console.print(table)


if __name__ == "__main__":
    main()
