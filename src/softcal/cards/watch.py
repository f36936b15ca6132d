"""Calibration over time: the evidence of each day, and an alarm."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, isnan
from typing import TYPE_CHECKING, Any

from softcal import __version__
from softcal._display import counted, error_name, printable
from softcal._validation.days import Every
from softcal.cards.card import Card, Column, Grid, Said, plain
from softcal.inference.weeks import BY_WEEK, moment, weeks_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from softcal.cards.card import Part
    from softcal.inference.sequential import StreamState, WatchState

_MOST_LINES = 20  # days or weeks, besides those in which the error began and the alarm was raised
_MOST_SHOWN = 10  # models and segments, those with the most evidence
_HOW_TO_READ = (
    "The band holds on all days simultaneously. Evidence counts against the model. If every mean "
    "label is within the tolerance of its prediction, evidence ever reaches the alarm line with "
    "probability at most 1 - level. Rows must not repeat. They must not vary together, except "
    "within the groups of --group, and the same raters must not vote on many rows."
)


@dataclass(frozen=True, kw_only=True)
class Since:
    """The error of the worst model or segment since it began, with a band valid for any start."""

    date: str | int
    direction: str
    gap: float
    smece: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Stream:
    """A model, or one of its segments if `by` names a column, as watched so far.

    It raises an alarm alone if its evidence reaches `alarm_at`.
    """

    pred: str
    by: str | None
    value: str | None
    name: str
    n: int
    log_evidence: float
    alarm_at: float
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
    """The days of a watch, and whether and since when there is an alarm.

    Text shows `weeks`, if there are any, instead of `days`.
    """

    tolerance: float
    level: float
    every: str
    alarm: bool
    alarm_date: str | int | None
    since: str | int | None
    direction: str | None
    error_since: Since | None
    sentence: str
    hard_labels: bool
    worst: Stream
    days: list[DayOf]
    weeks: list[DayOf]
    segments: list[Stream]
    softcal: str = __version__
    notes: tuple[str, ...] = ()

    @staticmethod
    def of(
        states: Sequence[WatchState], tolerance: float, level: float, every: Every | None = None
    ) -> WatchCard:
        """Return the history of the states that `Watch.update` returned.

        Without a stated period, days with few rows are shown by week (`weeks_of`).
        """
        last = states[-1]
        weeks = weeks_of(states) if every is None else []
        return WatchCard(
            tolerance=tolerance, level=level, every=every or Every.DAY, alarm=last.alarm,
            alarm_date=last.alarm_date, since=last.since, direction=last.direction,
            error_since=_since(last.worst) if last.alarm else None, sentence=last.sentence,
            hard_labels=all(each.has_hard_labels for each in last.streams),
            worst=_stream(last.worst), days=[_day(each) for each in states],
            weeks=[_day(each) for each in weeks],
            segments=[_stream(each) for each in last.streams if each.column is not None],
        )  # fmt: skip

    def parts(self) -> Iterator[Part]:
        """Yield the conclusion, the days of the model with the most evidence, and its segments."""
        model, shown = self.worst.pred, self.weeks or self.days
        unit, first = ("week", "week from") if self.weeks else (self.every, self.every)
        number = counted(len(shown), unit)
        title = (
            f"{model}: {number}, tolerance {self.tolerance:g}, alarm at evidence "
            f"{1 / (1 - self.level):.4g}"
        )
        error = error_name(hard_labels=self.hard_labels)
        of_days = (
            Column(first, "{date:name}"), Column("rows", "{n:,}"),
            Column(f"{error}\nthat {unit}", "{smece_new:.4f}"),
            Column(f"{error}\nso far", "{smece:.4f}"),
            Column(f"{100 * self.level:g}% band", "{low:.3f} to {high:.3f}"),
            Column("largest\nevidence" if self.weeks else "evidence", "{evidence}"),
            Column("p-value", "{pvalue:p}"), Column("", "{mark}"),
        )  # fmt: skip
        lines = [
            _Line(str(day.date), day.n, next(s for s in day.streams if s.pred == model),
                  day.log_evidence, day.alarm, day.pvalue)
            for day in self._lines(shown)
        ]  # fmt: skip
        yield Said(printable(self.sentence), "bad" if self.alarm else "good")
        yield Grid(of_days, lines, printable(title))
        if len(lines) < len(shown):
            left_out = counted(len(shown) - len(lines), f"earlier {unit}")
            yield Said(f"{left_out}: a page (-o HTML) or --format json has all.", "quiet")
        streams = self.days[-1].streams
        yield from _ranked("Models", streams if len(streams) > 1 else [], error)
        yield from _ranked("Segments", self.segments, error)
        if self.weeks:
            yield Said(f"{BY_WEEK} `--every day` shows days.", "quiet")
        yield Said(_HOW_TO_READ, "quiet")

    def _lines(self, shown: list[DayOf]) -> list[DayOf]:
        """Return the last days or weeks, and those in which the error began and the alarm was."""
        earlier, last = shown[:-_MOST_LINES], shown[-_MOST_LINES:]
        events = {self.since, self.alarm_date} - {None}
        ends = [moment(day.date) for day in shown[1:]]
        marked = {sum(end <= moment(str(date)) for end in ends) for date in events}
        return [day for k, day in enumerate(earlier) if k in marked] + last

    def rows(self) -> list[dict[str, Any]]:
        """Return each day of each model, and the segments so far."""
        days = [{"date": day.date, **plain(each)} for day in self.days for each in day.streams]
        return days + [{"date": self.days[-1].date, **plain(each)} for each in self.segments]


def _ranked(what: str, streams: Sequence[Stream], error: str) -> Iterator[Part]:
    """Yield the table of models or segments, if there are any."""
    if not streams:
        return
    ranked = sorted(streams, key=lambda each: -each.log_evidence)
    more = len(ranked) - _MOST_SHOWN
    below = f"; {more:,} more have less evidence" if more > 0 else ""
    columns = (
        Column(what.lower().removesuffix("s"), "{date:name}"), Column("rows", "{n:,}"),
        Column(f"{error}\nso far", "{smece:.4f}"), Column("evidence", "{evidence}"),
        Column("alarm at", "{stream.alarm_at:.4g}"), Column("", "{mark}"),
    )  # fmt: skip
    lines = [
        _Line(each.name, each.n, each, each.log_evidence, each.alarm)
        for each in ranked[:_MOST_SHOWN]
    ]
    yield Grid(columns, lines, f"{what}, most evidence first{below}")


def _day(state: WatchState) -> DayOf:
    return DayOf(
        date=state.date, n=state.n, log_evidence=state.log_evidence, pvalue=state.pvalue,
        alarm=state.alarm, streams=[_stream(each) for each in state.streams if each.column is None],
    )  # fmt: skip


def _since(worst: StreamState) -> Since:
    assert worst.since is not None  # noqa: S101 - an alarm has rows
    return Since(
        date=worst.since, direction=str(worst.direction), gap=worst.gap_since,
        smece=worst.smece_since, low=worst.low_since, high=worst.high_since,
    )  # fmt: skip


def _stream(found: StreamState) -> Stream:
    numbers = {
        "smece_new": found.smece_new, "smece": found.smece, "low": found.low, "high": found.high,
    }  # fmt: skip
    return Stream(
        pred=found.model, by=found.column, value=found.value, name=found.name, n=found.n,
        log_evidence=found.log_evidence, alarm_at=found.alarm_at, alarm=found.alarm,
        **{key: None if isnan(number) else number for key, number in numbers.items()},
    )  # fmt: skip
