"""An interrupt at any moment gives its exit code, one line, and no partial file."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import softcal as sc
from softcal.scanning import stream

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.name == "nt", reason="sends POSIX signals")

# Python calls audit hooks for every import and for every file opened, renamed, or removed. So the
# k-th call is a moment that hardly depends on the machine. The calls for the output file, which
# threads do not shift, are counted separately.
AT_MOMENT = """
import atexit, json, os, sys
from softcal.__main__ import main
moment, number = sys.argv.pop(1), int(sys.argv.pop(1))
seen = {"any": 0, "writing": 0, "before": 0}
def strike(event, arguments):
    writing = event.startswith(("open", "os.")) and ".softcal-" in str(arguments)
    if writing and not seen["before"]:
        seen["before"] = seen["any"]
    for kind in ("any", "writing") if writing else ("any",):
        seen[kind] += 1
        if moment == f"{kind} {seen[kind]}":
            os.kill(os.getpid(), number)
strike.__cantrace__ = True  # otherwise coverage would miss the signal handler
sys.addaudithook(strike)
if moment == "none":
    atexit.register(lambda: print(json.dumps(seen), file=sys.stderr))
main()
"""
COMMANDS = {
    "score": ("score", "DATA", "--label", "y", "--pred", "p", "--save", "OUT/saved.json"),
    "apply": ("apply", "CALIBRATOR", "DATA", "--pred", "p", "-o", "OUT/out.parquet"),
}
MOMENTS = int(
    os.environ.get("SOFTCAL_MOMENTS", "3")
)  # per command, in addition to those of writing


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("interrupts")
    p = np.random.default_rng(0).random(200_000)
    pq.write_table(pa.table({"y": p**2, "p": p}), folder / "data.parquet", row_group_size=10_000)
    calibrator = folder / "calibrator.json"
    calibrator.write_text(
        json.dumps(sc.calibrators.PlattCalibrator().fit(p, p**2).to_dict()), encoding="utf-8"
    )
    return {"DATA": folder / "data.parquet", "CALIBRATOR": calibrator}


def started(
    command: str, files: dict[str, Path], out: Path, moment: str, number: int = 0
) -> list[str]:
    words = [
        str(files[word]) if word in files else word.replace("OUT", str(out))
        for word in COMMANDS[command]
    ]
    return [sys.executable, "-c", AT_MOMENT, moment, str(number), *words]


def run(arguments: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        arguments, capture_output=True, encoding="utf-8", check=False, timeout=300, **options
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_interrupt_at_any_moment_leaves_no_partial_file(
    command: str, files: dict[str, Path], tmp_path: Path
) -> None:
    whole = run(started(command, files, tmp_path, "none"))
    assert whole.returncode == 0
    seen = json.loads(whole.stderr)
    assert seen["writing"] >= 3  # created, written, renamed
    (path,) = tmp_path.iterdir()
    new = path.read_bytes()
    evenly = [f"any {k}" for k in np.linspace(1, seen["any"], MOMENTS).astype(int)]
    writing = [f"writing {k}" for k in range(1, seen["writing"] + 1)]
    for k, moment in enumerate([*evenly, *writing]):
        number = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)[k % 3]
        path.write_bytes(b"old")
        result = run(started(command, files, tmp_path, moment, number))
        late = result.returncode == 0  # the command was done before the signal
        assert late or result.returncode == 128 + number, (moment, result.stderr)
        assert result.stderr == ("" if late else f"softcal: stopped by {number.name}\n")
        assert list(tmp_path.iterdir()) == [path], moment
        assert path.read_bytes() in ([new] if late else [b"old", new])


def test_ignored_signal_stays_ignored(files: dict[str, Path], tmp_path: Path) -> None:
    """As required for nohup and background jobs of a shell."""
    arguments = started("score", files, tmp_path, "any 100", signal.SIGINT)
    ignoring = "import signal, subprocess, sys; signal.signal(2, signal.SIG_IGN); sys.exit(subprocess.call(sys.argv[1:]))"
    assert run([sys.executable, "-c", ignoring, *arguments]).returncode == 0


def test_interrupt_restores_the_cursor(files: dict[str, Path], tmp_path: Path) -> None:
    """The progress bar hides the cursor; the interrupt comes just before the result is written."""
    before = json.loads(run(started("score", files, tmp_path, "none")).stderr)["before"]
    ours, theirs = pty.openpty()
    arguments = started("score", files, tmp_path, f"any {before - 5}", signal.SIGINT)
    with subprocess.Popen(  # noqa: S603
        arguments, stdout=subprocess.DEVNULL, stderr=theirs, env=os.environ | {"TERM": "xterm"}
    ) as process:
        assert process.wait(timeout=300) == 130
    os.close(theirs)
    drawn = b""
    with suppress(OSError):  # raised when the other end of the terminal is closed
        while part := os.read(ours, 1 << 16):
            drawn += part
    os.close(ours)
    shown = drawn.decode()
    assert "\x1b[?25l" in shown
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")
    assert shown.endswith("softcal: stopped by SIGINT\r\n")


def test_keyboard_interrupt_is_raised_and_next_call_works(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    sc.scan(files["DATA"], y_true="y", y_prob="p")  # starts the threads that stay
    threads = threading.active_count()
    counting = stream._counting

    def interrupt(batch: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return counting(batch)

    # A shell starts background jobs with SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(stream, "_counting", interrupt)
            with pytest.raises(KeyboardInterrupt):
                sc.scan(files["DATA"], y_true="y", y_prob="p")
    finally:
        signal.signal(signal.SIGINT, before)
    assert threading.active_count() == threads
    rel = sc.scan(files["DATA"], y_true="y", y_prob="p")
    assert rel.n == 200_000
    assert threading.active_count() == threads
