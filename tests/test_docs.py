"""The documentation shows what the program prints. (Its code runs as doctests.)"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import softcal as sc
from own_names import apart, described, hyphenated, parameters_of
from pictures import PICTURES
from softcal import torchmetric

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
PICTURE_FILES = [f"{picture.__name__}.svg" for picture in PICTURES]
# Text and tables only.
WITHOUT_PICTURES = {
    *("pipelines", "evaluation_logs"),
    *("architecture", "choose", "evidence", "faq", "guarantees", "install", "methods"),
    *("interval_method", "migrate", "recalibration_method", "performance"),
    *("without_bins_method", "monitoring_method", "decision_method"),
    *(page.stem for page in PAGES if page.stem.startswith("api")),
}


def test_paper_page_shows_what_the_command_prints(tmp_path: Path) -> None:
    printed = _printed("paper", tmp_path)
    start = printed.index("Experiment 1: k = 2, n = 5,000")
    tally = printed.index("211 of 212 printed numbers reproduced digit for digit.")
    further = printed.index("Experiment 5: ECE of the perfect model, k = 2")
    page = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    for block in (printed[start:tally], printed[further:]):
        assert "\n".join(block).rstrip() in page


def _printed(command: str, folder: Path) -> list[str]:
    """Run a command on the bundled items and return its lines at 80 columns."""
    items = Path(sc.__file__).parent / "data" / "lidc_malignancy" / "items.csv"
    (folder / "items.csv").write_bytes(items.read_bytes())
    run = [sys.executable, "-m", "softcal", *command.split()]
    done = subprocess.run(  # noqa: S603
        run, cwd=folder, capture_output=True, encoding="utf-8", check=True,
        env=os.environ | {"COLUMNS": "80", "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    return [line.rstrip() for line in done.stdout.splitlines()]


def test_decisions_page_shows_what_decide_prints(tmp_path: Path) -> None:
    columns = "--label soft_malignant --pred prob_lr_geometry"
    command = f"decide items.csv {columns} --threshold 0.05 --threshold 0.2"
    printed = "\n".join(_printed(command, tmp_path))
    shown = printed.split("\n\nA model is useful")[0]
    text = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8").replace("\\\n        ", "")
    assert f"    softcal {command}\n\n```text\n{shown}\n```\n" in text, shown


def test_readme_and_quickstart_show_what_score_prints(tmp_path: Path) -> None:
    command = "score items.csv --label soft_malignant --pred prob_rf_all --votes n_readers"
    table = "\n".join(_printed(command, tmp_path)[:6])
    for page in (ROOT / "README.md", ROOT / "docs" / "quickstart.md"):
        text = page.read_text(encoding="utf-8")
        assert f"    softcal {command}\n\n```text\n{table}\n```\n" in text, table


def test_readme_and_page_show_what_route_prints(tmp_path: Path) -> None:
    command = "route items.csv --label soft_malignant --pred prob_rf_all --max-disagreement 0.2"
    printed = _printed(command, tmp_path)
    for page, lines in (("README.md", printed[:5]), ("docs/route.md", printed)):
        shown = "\n".join(lines)
        text = (ROOT / page).read_text(encoding="utf-8")
        assert f"    softcal {command}\n\n```text\n{shown}\n```\n" in text, shown


def test_api_pages_have_every_public_name_once() -> None:
    pages = sorted((ROOT / "docs").glob("api_*.md"))
    lines = [line for page in pages for line in page.read_text(encoding="utf-8").splitlines()]
    listed = [line.rpartition(".")[2] for line in lines if line.startswith(":::")]
    packages = [sc, sc.calibrators, sc.inference, sc.metrics, sc.planning, torchmetric]
    names = {name: package for package in packages for name in package.__all__}
    public = [name for name, of in names.items() if not isinstance(getattr(of, name), ModuleType)]
    results = ["DawidSkene", "NetBenefit", "NetBenefitDifference"]
    assert sorted(listed) == sorted([*public, *results])
    overview = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert [name for name in listed if f"[`{name}`](api_" not in overview] == []


def test_every_page_is_on_the_site() -> None:
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in PAGES:
        assert f": {page.name}\n" in listed


def test_every_linked_page_and_figure_exists() -> None:
    made = {ROOT / "docs" / "made" / name for name in (*PICTURE_FILES, "report.html")}
    for page in (ROOT / "README.md", *PAGES):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            path = page.parent / target
            there = "://" in target or path in made or path.exists()
            assert there, f"{page.name} links to {target}"


def test_every_capability_shows_a_figure_of_the_build() -> None:
    for page in PAGES:
        if page.stem not in WITHOUT_PICTURES:
            assert "](made/" in page.read_text(encoding="utf-8"), f"{page.name} has no figure"


def test_gallery_shows_every_figure() -> None:
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert [name for name in PICTURE_FILES if f"(made/{name})" not in text] == []


def test_every_figure_has_alternative_text() -> None:
    for page in (ROOT / "README.md", *PAGES):
        text = page.read_text(encoding="utf-8")
        words = re.findall(r"!\[([^\]]*)\]\(", text)
        words += [re.findall('alt="([^"]*)"', tag) for tag in re.findall("<img[^>]*>", text)]
        for alt in words:
            assert len("".join(alt)) > 40, f"{page.name}: {alt}"


def test_every_leaf_of_the_tree_has_code_that_runs() -> None:
    page = (ROOT / "docs" / "choose.md").read_text(encoding="utf-8")
    tree, leaves = page.split("## Code for each leaf")
    anchors = set(re.findall(r"\]\(#([a-z-]+)\)", tree))
    runs = {
        re.sub(r"[^a-z]+", "-", part.splitlines()[0].strip().lower())
        for part in leaves.split("### ")[1:]
        if ">>> " in part
    }
    assert anchors == runs


def test_parameters_that_share_a_line_get_separate_entries() -> None:
    shared = (
        "Parameters\n----------\nlow, high : float\n    The ends.\n    Both.\nbins\n    As in x.\n"
    )
    each = "low : float\n    The ends.\n    Both.\nhigh : float\n    The ends.\n    Both.\n"
    assert apart(shared) == shared.replace("low, high : float\n    The ends.\n    Both.\n", each)
    assert apart(apart(shared)) == apart(shared)


def test_references_to_other_functions_become_their_text() -> None:
    text = (
        "Parameters\n----------\nbins\n    As in `smece`; at most 5.\nother\n    As in `smece`.\n"
    )
    bins = parameters_of("smece")["bins"].strip()
    assert described(text) == text.replace("As in `smece`; at most 5.", f"{bins}\n    At most 5.")
    assert "As in" not in bins


def test_hyphen_of_array_like_is_replaced_in_types_only() -> None:
    text = "An array-like.\n\nParameters\n----------\ny : array-like or None\n    An array-like.\n"
    dash = "\N{NON-BREAKING HYPHEN}"
    assert hyphenated(text) == text.replace("y : array-like", f"y : array{dash}like")
