"""Write calibration reports as self-contained HTML files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softcal._optional import naming_the_extra
from softcal.exceptions import InputError, InputTypeError
from softcal.table.tableset import TableSet

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import numpy.typing as npt

    from softcal.bins import BinsLike
    from softcal.votes import Votes


@naming_the_extra()
def write_report(
    path: str | os.PathLike[str],
    y_true: npt.ArrayLike | Votes | TableSet,
    y_prob: Mapping[str, npt.ArrayLike] | None = None,
    *,
    by: npt.ArrayLike | Mapping[str, npt.ArrayLike] | Sequence[str] | None = None,
    groups: npt.ArrayLike | None = None,
    bins: BinsLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    ordered: bool = False,
    level: float = 0.95,
    tolerance: float = 0.02,
    title: str = "Calibration report",
    label: str | None = None,
) -> None:
    """Write a report on one or more models as one HTML file for any browser.

    The report begins with an answer for each model: whether it is calibrated, the size and place of
    its error, its cost at a threshold, and the next step. It compares the models, has a reliability
    diagram with a choice of bins, and, with `by`, shows each segment. It needs the extra `report`,
    and no network.

    Parameters
    ----------
    path : path
        The file to write; an existing file is replaced.
    y_true : TableSet, or array-like of shape (n,) or (n, classes), or Votes
        Tables from `scan` or `load`, or labels as in `reliability`. With labels of many classes,
        the report is about the class that each model predicts, as in `top_label_smece`.
    y_prob : mapping from str to array-like
        The predictions of each model, by name. Must be omitted with a TableSet.
    by : array-like of shape (n,), or mapping from str to such, optional
        One value per row: each value is also reported separately. With a TableSet: the names of
        the columns to show, by default all.
    groups, sample_weight, n_votes
        As in `reliability`. Must be omitted with a TableSet.
    bins : int, Bins, or edges, optional
        The bins of the verdict; by default 10, or those of the TableSet. Readers can choose other
        bins on the page.
    ordered : bool, default=False
        Whether the classes of arrays are in order, lowest first. `Votes` and a TableSet state it
        themselves.
    level : float, default=0.95
        Confidence level of the intervals.
    tolerance : float, default=0.02
        The SMECE to accept. An error is material if its interval lies above the tolerance.
    title : str, default="Calibration report"
        The heading of the page.
    label : str, optional
        The name of the labels.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "report.html"
    >>> write_report(path, [0.2, 0.9, 0.4], {"model": [0.3, 0.8, 0.4]})
    >>> path.read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'

    From tables, without rows:

    >>> from importlib.resources import files
    >>> from softcal import scan
    >>> items = files("softcal") / "data" / "lidc_malignancy" / "items.csv"
    >>> tables = scan(items, y_true="soft_malignant", y_prob="prob_rf_all", by="fold")
    >>> write_report(path, tables)
    """
    from softcal.report.commands import commands_of
    from softcal.report.page import About, refuse_impossible, write_page
    from softcal.scanning.arrays import tables_of_arrays
    from softcal.scanning.sample import Sample

    path = Path(path)
    if isinstance(y_true, TableSet):
        rows = {"y_prob": y_prob, "groups": groups, "sample_weight": sample_weight,
                "n_votes": n_votes, "ordered": ordered or None}  # fmt: skip
        _refuse_beside_tables(rows)
        tables = y_true if bins is None else y_true.coarsen(bins)
        about = About(title, "tables", label or tables.about.label, commands_of(tables))
        shown: Any = (by,) if isinstance(by, str) else by
        write_page(path, tables, about, by=shown, level=level, tolerance=tolerance)
        return
    if not isinstance(y_prob, Mapping):
        message = f"y_prob must map names to columns: got {type(y_prob).__name__}."
        raise InputTypeError(message)
    refuse_impossible(path, len(y_prob))
    sample = Sample()
    tables = tables_of_arrays(
        y_true, y_prob, by=by, groups=groups, bins=10 if bins is None else bins,
        sample_weight=sample_weight, n_votes=n_votes, ordered=ordered, sample=sample,
    )  # fmt: skip
    about = About(title, "arrays in Python", label or tables.about.label)
    write_page(path, tables, about, level=level, tolerance=tolerance, sample=sample)


def _refuse_beside_tables(rows: Mapping[str, Any]) -> None:
    for name, values in rows.items():
        if values is not None:
            message = f"{name} must be omitted if y_true is a TableSet, which has its own."
            raise InputError(message)
