"""Terminal output: the console, the table layout, and progress bars."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import Progress, ProgressColumn

    from softcal.cards.card import Card, Grid


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


def show(card: Card) -> None:
    """Print a result."""
    from softcal.cards.card import Grid  # here, because help must not import NumPy

    out, said = console(), False
    for part in card.parts():
        if isinstance(part, Grid):
            if part.title:
                out.print(Text("\n" * said + part.title, style="bold"))
                out.print()
            out.print(_laid_out(part))
            out.print()
        else:
            # A long path is not broken, so that it can be copied.
            long = any(len(word) > out.width for word in part.text.split())
            out.print(Text(part.text, style=_STYLES[part.style]), soft_wrap=long)
        said = not isinstance(part, Grid)


_STYLES = {
    "plain": "", "strong": "bold", "quiet": "dim", "good": "bold green", "bad": "bold red",
    "unsure": "bold yellow",
}  # fmt: skip


def _laid_out(part: Grid) -> Table:
    """Return a table in which long names are folded, and numbers never are."""
    header, rows = part.cells()
    out = table(*header)
    kept = part.kept()
    for k, column in enumerate(out.columns):
        of_names = ":name}" in kept[k].text if not part.turned else k > 0
        folds = of_names or (not part.turned and kept[k].named)
        column.no_wrap = not folds
        if of_names and not part.turned:
            column.justify = "left"
        column.style = "bold" if not part.turned and kept[k].bold else ""
    for row in rows:
        out.add_row(*map(Text, row))
    return out


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
