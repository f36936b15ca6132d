"""Compare time and memory of SoftCalibrationError and of torchmetrics' BinaryCalibrationError.

    OMP_NUM_THREADS=1 python benchmarks/torchmetric.py [--rows 1000 100000] [--batches 1000]

float32 predictions, 0/1 labels (torchmetrics takes no others), 10 bins, on the CPU. Both metrics
get the same batches in turn, and each figure is the lowest of several. Compare ratios, not seconds,
because the machine is shared. torchmetrics is timed with its checks, its default, and without;
softcal's checks cannot be switched off. One thread is used, because torch's threads wait for each
other on a busy machine. Memory is the growth of the process, each metric in its own process.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from softcal.torchmetric import SoftCalibrationError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torchmetrics.classification import BinaryCalibrationError

BINS = 10
EPOCH = 10
CALLS = {
    "epoch": f"update on {EPOCH} batches, then compute: time per batch",
    "forward": "forward: the value of each batch",
}
METRICS: dict[str, Any] = {
    "softcal": lambda: SoftCalibrationError(BINS),
    "torchmetrics": lambda: BinaryCalibrationError(BINS),
    "torchmetrics, no checks": lambda: BinaryCalibrationError(BINS, validate_args=False),
}


def batch(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    preds = torch.rand(rows)
    return preds, (torch.rand(rows) < preds).long()


def seconds(make: Any, call: str, data: tuple[torch.Tensor, torch.Tensor]) -> float:
    """Time a batch on a new metric; torchmetrics keeps every row, so it slows down as it fills."""
    metric = make()
    start = time.perf_counter()
    if call == "forward":
        metric(*data)
        return time.perf_counter() - start
    for _ in range(EPOCH):
        metric.update(*data)
    metric.compute()
    return (time.perf_counter() - start) / EPOCH


def least_seconds(call: str, rows: int) -> dict[str, float]:
    data = batch(rows)
    repeats = max(10, min(200, 5 * 10**6 // rows))
    runs: dict[str, list[float]] = {name: [] for name in METRICS}
    for _ in range(repeats):
        for name, make in METRICS.items():
            runs[name].append(seconds(make, call, data))
    return {name: min(found) for name, found in runs.items()}


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def growth(name: str, rows: int, batches: int) -> float:
    """Return the growth of the process in MB, after a warm-up epoch of 20 batches."""
    metric = METRICS[name]()
    torch.manual_seed(0)
    before = 0
    for number in range(-20, batches):
        if number == 0:
            metric.compute()
            metric.reset()
            before = resident_bytes()
        preds = torch.rand(rows)  # a batch of its own each time, as a loop would have
        metric.update(preds, (torch.rand(rows) < preds).long())
    return (resident_bytes() - before) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[10**3, 10**4, 10**5, 10**6])
    parser.add_argument("--batches", type=int, default=1000)
    parser.add_argument("--growth-of", choices=METRICS, help="measure one metric's memory")
    args = parser.parse_args()
    if args.growth_of:
        print(growth(args.growth_of, 10_000, args.batches))
        return

    console = Console()
    for call, title in CALLS.items():
        table = Table(title=f"{title} (theirs as a multiple of ours)")
        for column in ("rows", *METRICS):
            table.add_column(column, justify="right")
        for rows in args.rows:
            least = least_seconds(call, rows)
            ours = least["softcal"]
            others = [f"{least[name] / ours:.1f}x" for name in list(METRICS)[1:]]
            table.add_row(f"{rows:,}", f"{ours * 1e6:,.0f} µs", *others)
        console.print(table)

    table = Table(title=f"memory over {args.batches:,} batches of 10,000 rows")
    table.add_column("metric")
    table.add_column("MB", justify="right")
    for name in METRICS:
        command = [sys.executable, __file__, "--growth-of", name, "--batches", str(args.batches)]
        found = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
        table.add_row(name, f"{float(found.stdout):,.1f}")
    console.print(table)


if __name__ == "__main__":
    main()
