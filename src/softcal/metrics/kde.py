"""The calibration error of a kernel density estimate, for soft labels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from softcal._validation.rules import is_number
from softcal.exceptions import InputError
from softcal.metrics import smooth
from softcal.table.reliability import Reliability, rows_or_table

if TYPE_CHECKING:
    import numpy.typing as npt

    from softcal._validation.inputs import FloatArray

_NARROWEST, _WIDEST = 0.001, 0.4
_CELLS_PER_BANDWIDTH = math.sqrt(6) * smooth.CELLS
"""A triangular kernel is sqrt(6) standard deviations wide on each side."""


def kde_ece(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    bandwidth: float | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Estimate the expected calibration error E|p - E[y | p]| with a kernel instead of bins.

    Let K be a triangular kernel with the standard deviation b, mirrored at 0 and 1. The kernel
    regression of \(p - y\) on p, integrated over the kernel density of the predictions, is

    \[ \int_0^1 \Bigl| \frac{\sum_i K_b(t, p_i)\,(p_i - y_i)}{\sum_i K_b(t, p_i)} \Bigr|\,
       \frac1n \sum_i K_b(t, p_i)\,dt
       = \int_0^1 \Bigl| \frac1n \sum_i K_b(t, p_i)\,(p_i - y_i) \Bigr|\,dt , \]

    which is linear in the labels inside the absolute value. Labels may therefore be soft. The
    estimator is that of Zhang, Kailkhura, and Han, Mix-n-Match: Ensemble and Compositional Methods
    for Uncertainty Calibration in Deep Learning, ICML 2020, with two changes described in the
    notes.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or Reliability
        Labels in [0, 1]. A fine table may be passed as the only argument instead: no bin with rows
        may be wider than 0.01, for example with `bins=3600`. All rows of a bin are placed at its
        mean prediction.
    y_prob : array-like of shape (n_samples,), optional
        Predicted probabilities in [0, 1]; required with labels.
    bandwidth : float, optional
        The standard deviation b of the kernel, from 0.001 to 0.4. By default it is
        \(\hat\sigma\,(2n)^{-1/5}\), limited to this range. \(\hat\sigma\) is the standard
        deviation of the predictions. With weights, n is \((\sum w)^2 / \sum w^2\).
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights. With a given bandwidth, a weight of k equals k copies of the row.

    Returns
    -------
    float
        Between the absolute `bias` and the mean absolute residual; exactly 0 if every label equals
        its prediction.

    See Also
    --------
    smooth_ece : The same integral with a Gaussian kernel, whose bandwidth equals the result.

    Notes
    -----
    The paper compares the smoothed labels with t itself, not with the smoothed predictions. The
    difference, \(\frac1n \sum_i K_b(t, p_i)(t - p_i)\), is due to the kernel and not to the
    model. It would be counted as error even if every label equals its prediction.

    The paper uses a triweight kernel. A triangular kernel of the same standard deviation is as
    efficient (98.6% and 98.7% of the best kernel). It is linear between the nodes of a lattice of
    spacing \(h = 2^{-14}\) if its half-width \(\sqrt6\,b\) is a multiple of h, to which it is
    rounded. Its sums at the nodes are therefore exact, although they take linear time. The integral
    is that of the polyline through the nodes, and differs from the integral above by at most

    \[ \frac{h^2}{12\,b^2} \cdot \frac1n \sum_i |p_i - y_i| . \]

    The rule for the bandwidth is that of the authors' code, except that \(\hat\sigma\) is the
    standard deviation of all predictions. Their code takes that of the rows with label 1.

    Examples
    --------
    If all residuals have the same sign, the result is the mean absolute residual.

    >>> round(kde_ece([0.1, 0.3, 0.8], [0.2, 0.4, 0.9]), 6)
    0.1
    >>> kde_ece([0.2, 0.4, 0.9], [0.2, 0.4, 0.9])
    0.0

    A wide kernel averages residuals of both signs.

    >>> y_true, y_prob = [0.5, 0.2], [0.4, 0.3]
    >>> round(kde_ece(y_true, y_prob, bandwidth=0.01), 6)
    0.1
    >>> round(kde_ece(y_true, y_prob, bandwidth=0.2), 3)
    0.019
    """
    if bandwidth is not None and not (is_number(bandwidth) and _NARROWEST <= bandwidth <= _WIDEST):
        message = (
            f"bandwidth must be a number from {_NARROWEST} to {_WIDEST}: got {bandwidth!r:.60}."
        )
        raise InputError(message)
    found = rows_or_table("kde_ece", y_true, y_prob, sample_weight=sample_weight)
    mass, sums = smooth.residuals_at_nodes("kde_ece", found)
    if not mass.any():
        return 0.0
    if bandwidth is None:
        bandwidth = min(max(_rule(sums), _NARROWEST), _WIDEST)
    cells = round(bandwidth * _CELLS_PER_BANDWIDTH)
    mass[[0, -1]] *= 2  # the mirror image of an end is at the same node
    mirrored = np.pad(mass, cells - 1, mode="reflect")
    # The triangle is the convolution of two windows of equal weights.
    return min(smooth.integral_of_absolute(_window(_window(mirrored, cells), cells)), 1.0)


def _window(values: FloatArray, length: int) -> FloatArray:
    """Return the mean of each run of so many values."""
    total = np.append(0.0, values.cumsum())
    mean: FloatArray = (total[length:] - total[:-length]) / length
    return mean


def _rule(sums: FloatArray) -> float:
    """Return the standard deviation of the predictions, divided by the fifth root of 2n."""
    total, first, second, squares = sums.tolist()
    variance = max(second / total - (first / total) ** 2, 0.0)
    return float(math.sqrt(variance) * (2 * total**2 / squares) ** -0.2)
