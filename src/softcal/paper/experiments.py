"""The four experiments of the paper, and three more."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from softcal.bins import Bins
from softcal.metrics.binned import harden
from softcal.paper.model import HALF_WIDTH, MODELS, Gaussians, Mixture, predictions
from softcal.table.kernel import residuals_by_sample
from softcal.table.reliability import reliability

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from softcal._validation.inputs import FloatArray

READINGS = ("open", "closed")
"""The last bin: half-open as in the paper, and closed as in the library."""

METRICS = ("smece", "ece")

_ROWS_AT_ONCE = 1 << 14  # fits the cache of a core


def silent(_rows: int) -> None:
    """Report no progress."""


def scores(
    rng: np.random.Generator,
    k: float,
    n: int,
    replications: int = 1,
    *,
    bins: int = 10,
    step: Callable[[int], object] = silent,
) -> FloatArray:
    """Draw data sets and score the five models on each.

    The draws have the order of the paper: for each data set, n inputs from (-3, 3), then n numbers
    for model E.

    Parameters
    ----------
    rng : numpy.random.Generator
        The generator of the draws.
    k : float
        The steepness of the posterior.
    n : int
        The number of rows of each data set.
    replications : int, default=1
        The number of data sets.
    bins : int, default=10
        The number of equal-width bins.
    step : callable, optional
        Called with the number of rows done, for a progress bar.

    Returns
    -------
    ndarray of shape (2, 2, 5, replications)
        By reading (`READINGS`), metric (`METRICS`), model (`MODELS`), and data set.
    """
    edges = Bins.uniform(bins)
    parts = []
    # One thread, because batches that fit a cache are too short for threads to save time.
    for x, e in _batches(rng, n, replications):
        parts.append(_score(x, e, k, edges))
        step(x.size)
    return np.concatenate(parts, axis=-1)


def _batches(
    rng: np.random.Generator, n: int, replications: int
) -> Iterator[tuple[FloatArray, FloatArray]]:
    at_once = max(1, _ROWS_AT_ONCE // n)
    for start in range(0, replications, at_once):
        count = min(at_once, replications - start)
        x, e = np.empty((count, n)), np.empty((count, n))
        for row in range(count):
            x[row] = rng.uniform(-HALF_WIDTH, HALF_WIDTH, n)
            e[row] = rng.uniform(0, 1, n)
        yield x, e


def _score(x: FloatArray, e: FloatArray, k: float, bins: Bins) -> FloatArray:
    models = predictions(k, x, e)
    labels = (models["A"], (x >= 0).astype(np.float64))
    out = np.empty((len(READINGS), len(METRICS), len(models), len(x)))
    for j, p in enumerate(models.values()):
        ones = p == 1
        for metric, y in enumerate(labels):
            residual = residuals_by_sample(y, p, bins)
            out[1, metric, j] = np.abs(residual).sum(axis=1) / x.shape[1]
            # With a half-open last bin, these predictions are in no bin.
            residual[:, -1] -= np.where(ones, p - y, 0.0).sum(axis=1)
            out[0, metric, j] = np.abs(residual).sum(axis=1) / x.shape[1]
    return out


STEEPNESSES = (0.5, 1.0, 2.0, 5.0, 10.0, 50.0)
SIZES = (500, 1000, 2000, 5000, 10_000)

PAIRS = tuple("-".join(pair) for pair in combinations(MODELS, 2))
TIED_PAIR = "B-C"
"""The paper considers B and C equally good, and counts any order of them as correct."""


@dataclass(frozen=True)
class Ranking:
    """Experiment 1: scores of the five models on one data set.

    `value` has shape (2, 2, 5): reading, metric, model, in the order of `READINGS`, `METRICS`, and
    `MODELS`. `rank` has the same shape, with 1 for the lowest error.
    """

    k: float
    n: int
    value: FloatArray

    @property
    def rank(self) -> FloatArray:
        """The rank of each model, 1 for the lowest error."""
        order = self.value.argsort(axis=-1, kind="stable").argsort(axis=-1, kind="stable")
        return (order + 1).astype(np.float64)


@dataclass(frozen=True)
class Sweep:
    """Experiment 2: scores of the five models for each k. `value` is (2, 2, 5, len(k))."""

    k: tuple[float, ...]
    n: int
    value: FloatArray


@dataclass(frozen=True)
class PairAccuracy:
    """Experiment 3: the share of data sets that rank each pair in the claimed order.

    `value` has shape (2, 2, len(PAIRS), len(k)). `overall` is its mean over the ten pairs.
    """

    k: tuple[float, ...]
    n: int
    replications: int
    value: FloatArray

    @property
    def overall(self) -> FloatArray:
        """The mean over the pairs, shape (2, 2, len(k))."""
        mean: FloatArray = self.value.mean(axis=2)
        return mean


@dataclass(frozen=True)
class Spread:
    """Experiment 4: mean and standard deviation over replications, both (2, 2, 5, len(n))."""

    k: float
    n: tuple[int, ...]
    replications: int
    mean: FloatArray
    std: FloatArray


def experiment_1(
    rng: np.random.Generator,
    *,
    k: float = 2.0,
    n: int = 5000,
    bins: int = 10,
    step: Callable[[int], object] = silent,
) -> Ranking:
    """Score and rank the five models on one data set.

    Parameters
    ----------
    rng, k, n, bins, step
        As in `scores`.

    Examples
    --------
    >>> experiment_1(np.random.default_rng(42)).value[0, 0].round(4)
    array([0.    , 0.0759, 0.1369, 0.0977, 0.2409])
    """
    return Ranking(k, n, scores(rng, k, n, bins=bins, step=step)[..., 0])


def experiment_2(
    rng: np.random.Generator,
    *,
    k: Sequence[float] = STEEPNESSES,
    n: int = 5000,
    bins: int = 10,
    step: Callable[[int], object] = silent,
) -> Sweep:
    """Score the five models on one data set for each steepness k.

    Parameters
    ----------
    rng, n, bins, step
        As in `scores`.
    k : sequence of float
        The steepnesses of the posterior.
    """
    values = [scores(rng, each, n, bins=bins, step=step)[..., 0] for each in k]
    return Sweep(tuple(k), n, np.stack(values, axis=-1))


def experiment_3(
    rng: np.random.Generator,
    *,
    k: Sequence[float] = STEEPNESSES,
    n: int = 1000,
    replications: int = 1000,
    bins: int = 10,
    step: Callable[[int], object] = silent,
) -> PairAccuracy:
    """Compute how often each pair of models is ranked in the paper's order A > B ~ C > D > E.

    Parameters
    ----------
    rng, n, replications, bins, step
        As in `scores`.
    k : sequence of float
        The steepnesses of the posterior.
    """
    values = [ranked_right(scores(rng, each, n, replications, bins=bins, step=step)) for each in k]
    return PairAccuracy(tuple(k), n, replications, np.stack(values, axis=-1))


def ranked_right(value: FloatArray) -> FloatArray:
    """Return the share of data sets (last axis) that rank each pair in the claimed order."""
    letters = list(MODELS)
    shares = []
    for pair in PAIRS:
        better, worse = (letters.index(letter) for letter in pair.split("-"))
        right = value[:, :, better] < value[:, :, worse]
        shares.append(np.ones(right.shape[:2]) if pair == TIED_PAIR else right.mean(axis=-1))
    return np.stack(shares, axis=-1)


def experiment_4(
    rng: np.random.Generator,
    *,
    k: float = 2.0,
    n: Sequence[int] = SIZES,
    replications: int = 500,
    bins: int = 10,
    step: Callable[[int], object] = silent,
) -> Spread:
    """Compute the mean and standard deviation of the scores of the five models for each n.

    Parameters
    ----------
    rng, k, replications, bins, step
        As in `scores`.
    n : sequence of int
        The numbers of rows.
    """
    values = [scores(rng, k, each, replications, bins=bins, step=step) for each in n]
    return Spread(
        k,
        tuple(n),
        replications,
        np.stack([value.mean(axis=-1) for value in values], axis=-1),
        np.stack([value.std(axis=-1) for value in values], axis=-1),
    )


@dataclass(frozen=True)
class Outcomes:
    """Experiment 5: the perfect model, scored against drawn outcomes.

    `drawn` and `thresholded` are the mean ECE of the perfect model at each n: against outcomes
    drawn with the posterior probability, and against the posterior thresholded at 1/2. `slope` is
    the slope of log ECE over log n. `worth` is the number of drawn outcomes that give the same
    standard error as one soft label, for the models B, C, and D. `worth_simulated` is the same,
    estimated from the variance of the simulated scores.
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
    r"""Score the perfect model against drawn outcomes, to test whether its ECE has a floor.

    Against outcomes \(z \sim \mathrm{Bernoulli}(p^*)\) the ECE decreases like \(n^{-1/2}\). The
    floor in experiment 4 of the paper is caused by the threshold. Soft labels reduce the variance.
    Let s be the sign of the gap of a row's bin. One row adds \(s(p - y)\) to SMECE, and drawing z
    adds \(E\,y(1-y)\) to its variance. One soft label is therefore worth
    \(1 + E\,y(1-y) / \mathrm{Var}(s(p - y))\) outcomes.

    Parameters
    ----------
    rng, k, replications, bins
        As in `scores`.
    n : sequence of int
        The numbers of rows.
    """
    pairs = [[_outcome_scores(rng, k, size, bins) for _ in range(replications)] for size in n]
    drawn, thresholded = np.mean(pairs, axis=1).T
    slope = float(np.polyfit(np.log(n), np.log(drawn), 1)[0])
    return Outcomes(tuple(n), drawn, thresholded, slope, *_worth(rng, k, n[-1], replications, bins))


def _outcome_scores(rng: np.random.Generator, k: float, n: int, bins: int) -> tuple[float, float]:
    x = Gaussians.draw_uniform(rng, n)
    p = predictions(k, x, x)["A"]
    outcome = rng.random(n) < p
    return reliability(outcome, p, bins=bins).smece, reliability(x >= 0, p, bins=bins).smece


def _worth(
    rng: np.random.Generator, k: float, n: int, replications: int, bins: int
) -> tuple[dict[str, float], dict[str, float]]:
    found: dict[str, list[tuple[float, float, float]]] = {model: [] for model in "BCD"}
    for _ in range(replications):
        x = Gaussians.draw_uniform(rng, n)
        models = predictions(k, x, x)
        y = models["A"]
        outcome = rng.random(n) < y
        noise = float(np.mean(y * (1 - y)))
        for model, each in found.items():
            soft, hard = (reliability(label, models[model], bins=bins) for label in (y, outcome))
            # The sum of s d is n SMECE and s^2 = 1, so Var(s d) = mean d^2 - SMECE^2.
            ratio = 1 + noise / (soft.brier - soft.smece**2)
            each.append((ratio, soft.smece, hard.smece))
    formula, simulated = {}, {}
    for model, each in found.items():
        ratios, soft_scores, hard_scores = np.transpose(each)
        formula[model] = float(np.mean(ratios))
        simulated[model] = float(np.var(hard_scores) / np.var(soft_scores))
    return formula, simulated


@dataclass(frozen=True)
class VoteScores:
    """Experiment 6: the perfect model, scored against the votes of K raters.

    Means over replications for each number of votes: `ece_majority` against the majority vote, and
    `smece_share` against the vote share.
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
    """Score a model that predicts the true rate against the votes of K raters.

    The rates are drawn from Beta(2, 2), so raters disagree on most items. As K grows, the
    majority vote approaches the thresholded rate, and the ECE of the perfect model increases. The
    vote share approaches the rate, and SMECE approaches 0. A tie does not count as a majority.

    Parameters
    ----------
    rng, n, replications, bins
        As in `scores`.
    votes : sequence of int
        The numbers K of raters.
    """
    means = []
    for count in votes:
        found = []
        for _ in range(replications):
            rate = rng.beta(2, 2, n)
            share = rng.binomial(count, rate) / count
            labels = (harden(share), share)
            found.append([reliability(label, rate, bins=bins).smece for label in labels])
        means.append(np.mean(found, axis=0))
    majority, soft = np.transpose(means)
    return VoteScores(tuple(votes), n, majority, soft)


@dataclass(frozen=True)
class Dimensions:
    """Experiment 7: classes in d dimensions with unequal priors and covariances.

    For each d, the scores of the true posterior and of a linear model (one covariance for both
    classes): SMECE against the posterior, and ECE against the posterior thresholded at 1/2.
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
    """Score the true posterior and a linear model in d dimensions.

    SMECE of the true posterior is exactly 0 in any number of dimensions.

    Parameters
    ----------
    rng, n, bins
        As in `scores`.
    d : sequence of int
        The numbers of dimensions.
    prior : float, default=0.3
        The probability of the second class.
    """
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
    """Return two classes whose means are a unit apart, with random, unequal covariances."""

    def covariance() -> FloatArray:
        root = rng.normal(size=(d, d)) / np.sqrt(d)
        out: FloatArray = root @ root.T + np.eye(d) * rng.uniform(0.2, 1.0)
        return out

    away = np.full(d, 0.5 / np.sqrt(d))
    return Mixture(prior, (-away, away), (covariance(), covariance()))
