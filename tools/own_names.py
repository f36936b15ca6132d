"""Give every parameter its own type and default in the reference.

numpydoc lets several names share a line. Griffe then gives all of them the type and default of the
first. So each name gets a line of its own before Griffe reads the docstring.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

# A line of two names or more, perhaps a type, and the indented words below it.
_SHARED = re.compile(r"^(\w+(?:, \w+)+)( : [^\n]*)?\n((?:[ ]{4}[^\n]*\n?)+)", flags=re.MULTILINE)


def apart(text: str) -> str:
    """Repeat the entry for each of the names that share a line."""
    return _SHARED.sub(_each, text)


def _each(found: re.Match[str]) -> str:
    kind, words = found[2] or "", found[3].rstrip("\n")
    return "".join(f"{name}{kind}\n{words}\n" for name in found[1].split(", "))


class OwnNames(griffe.Extension):
    """Split the shared lines of every function's docstring."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Change the docstring before it is parsed."""
        if func.docstring:
            func.docstring.value = apart(func.docstring.value)
