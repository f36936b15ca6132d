r"""Calibration error without bins: the SmoothECE of Blasiok and Nakkiran.

The residuals, seen as point masses on [0, 1], are smoothed by a Gaussian kernel that is reflected
at both ends. Reflection makes the cosines its eigenfunctions,

\[ K_\sigma(t, x) = 1 + 2 \sum_{k \ge 1} e^{-\sigma^2 \pi^2 k^2 / 2} \cos(\pi k t) \cos(\pi k x), \]

so with the residuals on a lattice one cosine transform gives their coefficients, and each bandwidth
after that costs one multiplication and one small transform back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.fft import dct
from scipy.optimize import brentq

from softcal.door import inputs
from softcal.errors import InputError
from softcal.table.lattice import CELLS, residual_lattice, spread
from softcal.table.reliability import refuse_no_rows

if TYPE_CHECKING:
    import numpy.typing as npt

    from softcal.door.inputs import FloatArray
    from softcal.table.reliability import Reliability

_POINTS_PER_BANDWIDTH = 128
_FEWEST_POINTS = 256
_WIDEST_BIN = 0.01
_TOLERANCE = 1e-9


def smooth_ece(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""SmoothECE (`smECE` in relplot), a calibration error without bins.

    Not SMECE, which is `smece`: that one sorts predictions into bins, this one smooths the
    residuals by a Gaussian kernel \(K_\sigma\) reflected at 0 and 1,

    \[ \mathrm{smECE}_\sigma
       = \int_0^1 \Bigl| \frac1n \sum_i K_\sigma(t, p_i)\,(p_i - y_i) \Bigr|\,dt , \]

    and chooses the bandwidth by itself: the result is the one \(\sigma^*\) at which
    \(\mathrm{smECE}_\sigma = \sigma\) (Blasiok and Nakkiran, Smooth ECE: Principled Reliability
    Diagrams via Kernel Smoothing, 2023). Nothing in this asks for labels of 0 or 1.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `reliability`.

    Returns
    -------
    float
        Between 0 and 1; exactly 0 when every label equals its prediction.

    Notes
    -----
    Residuals are put on a lattice of spacing \(h = 2^{-14}\), and the integral is taken on a grid
    of spacing \(\Delta \le \max(\sigma/128, h)\). The result is then wrong by at most

    \[ \tfrac18 \cdot 4\varphi(1) \cdot \frac{h^2 + \Delta^2}{\sigma^{*2}} \cdot
       \frac1n \sum_i |p_i - y_i| : \]

    less than 0.000012 times the mean absolute residual for results of 0.01 and more, and the
    1e-9 to which the equation is solved. Below
    \(2h = 0.00012\) nothing is promised but that the result is small.

    relplot's `smECE` agrees to about 0.001 for results below 0.1. It is higher for larger results,
    because it cuts the kernel at a distance of 0.5: by up to 0.003 for results of 0.1 to 0.2, and
    by up to 0.24 above, on random data. It also counts predictions of exactly 0 or 1 by half.

    Examples
    --------
    Where all residuals have one sign, smoothing changes nothing: it is the mean residual.

    >>> round(smooth_ece([0.1, 0.3, 0.8], [0.2, 0.4, 0.9]), 6)
    0.1
    >>> smooth_ece([0.2, 0.4, 0.9], [0.2, 0.4, 0.9])
    0.0
    """
    rows = inputs.rows(y_true, y_prob, sample_weight)
    lattice = residual_lattice(rows)
    if lattice is None:
        inputs.refuse(rows)
    if not lattice.weight:
        inputs.refuse_no_weight(rows)
    return _fixed_point(lattice.residual / lattice.weight)


def smooth_ece_from_table(rel: Reliability) -> float:
    r"""SmoothECE of a fine reliability table, without the rows.

    Takes every residual of a bin as if it were at the bin's mean prediction. With bins of width at
    most w that moves `smooth_ece` by at most \(\frac{1}{\sqrt{2\pi}} \frac{w}{\sigma^*}
    \sqrt{\mathrm{Brier}}\), and by nothing where all predictions of a bin are equal. In practice it
    is far nearer, since residuals of both signs move the same way.

    Parameters
    ----------
    rel : Reliability
        No bin with rows may be wider than 0.01: build the table with `bins=3600`, say.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from softcal import reliability
    >>> fine = reliability([0.1, 0.3, 0.8], [0.2, 0.4, 0.9], bins=3600)
    >>> round(smooth_ece_from_table(fine), 6)
    0.1
    """
    refuse_no_rows(rel)
    filled = rel.count > 0
    width = np.diff(rel.bins.edges)[filled]
    wide = width > _WIDEST_BIN * (1 + 1e-9)  # more than the rounding of edges
    if wide.any():
        message = (
            f"smooth_ece needs a fine table: {wide.sum()} of {wide.size} bins with rows are wider "
            f"than {_WIDEST_BIN}, the widest {width.max():.4g}. Build it with "
            "bins=3600, or pass the rows to smooth_ece."
        )
        raise InputError(message)
    mass = rel.sums.residual[filled] / rel.sums.weight.sum()
    return _fixed_point(spread(rel.mean_prob[filled], mass))


def _fixed_point(mass: FloatArray) -> float:
    """Find the bandwidth that equals the smoothed error at that bandwidth.

    The error never grows with the bandwidth, is at least 0 and at most 1: there is exactly one.
    """
    unsmoothed = float(np.abs(mass).sum())
    if not unsmoothed:
        return 0.0
    # The transform counts inner nodes twice, the ends once.
    halved = mass / 2
    halved[[0, -1]] *= 2
    coefficient = dct(halved, type=1)

    def excess(sigma: float) -> float:
        error = _error_at(sigma, coefficient) if sigma else unsmoothed
        return min(error, 1.0) - sigma

    return float(brentq(excess, 0.0, 1.0, xtol=_TOLERANCE))


def _error_at(sigma: float, coefficient: FloatArray) -> float:
    """Integrate the absolute smoothed residual."""
    needed = min(_POINTS_PER_BANDWIDTH / sigma, CELLS)
    points = max(_FEWEST_POINTS, 1 << (int(np.ceil(needed)) - 1).bit_length())
    frequency = np.pi * np.arange(points + 1)
    damping = np.exp(-0.5 * (sigma * frequency) ** 2)
    smoothed = dct(damping * coefficient[: points + 1], type=1)
    return _integral_of_absolute(smoothed) / points


def _integral_of_absolute(values: FloatArray) -> float:
    """Add up the area between 0 and the straight lines through the values, one unit apart."""
    height = np.abs(values)
    trapezoids = height.sum() - (height[0] + height[-1]) / 2
    # A line from a to -b encloses two triangles, which are a b / (a + b) less than its trapezoid.
    crossing = np.flatnonzero(values[:-1] * values[1:] < 0)
    a, b = height[crossing], height[crossing + 1]
    return float(trapezoids - (a * b / (a + b)).sum())
