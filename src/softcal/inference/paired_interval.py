"""The interval of the difference of two SMECE on the same rows, from the joint table alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from softcal.inference.folded import MEAN_AT_0, soft_sign
from softcal.inference.gaps import SHARPNESS, Gaps

if TYPE_CHECKING:
    from softcal.door.inputs import FloatArray
    from softcal.table.clusters import Clusters
    from softcal.table.kernel import Sums

# Constants of the two intervals, set by simulation: benchmarks/paired.py.
_DIRECT_SHARPNESS = 0.7  # of soft signs, where they give a folded number its variance
_CHOOSING = 0.95  # the level at which the narrower interval is chosen, whatever is asked for


class _Model:
    """One model's bins: gap and its error as shares of all weight, and t, their ratio."""

    def __init__(self, sums: Sums, clusters: Clusters | None) -> None:
        self.gaps = Gaps.of(sums, clusters)
        self.total, self.rows = self.gaps.total, self.gaps.rows
        self.gap = sums.residual / self.total[..., None]
        self.t, self.error = self.gaps.in_errors()
        self.sign = soft_sign(self.t, SHARPNESS)
        self.square = self.gaps.spread(self.sign)
        self.cautious, self.cautious_error = self.gaps.cautious()
        self._own = sums.residual_var if clusters is None else clusters.residual

    def signed_square(self, sign: FloatArray) -> FloatArray:
        """Give the sum over rows, or groups, of their signed and squared residuals."""
        independent = self.gaps.square is None
        square = (sign**2 * self._own).sum(axis=-1) if independent else sign @ self._own @ sign
        out: FloatArray = square / self.total**2
        return out


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
        self,
        a: Sums,
        b: Sums,
        cross: FloatArray,
        differing: npt.NDArray[np.integer],
        clusters: tuple[Clusters | None, Clusters | None] = (None, None),
    ) -> None:
        self.a, self.b = _Model(a, clusters[0]), _Model(b, clusters[1])
        self.cross = cross
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
        square = a.signed_square(sign_a) + b.signed_square(sign_b)
        square = square - 2 * self._between(sign_a, sign_b)
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
        covariance = self._between(a.sign, b.sign) - mean_a * mean_b / a.rows
        square = (a.square - mean_a**2 / a.rows) * (b.square - mean_b**2 / b.rows)
        out: FloatArray = np.clip(covariance / np.sqrt(np.maximum(square, 1e-300)), -1.0, 1.0)
        return out

    def separate(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Give the limits that count on nothing."""
        z = -float(ndtri(alpha / 2))
        a, b = self.a, self.b
        (most_a, above_a), (most_b, above_b) = a.gaps.generous(z), b.gaps.generous(z)
        below_a, below_b = z * a.cautious_error, z * b.cautious_error
        low = a.cautious - most_b - self._together(below_a, above_b)
        high = most_a - b.cautious + self._together(above_a, below_b)
        return low, high

    def _together(self, x: FloatArray, y: FloatArray) -> FloatArray:
        square = x**2 + y**2 - 2 * self.correlation * x * y
        return np.sqrt(np.maximum(square, 0.0))

    def _between(self, sign_a: FloatArray, sign_b: FloatArray) -> FloatArray:
        """Give the covariance of the signed sums of gaps."""
        product: FloatArray = (sign_a * (self.cross @ sign_b[..., None])[..., 0]).sum(axis=-1)
        return product / self.a.total**2
