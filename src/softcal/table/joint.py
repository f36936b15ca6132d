"""Joint tables: the tables of two models on the same rows, and products per pair of bins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from softcal._display import printable
from softcal.exceptions import InputError
from softcal.table.owners import gaps_of

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray
    from softcal.table.owners import Raters
    from softcal.table.reliability import Reliability

MAX_JOINT_BINS = 2000
"""With more bins, the products per pair of bins would not fit in 32 MB."""


class PairedSums(NamedTuple):
    """The sums of a paired loss difference e, for its mean and the standard error."""

    total: float = 0.0  #   sum w e
    mixed: float = 0.0  #   sum w^2 e
    square: float = 0.0  #  sum w^2 e^2


class JointRaters(NamedTuple):
    """Joint sums of the votes on two models.

    Attributes
    ----------
    products : ndarray of shape (4, bins, bins)
        The sums of `VOTE_PRODUCTS` over the votes in that bin of A and that bin of B.
    losses : ndarray of shape (6, raters)
        The sums of `RATER_LOSSES` over each rater's votes, in the order of the tables' raters.
    """

    products: FloatArray
    losses: FloatArray

    def covariance(self, a: Reliability, b: Reliability) -> FloatArray:
        """Return the raters' part of the covariances between the residuals of A and of B."""
        assert a.raters is not None  # noqa: S101 - both tables have raters
        assert b.raters is not None  # noqa: S101
        gap_a, gap_b = gaps_of(a.sums)[:, None], gaps_of(b.sums)
        product, mixed_a, mixed_b, weight_sq = self.products
        own = product - gap_b * mixed_a - gap_a * mixed_b + gap_a * gap_b * weight_sq
        centered = a.raters.centered(gap_a[:, 0]).T @ b.raters.centered(gap_b)
        out: FloatArray = centered.toarray() - own
        return out

    def of_losses(self, raters: Raters, means: tuple[float, float]) -> tuple[float, float]:
        """Return the raters' part of the squares of the losses around their means."""
        weight, weight_sq = (np.bincount(raters.owner, raters.values[k]) for k in (1, 4))
        found = []
        for (total, mixed, square), mean in zip(
            (self.losses[:3], self.losses[3:]), means, strict=True
        ):
            own = square - 2 * mean * mixed + mean**2 * weight_sq
            found.append(float(((total - mean * weight) ** 2 - own).sum()))
        return found[0], found[1]


@dataclass(frozen=True, eq=False)
class JointTable:
    r"""Two models on the same rows: their tables, and products between them.

    `tables.pair(a, b)` of a `TableSet` returns it.

    Attributes
    ----------
    a, b : Reliability
        The table of each model, on the same bins.
    cross : ndarray of shape (bins, bins)
        \(\sum w^2 d^A d^B\) over the rows in a bin of A (first axis) and a bin of B (second axis).
        With groups, \(\sum_g S^A_{gb} S^B_{gc}\), the products of the groups' sums.
    differing : int
        The number of rows of positive weight, or of groups, on which the predictions differ.
    brier, log_loss : PairedSums
        Sums of the loss differences A minus B, over rows whose losses are both finite. With
        groups, the squares are those of the groups' sums.
    infinite_a, infinite_b : int
        The number of rows whose log loss is infinite: the model predicts exactly 0 or 1, and the
        label differs.
    log_loss_a, log_loss_b : float
        The mean log loss of each model; inf if that of any row is infinite.
    names : tuple of str
        The names of the two models.
    loss_a, loss_b : float
        The sum of each model's weighted log losses, over the rows where it is finite.
    raters : JointRaters or None
        Joint sums of the votes, if built with `raters=True`. `cross` and the losses are still sums
        over rows.

    Examples
    --------
    >>> from softcal import scan
    >>> rows = {"y": [0.5, 1.0, 0.0], "old": [0.4, 0.9, 0.1], "new": [0.6, 0.9, 0.3]}
    >>> scan(rows, y_true="y", y_prob=["old", "new"]).pair("old", "new")
    JointTable(old, new, n=3, bins=10, differing=2)
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
    names: tuple[str, str] = ("a", "b")
    raters: JointRaters | None = None

    def __post_init__(self) -> None:
        self.cross.setflags(write=False)

    @property
    def n(self) -> int:
        """The number of rows with positive weight."""
        return self.a.n

    @property
    def log_loss_a(self) -> float:
        """The mean log loss of A."""
        return math.inf if self.infinite_a else self.loss_a / float(self.a.sums.weight.sum())

    @property
    def log_loss_b(self) -> float:
        """The mean log loss of B."""
        return math.inf if self.infinite_b else self.loss_b / float(self.b.sums.weight.sum())

    def __repr__(self) -> str:
        names = ", ".join(map(printable, self.names))
        return (
            f"JointTable({names}, n={self.n}, bins={len(self.a.bins)}, differing={self.differing})"
        )


def refuse_many_bins(n_bins: int) -> None:
    """Refuse more bins than a joint table can have."""
    if n_bins > MAX_JOINT_BINS:
        message = (
            f"a comparison takes at most {MAX_JOINT_BINS} bins: got {n_bins}, and each pair of "
            "bins needs memory. Use fewer bins."
        )
        raise InputError(message)
