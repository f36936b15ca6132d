"""Spark on a standalone cluster with a master and two workers, one of which is killed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pyspark.errors import PythonException
from same_tables import assert_same_set, assert_same_table
from spark_cluster import Cluster, cluster, wait_until

import softcal as sc
from softcal.sources import engines
from test_frames import FAULTS, assert_same, hard_places

if TYPE_CHECKING:
    from collections.abc import Iterator

# Spark's Python code leaves sockets to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("spark")) as made:
        yield made


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    p = np.array([*hard_places(10), *hard_places(100), *rng.random(500)])
    votes = rng.integers(1, 6, p.size)
    return {
        "y": rng.integers(0, votes + 1) / votes,
        "p": p,
        "q": p**2,
        "w": rng.random(p.size),
        "m": votes,
        "segment": np.array(["north", None])[rng.integers(0, 2, p.size)],
    }


@pytest.fixture(scope="module")
def frame(spark: Cluster, data: dict[str, Any]) -> Any:
    rows = list(zip(*(column.tolist() for column in data.values()), strict=True))
    return spark.session.createDataFrame(rows, list(data)).repartition(4).cache()


@pytest.mark.parametrize("bins", [10, 100, 3600, [0, 0.1, 0.29, 0.3, 1]])
def test_spark_gives_the_tables_of_arrays(frame: Any, data: dict[str, Any], bins: Any) -> None:
    assert_same(sc.scan(frame, y_true="y", y_prob="p", bins=bins), "p", data)


def test_models_weights_and_votes_in_one_pass(frame: Any, data: dict[str, Any]) -> None:
    found = sc.scan(frame, y_true="y", y_prob=["p", "q"], sample_weight="w", n_votes="m")
    for name in found:
        assert_same(found, name, data, sample_weight=data["w"], n_votes=data["m"])


def test_segments_of_two_columns_one_with_missing_values(frame: Any, data: dict[str, Any]) -> None:
    found = sc.scan(frame, y_true="y", y_prob="p", by=["segment", "m"])
    assert list(found.by("segment")) == ["north", None]
    for value, tables in found.by("segment").items():
        here = data["segment"] == value
        rows = {name: values[here] for name, values in data.items()}
        assert_same(tables, "p", rows)
        here = rows["m"] == 3
        cell = {name: values[here] for name, values in rows.items()}
        assert_same(tables.by("m")["3"], "p", cell)


def scanned_here(frame: Any, **columns: Any) -> sc.TableSet:
    """Scan the rows of a Spark frame in this process."""
    return sc.scan(frame.toArrow(), **columns)


def test_query_gives_the_set_of_scan(frame: Any) -> None:
    by: list[dict[str, Any]] = [
        {},
        {"by": ["segment", "m"], "sample_weight": "w", "n_votes": "m"},
        {"n_votes": 60, "y_prob": ["p", "q"], "pairs": False},
    ]
    for options in by:
        columns = {"y_true": "y", "y_prob": "p", **options}
        assert_same_set(sc.scan(frame, **columns), scanned_here(frame, **columns))


def test_segments_of_every_type_have_the_names_of_other_sources(spark: Cluster) -> None:
    frame = spark.session.sql("""
        SELECT id / 8D AS p, 0.25 AS y, id % 2 = 0 AS truth, CASE WHEN id > 4 THEN 1e-5 WHEN id > 2
        THEN DOUBLE('NaN') ELSE 1 END AS real, CAST(id % 3 AS DECIMAL(4, 2)) AS exact,
        DATE'2026-03-01' + INT(id % 2) AS day, CAST(id % 2 AS INT) AS w FROM range(9)""")
    for by in ("truth", "real", "exact", "day"):
        columns: dict[str, Any] = {"y_true": "y", "y_prob": "p", "by": by, "sample_weight": "w"}
        assert_same_set(sc.scan(frame, **columns), scanned_here(frame, **columns), by)


def test_plain_rows_need_no_python_on_workers(
    frame: Any, data: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(engines, "_of_spark")
    assert_same(sc.scan(frame, y_true="y", y_prob=["p", "q"], pairs=False), "q", data)


def test_too_many_segments_are_refused_before_they_are_returned(
    frame: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "MAX_CELLS", 4)
    with pytest.raises(sc.InputError, match="m must have at most"):
        sc.scan(frame, y_true="y", y_prob="p", by="m")


def test_frames_without_rows_or_without_weight_give_empty_sets(frame: Any) -> None:
    assert sc.scan(frame.limit(0), y_true="y", y_prob="p").n == 0
    weightless = frame.limit(3).selectExpr("y", "p", "0 AS w")
    found = sc.scan(weightless, y_true="y", y_prob="p", sample_weight="w")
    assert (found.n, found.about.rows_without_weight) == (0, 3)


def test_labels_of_plus_and_minus_1_are_refused_with_a_hint(frame: Any) -> None:
    signs = frame.limit(3).selectExpr("CASE WHEN p >= 0 THEN -1 ELSE 1 END AS y", "p")
    with pytest.raises(sc.InputError, match=r"3 of 3 .* the first is -1.0. .*use \(y \+ 1\) / 2"):
        sc.scan(signs, y_true="y", y_prob="p")
    missing = frame.limit(3).selectExpr("CAST(NULL AS DOUBLE) AS y", "p")
    with pytest.raises(sc.InputError, match="y must have no missing values: 3 of 3"):
        sc.scan(missing, y_true="y", y_prob="p")


@pytest.mark.parametrize(
    ("column", "value", "message", "pairs"),
    [(*fault, False) for fault in FAULTS] + [(*fault, True) for fault in FAULTS[2:6]],
)
def test_invalid_values_are_refused_in_spark(
    spark: Cluster, column: str, value: float | None, message: str, *, pairs: bool
) -> None:
    """A query counts them; for pairs of models, the workers do."""
    names = ["y", "p", "q", "w", "m"]
    rows: list[list[float | None]] = [[0.5, 0.5, 0.5, 1.0, 2.0] for _ in range(4)]
    rows[2][names.index(column)] = value
    frame = spark.session.createDataFrame(rows, names)
    with pytest.raises(sc.InputError) as caught:
        sc.scan(frame, y_true="y", y_prob=["p", "q"], sample_weight="w", n_votes="m", pairs=pairs)
    assert message in str(caught.value)


def test_workers_without_softcal_raise_missing_extra(
    spark: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spark.session.createDataFrame([(0.5, 0.5, 1)], ["y", "p", "g"])

    def cannot(what: Exception) -> Any:
        def part(batches: Any, job: Any) -> Any:  # noqa: ARG001
            raise what

        return part

    lacking = ModuleNotFoundError("No module named 'softcal'")
    monkeypatch.setattr(engines, "_spark_part", cannot(lacking))
    with pytest.raises(
        ModuleNotFoundError, match=r"install softcal, narwhals, and pyarrow on them"
    ):
        sc.scan(frame, y_true="y", y_prob="p", groups="g")
    monkeypatch.setattr(engines, "_spark_part", cannot(ArithmeticError("of its own")))
    with pytest.raises(PythonException, match="ArithmeticError: of its own"):
        sc.scan(frame, y_true="y", y_prob="p", groups="g")


def test_raw_votes_and_raters_give_the_table_of_votes(spark: Cluster) -> None:
    rng = np.random.default_rng(18)
    p = rng.random(60)
    rows = [(f"t{k}", f"w{w}", "yes" if rng.random() < p[k] else "no")
            for k in range(60) for w in rng.choice(9, 3, replace=False)]  # fmt: skip
    long = dict(zip(("text", "who", "says"), map(list, zip(*rows, strict=True)), strict=True))
    items = [f"t{k}" for k in range(60)]
    preds = spark.session.createDataFrame([*zip(items, p.tolist(), strict=True)], ["text", "p"])
    votes = spark.session.createDataFrame(rows, list(long))
    whole = sc.Votes.from_long(
        long, item="text", label="says", worker="who", positive="yes"
    ).for_items(items)
    expected = sc.reliability(whole, p, raters=True)
    names: dict[str, Any] = {
        "item": "text", "vote": "says", "worker": "who", "positive": "yes", "raters": True,
    }  # fmt: skip
    for source, other in ((preds.repartition(3), votes), (preds.join(votes, "text"), None)):
        found = sc.scan(source, y_prob="p", votes=other, **names)["p"]
        assert_same_table(found, expected)
        mine, theirs = sc.smece_interval(found), sc.smece_interval(expected)
        assert (mine.low, mine.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
        assert mine.rater_share == pytest.approx(theirs.rater_share, abs=1e-9)


def test_killed_worker_does_not_change_the_result(spark: Cluster) -> None:
    """The worker is killed with its executor while rows are read."""
    n, parts = 3_000_000, 48
    frame = spark.session.range(0, n, 1, parts).selectExpr(
        "((id * 7919) % 10007) / 10007.0D AS p",
        "((id * 104729) % 997) / 996.0D AS y",
        "id % 1009 AS g",
    )
    tracker = spark.session.sparkContext.statusTracker()

    def is_in_the_middle() -> bool:
        stages = (tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds())
        return any(one.numTasks == parts and one.numCompletedTasks >= 2 for one in stages if one)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(sc.scan, frame, y_true="y", y_prob="p", groups="g", bins=5)
        wait_until(is_in_the_middle)
        spark.kill_a_worker()
        assert not running.done()
        found = running.result()["p"]
    assert spark.executors() == 1
    row = np.arange(n)
    y, p = (row * 104729 % 997) / 996.0, (row * 7919 % 10007) / 10007.0
    expected = sc.reliability(y, p, groups=row % 1009, bins=5)
    assert_same_table(found, expected)
    assert found.clusters is not None
    assert expected.clusters is not None
    assert found.clusters.count == 1009
    for part in ("residual", "weight"):
        mine, whole = getattr(found.clusters, part), getattr(expected.clusters, part)
        np.testing.assert_allclose(mine, whole, rtol=1e-12, atol=1e-12 * np.abs(whole).max())


def test_sql_query_gives_the_tables_of_scan(
    spark: Cluster, frame: Any, data: dict[str, Any]
) -> None:
    frame.createOrReplaceTempView("rows")
    query = sc.sql_query(
        "rows", y_true="y", y_prob=["p", "q"], by="segment", sample_weight="w", n_votes="m",
        dialect="spark",
    )  # fmt: skip
    tables = sc.tables_from_query(spark.session.sql(query).toArrow())
    for model in ("p", "q"):
        whole = sc.reliability(data["y"], data[model], sample_weight=data["w"], n_votes=data["m"])
        assert_same_table(tables[model], whole)
    assert set(tables.by("segment")) == {"north", None}
