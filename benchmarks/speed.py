"""Compare the speed of softcal with the memory floor, plain NumPy, and every peer, in one run.

    make bench      (or: python benchmarks/speed.py [--rows 1000 10000000] [--csv 10000000])

Each figure is the lowest of several runs on the same arrays. Compare ratios, not seconds, because
the machine is shared. The first table is that of docs/speed.md, with the goal of each figure. Its
cases alternate, so that a busy machine affects all of them; `--targets` stops after it. "floor" is
p.sum() + y.sum(), which only reads the data. softcal validates every value and keeps all sums; the
peers return one number or one curve. Peak memory is the growth of the process during the call
(Linux only).
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
import timeit
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import softcal as sc

Call = Callable[[], object]
BINS = 10
TIMES = "\N{MULTIPLICATION SIGN}"


def digitize_and_loop(y: Any, p: Any) -> float:
    """Compute ECE as in many notebooks: np.digitize, then a loop over bins."""
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
    """Return the same computation with each peer; a string where the peer is missing."""
    cases: dict[str, Call | str] = {}
    for name, prepare in PEERS.items():
        try:
            cases[name] = prepare(y, p)
        except ImportError:
            cases[name] = "not installed"
    return cases


def least_time(call: Call, budget: float = 1.5, most: int = 300) -> float:
    """Return the lowest of several runs: at least three, then as many as the budget allows."""
    call()  # a warm-up, for imports and caches
    times: list[float] = []
    while len(times) < 3 or (sum(times) < budget and len(times) < most):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


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


class Target(NamedTuple):
    """A measured quantity, its value, and its upper limit; None if it has no limit."""

    what: str
    figure: float
    at_most: float | None
    unit: str = f"{TIMES} floor"

    def as_row(self) -> str:
        """Return a row of a Markdown table; a value above its limit is bold."""
        digits = 1 if self.unit == "µs" else 2
        figure = f"{self.figure:.{digits}f}"
        goal = ""
        if self.at_most is not None:
            goal = f"{self.at_most:.3g}" + ("" if TIMES in self.unit else f" {self.unit}")
            figure = f"**{figure}**" if self.figure > self.at_most else figure
        return f"| {self.what} | {figure} {self.unit} | {goal} |"


def targets() -> Iterator[Target]:
    """Measure the targets of the kernel and its front end."""
    rng = np.random.default_rng(0)
    for dtype, limits in ((np.float64, (2.5, 3.5, 2.5, 1.4)), (np.float32, (2.7, 4.0, 3.0, 2.3))):
        for n, limit in zip((10**4, 10**5, 10**6, 10**7), limits, strict=True):
            p, y = _rows(rng, n, dtype)
            what = f"`smece`, {n:,} rows, {np.dtype(dtype)}"
            yield _over_floor(what, partial(sc.smece, y, p), limit, p, y)
    p, y = _rows(rng, 10**7, np.float64)
    fine = partial(sc.smece, y, p, bins=3600)
    yield _over_floor("`smece`, 10,000,000 rows, 3,600 bins", fine, 3.3, p, y)
    p, y = _rows(rng, 10**6, np.float64)
    w, m = rng.random(p.size) + 0.5, rng.integers(1, 9, p.size).astype(np.float64)
    full = partial(sc.reliability, y, p, sample_weight=w, n_votes=m)
    yield _over_floor("`reliability`, 1,000,000 rows with weights and votes", full, 1.5, p, y, w, m)
    p, y = rng.dirichlet(np.ones(10), (2, 10**6))
    classes = partial(sc.classwise_smece, y, p)
    yield _over_floor("`classwise_smece`, 1,000,000 rows of 10 classes", classes, 2.5, p, y)
    yield from _small(*_rows(rng, 1000, np.float64))
    yield _first_call()


def _rows(rng: np.random.Generator, n: int, dtype: type[np.floating[Any]]) -> tuple[Any, Any]:
    p = rng.random(n).astype(dtype)
    return p, (rng.random(n) < p).astype(dtype)


def _over_floor(what: str, call: Call, at_most: float, *columns: Any) -> Target:
    """Compare a call with the sums of the columns it reads."""
    found = alternated({"floor": lambda: [column.sum() for column in columns], what: call})
    unit = f"{TIMES} floor" + (" of four columns" if len(columns) == 4 else "")
    return Target(what, found[what] / found["floor"], at_most, unit)


def _small(p: Any, y: Any) -> Iterator[Target]:
    rel = sc.reliability(y, p)
    calls: dict[str, Call] = {
        "smece": partial(sc.smece, y, p),
        "reliability": partial(sc.reliability, y, p),
        "both": lambda: sc.smece_interval(rel),
    }
    peer = peers(y, p)["relplot binnedECE"]
    if not isinstance(peer, str):
        calls["relplot"] = peer
    found = {name: seconds * 1e6 for name, seconds in alternated(calls).items()}
    yield Target("`smece`, 1,000 rows", found["smece"], min(8, found.get("relplot", 8)), "µs")
    if "relplot" in found:
        yield Target("relplot's `binnedECE`, the same rows", found["relplot"], None, "µs")
    yield Target("`reliability`, 1,000 rows", found["reliability"], 15, "µs")
    both = "`smece_interval` of one table, which includes the test"
    yield Target(both, found["both"], 60, "µs")


_FIRST = """
import time, numpy as np, softcal as sc
p = np.random.default_rng(0).random({n})
sc.smece([0.5], [0.5])  # imports
times = []
for _ in range(2):
    start = time.perf_counter()
    sc.smece(p, p)
    times.append(time.perf_counter() - start)
print(times[0] - times[1])
"""


def _first_call() -> Target:
    """Measure, in new processes, how much longer the first call takes than the second."""
    worst = max(
        min(float(_output([sys.executable, "-c", _FIRST.format(n=n)])) for _ in range(3))
        for n in (10**3, 10**5, 10**7)
    )
    return Target("first call of any size, beyond the second", worst * 1e3, 5, "ms")


def _output(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603


_GROUP_BY = """
import duckdb
duckdb.sql("set enable_progress_bar = false")
sums = "count(*), sum(y), sum(a - y)"
duckdb.sql(f"select least(floor(a * 10), 9) bin, {{sums}} from '{path}' group by bin").fetchall()
"""


def csv_targets(n: int) -> Iterator[Target]:
    """Compare whole processes on a CSV file of four columns, 28 bytes per row."""
    with tempfile.TemporaryDirectory() as folder:
        path, page = Path(folder, "rows.csv"), Path(folder, "report.html")
        _write_csv(path, n)
        softcal = [sys.executable, "-m", "softcal"]
        columns = [str(path), "--label", "y", "--pred", "a"]
        group_by = [sys.executable, "-c", _GROUP_BY.format(path=path)]
        found = alternated(
            {
                "score": lambda: _output([*softcal, "score", *columns]),
                "report": lambda: _output([*softcal, "report", *columns, "-o", str(page)]),
                "DuckDB": lambda: _output(group_by),
            }
        )
    score, report, group_by_time = found["score"], found["report"], found["DuckDB"]
    yield Target(f"DuckDB group-by, CSV file of {n:,} rows", group_by_time, None, "s")
    yield Target("`softcal score`, the same file", score / group_by_time, 1, f"{TIMES} DuckDB")
    yield Target("`softcal report`, the same file", report / score, 2, f"{TIMES} `softcal score`")


def _write_csv(path: Path, n: int) -> None:
    import pyarrow as pa
    from pyarrow import csv

    rng = np.random.default_rng(0)
    schema = pa.schema(
        {"y": pa.int8(), "a": pa.float64(), "b": pa.float64(), "segment": pa.string()}
    )
    with csv.CSVWriter(path, schema) as file:
        for rows in np.diff([*range(0, n, 10**6), n]).tolist():
            a, b = rng.random((2, rows)).round(9)
            y = (rng.random(rows) < a).astype(np.int8)
            segment = np.array(["de", "fr", "us"])[rng.integers(0, 3, rows)]
            file.write_table(pa.table([y, a, b, segment], schema=schema))


def show_targets(found: Iterator[Target]) -> None:
    """Print the Markdown table of docs/speed.md, a row as soon as it is measured."""
    print("| call | measured | goal |\n|---|---:|---:|")
    for target in found:
        print(target.as_row(), flush=True)
    print()


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
        except Exception as error:  # a peer that fails becomes a line of the table
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
    table = least_time(lambda: sc.reliability(y, p, bins=BINS))
    more = least_time(lambda: sc.smece_interval(rel))
    costs = {"table": table, "table, interval and test": table + more}
    if n <= 10**5:  # a tenth of the usual thousand, scaled up
        costs["1,000-fold bootstrap"] = 10 * least_time(lambda: bootstrap(y, p, 100), budget=0.1)
    return costs


def uncertainty(console: Console) -> None:
    """Compare the cost of an interval and a test with that of the table and of a bootstrap."""
    table = Table(title="Cost of uncertainty", title_justify="left")
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
    """Time a new interpreter running this code; return the lowest of several runs."""

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
    parser.add_argument("--csv", type=int, default=0, help="also read a CSV file of this many rows")
    parser.add_argument("--targets", action="store_true", help="measure only the targets")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    console = Console()
    console.print(
        f"Python {platform.python_version()}, NumPy {np.__version__}, softcal {sc.__version__}, "
        f"{platform.machine()}, {os.cpu_count()} cores\n"
    )
    show_targets(targets())
    if chosen.csv:
        show_targets(csv_targets(chosen.csv))
    if chosen.targets:
        return
    for n in chosen.rows:
        for dtype in (np.float64, np.float32):
            measure(n, dtype, console)
    uncertainty(console)
    start_up(console)


if __name__ == "__main__":
    main()
