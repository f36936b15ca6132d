"""`softcal recalibrate`: fit a calibrator to a file and evaluate it on held-out rows."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypedDict

import typer

from softcal import terminal
from softcal._display import counted, printable
from softcal.cli.describe import BOUNDS, IN_ROWS, RATERS, Described, Scale, describes
from softcal.cli.options import (
    DataFile,
    Format,
    Level,
    NumberOfBins,
    Output,
    print_result,
    rows_text,
)
from softcal.cli.tables import load_rows, refuse_other_names
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from softcal.calibrators.base import CalibrationMap
    from softcal.calibrators.preview import RepairPreview


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
    """A calibrator, its evaluation on held-out rows, and the names of its data."""

    found: RepairPreview
    map_: CalibrationMap
    label: str
    pred: str
    several: bool  # classes
    dropped: int | None  # rows with a missing value, where these are dropped


@describes(without=("by", "ordered", *RATERS, *BOUNDS, *IN_ROWS))
def recalibrate(
    data: DataFile,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="JSON file to save the calibrator to.", metavar="FILE"),
    ],
    method: Annotated[
        Method,
        typer.Option(
            help=f"One of {', '.join(Method)}. auto picks by held-out rows.",
            metavar="METHOD",
        ),
    ] = Method.AUTO,
    bins: NumberOfBins = 10,
    folds: Annotated[int, typer.Option(help="Number of folds.", metavar="N")] = 5,
    level: Level = 0.95,
    format_: Output = Format.TABLE,
    *,
    how: Described,
) -> None:
    """Fit a calibrator to soft labels, evaluate it on held-out rows, and save it.

    Example: softcal recalibrate data.csv --label y --pred p -o map.json
    """
    from softcal._io import CHECKSUM, checksum, write_json

    judged = _Judged(bins=bins, folds=folds, level=level)
    # A calibrator of logits takes logits from `apply` too.
    logits = how.pred_scale is Scale.LOGIT
    if len(how.models or ()) > 1:
        message = "a calibrator is fitted to one model: name one."
        raise InputError(message)
    fitted = _fitted(data, how, method, judged, logits=logits)
    saved = fitted.map_.to_dict()
    write_json(output, {**saved, CHECKSUM: checksum(saved)})
    if format_ is Format.JSON:
        print_result(_card(fitted))
    else:
        _show(fitted, data, output)


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
    classes = tables.classes or None
    return _Fitted(
        preview, replace(map_, columns=found.columns, classes=classes), tables.about.label, shown,
        classes is not None, tables.about.rows_dropped,
    )  # fmt: skip


def _rows(fitted: _Fitted) -> dict[str, Any]:
    """Return how many rows there are, and how many were dropped, for JSON."""
    dropped = {} if fitted.dropped is None else {"rows_dropped": fitted.dropped}
    return {"n": fitted.found.before.table.n, **dropped}


def _card(fitted: _Fitted) -> dict[str, Any]:
    found = fitted.found
    return {
        **_rows(fitted),
        "folds": found.folds,
        "label": fitted.label,
        "pred": fitted.pred,
        "columns": fitted.map_.columns,
        "method": found.best,
        "notes": list(found.notes),
        "helps": found.helps,
        "held_out": found.as_rows(),
        "calibrator": fitted.map_.to_dict(),
    }


def _show(fitted: _Fitted, data: Path, output: Path) -> None:
    found = fitted.found
    title = (
        f"{data.name}: {rows_text(_rows(fitted))}, label {fitted.label}, {fitted.pred}, "
        f"{found.folds} folds, {counted(len(found.before.table.bins), 'bin')}"
    )
    console = terminal.console()
    level = found.before.smece.level
    smece = "top-label\nSMECE" if fitted.several else "SMECE"
    table = terminal.table("method", "Brier", "log loss", smece, f"{100 * level:g}% interval")
    for trial in (found.before, *found.after):
        table.add_row(
            "none" if trial is found.before else trial.method,
            f"{trial.brier:.5f}",
            f"{trial.log_loss:.4f}",
            f"{trial.smece.value:.4f}",
            f"{trial.smece.low:.3f} to {trial.smece.high:.3f}",
            style="bold" if trial.method == found.best else None,
        )
    terminal.print_titled(console, title, table)
    console.print(_HOW_TO_READ, style="dim")
    if len(found.after) > 1 or not found.helps:
        console.print(f"{found.verdict}.")
    for note in found.notes:
        console.print(f"Note: {note}")
    saved = f"Saved {found.best}, fitted on all rows, to {output}"
    console.print(printable(saved), markup=False)
    if fitted.map_.takes_logits:
        console.print("`softcal apply` also takes logits, and writes probabilities.")
    if fitted.map_.classes is not None:
        matched = f"`softcal apply` matches columns by class: {', '.join(fitted.map_.classes)}"
        console.print(printable(matched), markup=False, soft_wrap=True)


_HOW_TO_READ = (
    "All scores are on held-out rows: each row is mapped by a calibrator fitted on the other "
    "folds. The Brier score decides: it stays finite where a method predicts exactly 0 or 1."
)
