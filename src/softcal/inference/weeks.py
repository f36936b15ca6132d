"""Show the states of a `Watch` by week if its updates have few rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from softcal._validation.days import Every, day_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcal._validation.days import Day
    from softcal.inference.sequential import StreamState, WatchState

FEW_ROWS = 30
"""Updates with fewer rows on average are shown by week: their own errors are mostly noise."""

BY_WEEK = f"Days have fewer than {FEW_ROWS} rows on average, so weeks are shown."

_FEWEST_WEEKS = 3  # of fewer weeks, each update is shown


def moment(date: str | int) -> Day:
    """Return the day of an update; a `Watch` refuses dates that are not clear."""
    return cast("Day", day_of(str(date)))


def weeks_of(states: Sequence[WatchState]) -> list[WatchState]:
    """Return the state at the end of each week if the updates have few rows; otherwise nothing.

    Parameters
    ----------
    states : sequence of WatchState
        What each update returned, in order.

    Returns
    -------
    list of WatchState
        The last state of each week. Its `date` is the Monday, its `n` the rows of the week, and
        `smece_new` of each stream the SMECE of the rows of the week. The evidence is the largest of
        the week, which decides about an alarm. The list is empty if updates have 30 rows or more on
        average, or if their dates are numbers, are in fewer than three weeks, or are a week or more
        apart.

    Examples
    --------
    >>> from softcal import Watch, reliability
    >>> watch, rel = Watch(), reliability([0, 1], [0.25, 0.5])
    >>> states = [watch.update(rel, date=f"2026-06-{day:02}") for day in range(1, 20)]
    >>> [(week.date, week.n, week.worst.smece_new) for week in weeks_of(states)]
    [('2026-06-01', 14, 0.375), ('2026-06-08', 14, 0.375), ('2026-06-15', 10, 0.375)]
    """
    weeks: dict[Day, list[WatchState]] = {}
    for state in states:
        weeks.setdefault(moment(state.date).begin(Every.WEEK), []).append(state)
    few = sum(state.n for state in states) < FEW_ROWS * len(states)
    if not (few and _FEWEST_WEEKS <= len(weeks) < len(states)):
        return []
    out: list[WatchState] = []
    earlier: dict[tuple[str | None, ...], StreamState] = {}
    for monday, days in weeks.items():
        last = days[-1]
        names = [(each.model, each.column, each.value) for each in last.streams]
        # Streams keep their places; those that appear within the week come last.
        of_days = [day.streams for day in days]
        streams = [
            replace(
                each.after(earlier.get(name)),
                log_evidence=max(day[k].log_evidence for day in of_days if k < len(day)),
            )
            for k, (name, each) in enumerate(zip(names, last.streams, strict=True))
        ]
        out.append(replace(
            last, date=monday.label(), n=sum(day.n for day in days), streams=tuple(streams),
            worst=streams[last.streams.index(last.worst)],
            log_evidence=max(day.log_evidence for day in days),
        ))  # fmt: skip
        earlier = dict(zip(names, last.streams, strict=True))
    return out
