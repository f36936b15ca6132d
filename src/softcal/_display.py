"""Text and HTML of results, and names from data made printable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar


def printable(name: str) -> str:
    r"""Escape line ends, control characters and bidirectional characters of a name.

    >>> print(printable("a\nb\x1b[31m"))
    a\nb\x1b[31m
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name)


_ENDS = 12

T = TypeVar("T")

Shown = tuple[str, Sequence[str], Sequence[Sequence[str]]]
"""Title, header and rows; a result of one line has a title only."""


class Printed:
    """Print a result as a line or a small table, as HTML in notebooks; `_shown` says which."""

    if TYPE_CHECKING:

        def _shown(self) -> Shown: ...

    def __str__(self) -> str:
        return as_text(*self._shown())

    def _repr_html_(self) -> str:
        return as_html(*self._shown())


def percent(level: float) -> str:
    """Write a level in percent.

    >>> percent(0.95)
    '95%'
    """
    return f"{100 * level:g}%"


def as_text(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out right-aligned columns under a title line."""
    if not header:
        return title
    lines = [header, *rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(header))]
    return "\n".join(
        [
            title,
            *(
                "   ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True))
                for line in lines
            ),
        ]
    )


def as_html(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out the same as an HTML table, every string escaped."""
    from html import escape  # here, since `import softcal` should cost little

    if not header:
        return f"<p>{escape(title)}</p>"
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f"<table><caption>{escape(title)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def ends(rows: list[T]) -> tuple[list[T], int, list[T]]:
    """Split a long list into its first rows, how many are left out, and its last rows."""
    left_out = len(rows) - 2 * _ENDS
    if left_out <= 1:
        return rows, 0, []
    return rows[:_ENDS], left_out, rows[-_ENDS:]
