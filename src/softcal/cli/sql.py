"""`softcal sql`: the query that adds up a table where softcal does not run."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated, cast

import typer

from softcal.cli.options import By, MaybeLabel, MaybePreds, Votes, Weight, given
from softcal.exceptions import InputError

_Dialect = StrEnum("_Dialect", ["duckdb", "spark"])


def sql(
    table: Annotated[
        str, typer.Argument(help="Table, or anything that may follow FROM.", metavar="TABLE")
    ],
    label: MaybeLabel = None,
    pred: MaybePreds = None,
    by: By = None,
    weight: Weight = None,
    votes: Votes = None,
    dialect: Annotated[
        _Dialect, typer.Option(help="SQL dialect.", metavar="duckdb|spark")
    ] = _Dialect.duckdb,
) -> None:
    """Print a SQL query that adds up a table in one pass; softcal reads its result.

    Run the query in your database, then read its result in Python with
    `softcal.tables_from_query(result)`.
    """
    from softcal.sources.sql import Dialect, sql_query

    text = sql_query(
        table, y_true=given(label, "Missing option '--label'."),
        y_prob=given(pred, "Missing option '--pred'."), by=by or (), sample_weight=weight,
        n_votes=votes, dialect=cast("Dialect", dialect.value),
    )  # fmt: skip
    if not text.replace("\n", "").replace("\t", "").isprintable():
        message = (
            "a query with control characters cannot be printed. Rename these columns, or call "
            "softcal.sql_query in Python."
        )
        raise InputError(message)
    sys.stdout.write(text)
