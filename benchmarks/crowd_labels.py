"""Measure calibration against shares of votes, majorities, and Dawid-Skene posteriors.

Posteriors have one prior, or one prior per bin of predictions (strata).

Run as `python benchmarks/crowd_labels.py [REPETITIONS]`. Two settings are simulated:

- *one truth*: each item has a true class, drawn at rate r; workers of different skill report it.
  The target is the SMECE of the model for the true class.
- *opinion*: each item has a rate r of people who would vote yes, because workers lean to either
  side (normally, on the logit scale). The target is the SMECE of the model for r.

In both, the model is r made overconfident (a slope of 1.5 on the logit scale) or r itself.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import numpy.typing as npt

import softcal as sc

ITEMS, WORKERS, BINS = 2_000, 50, 10
FloatArray = npt.NDArray[np.float64]


def _expit(x: FloatArray) -> FloatArray:
    out: FloatArray = 1 / (1 + np.exp(-x))
    return out


def _of_all(logit: FloatArray, spread: float) -> FloatArray:
    """Return the share of all people who vote yes, given the logit of a worker without a lean."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    share: FloatArray = _expit(logit[:, None] + spread * nodes) @ weights / weights.sum()
    return share


_LOGITS = np.linspace(-8, 8, 2_001)


def predictions(rate: FloatArray, slope: float) -> FloatArray:
    """Return the model's predictions."""
    return _expit(slope * np.log(rate / (1 - rate)))


def truth(slope: float) -> float:
    """Return the model's SMECE against the rates of very many items."""
    rate = np.random.default_rng(0).uniform(0.02, 0.98, 2_000_000)
    return sc.smece(rate, predictions(rate, slope), bins=BINS)


def cast(
    rng: np.random.Generator, world: str, rate: FloatArray, n_votes: int, quality: float
) -> sc.Votes:
    """Return the votes on each item, of workers drawn at random."""
    n = rate.size
    worker = np.argsort(rng.random((n, WORKERS)), axis=1)[:, :n_votes]
    if world == "one truth":
        true = rng.random(n) < rate
        skill = rng.beta(20 * quality, 20 * (1 - quality), (WORKERS, 2))
        right = rng.random((n, n_votes)) < skill[worker, true[:, None].astype(int)]
        label = right == true[:, None]
    else:
        lean = rng.normal(0, quality, WORKERS)
        logit = np.interp(rate, _of_all(_LOGITS, quality), _LOGITS)
        label = rng.random((n, n_votes)) < _expit(logit[:, None] + lean[worker])
    columns = {
        "item": np.repeat(np.arange(n), n_votes),
        "worker": worker.ravel(),
        "vote": label.astype(int).ravel(),
    }
    return sc.Votes.from_long(columns, item="item", worker="worker", label="vote", classes=[0, 1])


def labels(votes: sc.Votes, p: FloatArray) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return labels and numbers of votes, for each method to compute labels."""
    strata = sc.Bins.uniform(BINS).locate(p)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        plain = sc.dawid_skene(votes, tolerance=1e-5, max_iterations=300)
        binned = sc.dawid_skene(votes, strata=strata, tolerance=1e-5, max_iterations=300)
    one = np.ones(votes.n_items)
    return {
        "shares": (votes.shares[:, 1], votes.totals.astype(float)),
        "majority": ((votes.shares[:, 1] > 0.5).astype(float), one),
        "posterior": (plain.posterior[:, 1], one),
        "with strata": (binned.posterior[:, 1], one),
    }


def main(repetitions: int) -> None:
    """Print, per setting and kind of label, the mean SMECE and the coverage of its interval."""
    print("world      quality  votes  slope   true", end="")
    print("".join(f"{name:>14}" for name in ("shares", "majority", "posterior", "with strata")))
    for world, quality in (
        ("one truth", 0.75), ("one truth", 0.9), ("opinion", 0.0), ("opinion", 1.0)
    ):  # fmt: skip
        for n_votes in (3, 9):
            for slope in (1.0, 1.5):
                target, rng = truth(slope), np.random.default_rng(1)
                values: dict[str, list[float]] = {}
                holds: dict[str, list[bool]] = {}
                for _ in range(repetitions):
                    rate = rng.uniform(0.02, 0.98, ITEMS)
                    p = predictions(rate, slope)
                    votes = cast(rng, world, rate, n_votes, quality)
                    for name, (label, number) in labels(votes, p).items():
                        found = sc.smece_interval(label, p, bins=BINS, n_votes=number)
                        values.setdefault(name, []).append(found.debiased)
                        holds.setdefault(name, []).append(found.low <= target <= found.high)
                shown = "".join(
                    f"{np.mean(values[name]):>7.3f} ({np.mean(holds[name]):.2f})" for name in values
                )
                line = f"{world:<10} {quality:>7} {n_votes:>6} {slope:>6} {target:>6.3f}{shown}"
                print(line, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
