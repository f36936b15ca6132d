"""Scan, audit, watch, and query random frames and votes, by the rule of `entry_points`.

Arguments come from a seed: good ones, and often one or two bad ones among them.
"""

from __future__ import annotations

import math
import warnings
from functools import cache, lru_cache, partial
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
from entry_points import answer, refuse_nonsense, table
from random_arguments import BAD_VALUES, spoiled_value, unit

import softcal as sc

if TYPE_CHECKING:
    from collections.abc import Callable

# Frames


def _described(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `scan` for rows whose labels may be shares of votes."""
    rest = {"y_true": "y", "y_prob": "p", **given}
    if "n_votes" in rest:
        rest["y_true"] = sc.Shares(rest["y_true"], votes=rest.pop("n_votes"))
    return rest


def _of_raw_votes(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `scan` for raw votes."""
    rest: dict[str, Any] = {name: given[name] for name in ("bins", "drop_missing") if name in given}
    names = {"votes": "source", "worker": "rater"}
    votes = {names.get(name, name): value for name, value in given.items() if name not in rest}
    return {"y_true": sc.RawVotes(**votes), "y_prob": "p", **rest}


def framed(seed: int) -> None:
    """Scan random rows in a frame, and compare the result with that of the arrays."""
    rng = Random(seed)  # noqa: S311 - nobody's secret
    size = rng.choice((1, 2, 5, 40))
    columns: dict[str, Any] = {name: [unit(rng) for _ in range(size)] for name in ("y", "p", "q")}
    columns["w"] = [rng.choice((0.5, 1.0, 3.0)) for _ in range(size)]
    columns["m"] = [rng.randrange(1, 5) for _ in range(size)]
    columns["s"] = [rng.choice(("a", "b", None)) for _ in range(size)]
    given: dict[str, Any] = {"y_true": "y", "y_prob": "p", "bins": rng.choice((1, 3, 10, 60))}
    roles = {"sample_weight": "w", "n_votes": "m", "by": "s", "groups": "m"}
    given |= {name: column for name, column in roles.items() if rng.random() < 0.3}
    spoil = rng.choice((None, None, *columns))
    if spoil is not None:
        columns[spoil][rng.randrange(size)] = rng.choice(
            (None, math.nan, -1.0, 2.0, math.inf, "x", True, [1.0])
        )
    frame = _frame(columns, rng)
    tables = None if frame is None else answer(lambda: sc.scan(frame, **_described(given)))
    if tables is None:
        return
    table(tables["p"].coarsen(given["bins"]))
    names = ("sample_weight", "n_votes", "groups")
    rows = {name: columns[given[name]] for name in names if name in given}
    right = sc.reliability(columns["y"], columns["p"], bins=given["bins"], **rows)
    assert tables.n == right.n
    assert math.isclose(tables["p"].smece, right.smece, rel_tol=1e-9, abs_tol=1e-12)


def _frame(columns: dict[str, Any], rng: Random) -> Any:
    """Make a frame of some library; None where the library refuses the values."""
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    make: Callable[[Any], Any] = rng.choice((pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table))
    try:
        return make(columns)
    except Exception:  # each library has errors of its own
        return None


# Votes of raters


def raters(seed: int) -> None:
    """Count random votes, and use them in every way that knows who voted."""
    rng = Random(seed)  # noqa: S311 - nobody's secret
    size = rng.choice((1, 4, 12, 30))
    columns: dict[str, Any] = {
        "item": [rng.randrange(max(size // 3, 1)) for _ in range(size)],
        "worker": [rng.choice("uvwx") for _ in range(size)],
        "answer": [rng.choice((0, 1)) for _ in range(size)],
    }
    spoil = rng.choice((None, None, *columns))
    if spoil is not None:
        columns[spoil] = spoiled_value(columns[spoil], rng)
    votes = answer(
        lambda: sc.Votes.from_long(
            columns,
            item="item",
            worker="worker",
            label="answer",
            allow_repeated=rng.random() < 0.8,
        )
    )
    if votes is None:
        return
    assert votes.totals.sum() == len(list(columns["item"]))
    n = votes.n_items
    y_prob: Any = [unit(rng) for _ in range(n)]
    by: Any = {worker: rng.choice("ab") for worker in votes.workers}
    if rng.random() < 0.3:
        y_prob = spoiled_value(y_prob, rng)
    if rng.random() < 0.3:
        by = rng.choice((list("ab" * n), {}, {"u": None}, *BAD_VALUES))
    level = rng.choice((0.95, 0.95, 0.5, *BAD_VALUES))
    bins: Any = rng.choice((1, 3, 10, [0, 0.5, 1], *BAD_VALUES))
    rel = answer(lambda: sc.reliability(votes, y_prob, bins=bins, raters=True))
    if rel is not None:
        table(rel)
    for each in (answer(lambda: sc.reliability_by_rater(votes, y_prob, by=by)) or {}).values():
        table(each)
    found = answer(lambda: sc.rater_difference(votes, y_prob, by=by, level=level, bins=bins))
    if found is not None:
        str(found)
        assert 0 <= found.pvalue <= 1
        refuse_nonsense([found.difference, found.low, found.high, found.pvalue], "rater_difference")
        assert found.low <= found.difference <= found.high
    _other_votes(votes, by, rng)


def _other_votes(votes: sc.Votes, by: Any, rng: Random) -> None:
    """Select, split, weight, and aggregate votes."""
    odd = rng.choice(BAD_VALUES)
    population: Any = rng.choice(({"a": 0.5, "b": 0.5}, {"a": 1.0}, {"a": -1, "b": 2}, odd))
    weighted = answer(lambda: votes.weighted(by=by, population=population))
    if weighted is not None:
        refuse_nonsense([weighted.shares, weighted.effective_totals], "weighted")
    parts = answer(lambda: votes.by_kind(by))
    if parts is not None:
        assert sum(int(each.totals.sum()) for each in parts.values()) == votes.totals.sum()
    answer(lambda: votes.binary(odd))
    answer(lambda: votes.above(odd))
    answer(lambda: votes.for_items([odd]))
    strata = rng.choice((None, [0] * votes.n_items, odd))
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # not converged
        crowd = answer(lambda: sc.dawid_skene(votes, strata=strata))
    if crowd is not None:
        refuse_nonsense([crowd.posterior, crowd.prior], "dawid_skene")


def raw_votes(seed: int) -> None:
    """Scan predictions with votes, in one source or two, and compare with counted votes."""
    rng = Random(seed)  # noqa: S311 - nobody's secret
    n = rng.choice((1, 2, 6))
    items = [str(k) for k in range(n)]
    prob = {item: unit(rng) for item in items}
    size = rng.choice((n, 3 * n))
    votes: dict[str, Any] = {
        "item": [*items, *(rng.choice(items) for _ in range(size - n))],
        "who": [rng.choice("uvw") for _ in range(size)],
        "said": [rng.choice(("no", "yes")) for _ in range(size)],
    }
    given: dict[str, Any] = {"item": "item", "vote": "said", "positive": "yes", "bins": 3}
    given |= {"worker": "who", "allow_repeated": True} if rng.random() < 0.7 else {}
    given |= {"raters": True} if rng.random() < 0.3 else {}
    given |= {"drop_missing": True} if rng.random() < 0.3 else {}
    given |= {"drop_unmatched": True} if rng.random() < 0.3 else {}
    given |= {"aggregate": rng.choice(("dawid-skene", "x"))} if rng.random() < 0.2 else {}
    together = rng.random() < 0.4
    if together:
        votes["p"] = [prob[item] for item in votes["item"]]
    source: dict[str, Any] = {"item": list(items), "p": list(prob.values())}
    plain = {key: list(column) for key, column in votes.items()}
    for frame in rng.choice(((), (), (votes,), (source,), (votes, source))):
        name = rng.choice(list(frame))
        frame[name][rng.randrange(len(frame[name]))] = rng.choice(
            (None, "", "x", "7", 2.0, math.nan)
        )
    if rng.random() < 0.1:
        given[rng.choice(list(given))] = rng.choice(("nothing", *BAD_VALUES))
    frames = [_frame(votes, rng), _frame(source, rng)]
    if any(each is None for each in frames):
        return
    first = frames[0] if together else frames[1]
    given |= {} if together else {"votes": frames[0]}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "dawid_skene did not converge")
        tables = answer(lambda: sc.scan(first, **_of_raw_votes(given)))
    if tables is None:
        return
    rel = tables["p"]
    table(rel)
    if (votes, source) == (
        plain,
        {"item": items, "p": list(prob.values())},
    ) and "aggregate" not in given:
        yes = [
            np.mean(
                [s == "yes" for i, s in zip(plain["item"], plain["said"], strict=True) if i == item]
            )
            for item in items
        ]
        right = sc.smece(yes, list(prob.values()), bins=given["bins"])
        assert math.isclose(rel.smece, right, rel_tol=1e-9, abs_tol=1e-12)


# Audits, alarms, and queries


def _rows(rng: Random, size: int) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {name: [unit(rng) for _ in range(size)] for name in ("y", "p")}
    if rng.random() < 0.4:
        columns["y"] = [float(rng.random() < p) for p in columns["p"]]
    columns["s"] = [rng.choice(("a", "b", None, "")) for _ in range(size)]
    columns["t"] = [rng.choice(("x", "y")) for _ in range(size)]
    columns["w"] = [rng.choice((0.0, 0.5, 1.0, 3.0)) for _ in range(size)]
    columns["m"] = [rng.randrange(1, 5) for _ in range(size)]
    columns["x"] = [rng.random() for _ in range(size)]
    return columns


def audited(seed: int) -> None:
    """Audit random rows with random settings."""
    rng = Random(seed)  # noqa: S311 - nobody's secret
    columns = _rows(rng, rng.choice((1, 5, 60)))
    if rng.random() < 0.3:
        column = columns[rng.choice(list(columns))]
        column[rng.randrange(len(column))] = rng.choice((None, math.nan, -1.0, 2.0, "x"))
    given: dict[str, Any] = {
        "by": rng.choice(("s", ["s", "t"], ["s", "t", "m"])),
        "depth": rng.choice((1, 2, 3)),
        "min_rows": rng.choice((1, 5, 30)),
        "draws": rng.choice((1, 20, 50)),
        "level": rng.choice((0.95, 0.5)),
        "rng": 0,
    }
    given |= (
        {"by": ["s", sc.Cut("x", rng.choice((2, 3, [0.5], [0.2, 0.9])))]}
        if rng.random() < 0.3
        else {}
    )
    given |= {"sample_weight": "w"} if rng.random() < 0.3 else {}
    given |= {"n_votes": "m"} if rng.random() < 0.3 else {}
    if rng.random() < 0.3:
        given[rng.choice(list(given))] = rng.choice(("nothing", [], *BAD_VALUES))
    frame = _frame(columns, rng)
    found = None if frame is None else answer(lambda: sc.audit(frame, **_described(given)))
    if found is None:
        return
    str(found)
    assert found.summary
    for each in (found.overall, *found.segments):
        refuse_nonsense([each.gap, each.low, each.high, each.pvalue], "audit")
        assert -1 - 1e-9 <= each.low <= each.high <= 1 + 1e-9
        assert 0 < each.pvalue <= 1
        assert each.sentence


def watched(seed: int) -> None:
    """Update a watch with random tables, some of which it must refuse."""
    rng = Random(seed)  # noqa: S311 - nobody's secret
    settings: dict[str, Any] = {
        "tolerance": rng.choice((0.0, 0.02, 0.5)),
        "level": rng.choice((0.95, 0.5)),
        "by": rng.choice(((), (), "s", ["s", "t"])),
        "max_weight": rng.choice((None, None, 3.0, 1e9)),
    }
    if rng.random() < 0.2:
        settings[rng.choice(list(settings))] = rng.choice(BAD_VALUES)
    watch = answer(lambda: sc.Watch(**settings))
    if watch is None:
        return
    bins = rng.choice((1, 5, 10))
    pvalue, alarm = 1.0, False
    parts: list[Any] = []  # a few are enough, also for 66 updates
    for day in range(rng.choice((1, 1, 2, 3, 3, 66)) if rng.random() < 0.3 else 2):
        if len(parts) < 4:
            parts.append(answer(lambda: _day(rng, bins, of_sets=bool(settings["by"]))))
        part = parts[-1] if day < 4 else rng.choice(parts)
        date = (
            rng.choice((None, None, f"2026-{day:04d}", *BAD_VALUES)) if rng.random() < 0.1 else None
        )
        state = None if part is None else answer(partial(watch.update, part, date=date))
        if state is None:
            continue
        assert state.sentence
        assert 0 <= state.pvalue <= pvalue
        assert state.alarm or not alarm
        pvalue, alarm = state.pvalue, state.alarm
        refuse_nonsense(state.log_evidence, "watch")
        for each in state.streams[:3]:
            str(each)
            assert each.n == 0 or each.low <= each.smece <= each.high
            filled = ~np.isnan(each.gap)
            refuse_nonsense([each.gap_low[filled], each.gap_high[filled]], "watch")


def _day(rng: Random, bins: int, *, of_sets: bool) -> Any:
    import pandas as pd

    columns = _rows(rng, rng.choice((1, 5, 40)))
    odd: dict[str, Any] = rng.choice(({}, {}, {}, {"sample_weight": "w"}, {"groups": "t"}))
    if rng.random() < 0.02:
        return rng.choice(BAD_VALUES)
    if of_sets or rng.random() < 0.2:
        return sc.scan(
            pd.DataFrame(columns), y_true="y", y_prob="p", by=["s", "t"], bins=bins, **odd
        )
    rows: dict[str, Any] = {name: columns[column] for name, column in odd.items()}
    return sc.reliability(columns["y"], columns["p"], bins=bins, **rows)


_NAMES = ("y", "y y", 'quo"te', "'", "\\", "`", ";--", "SELECT", "å", "", "w", "softcal_bin", "d")


def queried(seed: int) -> None:
    """Run the query of random columns with DuckDB, spoil its result, and read it.

    Four seeds spoil the result of one query, because DuckDB takes most of the time.
    """
    result = _result(seed // 4)
    if result is not None:
        _spoil_result(result, Random(seed))  # noqa: S311 - nobody's secret


@lru_cache(1)
def _result(seed: int) -> Any:
    """Return the result of a random query, compared with `scan`; None if it is refused."""
    import duckdb

    rng = Random(seed)  # noqa: S311 - nobody's secret
    columns = _rows(rng, rng.choice((1, 5, 40)))
    if rng.random() < 0.2:
        column = columns[rng.choice(("y", "p", "w", "m"))]
        column[rng.randrange(len(column))] = rng.choice((None, math.nan, -1.0, 2.0, math.inf))
    names = dict.fromkeys("ypstwm")
    names |= dict(zip("ypstwm", rng.sample(_NAMES, 6), strict=True)) if rng.random() < 0.4 else {}
    renamed = {names.get(name) or name: column for name, column in columns.items()}
    given: dict[str, Any] = {"y_true": names["y"] or "y", "y_prob": names["p"] or "p"}
    roles = {"by": "s", "sample_weight": "w"}
    given |= {key: names[name] or name for key, name in roles.items() if rng.random() < 0.4}
    if rng.random() < 0.4:
        given["y_true"] = sc.Shares(given["y_true"], votes=names["m"] or "m")
    if rng.random() < 0.1:
        given[rng.choice(list(given))] = rng.choice(BAD_VALUES)
    import pyarrow as pa

    rows = pa.table(renamed)
    query = answer(lambda: sc.sql_query("rows", **given))
    if query is None:
        return None
    connection = _connection()
    connection.register("rows", rows)
    try:
        result = connection.sql(query).to_arrow_table()
    except duckdb.ConversionException:
        return None  # a column of numbers holds text
    except duckdb.Error:
        assert not all(name in renamed for name in _texts(given.values())), query
        return None
    right = answer(lambda: sc.scan(rows, **given))
    tables = answer(lambda: sc.tables_from_query(result))
    assert (tables is None) == (right is None), f"scan: {right!r}, query: {tables!r}"
    if tables is not None and right is not None:
        table(tables[given["y_prob"]])
        assert tables.n == right.n
        assert math.isclose(
            tables[given["y_prob"]].smece, right[given["y_prob"]].smece, abs_tol=1e-9
        )
    return result


@cache
def _connection() -> Any:
    """Open DuckDB once, with one thread: opening it takes longer than all else in a try."""
    import duckdb

    return duckdb.connect(config={"threads": 1})


def _texts(values: Any) -> list[str]:
    return [each for each in values if isinstance(each, str)]


def _spoil_result(result: Any, rng: Random) -> None:
    """Read a result with a changed, missing, or odd column."""
    import pandas as pd

    frame: Any = result.to_pandas()
    name = rng.choice(list(frame.columns))
    if rng.random() < 0.2:
        frame = frame.drop(columns=name)
    else:
        frame[name] = pd.Series([rng.choice(BAD_VALUES)] * len(frame), dtype=object)
    bins: Any = rng.choice((10, 10, 7)) if rng.random() < 0.8 else rng.choice(BAD_VALUES)
    tables = answer(lambda: sc.tables_from_query(frame, bins=bins))
    if tables is not None:
        for rel in tables.values():
            table(rel)
