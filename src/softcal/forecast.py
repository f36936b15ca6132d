r"""What is supposed about model and labels, and what tables of the future follow from it.

The label of an item is the share of \(m\) votes, each cast with the item's own probability
\(y^*\). Then SMECE does not depend on \(m\), but the variance of an item's residual does:
\(E(p - k/m)^2 = E(p - y^*)^2 + E\,y^*(1 - y^*)/m\), an item's part and a vote's part.

The expected interval is not a formula of its own: `softcal.inference` is asked for the interval of
tables of n items, drawn from the assumptions, and the widths are averaged. The draws are a
fixed set, so the same question always has the same answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from softcal import inputs
from softcal.bins import Bins, BinsLike
from softcal.errors import InputError, InputTypeError
from softcal.folded import cautious_abs, soft_sign
from softcal.inference import interval_limits
from softcal.kernel import Sums
from softcal.reliability import from_rows

if TYPE_CHECKING:
    import numpy.typing as npt

    from softcal.inputs import FloatArray
    from softcal.reliability import Reliability

FEWEST_ITEMS = 50
"""Below this neither a pilot nor a plan is worth its name, and widths need not fall with n."""

MOST_ITEMS = 10**9
MOST_VOTES = 1000

_MOST_BINS = 10_000
_DRAWS = 128
_SHARPNESS = 0.8  # as in the lower limit of `softcal.inference`


@dataclass(frozen=True, eq=False)
class Assumptions:
    r"""What a plan has to suppose about model and labels; made from a pilot, or stated.

    Attributes
    ----------
    share : ndarray
        The share of items in each bin.
    gap : ndarray
        \(E[(p - y^*) 1_b]\): what each bin brings to SMECE, with its sign.
    item_var : ndarray
        \(E[(p - y^*)^2 1_b]\): the noise that only more items average away.
    vote_var : ndarray
        \(E[y^*(1 - y^*) 1_b]\): the noise of one vote, which more votes average away too.
    prob_var : ndarray
        \(E[p(1 - p) 1_b]\).
    fixed_votes : int or None
        The only number of votes per item these assumptions can speak of: 1 after a pilot of
        outcomes, 0 after one whose labels are not votes. None where any number can be planned.
    """

    share: FloatArray
    gap: FloatArray
    item_var: FloatArray
    vote_var: FloatArray
    prob_var: FloatArray
    fixed_votes: int | None

    def __post_init__(self) -> None:
        if self.gap.size > _MOST_BINS:
            message = (
                f"a plan takes at most {_MOST_BINS:,} bins: there are {self.gap.size:,}. "
                "Coarsen the table."
            )
            raise InputError(message)
        for array in (self.share, self.gap, self.item_var, self.vote_var, self.prob_var):
            array.setflags(write=False)

    @staticmethod
    def from_pilot(rel: Reliability) -> Assumptions:
        r"""Learn from a first table what a larger one will be like.

        Build it with `n_votes=`, and with two votes or more on some items, to plan the number
        of votes. Noise makes the gaps of a small pilot look larger than they are, so all are
        multiplied by \(\sqrt{1 - B / \sum_b t_b^2}\), or 0 if that is less, with t the gaps in
        standard errors and B the number of bins with rows.

        Parameters
        ----------
        rel : Reliability
            A table without weights, of at least 50 items drawn as the later ones will be.

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
        s = rel.sums
        _refuse_bad_pilot(rel)
        share = s.count / rel.n
        gap = s.residual / rel.n * _shrinkage(s)
        item, vote, fixed = _split_by_votes(s)
        # However the noise falls, a mean square is not below the squared mean. What the items' part
        # gains by that the votes' loses, so that both still add up to what was seen.
        least = np.divide(gap**2, share, out=np.zeros_like(gap), where=share > 0) * rel.n
        at_least = np.minimum(np.maximum(item, least), s.residual_var)
        kept = np.divide(s.residual_var - at_least, s.residual_var - item,
                         out=np.ones_like(gap), where=s.residual_var > item)  # fmt: skip
        return Assumptions(
            share, gap, at_least / rel.n, kept * vote / rel.n, s.prob_var / rel.n, fixed
        )

    @staticmethod
    def stated(*, smece: float, label_spread: float, bins: BinsLike = 10) -> Assumptions:
        r"""Suppose predictions spread evenly over [0, 1] and too extreme by the same amount.

        The mean label of a bin is its middle, moved towards 0.5 by `smece`. Real predictions
        mostly crowd near 0 and 1, where votes agree more: then such a plan asks for too much.

        Parameters
        ----------
        smece : float
            The SMECE expected, between 0 and 0.5.
        label_spread : float
            The standard deviation of the items' own probabilities \(y^*\) inside a bin, between
            0 and 0.5: 0 if items with equal predictions are equally likely to get a vote, 0.5 if
            all voters always agree. For one vote per item it makes no difference.
        bins : int, Bins or edges, default 10
            The bins of the table to come.

        Examples
        --------
        >>> assumptions = Assumptions.stated(smece=0.05, label_spread=0.15)
        >>> round(assumptions.half_width(1000, votes=1), 3)
        0.032
        """
        refuse_outside("smece", smece, 0, 0.5, closed=True)
        refuse_outside("label_spread", label_spread, 0, 0.5, closed=True)
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
            fixed_votes=None,
        )

    @property
    def smece(self) -> float:
        """The SMECE supposed."""
        return float(np.abs(self.gap).sum())

    def with_smece(self, smece: float) -> Assumptions:
        """Suppose another SMECE: all gaps larger or smaller by the same factor.

        Where there is no gap to enlarge, every bin gets the same one.

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
        change = np.divide(
            gap**2 - self.gap**2, self.share, out=np.zeros_like(gap), where=self.share > 0
        )
        item_var = np.maximum(self.item_var + change, 0.0)
        return Assumptions(
            self.share, gap, item_var, self.vote_var, self.prob_var, self.fixed_votes
        )

    def half_width(self, items: int, *, votes: int, level: float = 0.95) -> float:
        r"""Give half the mean width of the interval that `smece_interval` will find.

        Parameters
        ----------
        items : int
            At least 50.
        votes : int
            Votes per item; 0 where the labels are not votes.

        Examples
        --------
        >>> assumptions = Assumptions.stated(smece=0.05, label_spread=0.15)
        >>> for votes in (1, 3, 10):
        ...     print(round(assumptions.half_width(1000, votes=votes), 4))
        0.0322
        0.0202
        0.0139
        """
        refuse_outside("level", level, 0, 1)
        _refuse_bad_items(items)
        return mean_half_width(self, items, allowed_votes(self, votes), level)


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
    binned = Bins.of(bins)
    first, second = (_signed_residuals(y_true, p, binned) for p in (first_prob, second_prob))
    if first.size < FEWEST_ITEMS:
        _refuse_small_pilot(first.size)
    scale = float(first.std() * second.std())
    return (
        float(np.mean((first - first.mean()) * (second - second.mean()))) / scale if scale else 0.0
    )


# What assumptions are made of


def _shrinkage(s: Sums) -> float:
    """Give the factor that takes off the gaps what noise has added to their squares."""
    variance = np.maximum(s.residual_var, s.vote_floor if s.label_var.any() else s.prob_var)
    squares = np.divide(s.residual**2, variance, out=np.zeros_like(variance), where=variance > 0)
    seen, by_noise = float(squares.sum()), int((s.count > 0).sum())
    return math.sqrt(1 - by_noise / seen) if seen > by_noise else 0.0


def _split_by_votes(s: Sums) -> tuple[FloatArray, FloatArray, int | None]:
    """Tell the items' part of the squared residuals from the votes'; sums over rows, per bin."""
    squares, none = s.residual_var, np.zeros_like(s.residual_var)
    if not s.votes.any():
        return squares, none, 0 if s.label_var.any() else 1
    if not s.repeated.any():
        return squares, none, 1
    # y(1-y) m/(m-1) is unbiased for y*(1-y*); a row of one vote says nothing of it, and bins
    # that have only such rows borrow the others' mean.
    seen = s.label_var + s.vote_noise
    mean = seen.sum() / s.repeated.sum()
    per_row = np.divide(seen, s.repeated, out=np.full_like(seen, mean), where=s.repeated > 0)
    single = s.count - s.repeated
    return squares - s.vote_noise - single * per_row, per_row * s.count, None


def _refuse_bad_pilot(rel: Reliability) -> None:
    s = rel.sums
    if rel.n < FEWEST_ITEMS:
        _refuse_small_pilot(rel.n)
    if (s.weight != s.count).any():
        message = "a pilot must have no weights: build the table without sample_weight."
        raise InputError(message)
    silent = int((s.votes < s.count).sum())
    if s.votes.any() and silent:
        message = (
            f"a pilot must say the votes of every item, or of none: in {silent} of {s.count.size} "
            "bins some are missing. Build all parts of the table with n_votes."
        )
        raise InputError(message)


def _refuse_small_pilot(n: int) -> None:
    message = f"a pilot needs at least {FEWEST_ITEMS} items: this one has {n}. State assumptions."
    raise InputError(message)


def _signed_residuals(y_true: npt.ArrayLike, y_prob: npt.ArrayLike, bins: Bins) -> FloatArray:
    rows = inputs.rows(y_true, y_prob)
    _, t = _standard_errors(from_rows(rows, bins).sums)
    p, y = inputs.as_float64(rows.y_prob), inputs.as_float64(rows.y_true)
    out: FloatArray = soft_sign(t, _SHARPNESS)[bins.locate(p)] * (p - y)
    return out


# Tables of the future


@lru_cache(maxsize=16)
def _draws(n_bins: int) -> FloatArray:
    """Give normal numbers of shape (draws, bins), the same always; each bin's are stratified."""
    rng = np.random.default_rng(0)
    strata = ndtri((np.arange(_DRAWS) + 0.5) / _DRAWS)
    return rng.permuted(np.tile(strata, (n_bins, 1)), axis=1).T


def _drawn_sums(a: Assumptions, items: int, votes: int, draws: FloatArray) -> Sums:
    r"""Give the sums of tables of n items, one for each draw.

    The residuals' sums have mean \(n\,\mathrm{gap}\) and covariance
    \(n(\mathrm{diag}(Q) - \mathrm{gap}\,\mathrm{gap}^T)\); all else is at its mean.
    """
    square = a.item_var + a.vote_var / votes if votes else a.item_var
    scale = np.sqrt(square)
    u = np.divide(a.gap, scale, out=np.zeros_like(scale), where=scale > 0)
    length = float(u @ u)  # at most 1
    shrink = (1 - math.sqrt(max(0.0, 1 - length))) / length if length > 0 else 0.0
    joint = draws - shrink * (draws @ u)[:, None] * u  # covariance I - u u^T
    residual = items * a.gap + math.sqrt(items) * joint * scale

    def each(per_item: FloatArray) -> FloatArray:
        return np.broadcast_to(items * per_item, residual.shape)

    soft = votes == 0 or (votes > 1 and bool(a.vote_var.any()))
    none = np.zeros(residual.shape)
    return Sums(
        count=each(a.share),  # type: ignore[arg-type]  # expected, so not whole
        weight=each(a.share),
        weight_sq=each(a.share),
        label=none,
        residual=residual,
        residual_sq=each(square),
        residual_var=each(square),
        prob_var=each(a.prob_var),
        label_var=none + soft,  # only whether there are soft labels matters
        votes=none,
        repeated=none,
        vote_floor=each(a.prob_var / votes) if votes else none,
        vote_noise=none,
    )


def mean_half_width(a: Assumptions, items: int, votes: int, level: float) -> float:
    """Average, over tables drawn from the assumptions, half the width of their intervals."""
    _, low, high = interval_limits(_drawn_sums(a, items, votes, _draws(a.gap.size)), level)
    return float((high - low).mean()) / 2


def power_of_difference(
    better: Assumptions,
    worse: Assumptions,
    correlation: float,
    items: int,
    votes: int,
    level: float,
) -> float:
    r"""Give the share of tables whose interval of the difference lies above 0.

    The lower limit of the difference is that of the paired comparison (METHODS, section 4),
    \(\ell_w - u_b - \sqrt{l_w^2 + u_b^2 - 2 r l_w u_b}\) of centres and reaches, and is near
    enough to normal.
    """
    n_bins = better.gap.size
    draws = _draws(2 * n_bins)
    own, other = draws[:, :n_bins], draws[:, n_bins:]
    mixed = correlation * own + math.sqrt(1 - correlation**2) * other
    lower = _lower_side(_drawn_sums(worse, items, votes, own), level)
    upper = _upper_side(_drawn_sums(better, items, votes, mixed), level)
    # The comparison sees only the part of the correlation in bins whose sign it is sure of.
    seen = correlation * (lower.signed * upper.signed).sum(axis=-1)
    reach = lower.reach**2 + upper.reach**2 - 2 * seen * lower.reach * upper.reach
    limit = lower.centre - upper.centre - np.sqrt(np.maximum(reach, 0.0))
    mean, spread = float(limit.mean()), float(limit.std())
    return float(ndtr(mean / spread)) if spread > 0 else float(mean > 0)


class _Side(NamedTuple):
    """One limit of SMECE: where it starts from, how far it reaches, and the bins' signs.

    Signs are smooth, and weighted by the bins' standard errors; their squares sum to at most 1.
    """

    centre: FloatArray
    reach: FloatArray
    signed: FloatArray


def _lower_side(sums: Sums, level: float) -> _Side:
    error, t = _standard_errors(sums)
    centre = (error * cautious_abs(t, _SHARPNESS)).sum(axis=-1)
    spread = (error**2).sum(axis=-1) - np.maximum(centre, 0) ** 2 / sums.weight.sum(axis=-1)
    reach = -ndtri((1 - level) / 2) * np.sqrt(np.maximum(spread, 0.0))
    return _Side(centre, reach, _signed(error, t))


def _upper_side(sums: Sums, level: float) -> _Side:
    centre = interval_limits(sums, 0.0)[2]  # at level 0 nothing is added to it
    return _Side(centre, interval_limits(sums, level)[2] - centre, _signed(*_standard_errors(sums)))


def _standard_errors(sums: Sums) -> tuple[FloatArray, FloatArray]:
    """Give those of the bins' parts of SMECE, and the parts in units of them."""
    total = sums.weight.sum(axis=-1, keepdims=True)
    error = np.sqrt(np.maximum(sums.residual_var, sums.vote_floor)) / total
    gap = sums.residual / total
    return error, np.divide(gap, error, out=np.zeros_like(gap), where=error > 0)


def _signed(error: FloatArray, t: FloatArray) -> FloatArray:
    length = np.sqrt((error**2).sum(axis=-1, keepdims=True))
    weight = np.divide(error, length, out=np.zeros_like(error), where=length > 0)
    return np.asarray(soft_sign(t, _SHARPNESS) * weight)


# What is refused


def allowed_votes(a: Assumptions, votes: int) -> int:
    """Give the number of votes back if the assumptions can speak of it; refuse others."""
    _refuse_no_integer("votes", votes)
    if a.fixed_votes is None:
        if not 1 <= votes <= MOST_VOTES:
            message = f"votes must be between 1 and {MOST_VOTES}: got {votes}."
            raise InputError(message)
    elif votes != a.fixed_votes:
        why = (
            "1: one vote per item, as in the pilot, does not show what a second would bring. "
            "Make a pilot with two votes or more on some items"
            if a.fixed_votes
            else "0: the pilot's labels are not known to be votes. Build it with n_votes"
        )
        message = f"votes must be left out, or {why}, to plan for {votes}."
        raise InputError(message)
    return int(votes)


def _refuse_bad_items(items: int) -> None:
    _refuse_no_integer("items", items)
    if not FEWEST_ITEMS <= items <= MOST_ITEMS:
        message = f"items must be between {FEWEST_ITEMS} and {MOST_ITEMS:,}: got {items}."
        raise InputError(message)


def _refuse_no_integer(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        message = f"{name} must be a whole number: got {value!r:.60}."
        raise InputTypeError(message)


def refuse_outside(
    name: str, value: float, low: float, high: float, *, closed: bool = False
) -> None:
    """Refuse what is no number between two others; closed if it may equal them."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        message = f"{name} must be a number: got {value!r:.60}."
        raise InputTypeError(message)
    inside = low <= value <= high if closed else low < value < high
    if not inside or math.isinf(value):
        upper = f"and {'at most' if closed else 'below'} {high:g}" if math.isfinite(high) else ""
        lower = f"{'at least' if closed else 'above'} {low:g}"
        message = f"{name} must be {f'{lower} {upper}'.strip()}: got {value!r}."
        raise InputError(message)
