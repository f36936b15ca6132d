"""Measure speed, scale, training, start, and memory in one run, and write docs/performance.md.

    make performance                            everything, about ten minutes on two idle cores
    python -m benchmarks.performance --quick    small sizes, into build/performance
    python -m benchmarks.performance --page     only write the page, from the saved results

The results are saved in benchmarks/performance.json; `benchmarks.performance_page` writes the page
from them. Files of up to 5 GB are written to a temporary folder. Each time is the lowest of several
runs that take turns. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.console import Console

import softcal as sc
from benchmarks import performance_page, scale
from benchmarks.evidence import machine
from benchmarks.evidence.peers import installed_version
from benchmarks.speed import PEERS, Call, alternated, peak_megabytes

if TYPE_CHECKING:
    from collections.abc import Iterator

WITH = ("numpy", "duckdb", "polars", "pyarrow", "pandas", "pyspark", "torch", "torchmetrics")
NARROW = 10  # classes


class Sizes(NamedTuple):
    """How many rows, and how long."""

    arrays: tuple[int, ...]  # rows of `smece`
    kinds: int  # rows of each kind of call
    parquet: tuple[int, ...]  # rows of files; every kind of scan reads the last two
    many: int  # classes
    wide: tuple[int, int]  # rows of many classes
    memory: int  # rows of frames
    csv: int
    spark: int
    batches: tuple[int, ...]  # rows per batch
    epoch: int  # batches, for memory
    runs: int
    budget: float  # seconds per comparison of arrays


FULL = Sizes(
    arrays=(10**4, 10**5, 10**6, 10**7), kinds=10**6, parquet=(10**6, 10**7, 10**8),
    many=1000, wide=(10_000, 50_000), memory=2 * 10**7, csv=10**7, spark=10**7,
    batches=(10**3, 10**4, 10**5), epoch=1000, runs=3, budget=1.0,
)  # fmt: skip
QUICK = Sizes(
    arrays=(10**4, 10**5), kinds=10**4, parquet=(10**4, 10**5, 2 * 10**5),
    many=50, wide=(100, 200), memory=10**5, csv=10**4, spark=10**4,
    batches=(10**3, 10**4), epoch=20, runs=1, budget=0.02,
)  # fmt: skip


# Arrays


@contextmanager
def one_core() -> Iterator[None]:
    """Let this process use one core, so that softcal uses one thread."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def relative(call: Call, columns: list[Any], budget: float) -> dict[str, float]:
    """Time a call on one core and on all, and the sums of the columns that it reads."""
    calls: dict[str, Call] = {"sums": lambda: [each.sum() for each in columns], "call": call}
    with one_core():
        alone = alternated(calls, budget)
    everywhere = alternated(calls, budget)
    return {"sums": min(alone["sums"], everywhere["sums"]), "one": alone["call"],
            "all": everywhere["call"]}  # fmt: skip


def rows_of(n: int, dtype: str = "float64") -> tuple[Any, Any]:
    """Return predictions and 0/1 labels."""
    rng = np.random.default_rng(0)
    p = rng.random(n).astype(dtype)
    return p, (rng.random(n) < p).astype(dtype)


def by_size(size: Sizes) -> dict[str, Any]:
    """Time `smece` with 10 bins and 0/1 labels."""
    found: dict[str, Any] = {}
    for n in size.arrays:
        for dtype in ("float64", "float32"):
            p, y = rows_of(n, dtype)
            found.setdefault(str(n), {})[dtype] = relative(
                partial(sc.smece, y, p), [p, y], size.budget
            )
    return found


def by_kind(size: Sizes) -> dict[str, Any]:
    """Time the functions, labels, and bins."""
    n, rng = size.kinds, np.random.default_rng(1)
    p, hard = rows_of(n)
    soft = np.clip(p + rng.normal(0, 0.1, n), 0, 1)
    weights, votes = rng.random(n) + 0.5, rng.integers(1, 9, n).astype(np.float64)
    share = rng.binomial(votes.astype(int), p) / votes
    q, z = rng.dirichlet(np.ones(NARROW), (2, n))
    ends = np.where(rng.random(n) < 0.5, p / 600, 1 - p / 600)
    grid = sc.Bins.grid(10)
    cases: dict[str, tuple[Call, list[Any]]] = {
        "`smece`, 0/1 labels": (partial(sc.smece, hard, p), [p, hard]),
        "`smece`, 0/1 labels, 100 bins": (partial(sc.smece, hard, p, bins=100), [p, hard]),
        "`smece`, soft labels": (partial(sc.smece, soft, p), [p, soft]),
        "`smece`, soft labels, 100 bins": (partial(sc.smece, soft, p, bins=100), [p, soft]),
        "`reliability`, 0/1 labels": (partial(sc.reliability, hard, p), [p, hard]),
        "`reliability`, soft labels": (partial(sc.reliability, soft, p), [p, soft]),
        "`reliability`, soft labels, 100 bins": (
            partial(sc.reliability, soft, p, bins=100), [p, soft]
        ),
        f"`reliability`, soft labels, the {len(grid)} bins of a set": (
            partial(sc.reliability, soft, p, bins=grid), [p, soft]
        ),
        "the same, all predictions within 1/600 of 0 or 1": (
            partial(sc.reliability, soft, ends, bins=grid), [ends, soft]
        ),
        "`reliability`, soft labels, weights": (
            partial(sc.reliability, soft, p, sample_weight=weights), [p, soft, weights]
        ),
        "`reliability`, vote shares, numbers of votes": (
            partial(sc.reliability, share, p, n_votes=votes), [p, share, votes]
        ),
        "`reliability`, vote shares, numbers of votes, weights": (
            partial(sc.reliability, share, p, n_votes=votes, sample_weight=weights),
            [p, share, votes, weights],
        ),
        "`smece_interval`, soft labels": (partial(sc.smece_interval, soft, p), [p, soft]),
        "`brier`, soft labels": (partial(sc.brier, soft, p), [p, soft]),
        "`smooth_ece`, soft labels": (partial(sc.smooth_ece, soft, p), [p, soft]),
        "`kde_ece`, soft labels": (partial(sc.kde_ece, soft, p), [p, soft]),
        "`corp`, soft labels": (partial(sc.corp, soft, p), [p, soft]),
        "`ecce_range`, soft labels": (partial(sc.ecce_range, soft, p), [p, soft]),
        f"`classwise_smece`, {NARROW} classes, shares": (partial(sc.classwise_smece, z, q), [q, z]),
        f"`top_label_smece`, {NARROW} classes, shares": (partial(sc.top_label_smece, z, q), [q, z]),
    }  # fmt: skip
    return {
        name: relative(call, columns, size.budget) for name, (call, columns) in cases.items()
    } | {"`smece`, 0/1 labels, without a C++ compiler (NumPy)": without_compiler(n)}


_NUMPY = """
import sys
sys.modules["softcal._native"] = None
import json
from functools import partial
import softcal as sc
from benchmarks.performance import relative, rows_of
p, y = rows_of({n})
print(json.dumps(relative(partial(sc.smece, y, p), [p, y], 0.5)))
"""


def without_compiler(n: int) -> dict[str, float]:
    found: dict[str, float] = performance_page.json_of(
        output([sys.executable, "-c", _NUMPY.format(n=n)])
    )
    return found


def output(command: list[str]) -> str:
    return subprocess.check_output(command, text=True, cwd=scale.ROOT)  # noqa: S603


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


def small(size: Sizes) -> dict[str, float]:
    """Time calls with 1,000 rows, in microseconds, and what a first call adds."""
    p, y = rows_of(1000)
    rel = sc.reliability(y, p)
    calls: dict[str, Call] = {
        "`p.sum() + y.sum()`": lambda: p.sum() + y.sum(),
        "`smece`": partial(sc.smece, y, p),
        "`reliability`": partial(sc.reliability, y, p),
        "`smece_interval` of arrays": partial(sc.smece_interval, y, p),
        "`smece_interval` of a table": partial(sc.smece_interval, rel),
        "`calibration_test` of a table": partial(sc.calibration_test, rel),
    }
    with suppress(ImportError):
        calls["relplot's `binnedECE`"] = PEERS["relplot binnedECE"](y, p)
    found = {name: 1e6 * each for name, each in alternated(calls, 2 * size.budget).items()}
    first = max(
        min(float(output([sys.executable, "-c", _FIRST.format(n=n)])) for _ in range(size.runs))
        for n in (10**3, size.arrays[-1])
    )
    return found | {"the first call of a process, beyond the second": 1e6 * first}


def extra_memory(size: Sizes) -> dict[str, float | None]:
    """Measure how many MB calls add to those of their arrays."""
    p, y = rows_of(size.arrays[-1])
    calls: dict[str, Call] = {
        "`smece`": partial(sc.smece, y, p),
        "`reliability`": partial(sc.reliability, y, p),
        "`smooth_ece`": partial(sc.smooth_ece, y, p),
        "`net_benefit`": partial(sc.net_benefit, y, p, [0.2]),
        "`corp`": partial(sc.corp, y, p),
        "`ecce_range`": partial(sc.ecce_range, y, p),
        "`calibration_summary`": partial(sc.calibration_summary, y, p),
    }
    for call in calls.values():
        call()  # imports
    return {name: peak_megabytes(call) for name, call in calls.items()}


# Files and frames


def parquet(size: Sizes, folder: Path) -> dict[str, Any]:
    """Time one table as files grow, every kind of scan, and queries by hand."""
    files = {n: folder / f"{n}.parquet" for n in size.parquet}
    for n, path in files.items():
        scale.make_rows(path, n)
    growth = {
        str(n): scale.by_turns({"": ("scan", "plain", str(path))}, size.runs)[""]
        for n, path in files.items()
    }
    middle, last = (str(files[n]) for n in size.parquet[-2:])
    queries = scale.by_turns(
        {"softcal": ("scan", "plain", last), "DuckDB": ("DuckDB", "plain", last),
         "Polars": ("Polars", last)},
        size.runs,
    )  # fmt: skip
    kinds = {kind: beside_duckdb(kind, middle, size) for kind in performance_page.KINDS[:5]}
    large = {
        kind: scale.by_turns({"": ("scan", kind, last)}, runs=1, warm_ups=0)[""]
        for kind in performance_page.KINDS[1:5]
    }
    large["plain"] = queries["softcal"]
    for path in files.values():
        path.unlink()
    votes, classes = folder / "votes.parquet", folder / "classes.parquet"
    scale.make_votes(votes, size.parquet[-2])
    kinds["raters"] = beside_duckdb("raters", str(votes), size)
    scale.make_classes(classes, size.parquet[-2], NARROW)
    kinds["classes"] = beside_duckdb("classes", str(classes), size, NARROW)
    classes.unlink()
    return {"growth": growth, "queries": queries, "kinds": kinds, "large": large,
            "wide": wide(size, folder)}  # fmt: skip


def beside_duckdb(kind: str, path: str, size: Sizes, *more: int) -> scale.Found:
    cases = {"softcal": ("scan", kind, path), "DuckDB": ("DuckDB", kind, path, *more)}
    return scale.by_turns(cases, max(size.runs - 1, 1))


def wide(size: Sizes, folder: Path) -> dict[str, Any]:
    """Measure the memory of many classes, as columns and as lists."""
    found: dict[str, Any] = {}
    for n in size.wide:
        for kind in ("lists", "classes"):
            path = folder / "wide.parquet"
            scale.make_classes(path, n, size.many, lists=kind == "lists")
            case = {"": ("scan", kind, str(path))}
            found.setdefault(kind, {})[str(n)] = scale.by_turns(case, runs=1, warm_ups=0)[""]
            path.unlink()
    return found


def frames(size: Sizes) -> scale.Found:
    cases: dict[str, tuple[Any, ...]] = {"arrays": ("arrays", size.memory)}
    cases |= {name: ("frame", name, size.memory) for name in ("pandas", "Polars", "Arrow")}
    return scale.by_turns(cases, 3 * size.runs)


def csv(size: Sizes, folder: Path) -> scale.Found:
    """Time whole processes that read a CSV file."""
    path = folder / "rows.csv"
    scale.make_csv(path, size.csv)
    query = scale.table_query().replace("FROM rows", f"FROM read_csv('{path}')")
    columns = [str(path), "--label", "y", "--pred", "p"]
    commands = {
        "DuckDB query": ["-c", f"import duckdb; print(duckdb.sql({query!r}).fetchall())"],
        "`softcal score`": ["-m", "softcal", "score", *columns],
        "`softcal report`": ["-m", "softcal", "report", *columns, "-o", str(folder / "page.html")],
    }
    found = scale.processes(commands, size.runs, bytecode(folder))
    path.unlink()
    return found


def bytecode(folder: Path) -> dict[str, str]:
    """Return settings that keep compiled bytecode, as an installed package has it."""
    return {"PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "PYTHONDONTWRITEBYTECODE": ""}


def spark(size: Sizes, folder: Path) -> dict[str, Any]:
    """Time Spark, if Java is there."""
    if shutil.which("java") is None:
        return {}
    path = folder / "spark.parquet"
    scale.make_rows(path, size.spark)
    found = scale.spark_times(str(path), ["plain", "by", "two models"], max(size.runs - 1, 1))
    path.unlink()
    return found


def training(size: Sizes) -> dict[str, Any]:
    """Time metrics per batch, and measure the memory of an epoch."""
    from benchmarks import torchmetric as metrics

    repeats = 10 * size.runs
    return {
        "update": {str(n): metrics.least_seconds("update", n, repeats) for n in size.batches},
        "forward": {str(n): metrics.least_seconds("forward", n, 3 * repeats) for n in size.batches},
        "step": {str(n): metrics.step_seconds(n, repeats) for n in size.batches[:2]},
        "growth": {
            name: metrics.growth_alone(name, size.epoch) for name in ("softcal", "torchmetrics")
        },
        "growth_rows": size.epoch * metrics.MEMORY_ROWS,
    }


def start(size: Sizes, folder: Path) -> scale.Found:
    """Time processes that do nothing else."""
    one_call = "import softcal; softcal.smece([0.5], [0.4])"
    commands = {
        "`python -c pass`": ["-c", "pass"],
        "`python -c 'import numpy'`": ["-c", "import numpy"],
        "`python -c 'import softcal'`": ["-c", "import softcal"],
        f"`python -c '{one_call}'`": ["-c", one_call],
        "`softcal --version`": ["-m", "softcal", "--version"],
        "`softcal --help`": ["-m", "softcal", "--help"],
        "`softcal score --help`": ["-m", "softcal", "score", "--help"],
    }
    return scale.processes(commands, 3 * size.runs, bytecode(folder))


# Everything


def facts() -> dict[str, str]:
    """Return the machine, the versions, the date, and the commit."""
    known = machine.facts()
    return {
        **{name: known[name] for name in ("processor", "cores", "memory", "Python")},
        "softcal": sc.__version__,
        **{name: installed_version(name) for name in WITH},
        "date": known["date"],
        "commit": output(["git", "rev-parse", "--short", "HEAD"]).strip(),
    }


def measure(size: Sizes, console: Console) -> dict[str, Any]:
    """Measure everything, one part after the other."""
    results: dict[str, Any] = {"facts": facts(), "sizes": size._asdict()}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts: dict[str, Any] = {
            "start": lambda: start(size, folder),
            "small": lambda: small(size),
            "arrays": lambda: by_size(size),
            "kinds": lambda: by_kind(size),
            "extra": lambda: extra_memory(size),
            "frames": lambda: frames(size),
            "parquet": lambda: parquet(size, folder),
            "csv": lambda: csv(size, folder),
            "spark": lambda: spark(size, folder),
            "training": lambda: training(size),
        }
        for part, run in parts.items():
            begin = time.monotonic()
            with console.status(part):
                results[part] = run()
            console.print(f"{time.monotonic() - begin:4.0f} s  {part}")
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, into build/performance")
    parser.add_argument("--page", action="store_true", help="only write the page")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    results, page = performance_page.RESULTS, performance_page.PAGE
    if chosen.quick:
        folder = scale.ROOT / "build" / "performance"
        folder.mkdir(parents=True, exist_ok=True)
        results, page = folder / results.name, folder / page.name
    if not chosen.page:
        found = measure(QUICK if chosen.quick else FULL, Console())
        performance_page.save(found, results)
    page.write_text(performance_page.text(performance_page.load(results)), encoding="utf-8")
    print(f"wrote {page.relative_to(scale.ROOT)}")


if __name__ == "__main__":
    main()
