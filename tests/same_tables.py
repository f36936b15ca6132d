"""Tables added up in parts, and those of all rows at once: equal to rounding, and so is JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from softcal.table.kernel import HARDENED, SUM_NAMES

if TYPE_CHECKING:
    from softcal import Reliability


def assert_same_table(ours: Reliability, whole: Reliability, *, hardened: bool = True) -> None:
    """Counts are exact; sums, which rows of both signs make small, right to the largest weight."""
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


def assert_same_card(ours: Any, other: Any) -> None:
    """Two results of a command as JSON: the same keys and texts, and numbers equal to 1e-12."""
    if isinstance(other, dict):
        assert list(ours) == list(other)
        for key, value in other.items():
            assert_same_card(ours[key], value)
    elif isinstance(other, list):
        assert len(ours) == len(other)
        for a, b in zip(ours, other, strict=True):
            assert_same_card(a, b)
    elif isinstance(other, float):
        assert ours == pytest.approx(other, rel=1e-12, abs=1e-12)
    else:
        assert ours == other
