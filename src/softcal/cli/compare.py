"""`softcal compare`: compare the calibration of two or more models."""

from __future__ import annotations

from softcal.cli import options as opt
from softcal.cli.describe import BOUNDS, Described, describes
from softcal.cli.tables import load_tables, refuse_bounds
from softcal.exceptions import InputError


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

    Example: softcal compare data.csv --label share --pred p_a --pred p_b
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
    refuse_bounds(tables, "a comparison")
    card = ComparisonCard.of(tables, source=opt.source_name(data), by=how.by or (), level=level)
    opt.print_card(card, format_)
