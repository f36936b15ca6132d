"""`softcal score`: how well calibrated each model is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softcal import terminal
from softcal._io import write_json
from softcal.cli.bounds import LabelHigh, LabelLow, score_bounds
from softcal.cli.cards import show_scores
from softcal.cli.classes import Chosen, LabelColumns, PredColumns, VoteColumns, score_classes
from softcal.cli.options import (
    DEFAULT_LEVEL,
    DataFiles,
    Format,
    Group,
    Level,
    MaybeLabel,
    MaybePreds,
    NumberOfBins,
    Output,
    Votes,
    Weight,
    column_option,
    given,
    one_file,
    source_name,
)
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from softcal.bins import Bins
    from softcal.cli.saved_scores import Scores
    from softcal.sources.columns import Piece, Roles


def score(
    data: DataFiles,
    label: MaybeLabel = None,
    pred: MaybePreds = None,
    label_low: LabelLow = None,
    label_high: LabelHigh = None,
    label_columns: LabelColumns = None,
    vote_columns: VoteColumns = None,
    pred_columns: PredColumns = None,
    bins: NumberOfBins = 10,
    weight: Weight = None,
    votes: Votes = None,
    group: Group = None,
    by: Annotated[str | None, column_option("Column: score each of its values apart too.")] = None,
    level: Level = DEFAULT_LEVEL,
    save: Annotated[
        Path | None,
        typer.Option(help="Keep the tables here (JSON), for `softcal merge`.", metavar="FILE"),
    ] = None,
    format_: Output = Format.TABLE,
) -> None:
    """Score predictions against probabilistic labels: SMECE, and what goes with it."""
    from softcal.sources.columns import Roles
    from softcal.sources.files import refuse_overwriting

    if save is not None:
        refuse_overwriting(save, data)
    chosen = Chosen(label_columns, vote_columns, pred_columns)
    bounds = {"--label-low": label_low, "--label-high": label_high}
    streamed = {"--by": by, "--save": None if save is None else str(save)}
    if chosen.is_asked_for:
        one = {"--label": label, "--pred": pred, "--votes": votes, "--group": group}
        chosen.refuse_with({**one, **bounds, **streamed})
        score_classes(
            one_file(data), chosen, bins=bins, weight=weight, level=level, format_=format_
        )
        return
    pred = given(pred, "Missing option '--pred'.")
    if any(end is not None for end in bounds.values()):
        others = {"--label": label, "--votes": votes, "--group": group, **streamed}
        others["--level"] = None if level == DEFAULT_LEVEL else str(level)
        score_bounds(
            one_file(data), label_low, label_high, pred,
            bins=bins, weight=weight, format_=format_, others=others,
        )  # fmt: skip
        return
    label = given(label, "give --label COL, or --label-low COL and --label-high COL.")
    scores = _scores(data, Roles(label, tuple(pred), weight, votes, by), group, bins, level)
    if save is not None:
        write_json(save, scores.to_dict())
    show_scores(scores, source_name(data), level, format_)


def _scores(data: list[str], roles: Roles, group: str | None, bins: int, level: float) -> Scores:
    from softcal.bins import Bins
    from softcal.cli.scorecard import grouped_scores
    from softcal.inference.intervals import refuse_bad_level
    from softcal.sources.collect import checked_columns

    refuse_bad_level(level)
    roles.refuse_impossible()
    if group is None:
        return _scan(data, roles, Bins.of(bins))
    if roles.by is not None:
        message = "--by and --group do not go together yet: leave one of them out."
        raise InputError(message)
    with terminal.reading() as progress:
        columns = checked_columns(data, roles._replace(by=group), progress)
    return grouped_scores(columns, roles, Bins.of(bins))


def _scan(data: list[str], roles: Roles, bins: Bins) -> Scores:
    """Read the files once, in bounded memory, against both kinds of label."""
    from softcal.cli.saved_scores import Scores
    from softcal.sources.collect import tally
    from softcal.sources.files import all_pieces, files_of, reporter

    paths, rows = files_of(data), 0
    with terminal.reading() as progress:
        tell = reporter(paths, progress)

        def report(piece: Piece, more: int) -> None:
            nonlocal rows
            rows += more
            tell(piece, more)

        tables = tally(all_pieces(paths, roles.wanted), roles, bins, report=report, harden=True)
    return Scores.of(tables, roles, rows)
