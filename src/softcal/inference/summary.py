"""The summary of calibration that clinical papers report, each number with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.sparse import csr_array
from scipy.special import expit

from softcal import _display
from softcal._validation import inputs
from softcal._validation.rules import generator, refuse_bad_level
from softcal.exceptions import InputError, InputTypeError
from softcal.inference.intervals import score_limits, student_reach
from softcal.metrics.corp import corp
from softcal.table.reliability import Reliability, refuse_groups, refuse_no_rows

if TYPE_CHECKING:
    import numpy.typing as npt

    from softcal._validation.inputs import FloatArray, Rows
    from softcal.metrics.corp import ScoreDecomposition


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
        cells, parts = _cells_of_table(y_true), corp(y_true).brier
    else:
        if y_prob is None:
            message = (
                "calibration_summary takes labels and predictions, calibration_summary(y_true, "
                "y_prob), or a Reliability."
            )
            raise InputTypeError(message)
        rows = inputs.valid_rows(y_true, y_prob, sample_weight)
        cells = _cells_of_rows(rows, inputs.numbers_of_groups(groups, rows, y_true, y_prob))
        parts = corp(y_true, y_prob, sample_weight=sample_weight).brier
    _refuse_one_kind(cells)
    reach = student_reach(cells.n, level)
    logistic, note = None, ""
    try:
        logistic = _recalibration(cells, reach)
    except _NoFitError as error:
        note = str(error)
    atoms, random = _Atoms.of(cells), generator(rng)
    of_curve = [*_of_distances(atoms, level, random), *_of_scores(atoms, parts, level, random)]
    return CalibrationSummary(
        observed_expected=_ratio(cells, reach),
        logistic=logistic,
        auroc=_auroc(cells, reach),
        level=level,
        note=note,
        **dict(zip(_OF_CURVE, of_curve, strict=True)),
    )


def _smoother(x: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the matrix of a local quadratic regression (loess) at increasing points x.

    Row i has the factors of the labels in the fitted value at x[i]. The window reaches to the
    nearest point with `_SPAN` of the weight within it.
    """
    after = weight.cumsum()
    last = after.searchsorted(after - weight + _SPAN * (1 - 1e-9) * after[-1])
    windows = last < x.size  # from each point to the first that has enough weight
    start, end = x[windows], x[last[windows]]
    reach = np.maximum(x[:, None] - start, end - x[:, None]).min(axis=1)
    # Without a second point inside, the fitted value is the mean label at x[i].
    u = np.clip((x - x[:, None]) / np.maximum(reach, 1e-300)[:, None], -1.0, 1.0)
    kernel = weight * (1 - np.abs(u) ** 3) ** 3
    kernel /= kernel.sum(axis=1, keepdims=True)
    powers = [kernel]
    for _ in range(4):
        powers.append(powers[-1] * u)
    sums = np.array([power.sum(axis=1) for power in powers])
    square = sums[np.add.outer(np.arange(3), np.arange(3))].transpose(2, 0, 1)
    factor = np.linalg.pinv(square, rcond=1e-12, hermitian=True)[:, :, 0]
    out: FloatArray = np.einsum("ik,kij->ij", factor, np.array(powers[:3]))
    return out


def _quantiles(distance: FloatArray, weight: FloatArray, at: list[float]) -> FloatArray:
    order = distance.argsort()
    rank = weight[order].cumsum()
    place = rank.searchsorted(np.clip(at, 0.0, 1.0) * rank[-1] * (1 - 1e-12))
    out: FloatArray = distance[order][place]
    return out


class _Atoms(NamedTuple):
    """Labels at the distinct predictions."""

    prob: FloatArray  # distinct predictions, in order
    place: npt.NDArray[np.intp]  # of the prediction of each atom
    label: FloatArray
    weight: FloatArray  # all together 1
    rows: FloatArray  # how many rows of equal weight an atom stands for
    owner: npt.NDArray[np.intp] | None  # the group of each atom
    n: int  # rows or groups

    @staticmethod
    def of(cells: _Cells) -> _Atoms:
        """Return rows of groups as they are, and other rows pooled.

        A pool has many rows with one prediction, or with almost the same if there are many. It has
        two labels, a and b, with the mean and variance of its rows. For outcomes these are 0 and 1.
        """
        order = cells.prob.argsort(kind="stable")
        p, total = cells.prob[order], float(cells.weight.sum())
        new = np.append(True, np.diff(p) > 0)
        if np.count_nonzero(new) > _POOLS:
            rank = cells.weight[order].cumsum() * (_POOLS / 2 / total)
            new[1:] = (np.diff(np.floor(rank)) > 0) | (np.diff(np.floor(p * _POOLS / 2)) > 0)
        if cells.owner is not None:
            place = np.empty(p.size, dtype=np.intp)
            place[order] = new.cumsum() - 1
            prob = np.bincount(place, cells.weight * cells.prob) / np.bincount(place, cells.weight)
            label, each = cells.label / cells.weight, np.ones(p.size)
            return _Atoms(prob, place, label, cells.weight / total, each, cells.owner, cells.n)
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
            (np.tile(weight, 2) * part)[some] / total, rows[some], None, cells.n,
        )  # fmt: skip

    def variance(self, term: FloatArray) -> float:
        """Return the variance of the sum of terms, over independent rows or groups."""
        if self.owner is None:
            square = float((term**2 / self.rows).sum())
        else:
            square = float((np.bincount(self.owner, term) ** 2).sum())
        return self.n / (self.n - 1) * square

    def noise(self, term: FloatArray, draws: int, random: np.random.Generator) -> FloatArray:
        """Draw the error of the sum of terms at each prediction, with normal rows or groups."""
        if self.owner is None:
            error = np.sqrt(np.bincount(self.place, term**2 / self.rows))
            return random.standard_normal((draws, error.size)) * error
        square = csr_array((term, (self.owner, self.place)))
        drawn: FloatArray = random.standard_normal((draws, square.shape[0])) @ square
        return drawn


def _of_distances(atoms: _Atoms, level: float, random: np.random.Generator) -> list[Estimate]:
    """Return the ICI, E50, E90, and Emax."""
    place = atoms.place
    weight: FloatArray = np.bincount(place, atoms.weight).astype(np.float64)
    smoother = _smoother(atoms.prob, weight)
    mean_label = np.bincount(place, atoms.weight * atoms.label) / weight
    gap = atoms.prob - smoother @ mean_label
    distance = np.abs(gap)
    ici = float(weight @ distance)
    value = [ici, *_quantiles(distance, weight, [0.5, 0.9]).tolist(), float(distance.max())]
    if atoms.n < 2:
        return [Estimate(each, 0.0, 1.0) for each in value]
    # The error of the mean label at each prediction; a row's own share of the curve is left out.
    own = atoms.weight / weight[place]
    leverage = smoother.diagonal()[place] * own / atoms.rows
    term = own * (atoms.label - (atoms.prob - gap)[place]) / np.maximum(1 - leverage, 0.1)
    drawn = np.abs(atoms.noise(term, _DRAWS, random) @ smoother.T)
    error = np.sqrt((drawn**2).mean(axis=0))
    ratio = np.divide(drawn, error, out=np.zeros_like(drawn), where=error > 0)
    reach = student_reach(atoms.n, level)
    sign = weight * np.sign(gap)
    linear = atoms.weight * (distance[place] - ici) - (sign @ smoother)[place] * term
    half = reach * math.sqrt(atoms.variance(linear))
    found = [(ici - max(float(np.quantile(drawn @ weight, level)), half), ici + half)]
    rest = 1 / atoms.variance(atoms.weight)  # the effective number of rows
    order = ratio.argsort(axis=1)
    beyond = np.take_along_axis(ratio, order, axis=1)
    ranks = weight[order].cumsum(axis=1)
    for share in (0.5, 0.9, 1.0):
        at = np.minimum((ranks < share * (1 - 1e-12)).sum(axis=1), weight.size - 1)
        errors = np.take_along_axis(beyond, at[:, None], axis=1)
        wide = max(float(np.quantile(errors, level)), reach) * error
        more = reach * math.sqrt(share * (1 - share) / rest)
        found.append((
            float(_quantiles(np.maximum(distance - wide, 0.0), weight, [share - more])[0]),
            float(_quantiles(distance + wide, weight, [share + more])[0]),
        ))  # fmt: skip
    return [
        Estimate(each, min(max(low, 0.0), each), max(min(high, 1.0), each))
        for each, (low, high) in zip(value, found, strict=True)
    ]


def _of_scores(
    atoms: _Atoms, parts: ScoreDecomposition, level: float, random: np.random.Generator
) -> list[Estimate]:
    """Return the Brier score and its parts."""
    value = [parts.score, parts.miscalibration, parts.discrimination, parts.uncertainty]
    if atoms.n < 2:
        return [Estimate(each, 0.0, 1.0) for each in value]
    place, y, w = atoms.place, atoms.label, atoms.weight
    weight = np.bincount(place, w)
    curve = isotonic_regression(np.bincount(place, w * y) / weight, weights=weight).x
    from_prob, from_curve = (y - atoms.prob[place]) ** 2, (y - curve[place]) ** 2
    from_mean = (y - w @ y) ** 2

    def variance(loss: FloatArray) -> float:
        return atoms.variance(w * (loss - w @ loss))

    limits = [
        score_limits(np.array(v), np.array(variance(loss)), atoms.n, level)
        for v, loss in ((value[0], from_prob), (value[3], from_mean))
    ]
    # The curve fits its own rows too well. The same happens to curves of drawn labels.
    drawn = atoms.noise(w / weight[place] * (y - curve[place]), _DRAWS // 5, random)
    fitted = [isotonic_regression(curve + each, weights=weight).x for each in drawn]
    better = np.array([
        weight @ (each**2 - (curve + each - fit) ** 2)
        for each, fit in zip(drawn, fitted, strict=True)
    ])  # fmt: skip
    reach, bias, spread = student_reach(atoms.n, level), better.mean(), better.var()
    for v, other in zip(value[1:3], (from_prob, from_mean), strict=True):
        error = variance(other - from_curve)
        low, high = v - bias - reach * math.sqrt(error + spread), v + reach * math.sqrt(error)
        limits.insert(-1, (np.clip(low, 0.0, v), np.clip(high, v, 1.0)))
    return [Estimate(v, float(a), float(b)) for v, (a, b) in zip(value, limits, strict=True)]


_SPAN = 0.75  # of the weight, in the window of the curve
_DRAWS = 500
_POOLS = 600  # of predictions


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
