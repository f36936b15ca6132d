"""`softcal report`: one HTML file with a verdict and what to do."""

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
    By,
    Group,
    Level,
    MaybeBins,
    MaybeLabel,
    MaybePreds,
    RowsOrTables,
    Votes,
    Weight,
    one_file,
    source_name,
)
from softcal.cli.tables import load_tables, refuse_overwriting, saved_files

if TYPE_CHECKING:
    from softcal.report.page import About
    from softcal.table.tableset import TableSet


def report(
    data: RowsOrTables,
    label: MaybeLabel = None,
    pred: MaybePreds = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The HTML file to write.", metavar="FILE")
    ] = Path("report.html"),
    by: By = None,
    group: Group = None,
    label_columns: LabelColumns = None,
    vote_columns: VoteColumns = None,
    pred_columns: PredColumns = None,
    bins: MaybeBins = None,
    weight: Weight = None,
    votes: Votes = None,
    level: Level = 0.95,
) -> None:
    """Write a report on the calibration of one or more models, as one HTML file."""
    from softcal.report.page import About, commands_of, refuse_impossible, write_page
    from softcal.report.sample import Sample

    refuse_overwriting(output, data)
    refuse_impossible(output, len(pred or pred_columns or ["of a saved file"]))
    chosen = Chosen(label_columns, vote_columns, pred_columns)
    sample = None if saved_files(data) else Sample()
    if chosen.is_asked_for:
        chosen.refuse_with({"--label": label, "--pred": pred, "--votes": votes})
        tables, about = _of_classes(one_file(data), chosen, weight, by or [], group, bins)
    else:
        tables = load_tables(
            data, label=label, preds=pred, weight=weight, votes=votes, by=by or [], group=group,
            bins=bins, pairs=True, look=None if sample is None else sample.add,
        )  # fmt: skip
        commands = commands_of(tables, _rows_name(data) if sample else "DATA")
        about = About(_title(tables.models), source_name(data), tables.label, commands)
    found = write_page(output, tables, about, by=by or None, level=level, sample=sample)
    console = terminal.console()
    for name, verdict in found.items():
        heading = f"{printable(name)}: {verdict.headline}. "
        console.print(Text.assemble((heading, "bold"), f"{verdict.size}."))
    console.print(Text(printable(f"The report is in {output}: open it in a browser.")))


def _of_classes(
    data: Path,
    chosen: Chosen,
    weight: str | None,
    by: list[str],
    group: str | None,
    bins: int | None,
) -> tuple[TableSet, About]:
    """Report on the predicted class: its probability against its share of the label."""
    from dataclasses import replace

    from softcal.report import tables_of_arrays
    from softcal.report.page import About
    from softcal.report.sample import Sample
    from softcal.sources.files import read_columns

    loaded = load(data, chosen, weight)
    named = {name: read_columns(data, [name], name)[name] for name in (*by, group) if name}
    several = f"({len(loaded.classes)} classes)"
    specs = list(loaded.predictions)
    tables = tables_of_arrays(
        loaded.y_true,
        {f"{spec} {several}": y_prob for spec, y_prob in loaded.predictions.items()},
        by={name: named[name] for name in by},
        groups=None if group is None else named[group],
        bins=10 if bins is None else bins,
        sample_weight=loaded.sample_weight,
        sample=Sample(),
    )
    about = About(
        f"{_title(specs)} {several}",
        data.name,
        f"the share of {loaded.label} on that class",
        tuple(
            _recalibrate(data, chosen, spec, f"calibrator_{k}.json")
            for k, spec in enumerate(specs, 1)
        ),
        loaded.classes,
    )
    groups = tables.groups and tables.groups._replace(column=str(group))
    return replace(tables, weight=weight, votes=chosen.vote_columns, groups=groups), about


def _recalibrate(data: Path, chosen: Chosen, pred: str, saved: str) -> str:
    """Return the command that recalibrates one model, as a shell takes it."""
    kind = "--label-columns" if chosen.vote_columns is None else "--vote-columns"
    labels = str(chosen.vote_columns or chosen.label_columns)
    words = ["softcal", "recalibrate", data.name, kind, labels, "--pred-columns", pred, "-o", saved]
    return shlex.join(words)


def _rows_name(data: list[str]) -> str:
    """Name the rows as a shell takes them, where they are one file."""
    return shlex.quote(Path(data[0]).name) if len(data) == 1 else "DATA"


def _title(models: list[str] | tuple[str, ...]) -> str:
    *others, last = models
    return f"Calibration of {', '.join(others)} and {last}" if others else f"Calibration of {last}"
