"""The same sums computed where the data lives: DuckDB, Spark, Dask, Polars, through narwhals.

The engine sorts each row into its bin and adds up, and only the table comes back. A row that
breaks a rule goes to a bin below 0, whose number says which rule: so the same pass that adds up
good rows counts the bad ones, and costs no more for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softcal._validation.rules import (
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
from softcal.bins import Bins
from softcal.exceptions import InputError, InputTypeError
from softcal.sources.class_columns import Present
from softcal.sources.collect import finished
from softcal.sources.columns import refuse_type, refuse_unknown, text_of
from softcal.table.build import Builder, Entries
from softcal.table.kernel import SUM_NAMES
from softcal.table.tableset import Sparse

if TYPE_CHECKING:
    from softcal.sources.columns import Roles
    from softcal.table.tableset import TableSet

MAX_EDGES = 256
"""How many edges of unequal bins an engine compares each row with."""

_P, _Y, _W, _M, _MODEL, _BIN, _GUESS = (
    f"softcal_{name}" for name in ("p", "y", "w", "m", "model", "bin", "guess")
)


def engine_tables(frame: Any, roles: Roles, bins: Bins, date: str | None = None) -> TableSet:
    """Add up a lazy narwhals frame in its engine, into one set of tables."""
    import narwhals.stable.v2 as nw

    _refuse_columns(frame, roles)
    rows = _prepared(frame, roles)
    faults = _faults(roles)
    grid = Bins.grid(bins)
    core = _Core.of(grid)
    n: Any = float(core.n)
    if frame.implementation.is_polars():
        # Polars divides by a number by multiplying with 1/n, which gives other edges than k/n. It
        # does not know that this is a number.
        n = nw.col(_GUESS) * 0.0 + n
    placed = rows.with_columns(_guess(core)).with_columns(_bin(core, n, roles, faults))
    keys = [_BIN, *_by(roles), *_model_key(roles)]
    # Dask adds up columns only, not expressions: so the terms become columns first.
    terms = _terms(roles)
    added = (nw.col(name).sum() for name in terms)
    named = (term.alias(name) for name, term in terms.items())
    found = _collected(
        placed.select(*keys, *named).group_by(keys).agg(nw.len().alias("rows"), *added)
    )
    _refuse_faults(frame, found, faults, roles)
    builder = Builder(roles.y_prob, roles.by, bins=bins, grid=grid)
    each_model = sum(int(row["rows"]) for row in found) // len(roles.y_prob)
    builder.add(_entries(found, roles, each_model))
    return finished(builder, each_model, roles, date)


def in_engine(frame: Any) -> Present:
    """Say which columns a lazy narwhals frame has."""
    import narwhals.stable.v2 as nw

    schema = frame.collect_schema()

    def list_length(name: str) -> int | None:
        kind = schema[name]
        if isinstance(kind, nw.Array):
            return int(kind.size)
        if not isinstance(kind, nw.List):
            return None
        first = _collected(frame.select(nw.col(name).list.len().alias(_M)).head(1))
        return int(first[0][_M] or 0) if first else 0

    return Present(list(schema.names()), list_length)


def _by(roles: Roles) -> list[str]:
    return [f"softcal_by_{k}" for k in range(len(roles.by))]


class _Core(NamedTuple):
    """Bins as an engine finds them: equal ones by arithmetic, and cuts by comparing.

    With n = 1 there is one equal bin, and all edges are cuts.
    """

    n: int
    low: list[float]  #  inner edges of the first equal bin
    high: list[float]  # inner edges of the last one, where it is another

    @staticmethod
    def of(bins: Bins) -> _Core:
        """Find the equal bins; refuse too many cuts."""
        inner = bins.edges[1:-1]
        n = round(1 / float(np.diff(bins.edges)[len(bins) // 2]))
        even = np.arange(1, n) / n
        if n < 2 or not np.isin(even, inner).all():
            n, low, high = 1, inner.tolist(), []
        else:
            low, high = inner[inner < even[0]].tolist(), inner[inner > even[-1]].tolist()
            if inner.size != even.size + len(low) + len(high):
                n, low, high = 1, inner.tolist(), []
        if len(low) + len(high) >= MAX_EDGES:
            message = (
                f"an engine takes at most {MAX_EDGES} bins of unequal width: got {len(bins)}. Pass "
                "a number of equal-width bins, which may be many, and coarsen the set."
            )
            raise InputError(message)
        return _Core(n, low, high)


def _refuse_columns(frame: Any, roles: Roles) -> None:
    if roles.classes is not None or roles.bounds is not None:
        what = "many classes" if roles.bounds is None else "labels known as intervals"
        message = f"{what} are added up in memory: collect the frame first, or scan files."
        raise InputError(message)
    if roles.group is not None:
        message = (
            f"groups ({roles.group}) are added up in memory: collect the frame first, or scan "
            "files."
        )
        raise InputError(message)
    schema = frame.collect_schema()
    refuse_unknown(roles.wanted, list(schema.names()), "the frame")
    for name in roles.wanted.numbers:
        kind = schema[name]
        if not (kind.is_numeric() or str(kind) == "Boolean"):
            refuse_type(name, kind, "the frame")
    for name in roles.by:
        if schema[name].is_nested():
            message = f"{name} must hold single values: it holds {schema[name]}."
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
    columns += [nw.col(name).alias(ours) for name, ours in zip(roles.by, _by(roles), strict=True)]
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
    index = [*_ours(roles), *_by(roles)]
    wide = frame.select(*columns, *preds)
    return wide.unpivot(numbered, index=index, variable_name=_MODEL, value_name=_P)


def _ours(roles: Roles) -> dict[str, str]:
    """Map our names of the columns that do not depend on the model to the user's."""
    found = {_Y: roles.y_true}
    if roles.sample_weight is not None:
        found[_W] = roles.sample_weight
    if isinstance(roles.n_votes, str):
        found[_M] = roles.n_votes
    return found


def _guess(core: _Core) -> Any:
    """Guess the equal bin: off by at most one, since p * n is rounded."""
    import narwhals.stable.v2 as nw

    p = nw.col(_P)
    # Of good values only: Spark's floor is a whole number, and of infinity an error.
    inside = nw.when((p >= 0.0) & (p <= 1.0)).then(p).otherwise(nw.lit(0.0))
    return (inside * float(core.n)).floor().cast(nw.Float64).alias(_GUESS)


def _bin(core: _Core, n: Any, roles: Roles, faults: list[tuple[str, Rule]]) -> Any:
    """Give the number of the bin, as comparing with the edges gives it; below 0 for a bad row."""
    import narwhals.stable.v2 as nw

    p, guess, last = nw.col(_P), nw.col(_GUESS), core.n - 1.0
    # p * n is rounded, the edges k/n are too: the comparison has the last word.
    up = nw.when(p >= (guess + 1.0) / n).then(guess + 1.0).otherwise(guess)
    place = nw.when(p < guess / n).then(guess - 1.0).otherwise(up)
    place = nw.when(p >= 1.0).then(nw.lit(last)).otherwise(place)
    # Only the rows of the two end bins are compared with the edges inside these.
    below = _edges_up_to(core.low)
    if core.n == 1:
        place = below
    else:
        above = last + len(core.low) + _edges_up_to(core.high)
        in_last = nw.when(p >= (core.n - 1) / core.n).then(above)
        rest = in_last.otherwise(place + float(len(core.low)))
        place = nw.when(p < 1 / core.n).then(below).otherwise(rest)
    fault = nw.lit(-float(len(faults)))
    for number, (column, rule) in reversed(list(enumerate(faults[:-1], start=1))):
        fault = nw.when(_breaks(column, rule)).then(nw.lit(-float(number))).otherwise(fault)
    return nw.when(_valid(roles)).then(place).otherwise(fault).cast(nw.Int64).alias(_BIN)


def _edges_up_to(edges: list[float]) -> Any:
    """Count the edges that a prediction has reached."""
    import narwhals.stable.v2 as nw

    count = nw.lit(0.0)
    for edge in edges:
        count = count + nw.when(nw.col(_P) >= edge).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
    return count


def _faults(roles: Roles) -> list[tuple[str, Rule]]:
    """List what may be wrong with a row: our name of the column, and the rule."""
    ours = {theirs: mine for mine, theirs in _ours(roles).items()}
    faults: list[tuple[str, Rule]] = []
    for name, rules in roles.rules:
        column = _P if name in roles.y_prob else ours[str(name)]
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
    return valid


def _breaks(column: str, rule: Rule) -> Any:
    """Say in the engine's terms what a rule forbids, supposing that the earlier rules hold."""
    import narwhals.stable.v2 as nw

    x = nw.col(column)
    if rule is MISSING:
        return x.is_null() | x.is_nan()
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
    one, zero = nw.lit(1.0), nw.lit(0.0)
    d = p - y
    e = p - nw.when(y > 0.5).then(one).otherwise(zero)
    p_var, y_var = p * (1.0 - p), y * (1.0 - y)
    here = one
    terms = {"label": y, "residual": d, "residual_sq": d * d}
    terms |= {"hard_residual": e, "hard_residual_sq": e * e}
    residual_var = d * d
    if roles.sample_weight is not None:
        w = nw.col(_W)
        here = nw.when(w > 0.0).then(one).otherwise(zero)
        p_var, y_var, residual_var = w * w * p_var, w * y_var, w * w * residual_var
        terms = {name: w * term for name, term in terms.items()}
        terms |= {"count": here, "weight": w, "weight_sq": w * w, "residual_var": residual_var}
        terms["hard_residual_var"] = w * w * (e * e)
    terms |= {"prob_var": p_var, "label_var": y_var}
    if roles.n_votes is not None:
        m = nw.lit(float(roles.n_votes)) if isinstance(roles.n_votes, int) else nw.col(_M)
        terms["votes"] = m * here
        terms["repeated"] = nw.when(m >= 2.0).then(here).otherwise(zero)
        terms["vote_floor"] = p_var / m
        terms["vote_noise"] = nw.when(m >= 2.0).then(y_var / (m - 1.0)).otherwise(zero)
        return terms
    outcome = nw.when((y == 0.0) | (y == 1.0))
    terms["outcome_prob_var"] = outcome.then(p_var).otherwise(zero)
    terms["outcome_residual_var"] = outcome.then(residual_var).otherwise(zero)
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


def _entries(found: list[dict[str, Any]], roles: Roles, rows: int) -> Entries:
    """Turn the rows of the engine's answer, one per model, cell and bin, into entries."""
    cells: dict[tuple[str | None, ...], int] = {}
    keys, values = [], []
    for row in found:
        cell = tuple(text_of(row[ours]) for ours in _by(roles))
        keys.append((int(row.get(_MODEL, 0)), 0, cells.setdefault(cell, len(cells)), row[_BIN]))
        values.append([_value(row, name) for name in SUM_NAMES])
    sums = np.array(values, dtype=np.float64).reshape(-1, len(SUM_NAMES)).T
    tables = Sparse.of(np.array(keys, dtype=np.int64).reshape(-1, 4).T, sums)
    return Entries.of_tables(rows, tuple(cells), tables.where(tables.values[0] > 0))


def _value(row: dict[str, Any], name: str) -> float:
    """Give a sum, or what it is where rows have no weights and no votes."""
    without = {
        "count": row["rows"],
        "weight": row["rows"],
        "weight_sq": row["rows"],
        "residual_var": row["residual_sq"],
        "hard_residual_var": row["hard_residual_sq"],
    }
    return float(row.get(name, without.get(name, 0.0)))
