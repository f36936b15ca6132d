from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from command_line import softcal_here
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


REFERENCE = json.loads((Path(__file__).parent / "reference" / "groups.json").read_text())
ROWS = ("y_true", "y_prob", "groups", "sample_weight")


@pytest.mark.parametrize("case", REFERENCE, ids=["9 groups", "14 groups with weights"])
def test_variances_over_groups_equal_those_of_clubsandwich(case: dict[str, Any]) -> None:
    y, p, groups, weight = (case[name] for name in ROWS)
    rel = sc.reliability(y, p, groups=groups, sample_weight=weight, bins=3)
    assert rel.clusters is not None
    found, (variance, degrees) = case["found"], rel.clusters.of_gaps(rel.gap, rel.sums.weight)
    for b in range(3):
        error = np.sqrt(variance[b]) / rel.sums.weight[b]
        assert error == pytest.approx(found[f"error_{b}"], rel=1e-8)
        assert degrees[b] == pytest.approx(found[f"degrees_{b}"], rel=1e-8)
    square, whole = rel.clusters.covariance(rel.sums)
    assert whole == pytest.approx(found["part_degrees"], rel=1e-8)
    errors = np.sqrt(square.diagonal()) / rel.sums.weight.sum()
    expected = [found[f"part_error_{b}"] for b in range(3)]
    np.testing.assert_allclose(errors, expected, rtol=1e-8)


@pytest.mark.parametrize("case", REFERENCE, ids=["9 groups", "14 groups"])
def test_interval_of_a_new_group_equals_that_of_metafor(case: dict[str, Any]) -> None:
    found = sc.new_group_interval(case["of_groups"]["estimate"], case["of_groups"]["error"])
    for ours, name in zip(
        (found.tau, found.value, found.low, found.high), ("tau", "mean", "low", "high"), strict=True
    ):
        assert ours == pytest.approx(case["found"][name], rel=1e-8)


def patients(groups: int, rows: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Return labels, predictions, and groups that differ by a common shift."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), rows)
    p = rng.uniform(0.2, 0.8, group.size)
    y = p + 0.05 * rng.standard_normal(groups)[group] + 0.05 * rng.standard_normal(group.size)
    return y, p, group


def test_equal_groups_have_one_degree_of_freedom_less_than_their_number() -> None:
    rel = sc.reliability([0.5] * 6, [0.1, 0.2, 0.3, 0.1, 0.2, 0.3], bins=1, groups=[*"abcabc"])
    assert rel.clusters is not None
    assert rel.clusters.covariance(rel.sums)[1] == pytest.approx(2)
    assert rel.clusters.of_gaps(rel.gap, rel.sums.weight)[1] == pytest.approx([2])


def test_few_groups_do_not_widen_the_interval_by_the_rule_of_three() -> None:
    """A rule of three over nine groups would put the upper limit at 0.41."""
    y, p, group = patients(9, 100)
    found = sc.smece_interval(y, p, groups=group)
    assert found.high < 0.12
    alone = sc.smece_interval(y, p)
    assert found.high - found.low > alone.high - alone.low


def test_bin_of_one_group_has_the_design_effect_of_the_others() -> None:
    y, p, group = patients(8, 50)
    p, y = np.append(p, np.full(20, 0.95)), np.append(y, np.linspace(0.8, 1, 20))
    low, high = sc.gap_intervals(y, p, groups=np.append(group, np.zeros(20, dtype=int)))
    alone = sc.gap_intervals(y, p)
    assert 0.01 < alone.high[9] - alone.low[9] < high[9] - low[9] < 0.5


def test_notes_count_effective_groups() -> None:
    y, p, group = patients(8, 20)
    assert "groups" not in sc.smece_interval(y, p, groups=group).note.split("too rare")[0]
    note = sc.smece_interval(y, p, groups=group, sample_weight=np.where(group > 0, 1, 40)).note
    assert note.startswith("The effective number of groups is 1.4 of 8. With fewer than 4")


def test_set_keeps_the_sums_of_groups_without_names(tmp_path: Path) -> None:
    y, p, group = patients(9, 40)
    names = np.array([f"patient {k}" for k in range(9)])[group]
    rows = pd.DataFrame({"y": y, "p": p, "g": names, "by": np.arange(y.size) % 2})
    tables = sc.scan(rows, y_true="y", y_prob="p", groups="g", by="by")
    tables.save(tmp_path / "set.softcal")
    assert "patient" not in (tmp_path / "set.softcal").read_text()
    loaded = sc.load(tmp_path / "set.softcal")
    direct = sc.smece_interval(y, p, groups=group)
    for each in (tables, loaded):
        assert sc.smece_interval(each["p"]).high == pytest.approx(direct.high, rel=1e-12)
        assert sc.new_group(each["p"]).gap.high == pytest.approx(
            sc.new_group(y, p, groups=group).gap.high, rel=1e-12
        )
        part = rows["by"] == 1
        segment = sc.smece_interval(y[part], p[part], groups=group[part])
        assert sc.smece_interval(each.by("by")[1]["p"]).high == pytest.approx(segment.high)


def test_new_group_needs_three_groups() -> None:
    with pytest.raises(sc.InputError, match="3 groups or more"):
        sc.new_group(Y, P, groups=[1, 1, 2, 2])
    with pytest.raises(sc.InputError, match="3 groups or more"):
        sc.new_group_interval([0.1, 0.2], [0.1, 0.1])
    with pytest.raises(sc.InputError, match="above 0"):
        sc.new_group_interval([0.1, 0.2, 0.3], [0.1, 0.1, 0.0])


def test_new_group_is_less_certain_than_the_mean() -> None:
    y, p, group = patients(30, 100)
    found, mean = sc.new_group(y, p, groups=group), sc.smece_interval(y, p, groups=group)
    assert found.gap.tau == pytest.approx(0.05, abs=0.02)
    assert found.smece.low <= mean.low
    assert found.smece.high > mean.high
    assert found.gap.groups == 30


def test_new_group_needs_separate_groups(rng: np.random.Generator) -> None:
    p = rng.random(5000)
    rel = sc.reliability(rng.random(5000) < p, p, groups=np.arange(5000))
    with pytest.raises(sc.InputError, match="at most 4,096"):
        sc.new_group(rel)


def test_score_shows_the_interval_of_a_new_group(tmp_path: Path) -> None:
    y, p, group = patients(9, 40)
    pd.DataFrame({"y": np.clip(y, 0, 1), "p": p, "clinic": group}).to_csv(tmp_path / "rows.csv")
    command = ("score", tmp_path / "rows.csv", "--label", "y", "--pred", "p", "--group", "clinic")
    card = json.loads(softcal_here(*command, "--format", "json").stdout)
    found = card["models"][0]["new_group"]
    expected = sc.new_group(np.clip(y, 0, 1), p, groups=group)
    assert found["gap_low"] == pytest.approx(expected.gap.low)
    assert found["smece_high"] == pytest.approx(expected.smece.high)
    assert "p in a new clinic: gap" in softcal_here(*command).stdout
