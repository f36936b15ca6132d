"""Plans: how many items and votes to collect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from softcal import __version__
from softcal._display import error_name, percent
from softcal.cards.card import Card, Said

if TYPE_CHECKING:
    from collections.abc import Iterator

    from softcal.cards.card import Part
    from softcal.planning.plans import DifferencePlan, Plan


@dataclass(frozen=True, kw_only=True)
class PlanCard(Card):
    """A plan for an interval, or for a comparison if `difference` is a number."""

    items: int
    votes: int
    cost: float
    level: float
    half_width: float | None = None
    difference: float | None = None
    power: float | None = None
    power_high: float | None = None
    smece_low: float | None = None
    smece_high: float | None = None
    raters: int | None = None
    assumed_smece: float
    of_pilot: bool
    hard_labels: bool = False
    rows_dropped: int | None = None
    softcal: str = __version__
    notes: tuple[str, ...] = ()

    @staticmethod
    def of(
        found: Plan | DifferencePlan, assumed_smece: float, *, raters: int | None = None,
        of_pilot: bool, hard_labels: bool = False, rows_dropped: int | None = None,
    ) -> PlanCard:  # fmt: skip
        """Return the result of a plan, with what it assumes."""
        return PlanCard(
            **vars(found), assumed_smece=assumed_smece, raters=raters, of_pilot=of_pilot,
            hard_labels=hard_labels, rows_dropped=rows_dropped,
        )  # fmt: skip

    def parts(self) -> Iterator[Part]:
        """Yield the plan as three lines."""
        labels = "labeled as in the pilot" if self.votes == 0 else "with one vote each"
        if self.votes > 1:
            labels = f"with {self.votes:,} votes each, {self.items * self.votes:,} in total"
        labels += "" if self.raters is None else f", by {self.raters:,} raters"
        cost = f" Cost: {self.cost:,.10g}." if self.cost else ""
        yield Said(f"Collect {self.items:,} items {labels}.{cost}")
        yield from self._of_width() if self.half_width is not None else self._of_difference()
        if self.rows_dropped is not None:
            yield Said(f"Rows of the pilot: {self.rows_dropped:,} dropped.")

    @property
    def _error(self) -> str:
        return error_name(hard_labels=self.hard_labels)

    def _of_width(self) -> Iterator[Part]:
        of = " (the pilot's without noise)" if self.of_pilot else ""
        yield Said(f"Assuming {self._error} = {self.assumed_smece:.4f}{of},")
        new = " for new raters" if self.raters is not None else ""
        yield Said(f"expect a {percent(self.level)} interval of about ±{self.half_width:.4f}{new}.")

    def _of_difference(self) -> Iterator[Part]:
        supposed = f"{self.assumed_smece:.4f}"
        if self.of_pilot:
            supposed = f"{self.smece_low:.4f} to {self.smece_high:.4f} (by the pilot)"
        often = f"{self.power:.0%}"
        if f"{self.power_high:.0%}" != often:
            often += f" to {self.power_high:.0%}"
        yield Said(
            f"Assuming {self._error} = {supposed} and {self.difference:.4f} more for the other,\n"
            f"the {percent(self.level)} interval of the difference excludes 0 in {often} of such "
            "samples."
        )
