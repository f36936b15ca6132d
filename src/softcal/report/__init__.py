"""One self-contained HTML file that says what is wrong with a model and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from softcal._optional import naming_the_extra
from softcal._validation.votes import Votes
from softcal.exceptions import InputTypeError
from softcal.report.parts import part_of_classes, parts_of_columns
from softcal.sources.columns import SLICES, Roles

if TYPE_CHECKING:
    import os

    import numpy.typing as npt


@naming_the_extra()
def write_report(
    path: str | os.PathLike[str],
    y_true: npt.ArrayLike,
    y_prob: Mapping[str, npt.ArrayLike],
    *,
    by: npt.ArrayLike | None = None,
    bins: int = 10,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    level: float = 0.95,
    title: str = "Calibration report",
    label: str = "the label",
) -> None:
    """Write a report on one or more models as one HTML file, which opens in any browser.

    It holds a verdict in plain words per model, the reliability diagram with a choice of bins,
    where the error is, the models compared, and, with `by`, each slice of the data. It needs the
    extra `report`, and no network.

    Parameters
    ----------
    path : path
        The file to write; one that is there is replaced.
    y_true, sample_weight, n_votes
        As in `reliability`.
    y_prob : mapping from str to array-like
        The predictions of each model, by its name.
    by : array-like of shape (n,), optional
        A value for each row: the rows of each value are reported by themselves, too.
    bins : int
        The number of equal-width bins the words are about; the reader can choose others.
    title, label : str
        The heading, and what the labels are called.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_report(folder / "report.html", [0.2, 0.9, 0.4], {"model": [0.3, 0.8, 0.4]})
    >>> (folder / "report.html").read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    from softcal.report.page import About, write_page

    _refuse_nameless(y_prob)
    columns: dict[str, npt.ArrayLike] = {label: y_true, **y_prob}

    def named(name: str, values: npt.ArrayLike | None) -> str | None:
        """Keep a column under a name no model has."""
        if values is None:
            return None
        while name in columns:
            name += "_"
        columns[name] = values
        return name

    weight, votes = named("sample_weight", sample_weight), named("n_votes", n_votes)
    roles = Roles(label, tuple(y_prob), weight, votes)
    if by is not None:
        columns[SLICES] = by
    about = About(
        title,
        "arrays in Python",
        label,
        by=None if by is None else "by",
        weight=weight,
        votes=votes,
    )
    write_page(Path(path), parts_of_columns([columns], roles), about, bins=bins, level=level)


@naming_the_extra()
def write_top_label_report(
    path: str | os.PathLike[str],
    y_true: npt.ArrayLike,
    y_prob: Mapping[str, npt.ArrayLike],
    *,
    by: npt.ArrayLike | None = None,
    bins: int = 10,
    sample_weight: npt.ArrayLike | None = None,
    level: float = 0.95,
    title: str = "Calibration report",
    label: str = "the label's share of that class",
) -> None:
    """Write a report on models of many classes: on the class each predicts.

    The probability of the predicted class is compared with the label's share of that class, as in
    `top_label_smece`. Otherwise the report is that of `write_report`, less repair.

    Parameters
    ----------
    y_true : array-like of shape (n, classes), or Votes
        As in `top_label_reliability`.
    y_prob : mapping from str to array-like of shape (n, classes)
        The predictions of each model, by its name.
    path, by, bins, sample_weight, level, title, label
        As in `write_report`.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "report.html"
    >>> write_top_label_report(path, [[0.9, 0.1], [0.5, 0.5]], {"m": [[0.8, 0.2], [0.3, 0.7]]})
    >>> path.exists()
    True
    """
    from softcal.report.page import TOP_LABEL, About, write_page

    _refuse_nameless(y_prob)
    about = About(
        title,
        "arrays in Python",
        label,
        kind=TOP_LABEL,
        by=None if by is None else "by",
        weight=None if sample_weight is None else "sample_weight",
        votes="counted in the labels" if isinstance(y_true, Votes) else None,
        recalibrate=(
            "softcal recalibrate DATA --label-columns … --pred-columns … -o calibrator.json",
        ),
    )
    part = part_of_classes(y_true, y_prob, sample_weight, by)
    write_page(Path(path), [part], about, bins=bins, level=level)


def _refuse_nameless(y_prob: object) -> None:
    if not isinstance(y_prob, Mapping):
        message = f"y_prob must map names to columns: got {type(y_prob).__name__}."
        raise InputTypeError(message)
