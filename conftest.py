"""The doctest of a walk-through runs in a folder with the data of its page."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _data_of_the_page(request: pytest.FixtureRequest) -> None:
    if request.path.name == "walk_votes.md":
        folder: Path = request.getfixturevalue("tmp_path")
        request.getfixturevalue("monkeypatch").chdir(folder)
        runpy.run_path(str(Path(__file__).parent / "examples" / "walk_data.py"))["votes"]()
