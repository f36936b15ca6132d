"""`softcal score`: how well calibrated each model is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softcal.cli.bounds import LabelHigh, LabelLow, score_bounds
from softcal.cli.classes import Chosen, LabelColumns, PredColumns, VoteColumns, score_classes
from softcal.cli.options import (
    DEFAULT_LEVEL,
    By,
    Format,
    Group,
    Level,
    MaybeBins,
    MaybeLabel,
    MaybePreds,
    Output,
    RowsOrTables,
    Votes,
    Weight,
    given,
    one_file,
    source_name,
)
from softcal.cli.tables import load_tables, refuse_overwriting, saved_files


def score(
    data: RowsOrTables,
    label: MaybeLabel = None,
    pred: MaybePreds = None,
    label_low: LabelLow = None,
    label_high: LabelHigh = None,
    label_columns: LabelColumns = None,
    vote_columns: VoteColumns = None,
    pred_columns: PredColumns = None,
    bins: MaybeBins = None,
    weight: Weight = None,
    votes: Votes = None,
    group: Group = None,
    by: By = None,
    level: Level = DEFAULT_LEVEL,
    save: Annotated[
        Path | None,
        typer.Option(help="Also save the tables here, as `softcal scan` does.", metavar="FILE"),
    ] = None,
    format_: Output = Format.TABLE,
) -> None:
    """Compute SMECE, its interval, a calibration test, and the Brier score."""
    from softcal._validation.rules import refuse_bad_level

    if save is not None:
        refuse_overwriting(save, data)
    chosen = Chosen(label_columns, vote_columns, pred_columns)
    bounds = {"--label-low": label_low, "--label-high": label_high}
    of_tables = {"--by": by, "--save": save}
    if chosen.is_asked_for:
        one = {"--label": label, "--pred": pred, "--votes": votes, "--group": group}
        chosen.refuse_with({**one, **bounds, **of_tables})
        score_classes(
            one_file(data), chosen, bins=10 if bins is None else bins, weight=weight, level=level,
            format_=format_,
        )  # fmt: skip
        return
    if any(end is not None for end in bounds.values()):
        others = {
            "--label": label, "--votes": votes, "--group": group, **of_tables,
            "--level": None if level == DEFAULT_LEVEL else level,
        }  # fmt: skip
        score_bounds(
            one_file(data), label_low, label_high, given(pred, "Missing option '--pred'."),
            bins=10 if bins is None else bins, weight=weight, format_=format_, others=others,
        )  # fmt: skip
        return
    if pred and not saved_files(data):
        given(label, "give --label COL, or --label-low COL and --label-high COL.")
    refuse_bad_level(level)
    tables = load_tables(
        data, label=label, preds=pred, weight=weight, votes=votes, by=by or (), group=group,
        bins=bins, pairs=save is not None,
    )  # fmt: skip
    if save is not None:
        tables.save(save)

    from softcal.cli.display import show_scores

    show_scores(tables, source_name(data), level, format_, by or ())
