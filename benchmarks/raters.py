"""Measure the coverage and width of intervals with recurring raters, by simulation.

Rater j leans by N(0, tau) on the logit scale: the vote on item i is 1 with probability
sigmoid(theta_i + lean_j), theta ~ N(0, 1.5). The target is SMECE over new items and new raters.
Curves: "calibrated" predicts the mean over raters; "typical" predicts sigmoid(theta), which is off
by the leaning alone; "over-confident" predicts sigmoid(1.5 logit of the mean over raters).

Run `python -m benchmarks.raters` for the full grid of 396 cells (2,000 samples per cell; over an
hour on one core), or with `--samples` and `--cells` for a part of it. Cells are simulated in
random order, and the file is written after each. docs/raters.csv has the first 160 cells of that
order. `--speed 10000000` times ten million votes.
"""

from __future__ import annotations

import argparse
import itertools
import time
from functools import lru_cache
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import softcal as sc
from benchmarks.paired import write_csv
from softcal._validation.inputs import rows as checked_rows
from softcal.bins import Bins
from softcal.inference.smece import smece_interval
from softcal.inference.tests import calibration_test
from softcal.table.owners import Raters
from softcal.table.reliability import Reliability, from_rows
from softcal.votes import RowVotes

if TYPE_CHECKING:
    from collections.abc import Callable

Cell = tuple[int, int, int, float, str]
ITEMS = (200, 2_000, 20_000)
RATERS = (10, 30, 100, 1_000)
VOTES = (2, 5, 10)
LEANING = (0.0, 0.5, 1.0, 1.5)
CURVES = ("calibrated", "typical", "over-confident")
SPREAD = 1.5
BINS = Bins.of(10)
HEADER = (
    "items", "raters", "votes", "leaning", "curve", "samples", "smece", "coverage",
    "coverage_items_only", "width", "width_items_only", "width_in_errors", "rejected",
)  # fmt: skip
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(61)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Return the logistic function."""
    return np.asarray(1 / (1 + np.exp(-x)))


@lru_cache
def _mean_votes(leaning: float) -> tuple[np.ndarray, np.ndarray]:
    grid = np.linspace(-12, 12, 4001)
    return grid, np.asarray(sigmoid(grid[:, None] + leaning * _NODES) @ _WEIGHTS)


def over_raters(theta: np.ndarray, leaning: float) -> np.ndarray:
    """Return the mean probability of a vote over all raters."""
    return np.asarray(np.interp(theta, *_mean_votes(leaning)))


def predicted(theta: np.ndarray, leaning: float, curve: str) -> np.ndarray:
    """Return the predictions of a curve."""
    if curve == "typical":
        return sigmoid(theta)
    mean = over_raters(theta, leaning)
    return mean if curve == "calibrated" else sigmoid(1.5 * np.log(mean / (1 - mean)))


def true_smece(leaning: float, curve: str) -> float:
    """Return SMECE over all items and raters."""
    theta = np.linspace(-8, 8, 400_001) * SPREAD
    density = np.exp(-((theta / SPREAD) ** 2) / 2)
    p = predicted(theta, leaning, curve)
    place = BINS.guide.locate(p)
    gaps = np.bincount(place, density * (p - over_raters(theta, leaning)))
    return float(np.abs(gaps).sum() / density.sum())


def who_votes(rng: np.random.Generator, items: int, raters: int, votes: int) -> np.ndarray:
    """Return different raters for each item: from a random first one, in random steps."""
    step = np.array([k for k in range(1, raters) if gcd(k, raters) == 1])
    first = rng.integers(raters, size=(items, 1))
    return (first + rng.choice(step, (items, 1)) * np.arange(votes)) % raters


def sample(
    rng: np.random.Generator, items: int, raters: int, votes: int, leaning: float, curve: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return who votes on each item of a study, their votes, and the predictions."""
    theta = rng.normal(0, SPREAD, items)
    lean = rng.normal(0, leaning, raters)
    who = who_votes(rng, items, raters, votes)
    odds = np.exp(-theta)[:, None] * np.exp(-lean)[who]
    yes = rng.random(who.shape, dtype=np.float32) * (1 + odds) < 1
    return who, yes, predicted(theta, leaning, curve)


def table(who: np.ndarray, yes: np.ndarray, p: np.ndarray, raters: int) -> Reliability:
    """Return the table of a study, its sums of raters by `bincount`: every vote counts 1/m."""
    votes = who.shape[1]
    rel = from_rows(checked_rows(yes.mean(axis=1), p, None, votes), BINS)
    bins = len(BINS)
    key = (who * bins + BINS.guide.locate(p)[:, None]).ravel()
    residual = ((p[:, None] - yes) / votes).ravel()
    number = np.bincount(key, minlength=raters * bins)
    sums = np.bincount(key, residual, raters * bins)
    squares = np.bincount(key, residual * residual, raters * bins)
    values = np.array([sums, number / votes, squares, sums / votes, number / votes**2])
    filled = np.flatnonzero(number)
    names = [str(j) for j in range(raters)]
    own = Raters.of(names, np.array(np.divmod(filled, bins)), values[:, filled])
    return Reliability(rel.bins, rel.sums, raters=own)


def refuse_other_sums(rng: np.random.Generator, cell: Cell) -> None:
    """Compare the table and interval of one study with those that softcal makes of its votes."""
    who, yes, p = sample(rng, *cell)
    items, votes = who.shape
    long = {"item": np.repeat(np.arange(items), votes), "who": who.ravel(), "vote": yes.ravel() * 1}
    made = sc.Votes.from_long(long, item="item", label="vote", worker="who", classes=[0, 1])
    fast, slow = table(who, yes, p, cell[1]), sc.reliability(made, p, bins=BINS, raters=True)
    assert fast.raters is not None and slow.raters is not None  # noqa: S101, PT018
    order = [fast.raters.names.index(name) for name in slow.raters.names]
    for one, two in zip(fast.raters.values, slow.raters.values, strict=True):
        by_rater = dense(fast.raters, one)[order], dense(slow.raters, two)
        np.testing.assert_allclose(*by_rater, rtol=1e-11, atol=1e-11)
    one, two = ([x.low, x.high] for x in map(smece_interval, (fast, slow)))
    np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)


def dense(raters: Raters, values: np.ndarray) -> np.ndarray:
    """Return one of the sums as a matrix, with one row per rater."""
    out = np.zeros((raters.count, len(BINS)))
    out[raters.owner, raters.place] = values
    return out


def measured(cell: Cell, samples: int, seed: list[int]) -> dict[str, Any]:
    """Simulate one cell of the grid."""
    rng = np.random.default_rng(seed)
    truth = true_smece(cell[3], cell[4])
    refuse_other_sums(rng, cell)
    rows = []
    for _ in range(samples):
        rel = table(*sample(rng, *cell), cell[1])
        both = smece_interval(rel)
        items = smece_interval(Reliability(rel.bins, rel.sums))
        rejected = calibration_test(rel).pvalue < 0.05
        rows.append((both.low, both.high, items.low, items.high, both.value, rejected))
    low, high, items_low, items_high, value, rejected = np.array(rows).T
    numbers = (
        truth,
        np.mean((low <= truth) & (truth <= high)),
        np.mean((items_low <= truth) & (truth <= items_high)),
        np.mean(high - low),
        np.mean(items_high - items_low),
        np.mean(high - low) / (3.92 * value.std()),
        np.mean(rejected),
    )
    return dict(zip(HEADER, (*cell, samples, *(round(float(x), 4) for x in numbers)), strict=True))


def speed(votes: int, raters: int = 1_000, per_item: int = 5) -> None:
    """Time the sums of raters beside group-bys of pandas and a two-way bootstrap."""
    import pandas as pd

    rng = np.random.default_rng(0)
    items = votes // per_item
    p = rng.random(items)
    row = np.repeat(np.arange(items, dtype=np.int32), per_item)
    who = rng.integers(raters, size=row.size, dtype=np.int32)
    vote = (rng.random(row.size) < p[row]).astype(np.float64)
    part = np.full(row.size, 1 / per_item)
    single = RowVotes(row, who, vote, part, tuple(map(str, range(raters))))
    rows = checked_rows(np.bincount(row, vote) / per_item, p, None, per_item)

    def timed(what: str, call: Callable[[], object], times: int = 1) -> None:
        start = time.perf_counter()
        call()
        print(f"{what}: {(time.perf_counter() - start) * times:.2f} s", flush=True)

    timed("table without raters", lambda: from_rows(rows, BINS))
    timed("table with raters", lambda: from_rows(rows, BINS, votes=single))
    table = from_rows(rows, BINS, votes=single)
    timed("its interval", lambda: smece_interval(table))
    place = BINS.guide.locate(p)[row]
    frame = pd.DataFrame({"who": who, "bin": place, "s": part * (p[row] - vote)})

    def by_pandas() -> object:
        return frame.groupby(["who", "bin"])["s"].sum()

    timed("one group-by of pandas", by_pandas)

    def replicate() -> float:
        of_item = rng.multinomial(items, np.full(items, 1 / items))
        of_rater = rng.multinomial(raters, np.full(raters, 1 / raters))
        weight = of_item[row] * of_rater[who] * part
        sums = np.bincount(place, weight * (p[row] - vote))
        return float(np.abs(sums).sum() / weight.sum())

    timed("two-way bootstrap, 200 replicates (one timed)", replicate, 200)


def summarize(found: list[dict[str, Any]]) -> None:
    """Print how many cells keep their coverage, the widths, and the size of the test."""
    enough = [row for row in found if row["raters"] >= 30]
    covered = np.mean([row["coverage"] >= 0.945 for row in enough])
    print(f"cells with 30 raters or more: {len(enough)}, coverage >= .945 in {covered:.1%}")
    for what, rows in (("all cells", found), ("30 raters or more", enough)):
        width = np.mean([row["width_in_errors"] for row in rows])
        print(f"{what}: width in 3.92 standard deviations of the estimate {width:.2f} on average")
    for raters in RATERS:
        some = [row for row in found if row["raters"] == raters and row["curve"] == "calibrated"]
        size = [row["rejected"] for row in some]
        print(f"{raters} raters: rejects {np.min(size):.3f} to {np.max(size):.3f} of calibrated")


def main() -> None:
    """Simulate the cells, print each, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2_000)
    parser.add_argument("--cells", type=int, help="a random choice of this many cells")
    parser.add_argument("--items", type=int, nargs="*", default=ITEMS)
    parser.add_argument("--minutes", type=float, default=np.inf, help="stop after this time")
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--speed", type=int, help="time this many votes instead")
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/raters.csv"))
    args = parser.parse_args()
    if args.speed:
        speed(args.speed)
        return
    grid = list(itertools.product(args.items, RATERS, VOTES, LEANING, CURVES))
    # Without leaning the first two curves are the same.
    grid = [cell for cell in grid if cell[3] or cell[4] != "typical"]
    chosen = np.random.default_rng(args.seed).permutation(len(grid))[: args.cells]
    found, start = {}, time.monotonic()
    print(*HEADER)
    for k in chosen.tolist():
        if time.monotonic() - start > 60 * args.minutes:
            break
        found[k] = measured(grid[k], args.samples, [args.seed, k])
        print(*found[k].values(), flush=True)
        write_csv(args.output, [found[j] for j in sorted(found)])
    summarize(list(found.values()))


if __name__ == "__main__":
    main()
