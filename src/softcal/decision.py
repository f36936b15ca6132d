"""Net benefit: the value of acting on predictions at or above a threshold.

Net benefit is linear in the label, so it is as valid for vote shares as for outcomes of 0 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from softcal import _display
from softcal._validation import arrays, inputs
from softcal._validation.rules import refuse_bad_level
from softcal.bins import Bins, meant
from softcal.exceptions import BinMismatchError, InputError, InputTypeError
from softcal.inference.intervals import score_limits, student_reach
from softcal.metrics.corp import corp
from softcal.table.owners import Groups
from softcal.table.reliability import Reliability, refuse_no_rows, refuse_products_of_groups

if TYPE_CHECKING:
    import numpy.typing as npt

    from softcal._validation.inputs import FloatArray, Rows


@dataclass(frozen=True, eq=False, repr=False)
class NetBenefit(_display.Printed):
    """Net benefit of a model at each threshold, with intervals: a decision curve.

    Attributes
    ----------
    threshold : ndarray
        The thresholds.
    value : ndarray
        The net benefit of acting on predictions at or above the threshold.
    low, high : ndarray
        The confidence interval of the net benefit, at each threshold separately.
    treat_all : ndarray
        The net benefit of always acting; that of never acting is 0.
    cost : ndarray
        The cost of miscalibration: the net benefit of the best increasing map of the predictions on
        the same rows, minus `value`. Never below 0.
    rows_below : ndarray of int
        The number of rows whose prediction is below the threshold, on which nobody acts.
    prob_below, label_below : ndarray
        The mean prediction and the mean label of these rows; NaN if there are none.
    level : float
        The level of the intervals.
    """

    threshold: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray
    treat_all: FloatArray
    cost: FloatArray
    rows_below: npt.NDArray[np.int64]
    prob_below: FloatArray
    label_below: FloatArray
    level: float

    @property
    def sentences(self) -> list[str]:
        """For each threshold, what the model predicts below it and what the labels are there.

        Examples
        --------
        >>> print(net_benefit([0.25, 0, 1], [0.1, 0.3, 0.9], [0.05, 0.5]).sentences[1])
        At 50%: 2 rows lie below; the model predicts 20.0%, the labels average 12.5%.
        """
        numbers = (self.threshold, self.rows_below, self.prob_below, self.label_below)
        return [_sentence(*each) for each in zip(*numbers, strict=True)]

    def __repr__(self) -> str:
        return f"NetBenefit(thresholds={self.threshold.size}, level={self.level:g})"

    def _shown(self) -> _display.Shown:
        rows = _rows(self.threshold, self.value, self.low, self.high, self.treat_all, self.cost)
        header = ["threshold", "net benefit", "low", "high", "treat all", "cost"]
        title = f"net benefit, {_display.percent(self.level)} intervals; treat none: 0"
        return title, header, rows


@dataclass(frozen=True, eq=False, repr=False)
class NetBenefitDifference(_display.Printed):
    """Net benefit of the first of two models minus that of the second, on the same rows.

    Attributes
    ----------
    threshold, value, low, high : ndarray
        The thresholds, the differences, and their confidence intervals.
    names : tuple of str
        The two models.
    level : float
        The level of the intervals.
    """

    threshold: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray
    names: tuple[str, str]
    level: float

    def __repr__(self) -> str:
        return f"NetBenefitDifference(thresholds={self.threshold.size}, level={self.level:g})"

    def _shown(self) -> _display.Shown:
        rows = _rows(self.threshold, self.value, self.low, self.high)
        a, b = map(_display.printable, self.names)
        title = f"net benefit, {a} minus {b}, {_display.percent(self.level)} intervals"
        return title, ["threshold", "difference", "low", "high"], rows


def _rows(*columns: FloatArray) -> list[list[str]]:
    return _display.shortened([
        [f"{t:g}", *(f"{x:+.4f}" for x in numbers)] for t, *numbers in zip(*columns, strict=True)
    ])  # fmt: skip


def net_benefit(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    thresholds: npt.ArrayLike | None = None,
    *,
    sample_weight: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> NetBenefit:
    r"""Compute the net benefit of acting on predictions at or above a threshold.

    \[ \frac1n \sum_{p_i \ge t} \Bigl( y_i - (1 - y_i) \frac{t}{1 - t} \Bigr) \]

    The threshold t sets how many unnecessary actions cost as much as one missed case: nine if t is
    0.1. Cases found and needless actions are two means over all rows, each with a score interval
    (for outcomes, close to Wilson's). Both are combined as if their distances to the means were
    standard errors, with the correlation of the two means. With unequal weights, the number of rows
    is Kish's, \((\sum w)^2 / \sum w^2\).

    Parameters
    ----------
    y_true : array-like or Reliability
        Labels as in `reliability`. Or a table, followed by the thresholds:
        `net_benefit(rel, thresholds)`. Every threshold must be an edge of its bins. The grid of a
        `TableSet` has all multiples of 1/600: `tables.coarsen(tables.grid)["model"]`.
    y_prob : array-like
        Predicted probabilities.
    thresholds : array-like
        Thresholds, at least 0 and below 1.
    sample_weight, groups
        As in `reliability`. The interval of a table with groups takes the predictions of a bin as
        equal. That of a table with unequal weights assumes that weights and labels are unrelated
        within a bin.
    level : float, default=0.95
        The level of the intervals, between 0 and 1.

    Returns
    -------
    NetBenefit
        The net benefit, and its loss to miscalibration as `cost`. The best map is fitted to the
        same rows, so with few rows the cost is too high.

    Examples
    --------
    >>> from softcal.datasets import lidc_malignancy
    >>> d = lidc_malignancy()
    >>> print(net_benefit(d["soft_malignant"], d["prob_rf_all"], [0.05, 0.2, 0.5]))
    net benefit, 95% intervals; treat none: 0
    threshold   net benefit       low      high   treat all      cost
         0.05       +0.2252   +0.2084   +0.2428     +0.2456   +0.0204
          0.2       +0.1592   +0.1437   +0.1759     +0.1041   +0.0182
          0.5       +0.0809   +0.0676   +0.0954     -0.4334   +0.0056
    """
    refuse_bad_level(level)
    if isinstance(y_true, Reliability):
        both = y_prob is not None and thresholds is not None
        if both or sample_weight is not None or groups is not None:
            message = (
                "net_benefit of a Reliability takes thresholds alone: net_benefit(rel, thresholds)."
            )
            raise InputError(message)
        at = checked_thresholds(y_prob if thresholds is None else thresholds)
        at = meant(at, y_true.bins.edges[:-1])
        beyond = _Beyond.of_table(y_true, at)
        grouped, y_prob = _covariance_of_table(y_true, at), None
    else:
        at = checked_thresholds(thresholds)
        if y_prob is None:
            message = (
                "net_benefit takes labels, predictions, and thresholds, net_benefit(y_true, "
                "y_prob, thresholds), or net_benefit(rel, thresholds) with a Reliability."
            )
            raise InputTypeError(message)
        rows = inputs.valid_rows(y_true, y_prob, sample_weight)
        beyond = _Beyond.of_rows(rows, at)
        numbers = inputs.numbers_of_groups(groups, rows, y_true, y_prob)
        grouped = None
        if numbers is not None:
            p, y, w = inputs.columns(rows)
            grouped = _grouped_covariance([p], y, w, at, numbers)
    totals = beyond.total, beyond.total_sq
    value, low, high = _limits(beyond.sums[None], totals, at, level, grouped)
    odds = at / (1 - at)
    curve = corp(y_true, y_prob, sample_weight=sample_weight)
    start = curve.recalibrated.searchsorted(at)
    weight, label = (
        np.append(each[::-1].cumsum()[::-1], 0.0)[start]
        for each in (curve.weight, curve.weight * curve.recalibrated)
    )
    best = (label * (1 + odds) - weight * odds) / beyond.total
    everyone = beyond.mean_label * (1 + odds) - odds
    cost = np.maximum(best - value, 0.0)
    return NetBenefit(at, value, low, high, everyone, cost, *beyond.rows_below(), level)


def net_benefit_difference(
    y_true: npt.ArrayLike,
    y_prob: Mapping[str, npt.ArrayLike],
    thresholds: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> NetBenefitDifference:
    r"""Compute the difference in net benefit of two models on the same rows.

    The interval is paired: rows on which both models act, or neither does, do not widen it. It
    combines four means as in `net_benefit`: cases found and needless actions of each model alone.

    Parameters
    ----------
    y_true, thresholds, sample_weight, groups, level
        As in `net_benefit`.
    y_prob : mapping from str to array-like
        The predictions of two models, A and B; the difference is A minus B.

    Returns
    -------
    NetBenefitDifference
        The difference at each threshold, with its interval.

    Examples
    --------
    >>> from softcal.datasets import lidc_malignancy
    >>> d = lidc_malignancy()
    >>> models = {"forest": d["prob_rf_all"], "logistic": d["prob_lr_geometry"]}
    >>> found = net_benefit_difference(d["soft_malignant"], models, 0.2)
    >>> found.value.round(4), found.low.round(4), found.high.round(4)
    (array([0.0088]), array([0.0027]), array([0.0153]))
    """
    refuse_bad_level(level)
    at = checked_thresholds(thresholds)
    if not isinstance(y_prob, Mapping) or len(y_prob) != 2:
        message = 'y_prob must map the names of two models to predictions, {"old": p, "new": q}.'
        raise InputTypeError(message)
    a, b = (inputs.valid_rows(y_true, p, sample_weight, name) for name, p in y_prob.items())
    numbers = inputs.numbers_of_groups(groups, a, y_true, next(iter(y_prob.values())))
    p, y, w = inputs.columns(a)
    q = inputs.as_float64(b.y_prob)
    found = PairedDecisions(at)
    found.add(p, q, y, w)
    first, second = map(str, y_prob)
    grouped = None if numbers is None else _grouped_covariance([p, q], y, w, at, numbers)
    return found.difference((first, second), level, grouped)


def _sentence(t: float, rows: int, prob: float, label: float) -> str:
    if not rows:
        return f"At {_display.percent(t)}: no row lies below."
    lie = "lies" if rows == 1 else "lie"
    return (
        f"At {_display.percent(t)}: {_display.counted(rows, 'row')} {lie} below; the model "
        f"predicts {_percent(prob)}, the labels average {_percent(label)}."
    )


def _percent(share: float) -> str:
    """Write a share to a tenth of a percent; a smaller one to one digit, never as 0."""
    return f"{100 * share:.1g}%" if 0 < share < 0.0005 else f"{100 * share:.1f}%"


def _sums_between(
    first: npt.NDArray[np.intp], last: npt.NDArray[np.intp], y: FloatArray, w: FloatArray, k: int
) -> FloatArray:
    """Return sums of w, w y, w^2, w^2 y, and w^2 y^2 over rows, at each of k thresholds.

    A row counts from threshold number `first` to before number `last`.
    """
    last = np.maximum(first, last)
    square = w * w
    terms = (w, w * y, square, square * y, square * y * y)
    each = [np.bincount(first, x, k + 1) - np.bincount(last, x, k + 1) for x in terms]
    return np.array(each, dtype=np.float64).cumsum(axis=1)[:, :k]


class PairedDecisions:
    """Sums over the rows on which one of two models acts, and the other does not.

    Parts may be added in any order: those of one part are added as they come, and the parts in the
    order of their numbers.
    """

    def __init__(self, threshold: FloatArray) -> None:
        self.threshold = threshold
        self._order = threshold.argsort()
        self._parts: dict[int, tuple[FloatArray, FloatArray]] = {}
        self._differ = False

    def add(
        self, p: FloatArray, q: FloatArray, y: FloatArray, w: FloatArray, part: int = 0
    ) -> None:
        """Add rows with the predictions of both models."""
        at = self.threshold[self._order]
        reached = at.searchsorted(p, side="right"), at.searchsorted(q, side="right")
        sums = np.stack([
            _sums_between(reached[1 - k], reached[k], y, w, at.size)[:, self._order.argsort()]
            for k in (0, 1)
        ])  # fmt: skip
        total = np.array([w.sum(), w @ w])
        self._differ |= bool((p != q).any())
        before = self._parts.get(part, (0.0, 0.0))
        self._parts[part] = sums + before[0], total + before[1]

    def difference(
        self, names: tuple[str, str], level: float, grouped: tuple[FloatArray, float] | None = None
    ) -> NetBenefitDifference:
        """Return the difference with its interval; groups have their own covariance and number."""
        parts = [self._parts[k] for k in sorted(self._parts)]
        sums = np.sum([part[0] for part in parts], axis=0)
        totals = np.sum([part[1] for part in parts], axis=0).tolist()
        limits = _limits(sums, totals, self.threshold, level, grouped)
        if not self._differ:  # the same predictions
            limits = (limits[0],) * 3
        return NetBenefitDifference(self.threshold, *limits, names, level)


def _means(sums: FloatArray, total: float) -> FloatArray:
    """Return cases found and needless actions per row, in turn for each model."""
    weight, label = sums[:, 0], sums[:, 1]
    means = np.clip(np.stack([label, weight - label], axis=1) / total, 0.0, 1.0)
    return means.reshape(-1, sums.shape[-1])


def _covariance(sums: FloatArray, total: float, total_sq: float) -> tuple[FloatArray, float]:
    """Return the covariances of `_means` for independent rows, and the number of rows (Kish's).

    No row counts for two models.
    """
    means, n = _means(sums, total), total**2 / total_sq
    size = means.shape[0]
    square, of_label, of_square = sums[:, 2], sums[:, 3], sums[:, 4]
    once = np.stack([of_label, square - of_label], axis=1).reshape(means.shape)
    twice = np.zeros((size, size, means.shape[1]))
    for k in range(len(sums)):
        case, other = 2 * k, 2 * k + 1
        twice[case, case] = of_square[k]
        twice[case, other] = twice[other, case] = of_label[k] - of_square[k]
        twice[other, other] = square[k] - 2 * of_label[k] + of_square[k]
    mixed = means[:, None] * once
    found = twice - mixed - mixed.swapaxes(0, 1) + means[:, None] * means * total_sq
    return found / total**2, n


def _limits(
    sums: FloatArray,
    totals: Sequence[float],
    at: FloatArray,
    level: float,
    grouped: tuple[FloatArray, float] | None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return net benefit, or its difference between two models, and both limits.

    Each mean has a score interval. Their distances to the means are combined like standard errors
    (method of variance estimates recovery). Their correlations allow for part of an unseen row,
    a case or a needless action but never both, so they are continuous where a variance becomes 0.

    With groups, the variance is that of groups if it is larger, and the rows count as so many
    independent ones as have this variance. Student's quantile is that of the number of groups.
    """
    means, odds = _means(sums, totals[0]), at / (1 - at)
    factor = np.concatenate([sign * np.stack([np.ones_like(odds), -odds]) for sign in (1, -1)])
    factor = factor[: len(means)]
    value = (factor * means).sum(axis=0)
    covariance, rows = _covariance(sums, *totals)
    units = rows if grouped is None else grouped[1]
    if units < 1 + 1e-9:  # one row or group does not show how much rows vary
        return value, np.full_like(value, -math.inf), np.full_like(value, math.inf)
    covariance = rows / (rows - 1) * covariance
    n = np.full(at.size, rows)
    if grouped is not None:
        of_groups = units / (units - 1) * grouped[0]
        alone, together = (
            np.einsum("ik,ijk,jk->k", factor, each, factor) for each in (covariance, of_groups)
        )
        wider = together > alone
        covariance = np.where(wider, of_groups, covariance)
        share = np.divide(alone, together, out=np.zeros(at.size), where=together > 0)
        n = np.where(wider, np.clip(rows * share, min(units, rows), rows), n)
    variance = np.maximum(np.einsum("iik->ik", covariance), 0.0)
    low, high = score_limits(means, variance, n, student_reach(units, level))
    of_model = np.arange(len(means)) // 2
    unseen = 2 * np.eye(len(means)) - (of_model[:, None] == of_model)
    error = np.sqrt(variance + _UNSEEN / n**2)
    alike = (covariance + _UNSEEN / n**2 * unseen[:, :, None]) / (error[:, None] * error)
    alike = np.clip(alike, -1.0, 1.0)
    down = factor * np.where(factor > 0, means - low, high - means)
    up = factor * np.where(factor > 0, high - means, means - low)
    half = [np.sqrt(np.maximum(np.einsum("ik,ijk,jk->k", d, alike, d), 0.0)) for d in (down, up)]
    return value, value - half[0], value + half[1]


_UNSEEN = 0.25  # of a row; simulated: 1 widens intervals of soft labels, 0.1 loses coverage


def _grouped_covariance(
    acts: Sequence[FloatArray], y: FloatArray, w: FloatArray, at: FloatArray,
    owner: npt.NDArray[Any],
) -> tuple[FloatArray, float]:  # fmt: skip
    """Return the covariances of `_means` for rows in groups, and the number of groups (Kish's).

    `acts` are the predictions of one model, or of two.
    """
    groups = np.unique(owner[w > 0])
    total, size = float(w.sum()), 2 * len(acts)
    out = np.empty((size, size, at.size))
    weight = np.bincount(owner, w)[groups]
    for k, t in enumerate(at):
        acted = [p >= t for p in acts]
        alone = acted if len(acts) == 1 else [acted[0] & ~acted[1], acted[1] & ~acted[0]]
        terms = [w * here * x for here in alone for x in (y, 1 - y)]
        own = np.array([np.bincount(owner, term)[groups] for term in terms])
        own -= own.sum(axis=1, keepdims=True) / total * weight
        out[:, :, k] = own @ own.T / total**2
    return out, total**2 / float(weight @ weight)


def _covariance_of_table(rel: Reliability, at: FloatArray) -> tuple[FloatArray, float] | None:
    """Return the same of a table whose thresholds are edges; None without groups."""
    if not isinstance(rel.groups, Groups):
        return None
    weight = rel.groups.values[1]
    label = rel.groups.labels(rel.sums) / weight
    start = rel.bins.edges[rel.groups.place]
    return _grouped_covariance([start], label, weight, at, rel.groups.owner)


@dataclass(frozen=True)
class _Beyond:
    """Sums over the rows at or above each threshold, over those below, and over all rows."""

    sums: FloatArray  # of w, w y, w^2, w^2 y, w^2 y^2, per threshold
    below: FloatArray  # of rows, w, w p, w y, per threshold
    total: float
    total_sq: float
    mean_label: float

    @staticmethod
    def of_rows(rows: Rows, at: FloatArray) -> _Beyond:
        p, y, w = inputs.columns(rows)
        order = at.argsort()
        place = at[order].searchsorted(p, side="right")  # thresholds at or below the prediction

        def between(terms: tuple[FloatArray, ...]) -> FloatArray:
            each = [np.bincount(place, term, at.size + 1) for term in terms]
            return np.array(each, dtype=np.float64)

        rank, square = order.argsort(), w * w
        terms = (w, w * y, square, square * y, square * y * y)
        beyond = between(terms)[:, ::-1].cumsum(axis=1)[:, -2::-1]
        below = between(((w > 0).astype(np.float64), w, w * p, w * y)).cumsum(axis=1)
        return _Beyond(
            beyond[:, rank], below[:, rank], float(w.sum()), float(square.sum()),
            float(w @ y / w.sum()),
        )  # fmt: skip

    @staticmethod
    def of_table(rel: Reliability, at: FloatArray) -> _Beyond:
        refuse_no_rows(rel)
        refuse_products_of_groups("net_benefit", rel)
        _refuse_off_the_edges(rel, at)
        s = rel.sums
        # With equal weights these are exact; see the docstring of `net_benefit`.
        unit = np.divide(s.weight_sq, s.weight, out=np.zeros_like(s.weight), where=s.weight > 0)
        terms = (s.weight, s.label, s.weight_sq, unit * s.label, unit * (s.label - s.label_var))
        start = rel.bins.edges[:-1].searchsorted(at)
        beyond = np.array([term[::-1].cumsum()[::-1][start] for term in terms])
        before = (rel.count, s.weight, s.label + s.residual, s.label)
        below = np.array([np.append(0.0, term.cumsum())[start] for term in before])
        total, total_sq = float(s.weight.sum()), float(s.weight_sq.sum())
        return _Beyond(beyond, below, total, total_sq, float(s.label.sum()) / total)

    def rows_below(self) -> tuple[npt.NDArray[np.int64], FloatArray, FloatArray]:
        """Return the number of rows below each threshold, their mean prediction and label."""
        rows, weight, prob, label = self.below
        weight = np.where(rows > 0, weight, np.nan)
        prob, label = np.clip([prob / weight, label / weight], 0.0, 1.0)  # corrects rounding
        return rows.astype(np.int64), prob, label


def checked_thresholds(thresholds: npt.ArrayLike | None) -> FloatArray:
    """Return thresholds as an array; raise unless all are from 0 to below 1."""
    if thresholds is None:
        message = "pass the thresholds of decisions, such as thresholds=[0.05, 0.1]."
        raise InputTypeError(message)
    single = isinstance(thresholds, Real)
    found = arrays.column([thresholds] if single else thresholds, "thresholds").astype(np.float64)
    bad = ~((found >= 0) & (found < 1))
    if bad.any():
        message = (
            f"thresholds must be from 0 to below 1: {bad.sum()} of {bad.size} are not, the first "
            f"is {float(found[bad][0])!r}."
        )
        raise InputError(message)
    return meant(found, Bins.grid().edges[:-1])  # also for rows, so that they and tables agree


def _refuse_off_the_edges(rel: Reliability, at: FloatArray) -> None:
    edges = rel.bins.edges
    off = ~np.isin(at, edges)
    if off.any():
        first = float(at[off][0])
        k = int(edges.searchsorted(first))
        message = (
            f"thresholds must be edges of the table's bins: {off.sum()} of {off.size} are not, the "
            f"first is {first!r}, between {float(edges[k - 1])!r} and {float(edges[k])!r}. Use "
            "tables.coarsen(tables.grid)[model] of a TableSet, build the table with these edges, "
            "or pass the rows."
        )
        raise BinMismatchError(message)
