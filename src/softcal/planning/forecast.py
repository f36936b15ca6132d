r"""What is supposed about model and labels, and what tables of the future follow from it.

The label of an item is the share of \(m\) votes, each cast with the item's own probability
\(y^*\). Then SMECE does not depend on \(m\), but the variance of an item's residual does:
\(E(p - k/m)^2 = E(p - y^*)^2 + E\,y^*(1 - y^*)/m\), an item's part and a vote's part.

The expected interval is not a formula of its own: `softcal.inference.intervals` is asked for the
interval of tables of n items, drawn from the assumptions, and the widths are averaged. The draws
are a fixed set, so the same question always has the same answer.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from softcal.door.rules import is_whole
from softcal.errors import InputError, InputTypeError
from softcal.inference.intervals import interval_limits
from softcal.planning.pilots import FEWEST_ITEMS, learned
from softcal.table.bins import Bins, BinsLike
from softcal.table.kernel import Sums

if TYPE_CHECKING:
    from softcal.door.inputs import FloatArray
    from softcal.table.reliability import Reliability

MOST_ITEMS = 10**9
MOST_VOTES = 1000

_MOST_BINS = 10_000
_DRAWS = 128


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
                f"a plan takes at most {_MOST_BINS:,} bins: there are {self.gap.size:,}. Use fewer."
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
        return Assumptions(*learned(rel))

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
        0.0323
        0.0202
        0.0139
        """
        refuse_outside("level", level, 0, 1)
        _refuse_bad_items(items)
        return mean_half_width(self, items, allowed_votes(self, votes), level)


# Tables of the future


@lru_cache(maxsize=16)
def fixed_draws(n_bins: int) -> FloatArray:
    """Give normal numbers of shape (draws, bins), the same always; each bin's are stratified."""
    rng = np.random.default_rng(0)
    strata = ndtri((np.arange(_DRAWS) + 0.5) / _DRAWS)
    return rng.permuted(np.tile(strata, (n_bins, 1)), axis=1).T


def future_sums(a: Assumptions, items: int, votes: int, residual: FloatArray) -> Sums:
    """Give the sums of tables of n items: their residuals as given, all else at its mean."""
    square = residual_var(a, votes)

    def each(per_item: FloatArray) -> FloatArray:
        return np.broadcast_to(items * per_item, residual.shape)

    soft = votes == 0 or (votes > 1 and bool(a.vote_var.any()))
    zeros = np.zeros(residual.shape)
    return Sums(
        count=each(a.share),  # type: ignore[arg-type]  # expected, so not whole
        weight=each(a.share),
        weight_sq=each(a.share),
        label=zeros,
        residual=residual,
        residual_sq=each(square),
        residual_var=each(square),
        prob_var=each(a.prob_var),
        label_var=zeros + soft,  # only whether there are soft labels matters
        votes=zeros,
        repeated=zeros,
        vote_floor=each(a.prob_var / votes) if votes else zeros,
        vote_noise=zeros,
    )


def residual_var(a: Assumptions, votes: int) -> FloatArray:
    """Give the mean square of an item's residual in each bin; 0 votes where labels are none."""
    return a.item_var + a.vote_var / votes if votes else a.item_var


def correlated(draws: FloatArray, u: FloatArray) -> FloatArray:
    r"""Give normal numbers the covariance \(I - u u^T\), that of sums over random counts."""
    length = float(u @ u)  # at most 1, but for rounding
    shrink = (1 - math.sqrt(max(0.0, 1 - length))) / length if length > 0 else 0.0
    return draws - shrink * (draws @ u)[:, None] * u


def mean_half_width(a: Assumptions, items: int, votes: int, level: float) -> float:
    """Average, over tables drawn from the assumptions, half the width of their intervals."""
    scale = np.sqrt(residual_var(a, votes))
    u = np.divide(a.gap, scale, out=np.zeros_like(scale), where=scale > 0)
    joint = correlated(fixed_draws(a.gap.size), u)
    residual = items * a.gap + math.sqrt(items) * joint * scale
    _, low, high = interval_limits(future_sums(a, items, votes, residual), level)
    return float((high - low).mean()) / 2


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
            else "0: the pilot's labels are not known to be votes. Make one with numbers of votes"
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
    if not is_whole(value):
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
    if not inside or abs(value) > sys.float_info.max:
        upper = f"and {'at most' if closed else 'below'} {high:g}" if math.isfinite(high) else ""
        lower = f"{'at least' if closed else 'above'} {low:g}"
        message = f"{name} must be {f'{lower} {upper}'.strip()}: got {value!r:.60}."
        raise InputError(message)
