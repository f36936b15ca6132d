"""Write docs/command_line.md, the reference of all commands, from the commands themselves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperArgument

from softcal.cli import app_of
from softcal.cli.schema import schema_names

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parent.parent / "docs" / "command_line.md"

GUIDES = {
    "inspect": {"Files, frames, and engines": "data_sources.md"},
    "score": {"Metrics": "metrics.md", "Intervals and tests": "uncertainty.md"},
    "report": {"Report": "report.md"},
    "plot": {"Reliability diagram": "diagram.md", "Gallery": "gallery.md"},
    "compare": {"Model comparison": "comparison.md"},
    "check": {"Alarms and gates": "watch.md"},
    "decide": {"Decisions": "decisions.md"},
    "route": {"Accept or ask": "route.md"},
    "audit": {"Segments": "segments.md"},
    "recalibrate": {"Calibrators": "recalibration.md"},
    "apply": {"Calibrators": "recalibration.md"},
    "plan": {"Study planning": "planning.md"},
    "watch": {"Alarms and gates": "watch.md"},
    "scan": {"Daily tables and streams": "monitoring.md"},
    "merge": {"Daily tables and streams": "monitoring.md"},
    "sql": {"Alarms and gates": "watch.md"},
    "demo": {"First steps": "quickstart.md"},
    "schema": {"Pipelines": "pipelines.md"},
    "paper": {"Reproduction of the paper": "paper.md"},
}
"""The pages of the guide on each command."""

SAVED = {"scan": "tables", "merge": "tables", "score": "tables", "recalibrate": "calibrator"}
"""The schema of the file that a command saves."""

# An option outside of code.
_OPTION = re.compile(r"(?<![`\w-])--[a-z][a-z-]*(?![^`]*`[^`]*$)")

_TOP = """\
# Command line

This page lists every command with all its options, as `softcal COMMAND --help-all` does.
`softcal COMMAND --help` lists the most frequent ones. [First steps](quickstart.md)
teaches the commands on real data.

- A command starts with `softcal` or with `python -m softcal`.
- DATA are files, folders, patterns in quotes such as `'2026-05-*.csv'`, or `-` for standard input.
- Results are on standard output. Notes and errors are on standard error.
- `softcal --install-completion` installs completion of options and column names for your shell.

| exit code | meaning |
|---|---|
| 0 | success |
| 1, 3 | an answer of `check`, `route`, or `watch`, as stated there |
| 2 | an error; no output file is incomplete |
| 128 + number | stopped by a signal, such as 130 after Ctrl+C |
"""

_SHARED = """
## Options about the data { #options-about-the-data }

These options have the same meaning in all commands. Each command above names those that it
takes. A TOML file can state them instead (`--data`): its keys are
options without `--`, and `source` names the files.
"""


def page() -> str:
    """Return the text of the page."""
    group: Any = typer.main.get_command(app_of())
    panels = dict.fromkeys(command.rich_help_panel for command in group.commands.values())
    shared = _shared_panels(group)
    parts = [_TOP]
    for panel in panels:
        parts.append(f"\n## {panel}\n")
        for name, command in group.commands.items():
            if command.rich_help_panel == panel:
                parts.append(_command(name, command, shared))
    parts.append(_SHARED)
    for panel, options in shared.items():
        parts.append(f"\n### {panel} {{ #{_anchor(panel)} }}\n\n{_table(options.values())}")
    return "".join(parts)


def _shared_panels(group: Any) -> dict[str, dict[str, Any]]:
    """Return the options of each panel that only `--help-all` shows, by name."""
    found: dict[str, dict[str, Any]] = {}
    for command in group.commands.values():
        for param in command.params:
            if param.rich_help_panel is not None:
                found.setdefault(param.rich_help_panel, {}).setdefault(param.name, param)
    return found


def _command(name: str, command: Any, shared: dict[str, dict[str, Any]]) -> str:
    """Return the section of one command."""
    purpose, *more = command.help.split("\n\n")
    usage = " ".join(command.collect_usage_pieces(typer.Context(command)))
    example = command.epilog.partition("\n\n")[0].removeprefix("Example: ")
    arguments = [param for param in command.params if isinstance(param, TyperArgument)]
    options = [
        param
        for param in command.params
        if param not in arguments and param.rich_help_panel is None and param.name != "help_all"
    ]
    parts = [
        f"\n### softcal {name} {{ #{name} }}\n\n{purpose}\n",
        f"```text\nsoftcal {name} {usage}\n```\n",
        *(f"{_marked(text)}\n" for text in more),
        f"Example:\n\n```text\n{example}\n```\n",
    ]
    if arguments:
        parts.append(
            "".join(f"- `{each.metavar}`: {_marked(str(each.help))}\n" for each in arguments)
        )
    if options:
        parts.append(_table(options))
    parts.append("".join([*_panels(name, command, shared), *_schemas(name, command)]))
    guides = ", ".join(f"[{title}]({file})" for title, file in GUIDES[name].items())
    return "\n".join(parts) + f"- Guide: {guides}\n"


def _panels(name: str, command: Any, shared: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Return one line per panel of shared options, with the names of those that a command has."""
    for panel, known in shared.items():
        own = [param for param in command.params if param.rich_help_panel == panel]
        for param in own:
            if _row(param) != _row(known[param.name]):
                message = f"softcal {name} has another meaning of --{param.name}"
                raise ValueError(message)
        if own:
            names = ", ".join(f"`{max(param.opts, key=len)}`" for param in own)
            yield f"- [{panel}](#{_anchor(panel)}): {names}\n"


def _schemas(name: str, command: Any) -> Iterator[str]:
    """Return one line per schema of what a command prints or saves."""
    if name in schema_names() and any(param.name == "format_" for param in command.params):
        yield f"- JSON Schema of `--format json`: `softcal schema {name}`\n"
    if name in SAVED:
        yield f"- JSON Schema of the saved file: `softcal schema {SAVED[name]}`\n"


def _table(options: Any) -> str:
    return "| option | value | meaning |\n|---|---|---|\n" + "".join(map(_row, options))


def _row(param: Any) -> str:
    """Return the row of one option."""
    names = ", ".join(f"`{name}`" for name in sorted((*param.opts, *param.secondary_opts), key=len))
    value = f"`{param.metavar}`".replace("|", r"\|") if param.metavar else ""
    default = getattr(param.default, "value", param.default)
    text = _marked(param.help)
    if param.required:
        text += " Required."
    elif default is not False and default not in (None, [], ()):
        text += f" Default: <code>{default}</code>."
    return f"| {names} | {value} | {text} |\n"


def _marked(text: str) -> str:
    """Return a text of the help with its options as code."""
    return _OPTION.sub(r"`\g<0>`", text.replace("*", r"\*"))


def _anchor(panel: str) -> str:
    return panel.lower().replace(" ", "-")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
