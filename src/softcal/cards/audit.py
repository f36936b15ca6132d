"""Audits: the segments whose predictions are too high or too low."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from softcal._display import counted, printable
from softcal.cards.card import Column, Grid, OfTables, Said, plain, provenance

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from softcal.cards.card import Part
    from softcal.inference.segments import Audit, Segment
    from softcal.table.tableset import TableSet

_SHOWN = 20  # segments of each model; JSON has all of them


@dataclass(frozen=True, kw_only=True)
class AuditSegment:
    """A segment; see `softcal.inference.segments.Segment`."""

    where: dict[str, str | None]
    n: int
    gap: float
    low: float
    high: float
    level: float
    pvalue: float
    name: str
    direction: str
    sentence: str

    @property
    def points(self) -> float:
        """The gap in percentage points."""
        return 100 * self.gap

    @property
    def interval(self) -> str:
        """The interval in percentage points."""
        return f"{100 * self.low:+z.1f} to {100 * self.high:+z.1f}"


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """How much of the error the first segments explain."""

    segments: int
    error: float
    rows: float


@dataclass(frozen=True, kw_only=True)
class ModelAudit:
    """The segments of a model, worst first."""

    pred: str
    summary: str
    found: int
    tested: int
    too_small: int
    explained: Explanation | None
    overall: AuditSegment
    segments: list[AuditSegment]


_COLUMNS = (
    Column("segment", "{name:name}"),
    Column("rows", "{n:,}"),
    Column("gap in\npoints", "{points:+z.1f}"),
    Column("{level:%}\ninterval", "{interval}"),
    Column("p-value", "{pvalue:p}"),
)


@dataclass(frozen=True, kw_only=True)
class AuditCard(OfTables):
    """The audit of each model."""

    by: list[str]
    depth: int
    level: float
    min_rows: int
    draws: int
    seed: int
    cells: int
    caution: str
    models: list[ModelAudit]

    @staticmethod
    def of(
        tables: TableSet, audits: Sequence[Audit], *, source: str, draws: int, seed: int
    ) -> AuditCard:
        """Return the results of `audit_tables` of each model."""
        first = audits[0]
        return AuditCard(
            **provenance(tables, source), by=list(first.by), depth=first.depth, level=first.level,
            min_rows=first.min_rows, draws=draws, seed=seed, cells=first.cells,
            caution=first.note, models=[_model(each) for each in audits],
        )  # fmt: skip

    def parts(self) -> Iterator[Part]:
        """Yield the segments that were found, of each model."""
        yield Said(self.heading(), "strong")
        for model in self.models:
            yield Said(printable(f"\n{model.pred}: {model.summary}").replace("\\n", "\n", 1))
            yield Grid(_COLUMNS, [model.overall, *model.segments[: min(model.found, _SHOWN)]])
            if model.found > _SHOWN:
                more = counted(model.found - _SHOWN, "more segment")
                yield Said(f"{more}: a page (-o HTML) or --format json has all.")
        yield Said(self.caution, "quiet")

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows and the segments, of each model."""
        return [
            {"pred": model.pred, **plain(each)}
            for model in self.models
            for each in (model.overall, *model.segments)
        ]


def _model(found: Audit) -> ModelAudit:
    explained = found.explained
    return ModelAudit(
        pred=found.model, summary=found.summary, found=len(found.found),
        tested=len(found.segments), too_small=found.too_small,
        explained=None if explained is None else Explanation(**explained._asdict()),
        overall=_segment(found.overall, found.level),
        segments=[_segment(each, found.level) for each in found.segments],
    )  # fmt: skip


def _segment(each: Segment, level: float) -> AuditSegment:
    return AuditSegment(
        where=each.where, n=each.n, gap=each.gap, low=each.low, high=each.high, level=level,
        pvalue=each.pvalue, name=each.name, direction=each.direction, sentence=each.sentence,
    )  # fmt: skip
