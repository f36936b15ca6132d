"""Maps of class probabilities with numbers for each class: vector scaling, Dirichlet."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from softcal.calibrators.base import refuse_unless, saved_numbers
from softcal.calibrators.fitting import RIDGE, log_softmax, softmax_bends, softmax_residuals
from softcal.calibrators.logits import Input, LogMap, input_of, read_input

if TYPE_CHECKING:
    from collections.abc import Callable

    from softcal._validation.inputs import FloatArray
    from softcal.calibrators.base import Data

_LEAST_SCALE = 1e-6  # a direction in which the logarithms vary less than this is not stretched
_MOST_DIRECTIONS = 50
_NEARLY_FLAT = 1e-13  # slope below which nothing is left to gain


@dataclass(frozen=True, eq=False)
class VectorScalingMap(LogMap):
    """Stretch and shift the logarithm of each class; see `VectorScalingCalibrator`."""

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

        def eta(theta: FloatArray, part: slice) -> FloatArray:
            slopes, intercepts = theta.reshape(2, -1)
            return z[part] * slopes + intercepts

        def slope(part: slice, r: FloatArray) -> FloatArray:
            return np.concatenate([(r * z[part]).sum(axis=0), r.sum(axis=0)])

        n = z.shape[1]
        theta = _least(_Loss(eta, slope, y, w), np.repeat([1.0, 0.0], n))
        slopes, intercepts = theta.reshape(2, n)
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
    """A linear map of the logarithms of all classes; see `DirichletCalibrator`."""

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

        def eta(theta: FloatArray, part: slice) -> FloatArray:
            found: FloatArray = x[part] @ theta[: n * n].reshape(n, n) + theta[n * n :]
            return found

        def slope(part: slice, r: FloatArray) -> FloatArray:
            return np.concatenate([(x[part].T @ r).ravel(), r.sum(axis=0)])

        theta = _least(_Loss(eta, slope, y, w), np.append(roots[:, None] * axes.T, center))
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


class _Loss(NamedTuple):
    """Cross-entropy of softmax(eta), eta being linear in theta."""

    eta: Callable[[FloatArray, slice], FloatArray]
    slope: Callable[[slice, FloatArray], FloatArray]
    y: FloatArray
    w: FloatArray

    def near(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the slope."""
        return softmax_residuals(partial(self.eta, theta), self.slope, self.y, self.w)

    def bends(self, theta: FloatArray, direction: FloatArray) -> FloatArray:
        """Return the curvature times a direction."""
        change = partial(self.eta, direction)
        return softmax_bends(partial(self.eta, theta), change, self.slope, self.w, self.y.shape[1])


def _least(loss: _Loss, start: FloatArray) -> FloatArray:
    """Find the lowest of loss plus ridge by L-BFGS: too many numbers for Newton's matrix.

    L-BFGS compares values, which rounding makes alike some way from the lowest; Newton's steps,
    found by conjugate gradients, go by the slope and cover the rest.
    """
    from scipy.optimize import minimize
    from scipy.sparse.linalg import LinearOperator, cg

    def with_ridge(theta: FloatArray) -> tuple[float, FloatArray]:
        value, slope = loss.near(theta)
        moved = theta - start
        return value + RIDGE / 2 * float(moved @ moved), slope + RIDGE * moved

    options = {"maxiter": 1000, "ftol": 1e-13, "gtol": 1e-8, "maxcor": 30}
    at: FloatArray = minimize(with_ridge, start, jac=True, method="L-BFGS-B", options=options).x
    slope = with_ridge(at)[1]
    while np.abs(slope).max() > _NEARLY_FLAT:
        bends = LinearOperator(
            (at.size, at.size), lambda v, at=at: loss.bends(at, v.ravel()) + RIDGE * v.ravel()
        )
        there = at - cg(bends, slope, rtol=1e-3, maxiter=_MOST_DIRECTIONS)[0]
        found = with_ridge(there)[1]
        if not np.abs(found).max() < np.abs(slope).max() / 2:
            break  # rounding is all that is left
        at, slope = there, found
    return at
