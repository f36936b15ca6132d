"""Every source gives the same set of tables, for every kind of label and option."""

from __future__ import annotations

import json
import os
import sys
import warnings
from typing import TYPE_CHECKING, Any

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.special
from same_tables import assert_same_set, assert_same_table

import softcal as sc
from softcal.sources import engines
from softcal.sources.columns import Roles
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
    }
    columns |= {
        "y pct": 100 * y,
        "p pct": 100 * p,
        "z": rng.normal(0, 3, N),
        "log p": np.log(np.maximum(p, 1e-300)),
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
TWO = {"one": "prob_*", "two": "other_*"}
ONE: dict[str, Any] = {"y_true": "y", "y_prob": "p"}
PAIR: dict[str, Any] = {"y_true": "y", "y_prob": ["p", MODEL]}
BY = [SEGMENT, "kind"]
CAPABILITIES: dict[str, dict[str, Any]] = {
    "plain": ONE,
    "unequal bins": {**ONE, "bins": [0, 0.1, 0.29, 0.3, 1]},
    "by": {**ONE, "by": BY},
    "ranges": {**ONE, "by": "kind", "features": {"z": 5, "gap w": 3, "number": 4}},
    "given ranges": {**ONE, "by": "kind", "features": {"z": [-1.5, 0, 2], "gap w": [1]}},
    "weights": {**ONE, "sample_weight": "w", "by": "kind"},
    "votes": {**ONE, "n_votes": "m", "sample_weight": "w"},
    "one number of votes": {**ONE, "n_votes": 4},
    "pairs": PAIR,
    "pairs by": {**PAIR, "by": BY, "sample_weight": "w"},
    "groups": {**ONE, "groups": GROUP, "sample_weight": "w"},
    "groups by": {**ONE, "groups": "number", "by": BY},
    "pairs of groups by": {**PAIR, "groups": GROUP, "by": BY, "sample_weight": "w"},
    "classes": {"y_true": "share_*", "y_prob": TWO},
    "classes by": {"y_true": "share_*", "y_prob": TWO, "by": BY, "sample_weight": "w"},
    "classes of lists": {"y_true": "share list", "y_prob": {"one": "prob list"}},
    "classes of counts": {"vote_counts": "votes_*", "y_prob": TWO},
    "classes of lists of counts": {
        "vote_counts": "vote list", "y_prob": {"one": "prob list"}, "classes": CLASSES
    },
    "classes of names": {"y_true": "species", "y_prob": TWO, "n_votes": "m", "by": "kind"},
    "classes of numbers": {"y_true": "species number", "y_prob": TWO, "classes": ["0", "1", "2"]},
    "classes with groups": {"y_true": "species", "y_prob": TWO, "groups": GROUP, "by": "kind"},
    "ordered classes": {"vote_counts": "votes_*", "y_prob": TWO, "ordered": True},
    "ordered classes by": {
        "y_true": "share_*", "y_prob": TWO, "by": BY, "sample_weight": "w", "ordered": True
    },
    "ordered classes with groups": {
        "y_true": "species", "y_prob": TWO, "groups": GROUP, "by": "kind", "ordered": True
    },
    "bounds": {"label_bounds": ("low", "high"), "y_prob": ["p", MODEL]},
    "bounds by": {
        "label_bounds": ("low", "high"), "y_prob": "p", "by": BY, "sample_weight": "w"
    },
    "percentages": {
        "y_true": "y pct", "y_prob": "p pct", "label_scale": "percent", "pred_scale": "percent"
    },
    "logits": {"y_true": "y", "y_prob": "z", "pred_scale": "logit", "sample_weight": "w"},
    "log-probabilities": {"y_true": "y", "y_prob": "log p", "pred_scale": "logprob", "by": "kind"},
    "words": {"y_true": "word", "y_prob": ["p", MODEL], "positive": "yes", "by": ["word", "kind"]},
    "number as a word": {"y_true": "number", "y_prob": "p", "positive": 7},
    "dropped": {
        "y_true": "gap y", "y_prob": ["gap p", "p"], "sample_weight": "gap w", "by": BY,
        "groups": "gap group", "drop_missing": True,
    },
    "nothing to drop": {**ONE, "drop_missing": True},
    "dropped words": {
        "y_true": "gap word", "y_prob": "gap p", "positive": "yes", "drop_missing": True
    },
    "dropped classes": {
        "y_true": "gap word", "y_prob": TWO, "classes": ["yes", "no", "Yes"], "drop_missing": True
    },
    "dropped lists": {
        "y_true": "share list", "y_prob": {"one": "gap list"}, "drop_missing": True
    },
    "percentages of classes": {
        "y_true": "species", "y_prob": {"one": "pct_*"}, "pred_scale": "percent"
    },
    "logits of classes": {
        "y_true": "species", "y_prob": {"one": "logit_*"}, "pred_scale": "logit", "by": "kind"
    },
    "log-probabilities of classes": {
        "y_true": "species", "y_prob": {"one": "log_*"}, "pred_scale": "logprob"
    },
}  # fmt: skip
NEED_LISTS = [name for name, options in CAPABILITIES.items() if "list" in str(options)]


def _pandas(table: pa.Table) -> pd.DataFrame:
    """Return a frame with lists as Arrow types, because Dask treats objects as text."""
    frame = table.drop_columns([name for name in LISTS if name in table.column_names]).to_pandas()
    for name in LISTS:
        if name in table.column_names:
            frame[name] = pd.Series(table[name].to_pandas(types_mapper=pd.ArrowDtype))
    return frame


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


Make = "Callable[[pa.Table], Any]"


@pytest.fixture(
    params=[
        "pandas", "polars", "arrow", "dataset", "stream", "parquet", "csv", "json lines",
        "json rows", "json columns", "xlsx", "arrow file", "duckdb", "polars lazy", "dask", "spark",
    ]
)  # fmt: skip
def make(  # noqa: C901 - one function per kind of source
    request: pytest.FixtureRequest, tmp_path: Path
) -> Callable[[pa.Table], Any]:
    """Return the functions that turn an Arrow table into each source."""

    def written(ending: str, write: Callable[[pa.Table, Path], object]) -> Any:
        def made(table: pa.Table) -> Path:
            folder = tmp_path / ending
            folder.mkdir()
            # Two files, so that cells and groups are in both.
            write(table.slice(0, table.num_rows // 2), folder / f"1.{ending}")
            write(table.slice(table.num_rows // 2), folder / f"2.{ending}")
            return folder

        return made

    def json_lines(table: pa.Table, path: Path) -> None:
        pl.DataFrame(table).write_ndjson(path)

    def json_rows(table: pa.Table, path: Path) -> None:
        path.write_text(json.dumps(table.to_pylist(), indent=1))

    def json_columns(table: pa.Table, path: Path) -> None:
        path.write_text(json.dumps(table.to_pydict()))

    def workbook(table: pa.Table, path: Path) -> None:
        plain = table.drop_columns([name for name in LISTS if name in table.column_names])
        columns = (column.to_pylist() for column in plain.columns)
        write_workbook(path, {"rows": [plain.column_names, *zip(*columns, strict=True)]})

    def text(table: pa.Table, path: Path) -> None:
        held = [name for name in LISTS if name in table.column_names]
        pa.csv.write_csv(table.drop_columns(held), path)

    def in_spark(table: pa.Table) -> Any:
        return request.getfixturevalue("spark").createDataFrame(table)

    sources: dict[str, Callable[[pa.Table], Any]] = {
        "pandas": _pandas,
        "polars": pl.DataFrame,
        "arrow": _chunked,
        "dataset": ds.dataset,
        "stream": lambda table: table.to_reader(max_chunksize=90),
        "parquet": written("parquet", pq.write_table),
        "csv": written("csv", text),
        "json lines": written("jsonl", json_lines),
        "json rows": written("json", json_rows),
        "json columns": written("json", json_columns),
        "xlsx": written("xlsx", workbook),
        "arrow file": written("arrow", pyarrow.feather.write_feather),
        "duckdb": duckdb.from_arrow,
        "polars lazy": lambda table: pl.DataFrame(table).lazy(),
        "dask": lambda table: dd.from_pandas(_pandas(table), npartitions=3),  # type: ignore[no-untyped-call]
        "spark": in_spark,
    }
    return sources[request.param]


def _has_no_lists(request: pytest.FixtureRequest) -> bool:
    return "[csv" in request.node.name or "[xlsx" in request.node.name


@pytest.fixture(scope="module")
def expected() -> dict[str, sc.TableSet]:
    return {name: sc.scan(TABLE, **options) for name, options in CAPABILITIES.items()}


def test_every_source_gives_the_same_set(
    make: Callable[[pa.Table], Any],
    expected: dict[str, sc.TableSet],
    request: pytest.FixtureRequest,
) -> None:
    stream = "[stream" in request.node.name
    source = None if stream else make(TABLE)
    for name, options in CAPABILITIES.items():
        if _has_no_lists(request) and name in NEED_LISTS:
            continue
        if stream and name == "ranges":
            with pytest.raises(sc.InputError, match="a source that can be read twice"):
                sc.scan(make(TABLE), **options)
            continue
        found = sc.scan(make(TABLE) if stream else source, **options)
        assert_same_set(found, expected[name], name)


def _column(name: str) -> Any:
    return TABLE[name].to_numpy()


def _classes(prefix: str) -> Any:
    return np.stack([_column(f"{prefix}_{name}") for name in CLASSES], axis=1)


def test_arrays_give_the_same_tables(expected: dict[str, sc.TableSet]) -> None:
    y, p, w = _column("y"), _column("p"), _column("w")
    for name, options in (
        ("plain", {}),
        ("weights", {"sample_weight": w}),
        ("votes", {"sample_weight": w, "n_votes": _column("m")}),
        ("one number of votes", {"n_votes": 4}),
    ):
        assert_same_table(expected[name]["p"], sc.reliability(y, p, **options))
    groups = sc.reliability(y, p, sample_weight=w, groups=_column(GROUP))
    assert groups.clusters is not None
    found = expected["groups"]["p"].clusters
    assert found is not None
    assert found.count == groups.clusters.count
    for part in ("residual", "weight"):
        mine, theirs = getattr(found, part), getattr(groups.clusters, part)
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)
    two = {"p": p, MODEL: _column(MODEL)}
    joint = tables_of_models(y, two, bins=10).pair("p", MODEL)
    pair = expected["pairs"].pair("p", MODEL)
    np.testing.assert_allclose(pair.cross, joint.cross, rtol=1e-12, atol=1e-12)
    assert (pair.infinite_a, pair.infinite_b) == (joint.infinite_a, joint.infinite_b)
    for name, label in (("classes", _classes("share")), ("classes of names", _names())):
        votes = _column("m") if name == "classes of names" else None
        top = sc.top_label_reliability(label, _classes("prob"), n_votes=votes)
        # A set hardens the label of the predicted class by the majority of the votes.
        assert_same_table(expected[name]["one"], top, hardened=False)
    percent = sc.reliability(_column("y pct") / 100, _column("p pct") / 100)
    assert_same_table(expected["percentages"]["p pct"], percent)
    logits = sc.reliability(y, scipy.special.expit(_column("z")), sample_weight=w)
    assert_same_table(expected["logits"]["z"], logits)
    logs = sc.reliability(y, np.exp(_column("log p")))
    assert_same_table(expected["log-probabilities"]["log p"], logs)
    words = sc.reliability(_column("word") == "yes", p)
    assert_same_table(expected["words"]["p"], words)
    numbers = sc.reliability(_column("number") == 7, p)
    assert_same_table(expected["number as a word"]["p"], numbers)
    kept = TABLE.select(["gap y", "gap p", "gap w", "gap group"]).drop_null()
    rel = sc.reliability(
        *(kept[name].to_numpy() for name in ("gap y", "gap p")),
        sample_weight=kept["gap w"].to_numpy(),
        groups=kept["gap group"].to_numpy(),
    )
    assert expected["dropped"].about.rows_dropped == N - kept.num_rows
    assert_same_table(expected["dropped"]["gap p"], rel)
    softmax = scipy.special.softmax(_classes("logit"), axis=1)
    top = sc.top_label_reliability(_names(), softmax)
    assert_same_table(expected["logits of classes"]["one"], top, hardened=False)
    top = sc.top_label_reliability(_names(), np.exp(_classes("log")))
    assert_same_table(expected["log-probabilities of classes"]["one"], top, hardened=False)
    for end in ("low", "high"):
        assert_same_table(expected["bounds"]["p", end], sc.reliability(_column(end), p))


def _names() -> Any:
    return (_column("species")[:, None] == np.array(CLASSES)).astype(float)


def _broken(column: str, value: Any, rows: tuple[int, ...] = (3, 300)) -> pa.Table:
    old = TABLE[column]
    values = old.to_pylist()
    for row in rows:
        values[row] = value
    return TABLE.set_column(TABLE.column_names.index(column), column, pa.array(values, old.type))


NEVER = [
    ("p pct", 120.0, "percentages", "p pct must be percentages, in [0, 100]: 2 of 400 values are"),
    ("log p", 0.5, "log-probabilities", "log p must be log-probabilities, of 0 or less: 2 of 400"),
    (f"log_{CLASSES[1]}", 9e9, "log-probabilities of classes", "of 0 or less: 2 of 400"),
    (f"log_{CLASSES[1]}", -0.001, "log-probabilities of classes", "must sum to 1 within"),
    (
        "y",
        0.3,
        "one number of votes",
        "y times 4 must be whole numbers of votes, up to rounding of the shares to two digits: 2 of 400 values are not",
    ),
    ("word", None, "words", "word must have no missing values: 2 of 400 are NaN or null"),
    ("p", 40.0, "nothing to drop", "p must be in [0, 1]: 2 of 400 values are not"),
    (f"logit_{CLASSES[1]}", None, "logits of classes", "must have no missing values: 2 of 400"),
    (f"pct_{CLASSES[1]}", 77.0, "percentages of classes", "must sum to 100% within"),
    ("y", None, "pairs", "y must have no missing values: 2 of 400 are NaN or null"),
    (MODEL, None, "pairs", f"{MODEL} must have no missing values: 2 of 400 are NaN or null"),
    ("w", None, "weights", "w must have no missing values: 2 of 400 are NaN or null"),
    (GROUP, None, "groups", f"{GROUP} must have no missing values: 2 of 400 are NaN or null"),
    ("p", 40.0, "groups", "p must be in [0, 1]: 2 of 400 values are not, the first is 40.0"),
    ("low", None, "bounds", "low must have no missing values: 2 of 400 are NaN or null"),
    ("low", 0.99, "bounds", "low must be at most high: 2 of 400 rows are not"),
    ("species", None, "classes of names", "species must have no missing values: 2 of 400"),
    ("species", "cow", "classes of names", "2 of 400 values are not, the first is 'cow'"),
    (f"prob_{CLASSES[1]}", None, "classes", "must have no missing values: 2 of 400"),
    (f"prob_{CLASSES[1]}", 0.77, "classes", "must sum to 1"),
    (f"votes_{CLASSES[1]}", None, "classes of counts", "must have no missing values: 2 of 400"),
    ("prob list", None, "classes of lists", "prob list must have no missing values: 2 of 400"),
    ("prob list", [0.5, 0.5], "classes of lists", "lists of 3 values, one per class: 2 of 400"),
]


def test_invalid_values_are_refused_with_their_count(
    make: Callable[[pa.Table], Any], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    for column, value, capability, message in NEVER:
        if _has_no_lists(request) and capability in NEED_LISTS:
            continue
        for old in tmp_path.glob("*/*"):
            old.unlink()
        for old in tmp_path.glob("*"):
            old.rmdir()
        with pytest.raises(sc.InputError) as caught:
            sc.scan(make(_broken(column, value)), **CAPABILITIES[capability])
        assert message in str(caught.value), (column, value)


SLIPS: list[tuple[dict[str, Any], str]] = [
    ({**ONE, "pred_scale": "percent"}, 'every value of p is in [0, 1]: leave out pred_scale="percent"'),
    ({**ONE, "pred_scale": "logit"}, 'every value of p is in [0, 1]: leave out pred_scale="logit"'),
    ({**ONE, "label_scale": "percent"}, 'every value of y is in [0, 1]: leave out label_scale="percent"'),
    ({"y_true": "p", "y_prob": "hard"}, "every value of hard is 0 or 1, but p has values between 0 and 1"),
]  # fmt: skip


def test_slips_that_values_give_away_are_noted(
    make: Callable[[pa.Table], Any], request: pytest.FixtureRequest
) -> None:
    table = pa.table({"y": [0.5, 1.0, 0.25], "p": [0.2, 0.4, 1.0], "hard": [1.0, 0.0, 1.0]})
    stream = "[stream" in request.node.name
    source = None if stream else make(table)
    for options, message in SLIPS:
        with pytest.warns(sc.SoftcalWarning) as found:
            sc.scan(make(table) if stream else source, **options)
        assert [str(each.message) for each in found if message in str(each.message)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", sc.SoftcalWarning)
        outside = pa.table({"y": [0.5, 1.0, 0.25], "p": [0.2, 0.4, 1.1]})
        sc.scan(outside, **ONE, pred_scale="percent")


def test_probabilities_of_classes_as_logits_are_noted() -> None:
    for spec in ("prob_*", "prob list"):
        given: dict[str, Any] = {
            "y_true": "share list",
            "y_prob": {"one": spec},
            "pred_scale": "logit",
        }
        with pytest.warns(sc.SoftcalWarning, match='is in .0, 1.: leave out pred_scale="logit"'):
            sc.scan(TABLE, **given)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sc.SoftcalWarning)
        sc.scan(TABLE, y_true="species", y_prob={"one": "logit_*"}, pred_scale="logit")


def test_shares_of_classes_must_be_whole_votes() -> None:
    for spec in ("share_*", "share list"):
        sc.scan(TABLE, y_true=spec, y_prob={"one": "prob list"}, n_votes=4)
        with pytest.raises(
            sc.InputError, match=r"times 3 must be whole .* the first is 0\.\d+ times 3"
        ):
            sc.scan(TABLE, y_true=spec, y_prob={"one": "prob list"}, n_votes=3)


def test_a_rule_counts_the_rows_that_were_not_dropped(make: Callable[[pa.Table], Any]) -> None:
    table = pa.table({"y": [0.5, None, 0.25, 0.5], "p": [None, 7.0, 40.0, 0.5]})
    with pytest.raises(sc.InputError, match=r"p must be in \[0, 1\]: 1 of 2 values is not"):
        sc.scan(make(table), y_true="y", y_prob="p", drop_missing=True)


def test_rows_that_all_miss_a_value_are_refused(make: Callable[[pa.Table], Any]) -> None:
    table = pa.table({"y": [0.5, None], "p": [None, 0.5]})
    with pytest.raises(sc.InputError, match="every one of the 2 rows has a missing value"):
        sc.scan(make(table), y_true="y", y_prob="p", drop_missing=True)


def test_a_positive_word_that_no_row_has_is_refused(make: Callable[[pa.Table], Any]) -> None:
    table = pa.table({"y": ["Yes", "no", "no"], "p": [0.1, 0.2, 0.3]})
    with pytest.raises(sc.InputError) as caught:
        sc.scan(make(table), y_true="y", y_prob="p", positive="yes")
    said = str(caught.value)
    assert "y must have the value 'yes', which counts as 1, in some row" in said
    assert "Did you mean 'Yes'? Its values are: " in said
    assert "'no' (2)" in said


def test_columns_of_the_wrong_kind_are_refused(make: Callable[[pa.Table], Any]) -> None:
    table = pa.table({"y": [0.5, 0.25], "p": [0.5, 0.5], "s": ["x", "y"]})
    source = make(table)
    with pytest.raises(sc.SoftcalError, match=r"s must hold (real )?numbers.* positive=\"\w+\"\.$"):
        sc.scan(source, y_true="s", y_prob="p")
    with pytest.raises(sc.InputError, match="no column 'z'"):
        sc.scan(source, y_true="z", y_prob="p")


@pytest.mark.parametrize("joined", [1, 1 << 30])
def test_a_spark_partition_may_come_in_any_batches(
    joined: int, expected: dict[str, sc.TableSet], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run the worker code in this process, with small batches joined or not."""
    monkeypatch.setattr(engines, "_BATCH_BYTES", joined)
    roles = Roles("y", ("p", MODEL), sample_weight="w", by=tuple(BY))
    job = engines._Job(roles, sc.Bins.uniform(10), True, None)  # noqa: FBT003
    plain = TABLE.select(roles.wanted.names)
    renamed = plain.rename_columns([f"c{k}" for k in range(plain.num_columns)])
    parts = [
        part
        for start in range(0, N, 150)
        for part in engines._spark_part(
            iter(renamed.slice(start, 150).to_batches(max_chunksize=40)), job
        )
    ]
    parts += engines._spark_part(iter([]), job)
    (whole,) = engines._spark_added(iter(parts), job.nothing)
    (found,) = engines._unpacked(whole.column(0).to_pylist())
    assert_same_set(engines._returned(found).finished(roles), expected["pairs by"])


def test_a_worker_that_refuses_its_rows_returns_the_error() -> None:
    job = engines._Job(Roles("y", ("p",)), sc.Bins.uniform(10), True, None)  # noqa: FBT003
    good = pa.RecordBatch.from_pydict({"c0": [0.5], "c1": [0.5]})
    text = pa.RecordBatch.from_pydict({"c0": ["a"], "c1": [0.5]})
    parts = [part for batch in (good, text) for part in engines._spark_part(iter([batch]), job)]
    (whole,) = engines._spark_added(iter(parts), job.nothing)
    (found,) = engines._unpacked(whole.column(0).to_pylist())
    with pytest.raises(sc.InputTypeError, match="y must hold real numbers"):
        engines._returned(found)
