"""Dawid and Skene's model of votes of raters who differ in skill."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from softcal import _display
from softcal._validation import arrays
from softcal._validation.rules import is_number
from softcal.exceptions import InputError, InputTypeError
from softcal.votes import Votes, ballots_of

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray
    from softcal.votes import Ballots

    IndexArray = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class DawidSkene(_display.Printed):
    """The estimates of `dawid_skene`.

    `posterior` and `log_likelihood` are exactly those of `rates` and `confusion`.

    Attributes
    ----------
    posterior : ndarray of shape (items, classes)
        Probability of each class for each item, given all votes. Items in the order of the votes.
    confusion : ndarray of shape (workers, classes, classes)
        `confusion[w, t, l]` is the probability that rater w votes l when class t is true. Every
        row sums to 1. For a rater without items that may be of class t, the probability of voting
        t is 1.
    prior : ndarray of shape (classes,)
        Probability of each class before any vote: the mean of `rates` over all items.
    rates : ndarray of shape (strata, classes)
        The same within each stratum, in the order of `strata`. Without strata there is one row.
    workers, classes, strata : tuple
        The names, in the order of the arrays.
    stratum : ndarray of shape (items,)
        The number of each item's stratum.
    log_likelihood : float
        Log-likelihood of the votes, divided by the number of votes; in nats.
    iterations : int
        Number of iterations made: steps of EM, and extrapolations of them.
    converged : bool
        Whether the last iteration changed every posterior by `tolerance` or less.
    """

    posterior: FloatArray
    confusion: FloatArray
    prior: FloatArray
    rates: FloatArray
    workers: tuple[Any, ...]
    classes: tuple[Any, ...]
    strata: tuple[Any, ...]
    stratum: IndexArray
    log_likelihood: float
    iterations: int
    converged: bool

    @property
    def variance(self) -> FloatArray:
        r"""The variance \(q(1 - q)\) of each class's indicator, given the votes and the estimates.

        It is the remaining uncertainty about the true class. It does not include the uncertainty of
        `confusion` and `rates`, which are estimated from the same votes.
        """
        return self.posterior * (1 - self.posterior)

    def __repr__(self) -> str:
        items, classes = self.posterior.shape
        return (
            f"DawidSkene(items={items}, workers={len(self.workers)}, classes={classes}, "
            f"iterations={self.iterations}, converged={self.converged})"
        )

    def _shown(self) -> _display.Shown:
        items, raters = self.posterior.shape[0], len(self.workers)
        correct = self.confusion.diagonal(axis1=1, axis2=2)  # of each rater, for each class
        rows = [
            [_display.printable(str(name)), f"{prior:.4f}", *(f"{x:.4f}" for x in limits)]
            for name, prior, *limits in zip(
                self.classes, self.prior, correct.min(axis=0), np.median(correct, axis=0),
                correct.max(axis=0), strict=True,
            )
        ]  # fmt: skip
        title = (
            f"{items} items, {raters} raters, log-likelihood {self.log_likelihood:.4f} per vote, "
            f"{self.iterations} iteration{'s' * (self.iterations != 1)}"
        )
        return title, ["class", "prior", "correct: lowest", "median", "highest"], rows


def dawid_skene(
    votes: Votes,
    *,
    strata: npt.ArrayLike | None = None,
    tolerance: float = 1e-8,
    max_iterations: int = 10_000,
    smoothing: float = 0.0,
) -> DawidSkene:
    r"""Estimate labels from votes whose raters differ in skill (Dawid and Skene 1979).

    Each item has one true class t, drawn with probability \(\pi_t\). Rater w then votes l with
    probability \(\theta^w_{tl}\). Expectation maximization starts from the shares of votes. It
    finds parameters of locally maximal likelihood, and with them the posterior of each item

    \[ q_{it} \propto \pi_t \prod_{(w, l) \in i} \theta^w_{tl} . \]

    After 100 steps, EM is accelerated by extrapolation (SQUAREM, Varadhan and Roland 2008). By
    default nothing is smoothed, so the likelihood never decreases. If all items of rater w have
    posterior 0 for class t, the votes do not determine \(\theta^w_t\). It is then set to
    \(\theta^w_{tt} = 1\), so that uncontradicted votes keep their class. Votes of a rater who
    always votes for the same class have no information: items with only such votes get the prior.

    The model assumes that there **is** one true class, and that raters err independently. If
    people disagree for good reasons, the posterior hides the disagreement: it is nearly always
    close to 0 or 1. Do not use it to measure calibration to human opinion.

    To measure calibration to the true class, pass the bins of the predictions as `strata`. A single
    prior for all items biases posteriors toward the overall rate, so that even a calibrated model
    looks overconfident. With strata, the mean posterior of a bin estimates its own rate.

    Parameters
    ----------
    votes : Votes
        From `Votes.from_long`, with the rater of each vote.
    strata : array-like of shape (items,), optional
        A name or number for each item, in the order of `votes.items`. Each stratum has its own
        \(\pi\); raters are shared. By default there is one stratum.
    tolerance : float, default=1e-8
        The estimates have converged if an iteration changes no posterior by more. Steps can shrink
        slowly, so a posterior can be up to about 1,000 times `tolerance` away from its limit.
    max_iterations : int, default=10000
        Maximum number of iterations. Without convergence, a warning is issued.
    smoothing : float, default=0
        Lowest expected count of each class a rater has voted for, whatever the true class, and
        lowest prior. crowd-kit uses 1e-10, and results then agree with crowd-kit. A rater without
        items of class t then has equal rates for their votes.

    Returns
    -------
    DawidSkene
        Its `posterior` can be used as `y_true`. Pass `n_votes=1` with it, because a posterior of
        one true class has at most the information of one 0/1 outcome.

    Warns
    -----
    RuntimeWarning
        If posteriors still change after `max_iterations`. `converged` is then False.

    Examples
    --------
    Raters 1 and 2 agree; rater 3 votes the opposite every time.

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
    if not isinstance(votes, Votes):
        message = f"votes must be Votes, from Votes.from_long: got {type(votes).__name__}."
        raise InputTypeError(message)
    ballots = ballots_of(votes, "dawid_skene")
    names, stratum = _strata(strata, votes.n_items)
    numbers = is_number(max_iterations) and is_number(tolerance)
    if not is_number(smoothing) or not 0 <= smoothing < np.inf:
        message = f"smoothing must be 0 or more: got {smoothing!r:.30}."
        raise InputError(message)
    if not numbers or not max_iterations >= 1 or not 0 <= tolerance < np.inf:
        message = (
            "max_iterations must be 1 or more and tolerance 0 or more: got "
            f"{max_iterations!r:.30} and {tolerance!r:.30}."
        )
        raise InputError(message)
    model = _Model(ballots, stratum, len(names), float(smoothing))
    table, posterior, likelihood, iterations, change = _fitted(
        model, votes.shares, tolerance, max_iterations
    )
    rates, confusion = model.split(table)
    if change > tolerance:
        message = (
            f"dawid_skene did not converge in {iterations} iterations: the last one changed a "
            f"posterior by {change:.2g}, more than {tolerance:g}. Raise max_iterations."
        )
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    return DawidSkene(
        np.ascontiguousarray(posterior.T),
        confusion,
        rates[stratum].mean(axis=0),
        rates,
        ballots.workers,
        ballots.classes,
        tuple(names),
        stratum,
        likelihood,
        iterations,
        change <= tolerance,
    )


def _strata(strata: npt.ArrayLike | None, n_items: int) -> tuple[list[Any], IndexArray]:
    """Return the names of the strata, and the stratum number of each item."""
    if strata is None:
        return ["all"], np.zeros(n_items, dtype=np.intp)
    names, numbers = arrays.numbered(strata, "strata")
    if numbers.size != n_items:
        message = (
            f"strata must have one value per item: there are {n_items} items, strata has "
            f"{numbers.size} values. Pass them in the order of votes.items."
        )
        raise InputError(message)
    return names, numbers


class _Model:
    """Both steps of EM, for parameters in one table with a column per class.

    Its rows are the strata, then each vote that a rater can cast. An entry is the probability of
    the class in the stratum, or of the vote given the class. `cast` has a row per item, with ones
    for its stratum and its votes, so a single product of matrices adds up what a step needs.
    """

    def __init__(
        self, ballots: Ballots, stratum: IndexArray, n_strata: int, smoothing: float
    ) -> None:
        self.n_strata, self.n_classes, self.smoothing = n_strata, len(ballots.classes), smoothing
        vote = n_strata + ballots.worker * np.intp(self.n_classes) + ballots.label
        rows = np.concatenate([np.arange(stratum.size), ballots.item])
        columns = np.concatenate([stratum, vote])
        shape = stratum.size, n_strata + len(ballots.workers) * self.n_classes
        self.cast = csr_array((np.ones(rows.size), (rows, columns)), shape=shape)
        self.n_votes = ballots.item.size

    def split(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the rates of the strata, and the confusion of the raters."""
        by_worker = table[self.n_strata :].reshape(-1, self.n_classes, self.n_classes)
        return table[: self.n_strata], by_worker.swapaxes(1, 2)

    def maximized(self, posterior: FloatArray) -> FloatArray:
        """Compute the most likely parameters, given the posterior, a row per class."""
        counts: FloatArray = self.cast.T @ posterior.T
        if self.smoothing:
            rates, confusion = self.split(counts)
            np.maximum(rates, self.smoothing * rates.sum(axis=1, keepdims=True), out=rates)
            used = confusion.sum(axis=1, keepdims=True) > 0
            np.maximum(confusion, self.smoothing, out=confusion, where=used)
        return self.normalized(counts)

    def normalized(self, table: FloatArray) -> FloatArray:
        """Return probabilities in the proportions of a table.

        If no item of a rater can be of a class, all rates for that class are equally likely. The
        vote for that class then has rate 1. With rates above 0 for other votes, EM would change the
        class of uncontradicted votes.
        """
        rates, confusion = self.split(table)
        rates /= rates.sum(axis=1, keepdims=True)
        total = confusion.sum(axis=2, keepdims=True)
        np.divide(confusion, total, out=confusion, where=total > 0)
        np.copyto(confusion, np.eye(self.n_classes), where=total == 0)
        return table

    def expected(self, table: FloatArray) -> tuple[FloatArray, float]:
        """Compute the posterior of the items, a row per class, and the log-likelihood per vote.

        Every item has a class of positive likelihood, because the rates of its most likely class
        were estimated from its own votes too.
        """
        with np.errstate(divide="ignore"):
            joint = np.ascontiguousarray((self.cast @ np.log(table)).T)
        most = joint.max(axis=0)
        scaled = np.exp(joint - most)
        total = scaled.sum(axis=0)
        return scaled / total, float((np.log(total) + most).sum()) / self.n_votes


_PLAIN = 100  # EM steps before the first extrapolation: if maxima are many, they decide which


def _fitted(
    model: _Model, shares: FloatArray, tolerance: float, max_iterations: float
) -> tuple[FloatArray, FloatArray, float, int, float]:
    r"""Return table, posterior, and likelihood, the number of iterations, and the last change.

    Iterate EM, and extrapolate its slow steps (SQUAREM, Varadhan and Roland 2008).

    Square roots \(s_0, s_1, s_2\) of successive parameters have the differences \(r = s_1 - s_0\)
    and \(v = s_2 - s_1 - r\). The extrapolation \(s_0 + 2 a r + a^2 v\), \(a = |r| / |v|\), is used
    if its likelihood is not below that of \(s_1\). The limit of a is 4 times larger after a reached
    it, and 4 times smaller after a failure.
    """
    table, posterior, likelihood = np.empty(0), shares.T, -np.inf
    iterations, change, longest = 0, np.inf, 1.0
    while iterations < max_iterations and change > tolerance:
        iterations += 1
        before, posterior_before = table, posterior
        table = model.maximized(posterior)
        posterior, likelihood = model.expected(table)
        change = float(np.abs(posterior - posterior_before).max())
        if not _PLAIN <= iterations < max_iterations:
            continue
        start, middle, end = (np.sqrt(x) for x in (before, table, model.maximized(posterior)))
        step, bend = middle - start, end - 2 * middle + start
        length = min(
            float(np.linalg.norm(step)) / max(float(np.linalg.norm(bend)), 1e-300), longest
        )
        longest *= 4 if length == longest else 1
        if length > 1:
            iterations += 1
            ahead = model.normalized((start + 2 * length * step + length**2 * bend) ** 2)
            elsewhere, found = model.expected(ahead)
            if found >= likelihood:
                change = max(change, float(np.abs(elsewhere - posterior).max()))
                table, posterior, likelihood = ahead, elsewhere, found
            else:
                longest = max(longest / 4, 1.0)
    return table, posterior, likelihood, iterations, change
