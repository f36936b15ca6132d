"""What every map can do: predict, and be saved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from softcal.errors import InputError
from softcal.repair.maps.data import predictions

if TYPE_CHECKING:
    import numpy.typing as npt

    from softcal.door.inputs import FloatArray
    from softcal.repair.maps.data import Data

FORMAT = "softcal.calibrator"
SCHEMA = 2

_LARGEST = 1e100  # a parameter of a saved map beyond this is damage


class CalibrationMap(ABC):
    """A fitted map from predictions to calibrated predictions: a frozen handful of numbers."""

    method: ClassVar[str]
    dimensions: ClassVar[tuple[int, ...]] = (1,)  # of the predictions it takes

    @property
    def n_classes(self) -> int | None:
        """How many classes it was fitted on, where that matters."""
        return None

    @property
    def takes_logits(self) -> bool:
        """Whether it takes logits instead of probabilities."""
        return False

    @classmethod
    @abstractmethod
    def fit(cls, data: Data) -> Self:
        """Fit the map to data that came through the door."""

    @abstractmethod
    def apply(self, p: FloatArray) -> FloatArray:
        """Map predictions that came through the door."""

    def predict(self, y_prob: npt.ArrayLike) -> FloatArray:
        """Return calibrated probabilities, in the shape of the predictions, or logits, given."""
        p = predictions(y_prob, logits=self.takes_logits)
        self.refuse_other_dimensions(p)
        if self.n_classes not in (None, p.shape[-1]):
            message = (
                f"this {self.method} calibrator was fitted on {self.n_classes} classes: y_prob has "
                f"{p.shape[-1]}."
            )
            raise InputError(message)
        return self.apply(p)

    @classmethod
    def refuse_other_dimensions(cls, p: FloatArray) -> None:
        """Refuse class probabilities where one column is meant, or the other way round."""
        if p.ndim not in cls.dimensions:
            wanted = "one column" if cls.dimensions == (1,) else "one column per class"
            message = f"{cls.method} calibration takes {wanted}: y_prob has shape {p.shape}."
            raise InputError(message)

    def to_dict(self) -> dict[str, Any]:
        """Give the map as plain data, ready for JSON; `softcal.load_calibrator` reads it."""
        return {
            "format": FORMAT,
            "schema": SCHEMA,
            "method": self.method,
            "parameters": {
                field.name: _plain(getattr(self, field.name))
                for field in fields(self)  # type: ignore[arg-type]
            },
        }

    @classmethod
    @abstractmethod
    def read(cls, parameters: dict[str, Any]) -> Self:
        """Make the map of saved parameters, trusting nothing."""


def _plain(value: Any) -> Any:
    return value.to_dict() if hasattr(value, "to_dict") else np.asarray(value).tolist()


def saved_numbers(parameters: dict[str, Any], name: str, dimensions: int) -> FloatArray:
    """Read one saved parameter: a number, a list of them, or a list of equally long lists."""
    values = np.array(parameters[name], dtype=object)
    flat = values.ravel().tolist()
    good = values.ndim == dimensions and all(type(value) in (int, float) for value in flat)
    if not (good and flat and all(-_LARGEST <= value <= _LARGEST for value in flat)):
        kind = ("a finite number", "a list of finite numbers", "rows of finite numbers")[dimensions]
        message = f"a saved calibrator's {name!r} must be {kind}."
        raise InputError(message)
    return values.astype(np.float64)


def refuse_unless(rule: bool, text: str) -> None:  # noqa: FBT001
    """Refuse a saved map that no fit can have made."""
    if not rule:
        message = f"a saved calibrator's {text}: the file is damaged, or made by something else."
        raise InputError(message)
