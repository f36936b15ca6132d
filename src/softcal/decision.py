"""Net benefit: the value of acting on predictions at or above a threshold.

Net benefit is linear in the label, so it is as valid for vote shares as for outcomes of 0 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from softcal import _display
from softcal._validation import arrays, inputs
from softcal._validation.rules import refuse_bad_level
from softcal.exceptions import BinMismatchError, InputError, InputTypeError
from softcal.inference.intervals import student_reach
from softcal.metrics.corp import corp
from softcal.table.reliability import Reliability, refuse_groups, refuse_no_rows

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
        columns = (self.value, self.low, self.high, self.treat_all, self.cost)
        rows = [
            [f"{t:g}", *(f"{x:+.4f}" for x in numbers)]
            for t, *numbers in zip(self.threshold, *columns, strict=True)
        ]
        header = ["threshold", "net benefit", "low", "high", "treat all", "cost"]
        first, left_out, last = _display.ends(rows)
        between = [[f"... {left_out} more", *[""] * 5]] if left_out else []
        title = f"net benefit, {_display.percent(self.level)} intervals; treat none: 0"
        return title, header, [*first, *between, *last]


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
        columns = (self.value, self.low, self.high)
        rows = [
            [f"{t:g}", *(f"{x:+.4f}" for x in numbers)]
            for t, *numbers in zip(self.threshold, *columns, strict=True)
        ]
        first, left_out, last = _display.ends(rows)
        between = [[f"... {left_out} more", *[""] * 3]] if left_out else []
        a, b = map(_display.printable, self.names)
        title = f"net benefit, {a} minus {b}, {_display.percent(self.level)} intervals"
        return title, ["threshold", "difference", "low", "high"], [*first, *between, *last]


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
    0.1. The interval is that of a mean of one term per row, from the sums above each threshold.

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
        As in `reliability`. A table with groups is refused, because it lacks the sums per group and
        threshold: pass the rows. The interval of a table with unequal weights assumes that weights
        and labels are unrelated within a bin.
    level : float
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
         0.05       +0.2252   +0.2080   +0.2423     +0.2456   +0.0204
          0.2       +0.1592   +0.1431   +0.1753     +0.1041   +0.0182
          0.5       +0.0809   +0.0671   +0.0946     -0.4334   +0.0056
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
        beyond = _Beyond.of_table(y_true, at)
        error = beyond.error()
    else:
        at = checked_thresholds(thresholds)
        rows = _checked_rows(y_true, y_prob, sample_weight, "y_prob")
        beyond = _Beyond.of_rows(rows, at)
        numbers = inputs.numbers_of_groups(groups, rows, y_true, y_prob)
        error = beyond.error() if numbers is None else _grouped_error(rows, at, numbers)
        beyond = beyond if numbers is None else beyond.counted(int(numbers.max()) + 1)
    value, odds = beyond.value, beyond.odds
    curve = (
        corp(y_true)
        if isinstance(y_true, Reliability)
        else corp(y_true, y_prob, sample_weight=sample_weight)
    )
    gain = curve.recalibrated[:, None] * (1 + odds) - odds
    best = (curve.weight[:, None] * np.maximum(gain, 0.0)).sum(axis=0) / beyond.total
    half = student_reach(beyond.n, level) * error
    everyone = beyond.mean_label * (1 + odds) - odds
    cost = np.maximum(best - value, 0.0)
    return NetBenefit(
        at, value, value - half, value + half, everyone, cost, *beyond.rows_below(), level
    )


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

    The interval is paired: rows on which both models act, or neither does, do not widen it.

    Parameters
    ----------
    y_true, thresholds, sample_weight, groups, level
        As in `net_benefit`.
    y_prob : mapping from str to array-like
        The predictions of two models, A and B; the difference is A minus B.

    Examples
    --------
    >>> from softcal.datasets import lidc_malignancy
    >>> d = lidc_malignancy()
    >>> models = {"forest": d["prob_rf_all"], "logistic": d["prob_lr_geometry"]}
    >>> found = net_benefit_difference(d["soft_malignant"], models, 0.2)
    >>> found.value.round(4), found.low.round(4), found.high.round(4)
    (array([0.0088]), array([0.0028]), array([0.0147]))
    """
    refuse_bad_level(level)
    at = checked_thresholds(thresholds)
    if not isinstance(y_prob, Mapping) or len(y_prob) != 2:
        message = 'y_prob must map the names of two models to predictions, {"old": p, "new": q}.'
        raise InputTypeError(message)
    a, b = (_checked_rows(y_true, p, sample_weight, name) for name, p in y_prob.items())
    numbers = inputs.numbers_of_groups(groups, a, y_true, next(iter(y_prob.values())))
    p, y, w = inputs.columns(a)
    q = inputs.as_float64(b.y_prob)
    owner = np.arange(p.size) if numbers is None else numbers
    value, error, n = np.empty(at.size), np.empty(at.size), 0
    for k, t in enumerate(at):
        acts = (p >= t).astype(np.float64) - (q >= t)
        value[k], error[k], n = _mean_and_error(acts * _worth(y, t), w, owner)
    half = student_reach(n, level) * error
    names = tuple(map(str, y_prob))
    return NetBenefitDifference(at, value, value - half, value + half, (names[0], names[1]), level)


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


def _worth(y: FloatArray, t: float) -> FloatArray:
    """Return the net benefit of acting on each row."""
    out: FloatArray = (y - t) / (1 - t)
    return out


def _mean_and_error(
    term: FloatArray, w: FloatArray, owner: npt.NDArray[Any]
) -> tuple[float, float, int]:
    """Return the weighted mean of terms, its standard error, and the number of groups."""
    total = float(w.sum())
    mean = float(w @ term) / total
    own = np.bincount(owner, w * (term - mean))
    n = int(np.unique(owner[w > 0]).size)
    if n < 2:
        return mean, math.inf, n
    return mean, math.sqrt(n / (n - 1) * float(own @ own)) / total, n


def _grouped_error(rows: Rows, at: FloatArray, owner: npt.NDArray[Any]) -> FloatArray:
    p, y, w = inputs.columns(rows)
    each = [_mean_and_error((p >= t) * _worth(y, t), w, owner)[1] for t in at]
    return np.array(each)


@dataclass(frozen=True)
class _Beyond:
    """Sums over the rows at or above each threshold, over those below, and over all rows."""

    threshold: FloatArray
    sums: FloatArray  # of w, w y, w^2, w^2 y, w^2 y^2, per threshold
    below: FloatArray  # of rows, w, w p, w y, per threshold
    total: float
    total_sq: float
    mean_label: float
    n: int

    @staticmethod
    def of_rows(rows: Rows, at: FloatArray) -> _Beyond:
        p, y, w = inputs.columns(rows)
        order = at.argsort()
        place = at[order].searchsorted(p, side="right")  # thresholds at or below the prediction

        def between(terms: tuple[FloatArray, ...]) -> FloatArray:
            each = [np.bincount(place, term, at.size + 1) for term in terms]
            return np.array(each, dtype=np.float64)

        rank = order.argsort()
        beyond = between(_terms(y, w))[:, ::-1].cumsum(axis=1)[:, -2::-1]
        below = between(((w > 0).astype(np.float64), w, w * p, w * y)).cumsum(axis=1)
        return _Beyond(
            at, beyond[:, rank], below[:, rank], float(w.sum()), float((w * w).sum()),
            float(w @ y / w.sum()), int((w > 0).sum()),
        )  # fmt: skip

    @staticmethod
    def of_table(rel: Reliability, at: FloatArray) -> _Beyond:
        refuse_no_rows(rel)
        refuse_groups("net_benefit", rel)
        _refuse_off_the_edges(rel, at)
        s = rel.sums
        # With equal weights these are exact; see the docstring of `net_benefit`.
        unit = np.divide(s.weight_sq, s.weight, out=np.zeros_like(s.weight), where=s.weight > 0)
        terms = (s.weight, s.label, s.weight_sq, unit * s.label, unit * (s.label - s.label_var))
        start = rel.bins.edges[:-1].searchsorted(at)
        beyond = np.array([term[::-1].cumsum()[::-1][start] for term in terms])
        before = (rel.count, s.weight, s.label + s.residual, s.label)
        below = np.array([np.append(0.0, term.cumsum())[start] for term in before])
        total = float(s.weight.sum())
        return _Beyond(
            at, beyond, below, total, float(s.weight_sq.sum()), float(s.label.sum()) / total, rel.n
        )

    @property
    def odds(self) -> FloatArray:
        """The cost of an unnecessary action, in cases found."""
        return self.threshold / (1 - self.threshold)

    @property
    def value(self) -> FloatArray:
        """The net benefit."""
        weight, label = self.sums[:2]
        found: FloatArray = (label * (1 + self.odds) - weight * self.odds) / self.total
        return found

    def error(self) -> FloatArray:
        """Return the standard error of the net benefit for independent rows."""
        if self.n < 2:
            return np.full(self.threshold.size, math.inf)
        o, value = self.odds, self.value
        square_weight, of_label, of_square = self.sums[2:]
        once = of_label * (1 + o) - square_weight * o
        twice = of_square * (1 + o) ** 2 - 2 * o * (1 + o) * of_label + o**2 * square_weight
        square = twice - 2 * value * once + value**2 * self.total_sq
        found: FloatArray = np.sqrt(self.n / (self.n - 1) * np.maximum(square, 0.0)) / self.total
        return found

    def rows_below(self) -> tuple[npt.NDArray[np.int64], FloatArray, FloatArray]:
        """Return the number of rows below each threshold, their mean prediction and label."""
        rows, weight, prob, label = self.below
        weight = np.where(rows > 0, weight, np.nan)
        prob, label = np.clip([prob / weight, label / weight], 0.0, 1.0)  # corrects rounding
        return rows.astype(np.int64), prob, label

    def counted(self, groups: int) -> _Beyond:
        """Return the same sums with the given number of groups."""
        return _Beyond(**{**vars(self), "n": groups})


def _terms(y: FloatArray, w: FloatArray) -> tuple[FloatArray, ...]:
    square = w * w
    return w, w * y, square, square * y, square * y * y


def _checked_rows(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike | None,
    sample_weight: npt.ArrayLike | None,
    name: str,
) -> Rows:
    if y_prob is None:
        message = (
            "net_benefit takes labels, predictions, and thresholds, net_benefit(y_true, y_prob, "
            "thresholds), or net_benefit(rel, thresholds) with a Reliability."
        )
        raise InputTypeError(message)
    return inputs.valid_rows(y_true, y_prob, sample_weight, name)


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
    return found


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
