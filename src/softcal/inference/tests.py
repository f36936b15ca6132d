"""A test of calibration, and a consistency band, from the sums of the table alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, gammaincc, ndtri

from softcal import _display
from softcal.inference.intervals import GapIntervals, refuse_bad_level
from softcal.metrics.cumulative import possible_share
from softcal.table.groups import Clusters, joined_square
from softcal.table.kernel import Sums
from softcal.table.reliability import Reliability, refuse_no_rows, table_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from softcal._validation.inputs import FloatArray
    from softcal.bins import BinsLike

_SHRINKAGE = 5.0  # events' worth of pooled variance; docs/uncertainty.md
_SHARED = 1.055  # how much too often Cauchy's rule rejects when both questions see the same gaps
_EVENTS = (1.0, 1.01)  # that a pool of bins must expect: the p-value is the mean over this range
_NO_VARIANCE = 1e-100  # below this p is 0 or 1 for all that squares can tell
_ROUNDING = 1e-9  # residuals below this are labels equal to their predictions
_FLAT = 1e-12  # variance of the pools' predictions up to which they have no tilt


@dataclass(frozen=True, repr=False)
class TestResult(_display.Printed):
    """A test of whether chance explains the gaps of a calibrated model.

    Attributes
    ----------
    pvalue : float
        How often a calibrated model would show gaps at least this extreme.
    pvalue_bins, pvalue_trend : float
        The two questions it combines: is any bin off (a chi-square over bins), and are the
        predictions too high or low overall, or too extreme (two directions only)?
    statistic : float
        The chi-square over bins; infinite where labels contradict predictions of exactly 0 or 1.
    share : ndarray
        Each bin's contribution to the statistic, adding up to 1 (0 everywhere if it is 0).
    """

    __test__ = False  # not for pytest to collect

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
) -> TestResult:
    """Test whether the labels could come from a calibrated model, without resampling.

    Parameters
    ----------
    y_true, y_prob, bins, sample_weight, n_votes, groups
        As in `smece_interval`.

    Returns
    -------
    TestResult
        A small p-value speaks against calibration. A large one does not prove it: there may be
        too little data, or gaps that cancel inside a bin.

    Examples
    --------
    >>> calibration_test([0.5, 0.25], [0.5, 0.25]).pvalue
    1.0
    """
    rel = table_of(
        "calibration_test", y_true, y_prob, bins=bins, sample_weight=sample_weight,
        n_votes=n_votes, groups=groups,
    )  # fmt: skip
    refuse_no_rows(rel)
    one = _tests(Sums(*(values[None, :] for values in rel.sums)), rel.clusters)
    return TestResult(
        float(one.pvalue[0]),
        float(one.bins[0]),
        float(one.trend[0]),
        float(one.statistic[0]),
        one.share[0],
    )


def consistency_band(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    bins: BinsLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    level: float = 0.95,
    simultaneous: bool = False,
) -> GapIntervals:
    r"""Compute the range of each bin's gap that chance explains if the model is calibrated.

    Not `gap_intervals`, which lie around the observed gap: these lie around 0 and show where the
    gap of a calibrated model would fall, \(\pm z \sqrt{V_b}/W_b\) with the variance the test uses:
    for 0/1 labels \(\sum w^2 p(1 - p)\), for soft ones from the residuals of bin and table.

    With groups V is not the test's: it is that variance of independent rows, or the sum over groups
    of \((\sum w d)^2\) in the bin, whichever is larger. The second includes the gap itself, so gaps
    of a miscalibrated model widen the band.

    Parameters
    ----------
    y_true, y_prob, bins, sample_weight, n_votes, groups
        As in `smece_interval`.
    level : float
        How often a calibrated model's gap lies within the band.
    simultaneous : bool
        Whether all bins together should do so (Bonferroni's correction), or each for itself.

    Returns
    -------
    GapIntervals
        Limits of the gap, NaN where the bin is empty; limits of the mean label are
        `rel.mean_prob - high` and `rel.mean_prob - low`.

    Examples
    --------
    >>> from softcal import reliability
    >>> hard = reliability([0, 1] * 50, [0.3] * 100, bins=1)
    >>> low, high = consistency_band(hard)  # 1.96 * sqrt(0.3 * 0.7 / 100)
    >>> low.round(2), high.round(2), hard.gap.round(2)
    (array([-0.09]), array([0.09]), array([-0.2]))
    """
    refuse_bad_level(level)
    rel = table_of(
        "consistency_band", y_true, y_prob, bins=bins, sample_weight=sample_weight,
        n_votes=n_votes, groups=groups,
    )  # fmt: skip
    refuse_no_rows(rel)
    s = rel.sums
    scale = s.count.sum() / s.weight_sq.sum()
    hard = np.asarray(rel.has_hard_labels)
    variance = _calibrated_variance(s.prob_var * scale, s.residual_var * scale, hard) / scale
    if rel.clusters is not None:  # where every p is 0 or 1, a calibrated model has no gap at all
        own = np.where(s.prob_var > 0, rel.clusters.residual.diagonal(), 0.0)
        variance = np.maximum(variance, own)
    filled = int((s.count > 0).sum())
    z = -ndtri((1 - level) / 2 / (filled if simultaneous else 1))
    half = z * np.sqrt(variance) / np.where(s.count > 0, s.weight, np.nan)
    return GapIntervals(-half, half)


class _Tests(NamedTuple):
    """The test of many tables: arrays along the leading axis."""

    pvalue: FloatArray
    bins: FloatArray
    trend: FloatArray
    statistic: FloatArray
    share: FloatArray


def calibration_pvalues(sums: Sums) -> FloatArray:
    """Give the p-value of `calibration_test` for many tables: sums of shape (tables, bins)."""
    return _tests(sums).pvalue


def _tests(s: Sums, clusters: Clusters | None = None) -> _Tests:
    """Test each table with every way to pool its bins, and take the mean over the ways."""
    # Scale as if the weights had a mean square of 1, so that variances count events.
    scale = s.count.sum(axis=1, keepdims=True) / s.weight_sq.sum(axis=1, keepdims=True)
    expected = s.prob_var * scale
    if clusters is not None:  # rows of a group are worth less than as many on their own
        expected = expected * s.weight_sq.sum() / clusters.weight.sum()
    table, pool, share = _pools_with_an_event(expected, s.count)
    if clusters is None:
        each = _tests_of_pools(Sums(*(x[table] for x in s)), scale[table], expected[table], pool)
    else:
        ways = [_tests_of_pools(s, scale, expected, way[None, :], clusters) for way in pool]
        each = _Tests(*(np.concatenate(values) for values in zip(*ways, strict=True)))
    starts = np.searchsorted(table, np.arange(len(s.count)))
    return _Tests(*(np.add.reduceat((values.T * share).T, starts, axis=0) for values in each))


def _tests_of_pools(
    s: Sums,
    scale: FloatArray,
    expected: FloatArray,
    pool: npt.NDArray[np.intp],
    clusters: Clusters | None = None,
) -> _Tests:
    joined = _joiner(pool)
    residual = joined(s.residual * np.sqrt(scale))
    weight = joined(s.weight)
    mean_prob = joined(s.label + s.residual) / np.maximum(weight, 1e-300)
    noise = (
        _independent_noise(s, scale, joined)
        if clusters is None
        else _grouped_noise(s, clusters, float(scale[0, 0]), pool[0], joined(expected))
    )
    filled = weight > 0
    safe = np.where(filled, noise.variance, 1.0)
    terms = residual**2 / safe
    statistic = terms.sum(axis=1)

    p_bins = _chance_of_bins(statistic, filled, noise, safe)
    p_trend = _chance_of_trend(residual, noise, mean_prob, weight)
    alone = pool.max(axis=1) == 0
    if alone.any():
        p_trend = np.where(alone, _trend_of_bins(s, clusters, scale, expected), p_trend)
    # One pool has nothing to add to its trend; a p of 1 would only outweigh it.
    pvalue = np.where(alone, p_trend, _combined(p_bins, p_trend))
    if clusters is not None and clusters.count < 2:  # one group says nothing about the others
        p_bins[:], p_trend[:], pvalue[:] = 1.0, 1.0, 1.0
    certain = np.where(s.prob_var * scale <= _NO_VARIANCE, s.residual_var * scale, 0.0)
    possible = possible_share(certain.sum(axis=1))
    impossible = possible <= 0
    contradicted = joined(certain)
    terms = np.where(impossible[:, None], contradicted, terms)
    share = _by_bin(terms, np.abs(s.residual), pool, joined)
    return _Tests(
        pvalue * possible,
        p_bins * possible,
        p_trend * possible,
        np.where(impossible, np.inf, statistic),
        share,
    )


def _trend_of_bins(
    s: Sums, clusters: Clusters | None, scale: FloatArray, expected: FloatArray
) -> FloatArray:
    """Test the trend over the bins themselves, where too few events made one pool of them all.

    In one pool errors of both signs would cancel, however large they are.
    """
    noise = (
        _independent_noise(s, scale, lambda values: values)
        if clusters is None
        else _grouped_noise(s, clusters, float(scale[0, 0]), np.arange(s.count.shape[1]), expected)
    )
    mean_prob = (s.label + s.residual) / np.maximum(s.weight, 1e-300)
    return _chance_of_trend(s.residual * np.sqrt(scale), noise, mean_prob, s.weight)


class _Noise(NamedTuple):
    """How the joined residuals vary where the model is calibrated."""

    variance: FloatArray
    between: FloatArray | None  # their covariances, 0 in the diagonal; None where there are none
    events: FloatArray  # how many events the variance rests on
    dispersion: FloatArray
    size: FloatArray  # rows, or groups, of each


def _independent_noise(
    s: Sums, scale: FloatArray, joined: Callable[[FloatArray], FloatArray]
) -> _Noise:
    events, own = joined(s.prob_var * scale), joined(s.residual_var * scale)
    size = joined(s.weight) ** 2 / np.maximum(joined(s.weight_sq), 1e-300)
    hard = np.asarray(~s.label_var.any(axis=1, keepdims=True))
    variance = _calibrated_variance(events, own, hard) + _ROUNDING**2 * joined(s.weight_sq * scale)
    return _Noise(variance, None, events, _dispersion(events, own, hard), size)


def _grouped_noise(
    s: Sums,
    clusters: Clusters,
    scale: float,
    pool: npt.NDArray[np.intp],
    events: FloatArray,
) -> _Noise:
    """Take the variance from the groups' sums, whatever the labels; one table only."""
    starts = np.unique(pool, return_index=True)[1]

    def joined(square: FloatArray) -> FloatArray:
        out = np.zeros_like(square)
        out[: starts.size, : starts.size] = joined_square(square, starts)
        return out

    square, weight = joined(clusters.residual * scale), joined(clusters.weight)
    own = square.diagonal()[None, :]
    calibrated = np.zeros_like(own)
    calibrated[0, : starts.size] = np.add.reduceat(s.prob_var[0] * scale, starts)
    dispersion = own.sum(keepdims=True) / np.maximum(calibrated.sum(), 1e-300)
    variance = _shrunk(own, dispersion * calibrated, events)
    variance = variance + _ROUNDING**2 * scale * weight.diagonal()
    across = np.zeros_like(own)
    across[0, : starts.size] = np.add.reduceat(s.weight[0], starts)
    size = across**2 / np.maximum(weight.diagonal(), 1e-300)
    between = square - np.diag(square.diagonal())
    return _Noise(variance, between, events, np.ones((1, 1)), size)


def _shrunk(own: FloatArray, pooled: FloatArray, events: FloatArray) -> FloatArray:
    """Draw each variance towards what all bins say, the more the fewer events it rests on."""
    return (events * own + _SHRINKAGE * pooled) / (events + _SHRINKAGE)


def _dispersion(events: FloatArray, own: FloatArray, hard: npt.NDArray[np.bool_]) -> FloatArray:
    """Give how much of the variance of 0/1 labels the labels have, over the whole table."""
    total = np.maximum(events.sum(axis=-1, keepdims=True), 1e-300)
    return np.where(hard, 1.0, np.minimum(own.sum(axis=-1, keepdims=True) / total, 1.0))


def _calibrated_variance(
    events: FloatArray, own: FloatArray, hard: npt.NDArray[np.bool_]
) -> FloatArray:
    """Give the variance of the residuals of a calibrated model: shrunk where events are few."""
    pooled = _dispersion(events, own, hard) * events
    return np.where(hard, events, _shrunk(own, pooled, events))


def _pools_with_an_event(
    events: FloatArray, count: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], FloatArray]:
    """Join neighbouring bins until each pool expects an event, in every way the range allows.

    A single threshold would let a rounding of the sums decide which bins are joined. Returns, for
    each way, which table it is of, the pool of each bin, and the share of the range with that way.
    """
    found = [
        (table, pool, share)
        for table, both in enumerate(zip(events.tolist(), count.astype(bool).tolist(), strict=True))
        for pool, share in _ways_to_pool(*both)
    ]
    table, pool, share = zip(*found, strict=True)
    return np.array(table), np.array(pool, dtype=np.intp), np.array(share)


def _ways_to_pool(events: list[float], filled: list[bool]) -> Iterator[tuple[list[int], float]]:
    # Plain numbers: for the few bins of one table that is quicker than arrays.
    at, end = _EVENTS
    while at < end:
        pool, until = _pools_expecting(at, events, filled)
        until = min(until, end)
        yield pool, (until - at) / (_EVENTS[1] - _EVENTS[0])
        at = until


def _pools_expecting(
    least: float, events: list[float], filled: list[bool]
) -> tuple[list[int], float]:
    """Join bins, left to right, until each pool expects more than `least` events.

    Returns the least that any closed pool expects too: up to there the pools stay what they are.
    """
    last = max(b for b, has_rows in enumerate(filled) if has_rows)
    pool, current, expected, until = [], 0, 0.0, math.inf
    for b, more in enumerate(events):
        pool.append(current)
        expected += more
        if expected > least and b < last:
            until = min(until, expected)
            current, expected = current + 1, 0.0
    if expected > least:
        until = min(until, expected)
    elif current > 0:  # what is left joins its neighbour
        pool = [min(number, current - 1) for number in pool]
    return pool, until


def _joiner(pool: npt.NDArray[np.intp]) -> Callable[[FloatArray], FloatArray]:
    """Give a function that adds up the bins of each pool; places beyond the last pool are 0."""
    if (pool == np.arange(pool.shape[1])).all():  # with many rows nothing is joined
        return lambda values: values
    place = (pool + np.arange(len(pool))[:, None] * pool.shape[1]).ravel()

    def joined(values: FloatArray) -> FloatArray:
        out = np.bincount(place, values.ravel(), pool.size).astype(np.float64)
        return out.reshape(pool.shape)

    return joined


def _chance_of_bins(
    statistic: FloatArray, filled: npt.NDArray[np.bool_], noise: _Noise, safe: FloatArray
) -> FloatArray:
    """Match a chi-square to the mean and variance of the statistic over pools."""
    size = np.where(filled, noise.size, 1.0)
    sparse = noise.dispersion * (1 / np.maximum(noise.events, _NO_VARIANCE) - 6 / size)
    spread = np.maximum(2 + sparse, 2 * (1 - 1 / size))
    spread = np.maximum(np.where(filled, spread, 0.0).sum(axis=1), 1e-9)
    if noise.between is not None:  # Rao and Scott's correction
        spread = spread + 2 * (noise.between**2 / (safe * safe.T)).sum()
    k = filled.sum(axis=1)
    out: FloatArray = gammaincc(k**2 / spread, statistic * k / spread)
    return out


def _chance_of_trend(
    residual: FloatArray, noise: _Noise, mean_prob: FloatArray, weight: FloatArray
) -> FloatArray:
    """Test two directions: all too high or low, and too extreme or not extreme enough."""
    variance = noise.variance
    centre = (mean_prob * weight).sum(axis=1) / weight.sum(axis=1)
    c = mean_prob - centre[:, None]
    level, tilt = residual.sum(axis=1), (residual * c).sum(axis=1)
    a, b, d = variance.sum(axis=1), (variance * c).sum(axis=1), (variance * c**2).sum(axis=1)
    if noise.between is not None:
        shared = noise.between @ np.stack([np.ones_like(c[0]), c[0]], axis=1)
        a, b = a + shared[:, 0].sum(), b + (c[0] @ shared[:, 0])
        d = d + c[0] @ shared[:, 1]
    a = np.maximum(a, 1e-12 * variance.sum(axis=1))  # covariances may cancel it
    determinant = a * d - b**2
    # One pool, or all alike: only the level can be tested.
    tilted = np.clip(determinant / (_FLAT * a**2) - 1, 0.0, 1.0)
    both = d * level**2 - 2 * b * level * tilt + a * tilt**2
    both = np.maximum(both / np.where(tilted > 0, determinant, 1.0), 0.0)
    out: FloatArray = tilted * chdtrc(2, both) + (1 - tilted) * chdtrc(1, level**2 / a)
    return out


def _combined(first: FloatArray, second: FloatArray) -> FloatArray:
    """Combine two p-values of the same gaps by Cauchy's distribution."""
    # At 1 one cotangent would outweigh the other, however small that p-value is.
    inside = (np.clip(p, 1e-300, 1 - 1e-6) for p in (first, second))
    cotangent = sum(1 / np.tan(np.pi * p) for p in inside) / 2
    out: FloatArray = np.arctan2(1.0, cotangent) / np.pi
    return np.minimum(_SHARED * out, 1.0)


def _by_bin(
    terms: FloatArray,
    weight: FloatArray,
    pool: npt.NDArray[np.intp],
    joined: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """Share out what each pool brings over its bins, by the size of their residuals."""
    total = np.maximum(terms.sum(axis=1, keepdims=True), 1e-300)
    mass = np.maximum(np.take_along_axis(joined(weight), pool, axis=1), 1e-300)
    out: FloatArray = np.take_along_axis(terms / total, pool, axis=1) * weight / mass
    return out
