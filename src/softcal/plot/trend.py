"""The figure of a `Watch`: the error by day or week, the evidence, and the gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softcal._display import printable
from softcal._validation.days import NUMBERS
from softcal.inference.weeks import FEW_ROWS, moment, weeks_of
from softcal.plot.figures import draw_intervals, gap_scale, mark_outside
from softcal.plot.sheet import BLUE, FAINT, VERMILLION, Sheet, draw_curve, points_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from softcal.inference.sequential import WatchState
    from softcal.plot.sheet import Size

_GRAY = "0.6"  # the color of one day or week
_WIDE: dict[str, Any] = {
    "mosaic": "ac;bc",
    "height_ratios": (3, 2),
    "width_ratios": (3, 2),
}  # of a slide
_TALL: dict[str, Any] = {"mosaic": "a;b;c", "height_ratios": (3, 2, 2)}


def draw_watch(
    states: Sequence[WatchState], *, tolerance: float, level: float, size: Size | None = None,
    title: str | None = None, by_week: bool = True,
) -> Figure:  # fmt: skip
    """Draw the states of a `Watch`: the error by day, the evidence, and gaps of the worst stream.

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
    by_week : bool
        Whether weeks replace days with few rows (`softcal.inference.weeks.weeks_of`).

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
    weeks = weeks_of(states) if by_week else []
    trend = _Trend(weeks or states, tolerance, level)
    heading = f"{title}: {trend.worst.name}" if title else trend.worst.name
    page = Sheet(size, heading, 6.6, **_WIDE if size == "talk" else _TALL)
    above, middle, below = page.panels
    trend.draw_errors(above, "each week" if weeks else "new rows")
    trend.draw_evidence(middle)
    middle.sharex(above)
    if moment(states[0].date).kind != NUMBERS:
        _write_dates(middle)
    above.tick_params(labelbottom=False)
    trend.draw_gaps(below)
    page.figure.align_ylabels(page.panels[:2] if size == "talk" else None)
    return page.finish()


def _write_dates(ax: Axes) -> None:
    """Write dates below an axis of days since 1970, which is how matplotlib counts them."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    dates = AutoDateLocator(minticks=3, maxticks=6)  # type: ignore[no-untyped-call]
    ax.xaxis.set_major_locator(dates)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(dates))  # type: ignore[no-untyped-call]


class _Trend:
    """States on an axis that is linear in time, and the stream with the most evidence."""

    def __init__(self, states: Sequence[WatchState], tolerance: float, level: float) -> None:
        self.states, self.tolerance, self.level = states, tolerance, level
        self.last, self.worst = states[-1], states[-1].worst
        self.at = np.array([moment(state.date).position for state in states])
        half = np.diff(self.at).min() / 2 if self.at.size > 1 else 0.5
        if self.last.alarm:  # a change within a week is drawn from its beginning
            began = self.at[self.at <= moment(str(self.last.since)).position].max()
            self.span = began - half, self.at[-1] + half

    def draw_errors(self, ax: Axes, new_rows: str) -> None:
        """Draw the error of each day or week, of all rows so far, and since a change."""
        named = [{each.name: each for each in state.streams} for state in self.states]
        found = [streams.get(self.worst.name) for streams in named]  # None before it appeared
        new, low, smece, high, n = np.array([
            [getattr(each, name, np.nan) for each in found]
            for name in ("smece_new", "low", "smece", "high", "n")
        ])  # fmt: skip
        rows = np.diff(np.nan_to_num(n), prepend=0)
        known = rows >= min(FEW_ROWS, rows.mean())
        looks: dict[str, Any] = {"color": _GRAY, "markersize": 3.5 if self.at.size < 100 else 2.5}
        ax.plot(self.at[known], new[known], "o", label=new_rows, **looks)
        ax.plot(self.at[~known], new[~known], "o", alpha=FAINT, **looks)
        label = f"so far, with its {100 * self.level:g}% band"
        draw_curve(ax, self.at, low, smece, high, color=BLUE, label=label, linewidth=1.8)
        ax.axhline(self.tolerance, color="0.3", linestyle="--", linewidth=1, label="tolerance")
        ends = [*new[known], *smece, 2 * self.tolerance, 0.01]
        if self.last.alarm:
            ends.append(self.worst.smece_since)
            self._draw_since(ax)
        highest = 1.25 * np.nanmax(ends)
        ax.set(ylabel=self.last.error_name, ylim=(0, highest))
        outside = self.at[new > highest]
        ax.plot(outside, np.full(outside.size, 0.97 * highest), "^", alpha=FAINT, **looks)

    def _draw_since(self, ax: Axes) -> None:
        """Draw the error since the estimated change, and its band."""
        worst = self.worst
        ends = np.tile([[worst.low_since], [worst.smece_since], [worst.high_since]], 2)
        label = f"since {printable(str(worst.since))}, with its band"
        draw_curve(ax, self.span, *ends, color=VERMILLION, linewidth=2.2, label=label)

    def draw_evidence(self, ax: Axes) -> None:
        """Draw the evidence of all streams, and the line of the alarm."""
        alarm = -np.log10(1 - self.level)
        tenths = np.array([state.log_evidence for state in self.states]) / np.log(10)
        if self.last.alarm:
            ax.axvspan(*self.span, color=VERMILLION, alpha=0.08, linewidth=0)
        ax.axhline(alarm, color=VERMILLION, linestyle="--", linewidth=1)
        ax.annotate(
            f"alarm at {1 / (1 - self.level):.4g}", (0, alarm), (3, 2), textcoords="offset points",
            xycoords=ax.get_yaxis_transform(), fontsize=0.9 * points_of(ax), color=VERMILLION,
        )  # fmt: skip
        ax.plot(self.at, tenths, color="black", linewidth=1.4)
        ax.set(ylabel="evidence\n(log10)", ylim=(min(tenths.min(), -0.5), None))
        ax.set_ylim(top=max(tenths.max(), alarm) * 1.15 + 0.3)

    def draw_gaps(self, ax: Axes) -> None:
        """Draw the gaps of all rows so far; those beyond the tolerance in color."""
        worst, tolerance = self.worst, self.tolerance
        filled = ~np.isnan(worst.gap)
        gap, low, high = (each[filled] for each in (worst.gap, worst.gap_low, worst.gap_high))
        middle = ((worst.edges[:-1] + worst.edges[1:]) / 2)[filled]
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
