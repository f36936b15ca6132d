"""Write the SQL query that adds up tables, and read its result.

Spark runs the query for `scan`. Databases and pipelines in which softcal does not run also run it,
and `tables_from_query` reads the result. The result has one row per model, segment, and filled bin,
with the sums that `softcal.table.kernel.Sums` lists. Rows that break a rule are counted in bin -1,
and a result with such rows is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from softcal._validation.inputs import Names
from softcal._validation.rules import (
    HALF_STEP,
    MISFIT,
    MISSING,
    NEGATIVE,
    NOT_WHOLE,
    OUTSIDE,
    WILD,
)
from softcal.bins import Bins
from softcal.exceptions import InputError, InputTypeError
from softcal.sources.scanning import listed, refuse_other_names
from softcal.table.blocks import Sparse
from softcal.table.files import refuse_impossible
from softcal.table.kernel import SUM_NAMES, Sums
from softcal.table.reliability import warn_if_hard
from softcal.table.tableset import About, Axes, TableSet
from softcal.table.terms import terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from softcal._validation.inputs import FloatArray
    from softcal._validation.rules import Rule
    from softcal.bins import BinsLike

Dialect = Literal["duckdb", "spark"]

_SEGMENT = "softcal_by_"  # before the names of segment columns, which may be those of sums
_ABOUT = ("softcal_label", "softcal_weight", "softcal_votes", "softcal_model", "softcal_bin")

# When a value breaks a rule. NULL is read as NaN, which both engines sort above every number.
_BROKEN = {
    MISSING.must: "isnan({0})",
    OUTSIDE.must: "NOT ({0} >= 0 AND {0} <= 1)",
    NEGATIVE.must: "{0} < 0",
    WILD.must: "NOT ({0} = 0 OR {0} >= 1e-100 AND {0} <= 1e100)",
    NOT_WHOLE.must: "NOT ({0} >= 1 AND {0} < 9007199254740992 AND {0} = FLOOR({0}))",
    MISFIT.must: "{0} > 0",
}


def number(column: str) -> str:
    """Return the expression of a column as numbers that are never NULL."""
    return f"COALESCE(CAST({column} AS DOUBLE), CAST('NaN' AS DOUBLE))"


def misfit_of(share: str, votes: str) -> str:
    """Return the expression of `softcal._validation.rules.misfit`."""
    number = f"{share} * {votes}"
    slack = f"CASE WHEN {votes} = 1 THEN 1e0 ELSE {_literal(HALF_STEP)} * {votes} END"
    return f"(ABS({number} - FLOOR({number} + 5e-1)) - {slack})"


class _Sql:
    """An expression of SQL, built by operators; a product with 1 is the other factor."""

    def __init__(self, text: str) -> None:
        self.text = text

    def _with(self, operator: str, other: object) -> _Sql:
        return _Sql(f"({self} {operator} {_written(other)})")

    def __str__(self) -> str:
        return self.text

    def __mul__(self, other: object) -> _Sql:
        return _Sql(_written(other)) if self.text == "1e0" else self._with("*", other)

    def __sub__(self, other: object) -> _Sql:
        return self._with("-", other)

    def __rsub__(self, other: object) -> _Sql:
        return _Sql(f"({_written(other)} - {self})")

    def __truediv__(self, other: object) -> _Sql:
        return self._with("/", other)

    def __gt__(self, other: object) -> _Sql:
        return self._with(">", other)

    def __lt__(self, other: object) -> _Sql:
        return self._with("<", other)

    def __ge__(self, other: object) -> _Sql:
        return self._with(">=", other)

    def __eq__(self, other: object) -> _Sql:  # type: ignore[override]
        return self._with("=", other)

    def __and__(self, other: object) -> _Sql:
        return self._with("AND", other)

    def __or__(self, other: object) -> _Sql:
        return self._with("OR", other)

    __hash__ = None  # type: ignore[assignment]


def _where(condition: _Sql, value: object) -> _Sql:
    return _Sql(f"(CASE WHEN {condition} THEN {_written(value)} ELSE 0e0 END)")


def _written(value: object) -> str:
    """Write a number or an expression; without an exponent, 1.0 would be a decimal number."""
    return f"{value}e0" if isinstance(value, float) else str(value)


def _aggregates(*, weighted: bool, voted: bool) -> dict[str, str]:
    """Return the expression of each sum. Engines compute equal ones once."""
    w, m = _Sql("w" if weighted else "1e0"), _Sql("m") if voted else None
    found = terms(_Sql("p"), _Sql("y"), w, m, _where)
    sums = {name: f"SUM({term})" for name, term in found.items()}
    if not weighted:
        sums |= dict.fromkeys(("count", "weight", "weight_sq"), "COUNT(*)")
    return sums


def _bin(grid: Bins) -> str:
    """Return the expression of the bin of p, given `near`, the nearest of the equal-width edges.

    The grid has equal-width bins, of which the first and the last may be cut again.
    """
    equal, first = grid.guide.equal, grid.guide.first
    edges = grid.edges.tolist()
    low, high = edges[1 : first + 1], edges[first + equal : -1]
    inside = f"{first} + near - CASE WHEN p < near / {_literal(equal)} THEN 1 ELSE 0 END"
    last = first + equal - 1
    return (
        f"CASE WHEN p >= {_literal(edges[last])} THEN {_search(high, last)}\n"
        f"    WHEN p < {_literal(edges[first + 1])} THEN {_search(low, 0)}\n"
        f"    ELSE {inside} END"
    )


def _search(edges: Sequence[float], first: int) -> str:
    """Return the expression that finds the bin of p between edges by bisection."""
    if not edges:
        return str(first)
    middle = len(edges) // 2
    below, above = _search(edges[:middle], first), _search(edges[middle + 1 :], first + middle + 1)
    return f"CASE WHEN p < {_literal(edges[middle])} THEN {below} ELSE {above} END"


def _literal(value: float) -> str:
    """Write a float64 with all its digits; without an exponent, it would be a decimal number."""
    return f"{value:.17e}"


class _Words:
    """How a dialect quotes names and texts."""

    def __init__(self, dialect: Dialect) -> None:
        if dialect not in ("duckdb", "spark"):
            message = f"dialect must be 'duckdb' or 'spark': got {dialect!r}."
            raise InputError(message)
        self._spark = dialect == "spark"
        self.text_type = "STRING" if self._spark else "VARCHAR"

    def name(self, column: str) -> str:
        if self._spark and "${" in column:
            given = column.removeprefix(_SEGMENT)
            message = (
                f"Spark replaces ${{...}} in a query: the column {given!r:.60} could read its "
                "settings and environment. Rename it in a view."
            )
            raise InputError(message)
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
        Convert predictions on another scale there: "(SELECT y, EXP(logprob) AS p FROM rows)".
    y_true, y_prob, by, sample_weight, n_votes : str or sequence of str
        Columns, as in `scan`. Their names are quoted.
    dialect : {"duckdb", "spark"}, default="duckdb"
        How the query quotes names and texts.

    Returns
    -------
    str
        A query whose result `tables_from_query` reads. Predictions are in the 648 bins of
        `Bins.grid`.

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
    segments = {
        words.name(_SEGMENT + each): f"CAST({words.name(each)} AS {words.text_type})"
        for each in columns
    }
    about = {"label": y_true, "weight": sample_weight, "votes": n_votes}
    constants = [f"{words.text(value)} AS softcal_{key}" for key, value in about.items()]
    return sums_query(
        table,
        words.name(y_true),
        {words.text(model): words.name(model) for model in models},
        None if sample_weight is None else words.name(sample_weight),
        None if n_votes is None else words.name(n_votes),
        segments=segments,
        constants=constants,
    )


def sums_query(
    table: str,
    label: str,
    models: Mapping[str, str],
    weight: str | None = None,
    votes: str | None = None,
    *,
    segments: Mapping[str, str],
    grid: Bins | None = None,
    constants: Sequence[str] = (),
) -> str:
    """Return the query of sums, from SQL expressions of columns.

    Parameters
    ----------
    table : str
        What follows FROM.
    label, weight, votes : str
        The columns.
    models : mapping from str to str
        The column of predictions of each model, by the text or number that stands for the model.
    segments : mapping from str to str
        The columns of segments, by their names in the result.
    grid : Bins, optional
        The bins of predictions, equal-width bins whose ends may be cut.
    constants : sequence of str
        Further columns of the result.
    """
    names = "".join(f", {name}" for name in segments)
    values = "".join(f", {value} AS {name}" for name, value in segments.items())
    w = "1e0" if weight is None else number(weight)
    m = "" if votes is None else f", {number(votes)} AS m"
    rows = "\n  UNION ALL\n".join(
        f"  SELECT {model} AS softcal_model{values},\n"  # noqa: S608 - quoted
        f"    {number(column)} AS p,\n"
        f"    {number(label)} AS y,\n"
        f"    {w} AS w{m}\n"
        f"  FROM {table}"
        for model, column in models.items()
    )
    rules = [("p", OUTSIDE), ("y", OUTSIDE)]
    if weight is not None:
        rules.append(("w", WILD))
    if votes is not None:
        rules += [("m", NOT_WHOLE), (misfit_of("y", "m"), MISFIT)]
    broken = " OR ".join(_BROKEN[rule.must].format(name) for name, rule in rules)
    found = _aggregates(weighted=weight is not None, voted=votes is not None)
    sums = ",\n  ".join(f"{term} AS {name}" for name, term in found.items())
    grid = Bins.grid() if grid is None else grid
    also = "".join(f"{each}, " for each in constants)
    return f"""\
WITH softcal_rows AS (
{rows}
), softcal_terms AS (
  SELECT *, CASE WHEN {broken} THEN 0 ELSE 1 END AS valid,
    CASE WHEN p >= 0 AND p <= 1
      THEN CAST(FLOOR(p * {_literal(grid.guide.equal)} + 5e-1) AS INTEGER) ELSE 0 END AS near
  FROM softcal_rows
), softcal_binned AS (
  SELECT *, CASE WHEN valid = 0 THEN -1 ELSE
    {_bin(grid)}
    END AS softcal_bin
  FROM softcal_terms
)
SELECT {also}softcal_model{names}, softcal_bin, COUNT(*) AS softcal_rows,
  {sums}
FROM softcal_binned
GROUP BY softcal_model{names}, softcal_bin
"""  # noqa: S608 - names are quoted


def census_query(table: str, columns: Iterable[tuple[str, Sequence[Rule]]]) -> str:
    """Return the query that counts the values of columns that break rules.

    The result has one row: the number of rows, then for each column its lowest and highest value,
    whether all values are -1 or 1, and whether all are integers; then for each rule how many values
    break it, and one of them. Only Spark has the function FIRST of two arguments.
    """
    found = ["COUNT(*)"]
    for column, rules in columns:
        value = number(column)
        present = f"CASE WHEN NOT isnan({value}) THEN {value} END"
        found += [f"MIN({present})", f"MAX({present})"]
        # Spark's FLOOR is a 64-bit integer; above 2^53, every float64 is one.
        small = f"ABS({value}) < 9007199254740992"
        whole = f"CASE WHEN {small} THEN {value} = FLOOR({value}) ELSE NOT isnan({value}) END"
        found += [f"MIN({value} = 1 OR {value} = -1)", f"MIN({whole})"]
        for rule in rules:
            broken = _BROKEN[rule.must].format(value)
            found.append(f"SUM(CASE WHEN {broken} THEN 1 ELSE 0 END)")
            found.append(f"FIRST(CASE WHEN {broken} THEN {value} END, TRUE)")
    return f"SELECT {', '.join(found)} FROM {table}"  # noqa: S608 - written here


def tables_from_query(result: Any, *, bins: BinsLike = 10, date: str | None = None) -> TableSet:
    """Read the result of `sql_query` into a set of tables.

    Parameters
    ----------
    result : data frame
        All rows of the result: pandas, Polars, an Arrow table, or any frame that narwhals knows.
    bins : int, Bins, or edges, default=10
        The bins of the tables, of which every edge must be an edge of `Bins.grid`, such as a
        multiple of 1/600.
    date : str, optional
        The date of the rows.

    Returns
    -------
    TableSet
        The result of `scan` for the same rows.

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
            "[0, 1], weights must not be negative, and a label times its number of votes must be a "
            "whole number. None may be NULL. Exclude or fix them in the table."
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
    grid = Bins.grid()
    about = About(str(first["label"]), weight=first["weight"], votes=first["votes"], date=date)
    axes = Axes(tuple(models), grid, by=segments, cell=tuple(numbers))
    whole = TableSet(about, axes, {"tables": Sparse.of(keys, values)}, grid)
    for model in models:
        warn_if_hard(whole[model], Names(str(first["label"]), str(model)))
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
    grid = Bins.grid()
    signed = [SUM_NAMES.index(name) for name in ("residual", "hard_residual")]
    positive = np.delete(values, signed, axis=0)
    whole = (
        ((positive >= 0) & (positive < 1e250)).all(axis=0)
        & np.isin(place, np.arange(len(grid)))
        & (count == np.rint(count))
        & (abs(count) < 2.0**53)
    )
    if not whole.all():
        message = f"{(~whole).sum():,} rows of the result have numbers that no query gives."
        raise InputError(message)
    named = dict(zip(SUM_NAMES, values, strict=True))
    sums = Sums(named.pop("count").astype(np.int64), **named)
    at = place.astype(np.intp)
    refuse_impossible(sums, grid.edges[at], grid.edges[at + 1])
