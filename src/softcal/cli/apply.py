"""`softcal apply`: predictions of a file mapped by a saved calibrator."""

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
    column_option,
    given,
    print_json,
    rows_text,
)
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence


def apply(
    calibrator: Annotated[
        Path,
        typer.Argument(help="What `softcal recalibrate` saved (JSON).", metavar="CALIBRATOR"),
    ],
    data: DataFile,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="A .csv, .tsv or .parquet file.", metavar="FILE"),
    ],
    pred: Annotated[
        list[str] | None,
        column_option("Column of predictions; of a calibrator of classes one per class, in order."),
    ] = None,
    pred_columns: Annotated[
        str | None,
        typer.Option(
            help="Many classes: these columns at once, a,b,c or PREFIX*, or one of lists.",
            metavar="COLS",
        ),
    ] = None,
    sep: Sep = None,
    decimal: Decimal = ".",
    encoding: Encoding = None,
    input_format: Given = None,
    pred_scale: PredScale = Scale.PROBABILITY,
    drop_missing: DropMissing = False,  # noqa: FBT002 - an option of the command line
    format_: Output = Format.TABLE,
) -> None:
    """Copy a file with a column COL_calibrated beside the predictions."""
    from softcal._io import read_json
    from softcal.calibrators.files import SUFFIX, write_calibrated
    from softcal.calibrators.maps import load_calibrator

    how = RowOptions(
        sep, decimal, encoding, input_format, pred_scale=pred_scale, drop_missing=drop_missing
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
        print_json({"n": rows, **without, **about})
    else:
        method = f"{map_.method}, from logits" if map_.takes_logits else map_.method
        counted = rows_text({"n": rows, **without})
        text = f"{counted}, {', '.join(added)} by {method}: {output}"
        terminal.console().print(printable(text), markup=False, soft_wrap=True)


def _columns(
    data: Path,
    pred: list[str] | None,
    pred_columns: str | None,
    fitted: object,
    how: RowOptions,
) -> list[str]:
    """Name the columns of predictions, which one option or the other gives."""
    from softcal.sources.class_columns import class_columns, names_of_columns

    if pred_columns is None:
        return given(pred, "Missing option '--pred', or '--pred-columns' for many classes.")
    if pred:
        message = "give --pred or --pred-columns, not both."
        raise InputError(message)
    present = names_of_columns(data, how.reading)
    if pred_columns in present:  # a column of lists
        return [pred_columns]
    found = class_columns(pred_columns, present).columns
    # A pattern stands for columns in the order of the file, which need not be that of the fit.
    return list(fitted) if "*" in pred_columns and _are_same(fitted, found) else list(found)


def _refuse_other_number(fitted: int | None, pred: list[str], option: str) -> None:
    """Refuse more or fewer columns than the calibrator was fitted on, where that is known."""
    if fitted not in (None, len(pred)):
        what = "1 column" if fitted == 1 else f"{fitted} classes"
        message = (
            f"the calibrator was fitted on {what}, and {option} names {len(pred)}: "
            f"{', '.join(pred):.200}. Name {'that one' if fitted == 1 else 'one column per class'}."
        )
        raise InputError(message)


def _refuse_other_order(fitted: object, pred: list[str]) -> None:
    """Refuse the columns the calibrator was fitted on in another order than there."""
    if _are_same(fitted, pred) and list(fitted) != pred:
        message = f"the classes must come in the order they were fitted in: {', '.join(fitted)}."
        raise InputError(message)


def _are_same(fitted: object, pred: Sequence[str]) -> TypeGuard[list[str]]:
    return isinstance(fitted, list) and sorted(map(str, fitted)) == sorted(pred)
