r"""Test segments of rows that vary together in groups, such as patients.

The residual \(S_{gs}\) of group g in segment s has mean 0 if the model is calibrated. Groups are
independent, so the signs of all residuals of a group may be flipped together: if their distribution
is symmetric, this leaves the distribution of the data as it is. The test of a segment is

\[ t_s = \Bigl| \sum_g S_{gs} \Bigr| \Big/ \Bigl( \sum_g S_{gs}^2 \Bigr)^{1/2} , \]

whose denominator no flip changes. The largest \(t_s\) of all segments after random flips gives
p-values that hold simultaneously, exactly if residuals of groups are symmetric, and for many groups
if not (Canay, Romano, and Shaikh 2017; Westfall and Young 1993). Residuals of rare events are not:
without an event, all have one sign. An audit therefore also asks the test of independent rows,
whose simulated labels are as skewed, with a variance of at least \(\sum_g S_{gs}^2\). A segment is
found if both tests find it.

The interval of a gap has all values \(\delta\) at which the same test, of
\(S_{gs} - \delta W_{gs}\), is below the largest score that does not reject. They solve a quadratic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt
    from scipy.sparse import csr_array

    from softcal._validation.inputs import FloatArray
    from softcal.table.kernel import Sums

_NUMBERS = 1 << 22  # at a time
_TIE = 1e-9


class GroupTest(NamedTuple):
    """The scores of segments, the largest score after each flip, and what intervals need."""

    score: FloatArray
    largest: FloatArray
    cell_variance: FloatArray
    squares: FloatArray  # of S; of S W; of W

    def limits(
        self, sums: Sums, reach: float, found: npt.NDArray[np.bool_]
    ) -> tuple[FloatArray, FloatArray]:
        """Return the interval of each gap, which excludes 0 exactly if the segment was found."""
        prob = (sums.label + sums.residual) / sums.weight
        gap = sums.residual / sums.weight
        if np.isinf(reach):
            return prob - 1, prob
        most = reach**2
        square, mixed, of_weight = self.squares
        leading = sums.weight**2 - most * of_weight
        middle = sums.residual * sums.weight - most * mixed
        last = sums.residual**2 - most * square
        bounded = leading > _TIE * sums.weight**2  # of equal groups, only rounding is left
        scale = np.where(bounded, leading, 1.0)
        root = np.sqrt(np.maximum(middle**2 - leading * last, 0.0))
        low = np.where(bounded, (middle - root) / scale, -1.0)
        high = np.where(bounded, (middle + root) / scale, 1.0)
        # Rounding must not decide on which side of 0 an end is.
        low = np.where(found, low, np.minimum(low, 0.0))
        high = np.where(found, high, np.maximum(high, 0.0))
        return np.clip(low, prob - 1, gap), np.clip(high, gap, prob)


def group_test(
    residual: csr_array, weight: csr_array, members: csr_array, draws: int,
    random: np.random.Generator,
) -> GroupTest:  # fmt: skip
    """Test segments, given the groups' sums of residuals and weights in each cell.

    Both have a row for each cell and a column for each group; `members` has the cells of segments.
    """
    s, w = members @ residual, members @ weight
    squares = np.array([(a * b).sum(axis=1) for a, b in ((s, s), (s, w), (w, w))])
    error = np.sqrt(squares[0])
    error[error == 0] = 1.0
    total = s.sum(axis=1)
    size = max(_NUMBERS // max(s.shape), 1)  # bounds the memory
    found = []
    for start in range(0, draws, size):
        signs: Any = random.integers(0, 2, (s.shape[1], min(size, draws - start))) * 2.0 - 1.0
        found.append(np.abs((s @ signs) / error[:, None]).max(axis=0))
    variance = (residual * residual).sum(axis=1)
    return GroupTest(total / error, np.sort(np.concatenate(found)), variance, squares)
