"""Spark on a standalone cluster with a master and two workers, one of which is killed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from same_tables import assert_same_set, assert_same_table
from spark_cluster import Cluster, cluster, wait_until

import softcal as sc

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
    p = rng.random(500)
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


def scanned_here(frame: Any, **columns: Any) -> sc.TableSet:
    """Scan the rows of a Spark frame in this process."""
    return sc.scan(frame.toArrow(), **columns)


def test_segments_of_every_type_have_the_names_of_other_sources(spark: Cluster) -> None:
    frame = spark.session.sql("""
        SELECT id / 8D AS p, 0.25 AS y, id % 2 = 0 AS truth, CASE WHEN id > 4 THEN 1e-5 WHEN id > 2
        THEN DOUBLE('NaN') ELSE 1 END AS real, CAST(id % 3 AS DECIMAL(4, 2)) AS exact,
        DATE'2026-03-01' + INT(id % 2) AS day, CAST(id % 2 AS INT) AS w FROM range(9)""")
    for by in ("truth", "real", "exact", "day"):
        columns: dict[str, Any] = {"y_true": "y", "y_prob": "p", "by": by, "sample_weight": "w"}
        assert_same_set(sc.scan(frame, **columns), scanned_here(frame, **columns), by)


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
        "rows", y_true=sc.Shares("y", votes="m"), y_prob=["p", "q"], by="segment",
        sample_weight="w", dialect="spark",
    )  # fmt: skip
    tables = sc.tables_from_query(spark.session.sql(query).toArrow())
    for model in ("p", "q"):
        whole = sc.reliability(data["y"], data[model], sample_weight=data["w"], n_votes=data["m"])
        assert_same_table(tables[model], whole)
    assert set(tables.by("segment")) == {"north", None}
