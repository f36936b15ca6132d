"""Shell completion: the offers of softcal, and a real bash that uses them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import softcal as sc
from softcal import scan
from softcal.datasets import lidc_malignancy

DATA = Path(sc.__file__).parent / "data" / "lidc_malignancy" / "items.csv"
COLUMNS = list(lidc_malignancy())


def ask(**variables: str) -> str:
    """Run softcal as a shell does, with the request in environment variables."""
    result = subprocess.run(
        [sys.executable, "-m", "softcal"],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def offered(*words: str) -> list[str]:
    """Return the completions of the last word, as bash requests them."""
    line = " ".join(["softcal", *words])
    shown = ask(COMP_WORDS=line, COMP_CWORD=str(len(words)), _SOFTCAL_COMPLETE="complete_bash")
    return shown.split()


def test_commands_options_and_choices_are_completed() -> None:
    assert offered("re") == ["report", "recalibrate"]
    assert offered("score", "--label-") == [
        "--label-low", "--label-high", "--label-columns", "--label-scale"
    ]  # fmt: skip
    assert offered("recalibrate", str(DATA), "--method", "p") == ["platt"]


@pytest.mark.parametrize("option", ["--label", "--pred", "--by", "--weight", "--votes", "--group"])
def test_columns_of_the_file_are_completed(option: str) -> None:
    assert offered("score", str(DATA), "--bins", "5", option, "") == COLUMNS


def test_columns_of_a_folder_and_of_the_second_argument_are_completed() -> None:
    assert offered("report", str(DATA.parent), "--label", "soft_m") == ["soft_malignant"]
    assert offered("apply", "cal.json", str(DATA), "--pred", "soft_m") == ["soft_malignant"]


def test_columns_of_saved_tables_are_completed(tmp_path: Path) -> None:
    saved = tmp_path / "saved.softcal"
    columns: dict[str, Any] = {
        "y_true": "soft_malignant",
        "y_prob": ["prob_rf_all", "prob_lr_geometry"],
    }
    scan(DATA, **columns, by="fold").save(saved)
    assert offered("score", str(saved), "--pred", "prob_") == columns["y_prob"]
    assert offered("score", str(saved), "--by", "f") == ["fold"]
    scan(DATA, **columns, groups="patient").save(saved)
    assert offered("report", str(saved), "--group", "p") == [*columns["y_prob"], "patient"]


def test_unreadable_files_offer_no_completion(tmp_path: Path) -> None:
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"not Parquet")
    for data in ("absent.csv", str(broken), str(tmp_path / "empty"), "*.csv"):
        assert offered("score", data, "--label", "") == []
    assert offered("score", "--label", "") == []


def test_names_that_need_quotes_are_not_completed(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("label,mean label,it's\n0.5,0.5,0.5\n")
    assert offered("score", str(data), "--label", "") == ["label"]


@pytest.mark.parametrize(
    ("shell", "registers"),
    [
        ("bash", "complete -o default -F _softcal_completion softcal"),
        ("zsh", "compdef _softcal_completion softcal"),
        ("fish", "complete --command softcal"),
        ("powershell", "Register-ArgumentCompleter -Native -CommandName softcal"),
    ],
)
def test_completion_script_for_every_shell(shell: str, registers: str) -> None:
    assert registers in ask(_SOFTCAL_COMPLETE=f"source_{shell}")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_command_column_and_file(tmp_path: Path) -> None:
    """Type abbreviated words, each completed with the Tab key, into bash on a pseudo-terminal."""
    pty = pytest.importorskip("pty", reason="needs a pseudo-terminal")
    (tmp_path / "items.csv").write_text(DATA.read_text(encoding="utf-8"), encoding="utf-8")
    command = tmp_path / "softcal"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m softcal "$@"\n')
    command.chmod(0o755)
    typed = (
        'eval "$(_SOFTCAL_COMPLETE=source_bash softcal)"\n'
        "softcal sco\tite\t--label soft_m\t--pred prob_rf\t--format js\t > out.json; exit\n"
    )
    leader, follower = pty.openpty()
    with subprocess.Popen(
        ["bash", "--norc", "--noprofile"],  # noqa: S607
        stdin=follower,
        stdout=follower,
        stderr=follower,
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "TERM": "dumb"},
        start_new_session=True,
    ) as shell:
        os.close(follower)
        os.write(leader, typed.encode())
        shown = _everything(leader)
    os.close(leader)
    assert shell.returncode == 0, shown
    assert '"label": "soft_malignant"' in (tmp_path / "out.json").read_text(), shown


def _everything(terminal: int) -> str:
    """Read until the shell exits, which Linux reports as an error of the terminal."""
    found = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:
            part = b""
        if not part:
            return found.decode(errors="replace")
        found += part
