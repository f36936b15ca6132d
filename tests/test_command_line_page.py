"""The reference of the command line is generated, and every example of a help runs."""

from __future__ import annotations

import csv
import re
import shlex
from typing import TYPE_CHECKING

import numpy as np
import pytest
from command_line import softcal_here

from command_line_page import PAGE, page
from softcal.cli import COMMANDS

if TYPE_CHECKING:
    from pathlib import Path

# Exit codes other than 0 that the help of a command states.
ANSWERS = {"check": {1, 3}, "route": {1}, "watch": {1}}


def test_page_is_what_the_generator_writes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python tools/command_line_page.py"


@pytest.mark.parametrize("command", COMMANDS)
def test_section_has_every_option_of_the_help(command: str) -> None:
    section = page().partition(f"{{ #{command} }}")[2].partition("\n### ")[0]
    has_more = "--help-all" in softcal_here(command, "--help").stdout
    everything = softcal_here(command, "--help-all" if has_more else "--help").stdout
    options = set(re.findall(r"^│[ *]*(--[a-z-]+)", everything, flags=re.MULTILINE)) - {"--help"}
    assert options or command == "schema"
    assert [option for option in options if f"`{option}`" not in section] == []
    assert _example(everything) in section


@pytest.mark.parametrize("command", COMMANDS)
def test_example_of_the_help_runs(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("data", "pilot", "new", "monday", "tuesday"):
        _write_rows(tmp_path / f"{name}.csv")
    made_before = {
        "apply": ["softcal recalibrate data.csv --label y --pred p -o map.json"],
        "merge": [f"softcal scan {day}.csv --label y --pred p -o {day}.json --date 2026-05-0{k}"
                  for k, day in ((4, "monday"), (5, "tuesday"))],
    }  # fmt: skip
    example = _example(softcal_here(command, "--help").stdout)
    for line in (*made_before.get(command, ()), example):
        done = softcal_here(*shlex.split(line)[1:])
        assert done.returncode in {0, *ANSWERS.get(command, ())}, done.stderr
    assert done.stdout
    for written in re.findall(r"(?:-o|--output) (\S+)", example):
        assert (tmp_path / written).exists()


def _example(text: str) -> str:
    """Return the example at the end of a help."""
    found = re.search(r"^ Example: (.*?)\s*(?:\n\s*\n|\Z)", text, flags=re.MULTILINE | re.DOTALL)
    assert found, text
    return " ".join(found[1].split())


def _write_rows(path: Path) -> None:
    """Write 200 rows with the columns of all examples."""
    rng = np.random.default_rng(len(path.name))
    p, p_b = rng.random((2, 200))
    votes = rng.binomial(5, p)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["y", "share", "n_votes", "p", "p_a", "p_b", "sex", "age", "date"])
        writer.writerows(
            [int(votes[k] > 2), votes[k] / 5, 5, p[k], p[k], p_b[k], "fm"[k % 2], 20 + k % 60,
             f"2026-05-{1 + k // 20:02}"]
            for k in range(200)
        )  # fmt: skip
