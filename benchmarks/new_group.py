"""Simulate prediction intervals of a new group.

    .venv/bin/python -m benchmarks.new_group [--sets 100]

Writes docs/new_group.csv. The groups are those of `benchmarks.grouped`, and the new group has
unlimited rows, with the same distribution of predictions. The file has how often its mean gap and
its SMECE are within the intervals of `new_group`, for the calibrated and the miscalibrated model,
and their mean widths. It takes 1 minute on one idle core.
"""

from __future__ import annotations

import argparse
import itertools
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from scipy.special import ndtr, ndtri

import softcal as sc
from benchmarks.grouped import DOCS, LABELS, OF_ROWS, SHARP, SPREAD, drawn
from benchmarks.paired import write_csv

GROUPS = (8, 12, 20, 40, 120)
BINS = 10
GRID = ndtri((np.arange(20_000) + 0.5) / 20_000)


def new_truth(spread: float, sharp: float, rng: np.random.Generator) -> tuple[float, float]:
    """Return the mean gap and SMECE of a new group."""
    whole = np.sqrt(1 + spread**2 + OF_ROWS**2) * GRID + spread * rng.standard_normal()
    y, p = ndtr(whole / np.sqrt(1 + OF_ROWS**2)), ndtr(sharp * GRID)
    return float((p - y).mean()), sc.smece(y, p, bins=BINS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=100)
    sets = parser.parse_args().sets
    cells = list(itertools.product(GROUPS, ("equal", "unequal"), LABELS, SPREAD, (1.0, SHARP)))
    rows: list[dict[str, Any]] = []
    for number, cell in enumerate(track(cells, "cells", console=Console(stderr=True))):
        groups, size, label, spread, sharp = cell
        rng = np.random.default_rng([28, number])
        found = []
        for _ in range(sets):
            y, q, group, _ = drawn(groups, size, label, spread, rng)
            gap, smece = sc.new_group(y, ndtr(sharp * q), groups=group, bins=BINS)
            true_gap, true_smece = new_truth(spread, sharp, rng)
            found.append([
                gap.low <= true_gap <= gap.high, gap.high - gap.low, gap.tau,
                smece.low <= true_smece <= smece.high, smece.high - smece.low,
            ])  # fmt: skip
        names = ("gap_coverage", "gap_width", "tau", "smece_coverage", "smece_width")
        about = dict(zip(("groups", "sizes", "labels", "spread"), cell[:4], strict=True))
        means = dict(zip(names, np.mean(found, axis=0).round(5).tolist(), strict=True))
        rows.append({**about, "sharp": sharp, "sets": sets, **means})
        print(*rows[-1].values(), flush=True)
    write_csv(DOCS / "new_group.csv", rows)


if __name__ == "__main__":
    main()
