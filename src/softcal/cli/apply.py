"""`softcal apply`: recalibrate the predictions of a file with a saved calibrator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeGuard

import typer

from softcal import terminal
from softcal._display import printable
from softcal.cli.options import (
    DataFile,
    Decimal,
    DropMissing,
    Encoding,
    Format,
    Given,
    Output,
    PredScale,
    RowOptions,
    Scale,
    Sep,
    Sheet,
    column_option,
    given,
    print_result,
    rows_text,
)
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence


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
        column_option("Column of predictions. Multiclass: repeat once per class, in order."),
    ] = None,
    pred_columns: Annotated[
        str | None,
        typer.Option(
            help="Multiclass: all columns, as a,b,c or PREFIX*, or one column of lists.",
            metavar="COLS",
        ),
    ] = None,
    sep: Sep = None,
    decimal: Decimal = ".",
    encoding: Encoding = None,
    input_format: Given = None,
    sheet: Sheet = None,
    pred_scale: PredScale = Scale.PROBABILITY,
    drop_missing: DropMissing = False,  # noqa: FBT002 - an option of the command line
    format_: Output = Format.TABLE,
) -> None:
    """Copy a file and add recalibrated predictions in new columns COL_calibrated."""
    from softcal._io import read_json
    from softcal.calibrators.files import SUFFIX, write_calibrated
    from softcal.calibrators.maps import load_calibrator

    how = RowOptions(
        sep, decimal, encoding, input_format, sheet, pred_scale, drop_missing=drop_missing
    )
    saved = read_json(calibrator, "`softcal recalibrate`")
    map_ = load_calibrator(saved)
    fitted = saved.get("columns")
    pred = _columns(data, pred, pred_columns, fitted, how)
    option = "--pred" if pred_columns is None else "--pred-columns"
    _refuse_other_number(len(fitted) if isinstance(fitted, list) else map_.n_classes, pred, option)
    _refuse_other_order(fitted, pred)
    rows, dropped = write_calibrated(map_, data, pred, output, how.reading, how.values)
    without = {"rows_dropped": dropped} if drop_missing else {}
    added = [name + SUFFIX for name in pred]
    if format_ is Format.JSON:
        about = {"method": map_.method, "columns": added, "output": str(output)}
        print_result({"n": rows, **without, **about})
    else:
        method = f"{map_.method}, from logits" if map_.takes_logits else map_.method
        text = (
            f"{rows_text({'n': rows, **without})}, {', '.join(added)} by {method}. Saved: {output}"
        )
        terminal.console().print(printable(text), markup=False, soft_wrap=True)


def _columns(
    data: Path,
    pred: list[str] | None,
    pred_columns: str | None,
    fitted: object,
    how: RowOptions,
) -> list[str]:
    """Return the columns of predictions, from whichever of the two options was given."""
    from softcal.sources.class_columns import class_columns, names_of_columns

    if pred_columns is None:
        return given(
            pred, "Missing option '--pred', or '--pred-columns' for multiclass predictions."
        )
    if pred:
        message = "pass --pred or --pred-columns, not both."
        raise InputError(message)
    present = names_of_columns(data, how.reading)
    if pred_columns in present:  # a column of lists
        return [pred_columns]
    found = class_columns(pred_columns, present).columns
    # A pattern lists columns in the order of the file, which may differ from the fitted order.
    return list(fitted) if "*" in pred_columns and _are_same(fitted, found) else list(found)


def _refuse_other_number(fitted: int | None, pred: list[str], option: str) -> None:
    """Raise if the number of columns differs from the fit, where that number is known."""
    if fitted not in (None, len(pred)):
        what = "1 column" if fitted == 1 else f"{fitted} classes"
        message = (
            f"the calibrator was fitted on {what}, but {option} names {len(pred)}: "
            f"{', '.join(pred):.200}. Name one column{'' if fitted == 1 else ' per class'}."
        )
        raise InputError(message)


def _refuse_other_order(fitted: object, pred: list[str]) -> None:
    """Raise if the columns are those of the fit in another order."""
    if _are_same(fitted, pred) and list(fitted) != pred:
        message = f"the classes must be in the order of the fit: {', '.join(fitted)}."
        raise InputError(message)


def _are_same(fitted: object, pred: Sequence[str]) -> TypeGuard[list[str]]:
    return isinstance(fitted, list) and sorted(map(str, fitted)) == sorted(pred)
