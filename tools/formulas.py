"""Formulas of the documentation as MathML, made when it is built: no script, no network.

An extension of Python-Markdown; it finishes what `pymdownx.arithmatex` marked as a formula.
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
    """Turn every marked formula into MathML."""

    def run(self, text: str) -> str:
        return _FORMULA.sub(_as_mathml, text)


def _as_mathml(found: re.Match[str]) -> str:
    display = "block" if found[2] == "[" else "inline"
    formula = latex2mathml.converter.convert(html.unescape(found[3]).strip(), display=display)
    # A wide one scrolls by itself instead of pushing the page aside.
    return f'<div class="formula">{formula}</div>' if display == "block" else str(formula)


class FormulaExtension(Extension):  # type: ignore[misc]
    """Run last, when the page is text."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        """Take part in the making of a page."""
        md.postprocessors.register(_MathML(md), "formulas", -10)


def makeExtension(**_: object) -> FormulaExtension:  # noqa: N802
    """Give Python-Markdown the extension."""
    return FormulaExtension()
