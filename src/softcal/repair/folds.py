"""Rows dealt into folds at random, the same way each time; rows of one group stay together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from softcal.door.rules import is_whole
from softcal.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    Indices = npt.NDArray[np.intp]


def folds(
    n_rows: int, n_folds: int, seed: int | None, groups: Indices | None = None
) -> Iterator[tuple[Indices, Indices]]:
    """Give, fold by fold, the rows to fit on and the rows held out.

    `groups` has the number of each row's group, from 0.
    """
    units = n_rows if groups is None else int(groups.max()) + 1
    if not is_whole(n_folds):
        message = f"the number of folds must be a whole number: got {n_folds!r:.60}."
        raise InputTypeError(message)
    if not 2 <= n_folds <= units:
        what = "rows" if groups is None else "groups"
        message = (
            f"the number of folds must be between 2 and the number of {what}, {units}: got "
            f"{n_folds}."
        )
        raise InputError(message)
    if seed is not None and (not is_whole(seed) or seed < 0):
        message = f"the seed must be a whole number, 0 or more: got {seed!r:.60}."
        raise InputError(message)
    of_unit = np.random.default_rng(seed).permutation(units) % n_folds
    fold = of_unit if groups is None else of_unit[groups]
    for number in range(n_folds):
        yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)
