"""Simulate how often `Watch` and a daily test raise an alarm for a calibrated model."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from typing import Any

from benchmarks.evidence.coverage_section import share
from benchmarks.evidence.markdown import table
from benchmarks.monitoring import LABELS, ever_alarmed

RUNS, LOOKS = 500, 1000
METHODS = ("watch", "daily", "bonferroni")


def alarm_rows() -> list[dict[str, Any]]:
    """Simulate on all cores; return one row per kind of label and mix of predictions."""
    settings = [(name, drift) for drift in (False, True) for name in LABELS]
    with ProcessPoolExecutor() as pool:
        jobs = [
            pool.submit(ever_alarmed, name, RUNS, LOOKS, drift=drift) for name, drift in settings
        ]
        found = [job.result().tolist() for job in jobs]
    return [
        {"label": name, "drift": drift, **dict(zip(METHODS, shares, strict=True))}
        for (name, drift), shares in zip(settings, found, strict=True)
    ]


def section(rows: list[dict[str, Any]]) -> str:
    """Return the share of calibrated streams that ever raise an alarm."""
    lines = [
        [row["label"] + (", drifting mix" if row["drift"] else ""),
         *(share(row[name], RUNS) for name in METHODS)]
        for row in rows
    ]  # fmt: skip
    head = ("labels", "`Watch`", "chi-square test each day at 5%", "the same, Bonferroni")
    return "\n".join([
        "## False alarms of daily monitoring\n",
        f"The table shows the share of {RUNS} calibrated streams that ever raise an alarm in "
        f"{LOOKS:,} days of 100 rows (± one standard error). The tolerance is 0. `Watch` "
        "guarantees at most 0.05. The chi-square test uses all rows so far and knows the "
        "variance of the labels. In a drifting mix, predictions grow from day to day. The code is "
        "in `benchmarks/monitoring.py`.\n",
        table(head, lines, numbers_from=1),
    ])  # fmt: skip
