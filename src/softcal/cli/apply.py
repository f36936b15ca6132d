"""`softcal apply`: recalibrate the predictions of a file with a saved calibrator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softcal.cli import options as opt
from softcal.cli.describe import Described, describes
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from softcal.calibrators.files import Missing
    from softcal.scanning.patterns import ClassColumns


@describes(only=(
    "sep", "decimal", "encoding", "input_format", "sheet", "records", "pred_scale", "drop_missing",
    "data_file",
))  # fmt: skip
def apply(
    calibrator: Annotated[
        Path,
        typer.Argument(help="JSON file that `softcal recalibrate` wrote.", metavar="CALIBRATOR"),
    ],
    data: opt.DataFile,
    output: Annotated[
        Path, opt.asks("File to write: .csv, .tsv, or .parquet.", "FILE", "-o", "--output")
    ],
    pred: Annotated[
        list[str] | None, opt.asks("Column of predictions; repeat for each class.", "COL")
    ] = None,
    pred_columns: Annotated[
        str | None, opt.asks("Columns of classes: a,b,c or PREFIX*, or of lists.", "COLS")
    ] = None,
    as_: Annotated[
        list[str] | None,
        opt.asks("Name of the new column; default COL_calibrated.", "NAME", "--as"),
    ] = None,
    format_: opt.Output = opt.Format.TABLE,
    *,
    keep_missing: Annotated[
        bool, opt.asks("Keep rows without a prediction, with an empty cell.", "", "--keep-missing")
    ] = False,
    how: Described,
) -> None:
    """Copy a file and add recalibrated predictions.

    Example: softcal apply map.json new.csv --pred p -o calibrated.csv
    """
    from softcal._io import read_json
    from softcal.calibrators.files import SUFFIX, matched_columns, write_calibrated
    from softcal.calibrators.maps import load_calibrator
    from softcal.cards.recalibrate import AppliedCard

    if keep_missing and how.drop_missing:
        message = "--keep-missing and --drop-missing contradict each other: leave one out."
        raise InputError(message)
    map_ = load_calibrator(read_json(calibrator, "`softcal recalibrate`"))
    found = _columns(data, pred, pred_columns, how)
    option = "--pred" if pred_columns is None else "--pred-columns"
    columns, notes = matched_columns(map_, found, option)
    for text in notes:
        opt.note(text)
    if as_ and len(as_) != len(columns):
        message = (
            f"pass --as once per column: there are {len(columns)}, {', '.join(columns):.200}, and "
            f"{len(as_)} of --as."
        )
        raise InputError(message)
    missing: Missing = "drop" if how.drop_missing else "keep" if keep_missing else "refuse"
    scale: Any = how.pred_scale.value
    added = as_ or [name + SUFFIX for name in columns]
    written = write_calibrated(
        map_, how.files(data), columns, output, names=added, scale=scale,
        missing=missing,
    )  # fmt: skip
    card = AppliedCard(
        n=written.rows, rows_dropped=written.dropped if how.drop_missing else None,
        rows_missing=written.missing if keep_missing else None, method=map_.method,
        takes_logits=map_.takes_logits, columns=added, output=str(output),
    )  # fmt: skip
    opt.print_card(card, format_)


def _columns(
    data: Path, pred: list[str] | None, pred_columns: str | None, how: Described
) -> ClassColumns:
    """Return the columns of predictions, from whichever of the two options was given."""
    from softcal.scanning.patterns import ClassColumns, class_columns
    from softcal.scanning.source import Session, opened

    if pred_columns is None:
        missing = "Missing option '--pred', or '--pred-columns' for multiclass predictions."
        return ClassColumns(tuple(opt.given(pred, missing)), None)
    if pred:
        message = "pass --pred or --pred-columns, not both."
        raise InputError(message)
    present = opened(how.files(data), Session()).names
    if pred_columns in present:  # a column of lists
        return ClassColumns((pred_columns,), None)
    return class_columns(pred_columns, present)
