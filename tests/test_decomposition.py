"""Compare the isotonic curve with scikit-learn, and check that decompositions add up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from sklearn.isotonic import IsotonicRegression
from strategies import rows, weighted_rows

import softcal as sc


def on_rows(curve: sc.metrics.CorpCurve, p: Any) -> Any:
    """Return the recalibrated value of each prediction: that of its step."""
    return curve.recalibrated[curve.prob_low.searchsorted(p, side="right") - 1]


def spread(values: Any, w: Any) -> float:
    return float(np.average((values - np.average(values, weights=w)) ** 2, weights=w))


@given(weighted_rows())
def test_corp_curve_equals_isotonic_regression_of_scikit_learn(
    data: list[tuple[float, float, float]],
) -> None:
    """scikit-learn treats predictions closer than its eps as equal, so keep them apart."""
    y, p, w = np.array([row for row in data if row[2] > 0]).T
    p = p.round(6)
    curve = sc.corp(y, p, sample_weight=w)
    fitted = IsotonicRegression().fit(p, y, sample_weight=w).predict(p)
    np.testing.assert_allclose(on_rows(curve, p), fitted, atol=1e-12)


@pytest.mark.parametrize("soft", [False, True])
def test_corp_of_many_rows_equals_scikit_learn(
    soft: bool,  # noqa: FBT001
    rng: np.random.Generator,
) -> None:
    p = rng.random(5000).round(3)
    y = p**1.3 if soft else (rng.random(5000) < p**1.3).astype(float)
    y = np.clip(y + soft * rng.normal(0, 0.1, 5000), 0, 1)
    fitted = IsotonicRegression().fit(p, y).predict(p)
    curve = sc.corp(y, p)
    np.testing.assert_allclose(on_rows(curve, p), fitted, atol=1e-12)
    parts = curve.brier
    assert parts.score == pytest.approx(((p - y) ** 2).mean(), abs=1e-14)
    assert parts.miscalibration == pytest.approx(
        ((p - y) ** 2).mean() - ((fitted - y) ** 2).mean(), abs=1e-14
    )
    assert parts.discrimination == pytest.approx(y.var() - ((fitted - y) ** 2).mean(), abs=1e-14)
    assert parts.uncertainty == pytest.approx(y.var(), abs=1e-14)


@given(weighted_rows())
def test_corp_parts_add_up_and_uncertainty_is_label_variance(
    data: list[tuple[float, float, float]],
) -> None:
    y, p, w = np.array(data).T
    curve = sc.corp(y, p, sample_weight=w)
    parts = curve.brier
    whole = parts.miscalibration - parts.discrimination + parts.uncertainty
    assert whole == pytest.approx(parts.score, abs=1e-13)
    assert parts.uncertainty == pytest.approx(spread(y, w), abs=1e-13)
    assert parts.miscalibration >= 0
    assert parts.discrimination >= 0
    assert curve.count.sum() == (w > 0).sum()
    assert curve.weight.sum() == pytest.approx(w.sum())
    assert (np.diff(curve.recalibrated) > 0).all()
    assert (curve.prob_low <= curve.prob_high).all()
    assert (curve.prob_high[:-1] < curve.prob_low[1:]).all()


@given(rows())
def test_weight_k_is_the_row_k_times(data: list[tuple[float, float]]) -> None:
    y, p = np.array(data).T
    k = 1 + np.arange(y.size) % 3
    weighted = sc.corp(y, p, sample_weight=k).brier
    repeated = sc.corp(np.repeat(y, k), np.repeat(p, k)).brier
    for part in ("score", "miscalibration", "discrimination", "uncertainty"):
        assert getattr(weighted, part) == pytest.approx(getattr(repeated, part), abs=1e-13)


def test_labels_equal_to_predictions_have_no_miscalibration(rng: np.random.Generator) -> None:
    p = rng.random(100)
    parts = sc.corp(p, p).brier
    assert (parts.score, parts.miscalibration) == (0.0, 0.0)
    assert parts.discrimination == pytest.approx(p.var(), abs=1e-15)


# Log loss


@given(weighted_rows())
def test_log_loss_parts_add_up(data: list[tuple[float, float, float]]) -> None:
    y, p, w = np.array(data).T
    p, y = np.clip(p, 0.001, 0.999), y.round(6)  # so that no mean of soft labels rounds to 1
    parts = sc.log_loss_decomposition(y, p, sample_weight=w)
    whole = parts.miscalibration - parts.discrimination + parts.uncertainty
    assert parts.score == pytest.approx(sc.log_loss(y, p, sample_weight=w), abs=1e-12)
    assert whole == pytest.approx(parts.score, abs=1e-12)
    recalibrated = on_rows(sc.corp(y, p, sample_weight=w), p)
    best = sc.log_loss(y, recalibrated, sample_weight=w)
    assert parts.score - parts.miscalibration == pytest.approx(best, abs=1e-12)


def test_prediction_of_0_for_a_possible_class_makes_miscalibration_infinite() -> None:
    parts = sc.log_loss_decomposition([0.5, 1.0], [0.0, 0.9])
    assert parts.score == parts.miscalibration == np.inf
    assert np.isfinite([parts.discrimination, parts.uncertainty]).all()


@pytest.mark.parametrize("soft", [False, True])
def test_log_loss_decomposition_agrees_with_model_diagnostics(
    soft: bool,  # noqa: FBT001
    rng: np.random.Generator,
) -> None:
    """Its log loss of soft labels is the divergence: its uncertainty excludes label entropy."""
    scoring = pytest.importorskip("model_diagnostics.scoring", reason="of the 'bench' extra")
    p, w = rng.uniform(0.02, 0.98, 1000), rng.random(1000)
    y = rng.random(1000) if soft else (rng.random(1000) < p).astype(float)
    entropy = sc.label_entropy(y, sample_weight=w)
    for ours, function, floor in (
        (sc.corp(y, p, sample_weight=w).brier, scoring.SquaredError(), 0.0),
        (sc.log_loss_decomposition(y, p, sample_weight=w), scoring.LogLoss(), entropy),
    ):
        theirs = scoring.decompose(y, p, w, scoring_function=function)
        assert ours.score == pytest.approx(theirs["score"][0] + floor, abs=1e-12)
        assert ours.miscalibration == pytest.approx(theirs["miscalibration"][0], abs=1e-12)
        assert ours.discrimination == pytest.approx(theirs["discrimination"][0], abs=1e-12)
        assert ours.uncertainty == pytest.approx(theirs["uncertainty"][0] + floor, abs=1e-12)


# From the table


@given(weighted_rows())
def test_corp_of_a_table_is_within_the_largest_bin_share(
    data: list[tuple[float, float, float]],
) -> None:
    y, p, w = np.array(data).T
    rel = sc.reliability(y, p, bins=10, sample_weight=w)
    exact = sc.corp(y, p, sample_weight=w).brier
    found = sc.corp(rel).brier
    share = (rel.sums.weight / rel.sums.weight.sum()).max()
    assert found.score == pytest.approx(exact.score, abs=1e-13)
    assert found.uncertainty == pytest.approx(exact.uncertainty, abs=1e-13)
    missed = exact.miscalibration - found.miscalibration
    assert -1e-13 <= missed <= share + 1e-13
    assert exact.discrimination - found.discrimination == pytest.approx(missed, abs=1e-12)


def test_corp_of_a_table_with_one_prediction_per_bin_is_exact(rng: np.random.Generator) -> None:
    p = rng.integers(0, 10, 300) / 10
    y = rng.random(300)
    exact, found = sc.corp(y, p), sc.corp(sc.reliability(y, p, bins=100))
    np.testing.assert_allclose(found.recalibrated, exact.recalibrated, atol=1e-13)
    np.testing.assert_array_equal(found.count, exact.count)
    np.testing.assert_array_equal(found.prob_low, exact.prob_low)
    assert found.brier.miscalibration == pytest.approx(exact.brier.miscalibration, abs=1e-13)


def test_corp_refuses_empty_tables_and_bad_data() -> None:
    with pytest.raises(sc.InputError, match="no rows"):
        sc.corp(sc.Reliability.empty())
    with pytest.raises(sc.InputError, match=r"y_true must be in \[0, 1\]"):
        sc.corp([2.0], [0.5])
