"""Recurring raters: sums that add by name, covariances, intervals, and plans."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from command_line import softcal_here as softcal

import softcal as sc
from softcal._validation import inputs
from softcal._validation.inputs import Coded
from softcal.inference.intervals import interval_limits
from softcal.planning import Assumptions, plan
from softcal.table import files
from softcal.table.build import Builder, tables_of_models, valid_entries
from softcal.table.owners import gaps_of
from softcal.votes import row_votes

if TYPE_CHECKING:
    from pathlib import Path

    from softcal.votes import Votes

Study = tuple["Votes", Any, Any]


def study(
    seed: int = 0, items: int = 300, raters: int = 40, votes: int = 3, leaning: float = 1.0
) -> Study:
    """Return votes of biased raters, and the predictions of two models."""
    rng = np.random.default_rng(seed)
    p = rng.random(items) * 0.98 + 0.01
    q = np.clip(p + rng.normal(0, 0.1, items), 0.01, 0.99)
    who = np.array([rng.permutation(raters)[:votes] for _ in range(items)])
    lean = rng.normal(0, leaning, raters)
    chance = 1 / (1 + np.exp(-(np.log(p / (1 - p))[:, None] + lean[who])))
    said = (rng.random(who.shape) < chance).astype(int)
    long = {"item": np.repeat(np.arange(items), votes), "who": who.ravel(), "vote": said.ravel()}
    made = sc.Votes.from_long(long, item="item", label="vote", worker="who", classes=[0, 1])
    return made, p, q


def scanned(votes: Votes, models: dict[str, Any], at: Any) -> sc.TableSet:
    """Return the set of some items, in segments by the last digit of the item."""
    chosen = votes.for_items(at)
    rows = {(k, 0): inputs.rows(chosen, p[at]) for k, p in enumerate(models.values())}
    cells = Coded(np.asarray(at) % 3, [("0",), ("1",), ("2",)])
    grid, ten = sc.Bins.grid(), sc.Bins.of(10)
    builder = Builder(tuple(models), ("digit",), bins=ten, grid=grid, pairs=ten, rater="who")
    builder.add(valid_entries(rows, grid, cells, pairs=ten, votes=row_votes(chosen)))
    return builder.finish("share")


# The covariances


def by_votes(votes: Votes, p: Any, bins: int) -> tuple[Any, Any, Any, Any]:
    assert votes.ballots is not None
    ballots = votes.ballots
    place = np.minimum((np.asarray(p) * bins).astype(int), bins - 1)[ballots.item]
    part = 1 / votes.totals[ballots.item]
    return ballots, place, part, np.asarray(p)[ballots.item] - ballots.label


def test_two_way_covariance_equals_statsmodels() -> None:
    api = pytest.importorskip("statsmodels.api")
    two_groups = pytest.importorskip("statsmodels.stats.sandwich_covariance").cov_cluster_2groups
    votes, p, _ = study(votes=4)
    rel = sc.reliability(votes, p, bins=5, raters=True)
    ballots, place, part, residual = by_votes(votes, p, 5)
    fit = api.WLS(residual, np.eye(5)[place], weights=part).fit()
    expected = two_groups(fit, ballots.item, ballots.worker, use_correction=False)[0]
    gap, s = gaps_of(rel.sums), rel.sums
    np.testing.assert_allclose(gap, fit.params, rtol=0, atol=1e-12)
    assert rel.raters is not None
    centered = np.diag(s.residual_var - gap**2 * s.weight_sq)
    own = (centered + rel.raters.covariance(gap)) / np.outer(s.weight, s.weight)
    np.testing.assert_allclose(own, expected, rtol=1e-10, atol=1e-14)


def test_covariance_equals_a_loop_over_pairs_of_votes() -> None:
    votes, p, _ = study(items=40, raters=6)
    rel = sc.reliability(votes, p, bins=3, raters=True)
    assert rel.raters is not None
    gap = gaps_of(rel.sums)
    ballots, place, part, residual = by_votes(votes, p, 3)
    s = part * (residual - gap[place])
    expected = np.zeros((3, 3))
    for i in range(s.size):
        for j in range(s.size):
            if ballots.worker[i] == ballots.worker[j] and i != j:
                expected[place[i], place[j]] += s[i] * s[j]
    np.testing.assert_allclose(rel.raters.covariance(gap), expected, rtol=1e-10, atol=1e-12)


def test_covariance_between_models_equals_a_loop_over_pairs_of_votes() -> None:
    votes, p, q = study(items=40, raters=6)
    joint = tables_of_models(votes, {"a": p, "b": q}, bins=3, raters=True).pair("a", "b")
    assert joint.raters is not None
    found = joint.raters.covariance(joint.a, joint.b)
    ballots, place_a, part, residual_a = by_votes(votes, p, 3)
    _, place_b, _, residual_b = by_votes(votes, q, 3)
    s_a = part * (residual_a - gaps_of(joint.a.sums)[place_a])
    s_b = part * (residual_b - gaps_of(joint.b.sums)[place_b])
    expected = np.zeros((3, 3))
    for i in range(s_a.size):
        for j in range(s_a.size):
            if ballots.worker[i] == ballots.worker[j] and i != j:
                expected[place_a[i], place_b[j]] += s_a[i] * s_b[j]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_brier_difference_has_the_two_way_variance_of_its_votes() -> None:
    votes, p, q = study(items=40, raters=6)
    joint = tables_of_models(votes, {"a": p, "b": q}, bins=10, raters=True).pair("a", "b")
    assert joint.raters is not None
    assert joint.a.raters is not None
    ballots, _, part, _ = by_votes(votes, p, 3)
    vote = ballots.label
    e = part * ((p**2 - q**2)[ballots.item] - 2 * vote * (p - q)[ballots.item])
    mean = joint.brier.total / joint.n
    np.testing.assert_allclose(e.sum(), joint.brier.total)
    centered = e - mean * part
    same = ballots.worker[:, None] == ballots.worker
    expected = (centered[:, None] * centered)[same].sum() - (centered**2).sum()
    found = joint.raters.of_losses(joint.a.raters, (mean, 0.0))[0]
    assert found == pytest.approx(expected, rel=1e-10)


def test_one_vote_per_rater_gives_the_interval_without_raters() -> None:
    rng = np.random.default_rng(3)
    long = {
        "item": np.repeat(np.arange(80), 3),
        "who": np.arange(240),
        "vote": rng.integers(0, 2, 240),
    }
    votes = sc.Votes.from_long(long, item="item", label="vote", worker="who")
    p = rng.random(80)
    without, found = sc.smece_interval(votes, p), sc.smece_interval(votes, p, raters=True)
    assert found == replace(without, rater_share=0.0)
    assert sc.calibration_test(votes, p, raters=True).pvalue == sc.calibration_test(votes, p).pvalue
    q = rng.random(80)
    alone = sc.compare(votes, {"a": p, "b": q})
    assert sc.compare(votes, {"a": p, "b": q}, raters=True) == alone


def test_repeated_votes_of_a_rater_on_an_item_count_as_one_rater() -> None:
    votes, p, _ = study(items=30, raters=6)
    assert votes.ballots is not None
    ballots = votes.ballots
    columns = {"item": ballots.item, "who": ballots.worker, "vote": ballots.label}
    twice = {name: np.tile(column, 2) for name, column in columns.items()}
    doubled = sc.Votes.from_long(
        twice, item="item", label="vote", worker="who", classes=[0, 1], allow_repeated=True
    )
    one, two = (sc.reliability(each, p, raters=True) for each in (votes, doubled))
    assert one.ties is not None
    assert two.ties is not None
    np.testing.assert_allclose(one.ties.residual, two.ties.residual, rtol=1e-12)


# Addition


def test_merged_tables_with_raters_equal_the_table_of_all_rows(tmp_path: Path) -> None:
    votes, p, q = study()
    models = {"a": p, "b": q}
    whole = scanned(votes, models, np.arange(300))
    parts = [scanned(votes, models, np.arange(k, 300, 7)) for k in range(7)]
    digits = list(whole.by("digit").values())
    for total in (added(parts), added(parts[::-1]), added(digits)):
        same(total, whole)
    path = tmp_path / "a.softcal"
    added(parts).save(path)
    same(sc.load(path), whole)
    dense = sc.reliability(votes, p, raters=True)
    assert dense.ties is not None
    assert whole["a"].ties is not None
    np.testing.assert_allclose(whole["a"].ties.residual, dense.ties.residual, rtol=1e-10)
    assert sc.smece_interval(whole["a"]).high == pytest.approx(sc.smece_interval(dense).high)


def added(parts: list[sc.TableSet]) -> sc.TableSet:
    return sum(parts[1:], parts[0])


def same(one: sc.TableSet, other: sc.TableSet) -> None:
    """Assert equal tables, pairs, and intervals, up to rounding."""
    for model in one:
        a, b = one[model], other[model]
        assert a.ties is not None
        assert b.ties is not None
        np.testing.assert_allclose(a.ties.residual, b.ties.residual, rtol=1e-9, atol=1e-12)
    left, right = sc.compare(one, "a", "b"), sc.compare(other, "a", "b")
    expected = (right.low, right.high, right.brier.low)
    assert (left.low, left.high, left.brier.low) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("many", [files.MANY, 1])
def test_saved_and_loaded_sets_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    votes, p, q = study()
    whole = scanned(votes, {"a": p, "b": q}, np.arange(300))
    monkeypatch.setattr(files, "MANY", many)
    path = tmp_path / "a.softcal"
    whole.save(path)
    assert sc.load(path) == whole


def test_swapping_models_with_raters_flips_the_comparison() -> None:
    votes, p, q = study()
    whole = scanned(votes, {"a": p, "b": q}, np.arange(300))
    swapped = whole.select(["b", "a"])
    assert sc.compare(swapped, "a", "b") == sc.compare(whole, "a", "b")
    one, other = sc.compare(whole, "a", "b"), sc.compare(whole, "b", "a")
    assert (one.low, one.brier.low) == pytest.approx((-other.high, -other.brier.high))
    only = whole.select(["b"])
    assert sc.smece_interval(only["b"]) == sc.smece_interval(whole["b"])


def test_tables_with_raters_add_coarsen_and_pickle() -> None:
    votes, p, _ = study()
    fine = sc.reliability(votes, p, bins=100, raters=True)
    whole = sc.reliability(votes, p, raters=True)
    parts = [
        sc.reliability(votes.for_items(at), p[at], raters=True)
        for at in (np.arange(100), np.arange(100, 300))
    ]
    for found in (fine.coarsen(10), parts[0] + parts[1], parts[1] + parts[0]):
        assert found.ties is not None
        assert whole.ties is not None
        np.testing.assert_allclose(found.ties.residual, whole.ties.residual, rtol=1e-9, atol=1e-12)
    assert pickle.loads(pickle.dumps(whole)) == whole  # noqa: S301
    with pytest.raises(sc.InputError, match="built with raters and one without"):
        whole + sc.reliability(votes, p)


# Intervals and notes


def test_biased_raters_widen_every_interval() -> None:
    votes, p, q = study(items=2000, raters=30)
    alone, both = sc.smece_interval(votes, p), sc.smece_interval(votes, p, raters=True)
    assert both.value == alone.value
    assert both.high - both.low > 1.5 * (alone.high - alone.low)
    assert both.rater_share == pytest.approx(1 - (alone.high - alone.low) / (both.high - both.low))
    assert "the raters account for" in str(both)
    for of in (sc.gap_intervals, sc.consistency_band):
        items, raters_too = of(votes, p), of(votes, p, raters=True)
        assert (raters_too.high - raters_too.low > items.high - items.low).mean() > 0.8
    assert sc.calibration_test(votes, p, raters=True).pvalue > sc.calibration_test(votes, p).pvalue
    narrow, wide = (sc.compare(votes, {"a": p, "b": q}, raters=raters) for raters in (False, True))
    assert wide.brier.high - wide.brier.low > narrow.brier.high - narrow.brier.low
    assert wide.high - wide.low > narrow.high - narrow.low
    ranking = sc.compare_many(votes, {"a": p, "b": q}, raters=True)
    assert ranking.pairs[0].comparison.high == pytest.approx(wide.high)


def test_interval_with_raters_keeps_coverage_where_item_interval_does_not() -> None:
    # SMECE over all items, p evenly between 0.01 and 0.99, and all raters, by integration.
    every = np.linspace(0.01, 0.99, 98_001)
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    odds = np.log(every / (1 - every))[:, None] + nodes
    mean = (1 / (1 + np.exp(-odds))) @ (weights / weights.sum())
    truth = sc.smece(mean, every)
    alone = both = 0
    for seed in range(40):
        votes, p, _ = study(seed, items=2000, raters=30, votes=3)
        rel = sc.reliability(votes, p, raters=True)
        of_both = sc.smece_interval(rel)
        of_items = sc.smece_interval(sc.Reliability(rel.bins, rel.sums))
        both += of_both.low <= truth <= of_both.high
        alone += of_items.low <= truth <= of_items.high
    assert both >= 37
    assert alone <= 34


def test_fewer_than_30_raters_add_a_note() -> None:
    votes, p, q = study(raters=12)
    assert "rests on 12 raters" in sc.smece_interval(votes, p, raters=True).note
    assert "rests on 12 raters" in sc.compare(votes, {"a": p, "b": q}, raters=True).note
    assert "raters" not in sc.smece_interval(*study()[:2], raters=True).note


def test_low_effective_number_of_raters_adds_a_note() -> None:
    rng = np.random.default_rng(0)
    who = np.array([[0, 1, 2 + i % 40] for i in range(400)]).ravel()
    long = {"item": np.repeat(np.arange(400), 3), "who": who, "vote": rng.integers(0, 2, 1200)}
    votes = sc.Votes.from_long(long, item="item", label="vote", worker="who")
    note = sc.smece_interval(votes, rng.random(400), raters=True).note
    assert "A few of the 42 raters gave most votes" in note


def test_recurring_raters_add_a_note_without_raters_option() -> None:
    votes, p, q = study()
    hint = "40 raters gave 900 votes"
    assert hint in sc.smece_interval(votes, p).note
    assert hint in sc.compare(votes, {"a": p, "b": q}).note
    assert hint not in sc.smece_interval(sc.Votes(votes.counts), p).note


def test_one_rater_gives_the_widest_interval() -> None:
    long = {"item": [0, 1, 2], "who": [1, 1, 1], "vote": [0, 1, 1]}
    votes = sc.Votes.from_long(long, item="item", label="vote", worker="who")
    found = sc.smece_interval(votes, [0.1, 0.5, 0.9], raters=True)
    assert (found.low, found.high) == (0, 1)
    assert "One rater" in found.note
    joint = sc.compare(votes, {"a": [0.1, 0.5, 0.9], "b": [0.2, 0.5, 0.9]}, raters=True)
    assert (joint.low, joint.high) == (-1, 1)


def test_items_of_weight_0_equal_absent_items() -> None:
    votes, p, _ = study()
    weight = np.arange(300) % 2
    half = np.flatnonzero(weight)
    one = sc.smece_interval(votes, p, sample_weight=weight, raters=True)
    other = sc.smece_interval(votes.for_items(half), p[half], raters=True)
    assert (one.low, one.high) == pytest.approx((other.low, other.high))


def test_constant_weights_do_not_change_rater_intervals() -> None:
    votes, p, _ = study()
    one = sc.smece_interval(votes, p, sample_weight=np.full(300, 4.0), raters=True)
    other = sc.smece_interval(votes, p, raters=True)
    assert (one.low, one.high) == pytest.approx((other.low, other.high))


def test_raters_without_residuals_give_the_rule_of_three_interval() -> None:
    long = {"item": np.repeat(np.arange(50), 2), "who": np.tile([0, 1], 50)}
    votes = sc.Votes.from_long(
        long | {"vote": np.repeat(np.arange(50) % 2, 2)}, item="item", label="vote", worker="who"
    )
    found = sc.smece_interval(votes, np.arange(50) % 2, raters=True)
    assert found.low == 0
    assert found.high == pytest.approx(-np.log(0.025) / 50)


def test_limits_of_stacked_tables_equal_limits_of_each_table() -> None:
    votes, p, _ = study()
    rel = sc.reliability(votes, p, raters=True)
    _, low, high = interval_limits(rel.sums, 0.95, rel.ties)
    found = sc.smece_interval(rel)
    assert (found.low, found.high) == (float(low), float(high))


# Input validation


def test_labels_without_workers_are_refused() -> None:
    with pytest.raises(sc.InputError, match="needs votes with raters: got ndarray"):
        sc.reliability(np.array([0.5]), [0.5], raters=True)
    with pytest.raises(sc.InputError, match="got votes without raters"):
        sc.reliability(sc.Votes([[1, 2]]), [0.5], raters=True)


def test_raters_with_groups_or_classes_are_refused() -> None:
    votes, p, q = study(items=20)
    with pytest.raises(sc.InputError, match="cannot be combined with groups"):
        sc.reliability(votes, p, groups=np.arange(20), raters=True)
    classes = {"a": np.column_stack([1 - p, p]), "b": np.column_stack([1 - q, q])}
    with pytest.raises(sc.InputError, match="one probability per row"):
        sc.compare(votes, classes, raters=True)
    with pytest.raises(sc.InputTypeError, match="does not take raters"):
        sc.smece_interval(sc.reliability(votes, p), raters=True)


def test_cumulative_test_of_a_table_with_raters_is_refused() -> None:
    votes, p, _ = study()
    with pytest.raises(sc.InputError, match="built with raters"):
        sc.ecce_range(sc.reliability(votes, p, bins=100, raters=True))


def test_workers_with_the_same_text_are_refused() -> None:
    long = {"item": [0, 0], "who": np.array([1, "1"], dtype=object), "vote": [0, 1]}
    votes = sc.Votes.from_long(long, item="item", label="vote", worker="who")
    with pytest.raises(sc.InputError, match="names that differ as text"):
        sc.reliability(votes, [0.5], raters=True)


@pytest.mark.parametrize(
    ("block", "part", "value"),
    [
        ("rater_sums", "owner", 9),
        ("rater_sums", "bin", -1),
        ("rater_sums", "sum_weight", "x"),
        ("rater_sums", "sum_residual", 9.0),
        ("rater_sums", "sum_weight_sq", None),
        ("rater_losses", "owner", 9),
        ("vote_products", "sum_product", None),
    ],
)
def test_damaged_raters_are_refused(block: str, part: str, value: Any, tmp_path: Path) -> None:
    votes, p, q = study(items=20, raters=3)
    saved = files.written(tables_of_models(votes, {"a": p, "b": q}, bins=3, raters=True))
    saved["blocks"][block][part][0] = value
    (tmp_path / "set").write_text(json.dumps(saved))
    with pytest.raises(sc.InputError, match="damaged"):
        sc.load(tmp_path / "set")
    saved["owners"] = ["0", "0", "2"]
    (tmp_path / "set").write_text(json.dumps(saved))
    with pytest.raises(sc.InputError, match="damaged"):
        sc.load(tmp_path / "set")


def test_sets_with_and_without_raters_cannot_be_added() -> None:
    votes, p, q = study()
    whole = scanned(votes, {"a": p, "b": q}, np.arange(300))
    with pytest.raises(sc.InputError, match="different raters"):
        whole + replace(whole, about=whole.about._replace(rater=None))


# Plans


def test_few_raters_bound_the_planned_width_from_below() -> None:
    stated = Assumptions.stated(smece=0.0, label_spread=0.15, rater_spread=0.1)
    widths = [stated.half_width(5000, votes=3, raters=raters) for raters in (20, 100, 1000)]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] > stated.half_width(5000, votes=3)
    few, many = (plan(stated, half_width=0.03, votes=3, raters=raters) for raters in (100, 1000))
    assert few.items > many.items
    with pytest.raises(sc.InputError, match="for more raters"):
        plan(stated, half_width=0.01, votes=3, raters=20)


def test_planned_width_with_raters_matches_the_interval() -> None:
    votes, p, _ = study(items=2000, raters=60)
    rel = sc.reliability(votes, p, raters=True)
    found = sc.smece_interval(rel)
    planned = Assumptions.from_pilot(rel).half_width(2000, votes=3, raters=60)
    assert planned == pytest.approx((found.high - found.low) / 2, rel=0.3)
    assert Assumptions.from_pilot(rel).with_smece(0.1).rater_cov is not None


def test_raters_that_cannot_be_planned_are_refused() -> None:
    votes, p, _ = study()
    pilot = Assumptions.from_pilot(sc.reliability(votes, p))
    with pytest.raises(sc.InputError, match="if their spread is known"):
        pilot.half_width(100, votes=3, raters=10)
    stated = Assumptions.stated(smece=0.05, label_spread=0.1, rater_spread=0.1)
    for raters in (2, 2.5):
        with pytest.raises(sc.InputError, match="at least 3"):
            stated.half_width(100, votes=3, raters=raters)  # type: ignore[arg-type]


# Kinds of raters

KINDS = {who: ("x", "y", "z")[who % 3] for who in range(40)}


def test_weights_by_kind_give_the_shares_of_the_population() -> None:
    votes, p, _ = study()
    population = {"x": 0.6, "y": 0.3, "z": 0.1}
    weighted = votes.weighted(by=KINDS, population=population)
    assert weighted.ballots is not None
    kind = np.array([KINDS[who] for who in weighted.ballots.workers])[weighted.ballots.worker]
    for name, share in population.items():
        own = weighted.ballot_weight[kind == name].sum() / weighted.ballot_weight.sum()
        assert own == pytest.approx(share)
    same_mix = {
        name: float((kind == name).mean()) for name in population
    }  # the shares of the votes, so weights are 1
    equal = votes.weighted(by=KINDS, population=same_mix)
    np.testing.assert_allclose(equal.shares, votes.shares)
    assert equal.effective_totals.tolist() == votes.totals.tolist()
    one, other = (sc.smece_interval(each, p, raters=True) for each in (equal, votes))
    assert (one.low, one.high) == pytest.approx((other.low, other.high))
    assert weighted.for_items([3, 1]).shares.tolist() == weighted.shares[[3, 1]].tolist()
    assert weighted.binary(0).shares[:, 1].tolist() == weighted.shares[:, 0].tolist()


def test_weighted_votes_equal_shares_computed_by_hand() -> None:
    long = {"item": ["a"] * 3 + ["b"], "who": [1, 2, 3, 3], "vote": [0, 1, 1, 0]}
    votes = sc.Votes.from_long(long, item="item", label="vote", worker="who")
    weighted = votes.weighted(by=["m", "f", "f"], population={"m": 0.5, "f": 0.5})
    # m has 1 of 4 votes, so its vote counts 2; f has 3, so each counts 2/3.
    assert weighted.shares[0].tolist() == pytest.approx([0.6, 0.4])
    assert weighted.effective_totals.tolist() == [2, 1]
    assert sc.smece(weighted, [0.4, 0.0]) == pytest.approx(0.0)
    parts = weighted.by_kind({1: "m", 2: "f", 3: "f"})
    assert parts["f"].shares.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert parts["m"].workers == (1,)


def test_table_of_a_kind_equals_the_table_of_its_votes() -> None:
    votes, p, _ = study()
    tables = sc.reliability_by_rater(votes, p, by=KINDS)
    assert list(tables) == ["x", "y", "z"]
    assert votes.ballots is not None
    ballots = votes.ballots
    frame = pd.DataFrame({"item": ballots.item, "who": ballots.worker, "vote": ballots.label})
    for kind, table in tables.items():
        own = frame[frame["who"].map(KINDS) == kind]
        alone = sc.Votes.from_long(own, item="item", label="vote", worker="who")
        at = np.array(alone.items)
        assert table == sc.reliability(alone, p[at], raters=True)


def test_rater_difference_detects_kinds_that_differ_only() -> None:
    rng = np.random.default_rng(0)
    rejected = {0.0: 0, 1.5: 0}
    for shift in rejected:
        for _ in range(40):
            p = rng.random(300)
            who = np.array([rng.permutation(40)[:4] for _ in range(300)])
            lean = rng.normal(0, 0.5, 40) + shift * (np.arange(40) % 2)
            chance = 1 / (1 + np.exp(-(np.log(p / (1 - p))[:, None] + lean[who])))
            said = (rng.random(who.shape) < chance).astype(int)
            votes = sc.Votes.from_long(
                {"i": np.repeat(np.arange(300), 4), "w": who.ravel(), "v": said.ravel()},
                item="i", label="v", worker="w",
            )  # fmt: skip
            found = sc.rater_difference(votes, p, by=np.arange(40) % 2)
            rejected[shift] += found.pvalue < 0.05
    assert rejected[0.0] <= 7
    assert rejected[1.5] >= 38


@pytest.mark.parametrize(
    ("items", "raters", "votes", "rates"),
    [(40, 60, 10, (1, 1)), (60, 30, 5, (0.4, 3)), (30, 10, 5, (1, 1)), (100, 30, 5, (0.3, 0.3))],
)
def test_rater_difference_keeps_its_level_with_few_items(
    items: int, raters: int, votes: int, rates: tuple[float, float]
) -> None:
    """Kinds that do not differ; benchmarks/rater_difference.py has the full simulation."""
    rng = np.random.default_rng(3)
    pvalues = []
    for _ in range(200):
        rate = rng.beta(*rates, items)
        who = np.array([rng.permutation(raters)[:votes] for _ in range(items)])
        said = (rng.random(who.shape) < rate[:, None]).astype(int)
        long = {"i": np.repeat(np.arange(items), votes), "w": who.ravel(), "v": said.ravel()}
        made = sc.Votes.from_long(long, item="i", label="v", worker="w", classes=[0, 1])
        pvalues.append(sc.rater_difference(made, rate, by=np.arange(len(made.workers)) % 2).pvalue)
    assert np.mean(np.array(pvalues) < 0.05) <= 0.095  # three standard errors above 0.05
    assert np.mean(np.array(pvalues) < 0.001) <= 0.01


def test_rater_difference_with_few_items_tests_the_level_alone() -> None:
    votes, p, _ = study(items=15)
    found = sc.rater_difference(votes, p, by=KINDS, kinds=("x", "y"))
    assert found.pvalue_bins is None
    assert found.pvalue == found.pvalue_level
    assert "too few items to test bins" in " ".join(str(found).split())
    assert sc.rater_difference(*study()[:2], by=KINDS, kinds=("x", "y")).pvalue_bins is not None


def test_rater_difference_equals_difference_of_biases_and_flips_when_swapped() -> None:
    votes, p, _ = study()
    tables = sc.reliability_by_rater(votes, p, by=KINDS)
    found = sc.rater_difference(votes, p, by=KINDS, kinds=("x", "y"))
    assert found.difference == pytest.approx(tables["x"].bias - tables["y"].bias)
    other = sc.rater_difference(votes, p, by=KINDS, kinds=("y", "x"))
    assert (other.low, other.pvalue) == pytest.approx((-found.high, found.pvalue))
    assert "bias by x minus by y" in str(found)
    assert repr(found).startswith("RaterDifference(")


def test_kinds_with_the_same_votes_do_not_differ() -> None:
    long = {"item": np.repeat(np.arange(4), 4), "who": np.tile(np.arange(4), 4)}
    votes = sc.Votes.from_long(
        long | {"vote": np.repeat([0, 1, 1, 0], 4)}, item="item", label="vote", worker="who"
    )
    found = sc.rater_difference(votes, [0.2, 0.7, 0.9, 0.1], by=[0, 0, 1, 1])
    assert found.difference == 0
    assert found.pvalue == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("by", "kinds", "message"),
    [
        (["a", "b", "c"] * 14, None, "there are 40 raters, by has 42"),
        ({who: kind for who, kind in KINDS.items() if who}, None, "1 of 40 have none"),
        (KINDS, None, "there are 3"),
        (KINDS, ("x", "w"), "no rater has the kind 'w'"),
        (KINDS, ("x", "x"), "compared with itself"),
        (["a"] + ["b"] * 39, None, "two or more raters"),
    ],
)
def test_invalid_kinds_are_refused(by: Any, kinds: Any, message: str) -> None:
    votes, p, _ = study()
    with pytest.raises(sc.InputError, match=message):
        sc.rater_difference(votes, p, by=by, kinds=kinds)


@pytest.mark.parametrize(
    ("population", "message"),
    [
        ({"x": 0.5, "y": 0.5}, "1 have none, the first is 'z'"),
        ({"x": 0.25, "y": 0.25, "z": 0.25, "w": 0.25}, "a kind without raters, 'w'"),
        ({"x": 0.5, "y": 0.5, "z": 0.5}, "sum to 1"),
        ({"x": 1.0, "y": 0.0, "z": 0.0}, "above 0"),
    ],
)
def test_invalid_populations_are_refused(population: Any, message: str) -> None:
    with pytest.raises(sc.InputError, match=message):
        study()[0].weighted(by=KINDS, population=population)


def test_votes_without_workers_have_no_kinds() -> None:
    with pytest.raises(sc.InputError, match="votes with raters"):
        sc.Votes([[1, 2]]).by_kind(["a"])
    with pytest.raises(sc.InputError, match="needs votes with raters"):
        sc.Votes([[1, 2]]).ballot_weight  # noqa: B018
    assert sc.Votes([[1, 2]]).workers == ()


# The report and the command line


def test_report_with_raters_states_and_saves_them(tmp_path: Path) -> None:
    from softcal.report.page import _without_segments

    votes, p, q = study()
    whole = scanned(votes, {"a": p, "b": q}, np.arange(300))
    page = tmp_path / "report.html"
    sc.write_report(page, whole)
    text = page.read_text()
    assert "new rows and new raters" in text
    assert "the raters account for" in text
    alone = _without_segments(whole)
    assert alone is not None
    one, other = (sc.smece_interval(each["a"]) for each in (alone, whole))
    assert (one.low, one.high) == pytest.approx((other.low, other.high))


def test_score_of_a_saved_set_with_raters_shows_their_share(tmp_path: Path) -> None:
    votes, p, q = study()
    path = tmp_path / "a.softcal"
    scanned(votes, {"a": p, "b": q}, np.arange(300)).save(path)
    card = json.loads(softcal("score", path, "--format", "json").stdout)
    assert 0 <= card["models"][0]["rater_share"] < 1
    shown = " ".join(softcal("score", path).stdout.split())
    assert "Intervals are for new items and new raters" in shown
    compared = json.loads(softcal("compare", path, "--format", "json").stdout)
    assert compared["pairs"][0]["residual_correlation"] is None


def test_flags_must_be_true_or_false() -> None:
    odd: Any = pd.NA
    with pytest.raises(sc.InputTypeError, match="raters must be True or False"):
        sc.RawVotes("y", item="i", rater="r", raters=odd)


def test_a_set_with_raters_and_tiny_residuals_can_be_saved(tmp_path: Path) -> None:
    votes = sc.Votes.from_long(
        {"i": [0, 0, 1], "w": ["u", "v", "u"], "a": [0, 0, 1]}, item="i", worker="w", label="a"
    )
    models = {"a": [5e-324, 0.5], "b": [0.5, 5e-324]}
    tables = tables_of_models(votes, models, bins=10, raters=True)
    tables.save(tmp_path / "set")
    assert sc.load(tmp_path / "set") == tables
