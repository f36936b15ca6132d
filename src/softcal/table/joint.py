"""Two models on the same rows: their tables, and one cell for each pair of bins that ties them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from softcal._validation import inputs
from softcal._validation.inputs import Names
from softcal.bins import Bins
from softcal.exceptions import InputError
from softcal.table.groups import cluster_cross_sums
from softcal.table.kernel import cross_entropy
from softcal.table.reliability import Reliability, from_rows

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray, Rows
    from softcal.bins import BinsLike

MAX_JOINT_BINS = 2000
"""With more, the cells of pairs of bins would not fit in 32 MB."""


class PairedSums(NamedTuple):
    """What a paired difference e of two losses needs for its mean and the error of that."""

    total: float = 0.0  #   sum w e
    mixed: float = 0.0  #   sum w^2 e
    square: float = 0.0  #  sum w^2 e^2

    def plus(self, other: PairedSums) -> PairedSums:
        """Add what other rows brought."""
        return PairedSums(*(x + y for x, y in zip(self, other, strict=True)))


@dataclass(frozen=True, eq=False)
class JointTable:
    r"""Two models on the same rows: their tables, and what ties them. Tables of parts add up.

    Attributes
    ----------
    a, b : Reliability
        The table of each model, on the same bins.
    cross : ndarray of shape (bins, bins)
        \(\sum w^2 d^A d^B\) over the rows in that bin of A (first) and that bin of B (second).
    differing : int
        Rows of positive weight on which the predictions differ.
    brier, log_loss : PairedSums
        Sums of the rows' differences A minus B, of the log loss where both are finite.

        Where groups were given, products and squares are of the groups' sums, `cross`
        \(\sum_g S^A_{gb} S^B_{gc}\), and `differing` counts groups.
    infinite_a, infinite_b : int
        Rows whose log loss is infinite: the model rules out what the label holds possible.
    loss_a, loss_b : float
        Sums of each model's weighted log losses, over the rows where its own is finite.

    Examples
    --------
    >>> first = joint_table([0.5, 1.0], [0.4, 0.9], [0.6, 0.9], bins=2)
    >>> second = joint_table([0.0], [0.1], [0.3], bins=2)
    >>> first + second
    JointTable(n=3, bins=2, differing=2)
    """

    a: Reliability
    b: Reliability
    cross: FloatArray
    differing: int
    brier: PairedSums
    log_loss: PairedSums
    infinite_a: int
    infinite_b: int
    loss_a: float
    loss_b: float

    def __post_init__(self) -> None:
        self.cross.setflags(write=False)

    @property
    def n(self) -> int:
        """The number of rows; rows of weight 0 are not counted."""
        return self.a.n

    @property
    def log_loss_a(self) -> float:
        """The mean log loss of A, infinite where that of a row is."""
        return math.inf if self.infinite_a else self.loss_a / float(self.a.sums.weight.sum())

    @property
    def log_loss_b(self) -> float:
        """The mean log loss of B, infinite where that of a row is."""
        return math.inf if self.infinite_b else self.loss_b / float(self.b.sums.weight.sum())

    def __add__(self, other: JointTable) -> JointTable:
        """Merge two tables of the same models on other rows; `sum(tables)` works."""
        if not isinstance(other, JointTable):
            return NotImplemented
        return JointTable(
            self.a + other.a,
            self.b + other.b,
            self.cross + other.cross,
            self.differing + other.differing,
            self.brier.plus(other.brier),
            self.log_loss.plus(other.log_loss),
            self.infinite_a + other.infinite_a,
            self.infinite_b + other.infinite_b,
            self.loss_a + other.loss_a,
            self.loss_b + other.loss_b,
        )

    def __radd__(self, other: object) -> JointTable:
        """Let `sum(tables)`, which starts from 0, work."""
        return self if other == 0 else NotImplemented

    def __repr__(self) -> str:
        return f"JointTable(n={self.n}, bins={len(self.a.bins)}, differing={self.differing})"


def joint_table(
    y_true: npt.ArrayLike,
    y_prob_a: npt.ArrayLike,
    y_prob_b: npt.ArrayLike,
    *,
    bins: BinsLike = 10,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
) -> JointTable:
    """Sort two models' predictions for the same rows into bins, and add up.

    Parameters
    ----------
    y_true, bins, sample_weight, n_votes, groups
        As in `reliability`; at most 2,000 bins. Tables with groups add up as long as no group
        has rows in two of them.
    y_prob_a, y_prob_b : array-like of shape (n,)
        The predictions of both models, row by row.

    Examples
    --------
    >>> joint = joint_table([0.5, 1.0], [0.4, 0.9], [0.6, 0.9], bins=2)
    >>> joint.cross.round(3)
    array([[ 0.  , -0.01],
           [ 0.  ,  0.01]])
    """
    binned = Bins.of(bins)
    refuse_many_bins(len(binned))
    inputs.rows(y_prob_a, y_prob_b, names=Names("y_prob_a", "y_prob_b"))  # do they fit each other?
    rows_a = inputs.rows(y_true, y_prob_a, sample_weight, n_votes, Names(y_prob="y_prob_a"))
    rows_b = inputs.rows(y_true, y_prob_b, sample_weight, n_votes, Names(y_prob="y_prob_b"))
    inputs.refuse_misaligned_groups(groups, y_true=y_true, y_prob_a=y_prob_a)
    group = None if groups is None else inputs.group_numbers(groups, rows_a)
    a, b = (from_rows(rows, binned, group) for rows in (rows_a, rows_b))
    return joined_rows(rows_a, a, rows_b, b, group)


def refuse_many_bins(n_bins: int) -> None:
    """Refuse more bins than the cells of their pairs have room for."""
    if n_bins > MAX_JOINT_BINS:
        message = (
            f"a comparison takes at most {MAX_JOINT_BINS} bins: got {n_bins}, and each pair of "
            "bins needs a cell. Use fewer bins."
        )
        raise InputError(message)


def joined_rows(
    rows_a: Rows,
    a: Reliability,
    rows_b: Rows,
    b: Reliability,
    group: npt.NDArray[np.intp] | None = None,
) -> JointTable:
    """Walk through both models' rows together; `a` and `b` have checked the values.

    The labels may differ too, as those of the class each model predicts do.
    """
    differing, infinite_a, infinite_b, total_a, total_b = 0, 0, 0, 0.0, 0.0
    brier = log_loss = PairedSums()
    # Rows of a group may be anywhere, so with groups all are looked at in one go.
    size = {} if group is None else {"size": group.size}
    blocks = zip(rows_a.blocks(**size), rows_b.blocks(**size), strict=True)
    for (p_a, y_a, w), (p_b, y_b, _) in blocks:
        w = np.ones(p_a.size) if w is None else w  # noqa: PLW2901
        unlike = ((p_a != p_b) | (y_a != y_b)) & (w > 0)
        differing += int(unlike.sum()) if group is None else np.unique(group[unlike]).size
        # p and y apart, so that labels that are the same cancel exactly.
        both = (p_a - y_a) + (p_b - y_b)
        brier = brier.plus(_paired(((p_a - p_b) - (y_a - y_b)) * both, w, group))
        loss_a, loss_b = cross_entropy(y_a, p_a), cross_entropy(y_b, p_b)
        finite = np.isfinite(loss_a) & np.isfinite(loss_b) & (w > 0)
        difference = np.subtract(loss_a, loss_b, out=np.zeros_like(p_a), where=finite)
        log_loss = log_loss.plus(_paired(difference, w, group))
        infinite_a += int((np.isinf(loss_a) & (w > 0)).sum())
        infinite_b += int((np.isinf(loss_b) & (w > 0)).sum())
        total_a += _finite_total(w, loss_a)
        total_b += _finite_total(w, loss_b)
    cross = (
        _cross_sums(rows_a, rows_b, a.bins)
        if group is None
        else cluster_cross_sums(rows_a, rows_b, group, a.bins)
    )
    return JointTable(
        a, b, cross, differing, brier, log_loss, infinite_a, infinite_b, total_a, total_b
    )


def _finite_total(w: FloatArray, loss: FloatArray) -> float:
    return float(np.multiply(w, loss, out=np.zeros_like(w), where=np.isfinite(loss)).sum())


def _cross_sums(rows_a: Rows, rows_b: Rows, bins: Bins) -> FloatArray:
    """Multiply each row's residuals of one model with those of the other, per pair of bins."""
    n_bins = len(bins)
    cross = np.zeros(n_bins * n_bins)
    for (p_a, y_a, w), (p_b, y_b, _) in zip(rows_a.blocks(), rows_b.blocks(), strict=True):
        product = (p_a - y_a) * (p_b - y_b)
        cell = bins.guide.locate(p_a) * n_bins + bins.guide.locate(p_b)
        cross += np.bincount(cell, product if w is None else w * w * product, n_bins * n_bins)
    return cross.reshape(n_bins, n_bins)


def _paired(
    difference: FloatArray, w: FloatArray, group: npt.NDArray[np.intp] | None
) -> PairedSums:
    weighted = w * difference
    if group is not None:
        weighted = np.bincount(group, weighted).astype(np.float64)
        w = np.bincount(group, w).astype(np.float64)
    return PairedSums(
        float(weighted.sum()), float((w * weighted).sum()), float((weighted * weighted).sum())
    )
