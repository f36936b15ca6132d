"""Reproduce the figures of the SMECE paper and count them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from benchmarks.evidence.markdown import table


def paper_tally() -> dict[str, Any]:
    """Run `softcal paper` and return its count."""
    command = [sys.executable, "-m", "softcal", "paper", "--format", "json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    tally: dict[str, Any] = json.loads(done.stdout)
    return tally


def section(tally: dict[str, Any]) -> str:
    """Return how many figures are reproduced, and which are not."""
    missed = [
        [found["table"].replace("_", " "), found["cell"], str(found["printed"]),
         str(found["ours"]), found["why"]]
        for found in tally["mismatches"]
    ]  # fmt: skip
    head = ("table", "cell", "printed", "ours", "why")
    return (
        "## Paper\n\n"
        f"`softcal paper` reproduces {tally['reproduced']} of the {tally['printed']} printed "
        "numbers of the SMECE paper digit for digit ([all of them](paper.md)). The exception:\n\n"
        + table(head, missed)
    )
