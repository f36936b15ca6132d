"""The gaps of a table in standard errors, and two estimates of SMECE made of them.

One is never too high on average, one not too low, each with how far beyond it the truth may be.

Intervals of one model and of the difference of two are made of these. Everything works on the sums
of one table, or of many along leading axes: the last axis is the bin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from softcal.inference.folded import (
    MEAN_AT_0,
    cautious_abs,
    highest_plausible,
    inverse_mean_abs,
    soft_sign,
)
from softcal.table.clusters import Clusters, joined_square

if TYPE_CHECKING:
    from softcal.door.inputs import FloatArray
    from softcal.table.kernel import Sums

# Constants of the method, set by simulation; docs/uncertainty.md says how.
SHARPNESS = 0.8
"""Of the cautious absolute value, and of the soft signs that go with it."""
_FAR = (2.5, 3.5)  # standard errors over which a bin's gap ceases to be folded at 0
_ENOUGH_ROWS = (4, 5)  # over which a bin's own variance comes to be believed
_ROUNDING = 1e-11  # of a variance: what may be left where all of it cancels


@dataclass(frozen=True, eq=False)
class Gaps:
    """The bins' sums of residuals and how they vary; no squares where rows are independent."""

    residual: FloatArray
    variance: FloatArray  # of each residual
    square: FloatArray | None  # their covariances, with that variance in the diagonal
    weight: FloatArray
    weight_sq: FloatArray
    weight_square: FloatArray | None
    total: FloatArray  # of all weight
    rows: FloatArray  # the effective number of rows (Kish's), or of groups
    counted: FloatArray  # 1 / votes behind a label, 1 for 0/1 labels, 0 where nothing is known

    @staticmethod
    def of(sums: Sums, clusters: Clusters | None = None) -> Gaps:
        """Take from the sums what intervals need; a variance is never below the labels' own."""
        total = sums.weight.sum(axis=-1)
        floor = noise_floor(sums)
        if clusters is None:
            return Gaps(
                sums.residual, np.maximum(sums.residual_var, floor), None, sums.weight,
                sums.weight_sq, None, total, total**2 / sums.weight_sq.sum(axis=-1),
                _counted(sums),
            )  # fmt: skip
        own = clusters.residual.diagonal()
        variance = np.maximum(own, floor)
        return Gaps(
            sums.residual, variance, clusters.residual + np.diag(variance - own), sums.weight,
            clusters.weight.diagonal(), clusters.weight, total, total**2 / clusters.weight.sum(),
            _counted(sums),
        )  # fmt: skip

    def joined(self, starts: npt.NDArray[np.intp]) -> Gaps:
        """Join neighbouring bins, given where each new one starts."""

        def along(values: FloatArray) -> FloatArray:
            out: FloatArray = np.add.reduceat(values, starts, axis=-1)
            return out

        if self.square is None or self.weight_square is None:
            return Gaps(
                along(self.residual), along(self.variance), None, along(self.weight),
                along(self.weight_sq), None, self.total, self.rows, self.counted,
            )  # fmt: skip
        square = joined_square(self.square, starts)
        weight_square = joined_square(self.weight_square, starts)
        return Gaps(
            along(self.residual), kept(square.diagonal(), along(self.variance)), square,
            along(self.weight), weight_square.diagonal(), weight_square, self.total, self.rows,
            self.counted,
        )  # fmt: skip

    @property
    def size(self) -> FloatArray:
        """The effective number of rows, or of groups, of each bin."""
        out: FloatArray = self.weight**2 / np.maximum(self.weight_sq, 1e-300)
        return out

    def in_errors(self, inflation: FloatArray | float = 1.0) -> tuple[FloatArray, FloatArray]:
        """Give each bin's part of SMECE in standard errors, and the standard errors."""
        total = self.total[..., None]
        error = np.sqrt(self.variance * inflation) / total
        gap = self.residual / total
        return np.divide(gap, error, out=np.zeros_like(gap), where=error > 0), error

    def spread(self, sign: FloatArray, share: FloatArray | float = 1.0) -> FloatArray:
        """Return the variance of the signed sum of a share of each bin, its own part in full."""
        own: FloatArray = (share * self.variance).sum(axis=-1)
        if self.square is not None:
            part = sign * np.sqrt(share)
            between = float(part @ self.square @ part) - (part**2 * self.variance).sum()
            own = kept(own + between, own)
        return own / self.total**2

    def cautious(
        self, z: float, inflation: FloatArray | float = 1.0
    ) -> tuple[FloatArray, FloatArray]:
        r"""Estimate SMECE never too high on average, and give how far below the truth may be.

        Residuals that all agree leave only the rows that were not seen. The variance is that with
        one more row, whose gap is 0. Soft labels say no more: how far a row not seen may be off is
        unknown. The variance of 0/1 labels follows from their mean, so theirs is taken
        at the limit, \(\theta - r\), as in Wilson's interval of a proportion; labels of m votes
        have 1/m of that:

        \[ r^2 = z^2 \Bigl( s^2 + \frac{\theta^2 - (\theta - r)^2}{nm} \Bigr) . \]
        """
        t, error = self.in_errors(inflation)
        estimate = (error * cautious_abs(t, SHARPNESS)).sum(axis=-1)
        spread = self.spread(soft_sign(t, SHARPNESS))
        above_0 = np.maximum(estimate, 0)
        rest = kept(spread - above_0**2 / self.rows * (1 - 1 / self.rows), spread)
        c = self.counted * z**2 / self.rows
        at_limit = c * above_0 + np.sqrt((c * above_0) ** 2 + (1 + c) * z**2 * rest)
        return estimate, np.maximum(at_limit / (1 + c), z * np.sqrt(rest))

    def generous(self, z: float) -> tuple[FloatArray, FloatArray]:
        """Estimate SMECE not too low, and give how far above that the truth may be.

        Bins near 0 are unfolded as if all were alike, which is the least favourable case. A bin
        between near and far is in part the one, in part the other, so that the limit has no jump.
        """
        t, error = self.in_errors()
        near = (1 - _smooth_step(np.abs(t), *_FAR)) * _smooth_step(self.size, *_ENOUGH_ROWS)
        absolute = np.abs(self.residual) / self.total[..., None]
        near_error = (near * error).sum(axis=-1)
        near_gap = (near * absolute).sum(axis=-1)
        far_gap = ((1 - near) * absolute).sum(axis=-1)
        near_square = self._at_worst(near)
        far_square = self.spread(soft_sign(t, SHARPNESS), 1 - near)

        scale = np.where(near_error > 0, near_error, 1.0)
        seen = near_gap / scale
        floor = np.maximum(seen, MEAN_AT_0)  # a lucky draw must not make the limit 0
        most = highest_plausible(floor, z * np.sqrt(near_square) / scale)
        middle = np.minimum(inverse_mean_abs(seen), most)
        far_variance = kept(far_square - far_gap**2 / self.rows, far_square)
        reach = np.sqrt(((most - middle) * near_error) ** 2 + z**2 * far_variance)
        return middle * near_error + far_gap, reach

    def _at_worst(self, share: FloatArray) -> FloatArray:
        """Return the variance of the sum of a share of each bin, where the signs are unknown."""
        if self.square is None:
            out: FloatArray = (share * self.variance).sum(axis=-1) / self.total**2
            return out
        part = np.sqrt(share)
        return np.asarray(part @ np.abs(self.square) @ part / self.total**2)


def kept(rest: FloatArray, whole: FloatArray) -> FloatArray:
    """Keep what is left of a variance from 0, where a root would turn rounding into a number."""
    return np.maximum(rest, 0.0) + _ROUNDING * whole


def _smooth_step(x: FloatArray, start: float, end: float) -> FloatArray:
    """Rise from 0 to 1 with a slope of 0 at both ends, so that its root has a bounded slope."""
    u = np.clip((x - start) / (end - start), 0.0, 1.0)
    return u**2 * (3 - 2 * u)


def _counted(sums: Sums) -> FloatArray:
    """Return the share of the variance of 0/1 labels that labels of so many votes have."""
    hard = ~sums.label_var.any(axis=-1)
    rows, votes = sums.count.sum(axis=-1), sums.votes.sum(axis=-1)
    return np.where(hard, 1.0, np.where(votes > 0, rows / np.maximum(votes, rows), 0.0))


def noise_floor(sums: Sums) -> FloatArray:
    """Give the least variance the labels are known to have: that of votes, or of 0/1 outcomes."""
    hard = ~sums.label_var.any(axis=-1, keepdims=True)
    return np.where(hard, sums.prob_var, sums.vote_floor)
