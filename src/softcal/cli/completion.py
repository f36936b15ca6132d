"""An option that takes a column: the shell offers those of the file."""

from __future__ import annotations

import shlex
from typing import Any

import typer


def column_option(text: str) -> Any:
    """Make an option that takes the name of a column, with what its help says."""
    return typer.Option(help=text, metavar="COL", autocompletion=_offered)


def _offered(ctx: typer.Context, incomplete: str) -> list[str]:
    """Name the columns of the first data on the line; none where that cannot be done.

    While an option waits for its value, typer leaves all arguments in `ctx.args`. Names that
    would need quotes are left out, since every shell quotes in its own way.
    """
    names = next(filter(None, map(_columns_of, ctx.args)), [])
    return [name for name in names if name.startswith(incomplete) and name == shlex.quote(name)]


def _columns_of(data: str) -> list[str]:
    """Read the header; a mistake is for the command to explain, not for the Tab key."""
    from softcal.errors import SoftcalError
    from softcal.sources.batches import files_of
    from softcal.sources.class_columns import names_of_columns

    try:
        return names_of_columns(files_of(data)[0])
    except (SoftcalError, OSError, ImportError):
        return []
