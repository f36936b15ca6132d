"""Simulate how far the map that `repair_preview` chooses is from the true curve.

Run `python benchmarks/method_choice.py 200` for 200 data sets per line.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, logit

from softcal.calibrators.base import Data
from softcal.calibrators.maps import MAPS
from softcal.calibrators.preview import BINARY_METHODS, split_folds

if TYPE_CHECKING:
    from collections.abc import Callable

    from softcal._validation.inputs import FloatArray

CURVES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "identity": lambda p: p,
    "temperature": lambda p: expit(logit(p) / 1.5),
    "Platt": lambda p: expit(0.8 * logit(p) - 0.5),
    "beta": lambda p: expit(0.5 * np.log(p) - 1.3 * np.log1p(-p) + 0.2),
    "two steps": lambda p: 0.1 + 0.4 * expit(25 * (p - 0.3)) + 0.4 * expit(25 * (p - 0.75)),
}
SIZES = ((200, 3), (1000, 3), (5000, 1))  # rows, votes per row
ERRORS = (0, 1, 2)  # the allowed distance from the lowest score, in standard errors


def drawn(rng: np.random.Generator, n: int) -> FloatArray:
    """Draw predictions."""
    return rng.beta(0.8, 1.2, n).clip(1e-4, 1 - 1e-4)


def trial(
    rng: np.random.Generator, curve: Callable[[FloatArray], FloatArray], n: int, votes: int
) -> list[tuple[str, float]]:
    """Return the chosen method and its squared distance from the curve, for each rule."""
    p, fresh, weight = drawn(rng, n), drawn(rng, 20_000), np.ones(n)
    y = rng.binomial(votes, curve(p)) / votes
    loss = {method: np.empty(n) for method in BINARY_METHODS}
    for fit_on, held_out in split_folds(n, 5, rng):
        data = Data(p[fit_on], y[fit_on], weight[fit_on])
        for method, found in loss.items():
            found[held_out] = (MAPS[method].fit(data).apply(p[held_out]) - y[held_out]) ** 2
    lowest = min(loss, key=lambda method: loss[method].mean())
    out = []
    for errors in ERRORS:
        worse = {method: found - loss[lowest] for method, found in loss.items()}
        chosen = next(
            method
            for method, each in worse.items()
            if each.mean() <= errors * each.std(ddof=1) / np.sqrt(n)
        )
        fitted = MAPS[chosen].fit(Data(p, y, weight))
        out.append((chosen, float(((fitted.apply(fresh) - curve(fresh)) ** 2).mean())))
    return out


def main(repeats: int) -> None:
    """Print one line per curve and size: mean distances, and how often histogram is chosen."""
    rng = np.random.default_rng(0)
    for n, votes in SIZES:
        for name, curve in CURVES.items():
            found = [trial(rng, curve, n, votes) for _ in range(repeats)]
            distances = [1e4 * np.mean([each[k][1] for each in found]) for k in range(len(ERRORS))]
            steps = [
                np.mean([each[k][0] == "histogram" for each in found]) for k in range(len(ERRORS))
            ]
            cells = [f"{x:.1f}" for x in distances] + [f"{x:.0%}" for x in steps]
            print(f"| {name} | {n:,} | {votes} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
