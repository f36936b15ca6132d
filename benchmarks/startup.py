"""Measure how long softcal takes to start: `make startup`.

Each figure is the lowest of ten runs, in elapsed time and in processor time. On an idle machine
the two are about the same; on a busy one elapsed time includes waiting. Compiled bytecode is kept
in a temporary folder, as an installed package has it.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time

RUNS = 10
STARTS = {
    "python -c pass": ["-c", "pass"],
    "python -c 'import numpy'": ["-c", "import numpy"],
    "python -c 'import typer'": ["-c", "import typer"],
    "python -c 'import softcal'": ["-c", "import softcal"],
    "softcal --version": ["-m", "softcal", "--version"],
    "softcal --help": ["-m", "softcal", "--help"],
    "softcal score --help": ["-m", "softcal", "score", "--help"],
    "python -c 'import softcal; softcal.smece([0.5], [0.4])'": [
        "-c",
        "import softcal; softcal.smece([0.5], [0.4])",
    ],
}


def used() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def seconds(arguments: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Start Python once; return the elapsed and the processor seconds."""
    start, before = time.perf_counter(), used()
    command = [sys.executable, *arguments]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)  # noqa: S603
    return time.perf_counter() - start, used() - before


def main() -> None:
    # In turns, so that a busy moment affects all of them.
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
        rounds = [
            [seconds(arguments, environment) for arguments in STARTS.values()] for _ in range(RUNS)
        ]
    print("| start | elapsed | processor | times bare Python |\n|---|---:|---:|---:|")
    bare = min(work for _, work in (times[0] for times in rounds))
    for name, times in zip(STARTS, zip(*rounds, strict=True), strict=True):
        clock, work = map(min, zip(*times, strict=True))
        print(f"| `{name}` | {clock:.3f} s | {work:.3f} s | {work / bare:.1f} |")


if __name__ == "__main__":
    main()
