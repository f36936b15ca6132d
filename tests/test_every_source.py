"""Every source gives the same set of tables, for every kind of label and option."""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st
from same_tables import assert_same_set, assert_same_table
from strategies import UNIT

import softcal as sc
from refusals import refusal
from softcal._validation import rules
from softcal._validation.days import CLEAR
from softcal.table.build import tables_of_models
from workbooks import write_workbook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# Spark's Python code leaves sockets to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]

CLASSES = ("cat", "dog", 'o\'wl, "eagle" `x`')
SEGMENT, GROUP = 'where. `ever` "it" is, $x', "pati.ent `id`"
MODEL = "q.model `2`"
N = 400


def _edges(rng: np.random.Generator) -> Any:
    """Return predictions on and next to edges of bins, at 0 and 1, and with ties."""
    edges = np.concatenate([np.arange(11) / 10, np.arange(61) / 60])
    near = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, 1)])
    return np.concatenate([near, np.round(rng.random(N - near.size), 2)])


def _fixture() -> pa.Table:
    rng = np.random.default_rng(15)
    p = _edges(rng)
    y = np.round(rng.random(N) * 4) / 4  # including exactly 0 and 1
    w = rng.random(N)
    w[rng.random(N) < 0.1] = 0
    group = rng.integers(0, 40, N)
    place = np.array(["north", None, "1", "nan", "two\twords"], dtype=object)[rng.integers(0, 5, N)]
    probs = rng.dirichlet([1, 1, 1], N)
    probs[:50] = [0.4, 0.4, 0.2]  # ties: the first of the highest is predicted
    probs[50:60] = [0, 0, 1]
    other = rng.dirichlet([3, 1, 1], N)
    votes = rng.multinomial(4, [0.5, 0.3, 0.2], N)
    shares = votes / 4
    low = np.minimum(y, 0.9) * 0.9
    gaps = {name: rng.random(N) < 0.1 for name in ("y", "p", "w", "group", "word", "list")}
    word = np.array(["yes", "no", "Yes"], dtype=object)[rng.integers(0, 3, N)]
    columns: dict[str, Any] = {
        "y": y,
        "p": p,
        MODEL: rng.permutation(p),
        "w": w,
        "m": rng.choice([1, 4, 8], N),
        SEGMENT: pa.array(place, pa.string()),
        "kind": np.array(["a", "b"])[rng.integers(0, 2, N)],
        GROUP: np.char.add("g", group.astype(str)),
        "number": group,
        "low": low,
        "high": low + 0.1,
        "species": np.array(CLASSES)[rng.integers(0, 3, N)],
        "species number": rng.integers(0, 3, N),
        "share list": pa.array(shares.tolist(), pa.list_(pa.float64())),
        "vote list": pa.array(votes.tolist(), pa.list_(pa.int64())),
        "prob list": pa.array(probs.tolist(), pa.list_(pa.float64())),
        "id": np.arange(N),
        "own": (rng.random(N) < p).astype(float),  # the label of the other model
    }
    days = np.datetime64("2026-01-25") + rng.integers(0, 30, N)
    columns |= {
        "day": np.datetime_as_string(days),
        "us day": np.array([f"{d.month}/{d.day}/{d.year}" for d in days.tolist()]),
        "time": days.astype("datetime64[us]") + rng.integers(0, 86_400_000_000, N),
        "y pct": 100 * y,
        "p pct": 100 * p,
        "z": rng.normal(0, 3, N),
        "log p": np.log(rng.random(N)),  # engines round the exponential differently
        "word": word,
        "gap y": pa.array(y, mask=gaps["y"]),
        "gap p": pa.array(p, mask=gaps["p"]),
        "gap w": pa.array(w, mask=gaps["w"]),
        "gap group": pa.array(columns[GROUP], mask=gaps["group"]),
        "gap word": pa.array(word, pa.string(), mask=gaps["word"]),
        "gap list": pa.array(
            [None if gap else list(row) for gap, row in zip(gaps["list"], probs, strict=True)],
            pa.list_(pa.float64()),
        ),
    }
    for k, name in enumerate(CLASSES):
        columns[f"pct_{name}"] = 100 * probs[:, k]
        columns[f"logit_{name}"] = rng.normal(0, 2, N)
        columns[f"log_{name}"] = np.log(np.maximum(probs[:, k], 1e-300))
        columns[f"share_{name}"] = shares[:, k]
        columns[f"votes_{name}"] = votes[:, k]
        columns[f"prob_{name}"] = probs[:, k]
        columns[f"other_{name}"] = other[:, k]
    return pa.table(columns)


TABLE = _fixture()
LISTS = ["share list", "vote list", "prob list", "gap list"]


def _long() -> pa.Table:
    """Return one row per item and model. Models have their own labels, and some items are missing."""
    parts = [
        TABLE.select(["id", "p", "y", "w", "kind"]).slice(5),
        TABLE.select(["id", MODEL, "own", "w", "kind"]).slice(0, N - 9),
    ]
    named = [
        part.rename_columns(["id", "p", "y", "w", "kind"]).append_column(
            "model", pa.array([name] * part.num_rows)
        )
        for part, name in zip(parts, ("b", "a"), strict=True)
    ]
    return pa.concat_tables(named).take(np.random.default_rng(3).permutation(2 * N - 14))


def _votes() -> pa.Table:
    rng = np.random.default_rng(18)
    items = np.repeat(np.arange(N), rng.integers(1, 5, N))
    first = np.append(True, items[1:] != items[:-1])
    start = np.maximum.accumulate(np.where(first, np.arange(items.size), 0))
    rater = (items * 7 + 3 * (np.arange(items.size) - start)) % 20  # different ones for an item
    answer = np.array(CLASSES)[rng.integers(0, 3, items.size)]
    votes = {"id": items, "rater": np.char.add("r", rater.astype(str)), "answer": answer}
    return pa.table(votes).take(rng.permutation(items.size))


LONG, VOTES = _long(), _votes()
BALLOTS = VOTES.join(TABLE.select(["id", "p", MODEL, "w", "kind"]), "id").combine_chunks()
TWO = {"one": "prob_*", "two": "other_*"}
ONE: dict[str, Any] = {"y_true": "y", "y_prob": "p"}
PAIR: dict[str, Any] = {"y_true": "y", "y_prob": ["p", MODEL]}
OWN: dict[str, Any] = {"y_prob": {"a": ("p", "y"), "b": (MODEL, "own")}}
BY = [SEGMENT, "kind"]
SHARED = sc.RawVotes("answer", item="id", source=VOTES, rater="rater", positive="dog", raters=True)
MATCHED = sc.Long("p", model="model", item="id", drop_unmatched=True)
PERCENT: Any = {"scale": "percent"}


def _of_names(**options: Any) -> sc.Classes:
    return sc.Classes("species", **options)


CAPABILITIES: dict[str, dict[str, Any]] = {
    "plain": ONE,
    "one bin": {**ONE, "bins": 1},
    "7 bins": {**ONE, "bins": 7},
    "3600 bins": {**ONE, "bins": 3600},
    "unequal bins": {**ONE, "bins": [0, 0.1, 0.29, 0.3, 1]},
    "by": {**ONE, "by": BY},
    "by numbers of votes": {"y_true": sc.Shares("y", votes="m"), "y_prob": "p", "by": "m"},
    "ranges": {**ONE, "by": ["kind", sc.Cut("z", 5), sc.Cut("gap w", 3), sc.Cut("number", 4)]},
    "given ranges": {**ONE, "by": ["kind", sc.Cut("z", [-1.5, 0, 2]), sc.Cut("gap w", [1])]},
    "days": {**ONE, "by": [sc.Days("day", "week"), "kind"]},
    "times": {**ONE, "by": sc.Days("time", "month"), "sample_weight": "w"},
    "formatted days": {**ONE, "by": sc.Days("us day", format="%m/%d/%Y")},
    "weights": {**ONE, "sample_weight": "w", "by": "kind"},
    "votes": {"y_true": sc.Shares("y", votes="m"), "y_prob": "p", "sample_weight": "w"},
    "one number of votes": {"y_true": sc.Shares("y", votes=4), "y_prob": "p"},
    "counts": {"y_true": sc.Counts("votes_*", positive="dog"), "y_prob": "p", "by": "kind"},
    "pairs": PAIR,
    "pairs by": {**PAIR, "by": BY, "sample_weight": "w"},
    "own labels": OWN,
    "own labels by": {**OWN, "by": BY, "sample_weight": "w"},
    "own labels with groups": {**OWN, "groups": GROUP},
    "long": {"rows": LONG, "y_true": "y", "y_prob": MATCHED},
    "long by": {
        "rows": LONG, "y_true": "y", "y_prob": MATCHED,
        "by": "kind", "sample_weight": "w",
    },
    "long without items": {"rows": LONG, "y_true": "y", "y_prob": sc.Long("p", model="model")},
    "a source per model": {
        "rows": {"one": TABLE, "two": TABLE.slice(7)}, "y_true": "y",
        "y_prob": sc.Long("p", item="id", drop_unmatched=True),
    },
    "groups": {**ONE, "groups": GROUP, "sample_weight": "w"},
    "groups by": {**ONE, "groups": "number", "by": BY},
    "pairs of groups by": {**PAIR, "groups": GROUP, "by": BY, "sample_weight": "w"},
    "raw votes": {**PAIR, "y_true": SHARED, "by": "kind", "sample_weight": "w"},
    "raw votes in the rows": {
        **PAIR, "rows": BALLOTS, "y_true": replace(SHARED, source=None), "by": "kind",
        "sample_weight": "w",
    },
    "raw votes with groups": {
        **ONE, "y_true": replace(SHARED, raters=False, rater=None), "groups": GROUP,
    },
    "posteriors": {
        **ONE, "y_true": replace(SHARED, raters=False, aggregate="dawid-skene"),
    },
    "raw votes of classes": {
        "y_true": sc.RawVotes("answer", item="id", source=VOTES), "y_prob": TWO, "by": "kind",
    },
    "classes": {"y_true": sc.Classes("share_*"), "y_prob": TWO},
    "classes by": {
        "y_true": sc.Classes("share_*"), "y_prob": TWO, "by": BY, "sample_weight": "w",
    },
    "classes of lists": {"y_true": sc.Classes("share list"), "y_prob": {"one": "prob list"}},
    "classes of counts": {"y_true": sc.Classes("votes_*", counts=True), "y_prob": TWO},
    "classes of lists of counts": {
        "y_true": sc.Classes("vote list", counts=True, names=CLASSES),
        "y_prob": {"one": "prob list"},
    },
    "classes of shares of votes": {"y_true": sc.Classes("share_*", votes=4), "y_prob": TWO},
    "classes of names": {"y_true": _of_names(votes="m"), "y_prob": TWO, "by": "kind"},
    "classes of numbers": {
        "y_true": sc.Classes("species number", names=["0", "1", "2"]), "y_prob": TWO,
    },
    "classes with groups": {"y_true": _of_names(), "y_prob": TWO, "groups": GROUP, "by": "kind"},
    "ordered classes": {
        "y_true": sc.Classes("votes_*", counts=True, ordered=True), "y_prob": TWO,
    },
    "ordered classes by": {
        "y_true": sc.Classes("share_*", ordered=True), "y_prob": TWO, "by": BY,
        "sample_weight": "w",
    },
    "ordered classes with groups": {
        "y_true": _of_names(ordered=True), "y_prob": TWO, "groups": GROUP, "by": "kind",
    },
    "bounds": {"y_true": sc.Bounds("low", "high"), "y_prob": ["p", MODEL]},
    "bounds by": {
        "y_true": sc.Bounds("low", "high"), "y_prob": "p", "by": BY, "sample_weight": "w",
    },
    "percentages": {
        "y_true": sc.Column("y pct", **PERCENT), "y_prob": sc.Column("p pct", **PERCENT),
    },
    "logits": {"y_true": "y", "y_prob": sc.Column("z", scale="logit"), "sample_weight": "w"},
    "log-probabilities": {
        "y_true": "y", "y_prob": sc.Column("log p", scale="logprob"), "by": "kind",
    },
    "words": {
        "y_true": sc.Column("word", positive="yes"), "y_prob": ["p", MODEL], "by": ["word", "kind"],
    },
    "number as a word": {"y_true": sc.Column("number", positive=7), "y_prob": "p"},
    "dropped": {
        "y_true": "gap y", "y_prob": ["gap p", "p"], "sample_weight": "gap w", "by": BY,
        "groups": "gap group", "drop_missing": True,
    },
    "nothing to drop": {**ONE, "drop_missing": True},
    "dropped words": {
        "y_true": sc.Column("gap word", positive="yes"), "y_prob": "gap p", "drop_missing": True,
    },
    "dropped classes": {
        "y_true": sc.Classes("gap word", names=["yes", "no", "Yes"]), "y_prob": TWO,
        "drop_missing": True,
    },
    "dropped lists": {
        "y_true": sc.Classes("share list"), "y_prob": {"one": "gap list"}, "drop_missing": True,
    },
    "percentages of classes": {
        "y_true": _of_names(), "y_prob": {"one": sc.Classes("pct_*", **PERCENT)},
    },
    "logits of classes": {
        "y_true": _of_names(), "y_prob": {"one": sc.Classes("logit_*", scale="logit")},
        "by": "kind",
    },
    "log-probabilities of classes": {
        "y_true": _of_names(), "y_prob": {"one": sc.Classes("log_*", scale="logprob")},
    },
}  # fmt: skip
# Dask plans some queries for many seconds, so it gets each kind of query once.
DASK = (
    "plain", "ranges", "days", "counts", "own labels by", "long by", "pairs of groups by",
    "raw votes", "raw votes of classes", "classes of lists", "classes of shares of votes",
    "ordered classes by", "logits", "words", "dropped",
)  # fmt: skip
NEED_LISTS = [name for name, options in CAPABILITIES.items() if " list'" in str(options)]


def scanned(capability: str, make: Callable[[pa.Table], Any], rows: Any = None) -> sc.TableSet:
    """Scan the rows of a capability, and its votes, in sources of one kind."""
    options = dict(CAPABILITIES[capability])
    rows = options.pop("rows", TABLE) if rows is None else rows
    label = options.get("y_true")
    if isinstance(label, sc.RawVotes) and label.source is not None:
        options["y_true"] = replace(label, source=make(label.source))
    source = {k: make(v) for k, v in rows.items()} if isinstance(rows, dict) else make(rows)
    return sc.scan(source, **options)


def _pandas(table: pa.Table) -> pd.DataFrame:
    """Return a frame with lists as Arrow types, because Dask treats objects as text."""
    frame = table.drop_columns([name for name in LISTS if name in table.column_names]).to_pandas()
    for name in LISTS:
        if name in table.column_names:
            frame[name] = pd.Series(table[name].to_pandas(types_mapper=pd.ArrowDtype))
    return frame


def _nullable(table: pa.Table) -> pd.DataFrame:
    frame = _pandas(table)
    plain = [name for name in frame if name not in LISTS]
    return pd.concat([frame[plain].convert_dtypes(), frame.drop(columns=plain)], axis=1)


def _chunked(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table.slice(0, 7), table.slice(7, 0), table.slice(7)])


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    settings = {
        "spark.driver.host": "127.0.0.1", "spark.driver.memory": "640m",
        "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
        "spark.default.parallelism": "3", "spark.sql.shuffle.partitions": "3",
        "spark.log.level": "ERROR",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        # Several batches per partition.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
    }  # fmt: skip
    builder = SparkSession.builder.master("local[2]").appName("softcal tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


SOURCES = [
    "pandas", "pandas nullable", "polars", "arrow", "dataset", "stream", "iterator", "parquet",
    "csv", "json lines", "json rows", "json columns", "xlsx", "arrow file", "duckdb", "polars lazy",
    "dask", "spark", "ibis",
]  # fmt: skip
READ_ONCE = ("stream", "iterator")
FILES = ("parquet", "csv", "json lines", "json rows", "json columns", "xlsx", "arrow file")
ENGINES = ("duckdb", "polars lazy", "dask", "spark", "ibis")
WITHOUT_LISTS = ("csv", "xlsx")


def _plain(table: pa.Table) -> pa.Table:
    return table.drop_columns([name for name in LISTS if name in table.column_names])


def _workbook(table: pa.Table, path: Path) -> None:
    plain = _plain(table)
    times = [pa.types.is_timestamp(kind) for kind in plain.schema.types]
    columns = (
        [str(value) for value in column.to_pylist()] if is_time else column.to_pylist()
        for column, is_time in zip(plain.columns, times, strict=True)
    )
    write_workbook(path, {"rows": [plain.column_names, *zip(*columns, strict=True)]})


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, default=str)


WRITERS: dict[str, tuple[str, Callable[[pa.Table, Path], object]]] = {
    "parquet": ("parquet", pq.write_table),
    "csv": ("csv", lambda table, path: pa.csv.write_csv(_plain(table), path)),
    "json lines": ("jsonl", lambda table, path: pl.DataFrame(table).write_ndjson(path)),
    "json rows": ("json", lambda table, path: path.write_text(_json(table.to_pylist()))),
    "json columns": ("json", lambda table, path: path.write_text(_json(table.to_pydict()))),
    "xlsx": ("xlsx", _workbook),
    "arrow file": ("arrow", pyarrow.feather.write_feather),
}


def _written(kind: str, table: pa.Table, folder: Path) -> Path:
    """Write two files, so that cells and groups are in both."""
    ending, write = WRITERS[kind]
    folder.mkdir()
    half = table.num_rows // 2
    for k, part in enumerate((table.slice(0, half), table.slice(half)), start=1):
        write(part, folder / f"{k}.{ending}")
    return folder


@pytest.fixture(params=SOURCES)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name == "ibis":
        pytest.importorskip("ibis")
    return name


@pytest.fixture
def make(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[pa.Table], Any]:
    """Return the function that turns an Arrow table into a source."""

    def in_ibis(table: pa.Table) -> Any:
        import ibis  # type: ignore[import-untyped]

        return ibis.memtable(table)

    sources: dict[str, Callable[[pa.Table], Any]] = {
        "pandas": _pandas,
        "pandas nullable": _nullable,
        "polars": pl.DataFrame,
        "arrow": _chunked,
        "dataset": ds.dataset,
        "stream": lambda table: table.to_reader(max_chunksize=90),
        "iterator": lambda table: iter([_pandas(table.slice(0, 90)), _pandas(table.slice(90))]),
        "duckdb": duckdb.from_arrow,
        "polars lazy": lambda table: pl.DataFrame(table).lazy(),
        "dask": lambda table: dd.from_pandas(_pandas(table), npartitions=3),  # type: ignore[no-untyped-call]
        "spark": lambda table: request.getfixturevalue("spark").createDataFrame(table),
        "ibis": in_ibis,
    }
    done: dict[int, tuple[pa.Table, Any]] = {}

    def made(table: pa.Table) -> Any:
        if kind in READ_ONCE:
            return sources[kind](table)
        if id(table) not in done:
            folder = tmp_path / str(len(done))
            source = _written(kind, table, folder) if kind in FILES else sources[kind](table)
            done[id(table)] = table, source
        return done[id(table)][1]

    return made


def as_it_is(table: pa.Table) -> pa.Table:
    return table


@pytest.fixture(scope="module")
def expected() -> dict[str, sc.TableSet]:
    return {name: scanned(name, as_it_is) for name in CAPABILITIES}


def test_every_source_gives_the_same_set(
    make: Callable[[pa.Table], Any], expected: dict[str, sc.TableSet], kind: str
) -> None:
    for name in DASK if kind == "dask" else CAPABILITIES:
        if kind == "spark" and name == "times":  # which have a time zone
            continue
        if kind not in WITHOUT_LISTS or name not in NEED_LISTS:
            assert_same_set(scanned(name, make), expected[name], name)


def _column(name: str) -> Any:
    return TABLE[name].to_numpy()


def _classes(prefix: str) -> Any:
    return np.stack([_column(f"{prefix}_{name}") for name in CLASSES], axis=1)


def _names() -> Any:
    return (_column("species")[:, None] == np.array(CLASSES)).astype(float)


def _ballots(items: Any, **options: Any) -> sc.Votes:
    rows = VOTES.to_pydict()
    found = sc.Votes.from_long(rows, item="id", label="answer", worker="rater", **options)
    return found.for_items(items)


def _known(*names: str) -> dict[str, Any]:
    """Return columns without the rows in which one is missing."""
    kept = TABLE.select(list(names)).drop_null()
    return {name: kept[name].to_numpy() for name in names}


def _of_arrays() -> Iterator[tuple[str, Any, sc.Reliability]]:
    """Yield capabilities, the key of one of their tables, and the same table from arrays."""
    y, p, q, w, own = (_column(name) for name in ("y", "p", MODEL, "w", "own"))
    for name in ("one bin", "7 bins", "3600 bins", "unequal bins"):
        yield name, "p", sc.reliability(y, p, bins=CAPABILITIES[name]["bins"])
    for name in ("plain", "by", "ranges", "given ranges", "days", "formatted days", "pairs"):
        yield name, "p", sc.reliability(y, p)
    for name in ("weights", "times", "pairs by"):
        yield name, "p", sc.reliability(y, p, sample_weight=w)
    yield "votes", "p", sc.reliability(y, p, sample_weight=w, n_votes=_column("m"))
    yield "by numbers of votes", "p", sc.reliability(y, p, n_votes=_column("m"))
    yield "one number of votes", "p", sc.reliability(y, p, n_votes=4)
    yield "counts", "p", sc.reliability(_column("votes_dog") / 4, p, n_votes=4)
    yield "own labels", "a", sc.reliability(y, p)
    yield "a source per model", "one", sc.reliability(y[7:], p[7:])
    yield "long without items", "a", sc.reliability(own[:-9], q[:-9])
    yield "own labels", "b", sc.reliability(own, q)
    yield "own labels by", "b", sc.reliability(own, q, sample_weight=w)
    yield "long", "b", sc.reliability(y[5:-9], p[5:-9])
    yield "long by", "a", sc.reliability(own[5:-9], q[5:-9], sample_weight=w[5:-9])
    yield "groups", "p", sc.reliability(y, p, sample_weight=w, groups=_column(GROUP))
    yield "groups by", "p", sc.reliability(y, p, groups=_column("number"))
    shares = _ballots(_column("id"), positive="dog")
    for name in ("raw votes", "raw votes in the rows"):
        yield name, "p", sc.reliability(shares, p, sample_weight=w, raters=True)
    yield "raw votes with groups", "p", sc.reliability(shares, p, groups=_column(GROUP))
    percent = sc.reliability(_column("y pct") / 100, _column("p pct") / 100)
    yield "percentages", "p pct", percent
    logits = scipy.special.expit(_column("z"))
    yield "logits", "z", sc.reliability(y, logits, sample_weight=w)
    yield "log-probabilities", "log p", sc.reliability(y, np.exp(_column("log p")))
    yield "words", "p", sc.reliability(_column("word") == "yes", p)
    yield "number as a word", "p", sc.reliability(_column("number") == 7, p)
    kept = _known("gap y", "gap p", "gap w", "gap group")
    yield (
        "dropped",
        "gap p",
        sc.reliability(
            kept["gap y"], kept["gap p"], sample_weight=kept["gap w"], groups=kept["gap group"]
        ),
    )
    kept = _known("gap word", "gap p")
    yield "dropped words", "gap p", sc.reliability(kept["gap word"] == "yes", kept["gap p"])
    for end in ("low", "high"):
        yield "bounds", ("p", end), sc.reliability(_column(end), p)
        yield "bounds by", ("p", end), sc.reliability(_column(end), p, sample_weight=w)


def _of_classes() -> Iterator[tuple[str, Any, Any, dict[str, Any]]]:
    """Yield capabilities of classes, and the labels, predictions, and options of arrays."""
    prob, share, votes = _classes("prob"), _classes("share"), sc.Votes(_classes("votes"))
    w, m, group = _column("w"), _column("m"), _column(GROUP)
    for name in ("classes", "classes of lists"):
        yield name, share, prob, {}
    for name in ("classes by", "ordered classes by"):
        yield name, share, prob, {"sample_weight": w}
    for name in ("classes of counts", "classes of lists of counts", "ordered classes"):
        yield name, votes, prob, {}
    yield "classes of shares of votes", share, prob, {"n_votes": 4}
    yield "classes of names", _names(), prob, {"n_votes": m}
    yield "classes of numbers", np.eye(3)[_column("species number")], prob, {}
    for name in ("classes with groups", "ordered classes with groups"):
        yield name, _names(), prob, {"groups": group}
    yield "raw votes of classes", _ballots(_column("id"), classes=CLASSES), prob, {}
    yield "percentages of classes", _names(), _classes("pct") / 100, {}
    yield "logits of classes", _names(), scipy.special.softmax(_classes("logit"), axis=1), {}
    yield "log-probabilities of classes", _names(), np.exp(_classes("log")), {}


def test_arrays_give_the_same_tables(expected: dict[str, sc.TableSet]) -> None:
    for name, key, table in _of_arrays():
        assert_same_table(expected[name][key], table)
    for name, label, probs, options in _of_classes():
        tables = expected[name]
        # A set hardens the label of the predicted class by the majority of the votes.
        top = sc.top_label_reliability(label, probs, **options)
        assert_same_table(tables["one"], top, hardened=False)
        by_class = sc.classwise_reliability(label, probs, **options).values()
        for target, table in zip(tables.targets[1:4], by_class, strict=True):
            assert_same_table(tables["one", target], table)


def test_pairs_and_raters_of_arrays_give_the_same_sums(expected: dict[str, sc.TableSet]) -> None:
    y, two = _column("y"), {"p": _column("p"), MODEL: _column(MODEL)}
    classes = {"one": _classes("prob"), "two": _classes("other")}
    for name, label, models in (("pairs", y, two), ("classes", _classes("share"), classes)):
        found = expected[name].pair(*models)
        joint = tables_of_models(label, models, bins=10).pair(*models)
        np.testing.assert_allclose(found.cross, joint.cross, rtol=1e-12, atol=1e-12)
        for part in ("brier", "log_loss", "differing", "infinite_a", "infinite_b"):
            np.testing.assert_allclose(getattr(found, part), getattr(joint, part), rtol=1e-12)
    shares = _ballots(_column("id"), positive="dog")
    for model, p in two.items():
        alone = sc.reliability(shares, p, sample_weight=_column("w"), raters=True)
        for name in ("raw votes", "raw votes in the rows"):
            one, own = (sc.smece_interval(each) for each in (expected[name][model], alone))
            assert (one.low, one.high) == pytest.approx((own.low, own.high), abs=1e-12)
            assert one.rater_share == pytest.approx(own.rater_share, abs=1e-9)


def test_models_of_long_rows_are_compared_by_item(expected: dict[str, sc.TableSet]) -> None:
    """The pair has the rows of items that both models have, each with its own label."""
    both = TABLE.slice(5, N - 14)
    wide = sc.scan(both, y_prob={"a": (MODEL, "own"), "b": ("p", "y")}).pair("a", "b")
    long = expected["long"].pair("a", "b")
    assert expected["long"].about.rows_dropped == 5
    with pytest.raises(
        sc.InputError, match=r"5 values of id .* of 'a' and none of 'b'.* Pass Long"
    ):
        sc.scan(LONG, y_true="y", y_prob=replace(MATCHED, drop_unmatched=False))
    np.testing.assert_allclose(long.cross, wide.cross, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(long.brier, wide.brier, rtol=1e-12)
    assert not expected["long without items"].has_pairs


def test_segments_are_the_tables_of_their_rows(expected: dict[str, sc.TableSet]) -> None:
    for name in ("by", "pairs by", "groups by", "classes by", "bounds by", "own labels by"):
        options = {k: v for k, v in CAPABILITIES[name].items() if k != "by"}
        parts = expected[name].by(SEGMENT)
        assert list(parts) == ["1", "nan", "north", "two\twords", None]
        for value, part in parts.items():
            here = pc.equal(TABLE[SEGMENT], value) if value else pc.is_null(TABLE[SEGMENT])
            alone = sc.scan(TABLE.filter(here), **options)
            for model in alone:
                for target in alone.targets:
                    assert_same_table(part[model, target], alone[model, target])
        for value, part in expected[name].by("kind").items():
            assert part.by(SEGMENT)["1"].n == expected[name].by(SEGMENT)["1"].by("kind")[value].n


def test_weights_count_rows_dropped_rows_and_names(expected: dict[str, sc.TableSet]) -> None:
    about = expected["votes"].about
    assert (about.weight, about.votes) == ("w", "m")
    assert about.rows_without_weight == int((_column("w") == 0).sum())
    assert expected["one number of votes"].about.votes == "4"
    kept = TABLE.select(["gap y", "gap p", "gap w", "gap group"]).drop_null().num_rows
    assert expected["dropped"].about.rows_dropped == N - kept
    assert expected["raw votes"].about.label == expected["raw votes"].about.votes == "share of dog"
    assert expected["raw votes"].about.rater == "rater"


def test_saved_sets_are_equal(expected: dict[str, sc.TableSet], tmp_path: Path) -> None:
    for name, tables in expected.items():
        tables.save(tmp_path / "set.softcal")
        if tables.about.group is None:  # else the names of groups are not saved
            assert_same_set(sc.load(tmp_path / "set.softcal"), tables, name)


@settings(max_examples=8)
@given(p=st.lists(UNIT, min_size=1, max_size=100), n=st.integers(1, 4000))
@pytest.mark.parametrize("lazy", [duckdb.from_arrow, lambda rows: pl.DataFrame(rows).lazy()])
def test_every_prediction_is_in_its_bin(lazy: Any, p: list[float], n: int) -> None:
    rows = pa.table({"y": p, "p": p, "by": ["a"] * len(p)})
    found = sc.scan(lazy(rows), y_true="y", y_prob="p", bins=n, by="by")
    fine = found.coarsen(found.grid)["p"]
    np.testing.assert_array_equal(fine.count, sc.reliability(p, p, bins=found.grid).count)
    assert fine.smece == 0  # exactly, because labels equal predictions


# Values that break a rule: the rule, how many do, the first of them, and a remedy


def _broken(column: str, value: Any, rows: tuple[int, ...] = (3, 300)) -> pa.Table:
    old = TABLE[column]
    values = old.to_pylist()
    for row in rows:
        values[row] = value
    kind = pa.float64() if isinstance(value, float) else old.type
    return TABLE.set_column(TABLE.column_names.index(column), column, pa.array(values, kind))


SUMS = rules.ROW_SUM.must
NEVER: list[tuple[str, Any, str, str]] = [
    ("p", 1.5, "by", rules.OUTSIDE.must),
    ("p", -0.5, "plain", rules.OUTSIDE.must),
    ("p", float("inf"), "plain", rules.OUTSIDE.must),
    ("p", 40.0, "groups", rules.OUTSIDE.must),
    ("p", 40.0, "nothing to drop", rules.OUTSIDE.must),
    ("y", 1 + 1e-9, "pairs", rules.OUTSIDE.must),
    ("y", -40.0, "by", rules.OUTSIDE.must),
    ("y", None, "pairs by", rules.MISSING.must),
    ("own", 3.0, "own labels", rules.OUTSIDE.must),
    (MODEL, None, "pairs", rules.MISSING.must),
    ("w", None, "weights", rules.MISSING.must),
    ("w", -1.0, "weights", rules.NEGATIVE.must),
    ("w", 1e200, "votes", rules.WILD.must),
    ("w", -1.0, "classes by", rules.NEGATIVE.must),
    ("m", 0.0, "votes", rules.NOT_WHOLE.must),
    ("m", 2.5, "votes", rules.NOT_WHOLE.must),
    ("m", 1e300, "votes", rules.NOT_WHOLE.must),
    ("m", None, "votes", rules.MISSING.must),
    ("y", 0.3, "one number of votes", rules.MISFIT.must),
    (GROUP, None, "groups", rules.MISSING.must),
    ("low", None, "bounds", rules.MISSING.must),
    ("low", 0.99, "bounds", rules.AT_MOST.must.format("high")),
    ("p pct", 120.0, "percentages", rules.PERCENT.must),
    ("log p", 0.5, "log-probabilities", rules.LOGPROB.must),
    ("word", None, "words", rules.MISSING.must),
    ("day", None, "days", rules.MISSING.must),
    ("day", "02.01.26", "days", f"must be {CLEAR}"),
    ("species", None, "classes of names", rules.MISSING.must),
    ("species", "cow", "classes of names", rules.known_rule(CLASSES).must),
    ("prob_dog", None, "classes", rules.MISSING.must),
    ("prob_dog", 1.5, "classes", rules.OUTSIDE.must),
    ("prob_dog", 0.77, "classes by", SUMS),
    ("pct_dog", 77.0, "percentages of classes", SUMS.replace("1 within", "100% within")),
    ("log_dog", 9e9, "log-probabilities of classes", rules.LOGPROB.must),
    ("log_dog", -0.001, "log-probabilities of classes", SUMS),
    ("logit_dog", None, "logits of classes", rules.MISSING.must),
    ("votes_dog", None, "classes of counts", rules.MISSING.must),
    ("votes_dog", 0.5, "counts", rules.CLASS_COUNT[1].must),
    ("votes_dog", -1.0, "classes of counts", rules.CLASS_COUNT[1].must),
    ("prob list", None, "classes of lists", rules.MISSING.must),
    ("prob list", [0.5, 0.5], "classes of lists", rules.length_rule(3).must),
    ("prob list", [0.5, 0.5, 2.0], "classes of lists", rules.OUTSIDE.must),
    ("prob list", [0.5, 0.5, 0.5], "classes of lists", SUMS),
]


def test_values_that_break_a_rule_are_refused_with_count_first_and_remedy(
    make: Callable[[pa.Table], Any], kind: str
) -> None:
    slow = kind in ("dask", "spark")
    for column, value, capability, must in NEVER[::4] if slow else NEVER:
        if kind in WITHOUT_LISTS and capability in NEED_LISTS:
            continue
        if value == float("inf") and kind in ("json lines", "xlsx"):  # which cannot hold it
            continue
        found = refusal(scanned, capability, make, _broken(column, value))
        case = (column, value, capability, found)
        summed = must.startswith("must sum")
        assert found.must == must, case
        assert (found.count, found.total) == (2, N), case
        assert summed or column in found.name, case
        if value is not None and not summed and not isinstance(value, list):
            assert f"is {value!r}" in found.first, case
        if must != f"must be {CLEAR}":  # of segments, which are counted by value
            assert _where(kind) in found.first, case


def _where(kind: str) -> str:
    """Return where the fourth row of a source is."""
    if kind in FILES:
        return f"1.{WRITERS[kind][0]}, row 4"
    return "" if kind in ENGINES else "at position 3"


HINTS: list[tuple[Any, Any, str]] = [
    ([-1.0, 1.0, -1.0], "y", r"use \(y \+ 1\) / 2"),
    ([0.0, 40.0, 77.5], "y", r'y_true=Column\(\.{3}, scale="percent"\)'),
    ([3.0, 40.0, 77.0], "y", "softcal.Votes"),
    ([-40.0, 7.0, 0.5], "y", r'y_true=Column\(\.{3}, scale="logit"\)'),
    ([-4.0, -7.0, -0.5], "y", r'y_true=Column\(\.{3}, scale="logprob"\)'),
    ([0.5, 1 + 1e-9, 0.5], "y", "rounding"),
    ([0.5, 1.0, 0.5], sc.Column("y", scale="percent"), ""),
]


def test_remedies_name_the_scale_that_the_values_fit(make: Callable[[pa.Table], Any]) -> None:
    for values, label, hint in HINTS:
        table = pa.table({"y": values, "p": [0.5, 0.25, 1.0]})
        if hint:
            found = refusal(sc.scan, make(table), y_true=label, y_prob="p")
            assert re.search(hint, found.remedy), found
        else:
            with pytest.warns(sc.SoftcalWarning, match="leave out"):
                sc.scan(make(table), y_true=label, y_prob="p")


def test_slips_that_values_give_away_are_noted(make: Callable[[pa.Table], Any]) -> None:
    table = pa.table({"y": [0.5, 1.0, 0.25], "p": [0.2, 0.4, 1.0], "hard": [1.0, 0.0, 1.0]})
    slips: list[tuple[Any, Any, str]] = [
        ("y", sc.Column("p", scale="percent"), 'leave out y_prob=Column(..., scale="percent")'),
        ("y", sc.Column("p", scale="logit"), 'leave out y_prob=Column(..., scale="logit")'),
        (sc.Column("y", scale="percent"), "p", 'leave out y_true=Column(..., scale="percent")'),
        ("p", "hard", "every value of hard is 0 or 1"),
    ]
    for label, pred, note in slips:
        with pytest.warns(sc.SoftcalWarning) as found:
            sc.scan(make(table), y_true=label, y_prob=pred)
        assert any(note in str(each.message) for each in found)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sc.SoftcalWarning)
        outside = pa.table({"y": [0.5, 1.0, 0.25], "p": [0.2, 0.4, 1.1]})
        sc.scan(make(outside), y_true="y", y_prob=sc.Column("p", scale="percent"))


def test_probabilities_of_classes_as_logits_are_noted() -> None:
    pred = sc.Classes("prob_*", scale="logit")
    with pytest.warns(sc.SoftcalWarning, match=r'leave out y_prob=Classes\(..., scale="logit"\)'):
        sc.scan(TABLE, y_true=sc.Classes("share list"), y_prob={"one": pred})


def test_shares_of_classes_must_be_whole_votes() -> None:
    for spec in ("share_*", "share list"):
        label = sc.Classes(spec, votes=3)
        found = refusal(sc.scan, TABLE, y_true=label, y_prob={"one": "prob list"})
        assert found.must == rules.MISFIT.must
        assert re.match(r"is 0\.(25|5|75) times 3", found.first)


def test_rules_count_the_rows_that_were_not_dropped(make: Callable[[pa.Table], Any]) -> None:
    table = pa.table({"y": [0.5, None, 0.25, 0.5], "p": [None, 7.0, 40.0, 0.5]})
    found = refusal(sc.scan, make(table), **ONE, drop_missing=True)
    assert (found.must, found.count, found.total) == (rules.OUTSIDE.must, 1, 2)
    table = pa.table({"y": [0.5, None], "p": [None, 0.5]})
    with pytest.raises(sc.InputError, match="every one of the 2 rows has a missing value"):
        sc.scan(make(table), **ONE, drop_missing=True)


def test_positive_word_that_no_row_has_is_refused(make: Callable[[pa.Table], Any]) -> None:
    table = pa.table({"y": ["Yes", "no", "no"], "p": [0.1, 0.2, 0.3]})
    with pytest.raises(sc.InputError, match=r"Did you mean 'Yes'\?.*'no' \(2\)"):
        sc.scan(make(table), y_true=sc.Column("y", positive="yes"), y_prob="p")


def test_columns_of_the_wrong_kind_are_refused(make: Callable[[pa.Table], Any]) -> None:
    source = pa.table({"y": [0.5, 0.25], "p": [0.5, 0.5], "s": ["x", "y"]})
    with pytest.raises(
        sc.SoftcalError, match=r"s must hold (real )?numbers.* positive=\"\w+\"\)\.$"
    ):
        sc.scan(make(source), y_true="s", y_prob="p")
    with pytest.raises(sc.InputError, match=r"no column 'z'.* Its columns are: 'y', 'p', 's'"):
        sc.scan(make(source), y_true="z", y_prob="p")


def test_rows_without_weight_and_no_rows(make: Callable[[pa.Table], Any], kind: str) -> None:
    table = pa.table({"y": [0.5] * 3, "p": [0.5] * 3, "w": [0.0] * 3})
    zeros = sc.scan(make(table), **ONE, sample_weight="w")
    assert (zeros.n, zeros.about.rows_without_weight) == (0, 3)
    if kind not in FILES and kind != "iterator":
        assert sc.scan(make(table.slice(0, 0)), **ONE).n == 0


@pytest.mark.parametrize("dtype", [pa.float32(), pa.int8(), pa.bool_()])
def test_narrow_numbers_are_binned_exactly(
    make: Callable[[pa.Table], Any], kind: str, dtype: Any
) -> None:
    if kind in WITHOUT_LISTS or kind.startswith("json"):
        pytest.skip("text has no narrow numbers")
    p = pa.array([0.7, 0.1, 0.3, 1.0, 0.0] if dtype == pa.float32() else [1, 0, 1, 1, 0])
    p = p.cast(dtype)
    table = pa.table({"y": [1, 0, 1, 0, 1], "p": p})
    wide = np.array([float(value) for value in p.to_pylist()])
    assert_same_table(sc.scan(make(table), **ONE)["p"], sc.reliability(table["y"], wide))
