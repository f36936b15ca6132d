"""Scores of single multiclass items: their sums over rows, and their means."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray

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


class ItemScores(NamedTuple):
    """Mean scores of single multiclass items; None for a score the rows do not determine.

    Two scores need numbers of votes. `dist_ce_floor` is the DistCE of a model that predicts the
    true rates. `brier_without_vote_noise` needs at least two votes for every item.
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

    @staticmethod
    def of(sums: FloatArray) -> ItemScores:
        """Compute the scores from the sums of `SCORES`."""
        total = dict(zip(SCORES, sums.tolist(), strict=True))
        weight, infinite = total.pop("weight"), int(total.pop("infinite"))
        total["brier_without_vote_noise"] = total["brier"] - total.pop("vote_noise")
        if infinite:
            total |= {"log_loss": math.inf, "kl_divergence": math.inf}
        means = {
            name: None if math.isnan(value) else value / weight for name, value in total.items()
        }
        return ItemScores(**means, infinite=infinite)
