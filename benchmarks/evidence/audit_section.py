"""Compare the audit of segments with MCGrad's and with Bonferroni's correction."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from benchmarks.evidence.markdown import table
from benchmarks.evidence.peers import PEERS, ROOT, install_alone


def audits() -> dict[str, Any]:
    """Run `benchmarks.segments` in a process that can import MCGrad."""
    peer = next(peer for peer in PEERS if peer.name == "MCGrad")
    install_alone(peer)
    path = os.pathsep.join([str(peer.folder), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "benchmarks.segments", "evidence"],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": path}, capture_output=True, check=True,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def section(found: dict[str, Any]) -> str:
    """Return agreement, false findings, power, and time."""
    power, speed, same = found["power"], found["speed"], found["agreement"]
    methods = ("audit", "Bonferroni", "Holm", "MCGrad and Bonferroni")
    lines = [
        [name if name != "audit" else "**softcal audit**", f"{power[name]:.0%}"] for name in methods
    ]
    false = [
        [each["labels"], str(each["runs"]), f"{each['p-value of the worst']:.2f}",
         f"{each['and Bonferroni']:.2f}"]
        for each in found["MCGrad"]
    ]  # fmt: skip
    return "\n".join([
        "## Segments\n",
        f"Where the definitions agree ({same['segments']} segments whose residuals have one sign), "
        "the gap of a segment and MCGrad's ECCE differ by at most "
        f"{same['largest difference']:.0e}. "
        f"At {speed['rows']:,} rows and {speed['segments']['audit']:,} segments, MCGrad takes "
        f"{speed['ratio']:.0f} times as long as the audit "
        f"({speed['seconds']['MCGrad']:.1f} and {speed['seconds']['audit']:.1f} s of processor "
        "time).\n",
        f"The table shows how often each method finds a gap of {power['gap']} in one of 36 cells "
        f"({power['rows']:,} rows, {power['segments']} segments, 0/1 labels, {power['runs']} "
        "runs):\n",
        table(("method", "found"), lines, numbers_from=1),
        "",
        "MCGrad's p-value of its worst segment does not account for the number of segments. The "
        "table shows how often it rejects a calibrated model, alone and with Bonferroni's "
        "correction of the p-values of all segments:\n",
        table(("labels", "runs", "p-value of the worst", "with Bonferroni"), false, numbers_from=1),
        "",
        "[Simulations](simulations.md#segments) has the rate of false findings of the audit.",
    ])  # fmt: skip
