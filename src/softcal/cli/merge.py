"""`softcal merge`: the score of many files from their saved tables."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Annotated

import typer

from softcal._io import write_json
from softcal.cli.cards import show_scores
from softcal.cli.options import Format, Level, Output
from softcal.exceptions import InputError


def merge(
    saved: Annotated[
        list[Path],
        typer.Argument(help="Files `softcal score --save` made.", metavar="FILE"),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Keep their sum here (JSON).", metavar="FILE"),
    ] = None,
    allow_identical: Annotated[  # noqa: FBT002 - an option of the command line
        bool, typer.Option("--allow-identical", help="Add files of the same content, too.")
    ] = False,
    level: Level = 0.95,
    format_: Output = Format.TABLE,
) -> None:
    """Add up saved scores of different rows: seven days give the week."""
    from softcal.cli.saved_scores import read_saved

    for path in saved:
        if sum(path.resolve() == other.resolve() for other in saved) > 1:
            message = f"{path} is named twice: its rows would be counted twice. Name it once."
            raise InputError(message)
    total, *rest = (read_saved(path) for path in saved)
    if not allow_identical:
        _refuse_copies(saved)
    for part in rest:
        total = total.plus(part)
    if output is not None:
        write_json(output, total.to_dict())
    show_scores(total, f"{len(saved)} saved", level, format_)


def _refuse_copies(saved: list[Path]) -> None:
    """Refuse the same sums twice: other rows hardly ever have them, to the last digit."""
    seen: dict[bytes, Path] = {}
    for path in saved:
        first = seen.setdefault(sha256(path.read_bytes()).digest(), path)
        if first is not path:
            message = (
                f"{first} and {path} have the same content: rows would be counted twice. Name one "
                "of them, or, if they are of different rows, say --allow-identical."
            )
            raise InputError(message)
