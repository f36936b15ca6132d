"""Random arguments for public functions: good ones, and often one or two bad ones among them.

A seed makes them, as in `saved_examples.spoiled`. Hypothesis would take ten times as long to draw
the arguments as the functions take to run.
"""

from __future__ import annotations

import datetime as dt
import inspect
import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import softcal as sc

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    Good = dict[str, Callable[[], Any]]

BAD_VALUES: tuple[Any, ...] = (
    math.nan, math.inf, -math.inf, -0.0, -1e-9, 1 + 1e-9, 2, -1, 1e300, 10**400, True, None, "", "x", "0.5",
    b"1", 0.5j, Decimal("0.5"), Decimal("nan"), Decimal("1e999"), Fraction(1, 3), pd.NA, pd.NaT,
    np.float32(0.5), np.float16(0.1), np.longdouble("0.1"), np.datetime64("2020-01-01"), np.timedelta64(1, "s"),
    [], [0.5], (), {}, {1: 2}, set(), object, len, dt.date(2020, 1, 1), np.bool_(1), np.str_("1"),
)  # fmt: skip

_EDGES = (0.0, 1.0, 0.5, 0.29, 0.3, 0.6, 0.7, 5e-324, 1e-9, 1 - 2**-53)
_WEIGHTS = (0.0, 0.5, 1.0, 2.0, 1e-100, 1e-20, 1e20, 1e100)


def unit(rng: Random) -> float:
    """Return a probability, often on an edge of a bin."""
    kind = rng.randrange(3)
    if kind == 0:
        return rng.random()
    return rng.choice(_EDGES) if kind == 1 else rng.randrange(101) / 100


def class_row(rng: Random) -> list[float]:
    """Return three class probabilities that sum to 1, exactly or up to rounding."""
    if rng.random() < 0.4:
        row = rng.choice(([0.0, 0.0, 1.0], [0.5, 0.25, 0.25]))
        return rng.sample(row, 3)
    a, b = unit(rng), unit(rng)
    return [a * b, a * (1 - b), 1 - a]


def arguments(
    function: Callable[..., Any], rng: Random, *, of_classes: bool = False
) -> dict[str, Any]:
    """Return arguments by the names of a function's parameters, none or a few of them bad."""
    size = rng.choice((1, 2, 3, 4, 5, 6, 6, 40))
    good = _columns(rng, size, of_classes=of_classes) | _settings(rng)
    names = [name for name in inspect.signature(function).parameters if name in good]
    given = {name: good[name]() for name in names}
    spoilable = [
        name for name in names if name not in {"simultaneous", "normalized"}
    ]  # Python's truth of anything
    for name in rng.sample(spoilable, min(rng.choice((0, 0, 1, 1, 2)), len(spoilable))):
        given[name] = spoiled_value(given[name], rng)
    return given


def _columns(rng: Random, size: int, *, of_classes: bool) -> Good:
    """Return what makes a good column of that many rows, by the name of the parameter."""

    def each(make: Callable[[], Any]) -> list[Any]:
        return [make() for _ in range(size)]

    def probabilities() -> list[Any]:
        return each(lambda: class_row(rng) if of_classes else unit(rng))

    def maybe(make: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: None if rng.random() < 0.5 else make()

    names = ("y_true", "y_prob", "y_low", "y_high")
    return dict.fromkeys(names, probabilities) | {
        "models": lambda: {"a": probabilities(), "b": probabilities()},
        "sample_weight": maybe(lambda: each(lambda: rng.choice(_WEIGHTS))),
        "n_votes": maybe(lambda: rng.choice((1, 9, each(lambda: rng.choice((1, 2, 5, 2**52)))))),
        "groups": maybe(lambda: each(lambda: rng.choice("abc"))),
        "counts": lambda: each(lambda: [rng.randrange(4) for _ in range(3)]),
        "item": lambda: each(lambda: rng.randrange(3)),
        "worker": lambda: each(lambda: rng.choice("uvw")),
        "answer": lambda: each(lambda: rng.choice("xyz")),
        "assumptions": lambda: sc.planning.Assumptions.stated(smece=0.05, label_spread=0.1),
    }


def _settings(rng: Random) -> Good:
    """Return what makes a good setting, by the name of the parameter."""
    choices: dict[str, tuple[Any, ...]] = {
        "bins": (1, 2, 3, 7, 10, 15, 100, [0, 0.3, 0.30000000000000004, 1], [0, 5e-324, 1]),
        "level": (0.95, 0.5, 1e-9, 1 - 1e-12),
        "thresholds": (0.2, 0.0, [0.05, 0.5], [0.9, 0.1, 0.1], []),
        "max_smece": (None, 0.05, 0.5),
        "max_gap": (0.05, 0.5),
        "min_rows": (1, 100),
        "undecided": ("pass", "fail"),
        "normalized": (False, True),
        "metric": ("wasserstein", "ranked_probability_score", "manhattan", "dist_ce", "brier"),
        "simultaneous": (False, True),
        "threshold": (0.5, 0.0, 1.0, 0.3),
        "most": tuple(range(1, 21)),
        "folds": (2, 3, 4),
        "rng": (0,),
        "n": (1, 2, 5),
        "edges": ([0, 1], [0, 0.5, 1], np.linspace(0, 1, 6)),
        "pseudo_votes": (0.0, 0.5, 1.0, 1e100),
        "tolerance": (1e-8, 1e-3, 1.0),
        "max_iterations": (1, 10, 1000),
        "draws": (1, 2, 5),
        "smece": (0.0, 0.01, 0.1),
        "label_spread": (0.0, 0.1, 0.25),
        "half_width": (0.02, 0.1),
        "budget": (100.0, 1e4),
        "difference": (0.02, 0.1),
        "correlation": (-0.5, 0.0, 0.9),
        "power": (0.5, 0.8),
        "votes": (None, 1, 5),
        "items": (1, 100, 10**6),
        "item_cost": (0.0, 1.0),
        "vote_cost": (0.5, 1.0),
    }
    return {name: lambda name=name: rng.choice(choices[name]) for name in choices}  # type: ignore[misc]


def spoiled_value(good: Any, rng: Random) -> Any:
    """Return a good value in another container or kind, with a bad value in it, or a bad one."""
    how = rng.randrange(3)
    if how == 0 or not isinstance(good, list) or not good or isinstance(good[0], str):
        return rng.choice(BAD_VALUES)
    if how == 1:
        changed = list(good)
        changed[rng.randrange(len(good))] = rng.choice(BAD_VALUES)
        return changed
    array = np.array(good, dtype=np.float64)
    others = _OF_ANY + (_OF_COLUMNS if array.ndim == 1 else ())
    with np.errstate(invalid="ignore", over="ignore"):
        return rng.choice(others)(array)


_KINDS = ("f4", "f2", "g", "O", "U", "S", "?", "c16", "i1", "u8", "M8[s]", ">f8")
_OF_ANY: tuple[Callable[[Any], Any], ...] = (
    *(lambda a, kind=kind: a.astype(kind) for kind in _KINDS),
    lambda a: a[::-1], lambda a: a[::2], lambda a: a[:, None], lambda a: a[None], np.sum,
    lambda a: np.concatenate([a, a[:1]]), lambda a: a[:0], lambda a: np.ma.masked_equal(a, 0.5), iter,
    lambda a: np.rec.fromarrays([a]), lambda a: memoryview(a.data), lambda a: a.tobytes(),
)  # fmt: skip
_OF_COLUMNS: tuple[Callable[[Any], Any], ...] = (
    pd.Series, lambda a: pd.Series(a, index=np.arange(a.size)[::-1]), pd.Index,
    lambda a: pd.Series(a, dtype="Float64"), lambda a: pd.Series(a).astype("category"),
    lambda a: pd.Series(a, dtype="string"), lambda a: pd.DataFrame({"a": a, "b": a}), pl.Series,
    lambda a: pl.Series(a).cast(pl.String), lambda a: pl.DataFrame({"a": a}), pa.array,
    lambda a: pa.chunked_array([a]), lambda a: pa.array([None] * a.size),
    lambda a: pa.array([[1]] * a.size), lambda a: pa.table({"a": a}),
)  # fmt: skip
