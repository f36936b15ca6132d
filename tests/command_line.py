"""The command line: as a person runs it, in its own process, and in the process of the tests."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import pytest

from softcal import cli


def softcal(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run one command, whatever comes of it."""
    command = [sys.executable, "-m", "softcal", *map(str, arguments)]
    return subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, check=False, encoding="utf-8"
    )


def softcal_here(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run one command in this process, which is faster; tests/test_cli.py shows it is the same."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = cli.run(list(map(str, arguments)))
    return subprocess.CompletedProcess([*map(str, arguments)], code, out.getvalue(), err.getvalue())


def assert_close(left: Any, right: Any) -> None:
    """Compare the JSON of two commands: equal names and counts, numbers equal to 1e-12."""
    if isinstance(left, dict):
        assert list(left) == list(right)
        for key in left:
            assert_close(left[key], right[key])
    elif isinstance(left, list):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            assert_close(one, other)
    else:
        assert left == (pytest.approx(right, abs=1e-12) if isinstance(right, float) else right)
