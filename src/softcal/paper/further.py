"""Three experiments the paper needs and lacks: real outcomes, votes, and more dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from softcal.measures.metrics import harden
from softcal.paper.generative import Gaussians, Mixture, predictions
from softcal.table.reliability import reliability

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcal.door.inputs import FloatArray


@dataclass(frozen=True)
class Outcomes:
    """Experiment 5: the perfect model against outcomes that really happen.

    `drawn` and `thresholded` are the mean ECE of the perfect model at each n against outcomes
    drawn with the posterior probability and against the posterior cut at 1/2; `slope` is that of
    log ECE over log n. `worth` says how many drawn outcomes give a score as small a standard error
    as one soft label does, for the models B, C and D; `worth_simulated` is the same from the spread
    of the scores themselves.
    """

    n: tuple[int, ...]
    drawn: FloatArray
    thresholded: FloatArray
    slope: float
    worth: dict[str, float]
    worth_simulated: dict[str, float]


def experiment_5(
    rng: np.random.Generator,
    *,
    k: float = 2.0,
    n: Sequence[int] = (500, 1000, 2000, 5000, 10_000),
    replications: int = 200,
    bins: int = 10,
) -> Outcomes:
    r"""Score the perfect model against real outcomes, to see whether its ECE has a floor.

    Against outcomes \(z \sim \mathrm{Bernoulli}(p^*)\) it falls like \(n^{-1/2}\): the floor of the
    paper's experiment 4 is the doing of the threshold. What a soft label buys is variance. With
    s the sign of the gap of a row's bin, one row adds \(s(p - y)\) to SMECE, and drawing z adds
    \(E\,y(1-y)\) to its variance, so one soft label is worth
    \(1 + E\,y(1-y) / \mathrm{Var}(s(p - y))\) outcomes.
    """
    drawn, thresholded = [], []
    for size in n:
        pairs = [_outcome_scores(rng, k, size, bins) for _ in range(replications)]
        first, second = np.mean(pairs, axis=0)
        drawn.append(first)
        thresholded.append(second)
    slope = float(np.polyfit(np.log(n), np.log(drawn), 1)[0])
    worth, simulated = _worth(rng, k, n[-1], replications, bins)
    return Outcomes(tuple(n), np.array(drawn), np.array(thresholded), slope, worth, simulated)


def _outcome_scores(rng: np.random.Generator, k: float, n: int, bins: int) -> tuple[float, float]:
    x = Gaussians.draw_uniform(rng, n)
    p = predictions(k, x, x)["A"]
    outcome = rng.random(n) < p
    return reliability(outcome, p, bins=bins).smece, reliability(x >= 0, p, bins=bins).smece


def _worth(
    rng: np.random.Generator, k: float, n: int, replications: int, bins: int
) -> tuple[dict[str, float], dict[str, float]]:
    soft: dict[str, list[float]] = {model: [] for model in "BCD"}
    hard: dict[str, list[float]] = {model: [] for model in "BCD"}
    ratios: dict[str, list[float]] = {model: [] for model in "BCD"}
    for _ in range(replications):
        x = Gaussians.draw_uniform(rng, n)
        models = predictions(k, x, x)
        y = models["A"]
        outcome = rng.random(n) < y
        noise = float(np.mean(y * (1 - y)))
        for model, found in soft.items():
            p = models[model]
            rel = reliability(y, p, bins=bins)
            found.append(rel.smece)
            hard[model].append(reliability(outcome, p, bins=bins).smece)
            # sum of s d is n SMECE and s^2 = 1, so the variance of s d is mean d^2 - SMECE^2
            ratios[model].append(1 + noise / (rel.brier - rel.smece**2))
    formula = {model: float(np.mean(found)) for model, found in ratios.items()}
    spread = {model: float(np.var(hard[model]) / np.var(soft[model])) for model in soft}
    return formula, spread


@dataclass(frozen=True)
class VoteScores:
    """Experiment 6: the perfect model against the votes of K annotators.

    Mean over replications, for each number of votes: `ece_majority` against the majority vote,
    `smece_share` against the share of votes.
    """

    votes: tuple[int, ...]
    n: int
    ece_majority: FloatArray
    smece_share: FloatArray


def experiment_6(
    rng: np.random.Generator,
    *,
    votes: Sequence[int] = (1, 3, 5, 10, 100),
    n: int = 1000,
    replications: int = 200,
    bins: int = 10,
) -> VoteScores:
    """Let K annotators vote on each item, and score a model that knows the true rate.

    The rates are drawn from Beta(2, 2): most items are open to dispute. The more annotators, the
    closer the majority is to a threshold of the rate, and the worse the perfect model looks against
    it; the share tends to the rate, and SMECE to 0. A tie is no majority.
    """
    means = []
    for count in votes:
        found = []
        for _ in range(replications):
            rate = rng.beta(2, 2, n)
            share = rng.binomial(count, rate) / count
            found.append(
                (
                    reliability(harden(share), rate, bins=bins).smece,
                    reliability(share, rate, bins=bins).smece,
                )
            )
        means.append(np.mean(found, axis=0))
    majority, soft = np.transpose(means)
    return VoteScores(tuple(votes), n, majority, soft)


@dataclass(frozen=True)
class Dimensions:
    """Experiment 7: classes in d dimensions with unequal priors and covariances.

    For each d, scores of the true posterior and of the posterior a linear model would have (one
    covariance for both classes): SMECE against the posterior, ECE against the posterior cut at 1/2.
    """

    d: tuple[int, ...]
    n: int
    smece_true: FloatArray
    ece_true: FloatArray
    smece_linear: FloatArray
    ece_linear: FloatArray


def experiment_7(
    rng: np.random.Generator,
    *,
    d: Sequence[int] = (1, 2, 5, 20),
    n: int = 5000,
    prior: float = 0.3,
    bins: int = 10,
) -> Dimensions:
    """Leave the line: SMECE of the true posterior stays exactly 0 in any number of dimensions."""
    found = []
    for size in d:
        classes = random_mixture(rng, size, prior)
        x = classes.draw(rng, n)
        true, linear = classes.posterior(x), classes.pooled().posterior(x)
        found.append(
            [
                reliability(label, p, bins=bins).smece
                for p in (true, linear)
                for label in (true, harden(true))
            ]
        )
    smece_true, ece_true, smece_linear, ece_linear = np.transpose(found)
    return Dimensions(tuple(d), n, smece_true, ece_true, smece_linear, ece_linear)


def random_mixture(rng: np.random.Generator, d: int, prior: float) -> Mixture:
    """Make two classes a unit apart in d dimensions, with random and unequal covariances."""

    def covariance() -> FloatArray:
        root = rng.normal(size=(d, d)) / np.sqrt(d)
        out: FloatArray = root @ root.T + np.eye(d) * rng.uniform(0.2, 1.0)
        return out

    away = np.full(d, 0.5 / np.sqrt(d))
    return Mixture(prior, (-away, away), (covariance(), covariance()))
