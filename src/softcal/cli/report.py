"""`softcal report`: one HTML file that says what is wrong and what to do."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from softcal import terminal
from softcal._display import printable
from softcal.cli.classes import Chosen, LabelColumns, PredColumns, VoteColumns, load
from softcal.cli.options import (
    DataFiles,
    Level,
    MaybeLabel,
    MaybePreds,
    NumberOfBins,
    Votes,
    Weight,
    column_option,
    given,
    one_file,
    source_name,
)
from softcal.cli.tables import refuse_overwriting

if TYPE_CHECKING:
    from softcal.report.page import About
    from softcal.report.parts import Part


def report(
    data: DataFiles,
    label: MaybeLabel = None,
    pred: MaybePreds = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The HTML file to write.", metavar="FILE")
    ] = Path("report.html"),
    by: Annotated[str | None, column_option("Column: report each of its values too.")] = None,
    label_columns: LabelColumns = None,
    vote_columns: VoteColumns = None,
    pred_columns: PredColumns = None,
    bins: NumberOfBins = 10,
    weight: Weight = None,
    votes: Votes = None,
    level: Level = 0.95,
) -> None:
    """Write a report on the calibration of one or more models, as one HTML file."""
    from softcal.report.page import About, write_page
    from softcal.report.parts import parts_of_columns
    from softcal.sources.collect import checked_batches
    from softcal.sources.columns import Roles

    refuse_overwriting(output, data)
    chosen = Chosen(label_columns, vote_columns, pred_columns)
    if chosen.is_asked_for:
        chosen.refuse_with({"--label": label, "--pred": pred, "--votes": votes})
        part, about = _of_classes(one_file(data), chosen, weight, by)
        found = write_page(output, [part], about, bins=bins, level=level)
    else:
        pred = given(pred, "Missing option '--pred'.")
        roles = Roles(given(label, "Missing option '--label'."), tuple(pred), weight, votes, by)
        about = About(
            _title(pred), source_name(data), roles.y_true, by=by, weight=weight, votes=votes
        )
        with terminal.reading() as progress:
            parts = parts_of_columns(checked_batches(data, roles, progress), roles)
            found = write_page(output, parts, about, bins=bins, level=level)
    console = terminal.console()
    for name, verdict in found.items():
        heading = f"{printable(name)}: {verdict.headline}. "
        console.print(Text.assemble((heading, "bold"), f"{verdict.size}."))
    console.print(Text(printable(f"The report is in {output}: open it in a browser.")))


def _of_classes(
    data: Path, chosen: Chosen, weight: str | None, by: str | None
) -> tuple[Part, About]:
    """Report on the predicted class: its probability against its share of the label."""
    from softcal.report.page import TOP_LABEL, About
    from softcal.report.parts import part_of_classes
    from softcal.sources.files import read_columns

    loaded = load(data, chosen, weight)
    slices = None if by is None else read_columns(data, [by], by)[by]
    several = f"({len(loaded.classes)} classes)"
    specs = list(loaded.predictions)
    models = {f"{spec} {several}": y_prob for spec, y_prob in loaded.predictions.items()}
    part = part_of_classes(loaded.y_true, models, loaded.sample_weight, slices)
    about = About(
        f"{_title(specs)} {several}",
        data.name,
        f"the share of {loaded.label} on that class",
        kind=TOP_LABEL,
        by=by,
        weight=weight,
        votes=chosen.vote_columns,
        classes=loaded.classes,
        recalibrate=tuple(
            _recalibrate(data, chosen, spec, f"calibrator_{k}.json")
            for k, spec in enumerate(specs, 1)
        ),
    )
    return part, about


def _recalibrate(data: Path, chosen: Chosen, pred: str, saved: str) -> str:
    """Give the command that repairs one model, as a shell takes it."""
    kind = "--label-columns" if chosen.vote_columns is None else "--vote-columns"
    labels = str(chosen.vote_columns or chosen.label_columns)
    words = ["softcal", "recalibrate", data.name, kind, labels, "--pred-columns", pred, "-o", saved]
    return shlex.join(words)


def _title(models: list[str]) -> str:
    *others, last = models
    return f"Calibration of {', '.join(others)} and {last}" if others else f"Calibration of {last}"
