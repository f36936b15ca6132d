"""Notes on what a scan read: left-out votes, raters that recur, and words of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softcal._display import keyword
from softcal.scanning.ballots import CAUTION

if TYPE_CHECKING:
    from softcal.scanning.ballots import Counted
    from softcal.scanning.data import RawVotes


def of_votes(label: RawVotes, found: Counted, without: int, alone: int) -> tuple[str, ...]:
    """Return notes on votes: which are left out, and whether raters recur."""
    notes = []
    if found.dropped:
        notes.append(f"left out: {found.dropped:,} votes with a missing value.")
    if without or alone:
        notes.append(
            f"left out: {without:,} rows of predictions without votes, and {alone:,} items "
            "with votes but without a prediction."
        )
    if found.posterior:
        notes.append(CAUTION)
    elif not label.raters and 0 < found.raters < found.votes:
        notes.append(
            f"{found.raters:,} raters gave {found.votes:,} votes, so raters recur. Intervals are "
            f"for these raters; {keyword('raters')} makes them hold for new raters too."
        )
    return tuple(notes)
