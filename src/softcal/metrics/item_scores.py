"""Compute the sums of item scores that a multiclass set of tables stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softcal._validation.inputs import as_float64
from softcal.metrics import multiclass, ordinal, proper
from softcal.metrics.vote_noise import distance_by_chance, wasserstein_by_chance
from softcal.table.blocks import BLOCKS, Sparse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from softcal._validation.inputs import Coded, FloatArray
    from softcal._validation.multiclass import ClassRows


def score_entries(
    data: ClassRows, cells: Coded | None = None, *, ordered: bool = False
) -> Mapping[str, Sparse]:
    """Add up the scores of rows of many classes, for each cell: keys (cell,), by block.

    Raises
    ------
    InputError
        If a value breaks a rule.
    """
    blocks = ("scores", "ordered_scores") if ordered else ("scores",)
    names = tuple(name for block in blocks for name in BLOCKS[block].sums)
    found = [Sparse(np.empty((1, 0), dtype=np.int64), np.empty((len(names), 0)))]
    for part, (p, y) in data.map_blocks(lambda p, y: (p, y)):
        weight = None if data.sample_weight is None else as_float64(data.sample_weight[part])
        votes = None if data.n_votes is None else as_float64(data.n_votes[part])
        terms = _terms(names, p, y, weight, votes)
        if cells is None:
            keys = np.zeros((1, 1), dtype=np.int64)
            found.append(Sparse(keys, terms.sum(axis=1, keepdims=True)))
        else:
            found.append(Sparse.of(cells.numbers[None, part], terms))
    added = Sparse.added(found)
    here = added.where(added.values[names.index("weight")] > 0)
    cut = np.cumsum([len(BLOCKS[block].sums) for block in blocks])[:-1]
    parts = np.split(here.values, cut)
    return {block: Sparse(here.keys, each) for block, each in zip(blocks, parts, strict=True)}


def _terms(
    names: tuple[str, ...],
    p: FloatArray,
    y: FloatArray,
    weight: FloatArray | None,
    votes: FloatArray | None,
) -> FloatArray:
    """Return what each row adds to each sum; p and y have shape (classes, rows)."""
    rows = p.shape[1]
    log_loss, entropy = proper.class_cross_entropy(p, y), multiclass.entropy(y)
    infinite = np.isinf(log_loss)
    log_loss[infinite] = 0.0
    gap = multiclass.entropy(p) - entropy
    scores = {
        "weight": np.ones(rows),
        "brier": proper.squared_distance(p, y),
        "log_loss": log_loss,
        # Never negative, except for rounding.
        "kl_divergence": np.where(infinite, 0.0, np.maximum(log_loss - entropy, 0.0)),
        "infinite": infinite.astype(np.float64),
        "dist_ce": multiclass.total_variation(p, y),
        "ent_ce": np.abs(gap),
        "ent_ce_signed": gap,
        "rank_cs": multiclass.same_order(p, y),
        "dist_ce_floor": np.full(rows, np.nan),
        "vote_noise": np.full(rows, np.nan),
    }
    if votes is not None:
        scores["dist_ce_floor"] = distance_by_chance(p, votes)
        scores["vote_noise"] = _noise(y, votes)
    if "wasserstein" in names:
        scores |= {
            "wasserstein": ordinal.distance(p, y),
            "wasserstein_floor": np.full(rows, np.nan),
            "ranked_probability_score": ordinal.squared_distance(p, y),
            "ranked_vote_noise": np.full(rows, np.nan),
        }
        if votes is not None:
            scores["wasserstein_floor"] = wasserstein_by_chance(p, votes)
            scores["ranked_vote_noise"] = _noise(ordinal.above(y), votes)
        scores |= {"rows": np.ones(rows), "weight_sq": np.ones(rows) if weight is None else weight}
        for name in names:
            score, _, part = name.rpartition("_")
            if part in ("mixed", "square"):
                power = scores[score] if part == "mixed" else scores[score] ** 2
                scores[name] = scores["weight_sq"] * power
    terms = np.array([scores[name] for name in names])
    if weight is None:
        return terms
    here = weight > 0
    terms[:, ~here] = 0.0  # a row of weight 0 counts as absent, even if a score is NaN
    terms[[name not in ("infinite", "rows") for name in names]] *= weight
    return terms


def _noise(y: FloatArray, votes: FloatArray) -> FloatArray:
    """Return the vote noise in the squared distance of each row; NaN if there is one vote."""
    single = votes < 2
    spread = (y * (1 - y)).sum(axis=0)
    return np.where(single, np.nan, spread / np.where(single, 1, votes - 1))
