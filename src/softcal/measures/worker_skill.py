"""Dawid and Skene's model: what the label is when workers differ in skill."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from softcal.door.votes import Votes
from softcal.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from softcal.door.ballots import Ballots
    from softcal.door.inputs import FloatArray


@dataclass(frozen=True, eq=False)
class DawidSkene:
    """What `dawid_skene` found.

    Attributes
    ----------
    posterior : ndarray of shape (items, classes)
        How likely each class is for each item, given all votes. Items in the order of the votes.
    confusion : ndarray of shape (workers, classes, classes)
        How often a worker says the last class when the one before it is true. Even rates for a
        class that none of the worker's items may be of, about which the votes say nothing.
    prior : ndarray of shape (classes,)
        How common each class is.
    workers, classes : tuple
        The names, in the order of the arrays.
    log_likelihood : float
        Of the votes, under all this, per vote; in nats.
    iterations : int
        How many were made.
    converged : bool
        Whether the log-likelihood stopped rising.
    """

    posterior: FloatArray
    confusion: FloatArray
    prior: FloatArray
    workers: tuple[Any, ...]
    classes: tuple[Any, ...]
    log_likelihood: float
    iterations: int
    converged: bool

    def __repr__(self) -> str:
        items, classes = self.posterior.shape
        return (
            f"DawidSkene(items={items}, workers={len(self.workers)}, classes={classes}, "
            f"iterations={self.iterations}, converged={self.converged})"
        )


def dawid_skene(votes: Votes, *, tolerance: float = 1e-8, max_iterations: int = 2000) -> DawidSkene:
    r"""Estimate labels from votes whose workers differ in skill (Dawid and Skene 1979).

    Each item has one true class t, drawn with probability \(\pi_t\); worker w then says l with
    probability \(\theta^w_{tl}\). Expectation maximization, from the shares of votes on, finds
    the parameters that make the votes most likely, and with them the posterior of each item

    \[ q_{it} \propto \pi_t \prod_{(w, l) \in i} \theta^w_{tl} , \]

    computed by logarithms. Nothing is smoothed or floored, so the likelihood never falls. Votes
    nobody contradicts stand; but of a worker who says the same whatever others say, a vote alone
    tells nothing, and the item gets the prior.

    The model supposes that there **is** one true class, and that workers err independently.
    Where people disagree for good reasons, the posterior argues that away: it is nearly always
    close to 0 or 1, and no label to measure calibration to human opinion against.

    Parameters
    ----------
    votes : Votes
        From `Votes.from_long`, with the worker of each vote.
    tolerance : float
        Stop when an iteration raises the log-likelihood per vote by less.
    max_iterations : int
        Stop here at the latest, with a warning.

    Returns
    -------
    DawidSkene
        Its `posterior` can be used as `y_true`.

    Warns
    -----
    RuntimeWarning
        If it did not converge. The result says so, too.

    Examples
    --------
    Workers 1 and 2 agree; worker 3 says the opposite every time.

    >>> says = {1: [0, 0, 1, 1, 0, 1], 2: [0, 0, 1, 1, 0, 1], 3: [1, 1, 0, 0, 1, 0]}
    >>> votes = Votes.from_long(
    ...     {
    ...         "item": [i for each in says.values() for i in range(len(each))],
    ...         "worker": [w for w, each in says.items() for _ in each],
    ...         "label": [label for each in says.values() for label in each],
    ...     },
    ...     item="item", worker="worker", label="label",
    ... )
    >>> found = dawid_skene(votes)
    >>> found.posterior[:, 1].round(3)
    array([0., 0., 1., 1., 0., 1.])
    >>> found.confusion[2].round(3)
    array([[0., 1.],
           [1., 0.]])
    """
    ballots = _ballots(votes)
    numbers = isinstance(max_iterations, Real) and isinstance(tolerance, Real)
    if not numbers or max_iterations < 1 or not 0 <= tolerance < np.inf:
        message = (
            "max_iterations must be 1 or more and tolerance 0 or more: got "
            f"{max_iterations!r:.30} and {tolerance!r:.30}."
        )
        raise InputError(message)
    posterior, likelihood = votes.shares, -np.inf
    iterations, converged = 0, False
    while iterations < max_iterations and not converged:
        iterations += 1
        before = likelihood
        prior, rates = _parameters(ballots, posterior)
        posterior, likelihood = _posterior(ballots, prior, rates)
        converged = likelihood - before <= tolerance
    if not converged:
        message = (
            f"dawid_skene did not converge in {iterations} iterations: the log-likelihood per vote "
            f"still rises by more than {tolerance:g}. Raise max_iterations."
        )
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    unmet = ~rates.any(axis=2, keepdims=True)
    return DawidSkene(
        posterior,
        np.where(unmet, 1 / prior.size, rates),
        prior,
        ballots.workers,
        ballots.classes,
        likelihood,
        iterations,
        converged,
    )


def _ballots(votes: Votes) -> Ballots:
    if not isinstance(votes, Votes):
        message = f"votes must be Votes, from Votes.from_long: got {type(votes).__name__}."
        raise InputTypeError(message)
    if votes.ballots is None:
        message = (
            "votes must say whose each vote is: make them with Votes.from_long(frame, item=, "
            "worker=, label=)."
        )
        raise InputError(message)
    return votes.ballots


def _parameters(ballots: Ballots, posterior: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Give the prior and each worker's confusion that make the posterior most likely.

    Rates are 0 for a class that none of the worker's items may be of: what was ruled out stays so.
    Any others would do as well here, but let votes nobody contradicts be explained away.
    """
    n_workers, n_classes = len(ballots.workers), posterior.shape[1]
    said = ballots.worker * n_classes + ballots.label
    counts = np.stack(
        [
            np.bincount(said, posterior[ballots.item, t], n_workers * n_classes)
            for t in range(n_classes)
        ],
        axis=-1,
    )
    confusion = counts.reshape(n_workers, n_classes, n_classes).swapaxes(1, 2)
    total = confusion.sum(axis=2, keepdims=True)
    rates = np.divide(confusion, total, out=np.zeros_like(confusion), where=total > 0)
    return posterior.mean(axis=0), rates


def _posterior(ballots: Ballots, prior: FloatArray, rates: FloatArray) -> tuple[FloatArray, float]:
    """Give each item's posterior, and the mean log-likelihood of a vote.

    Each item keeps a class of finite likelihood: the one it was thought to be of, since its own
    votes are among those the rates are made of.
    """
    n_items, n_classes = len(ballots.items), prior.size
    with np.errstate(divide="ignore"):
        log_rates, log_prior = np.log(rates), np.log(prior)
    joint = np.stack(
        [
            np.bincount(ballots.item, log_rates[ballots.worker, t, ballots.label], n_items)
            + log_prior[t]
            for t in range(n_classes)
        ],
        axis=1,
    )
    most = joint.max(axis=1, keepdims=True)
    scaled = np.exp(joint - most)
    total = scaled.sum(axis=1, keepdims=True)
    likelihood = float((np.log(total) + most).sum()) / ballots.item.size
    return scaled / total, likelihood
