"""Convert formulas to MathML when the documentation is built: no script, no network.

An extension of Python-Markdown; it converts what `pymdownx.arithmatex` marked as a formula.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

import latex2mathml.converter
from markdown.extensions import Extension
from markdown.postprocessors import Postprocessor

if TYPE_CHECKING:
    from markdown import Markdown

_FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\s*\\([\[(])(.*?)\\[\])]\s*</\1>', flags=re.DOTALL
)


class _MathML(Postprocessor):  # type: ignore[misc]
    """Convert every marked formula to MathML."""

    def run(self, text: str) -> str:
        return _FORMULA.sub(_as_mathml, text)


def _as_mathml(found: re.Match[str]) -> str:
    display = "block" if found[2] == "[" else "inline"
    formula = latex2mathml.converter.convert(html.unescape(found[3]).strip(), display=display)
    # A wide formula scrolls instead of widening the page.
    return f'<div class="formula">{formula}</div>' if display == "block" else str(formula)


class FormulaExtension(Extension):  # type: ignore[misc]
    """Register the conversion to run last, on the finished page."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        """Register the postprocessor."""
        md.postprocessors.register(_MathML(md), "formulas", -10)


def makeExtension(**_: object) -> FormulaExtension:  # noqa: N802
    """Return the extension for Python-Markdown."""
    return FormulaExtension()
