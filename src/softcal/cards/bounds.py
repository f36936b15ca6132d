"""The bounds of SMECE for labels that are known only as intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from softcal._display import printable
from softcal.cards.card import Column, Grid, OfTables, Said, provenance
from softcal.cards.scores import NAME, ROWS, OfModel, OfSegment, each_model, with_segments
from softcal.metrics.bounds import ReliabilityBounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from softcal.cards.card import Part
    from softcal.table.tableset import TableSet

_COLUMNS = (
    Column("smallest\nSMECE", "{smece_low:.4f}"), Column("largest\nSMECE", "{smece_high:.4f}")
)  # fmt: skip
_HOW_TO_READ = (
    "For any labels within their intervals, the SMECE of these rows lies between the two bounds. "
    "Both can occur. The bounds are not a confidence interval: more rows do not narrow them, more "
    "precise labels do."
)


@dataclass(frozen=True, kw_only=True)
class BoundsOf:
    """The smallest and the largest SMECE that labels within their intervals can have."""

    smece_low: float
    smece_high: float


@dataclass(frozen=True, kw_only=True)
class BoundsSegment(BoundsOf, OfSegment):
    """The bounds of a segment."""


@dataclass(frozen=True, kw_only=True)
class BoundsModel(BoundsOf, OfModel):
    """The bounds of a model, and of its segments."""

    segments: list[BoundsSegment]


@dataclass(frozen=True, kw_only=True)
class BoundsCard(OfTables):
    """The bounds of each model."""

    label_low: str
    label_high: str
    models: list[BoundsModel]

    @staticmethod
    def of(tables: TableSet, source: str, by: Sequence[str]) -> BoundsCard:
        """Compute the bounds of each model and segment."""
        high = str(tables.about.label_high)
        low = tables.about.label.removesuffix(f" to {high}")
        models = each_model(tables, by, BoundsModel, BoundsSegment, _numbers)
        return BoundsCard(
            **provenance(tables, source), label_low=low, label_high=high, models=models
        )

    def parts(self) -> Iterator[Part]:
        """Yield the bounds of models, and of their segments."""
        heading = self.heading().replace(", label ", ", labels ", 1)
        yield Grid((NAME, *_COLUMNS), self.models, heading)
        for model in self.models:
            for by in dict.fromkeys(segment.by for segment in model.segments):
                own = [segment for segment in model.segments if segment.by == by]
                columns = (Column("", "{name:name}"), ROWS, *_COLUMNS)
                yield Grid(columns, own, printable(f"{model.pred}, by {by}"))
        yield Said(_HOW_TO_READ, "quiet")

    def rows(self) -> Sequence[Any]:
        """Return the bounds of models and segments."""
        return with_segments(self.models)


def _numbers(tables: TableSet, pred: str) -> dict[str, Any]:
    found = ReliabilityBounds(*(tables[pred, end] for end in tables.targets)).smece
    return {"smece_low": found.low, "smece_high": found.high}
