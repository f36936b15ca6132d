"""Names from the data, made fit to be shown: they may hold anything, and are only ever text."""

from __future__ import annotations


def printable(name: str) -> str:
    r"""Write a name so that it is one line, moves no cursor and turns no neighbour around.

    >>> print(printable("a\nb\x1b[31m"))
    a\nb\x1b[31m
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name)
