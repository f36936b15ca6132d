"""Compare kde_ece with its definition: sums over all rows and their mirror images."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import UNIT, rows, weighted_rows

import softcal as sc
from softcal.datasets import lidc_malignancy
from softcal.metrics.smooth import CELLS

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray

BANDWIDTHS = st.one_of(st.floats(0.001, 0.4), st.sampled_from([0.001, 0.01, 0.1, 0.4]))
NODES = np.arange(CELLS + 1) / CELLS


def half_width(bandwidth: float) -> float:
    return round(math.sqrt(6) * bandwidth * CELLS) / CELLS


def images(p: FloatArray) -> FloatArray:
    return np.stack([p, -p, 2 - p])


def smoothed(
    t: FloatArray, data: tuple[FloatArray, FloatArray, FloatArray], width: float
) -> FloatArray:
    """Sum K(t, p) w (p - y) / sum w over all rows and images, one row at a time."""
    y, p, w = data
    total = np.zeros(t.size)
    for mass, centers in zip(w * (p - y) / w.sum(), images(p).T, strict=True):
        for center in centers:
            total += mass * np.maximum(1 - np.abs(t - center) / width, 0) / width
    return total


def area(t: FloatArray, value: FloatArray) -> float:
    """Integrate the absolute value of the polyline through (t, value)."""
    left, right, step = value[:-1], value[1:], np.diff(t)
    same = left * right >= 0
    size = np.abs(left) + np.abs(right)
    triangles = np.divide(left**2 + right**2, size, out=np.zeros(step.size), where=~same)
    return float((step * np.where(same, size, triangles)).sum() / 2)


@given(weighted_rows(), BANDWIDTHS)
def test_kde_ece_equals_brute_force(
    data: list[tuple[float, float, float]], bandwidth: float
) -> None:
    y, p, w = np.array(data).T
    expected = area(NODES, smoothed(NODES, (y, p, w), half_width(bandwidth)))
    found = sc.kde_ece(y, p, bandwidth=bandwidth, sample_weight=w)
    assert found == pytest.approx(expected, abs=1e-10)


@given(weighted_rows(), BANDWIDTHS)
def test_kde_ece_differs_from_the_exact_integral_by_at_most_the_stated_bound(
    data: list[tuple[float, float, float]], bandwidth: float
) -> None:
    """The smoothed residual is linear between images and the ends of their kernels."""
    y, p, w = np.array(data).T
    width = half_width(bandwidth)
    bends = images(p).ravel()
    t = np.unique(np.clip(np.concatenate([bends - width, bends, bends + width]), 0, 1))
    t = np.union1d(t, [0.0, 1.0])
    exact = area(t, smoothed(t, (y, p, w), width))
    mean_absolute = float((w * np.abs(p - y)).sum() / w.sum())
    bound = mean_absolute / (12 * (width / np.sqrt(6) * CELLS) ** 2)
    found = sc.kde_ece(y, p, bandwidth=bandwidth, sample_weight=w)
    # A kink between two floating-point numbers is rounded; hence 1e-9.
    assert found == pytest.approx(exact, abs=bound + 1e-9)


def test_kde_ece_of_many_rows_equals_brute_force(rng: np.random.Generator) -> None:
    """Two million rows at 50 predictions, which the oracle pools."""
    n = 2_000_000
    place = rng.integers(0, 50, n)
    p, y, w = rng.random(50), rng.random(n), rng.integers(0, 3, n)
    weight = np.bincount(place, w).astype(float)
    label = np.bincount(place, w * y) / weight
    expected = area(NODES, smoothed(NODES, (label, p, weight), half_width(0.05)))
    found = sc.kde_ece(y, p[place], bandwidth=0.05, sample_weight=w)
    assert found == pytest.approx(expected, abs=1e-10)


@given(rows(), BANDWIDTHS)
def test_kde_ece_lies_between_bias_and_mean_absolute_residual(
    data: list[tuple[float, float]], bandwidth: float
) -> None:
    y, p = np.array(data).T
    found = sc.kde_ece(y, p, bandwidth=bandwidth)
    assert abs((p - y).mean()) - 1e-12 <= found <= np.abs(p - y).mean() + 1e-12


@given(st.lists(UNIT, min_size=1), st.none() | BANDWIDTHS)
def test_kde_ece_of_labels_equal_to_predictions_is_0(
    p: list[float], bandwidth: float | None
) -> None:
    assert sc.kde_ece(p, p, bandwidth=bandwidth) == 0.0


def test_kde_ece_of_equal_predictions_is_the_absolute_bias(rng: np.random.Generator) -> None:
    y = rng.random(100)
    assert sc.kde_ece(y, np.full(100, 0.3)) == pytest.approx(abs(0.3 - y.mean()), abs=1e-12)


@given(rows(), BANDWIDTHS)
def test_kde_ece_of_mirrored_or_permuted_rows_is_the_same(
    data: list[tuple[float, float]], bandwidth: float
) -> None:
    y, p = np.array(data).T
    found = sc.kde_ece(y, p, bandwidth=bandwidth)
    assert sc.kde_ece(1 - y, 1 - p, bandwidth=bandwidth) == pytest.approx(found, abs=1e-10)
    assert sc.kde_ece(y[::-1], p[::-1], bandwidth=bandwidth) == pytest.approx(found, abs=1e-10)


@pytest.mark.parametrize("n", [300, 200_000])
def test_kde_ece_weight_k_equals_k_copies_and_weight_0_an_absent_row(
    n: int, rng: np.random.Generator
) -> None:
    p, y, k = rng.random(n), rng.random(n), rng.integers(0, 4, n)
    repeated = sc.kde_ece(np.repeat(y, k), np.repeat(p, k), bandwidth=0.03)
    found = sc.kde_ece(y, p, bandwidth=0.03, sample_weight=k)
    assert found == pytest.approx(repeated, abs=1e-12)
    here = k > 0
    found = sc.kde_ece(y, p, sample_weight=here)
    assert found == pytest.approx(sc.kde_ece(y[here], p[here]), abs=1e-12)
    assert sc.kde_ece(y, p, sample_weight=0.25 * here) == pytest.approx(found, abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_default_bandwidth_follows_the_stated_rule(
    weighted: bool,  # noqa: FBT001
    rng: np.random.Generator,
) -> None:
    n = 200_000
    p, y = rng.beta(2, 5, n), rng.random(n)
    w = rng.random(n) if weighted else np.ones(n)
    mean = np.average(p, weights=w)
    deviation = np.sqrt(np.average((p - mean) ** 2, weights=w))
    rule = float(deviation * (2 * w.sum() ** 2 / (w**2).sum()) ** -0.2)
    given: dict[str, Any] = {"sample_weight": w} if weighted else {}
    assert sc.kde_ece(y, p, **given) == sc.kde_ece(y, p, bandwidth=rule, **given)
    assert sc.kde_ece(y, p, **given) != sc.kde_ece(y, p, bandwidth=1.01 * rule, **given)


def test_default_bandwidth_is_at_most_four_tenths() -> None:
    y, p = [1.0, 0.5], [0.0, 1.0]
    assert sc.kde_ece(y, p) == sc.kde_ece(y, p, bandwidth=0.5 * 4**-0.2)
    assert sc.kde_ece(y[:1], p[:1]) == pytest.approx(1.0)


@pytest.mark.parametrize("bandwidth", [0, 0.0009, 0.41, -1, float("nan"), "wide", True, [0.1]])
def test_bandwidth_outside_its_range_is_refused(bandwidth: Any) -> None:
    with pytest.raises(sc.InputError, match=r"bandwidth must be a number from 0\.001 to 0\.4: got"):
        sc.kde_ece([0.5], [0.4], bandwidth=bandwidth)


@pytest.mark.parametrize(
    ("y", "p", "w", "rule"),
    [
        (1.5, 0.5, 1, r"y_true must be in \[0, 1\]: 1 of"),
        (0.5, np.nan, 1, "y_prob must have no missing values: 1 of"),
        (0.5, 0.5, -1, "sample_weight must be 0 or more: 1 of"),
        (0.5, 0.5, 0, "sample_weight must have a positive value"),
    ],
)
def test_bad_rows_are_refused(y: float, p: float, w: float, rule: str) -> None:
    with pytest.raises(sc.InputError, match=rule):
        sc.kde_ece([y], [p], sample_weight=[w])


# From the table


@given(weighted_rows(), BANDWIDTHS, st.sampled_from([100, 3600]))
def test_kde_ece_of_a_table_is_that_of_rows_at_the_mean_predictions(
    data: list[tuple[float, float, float]], bandwidth: float, bins: int
) -> None:
    y, p, w = np.array(data).T
    rel = sc.reliability(y, p, bins=bins, sample_weight=w)
    here = rel.count > 0
    mean, label = rel.mean_prob[here], rel.mean_label[here]
    expected = sc.kde_ece(label, mean, bandwidth=bandwidth, sample_weight=rel.sums.weight[here])
    assert sc.kde_ece(rel, bandwidth=bandwidth) == pytest.approx(expected, abs=1e-10)


@given(weighted_rows(), st.floats(0.01, 0.4))
def test_kde_ece_of_a_fine_table_is_close_to_that_of_its_rows(
    data: list[tuple[float, float, float]], bandwidth: float
) -> None:
    """A residual moved by at most one bin changes the integral by at most 2 / half-width bins."""
    y, p, w = np.array(data).T
    found = sc.kde_ece(sc.reliability(y, p, bins=3600, sample_weight=w), bandwidth=bandwidth)
    exact = sc.kde_ece(y, p, bandwidth=bandwidth, sample_weight=w)
    assume(exact > 0)
    assert found == pytest.approx(exact, abs=2 / half_width(bandwidth) / 3600)


def test_default_bandwidth_of_a_table_is_that_of_its_rows() -> None:
    nodules = lidc_malignancy()
    y, p, w = nodules["soft_malignant"], nodules["prob_rf_all"], nodules["n_readers"]
    rel = sc.reliability(y, p, bins=sc.Bins.grid(), sample_weight=w)
    assert sc.kde_ece(rel) == pytest.approx(sc.kde_ece(y, p, sample_weight=w), abs=2e-5)


def test_kde_ece_of_a_coarse_or_empty_table_is_refused() -> None:
    with pytest.raises(sc.InputError, match=r"kde_ece needs a fine table: 1 of 1 bins"):
        sc.kde_ece(sc.reliability([0.5], [0.2]))
    with pytest.raises(sc.InputError, match="no rows"):
        sc.kde_ece(sc.Reliability.empty(1000))


# What it estimates


def test_kde_ece_converges_to_the_expected_calibration_error(rng: np.random.Generator) -> None:
    """E|p - p^2| = 1/6 for uniform p; the error of smoothing and noise is below 0.003."""
    p = rng.random(200_000)
    outcome = (rng.random(p.size) < p**2).astype(float)
    assert sc.kde_ece(outcome, p) == pytest.approx(1 / 6, abs=0.003)
    assert sc.kde_ece(p**2, p) == pytest.approx(1 / 6, abs=0.001)


def test_only_kde_ece_approaches_the_error_of_a_wave_inside_each_bin(
    rng: np.random.Generator,
) -> None:
    """The numbers of docs/which_error.md; the true error is 0.18 / pi = 0.0573."""
    found = []
    for n in (10_000, 1_000_000):
        p = rng.uniform(0.1, 0.9, n)
        y = rng.binomial(5, p + 0.09 * np.sin(20 * np.pi * p)) / 5
        found.append((sc.kde_ece(y, p), sc.smooth_ece(y, p), sc.smece(y, p)))
    (few, _, _), (many, smooth, binned) = found
    assert few < 0.015 < 0.035 < many < 0.18 / np.pi
    assert smooth == pytest.approx(0.023, abs=0.002)
    assert binned < 0.002
