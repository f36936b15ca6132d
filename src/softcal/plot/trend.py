"""The figure of a `Watch`: the error by day or week, the evidence, and the gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softcal._display import printable
from softcal.inference.weeks import moment, weeks_of
from softcal.plot import sheet
from softcal.plot.figures import draw_intervals, gap_scale, mark_outside
from softcal.plot.sheet import BLUE, VERMILLION, Sheet

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from softcal.inference.sequential import StreamState, WatchState
    from softcal.plot.sheet import Size

_NEW = "0.6"  # the color of the rows of one day or week


def draw_watch(
    states: Sequence[WatchState], *, tolerance: float, level: float, size: Size | None = None,
    title: str | None = None,
) -> Figure:  # fmt: skip
    """Draw the states of a `Watch`: the error by day, the evidence, and gaps of the worst stream.

    Weeks are drawn instead of days if days have few rows (`weeks_of`).

    Parameters
    ----------
    states : sequence of WatchState
        What each update returned, in order.
    tolerance, level : float
        Those of the `Watch`.
    size : {"column", "page", "talk"}, optional
        As in `ReliabilityDisplay.plot`.
    title : str, optional
        Title of the figure, before the name of the worst stream.

    Returns
    -------
    Figure
        Three panels. The first shows the error of each day or week, and of all rows so far with its
        band. After an alarm it also shows the error since the estimated change. The second shows
        the evidence on a log scale with the alarm line. The third shows the gap of each bin with
        its band.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from softcal import Watch, reliability
    >>> watch = Watch()
    >>> states = [watch.update(reliability([0.5, 0.25], [0.4, 0.3])) for _ in range(3)]
    >>> len(draw_watch(states, tolerance=0.02, level=0.95).axes)
    3
    """
    weeks = weeks_of(states)
    shown = weeks or states
    last = shown[-1]
    heading = f"{title}: {last.worst.name}" if title else last.worst.name
    grid: dict[str, Any] = {"mosaic": "a;b;c", "height_ratios": (3, 2, 2)}
    if size == "talk":  # the gaps beside the days, because a slide is wide
        grid = {"mosaic": "ac;bc", "height_ratios": (3, 2), "width_ratios": (3, 2)}
    page = Sheet(size, heading, 6.6, **grid)
    above, middle, below = page.panels
    at = np.array([moment(state.date).position for state in shown])
    if last.alarm:
        # A change within a week is drawn at the beginning of the week.
        began = at[max(at.searchsorted(moment(str(last.since)).position, "right") - 1, 0)]
        half = np.diff(at).min() / 2 if at.size > 1 else 0.5
        span = began - half, at[-1] + half
        for ax in (above, middle):
            ax.axvspan(*span, color=VERMILLION, alpha=0.08, linewidth=0)
        _draw_since(above, last.worst, span)
    _draw_errors(above, at, shown, tolerance, level, "rows of the week" if weeks else "new rows")
    middle.sharex(above)
    _draw_evidence(middle, at, shown, level)
    _write_dates(middle, at, shown, 5 if size in (None, "page") else 3)
    above.tick_params(labelbottom=False)
    _draw_stream_gaps(below, last.worst, tolerance)
    page.figure.align_ylabels([above, middle])
    return page.figure


def _draw_since(ax: Axes, worst: StreamState, span: tuple[float, float]) -> None:
    """Draw the error since the estimated change, and its band."""
    ax.fill_between(
        span, *([end] * 2 for end in (worst.low_since, worst.high_since)), color=VERMILLION,
        alpha=0.15, linewidth=0, zorder=1,
    )  # fmt: skip
    label = f"since {printable(str(worst.since))}, with its band"
    ax.plot(span, [worst.smece_since] * 2, color=VERMILLION, linewidth=2, zorder=3, label=label)


def _draw_errors(
    ax: Axes, at: npt.NDArray[Any], states: Sequence[WatchState], tolerance: float, level: float,
    new_rows: str,
) -> None:  # fmt: skip
    """Draw the error of each day or week, and of all rows so far."""
    worst = states[-1].worst.name
    found = [next((s for s in each.streams if s.name == worst), None) for each in states]

    def line(name: str) -> npt.NDArray[Any]:  # NaN before the stream appeared
        return np.array([np.nan if each is None else getattr(each, name) for each in found])

    new, smece, rows = (
        line("smece_new"),
        line("smece"),
        np.diff(np.nan_to_num(line("n")), prepend=0),
    )
    ax.plot(at, new, "o", color=_NEW, markersize=3.5 if at.size < 100 else 2, label=new_rows)
    label = f"so far, with its {100 * level:g}% band"
    sheet.draw_curve(
        ax, at, line("low"), smece, line("high"), color=BLUE, label=label, linewidth=1.8
    )
    ax.axhline(tolerance, color="0.3", linestyle="--", linewidth=1, label="tolerance")
    last = states[-1]
    since = last.worst.smece_since if last.alarm else 0.0
    highest = 1.25 * np.nanmax(
        [*new[sheet.with_many_rows(rows)], *smece, 2 * tolerance, 0.01, since]
    )
    ax.set(ylabel=last.error_name, ylim=(0, highest))
    outside = at[new > highest]
    ax.plot(outside, np.full(outside.size, 0.96 * highest), "^", color=_NEW, alpha=sheet.FAINT)
    sheet.legend_above(ax)


def _draw_evidence(
    ax: Axes, at: npt.NDArray[Any], states: Sequence[WatchState], level: float
) -> None:
    alarm = -np.log10(1 - level)
    tenths = np.array([state.log_evidence for state in states]) / np.log(10)
    ax.axhline(alarm, color=VERMILLION, linestyle="--", linewidth=1)
    said, across = f"alarm at {1 / (1 - level):.4g}", ax.get_yaxis_transform()
    sheet.write_note(ax, said, (0, alarm), VERMILLION, xycoords=across, va="bottom")
    ax.plot(at, tenths, color="black", linewidth=1.4)
    ax.set(ylabel="evidence\n(log10)", ylim=(min(tenths.min(), -0.5), None))
    ax.set_ylim(top=max(tenths.max(), alarm) * 1.15 + 0.3)


def _write_dates(ax: Axes, at: npt.NDArray[Any], states: Sequence[WatchState], most: int) -> None:
    """Write as many dates below the axis as have room."""
    labels = [printable(str(state.date)) for state in states]
    apart = (at[-1] - at[0]) / (most - 0.5) * max(4, *map(len, labels)) / 10  # 10 in a date
    ticks = [0]
    for k, place in enumerate(at):
        if place - at[ticks[-1]] > apart:
            ticks.append(k)
    ax.set_xticks(at[ticks], [labels[k] for k in ticks])


def _draw_stream_gaps(ax: Axes, stream: StreamState, tolerance: float) -> None:
    filled = ~np.isnan(stream.gap)
    gap, low, high = (each[filled] for each in (stream.gap, stream.gap_low, stream.gap_high))
    middle = ((stream.edges[:-1] + stream.edges[1:]) / 2)[filled]
    ax.axhspan(-tolerance, tolerance, color="0.9", linewidth=0)
    ax.axhline(0, color="0.3", linewidth=0.8)
    off = (low > tolerance) | (high < -tolerance)
    for chosen, color in ((~off, "0.45"), (off, VERMILLION)):
        looks = {"fmt": "o", "color": color, "markersize": 4, "linewidth": 1.2}
        draw_intervals(ax, middle, gap, (low, high), 2 * chosen, **looks)
    if gap.size:
        # The number of rows is not known, but few have wide intervals.
        known = high - low <= max(1.0, (high - low).min())
        mark_outside(ax, max(tolerance, gap_scale(gap, low, high, known)))
    ax.set(xlim=(0, 1), xlabel="prediction", ylabel="gap so far\n← too low · too high →")
