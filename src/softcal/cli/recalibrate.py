"""`softcal recalibrate`: fit a calibrator to a file and evaluate it on held-out rows."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from softcal.cli import options as opt
from softcal.cli.describe import BOUNDS, IN_ROWS, RATERS, Described, Scale, describes
from softcal.cli.tables import load_rows, refuse_other_names
from softcal.exceptions import InputError

Method = StrEnum("Method", [
    "auto", "temperature", "platt", "beta", "histogram", "isotonic", "vector", "dirichlet",
])  # fmt: skip
"""A recalibration method, or auto."""


@describes(without=("by", "ordered", *RATERS, *BOUNDS, *IN_ROWS))
def recalibrate(
    data: opt.DataFile,
    output: Annotated[Path, opt.asks("File to save the calibrator to.", "FILE", "-o", "--output")],
    method: Annotated[Method, opt.asks(f"One of {', '.join(Method)}.", "METHOD")] = Method.auto,
    bins: opt.NumberOfBins = 10,
    folds: Annotated[int, opt.asks("Number of folds.", "N", rare=True)] = 5,
    level: opt.Level = opt.DEFAULT_LEVEL,
    format_: opt.Output = opt.Format.TABLE,
    *,
    how: Described,
) -> None:
    """Fit a calibrator, evaluate it on held-out rows, and save it.

    Example: softcal recalibrate data.csv --label y --pred p -o map.json
    """
    from softcal._io import CHECKSUM, checksum, write_json
    from softcal.calibrators.preview import fit_map, preview_of
    from softcal.cards.recalibrate import RecalibrationCard

    # A calibrator of logits takes logits from `apply` too.
    logits = how.pred_scale is Scale.LOGIT
    if len(how.models or ()) > 1:
        message = "a calibrator is fitted to one model: name one."
        raise InputError(message)
    tables, found = load_rows(data, how, logits=logits)
    refuse_other_names(how.name or tables.models, tables.models)
    rows, methods = found.rows, None if method is Method.auto else (method.value,)
    preview = preview_of(
        rows, groups=found.groups, methods=methods, logits=logits, bins=bins, folds=folds,
        level=level,
    )  # fmt: skip
    fitted = fit_map(
        preview.best, rows.y_true, rows.y_prob, sample_weight=rows.sample_weight, names=rows.names,
        logits=logits,
    )  # fmt: skip
    map_ = replace(fitted, columns=found.columns, classes=tables.classes or None)
    write_json(output, {**map_.to_dict(), CHECKSUM: checksum(map_.to_dict())})
    (shown,) = how.name or tables.models
    card = RecalibrationCard.of(
        tables, preview, map_, source=data.name, pred=shown, output=str(output)
    )
    opt.print_card(card, format_)
