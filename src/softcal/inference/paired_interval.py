"""The interval of the difference of two SMECE on the same rows, from the joint table alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from softcal.inference.folded import MEAN_AT_0, soft_sign
from softcal.inference.gaps import SHARPNESS, Gaps, kept

if TYPE_CHECKING:
    from softcal.door.inputs import FloatArray
    from softcal.table.clusters import Clusters
    from softcal.table.kernel import Sums

# Constants of the two intervals, set by simulation: benchmarks/paired.py.
_DIRECT_SHARPNESS = 0.7  # of soft signs, where they give a folded number its variance
_CHOOSING = 0.95  # the level at which the narrower interval is chosen, whatever is asked for
_ALIKE = 0.05  # widths this close, as a share of the separate one's: the two intervals are mixed


class _Model:
    """One model's bins: gap and its error as shares of all weight, and t, their ratio."""

    def __init__(self, sums: Sums, clusters: Clusters | None) -> None:
        self.gaps = Gaps.of(sums, clusters)
        self.total, self.rows = self.gaps.total, self.gaps.rows
        self.gap = sums.residual / self.total[..., None]
        self.t, self.error = self.gaps.in_errors()
        self.sign = soft_sign(self.t, SHARPNESS)
        self.signed_mean = (self.sign * self.gap).sum(axis=-1)
        square = self.gaps.spread(self.sign)
        seen = self.signed_mean**2 / self.rows * (1 - 1 / self.rows)
        self.variance = kept(square - seen, square)  # with one more row, whose gap is 0
        self._own = sums.residual_var if clusters is None else clusters.residual

    def signed_square(self, sign: FloatArray) -> FloatArray:
        """Give the sum over rows, or groups, of their signed and squared residuals."""
        independent = self.gaps.square is None
        square = (sign**2 * self._own).sum(axis=-1) if independent else sign @ self._own @ sign
        out: FloatArray = square / self.total**2
        return out


class DifferenceIntervals:
    r"""Intervals of all levels for one joint table, or for many along leading axes.

    Two kinds are computed, and the one that is narrower at level 0.95 is used at every level;
    where their widths differ by less than 5%, a mixture of both, so that limits have no jump.

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
        narrower = 1 - (direct_high - direct_low) / np.maximum(high - low, 1e-300)
        self.direct_share = np.clip((1 + narrower / _ALIKE) / 2, 0.0, 1.0)

    def limits(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Give both limits at level 1 - alpha."""
        low, high = (
            separate + self.direct_share * (direct - separate)
            for direct, separate in zip(self.direct(alpha), self.separate(alpha), strict=True)
        )
        return np.maximum(low, -1.0), np.minimum(high, 1.0)

    def direct(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Give the limits that count on the models being alike; wide when they are not."""
        half = self.folding - stdtrit(self.degrees, alpha / 2) * self.error
        return self.difference - half, self.difference + half

    def _direct_error(self) -> FloatArray:
        """Give the standard error of the difference, signs softened where they are unsure.

        Differences that are all equal leave the rows that were not seen: one more, of difference 0.
        """
        a, b = self.a, self.b
        sign_a, sign_b = soft_sign(a.t, _DIRECT_SHARPNESS), soft_sign(b.t, _DIRECT_SHARPNESS)
        square = a.signed_square(sign_a) + b.signed_square(sign_b)
        shared = 2 * self._between(sign_a, sign_b)
        mean = (sign_a * a.gap - sign_b * b.gap).sum(axis=-1)
        seen = mean**2 / a.rows * (1 - 1 / a.rows)
        out: FloatArray = np.sqrt(kept(square - shared - seen, square))
        return out

    def _folding(self) -> FloatArray:
        """Bound what noise adds to one SMECE and not to the other (R)."""
        a, b = self.a, self.b
        share = np.exp(-1.5 * a.t**2) + np.exp(-1.5 * b.t**2)
        unlike = (share * np.abs(a.gap - b.gap)).sum(axis=-1)
        out: FloatArray = unlike + MEAN_AT_0 * np.abs((share * (a.error - b.error)).sum(axis=-1))
        return out

    def _correlation(self) -> FloatArray:
        """Correlate the models, each with the one more row that its lower limit counts.

        Residuals that are all equal have no variance without that row, nor a covariance: the
        correlation would be a ratio of two roundings.
        """
        a, b = self.a, self.b
        mean_a, mean_b = a.signed_mean, b.signed_mean
        covariance = self._between(a.sign, b.sign) - mean_a * mean_b / a.rows
        error = np.sqrt(a.variance) * np.sqrt(b.variance)
        out: FloatArray = np.clip(covariance / np.maximum(error, 1e-300), -1.0, 1.0)
        return out

    def separate(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Give the limits that count on nothing."""
        z = -float(ndtri(alpha / 2))
        a, b = self.a, self.b
        (most_a, above_a), (most_b, above_b) = a.gaps.generous(z), b.gaps.generous(z)
        (least_a, below_a), (least_b, below_b) = a.gaps.cautious(z), b.gaps.cautious(z)
        low = least_a - most_b - self._together(below_a, above_b)
        high = most_a - least_b + self._together(above_a, below_b)
        return low, high

    def _together(self, x: FloatArray, y: FloatArray) -> FloatArray:
        square = x**2 + y**2 - 2 * self.correlation * x * y
        return np.sqrt(np.maximum(square, 0.0))

    def _between(self, sign_a: FloatArray, sign_b: FloatArray) -> FloatArray:
        """Give the covariance of the signed sums of gaps."""
        product: FloatArray = (sign_a * (self.cross @ sign_b[..., None])[..., 0]).sum(axis=-1)
        return product / self.a.total**2
