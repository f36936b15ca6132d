"""Assert that tables and sets of the same rows are equal up to rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softcal.table.kernel import HARDENED, SUM_NAMES

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from softcal import Reliability, TableSet
    from softcal.table.tableset import Sparse


def assert_same_table(ours: Reliability, whole: Reliability, *, hardened: bool = True) -> None:
    """Assert equal counts, and sums equal up to rounding relative to the largest weight."""
    assert ours.bins == whole.bins
    np.testing.assert_array_equal(ours.count, whole.count)
    size = float(whole.sums.weight.max())
    for name, a, b in zip(SUM_NAMES, ours.sums, whole.sums, strict=True):
        if name in HARDENED and not hardened:
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
    """Assert that two sets of the same rows are equal up to rounding, in any order of cells."""
    for about in (
        "label",
        "models",
        "targets",
        "by_names",
        "bins",
        "grid",
        "weight",
        "votes",
        "rows_dropped",
        "ordered",
    ):
        assert getattr(ours, about) == getattr(whole, about), (name, about)
    assert ours.rows_without_weight == whole.rows_without_weight, name
    assert set(ours.cells) == set(whole.cells), name
    cells: tuple[Sequence[Hashable], Sequence[Hashable]] = ours.cells, whole.cells
    counts = ours.tables._replace(values=ours.tables.values[:1])
    exact = whole.tables._replace(values=whole.tables.values[:1])
    assert_same_entries(counts, exact, 2, cells, f"{name}: counts", exact=True)
    assert_same_entries(ours.tables, whole.tables, 2, cells, f"{name}: tables")
    assert (ours.scores is None) == (whole.scores is None), name
    if ours.scores is not None and whole.scores is not None:
        assert_same_entries(ours.scores, whole.scores, 1, cells, f"{name}: scores")
    assert (ours.groups is None) == (whole.groups is None), name
    if ours.groups is not None and whole.groups is not None:
        segments = [tuple(sorted(each.items())) for each in ours.groups.segments]
        theirs = [tuple(sorted(each.items())) for each in whole.groups.segments]
        cells = tuple(segments), tuple(theirs)
        assert set(segments) == set(theirs), name
        mine, other = ours.groups, whole.groups
        assert_same_entries(mine.counts, other.counts, 2, cells, f"{name}: groups", exact=True)
        assert_same_entries(mine.squares, other.squares, 2, cells, f"{name}: squares")
    assert (ours.pairs is None) == (whole.pairs is None), name
    if ours.pairs is not None and whole.pairs is not None:
        assert ours.pairs.bins == whole.pairs.bins
        assert_same_entries(ours.pairs.cross, whole.pairs.cross, 3, cells, f"{name}: cross")
        assert_same_entries(ours.pairs.losses, whole.pairs.losses, 3, cells, f"{name}: losses")


def assert_same_entries(
    ours: Sparse,
    whole: Sparse,
    part: int,
    places: tuple[Sequence[Hashable], Sequence[Hashable]],
    name: str,
    *,
    exact: bool = False,
) -> None:
    """Compare entries after renumbering one key; a missing entry equals a sum of 0."""
    sides = [_by_name(each, part, names) for each, names in zip((ours, whole), places, strict=True)]
    nothing = np.zeros(len(whole.values))
    keys = list(dict.fromkeys([*sides[0], *sides[1]]))
    mine, theirs = (
        np.array([side.get(key, nothing) for key in keys]).reshape(len(keys), -1) for side in sides
    )
    if exact:
        np.testing.assert_array_equal(mine, theirs, err_msg=name)
        return
    size = np.abs(theirs).max(axis=0, initial=0.0)
    np.testing.assert_array_less(
        np.abs(mine - theirs), 1e-12 * (np.abs(theirs) + size) + 1e-300, err_msg=name
    )


def _by_name(
    entries: Sparse, part: int, names: Sequence[Hashable]
) -> dict[tuple[Hashable, ...], np.ndarray]:
    return {
        (*key[:part], names[key[part]], *key[part + 1 :]): values
        for key, values in zip(entries.keys.T.tolist(), entries.values.T, strict=True)
    }
