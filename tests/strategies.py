"""Hypothesis strategies: rows that often lie on bin edges, at 0, and at 1."""

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
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

N_BINS = st.sampled_from([1, 2, 3, 7, 10, 15, 100])
UNIT = st.one_of(
    st.floats(0, 1, allow_subnormal=True),
    st.builds(lambda k, n: min(k, n) / n, st.integers(0, 100), st.sampled_from([10, 15, 100])),
    st.sampled_from([0.0, 1.0, 0.29, 0.3, 0.6, 0.7, 5e-324, 1 - 2**-53]),
)
WEIGHT = st.one_of(st.just(0.0), st.floats(1e-3, 1e3))


def rows(min_size: int = 1, max_size: int = 60) -> st.SearchStrategy[list[tuple[float, float]]]:
    """Return lists of (label, prediction)."""
    return st.lists(st.tuples(UNIT, UNIT), min_size=min_size, max_size=max_size)


def weighted_rows() -> st.SearchStrategy[list[tuple[float, float, float]]]:
    """Return lists of (label, prediction, weight) with at least one positive weight."""
    return st.lists(st.tuples(UNIT, UNIT, WEIGHT), min_size=1, max_size=60).filter(
        lambda found: any(w > 0 for _, _, w in found)
    )


# Arguments of entry points: valid ones, by the name of the parameter, and invalid ones


def units(size: int) -> st.SearchStrategy[list[float]]:
    """Return columns of probabilities."""
    return st.lists(UNIT, min_size=size, max_size=size)


def class_rows(size: int) -> st.SearchStrategy[list[list[float]]]:
    """Return rows of three class probabilities that sum to 1, exactly or up to rounding."""
    return st.lists(
        st.one_of(
            st.permutations([0.0, 0.0, 1.0]),
            st.permutations([0.5, 0.25, 0.25]),
            st.tuples(UNIT, UNIT).map(lambda ab: [ab[0] * ab[1], ab[0] * (1 - ab[1]), 1 - ab[0]]),
        ),
        min_size=size,
        max_size=size,
    )


BINS = st.one_of(N_BINS, st.just([0, 0.3, 0.30000000000000004, 1]), st.just([0, 5e-324, 1]))


def good_arguments(size: int, *, of_classes: bool) -> dict[str, st.SearchStrategy[Any]]:
    """Return valid values for each parameter of our functions, for that many rows."""
    probabilities = class_rows(size) if of_classes else units(size)
    named = ("y_true", "y_prob", "y_low", "y_high")
    good: dict[str, st.SearchStrategy[Any]] = dict.fromkeys(named, probabilities)
    each: Any = {"min_size": size, "max_size": size}
    wild = st.one_of(WEIGHT, st.sampled_from([1e-100, 1e-20, 1.0, 1e20, 1e100]))
    return good | {
        "models": st.fixed_dictionaries({"a": probabilities, "b": probabilities}),
        "sample_weight": st.one_of(st.none(), st.lists(wild, **each)),
        "n_votes": st.one_of(
            st.none(), st.integers(1, 9), st.lists(st.sampled_from([1, 2, 5, 2**52]), **each)
        ),
        "groups": st.one_of(st.none(), st.lists(st.sampled_from(["a", "b", "c"]), **each)),
        "bins": BINS,
        "level": st.sampled_from([0.95, 0.5, 1e-9, 1 - 1e-12]),
        "threshold": st.one_of(st.none(), UNIT),
        "most": st.integers(1, 20),
        "folds": st.integers(2, 4),
        "rng": st.just(0),
        "counts": st.lists(st.tuples(*[st.integers(0, 3)] * 3), **each),
        "n": st.integers(1, 5),
    }


BAD_VALUES: tuple[Any, ...] = (
    math.nan, math.inf, -math.inf, -0.0, -1e-9, 1 + 1e-9, 2, -1, 1e300, 10**400, True, None, "", "x", "0.5",
    b"1", 0.5j, Decimal("0.5"), Decimal("nan"), Decimal("1e999"), Fraction(1, 3), pd.NA, pd.NaT,
    np.float32(0.5), np.float16(0.1), np.longdouble("0.1"), np.datetime64("2020-01-01"), np.timedelta64(1, "s"),
    [], [0.5], (), {}, {1: 2}, set(), object, len, dt.date(2020, 1, 1), np.bool_(1), np.str_("1"),
)  # fmt: skip


def spoiled_column(good: Any) -> st.SearchStrategy[Any]:
    """Return a valid column in another container or dtype, with a bad value, or another object."""
    if not isinstance(good, list) or isinstance(good[0], str):
        return st.sampled_from(BAD_VALUES)
    array = np.array(good, dtype=np.float64)
    kinds = ("f4", "f2", "g", "O", "U", "S", "?", "c16", "i1", "u8", "M8[s]")
    with np.errstate(invalid="ignore", over="ignore"):
        others: list[Any] = [array.astype(kind) for kind in kinds]
    others += [array[::-1], array[::2], array[:, None], array[None], array.sum(), array.tolist()]
    others += [np.append(array, 0.5), array[:0], np.ma.masked_equal(array, 0.5), iter(good)]
    others += [np.rec.fromarrays([array]), memoryview(array.data), array.tobytes()]
    if array.ndim == 1:
        others += [
            pd.Series(array), pd.Series(array, index=np.arange(array.size)[::-1]), pd.Index(array),
            pd.Series(array, dtype="Float64"), pd.Series(array).astype("category"),
            pd.Series(array, dtype="string"), pd.DataFrame({"a": array, "b": array}),
            pl.Series(array), pl.Series(array).cast(pl.String), pl.DataFrame({"a": array}),
            pa.array(array), pa.chunked_array([array]), pa.array([None] * array.size),
            pa.array([[1]] * array.size), pa.table({"a": array}),
        ]  # fmt: skip
    return st.one_of(
        st.integers(0, len(others) - 1).map(others.__getitem__),  # not all are hashable
        st.sampled_from(BAD_VALUES),
        st.builds(_with, st.just(good), st.sampled_from(BAD_VALUES), st.integers(0, 9)),
    )


def _with(good: Any, bad: Any, place: int) -> Any:
    """Replace one valid value with a bad one."""
    changed = list(good) if isinstance(good, list | tuple) and good else [0.5]
    changed[place % len(changed)] = bad
    return changed


@st.composite
def arguments(draw: st.DrawFn, function: Callable[..., Any], *, of_classes: bool) -> dict[str, Any]:
    """Draw arguments of a function by parameter name, of which at most two are invalid."""
    names = inspect.signature(function).parameters
    good = good_arguments(draw(st.integers(1, 6)), of_classes=of_classes)
    given = {name: draw(good[name]) for name in names if name in good}
    bad = draw(st.lists(st.sampled_from(sorted(given)), max_size=2, unique=True))
    return given | {name: draw(spoiled_column(given[name])) for name in bad}
