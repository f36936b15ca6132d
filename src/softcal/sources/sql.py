"""Write the SQL query that adds up tables, and read its result.

Use this for databases and pipelines in which softcal does not run. They run the query, and
`tables_from_query` reads the result. The result has one row per model, segment, and filled bin,
with the sums that `softcal.table.kernel.Sums` lists. Rows that break a rule are counted in bin -1,
and a result with such rows is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from softcal.bins import Bins
from softcal.exceptions import InputError, InputTypeError
from softcal.sources.scanning import listed, refuse_other_names
from softcal.table.kernel import SUM_NAMES, Sums
from softcal.table.serialize import refuse_impossible
from softcal.table.tableset import Sparse, TableSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcal._validation.inputs import FloatArray
    from softcal.bins import BinsLike

Dialect = Literal["duckdb", "spark"]

_GRID = 600  # equal-width bins: they coarsen to every number of bins that divides 600
_TERMS = {
    "count": "CASE WHEN w > 0 THEN 1.0 ELSE 0.0 END",
    "weight": "w",
    "weight_sq": "w * w",
    "label": "w * y",
    "residual": "w * d",
    "residual_sq": "w * d * d",
    "residual_var": "w * w * d * d",
    "prob_var": "w * w * p * (1 - p)",
    "label_var": "w * y * (1 - y)",
    "votes": "CASE WHEN m > 0 AND w > 0 THEN m ELSE 0.0 END",
    "repeated": "CASE WHEN m >= 2 AND w > 0 THEN 1.0 ELSE 0.0 END",
    "vote_floor": "CASE WHEN m > 0 THEN w * w * p * (1 - p) / m ELSE 0.0 END",
    "vote_noise": "CASE WHEN m >= 2 THEN w * y * (1 - y) / (m - 1) ELSE 0.0 END",
    "hard_residual": "w * e",
    "hard_residual_sq": "w * e * e",
    "hard_residual_var": "w * w * e * e",
    "outcome_prob_var": "CASE WHEN outcome THEN w * w * p * (1 - p) ELSE 0.0 END",
    "outcome_residual_var": "CASE WHEN outcome THEN w * w * d * d ELSE 0.0 END",
}
_SEGMENT = "softcal_by_"  # before the names of segment columns, which may be those of sums
_ABOUT = ("softcal_label", "softcal_weight", "softcal_votes", "softcal_model", "softcal_bin")


class _Words:
    """How a dialect quotes names and texts."""

    def __init__(self, dialect: Dialect) -> None:
        if dialect not in ("duckdb", "spark"):
            message = f"dialect must be 'duckdb' or 'spark': got {dialect!r}."
            raise InputError(message)
        self._spark = dialect == "spark"
        self.text_type = "STRING" if self._spark else "VARCHAR"

    def name(self, column: str) -> str:
        quote = "`" if self._spark else '"'
        return quote + column.replace(quote, 2 * quote) + quote

    def text(self, value: str | None) -> str:
        if value is None:
            return f"CAST(NULL AS {self.text_type})"
        if self._spark:  # where a backslash escapes
            value = value.replace("\\", "\\\\").replace("'", "\\'")
        else:
            value = value.replace("'", "''")
        return f"'{value}'"


def sql_query(
    table: str,
    *,
    y_true: str,
    y_prob: str | Sequence[str],
    by: str | Sequence[str] = (),
    sample_weight: str | None = None,
    n_votes: str | None = None,
    dialect: Dialect = "duckdb",
) -> str:
    """Return the SQL query that adds up a table in one pass.

    Parameters
    ----------
    table : str
        The table, or anything else that may follow FROM. It is copied into the query as it is.
    y_true, y_prob, by, sample_weight, n_votes : str or sequence of str
        Columns, as in `scan`. Their names are quoted.
    dialect : {"duckdb", "spark"}, default="duckdb"
        How the query quotes names and texts.

    Returns
    -------
    str
        A query whose result `tables_from_query` reads. Predictions are in 600 equal-width bins.

    Examples
    --------
    >>> import duckdb
    >>> rows = duckdb.sql("SELECT 0.25 AS p, 0.5 AS y UNION ALL SELECT 0.75, 0.5")
    >>> result = duckdb.sql(sql_query("rows", y_true="y", y_prob="p"))
    >>> tables_from_query(result.to_arrow_table())["p"].smece
    0.25
    """
    words = _Words(dialect)
    models, columns = listed(y_prob), listed(by)
    optional = (("sample_weight", sample_weight), ("n_votes", n_votes))
    refuse_other_names([
        ("y_true", y_true), *(("y_prob", each) for each in models),
        *(("by", each) for each in columns),
        *(each for each in optional if each[1] is not None),
    ])  # fmt: skip
    if not models:
        message = "name one or more predictions: y_prob is empty."
        raise InputError(message)
    if y_true in models:
        message = f"label and prediction must be different columns: both are {y_true!r}."
        raise InputError(message)
    weight = "1.0" if sample_weight is None else words.name(sample_weight)
    votes = "NULL" if n_votes is None else words.name(n_votes)
    segments = "".join(f", {words.name(_SEGMENT + each)}" for each in columns)
    as_text = "".join(
        f", CAST({words.name(each)} AS {words.text_type}) AS {words.name(_SEGMENT + each)}"
        for each in columns
    )
    rows = "\n  UNION ALL\n".join(
        f"  SELECT {words.text(model)} AS softcal_model{as_text},\n"  # noqa: S608 - quoted
        f"    CAST({words.name(model)} AS DOUBLE) AS p,\n"
        f"    CAST({words.name(y_true)} AS DOUBLE) AS y,\n"
        f"    CAST({weight} AS DOUBLE) AS w, CAST({votes} AS DOUBLE) AS m\n"
        f"  FROM {table}"
        for model in models
    )
    # NULL and NaN are not between 0 and 1; both engines sort NaN above every number.
    valid = "p >= 0 AND p <= 1 AND y >= 0 AND y <= 1 AND (w = 0 OR w >= 1e-100 AND w <= 1e100)"
    if n_votes is not None:
        valid += " AND m >= 1 AND m <= 9007199254740992 AND m = FLOOR(m)"
    about = {"label": y_true, "weight": sample_weight, "votes": n_votes}
    constants = ", ".join(f"{words.text(value)} AS softcal_{key}" for key, value in about.items())
    sums = ",\n  ".join(f"SUM({term}) AS {name}" for name, term in _TERMS.items())
    return f"""\
WITH softcal_rows AS (
{rows}
), softcal_terms AS (
  SELECT softcal_model{segments}, p, y, w, m, p - y AS d,
    p - CASE WHEN y > 0.5 THEN 1.0 ELSE 0.0 END AS e, (y = 0 OR y = 1) AND m IS NULL AS outcome,
    CASE WHEN {valid} THEN 1 ELSE 0 END AS valid,
    CASE WHEN p >= 0 AND p <= 1
      THEN LEAST(CAST(FLOOR(p * {_GRID}.0) AS INTEGER), {_GRID - 1}) ELSE 0 END AS near
  FROM softcal_rows
), softcal_binned AS (
  SELECT *, CASE WHEN valid = 0 THEN -1
    WHEN p < near / CAST({_GRID} AS DOUBLE) THEN near - 1
    WHEN near < {_GRID - 1} AND p >= (near + 1) / CAST({_GRID} AS DOUBLE) THEN near + 1
    ELSE near END AS softcal_bin
  FROM softcal_terms
)
SELECT {constants}, softcal_model{segments}, softcal_bin, COUNT(*) AS softcal_rows,
  {sums}
FROM softcal_binned
GROUP BY softcal_model{segments}, softcal_bin
"""  # noqa: S608 - names are quoted


def tables_from_query(result: Any, *, bins: BinsLike = 10, date: str | None = None) -> TableSet:
    """Read the result of `sql_query` into a set of tables.

    Parameters
    ----------
    result : data frame
        All rows of the result: pandas, Polars, an Arrow table, or any frame that narwhals knows.
    bins : int, Bins, or edges, default=10
        The bins of the tables, of which every edge must be a multiple of 1/600.
    date : str, optional
        The date of the rows.

    Returns
    -------
    TableSet
        The result of `scan` for the same rows, on a grid of 600 bins.

    Raises
    ------
    InputError
        If rows of the table broke a rule, or if this is not the result of such a query.
    """
    import narwhals.stable.v2 as nw

    frame = nw.from_native(result, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        message = f"the result must be a data frame in memory, not {type(result).__name__}."
        raise InputTypeError(message)
    needed = (*_ABOUT, "softcal_rows", *SUM_NAMES)
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        message = (
            f"this is not the result of a query of softcal: it has no column {missing[0]!r}. Run "
            "the query that `softcal sql` prints, and keep all its columns."
        )
        raise InputError(message)
    place, rows = (_numbers(frame[name], name) for name in ("softcal_bin", "softcal_rows"))
    if (place < 0).any():
        message = (
            f"{int(rows[place < 0].sum()):,} rows break a rule: labels and predictions must be in "
            "[0, 1], and weights must not be negative. None may be NULL. Exclude or fix them "
            "in the table."
        )
        raise InputError(message)
    values = np.array([_numbers(frame[name], name) for name in SUM_NAMES])
    _refuse_impossible(place, values)
    by = [name for name in frame.columns if name not in needed]
    texts = {name: _texts(frame[name], name) for name in (*by, *_ABOUT[:4])}
    models = list(dict.fromkeys(texts["softcal_model"]))
    cells = list(zip(*(texts[name] for name in by), strict=True)) or [()] * len(frame)
    numbers = {cell: k for k, cell in enumerate(dict.fromkeys(cells))}
    keys = np.array([
        [models.index(model) for model in texts["softcal_model"]],
        np.zeros(len(frame), dtype=np.int64),
        [numbers[cell] for cell in cells],
        place,
    ], dtype=np.int64)  # fmt: skip
    first = {key: texts[f"softcal_{key}"][0] for key in ("label", "weight", "votes")}
    segments = tuple(name.removeprefix(_SEGMENT) for name in by)
    grid = Bins.uniform(_GRID)
    whole = TableSet(
        first["label"], tuple(models), grid, grid, Sparse.of(keys, values), by_names=segments,
        cells=tuple(numbers), weight=first["weight"], votes=first["votes"], date=date,
    )  # fmt: skip
    return whole.coarsen(bins)


def _numbers(column: Any, name: str) -> FloatArray:
    """Return a column of the result as finite numbers."""
    try:
        found: FloatArray = np.array(column.to_list(), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        found = np.array([np.nan])
    if found.ndim != 1 or not np.isfinite(found).all():
        message = f"the column {name} of the result must have finite numbers, in every row."
        raise InputError(message)
    return found


def _texts(column: Any, name: str) -> list[Any]:
    """Return a column of the result as texts and None."""
    missing = column.is_null().to_list()
    found = [None if null else each for null, each in zip(missing, column.to_list(), strict=True)]
    if not all(each is None or isinstance(each, str) for each in found):
        message = f"the column {name} of the result must have texts, as the query returns them."
        raise InputError(message)
    return found


def _refuse_impossible(place: FloatArray, values: FloatArray) -> None:
    """Refuse a result without rows, and sums that no rows can have."""
    count = values[SUM_NAMES.index("count")]
    if not count.sum():
        message = "the table has no rows, or only rows of weight 0."
        raise InputError(message)
    signed = [SUM_NAMES.index(name) for name in ("residual", "hard_residual")]
    positive = np.delete(values, signed, axis=0)
    whole = (
        ((positive >= 0) & (positive < 1e250)).all(axis=0)
        & np.isin(place, np.arange(_GRID))
        & (count == np.rint(count))
        & (abs(count) < 2.0**53)
    )
    if not whole.all():
        message = f"{(~whole).sum():,} rows of the result have numbers that no query gives."
        raise InputError(message)
    named = dict(zip(SUM_NAMES, values, strict=True))
    sums = Sums(named.pop("count").astype(np.int64), **named)
    refuse_impossible(sums, place / _GRID, (place + 1) / _GRID)
