"""Minimize soft cross-entropy, by Newton's method, or by L-BFGS for many parameters."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import log_softmax, softmax

from softcal import _parallel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from softcal._validation.inputs import FloatArray

RIDGE = 1e-9
"""Ridge penalty: RIDGE/2 times the squared distance from the start is added to the mean loss.

It is far smaller than the noise of any real data set. It makes the minimum exist and be unique even
for separable labels, equal predictions, or a single row.
"""

_MOST_STEPS = 200
_MOST_HALVINGS = 40
_MOST_DIRECTIONS = 50
_NEARLY_FLAT = 1e-13  # gradient below which the search stops
_NEARLY_THERE = 1e-13  # predicted decrease too small to check, so the step is accepted
_SHORT = 0.01  # of the parameters: above it, the search goes on


class Local(NamedTuple):
    """The value, gradient, and Hessian of a function at a point."""

    value: float
    slope: FloatArray
    curvature: FloatArray


def minimum(
    near: Callable[[FloatArray], Local],
    start: FloatArray,
    lower: FloatArray,
    ridge: float = RIDGE,
) -> FloatArray:
    """Minimize the function plus ridge by Newton steps, halved if they do not decrease it."""

    def with_ridge(at: FloatArray) -> Local:
        found, moved = near(at), at - start
        return Local(
            found.value + ridge / 2 * float(moved @ moved),
            found.slope + ridge * moved,
            found.curvature + ridge * np.eye(at.size),
        )

    at, here = start, with_ridge(start)
    for _ in range(_MOST_STEPS):
        target = _minimum_of_quadratic(at, here, lower)
        checked = float(here.slope @ (at - target)) >= _NEARLY_THERE
        if not checked and is_short(target - at, at):
            return target
        for halvings in range(_MOST_HALVINGS):
            there = at + (target - at) / 2**halvings
            found = with_ridge(there)
            # The decrease must be a sufficient part of what the gradient predicts (Armijo's rule).
            least = 1e-4 * float(here.slope @ (at - there))
            if not checked or found.value <= here.value - least:
                break
        at, here = there, found
    return at


def is_short(step: FloatArray, at: FloatArray) -> bool:
    """Return whether a step is the last one: without a minimum, no step is this short."""
    return bool((np.abs(step) <= _SHORT * (1 + np.abs(at))).all())


def _minimum_of_quadratic(at: FloatArray, here: Local, lower: FloatArray) -> FloatArray:
    """Minimize the quadratic approximation, with parameters not below their limits.

    Each subset of the limited parameters is fixed at its limits in turn; there are few of them.
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


_NUMBERS_AT_ONCE = 1 << 16


def logistic(
    columns: Sequence[FloatArray],
    y: FloatArray,
    w: FloatArray,
    theta: FloatArray,
    offset: FloatArray | None = None,
) -> Local:
    """Compute the sum over rows of w (log(1 + exp(eta)) - y eta), for eta linear in the columns.

    If theta has one more number than there are columns, the last one is the intercept. An offset
    is added to eta.
    """
    n_parameters = theta.size

    def of_rows(part: slice) -> Local:
        # No matrix products: BLAS would start its own threads inside these threads.
        x = [column[part] for column in columns]
        first = 0.0 if offset is None else offset[part]
        eta = sum((number * each for number, each in zip(theta, x, strict=False)), first)
        if n_parameters > len(x):
            eta = eta + theta[-1]
            x.append(np.ones_like(eta))
        small = np.exp(-np.abs(eta))
        q = np.where(eta >= 0, 1.0, small) / (1 + small)
        loss = np.maximum(eta, 0) + np.log1p(small) - y[part] * eta
        spread = w[part] * small / (1 + small) ** 2  # w q (1 - q)
        curvature = np.empty((n_parameters, n_parameters))
        for j, column in enumerate(x):
            spread_j = spread * column
            for k in range(j + 1):
                curvature[j, k] = curvature[k, j] = (spread_j * x[k]).sum()
        residual = w[part] * (q - y[part])
        slope = np.array([(residual * column).sum() for column in x])
        return Local(float((w[part] * loss).sum()), slope, curvature)

    return _total(of_rows, y.size, _NUMBERS_AT_ONCE)


def common_slope(z: FloatArray, y: FloatArray, w: FloatArray, theta: FloatArray) -> Local:
    """Compute the cross-entropy of softmax(theta z), with one theta for all classes."""

    def of_rows(part: slice) -> Local:
        z_, y_, w_ = z[part], y[part], w[part]
        log_q = log_softmax(theta * z_, axis=1)
        q = np.exp(log_q)
        mean = (q * z_).sum(axis=1)
        spread = (q * (z_ - mean[:, None]) ** 2).sum(axis=1)
        slope = mean - (y_ * z_).sum(axis=1)
        return Local(
            -float((w_ * (y_ * log_q).sum(axis=1)).sum()),
            np.array([(w_ * slope).sum()]),
            np.array([[(w_ * spread).sum()]]),
        )

    return _total(of_rows, len(z), max(1, _NUMBERS_AT_ONCE // z.shape[1]))


class SoftmaxLoss(NamedTuple):
    """Cross-entropy of softmax(eta), for eta linear in theta."""

    eta: Callable[[FloatArray, slice], FloatArray]
    slope: Callable[[slice, FloatArray], FloatArray]
    y: FloatArray
    w: FloatArray

    def near(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient, from the weighted residuals w (q - y)."""
        value, slopes = 0.0, []
        for part in self._parts():
            log_q = log_softmax(self.eta(theta, part), axis=1)
            q = np.exp(log_q)
            y, weight = self.y[part], self.w[part, None]
            value -= float((weight * y * log_q).sum())
            slopes.append(self.slope(part, (q - y) * weight))
        return value, np.sum(slopes, axis=0)

    def bends(self, theta: FloatArray, direction: FloatArray) -> FloatArray:
        """Return the product of the Hessian and a direction."""
        slopes = []
        for part in self._parts():
            q, change = softmax(self.eta(theta, part), axis=1), self.eta(direction, part)
            change = q * (change - (q * change).sum(axis=1, keepdims=True))
            slopes.append(self.slope(part, change * self.w[part, None]))
        bends: FloatArray = np.sum(slopes, axis=0)
        return bends

    def _parts(self) -> Iterator[slice]:
        return _slices(self.y.shape[0], max(1, _NUMBERS_AT_ONCE // self.y.shape[1]))


def softmax_minimum(loss: SoftmaxLoss, start: FloatArray) -> FloatArray:
    """Minimize the loss plus ridge by L-BFGS, because the Hessian would be too large.

    L-BFGS compares values, which rounding makes equal near the minimum. Newton steps, computed by
    conjugate gradients, use only the gradient and complete the search.
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
            break  # only rounding errors remain
        at, slope = there, found
    return at


def _total(of_rows: Callable[[slice], Local], n: int, size: int) -> Local:
    """Add up blocks in order, so that the result does not depend on the number of cores."""
    parts = _parallel.in_order(of_rows, _slices(n, size), at_most=-(-n // size))
    values, slopes, curvatures = zip(*parts, strict=True)
    return Local(sum(values), np.sum(slopes, axis=0), np.sum(curvatures, axis=0))


def _slices(n: int, size: int) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, n, size))
