"""The paper's generative model, and the limits of its scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, log_expit, logit

if TYPE_CHECKING:
    from collections.abc import Callable

    from softcal._validation.inputs import FloatArray

    Integral = Callable[[FloatArray], FloatArray]

MODELS = {
    "A": "Posterior-matching",
    "B": "Overconfident",
    "C": "Underconfident",
    "D": "Biased high",
    "E": "Random",
}
"""The paper's five predictors by letter. `predictions` says what each predicts."""

SEED = 42  # of the paper's draws
HALF_WIDTH = 3.0
"""The paper draws inputs evenly from (-3, 3)."""

BIAS = 0.15
OVERCONFIDENCE = 3.0
UNDERCONFIDENCE = 0.4


def predictions(k: float, x: FloatArray, e: FloatArray) -> dict[str, FloatArray]:
    r"""Return what each of the five models predicts at the inputs x.

    A \(\sigma(kx)\), the posterior itself; B \(\sigma(3kx)\); C \(\sigma(0.4kx)\);
    D \(\min(\sigma(kx) + 0.15, 1)\); E the numbers e, drawn without looking at x.

    Examples
    --------
    >>> p = predictions(2.0, np.array([0.0, 3.0]), np.array([0.7, 0.1]))
    >>> {name: values.round(3).tolist() for name, values in p.items()}
    {'A': [0.5, 0.998], 'B': [0.5, 1.0], 'C': [0.5, 0.917], 'D': [0.65, 1.0], 'E': [0.7, 0.1]}
    """
    posterior = _sigmoid(k * x)
    return {
        "A": posterior,
        "B": _sigmoid(OVERCONFIDENCE * k * x),
        "C": _sigmoid(UNDERCONFIDENCE * k * x),
        "D": np.minimum(posterior + BIAS, 1.0),
        "E": e,
    }


def _sigmoid(z: FloatArray) -> FloatArray:
    # NumPy's exp is several times faster here than scipy's expit, and the paper's z are tame.
    out: FloatArray = 1 / (1 + np.exp(-z))
    return out


@dataclass(frozen=True)
class Gaussians:
    r"""The paper's two classes: \(N(-\mu, \sigma^2)\) and \(N(+\mu, \sigma^2)\), equally likely.

    Appendix A: the posterior of the second class is \(\sigma(kx)\) with \(k = 2\mu/\sigma^2\).

    Examples
    --------
    >>> classes = Gaussians(mu=1.0, sigma=1.0)
    >>> classes.k
    2.0
    >>> classes.posterior(np.array([0.0, 1.0])).round(4)
    array([0.5   , 0.8808])
    """

    mu: float = 1.0
    sigma: float = 1.0

    @property
    def k(self) -> float:
        """The steepness of the posterior, the paper's signal-to-noise ratio."""
        return 2 * self.mu / self.sigma**2

    def posterior(self, x: FloatArray) -> FloatArray:
        """Return the probability of the second class at x."""
        out: FloatArray = expit(self.k * x)
        return out

    @staticmethod
    def draw_uniform(rng: np.random.Generator, n: int) -> FloatArray:
        """Draw inputs evenly from (-3, 3), as the paper does, whatever the classes."""
        return rng.uniform(-HALF_WIDTH, HALF_WIDTH, n)

    def draw_mixture(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw inputs from the classes themselves."""
        return rng.normal(np.where(rng.random(n) < 0.5, self.mu, -self.mu), self.sigma)


@dataclass(frozen=True)
class Mixture:
    r"""Two Gaussian classes in any number of dimensions, with any priors and covariances.

    The log odds of the second class are quadratic in x, linear only where the covariances agree:
    \(\log\frac{\pi}{1-\pi} + \log N(x; m_1, C_1) - \log N(x; m_0, C_0)\).

    Parameters
    ----------
    prior : float
        Probability \(\pi\) of the second class.
    means : tuple of two arrays of shape (d,)
    covariances : tuple of two arrays of shape (d, d)
    """

    prior: float
    means: tuple[FloatArray, FloatArray]
    covariances: tuple[FloatArray, FloatArray]

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw inputs of shape (n, d) from the mixture."""
        second = rng.random(n) < self.prior
        both = [
            rng.multivariate_normal(mean, covariance, n)
            for mean, covariance in zip(self.means, self.covariances, strict=True)
        ]
        return np.where(second[:, None], both[1], both[0])

    def posterior(self, x: FloatArray) -> FloatArray:
        """Return the probability of the second class at each row of x, by Bayes' theorem."""
        from scipy.stats import multivariate_normal

        first, second = (
            multivariate_normal(mean, covariance).logpdf(x)
            for mean, covariance in zip(self.means, self.covariances, strict=True)
        )
        prior_odds = np.log(self.prior) - np.log1p(-self.prior)
        out: FloatArray = np.exp(log_expit(prior_odds + second - first))
        return out

    def pooled(self) -> Mixture:
        """Return the same classes with one covariance for both: what a linear model assumes."""
        first, second = self.covariances
        pooled = (1 - self.prior) * first + self.prior * second
        return Mixture(self.prior, self.means, (pooled, pooled))


_STEEPNESS = {"A": 1.0, "B": OVERCONFIDENCE, "C": UNDERCONFIDENCE, "D": 1.0}


def limit_smece(model: str, k: float, bins: int = 10, *, last_bin_closed: bool = True) -> float:
    """Return the limit of SMECE of one of the paper's models, against the posterior.

    Parameters
    ----------
    model : str
        A, B, C, D or E.
    k : float
        The steepness of the posterior, above 0.
    bins : int
        Number of equal-width bins.
    last_bin_closed : bool
        False reads the paper's bins literally: p = 1 is in none of them, yet counts in n.

    Examples
    --------
    >>> [round(limit_smece(model, 2.0), 4) for model in "ABCDE"]
    [0.0, 0.0766, 0.1375, 0.11, 0.25]
    >>> round(limit_smece("D", 2.0, last_bin_closed=False), 4)
    0.0967
    """
    return _limit(model, k, bins, _softplus_over(k), last_bin_closed)


def limit_ece(model: str, k: float, bins: int = 10, *, last_bin_closed: bool = True) -> float:
    """Return the limit of ECE of one of the paper's models, against the thresholded label.

    Parameters are those of `limit_smece`. The label is 1 where x is at least 0.

    Examples
    --------
    >>> [round(limit_ece(model, 2.0), 4) for model in "ABCDE"]
    [0.1151, 0.0385, 0.2526, 0.1442, 0.25]
    """
    return _limit(model, k, bins, lambda x: np.maximum(x, 0.0), last_bin_closed)


def _limit(model: str, k: float, bins: int, label: Integral, last_bin_closed: bool) -> float:  # noqa: FBT001
    if model not in MODELS:
        message = f"model must be one of {', '.join(MODELS)}: got {model!r}."
        raise ValueError(message)
    edges = np.arange(bins + 1) / bins
    if model == "E":
        return float(np.abs((edges[:-1] + edges[1:]) / 2 - 0.5).mean())
    shift = BIAS if model == "D" else 0.0
    a = _STEEPNESS[model] * k
    # x at the edges; below the least prediction and above the greatest there are no rows
    with np.errstate(divide="ignore"):
        cuts = logit(np.clip(edges - shift, 0.0, 1.0)) / a
    cuts = np.clip(cuts, -HALF_WIDTH, HALF_WIDTH)
    predicted = _softplus_over(a)
    gaps = np.diff(predicted(cuts) + shift * cuts - label(cuts))
    if last_bin_closed:
        # Where p is 1 the gap of a row is 1 - label; those rows lie from the last cut to 3.
        rest = np.array([cuts[-1], HALF_WIDTH])
        gaps[-1] += float(np.diff(rest - label(rest))[0])
    return float(np.abs(gaps).sum()) / (2 * HALF_WIDTH)


def _softplus_over(a: float) -> Integral:
    """Return the integral of sigmoid(ax)."""

    def integral(x: FloatArray) -> FloatArray:
        out: FloatArray = np.logaddexp(0.0, a * x) / a
        return out

    return integral
