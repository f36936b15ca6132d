"""Ask every library, simulate, reproduce, and write docs/evidence.md.

make evidence          (or: python -m benchmarks.evidence)
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
    coverage_section,
    machine,
    paper_section,
    rejection_section,
    speed_section,
    summary,
    wrong_numbers,
)
from benchmarks.evidence.markdown import table
from benchmarks.evidence.peers import PEERS, ROOT, SOFTCAL, Peer, install_alone

PAGE = ROOT / "docs" / "evidence.md"
LONGEST = 600  # seconds a library may take for all it is asked


def answers_of(peer: Peer, folder: Path) -> dict[str, Any]:
    """Ask one library in a process of its own."""
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
        return {"version": "", "missing": "its process gave no answer"}
    found: dict[str, Any] = json.loads(to.read_text(encoding="utf-8"))
    return found


def how_they_were_run(found: dict[str, Any]) -> str:
    """Write each library's version, and why it stands alone or could not be run."""
    lines = [
        [peer.name, found[peer.name]["version"],
         "**no**: " + wrong_numbers.shortened(found[peer.name]["missing"])
         if "missing" in found[peer.name] else "yes",
         f"in a folder of its own: {peer.why}" if peer.alone else ""]
        for peer in PEERS
    ]  # fmt: skip
    return "\n".join([
        "## How they were run\n",
        "Each library ran in a process of its own, with the versions of `constraints.txt`.\n",
        table(("library", "version", "ran", "installed"), lines),
        "\nThe calls above want these lines first (and `import numpy as np`):\n",
        wrong_numbers.how_imported(),
    ])  # fmt: skip


def main() -> None:
    console, start = Console(), time.monotonic()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for peer in [SOFTCAL, *PEERS]:
            with console.status(f"asking {peer.name}"):
                found[peer.name] = answers_of(peer, Path(folder))
            console.print(f"{time.monotonic() - start:4.0f} s  {peer.name}",
                          found[peer.name].get("missing", ""))  # fmt: skip
    with console.status("simulating intervals"):
        rows = coverage_section.coverage_rows()
    with console.status("reproducing the paper"):
        count = paper_section.paper_tally()
    with console.status("timing an interval"):
        speed = speed_section.section(found)
    page = [
        "# Evidence\n",
        "`make evidence` measures everything on this page again, in one go, with the other "
        "libraries live, and writes it; no figure was typed by hand. In short:\n",
        summary.of_soft_labels(found),
        summary.of_traps(found),
        summary.of_tests(found),
        summary.of_coverage(rows),
        summary.of_speed(found),
        summary.of_paper(count),
        summary.not_run(found),
        "",
        machine.section(),
        "",
        wrong_numbers.section(found),
        "",
        rejection_section.section(found),
        "",
        coverage_section.section(rows),
        "",
        speed,
        "",
        paper_section.section(count),
        "",
        how_they_were_run(found),
    ]
    PAGE.write_text("\n".join(page) + "\n", encoding="utf-8")
    console.print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
