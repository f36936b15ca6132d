"""Simulate how often softcal's interval and the bootstrap's contain the true SMECE."""

from __future__ import annotations

import itertools
import math
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Any

from benchmarks.evidence.markdown import folded, table
from benchmarks.interval_coverage import Cell, bootstrap, simulate

if TYPE_CHECKING:
    from collections.abc import Iterable

DATA_SETS = 1000
BOOTSTRAPPED = 400
BINS = 15
SIZES, CURVES = (300, 1000), ("calibrated", "overconfident")
CELLS = [Cell("U-shaped", curve, n) for n, curve in itertools.product(SIZES, CURVES)]
LABELS = ("hard", "votes of 5", "exact soft")


def coverage_rows() -> list[dict[str, Any]]:
    """Simulate on all cores; return one row per kind of label and data."""
    settings = list(itertools.product(LABELS, CELLS))
    with ProcessPoolExecutor() as pool:
        ours = [pool.submit(simulate, cell, DATA_SETS) for cell in CELLS]
        boots = [
            pool.submit(bootstrap, label, cell, BINS, BOOTSTRAPPED) for label, cell in settings
        ]
        cells = list(itertools.chain.from_iterable(job.result() for job in ours))
        return [_joined(cells, job.result()) for job in boots]


def _joined(cells: Iterable[dict[str, Any]], boot: dict[str, Any]) -> dict[str, Any]:
    same = ("label", *Cell._fields, "bins")
    found = next(row for row in cells if all(row[key] == boot[key] for key in same))
    return found | boot


def share(value: float, of: int) -> str:
    """Return a share and its standard error."""
    return f"{value:.3f} ± {math.sqrt(max(value * (1 - value), 1 / of / 4) / of):.3f}"


def section(rows: list[dict[str, Any]]) -> str:
    """Return the coverage of both, and where the whole grid is."""
    lines = [
        [f"{row['label']}, {row['curve']}", f"{row['n']:,}", f"{row['theta']:.4f}",
         share(row["coverage"], DATA_SETS), f"{row['width']:.4f}",
         share(row["percentile_coverage"], BOOTSTRAPPED), f"{row['percentile_width']:.4f}",
         share(row["bca_coverage"], BOOTSTRAPPED)]
        for row in rows
    ]  # fmt: skip
    head = ("labels, model", "n", "true SMECE", "`smece_interval`", "width",
            "percentile bootstrap", "width", "BCa bootstrap")  # fmt: skip
    return "\n".join([
        "## Interval coverage\n",
        f"The table shows how often a 95% interval contains the true SMECE (± one standard error), "
        f"with {BINS} bins and U-shaped predictions. Each row has {DATA_SETS:,} data sets for "
        f"softcal, and {BOOTSTRAPPED} data sets with 400 resamples each for the bootstraps. Exact "
        "soft labels of a calibrated model have no noise, so every bootstrap interval there is the "
        "point 0. The file [coverage.csv](coverage.csv) has the whole grid, 630 cells of 300 "
        "data sets each, from `benchmarks/interval_coverage.py`.\n",
        folded(f"Coverage in {len(rows)} settings", table(head, lines, numbers_from=1)),
    ])  # fmt: skip
