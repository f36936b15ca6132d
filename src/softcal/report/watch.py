"""Write the page of `softcal watch`, without scripts."""

from __future__ import annotations

import io
import re
from math import isnan
from typing import TYPE_CHECKING

from softcal._display import percent
from softcal.cards.verdict import signed
from softcal.inference.weeks import BY_WEEK, weeks_of
from softcal.plot import draw_watch
from softcal.report.template import refuse_other_suffix, write_html

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from softcal.inference.sequential import StreamState, WatchState


def write_watch_page(
    path: Path,
    states: Sequence[WatchState],
    *,
    tolerance: float,
    level: float,
    title: str = "Calibration over time",
    notes: Sequence[str] = (),
    by_week: bool = True,
) -> None:
    """Write the history of a `Watch` as one HTML file that needs no network.

    Parameters
    ----------
    path : path
        The file to write; an existing file is replaced.
    states : sequence of WatchState
        The results of all updates, in order.
    tolerance, level : float
        The tolerance and the level of the `Watch`.
    title : str
        The title of the page.
    notes : sequence of str
        What is notable about how the data were read.
    by_week : bool
        Whether weeks replace days with few rows (`softcal.inference.weeks.weeks_of`).
    """
    from markupsafe import Markup

    refuse_other_suffix(path)
    last, weeks = states[-1], weeks_of(states) if by_week else []
    said = {
        "title": title, "notes": notes, "last": last, "states": states, "tolerance": tolerance,
        "level": percent(level), "threshold": 1 / (1 - level),
        "unit": "week" if weeks else "update", "why": BY_WEEK if weeks else "",
        "updates": [(state, _whole(state, last)) for state in (weeks or states)[::-1]],
        "segments": sorted(
            (each for each in last.streams if each.column is not None),
            key=lambda each: -each.log_evidence,
        ),
        # Safe: all text is drawn as paths, so that no text from the data is in it.
        "figure": Markup(_svg(states, tolerance, level, by_week=by_week)),  # noqa: S704
    }  # fmt: skip
    write_html(path, "watch", said, {"digits": _digits, "signed": signed}, last.error_name)


def _whole(state: WatchState, last: WatchState) -> StreamState:
    """Return all rows of the model that is worst at the end."""
    name = last.worst.model
    return next(each for each in state.streams if each.model == name and each.column is None)


def _svg(states: Sequence[WatchState], tolerance: float, level: float, *, by_week: bool) -> str:
    """Return the figure as an SVG element, without comments, which contain names of the data."""
    drawn = io.StringIO()
    figure = draw_watch(states, tolerance=tolerance, level=level, by_week=by_week)
    figure.savefig(drawn, format="svg", metadata={"Date": None}, transparent=True)
    svg = drawn.getvalue()
    svg = re.sub(r"<!--.*?-->", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    return re.sub(r'<svg ([^>]*?)height="[^"]*" ([^>]*?)width="[^"]*"', r"<svg \1\2", svg, count=1)


def _digits(value: float, digits: int = 4) -> str:
    return "-" if isnan(value) else f"{value:.{digits}f}"
