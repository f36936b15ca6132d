"""Complete the docstrings that the API pages show.

In the source, several parameters may share one entry, and an entry may refer to another function
("As in `reliability`"). On the page, every parameter has its own entry with its own text.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import griffe

import softcal
from softcal import calibrators, inference, metrics, planning, torchmetric

_PACKAGES = (softcal, metrics, inference, planning, calibrators, torchmetric)
# A line with two or more names, an optional type, and the indented text below it.
_SHARED = re.compile(r"^(\w+(?:, \w+)+)( : [^\n]*)?\n((?:[ ]{4}[^\n]*\n?)+)", flags=re.MULTILINE)
_ENTRY = re.compile(r"^(\w+)( : [^\n]*)?\n((?:[ ]{4}[^\n]*\n?)+)", flags=re.MULTILINE)
_TYPE = re.compile(r"^\w+ : [^\n]*$", flags=re.MULTILINE)
_REFERENCE = re.compile(r"(?:As in|As for|See) `(?:softcal\.)?(\w+)`[.;,]?\s*")
_PARAMETERS = re.compile(
    r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)", flags=re.MULTILINE | re.DOTALL
)


def apart(text: str) -> str:
    """Repeat the entry of names that share a line, once for each name."""
    return _SHARED.sub(_each, text)


def _each(found: re.Match[str]) -> str:
    kind, words = found[2] or "", found[3].rstrip("\n")
    return "".join(f"{name}{kind}\n{words}\n" for name in found[1].split(", "))


def described(text: str) -> str:
    """Replace references to other functions by the text of their parameters."""
    return _PARAMETERS.sub(lambda part: _ENTRY.sub(_complete, part[0]), text)


def _complete(entry: re.Match[str]) -> str:
    name, kind, words = entry[1], entry[2] or "", entry[3]
    reference = _REFERENCE.match(words.strip())
    referenced = reference and parameters_of(reference[1]).get(name)
    if not reference or not referenced:
        return entry[0]
    rest = words.strip()[reference.end() :]
    rest = f"\n    {rest[0].upper()}{rest[1:]}" if rest else ""
    return f"{name}{kind}\n    {referenced.strip()}{rest}\n"


def parameters_of(function: str) -> dict[str, str]:
    """Return the text of every parameter of a public function or class."""
    homes = (package for package in _PACKAGES if function in package.__all__)
    home = next(homes, None)
    docstring = inspect.getdoc(getattr(home, function, None)) if home else None
    section = _PARAMETERS.search(described(apart(docstring or "")))
    return {entry[1]: entry[3] for entry in _ENTRY.finditer(section[1])} if section else {}


def hyphenated(text: str) -> str:
    """Write array-like in types with another hyphen, because "-" would be shown as a minus sign."""
    return _TYPE.sub(
        lambda line: line[0].replace("array-like", "array\N{NON-BREAKING HYPHEN}like"), text
    )


class OwnNames(griffe.Extension):
    """Complete the docstring of every function before it is parsed."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Complete the docstring of a function."""
        if func.docstring:
            func.docstring.value = hyphenated(described(apart(func.docstring.value)))

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Complete the docstring of a class."""
        if cls.docstring:
            cls.docstring.value = hyphenated(described(apart(cls.docstring.value)))
