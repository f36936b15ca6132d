"""Put the sections of the page in order."""

from __future__ import annotations

from simulations import intervals, judgments

HEAD = """# Simulations: intervals and tests

This page shows how often intervals contain the true error, and how often tests reject, on data whose true error is known. These
are simulation results, not theorems for finite samples. `python -m simulations` (in `tools`) writes the page from the tables, and
[measured.json](measured.json) has the command, the commit, and the code of each.
"""
SECTIONS = (
    intervals.coverage, intervals.bootstrap, judgments.test_level, intervals.grouped,
    intervals.new_groups, judgments.raters, judgments.brier, intervals.mixed,
    judgments.comparison, judgments.gaps, judgments.plans, judgments.weaknesses,
)  # fmt: skip


def page() -> str:
    """Return the whole page."""
    return "\n".join([HEAD, *(section() for section in SECTIONS)])
