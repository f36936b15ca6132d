"""The debiased squared gap, and the largest number of monotone equal-mass bins."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import UNIT, WEIGHT, rows

import softcal as sc

if TYPE_CHECKING:
    from collections.abc import Iterable


def add(terms: Iterable[Fraction]) -> Fraction:
    return sum(terms, start=Fraction(0))


@given(st.lists(st.tuples(UNIT, UNIT, WEIGHT), min_size=1, max_size=12))
def test_debiased_squared_gap_is_the_mean_product_over_pairs(
    data: list[tuple[float, float, float]],
) -> None:
    """Compare with exact arithmetic over all pairs, in two bins."""
    exact = [(Fraction(y), Fraction(p), Fraction(w)) for y, p, w in data if w > 0]
    if not exact:
        return
    total = Fraction(0)
    for inside in ([r for r in exact if r[1] < 0.5], [r for r in exact if r[1] >= 0.5]):
        pairs = list(permutations(inside, 2))
        if pairs:
            products = add(a[2] * b[2] * (a[1] - a[0]) * (b[1] - b[0]) for a, b in pairs)
            total += add(r[2] for r in inside) * products / add(a[2] * b[2] for a, b in pairs)
    expected = float(total / add(r[2] for r in exact))
    y, p, w = np.array(data).T
    found = sc.squared_gap_debiased(y, p, bins=2, sample_weight=w)
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("votes", [1, 5, 100])
def test_debiased_squared_gap_is_unbiased_for_any_votes(
    votes: int, rng: np.random.Generator
) -> None:
    """All gaps are 0.05. Kumar's correction for outcomes subtracts too much for vote shares."""
    repeats, n = 1000, 1000
    found, kumars = np.empty(repeats), np.empty(repeats)
    for i in range(repeats):
        chance = rng.uniform(0, 0.95, n)
        y = rng.binomial(votes, chance) / votes
        rel = sc.reliability(y, chance + 0.05)
        found[i] = sc.squared_gap_debiased(rel)
        noise = rel.mean_label * (1 - rel.mean_label) / (rel.count - 1)
        kumars[i] = (rel.count * (rel.gap**2 - noise)).sum() / n
    error = found.std() / np.sqrt(repeats)
    assert found.mean() == pytest.approx(0.0025, abs=4 * error)
    assert error < 1e-4
    assert (kumars.mean() < 0.0015) == (votes > 1)


def test_bins_of_one_row_add_0_and_an_empty_table_is_refused() -> None:
    assert sc.squared_gap_debiased([0.1, 0.9], [0.2, 0.8]) == 0.0
    with pytest.raises(sc.InputError, match="no rows"):
        sc.squared_gap_debiased(sc.Reliability.empty())


# Sweep


def rises(y: object, p: object, n: int) -> bool:
    """Return whether the mean labels of n equal-mass bins are non-decreasing, by definition."""
    means = sc.reliability(y, p, bins=sc.Bins.quantile(p, n)).mean_label  # type: ignore[arg-type]
    return bool((np.diff(means) >= -1e-12).all())


@given(rows(), st.sampled_from([1, 2, 6]))
def test_sweep_stops_before_mean_labels_decrease(
    data: list[tuple[float, float]], digits: int
) -> None:
    y, p = np.array(data).T
    p = p.round(digits)
    falling = (b for b in range(2, y.size + 1) if not rises(y, p, b))
    first = next(falling, y.size + 1)
    assert sc.sweep_bins(y, p) == sc.Bins.quantile(p, first - 1)


def test_sweep_finds_more_bins_for_soft_labels_than_for_outcomes(rng: np.random.Generator) -> None:
    p = rng.random(3000)
    votes = [sc.sweep_bins(rng.binomial(m, p) / m, p) for m in (1, 10, 1000)]
    assert len(votes[0]) < len(votes[1]) < len(votes[2])


def test_sweep_of_noise_free_labels_stops_at_most(rng: np.random.Generator) -> None:
    p = rng.random(5000)
    assert len(sc.sweep_bins(p, p)) == 1000
    assert len(sc.sweep_bins(p, p, most=20)) == 20
    with pytest.raises(sc.InputError, match="number of bins must be between"):
        sc.sweep_bins(p, p, most=0)


@pytest.mark.parametrize("label", [0, 0.5, 1])
def test_sweep_of_constant_labels_gives_one_bin_per_prediction(label: float) -> None:
    p = np.array([0.1, 0.2, 0.2, 0.6, 0.9])
    bins = sc.sweep_bins(np.full(5, label), p)
    assert bins.edges.tolist() == [0, 0.2, 0.6, 0.9, 1]
    assert len(sc.sweep_bins(np.full(5, label), p, most=2)) == 2


def test_sweep_agrees_with_probcal_on_outcomes(rng: np.random.Generator) -> None:
    """If n is a multiple of every number of bins, equal-mass bins are unique."""
    binned = pytest.importorskip("probcal.metrics.binned", reason="of the 'bench' extra")
    p = rng.random(27_720)
    y = (rng.random(27_720) < p).astype(float)
    bins = sc.sweep_bins(y, p, most=12)
    theirs = binned.ece_sweep(y, p, max_bins=12)
    assert sc.smece(y, p, bins=bins) == pytest.approx(theirs, abs=1e-12)


def test_bin_with_one_effective_row_adds_0() -> None:
    found = sc.squared_gap_debiased([0.1, 0.2], [0.5, 0.5], bins=1, sample_weight=[1, 1e-20])
    assert found == 0
