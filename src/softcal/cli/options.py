"""Options shared by several commands, and functions that print results."""

from __future__ import annotations

import json
import math
import shlex
import sys
from copy import copy
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from softcal._display import counted, printable
from softcal.exceptions import InputError


def refuse_repeated(command: TyperCommand, ctx: Any, line: list[str]) -> None:
    """Raise if the line gives two values to an option that takes one.

    Typer silently uses the last value. So the line is parsed again with every option repeatable,
    which keeps all values.
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
            f"{', '.join(map(repr, values))}. Give it once."
        )
        raise InputError(message)


class PlainCommand(TyperCommand):
    """A command whose help shows no types beside arguments or switches, and no braces in its usage.

    It also refuses a line that gives two values to an option that takes one.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse a line; `--help` comes first, so that help is shown for an invalid line too."""
        line = list(args)  # typer empties `args`
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:  # not when the shell completes an unfinished line
            refuse_repeated(self, ctx, line)
        return rest

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters as help shows them."""
        return [_plain(param) for param in super().get_params(ctx)]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Write DATA... where typer writes {DATA}...."""
        pieces = super().collect_usage_pieces(ctx)
        return [piece.replace("{", "").replace("}", "") for piece in pieces]


class PlainGroup(TyperGroup):
    """The same for `softcal` without a command."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters as help shows them."""
        return [_plain(param) for param in super().get_params(ctx)]


def _plain(param: Any) -> Any:
    """Remove the type shown beside a name; typer has no setting for it."""
    if isinstance(param, TyperArgument):
        param.display_type_rich = _nothing  # type: ignore[method-assign]
    elif param.is_flag:
        param.metavar = ""
    return param


def _nothing(ctx: Any) -> None:
    """Show no type."""


def column_option(text: str) -> Any:
    """Return an option that takes the name of a column, with this help text."""
    return typer.Option(help=text, metavar="COL", autocompletion=_offered)


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
    from softcal.sources.class_columns import names_of_columns
    from softcal.sources.files import files_of
    from softcal.table.files import is_saved, load

    try:
        if is_saved(Path(data)):
            tables = load(data)
            group = None if tables.groups is None else tables.groups.column
            others = (tables.label, *tables.by_names, tables.weight, tables.votes, group)
            return list(dict.fromkeys(filter(None, (*tables.models, *others))))
        return names_of_columns(files_of(data)[0])
    except (SoftcalError, OSError, ImportError):
        return []


T = TypeVar("T")


class Format(StrEnum):
    """Output format of a result."""

    TABLE = "table"
    JSON = "json"


DataFiles = Annotated[
    list[str],
    typer.Argument(
        help="Files, folders, or patterns: .parquet, .csv, .tsv, .jsonl, .arrow.", metavar="DATA"
    ),
]
RowsOrTables = Annotated[
    list[str],
    typer.Argument(
        help="Rows: files, folders, or patterns of .parquet, .csv, .tsv, .jsonl, .arrow. "
        "Or tables saved by `softcal scan`.",
        metavar="DATA",
    ),
]
DataFile = Annotated[Path, typer.Argument(help="A .csv, .tsv, or .parquet file.", metavar="DATA")]
MaybeLabel = Annotated[str | None, column_option("Column of labels in [0, 1].")]
MaybePreds = Annotated[
    list[str] | None, column_option("Column of predictions in [0, 1]; repeat for each model.")
]
NumberOfBins = Annotated[int, typer.Option(help="Number of equal-width bins.", metavar="N")]
MaybeBins = Annotated[
    int | None,
    typer.Option(help="Number of equal-width bins. Default: 10, or as saved.", metavar="N"),
]
By = Annotated[
    list[str] | None,
    column_option("Column of segments: also score each value separately; may be repeated."),
]
Weight = Annotated[str | None, column_option("Column of row weights.")]
Votes = Annotated[
    str | None,
    column_option("Column of the number of votes behind each label."),
]
Group = Annotated[
    str | None,
    column_option("Column of groups: rows of the same group are not independent."),
]
LabelColumns = Annotated[
    str | None,
    typer.Option(help="Multiclass: columns of label shares, as a,b,c or PREFIX*.", metavar="COLS"),
]
VoteColumns = Annotated[
    str | None,
    typer.Option(help="Multiclass: columns of vote counts instead of shares.", metavar="COLS"),
]
PredColumns = Annotated[
    list[str] | None,
    typer.Option(help="Multiclass: columns of predictions; repeat for each model.", metavar="COLS"),
]
ClassNames = Annotated[
    str | None,
    typer.Option("--classes", help="Multiclass: their names in order, as a,b,c.", metavar="NAMES"),
]
LabelLow = Annotated[
    str | None,
    column_option("Labels known as intervals: column of lower ends."),
]
LabelHigh = Annotated[str | None, column_option("Labels known as intervals: column of upper ends.")]
DEFAULT_LEVEL = 0.95
Level = Annotated[float, typer.Option(help="Confidence level.", metavar="P")]
Output = Annotated[Format, typer.Option("--format", help="Output format.", metavar="table|json")]


def source_name(data: list[str]) -> str:
    """Return a short name of the source of the rows."""
    return Path(data[0]).name if len(data) == 1 else f"{len(data)} sources"


def print_json(data: dict[str, Any]) -> None:
    """Print a result as JSON; a NaN, which JSON lacks, is an error."""
    sys.stdout.write(json.dumps(data, indent=2, allow_nan=False) + "\n")


def chance(pvalue: float | None) -> str:
    """Write a p-value to three digits, never as 0."""
    if pvalue is None:
        return "-"
    return "<0.001" if pvalue < 0.001 else f"{pvalue:.3f}"


def given(value: T | None, otherwise: str) -> T:
    """Return the value of an option; raise with the given message if it is missing."""
    if value is None or value == []:  # an empty string may be the name of a column
        raise InputError(otherwise)
    return value


def rows_text(card: dict[str, Any]) -> str:
    """Write the number of rows, and how many more have weight 0."""
    weightless = card.get("rows_without_weight")
    more = f" ({weightless:,} more with weight 0)" if weightless else ""
    return f"{counted(card['n'], 'row')}{more}"


def loss_text(loss: float | None) -> str:
    """Write a log loss to four digits; None stands for infinity, which JSON lacks."""
    return "inf" if loss is None else f"{loss:.4f}"


def infinite_loss_text(model: str, infinite: int, rows: int) -> str:
    """Return why the log loss of a model is infinite."""
    return printable(
        f"{model} predicts exactly 0 or 1 in {infinite:,} of {counted(rows, 'row')} whose labels "
        "differ, so its log loss is infinite."
    )


def without_infinities(value: Any) -> Any:
    """Replace infinite numbers, which JSON lacks, by null."""
    if isinstance(value, dict):
        return {key: without_infinities(item) for key, item in value.items()}
    return None if isinstance(value, float) and math.isinf(value) else value
