"""Vote noise in scores: subtracted where possible, otherwise reported as a floor."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

import softcal as sc


def multinomial(counts: tuple[int, ...], rates: list[float]) -> float:
    ways = math.factorial(sum(counts)) / math.prod(map(math.factorial, counts))
    return ways * math.prod(p**k for p, k in zip(rates, counts, strict=True))


def outcomes(m: int, rates: list[float]) -> list[tuple[tuple[int, ...], float]]:
    """Return every outcome of m votes and its probability."""
    ways = product(range(m + 1), repeat=len(rates))
    return [(k, multinomial(k, rates)) for k in ways if sum(k) == m]


@pytest.mark.parametrize("m", [2, 3, 7])
def test_brier_without_vote_noise_is_unbiased(m: int) -> None:
    rate, p = 0.3, 0.45
    mean = sum(
        chance * sc.brier_without_vote_noise(sc.Votes([k]), [p])
        for k, chance in outcomes(m, [1 - rate, rate])
    )
    assert mean == pytest.approx((p - rate) ** 2, abs=1e-14)
    rates, probs = [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]
    mean = sum(
        chance * sc.brier_without_vote_noise(sc.Votes([k]), [probs])
        for k, chance in outcomes(m, rates)
    )
    assert mean == pytest.approx(sum((a - b) ** 2 for a, b in zip(probs, rates, strict=True)))


def test_two_classes_give_twice_the_corrected_brier_score(rng: np.random.Generator) -> None:
    votes = sc.Votes(rng.integers(1, 5, (50, 2)))
    p, w = rng.random(50), rng.integers(0, 3, 50)
    one = sc.brier_without_vote_noise(votes, p, sample_weight=w)
    two = sc.brier_without_vote_noise(votes, np.c_[1 - p, p], sample_weight=w)
    assert two == pytest.approx(2 * one)
    share, m = votes.shares, votes.totals
    assert sc.brier_without_vote_noise(share[:, 1], p, n_votes=m, sample_weight=w) == one
    assert sc.brier_without_vote_noise(share, np.c_[1 - p, p], n_votes=m) == (
        sc.brier_without_vote_noise(votes, np.c_[1 - p, p])
    )
    assert one < sc.brier(votes, p, sample_weight=w)


@pytest.mark.parametrize("p", [[0.5, 0.5], [[0.5, 0.5]] * 2], ids=["column", "classes"])
def test_single_votes_are_refused(p: Any) -> None:
    score = sc.brier_without_vote_noise
    with pytest.raises(
        sc.InputError, match=r"two votes or more: 1 of 2 have one, the first is item 1\."
    ):
        score(sc.Votes([[1, 1], [0, 1]]), p)
    with pytest.raises(sc.InputError, match="pass Votes as y_true, or n_votes="):
        score(p, p)
    with pytest.raises(sc.InputError, match="must have a positive value somewhere"):
        score(sc.Votes([[1, 1], [0, 2]]), p, sample_weight=[0, 0])


# A model that predicts the exact rate does not score 0.


@pytest.mark.parametrize(("m", "floor"), [(3, 0.25), (5, 0.19), (10, 0.12), (100, 0.04)])
def test_known_floor_of_dist_ce(m: int, floor: float) -> None:
    found = sc.vote_noise_floor(sc.Votes([[m, 0]]), [0.5], metric="dist_ce")
    assert found == pytest.approx(floor, abs=0.005)


@pytest.mark.parametrize(("m", "floor"), [(3, 0.33), (5, 0.21), (10, 0.14), (100, 0.04)])
def test_known_floor_of_ent_ce(m: int, floor: float) -> None:
    found = sc.vote_noise_floor(sc.Votes([[m, 0]]), [0.2], metric="ent_ce")
    assert found == pytest.approx(floor, abs=0.005)


@pytest.mark.parametrize("metric", ["dist_ce", "ent_ce", "rank_cs"])
def test_floors_equal_the_mean_over_all_outcomes(metric: Any) -> None:
    score = getattr(sc, metric)
    for m, rates in ((4, [0.7, 0.3]), (3, [0.5, 0.5]), (4, [0.2, 0.3, 0.5]), (2, [0.0, 1.0])):
        exact = sum(w * score(sc.Votes([k]), [rates]) for k, w in outcomes(m, rates))
        votes = sc.Votes([[m] + [0] * (len(rates) - 1)] * 200)
        rng = np.random.default_rng(1)
        found = sc.vote_noise_floor(votes, [rates] * 200, metric=metric, rng=rng)
        exactly = len(rates) == 2 or metric == "dist_ce"
        assert found == pytest.approx(exact, abs=1e-12 if exactly else 0.015)


def test_floor_of_items_with_different_vote_counts_is_their_mean() -> None:
    """Items of 3 and 5 votes; predictions may be those of one class or of both."""
    votes = sc.Votes([[3, 0], [2, 3]])
    apart = [
        sc.vote_noise_floor(sc.Votes([k]), [p], metric="ent_ce")
        for k, p in (([3, 0], 0.4), ([2, 3], 0.8))
    ]
    both = sc.vote_noise_floor(votes, [0.4, 0.8], metric="ent_ce")
    assert both == pytest.approx(sum(apart) / 2)
    assert sc.vote_noise_floor(votes, [[0.6, 0.4], [0.2, 0.8]], metric="ent_ce") == pytest.approx(
        both
    )


def test_simulated_floor_is_repeatable_and_requires_a_seed() -> None:
    votes = sc.Votes([[1, 2, 3], [0, 0, 4]])
    p = [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]
    a, b = (
        sc.vote_noise_floor(votes, p, metric="ent_ce", rng=np.random.default_rng(3), draws=7)
        for _ in range(2)
    )
    assert a == b
    with pytest.raises(
        sc.InputError, match="ent_ce of 3 classes is simulated: pass a seed, for example rng=0"
    ):
        sc.vote_noise_floor(votes, p, metric="ent_ce")
    with pytest.raises(sc.InputError, match="draws must be 1 or more: got 0"):
        sc.vote_noise_floor(votes, p, metric="ent_ce", rng=np.random.default_rng(3), draws=0)


def test_floors_refuse_invalid_input() -> None:
    with pytest.raises(sc.InputTypeError, match="votes must be Votes: got list"):
        sc.vote_noise_floor([[1, 2]], [0.5], metric="dist_ce")  # type: ignore[arg-type]
    with pytest.raises(
        sc.InputError, match=r"metric must be one of dist_ce, .*, rank_cs: got 'kl'"
    ):
        sc.vote_noise_floor(sc.Votes([[1, 2]]), [0.5], metric="kl")  # type: ignore[arg-type]
    with pytest.raises(sc.InputError, match="y_prob must be in"):
        sc.vote_noise_floor(sc.Votes([[1, 2]]), [1.5], metric="dist_ce")
    with pytest.raises(sc.InputError, match="rows of y_prob must sum to 1"):
        sc.vote_noise_floor(sc.Votes([[1, 2]]), [[0.5, 0.6]], metric="dist_ce")
