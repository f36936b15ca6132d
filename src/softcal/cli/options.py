"""Options shared by several commands, and functions that print results."""

from __future__ import annotations

import json
import shlex
import sys
from contextvars import ContextVar
from copy import copy
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from softcal._display import printable
from softcal._io import spooled
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from softcal.cards.card import Card


def refuse_repeated(command: TyperCommand, ctx: Any, line: list[str]) -> None:
    """Raise if the line gives two values to an option that takes one.

    Typer silently uses the last value. The line is therefore parsed again with all options
    repeatable, which keeps all values.
    """
    keeping_all = copy(command)
    keeping_all.params = [_repeatable(param) for param in command.params]
    given, _, _ = keeping_all.make_parser(ctx).parse_args(list(line))
    for param in command.params:
        if isinstance(param, TyperOption) and not param.multiple:
            _refuse_several(param, given.get(param.name, []))


def _repeatable(param: Any) -> Any:
    changed = copy(param)
    changed.multiple = True
    return changed


def _refuse_several(option: TyperOption, values: list[Any]) -> None:
    """Raise if there are several values; a switch may be repeated, but not contradicted."""
    if len(values) > 1 and not (option.is_flag and len(set(values)) == 1):
        message = (
            f"{max(option.opts, key=len)} takes one value and was given {len(values)}: "
            f"{', '.join(map(repr, values))}. Pass it once."
        )
        raise InputError(message)


class PlainCommand(TyperCommand):
    """A command whose help shows no types beside arguments or switches, and no braces in its usage.

    `--help-all` also shows its hidden options. It refuses a line that gives two values to an option
    that takes one, or whose output is a file that the command reads.
    """

    def __init__(self, name: str | None, **settings: Any) -> None:
        super().__init__(name, **settings)
        if any(param.name == "help_all" for param in self.params):
            self.epilog = f"{self.epilog or ''}\n\nMore options: softcal {name} --help-all".strip()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse a line; `--help` comes first, so that help is shown for an invalid line too."""
        line = list(args)  # typer empties `args`
        if any(word == "--data" or word.startswith("--data=") for word in line):
            for param in self.params:  # the TOML file may name the files
                param.required = param.required and param.name != "data"
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:  # not when the shell completes an unfinished line
            refuse_repeated(self, ctx, line)
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command, unless an output is one of the files that it reads."""
        toml = ctx.params.get("data_file")
        if toml is not None:
            from softcal.cli.describe import add_toml

            add_toml(self, ctx)
        given = [(param, ctx.params.get(param.name)) for param in self.params]
        read = [
            each
            for param, value in given
            if isinstance(param, TyperArgument) or param.name == "votes_file"
            for each in (value if isinstance(value, list) else [value])
            if each is not None
        ] + [toml] * (toml is not None)
        for param, value in given:
            if isinstance(param, TyperOption) and isinstance(value, Path) and value.is_file():
                from softcal.cli.tables import refuse_overwriting

                refuse_overwriting(value, read)
        return super().invoke(ctx)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters as help shows them; the shell completes hidden ones too."""
        found = [_plain(param) for param in super().get_params(ctx)]
        for param in found if ctx.resilient_parsing else ():
            param.hidden = False
        return found

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Write DATA... where typer writes {DATA}...."""
        pieces = super().collect_usage_pieces(ctx)
        return [piece.replace("{", "").replace("}", "") for piece in pieces]


def show_all(ctx: typer.Context, value: bool) -> None:  # noqa: FBT001 - typer passes it
    """Show the help with the options that `--help` leaves out."""
    if not value or ctx.resilient_parsing:
        return
    command: Any = ctx.command
    for param in command.params:
        param.hidden = param.name == "help_all"
    command.epilog = command.epilog.partition("\n\n")[0]
    ctx.get_help()  # prints it
    ctx.exit()


def help_of(command: Any) -> tuple[str, str | None]:
    """Return the help of a command, and its example, from its docstring.

    Each paragraph is one line, which the terminal wraps.
    """
    texts = [" ".join(text.split()) for text in command.__doc__.split("\n\n")]
    example = texts.pop() if texts[-1].startswith("Example:") else None
    return "\n\n".join(texts), example


class PlainGroup(TyperGroup):
    """The same for `softcal` without a command."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters as help shows them."""
        return [_plain(param) for param in super().get_params(ctx)]


def _plain(param: Any) -> Any:
    """Remove the type shown beside a name; typer has no setting for it."""
    if isinstance(param, TyperArgument):
        param.display_type_rich = _nothing  # type: ignore[method-assign]
    elif param.name == "show_completion":  # which --install-completion makes needless
        param.hidden = True
    elif param.is_flag:
        param.metavar = ""
    return param


def _nothing(ctx: Any) -> None:
    """Show no type."""


def asks(
    text: str,
    metavar: str = "",
    *names: str,
    rare: bool = False,
    panel: str | None = None,
    callback: Callable[..., Any] | None = None,
) -> Any:
    """Return an option; only `--help-all` lists a rare one. The shell completes names of columns.

    The metavar COL means the name of a column.
    """
    return typer.Option(
        *names, help=text, metavar=metavar, hidden=rare, rich_help_panel=panel, callback=callback,
        autocompletion=_offered if metavar == "COL" else None,
    )  # fmt: skip


def _offered(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the columns of the first data on the line that start with the given text.

    While an option waits for its value, typer leaves all arguments in `ctx.args`. Names that
    need quotes are left out, because each shell quotes differently.
    """
    names = next(filter(None, map(_columns_of, ctx.args)), [])
    return [name for name in names if name.startswith(incomplete) and name == shlex.quote(name)]


def _columns_of(data: str) -> list[str]:
    """Return the columns of a file, or those that saved tables were made from.

    Returns none on an error: the command itself reports errors, not completion.
    """
    from softcal.exceptions import SoftcalError
    from softcal.scanning.source import Session, opened
    from softcal.table.files import is_saved, load

    try:
        if not Path(data).exists() or Path(data).is_fifo():  # a pipe can be read once
            return []
        if is_saved(Path(data)):
            tables = load(data)
            about = tables.about
            others = (about.label, *tables.by_names, about.weight, about.votes, about.group)
            return list(dict.fromkeys(filter(None, (*tables.models, *others))))
        return opened(data, Session()).names
    except (SoftcalError, OSError, ImportError):
        return []


T = TypeVar("T")


Format = StrEnum("Format", ["TABLE", "JSON"])
"""Output format of a result."""


def as_files(ctx: typer.Context, value: Any) -> Any:
    """Replace `-` and pipes by copies of their content, before anything is read."""
    if ctx.resilient_parsing or value is None:
        return value
    if isinstance(value, list):
        return [str(spooled(Path(one))) for one in value]
    return type(value)(spooled(Path(value)))


_KINDS = "Parquet, CSV, TSV, JSON, JSON lines, Arrow, or Excel"


def _data(text: str) -> Any:
    return typer.Argument(help=text, metavar="DATA", callback=as_files)


DataFiles = Annotated[list[str], _data(f"Files, folders, or patterns: {_KINDS}; or -.")]
RowsOrTables = Annotated[
    list[str], _data(f"{_KINDS} files, folders, or patterns; or tables saved by `softcal scan`.")
]
DataFile = Annotated[Path, _data(f"A file: {_KINDS}; or -.")]
Pilot = Annotated[list[str] | None, _data("A pilot: rows, or tables saved by `softcal scan`.")]
NumberOfBins = Annotated[int, asks("Number of equal-width bins.", "N")]
MaybeBins = Annotated[int | None, asks("Number of bins; default 10, or as saved.", "N")]


def _checked_level(level: float) -> float:
    """Raise if a level is not between 0 and 1."""
    from softcal._validation.rules import refuse_bad_level

    refuse_bad_level(level)
    return level


def _checked_figure(path: Path | None) -> Path | None:
    """Raise if the format of a figure is not known."""
    from softcal.plot.sheet import refuse_format

    if path is not None:
        refuse_format(path)
    return path


DEFAULT_LEVEL = 0.95
Level = Annotated[float, asks("Confidence level.", "P", callback=_checked_level)]
Figure = Annotated[
    Path | None, asks("Save the figure here: .svg, .pdf, .png.", "FILE", callback=_checked_figure)
]
Page = Annotated[Path | None, asks("HTML page to write.", "HTML", "-o", "--output")]
Output = Annotated[Format, asks("Output: table or json.", "KIND", "--format")]


def source_name(data: list[str]) -> str:
    """Return a short name of the source of the rows."""
    return Path(data[0]).name if len(data) == 1 else f"{len(data)} sources"


NOTES: ContextVar[list[str]] = ContextVar("notes")
"""The notes of one run of a command."""


def note(text: str) -> None:
    """Print a note on stderr, and keep it for JSON and pages."""
    sys.stderr.write(f"softcal: note: {printable(text)}\n")
    NOTES.get([]).append(text)


def notes() -> tuple[str, ...]:
    """Return the notes so far, each once."""
    return tuple(dict.fromkeys(NOTES.get([])))


def print_card(card: Card, format_: Format) -> None:
    """Print a result as text or as JSON, with the notes of the command."""
    if format_ is Format.JSON:
        print_json({**card.to_dict(), "notes": [*card.to_dict()["notes"], *notes()]})
    else:
        from softcal import terminal

        terminal.show(card)


def print_json(data: dict[str, Any]) -> None:
    """Print JSON."""
    sys.stdout.write(json.dumps(data, indent=2, allow_nan=False) + "\n")


def given(value: T | None, otherwise: str) -> T:
    """Return the value of an option; raise with the given message if it is missing."""
    if value is None or value == []:  # an empty string may be the name of a column
        raise InputError(otherwise)
    return value
