"""The calibration summary against R, statsmodels and exact arithmetic, and its intervals."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import expit, stdtrit
from strategies import UNIT

import softcal as sc
from softcal.datasets import lidc_malignancy

HERE = Path(__file__).parent / "reference"
DCURVES = json.loads((HERE / "dcurves.json").read_text())
FITTED = json.loads((HERE / "recalibration.json").read_text())
RMS = json.loads((HERE / "rms.json").read_text())

FROM_CURVE = (
    "ici", "e50", "e90", "emax", "brier", "miscalibration", "discrimination", "uncertainty",
)  # fmt: skip


def test_summary_of_outcomes_equals_rms_and_glm() -> None:
    """R's glm gives both intercepts and the slope, as in CalibrationCurves."""
    found = sc.calibration_summary(RMS["y_true"], RMS["y_prob"]).estimates
    of_r = RMS["simulated"]
    for name in ("auroc", "brier", "calibration_in_the_large"):
        assert found[name].value == pytest.approx(of_r[name], abs=1e-13)
    for name in ("intercept", "slope"):
        assert found[name].value == pytest.approx(of_r[f"glm_{name}"], abs=1e-13)
        assert found[name].value == pytest.approx(of_r[name], abs=1e-8)  # of rms, less exact
    for name in ("ici", "e50", "e90", "emax"):
        assert found[name].value == pytest.approx(of_r[f"direct_{name}"], abs=1e-12)
        # By default, R interpolates the curve between a few points.
        assert found[name].value == pytest.approx(of_r[f"interpolate_{name}"], abs=1e-3)


@pytest.mark.parametrize("of_r", RMS["sizes"], ids=lambda each: str(len(each["y_true"])))
def test_distances_equal_those_of_r_for_any_number_of_rows(of_r: Any) -> None:
    """R's window has floor(0.75 n) rows, and its quantiles are interpolated."""
    found = sc.calibration_summary(of_r["y_true"], of_r["y_prob"]).estimates
    for name in ("ici", "e50", "e90", "emax"):
        expected = of_r["simulated"][f"direct_{name}"]
        assert found[name].value == pytest.approx(expected, abs=1e-12)


def test_summary_of_pooled_predictions_is_close_to_r() -> None:
    """1,377 predictions are pooled for the curve, and R has 1,032 of them in a window."""
    nodules = lidc_malignancy()
    hard = (nodules["soft_malignant"] > 0.5).astype(float)
    found = sc.calibration_summary(hard, nodules["prob_lr_geometry"]).estimates
    of_r = RMS["nodules"]
    for name in ("auroc", "brier", "calibration_in_the_large", "intercept", "slope"):
        assert found[name].value == pytest.approx(of_r[name], abs=1e-12)
    for name in ("ici", "e50", "e90", "emax"):
        assert found[name].value == pytest.approx(of_r[f"direct_{name}"], abs=5e-4)
    # The errors of glm assume a logistic curve; ours do not.
    for name, error in (
        ("slope", "error_slope"),
        ("calibration_in_the_large", "error_in_the_large"),
    ):
        half = (found[name].high - found[name].low) / 2
        assert half == pytest.approx(1.96 * of_r[error], rel=0.06)


@pytest.mark.parametrize("kind", ["outcomes", "shares"])
def test_recalibration_equals_statsmodels(kind: str) -> None:
    """Without the leverage of rows, squares of the terms are the sandwich of statsmodels."""
    y, p = np.array(FITTED[kind]["y_true"]), np.array(FITTED["y_prob"])
    found = sc.calibration_summary(y, p)
    values = [found.calibration_in_the_large.value, found.intercept.value, found.slope.value]
    theta = np.array(FITTED[kind]["parameters"])
    np.testing.assert_allclose(values, [FITTED[kind]["in_the_large"][0], *theta], atol=1e-9)
    z = np.stack([np.ones(p.size), np.log(p / (1 - p))], axis=1)
    mean = expit(z @ theta)
    inverse = np.linalg.inv((z * (mean * (1 - mean))[:, None]).T @ z)
    terms = (y - mean)[:, None] * (z @ inverse)
    np.testing.assert_allclose(terms.T @ terms, FITTED[kind]["covariance"], rtol=1e-6)
    own = mean * (1 - mean) * ((z @ inverse) * z).sum(axis=1)
    _assert_limits(found, terms / (1 - own)[:, None])
    group = np.array(FITTED["group"])
    of_group = np.array([np.bincount(group, term) for term in terms.T])
    np.testing.assert_allclose(of_group @ of_group.T, FITTED[kind]["by_group"], rtol=1e-6)
    shared = np.minimum(np.bincount(group, own)[group], 0.5)
    rows = terms / (1 - shared)[:, None]
    left = np.array([np.bincount(group, term) for term in rows.T])
    effective = group.size**2 / (np.bincount(group) ** 2).sum()
    _assert_limits(sc.calibration_summary(y, p, groups=group), left.T, rows, effective)


def _assert_limits(
    found: sc.inference.CalibrationSummary, terms: Any, rows: Any = None, groups: float = np.inf
) -> None:
    """Assert Student's limits, with as many degrees of freedom as rows or groups, minus 1."""
    n = len(terms)
    for k, estimate in enumerate((found.intercept, found.slope)):
        square = (terms[:, k] ** 2).sum()
        many = square**2 / (terms[:, k] ** 4).sum()
        if rows is not None:
            alone = (rows[:, k] ** 2).sum()
            independent = alone**2 / (rows[:, k] ** 4).sum() / max(square / alone, 1)
            many = min(max(many, independent), groups)
        degrees = many - 1
        half = -stdtrit(degrees, 0.025) * np.sqrt(n / (n - 1) * square)
        limits = (estimate.value - half, estimate.value + half)
        np.testing.assert_allclose(estimate[1:], limits, atol=1e-7)


def test_a_fitted_logistic_model_has_slope_1_on_its_own_rows() -> None:
    found = sc.calibration_summary(DCURVES["y_true"], DCURVES["y_prob"])
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
    # Bins do not store the fourth moments of labels, which set the degrees of freedom.
    np.testing.assert_allclose(same.slope, sc.calibration_summary(y[:300], few).slope, atol=1e-3)


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
    with pytest.raises(sc.InputTypeError, match="does not take y_prob"):
        sc.calibration_summary(sc.reliability([1], [0.5]), [0.5])
    with pytest.raises(TypeError, match="takes labels and predictions"):
        sc.calibration_summary([0.5, 1.0])
    of_groups = sc.reliability([1, 0], [0.5, 0.4], groups=[1, 2])
    with pytest.raises(sc.InputError, match=r"softcal 0\.2, which saved the table, did not store"):
        sc.calibration_summary(replace(of_groups, groups=of_groups.clusters))


@pytest.mark.parametrize("kind", ["outcomes", "shares", "weights", "rare"])
def test_table_with_groups_has_the_summary_of_its_rows(kind: str, rng: np.random.Generator) -> None:
    """On bins of one prediction each, all but what depends on squares of labels within a group."""
    at, group = rng.beta(1, 1, 40).clip(0.01, 0.99), rng.integers(0, 60, 3000)
    x = np.log(at / (1 - at)) - 4 * (kind == "rare")
    x = x[rng.integers(0, 40, 3000)]
    p, chance = expit(x), expit(0.7 * x + rng.normal(0, 0.5, 60)[group])
    y = rng.beta(3 * chance, 3 * (1 - chance)) if kind == "shares" else rng.binomial(1, chance)
    w = rng.integers(1, 4, 60)[group] if kind == "weights" else None
    rel = sc.reliability(y, p, groups=group, sample_weight=w, bins=np.unique([0, *p, 1]))
    found = sc.calibration_summary(rel).estimates
    exact = sc.calibration_summary(y, p, groups=group, sample_weight=w).estimates
    assert "slope" in found
    for name, expected in exact.items():
        limits = name not in ("brier", "miscalibration", "discrimination", "uncertainty")
        size = 3 if limits or kind == "outcomes" else 1
        np.testing.assert_allclose(found[name][:size], expected[:size], rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize(
    ("y", "p", "said"),
    [
        ([0.5, 0.5], [0.0, 0.5], "1 of 2 are exactly 0 or 1"),
        ([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9], "no finite solution"),
        ([0.5, 0.25], [0.5, 0.5], "no finite solution"),
        # The slope that two labels next to 0 would give is beyond the precision of the fit.
        ([4e-18] * 2 + [1] * 9, [0.09, 0.11, *np.arange(2, 11) / 11], "no finite solution"),
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


@pytest.mark.parametrize("kind", ["rows", "weights", "groups", "table"])
@pytest.mark.parametrize("n", [4, 30, 400])
def test_separable_labels_never_have_a_slope(kind: str, n: int, rng: np.random.Generator) -> None:
    """Neither complete nor quasi-complete separation, in either direction, with soft labels too."""
    options: dict[str, Any] = {}
    for k, at_cut in enumerate([[], [0.0], [0.3, 0.6], [0.0, 0.5]] * 2):
        p = rng.beta(1, 1, n).clip(1e-6, 1 - 1e-6)
        cut = np.sort(p)[rng.integers(1, n)]
        y = np.append(p >= cut, at_cut)
        p = np.append(p, [cut] * len(at_cut))
        y = 1 - y if k < 4 else y
        if kind == "weights":
            options = {"sample_weight": rng.lognormal(size=p.size)}
        if kind == "groups":
            options = {"groups": rng.integers(0, 3 + n // 4, p.size)}
        found = sc.calibration_summary(
            *((sc.reliability(y, p, bins=np.unique([0, *p, 1])),) if kind == "table" else (y, p)),
            **options,
        )
        assert found.logistic is None
        assert "no finite solution: predictions separate the labels" in found.note
        assert "slope" not in found.estimates


@pytest.mark.parametrize("n", [4, 30, 400])
def test_labels_that_almost_separate_have_the_slope_of_their_maximum(
    n: int, rng: np.random.Generator
) -> None:
    for k in range(6):
        p = np.sort(rng.beta(1, 1, n).clip(1e-6, 1 - 1e-6))
        cut = int(rng.integers(2, n - 1)) if n > 4 else 2
        y = (np.arange(n) >= cut) * 1.0
        if k % 3 == 0:
            y[[cut - 1, cut]] = 1, 0
        else:
            y[[cut - 1, cut]] = (0.5, 0.5) if k % 3 == 1 else (1e-9, 1 - 1e-9)
        found = sc.calibration_summary(y, p)
        x = np.log(p / (1 - p))
        left = y - expit(found.intercept.value + found.slope.value * x)
        assert found.note == ""
        assert abs(left.sum()) < 1e-9 * n
        assert abs(left @ x) < 1e-9 * n


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
    """The variance has one more row of each kind, of unknown place."""
    p = rng.permutation(np.arange(1, 151)) / 160
    y = rng.binomial(1, p)
    found = sc.calibration_summary(y, p)
    case, other = p[y == 1][:, None], p[y == 0]
    wins = (case > other) + (case == other) / 2
    a = wins.mean()
    assert found.auroc.value == pytest.approx(a, abs=1e-14)
    terms = np.concatenate([
        (wins.mean(axis=1) - a) / case.size, (wins.mean(axis=0) - a) / other.size,
    ])  # fmt: skip
    degrees = (terms**2).sum() ** 2 / (terms**4).sum() - 1
    few = [150 / 149 / size for size in (case.size, other.size)]
    more = a * (1 - a) * sum(each**2 / (1 + each) for each in few)
    half = -stdtrit(degrees, 0.025) * np.sqrt(150 / 149 * (terms**2).sum() + more)
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


def _loess(x: Any, y: Any, weight: Any, at: float, share: float = 0.75) -> float:
    """Return the local quadratic regression at one point, by least squares."""
    distance = np.abs(x - at)
    order = distance.argsort()
    inside = weight[order].cumsum() >= share * weight.sum()
    reach = distance[order][inside.argmax()]
    kernel = weight * np.clip(1 - (distance / reach) ** 3, 0, None) ** 3
    return float(np.polyval(np.polyfit(x - at, y, 2, w=np.sqrt(kernel)), 0))


def test_distances_are_those_from_a_loess_curve(rng: np.random.Generator) -> None:
    y, p = rng.random(200), rng.integers(1, 20, 200) / 20
    w = rng.integers(1, 4, 200)
    found = sc.calibration_summary(y, p, sample_weight=w)
    at = np.unique(p)
    fitted = np.array([_loess(p, y, w, x) for x in at])[at.searchsorted(p)]
    each = np.sort(np.repeat(np.abs(p - fitted), w))
    n = each.size
    expected = (each.mean(), each[-(-n // 2) - 1], each[-(-9 * n // 10) - 1], each[-1])
    names = ("ici", "e50", "e90", "emax")
    assert [getattr(found, name).value for name in names] == pytest.approx(expected, abs=1e-10)
    parts = sc.corp(y, p, sample_weight=w).brier
    assert found.brier.value == parts.score
    for name in ("miscalibration", "discrimination", "uncertainty"):
        assert getattr(found, name).value == getattr(parts, name)
    perfect = sc.calibration_summary(np.sort(p), np.sort(p))
    assert perfect.emax.value < 1e-12


def test_distances_with_unequal_weights_are_in_order(rng: np.random.Generator) -> None:
    """Emax is the largest distance, however small its weight; E50 is near the weighted median."""
    y, p, w = rng.random(300), rng.random(300), rng.lognormal(0, 2, 300)
    found = sc.calibration_summary(y, p, sample_weight=w)
    n = w.sum() ** 2 / (w**2).sum()
    share = np.floor(0.75 * n) / n
    each = np.array([abs(_loess(p, y, w, x, share) - x) for x in p])
    order = each.argsort()
    rank = w[order].cumsum() / w.sum()
    assert found.emax.value == pytest.approx(each.max(), abs=1e-10)
    for value, at in ((found.e50.value, 0.5), (found.e90.value, 0.9)):
        near = np.abs(rank - at) <= 1 / n + w.max() / w.sum()
        assert each[order][near].min() <= value <= each[order][near].max()
    scaled = sc.calibration_summary(y, p, sample_weight=1e12 * w)
    assert scaled.e50.value == pytest.approx(found.e50.value, abs=1e-12)


def test_few_predictions_have_their_mean_labels_as_the_curve(rng: np.random.Generator) -> None:
    p = rng.choice([0.1, 0.9], 100, p=[0.8, 0.2])
    y = rng.binomial(1, 0.3, 100)
    found = sc.calibration_summary(y, p)
    gaps = [abs(x - y[p == x].mean()) for x in (0.1, 0.9)]
    assert found.emax.value == pytest.approx(max(gaps), abs=1e-12)
    assert found.e50.value == pytest.approx(gaps[0], abs=1e-12)


def test_many_predictions_are_pooled_without_much_change(rng: np.random.Generator) -> None:
    p = rng.beta(0.5, 4, 20_000)
    found = sc.calibration_summary(np.sqrt(p), p)  # labels without noise
    at = np.quantile(p, np.linspace(0.001, 0.999, 500))
    coarse = np.array([_loess(at, np.sqrt(at), np.ones(500), x) for x in at])
    assert found.ici.value == pytest.approx(np.abs(coarse - at).mean(), abs=1e-3)
    groups = np.arange(20_000) // 2
    grouped = sc.calibration_summary(np.sqrt(p), p, groups=groups)
    assert grouped.ici.value == pytest.approx(found.ici.value, abs=1e-5)


@pytest.mark.parametrize("steps", [1, 4])
def test_tables_of_equal_predictions_give_the_whole_summary(
    rng: np.random.Generator, steps: int
) -> None:
    y, p = rng.integers(0, steps + 1, 300) / steps, rng.integers(1, 20, 300) / 20
    rows = sc.calibration_summary(y, p)
    table = sc.calibration_summary(sc.reliability(y, p, bins=20))
    assert list(rows.estimates) == list(table.estimates)
    for name, estimate in rows.estimates.items():
        found = table.estimates[name]
        assert found.value == pytest.approx(estimate.value, abs=1e-9)
        # Bins do not store the fourth moments of labels between 0 and 1.
        np.testing.assert_allclose(found, estimate, atol=1e-9 if steps == 1 else 0.01)


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


def test_weights_of_almost_one_row_have_no_logistic_recalibration() -> None:
    """Else the step of Newton's method is infinite, and halving it never ends."""
    y, p = [0.56739932, 0.64447301, 0.3, 0.63410109, 0.88527609], [0.67, 0.38, 0.06, 5e-324, 0.001]
    found = sc.calibration_summary(y, p, sample_weight=[0.5, 1e-100, 2.0, 0.5, 1e20])
    assert "has no finite solution" in found.note


def test_one_group_has_a_summary_without_limits() -> None:
    found = sc.calibration_summary([0.4, 0.6], [0.3, 0.6], groups=["a", "a"])
    assert found.slope[1:] == found.intercept[1:] == (-np.inf, np.inf)
    assert found.observed_expected[1:] == (0, np.inf)


def test_extreme_labels_and_levels_give_finite_numbers() -> None:
    tiny = sc.calibration_summary([5e-324, 0.0], [0.2, 0.1])
    assert tiny.auroc.value == 0.75  # above the other row, and tied with itself
    narrow = sc.calibration_summary([0, 1, 1, 0], [0.2, 0.3, 0.6, 0.7], level=1e-300)
    assert narrow.ici.low <= narrow.ici.value <= narrow.ici.high


def students(loss: Any) -> tuple[float, float]:
    half = -float(stdtrit(loss.size - 1, 0.025)) * loss.std(ddof=1) / math.sqrt(loss.size)
    return float(loss.mean() - half), float(loss.mean() + half)


@pytest.mark.parametrize(("n", "wider"), [(100, 2.2), (400, 1.4), (2000, 1.1)])
def test_brier_interval_of_soft_labels_is_near_students(n: int, wider: float) -> None:
    rng = np.random.default_rng(n)
    p = rng.uniform(0.02, 0.98, n)
    y = np.clip(p + rng.normal(0, 0.07, n), 0, 1)
    found = sc.calibration_summary(y, p).brier
    low, high = students((y - p) ** 2)
    assert high - low < found.high - found.low < wider * (high - low)
    weighted = sc.calibration_summary(y, p, sample_weight=np.full(n, 3.0)).brier
    assert weighted == pytest.approx(found, rel=1e-12)


def test_brier_interval_does_not_jump_with_ties_or_certain_labels() -> None:
    rng = np.random.default_rng(1)
    p = np.full(100, 0.3)
    y = rng.beta(6, 14, 100)
    tied = sc.calibration_summary(y, p)
    untied = sc.calibration_summary(y, p + 1e-9 * np.arange(100))
    assert tied.brier == pytest.approx(untied.brier, abs=1e-6)
    assert tied.uncertainty == pytest.approx(untied.uncertainty, abs=1e-6)
    q = rng.uniform(0.01, 0.2, 100)
    hit = (rng.random(100) < q).astype(float)
    exact, almost = (sc.calibration_summary(np.abs(hit - off), q).brier for off in (0, 1e-7))
    assert exact == pytest.approx(almost, abs=1e-5)


def test_brier_interval_of_unseen_events_reaches_above_their_share() -> None:
    y = np.zeros(100)
    y[0] = 1e-9
    found = sc.calibration_summary(y, np.linspace(0.005, 0.015, 100)).brier
    assert 0.03 < found.high < 0.06  # 3 of 100 rows may be events


def test_brier_interval_uses_the_effective_number_of_rows() -> None:
    rng = np.random.default_rng(2)
    p = rng.uniform(0.05, 0.95, 60)
    y = rng.beta(4 * p, 4 * (1 - p))
    few = sc.calibration_summary(y, p).brier
    light = np.concatenate([np.ones(60), np.full(400, 1e-9)])
    many = sc.calibration_summary(
        np.tile(y, 8)[:460], np.tile(p, 8)[:460], sample_weight=light
    ).brier
    assert many == pytest.approx(few, rel=0.02)


def test_nine_equal_groups_have_intervals_like_those_of_their_rows() -> None:
    """Groups that do not differ show the spread of the rows, so intervals are not much wider."""
    rng = np.random.default_rng(32)
    z, group = rng.normal(size=4500), np.repeat(np.arange(9), 500)
    p, y = expit(z), (rng.random(4500) < expit(z)).astype(float)
    alone = sc.calibration_summary(y, p).estimates
    grouped = sc.calibration_summary(y, p, groups=group).estimates
    for name in ("auroc", "observed_expected", "intercept", "slope"):
        width = alone[name].high - alone[name].low
        assert grouped[name].high - grouped[name].low < 2.5 * width, name
