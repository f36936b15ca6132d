"""Net benefit against R's dcurves and exact arithmetic, and properties of decisions."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit
from strategies import UNIT

import softcal as sc
from softcal.plot import draw_decision

REFERENCE = json.loads((Path(__file__).parent / "reference" / "dcurves.json").read_text())
THRESHOLDS = np.arange(1, 20) / 20


def test_groups_that_do_not_matter_hardly_widen_intervals(rng: np.random.Generator) -> None:
    p = rng.random(1400)
    y, groups, at = rng.binomial(5, p) / 5, np.arange(1400) % 40, [0.1, 0.3, 0.6]
    alone, together = sc.net_benefit(y, p, at), sc.net_benefit(y, p, at, groups=groups)
    wider = (together.high - together.low) / (alone.high - alone.low)
    assert (wider > 1).all()  # Student's quantile of 40 groups
    assert (wider < 1.5).all()


def test_net_benefit_equals_dcurves_from_rows_and_tables() -> None:
    y, p, at = (np.array(REFERENCE[name]) for name in ("y_true", "y_prob", "threshold"))
    grid = (at * 100).round() / 100
    fine = sc.reliability(y, p, bins=3600)
    for found in (
        sc.net_benefit(y, p, grid),
        sc.net_benefit(fine, grid),
        sc.net_benefit(fine, thresholds=grid),
    ):
        np.testing.assert_allclose(found.value, REFERENCE["age"], atol=1e-12, rtol=0)
        np.testing.assert_allclose(found.treat_all, REFERENCE["all"], atol=1e-12, rtol=0)


@given(st.lists(st.tuples(UNIT, UNIT), min_size=2, max_size=30), st.integers(0, 19))
def test_net_benefit_equals_exact_arithmetic(data: list[tuple[float, float]], k: int) -> None:
    y, p = map(np.array, zip(*data, strict=True))
    t = k / 20
    exact = sum(
        (Fraction(a) - Fraction(t)) / (1 - Fraction(t)) for a, b in data if b >= t
    ) / Fraction(len(data))
    found = sc.net_benefit(y, p, t)
    assert found.value[0] == pytest.approx(float(exact), abs=1e-13)
    assert found.cost[0] >= 0
    assert found.low[0] <= found.value[0] <= found.high[0]


def test_tables_and_rows_give_the_same_intervals_and_costs(rng: np.random.Generator) -> None:
    p = rng.integers(0, 21, 500) / 20  # so that bins hold equal predictions
    y = rng.integers(0, 5, 500) / 4
    rows = sc.net_benefit(y, p, THRESHOLDS)
    table = sc.net_benefit(sc.reliability(y, p, bins=20), THRESHOLDS)
    for name in ("threshold", "value", "low", "high", "treat_all", "cost"):
        np.testing.assert_allclose(getattr(rows, name), getattr(table, name), atol=1e-12)


@pytest.mark.parametrize("weight", [None, 2.5])
def test_tables_and_rows_in_groups_give_the_same_intervals_and_costs(
    weight: float | None, rng: np.random.Generator
) -> None:
    p, group = rng.integers(0, 20, 500) / 20, rng.integers(0, 30, 500)
    y = np.clip(rng.integers(0, 5, 500) / 4 + rng.normal(0, 0.3, 30)[group], 0, 1)
    options: Any = {"groups": group, "sample_weight": weight and np.full(500, weight)}
    rows = sc.net_benefit(y, p, THRESHOLDS, **options)
    rel = sc.reliability(y, p, bins=20, **options)
    table = sc.net_benefit(rel, THRESHOLDS)
    for name in ("threshold", "value", "low", "high", "treat_all", "cost"):
        np.testing.assert_allclose(getattr(rows, name), getattr(table, name), atol=1e-12)
    assert (rows.high > sc.net_benefit(y, p, THRESHOLDS).high + 0.01).any()
    p = (rng.integers(0, 20, 500) + rng.random(500)) / 20  # they differ within a bin
    rows = sc.net_benefit(y, p, THRESHOLDS, **options)
    table = sc.net_benefit(sc.reliability(y, p, bins=20, **options), THRESHOLDS)
    np.testing.assert_allclose(
        [rows.low[:10], rows.high[:10]], [table.low[:10], table.high[:10]], atol=2e-3
    )


def test_net_benefit_of_outcomes_acted_on_has_wilsons_limits() -> None:
    """If one always acts, net benefit is (m - t) / (1 - t), with m the share of cases."""
    y, t = np.repeat([1.0, 0.0], [12, 28]), 0.2
    found = sc.net_benefit(y, np.full(40, 0.9), t)
    z, n, m = float(-stdtrit(39, 0.025)), 40, 0.3
    k = z**2 * (n * m * (1 - m) / (n - 1) + 1 / n) / (n * m * (1 - m) + 1)  # about z^2 / n
    case = [(m + k / 2 + sign * np.sqrt(k * (m * (1 - m) + k / 4))) / (1 + k) for sign in (-1, 1)]
    # Cases and others add up to all rows, so both errors are one.
    assert found.value[0] == pytest.approx((m - t) / (1 - t), abs=1e-14)
    np.testing.assert_allclose(
        [found.low[0], found.high[0]], [(each - t) / (1 - t) for each in case], atol=1e-12
    )


def test_net_benefit_limits_of_many_rows_are_those_of_a_mean(rng: np.random.Generator) -> None:
    y, p, w = rng.random(40_000), rng.random(40_000), rng.random(40_000)
    t = 0.3
    term = np.where(p >= t, (y - t) / (1 - t), 0.0)
    found = sc.net_benefit(y, p, [0.7, t])
    assert found.value[1] == pytest.approx(term.mean(), abs=1e-14)
    half = 1.96 * term.std() / 200
    assert found.high[1] - found.value[1] == pytest.approx(half, rel=2e-3)
    assert found.value[1] - found.low[1] == pytest.approx(half, rel=2e-3)
    weighted = sc.net_benefit(y, p, t, sample_weight=w)
    mean = np.average(term, weights=w)
    assert weighted.value[0] == pytest.approx(mean, abs=1e-14)
    half = 1.96 * np.sqrt((w**2 * (term - mean) ** 2).sum()) / w.sum()
    assert weighted.high[0] - mean == pytest.approx(half, rel=3e-3)
    each = sc.net_benefit(y[:300], p[:300], t, sample_weight=w[:300], groups=np.arange(300))
    rows = sc.net_benefit(y[:300], p[:300], t, sample_weight=w[:300])
    np.testing.assert_allclose([each.low, each.high], [rows.low, rows.high], atol=1e-12)


def test_a_difference_with_a_model_that_never_acts_is_the_net_benefit(
    rng: np.random.Generator,
) -> None:
    y, p = rng.binomial(1, 0.3, 200).astype(float), rng.random(200)
    never = sc.net_benefit_difference(y, {"p": p, "never": np.zeros(200)}, THRESHOLDS)
    alone = sc.net_benefit(y, p, THRESHOLDS)
    np.testing.assert_allclose(never.value, alone.value, atol=1e-14)
    assert (never.low <= alone.low).all()  # it may act on unseen rows
    assert (never.high >= alone.high).all()
    groups = np.arange(200) // 2
    of_groups = sc.net_benefit_difference(
        y, {"p": p, "never": np.zeros(200)}, THRESHOLDS, groups=groups
    )
    np.testing.assert_allclose(of_groups.value, alone.value, atol=1e-14)


def test_limits_allow_for_cases_not_seen() -> None:
    """Without a case among 50 rows, up to about 7% of unlimited rows may be cases."""
    found = sc.net_benefit(np.zeros(50), np.full(50, 0.5), 0.5)
    assert found.value[0] == found.low[0] == -1
    assert -0.9 < found.high[0] < -0.8
    models = {"a": np.full(50, 0.5), "b": np.full(50, 0.6)}
    same = sc.net_benefit_difference(np.zeros(50), models, 0.5)
    assert same.low[0] < same.value[0] == 0 < same.high[0]


def test_repeating_a_row_within_its_group_keeps_the_interval(rng: np.random.Generator) -> None:
    y, p = rng.random(100), rng.random(100)
    twice = np.repeat(np.arange(100), 2)
    once = sc.net_benefit(y, p, THRESHOLDS)
    again = sc.net_benefit(y[twice], p[twice], THRESHOLDS, groups=twice)
    for name in ("value", "low", "high", "cost"):
        np.testing.assert_allclose(getattr(again, name), getattr(once, name), atol=1e-12)


def test_cost_is_zero_for_calibrated_and_positive_for_miscalibrated_model(
    rng: np.random.Generator,
) -> None:
    p = rng.integers(0, 21, 400) / 20
    assert sc.net_benefit(p, p, THRESHOLDS).cost.max() < 1e-15
    worse = sc.net_benefit(p, p**3, THRESHOLDS)
    best = sc.net_benefit(p, p, THRESHOLDS)
    np.testing.assert_allclose(worse.cost, best.value - worse.value, atol=1e-14)


def test_net_benefit_difference_interval_is_paired(rng: np.random.Generator) -> None:
    y = rng.random(400)
    p, q = np.clip(y + rng.normal(0, 0.1, (2, 400)), 0, 1)
    found = sc.net_benefit_difference(y, {"a": p, "b": q}, THRESHOLDS)
    a, b = sc.net_benefit(y, p, THRESHOLDS), sc.net_benefit(y, q, THRESHOLDS)
    np.testing.assert_allclose(found.value, a.value - b.value, atol=1e-14)
    assert (found.high - found.low < a.high - a.low)[:14].all()
    same = sc.net_benefit_difference(y, {"a": p, "b": p}, 0.5, groups=np.arange(400) // 2)
    assert (same.value[0], same.low[0], same.high[0]) == (0, 0, 0)
    assert found.names == ("a", "b")
    assert repr(found) == "NetBenefitDifference(thresholds=19, level=0.95)"
    assert str(found).startswith("net benefit, a minus b, 95% intervals")


def test_intervals_cover_the_net_benefit_of_unlimited_rows() -> None:
    """Coverage within three standard errors of 95%, for shares of four votes."""
    rng = np.random.default_rng(0)
    rate = rng.beta(1, 3, 200_000)
    p = rate**0.8
    true = sc.net_benefit(rate, p, 0.2).value[0]
    hits = 0
    for _ in range(400):
        at = rng.integers(0, rate.size, 300)
        found = sc.net_benefit(rng.binomial(4, rate[at]) / 4, p[at], 0.2)
        hits += found.low[0] <= true <= found.high[0]
    assert 0.95 - 3 * 0.011 <= hits / 400 <= 0.95 + 3 * 0.011


def _all_limits(y: Any, p: Any, t: Any, **options: Any) -> Any:
    """Return the limits of net benefit, and of the difference to a model that ranks otherwise."""
    other = {"p": p, "q": np.where(np.arange(p.size) % 3, p, 1 - p)}
    found = sc.net_benefit(y, p, t, **options), sc.net_benefit_difference(y, other, t, **options)
    return np.array([end for each in found for end in (each.low, each.high)])


@pytest.mark.parametrize("labels", ["outcomes", "soft"])
def test_rows_of_tiny_weight_do_not_narrow_net_benefit(
    labels: str, rng: np.random.Generator
) -> None:
    p = rng.random(600)
    y = rng.random(600) if labels == "soft" else rng.binomial(1, p) * 1.0
    w = np.where(np.arange(600) < 60, 1.0, 1e-9)
    alone = _all_limits(y[:60], p[:60], THRESHOLDS)
    np.testing.assert_allclose(_all_limits(y, p, THRESHOLDS, sample_weight=w), alone, atol=1e-5)
    each = np.arange(600)
    grouped = _all_limits(y, p, THRESHOLDS, sample_weight=w, groups=each)
    np.testing.assert_allclose(grouped, alone, atol=1e-5)
    bins = np.unique([0, *THRESHOLDS, *p, 1])
    table = sc.net_benefit(sc.reliability(y, p, bins=bins, sample_weight=w), THRESHOLDS)
    np.testing.assert_allclose([table.low, table.high], alone[:2], atol=1e-5)


@pytest.mark.parametrize("labels", ["outcomes", "shares"])
def test_intervals_with_unequal_weights_cover_the_net_benefit(labels: str) -> None:
    """Log-normal weights, for which the number of rows gave a coverage of 0.78 to 0.9."""
    rng = np.random.default_rng(3)
    t, hits = np.array([0.1, 0.5]), []
    rate = rng.beta(1, 2, 400_000)
    q = np.clip(rate + rng.normal(0, 0.2, rate.size), 0, 1)
    true = np.stack([sc.net_benefit(rate, each, t).value for each in (rate, q)])
    for _ in range(300):
        at, m = rng.integers(0, rate.size, 100), 4 if labels == "shares" else 1
        y, w = rng.binomial(m, rate[at]) / m, rng.lognormal(0, 1.5, 100)
        found = sc.net_benefit(y, rate[at], t, sample_weight=w)
        both = {"p": rate[at], "q": q[at]}
        other = sc.net_benefit_difference(y, both, t, sample_weight=w)
        for each, aim in ((found, true[0]), (other, true[0] - true[1])):
            hits.append((each.low <= aim) & (aim <= each.high))
    assert np.mean(hits[::2], axis=0).min() >= 0.95 - 3 * 0.0126
    assert np.mean(hits[1::2], axis=0).min() >= 0.95 - 3 * 0.0126


@pytest.mark.parametrize("label", [0.0, 0.3, 1.0])
def test_net_benefit_limits_of_equal_labels_are_continuous(
    label: float, rng: np.random.Generator
) -> None:
    p = np.repeat([0.1, 0.9], [12, 18])
    for w in (None, np.ones(30), rng.lognormal(size=30)):
        exact = _all_limits(np.full(30, label), p, [0.05, 0.3, 0.5, 0.8], sample_weight=w)
        for off in (1e-15, 1e-9, 1e-6):
            noise = off * rng.random(30) * (-1 if label else 1)
            near = _all_limits(label + noise, p, [0.05, 0.3, 0.5, 0.8], sample_weight=w)
            np.testing.assert_allclose(near, exact, atol=3e3 * off + 1e-12)


def test_net_benefit_limits_do_not_depend_on_row_order(rng: np.random.Generator) -> None:
    """If one always acts on equal labels, all variances are 0 up to rounding."""
    p, w = 0.6 + rng.random(60) / 3, rng.random(60)
    for label in (1.0, 0.7, 0.1):
        once = sc.net_benefit(np.full(60, label), p, 0.5, sample_weight=w)
        for _ in range(20):
            k = rng.permutation(60)
            again = sc.net_benefit(np.full(60, label), p[k], 0.5, sample_weight=w[k])
            np.testing.assert_allclose(again.low, once.low, atol=1e-12)
            np.testing.assert_allclose(again.high, once.high, atol=1e-12)


def test_the_grid_of_a_set_has_every_percent(rng: np.random.Generator) -> None:
    y, p = rng.random(50), rng.random(50)
    tables = sc.scan(pd.DataFrame({"y": y, "p": p}), y_true="y", y_prob="p")
    fine = tables.coarsen(tables.grid)["p"]
    at = np.arange(100) / 100
    np.testing.assert_allclose(
        sc.net_benefit(fine, at).value, sc.net_benefit(y, p, at).value, atol=1e-13
    )


def test_net_benefit_of_one_row_has_infinite_interval() -> None:
    for found in (
        sc.net_benefit([0.5], [0.5], 0.1),
        sc.net_benefit([0.5, 0.5], [0.5, 0.5], 0.1, groups=["a", "a"]),
    ):
        assert (found.low[0], found.high[0]) == (-np.inf, np.inf)
    assert repr(found) == "NetBenefit(thresholds=1, level=0.95)"
    assert "treat none: 0" in str(sc.net_benefit([0.5, 1], [0.5, 1], np.arange(90) / 100))
    long = sc.net_benefit_difference([0, 1], {"a": [0, 1], "b": [1, 0]}, np.arange(90) / 100)
    assert "more" in str(long)


def test_rows_below_are_those_on_which_nobody_acts(rng: np.random.Generator) -> None:
    p, y, w = rng.integers(0, 21, 200) / 20, rng.random(200), rng.integers(0, 3, 200)
    table = sc.reliability(y, p, bins=20, sample_weight=w)
    at = THRESHOLDS[::-1]
    for found in (sc.net_benefit(y, p, at, sample_weight=w), sc.net_benefit(table, at)):
        for t, rows, prob, label in zip(
            at, found.rows_below, found.prob_below, found.label_below, strict=True
        ):
            below = p < t
            assert rows == (below & (w > 0)).sum()
            assert prob == pytest.approx(np.average(p[below], weights=w[below]), abs=1e-13)
            assert label == pytest.approx(np.average(y[below], weights=w[below]), abs=1e-13)


def test_sentences_describe_rows_below() -> None:
    found = sc.net_benefit([0, 0.001, 0.0004], [0.0003, 0.2, 0.3], [0, 0.1, 0.25, 0.5])
    assert found.sentences == [
        "At 0%: no row lies below.",
        "At 10%: 1 row lies below; the model predicts 0.03%, the labels average 0.0%.",
        "At 25%: 2 rows lie below; the model predicts 10.0%, the labels average 0.1%.",
        "At 50%: 3 rows lie below; the model predicts 16.7%, the labels average 0.05%.",
    ]


def _products_of_groups() -> sc.Reliability:
    """Return a table as softcal 0.2 saved it."""
    rel = sc.reliability([1, 0], [0.5, 0.5], groups=[1, 2])
    return replace(rel, groups=rel.clusters)


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        (([1, 0], [0.5, 0.5]), {}, "pass the thresholds"),
        (([1, 0], [0.5, 0.5], [0.5, 1.0]), {}, "1 of 2 are not, the first is 1.0"),
        (([1, 0], None, [0.5]), {}, r"net_benefit\(y_true, y_prob, thresholds\)"),
        (([1, 2], [0.5, 0.5], [0.5]), {}, r"y_true must be in \[0, 1\]"),
        (([1, 0], [0.5, 0.5], [0.5]), {"sample_weight": [0, 0]}, "sample_weight"),
        ((sc.reliability([1, 0], [0.5, 0.5]), [0.25]), {}, "between 0.2 and 0.3"),
        ((sc.reliability([1, 0], [0.5, 0.5]), [0.5], [0.5]), {}, "takes thresholds alone"),
        ((_products_of_groups(), [0.5]), {}, "did not store the sums of each group"),
    ],
)  # fmt: skip
def test_invalid_arguments_are_refused(arguments: Any, options: Any, said: str) -> None:
    with pytest.raises(sc.SoftcalError, match=said):
        sc.net_benefit(*arguments, **options)


def test_a_difference_needs_two_models() -> None:
    for wrong in ({"a": [0.5]}, [0.5]):
        with pytest.raises(sc.InputTypeError, match="two models"):
            sc.net_benefit_difference([1], wrong, 0.5)  # type: ignore[arg-type]


def test_decision_curve_draws_the_net_benefit_in_order_of_thresholds(
    rng: np.random.Generator,
) -> None:
    y, p = rng.random((2, 100))
    curve = sc.net_benefit(y, p, [0.3, 0.1, 0.2])
    above, below = draw_decision({"a": curve, "b": curve}, marked=[0.2]).axes
    order = [1, 2, 0]
    for line, values in ((above.lines[1], curve.value), (below.lines[1], curve.cost)):
        np.testing.assert_array_equal(line.get_xdata(), [0.1, 0.2, 0.3])
        np.testing.assert_array_equal(line.get_ydata(), values[order])
    np.testing.assert_array_equal(above.lines[2].get_ydata(), curve.treat_all[order])
    assert above.get_ylim()[1] > max(curve.value.max(), curve.treat_all.max())


def test_ragged_thresholds_are_refused() -> None:
    with pytest.raises(sc.SoftcalError, match="thresholds"):
        sc.net_benefit([0.0, 1.0], [0.2, 0.7], [[0.1], [0.2, 0.3]])


ALMOST = np.arange(0.05, 0.95, 0.05)  # 0.15000000000000002 is one of them


def test_a_threshold_next_to_an_edge_is_that_edge(rng: np.random.Generator) -> None:
    p = np.round(rng.random(500), 2)  # on edges, so that the last digit decides
    y = rng.random(500)
    tables = sc.scan(pd.DataFrame({"y": y, "p": p}), y_true="y", y_prob="p")
    fine = tables.coarsen(tables.grid)["p"]
    meant = np.round(ALMOST, 2)
    assert (meant != ALMOST).any()
    expected = sc.net_benefit(y, p, meant)
    for found in (
        sc.net_benefit(fine, ALMOST), sc.net_benefit(y, p, ALMOST),
        sc.net_benefit(sc.reliability(y, p, bins=20), ALMOST + 1e-10),
    ):  # fmt: skip
        np.testing.assert_array_equal(found.threshold, meant)
        np.testing.assert_allclose(found.value, expected.value, atol=1e-12, rtol=0)
    both = sc.net_benefit_difference(y, {"a": p, "b": p[::-1]}, ALMOST)
    same = sc.net_benefit_difference(y, {"a": p, "b": p[::-1]}, meant)
    np.testing.assert_array_equal(both.value, same.value)
    with pytest.raises(sc.BinMismatchError, match=r"the first is 0\.15000001"):
        sc.net_benefit(fine, [0.15000001])


def test_edges_next_to_those_of_a_table_are_meant(rng: np.random.Generator) -> None:
    p, y = np.round(rng.random((2, 300)), 2)
    edges = np.arange(0, 1.05, 0.1)
    edges[-1] = 1
    assert edges[3] != 0.3
    tables = sc.scan(pd.DataFrame({"y": y, "p": p}), y_true="y", y_prob="p", bins=60)
    for fine in (sc.reliability(y, p, bins=600), tables):
        assert fine.coarsen(edges).bins == sc.Bins.uniform(10)
        with pytest.raises(sc.BinMismatchError, match=r"the first is 0\.3001"):
            fine.coarsen([0, 0.3001, 1])
