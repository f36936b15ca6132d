"""SMECE and ECE of the five models on many data sets at once, under both readings of the bins.

The paper's bins are [(b-1)/B, b/B): read literally, a prediction of exactly 1 is in none of them,
though it counts in n. The library closes the last bin. Both come out of one pass here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softcal.paper.generative import HALF_WIDTH, predictions
from softcal.table.bins import Bins

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from softcal.door.inputs import FloatArray

READINGS = ("open", "closed")
"""Of the last bin: as the paper writes it, and as the library has it."""

METRICS = ("smece", "ece")

_ROWS_AT_ONCE = 1 << 14  # what stays in a core's cache


def silent(_rows: int) -> None:
    """Report no progress."""


def scores(
    rng: np.random.Generator,
    k: float,
    n: int,
    replications: int = 1,
    *,
    bins: int = 10,
    step: Callable[[int], object] = silent,
) -> FloatArray:
    """Draw data sets and score the five models on each.

    The draws are the paper's, in its order: n inputs from (-3, 3), then n numbers for model E,
    for one data set after another. `step` is told how many rows are done, for a progress bar.

    Returns
    -------
    ndarray of shape (2, 2, 5, replications)
        By reading (`READINGS`), metric (`METRICS`), model (`MODELS`) and data set.
    """
    edges = Bins.uniform(bins)
    parts = []
    # In one thread: batches that fit a cache are too short for threads to gain anything here.
    for x, e in _batches(rng, n, replications):
        parts.append(_score(x, e, k, edges))
        step(x.size)
    return np.concatenate(parts, axis=-1)


def _batches(
    rng: np.random.Generator, n: int, replications: int
) -> Iterator[tuple[FloatArray, FloatArray]]:
    at_once = max(1, _ROWS_AT_ONCE // n)
    for start in range(0, replications, at_once):
        count = min(at_once, replications - start)
        x, e = np.empty((count, n)), np.empty((count, n))
        for row in range(count):
            x[row] = rng.uniform(-HALF_WIDTH, HALF_WIDTH, n)
            e[row] = rng.uniform(0, 1, n)
        yield x, e


def _score(x: FloatArray, e: FloatArray, k: float, bins: Bins) -> FloatArray:
    from softcal.table.compiled import residual_scores

    models = predictions(k, x, e)
    hard = (x >= 0).astype(np.float64)
    out = np.empty((len(models), len(READINGS), len(METRICS), len(x)))
    for p, scored in zip(models.values(), out, strict=True):
        residual_scores(p, models["A"], hard, bins.edges, bins.guide.starts, scored)
    return out.transpose(1, 2, 0, 3)
