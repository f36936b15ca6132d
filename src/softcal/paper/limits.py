r"""What SMECE and ECE of the five models tend to as n grows, in closed form.

With x uniform on (-3, 3), the predictions of A to D increase with x, so each bin is an interval of
x, and the gap of the bin is an integral of sigmoids over it: \(\int \sigma(ax)\,dx\) is
\(\mathrm{softplus}(ax)/a\). No simulation and no quadrature. Model E does not look at x: its
predictions are uniform and every bin's mean label is 1/2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logit

from softcal.paper.generative import BIAS, HALF_WIDTH, MODELS, OVERCONFIDENCE, UNDERCONFIDENCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from softcal.door.inputs import FloatArray

    Integral = Callable[[FloatArray], FloatArray]

_STEEPNESS = {"A": 1.0, "B": OVERCONFIDENCE, "C": UNDERCONFIDENCE, "D": 1.0}


def limit_smece(model: str, k: float, bins: int = 10, *, last_bin_closed: bool = True) -> float:
    """Give the limit of SMECE of one of the paper's models, against the posterior.

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
    """Give the limit of ECE of one of the paper's models, against the thresholded label.

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
    """Give the integral of sigmoid(ax)."""

    def integral(x: FloatArray) -> FloatArray:
        out: FloatArray = np.logaddexp(0.0, a * x) / a
        return out

    return integral
