"""`audit`: find the segments of rows, or of tables, that are off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softcal.exceptions import InputError
from softcal.inference.segments import Audit, audit_tables, unit_bins
from softcal.scanning.data import Cut
from softcal.scanning.scan import scan
from softcal.table.tableset import TableSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from softcal.scanning.data import Label


def audit(
    source: Any,
    *,
    y_true: str | Label | None = None,
    y_prob: str | None = None,
    by: str | Cut | Sequence[str | Cut] | None = None,
    depth: int = 2,
    model: str | None = None,
    level: float = 0.95,
    min_rows: int = 30,
    draws: int = 2000,
    rng: np.random.Generator | int = 0,
    **options: Any,
) -> Audit:
    r"""Return the segments whose predictions are too high or too low, worst first.

    Every conjunction of up to `depth` values of the columns is a segment. With residuals
    \(d = p - y\), weights w, and the variance V of a calibrated model, its statistic is
    \(\sum w d / \sqrt{V}\), corrected for skewness. The p-values hold for all segments
    simultaneously (max-T): each statistic is compared with the largest one in simulated data of a
    calibrated model. For 0/1 labels, outcomes are drawn with probability p, so rare events keep the
    error rate. For other labels, V is the variance of the segment's residuals, slightly shrunk
    toward that of all rows if it is smaller. It is at least the variance of the votes if their
    number is known. The statistic then counts as a t statistic.

    The interval of a segment excludes 0 if and only if its p-value is at most 1 - `level`.

    Rows count as independent, except with `groups`. Then the signs of all residuals of a group are
    flipped together at random, and a segment is found if this test and the one above both find it,
    with V at least the sum of squares of the groups' sums. Errors that cancel within a segment are
    not tested.

    Parameters
    ----------
    source : TableSet, or source of rows
        A set made with `by`, or files, a frame, or an engine as in `scan`.
    y_true, y_prob, by
        For rows: as in `scan`; `Cut("age", 10)` cuts a column of numbers into ranges. For a set,
        `by` selects some of its columns.
    depth : int, default=2
        The largest number of columns in a conjunction.
    model : str, optional
        The model of a set that has several.
    level : float, default=0.95
        The level of the intervals; 1 - `level` bounds the probability of any false finding.
    min_rows : int, default=30
        Segments with fewer rows are counted but not tested.
    draws : int, default=2000
        The number of simulated data sets. No p-value is below 1 / (draws + 1).
    rng : numpy.random.Generator or int, default=0
        The source of random numbers, or its seed.
    **options
        For rows: other arguments of `scan`, such as `sample_weight` and `groups`.

    Returns
    -------
    Audit
        `segments` has all segments tested, each with `where`, `n`, `gap`, `low`, `high`, `pvalue`,
        and `sentence`. `found` has those that chance does not explain. Intervals hold for all
        segments simultaneously.

    Raises
    ------
    InputError
        If the columns have more than a million combinations of values, or if rows depend on each
        other through raters.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> rows = pd.DataFrame({"p": rng.uniform(0.1, 0.9, size=4000)})
    >>> rows["device"] = rng.choice(["phone", "laptop"], size=4000)
    >>> rows["country"] = rng.choice(["DE", "FR", "US"], size=4000)
    >>> off = 0.2 * ((rows.device == "phone") & (rows.country == "FR"))
    >>> rows["y"] = rng.uniform(size=4000) < np.clip(rows.p - off, 0, 1)
    >>> found = audit(rows, y_true="y", y_prob="p", by=["device", "country"])
    >>> found.segments[0].sentence
    'device = phone and country = FR: 22.0 percentage points too high, 643 rows'
    """
    columns: Any = [by] if isinstance(by, str | Cut) else by
    if isinstance(source, TableSet):
        given = {"y_true": y_true, "y_prob": y_prob, **options}
        for name, value in given.items():
            if value is not None:
                message = f"{name} is for rows: leave it out with a TableSet."
                raise InputError(message)
        tables = source
    else:
        if y_prob is None:
            message = "an audit of rows needs y_prob=, the column of predictions."
            raise InputError(message)
        rest = {"bins": unit_bins(), **options}  # few, because cells may be many
        tables = scan(
            source, y_true=y_true, y_prob=y_prob, by=() if columns is None else columns,
            pairs=False, **rest,
        )  # fmt: skip
        columns = None  # all
    return audit_tables(
        tables, model=model, by=columns, depth=depth, level=level, min_rows=min_rows, draws=draws,
        rng=rng,
    )  # fmt: skip
