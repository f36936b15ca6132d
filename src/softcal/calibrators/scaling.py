"""Maps of one prediction with one to three parameters: temperature, Platt, beta."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.special import expit

from softcal.calibrators.base import refuse_unless, saved_numbers
from softcal.calibrators.fitting import common_slope, least, log_softmax, logistic
from softcal.calibrators.logits import Input, LogMap, input_of, read_input

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray
    from softcal.calibrators.base import Data

_SHALLOWEST = float(np.exp(-10))  # the least slope, so that T is at most about 22,000


@dataclass(frozen=True)
class TemperatureMap(LogMap):
    """Divide the logit by T, or the logarithms of all classes; see `TemperatureCalibrator`."""

    method: ClassVar[str] = "temperature"
    dimensions: ClassVar[tuple[int, ...]] = (1, 2)
    temperature: float
    input: Input

    @classmethod
    def fit(cls, data: Data) -> Self:
        """Find the slope 1/T, in which the loss is convex, and give T."""
        input_ = input_of(data)
        if data.p.ndim == 2:
            near = partial(common_slope, input_.log_classes(data.p), data.y, data.shares)
        else:
            near = partial(logistic, [input_.logit(data.p)], data.y, data.shares)
        (slope,) = least(near, np.ones(1), np.array([_SHALLOWEST]))
        return cls(1 / float(slope), input_)

    def apply(self, p: FloatArray) -> FloatArray:
        """Map one column, or any number of classes."""
        if p.ndim == 2:
            return log_softmax(self.input.log_classes(p) / self.temperature)[1]
        q: FloatArray = expit(self.input.logit(p) / self.temperature)
        return q

    @classmethod
    def read(cls, parameters: dict[str, Any]) -> Self:
        """Read T, above 0."""
        temperature = float(saved_numbers(parameters, "temperature", 0))
        refuse_unless(temperature > 1e-100, "temperature must be above 0")
        return cls(temperature, read_input(parameters))


@dataclass(frozen=True)
class PlattMap(LogMap):
    """Stretch and shift the logit; see `PlattCalibrator`."""

    method: ClassVar[str] = "platt"
    slope: float
    intercept: float
    input: Input

    @classmethod
    def fit(cls, data: Data) -> Self:
        """Find slope, not below 0, and intercept."""
        input_ = input_of(data)
        near = partial(logistic, [input_.logit(data.p)], data.y, data.shares)
        slope, intercept = least(near, np.array([1.0, 0.0]), np.array([0.0, -np.inf]))
        return cls(float(slope), float(intercept), input_)

    def apply(self, p: FloatArray) -> FloatArray:
        """Map one column."""
        q: FloatArray = expit(self.slope * self.input.logit(p) + self.intercept)
        return q

    @classmethod
    def read(cls, parameters: dict[str, Any]) -> Self:
        """Read both numbers."""
        slope, intercept = (float(saved_numbers(parameters, n, 0)) for n in ("slope", "intercept"))
        refuse_unless(slope >= 0, "slope must be 0 or more")
        return cls(slope, intercept, read_input(parameters))


@dataclass(frozen=True)
class BetaMap(LogMap):
    """Weigh log p and log(1 - p) apart; see `BetaCalibrator`."""

    method: ClassVar[str] = "beta"
    a: float
    b: float
    c: float
    input: Input

    @classmethod
    def fit(cls, data: Data) -> Self:
        """Find a and b, not below 0, and c."""
        input_ = input_of(data)
        log_p, log_rest = input_.logs(data.p)
        near = partial(logistic, [log_p, -log_rest], data.y, data.shares)
        a, b, c = least(near, np.array([1.0, 1.0, 0.0]), np.array([0.0, 0.0, -np.inf]))
        return cls(float(a), float(b), float(c), input_)

    def apply(self, p: FloatArray) -> FloatArray:
        """Map one column."""
        log_p, log_rest = self.input.logs(p)
        q: FloatArray = expit(self.a * log_p - self.b * log_rest + self.c)
        return q

    @classmethod
    def read(cls, parameters: dict[str, Any]) -> Self:
        """Read the three numbers."""
        a, b, c = (float(saved_numbers(parameters, name, 0)) for name in ("a", "b", "c"))
        refuse_unless(a >= 0 and b >= 0, "a and b must be 0 or more")
        return cls(a, b, c, read_input(parameters))
