"""What a first table says of later ones: gaps without the noise, and whose noise it is.

A squared residual has an item's part and a vote's part; `softcal.planning.forecast` says which.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np

from softcal.errors import InputError
from softcal.inference.gaps import noise_floor

if TYPE_CHECKING:
    from softcal.door.inputs import FloatArray
    from softcal.table.kernel import Sums
    from softcal.table.reliability import Reliability

FEWEST_ITEMS = 50
"""Below this neither a pilot nor a plan is worth its name, and widths need not fall with n."""


class Learned(NamedTuple):
    """Per item and bin, as `softcal.planning.forecast.Assumptions` lists them."""

    share: FloatArray
    gap: FloatArray
    item_var: FloatArray
    vote_var: FloatArray
    prob_var: FloatArray
    fixed_votes: int | None


def learned(rel: Reliability) -> Learned:
    """Read a pilot; refuse one that says too little."""
    if rel.clusters is not None:
        message = (
            "a plan takes rows as independent, and this pilot was built with groups: it would ask "
            "for too few. Build the pilot of one row per group, and plan the number of groups."
        )
        raise InputError(message)
    _refuse_bad_pilot(rel)
    s = rel.sums
    share = s.count / rel.n
    gap = s.residual / rel.n * _shrinkage(s)
    item, vote, fixed = _split_by_votes(s)
    # However the noise falls, a mean square is not below the squared mean. What the items' part
    # gains by that the votes' loses, so that both still add up to what was seen.
    least = np.divide(gap**2, share, out=np.zeros_like(gap), where=share > 0) * rel.n
    at_least = np.minimum(np.maximum(item, least), s.residual_var)
    kept = np.divide(s.residual_var - at_least, s.residual_var - item,
                     out=np.ones_like(gap), where=s.residual_var > item)  # fmt: skip
    return Learned(share, gap, at_least / rel.n, kept * vote / rel.n, s.prob_var / rel.n, fixed)


def _shrinkage(s: Sums) -> float:
    """Give the factor that takes off the gaps what noise has added to their squares."""
    variance = np.maximum(s.residual_var, noise_floor(s))
    squares = np.divide(s.residual**2, variance, out=np.zeros_like(variance), where=variance > 0)
    seen, by_noise = float(squares.sum()), int((s.count > 0).sum())
    return math.sqrt(1 - by_noise / seen) if seen > by_noise else 0.0


def _split_by_votes(s: Sums) -> tuple[FloatArray, FloatArray, int | None]:
    """Tell the items' part of the squared residuals from the votes'; sums over rows, per bin."""
    squares, zeros = s.residual_var, np.zeros_like(s.residual_var)
    if not s.votes.any():
        return squares, zeros, 0 if s.label_var.any() else 1
    if not s.repeated.any():
        return squares, zeros, 1
    # y(1-y) m/(m-1) is unbiased for y*(1-y*); a row of one vote says nothing of it, and bins
    # that have only such rows borrow the others' mean.
    seen = s.label_var + s.vote_noise
    mean = seen.sum() / s.repeated.sum()
    per_row = np.divide(seen, s.repeated, out=np.full_like(seen, mean), where=s.repeated > 0)
    single = s.count - s.repeated
    return squares - s.vote_noise - single * per_row, per_row * s.count, None


def _refuse_bad_pilot(rel: Reliability) -> None:
    s = rel.sums
    if rel.n < FEWEST_ITEMS:
        refuse_small_pilot(rel.n)
    if (s.weight != s.count).any():
        message = "a pilot must have no weights: make it without them."
        raise InputError(message)
    silent = int((s.votes < s.count).sum())
    if s.votes.any() and silent:
        message = (
            f"a pilot must say the votes of every item, or of none: in {silent} of {s.count.size} "
            "bins some are missing. Make all parts of it with numbers of votes."
        )
        raise InputError(message)


def refuse_small_pilot(n: int) -> NoReturn:
    """Refuse a pilot of so few items that it says nothing."""
    message = (
        f"a pilot needs at least {FEWEST_ITEMS} items: this one has {n}. State what you expect."
    )
    raise InputError(message)
