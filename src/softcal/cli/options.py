"""Options that several commands share, and how results are printed."""

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

from softcal._display import printable
from softcal.exceptions import InputError


def refuse_repeated(command: TyperCommand, ctx: Any, line: list[str]) -> None:
    """Refuse a line that gives an option two values where the command takes one.

    Typer silently uses the last value. So the line is parsed once more with every option
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
    """Refuse several values; a switch may be repeated, but not contradicted."""
    if len(values) > 1 and not (option.is_flag and len(set(values)) == 1):
        message = (
            f"{max(option.opts, key=len)} takes one value and was given {len(values)}: "
            f"{', '.join(map(repr, values))}. Give it once."
        )
        raise InputError(message)


class PlainCommand(TyperCommand):
    """A command that shows no type beside an argument or a switch, and no braces in its usage.

    It also refuses a line that gives an option twice where the command takes one value.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse a line; first for `--help`, so that help is shown for a wrong line too."""
        line = list(args)  # typer empties `args`
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:  # the shell completes a line that is not finished
            refuse_repeated(self, ctx, line)
        return rest

    def get_params(self, ctx: Any) -> list[Any]:
        """Give its parameters, fit to be shown."""
        return [_plain(param) for param in super().get_params(ctx)]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Write DATA... where typer writes {DATA}...."""
        pieces = super().collect_usage_pieces(ctx)
        return [piece.replace("{", "").replace("}", "") for piece in pieces]


class PlainGroup(TyperGroup):
    """The same for `softcal` without a command."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Give its parameters, fit to be shown."""
        return [_plain(param) for param in super().get_params(ctx)]


def _plain(param: Any) -> Any:
    """Take away the type that stands beside a name; typer has no setting for it."""
    if isinstance(param, TyperArgument):
        param.display_type_rich = _nothing  # type: ignore[method-assign]
    elif param.is_flag:
        param.metavar = ""
    return param


def _nothing(ctx: Any) -> None:
    """Show no type."""


def column_option(text: str) -> Any:
    """Make an option that takes the name of a column, with what its help says."""
    return typer.Option(help=text, metavar="COL", autocompletion=_offered)


def _offered(ctx: typer.Context, incomplete: str) -> list[str]:
    """Name the columns of the first data on the line; none where that cannot be done.

    While an option waits for its value, typer leaves all arguments in `ctx.args`. Names that
    would need quotes are left out, since every shell quotes in its own way.
    """
    names = next(filter(None, map(_columns_of, ctx.args)), [])
    return [name for name in names if name.startswith(incomplete) and name == shlex.quote(name)]


def _columns_of(data: str) -> list[str]:
    """Read the header, or the columns that saved tables were made from.

    A mistake is for the command to explain, not for the Tab key.
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
    """How a result is printed."""

    TABLE = "table"
    JSON = "json"


DataFiles = Annotated[
    list[str],
    typer.Argument(
        help="Files, folders or patterns: .parquet, .csv, .tsv, .jsonl, .arrow.", metavar="DATA"
    ),
]
RowsOrTables = Annotated[
    list[str],
    typer.Argument(
        help="Rows: files, folders or patterns of .parquet, .csv, .tsv, .jsonl, .arrow. "
        "Or tables that `softcal scan` saved.",
        metavar="DATA",
    ),
]
DataFile = Annotated[Path, typer.Argument(help="A .csv, .tsv or .parquet file.", metavar="DATA")]
MaybeLabel = Annotated[str | None, column_option("Column of labels in [0, 1].")]
MaybePreds = Annotated[
    list[str] | None, column_option("Column of predictions in [0, 1]; once per model.")
]
NumberOfBins = Annotated[int, typer.Option(help="Number of equal-width bins.", metavar="N")]
MaybeBins = Annotated[
    int | None,
    typer.Option(help="Number of equal-width bins; 10, or as saved tables have.", metavar="N"),
]
By = Annotated[
    list[str] | None,
    column_option("Column: each value separately, too; may be repeated."),
]
Weight = Annotated[str | None, column_option("Column of row weights.")]
Votes = Annotated[
    str | None,
    column_option("Column: how many votes each label is the share of."),
]
Group = Annotated[
    str | None,
    column_option("Column: rows of one group are not independent."),
]
LabelColumns = Annotated[
    str | None,
    typer.Option(help="Many classes: columns of label shares, a,b,c or PREFIX*.", metavar="COLS"),
]
VoteColumns = Annotated[
    str | None,
    typer.Option(help="Many classes: columns of counts of votes instead.", metavar="COLS"),
]
PredColumns = Annotated[
    list[str] | None,
    typer.Option(help="Many classes: columns of predictions; once per model.", metavar="COLS"),
]
ClassNames = Annotated[
    str | None,
    typer.Option("--classes", help="Many classes: their names, in order, a,b,c.", metavar="NAMES"),
]
Ordered = Annotated[
    bool, typer.Option("--ordered", help="Many classes: they are in order, lowest first.")
]
LabelLow = Annotated[
    str | None,
    column_option("For labels known as intervals: column of lower ends."),
]
LabelHigh = Annotated[str | None, column_option("Column of upper ends.")]
DEFAULT_LEVEL = 0.95
Level = Annotated[float, typer.Option(help="Confidence level.", metavar="P")]
Output = Annotated[Format, typer.Option("--format", help="What to print.", metavar="table|json")]


def source_name(data: list[str]) -> str:
    """Say in few words where the rows are from."""
    return Path(data[0]).name if len(data) == 1 else f"{len(data)} sources"


def print_json(data: dict[str, Any]) -> None:
    """Print a result for other programs; JSON has no NaN, so neither have we."""
    sys.stdout.write(json.dumps(data, indent=2, allow_nan=False) + "\n")


def chance(pvalue: float | None) -> str:
    """Say a p-value to three digits, and never as 0."""
    if pvalue is None:
        return "-"
    return "<0.001" if pvalue < 0.001 else f"{pvalue:.3f}"


def given(value: T | None, otherwise: str) -> T:
    """Insist on an option that only some others can replace."""
    if value is None or value == []:  # a column may be named with an empty text
        raise InputError(otherwise)
    return value


def rows_text(card: dict[str, Any]) -> str:
    """Say how many rows count, and how many more there are that do not."""
    weightless = card.get("rows_without_weight")
    return f"{card['n']:,} rows" + (f" ({weightless:,} more have weight 0)" if weightless else "")


def loss_text(loss: float | None) -> str:
    """Say a log loss to four digits; None is an infinite one, which JSON lacks."""
    return "inf" if loss is None else f"{loss:.4f}"


def infinite_loss_text(model: str, infinite: int, rows: int) -> str:
    """Say why the log loss of a model is infinite."""
    return printable(
        f"In {infinite:,} of {rows:,} rows {model} predicts exactly 0 or 1 and the label differs, "
        "so its log loss is infinite."
    )


def without_infinities(value: Any) -> Any:
    """Replace infinite numbers, which JSON lacks, by null."""
    if isinstance(value, dict):
        return {key: without_infinities(item) for key, item in value.items()}
    return None if isinstance(value, float) and math.isinf(value) else value
