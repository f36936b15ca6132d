"""Versions and constraints of a release agree in all files."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

import softcal as sc
from check_release import faults_on_an_index

ROOT = Path(__file__).parents[1]
WHOLE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = WHOLE["project"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
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


def test_bibtex_of_readme_equals_the_citation_file() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    (paper,) = cited["references"]
    entries = README.partition("```bibtex\n")[2].partition("```")[0].split("\n\n")
    ours, theirs = (
        {key: re.sub("[{}]", "", value) for key, value in re.findall(r"(\w+) += \{(.+)\}", entry)}
        for entry in entries
    )
    preferred = cited["preferred-citation"]
    assert ours["title"] == preferred["title"] == cited["title"]
    assert ours["author"] == preferred["authors"][0]["name"]
    assert (ours["year"], ours["version"]) == (str(preferred["year"]), sc.__version__)
    assert ours["note"] + "." == cited["abstract"]
    (author,) = paper["authors"]
    assert theirs["title"] == paper["title"]
    assert theirs["author"] == f"{author['family-names']}, {author['given-names']}"
    assert theirs["year"] == str(paper["year"])
    assert f"arXiv:{theirs['eprint']}" == paper["identifiers"][0]["value"]


def test_text_on_an_index_has_no_relative_link_image_or_clone() -> None:
    """tools/check_release.py checks the same in the wheel that was built."""
    text = README
    for rule in WHOLE["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        assert re.search(rule["pattern"], text), f"nothing to replace: {rule['pattern']}"
        text = re.sub(rule["pattern"], rule["replacement"], text)
    assert faults_on_an_index(text) == []
    assert "pip install 'softcal[report]'" in text
    outside = re.sub(r"```.*?```", "", text, flags=re.DOTALL)  # code may use square brackets
    assert not re.search(r"\b(figure|screenshot|left|right|below it|make)\b", outside)


def test_faults_on_an_index_are_found() -> None:
    for fault in ("[a](docs/a.md)", "![a](a.svg)", '<img src="a.png">', "<!-- links -->", "clone"):
        assert faults_on_an_index(f"Text {fault} text") != []
    assert faults_on_an_index("[a](https://example.org)") == []


def test_every_action_is_pinned_by_commit() -> None:
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        used = re.findall(r"uses: (.+)", workflow.read_text(encoding="utf-8"))
        assert used
        for action in used:
            ours = action.startswith("./.github/workflows/") and (ROOT / action).is_file()
            assert ours or re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)
