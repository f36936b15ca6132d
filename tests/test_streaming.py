"""A table updated batch by batch equals the table of all rows at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from same_tables import assert_same_table
from strategies import N_BINS, weighted_rows

import softcal as sc


@given(weighted_rows(), N_BINS, st.lists(st.integers(0, 60)))
def test_batches_in_any_order_give_the_table_of_all_rows(
    found: list[tuple[float, float, float]], n_bins: int, cuts: list[int]
) -> None:
    y, p, w = np.array(found).T
    m = 99 * (np.arange(y.size) % 3) + 1
    parts = np.split(np.arange(y.size), sorted(min(cut, y.size) for cut in cuts))
    stream = sc.StreamingReliability(bins=n_bins)
    for part in reversed(parts):  # some of them empty, some of weight 0 only
        stream.update(y[part], p[part], sample_weight=w[part], n_votes=m[part])
    whole = sc.reliability(y, p, bins=n_bins, sample_weight=w, n_votes=m)
    assert_same_table(stream.reliability, whole)
    assert stream.smece == pytest.approx(whole.smece, abs=1e-12)


def test_refused_batch_does_not_change_the_table() -> None:
    stream = sc.StreamingReliability().update([0.5], [0.4])
    before = stream.reliability
    with pytest.raises(sc.InputError, match=r"y_prob\[1\] = 1.5"):
        stream.update([0.5, 0.5], [0.4, 1.5])
    with pytest.raises(sc.InputError, match="same length"):
        stream.update([0.5, 0.5], [0.4])
    with pytest.raises(sc.InputError, match="y_true is empty"):
        stream.update([], [0.4])
    assert stream.reliability is before


def test_adding_streams_does_not_change_them() -> None:
    a = sc.StreamingReliability(4).update([0.5, 0.1], [0.4, 0.9])
    b = sc.StreamingReliability(4).update([1.0], [0.9])
    both = sc.reliability([0.5, 0.1, 1.0], [0.4, 0.9, 0.9], bins=4)
    assert_same_table((a + b).reliability, both)
    total = sum([a, b])
    assert isinstance(total, sc.StreamingReliability)
    assert_same_table(total.reliability, both)
    assert (a.reliability.n, b.reliability.n) == (2, 1)
    with pytest.raises(sc.BinMismatchError):
        a + sc.StreamingReliability(5)
    with pytest.raises(TypeError):
        a + 1  # type: ignore[operator]
    with pytest.raises(TypeError):
        1 + a


def test_reset_discards_rows_and_keeps_bins() -> None:
    stream = sc.StreamingReliability([0, 0.3, 1]).update([0.5], [0.4])
    assert stream.reset() is stream
    assert stream.reliability == sc.Reliability.empty([0, 0.3, 1])
    with pytest.raises(sc.InputError, match="no rows"):
        _ = stream.smece


def test_ragged_batch_is_refused() -> None:
    with pytest.raises(sc.InputTypeError, match="y_prob must be a column of numbers"):
        sc.StreamingReliability().update([0.0, 0.5], [[], 0.5])  # type: ignore[arg-type]


@given(weighted_rows(), N_BINS, st.lists(st.integers(0, 60)), st.integers(1, 9))
def test_group_may_have_rows_in_several_batches(
    found: list[tuple[float, float, float]], n_bins: int, cuts: list[int], n_groups: int
) -> None:
    y, p, w = np.array(found).T
    groups = np.array([f"patient {k}" for k in np.arange(y.size) % n_groups])
    parts = np.split(np.arange(y.size), sorted(min(cut, y.size) for cut in cuts))
    stream = sc.StreamingReliability(bins=n_bins)
    for part in parts:
        stream.update(y[part], p[part], sample_weight=w[part], groups=groups[part])
    halves = [sc.StreamingReliability(bins=n_bins) for _ in range(2)]
    for k, part in enumerate(parts):
        halves[k % 2].update(y[part], p[part], sample_weight=w[part], groups=groups[part])
    whole = sc.reliability(y, p, bins=n_bins, sample_weight=w, groups=groups)
    assert_same_table(stream.reliability, whole)
    assert_same_table((halves[0] + halves[1]).reliability, whole)


def test_groups_with_unsorted_names_of_any_type() -> None:
    stream = sc.StreamingReliability(2).update([0.0, 1.0], [0.2, 0.9], groups=["ben", "ann"])
    first = stream.reliability
    stream.update([0.5], [0.4], groups=np.array(["ann"], dtype=object))
    whole = sc.reliability([0.0, 1.0, 0.5], [0.2, 0.9, 0.4], bins=2, groups=["ben", "ann", "ann"])
    assert_same_table(stream.reliability, whole)
    assert first.n == 2
    stream.reset().update([0.5], [0.4])
    assert stream.reliability.clusters is None


def test_batches_with_and_without_groups_are_refused() -> None:
    with_groups = sc.StreamingReliability().update([0.5], [0.4], groups=["ann"])
    without = sc.StreamingReliability().update([0.5, 0.5], [0.4, 0.4])
    with pytest.raises(sc.InputError, match="this one has none, the 1 rows before it have groups"):
        with_groups.update([0.5], [0.4])
    with pytest.raises(sc.InputError, match="this one has groups, the 2 rows before it have none"):
        without.update([0.5], [0.4], groups=["ann"])
    for a, b in ((with_groups, without), (without, with_groups)):
        with pytest.raises(sc.InputError, match="all batches must have groups, or none"):
            a + b
    empty = sc.StreamingReliability()
    for both in (empty + with_groups, with_groups + empty):
        assert both.reliability == sc.reliability([0.5], [0.4], groups=["ann"])
    assert with_groups.update([0.5], [0.4], sample_weight=[0]) is with_groups  # adds nothing
    assert with_groups.reliability.n == 1


def test_groups_of_a_batch_are_validated() -> None:
    with pytest.raises(sc.InputError, match="at most 2000 bins: got 3600"):
        sc.StreamingReliability(3600).update([0.5], [0.4], groups=["ann"])
    with pytest.raises(sc.InputError, match="y_true and groups must have the same length"):
        sc.StreamingReliability().update([0.5], [0.4], groups=["ann", "ben"])
