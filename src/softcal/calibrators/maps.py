"""Calibration maps, and loading of saved maps with full validation."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.special import expit, softmax

from softcal import _io
from softcal._exact import means
from softcal._fitting import (
    SoftmaxLoss,
    common_slope,
    logistic,
    minimum,
    softmax_minimum,
)
from softcal.bins import Bins
from softcal.calibrators.base import (
    FORMAT,
    KINDS,
    SCHEMA,
    CalibrationMap,
    Clipped,
    Input,
    LogMap,
    input_of,
    read_input,
    refuse_unless,
    saved_numbers,
)
from softcal.exceptions import InputError, InputTypeError
from softcal.metrics.corp import isotonic
from softcal.table.files import list_of, object_of

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray
    from softcal.calibrators.base import Data, Matrix

_LOWEST_SCALE = 1e-6  # directions in which the logarithms vary less than this are not rescaled
_TILT = 1e-15  # per prediction: more than the rounding error of a mean label
_SHALLOWEST = float(np.exp(-10))  # the smallest slope, so that T is at most about 22,000


@dataclass(frozen=True, repr=False)
class TemperatureMap(LogMap):
    """Divide the logit by T, or the logarithms of all classes; see `TemperatureCalibrator`."""

    method: ClassVar[str] = "temperature"
    dimensions: ClassVar[tuple[int, ...]] = (1, 2)
    temperature: float
    input: Input

    @classmethod
    def fit(cls, data: Data) -> Self:
        """Find the slope 1/T, in which the loss is convex."""
        input_ = input_of(data)
        if data.p.ndim == 2:
            near = partial(common_slope, input_.log_classes(data.p), data.y, data.shares)
        else:
            near = partial(logistic, [input_.logit(data.p)], data.y, data.shares)
        (slope,) = minimum(near, np.ones(1), np.array([_SHALLOWEST]))
        return cls(1 / float(slope), input_)

    def apply(self, p: FloatArray) -> FloatArray:
        """Map one column, or any number of classes."""
        if p.ndim == 2:
            return np.asarray(softmax(self.input.log_classes(p) / self.temperature, axis=1))
        q: FloatArray = expit(self.input.logit(p) / self.temperature)
        return q

    @classmethod
    def read(cls, parameters: dict[str, Any]) -> Self:
        """Read the temperature, which must be positive."""
        temperature = float(saved_numbers(parameters, "temperature", 0))
        refuse_unless(temperature > 1e-100, "temperature must be above 0")
        return cls(temperature, read_input(parameters))


@dataclass(frozen=True, repr=False)
class PlattMap(LogMap):
    """Scale and shift the logit; see `PlattCalibrator`."""

    method: ClassVar[str] = "platt"
    slope: float
    intercept: float
    input: Input

    @classmethod
    def fit(cls, data: Data) -> Self:
        """Find the slope, 0 or more, and the intercept."""
        input_ = input_of(data)
        near = partial(logistic, [input_.logit(data.p)], data.y, data.shares)
        slope, intercept = minimum(near, np.array([1.0, 0.0]), np.array([0.0, -np.inf]))
        return cls(float(slope), float(intercept), input_)

    def apply(self, p: FloatArray) -> FloatArray:
        """Map one column."""
        q: FloatArray = expit(self.slope * self.input.logit(p) + self.intercept)
        return q

    @classmethod
    def read(cls, parameters: dict[str, Any]) -> Self:
        """Read slope and intercept."""
        slope, intercept = (float(saved_numbers(parameters, n, 0)) for n in ("slope", "intercept"))
        refuse_unless(slope >= 0, "slope must be 0 or more")
        return cls(slope, intercept, read_input(parameters))


@dataclass(frozen=True, repr=False)
class BetaMap(LogMap):
    """Scale log p and log(1 - p) separately; see `BetaCalibrator`."""

    method: ClassVar[str] = "beta"
    a: float
    b: float
    c: float
    input: Input

    @classmethod
    def fit(cls, data: Data) -> Self:
        """Find a and b, 0 or more, and c."""
        input_ = input_of(data)
        log_p, log_rest = input_.logs(data.p)
        near = partial(logistic, [log_p, -log_rest], data.y, data.shares)
        a, b, c = minimum(near, np.array([1.0, 1.0, 0.0]), np.array([0.0, 0.0, -np.inf]))
        return cls(float(a), float(b), float(c), input_)

    def apply(self, p: FloatArray) -> FloatArray:
        """Map one column."""
        log_p, log_rest = self.input.logs(p)
        q: FloatArray = expit(self.a * log_p - self.b * log_rest + self.c)
        return q

    @classmethod
    def read(cls, parameters: dict[str, Any]) -> Self:
        """Read a, b, and c."""
        a, b, c = (float(saved_numbers(parameters, name, 0)) for name in ("a", "b", "c"))
        refuse_unless(a >= 0 and b >= 0, "a and b must be 0 or more")
        return cls(a, b, c, read_input(parameters))


@dataclass(frozen=True, eq=False, repr=False)
class IsotonicMap(CalibrationMap):
    """Interpolate linearly between increasing points; see `IsotonicCalibrator`."""

    method: ClassVar[str] = "isotonic"
    x: FloatArray
    y: FloatArray

    @classmethod
    def fit(cls, data: Data) -> Self:
        """Find the non-decreasing values with the lowest weighted squared error (PAV)."""
        order = np.argsort(data.p)
        p, y, w = (column[order] for column in data[:3])
        new = np.append(True, p[1:] > p[:-1])
        group, p = np.cumsum(new) - 1, p[new]  # groups of equal predictions
        label, weight = means(group, y, w, p.size), np.bincount(group, w).astype(np.float64)
        # scipy rounds, so the labels are tilted. It may then fail to pool some values, which the
        # loop below corrects, but it never pools too many.
        _, starts = isotonic(label + _TILT * np.arange(p.size), weight)
        pool = np.isin(np.arange(p.size), starts).cumsum() - 1
        while True:
            values = means(pool[group], y, w, pool[-1] + 1)
            falls = values[1:] < values[:-1]
            if not falls.any():
                break
            pool = np.append(0, np.cumsum(~falls))[pool]
        values = values[pool]
        # A point between two of equal height does not change the curve.
        bend = np.ones(values.size, dtype=bool)
        bend[1:-1] = (values[1:-1] != values[:-2]) | (values[1:-1] != values[2:])
        return cls(p[bend], values[bend])

    def apply(self, p: FloatArray) -> FloatArray:
        """Interpolate; outside the fitted range, use the value at its end."""
        if self.x.size == 1:
            return np.full(p.shape, self.y[0])
        inside = np.clip(p, self.x[0], self.x[-1])
        left = np.minimum(self.x.searchsorted(inside, side="right"), self.x.size - 1) - 1
        # Unlike in numpy.interp, this share is in [0, 1] even if two points are very close.
        share = (inside - self.x[left]) / (self.x[left + 1] - self.x[left])
        low, high = self.y[left], self.y[left + 1]
        q: FloatArray = np.where(share < 1, np.minimum(low + share * (high - low), high), high)
        return q

    @classmethod
    def read(cls, parameters: dict[str, Any]) -> Self:
        """Read increasing points."""
        x, y = (saved_numbers(parameters, name, 1) for name in ("x", "y"))
        refuse_unless(
            x.size == y.size and bool((np.diff(x) > 0).all()) and _in_unit(x),
            "x must increase within [0, 1] and be as long as y",
        )
        refuse_unless(
            bool((np.diff(y) >= 0).all()) and _in_unit(y), "y must not decrease, within [0, 1]"
        )
        return cls(x, y)


@dataclass(frozen=True, eq=False, repr=False)
class HistogramMap(CalibrationMap):
    """Map a prediction to the mean label of its bin; see `HistogramCalibrator`."""

    method: ClassVar[str] = "histogram"
    edges: FloatArray
    values: FloatArray

    @classmethod
    def fit(cls, data: Data, bins: Bins | None = None) -> Self:
        """Compute weighted mean labels per bin; a bin without rows predicts its midpoint."""
        bins = equal_mass(data, 10) if bins is None else bins
        values = means(bins.locate(data.p), data.y, data.w, len(bins))
        middle = (bins.edges[:-1] + bins.edges[1:]) / 2
        return cls(bins.edges, np.where(np.isnan(values), middle, values))

    def apply(self, p: FloatArray) -> FloatArray:
        """Look up the values of the bins."""
        q: FloatArray = self.values[Bins(self.edges).locate(p)]
        return q

    @classmethod
    def read(cls, parameters: dict[str, Any]) -> Self:
        """Read the edges and one value per bin."""
        edges, values = (saved_numbers(parameters, name, 1) for name in ("edges", "values"))
        bins = Bins(edges)
        refuse_unless(
            values.size == len(bins) and _in_unit(values), "values must be one per bin, in [0, 1]"
        )
        return cls(bins.edges, values)


def equal_mass(data: Data, n: int) -> Bins:
    """Return at most n bins of equal total weight."""
    alike = bool((data.w == data.w[0]).all())  # then no sort is necessary
    return Bins.quantile(data.p, n, None if alike else data.w)


def _in_unit(values: FloatArray) -> bool:
    return bool(((values >= 0) & (values <= 1)).all())


@dataclass(frozen=True, eq=False, repr=False)
class VectorScalingMap(LogMap):
    """Scale and shift the logarithm of each class; see `VectorScalingCalibrator`."""

    method: ClassVar[str] = "vector"
    dimensions: ClassVar[tuple[int, ...]] = (2,)
    slopes: FloatArray
    intercepts: FloatArray
    input: Input

    @property
    def n_classes(self) -> int:
        """The number of classes of the fit."""
        return self.slopes.size

    @classmethod
    def fit(cls, data: Data) -> Self:
        """Find a slope and an intercept per class."""
        input_ = input_of(data)
        z, y, w = input_.log_classes(data.p), data.y, data.shares

        def eta(theta: FloatArray, part: slice) -> FloatArray:
            slopes, intercepts = theta.reshape(2, -1)
            return z[part] * slopes + intercepts

        def slope(part: slice, r: FloatArray) -> FloatArray:
            return np.concatenate([(r * z[part]).sum(axis=0), r.sum(axis=0)])

        n = z.shape[1]
        theta = softmax_minimum(SoftmaxLoss(eta, slope, y, w), np.repeat([1.0, 0.0], n))
        slopes, intercepts = theta.reshape(2, n)
        return cls(slopes, intercepts, input_)

    def apply(self, p: FloatArray) -> FloatArray:
        """Map rows of class probabilities."""
        return np.asarray(
            softmax(self.input.log_classes(p) * self.slopes + self.intercepts, axis=1)
        )

    @classmethod
    def read(cls, parameters: dict[str, Any]) -> Self:
        """Read slopes and intercepts."""
        slopes, intercepts = (saved_numbers(parameters, n, 1) for n in ("slopes", "intercepts"))
        refuse_unless(slopes.size == intercepts.size > 1, "slopes and intercepts must match")
        return cls(slopes, intercepts, read_input(parameters))


@dataclass(frozen=True, eq=False, repr=False)
class DirichletMap(LogMap):
    """A linear map of the logarithms of all classes; see `DirichletCalibrator`."""

    method: ClassVar[str] = "dirichlet"
    dimensions: ClassVar[tuple[int, ...]] = (2,)
    matrix: Matrix
    intercepts: FloatArray
    input: Input

    @property
    def n_classes(self) -> int:
        """The number of classes of the fit."""
        return self.intercepts.size

    @classmethod
    def fit(cls, data: Data) -> Self:
        """Find the matrix and one intercept per class, in decorrelated coordinates."""
        input_ = input_of(data)
        z, y, w = input_.log_classes(data.p), data.y, data.shares
        n, center = z.shape[1], w @ z
        scales, axes = np.linalg.eigh(((z - center).T * w) @ (z - center))
        roots = np.sqrt(np.maximum(scales, _LOWEST_SCALE))
        x = (z - center) @ axes / roots  # uncorrelated, of variance 1

        def eta(theta: FloatArray, part: slice) -> FloatArray:
            found: FloatArray = x[part] @ theta[: n * n].reshape(n, n) + theta[n * n :]
            return found

        def slope(part: slice, r: FloatArray) -> FloatArray:
            return np.concatenate([(x[part].T @ r).ravel(), r.sum(axis=0)])

        theta = softmax_minimum(
            SoftmaxLoss(eta, slope, y, w), np.append(roots[:, None] * axes.T, center)
        )
        matrix = (axes / roots @ theta[: n * n].reshape(n, n)).T
        return cls(matrix, theta[n * n :] - matrix @ center, input_)

    def apply(self, p: FloatArray) -> FloatArray:
        """Map rows of class probabilities."""
        return np.asarray(
            softmax(self.input.log_classes(p) @ self.matrix.T + self.intercepts, axis=1)
        )

    @classmethod
    def read(cls, parameters: dict[str, Any]) -> Self:
        """Read the matrix and the intercepts."""
        matrix = saved_numbers(parameters, "matrix", 2)
        intercepts = saved_numbers(parameters, "intercepts", 1)
        n = intercepts.size
        refuse_unless(
            matrix.shape == (n, n) and n > 1, "matrix must be square, and as large as intercepts"
        )
        return cls(matrix, intercepts, read_input(parameters))


MAPS: dict[str, type[CalibrationMap]] = {
    map_.method: map_
    for map_ in (
        TemperatureMap,
        PlattMap,
        BetaMap,
        IsotonicMap,
        HistogramMap,
        VectorScalingMap,
        DirichletMap,
    )
}
"""All maps, in order of simplicity. The histogram follows isotonic, because it is not monotone."""

_OLD_HIGH = 1 - 2.0**-24  # 0.1 saved no upper limit for classes, where it has no effect


def load_calibrator(saved: dict[str, Any]) -> CalibrationMap:
    """Load any calibrator that `to_dict` saved, without scikit-learn.

    Parameters
    ----------
    saved : dict
        For example the result of `json.load` for a file that `softcal recalibrate` wrote.

    Returns
    -------
    CalibrationMap
        The map, with `predict(y_prob)`, `method`, `to_dict()`, and its parameters as attributes.

    Raises
    ------
    InputError
        If this is not a saved calibrator, or if a newer softcal saved it.

    Examples
    --------
    >>> saved = {
    ...     "format": "softcal.calibrator", "schema": 2,
    ...     "method": "temperature",
    ...     "parameters": {"temperature": 2.0, "input": {"kind": "logits"}},
    ... }
    >>> load_calibrator(saved).predict([-2.0, 0.0, 2.0]).round(3)
    array([0.269, 0.5  , 0.731])
    >>> print(load_calibrator(saved))
    temperature calibrator: temperature=2
    """
    if not isinstance(saved, dict):
        message = (
            f"load_calibrator takes a saved calibrator as a dict: got {type(saved).__name__}. Read "
            "a file with json.load first."
        )
        raise InputTypeError(message)
    _io.schema_of(saved, FORMAT, SCHEMA, "a saved calibrator")
    _io.refuse_other_checksum(saved)
    method, parameters = saved.get("method"), saved.get("parameters")
    if not isinstance(method, str) or method not in MAPS:
        message = (
            f"a saved calibrator's 'method' must be one of {', '.join(MAPS)}: got {method!r:.60}."
        )
        raise InputError(message)
    map_ = MAPS[method]
    names = {each.name for each in map_.parameters()}
    old_ends: set[str] = set()
    if saved["schema"] == 1 and "input" in names:
        old_ends = {"low", "high"} if 1 in map_.dimensions else {"low"}
        names = names - {"input"} | old_ends
    if not isinstance(parameters, dict) or set(parameters) != names:
        message = f"the 'parameters' of a saved {method} must be {', '.join(sorted(names))}."
        raise InputError(message)
    if old_ends:
        clipped = {"kind": Clipped.kind, "high": _OLD_HIGH}
        clipped.update((name, parameters[name]) for name in old_ends)
        parameters = {**parameters, "input": clipped}
    found = map_.read(parameters)
    columns, classes = (_saved_names(saved, key) for key in ("columns", "classes"))
    sizes = {found.n_classes, *(len(each) for each in (columns, classes) if each)} - {None}
    in_lists = columns is not None and len(columns) == 1
    refuse_unless(
        len(sizes - {1} if in_lists else sizes) < 2, "columns and classes must be one per class"
    )
    return replace(found, columns=columns, classes=classes)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a saved calibrator, from the fields of the maps and inputs."""
    number, text = {"type": "number"}, {"type": "string"}
    inputs = []
    for kind, input_ in KINDS.items():
        parts = {"kind": {"const": kind}} | {each.name: number for each in fields(input_)}  # type: ignore[arg-type]
        inputs.append(object_of(parts, parts))
    types = {
        "float": number, "FloatArray": list_of(number, 1),
        "Matrix": list_of(list_of(number, 1), 1), "Input": {"anyOf": inputs},
    }  # fmt: skip
    methods = []
    for method, map_ in MAPS.items():
        parts = {each.name: types[str(each.type)] for each in map_.parameters()}
        own = {"method": {"const": method}, "parameters": object_of(parts, parts)}
        methods.append({"properties": own})
    shared = {
        "format": {"const": FORMAT}, "schema": {"type": "integer", "minimum": 0},
        "columns": list_of(text, 1), "classes": list_of(text, 2), _io.CHECKSUM: text,
    }  # fmt: skip
    return {
        "title": "A saved calibrator",
        "type": "object",
        "properties": shared,
        "required": ["format", "schema", "method", "parameters"],
        "anyOf": methods,
        "unevaluatedProperties": False,
    }


def _saved_names(saved: dict[str, Any], key: str) -> tuple[str, ...] | None:
    """Return saved names, which softcal 0.1 and calibrators of arrays do not have."""
    names = saved.get(key)
    if names is None:
        return None
    refuse_unless(
        isinstance(names, list) and bool(names) and all(type(name) is str for name in names)
        and len(set(names)) == len(names),
        f"{key} must be a list of different names",
    )  # fmt: skip
    return tuple(names)
