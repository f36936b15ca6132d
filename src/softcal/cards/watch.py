"""Calibration over time: the evidence of each day, and an alarm."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, isnan
from typing import TYPE_CHECKING, Any

from softcal import __version__
from softcal._display import counted, printable
from softcal.cards.card import Card, Column, Grid, Said, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from softcal.cards.card import Part
    from softcal.inference.sequential import StreamState, WatchState

_MOST_SHOWN = 10  # models and segments, those with the most evidence
_HOW_TO_READ = (
    "The band holds on all days simultaneously. Evidence counts against the model. If every mean "
    "label is within the tolerance of its prediction, evidence ever reaches the alarm line with "
    "probability at most 1 - level. Rows must not repeat, and rows or raters must not vary "
    "together."
)


@dataclass(frozen=True, kw_only=True)
class Stream:
    """A model, or one of its segments if `by` names a column, as watched so far."""

    pred: str
    by: str | None
    value: str | None
    name: str
    n: int
    log_evidence: float
    alarm: bool
    smece_new: float | None
    smece: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True)
class DayOf:
    """A day, with each model."""

    date: str | int
    n: int
    log_evidence: float
    pvalue: float
    alarm: bool
    streams: list[Stream]


@dataclass(frozen=True)
class _Line:
    """A day of one model, or a segment, as a row."""

    date: str
    n: int
    stream: Stream
    log_evidence: float
    alarm: bool
    pvalue: float | None = None

    @property
    def smece(self) -> float | None:
        return self.stream.smece

    @property
    def smece_new(self) -> float | None:
        return self.stream.smece_new

    @property
    def low(self) -> float | None:
        return self.stream.low

    @property
    def high(self) -> float | None:
        return self.stream.high

    @property
    def evidence(self) -> str:
        """The evidence in at most nine characters."""
        amount = exp(min(self.log_evidence, 700.0))
        return f"{amount:.2f}" if amount < 1000 else f"{amount:.1e}"

    @property
    def mark(self) -> str:
        return "ALARM" if self.alarm else ""


@dataclass(frozen=True, kw_only=True)
class WatchCard(Card):
    """The days of a watch, and whether and since when there is an alarm."""

    tolerance: float
    level: float
    every: str
    alarm: bool
    alarm_date: str | int | None
    since: str | int | None
    direction: str | None
    sentence: str
    worst: Stream
    days: list[DayOf]
    segments: list[Stream]
    softcal: str = __version__
    notes: tuple[str, ...] = ()

    @staticmethod
    def of(states: Sequence[WatchState], tolerance: float, level: float, every: str) -> WatchCard:
        """Return the history of the states that `Watch.update` returned."""
        last = states[-1]
        days = [
            DayOf(
                date=state.date, n=state.n, log_evidence=state.log_evidence, pvalue=state.pvalue,
                alarm=state.alarm,
                streams=[_stream(each) for each in state.streams if each.column is None],
            )
            for state in states
        ]  # fmt: skip
        return WatchCard(
            tolerance=tolerance, level=level, every=every, alarm=last.alarm,
            alarm_date=last.alarm_date, since=last.since, direction=last.direction,
            sentence=last.sentence, worst=_stream(last.worst), days=days,
            segments=[_stream(each) for each in last.streams if each.column is not None],
        )  # fmt: skip

    def parts(self) -> Iterator[Part]:
        """Yield the days of the model with the most evidence, its segments, and the conclusion."""
        model, unit = self.worst.pred, self.every
        number = counted(len(self.days), unit)
        title = (
            f"{model}: {number}, tolerance {self.tolerance:g}, alarm at evidence "
            f"{1 / (1 - self.level):.4g}"
        )
        of_days = (
            Column(unit, "{date:name}"), Column("rows", "{n:,}"),
            Column(f"SMECE\nthat {unit}", "{smece_new:.4f}"),
            Column("SMECE\nso far", "{smece:.4f}"),
            Column(f"{100 * self.level:g}% band", "{low:.3f} to {high:.3f}"),
            Column("evidence", "{evidence}"), Column("p-value", "{pvalue:p}"), Column("", "{mark}"),
        )  # fmt: skip
        lines = [
            _Line(str(day.date), day.n, next(s for s in day.streams if s.pred == model),
                  day.log_evidence, day.alarm, day.pvalue)
            for day in self.days
        ]  # fmt: skip
        yield Grid(of_days, lines, printable(title))
        streams = self.days[-1].streams
        yield from _ranked("Models", streams if len(streams) > 1 else [])
        yield from _ranked("Segments", self.segments)
        yield Said(printable(self.sentence), "bad" if self.alarm else "good")
        yield Said(_HOW_TO_READ, "quiet")

    def rows(self) -> list[dict[str, Any]]:
        """Return each day of each model, and the segments so far."""
        days = [{"date": day.date, **plain(each)} for day in self.days for each in day.streams]
        return days + [{"date": self.days[-1].date, **plain(each)} for each in self.segments]


def _ranked(what: str, streams: Sequence[Stream]) -> Iterator[Part]:
    """Yield the table of models or segments, if there are any."""
    if not streams:
        return
    ranked = sorted(streams, key=lambda each: -each.log_evidence)
    more = len(ranked) - _MOST_SHOWN
    below = f"; {more:,} more have less evidence" if more > 0 else ""
    columns = (
        Column(what.lower().removesuffix("s"), "{date:name}"), Column("rows", "{n:,}"),
        Column("SMECE\nso far", "{smece:.4f}"), Column("evidence", "{evidence}"),
        Column("", "{mark}"),
    )  # fmt: skip
    lines = [
        _Line(each.name, each.n, each, each.log_evidence, each.alarm)
        for each in ranked[:_MOST_SHOWN]
    ]
    yield Grid(columns, lines, f"{what}, most evidence first{below}")


def _stream(found: StreamState) -> Stream:
    numbers = {
        "smece_new": found.smece_new, "smece": found.smece, "low": found.low, "high": found.high,
    }  # fmt: skip
    return Stream(
        pred=found.model, by=found.column, value=found.value, name=found.name, n=found.n,
        log_evidence=found.log_evidence, alarm=found.alarm,
        **{key: None if isnan(number) else number for key, number in numbers.items()},
    )  # fmt: skip
