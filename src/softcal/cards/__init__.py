"""Results as cards: typed numbers that print, and become JSON, HTML, and frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softcal.cards.bounds import BoundsCard
from softcal.cards.classes import ClassScoreCard
from softcal.cards.compare import ClassComparisonCard, ComparisonCard
from softcal.cards.kinds import RaterScoreCard
from softcal.cards.scores import ScoreCard
from softcal.table.tableset import BOUNDS, TOP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcal.table.tableset import TableSet


def score(
    tables: TableSet, *, source: str = "", by: Sequence[str] = (), level: float = 0.95
) -> ScoreCard | ClassScoreCard | BoundsCard:
    """Score each model of a set, and each of its segments.

    Parameters
    ----------
    tables : TableSet
        The result of `scan`.
    source : str, optional
        What the card calls the source of the rows.
    by : sequence of str, optional
        Columns of the set whose segments are scored too.
    level : float, default=0.95
        The confidence level of the intervals.

    Returns
    -------
    ScoreCard, ClassScoreCard, or BoundsCard
        The scores of one label per row, of many classes, or of labels that are intervals. It
        prints as `softcal score` does; `to_dict` and `to_frame` return its numbers.

    Examples
    --------
    >>> import softcal as sc
    >>> from importlib.resources import files
    >>> items = files("softcal") / "data" / "lidc_malignancy" / "items.csv"
    >>> card = score(sc.scan(items, y_true="soft_malignant", y_prob="prob_rf_all"))
    >>> round(card.models[0].smece, 4)
    0.0952
    """
    if tables.targets == BOUNDS:
        return BoundsCard.of(tables, source, by)
    if tables.targets[0] == TOP:
        return ClassScoreCard.of(tables, source, by, level)
    return ScoreCard.of(tables, source, by, level)


__all__ = [
    "BoundsCard", "ClassComparisonCard", "ClassScoreCard", "ComparisonCard", "RaterScoreCard",
    "ScoreCard", "score",
]  # fmt: skip
