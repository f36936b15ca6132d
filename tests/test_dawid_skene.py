"""Dawid-Skene against crowd-kit (reference values), and the laws of its EM."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softcal as sc

REFERENCE = json.loads((Path(__file__).parent / "reference" / "dawid_skene.json").read_text())


def votes_of(columns: dict[str, Any]) -> sc.Votes:
    return sc.Votes.from_long(columns, item="task", worker="worker", label="label")


def after(votes: sc.Votes, iterations: int) -> sc.DawidSkene:
    """Run this many iterations, whether or not that is enough."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return sc.dawid_skene(votes, tolerance=0.0, max_iterations=iterations)


@pytest.fixture
def votes() -> sc.Votes:
    return votes_of(REFERENCE["votes"])


def test_posteriors_equal_crowd_kits(votes: sc.Votes) -> None:
    found = after(votes, REFERENCE["iterations"])
    # crowd-kit lets no probability fall below 1e-10
    np.testing.assert_allclose(found.posterior, REFERENCE["posterior"], atol=1e-9, rtol=0)


def test_confusions_equal_crowd_kits(votes: sc.Votes) -> None:
    """crowd-kit's errors are those after one more step than its posterior."""
    found = after(votes, REFERENCE["iterations"] + 1)
    for worker, label, *rates in REFERENCE["said_given_true"]:
        np.testing.assert_allclose(found.confusion[worker, :, label], rates, atol=1e-7, rtol=0)


def test_the_likelihood_never_falls(votes: sc.Votes) -> None:
    likelihoods = [after(votes, k).log_likelihood for k in range(1, 60)]
    assert (np.diff(likelihoods) >= -1e-14).all()


def test_the_result_is_a_fixed_point(votes: sc.Votes) -> None:
    found = sc.dawid_skene(votes)
    assert found.converged
    assert found.log_likelihood - after(votes, found.iterations - 1).log_likelihood <= 1e-8
    longer = sc.dawid_skene(votes, tolerance=1e-14, max_iterations=20_000)
    assert longer.converged
    assert longer.log_likelihood - found.log_likelihood < 1e-4
    np.testing.assert_allclose(found.posterior.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(found.confusion.sum(axis=2), 1, rtol=1e-12)
    assert found.prior.sum() == pytest.approx(1)


def test_renaming_the_classes_changes_their_order_only(votes: sc.Votes) -> None:
    columns = {**REFERENCE["votes"], "label": [2 - label for label in REFERENCE["votes"]["label"]]}
    np.testing.assert_allclose(
        after(votes_of(columns), 10).posterior, after(votes, 10).posterior[:, ::-1], atol=1e-12
    )


def test_workers_of_one_skill_give_the_majority(rng: np.random.Generator) -> None:
    truth = rng.integers(0, 2, 500)
    right = rng.random((500, 9)) < 0.8
    said = np.where(right, truth[:, None], 1 - truth[:, None])
    votes = sc.Votes.from_long(
        {
            "item": np.repeat(np.arange(500), 9),
            "worker": np.tile(np.arange(9), 500),
            "label": said.ravel(),
        },
        item="item",
        worker="worker",
        label="label",
    )
    found = sc.dawid_skene(votes)
    assert (found.posterior.argmax(axis=1) == truth).mean() > 0.96
    assert found.confusion[:, [0, 1], [0, 1]].mean() == pytest.approx(0.8, abs=0.03)
    assert repr(found) == (
        f"DawidSkene(items=500, workers=9, classes=2, iterations={found.iterations}, converged=True)"
    )


def test_what_a_worker_never_met_is_even() -> None:
    """Worker b's only item is certainly of class 0, so class 1 says nothing about b."""
    votes = votes_of({"task": [1, 1, 2], "worker": ["a", "b", "a"], "label": [0, 0, 1]})
    found = sc.dawid_skene(votes)
    assert found.workers == ("a", "b")
    assert found.confusion[1, 1].tolist() == [0.5, 0.5]
    assert found.posterior[0, 0] == pytest.approx(1)


def test_what_nobody_contradicts_stays() -> None:
    """Workers who share no item with others, and always say the same, are all there is to go by."""
    columns = {
        "task": [1, 1, 1, 2, 2, 2, 3, 3, 4],
        "worker": ["a", "b", "c", "a", "b", "c", "d", "e", "f"],
        "label": [0, 0, 1, 1, 1, 0, 0, 0, 1],
    }
    found = sc.dawid_skene(votes_of(columns))
    assert found.posterior.argmax(axis=1).tolist() == [0, 1, 0, 1]
    np.testing.assert_array_equal(found.posterior[2:], [[1, 0], [0, 1]])
    alone = sc.dawid_skene(votes_of({"task": [1, 2], "worker": ["a", "b"], "label": [0, 1]}))
    np.testing.assert_array_equal(alone.posterior, np.eye(2))
    assert alone.confusion[0].tolist() == [[1, 0], [0.5, 0.5]]


def test_binary_votes_keep_their_workers(votes: sc.Votes) -> None:
    found = sc.dawid_skene(votes.binary(2))
    assert found.classes == ("not 2", 2)
    assert found.posterior.shape == (80, 2)


def test_not_converging_is_said(votes: sc.Votes) -> None:
    with pytest.warns(RuntimeWarning, match="did not converge in 2 iterations"):
        found = sc.dawid_skene(votes, max_iterations=2)
    assert not found.converged
    assert found.iterations == 2


def test_refusals(votes: sc.Votes) -> None:
    with pytest.raises(
        sc.InputTypeError, match=r"votes must be Votes, from Votes.from_long: got list"
    ):
        sc.dawid_skene([[1, 2]])  # type: ignore[arg-type]
    with pytest.raises(sc.InputError, match="votes must say whose each vote is"):
        sc.dawid_skene(sc.Votes([[1, 2]]))
    for wrong in ({"max_iterations": 0}, {"tolerance": -1.0}, {"tolerance": float("nan")}):
        with pytest.raises(sc.InputError, match="max_iterations must be 1 or more"):
            sc.dawid_skene(votes, **wrong)
