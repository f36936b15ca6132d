"""`softcal recalibrate`: fit a calibrator to a file, judged on held-out rows."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softcal import terminal
from softcal.cli.options import (
    DataFile,
    Format,
    Label,
    Level,
    NumberOfBins,
    Output,
    Votes,
    Weight,
    print_json,
)

if TYPE_CHECKING:
    from softcal.repair.preview import RepairPreview


class Method(StrEnum):
    """How to calibrate."""

    AUTO = "auto"
    TEMPERATURE = "temperature"
    PLATT = "platt"
    BETA = "beta"
    HISTOGRAM = "histogram"
    ISOTONIC = "isotonic"


def recalibrate(
    data: DataFile,
    label: Label,
    pred: Annotated[str, typer.Option(help="Column of predictions in [0, 1].", metavar="COL")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Where to save it (JSON).", metavar="FILE")
    ],
    method: Annotated[Method, typer.Option(help="auto: the best on held-out rows.")] = Method.AUTO,
    bins: NumberOfBins = 10,
    weight: Weight = None,
    votes: Votes = None,
    group: Annotated[
        str | None,
        typer.Option(help="Column: rows of one group stay in one fold.", metavar="COL"),
    ] = None,
    folds: Annotated[int, typer.Option(help="Number of folds.", metavar="N")] = 5,
    level: Level = 0.95,
    format_: Output = Format.TABLE,
) -> None:
    """Fit a calibrator to soft labels and save it; show what it does on held-out rows."""
    from softcal.door import inputs
    from softcal.door.inputs import Names
    from softcal.repair.preview import BINARY_METHODS, fit_map, preview_of
    from softcal.sources.checked_batches import checked_columns
    from softcal.sources.files import refuse_overwriting, written_whole
    from softcal.sources.pieces import SLICES
    from softcal.sources.tally import Roles

    refuse_overwriting(output, data)
    roles = Roles(label, (pred,), weight, votes, group)
    roles.refuse_impossible()
    columns = checked_columns(data, roles)

    def given(name: str | None) -> Any:
        return None if name is None else columns[name]

    names = Names(label, pred, weight or "sample_weight", votes or "n_votes")
    rows = inputs.rows(columns[label], columns[pred], given(weight), given(votes), names)
    found = preview_of(
        rows,
        bins=bins,
        groups=columns.get(SLICES),
        methods=BINARY_METHODS if method is Method.AUTO else (method.value,),
        folds=folds,
        level=level,
    )
    fitted = fit_map(
        found.best, rows.y_true, rows.y_prob, sample_weight=rows.sample_weight, names=names
    )
    with written_whole(output) as beside:
        beside.write_text(json.dumps(fitted.to_dict(), allow_nan=False) + "\n", encoding="utf-8")
    if format_ is Format.JSON:
        print_json(
            {
                "n": found.before.table.n,
                "folds": folds,
                "label": label,
                "pred": pred,
                "method": found.best,
                "helps": found.helps,
                "held_out": found.as_rows(),
                "calibrator": fitted.to_dict(),
            }
        )
    else:
        title = (
            f"{data.name}: {found.before.table.n:,} rows, label {label}, {pred}, "
            f"{folds} folds, {len(found.before.table.bins)} bins"
        )
        _show(found, title, output)


def _show(found: RepairPreview, title: str, output: Path) -> None:
    console = terminal.console()
    level = found.before.smece.level
    table = terminal.table("method", "Brier", "log loss", "SMECE", f"{100 * level:g} % interval")
    for trial in (found.before, *found.after):
        table.add_row(
            "as they are" if trial is found.before else trial.method,
            f"{trial.brier:.5f}",
            f"{trial.log_loss:.4f}",
            f"{trial.smece.value:.4f}",
            f"{trial.smece.low:.3f}-{trial.smece.high:.3f}",
            style="bold" if trial.method == found.best else None,
        )
    terminal.print_titled(console, title, table)
    console.print(_HOW_TO_READ, style="dim")
    if not found.helps:
        console.print("None of it has a lower Brier score than the predictions as they are.")
    console.print(f"Saved {found.best}, fitted on all rows: {output}", markup=False)


_HOW_TO_READ = (
    "Each row was mapped by a calibrator fitted on the other folds. Chosen by the Brier score, "
    "which is proper and stays finite where a method says exactly 0 or 1."
)
