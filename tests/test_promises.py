"""Check that every test named in docs/guarantees.md exists, and guarantees without another file."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np

import softcal as sc

HERE = Path(__file__).parent
SOURCE = Path(sc.__file__).parent


def test_every_test_the_page_names_exists() -> None:
    page = (HERE.parent / "docs" / "guarantees.md").read_text(encoding="utf-8")
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", page)
    assert len(named) > 60
    guarantees = page.partition("## Fuzzing")[0]
    rows = [line for line in guarantees.splitlines() if line.startswith("| ")]
    assert all("::test_" in row or row == "| guarantee | tests |" for row in rows)
    for file, name in named:
        assert f"def {name}(" in (HERE / file).read_text(encoding="utf-8"), f"{file}::{name}"


def test_no_source_file_imports_network_or_pickle() -> None:
    unwanted = r"^\s*(import|from) (socket|ssl|urllib|http|requests|pickle|shelve|joblib)\b"
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(unwanted, text, re.MULTILINE), path
        # Only the exchange with Spark workers, by Spark's serializer, as SECURITY.md says.
        assert ("CPickleSerializer" in text) == (path.name == "engines.py"), path
    said = " ".join((HERE.parent / "SECURITY.md").read_text(encoding="utf-8").split())
    assert "With Dask and Spark, the functions and partial sums" in said


def test_no_command_opens_a_socket(tmp_path: Path) -> None:
    code = (
        "import os, sys\n"
        "from softcal.__main__ import main\n"
        "def watch(event, arguments):\n"
        "    if event.startswith('socket.'): os._exit(99)\n"
        "sys.addaudithook(watch)\n"
        "main()\n"
    )
    run = [sys.executable, "-c", code]
    shown = subprocess.run([*run, "demo", "-o", str(tmp_path)], capture_output=True, check=False)  # noqa: S603
    assert shown.returncode == 0
    knocking = [sys.executable, "-c", code.replace("main()", "import socket; socket.socket()")]
    assert subprocess.run(knocking, check=False).returncode == 99  # noqa: S603


def test_nothing_global_changes(tmp_path: Path, rng: np.random.Generator) -> None:
    def state() -> list[object]:
        return [
            random.getstate(),
            repr(np.random.get_state()),  # noqa: NPY002 - the global one, which we leave alone
            np.geterr(),
            np.get_printoptions(),
            list(warnings.filters),
            dict(os.environ),
            Path.cwd(),
            [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        ]

    p = rng.random(400)
    y = np.clip(p + 0.1, 0, 1)

    def use_it() -> None:
        rel = sc.reliability(y, p)
        sc.smece_interval(rel)
        sc.calibration_test(rel)
        sc.compare(y, {"a": p, "b": p**2})
        sc.calibrators.IsotonicCalibrator().fit(p, y).predict(p)
        sc.write_report(tmp_path / "report.html", y, {"m": p})

    use_it()  # some libraries set variables of their own when they are imported
    before = state()
    use_it()
    assert state() == before
