"""`softcal merge`: add up saved tables and score the total."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softcal._display import counted
from softcal.cli import options as opt
from softcal.cli.tables import load_saved, refuse_empty


def merge(
    saved: Annotated[
        list[Path],
        typer.Argument(help="Files saved by `softcal scan` or `score --save`.", metavar="FILE"),
    ],
    output: Annotated[
        Path | None, opt.asks("Also save the total to this file.", "FILE", "-o", "--output")
    ] = None,
    level: opt.Level = opt.DEFAULT_LEVEL,
    format_: opt.Output = opt.Format.TABLE,
    *,
    allow_identical: Annotated[
        bool, opt.asks("Accept files with identical content.", "", "--allow-identical")
    ] = False,
) -> None:
    """Merge saved tables, such as daily files into a weekly total.

    Example: softcal merge monday.json tuesday.json -o week.json
    """
    from softcal.cards import score as score_card
    from softcal.cli.score import show_scores

    total = load_saved(saved, allow_identical=allow_identical)
    refuse_empty(total)
    if output is not None:
        total.save(output)
    name = counted(len(saved), "saved file")
    card = score_card(total, source=name, by=total.by_names, level=level)
    show_scores(total, card, level, format_)
