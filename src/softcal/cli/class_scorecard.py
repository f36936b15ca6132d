"""Several models of many classes against the same labels, side by side, as plain numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from softcal._validation.multiclass import class_rows
from softcal._validation.votes import Votes
from softcal.inference.intervals import smece_interval
from softcal.inference.tests import calibration_test
from softcal.metrics import multiclass as scores
from softcal.metrics import proper
from softcal.metrics.multiclass import classwise_reliability, top_label_reliability
from softcal.metrics.vote_noise import brier_without_vote_noise, vote_noise_floor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from softcal.bins import BinsLike


def class_scorecard(
    y_true: npt.ArrayLike,
    predictions: Mapping[str, npt.ArrayLike],
    classes: Sequence[str],
    *,
    bins: BinsLike = 10,
    sample_weight: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> list[dict[str, Any]]:
    """Score each model by every metric of many classes; plain numbers, ready for JSON.

    What needs numbers of votes is None without them, as is what is infinite. Of the Brier score
    vote noise can be taken off only where every item has two votes.
    """
    return [
        {"pred": pred, **_scores(y_true, y_prob, classes, bins, sample_weight, level)}
        for pred, y_prob in predictions.items()
    ]


def _scores(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    classes: Sequence[str],
    bins: BinsLike,
    w: npt.ArrayLike | None,
    level: float,
) -> dict[str, Any]:
    tables = classwise_reliability(y_true, y_prob, bins=bins, sample_weight=w).values()
    by_class = {name: table.smece for name, table in zip(classes, tables, strict=True)}
    top = top_label_reliability(y_true, y_prob, bins=bins, sample_weight=w)
    interval = smece_interval(top, level=level)
    floor = without_noise = None
    if isinstance(y_true, Votes):
        if w is None:  # the floor is one of items, each as good as any other
            floor = vote_noise_floor(y_true, y_prob, metric="dist_ce")
        if y_true.totals.min() >= 2:
            without_noise = brier_without_vote_noise(y_true, y_prob, sample_weight=w)
    return {
        "top_label_smece": top.smece,
        "debiased": interval.debiased,
        "low": interval.low,
        "high": interval.high,
        "level": level,
        "pvalue": calibration_test(top).pvalue,
        "classwise_smece": math.fsum(by_class.values()) / len(by_class),
        "smece_by_class": by_class,
        "dist_ce": scores.dist_ce(y_true, y_prob, sample_weight=w),
        "dist_ce_floor": floor,
        "ent_ce": scores.ent_ce(y_true, y_prob, sample_weight=w),
        "ent_ce_signed": scores.ent_ce_signed(y_true, y_prob, sample_weight=w),
        "rank_cs": scores.rank_cs(y_true, y_prob, sample_weight=w),
        "brier": proper.brier(y_true, y_prob, sample_weight=w),
        "brier_without_vote_noise": without_noise,
        "log_loss": _finite(proper.log_loss(y_true, y_prob, sample_weight=w)),
        "rows_of_infinite_log_loss": _infinite_rows(y_true, y_prob, w),
        "kl_divergence": _finite(proper.kl_divergence(y_true, y_prob, sample_weight=w)),
    }


def _infinite_rows(y_true: npt.ArrayLike, y_prob: npt.ArrayLike, w: npt.ArrayLike | None) -> int:
    """Count the rows with weight whose label gives mass to a class of probability 0."""
    rows = class_rows(y_true, y_prob, w)
    ruled_out = ((rows.y_prob == 0) & (rows.y_true > 0)).any(axis=1)
    return int(np.count_nonzero(ruled_out if w is None else ruled_out & (np.asarray(w) > 0)))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
