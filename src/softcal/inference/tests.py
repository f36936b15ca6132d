"""A calibration test from the sums of a table."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from operator import add, mul, truediv
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import fdtrc, gammaincc, stdtr

from softcal import _display
from softcal.metrics.cumulative import possible_share
from softcal.metrics.label_noise import skewed, unanimous_votes
from softcal.table.owners import Clusters, joined_square
from softcal.table.reliability import Reliability, refuse_no_rows, table_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from softcal._validation.inputs import FloatArray
    from softcal.bins import BinsLike
    from softcal.table.kernel import Sums

SHRINKAGE = 5.0  # weight of the pooled variance, in rows or events; docs/interval_method.md
_SHARED = 1.055  # how much too often Cauchy's rule rejects, because both p-values use the same gaps
_EVENTS = (1.0, 1.01)  # lowest expected events of a pool; the p-value is the mean over this range
_ROWS = 10.0  # lowest number of rows of a pool, unless every label is 0 or 1
_NO_VARIANCE = 1e-100  # variance below which p counts as exactly 0 or 1
_ROUNDING = 1e-9  # residuals below this count as 0
_TINY = 1e-300  # instead of 0 in ratios of two zeros
_FLAT = 1e-12  # variance of the pools' predictions below which no tilt is tested


@dataclass(frozen=True, repr=False)
class TestResult(_display.Printed):
    """The result of a test of whether chance explains the gaps of a calibrated model.

    Attributes
    ----------
    pvalue : float
        The p-value: how often a calibrated model shows gaps at least this extreme.
    pvalue_bins, pvalue_trend : float
        The two p-values that `pvalue` combines. The first tests for a gap in any bin (a chi-square
        over bins). The second tests two directions: predictions too high or low overall, and too
        extreme or not extreme enough.
    statistic : float
        The chi-square over bins; infinite if labels contradict predictions of exactly 0 or 1.
    share : ndarray
        Each bin's contribution to the statistic, with sum 1; all 0 if the statistic is 0.
    """

    __test__ = False  # so that pytest does not collect it

    pvalue: float
    pvalue_bins: float
    pvalue_trend: float
    statistic: float
    share: FloatArray

    def __repr__(self) -> str:
        return f"TestResult(pvalue={self.pvalue:.3g}, bins={self.share.size})"

    def _shown(self) -> _display.Shown:
        line = (
            f"p-value {self.pvalue:.3g} of calibration (bins {self.pvalue_bins:.3g}, trend "
            f"{self.pvalue_trend:.3g}), chi-square {self.statistic:.4g}"
        )
        return line, [], []


def calibration_test(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    bins: BinsLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    raters: bool = False,
) -> TestResult:
    """Test whether the labels could come from a calibrated model, without resampling.

    Parameters
    ----------
    y_true, y_prob, bins, sample_weight, n_votes, groups, raters
        As in `smece_interval`.

    Returns
    -------
    TestResult
        A small p-value is evidence against calibration. A large p-value does not prove calibration:
        there may be too few rows, or gaps may cancel within a bin.

    Examples
    --------
    >>> calibration_test([0.5, 0.25], [0.5, 0.25]).pvalue
    1.0
    """
    rel = table_of(
        "calibration_test", y_true, y_prob, bins=bins, sample_weight=sample_weight,
        n_votes=n_votes, groups=groups, raters=raters,
    )  # fmt: skip
    refuse_no_rows(rel)
    return _test(rel.sums, rel.ties, rel.n)


def calibrated_variance(whole: Sums, parts: Sums) -> FloatArray:
    """Return the variance of the residual of each part of a table, if the model is calibrated.

    It is shrunk toward that of the whole where a part has few events.
    """
    hard = not whole.label_var.any()
    noisy = _noisiness(_scaled(whole, int(whole.count.sum()), hard=hard), 1.0, hard=hard)
    rows = int(parts.count.sum())
    scale = rows / float(parts.weight_sq.sum())
    pools = noisy.recognized(_scaled(parts, rows, hard=hard))
    return np.array(_calibrated_variance(pools, noisy)) / scale


# The code below uses plain floats per pool, because most tables have few bins: it is five times as
# fast as arrays.


class _Pools(NamedTuple):
    """Sums of pools of bins, scaled to a mean square weight of 1: so variances count events."""

    residual: list[float]
    weight: list[float]
    weight_sq: list[float]
    prob: list[float]  # sum w p
    calibrated: list[float]  # sum w^2 p(1 - p)
    own: list[float]  # sum w^2 d^2
    certain: list[float]  # `own` of bins in which every p is 0 or 1
    off: list[float]  # sum of the bins' absolute residuals
    expected: list[float]  # `calibrated` of the rows whose labels are outcomes
    surprises: list[float]  # `own` of the same rows
    floor: list[float]  # known variance of votes
    unsure: list[float]  # sum w^2 y(1 - y)

    @property
    def size(self) -> list[float]:
        """The effective number of rows of each pool."""
        return [w * w / (q or 1.0) for w, q in zip(self.weight, self.weight_sq, strict=True)]


def _scaled(s: Sums, n: int, *, hard: bool) -> _Pools:
    """Return the sums of each bin as a pool of its own."""
    residual, weight, label = s.residual.tolist(), s.weight.tolist(), s.label.tolist()
    weight_sq, calibrated, own = s.weight_sq.tolist(), s.prob_var.tolist(), s.residual_var.tolist()
    expected, surprises = calibrated, own
    floor = unsure = nothing = [0.0] * len(weight)
    if not hard:  # as in `outcomes`
        each = zip(s.label_var.tolist(), weight_sq, weight, strict=True)
        unsure = [v * q / (w or 1.0) for v, q, w in each]
        expected, surprises = s.outcome_prob_var.tolist(), s.outcome_residual_var.tolist()
        floor = s.vote_floor.tolist()
    scale = n / sum(weight_sq)
    if scale != 1:
        root = math.sqrt(scale)
        residual, weight, label = ([root * x for x in line] for line in (residual, weight, label))
        weight_sq, calibrated, own, expected, surprises, floor, unsure = (
            [scale * x for x in line]
            for line in (weight_sq, calibrated, own, expected, surprises, floor, unsure)
        )
    certain = nothing
    if min(calibrated) <= _NO_VARIANCE:
        certain = [q if h <= _NO_VARIANCE else 0.0 for q, h in zip(own, calibrated, strict=True)]
    return _Pools(
        residual, weight, weight_sq, list(map(add, label, residual)), calibrated, own,
        certain, list(map(abs, residual)), expected, surprises, floor, unsure,
    )  # fmt: skip


def _bins(s: Sums, n: int, worth: float, *, grouped: bool) -> tuple[_Pools, _Noisiness]:
    """Return the sums of the bins, and the noise of the labels of the whole table."""
    hard = not any(s.label_var.tolist())
    bins = _scaled(s, n, hard=hard)
    if hard and grouped:  # the variance of outcomes comes from the groups' sums
        nothing = [0.0] * len(bins.weight)
        bins = bins._replace(expected=nothing, surprises=nothing)
    noisy = _noisiness(bins, worth, hard=hard)
    return noisy.recognized(bins), noisy


def _test(s: Sums, clusters: Clusters | None, n: int) -> TestResult:
    """Compute the test for every way to pool the bins, and average over these."""
    worth = 1.0
    if clusters is not None:
        scale = n / float(s.weight_sq.sum())
        clusters = replace(
            clusters, residual=clusters.residual * scale, weight=clusters.weight * scale
        )
        worth = n / float(clusters.weight.sum())
    bins, noisy = _bins(s, n, worth, grouped=clusters is not None)
    possible = possible_share(sum(bins.certain))
    pvalue = of_bins = of_trend = statistic = 0.0
    share = [0.0] * len(bins.weight)
    events = noisy.events(bins)
    if worth != 1:
        events = [worth * x for x in events]
    for starts, part in _ways_to_pool(events, bins.weight):
        all_apart = len(starts) == len(bins.weight)
        pools = bins
        if not all_apart:
            pools = _Pools(*np.add.reduceat(np.array(bins), starts, axis=1).tolist())
        noise = _noise(pools, starts, clusters, noisy, worth)
        terms = list(map(truediv, map(mul, pools.residual, pools.residual), noise.variance))
        chi_square = sum(terms)
        heavy = _kurtosis(pools, noise, noisy, worth)
        p_bins = _chance_of_bins(chi_square, noise, heavy)
        if len(starts) > 1:
            p_trend = _chance_of_trend(pools, noise, heavy)
            p_both = combined(p_bins, p_trend)
        else:
            # In one pool, errors of both signs would cancel, so the trend uses the bins. The
            # p-value of the pool is not combined with it: a p-value of 1 would outweigh the trend.
            each = list(range(len(bins.weight)))
            noise = _noise(bins, each, clusters, noisy, worth)
            p_both = p_trend = _chance_of_trend(bins, noise, _kurtosis(bins, noise, noisy, worth))
        if clusters is not None and clusters.count < 2:  # one group does not show how groups vary
            p_both = p_bins = p_trend = 1.0
        pvalue += part * p_both
        of_bins += part * p_bins
        of_trend += part * p_trend
        statistic += part * chi_square
        parts = terms if possible > 0 else pools.certain
        whole = (sum(parts) or 1.0) / part
        if not all_apart:  # the share of a pool is divided by the size of its bins' residuals
            sizes = np.diff([*starts, len(share)])
            whole_off = np.repeat([m or 1.0 for m in pools.off], sizes).tolist()
            of_pool = np.repeat(parts, sizes).tolist()
            parts = list(map(mul, of_pool, map(truediv, bins.off, whole_off)))
        share = [x + t / whole for x, t in zip(share, parts, strict=True)]
    return TestResult(
        pvalue * possible,
        of_bins * possible,
        of_trend * possible,
        statistic if possible > 0 else math.inf,
        np.array(share),
    )


class _Soft(NamedTuple):
    """The labels of a pool that are not outcomes."""

    possible: float  # their sum of w^2 p(1 - p)
    variance: float  # what the whole table suggests
    fourth: float  # cumulant
    rows: float  # of normal labels whose squares would show the variance as precisely


class _Noisiness(NamedTuple):
    """The variance of the labels of the whole table.

    Of two votes with probability p, the product has the mean p^2 + c p(1 - p). The share of m such
    votes has the variance p(1 - p)(1/m + c(1 - 1/m)). A soft label has that of many votes.
    """

    hard: bool
    outcomes: float = 1.0  # share of p(1 - p), for labels of exactly 0 or 1 without votes
    votes: float = 1.0  # share of p(1 - p)/m
    common: float = 1.0  # c
    unanimous: float = 0.0  # certainty that labels of 0 and 1 are shares of unanimous votes

    def recognized(self, pools: _Pools) -> _Pools:
        """Count labels of 0 and 1 as soft labels, as far as they are shares of unanimous votes."""
        if not self.unanimous:
            return pools
        part = 1 - self.unanimous
        return pools._replace(
            expected=[part * x for x in pools.expected],
            surprises=[part * x for x in pools.surprises],
        )

    def soft(self, pools: _Pools) -> list[_Soft]:
        """Return the noise that labels other than outcomes would have in each pool.

        The fourth cumulants are those of votes and of a Beta distribution. The sum of n squares has
        the relative variance k + 2/n, with k the excess kurtosis of the sum of labels.
        """
        c, found = self.common, []
        beta = 6 * c**3 / ((1 + c) * (1 + 2 * c))
        lines = zip(pools.calibrated, pools.expected, pools.floor, pools.size, strict=True)
        for calibrated, expected, floor, size in lines:
            possible = max(calibrated - expected, 0.0)
            if self.hard or possible <= 0:
                found.append(_Soft(possible, possible, possible, possible))
                continue
            voted = min(floor, possible)
            rest = possible - voted
            variance = self.votes * voted + c * rest
            fourth = voted * (voted / possible) ** 2 + beta * rest
            excess = fourth / max(variance * variance, _NO_VARIANCE)
            rows = 2 / (excess + 2 * calibrated / (possible * size))
            found.append(_Soft(possible, variance, fourth, rows))
        return found

    def excess(self, pools: _Pools) -> list[float]:
        """Return the excess kurtosis of sums of labels over many rows of small variance."""
        if self.hard:
            return [1 / h if h * h > _NO_VARIANCE else h / _NO_VARIANCE for h in pools.calibrated]
        found = []
        for expected, soft in zip(pools.expected, self.soft(pools), strict=True):
            variance = expected + soft.variance
            found.append((expected + soft.fourth) / max(variance * variance, _NO_VARIANCE))
        return found

    def events(self, pools: _Pools) -> list[float]:
        """Return how many events each pool expects; a tenth of its rows if these are fewer."""
        if self.hard:
            return pools.calibrated
        each = zip(self.excess(pools), pools.size, strict=True)
        return [1 / (k + _ROWS / n) if n else 0.0 for k, n in each]


def _noisiness(bins: _Pools, worth: float, *, hard: bool) -> _Noisiness:
    """Return the variance of the labels of the whole table, if each row counts as `worth` rows."""
    if hard:
        return _Noisiness(hard=True)
    expected, seen, floor = sum(bins.expected), sum(bins.surprises), sum(bins.floor)
    whole, squares, unsure = sum(bins.calibrated), sum(bins.own), sum(bins.unsure)
    outcomes, unanimous = 1.0, 0.0
    if expected > _NO_VARIANCE:
        # One event, if almost none was expected, is not evidence.
        outcomes = max(1.0, min(seen * worth, 1.0) / (expected * worth))
        fewer = whole - squares - unsure - (expected - seen)
        unanimous = unanimous_votes(expected, seen, fewer, max(squares - seen, 0.0), worth)
        expected *= 1 - unanimous
        seen *= 1 - unanimous
    rest = max(whole - expected, 0.0)
    own = max(squares - seen, 0.0)
    own *= skewed(own, rest, unsure)
    if floor > 0:  # the number of votes is more informative than few events
        own = (rest * worth * own + SHRINKAGE * floor) / (rest * worth + SHRINKAGE)
    voted = min(floor, rest)
    votes = min(own / voted, 1.0) if voted > 0 else 1.0
    common = min(max(own - voted, 0.0) / max(rest - voted, _TINY), 1.0)
    return _Noisiness(False, outcomes, votes, common, unanimous)  # noqa: FBT003


class _Noise(NamedTuple):
    """The noise of the residuals of pools of a calibrated model."""

    variance: list[float]
    size: list[float]  # rows, or groups, of each
    between: FloatArray | None  # their covariances, with diagonal 0; None if there are none
    degrees: float | None = None  # of freedom, if the variances come from few raters


def _noise(
    pools: _Pools, starts: list[int], clusters: Clusters | None, noisy: _Noisiness, worth: float
) -> _Noise:
    """Return the noise of pools of independent rows or groups, given the first bin of each pool."""
    weight_sq, between = pools.weight_sq, None
    if clusters is None:
        variance = _calibrated_variance(pools, noisy)
    else:  # from the groups' sums, whatever the labels
        square = joined_square(clusters.residual, np.array(starts))
        rows_sq = np.array(weight_sq)
        products = joined_square(clusters.weight, np.array(starts)).diagonal()
        weight_sq = products.tolist()
        between = square - np.diag(square.diagonal())
        # The variance of outcomes among other labels is known if all rows of a group are equal.
        alike = products / np.maximum(rows_sq, _TINY)
        known, seen = np.array(pools.expected) * alike, np.array(pools.surprises) * alike
        rest, likely, _, rows = np.array(noisy.soft(pools)).T
        own = np.maximum(square.diagonal() - seen, 0.0)
        whole = own.sum()
        if clusters.raters is None:
            squares = np.maximum(np.array(pools.own) - pools.surprises, 0.0)
            lines = (squares, rest, np.array(pools.unsure))
            whole *= skewed(*(float(line.sum()) for line in lines))
            own = own * list(map(skewed, *(line.tolist() for line in lines)))
        # A difference that is only rounding must not be divided by itself.
        least_rest = max(1e-6 * sum(pools.calibrated), _TINY)
        pooled = whole / max(likely.sum(), _TINY) * likely * min(rest.sum() / least_rest, 1.0)
        events = rows * worth
        others = (events * own + SHRINKAGE * pooled) / (events + SHRINKAGE)
        variance = (noisy.outcomes * known + others).tolist()
    least = _ROUNDING**2
    return _Noise(
        [v + least * q for v, q in zip(variance, weight_sq, strict=True)],
        pools._replace(weight_sq=weight_sq).size,
        between,
        None if clusters is None or clusters.raters is None else clusters.raters.degrees,
    )


def _calibrated_variance(pools: _Pools, noisy: _Noisiness) -> list[float]:
    """Return the variance of the residuals of a calibrated model, shrunk if rows are few."""
    if noisy.hard:
        return pools.calibrated
    found = []
    lines = zip(
        pools.own, pools.surprises, pools.expected, pools.unsure, noisy.soft(pools), strict=True
    )
    for own, seen, expected, unsure, soft in lines:
        squares = max(own - seen, 0.0)
        squares *= skewed(squares, soft.possible, unsure)
        shrunk = (soft.rows * squares + SHRINKAGE * soft.variance) / (soft.rows + SHRINKAGE)
        found.append(noisy.outcomes * expected + shrunk)
    return found


def _ways_to_pool(events: list[float], weight: list[float]) -> Iterator[tuple[list[int], float]]:
    """Merge adjacent bins until each pool expects an event, for every threshold in `_EVENTS`.

    With a single threshold, rounding of the sums could decide which bins are merged. Yield the
    first bin of each pool, and the share of the range with these pools.
    """
    at, end = _EVENTS
    if min(events) > end:  # no bin needs another, as in most tables
        yield list(range(len(events))), 1.0
        return
    last = max(b for b, w in enumerate(weight) if w)
    while at < end:
        starts, until = _pools_expecting(at, events, last)
        until = min(until, end)
        yield starts, (until - at) / (_EVENTS[1] - _EVENTS[0])
        at = until


def _pools_expecting(least: float, events: list[float], last: int) -> tuple[list[int], float]:
    """Merge bins, left to right, until each pool expects more than `least` events.

    The last pool ends with the last bin that has rows. Also return the lowest number of events
    that a closed pool expects: for thresholds up to it, the pools stay the same.
    """
    starts, expected, until = [0], 0.0, math.inf
    for b in range(last):
        expected += events[b]
        if expected > least:
            until = min(until, expected)
            starts.append(b + 1)
            expected = 0.0
    expected += events[last]
    if expected > least:
        until = min(until, expected)
    elif len(starts) > 1:  # the remainder joins its neighbor
        starts.pop()
    return starts, until


def _kurtosis(pools: _Pools, noise: _Noise, noisy: _Noisiness, worth: float) -> list[float]:
    """Return the excess kurtosis of the residual of each pool."""
    excess = noisy.excess(pools)
    if noise.between is None:
        factors = [
            1 - 6 * h / (n or 1.0) for h, n in zip(pools.calibrated, noise.size, strict=True)
        ]
        heavy = list(map(mul, excess, factors))
    else:
        heavy = [k / worth - 6 / (n or 1.0) for k, n in zip(excess, noise.size, strict=True)]
    return [k if k * n > -2 else -2 / (n or 1.0) for k, n in zip(heavy, noise.size, strict=True)]


def _chance_of_bins(statistic: float, noise: _Noise, heavy: list[float]) -> float:
    """Compute the p-value of the statistic, by a chi-square of equal mean and variance."""
    k = len(heavy)
    if noise.between is None:
        return _chance(statistic, k, sum(heavy))
    # Rao and Scott's correction
    variance = np.array(noise.variance)
    shared = 2 * float((noise.between**2 / np.outer(variance, variance)).sum())
    if noise.degrees is None:
        return _chance(statistic, k, sum(heavy) + shared)
    spread = max(2 * k + sum(heavy), 1e-9) + shared
    return float(fdtrc(2 * k * k / spread, noise.degrees, statistic / k))


def _chance_of_trend(pools: _Pools, noise: _Noise, heavy: list[float]) -> float:
    """Test two directions: all too high or low, and too extreme or not extreme enough.

    Without raters, each p-value is that of a gamma distribution of equal mean and variance.
    """
    means = [p / (w or 1.0) for p, w in zip(pools.prob, pools.weight, strict=True)]
    level, a = sum(pools.residual), sum(noise.variance)
    b = sum(map(mul, noise.variance, means))
    if noise.between is not None:
        shared = noise.between.sum(axis=1)
        a = max(a + float(shared.sum()), 1e-12 * a)  # covariances may cancel the variances
        b += float(shared @ means)
    # Around the variance-weighted mean, the tilt is uncorrelated with the level.
    center = b / a
    around = [p - center for p in means]
    tilt: float = sum(map(mul, pools.residual, around))
    spread: float = sum(map(mul, noise.variance, map(mul, around, around)))
    if noise.between is not None:
        spread += float(np.array(around) @ noise.between @ around)
    fourth = [0.0] * len(means)  # sums of groups are taken as normal
    if noise.between is None:
        fourth = [k * v * v for k, v in zip(heavy, noise.variance, strict=True)]
    if noise.degrees is None:
        of_level = _chance(level * level / a, 1, sum(fourth) / (a * a))
    else:
        of_level = 2 * float(stdtr(noise.degrees, -abs(level) / math.sqrt(a)))
    # With one pool, or equal pools, only the level can be tested.
    tilted = min(max(spread / (_FLAT * a) - 1, 0.0), 1.0)
    if not tilted:
        return of_level
    both = level * level / a + tilt * tilt / spread
    if noise.degrees is None:
        parts = (k * (1 / a + x * x / spread) ** 2 for k, x in zip(fourth, around, strict=True))
        of_both = _chance(both, 2, sum(parts))
    else:  # Hotelling's, for two directions
        # A bias of b moves the tilt by about b^2: so skewed a sum needs twice as many raters.
        degrees = noise.degrees / 2
        of_both = (1 + both / degrees) ** (-max(degrees - 1, 1.0) / 2)
    return tilted * of_both + (1 - tilted) * of_level


def _chance(statistic: float, k: int, heavy: float) -> float:
    """Return the p-value of a sum of k squares, given their excess kurtosis."""
    spread = max(2 * k + heavy, 1e-9)
    return float(gammaincc(k * k / spread, statistic * k / spread))


def combined(first: float, second: float) -> float:
    """Combine two p-values of the same gaps by Cauchy's distribution."""
    # At 1, one cotangent would outweigh the other, however small that p-value is.
    a = math.tan(math.pi * min(max(first, _TINY), 1 - 1e-6))
    b = math.tan(math.pi * min(max(second, _TINY), 1 - 1e-6))
    return min(_SHARED * math.atan2(1.0, (1 / a + 1 / b) / 2) / math.pi, 1.0)
