"""What several commands share: their options, and how a result is printed."""

from __future__ import annotations

import json
import math
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from softcal.cli.completion import column_option
from softcal.errors import InputError
from softcal.names import printable

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
DataFile = Annotated[Path, typer.Argument(help="A .csv, .tsv or .parquet file.", metavar="DATA")]
MaybeLabel = Annotated[str | None, column_option("Column of labels in [0, 1].")]
MaybePreds = Annotated[
    list[str] | None, column_option("Column of predictions in [0, 1]; once per model.")
]
NumberOfBins = Annotated[int, typer.Option(help="Number of equal-width bins.", metavar="N")]
Weight = Annotated[str | None, column_option("Column of row weights.")]
Votes = Annotated[
    str | None,
    column_option("Column: how many votes each label is the share of."),
]
Group = Annotated[
    str | None,
    column_option("Column: rows of one group are not independent."),
]
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


def one_file(data: list[str]) -> Path:
    """Insist on one file, where all rows are needed at once."""
    if len(data) != 1:
        message = f"give one file: got {len(data)}. Many files go with --label and --pred only."
        raise InputError(message)
    return Path(data[0])


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
