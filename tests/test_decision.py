"""Net benefit against R's dcurves and exact arithmetic, and laws of decisions at a threshold."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import stdtrit
from sklearn.isotonic import IsotonicRegression
from strategies import UNIT

import softcal as sc
from softcal.plot import draw_decision

REFERENCE = json.loads((Path(__file__).parent / "reference" / "dcurves.json").read_text())
THRESHOLDS = np.arange(1, 20) / 20

FROM_CURVE = (
    "ici", "e50", "e90", "emax", "brier", "miscalibration", "discrimination", "uncertainty",
)  # fmt: skip


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


def test_net_benefit_limits_equal_limits_of_a_mean(rng: np.random.Generator) -> None:
    y, p, w = rng.random(300), rng.random(300), rng.random(300)
    t = 0.3
    term = np.where(p >= t, (y - t) / (1 - t), 0.0)
    found = sc.net_benefit(y, p, [0.7, t])
    half = 1.9679296690653202 * term.std(ddof=1) / np.sqrt(300)  # Student's t, 299 degrees
    assert found.value[1] == pytest.approx(term.mean(), abs=1e-14)
    assert found.high[1] - found.value[1] == pytest.approx(half, rel=1e-12)
    weighted = sc.net_benefit(y, p, t, sample_weight=w)
    mean = np.average(term, weights=w)
    error = np.sqrt(300 / 299 * (w**2 * (term - mean) ** 2).sum()) / w.sum()
    reach = (weighted.high - weighted.value)[0]
    assert weighted.value[0] == pytest.approx(mean, abs=1e-14)
    assert reach == pytest.approx(1.9679296690653202 * error, rel=1e-12)
    each = sc.net_benefit(y, p, t, sample_weight=w, groups=np.arange(300))
    assert each.high[0] == pytest.approx(weighted.high[0], rel=1e-12)


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


def test_one_group_has_a_summary_without_limits() -> None:
    found = sc.calibration_summary([0.4, 0.6], [0.3, 0.6], groups=["a", "a"])
    assert found.slope[1:] == found.intercept[1:] == (-np.inf, np.inf)
    assert found.observed_expected[1:] == (0, np.inf)


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


def test_sentences_say_what_lies_below() -> None:
    found = sc.net_benefit([0, 0.001, 0.0004], [0.0003, 0.2, 0.3], [0, 0.1, 0.25, 0.5])
    assert found.sentences == [
        "At 0%: no row lies below.",
        "At 10%: 1 row lies below; the model predicts 0.03%, the labels average 0.0%.",
        "At 25%: 2 rows lie below; the model predicts 10.0%, the labels average 0.1%.",
        "At 50%: 3 rows lie below; the model predicts 16.7%, the labels average 0.05%.",
    ]


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
        (
            (sc.reliability([1, 0], [0.5, 0.5], groups=[1, 2]), [0.5]), {},
            "with groups has no interval",
        ),
    ],
)  # fmt: skip
def test_refusals(arguments: Any, options: Any, said: str) -> None:
    with pytest.raises(sc.SoftcalError, match=said):
        sc.net_benefit(*arguments, **options)


def test_a_difference_needs_two_models() -> None:
    for wrong in ({"a": [0.5]}, [0.5]):
        with pytest.raises(sc.InputTypeError, match="two models"):
            sc.net_benefit_difference([1], wrong, 0.5)  # type: ignore[arg-type]


# Calibration summary

FITTED = json.loads((Path(__file__).parent / "reference" / "recalibration.json").read_text())


def _variances(found: sc.inference.CalibrationSummary, reach: float) -> list[float]:
    each = (found.calibration_in_the_large, found.intercept, found.slope)
    return [((one.high - one.value) / reach) ** 2 for one in each]


@pytest.mark.parametrize("kind", ["outcomes", "shares"])
def test_recalibration_equals_statsmodels(kind: str) -> None:
    y, p = FITTED[kind]["y_true"], FITTED["y_prob"]
    found = sc.calibration_summary(y, p)
    large, variance = FITTED[kind]["in_the_large"]
    values = [found.calibration_in_the_large.value, found.intercept.value, found.slope.value]
    np.testing.assert_allclose(values, [large, *FITTED[kind]["parameters"]], atol=1e-9)
    own = np.diag(FITTED[kind]["covariance"])
    expected = np.array([variance, *own]) * 200 / 199
    np.testing.assert_allclose(_variances(found, 1.971956544249395), expected, rtol=1e-7)
    by_group = sc.calibration_summary(y, p, groups=FITTED["group"])
    clustered = np.diag(FITTED[kind]["by_group"]) * 40 / 39
    np.testing.assert_allclose(_variances(by_group, 2.0226909200367595)[1:], clustered, rtol=1e-7)


def test_a_fitted_logistic_model_has_slope_1_on_its_own_rows() -> None:
    found = sc.calibration_summary(REFERENCE["y_true"], REFERENCE["y_prob"])
    assert found.slope.value == pytest.approx(1, abs=1e-4)
    assert found.intercept.value == pytest.approx(0, abs=1e-4)
    assert found.observed_expected.value == pytest.approx(1, abs=1e-5)
    assert found.observed_expected.low < 1 < found.observed_expected.high
    assert repr(found) == "CalibrationSummary(observed_expected=1, level=0.95)"
    assert "calibration in the large" in str(found)


def test_a_fine_table_gives_the_summary_of_the_rows(rng: np.random.Generator) -> None:
    p = rng.beta(0.5, 3, 3000)
    y = rng.binomial(3, p**0.8) / 3
    rows = sc.calibration_summary(y, p)
    table = sc.calibration_summary(sc.reliability(y, p, bins=sc.Bins.grid(10)))
    for name in ("observed_expected", "calibration_in_the_large", "intercept", "slope"):
        np.testing.assert_allclose(getattr(table, name), getattr(rows, name), atol=2e-3)
    few = rng.integers(1, 20, 300) / 20
    same = sc.calibration_summary(sc.reliability(y[:300], few, bins=20))
    np.testing.assert_allclose(same.slope, sc.calibration_summary(y[:300], few).slope, atol=1e-9)


def test_weight_of_0_equals_absent_row(rng: np.random.Generator) -> None:
    y, p = rng.random(80), rng.random(80)
    w = (np.arange(80) < 60).astype(float)
    group = np.arange(80) // 2
    for some, alone in (
        (sc.calibration_summary(y, p, sample_weight=w), sc.calibration_summary(y[:60], p[:60])),
        (
            sc.calibration_summary(y, p, sample_weight=w, groups=group),
            sc.calibration_summary(y[:60], p[:60], groups=group[:60]),
        ),
    ):
        assert some.slope == pytest.approx(alone.slope, abs=1e-12)
        assert some.observed_expected == pytest.approx(alone.observed_expected, abs=1e-12)


def test_calibration_summary_without_solution_is_refused() -> None:
    for y, p, said in (
        ([0, 0], [0.1, 0.2], "all labels are 0, or all are 1"),
        ([1, 1], [0.1, 0.2], "all labels are 0, or all are 1"),
        ([0, 1], [0, 0], "all predictions are 0"),
    ):
        with pytest.raises(sc.InputError, match=said):
            sc.calibration_summary(y, p)
    with pytest.raises(sc.InputError, match="takes no rows"):
        sc.calibration_summary(sc.reliability([1], [0.5]), [0.5])
    with pytest.raises(sc.InputError, match="calibration_summary of a table with groups"):
        sc.calibration_summary(sc.reliability([1, 0], [0.5, 0.4], groups=[1, 2]))


@pytest.mark.parametrize(
    ("y", "p", "said"),
    [
        ([0.5, 0.5], [0.0, 0.5], "1 of 2 are exactly 0 or 1"),
        ([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9], "no finite solution"),
        ([0.5, 0.25], [0.5, 0.5], "no finite solution"),
    ],
)
def test_a_summary_without_logistic_recalibration_says_why(y: Any, p: Any, said: str) -> None:
    found = sc.calibration_summary(y, p)
    assert said in found.note
    assert said in " ".join(str(found).split())
    for name in ("calibration_in_the_large", "intercept", "slope"):
        with pytest.raises(sc.InputError, match=said):
            getattr(found, name)
    assert found.observed_expected.value == pytest.approx(np.mean(y) / np.mean(p))


@given(st.lists(st.tuples(UNIT, UNIT, st.integers(1, 3)), min_size=2, max_size=12))
def test_auroc_equals_exact_arithmetic(data: list[tuple[float, float, int]]) -> None:
    y, p, w = map(np.array, zip(*data, strict=True))
    assume(0.01 < np.average(y, weights=w) < 0.99)
    assume(p.any())
    pairs = total = Fraction(0)
    for a, b, v in data:
        for c, d, u in data:
            pair = v * u * Fraction(a) * (1 - Fraction(c))
            pairs += pair
            total += pair * (Fraction(b > d) + Fraction(b == d) / 2)
    found = sc.calibration_summary(y, p, sample_weight=w).auroc
    assert found.value == pytest.approx(float(total / pairs), abs=1e-12)
    assert 0 <= found.low <= found.value + 1e-12
    assert found.value - 1e-12 <= found.high <= 1


def test_auroc_of_outcomes_is_that_of_delong(rng: np.random.Generator) -> None:
    p = rng.integers(1, 20, 150) / 20
    y = rng.binomial(1, p)
    found = sc.calibration_summary(y, p)
    case, other = p[y == 1][:, None], p[y == 0]
    wins = (case > other) + (case == other) / 2
    assert found.auroc.value == pytest.approx(wins.mean(), abs=1e-14)
    variance = wins.mean(axis=1).var() / case.size + wins.mean(axis=0).var() / other.size
    half = stdtrit(149, 0.975) * np.sqrt(150 / 149 * variance)
    a = wins.mean()
    low, high = (1 / (1 + np.exp(-np.log(a / (1 - a)) - k * half / a / (1 - a))) for k in (-1, 1))
    assert found.auroc[1:] == pytest.approx((low, high), abs=1e-12)


def test_auroc_has_the_whole_range_where_predictions_separate_labels() -> None:
    assert sc.calibration_summary([0, 0, 1], [0.1, 0.2, 0.3]).auroc == (1, 0, 1)
    assert sc.calibration_summary([0, 1], [0.3, 0.1]).auroc == (0, 0, 1)
    assert sc.calibration_summary([0.5], [0.3]).auroc == (0.5, 0, 1)


def test_auroc_intervals_cover_the_auroc_of_unlimited_rows() -> None:
    """Coverage within three standard errors of 95%, for shares of four votes."""
    rng = np.random.default_rng(0)
    rate = rng.beta(1, 3, 200_000)
    p = np.clip(rate + rng.normal(0, 0.1, rate.size), 0.01, 0.99)
    true = sc.calibration_summary(rate, p).auroc.value
    hits = 0
    for _ in range(400):
        at = rng.integers(0, rate.size, 300)
        found = sc.calibration_summary(rng.binomial(4, rate[at]) / 4, p[at]).auroc
        hits += found.low <= true <= found.high
    assert 0.95 - 3 * 0.011 <= hits / 400 <= 0.95 + 3 * 0.011


def test_distances_are_those_from_the_isotonic_curve(rng: np.random.Generator) -> None:
    y, p = rng.random(200), rng.integers(1, 20, 200) / 20
    w = rng.integers(1, 4, 200)
    found = sc.calibration_summary(y, p, sample_weight=w)
    fitted = IsotonicRegression().fit(p, y, sample_weight=w).predict(p)
    each = np.sort(np.repeat(np.abs(p - fitted), w))
    n = each.size
    expected = (each.mean(), each[-(-n // 2) - 1], each[-(-9 * n // 10) - 1], each[-1])
    names = ("ici", "e50", "e90", "emax")
    assert [getattr(found, name).value for name in names] == pytest.approx(expected, abs=1e-12)
    parts = sc.corp(y, p, sample_weight=w).brier
    assert found.brier.value == parts.score
    for name in ("miscalibration", "discrimination", "uncertainty"):
        assert getattr(found, name).value == getattr(parts, name)
    perfect = sc.calibration_summary(np.sort(p), np.sort(p))
    assert perfect.emax.value < 1e-12


def test_tables_of_equal_predictions_give_the_whole_summary(rng: np.random.Generator) -> None:
    y, p = rng.integers(0, 5, 300) / 4, rng.integers(1, 20, 300) / 20
    rows = sc.calibration_summary(y, p)
    table = sc.calibration_summary(sc.reliability(y, p, bins=20))
    assert list(rows.estimates) == list(table.estimates)
    for name, estimate in rows.estimates.items():
        np.testing.assert_allclose(table.estimates[name], estimate, atol=1e-9)


def test_a_row_repeated_in_its_group_leaves_the_summary(rng: np.random.Generator) -> None:
    y, p = rng.random(100), rng.random(100)
    twice = np.repeat(np.arange(100), 2)
    once = sc.calibration_summary(y, p)
    again = sc.calibration_summary(y[twice], p[twice], groups=twice)
    for name, estimate in once.estimates.items():
        assert again.estimates[name].value == pytest.approx(estimate.value, abs=1e-12)
        if name not in FROM_CURVE:  # those limits are drawn, here with other random numbers
            np.testing.assert_allclose(again.estimates[name], estimate, atol=1e-9)


def test_every_number_of_the_summary_has_an_interval_around_it(rng: np.random.Generator) -> None:
    for n in (2, 40, 5000):  # more than the bootstrap keeps apart
        p = rng.uniform(0.05, 0.95, n)
        y = np.append([0.0, 1.0], rng.binomial(3, p[2:]) / 3)
        for groups in (None, np.arange(n) // 2 if n > 2 else None):
            found = sc.calibration_summary(y, p, groups=groups, rng=1)
            for name in FROM_CURVE:
                value, low, high = getattr(found, name)
                assert 0 <= low <= value <= high <= 1
            assert sc.calibration_summary(y, p, groups=groups, rng=1).estimates == found.estimates


def test_limits_of_the_curve_cover_the_truth() -> None:
    """Of 20 data sets each, a 95% interval misses the truth more than 4 times in 0.3%."""
    wrong = dict.fromkeys(FROM_CURVE, 0)
    for seed in range(20):
        rng = np.random.default_rng([8, seed])
        p = rng.uniform(0.2, 0.8, 400)
        y = rng.binomial(1, p - 0.15)
        truth = {
            "ici": 0.15, "e50": 0.15, "e90": 0.15, "emax": 0.15, "miscalibration": 0.0225,
            "discrimination": 0.03,
        }  # fmt: skip
        m = np.linspace(0.05, 0.65, 100_001)
        truth["brier"] = 0.0225 + float((m * (1 - m)).mean())
        truth["uncertainty"] = 0.35 * 0.65
        found = sc.calibration_summary(y, p, rng=seed)
        for name in FROM_CURVE:
            value = getattr(found, name)
            wrong[name] += not value.low <= truth[name] <= value.high
    assert max(wrong.values()) <= 4, wrong


def test_calibrated_models_have_limits_of_0() -> None:
    from_0 = 0
    for seed in range(20):
        rng = np.random.default_rng([9, seed])
        p = rng.uniform(size=1000)
        found = sc.calibration_summary(rng.binomial(1, p), p, rng=seed)
        from_0 += found.ici.low == found.emax.low == found.miscalibration.low == 0
    assert from_0 >= 16


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


def test_labels_equal_to_predictions_have_slope_1_up_to_rounding() -> None:
    # Rounding kept the last steps from lowering the loss, and the summary said "no solution".
    # The logit of 1 - 1e-12 is known to 1e-4.
    for p, close in (([1 - 1e-12, 1 - 3e-12], 1e-4), ([0.4, 1 - 1e-12, 1e-9, 0.1, 0.999], 1e-9)):
        found = sc.calibration_summary(p, p)
        assert found.slope.value == pytest.approx(1, abs=close)
        assert found.calibration_in_the_large.value == pytest.approx(0, abs=close)


def test_predictions_near_0_have_a_summary() -> None:
    found = sc.calibration_summary([0, 1], [0.5, 5e-324])
    assert "no finite solution" in found.note
    assert found.observed_expected.value == 2
    tiny = sc.calibration_summary([0, 1], [5e-324, 5e-324])
    assert tiny.observed_expected.value == np.inf
    assert tiny.auroc.value == 0.5


def test_large_weights_do_not_overflow_the_summary() -> None:
    y, p = [0.0, 1.0, 0.5, 0.25], [0.2, 0.7, 0.5, 0.1]
    plain = sc.calibration_summary(y, p)
    large = sc.calibration_summary(y, p, sample_weight=[1e100] * 4)
    table = sc.calibration_summary(sc.reliability(y, p, bins=10, sample_weight=[1e100] * 4))
    assert large.slope.low == pytest.approx(plain.slope.low)
    assert large.auroc == pytest.approx(plain.auroc)
    assert table.auroc == pytest.approx(plain.auroc)


def test_tiny_weight_does_not_change_the_summary() -> None:
    y, p = [0.0, 1.0, 0.5, 0.25, 1.0], [0.2, 0.7, 0.5, 0.1, 0.3]
    found = sc.calibration_summary(y, p, sample_weight=[*[1e100] * 4, 1e-100])
    right = sc.calibration_summary(y[:4], p[:4])
    assert found.ici.value == pytest.approx(right.ici.value)
    assert np.isfinite([found.ici.low, found.brier.high]).all()


def test_summary_of_tiny_predictions_has_no_finite_ratio() -> None:
    found = sc.calibration_summary([0.0, 1.0, 1.0], [0.0, 5e-324, 5e-324])
    assert (found.observed_expected.low, found.observed_expected.high) == (0.0, np.inf)
    light = sc.calibration_summary([0.1, 0.7], [5e-324, 0.0], sample_weight=[1e-100, 1e100])
    assert light.observed_expected.value == np.inf


def test_ragged_thresholds_are_refused() -> None:
    with pytest.raises(sc.SoftcalError, match="thresholds"):
        sc.net_benefit([0.0, 1.0], [0.2, 0.7], [[0.1], [0.2, 0.3]])


def test_weights_of_almost_one_row_have_no_logistic_recalibration() -> None:
    """Else the step of Newton's method is infinite, and halving it never ends."""
    y, p = [0.56739932, 0.64447301, 0.3, 0.63410109, 0.88527609], [0.67, 0.38, 0.06, 5e-324, 0.001]
    found = sc.calibration_summary(y, p, sample_weight=[0.5, 1e-100, 2.0, 0.5, 1e20])
    assert "has no finite solution" in found.note
