"""What a map that works on logarithms is given: probabilities, or logits.

Probabilities are used as they are; only 0 and 1, which have no logit, need a rule. A 0 means "less
than this model can say". Where the map was fitted on zeros, they are read as half the smallest
other prediction of the fit: for a forest of 100 trees 0.005. Otherwise a 0 is read as half the
smallest positive float64. Predictions of 1 follow the same rule by their distance from 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from softcal.calibrators.base import CalibrationMap, refuse_unless, saved_numbers
from softcal.calibrators.fitting import log_softmax
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray
    from softcal.calibrators.base import Data

_SMALLEST = 2.0**-1074  # positive float64
_CLOSEST_TO_1 = 2.0**-53  # the distance of 1 from the next smaller float64
_HARD = 0.5  # stands for the smallest other prediction where all are 0 or 1


class Input(ABC):
    """What predictions are, and how their logarithms are taken; all of them are finite."""

    kind: ClassVar[str]

    @abstractmethod
    def logs(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log p and log(1 - p) of one column."""

    def logit(self, x: FloatArray) -> FloatArray:
        """Return log p - log(1 - p) of one column."""
        log_p, log_rest = self.logs(x)
        return log_p - log_rest

    @abstractmethod
    def log_classes(self, x: FloatArray) -> FloatArray:
        """Return log p of every class."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, which `read_input` reads."""
        return {"kind": self.kind, **asdict(self)}  # type: ignore[call-overload]

    @classmethod
    @abstractmethod
    def read(cls, saved: dict[str, Any]) -> Self:
        """Make it of saved numbers."""


@dataclass(frozen=True)
class Logits(Input):
    """Log-odds of one column, or any version of the log probabilities of all classes."""

    kind: ClassVar[str] = "logits"

    def logs(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log p and log(1 - p)."""
        return -np.logaddexp(0, -x), -np.logaddexp(0, x)

    def logit(self, x: FloatArray) -> FloatArray:
        """Return the logits themselves."""
        return x

    def log_classes(self, x: FloatArray) -> FloatArray:
        """Return the version that probabilities have: its exponentials sum to 1."""
        return log_softmax(x)[0]

    @classmethod
    def read(cls, saved: dict[str, Any]) -> Self:  # noqa: ARG003
        """There is nothing to read."""
        return cls()


@dataclass(frozen=True)
class Probabilities(Input):
    """Probabilities, used as they are down to a distance from 0 and from 1.

    A prediction p below `near_zero`, m for short, is read as m/2 (1 + 1/(1 + log2(m/p))), which
    rises strictly from m/2 at 0 to m at m. The same holds at 1. In the fit only 0 is below m.
    """

    kind: ClassVar[str] = "probabilities"
    near_zero: float
    near_one: float

    @staticmethod
    def of(p: FloatArray) -> Probabilities:
        """Choose the distances for the predictions a map is fitted on."""
        return Probabilities(_nearest(p, _SMALLEST), _nearest(1 - p, _CLOSEST_TO_1))

    def logs(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log p and log(1 - p)."""
        with np.errstate(divide="ignore"):
            log_p, log_rest = np.log(x), np.log1p(-x)
        low, high = x < self.near_zero, 1 - x < self.near_one
        log_p[low] = _read_as(log_p[low], self.near_zero)
        log_rest[low] = np.log1p(-np.exp(log_p[low]))
        log_rest[high] = _read_as(log_rest[high], self.near_one)
        log_p[high] = np.log1p(-np.exp(log_rest[high]))
        return log_p, log_rest

    def log_classes(self, x: FloatArray) -> FloatArray:
        """Return log p of every class."""
        with np.errstate(divide="ignore"):
            log_p: FloatArray = np.log(x)
        low = x < self.near_zero
        log_p[low] = _read_as(log_p[low], self.near_zero)
        return log_p

    @classmethod
    def read(cls, saved: dict[str, Any]) -> Self:
        """Read both distances."""
        near_zero, near_one = (float(saved_numbers(saved, n, 0)) for n in ("near_zero", "near_one"))
        refuse_unless(
            near_zero > 0 and near_one > 0 and near_zero <= 1 - near_one,
            "near_zero and near_one must be above 0 and sum to at most 1",
        )
        return cls(near_zero, near_one)


@dataclass(frozen=True)
class Clipped(Input):
    """Probabilities as softcal 0.1 read them: those outside [low, high] are the nearer end."""

    kind: ClassVar[str] = "clipped"
    low: float
    high: float

    def logs(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log p and log(1 - p)."""
        inside = np.clip(x, self.low, self.high)
        return np.log(inside), np.log1p(-inside)

    def log_classes(self, x: FloatArray) -> FloatArray:
        """Return log p of every class."""
        logs: FloatArray = np.log(np.maximum(x, self.low))
        return logs

    @classmethod
    def read(cls, saved: dict[str, Any]) -> Self:
        """Read both ends; for maps of classes 0.1 saved the lower one only."""
        low, high = (float(saved_numbers(saved, name, 0)) for name in ("low", "high"))
        refuse_unless(0 < low <= 0.5, "low must be above 0 and at most 0.5")
        refuse_unless(0.5 <= high < 1, "high must be at least 0.5 and below 1")
        return cls(low, high)


KINDS: dict[str, type[Input]] = {each.kind: each for each in (Logits, Probabilities, Clipped)}


class LogMap(CalibrationMap):
    """A map of logarithms, which takes probabilities or logits."""

    input: Input

    @property
    def takes_logits(self) -> bool:
        """Whether it takes logits."""
        return isinstance(self.input, Logits)


def input_of(data: Data) -> Input:
    """Choose how a map reads what it is fitted on."""
    return Logits() if data.logits else Probabilities.of(data.p)


def read_input(parameters: dict[str, Any]) -> Input:
    """Read what a saved map takes."""
    saved = parameters["input"]
    kind = KINDS.get(str(saved.get("kind"))) if isinstance(saved, dict) else None
    names = set() if kind is None else {"kind", *(field.name for field in fields(kind))}  # type: ignore[arg-type]
    if kind is None or set(saved) != names:
        message = (
            f"a saved calibrator's 'input' must be one of {', '.join(KINDS)}, with its numbers."
        )
        raise InputError(message)
    return kind.read(saved)


def _nearest(distance: FloatArray, without: float) -> float:
    """Choose the distance from an end below which predictions are not used as they are."""
    if (distance > 0).all():
        return without
    other = distance[(distance > 0) & (distance < 1)]
    return float(other.min()) if other.size else _HARD


def _read_as(log_distance: FloatArray, near: float) -> FloatArray:
    """Return the logarithm of what a distance below `near` is read as; that of 0 is -inf."""
    halvings = (np.log(near) - log_distance) / np.log(2)
    read: FloatArray = np.log(near) - np.log(2) + np.log1p(1 / (1 + halvings))
    return read
