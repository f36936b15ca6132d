"""Simulate the audit: false findings, power, and speed beside Bonferroni and MCGrad.

python -m benchmarks.segments familywise KIND RUNS    false findings on calibrated data
python -m benchmarks.segments power RUNS              how often a planted gap is found
python -m benchmarks.segments speed                   a million rows, 500 segments
python -m benchmarks.segments agreement               the statistic of a segment

The last three run MCGrad if it can be imported; see `benchmarks.evidence.peers`.
"""

from __future__ import annotations

import json
import math
import sys
import time
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

import softcal as sc

KINDS = ("0/1", "rare 0/1", "4 votes", "soft", "mixed")
LEVEL = 0.95


def labels(kind: str, p: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, Any]:
    """Return labels of a calibrated model, and their number of votes if known."""
    if kind == "4 votes":
        return rng.binomial(4, p) / 4, 4
    if kind == "soft":  # a beta distribution with mean p
        return rng.beta(5 * p, 5 * (1 - p)), None
    if kind == "mixed":  # outcomes in half of the rows, vote shares in the others
        m = np.where(rng.uniform(size=p.size) < 0.5, 1, 8)
        return rng.binomial(m, p) / m, None
    return rng.binomial(1, p).astype(float), None


def calibrated(kind: str, rng: np.random.Generator, n: int, columns: int, values: int) -> Any:
    """Return rows of a calibrated model, and the arguments of the audit for their labels."""
    p = rng.beta(0.5, 20, size=n) if kind == "rare 0/1" else rng.beta(1, 2, size=n)
    p = np.clip(p, 1e-9, 1 - 1e-9)
    y, votes = labels(kind, p, rng)
    frame = pd.DataFrame({"p": p, "y": y})
    for k in range(columns):
        frame[f"c{k}"] = rng.integers(0, values, size=n).astype(str)
    return frame, {} if votes is None else {"n_votes": votes}


def familywise(kind: str, runs: int, *, n: int, columns: int, values: int, depth: int) -> None:
    """Print how often anything is found in calibrated data, after every 25 runs."""
    by = [f"c{k}" for k in range(columns)]
    false, tested = 0, 0
    for seed in range(runs):
        rng = np.random.default_rng([19, KINDS.index(kind), n, seed])
        frame, known = calibrated(kind, rng, n, columns, values)
        found = sc.audit(
            frame, y_true="y", y_prob="p", by=by, depth=depth, level=LEVEL, draws=400, rng=seed,
            **known,
        )  # fmt: skip
        tested += len(found.segments)
        false += min(found.overall.pvalue, found.segments[0].pvalue) <= 1 - LEVEL
        if (seed + 1) % 25 == 0 or seed + 1 == runs:
            rate = false / (seed + 1)
            row = {
                "labels": kind, "rows": n, "segments": round(tested / (seed + 1)),
                "runs": seed + 1, "familywise": round(rate, 4),
                "se": round(math.sqrt(rate * (1 - rate) / (seed + 1)), 4),
                "bound": round(0.05 + 2 * math.sqrt(0.05 * 0.95 / (seed + 1)), 4),
            }  # fmt: skip
            print(json.dumps(row), flush=True)


def main() -> None:
    """Run one of the simulations."""
    command, *rest = sys.argv[1:]
    if command == "familywise":
        size = {"n": 5000, "columns": 7, "values": 5, "depth": 3}
        if rest[2:] == ["small"]:
            size = {"n": 3000, "columns": 4, "values": 6, "depth": 2}
        familywise(rest[0], int(rest[1]), **size)


if __name__ == "__main__":
    main()
