"""Two roads, one table: the NumPy road and the compiled one against exact arithmetic."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import oracle
import pytest
from hypothesis import given
from strategies import N_BINS, rows, weighted_rows

import softcal as sc
from softcal import _parallel
from softcal._validation import inputs
from softcal.table import compiled, kernel

if TYPE_CHECKING:
    import numpy.typing as npt


def both_roads(
    y: npt.ArrayLike,
    p: npt.ArrayLike,
    w: npt.ArrayLike | None = None,
    m: npt.ArrayLike | None = None,
    bins: sc.Bins | None = None,
) -> tuple[list[npt.NDArray[Any]] | None, list[npt.NDArray[Any]] | None]:
    data = inputs.rows(y, p, w, m)
    bins = bins or sc.Bins.uniform(10)
    return kernel._numpy_sums(data, bins), kernel._compiled_sums(data, bins)


def assert_same_sums(
    left: list[npt.NDArray[Any]] | None, right: list[npt.NDArray[Any]] | None, scale: float
) -> None:
    """Counts equal, sums equal to the rounding of a sum: 1e-13 of what was added."""
    assert left is not None
    assert right is not None
    np.testing.assert_array_equal(left[0], right[0])
    for a, b in zip(left[1:], right[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-13 * scale)


@given(data=rows(), n=N_BINS)
def test_both_roads_agree(data: list[tuple[float, float]], n: int) -> None:
    y, p = zip(*data, strict=True)
    assert_same_sums(*both_roads(y, p, bins=sc.Bins.uniform(n)), scale=len(data))


@given(data=weighted_rows())
def test_both_roads_agree_with_weights_and_votes(data: list[tuple[float, float, float]]) -> None:
    y, p, w = zip(*data, strict=True)
    m = [1 + k % 5 for k in range(len(data))]
    scale = max(sum(w), sum(x * x for x in w), sum(m))
    assert_same_sums(*both_roads(y, p, w, m), scale=scale)
    assert_same_sums(*both_roads(y, p, None, m), scale=sum(m))


@given(data=weighted_rows(), n=N_BINS)
def test_every_sum_is_the_exact_one(data: list[tuple[float, float, float]], n: int) -> None:
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
        sums = sc.reliability(label, p, sample_weight=w, n_votes=3).sums
        assert not sums.outcome_prob_var.any()
        assert not sums.outcome_residual_var.any()
        plain = sc.reliability(label, p, sample_weight=w).sums
        np.testing.assert_array_equal(sums.hard_residual, plain.hard_residual)


@pytest.mark.parametrize("n_bins", [1, 10, 3600])
@pytest.mark.parametrize("n", [1023, 1024, 1025, 60_000, 300_001])
def test_both_roads_agree_at_every_size(n: int, n_bins: int, rng: np.random.Generator) -> None:
    y, p = rng.random(n), rng.random(n)
    assert_same_sums(*both_roads(y, p, bins=sc.Bins.uniform(n_bins)), scale=n)


@pytest.mark.parametrize("n", [60_000, 1_000_000])
def test_a_long_sum_of_one_number_does_not_drift(n: int) -> None:
    """0.1 added 10^6 times one after another is off by 1e-11; both roads cut the row short."""
    rel = sc.reliability(np.zeros(n), np.full(n, 0.1), bins=1)
    exact = n * Fraction(0.1)
    error = abs(Fraction(float(rel.sums.residual[0])) - exact) / exact
    assert error <= 1e-13
    naive = Fraction(float(np.cumsum(np.full(n, 0.1))[-1]))
    assert abs(naive - exact) / exact > error


def test_the_road_depends_on_the_number_of_rows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []

    def watched(name: str) -> Any:
        road = getattr(kernel, name)

        def take(*arguments: Any) -> Any:
            taken.append(name)
            return road(*arguments)

        return take

    for name in ("_numpy_sums", "_compiled_sums"):
        monkeypatch.setattr(kernel, name, watched(name))
    for n in (1, 65_536, 65_537, 300_000):
        sc.reliability(np.zeros(n), np.zeros(n))
    assert taken == ["_numpy_sums", "_numpy_sums", "_compiled_sums", "_compiled_sums"]


def test_the_number_of_cores_changes_no_digit(
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


def test_cores_are_counted_where_the_system_has_no_affinity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert _parallel._cores() >= 1
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert _parallel._cores() >= 1


def test_quantile_and_crowded_bins_agree_on_both_roads(rng: np.random.Generator) -> None:
    n = 100_000
    y, p = rng.random(n), rng.beta(0.2, 20, n)
    for bins in (sc.Bins.quantile(p, 15), sc.Bins.quantile(p, 1000)):
        assert_same_sums(*both_roads(y, p, bins=bins), scale=n)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f4", ">f8", np.longdouble])
@pytest.mark.parametrize("n", [1000, 200_000])
def test_any_float_dtype_gives_the_sums_of_its_values(
    dtype: Any, n: int, rng: np.random.Generator
) -> None:
    y, p = rng.random(n).astype(dtype), rng.random(n).astype(dtype)
    assert sc.reliability(y, p) == sc.reliability(y.astype(np.float64), p.astype(np.float64))


@pytest.mark.parametrize("n", [1000, 200_000])
def test_integers_bools_strided_and_read_only_columns(n: int, rng: np.random.Generator) -> None:
    p = rng.random(n)
    hard = rng.random(n) < p
    expected = sc.reliability(hard.astype(float), p)
    backwards = p[::-1].copy()[::-1]
    spread = np.zeros((n, 3))
    spread[:, 1] = p
    frozen = p.copy()
    frozen.flags.writeable = False
    for y in (hard, hard.astype(np.int8), hard.astype(np.uint64), hard.astype(np.float16)):
        for q in (p, backwards, spread[:, 1], frozen):
            assert sc.reliability(y, q) == expected


@pytest.mark.parametrize("n", [1000, 200_000])
@pytest.mark.parametrize("bad", [np.nan, -0.1, 1.0000001, np.inf, -np.inf])
def test_both_roads_see_a_bad_value_wherever_it_is(
    n: int, bad: float, rng: np.random.Generator
) -> None:
    for at in (0, n // 2, n - 1):
        spoilt = rng.random(n)
        spoilt[at] = bad
        good = rng.random(n)
        for y, p in ((spoilt, good), (good, spoilt)):
            with pytest.raises(sc.InputError, match=rf"\[{at}\] = |position {at}\b"):
                sc.reliability(y, p)


@pytest.mark.parametrize("n", [1000, 200_000])
def test_minus_zero_is_zero(n: int) -> None:
    zero = np.zeros(n)
    assert sc.reliability(-zero, -zero) == sc.reliability(zero, zero)


@given(data=weighted_rows())
def test_the_compiled_loop_means_what_it_says_in_python(
    data: list[tuple[float, float, float]],
) -> None:
    """Run the source of the loop without the compiler: the same sums, to the last bit."""
    y, p, w = (np.array(column) for column in zip(*data, strict=True))
    m = np.arange(1.0, len(data) + 1)
    bins = sc.Bins.quantile(p, 5)
    for weights, votes in ((None, None), (w, None), (None, m), (w, m)):
        width = len(kernel.columns_of(inputs.rows(y, p, weights, votes)))
        for label in (y, np.round(y)):  # soft ones, and 0 and 1 only
            plain, fast = np.zeros((len(bins), width)), np.zeros((len(bins), width))
            arguments = (p, label, weights, votes, bins.edges, bins.guide.starts)
            assert compiled.add_run.py_func(*arguments, plain)  # type: ignore[attr-defined]
            for soft in (True, False):
                assert compiled.add_rows.py_func(*arguments, soft, np.zeros_like(plain))  # type: ignore[attr-defined]
            assert compiled.add_block.py_func(*arguments, 1024, fast)  # type: ignore[attr-defined]
            np.testing.assert_array_equal(plain, fast)
    found = [compiled.bin_of.py_func(value, bins.edges, bins.guide.starts) for value in p]  # type: ignore[attr-defined]
    assert found == bins.locate(p).tolist()


def test_the_search_inside_a_cell_means_what_it_says_in_python() -> None:
    bins = sc.Bins([0.0, *(np.arange(1, 50) * 1e-9).tolist(), 1.0])
    found = [compiled.bin_of.py_func(edge, bins.edges, bins.guide.starts) for edge in bins.edges]  # type: ignore[attr-defined]
    assert found == [*range(50), 49]


@pytest.mark.parametrize(
    ("column", "value"),
    [("p", 2.0), ("y", np.nan), ("w", -1.0), ("w", 1e200), ("m", 0.0), ("m", 2.5)],
)
def test_the_loop_refuses_in_python_too(column: str, value: float) -> None:
    columns = {name: np.ones(3) for name in "pywm"}
    columns[column][1] = value
    bins = sc.Bins.uniform(2)
    arguments = (*columns.values(), bins.edges, bins.guide.starts)
    sums = np.zeros((2, 18))
    assert not compiled.add_rows.py_func(*arguments, True, sums)  # type: ignore[attr-defined] # noqa: FBT003
    assert not compiled.add_run.py_func(*arguments, sums)  # type: ignore[attr-defined]
    assert not compiled.add_block.py_func(*arguments, 1024, sums)  # type: ignore[attr-defined]


def test_without_a_place_for_a_cache_the_loop_still_compiles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def njit(**options: bool) -> Any:
        if options.get("cache"):
            message = "cannot cache function: no locator available"
            raise RuntimeError(message)
        return lambda function: function

    monkeypatch.setattr(compiled, "njit", njit)
    assert compiled._compile(len) is len


def test_threads_that_call_at_once_leave_no_setting_behind(rng: np.random.Generator) -> None:
    y, p = rng.random(70_000), rng.random(70_000)
    expected = sc.reliability(y, p)
    settings: Any = numba.config
    before = settings.SLP_VECTORIZE
    compiled._compiled_for.clear()
    with ThreadPoolExecutor(8) as pool:
        tables = list(pool.map(lambda _: sc.reliability(y, p), range(64)))
    assert before == settings.SLP_VECTORIZE
    assert all(table == expected for table in tables)


def test_a_disk_too_full_for_the_cache_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def full_disk(*_: object) -> None:
        calls.append(1)
        if len(calls) < 3:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(compiled, "add_block", full_disk)
    compiled._call_without_rows((np.zeros(1), np.zeros(1), None, None))
    assert len(calls) == 3


def test_a_disk_that_stays_broken_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(compiled, "add_block", broken)
    with pytest.raises(OSError, match="Input/output"):
        compiled._call_without_rows((np.zeros(1), None))


def test_when_the_interpreter_has_no_more_threads_to_give_one_does_all() -> None:
    """A handler that runs while the interpreter shuts down, in a real process."""
    code = (
        "import atexit, numpy as np, softcal as sc\n"
        "x = np.full(300_000, 0.5)\n"
        "atexit.register(lambda: print(sc.smece(x, x * 0.5)))\n"
    )
    result = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "0.25\n"


def test_no_threads_no_pool(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    y, p = rng.random(300_000), rng.random(300_000)
    expected = sc.reliability(y, p)
    monkeypatch.setattr(_parallel, "_pool", lambda _: None)
    assert sc.reliability(y, p) == expected


def test_a_pool_that_cannot_start_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        message = "cannot schedule new futures after interpreter shutdown"
        raise RuntimeError(message)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", refuse)
    assert _parallel._pool(2) is None


def test_many_bins_make_larger_blocks_and_the_same_sums(rng: np.random.Generator) -> None:
    n = 400_000
    y, p = rng.random(n), rng.random(n)
    fine = sc.reliability(y, p, bins=100_000)
    assert fine.n == n
    np.testing.assert_allclose(fine.coarsen(10).gap, sc.reliability(y, p).gap, atol=1e-12)
