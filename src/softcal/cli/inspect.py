"""`softcal inspect`: what the columns of files hold, which roles they could have, what to type."""

from __future__ import annotations

import json
import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from softcal import terminal
from softcal._display import counted, printable, shortened
from softcal._io import place_of, written_whole
from softcal.cli.describe import Described, describes, option_of
from softcal.cli.options import DataFiles, Format, Output, print_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcal.scanning.inspection import Inspection, Profile, Suggestion

_READING = ("sep", "decimal", "encoding", "input_format", "sheet", "records")
_SHOWN = {"percent": "pred", "logit": "pred", "logprob": "pred", "positive": "label"}
_ORDER = ("--label", "--pred", "--label-columns", "--vote-columns", "--pred-columns", "--votes")
_MOST_NAMES, _LONGEST = 6, 24


@describes(without=[each for each in Described._fields if each not in _READING])
def inspect(
    data: DataFiles,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the first suggestion here.", metavar="TOML"),
    ] = None,
    format_: Output = Format.TABLE,
    *,
    how: Described,
) -> None:
    """Show what columns hold, and the commands to type next.

    Roles and commands are suggestions: check them. `--output data.toml` writes the first one as a
    file for `softcal score --data data.toml`.

    Example: softcal inspect data.csv
    """
    from softcal.scanning.inspection import inspected

    with terminal.working("Reading"):
        found = inspected(how.files(data))
    commands = [command_of(data, found, each) for each in found.suggestions]
    if output is not None:
        write_toml(output, data, found)
    if format_ is Format.JSON:
        columns = [
            c._asdict() | {"examples": c.examples[:3], "roles": {_option(k): v for k, v in c.roles}}
            for c in found.columns
        ]
        classes = {spec: option_of(option) for spec, (option, _) in found.classes.items()}
        next_ = [
            {"command": " ".join(command), "reasons": each.reasons}
            for command, each in zip(commands, found.suggestions, strict=True)
        ]
        card = {"rows": found.rows, "columns": columns, "classes": classes, "suggestions": next_}
        print_result(card)
        return
    _show(found)
    _show_commands(commands, found.suggestions)


def command_of(data: Sequence[str], found: Inspection, each: Suggestion) -> list[str]:
    """Return a command, quoted for a shell, in parts between which a line may end."""
    parts = ["softcal", each.command, *(quoted(place_of(Path(path))) for path in data)]
    for field, value in (each.options | _reading(found)).items():
        for one in value if isinstance(value, list) else [value]:
            parts += [option_of(field) + ("" if one is True else f" {quoted(str(one))}")]
    return parts


def _reading(found: Inspection) -> dict[str, Any]:
    """Return the options that say how to read the files."""
    files = {field: getattr(found.files, field.removeprefix("input_")) for field in _READING}
    given = {field: value for field, value in files.items() if value not in (None, ".")}
    return given | ({"sep": "tab"} if given.get("sep") == "\t" else {})


def quoted(word: str) -> str:
    """Quote a word for a shell; characters that do not print are escaped, as bash reads them."""
    if word.isprintable():
        return shlex.quote(word)
    escaped = (c if c.isprintable() and c not in "'\\" else f"\\U{ord(c):08x}" for c in word)
    return f"$'{''.join(escaped)}'"


def suggested_lines(data: Sequence[str], how: Described) -> list[str]:
    """Return the suggested commands, one per line, for the message on missing options."""
    from softcal.scanning.inspection import inspected

    with terminal.working("Reading"):
        found = inspected(how.files(data))
    lines = [" ".join(command_of(data, found, each)) for each in found.suggestions]
    look = f"softcal inspect {' '.join(quoted(place_of(Path(path))) for path in data)}"
    return ["To see what the columns hold and why these commands fit:", f"  {look}",
            *(["To try next:"] if lines else []), *(f"  {line}" for line in lines)]  # fmt: skip


def write_toml(output: Path, data: Sequence[str], found: Inspection) -> None:
    """Write the first suggestion as options of a TOML file, and the others as comments."""
    lines = ["# Options about the data. Use: softcal score --data FILE. Check each of them."]
    source = [os.path.relpath(path, output.resolve().parent) for path in data]
    for k, each in enumerate(found.suggestions):
        lines += [
            "",
            f"# {'Another suggestion' if k else 'Suggested'}, for softcal {each.command}:",
        ]
        lines += [f"#   {printable(reason)}" for reason in each.reasons]
        for field, value in ({"source": source} | each.options | _reading(found)).items():
            text = json.dumps(value, ensure_ascii=False)
            text = "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text)
            lines.append(f"{'# ' if k else ''}{field.replace('_', '-')} = {text}")
    with written_whole(output) as beside:
        beside.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _show(found: Inspection) -> None:
    out = terminal.table("column")
    for name, side in zip(("type", "range", "values", "examples", "missing"), "llrlr", strict=True):
        out.add_column(name, justify="left" if side == "l" else "right", overflow="fold")
    for row in shortened([_cells(c) for c in found.columns if c.different > 1]):
        out.add_row(*(Text(printable(cell)) for cell in row))
    title = f"{found.place}: {counted(found.rows, 'row')}, {counted(len(found.names), 'column')}"
    how = " ".join(f"{option_of(k)} {quoted(v)}" for k, v in _reading(found).items())
    terminal.print_titled(terminal.console(), title + (f", read with {how}" if how else ""), out)
    rest = {
        "One value in all rows": [c.name for c in found.columns if c.different == 1],
        "No value": [c.name for c in found.columns if not c.filled],
        "Lists and objects": [c.name for c in found.columns if c.kind in ("list", "object")],
        "Not inspected": found.names[len(found.columns) :],
    }
    for what, names in rest.items():
        _write(f"{what}: {_few(names)}.", "") if names else None
    _write("What the columns could be, and why:", "")
    for (option, reason), names in _roles(found).items():
        _write(f"{_few(names)}: {reason}", f"  {option:<15} ")
    sys.stdout.write("\n")


def _cells(column: Profile) -> list[str]:
    """Return the name, type, range, number of values, examples, and number of missing values."""
    span = ""
    if column.low is not None and column.high is not None:
        span = f"{_short(str(column.low))} to {_short(str(column.high))}"
    about = 20 < column.different < 0.98 * column.filled
    different = f"~{float(f'{column.different:.2g}'):,.0f}" if about else f"{column.different:,}"
    examples = ", ".join(_short(each) for each in column.examples[:3])
    missing = f"{column.missing:,}" if column.missing else ""
    return [column.name[:200], column.kind, span, different, examples, missing]


def _short(text: str) -> str:
    """Return a number to four digits, and the start of a long text."""
    with suppress(ValueError):
        number = float(text)
        return text.removesuffix(".0") if number == round(number, 3) else f"{number:.4g}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _option(role: str) -> str:
    """Return the option of a role; a scale is one of predictions."""
    return option_of(_SHOWN.get(role, role))


def _few(names: Sequence[str]) -> str:
    more = f", and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _roles(found: Inspection) -> dict[tuple[str, str], list[str]]:
    """Return the columns that each option could name, for each reason."""
    from softcal.scanning.inspection import classes_text

    grouped: dict[tuple[str, str], list[str]] = {}
    for spec, (option, names) in found.classes.items():
        grouped.setdefault((_option(option), classes_text(option, names)), []).append(spec)
    inside = {name for _, names in found.classes.values() for name in names}
    for column in found.columns:
        for option, reason in column.roles:
            if column.name not in inside or option in ("label", "pred"):
                grouped.setdefault((_option(option), reason), []).append(column.name)
    return dict(sorted(grouped.items(), key=lambda each: (*_ORDER, each[0][0]).index(each[0][0])))


def _show_commands(commands: Sequence[Sequence[str]], suggestions: Sequence[Suggestion]) -> None:
    if not commands:
        _write("No command to suggest: no two columns look like a label and a prediction.", "")
    for k, (parts, each) in enumerate(zip(commands, suggestions, strict=True)):
        _write("Or:" if k else "To try next, if the columns have these roles:", "")
        line = " "
        for part in parts:
            if line.strip() and len(line) + len(part) > 77:
                sys.stdout.write(line + " \\\n")
                line = "     "
            line += f" {part}"
        sys.stdout.write(line + "\n")
        for reason in each.reasons:
            _write(reason, "    # ")


def _write(text: str, start: str) -> None:
    """Write a paragraph of at most 80 columns; a long name is folded."""
    again = start if start.endswith("# ") else " " * len(start)
    text = fill(printable(text), 80, initial_indent=start, subsequent_indent=again)
    sys.stdout.write(text + "\n")
