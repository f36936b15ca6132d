"""The bound on the calibration error: by hand, against bins, and in simulations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from strategies import N_BINS, weighted_rows

import softcal as sc


def test_bound_equals_hand_computation() -> None:
    """(0.04 + 0.01 + 0.01) / 3 = 0.02; votes of 20 subtract 0.25 / 19 / 3."""
    y, p = [0.0, 0.5, 1.0], [0.2, 0.4, 0.9]
    assert sc.calibration_error_bound(y, p) == pytest.approx(math.sqrt(0.02))
    expected = math.sqrt(0.02 - 0.25 / 19 / 3)
    assert sc.calibration_error_bound(y, p, n_votes=20) == pytest.approx(expected)
    votes = sc.Votes([[20, 0], [10, 10], [0, 20]])
    assert sc.calibration_error_bound(votes, p) == pytest.approx(expected)
    weighted = math.sqrt((0.04 + 2 * (0.01 - 0.25 / 19)) / 3)
    found = sc.calibration_error_bound(y, p, n_votes=20, sample_weight=[1, 2, 0])
    assert found == pytest.approx(weighted)


def test_rows_with_one_vote_keep_their_noise() -> None:
    y, p, m = np.array([1.0, 0.5]), np.array([0.6, 0.9]), np.array([1, 2])
    found = sc.calibration_error_bound(y, p, n_votes=m)
    assert found == pytest.approx(math.sqrt((0.16 + 0.16 - 0.25) / 2))


def test_bound_of_more_noise_than_error_is_0() -> None:
    assert sc.calibration_error_bound([0.5, 0.5], [0.5, 0.5], n_votes=2) == 0.0


def test_bound_with_votes_is_the_root_of_brier_without_vote_noise(
    rng: np.random.Generator,
) -> None:
    p, m = rng.random(2000), rng.integers(2, 9, 2000)
    y = rng.binomial(m, rng.random(2000)) / m
    expected = math.sqrt(sc.brier_without_vote_noise(y, p, n_votes=m))
    assert sc.calibration_error_bound(y, p, n_votes=m) == pytest.approx(expected)


@given(weighted_rows(), N_BINS)
def test_no_bins_have_a_root_mean_squared_gap_above_the_bound(
    data: list[tuple[float, float, float]], bins: int
) -> None:
    y, p, w = np.array(data).T
    rel = sc.reliability(y, p, bins=bins, sample_weight=w)
    bound = sc.calibration_error_bound(y, p, sample_weight=w)
    assert sc.calibration_error_bound(rel) == pytest.approx(bound, abs=1e-12)
    assert rel.smece <= rel.rms_gap <= bound + 1e-9


@pytest.mark.parametrize("spread", [2.0, 20.0, 1e6])
@pytest.mark.parametrize("power", [1.0, 1.5, 3.0])
def test_bound_is_above_the_true_error_and_near_it_for_items_alike(
    power: float, spread: float, rng: np.random.Generator
) -> None:
    """Rates vary around p^power with the variance of Beta(spread p^power, ...).

    The true squared error is E(p - p^power)^2, and the variance of the rates is known.
    """
    n, m = 200_000, 3
    p = rng.uniform(0.01, 0.99, n)
    mean = p**power
    rate = rng.beta(spread * mean, spread * (1 - mean))
    y = rng.binomial(m, rate) / m
    error = float(np.mean((p - mean) ** 2))
    within = float(np.mean(mean * (1 - mean) / (spread + 1)))
    found = sc.calibration_error_bound(y, p, n_votes=m)
    assert found**2 == pytest.approx(error + within, abs=0.002)
    assert found**2 > error - 0.001
    assert sc.calibration_error_bound(y, p) > found
