r"""The absolute value of a noisy number: how far it is from the absolute value of the true one.

Z is a standard normal. \(|x + Z|\) overestimates \(|x|\), most at 0; these functions say by how
much, undo it, and give an estimate that never overestimates on average. All work on arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

if TYPE_CHECKING:
    from softcal.door.inputs import FloatArray

MEAN_AT_0 = float(np.sqrt(2 / np.pi))
"""The mean of |Z|."""


def mean_abs(x: FloatArray) -> FloatArray:
    r"""Mean of \(|x + Z|\): \(2\varphi(x) + x(2\Phi(x) - 1)\)."""
    out: FloatArray = 2 * _density(x) + x * (2 * ndtr(x) - 1)
    return out


def variance_abs(x: FloatArray) -> FloatArray:
    r"""Variance of \(|x + Z|\), between \(1 - 2/\pi\) and 1."""
    return np.clip(1 + x**2 - mean_abs(x) ** 2, 1 - 2 / np.pi, 1.0)


def inverse_mean_abs(mean: FloatArray) -> FloatArray:
    """Give the x of at least 0 with this mean of |x + Z|; 0 where the mean is below that of |Z|."""
    return np.where(mean > _GRID_MEAN[-1], mean, np.interp(mean, _GRID_MEAN, _GRID))


def highest_plausible(seen: FloatArray, width: FloatArray) -> FloatArray:
    r"""Give the largest x at which a mean of |x + Z| this small is still plausible.

    The x where \(E|x + Z| - w \sqrt{Var|x + Z|}\) reaches what was seen, for \(w\) standard errors;
    what was seen must not be below the mean of |Z|.
    """
    reach = _GRID_MEAN - width[..., None] * _GRID_SPREAD
    above = np.maximum((reach >= seen[..., None]).argmax(axis=-1), 1)
    high = np.take_along_axis(reach, above[..., None], axis=-1)[..., 0]
    low = np.take_along_axis(reach, above[..., None] - 1, axis=-1)[..., 0]
    inside = _GRID[above] - (high - seen) / (high - low) * _STEP
    return np.where(reach[..., -1] < seen, seen + width, inside)  # beyond the grid |x + Z| is x + Z


def soft_sign(t: FloatArray, c: float) -> FloatArray:
    r"""Give a smooth sign of t, \(2\Phi(t/c) - 1\)."""
    out: FloatArray = 2 * ndtr(t / c) - 1
    return out


def cautious_abs(t: FloatArray, c: float) -> FloatArray:
    r"""Estimate \(|x|\) from \(t = x + Z\), never too high on average.

    \(t(2\Phi(t/c) - 1) - (2/c)\varphi(t/c)\), whose mean is
    \(x(2\Phi(x/\sqrt{1 + c^2}) - 1)\) by Stein's identity: at most \(|x|\), exact at 0.
    """
    out: FloatArray = t * soft_sign(t, c) - (2 / c) * _density(t / c)
    return out


def _density(x: FloatArray) -> FloatArray:
    out: FloatArray = np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)
    return out


# Both inversions interpolate on this grid; a step of 0.005 makes them right to 3e-6.
_STEP = 0.005
_GRID = np.arange(0, 16, _STEP)
_GRID_MEAN = mean_abs(_GRID)
_GRID_SPREAD = np.sqrt(variance_abs(_GRID))
