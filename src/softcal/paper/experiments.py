"""The paper's four experiments. Each takes a generator and sizes, and returns a small result.

To get the paper's digits, run all four in order on one `numpy.random.default_rng(42)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from softcal.paper.generative import MODELS
from softcal.paper.scoring import scores, silent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from softcal.door.inputs import FloatArray

STEEPNESSES = (0.5, 1.0, 2.0, 5.0, 10.0, 50.0)
SIZES = (500, 1000, 2000, 5000, 10_000)

PAIRS = tuple("-".join(pair) for pair in combinations(MODELS, 2))
TIED_PAIR = "B-C"
"""The paper holds B and C to be equally good, and counts any order of them as right."""


@dataclass(frozen=True)
class Ranking:
    """Experiment 1: the five models scored once.

    `value` has shape (2, 2, 5): reading, metric, model, in the order of `READINGS`, `METRICS` and
    `MODELS`; `rank` is the same, from 1 for the least error.
    """

    k: float
    n: int
    value: FloatArray

    @property
    def rank(self) -> FloatArray:
        """The place of each model, 1 for the least error."""
        order = self.value.argsort(axis=-1, kind="stable").argsort(axis=-1, kind="stable")
        return (order + 1).astype(np.float64)


@dataclass(frozen=True)
class Sweep:
    """Experiment 2: the five models scored once for each k. `value` is (2, 2, 5, len(k))."""

    k: tuple[float, ...]
    n: int
    value: FloatArray


@dataclass(frozen=True)
class PairAccuracy:
    """Experiment 3: how often each pair is ranked in the claimed order.

    `value` has shape (2, 2, len(PAIRS), len(k)); `overall` is its mean over the ten pairs.
    """

    k: tuple[float, ...]
    n: int
    replications: int
    value: FloatArray

    @property
    def overall(self) -> FloatArray:
        """The mean over the pairs, shape (2, 2, len(k))."""
        mean: FloatArray = self.value.mean(axis=2)
        return mean


@dataclass(frozen=True)
class Spread:
    """Experiment 4: mean and standard deviation over replications, each (2, 2, 5, len(n))."""

    k: float
    n: tuple[int, ...]
    replications: int
    mean: FloatArray
    std: FloatArray


def experiment_1(
    rng: np.random.Generator,
    *,
    k: float = 2.0,
    n: int = 5000,
    bins: int = 10,
    step: Callable[[int], object] = silent,
) -> Ranking:
    """Score and rank the five models on one data set.

    Examples
    --------
    >>> experiment_1(np.random.default_rng(42)).value[0, 0].round(4)
    array([0.    , 0.0759, 0.1369, 0.0977, 0.2409])
    """
    return Ranking(k, n, scores(rng, k, n, bins=bins, step=step)[..., 0])


def experiment_2(
    rng: np.random.Generator,
    *,
    k: Sequence[float] = STEEPNESSES,
    n: int = 5000,
    bins: int = 10,
    step: Callable[[int], object] = silent,
) -> Sweep:
    """Score the five models on one data set for each steepness k."""
    values = [scores(rng, each, n, bins=bins, step=step)[..., 0] for each in k]
    return Sweep(tuple(k), n, np.stack(values, axis=-1))


def experiment_3(
    rng: np.random.Generator,
    *,
    k: Sequence[float] = STEEPNESSES,
    n: int = 1000,
    replications: int = 1000,
    bins: int = 10,
    step: Callable[[int], object] = silent,
) -> PairAccuracy:
    """Count how often each pair of models comes out in the paper's order A > B ~ C > D > E."""
    values = [ranked_right(scores(rng, each, n, replications, bins=bins, step=step)) for each in k]
    return PairAccuracy(tuple(k), n, replications, np.stack(values, axis=-1))


def ranked_right(value: FloatArray) -> FloatArray:
    """Give the share of data sets (last axis) in which each pair is in the claimed order."""
    letters = list(MODELS)
    shares = []
    for pair in PAIRS:
        better, worse = (letters.index(letter) for letter in pair.split("-"))
        right = value[:, :, better] < value[:, :, worse]
        shares.append(np.ones(right.shape[:2]) if pair == TIED_PAIR else right.mean(axis=-1))
    return np.stack(shares, axis=-1)


def experiment_4(
    rng: np.random.Generator,
    *,
    k: float = 2.0,
    n: Sequence[int] = SIZES,
    replications: int = 500,
    bins: int = 10,
    step: Callable[[int], object] = silent,
) -> Spread:
    """Score the five models over and over at growing n, to see what moves: mean or spread."""
    values = [scores(rng, k, each, replications, bins=bins, step=step) for each in n]
    return Spread(
        k,
        tuple(n),
        replications,
        np.stack([value.mean(axis=-1) for value in values], axis=-1),
        np.stack([value.std(axis=-1) for value in values], axis=-1),
    )
