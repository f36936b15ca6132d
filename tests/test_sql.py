"""The SQL query of one pass: DuckDB, Spark, and PostgreSQL run it and must agree with scan."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sqlglot
from command_line import softcal_here
from hostile import NAMES
from same_tables import assert_same_set, assert_same_table
from sqlglot import exp

import postgres
import softcal as sc
from softcal import sql_query, tables_from_query
from softcal.scanning.sql import Dialect

if TYPE_CHECKING:
    from collections.abc import Iterator

DIALECTS = get_args(Dialect)

# Spark's Python code leaves sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def ran(query: str, **frames: pd.DataFrame | pa.Table) -> Any:
    """Run a query in DuckDB on frames with these names."""
    connection = duckdb.connect()
    for name, frame in frames.items():
        connection.register(name, frame)
    return connection.sql(query)


def rows(rng: np.random.Generator) -> pd.DataFrame:
    """Return rows whose predictions lie on edges, a step to either side of them, or near 0."""
    edges = sc.Bins.grid().edges
    tiny = [1e-7, 1e-160, 1e-300, 5e-324, 0.5, 0.5, 0.0, 1.0]
    p = np.concatenate([edges, np.nextafter(edges[1:], 0), np.nextafter(edges[:-1], 1), tiny])
    n = p.size
    votes = rng.choice([1, 2, 4, 8], n)
    yes = rng.integers(0, votes + 1)
    return pd.DataFrame({
        "p": p,
        "q": p**2,
        "y": yes / votes,
        "soft": rng.permutation(p),
        "high": np.minimum(1, yes / votes + rng.random(n)),
        "w": rng.choice([0, 0.5, 2.0], n),
        "m": votes,
        "no": votes - yes,
        "yes": yes,
        "logit": rng.normal(0, 400, n),
        "logprob": -rng.exponential(400, n),
        "percent": 100 * p,
        "answer": rng.choice(["ja", "nein", "it's", ""], n),
        "country": np.array(["DE", "it's \"FR\"", None], dtype=object)[rng.integers(0, 3, n)],
        "device": rng.choice([1, 2], n),
    })  # fmt: skip


CASES: dict[str, dict[str, Any]] = {
    "plain": {"y_true": "y", "y_prob": ["p", "q"]},
    "segments": {"y_true": "soft", "y_prob": "p", "by": "country"},
    "weights": {"y_true": "y", "y_prob": "p", "by": ["country", "device"], "sample_weight": "w"},
    "votes": {"y_true": sc.Shares("y", "m"), "y_prob": ["p", "q"]},
    "all": {
        "y_true": sc.Shares("y", "m"), "y_prob": "p", "by": ["m", "country"], "sample_weight": "w",
    },
    "one number": {"y_true": sc.Shares("y", 8), "y_prob": "p"},
    "counts": {"y_true": sc.Counts(["no", "yes"]), "y_prob": "p", "sample_weight": "w"},
    "bounds": {"y_true": sc.Bounds("y", "high"), "y_prob": ["p", "q"], "by": "device"},
    "words": {
        "y_true": sc.Column("answer", positive="it's"), "y_prob": sc.Column("logit", "logit"),
    },
    "scales": {
        "y_true": sc.Column("percent", "percent"),
        "y_prob": [sc.Column("logprob", "logprob"), sc.Column("logit", "logit")],
    },
    "own labels": {"y_true": sc.Column("device", positive=1), "y_prob": {"a": "p", "b": ("q", "y")}},
}  # fmt: skip


def queried(frame: pd.DataFrame, **columns: Any) -> sc.TableSet:
    return tables_from_query(ran(sql_query("rows", **columns), rows=frame).to_arrow_table())


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    settings = {
        "spark.driver.host": "127.0.0.1", "spark.driver.memory": "640m",
        "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2", "spark.log.level": "ERROR",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }  # fmt: skip
    builder = SparkSession.builder.master("local[2]").appName("softcal tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    if postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with postgres.server(Path(folder)) as made:
            yield made


Engine: TypeAlias = Any  # takes a table and the columns of a query


@pytest.fixture(params=["duckdb", "spark", "postgres"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Return a function that runs the query of columns on a frame, in the dialect of an engine."""

    def in_duckdb(table: pa.Table, columns: dict[str, Any]) -> Any:
        return ran(sql_query("rows", **columns), rows=table).to_arrow_table()

    def in_spark(table: pa.Table, columns: dict[str, Any]) -> Any:
        session = request.getfixturevalue("spark")
        session.createDataFrame(table).createOrReplaceTempView("rows")
        return session.sql(sql_query("rows", **columns, dialect="spark")).toArrow()

    def in_postgres(table: pa.Table, columns: dict[str, Any]) -> Any:
        made = request.getfixturevalue("server")
        made.load('"rows"', table)
        return made.table(sql_query('"rows"', **columns, dialect="postgres"))

    return {"duckdb": in_duckdb, "spark": in_spark, "postgres": in_postgres}[request.param]


def test_query_gives_the_set_of_scan(rng: np.random.Generator, engine: Engine) -> None:
    table = pa.Table.from_pandas(rows(rng))
    for name, columns in CASES.items():
        ours = tables_from_query(engine(table, columns))
        theirs = sc.scan(table, **columns, pairs=False)
        assert_same_set(ours, theirs, name)


def test_rows_that_break_a_rule_are_counted_on_every_engine(engine: Engine) -> None:
    """NaN is above all numbers in some databases; products of wild values overflow in others."""
    good = {"p": 0.5, "y": 0.5, "high": 0.5, "w": 1.0, "m": 2.0, "logit": 0.0, "logprob": -1.0}
    cases = {
        "p": {"y_true": "y", "y_prob": ["p", "high"], "sample_weight": "w"},
        "y": {"y_true": "y", "y_prob": "p", "sample_weight": "w"},
        "w": {"y_true": "y", "y_prob": "p", "sample_weight": "w"},
        "m": {"y_true": sc.Shares("y", "m"), "y_prob": "p"},
        "high": {"y_true": sc.Bounds("y", "high"), "y_prob": "p"},
        "logit": {"y_true": "y", "y_prob": sc.Column("logit", "logit")},
        "logprob": {"y_true": "y", "y_prob": sc.Column("logprob", "logprob")},
    }
    for name, columns in cases.items():
        bad = [None, np.nan] if name == "logit" else [None, np.nan, 1e300, np.inf]
        values: dict[str, list[Any]] = {key: [value] * 5 for key, value in good.items()}
        values[name] = [*bad, *values[name][len(bad) :]]
        result = engine(pa.table(values), columns)
        with pytest.raises(sc.InputError, match=f"{len(bad)} rows break a rule"):
            tables_from_query(result)


def test_missing_words_are_refused_and_so_is_a_word_that_no_row_has(engine: Engine) -> None:
    result = engine(pa.table({"answer": ["ja", None, ""], "p": [0.5, 0.5, 0.5]}), words("ja"))
    with pytest.raises(sc.InputError, match="1 rows break a rule"):
        tables_from_query(result)
    result = engine(pa.table({"answer": ["ja", "nein"], "p": [0.5, 0.5]}), words("Ja"))
    with pytest.raises(sc.InputError, match="answer must have the value 'Ja', which counts as 1"):
        tables_from_query(result)


def words(positive: str) -> dict[str, Any]:
    return {"y_true": sc.Column("answer", positive=positive), "y_prob": "p"}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_query_parses_in_its_dialect_and_quotes_hostile_texts(dialect: Any) -> None:
    """BigQuery, Snowflake, Databricks, Redshift, and Trino cannot be run here."""
    for name in NAMES:
        columns: dict[str, Any] = {
            "y_true": sc.Column(name, positive=f"{name}'\\"), "y_prob": "the p", "by": f"{name}b",
            "sample_weight": "w",
        }  # fmt: skip
        tree = sqlglot.parse_one(sql_query("a.b AS c", **columns, dialect=dialect), read=dialect)
        texts = {each.this for each in tree.find_all(exp.Literal) if each.is_string}
        assert {name, f"{name}'\\"} <= texts
        if dialect != "bigquery" or "." not in name:  # where a quoted dot is parsed as a path
            assert {name, f"softcal_by_{name}b"} <= {x.name for x in tree.find_all(exp.Identifier)}
    for columns in CASES.values():
        assert sqlglot.parse_one(sql_query("t", **columns, dialect=dialect), read=dialect)


def test_table_is_copied_as_it_is_once() -> None:
    for table in ("{{ ref('rows') }}", "a JOIN b USING (id)", '"softcal_source"'):
        query = sql_query(table, y_true="softcal_source", y_prob=["p", "q"], dialect="snowflake")
        assert query.count(f"FROM {table})") == 1


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
    [("p", -0.1), ("p", 1.5), ("y", None), ("y", 7.0), ("w", -1.0), ("m", 0.5), ("m", 1e9 + 0.5)],
)
def test_rows_that_break_a_rule_are_counted_and_refused(
    rng: np.random.Generator, column: str, bad: float | None
) -> None:
    frame = rows(rng)
    frame[column] = frame[column].astype(float)
    frame.loc[3:4, column] = bad
    with pytest.raises(sc.InputError, match="2 rows break a rule"):
        queried(frame, y_true=sc.Shares("y", "m"), y_prob="p", sample_weight="w")


# DuckDB has no names with a NUL, and none without a letter.
@pytest.mark.parametrize("name", [name for name in NAMES if name and "\x00" not in name])
def test_hostile_names_are_quoted(rng: np.random.Generator, name: str) -> None:
    frame = rows(rng).rename(columns={"p": name})
    assert queried(frame, y_true="y", y_prob=sc.Column(name)).models == (name,)


@pytest.mark.parametrize("role", ["y_true", "y_prob", "by", "sample_weight"])
def test_column_names_that_spark_would_replace_are_refused(role: str) -> None:
    """Spark replaces ${env:HOME}, even inside quotes."""
    columns: Any = {"y_true": "y", "y_prob": "p", role: "${env:HOME}"}
    for dialect in ("spark", "databricks"):
        with pytest.raises(
            sc.InputError, match=r"Spark replaces \$\{\.\.\.\} in a query: '\$\{env"
        ):
            sql_query("t", **columns, dialect=dialect)
    assert "${env:HOME}" in sql_query("t", **columns)
    with pytest.raises(sc.InputError, match="Spark replaces"):
        sql_query("t", y_true=sc.Column("y", positive="${x}"), y_prob="p", dialect="spark")


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
    with pytest.raises(sc.InputError, match=r"dialect must be one of duckdb, .*: got 'oracle'"):
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
        path, y_true=sc.Shares("y", "m"), y_prob=["p", "q"], by="device", sample_weight="w"
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
    with pytest.raises(sc.InputError, match="y_prob must name at least one column"):
        sc.sql_query("t", y_true="y", y_prob=[])
    with pytest.raises(sc.InputError, match="different columns"):
        sc.sql_query("t", y_true="y", y_prob="y")
    rows = pd.DataFrame({"p": [0.5, 0.25], "y": [1.0, 0.0]})  # noqa: F841 - read by DuckDB
    ask: Any = duckdb.sql
    result = ask(sc.sql_query("rows", y_true="y", y_prob="p")).to_df()
    wrong: tuple[tuple[str, Any, str], ...] = (
        ("weight", "x", "must have the types that the query returns"),
        ("weight", np.nan, "finite numbers"),
        ("weight", -1.0, "no query gives"),
        ("weight", 9.0, "contradict"),
        ("count", 1.5, "no query gives"),
        ("count", 0.0, "no rows"),
        ("softcal_bin", 648, "no query gives"),
        ("softcal_target", "low", "no query gives"),
    )
    for name, value, message in wrong:
        with pytest.raises(sc.InputError, match=message):
            sc.tables_from_query(result.assign(**{name: value}))


def test_labels_that_a_query_cannot_compute_are_refused() -> None:
    given: tuple[dict[str, Any], ...] = (
        {"y_true": sc.RawVotes("vote", item="id"), "y_prob": "p"},
        {"y_true": sc.Classes("y_*"), "y_prob": {"a": "p_*"}},
        {"y_true": sc.Counts("n_*"), "y_prob": "p"},
        {"y_true": "y", "y_prob": sc.Long("p", model="model")},
        {"y_true": "y", "y_prob": "p", "by": [sc.Cut("age", 10)]},
    )
    for columns in given:
        with pytest.raises(sc.InputError, match="a query needs columns by name, with one label"):
            sql_query("t", **columns)


def test_command_has_every_dialect_scales_and_words(rng: np.random.Generator) -> None:
    for dialect in DIALECTS:
        done = softcal_here("sql", "t", "--label=y", "--pred=p", f"--dialect={dialect}")
        assert done.stdout == sql_query("t", y_true="y", y_prob="p", dialect=dialect)
    options = ["--label", "answer", "--positive", "ja", "--pred", "logit", "--pred-scale", "logit"]
    frame = rows(rng)
    tables = tables_from_query(ran(softcal_here("sql", "frame", *options).stdout, frame=frame).df())
    columns: dict[str, Any] = {
        "y_true": sc.Column("answer", positive="ja"), "y_prob": sc.Column("logit", "logit"),
    }  # fmt: skip
    assert_same_set(tables, sc.scan(frame, **columns))
