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
_FAR = 3.0  # standard errors from which a bin's gap cannot be folded at 0
_ENOUGH_ROWS = 5  # from which a bin's own variance is believed


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

    @staticmethod
    def of(sums: Sums, clusters: Clusters | None = None) -> Gaps:
        """Take from the sums what intervals need; a variance is never below the labels' own."""
        total = sums.weight.sum(axis=-1)
        floor = noise_floor(sums)
        if clusters is None:
            return Gaps(
                sums.residual, np.maximum(sums.residual_var, floor), None, sums.weight,
                sums.weight_sq, None, total, total**2 / sums.weight_sq.sum(axis=-1),
            )  # fmt: skip
        own = clusters.residual.diagonal()
        variance = np.maximum(own, floor)
        return Gaps(
            sums.residual, variance, clusters.residual + np.diag(variance - own), sums.weight,
            clusters.weight.diagonal(), clusters.weight, total, total**2 / clusters.weight.sum(),
        )  # fmt: skip

    def joined(self, starts: npt.NDArray[np.intp]) -> Gaps:
        """Join neighbouring bins, given where each new one starts."""

        def along(values: FloatArray) -> FloatArray:
            out: FloatArray = np.add.reduceat(values, starts, axis=-1)
            return out

        if self.square is None or self.weight_square is None:
            return Gaps(
                along(self.residual), along(self.variance), None, along(self.weight),
                along(self.weight_sq), None, self.total, self.rows,
            )  # fmt: skip
        square = joined_square(self.square, starts)
        weight_square = joined_square(self.weight_square, starts)
        return Gaps(
            along(self.residual), np.maximum(square.diagonal(), 0.0), square, along(self.weight),
            weight_square.diagonal(), weight_square, self.total, self.rows,
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

    def spread(self, sign: FloatArray) -> FloatArray:
        """Variance of the signed sum of gaps, each bin's own in full."""
        own: FloatArray = self.variance.sum(axis=-1)
        if self.square is not None:
            between = float(sign @ self.square @ sign) - (sign**2 * self.variance).sum()
            own = np.maximum(own + between, 0.0)
        return own / self.total**2

    def cautious(self, inflation: FloatArray | float = 1.0) -> tuple[FloatArray, FloatArray]:
        """Estimate SMECE never too high on average; give its standard error with it.

        Gaps all alike, of exact labels, leave nothing but the rows that were not seen: the
        variance is that with one more row, whose gap is 0.
        """
        t, error = self.in_errors(inflation)
        estimate = (error * cautious_abs(t, SHARPNESS)).sum(axis=-1)
        spread = self.spread(soft_sign(t, SHARPNESS))
        seen = np.maximum(estimate, 0) ** 2 / self.rows * (1 - 1 / self.rows)
        return estimate, np.sqrt(np.maximum(spread - seen, 0))

    def generous(self, z: float) -> tuple[FloatArray, FloatArray]:
        """Estimate SMECE not too low, and give how far above that the truth may be.

        Bins near 0 are unfolded as if all were alike, which is the least favourable case.
        """
        t, error = self.in_errors()
        near = (np.abs(t) < _FAR) & (self.size >= _ENOUGH_ROWS)
        absolute = np.abs(self.residual) / self.total[..., None]
        near_error = np.where(near, error, 0.0).sum(axis=-1)
        near_gap = np.where(near, absolute, 0.0).sum(axis=-1)
        far_gap = np.where(near, 0.0, absolute).sum(axis=-1)
        near_square, far_square = self._near_and_far(near, error)

        scale = np.where(near_error > 0, near_error, 1.0)
        seen = near_gap / scale
        floor = np.maximum(seen, MEAN_AT_0)  # a lucky draw must not make the limit 0
        most = highest_plausible(floor, z * np.sqrt(near_square) / scale)
        middle = np.minimum(inverse_mean_abs(seen), most)
        far_variance = np.maximum(far_square - far_gap**2 / self.rows, 0.0)
        reach = np.sqrt(((most - middle) * near_error) ** 2 + z**2 * far_variance)
        return middle * near_error + far_gap, reach

    def _near_and_far(
        self, near: npt.NDArray[np.bool_], error: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Give the variance of the near bins' sum and of the far bins', where groups tie bins."""
        if self.square is None:
            square = error**2
            return (
                np.where(near, square, 0.0).sum(axis=-1),
                np.where(near, 0.0, square).sum(axis=-1),
            )
        total = float(self.total) ** 2
        # The sign of a near bin is unknown, so what it shares with others is taken at its worst.
        near_square = np.abs(self.square[np.ix_(near, near)]).sum() / total
        sign = np.where(near, 0.0, np.sign(self.residual))
        far_square = max(float(sign @ self.square @ sign), 0.0) / total
        return np.asarray(near_square), np.asarray(far_square)


def noise_floor(sums: Sums) -> FloatArray:
    """Give the least variance the labels are known to have: that of votes, or of 0/1 outcomes."""
    hard = ~sums.label_var.any(axis=-1, keepdims=True)
    return np.where(hard, sums.prob_var, sums.vote_floor)
