"""The summary of calibration that clinical papers report, each number with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit

from softcal import _display
from softcal._validation import inputs
from softcal._validation.rules import generator, refuse_bad_level
from softcal.exceptions import InputError, InputTypeError
from softcal.inference.intervals import student_reach
from softcal.metrics.corp import corp
from softcal.table.reliability import Reliability, refuse_groups, refuse_no_rows

if TYPE_CHECKING:
    import numpy.typing as npt

    from softcal._validation.inputs import FloatArray, Rows


class Estimate(NamedTuple):
    """A number with its confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class CalibrationSummary(_display.Printed):
    """The numbers that clinical papers report on calibration.

    Each is an `Estimate` with `value`, `low`, and `high`.

    Attributes
    ----------
    observed_expected : Estimate
        Sum of labels divided by sum of predictions. Above 1, predictions are too low on average.
    calibration_in_the_large : Estimate
        Intercept of the logistic recalibration whose slope is 1.
    intercept, slope : Estimate
        Parameters of the logistic recalibration. A slope below 1 means that predictions are too
        extreme.
    auroc : Estimate
        The probability that a row that is a case has a higher prediction than one that is not.
    ici, e50, e90, emax : Estimate
        Mean (integrated calibration index), median, 90% quantile, and maximum over rows of the
        distance between the prediction and the isotonic curve of `corp`.
    brier, miscalibration, discrimination, uncertainty : Estimate
        The Brier score and its parts, from the same curve.
    level : float
        The level of the intervals.
    note : str
        Why there is no logistic recalibration, or empty. Its numbers then raise `InputError`.
    """

    observed_expected: Estimate
    logistic: tuple[Estimate, Estimate, Estimate] | None
    auroc: Estimate
    ici: Estimate
    e50: Estimate
    e90: Estimate
    emax: Estimate
    brier: Estimate
    miscalibration: Estimate
    discrimination: Estimate
    uncertainty: Estimate
    level: float
    note: str

    @property
    def calibration_in_the_large(self) -> Estimate:
        """The intercept of the logistic recalibration whose slope is 1."""
        return self._fitted()[0]

    @property
    def intercept(self) -> Estimate:
        """The intercept of the logistic recalibration."""
        return self._fitted()[1]

    @property
    def slope(self) -> Estimate:
        """The slope of the logistic recalibration."""
        return self._fitted()[2]

    def _fitted(self) -> tuple[Estimate, Estimate, Estimate]:
        if self.logistic is None:
            raise InputError(self.note)
        return self.logistic

    @property
    def estimates(self) -> dict[str, Estimate]:
        """All numbers, by name."""
        names = ["observed_expected", "auroc", *_OF_CURVE]
        if self.logistic is not None:
            names[1:1] = ["calibration_in_the_large", "intercept", "slope"]
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        ratio = self.observed_expected.value
        return f"CalibrationSummary(observed_expected={ratio:.4g}, level={self.level:g})"

    def _shown(self) -> _display.Shown:
        rows = [
            [name.replace("_", " "), *(f"{x:.4f}" for x in estimate)]
            for name, estimate in self.estimates.items()
        ]
        title = f"calibration, {_display.percent(self.level)} intervals"
        return title, ["", "value", "low", "high"], rows

    def _note(self) -> str:
        return self.note


_OF_CURVE = (
    "ici", "e50", "e90", "emax", "brier", "miscalibration", "discrimination", "uncertainty",
)  # fmt: skip


def calibration_summary(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    sample_weight: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    level: float = 0.95,
    rng: np.random.Generator | int = 0,
) -> CalibrationSummary:
    r"""Compute the calibration numbers of clinical papers, right for soft labels.

    The recalibration \(\operatorname{logit} \mu = a + b \operatorname{logit} p\) is fitted to soft
    labels by cross-entropy. Its covariance is the sandwich \(A^{-1} B A^{-1}\) with
    \(A = \sum w \mu (1 - \mu) z z^T\) and \(z = (1, \operatorname{logit} p)\). B comes from the
    squared residuals of the labels, so the intervals are valid for vote shares. The AUROC is

    \[ \frac{\sum_{i,j} w_i w_j\, y_i (1 - y_j)\, ([p_i > p_j] + \tfrac12 [p_i = p_j])}
       {\sum_i w_i y_i \sum_j w_j (1 - y_j)} , \]

    and its interval is that of its linear approximation per row (of DeLong for labels of 0 and 1),
    on the scale of the logit.

    The numbers from the isotonic curve have intervals from a Bayesian bootstrap with 200 draws.
    Chance makes distances from the curve too high, and the bootstrap makes them higher again, by
    at least a third as much. Let v be the value, and m, l, and q the mean and the quantiles of the
    draws. The interval is from \(v - 3 (m - v) - \max(q - m, m - l)\), at least 0, to q. Distances
    and the miscalibration have the lower limit 0 unless they exceed the same quantile for
    simulated data of a calibrated model. The lower limit of E90 is at most that of the ICI,
    and the lower limit of Emax is at least that of the ICI.

    Parameters
    ----------
    y_true, y_prob, sample_weight, groups
        As in `reliability`; or a Reliability alone. Its bins should be fine, because each is
        represented by its mean prediction: `tables.coarsen(tables.grid)["model"]`. A table with
        groups is refused: pass the rows.
    level : float
        The level of the intervals, between 0 and 1.
    rng : numpy.random.Generator or int, default 0
        The source of random numbers of the bootstrap, or its seed.

    Returns
    -------
    CalibrationSummary
        Without the logistic recalibration if a prediction is exactly 0 or 1, which has no logit,
        or if the fit has no solution; `note` then states why.

    Raises
    ------
    InputError
        If all labels are 0, if all are 1, or if all predictions are 0.

    Examples
    --------
    >>> from softcal.datasets import lidc_malignancy
    >>> d = lidc_malignancy()
    >>> print(calibration_summary(d["soft_malignant"], d["prob_lr_geometry"]))
    calibration, 95% intervals
                                value      low     high
           observed expected   1.4562   1.3857   1.5302
    calibration in the large   0.8799   0.7816   0.9782
                   intercept   0.3593   0.2433   0.4754
                       slope   0.6896   0.6429   0.7364
                       auroc   0.8260   0.8119   0.8393
                         ici   0.1047   0.0938   0.1154
                         e50   0.0822   0.0444   0.1105
                         e90   0.1911   0.0938   0.2378
                        emax   0.2839   0.2282   0.3358
                       brier   0.0559   0.0493   0.0623
              miscalibration   0.0170   0.0112   0.0213
              discrimination   0.0601   0.0527   0.0661
                 uncertainty   0.0989   0.0930   0.1043
    """
    refuse_bad_level(level)
    if isinstance(y_true, Reliability):
        if any(each is not None for each in (y_prob, sample_weight, groups)):
            message = "calibration_summary of a Reliability takes no rows: leave them out."
            raise InputError(message)
        cells, curve = _cells_of_table(y_true), corp(y_true)
    else:
        if y_prob is None:
            message = (
                "calibration_summary takes labels and predictions, calibration_summary(y_true, "
                "y_prob), or a Reliability."
            )
            raise InputTypeError(message)
        rows = inputs.valid_rows(y_true, y_prob, sample_weight)
        cells = _cells_of_rows(rows, inputs.numbers_of_groups(groups, rows, y_true, y_prob))
        curve = corp(y_true, y_prob, sample_weight=sample_weight)
    _refuse_one_kind(cells)
    reach = student_reach(cells.n, level)
    logistic, note = None, ""
    try:
        logistic = _recalibration(cells, reach)
    except _NoFitError as error:
        note = str(error)
    step = curve.prob_low.searchsorted(cells.prob, side="right") - 1
    fitted, parts = curve.recalibrated[step], curve.brier
    value = np.array([
        *_distances(np.abs(cells.prob - fitted), cells.weight),
        parts.score, parts.miscalibration, parts.discrimination, parts.uncertainty,
    ])  # fmt: skip
    low, high = _Atoms.of(cells).limits(value, cells.n, level, generator(rng))
    of_curve = map(Estimate, value.tolist(), low.tolist(), high.tolist())
    return CalibrationSummary(
        observed_expected=_ratio(cells, reach),
        logistic=logistic,
        auroc=_auroc(cells, reach),
        level=level,
        note=note,
        **dict(zip(_OF_CURVE, of_curve, strict=True)),
    )


def _distances(distance: FloatArray, weight: FloatArray) -> list[float]:
    """Return the mean, the median, the 90% quantile, and the maximum."""
    order = distance.argsort()
    rank = weight[order].cumsum()
    e50, e90 = distance[order][rank.searchsorted([0.5 * rank[-1], 0.9 * rank[-1]])]
    return [float(weight @ distance / rank[-1]), float(e50), float(e90), float(distance.max())]


class _Atoms(NamedTuple):
    """Labels at the distinct predictions, whose weights the bootstrap draws."""

    prob: FloatArray  # distinct predictions, in order
    place: npt.NDArray[np.intp]  # of the prediction of each atom
    label: FloatArray
    weight: FloatArray
    rows: FloatArray  # how many rows of equal weight an atom stands for
    owner: npt.NDArray[np.intp] | None  # the group of each atom

    @staticmethod
    def of(cells: _Cells) -> _Atoms:
        """Return rows of groups as they are, and other rows pooled.

        A pool has many rows with one prediction, or with almost the same if there are many. It has
        two labels, a and b, with the mean and variance of its rows. For outcomes these are 0 and 1.
        """
        order = cells.prob.argsort(kind="stable")
        p = cells.prob[order]
        new = np.append(True, np.diff(p) > 0)
        if np.count_nonzero(new) > _POOLS:
            rank = cells.weight[order].cumsum() * (_POOLS / cells.weight.sum())
            new[1:] &= np.diff(np.floor(rank)) > 0
        if cells.owner is not None:
            place = np.empty(p.size, dtype=np.intp)
            place[order] = new.cumsum() - 1
            prob = np.bincount(place, cells.weight * cells.prob) / np.bincount(place, cells.weight)
            each = np.ones(p.size)
            label = cells.label / cells.weight
            return _Atoms(prob, place, label, cells.weight, each, cells.owner)
        columns = np.array([
            cells.weight, cells.weight * cells.prob, cells.label, cells.square,
            cells.square_label, cells.square_label_sq,
        ])  # fmt: skip
        sums = np.add.reduceat(columns[:, order], np.flatnonzero(new), axis=1)
        seen = sums[:, sums[3] > 0]  # squared weights below 1e-308 of the largest are 0
        weight, prob, label, square, of_label, of_square = seen
        mean = np.clip(label / weight, 0.0, 1.0)
        most = mean * (1 - mean)
        spread = of_square / square - 2 * mean * of_label / square + mean**2
        share = np.sqrt(np.clip(spread / np.where(most > 0, most, 1.0), 0.0, 1.0))
        low, high = mean * (1 - share), mean + (1 - mean) * share
        two = np.tile(np.arange(weight.size), 2)
        part = np.concatenate([1 - mean, mean])
        rows = np.tile(weight**2 / square, 2) * part
        some = part > 0
        return _Atoms(
            prob / weight, two[some], np.concatenate([low, high])[some],
            (np.tile(weight, 2) * part)[some], rows[some], None,
        )  # fmt: skip

    def numbers(self, weight: FloatArray) -> FloatArray:
        """Return the numbers from the isotonic curve, given the weight of each atom."""
        y = self.label
        pools = [np.bincount(self.place, each) for each in (weight, weight * y, weight * y * y)]
        w, label, square = (each.astype(np.float64) for each in pools)
        total, p = w.sum(), self.prob
        mean = label.sum() / total
        fitted = isotonic_regression(label / w, weights=w).x
        score = (w @ p**2 - 2 * p @ label + square.sum()) / total
        uncertainty = square.sum() / total - mean**2
        discrimination = w @ (fitted - mean) ** 2 / total
        parts = [score, score - uncertainty + discrimination, discrimination, uncertainty]
        return np.array([*_distances(np.abs(p - fitted), w), *parts])

    def limits(
        self, value: FloatArray, n: int, level: float, random: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Return the limits of the numbers from the isotonic curve."""
        if n < 2:
            return np.zeros_like(value), np.ones_like(value)
        here = self.numbers(self.weight)  # differ from `value` if predictions were pooled
        drawn = np.array([self.numbers(self._drawn(random)) for _ in range(_DRAWS)]) + value - here
        mean = drawn.mean(axis=0)
        lower, upper = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
        low = value - _BIAS * np.maximum(mean - value, 0.0) - np.maximum(upper - mean, mean - lower)
        low[2] = min(low[2], low[0])  # that of the 90% quantile alone is often too high
        low[_FROM_0] *= here[_FROM_0] > np.quantile(self._null(random), (1 + level) / 2, axis=0)
        low[3] = max(low[3], low[0])  # a maximum is at least the mean
        return np.clip(low, 0.0, value), np.clip(upper, value, 1.0)

    def _drawn(self, random: np.random.Generator) -> FloatArray:
        """Return weights of a Bayesian bootstrap of rows or groups."""
        if self.owner is not None:
            factor = random.standard_exponential(int(self.owner.max()) + 1)[self.owner]
        else:
            factor = random.standard_gamma(self.rows) / self.rows
        return np.maximum(self.weight * factor, 1e-300)

    def _null(self, random: np.random.Generator) -> FloatArray:
        """Return distances and miscalibrations of a calibrated model whose labels vary alike."""
        w = np.bincount(self.place, self.weight).astype(np.float64)
        # The variance around predictions: that around the curve is too small if rows are few.
        own = self.weight * (self.label - self.prob[self.place]) / np.sqrt(self.rows)
        out = []
        for _ in range(_DRAWS):
            if self.owner is not None:
                normal = random.standard_normal(int(self.owner.max()) + 1)[self.owner]
            else:
                normal = random.standard_normal(own.size)
            labels = self.prob + np.bincount(self.place, own * normal) / w
            distance = np.abs(self.prob - isotonic_regression(labels, weights=w).x)
            out.append([*_distances(distance, w), w @ distance**2 / w.sum()])
        return np.array(out)


_DRAWS = 200
_FROM_0 = [0, 1, 2, 3, 5]  # distances and miscalibration, 0 for a calibrated model
_BIAS = 3  # times the bias of the bootstrap, at least the bias of the value in simulations
_POOLS = 2000  # of predictions in the bootstrap


class _NoFitError(Exception):
    """There is no logistic recalibration; the text states why."""


def _recalibration(cells: _Cells, reach: float) -> tuple[Estimate, Estimate, Estimate]:
    """Return the calibration in the large, the intercept, and the slope."""
    _refuse_no_logit(cells)
    x = np.log(cells.prob / (1 - cells.prob))
    one = np.ones_like(x)
    try:
        with np.errstate(over="raise", invalid="raise"):
            large = _logistic(cells, one[:, None], x)
            both = _logistic(cells, np.stack([one, x], axis=1), np.zeros_like(x))
    except (FloatingPointError, np.linalg.LinAlgError) as error:
        raise _NoFitError(_NO_SOLUTION) from error

    def estimate(fit: tuple[FloatArray, FloatArray], k: int) -> Estimate:
        value, half = float(fit[0][k]), reach * math.sqrt(max(fit[1][k, k], 0.0))
        return Estimate(value, value - half, value + half)

    return estimate(large, 0), estimate(both, 0), estimate(both, 1)


def _ratio(cells: _Cells, reach: float) -> Estimate:
    """Return observed over expected, with an interval on the scale of its logarithm."""
    observed, expected = float(cells.label.sum()), float(cells.weight @ cells.prob)
    ratio = observed / expected if expected else math.inf  # predictions of 1e-320 may add up to 0
    if min(observed, expected) < 1e-150:
        return Estimate(ratio, 0.0, math.inf)  # nothing is known of its error
    # The term of a row in the linear approximation of the logarithm.
    spread = cells.squares_of(-cells.prob / expected, np.full(cells.prob.size, 1 / observed))
    exponent = reach * math.sqrt(spread)
    factor = math.exp(exponent) if exponent < 700 else math.inf
    return Estimate(ratio, ratio / factor, ratio * factor)


def _auroc(cells: _Cells, reach: float) -> Estimate:
    """Return the AUROC, with an interval on the scale of its logit."""
    place = np.unique(cells.prob, return_inverse=True)[1]
    cases, others = cells.label, cells.weight - cells.label
    all_cases, all_others = float(cases.sum()), float(others.sum())
    of_place = np.bincount(place, others)
    others_below = (of_place.cumsum() - of_place / 2)[place]
    of_place = np.bincount(place, cases)
    cases_above = all_cases - (of_place.cumsum() - of_place / 2)[place]
    pairs = all_cases * all_others
    value = min(max(float(cases @ others_below) / pairs, 0.0), 1.0)
    # The term of a row in the linear approximation is w (constant + factor y), with mean 0.
    constant = cases_above - value * all_cases
    factor = others_below - value * all_others - constant
    error = math.sqrt(cells.squares_of(constant, factor)) / pairs
    if not 0 < value < 1 or cells.n < 2:  # nothing is known of its error
        return Estimate(value, 0.0, 1.0)
    logit, half = math.log(value / (1 - value)), reach * error / (value * (1 - value))
    return Estimate(value, float(expit(logit - half)), float(expit(logit + half)))


@dataclass(frozen=True)
class _Cells:
    """Rows, or bins represented by their mean prediction."""

    prob: FloatArray
    weight: FloatArray
    label: FloatArray  # sum w y
    square: FloatArray  # sum w^2
    square_label: FloatArray  # sum w^2 y
    square_label_sq: FloatArray  # sum w^2 y^2
    rows: npt.NDArray[np.int64]
    n: int  # rows or groups
    owner: npt.NDArray[np.intp] | None  # the group of each row

    def squares_of(self, constant: FloatArray, factor: FloatArray) -> float:
        """Return the sum of the squares of w (constant + factor y), over rows or groups."""
        if self.n < 2:
            return math.inf
        if self.owner is None:
            own = constant**2 * self.square + 2 * constant * factor * self.square_label
            total = float((own + factor**2 * self.square_label_sq).sum())
        else:
            each = np.bincount(self.owner, constant * self.weight + factor * self.label)
            total = float(each @ each)
        return self.n / (self.n - 1) * max(total, 0.0)

    def squares(self, z: FloatArray, mean: FloatArray) -> FloatArray:
        """Return the sum of the squares of w (y - mean) z, over rows or groups."""
        if self.n < 2:
            return np.full((z.shape[1],) * 2, math.inf)
        factor = self.n / (self.n - 1)
        if self.owner is None:
            own = self.square_label_sq - 2 * mean * self.square_label + mean**2 * self.square
            found: FloatArray = np.einsum("i,ij,ik->jk", np.maximum(own, 0.0), z, z)
            return factor * found
        score = (self.label - self.weight * mean)[:, None] * z
        each = np.stack([np.bincount(self.owner, column) for column in score.T], axis=1)
        of_groups: FloatArray = (each.T @ each).astype(np.float64)
        return factor * of_groups


def _cells_of_rows(rows: Rows, owner: npt.NDArray[np.intp] | None) -> _Cells:
    p, y, w = inputs.columns(rows)
    here = w > 0
    p, y, w = p[here], y[here], w[here] / w.max()  # so that no power of a weight overflows
    owner = None if owner is None else np.unique(owner[here], return_inverse=True)[1]
    n = p.size if owner is None else int(owner.max()) + 1
    each, square = np.ones(p.size, dtype=np.int64), w * w
    return _Cells(p, w, w * y, square, square * y, square * y * y, each, n, owner)


def _cells_of_table(rel: Reliability) -> _Cells:
    refuse_no_rows(rel)
    refuse_groups("calibration_summary", rel)
    filled = rel.count > 0
    s = rel.sums
    weight, label, square = s.weight[filled], s.label[filled], s.weight_sq[filled]
    unit = square / weight  # exact for equal weights
    scale = float(unit.max())  # so that no power of a weight overflows
    weight, label, square, unit = (
        weight / scale,
        label / scale,
        unit * weight / scale**2,
        unit / scale,
    )
    of_squares = unit * (label - s.label_var[filled] / scale)
    return _Cells(
        rel.mean_prob[filled], weight, label, square, unit * label, of_squares, rel.count[filled],
        rel.n, None,
    )  # fmt: skip


def _refuse_one_kind(cells: _Cells) -> None:
    if not (cells.label > 0).any() or not (cells.label < cells.weight).any():
        message = "a calibration summary needs different labels: all labels are 0, or all are 1."
        raise InputError(message)
    if not cells.prob.any():
        message = "a calibration summary needs predictions above 0: all predictions are 0."
        raise InputError(message)


def _refuse_no_logit(cells: _Cells) -> None:
    bad = (cells.prob <= 0) | (cells.prob >= 1)
    if bad.any():
        message = (
            "the logistic recalibration needs predictions between 0 and 1, which have a logit: "
            f"{cells.rows[bad].sum():,} of {cells.rows.sum():,} are exactly 0 or 1. Leave those "
            "rows out, or clip the predictions."
        )
        raise _NoFitError(message)


def _logistic(cells: _Cells, z: FloatArray, offset: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Fit a logistic regression to soft labels; return its parameters and their covariance."""

    def loss(theta: FloatArray) -> tuple[float, float]:
        """Return the loss, and about how much of it may be rounding."""
        eta = offset + z @ theta
        parts = cells.weight @ np.logaddexp(0, eta), cells.label @ eta
        return float(parts[0] - parts[1]), 1e-14 * float(parts[0] + abs(parts[1]))

    theta, found = np.zeros(z.shape[1]), False
    for _ in range(_STEPS):
        mean = expit(offset + z @ theta)
        bread = np.einsum("i,ij,ik->jk", cells.weight * mean * (1 - mean), z, z)
        if found:
            inverse, squares = np.linalg.inv(bread), cells.squares(z, mean)
            return theta, inverse @ squares @ inverse if cells.n > 1 else squares
        slope = z.T @ (cells.label - cells.weight * mean)
        step = np.linalg.solve(bread, slope)
        if not np.isfinite(step).all():  # the matrix is almost singular
            raise _NoFitError(_NO_SOLUTION)
        before, rounding = loss(theta)
        # Newton squares the error in each step, so a step that gains only rounding is the last.
        # For labels that predictions separate, steps stay long.
        found = bool(
            step @ slope <= rounding and (np.abs(step) <= 0.01 * (1 + np.abs(theta))).all()
        )
        # A full step may overshoot; the loss is convex, so a shorter one lowers it.
        while loss(theta + step)[0] > before + rounding:
            step = step / 2
        theta = theta + step
    raise _NoFitError(_NO_SOLUTION)


_NO_SOLUTION = (
    "the logistic recalibration has no finite solution: predictions separate the labels, or all "
    "predictions are equal."
)
_STEPS = 100
