"""The scores of models, and of their segments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from softcal._display import printable
from softcal.cards.card import Column, Grid, OfTables, Said, calling, provenance
from softcal.inference.new_group import new_group, shows_groups
from softcal.inference.smece import smece_interval
from softcal.table.tableset import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from softcal.cards.card import Part
    from softcal.inference.smece import Interval
    from softcal.table.reliability import Reliability
    from softcal.table.tableset import TableSet


@dataclass(frozen=True, kw_only=True)
class BinRow:
    """A bin: its ends, its rows, and its means, which an empty bin does not have."""

    low: float
    high: float
    count: int
    mean_prob: float | None
    mean_label: float | None
    gap: float | None


@dataclass(frozen=True, kw_only=True)
class NextGroup:
    """Prediction intervals of a new group, such as the next hospital."""

    gap_low: float
    gap_high: float
    smece_low: float
    smece_high: float
    tau: float
    groups: int


@dataclass(frozen=True, kw_only=True)
class SmeceOf:
    """A SMECE with its interval; see `softcal.inference.smece.Interval`."""

    smece: float
    debiased: float
    low: float
    high: float
    level: float
    note: str
    pvalue: float


def smece_of(found: Interval) -> dict[str, Any]:
    """Return the fields of `SmeceOf`."""
    names = ("debiased", "low", "high", "level", "note", "pvalue")
    return {"smece": found.value} | {name: getattr(found, name) for name in names}


@dataclass(frozen=True, kw_only=True)
class Score(SmeceOf):
    """The numbers of one table."""

    ece_hardened: float | None
    max_gap: float
    rms_gap: float
    bias: float
    brier: float
    table: list[BinRow]
    rater_share: float | None
    new_group: NextGroup | None


@dataclass(frozen=True, kw_only=True)
class OfModel:
    """A model."""

    pred: str


@dataclass(frozen=True, kw_only=True)
class OfSegment(OfModel):
    """A segment of a model: a column, its value, and its rows."""

    by: str
    value: str | None
    n: int

    @property
    def name(self) -> str:
        """The value, as it is shown."""
        return MISSING if self.value is None else self.value


@dataclass(frozen=True, kw_only=True)
class Segment(Score, OfSegment):
    """The scores of a segment."""


@dataclass(frozen=True, kw_only=True)
class ModelScore(Score, OfModel):
    """The scores of a model, and of its segments."""

    segments: list[Segment]


def score_of(rel: Reliability, level: float) -> dict[str, Any]:
    """Return the fields of `Score`."""
    found = smece_interval(rel, level=level)
    return smece_of(found) | {
        "ece_hardened": rel.hardened().smece, "max_gap": rel.max_gap, "rms_gap": rel.rms_gap,
        "bias": rel.bias, "brier": rel.brier, "table": _bins(rel),
        "rater_share": found.rater_share, "new_group": _next_group(rel, level),
    }  # fmt: skip


def _bins(rel: Reliability) -> list[BinRow]:
    return [
        BinRow(low=low, high=high, count=count, mean_prob=p if count else None,
               mean_label=y if count else None, gap=gap if count else None)
        for low, high, count, p, y, gap in rel.per_bin()
    ]  # fmt: skip


def _next_group(rel: Reliability, level: float) -> NextGroup | None:
    if not shows_groups(rel):
        return None
    found = new_group(rel, level=level)
    return NextGroup(
        gap_low=found.gap.low, gap_high=found.gap.high, smece_low=found.smece.low,
        smece_high=found.smece.high, tau=found.gap.tau, groups=found.gap.groups,
    )  # fmt: skip


def segments_of(tables: TableSet, by: Sequence[str]) -> Iterator[tuple[dict[str, Any], TableSet]]:
    """Yield the fields of `OfSegment` and the set of each segment that has rows."""
    for column in by:
        for value, part in tables.by(column).items():
            if part.n:
                yield {"by": column, "value": value, "n": part.n}, part


def each_model(
    tables: TableSet, by: Sequence[str], model: Any, segment: Any, numbers: Callable[..., Any]
) -> list[Any]:
    """Return one result of a class `model` per model, with one of `segment` per segment."""
    parts = list(segments_of(tables, by))
    return [
        model(
            pred=pred, **numbers(tables, pred),
            segments=[
                segment(pred=pred, **named, **numbers(part, pred)) for named, part in parts
            ],
        )
        for pred in tables
    ]  # fmt: skip


NAME = Column("model", "{pred:name}")
ROWS = Column("rows", "{n:,}")
_HARDENED = Column("ECE\n(hard)", "{ece_hardened:.4f}")
SCORES = (
    Column("SMECE", "{smece:.4f}", bold=True),
    Column("{level:%}\ninterval", "{low:digits} to {high:digits}"),
    Column("p-value", "{pvalue:p}"),
    _HARDENED,
    Column("max\ngap", "{max_gap:digits}"),
    Column("bias", "{bias:limit}"),
    Column("Brier", "{brier:digits}"),
)
_OF_SEGMENT = Column("", "{name:name}")
_HOW_TO_READ = (
    "SMECE is the error against the labels as they are. The interval is for its value on unlimited "
    "data. The p-value is how often a calibrated model would show gaps at least this extreme. ECE "
    "(hard) replaces labels above 0.5 by 1 and all others by 0."
)
_HOW_TO_READ_HARD = (
    "ECE averages the distance between mean prediction and mean label over the bins. The interval "
    "is for its value on unlimited data. The p-value is how often a calibrated model would show "
    "gaps at least this extreme."
)


@dataclass(frozen=True, kw_only=True)
class ScoreCard(OfTables):
    """The scores of each model."""

    models: list[ModelScore]

    @staticmethod
    def of(tables: TableSet, source: str, by: Sequence[str], level: float) -> ScoreCard:
        """Score each model against the labels as they are, and against hardened labels."""
        models = each_model(
            tables, by, ModelScore, Segment, lambda part, pred: score_of(part[pred], level)
        )
        return ScoreCard(**provenance(tables, source), models=models)

    def parts(self) -> Iterator[Part]:
        """Yield the scores of models, or those of each segment."""
        # The error against hardened labels is the same if labels are hard.
        shown = [each for each in SCORES if not (self.hard_labels and each is _HARDENED)]
        columns = calling(self.error, shown)
        if not any(model.segments for model in self.models):
            yield Grid((NAME, *columns), self.models, self.heading())
        else:
            yield Said(self.heading(), "strong")
            for model in self.models:
                yield from segment_grids(model, self.n, (_OF_SEGMENT, ROWS, *columns))
        for model in self.models:
            if model.new_group is not None:
                yield Said(self._about_next_group(model, model.new_group))
        how = _HOW_TO_READ_HARD if self.hard_labels else _HOW_TO_READ
        notes = dict.fromkeys(model.note for model in self.models)
        yield Said(" ".join(filter(None, (how, _about_raters(self.models), *notes))), "quiet")

    def _about_next_group(self, model: ModelScore, new: NextGroup) -> str:
        return printable(
            f"{model.pred} in a new {self.group}: gap {new.gap_low:+.3f} to {new.gap_high:+.3f}, "
            f"{self.error} {new.smece_low:.3f} to {new.smece_high:.3f} (standard deviation between "
            f"the {new.groups} groups: {new.tau:.3f})."
        )

    def rows(self) -> Sequence[Any]:
        """Return the scores of models and segments."""
        return with_segments(self.models)


def with_segments(models: Sequence[Any]) -> list[Any]:
    """Return each model, followed by its segments."""
    return [each for model in models for each in (model, *model.segments)]


@dataclass(frozen=True)
class _Whole:
    """The scores of all rows, as a segment."""

    of: Any
    n: int
    name: str = "all"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.of, name)


def segment_grids(model: Any, n: int, columns: Sequence[Column]) -> Iterator[Grid]:
    """Yield a table for each column of segments, below the scores of all rows."""
    for by in dict.fromkeys(segment.by for segment in model.segments):
        own = [segment for segment in model.segments if segment.by == by]
        yield Grid(columns, [_Whole(model, n), *own], printable(f"{model.pred}, by {by}"))


def _about_raters(models: Sequence[ModelScore]) -> str:
    """Return a sentence on the raters' share of the intervals; empty if they are of no raters."""
    shares = [
        f"{model.rater_share:.0%} ({printable(model.pred)})"
        for model in models
        if model.rater_share is not None
    ]
    if not shares:
        return ""
    return (
        "Intervals are for new items and new raters; the raters account for "
        f"{', '.join(shares)} of their width."
    )
