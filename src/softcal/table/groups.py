"""Rows that belong together: how their residuals vary as one, for honest intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from softcal._validation.inputs import FloatArray, Rows, as_float64
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from softcal.bins import Bins

MAX_BINS = 2000
"""With groups the table keeps a square of sums; more bins would fill the memory."""


@dataclass(frozen=True, eq=False)
class Clusters:
    """What the table keeps of groups of rows (patients, documents, annotators).

    With S_gb the sum of w d over the rows of group g in bin b, and W_gb that of w:

    Attributes
    ----------
    count : int
        The number of groups with a row of positive weight.
    residual : ndarray of shape (bins, bins)
        Sum over groups of S_gb S_gc.
    weight : ndarray of shape (bins, bins)
        Sum over groups of W_gb W_gc.
    """

    count: int
    residual: FloatArray
    weight: FloatArray

    def __post_init__(self) -> None:
        for array in (self.residual, self.weight):
            array.setflags(write=False)

    def __add__(self, other: Clusters) -> Clusters:
        """Add up, which is right as long as no group has rows in both tables."""
        return Clusters(
            self.count + other.count, self.residual + other.residual, self.weight + other.weight
        )

    def coarsen(self, starts: npt.NDArray[np.intp]) -> Clusters:
        """Join neighbouring bins, given where each new one starts."""
        return Clusters(self.count, joined_square(self.residual, starts),
                        joined_square(self.weight, starts))  # fmt: skip


def joined_square(square: FloatArray, starts: npt.NDArray[np.intp]) -> FloatArray:
    """Join neighbouring rows and columns of a matrix of sums."""
    out: FloatArray = np.add.reduceat(np.add.reduceat(square, starts, axis=-1), starts, axis=-2)
    return out


def cluster_sums(rows: Rows, group: npt.NDArray[np.intp], bins: Bins) -> Clusters:
    """Add up each group's residuals and weights per bin, and multiply them with each other."""
    refuse_many_bins_of_groups(len(bins))
    p, y = as_float64(rows.y_prob), as_float64(rows.y_true)
    w = np.ones(p.size) if rows.sample_weight is None else as_float64(rows.sample_weight)
    return clusters_of(group, bins.guide.locate(p), np.array([w * (p - y), w]), len(bins))


def clusters_of(
    group: npt.NDArray[np.integer],
    place: npt.NDArray[np.integer],
    values: FloatArray,
    n_bins: int,
) -> Clusters:
    """Multiply the groups' sums with each other, given w d and w by group and bin.

    Entries of the same group and bin are added up first.
    """
    from scipy.sparse import csr_array

    shape = (int(group.max(initial=-1)) + 1, n_bins)
    residual, weight = (csr_array((each, (group, place)), shape=shape) for each in values)
    return Clusters(
        int((weight.sum(axis=1) > 0).sum()),
        (residual.T @ residual).toarray(),
        (weight.T @ weight).toarray(),
    )


def refuse_many_bins_of_groups(n_bins: int) -> None:
    """Refuse more bins than the square of sums has room for."""
    if n_bins > MAX_BINS:
        message = f"with groups there can be at most {MAX_BINS} bins: got {n_bins}."
        raise InputError(message)
