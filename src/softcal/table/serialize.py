"""Convert a table to plain data, and read it back with full validation: files are not trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from softcal import _io
from softcal._validation.rules import LARGEST_VOTES, LARGEST_WEIGHT, SMALLEST_WEIGHT
from softcal.bins import Bins
from softcal.exceptions import InputError
from softcal.table.groups import MAX_SUMS, Clusters, GroupSums
from softcal.table.kernel import HARDENED, SUM_NAMES, Sums
from softcal.table.raters import RATER_SUMS, Raters

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray

FORMAT = "softcal.reliability"
SCHEMA = 2
_LARGEST_COUNT = 2**53  # over all bins, so that the sum of a thousand such tables fits an int64
_LARGEST_SUM = 1e300
_MORE = 1 + 1e-9  # tolerance for rounding in valid sums
_GROUP_SUMS = ("group", "bin", "residual", "weight")


def written(
    bins: Bins, sums: Sums, clusters: Clusters | None, raters: Raters | None = None
) -> dict[str, Any]:
    """Return a table as plain numbers and lists.

    A sum that is 0 in every bin is omitted. A sum that is unknown, from an older file, is None.
    """
    saved: dict[str, Any] = {
        "format": FORMAT,
        "schema": SCHEMA,
        "bins": len(bins) if bins.is_uniform else bins.edges.tolist(),
        "sums": {
            name: None if np.isnan(values).any() else values.tolist()
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
        if clusters.sums is not None:
            named = zip(_GROUP_SUMS, clusters.sums, strict=True)
            saved["clusters"]["sums"] = {name: values.tolist() for name, values in named}
    if raters is not None:
        saved["raters"] = {
            "names": list(raters.names),
            "rater": raters.rater.tolist(),
            "bin": raters.place.tolist(),
            **dict(zip(RATER_SUMS, raters.values.tolist(), strict=True)),
        }
    return saved


def read(saved: dict[str, Any]) -> tuple[Bins, Sums, Clusters | None, Raters | None]:
    """Return the parts of a table that `written` saved."""
    schema = _io.schema_of(saved, FORMAT, SCHEMA, "a saved reliability table")
    bins = Bins.of(saved.get("bins", 0))
    sums = saved.get("sums")
    if not isinstance(sums, dict) or not set(sums) <= set(SUM_NAMES):
        message = f"a saved table's 'sums' must be some of: {', '.join(SUM_NAMES)}."
        raise InputError(message)
    known = {name: read_sum(sums, name, len(bins)) for name in SUM_NAMES}
    found = Sums(**(with_hardened(known) if schema == 1 else known))
    refuse_impossible(found, bins.edges[:-1], bins.edges[1:])
    clusters = _read_clusters(saved.get("clusters"), found)
    return bins, found, clusters, _read_raters(saved.get("raters"), found)


def with_hardened(sums: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Add the sums that schema 1 did not store: known if every label is 0 or 1, else NaN."""
    if sums["label_var"].any():
        unknown = np.where(sums["count"] > 0, np.nan, 0.0)
        return {**sums, **dict.fromkeys(HARDENED, unknown)}
    votes = sums["votes"] > 0
    copies = {
        "hard_residual": sums["residual"],
        "hard_residual_sq": sums["residual_sq"],
        "hard_residual_var": sums["residual_var"],
        "outcome_prob_var": np.where(votes, 0.0, sums["prob_var"]),
        "outcome_residual_var": np.where(votes, 0.0, sums["residual_var"]),
    }
    return {**sums, **copies}


def read_sum(sums: dict[str, Any], name: str, n_bins: int) -> npt.NDArray[Any]:
    """Read one saved sum: a list of numbers of the right length and range, or None."""
    whole = name == "count"
    values = sums.get(name, [0] * n_bins)
    if values is None and name in HARDENED:
        return np.full(n_bins, np.nan)
    high = _LARGEST_COUNT if whole else _LARGEST_SUM
    low = -high if name in ("residual", "hard_residual") else 0
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


@np.errstate(over="ignore", invalid="ignore")  # a value that overflows is too large anyway
def refuse_impossible(sums: Sums, lows: FloatArray, highs: FloatArray) -> None:
    """Refuse saved sums that no rows in bins with these edges could have given."""
    # Unknown sums are NaN, for which every comparison is false.
    possible = ~np.logical_or.reduce(
        [low > high * _MORE for low, high in _in_order(sums, lows, highs)]
    )
    possible &= (sums.count > 0) == (sums.weight > 0)
    if not possible.all() or sum(sums.count.tolist()) > _LARGEST_COUNT:
        message = (
            f"a saved table's sums contradict each other: {(~possible).sum()} of {lows.size} bins "
            "have sums no rows can have. The file is damaged, or was written by another program."
        )
        raise InputError(message)


def _in_order(s: Sums, lows: FloatArray, highs: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    """Return pairs (a, b) with a <= b for any valid predictions, labels, and weights."""
    count = s.count.astype(np.float64)
    prob = s.label + s.residual
    rounding = s.weight * 1e-9
    return [
        (count * SMALLEST_WEIGHT, s.weight),
        (s.weight, count * LARGEST_WEIGHT),
        (s.weight**2, count * s.weight_sq),
        (s.weight_sq, s.weight**2),
        (s.label, s.weight),
        (s.residual_sq, s.weight),
        (abs(s.residual), np.sqrt(s.weight * s.residual_sq) + rounding),
        (abs(s.residual), np.sqrt(count * s.residual_var) + rounding),
        (s.residual_var, s.weight_sq),
        (s.prob_var, s.weight_sq / 4),
        (s.label_var, s.weight / 4),
        (s.repeated, count),
        (2 * s.repeated, s.votes),
        (s.votes, count * LARGEST_VOTES),
        (s.vote_floor, s.prob_var),
        (s.vote_noise, s.label_var),
        (s.hard_residual_sq, s.weight),
        (abs(s.hard_residual), np.sqrt(s.weight * s.hard_residual_sq) + rounding),
        (s.hard_residual_var, s.weight_sq),
        (s.outcome_prob_var, s.prob_var + rounding),
        (s.outcome_residual_var, s.residual_var + rounding),
        (lows * s.weight, prob + rounding),
        (prob, highs * s.weight + rounding),
    ]


def _read_clusters(saved: Any, sums: Sums) -> Clusters | None:
    """Read and validate the saved sums of groups, if there are any."""
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
    clusters = Clusters(count, *squares, sums=_read_group_sums(saved.get("sums"), n))
    refuse_other_groups(clusters, sums)
    return clusters


def _read_group_sums(saved: Any, n_bins: int) -> GroupSums | None:
    """Read and validate the saved sums of each group; files of earlier versions have none."""
    if saved is None:
        return None
    try:
        group, place, residual, weight = (saved[name] for name in _GROUP_SUMS)
        whole = all(type(each) is int and each >= 0 for each in (*group, *place))
        keys = np.array([group, place], dtype=np.int64)
        values = np.array([residual, weight], dtype=np.float64)
        fits = (
            whole
            and 0 < keys.shape[1] == values.shape[1] <= MAX_SUMS
            and np.array_equal(np.unique(keys[0]), np.arange(keys[0].max() + 1))
            and bool((keys[1] < n_bins).all())
            and np.unique(keys, axis=1).shape == keys.shape
            and bool(np.isfinite(values).all())
        )
    except (TypeError, ValueError, KeyError, OverflowError):
        fits = False
    if not fits:
        message = (
            "a saved table's 'sums' of groups must have, for each group and bin, the sums "
            "'residual' and 'weight'."
        )
        raise InputError(message)
    return GroupSums.of(keys[0], keys[1], values)


def _is_square_of_sums(square: FloatArray, n: int) -> bool:
    return (
        square.shape == (n, n)
        and bool(np.isfinite(square).all())
        and np.allclose(square, square.T, rtol=1e-9, atol=1e-12 * np.abs(square).max())
        and bool((square.diagonal() >= 0).all())
    )


def refuse_other_groups(groups: Clusters, s: Sums) -> None:
    """Refuse products of sums that no groups of these rows could have given."""
    if not _are_possible(groups, s):
        message = (
            "a saved table's 'clusters' contradict its sums: no groups of its rows can have these. "
            "The file is damaged, or was written by another program."
        )
        raise InputError(message)


@np.errstate(over="ignore", invalid="ignore")  # a value that overflows is too large anyway
def _are_possible(groups: Clusters, s: Sums) -> bool:
    residual, weight = groups.residual, groups.weight
    squares = all(_is_square_of_sums(each, s.count.size) for each in (residual, weight))
    if not squares or groups.count > s.count.sum():
        return False
    root, weight_root = np.sqrt(residual.diagonal()), np.sqrt(weight.diagonal())
    rounding = 1e-9  # of the weight: the squares of small residuals may underflow
    own = groups.sums
    if own is not None:
        by_bin = (np.bincount(own.place, x, s.count.size) for x in own.values)
        wrong = [abs(x - whole) for x, whole in zip(by_bin, (s.residual, s.weight), strict=True)]
        alone = (own.weight <= 0) | (abs(own.residual) > own.weight * _MORE)
        if alone.any() or any((each > rounding * s.weight).any() for each in wrong):
            return False
    in_order = [
        (abs(residual), weight),
        (abs(residual), np.outer(root, root) + rounding * weight),
        (weight, np.outer(weight_root, weight_root)),
        (weight_root, s.weight),
        (s.weight, weight_root * np.sqrt(groups.count)),
        (s.weight_sq, weight_root**2),
        (abs(s.residual), root * np.sqrt(groups.count) + rounding * s.weight),
    ]
    return all((low <= high * _MORE).all() for low, high in in_order)


def _read_raters(saved: Any, sums: Sums) -> Raters | None:
    """Read and validate the saved sums of raters, if there are any."""
    if saved is None:
        return None
    n = sums.count.size
    try:
        names, rater, place = (saved[key] for key in ("names", "rater", "bin"))
        whole = all(type(each) is int and 0 <= each < 2**31 for each in (*rater, *place))
        rater, place = (np.array(each, dtype=np.int64) for each in (rater, place))
        values = np.array([saved[key] for key in RATER_SUMS], dtype=np.float64)
        fits = (
            whole
            and all(type(name) is str for name in names)
            and len(set(names)) == len(names)
            and values.shape == (len(RATER_SUMS), rater.size)
            and np.array_equal(np.unique(rater), np.arange(len(names)))
            and bool((place < n).all())
            and bool((np.diff(rater * n + place) > 0).all())
        )
    except (TypeError, ValueError, KeyError, OverflowError):
        fits = False
    if not fits:
        message = (
            "a saved table's 'raters' must have different names and, for each rater and bin, in "
            f"increasing order, the sums {', '.join(RATER_SUMS)}."
        )
        raise InputError(message)
    raters = Raters(tuple(names), rater, place, values)
    refuse_other_raters(raters, sums)
    return raters


@np.errstate(over="ignore", invalid="ignore")  # a value that overflows is too large anyway
def refuse_other_raters(raters: Raters, s: Sums) -> None:
    """Refuse sums of raters that no votes on these rows could have given."""
    residual, weight, residual_sq, mixed, weight_sq = raters.values
    by_bin = [np.bincount(raters.place, row, s.count.size) for row in (residual, weight)]
    rounding = 1e-9
    in_order = [
        (-weight, np.zeros_like(weight)),
        (abs(residual), weight),
        (residual_sq, weight_sq),
        # The square of a tiny residual is 0, but its product with a weight may not be.
        (abs(mixed), np.sqrt(residual_sq * weight_sq) + 1e-150 * weight_sq),
        (weight_sq, weight**2),
        (-residual_sq, np.zeros_like(weight)),
        (abs(by_bin[0] - s.residual), rounding * s.weight),
        (abs(by_bin[1] - s.weight), rounding * s.weight),
    ]
    if not np.isfinite(raters.values).all() or not all(
        (low <= high * _MORE).all() for low, high in in_order
    ):
        message = (
            "a saved table's 'raters' contradict its sums: no votes on its rows can have these. "
            "The file is damaged, or was written by another program."
        )
        raise InputError(message)
