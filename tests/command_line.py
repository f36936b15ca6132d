"""The command line as a person runs it: in a process of its own."""

from __future__ import annotations

import subprocess
import sys


def softcal(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run one command, whatever comes of it."""
    command = [sys.executable, "-m", "softcal", *map(str, arguments)]
    return subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, check=False, encoding="utf-8"
    )
