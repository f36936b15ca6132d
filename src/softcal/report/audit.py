"""Write the page of `softcal audit`, without scripts."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

from softcal._display import counted, percent, printable
from softcal._io import written_whole
from softcal.exceptions import InputError
from softcal.inference.segments import MOST_CELLS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from softcal.inference.segments import Audit, Segment

_OPEN = 20  # segments of a list that are not folded
_MOST = 500  # segments of a list on the page


def write_audit_page(
    path: Path, audits: Sequence[Audit], *, source: str, label: str, notes: Sequence[str] = ()
) -> None:
    """Write the audits of one or more models as one HTML file that needs no network.

    Parameters
    ----------
    path : path
        The file to write; an existing file is replaced.
    audits : sequence of Audit
        The audits, all with the same columns and settings.
    source, label : str
        The names of the data and of their labels.
    notes : sequence of str
        What is notable about how the data were read.
    """
    import jinja2
    from markupsafe import Markup

    if path.suffix.lower() not in (".html", ".htm"):
        message = f"the name of the page must end in .html: got {path.name}."
        raise InputError(message)
    own = files("softcal.report")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_shown
    )
    environment.filters |= {"chance": _chance, "points": _points, "counted": counted}
    template = environment.from_string((own / "audit.html.jinja").read_text(encoding="utf-8"))
    page = template.render(
        source=source, label=label, notes=notes, first=audits[0], level=percent(audits[0].level),
        audits=[_lists(each) for each in audits], open=_OPEN, most_cells=MOST_CELLS,
        css=Markup((own / "page.css").read_text(encoding="utf-8")),  # noqa: S704
    )  # fmt: skip
    with written_whole(path) as beside:
        beside.write_text(page, encoding="utf-8", errors="backslashreplace")


def _lists(audit: Audit) -> dict[str, Any]:
    """Return an audit, the segments that the page shows, and the scale of their intervals."""
    found, rest = audit.found, audit.segments[len(audit.found) :]
    shown: list[Segment] = [audit.overall, *found[:_MOST]]
    return {
        "audit": audit,
        "found": found[:_MOST],
        "more_found": max(len(found) - _MOST, 0),
        "rest": rest[:_MOST],
        "more_rest": max(len(rest) - _MOST, 0),
        "reach": max(max(-each.low, each.high) for each in shown) or 1.0,
    }


def _chance(pvalue: float) -> str:
    return "<0.001" if pvalue < 0.001 else f"{pvalue:.3f}"


def _points(value: float) -> str:
    """Write a number in percentage points, with its sign."""
    return f"{100 * value:+z.1f}".replace("-", "\N{MINUS SIGN}")


def _shown(value: object) -> object:
    """Escape control and bidirectional characters of text from the data."""
    return printable(value) if type(value) is str else value
