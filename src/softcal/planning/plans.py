"""Find the cheapest numbers of items and votes, by a search over forecasts."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from softcal import _display
from softcal.exceptions import InputError, InputTypeError
from softcal.planning.forecast import (
    FEWEST_ITEMS,
    MOST_ITEMS,
    MOST_VOTES,
    Assumptions,
    allowed_raters,
    allowed_votes,
    mean_half_width,
    power_of_difference,
    refuse_outside,
)
from softcal.table.joint import refuse_many_bins

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, repr=False)
class Plan(_display.Printed):
    """Items and votes for an interval.

    Attributes
    ----------
    items : int
        The number of items.
    votes : int
        The number of votes per item; 0 if the labels are not votes.
    cost : float
        The cost of all items and votes, in the unit of the given costs.
    half_width : float
        The expected half-width of the interval of SMECE.
    level : float
        The level of that interval.
    """

    items: int
    votes: int
    cost: float
    half_width: float
    level: float

    def __repr__(self) -> str:
        return f"Plan(items={self.items}, votes={self.votes}, half_width={self.half_width:.4g})"

    def _shown(self) -> _display.Shown:
        line = (
            f"{_amount(self)}: a {_display.percent(self.level)} interval of SMECE of about "
            f"±{self.half_width:.4g}"
        )
        return line, [], []


@dataclass(frozen=True, repr=False)
class DifferencePlan(_display.Printed):
    """Items and votes for a comparison of two models on the same items.

    Attributes
    ----------
    items, votes, cost
        As in `Plan`.
    power : float
        The lowest probability that the interval of the difference excludes 0, at both ends of the
        range of the better model's SMECE.
    difference : float
        The difference in SMECE to detect.
    level : float
        The level of that interval.
    power_high : float
        The higher of the two probabilities.
    smece_low, smece_high : float
        The range of SMECE of the better model: after a pilot, from its lower 95% limit to its
        estimate; otherwise the stated SMECE.
    """

    items: int
    votes: int
    cost: float
    power: float
    difference: float
    level: float
    power_high: float
    smece_low: float
    smece_high: float

    def __repr__(self) -> str:
        return f"DifferencePlan(items={self.items}, votes={self.votes}, power={self.power:.3g})"

    def _shown(self) -> _display.Shown:
        line = (
            f"{_amount(self)}: power {self.power:.3g} or more to detect a difference in SMECE of "
            f"{self.difference:.4g} at level {_display.percent(self.level)}"
        )
        return line, [], []


def _amount(of: Plan | DifferencePlan) -> str:
    votes = f" with {of.votes} vote{'s' if of.votes > 1 else ''} each" if of.votes else ""
    return f"{of.items} items{votes}, cost {of.cost:g}"


def plan(
    assumptions: Assumptions,
    *,
    half_width: float,
    level: float = 0.95,
    votes: int | None = None,
    raters: int | None = None,
    item_cost: float = 0.0,
    vote_cost: float = 1.0,
) -> Plan:
    r"""Find the cheapest numbers of items and votes for an interval of SMECE of ± half_width.

    Parameters
    ----------
    assumptions : Assumptions
        The assumptions, from a pilot or stated.
    half_width : float
        The expected half-width of the interval.
    level : float, default=0.95
        The level of the interval, between 0 and 1.
    votes : int, optional
        Votes per item, if fixed. By default the cheapest number is found. It is near
        \(\sqrt{(C/A)(c_{item}/c_{vote})}\), with C the variance of a vote and A that of an item.
        It is 1 if items cost nothing.
    raters : int, optional
        The number of raters who share the votes equally, for an interval over new items and new
        raters. With few raters, the width has a lower bound for any number of items. By default the
        plan is for the same raters.
    item_cost, vote_cost : float, default=0 and 1
        The costs of an item and of a vote, in any unit.

    Returns
    -------
    Plan
        The plan, with at least 50 items.

    Examples
    --------
    >>> assumptions = Assumptions.stated(smece=0.05, label_spread=0.15)
    >>> plan(assumptions, half_width=0.02, votes=3).items
    907
    >>> plan(assumptions, half_width=0.02, item_cost=10).votes
    9
    """
    study = _Study(assumptions, level, votes, item_cost, vote_cost)
    refuse_outside("half_width", half_width, 0, 1)

    def width(n: int, m: int) -> float:
        return mean_half_width(assumptions, n, m, level, allowed_raters(assumptions, raters, m))

    n, m = study.cheapest(
        lambda n, m: width(n, m) <= half_width,
        asked=f"half_width = {half_width:g}",
        remedy="a wider interval" if raters is None else "a wider interval, or for more raters",
    )
    return Plan(n, m, study.cost(n, m), width(n, m), level)


def plan_budget(
    assumptions: Assumptions,
    *,
    budget: float,
    level: float = 0.95,
    votes: int | None = None,
    item_cost: float = 0.0,
    vote_cost: float = 1.0,
) -> Plan:
    """Split a budget between items and votes so that the interval of SMECE is narrowest.

    Parameters
    ----------
    assumptions : Assumptions
        The assumptions, from a pilot or stated.
    budget : float
        The budget, in the unit of the costs. The plan never costs more.
    level, votes, item_cost, vote_cost
        As in `plan`.

    Returns
    -------
    Plan
        The plan, with at least 50 items, and as many as the budget allows for that number of votes.

    Examples
    --------
    >>> assumptions = Assumptions.stated(smece=0.05, label_spread=0.15)
    >>> found = plan_budget(assumptions, budget=10_000, item_cost=10)
    >>> found.items, found.votes, found.cost, round(found.half_width, 3)
    (555, 8, 9990.0, 0.019)
    """
    study = _Study(assumptions, level, votes, item_cost, vote_cost)
    refuse_outside("budget", budget, 0, math.inf)

    def half_width(m: int) -> float:
        n = study.items(budget, m)
        return mean_half_width(assumptions, n, m, level) if n >= FEWEST_ITEMS else math.inf

    m = study.cheapest_votes(half_width)
    n = study.items(budget, m)
    if n < FEWEST_ITEMS:
        message = (
            f"budget = {budget:g} buys {n} items, votes per item {m}: a plan needs at least "
            f"{FEWEST_ITEMS} items, which cost {study.cost(FEWEST_ITEMS, m):g}."
        )
        raise InputError(message)
    return Plan(n, m, study.cost(n, m), half_width(m), level)


def plan_difference(
    assumptions: Assumptions,
    *,
    difference: float,
    correlation: float,
    power: float = 0.8,
    level: float = 0.95,
    votes: int | None = None,
    item_cost: float = 0.0,
    vote_cost: float = 1.0,
) -> DifferencePlan:
    """Find the cheapest numbers of items and votes to detect a difference in SMECE.

    One model is as assumed. The other, on the same items, has a SMECE larger by the difference,
    with gaps in the same bins. There can be at most 2,000 bins, as in `compare`.

    A difference is hardest to detect if the better model is calibrated, because signs of its gaps
    are then chance. A small pilot does not show whether it is. The plan therefore has the required
    power at the estimated SMECE of a pilot, and also at its lower limit.

    Parameters
    ----------
    assumptions : Assumptions
        The assumptions about the better model, from a pilot or stated.
    difference : float
        The difference in SMECE to detect, above 0.
    correlation : float
        The correlation between the residuals p - y of the two models, each times the sign of its
        bin's gap. `pilot_correlation` estimates it. It is assumed to be the same for any number of
        votes.
    power : float, default=0.8
        The required probability that the interval of the difference excludes 0.
    level, votes, item_cost, vote_cost
        As in `plan`.

    Returns
    -------
    DifferencePlan
        The plan, with at least 50 items, and its power.

    Examples
    --------
    >>> assumptions = Assumptions.stated(smece=0.03, label_spread=0.15)
    >>> found = plan_difference(assumptions, difference=0.05, correlation=0.8, votes=5)
    >>> found.items, round(found.power, 2)
    (434, 0.8)
    """
    study = _Study(assumptions, level, votes, item_cost, vote_cost)
    refuse_outside("difference", difference, 0, 1)
    refuse_outside("correlation", correlation, -1, 1)
    refuse_outside("power", power, 0, 1)
    refuse_many_bins(assumptions.gap.size)
    low, high = assumptions.smece_low, assumptions.smece
    ends = [assumptions] if low is None else [assumptions, assumptions.with_smece(min(low, high))]
    pairs = [(better, better.with_smece(better.smece + difference)) for better in ends]

    def powers(n: int, m: int) -> list[float]:
        return [power_of_difference(*pair, correlation, n, m, level) for pair in pairs]

    n, m = study.cheapest(
        lambda n, m: min(powers(n, m)) >= power,
        asked=f"difference = {difference:g}",
        remedy="a larger difference",
    )
    found = powers(n, m)
    return DifferencePlan(
        n, m, study.cost(n, m), min(found), difference, level, max(found), ends[-1].smece, high
    )  # fmt: skip


@dataclass(frozen=True)
class _Study:
    """What is known about a study before its numbers of items and votes are."""

    assumptions: Assumptions
    level: float
    votes: int | None
    item_cost: float
    vote_cost: float

    def __post_init__(self) -> None:
        if not isinstance(self.assumptions, Assumptions):
            message = (
                f"assumptions must be Assumptions: got {type(self.assumptions).__name__}. Make "
                "them with Assumptions.from_pilot or Assumptions.stated."
            )
            raise InputTypeError(message)
        refuse_outside("level", self.level, 0, 1)
        refuse_outside("item_cost", self.item_cost, 0, math.inf, closed=True)
        refuse_outside("vote_cost", self.vote_cost, 0, math.inf, closed=True)

    def cost(self, items: int, votes: int) -> float:
        return items * (float(self.item_cost) + votes * float(self.vote_cost))

    def items(self, budget: float, votes: int) -> int:
        """Return the number of items a budget allows, never one too many by rounding."""
        each = self.cost(1, votes)
        if each <= 0:
            message = "a budget needs costs: the cost of an item or of a vote must be above 0."
            raise InputError(message)
        n = int(min(budget / each, MOST_ITEMS))
        return n - 1 if self.cost(n, votes) > budget else n

    def cheapest(
        self, enough: Callable[[int, int], bool], *, asked: str, remedy: str
    ) -> tuple[int, int]:
        """Find the cheapest numbers of items and votes that are enough."""

        @cache
        def items(m: int) -> int:
            return _fewest(lambda n: enough(n, m))

        m = self.cheapest_votes(lambda m: self.cost(items(m), m))
        if items(m) > MOST_ITEMS:
            message = (
                f"{asked} needs more than {MOST_ITEMS:,} items, votes per item {m}. Ask for "
                f"{remedy}."
            )
            raise InputError(message)
        return items(m), m

    def cheapest_votes(self, price: Callable[[int], float]) -> int:
        """Search for the cheapest number of votes, starting from that of the formula."""
        if self.votes is not None:
            return allowed_votes(self.assumptions, self.votes)
        if self.assumptions.fixed_votes is not None:
            return self.assumptions.fixed_votes
        if self.vote_cost == 0:
            message = (
                "votes that cost nothing have no best number: set it, or a cost per vote above 0."
            )
            raise InputError(message)
        price = cache(price)
        found, best = self._formula_votes(), 0
        while found != best:
            best = found
            near = {best // 2, *range(best - 2, best + 3), 2 * best}
            around = sorted(m for m in near if 1 <= m <= MOST_VOTES)
            found = min(around, key=price)
        return best

    def _formula_votes(self) -> int:
        a = self.assumptions
        item, vote = float(a.item_var.sum()) - a.smece**2, float(a.vote_var.sum())
        if item <= 0:
            return MOST_VOTES if self.item_cost > 0 and vote > 0 else 1
        # Infinite if items hardly differ.
        best = math.sqrt(vote / item * self.item_cost / self.vote_cost)
        return round(min(max(1.0, best), MOST_VOTES))


def _fewest(enough: Callable[[int], bool]) -> int:
    """Find the lowest number of items that is enough; one above the maximum if none is."""
    too_few, plenty = FEWEST_ITEMS - 1, FEWEST_ITEMS
    while plenty <= MOST_ITEMS and not enough(plenty):
        too_few, plenty = plenty, plenty * 4
    between = range(too_few + 1, min(plenty, MOST_ITEMS + 1))
    return between.start + bisect_left(between, x=True, key=enough)
