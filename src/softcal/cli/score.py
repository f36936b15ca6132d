"""`softcal score`: measure how well calibrated each model is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from softcal import terminal
from softcal.cli import options as opt
from softcal.cli.describe import Described, describes
from softcal.cli.tables import described, load_tables
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from softcal.bins import Bins
    from softcal.cards.card import Card
    from softcal.cards.kinds import ByRater
    from softcal.table.tableset import TableSet


@describes
def score(
    data: opt.RowsOrTables,
    bins: opt.MaybeBins = None,
    level: opt.Level = opt.DEFAULT_LEVEL,
    save: Annotated[
        Path | None, opt.asks("Also save the tables, as `softcal scan`.", "FILE")
    ] = None,
    format_: opt.Output = opt.Format.TABLE,
    *,
    how: Described,
) -> None:
    """Compute SMECE, its interval, a test, and the Brier score.

    Example: softcal score data.csv --label share --votes n_votes --pred p
    """
    from softcal.cards import RaterScoreCard, ScoreCard
    from softcal.cards import score as score_card

    if how.bounds:
        _refuse_level(level)
    tables = load_tables(data, how, bins=bins, pairs=save is not None)
    if save is not None:
        tables.save(save)
    card = score_card(tables, source=opt.source_name(data), by=how.by or (), level=level)
    if how.by_rater is not None and isinstance(card, ScoreCard):
        found = _by_rater(data, how, tables.bins, level)
        card = RaterScoreCard(**vars(card), by_rater=found)
    show_scores(tables, card, level, format_)


def show_scores(tables: TableSet, card: Card, level: float, format_: opt.Format) -> None:
    """Print the scores of a set of tables, and a diagram of text."""
    from softcal.table.tableset import BOUNDS, LABEL

    if tables.targets == BOUNDS:
        _refuse_level(level)
    opt.print_card(card, format_)
    if format_ is opt.Format.TABLE and tables.targets == (LABEL,):
        from softcal.cli.sketch import show_sketch

        console = terminal.console()
        console.print()
        show_sketch(console, tables, level)


def _by_rater(data: list[str], how: Described, bins: Bins, level: float) -> ByRater:
    from softcal.cards.kinds import ByRater
    from softcal.scanning.ballots import rated
    from softcal.scanning.scan import planned_and

    votes, kinds, predictions = planned_and(described(data, how), rated)
    models = dict(zip(how.name or predictions, predictions.values(), strict=True))
    return ByRater.of(votes, models, str(how.by_rater), kinds, bins, level)


def _refuse_level(level: float) -> None:
    """Raise if a level is given for bounds, which are not confidence intervals."""
    if level != opt.DEFAULT_LEVEL:
        message = "--label-low and --label-high cannot be combined with --level."
        raise InputError(message)
