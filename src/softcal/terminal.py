"""Terminal output: the console, the table layout, and progress bars."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from softcal._display import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import Progress, ProgressColumn


def console() -> Console:
    """Return a console without automatic highlighting."""
    return Console(highlight=False)


def table(first: str, *numbers: str) -> Table:
    """Return an empty table with names in its first column and numbers in the others.

    A long name is folded, also in the header, never cut: two long names may differ only at their
    ends.
    """
    out = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, show_edge=False)
    out.add_column(Text(first), overflow="fold")  # Text, because a name is not markup
    for name in numbers:
        out.add_column(Text(name), justify="right", overflow="fold")
    return out


def print_titled(console: Console, title: str, content: Table) -> None:
    """Print a table under a title, whose text is not markup."""
    console.print(Text(printable(title), style="bold"))
    console.print()
    print_table(console, content)


def print_table(console: Console, content: Table) -> None:
    """Print a table and an empty line."""
    console.print(content)
    console.print()


def _bar(*columns: ProgressColumn) -> Progress:
    from rich.progress import Progress

    errors = Console(stderr=True)
    return Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal)


@contextmanager
def progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on stderr, and yield a function that advances it.

    Nothing is shown if stderr is not a terminal.
    """
    with _bar() as bar:
        task = bar.add_task(title, total=total)
        yield lambda amount: bar.advance(task, amount)


@contextmanager
def working(title: str) -> Iterator[None]:
    """Show on stderr that work goes on, and for how long; nothing if stderr is not a terminal."""
    from rich import progress as parts

    text = parts.TextColumn("{task.description}")
    with _bar(text, parts.BarColumn(pulse_style="cyan"), parts.TimeElapsedColumn()) as bar:
        bar.add_task(title, total=None)
        yield
