"""Effects of vote noise on scores of single items.

A share of m votes differs from the rate it estimates. In calibration errors this difference
averages out. Scores of single items include it, and are positive even for a perfect model. The
excess of the Brier score can be subtracted without bias. Total variation and entropy have no
unbiased correction, but the expected score of a perfect model can be computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from softcal._validation import inputs
from softcal._validation.multiclass import ClassRows, by_class, class_rows, is_by_class
from softcal._validation.rules import generator
from softcal.bins import Bins
from softcal.exceptions import InputError, InputTypeError
from softcal.metrics import multiclass, ordinal
from softcal.metrics.proper import mean_of_blocks, squared_distance
from softcal.table.reliability import Reliability, from_rows, refuse_no_rows, rows_or_table
from softcal.votes import Votes, refuse_unordered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from softcal._validation.inputs import FloatArray

Metric = Literal[
    "dist_ce", "ent_ce", "rank_cs", "manhattan", "wasserstein", "ranked_probability_score"
]

_SCORES = {
    "ent_ce": multiclass.absolute_entropy_gap,
    "rank_cs": multiclass.same_order,
}
_NUMBERS_AT_ONCE = 1 << 20


def brier_without_vote_noise(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    n_votes: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Estimate the Brier score against the rates behind the votes, without vote noise.

    \[ \frac1n \sum_i (p_i - y_i)^2 - \frac{y_i (1 - y_i)}{m_i - 1}, \qquad
       \frac1n \sum_i \sum_c (p_{ic} - y_{ic})^2 - \frac{y_{ic} (1 - y_{ic})}{m_i - 1}
       \text{ for classes} \]

    Let y be the share of m votes drawn independently with rate y*. This is an unbiased estimate of
    the mean of \((p - y^*)^2\), for any m of 2 or more. `brier` is higher because of vote noise.
    An estimate from few items can be negative.

    Parameters
    ----------
    y_true : Votes, array-like of shape (n_samples,) or (n_samples, n_classes), or Reliability
        Votes, or vote shares together with `n_votes`. Every item needs at least two votes. A table
        must have been built from votes.
    y_prob : array-like of shape (n_samples,) or (n_samples, n_classes), optional
        Predicted probabilities; required unless a table is passed. One column per class gives twice
        the score of one column for two classes.
    n_votes : int or array-like of shape (n_samples,), optional
        The number of votes behind each label; omit it with `Votes`.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.

    Returns
    -------
    float
        The estimate.

    Examples
    --------
    >>> round(brier_without_vote_noise(Votes([[1, 3], [2, 2]]), [0.5, 0.5]), 4)
    -0.0417
    >>> votes = Votes([[1, 3, 0], [2, 1, 1]])
    >>> round(brier_without_vote_noise(votes, [[0.2, 0.6, 0.2], [0.4, 0.4, 0.2]]), 4)
    -0.1167
    """
    by_class = y_prob is not None and is_by_class(y_prob)
    if by_class and y_prob is not None and not isinstance(y_true, Reliability):
        return _of_classes(y_true, y_prob, n_votes, sample_weight)
    found = rows_or_table(
        "brier_without_vote_noise", y_true, y_prob, n_votes=n_votes, sample_weight=sample_weight
    )
    if isinstance(found, Reliability):
        refuse_no_rows(found)
        _refuse_table_of_single_votes(found)
        sums = found.sums
    else:
        _refuse_single_votes(found.n_votes)
        sums = from_rows(found, Bins.of(1)).sums
    return float((sums.residual_sq - sums.vote_noise).sum() / sums.weight.sum())


def _of_classes(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    n_votes: npt.ArrayLike | None,
    sample_weight: npt.ArrayLike | None,
) -> float:
    data = class_rows(y_true, y_prob, sample_weight, n_votes)
    votes = _refuse_single_votes(data.n_votes)

    def parts(p: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return squared_distance(p, y), (y * (1 - y)).sum(axis=0)

    blocks = data.map_blocks(parts)
    return mean_of_blocks(
        data,
        (
            (part, squares - spread / (inputs.as_float64(votes[part]) - 1))
            for part, (squares, spread) in blocks
        ),
    )


def vote_noise_floor(
    votes: Votes,
    y_prob: npt.ArrayLike,
    *,
    metric: Metric,
    rng: np.random.Generator | int | None = None,
    draws: int = 100,
) -> float:
    r"""Compute the mean score of a model whose predictions are exactly the true rates.

    For each item, as many votes as it has are drawn from the prediction. The result is the mean
    of the metric over such draws. Only the part of a model's score above this floor is due to the
    model. To compute the score of a perfect model whose rates are the vote shares, pass
    `votes.shares` as `y_prob`.

    `dist_ce` and `manhattan` are exact: the number of votes for one class is binomial, and

    \[ E|k/m - p| = \frac{2 v}{m} \binom{m}{v} p^v (1 - p)^{m - v + 1}, \quad
       v = \lfloor m p \rfloor + 1 . \]

    The number of votes above a threshold is binomial as well, so `wasserstein` and
    `ranked_probability_score` are exact. With two classes, `ent_ce` and `rank_cs` are exact too, as
    sums over all outcomes. With more classes, they are simulated.

    Parameters
    ----------
    votes : Votes
        The votes. Only the number of votes per item is used.
    y_prob : array-like of shape (items, classes)
        The predictions. For two classes, the probability of the second is enough.
    metric : {"dist_ce", "ent_ce", "rank_cs", "manhattan", "wasserstein", ...}
        The metric. For `rank_cs`, where higher is better, the result is a ceiling. With two
        classes, `dist_ce` is the mean absolute difference. "wasserstein" and
        "ranked_probability_score" need ordered votes.
    rng : numpy.random.Generator or int, optional
        Required if votes are simulated. The same seed gives the same result.
    draws : int, default=100
        The number of simulated draws of each item's votes.

    Returns
    -------
    float
        The expected score of the perfect model: a floor, or a ceiling for `rank_cs`.

    Examples
    --------
    The model predicts the rate of 0.5 exactly, and each item has three votes.

    >>> round(vote_noise_floor(Votes([[2, 1]]), [0.5], metric="dist_ce"), 4)
    0.25
    """
    if not isinstance(votes, Votes):
        message = f"votes must be Votes: got {type(votes).__name__}."
        raise InputTypeError(message)
    if metric not in _SCORES and metric not in _EXACT:
        known = ", ".join((*_EXACT, *_SCORES))
        message = f"metric must be one of {known}: got {metric!r:.60}."
        raise InputError(message)
    if metric in ("wasserstein", "ranked_probability_score"):
        refuse_unordered(votes)
    data = class_rows(votes, _both_classes(votes, y_prob))
    data.check()
    if metric in _EXACT:
        return _exact_floor(data, votes.effective_totals, _EXACT[metric])
    if votes.n_classes == 2:
        return _two_class_floor(data, votes.effective_totals, metric)
    if rng is None:
        message = (
            f"{metric} of {votes.n_classes} classes is simulated: pass a seed, for example rng=0."
        )
        raise InputError(message)
    return _simulated_floor(data, votes.effective_totals, metric, generator(rng), draws)


def _both_classes(votes: Votes, y_prob: npt.ArrayLike) -> npt.ArrayLike:
    if votes.n_classes > 2 or np.ndim(y_prob) != 1:
        return y_prob
    second = inputs.probabilities(y_prob, "y_prob").astype(np.float64)
    return np.column_stack([1 - second, second])


def _exact_floor(
    data: ClassRows,
    totals: npt.NDArray[Any],
    by_chance: Callable[[FloatArray, npt.NDArray[Any]], FloatArray],
) -> float:
    parts = _parts(*data.y_prob.shape)
    total = sum(by_chance(by_class(data.y_prob[part]), totals[part]).sum() for part in parts)
    return float(total) / totals.size


def _parts(rows: int, numbers: int) -> Iterator[slice]:
    """Yield parts of the rows, of a bounded size, given the numbers that one row needs."""
    size = max(1, _NUMBERS_AT_ONCE // numbers)
    return (slice(start, start + size) for start in range(0, rows, size))


def distance_by_chance(p: FloatArray, votes: npt.NDArray[Any]) -> FloatArray:
    """Return the expected total variation distance between p and the shares of votes drawn from p.

    p has shape (classes, rows).
    """
    from scipy.stats import binom

    v = np.floor(votes * p) + 1
    off = 2 * v / votes * binom.pmf(v, votes, p) * (1 - p)
    total: FloatArray = off.sum(axis=0) / 2
    return total


def wasserstein_by_chance(p: FloatArray, votes: npt.NDArray[Any]) -> FloatArray:
    """Return each row's mean Wasserstein distance from the shares of votes drawn from p."""
    return 2 * distance_by_chance(ordinal.above(p), votes)


def _ranked_by_chance(p: FloatArray, votes: npt.NDArray[Any]) -> FloatArray:
    q = ordinal.above(p)
    score: FloatArray = (q * (1 - q)).sum(axis=0) / votes
    return score


_EXACT = {
    "dist_ce": distance_by_chance,
    "manhattan": lambda p, votes: 2 * distance_by_chance(p, votes),
    "wasserstein": wasserstein_by_chance,
    "ranked_probability_score": _ranked_by_chance,
}


def _two_class_floor(data: ClassRows, totals: npt.NDArray[Any], metric: Metric) -> float:
    """Return the floor for two classes, as a sum over all outcomes of each item's votes."""
    from scipy.stats import binom

    score, second, total = _SCORES[metric], data.y_prob[:, 1].astype(np.float64), 0.0
    for m in np.unique(totals):
        k = np.arange(m + 1)
        probs = second[totals == m]
        for part in _parts(probs.size, k.size):
            p = probs[part, None]
            outcome = np.broadcast_to(k / m, (p.size, k.size)).ravel()
            model = np.broadcast_to(p, (p.size, k.size)).ravel()
            scores = score(np.stack([1 - model, model]), np.stack([1 - outcome, outcome]))
            total += float((scores.reshape(p.size, k.size) * binom.pmf(k, m, p)).sum())
    return total / totals.size


def _simulated_floor(
    data: ClassRows,
    totals: npt.NDArray[Any],
    metric: Metric,
    rng: np.random.Generator,
    draws: int,
) -> float:
    if draws < 1:
        message = f"draws must be 1 or more: got {draws!r:.60}."
        raise InputError(message)
    score, total = _SCORES[metric], 0.0
    for part in _parts(*data.y_prob.shape):
        p = data.y_prob[part].astype(np.float64)
        p /= p.sum(axis=1, keepdims=True)  # the generator requires an exact sum
        for _ in range(draws):
            shares = rng.multinomial(totals[part], p) / totals[part, None]
            total += float(score(p.T, shares.T).sum())
    return total / (totals.size * draws)


def _refuse_table_of_single_votes(rel: Reliability) -> None:
    single = rel.n - int(rel.sums.repeated.sum())
    if single:
        message = (
            f"every item must have two votes or more: {single} of the table's {rel.n} have one, or "
            "their votes were not given. Build the table from Votes or with n_votes=."
        )
        raise InputError(message)


def _refuse_single_votes(n_votes: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    if n_votes is None:
        message = "pass Votes as y_true, or n_votes=: vote noise depends on the number of votes."
        raise InputError(message)
    single = n_votes == 1
    if single.any():
        message = (
            f"every item must have two votes or more: {single.sum()} of {single.size} have one, "
            f"the first is item {single.argmax()}. One vote gives no estimate of vote noise: omit "
            "those items."
        )
        raise InputError(message)
    return n_votes
