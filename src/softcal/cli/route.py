"""`softcal route`: which predictions to accept, and on which to ask a person."""

from __future__ import annotations

from typing import Annotated

import typer

from softcal.cli import options as opt
from softcal.cli.describe import BOUNDS, Described, describes
from softcal.cli.tables import load_tables, saved_files
from softcal.exceptions import InputError


@describes(without=("by_rater", *BOUNDS))
def route(
    data: opt.RowsOrTables,
    max_disagreement: Annotated[
        float, opt.asks("Largest mean share of people who disagree.", "X")
    ] = 0.05,
    score: Annotated[str | None, opt.asks("Also accept by this score in [0, 1].", "COL")] = None,
    crowd: Annotated[
        str | None, opt.asks("Also accept if close to this predicted vote share.", "COL")
    ] = None,
    level: opt.Level = opt.DEFAULT_LEVEL,
    plot: opt.Figure = None,
    format_: opt.Output = opt.Format.TABLE,
    *,
    at_every_look: Annotated[
        bool, opt.asks("Hold at every look while rows are added.", "", "--at-every-look")
    ] = False,
    how: Described,
) -> None:
    """Find the predictions to accept without asking a person.

    At most a given share of people disagree with what is accepted. The exit code is 1 if no rule
    can be promised.

    Example: softcal route data.csv --label share --pred p --max-disagreement 0.05
    """
    from softcal.cards.route import RouteCard, Scores, routes_of

    scores, column = None, score or crowd
    asked = how
    if column is not None:
        _refuse_scores(data, how, twice=bool(score and crowd))
        scores = Scores(column, crowd=score is None)
        asked = how._replace(pred=[*(how.pred or ()), column])
    tables = load_tables(data, asked, look=None if scores is None else scores.look)
    if scores is not None:
        tables = tables.select(tables.models[:1])
    card = RouteCard.of(
        tables, source=opt.source_name(data), by=how.by or (), max_disagreement=max_disagreement,
        level=level, anytime=at_every_look, scores=scores,
    )  # fmt: skip
    if plot is not None:
        from softcal.plot import draw_routes
        from softcal.plot.sheet import save_figure

        routes = routes_of(tables, max_disagreement, level, anytime=at_every_look)
        save_figure(draw_routes(routes), plot)
    opt.print_card(card, format_)
    raise typer.Exit(int(not card.promised))


def _refuse_scores(data: list[str], how: Described, *, twice: bool) -> None:
    problems = (
        (twice, "pass --score or --crowd, not both."),
        (saved_files(data), "--score and --crowd are for rows: leave them out with saved tables."),
        (len(how.pred or ()) != 1 or how.many or how.is_long,
         "--score and --crowd are for one model with one prediction per row: pass --pred once."),
    )  # fmt: skip
    for problem, message in problems:
        if problem:
            raise InputError(message)
