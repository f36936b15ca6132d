"""In the reference every parameter gets its own type and default.

numpydoc lets several names share a line. Griffe, which reads them, then gives all of them what
the first one has in the signature; so each name gets a line of its own before it reads.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

# A line of two names or more, perhaps a type, and the indented words below it.
_SHARED = re.compile(r"^(\w+(?:, \w+)+)( : [^\n]*)?\n((?:[ ]{4}[^\n]*\n?)+)", flags=re.MULTILINE)


def apart(text: str) -> str:
    """Give each of the names that share a line the whole entry."""
    return _SHARED.sub(_each, text)


def _each(found: re.Match[str]) -> str:
    kind, words = found[2] or "", found[3].rstrip("\n")
    return "".join(f"{name}{kind}\n{words}\n" for name in found[1].split(", "))


class OwnNames(griffe.Extension):
    """Take the shared lines of every function's docstring apart."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Change the docstring before it is parsed."""
        if func.docstring:
            func.docstring.value = apart(func.docstring.value)
