"""Scores of single multiclass items: their sums over rows, and their means."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

SCORES = (
    "weight",
    "brier",
    "log_loss",
    "kl_divergence",
    "infinite",
    "dist_ce",
    "ent_ce",
    "ent_ce_signed",
    "rank_cs",
    "dist_ce_floor",
    "vote_noise",
)
"""Sums over rows, each of weight times a score; NaN if a sum is unknown.

"infinite" counts the rows with positive weight whose log loss is infinite. The sums of log loss
and KL divergence exclude them. "vote_noise" is what votes add to the Brier score. It is unknown if
a row has only one vote.
"""

_VARYING = ("brier", "dist_ce", "wasserstein", "ranked_probability_score")
_SQUARES = ("rows", "weight_sq", *(f"{s}_{part}" for s in _VARYING for part in ("mixed", "square")))

ORDERED_SCORES = (
    "wasserstein",
    "wasserstein_floor",
    "ranked_probability_score",
    "ranked_vote_noise",
    *_SQUARES,
)
"""Further sums for ordered classes.

"ranked_vote_noise" is the vote noise in the ranked probability score. "rows" counts the rows with
positive weight w. For a score s, "mixed" is the sum of w² s, and "square" the sum of w² s².
"""


class ItemScores(NamedTuple):
    """Mean scores of single multiclass items; None for a score the rows do not determine.

    Two scores need numbers of votes. `dist_ce_floor` is the DistCE of a model that predicts the
    true rates. `brier_without_vote_noise` needs at least two votes for every item.
    The last six need ordered classes.
    """

    brier: float | None
    log_loss: float | None
    kl_divergence: float | None
    dist_ce: float | None
    ent_ce: float | None
    ent_ce_signed: float | None
    rank_cs: float | None
    dist_ce_floor: float | None
    brier_without_vote_noise: float | None
    infinite: int
    """The number of rows that predict 0 for a class with a positive share of the label."""
    wasserstein: float | None = None
    wasserstein_floor: float | None = None
    ranked_probability_score: float | None = None
    ranked_probability_score_without_vote_noise: float | None = None
    manhattan: float | None = None
    manhattan_floor: float | None = None

    @staticmethod
    def of(sums: Mapping[str, float]) -> ItemScores:
        """Compute the scores from the sums of `SCORES` and, if ordered, of `ORDERED_SCORES`."""
        total, ordered = dict(sums), "wasserstein" in sums
        weight, infinite = total.pop("weight"), int(total.pop("infinite"))
        total["brier_without_vote_noise"] = total["brier"] - total.pop("vote_noise")
        if ordered:
            ranked = total["ranked_probability_score"] - total.pop("ranked_vote_noise")
            total["ranked_probability_score_without_vote_noise"] = ranked
            total = {name: value for name, value in total.items() if name not in _SQUARES}
            # The Manhattan distance is twice the total variation.
            total["manhattan"] = 2 * total["dist_ce"]
            total["manhattan_floor"] = 2 * total["dist_ce_floor"]
        if infinite:
            total |= {"log_loss": math.inf, "kl_divergence": math.inf}
        means = {
            name: None if math.isnan(value) else value / weight for name, value in total.items()
        }
        return ItemScores(**means, infinite=infinite)


class MeanScore(NamedTuple):
    """The mean of a score over independent rows, with its standard error."""

    value: float
    error: float
    rows: int

    @staticmethod
    def of(name: str, sums: Mapping[str, float]) -> MeanScore:
        r"""Compute the mean of one score from the sums of ordered classes.

        The squared error is \(\frac{n}{n - 1} \sum_i w_i^2 (s_i - \bar s)^2 / (\sum_i w_i)^2\).
        """
        weight, n = sums["weight"], int(sums["rows"])
        mean = sums[name] / weight
        square = sums[f"{name}_square"] - 2 * mean * sums[f"{name}_mixed"]
        square = max(square + mean**2 * sums["weight_sq"], 0.0)
        return MeanScore(mean, math.sqrt(square * n / max(n - 1, 1)) / weight, n)
