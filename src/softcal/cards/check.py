"""Checks of calibration against a limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from softcal._display import error_name, printable
from softcal.cards.card import OfTables, Said, Style, provenance
from softcal.cards.scores import segments_of
from softcal.inference.checks import check_table
from softcal.inference.smece import smece_interval
from softcal.table.tableset import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from softcal.cards.card import Part
    from softcal.table.tableset import TableSet

Outcome = Literal["pass", "fail", "undecided"]
_STYLES: dict[str, Style] = {"pass": "good", "fail": "bad", "undecided": "unsure"}


@dataclass(frozen=True, kw_only=True)
class Checked:
    """The check of a model, or of one of its segments if `by` names a column.

    `low` and `high` are the limits of SMECE that hold for all checks simultaneously.
    """

    pred: str
    by: str | None
    value: str | None
    n: int
    outcome: Outcome
    smece: float
    low: float
    high: float
    max_gap: float
    reasons: tuple[str, ...]
    more_rows: int | None
    more_groups: int | None
    more_raters: int | None

    @property
    def name(self) -> str:
        """The model and the segment."""
        value = MISSING if self.value is None else self.value
        return self.pred if self.by is None else f"{self.pred}, {self.by} = {value}"


@dataclass(frozen=True, kw_only=True)
class CheckCard(OfTables):
    """Whether each model and segment passes: the whole passes if all do."""

    outcome: Outcome
    max_smece: float | None
    max_gap: float | None
    level: float
    checks: list[Checked]

    @staticmethod
    def of(
        tables: TableSet, *, source: str = "", by: Sequence[str] = (),
        max_smece: float | None = None, max_gap: float | None = None, min_rows: int = 100,
        level: float = 0.95,
    ) -> CheckCard:  # fmt: skip
        """Check each model and each of its segments, with limits that hold simultaneously."""
        own = provenance(tables, source)
        error = error_name(hard_labels=own["hard_labels"])
        whole = {"by": None, "value": None, "n": tables.n}
        parts = [(whole, tables), *segments_of(tables, by)]
        together = 1 - (1 - level) / (len(parts) * len(tables))
        checks = []
        for pred in tables:
            for named, part in parts:
                rel = part[pred]
                found = check_table(
                    rel, error, max_smece, max_gap, min_rows=min_rows, level=together
                )
                limits = smece_interval(rel, level=together)
                checks.append(
                    Checked(
                        pred=pred, **named, outcome=found.outcome, smece=rel.smece,
                        low=limits.low, high=limits.high, max_gap=rel.max_gap,
                        reasons=found.reasons, more_rows=found.more_rows,
                        more_groups=found.more_groups, more_raters=found.more_raters,
                    )
                )  # fmt: skip
        order: tuple[Outcome, ...] = ("fail", "undecided", "pass")
        worst = min((each.outcome for each in checks), key=order.index)
        return CheckCard(
            **own, outcome=worst, max_smece=max_smece, max_gap=max_gap,
            level=level, checks=checks,
        )  # fmt: skip

    def parts(self) -> Iterator[Part]:
        """Yield the outcome, and the outcome of each check with its reasons."""
        yield Said(f"{printable(self.source)}: {self.outcome.upper()}", _STYLES[self.outcome])
        for each in self.checks:
            said = f"  {printable(each.name)}, {each.n:,} rows: {each.outcome}"
            yield Said(said, _STYLES[each.outcome])
            for reason in each.reasons:
                yield Said(f"    {reason}", "quiet")

    def rows(self) -> list[Checked]:
        """Return the checks."""
        return self.checks
