"""The figure of a `Watch`: the error by day or week, the evidence, and the gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softcal._display import clipped, printable
from softcal._validation.days import NUMBERS
from softcal.inference.weeks import FEW_ROWS, moment, weeks_of
from softcal.plot.figures import draw_intervals, gap_scale, mark_outside
from softcal.plot.sheet import (
    BLUE,
    FAINT,
    VERMILLION,
    Sheet,
    draw_curve,
    legend_above,
    legend_name,
    points_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from softcal._validation.inputs import FloatArray
    from softcal.inference.sequential import WatchState
    from softcal.plot.sheet import Size

_GRAY = "0.6"  # the color of one day or week
_STEPS = [a * 10.0**b for b in range(6) for a in (1, 2, 3, 5)]  # of an axis of evidence
_ROOM = 0.14  # between its ticks, as a share of the axis
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
        band. After an alarm, it shows the error before and since the estimated change. The second
        shows the evidence on a log scale with the alarm line; by week, the largest of the week.
        With several models or segments, it also shows that of the worst alone, which has its own
        alarm line. The third shows the gap of each bin with its band, after an alarm of the rows
        since the change.

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
        named = [{each.name: each for each in state.streams} for state in states]
        self.found = [streams.get(self.worst.name) for streams in named]  # None before it appeared
        self.at = np.array([moment(state.date).position for state in states])
        half = np.diff(self.at).min() / 2 if self.at.size > 1 else 0.5
        if self.last.alarm:  # a change within a week is drawn from its beginning
            began = self.at[self.at <= moment(str(self.last.since)).position].max()
            self.span = began - half, self.at[-1] + half
            self.alarm_at = self.at[[state.alarm for state in states].index(True)]

    def _of_worst(self, *names: str) -> FloatArray:
        """Return numbers of the worst stream, one line per name; NaN before it appeared."""
        return np.array([[getattr(each, name, np.nan) for each in self.found] for name in names])

    def draw_errors(self, ax: Axes, new_rows: str) -> None:
        """Draw the error of each day or week, of all rows so far or before a change, and since."""
        new, low, smece, high, n = self._of_worst("smece_new", "low", "smece", "high", "n")
        rows = np.diff(np.nan_to_num(n), prepend=0)
        known = rows >= min(FEW_ROWS, rows.mean())
        looks: dict[str, Any] = {"color": _GRAY, "markersize": 3.5 if self.at.size < 100 else 2.5}
        ax.plot(self.at[known], new[known], "o", label=new_rows, **looks)
        ax.plot(self.at[~known], new[~known], "o", alpha=FAINT, **looks)
        label = f"so far, with its {100 * self.level:g}% band"
        before = np.full(self.at.size, fill_value=True)
        if self.last.alarm:
            before = self.at < self.span[0]
            label = f"before, with its {100 * self.level:g}% band"
        ends = [*new[known], *smece[before], 2 * self.tolerance, 0.01]
        if before.any():
            curve = (each[before] for each in (self.at, low, smece, high))
            draw_curve(ax, *curve, color=BLUE, label=label, linewidth=1.8)
        if self.last.alarm:
            ends.append(self.worst.smece_since)
            self._draw_since(ax)
            alarm = f"alarm on {printable(str(self.last.alarm_date))}"
            ax.axvline(self.alarm_at, color=VERMILLION, linestyle=":", linewidth=1.2, label=alarm)
        ax.axhline(self.tolerance, color="0.3", linestyle="--", linewidth=1, label="tolerance")
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
        """Draw the evidence of all streams and, of several, that of the worst; each has its line.

        The axis is linear in the logarithm, because evidence may be too large for a float.
        """
        if self.last.alarm:
            ax.axvspan(*self.span, color=VERMILLION, alpha=0.08, linewidth=0)
            ax.axvline(self.alarm_at, color=VERMILLION, linestyle=":", linewidth=1.2)
        alarm_at = 1 / (1 - self.level)
        evidence = np.array([state.log_evidence for state in self.states])
        curves = [("all", alarm_at, evidence, "black")]
        if len(self.last.streams) > 1:
            (own,) = self._of_worst("log_evidence")
            name = legend_name(clipped(self.worst.name))
            curves.append((name, self.worst.alarm_at, own, BLUE))
        for name, at, natural, color in curves:
            label = f"{name}: alarm at {at:.4g}"
            ax.plot(self.at, natural / np.log(10), color=color, linewidth=1.4, label=label)
            line = VERMILLION if len(curves) == 1 else color
            ax.axhline(np.log10(at), color=line, linestyle="--", linewidth=1)
        if len(curves) == 1:
            ax.annotate(
                f"alarm at {alarm_at:.4g}", (0, np.log10(alarm_at)), (3, 2), color=VERMILLION,
                xycoords=ax.get_yaxis_transform(), textcoords="offset points",
                fontsize=0.9 * points_of(ax),
            )  # fmt: skip
        else:
            legend_above(ax)
        powers = np.concatenate([natural for *_, natural, _ in curves]) / np.log(10)
        lines = [np.log10(at) for _, at, _, _ in curves]
        low, high = min(np.nanmin(powers), -0.5), 1.15 * max(np.nanmax(powers), *lines) + 0.3
        ax.set(ylabel="evidence\n(log scale)", ylim=(low, high))
        ticks = _evidence_ticks([at for _, at, _, _ in curves], high - low)
        ax.set_yticks([*ticks], [*ticks.values()])

    def draw_gaps(self, ax: Axes) -> None:
        """Draw the gaps, after an alarm since the change; those beyond the tolerance in color."""
        worst, tolerance = self.worst, self.tolerance
        bands, rows = (worst.gap_low, worst.gap, worst.gap_high), "gap so far"
        if self.last.alarm:
            bands, rows = worst.bin_gaps_since, "gap since then"
        filled = ~np.isnan(bands[1])
        low, gap, high = (each[filled] for each in bands)
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
        ax.set(xlim=(0, 1), xlabel="prediction", ylabel=rows)
        for text, at, side in (("too high", 0.97, "top"), ("too low", 0.05, "baseline")):
            ax.text(0.01, at, text, transform=ax.transAxes, color="0.45", va=side, zorder=1,
                    fontsize=0.85 * points_of(ax))  # fmt: skip


def _evidence_ticks(alarms: Sequence[float], span: float) -> dict[float, str]:
    """Return labels of an axis of log10 evidence: alarm lines, 1, and powers of ten with room.

    >>> _evidence_ticks([20.0], 3.5)
    {1.301: '20', 0.0: '1', 2.0: '100', 3.0: '1,000'}
    >>> _evidence_ticks([20.0], 35)
    {1.301: '20', 10.0: '$10^{10}$', 20.0: '$10^{20}$', 30.0: '$10^{30}$'}
    """
    digits = next(step for step in _STEPS if span <= 4 * step)
    powers = np.arange(0, span, digits).tolist()
    wanted = [(round(float(np.log10(at)), 3), f"{at:.4g}") for at in alarms]
    wanted += [(k, f"{10**k:,.0f}" if k < 4 else f"$10^{{{k:.0f}}}$") for k in powers]
    ticks: dict[float, str] = {}
    for at, text in wanted:
        if all(abs(at - other) >= _ROOM * span for other in ticks):
            ticks[at] = text
    return ticks
