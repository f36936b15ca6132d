"""Measure the intervals of gaps, the false passes of `check(max_gap)`, and the consistency band.

    .venv/bin/python -m benchmarks.gap_intervals [--bins 2000] [--output docs/gap_intervals.csv]

Writes docs/gap_intervals.csv, one row per cell: a kind of label, a true mean label, a prediction,
and a number of rows per bin. The bins of a cell are drawn once. They are judged alone, as tables of
5 bins, and as tables of 20 bins. Student's interval with the noise floor, which the library used
before, is measured on the same bins. One process, about a minute on an idle core.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from scipy.special import stdtrit

from benchmarks.paired import write_csv
from softcal import Bins
from softcal.inference.gaps import band_limits, gap_limits
from softcal.inference.intervals import noise_floor
from softcal.table.kernel import Sums, as_sums, totals

DOCS = Path(__file__).parent.parent / "docs"
TAIL = 0.025
SIZES = (6, 12, 40, 200, 2000)
ROWS_AT_ONCE = 2_000_000
MOST_ROWS = 1_000_000  # of a cell
JUDGED = 100  # rows from which `check` judges a bin
BANDS = 100  # tables of 5 bins whose band is computed
TOGETHER = (5, 20)

# The true mean label, and the prediction.
POINTS = (
    (0.001, 0.001), (0.003, 0.02), (0.021, 0.001), (0.02, 0.02), (0.15, 0.1), (0.5, 0.5),
    (0.93, 0.93), (0.979, 0.999), (0.998, 0.998), (0.9995, 0.99),
)  # fmt: skip
KINDS = (
    "0/1", "0/1, predictions vary", "0/1, weighted", "2 votes", "5 votes", "1 to 6 votes of panels",
    "a third 0/1, others exact", "half 0/1, half Beta", "Beta, 1", "Beta, 4", "Beta, 4, weighted",
    "Beta, 25", "nearly exact", "exponential",
)  # fmt: skip


def labels(kind: str, rate: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Draw labels of a kind with these means; return them and the number of votes, if given."""
    sides = np.maximum(np.stack((rate, 1 - rate)), 1e-12)
    if kind.startswith("0/1"):
        return (rng.random(rate.shape) < rate).astype(float), None
    if "votes" in kind:
        if kind.startswith("1 to 6"):  # items differ: the panels' shares are Beta distributed
            rate = rng.beta(*3 * sides)
            votes = rng.integers(1, 7, rate.shape)
        else:
            votes = np.full(rate.shape, int(kind[0]))
        return rng.binomial(votes, rate) / votes, votes
    if kind.startswith("Beta"):
        return rng.beta(*float(kind.split(", ")[1]) * sides), None
    if kind == "nearly exact":
        return rate + 0.15 * np.minimum(*sides) * rng.normal(size=rate.shape).clip(-6, 6), None
    if kind == "exponential":  # the smaller side is exponential; a value above 1 is drawn again
        small, rest = sides.min(axis=0), rng.random(rate.shape)
        side = -small * np.log1p(-rest * -np.expm1(-1 / small))
        return np.where(rate < 0.5, side, 1 - side), None
    single = rng.random(rate.shape) < (0.5 if kind.startswith("half") else 1 / 3)
    other = rate if kind.endswith("exact") else rng.beta(*3 * sides)
    return np.where(single, rng.random(rate.shape) < rate, other), None


def true_mean(kind: str, rate: float) -> float:
    """Return the mean label; it differs from the rate if values above 1 are drawn again."""
    if kind != "exponential":
        return rate
    small = min(rate, 1 - rate)
    mean = float(small - np.exp(-1 / small) / -np.expm1(-1 / small))
    return mean if rate < 0.5 else 1 - mean


def bins_of(
    kind: str, rate: float, prob: float, shape: tuple[int, int], rng: np.random.Generator
) -> Sums:
    """Return the sums of many bins, along the first axis; the second has length 1."""
    p = np.full(shape, prob)
    if kind.endswith("vary"):  # labels do not depend on where in the bin a prediction is
        p += rng.uniform(-1, 1, shape) * min(prob, 1 - prob, 0.05)
    y, votes = labels(kind, np.full(shape, rate), rng)
    weight = rng.exponential(1, shape).ravel() if kind.endswith("weighted") else None
    cell = np.repeat(np.arange(shape[0]), shape[1])
    m = None if votes is None else votes.ravel()
    found = totals(
        p.ravel(), np.clip(y, 0, 1).ravel(), weight, m, Bins.uniform(1), cell=cell, cells=shape[0]
    )
    assert found is not None, "these are probabilities"  # noqa: S101
    return as_sums(np.ascontiguousarray(np.moveaxis(found, 1, 0)))


def joined(parts: list[Sums], bins: int) -> Sums:
    """Return all bins as tables of this many bins."""
    lines = zip(*(list(part) for part in parts), strict=True)
    whole = [np.concatenate(line).reshape(-1) for line in lines]
    return Sums(*(line[: line.size // bins * bins].reshape(-1, bins) for line in whole))


def student_limits(s: Sums, tail: float) -> tuple[Any, Any]:
    """Return Student's limits, with a variance that is at least the known noise."""
    n, gap = s.weight**2 / s.weight_sq, s.residual / s.weight
    centered = np.maximum(s.residual_var - s.weight_sq * gap**2, 0)
    spread = np.maximum(centered, noise_floor(s)) * n / (n - 1)
    half = np.minimum(-stdtrit(n - 1, tail) * np.sqrt(spread) / s.weight, 2.0)
    return np.maximum(gap - half, -1), np.minimum(gap + half, 1)


def judged(s: Sums, gap: float, limits: Any) -> dict[str, float]:
    """Return how often limits contain the gap, how wide they are, and how often they pass."""
    low, high = limits(s, TAIL / s.count.shape[-1])
    close = 1e-12  # rounding
    inside = (low <= gap + close) & (gap - close <= high)
    most = np.maximum(-low, high)
    return {
        "coverage": float(inside.all(axis=-1).mean()),
        "width": float((high - low).mean()),
        "pass": float((most <= abs(gap) + close).all(axis=-1).mean()),
    }


def bands(s: Sums) -> tuple[float, float]:
    """Return the shares of bins within the band, and of tables within the simultaneous band."""
    each = [Sums(*(line[k] for line in s)) for k in range(min(BANDS, len(s.count)))]
    inside = [
        [(low <= gap) & (gap <= high) for low, high in (band_limits(t, TAIL / k) for k in (1, 5))]
        for t in each
        for gap in [t.residual / t.weight]
    ]
    alone, together = np.moveaxis(np.array(inside), 1, 0)
    return round(float(alone.mean()), 4), round(float(together.all(axis=-1).mean()), 4)


def measure(cell: tuple[str, tuple[float, float], int], bins: int, seed: int) -> dict[str, Any]:
    kind, (rate, prob), n = cell
    rng = np.random.default_rng(seed)
    bins = min(bins, MOST_ROWS // n)
    at_once = ROWS_AT_ONCE // n
    drawn = [
        bins_of(kind, rate, prob, (min(at_once, bins - start), n), rng)
        for start in range(0, bins, at_once)
    ]
    gap = prob - true_mean(kind, rate)
    out: dict[str, Any] = {"labels": kind, "rate": rate, "prediction": prob, "rows": n}
    for size in (1, *TOGETHER):
        s = joined(drawn, size)
        for name, limits in (("", gap_limits), ("student_", student_limits)):
            found = judged(s, gap, limits)
            out[f"{name}coverage_{size}"] = round(found["coverage"], 4)
            if size == 1:
                out[f"{name}width"] = round(found["width"], 6)
                judge = rate != prob and n >= JUDGED
                out[f"{name}false_pass"] = round(found["pass"], 4) if judge else ""
    calibrated = abs(gap) < 1e-12
    within = bands(joined(drawn, 5)) if calibrated else ("", "")
    out["band"], out["band_5"] = within
    return out


def summary(rows: list[dict[str, Any]], bins: int, console: Console) -> None:
    """Print the figures of docs/simulations.md."""
    for name in ("", "student_"):
        for size in (1, *TOGETHER):
            found = np.array([row[f"{name}coverage_{size}"] for row in rows])
            tables = np.array([min(MOST_ROWS // row["rows"], bins) // size for row in rows])
            chance = 2 * np.sqrt(0.945 * 0.055 / tables)
            console.print(
                f"{name}coverage of {size}: mean {found.mean():.4f}, lowest {found.min():.4f}, "
                f"{(found < 0.945).sum()} cells below 0.945, of these "
                f"{(found < 0.945 - chance).sum()} by two standard errors, {found.size} cells"
            )
        passes = np.array([row[f"{name}false_pass"] for row in rows if row["false_pass"] != ""])
        console.print(
            f"{name}false passes: highest {passes.max():.4f}, {(passes > 0.03).sum()} of "
            f"{passes.size} cells above 0.03"
        )
    right = [r["width"] / r["student_width"] for r in rows if r["student_coverage_1"] >= 0.945]
    console.print(
        f"width / Student's where that covers: median {np.median(right):.3f}, 90% quantile "
        f"{np.quantile(right, 0.9):.3f}, {len(right)} cells"
    )
    for key in ("band", "band_5"):
        found = np.array([row[key] for row in rows if row[key] != ""])
        console.print(f"{key}: mean {found.mean():.4f}, lowest {found.min():.4f}, {found.size}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bins", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=2027)
    parser.add_argument("--output", type=Path, default=DOCS / "gap_intervals.csv")
    args = parser.parse_args()
    console, rows = Console(), []
    cells = list(itertools.product(KINDS, POINTS, SIZES))
    for k, cell in enumerate(track(cells, console=console)):
        rows.append(measure(cell, args.bins, args.seed * 10_000 + k))
        if k % 50 == 0:
            write_csv(args.output, rows)
    write_csv(args.output, rows)
    summary(rows, args.bins, console)


if __name__ == "__main__":
    main()
