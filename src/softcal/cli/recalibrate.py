"""`softcal recalibrate`: fit a calibrator to a file and evaluate it on held-out rows."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypedDict

from softcal.cli import options as opt
from softcal.cli.describe import BOUNDS, IN_ROWS, RATERS, Described, Scale, describes
from softcal.cli.tables import load_rows, refuse_other_names
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from softcal.calibrators.base import CalibrationMap
    from softcal.calibrators.preview import RepairPreview
    from softcal.table.tableset import TableSet


class Method(StrEnum):
    """A recalibration method, or auto."""

    AUTO = "auto"
    TEMPERATURE = "temperature"
    PLATT = "platt"
    BETA = "beta"
    HISTOGRAM = "histogram"
    ISOTONIC = "isotonic"
    VECTOR = "vector"
    DIRICHLET = "dirichlet"


class _Fitted(NamedTuple):
    """A calibrator, its evaluation on held-out rows, and what it was fitted to."""

    tables: TableSet
    found: RepairPreview
    map_: CalibrationMap
    pred: str


@describes(without=("by", "ordered", *RATERS, *BOUNDS, *IN_ROWS))
def recalibrate(
    data: opt.DataFile,
    output: Annotated[Path, opt.asks("File to save the calibrator to.", "FILE", "-o", "--output")],
    method: Annotated[Method, opt.asks(f"One of {', '.join(Method)}.", "METHOD")] = Method.AUTO,
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
    from softcal.cards.recalibrate import RecalibrationCard

    judged = _Judged(bins=bins, folds=folds, level=level)
    # A calibrator of logits takes logits from `apply` too.
    logits = how.pred_scale is Scale.LOGIT
    if len(how.models or ()) > 1:
        message = "a calibrator is fitted to one model: name one."
        raise InputError(message)
    fitted = _fitted(data, how, method, judged, logits=logits)
    saved = fitted.map_.to_dict()
    write_json(output, {**saved, CHECKSUM: checksum(saved)})
    card = RecalibrationCard.of(
        fitted.tables, fitted.found, fitted.map_, source=data.name, pred=fitted.pred,
        output=str(output),
    )  # fmt: skip
    opt.print_card(card, format_)


class _Judged(TypedDict):
    """The settings of the evaluation."""

    bins: int
    folds: int
    level: float


def _fitted(
    data: Path, how: Described, method: Method, judged: _Judged, *, logits: bool
) -> _Fitted:
    """Fit a map of one probability per row, or of the probabilities of all classes."""
    from softcal.calibrators.preview import fit_map, preview_of

    tables, found = load_rows(data, how, logits=logits)
    refuse_other_names(how.name or tables.models, tables.models)
    (shown,) = how.name or tables.models
    rows, methods = found.rows, None if method is Method.AUTO else (method.value,)
    preview = preview_of(rows, groups=found.groups, methods=methods, logits=logits, **judged)
    map_ = fit_map(
        preview.best, rows.y_true, rows.y_prob, sample_weight=rows.sample_weight, names=rows.names,
        logits=logits,
    )  # fmt: skip
    named = replace(map_, columns=found.columns, classes=tables.classes or None)
    return _Fitted(tables, preview, named, shown)
