"""Maps of class probabilities with numbers for each class: vector scaling, Dirichlet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from softcal.repair.maps.base import refuse_unless, saved_numbers
from softcal.repair.maps.logarithms import Input, LogMap, input_of, read_input
from softcal.repair.maps.losses import log_softmax, softmax_residuals
from softcal.repair.maps.newton import RIDGE

if TYPE_CHECKING:
    from collections.abc import Callable

    from softcal.door.inputs import FloatArray
    from softcal.repair.maps.data import Data

_LEAST_SCALE = 1e-6  # a direction in which the logarithms vary less than this is not stretched


@dataclass(frozen=True, eq=False)
class VectorScalingMap(LogMap):
    """Stretch and shift the logarithm of each class; see `softcal.VectorScaling`."""

    method: ClassVar[str] = "vector"
    dimensions: ClassVar[tuple[int, ...]] = (2,)
    slopes: FloatArray
    intercepts: FloatArray
    input: Input

    @property
    def n_classes(self) -> int:
        """How many classes it was fitted on."""
        return self.slopes.size

    @classmethod
    def fit(cls, data: Data) -> Self:
        """Find a slope and an intercept per class."""
        input_ = input_of(data)
        z, y, w = input_.log_classes(data.p), data.y, data.shares

        def near(theta: FloatArray) -> tuple[float, FloatArray]:
            slopes, intercepts = theta.reshape(2, -1)
            return softmax_residuals(
                lambda part: z[part] * slopes + intercepts,
                lambda part, r: np.concatenate([(r * z[part]).sum(axis=0), r.sum(axis=0)]),
                y,
                w,
            )

        n = z.shape[1]
        slopes, intercepts = _least(near, np.repeat([1.0, 0.0], n)).reshape(2, n)
        return cls(slopes, intercepts, input_)

    def apply(self, p: FloatArray) -> FloatArray:
        """Map rows of class probabilities."""
        return log_softmax(self.input.log_classes(p) * self.slopes + self.intercepts)[1]

    @classmethod
    def read(cls, parameters: dict[str, Any]) -> Self:
        """Read both vectors."""
        slopes, intercepts = (saved_numbers(parameters, n, 1) for n in ("slopes", "intercepts"))
        refuse_unless(slopes.size == intercepts.size > 1, "slopes and intercepts must match")
        return cls(slopes, intercepts, read_input(parameters))


@dataclass(frozen=True, eq=False)
class DirichletMap(LogMap):
    """A linear map of the logarithms of all classes; see `softcal.Dirichlet`."""

    method: ClassVar[str] = "dirichlet"
    dimensions: ClassVar[tuple[int, ...]] = (2,)
    matrix: FloatArray
    intercepts: FloatArray
    input: Input

    @property
    def n_classes(self) -> int:
        """How many classes it was fitted on."""
        return self.intercepts.size

    @classmethod
    def fit(cls, data: Data) -> Self:
        """Find the matrix and an intercept per class, in coordinates that suit the search."""
        input_ = input_of(data)
        z, y, w = input_.log_classes(data.p), data.y, data.shares
        n, center = z.shape[1], w @ z
        scales, axes = np.linalg.eigh(((z - center).T * w) @ (z - center))
        roots = np.sqrt(np.maximum(scales, _LEAST_SCALE))
        x = (z - center) @ axes / roots  # uncorrelated, of variance 1

        def near(theta: FloatArray) -> tuple[float, FloatArray]:
            matrix, intercepts = theta[: n * n].reshape(n, n), theta[n * n :]
            return softmax_residuals(
                lambda part: x[part] @ matrix + intercepts,
                lambda part, r: np.concatenate([(x[part].T @ r).ravel(), r.sum(axis=0)]),
                y,
                w,
            )

        theta = _least(near, np.append(roots[:, None] * axes.T, center))
        matrix = (axes / roots @ theta[: n * n].reshape(n, n)).T
        return cls(matrix, theta[n * n :] - matrix @ center, input_)

    def apply(self, p: FloatArray) -> FloatArray:
        """Map rows of class probabilities."""
        return log_softmax(self.input.log_classes(p) @ self.matrix.T + self.intercepts)[1]

    @classmethod
    def read(cls, parameters: dict[str, Any]) -> Self:
        """Read matrix and intercepts."""
        matrix = saved_numbers(parameters, "matrix", 2)
        intercepts = saved_numbers(parameters, "intercepts", 1)
        n = intercepts.size
        refuse_unless(matrix.shape == (n, n) and n > 1, "matrix must be square, as intercepts say")
        return cls(matrix, intercepts, read_input(parameters))


def _least(near: Callable[[FloatArray], tuple[float, FloatArray]], start: FloatArray) -> FloatArray:
    """Find the least of loss plus ridge by L-BFGS: too many numbers for Newton's matrix."""
    from scipy.optimize import minimize

    def with_ridge(theta: FloatArray) -> tuple[float, FloatArray]:
        value, slope = near(theta)
        moved = theta - start
        return value + RIDGE / 2 * float(moved @ moved), slope + RIDGE * moved

    options = {"maxiter": 1000, "ftol": 1e-15, "gtol": 1e-8, "maxcor": 30}
    found: FloatArray = minimize(with_ridge, start, jac=True, method="L-BFGS-B", options=options).x
    return found
