"""Simulate coverage and width of the interval of a difference of two SMECE.

    .venv/bin/python benchmarks/paired.py [--scale 1.0]

Writes docs/paired.csv and prints it: the coverage and mean width of three 95% intervals for each
kind of label, size, and scenario. They are the separate interval (each model by itself, combined),
a paired percentile bootstrap (Gaussian, of the bins), and softcal's interval. It takes a few
minutes; `--scale 0.2` uses a fifth of the data sets and writes nothing.

Labels are drawn from pi = Phi(z1 + z2/2 + z3/2). A knows z1 and z2, B the same or z1 and z3, so
that Phi((z1 + z2/2)/sqrt(1.25)) is calibrated exactly, and true values are one-dimensional sums.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.special import ndtr, ndtri

from softcal._io import written_whole
from softcal.inference.comparison import DifferenceIntervals
from softcal.table.kernel import Sums, unknown_hardened

DOCS = Path(__file__).parent.parent / "docs"
KINDS = ("hard", "votes", "exact")
SIZES = ((300, 15, 1000), (1000, 15, 1000), (10_000, 15, 300), (1000, 50, 400))
ROWS_AT_ONCE = 300_000
BOOTSTRAPPED = 100  # data sets
DRAWS = 200  # for each


class Scenario(NamedTuple):
    """How the predictions of both models are made."""

    a: str
    b: str
    same: bool  # whether both models know the same


class Joint(NamedTuple):
    """Sums of joint tables, as `DifferenceIntervals` takes them."""

    a: Sums
    b: Sums
    cross: Any
    differing: Any


SCENARIOS = {
    "both calibrated": Scenario("cal", "cal", same=False),
    "over vs calibrated": Scenario("over", "cal", same=True),
    "nearly identical": Scenario("over", "less over", same=True),
    "nearly identical, calibrated": Scenario("cal", "tiny over", same=True),
    "equal, opposite sign": Scenario("plus", "minus", same=True),
    "exchangeable": Scenario("noisy", "noisy", same=True),
    "over vs local": Scenario("over", "local", same=False),
    "calibrated vs local": Scenario("cal", "local", same=False),
    "calibrated vs alternating": Scenario("cal", "alternating", same=True),
}


def model(name: str, cal: Any, n: int, n_bins: int, rng: np.random.Generator | None) -> Any:
    """Distort a calibrated prediction; local errors are about one standard error of a bin."""
    q = ndtri(np.clip(cal, 1e-12, 1 - 1e-12))
    factor = {"over": 1.6, "less over": 1.45, "tiny over": 1.08}
    if name in factor:
        return ndtr(factor[name] * q)
    if name == "noisy" and rng is not None:
        return ndtr(q + 0.4 * rng.standard_normal(q.shape))
    local = 0.8 * np.sqrt(0.2 * n_bins / n)
    side = 1 - 2 * (np.floor(cal * n_bins) % 2)
    shift = {"plus": 0.05, "minus": -0.05, "local": local, "alternating": 1.1 * local * side}
    return np.clip(cal + shift.get(name, 0.0), 0, 1)


def true_smece(name: str, n: int, n_bins: int) -> float:
    cal = (np.arange(400_000) + 0.5) / 400_000  # Phi of a standard normal is uniform
    p = model(name, cal, n, n_bins, None)
    return float(np.abs(np.bincount(located(p, n_bins), p - cal, n_bins)).sum() / cal.size)


def located(p: Any, n_bins: int) -> Any:
    return np.minimum((p * n_bins).astype(np.int64), n_bins - 1)


def labels(kind: str, pi: Any, rng: np.random.Generator) -> Any:
    if kind == "hard":
        return (rng.random(pi.shape) < pi).astype(np.float64)
    return rng.binomial(5, pi) / 5 if kind == "votes" else pi


def drawn(
    scenario: Scenario, kind: str, n: int, n_bins: int, sets: int, rng: np.random.Generator
) -> Joint:
    """Draw data sets and return the sums of their joint tables, one data set per row."""
    z1, z2, z3 = rng.standard_normal((3, sets, n))
    cal = ndtr((z1 + z2 / 2) / np.sqrt(1.25))
    cal_b = cal if scenario.same else ndtr((z1 + z3 / 2) / np.sqrt(1.25))
    y = labels(kind, ndtr(z1 + z2 / 2 + z3 / 2), rng)
    p_a = model(scenario.a, cal, n, n_bins, rng)
    p_b = model(scenario.b, cal_b, n, n_bins, rng)
    return joint_sums(y, p_a, p_b, 5 if kind == "votes" else 0, n_bins)


def joint_sums(y: Any, p_a: Any, p_b: Any, votes: int, n_bins: int) -> Joint:
    """Add up many data sets (rows) at once; 0 votes if the labels are not votes."""
    cell = located(p_a, n_bins) * n_bins + located(p_b, n_bins)
    cross = added(cell, n_bins**2, (p_a - y) * (p_b - y))
    return Joint(
        model_sums(y, p_a, votes, n_bins),
        model_sums(y, p_b, votes, n_bins),
        cross.reshape(len(y), n_bins, n_bins),
        (p_a != p_b).sum(axis=1),
    )


def model_sums(y: Any, p: Any, votes: int, n_bins: int) -> Sums:
    d = p - y
    count, label, residual, square, prob_var, label_var = (
        added(located(p, n_bins), n_bins, values)
        for values in (np.ones_like(d), y, d, d * d, p * (1 - p), y * (1 - y))
    )
    none = np.zeros_like(count)
    floor = prob_var / votes if votes else none
    return Sums(count, count, count, label, residual, square, square, prob_var, label_var,
                none, none, floor, none, **unknown_hardened(count.shape))  # fmt: skip


def added(cell: Any, cells: int, values: Any) -> Any:
    """Add up the values of each cell, separately for each row."""
    flat = (np.arange(len(cell))[:, None] * cells + cell).ravel()
    return np.bincount(flat, values.ravel(), len(cell) * cells).reshape(len(cell), cells)


def bootstrap(a: Sums, b: Sums, cross: Any, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Resample the bins as normal with their covariance; return percentiles of the difference."""
    k = cross.shape[-1]
    mean = np.concatenate([a.residual, b.residual], axis=1)[:BOOTSTRAPPED] / n
    covariance = np.zeros((len(mean), 2 * k, 2 * k))
    each = np.arange(k)
    covariance[:, each, each] = a.residual_var[:BOOTSTRAPPED]
    covariance[:, k + each, k + each] = b.residual_var[:BOOTSTRAPPED]
    covariance[:, :k, k:] = cross[:BOOTSTRAPPED]
    covariance[:, k:, :k] = np.swapaxes(cross[:BOOTSTRAPPED], 1, 2)
    covariance = covariance / n**2 - mean[:, :, None] * mean[:, None, :] / n
    covariance += 1e-9 * covariance.max() * np.eye(2 * k)  # empty bins have none
    root = np.linalg.cholesky(covariance)
    noise = rng.standard_normal((len(mean), DRAWS, 2 * k))
    again = np.abs(mean[:, None, :] + noise @ np.swapaxes(root, 1, 2))
    found = again[..., :k].sum(axis=-1) - again[..., k:].sum(axis=-1)
    return np.quantile(found, 0.025, axis=1), np.quantile(found, 0.975, axis=1)


def measured(limits: tuple[Any, Any], truth: float) -> list[float]:
    low, high = limits
    inside = (low <= truth + 1e-12) & (high >= truth - 1e-12)
    return [float(inside.mean()), float((high - low).mean())]


def simulate(name: str, kind: str, n: int, n_bins: int, sets: int) -> list[float]:
    """Return the true value, then coverage and width of the three intervals."""
    scenario = SCENARIOS[name]
    rng = np.random.default_rng([n, n_bins, list(SCENARIOS).index(name), KINDS.index(kind)])
    truth = 0.0
    if name != "exchangeable":
        truth = true_smece(scenario.a, n, n_bins) - true_smece(scenario.b, n, n_bins)
    at_once = ROWS_AT_ONCE // n
    parts: list[tuple[Any, Any, Any]] = []
    for start in range(0, sets, at_once):
        a, b, cross, differing = drawn(scenario, kind, n, n_bins, min(at_once, sets - start), rng)
        family = DifferenceIntervals(a, b, cross, differing)
        few = [] if len(parts) * at_once >= BOOTSTRAPPED else bootstrap(a, b, cross, n, rng)
        parts.append((family.separate(0.05), few, family.limits(0.05)))
    row = [truth]
    for k in range(3):
        found = [part[k] for part in parts if len(part[k])]
        low, high = (np.concatenate([limit[side] for limit in found]) for side in (0, 1))
        row += measured((low, high), truth)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the data sets to draw")
    scale = parser.parse_args().scale
    rows: list[dict[str, Any]] = []
    cells = [(k, s, name) for k in KINDS for s in SIZES for name in SCENARIOS]
    for kind, (n, n_bins, sets), name in track(cells, "simulating", console=Console(stderr=True)):
        sets = max(50, int(sets * scale))  # noqa: PLW2901
        truth, *found = simulate(name, kind, n, n_bins, sets)
        row = {"labels": kind, "n": n, "bins": n_bins, "scenario": name, "sets": sets}
        row |= {"true": round(truth, 6)}
        for method, place in (("separate", 0), ("bootstrap", 2), ("softcal", 4)):
            row |= {f"{method}_coverage": round(found[place], 4)}
            row |= {f"{method}_width": round(found[place + 1], 6)}
        rows.append(row)
    table = Table(*rows[0], title="coverage and mean width")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console(width=150).print(table)
    least = min(row["softcal_coverage"] for row in rows)
    print(f"lowest coverage of softcal's interval: {least:.3f}, {len(rows)} cells")
    if scale >= 1:
        write_csv(DOCS / "paired.csv", rows)


def write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    with written_whole(path) as beside, beside.open("w", newline="") as lines:
        writer = csv.DictWriter(lines, rows[0])
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
