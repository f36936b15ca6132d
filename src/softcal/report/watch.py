"""Write the page of `softcal watch`, without scripts."""

from __future__ import annotations

import io
import re
from math import isnan
from typing import TYPE_CHECKING, Any

from softcal._display import percent
from softcal._validation.days import Every, day_of
from softcal.cards.verdict import signed
from softcal.plot import draw_watch
from softcal.report.template import refuse_other_suffix, write_html

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from softcal._validation.days import Day
    from softcal.inference.sequential import WatchState

_FEW_ROWS = 30  # per update, on average: the errors of such updates are mostly noise


def write_watch_page(
    path: Path,
    states: Sequence[WatchState],
    *,
    tolerance: float,
    level: float,
    title: str = "Calibration over time",
    notes: Sequence[str] = (),
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
    """
    from markupsafe import Markup

    refuse_other_suffix(path)
    last, unit = states[-1], _unit(states)
    said = {
        "title": title, "notes": notes, "last": last, "states": states, "tolerance": tolerance,
        "level": percent(level), "threshold": 1 / (1 - level), "unit": unit,
        "updates": _updates(states, unit)[::-1],
        "segments": sorted(
            (each for each in last.streams if each.column is not None),
            key=lambda each: -each.log_evidence,
        ),
        # Safe: all text is drawn as paths, so that no text from the data is in it.
        "figure": Markup(_svg(states, tolerance, level)),  # noqa: S704
    }  # fmt: skip
    write_html(path, "watch", said, {"digits": _digits, "signed": signed})


def _unit(states: Sequence[WatchState]) -> Every | None:
    """Return weeks if updates have few rows and their dates are days; otherwise None."""
    few = sum(state.n for state in states) < _FEW_ROWS * len(states)
    weeks = {_day(state).begin(Every.WEEK) for state in states}
    return Every.WEEK if few and len(weeks) < len(states) else None


def _day(state: WatchState) -> Day:
    found = day_of(str(state.date))
    assert found is not None  # noqa: S101 - a `Watch` refuses other dates
    return found


def _updates(states: Sequence[WatchState], unit: Every | None) -> list[dict[str, Any]]:
    """Return the last state of each week, or each state, with the rows up to it."""
    model = states[-1].worst.model
    out: dict[Any, dict[str, Any]] = {}
    for k, state in enumerate(states):
        begin = _day(state).begin(unit) if unit else None
        own = out.setdefault(begin or k, {"date": begin.label() if begin else state.date, "n": 0})
        whole = next(each for each in state.streams if each.model == model and each.column is None)
        own |= {"n": own["n"] + state.n, "state": state, "whole": whole}
    return list(out.values())


def _svg(states: Sequence[WatchState], tolerance: float, level: float) -> str:
    """Return the figure as an SVG element, without comments, which contain names of the data."""
    drawn = io.StringIO()
    figure = draw_watch(states, tolerance=tolerance, level=level)
    figure.savefig(drawn, format="svg", metadata={"Date": None}, transparent=True)
    svg = drawn.getvalue()
    svg = re.sub(r"<!--.*?-->", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    return re.sub(r'<svg ([^>]*?)height="[^"]*" ([^>]*?)width="[^"]*"', r"<svg \1\2", svg, count=1)


def _digits(value: float, digits: int = 4) -> str:
    return "-" if isnan(value) else f"{value:.{digits}f}"
