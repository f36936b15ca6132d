"""Compare SmoothECE with its definition: a sum over mirror images, integrated between zeros."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import norm
from strategies import UNIT, rows, weighted_rows

import softcal as sc
from softcal.metrics import smooth
from softcal.table import kernel, numpy_kernel

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import relplot

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray

CURVATURE = 4 * norm.pdf(1) / 8  # of the Gaussian, times the constant of linear interpolation
SPACING = 1 / smooth.CELLS


def images(t: FloatArray, p: FloatArray, sigma: float) -> FloatArray:
    """Return distances from t to p and its mirror images, in bandwidths: (images, t, rows)."""
    furthest = 1 if sigma < 0.2 else 4
    shifts = 2 * np.arange(-furthest, furthest + 1)[:, None, None]
    straight = t[:, None] - p[None, :]
    mirrored = t[:, None] + p[None, :]
    return np.concatenate([straight - shifts, mirrored - shifts]) / sigma


def smoothed(t: FloatArray, p: FloatArray, mass: FloatArray, sigma: float) -> FloatArray:
    kernel: FloatArray = np.exp(-(images(t, p, sigma) ** 2) / 2) / (sigma * np.sqrt(2 * np.pi))
    out: FloatArray = kernel.sum(axis=0) @ mass
    return out


def area(t: FloatArray, p: FloatArray, mass: FloatArray, sigma: float) -> FloatArray:
    integrated: FloatArray = ndtr(images(t, p, sigma)).sum(axis=0) @ mass
    return integrated


def error_at(y: FloatArray, p: FloatArray, w: FloatArray, sigma: float) -> float:
    """Compute smECE at one bandwidth from the areas between zeros of the smoothed residual."""
    mass = w * (p - y) / w.sum()
    t = np.linspace(0, 1, 1 + max(200, int(40 / sigma)))
    value = smoothed(t, p, mass, sigma)
    at = np.flatnonzero(np.sign(value[:-1]) * np.sign(value[1:]) < 0)
    low, high = t[at], t[at + 1]
    for _ in range(50):
        middle = (low + high) / 2
        left = np.sign(smoothed(middle, p, mass, sigma)) == np.sign(value[at])
        low, high = np.where(left, middle, low), np.where(left, high, middle)
    zeros = np.concatenate([[0.0], low, [1.0]])
    return float(np.abs(np.diff(area(zeros, p, mass, sigma))).sum())


def bound(y: FloatArray, p: FloatArray, w: FloatArray, sigma: float) -> float:
    """Return the error bound of the docstring plus the errors of root finding and rounding."""
    grid = max(sigma / 128, SPACING)
    mean_absolute = float((w * np.abs(p - y)).sum() / w.sum())
    return float(CURVATURE * (SPACING**2 + grid**2) / sigma**2 * mean_absolute) + 2e-9


@given(weighted_rows())
def test_smooth_ece_is_the_fixed_point_within_the_stated_bound(
    data: list[tuple[float, float, float]],
) -> None:
    """smECE - sigma decreases by at least 1 per unit of sigma, which bounds the error of sigma."""
    y, p, w = np.array(data).T
    sigma = sc.smooth_ece(y, p, sample_weight=w)
    assume(sigma > 0.002)  # the oracle is slow for smaller ones
    assert error_at(y, p, w, sigma) == pytest.approx(sigma, abs=bound(y, p, w, sigma))


@pytest.mark.parametrize("sigma", [0.0008, 0.003])
def test_smooth_ece_error_bound_holds_for_small_results(
    sigma: float, rng: np.random.Generator
) -> None:
    """Residuals of one size and alternating sign: the error is of the order of that size."""
    p = np.sort(rng.uniform(0.2, 0.8, 30))
    y = p + sigma * 1.5 * (-1.0) ** np.arange(30)
    found = sc.smooth_ece(y, p)
    one = np.ones(30)
    assert 0.3 * sigma < found < 1.6 * sigma
    assert error_at(y, p, one, found) == pytest.approx(found, abs=bound(y, p, one, found))


def test_smooth_ece_error_bound_is_12e_minus_6() -> None:
    for sigma in (0.01, 0.02, 0.1, 1.0):
        assert bound(np.zeros(1), np.ones(1), np.ones(1), sigma) < 1.2e-5


@given(rows())
def test_smooth_ece_lies_between_bias_and_mean_absolute_residual(
    data: list[tuple[float, float]],
) -> None:
    y, p = np.array(data).T
    found = sc.smooth_ece(y, p)
    assert abs((p - y).mean()) - 2e-9 <= found <= np.abs(p - y).mean() + 2e-9


@given(st.lists(UNIT, min_size=1))
def test_smooth_ece_of_labels_equal_to_predictions_is_0(p: list[float]) -> None:
    assert sc.smooth_ece(p, p) == 0.0


def test_smooth_ece_of_the_worst_model_is_1() -> None:
    assert sc.smooth_ece([0, 0], [1, 1]) == pytest.approx(1.0, abs=2e-9)


def test_smooth_ece_of_mirrored_data_is_the_same(rng: np.random.Generator) -> None:
    p = rng.random(500)
    y = rng.random(500)
    assert sc.smooth_ece(1 - y, 1 - p) == pytest.approx(sc.smooth_ece(y, p), abs=2e-9)


@pytest.mark.parametrize("n", [300, 200_000])
def test_smooth_ece_weight_k_equals_k_copies_and_weight_0_an_absent_row(
    n: int, rng: np.random.Generator
) -> None:
    p, y = rng.random(n), rng.random(n)
    k = rng.integers(0, 4, n)
    repeated = sc.smooth_ece(np.repeat(y, k), np.repeat(p, k))
    assert sc.smooth_ece(y, p, sample_weight=k) == pytest.approx(repeated, abs=2e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_smooth_ece_of_the_numpy_kernel_is_the_same(
    weighted: bool,  # noqa: FBT001
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n = 300_000
    p, y = rng.choice([0.0, 0.3, 1.0, 0.123456], n), rng.random(n)
    w = rng.random(n) if weighted else None
    fast = sc.smooth_ece(y, p, sample_weight=w)
    monkeypatch.setattr(kernel, "loops", numpy_kernel)
    assert sc.smooth_ece(y, p, sample_weight=w) == pytest.approx(fast, abs=2e-9)


@pytest.mark.parametrize("n", [10, 100_000])
@pytest.mark.parametrize(
    ("column", "value", "rule"),
    [
        ("y", 1.5, r"y_true must be in \[0, 1\]: 1 of"),
        ("p", np.nan, "y_prob must have no missing values: 1 of"),
        ("w", -1.0, "sample_weight must be 0 or more: 1 of"),
    ],
)
def test_bad_data_are_refused(n: int, column: str, value: float, rule: str) -> None:
    data = {"y": np.full(n, 0.5), "p": np.full(n, 0.5), "w": np.ones(n)}
    data[column][n // 2] = value
    with pytest.raises(sc.InputError, match=rule):
        sc.smooth_ece(data["y"], data["p"], sample_weight=data["w"])


def test_smooth_ece_of_zero_weights_is_refused() -> None:
    with pytest.raises(sc.InputError, match="sample_weight must have a positive value"):
        sc.smooth_ece([0.5], [0.5], sample_weight=[0])


# relplot


@pytest.mark.parametrize("soft", [False, True])
def test_smooth_ece_agrees_with_relplot_within_the_error_of_its_grid(
    soft: bool,  # noqa: FBT001
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """relplot bins linearly on 1,001 nodes and bisects to 1/1024; the test uses a fine mesh.

    At our sigma its error is sigma up to the bound for its spacing, and its own bandwidth is
    the end of a cell of 1/1024 that our sigma lies in.
    """
    mesh = 20_000
    monkeypatch.setattr(relplot.config, "smECE_mesh_pts", mesh)
    p = rng.uniform(0.01, 0.99, 3000)
    chance = p**1.3 * 0.9 + 0.08
    y = chance if soft else (rng.random(3000) < chance).astype(float)
    sigma = sc.smooth_ece(y, p)
    # Two linear interpolations on its nodes; the ends of the mesh count fully, not by half.
    tolerance = 2 * CURVATURE / (1000 * sigma) ** 2 * np.abs(p - y).mean() + 2 / mesh
    assert relplot.metrics.smECE_sigma(p, y, sigma) == pytest.approx(sigma, abs=tolerance)
    value, width = relplot.smECE(p, y, return_width=True)
    assert width - 2**-10 - tolerance <= sigma <= width + tolerance
    assert value == pytest.approx(sigma, abs=2**-10 + tolerance)


def test_relplot_counts_predictions_of_exactly_0_by_half() -> None:
    """The error is at least the absolute bias, 0.1 here; relplot returns 0.068."""
    p = np.repeat([0.0, 0.5], 50)
    y = np.repeat([0.2, 0.5], 50)
    assert relplot.smECE(p, y) == pytest.approx(0.068, abs=5e-4)
    assert sc.smooth_ece(y, p) == pytest.approx(0.1, abs=2e-9)


def test_relplot_is_too_high_at_wide_bandwidths(rng: np.random.Generator) -> None:
    """relplot truncates its kernel at a distance of 0.5, which is correct for narrow ones only."""
    p = rng.uniform(0.01, 0.99, 200)
    y = (rng.random(200) < 1 - p).astype(float)
    sigma = sc.smooth_ece(y, p)
    assert sigma > 0.2
    assert error_at(y, p, np.ones(200), sigma) == pytest.approx(sigma, abs=1e-6)
    assert relplot.smECE(p, y) > sigma + 0.01


# From the table


@given(weighted_rows(), st.sampled_from([100, 1000, 3600]))
def test_smooth_ece_of_a_fine_table_is_within_the_stated_bound(
    data: list[tuple[float, float, float]], bins: int
) -> None:
    y, p, w = np.array(data).T
    rel = sc.reliability(y, p, bins=bins, sample_weight=w)
    found, exact = sc.smooth_ece(rel), sc.smooth_ece(y, p, sample_weight=w)
    assume(min(found, exact) > 2 * SPACING)
    moved = np.sqrt(rel.brier) / bins / max(found, exact) / np.sqrt(2 * np.pi)
    allowed = moved + bound(y, p, w, found) + bound(y, p, w, exact)
    assert found == pytest.approx(exact, abs=allowed)


def test_smooth_ece_of_a_table_with_one_prediction_per_bin_is_exact(
    rng: np.random.Generator,
) -> None:
    p = rng.integers(0, 11, 500) / 10
    y = rng.random(500)
    rel = sc.reliability(y, p, bins=3600)
    assert sc.smooth_ece(rel) == pytest.approx(sc.smooth_ece(y, p), abs=2e-9)


def test_smooth_ece_of_a_coarse_or_empty_table_is_refused() -> None:
    rel = sc.reliability([0.5, 0.5], [0.2, 0.7], bins=[0, 0.1, 0.5, 0.695, 0.705, 1])
    with pytest.raises(sc.InputError, match=r"1 of 2 bins .* wider than 0.01, the widest 0.4"):
        sc.smooth_ece(rel)
    with pytest.raises(sc.InputError, match="no rows"):
        sc.smooth_ece(sc.Reliability.empty(1000))
