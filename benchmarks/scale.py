"""Compare softcal with a hand-written group-by on each engine, in one run.

    make scale          (or: python benchmarks/scale.py [--rows 100000000] [--skip-spark])
    python benchmarks/scale.py --only groups [--rows 100000000] [--groups 1000000]

The Parquet file (two float64 columns, as PyArrow writes it) is written to a temporary
folder, 1.6 GB for 10^8 rows. The group-bys give the same sums (count, label, residual, its square,
and the variances of prediction and label), but do not check values and put a few predictions on an
edge into the wrong bin. Each case runs in a process of its own, three times after a warm-up; the
lowest time counts. The cases take turns, so that a busy machine affects all of them. CPU is the
time of all cores; memory is the peak of the process (Linux only). Compare ratios, not seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

Call = Callable[[], object]
TERMS = {
    "label": "y",
    "residual": "p - y",
    "residual_sq": "(p - y) * (p - y)",
    "prob_var": "p * (1 - p)",
    "label_var": "y * (1 - y)",
}
SUMS = ", ".join(f"SUM({term}) AS {name}" for name, term in TERMS.items())
IN_MEMORY_ROWS = 20_000_000


def make_file(path: Path, rows: int, group: int = 1 << 20) -> None:
    """Write soft labels and noisy predictions, one row group at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    schema = pa.schema([("y", pa.float64()), ("p", pa.float64())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, group):
            y = rng.random(min(group, rows - start))
            p = np.clip(y + rng.normal(0, 0.1, y.size), 0, 1)
            writer.write_table(pa.table({"y": y, "p": p}))


def make_groups_file(path: Path, rows: int, groups: int, row_group: int = 1 << 20) -> None:
    """Write the same with an integer column for the patient of each row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    schema = pa.schema([("y", pa.float64()), ("p", pa.float64()), ("patient", pa.int64())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, row_group):
            y = rng.random(min(row_group, rows - start))
            p = np.clip(y + rng.normal(0, 0.1, y.size), 0, 1)
            patient = rng.integers(0, groups, y.size)
            writer.write_table(pa.table({"y": y, "p": p, "patient": patient}))


def make_joint_file(path: Path, rows: int, group: int = 1 << 20) -> None:
    """Write soft labels, the predictions of two models, and groups of 100 rows on average."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    kinds = {"y": pa.float64(), "p": pa.float64(), "q": pa.float64(), "g": pa.int64()}
    with pq.ParquetWriter(path, pa.schema(list(kinds.items()))) as writer:
        for start in range(0, rows, group):
            y = rng.random(min(group, rows - start))
            p, q = (np.clip(y + rng.normal(0, sd, y.size), 0, 1) for sd in (0.1, 0.2))
            g = rng.integers(0, max(rows // 100, 1), y.size)
            writer.write_table(pa.table({"y": y, "p": p, "q": q, "g": g}))


def make_classes_file(path: Path, rows: int, classes: int, group: int = 1 << 18) -> None:
    """Write a column of class numbers and one column of predictions per class."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    names = [f"prob_{c}" for c in range(classes)]
    schema = pa.schema([("class", pa.int64()), *((name, pa.float64()) for name in names)])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, group):
            here = min(group, rows - start)
            p = rng.standard_exponential((here, classes)) ** 2
            p /= p.sum(axis=1, keepdims=True)
            label = (p.cumsum(axis=1) < rng.random((here, 1))).sum(axis=1).clip(max=classes - 1)
            columns = dict(zip(names, p.T, strict=True))
            writer.write_table(pa.table({"class": label, **columns}, schema=schema))


def in_memory(rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    y = rng.random(rows)
    return {"y": y, "p": np.clip(y + rng.normal(0, 0.1, rows), 0, 1)}


def ours(source: Any) -> Call:
    import softcal as sc

    return lambda: sc.scan(source, y_true="y", y_prob="p")


def of_groups(path: str) -> Call:
    import softcal as sc

    return lambda: sc.scan(path, y_true="y", y_prob="p", groups="patient")


def duckdb_groups(path: str) -> Call:
    """Sum each patient's residuals per bin and multiply the sums: 10 bins, softcal has 60."""
    import duckdb

    connection = duckdb.connect()
    query = f"""
        WITH sums AS (
            SELECT patient, LEAST(FLOOR(p * 10), 9)::INT AS bin, SUM(p - y) AS s, COUNT(*) AS n
            FROM read_parquet('{path}') GROUP BY ALL)
        SELECT a.bin, b.bin, SUM(a.s * b.s), SUM(a.n * b.n)
        FROM sums a JOIN sums b USING (patient) GROUP BY ALL"""  # noqa: S608
    return lambda: connection.sql(query).fetchall()


def of_classes(path: str) -> Call:
    import softcal as sc

    return lambda: sc.scan(path, y_true="class", y_prob={"model": "prob_*"})


def duckdb_classes(path: str, classes: int) -> Call:
    """Sum each class and the predicted class per bin: 10 bins, softcal has 648."""
    import duckdb

    connection = duckdb.connect()
    names = [f"prob_{c}" for c in range(classes)]
    top = " ".join(f"WHEN p = {name} THEN CAST(class = {c} AS INT)" for c, name in enumerate(names))
    each = [
        f"SELECT {c} AS target, {name} AS p, CAST(class = {c} AS DOUBLE) AS y FROM wide"  # noqa: S608
        for c, name in enumerate(names)
    ]
    query = f"""
        WITH wide AS (SELECT *, GREATEST({", ".join(names)}) AS p FROM read_parquet('{path}')),
        long AS (SELECT -1 AS target, p, CAST(CASE {top} END AS DOUBLE) AS y FROM wide
                 UNION ALL {" UNION ALL ".join(each)})
        SELECT target, LEAST(FLOOR(p * 10), 9)::INT AS bin, COUNT(*) AS count, {SUMS}
        FROM long GROUP BY 1, 2"""  # noqa: S608
    return lambda: connection.sql(query).fetchall()


def of_files(path: str, repeat: int = 1) -> Call:
    """Scan a file, or several hard links to it, which count as different files."""
    links = [Path(f"{path}.{k}.parquet") for k in range(1, repeat)]
    for link in links:
        if not link.exists():
            link.hardlink_to(path)
    return ours([path, *links])


def duckdb(path: str) -> Call:
    import duckdb

    connection = duckdb.connect()
    query = f"""
        SELECT LEAST(FLOOR(p * 10), 9)::INT AS bin, COUNT(*) AS count, {SUMS}
        FROM read_parquet('{path}') GROUP BY bin ORDER BY bin"""  # noqa: S608
    return lambda: connection.sql(query).fetchall()


def joint(path: str, engine: str = "") -> Call:
    """Scan two models jointly, from the file or from an engine that reads it."""
    import softcal as sc

    source: Any = path
    if engine == "duckdb":
        import duckdb

        connection = duckdb.connect()
        source = connection.read_parquet(path)
    if engine == "polars":
        import polars as pl

        source = pl.scan_parquet(path)
    return lambda: sc.scan(source, y_true="y", y_prob=["p", "q"])


# Joint sums of two models, in SQL of DuckDB and Spark. Infinite log losses are only counted.
_LOSS = "CASE WHEN {0} > 0 AND {0} < 1 THEN -(y * LN({0}) + (1 - y) * LN(1 - {0})) ELSE 0 END"
_JOINT_TERMS = [
    *(term.replace("p", name) for name in ("p", "q") for term in list(TERMS.values())[1:4]),
    "y", "y * (1 - y)", "(p - y) * (q - y)", "(p - q) * (p + q - 2 * y)",
    "POWER((p - q) * (p + q - 2 * y), 2)",
    *(_LOSS.format(name) for name in ("p", "q")),
    *(f"CASE WHEN {name} > 0 AND {name} < 1 THEN 0 ELSE 1 END" for name in ("p", "q")),
    f"POWER({_LOSS.format('p')} - ({_LOSS.format('q')}), 2)",
]  # fmt: skip
JOINT = f"""
    SELECT LEAST(CAST(FLOOR(p * 60) AS INT), 59) AS a, LEAST(CAST(FLOOR(q * 60) AS INT), 59) AS b,
    COUNT(*) AS count, {", ".join(f"SUM({term})" for term in _JOINT_TERMS)}
    FROM rows GROUP BY 1, 2"""  # noqa: S608
GROUPS = """
    WITH s AS (
        SELECT g, LEAST(CAST(FLOOR(p * 60) AS INT), 59) AS bin, SUM(p - y) AS d, COUNT(*) AS w
        FROM rows GROUP BY 1, 2
    )
    SELECT i.bin AS a, j.bin AS b, SUM(i.d * j.d), SUM(i.w * j.w)
    FROM s AS i JOIN s AS j ON i.g = j.g GROUP BY 1, 2"""


def joint_duckdb(path: str) -> Call:
    import duckdb

    connection = duckdb.connect()
    connection.read_parquet(path).create_view("rows")
    return lambda: connection.sql(JOINT).fetchall()


def polars(path: str) -> Call:
    import polars as pl

    y, p = pl.col("y"), pl.col("p")
    d = p - y
    bin_ = (p * 10).floor().clip(0, 9).cast(pl.Int32).alias("bin")
    terms = {"label": y, "residual": d, "residual_sq": d * d}
    terms |= {"prob_var": p * (1 - p), "label_var": y * (1 - y)}
    sums = [term.sum().alias(name) for name, term in terms.items()]
    lazy = pl.scan_parquet(path).group_by(bin_).agg(pl.len(), *sums)
    return lambda: lazy.collect(engine="streaming")


def arrays(rows: int) -> Call:
    import softcal as sc

    data = in_memory(rows)
    return lambda: sc.reliability(data["y"], data["p"])


def frame_of(engine: str, rows: int) -> Call:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    make: dict[str, Callable[[Any], Any]] = {
        "pandas": pd.DataFrame,
        "polars": pl.DataFrame,
        "arrow": pa.table,
    }
    return ours(make[engine](in_memory(rows)))


@contextmanager
def spark(path: str) -> Iterator[Any]:
    """Start the cluster of the tests and open the file there."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from spark_cluster import cluster

    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder), memory="3g") as made:
        yield made.session.read.parquet(path)


def spark_times(path: str) -> dict[str, float]:
    """Time our scan and a hand-written SQL aggregate in turns, in the same session."""
    with spark(path) as frame:
        query = f"""
            SELECT LEAST(CAST(FLOOR(p * 10) AS INT), 9) AS bin, COUNT(*) AS count, {SUMS}
            FROM rows GROUP BY 1"""  # noqa: S608
        return on_spark(frame, ours(frame), query)


def spark_joint_times(path: str) -> dict[str, dict[str, float]]:
    """Time two models jointly, and groups, against SQL that gives the main sums."""
    import softcal as sc

    with spark(path) as frame:
        return {
            "two models jointly": on_spark(
                frame, lambda: sc.scan(frame, y_true="y", y_prob=["p", "q"]), JOINT
            ),
            "groups": on_spark(
                frame, lambda: sc.scan(frame, y_true="y", y_prob="p", groups="g"), GROUPS
            ),
        }


def on_spark(frame: Any, call: Call, query: str) -> dict[str, float]:
    """Time a call and a query in turns; return the lowest of four runs."""
    frame.createOrReplaceTempView("rows")
    # A new query each time: Spark keeps the shuffled rows of an earlier one.
    calls = {"softcal": call, "Spark SQL": lambda: frame.sparkSession.sql(query).collect()}
    best = dict.fromkeys(calls, float("inf"))
    for turn in range(5):
        for name, one in calls.items():
            seconds = timed(one)[0]
            if turn:
                best[name] = min(best[name], seconds)
    return best


def spark_line(what: str, rows: int, times: dict[str, float]) -> str:
    ratio = times["softcal"] / times["Spark SQL"]
    return (
        f"Spark, {rows:,} rows of Parquet, {what}, two workers: softcal {times['softcal']:.2f} s, "
        f"Spark SQL by hand {times['Spark SQL']:.2f} s, ratio {ratio:.2f}"
    )


def timed(call: Call) -> tuple[float, float]:
    """Return elapsed seconds and processor seconds of all cores."""
    before, start = os.times(), time.perf_counter()
    call()
    seconds = time.perf_counter() - start
    after = os.times()
    return seconds, after.user + after.system - before.user - before.system


def peak_mb() -> int:
    """Return the peak memory of this process."""
    found = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text(encoding="ascii"))
    return int(found[1]) // 1024 if found else 0


CASES: dict[str, Callable[..., Call]] = {
    "files": of_files,
    "duckdb": duckdb,
    "groups": of_groups,
    "duckdb groups": duckdb_groups,
    "classes": of_classes,
    "duckdb classes": duckdb_classes,
    "polars": polars,
    "arrays": arrays,
    "frame": frame_of,
    "joint": joint,
    "joint duckdb": joint_duckdb,
}


def serve(case: str, arguments: list[Any]) -> None:
    """Run one case in this process: once per line of input, printing the times."""
    call = CASES[case](*arguments)
    for _ in sys.stdin:
        seconds, cpu = timed(call)
        print(json.dumps([seconds, cpu, peak_mb()]), flush=True)


class Child:
    """A process that runs one case on request."""

    def __init__(self, case: str, *arguments: Any) -> None:
        command = [sys.executable, __file__, "--serve", case, json.dumps(arguments)]
        self._process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.seconds, self.cpu, self.peak = float("inf"), float("inf"), 0

    def run(self, *, count: bool = True) -> None:
        """Run the case once; the first run is a warm-up and does not count."""
        assert self._process.stdin is not None  # noqa: S101
        assert self._process.stdout is not None  # noqa: S101
        self._process.stdin.write("run\n")
        self._process.stdin.flush()
        seconds, cpu, self.peak = json.loads(self._process.stdout.readline())
        if count:
            self.seconds, self.cpu = min(self.seconds, seconds), min(self.cpu, cpu)

    def stop(self) -> None:
        """End the process."""
        self._process.communicate()


def by_turns(cases: dict[str, tuple[Any, ...]], runs: int = 3) -> dict[str, Child]:
    """Run the cases in turns, each in its own process."""
    children = {name: Child(*case) for name, case in cases.items()}
    for run in range(runs + 1):
        for child in children.values():
            child.run(count=run > 0)
    for child in children.values():
        child.stop()
    return children


def table(title: str, children: dict[str, Child], console: Console) -> None:
    out = Table(title=title, title_justify="left")
    for name in ("", "seconds", "x softcal", "CPU seconds", "x softcal", "peak MB"):
        out.add_column(name, justify="left" if not name else "right")
    first = next(iter(children.values()))
    for name, child in children.items():
        clock = f"{child.seconds:.3f}", f"{child.seconds / first.seconds:.2f}"
        work = f"{child.cpu:.2f}", f"{child.cpu / first.cpu:.2f}"
        out.add_row(name, *clock, *work, f"{child.peak}")
    console.print(out)


def growth(folder: Path, largest: int, console: Console) -> None:
    """Time increasing numbers of rows; beyond the largest file, ten links to it."""
    out = Table(title="Cost by number of rows (softcal, Parquet)", title_justify="left")
    for name in ("rows", "seconds", "ns per row", "peak MB"):
        out.add_column(name, justify="right")
    for rows in (10**6, 10**7, 10**8, 10**9):
        size = min(rows, largest)
        path = folder / f"{size}.parquet"
        if not path.exists():
            make_file(path, size)
        found = by_turns({"": ("files", str(path), rows // size)}, runs=2)[""]
        out.add_row(f"{rows:,}", f"{found.seconds:.3f}", f"{found.seconds / rows * 1e9:.1f}",
                    f"{found.peak}")  # fmt: skip
    console.print(out)


def groups_table(folder: Path, rows: int, groups: int, console: Console) -> None:
    """Time groups of rows and a hand-written group-by with a join; remove the file at once."""
    path = folder / "groups.parquet"
    make_groups_file(path, rows, groups)
    cases = {"softcal, 60 bins": "groups", "DuckDB by hand, 10 bins": "duckdb groups"}
    found = by_turns({name: (case, str(path)) for name, case in cases.items()}, runs=1)
    path.unlink()
    table(f"{groups:,} groups in {rows:,} rows of Parquet", found, console)


def classes_table(folder: Path, rows: int, classes: int, console: Console) -> None:
    """Time the predicted class and each class, and a hand-written group-by."""
    path = folder / "classes.parquet"
    make_classes_file(path, rows, classes)
    cases: dict[str, tuple[Any, ...]] = {
        "softcal, 648 bins": ("classes", str(path)),
        "DuckDB by hand, 10 bins": ("duckdb classes", str(path), classes),
    }
    found = by_turns(cases)
    path.unlink()
    table(f"{classes} classes in {rows:,} rows of Parquet", found, console)


def two_models(folder: Path, rows: int, console: Console) -> None:
    """Compare two models jointly: from the file, from engines, and with SQL in DuckDB."""
    path = folder / f"joint{rows}.parquet"
    make_joint_file(path, rows)
    cases = {
        "softcal": ("joint", str(path)),
        "DuckDB by hand": ("joint duckdb", str(path)),
        "softcal, of a DuckDB relation": ("joint", str(path), "duckdb"),
        "softcal, of a lazy Polars frame": ("joint", str(path), "polars"),
    }
    table(f"{rows:,} rows of Parquet, two models jointly, 60 bins", by_turns(cases), console)
    path.unlink()


def make_csv_file(path: Path, rows: int) -> None:
    """Write a number, two predictions to six digits, and a soft label to two, 29 bytes per row."""
    import pyarrow as pa
    from pyarrow import csv

    rng = np.random.default_rng(0)
    p = rng.random(rows).round(6)
    q = np.clip(p + rng.normal(0, 0.1, rows), 0, 1).round(6)
    y = np.clip(p + rng.normal(0, 0.2, rows), 0, 1).round(2)
    csv.write_csv(pa.table({"id": np.arange(rows), "p": p, "q": q, "y": y}), path)


def csv_processes(folder: Path, rows: int, console: Console, runs: int = 5) -> None:
    """Time whole processes that read a CSV file: the command line, and a query in DuckDB."""
    path = folder / "rows.csv"
    make_csv_file(path, rows)
    query = f"""
        SELECT LEAST(FLOOR(p * 10), 9)::INT AS bin, COUNT(*) AS count, {SUMS}
        FROM read_csv('{path}') GROUP BY bin"""  # noqa: S608
    columns = [str(path), "--label", "y", "--pred", "p"]
    commands = {
        "DuckDB query": ["-c", f"import duckdb; print(duckdb.sql({query!r}).fetchall())"],
        "softcal score": ["-m", "softcal", "score", *columns],
        "softcal report": ["-m", "softcal", "report", *columns, "-o", str(folder / "page.html")],
    }
    # Compiled bytecode is kept in the folder, as an installed package has it.
    kept = {"PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "PYTHONDONTWRITEBYTECODE": ""}
    best: dict[str, tuple[float, float]] = {}
    for run in range(runs + 1):
        for name, arguments in commands.items():
            before, start = os.times(), time.perf_counter()
            subprocess.run(  # noqa: S603
                [sys.executable, *arguments],
                env=os.environ | kept,
                stdout=subprocess.DEVNULL,
                check=True,
            )
            seconds, after = time.perf_counter() - start, os.times()
            work = (after.children_user + after.children_system
                    - before.children_user - before.children_system)  # fmt: skip
            if run:
                least = best.get(name, (seconds, work))
                best[name] = min(seconds, least[0]), min(work, least[1])
    path.unlink()
    first = best["DuckDB query"]
    out = Table(title=f"{rows:,} rows of CSV, whole processes", title_justify="left")
    for name in ("", "seconds", "x DuckDB", "CPU seconds", "x DuckDB"):
        out.add_column(name, justify="left" if not name else "right")
    for name, (seconds, work) in best.items():
        ratios = f"{seconds / first[0]:.2f}", f"{work / first[1]:.2f}"
        out.add_row(name, f"{seconds:.2f}", ratios[0], f"{work:.2f}", ratios[1])
    console.print(out)


def plain_tables(folder: Path, path: Path, rows: int, console: Console) -> None:
    """Time one table: from a file, from frames in memory, and as the file grows."""
    cases = {"softcal": "files", "DuckDB by hand": "duckdb", "Polars streaming by hand": "polars"}
    found = by_turns({name: (case, str(path)) for name, case in cases.items()})
    table(f"{rows:,} rows of Parquet, 10 bins", found, console)
    memory: dict[str, tuple[Any, ...]] = {"arrays": ("arrays", IN_MEMORY_ROWS)}
    memory |= {
        engine: ("frame", engine, IN_MEMORY_ROWS) for engine in ("pandas", "polars", "arrow")
    }
    table(f"{IN_MEMORY_ROWS:,} rows in memory, 10 bins", by_turns(memory, runs=9), console)
    growth(folder, rows, console)


def main() -> None:  # noqa: C901
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=10**8)
    parser.add_argument("--joint-rows", type=int, default=10**8, help="of two models jointly")
    parser.add_argument("--spark-rows", type=int, default=10**7, help="of joint sums and groups")
    parser.add_argument("--skip-spark", action="store_true")
    parser.add_argument("--groups", type=int, default=10**6)
    parser.add_argument("--class-rows", type=int, default=10**7, help="of many classes")
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--csv-rows", type=int, default=10**7, help="of CSV, whole processes")
    kinds = ["plain", "csv", "classes", "groups", "joint", "spark"]
    parser.add_argument("--only", choices=kinds)
    parser.add_argument("--serve", nargs=2, metavar=("CASE", "ARGUMENTS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve[0], json.loads(options.serve[1]))
        return
    console = Console(width=100)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts = [options.only] if options.only else kinds
        path = folder / f"{options.rows}.parquet"
        if "plain" in parts or "spark" in parts:
            make_file(path, options.rows)
        if "plain" in parts:
            plain_tables(folder, path, options.rows, console)
        if "csv" in parts:
            csv_processes(folder, options.csv_rows, console)
        if "classes" in parts:
            classes_table(folder, options.class_rows, options.classes, console)
        if "groups" in parts:
            groups_table(folder, options.rows, options.groups, console)
        if "joint" in parts:
            two_models(folder, options.joint_rows, console)
        if "spark" in parts and not options.skip_spark:
            console.print(spark_line("10 bins", options.rows, spark_times(str(path))))
            joint_path = folder / "spark.parquet"
            make_joint_file(joint_path, options.spark_rows)
            for what, times in spark_joint_times(str(joint_path)).items():
                console.print(spark_line(what, options.spark_rows, times))


if __name__ == "__main__":
    main()
