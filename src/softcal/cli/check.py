"""`softcal check`: one exit code for a pipeline: pass, fail, or undecided."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from softcal.cli import options as opt
from softcal.cli.describe import BOUNDS, Described, describes
from softcal.cli.tables import load_tables
from softcal.exceptions import InputError

_CODES = {"pass": 0, "fail": 1, "undecided": 3}


Undecided = StrEnum("Undecided", ["pass", "fail"])
"""What an undecided check counts as."""


@describes(without=("by_rater", "ordered", *BOUNDS))
def check(
    data: opt.RowsOrTables,
    max_smece: Annotated[float | None, opt.asks("Largest acceptable SMECE.", "X")] = None,
    max_gap: Annotated[float | None, opt.asks("Largest acceptable gap of a bin.", "X")] = None,
    min_rows: Annotated[
        int, opt.asks("Rows a bin needs to be judged by --max-gap.", "N", rare=True)
    ] = 100,
    undecided: Annotated[
        Undecided | None,
        opt.asks("If undecided, exit with 0 (pass) or 1 (fail).", "pass|fail", rare=True),
    ] = None,
    bins: opt.MaybeBins = None,
    level: opt.Level = opt.DEFAULT_LEVEL,
    format_: opt.Output = opt.Format.TABLE,
    *,
    how: Described,
) -> None:
    """Check calibration against a limit: pass, fail, or undecided.

    The exit code is 0 (pass), 1 (fail), or 3 (undecided). A model passes if the upper limit of its
    interval is at most the maximum. It fails if the lower limit is above the maximum. With --by,
    every segment must pass, and the intervals of all segments hold simultaneously.

    Example: softcal check data.csv --label y --pred p --max-smece 0.05
    """
    from softcal.cards.check import CheckCard

    if max_smece is None and max_gap is None:
        message = "pass a limit: --max-smece X, --max-gap X, or both."
        raise InputError(message)
    tables = load_tables(data, how, bins=bins)
    card = CheckCard.of(
        tables, source=opt.source_name(data), by=how.by or (), max_smece=max_smece, max_gap=max_gap,
        min_rows=min_rows, level=level,
    )  # fmt: skip
    opt.print_card(card, format_)
    settled = card.outcome if card.outcome != "undecided" or undecided is None else undecided.value
    raise typer.Exit(_CODES[settled])
