"""The least value of a smooth convex function of few numbers, some of which have a lower limit."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from softcal.door.inputs import FloatArray

RIDGE = 1e-9
"""What leaving the start costs: RIDGE/2 times the squared distance, beside a mean loss per row.

It is far below what the noise of any real data set costs, and makes the least value exist and be
unique where the data alone would not say: labels that separate, equal predictions, one row.
"""

_MOST_STEPS = 200
_MOST_HALVINGS = 40
_NEARLY_THERE = 1e-13  # promised gain below which the loss cannot judge a step, nor need it


class Local(NamedTuple):
    """A function near a point: its value, slope and curvature."""

    value: float
    slope: FloatArray
    curvature: FloatArray


def least(near: Callable[[FloatArray], Local], start: FloatArray, lower: FloatArray) -> FloatArray:
    """Find the least of function plus ridge by Newton's steps, halved where they go too far."""

    def with_ridge(at: FloatArray) -> Local:
        found, moved = near(at), at - start
        return Local(
            found.value + RIDGE / 2 * float(moved @ moved),
            found.slope + RIDGE * moved,
            found.curvature + RIDGE * np.eye(at.size),
        )

    at, here = start, with_ridge(start)
    for _ in range(_MOST_STEPS):
        target = _least_of_parabola(at, here, lower)
        if float(here.slope @ (at - target)) < _NEARLY_THERE:
            return target
        for halvings in range(_MOST_HALVINGS):
            there = at + (target - at) / 2**halvings
            found = with_ridge(there)
            # A fair part of what the slope promises.
            if found.value <= here.value + 1e-4 * float(here.slope @ (there - at)):
                break
        at, here = there, found
    return at


def _least_of_parabola(at: FloatArray, here: Local, lower: FloatArray) -> FloatArray:
    """Find where value, slope and curvature say the least is, not below the limits.

    With some numbers at their limits, the others follow; the few ways to choose are tried.
    """
    slope, curvature = here.slope, here.curvature
    best, gain = at, 0.0
    limited = np.flatnonzero(np.isfinite(lower))
    for choice in product((False, True), repeat=limited.size):
        fixed = np.zeros(at.size, dtype=bool)
        fixed[limited] = choice
        target = np.where(fixed, lower, at)
        free = ~fixed
        pull = slope + curvature @ (target - at)
        if free.any():
            target[free] -= np.linalg.solve(curvature[np.ix_(free, free)], pull[free])
        step = target - at
        change = float(slope @ step + step @ curvature @ step / 2)
        if change < gain and (target >= lower).all():
            best, gain = target, change
    return best
