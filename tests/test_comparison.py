from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtr, ndtri
from strategies import N_BINS, UNIT, WEIGHT

import softcal as sc
from softcal.inference.comparison import Comparison, compare, compare_many
from softcal.table.build import tables_of_models

if TYPE_CHECKING:
    from softcal.table.joint import JointTable

Row = tuple[float, float, float, float]
ROWS = st.lists(st.tuples(UNIT, UNIT, UNIT, WEIGHT), min_size=1, max_size=60).filter(
    lambda found: any(w > 0 for *_, w in found)
)


def joined(y: Any, a: Any, b: Any, **options: Any) -> JointTable:
    return tables_of_models(y, {"a": a, "b": b}, **{"bins": 10} | options).pair("a", "b")


def tables(data: list[Row], n: int = 10, group: Any = None) -> sc.TableSet:
    y, a, b, w = zip(*data, strict=True)
    return tables_of_models(y, {"a": a, "b": b}, bins=n, sample_weight=w, groups=group)


def assert_same_card(left: JointTable, right: JointTable) -> None:
    assert (left.n, left.differing) == (right.n, right.differing)
    assert (left.infinite_a, left.infinite_b) == (right.infinite_a, right.infinite_b)
    size = max(1.0, float(left.a.sums.weight_sq.sum()))
    np.testing.assert_allclose(left.cross, right.cross, rtol=1e-12, atol=1e-12 * size)
    for name in ("brier", "log_loss"):
        ours, theirs = getattr(left, name), getattr(right, name)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-9 * size)
    for ours, theirs in zip((left.a, left.b), (right.a, right.b), strict=True):
        for mine, yours in zip(ours.sums, theirs.sums, strict=True):
            np.testing.assert_allclose(mine, yours, rtol=1e-12, atol=1e-12 * size)


def some(rng: np.random.Generator, n: int = 500) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    p = rng.beta(0.7, 0.7, n)
    y = (rng.random(n) < p).astype(float)
    return y, np.clip(p * 1.2, 0.001, 0.999), np.clip(p**1.2, 0.001, 0.999)


# The joint table


@given(data=ROWS, n=N_BINS, cuts=st.lists(st.integers(0, 60), max_size=3), size=st.integers(0, 4))
def test_joint_tables_of_added_sets_equal_that_of_all_rows(
    data: list[Row], n: int, cuts: list[int], size: int
) -> None:
    """Also with groups of several rows, in one part or in two."""
    group = np.arange(len(data)) // size if size else None
    ends = [0, *sorted(min(c, len(data)) for c in cuts), len(data)]
    parts = [
        tables(data[i:j], n, None if group is None else group[i:j])
        for i, j in pairwise(ends)
        if any(w > 0 for *_, w in data[i:j])
    ]
    merged = sum(parts[1:], start=parts[0]).pair("a", "b")
    whole = tables(data, n, group).pair("a", "b")
    assert_same_card(merged, whole)
    ours, theirs = compare(merged), compare(whole)
    for name in ("difference", "debiased", "low", "high"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=1e-9, abs=1e-12)


@given(data=ROWS, n=N_BINS)
def test_joint_table_contains_the_table_of_each_model(data: list[Row], n: int) -> None:
    y, a, b, w = zip(*data, strict=True)
    found = tables(data, n).pair("a", "b")
    assert found.a == sc.reliability(y, a, bins=n, sample_weight=w)
    assert found.b == sc.reliability(y, b, bins=n, sample_weight=w)


def test_cross_equals_sums_over_pairs_of_bins(rng: np.random.Generator) -> None:
    y, a, b = some(rng)
    w = rng.random(y.size)
    found = joined(y, a, b, bins=4, sample_weight=w)
    for i in range(4):
        for j in range(4):
            here = (np.minimum(a * 4, 3).astype(int) == i) & (np.minimum(b * 4, 3).astype(int) == j)
            by_hand = (w**2 * (a - y) * (b - y))[here].sum()
            assert found.cross[i, j] == pytest.approx(by_hand, abs=1e-12)


def test_joint_tables_are_frozen_and_have_a_repr() -> None:
    found = joined([0.5], [0.4], [0.6], bins=2)
    assert repr(found) == "JointTable(a, b, n=1, bins=2, differing=1)"
    with pytest.raises(ValueError, match="read-only"):
        found.cross[0, 0] = 1


# Input validation


def test_misaligned_indexes_of_models_are_refused() -> None:
    a = pd.Series([0.1, 0.2], index=[0, 1])
    b = pd.Series([0.1, 0.2], index=[1, 0])
    with pytest.raises(sc.InputError, match="a and b must have the same pandas index"):
        compare([0, 1], {"a": a, "b": b})
    with pytest.raises(sc.InputError, match="one and two must have the same pandas index"):
        compare_many([0, 1], {"one": a, "two": b})


def test_bad_values_are_named_by_model() -> None:
    with pytest.raises(sc.InputError, match=r"b must be in \[0, 1\]"):
        compare([0, 1], {"a": [0.1, 0.2], "b": [0.1, 1.2]})
    with pytest.raises(sc.InputError, match="a and b must have the same length"):
        compare([0, 1], {"a": [0.1, 0.2], "b": [0.1]})
    with pytest.raises(sc.InputError, match=r"forest must be in \[0, 1\]"):
        compare_many([0, 1], {"forest": [0.1, 1.2], "tree": [0.1, 0.2]})


def test_invalid_comparisons_are_refused() -> None:
    with pytest.raises(sc.InputError, match="level must be between 0 and 1"):
        compare([0, 1], {"a": [0.1, 0.2], "b": [0.1, 0.2]}, level=95)
    with pytest.raises(sc.InputError, match="at most 2000 bins: got 3600"):
        compare([0, 1], {"a": [0.1, 0.2], "b": [0.1, 0.2]}, bins=3600)
    functions: tuple[Any, ...] = (compare, compare_many, partial(tables_of_models, bins=10))
    for one in functions:
        with pytest.raises(sc.InputError, match=r"y_prob must hold two models.*: got 1"):
            one([0, 1], {"one": [0.1, 0.2]})
        with pytest.raises(sc.InputTypeError, match=r"must map names of models .*: got list"):
            one([0, 1], [[0.1, 0.2]])
        with pytest.raises(TypeError, match=r"must map names of models|positional"):
            one([0, 1], [0.1, 0.2], [0.1, 0.2])
    with pytest.raises(sc.InputTypeError, match="must map names of models"):
        compare([0, 1], {"a": [0.1, 0.2], "b": [0.1, 0.2]}, "b")  # type: ignore[call-overload]
    with pytest.raises(sc.InputError, match=r"must hold two models: got 3\. Use compare_many"):
        compare([0, 1], {name: [0.1, 0.2] for name in "abc"})
    with pytest.raises(sc.InputTypeError, match=r"must map names of models .*: got NoneType"):
        compare_many([0, 1])


# The comparison


@given(data=ROWS, n=N_BINS)
def test_comparing_a_model_with_itself_gives_zero(data: list[Row], n: int) -> None:
    y, a, _, w = zip(*data, strict=True)
    found = compare(y, {"a": a, "b": a}, bins=n, sample_weight=w)
    assert found.difference == found.debiased == 0
    assert found.low <= 0 <= found.high
    assert found.pvalue == 1
    assert found.brier.difference == 0
    assert found.brier.pvalue == 1
    assert found.log_loss.difference == 0
    assert found.log_loss.pvalue == 1


@given(data=ROWS, n=N_BINS)
def test_swapping_models_flips_signs(data: list[Row], n: int) -> None:
    y, a, b, w = zip(*data, strict=True)
    one = compare(y, {"a": a, "b": b}, bins=n, sample_weight=w)
    two = compare(y, {"a": b, "b": a}, bins=n, sample_weight=w)
    assert (one.smece_a, one.smece_b) == (two.smece_b, two.smece_a)
    close = pytest.approx
    for left, right in ((one, two), (one.brier, two.brier), (one.log_loss, two.log_loss)):
        assert isinstance(left, Comparison) == isinstance(right, Comparison)
        assert left.difference == close(-right.difference, abs=1e-12)
        assert left.low == close(-right.high, rel=1e-6, abs=1e-7)
        assert left.high == close(-right.low, rel=1e-6, abs=1e-7)


@given(data=ROWS, n=N_BINS)
def test_comparison_interval_is_finite_and_contains_the_difference(data: list[Row], n: int) -> None:
    found = compare(tables(data, n).pair("a", "b"))
    assert -1 <= found.low <= found.difference + 1e-12
    assert found.difference - 1e-12 <= found.high <= 1
    assert 0 < found.pvalue <= 1
    assert -1 <= found.brier.low <= found.brier.high <= 1
    for mean in (found.brier, found.log_loss):
        assert not any(math.isnan(x) for x in vars(mean).values())


@given(data=ROWS, weight=st.integers(1, 4))
def test_weight_of_k_equals_k_copies_of_the_row(data: list[Row], weight: int) -> None:
    y, a, b, _ = zip(*data, strict=True)
    one = compare(y, {"a": a, "b": b}, sample_weight=[weight] * len(y))
    two = compare(y * weight, {"a": a * weight, "b": b * weight})
    assert one.difference == pytest.approx(two.difference, abs=1e-12)
    assert one.brier.difference == pytest.approx(two.brier.difference, abs=1e-12)
    assert one.log_loss.difference == pytest.approx(two.log_loss.difference, rel=1e-9, abs=1e-9)


def test_scaling_weights_does_not_change_the_comparison(rng: np.random.Generator) -> None:
    y, a, b = some(rng)
    w = rng.random(y.size) + 0.1
    one, two = (compare(y, {"a": a, "b": b}, sample_weight=scale * w) for scale in (1.0, 1e6))
    for name in ("difference", "debiased", "low", "high", "pvalue"):
        assert getattr(one, name) == pytest.approx(getattr(two, name), abs=1e-9)
    assert one.brier.high == pytest.approx(two.brier.high)


def test_brier_difference_equals_hand_computation() -> None:
    # Squares 0.04 and 0.01 against 0.09 and 0.01: differences -0.05 and 0.
    found = compare([0.0, 1.0], {"a": [0.2, 0.9], "b": [0.3, 0.9]}).brier
    assert found.difference == pytest.approx(-0.025)
    half = 0.025 * math.tan(math.pi * 0.475)  # Student's t with one degree of freedom
    assert (found.low, found.high) == pytest.approx((-0.025 - half, -0.025 + half))
    # Student's p-value is 0.5, but one more event could reverse the difference.
    assert found.pvalue == 1


def test_mean_differences_equal_the_paired_t_test(rng: np.random.Generator) -> None:
    y, a, b = some(rng)
    found = compare(y, {"a": a, "b": b}, level=0.9)
    log_a, log_b = (-np.log(np.where(y == 1, p, 1 - p)) for p in (a, b))
    for ours, x, z in ((found.brier, (a - y) ** 2, (b - y) ** 2), (found.log_loss, log_a, log_b)):
        theirs = stats.ttest_rel(x, z)
        interval = theirs.confidence_interval(0.9)
        assert ours.pvalue == pytest.approx(theirs.pvalue)
        assert (ours.low, ours.high) == pytest.approx((interval.low, interval.high))


def test_infinite_log_loss_is_reported_without_nan() -> None:
    y, never, fine = [1.0, 0.0, 0.5], [0.0, 0.1, 0.5], [0.9, 0.1, 0.5]
    expected = {(0, 1): math.inf, (1, 0): -math.inf, (0, 0): 0.0}
    for (i, j), difference in expected.items():
        found = compare(y, {"a": (never, fine)[i], "b": (never, fine)[j]}).log_loss
        assert (found.difference, found.low, found.high) == (difference, -math.inf, math.inf)
        assert found.pvalue == 1
    absent = compare(y, {"a": never, "b": fine}, sample_weight=[0, 1, 1]).log_loss
    assert absent.difference == 0


def test_comparison_of_one_row_has_the_widest_interval() -> None:
    found = compare([1.0], {"a": [0.9], "b": [0.2]})
    assert (found.low, found.high, found.pvalue) == (-1, 1, 1)
    assert (found.brier.low, found.brier.high) == (-1, 1)
    assert (found.log_loss.low, found.log_loss.high) == (-math.inf, math.inf)


def test_pvalue_is_the_alpha_whose_interval_touches_0(rng: np.random.Generator) -> None:
    y, a, b = some(rng, 2000)
    table = joined(y, a, b)
    p = compare(table).pvalue
    assert 1e-30 < p < 1
    wider, narrower = (compare(table, level=1 - p * f) for f in (0.99, 1.01))
    assert wider.low <= 0 <= wider.high
    assert narrower.low > 0 or narrower.high < 0


def test_certain_difference_has_the_smallest_pvalue(rng: np.random.Generator) -> None:
    p = rng.random(5000)
    assert compare(p, {"a": p, "b": 1 - p}).pvalue == 1e-30


def test_comparison_intervals_of_higher_level_contain_lower(rng: np.random.Generator) -> None:
    y, a, b = some(rng)
    found = [compare(y, {"a": a, "b": b}, level=level) for level in (0.5, 0.9, 0.95, 0.99, 0.999)]
    assert all(x.low >= y.low and x.high <= y.high for x, y in pairwise(found))


def test_similar_models_have_a_narrower_interval_than_either_alone(
    rng: np.random.Generator,
) -> None:
    from softcal.inference.smece import smece_interval

    p = rng.random(5000)
    y = (rng.random(5000) < p).astype(float)
    a = p**1.3
    b = np.clip(a + 0.001 * rng.standard_normal(5000), 0, 1)
    both = compare(y, {"a": a, "b": b})
    alone = smece_interval(sc.reliability(y, a))
    assert both.high - both.low < (alone.high - alone.low) / 3


@pytest.mark.parametrize("other", [1.0, 1.45])
def test_comparison_intervals_keep_coverage(rng: np.random.Generator, other: float) -> None:
    """Compare an overconfident model with a calibrated one, and with a similar one."""

    def models(c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return ndtr(1.6 * ndtri(c)), ndtr(other * ndtri(c))

    grid = (np.arange(200_000) + 0.5) / 200_000  # predictions are uniform
    truth = sc.smece(grid, models(grid)[0]) - sc.smece(grid, models(grid)[1])
    hits = 0
    for _ in range(150):
        c = rng.random(1000)
        found = compare(rng.random(1000) < c, dict(zip("ab", models(c), strict=True)))
        hits += found.low <= truth <= found.high
    assert hits >= 0.93 * 150


def test_row_order_does_not_matter_for_constant_residuals(
    rng: np.random.Generator,
) -> None:
    """Such a model has no variance, so the correlation was a ratio of rounding errors."""
    q = rng.beta(0.2, 0.2, 60)
    found = [
        compare(np.zeros(60), {"a": np.full(60, 0.5), "b": rng.permutation(q)}, bins=15)
        for _ in range(8)
    ]
    assert np.ptp([each.low for each in found]) < 1e-9
    assert np.ptp([each.high for each in found]) < 1e-9


@pytest.mark.parametrize("labels", ["hard", "votes", "soft"])
def test_equal_models_of_one_bin_are_rarely_told_apart(
    rng: np.random.Generator, labels: str
) -> None:
    """Chance decides the common sign of both gaps; 33% of 0/1 data sets were told apart."""
    models = {"a": np.full(1000, 0.448), "b": np.full(1000, 0.452)}
    found = []
    for _ in range(150):
        y = (rng.random(1000) < 0.45).astype(float)
        if labels != "hard":
            y = rng.binomial(3, 0.45, 1000) / 3 if labels == "votes" else rng.beta(1.8, 2.2, 1000)
        found.append(compare(y, models, n_votes=3 if labels == "votes" else None))
    assert sum(each.pvalue < 0.05 for each in found) <= 0.08 * 150
    assert sum(each.low <= 0 <= each.high for each in found) >= 0.92 * 150
    assert max(each.high - each.low for each in found) < 0.01


@pytest.mark.parametrize("n", [50, 300])
@pytest.mark.parametrize("flipped", [0, 1])
def test_missing_events_do_not_favor_the_wrong_model(n: int, flipped: int) -> None:
    """The truth may be 0.01: there is no event in 5% of data sets of 300 rows."""
    y, a, b = np.zeros(n), np.full(n, 0.001), np.full(n, 0.01)
    y, a, b = (np.abs(flipped - x) for x in (y, a, b))
    found = compare(y, {"a": a, "b": b})
    assert found.high > 0.0089
    # With a rate of 0.0055, both losses are about equal, and the data are not unusual.
    for each in (found, found.brier, found.log_loss):
        assert each.low < 0 < each.high
        assert each.pvalue > 0.3


def test_missing_events_are_evidence_with_many_rows() -> None:
    y = np.zeros(3000)
    found = compare(y, {"a": y + 0.001, "b": y + 0.01})
    for each in (found, found.brier, found.log_loss):
        assert each.high < 0
        assert 1e-9 < each.pvalue < 1e-3  # a rate of 0.0055 has no event with p = 7e-8


def test_missing_events_in_neighboring_bins_do_not_favor_the_wrong_model() -> None:
    y = np.zeros(40)
    found = compare(y, {"a": y + 0.04, "b": y + 0.06}, bins=20)
    assert found.high > 0.019
    assert found.brier.pvalue > 0.1


@pytest.mark.parametrize("option", [{}, {"n_votes": 5}, {"groups": np.arange(50)}])
def test_equal_residuals_are_weak_evidence(option: dict[str, Any]) -> None:
    """A variance of 0 gave p-values down to 1e-264; 7% of unobserved rows may differ."""
    y = np.full(50, 0.2)
    found = compare(y, {"a": y - 0.02, "b": y + 0.03}, **option)
    for each in (found, found.brier, found.log_loss):
        assert each.pvalue > 1e-6


LEVEL = st.floats(0.5, 0.999)


@given(data=ROWS, n=N_BINS, level=LEVEL)
def test_0_is_inside_exactly_if_the_pvalue_is_at_least_alpha(
    data: list[Row], n: int, level: float
) -> None:
    found = compare(tables(data, n).pair("a", "b"), level=level)
    for each in (found, found.brier, found.log_loss):
        assert (each.low <= 0 <= each.high) == (each.pvalue >= 1 - level)


@given(data=ROWS, n=N_BINS, level=LEVEL)
def test_0_is_inside_exactly_if_the_holm_pvalue_is_at_least_alpha(
    data: list[Row], n: int, level: float
) -> None:
    y, a, b, w = zip(*data, strict=True)
    models = {"a": a, "b": b, "between": np.add(a, b) / 2, "flat": np.full(len(y), 0.5)}
    found = compare_many(y, models, bins=n, sample_weight=w, level=level)
    for pair in found.pairs:
        one = pair.comparison
        assert (one.low <= 0 <= one.high) == (pair.pvalue >= 1 - level)
        for each in (one, one.brier, one.log_loss):
            assert (each.low <= 0 <= each.high) == (each.pvalue >= 1 - one.level)


def skewed_rare(n: int = 150) -> Any:
    """Return rare predictions whose mean rests on the largest of them."""
    return ndtr(-3.2 + 0.4 * ndtri((np.arange(n) + 0.5) / n))


@pytest.mark.parametrize("label", [0.0, 1e-9])
def test_unseen_events_allow_for_unseen_predictions(label: float) -> None:
    """Soft labels covered 79%: the interval ended at the observed difference in predictions."""
    p = skewed_rare()
    found = compare(np.full(p.size, label), {"a": 0.1 * p, "b": p})
    assert found.high > 1.05 * float(np.mean(0.9 * p))


def test_unseen_events_are_at_large_predictions() -> None:
    """Brier differences covered 78%: events were placed at the mean prediction of the bin."""
    p = skewed_rare(2000)
    found = compare(np.zeros(p.size), {"a": 0.1 * p, "b": p}).brier
    per_event = 2 * 0.9 * float((p**2).sum() / p.sum()) / p.size
    assert found.high >= found.difference + 3.6 * per_event


@pytest.mark.parametrize("label", [0.0, 0.2, 1.0])
def test_labels_that_equal_predictions_are_weak_evidence(label: float) -> None:
    """Residuals of 0 gave p-values of 1e-30 for Brier score and log loss."""
    y = np.full(50, label)
    found = compare(y, {"a": y, "b": np.abs(y - 0.01)})
    for each in (found.brier, found.log_loss):
        assert each.difference < 0 < each.high
    assert found.pvalue > 1e-6


def test_difference_of_calibrated_models_stays_within_their_upper_limits(
    rng: np.random.Generator,
) -> None:
    """No SMECE is below 0, so the difference is not above the upper limit of the first model."""
    z = rng.standard_normal((3, 2000))
    y = rng.random(2000) < ndtr(z[0] + z[1] + z[2])
    found = compare(y, {"a": ndtr((z[0] + z[1]) / 2**0.5), "b": ndtr((z[0] + z[2]) / 2**0.5)})
    level = 1 - 0.9 * 0.05  # of each of the two intervals that are intersected
    a, b = (sc.smece_interval(y, ndtr((z[0] + each) / 2**0.5), level=level) for each in z[1:])
    assert -1.001 * b.high <= found.low < found.high <= 1.001 * a.high  # of which skewness is .001


# Groups


def test_cross_with_groups_uses_sums_of_groups(rng: np.random.Generator) -> None:
    y, a, b = some(rng, 300)
    w, group = rng.random(300), rng.integers(0, 40, 300)
    found = joined(y, a, b, bins=4, sample_weight=w, groups=group)
    bin_a, bin_b = (np.minimum(p * 4, 3).astype(int) for p in (a, b))
    sums_a, sums_b = np.zeros((40, 4)), np.zeros((40, 4))
    np.add.at(sums_a, (group, bin_a), w * (a - y))
    np.add.at(sums_b, (group, bin_b), w * (b - y))
    np.testing.assert_allclose(found.cross, sums_a.T @ sums_b, atol=1e-12)
    loss = np.bincount(group, w * ((a - y) ** 2 - (b - y) ** 2))
    weight = np.bincount(group, w)
    expected = (loss.sum(), (weight * loss).sum(), (loss**2).sum())
    np.testing.assert_allclose(found.brier, expected, atol=1e-12)
    assert found.differing == 40


def test_groups_of_one_row_equal_no_groups(rng: np.random.Generator) -> None:
    y, a, b = some(rng)
    w = rng.random(y.size) + 0.1
    plain = compare(y, {"a": a, "b": b}, sample_weight=w)
    each = compare(y, {"a": a, "b": b}, sample_weight=w, groups=np.arange(y.size))
    for name in ("difference", "debiased", "low", "high", "pvalue"):
        assert getattr(each, name) == pytest.approx(getattr(plain, name), rel=1e-6, abs=1e-9)
    for ours, theirs in ((each.brier, plain.brier), (each.log_loss, plain.log_loss)):
        assert list(vars(ours).values()) == pytest.approx(list(vars(theirs).values()))


def test_copies_of_rows_within_a_group_keep_the_interval(rng: np.random.Generator) -> None:
    _, a, b = some(rng, 400)
    y = rng.binomial(5, (a + b) / 2) / 5
    once = compare(y, {"a": a, "b": b})
    labels, *both = (np.repeat(x, 4) for x in (y, a, b))
    four = dict(zip("ab", both, strict=True))
    copied = compare(labels, four, groups=np.repeat(np.arange(400), 4))
    fooled = compare(labels, four)
    assert copied.brier.pvalue == pytest.approx(once.brier.pvalue)
    # Covariances of the bins are estimated over groups, and are 0 for independent rows.
    assert copied.high - copied.low == pytest.approx(once.high - once.low, rel=0.015)
    assert fooled.high - fooled.low < 0.8 * (once.high - once.low)
    assert fooled.brier.pvalue < once.brier.pvalue


def test_comparison_of_one_group_has_the_widest_interval() -> None:
    found = compare([1.0, 0.0], {"a": [0.9, 0.2], "b": [0.2, 0.3]}, groups=["a", "a"])
    assert (found.low, found.high, found.pvalue) == (-1, 1, 1)
    assert (found.brier.low, found.brier.high) == (-1, 1)


def test_comparison_with_groups_and_weights_keeps_coverage(rng: np.random.Generator) -> None:
    """150 patients with six correlated rows; benchmarks/grouped.py has the full simulation."""
    calibrated = (np.arange(60_000) + 0.5) / 60_000
    truth = sc.smece(calibrated, ndtr(1.5 * ndtri(calibrated)))
    patient = np.repeat(np.arange(150), 6)
    hits = 0
    for _ in range(200):
        effect = rng.standard_normal(150)[patient]
        q = rng.standard_normal(900)
        y = rng.random(900) < ndtr(math.sqrt(2) * q + effect)
        w = np.exp(rng.standard_normal(900))
        found = compare(y, {"a": ndtr(1.5 * q), "b": ndtr(q)}, sample_weight=w, groups=patient)
        hits += found.low <= truth <= found.high
    assert hits >= 0.93 * 200


def test_compare_many_works_with_groups(rng: np.random.Generator) -> None:
    y, a, b = some(rng, 300)
    groups = np.arange(300) // 5
    pair = compare_many(y, {"a": a, "b": b}, groups=groups).pairs[0]
    one, two = (a, b) if pair.a == "a" else (b, a)
    found = compare(y, {pair.a: one, pair.b: two}, groups=groups)
    for name in ("difference", "low", "high", "pvalue"):
        assert getattr(pair.comparison, name) == pytest.approx(getattr(found, name), rel=1e-12)


# Many models


def test_ranking_uses_holms_correction(rng: np.random.Generator) -> None:
    p = rng.random(4000)
    y = (rng.random(4000) < p).astype(float)
    models = {"off": p**2, "good": p, "twin": np.clip(p + 1e-6, 0, 1), "worse": p**4}
    found = compare_many(y, models)
    assert found.models[2:] == ("off", "worse")
    assert list(found.smece.values()) == sorted(found.smece.values())
    assert found.indistinguishable == ((found.models[0], found.models[1]),)
    raw = sorted(pair.comparison.pvalue for pair in found.pairs)
    by_hand = np.minimum(1, np.maximum.accumulate(np.array(raw) * np.arange(len(raw), 0, -1)))
    np.testing.assert_allclose(sorted(pair.pvalue for pair in found.pairs), by_hand)
    one = found.pairs[-1]
    level = one.comparison.level
    assert one.comparison == compare(y, {one.a: models[one.a], one.b: models[one.b]}, level=level)
    assert all(pair.comparison.difference <= 0 for pair in found.pairs)


def test_intervals_of_pairs_agree_with_holms_correction(rng: np.random.Generator) -> None:
    """A corrected p-value of .204 stood beside an interval that excluded 0."""
    told_apart = 0
    for _ in range(20):
        p = rng.random(400)
        models = {f"m{k}": p ** (1 + 0.25 * k) for k in range(4)}
        found = compare_many((rng.random(400) < p).astype(float), models, level=0.9)
        for pair in found.pairs:
            one = pair.comparison
            apart = (pair.a, pair.b) not in found.indistinguishable
            assert apart == (not one.low <= 0 <= one.high)
            assert 0.9 - 1e-12 <= one.level <= 1 - 0.1 / 6 + 1e-12
            told_apart += apart
    assert 20 <= told_apart <= 100
