"""Link names of functions and commands in the guide to their entries in the reference.

An extension of Python-Markdown. Inline code such as `smece_interval`, `sc.route(...)`, or
`TableSet.save` becomes a link to the API, and `softcal score` one to the command line. Headings,
links, and blocks of code stay as they are, and so does a word in `<code>` tags, which authors use
for a name with another meaning.
"""

from __future__ import annotations

import pydoc
import re
from functools import cache
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor

from api_page import PAGES, names_on
from softcal.cli import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markdown import Markdown

_PACKAGES = "softcal|sc|metrics|inference|planning|calibrators|torchmetric"
# Arguments of one call, which may have calls in them.
_INSIDE = r"[^()]*(?:\([^()]*\)[^()]*)*"
_NAME = re.compile(rf"(?:(?:{_PACKAGES})\.)*(\w+)(?:\.(\w+))?(\({_INSIDE}\))?")
_COMMAND = re.compile(rf"(?:softcal ({'|'.join(COMMANDS)})|({'|'.join(COMMANDS)})(?= -))\b.*")
# Names of functions that have another meaning beside names of commands.
_WORDS = {*COMMANDS, "reliability"}
# Code of so many characters does not wrap, as browsers would within `--label`.
_SHORT = 30
_KEPT = {"a", "pre", "h1", "h2", "h3", "h4", "h5", "h6"}
_BLOCKS = {"p", "li", "tr"}


@cache
def entries() -> dict[str, str]:
    """Return the address of the entry of each public name, and of methods as `Class.method`."""
    found = {}
    for page in PAGES:
        for name in names_on(page):
            short, address = name.rpartition(".")[2], f"{page.removesuffix('.md')}.html#{name}"
            found[short] = address
            thing = pydoc.locate(name)
            if isinstance(thing, type):
                for member, value in vars(thing).items():
                    if not member.startswith("_") and getattr(value, "__doc__", None):
                        found[f"{short}.{member}"] = f"{address}.{member}"
    return found


def address_of(code: str, *, of_commands: bool = False) -> str | None:
    """Return the address of what inline code names, or None.

    A word such as `compare` is a function and a command. It is not a link if the text is about
    commands.
    """
    command = _COMMAND.fullmatch(code)
    if command:
        return f"command_line.html#{command[1] or command[2]}"
    found = _NAME.fullmatch(code)
    if not found or (code in _WORDS and (of_commands or code == "score")):
        return None
    name, member, _ = found.groups()
    return entries().get(f"{name}.{member}" if member else name)


class _Links(Treeprocessor):  # type: ignore[misc]
    """Make links of the inline code that names something of softcal."""

    def run(self, root: Element) -> None:
        for parent, of_commands in list(_parents(root, of_commands=False)):
            for place, child in enumerate(parent):
                if child.tag != "code" or len(child):
                    continue
                code = child.text or ""
                if len(code) <= _SHORT:
                    child.set("class", "short")
                address = address_of(code, of_commands=of_commands)
                if address:
                    link = Element("a", {"href": address})
                    link.tail, child.tail = child.tail, None
                    parent[place] = link
                    link.append(child)


def _parents(element: Element, *, of_commands: bool) -> Iterator[tuple[Element, bool]]:
    """Return the elements whose code may become links, and if their text is about commands."""
    if element.tag in _KEPT:
        return
    if element.tag in _BLOCKS:
        words = {code.text for code in element.iter("code")}
        of_commands = bool(words & (set(COMMANDS) - set(entries())))
    yield element, of_commands
    for child in element:
        yield from _parents(child, of_commands=of_commands)


class LinkExtension(Extension):  # type: ignore[misc]
    """Run after inline Markdown has become elements."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        """Register the tree processor."""
        md.treeprocessors.register(_Links(md), "api_links", 1)


def makeExtension(**_: object) -> LinkExtension:  # noqa: N802
    """Return the extension to Python-Markdown."""
    return LinkExtension()
