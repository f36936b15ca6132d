"""Calibration maps of soft labels: known parameters, invariants, and refused input."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from strategies import UNIT, weighted_rows

import softcal as sc
from softcal._fitting import Local, minimum
from softcal.calibrators.base import fitting_data
from softcal.calibrators.maps import MAPS
from softcal.calibrators.preview import BINARY_METHODS, fit_map

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray

CLASS_METHODS = ("temperature", "vector", "dirichlet")
GRID = np.unique(np.concatenate([np.linspace(0, 1, 201), [5e-324, 1e-9, 1e-3, 1 - 1e-9]]))


def shares(rng: np.random.Generator, n: int, n_classes: int) -> FloatArray:
    return rng.dirichlet(np.ones(n_classes), n)


def normal(q: FloatArray) -> FloatArray:
    rows: FloatArray = q / q.sum(axis=1, keepdims=True)
    return rows


# Known parameters are recovered


@pytest.mark.parametrize("temperature", [0.2, 1.0, 3.0, 50.0])
def test_known_temperature_is_recovered(rng: np.random.Generator, temperature: float) -> None:
    p = rng.random(500)
    found = sc.calibrators.TemperatureCalibrator().fit(p, expit(logit(p) / temperature))
    assert found.temperature_ == pytest.approx(temperature, rel=1e-5)
    classes = shares(rng, 500, 4)
    labels = normal(classes ** (1 / temperature))
    assert sc.calibrators.TemperatureCalibrator().fit(
        classes, labels
    ).temperature_ == pytest.approx(temperature, rel=1e-5)


def test_known_slope_and_intercept_are_recovered(rng: np.random.Generator) -> None:
    p = rng.random(500)
    found = sc.calibrators.PlattCalibrator().fit(p, expit(0.5 * logit(p) - 1.5))
    assert (found.slope_, found.intercept_) == pytest.approx((0.5, -1.5), abs=1e-6)


def test_known_beta_parameters_are_recovered(rng: np.random.Generator) -> None:
    p = rng.random(500)
    found = sc.calibrators.BetaCalibrator().fit(
        p, expit(0.4 * np.log(p) - 1.7 * np.log1p(-p) + 0.3)
    )
    assert (found.a_, found.b_, found.c_) == pytest.approx((0.4, 1.7, 0.3), abs=1e-6)


def test_isotonic_returns_increasing_labels_unchanged(rng: np.random.Generator) -> None:
    p = rng.random(300)
    y = p**3
    np.testing.assert_allclose(
        sc.calibrators.IsotonicCalibrator().fit(p, y).predict(p), y, atol=1e-15
    )


def test_known_vectors_and_matrices_are_recovered(rng: np.random.Generator) -> None:
    p = shares(rng, 2000, 3)
    slopes, intercepts = np.array([0.5, 1.0, 1.5]), np.array([0.3, 0.0, -0.3])
    labels = normal(np.exp(slopes * np.log(p) + intercepts))
    vector = sc.calibrators.VectorScalingCalibrator().fit(p, labels)
    np.testing.assert_allclose(vector.slopes_, slopes, atol=1e-5)
    np.testing.assert_allclose(
        vector.intercepts_ - vector.intercepts_.mean(), intercepts, atol=1e-5
    )
    matrix = np.array([[0.5, 0.2, 0.0], [0.1, 1.0, 0.1], [0.0, -0.3, 1.5]])
    labels = normal(np.exp(np.log(p) @ matrix.T + intercepts))
    dirichlet = sc.calibrators.DirichletCalibrator().fit(p, labels)
    np.testing.assert_allclose(dirichlet.predict(p), labels, atol=1e-5)
    assert dirichlet.intercepts_.shape == (3,)
    # A constant added to all classes does not change the softmax.
    centered = dirichlet.matrix_ - dirichlet.matrix_.mean(axis=0)
    np.testing.assert_allclose(centered, matrix - matrix.mean(axis=0), atol=1e-4)


def test_temperature_of_two_classes_equals_the_binary_one(rng: np.random.Generator) -> None:
    p, y = rng.random(400), rng.random(400)
    one = sc.calibrators.TemperatureCalibrator().fit(p, y).temperature_
    both = sc.calibrators.TemperatureCalibrator().fit(
        np.column_stack([1 - p, p]), np.column_stack([1 - y, y])
    )
    assert both.temperature_ == pytest.approx(one, rel=1e-9)


# Soft labels


@pytest.mark.parametrize("method", BINARY_METHODS)
def test_soft_label_equals_two_weighted_hard_rows(method: str, rng: np.random.Generator) -> None:
    p, y, w = rng.random(200), rng.random(200), rng.random(200)
    soft = fit_map(method, y, p, sample_weight=w)
    twice = fit_map(
        method,
        np.repeat([1.0, 0.0], 200),
        np.concatenate([p, p]),
        sample_weight=np.concatenate([w * y, w * (1 - y)]),
    )
    np.testing.assert_allclose(twice.apply(GRID), soft.apply(GRID), atol=1e-9)


def test_platt_of_two_soft_rows_by_hand() -> None:
    """With two predictions and two parameters, the curve passes through both labels."""
    found = sc.calibrators.PlattCalibrator().fit([0.5, 0.8], [0.25, 0.5])
    assert found.predict([0.5, 0.8]) == pytest.approx([0.25, 0.5], abs=1e-7)
    assert found.intercept_ == pytest.approx(-np.log(3), abs=1e-6)
    assert found.slope_ == pytest.approx(np.log(3) / np.log(4), abs=1e-6)


def test_isotonic_by_hand() -> None:
    """The labels .5 (weight 2) and .2 decrease, so they are pooled: (2 * .5 + .2) / 3 = .4."""
    found = sc.calibrators.IsotonicCalibrator().fit(
        [0.1, 0.2, 0.3, 0.9], [0.1, 0.5, 0.2, 0.8], [1, 2, 1, 1]
    )
    assert found.x_.tolist() == [0.1, 0.2, 0.3, 0.9]
    assert found.y_ == pytest.approx([0.1, 0.4, 0.4, 0.8])
    assert found.predict([0.0, 0.15, 0.6, 1.0]) == pytest.approx([0.1, 0.25, 0.6, 0.8])


def test_histogram_by_hand() -> None:
    found = sc.calibrators.HistogramCalibrator(4, strategy="uniform").fit(
        [0.1, 0.2, 0.6], [0.0, 0.5, 0.9], [1, 3, 1]
    )
    assert found.values_ == pytest.approx([0.375, 0.375, 0.9, 0.875])  # empty bins: midpoints
    assert found.edges_.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize("method", BINARY_METHODS)
@given(weighted_rows())
def test_weight_k_is_the_row_k_times(method: str, rows: list[tuple[float, float, float]]) -> None:
    y, p, _ = (np.array(column) for column in zip(*rows, strict=True))
    times = np.arange(y.size) % 3
    times[0] = 2
    weighted = fit_map(method, y, p, sample_weight=times)
    repeated = fit_map(method, np.repeat(y, times), np.repeat(p, times))
    if method in ("histogram", "isotonic"):
        assert weighted.to_dict() == repeated.to_dict()
    np.testing.assert_allclose(weighted.apply(GRID), repeated.apply(GRID), atol=2e-6)


@pytest.mark.parametrize("method", [*BINARY_METHODS, *CLASS_METHODS])
@given(seed=st.integers(0, 2**32), most=st.integers(1, 9))
@settings(max_examples=20)
def test_weight_k_equals_k_copies_to_nine_digits(method: str, seed: int, most: int) -> None:
    """For data on which the ridge has no effect."""
    rng = np.random.default_rng(seed)
    times = rng.integers(0, most + 1, 100)
    times[0] = 1
    if method in BINARY_METHODS:
        p, y = rng.random(100), rng.random(100)
    else:
        p, y = shares(rng, 100, 3), shares(rng, 100, 3)
    weighted = fit_map(method, y, p, sample_weight=times)
    repeated = fit_map(method, np.repeat(y, times, axis=0), np.repeat(p, times, axis=0))
    np.testing.assert_allclose(weighted.apply(p), repeated.apply(p), rtol=0, atol=1e-9)


def exact_mean(y: Any, w: Any) -> float:
    total = sum(map(Fraction, w))
    return float(sum(Fraction(a) * Fraction(b) for a, b in zip(y, w, strict=True)) / total)


@given(weighted_rows())
def test_mean_of_a_bin_is_exactly_rounded(rows: list[tuple[float, float, float]]) -> None:
    y, p, w = (np.array(column) for column in zip(*rows, strict=True))
    found = sc.calibrators.HistogramCalibrator(3, strategy="uniform").fit(p, y, w)
    bin_ = sc.Bins.uniform(3).locate(p)
    for k in range(3):
        here = (bin_ == k) & (w > 0)
        expected = exact_mean(y[here], w[here]) if here.any() else (2 * k + 1) / 6
        assert found.values_[k] == pytest.approx(expected, rel=0 if here.any() else 1e-15)


@given(weighted_rows())
def test_isotonic_regression_is_exactly_rounded(rows: list[tuple[float, float, float]]) -> None:
    """The value at x is the maximum over a <= x of the minimum over b >= x of the mean of [a, b]."""
    y, p, w = (np.array(column) for column in zip(*rows, strict=True))
    y, p, w = y[w > 0][:12], p[w > 0][:12], w[w > 0][:12]
    at = np.unique(p)

    def mean(low: float, high: float) -> float:
        here = (p >= low) & (p <= high)
        return exact_mean(y[here], w[here])

    expected = [max(min(mean(a, b) for b in at if b >= x) for a in at if a <= x) for x in at]
    assert sc.calibrators.IsotonicCalibrator().fit(p, y, w).predict(at).tolist() == expected


def test_ten_ones_and_ten_zeros_have_the_mean_one_half() -> None:
    for n in (10, 23, 100):
        p, y = np.full(2 * n, 0.3), np.repeat([1.0, 0.0], n)
        for found in (sc.calibrators.IsotonicCalibrator(), sc.calibrators.HistogramCalibrator()):
            assert found.fit(p, y).predict([0.3]) == 0.5
            for label in (0.1, 1 / 3, 1 - 2.0**-53):
                assert found.fit(p, np.full(2 * n, label), 1 / (1 + y)).predict([0.3]) == label


def test_isotonic_pools_decreases_below_rounding_error() -> None:
    """The labels at 0.2 differ from the one at 0.4 by less than the tilt of the labels."""
    found = sc.calibrators.IsotonicCalibrator().fit(
        [0.2, 0.4, 0.6], [0.5 + 2.0**-53, 0.5, 0.9], [1, 3, 1]
    )
    assert found.y_.tolist() == [0.5, 0.5, 0.9]


@pytest.mark.parametrize(
    "kind", [sc.calibrators.IsotonicCalibrator, sc.calibrators.HistogramCalibrator]
)
def test_smece_after_repair_does_not_depend_on_order_or_copies(
    kind: Any, rng: np.random.Generator
) -> None:
    for _ in range(30):
        p, y = rng.integers(0, 11, 60) / 10, rng.integers(0, 4, 60) / 3
        w = rng.integers(1, 4, 60) / 10
        order, copies = rng.permutation(60), int(rng.integers(2, 8))
        once = kind().fit(p, y, w)
        other = kind().fit(p[order], y[order], w[order])
        more = kind().fit(np.repeat(p, copies), np.repeat(y, copies), np.repeat(w, copies))
        assert once.to_dict() == other.to_dict() == more.to_dict()
        smece = sc.smece(y, once.predict(p), sample_weight=w)
        assert sc.smece(y[order], other.predict(p[order]), sample_weight=w[order]) == pytest.approx(
            smece, abs=1e-15
        )


@pytest.mark.parametrize("method", [*BINARY_METHODS])
def test_only_the_ratio_of_weights_matters(method: str, rng: np.random.Generator) -> None:
    p, y, w = rng.random(100), rng.random(100), rng.random(100)
    found = fit_map(method, y, p, sample_weight=w).apply(GRID)
    for factor in (1e-90, 1e90):
        scaled = fit_map(method, y, p, sample_weight=w * factor).apply(GRID)
        np.testing.assert_allclose(scaled, found, atol=1e-12)


def test_class_calibrators_accept_weights(rng: np.random.Generator) -> None:
    p, y, times = shares(rng, 60, 3), shares(rng, 60, 3), rng.integers(0, 3, 60)
    for method in CLASS_METHODS:
        weighted = fit_map(method, y, p, sample_weight=times)
        repeated = fit_map(method, np.repeat(y, times, axis=0), np.repeat(p, times, axis=0))
        np.testing.assert_allclose(weighted.apply(p), repeated.apply(p), atol=1e-9)


def test_fit_does_not_depend_on_blocks(rng: np.random.Generator) -> None:
    """Rows are processed in blocks of 65,536 numbers, which must not change the fit."""
    p, y = rng.random(1000), rng.random(1000)
    classes, labels = shares(rng, 1000, 3), shares(rng, 1000, 3)
    for method in ("temperature", "platt", "beta"):
        once, often = fit_map(method, y, p), fit_map(method, np.tile(y, 70), np.tile(p, 70))
        np.testing.assert_allclose(often.apply(p), once.apply(p), atol=1e-9)
    for method in CLASS_METHODS:
        once = fit_map(method, labels, classes)
        often = fit_map(method, np.tile(labels, (25, 1)), np.tile(classes, (25, 1)))
        np.testing.assert_allclose(often.apply(classes), once.apply(classes), atol=1e-5)


# Finite for any data, and non-decreasing where documented


@pytest.mark.parametrize("method", BINARY_METHODS)
@given(weighted_rows())
def test_maps_are_finite_and_non_decreasing_on_any_rows(
    method: str, rows: list[tuple[float, float, float]]
) -> None:
    y, p, w = (np.array(column) for column in zip(*rows, strict=True))
    q = fit_map(method, y, p, sample_weight=w).predict(GRID)
    assert q.shape == GRID.shape
    assert ((q >= 0) & (q <= 1)).all()  # false for NaN
    if method != "histogram":
        assert (np.diff(q) >= -1e-15).all()


@pytest.mark.parametrize("method", CLASS_METHODS)
@settings(max_examples=15)  # fits with many parameters are slow
@given(st.lists(st.tuples(UNIT, UNIT, st.integers(0, 2)), min_size=1, max_size=12))
def test_class_maps_are_finite_on_any_rows(
    method: str, rows: list[tuple[float, float, int]]
) -> None:
    low, high, label = (np.array(column) for column in zip(*rows, strict=True))
    first, second = np.minimum(low, high), np.abs(high - low)
    p = np.column_stack([first, second, 1 - first - second]).clip(0)
    q = fit_map(method, np.eye(3)[label], p).predict(p)
    assert ((q >= 0) & (q <= 1)).all()
    np.testing.assert_allclose(q.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("method", BINARY_METHODS)
@pytest.mark.parametrize("label", [0.0, 0.3, 1.0])
def test_equal_labels_become_the_prediction(method: str, label: float) -> None:
    p = np.array([0.2, 0.2, 0.2])
    assert fit_map(method, np.full(3, label), p).apply(p) == pytest.approx(label, abs=1e-6) or (
        method == "temperature"  # it cannot cross one half
    )
    assert fit_map(method, [label], [0.7]).apply(np.array([0.7])) == pytest.approx(
        label, abs=1e-6
    ) or (method == "temperature")


def test_separable_labels_give_finite_parameters(rng: np.random.Generator) -> None:
    p = rng.random(200)
    y = (p > 0.5).astype(float)
    assert 1e-4 < sc.calibrators.TemperatureCalibrator().fit(p, y).temperature_ < 1
    platt, beta = (
        sc.calibrators.PlattCalibrator().fit(p, y),
        sc.calibrators.BetaCalibrator().fit(p, y),
    )
    assert max(platt.slope_, abs(platt.intercept_), beta.a_, beta.b_, abs(beta.c_)) < 1e5
    np.testing.assert_allclose(platt.predict(p), y, atol=0.01)


def test_decreasing_labels_never_invert_the_order(rng: np.random.Generator) -> None:
    p = rng.random(300)
    y = 1 - p
    platt, beta = (
        sc.calibrators.PlattCalibrator().fit(p, y),
        sc.calibrators.BetaCalibrator().fit(p, y),
    )
    assert platt.slope_ == beta.a_ == beta.b_ == 0
    np.testing.assert_allclose(platt.predict(p), y.mean(), atol=1e-9)
    assert sc.calibrators.TemperatureCalibrator().fit(p, y).temperature_ == pytest.approx(
        np.exp(10)
    )


def test_predictions_of_a_half_leave_the_temperature_at_1() -> None:
    assert sc.calibrators.TemperatureCalibrator().fit([0.5, 0.5], [0.1, 0.3]).temperature_ == 1


# Predictions of 0 and 1, and logits


def test_zero_is_replaced_by_half_the_lowest_other_prediction() -> None:
    found = sc.calibrators.PlattCalibrator().fit([0.0, 0.01, 0.5, 0.9], [0.1, 0.1, 0.5, 0.9])
    assert found.map_.input.to_dict() == {
        "kind": "probabilities", "near_zero": 0.01, "near_one": 2.0**-53,
    }  # fmt: skip
    by_hand = expit(found.slope_ * logit(0.005) + found.intercept_)
    assert found.predict([0.0]) == pytest.approx(by_hand, rel=1e-14)
    found = sc.calibrators.PlattCalibrator().fit([0.5, 0.9, 1.0], [0.5, 0.9, 1.0])
    by_hand = expit(found.slope_ * logit(0.95) + found.intercept_)
    assert found.predict([1.0]) == pytest.approx(by_hand, rel=1e-14)


def test_zeros_absent_from_the_fit_map_below_every_positive_float() -> None:
    temperature = sc.calibrators.TemperatureCalibrator().fit([0.2, 0.6], [0.4, 0.55])
    t = temperature.temperature_
    assert t > 2
    ends = temperature.predict([0.0, 5e-324, 1 - 2.0**-53, 1.0])
    logits = np.array([-1075 * np.log(2), np.log(5e-324), 53 * np.log(2), 54 * np.log(2)])
    np.testing.assert_allclose(ends, expit(logits / t), rtol=1e-12)


def test_predictions_of_0_and_1_alone_are_replaced_by_one_and_three_quarters() -> None:
    found = sc.calibrators.TemperatureCalibrator().fit([0, 0, 1, 1], [0.1, 0.3, 0.7, 0.9])
    assert found.temperature_ == pytest.approx(logit(0.75) / logit(0.8))
    assert found.predict([0, 0.5, 1]) == pytest.approx([0.2, 0.5, 0.8])


ANY_SIZE = np.unique(np.concatenate([10.0 ** np.arange(-323, 0, 19), [5e-324, 0.3, 0.5, 0.7]]))


@pytest.mark.parametrize(
    "fitted_on", [[0.2, 0.4, 0.9], [0, 0.3, 0.9], [0, 0.3, 0.6, 1], [0, 5e-324, 0.9], [0, 1, 1]]
)
def test_temperature_map_is_strictly_increasing(fitted_on: list[float]) -> None:
    found = sc.calibrators.TemperatureCalibrator().fit(
        fitted_on, np.linspace(0.3, 0.8, len(fitted_on))
    )
    lower = found.predict(np.concatenate([[0.0], ANY_SIZE]))
    upper = found.predict(np.concatenate([1 - 2.0 ** -np.arange(2, 54), [1.0]]))
    assert (np.diff(lower) > 0).all()
    assert (np.diff(upper) > 0).all()


@pytest.mark.parametrize("method", CLASS_METHODS)
def test_logits_and_their_probabilities_give_the_same_map(
    method: str, rng: np.random.Generator
) -> None:
    p, labels = shares(rng, 200, 3), shares(rng, 200, 3)
    z = np.log(p) + rng.normal(size=(200, 1))  # logits are defined up to a constant per row
    kind = {
        "temperature": sc.calibrators.TemperatureCalibrator,
        "vector": sc.calibrators.VectorScalingCalibrator,
        "dirichlet": sc.calibrators.DirichletCalibrator,
    }
    of_logits = kind[method](logits=True).fit(z, labels)
    np.testing.assert_allclose(
        of_logits.predict(z), fit_map(method, labels, p).predict(p), atol=1e-12
    )
    assert of_logits.map_.takes_logits


@pytest.mark.parametrize(
    "kind",
    [
        sc.calibrators.TemperatureCalibrator,
        sc.calibrators.PlattCalibrator,
        sc.calibrators.BetaCalibrator,
    ],
)
def test_log_odds_and_their_probabilities_give_the_same_map(
    kind: Any, rng: np.random.Generator
) -> None:
    p, y, w = rng.random(200), rng.random(200), rng.random(200)
    of_logits = kind(logits=True).fit(logit(p), y, w)
    np.testing.assert_allclose(
        of_logits.predict(logit(p)), kind().fit(p, y, w).predict(p), atol=1e-12
    )
    saved_ = json.loads(json.dumps(of_logits.to_dict()))
    assert saved_["parameters"]["input"] == {"kind": "logits"}
    again = kind.from_dict(saved_)
    assert again.logits
    np.testing.assert_array_equal(again.predict([-900.0, 3.0]), of_logits.predict([-900.0, 3.0]))


def test_logits_must_be_finite() -> None:
    labels = [[0.5, 0.5], [0.4, 0.6]]
    for wrong in (-np.inf, 1e101):
        with pytest.raises(sc.InputError, match=r"y_prob must be finite logits, .*: 1 of 4 values"):
            sc.calibrators.TemperatureCalibrator(logits=True).fit(
                [[0.0, wrong], [1.0, 2.0]], labels
            )
    with pytest.raises(sc.InputError, match="finite logits"):
        sc.calibrators.PlattCalibrator(logits=True).fit([3.0, np.inf], [0.5, 0.6])
    with pytest.raises(sc.InputError, match="no missing values"):
        sc.calibrators.PlattCalibrator(logits=True).fit([3.0, np.nan], [0.5, 0.6])
    with pytest.raises(sc.InputError, match=r"y_true must be in \[0, 1\]"):
        sc.calibrators.PlattCalibrator(logits=True).fit([3.0, 4.0], [0.5, 1.6])
    with pytest.raises(sc.InputError, match="sample_weight must be 0 or more"):
        sc.calibrators.PlattCalibrator(logits=True).fit([3.0, 4.0], [0.5, 0.6], [1, -1])
    with pytest.raises(sc.InputError, match="y_prob must be finite logits"):
        sc.calibrators.PlattCalibrator(logits=True).fit([3.0, 4.0], [0.5, 0.6]).predict([-np.inf])


def test_predictions_of_0_and_1_map_to_the_mean_labels() -> None:
    p, y = np.array([0, 0, 1, 1]), np.array([0.1, 0.3, 0.6, 1.0])
    for found in (
        sc.calibrators.PlattCalibrator(),
        sc.calibrators.BetaCalibrator(),
        sc.calibrators.IsotonicCalibrator(),
        sc.calibrators.HistogramCalibrator(),
    ):
        assert found.fit(p, y).predict(p) == pytest.approx([0.2, 0.2, 0.8, 0.8], abs=1e-6)


# Refusals


@pytest.mark.parametrize(
    ("y_prob", "y_true", "message"),
    [
        ([0.5, 1.5], [0.5, 0.5], r"y_prob must be in \[0, 1\]: 1 of 2"),
        ([0.5, 0.5], [0.5, np.nan], "y_true must have no missing values"),
        ([0.5], [0.5, 0.5], "same length"),
        ([[], []], [0.5, 0.5], "one column, or one column per class: it has shape"),
        ([[0.5, 0.4]], [[0.5, 0.5]], "each row of y_prob must sum to 1: 1 of 1 do not, the first is "
         "row 0, which sums to 0.9"),
        ([[0.5, 0.5]], [[0.5, 0.4]], "each row of y_true must sum to 1"),
        ([[0.5, 0.5]], [1], r"numpy.eye\(2\)\[y_true\]"),
        ([[0.5, 0.5]], [[1, 0, 0]], r"it has shape \(1, 3\), not \(1, 2\)"),
        ([[0.5, 1.5]], [[0.5, 0.5]], r"y_prob must be in \[0, 1\]"),
        ([[0.5], [0.4, 0.2]], [0.5, 0.5], "must be a column of numbers"),
    ],
)  # fmt: skip
def test_bad_data_is_refused(y_prob: Any, y_true: Any, message: str) -> None:
    with pytest.raises(sc.SoftcalError, match=message):
        sc.calibrators.TemperatureCalibrator().fit(y_prob, y_true)


def test_bad_weights_are_refused() -> None:
    with pytest.raises(sc.InputError, match="positive value somewhere"):
        sc.calibrators.PlattCalibrator().fit([0.5, 0.6], [0.5, 0.6], [0, 0])
    with pytest.raises(sc.InputError, match="sample_weight must be 0 or more"):
        sc.calibrators.DirichletCalibrator().fit([[0.5, 0.5]], [[0.5, 0.5]], [-1])


def test_frames_with_different_indexes_are_refused() -> None:
    import pandas as pd

    p = pd.DataFrame({"a": [0.4, 0.5], "b": [0.6, 0.5]})
    assert sc.calibrators.VectorScalingCalibrator().fit(p, p).predict(p).shape == (2, 2)
    with pytest.raises(sc.InputError, match="same pandas index"):
        sc.calibrators.VectorScalingCalibrator().fit(p, p.set_index(pd.Index([1, 0])))


def test_tensors_and_masked_arrays_of_classes() -> None:
    import torch

    classes = np.array([[0.4, 0.6], [0.5, 0.5]])
    tensor = torch.tensor(classes, requires_grad=True)
    assert sc.calibrators.TemperatureCalibrator().fit(
        tensor, classes
    ).temperature_ == pytest.approx(1)
    masked = np.ma.masked_array(classes, mask=[[False, False], [False, True]])
    with pytest.raises(sc.InputError, match="y_prob must have no missing values: 1 of 4"):
        sc.calibrators.TemperatureCalibrator().fit(masked, classes)
    whole = np.ma.masked_array(classes[:, 1])
    assert sc.calibrators.TemperatureCalibrator().fit(
        whole, classes[:, 1]
    ).temperature_ == pytest.approx(1)


def test_wrong_number_of_dimensions_is_refused() -> None:
    classes = [[0.5, 0.5], [0.4, 0.6]]
    for one in (
        sc.calibrators.PlattCalibrator(),
        sc.calibrators.BetaCalibrator(),
        sc.calibrators.IsotonicCalibrator(),
        sc.calibrators.HistogramCalibrator(),
    ):
        with pytest.raises(sc.InputError, match="takes one column: y_prob has shape"):
            one.fit(classes, classes)
        with pytest.raises(sc.InputError, match="takes one column: y_prob has shape"):
            one.fit([0.5], [0.4]).predict(classes)
    for many in (sc.calibrators.VectorScalingCalibrator(), sc.calibrators.DirichletCalibrator()):
        with pytest.raises(sc.InputError, match="takes one column per class"):
            many.fit([0.5], [0.4])
        with pytest.raises(sc.InputError, match="fitted on 2 classes: y_prob has 3"):
            many.fit(classes, classes).predict([[0.2, 0.3, 0.5]])


# Saving and loading


def every_map(rng: np.random.Generator) -> list[tuple[Any, FloatArray]]:
    p, y = rng.random(80), rng.random(80)
    classes, labels = shares(rng, 80, 3), shares(rng, 80, 3)
    p[0], classes[0] = 0, (0, 0.5, 0.5)
    return [(fit_map(method, y, p), GRID) for method in BINARY_METHODS] + [
        (fit_map(method, labels, classes), classes) for method in CLASS_METHODS
    ]


def test_saved_and_loaded_maps_predict_the_same(rng: np.random.Generator) -> None:
    for fitted, p in every_map(rng):
        loaded = sc.calibrators.load_calibrator(
            json.loads(json.dumps(fitted.to_dict(), allow_nan=False))
        )
        assert type(loaded) is type(fitted)
        assert loaded.to_dict() == fitted.to_dict()
        np.testing.assert_array_equal(loaded.predict(p), fitted.predict(p))


def test_saved_estimators_load(rng: np.random.Generator) -> None:
    fitted = sc.calibrators.BetaCalibrator().fit(rng.random(50), rng.random(50))
    np.testing.assert_array_equal(
        sc.calibrators.BetaCalibrator.from_dict(fitted.to_dict()).predict(GRID),
        fitted.predict(GRID),
    )
    with pytest.raises(sc.InputError, match="a saved beta calibrator, not platt"):
        sc.calibrators.PlattCalibrator.from_dict(fitted.to_dict())


ENDS = {"low": 1e-7, "high": 0.9}
INPUT = {"input": {"kind": "probabilities", "near_zero": 1e-7, "near_one": 0.1}}
OLD: dict[str, dict[str, Any]] = {
    "temperature": {"temperature": 2.0, **ENDS},
    "platt": {"slope": 1.0, "intercept": 0, **ENDS},
    "beta": {"a": 1, "b": 1, "c": 0, **ENDS},
    "isotonic": {"x": [0.1, 0.5], "y": [0.2, 0.2]},
    "histogram": {"edges": [0, 0.5, 1], "values": [0.5, 0.2]},
    "vector": {"slopes": [1, 1], "intercepts": [0, 0], "low": 1e-7},
    "dirichlet": {"matrix": [[1, 0], [0, 1]], "intercepts": [0, 0], "low": 1e-7},
}
GOOD: dict[str, dict[str, Any]] = {
    method: {name: value for name, value in old.items() if name not in ENDS}
    | (INPUT if "low" in old else {})
    for method, old in OLD.items()
}


def saved(method: Any, parameters: Any, **other: Any) -> dict[str, Any]:
    head = {"format": "softcal.calibrator", "schema": 2, "method": method}
    return {**head, "parameters": parameters, **other}


def test_saved_format_of_calibrators_is_unchanged() -> None:
    assert set(GOOD) == set(MAPS)
    for method, parameters in GOOD.items():
        assert sc.calibrators.load_calibrator(saved(method, parameters)).method == method


@pytest.mark.parametrize("method", OLD)
def test_calibrators_saved_by_0_1_predict_the_same(method: str) -> None:
    old = sc.calibrators.load_calibrator(saved(method, OLD[method], schema=1))
    again = sc.calibrators.load_calibrator(json.loads(json.dumps(old.to_dict())))
    assert old.to_dict()["schema"] == 2
    if method in ("isotonic", "histogram"):
        assert old.to_dict() == sc.calibrators.load_calibrator(saved(method, OLD[method])).to_dict()
        return
    if old.n_classes is None:
        p = np.array([0.0, 1e-9, 0.3, 0.95, 1.0])
        slope = 0.5 if method == "temperature" else 1.0
        expected = expit(slope * logit(p.clip(1e-7, 0.9)))
    else:
        p = np.array([[0.0, 1.0], [0.3, 0.7]])
        expected = normal(np.maximum(p, 1e-7))
    for found in (old, again):
        np.testing.assert_allclose(found.predict(p), expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("method", "changes", "message"),
    [
        ("temperature", {"temperature": 0}, "temperature must be above 0"),
        ("temperature", {"temperature": float("nan")}, "'temperature' must be a finite number"),
        ("temperature", {"temperature": True}, "'temperature' must be a finite number"),
        ("temperature", {"temperature": "2"}, "'temperature' must be a finite number"),
        ("temperature", {"temperature": 10**400}, "'temperature' must be a finite number"),
        ("temperature", {"input": 1}, "'input' must be one of logits, probabilities, clipped"),
        ("temperature", {"input": {"kind": "odds"}}, "'input' must be one of"),
        ("temperature", {"input": {"kind": "logits", "low": 0.1}}, "with its numbers"),
        ("temperature", {"input": {"kind": "clipped", "low": 0, "high": 0.9}}, "low must be above"),
        ("temperature", {"input": {"kind": "clipped", "low": 0.1, "high": 1}}, "and below 1"),
        ("temperature", {"input": {**INPUT["input"], "near_one": 1}}, "sum to at most 1"),
        ("temperature", {"input": {**INPUT["input"], "near_zero": 0}}, "must be above 0"),
        ("temperature", {"more": 1}, "must be input, temperature"),
        ("platt", {"slope": -1}, "slope must be 0 or more"),
        ("platt", {"slope": [1]}, "'slope' must be a finite number"),
        ("beta", {"b": -1}, "a and b must be 0 or more"),
        ("isotonic", {"x": [0.5, 0.1]}, "x must increase"),
        ("isotonic", {"x": [0.5]}, "as long as y"),
        ("isotonic", {"x": []}, "'x' must be a list of finite numbers"),
        ("isotonic", {"y": [0.5, 0.1]}, "y must not decrease"),
        ("isotonic", {"y": [0.5, 1.1]}, "y must not decrease"),
        ("histogram", {"edges": [0, 0.5, 0.9]}, "edges must increase strictly from 0 to 1"),
        ("histogram", {"values": [0.5]}, "values must be one per bin"),
        ("histogram", {"values": [0.5, None]}, "'values' must be a list of finite numbers"),
        ("vector", {"slopes": [1, 1, 1]}, "slopes and intercepts must match"),
        ("dirichlet", {"matrix": [[1, 0]]}, "matrix must be square"),
        ("dirichlet", {"matrix": [[1, 0], [1]]}, "'matrix' must be rows of finite numbers"),
    ],
)  # fmt: skip
def test_impossible_parameters_are_refused(
    method: str, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(sc.InputError, match=message):
        sc.calibrators.load_calibrator(saved(method, {**GOOD[method], **changes}))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "not a saved calibrator"),
        (saved("platt", {}, format="softcal.reliability"), "not a saved calibrator"),
        (saved("platt", {}, schema=3), "3: this softcal reads schemas up to 2. Upgrade softcal"),
        (saved("platt", {}, schema=0), "schema 0"),
        (saved("platt", {}, schema=True), "schema True"),
        (saved("magic", {}), "'method' must be one of temperature, platt"),
        (saved(["platt"], {}), "'method' must be one of"),
        (saved("platt", []), "'parameters' of a saved platt must be input, intercept, slope"),
        (saved("platt", GOOD["platt"], schema=1), "must be high, intercept, low, slope"),
    ],
)
def test_other_objects_are_refused_as_calibrators(wrong: Any, message: str) -> None:
    with pytest.raises(sc.InputError, match=message):
        sc.calibrators.load_calibrator(wrong)


def test_data_without_weights_has_equal_weights() -> None:
    data = fitting_data([0.1, 0.2], [0.3, 0.4])
    assert data.w.tolist() == [1, 1]
    assert data.shares.tolist() == [0.5, 0.5]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(("method", "name"), [(m, name) for m in GOOD for name in GOOD[m]])
@settings(max_examples=30)
@given(value=JSON)
def test_hostile_parameters_are_read_or_refused(method: str, name: str, value: Any) -> None:
    try:
        found = sc.calibrators.load_calibrator(saved(method, {**GOOD[method], name: value}))
    except sc.InputError:
        return
    p = GRID if found.n_classes is None else np.full((1, found.n_classes), 1 / found.n_classes)
    q = found.predict(p)
    assert ((q >= 0) & (q <= 1)).all()


def test_minimization_ends_if_gradient_and_value_disagree() -> None:
    def lying(at: FloatArray) -> Local:
        return Local(float(at[0] ** 2), np.array([-1.0]), np.eye(1))

    assert minimum(lying, np.zeros(1), np.array([-np.inf])) == pytest.approx([0], abs=1e-6)
