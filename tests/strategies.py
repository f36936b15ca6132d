"""Hypothesis strategies: rows that often lie on bin edges, at 0, and at 1."""

from __future__ import annotations

from hypothesis import strategies as st

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
