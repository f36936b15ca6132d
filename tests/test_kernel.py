"""Compare the loops in C++ and in NumPy with exact arithmetic, and with each other."""

from __future__ import annotations

import array
import contextlib
import ctypes
import math
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import oracle
import pytest
from hypothesis import given
from strategies import N_BINS, rows, weighted_rows

import softcal as sc
from softcal import _native as native
from softcal import _parallel
from softcal._validation import inputs
from softcal.paper import experiments
from softcal.table import kernel, numpy_kernel
from softcal.table.kernel import SUM_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from softcal._validation.inputs import FloatArray

_native: Any = native  # some tests pass invalid arguments
LEVELS = range(len(_native.levels()))


def totals(
    p: npt.NDArray[Any],
    y: npt.NDArray[Any],
    w: npt.NDArray[Any] | None = None,
    m: npt.NDArray[Any] | None = None,
    bins: sc.Bins | int = 10,
    *,
    threads: int = 1,
    level: int | None = None,
    lines: int = 18,
) -> FloatArray | None:
    """Call the loop of one instruction set, or the one in NumPy if level is None."""
    bins = sc.Bins.of(bins)
    guide = bins.guide
    cut = guide.equal != len(bins)
    out = np.full((*p.shape[1:], lines, len(bins)), np.nan)
    arguments = (
        p, y, w, m, None, guide.equal, guide.first, guide.starts if cut else None,
        guide.upper if cut else None, 1e-3, out.size // lines // len(bins), lines, out, threads,
    )  # fmt: skip
    valid = numpy_kernel.sums(*arguments) if level is None else _native.sums(*arguments, level)
    return out if valid else None


def every_kernel(*arguments: Any, **options: Any) -> list[FloatArray | None]:
    return [totals(*arguments, **options, level=level) for level in (None, *LEVELS)]


def variants(n: int, rng: np.random.Generator) -> Iterator[tuple[Any, Any, Any]]:
    """Yield labels of each kind, with and without weights and votes."""
    soft = rng.random(n)
    some_outcomes_late = np.where(np.arange(n) > n // 2, np.round(soft, 1), np.round(soft))
    w, m = rng.random(n) * (rng.random(n) > 0.1), rng.choice([1, 100, 101], n)
    for y in (soft, np.round(soft), np.round(4 * soft) / 4, some_outcomes_late):
        for weight in (None, w):
            for votes in (None, m):
                yield y, weight, votes


def assert_same_sums(ours: FloatArray | None, theirs: FloatArray | None, scale: float) -> None:
    """Compare counts exactly, and sums to 1e-13 of the terms added."""
    assert ours is not None
    assert theirs is not None
    np.testing.assert_array_equal(ours[..., 0, :], theirs[..., 0, :])
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-13 * scale)


# Accuracy


@given(data=weighted_rows(), n=N_BINS)
def test_every_kernel_gives_the_same_sums(data: list[tuple[float, float, float]], n: int) -> None:
    y, p, w = (np.array(column) for column in zip(*data, strict=True))
    m = 1.0 + np.arange(len(data)) % 5
    scale = max(w.sum(), (w * w).sum(), m.sum())
    for weights in (None, w):
        for votes in (None, m):
            for label in (y, np.round(y)):
                found = every_kernel(p, label, weights, votes, n)
                assert_same_sums(found[1], found[0], scale=scale)
                for each in found[2:]:
                    np.testing.assert_array_equal(each, found[1])


@given(data=weighted_rows(), n=N_BINS)
def test_every_sum_equals_exact_arithmetic(data: list[tuple[float, float, float]], n: int) -> None:
    y, p, w = (list(column) for column in zip(*data, strict=True))
    exact = oracle.sums(oracle.rows(y, p, w), oracle.exact_bins(n))
    rel = sc.reliability(y, p, bins=n, sample_weight=w)
    added = sum(max(x, x * x) for x in w)  # no term is larger, though their sum may cancel
    for name, values in exact.items():
        ours = getattr(rel.sums, name)
        np.testing.assert_allclose(ours, [float(v) for v in values], rtol=1e-13, atol=1e-13 * added)


@given(data=weighted_rows())
def test_labels_with_a_number_of_votes_are_not_outcomes(
    data: list[tuple[float, float, float]],
) -> None:
    y, p, w = zip(*data, strict=True)
    for label in (y, np.round(y)):
        sums = sc.reliability(label, p, sample_weight=w, n_votes=100).sums
        assert not sums.outcome_prob_var.any()
        assert not sums.outcome_residual_var.any()
        plain = sc.reliability(label, p, sample_weight=w).sums
        np.testing.assert_array_equal(sums.hard_residual, plain.hard_residual)


@given(data=rows())
def test_sums_of_hardened_labels_are_those_of_outcomes(data: list[tuple[float, float]]) -> None:
    y, p = (np.array(column) for column in zip(*data, strict=True))
    hardened, soft = (sc.reliability(label, p).sums for label in ((y > 0.5).astype(float), y))
    np.testing.assert_array_equal(hardened.hard_residual, hardened.residual)
    np.testing.assert_array_equal(hardened.hard_residual, soft.hard_residual)
    np.testing.assert_array_equal(hardened.outcome_residual_var, hardened.residual_var)
    np.testing.assert_array_equal(hardened.outcome_prob_var, hardened.prob_var)


DATA: dict[str, Any] = {
    "random": lambda n, rng: (rng.random(n), rng.random(n)),
    "constant": lambda n, _: (np.full(n, 0.7), np.full(n, 0.6)),
    "outcomes": lambda n, rng: (np.full(n, 0.1), (rng.random(n) < 0.1) * 1.0),
    "sorted": lambda n, rng: (np.sort(rng.random(n)), rng.random(n)),
    "small among large": lambda n, rng: (np.where(rng.random(n) < 0.5, 1e-6, 0.9), rng.random(n)),
}


@pytest.mark.parametrize("n_bins", [1, 10, 200, 3600])
@pytest.mark.parametrize("kind", DATA)
def test_rounding_error_of_sums_is_bounded(
    kind: str, n_bins: int, rng: np.random.Generator
) -> None:
    """Within 1e-13 of `math.fsum`, relative to the sum of the absolute terms."""
    n = 400_003
    p, y = DATA[kind](n, rng)
    place = sc.Bins.uniform(n_bins).locate(p)
    order = place.argsort(kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(place[order])) + 1)
    h = (y > 0.5) * 1.0
    terms = {
        "label": y, "residual": p - y, "residual_sq": (p - y) ** 2, "prob_var": p * (1 - p),
        "label_var": y * (1 - y), "hard_residual": p - h, "hard_residual_sq": (p - h) ** 2,
    }  # fmt: skip
    for found in every_kernel(p, y, None, None, n_bins)[:2]:
        assert found is not None
        for name, term in terms.items():
            row = found[SUM_NAMES.index(name)]
            for part in parts:
                exact, size = math.fsum(term[part]), math.fsum(np.abs(term[part]))
                assert abs(row[place[part[0]]] - exact) <= 1e-13 * size


@pytest.mark.parametrize("n", [60_000, 1_000_000])
def test_long_sum_of_one_value_stays_accurate(n: int) -> None:
    """0.1 added 10^6 times in sequence has a relative error of 1e-11."""
    rel = sc.reliability(np.zeros(n), np.full(n, 0.1), bins=1)
    exact = n * Fraction(0.1)
    error = abs(Fraction(float(rel.sums.residual[0])) - exact) / exact
    assert error <= 1e-13
    naive = Fraction(float(np.cumsum(np.full(n, 0.1))[-1]))
    assert abs(naive - exact) / exact > error


@pytest.mark.parametrize("bins", [10, 3600, sc.Bins.grid(10), sc.Bins([0, 0.1, 0.35, 1])], ids=str)
def test_threads_and_instruction_sets_give_identical_sums(
    bins: Any, rng: np.random.Generator
) -> None:
    n = 400_003
    p = rng.random(n)
    for y, w, m in variants(n, rng):
        found = {
            kernel_totals.tobytes()
            for level in LEVELS
            for threads in ((1, 2, 5) if level == LEVELS[-1] else (1,))
            if (kernel_totals := totals(p, y, w, m, bins, threads=threads, level=level)) is not None
        }
        assert len(found) == 1
        slow = totals(p, y, w, m, bins)
        assert_same_sums(np.frombuffer(found.pop()).reshape(18, -1), slow, scale=n)


@pytest.mark.parametrize("bins", [10, 3600, sc.Bins.grid(10), sc.Bins([0, 0.1, 0.35, 1])], ids=str)
def test_gaps_have_the_digits_of_the_table(bins: Any, rng: np.random.Generator) -> None:
    n = 140_003
    p, chosen = rng.random(n), [SUM_NAMES.index("weight"), SUM_NAMES.index("residual")]
    for y, w, m in variants(n, rng):
        table = totals(p, y, w, m, bins, level=0)
        assert table is not None
        for level in LEVELS:
            for threads in (1, 3):
                found = totals(p, y, w, m, bins, threads=threads, level=level, lines=2)
                np.testing.assert_array_equal(found, table[chosen])
        slow = totals(p, y, w, m, bins, lines=2)
        assert slow is not None
        np.testing.assert_allclose(slow, table[chosen], rtol=0, atol=1e-13 * n)


def test_gaps_of_classes_and_cells_have_the_digits_of_their_tables(
    rng: np.random.Generator,
) -> None:
    n, bins, lines = (
        50_001,
        sc.Bins.uniform(7),
        [SUM_NAMES.index("weight"), SUM_NAMES.index("residual")],
    )
    y, p = class_rows_of(n, 4, rng)
    cell = rng.integers(0, 30, n)
    for w in (None, rng.random(n)):
        for order in ("C", "F"):
            columns = np.asarray(p, order=order), np.asarray(y, order=order), w
            table, found = kernel.totals(*columns, None, bins), kernel.gaps(*columns, bins)
            assert table is not None
            np.testing.assert_array_equal(found, table[:, lines])
        table = kernel.totals(p[:, 0], y[:, 0], w, None, bins, cell=cell, cells=30)
        assert table is not None
        found = kernel.gaps(p[:, 0], y[:, 0], w, bins, cell=cell, cells=30)
        np.testing.assert_array_equal(found, table[:, lines])


@pytest.mark.parametrize("classes", [3, 256, 2048])
@pytest.mark.parametrize("lines", [2, 18])
def test_long_sums_of_many_classes_stay_accurate(classes: int, lines: int) -> None:
    n = 2**24 // classes  # a number of classes like 256 gives each class one place in the chunks
    p, y = np.broadcast_to(0.1, (n, classes)), np.broadcast_to(0.0, (n, classes))
    out = np.empty((classes, lines, 10))
    arguments = (p, y, None, None, None, 10, 0, None, None, np.inf, classes, lines, out, 1)
    assert _native.sums(*arguments)
    residual = out[:, 1 if lines == 2 else SUM_NAMES.index("residual"), 1]
    exact = float(n * Fraction(0.1))
    np.testing.assert_allclose(residual, exact, rtol=1e-13)


def crafted_rows(order: str, n: int, bins: sc.Bins) -> tuple[FloatArray, FloatArray]:
    """Return predictions whose order hides full bins from the loop, or shows them only, and labels.

    With more than 128 bins the loop looks for full sums at one value in eight of each chunk of 256.
    """
    chunk = (np.arange(n) // 256).astype(np.uint64)
    looked_at = chunk * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(61) == np.arange(n) % 8
    spread = ((bins.edges[1:] + bins.edges[:-1]) / 2)[np.arange(n) % 5]
    p = np.where(looked_at == (order == "shown") if order != "one bin" else True, 0.7, spread)
    y = np.where(p == 0.7, 1.0, np.arange(n) % 2)
    y[-1] = 0.5 if order == "hidden, then a soft label" else y[-1]
    return p, y


@pytest.mark.parametrize(
    "bins", [10, 129, 600, sc.Bins.grid(10), 3600, 70_000, sc.Bins(np.linspace(0, 1, 201) ** 2)]
)
@pytest.mark.parametrize("order", ["one bin", "hidden", "shown", "hidden, then a soft label"])
def test_no_order_of_rows_changes_counts_and_labels(order: str, bins: Any) -> None:
    n, bins = 2**18 + 1000, sc.Bins.of(bins)
    p, y = crafted_rows(order, n, bins)
    w, m = 1.0 + np.arange(n) % 3, 1 + np.arange(n) % 5
    for dtype, weights, votes in ((np.float32, None, None), (np.float64, None, m), (float, w, m)):
        q, label = p.astype(dtype), y.astype(dtype)
        place, weight = bins.locate(q), np.ones(n) if weights is None else weights
        residual = weight * (q.astype(float) - y)
        for level in LEVELS:
            found = totals(q, label, weights, votes, bins, level=level)
            lean = totals(q, label, weights, None, bins, level=level, lines=2)
            plain = totals(q, label, weights, None, bins, level=level)
            assert found is not None
            assert lean is not None
            assert plain is not None
            for name, terms in (("count", np.ones(n)), ("weight", weight), ("label", weight * y)):
                for sums in (found, plain):
                    expected = np.bincount(place, terms, len(bins))
                    np.testing.assert_array_equal(sums[SUM_NAMES.index(name)], expected)
            np.testing.assert_array_equal(lean[0], found[SUM_NAMES.index("weight")])
            np.testing.assert_array_equal(lean[1], plain[SUM_NAMES.index("residual")])
        assert lean is not None
        for b in np.unique(place):
            terms = residual[place == b]
            assert abs(lean[1, b] - math.fsum(terms)) <= 2e-11 * np.abs(terms).sum()


@pytest.mark.parametrize("classes", [2, 3])
def test_no_order_of_rows_changes_counts_of_classes_and_cells(classes: int) -> None:
    n, bins = 2**18, sc.Bins.uniform(300)
    first = crafted_rows("hidden", n * classes, bins)[0][::classes]
    p, y = np.zeros((2, n, classes))
    p[:, 0], p[:, 1], y[:, 0] = first, 1 - first, 1
    of_classes = kernel.totals(p, y, None, None, bins)
    first = crafted_rows("hidden", n, bins)[0]
    of_cells = kernel.totals(first, y[:, 0], None, None, bins, cell=np.zeros(n, np.intp), cells=2)
    for found, column in ((of_classes, p[:, 0]), (of_cells, first)):
        assert found is not None
        expected = np.bincount(bins.locate(column), minlength=300)
        np.testing.assert_array_equal(found[0, SUM_NAMES.index("count")], expected)
        np.testing.assert_array_equal(found[0, SUM_NAMES.index("label")], expected)


def test_number_of_cores_does_not_change_sums(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    y, p = rng.random(500_000), rng.random(500_000)
    with monkeypatch.context() as patch:
        patch.setattr(_parallel, "_cores", lambda: 1)
        alone = sc.reliability(y, p)
    with monkeypatch.context() as patch:
        patch.setattr(_parallel, "_cores", lambda: 4)
        together = sc.reliability(y, p)
    assert alone == together


# Bins


def edges_and_adjacent_doubles(bins: sc.Bins) -> FloatArray:
    edges = bins.edges
    near = np.concatenate((edges, np.nextafter(edges, 2), np.nextafter(edges, -1)))
    return near[(near >= 0) & (near <= 1)]


@pytest.mark.parametrize("numbers", [range(1, 400), (3600, 4999, 100_003)], ids=["few", "many"])
def test_edges_of_uniform_bins_and_adjacent_doubles_are_located(numbers: range) -> None:
    for n in numbers:
        bins = sc.Bins.uniform(n)
        p = edges_and_adjacent_doubles(bins)
        assert_located(bins, p)


@pytest.mark.parametrize(
    "bins",
    [
        sc.Bins.grid(10), sc.Bins.grid(7), sc.Bins([0, 0.5, 0.9, 1]), sc.Bins([0, 0.1, 1]),
        sc.Bins([0.0, *(np.arange(1, 50) * 1e-9).tolist(), 1.0]),
        sc.Bins([0, 5e-324, 0.5, 1 - 2**-53, 1]), sc.Bins(np.linspace(0, 1, 601) ** 3),
    ],
    ids=len,
)  # fmt: skip
def test_edges_of_unequal_bins_and_adjacent_doubles_are_located(bins: sc.Bins) -> None:
    assert_located(bins, edges_and_adjacent_doubles(bins))


def assert_located(bins: sc.Bins, p: FloatArray) -> None:
    """Give each row a random label, so that two wrong bins cannot cancel."""
    place = bins.edges[1:-1].searchsorted(p, side="right")
    np.testing.assert_array_equal(bins.locate(p), place)
    y = np.random.default_rng(0).random(p.size)
    expected = np.bincount(place, y, len(bins))
    for found in every_kernel(p, y, None, None, bins):
        assert found is not None
        np.testing.assert_array_equal(found[0], np.bincount(place, minlength=len(bins)))
        np.testing.assert_allclose(found[SUM_NAMES.index("label")], expected, rtol=1e-13)


def test_many_bins_coarsen_to_the_sums_of_few(rng: np.random.Generator) -> None:
    n = 400_000
    y, p = rng.random(n), rng.random(n)
    fine = sc.reliability(y, p, bins=100_000)
    assert fine.n == n
    np.testing.assert_allclose(fine.coarsen(10).gap, sc.reliability(y, p).gap, atol=1e-12)


# Columns of every dtype


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f4", ">f8", np.longdouble])
@pytest.mark.parametrize("n", [1, 1003, 300_001])
def test_float_dtypes_give_the_sums_of_their_values(
    dtype: Any, n: int, rng: np.random.Generator
) -> None:
    y, p = rng.random(n).astype(dtype), rng.random(n).astype(dtype)
    assert sc.reliability(y, p) == sc.reliability(y.astype(np.float64), p.astype(np.float64))


def test_every_float16_is_converted_exactly() -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    p = every[(every >= 0) & (every <= 1)]
    bins = sc.Bins.uniform(10)
    for level in LEVELS:
        halves = totals(p, p[::-1], None, None, bins, level=level)
        doubles = totals(p.astype(float), p[::-1].astype(float), None, None, bins, level=level)
        np.testing.assert_array_equal(halves, doubles)
        assert halves is not None
        for bad in every[~((every >= 0) & (every <= 1))][::53]:
            assert totals(np.array([bad]), np.array([0.5]), level=level) is None


@pytest.mark.parametrize("n", [1, 1003, 300_001])
def test_integer_boolean_strided_unaligned_and_read_only_columns(
    n: int, rng: np.random.Generator
) -> None:
    p = rng.random(n)
    hard = rng.random(n) < p
    expected = sc.reliability(hard.astype(float), p)
    backwards = p[::-1].copy()[::-1]
    spread = np.zeros((n, 3))
    spread[:, 1] = p
    frozen = p.copy()
    frozen.flags.writeable = False
    packed = np.zeros(n, dtype=[("name", "S3"), ("p", "f8")])
    packed["p"] = p
    for kind in ("?", *np.typecodes["AllInteger"], "e"):
        assert sc.reliability(hard.astype(kind), p) == expected
    for q in (backwards, spread[:, 1], frozen, packed["p"]):
        assert sc.reliability(hard, q) == expected


@pytest.mark.parametrize("kind", ["h", "i", "q", "e", "f", "d"])
def test_weights_and_votes_of_any_dtype(kind: str, rng: np.random.Generator) -> None:
    n = 1003
    p, y = rng.random(n), rng.random(n)
    w, m = rng.integers(0, 3, n), rng.integers(1, 5, n)
    for level in LEVELS:
        expected = totals(p, y, w.astype(float), m.astype(float), level=level)
        found = totals(p, y, np.repeat(w.astype(kind), 2)[::2], m.astype(kind), level=level)
        np.testing.assert_array_equal(found, expected)


def test_minus_zero_equals_zero() -> None:
    zero = np.zeros(1000)
    assert sc.reliability(-zero, -zero) == sc.reliability(zero, zero)


def test_zero_rows_give_zero_sums() -> None:
    none = np.empty(0)
    for bins in (10, 3600):
        for found in every_kernel(none, none, None, None, bins):
            assert found is not None
            assert not found.any()


# Refusals


@pytest.mark.parametrize("bad", [np.nan, -0.1, 1.0000001, np.inf, -np.inf, -5e-324, 1 + 2**-52])
@pytest.mark.parametrize("bins", [10, 3600, sc.Bins.grid(10), sc.Bins([0, 0.2, 1])], ids=str)
def test_invalid_value_is_detected_at_any_position(bad: float, bins: Any) -> None:
    for n in (1, 2, 3, 4, 5, 67, 300):
        good = np.linspace(0, 1, n)
        for at in range(n):
            broken = good.copy()
            broken[at] = bad
            for level in (None, LEVELS[-1]) if at % 16 else (None, *LEVELS):
                for lines in (2, 18):
                    assert totals(broken, good, None, None, bins, level=level, lines=lines) is None
                    assert totals(good, broken, None, None, bins, level=level, lines=lines) is None


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("w", -1.0), ("w", 1e200), ("w", 1e-200), ("w", np.nan), ("w", np.inf),
        ("m", 0.0), ("m", 2.5), ("m", 2.0**53), ("m", np.nan), ("m", -1.0), ("m", 2.0**52 - 0.5),
    ],
)  # fmt: skip
def test_invalid_weight_or_vote_count_is_detected_at_any_position(
    column: str, value: float
) -> None:
    n = 300
    for at in (0, 1, 2, 3, 63, 64, 255, 256, 298, 299):
        columns = {name: np.ones(n) for name in "pywm"}
        assert all(found is not None for found in every_kernel(*columns.values()))
        columns[column][at] = value
        assert all(found is None for found in every_kernel(*columns.values()))


def test_vote_counts_up_to_two_to_the_53_are_accepted() -> None:
    one = np.ones(3)
    for found in every_kernel(one, one, None, np.array([1.0, 2.0**52 + 1, 2.0**53 - 1])):
        assert found is not None


@pytest.mark.parametrize("at", [0, 131_072, 299_999])
def test_invalid_value_among_many_rows_is_named(at: int, rng: np.random.Generator) -> None:
    n = 300_000
    for bad in (np.nan, 1.5):
        broken, good = rng.random(n), rng.random(n)
        broken[at] = bad
        for y, p in ((broken, good), (good, broken)):
            with pytest.raises(sc.InputError, match=rf"\[{at}\] = |position {at}\b"):
                sc.reliability(y, p)


@pytest.mark.parametrize(
    "change",
    [
        {0: np.zeros(4)}, {0: np.zeros((5, 0))}, {0: np.zeros((5, 2))}, {1: np.zeros(4)},
        {0: np.zeros((1, 1, 1))}, {0: np.array(["a"] * 5)}, {1: np.zeros(5, ">f8")},
        {0: np.zeros(5, complex)}, {0: np.zeros(5, "f8,f8")}, {0: [0.0] * 5}, {0: np.zeros(5, "g")},
        {2: np.zeros(4)}, {2: np.zeros((5, 1))}, {3: np.zeros(6)}, {4: np.zeros(5, np.int32)},
        {4: np.zeros(4, np.intp)}, {4: np.full(5, 1)}, {4: np.full(5, -1)}, {5: 0}, {5: 9}, {5: -1},
        {5: 1 << 40}, {5: "a"}, {6: -1}, {6: 1}, {7: np.zeros(3, np.intp)}, {9: "a"}, {10: 0}, {10: 2},
        {11: 17}, {11: 2}, {12: np.zeros(179)}, {12: np.zeros(180, np.float32)},
        {12: np.zeros((2, 180))[:, ::2]}, {12: b"0" * 1440}, {13: -1}, {13: None}, {14: 99}, {14: -1},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_arguments_of_sums_are_refused(change: dict[int, Any]) -> None:
    arguments: list[Any] = [
        np.zeros(5), np.zeros(5), None, None, None, 10, 0, None, None, 1e-3, 1, 18, np.zeros(180), 1, 0,
    ]  # fmt: skip
    assert _native.sums(*arguments)
    for at, value in change.items():
        arguments[at] = value
    with pytest.raises((TypeError, ValueError, OverflowError, BufferError)):
        _native.sums(*arguments)


def unaligned(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.frombuffer(b"x" + values.tobytes(), values.dtype, offset=1)


@pytest.mark.parametrize(
    "change",
    [
        {7: np.zeros(2, np.intp)}, {7: np.zeros(6, np.int32)}, {8: np.zeros(3, np.float32)},
        {8: np.zeros((3, 1))}, {8: np.zeros(0)}, {5: 4}, {6: 4}, {8: None},
        {8: np.array([0.5, 0.9, 1.0])}, {8: np.array([0.5, 0.9, np.nan])},
        {7: unaligned(np.array([0, 1, 2, 2]))}, {8: unaligned(np.array([0.5, 0.9, np.inf]))},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_lookup_tables_are_refused(change: dict[int, Any]) -> None:
    starts, upper = np.array([0, 1, 2, 2]), np.array([0.5, 0.9, np.inf])
    arguments: list[Any] = [
        np.zeros(5), np.zeros(5), None, None, None, 0, 0, starts, upper, 1e-3, 1, 18, np.zeros(54), 1,
    ]  # fmt: skip
    assert _native.sums(*arguments)
    for at, value in change.items():
        arguments[at] = value
    with pytest.raises((TypeError, ValueError, OverflowError, BufferError)):
        _native.sums(*arguments)


class Endless:
    """An object whose length says more than its buffer."""

    def __len__(self) -> int:
        return 1 << 62


def odd_buffers() -> list[Any]:
    """Return objects that have a buffer, or seem to, and are not plain arrays."""
    raw, numbers = bytearray(40), (ctypes.c_double * 5)(*[0.5] * 5)
    whole = memoryview(raw)
    return [
        numbers, memoryview(numbers), ((ctypes.c_double * 5) * 2)(), (ctypes.c_double * 0)(),
        ctypes.c_double(0.5), ctypes.create_string_buffer(40), (ctypes.c_int * 5)(),
        (ctypes.POINTER(ctypes.c_double) * 5)(), raw, bytes(raw), whole, whole[::-1], whole[::2],
        whole.cast("d"), whole.cast("d")[::-1], whole.cast("d")[::2], whole.cast("d", (5, 1)),
        whole.cast("d", (1, 5)), whole.cast("?"), whole[:8].cast("d", ()), whole[:0].cast("d"),
        whole.toreadonly().cast("d"), array.array("d", [0.5] * 5), array.array("u", "abcde"),
        np.array(0.5), np.zeros((5, 0)), np.zeros((0, 5)), np.zeros(5)[::-1], np.zeros((5, 2))[:, 0],
        np.broadcast_to(0.5, 5), np.broadcast_to(0.5, (5, 5)), np.broadcast_to(0.5, 2**59),
        np.zeros((1, 1, 5)), np.zeros(5, "M8[s]"), np.zeros(5, object), unaligned(np.zeros(5)),
        np.array([-1, 1, 2, 2]), np.array([0, 2, 1, 2]), np.array([0, 1, 2, 1 << 40]),
        np.array([0, 1, 2, 3]), np.full(4, -1 << 63), np.zeros(5, "V8"), np.zeros(5, "S8"), Endless(), "x" * 40, 0.5, -1, 1 << 64,
    ]  # fmt: skip


def test_no_buffer_crashes_the_loops() -> None:
    """Pass each object as each argument; a crash would end the tests."""
    five, starts, upper = np.full(5, 0.5), np.array([0, 1, 2, 2]), np.array([0.5, 0.9, np.inf])
    calls: dict[str, list[Any]] = {
        "sums": [five, five, None, None, None, 0, 0, starts, upper, 1e-3, 1, 18, np.zeros(54), 1],
        "lattice": [five, five, None, 2, np.zeros(8), 1],
        "top": [five, five, np.inf, np.zeros(5), np.zeros(5), 1],
        "limits": [five] * 12 + [5, np.array([2.0, 3.0, 5.0, 2.0]), five[:1].repeat(7), five[:4]]
        + [np.empty(13)],
    }  # fmt: skip
    accepted = 0
    for name, arguments in calls.items():
        for at in range(len(arguments)):
            for odd in odd_buffers():
                changed = [*arguments[:at], odd, *arguments[at + 1 :]]
                with contextlib.suppress(
                    TypeError, ValueError, OverflowError, BufferError, MemoryError
                ):
                    accepted += getattr(_native, name)(*changed) is not None
    assert accepted > 100


def test_columns_of_ctypes_without_strides_are_read() -> None:
    flat, table = (ctypes.c_double * 6)(), ((ctypes.c_double * 2) * 3)()
    values = np.array([0.25, 0.75, 1.0, 0.0, 0.5, 0.5])
    flat[:], np.asarray(table)[...] = values.tolist(), values.reshape(3, 2)
    for level in LEVELS:
        for column, like in ((flat, values), (table, values.reshape(3, 2))):
            tables = like.shape[1] if like.ndim == 2 else 1
            outs = np.zeros((2, tables, 18, 10))
            for each, out in zip((column, like), outs, strict=True):
                more = (10, 0, None, None, 1e-3, tables, 18, out, 1, level)
                assert _native.sums(each, each, None, None, None, *more)
            assert outs[0].any()
            np.testing.assert_array_equal(*outs)


def test_wrong_arguments_of_the_other_loops_are_refused() -> None:
    p, out = np.zeros(5), np.zeros(5)
    calls: list[tuple[Any, tuple[Any, ...]]] = [
        (_native.sums, ()),
        (_native.lattice, ()),
        (_native.lattice, (p, p, None, 0, np.zeros(6), 1)),
        (_native.lattice, (p, p, None, 3, np.zeros(8), 1)),
        (_native.lattice, (p, p, None, 2, np.zeros((4, 2)), 1)),
        (_native.lattice, (p.reshape(5, 1), p.reshape(5, 1), None, 3, np.zeros(9), 1)),
        (_native.top, ()),
        (_native.top, (p, p, "a", out, out, 1)),
        (_native.top, (p, p, 1e-3, np.zeros(4), out, 1)),
        (_native.top, (p, p, 1e-3, out, out.astype(int), 1)),
    ]
    for function, arguments in calls:
        with pytest.raises((TypeError, ValueError)):
            function(*arguments)


@pytest.mark.parametrize(
    "change",
    [
        {0: np.zeros(4)}, {0: 5}, {3: np.zeros(6)}, {7: np.zeros(5, np.int64)}, {11: np.zeros((5, 1))},
        {12: "a"}, {13: np.zeros(5)}, {13: np.array([2.0, 3.0, 6.0, 2.0])},
        {13: np.array([2.0, 3.0, 0.0, 2.0])}, {13: np.array([2.0, 3.0, np.nan, 2.0])},
        {14: np.ones(6)}, {15: np.zeros(2)}, {15: np.zeros(9)}, {15: np.zeros((2, 4))},
        {16: np.zeros(12)}, {16: b"0" * 104},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_arguments_of_limits_are_refused(change: dict[int, Any]) -> None:
    ways, grid = np.array([2.0, 3.0, 5.0, 2.0]), np.linspace(0.8, 1, 8)
    arguments: list[Any] = [np.ones(5)] * 12 + [5, ways, np.arange(1.0, 8.0), grid, np.empty(13)]
    assert _native.limits(*arguments)
    for at, value in change.items():
        arguments[at] = value
    with pytest.raises((TypeError, ValueError, BufferError)):
        _native.limits(*arguments)
    with pytest.raises(ValueError, match="limits takes"):
        _native.limits(*arguments[1:])
    none = np.zeros(0)
    with pytest.raises(ValueError, match="there must be bins"):
        _native.limits(*[none] * 12, 5, ways, np.ones(7), grid, np.empty(13))


# Classes, cells, and the lattice


def class_rows_of(n: int, classes: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    y, p = rng.dirichlet(np.full(classes, 0.3), (2, n))
    return y, p


@pytest.mark.parametrize(("n", "classes"), [(1, 2), (63, 3), (1001, 40), (140_001, 3)])
def test_class_sums_equal_the_sums_of_each_class(
    n: int, classes: int, rng: np.random.Generator
) -> None:
    y, p = class_rows_of(n, classes, rng)
    w, m = rng.random(n), rng.integers(1, 5, n)
    for order in ("C", "F"):
        both = np.asarray(p, order=order), np.asarray(np.round(y, 7), order=order)
        for weights, votes in ((None, None), (w, None), (None, m), (w, m)):
            found = every_kernel(*both, weights, votes, 5)
            for c in range(classes):
                column = both[0][:, c], both[1][:, c]
                one = totals(*column, weights, votes, 5, level=LEVELS[-1])
                assert_same_sums(None if found[-1] is None else found[-1][c], one, scale=4 * n)
            assert_same_sums(found[0], found[-1], scale=4 * n)
            for each in found[2:]:
                np.testing.assert_array_equal(each, found[1])


@pytest.mark.parametrize("n", [1, 63, 1001, 140_001])
def test_first_of_equal_classes_is_the_top_class(n: int, rng: np.random.Generator) -> None:
    y, p = class_rows_of(n, 5, rng)
    p = np.round(p, 1)
    p[:, 0] += 1 - p.sum(axis=1)
    p = np.where((p < 0).any(axis=1, keepdims=True), 0.2, p)
    at = p.argmax(axis=1)
    for level in (None, *LEVELS):
        for threads in (1, 3):
            best, mass = np.empty(n), np.empty(n)
            arguments = (p, y, 1e-3, best, mass, threads)
            more = () if level is None else (level,)
            assert (numpy_kernel if level is None else _native).top(*arguments, *more)
            np.testing.assert_array_equal(best, p[np.arange(n), at])
            np.testing.assert_array_equal(mass, y[np.arange(n), at])


@pytest.mark.parametrize("n", [1, 300])
@pytest.mark.parametrize("change", [np.nan, -0.5, 0.01, 2.0, np.inf])
def test_invalid_value_among_classes_is_detected(
    n: int, change: float, rng: np.random.Generator
) -> None:
    good = class_rows_of(n, 3, rng)
    for at in (0, n // 2, n - 1):
        for which in (0, 1):
            both = [each.copy() for each in good]
            both[which][at, 1] += change
            if change == -0.5:  # sums to 1, but one value is negative
                both[which][at] = (-0.5, 1.0, 0.5)
            assert all(found is None for found in every_kernel(*both))
            out = np.empty(n), np.empty(n)
            assert not numpy_kernel.top(both[0], both[1], 1e-3, out[0], out[1], 1)
            for level in LEVELS:
                assert not _native.top(*both, 1e-3, *out, 1, level)


@pytest.mark.parametrize("cells", [1, 7, 3000])
def test_cell_sums_equal_the_sums_of_each_cell(
    cells: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, bins = 20_000, sc.Bins.grid(10)
    y, p, w = rng.random(n), rng.random(n), rng.integers(0, 3, n)
    cell = rng.integers(0, cells, n)
    data = inputs.rows(y, p, w, 100)
    expected = {}
    for k in range(0, cells, max(1, cells // 10)):
        sums = kernel.bin_sums(data.taken(np.flatnonzero(cell == k)), bins)
        assert sums is not None
        for b in np.flatnonzero(sums.count):
            expected[k * len(bins) + int(b)] = np.array([each[b] for each in sums])
    for loops in (_native, numpy_kernel):
        monkeypatch.setattr(kernel, "loops", loops)
        found = kernel.sparse_sums(data, bins, cell)
        assert found is not None
        keys, values = found[0], np.array(list(found[1]))
        assert (np.diff(keys) > 0).all()
        assert found[1].count.sum() == np.count_nonzero(w)
        for key, sums_of_key in expected.items():
            np.testing.assert_allclose(
                values[:, keys.searchsorted(key)], sums_of_key, rtol=1e-12, atol=1e-12
            )
        for bad in (data._replace(y_prob=p + 1), data._replace(y_true=y - 1)):
            assert kernel.sparse_sums(bad, bins, cell) is None


@pytest.mark.parametrize("n", [1, 1001, 300_001])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_kernel_gives_the_same_lattice(
    n: int,
    weighted: bool,  # noqa: FBT001
    rng: np.random.Generator,
) -> None:
    p, y = rng.choice([0.0, 0.3, 1.0, 0.123456, 0.999], n), rng.random(n)
    w = rng.random(n) if weighted else None
    slow, first = np.zeros(70), np.zeros(70)
    assert numpy_kernel.lattice(p, y, w, 64, slow, 1)
    assert _native.lattice(p, y, w, 64, first, 1, 0)
    weight = np.ones(n) if w is None else w
    moments = [weight.sum(), weight @ p, weight @ p**2, weight @ weight]
    np.testing.assert_allclose(slow[-4:], moments, rtol=1e-12)
    np.testing.assert_allclose(first, slow, rtol=0, atol=1e-12 * n)
    for level in LEVELS:
        for threads in (1, 3):
            nodes = np.zeros(70)
            assert _native.lattice(p, y, w, 64, nodes, threads, level)
            np.testing.assert_array_equal(nodes, first)
    p[n // 2] = np.nan
    assert not numpy_kernel.lattice(p, y, w, 64, slow, 1)
    assert not any(_native.lattice(p, y, w, 64, first, 1, level) for level in LEVELS)
    assert not _native.lattice(y, y, np.full(n, -1.0), 64, first, 1)


# Threads and installation


def test_cores_are_counted_without_sched_getaffinity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert _parallel._cores() >= 1
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert _parallel._cores() >= 1


def test_nested_calls_run_serially(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_parallel, "_cores", lambda: 4)
    assert kernel.threads_for(10**6) == 4
    assert kernel.threads_for(1000) == 1
    assert list(_parallel.in_order(kernel.threads_for, [10**6] * 3)) == [1, 1, 1]


def test_concurrent_calls_give_the_same_table(rng: np.random.Generator) -> None:
    y, p = rng.random(300_000), rng.random(300_000)
    expected = sc.reliability(y, p)
    tables = _parallel.in_order(lambda _: sc.reliability(y, p), range(16))
    assert all(table == expected for table in tables)


def test_sums_work_during_interpreter_shutdown() -> None:
    """Call softcal in an exit handler of a real process."""
    code = (
        "import atexit, numpy as np, softcal as sc\n"
        "x = np.full(300_000, 0.5)\n"
        "atexit.register(lambda: print(sc.smece(x, x * 0.5)))\n"
    )
    assert run_python(code) == "0.25\n"


@pytest.mark.parametrize(
    "call", ["sc.smece(p, p)", "sc.smooth_ece(p, p)", "sc.top_label_smece(c, c)"]
)
def test_daemon_thread_inside_a_call_does_not_crash_the_exit(call: str) -> None:
    """The call ends while the interpreter deletes an object, which takes longer."""
    code = (
        "import threading, time, numpy as np, softcal as sc\n"
        f"p, c, call = np.ones(1), np.eye(2), lambda: {call}\n"
        "call()\np, c = np.broadcast_to(0.5, 10**8), np.broadcast_to(0.5, (5 * 10**7, 2))\n"
        "class Slow:\n    def __del__(self, wait=time.sleep): wait(2)\n"
        "np.slow = Slow()\n"
        "threading.Thread(target=call, daemon=True).start()\ntime.sleep(0.05)\nprint('done')\n"
    )
    assert run_python(code) == "done\n"


def test_work_runs_serially_without_a_thread_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_parallel, "_pool", lambda _: None)
    assert list(_parallel.in_order(abs, [-1, 2])) == [1, 2]


def test_thread_pool_that_cannot_start_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def refuse(*_: object) -> None:
        message = "cannot schedule new futures after interpreter shutdown"
        raise RuntimeError(message)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", refuse)
    assert _parallel._pool(2) is None


@pytest.mark.parametrize("compiler", [True, False])
def test_numpy_kernel_is_used_without_the_extension(
    compiler: bool,  # noqa: FBT001
    rng: np.random.Generator,
) -> None:
    y, p = rng.random(1000).tolist(), rng.random(1000).tolist()
    hide = "" if compiler else "import sys; sys.modules['softcal._native'] = None\n"
    code = (
        f"{hide}import softcal as sc\nfrom softcal import cli\n"
        f"print(sc.smece({y}, {p}))\nprint(sc.smooth_ece({y}, {p}))\n"
        f"print(sc.smece_interval({y}, {p}).high)\ncli.run(['--version'])\n"
    )
    smece, smooth, high, version = run_python(code).splitlines()
    assert float(smece) == pytest.approx(sc.smece(y, p), rel=1e-13)
    assert float(smooth) == pytest.approx(sc.smooth_ece(y, p), abs=2e-9)
    assert float(high) == pytest.approx(sc.smece_interval(y, p).high, rel=1e-12)
    assert version.startswith(f"softcal {sc.__version__} ({'C++' if compiler else 'NumPy'} loops")


def test_metrics_and_the_paper_call_the_loops_in_cpp(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    called = []

    class Recorder:
        def __getattr__(self, name: str) -> Any:
            called.append(name)
            return getattr(_native, name)

    y, p = class_rows_of(50, 3, rng)
    monkeypatch.setattr(kernel, "loops", Recorder())
    for expected, call in (
        ({"sums"}, lambda: sc.smece(y[:, 0], p[:, 0])),
        ({"sums"}, lambda: sc.classwise_smece(y, p)),
        ({"sums", "top"}, lambda: sc.top_label_smece(y, p)),
        ({"lattice"}, lambda: sc.smooth_ece(y[:, 0], p[:, 0])),
        ({"sums"}, lambda: experiments.scores(rng, 5.0, 20, 3)),
    ):
        called.clear()
        call()
        assert set(called) == expected


def test_first_call_takes_no_longer_than_the_second() -> None:
    code = (
        "import time, numpy as np, softcal as sc\np = np.linspace(0, 1, 500_000)\n"
        "sc.smece([0.5], [0.5])\ntimes = [time.process_time()]\n"
        "for _ in range(2): sc.smece(p, p); times.append(time.process_time())\n"
        "print(times[1] - times[0] - (times[2] - times[1]))"
    )
    assert min(float(run_python(code)) for _ in range(2)) < 5e-3  # seconds


def test_extension_is_not_older_than_its_source() -> None:
    root, built = Path(__file__).parents[1], Path(_native.__file__)
    if not built.is_relative_to(root / "src"):
        pytest.skip("an installed wheel")
    newest = max((root / "native").iterdir(), key=lambda file: file.stat().st_mtime)
    message = f"{newest.name} has changed: run `make` or `python hatch_build.py`"
    assert built.stat().st_mtime >= newest.stat().st_mtime, message


def run_python(code: str) -> str:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_number_of_tables_that_overflows_is_refused() -> None:
    none, cell = np.zeros(0), np.zeros(0, dtype=np.intp)
    with pytest.raises(ValueError, match="not too many"):
        _native.sums(none, none, None, None, cell, 4, 0, None, None, 1.0, 1 << 62, 18, none, 1)
