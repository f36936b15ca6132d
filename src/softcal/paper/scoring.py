"""SMECE and ECE of the five models on many data sets at once, under both readings of the bins.

The paper's bins are [(b-1)/B, b/B): read literally, a prediction of exactly 1 is in none of them,
though it counts in n. The library closes the last bin. Both come out of one pass here.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from softcal.bins import Bins
from softcal.paper.generative import HALF_WIDTH, predictions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from softcal.inputs import FloatArray

READINGS = ("open", "closed")
"""Of the last bin: as the paper writes it, and as the library has it."""

METRICS = ("smece", "ece")

_ROWS_AT_ONCE = 1 << 14  # what stays in a core's cache
_BATCHES_AT_ONCE = 64


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
    from concurrent.futures import ThreadPoolExecutor

    edges = Bins.uniform(bins)
    batches = _batches(rng, n, replications)
    parts = []
    with ThreadPoolExecutor() as pool:
        while some := list(islice(batches, _BATCHES_AT_ONCE)):  # not all: memory stays bounded
            for part in pool.map(lambda b: _score(b[0], b[1], k, edges), some):
                parts.append(part)
                step(part.shape[-1] * n)
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
    from softcal.compiled import add_residuals

    models = predictions(k, x, e)
    soft = models["A"]
    hard = (x >= 0).astype(np.float64)
    out = np.empty((len(READINGS), len(METRICS), len(models), len(x)))
    for number, p in enumerate(models.values()):
        sums = np.zeros((len(x), 2, len(bins) + 1))
        add_residuals(p, soft, hard, bins.edges, bins._guide, sums)  # noqa: SLF001
        out[0, :, number] = np.abs(sums[:, :, :-1]).sum(axis=2).T
        sums[:, :, -2] += sums[:, :, -1]
        out[1, :, number] = np.abs(sums[:, :, :-1]).sum(axis=2).T
    out /= x.shape[1]
    return out
