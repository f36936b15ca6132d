"""Shared parts of the calibration maps: validated data, logarithms, and saved numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import Field, asdict, dataclass, field, fields
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax

from softcal import _display
from softcal._validation import inputs
from softcal._validation.arrays import column, column_names, listed, to_array
from softcal._validation.inputs import DEFAULT_NAMES, FloatArray, Names
from softcal._validation.multiclass import class_names
from softcal._validation.rules import SUM_TOLERANCE
from softcal.exceptions import InputError


class Data(NamedTuple):
    """Predictions and labels, both of shape (n,) or both of shape (n, C), and weights."""

    p: FloatArray
    y: FloatArray
    w: FloatArray
    logits: bool = False  # whether p holds logits

    @property
    def shares(self) -> FloatArray:
        """The weights, divided by their sum."""
        shares: FloatArray = self.w / self.w.sum()
        return shares


def fitting_data(
    y_prob: npt.ArrayLike,
    y_true: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
    names: Names = DEFAULT_NAMES,
    *,
    logits: bool = False,
) -> Data:
    """Validate the data of a fit: of shape (n,) or (n, 1), or of shape (n, C) for classes."""
    y_prob, y_true = _one_column(y_prob), _one_column(y_true)
    if _matrix(y_prob) is not None:
        return _of_classes(y_prob, y_true, sample_weight, names, logits=logits)
    rows = inputs.rows(y_true, y_prob, sample_weight, names=names)
    p, y = inputs.as_float64(rows.y_prob), inputs.as_float64(rows.y_true)
    w = None if rows.sample_weight is None else inputs.as_float64(rows.sample_weight)
    if logits:
        inputs.logits(p, names.y_prob)
        rows = rows._replace(y_prob=np.zeros(p.size))  # to validate the other columns as usual
    if not inputs.all_valid(inputs.as_float64(rows.y_prob), y, w):
        inputs.refuse(rows)
    if w is None:
        return Data(p, y, np.ones(p.size), logits)
    if not w.any():
        inputs.refuse_no_weight(rows)
    return _weighted(p, y, w, logits=logits)


def predictions(y_prob: npt.ArrayLike, name: str = "y_prob", *, logits: bool = False) -> FloatArray:
    """Validate predictions of shape (n,) or (n, 1), or of shape (n, C) with rows that sum to 1.

    Logits need not sum to 1. The result of a single column has shape (n,).
    """
    y_prob = _one_column(y_prob)
    matrix = _matrix(y_prob)
    read = inputs.logits if logits else inputs.probabilities
    if matrix is None:
        return inputs.as_float64(read(y_prob, name))
    if matrix.shape[1] < 2:
        message = (
            f"{name} must be one column, or one column per class: it has shape {matrix.shape}. "
            "Pass one value per row, or one per class."
        )
        raise InputError(message)
    classes: FloatArray = inputs.as_float64(read(matrix.ravel(), name)).reshape(matrix.shape)
    if logits:
        return classes
    off = np.abs(classes.sum(axis=1) - 1) > SUM_TOLERANCE
    if off.any():
        first = int(off.argmax())
        message = (
            f"each row of {name} must sum to 1: {off.sum()} of {off.size} do not, the first is "
            f"row {first}, which sums to {float(classes[first].sum()):.6g}. Divide each row by its "
            "sum, if the classes are mutually exclusive."
        )
        raise InputError(message)
    return classes


def _one_column(values: npt.ArrayLike) -> npt.ArrayLike:
    """Return values of shape (n, 1) as one column, as scikit-learn does; others unchanged."""
    matrix = _matrix(values)
    return values if matrix is None or matrix.shape[1] != 1 else _first(values, matrix)


def _matrix(values: npt.ArrayLike) -> npt.NDArray[Any] | None:
    """Return a two-dimensional input as an array; `inputs` validates everything else."""
    if isinstance(values, np.ma.MaskedArray):
        return values if values.ndim == 2 else None  # `inputs` refuses masked values
    try:
        array = np.asarray(values.detach() if hasattr(values, "detach") else values)
    except (TypeError, ValueError, RuntimeError):
        return None
    return array if array.ndim == 2 else None


def _of_classes(
    y_prob: npt.ArrayLike,
    y_true: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None,
    names: Names,
    *,
    logits: bool,
) -> Data:
    p, labels = predictions(y_prob, names.y_prob, logits=logits), _matrix(y_true)
    if labels is None or labels.shape != p.shape:
        found = to_array(y_true, names.y_true).shape
        message = (
            f"{names.y_true} must have one column per class, as {names.y_prob} does: it has shape "
            f"{found}, not {p.shape}. For class numbers, pass "
            f"numpy.eye({p.shape[1]})[{names.y_true}]."
        )
        raise InputError(message)
    class_names(y_true, y_prob, p.shape[1])  # refuses the same classes in two orders
    y = predictions(y_true, names.y_true)
    # Weights and pandas indexes are validated with the first class.
    first = _first(y_prob, p), _first(y_true, y)
    one = fitting_data(*first, sample_weight, names, logits=logits)
    if sample_weight is None:
        return Data(p, y, one.w, logits)
    w = inputs.as_float64(column(sample_weight, names.sample_weight))
    return _weighted(p, y, w, logits=logits)


def _first(values: Any, checked: FloatArray) -> npt.ArrayLike:
    first: npt.ArrayLike = values.iloc[:, 0] if hasattr(values, "iloc") else checked[:, 0]
    return first


def _weighted(p: FloatArray, y: FloatArray, w: FloatArray, *, logits: bool) -> Data:
    present = w > 0
    return Data(p[present], y[present], w[present], logits)


Matrix: TypeAlias = FloatArray
"""Numbers of shape (C, C)."""

FORMAT = "softcal.calibrator"
SCHEMA = 2

_LARGEST = 1e100  # a saved map with a larger parameter is damaged


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationMap(_display.Printed, ABC):
    """A fitted map from predictions to calibrated predictions. It is immutable.

    `columns` and `classes` are the names of the columns and of the classes that it was fitted on,
    or None if they had no names.
    """

    method: ClassVar[str]
    dimensions: ClassVar[tuple[int, ...]] = (1,)  # of the predictions it accepts
    columns: tuple[str, ...] | None = field(default=None, kw_only=True)
    classes: tuple[str, ...] | None = field(default=None, kw_only=True)

    @property
    def n_classes(self) -> int | None:
        """The number of classes of the fit; None if the map accepts any number."""
        return None

    @property
    def takes_logits(self) -> bool:
        """Whether the map accepts logits instead of probabilities."""
        return False

    @classmethod
    @abstractmethod
    def fit(cls, data: Data) -> Self:
        """Fit the map to validated data."""

    @abstractmethod
    def apply(self, p: FloatArray) -> FloatArray:
        """Map validated predictions."""

    def predict(self, y_prob: npt.ArrayLike) -> FloatArray:
        """Return calibrated probabilities.

        Parameters
        ----------
        y_prob : array-like of shape (n_samples,), (n_samples, 1), or (n_samples, n_classes)
            Predictions, or logits if the map was fitted on logits.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The calibrated probabilities. A single column gives shape (n_samples,).
        """
        p = predictions(y_prob, logits=self.takes_logits)
        self.refuse_other_dimensions(p)
        self._refuse_other_columns(column_names(y_prob))
        if self.n_classes not in (None, p.shape[-1]):
            message = (
                f"this {self.method} calibrator was fitted on {self.n_classes} classes: y_prob has "
                f"{p.shape[-1]}."
            )
            raise InputError(message)
        return self.apply(p)

    def _refuse_other_columns(self, names: list[Any] | None) -> None:
        """Refuse a frame whose columns are not those of the fit, by scikit-learn's rule."""
        fitted = self.columns
        if fitted is not None and len(fitted) == 1 and self.classes is not None:
            fitted = self.classes  # the fit had one column, of lists
        if fitted is None or names is None or not all(isinstance(name, str) for name in names):
            return
        if tuple(names) != fitted:
            message = (
                "the columns of y_prob must be those of the fit, in the same order: y_prob has "
                f"{listed(names)}, the fit had {listed(fitted)}. Select the columns by name."
            )
            raise InputError(message)

    @classmethod
    def refuse_other_dimensions(cls, p: FloatArray) -> None:
        """Refuse class probabilities if the map needs one column, and the reverse."""
        if p.ndim not in cls.dimensions:
            wanted = "one column" if cls.dimensions == (1,) else "one column per class"
            message = f"{cls.method} calibration takes {wanted}: y_prob has shape {p.shape}."
            raise InputError(message)

    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain data, ready for JSON. `load_calibrator` reads it."""
        names = {"columns": self.columns, "classes": self.classes}
        return {
            "format": FORMAT,
            "schema": SCHEMA,
            "method": self.method,
            "parameters": {
                each.name: _plain(getattr(self, each.name)) for each in self.parameters()
            },
            **{key: list(value) for key, value in names.items() if value is not None},
        }

    @classmethod
    def parameters(cls) -> list[Field[Any]]:
        """Return the fields of the fitted numbers."""
        return [each for each in fields(cls) if not each.kw_only]

    @classmethod
    @abstractmethod
    def read(cls, parameters: dict[str, Any]) -> Self:
        """Return the map of saved parameters, with full validation."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._numbers())})"

    def _shown(self) -> _display.Shown:
        return f"{self.method} calibrator: {', '.join(self._numbers())}", [], []

    def _numbers(self) -> list[str]:
        """Return the parameters as text: numbers by value, arrays by shape."""
        out = []
        for each in self.parameters():
            value = getattr(self, each.name)
            if isinstance(value, np.ndarray):
                out.append(f"{each.name} of shape {value.shape}")
            elif isinstance(value, float):
                out.append(f"{each.name}={value:.6g}")
        return out


def _plain(value: Any) -> Any:
    return value.to_dict() if hasattr(value, "to_dict") else np.asarray(value).tolist()


def saved_numbers(parameters: dict[str, Any], name: str, dimensions: int) -> FloatArray:
    """Return one saved parameter: a number, a list of numbers, or lists of equal length."""
    values = np.array(parameters[name], dtype=object)
    flat = values.ravel().tolist()
    good = values.ndim == dimensions and all(type(value) in (int, float) for value in flat)
    if not (good and flat and all(-_LARGEST <= value <= _LARGEST for value in flat)):
        kind = ("a finite number", "a list of finite numbers", "rows of finite numbers")[dimensions]
        message = f"a saved calibrator's {name!r} must be {kind}."
        raise InputError(message)
    return values.astype(np.float64)


def refuse_unless(rule: bool, text: str) -> None:  # noqa: FBT001
    """Refuse a saved map that no fit can have produced."""
    if not rule:
        message = (
            f"a saved calibrator's {text}: the file is damaged, or was written by another program."
        )
        raise InputError(message)


_SMALLEST = 2.0**-1074  # the smallest positive float64
_CLOSEST_TO_1 = 2.0**-53  # the distance between 1 and the next smaller float64
_HARD = 0.5  # used as the smallest other prediction if all are 0 or 1


class Input(ABC):
    """The input of a map of logarithms, and how finite logarithms are computed from it.

    Only predictions of 0 and 1, which have no finite logit, are changed. If the map was fitted on
    zeros, a 0 is replaced by half the smallest other prediction of the fit: 0.005 for a forest of
    100 trees. Otherwise a 0 is replaced by half the smallest positive float64. The same rule
    applies to predictions of 1, by their distance from 1.
    """

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
        """Return plain data. `read_input` reads it."""
        return {"kind": self.kind, **asdict(self)}  # type: ignore[call-overload]

    @classmethod
    @abstractmethod
    def read(cls, saved: dict[str, Any]) -> Self:
        """Return the input of saved numbers."""


@dataclass(frozen=True)
class Logits(Input):
    """Log-odds of one column, or the logits of all classes, up to a constant per row."""

    kind: ClassVar[str] = "logits"

    def logs(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log p and log(1 - p)."""
        return -np.logaddexp(0, -x), -np.logaddexp(0, x)

    def logit(self, x: FloatArray) -> FloatArray:
        """Return the logits themselves."""
        return x

    def log_classes(self, x: FloatArray) -> FloatArray:
        """Return the log-softmax, whose exponentials sum to 1."""
        return np.asarray(log_softmax(x, axis=1))

    @classmethod
    def read(cls, saved: dict[str, Any]) -> Self:  # noqa: ARG003
        """Return the input, which has no parameters."""
        return cls()


@dataclass(frozen=True)
class Probabilities(Input):
    """Probabilities, unchanged except very close to 0 and to 1.

    Let m be `near_zero`. A prediction p below m is replaced by m/2 (1 + 1/(1 + log2(m/p))). This
    value increases strictly from m/2 at p = 0 to m at p = m. The same holds at 1. In the fit only 0
    is below m.
    """

    kind: ClassVar[str] = "probabilities"
    near_zero: float
    near_one: float

    @staticmethod
    def of(p: FloatArray) -> Probabilities:
        """Choose the distances from the predictions of the fit."""
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
    """Probabilities clipped to [low, high], as in softcal 0.1."""

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
        """Read both limits; for classes, 0.1 saved only the lower one."""
        low, high = (float(saved_numbers(saved, name, 0)) for name in ("low", "high"))
        refuse_unless(0 < low <= 0.5, "low must be above 0 and at most 0.5")
        refuse_unless(0.5 <= high < 1, "high must be at least 0.5 and below 1")
        return cls(low, high)


KINDS: dict[str, type[Input]] = {each.kind: each for each in (Logits, Probabilities, Clipped)}


class LogMap(CalibrationMap):
    """A map of logarithms, which accepts probabilities or logits."""

    input: Input

    @property
    def takes_logits(self) -> bool:
        """Whether the map accepts logits."""
        return isinstance(self.input, Logits)


def input_of(data: Data) -> Input:
    """Return the input of a map fitted on this data."""
    return Logits() if data.logits else Probabilities.of(data.p)


def read_input(parameters: dict[str, Any]) -> Input:
    """Return the input of a saved map."""
    saved = parameters["input"]
    kind = KINDS.get(str(saved.get("kind"))) if isinstance(saved, dict) else None
    names = set() if kind is None else {"kind", *(each.name for each in fields(kind))}  # type: ignore[arg-type]
    if kind is None or set(saved) != names:
        message = (
            f"a saved calibrator's 'input' must be one of {', '.join(KINDS)}, with its numbers."
        )
        raise InputError(message)
    return kind.read(saved)


def _nearest(distance: FloatArray, without: float) -> float:
    """Return the distance from 0 or 1 below which predictions are replaced."""
    if (distance > 0).all():
        return without
    other = distance[(distance > 0) & (distance < 1)]
    return float(other.min()) if other.size else _HARD


def _read_as(log_distance: FloatArray, near: float) -> FloatArray:
    """Return the logarithm that replaces that of a distance below `near`; log 0 is -inf."""
    halvings = (np.log(near) - log_distance) / np.log(2)
    read: FloatArray = np.log(near) - np.log(2) + np.log1p(1 / (1 + halvings))
    return read
