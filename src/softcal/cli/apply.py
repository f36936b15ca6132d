"""`softcal apply`: recalibrate the predictions of a file with a saved calibrator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softcal.cli.describe import Described, describes
from softcal.cli.options import (
    DataFile,
    Format,
    Output,
    column_option,
    given,
    note,
    print_card,
)
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcal.calibrators.base import CalibrationMap
    from softcal.calibrators.files import Missing
    from softcal.scanning.patterns import ClassColumns


_USED = (
    "sep", "decimal", "encoding", "input_format", "sheet", "records", "pred_scale", "drop_missing",
    "data_file",
)  # fmt: skip


@describes(without=tuple(field for field in Described._fields if field not in _USED))
def apply(
    calibrator: Annotated[
        Path,
        typer.Argument(help="JSON file that `softcal recalibrate` wrote.", metavar="CALIBRATOR"),
    ],
    data: DataFile,
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", help="File to write: .csv, .tsv, or .parquet.", metavar="FILE"
        ),
    ],
    pred: Annotated[
        list[str] | None,
        column_option("Column of predictions. Multiclass: repeat once per class."),
    ] = None,
    pred_columns: Annotated[
        str | None,
        typer.Option(
            help="Multiclass: all columns, as a,b,c or PREFIX*, or one column of lists.",
            metavar="COLS",
        ),
    ] = None,
    as_: Annotated[
        list[str] | None,
        typer.Option(
            "--as", help="Name of the new column, instead of COL_calibrated.", metavar="NAME"
        ),
    ] = None,
    keep_missing: Annotated[  # noqa: FBT002 - an option of the command line
        bool,
        typer.Option("--keep-missing", help="Keep rows without a prediction, with an empty cell."),
    ] = False,
    format_: Output = Format.TABLE,
    *,
    how: Described,
) -> None:
    """Copy a file and add recalibrated predictions in new columns COL_calibrated.

    Example: softcal apply map.json new.csv --pred p -o calibrated.csv
    """
    from softcal._io import read_json
    from softcal.calibrators.files import write_calibrated
    from softcal.calibrators.maps import load_calibrator
    from softcal.cards.recalibrate import AppliedCard

    if keep_missing and how.drop_missing:
        message = "--keep-missing and --drop-missing contradict each other: leave one out."
        raise InputError(message)

    map_ = load_calibrator(read_json(calibrator, "`softcal recalibrate`"))
    found = _columns(data, pred, pred_columns, how)
    _refuse_other_number(map_, found, "--pred" if pred_columns is None else "--pred-columns")
    columns, notes = _matched(map_, found)
    for text in notes:
        note(text)
    missing: Missing = "drop" if how.drop_missing else "keep" if keep_missing else "refuse"
    added = _new_names(columns, as_)
    written = write_calibrated(
        map_, how.files(data), columns, output, names=added, scale=how.pred_scale.value,
        missing=missing,
    )  # fmt: skip
    card = AppliedCard(
        n=written.rows, rows_dropped=written.dropped if how.drop_missing else None,
        rows_missing=written.missing if keep_missing else None, method=map_.method,
        takes_logits=map_.takes_logits, columns=added, output=str(output),
    )  # fmt: skip
    print_card(card, format_)


def _new_names(columns: Sequence[str], as_: list[str] | None) -> list[str]:
    """Return the names of the new columns."""
    from softcal.calibrators.files import SUFFIX

    if not as_:
        return [name + SUFFIX for name in columns]
    if len(as_) != len(columns):
        message = (
            f"pass --as once per column: there are {len(columns)}, {', '.join(columns):.200}, and "
            f"{len(as_)} of --as."
        )
        raise InputError(message)
    return as_


def _columns(
    data: Path, pred: list[str] | None, pred_columns: str | None, how: Described
) -> ClassColumns:
    """Return the columns of predictions, from whichever of the two options was given."""
    from softcal.scanning.patterns import ClassColumns, class_columns
    from softcal.scanning.source import Session, opened

    if pred_columns is None:
        missing = "Missing option '--pred', or '--pred-columns' for multiclass predictions."
        return ClassColumns(tuple(given(pred, missing)), None)
    if pred:
        message = "pass --pred or --pred-columns, not both."
        raise InputError(message)
    present = opened(how.files(data), Session()).names
    if pred_columns in present:  # a column of lists
        return ClassColumns((pred_columns,), None)
    return class_columns(pred_columns, present)


def _refuse_other_number(map_: CalibrationMap, found: ClassColumns, option: str) -> None:
    """Raise if the number of columns differs from the fit, where that number is known."""
    fitted = len(map_.classes or map_.columns or ()) or map_.n_classes
    if len(found.columns) not in (fitted, len(map_.columns or ())) and fitted is not None:
        what, each = ("1 column", "") if fitted == 1 else (f"{fitted} classes", " per class")
        message = (
            f"the calibrator was fitted on {what}, but {option} names {len(found.columns)}: "
            f"{', '.join(found.columns):.200}. Name one column{each}."
        )
        raise InputError(message)


def _matched(map_: CalibrationMap, found: ClassColumns) -> tuple[tuple[str, ...], list[str]]:
    """Return the columns in the order of the classes of the fit, and notes."""
    from softcal.scanning.patterns import ClassColumns

    fitted, columns = map_.columns, found.columns
    if len(columns) == 1:
        (one,), (other,) = columns, fitted or columns
        text = f"the calibrator was fitted on {other!r}, and is applied to {one!r}."
        return columns, [text] * (one != other)
    known = [ClassColumns(names, None) for names in (fitted, map_.classes) if names is not None]
    if known:
        if sorted(known[0].columns) == sorted(columns):
            return known[0].columns, []
        order = next(filter(None, map(found.by_class, known)), None)
        if order is None:
            message = (
                "the columns must be of the classes that the calibrator was fitted on, "
                f"{', '.join(map_.classes or known[0].columns)}: got {', '.join(columns)}. Pass a "
                "pattern such as 'prob_*' whose star stands for the classes, or rename the columns."
            )
            raise InputError(message)
        return order, []
    if map_.n_classes is None:  # it maps all classes alike
        return columns, []
    if found.classes is not None:
        message = (
            "the calibrator stores no names of classes, and a pattern lists columns in the order "
            "of the file: pass --pred-columns a,b,c in the order of the fit."
        )
        raise InputError(message)
    text = "the calibrator stores no names of classes, which are taken in the given order"
    return columns, [f"{text}: {', '.join(columns)}."]
