"""Measure how often `rater_difference` rejects kinds of raters that do not differ, and that do.

Rater j leans by N(0, lean) on the logit scale. The kind of each rater is random, and `twist` moves
the votes of one kind up above a prediction of 0.5, and down below. `activity` is how much raters
vote: equal, log-normal, or Zipf. With `split`, raters of one kind rate each item. Run `python -m
benchmarks.rater_difference` (about half an hour on one core).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np

import softcal as sc
from benchmarks.paired import write_csv
from benchmarks.raters import sigmoid


class Cell(NamedTuple):
    """A kind of study."""

    items: int
    raters: int
    votes: int
    activity: str = "equal"
    rates: tuple[float, float] = (1.0, 1.0)  # of a beta distribution
    lean: float = 0.0
    noise: float = 0.5  # of predictions, on the logit scale
    twist: float = 0.0
    split: bool = False
    first_kind: float = 0.5  # share of raters


RARE, EXTREME, MIDDLE = (0.4, 3.0), (0.3, 0.3), (6.0, 6.0)
CELLS = (
    Cell(30, 10, 3),
    Cell(30, 10, 8, rates=MIDDLE, lean=0.6, noise=1.0),
    Cell(33, 24, 5, "zipf"),
    Cell(38, 11, 4, "lognormal", lean=0.5),
    Cell(40, 60, 10),
    Cell(45, 80, 8, "zipf", EXTREME),
    Cell(55, 14, 4, rates=RARE),
    Cell(55, 45, 5, "zipf", RARE, noise=1.0),
    Cell(65, 24, 3, split=True),
    Cell(75, 18, 5, "lognormal", lean=0.8),
    Cell(90, 150, 4, rates=EXTREME),
    Cell(90, 150, 4, "zipf", lean=0.7),
    Cell(110, 36, 4, first_kind=0.2),
    Cell(110, 80, 6, "zipf", lean=0.4, first_kind=0.2),
    Cell(180, 10, 4, lean=0.8),
    Cell(180, 24, 6, "zipf", MIDDLE, noise=1.5),
    Cell(180, 24, 6, "zipf", MIDDLE, lean=0.7, noise=1.5),
    Cell(180, 250, 4, rates=RARE, lean=0.7),
    Cell(250, 24, 5, lean=0.4, split=True),
    Cell(500, 16, 3, "lognormal", lean=0.4),
    Cell(500, 70, 4, "zipf", EXTREME, lean=0.8, noise=1.0),
    Cell(700, 12, 3, lean=0.4),
    Cell(700, 120, 4, "zipf", RARE, lean=0.6),
    Cell(1200, 50, 4, "zipf"),
    Cell(1200, 50, 4, "zipf", lean=1.2),
    Cell(12, 6, 4),
    Cell(22, 10, 4),
    Cell(30, 6, 3),
    Cell(300, 4, 3, lean=1.0),
    Cell(300, 6, 3, lean=0.5),
    Cell(40, 60, 10, twist=1.0),
    Cell(100, 40, 5, twist=0.5),
    Cell(300, 40, 4, twist=0.5),
    Cell(300, 60, 5, "zipf", lean=0.5, twist=0.5),
)


def study(rng: np.random.Generator, cell: Cell) -> tuple[sc.Votes, np.ndarray, list[int]]:
    """Return votes, predictions, and the kind of each rater."""
    n, raters = cell.items, cell.raters
    logit = _logit(np.clip(rng.beta(*cell.rates, n), 0.002, 0.998))
    p = sigmoid(logit + rng.normal(0, cell.noise, n))
    active = {
        "equal": np.zeros(raters),
        "lognormal": rng.normal(0, 1, raters),
        "zipf": -np.log(1 + rng.permutation(raters)),
    }[cell.activity]
    kind = rng.permutation(np.arange(raters) < max(round(cell.first_kind * raters), 2))
    draw = active - np.log(rng.exponential(size=(n, raters)))  # without replacement (Gumbel)
    if cell.split:
        draw[(rng.random(n) < 0.5)[:, None] != kind] = -np.inf
    who = np.argsort(-draw, axis=1)[:, : cell.votes]
    lean = (
        rng.normal(0, cell.lean, raters)[who] + cell.twist * kind[who] * np.sign(p - 0.5)[:, None]
    )
    said = rng.random(who.shape) < sigmoid(logit[:, None] + lean)
    voted = np.isfinite(np.take_along_axis(draw, who, axis=1))
    item = np.broadcast_to(np.arange(n)[:, None], who.shape)
    long = {"item": item[voted], "who": who[voted], "said": said[voted].astype(int)}
    votes = sc.Votes.from_long(long, item="item", worker="who", label="said", classes=[0, 1])
    return votes, p[np.array(votes.items)], kind[np.array(votes.workers)].astype(int).tolist()


def _logit(rate: np.ndarray) -> np.ndarray:
    return np.asarray(np.log(rate / (1 - rate)))


def rejected(cell: Cell, samples: int, seed: int) -> dict[str, object]:
    """Return how often each p-value is below 0.05, and the combined one below 0.01 and 0.001."""
    rng = np.random.default_rng(seed)
    found: list[tuple[float, ...]] = []
    while len(found) < samples:
        votes, p, kind = study(rng, cell)
        if min(np.bincount(kind, minlength=2)) < 2:
            continue
        test = sc.rater_difference(votes, p, by=kind)
        found.append((test.pvalue, test.pvalue_level, _or_nan(test.pvalue_bins)))
    both, level, bins = np.array(found).T
    return {
        **cell._asdict(), "rates": "{:g} {:g}".format(*cell.rates), "samples": samples,
        "rejected": np.mean(both < 0.05), "rejected_level": np.mean(level < 0.05),
        "rejected_bins": np.mean(bins < 0.05), "rejected_at_0.01": np.mean(both < 0.01),
        "rejected_at_0.001": np.mean(both < 0.001), "without_bins": np.mean(np.isnan(bins)),
    }  # fmt: skip


def _or_nan(pvalue: float | None) -> float:
    return np.nan if pvalue is None else pvalue


def main() -> None:
    """Simulate every cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=20_000)
    parser.add_argument("--output", type=Path, default=Path("docs/rater_difference.csv"))
    chosen = parser.parse_args()
    rows = []
    for k, cell in enumerate(CELLS):
        rows.append(rejected(cell, chosen.samples, chosen.seed + k))
        print(*(f"{key}={value}" for key, value in rows[-1].items()), flush=True)
        write_csv(chosen.output, rows)


if __name__ == "__main__":
    main()
