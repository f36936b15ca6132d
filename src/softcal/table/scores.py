"""Scores of single items of many classes: sums over rows, and the means of them."""

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
"""Sums over rows, each of weight times a score; NaN where it is not known.

"infinite" counts the rows with weight whose log loss is infinite; the sums of log loss and KL
divergence leave them out. "vote_noise" is what votes add to the Brier score, and not known where
a row has one vote.
"""

ORDERED_SCORES = (
    "wasserstein",
    "wasserstein_floor",
    "ranked_probability_score",
    "ranked_vote_noise",
)
"""More such sums where the classes are ordered; the last is what votes add to the third."""


def score_names(*, ordered: bool) -> tuple[str, ...]:
    """Return the names of the sums that a set keeps."""
    return (*SCORES, *ORDERED_SCORES) if ordered else SCORES


class ItemScores(NamedTuple):
    """Mean scores of single items of many classes; None where the rows do not say.

    Scores of vote noise need numbers of votes: `dist_ce_floor` is the DistCE of a model that
    predicts the true rates, and `brier_without_vote_noise` needs two votes or more for every item.
    The last four need ordered classes.
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
    """The number of rows in which a class that has a share of the label was predicted as 0."""
    wasserstein: float | None = None
    wasserstein_floor: float | None = None
    ranked_probability_score: float | None = None
    ranked_probability_score_without_vote_noise: float | None = None

    @staticmethod
    def of(sums: FloatArray) -> ItemScores:
        """Return the scores of the sums of `score_names`."""
        ordered = sums.size > len(SCORES)
        total = dict(zip(score_names(ordered=ordered), sums.tolist(), strict=True))
        weight, infinite = total.pop("weight"), int(total.pop("infinite"))
        total["brier_without_vote_noise"] = total["brier"] - total.pop("vote_noise")
        if ordered:
            ranked = total["ranked_probability_score"] - total.pop("ranked_vote_noise")
            total["ranked_probability_score_without_vote_noise"] = ranked
        if infinite:
            total |= {"log_loss": math.inf, "kl_divergence": math.inf}
        means = {
            name: None if math.isnan(value) else value / weight for name, value in total.items()
        }
        return ItemScores(**means, infinite=infinite)
