from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from same_tables import assert_same_table

import softcal as sc

Y, P = [0.0, 0.5, 1.0, 0.25], [0.2, 0.4, 0.9, 0.6]
NAMES = ["ann", "ben", "ann", "cy"]


def test_cluster_sums_match_definition() -> None:
    rel = sc.reliability(Y, P, bins=2, groups=NAMES)
    assert rel.clusters is not None
    sums = {"ann": [0.2, -0.1], "ben": [-0.1, 0.0], "cy": [0.0, 0.35]}
    expected = sum(np.outer(s, s) for s in sums.values())
    np.testing.assert_allclose(rel.clusters.residual, expected, atol=1e-15)
    assert rel.clusters.weight.tolist() == [[2, 1], [1, 2]]
    assert rel.clusters.count == 3


@pytest.mark.parametrize(
    "make",
    [
        np.array,
        lambda v: np.array(v, dtype=object),
        pd.Series,
        pl.Series,
        lambda v: [v.index(name) for name in v],
        lambda v: [float(v.index(name)) for name in v],
        lambda v: [(name, 1) for name in v] and np.array([*map(hash, v)]),
    ],
)
def test_groups_may_have_names_of_any_type(make: Any) -> None:
    expected = sc.reliability(Y, P, groups=NAMES)
    assert_same_table(sc.reliability(Y, P, groups=make(NAMES)), expected)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["a", None, "b", "b"], "groups must have no missing values: 1 of 4"),
        ([1.0, np.nan, 2.0, 2.0], "groups must have no missing values: 1 of 4"),
        (["a", "b"], "y_true and groups must have the same length"),
        ([["a"]] * 4, "groups must be one column"),
    ],
)
def test_bad_groups_are_refused(groups: Any, message: str) -> None:
    with pytest.raises(sc.InputError, match=message):
        sc.reliability(Y, P, groups=groups)


def test_too_many_bins_for_groups_are_refused() -> None:
    with pytest.raises(sc.InputError, match="at most 2000 bins: got 3600"):
        sc.reliability(Y, P, bins=3600, groups=NAMES)


def test_tables_with_groups_add_by_name() -> None:
    rng = np.random.default_rng(0)
    y, p, w, group = rng.random((4, 900))
    names = [f"g{k:.0f}" for k in group * 50]
    whole = sc.reliability(y, p, sample_weight=w, groups=names)
    added = sc.Reliability.empty()
    for start in range(0, 900, 250):
        part = slice(start, start + 250)
        added += sc.reliability(y[part], p[part], sample_weight=w[part], groups=names[part])
    assert_same_table(added, whole)
    assert sc.smece_interval(added).high == pytest.approx(sc.smece_interval(whole).high, rel=1e-9)
    numbers = [int(name[1:]) for name in names]  # a number and its text are the same name
    halves = sc.reliability(y[:9], p[:9], groups=numbers[:9]) + sc.reliability(
        y[9:], p[9:], groups=[str(k) for k in numbers[9:]]
    )
    assert_same_table(halves, sc.reliability(y, p, groups=names))


def test_tables_with_and_without_groups_do_not_add() -> None:
    with pytest.raises(sc.InputError, match="built with groups and one without"):
        sc.reliability(Y, P) + sc.reliability(Y, P, groups=NAMES)


def test_coarsening_keeps_the_groups() -> None:
    fine = sc.reliability(Y, P, bins=100, groups=NAMES, sample_weight=[1, 2, 0.5, 1])
    coarse = sc.reliability(Y, P, bins=4, groups=NAMES, sample_weight=[1, 2, 0.5, 1])
    assert fine.clusters is not None
    assert coarse.clusters is not None
    joined = fine.coarsen(4).clusters
    assert joined is not None
    np.testing.assert_allclose(joined.residual, coarse.clusters.residual, atol=1e-15)
    np.testing.assert_allclose(joined.weight, coarse.clusters.weight, atol=1e-15)
