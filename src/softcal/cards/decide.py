"""Net benefit at thresholds, the cost of miscalibration there, and a summary of calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from softcal._display import printable
from softcal.cards.card import Column, Grid, OfTables, Said, plain, provenance

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from softcal._validation.inputs import FloatArray
    from softcal.cards.card import Part
    from softcal.decision import NetBenefit, NetBenefitDifference
    from softcal.inference.summary import CalibrationSummary
    from softcal.table.tableset import TableSet

_ONE_ROW = "One row does not show how much rows vary, so net benefit has no interval."
_NAMES = {
    "observed_expected": "observed : expected",
    "auroc": "AUROC",
    "ici": "ICI: mean distance from curve",
    "e50": "E50: median distance",
    "e90": "E90: 90% quantile",
    "emax": "Emax: largest distance",
    "brier": "Brier score",
    "miscalibration": "= miscalibration",
    "discrimination": "- discrimination",
    "uncertainty": "+ uncertainty",
}
_HOW_TO_READ = (
    "A model is useful at a threshold if its net benefit is above that of treating all rows and of "
    "treating none. The cost of miscalibration is what the best increasing recalibration would add "
    "on the same rows. ICI, E50, E90, and Emax are distances from a smooth curve (loess). The "
    "parts of the Brier score use the isotonic curve. With few rows, the cost, the distances, and "
    "the miscalibration are too high."
)


@dataclass(frozen=True, kw_only=True)
class AtThreshold:
    """The net benefit of a model at a threshold, and the rows below it."""

    threshold: float
    net_benefit: float
    low: float | None
    high: float | None
    level: float
    treat_all: float
    treat_none: float
    cost_of_miscalibration: float
    rows_below: int
    mean_prob_below: float | None
    mean_label_below: float | None
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number with its interval, if it has one."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True)
class ModelDecision:
    """A model at each threshold, and the summary of its calibration, if there is one."""

    pred: str
    thresholds: list[AtThreshold]
    calibration: dict[str, Estimate] | None
    note: str


@dataclass(frozen=True, kw_only=True)
class DifferenceAt:
    """The difference of two models at a threshold."""

    threshold: float
    difference: float
    low: float | None
    high: float | None
    level: float


@dataclass(frozen=True, kw_only=True)
class DecisionPair:
    """The net benefit of the model `pred` minus that of `other`, on the same rows."""

    pred: str
    other: str
    thresholds: list[DifferenceAt]
    note: str


@dataclass(frozen=True)
class _Line:
    """An estimate, as a row."""

    name: str
    level: float
    of: Estimate

    def __getattr__(self, name: str) -> Any:
        return getattr(self.of, name)


_BENEFITS = (
    Column("threshold", "{threshold:%}"),
    Column("net benefit", "{net_benefit:.4f}"),
    Column("{level:%} interval", "{low:.4f} to {high:.4f}"),
    Column("treat all", "{treat_all:.4f}"),
    Column("treat none", "{treat_none:g}"),
    Column("cost of mis-\ncalibration", "{cost_of_miscalibration:.4f}"),
)
_DIFFERENCES = (
    Column("threshold", "{threshold:%}"),
    Column("difference", "{difference:+.4f}"),
    Column("{level:%} interval", "{low:+.4f} to {high:+.4f}"),
)
_SUMMARY = (
    Column("calibration", "{name}"),
    Column("value", "{value:.4f}"),
    Column("{level:%} interval", "{low:.4f} to {high:.4f}"),
)


@dataclass(frozen=True, kw_only=True)
class DecisionCard(OfTables):
    """The decisions of each model, and the differences between the first and each other one."""

    level: float
    computed_from: str
    computed: str
    models: list[ModelDecision]
    differences: list[DecisionPair]

    @staticmethod
    def of(
        tables: TableSet, benefits: Mapping[str, NetBenefit],
        summaries: Mapping[str, CalibrationSummary | str],
        differences: Sequence[NetBenefitDifference], *,
        source: str, level: float, computed: tuple[str, str], note: str = "",
    ) -> DecisionCard:  # fmt: skip
        """Return results of `net_benefit` and `calibration_summary`, or why there is none.

        `computed` says what they were computed from, as a word and a sentence. `note` is about the
        differences.
        """
        also = _ONE_ROW if tables.n < 2 else ""
        models = [
            ModelDecision(pred=pred, thresholds=_thresholds(found, level),
                          **_summary(summaries[pred], also))
            for pred, found in benefits.items()
        ]  # fmt: skip
        at = next(iter(benefits.values())).threshold
        pairs = [
            DecisionPair(pred=each.names[0], other=each.names[1],
                         thresholds=_difference(each, at, level), note=note or also)
            for each in differences
        ]  # fmt: skip
        return DecisionCard(
            **provenance(tables, source), level=level, computed_from=computed[0],
            computed=computed[1], models=models, differences=pairs,
        )  # fmt: skip

    def parts(self) -> Iterator[Part]:
        """Yield net benefit and calibration of each model, and the differences."""
        yield Said(self.origin, "strong")
        yield Said(self.computed)
        for model in self.models:
            yield Grid(_BENEFITS, model.thresholds, printable(model.pred))
            for each in model.thresholds:
                yield Said(each.sentence)
            if model.calibration is not None:
                yield Said("")
                numbers = [
                    _Line(_NAMES.get(name, name.replace("_", " ")), self.level, estimate)
                    for name, estimate in model.calibration.items()
                ]
                yield Grid(_SUMMARY, numbers)
            yield from [Said(f"Note: {model.note}", "quiet")] if model.note else ()
        for pair in self.differences:
            title = f"Net benefit of {pair.pred} minus that of {pair.other}, on the same rows"
            yield Grid(_DIFFERENCES, pair.thresholds, printable(title))
        if self.differences and self.differences[0].note:  # the same for all pairs
            yield Said(f"Note: {self.differences[0].note}", "quiet")
        yield Said(_HOW_TO_READ, "quiet")

    def rows(self) -> list[dict[str, Any]]:
        """Return each threshold of each model."""
        return [
            {"pred": model.pred, **plain(each)}
            for model in self.models
            for each in model.thresholds
        ]


def _finite(value: float) -> float | None:
    return value if abs(value) < float("inf") else None


def _thresholds(found: NetBenefit, level: float) -> list[AtThreshold]:
    columns = (
        found.threshold, found.value, found.low, found.high, found.treat_all, found.cost,
        found.rows_below, found.prob_below, found.label_below,
    )  # fmt: skip
    each = zip(*(column.tolist() for column in columns), found.sentences, strict=True)
    return [
        AtThreshold(
            threshold=t, net_benefit=value, low=_finite(low), high=_finite(high), level=level,
            treat_all=every, treat_none=0.0, cost_of_miscalibration=cost, rows_below=rows,
            mean_prob_below=p if rows else None, mean_label_below=y if rows else None,
            sentence=text,
        )
        for t, value, low, high, every, cost, rows, p, y, text in each
    ]  # fmt: skip


def _difference(found: NetBenefitDifference, at: FloatArray, level: float) -> list[DifferenceAt]:
    here = found.threshold.searchsorted(at)
    columns = (found.threshold, found.value, found.low, found.high)
    return [
        DifferenceAt(threshold=t, difference=d, low=_finite(low), high=_finite(high), level=level)
        for t, d, low, high in zip(*(column[here].tolist() for column in columns), strict=True)
    ]


def _summary(found: CalibrationSummary | str, also: str) -> dict[str, Any]:
    if isinstance(found, str):
        return {"calibration": None, "note": f"{found} {also}".strip()}
    estimates = {
        name: Estimate(value=each.value, low=_finite(each.low), high=_finite(each.high))
        for name, each in found.estimates.items()
    }
    return {"calibration": estimates, "note": f"{found.note} {also}".strip()}
