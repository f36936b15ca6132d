from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import xlogy
from sklearn import metrics as sklearn_metrics
from strategies import rows, weighted_rows

import softcal as sc

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray


@given(data=rows())
def test_smece_of_outcomes_equals_ece_exactly(data: list[tuple[float, float]]) -> None:
    """Proposition 1 of the paper."""
    y = [int(label > 0.5) for label, _ in data]
    p = [prob for _, prob in data]
    assert sc.smece(y, p) == sc.ece(y, p)


def test_metrics_equal_known_values(peers_data: tuple[FloatArray, FloatArray]) -> None:
    y, p = peers_data
    assert sc.smece(y, p) == pytest.approx(0.07708064654290009, abs=1e-14)
    assert sc.smece(y, p, bins=15) == pytest.approx(0.0770068287376326, abs=1e-14)
    assert sc.ece(y, p, threshold=0.5) == pytest.approx(0.036796, abs=1e-6)


def test_each_function_equals_the_property_of_the_table(rng: np.random.Generator) -> None:
    y, p, w = rng.random(99), rng.random(99), rng.random(99)
    rel = sc.reliability(y, p, bins=7, sample_weight=w)
    for name in ("smece", "max_gap", "rms_gap"):
        assert getattr(sc, name)(y, p, bins=7, sample_weight=w) == getattr(rel, name)
    for name in ("bias", "brier"):
        assert getattr(sc, name)(y, p, sample_weight=w) == pytest.approx(
            getattr(rel, name), rel=1e-13
        )


def test_ece_refuses_soft_labels_and_names_the_first() -> None:
    with pytest.raises(sc.InputError) as caught:
        sc.ece([0, 1, 0.7, 0.2], [0.1, 0.2, 0.3, 0.4])
    assert str(caught.value) == (
        "y_true must be 0 or 1 for ece: 2 of 4 values are not, the first is y_true[2] = 0.7. Use "
        "smece for labels that are probabilities, or ece(..., threshold=0.5) to harden them on "
        "purpose."
    )


@pytest.mark.parametrize("label", [5e-324, 1 - 2**-53, 0.5])
def test_ece_refuses_labels_next_to_0_and_1(label: float) -> None:
    with pytest.raises(sc.InputError, match="1 of 3 values is not"):
        sc.ece([0, 1, label], [0.1, 0.2, 0.3])


def test_ece_with_a_threshold_hardens_above_it() -> None:
    y, p = [0.2, 0.5, 0.9], [0.1, 0.4, 0.8]
    assert sc.ece(y, p, threshold=0.5) == sc.ece([0, 0, 1], p)
    assert sc.ece(y, p, threshold=0.2) == sc.ece([0, 1, 1], p)
    assert sc.ece(y, p, threshold=0) == sc.ece([1, 1, 1], p)
    with pytest.raises(sc.InputError, match="y_true must be in"):
        sc.ece([0.2, 1.5, 0.9], p, threshold=0.5)


def test_hardening_keeps_the_pandas_index_check() -> None:
    y, p = pd.Series([0.0, 1.0, 1.0], index=[2, 1, 0]), pd.Series([0.2, 0.4, 0.9])
    with pytest.raises(sc.InputError, match="same pandas index"):
        sc.ece(y, p, threshold=0.5)


@pytest.mark.parametrize("threshold", [0.1, np.float64(0.1), np.float32(0.1)])
def test_hardening_does_not_depend_on_the_dtype_of_the_labels(threshold: float) -> None:
    labels = [0.1, 0.100001, 0.2]
    for dtype in (np.float32, np.float64, np.longdouble):
        stored = np.array(labels, dtype=dtype)
        expected = stored.astype(np.float64) > float(threshold)
        np.testing.assert_array_equal(sc.harden(stored, threshold), expected)


@pytest.mark.parametrize("threshold", ["0.5", [0.5]])
def test_threshold_that_is_not_a_number_is_refused(threshold: Any) -> None:
    with pytest.raises(sc.InputTypeError, match="threshold must be a number"):
        sc.ece([0.5], [0.5], threshold=threshold)


def test_ece_error_does_not_count_rows_of_weight_zero() -> None:
    with pytest.raises(sc.InputError, match=r"1 of 3 values is not, the first is y_true\[1\]"):
        sc.ece([0.5, 0.7, 1], [0.1, 0.2, 0.3], sample_weight=[0, 1, 1])


@pytest.mark.parametrize("threshold", [-0.1, 1, 1.5, math.nan])
def test_a_threshold_that_hardens_nothing_is_refused(threshold: float) -> None:
    with pytest.raises(sc.InputError, match="at least 0 and below 1, because True means above it"):
        sc.ece([0.5], [0.5], threshold=threshold)


@given(data=rows(min_size=2))
def test_brier_equals_scikit_learns_on_outcomes(data: list[tuple[float, float]]) -> None:
    y = [0, 1, *(int(label > 0.5) for label, _ in data[2:])]
    p = [prob for _, prob in data]
    assert sc.brier(y, p) == pytest.approx(sklearn_metrics.brier_score_loss(y, p), abs=1e-14)


def test_log_loss_equals_scikit_learns_on_outcomes(rng: np.random.Generator) -> None:
    p = rng.uniform(0.01, 0.99, 500)
    y = (rng.random(500) < p).astype(int)
    w = rng.random(500)
    assert sc.log_loss(y, p) == pytest.approx(sklearn_metrics.log_loss(y, p), rel=1e-13)
    assert sc.log_loss(y, p, sample_weight=w) == pytest.approx(
        sklearn_metrics.log_loss(y, p, sample_weight=w), rel=1e-13
    )


@given(data=rows())
def test_log_loss_is_label_entropy_plus_kl_divergence(data: list[tuple[float, float]]) -> None:
    y, p = (np.array(column) for column in zip(*data, strict=True))
    loss, floor, kl = sc.log_loss(y, p), sc.label_entropy(y), sc.kl_divergence(y, p)
    assert floor >= 0
    assert kl >= 0
    if math.isinf(kl):
        assert math.isinf(loss)
    else:
        assert loss == pytest.approx(floor + kl, rel=1e-13, abs=1e-15)
        formula = -np.mean(xlogy(y, p) + xlogy(1 - y, 1 - p))
        assert loss == pytest.approx(formula, rel=1e-12, abs=1e-14)


@given(p=st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_divergence_of_equal_labels_is_exactly_zero(p: list[float]) -> None:
    assert sc.kl_divergence(p, p) == 0.0
    assert sc.log_loss(p, p) == sc.label_entropy(p)


def test_log_loss_is_infinite_where_the_model_predicts_0_for_a_possible_class() -> None:
    assert sc.log_loss([0.5, 0.1], [0.0, 0.1]) == math.inf
    assert sc.log_loss([0, 1], [0, 1]) == 0.0
    assert sc.log_loss([0.0], [1e-17]) == 1e-17
    assert sc.log_loss([0.5], [5e-324]) == pytest.approx(372.2, abs=0.1)
    assert sc.log_loss([1, 0.5], [0, 0.5], sample_weight=[0, 1]) == pytest.approx(math.log(2))


@given(data=weighted_rows())
def test_weighted_scores_equal_weighted_means(data: list[tuple[float, float, float]]) -> None:
    y, p, w = (np.array(column) for column in zip(*data, strict=True))
    assert sc.brier(y, p, sample_weight=w) == pytest.approx(np.average((p - y) ** 2, weights=w))
    assert sc.bias(y, p, sample_weight=w) == pytest.approx(
        np.average(p - y, weights=w), rel=1e-12, abs=1e-15
    )
    entropy = -xlogy(y, y) - xlogy(1 - y, 1 - y)
    assert sc.label_entropy(y, sample_weight=w) == pytest.approx(
        np.average(entropy, weights=w), rel=1e-12, abs=1e-15
    )


def test_log_loss_of_a_large_array_is_that_of_its_blocks(rng: np.random.Generator) -> None:
    y, p = rng.random(150_000).astype(np.float32), rng.uniform(0.1, 0.9, 150_000)
    expected = -np.mean(xlogy(y.astype(float), p) + xlogy(1 - y.astype(float), 1 - p))
    assert sc.log_loss(y, p) == pytest.approx(expected, rel=1e-13)


def test_brier_against_drawn_outcomes_is_ours_plus_the_labels_variance(
    rng: np.random.Generator,
) -> None:
    y, p = rng.random(400_000), rng.random(400_000)
    drawn = rng.random(400_000) < y
    expected = sc.brier(y, p) + float(np.mean(y * (1 - y)))
    spread = np.std((p - drawn) ** 2) / math.sqrt(400_000)
    assert abs(sc.brier(drawn, p) - expected) < 4 * spread


def test_no_metric_returns_a_numpy_scalar() -> None:
    y, p = [0.5, 1.0], [0.25, 0.75]
    for metric in (
        sc.smece, sc.max_gap, sc.rms_gap, sc.bias, sc.brier, sc.log_loss, sc.kl_divergence,
    ):  # fmt: skip
        call: Any = metric
        assert type(call(y, p)) is float
    assert type(sc.label_entropy(y)) is float
