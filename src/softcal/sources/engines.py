"""The same sums computed where the data lives: DuckDB, Spark, Dask, Polars, through narwhals.

The engine sorts each row into its bin and adds up, and only the table comes back. A row that
breaks a rule goes to a bin below 0, whose number says which rule: so the same pass that adds up
good rows counts the bad ones, and costs no more for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softcal._validation.rules import (
    DROP_OR_IMPUTE,
    LARGEST_VOTES,
    LARGEST_WEIGHT,
    MISSING,
    NEGATIVE,
    NOT_WHOLE,
    OUTSIDE,
    SMALLEST_WEIGHT,
    WILD,
    Rule,
    Spread,
)
from softcal.exceptions import InputError, InputTypeError
from softcal.sources.collect import Key, Tables, refuse_many_slices, refuse_nothing
from softcal.sources.columns import refuse_type, refuse_unknown
from softcal.table.kernel import SUM_NAMES, Sums
from softcal.table.reliability import Reliability

if TYPE_CHECKING:
    from softcal.bins import Bins
    from softcal.sources.columns import Roles

MAX_EDGES = 256
"""How many edges of unequal bins an engine compares each row with."""

_P, _Y, _W, _M, _BY, _MODEL, _BIN, _GUESS = (
    f"softcal_{name}" for name in ("p", "y", "w", "m", "by", "model", "bin", "guess")
)


def engine_tables(frame: Any, roles: Roles, bins: Bins) -> Tables:
    """Add up a lazy narwhals frame in its engine, into one table for each key."""
    import narwhals.stable.v2 as nw

    _refuse_columns(frame, roles)
    rows = _prepared(frame, roles)
    faults = _faults(roles)
    n: Any = float(len(bins))
    if frame.implementation.is_polars():
        # Polars divides by a number by multiplying with 1/n, which gives other edges than k/n. It
        # does not know that this is a number.
        n = nw.col(_GUESS) * 0.0 + n
    placed = rows.with_columns(_guess(bins)).with_columns(_bin(bins, n, roles, faults))
    keys = [_BIN, *([_BY] if roles.by is not None else []), *_model_key(roles)]
    # Dask adds up columns only, not expressions: so the terms become columns first.
    terms = _terms(roles)
    added = (nw.col(name).sum() for name in terms)
    named = (term.alias(name) for name, term in terms.items())
    found = _collected(
        placed.select(*keys, *named).group_by(keys).agg(nw.len().alias("rows"), *added)
    )
    _refuse_faults(frame, found, faults, roles)
    tables = _tables(found, roles, bins)
    refuse_nothing(tables, sum(row["rows"] for row in found), roles)
    return tables


def _refuse_columns(frame: Any, roles: Roles) -> None:
    schema = frame.collect_schema()
    refuse_unknown(roles.wanted, list(schema.names()), "the frame")
    for name in roles.wanted.numbers:
        kind = schema[name]
        if not (kind.is_numeric() or str(kind) == "Boolean"):
            refuse_type(name, kind, "the frame")
    if roles.by is not None and schema[roles.by].is_nested():
        message = f"{roles.by} must hold single values to slice by: it holds {schema[roles.by]}."
        raise InputTypeError(message)


def _model_key(roles: Roles) -> list[str]:
    return [_MODEL] if len(roles.y_prob) > 1 else []


def _prepared(frame: Any, roles: Roles) -> Any:
    """Select the columns as float64, by names of our own; several predictions below each other."""
    import narwhals.stable.v2 as nw

    def number(name: str, ours: str) -> Any:
        return nw.col(name).cast(nw.Float64).alias(ours)

    columns = [number(roles.y_true, _Y)]
    if roles.sample_weight is not None:
        columns.append(number(roles.sample_weight, _W))
    if isinstance(roles.n_votes, str):
        columns.append(number(roles.n_votes, _M))
    if roles.by is not None:
        columns.append(nw.col(roles.by).alias(_BY))
    if len(roles.y_prob) == 1:
        return frame.select(*columns, number(roles.y_prob[0], _P))
    if frame.implementation.is_duckdb():
        # narwhals unpivots in DuckDB's default connection, which other connections' data is not in.
        each = (
            frame.select(*columns, nw.lit(str(k)).alias(_MODEL), number(name, _P))
            for k, name in enumerate(roles.y_prob)
        )
        return nw.concat(list(each))
    numbered = [str(k) for k in range(len(roles.y_prob))]
    # NaN for NULL, which is refused just the same: an engine's UNPIVOT may leave NULLs out.
    preds = [
        nw.col(name).cast(nw.Float64).fill_null(np.nan).alias(k)
        for name, k in zip(roles.y_prob, numbered, strict=True)
    ]
    index = [ours for ours in (_Y, _W, _M, _BY) if ours in _ours(roles)]
    wide = frame.select(*columns, *preds)
    return wide.unpivot(numbered, index=index, variable_name=_MODEL, value_name=_P)


def _ours(roles: Roles) -> dict[str, str]:
    """Map our names of the columns that do not depend on the model to the user's."""
    found = {_Y: roles.y_true}
    if roles.sample_weight is not None:
        found[_W] = roles.sample_weight
    if isinstance(roles.n_votes, str):
        found[_M] = roles.n_votes
    if roles.by is not None:
        found[_BY] = roles.by
    return found


def _guess(bins: Bins) -> Any:
    """Guess the bin: exact where the bins are unequal, off by at most one where they are equal."""
    import narwhals.stable.v2 as nw

    p = nw.col(_P)
    if bins.is_uniform:
        # Of good values only: Spark's floor is a whole number, and of infinity an error.
        inside = nw.when((p >= 0.0) & (p <= 1.0)).then(p).otherwise(nw.lit(0.0))
        return (inside * float(len(bins))).floor().cast(nw.Float64).alias(_GUESS)
    if len(bins) > MAX_EDGES:
        message = (
            f"an engine takes at most {MAX_EDGES} bins of unequal width: got {len(bins)}. Pass a "
            "number of equal-width bins, which may be many, and coarsen the table."
        )
        raise InputError(message)
    guess = nw.lit(0.0)
    for edge in bins.edges[1:-1].tolist():
        guess = guess + nw.when(p >= edge).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
    return guess.alias(_GUESS)


def _bin(bins: Bins, n: Any, roles: Roles, faults: list[tuple[str, Rule]]) -> Any:
    """Give the number of the bin, as comparing with the edges gives it; below 0 for a bad row."""
    import narwhals.stable.v2 as nw

    p, guess, last = nw.col(_P), nw.col(_GUESS), len(bins) - 1.0
    place = guess
    if bins.is_uniform:
        # p * n is rounded, the edges k/n are too: the comparison has the last word.
        up = nw.when(p >= (guess + 1.0) / n).then(guess + 1.0).otherwise(guess)
        place = nw.when(p < guess / n).then(guess - 1.0).otherwise(up)
        place = nw.when(p >= 1.0).then(nw.lit(last)).otherwise(place)
    fault = nw.lit(-float(len(faults)))
    for number, (column, rule) in reversed(list(enumerate(faults[:-1], start=1))):
        fault = nw.when(_breaks(column, rule)).then(nw.lit(-float(number))).otherwise(fault)
    return nw.when(_valid(roles)).then(place).otherwise(fault).cast(nw.Int64).alias(_BIN)


def _faults(roles: Roles) -> list[tuple[str, Rule]]:
    """List what may be wrong with a row: our name of the column, and the rule."""
    ours = {theirs: mine for mine, theirs in _ours(roles).items()}
    faults: list[tuple[str, Rule]] = []
    for name, rules in roles.rules:
        column = _P if name in roles.y_prob else ours[name]
        faults += [(column, rule) for rule in rules if (column, rule) not in faults]
    return faults


def _valid(roles: Roles) -> Any:
    """Say whether a row keeps all rules; for a missing value the answer is no, or is missing."""
    import narwhals.stable.v2 as nw

    y, p, w, m = (nw.col(name) for name in (_Y, _P, _W, _M))
    valid = (p >= 0.0) & (p <= 1.0) & (y >= 0.0) & (y <= 1.0)
    if roles.sample_weight is not None:
        valid &= ((w >= SMALLEST_WEIGHT) & (w <= LARGEST_WEIGHT)) | (w == 0.0)
    if isinstance(roles.n_votes, str):
        valid &= (m >= 1.0) & (m < LARGEST_VOTES) & (m == m.floor())
    return valid if roles.by is None else valid & ~nw.col(_BY).is_null()


def _breaks(column: str, rule: Rule) -> Any:
    """Say in the engine's terms what a rule forbids, supposing that the earlier rules hold."""
    import narwhals.stable.v2 as nw

    x = nw.col(column)
    if rule is MISSING:
        return x.is_null() if column == _BY else x.is_null() | x.is_nan()
    return {
        OUTSIDE.must: ~((x >= 0.0) & (x <= 1.0)),
        NEGATIVE.must: x < 0.0,
        WILD.must: ~(((x >= SMALLEST_WEIGHT) & (x <= LARGEST_WEIGHT)) | (x == 0.0)),
        NOT_WHOLE.must: ~((x >= 1.0) & (x < LARGEST_VOTES) & (x == x.floor())),
    }[rule.must]


def _terms(roles: Roles) -> dict[str, Any]:
    """Say what a row adds to each sum of `Sums` that does not follow from others."""
    import narwhals.stable.v2 as nw

    p, y = nw.col(_P), nw.col(_Y)
    d = p - y
    p_var, y_var = p * (1.0 - p), y * (1.0 - y)
    here = nw.lit(1.0)
    terms = {"label": y, "residual": d, "residual_sq": d * d}
    if roles.sample_weight is not None:
        w = nw.col(_W)
        here = nw.when(w > 0.0).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
        p_var, y_var = w * w * p_var, w * y_var
        terms = {name: w * term for name, term in terms.items()}
        terms |= {"count": here, "weight": w, "weight_sq": w * w, "residual_var": w * w * (d * d)}
    terms |= {"prob_var": p_var, "label_var": y_var}
    if roles.n_votes is not None:
        m = nw.lit(float(roles.n_votes)) if isinstance(roles.n_votes, int) else nw.col(_M)
        zero = nw.lit(0.0)
        terms["votes"] = m * here
        terms["repeated"] = nw.when(m >= 2.0).then(here).otherwise(zero)
        terms["vote_floor"] = p_var / m
        terms["vote_noise"] = nw.when(m >= 2.0).then(y_var / (m - 1.0)).otherwise(zero)
    return terms


def _collected(lazy: Any) -> list[dict[str, Any]]:
    polars = lazy.implementation.is_polars()
    table = lazy.collect(engine="streaming") if polars else lazy.collect()
    return [dict(row) for row in table.iter_rows(named=True)]


def _refuse_faults(
    frame: Any, found: list[dict[str, Any]], faults: list[tuple[str, Rule]], roles: Roles
) -> None:
    """Refuse what the first broken rule forbids, with the number of rows that break it."""
    theirs = _ours(roles)
    for number, (column, rule) in enumerate(faults, start=1):
        for k, pred in enumerate(roles.y_prob):
            of_model = [row for row in found if row.get(_MODEL, "0") == str(k)]
            count = sum(row["rows"] for row in of_model if row[_BIN] == -number)
            if count:
                name = pred if column == _P else theirs[column]
                total = sum(row["rows"] for row in of_model)
                raise InputError(rule.message(name, count, total, "", _spread(frame, name, rule)))


def _spread(frame: Any, name: str, rule: Rule) -> Spread:
    """Ask the engine how far the values reach, where the hint depends on it."""
    import narwhals.stable.v2 as nw

    if rule.must != OUTSIDE.must:
        return Spread(0, 0, signs=False)
    x = nw.col(name).cast(nw.Float64)
    other = nw.when(x * x == 1.0).then(nw.lit(0)).otherwise(nw.lit(1))
    wanted = (x.min().alias("low"), x.max().alias("high"), other.sum().alias("other"))
    row = _collected(frame.select(*wanted))[0]
    return Spread(row["low"], row["high"], signs=not row["other"])


def _tables(found: list[dict[str, Any]], roles: Roles, bins: Bins) -> Tables:
    nameless = sum(row["rows"] for row in found if row.get(_BY) != row.get(_BY))
    if nameless:  # NaN, which engines take for a value
        message = (
            f"{roles.by} must have no missing values: {int(nameless)} are NaN. {DROP_OR_IMPUTE}"
        )
        raise InputError(message)
    sums: dict[Key, dict[str, Any]] = {}
    for row in found:
        key = Key(roles.y_prob[int(row.get(_MODEL, 0))], row.get(_BY))
        if key not in sums:
            sums[key] = {name: np.zeros(len(bins)) for name in SUM_NAMES}
            refuse_many_slices(len(sums) // len(roles.y_prob), roles.by)
        for name in SUM_NAMES:
            sums[key][name][row[_BIN]] = _value(row, name)
    return {key: Reliability(bins, _as_sums(table)) for key, table in sums.items()}


def _value(row: dict[str, Any], name: str) -> float:
    """Give a sum, or what it is where rows have no weights and no votes."""
    without = {
        "count": row["rows"],
        "weight": row["rows"],
        "weight_sq": row["rows"],
        "residual_var": row["residual_sq"],
    }
    return float(row.get(name, without.get(name, 0.0)))


def _as_sums(table: dict[str, Any]) -> Sums:
    return Sums(**{**table, "count": table["count"].round().astype(np.int64)})
