from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

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
    assert sc.reliability(Y, P, groups=make(NAMES)) == expected


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


def test_tables_with_groups_add_when_no_group_is_split() -> None:
    whole = sc.reliability(Y, P, groups=["a", "a", "b", "b"])
    halves = sc.reliability(Y[:2], P[:2], groups=["a", "a"]) + sc.reliability(
        Y[2:], P[2:], groups=["b", "b"]
    )
    assert halves == whole
    assert sc.Reliability.empty() + whole == whole


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


def test_json_round_trip_keeps_the_groups() -> None:
    rel = sc.reliability(Y, P, bins=3, groups=NAMES)
    again = sc.Reliability.from_dict(json.loads(json.dumps(rel.to_dict())))
    assert again == rel
    assert again != sc.reliability(Y, P, bins=3)


@pytest.mark.parametrize(
    "clusters",
    [
        [],
        {"count": 3},
        {"count": 3, "residual": [[1]], "weight": [[1]]},
        {"count": 0, "residual": [[1, 0], [0, 1]], "weight": [[1, 0], [0, 1]]},
        {"count": 9, "residual": [[1, 0], [0, 1]], "weight": [[1, 0], [0, 1]]},
        {"count": 3, "residual": [[1, 2], [0, 1]], "weight": [[1, 0], [0, 1]]},
        {"count": 3, "residual": [[-1, 0], [0, 1]], "weight": [[1, 0], [0, 1]]},
        {"count": 3, "residual": [[1, float("nan")], [0, 1]], "weight": [[1, 0], [0, 1]]},
        {"count": True, "residual": [[1, 0], [0, 1]], "weight": [[1, 0], [0, 1]]},
    ],
)
def test_corrupted_saved_groups_are_refused(clusters: Any) -> None:
    saved = sc.reliability(Y, P, bins=2, groups=NAMES).to_dict() | {"clusters": clusters}
    with pytest.raises(sc.InputError, match="'clusters' must have a count and two symmetric"):
        sc.Reliability.from_dict(saved)
