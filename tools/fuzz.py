"""Fuzz the doors of softcal with Atheris: `make fuzz`, or `python tools/fuzz.py DOOR=TRIES ...`.

Every door has a process of its own, since a crash of it must not end the others. A broken law is
counted once for each place it was broken at, with the input that did it, and the fuzzer goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

TRIES = {
    "csv": 150_000,
    "tsv": 20_000,
    "jsonl": 100_000,
    "parquet": 100_000,
    "arrow": 50_000,
    "score": 5_000,
    "saved_table": 350_000,
    "merge": 10_000,
    "calibrator": 180_000,
    "apply": 5_000,
    "columns": 20_000,
    "classes": 10_000,
}
"""Every door, and how often it is knocked at: a million tries in all."""

SECONDS_FOR_ONE = 20
MOST_DEATHS = 20
FINDING = "FINDING"
NO_TRY = "NO TRY"
RUNS = re.compile(r"^#(\d+)\t", re.MULTILINE)
DEATH = re.compile(r"^SUMMARY.*|Test unit written to.*", re.MULTILINE)
TOKENS = (
    "y", "p", "s", "w", "m", "\\x22", ",", "\\x0d\\x0a", "\\x0a", "\\x0d", "nan", "null", "inf",
    "1e999", "-0", "true", "\\xef\\xbb\\xbf", "0.5", "{", "}", "[", "]", ":", "1e-320",
)  # fmt: skip


def main() -> None:
    """Fuzz the doors asked for, or all; exit code 1 when a law was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("entry_points", nargs="*", metavar="DOOR[=TRIES]")
    parser.add_argument("--corpus", type=Path, help="keep inputs worth starting from here")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.inside:
        fuzz_here(asked.inside, int(asked.entry_points[0]), asked.corpus)
        return
    wanted = dict(_with_tries(text) for text in asked.entry_points) or TRIES
    print(f"{'door':12} {'tries':>9} {'seconds':>8} {'findings':>9}")  # noqa: T201
    broken = 0
    with tempfile.TemporaryDirectory() as folder:
        corpus = asked.corpus or Path(folder)
        for door, tries in wanted.items():
            broken += fuzz_apart(door, tries, corpus / door)
    sys.exit(1 if broken else 0)


def _with_tries(text: str) -> tuple[str, int]:
    door, _, tries = text.partition("=")
    return door, int(tries or TRIES[door])


def fuzz_apart(door: str, tries: int, corpus: Path) -> int:
    """Fuzz one door in processes of its own; print what came of it; count the findings.

    A process that dies is a finding. The next one takes over from it.
    """
    corpus.mkdir(parents=True, exist_ok=True)
    start, done, missed, findings = time.monotonic(), 0, 0, []
    for _ in range(MOST_DEATHS):
        command = [
            sys.executable,
            __file__,
            str(tries - done),
            "--inside",
            door,
            "--corpus",
            str(corpus),
        ]
        ended = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, check=False
        )
        findings += [line for line in ended.stdout.splitlines() if line.startswith(FINDING)]
        done += int((RUNS.findall(ended.stderr) or [1])[-1])
        missed += ended.stdout.count(NO_TRY)
        if ended.returncode == 0:
            break
        findings.append(f"{FINDING} death {' '.join(DEATH.findall(ended.stderr))}")
        if done >= tries:
            break
    seconds = time.monotonic() - start
    print(f"{door:12} {done - missed:9} {seconds:8.0f} {len(findings):9}")  # noqa: T201
    for line in findings:
        print(f"  {line}", flush=True)  # noqa: T201
    return len(findings)


# Inside the process of one door


def fuzz_here(door: str, tries: int, corpus: Path) -> None:
    """Hand this process to Atheris, which ends it."""
    import atheris
    import typer

    with atheris.instrument_imports(include=["softcal"]):
        from softcal import cli

        # The commands made once, which typer makes anew for each call.
        cli.app = typer.main.get_command(cli.app)  # type: ignore[assignment]
        knock, examples, is_json = _door(door)
    warnings.simplefilter("error")
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core: no time lost with threads
    for number, example in enumerate(examples):
        (corpus / f"example{number}").write_bytes(example)
    words = corpus.parent / f"{door}.dict"
    words.write_text("".join(f'"{token}"\n' for token in TOKENS))
    found: Counter[str] = Counter()

    def one(data: bytes) -> None:
        try:
            if knock(data) is NO_TRY:
                print(NO_TRY, flush=True)  # noqa: T201
        except Exception as error:  # whatever it is, it is a finding
            place = _place(error)
            found[place] += 1
            if found[place] == 1:
                (corpus.parent / f"{door}-finding{len(found)}").write_bytes(data)
                said = " ".join(str(error).split())
                print(f"{FINDING} {place} {said:.200} by {data!r:.300}", flush=True)  # noqa: T201

    arguments = [
        sys.argv[0], f"-runs={tries}", f"-timeout={SECONDS_FOR_ONE}", "-rss_limit_mb=4096",
        "-max_len=4096", f"-dict={words}", f"-artifact_prefix={corpus.parent}/", str(corpus),
    ]  # fmt: skip
    mutator = {"custom_mutator": _spoil_json} if is_json else {}
    atheris.Setup(arguments, one, **mutator)
    atheris.Fuzz()


def _door(door: str) -> tuple[Callable[[bytes], object], list[bytes], bool]:
    """Give what knocks at a door, examples to start from, and whether they are JSON."""
    import entry_points
    import saved_examples as examples

    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))  # noqa: S108
    if door in {"csv", "tsv", "jsonl", "parquet", "arrow"}:
        suffix = f".{door}"
        knock = partial(entry_points.rows_file, suffix=suffix, folder=folder)
        return knock, list(examples.files(suffix)), False
    if door == "score":
        knock = partial(entry_points.scored_file, suffix=".csv", folder=folder)
        return knock, list(examples.files(".csv")), False
    if door == "apply":
        first = examples.calibrators()[0]
        knock = partial(entry_points.applied_file, calibrator=first, suffix=".csv", folder=folder)
        return knock, list(examples.files(".csv")), False
    if door in {"columns", "classes"}:
        import test_fuzz

        law = {"columns": test_fuzz.test_columns, "classes": test_fuzz.test_classes}[door]
        # Long enough that Hypothesis does not run out of bytes, which would be no try at all.
        seeds = [random.Random(seed).randbytes(4096) for seed in range(50)]  # noqa: S311
        return partial(_hypothesis, law), seeds, False
    saved: dict[str, tuple[Callable[[bytes], object], tuple[Any, ...]]] = {
        "saved_table": (
            lambda data: entry_points.saved_table(json.loads(data or "0")),
            examples.tables(),
        ),
        "calibrator": (
            lambda data: entry_points.saved_calibrator(json.loads(data or "0")),
            examples.calibrators(),
        ),
        "merge": (partial(entry_points.merged_file, folder=folder), examples.scores()),
    }
    knock_, good = saved[door]
    return knock_, [examples.as_bytes(one) for one in good], True


def _hypothesis(law: Any, data: bytes) -> str | None:
    """Let Hypothesis make an example of the bytes; say so where it cannot."""
    return NO_TRY if law.hypothesis.fuzz_one_input(data) is None else None


def _spoil_json(data: bytes, max_size: int, seed: int) -> bytes:
    """Change what JSON says, so that it stays JSON."""
    import saved_examples

    rng = random.Random(seed)  # noqa: S311 - nobody's secret
    try:
        changed = json.dumps(saved_examples.spoiled(json.loads(data), rng)).encode()
    except ValueError:
        changed = b"{}"
    return changed if len(changed) <= max_size else data


def _place(error: BaseException) -> str:
    """Say what was raised, and the last lines of ours it came through."""
    frames = [
        f
        for f in traceback.extract_tb(error.__traceback__)
        if "softcal" in f.filename or "entry_points" in f.filename
    ]
    where = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames[-3:]))
    return f"{type(error).__name__} at {where}"


if __name__ == "__main__":
    main()
