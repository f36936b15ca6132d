"""Minimize soft cross-entropy: Newton's method, and L-BFGS where parameters are many."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from softcal import _parallel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from softcal._validation.inputs import FloatArray

RIDGE = 1e-9
"""What leaving the start costs: RIDGE/2 times the squared distance, beside a mean loss per row.

It is far below what the noise of any real data set costs, and makes the least value exist and be
unique where the data alone would not say: labels that separate, equal predictions, one row.
"""

_MOST_STEPS = 200
_MOST_HALVINGS = 40
_MOST_DIRECTIONS = 50
_NEARLY_FLAT = 1e-13  # slope below which nothing is left to gain
_NEARLY_THERE = 1e-13  # promised gain below which the loss cannot judge a step, nor need it


class Local(NamedTuple):
    """A function near a point: its value, slope and curvature."""

    value: float
    slope: FloatArray
    curvature: FloatArray


def least(near: Callable[[FloatArray], Local], start: FloatArray, lower: FloatArray) -> FloatArray:
    """Find the least of function plus ridge by Newton's steps, halved where they go too far."""

    def with_ridge(at: FloatArray) -> Local:
        found, moved = near(at), at - start
        return Local(
            found.value + RIDGE / 2 * float(moved @ moved),
            found.slope + RIDGE * moved,
            found.curvature + RIDGE * np.eye(at.size),
        )

    at, here = start, with_ridge(start)
    for _ in range(_MOST_STEPS):
        target = _least_of_parabola(at, here, lower)
        if float(here.slope @ (at - target)) < _NEARLY_THERE:
            return target
        for halvings in range(_MOST_HALVINGS):
            there = at + (target - at) / 2**halvings
            found = with_ridge(there)
            # A fair part of what the slope promises.
            if found.value <= here.value + 1e-4 * float(here.slope @ (there - at)):
                break
        at, here = there, found
    return at


def _least_of_parabola(at: FloatArray, here: Local, lower: FloatArray) -> FloatArray:
    """Find where value, slope and curvature say the least is, not below the limits.

    With some numbers at their limits, the others follow; the few ways to choose are tried.
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
    columns: Sequence[FloatArray], y: FloatArray, w: FloatArray, theta: FloatArray
) -> Local:
    """Sum over rows of w (log(1 + exp(eta)) - y eta), eta being linear in the columns.

    The last number of theta stands alone where there is one more of them than columns.
    """
    n_parameters = theta.size

    def of_rows(part: slice) -> Local:
        # No matrix products: BLAS would start threads of its own inside these.
        x = [column[part] for column in columns]
        eta = sum((number * each for number, each in zip(theta, x, strict=False)), 0.0)
        if n_parameters > len(x):
            eta += theta[-1]
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
    """Cross-entropy of softmax(theta z), one theta for all classes, with slope and curvature."""

    def of_rows(part: slice) -> Local:
        z_, y_, w_ = z[part], y[part], w[part]
        log_q, q = log_softmax(theta * z_)
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
    """Cross-entropy of softmax(eta), eta being linear in theta."""

    eta: Callable[[FloatArray, slice], FloatArray]
    slope: Callable[[slice, FloatArray], FloatArray]
    y: FloatArray
    w: FloatArray

    def near(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the slope, which weighted residuals w (q - y) make."""
        value, slopes = 0.0, []
        for part in self._parts():
            log_q, q = log_softmax(self.eta(theta, part))
            y, weight = self.y[part], self.w[part, None]
            value -= float((weight * y * log_q).sum())
            slopes.append(self.slope(part, (q - y) * weight))
        return value, np.sum(slopes, axis=0)

    def bends(self, theta: FloatArray, direction: FloatArray) -> FloatArray:
        """Return the curvature times a direction: how the slope changes as theta moves there."""
        slopes = []
        for part in self._parts():
            q, change = log_softmax(self.eta(theta, part))[1], self.eta(direction, part)
            change = q * (change - (q * change).sum(axis=1, keepdims=True))
            slopes.append(self.slope(part, change * self.w[part, None]))
        bends: FloatArray = np.sum(slopes, axis=0)
        return bends

    def _parts(self) -> Iterator[slice]:
        return _slices(self.y.shape[0], max(1, _NUMBERS_AT_ONCE // self.y.shape[1]))


def least_softmax(loss: SoftmaxLoss, start: FloatArray) -> FloatArray:
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


def log_softmax(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log softmax of each row, and softmax."""
    eta = eta - eta.max(axis=1, keepdims=True)
    q = np.exp(eta)
    total = q.sum(axis=1, keepdims=True)
    return eta - np.log(total), q / total


def _total(of_rows: Callable[[slice], Local], n: int, size: int) -> Local:
    """Add up blocks in their order, so that the number of cores changes no digit."""
    parts = _parallel.in_order(of_rows, _slices(n, size), at_most=-(-n // size))
    values, slopes, curvatures = zip(*parts, strict=True)
    return Local(sum(values), np.sum(slopes, axis=0), np.sum(curvatures, axis=0))


def _slices(n: int, size: int) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, n, size))
