"""What the command line shows can be read by whoever has never seen it, in 80 columns."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import softcal as sc
from softcal import cli

DATA = Path(sc.__file__).parent / "data" / "lidc_malignancy" / "items.csv"
FOREST = ("--label", "soft_malignant", "--pred", "prob_rf_all")
COMMANDS = ["score", "merge", "compare", "report", "plan", "recalibrate", "apply", "demo", "paper"]


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def shown(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert cli.run([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert cli.run([str(argument) for argument in arguments]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_help_has_no_words_of_programmers(
    capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert not re.search(r"[<>{}]", shown(capsys, *command, "--help"))


def test_help_breaks_no_word(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "recalibrate", "--help")
    for method in ("temperature", "histogram", "isotonic", "dirichlet"):
        assert method in text


def test_each_slice_is_one_line_with_its_number_of_rows(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, "score", DATA, *FOREST, "--by", "n_readers").splitlines()
    start = lines.index("prob_rf_all, by n_readers")
    first = [line.split()[:3] for line in lines[start + 5 : start + 8]]
    assert first == [["all", "1,377", "0.0952"], ["3", "481", "0.0704"], ["4", "896", "0.1097"]]


def test_a_long_name_gives_way_and_no_number_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "score", DATA, *FOREST, "--by", "patient")
    assert "0.081-0.106" in text
    assert "…" not in text
