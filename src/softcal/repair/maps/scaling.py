"""Maps of one prediction with one, two or three numbers: temperature, Platt, beta."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.special import expit

from softcal.repair.maps.base import CalibrationMap, refuse_unless, saved_numbers
from softcal.repair.maps.ends import Ends, log_classes
from softcal.repair.maps.losses import common_slope, log_softmax, logistic
from softcal.repair.maps.newton import least

if TYPE_CHECKING:
    from softcal.door.inputs import FloatArray
    from softcal.repair.maps.data import Data

_SHALLOWEST = float(np.exp(-10))  # the least slope, so that T is at most about 22,000


@dataclass(frozen=True)
class TemperatureMap(CalibrationMap):
    """Divide the logit by T, or the logarithms of all classes; see `softcal.Temperature`."""

    method: ClassVar[str] = "temperature"
    dimensions: ClassVar[tuple[int, ...]] = (1, 2)
    temperature: float
    low: float
    high: float

    @classmethod
    def fit(cls, data: Data) -> Self:
        """Find the slope 1/T, in which the loss is convex, and give T."""
        p, y, w = data
        ends = Ends.of(p)
        if p.ndim == 2:
            near = partial(common_slope, log_classes(p, ends.low), y, w)
        else:
            near = partial(logistic, [ends.logit(p)], y, w)
        (slope,) = least(near, np.ones(1), np.array([_SHALLOWEST]))
        return cls(1 / float(slope), *ends)

    def apply(self, p: FloatArray) -> FloatArray:
        """Map one column, or any number of classes."""
        if p.ndim == 2:
            return log_softmax(log_classes(p, self.low) / self.temperature)[1]
        q: FloatArray = expit(Ends(self.low, self.high).logit(p) / self.temperature)
        return q

    @classmethod
    def read(cls, parameters: dict[str, Any]) -> Self:
        """Read T, above 0."""
        temperature = float(saved_numbers(parameters, "temperature", 0))
        refuse_unless(temperature > 1e-100, "temperature must be above 0")
        return cls(temperature, *Ends.read(parameters))


@dataclass(frozen=True)
class PlattMap(CalibrationMap):
    """Stretch and shift the logit; see `softcal.Platt`."""

    method: ClassVar[str] = "platt"
    slope: float
    intercept: float
    low: float
    high: float

    @classmethod
    def fit(cls, data: Data) -> Self:
        """Find slope, not below 0, and intercept."""
        ends = Ends.of(data.p)
        near = partial(logistic, [ends.logit(data.p)], data.y, data.w)
        slope, intercept = least(near, np.array([1.0, 0.0]), np.array([0.0, -np.inf]))
        return cls(float(slope), float(intercept), *ends)

    def apply(self, p: FloatArray) -> FloatArray:
        """Map one column."""
        q: FloatArray = expit(self.slope * Ends(self.low, self.high).logit(p) + self.intercept)
        return q

    @classmethod
    def read(cls, parameters: dict[str, Any]) -> Self:
        """Read both numbers."""
        slope, intercept = (float(saved_numbers(parameters, n, 0)) for n in ("slope", "intercept"))
        refuse_unless(slope >= 0, "slope must be 0 or more")
        return cls(slope, intercept, *Ends.read(parameters))


@dataclass(frozen=True)
class BetaMap(CalibrationMap):
    """Weigh log p and log(1 - p) apart; see `softcal.Beta`."""

    method: ClassVar[str] = "beta"
    a: float
    b: float
    c: float
    low: float
    high: float

    @classmethod
    def fit(cls, data: Data) -> Self:
        """Find a and b, not below 0, and c."""
        ends = Ends.of(data.p)
        log_p, log_rest = ends.logs(data.p)
        near = partial(logistic, [log_p, -log_rest], data.y, data.w)
        a, b, c = least(near, np.array([1.0, 1.0, 0.0]), np.array([0.0, 0.0, -np.inf]))
        return cls(float(a), float(b), float(c), *ends)

    def apply(self, p: FloatArray) -> FloatArray:
        """Map one column."""
        log_p, log_rest = Ends(self.low, self.high).logs(p)
        q: FloatArray = expit(self.a * log_p - self.b * log_rest + self.c)
        return q

    @classmethod
    def read(cls, parameters: dict[str, Any]) -> Self:
        """Read the three numbers."""
        a, b, c = (float(saved_numbers(parameters, name, 0)) for name in ("a", "b", "c"))
        refuse_unless(a >= 0 and b >= 0, "a and b must be 0 or more")
        return cls(a, b, c, *Ends.read(parameters))
