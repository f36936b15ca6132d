"""How long softcal takes to start: the least of ten runs, by the clock and of the processor.

`make startup`. Starting is the work of one core, so on an idle machine the two are the same; on a
busy one the clock also counts the waiting.
"""

from __future__ import annotations

import resource
import subprocess
import sys
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


def seconds(arguments: list[str]) -> tuple[float, float]:
    """Start Python once; seconds by the clock, and of the processor."""
    start, before = time.perf_counter(), used()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)  # noqa: S603
    return time.perf_counter() - start, used() - before


def main() -> None:
    # In turns, so that a busy moment meets all of them.
    rounds = [[seconds(arguments) for arguments in STARTS.values()] for _ in range(RUNS)]
    print("| start | clock | processor | bare Pythons |\n|---|---:|---:|---:|")
    bare = min(work for _, work in (times[0] for times in rounds))
    for name, times in zip(STARTS, zip(*rounds, strict=True), strict=True):
        clock, work = map(min, zip(*times, strict=True))
        print(f"| `{name}` | {clock:.3f} s | {work:.3f} s | {work / bare:.1f} |")


if __name__ == "__main__":
    main()
