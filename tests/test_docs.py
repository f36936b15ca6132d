"""What the documentation shows is what the program prints. (Its code runs as doctests.)"""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

import softcal as sc
from softcal import torchmetric
from softcal.paper.report import reproduce

ROOT = Path(__file__).parent.parent


def test_the_paper_page_shows_what_the_command_prints() -> None:
    console = Console(width=80, file=io.StringIO(), highlight=False)
    reproduce().show(console)
    assert isinstance(console.file, io.StringIO)
    printed = [line.rstrip() for line in console.file.getvalue().splitlines()]
    start = printed.index("Experiment 1: k = 2, n = 5,000")
    tally = printed.index("211 of 212 printed figures reproduced digit for digit.")
    further = printed.index("Experiment 5: ECE of the perfect model, k = 2")
    page = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    for block in (printed[start:tally], printed[further:]):
        assert "\n".join(block).rstrip() in page


def test_the_reference_has_every_public_name_once() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    listed = [line.rpartition(".")[2] for line in page.splitlines() if line.startswith(":::")]
    assert sorted(listed) == sorted([*sc.__all__, *torchmetric.__all__])


def test_every_page_is_on_the_site() -> None:
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert f": {page.name}\n" in listed


def test_every_page_and_picture_a_page_points_to_is_there() -> None:
    import re

    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} points to {target}"
