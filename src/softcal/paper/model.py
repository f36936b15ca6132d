"""The generative model of the paper, and the limits of its scores."""

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
"""The five predictors of the paper by letter, as defined in `predictions`."""

SEED = 42  # of the draws of the paper
HALF_WIDTH = 3.0
"""The inputs of the paper are uniform on (-3, 3)."""

BIAS = 0.15
OVERCONFIDENCE = 3.0
UNDERCONFIDENCE = 0.4


def predictions(k: float, x: FloatArray, e: FloatArray) -> dict[str, FloatArray]:
    r"""Return the predictions of the five models at the inputs x.

    A is the posterior \(\sigma(kx)\), B is \(\sigma(3kx)\), C is \(\sigma(0.4kx)\), and D is
    \(\min(\sigma(kx) + 0.15, 1)\). E predicts the numbers e, which are independent of x.

    Parameters
    ----------
    k : float
        The steepness of the posterior.
    x : ndarray
        The inputs.
    e : ndarray
        The predictions of model E.

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
    # Several times faster than scipy's expit; the arguments here do not overflow.
    out: FloatArray = 1 / (1 + np.exp(-z))
    return out


@dataclass(frozen=True)
class Gaussians:
    r"""Two equally likely classes, \(N(-\mu, \sigma^2)\) and \(N(+\mu, \sigma^2)\).

    The posterior of the second class is \(\sigma(kx)\) with \(k = 2\mu/\sigma^2\) (Appendix A of
    the paper).

    Parameters
    ----------
    mu : float, default=1.0
        The mean of the second class, and minus that of the first.
    sigma : float, default=1.0
        The standard deviation of both classes.

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
        """The steepness of the posterior, called signal-to-noise ratio in the paper."""
        return 2 * self.mu / self.sigma**2

    def posterior(self, x: FloatArray) -> FloatArray:
        """Return the probability of the second class at x."""
        out: FloatArray = expit(self.k * x)
        return out

    @staticmethod
    def draw_uniform(rng: np.random.Generator, n: int) -> FloatArray:
        """Draw inputs uniformly from (-3, 3), as the paper does for any classes."""
        return rng.uniform(-HALF_WIDTH, HALF_WIDTH, n)


@dataclass(frozen=True)
class Mixture:
    r"""Two Gaussian classes in any number of dimensions, with any priors and covariances.

    The log odds of the second class,
    \(\log\frac{\pi}{1-\pi} + \log N(x; m_1, C_1) - \log N(x; m_0, C_0)\), are quadratic in x, and
    linear only if the covariances are equal.

    Parameters
    ----------
    prior : float
        The probability \(\pi\) of the second class.
    means : tuple of two ndarrays of shape (d,)
        The means of the first and the second class.
    covariances : tuple of two ndarrays of shape (d, d)
        The covariances of the first and the second class.
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
        """Compute the probability of the second class at each row of x."""
        from scipy.stats import multivariate_normal

        first, second = (
            multivariate_normal(mean, covariance).logpdf(x)
            for mean, covariance in zip(self.means, self.covariances, strict=True)
        )
        prior_odds = np.log(self.prior) - np.log1p(-self.prior)
        out: FloatArray = np.exp(log_expit(prior_odds + second - first))
        return out

    def pooled(self) -> Mixture:
        """Return the same classes with one pooled covariance, as a linear model assumes."""
        first, second = self.covariances
        pooled = (1 - self.prior) * first + self.prior * second
        return Mixture(self.prior, self.means, (pooled, pooled))


_STEEPNESS = {"A": 1.0, "B": OVERCONFIDENCE, "C": UNDERCONFIDENCE, "D": 1.0}


def limit_smece(model: str, k: float, bins: int = 10, *, last_bin_closed: bool = True) -> float:
    """Compute the limit of SMECE of a model of the paper against the posterior, for large n.

    Parameters
    ----------
    model : str
        A, B, C, D, or E.
    k : float
        The steepness of the posterior, above 0.
    bins : int, default=10
        The number of equal-width bins.
    last_bin_closed : bool, default=True
        Whether p = 1 belongs to the last bin. In the paper it belongs to no bin, but counts in n.

    Examples
    --------
    >>> [round(limit_smece(model, 2.0), 4) for model in "ABCDE"]
    [0.0, 0.0766, 0.1375, 0.11, 0.25]
    >>> round(limit_smece("D", 2.0, last_bin_closed=False), 4)
    0.0967
    """
    return _limit(model, k, bins, _softplus_over(k), last_bin_closed)


def limit_ece(model: str, k: float, bins: int = 10, *, last_bin_closed: bool = True) -> float:
    """Compute the limit of ECE of a model of the paper against the thresholded label, for large n.

    The label is 1 if x is at least 0.

    Parameters
    ----------
    model : str
        A, B, C, D, or E.
    k : float
        The steepness of the posterior, above 0.
    bins : int, default=10
        The number of equal-width bins.
    last_bin_closed : bool, default=True
        Whether p = 1 belongs to the last bin.

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
    # x at the edges; no rows are below the lowest prediction or above the highest.
    with np.errstate(divide="ignore"):
        cuts = logit(np.clip(edges - shift, 0.0, 1.0)) / a
    cuts = np.clip(cuts, -HALF_WIDTH, HALF_WIDTH)
    predicted = _softplus_over(a)
    gaps = np.diff(predicted(cuts) + shift * cuts - label(cuts))
    if last_bin_closed:
        # If p is 1, the gap of a row is 1 - label. These rows extend from the last cut to 3.
        rest = np.array([cuts[-1], HALF_WIDTH])
        gaps[-1] += float(np.diff(rest - label(rest))[0])
    return float(np.abs(gaps).sum()) / (2 * HALF_WIDTH)


def _softplus_over(a: float) -> Integral:
    """Return the antiderivative of sigmoid(ax)."""

    def integral(x: FloatArray) -> FloatArray:
        out: FloatArray = np.logaddexp(0.0, a * x) / a
        return out

    return integral
