"""Write docs/api.md, which has one line per public name, from the API pages and docstrings."""

from __future__ import annotations

import inspect
import pydoc
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "api.md"
# In the order of the navigation.
PAGES = tuple(
    f"api_{name}.md"
    for name in (
        *("tables", "metrics", "multiclass", "uncertainty", "votes", "planning", "decisions"),
        *("monitoring", "report", "recalibration", "training", "errors"),
    )
)

_TOP = """\
# API

This page lists all public names. Import planning functions from `softcal.planning`, calibrators and
classifiers from `softcal.calibrators`, and torch metrics from `softcal.torchmetric`. All other
functions are in `softcal`; the classes of their results are mostly in `softcal.metrics` and
`softcal.inference`. The tests run every example.

- Metrics take `(y_true, y_prob, ...)`. Functions that need only a table also take a `Reliability`.
- Calibrators take `fit(y_prob, y_true)`.
- Results print as one line or a small table, and as HTML in notebooks.
- The bundled data is `softcal.datasets.lidc_malignancy`.
"""


def names_on(page: str) -> list[str]:
    """Return the public names on an API page, each with the module that defines it."""
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    return [line.removeprefix("::: ") for line in lines if line.startswith("::: ")]


def page() -> str:
    """Return the text of the page."""
    parts = [_TOP]
    for each in PAGES:
        heading, about, _ = (DOCS / each).read_text(encoding="utf-8").split("\n\n", 2)
        parts.append(f"\n#{heading}\n\n{about}\n\n")
        parts += [f"- {_line(each, name)}\n" for name in names_on(each)]
    return "".join(parts)


def _line(page: str, name: str) -> str:
    """Return a link to a name, and the first paragraph of its docstring."""
    docstring = inspect.getdoc(pydoc.locate(name))
    summary = " ".join(str(docstring).partition("\n\n")[0].split())
    return f"[`{name.rpartition('.')[2]}`]({page}#{name}): {summary}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
