"""Every command refuses two values for an option that takes one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import pytest
import typer
from typer.core import TyperGroup, TyperOption
from typer.main import get_command

from softcal import cli
from softcal.cli.options import PlainCommand
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from pathlib import Path


def _options() -> list[tuple[str, TyperOption]]:
    group = get_command(cli.app_of())
    assert isinstance(group, TyperGroup)
    return [
        (name, param)
        for name, command in group.commands.items()
        for param in command.params
        if isinstance(param, TyperOption)
    ]


SINGLE = [
    (name, spelled)
    for name, option in _options()
    if not option.multiple and not option.is_flag
    for spelled in option.opts
]
REPEATABLE = [(name, option.opts[0]) for name, option in _options() if option.multiple]

# Two valid values of each option, so that nothing else is wrong with the line.
VALUES = {
    "--format": ("table", "json"),
    "--kind": ("gaps", "bins"),
    "--size": ("page", "talk"),
    "--method": ("platt", "beta"),
    "--level": ("0.9", "0.95"),
    "--undecided": ("pass", "fail"),
    "--dialect": ("duckdb", "spark"),
    "--input-format": ("csv", "tsv"),
    "--aggregate": ("shares", "dawid-skene"),
    **dict.fromkeys(("--pred-scale", "--label-scale"), ("percent", "logit")),
    "--every": ("day", "week"),
    "--plot": ("one.svg", "two.svg"),
    **dict.fromkeys(("--bins", "--folds", "--votes-per-item", "--n-raters"), ("5", "6")),
    **dict.fromkeys(("--depth", "--min-rows", "--draws", "--seed"), ("5", "6")),
}
NUMBERS = (
    "--smece", "--label-spread", "--half-width", "--budget", "--difference", "--correlation",
    "--power", "--item-cost", "--vote-cost", "--max-smece", "--max-gap", "--tolerance",
    "--max-weight", "--rater-spread", "--max-disagreement",
)  # fmt: skip
VALUES |= dict.fromkeys(NUMBERS, ("0.1", "0.2"))
ARGUMENTS = {
    **{
        name: ["data.csv"]
        for name in (
            "inspect",
            "scan",
            "score",
            "compare",
            "report",
            "plot",
            "merge",
            "check",
            "watch",
            "decide",
            "route",
            "audit",
            "recalibrate",
        )
    },
    "sql": ["table"],
    "apply": ["cal.json", "data.csv"],
}
REQUIRED = {
    "plot": ["--output", "out.pdf"],
    "scan": ["--output", "out.softcal"],
    "recalibrate": ["--output", "out.json"],
    "apply": ["--output", "out.csv"],
}


def _line(command: str, option: str, first: str, second: str) -> list[str]:
    needed = [] if option in {"-o", "--output"} else REQUIRED.get(command, [])
    return [command, *ARGUMENTS.get(command, []), *needed, option, first, option, second]


@pytest.mark.parametrize(("command", "option"), SINGLE)
def test_an_option_given_twice_is_refused_with_both_values(
    capsys: pytest.CaptureFixture[str], command: str, option: str
) -> None:
    first, second = VALUES.get(option, ("one", "two"))
    assert cli.run(_line(command, option, first, second)) == 2
    said = capsys.readouterr().err
    name = {"-o": "--output"}.get(option, option)
    assert said == (
        f"softcal: error: {name} takes one value and was given 2: {first!r}, {second!r}. "
        "Pass it once.\n"
    )


def test_every_option_of_every_command_is_covered() -> None:
    assert {name for name, _ in SINGLE} == {
        "scan", "score", "merge", "compare", "report", "plot", "plan", "check", "watch", "decide",
        "route", "audit", "recalibrate", "apply", "sql", "demo", "paper", "inspect",
    }  # fmt: skip
    assert ("score", "--label") in SINGLE
    assert ("score", "--pred") in REPEATABLE


@pytest.mark.parametrize(("command", "option"), REPEATABLE)
def test_an_option_for_several_values_may_be_repeated(
    capsys: pytest.CaptureFixture[str], command: str, option: str
) -> None:
    cli.run(_line(command, option, "one", "two"))
    assert "takes one value" not in capsys.readouterr().err


def test_every_spelling_of_an_option_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["demo", "-oa", "--output=b", "-o", "c"]) == 2
    assert "--output takes one value and was given 3: 'a', 'b', 'c'." in capsys.readouterr().err


def test_the_same_value_twice_is_refused_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["paper", "--format", "json", "--format", "json"]) == 2
    assert "was given 2: 'json', 'json'" in capsys.readouterr().err


def test_arguments_after_two_dashes_are_not_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "data.csv"
    path.write_text("y,p\n0.5,0.5\n")
    assert cli.run(["score", "--label", "y", "--pred", "p", "--", str(path), "--label", "z"]) == 2
    assert "takes one value" not in capsys.readouterr().err


def test_help_is_shown_for_a_line_with_an_option_given_twice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.run(["score", "--label", "a", "--label", "b", "--help"]) == 0
    assert "Usage: softcal score" in capsys.readouterr().out


def test_a_switch_may_be_repeated_but_not_contradicted() -> None:
    app = typer.Typer(add_completion=False)

    @app.command(cls=PlainCommand)
    def paint(*, color: Annotated[bool, typer.Option("--color/--no-color")] = True) -> None:
        typer.echo(color)

    app(["--color", "--color"], standalone_mode=False)
    with pytest.raises(InputError, match=r"^--color takes one value and was given 2: True, False"):
        app(["--color", "--no-color"], standalone_mode=False)
