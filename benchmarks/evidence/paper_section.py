"""The paper's figures, computed again and counted."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from benchmarks.evidence.markdown import table


def paper_tally() -> dict[str, Any]:
    """Run `softcal paper` and take its count."""
    command = [sys.executable, "-m", "softcal", "paper", "--format", "json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    tally: dict[str, Any] = json.loads(done.stdout)
    return tally


def section(tally: dict[str, Any]) -> str:
    """Write how many figures come out as printed, and which do not."""
    missed = [
        [found["table"].replace("_", " "), found["cell"], str(found["printed"]),
         str(found["ours"]), found["why"]]
        for found in tally["mismatches"]
    ]  # fmt: skip
    head = ("table", "cell", "printed", "ours", "why")
    return (
        "## The paper\n\n"
        f"`softcal paper` reproduces {tally['reproduced']} of the {tally['printed']} printed "
        "figures of the SMECE paper digit for digit ([all of them](paper.md)). The rest:\n\n"
        + table(head, missed)
    )
