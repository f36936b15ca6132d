"""How softcal looks in a terminal: one console, one kind of table."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text


def console() -> Console:
    """Make a console that colours nothing by itself, and nothing at all when piped."""
    return Console(highlight=False)


def table(title: str) -> Table:
    """Start a table with a title, which may hold names from the data: it is not markup."""
    return Table(
        title=Text(title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
