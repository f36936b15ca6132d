"""Run the command line in a subprocess or in the process of the tests."""

from __future__ import annotations

import html
import io
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any

import pytest

from softcal import cli

if TYPE_CHECKING:
    from pathlib import Path


def softcal(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run one command in a subprocess; return its result, also on an error."""
    command = [sys.executable, "-m", "softcal", *map(str, arguments)]
    return subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, check=False, encoding="utf-8"
    )


def softcal_here(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run one command in this process, which is faster; test_cli.py tests that both agree."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = cli.run(list(map(str, arguments)))
    return subprocess.CompletedProcess([*map(str, arguments)], code, out.getvalue(), err.getvalue())


def text_of_page(page: Path) -> str:
    """Return the text of an HTML file, without its tags."""
    return html.unescape(re.sub(r"<[^>]*>", "", page.read_text(encoding="utf-8")))


def without_source(card: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON result without the name of its source."""
    return {key: value for key, value in card.items() if key != "source"}


def assert_same_card(ours: Any, other: Any) -> None:
    """Assert that two JSON results have the same keys and texts, and numbers equal to 1e-12.

    The name of the source may differ.
    """
    if isinstance(other, dict):
        assert list(ours) == list(other)
        for key, value in without_source(other).items():
            assert_same_card(ours[key], value)
    elif isinstance(other, list):
        assert len(ours) == len(other)
        for a, b in zip(ours, other, strict=True):
            assert_same_card(a, b)
    elif isinstance(other, float):
        assert ours == pytest.approx(other, rel=1e-12, abs=1e-12)
    else:
        assert ours == other
