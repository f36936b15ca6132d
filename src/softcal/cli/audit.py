"""`softcal audit`: find the segments whose predictions are too high or too low."""

from __future__ import annotations

from typing import Annotated, Any

from softcal.cli import options as opt
from softcal.cli.describe import BOUNDS, CLASSES, RATERS, Described, describes
from softcal.cli.describe import cut as read_cut
from softcal.cli.describe import feature as read_feature
from softcal.cli.tables import load_tables, saved_files
from softcal.exceptions import InputError


@describes(without=(*RATERS, *BOUNDS, *CLASSES))
def audit(
    data: opt.RowsOrTables,
    feature: Annotated[
        list[str] | None, opt.asks("Column of numbers, in N ranges, such as age:10.", "COL:N")
    ] = None,
    cut: Annotated[
        list[str] | None, opt.asks("Column of numbers, cut at X,..., as age:40,60.", "COL:X,...")
    ] = None,
    depth: Annotated[int, opt.asks("Most columns that define a segment.", "N")] = 2,
    min_rows: Annotated[int, opt.asks("Rows a segment needs to be tested.", "N", rare=True)] = 30,
    level: opt.Level = opt.DEFAULT_LEVEL,
    draws: Annotated[int, opt.asks("Number of simulated data sets.", "N", rare=True)] = 2000,
    seed: Annotated[int, opt.asks("Seed of the simulation.", "N", rare=True)] = 0,
    output: opt.Page = None,
    format_: opt.Output = opt.Format.TABLE,
    *,
    how: Described,
) -> None:
    """Find the segments whose predictions are too high or too low.

    The p-values and intervals hold for all segments of a model simultaneously.

    Example: softcal audit data.csv --label y --pred p --by sex --cut age:40,60
    """
    from softcal.cards.audit import AuditCard
    from softcal.inference.segments import audit_tables

    tables = load_tables(data, how, by=_segments(data, how, feature or [], cut or []))
    named = None if feature or cut or not how.by else how.by  # None: all columns of the tables
    audits = [
        audit_tables(
            tables, model=model, by=named, depth=depth, level=level, min_rows=min_rows,
            draws=draws, rng=seed,
        )
        for model in tables
    ]  # fmt: skip
    if output is not None:
        from softcal.report.audit import write_audit_page

        write_audit_page(
            output,
            audits,
            source=opt.source_name(data),
            label=tables.about.label,
            group=tables.about.group,
            notes=opt.notes(),
        )
    card = AuditCard.of(tables, audits, source=opt.source_name(data), draws=draws, seed=seed)
    opt.print_card(card, format_)


def _segments(
    data: list[str], how: Described, features: list[str], cuts: list[str]
) -> list[Any] | None:
    """Return the segments of rows: values of columns, and ranges of numbers."""
    ranges = [read_feature(each) for each in features] + [read_cut(each) for each in cuts]
    if not ranges:
        return None
    if saved_files(data):
        message = (
            f"{'--feature' if features else '--cut'} is for rows: leave it out with saved tables."
        )
        raise InputError(message)
    from softcal.scanning.data import Cut

    return [*(how.by or ()), *(Cut(*each) for each in ranges)]
