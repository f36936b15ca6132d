"""What predictions of exactly 0 and 1 are read as, where a map takes their logarithms.

A 0 means "less than this model can say", so it is read as half the least other prediction the map
was fitted on, and a 1 likewise: for a forest of 100 trees 0.005, for a network's float32 about
1e-8. Without a 0 or 1 among those, nothing but what is closer to it than `CLOSEST` is moved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softcal.repair.maps.base import refuse_unless, saved_numbers

if TYPE_CHECKING:
    from softcal.door.inputs import FloatArray

CLOSEST = 2.0**-24
"""Half the distance of 1 from the next smaller float32: what rounds to 1 there. About 6e-8."""


class Ends(NamedTuple):
    """Predictions outside [low, high] are read as the nearer end."""

    low: float
    high: float

    @staticmethod
    def of(p: FloatArray) -> Ends:
        """Choose the ends for the predictions a map is fitted on."""
        return Ends(least_read(p), 1 - least_read(1 - p))

    @staticmethod
    def read(parameters: dict[str, Any]) -> Ends:
        """Read saved ends."""
        high = float(saved_numbers(parameters, "high", 0))
        refuse_unless(0.5 <= high < 1, "high must be at least 0.5 and below 1")
        return Ends(read_low(parameters), high)

    def logs(self, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Give log p and log(1 - p), both finite."""
        inside = np.clip(p, self.low, self.high)
        return np.log(inside), np.log1p(-inside)

    def logit(self, p: FloatArray) -> FloatArray:
        """Give log p - log(1 - p), finite."""
        log_p, log_rest = self.logs(p)
        return log_p - log_rest


def least_read(p: FloatArray) -> float:
    """Choose what a prediction of 0 is read as."""
    other = p[(p > 0) & (p < 1)] if (p == 0).any() else p[:0]
    return max(CLOSEST, float(other.min()) / 2) if other.size else CLOSEST


def read_low(parameters: dict[str, Any]) -> float:
    """Read what a saved map reads 0 as."""
    low = float(saved_numbers(parameters, "low", 0))
    refuse_unless(0 < low <= 0.5, "low must be above 0 and at most 0.5")
    return low


def log_classes(p: FloatArray, low: float) -> FloatArray:
    """Give the logarithms of class probabilities, finite."""
    logs: FloatArray = np.log(np.maximum(p, low))
    return logs
