"""A table written as plain data, and read back trusting nothing: the file may be anybody's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from softcal import saved_format
from softcal.errors import InputError
from softcal.table.bins import Bins
from softcal.table.clusters import Clusters
from softcal.table.kernel import SUM_NAMES, Sums

if TYPE_CHECKING:
    from softcal.door.inputs import FloatArray

FORMAT = "softcal.reliability"
SCHEMA = 1
_LARGEST_COUNT = 2**62  # in all bins together, so that it fits an int64 with room to add
_LARGEST_SUM = 1e300


def written(bins: Bins, sums: Sums, clusters: Clusters | None) -> dict[str, Any]:
    """Give a table as plain numbers and lists; a sum that is 0 in every bin is left out."""
    saved: dict[str, Any] = {
        "format": FORMAT,
        "schema": SCHEMA,
        "bins": len(bins) if bins.is_uniform else bins.edges.tolist(),
        "sums": {
            name: values.tolist()
            for name, values in zip(SUM_NAMES, sums, strict=True)
            if values.any()
        },
    }
    if clusters is not None:
        saved["clusters"] = {
            "count": clusters.count,
            "residual": clusters.residual.tolist(),
            "weight": clusters.weight.tolist(),
        }
    return saved


def read(saved: dict[str, Any]) -> tuple[Bins, Sums, Clusters | None]:
    """Read back what `written` gave."""
    saved_format.refuse_other(saved, FORMAT, SCHEMA, "a saved reliability table")
    bins = Bins.of(saved.get("bins", 0))
    sums = saved.get("sums")
    if not isinstance(sums, dict) or not set(sums) <= set(SUM_NAMES):
        message = f"a saved table's 'sums' must be some of: {', '.join(SUM_NAMES)}."
        raise InputError(message)
    found = Sums(*(_read_sum(sums, name, len(bins)) for name in SUM_NAMES))
    _refuse_impossible(found, bins)
    return bins, found, _read_clusters(saved.get("clusters"), found)


def _read_sum(sums: dict[str, Any], name: str, n_bins: int) -> npt.NDArray[Any]:
    """Read one saved sum: a list of numbers of the right length and range."""
    whole = name == "count"
    values = sums.get(name, [0] * n_bins)
    high = _LARGEST_COUNT if whole else _LARGEST_SUM
    low = -high if name == "residual" else 0
    kinds = (int,) if whole else (int, float)
    if (
        not isinstance(values, list)
        or len(values) != n_bins
        or not all(type(v) in kinds and low <= v <= high for v in values)
    ):
        message = (
            f"a saved table's sum {name!r} must be a list of {n_bins} finite "
            f"{'whole numbers' if whole else 'numbers'}{'' if low else ', none negative'}."
        )
        raise InputError(message)
    return np.array(values, dtype=np.int64 if whole else np.float64)


def _refuse_impossible(sums: Sums, bins: Bins) -> None:
    """Refuse saved sums no data could give, rather than turn them into nonsense later."""
    more = 1 + 1e-9  # room for the rounding of honest sums
    weight = sums.weight * more
    prob = sums.label + sums.residual
    rounding = weight * 1e-9
    possible = (
        ((sums.count > 0) == (sums.weight > 0))
        & (sums.label <= weight)
        & (sums.residual_sq <= weight)
        & (sums.label_var <= weight)
        & (sums.residual**2 <= weight * sums.residual_sq * more + 1e-300)
        & (prob >= bins.edges[:-1] * sums.weight - rounding)
        & (prob <= bins.edges[1:] * weight + rounding)
    )
    if not possible.all() or sum(sums.count.tolist()) > _LARGEST_COUNT:
        message = (
            f"a saved table's sums contradict each other: {(~possible).sum()} of {len(bins)} bins "
            "have sums no rows can have. The file is damaged, or was made by something else."
        )
        raise InputError(message)


def _read_clusters(saved: Any, sums: Sums) -> Clusters | None:
    """Read the saved sums of groups, where there are any, trusting nothing."""
    if saved is None:
        return None
    n = sums.count.size
    try:
        count = saved["count"]
        squares = [np.array(saved[key], dtype=np.float64) for key in ("residual", "weight")]
    except (TypeError, ValueError, KeyError, OverflowError):
        count, squares = 0, []
    whole = type(count) is int and 0 < count <= int(sums.count.sum())
    if not whole or not all(_is_square_of_sums(square, n) for square in squares):
        message = (
            f"a saved table's 'clusters' must have a count and two symmetric squares of {n} by {n} "
            "finite numbers, 'residual' and 'weight'."
        )
        raise InputError(message)
    return Clusters(count, *squares)


def _is_square_of_sums(square: FloatArray, n: int) -> bool:
    return (
        square.shape == (n, n)
        and bool(np.isfinite(square).all())
        and np.array_equal(square, square.T)
        and bool((square.diagonal() >= 0).all())
    )
