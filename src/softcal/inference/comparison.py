"""Compare models on the same rows: differences with intervals and p-values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt
from scipy.special import logit, ndtr, ndtri, stdtrit

from softcal import _display
from softcal._validation.rules import refuse_bad_level
from softcal.exceptions import InputError, InputTypeError
from softcal.inference.intervals import (
    SHARPNESS,
    Gaps,
    debiased,
    events_of,
    few_raters,
    kept,
    mean_prob,
    poisson_limit,
    recurring,
    soft_sign,
)
from softcal.table.build import refuse_no_mapping, tables_of_models
from softcal.table.joint import JointTable, PairedSums
from softcal.table.reliability import refuse_given
from softcal.table.tableset import TableSet
from softcal.votes import Votes

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from softcal._validation.inputs import FloatArray
    from softcal.bins import BinsLike
    from softcal.table.kernel import Sums
    from softcal.table.owners import Clusters

    Limits: TypeAlias = Callable[[float], tuple[FloatArray | float, FloatArray | float]]

# Set by simulation, benchmarks/paired.py; see docs/interval_method.md.
_ROUNDING = 1e-6  # a sum of |D^A - D^B|, or a prediction, that may be due to rounding
_OF_EACH = 0.9  # the share of alpha of each of the two intervals that are intersected


class _Model:
    """The bins of one model: gap and standard error as shares of all weight, and their ratio t."""

    def __init__(self, sums: Sums, clusters: Clusters | None) -> None:
        self.gaps = Gaps.of(sums, clusters)
        self.events = events_of(sums)
        self.total, self.rows = self.gaps.total, self.gaps.independent
        self.gap = sums.residual / self.total[..., None]
        self.t, self.error = self.gaps.in_errors()
        self.sign = soft_sign(self.t, SHARPNESS)
        square = self.gaps.spread(self.sign)
        rows = self.gaps.rows
        seen = (self.sign * self.gap).sum(axis=-1) ** 2 / rows * (1 - 1 / rows)
        self.variance = kept(square - seen, square)  # with one more row, whose gap is 0
        clusters = None if self.gaps.square is None else clusters  # also groups of one row
        self._own = sums.residual_var if clusters is None else clusters.residual
        own = sums.residual_var if clusters is None else clusters.residual.diagonal()
        self.square = own / self.total[..., None] ** 2

    def cautious(self, z: float) -> tuple[FloatArray, FloatArray]:
        """Return the cautious estimate and its distance to the lower limit, neither below 0."""
        estimate, reach = self.gaps.cautious(z)
        above_0 = np.maximum(estimate, 0.0)
        return above_0, above_0 - np.maximum(estimate - reach, 0.0)

    def generous(self, z: float, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Return the generous estimate and its distance to the upper limit, as for one model."""
        estimate, reach = self.gaps.generous(z)
        if self.gaps.square is not None and self.gaps.raters is None:  # the events are of groups
            return estimate, reach
        most = np.reshape([events.most(alpha) for events in self.events], estimate.shape)
        return estimate, np.maximum(reach, most - estimate)

    def signed_square(self) -> FloatArray:
        """Return the sum over rows, or groups, of their signed and squared residuals."""
        sign, independent = self.sign, self.gaps.square is None
        square = (sign**2 * self._own).sum(axis=-1) if independent else sign @ self._own @ sign
        out: FloatArray = square / self.total**2
        return out


class DifferenceIntervals:
    r"""Intervals of all levels for one joint table, or for many along leading axes.

    Two intervals are computed, and their intersection is used. Each has 0.9 alpha, which allows for
    the use of both.

    The separate interval bounds the bias from noise of each model by itself. Its upper and lower
    limits combine an estimate for one model that never overestimates on average with one for the
    other model that never underestimates. Their distances to the limits of each model are combined
    with the correlation of the two (MOVER). No SMECE is below 0, so the difference is never above
    the upper limit of A, nor below that of B with the other sign.

    The direct interval is \(\hat\delta \pm (R + v\,\mathrm{se})\). Let \(x = \mu/s\) be a bin's
    true gap in standard errors. Noise adds \(s\,\gamma(|x|)\) to \(|\mu|\), with
    \(\gamma' = -2\Phi(-x)\). Because \(2\Phi(-x)\) is convex, the difference in this bias between A
    and B in one bin is, for equal s, at most

    \[ \bigl(\Phi(-|x^A|) + \Phi(-|x^B|)\bigr)\, |\mu^A - \mu^B| . \]

    R is the sum of this bound over bins. It uses \(e^{-3t^2/2}\) for \(\Phi(-|x|)\), because its
    mean \(\frac12 e^{-3x^2/8}\) is never below. Likewise it uses \(|D^A - D^B|\) for
    \(|\mu^A - \mu^B|\). If the standard errors differ, the mean of \(|D^A - D^B|\) is larger by at
    least as much as the bias. R is small for similar models and for bins far from 0. A bias of R
    may have either sign, so \(R + v\,\mathrm{se}\) is the quantile of \(|R + \mathrm{se}\,Z|\)
    (Armstrong and Kolesár).

    Label noise moves the gaps of both models in a bin together, by \(\xi\) standard errors. Along
    \(|\xi| \le z\), the bin's part of the difference changes within a known range, which the soft
    signs of its own variance underestimate if the gaps are near 0. The standard error includes that
    range. Because \(|\delta| \le \sum|\mu^A - \mu^B|\), whose sign does not matter, the
    interval ends at the upper limit of that sum.

    Both limits are at least as far as unobserved events could move the difference. The limit away
    from 0 is that of a skewed sum, because predictions near 0 or 1 differ by skewed amounts.
    """

    def __init__(
        self,
        a: Sums,
        b: Sums,
        cross: FloatArray,
        differing: npt.NDArray[np.integer],
        clusters: tuple[Clusters | None, Clusters | None] = (None, None),
        least_error: FloatArray | float = 0.0,
    ) -> None:
        self.a, self.b = _Model(a, clusters[0]), _Model(b, clusters[1])
        self.cross = cross
        self.degrees = np.maximum(differing - 1, 1)
        if self.a.gaps.raters is not None:
            self.degrees = np.minimum(self.degrees, self.a.gaps.raters.degrees)
        self.unseen = UnseenEvents(a, b, cross, self.a, self.b)
        self.correlation = self._correlation()
        self.difference = np.abs(self.a.gap).sum(axis=-1) - np.abs(self.b.gap).sum(axis=-1)
        self.error = np.maximum(self._direct_error(), least_error)
        self.folding, self.folding_square = self._folding()
        self.own, self.apart, self.apart_error = self._same_bins()

    def limits(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Return both limits at level 1 - alpha."""
        alpha = _OF_EACH * alpha
        (low, high), (direct_low, direct_high) = self.separate(alpha), self.direct(alpha)
        found = self.difference
        apart = self.apart + _ROUNDING
        skew = self._skewness(alpha) * found / apart
        low = np.maximum(direct_low, np.minimum(low, found)) + np.minimum(skew, 0.0)
        high = np.minimum(direct_high, np.maximum(high, found)) + np.maximum(skew, 0.0)
        # Events move the difference along |D^A - D^B|, which is itself an estimate.
        most = self._most(alpha)
        fall, rise = (x * most / apart for x in self.unseen.of_smece(alpha))
        low = np.minimum(low, np.maximum(found - fall, -most))
        high = np.maximum(high, np.minimum(found + rise, most))
        return np.maximum(low, -1.0), np.minimum(high, 1.0)

    def direct(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Return the limits of the direct interval, which is wide if the models differ much."""
        a, b = self.a, self.b
        z = -float(ndtri(alpha / 2))
        range_ = np.maximum(*_moved(a.gap, b.gap, a.error, b.error, -z, z))
        beyond = np.maximum((range_ / z) ** 2 - self.own, 0.0).sum(axis=-1)
        error = np.sqrt(self.error**2 + beyond + self.folding_square) * (self._reach(alpha) / z)
        half = self.folding + error * _beyond_bias(self.folding, error, alpha)
        most = self._most(alpha)
        return np.maximum(self.difference - half, -most), np.minimum(self.difference + half, most)

    def _reach(self, alpha: float) -> FloatArray:
        out: FloatArray = -stdtrit(self.degrees, alpha / 2)
        return out

    def _most(self, alpha: float) -> FloatArray:
        """Return the upper limit of the sum of |mu^A - mu^B|."""
        reach = self._reach(alpha)
        skewness = _skewness(self.apart, self.apart_error, alpha, reach)
        return self.apart + reach * self.apart_error + skewness

    def _skewness(self, alpha: float) -> FloatArray:
        """Return the skewness of the sum of p_A - p_B, whose labels cancel."""
        square = (self.a.square + self.b.square).sum(axis=-1)
        shared = self.cross.sum(axis=(-2, -1)) / self.a.total**2
        error = np.sqrt(kept(square - 2 * shared, square))
        return _skewness(self.apart, error, alpha, self._reach(alpha))

    def _direct_error(self) -> FloatArray:
        """Return the standard error of the difference, with soft signs where signs are uncertain.

        If all differences are equal, only unobserved rows are uncertain: one more row, whose
        difference is 0, is counted.
        """
        a, b = self.a, self.b
        square = a.signed_square() + b.signed_square()
        shared = 2 * self._between(a.sign, b.sign)
        mean = (a.sign * a.gap - b.sign * b.gap).sum(axis=-1)
        seen = mean**2 / a.rows * (1 - 1 / a.rows)
        out: FloatArray = np.sqrt(kept(square - shared - seen, square))
        return out

    def _folding(self) -> tuple[FloatArray, FloatArray]:
        """Return R, a bound of the difference in bias from noise between the models.

        Also return the sum of its squared terms, which is at least its variance.
        """
        a, b = self.a, self.b
        share = np.exp(-1.5 * a.t**2) + np.exp(-1.5 * b.t**2)
        unlike = share * np.abs(a.gap - b.gap)
        return unlike.sum(axis=-1), (unlike**2).sum(axis=-1)

    def _same_bins(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return what the products of both models in the same bin say.

        These are the variance of each bin in `_direct_error`, and the sum of |D^A - D^B| with the
        standard error of the signed sum.
        """
        a, b = self.a, self.b
        product = np.diagonal(self.cross, axis1=-2, axis2=-1) / a.total[..., None] ** 2
        own = a.sign**2 * a.square + b.sign**2 * b.square - 2 * a.sign * b.sign * product
        square = (a.square + b.square).sum(axis=-1)
        error = np.sqrt(kept(square - 2 * product.sum(axis=-1), square))
        return np.maximum(own, 0.0), np.abs(a.gap - b.gap).sum(axis=-1), error

    def _correlation(self) -> FloatArray:
        """Return the correlation of the models, each with the additional row of its lower limit.

        Without that row, equal residuals have variance and covariance 0, and the correlation
        would be a ratio of rounding errors. The covariance of two gaps in a bin has the other sign
        if one of the gaps has. It counts as far as both signs are known, and the rest of all
        bins, whose signs are random, is subtracted.
        """
        a, b = self.a, self.b
        found = self._covariance(a.sign, b.sign)
        known_a, known_b = (-np.expm1(-(m.t**2) / 2) for m in (a, b))
        product = np.diagonal(self.cross, axis1=-2, axis2=-1) / a.total[..., None] ** 2
        rest = np.sqrt((((1 - known_a * known_b) * product) ** 2).sum(axis=-1))
        sure = self._covariance(np.sign(a.t) * known_a, np.sign(b.t) * known_b) - rest
        error = np.sqrt(a.variance) * np.sqrt(b.variance)
        out: FloatArray = np.clip(np.minimum(found, sure) / _above_0(error), -1.0, 1.0)
        return out

    def _covariance(self, sign_a: FloatArray, sign_b: FloatArray) -> FloatArray:
        """Return the covariance of the signed sums of gaps around their means."""
        mean_a, mean_b = (sign_a * self.a.gap).sum(axis=-1), (sign_b * self.b.gap).sum(axis=-1)
        out: FloatArray = self._between(sign_a, sign_b) - mean_a * mean_b / self.a.rows
        return out

    def separate(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Return the limits of the separate interval, valid for any two models."""
        a, b = self.a, self.b
        z = a.gaps.reach(alpha / 2)
        (most_a, above_a), (most_b, above_b) = a.generous(z, alpha), b.generous(z, alpha)
        (least_a, below_a), (least_b, below_b) = a.cautious(z), b.cautious(z)
        low = least_a - most_b - self._together(below_a, above_b)
        high = most_a - least_b + self._together(above_a, below_b)
        return low, high

    def _together(self, x: FloatArray, y: FloatArray) -> FloatArray:
        square = x**2 + y**2 - 2 * self.correlation * x * y
        return np.sqrt(np.maximum(square, 0.0))

    def _between(self, sign_a: FloatArray, sign_b: FloatArray) -> FloatArray:
        """Return the covariance of the signed sums of gaps."""
        product: FloatArray = (sign_a * (self.cross @ sign_b[..., None])[..., 0]).sum(axis=-1)
        return product / self.a.total**2


_ONE_ROW = 1 + 1e-9  # effective rows below which nothing shows how much they vary


class UnseenEvents:
    r"""How far events that were not observed could move the differences of two models.

    With few events, the observed variance says little about those that are missing. After k events
    in a bin there may be up to u - k more, with u the upper limit of a Poisson mean. They move the
    gaps of both models together, in a bin of A and a bin of B that share rows. Label shares of m
    votes have events of size 1/m. For other soft labels, u is that of no event (rule of three), in
    both directions. With groups, an event is that of a whole group.
    """

    def __init__(self, a: Sums, b: Sums, cross: FloatArray, of_a: _Model, of_b: _Model) -> None:
        # Residuals of 0 do not show which rows two bins share. All may be the same.
        exact = (of_a.square[..., :, None] == 0) | (of_b.square[..., None, :] == 0)
        exact &= (a.weight[..., :, None] > 0) & (b.weight[..., None, :] > 0)
        i, j = np.nonzero(((cross != 0) | exact).reshape(-1, *cross.shape[-2:]).any(axis=0))
        exact = exact[..., i, j]
        total = of_a.total[..., None]
        found = list(zip(of_a.events, of_b.events, strict=True))
        known = np.reshape([one.known or other.known for one, other in found], total.shape)
        unit = np.reshape([max(one.unit, other.unit) for one, other in found], total.shape) / total
        unit = unit * total**2 / a.weight_sq.sum(axis=-1, keepdims=True) / of_a.rows[..., None]
        number = np.minimum(of_a.square.sum(axis=-1), of_b.square.sum(axis=-1)) / unit[..., 0] ** 2
        self.none = np.exp(-number)  # the probability of no event at all
        square_a, square_b = of_a.square[..., i], of_b.square[..., j]
        self.events = np.where(known, np.minimum(square_a, square_b) / unit**2, 0.0)
        shared = _ratio(cross[..., i, j] / total**2, np.sqrt(square_a) * np.sqrt(square_b))
        self.unit = unit * np.where(exact, 1.0, np.minimum(np.abs(shared), 1.0))
        self.gap_a, self.gap_b = of_a.gap[..., i], of_b.gap[..., j]
        self.probs_a = tuple(prob[..., i] for prob in _probs_of_events(a))
        self.probs_b = tuple(prob[..., j] for prob in _probs_of_events(b))
        # Below 1/4 a label of 1 is the event, above 3/4 a label of 0.
        toward = np.clip(2 - 2 * (mean_prob(a)[..., i] + mean_prob(b)[..., j]), -1.0, 1.0)
        self.down, self.up = (np.where(known, np.maximum(x, 0.0), 1.0) for x in (-toward, toward))
        self.ones = np.minimum(a.label[..., i], b.label[..., j]) / total
        self.zeros = np.minimum((a.weight - a.label)[..., i], (b.weight - b.label)[..., j]) / total

    def _labels(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Return how far the labels of each pair of bins may fall or rise, as shares of all."""
        more = (poisson_limit(self.events, alpha) - self.events) * self.unit
        return np.minimum(more * self.down, self.ones), np.minimum(more * self.up, self.zeros)

    def of_smece(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Return how far the difference of SMECE may fall or rise."""
        fall, rise = self._labels(alpha)
        one = np.ones_like(fall)
        fall, rise = _moved(self.gap_a, self.gap_b, one, one, -fall, rise)
        return fall.max(axis=-1, initial=0.0), rise.max(axis=-1, initial=0.0)

    def of_brier(self, alpha: float) -> tuple[float, float]:
        """Return how far the difference of the Brier scores may fall or rise."""
        return self._of_loss(alpha, lambda p: 2 * p)

    def of_log_loss(self, alpha: float) -> tuple[float, float]:
        """Return how far the difference of the log losses may fall or rise."""
        tiny = np.finfo(float).eps  # of a prediction of 0, whose loss may be infinite
        return self._of_loss(alpha, lambda p: logit(np.clip(p, tiny, 1 - tiny)))

    def _of_loss(
        self, alpha: float, slope: Callable[[FloatArray], FloatArray]
    ) -> tuple[float, float]:
        """Return how far a mean loss may fall or rise, given its derivative by -y."""
        fall, rise = (
            labels * (slope(b) - slope(a))
            for labels, a, b in zip(self._labels(alpha), self.probs_a, self.probs_b, strict=True)
        )
        moves = np.concatenate((-fall, rise))
        return -float(moves.min(initial=0.0)), float(moves.max(initial=0.0))


def _skewness(
    size: FloatArray, error: FloatArray, alpha: float, reach: FloatArray | float
) -> FloatArray:
    """Return how much farther than a normal limit the upper limit of a skewed sum is.

    The sum is that of Poisson events of the size variance / mean.
    """
    unit = _above_0(error**2 / _above_0(np.maximum(size, error)))
    limit = poisson_limit(size / unit, alpha) * unit
    return np.maximum(limit - size - reach * error, 0.0)


def _probs_of_events(sums: Sums) -> tuple[FloatArray, FloatArray]:
    r"""Return the mean prediction of labels that turn out lower, or higher, in each bin.

    A label of 0 is an event with probability 1 - p, and a label of 1 with probability p. Rows count
    by these: \(\sum p(1 - p) / \sum(1 - p)\) and \(\sum p^2 / \sum p\).
    """
    mean = mean_prob(sums)
    varying = _ratio(sums.prob_var, sums.weight_sq)
    low = 1 - (1 - mean - varying) / (1 - mean + _ROUNDING)
    high = (mean - varying) / (mean + _ROUNDING)
    return np.clip(low, 0.0, mean), np.clip(high, mean, 1.0)


def _above_0(x: FloatArray) -> FloatArray:
    return np.maximum(x, 1e-300)


def _ratio(x: FloatArray, y: FloatArray) -> FloatArray:
    out: FloatArray = np.divide(x, y, out=np.zeros_like(y), where=y > 0)
    return out


def _moved(
    gap_a: FloatArray,
    gap_b: FloatArray,
    step_a: FloatArray,
    step_b: FloatArray,
    least: FloatArray | float,
    most: FloatArray | float,
) -> tuple[FloatArray, FloatArray]:
    """Return how far |gap_a - x step_a| - |gap_b - x step_b| falls and rises for x in a range.

    It is linear between the ends of the range and the two x at which a gap is 0.
    """
    here = np.abs(gap_a) - np.abs(gap_b)
    with np.errstate(over="ignore"):  # it is clipped
        kinks = [np.clip(_ratio(*pair), least, most) for pair in ((gap_a, step_a), (gap_b, step_b))]
    found = [
        np.abs(gap_a - x * step_a) - np.abs(gap_b - x * step_b) - here
        for x in (least, most, *kinks)
    ]
    return np.maximum(-np.minimum.reduce(found), 0.0), np.maximum(np.maximum.reduce(found), 0.0)


def _beyond_bias(bias: FloatArray, error: FloatArray, alpha: float) -> FloatArray:
    r"""Return the v for which \(|r + Z|\) exceeds r + v with probability alpha, r = bias / error.

    v is between the one-sided and the two-sided normal quantile. Newton's method converges from
    the latter.
    """
    r = np.minimum(bias / _above_0(error), 40.0)  # beyond it, |r + Z| is r + Z
    most = -float(ndtri(alpha / 2))
    least = np.maximum(-ndtri(alpha), most - r)
    v = np.broadcast_to(most, r.shape)
    for _ in range(_STEPS):
        near, far = ndtr(-v), ndtr(-v - 2 * r)
        slope = np.exp(-(v**2) / 2) + np.exp(-((v + 2 * r) ** 2) / 2)
        v = v + np.log((near + far) / alpha) * (near + far) * math.sqrt(2 * math.pi) / slope
        v = np.clip(v, least, most)
    return v


_STEPS = 8
_SMALLEST_P = 1e-30  # below this, the normal approximation is meaningless


@dataclass(frozen=True, repr=False)
class MeanDifference(_display.Printed):
    """The mean loss of A minus that of B on the same rows, with its confidence interval.

    If a loss is infinite, the interval is the whole line and the p-value is 1. The difference is
    then inf, -inf, or 0 if both losses are infinite.
    """

    difference: float
    low: float
    high: float
    pvalue: float

    def __repr__(self) -> str:
        return f"MeanDifference({self.difference:.4g}, pvalue={self.pvalue:.3g})"

    def _shown(self) -> _display.Shown:
        difference, low, high, pvalue = _cells(self)
        if difference == "-":
            return "- (unknown, because a loss is infinite)", [], []
        return f"{difference} ({low} to {high}, p = {pvalue})", [], []


@dataclass(frozen=True, repr=False)
class Comparison(_display.Printed):
    """A comparison of two models on the same rows. A difference below 0 favors A.

    Attributes
    ----------
    a, b : str
        The names of the models.
    smece_a, smece_b : float
        SMECE of each model, as the paper defines it.
    difference : float
        `smece_a` minus `smece_b`.
    debiased : float
        The difference, corrected for most of the bias from noise.
    low, high : float
        The confidence interval of the difference of unlimited data.
    level : float
        The coverage of the interval.
    pvalue : float
        The smallest alpha for which the interval of level 1 - alpha excludes 0.
    brier, log_loss : MeanDifference
        Differences of the mean losses, which also reward discrimination, unlike SMECE.
    note : str
        A caution, or empty.
    """

    a: str
    b: str
    smece_a: float
    smece_b: float
    difference: float
    debiased: float
    low: float
    high: float
    level: float
    pvalue: float
    brier: MeanDifference
    log_loss: MeanDifference
    note: str = ""

    def __repr__(self) -> str:
        a, b = map(_display.printable, (self.a, self.b))
        return f"Comparison({a}, {b}, difference={self.difference:.4g}, pvalue={self.pvalue:.3g})"

    def _shown(self) -> _display.Shown:
        a, b = map(_display.printable, (self.a, self.b))
        title = f"{a} minus {b}   SMECE {self.smece_a:.4f} and {self.smece_b:.4f}"
        rows = [
            [name, *_cells(of)]
            for name, of in (("SMECE", self), ("Brier", self.brier), ("log loss", self.log_loss))
        ]
        interval = f"{_display.percent(self.level)} interval"
        return title, ["", "difference", f"{interval} from", "to", "p-value"], rows

    def _note(self) -> str:
        loss = self.log_loss
        one_row = (self.low, self.high) == (-1, 1) and math.isfinite(loss.difference)
        if not math.isinf(loss.high) or one_row:
            return self.note
        both = f"{self.a} and of {self.b}"
        whose = {math.inf: self.a, -math.inf: self.b}.get(loss.difference, both)
        infinite = (
            f"The log loss of {_display.printable(whose)} is infinite: there are rows with a "
            "prediction of exactly 0 or 1 and a label that differs."
        )
        return " ".join(filter(None, (infinite, self.note)))


def _cells(of: Comparison | MeanDifference) -> list[str]:
    if math.isinf(of.high) and (math.isinf(of.difference) or of.difference == 0):
        return ["-"] * 4
    numbers = (of.difference, of.low, of.high)
    return [*("-" if math.isinf(x) else _display.signed(x) for x in numbers), f"{of.pvalue:.3g}"]


class Pair(NamedTuple):
    """Two models of a ranking; `pvalue` is corrected for all pairs, `comparison.pvalue` is not.

    The interval of `comparison` has a higher level than the ranking, by the same correction. It
    excludes 0 exactly if `pvalue` is below 1 minus the level of the ranking.
    """

    a: str
    b: str
    comparison: Comparison
    pvalue: float


@dataclass(frozen=True, repr=False)
class Ranking(_display.Printed):
    """Models in order of their SMECE, and the pairs whose SMECE does not differ significantly.

    Attributes
    ----------
    smece : dict
        The SMECE of each model, lowest first.
    pairs : tuple of Pair
        Every pair, the model with the lower SMECE first, with Holm's correction of its p-value.
    level : float
        The probability that no pair of equally calibrated models is told apart.
    """

    smece: dict[str, float]
    pairs: tuple[Pair, ...]
    level: float

    @property
    def models(self) -> tuple[str, ...]:
        """The names, lowest SMECE first."""
        return tuple(self.smece)

    @property
    def indistinguishable(self) -> tuple[tuple[str, str], ...]:
        """The pairs whose order may be due to chance."""
        return tuple((p.a, p.b) for p in self.pairs if p.pvalue >= 1 - self.level)

    def __repr__(self) -> str:
        return f"Ranking({', '.join(map(_display.printable, self.models))})"

    def _shown(self) -> _display.Shown:
        alike: dict[str, list[str]] = {name: [] for name in self.models}
        for a, b in self.indistinguishable:
            alike[a].append(_display.printable(b))
            alike[b].append(_display.printable(a))
        title = (
            f"{len(self.smece)} models, lowest SMECE first; pairs told apart at "
            f"{_display.percent(self.level)}, Holm's correction"
        )
        rows = [
            [_display.printable(name), f"{smece:.4f}", _some(alike[name])]
            for name, smece in self.smece.items()
        ]
        return title, ["model", "SMECE", "not told apart from"], rows


def _some(names: list[str]) -> str:
    """Return the names as text; if there are many, the first ones and the number of others."""
    if len(names) <= _NAMES:
        return ", ".join(names) or "-"
    return f"{', '.join(names[: _NAMES - 1])} and {len(names) - _NAMES + 1} more"


_NAMES = 4


@overload
def compare(y_true: JointTable, *, level: float = 0.95) -> Comparison: ...
@overload
def compare(y_true: TableSet, y_prob: str, other: str, *, level: float = 0.95) -> Comparison: ...
@overload
def compare(
    y_true: npt.ArrayLike,
    y_prob: Mapping[str, npt.ArrayLike],
    *,
    bins: BinsLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    raters: bool = False,
    level: float = 0.95,
) -> Comparison: ...
def compare(
    y_true: npt.ArrayLike | JointTable | TableSet,
    y_prob: Mapping[str, npt.ArrayLike] | str | None = None,
    other: str | None = None,
    *,
    bins: BinsLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    raters: bool = False,
    level: float = 0.95,
) -> Comparison:
    r"""Compare the calibration of two models on the same rows.

    The difference is \(\sum_b |D^A_b| - \sum_b |D^B_b|\), with
    \(D_b = \sum_{i \in b} w_i (p_i - y_i) / \sum_i w_i\). Noise increases both sums. For similar
    models it does so equally, and the interval is narrow. Rows are assumed to be independent,
    unless `groups` or `raters` is given.

    Call it as `compare(y_true, {"old": p, "new": q})`, as `compare(tables, "old", "new")` with a
    `TableSet`, or as `compare(joint)` with a `JointTable`.

    Parameters
    ----------
    y_true : array-like, TableSet, or JointTable
        Labels as in `reliability`, or the tables of the rows.
    y_prob : mapping from str to array-like of shape (n,) or (n, classes), or str
        The predictions of two models, or the name of the first model in the set. For many classes,
        each model is scored by the class it predicts, as in `top_label_smece`. The Brier score and
        the log loss are then those of the predicted class against all others.
    other : str
        The name of the second model in the set.
    bins, sample_weight, n_votes, groups, raters
        As in `reliability`; for rows only. For vote shares, pass `n_votes`.
    level : float, default=0.95
        The confidence level, between 0 and 1.

    Returns
    -------
    Comparison
        The differences of SMECE, Brier score, and log loss, with intervals and p-values.

    Examples
    --------
    >>> from softcal.datasets import lidc_malignancy
    >>> d = lidc_malignancy()
    >>> models = {"forest": d["prob_rf_all"], "logistic": d["prob_lr_geometry"]}
    >>> print(compare(d["soft_malignant"], models, n_votes=d["n_readers"]))
    forest minus logistic   SMECE 0.0952 and 0.1067
               difference   95% interval from        to    p-value
       SMECE      -0.0116             -0.0243   -0.0015      0.023
       Brier      -0.0067             -0.0100   -0.0035   5.68e-05
    log loss            -                   -         -          -
    The log loss of forest is infinite: there are rows with a prediction of exactly
    0 or 1 and a label that differs.
    """
    refuse_bad_level(level)
    rows = _given(
        bins=bins, sample_weight=sample_weight, n_votes=n_votes, groups=groups,
        raters=raters or None,
    )  # fmt: skip
    if isinstance(y_true, JointTable):
        refuse_given("compare of a JointTable", y_prob=y_prob, other=other, **rows)
        return _compared(y_true, level)
    if isinstance(y_true, TableSet):
        refuse_given("compare of a TableSet", **rows)
        if not (isinstance(y_prob, str) and isinstance(other, str)):
            message = (
                "compare of a TableSet takes the names of two models, compare(tables, a, b). The "
                f"set has {', '.join(map(repr, y_true.models))}."
            )
            raise InputTypeError(message)
        return _compared(y_true.pair(y_prob, other), level)
    if other is not None or not isinstance(y_prob, Mapping):
        refuse_no_mapping(y_prob)
    if len(y_prob) != 2:
        message = f"y_prob must hold two models: got {len(y_prob)}. Use compare_many for more."
        raise InputError(message)
    tables = tables_of_models(y_true, y_prob, **{"bins": 10, **rows})
    found = _compared(tables.pair(*y_prob), level)
    if isinstance(y_true, Votes) and not raters:
        return replace(found, note=" ".join(filter(None, (found.note, recurring(y_true)))))
    return found


def _given(**rows: Any) -> dict[str, Any]:
    """Return the arguments about rows that are given."""
    return {name: value for name, value in rows.items() if value is not None}


def _compared(joint: JointTable, level: float) -> Comparison:
    smece_a, smece_b = joint.a.smece, joint.b.smece
    low, high, pvalue, note = -1.0, 1.0, 1.0, few_raters(joint.a)
    ties = joint.a.ties
    family = _intervals(joint)
    gaps = family.a.gaps
    if (joint.n if ties is None else ties.count) < 2 or gaps.independent < _ONE_ROW:
        of = "row" if ties is None else "group" if ties.raters is None else "rater"
        note = f"One {of} does not show how much {of}s vary, so intervals are the whole range."
    else:
        low, high = (float(x) for x in family.limits(1 - level))
        pvalue = _smallest_excluding(family.limits)
    of_brier, of_log_loss = _squares_of_raters(joint, gaps)
    return Comparison(
        *joint.names,
        smece_a=smece_a,
        smece_b=smece_b,
        difference=smece_a - smece_b,
        debiased=debiased(joint.a) - debiased(joint.b),
        low=low,
        high=high,
        level=level,
        pvalue=pvalue,
        brier=_mean_difference(joint.brier, family, level, of_brier, family.unseen.of_brier, 1.0),
        log_loss=_log_loss_difference(joint, family, level, of_log_loss),
        note=note,
    )


def _intervals(joint: JointTable) -> DifferenceIntervals:
    a, b = joint.a, joint.b
    differing = np.asarray(joint.differing)
    ties = a.ties, b.ties
    if joint.raters is None or ties[0] is None or ties[0].raters is None:
        return DifferenceIntervals(a.sums, b.sums, joint.cross, differing, ties)
    items = DifferenceIntervals(a.sums, b.sums, joint.cross, differing)
    cross = joint.cross + joint.raters.covariance(a, b) * ties[0].raters.correction
    # For similar models, the raters' part nearly cancels, and its estimate may be below 0.
    return DifferenceIntervals(a.sums, b.sums, cross, differing, ties, items.error)


def _squares_of_raters(joint: JointTable, gaps: Gaps) -> tuple[float, float]:
    """Return the raters' part of the squares of the differences of both losses."""
    raters = joint.a.raters
    if joint.raters is None or raters is None or gaps.raters is None:
        return 0.0, 0.0
    weight = float(gaps.total)
    means = joint.brier.total / weight, joint.log_loss.total / weight
    brier, log_loss = joint.raters.of_losses(raters, means)
    factor = gaps.raters.correction
    return max(brier * factor, 0.0), max(log_loss * factor, 0.0)


def compare_many(
    y_true: npt.ArrayLike | TableSet,
    y_prob: Mapping[str, npt.ArrayLike] | None = None,
    *,
    bins: BinsLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    raters: bool = False,
    level: float = 0.95,
) -> Ranking:
    r"""Rank models by SMECE, and test every pair on the same rows.

    Holm's correction multiplies the k-th smallest of m p-values by \(m + 1 - k\), and keeps them
    non-decreasing. No two equally calibrated models are told apart, with probability `level`. The
    interval of a pair has the alpha that is smaller by the same factor. It therefore excludes 0
    exactly if the pair is told apart. For values other than 0, the simultaneous level of all
    intervals may be lower.

    Parameters
    ----------
    y_true : array-like or TableSet
        Labels as in `reliability`, or a set of tables. All its models are compared.
    y_prob : mapping from str to array-like of shape (n,) or (n, classes)
        The predictions of two models or more, as in `compare`.
    bins, sample_weight, n_votes, groups, raters
        As in `compare`; for rows only.
    level : float, default=0.95
        The confidence level, between 0 and 1.

    Returns
    -------
    Ranking
        The models with the lowest SMECE first, and the comparison of each pair.

    Examples
    --------
    >>> y = [0.1, 0.4, 0.6, 0.9] * 50
    >>> models = {"exact": y, "sharp": [0.0, 0.2, 0.8, 1.0] * 50, "also": y}
    >>> print(compare_many(y, models))
    3 models, lowest SMECE first; pairs told apart at 95%, Holm's correction
    model    SMECE   not told apart from
    exact   0.0000                  also
     also   0.0000                 exact
    sharp   0.1500                     -
    """
    refuse_bad_level(level)
    rows = _given(
        bins=bins, sample_weight=sample_weight, n_votes=n_votes, groups=groups,
        raters=raters or None,
    )  # fmt: skip
    if isinstance(y_true, TableSet):
        refuse_given("compare_many of a TableSet", y_prob=y_prob, **rows)
        tables = y_true
    else:
        if y_prob is None:
            refuse_no_mapping(y_prob)
        tables = tables_of_models(y_true, y_prob, **{"bins": 10, **rows})
    if len(tables.models) < 2:
        message = f"there must be two models or more to compare: got {len(tables.models)}."
        raise InputError(message)
    smece = {name: tables[name].smece for name in tables.models}
    rising = dict(sorted(smece.items(), key=lambda item: item[1]))
    names = list(combinations(rising, 2))  # the model with the lower SMECE first
    found = compare_pairs([tables.pair(*two) for two in names], level)
    pairs = (Pair(*two, *each) for two, each in zip(names, found, strict=True))
    return Ranking(rising, tuple(pairs), level)


def compare_pairs(joints: list[JointTable], level: float) -> list[tuple[Comparison, float]]:
    """Compare each pair, with Holm's correction of its p-value and of the level of its interval.

    A p-value that Holm's correction multiplies by c is compared with (1 - level) / c, so the
    interval has that alpha.
    """
    alone = [_compared(joint, level) for joint in joints]
    corrected = holm([each.pvalue for each in alone])
    return [
        (_compared(joint, 1 - (1 - level) * each.pvalue / pvalue), pvalue)
        for joint, each, pvalue in zip(joints, alone, corrected, strict=True)
    ]


def holm(pvalues: list[float]) -> list[float]:
    """Return p-values with Holm's correction."""
    out = [1.0] * len(pvalues)
    before = 0.0
    for rank, k in enumerate(sorted(range(len(pvalues)), key=pvalues.__getitem__)):
        before = max(before, min(1.0, pvalues[k] * (len(pvalues) - rank)))
        out[k] = before
    return out


def _mean_difference(
    paired: PairedSums,
    family: DifferenceIntervals,
    level: float,
    of_raters: float,
    unseen: Limits,
    most: float = math.inf,
) -> MeanDifference:
    """Return Student's interval of a weighted mean, with the effective number of rows or groups.

    `of_raters` is added to the squares; `unseen` returns how far unobserved events could move the
    mean; `most` is the largest possible difference of a loss. If there may be no event at all, the
    sum of losses is skewed.
    """
    gaps = family.a.gaps
    weight, rows = float(gaps.total), float(gaps.independent)
    mean = paired.total / weight
    if rows < _ONE_ROW:
        return MeanDifference(mean, -most, most, 1.0)
    whole = paired.square + paired.total**2 / rows
    spread = float(kept(np.asarray(whole - 2 * mean * paired.mixed), np.asarray(whole)))
    error = math.sqrt(spread * rows / (rows - 1) + of_raters) / weight
    degrees = rows - 1 if gaps.raters is None else min(rows - 1, gaps.raters.degrees)
    none = float(family.unseen.none)

    def limits(alpha: float) -> tuple[float, float]:
        reach = -float(stdtrit(degrees, alpha / 2))
        skewness = float(_skewness(np.abs(mean), np.asarray(error), alpha, reach))
        half = reach * error + skewness * none
        fall, rise = map(float, unseen(alpha))
        return max(mean - max(half, fall), -most), min(mean + max(half, rise), most)

    return MeanDifference(mean, *limits(1 - level), _smallest_excluding(limits))


def _log_loss_difference(
    joint: JointTable, family: DifferenceIntervals, level: float, of_raters: float
) -> MeanDifference:
    if not joint.infinite_a and not joint.infinite_b:
        unseen = family.unseen.of_log_loss
        return _mean_difference(joint.log_loss, family, level, of_raters, unseen)
    difference = 0.0
    if not (joint.infinite_a and joint.infinite_b):
        difference = math.inf if joint.infinite_a else -math.inf
    return MeanDifference(difference, -math.inf, math.inf, 1.0)


def _includes_0(limits: tuple[FloatArray | float, FloatArray | float]) -> bool:
    return bool(limits[0] <= 0 <= limits[1])


def _smallest_excluding(limits: Limits) -> float:
    """Find the smallest alpha whose interval excludes 0, by bisection of its logarithm."""
    if _includes_0(limits(1 - 1e-12)):
        return 1.0
    if not _includes_0(limits(_SMALLEST_P)):
        return _SMALLEST_P
    below, above = math.log(_SMALLEST_P), 0.0
    while above - below > 1e-11:
        middle = (below + above) / 2
        includes = _includes_0(limits(math.exp(middle)))
        below, above = (middle, above) if includes else (below, middle)
    return math.exp(above)
