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


def assert_close(left: Any, right: Any) -> None:
    """Equal names and counts, numbers equal to 1e-12."""
    if isinstance(left, dict):
        assert list(left) == list(right)
        for key in left:
            assert_close(left[key], right[key])
    elif isinstance(left, list):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            assert_close(one, other)
    else:
        assert left == (pytest.approx(right, abs=1e-12) if isinstance(right, float) else right)
