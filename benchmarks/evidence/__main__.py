"""Run every library, simulate, reproduce the paper, and write docs/evidence.md.

make evidence                            everything
python -m benchmarks.evidence NAME ...   only these libraries; the saved results for the rest
python -m benchmarks.evidence.page       only write the page, from the saved results
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.evidence import (
    audit_section,
    coverage_section,
    decision_section,
    machine,
    page,
    paper_section,
    watch_section,
)
from benchmarks.evidence.asking import right_answer
from benchmarks.evidence.peers import PEERS, ROOT, SOFTCAL, Peer, install_alone
from benchmarks.evidence.questions import QUESTIONS
from benchmarks.evidence.timing import one_core, our_megabytes
from benchmarks.speed import certainty_costs

LONGEST = 600  # seconds a library may take for all its questions


def answers_of(peer: Peer, folder: Path) -> dict[str, Any]:
    """Run one library in a process of its own."""
    install_alone(peer)
    to = folder / f"{peer.name}.json"
    path = os.pathsep.join([str(peer.folder), os.environ.get("PYTHONPATH", "")])
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(  # noqa: S603
            [sys.executable, "-m", "benchmarks.evidence.asking", peer.name, str(to)],
            cwd=ROOT, env=os.environ | {"PYTHONPATH": path}, stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, timeout=LONGEST, check=False,
        )  # fmt: skip
    if not to.exists():
        return {"version": "", "missing": "its process returned no answer"}
    found: dict[str, Any] = json.loads(to.read_text(encoding="utf-8"))
    return found


def run_libraries(names: list[str], console: Console) -> dict[str, Any]:
    """Return the answers of the named libraries, or of all of them."""
    found, start = {}, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for peer in [SOFTCAL, *PEERS]:
            if names and peer.name not in names:
                continue
            with console.status(f"running {peer.name}"):
                found[peer.name] = answers_of(peer, Path(folder))
            console.print(f"{time.monotonic() - start:4.0f} s  {peer.name}",
                          found[peer.name].get("missing", ""))  # fmt: skip
    return found


def measure_rest(console: Console) -> dict[str, Any]:
    """Return everything that is measured without another library."""
    with console.status("simulating intervals"):
        coverage = coverage_section.coverage_rows()
    with console.status("simulating daily looks"):
        false_alarms = watch_section.alarm_rows()
    with console.status("reproducing the paper"):
        paper = paper_section.paper_tally()
    with console.status("auditing segments"):
        audits = audit_section.audits()
    with console.status("timing an interval, and softcal on one core"):
        costs, alone = certainty_costs(10**5), one_core()
    return {
        "machine": machine.facts(),
        "right": {question.title: right_answer(question) for question in QUESTIONS},
        "coverage": coverage,
        "net_benefit": decision_section.net_benefits(),
        "audit": audits,
        "false_alarms": false_alarms,
        "paper": paper,
        "interval_seconds": costs,
        "one_core": alone,
        "our_megabytes": our_megabytes(),
    }


def main() -> None:
    """Measure, save the results as JSON, and write the page from that file."""
    console, names = Console(), sys.argv[1:]
    found = run_libraries(names, console)
    if names:
        results = page.load()
        results["libraries"] |= found
    else:
        results = {"libraries": found} | measure_rest(console)
    page.save(results)
    page.write(results)
    console.print(f"wrote {page.PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
