"""Simulate how often the consistency band contains the gaps of calibrated models (1 minute).

python benchmarks/band.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import softcal as sc

REPEATS = 600


def calibrated_labels(rng: np.random.Generator, kind: str, p: Any) -> tuple[Any, dict[str, Any]]:
    """Draw labels with mean p; return them with the other arguments of the table."""
    n = p.size
    if kind == "groups":  # about five rows have a common effect
        groups = rng.integers(0, n // 5, n)
        return (rng.random(n // 5)[groups] < p).astype(float), {"groups": groups}
    if kind == "tight":
        return np.clip(p + rng.normal(0, 0.1, n) * np.minimum(p, 1 - p), 0, 1), {}
    if kind in {"0/1", "5 votes"}:
        votes = 1 if kind == "0/1" else 5
        return rng.binomial(votes, p) / votes, {"n_votes": votes}
    y = np.clip(rng.beta(4 * p + 1e-9, 4 - 4 * p + 1e-9), 0, 1)
    return y, {"sample_weight": rng.exponential(1, n)} if kind == "weighted" else {}


def try_band() -> None:
    rng = np.random.default_rng(1)
    print("kind       predictions     n   within the band: all bins' mean, worst bin; all together")
    for kind in ("0/1", "5 votes", "soft", "tight", "weighted", "groups"):
        for shape, (a, b) in {"uniform": (1, 1), "skewed": (0.3, 2)}.items():
            for n in (50, 300, 3000):
                inside, filled, together = np.zeros(10), np.zeros(10), 0
                for _ in range(REPEATS):
                    p = rng.beta(a, b, n)
                    y, options = calibrated_labels(rng, kind, p)
                    rel = sc.reliability(y, p, **options)
                    low, high = sc.consistency_band(rel)
                    inside += (low <= rel.gap) & (rel.gap <= high)
                    filled += rel.count > 0
                    low, high = sc.consistency_band(rel, simultaneous=True)
                    outside = (rel.gap < low) | (high < rel.gap)
                    together += not outside.any()
                often = filled > REPEATS / 2
                print(
                    f"{kind:10} {shape:11} {n:5,}   {inside.sum() / filled.sum():.3f} "
                    f"{(inside[often] / filled[often]).min():.3f} {together / REPEATS:.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    try_band()
