"""Forecast the width and power of a study from its assumptions."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

from softcal._validation.rules import is_number, is_whole
from softcal.bins import Bins, BinsLike
from softcal.exceptions import InputError, InputTypeError
from softcal.inference.comparison import DifferenceIntervals
from softcal.inference.intervals import (
    SHARPNESS,
    Gaps,
    interval_limits,
    limits_of,
    outcomes,
    residual_variance,
    soft_sign,
)
from softcal.table.build import tables_of_models
from softcal.table.kernel import SUM_NAMES, Sums
from softcal.table.owners import SharedByRaters, positive

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from softcal._validation.inputs import FloatArray
    from softcal.table.joint import JointTable
    from softcal.table.reliability import Reliability

FEWEST_ITEMS = 50
"""The lowest number of items of a pilot or plan; below it, widths may not decrease with n."""


def _shrinkage(s: Sums) -> float:
    """Return the factor that corrects the squared gaps for the bias from noise."""
    squares = _ratio(s.residual**2, residual_variance(s))
    seen, by_noise = float(squares.sum()), int((s.count > 0).sum())
    return math.sqrt(1 - by_noise / seen) if seen > by_noise else 0.0


def _split_by_votes(s: Sums) -> tuple[FloatArray, FloatArray, int | None]:
    """Split the sums of squared residuals per bin into the parts of items and of votes."""
    squares, zeros = s.residual_var, np.zeros_like(s.residual_var)
    if not s.votes.any():
        return squares, zeros, 0 if s.label_var.any() else 1
    if not s.repeated.any():
        return squares, zeros, 1
    # y(1-y) m/(m-1) is unbiased for y*(1-y*). Rows of one vote give no estimate, so bins with only
    # such rows use the mean of the others.
    seen = s.label_var + s.vote_noise
    mean = seen.sum() / s.repeated.sum()
    per_row = np.divide(seen, s.repeated, out=np.full_like(seen, mean), where=s.repeated > 0)
    single = s.count - s.repeated
    return squares - s.vote_noise - single * per_row, per_row * s.count, None


def _refuse_bad_pilot(rel: Reliability) -> None:
    if rel.clusters is not None:
        message = (
            "a plan assumes independent rows, and this pilot has groups, so it would have too few "
            "items. Build the pilot from one row per group, and plan the number of groups."
        )
        raise InputError(message)
    s = rel.sums
    _refuse_small_pilot(rel.n)
    if (s.weight != s.count).any():
        message = "a pilot must have no weights: build it without them."
        raise InputError(message)
    silent = int((s.votes < s.count).sum())
    if s.votes.any() and silent:
        message = (
            f"a pilot must have numbers of votes for every item, or for none: in {silent} of "
            f"{s.count.size} bins some are missing. Pass the number of votes of every row."
        )
        raise InputError(message)


def _refuse_small_pilot(n: int) -> None:
    if n < FEWEST_ITEMS:
        message = (
            f"a pilot needs at least {FEWEST_ITEMS} items: this one has {n}. State smece "
            "and label_spread instead (--smece X --label-spread X)."
        )
        raise InputError(message)


MOST_ITEMS = 10**9
MOST_VOTES = 1000

_MOST_BINS = 10_000
_DRAWS = 128


@dataclass(frozen=True, eq=False, repr=False)
class Assumptions:
    r"""The assumptions of a plan about model and labels, from a pilot or stated.

    Attributes
    ----------
    share : ndarray
        The share of items in each bin.
    gap : ndarray
        \(E[(p - y^*) 1_b]\): the signed contribution of each bin to SMECE.
    item_var : ndarray
        \(E[(p - y^*)^2 1_b]\): the noise that only more items reduce.
    vote_var : ndarray
        \(E[y^*(1 - y^*) 1_b]\): the noise of one vote, which more votes reduce too.
    prob_var : ndarray
        \(E[p(1 - p) 1_b]\): the variance of an outcome of a calibrated model.
    prob : ndarray
        \(E[p 1_b]\): the mean prediction, times the share of the bin.
    outcome_prob_var, outcome_residual_var : ndarray
        The means of \(p(1 - p)\) and of \((p - y)^2\) over labels of exactly 0 or 1, in a pilot
        whose other labels are soft: \(E[p(1 - p) 1_b 1_{y = 0, 1}]\), and likewise for the second.
    fixed_votes : int or None
        The only number of votes per item that can be planned: 1 after a pilot of outcomes, 0 after
        a pilot whose labels are not votes. None if any number can be planned.
    rater_cov : ndarray of shape (bins, bins) or None
        Covariances of the raters' own mean residuals, each bin weighted by its share. None if the
        raters are unknown.
    smece_low : float or None
        The lower 95% limit of SMECE in a pilot. None if SMECE is stated.
    """

    share: FloatArray
    gap: FloatArray
    item_var: FloatArray
    vote_var: FloatArray
    prob_var: FloatArray
    prob: FloatArray
    outcome_prob_var: FloatArray
    outcome_residual_var: FloatArray
    fixed_votes: int | None
    rater_cov: FloatArray | None = None
    smece_low: float | None = None

    def __post_init__(self) -> None:
        if self.gap.size > _MOST_BINS:
            message = (
                f"a plan takes at most {_MOST_BINS:,} bins: there are {self.gap.size:,}. Use fewer."
            )
            raise InputError(message)
        for array in vars(self).values():
            if isinstance(array, np.ndarray):
                array.setflags(write=False)

    def __repr__(self) -> str:
        return f"Assumptions(smece={self.smece:.4g}, bins={self.gap.size})"

    @staticmethod
    def from_pilot(rel: Reliability) -> Assumptions:
        r"""Estimate the assumptions from a pilot table.

        To plan the number of votes, build the pilot with `n_votes`, and with two or more votes on
        some items. Noise increases the gaps of a small pilot, so all gaps are multiplied by
        \(\sqrt{1 - B / \sum_b t_b^2}\), or by 0 if the root is not real. Here t are the gaps in
        standard errors, and B is the number of bins with rows.

        Parameters
        ----------
        rel : Reliability
            A table without weights, of at least 50 items from the population of the study. Build it
            with `raters=True` to plan the number of raters.

        Examples
        --------
        >>> from softcal import reliability
        >>> from softcal.datasets import lidc_malignancy
        >>> d = lidc_malignancy()
        >>> rel = reliability(d["soft_malignant"], d["prob_rf_all"], n_votes=d["n_readers"])
        >>> assumptions = Assumptions.from_pilot(rel)
        >>> round(assumptions.smece, 3)
        0.093
        """
        _refuse_bad_pilot(rel)
        s = rel.sums
        share = s.count / rel.n
        gap = s.residual / rel.n * _shrinkage(s)
        item, vote, fixed_votes = _split_by_votes(s)
        # A mean square is at least the squared mean, also in the presence of noise. The votes' part
        # decreases by as much as the items' part increases, so that their sum is as observed.
        least = _ratio(gap**2, share) * rel.n
        at_least = np.minimum(np.maximum(item, least), s.residual_var)
        kept = np.divide(s.residual_var - at_least, s.residual_var - item,
                         out=np.ones_like(gap), where=s.residual_var > item)  # fmt: skip
        # If every label is 0 or 1, or a vote share, the number of votes determines the variance.
        expected, seen = outcomes(s) if fixed_votes == 0 else (np.zeros_like(gap),) * 2
        return Assumptions(
            share, gap, at_least / rel.n, kept * vote / rel.n, s.prob_var / rel.n,
            (s.label + s.residual) / rel.n, expected / rel.n, seen / rel.n, fixed_votes,
            _rater_cov(rel), float(interval_limits(s, 0.95)[1]),
        )  # fmt: skip

    @staticmethod
    def stated(
        *, smece: float, label_spread: float, rater_spread: float = 0.0, bins: BinsLike = 10
    ) -> Assumptions:
        r"""Assume predictions that are uniform on [0, 1] and too extreme by the same amount.

        The mean label of a bin is its midpoint, moved toward 0.5 by `smece`. Real predictions are
        mostly near 0 and 1, where votes agree more. The plan then has more items than needed.

        Parameters
        ----------
        smece : float
            The expected SMECE, between 0 and 0.5.
        label_spread : float
            The standard deviation of the items' true probabilities \(y^*\) in a bin, between 0
            and 0.5. It is 0 if items with equal predictions have equal probabilities, and 0.5 if
            all voters always agree. It does not matter for one vote per item.
        rater_spread : float, default=0
            The standard deviation between raters of their mean vote on the same items, between 0
            and 0.5. It is used if the number of raters is given.
        bins : int, Bins, or edges, default=10
            The bins of the future table.

        Examples
        --------
        >>> assumptions = Assumptions.stated(smece=0.05, label_spread=0.15)
        >>> round(assumptions.half_width(1000, votes=1), 3)
        0.031
        """
        refuse_outside("smece", smece, 0, 0.5, closed=True)
        refuse_outside("label_spread", label_spread, 0, 0.5, closed=True)
        refuse_outside("rater_spread", rater_spread, 0, 0.5, closed=True)
        edges = Bins.of(bins).edges
        share = np.diff(edges)
        middle = (edges[1:] + edges[:-1]) / 2
        gap = np.where(middle < 0.5, -smece, smece)
        label = middle - gap
        spread = np.minimum(label_spread**2, label * (1 - label))
        return Assumptions(
            share=share,
            gap=share * gap,
            item_var=share * (gap**2 + spread),
            vote_var=share * (label * (1 - label) - spread),
            prob_var=share * (middle * (1 - middle) - share**2 / 12),
            prob=share * middle,
            outcome_prob_var=np.zeros_like(share),
            outcome_residual_var=np.zeros_like(share),
            fixed_votes=None,
            rater_cov=np.outer(share, share) * rater_spread**2,
        )

    @property
    def smece(self) -> float:
        """The assumed SMECE."""
        return float(np.abs(self.gap).sum())

    def with_smece(self, smece: float) -> Assumptions:
        """Return the assumptions with another SMECE: all gaps are multiplied by the same factor.

        If all gaps are 0, every bin gets the same gap.

        Parameters
        ----------
        smece : float
            The new SMECE.

        Examples
        --------
        >>> round(Assumptions.stated(smece=0.05, label_spread=0.1).with_smece(0.02).smece, 9)
        0.02
        """
        pattern = self.gap / self.smece if self.smece > 0 else self.share
        gap = pattern * smece
        most = float(np.divide(self.share, np.abs(pattern), where=pattern != 0,
                               out=np.full_like(gap, np.inf)).min())  # fmt: skip
        refuse_outside("smece", smece, 0, most, closed=True)
        change = _ratio(gap**2 - self.gap**2, self.share)
        item_var = np.maximum(self.item_var + change, 0.0)
        return replace(self, gap=gap, item_var=item_var, smece_low=None)

    def half_width(
        self, items: int, *, votes: int, raters: int | None = None, level: float = 0.95
    ) -> float:
        r"""Return the expected half-width of the interval of `smece_interval`.

        Parameters
        ----------
        items : int
            The number of items, at least 50.
        votes : int
            Votes per item; 0 if the labels are not votes.
        raters : int, optional
            The number of raters who share the votes equally, for an interval over new raters too.
        level : float, default=0.95
            The level of the interval.

        Examples
        --------
        >>> assumptions = Assumptions.stated(smece=0.05, label_spread=0.15)
        >>> for votes in (1, 3, 10):
        ...     print(round(assumptions.half_width(1000, votes=votes), 4))
        0.0307
        0.019
        0.0133
        """
        refuse_outside("level", level, 0, 1)
        _refuse_other_numbers("items", items, FEWEST_ITEMS, MOST_ITEMS)
        allowed = allowed_votes(self, votes)
        return mean_half_width(self, items, allowed, level, allowed_raters(self, raters, allowed))


def _rater_cov(rel: Reliability) -> FloatArray | None:
    """Return the covariances of raters' mean residuals, from their part of those of bins."""
    if rel.raters is None or rel.ties is None or rel.ties.raters is None:
        return None
    _, weight, _, _, weight_sq = rel.raters.values
    pairs = (np.bincount(rel.raters.owner, weight) ** 2).sum() - weight_sq.sum()
    return np.asarray(positive(rel.ties.raters.covariance) / pairs)


def allowed_raters(a: Assumptions, raters: int | None, votes: int) -> int | None:
    """Validate a number of raters against the assumptions and return it."""
    if raters is None:
        return None
    if not is_whole(raters) or raters < max(2, votes):
        message = (
            f"raters must be a whole number of at least {max(2, votes)}, because the raters of an "
            f"item differ: got {raters!r:.60}."
        )
        raise InputError(message)
    if a.rater_cov is None or not votes:
        message = (
            "raters can be planned only if their spread is known: build the pilot from Votes with "
            "raters=True, or state rater_spread."
        )
        raise InputError(message)
    return int(raters)


# Simulated tables


@lru_cache(maxsize=16)
def fixed_draws(n_bins: int) -> FloatArray:
    """Return fixed normal numbers of shape (draws, bins), stratified within each bin."""
    rng = np.random.default_rng(0)
    strata = ndtri((np.arange(_DRAWS) + 0.5) / _DRAWS)
    return rng.permuted(np.tile(strata, (n_bins, 1)), axis=1).T


def future_sums(a: Assumptions, items: int, votes: int, residual: FloatArray) -> Sums:
    """Return the sums of tables of n items: the given residuals, and the means of other sums."""
    square = residual_var(a, votes)
    per_item = {
        **dict.fromkeys(("count", "weight", "weight_sq"), a.share),
        **dict.fromkeys(("residual_sq", "residual_var"), square),
        "prob_var": a.prob_var,
        "repeated": a.share * (votes > 1),
        "vote_floor": a.prob_var / (votes or math.inf),
        "outcome_prob_var": a.outcome_prob_var,
        "outcome_residual_var": a.outcome_residual_var,
    }
    sums = dict.fromkeys(SUM_NAMES, np.zeros(residual.shape))
    sums |= {name: np.broadcast_to(items * x, residual.shape) for name, x in per_item.items()}
    # Only the sign of `label_var` matters: whether there are soft labels.
    soft = votes == 0 or (votes > 1 and bool(a.vote_var.any()))
    sums |= {"residual": residual, "label": items * a.prob - residual}
    return Sums(**sums | {"label_var": np.full(residual.shape, float(soft))})


def residual_var(a: Assumptions, votes: int) -> FloatArray:
    """Return the mean square of an item's residual in each bin; 0 votes if labels are not votes."""
    return a.item_var + a.vote_var / votes if votes else a.item_var


def correlated(draws: FloatArray, u: FloatArray) -> FloatArray:
    r"""Return normal numbers with the covariance \(I - u u^T\), that of sums over random counts."""
    length = float(u @ u)  # at most 1, except for rounding
    shrink = (1 - math.sqrt(max(0.0, 1 - length))) / length if length > 0 else 0.0
    return draws - shrink * (draws @ u)[:, None] * u


def mean_half_width(
    a: Assumptions, items: int, votes: int, level: float, raters: int | None = None
) -> float:
    """Return the mean half-width of intervals over tables drawn from the assumptions."""
    scale = np.sqrt(residual_var(a, votes))
    u = _ratio(a.gap, scale)
    joint = correlated(fixed_draws(a.gap.size), u)
    residual = items * a.gap + math.sqrt(items) * joint * scale
    if raters is None or a.rater_cov is None:
        _, low, high = interval_limits(future_sums(a, items, votes, residual), level)
        return float((high - low).mean()) / 2
    # Pairs of votes of one rater on two items, if all raters have equally many votes.
    pairs = max(items**2 / raters - items / votes, 0.0)
    extra = a.rater_cov * pairs
    values, vectors = np.linalg.eigh(extra)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    size = a.gap.size
    residual = residual + fixed_draws(2 * size)[:, size:] @ root.T
    own = Gaps.of(future_sums(a, items, votes, residual[:1]))
    square = np.diag(own.variance[0]) + extra
    per_rater = square.diagonal() / raters
    noise = np.outer(per_rater, per_rater) * raters
    shared = SharedByRaters(extra, noise, a.prob_var, float(raters))
    gaps = Gaps(
        residual, square.diagonal(), square, own.weight[0], own.weight_sq[0],
        np.diag(own.weight_sq[0]), np.full(len(residual), float(items)),
        np.full(len(residual), float(items)), np.full(len(residual), 1.0 / votes), shared,
    )  # fmt: skip
    low, high = limits_of(gaps, 1 - level)
    return float((high - low).mean()) / 2


# Input validation


def allowed_votes(a: Assumptions, votes: int) -> int:
    """Validate `votes` against the assumptions and return it."""
    _refuse_other_numbers("votes", votes, 1 if a.fixed_votes is None else 0, MOST_VOTES)
    if a.fixed_votes not in (None, votes):
        why = (
            "1: a pilot with one vote per item does not show the effect of more votes. Build a "
            "pilot with two or more votes on some items"
            if a.fixed_votes
            else "0: the labels of the pilot have no numbers of votes. Build one that has them"
        )
        message = f"votes must be omitted, or {why}, to plan for {votes}."
        raise InputError(message)
    return int(votes)


def _refuse_other_numbers(name: str, value: int, low: int, high: int) -> None:
    if not is_whole(value):
        message = f"{name} must be a whole number: got {value!r:.60}."
        raise InputTypeError(message)
    if not low <= value <= high:
        message = f"{name} must be between {low} and {high:,}: got {value}."
        raise InputError(message)


def refuse_outside(
    name: str, value: float, low: float, high: float, *, closed: bool = False
) -> None:
    """Raise if a value is not a number in a range; closed ranges include their limits."""
    if isinstance(value, bool) or not is_number(value):
        message = f"{name} must be a number: got {value!r:.60}."
        raise InputTypeError(message)
    inside = low <= value <= high if closed else low < value < high
    endless = value > sys.float_info.max if isinstance(value, int) else math.isinf(value)
    if not inside or endless:
        upper = f"and {'at most' if closed else 'below'} {high:g}" if math.isfinite(high) else ""
        lower = f"{'at least' if closed else 'above'} {low:g}"
        message = f"{name} must be {f'{lower} {upper}'.strip()}: got {value!r:.60}."
        raise InputError(message)


# The distance between predictions of two models of correlation 0, for the share of items in another
# bin. Fitted to simulated pairs of correlations 0.36 to 0.87 (benchmarks/planning.py).
_APART = 0.084
_ROUNDING = 1e-15  # of a mean of numbers below 1


def pilot_correlation(
    y_true: npt.ArrayLike, y_prob: Mapping[str, npt.ArrayLike], *, bins: BinsLike = 10
) -> float:
    r"""Estimate the correlation that `plan_difference` needs, from two models on a pilot.

    It is the correlation of \(a_b d\) between the models, with d = p - y. The factor \(a_b\) is
    near the sign of the bin's gap, or near 0 if the sign is uncertain. In a small pilot, more signs
    are uncertain, so the estimate is lower and the plan is conservative.

    Parameters
    ----------
    y_true, bins
        As in `reliability`, with at least 50 items.
    y_prob : mapping from str to array-like of shape (n,)
        The predictions of two models.

    Returns
    -------
    float
        The correlation; 0 if the residuals of one model do not vary.

    Examples
    --------
    >>> from softcal.datasets import lidc_malignancy
    >>> d = lidc_malignancy()
    >>> models = {"forest": d["prob_rf_all"], "logistic": d["prob_lr_geometry"]}
    >>> round(pilot_correlation(d["soft_malignant"], models), 2)
    0.75
    """
    joint = tables_of_models(y_true, y_prob, bins=bins).pair(*y_prob)
    _refuse_small_pilot(joint.n)
    return correlation_of(joint)


def correlation_of(joint: JointTable) -> float:
    """Return the correlation of `pilot_correlation` from a joint table without weights."""
    (sign_a, mean_a, var_a), (sign_b, mean_b, var_b) = (_signed(x) for x in (joint.a, joint.b))
    together = float(sign_a @ joint.cross @ sign_b) / joint.n - mean_a * mean_b
    # Rounding errors of equal numbers are not a variance.
    if min(var_a, var_b) <= _ROUNDING:
        return 0.0
    return min(max(together / math.sqrt(var_a * var_b), -1.0), 1.0)


def _signed(rel: Reliability) -> tuple[FloatArray, float, float]:
    """Return the signs of the bins' gaps, and mean and variance of the signed residuals."""
    s = rel.sums
    floor = s.prob_var if rel.has_hard_labels else s.vote_floor
    sign: FloatArray = soft_sign(
        _ratio(s.residual, np.sqrt(np.maximum(s.residual_var, floor))), SHARPNESS
    )
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
    r"""Return the share of joint tables whose interval of the difference lies above 0.

    Some items are assumed to be in a neighboring bin of the other model. Residuals are assumed to
    be equally correlated in all bins, so that signed residuals have the given correlation. The
    lower limit is approximately normal.
    """
    scale_w, scale_b = (np.sqrt(residual_var(x, votes)) for x in (worse, better))
    shared = _shared(worse, better, correlation, scale_w, scale_b)
    # The draws of the better model: the part shared with the worse model, and their own part.
    rest = np.linalg.cholesky(np.eye(len(shared)) - shared.T @ shared)
    u_w = _ratio(worse.gap, scale_w)
    u_b = np.linalg.solve(rest, _ratio(better.gap, scale_b) - shared.T @ u_w)
    draws = correlated(fixed_draws(2 * better.gap.size), np.concatenate([u_w, u_b]))
    own, other = np.split(draws, 2, axis=1)
    root = math.sqrt(items)
    residual_w = items * worse.gap + root * own * scale_w
    residual_b = items * better.gap + root * (own @ shared + other @ rest.T) * scale_b
    sums_w = future_sums(worse, items, votes, residual_w)
    sums_b = future_sums(better, items, votes, residual_b)
    # Each model expects the events of the pilot, whatever gaps are assumed. Otherwise more events
    # than expected would bound SMECE below, although no gap shows it.
    sums_w, sums_b = (
        replace(x, prob_var=np.maximum(x.prob_var, x.residual_var)) for x in (sums_w, sums_b)
    )
    cross = items * scale_w[:, None] * shared * scale_b
    family = DifferenceIntervals(sums_w, sums_b, cross, np.asarray(items))
    low, _ = family.limits(1 - level)
    mean, spread = float(low.mean()), float(low.std())
    return float(ndtr(mean / spread)) if spread > 0 else float(mean > 0)


def _shared(
    a: Assumptions, b: Assumptions, correlation: float, scale_a: FloatArray, scale_b: FloatArray
) -> FloatArray:
    """Return the uncentered correlation of the residuals in a bin of A (row) and a bin of B."""
    spread_a, spread_b = (
        max(float(scale @ scale) - x.smece**2, 0.0) for x, scale in ((a, scale_a), (b, scale_b))
    )
    wanted = correlation * math.sqrt(spread_a * spread_b) + a.smece * b.smece
    # Predictions differ at least by the difference in SMECE, all in one direction.
    apart = math.hypot(_APART * math.sqrt(1 - correlation), (a.smece - b.smece) / 2)
    overlap = _overlap(a.gap.size, min(apart * a.gap.size, 1.0))
    most = float((np.sign(a.gap) * scale_a) @ overlap @ (np.sign(a.gap) * scale_b))
    alike = wanted / most if most > 0 else 0.0
    return min(max(alike, -0.999999), 0.999999) * overlap


def _overlap(n_bins: int, moved: float) -> FloatArray:
    """Return the share of the items of a bin (row) in each bin of the other model."""
    beside = np.full(n_bins - 1, moved / 2)
    out = np.diag(beside, 1) + np.diag(beside, -1)
    return out + np.diag(1 - out.sum(axis=1))


def _ratio(x: FloatArray, y: FloatArray) -> FloatArray:
    """Divide; the result is 0 if the divisor is 0."""
    return np.divide(x, y, out=np.zeros_like(x), where=y > 0)
