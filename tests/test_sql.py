"""The SQL query of one pass: DuckDB runs it here, Spark in tests/test_spark.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from command_line import softcal_here
from hostile import NAMES
from same_tables import assert_same_table

import softcal as sc
from softcal.sources.sql import sql_query, tables_from_query

if TYPE_CHECKING:
    from pathlib import Path


def ran(query: str, **frames: pd.DataFrame) -> Any:
    """Run a query in DuckDB on frames with these names."""
    connection = duckdb.connect()
    for name, frame in frames.items():
        connection.register(name, frame)
    return connection.sql(query)


def rows(rng: np.random.Generator) -> pd.DataFrame:
    """Return rows whose predictions lie on edges, and a step to either side of them."""
    edges = sc.Bins.grid().edges
    p = np.concatenate([edges, np.nextafter(edges[1:], 0), np.nextafter(edges[:-1], 1)])
    n = p.size
    return pd.DataFrame({
        "p": p,
        "q": p**2,
        "y": rng.choice([0, 0.25, 0.5, 1], n),
        "w": rng.choice([0, 0.5, 2.0], n),
        "m": rng.choice([1, 4, 8], n),
        "country": np.array(["DE", "FR", None])[rng.integers(0, 3, n)],
        "device": rng.choice([1, 2], n),
    })  # fmt: skip


def queried(frame: pd.DataFrame, **columns: Any) -> sc.TableSet:
    return tables_from_query(ran(sql_query("rows", **columns), rows=frame).to_arrow_table())


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"by": "country"},
        {"by": ["country", "device"], "sample_weight": "w"},
        {"n_votes": "m"},
        {"n_votes": "m", "sample_weight": "w", "by": "device"},
    ],
)
def test_query_in_duckdb_gives_the_tables_of_scan(
    rng: np.random.Generator, columns: dict[str, Any]
) -> None:
    frame = rows(rng)
    ours = queried(frame, y_true="y", y_prob=["p", "q"], **columns)
    theirs = sc.scan(frame, y_true="y", y_prob=["p", "q"], **columns)
    assert ours.about == theirs.about._replace(rows_without_weight=None)
    assert ours.by_names == theirs.by_names
    assert ours.grid == theirs.grid
    for model in ("p", "q"):
        fine = sc.reliability(
            frame["y"], frame[model], bins=ours.grid,
            sample_weight=frame["w"] if "sample_weight" in columns else None,
            n_votes=frame["m"] if "n_votes" in columns else None,
        )  # fmt: skip
        assert_same_table(ours.coarsen(ours.grid)[model], fine)
        assert_same_table(ours[model], theirs[model])
        for column in theirs.by_names:
            for value, part in theirs.by(column).items():
                assert_same_table(ours.by(column)[value][model], part[model])


def test_result_saves_and_merges_like_any_set(rng: np.random.Generator, tmp_path: Path) -> None:
    tables = queried(rows(rng), y_true="y", y_prob="p", by="country")
    tables.save(tmp_path / "day.softcal")
    assert sc.load(tmp_path / "day.softcal") == tables
    assert (tables + tables).n == 2 * tables.n


@pytest.mark.parametrize("frame", ["pandas", "polars", "pyarrow"])
def test_result_may_be_any_frame(rng: np.random.Generator, frame: str) -> None:
    data = rows(rng)
    result = ran(sql_query("data", y_true="y", y_prob="p"), data=data)
    given = {"pandas": result.df, "polars": result.pl, "pyarrow": result.to_arrow_table}[frame]()
    tables = tables_from_query(given, bins=20, date="2026-03-01")
    assert len(tables.bins) == 20
    assert tables.about.date == "2026-03-01"
    assert tables["p"].smece == pytest.approx(sc.smece(data["y"], data["p"], bins=20), abs=1e-12)


@pytest.mark.parametrize(
    ("column", "bad"),
    [("p", -0.1), ("p", 1.5), ("p", np.nan), ("y", None), ("y", 7.0), ("w", -1.0), ("m", 0.5)],
)
def test_rows_that_break_a_rule_are_counted_and_refused(
    rng: np.random.Generator, column: str, bad: float | None
) -> None:
    frame = rows(rng)
    frame[column] = frame[column].astype(float)
    frame.loc[3:4, column] = bad
    with pytest.raises(sc.InputError, match="2 rows break a rule"):
        queried(frame, y_true="y", y_prob="p", sample_weight="w", n_votes="m")


# DuckDB has no names with a NUL, and none without a letter.
@pytest.mark.parametrize("name", [name for name in NAMES if name and "\x00" not in name])
def test_hostile_names_are_quoted(rng: np.random.Generator, name: str) -> None:
    frame = rows(rng).rename(columns={"p": name})
    assert queried(frame, y_true="y", y_prob=name).models == (name,)


@pytest.mark.parametrize("role", ["y_true", "y_prob", "by", "sample_weight", "n_votes"])
def test_column_names_that_spark_would_replace_are_refused(role: str) -> None:
    """Spark replaces ${env:HOME}, even inside quotes."""
    columns: Any = {"y_true": "y", "y_prob": "p", role: "${env:HOME}"}
    message = r"Spark replaces \$\{\.\.\.\} in a query: the column '\$\{env:HOME\}' "
    with pytest.raises(sc.InputError, match=message):
        sql_query("t", **columns, dialect="spark")
    assert "${env:HOME}" in sql_query("t", **columns)


def test_command_prints_no_control_characters() -> None:
    for name in ("\x1b[31m", "a\rb", "\u202e", "a\0"):
        for arguments in (["t", "--label", name, "--pred", "p"], [name, "--label=y", "--pred=p"]):
            done = softcal_here("sql", *arguments)
            assert (done.returncode, done.stdout) == (2, "")
            assert "a query with control characters cannot be printed" in done.stderr
            assert done.stderr.replace("\n", "").isprintable()
    done = softcal_here("sql", "(SELECT *\n\tFROM t)", "--label=y", "--pred=p")
    assert "(SELECT *\n\tFROM t)" in done.stdout


def test_other_results_are_refused() -> None:
    with pytest.raises(sc.InputError, match="it has no column 'softcal_label'"):
        tables_from_query(pd.DataFrame({"a": [1]}))
    with pytest.raises(sc.InputTypeError, match="a data frame in memory, not list"):
        tables_from_query([1])
    with pytest.raises(sc.InputError, match="dialect must be 'duckdb' or 'spark': got 'oracle'"):
        sql_query("t", y_true="y", y_prob="p", dialect="oracle")  # type: ignore[arg-type]
    empty = pd.DataFrame({"y": [0.5], "p": [0.5]}).head(0)
    with pytest.raises(sc.InputError, match="the table has no rows"):
        tables_from_query(ran(sql_query("empty", y_true="y", y_prob="p"), empty=empty).df())


def test_command_prints_the_query(rng: np.random.Generator, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    rows(rng).to_csv(path, index=False)
    done = softcal_here(
        "sql", f"'{path}'", "--label", "y", "--pred", "p", "--pred", "q", "--by", "device",
        "--weight", "w", "--votes", "m",
    )  # fmt: skip
    tables = tables_from_query(ran(done.stdout).df())
    theirs = sc.scan(
        path, y_true="y", y_prob=["p", "q"], by="device", sample_weight="w", n_votes="m"
    )
    for model in theirs:
        assert_same_table(tables[model], theirs[model])
    spark = softcal_here("sql", "t", "--label", "y", "--pred", "it's", "--dialect", "spark")
    assert "`it's`" in spark.stdout
    assert r"'it\'s'" in spark.stdout


def test_command_needs_label_and_predictions() -> None:
    assert "--label" in softcal_here("sql", "t", "--pred", "p").stderr
    assert "--pred" in softcal_here("sql", "t", "--label", "p").stderr


def test_query_counts_nan_and_takes_segments_named_as_sums() -> None:
    rows = pd.DataFrame({"p": [0.5, 0.25], "y": [1.0, 0.0], "weight": ["a", "b"]})
    query = sc.sql_query("rows", y_true="y", y_prob="p", by="weight")
    ask: Any = duckdb.sql
    tables = sc.tables_from_query(ask(query).to_arrow_table())
    assert list(tables.by("weight")) == ["a", "b"]
    rows["p"] = [np.nan, np.inf]
    result = ask(query).to_arrow_table()
    with pytest.raises(sc.InputError, match="2 rows break a rule"):
        sc.tables_from_query(result)


def test_odd_queries_and_results_are_refused() -> None:
    odd: Any = 3
    with pytest.raises(sc.InputTypeError, match="by must be the name of a column"):
        sc.sql_query("t", y_true="y", y_prob="p", by=odd)
    with pytest.raises(sc.InputError, match="y_prob is empty"):
        sc.sql_query("t", y_true="y", y_prob=[])
    with pytest.raises(sc.InputError, match="different columns"):
        sc.sql_query("t", y_true="y", y_prob="y")
    rows = pd.DataFrame({"p": [0.5, 0.25], "y": [1.0, 0.0]})  # noqa: F841 - read by DuckDB
    ask: Any = duckdb.sql
    result = ask(sc.sql_query("rows", y_true="y", y_prob="p")).to_df()
    wrong: tuple[tuple[str, Any, str], ...] = (
        ("weight", "x", "finite numbers"),
        ("weight", -1.0, "no query gives"),
        ("weight", 9.0, "contradict"),
        ("count", 1.5, "no query gives"),
        ("count", 0.0, "no rows"),
        ("softcal_model", 3, "must have texts"),
    )
    for name, value, message in wrong:
        with pytest.raises(sc.InputError, match=message):
            sc.tables_from_query(result.assign(**{name: value}))
