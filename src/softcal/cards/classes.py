"""The scores of models of many classes: the predicted class, each class, and single items."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from softcal._display import counted, printable
from softcal.cards.card import Column, Grid, Numbered, OfTables, Said, calling, provenance
from softcal.cards.scores import (
    NAME,
    ROWS,
    OfModel,
    OfSegment,
    each_model,
    segment_grids,
    with_segments,
)
from softcal.inference.smece import ABOVE_ITS_INTERVAL, is_above, smece_interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from softcal.cards.card import Part
    from softcal.table.tableset import TableSet


@dataclass(frozen=True, kw_only=True)
class ClassScore:
    """The numbers of many classes.

    A metric that needs numbers of votes is None without them, and one of ordered classes without
    an order. A loss is None if it is infinite.
    """

    top_label_smece: float
    accuracy: float
    debiased: float
    low: float
    high: float
    level: float
    pvalue: float
    classwise_smece: float
    smece_by_class: dict[str, float]
    dist_ce: float | None = None
    dist_ce_floor: float | None = None
    ent_ce: float | None = None
    ent_ce_signed: float | None = None
    rank_cs: float | None = None
    brier: float | None = None
    brier_without_vote_noise: float | None = None
    log_loss: float | None = None
    rows_of_infinite_log_loss: int | None = None
    kl_divergence: float | None = None
    cumulative_smece: float | None = None
    cumulative_low: float | None = None
    cumulative_high: float | None = None
    smece_by_threshold: dict[str, float] | None = None
    wasserstein: float | None = None
    wasserstein_low: float | None = None
    wasserstein_high: float | None = None
    wasserstein_floor: float | None = None
    ranked_probability_score: float | None = None
    ranked_probability_score_low: float | None = None
    ranked_probability_score_high: float | None = None
    ranked_probability_score_without_vote_noise: float | None = None
    manhattan: float | None = None
    manhattan_low: float | None = None
    manhattan_high: float | None = None
    manhattan_floor: float | None = None


@dataclass(frozen=True, kw_only=True)
class ClassSegment(ClassScore, OfSegment):
    """The scores of a segment."""


@dataclass(frozen=True, kw_only=True)
class ClassModel(ClassScore, OfModel):
    """The scores of a model, and of its segments."""

    segments: list[ClassSegment]

    @property
    def shown_log_loss(self) -> str | None:
        """The log loss as text; None if it is not known."""
        return self._loss(self.log_loss)

    @property
    def shown_kl_divergence(self) -> str | None:
        """The KL divergence as text; None if it is not known."""
        return self._loss(self.kl_divergence)

    def _loss(self, loss: float | None) -> str | None:
        known = self.rows_of_infinite_log_loss is not None
        return None if not known else "inf" if loss is None else f"{loss:.4f}"


def class_scores(tables: TableSet, pred: str, level: float) -> dict[str, Any]:
    """Return the fields of `ClassScore`."""
    top = tables[pred]
    found = smece_interval(top, level=level)
    by_class = {name: tables[pred, name].smece for name in tables.classes}
    return {
        "top_label_smece": top.smece,
        "accuracy": float(top.sums.label.sum() / top.sums.weight.sum()),
        "debiased": found.debiased, "low": found.low, "high": found.high, "level": level,
        "pvalue": found.pvalue,
        "classwise_smece": math.fsum(by_class.values()) / len(by_class),
        "smece_by_class": by_class,
        **_item_scores(tables, pred),
        **(_ordered_scores(tables, pred, level) if tables.ordered else {}),
    }  # fmt: skip


def _item_scores(tables: TableSet, pred: str) -> dict[str, Any]:
    if "scores" not in tables.blocks:
        return {}
    known = {field.name for field in fields(ClassScore)}
    found = tables.item_scores(pred)._asdict()
    infinite = found.pop("infinite")
    own = {name: value for name, value in found.items() if name in known}
    finite = {k: None if isinstance(v, float) and math.isinf(v) else v for k, v in own.items()}
    return finite | {"rows_of_infinite_log_loss": infinite}


def _ordered_scores(tables: TableSet, pred: str, level: float) -> dict[str, Any]:
    from softcal.inference.ordinal import ORDERED_METRICS, cumulative_smece_interval, score_interval

    thresholds = tables.cumulative(pred)
    found = cumulative_smece_interval(thresholds, level=level)
    scores: dict[str, Any] = {
        "cumulative_smece": found.value, "cumulative_low": found.low,
        "cumulative_high": found.high,
        "smece_by_threshold": {name: rel.smece for name, rel in thresholds.items()},
    }  # fmt: skip
    if tables.about.group is None:
        for metric in ORDERED_METRICS:
            limits = score_interval(tables, pred, metric=metric, level=level)
            scores |= {f"{metric}_low": limits.low, f"{metric}_high": limits.high}
    return scores


_LEVEL = "  {level:%} interval"
_MODEL = (
    NAME._replace(title=""),
    Column("top-label SMECE", "{top_label_smece:.4f}"),
    Column(_LEVEL, "{low:.3f} to {high:.3f}"),
    Column("  p-value", "{pvalue:p}"),
    Column("accuracy", "{accuracy:.4f}"),
    Column("classwise SMECE", "{classwise_smece:.4f}"),
    Column("cumulative SMECE", "{cumulative_smece:.4f}"),
    Column(_LEVEL, "{cumulative_low:.3f} to {cumulative_high:.3f}"),
    Column("Wasserstein", "{wasserstein:.4f}"),
    Column(_LEVEL, "{wasserstein_low:.3f} to {wasserstein_high:.3f}"),
    Column("  floor from vote noise", "{wasserstein_floor:.4f}"),
    Column("ranked probability score", "{ranked_probability_score:.4f}"),
    Column(_LEVEL, "{ranked_probability_score_low:.3f} to {ranked_probability_score_high:.3f}"),
    Column("  without vote noise", "{ranked_probability_score_without_vote_noise:.4f}"),
    Column("Manhattan distance", "{manhattan:.4f}"),
    Column(_LEVEL, "{manhattan_low:.3f} to {manhattan_high:.3f}"),
    Column("  floor from vote noise", "{manhattan_floor:.4f}"),
    Column("DistCE", "{dist_ce:.4f}"),
    Column("  floor from vote noise", "{dist_ce_floor:.4f}"),
    Column("EntCE", "{ent_ce:.4f}"),
    Column("  signed", "{ent_ce_signed:+z.4f}"),
    Column("RankCS", "{rank_cs:.4f}"),
    Column("Brier", "{brier:.4f}"),
    Column("  without vote noise", "{brier_without_vote_noise:.4f}"),
    Column("log loss", "{shown_log_loss}"),
    Column("KL divergence", "{shown_kl_divergence}"),
)
_SEGMENT = (
    Column("", "{name:name}"),
    ROWS,
    Column("top-label\nSMECE", "{top_label_smece:.4f}"),
    Column("{level:%}\ninterval", "{low:.3f} to {high:.3f}"),
    Column("p-value", "{pvalue:p}"),
    Column("accuracy", "{accuracy:.3f}"),
    Column("classwise\nSMECE", "{classwise_smece:.4f}"),
    Column("Brier", "{brier:.3f}"),
)
_MODELS_PER_GRID = 3
_WORST_CLASSES = 5
_FEW_CLASSES = 12
_HOW_TO_READ = (
    "Top-label compares the predicted class's probability with its share of the label. That share, "
    "on average, is the accuracy. Classwise averages the {} of each class. DistCE (total "
    "variation distance), EntCE (difference of entropies; signed above 0: less certain than the "
    "labels), Brier, and KL compare single items, so they include vote noise. RankCS is the share "
    "of items with classes in the right order. Higher accuracy and RankCS are better; for all "
    "other scores, lower is better."
)


@dataclass(frozen=True, kw_only=True)
class ClassScoreCard(OfTables):
    """The scores of each model of many classes."""

    classes: list[str]
    ordered: bool
    models: list[ClassModel]

    @staticmethod
    def of(tables: TableSet, source: str, by: Sequence[str], level: float) -> ClassScoreCard:
        """Score each model by every metric for many classes."""
        models = each_model(
            tables, by, ClassModel, ClassSegment,
            lambda part, pred: class_scores(part, pred, level),
        )  # fmt: skip
        return ClassScoreCard(
            **provenance(tables, source), classes=list(tables.classes), ordered=tables.ordered,
            models=models,
        )  # fmt: skip

    def heading(self, *more: str) -> str:
        """Return the title of the result, with the number of classes."""
        number = f"{len(self.classes):,} {'ordered ' * self.ordered}classes"
        return super().heading(number, *more)

    def parts(self) -> Iterator[Part]:
        """Yield the scores of models side by side, of the worst classes, and of segments."""
        yield from self.side_by_side()
        yield from self._worst_classes()
        for model in self.models:
            yield from segment_grids(model, self.n, calling(self.error, _SEGMENT))
        yield Said(self.how_to_read, "quiet")

    @property
    def how_to_read(self) -> str:
        """What the scores mean."""
        above = any(is_above(model.top_label_smece, model.high) for model in self.models)
        return f"{_HOW_TO_READ.format(self.error)}{f' {ABOVE_ITS_INTERVAL}' * above}"

    def side_by_side(self) -> Iterator[Part]:
        """Yield the scores, a few models per table, so that no number is cut in 80 columns."""
        for start in range(0, len(self.models), _MODELS_PER_GRID):
            some = self.models[start : start + _MODELS_PER_GRID]
            yield Grid(calling(self.error, _MODEL), some, self.heading(), turned=True)
        if self.ordered:
            order = " < ".join(map(printable, self.classes))
            yield Said(
                f"Order of the classes: {order}. Cumulative: each threshold between them, "
                "averaged. Wasserstein: in classes.",
                "quiet",
            )
        for model in self.models:
            if infinite := model.rows_of_infinite_log_loss:
                yield Said(infinite_loss(model.pred, infinite, self.n))

    def _worst_classes(self) -> Iterator[Part]:
        """Yield the SMECE of classes, ranked by their worst model; of many classes the worst."""
        found = [
            Numbered(name, tuple(model.smece_by_class[name] for model in self.models))
            for name in self.classes
        ]
        found.sort(key=lambda each: -max(each.values))
        shown = found if len(found) <= _FEW_CLASSES else found[:_WORST_CLASSES]
        title = f"{self.error} by class, worst first"
        if len(shown) < len(found):
            title += f": {len(shown)} of {len(found):,} (all with --format json)"
        for start in range(0, len(self.models), _MODELS_PER_GRID):
            names = [model.pred for model in self.models[start : start + _MODELS_PER_GRID]]
            columns = [
                Column(escaped(name), f"{{m{k}:.4f}}", named=True)
                for k, name in enumerate(names, start)
            ]
            yield Grid([Column("class", "{name:name}"), *columns], shown, title)

    def rows(self) -> Sequence[Any]:
        """Return the scores of models and segments."""
        return with_segments(self.models)


def escaped(name: str) -> str:
    """Return a name as the title of a column, which is a format string."""
    return printable(name).replace("{", "{{").replace("}", "}}")


def infinite_loss(model: str, infinite: int, rows: int) -> str:
    """Return why the log loss of a model is infinite."""
    return printable(
        f"In {infinite:,} of {counted(rows, 'row')}, {model} predicts exactly 0 or 1 and the label "
        "differs, so its log loss is infinite."
    )
