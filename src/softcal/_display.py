"""Text and HTML tables of results, and names from data made printable."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence


def printable(name: str) -> str:
    r"""Write a name so that it is one line, moves no cursor and turns no neighbour around.

    >>> print(printable("a\nb\x1b[31m"))
    a\nb\x1b[31m
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name)


_ENDS = 12

T = TypeVar("T")


def as_text(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out right-aligned columns under a title line."""
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
