"""Command line: parse arguments, make one call, print a table or JSON. One file per command."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.exceptions import TyperException

from softcal._display import did_you_mean, printable
from softcal.cli.describe import as_options
from softcal.cli.options import NOTES, PlainCommand, PlainGroup, help_of, note
from softcal.exceptions import SoftcalError, SoftcalWarning

if TYPE_CHECKING:
    from collections.abc import Sequence

_PANELS = {
    "Look and measure": ("inspect", "score", "report", "plot", "compare", "check", "decide",
                         "route", "audit"),
    "Fix, plan, and watch": ("recalibrate", "apply", "plan", "watch"),
    "Large data": ("scan", "merge", "sql"),
    "About softcal": ("demo", "schema", "paper"),
}  # fmt: skip
COMMANDS = tuple(name for names in _PANELS.values() for name in names)
"""The commands, each a function of the module of its name, in the order of `softcal --help`."""


_BROKEN_PIPE = 128 + 13  # as for a program that SIGPIPE ended


def app_of(names: Sequence[str] = COMMANDS) -> typer.Typer:
    """Return the command line with some commands; typer takes 0.1 s to build all of them."""
    app = typer.Typer(
        cls=PlainGroup,
        invoke_without_command=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name in names:
        command = getattr(import_module(f"softcal.cli.{name}"), name)
        text, example = help_of(command)
        panel = next(title for title, names in _PANELS.items() if name in names)
        app.command(cls=PlainCommand, help=text, epilog=example, rich_help_panel=panel)(command)
    app.callback(help=" ".join(str(main.__doc__).split()))(main)
    return app


def main(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)
    ] = False,
) -> None:
    """Measure, compare, and fix calibration when labels are probabilities.

    Start with `softcal inspect FILE`, or with `softcal demo`. The guide is in the folder `docs`
    of the source, and `make docs` builds it.
    """
    if version:
        from softcal import __version__

        sys.stdout.write(f"softcal {__version__} ({_loops()})\n")
        raise typer.Exit


def _loops() -> str:
    """Return which loops add up rows, C++ or NumPy, without importing NumPy."""
    try:
        from softcal import _native
    except ImportError:
        return "NumPy loops: no C++ compiler was found when softcal was installed"
    return f"C++ loops, {_native.levels()[-1]}"


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. An error is a line on stderr, then suggestions."""
    words = list(arguments) or ["--help"]
    app = app_of(words[:1] if words[0] in COMMANDS else COMMANDS)
    NOTES.set([])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", SoftcalWarning)  # each once, if rows are read twice
            warnings.showwarning = lambda message, *_, **__: note(as_options(str(message)))
            code = app(words, prog_name="softcal", standalone_mode=False)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as stop:
        if isinstance(stop, SystemExit) and stop.code != 1:
            raise  # after shell completion
        # The reader closed the pipe, as in `softcal ... | head`. Typer and rich exit with 1 then.
        sys.stdout = None  # Python would try to flush it at exit
        return _BROKEN_PIPE
    except (SoftcalError, TyperException, OSError) as error:
        text = _message_of(error) if isinstance(error, TyperException) else str(error)
        sys.stderr.write(f"softcal: error: {printable(as_options(' '.join(text.split())))}\n")
        sys.stderr.writelines(f"{line}\n" for line in getattr(error, "__notes__", ()))
        return 2
    return int(code or 0)  # typer returns 130 for an interrupt, None for success


def _message_of(error: TyperException) -> str:
    """Return the message of typer; for an unknown option, a similar one, or where it exists."""
    option, ctx = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if ctx is None or not error.message.startswith("No such option"):
        return error.format_message()
    own = [name for param in ctx.command.params for name in param.opts]
    group: Any = typer.main.get_command(app_of())
    having = [
        name
        for name, command in group.commands.items()
        if any(option in param.opts for param in command.params)
    ]
    if having:
        return f"{error.message}. These commands have it: {', '.join(having)}."
    return f"{error.message}.{did_you_mean(str(option), own)}"
