"""`--data data.toml`, `--help-all`, and how Python and the command line state the same option."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from command_line import softcal_here

import softcal as sc
from softcal._display import ARGUMENTS, keyword, option_of
from softcal.cli import COMMANDS
from softcal.cli.describe import Described, as_options

if TYPE_CHECKING:
    from pathlib import Path

LINE = ("--label", "y", "--pred", "p", "--pred", "q", "--by", "g")
TEXT = 'source = "d.csv"\nlabel = "y"\npred = ["p", "q"]\nby = "g"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [f"{k % 2},{(k % 7) / 7:.3f},{(k % 5) / 5},{'ab'[k % 3 == 0]}" for k in range(100)]
    (tmp_path / "d.csv").write_text("\n".join(["y,p,q,g", *lines]))
    (tmp_path / "d.toml").write_text(TEXT)
    return tmp_path


def done(*arguments: object) -> Any:
    result = softcal_here(*arguments)
    assert result.returncode in (0, 1, 3), result.stderr
    return result


def refused(*arguments: object) -> str:
    result = softcal_here(*arguments)
    assert result.returncode == 2
    return result.stderr


@pytest.mark.parametrize(
    "line",
    ["score", "compare", "check --max-smece 0.1", "report -o r.html", "scan -o s.json",
     "plot -o f.svg", "decide --threshold 0.5", "audit --draws 200"],
)  # fmt: skip
def test_a_file_states_the_options_of_every_command(
    folder: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.chdir(folder.parent)  # paths are relative to the TOML file
    command, *options = line.split()
    options = [
        str(folder / word) if "." in word and word[-1].isalpha() else word for word in options
    ]
    own = done(command, "--data", folder / "d.toml", *options)
    without = LINE[:-2] if command == "decide" else LINE
    assert own.stdout == done(command, folder / "d.csv", *without, *options).stdout
    if command == "decide":
        assert f"`softcal {command}` does not use by in" in own.stderr


def test_recalibrate_apply_and_plan_take_it(folder: Path) -> None:
    (folder / "one.toml").write_text('source = ["d.csv"]\nlabel = "y"\npred = "p"\n')
    toml, saved = folder / "one.toml", folder / "cal.json"
    done("recalibrate", "--data", toml, "-o", saved)
    applied = done("apply", saved, "--data", toml, "-o", folder / "out.csv")
    assert "does not use label in" in applied.stderr
    assert "p_calibrated" in (folder / "out.csv").read_text()
    assert "Collect" in done("plan", "--data", toml, "--half-width", "0.1").stdout


def test_paths_of_votes_are_relative_too(folder: Path) -> None:
    (folder / "items.csv").write_text("id,p\n1,0.5\n2,0.25\n")
    (folder / "votes.csv").write_text("id,said\n1,yes\n1,no\n2,no\n")
    (folder / "v.toml").write_text(
        'source = "items.csv"\nvotes-file = "votes.csv"\nitem = "id"\nvote = "said"\n'
        'positive = "yes"\npred = "p"\n'
    )
    found = done("score", "--data", folder / "v.toml", "--format", "json")
    assert json.loads(found.stdout)["n"] == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('lable = "y"', "has the unknown key 'lable': its keys are options without --, and source. Did you mean 'label'?"),
        ("label = 5", "must be a text: got 5."),
        ('label = ["y", "g"]', "must be a text: got ['y', 'g']."),
        ("pred = [1]", "must be a text or a list of texts: got [1]."),
        ('drop-missing = "yes"', "must be true or false: got 'yes'."),
        ('label = "y"\npred = "p"\npred-scale = "percents"', "'percents' is not one of"),
        ('label = "y"\npred = "p"\nlabel-low = "y"', "the label is stated twice"),
        ('data-file = "x"', "has the unknown key 'data-file'"),
        ("label = ", "as TOML: "),
    ],
)  # fmt: skip
def test_wrong_keys_types_and_contradictions_are_refused(
    folder: Path, text: str, said: str
) -> None:
    (folder / "d.toml").write_text(f'source = "d.csv"\n{text}\n')
    assert said in refused("score", "--data", folder / "d.toml")


def test_the_line_may_not_contradict_the_file(folder: Path) -> None:
    toml = folder / "d.toml"
    assert "--label and" in refused("score", "--data", toml, "--label", "q")
    same = done("score", "--data", toml, "--label", "y")
    assert same.stdout == done("score", "--data", toml).stdout
    shutil.copy(folder / "d.csv", folder / "e.csv")
    other = done("score", folder / "e.csv", "--data", toml)
    assert "DATA is read instead of the source in" in other.stderr


def test_a_file_without_a_source_needs_data(folder: Path) -> None:
    (folder / "d.toml").write_text('label = "y"\npred = "p"\n')
    said = refused("score", "--data", folder / "d.toml")
    assert "name the files: pass DATA, or add source to" in said
    done("score", folder / "d.csv", "--data", folder / "d.toml")
    assert "Missing argument 'DATA'" in refused("score")


@pytest.mark.parametrize("name", ["d.csv", "d.toml"])
def test_its_files_are_not_overwritten(folder: Path, name: str) -> None:
    before = (folder / name).read_bytes()
    said = refused("score", "--data", folder / "d.toml", "--save", folder / name)
    assert "must not be a file that the command reads" in said
    assert (folder / name).read_bytes() == before


# Help


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_help_of_every_command_fits_a_screen(
    monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = softcal_here(*command, "--help").stdout.splitlines()
    assert 10 < len(lines) <= 40
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("command", COMMANDS)
def test_help_ends_with_an_example_and_names_help_all(command: str) -> None:
    text = softcal_here(command, "--help").stdout
    assert f"Example: softcal {command} " in text
    has_more = f"More options: softcal {command} --help-all" in text
    assert has_more == (command not in ("merge", "demo", "paper", "schema"))
    if has_more:
        everything = softcal_here(command, "--help-all").stdout
        assert len(everything) > len(text) - 200
        assert "--help-all" not in everything


def test_help_all_shows_every_option() -> None:
    everything = softcal_here("score", "--help-all").stdout
    for field in Described._fields:
        assert option_of(field) in everything


# Arguments of Python and options


@pytest.mark.parametrize("name", [*ARGUMENTS, "drop_missing", "positive"])
def test_every_argument_becomes_its_option(name: str) -> None:
    option = option_of(name.rpartition(":")[2])
    if name != "classes":
        assert (
            as_options(f"Pass {keyword(name, 'a b')}, or not.") == f"Pass {option} 'a b', or not."
        )
    assert as_options(f"Pass {keyword(name)}.") == f"Pass {option}."


def test_python_messages_name_arguments_that_exist() -> None:
    for text in ARGUMENTS.values():
        found = re.fullmatch(r"(?:y_\w+=)?(\w+)\(\.\.\., (\w+)=(?:\{\}|\[\.\.\.\])\)", text)
        assert found is not None
        assert found[2] in getattr(sc, found[1]).__dataclass_fields__


def test_a_message_states_the_argument_in_python_and_the_option_on_the_line(
    tmp_path: Path,
) -> None:
    path = tmp_path / "d.csv"
    path.write_text("y,p\n0.5,50\n1,60\n")
    with pytest.raises(sc.InputError, match=re.escape('y_prob=Column(..., scale="percent")')):
        sc.scan(path, y_true="y", y_prob="p")
    assert "pass --pred-scale percent;" in refused("score", path, "--label", "y", "--pred", "p")
    path.write_text("y;p\n0,5;0,5\n")
    with pytest.raises(sc.InputError, match=re.escape('Files(..., decimal=",")')):
        sc.scan(sc.Files(path, sep=";"), y_true="y", y_prob="p")
    said = refused("score", path, "--label", "y", "--pred", "p", "--sep", ";")
    assert "pass --decimal ','." in said
