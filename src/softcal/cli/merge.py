"""`softcal merge`: the score of many files from their saved tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softcal.cli.options import Format, Level, Output
from softcal.cli.tables import load_saved


def merge(
    saved: Annotated[
        list[Path],
        typer.Argument(help="Files that `softcal scan` or `score --save` wrote.", metavar="FILE"),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Save their sum here.", metavar="FILE"),
    ] = None,
    allow_identical: Annotated[  # noqa: FBT002 - an option of the command line
        bool, typer.Option("--allow-identical", help="Add files of the same content, too.")
    ] = False,
    level: Level = 0.95,
    format_: Output = Format.TABLE,
) -> None:
    """Add up saved tables of different rows: for example, daily files into a weekly total."""
    from softcal._validation.rules import refuse_bad_level
    from softcal.cli.score import show_scores

    refuse_bad_level(level)
    total = load_saved(saved, allow_identical=allow_identical)
    if output is not None:
        total.save(output)
    also = {} if total.groups is None else {"groups_in_two_files": "not known"}
    show_scores(total, f"{len(saved)} saved", level, format_, total.by_names, also)
