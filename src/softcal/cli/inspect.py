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
from softcal.scanning.inspection import FEW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcal.scanning.inspection import Inspection, Profile, Suggestion

_READING = ("sep", "decimal", "encoding", "input_format", "sheet", "records")
_MOST_NAMES = 6
_LONGEST = 24  # characters of an example
_SHOWN = {"percent": "--pred", "logit": "--pred", "logprob": "--pred", "positive": "--label"}
_ORDER = ("--label", "--pred", "--label-columns", "--vote-columns", "--pred-columns", "--votes")


@describes(without=[each for each in Described._fields if each not in _READING])
def inspect(
    data: DataFiles,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write the first suggestion to this file, for --data.",
            metavar="TOML",
        ),
    ] = None,
    format_: Output = Format.TABLE,
    *,
    how: Described,
) -> None:  # fmt: skip
    """Show what the columns hold, which roles they could have, and the commands to type next.

    Roles and commands are suggestions. softcal never chooses a column itself.
    """
    found = inspections(data, how)
    commands = suggested(found)
    if output is not None:
        write_toml(output, found, commands)
    if format_ is Format.JSON:
        print_result(_card(found, commands))
        return
    for each in found:
        _show(each)
    _show_commands(commands)


def inspections(data: Sequence[str], how: Described) -> list[Inspection]:
    """Inspect files; those with the same columns together."""
    from softcal.scanning.inspection import inspected
    from softcal.scanning.source import connected, opened

    alike: dict[tuple[str, ...], list[str]] = {}
    for path in data:
        names = opened(how.files(path), connected()).names if len(data) > 1 else ()
        alike.setdefault(tuple(names), []).append(path)
    with terminal.working("Reading"):
        return [inspected(how.files(paths)) for paths in alike.values()]


def suggested(found: Sequence[Inspection]) -> list[tuple[list[str], Suggestion]]:
    """Return at most three suggestions, each with its files."""
    from softcal.scanning.inspection import joined

    pairs = [(a, b) for a in found for b in found if a is not b]
    every = [(a.files, each) for a, b in pairs for each in joined(a, b)]
    every += [(a.files, each) for a in found for each in a.suggestions]
    reading = [
        ("sep", None), ("decimal", "."), ("encoding", None), ("format", None), ("sheet", None),
        ("records", None),
    ]  # fmt: skip
    out = []
    for files, each in every[:3]:
        how = {
            "input_format" if name == "format" else name: getattr(files, name)
            for name, default in reading
            if getattr(files, name) != default
        }
        out.append((list(files.paths), each._replace(options=each.options | how)))
    return out


def command_of(paths: Sequence[str], each: Suggestion) -> list[str]:
    """Return a command, quoted for a shell, in parts between which a line may end."""
    parts = ["softcal", each.command, *(quoted(place_of(Path(path))) for path in paths)]
    for field, value in each.options.items():
        for one in value if isinstance(value, list) else [value]:
            parts += [option_of(field) + ("" if one is True else f" {quoted(str(one))}")]
    return parts


def quoted(word: str) -> str:
    """Quote a word for a shell; characters that do not print are escaped, as bash reads them."""
    if word.isprintable():
        return shlex.quote(word)
    plain = "".join(
        c if c.isprintable() and c not in "'\\" else f"\\U{ord(c):08x}" if ord(c) > 127
        else f"\\x{ord(c):02x}"
        for c in word
    )  # fmt: skip
    return f"$'{plain}'"


def commands_hint(data: Sequence[str], how: Described) -> str:
    """Return the suggested commands in one sentence, for the message on a missing option."""
    commands = suggested(inspections(data, how))
    lines = "; ".join(" ".join(command_of(paths, each)) for paths, each in commands)
    more = f"`{' '.join(['softcal inspect', *map(quoted, data)])}` shows what the columns hold."
    return f" Suggestions: {lines}. {more}" if lines else f" {more}"


def write_toml(
    output: Path, found: Sequence[Inspection], commands: Sequence[tuple[list[str], Suggestion]]
) -> None:
    """Write the first suggestion as options of a TOML file, and the others as comments."""
    lines = ["# Options about the data, for `softcal score --data` and other commands."]
    for k, (paths, each) in enumerate(commands):
        mark = "# " if k else ""
        lines += ["", f"# {'Another suggestion' if k else 'Suggested'} ({each.command}):"]
        lines += [f"#   {printable(reason)}" for reason in each.reasons]
        folder = output.resolve().parent
        source = [os.path.relpath(path, folder) for path in paths]
        for field, value in {"source": source, **each.options}.items():
            lines.append(f"{mark}{field.replace('_', '-')} = {_toml(value)}")
    if not commands:
        names = ", ".join(c.name for one in found for c in one.columns)
        lines += [f"# No suggestion. The columns are: {printable(names)}"]
    with written_whole(output) as beside:
        beside.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _toml(value: Any) -> str:
    """Write a value; a text of JSON is one of TOML, except for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _card(
    found: Sequence[Inspection], commands: Sequence[tuple[list[str], Suggestion]]
) -> dict[str, Any]:
    sources = [
        {
            "files": list(one.files.paths), "rows": one.rows, "columns_left_out": one.left_out,
            "columns": [
                {
                    "name": c.name, "kind": c.kind, "missing": c.missing, "different": c.different,
                    "low": c.low, "high": c.high, "examples": c.values[:3],
                    "roles": [{"option": option, "reason": why} for option, why in c.roles],
                }
                for c in one.columns
            ],
            "classes": [
                {"columns": each.spec, "option": each.option, "reason": each.reason}
                for each in one.families
            ],
        }
        for one in found
    ]  # fmt: skip
    suggestions = [
        {"command": " ".join(command_of(paths, each)), "reasons": each.reasons}
        for paths, each in commands
    ]
    return {"sources": sources, "suggestions": suggestions}


def _show(one: Inspection) -> None:
    out = terminal.table("column")
    for name, side in (("type", "left"), ("range", "left"), ("values", "right"),
                       ("examples", "left"), ("missing", "right")):  # fmt: skip
        out.add_column(name, justify=side, overflow="fold")
    plain = [c for c in one.columns if c.different > 1]
    for row in shortened([_row(each) for each in plain]):
        out.add_row(*(Text(printable(cell)) for cell in row))
    title = f"{one.place}: {counted(one.rows, 'row')}, "
    title += counted(len(one.columns) + one.left_out, "column")
    title += f" ({len(one.columns):,} of them inspected)" if one.left_out else ""
    terminal.print_titled(terminal.console(), title, out)
    rest = {
        "One value in all rows": [c for c in one.columns if c.different == 1],
        "No value": [c for c in one.columns if not c.filled],
        "Lists and objects": [c for c in one.columns if c.kind in ("list", "object")],
    }
    for title, several in rest.items():
        if several:
            _write(f"{title}: {_few([c.name for c in several])}.", "")
    _write("What the columns could be, and why:", "")
    for option, reason, names in _roles(one):
        _write(f"{_few(names)}: {reason}", f"  {option:<16}")
    sys.stdout.write("\n")


def _few(names: Sequence[str]) -> str:
    """List names, the first few of many."""
    more = f", and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _row(column: Profile) -> list[str]:
    """Return the cells of a column: name, type, range, different values, examples, missing."""
    number = column.low is not None and column.high is not None
    examples = [_example(x, column) for x in column.values[:3]]
    about = FEW < column.different < 0.98 * column.filled  # the sketch is off by about 2%
    different = f"~{float(f'{column.different:.2g}'):,.0f}" if about else f"{column.different:,}"
    return [
        column.name[:200], column.kind, f"{_number(column.low)} to {_number(column.high)}" if number else "",
        different if column.values else "", ", ".join(examples),
        f"{column.missing:,}" if column.missing else "",
    ]  # fmt: skip


def _example(text: str, column: Profile) -> str:
    if column.low is not None and column.kind == "number" and not column.percent:
        with suppress(ValueError):  # as for a decimal comma
            return _number(float(text))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _number(number: float) -> str:
    return f"{number:.0f}" if number == int(number) and abs(number) < 1e12 else f"{number:.4g}"


def _roles(one: Inspection) -> list[tuple[str, str, list[str]]]:
    """Return options with reasons and the columns that each could name."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for family in one.families:
        grouped.setdefault((option_of(family.option), family.reason), []).append(family.spec)
    for column in one.columns:
        for option, reason in column.roles:
            shown = _SHOWN.get(option, option_of(option))
            grouped.setdefault((shown, reason), []).append(column.name)
    return sorted(
        ((option, reason, names) for (option, reason), names in grouped.items()),
        key=lambda each: _ORDER.index(each[0]) if each[0] in _ORDER else len(_ORDER),
    )


def _show_commands(commands: Sequence[tuple[list[str], Suggestion]]) -> None:
    if not commands:
        _write("No command to suggest: one needs a column of labels and one of predictions.", "")
    for k, (paths, each) in enumerate(commands):
        _write("Or:" if k else "To try next, if these columns have these roles:", "")
        line = "  "
        for word in command_of(paths, each):
            if line.strip() and len(line) + len(word) > 77:
                sys.stdout.write(line + "\\\n")
                line = "      "
            line += word + " "
        sys.stdout.write(line.rstrip() + "\n")
        for reason in each.reasons:
            _write(reason, "    # ")
    sys.stdout.write("\n")


def _write(text: str, start: str) -> None:
    """Write a paragraph of at most 80 columns; a long name is folded."""
    inner = start if start.endswith("# ") else " " * len(start)
    sys.stdout.write(
        fill(printable(text), 80, initial_indent=start, subsequent_indent=inner) + "\n"
    )
