"""Command line: parse arguments, make one call, print a table or JSON. One file per command."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from typer.exceptions import TyperException

from softcal._display import printable
from softcal.cli.apply import apply
from softcal.cli.audit import audit
from softcal.cli.check import check
from softcal.cli.compare import compare
from softcal.cli.decide import decide
from softcal.cli.demo import demo
from softcal.cli.merge import merge
from softcal.cli.options import PlainCommand, PlainGroup, as_options, help_of
from softcal.cli.paper import paper
from softcal.cli.plan import plan
from softcal.cli.plot import plot
from softcal.cli.recalibrate import recalibrate
from softcal.cli.report import report
from softcal.cli.scan import scan
from softcal.cli.schema import schema
from softcal.cli.score import score
from softcal.cli.sql import sql
from softcal.cli.watch import watch
from softcal.exceptions import SoftcalError

if TYPE_CHECKING:
    from collections.abc import Sequence

app = typer.Typer(
    cls=PlainGroup,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    scan,
    score,
    merge,
    compare,
    report,
    plot,
    plan,
    check,
    watch,
    decide,
    audit,
    recalibrate,
    apply,
    sql,
    schema,
    demo,
    paper,
):
    app.command(cls=PlainCommand, help=help_of(command))(command)


@app.callback()
def main(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)
    ] = False,
) -> None:
    """Measure, compare, and fix calibration when labels are probabilities.

    Start with `softcal demo`, or `softcal score FILE --label COL --pred COL`.
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
    """Run one command and return its exit code. An error is one line on stderr."""
    try:
        code = app(list(arguments) or ["--help"], prog_name="softcal", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader closed the pipe: `softcal ... | head`
        sys.stdout = None  # Python would try to flush it at exit
        return 1  # as typer and rich do
    except (SoftcalError, TyperException, OSError) as error:
        text = error.format_message() if isinstance(error, TyperException) else str(error)
        sys.stderr.write(f"softcal: error: {printable(as_options(' '.join(text.split())))}\n")
        return 2
    return int(code or 0)  # typer returns 130 for an interrupt, None for success
