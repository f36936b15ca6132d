"""How fast is one pass? softcal against the memory floor, plain NumPy and every peer, in one run.

    make bench          (or: python benchmarks/speed.py [--rows 1000 100000 10000000])

Each figure is the least of several runs on the same arrays. Compare ratios, not seconds: the
machine is shared. "floor" is p.sum() + y.sum(), which reads the data and does nothing with it;
softcal checks every value and keeps all the sums, the peers return one number or one curve.
Peak memory is what the process grew by while the call ran (Linux only).
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import softcal as sc

Call = Callable[[], object]
BINS = 10


def digitize_and_loop(y: Any, p: Any) -> float:
    """ECE the way it is usually pasted into a notebook."""
    index = np.clip(np.digitize(p, np.linspace(0, 1, BINS + 1)) - 1, 0, BINS - 1)
    total = 0.0
    for b in range(BINS):
        mask = index == b
        if mask.any():
            total += mask.mean() * abs(p[mask].mean() - y[mask].mean())
    return total


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


def peers(y: Any, p: Any) -> dict[str, Call | str]:
    """Put the same question to each peer, in its own words; a string where it is missing."""
    cases: dict[str, Call | str] = {}
    for name, prepare in PEERS.items():
        try:
            cases[name] = prepare(y, p)
        except ImportError:
            cases[name] = "not installed"
    return cases


def least_time(call: Call, budget: float = 1.5, most: int = 300) -> float:
    """Give the least of several runs: at least three, then as many as the budget allows."""
    call()  # imports, compilers and caches are not what is measured here
    times: list[float] = []
    while len(times) < 3 or (sum(times) < budget and len(times) < most):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_megabytes(call: Call) -> float | None:
    """Measure how far the process grows above where it stands, by the kernel's own mark."""
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


def measure(n: int, dtype: type[np.floating[Any]], console: Console) -> None:
    rng = np.random.default_rng(0)
    p = rng.random(n).astype(dtype)
    y = (rng.random(n) < p).astype(dtype)
    calls: dict[str, Call | str] = {
        "floor: p.sum() + y.sum()": lambda: p.sum() + y.sum(),
        "softcal reliability": lambda: sc.reliability(y, p, bins=BINS),
        "softcal smece": lambda: sc.smece(y, p, bins=BINS),
        "NumPy digitize and loop": lambda: digitize_and_loop(y, p),
        **peers(y, p),
    }
    table = Table(title=f"n = {n:,}, {np.dtype(dtype).name}", title_justify="left")
    table.add_column("call")
    for name in ("time", "x floor", "x softcal", "peak MB"):
        table.add_column(name, justify="right")
    results: dict[str, tuple[float | str, float | None]] = {}
    for name, call in track(calls.items(), description=f"{n:,} {np.dtype(dtype).name}",
                            console=console, transient=True):  # fmt: skip
        if isinstance(call, str):
            results[name] = (call, None)
            continue
        try:
            results[name] = (least_time(call), peak_megabytes(call))
        except Exception as error:  # a peer that fails is a line of the table
            results[name] = (f"fails: {type(error).__name__}", None)
    floor, ours = (float(results[name][0]) for name in list(calls)[:2])
    for name, (seconds, peak) in results.items():
        if isinstance(seconds, str):
            table.add_row(name, seconds, "", "", "")
            continue
        table.add_row(
            name,
            f"{seconds * 1e3:.3f} ms" if seconds > 1e-4 else f"{seconds * 1e6:.1f} us",
            f"{seconds / floor:.2f}",
            f"{seconds / ours:.2f}",
            "-" if peak is None else f"{peak:.1f}",
            style="bold" if name.startswith("softcal") else None,
        )
    console.print(table)


def bootstrap(y: Any, p: Any, resamples: int) -> Any:
    """Resample rows and score each resample, the way NumPy does it fastest."""
    rng = np.random.default_rng(0)
    index = sc.Bins.uniform(BINS).locate(p)
    d = p - y
    return [
        np.abs(np.bincount(index[pick], d[pick], BINS)).sum() / p.size
        for pick in (rng.integers(0, p.size, p.size) for _ in range(resamples))
    ]


def certainty_costs(n: int) -> dict[str, float]:
    """Time the table, what an interval and a test add to it, and a bootstrap."""
    rng = np.random.default_rng(0)
    p = rng.random(n)
    y = (rng.random(n) < p).astype(np.float64)
    rel = sc.reliability(y, p, bins=BINS)
    table = least_time(lambda: sc.reliability(y, p, bins=BINS))
    more = least_time(lambda: (sc.smece_interval(rel), sc.calibration_test(rel)))
    costs = {"table": table, "table, interval and test": table + more}
    if n <= 10**5:  # a tenth of the usual thousand, scaled up
        costs["1,000-fold bootstrap"] = 10 * least_time(lambda: bootstrap(y, p, 100), budget=0.1)
    return costs


def uncertainty(console: Console) -> None:
    """Compare the cost of an interval and a test with that of the table and of a bootstrap."""
    table = Table(title="What certainty costs", title_justify="left")
    table.add_column("call")
    for n in (10**5, 10**6, 10**7):
        table.add_column(f"n = {n:,}", justify="right")
        table.add_column("x table", justify="right")
    rows: dict[str, list[str]] = {}
    for n in (10**5, 10**6, 10**7):
        costs = certainty_costs(n)
        for name, seconds in costs.items():
            cells = [f"{seconds * 1e3:.2f} ms", f"{seconds / costs['table']:.2f}"]
            rows.setdefault(name, []).extend(cells)
    for name, cells in rows.items():
        table.add_row(name, *cells)
    console.print(table)


def fresh(code: str, runs: int = 7) -> float:
    """Time a new interpreter running this code, least of several."""

    def once() -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603
        return time.perf_counter() - start

    return min(once() for _ in range(runs))


def start_up(console: Console) -> None:
    numpy, ours = fresh("import numpy"), fresh("import softcal")
    first = fresh("import softcal; softcal.smece([0.5] * 1000, [0.4] * 1000)")
    large = fresh("import softcal, numpy as n; x = n.zeros(100_000); softcal.smece(x, x)")
    table = Table(title="Start-up, whole process", title_justify="left")
    table.add_column("python -c")
    table.add_column("time", justify="right")
    table.add_column("x import numpy", justify="right")
    for name, seconds in {
        "import numpy": numpy,
        "import softcal": ours,
        "import softcal, one call of 1,000 rows": first,
        "import softcal, one call of 100,000 rows": large,
    }.items():
        table.add_row(name, f"{seconds * 1e3:.0f} ms", f"{seconds / numpy:.2f}")
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10**3, 10**5, 10**7])
    rows = parser.parse_args().rows
    warnings.simplefilter("ignore")
    console = Console()
    console.print(
        f"Python {platform.python_version()}, NumPy {np.__version__}, softcal {sc.__version__}, "
        f"{platform.machine()}, {os.cpu_count()} cores\n"
    )
    for n in rows:
        for dtype in (np.float64, np.float32):
            measure(n, dtype, console)
    uncertainty(console)
    start_up(console)


if __name__ == "__main__":
    main()
