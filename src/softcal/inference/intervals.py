"""Confidence intervals from the sums of a table, without resampling.

Arrays hold the sums of one table or of many, and the last axis is the bin. The
assumptions are in docs/uncertainty.md, and the formulas in docs/interval_method.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import log
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammainccinv, ndtr, ndtri, stdtr, stdtrit

from softcal.table.kernel import native_limits
from softcal.table.owners import Clusters, joined_square

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray
    from softcal.table.kernel import Sums
    from softcal.table.owners import SharedByRaters
    from softcal.table.reliability import Reliability
    from softcal.votes import Votes

MEAN_AT_0, SPREAD_AT_0 = float(np.sqrt(2 / np.pi)), float(np.sqrt(1 - 2 / np.pi))
"""The mean and the standard deviation of |Z|."""


def mean_abs(x: FloatArray) -> FloatArray:
    r"""Mean of \(|x + Z|\): \(2\varphi(x) + x(2\Phi(x) - 1)\)."""
    out: FloatArray = 2 * _density(x) + x * (2 * ndtr(x) - 1)
    return out


def variance_abs(x: FloatArray) -> FloatArray:
    r"""Variance of \(|x + Z|\), between \(1 - 2/\pi\) and 1."""
    return np.clip(1 + x**2 - mean_abs(x) ** 2, 1 - 2 / np.pi, 1.0)


def inverse_mean_abs(mean: FloatArray) -> FloatArray:
    """Return the x >= 0 with this mean of |x + Z|; 0 if the mean is below that of |Z|."""
    return np.where(mean > _GRID_MEAN[-1], mean, np.interp(mean, _GRID_MEAN, _GRID))


def highest_plausible(seen: FloatArray, width: FloatArray) -> FloatArray:
    r"""Return the largest x for which the observed mean of |x + Z| is still plausible.

    At this x, \(E|x + Z| - w \sqrt{Var|x + Z|}\) equals the observed mean, for \(w\) standard
    errors.
    """

    def reach(k: npt.NDArray[np.intp]) -> FloatArray:
        out: FloatArray = _GRID_MEAN[k] - width * _GRID_SPREAD[k]
        return out

    # The function is increasing from the solution on, so bisection finds it.
    below = np.zeros(np.broadcast(seen, width).shape, dtype=np.intp)
    above = np.full_like(below, _GRID.size - 1)
    while (above - below > 1).any():
        middle = (below + above) // 2
        enough = reach(middle) >= seen
        above, below = np.where(enough, middle, above), np.where(enough, below, middle)
    low, high = reach(above - 1), reach(above)
    # Far beyond the grid two neighbors may round to the same number.
    part = np.divide(high - seen, high - low, out=np.zeros(above.shape), where=high > low)
    inside = np.maximum(_GRID[above] - part * _STEP, 0.0)
    return np.where(high < seen, seen + width, inside)  # beyond the grid |x + Z| is x + Z


def soft_sign(t: FloatArray, c: float) -> FloatArray:
    r"""Return a smooth sign of t, \(2\Phi(t/c) - 1\)."""
    out: FloatArray = 2 * ndtr(t / c) - 1
    return out


def cautious_abs(t: FloatArray, c: float) -> FloatArray:
    r"""Estimate \(|x|\) from \(t = x + Z\), never overestimating on average.

    \(t(2\Phi(t/c) - 1) - (2/c)\varphi(t/c)\), whose mean is
    \(x(2\Phi(x/\sqrt{1 + c^2}) - 1)\) by Stein's identity: at most \(|x|\), exact at 0.
    """
    out: FloatArray = t * soft_sign(t, c) - (2 / c) * _density(t / c)
    return out


def _density(x: FloatArray) -> FloatArray:
    out: FloatArray = np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)
    return out


# Both inversions interpolate on this grid; with a step of 0.005 their error is at most 3e-6.
_STEP = 0.005
_GRID = np.arange(0, 16, _STEP)
_GRID_MEAN = mean_abs(_GRID)
_GRID_SPREAD = np.sqrt(variance_abs(_GRID))


# Constants of the method, set by simulation; see docs/interval_method.md.
SHARPNESS = 0.8
"""The c of the cautious absolute value and of its soft signs."""
_FAR = (2.5, 3.5)  # standard errors; above this range, a bin's gap is not folded at 0
_ENOUGH_ROWS = (4, 5)  # rows; above this range, a bin's own variance is used
_ABOVE_0 = (1.0, 1.25)  # estimate / reach; above this range, shifts by raters are used
_ENOUGH_RATERS = 30  # intervals with fewer raters may lose coverage
_ENOUGH_GROUPS = 4  # effective groups; intervals with fewer were not simulated
_MANY_GROUPS = 50  # effective groups; with fewer, products of their sums are not enough
_HEAVY_TAILS = 1.6  # the radius of shifts that decide whether a limit is above 0, in radii
_SHIFTS = np.linspace(-1, 1, 41)  # joint shifts of the bins by raters, as shares of the largest
ROUNDING = 1e-11  # of a variance: what rounding may leave if all of it cancels

# The same as arguments of the extension.
_METHOD = np.array([SHARPNESS, *_FAR, *_ENOUGH_ROWS, ROUNDING, _STEP])
_GRID_LINES = np.concatenate((_GRID_MEAN, _GRID_SPREAD))


@dataclass(frozen=True, eq=False)
class Gaps:
    """The bins' sums of residuals and their variances; `square` is None for independent rows."""

    residual: FloatArray
    variance: FloatArray  # of each residual
    square: FloatArray | None  # their covariances, with that variance in the diagonal
    weight: FloatArray
    weight_sq: FloatArray
    weight_square: FloatArray | None
    total: FloatArray  # of all weight
    rows: FloatArray  # the effective number of rows (Kish's)
    counted: FloatArray  # 1 / votes behind a label, 1 for 0/1 labels, 0 if unknown
    raters: SharedByRaters | None = None
    lean: FloatArray | None = None  # third cumulant of each bin's labels, for independent rows
    degrees: float | None = None  # of freedom of the variances, with groups

    @staticmethod
    def of(sums: Sums, clusters: Clusters | None = None) -> Gaps:
        """Return the sums that intervals need; variances are at least the known noise of labels.

        Groups of one row are independent rows.
        """
        total = sums.weight.sum(axis=-1)
        if clusters is None or (clusters.raters is None and clusters.count == sums.count.sum()):
            return Gaps(
                sums.residual, residual_variance(sums), None, sums.weight,
                sums.weight_sq, None, total, total**2 / sums.weight_sq.sum(axis=-1),
                _counted(sums), None, _lean(sums),
            )  # fmt: skip
        if clusters.raters is None:
            return Gaps._of_groups(sums, clusters)
        own = clusters.residual.diagonal()
        if sums.label_var.any():  # the known noise that the squares of the rows lack
            variance = own + residual_variance(sums) - sums.residual_var
        else:
            variance = np.maximum(own, sums.prob_var)
        return Gaps(
            sums.residual, variance, clusters.residual + np.diag(variance - own), sums.weight,
            clusters.weight.diagonal(), clusters.weight, total, total**2 / clusters.weight.sum(),
            _counted(sums), clusters.raters,
        )  # fmt: skip

    @staticmethod
    def _of_groups(sums: Sums, clusters: Clusters) -> Gaps:
        """Return the sums that intervals with groups need.

        The covariances over groups are around the means, as groups are few. The square of the mean
        is added for the number of rows, as if the rows were independent. A variance is at least
        that of independent rows. In a bin of one group it is at least that times the design effect.
        Known noise that the squares of soft labels lack is added, also times the design effect.
        """
        rows = Gaps.of(sums)
        square, degrees = clusters.covariance(sums)
        square = square + np.outer(sums.residual, sums.residual) / rows.rows
        groups = clusters.weight.diagonal()
        several = several_groups(sums.weight**2 / np.maximum(groups, 1e-300))
        seen = sums.residual_var if sums.label_var.any() else rows.variance
        ratio = design_effect(several * square.diagonal(), several * seen)
        least = rows.variance * (1 + (1 - several) * (ratio - 1))
        variance = np.maximum(square.diagonal() + ratio * (rows.variance - seen), least)
        return Gaps(
            sums.residual, variance, square + np.diag(variance - square.diagonal()), sums.weight,
            groups, clusters.weight, rows.total, rows.rows, rows.counted, degrees=degrees,
        )  # fmt: skip

    @property
    def independent(self) -> FloatArray:
        """The effective number of rows, or of groups."""
        if self.weight_square is None:
            return self.rows
        return np.asarray(self.total**2 / self.weight_square.sum())

    def reach(self, tail: float) -> float:
        """Return the number of standard errors beyond which a tail has this probability.

        Raters and groups are small samples, so with them the distribution is Student's.
        """
        if self.degrees is not None:
            return -float(stdtrit(self.degrees, tail))
        return normal_reach(tail) if self.raters is None else self.raters.reach(tail)

    def joined(self, starts: npt.NDArray[np.intp]) -> Gaps:
        """Merge adjacent bins, given the first bin of each new one."""

        def along(values: FloatArray) -> FloatArray:
            out: FloatArray = np.add.reduceat(values, starts, axis=-1)
            return out

        joined = replace(
            self, residual=along(self.residual), variance=along(self.variance),
            weight=along(self.weight), weight_sq=along(self.weight_sq),
            lean=None if self.lean is None else along(self.lean),
        )  # fmt: skip
        if self.square is None or self.weight_square is None:
            return joined
        square = joined_square(self.square, starts)
        weight_square = joined_square(self.weight_square, starts)
        return replace(
            joined, variance=kept(square.diagonal(), joined.variance), square=square,
            weight_sq=weight_square.diagonal(), weight_square=weight_square,
            raters=None if self.raters is None else self.raters.joined(starts),
        )  # fmt: skip

    @property
    def size(self) -> FloatArray:
        """The effective number of rows, or of groups, of each bin."""
        out: FloatArray = self.weight**2 / np.maximum(self.weight_sq, 1e-300)
        return out

    def in_errors(self, inflation: FloatArray | float = 1.0) -> tuple[FloatArray, FloatArray]:
        """Return each bin's part of SMECE in standard errors, and the standard errors."""
        total = self.total[..., None]
        error = np.sqrt(self.variance * inflation) / total
        gap = self.residual / total
        return np.divide(gap, error, out=np.zeros_like(gap), where=error > 0), error

    def spread(self, sign: FloatArray, share: FloatArray | float = 1.0) -> FloatArray:
        """Return the variance of the signed sum of a share of each bin, its own part in full."""
        own: FloatArray = (share * self.variance).sum(axis=-1)
        if self.square is not None:
            part = sign * np.sqrt(share)
            between = ((part @ self.square - part * self.variance) * part).sum(axis=-1)
            own = kept(own + between, own)
        return own / self.total**2

    def cautious(
        self, z: float, inflation: FloatArray | float = 1.0
    ) -> tuple[FloatArray, FloatArray]:
        r"""Return a cautious estimate of SMECE, and its distance to the lower limit.

        The estimate is never too high on average.

        If all residuals are equal, only unobserved rows are uncertain. The variance is therefore
        that with one more row, whose gap is 0. For soft labels nothing more is known, because the
        error of an unobserved row is unknown. The variance of 0/1 labels follows from their mean.
        It is evaluated at the limit, \(\theta - r\), as in Wilson's interval of a proportion.
        Labels of m votes have 1/m of that variance. If labels are skewed toward events that are
        missing in the sample, the variance grows toward the limit as well, by \(\kappa r\) with
        \(\kappa\) the third cumulant over the variance:

        \[ r^2 = z^2 \Bigl( s^2 + \frac{\theta^2 - (\theta - r)^2}{nm} + \kappa r \Bigr) . \]
        """
        estimate, reach = self.cautious_bins(z, inflation)
        if self.raters is None or self.square is None:
            return estimate, reach
        # For SMECE = 0, the shift and the remaining gaps must be plausible together.
        near, wide = (
            estimate - self._lowest(radius, inflation, self.square, self.raters)
            for radius in self.raters.radius(z) * np.array([1.0, _HEAVY_TAILS])
        )
        # Raters' sums have heavy tails, so another distance decides if the limit is above 0.
        first = np.clip(wide, ROUNDING * reach, reach)
        above_0 = np.divide(estimate, first, out=np.zeros_like(estimate), where=first > 0)
        shorter = reach - np.clip(near, 0.0, reach)
        return estimate, reach - _smooth_step(above_0, *_ABOVE_0) * shorter

    def _lowest(
        self,
        radius: float,
        inflation: FloatArray | float,
        square: FloatArray,
        raters: SharedByRaters,
    ) -> FloatArray:
        """Return the lowest limit of all shifts and remaining gaps within a radius."""
        moved, left, _ = self._shifted(radius, square, raters)
        out: FloatArray = np.subtract(*moved.cautious_bins(left, inflation)).min(axis=-1)
        return out

    def cautious_bins(
        self, z: FloatArray | float, inflation: FloatArray | float
    ) -> tuple[FloatArray, FloatArray]:
        """Compute `cautious` without shifts by raters."""
        t, error = self.in_errors(inflation)
        estimate = (error * cautious_abs(t, SHARPNESS)).sum(axis=-1)
        sign = soft_sign(t, SHARPNESS)
        spread = self.spread(sign)
        above_0 = np.maximum(estimate, 0)
        rest = kept(spread - above_0**2 / self.rows * (1 - 1 / self.rows), spread)
        c = self.counted * z**2 / self.rows
        half = c * above_0 + z**2 / 2 * self._missing(sign)
        at_limit = half + np.sqrt(half**2 + (1 + c) * z**2 * rest)
        return estimate, np.maximum(at_limit / (1 + c), z * np.sqrt(rest))

    def _missing(self, sign: FloatArray) -> FloatArray | float:
        """Return the skewness of the labels toward lower SMECE, as in `_skewness`."""
        if self.lean is None:
            return 0.0
        return self._per_variance((sign * self.lean).sum(axis=-1))

    def _skewness(self, sign: FloatArray) -> FloatArray | float:
        """Return the third cumulant of the sum of bins over its variance, if above 0.

        It comes from skewed labels, and from gaps that differ between bins of random size.
        """
        if self.lean is None:
            return 0.0
        weight = np.where(self.weight > 0, self.weight, 1.0)
        gap = sign * self.residual / weight
        moment = 3 * self.variance - 2 * gap**2 * self.weight_sq
        # Weights near 1e100 have cubes near 1e300, so no product of two sums of squares is formed.
        own = (gap * moment * (self.weight_sq / weight) - sign * self.lean).sum(axis=-1)
        mean = (sign * self.residual).sum(axis=-1) / self.total
        unit = self.total / self.rows
        whole = 3 * mean * self.variance.sum(axis=-1) - 2 * mean**3 * self.total * unit
        return self._per_variance(own - unit * whole)

    def _per_variance(self, third: FloatArray) -> FloatArray:
        variance = np.maximum(self.variance.sum(axis=-1), 1e-300)
        out: FloatArray = np.maximum(third / variance / self.total, 0.0)
        return out

    def generous(self, z: float) -> tuple[FloatArray, FloatArray]:
        """Return a generous estimate of SMECE, and its distance to the upper limit.

        Bins near 0 are unfolded as if all were equal, which is the least favorable case. Bins
        between near and far are a mixture of both, so that the limit is continuous. Skewed sums
        have a higher limit, by the correction for a studentized sum (Johnson, Hall).
        """
        sure, near_z = None, z
        if self.degrees is not None and self.square is not None:
            size = max(float(self.variance.max()), 1e-300)  # so that no square overflows
            own, square = self.variance / size, self.square / size
            sure = size * _shrunk(square, np.outer(own, own) / self.degrees)
            # A sum of variances has more degrees of freedom than one of them.
            more = own.sum() ** 2 / max(float((square**2).sum()), 1e-300)
            near_z = -float(stdtrit(self.degrees * max(more, 1.0), stdtr(self.degrees, -z)))
        estimate, reach = self.generous_bins(z, sure, near_z)
        if self.raters is None or self.square is None:
            return estimate, reach
        moved, left, sure = self._shifted(z, self.square, self.raters)
        high = np.add(*moved.generous_bins(left, sure)).max(axis=-1)
        middle = np.minimum(estimate, high)
        return middle, high - middle

    def _shifted(
        self, z: float, square: FloatArray, raters: SharedByRaters
    ) -> tuple[Gaps, FloatArray, FloatArray]:
        r"""Subtract each of many possible joint shifts of all bins by the sample of raters.

        One direction of shifts, u, carries most of the raters' part of the covariances C. Given the
        size \(\xi\) of that shift, bins have the means \(\mu + u\xi\) and covariances \(C - uu^T\),
        and limits of \(\sum|\mu_b|\) follow as usual. A limit is the extreme over all shifts, with
        the remaining number of standard errors, \(\sqrt{z^2 - \xi^2}\). All bins move together, so
        their signs are not free.

        Return the gaps without each shift, the remaining z, and the covariances without signs.
        """
        u = raters.direction(self.variance)
        rest = square - np.outer(u, u)
        np.fill_diagonal(rest, kept(rest.diagonal(), self.variance))
        sure = _shrunk(rest, raters.noise)
        # Shifts at which a bin has no gap are included, because the lowest sum is at one of them.
        with np.errstate(over="ignore"):  # it is clipped
            own = np.divide(self.residual, z * u, out=np.zeros_like(self.residual), where=u != 0)
        evenly = np.broadcast_to(_SHIFTS, (*own.shape[:-1], _SHIFTS.size))
        shift = np.concatenate((evenly, np.clip(own, -1.0, 1.0)), axis=-1)
        moved = Gaps(
            self.residual[..., None, :] - z * shift[..., None] * u, rest.diagonal(), rest,
            self.weight, self.weight_sq, self.weight_square, self.total[..., None],
            self.rows[..., None], self.counted[..., None],
        )  # fmt: skip
        return moved, z * np.sqrt(1 - shift**2), sure

    def generous_bins(
        self,
        z: FloatArray | float,
        sure: FloatArray | None = None,
        near_z: FloatArray | float | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Compute `generous` without shifts by raters."""
        t, error = self.in_errors()
        near = (1 - _smooth_step(np.abs(t), *_FAR)) * _smooth_step(self.size, *_ENOUGH_ROWS)
        absolute = np.abs(self.residual) / self.total[..., None]
        near_error = (near * error).sum(axis=-1)
        near_gap = (near * absolute).sum(axis=-1)
        far_gap = ((1 - near) * absolute).sum(axis=-1)
        near_square = self._at_worst(near, sure)
        sign = soft_sign(t, SHARPNESS)
        far_square = self.spread(sign, 1 - near)

        scale = np.where(near_error > 0, near_error, 1.0)
        seen, unit = near_gap / scale, np.sqrt(near_square) / scale
        # Gaps that are small by chance lower the limit by at most one standard error.
        floor = np.maximum(seen, MEAN_AT_0 - SPREAD_AT_0 * unit)
        most = highest_plausible(floor, (z if near_z is None else near_z) * unit)
        middle = np.minimum(inverse_mean_abs(seen), most)
        far_variance = kept(far_square - far_gap**2 / self.rows, far_square)
        square = ((most - middle) * near_error) ** 2 + z**2 * far_variance
        half = (2 * z**2 + 1) / 6 * self._skewness(sign)
        return middle * near_error + far_gap, half + np.sqrt(half**2 + square)

    def _at_worst(self, share: FloatArray, sure: FloatArray | None) -> FloatArray:
        """Return the variance of the sum of a share of each bin, if the signs are unknown."""
        if self.square is None:
            out: FloatArray = (share * self.variance).sum(axis=-1) / self.total**2
            return out
        part = np.sqrt(share)
        without_signs = np.abs(self.square) if sure is None else sure
        return np.asarray(((part @ without_signs) * part).sum(axis=-1) / self.total**2)


def kept(rest: FloatArray, whole: FloatArray) -> FloatArray:
    """Bound a variance below, so that its root does not amplify rounding."""
    return np.maximum(rest, 0.0) + ROUNDING * whole


def _smooth_step(x: FloatArray, start: float, end: float) -> FloatArray:
    """Rise from 0 to 1 with a slope of 0 at both ends, so that its root has a bounded slope."""
    u = np.clip((x - start) / (end - start), 0.0, 1.0)
    return u**2 * (3 - 2 * u)


def several_groups(size: FloatArray) -> FloatArray:
    """Return the share of a bin's own variance that is used: 0 for one group, 1 for two or more."""
    return np.clip(size - 1, 0.0, 1.0)


def design_effect(groups: FloatArray, rows: FloatArray) -> float:
    """Return how much larger variances over groups are than over independent rows, in all bins."""
    return max(float(groups.sum() / max(rows.sum(), 1e-300)), 1.0)


def _shrunk(square: FloatArray, noise: FloatArray) -> FloatArray:
    """Return covariances without signs, shrunk toward 0 by James and Stein's factor.

    The squares of estimated covariances add up to too much, by the sum of their variances.
    """
    between = square - np.diag(square.diagonal())
    total = float((between**2).sum())
    chance = float(noise.sum() - np.trace(noise))
    part = 1 - chance / total if total > chance else 0.0
    return np.diag(square.diagonal()) + part * np.abs(between)


def _counted(sums: Sums) -> FloatArray:
    """Return the variance of labels of this many votes as a share of that of 0/1 labels."""
    hard = ~sums.label_var.any(axis=-1)
    rows, votes = sums.count.sum(axis=-1), sums.votes.sum(axis=-1)
    return np.where(hard, 1.0, np.where(votes > 0, rows / np.maximum(votes, rows), 0.0))


def _lean(sums: Sums) -> FloatArray:
    r"""Return the third cumulant of each bin's labels, for independent rows.

    It is \((1 - 2p) V\) for outcomes of variance V. For other labels it is
    \((1 - 2p) \frac{2 \varphi}{1 + \varphi} V\), as of a Beta distribution of variance
    \(V = \varphi p(1 - p)\).
    """
    expected, seen = outcomes(sums)
    events = np.maximum(expected, seen)
    soft = residual_variance(sums) - events
    possible = np.maximum(sums.prob_var - expected, 0.0).sum(axis=-1, keepdims=True)
    found = np.minimum(soft.sum(axis=-1, keepdims=True), possible)
    share = np.divide(found, possible, out=np.ones_like(possible), where=possible > 0)
    weight = np.where(sums.weight > 0, sums.weight, 1.0)
    third = events + 2 * share / (1 + share) * soft
    out: FloatArray = third * ((1 - 2 * mean_prob(sums)) * sums.weight_sq / weight)
    return out


def mean_prob(sums: Sums) -> FloatArray:
    """Return the mean prediction of each bin; 0 if it is empty."""
    out: FloatArray = (sums.label + sums.residual) / np.where(sums.weight > 0, sums.weight, 1.0)
    return out


def outcomes(sums: Sums) -> tuple[FloatArray, FloatArray]:
    """Return the expected and the observed events of the outcomes of each bin.

    An outcome is a label of exactly 0 or 1 without a number of votes. The results are the sums of
    w^2 p(1 - p) and of w^2 (p - y)^2 over the outcomes. If every label is 0 or 1, these are all
    rows.
    """
    hard = ~sums.label_var.any(axis=-1, keepdims=True)
    return (
        np.where(hard, sums.prob_var, sums.outcome_prob_var),
        np.where(hard, sums.residual_var, sums.outcome_residual_var),
    )


def noise_floor(sums: Sums) -> FloatArray:
    """Return the lowest variance the labels are known to have: that of votes and of outcomes."""
    return _voted(sums) + outcomes(sums)[0]


def residual_variance(sums: Sums) -> FloatArray:
    """Return the variance of each bin's residual: its own squares, or the known noise if larger.

    Outcomes and other labels each have at least their known noise.
    """
    expected, seen = outcomes(sums)
    return np.maximum(expected, seen) + np.maximum(sums.residual_var - seen, _voted(sums))


def _voted(sums: Sums) -> FloatArray:
    return np.where(sums.label_var.any(axis=-1, keepdims=True), sums.vote_floor, 0.0)


def table_limits(
    rel: Reliability, ties: Clusters | None, level: float
) -> tuple[float, float, float, Events]:
    """Return the debiased value, both limits, and the events of one table."""
    if ties is None and native_limits is not None:
        return _limits_by_extension(rel, level)
    less_noise, low, high = map(float, interval_limits(rel.sums, level, ties))
    return less_noise, low, high, events_of(rel.sums)[0]


def _limits_by_extension(rel: Reliability, level: float) -> tuple[float, float, float, Events]:
    """Return `_limits` of independent rows, computed by the extension, which is faster."""
    s, out, alpha = rel.sums, np.empty(3 + len(Events._fields)), 1 - level
    native_limits(
        s.weight, s.weight_sq, s.label, s.residual, s.residual_var, s.prob_var, s.label_var,
        s.votes, s.repeated, s.vote_floor, s.outcome_prob_var, s.outcome_residual_var,
        rel.n, _ways(s.count.size, alpha), _METHOD, _GRID_LINES, out,
    )  # fmt: skip
    less_noise, low, high, hard, *totals = out.tolist()
    events = Events(hard > 0, *totals)
    return less_noise, low, max(high, events.most(alpha)), events


def few_raters(rel: Reliability) -> str:
    """Return the caution for a table with few raters; empty if there are enough."""
    raters = rel.raters
    if raters is None:
        return ""
    if raters.count < _ENOUGH_RATERS:
        return (
            f"The interval rests on {raters.count} raters; with fewer than {_ENOUGH_RATERS} it may "
            "be too narrow."
        )
    if raters.effective < _ENOUGH_RATERS / 2:
        return (
            f"A few of the {raters.count} raters gave most votes. Their effective number is "
            f"{raters.effective:.0f}, so the interval may be too narrow."
        )
    return ""


def recurring(votes: Votes) -> str:
    """Return the hint for votes whose raters recur without `raters`; else empty."""
    if votes.ballots is None or votes.ballots.item.size <= len(votes.ballots.workers):
        return ""
    return (
        f"{len(votes.ballots.workers)} raters gave {votes.ballots.item.size} votes: the interval "
        "is for new items with these raters. Pass raters=True to hold for new raters too."
    )


def few_groups(rel: Reliability) -> str:
    """Return the caution for a table with few effective groups; empty if there are enough."""
    if rel.clusters is None:
        return ""
    effective = float(rel.sums.weight.sum() ** 2 / rel.clusters.weight.sum())
    if effective < _ENOUGH_GROUPS:
        return (
            f"The effective number of groups is {effective:.1f} of {rel.clusters.count}. With "
            f"fewer than {_ENOUGH_GROUPS} the interval may be too narrow."
        )
    if effective < _MANY_GROUPS and rel.clusters.sums is None:
        return (
            f"The file does not have the sums of each of the {rel.clusters.count} groups, so their "
            "small number is corrected by G/(G - 1) only. Scan the rows again."
        )
    return ""


def interval_limits(
    sums: Sums, level: float, clusters: Clusters | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the debiased value and both limits, for tables along any leading axes."""
    gaps = Gaps.of(sums, clusters)
    alpha = 1 - level
    low, high = limits_of(gaps, alpha)
    if clusters is None or clusters.raters is not None:
        # Labels may vary less than known noise does, which the upper limit subtracts.
        own, square = sums.residual_var, None
        if clusters is not None:
            own, square = clusters.residual.diagonal(), clusters.residual
        high = np.maximum(high, _upper_limit(replace(gaps, variance=own, square=square), alpha))
    most = np.array([events.most(alpha) for events in events_of(sums)])
    return _less_noise(gaps), low, np.maximum(high, most.reshape(high.shape))


def limits_of(gaps: Gaps, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Return both limits, for tables along any leading axes."""
    low, high = _lower_limit(gaps, alpha), _upper_limit(gaps, alpha)
    # Labels that equal their predictions have no variance. Still, rows of an unobserved kind may
    # make up this share of the data (rule of three).
    return low, np.maximum(high, np.minimum(-np.log(alpha / 2) / gaps.rows, 1.0))


class Events(NamedTuple):
    """The events of a whole table: its outcomes, and its votes if their numbers are given."""

    hard: bool
    weight: float
    weight_sq: float
    prob_var: float
    residual_var: float
    vote_floor: float
    expected: float  # `prob_var` of the outcomes
    seen: float  # `residual_var` of the outcomes
    repeated: float  # the share of rows with two votes or more
    below: float  # residuals toward fewer events than predicted, minus those toward more

    @property
    def known(self) -> bool:
        """Whether any label is a known event."""
        return self.hard or self.expected > 0 or self.vote_floor > 0

    @property
    def number(self) -> float:
        """The expected number of events; without known events, that of outcomes."""
        known = self.expected + self.vote_floor if self.known else self.prob_var
        return known / self.unit**2

    @property
    def unit(self) -> float:
        """The size of an event: the weight of a row, or less if rows have several votes.

        It is the third cumulant of the sum of events divided by the second.
        """
        row = self.weight_sq / self.weight
        if self.hard or self.vote_floor <= 0:
            return row
        rest = max(self.prob_var - self.expected, self.vote_floor)
        # The means of 1/m and 1/m^2, assuming equal m for all rows with several votes.
        mean = self.vote_floor / rest
        single = min(1 - self.repeated, mean)
        square = single + (mean - single) ** 2 / max(1 - single, 1e-300)
        # The quotient first, because the product of three tiny numbers may be 0.
        return row * ((self.expected + rest * square) / (self.expected + self.vote_floor))

    def most(self, alpha: float) -> float:
        r"""Return the highest SMECE that few events leave plausible; 0 without known events.

        Few labels contradict predictions near 0 and 1. By chance there may be none, and the
        observed variance is then 0. Let \(k = \sum (p - y)^2\) be the number of observed
        surprises and \(E = \sum p(1 - p)\) that of expected ones. The true number may be up to
        \(u\), the exact upper limit of a Poisson mean. That is an error of \((u - E)/n\).
        Among other labels, it is the observed gap toward more surprises, plus \(u - k\) more
        surprises. m votes are m events of size 1/m.
        """
        if not self.known:
            return 0.0
        unit, seen = self.unit, self.seen
        if self.vote_floor > 0 and not self.hard:
            seen += max(self.residual_var - self.seen, self.vote_floor)
        k = seen / unit**2
        below = (self.expected - self.seen) / unit if self.hard else self.below
        error = (float(poisson_limit(k, alpha)) - k) * unit - below
        return min(max(error / self.weight, 0.0), 1.0)


def events_of(sums: Sums) -> list[Events]:
    """Return the events of each of the tables along the leading axes."""
    expected, seen = outcomes(sums)
    # Below 1/4 a label of 1 is the event, above 3/4 a label of 0.
    below = np.clip(2 - 4 * mean_prob(sums), -1.0, 1.0) * sums.residual
    lines = (
        sums.weight, sums.weight_sq, sums.prob_var, sums.residual_var, sums.vote_floor, expected,
        seen, sums.repeated / np.maximum(sums.count.sum(axis=-1, keepdims=True), 1), below,
    )  # fmt: skip
    totals = (~sums.label_var.any(axis=-1), *(line.sum(axis=-1) for line in lines))
    return [Events(*each) for each in zip(*(np.ravel(x).tolist() for x in totals), strict=True)]


def poisson_limit(k: FloatArray | float, alpha: float) -> FloatArray:
    """Return the exact upper limit of a Poisson mean after k events."""
    out: FloatArray = gammainccinv(k + 1, alpha / 2)
    return out


def debiased(rel: Reliability) -> float:
    """Return SMECE corrected for most of the bias from noise."""
    return float(_less_noise(Gaps.of(rel.sums, rel.ties)))


def _less_noise(gaps: Gaps) -> FloatArray:
    t, error = gaps.in_errors()
    out: FloatArray = (error * (2 * np.abs(t) - mean_abs(t))).sum(axis=-1)
    return np.maximum(out, 0.0)


def _lower_limit(gaps: Gaps, alpha: float) -> FloatArray:
    """Return the highest lower limit of several coarsenings: joining bins cannot raise SMECE."""
    n_bins = gaps.residual.shape[-1]
    best = np.zeros_like(gaps.total)
    for starts, tail in _coarsenings(n_bins, alpha):
        part = gaps if len(starts) == n_bins else gaps.joined(np.array(starts))
        wider = 1 + 1 / np.maximum(2 * part.size, 1)
        estimate, reach = part.cautious(gaps.reach(tail), wider)
        best = np.maximum(best, estimate - reach)
    return best


@lru_cache(maxsize=64)
def _coarsenings(n_bins: int, alpha: float) -> list[tuple[tuple[int, ...], float]]:
    """Return the first bins of each coarsening, and the tail probability that it may use."""
    coarser = [k for k in ((5, 2) if n_bins > 10 else (2,)) if n_bins > 2]
    tails = {n_bins: alpha / 2} | {k: alpha / 4 / len(coarser) for k in coarser}
    # Group j holds the bins with floor(b k / B) = j.
    return [(tuple(-(-j * n_bins // k) for j in range(k)), tail) for k, tail in tails.items()]


@lru_cache(maxsize=64)
def _ways(n_bins: int, alpha: float) -> FloatArray:
    """Return pairs for the extension: reach and floor of the upper limit, then `_coarsenings`."""
    lower = [(len(starts), normal_reach(tail)) for starts, tail in _coarsenings(n_bins, alpha)]
    return np.array([(normal_reach(alpha / 2), -log(alpha / 2)), *lower]).ravel()


@lru_cache(maxsize=64)
def normal_reach(tail: float) -> float:
    """Return the number of standard errors beyond which a tail has this probability."""
    return -float(ndtri(tail))


def student_reach(n: float, level: float) -> float:
    """Return how many standard errors the interval of a mean extends; infinite for one row."""
    return -float(stdtrit(n - 1, (1 - level) / 2)) if n > 1 else np.inf


def score_limits(
    mean: FloatArray,
    variance: FloatArray,
    n: FloatArray | float,
    reach: float,
    unseen: float = 1.0,
) -> tuple[FloatArray, FloatArray]:
    r"""Return the limits of means of n values from 0 to 1, given the variances of the means.

    The limits \(\theta\) solve \((\bar x - \theta)^2 = t^2 \phi\, \theta (1 - \theta) / n\), a
    score interval. The dispersion \(\phi\) is the variance of the values as a share of
    \(\bar x (1 - \bar x)\). It is estimated from the values and from one more, of mean u, because
    few values show little of their spread:

    \[ \phi = \frac{n s^2 + u^{3/2} / n}{\bar x (1 - \bar x) + u / n} , \qquad
       s^2 = \widehat{\mathrm{Var}}(\bar x) \]

    The mean square of that value is \(u^2\) if all values are alike, and u if a share u of them are
    outcomes. \(u^{3/2}\) is the geometric mean of both. For outcomes, u is 1 and \(\phi\) is nearly
    1. This is Wilson's interval with Student's quantile instead of the normal one, and with n - 1
    instead of n in the variance.
    """
    spread = mean * (1 - mean)
    size = np.asarray(n * spread + unseen)
    seen = reach**2 * (n * variance + unseen**1.5 / n)
    k = np.divide(seen, size, out=np.zeros(size.shape), where=size > 0)
    middle = (mean + k / 2) / (1 + k)
    half = np.sqrt(k * (spread + k / 4)) / (1 + k)
    return np.clip(middle - half, 0.0, mean), np.clip(middle + half, mean, 1.0)


def _upper_limit(gaps: Gaps, alpha: float) -> FloatArray:
    estimate, reach = gaps.generous(gaps.reach(alpha / 2))
    return np.minimum(estimate + reach, 1.0)
