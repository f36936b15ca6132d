"""`softcal sql`: the query that adds up a table where softcal does not run."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from softcal.cli.describe import Described, describes
from softcal.cli.options import asks
from softcal.exceptions import InputError

_Dialect = StrEnum("_Dialect", [
    "duckdb", "spark", "postgres", "bigquery", "snowflake", "databricks", "redshift", "trino",
])  # fmt: skip


@describes(only=(
    "label", "pred", "by", "weight", "votes", "positive", "data_file", "label_low", "label_high",
    "vote_columns", "pred_scale", "label_scale",
))  # fmt: skip
def sql(
    table: Annotated[
        str, typer.Argument(help="Table, or anything that may follow FROM.", metavar="TABLE")
    ],
    dialect: Annotated[_Dialect, asks(f"One of {', '.join(_Dialect)}.", "NAME")] = _Dialect.duckdb,
    *,
    how: Described,
) -> None:
    """Print a SQL query that adds up a table for softcal.

    Run the query in your database, then read its result in Python with
    `softcal.tables_from_query(result)`.

    Example: softcal sql predictions --label y --pred p --dialect spark
    """
    from softcal.scanning.sql import sql_query

    how.refuse_contradictions()
    if how.missing:
        raise InputError(how.missing)
    data = how.data(table)
    own: dict[str, Any] = {
        "y_true": data.y_true,
        "y_prob": [model.pred for model in data.y_prob.values()],  # type: ignore[union-attr]
        "dialect": dialect.value,
    }
    text = sql_query(table, by=how.by or (), sample_weight=how.weight, **own)
    if not text.replace("\n", "").replace("\t", "").isprintable():
        message = (
            "a query with control characters cannot be printed. Rename these columns, or call "
            "softcal.sql_query in Python."
        )
        raise InputError(message)
    sys.stdout.write(text)
