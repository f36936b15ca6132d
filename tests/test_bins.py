from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import N_BINS, UNIT, weighted_rows

import softcal as sc


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7, 10, 15, 20, 50, 100, 3600])
def test_uniform_edges_are_quotients(n: int) -> None:
    assert sc.Bins.uniform(n).edges.tolist() == [k / n for k in range(n + 1)]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 15, 50, 100, 1000, 3600, 5000])
def test_edges_and_adjacent_doubles_are_located_exactly(n: int) -> None:
    edges = np.arange(n + 1) / n
    points = np.concatenate((edges, np.nextafter(edges, 2), np.nextafter(edges, -1)))
    points = points[(points >= 0) & (points <= 1)]
    bins = sc.Bins.uniform(n)
    expected = np.minimum(np.searchsorted(edges, points, side="right") - 1, n - 1)
    np.testing.assert_array_equal(bins.locate(points), expected)


def test_decimal_literals_fall_into_the_bin_they_start() -> None:
    ten = sc.Bins.uniform(10)
    assert ten.locate([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]).tolist() == [
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9,
    ]  # fmt: skip
    hundred = sc.Bins.uniform(100)
    assert hundred.locate(np.arange(101) / 100).tolist() == [*range(100), 99]
    assert hundred.locate([0.29, 0.57, 0.58]).tolist() == [29, 57, 58]


@given(n=N_BINS, p=st.lists(UNIT, min_size=1, max_size=50))
def test_locate_agrees_with_exact_arithmetic(n: int, p: list[float]) -> None:
    edges = oracle.exact_bins(n)
    expected = [oracle.place(Fraction(value), edges) for value in p]
    assert sc.Bins.uniform(n).locate(p).tolist() == expected


@given(
    inner=st.sets(UNIT.filter(lambda x: 0 < x < 1), max_size=40),
    p=st.lists(UNIT, min_size=1, max_size=50),
)
def test_locate_agrees_with_exact_arithmetic_on_any_edges(
    inner: set[float], p: list[float]
) -> None:
    edges = [0.0, *sorted(inner), 1.0]
    expected = [oracle.place(Fraction(value), [Fraction(e) for e in edges]) for value in p]
    assert sc.Bins(edges).locate(p).tolist() == expected


def test_many_edges_inside_one_cell_are_located() -> None:
    """The lookup table ends at the cell, so a search inside the cell must follow."""
    edges = [0.0, *(np.arange(1, 50) * 1e-9).tolist(), 1.0]
    bins = sc.Bins(edges)
    assert bins.locate(edges).tolist() == [*range(50), 49]


@given(p=st.lists(UNIT, min_size=1, max_size=200), n=st.integers(1, 30))
def test_quantile_bins_are_not_empty_and_at_most_n(p: list[float], n: int) -> None:
    bins = sc.Bins.quantile(p, n)
    assert len(bins) <= n
    assert (np.diff(bins.edges) > 0).all()
    counts = np.bincount(bins.locate(p), minlength=len(bins))
    assert (counts > 0).all()


def test_quantile_bins_hold_equal_numbers_of_rows(rng: np.random.Generator) -> None:
    p = rng.random(1003)
    counts = np.bincount(sc.Bins.quantile(p, 7).locate(p))
    assert counts.min() >= 1003 // 7
    assert counts.max() <= 1003 // 7 + 1


@pytest.mark.parametrize("value", [0.0, 0.4, 1.0])
def test_constant_predictions_give_one_quantile_bin(value: float) -> None:
    assert sc.Bins.quantile([value] * 100, 10).edges.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("p", "edges"),
    [
        ([0, 0, 1, 1], [0, 0.5, 1]),
        ([0.1, 0.1, 0.1, 0.9], [0, 0.9, 1]),
        ([0.2, 0.2, 0.2, 1.0], [0, 0.6, 1]),
        ([1.0, 1.0, 1.0, 0.5], [0, 0.75, 1]),
    ],
)
def test_ties_at_the_ends_still_give_two_quantile_bins(p: list[float], edges: list[float]) -> None:
    assert sc.Bins.quantile(p, 2).edges.tolist() == edges


@given(p=st.lists(UNIT, min_size=2, max_size=60), n=st.integers(2, 12))
def test_two_different_predictions_are_enough_for_two_quantile_bins(p: list[float], n: int) -> None:
    apart = len(set(p) - {1 - 2**-53}) > 1  # no double lies between 1 and the one before it
    assert not apart or len(sc.Bins.quantile(p, n)) >= 2


def test_quantile_edges_of_float32_are_the_same_numbers() -> None:
    p = np.linspace(0, 1, 97, dtype=np.float32)
    assert sc.Bins.quantile(p, 8) == sc.Bins.quantile(p.astype(np.float64), 8)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([0.1, 1], "from 0.1 to 1.0. Add 0 and 1"),
        ([0, 0.9], "from 0.0 to 0.9. Add 0 and 1"),
        ([0], "there are 1, from 0.0 to 0.0"),
        ([0, 0.5, 0.5, 1], "1 of 3 steps do not, the first is from 0.5 to 0.5"),
        ([0, 0.6, 0.4, 1], "the first is from 0.6 to 0.4"),
        ([0, float("nan"), 1], "2 of 2 steps do not"),
        ([], "edges is empty"),
        ([0, 10**400, 1], "edges must hold numbers that fit a float64"),
    ],
)
def test_bad_edges_are_refused(edges: list[float], message: str) -> None:
    with pytest.raises(sc.InputError, match=message):
        sc.Bins(edges)


@pytest.mark.parametrize("n", [0, -3, 10**6 + 1])
def test_a_number_of_bins_out_of_range_is_refused(n: int) -> None:
    with pytest.raises(sc.InputError, match=f"between 1 and 1000000: got {n}"):
        sc.smece([1], [0.5], bins=n)


def test_too_many_edges_are_refused() -> None:
    with pytest.raises(sc.InputError, match="between 1 and 1000000: got 1000001"):
        sc.Bins(np.arange(10**6 + 2) / (10**6 + 1))


@pytest.mark.parametrize("n", [True, 10.0, "10", None, np.float32(3)])
def test_bins_of_the_wrong_type_are_refused(n: object) -> None:
    with pytest.raises(sc.InputTypeError, match="bins must be a whole number, Bins, or edges"):
        sc.reliability([1], [0.5], bins=n)  # type: ignore[arg-type]


def test_bins_accept_numpy_integers_edges_and_bins() -> None:
    y, p = [0.0, 1.0], [0.2, 0.9]
    expected = sc.reliability(y, p, bins=4)
    for bins in (np.int64(4), [0, 0.25, 0.5, 0.75, 1], sc.Bins.uniform(4)):
        assert sc.reliability(y, p, bins=bins) == expected


def test_bins_are_immutable_and_compare_by_edges() -> None:
    bins = sc.Bins([0, 0.5, 1])
    assert bins == sc.Bins.uniform(2)
    assert hash(bins) == hash(sc.Bins.uniform(2))
    assert bins != sc.Bins([0, 0.25, 1])
    assert bins != "bins"
    with pytest.raises(AttributeError):
        bins.edges = np.array([0.0, 1.0])
    with pytest.raises(AttributeError):
        del bins.edges
    with pytest.raises(ValueError, match="read-only"):
        bins.edges[0] = 0.5
    with pytest.raises(ValueError, match="WRITEABLE"):
        bins.edges.setflags(write=True)


def test_a_negative_zero_edge_is_zero() -> None:
    bins = sc.Bins([-0.0, 0.5, 1])
    assert bins == sc.Bins.uniform(2)
    assert hash(bins) == hash(sc.Bins.uniform(2))


def test_bins_keep_a_copy_of_the_callers_edges() -> None:
    edges = np.array([0.0, 0.5, 1.0])
    bins = sc.Bins(edges)
    edges[1] = 0.75
    assert bins.edges[1] == 0.5


def test_bins_survive_pickling() -> None:
    bins = sc.Bins([0, 0.2, 1])
    again = pickle.loads(pickle.dumps(bins))  # noqa: S301
    assert again == bins
    assert not again.edges.flags.writeable


def test_repr_shows_the_constructor() -> None:
    assert repr(sc.Bins.uniform(10)) == "Bins.uniform(10)"
    assert repr(sc.Bins([0, 0.3, 1])) == "Bins([0, 0.3, 1])"
    many = repr(sc.Bins.quantile(np.linspace(0.1, 0.9, 50), 40))
    assert many.startswith("Bins([0, 0.1")
    assert ", ..., " in many


def test_ragged_bins_are_refused() -> None:
    with pytest.raises(sc.InputTypeError, match="edges must be a column of numbers"):
        sc.smece([1], [0.5], bins=[[0], [0, 1]])  # type: ignore[list-item]


@given(weighted_rows(), st.integers(1, 12))
def test_weighted_quantile_bins_equal_those_of_repeated_rows(
    rows: list[tuple[float, float, float]], n: int
) -> None:
    p = np.array([p for _, p, _ in rows])
    times = np.arange(p.size) % 4
    times[0] = 3
    repeated = sc.Bins.quantile(np.repeat(p, times), n)
    assert sc.Bins.quantile(p, n, times) == repeated
    for unit in (0.1, 1 / 3, 1e-100, 1e99):  # where sums of weights round
        assert sc.Bins.quantile(p[times > 0], n, np.where(times, unit, 0)[times > 0]) == (
            sc.Bins.quantile(p[times > 0], n)
        )


def test_weighted_quantile_bins_refuse_bad_weights() -> None:
    with pytest.raises(sc.InputError, match="positive value somewhere"):
        sc.Bins.quantile([0.1, 0.2], 2, [0, 0])
    with pytest.raises(sc.InputError, match="sample_weight must be 0 or more"):
        sc.Bins.quantile([0.1, 0.2], 2, [1, -1])
    with pytest.raises(sc.InputError, match="y_prob has 2 rows, sample_weight has 1"):
        sc.Bins.quantile([0.1, 0.2], 2, [1])


def test_infinite_edges_are_refused_without_a_warning() -> None:
    with pytest.raises(sc.InputError, match="edges must increase strictly"):
        sc.Bins([0, -np.inf, -np.inf, 1])
