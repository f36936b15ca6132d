"""`softcal apply`: predictions of a file mapped by a saved calibrator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softcal import terminal
from softcal.cli.completion import column_option
from softcal.cli.options import DataFile, Format, Output, print_json
from softcal.errors import InputError
from softcal.names import printable


def apply(
    calibrator: Annotated[
        Path, typer.Argument(help="A calibrator saved by `softcal recalibrate` (JSON).")
    ],
    data: DataFile,
    pred: Annotated[
        list[str],
        column_option("Column of predictions; of a calibrator of classes one per class, in order."),
    ],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="A .csv, .tsv or .parquet file.", metavar="FILE"),
    ],
    format_: Output = Format.TABLE,
) -> None:
    """Copy a file with a column COL_calibrated beside the predictions."""
    from softcal.repair.calibrated_files import SUFFIX, write_calibrated
    from softcal.repair.maps.saved import load_calibrator
    from softcal.saved_format import read_json

    saved = read_json(calibrator, "`softcal recalibrate`")
    map_ = load_calibrator(saved)
    _refuse_other_order(saved.get("columns"), pred)
    rows = write_calibrated(map_, data, pred, output)
    added = [name + SUFFIX for name in pred]
    if format_ is Format.JSON:
        print_json({"n": rows, "method": map_.method, "columns": added, "output": str(output)})
    else:
        text = f"{rows:,} rows, {', '.join(added)} by {map_.method}: {output}"
        terminal.console().print(printable(text), markup=False, soft_wrap=True)


def _refuse_other_order(fitted: object, pred: list[str]) -> None:
    """Refuse the columns the calibrator was fitted on in another order than there."""
    if isinstance(fitted, list) and fitted != pred and sorted(map(str, fitted)) == sorted(pred):
        message = (
            f"the classes must come in the order they were fitted in: "
            f"{' '.join(f'--pred {name}' for name in fitted)}."
        )
        raise InputError(message)
