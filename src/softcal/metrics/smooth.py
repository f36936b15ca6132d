"""SmoothECE for soft labels, with kernel smoothing instead of bins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.fft import dct
from scipy.optimize import brentq

from softcal._validation import inputs
from softcal.exceptions import InputError
from softcal.table.kernel import residual_lattice
from softcal.table.reliability import Reliability, refuse_no_rows, rows_or_table

if TYPE_CHECKING:
    import numpy.typing as npt

    from softcal._validation.inputs import FloatArray, Rows

CELLS = 1 << 14
"""Nodes are at 0, 1/CELLS, ..., 1. A power of two, so that p * CELLS is exact."""


def spread(place: FloatArray, mass: FloatArray) -> FloatArray:
    """Split each mass between the two nodes next to its place in [0, 1]."""
    scaled = place * CELLS
    node = scaled.astype(np.intp)
    right = mass * (scaled - node)
    nodes = np.zeros(CELLS + 2)
    nodes[:-1] += np.bincount(node, mass - right, CELLS + 1)
    nodes[1:] += np.bincount(node, right, CELLS + 1)
    return nodes[:-1]


_POINTS_PER_BANDWIDTH = 128
_FEWEST_POINTS = 256
_WIDEST_BIN = 0.01
_TOLERANCE = 1e-9


def smooth_ece(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Compute SmoothECE (`smECE` in relplot), a calibration error without bins.

    It is not SMECE, which is `smece` and uses bins. SmoothECE smooths the residuals with a Gaussian
    kernel \(K_\sigma\) reflected at 0 and 1,

    \[ \mathrm{smECE}_\sigma
       = \int_0^1 \Bigl| \frac1n \sum_i K_\sigma(t, p_i)\,(p_i - y_i) \Bigr|\,dt , \]

    and chooses the bandwidth automatically: the result is the unique \(\sigma^*\) with
    \(\mathrm{smECE}_\sigma = \sigma\) (Blasiok and Nakkiran, Smooth ECE: Principled Reliability
    Diagrams via Kernel Smoothing, 2023). Labels may be soft.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or Reliability
        Labels in [0, 1]. A fine table may be passed as the only argument instead: no bin with rows
        may be wider than 0.01, for example with `bins=3600`.
    y_prob : array-like of shape (n_samples,), optional
        Predicted probabilities in [0, 1]; required with labels.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.

    Returns
    -------
    float
        Between 0 and 1; exactly 0 if every label equals its prediction.

    Notes
    -----
    For a table, all residuals of a bin are placed at the bin's mean prediction. With bins of width
    at most w, this changes the result by at most \(\frac{1}{\sqrt{2\pi}}
    \frac{w}{\sigma^*} \sqrt{\mathrm{Brier}}\). It changes nothing if the predictions within each
    bin are equal. In practice the change is far smaller, because residuals of both signs move
    together.

    Residuals are placed on a lattice of spacing \(h = 2^{-14}\), and the integral is computed on a
    grid of spacing \(\Delta \le \max(\sigma/128, h)\). The error of the result is at most

    \[ \tfrac18 \cdot 4\varphi(1) \cdot \frac{h^2 + \Delta^2}{\sigma^{*2}} \cdot
       \frac1n \sum_i |p_i - y_i| , \]

    plus the tolerance of 1e-9 of the equation. For results of 0.01 and more this is less than
    0.000012 times the mean absolute residual. For results below \(2h = 0.00012\) the relative error
    is not bounded.

    The `smECE` of relplot agrees to about 0.001 for results below 0.1. It truncates the kernel at a
    distance of 0.5, and is therefore too high for larger results. On random data it was too high by
    up to 0.003 for results of 0.1 to 0.2, and by up to 0.24 above. It also counts predictions of
    exactly 0 or 1 by half.

    Examples
    --------
    If all residuals have the same sign, the result is the mean absolute residual.

    >>> round(smooth_ece([0.1, 0.3, 0.8], [0.2, 0.4, 0.9]), 6)
    0.1
    >>> smooth_ece([0.2, 0.4, 0.9], [0.2, 0.4, 0.9])
    0.0
    >>> from softcal import reliability
    >>> round(smooth_ece(reliability([0.1, 0.3, 0.8], [0.2, 0.4, 0.9], bins=3600)), 6)
    0.1
    """
    found = rows_or_table("smooth_ece", y_true, y_prob, sample_weight=sample_weight)
    return _fixed_point(residuals_at_nodes("smooth_ece", found)[0])


def residuals_at_nodes(name: str, found: Rows | Reliability) -> tuple[FloatArray, FloatArray]:
    """Return the residual at each node, as a share of the total weight, for the function `name`.

    Also return the sums of w, w p, w p^2, and w^2.
    """
    if isinstance(found, Reliability):
        return _of_table(name, found)
    lattice = residual_lattice(found, CELLS)
    if lattice is None:
        inputs.refuse(found)
    residual, sums = lattice
    if not sums[0]:
        inputs.refuse_no_weight(found)
    return residual / sums[0], sums


def _of_table(name: str, rel: Reliability) -> tuple[FloatArray, FloatArray]:
    refuse_no_rows(rel)
    filled = rel.count > 0
    width = np.diff(rel.bins.edges)[filled]
    wide = width > _WIDEST_BIN * (1 + 1e-9)  # tolerance for the rounding of edges
    if wide.any():
        message = (
            f"{name} needs a fine table: {wide.sum()} of {wide.size} bins with rows are wider "
            f"than {_WIDEST_BIN}, the widest {width.max():.4g}. Build it with "
            "bins=3600, or pass the rows."
        )
        raise InputError(message)
    place, weight = rel.mean_prob[filled], rel.sums.weight[filled]
    moments = (weight, weight * place, weight * place**2, rel.sums.weight_sq)
    mass = rel.sums.residual[filled] / weight.sum()
    return spread(place, mass), np.array([each.sum() for each in moments])


def _fixed_point(mass: FloatArray) -> float:
    """Find the bandwidth that equals the smoothed error at that bandwidth.

    There is exactly one, because the error is in [0, 1] and does not increase with the bandwidth.
    """
    unsmoothed = float(np.abs(mass).sum())
    if not unsmoothed:
        return 0.0
    # The transform counts inner nodes twice and the ends once.
    halved = mass / 2
    halved[[0, -1]] *= 2
    coefficient = dct(halved, type=1)

    def excess(sigma: float) -> float:
        error = _error_at(sigma, coefficient) if sigma else unsmoothed
        return min(error, 1.0) - sigma

    return float(brentq(excess, 0.0, 1.0, xtol=_TOLERANCE))


def _error_at(sigma: float, coefficient: FloatArray) -> float:
    """Integrate the absolute value of the smoothed residual."""
    needed = min(_POINTS_PER_BANDWIDTH / sigma, CELLS)
    points = max(_FEWEST_POINTS, 1 << (int(np.ceil(needed)) - 1).bit_length())
    frequency = np.pi * np.arange(points + 1)
    damping = np.exp(-0.5 * (sigma * frequency) ** 2)
    smoothed = dct(damping * coefficient[: points + 1], type=1)
    return integral_of_absolute(smoothed) / points


def integral_of_absolute(values: FloatArray) -> float:
    """Integrate the absolute value of the polyline through the values, one unit apart."""
    height = np.abs(values)
    trapezoids = height.sum() - (height[0] + height[-1]) / 2
    # A line from a to -b encloses two triangles: its trapezoid minus a b / (a + b).
    crossing = np.flatnonzero(values[:-1] * values[1:] < 0)
    a, b = height[crossing], height[crossing + 1]
    return float(trapezoids - (a * b / (a + b)).sum())
