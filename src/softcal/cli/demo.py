"""`softcal demo`: what softcal is for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softcal import terminal


def demo(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder for the report.", metavar="DIR")
    ] = Path("softcal-demo"),
) -> None:
    """Show what softcal is for, on the radiologists' data that comes with it."""
    from softcal.demo import show

    show(terminal.console(), output)
