# ruff: noqa: SLF001
"""Simulate the coverage of the calibration summary with groups.

    python -m benchmarks.summary_groups [--sets 300]

Writes docs/summary_groups.csv: coverage and mean width of the 95% intervals of the AUROC, of
observed over expected, and of the calibration line. Labels have a logit of b + z + u, with u
N(0, spread) per group; the model predicts a logit of b + 1.2 z. The target is the value of many
groups.
"""

from __future__ import annotations

import argparse
import itertools
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks.monitoring import write_csv
from softcal.inference import summary

LEVEL = 0.95
BASES = {"0/1": -0.5, "rare 0/1": -3.0, "soft": -0.5}
SPREADS = (0.0, 0.2, 0.5)
GROUPS = ((9, 100, False), (9, 100, True), (9, 700, False), (20, 50, True), (60, 10, False))
NUMBERS = ("auroc", "observed_expected", "calibration_in_the_large", "intercept", "slope")


def drawn(rng: np.random.Generator, kind: str, spread: float, sizes: Any) -> Any:
    """Draw predictions and labels of groups, and return their atoms."""
    owner = np.repeat(np.arange(sizes.size), sizes)
    n = owner.size
    z = rng.normal(0, 1, n) + rng.normal(0, 0.3, sizes.size)[owner]
    rate = expit(BASES[kind] + z + rng.normal(0, spread, sizes.size)[owner])
    soft = kind == "soft"
    y = rng.beta(6 * rate, 6 * (1 - rate)) if soft else (rng.random(n) < rate).astype(np.float64)
    p = expit(BASES[kind] + 1.2 * z)
    return summary._Atoms(p, y, np.full(n, 1 / n), np.ones(n), owner, sizes.size)


def estimates(atoms: Any) -> list[Any]:
    """Return the estimates in the order of `NUMBERS`."""
    both = summary._auroc(atoms, LEVEL), summary._ratio(atoms, LEVEL)
    return [*both, *summary._recalibration(atoms, LEVEL)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=300)
    sets = parser.parse_args().sets
    rows = []
    for kind, spread in itertools.product(BASES, SPREADS):
        many = drawn(np.random.default_rng(9), kind, spread, np.full(4000, 100))
        true = [each.value for each in estimates(many)]
        for k, (groups, size, unequal) in enumerate(GROUPS):
            rng = np.random.default_rng([32, list(BASES).index(kind), round(10 * spread), k])
            hits, widths = np.zeros(5), np.zeros(5)
            for _ in range(sets):
                factor = rng.lognormal(0, 0.6, groups) if unequal else np.ones(groups)
                found = estimates(
                    drawn(rng, kind, spread, np.maximum((size * factor).astype(int), 5))
                )
                hits += [
                    each.low <= aim <= each.high for each, aim in zip(found, true, strict=True)
                ]
                widths += [each.high - each.low for each in found]
            row = {"labels": kind, "spread": spread, "groups": groups, "size": size}
            row |= {"unequal": unequal, "sets": sets}
            for name, hit, width in zip(NUMBERS, hits / sets, widths / sets, strict=True):
                row |= {name: round(hit, 4), f"{name}_width": round(width, 4)}
            rows.append(row)
    write_csv("summary_groups.csv", rows)


if __name__ == "__main__":
    main()
