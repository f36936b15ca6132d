"""Scores by the votes of each kind of rater, and whether the kinds differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from softcal._display import printable
from softcal.cards.card import Column, Grid, Said, calling
from softcal.cards.scores import OfModel, Score, ScoreCard, score_of
from softcal.inference.comparison import holm
from softcal.inference.raters import rater_difference, reliability_by_rater

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from softcal._validation.inputs import FloatArray
    from softcal.bins import Bins
    from softcal.cards.card import Part
    from softcal.votes import Votes

_SCORES = (
    Column("", "{value:name}"),
    Column("raters", "{raters:,}"),
    Column("rows", "{n:,}"),
    Column("votes", "{votes:,}"),
    Column("SMECE", "{smece:.4f}"),
    Column("{level:%}\ninterval", "{low:digits} to {high:digits}"),
    Column("p-value", "{pvalue:p}"),
    Column("bias", "{bias:limit}"),
    Column("Brier", "{brier:digits}"),
)
_DIFFERENCES = (
    Column("", "{name:name}"),
    Column("difference\nin bias", "{difference:limit}"),
    Column("{level:%}\ninterval", "{low:limit} to {high:limit}"),
    Column("p-value", "{pvalue:p}"),
    Column("p-value\n(Holm)", "{pvalue_holm:p}"),
)
_HOW_TO_READ = (
    "Each kind is scored by its own votes, on the items it rated, for new items and new raters of "
    "the kind. A difference is the bias by one kind's votes minus the bias by the others'. Its "
    "p-value is how often kinds that do not differ would show differences at least this extreme, "
    "overall or in a bin. Kinds that rated different items may differ because the items do."
)
_HOLM = "Holm's correction is for testing several kinds."


@dataclass(frozen=True, kw_only=True)
class _OfKind:
    value: str
    n: int
    raters: int
    votes: int


@dataclass(frozen=True, kw_only=True)
class Kind(Score, _OfKind):
    """The scores by the votes of one kind of rater."""


@dataclass(frozen=True, kw_only=True)
class KindDifference:
    """The bias by the votes of kind a minus that of kind b, or of all others if b is None."""

    a: str
    b: str | None
    difference: float
    low: float
    high: float
    level: float
    pvalue: float
    pvalue_holm: float | None

    @property
    def name(self) -> str:
        """The two kinds."""
        return f"{self.a} minus {'all others' if self.b is None else self.b}"


@dataclass(frozen=True, kw_only=True)
class ModelByKind(OfModel):
    """The scores of a model by each kind, and the differences that can be tested."""

    kinds: list[Kind]
    differences: list[KindDifference]


@dataclass(frozen=True, kw_only=True)
class ByRater:
    """The scores of each model by the votes of each kind of rater."""

    column: str
    models: list[ModelByKind]

    @staticmethod
    def of(
        votes: Votes, models: Mapping[str, FloatArray], column: str, kinds: Sequence[str],
        bins: Bins, level: float,
    ) -> ByRater:  # fmt: skip
        """Score each model by the votes of each kind; `kinds` has the kind of each rater."""
        found = [
            ModelByKind(pred=name, **_of_model(votes, p, kinds, bins, level))
            for name, p in models.items()
        ]
        return ByRater(column=column, models=found)

    def parts(self, error: str) -> Iterator[Part]:
        """Yield one table of scores and one of differences per model."""
        notes = [_HOW_TO_READ]
        for model in self.models:
            title = printable(f"{model.pred}, by {self.column} of the raters")
            yield Grid(calling(error, _SCORES), model.kinds, title)
            if model.differences:
                yield Grid(_DIFFERENCES, model.differences)
                notes += [_HOLM] * (model.differences[0].pvalue_holm is not None)
            notes += _cautions(model)
        yield Said(" ".join(dict.fromkeys(notes)), "quiet")


@dataclass(frozen=True, kw_only=True)
class RaterScoreCard(ScoreCard):
    """The scores of each model, and those by the votes of each kind of rater."""

    by_rater: ByRater

    def parts(self) -> Iterator[Part]:
        """Yield the scores by all votes, and those by each kind."""
        yield from super().parts()
        yield from self.by_rater.parts(self.error)


def _of_model(
    votes: Votes, p: FloatArray, of_rater: Sequence[str], bins: Bins, level: float
) -> dict[str, Any]:
    """Return the scores by each kind, and the differences between kinds that can be tested."""
    kinds, raters = [], {}
    for kind, rel in reliability_by_rater(votes, p, by=of_rater, bins=bins).items():
        assert rel.raters is not None  # noqa: S101 - it was built with raters
        raters[kind] = rel.raters.count
        kinds.append(
            Kind(value=kind, n=rel.n, raters=rel.raters.count, votes=int(rel.sums.votes.sum()),
                 **score_of(rel, level))
        )  # fmt: skip
    found = {}
    for a, b in [tuple(raters)] if len(raters) == 2 else [(kind, None) for kind in raters]:
        if min(raters[a], sum(raters.values()) - raters[a]) >= 2:  # enough to compare
            by = [kind == a for kind in of_rater]
            found[a, b] = rater_difference(
                votes, p, by=by, kinds=(True, False), bins=bins, level=level
            )
    several = len(found) > 1
    corrected = holm([each.pvalue for each in found.values()]) if several else [None] * len(found)
    differences = [
        KindDifference(a=a, b=b, difference=each.difference, low=each.low, high=each.high,
                       level=level, pvalue=each.pvalue, pvalue_holm=pvalue)
        for ((a, b), each), pvalue in zip(found.items(), corrected, strict=True)
    ]  # fmt: skip
    return {"kinds": kinds, "differences": differences}


def _cautions(model: ModelByKind) -> list[str]:
    """Return the notes of the kinds' intervals, and why some kinds are not compared."""
    of_note: dict[str, list[str]] = {}
    for one in model.kinds:
        of_note.setdefault(one.note, []).append(printable(one.value))
    found = [f"{', '.join(kinds)}: {note}" for note, kinds in of_note.items() if note]
    if len(model.differences) < (1 if len(model.kinds) == 2 else len(model.kinds)):
        found.append("A kind with one rater, or with one other rater, is not compared.")
    return found
