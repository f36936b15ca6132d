"""A table added up in parts, and that of all rows at once: equal to rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

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
