"""`softcal apply`: predictions of a file mapped by a saved calibrator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softcal import terminal
from softcal.cli.columns import column_option
from softcal.cli.options import DataFile, Format, Output, print_json
from softcal.errors import InputError

if TYPE_CHECKING:
    from softcal.repair.maps.base import CalibrationMap


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

    map_ = _read(calibrator)
    rows = write_calibrated(map_, data, pred, output)
    added = [name + SUFFIX for name in pred]
    if format_ is Format.JSON:
        print_json({"n": rows, "method": map_.method, "columns": added, "output": str(output)})
    else:
        text = f"{rows:,} rows, {', '.join(added)} by {map_.method}: {output}"
        terminal.console().print(text, markup=False, soft_wrap=True)


def _read(path: Path) -> CalibrationMap:
    from softcal.repair.maps.saved import load_calibrator

    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}"
        raise InputError(message) from error
    except (ValueError, RecursionError) as error:
        message = f"cannot read {path}: it is not JSON, as `softcal recalibrate` makes it."
        raise InputError(message) from error
    return load_calibrator(saved)
