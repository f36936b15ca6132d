"""As many equal-mass bins as the labels bear."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from softcal.door import inputs
from softcal.table.bins import Bins
from softcal.table.distinct import distinct

if TYPE_CHECKING:
    from softcal.door.inputs import FloatArray


def sweep_bins(y_true: npt.ArrayLike, y_prob: npt.ArrayLike, *, most: int = 1000) -> Bins:
    r"""Find the largest number of equal-mass bins whose mean labels never fall.

    Try 2, 3, 4, ... bins of equal mass, and stop before the first number of bins at which a mean
    label is below that of the bin before (Roelofs, Cain, Shlens and Mozer, Mitigating bias in
    calibration error estimation, AISTATS 2022). Equal means count as not falling. Soft labels have
    less noise than 0/1 outcomes, and so get more bins. Constant labels never fall: they get one
    bin per distinct prediction, up to `most`, because labels without noise need no averaging.

    Parameters
    ----------
    y_true, y_prob
        As in `reliability`.
    most : int, default 1000
        Largest number of bins. Labels without noise would have one bin per row.

    Returns
    -------
    Bins
        `Bins.quantile(y_prob, b)` for the b found; equal predictions share a bin. The ECE-sweep of
        the paper is `smece(y_true, y_prob, bins=sweep_bins(y_true, y_prob))`.

    Examples
    --------
    >>> sweep_bins([0.0, 0.3, 0.2, 0.9], [0.1, 0.4, 0.6, 0.8]).edges
    array([0. , 0.4, 0.6, 1. ])
    """
    upper = len(Bins.uniform(most))  # refuses what is no number of bins
    pools = distinct(inputs.rows(y_true, y_prob))
    rows_before = np.append(0, pools.rows.cumsum())
    labels_before = np.append(0.0, pools.label.cumsum())
    found = 1
    most = min(upper, int(rows_before[-1]))
    while found < most and _rises(found + 1, rows_before, labels_before):
        found += 1
    return Bins.quantile(y_prob, found)


def _rises(n_bins: int, rows_before: npt.NDArray[np.int64], labels_before: FloatArray) -> bool:
    """Whether the mean labels of n equal-mass bins never fall. Bins start at a pool each."""
    wanted = np.arange(1, n_bins) * rows_before[-1] // n_bins
    starts = rows_before.searchsorted(wanted, side="right") - 1
    # As `Bins.quantile`: no bin is left empty at the bottom.
    bounds = np.unique(np.concatenate(([0], np.maximum(starts, 1), [rows_before.size - 1])))
    means = np.diff(labels_before[bounds]) / np.diff(rows_before[bounds])
    # Cumulative sums round: equal means may seem to fall by that much.
    return bool((np.diff(means) >= -1e-12).all())
