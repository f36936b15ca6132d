"""Cut columns of numbers into ranges with about the same number of rows, as segments."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softcal._validation.rules import is_whole
from softcal.exceptions import InputError
from softcal.sources.columns import Named

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from softcal._validation.inputs import FloatArray
    from softcal.sources.columns import Batch


class Ranges(NamedTuple):
    """The ranges of a column: [low, high), the last one closed."""

    column: str
    edges: FloatArray

    def names(self, values: Any) -> Any:
        """Return the range of each value of an Arrow array as text; a missing value has none."""
        import pyarrow as pa

        numbers = _numbers(values, self.column)
        ends = [f"{edge:.6g}" for edge in self.edges.tolist()]
        if len(set(ends)) < len(ends):  # then six digits do not tell the edges apart
            ends = [repr(edge) for edge in self.edges.tolist()]
        names = pa.array([f"{a} to {b}" for a, b in pairwise(ends)])
        at = self.edges[1:-1].searchsorted(numbers, side="right")
        return names.take(pa.array(at, mask=np.isnan(numbers)))


def ranges_of(batches: Iterable[Batch], features: Mapping[str, int]) -> tuple[Ranges, ...]:
    """Return the ranges of columns, given how many of each; the numbers are held in memory."""
    for name, count in features.items():
        if not is_whole(count) or count < 2:
            message = (
                f"features must divide each column into 2 or more ranges: {name!r} has {count!r}."
            )
            raise InputError(message)
    parts: dict[str, list[FloatArray]] = {name: [] for name in features}
    for batch in batches:
        for name, found in parts.items():
            found.append(_numbers(batch[Named(name)], name))
    return tuple(_cut(name, parts[name], count) for name, count in features.items())


def _cut(name: str, parts: list[FloatArray], count: int) -> Ranges:
    """Return ranges whose edges are values of the column. Equal values are in one range."""
    values = np.concatenate([np.empty(0), *parts])
    values = values[~np.isnan(values)]
    if not values.size or not np.isfinite(values).all():
        message = f"the column {name} cannot be cut into ranges: it needs finite numbers."
        raise InputError(message)
    at = np.linspace(0, 1, count + 1)
    edges = np.unique(np.quantile(values, at, method="inverted_cdf"))
    return Ranges(name, edges if edges.size > 1 else np.repeat(edges, 2))


def _numbers(values: Any, name: str) -> FloatArray:
    import pyarrow as pa

    try:
        found: FloatArray = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        message = (
            f"the column {name} cannot be cut into ranges: it must hold numbers. Use by= (--by) "
            "for a column of words."
        )
        raise InputError(message) from error
    return found
