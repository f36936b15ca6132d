"""Versions and constraints of a release agree in all files."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import softcal as sc

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOR_USERS = ("cli", "frames", "plot", "report", "sklearn", "torch")


def test_minimum_constraints_equal_declared_minimums() -> None:
    wanted = [
        *PROJECT["dependencies"],
        *(line for extra in FOR_USERS for line in PROJECT["optional-dependencies"][extra]),
    ]
    promised = dict(line.split(">=") for line in wanted if ">=" in line)
    pins = (ROOT / "constraints-minimum.txt").read_text(encoding="utf-8")
    tried = dict(re.findall(r"^([\w-]+)==([\d.]+)$", pins, re.MULTILINE))
    for name, version in promised.items():
        zeros = ".0" * (tried[name].count(".") - version.count("."))
        assert tried[name] == version + zeros


def test_citation_has_the_current_version() -> None:
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert set(re.findall(r"^\s*version: (.+)$", cited, re.MULTILINE)) == {sc.__version__}


def test_every_action_is_pinned_by_commit() -> None:
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        used = re.findall(r"uses: (.+)", workflow.read_text(encoding="utf-8"))
        assert used
        for action in used:
            ours = action.startswith("./.github/workflows/") and (ROOT / action).is_file()
            assert ours or re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)
