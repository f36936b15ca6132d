"""The cases of `benchmarks.performance` that read many rows, each in a process of its own.

    python -m benchmarks.scale CASE ARGUMENTS

runs one case once per line of its input and prints seconds, processor seconds of all cores, and the
peak memory of the process in MB (Linux only). `by_turns` starts such processes.

Queries by hand compute the main sums of the same rows: count, label, residual, its square, and the
variances of prediction and label. They do not validate values, and put a few predictions on an edge
into the wrong bin.
"""

from __future__ import annotations

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

Call = Callable[[], object]
ROOT = Path(__file__).parent.parent
TERMS = {
    "label": "y",
    "residual": "p - y",
    "residual_sq": "(p - y) * (p - y)",
    "prob_var": "p * (1 - p)",
    "label_var": "y * (1 - y)",
}
SUMS = ", ".join(f"SUM({term}) AS {name}" for name, term in TERMS.items())
COUNTRIES = [f"country {k}" for k in range(20)]
ROWS_PER_PATIENT, VOTES_PER_ITEM, RATERS = 100, 5, 1000


# Files. Row groups have 2^20 rows, as PyArrow writes them.


def _written(path: Path, rows: int, block: Callable[[int, int], Any], size: int = 1 << 20) -> None:
    """Write a Parquet file, one row group at a time; `block` gets the first row and a number."""
    import pyarrow.parquet as pq

    writer = None
    for start in range(0, rows, size):
        table = block(start, min(size, rows - start))
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None  # noqa: S101
    writer.close()


def make_rows(path: Path, rows: int) -> None:
    """Write soft labels, two models, countries, patients of 100 rows, and counts of votes."""
    import pyarrow as pa

    rng = np.random.default_rng(0)
    names = pa.array(COUNTRIES)
    patients = max(rows // ROWS_PER_PATIENT, 1)

    def block(_start: int, size: int) -> Any:
        y = rng.random(size)
        p, q = (np.clip(y + rng.normal(0, sd, size), 0, 1) for sd in (0.1, 0.2))
        yes = rng.binomial(VOTES_PER_ITEM, y).astype(np.int32)
        country = rng.integers(0, len(names), size, dtype=np.int32)
        return pa.table({
            "y": y, "p": p, "q": q,
            "country": pa.DictionaryArray.from_arrays(country, names).cast(pa.string()),
            "patient": rng.integers(0, patients, size),
            "yes": yes, "no": VOTES_PER_ITEM - yes,
        })  # fmt: skip

    _written(path, rows, block)


def make_votes(path: Path, rows: int) -> None:
    """Write one vote per row: five per item, of different raters out of 1,000."""
    import pyarrow as pa

    rng = np.random.default_rng(0)
    p = rng.random(-(-rows // VOTES_PER_ITEM))
    first = rng.integers(0, RATERS, p.size)

    def block(start: int, size: int) -> Any:
        row = np.arange(start, start + size)
        item = row // VOTES_PER_ITEM
        rater = (first[item] + row % VOTES_PER_ITEM * 7) % RATERS
        vote = (rng.random(size) < p[item]).astype(np.int8)
        return pa.table({"item": item, "rater": rater, "vote": vote, "p": p[item]})

    _written(path, rows, block)


def make_classes(path: Path, rows: int, classes: int, *, lists: bool = False) -> None:
    """Write class numbers, and one column of predictions per class or one column of lists."""
    import pyarrow as pa

    rng = np.random.default_rng(0)

    def block(_start: int, size: int) -> Any:
        p = rng.standard_exponential((size, classes)) ** 2
        p /= p.sum(axis=1, keepdims=True)
        label = (p.cumsum(axis=1) < rng.random((size, 1))).sum(axis=1).clip(max=classes - 1)
        if lists:
            column = pa.FixedSizeListArray.from_arrays(p.ravel(), classes).cast(
                pa.list_(pa.float64())
            )
            return pa.table({"class": label, "prob": column})
        return pa.table({"class": label, **{f"prob_{c}": p[:, c] for c in range(classes)}})

    _written(path, rows, block, size=max(min(1 << 20, (1 << 22) // classes), 1))


def make_csv(path: Path, rows: int) -> None:
    """Write a number, two predictions to six digits, and a soft label to two, 29 bytes per row."""
    import pyarrow as pa
    from pyarrow import csv

    rng = np.random.default_rng(0)
    p = rng.random(rows).round(6)
    q = np.clip(p + rng.normal(0, 0.1, rows), 0, 1).round(6)
    y = np.clip(p + rng.normal(0, 0.2, rows), 0, 1).round(2)
    csv.write_csv(pa.table({"id": np.arange(rows), "p": p, "q": q, "y": y}), path)


def in_memory(rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    y = rng.random(rows)
    return {"y": y, "p": np.clip(y + rng.normal(0, 0.1, rows), 0, 1)}


# Calls of softcal


def scanned(kind: str) -> dict[str, Any]:
    """Return the arguments of `scan`."""
    import softcal as sc

    arguments: dict[str, dict[str, Any]] = {
        "plain": {"y_true": "y", "y_prob": "p"},
        "by": {"y_true": "y", "y_prob": "p", "by": "country"},
        "groups": {"y_true": "y", "y_prob": "p", "groups": "patient"},
        "two models": {"y_true": "y", "y_prob": ["p", "q"]},
        "votes": {"y_true": sc.Counts(["no", "yes"]), "y_prob": "p"},
        "raters": {
            "y_true": sc.RawVotes("vote", item="item", rater="rater", positive=1, raters=True),
            "y_prob": "p",
        },
        "classes": {"y_true": sc.Classes("class"), "y_prob": {"model": "prob_*"}},
        "lists": {"y_true": sc.Classes("class"), "y_prob": {"model": "prob"}},
    }
    return arguments[kind]


def scan(kind: str, path: str) -> Call:
    import softcal as sc

    return lambda: sc.scan(path, **scanned(kind))


def arrays(rows: int) -> Call:
    import softcal as sc

    data = in_memory(rows)
    return lambda: sc.reliability(data["y"], data["p"])


def frame(engine: str, rows: int) -> Call:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    import softcal as sc

    make: dict[str, Callable[[Any], Any]] = {
        "pandas": pd.DataFrame,
        "Polars": pl.DataFrame,
        "Arrow": pa.table,
    }
    data = make[engine](in_memory(rows))
    return lambda: sc.scan(data, y_true="y", y_prob="p")


# Queries by hand


def table_query(label: str = "y", keys: str = "", more: str = "", bins: int = 10) -> str:
    """Return the query of one table, or of one per value of the keys."""
    sums = re.sub(r"\by\b", f"({label})", SUMS)
    return f"""
        SELECT {keys} LEAST(CAST(FLOOR(p * {bins}) AS INT), {bins - 1}) AS bin,
        COUNT(*) AS count, {sums} {more} FROM rows GROUP BY ALL"""  # noqa: S608


# Sums of two models in pairs of bins. Infinite log losses are only counted.
_LOSS = "CASE WHEN {0} > 0 AND {0} < 1 THEN -(y * LN({0}) + (1 - y) * LN(1 - {0})) ELSE 0 END"
_PAIR_TERMS = [
    *(term.replace("p", name) for name in ("p", "q") for term in list(TERMS.values())[1:4]),
    "y", "y * (1 - y)", "(p - y) * (q - y)", "(p - q) * (p + q - 2 * y)",
    "POWER((p - q) * (p + q - 2 * y), 2)",
    *(_LOSS.format(name) for name in ("p", "q")),
    *(f"CASE WHEN {name} > 0 AND {name} < 1 THEN 0 ELSE 1 END" for name in ("p", "q")),
    f"POWER({_LOSS.format('p')} - ({_LOSS.format('q')}), 2)",
]  # fmt: skip
TWO_MODELS = f"""
    SELECT LEAST(CAST(FLOOR(p * 60) AS INT), 59) AS a, LEAST(CAST(FLOOR(q * 60) AS INT), 59) AS b,
    COUNT(*) AS count, {", ".join(f"SUM({term})" for term in _PAIR_TERMS)}
    FROM rows GROUP BY 1, 2"""  # noqa: S608
# Sums of each group per bin, multiplied: 60 bins, as softcal has.
GROUPS = """
    WITH s AS (
        SELECT patient, LEAST(CAST(FLOOR(p * 60) AS INT), 59) AS bin, SUM(p - y) AS d,
        COUNT(*) AS w FROM rows GROUP BY 1, 2
    )
    SELECT i.bin AS a, j.bin AS b, SUM(i.d * j.d), SUM(i.w * j.w)
    FROM s AS i JOIN s AS j ON i.patient = j.patient GROUP BY 1, 2"""
# The share of each item's votes, and the sums of each rater per bin, multiplied.
_ITEMS = "SELECT item, MAX(p) AS p, AVG(vote) AS y, COUNT(*) AS m FROM rows GROUP BY item"
RATERS_QUERY = f"""
    WITH s AS (
        SELECT rater, LEAST(CAST(FLOOR(r.p * 60) AS INT), 59) AS bin,
        SUM((r.p - vote) / m) AS d, SUM(1 / m) AS w
        FROM rows AS r JOIN ({_ITEMS}) AS i ON r.item = i.item GROUP BY 1, 2
    )
    SELECT i.bin AS a, j.bin AS b, SUM(i.d * j.d), SUM(i.w * j.w)
    FROM s AS i JOIN s AS j ON i.rater = j.rater GROUP BY 1, 2"""  # noqa: S608


def classes_query(classes: int) -> str:
    """Return the query of the predicted class and of each class: 10 bins, softcal has 648."""
    names = [f"prob_{c}" for c in range(classes)]
    top = " ".join(f"WHEN p = {name} THEN CAST(class = {c} AS INT)" for c, name in enumerate(names))
    each = [
        f"SELECT {c} AS target, {name} AS p, CAST(class = {c} AS DOUBLE) AS y FROM wide"  # noqa: S608
        for c, name in enumerate(names)
    ]
    return f"""
        WITH wide AS (SELECT *, GREATEST({", ".join(names)}) AS p FROM rows),
        long AS (SELECT -1 AS target, p, CAST(CASE {top} END AS DOUBLE) AS y FROM wide
                 UNION ALL {" UNION ALL ".join(each)})
        SELECT target, LEAST(FLOOR(p * 10), 9)::INT AS bin, COUNT(*) AS count, {SUMS}
        FROM long GROUP BY 1, 2"""  # noqa: S608


QUERIES: dict[str, list[str]] = {
    "plain": [table_query()],
    "by": [table_query(keys="country,")],
    "groups": [table_query(bins=60), GROUPS],
    "two models": [TWO_MODELS],
    "votes": [table_query(f"yes / {VOTES_PER_ITEM}", more=", SUM(1 / (yes + no))")],
    "raters": [
        table_query(more=", SUM(1 / m)", bins=60).replace("FROM rows", f"FROM ({_ITEMS})"),
        RATERS_QUERY,
    ],
}


def duckdb(kind: str, path: str, classes: int = 0) -> Call:
    import duckdb

    connection = duckdb.connect()
    connection.read_parquet(path).create_view("rows")
    queries = [classes_query(classes)] if classes else QUERIES[kind]
    return lambda: [connection.sql(query).fetchall() for query in queries]


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


# Spark


@contextmanager
def spark(path: str) -> Iterator[Any]:
    """Start the cluster of the tests and open the file there."""
    sys.path.insert(0, str(ROOT / "tests"))
    from spark_cluster import cluster

    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder), memory="3g") as made:
        yield made.session.read.parquet(path)


def spark_times(path: str, kinds: list[str], turns: int) -> dict[str, dict[str, float]]:
    """Time `scan` and the query by hand in turns, in the same session."""
    import softcal as sc

    with spark(path) as rows:
        rows.createOrReplaceTempView("rows")

        def by_hand(kind: str) -> Call:
            # New queries each time: Spark keeps the shuffled rows of an earlier one.
            return lambda: [rows.sparkSession.sql(query).collect() for query in QUERIES[kind]]

        def ours(kind: str) -> Call:
            return lambda: sc.scan(rows, **scanned(kind))

        found: dict[str, dict[str, float]] = {}
        for kind in kinds:
            calls = {"softcal": ours(kind), "query": by_hand(kind)}
            best = dict.fromkeys(calls, float("inf"))
            for turn in range(turns + 1):
                for name, call in calls.items():
                    seconds = timed(call)[0]
                    best[name] = min(best[name], seconds) if turn else best[name]
            found[kind] = best
        return found


# Processes


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
    "scan": scan,
    "DuckDB": duckdb,
    "Polars": polars,
    "arrays": arrays,
    "frame": frame,
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
        command = [sys.executable, "-m", "benchmarks.scale", case, json.dumps(arguments)]
        self._process = subprocess.Popen(  # noqa: S603
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.seconds, self.cpu, self.peak = float("inf"), float("inf"), 0

    def run(self, *, count: bool = True) -> None:
        """Run the case once; a run that does not count is a warm-up."""
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


Found = dict[str, dict[str, float]]


def by_turns(cases: dict[str, tuple[Any, ...]], runs: int = 3, warm_ups: int = 1) -> Found:
    """Run the cases in turns, each in its own process; return lowest times and peak memory."""
    children = {name: Child(*case) for name, case in cases.items()}
    for run in range(warm_ups + runs):
        for child in children.values():
            child.run(count=run >= warm_ups)
    for child in children.values():
        child.stop()
    return {
        name: {"seconds": child.seconds, "cpu": child.cpu, "mb": child.peak}
        for name, child in children.items()
    }


def processes(
    commands: dict[str, list[str]], runs: int, environment: dict[str, str]
) -> dict[str, dict[str, float]]:
    """Start Python with each command in turns; return the lowest times, after a warm-up."""
    best = {name: {"seconds": float("inf"), "cpu": float("inf")} for name in commands}
    for run in range(runs + 1):
        for name, arguments in commands.items():
            before, start = os.times(), time.perf_counter()
            subprocess.run(  # noqa: S603
                [sys.executable, *arguments], env=os.environ | environment, check=True,
                stdout=subprocess.DEVNULL,
            )  # fmt: skip
            seconds, after = time.perf_counter() - start, os.times()
            cpu = (after.children_user + after.children_system
                   - before.children_user - before.children_system)  # fmt: skip
            if run:
                least = best[name]
                best[name] = {
                    "seconds": min(seconds, least["seconds"]), "cpu": min(cpu, least["cpu"])
                }  # fmt: skip
    return best


if __name__ == "__main__":
    serve(sys.argv[1], json.loads(sys.argv[2]))
