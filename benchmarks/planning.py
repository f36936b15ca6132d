"""Compare planned widths and powers with those of simulated studies.

    .venv/bin/python -m benchmarks.planning [--studies 250] [--only-pilots]

Writes docs/planning_width.csv, docs/planning_power.csv, and docs/planning_pilot.csv. Widths: the
planned width over the mean width of `smece_interval`, for models and labels of many kinds, with
exact assumptions. Powers: two models share some information about the labels. A has a SMECE of
0.02, and that of B is larger by D. A study is planned from a pilot of 100,000 items for a power of
0.8. The file has how often the interval of `compare` lies above 0 in such studies. Pilots: the same
for small pilots and several A; each plan is followed by 40 studies. It takes one minute.

Labels are drawn from pi = Phi(c z1 + s z2 + s z3), c^2 + 2 s^2 = 1.5. A knows z1 and z2, B z1 and
z3: the larger s, the less they have in common.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

import softcal as sc
from benchmarks.paired import joint_sums, model_sums, write_csv
from softcal.inference.comparison import DifferenceIntervals
from softcal.inference.intervals import interval_limits
from softcal.planning import Assumptions, pilot_correlation, plan_difference

DOCS = Path(__file__).parent.parent / "docs"
BINS = 10
LABELS = {"hard": 1, "votes of 3": 3, "votes of 5": 5, "exact soft": 0}
PRIVATE = (0.08, 0.25, 0.45)
DIFFERENCES = (0.02, 0.05)
BETTER = 0.02
PILOT = 100_000
ROWS_AT_ONCE = 1 << 20
MOST_ROWS = 1_500_000
WIDTH_ROWS = 100_000  # of each setting
KNOWN_ROWS = 300_000  # of the true assumptions
SEED = 4127
SMALL_PILOTS = (200, 500, 2000)
PILOT_BETTER = (0.0, 0.02, 0.05)  # SMECE of the better model
PILOT_PRIVATE = (0.1, 0.4)
PILOT_LABELS = ("hard", "votes of 3")
PILOT_DIFFERENCE = 0.04
PILOT_REPEATS, PILOT_STUDIES = 5, 40


def smece_of(sharpness: float, spread: float) -> float:
    """Return the SMECE of Phi(f q), where Phi(q) is calibrated and q ~ N(0, spread^2)."""
    q = spread * ndtri((np.arange(100_000) + 0.5) / 100_000)
    return sc.smece(ndtr(q), ndtr(sharpness * q), bins=BINS)


def sharpness(private: float, smece: float) -> float:
    """Return the f that makes a model overconfident by a given SMECE."""
    spread = np.sqrt((1.5 - private**2) / (1 + private**2))
    if smece == 0:
        return 1.0
    found: float = brentq(lambda f: smece_of(f, spread) - smece, 1.0, 4.0, xtol=1e-4)
    return found


def pair(
    private: float, sharp: tuple[float, float], votes: int, shape: Any, rng: np.random.Generator
) -> tuple[Any, Any, Any]:
    """Return labels and the predictions of both models."""
    z1, z2, z3 = rng.standard_normal((3, *shape))
    shared = np.sqrt(1.5 - 2 * private**2) * z1
    pi = ndtr(shared + private * (z2 + z3))
    p_a, p_b = (
        ndtr(f * (shared + private * z) / np.sqrt(1 + private**2))
        for f, z in zip(sharp, (z2, z3), strict=True)
    )
    return rng.binomial(votes, pi) / votes if votes else pi, p_a, p_b


def power(label: str, private: float, difference: float, studies: int) -> dict[str, Any]:
    votes = LABELS[label]
    rng = np.random.default_rng([SEED, votes, round(100 * private), round(1000 * difference)])
    sharp = sharpness(private, BETTER), sharpness(private, BETTER + difference)
    y, p_a, p_b = pair(private, sharp, votes, (PILOT,), rng)
    pilot = Assumptions.from_pilot(
        sc.reliability(y, p_a, bins=BINS, n_votes=votes if votes > 1 else None)
    )
    pilot = pilot.with_smece(pilot.smece)  # known, without a range
    r = pilot_correlation(y, {"a": p_a, "b": p_b}, bins=BINS)
    plan = plan_difference(pilot, difference=difference, correlation=r, votes=votes)
    studies = int(min(studies, max(100, MOST_ROWS // plan.items)))
    seen, at_once = 0, max(1, ROWS_AT_ONCE // plan.items)
    for start in range(0, studies, at_once):
        shape = (min(at_once, studies - start), plan.items)
        y, p_a, p_b = pair(private, sharp, votes, shape, rng)
        low, _ = DifferenceIntervals(*joint_sums(y, p_b, p_a, votes, BINS)).limits(0.05)
        seen += int((low > 0).sum())
    return {
        "label": label, "correlation": round(r, 3), "difference": difference,
        "items": plan.items, "planned": round(plan.power, 3), "studies": studies,
        "power": round(seen / studies, 4),
    }  # fmt: skip


def pilot_power(label: str, private: float, better: float, size: int) -> dict[str, Any]:
    """Return the powers of studies that were planned from pilots of a given size."""
    votes = LABELS[label]
    rng = np.random.default_rng([SEED, votes, round(100 * private), round(1000 * better), size])
    sharp = sharpness(private, better), sharpness(private, better + PILOT_DIFFERENCE)
    items, powers = [], []
    for _ in range(PILOT_REPEATS):
        y, p_a, p_b = pair(private, sharp, votes, (size,), rng)
        table = sc.reliability(y, p_a, bins=BINS, n_votes=votes if votes > 1 else None)
        r = pilot_correlation(y, {"a": p_a, "b": p_b}, bins=BINS)
        plan = plan_difference(
            Assumptions.from_pilot(table), difference=PILOT_DIFFERENCE, correlation=r, votes=votes
        )
        y, p_a, p_b = pair(private, sharp, votes, (PILOT_STUDIES, plan.items), rng)
        low, _ = DifferenceIntervals(*joint_sums(y, p_b, p_a, votes, BINS)).limits(0.05)
        items.append(plan.items)
        powers.append(float((low > 0).mean()))
    return {
        "label": label, "private": private, "better": better, "pilot": size,
        "fewest_items": min(items), "most_items": max(items), "power": round(np.mean(powers), 3),
        "lowest_power": round(min(powers), 3), "highest_power": round(max(powers), 3),
    }  # fmt: skip


MODELS = {
    "calibrated": lambda p: p,
    "overconfident": lambda p: 0.5 + 0.7 * (p - 0.5),
    "shifted": lambda p: p - 0.08,
}
SPREADS = {"even": 1.0, "ends": 0.6}  # both parameters of the predictions' Beta law
VOTES = (1, 3, 5, 10, 0)
SIZES = (200, 500, 1000, 3000, 10_000, 20_000)


def items(model: str, at: str, shape: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return predictions, and item probabilities around the calibrated prediction."""
    p = rng.beta(SPREADS[at], SPREADS[at], shape)
    mean = np.clip(MODELS[model](p), 1e-6, 1 - 1e-6)
    return p, rng.beta(6 * mean, 6 * (1 - mean))


def known(model: str, at: str, votes: int, bins: int, rng: np.random.Generator) -> Assumptions:
    """Return the true assumptions, as from an unlimited pilot."""
    p, true = items(model, at, KNOWN_ROWS, rng)
    cell = sc.Bins.uniform(bins).locate(p)
    columns = (np.ones(p.size), p - true, (p - true) ** 2, true * (1 - true), p * (1 - p), p)
    means = [np.bincount(cell, values, bins) / p.size for values in columns]
    found: list[Any] = [*means, np.zeros(bins), np.zeros(bins), None if votes else 0]
    return Assumptions(*found)


def width(model: str, at: str, votes: int, bins: int, studies: int) -> list[dict[str, Any]]:
    numbers = list(MODELS).index(model), list(SPREADS).index(at), votes, bins
    rng = np.random.default_rng([SEED, *numbers])
    assumptions = known(model, at, votes, bins, rng)
    rows = []
    for n in SIZES:
        planned = 2 * assumptions.half_width(n, votes=votes)
        p, true = items(model, at, (min(studies, WIDTH_ROWS // n), n), rng)
        y = rng.binomial(votes, true) / votes if votes else true
        _, low, high = interval_limits(model_sums(y, p, votes, bins), 0.95)
        found = float((high - low).mean())
        rows.append(
            {
                "model": model, "predictions": at, "votes": votes, "bins": bins, "n": n,
                "planned": round(planned, 6), "found": round(found, 6),
                "ratio": round(planned / found, 4),
            }
        )  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=250)
    parser.add_argument("--only-pilots", action="store_true")
    arguments = parser.parse_args()
    studies = arguments.studies
    console = Console(stderr=True)
    settings = itertools.product(PILOT_LABELS, PILOT_PRIVATE, PILOT_BETTER, SMALL_PILOTS)
    pilots = [pilot_power(*cell) for cell in track(list(settings), "pilots", console=console)]
    write_csv(DOCS / "planning_pilot.csv", pilots)
    for row in pilots:
        print(*row.values())
    if arguments.only_pilots:
        return
    cells = list(itertools.product(LABELS, PRIVATE, DIFFERENCES))
    powers = [power(*cell, studies) for cell in track(cells, "powers", console=console)]
    write_csv(DOCS / "planning_power.csv", powers)
    kinds = list(itertools.product(MODELS, SPREADS, VOTES, (10, 15)))
    widths = [
        row
        for model, at, votes, bins in track(kinds, "widths", console=console)
        for row in width(model, at, votes, bins, studies)
    ]
    write_csv(DOCS / "planning_width.csv", widths)
    for row in powers:
        print(*row.values())
    found = np.array([row["power"] for row in powers])
    print(f"power, planned 0.8: {found.min():.3f} to {found.max():.3f}, mean {found.mean():.3f}")
    ratio = np.array([row["ratio"] for row in widths])
    print(f"width, planned over found: {ratio.min():.3f} to {ratio.max():.3f}, "
          f"mean |error| {np.abs(ratio - 1).mean():.4f}, {len(ratio)} settings")  # fmt: skip


if __name__ == "__main__":
    main()
