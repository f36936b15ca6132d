"""Write docs/evidence.md from the saved results.

python -m benchmarks.evidence.page
"""

from __future__ import annotations

import json
from typing import Any

from benchmarks.evidence import (
    audit_section,
    coverage_section,
    decision_section,
    machine,
    paper_section,
    rejection_section,
    speed_section,
    summary,
    watch_section,
    wrong_numbers,
)
from benchmarks.evidence.markdown import folded, table
from benchmarks.evidence.peers import PEERS, ROOT

PAGE = ROOT / "docs" / "evidence.md"
RESULTS = ROOT / "benchmarks" / "evidence" / "results.json"


def load() -> dict[str, Any]:
    """Return the saved results."""
    results: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return results


def save(results: dict[str, Any]) -> None:
    """Save the results, one library per line."""
    lines = [json.dumps({name: answers})[1:-1] for name, answers in results["libraries"].items()]
    libraries = "{\n" + ",\n".join(lines) + "\n}"
    rest = {key: value for key, value in results.items() if key != "libraries"}
    parts = [f'"libraries": {libraries}', *(json.dumps({key: rest[key]})[1:-1] for key in rest)]
    RESULTS.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def write(results: dict[str, Any]) -> None:
    """Write the page."""
    PAGE.write_text(text(results), encoding="utf-8")


def text(results: dict[str, Any]) -> str:
    """Return the page: a summary, one matrix, and the details, folded."""
    found, right = results["libraries"], results["right"]
    rows, count = results["coverage"], results["paper"]
    return "\n".join([
        "# Evidence\n",
        "This page compares softcal with other Python libraries: which handle soft labels, edge "
        "cases, and bad input correctly, and how long they take. `make evidence` runs every "
        "library, saves the results, and writes this page from them.\n",
        "## Summary\n",
        summary.of_soft_labels(found, right),
        summary.of_traps(found, right),
        summary.of_tests(found),
        summary.of_coverage(rows),
        summary.of_speed(found, results["one_core"]),
        summary.of_paper(count),
        summary.not_run(found),
        "",
        summary.matrix(found, right),
        "",
        wrong_numbers.section(found, right),
        "",
        rejection_section.section(found),
        "",
        coverage_section.section(rows),
        "",
        watch_section.section(results["false_alarms"]),
        "",
        speed_section.section(results),
        "",
        decision_section.section(results["net_benefit"]),
        "",
        audit_section.section(results["audit"]),
        "",
        paper_section.section(count),
        "",
        _setup(found, results["machine"]),
        "",
    ])  # fmt: skip


def _setup(found: dict[str, Any], facts: dict[str, str]) -> str:
    """Return the versions, the imports, and the machine."""
    lines = [
        [peer.name, found[peer.name]["version"],
         "**no**: " + wrong_numbers.shortened(found[peer.name]["missing"])
         if "missing" in found[peer.name] else "yes",
         f"in its own folder: {peer.why}" if peer.alone else ""]
        for peer in PEERS
    ]  # fmt: skip
    return "\n".join([
        "## Setup\n",
        "Each library ran in its own process, with the versions in `constraints.txt`.\n",
        folded("Versions, and which libraries ran",
               table(("library", "version", "ran", "installed"), lines)),
        "",
        folded("Imports for the calls on this page", wrong_numbers.how_imported()),
        "",
        folded("Machine", machine.section(facts)),
    ])  # fmt: skip


if __name__ == "__main__":
    write(load())
