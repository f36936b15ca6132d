"""`softcal plot`: one figure for a paper or a talk, from rows or saved tables."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

from rich.text import Text

from softcal import terminal
from softcal._display import printable
from softcal.cli.describe import BOUNDS, Described, describes
from softcal.cli.options import DEFAULT_LEVEL, Level, MaybeBins, RowsOrTables, asks, given
from softcal.cli.tables import load_tables, refuse_bounds, saved_files
from softcal.cli.watch import DayFormat, MaybeEvery, days_of, heaviest_group
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from softcal.plot.sheet import Size
    from softcal.table.tableset import TableSet


class Kind(StrEnum):
    """The figures that there are."""

    RELIABILITY = "reliability"
    GAPS = "gaps"
    DECISION = "decision"
    TREND = "trend"
    BINS = "bins"
    RISK_COVERAGE = "risk-coverage"


class Paper(StrEnum):
    """The sizes of a figure, as `softcal.plot.Size`."""

    COLUMN = "column"
    PAGE = "page"
    TALK = "talk"


class _Looks(TypedDict):
    """Arguments of all figures."""

    size: Size
    title: str | None


@describes(without=("by_rater", *BOUNDS))
def plot(
    data: RowsOrTables,
    output: Annotated[
        Path | None, asks("Figure to write: .svg, .pdf, .png.", "FILE", "-o", "--output")
    ] = None,
    kind: Annotated[Kind, asks(f"{', '.join(Kind)}.", "KIND")] = Kind.RELIABILITY,
    size: Annotated[
        Paper, asks("column, page, or talk (16:9).", "SIZE")
    ] = Paper.COLUMN,
    title: Annotated[str | None, asks("Title of the figure.", "TEXT")] = None,
    by: Annotated[str | None, asks("Column of segments to draw, at most 8.", "COL")] = None,
    logit: Annotated[
        bool | None,
        asks(
            "Axes in log odds. Default: if most predictions are below 0.02.", "",
            "--logit/--no-logit", rare=True,
        ),
    ] = None,
    threshold: Annotated[
        list[float] | None, asks("Decision: threshold to mark; may be repeated.", "T")
    ] = None,
    max_disagreement: Annotated[
        float | None, asks("Risk-coverage: share of people, 0.05 by default.", "X", rare=True)
    ] = None,
    day: Annotated[str | None, asks("Trend: column of dates, as in `watch`.", "COL")] = None,
    day_format: DayFormat = None,
    every: MaybeEvery = None,
    tolerance: Annotated[
        float | None, asks("Trend: gap to accept. Default: 0.02.", "T", rare=True)
    ] = None,
    bins: MaybeBins = None,
    level: Level = DEFAULT_LEVEL,
    *,
    ordered: Annotated[
        bool,
        asks("Ordered classes: a panel or line per P(class > k).", "", "--ordered", rare=True),
    ] = False,
    how: Described,
) -> None:  # fmt: skip
    """Draw a figure for a paper or a talk.

    Example: softcal plot data.csv --label y --pred p -o figure.pdf
    """
    from softcal.plot import draw_bins, draw_gaps, draw_reliability
    from softcal.plot.sheet import refuse_format, save_figure

    output = given(output, "pass the file to write: -o figure.pdf, or .svg or .png.")
    refuse_format(output)
    _refuse_of_another_kind(
        kind,
        {"--threshold": threshold, "--day": day, "--tolerance": tolerance,
         "--day-format": day_format, "--every": every, "--logit": logit,
         "--ordered": ordered or None, "--bins": bins, "--max-disagreement": max_disagreement},
    )  # fmt: skip
    how = how._replace(by=None if by is None else [by], ordered=ordered)
    looks = _Looks(size=size.value, title=title)
    if kind is Kind.TREND:
        days = days_of(data, how, bins, day=day, day_format=day_format, every=every)
        figure = _trend(
            days, how, 0.02 if tolerance is None else tolerance, level, looks, by_week=every is None
        )
    elif kind is Kind.DECISION:
        figure = _decision(data, how, threshold or [], level, looks)
    elif kind is Kind.RISK_COVERAGE:
        limit = 0.05 if max_disagreement is None else max_disagreement
        figure = _risk_coverage(load_tables(data, how), by, limit, level, looks)
    else:
        tables = load_tables(data, how, bins=bins)
        refuse_bounds(tables, "a figure")
        if kind is Kind.BINS:
            figure = draw_bins(tables, by=by, ordered=ordered, level=level, **looks)
        else:
            draw = draw_gaps if kind is Kind.GAPS else draw_reliability
            figure = draw(tables, by=by, ordered=ordered, logit=logit, level=level, **looks)
    save_figure(figure, output)
    width, height = figure.get_size_inches()
    saved = f"Saved {output}: {width:.3g} by {height:.3g} inches."
    terminal.console().print(Text(printable(saved)))


_DRAWN_BY_BIN = (Kind.RELIABILITY, Kind.GAPS)
_KINDS = {
    "--threshold": (Kind.DECISION,), "--max-disagreement": (Kind.RISK_COVERAGE,),
    "--logit": _DRAWN_BY_BIN, "--ordered": (*_DRAWN_BY_BIN, Kind.BINS),
    "--bins": (*_DRAWN_BY_BIN, Kind.TREND, Kind.BINS),
}  # fmt: skip


def _refuse_of_another_kind(kind: Kind, options: dict[str, object]) -> None:
    for option, value in options.items():
        own = _KINDS.get(option, (Kind.TREND,))
        if value is not None and kind not in own:
            kinds = " or ".join(own)
            message = f"{option} is for --kind {kinds}: leave it out, or draw that kind."
            raise InputError(message)


def _risk_coverage(
    tables: TableSet, by: str | None, limit: float, level: float, looks: _Looks
) -> Figure:
    from softcal.cards.route import routes_of
    from softcal.plot import draw_routes

    if by is None:
        return draw_routes(routes_of(tables, limit, level), **looks)
    routes = {
        f"{by} = {value}" + f", {model}" * (len(tables.models) > 1): found
        for value, part in tables.by(by).items()
        for model, found in routes_of(part, limit, level).items()
    }
    return draw_routes(routes, **looks)


def _trend(
    days: list[tuple[str, TableSet]], how: Described, tolerance: float, level: float,
    looks: _Looks, *, by_week: bool,
) -> Figure:  # fmt: skip
    from softcal.inference.sequential import Watch
    from softcal.plot import draw_watch

    most = heaviest_group(days)
    watching = Watch(tolerance=tolerance, level=level, by=how.by or (), max_weight=most)
    states = [watching.update(tables, date=date) for date, tables in days]
    return draw_watch(states, tolerance=tolerance, level=level, by_week=by_week, **looks)


def _decision(
    data: list[str], how: Described, marked: list[float], level: float, looks: _Looks
) -> Figure:
    """Draw decision curves up to the threshold that 1% of the predictions of a model reach."""
    import numpy as np

    from softcal.bins import Bins
    from softcal.cards.decide import refuse_other_tables
    from softcal.decision import checked_thresholds, net_benefit
    from softcal.plot import draw_decision
    from softcal.plot.figures import lines_of, parts_of

    by = how.by[0] if how.by else None
    at = checked_thresholds(marked) if marked else np.array([])
    # As in `softcal decide`: rows may have any threshold, saved tables those of their grid.
    bins = None if saved_files(data) else Bins(np.union1d(Bins.grid().edges, at))
    tables = load_tables(data, how, bins=bins)
    refuse_other_tables(tables, at)
    fine = tables.coarsen(tables.grid)
    edges = tables.grid.edges[:-1]
    reached = [fine[model].count[::-1].cumsum()[::-1] >= 0.01 * tables.n for model in fine]
    highest = max(float(edges[np.any(reached, axis=0)].max()), 1.5 * float(at.max(initial=0)), 0.1)
    drawn = edges[edges <= min(highest, 0.99)]
    curves = {
        name: net_benefit(rel, drawn, level=level)
        for name, rel in lines_of(parts_of(fine, by)).items()
    }
    return draw_decision(curves, marked=marked, **looks)
