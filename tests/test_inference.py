"""Intervals and the test: properties, known values, degenerate input, short coverage runs."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import gammaincc
from scipy.stats import binom, binomtest, norm
from scipy.stats import t as student
from strategies import rows

import softcal as sc
from softcal.inference import intervals
from softcal.inference.intervals import interval_limits, table_limits
from softcal.inference.smece import agreeing_low
from softcal.table.kernel import Sums, as_sums

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray


# The folded normal


@pytest.mark.parametrize("x", [0.0, 0.3, 1.0, 2.5, 7.0])
def test_folded_moments_equal_quadrature(x: float) -> None:
    def mean_of(power: int) -> float:
        return float(quad(lambda z: abs(x + z) ** power * norm.pdf(z), -12, 12, points=[-x])[0])

    at = np.array(x)
    assert float(intervals.mean_abs(at)) == pytest.approx(mean_of(1), abs=1e-9)
    assert float(intervals.variance_abs(at)) == pytest.approx(
        mean_of(2) - mean_of(1) ** 2, abs=1e-8
    )
    c = 0.8
    stein = quad(
        lambda z: float(intervals.cautious_abs(np.array(x + z), c)) * norm.pdf(z), -12, 12
    )[0]
    assert stein == pytest.approx(x * (2 * norm.cdf(x / math.hypot(1, c)) - 1), abs=1e-8)
    assert stein <= abs(x) + 1e-9


def test_inversions_of_folded_moments_round_trip() -> None:
    x = np.linspace(0, 20, 4001)
    mean = intervals.mean_abs(x)
    np.testing.assert_allclose(
        intervals.mean_abs(intervals.inverse_mean_abs(mean)), mean, atol=3e-6
    )
    assert float(intervals.inverse_mean_abs(np.array(0.5))) == 0.0
    for width in (0.1, 0.5, 1.96):
        seen = np.linspace(intervals.MEAN_AT_0, 4, 200)
        found = intervals.highest_plausible(seen, np.full(200, width))
        reach = intervals.mean_abs(found) - width * np.sqrt(intervals.variance_abs(found))
        np.testing.assert_allclose(reach, seen, atol=1e-5)
        assert (np.diff(found) > 0).all()
    beyond = intervals.highest_plausible(np.array(0.8), np.array(1e6))  # |x + Z| is x + Z there
    assert float(beyond) == pytest.approx(0.8 + 1e6, rel=1e-12)


# The interval


def table(rng: np.random.Generator, n: int = 500, **options: Any) -> sc.Reliability:
    p = rng.random(n)
    return sc.reliability(rng.binomial(3, p**1.3) / 3, p, n_votes=3, **options)


@st.composite
def any_table(
    draw: st.DrawFn, *, most_bins: int, grouped: st.SearchStrategy[bool]
) -> sc.Reliability:
    """Draw tables of outcomes, votes, and soft labels, sparse or not, weighted or not."""
    n, bins = draw(st.sampled_from([1, 2, 5, 30, 300, 2000])), draw(st.integers(1, most_bins))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    p = rng.random(n) ** draw(st.sampled_from([1, 3, 8]))
    rate = p ** draw(st.sampled_from([1, 0.5, 1.5]))
    votes = draw(st.sampled_from([None, 1, 5]))
    noisy = np.clip(rate + rng.normal(0, 0.1, n), 0, 1)
    y = noisy if votes is None else rng.binomial(votes, rate) / votes
    weight = np.exp(rng.normal(0, 2, n)) if draw(st.booleans()) else None
    group = rng.integers(0, 1 + n // 3, n) if draw(grouped) else None
    return sc.reliability(
        y, p, bins=bins, sample_weight=weight, groups=group,
        n_votes=votes if draw(st.booleans()) else None,
    )  # fmt: skip


@given(
    rel=any_table(most_bins=300, grouped=st.sampled_from([False])),
    level=st.sampled_from([0.5, 0.95, 0.999]),
)
def test_limits_by_the_extension_equal_limits_by_arrays(rel: sc.Reliability, level: float) -> None:
    assume(rel.n > 1)
    *found, _ = table_limits(rel, None, level)
    expected = interval_limits(rel.sums, level)
    assert found == pytest.approx([float(x) for x in expected], rel=1e-12, abs=1e-15)


@given(
    rel=any_table(most_bins=60, grouped=st.booleans()),
    level=st.sampled_from([0.5, 0.8, 0.95, 0.999]),
)
def test_interval_excludes_0_exactly_if_the_test_rejects(rel: sc.Reliability, level: float) -> None:
    found = sc.smece_interval(rel, level=level)
    assert found.pvalue == sc.calibration_test(rel).pvalue
    if not found.note.startswith("One "):
        assert (found.low > 0) == (found.pvalue < 1 - level)


def test_lower_limit_falls_to_0_continuously_as_the_pvalue_rises() -> None:
    pvalues = np.linspace(0, 0.06, 60_001)
    for limit in (0.0, 0.03, 0.09):
        low = np.array([agreeing_low(limit, 0.1, p, 0.05) for p in pvalues])
        assert low[0] == pytest.approx(max(limit, 0.01))
        assert (np.diff(low) <= 0).all()
        assert np.abs(np.diff(low)).max() < 1e-5
        assert ((low > 0) == (pvalues < 0.05)).all()


def test_limits_of_sums_that_are_slices_equal_limits_of_copies(rng: np.random.Generator) -> None:
    rel = table(rng, 300)
    lines = np.array([*rel.sums]).T.copy().T
    sliced = sc.Reliability(rel.bins, as_sums(lines))
    assert not sliced.sums.weight.flags.contiguous
    assert sc.smece_interval(sliced) == sc.smece_interval(rel)


def test_limits_of_stacked_tables_equal_separate_limits(rng: np.random.Generator) -> None:
    tables = [table(rng, n) for n in (20, 200, 2000)]
    stacked = Sums(*(np.stack(values) for values in zip(*(t.sums for t in tables), strict=True)))
    _, low, high = interval_limits(stacked, 0.95)
    for k, t in enumerate(tables):
        assert (low[k], high[k]) == pytest.approx(table_limits(t, None, 0.95)[1:3])


@given(data=rows(min_size=2))
def test_interval_limits_are_ordered(data: list[tuple[float, float]]) -> None:
    y, p = zip(*data, strict=True)
    found = sc.smece_interval(sc.reliability(y, p))
    assert 0 <= found.low <= found.high <= 1
    assert 0 <= found.debiased <= found.value * (1 + 1e-12) + 1e-300
    assert found.low <= found.value + 1e-12


@given(level=st.floats(0.5, 0.999))
def test_higher_level_gives_wider_interval(level: float) -> None:
    rel = table(np.random.default_rng(0))
    narrow, wide = (
        sc.smece_interval(rel, level=level),
        sc.smece_interval(rel, level=level + (1 - level) / 2),
    )
    assert wide.low <= narrow.low
    assert narrow.high <= wide.high


def test_merged_tables_give_the_same_interval(rng: np.random.Generator) -> None:
    p = rng.random(900)
    y = rng.binomial(4, p) / 4
    groups = np.arange(900) // 3
    for options in ({}, {"groups": groups}):
        parts = []
        for a, b in ((0, 300), (300, 303), (303, 900)):
            cut = {key: value[a:b] for key, value in options.items()}
            parts.append(sc.reliability(y[a:b], p[a:b], n_votes=4, **cut))  # type: ignore[arg-type]
        whole = sc.smece_interval(sc.reliability(y, p, n_votes=4, **options))  # type: ignore[arg-type]
        merged = sum(parts)
        assert isinstance(merged, sc.Reliability)
        again = sc.smece_interval(merged)
        for name in ("value", "debiased", "low", "high"):
            assert getattr(again, name) == pytest.approx(getattr(whole, name), rel=1e-12)


def test_scaling_weights_does_not_change_the_interval(rng: np.random.Generator) -> None:
    p, w = rng.random(400), rng.uniform(0.5, 2, 400)
    y = rng.random(400) < p
    one, thousand = (sc.reliability(y, p, sample_weight=w * c) for c in (1.0, 1000.0))
    first, second = sc.smece_interval(one), sc.smece_interval(thousand)
    assert second.low == pytest.approx(first.low, rel=1e-10)
    assert second.high == pytest.approx(first.high, rel=1e-10)
    assert sc.calibration_test(thousand).pvalue == pytest.approx(
        sc.calibration_test(one).pvalue, rel=1e-9
    )


def test_equal_weights_equal_no_weights(rng: np.random.Generator) -> None:
    p = rng.random(400)
    y = rng.random(400) < p
    plain = sc.reliability(y, p)
    same = sc.reliability(y, p, sample_weight=np.full(400, 2.0))
    assert sc.smece_interval(same).high == pytest.approx(sc.smece_interval(plain).high, rel=1e-12)
    assert sc.calibration_test(same).pvalue == pytest.approx(
        sc.calibration_test(plain).pvalue, rel=1e-10
    )


def test_labels_of_0_are_outcomes_unless_their_votes_are_given() -> None:
    """With no event in 299 rows, the limit of outcomes is above that of labels of 4 votes."""
    p, y = np.full(300, 0.01), np.zeros(300)
    y[0], p[0] = 0.25, 0.25
    unknown = sc.smece_interval(sc.reliability(y, p))
    known = sc.smece_interval(sc.reliability(y, p, n_votes=4))
    assert unknown.high > known.high > 3.69 / 300  # the rule of three
    assert unknown.note.startswith("Predictions near 0 or 1 lead to about 3 expected events")


def test_groups_of_one_row_equal_no_groups(rng: np.random.Generator) -> None:
    p = rng.random(300)
    y = rng.random(300) < p
    plain = sc.smece_interval(sc.reliability(y, p))
    grouped = sc.smece_interval(sc.reliability(y, p, groups=np.arange(300)))
    for name in ("value", "debiased", "low", "high"):
        assert getattr(grouped, name) == pytest.approx(getattr(plain, name), rel=1e-9)
    low, high = sc.gap_intervals(sc.reliability(y, p))
    low_g, high_g = sc.gap_intervals(sc.reliability(y, p, groups=np.arange(300)))
    np.testing.assert_allclose(low, low_g, rtol=1e-9)
    np.testing.assert_allclose(high, high_g, rtol=1e-9)


def test_copies_of_rows_within_a_group_keep_the_interval(rng: np.random.Generator) -> None:
    p = rng.random(300)
    y = rng.binomial(5, p) / 5
    once = sc.smece_interval(sc.reliability(y, p))
    copied = sc.reliability(np.repeat(y, 4), np.repeat(p, 4), groups=np.repeat(np.arange(300), 4))
    four = sc.smece_interval(copied)
    assert four.low == pytest.approx(once.low, abs=2e-3)
    assert four.high == pytest.approx(once.high, abs=2e-3)
    fooled = sc.smece_interval(sc.reliability(np.repeat(y, 4), np.repeat(p, 4)))
    assert four.high > fooled.high
    assert fooled.high < four.high


@pytest.mark.parametrize("level", [0, 1, -0.1, 95, math.nan])
def test_invalid_level_is_refused(level: float) -> None:
    rel = sc.reliability([0.5, 1], [0.4, 0.6])
    with pytest.raises(sc.InputError, match="level must be between 0 and 1"):
        sc.smece_interval(rel, level=level)
    with pytest.raises(sc.InputError, match="level must be between 0 and 1"):
        sc.gap_intervals(rel, level=level)


def test_empty_tables_have_no_interval_and_no_test() -> None:
    for function in (sc.smece_interval, sc.calibration_test):
        with pytest.raises(sc.InputError, match="the table has no rows"):
            function(sc.Reliability.empty())


# Degenerate input


def test_labels_equal_to_predictions_have_rule_of_three_interval() -> None:
    p = np.linspace(0, 1, 500)
    rel = sc.reliability(p, p)
    found = sc.smece_interval(rel)
    assert (found.value, found.debiased, found.low) == (0, 0, 0)
    assert found.high == pytest.approx(-math.log(0.025) / 500)
    assert sc.calibration_test(rel).pvalue == 1.0


def test_one_row() -> None:
    rel = sc.reliability([1], [0.25])
    found = sc.smece_interval(rel)
    assert (found.value, found.low, found.high) == (0.75, 0.0, 1.0)
    assert "One row" in found.note
    assert 0 < sc.calibration_test(rel).pvalue < 1
    low, high = sc.gap_intervals(rel)
    assert (low[2], high[2]) == (-1.0, 1.0)
    assert np.isnan(low[0])


def test_one_bin(rng: np.random.Generator) -> None:
    p = rng.random(400)
    rel = sc.reliability(rng.random(400) < p, p, bins=1)
    found = sc.smece_interval(rel)
    assert 0 <= found.low <= found.high < 0.15


def test_all_labels_equal() -> None:
    rel = sc.reliability(np.zeros(200), np.full(200, 0.02))
    found = sc.smece_interval(rel)
    assert found.low <= 0.02 <= found.high
    assert 0 < sc.calibration_test(rel).pvalue < 0.1


def test_contradicted_certain_predictions_are_rejected() -> None:
    rel = sc.reliability([0, 1, 1], [0, 0, 1])
    found = sc.calibration_test(rel)
    assert found.pvalue == 0.0
    assert found.share.tolist() == [1] + [0] * 9
    assert sc.smece_interval(rel).high > 0


def test_confirmed_certain_predictions_have_p_value_1() -> None:
    assert sc.calibration_test(sc.reliability([0, 1], [0, 1])).pvalue == 1.0


def test_p_value_of_a_constant_gap_falls_with_rows() -> None:
    pvalues = [
        sc.calibration_test(sc.reliability(np.full(n, 0.3), np.full(n, 0.5))).pvalue
        for n in (1, 8, 100, 1000)
    ]
    assert pvalues == sorted(pvalues, reverse=True)
    assert pvalues[0] > 0.05
    assert pvalues[-1] < 1e-100


def test_rule_of_three_is_noted_if_it_decides() -> None:
    p = np.linspace(0.1, 0.9, 200)
    exact = sc.smece_interval(sc.reliability(p - 0.05, p))
    assert exact.note == (
        "A kind of row too rare to be among these 200 could add up to 0.015 (rule of three)."
    )
    rng = np.random.default_rng(0)
    assert sc.smece_interval(sc.reliability(rng.random(200) < p, p)).note == ""


# The test


@given(data=rows())
def test_pvalues_are_between_0_and_1(data: list[tuple[float, float]]) -> None:
    y, p = zip(*data, strict=True)
    found = sc.calibration_test(sc.reliability(y, p))
    for value in (found.pvalue, found.pvalue_bins, found.pvalue_trend):
        assert 0 <= value <= 1
    assert found.statistic >= 0
    total = found.share.sum()
    assert total == pytest.approx(1) or total == 0


def test_share_shows_bins_that_drive_the_test(rng: np.random.Generator) -> None:
    p = rng.random(5000)
    rate = np.where((p > 0.6) & (p < 0.7), p - 0.2, p)
    found = sc.calibration_test(sc.reliability(rng.random(5000) < rate, p))
    assert int(found.share.argmax()) == 6
    assert found.share[6] > 0.7


@given(rel=any_table(most_bins=60, grouped=st.booleans()))
def test_the_test_equals_its_formulas_in_long_arrays(rel: sc.Reliability) -> None:
    found, expected = sc.calibration_test(rel), by_arrays(rel)
    assume(expected is not None)
    assert expected is not None
    for name, value in expected.items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-12, abs=1e-12), name
    # Shares of a statistic that consists of rounding errors are arbitrary.
    if found.statistic > 1e-12:
        assert found.share.sum() == pytest.approx(1, rel=1e-12)


def by_arrays(rel: sc.Reliability) -> dict[str, float] | None:
    """Compute p-values and statistic by the formulas of docs/interval_method.md, in long doubles.

    Each threshold of events between two sums of neighboring bins is used. Returns None if rounding
    decides the p-values: with predictions of exactly 0 and 1, or nearly equal pools.
    """
    s = {name: np.asarray(values, np.longdouble) for name, values in vars(rel.sums).items()}
    scale = s["count"].sum() / s["weight_sq"].sum()
    events, worth = s["prob_var"] * scale, np.longdouble(1)
    if rel.clusters is not None:
        worth = s["weight_sq"].sum() / rel.clusters.weight.sum()
    if not rel.has_hard_labels:
        excess = independent_noise(rel, s, scale, worth, list(range(len(events))))[1]
        rows = np.where(s["count"] > 0, s["weight"] ** 2 / np.maximum(s["weight_sq"], 1e-300), 1)
        events = np.where(s["count"] > 0, 1 / (excess + 10 / rows), 0)
    certain = s["prob_var"] * scale <= 1e-100
    if (s["residual_var"] * scale)[certain].sum() > 0:
        return None
    before = np.append(0, (events * worth).cumsum())
    runs = (before[None, :] - before[:, None]).ravel()
    at = np.unique(np.append(runs[(runs > 1) & (runs < 1.01)], [1, np.longdouble("1.01")]))
    found = dict.fromkeys(("pvalue", "pvalue_bins", "pvalue_trend", "statistic"), 0.0)
    for low, high in pairwise(at):
        starts = pools_above((low + high) / 2, events * worth, s["count"])
        way = way_to_pool(rel, s, scale, worth, starts)
        if way is None:
            return None
        for name, value in zip(found, way, strict=True):
            found[name] += float((high - low) / (at[-1] - at[0]) * value)
    return found


def pools_above(least: Any, events: Any, count: Any) -> list[int]:
    starts, last = [0], int(np.flatnonzero(count)[-1])
    for b in range(1, last + 1):
        if events[starts[-1] : b].sum() > least:
            starts.append(b)
    if len(starts) > 1 and events[starts[-1] :].sum() <= least:
        starts.pop()
    return starts


def way_to_pool(rel: sc.Reliability, s: Any, scale: Any, worth: Any, starts: list[int]) -> Any:
    residual, variance, mean, size, heavy, between = noise_of(rel, s, scale, worth, starts)
    statistic, k = (residual**2 / variance).sum(), len(starts)
    spread = 2 + heavy
    spread = np.maximum(np.maximum(spread, 2 * (1 - 1 / size)).sum(), 1e-9)
    spread += 2 * (between**2 / np.outer(variance, variance)).sum()
    p_bins = gammaincc(float(k**2 / spread), float(statistic * k / spread))
    if k == 1:
        residual, variance, mean, size, heavy, between = noise_of(
            rel, s, scale, worth, list(range(len(s["count"])))
        )
    covariance = np.diag(variance) + between
    directions = np.stack([np.ones_like(mean), mean - mean[variance.argmax()]])
    level, tilt = directions @ residual
    (a, b), (_, d) = directions @ covariance @ directions.T
    a = np.maximum(a, 1e-12 * variance.sum())
    flat = (a * d - b**2) / a**2
    if 1e-13 < flat < 1e-9:
        return None
    statistics = [level**2 / a, (d * level**2 - 2 * b * level * tilt + a * tilt**2)]
    tilted = int(flat > 1e-9)
    each = 1 / a if not tilted else (d - 2 * b * directions[1] + a * directions[1] ** 2)
    determinant = a * d - b**2 if tilted else np.longdouble(1)
    least = -2 / np.where(size > 0, size, 1)
    fourth = np.where(size > 0, np.maximum(heavy, least), 0) * variance**2
    fourth *= rel.clusters is None
    spread = np.maximum(2 * (1 + tilted) + (fourth * (each / determinant) ** 2).sum(), 1e-9)
    number, in_errors = 1 + tilted, statistics[tilted] / determinant
    p_trend = gammaincc(float(number**2 / spread), float(in_errors * number / spread))
    pvalue = p_trend
    if k > 1:
        cotangent = sum(1 / np.tan(np.pi * np.clip(p, 1e-300, 1 - 1e-6)) for p in (p_bins, p_trend))
        pvalue = min(1.055 * np.arctan2(1, cotangent / 2) / np.pi, 1)
    one_group = rel.clusters is not None and rel.clusters.count < 2
    return (1, 1, 1, statistic) if one_group else (pvalue, p_bins, p_trend, statistic)


def noise_of(rel: sc.Reliability, s: Any, scale: Any, worth: Any, starts: list[int]) -> Any:
    def joined(values: Any) -> Any:
        return np.add.reduceat(values, starts)

    weight, events = joined(s["weight"]), joined(s["prob_var"] * scale)
    safe = np.where(weight > 0, weight, 1)
    mean = joined(s["label"] + s["residual"]) / safe
    if rel.clusters is None:
        weight_sq, between = joined(s["weight_sq"]), 0
        variance, excess = independent_noise(rel, s, scale, worth, starts)
    else:
        square, products = (
            joined(np.add.reduceat(np.asarray(m, np.longdouble), starts, axis=1))
            for m in (rel.clusters.residual * float(scale), rel.clusters.weight)
        )
        weight_sq = products.diagonal()
        between = square - np.diag(square.diagonal())
        alike = weight_sq / np.maximum(joined(s["weight_sq"]), 1e-300)
        rest, squares, unsure, expected, seen = soft_rows(rel, s, scale, worth, starts)
        own = np.maximum(square.diagonal() - seen * alike, 0)
        whole = own.sum() * skewed(squares.sum(), rest.sum(), unsure.sum())
        own = own * skewed(squares, rest, unsure)
        likely = soft_noise(rel, s, scale, worth, starts)[0]
        pooled = whole / np.maximum(likely.sum(), 1e-300) * likely
        rows = rest if rel.has_hard_labels else soft_count(rel, s, scale, worth, starts)
        variance = (rows * worth * own + 5 * pooled) / (rows * worth + 5)
        variance = variance + least_outcome(rel, s, scale, worth) * expected * alike
        excess = independent_noise(rel, s, scale, worth, starts)[1] / worth
    size = weight**2 / np.where(weight > 0, weight_sq, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        heavy = excess * (1 - 6 * events / size) if rel.clusters is None else excess - 6 / size
    residual = joined(s["residual"]) * np.sqrt(scale)
    variance = variance + 1e-18 * scale * weight_sq
    return residual, variance, mean, size, heavy, between * np.ones((len(starts),) * 2)


def independent_noise(
    rel: sc.Reliability, s: Any, scale: Any, worth: Any, starts: list[int]
) -> Any:
    """Return the variance of pools of independent rows, and their excess kurtosis."""
    if rel.has_hard_labels:
        events = np.add.reduceat(s["prob_var"] * scale, starts)
        return events, 1 / np.maximum(events, 1e-100)
    likely, fourth = soft_noise(rel, s, scale, worth, starts)
    rest, squares, unsure, expected, _ = soft_rows(rel, s, scale, worth, starts)
    rows = soft_count(rel, s, scale, worth, starts)
    squares = squares * skewed(squares, rest, unsure)
    variance = (rows * squares + 5 * likely) / (rows + 5)
    variance += least_outcome(rel, s, scale, worth) * expected
    return variance, (expected + fourth) / np.maximum((expected + likely) ** 2, 1e-100)


def soft_count(rel: sc.Reliability, s: Any, scale: Any, worth: Any, starts: list[int]) -> Any:
    """Return how many normal labels would show the variance as precisely as the soft labels."""
    likely, fourth = soft_noise(rel, s, scale, worth, starts)
    rest = soft_rows(rel, s, scale, worth, starts)[0]
    weight, weight_sq, most = (
        np.add.reduceat(s[name], starts) for name in ("weight", "weight_sq", "prob_var")
    )
    safe = rest > 0
    size = weight**2 / np.where(safe, weight_sq, 1) * rest / np.where(safe, most * scale, 1)
    excess = fourth / np.maximum(likely**2, 1e-100)
    return np.where(safe, 2 / (excess + 2 / np.where(safe, size, 1)), 0)


def soft_noise(rel: sc.Reliability, s: Any, scale: Any, worth: Any, starts: list[int]) -> Any:
    """Return the variance and fourth cumulant that the whole table suggests for soft labels."""
    each = list(range(len(s["count"])))
    most, whole, unsure = (x.sum() for x in soft_rows(rel, s, scale, worth, each)[:3])
    whole = whole * skewed(whole, most, unsure)
    floor = np.longdouble(0) if rel.has_hard_labels else s["vote_floor"].sum() * scale
    votes, common = np.longdouble(1), np.longdouble(1)
    if not rel.has_hard_labels:
        if floor > 0:
            whole = (most * worth * whole + 5 * floor) / (most * worth + 5)
            votes = min(whole / min(floor, most), votes)
        voted = min(floor, most)
        common = min(max(whole - voted, 0) / np.maximum(most - voted, 1e-300), common)
    rest = soft_rows(rel, s, scale, worth, starts)[0]
    voted = np.minimum(np.add.reduceat(s["vote_floor"] * scale, starts), rest) * (floor > 0)
    beta = 6 * common**3 / ((1 + common) * (1 + 2 * common))
    single = voted / np.where(rest > 0, rest, 1)
    return votes * voted + common * (rest - voted), voted * single**2 + beta * (rest - voted)


def soft_rows(rel: sc.Reliability, s: Any, scale: Any, worth: Any, starts: list[int]) -> Any:
    """Return sums of p(1-p), (p-y)^2 and y(1-y) of soft labels; the first two of outcomes."""

    def joined(values: Any) -> Any:
        return np.add.reduceat(values * scale, starts)

    unsure = joined(s["label_var"] * s["weight_sq"] / np.where(s["weight"] > 0, s["weight"], 1))
    most, own = joined(s["prob_var"]), joined(s["residual_var"])
    if rel.has_hard_labels:  # in groups, outcomes are as soft labels
        return most, own, unsure, np.zeros_like(most), np.zeros_like(most)
    part = 1 - unanimous(s, scale, worth)
    expected = part * joined(s["outcome_prob_var"])
    seen = part * joined(s["outcome_residual_var"])
    return np.maximum(most - expected, 0), np.maximum(own - seen, 0), unsure, expected, seen


def skewed(own: Any, most: Any, unsure: Any) -> Any:
    x = np.minimum(2 * (most - own - unsure) / np.maximum(most + own, 1e-300), 2)
    return np.where(x < 0, 1 / (1 - np.minimum(x, 0)), 1 + x + x**2)


def unanimous(s: Any, scale: Any, worth: Any) -> Any:
    """Return the certainty that labels of 0 and 1 are shares of unanimous votes."""
    expected, seen, own = (
        s[name].sum() * scale
        for name in ("outcome_prob_var", "outcome_residual_var", "residual_var")
    )
    if expected == 0:
        return np.longdouble(0)
    unsure = s["label_var"] * s["weight_sq"] / np.where(s["weight"] > 0, s["weight"], 1)
    others = (s["prob_var"] - unsure).sum() * scale - own - (expected - seen)
    contrast = (expected - seen) / np.sqrt(expected)
    contrast -= others / np.sqrt(np.maximum(own - seen, 0) + expected / 4)
    u = np.clip(contrast * np.sqrt(worth / 2) - 1, 0, 1)
    return u**2 * (3 - 2 * u)


def least_outcome(rel: sc.Reliability, s: Any, scale: Any, worth: Any) -> Any:
    """Return the variance of outcomes as a share of p(1 - p): more if one event is surprising."""
    if rel.has_hard_labels or s["outcome_prob_var"].sum() == 0:
        return np.longdouble(1)
    expected, seen = (
        s[name].sum() * scale * worth for name in ("outcome_prob_var", "outcome_residual_var")
    )
    return np.maximum(1, np.minimum(seen, 1) / expected)


def test_groups_of_one_row_nearly_equal_the_test_without_groups(rng: np.random.Generator) -> None:
    """With groups, the variance is that of the residuals, as for soft labels."""
    p = rng.random(2000)
    y = rng.binomial(5, p) / 5
    plain = sc.calibration_test(sc.reliability(y, p))
    grouped = sc.calibration_test(sc.reliability(y, p, groups=np.arange(2000)))
    assert grouped.statistic == pytest.approx(plain.statistic, rel=1e-9)
    assert grouped.pvalue == pytest.approx(plain.pvalue, rel=0.02)


def test_copies_of_rows_within_a_group_keep_the_p_value(rng: np.random.Generator) -> None:
    p = rng.random(500)
    y = rng.binomial(5, p**1.1) / 5
    once = sc.calibration_test(sc.reliability(y, p))
    group = np.repeat(np.arange(500), 4)
    copied = sc.calibration_test(sc.reliability(np.repeat(y, 4), np.repeat(p, 4), groups=group))
    assert copied.pvalue == pytest.approx(once.pvalue, rel=0.1)
    fooled = sc.calibration_test(sc.reliability(np.repeat(y, 4), np.repeat(p, 4)))
    assert fooled.pvalue < once.pvalue / 10


def test_certainty_contradicted_in_a_group() -> None:
    found = sc.calibration_test(sc.reliability([0, 1, 1], [0, 0, 1], groups=["a", "a", "b"]))
    assert found.pvalue == 0.0
    perfect = sc.calibration_test(sc.reliability([0, 1, 0.5], [0, 1, 0.5], groups=["a", "a", "b"]))
    assert perfect.pvalue == 1.0


def test_one_group_gives_the_widest_interval() -> None:
    found = sc.smece_interval(sc.reliability([0, 1, 0], [0.2, 0.4, 0.6], groups=["a"] * 3))
    assert (found.low, found.high) == (0.0, 1.0)
    assert found.note == "One group does not show how much groups vary."


# Gap intervals


def test_gap_intervals_are_students_for_nearly_exact_labels(rng: np.random.Generator) -> None:
    gap = rng.normal(0.1, 0.01, 30)
    low, high = sc.gap_intervals(sc.reliability(0.6 - gap, np.full(30, 0.6), bins=1))
    half = student.ppf(0.975, 29) * gap.std(ddof=1) / math.sqrt(30)
    assert high[0] - gap.mean() == pytest.approx(half, rel=0.01)
    assert gap.mean() - low[0] == pytest.approx(half, rel=0.01)


@pytest.mark.parametrize("k", [0, 1, 7, 20])
def test_gap_intervals_of_hard_labels_are_exact(k: int) -> None:
    low, high = sc.gap_intervals(np.arange(20) < k, np.full(20, 0.3), bins=1, level=0.9)
    limits = binomtest(k, 20).proportion_ci(0.9)
    assert (low[0], high[0]) == pytest.approx((0.3 - limits.high, 0.3 - limits.low), abs=1e-6)


def inside_for_each_count(n: int, p: float, rate: float, of: Any) -> FloatArray:
    """Return whether limits contain p - rate, or a band the gap, after each number of events."""
    found = []
    for k in range(n + 1):
        rel = sc.reliability(np.arange(n) < k, np.full(n, p), bins=1)
        low, high = of(rel)
        gap = rel.gap[0] if of is sc.consistency_band else p - rate
        found.append(low[0] <= gap <= high[0])
    return np.array(found)


@pytest.mark.parametrize(
    ("n", "p", "rate"), [(150, 0.999, 0.979), (150, 0.001, 0.001), (30, 0.02, 0.004)]
)
def test_few_events_keep_the_coverage_of_gaps(n: int, p: float, rate: float) -> None:
    """The sum is exact. Student's interval covers 0.821 in the first case."""
    inside = inside_for_each_count(n, p, rate, sc.gap_intervals)
    assert binom.pmf(np.flatnonzero(inside), n, rate).sum() >= 0.95


@pytest.mark.parametrize(("n", "p"), [(150, 0.001), (150, 0.999), (10, 0.02), (40, 0.3)])
def test_few_events_keep_the_level_of_the_band(n: int, p: float) -> None:
    inside = inside_for_each_count(n, p, p, sc.consistency_band)
    assert binom.pmf(np.flatnonzero(inside), n, p).sum() >= 0.95
    # One count less at either end would cut off more than 2.5%.
    first, last = np.flatnonzero(inside)[[0, -1]]
    assert first == 0 or binom.cdf(first, n, p) > 0.025
    assert binom.sf(last - 1, n, p) > 0.025 or last == 1


def test_gap_intervals_of_swapped_classes_are_swapped(rng: np.random.Generator) -> None:
    for y in (rng.random(200) < 0.03, np.clip(rng.beta(0.1, 2, 200), 0.001, 0.999)):
        p, w = rng.uniform(0.01, 0.09, 200), rng.exponential(size=200)
        for of in (sc.gap_intervals, sc.consistency_band):
            low, high = of(y, p, bins=1, sample_weight=w)
            other = of(1.0 - y, 1 - p, bins=1, sample_weight=w)
            np.testing.assert_allclose((-other.high, -other.low), (low, high), rtol=1e-6)


def test_skewed_soft_labels_keep_the_coverage_of_gaps(rng: np.random.Generator) -> None:
    """Ten bins of 100 labels of mean 0.02; all Student's intervals hold in 68% of tables."""
    p = np.repeat(np.linspace(0.05, 0.95, 10), 100)
    hits = 0
    for _ in range(300):
        low, high = sc.gap_intervals(rng.beta(0.12, 5.88, 1000), p, simultaneous=True)
        hits += bool(((low <= p[::100] - 0.02) & (p[::100] - 0.02 <= high)).all())
    assert hits / 300 >= 0.95 - 0.025  # two standard errors


def test_simultaneous_intervals_are_wider(rng: np.random.Generator) -> None:
    rel = table(rng)
    low, high = sc.gap_intervals(rel)
    low_all, high_all = sc.gap_intervals(rel, simultaneous=True)
    assert (low_all < low).all()
    assert (high_all > high).all()


# Short coverage runs; benchmarks/interval_coverage.py has the full simulation


def simulated(
    rng: np.random.Generator, kind: str, n: int = 400, sets: int = 400
) -> tuple[FloatArray, list[sc.Reliability]]:
    """Return tables of an overconfident model, and its SMECE of unlimited data with 10 bins."""
    grid = (np.arange(200_000) + 0.5) / 200_000
    rate = 1 / (1 + np.exp(-0.6 * np.log(grid / (1 - grid))))
    theta = np.abs(np.add.reduceat(grid - rate, np.arange(0, 200_000, 20_000))).sum() / 200_000
    tables = []
    for _ in range(sets):
        p = rng.random(n)
        true = 1 / (1 + np.exp(-0.6 * np.log(p / (1 - p))))
        if kind == "hard":
            tables.append(sc.reliability(rng.random(n) < true, p))
        elif kind == "votes":
            tables.append(sc.reliability(rng.binomial(5, true) / 5, p, n_votes=5))
        else:
            tables.append(sc.reliability(true, p))
    return theta, tables


@pytest.mark.parametrize("kind", ["hard", "votes", "exact"])
def test_smece_intervals_keep_coverage(kind: str, rng: np.random.Generator) -> None:
    theta, tables = simulated(rng, kind)
    found = [sc.smece_interval(t) for t in tables]
    coverage = np.mean([i.low <= theta <= i.high for i in found])
    assert coverage >= 0.93  # of 400; at least 0.95 in the full simulation
    assert np.mean([i.debiased for i in found]) < np.mean([i.value for i in found])


@pytest.mark.parametrize("votes", [1, 5])
def test_calibration_test_keeps_its_size(votes: int, rng: np.random.Generator) -> None:
    rejected = 0
    for _ in range(600):
        p = rng.beta(0.5, 0.5, 400)
        rel = sc.reliability(rng.binomial(votes, p) / votes, p)
        rejected += sc.calibration_test(rel).pvalue < 0.05
    assert 0.025 < rejected / 600 < 0.08  # 5% within three standard errors of 600


def test_gap_intervals_keep_coverage(rng: np.random.Generator) -> None:
    inside, every = [], []
    for _ in range(400):
        p = rng.random(600)
        rel = sc.reliability(rng.random(600) < p, p)
        low, high = sc.gap_intervals(rel)
        inside.append(((low <= 0) & (high >= 0)).mean())
        low, high = sc.gap_intervals(rel, simultaneous=True)
        every.append(((low <= 0) & (high >= 0)).all())
    assert 0.94 < np.mean(inside) < 0.985  # the floor for 0/1 labels makes them a little wide
    assert np.mean(every) > 0.93


def clustered(rng: np.random.Generator, size: int) -> sc.Reliability:
    """Return calibrated outcomes of 150 patients with `size` correlated rows each."""
    effect = np.repeat(rng.normal(0, 1.0, 150), size)
    p = np.repeat(rng.random(150), size) * 0.5 + rng.random(150 * size) * 0.5
    score = norm.ppf(p) * math.sqrt(2) + effect  # above the noise with probability p, given p
    y = score > rng.normal(0, 1.0, p.size)
    return sc.reliability(y, p, groups=np.repeat(np.arange(150), size))


def test_intervals_and_test_hold_for_correlated_rows_in_groups(rng: np.random.Generator) -> None:
    grouped, plain, rejected, fooled = [], [], [], []
    for _ in range(300):
        rel = clustered(rng, 6)
        ungrouped = sc.Reliability(rel.bins, rel.sums)
        grouped.append(sc.smece_interval(rel).low <= 0)
        plain.append(sc.smece_interval(ungrouped).low <= 0)
        rejected.append(sc.calibration_test(rel).pvalue < 0.05)
        fooled.append(sc.calibration_test(ungrouped).pvalue < 0.05)
    assert np.mean(grouped) > 0.95
    assert np.mean(plain) < 0.9
    assert np.mean(rejected) < 0.05 + 3 * 0.0126  # three standard errors of 300
    assert np.mean(fooled) > 0.15


def test_equal_gaps_of_exact_labels_are_covered(rng: np.random.Generator) -> None:
    """Nearly all rows have a gap of 0.05. Without the additional row, coverage is 0.88."""
    sets, n = 600, 100
    hits = 0
    for _ in range(sets):
        p = rng.random(n)
        found = sc.smece_interval(sc.reliability(np.maximum(p - 0.05, 0), p, bins=5))
        hits += found.low <= 0.04875 <= found.high
    assert hits / sets >= 0.95  # 0.97 in the full simulation; a standard error of 600 is 0.007


# The consistency band


@pytest.mark.parametrize("kind", ["hard", "votes", "soft"])
@pytest.mark.parametrize("n", [50, 1000])
def test_consistency_band_keeps_its_level(rng: np.random.Generator, kind: str, n: int) -> None:
    inside, filled, all_inside = 0, 0, 0
    for _ in range(400):
        p = rng.random(n)
        votes = {"hard": 1, "votes": 5}.get(kind)
        y = rng.beta(4 * p, 4 - 4 * p) if votes is None else rng.binomial(votes, p) / votes
        rel = sc.reliability(np.clip(y, 0, 1), p, n_votes=votes)
        low, high = sc.consistency_band(rel)
        inside += int(((low <= rel.gap) & (rel.gap <= high)).sum())
        filled += int((rel.count > 0).sum())
        low, high = sc.consistency_band(rel, simultaneous=True)
        all_inside += bool(((low <= rel.gap) & (rel.gap <= high))[rel.count > 0].all())
    # 4,000 gaps: three standard errors are 0.01; of 400 tables 0.033
    assert 0.94 <= inside / filled <= (0.997 if n == 50 else 0.973)  # bins of five rows: wide
    assert all_inside / 400 >= 0.95 - 0.033


def test_band_of_hard_labels_uses_outcome_variance(rng: np.random.Generator) -> None:
    p = rng.random(50_000)
    w = rng.random(50_000)
    rel = sc.reliability(rng.random(50_000) < 0.5, p, bins=4, sample_weight=w)
    low, high = sc.consistency_band(rel, level=0.9)
    for b, inside in enumerate(p // 0.25 == np.arange(4)[:, None]):
        expected = norm.ppf(0.95) * math.sqrt((w**2 * p * (1 - p))[inside].sum()) / w[inside].sum()
        assert high[b] == pytest.approx(expected, rel=0.015)  # half an event wider, and skewed
        assert low[b] == pytest.approx(-expected, rel=0.015)
    assert np.isnan(sc.consistency_band(sc.reliability([0, 1], [0.1, 0.2], bins=2)).low[1])


def test_band_with_groups_takes_the_larger_of_two_variances(rng: np.random.Generator) -> None:
    """The first bin has groups of one row without events, the second has groups of four rows."""
    groups = np.append(np.arange(2000, 4000), np.repeat(np.arange(2000), 10))
    p = np.append(rng.uniform(0, 0.5, 2000), rng.uniform(0.5, 1, 20_000))
    y = np.append(np.zeros(2000), rng.integers(0, 2, 2000)[groups[2000:]])
    rel = sc.reliability(y, p, bins=2, groups=groups)
    high = sc.consistency_band(rel, level=0.9).high
    of_groups, of_rows = np.empty(2), np.empty(2)
    for b, inside in enumerate([p < 0.5, p >= 0.5]):
        sums = np.bincount(groups[inside], (p - y)[inside])
        sizes = np.bincount(groups[inside])
        sums -= sizes * sums.sum() / sizes.sum()
        of_groups[b], of_rows[b] = (sums**2).sum(), (p * (1 - p))[inside].sum()
    assert (of_groups > of_rows).tolist() == [False, True]
    expected = norm.ppf(0.95) * np.sqrt(np.maximum(of_groups, of_rows)) / rel.count
    np.testing.assert_allclose(high, expected, rtol=0.03)


def test_groups_widen_the_band_and_an_empty_table_has_none(rng: np.random.Generator) -> None:
    groups = np.repeat(np.arange(100), 5)
    p = rng.random(100)[groups]
    y = (rng.random(100)[groups] < p).astype(float)
    plain, grouped = sc.reliability(y, p, bins=3), sc.reliability(y, p, bins=3, groups=groups)
    assert (sc.consistency_band(grouped).high > 1.5 * sc.consistency_band(plain).high).all()
    with pytest.raises(sc.InputError, match="no rows"):
        sc.consistency_band(sc.Reliability.empty())
    with pytest.raises(sc.InputError, match="level must be"):
        sc.consistency_band(plain, level=95)


@pytest.mark.parametrize(("n", "p", "rate"), [(60, 0.999, 0.98), (1000, 0.9999, 0.999)])
def test_certain_predictions_with_few_events_are_covered(
    n: int, p: float, rate: float, rng: np.random.Generator
) -> None:
    """So few labels contradict predictions that the observed variance is not informative."""
    held = 0
    for _ in range(300):
        y = (rng.random(n) < rate).astype(float)
        found = sc.smece_interval(sc.reliability(y, np.full(n, p)))
        held += found.low <= abs(p - rate) <= found.high
    assert held >= 285  # of 300; 216 and 186 in expectation before the fix


def test_limit_of_few_events_is_continuous_at_certainty() -> None:
    at, near = (sc.smece_interval(sc.reliability([1.0] * 60, [p] * 60)) for p in (1.0, 1 - 1e-9))
    assert near.high == pytest.approx(at.high, rel=0.01)


def test_outcomes_that_exceed_all_rows_by_rounding_change_no_p_value(
    rng: np.random.Generator,
) -> None:
    p = rng.random(400)
    y = np.where(p < 0.5, rng.random(400) < p, np.clip(p + rng.normal(0, 0.1, 400), 0.01, 0.99))
    rel = sc.reliability(y, p)
    s = rel.sums
    rounded = replace(
        s,
        outcome_prob_var=s.outcome_prob_var * (1 + 1e-15),
        outcome_residual_var=s.outcome_residual_var * (1 + 1e-15),
    )
    assert (rounded.outcome_prob_var > s.prob_var).sum() == 5
    found, expected = (
        sc.calibration_test(sc.Reliability(rel.bins, rounded)),
        sc.calibration_test(rel),
    )
    assert found.pvalue == pytest.approx(expected.pvalue, rel=1e-12)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-12)


def test_weights_of_one_size_change_no_limit_of_few_events(rng: np.random.Generator) -> None:
    y = (rng.random(60) < 0.98).astype(float)
    plain, heavy = (
        sc.smece_interval(sc.reliability(y, np.full(60, 0.999), sample_weight=w))
        for w in (None, np.full(60, 7.0))
    )
    assert heavy.high == pytest.approx(plain.high)


def test_notes_mention_groups() -> None:
    y, p = [0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.3, 0.4]
    found = sc.smece_interval(sc.reliability(y, p, groups=[1, 1, 2, 2]))
    assert found.note == (
        "The effective number of groups is 2.0 of 2. With fewer than 4 the interval may be too narrow."
    )
    many = np.linspace(0.1, 0.9, 200)
    found = sc.smece_interval(sc.reliability(many - 0.05, many, groups=np.arange(200) // 2))
    assert found.note.startswith("A kind of group too rare to be among these 100 could add up to")


# Labels that vary less than their known noise


@pytest.mark.parametrize("kind", ["fixed panel", "happen to be 0 or 1"])
def test_upper_limit_holds_if_known_noise_is_too_large(kind: str, rng: np.random.Generator) -> None:
    """The 80% interval covers if labels vary less than votes or outcomes do."""
    n, bins, sets, held = 1500, 50, 200, 0
    edges = np.linspace(0, 1, bins + 1)
    middle = (edges[1:] + edges[:-1]) / 2
    size = 0.08 * np.sqrt(middle * (1 - middle)) * np.where(np.arange(bins) % 2, 1, -1)
    truth = np.abs(size).mean()
    for _ in range(sets):
        b = rng.integers(0, bins, n)
        p, rate = middle[b], (middle - size)[b]
        if kind == "fixed panel":
            y, votes = np.floor(5 * rate + rng.random(n)) / 5, np.full(n, 5)
        else:
            reach = np.minimum(np.minimum(rate, 1 - rate), 0.3)
            y, votes = rate + reach * rng.choice([-1.0, 1.0], n), None
        found = sc.smece_interval(y, p, n_votes=votes, bins=bins, level=0.8)
        held += found.low <= truth <= found.high
    assert held / sets > 0.8


# Labels that all agree


@pytest.mark.parametrize("n", [5, 9, 30, 100])
def test_lower_limit_allows_for_unobserved_labels(n: int) -> None:
    """Clopper and Pearson: n labels of 1 leave a rate of (alpha / 2)^(1 / n) possible."""
    _, low, high, _ = table_limits(sc.reliability(np.ones(n), np.full(n, 0.5), bins=1), None, 0.95)
    assert low == pytest.approx(max(0.025 ** (1 / n) - 0.5, 0), abs=0.012)
    assert high >= 0.5


@pytest.mark.parametrize("votes", [1, 5])
@pytest.mark.parametrize(("n", "rate"), [(9, 0.8), (15, 0.9), (30, 0.95), (60, 0.98), (300, 0.995)])
def test_labels_that_nearly_all_agree_are_covered(
    n: int, rate: float, votes: int, rng: np.random.Generator
) -> None:
    for low, high, bins in ((0.45, 0.45, 10), (0.0, 0.6, 10)):
        held = 0
        for _ in range(400):
            p = rng.uniform(low, high, n)
            y = rng.binomial(votes, rate, n) / votes
            found = sc.smece_interval(sc.reliability(y, p, bins=bins, n_votes=votes))
            held += found.low <= rate - (low + high) / 2 <= found.high
        assert held / 400 >= 0.94 - 0.011  # a standard error of 400


def test_soft_labels_that_all_agree_count_one_more_row() -> None:
    n = 50
    found = sc.smece_interval(sc.reliability(np.full(n, 0.4), np.full(n, 0.5), bins=1))
    assert found.low == pytest.approx(0.1 - norm.ppf(0.975) * 0.1 / n, abs=1e-6)


# Rounding is not evidence


def test_labels_equal_up_to_rounding_count_as_equal() -> None:
    p, y = np.full(100, 0.1 + 0.2), np.full(100, 0.3)
    assert p[0] != y[0]
    rounded, exact = sc.reliability(y, p), sc.reliability(p, p)
    assert sc.smece_interval(rounded).high == pytest.approx(sc.smece_interval(exact).high)
    assert sc.calibration_test(rounded).pvalue == pytest.approx(1.0, abs=1e-6)
    certain = sc.reliability([1 - 2**-53] * 9, [1.0] * 9)
    assert sc.calibration_test(certain).pvalue == pytest.approx(1.0, abs=1e-6)


def test_soft_labels_contradict_certainty_too() -> None:
    """Labels of mean 0 within [0, 1] are all 0; other bins cannot hide a label that is not."""
    p, y = np.array([0.0] * 5 + [0.5] * 40), np.array([0.0] * 4 + [0.2] + [0.4, 0.6] * 20)
    found = sc.calibration_test(sc.reliability(y, p))
    assert found.pvalue == 0.0
    assert found.share[0] == 1.0


def test_groups_have_no_band_where_predictions_are_certain() -> None:
    rel = sc.reliability([1, 1, 0, 1], [0, 0, 0.5, 0.5], bins=2, groups=[1, 2, 1, 2])
    low, high = sc.consistency_band(rel)
    assert (low[0], high[0]) == (0, 0)
    assert high[1] > 0


@pytest.mark.parametrize(
    ("y", "p"),
    [
        ([0] * 50 + [1] * 50, [0.99] * 50 + [0.01] * 50),
        ([0] * 500 + [1] * 500, [1.0] * 500 + [0.0] * 500),
        ([0] * 10 + [1] * 10, [0.9] * 10 + [0.1] * 10),
        ([0] * 20 + [1] * 180 + [0] * 180 + [1] * 20, [1.0] * 200 + [0.0] * 200),
    ],
)
def test_errors_that_cancel_in_a_pool_are_detected(y: list[int], p: list[float]) -> None:
    assert sc.calibration_test(sc.reliability(y, p)).pvalue < 1e-6
    groups = np.arange(len(y)) // 2
    assert sc.calibration_test(sc.reliability(y, p, groups=groups)).pvalue < 0.01


def test_few_events_keep_the_size_of_the_test(rng: np.random.Generator) -> None:
    """About 1.5 events in 60 rows: the test must not reject a calibrated model too often."""
    p = np.repeat([0.02, 0.98, 0.03], 20)
    rejected = 0
    for _ in range(400):
        y = (rng.random(60) < p).astype(float)
        rejected += sc.calibration_test(sc.reliability(y, p)).pvalue < 0.05
    assert rejected <= 40


# Labels of several kinds in one table, and few events


def mixed_labels(rng: np.random.Generator, p: FloatArray, share: float) -> FloatArray:
    """Return exact probabilities, and single outcomes in this share of the rows."""
    single = rng.random(p.size) < share
    out: FloatArray = np.where(single, rng.random(p.size) < p, p)
    return out


@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_outcomes_mixed_with_exact_labels_are_covered(
    share: float, factor: float, rng: np.random.Generator
) -> None:
    held = 0
    for _ in range(300):
        p = rng.beta(0.5, 30, 200) / 2
        found = sc.smece_interval(mixed_labels(rng, factor * p, share), p)
        held += found.low <= (factor - 1) / 2 * 0.5 / 30.5 <= found.high
    assert held >= 280  # 0.945 minus a standard error; 157 to 217 of 300 before the fix


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_outcomes_mixed_with_exact_labels_keep_test_size(
    share: float, rng: np.random.Generator
) -> None:
    rejected = 0
    for _ in range(400):
        p = rng.beta(0.5, 30, 500)
        rejected += sc.calibration_test(mixed_labels(rng, p, share), p).pvalue < 0.05
    assert rejected <= 0.06 * 400 + 2 * 4.75


def test_unanimous_votes_without_n_votes_keep_test_power(
    rng: np.random.Generator,
) -> None:
    """Labels of 0 and 1 are not outcomes if the other shares contradict them."""
    p = rng.beta(0.5, 30, 3000)
    y = rng.binomial(8, p) / 8
    unknown, known = sc.calibration_test(y, p), sc.calibration_test(y, p, n_votes=8)
    assert unknown.statistic == pytest.approx(known.statistic, rel=0.15)


def rare(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Draw predictions mostly below 5%, and calibrated soft labels that are skewed toward 1."""
    p = np.clip(rng.beta(0.6, 40, n), 1e-9, None)
    return rng.beta(3 * p, 3 * (1 - p)), p


def test_skewed_soft_labels_keep_test_size_and_coverage(rng: np.random.Generator) -> None:
    """Without the allowance for skewness, 13% were rejected and 11% of the limits above 0."""
    tables = [sc.reliability(*rare(rng, 100)) for _ in range(600)]
    assert 0.01 < np.mean([sc.calibration_test(t).pvalue < 0.05 for t in tables]) < 0.075
    assert np.mean([sc.smece_interval(t).low > 0 for t in tables]) < 0.065


def test_numbers_of_votes_that_depend_on_the_rate_keep_test_size(rng: np.random.Generator) -> None:
    """With the noise in proportion to p(1 - p), 26% were rejected."""
    p = rng.choice([0.001, 0.01, 0.03, 0.1, 0.25, 0.4, 0.6, 0.8, 0.93, 0.99], (300, 1000))
    votes = 1 + np.floor(48 * p * (1 - p)).astype(int)
    each = zip(rng.binomial(votes, p) / votes, p, votes, strict=True)
    tests = (sc.calibration_test(y, q, bins=50, n_votes=m) for y, q, m in each)
    assert 0.015 < np.mean([found.pvalue < 0.05 for found in tests]) < 0.09


def test_precise_soft_labels_of_rare_predictions_keep_test_size(rng: np.random.Generator) -> None:
    """With p(1 - p) as the number of events, 18% were rejected."""
    p = rng.beta(1, 40, (300, 3000))
    precision = np.where(p < 0.1, 60.0, 5.0)
    labels = rng.beta(precision * p, precision * (1 - p))
    tests = (sc.calibration_test(y, q, bins=50) for y, q in zip(labels, p, strict=True))
    assert 0.015 < np.mean([found.pvalue < 0.05 for found in tests]) < 0.11


def test_clustered_votes_without_n_votes_keep_test_size(rng: np.random.Generator) -> None:
    """Shares of unanimous votes are as noisy as the other shares, not all equally noisy."""
    rejected = []
    for _ in range(200):
        p = rng.choice([0.005, 0.03, 0.5], 5000, p=[0.6, 0.35, 0.05])
        votes = rng.integers(1, 9, p.size)
        found = sc.calibration_test(rng.binomial(votes, p) / votes, p)
        rejected.append(found.pvalue < 0.05)
    assert np.mean(rejected) < 0.085


@pytest.mark.parametrize("few", [True, False])
def test_limits_of_skewed_outcomes_equal_their_formulas(few: bool) -> None:  # noqa: FBT001
    """One bin: r^2 = z^2 (s^2 + ... + kappa r), with kappa the third cumulant over the variance."""
    n, p, events, z = 1000, 0.1, 20 if few else 190, 1.959963984540054
    y = np.repeat([1.0, 0.0], [events, n - events])
    found = sc.smece_interval(y, np.full(n, p), bins=1)
    theta, square = abs(p - events / n), ((p - y) ** 2).sum()
    variance = max(square, n * p * (1 - p))
    kappa = (1 - 2 * p) / n
    if few:
        wider = variance * (1 + 1 / (2 * n))
        assert n * theta > 6 * np.sqrt(wider)  # so the sign is certain, and the estimate is theta
        rest = variance / n**2 - theta**2 / n * (1 - 1 / n)
        c = z**2 / n
        half = c * theta + z**2 / 2 * kappa
        reach = (half + np.sqrt(half**2 + (1 + c) * z**2 * rest)) / (1 + c)
        assert found.low == pytest.approx(theta - reach, rel=1e-6)
    else:
        # The gaps of a single bin add nothing, because its size is not random.
        third = theta * (3 * variance - 2 * n * theta**2) - n * (
            3 * theta * variance / n - 2 * theta**3
        )
        assert third == pytest.approx(0, abs=1e-9)
        half = (2 * z**2 + 1) / 6 * kappa
        rest = variance / n**2 - theta**2 / n
        reach = half + np.sqrt(half**2 + z**2 * rest)
        assert found.high == pytest.approx(theta + reach, rel=1e-6)


def test_rare_rows_with_large_gaps_raise_the_upper_limit() -> None:
    """Their number is random and skewed, whatever the labels."""
    p, gap = np.repeat([0.25, 0.55], [190, 10]), np.repeat([0.0, 0.3], [190, 10])
    noise = np.tile([-0.001, 0.001], 100)
    found = sc.smece_interval(p - gap + noise, p)
    plain = found.value + 1.96 * np.sqrt((10 * 0.3**2 - 200 * found.value**2) / 200**2)
    assert plain * 1.05 < found.high < plain * 1.2


@pytest.mark.parametrize("groups", [None, np.arange(300) // 3])
def test_outcomes_equal_labels_of_one_vote(groups: Any, rng: np.random.Generator) -> None:
    p = rng.beta(0.5, 5, 300)
    y = (rng.random(300) < p).astype(float)
    plain, voted = (sc.reliability(y, p, n_votes=m, groups=groups) for m in (None, 1))
    for call in (sc.smece_interval, sc.calibration_test, sc.gap_intervals, sc.consistency_band):
        assert str(call(plain)) == str(call(voted))


def test_few_events_of_soft_labels_add_a_note() -> None:
    p = np.full(100, 0.01)
    y = np.where(np.arange(100) % 2, 0.001, 0.03)
    note = sc.smece_interval(y, p).note
    assert "0/1 labels would show about 0.99 events" in note
    assert not sc.smece_interval(y, p, n_votes=1000).note


def test_merged_tables_keep_their_outcomes(rng: np.random.Generator) -> None:
    """The sum of the tables of outcomes and of soft labels is the table of both."""
    p = rng.beta(0.5, 30, 300)
    y = mixed_labels(rng, p, 0.5)
    single = (y == 0) | (y == 1)
    whole = sc.reliability(y, p)
    merged = sc.reliability(y[single], p[single]) + sc.reliability(y[~single], p[~single])
    assert sc.smece_interval(merged).high == pytest.approx(sc.smece_interval(whole).high)
    assert sc.calibration_test(merged).pvalue == pytest.approx(sc.calibration_test(whole).pvalue)


def test_one_group_has_p_value_1() -> None:
    rel = sc.reliability([0.0, 1.0, 1.0], [0.2, 0.4, 0.9], groups=["a", "a", "a"])
    assert sc.calibration_test(rel).pvalue == 1.0


@pytest.mark.parametrize("level", [Fraction(9, 10), np.longdouble("0.9"), np.timedelta64(1, "s")])
def test_level_of_another_kind_of_number_is_refused(level: Any) -> None:
    rel = sc.reliability([0.0, 1.0, 1.0], [0.2, 0.4, 0.9])
    with pytest.raises(sc.InputTypeError, match="level must be a number between 0 and 1"):
        sc.smece_interval(rel, level=level)


def test_interval_of_tiny_weights_and_many_votes_is_that_of_weights_of_1() -> None:
    labels, predictions = [0.65, 0.05], [0.78, 0.29]
    tiny = sc.smece_interval(labels, predictions, sample_weight=[1e-100] * 2, n_votes=2**52)
    plain = sc.smece_interval(labels, predictions, n_votes=2**52)
    assert (tiny.low, tiny.high) == pytest.approx((plain.low, plain.high), rel=1e-12)
