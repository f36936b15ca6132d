r"""Accept a prediction or ask a person: a rule that bounds how many people would disagree.

The decision on a row is a = [p >= 1/2], and y is the share of people who say yes. The share who
disagree with the decision is r = a(1 - y) + (1 - a)y. A rule accepts the rows whose confidence
c = max(p, 1 - p) is at least t. Its risk is R(t) = E[r | c >= t].

**Test.** The hypothesis R(t) >= m is tested for falling t, each time at the level 1 - `level`,
until one test does not reject. The rules before it hold simultaneously with probability `level`,
because the order is fixed beforehand (fixed-sequence testing; Angelopoulos et al. 2021). The first
t depends on the numbers of rows and groups alone. For every look, it must not depend on them: a
sequence starts at each of eight fixed confidences with an eighth of 1 - `level`, and one that
reaches the next start keeps its part (the fallback procedure; Wiens and Dmitrienko 2005).

**Evidence.** For every h < m, the likelihood ratio of outcomes has, by convexity in r,

    E[(h / m)^r ((1 - h) / (1 - m))^(1 - r)] <= 1    if E r >= m.

With x = m - r >= -(1 - m) = -u, Fan, Grama, and Liu (2015) give

    E exp(l x - psi(l u) / u^2 x^2) <= 1,    psi(l) = -log(1 - l) - l    if E x <= 0.

The product over rows of either is a nonnegative supermartingale with an exponent that needs only
sums of r and r^2. So is their mean over several h and l, and 1 / evidence is a p-value that holds
at every look. At a single look, 0/1 labels have the exact binomial p-value.

**Weights** count by the effective number of rows. **Groups and raters** also have a t test, with
the CR2 variance of a ratio and Satterthwaite's degrees of freedom, or the two-way variance of items
and raters. The larger p-value counts.

**Area.** AURC = E[-r log S(c)] with S(c) the share of rows at least as confident. Its variance is
that of the influence function, -r log S(c) + E[r'(S(c') - [c >= c']) / S(c')] - AURC.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaincinv, stdtr, stdtrit

from softcal import _display
from softcal._validation.inputs import columns, valid_rows
from softcal._validation.rules import real, refuse_bad_level
from softcal.bins import Bins
from softcal.exceptions import InputError
from softcal.inference.route_scores import area_terms
from softcal.table.owners import Groups, satterthwaite
from softcal.table.reliability import Reliability, refuse_no_rows, table_of

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray
    from softcal.table.owners import Clusters

_RATES: FloatArray = 0.9 * 1.5 ** -np.arange(16.0)[:, None]  # l u, for every look
_VARIANCES: FloatArray = (
    4.0 ** -np.arange(4.0)[:, None]
)  # of x, as shares of m(1 - m), for one look
_SHARES: FloatArray = np.append(0.0, 1 - 0.9 * 1.4 ** -np.arange(7.0))[:, None]  # h / m
_NO_RISK_SHARE, _SHARES_SHARE = 0.1, 0.2  # of the evidence: for h = 0, and for other h
_LARGEST_RATE = 0.95  # l u
# The first rule would be accepted at this share of the limit, if it accepts at most so many rows.
_FIRST_RISKS = {0.75: 0.1, 0.5: 0.1, 0.25: 1.0, 0.0: 1.0}
_FIRST_DEGREES = 10  # of freedom, at least, at the first rule
_STARTS: FloatArray = 1 - 0.5 ** np.arange(8.0)  # confidences, for every look
_STEPS = 40  # of the bisection of limits
_POINTS = 100  # of the curve


class Curve(NamedTuple):
    """Rules from the strictest to the one that accepts all rows.

    Attributes
    ----------
    threshold : ndarray
        The smallest confidence accepted.
    n : ndarray of int
        The rows accepted.
    share : ndarray
        Their share of the weight.
    risk, low, high : ndarray
        The mean share of people who disagree with accepted rows, and its interval, which holds for
        each rule on its own.
    """

    threshold: FloatArray
    n: npt.NDArray[np.int64]
    share: FloatArray
    risk: FloatArray
    low: FloatArray
    high: FloatArray


class Rule(NamedTuple):
    """Accept rows whose confidence is at least `threshold`; the share of rows, and the risk."""

    threshold: float
    n: int
    share: float
    risk: float
    high: float


@dataclass(frozen=True, repr=False)
class Route(_display.Printed):
    """When to accept a prediction, and when to ask a person. See `route`.

    Attributes
    ----------
    rule : Rule or None
        The rule that accepts most rows; None if none can be promised. `high` is the one-sided upper
        limit of its risk at `level`.
    max_disagreement, level : float
        The largest mean share of people who disagree, and the confidence in it.
    n : int
        All rows.
    curve : Curve
        The risk of every rule.
    aurc, aurc_low, aurc_high : float
        The area under the risk-coverage curve, the mean risk over all shares of accepted rows, and
        its interval.
    hardened : Rule or None
        The rule that labels hardened to the majority would have given, with the risk and the upper
        limit of its labels as they are; None if labels are 0/1, or if there is no such rule.
    top_label : bool
        Whether predictions are of the predicted class.
    by_score : bool
        Whether thresholds are of a score instead of the confidence.
    """

    rule: Rule | None
    max_disagreement: float
    level: float
    n: int
    curve: Curve
    aurc: float
    aurc_low: float
    aurc_high: float
    hardened: Rule | None
    top_label: bool
    by_score: bool = False

    def __repr__(self) -> str:
        if self.rule is None:
            return f"Route(rule=None, n={self.n})"
        return f"Route(threshold={self.rule.threshold:.4g}, share={self.rule.share:.4g})"

    @property
    def sentence(self) -> str:
        """The rule in words."""
        limit, sure = _display.percent(self.max_disagreement), _display.percent(self.level)
        if self.rule is None:
            return (
                f"No rule can be promised: for no share of the rows is it {sure} sure that at most "
                f"{limit} of people disagree."
            )
        return (
            f"Accept {self.accepted}: {self.rule.share:.1%} of the rows. With {sure} confidence, "
            f"at most {limit} of people disagree with them (seen: {self.rule.risk:.1%})."
        )

    @property
    def accepted(self) -> str:
        """What the rule accepts, in words; empty without a rule."""
        if self.rule is None:
            return ""
        at = self.rule.threshold
        if self.rule.share >= 1:
            return "every prediction"
        if self.by_score:
            return f"predictions with a score of at least {at:.4g}"
        if self.top_label:
            return f"predictions of at least {at:.4g}"
        return f"predictions of at least {at:.4g} or below {1 - at:.4g}"

    def _shown(self) -> _display.Shown:
        return self.sentence, [], []

    def _note(self) -> str:
        area = f"{self.aurc:.4f} ({self.aurc_low:.4f} to {self.aurc_high:.4f})"
        lines = [f"Area under the risk-coverage curve: {area}."]
        if self.hardened is not None:
            lines.append(
                f"Labels hardened to the majority would accept {self.hardened.share:.1%}, and "
                f"{self.hardened.risk:.1%} of people disagree with these."
            )
        return "\n".join(lines)


def route(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    max_disagreement: float = 0.05,
    level: float = 0.95,
    score: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    options: RouteOptions | None = None,
) -> Route:
    r"""Find the confidence from which on predictions can be accepted without asking a person.

    The decision on a row is yes if \(p \ge 1/2\). With y the share of people who say yes, the share
    who disagree is \(r = 1 - y\) after a yes and \(r = y\) after a no. The rule accepts rows whose
    confidence \(\max(p, 1 - p)\) is at least a threshold, the lowest such that with probability
    `level` the mean of r over accepted rows is at most `max_disagreement`. Rules are tested in
    order from the strictest one, so the choice among them is accounted for.

    For 0/1 labels the test is the exact binomial one. For others it is an e-value from the sums of
    r and r², valid for any labels in [0, 1]. Rows are on the standard grid, so rows and a saved set
    give the same rule.

    Parameters
    ----------
    y_true, y_prob, groups, sample_weight
        As in `reliability`; or a table as the only argument.
    max_disagreement : float, default=0.05
        The largest mean share of people who disagree with accepted rows, between 0 and 1.
    level : float, default=0.95
        The probability with which this holds.
    score : array-like of shape (n_samples,), optional
        A number for each row by which to accept instead of the confidence: rows with the largest
        scores first. Only for rows.
    options : RouteOptions, optional
        Whether predictions are of the predicted class, and whether to look more than once.

    Returns
    -------
    Route

    Raises
    ------
    InputError
        If the settings or the data are impossible.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(0.4, 0.4, size=3000)
    >>> y = rng.binomial(5, p) / 5  # the votes of five people
    >>> print(route(y, p, max_disagreement=0.05))
    Accept predictions of at least 0.8633 or below 0.1367: 56.5% of the rows. With
    95% confidence, at most 5% of people disagree with them (seen: 4.1%).
    Area under the risk-coverage curve: 0.0465 (0.0428 to 0.0503).
    Labels hardened to the majority would accept 87.0%, and 11.4% of people disagree
    with these.
    """
    refuse_bad_level(level)
    limit = real(max_disagreement)
    if not 0 < limit < 1:
        message = f"max_disagreement must be between 0 and 1: got {max_disagreement!r:.60}."
        raise InputError(message)
    how = RouteOptions() if options is None else options
    scores = None
    if score is None:
        rel = table_of(
            "route", y_true, y_prob, bins=None if isinstance(y_true, Reliability) else Bins.grid(),
            sample_weight=sample_weight, groups=groups,
        )  # fmt: skip
    else:
        rel, scores = _by_score(y_true, y_prob, score, groups, sample_weight, how)
        how = replace(how, top_label=True)
    refuse_no_rows(rel)
    if not how.top_label and 0.5 not in rel.bins.edges:
        message = (
            "the bins must have an edge at 0.5, where the decision changes: use an even number of "
            "bins of equal width, or the standard grid."
        )
        raise InputError(message)
    found = _routed(rel, limit, level, how)
    return found if scores is None else scores.in_words_of(found)


@dataclass(frozen=True)
class RouteOptions:
    """How `route` reads predictions, and how often it may be called.

    Attributes
    ----------
    top_label : bool
        Whether y_prob is the probability of the predicted class and y_true the share of people who
        chose that class, as in the first table of a set with classes. The decision is then that
        class for every row.
    anytime : bool
        Whether to return a rule that may be computed again while rows are added, and holds at every
        look. It accepts slightly fewer rows. It is not for groups and raters.
    """

    top_label: bool = False
    anytime: bool = False


class _Scores(NamedTuple):
    """The lowest score of each bin of the table of scores."""

    edges: FloatArray
    lowest: FloatArray

    def in_words_of(self, found: Route) -> Route:
        """Return a result whose thresholds are scores."""

        def renamed(threshold: FloatArray) -> FloatArray:
            return self.lowest[self.edges.searchsorted(threshold)]

        rules = [
            each and each._replace(threshold=float(renamed(np.array(each.threshold))))
            for each in (found.rule, found.hardened)
        ]
        curve = found.curve._replace(threshold=renamed(found.curve.threshold))
        return replace(found, rule=rules[0], hardened=rules[1], curve=curve, by_score=True)


_SCORE_BINS = 600


def _by_score(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None,
    score: npt.ArrayLike,
    groups: npt.ArrayLike | None,
    sample_weight: npt.ArrayLike | None,
    how: RouteOptions,
) -> tuple[Reliability, _Scores]:
    """Return the table of agreement by rank of the score, and the scores of its bins."""
    if isinstance(y_true, Reliability):
        message = "score is for rows: leave it out with a table."
        raise InputError(message)
    if y_prob is None:
        message = "route needs y_prob, the predictions."
        raise InputError(message)
    p, y, _ = columns(valid_rows(y_true, y_prob, sample_weight))
    value = np.asarray(score, dtype=np.float64)
    if value.shape != p.shape or not np.isfinite(value).all():
        message = f"score must have a finite number for each of the {p.size:,} rows."
        raise InputError(message)
    distinct = np.unique(value)
    if distinct.size > _SCORE_BINS:
        distinct = np.unique(
            np.quantile(value, np.arange(_SCORE_BINS) / _SCORE_BINS, method="lower")
        )
    place = distinct.searchsorted(value, side="right") - 1
    edges = np.arange(distinct.size + 1) / distinct.size
    agree = y if how.top_label else np.where(p >= 0.5, y, 1 - y)
    rel = table_of(
        "route", agree, (edges[place] + edges[place + 1]) / 2, bins=Bins(edges),
        sample_weight=sample_weight, groups=groups,
    )  # fmt: skip
    return rel, _Scores(edges, distinct)


class _Sums(NamedTuple):
    """Sums over the rows that each rule accepts, from the strictest rule on.

    `step` is the first rule that accepts a bin, and `sign` is 1 in bins where r = 1 - y, -1 where
    r = y.
    """

    threshold: FloatArray
    n: FloatArray
    weight: FloatArray
    rows: FloatArray  # the effective number
    risk: FloatArray
    square: FloatArray  # the mean of r^2
    step: npt.NDArray[np.intp]
    sign: FloatArray

    @staticmethod
    def of(rel: Reliability, *, top_label: bool) -> _Sums:
        s, edges = rel.sums, rel.bins.edges
        yes = np.ones(len(rel.bins), dtype=bool) if top_label else edges[:-1] >= 0.5
        confidence = np.where(yes, edges[:-1], 1 - edges[1:])
        squares = s.label - s.label_var
        risk = np.where(yes, s.weight - s.label, s.label)
        square = np.where(yes, s.weight - 2 * s.label + squares, squares)
        # Mirrored edges differ by rounding, and are one threshold.
        key = np.round(confidence, 12)
        thresholds, step = np.unique(-key, return_inverse=True)
        size = thresholds.size
        sums = [
            np.bincount(step, each, size).cumsum()
            for each in (s.count, s.weight, s.weight_sq, risk, square)
        ]
        edge = np.empty(size)
        edge[step] = confidence
        edge[step[yes]] = confidence[yes]  # as it is: rows on it are accepted
        filled = np.bincount(step, s.weight, size) > 0
        count, weight, weight_sq, risk, square = (each[filled] for each in sums)
        number = np.cumsum(filled) - 1
        return _Sums(
            edge[filled], count, weight, weight**2 / weight_sq,
            (risk / weight).clip(0, 1), (square / weight).clip(0, 1),
            np.maximum(number[step], 0), np.where(yes, 1.0, -1.0),
        )  # fmt: skip

    @property
    def share(self) -> FloatArray:
        found: FloatArray = self.weight / self.weight[-1]
        return found


def _routed(rel: Reliability, limit: float, level: float, how: RouteOptions) -> Route:
    sums = _Sums.of(rel, top_label=how.top_label)
    test = _test_of(rel, sums, how)
    rule = _chosen(sums, test, limit, level)
    tail = (1 - level) / 2
    shown = _shown(sums)
    here = test.at(shown)
    curve = Curve(
        sums.threshold[shown], sums.n[shown].astype(np.int64), sums.share[shown], here.risk,
        1 - here.mirrored().upper(tail), here.upper(tail),
    )  # fmt: skip
    hardened = None
    if rel.sums.label_var.any():
        hard = rel.hardened()
        own = _Sums.of(hard, top_label=how.top_label)
        found = _chosen(own, _test_of(hard, own, how), limit, level)
        if found is not None:
            at = int(np.flatnonzero(sums.threshold >= found.threshold)[-1])
            hardened = found._replace(risk=float(sums.risk[at]), high=_upper(test, at, level))
    return Route(
        rule, limit, level, rel.n, curve, *_area(rel, sums, level), hardened, how.top_label
    )


def _shown(sums: _Sums) -> npt.NDArray[np.intp]:
    """Return the rules of the curve: at most 101, at about equal steps of the share accepted."""
    wanted = np.linspace(0, 1, _POINTS + 1) * (1 - 1e-12)
    return np.unique(sums.share.searchsorted(wanted))


def _upper(test: _Test, rule: int, level: float) -> float:
    """Return the one-sided upper limit of the risk of a rule."""
    return float(test.at(np.array([rule])).upper(1 - level)[0])


def _chosen(sums: _Sums, test: _Test, limit: float, level: float) -> Rule | None:
    """Return the rule that accepts most rows; None if none can be promised."""
    find = _last_at_every_look if test.anytime else _last
    at = find(sums, test, limit, 1 - level)
    if at is None:
        return None
    return Rule(
        float(sums.threshold[at]), int(sums.n[at]), float(sums.share[at]),
        float(sums.risk[at]), min(_upper(test, at, level), limit),
    )  # fmt: skip


def _last(sums: _Sums, test: _Test, limit: float, tail: float) -> int | None:
    """Return the last rule of the sequence that is rejected without a gap."""
    enough = np.ones(sums.rows.size, dtype=bool)
    if test.degrees is not None:
        enough = test.degrees >= min(_FIRST_DEGREES, test.degrees.max())
    # The first rule has enough rows to be accepted at some share of the limit: a larger one if that
    # leaves out few rules, because the first test then has more power.
    for share, most in _FIRST_RISKS.items():
        possible = enough & test.outcomes(share * limit).rejects(limit, tail)
        first = int(possible.argmax())
        if possible[first] and sums.share[first] <= most:
            break
    else:
        return None
    rejected = test.rejects(limit, tail)
    stop = first + int(np.append(rejected[first:], False).argmin())
    return None if stop == first else stop - 1


def _last_at_every_look(sums: _Sums, test: _Test, limit: float, tail: float) -> int | None:
    """Return the last rule that is rejected, in sequences from several fixed confidences on.

    A start that moved with the number of rows would test another hypothesis at every look.
    """
    starts = np.count_nonzero(sums.threshold[:, None] >= _STARTS, axis=0) - 1
    spent = np.bincount(starts[starts >= 0], minlength=sums.rows.size) * tail / _STARTS.size
    evidence = test.log_evidence(np.full(sums.rows.size, limit), tail)
    share, last = 0.0, None
    for rule, (added, seen) in enumerate(zip(spent, evidence, strict=True)):
        share += added
        if share > 0 and seen >= -np.log(share):
            last = rule
        else:
            share = 0.0
    return last


class _Test(NamedTuple):
    """Tests of the risk of each rule.

    `exact` is for 0/1 labels at a single look. `error` and `degrees` are the standard errors of
    risks from groups or raters, and their degrees of freedom; None if rows are independent.
    """

    rows: FloatArray
    risk: FloatArray
    square: FloatArray
    exact: bool
    anytime: bool
    error: FloatArray | None = None
    degrees: FloatArray | None = None

    def at(self, rules: npt.NDArray[np.intp]) -> _Test:
        """Return the tests of some rules."""
        arrays = {name: each[rules] for name, each in self._asdict().items() if np.ndim(each)}
        return self._replace(**arrays)

    def mirrored(self) -> _Test:
        """Return the test of 1 - r."""
        square = (1 - 2 * self.risk + self.square).clip(0, 1)
        return self._replace(risk=1 - self.risk, square=square)

    def outcomes(self, risk: float) -> _Test:
        """Return the test if every rule had this risk, from independent outcomes."""
        same = np.full(self.rows.size, risk)
        return self._replace(risk=same, square=same, error=None, degrees=None)

    def rejects(self, limit: FloatArray | float, tail: float) -> npt.NDArray[np.bool_]:
        """Return whether a risk of at least the limit is rejected at a level, for each rule."""
        m = np.clip(np.broadcast_to(limit, self.rows.shape), 1e-12, 1 - 1e-12)
        if self.exact:
            k = np.rint(self.rows * self.risk)
            chance = betainc(np.maximum(self.rows - k, 1e-9), k + 1, 1 - m)  # of at most k
            rejected = np.where(k >= self.rows, 1.0, chance) <= tail
        else:
            rejected = self.log_evidence(m, tail) >= -np.log(tail)
        if self.error is not None:
            below = m - self.risk
            reach = below / np.where(self.error > 0, self.error, 1.0)
            of_owners = np.where(self.error > 0, stdtr(self.degrees, -reach), below <= 0)
            rejected &= of_owners <= tail
        return np.asarray(rejected)

    def log_evidence(self, m: FloatArray, tail: float) -> FloatArray:
        """Return the log evidence against a risk of at least m: the mean over h and l.

        At a single look, the rates are those for a variance of x among some that are possible.
        """
        risk, u = self.risk, 1 - m
        total, spread = m - risk, m**2 - 2 * m * risk + self.square
        rates = _RATES / u
        if not self.anytime:
            best = np.sqrt(-2 * np.log(tail) / (self.rows * _VARIANCES * m * u))
            rates = np.minimum(best, _LARGEST_RATE / u)
        costs = (-np.log1p(-rates * u) - rates * u) / u**2
        steps = self.rows * (rates * total - costs * spread)
        logs = np.log(np.maximum(_SHARES, 1e-300))
        ratios = self.rows * (risk * logs + (1 - risk) * (np.log1p(-m * _SHARES) - np.log1p(-m)))
        others = 1 - _NO_RISK_SHARE - _SHARES_SHARE
        weights = np.array(
            [_NO_RISK_SHARE, *[_SHARES_SHARE / (_SHARES.size - 1)] * (_SHARES.size - 1),
             *[others / len(rates)] * len(rates)]
        )  # fmt: skip
        found: FloatArray = np.logaddexp.reduce(
            np.concatenate((ratios, steps)) + np.log(weights)[:, None], axis=0
        )
        return found

    def upper(self, tail: float) -> FloatArray:
        """Return the largest risk that a test at this level does not reject."""
        if self.exact and self.error is None:
            k = np.rint(self.rows * self.risk)
            found = betaincinv(k + 1, np.maximum(self.rows - k, 1e-9), 1 - tail)
            return np.where(k >= self.rows, 1.0, found)
        low, high = self.risk.copy(), np.ones_like(self.risk)
        for _ in range(_STEPS):
            middle = (low + high) / 2
            rejected = self.rejects(middle, tail)
            low, high = np.where(rejected, low, middle), np.where(rejected, middle, high)
        return high


def _test_of(rel: Reliability, sums: _Sums, how: RouteOptions) -> _Test:
    same_weights = bool(np.isclose(sums.rows[-1], sums.n[-1], rtol=1e-12, atol=0))
    exact = same_weights and not rel.sums.label_var.any()
    ties = rel.ties
    if ties is None:
        exact &= not how.anytime
        return _Test(sums.rows, sums.risk, sums.square, exact, how.anytime)
    if how.anytime:
        message = (
            "a rule that holds at every look needs independent rows: leave out anytime=True, or "
            "groups and raters."
        )
        raise InputError(message)
    if isinstance(ties.sums, Groups):
        error, degrees = _of_groups(rel, sums, ties.sums)
    else:
        error, degrees = _of_products(rel, sums, ties)
    return _Test(sums.rows, sums.risk, sums.square, exact, how.anytime, error, degrees)


def _of_groups(rel: Reliability, sums: _Sums, groups: Groups) -> tuple[FloatArray, FloatArray]:
    """Return the CR2 standard errors of risks, and Satterthwaite's degrees of freedom."""
    s, size = rel.sums, sums.weight.size
    prob = (s.label + s.residual) / np.where(s.weight > 0, s.weight, 1.0)
    known = np.where(sums.sign > 0, 1 - prob, prob)  # r = known + sign d
    at = groups.place
    step = sums.step[at]
    shape = (groups.count, size)
    risk, weight = np.zeros(shape), np.zeros(shape)
    np.add.at(
        risk, (groups.owner, step), groups.values[1] * known[at] + sums.sign[at] * groups.values[0]
    )
    np.add.at(weight, (groups.owner, step), groups.values[1])
    risk, weight = risk.cumsum(axis=1), weight.cumsum(axis=1)
    share = weight / sums.weight
    rest = risk - sums.risk * weight
    square = rest**2 / np.maximum(1 - share, 1e-6)
    number = np.broadcast_to(np.arange(size), shape).ravel()
    degrees = satterthwaite(share.ravel(), number, size)
    error = np.sqrt(square.sum(axis=0)) / sums.weight
    # A single group says nothing about others.
    return np.where(share.max(axis=0) > 1 - 1e-6, np.inf, error), degrees


def _of_products(rel: Reliability, sums: _Sums, ties: Clusters) -> tuple[FloatArray, FloatArray]:
    """Return the standard errors of risks for raters, or for groups that softcal 0.2 saved."""
    covariance, degrees = ties.covariance(rel.sums)
    own = np.diag(rel.sums.residual_var)
    if ties.raters is not None:
        covariance, degrees = own + ties.raters.covariance, ties.raters.degrees
    accepted = (sums.step[None, :] <= np.arange(sums.weight.size)[:, None]) * sums.sign
    extra = ((accepted @ (covariance - own)) * accepted).sum(axis=1)
    of_rows = (sums.square - sums.risk**2).clip(0) / sums.rows
    error = np.sqrt(of_rows + np.maximum(extra, 0.0) / sums.weight**2)
    return error, np.full(error.shape, degrees)


def _area(rel: Reliability, sums: _Sums, level: float) -> tuple[float, float, float]:
    """Return the area under the risk-coverage curve, and its interval."""
    weight = np.diff(sums.weight, prepend=0.0)  # of each step
    risk, square = (np.diff(x * sums.weight, prepend=0.0) for x in (sums.risk, sums.square))
    area, height, rank = area_terms(weight, risk)
    part = rank - area
    variance = (height**2 * square + 2 * height * part * risk + part**2 * weight).sum()
    error = float(np.sqrt(max(variance, 0.0) / sums.weight[-1] / sums.rows[-1]))
    degrees = max(float(sums.rows[-1]) - 1, 1.0)
    if rel.ties is not None:  # as much wider as the interval of the risk of all rows
        of_all = _test_of(rel, sums, RouteOptions()).at(np.array([-1]))
        alone = np.sqrt((of_all.square - of_all.risk**2).clip(0) / of_all.rows)
        if of_all.error is not None and of_all.degrees is not None and alone[0] > 0:
            error *= max(float(of_all.error[0] / alone[0]), 1.0)
            degrees = float(of_all.degrees[0])
    reach = -float(stdtrit(degrees, (1 - level) / 2)) * error
    return area, max(area - reach, 0.0), min(area + reach, 1.0)
