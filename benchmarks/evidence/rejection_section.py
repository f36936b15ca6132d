"""Report how often each test rejects."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.evidence.markdown import code, folded, table
from benchmarks.evidence.rejections import DATA_SETS, KINDS, LEVEL, TESTS

# Three standard errors of the rejection rate of a right test.
SLACK = 3 * math.sqrt(LEVEL * (1 - LEVEL) / DATA_SETS)


def verdict(rates: dict[str, float | str]) -> str:
    """Return the verdict on a test, by how often it rejects calibrated soft labels."""
    rate = rates["soft, calibrated"]
    if isinstance(rate, str):
        return "refuses"
    if rate > LEVEL + SLACK:
        return "**rejects too often**"
    return "**rejects too rarely**" if rate < LEVEL - SLACK else "right"


def section(found: dict[str, Any]) -> str:
    """Return the rejection rates of all tests."""
    lines, calls = [], []
    for name, tests in TESTS.items():
        for test, rates in found[name].get("rejections", {}).items():
            shown = [rate if isinstance(rate, str) else f"{rate:.3f}" for rate in rates.values()]
            label = f"{name} {found[name]['version']}, {test}"
            lines.append([label, verdict(rates), *shown])
            calls.append([label, code(tests[test])])
    words = (
        f"The table shows the share of {DATA_SETS} data sets of 1,000 rows with a p-value below "
        f"{LEVEL}. True rates q are uniform. A 0/1 label is 1 with probability q; a soft label is "
        "drawn from Beta(8q, 8(1 - q)), so its mean is q. A calibrated model predicts q, and a "
        f"test should reject it in {LEVEL:.0%} of data sets ({LEVEL - SLACK:.3f} to "
        f"{LEVEL + SLACK:.3f} counts as right here). It should reject the other models as "
        "often as possible. A test that uses p(1 - p) as the variance of a soft label can be right "
        "for 0/1 labels only.\n"
    )
    head = ("test", "on soft labels", *KINDS)
    return "\n".join([
        "## Calibration tests\n",
        words,
        folded(f"Rejection rates of {len(lines)} tests", table(head, lines, numbers_from=2)),
        "",
        folded("Calls that compute the p-values", table(("test", "call"), calls)),
    ])  # fmt: skip
