"""Two models on the items of the future, and how often `compare` will tell them apart.

As in `softcal.planning.forecast`, joint tables are drawn from the assumptions, by a fixed set of
draws, and the interval `compare` would give is computed for each.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from softcal.inference.folded import soft_sign
from softcal.inference.gaps import SHARPNESS, Gaps
from softcal.inference.joint import joint_table
from softcal.inference.paired_interval import DifferenceIntervals
from softcal.planning.forecast import correlated, fixed_draws, future_sums, residual_var
from softcal.planning.pilots import FEWEST_ITEMS, refuse_small_pilot

if TYPE_CHECKING:
    import numpy.typing as npt

    from softcal.door.inputs import FloatArray
    from softcal.inference.joint import JointTable
    from softcal.planning.forecast import Assumptions
    from softcal.table.bins import BinsLike
    from softcal.table.reliability import Reliability

# How far the predictions of two models of correlation 0 are apart, for the share of items in
# another bin: fitted to simulated pairs of correlations .36 to .87 (benchmarks/planning.py).
_APART = 0.084
_ROUNDING = 1e-15  # of a mean of numbers below 1


def pilot_correlation(
    y_true: npt.ArrayLike,
    first_prob: npt.ArrayLike,
    second_prob: npt.ArrayLike,
    *,
    bins: BinsLike = 10,
) -> float:
    r"""Estimate, from two models on the items of a pilot, what `plan_difference` asks for.

    The correlation of \(a_b d\) between the models, with d = p - y and \(a_b\) near the sign of
    the bin's gap, or near 0 where that is unsure. A small pilot is unsure of more bins, finds less
    and so leads to a plan on the safe side.

    Returns
    -------
    float
        0 where one model has nothing to correlate.

    Examples
    --------
    >>> from softcal.datasets import lidc_malignancy
    >>> d = lidc_malignancy()
    >>> r = pilot_correlation(d["soft_malignant"], d["prob_rf_all"], d["prob_lr_geometry"])
    >>> round(r, 2)
    0.75
    """
    joint = joint_table(y_true, first_prob, second_prob, bins=bins)
    if joint.n < FEWEST_ITEMS:
        refuse_small_pilot(joint.n)
    return correlation_of(joint)


def correlation_of(joint: JointTable) -> float:
    """Give the correlation of `pilot_correlation` from the joint table of rows without weights."""
    (sign_a, mean_a, var_a), (sign_b, mean_b, var_b) = (_signed(x) for x in (joint.a, joint.b))
    together = float(sign_a @ joint.cross @ sign_b) / joint.n - mean_a * mean_b
    # What is left of equal numbers after rounding is no spread.
    if min(var_a, var_b) <= _ROUNDING:
        return 0.0
    return min(max(together / math.sqrt(var_a * var_b), -1.0), 1.0)


def _signed(rel: Reliability) -> tuple[FloatArray, float, float]:
    """Give the signs of the bins' gaps, and mean and variance of the residuals times these."""
    t, _ = Gaps.of(rel.sums).in_errors()
    sign: FloatArray = soft_sign(t, SHARPNESS)
    mean = float(sign @ rel.sums.residual) / rel.n
    return sign, mean, float(sign**2 @ rel.sums.residual_var) / rel.n - mean**2


def power_of_difference(
    better: Assumptions,
    worse: Assumptions,
    correlation: float,
    items: int,
    votes: int,
    level: float,
) -> float:
    r"""Give the share of joint tables whose interval of the difference lies above 0.

    Some items are supposed to be in the bin next to that of the other model, and residuals to be
    correlated alike in all bins, by as much as gives the signed residuals this correlation. The
    lower limit is near enough to normal.
    """
    scale_w, scale_b = (np.sqrt(residual_var(x, votes)) for x in (worse, better))
    shared = _shared(worse, better, correlation, scale_w, scale_b)
    # What the better model's bins have of the worse one's draws, and what is their own.
    rest = np.linalg.cholesky(np.eye(len(shared)) - shared.T @ shared)
    u_w = _ratio(worse.gap, scale_w)
    u_b = np.linalg.solve(rest, _ratio(better.gap, scale_b) - shared.T @ u_w)
    draws = correlated(fixed_draws(2 * better.gap.size), np.concatenate([u_w, u_b]))
    own, other = np.split(draws, 2, axis=1)
    root = math.sqrt(items)
    residual_w = items * worse.gap + root * own * scale_w
    residual_b = items * better.gap + root * (own @ shared + other @ rest.T) * scale_b
    family = DifferenceIntervals(
        future_sums(worse, items, votes, residual_w),
        future_sums(better, items, votes, residual_b),
        items * scale_w[:, None] * shared * scale_b,
        np.asarray(items),
    )
    low, _ = family.limits(1 - level)
    mean, spread = float(low.mean()), float(low.std())
    return float(ndtr(mean / spread)) if spread > 0 else float(mean > 0)


def _shared(
    a: Assumptions, b: Assumptions, correlation: float, scale_a: FloatArray, scale_b: FloatArray
) -> FloatArray:
    """Give the uncentred correlation of the residuals in a bin of A (line) and one of B."""
    spread_a, spread_b = (
        max(float(scale @ scale) - x.smece**2, 0.0) for x, scale in ((a, scale_a), (b, scale_b))
    )
    wanted = correlation * math.sqrt(spread_a * spread_b) + a.smece * b.smece
    # Predictions differ by the difference in SMECE at the least, all in one direction.
    apart = math.hypot(_APART * math.sqrt(1 - correlation), (a.smece - b.smece) / 2)
    overlap = _overlap(a.gap.size, min(apart * a.gap.size, 1.0))
    most = float((np.sign(a.gap) * scale_a) @ overlap @ (np.sign(a.gap) * scale_b))
    alike = wanted / most if most > 0 else 0.0
    return min(max(alike, -0.999999), 0.999999) * overlap


def _overlap(n_bins: int, moved: float) -> FloatArray:
    """Say which share of the items of a bin (line) is in which bin of the other model."""
    beside = np.full(n_bins - 1, moved / 2)
    out = np.diag(beside, 1) + np.diag(beside, -1)
    return out + np.diag(1 - out.sum(axis=1))


def _ratio(x: FloatArray, y: FloatArray) -> FloatArray:
    return np.divide(x, y, out=np.zeros_like(x), where=y > 0)
