"""Write the query of a scan in the SQL of a database; `query_result` reads its result.

The query adds up a table where softcal does not run: it is the query of `queries.table_queries`
over an empty table of DuckDB, in whose place the caller's table is put. Its result has one row per
model, target, segment, and filled bin, with the sums that `softcal.table.kernel.Sums` lists. Rows
that break a rule are counted in bin -1, and a result with such rows is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import narwhals.stable.v2 as nw

from softcal._optional import naming_the_extra
from softcal.exceptions import InputError
from softcal.scanning import sums
from softcal.scanning.data import Classes, Counts, Data, Long, RawVotes
from softcal.scanning.expressions import when, where
from softcal.scanning.queries import table_queries
from softcal.scanning.query_result import SEGMENT, TEXTS
from softcal.scanning.source import Source
from softcal.table.kernel import SUM_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from softcal.scanning.data import Column, Label
    from softcal.scanning.plan import Plan
    from softcal.scanning.source import Kind, Use

Dialect = Literal[
    "duckdb", "spark", "postgres", "bigquery", "snowflake", "databricks", "redshift", "trino"
]

_TINY = 1e-150
_ROWS = "softcal_source"


class _Elsewhere(Source):
    """A table of a database: an empty table of DuckDB stands for it."""

    place = "the table"

    def __init__(self, con: Any) -> None:
        self.con, self.names = con, []
        self.uses: Sequence[Use] = ()

    def refuse_unknown(self, name: str) -> None:
        """Take any name, because only the database knows its columns."""

    def kind(self, name: str) -> Kind:
        """Return that values become text if they are not used as numbers."""
        del name
        return "number"

    def frame(self, uses: Sequence[Use]) -> nw.LazyFrame[Any]:
        """Return the rows."""
        self.uses = uses
        columns = ", ".join(f"c{k} {_type(use)}" for k, use in enumerate(uses))
        self.con.execute(f"CREATE OR REPLACE TABLE {_ROWS} ({columns})").fetchall()
        found: nw.LazyFrame[Any] = nw.from_native(self.con.table(_ROWS))
        return found


def _type(use: Use) -> str:
    return "VARCHAR" if use.as_ == "value" else "DOUBLE"


@naming_the_extra()
def sql_query(
    table: str,
    *,
    y_true: str | Label,
    y_prob: str | Column | Sequence[str | Column] | Mapping[str, Any],
    by: str | Sequence[str] = (),
    sample_weight: str | None = None,
    dialect: Dialect = "duckdb",
) -> str:
    """Return the SQL query that adds up a table in one pass.

    Parameters
    ----------
    table : str
        The table, or anything else that may follow FROM. It is copied into the query as it is.
    y_true, y_prob, by, sample_weight : str, Column, Shares, Counts, or Bounds
        Columns, as in `scan`, with one probability per row. Their names are quoted.
    dialect : str, default="duckdb"
        "duckdb", "spark", "postgres", "bigquery", "snowflake", "databricks", "redshift", or
        "trino".

    Returns
    -------
    str
        A query whose result `tables_from_query` reads. Predictions are in the 648 bins of
        `Bins.grid`. Labels and predictions between 0 and 1e-150 count as 1e-150, because
        PostgreSQL refuses products that underflow.

    Examples
    --------
    >>> import duckdb
    >>> from softcal import tables_from_query
    >>> rows = duckdb.sql("SELECT 0.25 AS p, 0.5 AS y UNION ALL SELECT 0.75, 0.5")
    >>> result = duckdb.sql(sql_query("rows", y_true="y", y_prob="p"))
    >>> tables_from_query(result.to_arrow_table())["p"].smece
    0.25
    """
    from softcal.scanning.plan import planned
    from softcal.scanning.source import Session

    if dialect not in get_args(Dialect):
        message = f"dialect must be one of {', '.join(get_args(Dialect))}: got {dialect!r:.60}."
        raise InputError(message)
    data = Data.of(None, y_true=y_true, y_prob=y_prob, by=by, sample_weight=sample_weight)
    _refuse_other_data(data)
    con = Session()
    try:
        source = _Elsewhere(con)
        plan = planned(data.with_(source=source), con)
        parts = [_named(plan, k, t, query) for k, t, query in table_queries(plan, _summable)]
        text = nw.concat(parts).to_native().sql_query()
    finally:
        con.close()
    for each in (text, *(use.name for use in source.uses)):
        if "${" in each and dialect in ("spark", "databricks"):
            message = (
                f"Spark replaces ${{...}} in a query: {each[each.index('${') :]!r:.40} could read "
                "its settings and environment. Rename the column or value in a view."
            )
            raise InputError(message)
    return _in_dialect(text, table, source.uses, data.by, dialect)


def _refuse_other_data(data: Data) -> None:
    models = {} if isinstance(data.y_prob, Long) else data.y_prob
    labels = [data.y_true, *(model.label for model in models.values())]
    counts = [each.columns for each in labels if isinstance(each, Counts)]
    if (
        not models
        or any(isinstance(each, Classes | RawVotes) for each in labels)
        or any(isinstance(each, str) and "," not in each for each in counts)
        or not all(isinstance(each, str) for each in data.by)
    ):
        message = (
            "a query needs columns by name, with one label and one probability per row: prepare "
            "other labels, ranges, and days in a view, or use scan."
        )
        raise InputError(message)


def _summable(rows: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Replace what a database may refuse to multiply: tiny values, and rows that do not count."""
    have = rows.collect_schema().names()
    values = {name: nw.col(name) for name in ("p", "y", "w", "m") if name in have}
    for name in ("p", "y"):
        x = values[name]
        values[name] = when((x > 0) & (x < _TINY), _TINY, x)
    return rows.with_columns(
        where(nw.col("status") == 0, value).alias(name) for name, value in values.items()
    )


def _named(plan: Plan, k: int, t: int, query: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Return the result of a model and target with the columns that `tables_from_query` reads."""
    label = plan.data.y_true
    word = plan.words[0].positive if plan.words else None
    texts = (
        plan.label, getattr(label, "high", None), word, plan.data.sample_weight, plan.of_votes,
        plan.models[k].name, plan.targets[t],
    )  # fmt: skip
    flags = {"weighted": plan.weighted, "voted": plan.voted}
    own = {name: sums.source_of(name, **flags) for name in SUM_NAMES}
    return query.select(
        *(nw.lit(text, nw.String).alias(name) for name, text in zip(TEXTS, texts, strict=True)),
        *plan.by, nw.col("bin").alias("softcal_bin"), nw.col("rows").alias("softcal_rows"),
        *((nw.col(each) if each else nw.lit(0.0)).alias(name) for name, each in own.items()),
    )  # fmt: skip


def _write_remainders(tree: Any) -> None:
    """Replace the remainder of x and 1 by x - FLOOR(x), for databases without the former."""
    from sqlglot import exp

    while (rest := tree.find(exp.Mod)) is not None:
        own, whole = exp.Paren(this=rest.this.copy()), exp.Floor(this=rest.this.copy())
        rest.replace(exp.Paren(this=exp.Sub(this=own, expression=whole)))


def _in_dialect(
    text: str, table: str, uses: Sequence[Use], by: Sequence[Any], dialect: Dialect
) -> str:
    """Translate a query of DuckDB, with the caller's table in place of the empty one."""
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(text, read="duckdb")
    segments = {f"by_{k}": SEGMENT + name for k, name in enumerate(by)}
    for name in tree.find_all(exp.Identifier):
        name.set("this", segments.get(name.name, name.name.replace("__duckdb_s", "softcal_")))
    for test in list(tree.find_all(exp.IsNan)):  # NaN is above infinity, or not comparable
        number = exp.LTE(this=test.this, expression=exp.cast(exp.Literal.string("inf"), "DOUBLE"))
        test.replace(exp.Not(this=exp.Paren(this=number)))
    if dialect not in ("duckdb", "spark", "databricks"):
        _write_remainders(tree)
    columns = [
        exp.cast(exp.column(use.name, quoted=True), _type(use)).as_(f"c{k}", quoted=True)
        for k, use in enumerate(uses)
    ]
    mark = _ROWS
    while any(mark in each for each in (text, *segments.values(), *(use.name for use in uses))):
        mark += "_"
    place = exp.Table(this=exp.to_identifier(mark, quoted=True))
    for each in list(tree.find_all(exp.Table)):
        if each.name == _ROWS:
            each.replace(exp.select(*columns).from_(place).subquery("t"))
    steps = tree.find(exp.With).pop().expressions  # type: ignore[union-attr]
    for step in steps:
        step.set("materialized", None)
    first = ",\n".join(step.sql(dialect) for step in steps)
    return f"WITH {first}\n{tree.sql(dialect)}\n".replace(place.sql(dialect), table)
