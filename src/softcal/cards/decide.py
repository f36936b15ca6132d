"""Net benefit at thresholds, the cost of miscalibration there, and a summary of calibration."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from softcal._display import printable
from softcal._validation.inputs import columns as columns_of
from softcal.bins import Bins, meant
from softcal.cards.card import Column, Grid, OfTables, Said, plain, provenance
from softcal.decision import (
    NetBenefitDifference,
    PairedDecisions,
    checked_thresholds,
    net_benefit,
    net_benefit_difference,
)
from softcal.exceptions import InputError
from softcal.inference.summary import calibration_summary
from softcal.scanning.sample import Sample, basis
from softcal.table.tableset import LABEL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from softcal._validation.inputs import Coded, FloatArray, Rows
    from softcal.cards.card import Part
    from softcal.decision import NetBenefit
    from softcal.inference.summary import CalibrationSummary
    from softcal.scanning.sample import Basis
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


class Decisions:
    """The net benefit of models at thresholds, of rows as they are read or of saved tables.

    Parameters
    ----------
    thresholds : list of float
        The thresholds.
    level : float
        The confidence level.
    of_rows : bool
        Whether rows are read, with `bins` and `look`; saved tables have neither.
    drawn : bool
        Whether `curves` will be asked for.
    """

    def __init__(
        self, thresholds: Sequence[float], level: float, *, of_rows: bool, drawn: bool
    ) -> None:
        self.at = np.unique(checked_thresholds(thresholds))
        self.level = level
        # The grid of saved tables, cut at the thresholds as well.
        self.bins = Bins(np.union1d(Bins.grid().edges, self.at)) if of_rows else None
        more = self._drawn(self.bins) if self.bins is not None and drawn else ()
        self._kept = np.union1d(more, self.at)
        self._sample = Sample()
        self._lock = threading.Lock()
        self._pairs: dict[tuple[str, str], PairedDecisions] = {}

    def look(self, piece: int, rows: Mapping[str, Rows], groups: Coded | None) -> None:
        """Add rows of a piece; threads may add pieces in any order."""
        self._sample.add(piece, rows, groups)
        if groups is not None:
            return
        (first, of_first), *others = rows.items()
        p, y, w = columns_of(of_first)
        for name, each in others:
            with self._lock:
                pair = self._pairs.setdefault((first, name), PairedDecisions(self._kept))
                pair.add(p, columns_of(each)[0], y, w, part=piece)

    def card(self, tables: TableSet, *, source: str, paired: bool) -> DecisionCard:
        """Return the decisions of each model; rows of models are `paired` unless in long form."""
        basis = self._basis(tables, paired=paired)
        found = self._benefits(basis, self.at)
        summaries = {model: _summarized(data, self.level) for model, data in basis.models.items()}
        return DecisionCard.of(
            tables, found, summaries, self._differences(tables, basis, found), source=source,
            level=self.level, computed=(basis.name, basis.text),
            note=_NO_LIMITS if self._alone(tables, basis) else "",
        )  # fmt: skip

    def curves(
        self, tables: TableSet, *, paired: bool
    ) -> tuple[dict[str, NetBenefit], list[NetBenefitDifference]]:
        """Return the net benefit and the differences up to above the highest threshold."""
        basis = self._basis(tables, paired=paired)
        curves = self._benefits(basis, self._drawn(tables.grid))
        return curves, self._differences(tables, basis, curves)

    def _basis(self, tables: TableSet, *, paired: bool) -> Basis:
        refuse_other_tables(tables, self.at)
        return basis(tables, self._sample if self.bins is not None and paired else None)

    def _benefits(self, source: Basis, thresholds: FloatArray) -> dict[str, NetBenefit]:
        return {
            model: net_benefit(**data, thresholds=thresholds, level=self.level)
            for model, data in source.models.items()
        }

    def _differences(
        self, tables: TableSet, source: Basis, found: Mapping[str, NetBenefit]
    ) -> list[NetBenefitDifference]:
        """Return the difference of the first model and each other one."""
        if self._alone(tables, source):
            return _without_limits(found, self.level)
        if tables.about.group is None:
            return [pair.difference(names, self.level) for names, pair in self._pairs.items()]
        return _of_groups(source.models, self._kept, self.level)

    def _alone(self, tables: TableSet, source: Basis) -> bool:
        """Return whether it is unknown on which rows two models decide differently."""
        grouped = tables.about.group is not None
        return self.bins is None or (grouped and source.name == "grid")

    def _drawn(self, bins: Bins) -> FloatArray:
        """Return all edges up to somewhat above the highest threshold."""
        return bins.edges[bins.edges <= min(max(1.5 * float(self.at[-1]), 0.1), 0.99)]


def _of_groups(
    models: Mapping[str, dict[str, Any]], at: FloatArray, level: float
) -> list[NetBenefitDifference]:
    """Return the difference of the first model and each other one, of rows in groups."""
    (first, one), *others = models.items()
    given = {name: one[name] for name in ("sample_weight", "groups")}
    return [
        net_benefit_difference(
            one["y_true"], {first: one["y_prob"], name: two["y_prob"]}, at, level=level, **given
        )
        for name, two in others
    ]


def _without_limits(found: Mapping[str, NetBenefit], level: float) -> list[NetBenefitDifference]:
    """Return the differences of saved tables, which do not store what two models do together."""
    (first, one), *others = found.items()
    wide = np.full(one.value.size, np.inf)
    return [
        NetBenefitDifference(one.threshold, one.value - b.value, -wide, wide, (first, name), level)
        for name, b in others
    ]


def refuse_other_tables(tables: TableSet, at: FloatArray) -> None:
    """Raise if tables do not have net benefit at these thresholds."""
    if tables.targets != (LABEL,):
        message = (
            "net benefit needs one label and one prediction per row: these tables have many "
            "classes, or labels that are intervals. Scan one column of each."
        )
        raise InputError(message)
    edges = tables.grid.edges
    off = at[~np.isin(meant(at, edges[:-1]), edges)]
    if off.size:
        first = float(off[0])
        k = int(edges.searchsorted(first))
        near = [float(edge) for edge in edges[k - 1 : k + 1] if edge < 1]
        message = (
            f"--threshold must be an edge of the saved tables' grid: {off.size} of {at.size} are "
            f"not, the first is {first!r}. Nearest: {' and '.join(map(repr, near))}. Pass "
            "one of these, or pass the rows, for which any threshold is possible."
        )
        raise InputError(message)


def _summarized(data: dict[str, Any], level: float) -> CalibrationSummary | str:
    """Return the calibration summary, or why there is none."""
    try:
        return calibration_summary(**data, level=level)
    except InputError as error:
        return str(error)


_NO_LIMITS = (
    "tables do not store the rows on which two models decide differently, so the difference has no "
    "interval. Pass the rows; if they are in groups, at most 1,000,000 of them."
)
