"""A table that grows batch by batch, for loops that never hold all rows at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softcal.door import arrays, inputs
from softcal.table import kernel
from softcal.table.bins import Bins
from softcal.table.reliability import Reliability

if TYPE_CHECKING:
    import numpy.typing as npt

    from softcal.table.bins import BinsLike


class StreamingReliability:
    """A reliability table fed batch by batch: of constant size, and that of all rows at once.

    However the rows are cut into batches and in whatever order these come, the counts are exactly
    those of `reliability` on all rows and the sums are its sums to rounding. For a torch training
    loop there is `softcal.torchmetric.SoftCalibrationError`.

    Parameters
    ----------
    bins : int, Bins or edges, default 10
        As in `reliability`.

    Examples
    --------
    >>> stream = StreamingReliability(bins=2)
    >>> for y_true, y_prob in [([0.0, 0.5], [0.2, 0.4]), ([1.0], [0.9])]:
    ...     stream.update(y_true, y_prob)
    StreamingReliability(n=2, bins=2)
    StreamingReliability(n=3, bins=2)
    >>> round(stream.smece, 4)
    0.0667
    >>> stream.reliability
    Reliability(n=3, bins=2)
    """

    def __init__(self, bins: BinsLike = 10) -> None:
        self._reliability = Reliability.empty(Bins.of(bins))

    @property
    def reliability(self) -> Reliability:
        """The table of the rows so far: frozen, so a later batch does not change it."""
        return self._reliability

    @property
    def smece(self) -> float:
        """SMECE of the rows so far. `reliability` has every other number."""
        return self._reliability.smece

    def update(
        self,
        y_true: npt.ArrayLike,
        y_prob: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        n_votes: npt.ArrayLike | None = None,
    ) -> StreamingReliability:
        """Add a batch; the parameters are those of `reliability`.

        A batch without rows, or whose weights are all 0, adds nothing. A batch that breaks a rule
        is refused as a whole, and the table stays as it was.

        Returns
        -------
        StreamingReliability
            Itself.

        Raises
        ------
        InputError, InputTypeError
            As `reliability` does.
        """
        if _is_empty(y_true, "y_true") and _is_empty(y_prob, "y_prob"):
            return self
        rows = inputs.rows(y_true, y_prob, sample_weight, n_votes)
        sums = kernel.bin_sums(rows, self._reliability.bins)
        if sums is None:
            inputs.refuse(rows)
        self._reliability += Reliability(self._reliability.bins, sums)
        return self

    def reset(self) -> StreamingReliability:
        """Forget all rows, as at the start of an epoch; the bins stay."""
        self._reliability = Reliability.empty(self._reliability.bins)
        return self

    def __add__(self, other: StreamingReliability) -> StreamingReliability:
        """Merge two streams with the same bins into a new one, of the rows of both.

        Raises
        ------
        BinMismatchError
            If the bins differ.

        Examples
        --------
        >>> morning = StreamingReliability().update([0.5], [0.4])
        >>> morning + StreamingReliability().update([1.0], [0.9])
        StreamingReliability(n=2, bins=10)
        """
        if not isinstance(other, StreamingReliability):
            return NotImplemented
        both = StreamingReliability(self._reliability.bins)
        both._reliability = self._reliability + other._reliability
        return both

    def __radd__(self, other: object) -> StreamingReliability:
        """Let `sum(streams)`, which starts from 0, work."""
        return self if other == 0 else NotImplemented

    def __repr__(self) -> str:
        return f"Streaming{self._reliability!r}"


def _is_empty(column: npt.ArrayLike, name: str) -> bool:
    return arrays.to_array(column, name).shape == (0,)
