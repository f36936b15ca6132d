"""Confidence intervals of scores of ordered classes, and of means of item scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from softcal import _display
from softcal._validation import inputs
from softcal._validation.multiclass import class_rows
from softcal._validation.rules import refuse_bad_level
from softcal.exceptions import InputError
from softcal.inference.intervals import student_reach
from softcal.inference.smece import ABOVE_ITS_INTERVAL, is_above, smece_interval
from softcal.metrics import multiclass, ordinal, proper
from softcal.metrics.vote_noise import vote_noise_floor
from softcal.table.reliability import refuse_given
from softcal.table.scores import MeanScore
from softcal.table.tableset import TableSet
from softcal.votes import Votes, refuse_unordered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from softcal._validation.inputs import FloatArray
    from softcal.bins import BinsLike
    from softcal.table.reliability import Reliability

ItemMetric = Literal["wasserstein", "ranked_probability_score", "manhattan", "dist_ce", "brier"]

ORDERED_METRICS: tuple[ItemMetric, ...] = ("wasserstein", "ranked_probability_score", "manhattan")
"""The item scores of ordered classes."""

_TERMS: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "wasserstein": ordinal.distance,
    "ranked_probability_score": ordinal.squared_distance,
    "manhattan": lambda p, y: 2 * multiclass.total_variation(p, y),
    "dist_ce": multiclass.total_variation,
    "brier": proper.squared_distance,
}
_ORDERED = ("wasserstein", "ranked_probability_score")
_LARGEST = {"manhattan": 2.0, "dist_ce": 1.0, "brier": 2.0}


@dataclass(frozen=True, repr=False)
class ScoreInterval(_display.Printed):
    """A score with its confidence interval.

    Attributes
    ----------
    metric : str
        The name of the score.
    value : float
        The score of these rows.
    low, high : float
        The confidence interval.
    level : float
        The coverage of the interval: how often it contains the score of unlimited data.
    floor : float or None
        For item scores with votes: the score of a model that predicts the true rates.
    note : str
        A caution, or empty.
    """

    metric: str
    value: float
    low: float
    high: float
    level: float
    floor: float | None = None
    note: str = ""

    def __repr__(self) -> str:
        return f"ScoreInterval({self.value:.4g}, low={self.low:.4g}, high={self.high:.4g})"

    def _shown(self) -> _display.Shown:
        line = (
            f"{self.metric} {self.value:.4f}, {_display.percent(self.level)} interval "
            f"{self.low:.4f} to {self.high:.4f}"
        )
        if self.floor is not None:
            line += f", floor from vote noise {self.floor:.4f}"
        return "\n".join(filter(None, (line, self.note))), [], []


def cumulative_smece_interval(
    y_true: npt.ArrayLike | Mapping[str, Reliability],
    y_prob: npt.ArrayLike | None = None,
    *,
    bins: BinsLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> ScoreInterval:
    r"""Compute `cumulative_smece` with its confidence interval, without resampling.

    The upper limit is the mean of the upper limits of `smece_interval` over the thresholds. This is
    valid although thresholds share rows, because the standard error of a mean is at most the mean
    of the standard errors. The lower limit is the mean of lower limits that hold for all thresholds
    at once (Bonferroni), because each is truncated at 0. The interval is conservative.

    Parameters
    ----------
    y_true, y_prob, bins, sample_weight
        Rows, or the tables of all thresholds, as in `cumulative_smece`.
    n_votes, groups, level
        As in `smece_interval`.

    Returns
    -------
    ScoreInterval
        `value`, `low`, and `high`.

    Examples
    --------
    >>> votes = Votes([[3, 1, 0], [0, 1, 1]] * 50, ordered=True)
    >>> found = cumulative_smece_interval(votes, [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]] * 50)
    >>> found.value, round(found.low, 3), round(found.high, 3)
    (0.125, 0.106, 0.167)
    """
    tables = ordinal.tables_of(
        "cumulative_smece_interval", y_true, y_prob, bins=bins, sample_weight=sample_weight,
        n_votes=n_votes, groups=groups,
    )  # fmt: skip
    refuse_bad_level(level)
    n, stricter = len(tables), 1 - (1 - level) / len(tables)
    each = [smece_interval(rel, level=level) for rel in tables.values()]
    value, high = math.fsum(e.value for e in each) / n, math.fsum(e.high for e in each) / n
    low = math.fsum(smece_interval(rel, level=stricter).low for rel in tables.values()) / n
    others = [found.note for found in each if found.note not in ("", ABOVE_ITS_INTERVAL)]
    note = ABOVE_ITS_INTERVAL if is_above(value, high) else next(iter(others), "")
    return ScoreInterval("cumulative_smece", value, low, high, level, None, note)


def score_interval(
    y_true: npt.ArrayLike | TableSet,
    y_prob: npt.ArrayLike | str,
    *,
    metric: ItemMetric,
    sample_weight: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> ScoreInterval:
    r"""Compute the mean score of single items with its confidence interval.

    \[ \bar s \pm t \sqrt{\frac{n}{n - 1} \sum_g \Bigl(\sum_{i \in g} w_i (s_i - \bar s)\Bigr)^2}
       \Big/ \sum_i w_i \]

    with n groups, or n rows without groups, and t a quantile of Student's distribution with n - 1
    degrees of freedom. The upper limit is at least \(M \log(2/\alpha)/n\), with M the largest
    possible score and \(\alpha\) = 1 - `level`: so large a share of rows, each with that score, may
    be unseen (rule of three). Both limits are cut to the possible scores. The score includes vote
    noise, and so does the interval. With `Votes`, `floor` is the score of a model that predicts the
    true rates.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `classwise_reliability`; "wasserstein" and "ranked_probability_score" need ordered
        classes, lowest first. Or a set of ordered classes without groups, and the name of a model.
    metric : {"wasserstein", "ranked_probability_score", "manhattan", "dist_ce", "brier"}
        The score.
    groups : array-like of shape (n,), optional
        The group of each row, as in `reliability`; rows of one group are not independent.
    level : float, default=0.95
        The level of the interval, between 0 and 1.

    Returns
    -------
    ScoreInterval
        If there is only one row or group, the interval is from 0 to the largest possible score,
        with a note.

    Examples
    --------
    >>> votes = Votes([[3, 1, 0], [0, 1, 1], [2, 2, 0]] * 20, ordered=True)
    >>> p = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.5, 0.5, 0.0]] * 20
    >>> print(score_interval(votes, p, metric="wasserstein"))
    wasserstein 0.3333, 95% interval 0.2719 to 0.3947, floor from vote noise 0.3652
    """
    if not isinstance(metric, str) or metric not in _TERMS:
        message = f"metric must be one of {', '.join(get_args(ItemMetric))}: got {metric!r:.60}."
        raise InputError(message)
    refuse_bad_level(level)
    if isinstance(y_true, TableSet):
        refuse_given("score_interval of a set", sample_weight=sample_weight, groups=groups)
        return _of_set(y_true, y_prob, metric, level)
    votes = y_true if isinstance(y_true, Votes) else None
    if votes is not None and metric in _ORDERED:
        refuse_unordered(votes)
    data = class_rows(y_true, y_prob, sample_weight)
    inputs.refuse_misaligned_groups(groups, y_true=y_true, y_prob=y_prob)
    n = data.y_prob.shape[0]
    group = np.arange(n) if groups is None else inputs.group_numbers(groups, data.column(0))
    score = np.concatenate([each for _, each in data.map_blocks(_TERMS[metric])])
    weight = np.ones(n) if data.sample_weight is None else inputs.as_float64(data.sample_weight)
    total = math.fsum(weight)
    if not total:
        inputs.refuse_no_weight(data.column(0))
    value = math.fsum(weight * score) / total
    largest = _LARGEST.get(metric, data.y_prob.shape[1] - 1.0)
    own = np.bincount(group, weight * (score - value))[np.unique(group[weight > 0])]
    error = math.sqrt(own.size / max(own.size - 1, 1) * float(own @ own)) / total
    low, high, note = _limits(MeanScore(value, error, own.size), largest, level)
    floor = None
    if votes is not None and metric != "brier" and sample_weight is None:
        floor = vote_noise_floor(votes, y_prob, metric=metric)
    return ScoreInterval(metric, value, low, high, level, floor, note)


def _of_set(tables: TableSet, model: Any, metric: str, level: float) -> ScoreInterval:
    """Return the interval of a score from the sums of a set."""
    if not tables.ordered or tables.about.group is not None:
        message = (
            "a set has intervals of item scores if its classes are ordered and it has no groups. "
            "Pass the rows instead of the set."
        )
        raise InputError(message)
    name, scale = ("dist_ce", 2.0) if metric == "manhattan" else (metric, 1.0)
    mean = MeanScore.of(name, tables.score_sums(model))
    mean = mean._replace(value=scale * mean.value, error=scale * mean.error)
    low, high, note = _limits(mean, _LARGEST.get(metric, len(tables.classes) - 1.0), level)
    floor = getattr(tables.item_scores(model), f"{metric}_floor", None)
    return ScoreInterval(metric, mean.value, low, high, level, floor, note)


def _limits(found: MeanScore, largest: float, level: float) -> tuple[float, float, str]:
    """Return both limits of a mean, and a caution or an empty text."""
    value, error, n = found
    if n < 2:
        return 0.0, largest, "One row or group does not show how much rows vary."
    half = student_reach(n, level) * error
    # Rows of an unobserved kind may make up this share of the data (rule of three).
    unseen = largest * min(-math.log((1 - level) / 2) / n, 1.0)
    return max(value - half, 0.0), min(max(value + half, unseen), largest), ""
