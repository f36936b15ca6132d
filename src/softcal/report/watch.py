"""Write the page of `softcal watch`, without scripts."""

from __future__ import annotations

import io
import re
from importlib.resources import files
from math import isnan
from typing import TYPE_CHECKING, Any

from softcal._display import percent, printable
from softcal._io import written_whole
from softcal.exceptions import InputError
from softcal.plot import draw_watch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from softcal.inference.sequential import WatchState


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
    import jinja2
    from markupsafe import Markup

    if path.suffix.lower() not in (".html", ".htm"):
        message = f"the name of the page must end in .html: got {path.name}."
        raise InputError(message)
    own = files("softcal.report")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_shown
    )
    environment.filters["digits"] = _digits
    template = environment.from_string((own / "watch.html.jinja").read_text(encoding="utf-8"))
    last = states[-1]
    page = template.render(
        title=title, notes=notes, last=last, states=states[::-1], tolerance=tolerance,
        level=percent(level), threshold=1 / (1 - level),
        segments=sorted(
            (each for each in last.streams if each.column is not None),
            key=lambda each: -each.log_evidence,
        ),
        wholes=[_whole(state, last.worst.model) for state in states[::-1]],
        # Safe: all text is drawn as paths, so that no text from the data is in it.
        figure=Markup(_svg(states, tolerance, level)),  # noqa: S704
        css=Markup((own / "page.css").read_text(encoding="utf-8")),  # noqa: S704
    )  # fmt: skip
    with written_whole(path) as beside:
        beside.write_text(page, encoding="utf-8", errors="backslashreplace")


def _whole(state: WatchState, model: str) -> Any:
    """Return the stream of all rows of a model."""
    return next(each for each in state.streams if each.model == model and each.column is None)


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


def _shown(value: object) -> object:
    """Escape control and bidirectional characters of text from the data."""
    return printable(value) if type(value) is str else value
