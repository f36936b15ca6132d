"""Routes: which predictions to accept, and on which to ask a person."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from softcal._display import percent, printable
from softcal._validation.inputs import columns
from softcal.bins import Bins
from softcal.cards.card import Column, Grid, OfTables, Said, plain, provenance
from softcal.exceptions import InputError
from softcal.inference.route_scores import AreaDifference, PairedScores
from softcal.inference.routing import RouteOptions, route
from softcal.table.reliability import Reliability, reliability
from softcal.table.tableset import BOUNDS, TOP

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from softcal._validation.inputs import Rows
    from softcal.cards.card import Part
    from softcal.inference.routing import Curve, Route, Rule
    from softcal.table.tableset import TableSet


@dataclass(frozen=True, kw_only=True)
class RouteRow:
    """The rule of a model, of one of its segments, or of another score.

    Numbers of the rule are None if none can be promised. Those named hardened are of the rule that
    labels hardened to the majority would have given; its risk is that of the labels as they are.
    """

    pred: str
    segment: str | None
    score: str
    n: int
    level: float
    threshold: float | None
    accepted: int | None
    share: float | None
    risk: float | None
    risk_high: float | None
    aurc: float
    aurc_low: float
    aurc_high: float
    hardened_threshold: float | None
    hardened_share: float | None
    hardened_risk: float | None
    sentence: str

    @property
    def name(self) -> str:
        """The model, the segment, or the score."""
        return self.segment or self.pred

    @property
    def rows_accepted(self) -> float | None:
        """The share accepted, in percent."""
        return None if self.share is None else 100 * self.share

    @property
    def disagree(self) -> str:
        """The share of people who disagree, and its upper limit, in percent."""
        if self.risk is None or self.risk_high is None:
            return "-"
        return f"{100 * self.risk:.1f} (at most {100 * self.risk_high:.1f})"


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """A rule of the risk-coverage curve, with the interval of its risk."""

    threshold: float
    n: int
    share: float
    risk: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class ModelRoute:
    """The rule of a model, those of its segments, which hold simultaneously, and the curve."""

    pred: str
    overall: RouteRow
    segments: list[RouteRow]
    scores: list[RouteRow]
    curve: list[CurvePoint]
    area_difference: float | None
    area_difference_low: float | None
    area_difference_high: float | None


_COLUMNS = (
    Column("", "{name:name}"),
    Column("rows", "{n:,}"),
    Column("accept\nfrom", "{threshold:.4g}"),
    Column("accepted\n(%)", "{rows_accepted:.1f}"),
    Column("people who\ndisagree (%)", "{disagree}"),
)


@dataclass(frozen=True, kw_only=True)
class RouteCard(OfTables):
    """The rule of each model: what to accept without asking a person."""

    max_disagreement: float
    level: float
    at_every_look: bool
    models: list[ModelRoute]

    @staticmethod
    def of(
        tables: TableSet,
        *,
        source: str,
        by: Sequence[str] = (),
        max_disagreement: float = 0.05,
        level: float = 0.95,
        anytime: bool = False,
        scores: Scores | None = None,
    ) -> RouteCard:
        """Return the rules of all models of a set, and of their segments."""
        routes = routes_of(tables, max_disagreement, level, anytime=anytime)
        how = RouteOptions(top_label=tables.targets[0] == TOP, anytime=anytime)
        parts = [
            (f"{column} = {value}", part)
            for column in by
            for value, part in tables.by(column).items()
            if part.n
        ]
        jointly = 1 - (1 - level) / max(len(parts), 1)
        models = []
        for pred, found in routes.items():
            segments = [
                _row(pred, name, "confidence", route(
                    part.coarsen(part.grid)[pred], max_disagreement=max_disagreement,
                    level=jointly, options=how,
                ))
                for name, part in parts
            ]  # fmt: skip
            others = []
            difference: AreaDifference | None = None
            if scores is not None:
                other = route(
                    scores.table, max_disagreement=max_disagreement, level=level,
                    options=replace(how, top_label=True),
                )  # fmt: skip
                others = [_row(pred, scores.name, scores.name, replace(other, by_score=True))]
                difference = scores.paired.difference(level)
            models.append(
                ModelRoute(
                    pred=pred, overall=_row(pred, None, "confidence", found), segments=segments,
                    scores=others, curve=_points(found.curve),
                    area_difference=difference and difference.difference,
                    area_difference_low=difference and difference.low,
                    area_difference_high=difference and difference.high,
                )
            )  # fmt: skip
        return RouteCard(
            **provenance(tables, source), max_disagreement=max_disagreement, level=level,
            at_every_look=anytime, models=models,
        )  # fmt: skip

    @property
    def promised(self) -> bool:
        """Whether every model has a rule."""
        return all(model.overall.threshold is not None for model in self.models)

    def parts(self) -> Iterator[Part]:
        """Yield the rule of each model in words, then as a table with segments and scores."""
        yield Said(self.origin, "strong")
        for model in self.models:
            one = model.overall
            start = f"{printable(one.pred)}: " if len(self.models) > 1 else ""
            yield Said(start + one.sentence, "bad" if one.threshold is None else "good")
            yield from _of_hardened(one)
        shown = [row for m in self.models for row in (m.overall, *m.scores, *m.segments)]
        if any(row.threshold is not None for row in shown):
            yield Grid(_COLUMNS, shown)
        for model in self.models:
            yield from _of_scores(model)
        if not any(row.threshold is not None for row in shown):
            return
        jointly = (
            " The rules of all segments of a model hold simultaneously."
            if any(model.segments for model in self.models)
            else ""
        )
        looks = (
            " Compute the rule as often as rows are added: it holds at every look."
            if self.at_every_look
            else ""
        )
        yield Said(
            "A row is accepted if the probability of its decision is at least the number in the "
            f"third column. With {percent(self.level)} confidence, the mean share of people who "
            f"disagree is at most {percent(self.max_disagreement)}.{jointly}{looks}",
            "quiet",
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return the rule of each model, score, and segment."""
        return [
            plain(row)
            for model in self.models
            for row in (model.overall, *model.scores, *model.segments)
        ]


def routes_of(
    tables: TableSet, max_disagreement: float, level: float, *, anytime: bool = False
) -> dict[str, Route]:
    """Return the route of each model of a set."""
    if tables.targets == BOUNDS:
        message = "a rule needs labels that are known: these are intervals."
        raise InputError(message)
    how = RouteOptions(top_label=tables.targets[0] == TOP, anytime=anytime)
    fine = tables.coarsen(tables.grid)
    return {
        model: route(fine[model], max_disagreement=max_disagreement, level=level, options=how)
        for model in tables.models
    }


class Scores:
    """Rows by another score than confidence, added up while they are read.

    The score is a column of numbers in [0, 1]. With `crowd`, the column is a predicted vote share
    q, and the score is 1 - |p - q|, as in Crowd-Calibrator (Khurana et al. 2024).
    """

    def __init__(self, column: str, *, crowd: bool) -> None:
        self.name = f"closeness to {column}" if crowd else column
        self.table = Reliability.empty(Bins.grid())
        self.paired = PairedScores()
        self._crowd = crowd

    def look(self, number: int, rows: Mapping[str, Rows], groups: Any) -> None:
        """Add rows of the model and of the column of scores."""
        del number
        (p, y, w), (score, _, _) = (columns(each) for each in rows.values())
        if self._crowd:
            score = 1 - np.abs(p - score)
        agree = np.where(p >= 0.5, y, 1 - y)
        weights = None if next(iter(rows.values())).sample_weight is None else w
        # Without groups at first: an empty table has none to add to.
        added = reliability(agree, score, bins=Bins.grid(), sample_weight=weights, groups=groups)
        self.table = added if not self.table.n else self.table + added
        self.paired.add(1 - agree, np.maximum(p, 1 - p), score, w)


def _row(pred: str, segment: str | None, score: str, found: Route) -> RouteRow:
    rule: Rule | None = found.rule
    hardened: Rule | None = found.hardened
    return RouteRow(
        pred=pred, segment=segment, score=score, n=found.n, level=found.level,
        threshold=rule and rule.threshold, accepted=rule and rule.n, share=rule and rule.share,
        risk=rule and rule.risk, risk_high=rule and rule.high,
        aurc=found.aurc, aurc_low=found.aurc_low, aurc_high=found.aurc_high,
        hardened_threshold=hardened and hardened.threshold,
        hardened_share=hardened and hardened.share, hardened_risk=hardened and hardened.risk,
        sentence=found.sentence,
    )  # fmt: skip


def _points(curve: Curve) -> list[CurvePoint]:
    each = zip(*(column.tolist() for column in curve), strict=True)
    return [
        CurvePoint(threshold=t, n=n, share=share, risk=risk, low=low, high=high)
        for t, n, share, risk, low, high in each
    ]


def _of_hardened(row: RouteRow) -> Iterator[Said]:
    if row.hardened_share is None or row.hardened_risk is None:
        return
    yield Said(
        f"Labels hardened to the majority would promise the same for {row.hardened_share:.1%} of "
        f"the rows, but {row.hardened_risk:.1%} of people disagree with these.",
        "quiet",
    )


def _of_scores(model: ModelRoute) -> Iterator[Said]:
    for other in model.scores:
        yield Said(
            f"Area under the risk-coverage curve: {model.overall.aurc:.4f} by confidence, "
            f"{other.aurc:.4f} by {printable(other.name)}; difference "
            f"{model.area_difference:+.4f} ({model.area_difference_low:+.4f} to "
            f"{model.area_difference_high:+.4f})."
        )
