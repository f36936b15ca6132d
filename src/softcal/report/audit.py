"""Write the page of `softcal audit`, without scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softcal._display import percent
from softcal.cards.card import chance
from softcal.inference.segments import MOST_CELLS
from softcal.report.template import refuse_other_suffix, write_html

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from softcal.inference.segments import Audit, Segment

_OPEN = 20  # segments of a list that are not folded
_MOST = 500  # segments of a list on the page


def write_audit_page(
    path: Path,
    audits: Sequence[Audit],
    *,
    source: str,
    label: str,
    group: str | None = None,
    notes: Sequence[str] = (),
) -> None:
    """Write the audits of one or more models as one HTML file that needs no network.

    Parameters
    ----------
    path : path
        The file to write; an existing file is replaced.
    audits : sequence of Audit
        The audits, all with the same columns and settings.
    source, label, group : str
        The names of the data, of their labels, and of the groups if there are any.
    notes : sequence of str
        What is notable about how the data were read.
    """
    refuse_other_suffix(path)
    said = {
        "source": source, "label": label, "group": group, "notes": notes, "first": audits[0],
        "level": percent(audits[0].level), "audits": [_lists(each) for each in audits],
        "open": _OPEN, "most_cells": MOST_CELLS,
    }  # fmt: skip
    write_html(path, "audit", said, {"chance": chance, "points": _points})


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


def _points(value: float) -> str:
    """Write a number in percentage points, with its sign."""
    return f"{100 * value:+z.1f}".replace("-", "\N{MINUS SIGN}")
