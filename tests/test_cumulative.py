"""Cumulative differences: exact sums, and p-values that are valid for soft labels."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import assume, given
from scipy.integrate import quad
from strategies import rows, weighted_rows

import softcal as sc
from softcal.metrics import cumulative

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray


def exact_walk(data: list[tuple[float, float, float]]) -> list[Fraction]:
    """Return the cumulative sums of w (p - y) up to each distinct p, divided by the weight."""
    exact = [(Fraction(y), Fraction(p), Fraction(w)) for y, p, w in data]
    total = sum((w for *_, w in exact), start=Fraction(0))
    levels = sorted({p for _, p, w in exact if w > 0})
    sums = [
        sum((w * (p - y) for y, p, w in exact if p <= level), start=Fraction(0)) for level in levels
    ]
    return [Fraction(0), *(s / total for s in sums)]


@given(weighted_rows())
def test_cumulative_statistics_equal_exact_arithmetic(
    data: list[tuple[float, float, float]],
) -> None:
    y, p, w = np.array(data).T
    walk = exact_walk(data)
    mad = sc.ecce_mad(y, p, sample_weight=w)
    spread = sc.ecce_range(y, p, sample_weight=w)
    assert mad.statistic == pytest.approx(float(max(map(abs, walk))), abs=1e-14)
    assert spread.statistic == pytest.approx(float(max(walk) - min(walk)), abs=1e-14)
    assert mad.scale == spread.scale
    assert 0 <= mad.pvalue <= 1
    assert 0 <= spread.pvalue <= 1


@given(rows())
def test_the_order_of_equal_predictions_does_not_matter(data: list[tuple[float, float]]) -> None:
    y, p = np.array(data).T
    p = np.round(p, 1)
    for test in (sc.ecce_mad, sc.ecce_range):
        forward, backward = test(y, p), test(y[::-1], p[::-1])
        assert forward.statistic == pytest.approx(backward.statistic, abs=1e-14)


def test_labels_equal_to_predictions_have_pvalue_1() -> None:
    assert sc.ecce_mad([0.2, 0.7], [0.2, 0.7]) == cumulative.CumulativeTest(0.0, 0.0, 1.0)
    assert sc.ecce_range([0.2, 0.7], [0.2, 0.7]).pvalue == 1.0


def test_residuals_that_cancel_at_every_distinct_prediction_have_pvalue_1() -> None:
    test = sc.ecce_range([0.25, 0.75], [0.5, 0.5])
    assert (test.statistic, test.pvalue) == (0.0, 1.0)
    assert sc.ecce_mad([0.25, 0.75], [0.5, 0.5]).pvalue == 1.0


@pytest.mark.parametrize("n", [1, 2, 50])
@pytest.mark.parametrize("label", [1.0, 0.3])
def test_certain_predictions_that_labels_contradict_have_pvalue_0(n: int, label: float) -> None:
    y, p = [label, *[0.0] * n, 0.5], [0.0, *[0.0] * n, 0.5]
    assert sc.ecce_mad(y, p).pvalue == sc.ecce_range(y, p).pvalue == 0.0
    assert sc.ecce_mad(y, p, sample_weight=[1e-9] * (n + 2)).pvalue == 0.0
    rel = sc.reliability(y, p)
    assert sc.ecce_mad(rel).pvalue == sc.ecce_range(rel).pvalue == 0.0
    assert sc.calibration_test(rel).pvalue == 0.0


def test_labels_equal_to_predictions_up_to_rounding_have_pvalue_1() -> None:
    y, p = np.full(100, 0.3), np.full(100, 0.1 + 0.2)
    assert sc.ecce_mad(y, p).pvalue == sc.ecce_range(y, p).pvalue == 1.0
    assert sc.ecce_mad([1 - 2**-53] * 9, [1.0] * 9).pvalue == pytest.approx(1.0)


# The distributions of the statistics


@pytest.mark.parametrize("law", ["_chance_of_greatest", "_chance_of_range"])
def test_both_series_of_a_distribution_agree(law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = getattr(cumulative, law)
    for x in np.linspace(1.0, 2.5, 31):
        monkeypatch.setattr(cumulative, "_SWITCH", 0.0)
        by_tails = chance(x)
        monkeypatch.setattr(cumulative, "_SWITCH", np.inf)
        assert chance(x) == pytest.approx(by_tails, abs=1e-14)


def test_distributions_have_the_known_means() -> None:
    """sqrt(pi/2) for the largest excursion, 2 sqrt(2/pi) for the range (Feller)."""
    for law, mean in (
        (cumulative._chance_of_greatest, np.sqrt(np.pi / 2)),
        (cumulative._chance_of_range, 2 * np.sqrt(2 / np.pi)),
    ):
        assert law(0.0) == 1.0
        assert law(40.0) == 0.0
        assert quad(law, 0, 1.5)[0] + quad(law, 1.5, 12)[0] == pytest.approx(mean, abs=1e-9)


def test_scale_is_the_larger_of_squares_and_known_noise(rng: np.random.Generator) -> None:
    p = rng.beta(1, 20, 300)
    outcomes = (rng.random(300) < p).astype(float)
    votes = rng.integers(2, 6, 300)
    shares = rng.binomial(votes, p) / votes
    most, squares = p * (1 - p), (p - outcomes) ** 2
    of_outcomes = max(most.sum(), squares.sum())
    assert sc.ecce_mad(outcomes, p).scale == pytest.approx(of_outcomes**0.5 / 300)
    no_event = sc.ecce_mad(np.zeros(300), p, n_votes=votes).scale
    assert no_event >= np.sqrt((most / votes).sum()) / 300 * (1 - 1e-12)
    assert sc.ecce_mad(sc.reliability(shares, p, n_votes=votes)).scale == pytest.approx(
        sc.ecce_range(shares, p, n_votes=votes).scale
    )


@pytest.mark.parametrize("votes", [None, 1, 4])
def test_calibrated_rare_predictions_are_not_rejected(
    votes: int | None, rng: np.random.Generator
) -> None:
    """Without the known noise of labels, a third was rejected at 0.0001."""
    rejected = np.zeros(2)
    for _ in range(300):
        p = rng.beta(1, 99, 100)
        y = rng.binomial(votes or 1, p) / (votes or 1)
        for test in (sc.ecce_mad, sc.ecce_range):
            pvalue = test(y, p, n_votes=votes).pvalue
            rejected += pvalue < 0.05, pvalue < 1e-4
    assert (rejected <= [0.08 * 600, 0]).all()


def brownian_extremes(
    paths: int, steps: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Simulate the maximum and minimum of Brownian motions, exact between the steps (bridges)."""
    ends = np.cumsum(rng.standard_normal((paths, steps)) / np.sqrt(steps), axis=1)
    starts = np.hstack([np.zeros((paths, 1)), ends[:, :-1]])
    gap = (ends - starts) ** 2
    over = [np.sqrt(gap - 2 / steps * np.log(rng.uniform(size=gap.shape))) for _ in ("max", "min")]
    return (
        ((starts + ends + over[0]) / 2).max(axis=1),
        ((starts + ends - over[1]) / 2).min(axis=1),
    )


def test_distributions_fit_simulated_brownian_motions(rng: np.random.Generator) -> None:
    paths = 20_000
    high, low = brownian_extremes(paths, 100, rng)
    greatest = np.maximum(high, -low)
    for sample, law in (
        (greatest, cumulative._chance_of_greatest),
        (high - low, cumulative._chance_of_range),
    ):
        for x in np.quantile(sample, [0.05, 0.3, 0.5, 0.8, 0.95, 0.99]):
            chance = law(x)
            error = np.sqrt(chance * (1 - chance) / paths)
            assert (sample > x).mean() == pytest.approx(chance, abs=4 * error)


@pytest.mark.parametrize("votes", [1, 3, 5, 10])
def test_rejection_rate_of_a_calibrated_model_equals_the_level(
    votes: int, rng: np.random.Generator
) -> None:
    """Labels are vote shares. With p(1 - p) as the variance, few or none would be rejected."""
    repeats, n = 2000, 1000
    rejected = np.zeros(3)
    for _ in range(repeats):
        p = rng.random(n)
        y = rng.binomial(votes, p) / votes
        mad = sc.ecce_mad(y, p)
        outcomes_scale = np.sqrt((p * (1 - p)).sum()) / n
        by_outcomes = cumulative._chance_of_greatest(mad.statistic / outcomes_scale)
        rejected += np.array([mad.pvalue, sc.ecce_range(y, p).pvalue, by_outcomes]) < 0.05
    size = rejected / repeats
    assert size[:2] == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / repeats))
    if votes > 1:
        assert size[2] < 0.005


# From the table


@given(weighted_rows())
def test_table_statistic_is_lower_within_the_stated_bound(
    data: list[tuple[float, float, float]],
) -> None:
    y, p, w = np.array(data).T
    assume(((p == 0) | (p > 1e-300)).all())  # else w^2 p is 0, and a label of 1 impossible
    rel = sc.reliability(y, p, bins=10, sample_weight=w)
    most = np.sqrt(rel.sums.weight * rel.sums.residual_sq).max() / w.sum()
    for rows_test, table_test, factor in (
        (sc.ecce_mad, sc.ecce_mad, 1),
        (sc.ecce_range, sc.ecce_range, 2),
    ):
        exact, found = rows_test(y, p, sample_weight=w), table_test(rel)
        assert -1e-14 <= exact.statistic - found.statistic <= factor * most + 1e-14
        assert found.scale == pytest.approx(exact.scale, rel=1e-12)
        assert found.pvalue >= exact.pvalue - 1e-12


def test_cumulative_tests_refuse_tables_with_groups_or_without_rows() -> None:
    grouped = sc.reliability([0.5, 0.2], [0.4, 0.1], groups=["a", "a"])
    with pytest.raises(sc.InputError, match="assumes independent rows"):
        sc.ecce_mad(grouped)
    with pytest.raises(sc.InputError, match="no rows"):
        sc.ecce_range(sc.Reliability.empty())


def test_bad_data_are_refused() -> None:
    with pytest.raises(sc.InputError, match=r"y_prob must be in \[0, 1\]: 1 of 2"):
        sc.ecce_mad([0.5, 0.5], [0.5, 1.5])
    with pytest.raises(sc.InputError, match="sample_weight must have a positive value"):
        sc.ecce_mad([0.5], [0.5], sample_weight=[0])


def test_tiny_walk_has_a_large_pvalue() -> None:
    rel = sc.reliability([0.0, 0.0, 1.0], [1e-301, 0.95, 0.05], bins=[0, 0.01, 1])
    for test in (sc.ecce_mad, sc.ecce_range):
        assert test(rel).pvalue == 1.0
