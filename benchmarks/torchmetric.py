"""The cases of `benchmarks.performance` for training: metrics of softcal and of torchmetrics.

    python -m benchmarks.torchmetric METRIC BATCHES

prints how many MB the process grows while a metric gets that many batches of 10,000 rows.

float32 predictions on the CPU, 10 bins. Labels are 0 or 1, because torchmetrics takes no others.
torchmetrics is timed with its checks, its default, and without; softcal's cannot be switched off.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from softcal.torchmetric import (
    ClasswiseSoftCalibrationError,
    SoftCalibrationError,
    TopLabelSoftCalibrationError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torchmetrics.classification import BinaryCalibrationError

ROOT = Path(__file__).parent.parent
BINS = 10
EPOCH = 10  # batches
CLASSES = 10
MEMORY_ROWS = 10_000
METRICS: dict[str, Callable[[], Any]] = {
    "softcal": lambda: SoftCalibrationError(BINS),
    "torchmetrics": lambda: BinaryCalibrationError(BINS),
    "torchmetrics, no checks": lambda: BinaryCalibrationError(BINS, validate_args=False),
}


def batch(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    preds = torch.rand(rows)
    return preds, (torch.rand(rows) < preds).long()


def seconds(make: Callable[[], Any], call: str, data: tuple[torch.Tensor | None, ...]) -> float:
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


def least_seconds(call: str, rows: int, repeats: int) -> dict[str, float]:
    """Return the time per batch of each metric: `update` and a part of `compute`, or `forward`."""
    data = batch(rows)
    runs: dict[str, list[float]] = {name: [] for name in METRICS}
    for _ in range(repeats):
        for name, make in METRICS.items():
            runs[name].append(seconds(make, call, data))
    return {name: min(found) for name, found in runs.items()}


def step_seconds(rows: int, repeats: int) -> dict[str, float]:
    """Return the time of one training step of a small network, and of `update` of each metric."""
    preds, target = batch(rows)
    groups = torch.arange(rows) // 10
    probs = torch.rand(rows, CLASSES).softmax(dim=1)
    label = torch.randint(CLASSES, (rows,))
    inputs = torch.rand(rows, 128)
    model = torch.nn.Sequential(
        torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU(),
        torch.nn.Linear(256, 1), torch.nn.Flatten(0),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters())
    loss = torch.nn.BCEWithLogitsLoss()

    def step() -> None:
        optimizer.zero_grad()
        loss(model(inputs), target.float()).backward()
        optimizer.step()

    cases: dict[str, tuple[Callable[[], Any], tuple[torch.Tensor | None, ...]]] = {
        "SoftCalibrationError": (METRICS["softcal"], (preds, target)),
        "SoftCalibrationError, with groups": (METRICS["softcal"], (preds, target, None, groups)),
        "TopLabelSoftCalibrationError": (
            lambda: TopLabelSoftCalibrationError(CLASSES, BINS), (probs, label)
        ),
        "ClasswiseSoftCalibrationError": (
            lambda: ClasswiseSoftCalibrationError(CLASSES, BINS), (probs, label)
        ),
        "torchmetrics": (METRICS["torchmetrics"], (preds, target)),
    }  # fmt: skip
    times: dict[str, list[float]] = {name: [] for name in ("step", *cases)}
    for _ in range(repeats):
        start = time.perf_counter()
        step()
        times["step"].append(time.perf_counter() - start)
        for name, (make, data) in cases.items():
            times[name].append(seconds(make, "update", data))
    return {name: min(found) for name, found in times.items()}


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def growth(name: str, batches: int) -> float:
    """Return the growth of the process in MB, after a warm-up epoch of 20 batches."""
    metric = METRICS[name]()
    torch.manual_seed(0)
    before = 0
    for number in range(-20, batches):
        if number == 0:
            metric.compute()
            metric.reset()
            before = resident_bytes()
        preds = torch.rand(MEMORY_ROWS)  # a batch of its own each time, as a loop would have
        metric.update(preds, (torch.rand(MEMORY_ROWS) < preds).long())
    return (resident_bytes() - before) / 1e6


def growth_alone(name: str, batches: int) -> float:
    """Return the same, measured in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.torchmetric", name, str(batches)]
    return float(subprocess.check_output(command, cwd=ROOT, text=True))  # noqa: S603


if __name__ == "__main__":
    print(growth(sys.argv[1], int(sys.argv[2])))
