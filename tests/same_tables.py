"""Assert that tables and sets of the same rows are equal up to rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softcal.table.blocks import BLOCKS
from softcal.table.kernel import SUM_NAMES
from softcal.table.owners import Anonymous
from softcal.table.tableset import Axes

if TYPE_CHECKING:
    from collections.abc import Hashable

    from softcal import Reliability, TableSet


def assert_same_table(ours: Reliability, whole: Reliability, *, hardened: bool = True) -> None:
    """Assert equal counts, and sums equal up to rounding relative to the largest weight."""
    assert ours.bins == whole.bins
    np.testing.assert_array_equal(ours.count, whole.count)
    size = float(whole.sums.weight.max())
    for name, a, b in zip(SUM_NAMES, ours.sums, whole.sums, strict=True):
        if name.startswith("hard_") and not hardened:
            continue
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * size, err_msg=name)
    assert (ours.clusters is None) == (whole.clusters is None)
    if ours.clusters is not None and whole.clusters is not None:
        assert ours.clusters.count == whole.clusters.count
        for mine, theirs in (
            (ours.clusters.residual, whole.clusters.residual),
            (ours.clusters.weight, whole.clusters.weight),
        ):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12 * size**2)


def assert_same_set(ours: TableSet, whole: TableSet, name: str = "") -> None:
    """Assert that two sets of the same rows are equal up to rounding, in any order of names."""
    assert ours.about == whole.about, name
    assert ours.bins == whole.bins, name
    for axis in Axes._fields:
        mine, theirs = getattr(ours.axes, axis), getattr(whole.axes, axis)
        if axis in ("cell", "segment"):
            assert set(mine) == set(theirs), (name, axis)
        elif axis != "owner":  # some may have no entries
            assert mine == theirs, (name, axis)
    assert set(ours.blocks) == set(whole.blocks), name
    for block in BLOCKS:
        if block in whole.blocks:
            assert_same_entries(ours, whole, block, f"{name}: {block}")


def assert_same_entries(ours: TableSet, whole: TableSet, block: str, name: str) -> None:
    """Compare entries by the names along each axis; a missing entry equals a sum of 0."""
    sides = [_by_name(each, block) for each in (ours, whole)]
    nothing = np.zeros(len(BLOCKS[block].sums))
    keys = list(dict.fromkeys([*sides[0], *sides[1]]))
    mine, theirs = (
        np.array([side.get(key, nothing) for key in keys]).reshape(len(keys), nothing.size)
        for side in sides
    )
    size = np.nan_to_num(np.abs(theirs)).max(axis=0, initial=0.0)
    np.testing.assert_array_equal(np.isnan(mine), np.isnan(theirs), err_msg=name)
    np.testing.assert_array_less(
        np.nan_to_num(np.abs(mine - theirs)),
        1e-12 * (np.nan_to_num(np.abs(theirs)) + size) + 1e-300,
        err_msg=name,
    )
    if block == "tables":
        np.testing.assert_array_equal(mine[:, 0], theirs[:, 0], err_msg=f"{name}: counts")


def _by_name(tables: TableSet, block: str) -> dict[tuple[Hashable, ...], np.ndarray]:
    keys, values = tables.blocks[block]
    named: list[list[Any]] = []
    for axis, row in zip(BLOCKS[block].axes, keys.tolist(), strict=True):
        if axis in ("cell", "segment", "owner"):
            names = [getattr(tables.axes, axis)[k] for k in row]
            named.append([each.number if isinstance(each, Anonymous) else each for each in names])
        else:
            named.append(row)
    return dict(zip(zip(*named, strict=True), values.T, strict=True))
