"""`softcal decide`: the net benefit of models at thresholds, and the cost of miscalibration."""

from __future__ import annotations

from typing import Annotated

from softcal.cli import options as opt
from softcal.cli.describe import BOUNDS, CLASSES, RATERS, Described, describes
from softcal.cli.tables import load_tables, saved_files


@describes(without=("by", *RATERS, *BOUNDS, *CLASSES))
def decide(
    data: opt.RowsOrTables,
    threshold: Annotated[
        list[float] | None, opt.asks("Act at or above T; may be repeated.", "T")
    ] = None,
    level: opt.Level = opt.DEFAULT_LEVEL,
    plot: opt.Figure = None,
    format_: opt.Output = opt.Format.TABLE,
    *,
    how: Described,
) -> None:
    """Compute net benefit at thresholds, and costs of miscalibration.

    Net benefit is the share of rows that are cases and acted on, minus needless actions times the
    odds of the threshold. With several models, the first is compared with each other one.

    Rows may have any threshold; above 1,000,000 rows, numbers are those of a grid of bins. Saved
    tables have the edges of that grid: multiples of 1/600.

    Example: softcal decide data.csv --label y --pred p --threshold 0.2
    """
    from softcal.cards.decide import Decisions

    at = opt.given(threshold, "pass a threshold: --threshold T.")
    found = Decisions(at, level, of_rows=not saved_files(data), drawn=plot is not None)
    tables = load_tables(data, how, bins=found.bins, look=found.look)
    card = found.card(tables, source=opt.source_name(data), paired=not how.is_long)
    if plot is not None:
        from softcal.plot import draw_decision
        from softcal.plot.sheet import save_figure

        curves, differences = found.curves(tables, paired=not how.is_long)
        figure = draw_decision(curves, differences=differences, marked=found.at.tolist())
        save_figure(figure, plot)
    opt.print_card(card, format_)
