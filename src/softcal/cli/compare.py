"""`softcal compare`: compare the calibration of two or more models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softcal.cli import options as opt
from softcal.cli.describe import BOUNDS, Described, describes
from softcal.cli.tables import load_tables
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from softcal.table.tableset import TableSet


@describes(without=("by_rater", "ordered", *BOUNDS))
def compare(
    data: opt.RowsOrTables,
    bins: opt.MaybeBins = None,
    level: opt.Level = opt.DEFAULT_LEVEL,
    format_: opt.Output = opt.Format.TABLE,
    *,
    how: Described,
) -> None:
    """Compare the calibration of two or more models on the same rows.

    Example: softcal compare data.csv --label y --pred p_a --pred p_b
    """
    from softcal.cards import ComparisonCard
    from softcal.table.joint import refuse_many_bins

    how.refuse_contradictions()
    if how.is_long and how.item is None:
        message = "models in rows are compared by item: pass --item COL."
        raise InputError(message)
    if len(how.models or ("", "")) < 2 and not how.is_long:
        option = "--pred-columns" if how.many else "--pred"
        message = f"a comparison needs two models: pass {option} two or more times."
        raise InputError(message)
    if bins is not None:
        refuse_many_bins(bins)
    tables = load_tables(data, how, bins=bins, pairs=True)
    _refuse_without_pairs(tables)
    card = ComparisonCard.of(tables, source=opt.source_name(data), by=how.by or (), level=level)
    opt.print_card(card, format_)


def _refuse_without_pairs(tables: TableSet) -> None:
    """Raise if saved tables do not have what a comparison needs."""
    from softcal.table.tableset import BOUNDS

    if tables.targets == BOUNDS:
        message = (
            "models cannot be compared if labels are known only as intervals: `softcal score` "
            "prints the bounds for each model."
        )
        raise InputError(message)
    if len(tables) < 2:
        message = f"a comparison needs two models: the tables have only {tables.models[0]!r}."
        raise InputError(message)
    if not tables.has_pairs:
        message = (
            "these tables lack the joint sums of each pair of models, which a comparison needs. "
            "Make the tables again from the rows with `softcal scan`."
        )
        raise InputError(message)
