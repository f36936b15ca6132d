"""Record where and with what the results were measured."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.evidence.markdown import table
from benchmarks.evidence.peers import installed_version

WITH = ("softcal", "numpy", "scipy", "torch", "pandas", "polars")


def _field(path: str, name: str) -> str:
    """Return a value from one of Linux's information files; nothing on other systems."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    found = (line for line in lines if line.startswith(name))
    return next(found, "").partition(":" if ":" in next(iter(lines), "") else "=")[2].strip(' "')


def memory() -> str:
    kilobytes = _field("/proc/meminfo", "MemTotal").partition(" ")[0]
    return f"{int(kilobytes) / 2**20:.0f} GB" if kilobytes else "unknown"


def facts() -> dict[str, str]:
    """Return the machine, the versions, and the date."""
    system = _field("/etc/os-release", "PRETTY_NAME") or platform.system()
    return {
        "processor": _field("/proc/cpuinfo", "model name") or platform.machine(),
        "cores": str(os.cpu_count()),
        "memory": memory(),
        "system": f"{system}, {platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        **{name: installed_version(name) for name in WITH},
        "date": datetime.now(tz=UTC).strftime("%Y-%m-%d"),
    }


def section(facts: dict[str, str]) -> str:
    """Return the facts as a table."""
    return table(("what", "which"), [list(fact) for fact in facts.items()])
