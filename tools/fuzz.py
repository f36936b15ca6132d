"""Fuzz the entry points of softcal: `make fuzz`, or `python tools/fuzz.py TARGET=TRIES ...`.

Every entry point must return a correct result or raise `SoftcalError`. Atheris makes the bytes of
files; random seeds make the arguments of functions and the options of commands. Each target has a
process of its own, because a crash must not end the others. A finding is reported once for each
place it was raised at, with the input that caused it, and the fuzzer goes on.
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
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

TRIES = {
    "columns": 500_000,
    "classes": 200_000,
    "inference": 100_000,
    "ordinal": 100_000,
    "decisions": 100_000,
    "checks": 100_000,
    "raters": 100_000,
    "raw_votes": 100_000,
    "audits": 100_000,
    "alarms": 100_000,
    "queries": 100_000,
    "plans": 1_000,
    "tensors": 100_000,
    "class_tensors": 100_000,
    "frames": 100_000,
    "options": 5_000,
    "csv": 150_000,
    "tsv": 20_000,
    "jsonl": 100_000,
    "parquet": 100_000,
    "arrow": 50_000,
    "score": 5_000,
    "saved_set": 450_000,
    "merge": 10_000,
    "calibrator": 180_000,
    "apply": 5_000,
}
"""Every target and its number of tries: three million in all, fewer where a try takes long."""

SEEDED = (
    "columns", "classes", "inference", "ordinal", "decisions", "checks", "raters", "raw_votes",
    "audits", "alarms", "queries", "plans", "tensors", "class_tensors", "frames", "options",
)  # fmt: skip
"""Targets whose input a seed makes; the others are given bytes by Atheris."""

SECONDS_FOR_ONE = 20
MOST_DEATHS = 20
FINDING = "FINDING"
RUNS = re.compile(r"^#(\d+)\t", re.MULTILINE)
DEATH = re.compile(r"^SUMMARY.*|Test unit written to.*", re.MULTILINE)
TOKENS = (
    "y", "p", "s", "w", "m", "\\x22", ",", "\\x0d\\x0a", "\\x0a", "\\x0d", "nan", "null", "inf",
    "1e999", "-0", "true", "\\xef\\xbb\\xbf", "0.5", "{", "}", "[", "]", ":", "1e-320",
)  # fmt: skip


def main() -> None:
    """Fuzz the targets asked for, or all; exit with code 1 if there are findings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET[=TRIES]")
    parser.add_argument("--corpus", type=Path, help="keep interesting inputs in this folder")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--done", type=int, default=0, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.inside:
        fuzz_here(asked.inside, int(asked.targets[0]), asked.done, asked.corpus)
        return
    wanted = dict(_with_tries(text) for text in asked.targets) or TRIES
    print(f"{'target':14} {'tries':>9} {'seconds':>8} {'findings':>9}")  # noqa: T201
    findings = 0
    with tempfile.TemporaryDirectory() as folder:
        corpus = asked.corpus or Path(folder)
        for target, tries in wanted.items():
            findings += fuzz_apart(target, tries, corpus / target)
    sys.exit(1 if findings else 0)


def _with_tries(text: str) -> tuple[str, int]:
    target, _, tries = text.partition("=")
    return target, int(tries or TRIES[target])


def fuzz_apart(target: str, tries: int, corpus: Path) -> int:
    """Fuzz one target in processes of its own, print the result, and count the findings.

    A process that dies is a finding. The next one continues after it.
    """
    corpus.mkdir(parents=True, exist_ok=True)
    start, done, findings = time.monotonic(), 0, []
    for _ in range(MOST_DEATHS):
        command = [sys.executable, __file__, str(tries - done), "--inside", target]
        command += ["--done", str(done), "--corpus", str(corpus)]
        ended = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, check=False
        )
        findings += [line for line in ended.stdout.splitlines() if line.startswith(FINDING)]
        done += int((RUNS.findall(ended.stderr) or [1])[-1])
        if ended.returncode == 0:
            break
        findings.append(f"{FINDING} death {' '.join(DEATH.findall(ended.stderr))}")
        if done >= tries:
            break
    seconds = time.monotonic() - start
    print(f"{target:14} {done:9} {seconds:8.0f} {len(findings):9}")  # noqa: T201
    for line in findings:
        print(f"  {line}", flush=True)  # noqa: T201
    return len(findings)


# Inside the process of one target


class Findings:
    """Run tries, and print the first finding of each place."""

    def __init__(self, attempt: Callable[[Any], object], target: str, folder: Path) -> None:
        self._attempt, self._target, self._folder = attempt, target, folder
        self._places: set[str] = set()

    def run(self, given: Any) -> None:
        """Make one try; any exception is a finding."""
        try:
            self._attempt(given)
        except Exception as error:
            place = _place(error)
            if place in self._places:
                return
            self._places.add(place)
            if isinstance(given, bytes):
                (self._folder / f"{self._target}-finding{len(self._places)}").write_bytes(given)
            said = " ".join(str(error).split())
            print(f"{FINDING} {place} {said:.200} by {given!r:.300}", flush=True)  # noqa: T201


def fuzz_here(target: str, tries: int, done: int, corpus: Path) -> None:
    """Fuzz in this process."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core: no time lost with threads
    if target in SEEDED:
        attempt = _seeded(target)
        warnings.simplefilter("error")
        findings = Findings(attempt, target, corpus.parent)
        for number in range(1, tries + 1):
            sys.stderr.write(f"#{number}\t\n")  # the last line states which seed ended the process
            findings.run(done + number)
        return
    _fuzz_bytes(target, tries, corpus)


def _seeded(target: str) -> Callable[[Any], object]:
    """Return the attempt of a target whose input a seed makes."""
    import entry_points
    import frame_entry_points

    folder = Path(tempfile.mkdtemp())
    of_seeds = {
        "frames": frame_entry_points.framed,
        "raters": frame_entry_points.raters,
        "raw_votes": frame_entry_points.raw_votes,
        "audits": frame_entry_points.audited,
        "alarms": frame_entry_points.watched,
        "queries": frame_entry_points.queried,
    }
    if target in of_seeds:
        return of_seeds[target]
    of_functions = {
        "ordinal": entry_points.OF_ORDINAL,
        "decisions": entry_points.OF_DECISIONS,
        "checks": entry_points.OF_CHECKS,
        "columns": entry_points.OF_COLUMNS,
        "classes": entry_points.OF_CLASSES,
        "inference": entry_points.OF_INFERENCE,
        "plans": entry_points.OF_PLANS,
        "tensors": entry_points.OF_TENSORS,
        "class_tensors": entry_points.OF_CLASS_TENSORS,
    }
    if target == "options":
        _build_commands_once()
        return partial(entry_points.options, folder=folder)
    of_classes = target in {"classes", "class_tensors", "ordinal"}
    return partial(entry_points.call_any, of_functions[target], of_classes=of_classes)


def _build_commands_once() -> None:
    """Keep the commands that typer builds; it would build them again for each call."""
    import typer

    from softcal import cli

    built = typer.main.get_command(cli.app_of())
    cli.app_of = lambda _names=(): built  # type: ignore[assignment, return-value]


def _fuzz_bytes(target: str, tries: int, corpus: Path) -> None:
    """Hand this process to Atheris, which ends it."""
    import atheris

    with atheris.instrument_imports(include=["softcal"]):
        _build_commands_once()
        attempt, examples, is_json = _of_bytes(target)
    warnings.simplefilter("error")
    for number, example in enumerate(examples):
        (corpus / f"example{number}").write_bytes(example)
    words = corpus.parent / f"{target}.dict"
    words.write_text("".join(f'"{token}"\n' for token in TOKENS))
    arguments = [
        sys.argv[0], f"-runs={tries}", f"-timeout={SECONDS_FOR_ONE}", "-rss_limit_mb=4096",
        "-max_len=4096", f"-dict={words}", f"-artifact_prefix={corpus.parent}/", str(corpus),
    ]  # fmt: skip
    mutator = {"custom_mutator": _spoil_json} if is_json else {}
    atheris.Setup(arguments, Findings(attempt, target, corpus.parent).run, **mutator)
    atheris.Fuzz()


def _of_bytes(target: str) -> tuple[Callable[[bytes], object], list[bytes], bool]:
    """Return the attempt of a target, examples to start from, and whether they are JSON."""
    import entry_points
    import saved_examples as examples

    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))  # noqa: S108
    if target in {"csv", "tsv", "jsonl", "parquet", "arrow"}:
        suffix = f".{target}"
        attempt = partial(entry_points.rows_file, suffix=suffix, folder=folder)
        return attempt, list(examples.files(suffix)), False
    if target == "score":
        attempt = partial(entry_points.scored_file, suffix=".csv", folder=folder)
        return attempt, list(examples.files(".csv")), False
    if target == "apply":
        first = examples.calibrators()[0]
        attempt = partial(entry_points.applied_file, calibrator=first, suffix=".csv", folder=folder)
        return attempt, list(examples.files(".csv")), False
    saved: dict[str, tuple[Callable[[bytes], object], tuple[Any, ...]]] = {
        "saved_set": (
            partial(entry_points.saved_set, folder=folder),
            (*examples.sets(), *examples.tables()),
        ),
        "calibrator": (
            lambda data: entry_points.saved_calibrator(json.loads(data or "0")),
            examples.calibrators(),
        ),
        "merge": (partial(entry_points.merged_file, folder=folder), examples.sets()),
    }
    of_json, good = saved[target]
    return of_json, [examples.as_bytes(one) for one in good], True


def _spoil_json(data: bytes, max_size: int, seed: int) -> bytes:
    """Change a JSON value into another JSON value."""
    import saved_examples

    rng = random.Random(seed)  # noqa: S311 - not a secret
    try:
        changed = json.dumps(saved_examples.spoiled(json.loads(data), rng)).encode()
    except ValueError:
        changed = b"{}"
    return changed if len(changed) <= max_size else data


def _place(error: BaseException) -> str:
    """Return the type of an exception and the last lines of softcal in its traceback."""
    frames = [
        f
        for f in traceback.extract_tb(error.__traceback__)
        if "softcal" in f.filename or "entry_points" in f.filename
    ]
    where = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames[-3:]))
    return f"{type(error).__name__} at {where}"


if __name__ == "__main__":
    main()
