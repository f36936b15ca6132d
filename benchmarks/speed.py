"""Time calls in turns, and the same calibration error with other libraries.

`benchmarks.performance` and `benchmarks.evidence` use this. Each time is the lowest of several
runs on the same arrays. The calls take turns, so that a slow moment affects all of them.
"""

from __future__ import annotations

import math
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import softcal as sc

Call = Callable[[], object]
BINS = 10


def relplot(y: Any, p: Any) -> Call:
    from relplot.metrics import binnedECE

    return lambda: binnedECE(p, y, BINS)


def sklearn(y: Any, p: Any) -> Call:
    from sklearn.calibration import calibration_curve

    return lambda: calibration_curve(y, p, n_bins=BINS)


def torchmetrics(y: Any, p: Any) -> Call:
    import torch
    from torchmetrics.functional.classification import binary_calibration_error

    preds, target = torch.from_numpy(p), torch.from_numpy(y.astype(np.int64))
    return lambda: binary_calibration_error(preds, target, n_bins=BINS)


def netcal(y: Any, p: Any) -> Call:
    from netcal.metrics import ECE

    return lambda: ECE(BINS).measure(p, y)


def mapie(y: Any, p: Any) -> Call:
    from mapie.metrics.calibration import expected_calibration_error

    whole = y.astype(np.int64)
    return lambda: expected_calibration_error(whole, p, num_bins=BINS)


def model_diagnostics(y: Any, p: Any) -> Call:
    from model_diagnostics.calibration import compute_bias

    return lambda: compute_bias(y_obs=y, y_pred=p, feature=p, n_bins=BINS, bin_method="uniform")


def probcal(y: Any, p: Any) -> Call:
    from probcal.metrics import ece

    return lambda: ece(y, p, n_bins=BINS, strategy="width")


PEERS = {
    "relplot binnedECE": relplot,
    "sklearn calibration_curve": sklearn,
    "torchmetrics": torchmetrics,
    "netcal ECE": netcal,
    "MAPIE": mapie,
    "model-diagnostics": model_diagnostics,
    "probcal ece": probcal,
}


_TURN = 2e-3  # seconds


def alternated(calls: dict[str, Call], budget: float = 2.0, most: int = 3000) -> dict[str, float]:
    """Return the lowest time of each call; they take turns, at least three each.

    A turn repeats a call that takes microseconds, so that its data is in the cache.
    """
    timers = {name: timeit.Timer(call) for name, call in calls.items()}
    numbers = {}
    for name, timer in timers.items():
        timer.timeit(1)  # a warm-up, for imports and caches
        numbers[name] = max(1, round(_TURN / timer.timeit(1)))
    least = dict.fromkeys(calls, math.inf)
    start, turns = time.perf_counter(), 0
    while turns < 3 or (time.perf_counter() - start < budget and turns < most):
        for name, timer in timers.items():
            least[name] = min(least[name], timer.timeit(numbers[name]) / numbers[name])
        turns += 1
    return least


def least(call: Call, budget: float = 1.5) -> float:
    """Return the lowest time of one call."""
    return alternated({"": call}, budget)[""]


def peak_megabytes(call: Call) -> float | None:
    """Measure how much the memory of the process grows, by the operating system's peak."""
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    try:
        reset.write_text("5")
    except OSError:
        return None
    before = _kilobytes(status, "VmRSS")
    call()
    return max(0, _kilobytes(status, "VmHWM") - before) / 1024


def _kilobytes(status: Path, field: str) -> int:
    line = next(line for line in status.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1])


def bootstrap(y: Any, p: Any, resamples: int) -> Any:
    """Resample rows and score each resample, in the fastest way with NumPy."""
    rng = np.random.default_rng(0)
    index = sc.Bins.uniform(BINS).locate(p)
    d = p - y
    return [
        np.abs(np.bincount(index[pick], d[pick], BINS)).sum() / p.size
        for pick in (rng.integers(0, p.size, p.size) for _ in range(resamples))
    ]


def certainty_costs(n: int) -> dict[str, float]:
    """Time the table, the interval and test from it, and a bootstrap."""
    rng = np.random.default_rng(0)
    p = rng.random(n)
    y = (rng.random(n) < p).astype(np.float64)
    rel = sc.reliability(y, p, bins=BINS)
    table = least(lambda: sc.reliability(y, p, bins=BINS))
    more = least(lambda: sc.smece_interval(rel))
    costs = {"table": table, "table, interval and test": table + more}
    if n <= 10**5:  # a tenth of the usual thousand, scaled up
        costs["1,000-fold bootstrap"] = 10 * least(lambda: bootstrap(y, p, 100), budget=0.1)
    return costs
