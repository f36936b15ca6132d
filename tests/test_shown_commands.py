"""Every command that a page shows exists, and prints what the page shows.

A block of commands has an indent of four spaces. If a block of text follows, it is the output of
the last command, at 80 columns. A line `…` in the output stands for lines that are left out.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

import softcal as sc
from softcal import cli

ROOT = Path(__file__).parent.parent
# The changelog, which the build puts there, names options of earlier versions.
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").glob("*.md") if page.stem != "changelog"),
]
LEFT_OUT = "…"
# Every command of these pages runs, also those whose output is not shown.
COMPLETE = {"README", "quickstart", *(page.stem for page in PAGES if "walk_" in page.name)}
ITEMS = Path(sc.__file__).parent / "data" / "lidc_malignancy" / "items.csv"
APP: Any = typer.main.get_command(cli.app_of())


class Step(NamedTuple):
    """A command, the line it is on, and the output that the page shows for it."""

    command: str
    line: int
    shown: list[str] | None


def steps_of(text: str) -> list[Step]:
    """Return the commands in the indented blocks of a page."""
    found: list[Step] = []
    fence, shown = "", [""]
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if fence:
            if line == fence:
                fence = ""
            else:
                shown.append(line)
        elif line.startswith("```"):
            fence, shown = "```", []
            after = [before for before in lines[: number - 1] if before][-1:]
            if line == "```text" and found and after and _command(after[0]):
                found[-1] = found[-1]._replace(shown=shown)
        elif _command(line):
            if found and found[-1].command.endswith("\\"):
                joined = found[-1].command[:-1] + line.strip()
                found[-1] = found[-1]._replace(command=joined)
            else:
                found.append(Step(line.strip(), number, None))
    return [step for step in found if not step.command.startswith("#")]


def _command(line: str) -> bool:
    return line.startswith("    ") and bool(line.strip())


def words_of(command: str) -> list[str]:
    """Return the words of a softcal command, without a comment and what the shell does after it."""
    own = re.split(r"\s(?:>|\||;|&&)\s|;\s", command)[0]
    return shlex.split(own, comments=True)[1:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_shown_commands_and_their_options_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    wrong = []
    workflow = [
        Step(line, 0, None) for line in re.findall(r"^- run: (softcal .*)", text, re.MULTILINE)
    ]
    for step in steps_of(text) + workflow:
        for part in re.findall(r"(?:^|do |; |\| )(softcal [a-z].*)", step.command):
            words = ["stdin.csv" if word == "-" else word for word in words_of(part)]
            try:
                APP.commands[words[0]].make_context(words[0], words[1:])
            except (KeyError, typer.exceptions.TyperException, sc.SoftcalError) as error:
                wrong.append(f"{page.name}:{step.line}: {part}: {error!r}")
    for named in re.findall(r"`softcal ([a-z]+)([^`]*)`", text):
        known = APP.commands.get(named[0])
        options = {name for param in known.params for name in param.opts} if known else set()
        unknown = set(re.findall(r"(?<=\s)--?[a-z][a-z-]*", named[1])) - options - {"-h", "--help"}
        if known is None or unknown:
            wrong.append(f"{page.name}: `softcal {' '.join(named)}`: {unknown or 'no command'}")
    assert wrong == []


SHOWING = [
    page
    for page in PAGES
    if page.stem in COMPLETE
    or any(step.shown for step in steps_of(page.read_text(encoding="utf-8")))
]


@pytest.mark.parametrize("page", SHOWING, ids=lambda page: page.stem)
@pytest.mark.skipif(shutil.which("bash") is None, reason="the commands are for bash")
def test_commands_print_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    shutil.copy(ITEMS, tmp_path)
    steps = steps_of(page.read_text(encoding="utf-8"))
    last = max((k for k, step in enumerate(steps) if step.shown), default=-1)
    for step in steps if page.stem in COMPLETE else steps[: last + 1]:
        code, printed = run(step.command)
        if step.shown is None:
            assert code != 2 or page.stem not in COMPLETE, printed
        else:
            found = "\n".join(printed)
            assert re.fullmatch(as_pattern(step.shown), found), f"{page.name}:{step.line}\n{found}"


def as_pattern(shown: list[str]) -> str:
    """Return the pattern of an output, in which a line `…` stands for any number of lines."""
    return r"\n".join("[^\0]*" if line == LEFT_OUT else re.escape(line) for line in shown)


def run(command: str) -> tuple[int, list[str]]:
    """Run one line of a page in the current folder; return its exit code and what it prints.

    softcal runs in this process, which is faster; bash expands patterns, variables, and loops.
    """
    command = command.replace("src/softcal/", f"{ITEMS.parents[2]}/")
    if command.startswith("python examples/"):
        command = command.replace("python examples", f"'{sys.executable}' '{ROOT}/examples'", 1)
    elif not command.startswith(("softcal ", "for ", "cp ")):
        return 0, []
    command, _, target = command.partition(" > ")
    command, *asked = command.split("; echo ")
    done = subprocess.run(  # noqa: S603
        ["bash", "-c", 'softcal() { printf "%s\\0" softcal "$@" END; }; ' + command],  # noqa: S607
        capture_output=True, encoding="utf-8", check=True,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    code, printed = 0, io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        for call in done.stdout.split("END\0")[:-1]:
            code = cli.run(call.split("\0")[1:-1])
    if target:
        Path(target).write_text(printed.getvalue(), encoding="utf-8")
        return code, []
    lines = [line.rstrip() for line in printed.getvalue().rstrip().splitlines()]
    return code, [*lines, *(str(code) for _ in asked)]
