"""`softcal score`: measure how well calibrated each model is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softcal import terminal
from softcal.cli.describe import Described, describes
from softcal.cli.options import (
    DEFAULT_LEVEL,
    Format,
    Level,
    MaybeBins,
    Output,
    RowsOrTables,
    print_result,
    source_name,
)
from softcal.cli.tables import load_tables
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from softcal.table.tableset import TableSet


@describes
def score(
    data: RowsOrTables,
    bins: MaybeBins = None,
    level: Level = DEFAULT_LEVEL,
    save: Annotated[
        Path | None,
        typer.Option(help="Also save the tables, as `softcal scan`.", metavar="FILE"),
    ] = None,
    format_: Output = Format.TABLE,
    *,
    how: Described,
) -> None:
    """Compute SMECE, its interval, a calibration test, and the Brier score.

    Example: softcal score data.csv --label y --pred p
    """
    from softcal._validation.rules import refuse_bad_level

    refuse_bad_level(level)
    if how.bounds:
        _refuse_level(level)
    tables = load_tables(data, how, bins=bins, pairs=save is not None)
    if save is not None:
        tables.save(save)
    if how.by_rater is None:
        show_scores(tables, source_name(data), level, format_, how.by or ())
        return
    from softcal.cli.raters import kinds_card, show_kinds

    kinds = kinds_card(data, how, tables.bins, level)
    show_scores(tables, source_name(data), level, format_, how.by or (), {"by_rater": kinds})
    if format_ is Format.TABLE:
        show_kinds(terminal.console(), kinds)


def show_scores(
    tables: TableSet,
    name: str,
    level: float,
    format_: Format,
    by: Sequence[str] = (),
    also: Mapping[str, Any] | None = None,
) -> None:
    """Print the scores of a set of tables as text or JSON, according to the kind of its labels.

    `also` holds further entries for JSON.
    """
    from softcal.table.tableset import BOUNDS, TOP

    if tables.targets[0] == TOP:
        from softcal.cli.classes import class_scorecard, show_class_scores

        card, show = class_scorecard(tables, by, level), show_class_scores
    elif tables.targets == BOUNDS:
        from softcal.cli.bounds import bounds_card, show_bounds

        _refuse_level(level)
        card, show = bounds_card(tables, by), show_bounds
    else:
        from softcal.cli.display import scorecard, show_table_scores

        card, show = scorecard(tables, by, level), show_table_scores
    if format_ is Format.JSON:
        print_result(card | dict(also or {}))
    else:
        show(terminal.console(), tables, card, name)


def _refuse_level(level: float) -> None:
    """Raise if a level is given for bounds, which are not confidence intervals."""
    if level != DEFAULT_LEVEL:
        message = "--label-low and --label-high cannot be combined with --level."
        raise InputError(message)
