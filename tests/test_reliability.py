from __future__ import annotations

import json
import math
import pickle
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from same_tables import assert_same_table
from strategies import N_BINS, rows, weighted_rows

import softcal as sc
from softcal.table.files import _from_json, content, set_of, written
from softcal.table.kernel import SUM_NAMES


def table(data: list[tuple[float, float]], n: int = 10) -> sc.Reliability:
    y, p = zip(*data, strict=True)
    return sc.reliability(y, p, bins=n)


def assert_close(left: sc.Reliability, right: sc.Reliability) -> None:
    assert left.bins == right.bins
    np.testing.assert_array_equal(left.count, right.count)
    for a, b in zip(left.sums, right.sums, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13 * max(1.0, left.n))


@given(data=rows(), n=N_BINS)
def test_smece_equals_exact_arithmetic(data: list[tuple[float, float]], n: int) -> None:
    y, p = (list(column) for column in zip(*data, strict=True))
    exact = oracle.smece(oracle.rows(y, p), oracle.exact_bins(n))
    assert math.isclose(table(data, n).smece, float(exact), rel_tol=1e-13, abs_tol=1e-15)


@given(data=weighted_rows(), n=N_BINS)
def test_weighted_smece_equals_exact_arithmetic(
    data: list[tuple[float, float, float]], n: int
) -> None:
    y, p, w = (list(column) for column in zip(*data, strict=True))
    exact = oracle.smece(oracle.rows(y, p, w), oracle.exact_bins(n))
    ours = sc.smece(y, p, bins=n, sample_weight=w)
    assert math.isclose(ours, float(exact), rel_tol=1e-13, abs_tol=1e-15)


@given(data=rows(), n=N_BINS, cuts=st.lists(st.integers(0, 60), max_size=4), seed=st.randoms())
def test_merged_parts_equal_the_whole_in_any_split_and_order(
    data: list[tuple[float, float]], n: int, cuts: list[int], seed: Any
) -> None:
    whole = table(data, n)
    shuffled = list(data)
    seed.shuffle(shuffled)
    ends = [0, *sorted(min(c, len(data)) for c in cuts), len(data)]
    parts = [shuffled[a:b] for a, b in pairwise(ends)]
    tables = [table(part, n) if part else sc.Reliability.empty(n) for part in parts]
    assert_close(sum(tables, start=sc.Reliability.empty(n)), whole)
    merged = sum(tables)
    assert isinstance(merged, sc.Reliability)
    assert_close(merged, whole)


@given(left=rows(), right=rows())
def test_merging_commutes(
    left: list[tuple[float, float]], right: list[tuple[float, float]]
) -> None:
    assert table(left) + table(right) == table(right) + table(left)


@given(data=rows())
def test_adding_an_empty_table_changes_nothing(data: list[tuple[float, float]]) -> None:
    assert table(data) + sc.Reliability.empty() == table(data)
    assert sc.Reliability.empty() + sc.Reliability.empty() == sc.Reliability.empty()


@given(data=rows(), weight=st.integers(1, 4))
def test_weight_k_equals_k_copies_of_the_row(data: list[tuple[float, float]], weight: int) -> None:
    y, p = zip(*data, strict=True)
    weighted = sc.reliability(y, p, sample_weight=[weight] * len(y))
    repeated = sc.reliability(y * weight, p * weight)
    for name in ("weight", "label", "residual", "residual_sq", "label_var"):
        np.testing.assert_allclose(
            getattr(weighted.sums, name), getattr(repeated.sums, name), rtol=1e-13, atol=1e-13
        )
    for name in ("smece", "max_gap", "rms_gap", "bias", "brier"):
        ours, theirs = getattr(weighted, name), getattr(repeated, name)
        assert math.isclose(ours, theirs, rel_tol=1e-12, abs_tol=1e-14)


@given(data=weighted_rows())
def test_weight_zero_equals_an_absent_row(data: list[tuple[float, float, float]]) -> None:
    kept = [row for row in data if row[2] > 0]
    votes = [99 * (k % 3) + 1 for k in range(len(data))]
    kept_votes = [m for m, row in zip(votes, data, strict=True) if row[2] > 0]

    def of(found: list[tuple[float, float, float]], m: list[int]) -> sc.Reliability:
        y, p, w = zip(*found, strict=True)
        return sc.reliability(y, p, sample_weight=w, n_votes=m)

    assert_same_table(of(data, votes), of(kept, kept_votes))


@given(data=rows(), pair=st.sampled_from([(3600, 10), (3600, 15), (100, 4), (15, 5), (7, 1)]))
def test_coarsened_table_equals_the_coarse_table(
    data: list[tuple[float, float]], pair: tuple[int, int]
) -> None:
    fine, coarse = pair
    assert_close(table(data, fine).coarsen(coarse), table(data, coarse))


@given(data=rows())
def test_refining_never_lowers_smece(data: list[tuple[float, float]]) -> None:
    y, p = (list(column) for column in zip(*data, strict=True))
    exact = oracle.rows(y, p)
    values = [oracle.smece(exact, oracle.exact_bins(n)) for n in (1, 5, 10, 100)]
    assert values == sorted(values)
    ours = [table(data, 100).coarsen(n).smece for n in (1, 5, 10, 100)]
    rounding = 1e-15 * len(data)
    assert all(b >= a - rounding for a, b in pairwise(ours))


@given(p=st.lists(st.floats(0, 1), min_size=1, max_size=60), n=N_BINS)
def test_labels_equal_to_predictions_give_exactly_zero(p: list[float], n: int) -> None:
    """Proposition 2 of the paper: exactly 0, for every n."""
    rel = sc.reliability(p, p, bins=n)
    assert (rel.smece, rel.max_gap, rel.rms_gap, rel.bias, rel.brier) == (0, 0, 0, 0, 0)
    halves = sc.reliability(p[::2], p[::2], bins=n) + rel
    assert halves.smece == 0.0


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_labels_equal_to_predictions_give_exactly_zero_for_many_rows(
    dtype: Any, rng: np.random.Generator
) -> None:
    p = rng.random(300_000).astype(dtype)
    assert sc.smece(p, p, sample_weight=rng.random(300_000)) == 0.0


@given(data=rows())
def test_smece_with_one_bin_is_the_absolute_bias(data: list[tuple[float, float]]) -> None:
    rel = table(data, 1)
    assert rel.smece == abs(rel.bias) == rel.max_gap


@given(data=rows())
def test_bias_smece_rms_gap_and_max_gap_are_ordered(data: list[tuple[float, float]]) -> None:
    rel = table(data)
    assert abs(rel.bias) <= rel.smece <= rel.rms_gap
    assert rel.rms_gap <= max(rel.max_gap, rel.smece)
    assert rel.smece <= rel.max_gap * (1 + 1e-12)
    assert rel.max_gap <= 1


@given(st.integers(1, 99), st.integers(1, 5), st.integers(1, 4))
def test_rms_gap_is_not_below_smece_where_all_gaps_are_equal(
    percent: int, count: int, bins: int
) -> None:
    p = np.repeat((np.arange(bins) + 1) / bins, count)
    rel = sc.reliability(p * (1 - percent / 100), p, bins=bins)
    assert rel.smece <= rel.rms_gap <= max(rel.max_gap, rel.smece)
    same = sc.reliability(np.zeros(count), np.full(count, percent / 100), bins=bins)
    assert same.rms_gap == same.smece


@given(data=rows())
def test_means_lie_in_their_bin(data: list[tuple[float, float]]) -> None:
    rel = table(data)
    for low, high, count, p, y, gap in rel.per_bin():
        if count:
            assert low <= p <= high
            assert 0 <= y <= 1
            assert math.isclose(p - y, gap, abs_tol=1e-15)
        else:
            assert math.isnan(p)
            assert math.isnan(y)
            assert math.isnan(gap)


def test_hand_worked_table() -> None:
    rel = sc.reliability([0.0, 0.5, 1.0], [0.2, 0.4, 0.9], bins=2)
    assert rel.n == 3
    assert rel.count.tolist() == [2, 1]
    np.testing.assert_allclose(rel.mean_prob, [0.3, 0.9])
    np.testing.assert_allclose(rel.mean_label, [0.25, 1.0])
    np.testing.assert_allclose(rel.gap, [0.05, -0.1])
    assert rel.smece == pytest.approx(0.2 / 3)
    assert rel.max_gap == pytest.approx(0.1)
    assert rel.rms_gap == pytest.approx(math.sqrt((2 * 0.05**2 + 0.1**2) / 3))
    assert rel.bias == pytest.approx(0.0, abs=1e-16)
    assert rel.brier == pytest.approx((0.04 + 0.01 + 0.01) / 3)
    assert not rel.has_hard_labels


def test_vote_sums_by_hand() -> None:
    rel = sc.reliability([0.5, 1.0, 0.25], [0.5, 0.5, 0.5], bins=1, n_votes=[2, 1, 4])
    assert rel.sums.votes.tolist() == [7]
    assert rel.sums.repeated.tolist() == [2]
    assert rel.sums.vote_floor[0] == pytest.approx(0.25 / 2 + 0.25 / 1 + 0.25 / 4)
    assert rel.sums.vote_noise[0] == pytest.approx(0.25 / 1 + 0.1875 / 3)


def test_scalar_n_votes_applies_to_all_rows(rng: np.random.Generator) -> None:
    y, p = rng.random(50), rng.random(50)
    assert sc.reliability(y, p, n_votes=100) == sc.reliability(y, p, n_votes=[100] * 50)


def test_votes_change_only_vote_sums() -> None:
    y, p = [0.5, 1.0, 0.25], [0.5, 0.5, 0.5]
    with_votes, without = sc.reliability(y, p, n_votes=4), sc.reliability(y, p)
    for name in SUM_NAMES[:9]:
        np.testing.assert_array_equal(getattr(with_votes.sums, name), getattr(without.sums, name))


def test_merging_other_bins_is_refused() -> None:
    a, b = sc.Reliability.empty(10), sc.Reliability.empty(15)
    with pytest.raises(
        sc.BinMismatchError, match="left has 10 bins of equal width, right has 15 bins"
    ):
        a + b


def test_coarsening_to_bins_that_do_not_fit_is_refused() -> None:
    with pytest.raises(sc.BinMismatchError, match="2 of its 4 edges are not edges of the table"):
        sc.Reliability.empty(10).coarsen(3)


def test_sums_that_do_not_fit_the_bins_are_refused() -> None:
    with pytest.raises(sc.BinMismatchError, match=r"3 sums do not fit Bins.uniform\(10\)"):
        sc.Reliability(sc.Bins.uniform(10), sc.Reliability.empty(3).sums)


def test_adding_another_type_is_refused() -> None:
    with pytest.raises(TypeError):
        sc.Reliability.empty() + 1  # type: ignore[operator]
    with pytest.raises(TypeError):
        1 + sc.Reliability.empty()


@pytest.mark.parametrize("name", ["smece", "max_gap", "rms_gap", "bias", "brier"])
def test_metrics_of_an_empty_table_are_refused(name: str) -> None:
    with pytest.raises(sc.InputError, match="the table has no rows"):
        getattr(sc.Reliability.empty(), name)


def test_table_is_immutable() -> None:
    rel = sc.reliability([1.0], [0.5])
    with pytest.raises(AttributeError):
        rel.bins = sc.Bins.uniform(2)  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        rel.count[0] = 7
    assert rel != "a table"
    with pytest.raises(TypeError):
        hash(rel)


def test_table_survives_pickling(rng: np.random.Generator) -> None:
    rel = sc.reliability(rng.random(20), rng.random(20))
    again = pickle.loads(pickle.dumps(rel))  # noqa: S301
    assert again == rel
    assert not again.count.flags.writeable


# Saving


def again(rel: sc.Reliability) -> sc.Reliability:
    """Save and load a table."""
    return _from_json(json.loads(json.dumps(content(set_of(rel)))))["model"]


def test_saved_table_is_a_set_of_one_model(tmp_path: Path) -> None:
    rel = sc.reliability([0.5, 1.0], [0.25, 0.75])
    rel.save(tmp_path / "table")
    assert sc.load(tmp_path / "table")["model"] == rel
    assert sc.load(tmp_path / "table").models == ("model",)


@pytest.mark.parametrize("options", [{"groups": ["a", "b"]}, {"raters": True}])
def test_table_with_groups_or_raters_is_not_saved(options: dict[str, Any], tmp_path: Path) -> None:
    long = {"item": [0, 0, 1], "who": ["u", "v", "u"], "vote": [0, 1, 1]}
    votes = sc.Votes.from_long(long, item="item", label="vote", worker="who")
    with pytest.raises(sc.InputError, match="scan"):
        sc.reliability(votes, [0.5, 0.25], **options).save(tmp_path / "table")
    assert not list(tmp_path.iterdir())


@given(data=weighted_rows(), n=N_BINS)
def test_json_round_trip_is_exact(data: list[tuple[float, float, float]], n: int) -> None:
    y, p, w = zip(*data, strict=True)
    votes = [99 * (k % 3) + 1 for k in range(len(data))]
    for rel in (
        sc.reliability(y, p, bins=n, sample_weight=w, n_votes=votes),
        sc.reliability(y, p, bins=sc.Bins.quantile(p, n)),
        sc.Reliability.empty(n),
    ):
        assert again(rel) == rel


@given(
    weight=st.floats(1e-100, 1e100),
    data=rows(),
)
def test_tables_of_any_allowed_weight_can_be_read_back(
    weight: float, data: list[tuple[float, float]]
) -> None:
    y, p = zip(*data, strict=True)
    rel = sc.reliability(y, p, sample_weight=[weight] * len(y))
    assert again(rel) == rel


# Display


def test_printed_table_marks_empty_bins() -> None:
    text = str(sc.reliability([0.25, 0.75], [0.25, 0.75], bins=[0, 0.3, 0.6, 1]))
    assert text.splitlines() == [
        "n = 2   SMECE = 0.0000   bins = 3",
        "           bin   count   mean prob   mean label       gap",
        "[0.000, 0.300)       1      0.2500       0.2500   +0.0000",
        "[0.300, 0.600)       0           -            -         -",
        "[0.600, 1.000]       1      0.7500       0.7500   +0.0000",
    ]


def test_long_table_prints_first_and_last_bins() -> None:
    text = str(sc.reliability([0.25], [0.25], bins=3600))
    assert "... 3,576 more" in text
    assert len(text.splitlines()) == 27
    assert "[0.000278, 0.000556)" in text


def test_empty_table_prints() -> None:
    assert str(sc.Reliability.empty(2)).startswith("n = 0   SMECE = none   bins = 2")


def test_html_has_a_row_per_bin_and_no_markup_from_data() -> None:
    page = sc.reliability([0.25], [0.25], bins=5)._repr_html_()
    assert page.count("<tr>") == 6
    assert ">n = 1   SMECE = 0.0000   bins = 5</caption>" in page


def test_counts_beyond_a_billion_rows_are_exact() -> None:
    """A table of 10^9 rows in one bin still counts the next row; float32 would stop at 2^24."""
    part = sc.reliability(np.zeros(2**17), np.full(2**17, 0.25), bins=1)
    whole = part
    for _ in range(13):  # doubling: 2^30 rows
        whole = whole + whole
    assert whole.n == 2**30
    more = whole + sc.reliability([0.0], [0.25], bins=1)
    assert more.n == 2**30 + 1
    assert Fraction(float(more.sums.residual[0])) == Fraction(2**30 + 1, 4)
    assert more.smece == 0.25


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("weight_sq", None), ("weight_sq", [1e300, 2.0]), ("weight_sq", [1e-300, 2.0]),
        ("residual", [1e155, 0.5]), ("residual_var", [1e300, 0.1]), ("residual_var", None),
        ("prob_var", [10.0, 10.0]), ("label_var", [1.4, 0.7]), ("repeated", [9.0, 9.0]),
        ("votes", [0.0, 0.0]), ("vote_floor", [1.0, 1.0]), ("vote_noise", [1.0, 1.0]),
        ("hard_residual", [9.0, 0.0]), ("hard_residual_sq", [9.0, 0.0]),
        ("hard_residual_var", [99.0, 0.0]), ("outcome_prob_var", [99.0, 0.0]),
        ("outcome_residual_var", [99.0, 0.0]), ("count", [2**53, 2]), ("count", [1.5, 2]),
        ("count", [-1, 2]), ("weight", [1, math.inf]),
    ],
)  # fmt: skip
def test_saved_sums_that_no_rows_can_have_are_refused(name: str, values: Any) -> None:
    rel = sc.reliability(
        [0.0, 0.5, 1.0, 0.25, 0.75], [0.2, 0.4, 0.9, 0.9, 0.0],
        bins=2, sample_weight=[1, 2, 1, 1, 1], n_votes=4,
    )  # fmt: skip
    saved = written(set_of(rel))
    assert _from_json(saved)["model"] == rel
    saved["blocks"]["tables"].pop(f"sum_{name}", None)
    if values is not None:
        saved["blocks"]["tables"][f"sum_{name}"] = values
    with pytest.raises(sc.InputError, match=r"contradict each other|damaged"):
        _from_json(saved)


def test_tables_of_extreme_rows_can_be_loaded() -> None:
    rel = sc.reliability(
        [0.0, 0.0, 1.0],
        [1e-170, 5e-324, 0.7],
        sample_weight=[1e30, 1e100, 1e-100],
    )
    assert again(rel) == rel


def test_only_means_of_empty_bins_are_nan() -> None:
    rel = sc.reliability([0.5, 1.0, 0.25], [0.25, 0.75, 0.3], bins=4)
    empty = rel.count == 0
    assert empty.tolist() == [True, False, True, False]
    for values in (rel.mean_prob, rel.mean_label, rel.gap, *sc.gap_intervals(rel)):
        assert (np.isnan(values) == empty).all()
    whole = (rel.smece, rel.bias, rel.brier, rel.rms_gap, rel.max_gap, sc.smece_interval(rel).high)
    assert np.isfinite(whole).all()
