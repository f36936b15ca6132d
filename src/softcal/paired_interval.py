"""The interval of the difference of two SMECE on the same rows, from the joint table alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from softcal.folded import (
    MEAN_AT_0,
    cautious_abs,
    highest_plausible,
    inverse_mean_abs,
    soft_sign,
)
from softcal.inference import noise_floor

if TYPE_CHECKING:
    from softcal.inputs import FloatArray
    from softcal.kernel import Sums

# Constants of the two intervals, set by simulation: benchmarks/paired.py.
_SHARPNESS = 0.8  # of the soft signs in the separate interval
_DIRECT_SHARPNESS = 0.7  # and in the direct one, where it gives a folded number its variance
_FAR = 3.0  # standard errors from which a bin's gap cannot be folded at 0
_ENOUGH_ROWS = 5  # from which a bin's own variance is believed
_CHOOSING = 0.95  # the level at which the narrower interval is chosen, whatever is asked for


class _Model:
    """One model's bins: gap and its error as shares of all weight, and t, their ratio."""

    def __init__(self, s: Sums) -> None:
        self.total = s.weight.sum(axis=-1)
        self.rows = self.total**2 / s.weight_sq.sum(axis=-1)  # Kish's effective number
        variance = np.maximum(s.residual_var, noise_floor(s))
        self.error = np.sqrt(variance) / self.total[..., None]
        self.own_square = s.residual_var / self.total[..., None] ** 2
        self.gap = s.residual / self.total[..., None]
        self.t = np.divide(self.gap, self.error, out=np.zeros_like(self.gap), where=self.error > 0)
        enough = s.weight**2 >= _ENOUGH_ROWS * s.weight_sq
        self.near = (np.abs(self.t) < _FAR) & enough
        self.square = (self.error**2).sum(axis=-1)
        self.sign = soft_sign(self.t, _SHARPNESS)
        self.cautious = (self.error * cautious_abs(self.t, _SHARPNESS)).sum(axis=-1)

    def cautious_reach(self, z: float) -> FloatArray:
        """Give how far below the cautious estimate the truth may be."""
        spread = self.square - np.maximum(self.cautious, 0) ** 2 / self.rows
        out: FloatArray = z * np.sqrt(np.maximum(spread, 0))
        return out

    def generous(self, z: float) -> tuple[FloatArray, FloatArray]:
        """Give an estimate that is not too low, and how far above it the truth may be.

        Bins near 0 are unfolded as if all were alike, which is the least favourable case.
        """
        error = np.where(self.near, self.error, 0.0)
        near_error, near_square = error.sum(axis=-1), (error**2).sum(axis=-1)
        absolute = np.abs(self.gap)
        far_gap = np.where(self.near, 0.0, absolute).sum(axis=-1)
        scale = np.where(near_error > 0, near_error, 1.0)
        seen = np.where(self.near, absolute, 0.0).sum(axis=-1) / scale
        floor = np.maximum(seen, MEAN_AT_0)  # a lucky draw must not make the limit 0
        most = highest_plausible(floor, z * np.sqrt(near_square) / scale)
        middle = np.minimum(inverse_mean_abs(seen), most)
        far_square = np.maximum(self.square - near_square - far_gap**2 / self.rows, 0.0)
        reach = np.sqrt(((most - middle) * near_error) ** 2 + z**2 * far_square)
        return middle * near_error + far_gap, reach


class DifferenceIntervals:
    r"""Intervals of all levels for one joint table, or for many along leading axes.

    Two kinds are computed, and the one that is narrower at level 0.95 is used at every level.

    The separate one bounds what noise adds to each model by itself: from A an estimate that never
    overestimates on average, less from B one that never underestimates, and the other way
    round; their reaches are combined with the correlation of the two (MOVER).

    The direct one is \(\hat\delta \pm (R + t\,\mathrm{se})\). With \(x = \mu/s\) a bin's true gap
    in standard errors, noise adds \(s\,\gamma(|x|)\) to \(|\mu|\), \(\gamma' = -2\Phi(-x)\); and
    as \(2\Phi(-x)\) is convex, what it adds to A more than to B in one bin is, for equal s, at
    most

    \[ \bigl(\Phi(-|x^A|) + \Phi(-|x^B|)\bigr)\, |\mu^A - \mu^B| . \]

    R is the sum of that over bins, with \(e^{-3t^2/2}\) for \(\Phi(-|x|)\), since its mean
    \(\frac12 e^{-3x^2/8}\) is never below, and \(|D^A - D^B|\) for \(|\mu^A - \mu^B|\), whose
    mean is never below either; plus a like term where the standard errors differ. It is small
    for models that are alike and in bins far from 0.
    """

    def __init__(
        self, a: Sums, b: Sums, cross: FloatArray, differing: npt.NDArray[np.integer]
    ) -> None:
        self.a, self.b = _Model(a), _Model(b)
        self.cross = cross / self.a.total[..., None, None] ** 2
        self.degrees = np.maximum(differing - 1, 1)
        self.correlation = self._correlation()
        self.difference = np.abs(self.a.gap).sum(axis=-1) - np.abs(self.b.gap).sum(axis=-1)
        self.error = self._direct_error()
        self.folding = self._folding()
        low, high = self.separate(1 - _CHOOSING)
        direct_low, direct_high = self.direct(1 - _CHOOSING)
        self.is_direct = direct_high - direct_low < high - low

    def limits(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Give both limits at level 1 - alpha."""
        low, high = (
            np.where(self.is_direct, direct, separate)
            for direct, separate in zip(self.direct(alpha), self.separate(alpha), strict=True)
        )
        return np.maximum(low, -1.0), np.minimum(high, 1.0)

    def direct(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Give the limits that count on the models being alike; wide when they are not."""
        half = self.folding - stdtrit(self.degrees, alpha / 2) * self.error
        return self.difference - half, self.difference + half

    def _direct_error(self) -> FloatArray:
        """Give the standard error of the difference, signs softened where they are unsure."""
        a, b = self.a, self.b
        sign_a, sign_b = soft_sign(a.t, _DIRECT_SHARPNESS), soft_sign(b.t, _DIRECT_SHARPNESS)
        square = (sign_a**2 * a.own_square + sign_b**2 * b.own_square).sum(axis=-1)
        square = square - 2 * _between(sign_a, self.cross, sign_b)
        mean = (sign_a * a.gap - sign_b * b.gap).sum(axis=-1)
        out: FloatArray = np.sqrt(np.maximum(square - mean**2 / a.rows, 0.0))
        return out

    def _folding(self) -> FloatArray:
        """Bound what noise adds to one SMECE and not to the other (R)."""
        a, b = self.a, self.b
        share = np.exp(-1.5 * a.t**2) + np.exp(-1.5 * b.t**2)
        unlike = (share * np.abs(a.gap - b.gap)).sum(axis=-1)
        out: FloatArray = unlike + MEAN_AT_0 * np.abs((share * (a.error - b.error)).sum(axis=-1))
        return out

    def _correlation(self) -> FloatArray:
        a, b = self.a, self.b
        mean_a, mean_b = (a.sign * a.gap).sum(axis=-1), (b.sign * b.gap).sum(axis=-1)
        covariance = _between(a.sign, self.cross, b.sign) - mean_a * mean_b / a.rows
        square = (a.square - mean_a**2 / a.rows) * (b.square - mean_b**2 / b.rows)
        out: FloatArray = np.clip(covariance / np.sqrt(np.maximum(square, 1e-300)), -1.0, 1.0)
        return out

    def separate(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Give the limits that count on nothing."""
        z = -float(ndtri(alpha / 2))
        a, b = self.a, self.b
        (most_a, above_a), (most_b, above_b) = a.generous(z), b.generous(z)
        below_a, below_b = a.cautious_reach(z), b.cautious_reach(z)
        low = a.cautious - most_b - self._together(below_a, above_b)
        high = most_a - b.cautious + self._together(above_a, below_b)
        return low, high

    def _together(self, x: FloatArray, y: FloatArray) -> FloatArray:
        square = x**2 + y**2 - 2 * self.correlation * x * y
        return np.sqrt(np.maximum(square, 0.0))


def _between(left: FloatArray, matrix: FloatArray, right: FloatArray) -> FloatArray:
    out: FloatArray = (left * (matrix @ right[..., None])[..., 0]).sum(axis=-1)
    return out
