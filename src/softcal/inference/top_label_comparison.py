"""Two models of many classes on the same items: whose predicted class is better calibrated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softcal.door import inputs
from softcal.door.class_inputs import class_rows
from softcal.inference.comparison import Comparison, compare_tables
from softcal.inference.intervals import refuse_bad_level
from softcal.inference.joint import joined_rows, refuse_many_bins
from softcal.measures.multiclass import top_label_rows
from softcal.table.bins import Bins
from softcal.table.reliability import from_rows

if TYPE_CHECKING:
    import numpy.typing as npt

    from softcal.table.bins import BinsLike


def compare_top_label(
    y_true: npt.ArrayLike,
    y_prob_a: npt.ArrayLike,
    y_prob_b: npt.ArrayLike,
    *,
    bins: BinsLike = 10,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> Comparison:
    """Compare the top-label calibration of two models of many classes on the same items.

    As `compare`, of `top_label_smece`. Each model is judged by the class it predicts, so the two
    may be judged by different classes of one item; the Brier score and the log loss of the result
    are those of the predicted class against all others.

    Parameters
    ----------
    y_true, bins, sample_weight, n_votes
        As in `classwise_reliability`.
    y_prob_a, y_prob_b : array-like of shape (items, classes)
        The predictions of both models.
    level : float
        Between 0 and 1.

    Examples
    --------
    >>> y = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]] * 100
    >>> sharp = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1]] * 100
    >>> found = compare_top_label(y, y, sharp)
    >>> round(found.difference, 3), found.high < 0
    (-0.25, True)
    """
    refuse_bad_level(level)
    binned = Bins.of(bins)
    refuse_many_bins(len(binned))
    inputs.refuse_misaligned(
        [(inputs.index_of(y_prob_a), "y_prob_a"), (inputs.index_of(y_prob_b), "y_prob_b")]
    )
    rows = [
        top_label_rows(class_rows(y_true, y_prob, sample_weight, n_votes))
        for y_prob in (y_prob_a, y_prob_b)
    ]
    a, b = (from_rows(columns, binned) for columns in rows)
    return compare_tables(joined_rows(rows[0], a, rows[1], b), level)
