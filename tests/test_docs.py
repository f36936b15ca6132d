"""What the documentation shows is what the program prints. (Its code runs as doctests.)"""

from __future__ import annotations

import io
import re
from pathlib import Path
from types import ModuleType

from rich.console import Console

import softcal as sc
from own_names import apart
from pictures import PICTURES
from softcal import torchmetric
from softcal.cli.paper import show
from softcal.paper.reproduction import reproduce

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
PICTURE_FILES = [f"{picture.__name__}.svg" for picture in PICTURES]
# These are words and tables by nature, or write their own pictures in text.
WITHOUT_PICTURES = {
    *("api", "architecture", "choose", "evidence", "faq", "methods", "migrate"),
    *("reliability", "speed"),
}


def test_the_paper_page_shows_what_the_command_prints() -> None:
    console = Console(width=80, file=io.StringIO(), highlight=False)
    show(console, reproduce())
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
    packages = [sc, sc.calibrators, sc.inference, sc.metrics, sc.planning, torchmetric]
    names = {name: package for package in packages for name in package.__all__}
    public = [name for name, of in names.items() if not isinstance(getattr(of, name), ModuleType)]
    results = ["DawidSkene", "CalibrationSummary", "Estimate", "NetBenefit", "NetBenefitDifference"]
    assert sorted(listed) == sorted([*public, *results])


def test_every_page_is_on_the_site() -> None:
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in PAGES:
        assert f": {page.name}\n" in listed


def test_every_page_and_picture_a_page_points_to_is_there() -> None:
    made = {ROOT / "docs" / "made" / name for name in (*PICTURE_FILES, "report.html")}
    for page in (ROOT / "README.md", *PAGES):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            path = page.parent / target
            there = "://" in target or path in made or path.exists()
            assert there, f"{page.name} points to {target}"


def test_every_capability_shows_a_picture_that_the_build_makes() -> None:
    for page in PAGES:
        if page.stem not in WITHOUT_PICTURES:
            assert "](made/" in page.read_text(encoding="utf-8"), f"{page.name} has no picture"


def test_every_picture_is_shown() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [name for name in PICTURE_FILES if f"(made/{name})" not in text] == []


def test_every_picture_says_in_words_what_it_shows() -> None:
    for page in (ROOT / "README.md", *PAGES):
        text = page.read_text(encoding="utf-8")
        words = re.findall(r"!\[([^\]]*)\]\(", text)
        words += [re.findall('alt="([^"]*)"', tag) for tag in re.findall("<img[^>]*>", text)]
        for alt in words:
            assert len("".join(alt)) > 40, f"{page.name}: {alt}"


def test_the_tree_leads_to_a_leaf_that_runs() -> None:
    page = (ROOT / "docs" / "choose.md").read_text(encoding="utf-8")
    tree, leaves = page.split("## Two lines for each leaf")
    anchors = set(re.findall(r"\]\(#([a-z-]+)\)", tree))
    runs = {
        re.sub(r"[^a-z]+", "-", part.splitlines()[0].strip().lower())
        for part in leaves.split("### ")[1:]
        if ">>> " in part
    }
    assert anchors == runs


def test_names_that_share_a_line_get_an_entry_each() -> None:
    shared = (
        "Parameters\n----------\nlow, high : float\n    The ends.\n    Both.\nbins\n    As in x.\n"
    )
    each = "low : float\n    The ends.\n    Both.\nhigh : float\n    The ends.\n    Both.\n"
    assert apart(shared) == shared.replace("low, high : float\n    The ends.\n    Both.\n", each)
    assert apart(apart(shared)) == apart(shared)
