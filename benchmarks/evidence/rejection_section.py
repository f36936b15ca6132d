"""The table of how often each test rejects."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.evidence.markdown import code, table
from benchmarks.evidence.rejections import DATA_SETS, KINDS, LEVEL, TESTS

# Three standard errors of the share a right test would reject.
SLACK = 3 * math.sqrt(LEVEL * (1 - LEVEL) / DATA_SETS)


def verdict(rates: dict[str, float | str]) -> str:
    """Judge a test by how often it rejects calibrated soft labels."""
    rate = rates["soft, calibrated"]
    if isinstance(rate, str):
        return "refuses"
    if rate > LEVEL + SLACK:
        return "**rejects the calibrated**"
    return "**too rarely**" if rate < LEVEL - SLACK else "right"


def section(found: dict[str, Any]) -> str:
    """Write who rejects what."""
    lines, calls = [], []
    for name, tests in TESTS.items():
        for test, rates in found[name].get("rejections", {}).items():
            shown = [rate if isinstance(rate, str) else f"{rate:.3f}" for rate in rates.values()]
            label = f"{name} {found[name]['version']}, {test}"
            lines.append([label, verdict(rates), *shown])
            calls.append([label, code(tests[test])])
    words = (
        f"The share of {DATA_SETS} data sets of 1,000 rows whose p-value is below {LEVEL}. The "
        "chances q are uniform; a 0/1 label is 1 with chance q, a soft label is drawn from "
        "Beta(8q, 8(1 - q)), so its mean is q. A calibrated model predicts q and should be "
        f"rejected {LEVEL:.0%} of the time (here {LEVEL - SLACK:.3f} to {LEVEL + SLACK:.3f} passes "
        "for that), the others as often as possible. A test that takes p(1 - p) for the variance "
        "of a soft label can be right for 0/1 labels only.\n"
    )
    head = ("test", "on soft labels", *KINDS)
    return "\n".join([
        "## Tests of calibration\n",
        words,
        table(head, lines, numbers_from=2),
        "\nTheir p-values are\n",
        table(("test", "call"), calls),
    ])  # fmt: skip
