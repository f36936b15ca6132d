"""Dawid-Skene against crowd-kit and the data of 1979; properties of its EM."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import softcal_here as softcal
from hypothesis import given, settings
from hypothesis import strategies as st

import softcal as sc

FOLDER = Path(__file__).parent / "reference"
REFERENCE = json.loads((FOLDER / "dawid_skene.json").read_text())
ANESTHESIA = json.loads((FOLDER / "dawid_skene_1979.json").read_text())


def votes_of(columns: dict[str, Any]) -> sc.Votes:
    return sc.Votes.from_long(columns, item="task", worker="worker", label="label")


def after(votes: sc.Votes, iterations: int, smoothing: float = 0.0) -> sc.crowd.DawidSkene:
    """Run this many iterations, without a check of convergence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return sc.dawid_skene(votes, tolerance=0.0, max_iterations=iterations, smoothing=smoothing)


@st.composite
def few_votes(draw: st.DrawFn) -> sc.Votes:
    """Draw votes of few workers on few items, so that many workers have no item of a class."""
    pairs = st.tuples(st.integers(0, 7), st.integers(0, 3))
    cast = draw(st.dictionaries(pairs, st.integers(0, 2), min_size=1, max_size=20))
    columns = {
        "task": [task for task, _ in cast],
        "worker": [worker for _, worker in cast],
        "label": list(cast.values()),
    }
    return sc.Votes.from_long(
        columns, item="task", worker="worker", label="label", classes=range(3)
    )


def joint_of(votes: sc.Votes, found: sc.crowd.DawidSkene) -> Any:
    """Return the probability of class and votes, from the returned prior and rates."""
    ballots = votes.ballots
    assert ballots is not None
    joint = np.tile(found.prior, (votes.n_items, 1))
    for item, worker, label in zip(ballots.item, ballots.worker, ballots.label, strict=True):
        joint[item] *= found.confusion[worker, :, label]
    return joint


def slow_votes() -> sc.Votes:
    """Draw 3 votes on each of 400 items, whose likelihood is flat long before its maximum."""
    rng = np.random.default_rng(0)
    truth = rng.random(400) < 0.2
    skill = rng.beta(6, 2, (20, 2))
    worker = rng.random((400, 20)).argsort(axis=1)[:, :3]
    right = rng.random((400, 3)) < skill[worker, truth[:, None].astype(int)]
    label = (right == truth[:, None]).astype(int)
    columns = {
        "task": np.repeat(np.arange(400), 3),
        "worker": worker.ravel(),
        "label": label.ravel(),
    }
    return votes_of(columns)


@pytest.fixture
def votes() -> sc.Votes:
    return votes_of(REFERENCE["votes"])


def test_posteriors_equal_crowd_kit(votes: sc.Votes) -> None:
    found = after(votes, REFERENCE["iterations"])
    # crowd-kit bounds probabilities below by 1e-10
    np.testing.assert_allclose(found.posterior, REFERENCE["posterior"], atol=1e-9, rtol=0)


def test_confusions_equal_crowd_kit(votes: sc.Votes) -> None:
    """crowd-kit's errors come from one more step than its posterior."""
    found = after(votes, REFERENCE["iterations"] + 1)
    for worker, label, *rates in REFERENCE["said_given_true"]:
        np.testing.assert_allclose(found.confusion[worker, :, label], rates, atol=1e-7, rtol=0)


@pytest.mark.parametrize("reference", [REFERENCE, REFERENCE["sparse"]])
def test_smoothing_as_in_crowd_kit_gives_its_estimates_to_1e_9(reference: dict[str, Any]) -> None:
    """Smoothing matters for workers without items of a class, as in sparse votes."""
    votes = votes_of(reference["votes"])
    found = after(votes, REFERENCE["iterations"], smoothing=1e-10)
    np.testing.assert_allclose(found.posterior, reference["posterior"], atol=1e-9, rtol=0)
    later = after(votes, REFERENCE["iterations"] + 1, smoothing=1e-10)
    for worker, label, *rates in reference["said_given_true"]:
        row = later.confusion[later.workers.index(worker), :, label]
        np.testing.assert_allclose(row, rates, atol=1e-9, rtol=0)


@settings(max_examples=50, deadline=None)
@given(few_votes(), st.sampled_from([1e-10, 0.01, 1.0]))
def test_smoothed_rates_are_probabilities_of_the_votes_a_worker_used(
    votes: sc.Votes, smoothing: float
) -> None:
    found = after(votes, 5, smoothing)
    np.testing.assert_allclose(found.confusion.sum(axis=2), 1, rtol=1e-12)
    np.testing.assert_allclose(found.posterior.sum(axis=1), 1, rtol=1e-12)
    assert found.prior.sum() == pytest.approx(1)
    ballots = votes.ballots
    assert ballots is not None
    used = np.zeros((len(found.workers), 3), dtype=bool)
    used[ballots.worker, ballots.label] = True
    assert ((found.confusion > 0) == used[:, None, :]).all()


def test_a_posterior_is_a_label_with_its_variance(votes: sc.Votes) -> None:
    found = sc.dawid_skene(votes.binary(2))
    q = found.posterior[:, 1]
    np.testing.assert_array_equal(found.variance[:, 1], q * (1 - q))
    p = np.clip(q, 0.1, 0.9)
    alone = sc.smece_interval(q, p)
    as_outcomes = sc.smece_interval(q, p, n_votes=np.ones(q.size))
    assert as_outcomes.value == alone.value
    assert as_outcomes.high >= alone.high  # a posterior has at most the information of one outcome


@settings(max_examples=50, deadline=None)
@given(few_votes())
def test_likelihood_never_decreases(votes: sc.Votes) -> None:
    likelihoods = [after(votes, k).log_likelihood for k in range(1, 12)]
    assert (np.diff(likelihoods) >= -1e-14).all()


@settings(deadline=None)
@given(few_votes(), st.integers(1, 5))
def test_posterior_and_likelihood_are_those_of_the_returned_parameters(
    votes: sc.Votes, iterations: int
) -> None:
    found = after(votes, iterations)
    joint = joint_of(votes, found)
    total = joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.posterior, joint / total, atol=1e-12)
    likelihood = np.log(total).sum() / votes.counts.sum()
    assert found.log_likelihood == pytest.approx(likelihood, abs=1e-12)
    np.testing.assert_allclose(found.confusion.sum(axis=2), 1, rtol=1e-12)
    assert found.prior.sum() == pytest.approx(1)


def test_converged_posteriors_do_not_change() -> None:
    """The likelihood per vote rises by under 1e-8 from iteration 159 on, and a posterior by 0.98."""
    votes = slow_votes()
    early, found = after(votes, 159), sc.dawid_skene(votes)
    assert found.converged
    assert np.abs(found.posterior - early.posterior).max() > 0.9
    assert np.abs(found.posterior - after(votes, found.iterations - 1).posterior).max() <= 1e-8
    longer = sc.dawid_skene(votes, tolerance=1e-12)
    assert longer.iterations > found.iterations
    np.testing.assert_allclose(found.posterior, longer.posterior, atol=5e-6, rtol=0)


def plain_em(votes: sc.Votes, tolerance: float) -> tuple[Any, int]:
    """Run EM without acceleration, for two classes with votes of all kinds by each worker."""
    ballots = votes.ballots
    assert ballots is not None
    cast = np.zeros((votes.n_items, 2 * len(ballots.workers)))
    cast[ballots.item, 2 * ballots.worker + ballots.label] = 1
    posterior, change, steps = votes.shares, np.inf, 0
    while change > tolerance:
        steps += 1
        counts = (cast.T @ posterior).reshape(-1, 2, 2)
        rates = (counts / counts.sum(axis=1, keepdims=True)).reshape(-1, 2)
        joint = cast @ np.log(np.maximum(rates, 1e-300)) + np.log(posterior.mean(axis=0))
        after = np.exp(joint - joint.max(axis=1, keepdims=True))
        after /= after.sum(axis=1, keepdims=True)
        change, posterior = np.abs(after - posterior).max(), after
    return posterior, steps


def test_acceleration_reaches_the_fixed_point_of_plain_em() -> None:
    votes = slow_votes()
    expected, steps = plain_em(votes, 1e-10)
    found = sc.dawid_skene(votes, tolerance=1e-10)
    assert found.converged
    np.testing.assert_allclose(found.posterior, expected, atol=1e-6, rtol=0)
    assert found.iterations < steps / 3


def test_acceleration_never_lowers_the_likelihood() -> None:
    votes = slow_votes()
    likelihoods = [after(votes, k).log_likelihood for k in range(95, 200, 5)]
    assert (np.diff(likelihoods) >= -1e-14).all()


def test_anesthesia_data_of_1979_give_the_published_estimates() -> None:
    """Observer 1 rates each patient three times. Estimates are known to two digits."""
    observers = [1, 1, 1, 2, 3, 4, 5]
    columns = {
        "task": np.repeat(np.arange(45), 7),
        "worker": observers * 45,
        "label": [int(rating) for each in ANESTHESIA["ratings"] for rating in each],
    }
    with pytest.raises(sc.InputError, match="allow_repeated=True"):
        votes_of(columns)
    votes = sc.Votes.from_long(
        columns, item="task", worker="worker", label="label", allow_repeated=True
    )
    assert (votes.totals == 7).all()
    found = sc.dawid_skene(votes)
    assert found.converged
    np.testing.assert_allclose(found.prior, ANESTHESIA["prior"], atol=0.005, rtol=0)
    np.testing.assert_allclose(found.confusion, ANESTHESIA["error_rates"], atol=0.005, rtol=0)


def strata_votes(rng: np.random.Generator, n: int = 3_000) -> tuple[sc.Votes, Any, Any]:
    """Draw items of four strata, each with its rate, and five votes of workers 80% right."""
    stratum = rng.integers(0, 4, n)
    rate = np.array([0.1, 0.4, 0.6, 0.9])[stratum]
    truth = rng.random(n) < rate
    worker = rng.random((n, 20)).argsort(axis=1)[:, :5]
    right = rng.random((n, 5)) < 0.8
    columns = {
        "task": np.repeat(np.arange(n), 5),
        "worker": worker.ravel(),
        "label": (right == truth[:, None]).astype(int).ravel(),
    }
    return votes_of(columns), stratum, truth


def test_strata_estimate_their_own_rates(rng: np.random.Generator) -> None:
    votes, stratum, truth = strata_votes(rng)
    found = sc.dawid_skene(votes, strata=stratum)
    assert found.strata == (0, 1, 2, 3)
    own = np.array([truth[stratum == s].mean() for s in range(4)])
    error = np.sqrt(own * (1 - own) / np.bincount(stratum))
    assert (np.abs(found.rates[:, 1] - own) < 3 * error).all()
    pooled = sc.dawid_skene(votes).posterior[:, 1]
    off = [abs(pooled[stratum == s].mean() - own[s]) for s in (0, 3)]
    assert min(off) > 3 * error.max()  # biased toward the overall rate
    np.testing.assert_allclose(found.prior, found.rates[stratum].mean(axis=0))


def test_one_stratum_equals_no_strata(votes: sc.Votes) -> None:
    plain, one = after(votes, 20), sc.dawid_skene(votes, strata=["x"] * 80)
    assert (plain.strata, one.strata) == (("all",), ("x",))
    np.testing.assert_allclose(plain.rates, plain.prior[None], rtol=1e-14)
    np.testing.assert_allclose(one.posterior, sc.dawid_skene(votes).posterior, atol=1e-12)


def test_strata_must_have_a_value_per_item(votes: sc.Votes) -> None:
    with pytest.raises(sc.InputError, match="there are 80 items, strata has 3 values"):
        sc.dawid_skene(votes, strata=[1, 2, 3])


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


def test_rates_of_a_class_without_items_are_1() -> None:
    """Worker b's only item is certainly of class 0, so votes do not determine the rates of b for class 1."""
    votes = votes_of({"task": [1, 1, 2], "worker": ["a", "b", "a"], "label": [0, 0, 1]})
    found = sc.dawid_skene(votes)
    assert found.workers == ("a", "b")
    assert found.confusion[1, 1].tolist() == [0, 1]
    assert found.posterior[0].tolist() == [1, 0]


def test_uncontradicted_votes_keep_their_class() -> None:
    """Votes of workers who share no item with others, and always vote the same."""
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
    assert alone.confusion[0].tolist() == [[1, 0], [0, 1]]


def test_binary_votes_keep_their_workers(votes: sc.Votes) -> None:
    found = sc.dawid_skene(votes.binary(2))
    assert found.classes == ("not 2", 2)
    assert found.posterior.shape == (80, 2)


def test_missing_convergence_warns(votes: sc.Votes) -> None:
    with pytest.warns(
        RuntimeWarning,
        match=r"in 2 iterations: the last one changed a posterior by 0\.\d+, more than 1e-08",
    ):
        found = sc.dawid_skene(votes, max_iterations=2)
    assert not found.converged
    assert found.iterations == 2


def test_invalid_arguments_are_refused(votes: sc.Votes) -> None:
    with pytest.raises(
        sc.InputTypeError, match=r"votes must be Votes, from Votes.from_long: got list"
    ):
        sc.dawid_skene([[1, 2]])  # type: ignore[arg-type]
    with pytest.raises(sc.InputError, match="dawid_skene needs votes with raters"):
        sc.dawid_skene(sc.Votes([[1, 2]]))
    spans, nan = {"tolerance": np.timedelta64(1, "s")}, {"max_iterations": float("nan")}
    for wrong in ({"max_iterations": 0}, nan, {"tolerance": -1.0}, {"tolerance": math.nan}, spans):
        with pytest.raises(sc.InputError, match="max_iterations must be 1 or more"):
            sc.dawid_skene(votes, **wrong)
    for smoothing in (-1, float("nan"), float("inf"), "1"):
        with pytest.raises(sc.InputError, match="smoothing must be 0 or more: got"):
            sc.dawid_skene(votes, smoothing=smoothing)  # type: ignore[arg-type]


# From votes in files


@pytest.fixture
def files(tmp_path: Path, rng: np.random.Generator) -> tuple[Path, Path]:
    """Write predictions of 60 items, and the votes of eight workers on them."""
    p = rng.random(60)
    truth = rng.random(60) < p
    cast = [
        (item, f"w{worker}", "yes" if (rng.random() < 0.85) == truth[item] else "no")
        for item in range(60)
        for worker in rng.choice(8, 3, replace=False)
    ]
    pd.DataFrame({"q": range(60), "p": p}).to_csv(tmp_path / "preds.csv", index=False)
    votes = pd.DataFrame(cast, columns=["q", "who", "says"])
    votes.to_csv(tmp_path / "votes.csv", index=False)
    return tmp_path / "preds.csv", tmp_path / "votes.csv"


OPTIONS = ("--pred", "p", "--item", "q", "--vote", "says", "--positive", "yes")


def test_posteriors_are_labels_of_a_scan_and_on_the_command_line(files: tuple[Path, Path]) -> None:
    preds, votes = files
    label = sc.RawVotes(
        "says", item="q", source=votes, rater="who", positive="yes", aggregate="dawid-skene"
    )
    tables = sc.scan(preds, y_true=label, y_prob="p")
    rows, cast = pd.read_csv(preds), pd.read_csv(votes)
    counted = sc.Votes.from_long(cast, item="q", label="says", worker="who", classes=["no", "yes"])
    assert counted.items == tuple(rows["q"])
    q = sc.dawid_skene(counted).posterior[:, 1]
    expected = sc.smece_interval(q, rows["p"], n_votes=np.ones(60))
    found = sc.smece_interval(tables["p"])
    # Items from files are sorted as text, so sums differ by rounding.
    assert found.value == pytest.approx(expected.value, abs=1e-6)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-6)
    assert tables.about.label == "posterior of yes"
    result = softcal(
        "score", preds, "--votes-file", votes, *OPTIONS, "--worker", "who",
        "--aggregate", "dawid-skene", "--format", "json",
    )  # fmt: skip
    assert json.loads(result.stdout)["models"][0]["smece"] == pytest.approx(found.value, abs=1e-12)
    assert "labels are Dawid-Skene posteriors, which assume one true class" in result.stderr
    label = sc.RawVotes(item="q", source=counted, positive="yes", aggregate="dawid-skene")
    own = sc.scan(preds, y_true=label, y_prob="p")
    assert own["p"].smece == pytest.approx(found.value, abs=1e-6)


def test_aggregation_needs_workers_and_votes(files: tuple[Path, Path]) -> None:
    preds, votes = files
    choices: list[tuple[dict[str, Any], str]] = [
        ({}, "Dawid-Skene needs raters"),
        ({"aggregate": "mean"}, "aggregate must be"),
        ({"rater": "who", "raters": True}, "raters need vote shares"),
    ]
    for changed, said in choices:
        given: dict[str, Any] = {
            "item": "q",
            "source": votes,
            "positive": "yes",
            "aggregate": "dawid-skene",
        }
        with pytest.raises(sc.InputError, match=said):
            sc.scan(preds, y_true=sc.RawVotes("says", **given | changed), y_prob="p")
    for arguments, said in (
        (("--votes-file", votes, *OPTIONS), "pass --worker COL"),
        (("--pred", "p", "--label", "p"), "--aggregate needs raw votes"),
    ):
        result = softcal("score", preds, *arguments, "--aggregate", "dawid-skene")
        assert said in result.stderr
