"""Comparisons of models on the same rows: all pairs, and which of them differ."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from softcal._display import counted, percent, printable
from softcal.cards.card import Column, Grid, OfTables, Said, calling, cell, plain, provenance
from softcal.cards.classes import ClassModel, ClassScoreCard, class_scores, escaped, infinite_loss
from softcal.cards.scores import NAME, OfModel, segments_of
from softcal.inference.comparison import compare, compare_many
from softcal.planning.forecast import FEWEST_ITEMS, correlation_of
from softcal.table.tableset import MISSING, TOP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from softcal.cards.card import Part
    from softcal.inference.comparison import Comparison, MeanDifference
    from softcal.table.tableset import TableSet


@dataclass(frozen=True, kw_only=True)
class ModelLosses(OfModel):
    """The losses of a model. An infinite log loss is None."""

    smece: float
    brier: float
    log_loss: float | None
    rows_of_infinite_log_loss: int


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A loss of model a minus that of model b; None if a loss is infinite."""

    a: float | None
    b: float | None
    difference: float | None
    low: float | None
    high: float | None
    pvalue: float | None


@dataclass(frozen=True, kw_only=True)
class PairOf:
    """Two models. Below 0, the first is better.

    `pvalue_holm` and the limits of SMECE are corrected for all pairs. `level` is that of the other
    limits. `debiased` is the difference of SMECE, corrected for most of the bias from noise.
    `residual_correlation` is for `plan`.
    """

    a: str
    b: str
    level: float
    smece: Difference
    brier: Difference
    log_loss: Difference
    debiased: float
    pvalue_holm: float
    residual_correlation: float | None
    note: str

    def verdict(self, error: str, *, top_label: bool) -> str:
        """Return which model is better calibrated, if these data show it.

        With `top_label`, the error is that of the predicted class, whose interval no table shows.
        """
        low, high = self.smece.low or 0.0, self.smece.high or 0.0
        of, that_of = ("the top label of ", "that of ") if top_label else ("", "")
        what = (
            f"the difference, {cell('{low:limit} to {high:limit}', self.smece)},"
            if top_label
            else f"the difference in {error}"
        )
        interval = f"the {percent(self.level)} interval of {what}"
        if self.smece.difference is None or low <= 0 <= high:
            return (
                f"These data do not show whether {of}{self.a} or {self.b} is better calibrated: "
                f"{interval} includes 0."
            )
        better, worse = (self.a, self.b) if self.smece.difference < 0 else (self.b, self.a)
        start = of.replace("the", "The", 1)
        return f"{start}{better} is better calibrated than {that_of}{worse}: {interval} excludes 0."


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Models in order of their SMECE (two models as given), and all pairs of them."""

    models: list[ModelLosses]
    pairs: list[PairOf]
    indistinguishable: list[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class ComparedClasses:
    """The same for many classes; pairs are of the predicted class."""

    models: list[ClassModel]
    pairs: list[PairOf]
    indistinguishable: list[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class _OfValue:
    by: str
    value: str | None
    n: int

    @property
    def heading(self) -> str:
        """The segment and its rows."""
        value = MISSING if self.value is None else self.value
        return printable(f"{self.by} {value}: {counted(self.n, 'row')}")


@dataclass(frozen=True, kw_only=True)
class ComparedSegment(Compared, _OfValue):
    """The comparison in a segment."""


@dataclass(frozen=True, kw_only=True)
class ComparedClassSegment(ComparedClasses, _OfValue):
    """The comparison of many classes in a segment."""


def _compared(tables: TableSet, level: float) -> dict[str, Any]:
    """Return the fields of `Compared` or `ComparedClasses`."""
    if len(tables) == 2:
        one = compare(tables, *tables.models, level=level)
        ranked, found = list(tables.models), [(one, one.pvalue)]
    else:
        ranking = compare_many(tables, level=level)
        ranked, found = list(ranking.models), [(p.comparison, p.pvalue) for p in ranking.pairs]
    pairs = [_pair(tables, each, pvalue) for each, pvalue in found]
    models: list[Any] = [_losses(tables, pred) for pred in ranked]
    if tables.targets[0] == TOP:
        models = [ClassModel(pred=p, **class_scores(tables, p, level), segments=[]) for p in ranked]
    alike = [(pair.a, pair.b) for pair in pairs if pair.pvalue_holm >= 1 - level]
    return {"models": models, "pairs": pairs, "indistinguishable": alike}


def _losses(tables: TableSet, pred: str) -> ModelLosses:
    other = next(name for name in tables if name != pred)
    joint = tables.pair(pred, other)
    infinite = joint.infinite_a
    return ModelLosses(
        pred=pred, smece=tables[pred].smece, brier=joint.a.brier,
        log_loss=None if infinite else joint.log_loss_a, rows_of_infinite_log_loss=infinite,
    )  # fmt: skip


def _pair(tables: TableSet, found: Comparison, pvalue: float) -> PairOf:
    joint = tables.pair(found.a, found.b)
    finite = not (joint.infinite_a or joint.infinite_b)
    alone = tables.about.weight is None and not tables.has_owners and joint.n >= FEWEST_ITEMS
    log_loss = _difference(found.log_loss, joint.log_loss_a, joint.log_loss_b)
    if not finite:
        a = None if joint.infinite_a else log_loss.a
        b = None if joint.infinite_b else log_loss.b
        log_loss = Difference(a=a, b=b, difference=None, low=None, high=None, pvalue=None)
    return PairOf(
        a=found.a, b=found.b, level=found.level, pvalue_holm=pvalue, note=found.note,
        smece=_difference(found, found.smece_a, found.smece_b),
        brier=_difference(found.brier, joint.a.brier, joint.b.brier),
        log_loss=log_loss, debiased=found.debiased,
        residual_correlation=correlation_of(joint) if alone else None,
    )  # fmt: skip


def _difference(found: Comparison | MeanDifference, a: float, b: float) -> Difference:
    return Difference(
        a=a, b=b, difference=found.difference, low=found.low, high=found.high, pvalue=found.pvalue
    )


@dataclass(frozen=True)
class _Line:
    """A loss of two models, as a row."""

    loss: str
    level: float
    found: Difference

    @property
    def shown_a(self) -> str:
        return self._shown(self.found.a)

    @property
    def shown_b(self) -> str:
        return self._shown(self.found.b)

    def _shown(self, value: float | None) -> str:
        return "inf" if value is None else f"{value:.4f}"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.found, name)


@dataclass(frozen=True)
class _PairLine:
    """A pair of models, as a row."""

    pair: PairOf

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.pair, name, None)
        return getattr(self.pair.smece, name) if found is None else found


_PAIRS = (
    Column("lower SMECE", "{a:name}"),
    Column("higher SMECE", "{b:name}"),
    Column("difference", "{difference:+z.4f}"),
    Column("interval\n(Holm)", "{low:limit} to {high:limit}"),
    Column("p-value\n(Holm)", "{pvalue_holm:p}"),
)


def _conclusion(found: Any, n: int, error: str, *, top_label: bool = False) -> Iterator[Part]:
    """Yield the pairs and what they show: all losses of two models, the error of more."""
    if len(found.pairs) > 1:
        yield Grid(calling(error, _PAIRS), [_PairLine(pair) for pair in found.pairs])
        alike = ", ".join(f"{a} and {b}" for a, b in found.indistinguishable)
        text = f"These data do not show which is better calibrated: {alike}."
        yield Said(printable(text if alike else "Every pair of models differs significantly."))
        return
    (pair,) = found.pairs
    yield Said(printable(pair.verdict(error, top_label=top_label)))
    for model in found.models:
        if infinite := model.rows_of_infinite_log_loss:
            yield Said(infinite_loss(model.pred, infinite, n))


def _losses_of_two(pair: PairOf, title: str, error: str) -> Grid:
    columns = (
        Column("", "{loss}"), Column(escaped(pair.a), "{shown_a}", named=True),
        Column(escaped(pair.b), "{shown_b}", named=True),
        Column("difference", "{difference:+z.4f}"),
        Column("{level:%} interval", "{low:limit} to {high:limit}"),
        Column("p-value", "{pvalue:p}"),
    )  # fmt: skip
    losses = {error: pair.smece, "Brier": pair.brier, "log loss": pair.log_loss}
    lines = [_Line(name, pair.level, found) for name, found in losses.items()]
    return Grid(columns, lines, title)


@dataclass(frozen=True, kw_only=True)
class ComparisonCard(Compared, OfTables):
    """A comparison of models with one label and one prediction per row."""

    of_raters: bool
    segments: list[ComparedSegment]

    @staticmethod
    def of(
        tables: TableSet, *, source: str = "", by: Sequence[str] = (), level: float = 0.95
    ) -> ComparisonCard | ClassComparisonCard:
        """Compare all models of a set, and those in each segment."""
        classes = tables.targets[0] == TOP
        segment: Any = ComparedClassSegment if classes else ComparedSegment
        found = _compared(tables, level) | {
            "segments": [
                segment(**named, **_compared(part, level))
                for named, part in segments_of(tables, by)
            ]
        }
        if classes:
            scores = ClassScoreCard.of(tables, source, (), level)
            own = {name: getattr(scores, name) for name in ("classes", "ordered")}
            return ClassComparisonCard(**provenance(tables, source), **own, **found)
        of_raters = tables[tables.models[0]].raters is not None
        return ComparisonCard(**provenance(tables, source), of_raters=of_raters, **found)

    def parts(self) -> Iterator[Part]:
        """Yield the losses of two models, or the error of more, and what they show."""
        said = "Intervals are for new items and new raters." if self.of_raters else ""
        yield from _shown(self, self.heading(), self.n, self.error, said)
        correlation = self.pairs[0].residual_correlation
        if len(self.pairs) == 1 and correlation is not None:
            option = f"--correlation {correlation:.2f}"
            yield Said(f"For `softcal plan --difference`, use {option}.", "quiet")
        for segment in self.segments:
            yield from _shown(segment, segment.heading, segment.n, self.error)

    def rows(self) -> list[dict[str, Any]]:
        """Return the losses of each model, and of each model in each segment."""
        return _rows(self)


def _rows(found: ComparisonCard | ClassComparisonCard) -> list[dict[str, Any]]:
    whole: list[dict[str, Any]] = [plain(model) for model in found.models]
    return whole + [
        {"pred": model.pred, "by": part.by, "value": part.value, "n": part.n, **plain(model)}
        for part in found.segments
        for model in part.models
    ]


def _shown(found: Compared, title: str, n: int, error: str, said: str = "") -> Iterator[Part]:
    if len(found.pairs) == 1:
        yield _losses_of_two(found.pairs[0], title, error)
    else:
        yield Grid((NAME, Column(error, "{smece:.4f}")), found.models, title)
    yield from _conclusion(found, n, error)
    note = f"{said} {found.pairs[0].note}".strip()  # of every pair, which has the same rows
    yield from [Said(note, "quiet")] if note else ()


_IN_SEGMENT = (
    NAME,
    Column("top-label\nSMECE", "{top_label_smece:.4f}"),
    Column("classwise\nSMECE", "{classwise_smece:.4f}"),
    Column("accuracy", "{accuracy:.4f}"),
    Column("Brier", "{brier:.4f}"),
)


@dataclass(frozen=True, kw_only=True)
class ClassComparisonCard(ComparedClasses, OfTables):
    """A comparison of models of many classes."""

    classes: list[str]
    ordered: bool
    segments: list[ComparedClassSegment]

    def parts(self) -> Iterator[Part]:
        """Yield the scores of models side by side, and what the predicted class shows."""
        own = {name: getattr(self, name) for name in ClassScoreCard.__dataclass_fields__}
        yield from ClassScoreCard(**own).side_by_side()
        yield from _conclusion(replace(self, models=[]), self.n, self.error, top_label=True)
        for segment in self.segments:
            yield Grid(calling(self.error, _IN_SEGMENT), segment.models, segment.heading)
            yield from _conclusion(segment, segment.n, self.error, top_label=True)

    def rows(self) -> list[dict[str, Any]]:
        """Return the scores of each model, and of each model in each segment."""
        return _rows(self)
