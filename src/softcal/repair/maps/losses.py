"""The soft cross-entropy of linear models, with slope and curvature, in bounded memory.

Labels enter as they are: a row of label y is what y rows of label 1 and 1 - y of label 0 are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softcal import parallel
from softcal.repair.maps.newton import Local

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from softcal.door.inputs import FloatArray

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

    size = _NUMBERS_AT_ONCE
    blocks = -(-y.size // size)
    return _total(parallel.in_order(of_rows, _slices(y.size, size), at_most=blocks))


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

    size = max(1, _NUMBERS_AT_ONCE // z.shape[1])
    blocks = -(-y.shape[0] // size)
    return _total(parallel.in_order(of_rows, _slices(y.shape[0], size), at_most=blocks))


def softmax_residuals(
    eta_of: Callable[[slice], FloatArray],
    slope_of: Callable[[slice, FloatArray], FloatArray],
    y: FloatArray,
    w: FloatArray,
) -> tuple[float, FloatArray]:
    """Cross-entropy of softmax(eta), and its slope, which weighted residuals w (q - y) make."""
    value, slopes = 0.0, []
    for part in _slices(y.shape[0], max(1, _NUMBERS_AT_ONCE // y.shape[1])):
        log_q, q = log_softmax(eta_of(part))
        weight = w[part, None]
        value -= float((weight * y[part] * log_q).sum())
        slopes.append(slope_of(part, (q - y[part]) * weight))
    return value, np.sum(slopes, axis=0)


def softmax_bends(
    eta_of: Callable[[slice], FloatArray],
    change_of: Callable[[slice], FloatArray],
    slope_of: Callable[[slice, FloatArray], FloatArray],
    w: FloatArray,
    n_classes: int,
) -> FloatArray:
    """How that slope changes as eta moves in a direction: curvature times direction."""
    slopes = []
    for part in _slices(w.size, max(1, _NUMBERS_AT_ONCE // n_classes)):
        q, change = log_softmax(eta_of(part))[1], change_of(part)
        change = q * (change - (q * change).sum(axis=1, keepdims=True))
        slopes.append(slope_of(part, change * w[part, None]))
    bends: FloatArray = np.sum(slopes, axis=0)
    return bends


def log_softmax(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Give log softmax of each row, and softmax."""
    eta = eta - eta.max(axis=1, keepdims=True)
    q = np.exp(eta)
    total = q.sum(axis=1, keepdims=True)
    return eta - np.log(total), q / total


def _total(parts: Iterable[Local]) -> Local:
    """Add up blocks in their order, so that the number of cores changes no digit."""
    values, slopes, curvatures = zip(*parts, strict=True)
    return Local(sum(values), np.sum(slopes, axis=0), np.sum(curvatures, axis=0))


def _slices(n: int, size: int) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, n, size))
