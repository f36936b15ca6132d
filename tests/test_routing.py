"""Laws of `softcal.route`: risks, limits, the sequence of tests, and what must not change a rule."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import softcal as sc
from softcal.inference.route_scores import PairedScores
from softcal.inference.routing import RouteOptions, _Test

if TYPE_CHECKING:
    from pathlib import Path

TOP = RouteOptions(top_label=True)
ANYTIME = RouteOptions(top_label=True, anytime=True)
GRID = sc.Bins.grid()


def sample(seed: int, n: int = 3000, votes: int = 5) -> tuple[Any, Any]:
    """Return shares of votes, and the calibrated predictions."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.4, 0.4, n)
    return rng.binomial(votes, p) / votes, p


def disagreement(y: Any, p: Any) -> Any:
    return np.where(p >= 0.5, 1 - y, y)


def accepted(found: sc.Route, p: Any) -> Any:
    """Apply a rule as its sentence says."""
    assert found.rule is not None
    return (p >= found.rule.threshold) | (p < 1 - found.rule.threshold)


def same_rule(a: sc.Route, b: sc.Route) -> None:
    assert a.rule is not None
    assert b.rule is not None
    assert a.rule == pytest.approx(b.rule, abs=1e-9)
    np.testing.assert_allclose(a.curve.risk, b.curve.risk, atol=1e-12)
    np.testing.assert_allclose(a.curve.high, b.curve.high, atol=1e-9)
    assert (a.aurc, a.aurc_low) == pytest.approx((b.aurc, b.aurc_low), abs=1e-9)


@pytest.mark.parametrize("votes", [1, 5])
def test_curve_and_rule_equal_a_direct_computation(votes: int) -> None:
    y, p = sample(1, votes=votes)
    w = np.random.default_rng(0).uniform(0.5, 2, p.size)
    r = disagreement(y, p)
    for weight in (None, w):
        found = sc.route(y, p, sample_weight=weight)
        of = np.ones(p.size) if weight is None else weight
        for t, n, share, risk, low, high in zip(*found.curve, strict=True):
            inside = (p >= t) | (p < 1 - t)
            assert n == inside.sum()
            assert share == pytest.approx(of[inside].sum() / of.sum(), abs=1e-12)
            assert risk == pytest.approx(np.average(r[inside], weights=of[inside]), abs=1e-9)
            assert 0 <= low <= risk <= high <= 1
        assert found.rule is not None
        inside = accepted(found, p)
        assert found.rule.n == inside.sum()
        assert found.rule.risk == pytest.approx(np.average(r[inside], weights=of[inside]))
        assert found.rule.risk < found.rule.high <= found.max_disagreement


def test_rows_on_the_threshold_are_accepted() -> None:
    edges = GRID.edges[GRID.edges >= 0.5][:-1]
    p = np.repeat(edges, 40)
    y = np.where(p > 0.8, 1.0, np.arange(p.size) % 2)
    found = sc.route(y, p)
    assert found.rule is not None
    assert found.rule.n == (p >= found.rule.threshold).sum()
    assert found.rule.threshold in edges


def test_limits_of_outcomes_are_clopper_pearson() -> None:
    y, p = sample(2, votes=1)
    found = sc.route(y, p, level=0.9)
    for _, n, _, risk, low, high in zip(*found.curve, strict=True):
        exact = stats.binomtest(round(n * risk), int(n)).proportion_ci(0.9, "exact")
        assert (low, high) == pytest.approx((exact.low, exact.high), abs=1e-9)
    assert found.rule is not None
    k, n = round(found.rule.n * found.rule.risk), found.rule.n
    assert found.rule.high == pytest.approx(stats.beta.ppf(0.9, k + 1, n - k), abs=1e-9)


@pytest.mark.parametrize("limit", [0.02, 0.05, 0.1, 0.14])
@pytest.mark.parametrize("seed", range(4))
def test_rule_of_outcomes_equals_a_slow_sequence(limit: float, seed: int) -> None:
    y, p = sample(seed, votes=1)
    r = disagreement(y, p)
    upper = GRID.edges[GRID.edges >= 0.5][:-1][::-1]
    inside = [(p >= t) | (p < 1 - t) for t in upper]
    size = np.array([each.sum() for each in inside])
    for share, most in ((0.75, 0.1), (0.5, 0.1), (0.25, 1), (0, 1)):  # where the sequence starts
        p_value = stats.binom.cdf(np.rint(size * share * limit), size, limit)
        starts = np.flatnonzero((p_value <= 0.05) & (size > 0))
        if starts.size and size[starts[0]] <= most * p.size:
            break
    last = None
    for k in range(starts[0], len(upper)):
        if stats.binom.cdf(r[inside[k]].sum(), size[k], limit) > 0.05:
            break
        last = k
    found = sc.route(y, p, max_disagreement=limit).rule
    if last is None:
        assert found is None
    else:
        assert found is not None
        assert found.n == size[last]


@pytest.mark.parametrize("limit", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("anytime", [False, True])
@pytest.mark.parametrize("atoms", [(0, 1), (0, 0.5, 1), (0.1, 0.9), (0, 0.25, 1)])
def test_mean_evidence_is_at_most_one_under_the_null(
    *, limit: float, anytime: bool, atoms: tuple[float, ...]
) -> None:
    """Over all outcomes of up to 6 rows, for distributions with the mean at the limit."""
    ends = [(a, b) for a in atoms for b in atoms if a <= limit <= b and a < b]
    for low, high in ends:
        chance = (limit - low) / (high - low)
        for n in (1, 3, 6):
            total = 0.0
            for rows in itertools.product((low, high), repeat=n):
                r = np.array(rows)
                test = _Test(
                    np.array([float(n)]), np.array([r.mean()]), np.array([(r**2).mean()]),
                    exact=False, anytime=anytime,
                )  # fmt: skip
                evidence = math.exp(test.log_evidence(np.array([limit]), 0.05)[0])
                ups = int((r == high).sum())
                total += evidence * chance**ups * (1 - chance) ** (n - ups)
            assert total <= 1 + 1e-9


def test_rows_and_saved_sets_have_the_same_rule(tmp_path: Path) -> None:
    y, p = sample(3)
    rows = pd.DataFrame({"y": y, "p": p})
    sc.scan(rows, y_true="y", y_prob="p").save(tmp_path / "set.softcal")
    saved = sc.load(tmp_path / "set.softcal")
    table = saved.coarsen(saved.grid)[saved.models[0]]
    same_rule(sc.route(y, p), sc.route(table))
    same_rule(sc.route(y, p), sc.route(sc.reliability(y, p, bins=GRID)))


def test_other_words_for_the_same_rows_change_nothing() -> None:
    for votes in (1, 4):
        y, p = sample(4, votes=votes)
        found = sc.route(y, p)
        same_rule(found, sc.route(1 - y, 1 - p))
        for weight in (1.0, 2.0, 0.1):
            same_rule(found, sc.route(y, p, sample_weight=np.full(p.size, weight)))
        order = np.random.default_rng(0).permutation(p.size)
        same_rule(found, sc.route(y[order], p[order]))
        # The decision as the predicted class.
        by_class = sc.route(1 - disagreement(y, p), np.maximum(p, 1 - p), options=TOP)
        same_rule(found, by_class)


def test_groups_of_one_row_have_almost_the_rule_of_rows() -> None:
    y, p = sample(5, n=2000)
    rows, groups = sc.route(y, p), sc.route(y, p, groups=np.arange(p.size))
    assert rows.rule is not None
    assert groups.rule is not None
    assert groups.rule.share == pytest.approx(rows.rule.share, abs=0.02)
    assert groups.rule.n <= rows.rule.n
    assert groups.aurc_high == pytest.approx(groups.aurc + rows.aurc_high - rows.aurc, rel=0.02)


def test_groups_that_agree_widen_limits() -> None:
    rng = np.random.default_rng(6)
    group = np.arange(4000) % 40
    p = rng.beta(0.4, 0.4, 4000)
    y = rng.binomial(1, 1 / (1 + np.exp(-np.log(p / (1 - p)) - rng.normal(0, 1, 40)[group])))
    rows, groups = sc.route(y, p), sc.route(y, p, groups=group)
    assert (groups.curve.high >= rows.curve.high - 1e-9).all()
    assert (groups.curve.high[-50:] > rows.curve.high[-50:]).all()
    assert groups.aurc_high > rows.aurc_high


def test_rows_of_a_single_group_promise_nothing() -> None:
    y, p = sample(7)
    alone = sc.route(y, p, groups=np.zeros(p.size))
    assert alone.rule is None
    assert (alone.curve.high == 1).all()
    assert (alone.aurc_low, alone.aurc_high) == (0, 1)
    # The surest rows are of one group: the sequence starts where there are others.
    p = np.append(np.full(500, 0.9999), np.random.default_rng(0).uniform(0.8, 0.99, 2000))
    group = np.append(np.zeros(500), 1 + np.arange(2000) % 200)
    found = sc.route(np.ones(2500), p, groups=group)
    assert found.rule is not None
    assert found.rule.n == 2500


def test_raters_widen_the_upper_limit() -> None:
    rng = np.random.default_rng(8)
    p = rng.uniform(0.6, 0.99, 400)  # all yes, so that leanings do not cancel
    who = np.array([rng.permutation(6)[:3] for _ in range(400)])
    lean = rng.normal(0, 1.5, 6)
    chance = 1 / (1 + np.exp(-np.log(p / (1 - p))[:, None] - lean[who]))
    said = (rng.random(who.shape) < chance).astype(int)
    long = {"item": np.repeat(np.arange(400), 3), "who": who.ravel(), "vote": said.ravel()}
    votes = sc.Votes.from_long(long, item="item", label="vote", worker="who", classes=[0, 1])
    rows, raters = (
        sc.route(sc.reliability(votes, p, bins=GRID, raters=each)) for each in (False, True)
    )
    assert raters.curve.high[-1] > rows.curve.high[-1]
    assert (raters.curve.high >= rows.curve.high - 1e-9).mean() > 0.9


def test_confidence_as_a_score_gives_the_same_rule() -> None:
    y, p = sample(9)
    c = np.maximum(p, 1 - p)
    rows, score = sc.route(y, p), sc.route(y, p, score=c)
    assert rows.rule is not None
    assert score.rule is not None
    assert score.rule.share == pytest.approx(rows.rule.share, abs=0.01)
    assert score.rule.n == (c >= score.rule.threshold).sum()
    assert score.aurc == pytest.approx(rows.aurc, abs=2e-4)
    assert "with a score of at least" in score.sentence
    few = sc.route(y, p, score=np.digitize(c, [0.7, 0.9]), max_disagreement=0.08)
    assert few.rule is not None
    assert few.rule.n == (np.digitize(c, [0.7, 0.9]) >= few.rule.threshold).sum()
    assert sorted(few.curve.threshold) == [0, 1, 2]


def test_area_is_the_mean_over_all_prefixes() -> None:
    y, p = sample(10)
    r = disagreement(y, p)[np.argsort(-np.maximum(p, 1 - p))]
    direct = (r.cumsum() / np.arange(1, r.size + 1)).mean()
    found = sc.route(y, p)
    assert found.aurc == pytest.approx(direct, abs=5e-4)
    assert found.aurc_low < direct < found.aurc_high


def test_interval_of_the_area_covers() -> None:
    truth = sc.route(*sample(11, n=400_000)).aurc
    found = [sc.route(*sample(100 + k, n=1500), level=0.9) for k in range(100)]
    inside = np.mean([each.aurc_low <= truth <= each.aurc_high for each in found])
    assert 0.83 <= inside <= 0.97


def test_paired_areas_are_those_of_each_score() -> None:
    y, p = sample(12)
    r, first = disagreement(y, p), np.maximum(p, 1 - p)
    second = np.random.default_rng(0).random(p.size)
    pair = PairedScores()
    for part in np.array_split(np.arange(p.size), 3):
        pair.add(r[part], first[part], second[part], np.ones(part.size))
    found = pair.difference()
    assert found.first == pytest.approx(sc.route(1 - r, first, options=TOP).aurc, abs=1e-9)
    assert found.second == pytest.approx(sc.route(1 - r, second, options=TOP).aurc, abs=1e-9)
    assert 0 < found.low < found.difference < found.high
    draws = []
    rng = np.random.default_rng(1)
    for _ in range(60):
        rows = rng.integers(0, p.size, p.size)
        again = PairedScores()
        again.add(r[rows], first[rows], second[rows], np.ones(p.size))
        draws.append(again.difference().difference)
    assert np.std(draws) == pytest.approx((found.high - found.low) / 2 / 1.96, rel=0.35)


def test_hardened_labels_promise_more_than_people_agree() -> None:
    y, p = sample(13)
    found = sc.route(y, p)
    hard = sc.route(1.0 * (y > 0.5), p)
    assert found.rule is not None
    assert found.hardened is not None
    assert hard.rule is not None
    assert (found.hardened.threshold, found.hardened.n) == (hard.rule.threshold, hard.rule.n)
    inside = accepted(hard, p)
    assert found.hardened.risk == pytest.approx(disagreement(y, p)[inside].mean())
    assert found.hardened.risk > 0.05 > hard.rule.risk
    assert hard.hardened is None


@pytest.mark.parametrize("votes", [1, 3])
def test_single_looks_are_wrong_at_most_as_often_as_promised(votes: int) -> None:
    """At the limit for every rule, no rule must be promised."""
    wrong = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        y = 1 - rng.binomial(votes, 0.1, 800) / votes
        p = rng.uniform(0.5, 1, 800)
        wrong += sc.route(y, p, max_disagreement=0.1, options=TOP).rule is not None
    assert wrong <= stats.binom.ppf(0.999, 200, 0.05)


def test_every_look_holds_and_accepts_little_less() -> None:
    """At the limit for every rule, hardly any of many looks may promise one."""
    wrong = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        y, p = 1.0 * (rng.random(4000) > 0.05), rng.uniform(0.5, 1, 4000)
        looks = np.geomspace(60, 4000, 20).astype(int)
        wrong += any(sc.route(y[:n], p[:n], options=ANYTIME).rule is not None for n in looks)
    assert wrong <= 2
    pairs = []
    for seed in range(10):
        y, p = sample(seed)
        both = [sc.route(y, p, options=RouteOptions(anytime=each)).rule for each in (False, True)]
        pairs.append([0.0 if rule is None else rule.share for rule in both])
    single, every = np.array(pairs).T
    assert (every <= single).mean() >= 0.9
    assert every.mean() > 0.9 * single.mean()


def test_words() -> None:
    y, p = sample(14)
    assert "Accept predictions of at least" in sc.route(y, p).sentence
    none = sc.route(1 - y, p)
    assert none.rule is None
    assert none.accepted == ""
    assert none.sentence.startswith("No rule can be promised")
    assert repr(none) == "Route(rule=None, n=3000)"
    every = sc.route(y, p, max_disagreement=0.5)
    assert every.accepted == "every prediction"
    by_class = sc.route(1 - disagreement(y, p), np.maximum(p, 1 - p), options=TOP)
    assert " or below " not in by_class.sentence


BAD: dict[str, dict[str, Any]] = {
    "max_disagreement must be between 0 and 1: got 0": {"max_disagreement": 0},
    "max_disagreement must be between 0 and 1: got 1": {"max_disagreement": 1.0},
    "score must have a finite number for each of the 4 rows": {"score": [1, 2, 3]},
    "score must have a finite number": {"score": [1, 2, 3, np.nan]},
    "needs independent rows": {
        "groups": [1, 1, 2, 2], "options": RouteOptions(anytime=True),
    },
    "level": {"level": 1.0},
}  # fmt: skip


@pytest.mark.parametrize("message", BAD)
def test_refusals(message: str) -> None:
    with pytest.raises(sc.InputError, match=message):
        sc.route([0, 1, 0, 1], [0.1, 0.9, 0.2, 0.7], **BAD[message])


def test_refusals_of_tables() -> None:
    y, p = sample(15, n=50)
    with pytest.raises(sc.InputError, match="an edge at"):
        sc.route(sc.reliability(y, p, bins=5))
    assert sc.route(sc.reliability(y, p, bins=5), options=TOP).n == 50
    with pytest.raises(sc.InputError, match="score is for rows"):
        sc.route(sc.reliability(y, p), score=p)
    with pytest.raises(sc.InputError, match="route needs y_prob"):
        sc.route(y, score=p)
    with pytest.raises(sc.InputError, match="no rows"):
        sc.route(sc.Reliability.empty(GRID))
    with pytest.raises(sc.InputError, match="no rows to compare"):
        PairedScores().difference()
