"""How softcal looks in a terminal: one console, one kind of table."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from softcal._display import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def console() -> Console:
    """Make a console that colours nothing by itself, and nothing at all when piped."""
    return Console(highlight=False)


def table(first: str, *numbers: str) -> Table:
    """Start a table whose first column holds names and whose others hold numbers.

    A name that is too long goes on in the next line, in the head of a column too: two names cut
    to the same beginning could not be told apart.
    """
    out = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    out.add_column(Text(first), overflow="fold")  # as Text, since a name is never markup
    for name in numbers:
        out.add_column(Text(name), justify="right", overflow="fold")
    return out


def print_titled(console: Console, title: str, content: Table) -> None:
    """Print a table under a title, which may hold names from the data: it is not markup."""
    console.print(Text(printable(title), style="bold"))
    console.print(content)


@contextmanager
def progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on stderr while work goes on, and give a function that moves it on.

    Nothing is shown when stderr is not a terminal.
    """
    from rich.progress import Progress

    errors = Console(stderr=True)
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task(title, total=total)
        yield lambda amount: bar.advance(task, amount)


class Reading(NamedTuple):
    """Functions that move the bar of `reading`."""

    move: Callable[[int, int, int], None]
    """Takes the rows and bytes that were read, and the bytes of all files."""
    move_groups: Callable[[float], None]
    """Takes the share of the groups that is added up, after the last row was read."""


@contextmanager
def reading() -> Iterator[Reading]:
    """Show on stderr how far the reading of files has come: rows, bytes, time left.

    Nothing is shown when stderr is not a terminal.
    """
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    errors = Console(stderr=True)
    columns = (
        TextColumn("{task.fields[rows]:,} rows"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task("", visible=False, rows=0)  # until the size of the files is known

        def move(rows: int, done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, rows=rows, visible=True)

        def move_groups(share: float) -> None:
            text = TextColumn("{task.fields[rows]:,} rows, adding up groups")
            bar.columns = (text, BarColumn(), TaskProgressColumn())
            bar.update(task, completed=share, total=1)

        yield Reading(move, move_groups)
