"""The summary of calibration that clinical papers report, each number with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit

from softcal import _display
from softcal._fitting import is_short, logistic, minimum
from softcal._validation import inputs
from softcal._validation.rules import generator, refuse_bad_level
from softcal.exceptions import InputError
from softcal.inference.intervals import score_limits, student_reach
from softcal.metrics.corp import corp, isotonic
from softcal.table.owners import Groups
from softcal.table.reliability import (
    Reliability,
    refuse_no_rows,
    refuse_products_of_groups,
    rows_or_table,
)

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
        distance between the prediction and a smooth curve (loess).
    brier, miscalibration, discrimination, uncertainty : Estimate
        The Brier score and its parts, from the isotonic curve of `corp`.
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
    squared residuals of the labels, each divided by 1 minus its leverage, so the intervals are
    valid for vote shares. The AUROC is

    \[ \frac{\sum_{i,j} w_i w_j\, y_i (1 - y_j)\, ([p_i > p_j] + \tfrac12 [p_i = p_j])}
       {\sum_i w_i y_i \sum_j w_j (1 - y_j)} , \]

    and its interval is that of its linear approximation per row (of DeLong for labels of 0 and 1),
    on the scale of the logit.

    A linear approximation has a term \(u_i\) per row. Its interval is Student's, with
    \((\sum u^2)^2 / \sum u^4 - 1\) degrees of freedom: if only few rows contribute, such as rare
    cases, their number counts.

    ICI, E50, E90, and Emax are distances between predictions and a loess curve: local quadratic
    regression with 75% of the rows in the window, as in R with `surface = "direct"`. E50 and E90
    are interpolated as in R. More than 600 distinct predictions are pooled, which R does not do.
    The curve is linear in the labels, so its errors Z are drawn from
    their normal distribution. The ICI is at least its value minus the
    95% quantile of the mean of |Z|. The other limits come from a band around the curve. For Emax
    the band holds at all predictions together, for E90 at 90% of them, and for E50 at each one.

    The Brier score and its uncertainty have score intervals: the variance of the losses is
    proportional to \(\theta(1 - \theta)\) at the limit \(\theta\). For outcomes this is close to
    Wilson's interval. The factor is estimated from the rows and one more row, of mean loss
    \(\varphi = 1 - \sum y(1 - y) / \sum p(1 - p)\), with p the prediction or the isotonic curve.
    That is 1 for outcomes, and small for labels that vary less, whose interval is close to
    Student's. A table does not store how the losses of
    such labels vary within a bin, so its limits differ from those of the rows. The miscalibration
    and the discrimination come from the isotonic curve, which fits its own rows too well. Their
    lower limits subtract how much better isotonic curves of drawn labels fit.

    Parameters
    ----------
    y_true, y_prob, sample_weight, groups
        As in `reliability`; or a Reliability alone. Its bins should be fine, because each is
        represented by its mean prediction: `tables.coarsen(tables.grid)["model"]`.
    level : float
        The level of the intervals, between 0 and 1.
    rng : numpy.random.Generator or int, default=0
        The source of the random numbers, or its seed.

    Returns
    -------
    CalibrationSummary
        Without the logistic recalibration if a prediction is exactly 0 or 1, which has no logit,
        or if predictions separate the labels; `note` then states why.

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
           observed expected   1.4562   1.3855   1.5304
    calibration in the large   0.8799   0.7812   0.9786
                   intercept   0.3593   0.2416   0.4771
                       slope   0.6896   0.6422   0.7371
                       auroc   0.8260   0.8118   0.8394
                         ici   0.1059   0.0904   0.1170
                         e50   0.0903   0.0670   0.1196
                         e90   0.2105   0.1573   0.2695
                        emax   0.2388   0.1788   0.2999
                       brier   0.0559   0.0508   0.0615
              miscalibration   0.0170   0.0121   0.0208
              discrimination   0.0601   0.0522   0.0667
                 uncertainty   0.0989   0.0928   0.1054
    """
    refuse_bad_level(level)
    rows = rows_or_table(
        "calibration_summary", y_true, y_prob, sample_weight=sample_weight, groups=groups
    )
    parts = corp(y_true, y_prob, sample_weight=sample_weight).brier  # validates the values
    if isinstance(rows, Reliability):
        atoms = _Atoms.of_table(rows)
    else:
        inputs.refuse_misaligned_groups(groups, y_true=y_true, y_prob=y_prob)
        owner = None if groups is None else inputs.group_numbers(groups, rows)
        atoms = _Atoms.of_rows(rows, owner)
    _refuse_one_kind(atoms)
    logistic, note = None, ""
    try:
        logistic = _recalibration(atoms, level)
    except _NoFitError as error:
        note = str(error)
    smooth, random = _Smooth.of(_Pools.of(atoms)), generator(rng)
    of_curve = [*_distances(smooth, level, random), *_scores(smooth, parts, level, random)]
    return CalibrationSummary(
        observed_expected=_ratio(atoms, level),
        logistic=logistic,
        auroc=_auroc(atoms, level),
        level=level,
        note=note,
        **dict(zip(_OF_CURVE, of_curve, strict=True)),
    )


class _Atoms(NamedTuple):
    """Rows; or the bins of a table, each with two labels of the same mean and variance.

    For outcomes, these labels are 0 and 1. A bin is represented by its mean prediction.
    """

    prob: FloatArray
    label: FloatArray
    weight: FloatArray  # 1 for all together
    rows: FloatArray  # how many rows of equal weight an atom stands for
    owner: npt.NDArray[np.intp] | None  # the group of each atom
    n: int  # rows or groups

    @staticmethod
    def of_rows(rows: Rows, owner: npt.NDArray[np.intp] | None) -> _Atoms:
        p, y, w = inputs.columns(rows)
        here = w > 0
        p, y, w = p[here], y[here], w[here]
        if owner is None and w.min() == w.max():  # rows that are equal
            pairs, count = np.unique(p + 1j * y, return_counts=True)
            many = count.astype(np.float64)
            return _Atoms(pairs.real, pairs.imag, many / p.size, many, None, p.size)
        w = w / w.max()  # so that no sum overflows
        owner = None if owner is None else np.unique(owner[here], return_inverse=True)[1]
        n = p.size if owner is None else int(owner.max()) + 1
        return _Atoms(p, y, w / w.sum(), np.ones(p.size), owner, n)

    @staticmethod
    def of_table(rel: Reliability) -> _Atoms:
        refuse_no_rows(rel)
        refuse_products_of_groups("calibration_summary", rel)
        s, groups = rel.sums, rel.groups
        if isinstance(groups, Groups):
            owner, place, n = groups.owner, groups.place, groups.count
            weight, label = groups.values[1], groups.labels(rel.sums)
        else:
            place, n = np.flatnonzero(rel.count), rel.n
            owner, weight, label = None, s.weight[place], s.label[place]
        mean = np.clip(label / weight, 0.0, 1.0)
        # The labels of a bin have the same share of the variance of outcomes in all its groups.
        most, least = (
            np.bincount(place, weight * each, s.weight.size)[place]
            for each in (mean * (1 - mean), mean**2)
        )
        more = (s.label - s.label_var)[place] - least
        share = np.sqrt(np.clip(more / np.where(most > 0, most, 1.0), 0.0, 1.0))
        rows = weight * (s.weight / np.where(s.weight_sq > 0, s.weight_sq, 1.0))[place]
        part = np.concatenate([1 - mean, mean])
        two = np.concatenate([mean * (1 - share), mean + (1 - mean) * share])
        some = part > 0
        weight = weight / weight.max()  # so that no sum overflows
        columns = (rel.mean_prob[place], weight / weight.sum(), rows)
        prob, weight, rows = (np.tile(each, 2)[some] for each in columns)
        part = part[some]
        owner = None if owner is None else np.tile(owner, 2)[some]
        return _Atoms(prob, two[some], weight * part, rows * part, owner, n)

    def error(self, term: FloatArray) -> float:
        """Return the standard error of the sum of terms, over independent rows or groups."""
        each, times = self._each(term)
        return math.sqrt(self.n / (self.n - 1) * float(times @ each**2))

    def reach(self, term: FloatArray, level: float) -> float:
        """Return how many standard errors the interval of a sum of terms extends.

        If few rows or groups contribute, their number sets the degrees of freedom.
        """
        each, times = self._each(term)
        square = each**2 / max(float((each**2).max()), 1e-300)
        fourth = float(times @ square**2)
        many = min(float(times @ square) ** 2 / fourth if fourth else self.n, self.n)
        return student_reach(max(many, 2.0), level)

    def term(self, loss: FloatArray) -> FloatArray:
        """Return the term of each atom in the error of the mean loss."""
        out: FloatArray = self.weight * (loss - self.weight @ loss)
        return out

    def limits(
        self, loss: FloatArray, value: float, *probs: FloatArray, level: float
    ) -> tuple[float, float]:
        r"""Return the score limits of a mean of losses, given probabilities of the labels.

        Labels vary \(\varphi\) times as much as outcomes: their mean y(1 - y) is \(1 - \varphi\)
        times that of outcomes, p(1 - p). The largest is taken of several probabilities.
        """
        left, *possible = (float(self.weight @ (x * (1 - x))) for x in (self.label, *probs))
        most = max(possible)
        unseen = max(1 - left / most, 0.0) if most else float(not left)
        term = self.term(loss)
        each, times = self._each(self.weight)
        units = 1 / float(times @ each**2)  # Kish's
        n, variance = units, self.error(term) ** 2
        if self.owner is not None:
            # Rows count as so many independent ones as have the variance of the groups.
            rows = 1 / float(self.weight @ (self.weight / self.rows))
            alone = float(term @ (term / self.rows)) * rows / max(rows - 1, 1e-9)
            variance = max(variance, alone)
            n = float(
                np.clip(rows * alone / variance if variance else rows, min(units, rows), rows)
            )
        reach = student_reach(max(units, 2.0), level)
        low, high = score_limits(np.array(value), np.array(variance), n, reach, unseen)
        return float(low), float(high)

    def _each(self, term: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the term of each row or group, and how many there are of it."""
        if self.owner is None:
            return term / self.rows, self.rows
        each = np.bincount(self.owner, term).astype(np.float64)
        return each, np.ones(each.size)

    def without(self, own: FloatArray) -> FloatArray:
        """Return the factor of each residual if a row, or its group, is left out of a fit.

        `own` is the share of the row in its own fitted value.
        """
        if self.owner is not None:
            own = np.minimum(np.bincount(self.owner, own * self.rows)[self.owner], 0.5)
        out: FloatArray = 1 / np.maximum(1 - own, 0.1)
        return out

    def half(self, term: FloatArray, level: float) -> float:
        """Return half the width of the interval of the sum of terms."""
        return self.reach(term, level) * self.error(term) if self.n > 1 else math.inf


class _Pools(NamedTuple):
    """Atoms pooled by their predictions: by each if there are few, or by almost the same."""

    atoms: _Atoms
    place: npt.NDArray[np.intp]  # the pool of each atom
    prob: FloatArray  # of the pools, in order
    weight: FloatArray
    label: FloatArray  # the mean
    unit: FloatArray  # the weight of a row

    @staticmethod
    def of(atoms: _Atoms) -> _Pools:
        order = atoms.prob.argsort(kind="stable")
        p = atoms.prob[order]
        new = np.append(False, np.diff(p) > 0)
        if np.count_nonzero(new) >= _POOLS:
            both = atoms.weight[order].cumsum(), p  # equal parts of the rows, cut at a grid
            steps = [np.diff(np.floor(each * _POOLS / 2), prepend=0) > 0 for each in both]
            new &= steps[0] | steps[1]
        place = np.empty(p.size, dtype=np.intp)
        place[order] = new.cumsum()
        w = atoms.weight
        weight, prob, label, square = (
            np.bincount(place, each).astype(np.float64)
            for each in (w, w * atoms.prob, w * atoms.label, w * w / atoms.rows)
        )
        return _Pools(atoms, place, prob / weight, weight, label / weight, square / weight)

    @property
    def rows(self) -> float:
        """The effective number of rows (Kish's)."""
        return 1 / float(self.weight @ self.unit)

    def quantile(self, values: FloatArray, share: float) -> float:
        """Return the quantile of a value of each pool over the rows, interpolated as in R."""
        order = values.argsort()
        weight, half = self.weight[order], self.unit[order] / 2
        after = weight.cumsum()
        # The values of a pool lie at the middles of its first to its last row.
        middles = np.stack([after - weight + half, after - half], axis=1).ravel()
        at = (0.5 + share * (self.rows - 1)) / self.rows if 0 < share < 1 else share
        return float(np.interp(at, middles, np.repeat(values[order], 2)))

    def noise(self, term: FloatArray, draws: int, random: np.random.Generator) -> FloatArray:
        """Draw the error of the sum of terms of each pool, with normal rows or groups."""
        if self.atoms.owner is None:
            error = np.sqrt(np.bincount(self.place, term**2 / self.atoms.rows))
            return random.standard_normal((draws, error.size)) * error
        square = csr_array((term, (self.atoms.owner, self.place)))
        drawn: FloatArray = random.standard_normal((draws, square.shape[0])) @ square
        return drawn


def _smoother(x: FloatArray, weight: FloatArray, n: float) -> FloatArray:
    """Return the matrix of a local quadratic regression (loess) at increasing points x of n rows.

    Row i has the factors of the labels in the fitted value at x[i]. The window reaches to the
    nearest point with `_SPAN` of the rows within it, rounded down to whole rows as in R.
    """
    after = weight.cumsum()
    inside = max(math.floor(_SPAN * n + 1e-5), 1) / n
    last = after.searchsorted(after - weight + inside * (1 - 1e-9) * after[-1])
    windows = last < x.size  # from each point to the first that has enough weight
    start, end = x[windows], x[last[windows]]
    reach = np.maximum(x[:, None] - start, end - x[:, None]).min(axis=1)
    # Without a second point inside, the fitted value is the mean label at x[i].
    u = np.clip((x - x[:, None]) / np.maximum(reach, 1e-300)[:, None], -1.0, 1.0)
    kernel = weight * (1 - np.abs(u) ** 3) ** 3
    powers = [kernel / kernel.sum(axis=1, keepdims=True)]
    for _ in range(4):
        powers.append(powers[-1] * u)
    sums = np.array([power.sum(axis=1) for power in powers])
    square = sums[np.add.outer(np.arange(3), np.arange(3))].transpose(2, 0, 1)
    factor = np.linalg.pinv(square, rcond=1e-12, hermitian=True)[:, :, 0]
    out: FloatArray = np.einsum("ik,kij->ij", factor, np.array(powers[:3]))
    return out


class _Smooth(NamedTuple):
    """The loess curve of pools."""

    pools: _Pools
    smoother: FloatArray
    fitted: FloatArray
    term: FloatArray  # of each atom, in the error of the mean label of its pool

    @staticmethod
    def of(pools: _Pools) -> _Smooth:
        atoms, place = pools.atoms, pools.place
        smoother = _smoother(pools.prob, pools.weight, pools.rows)
        fitted = smoother @ pools.label
        own = atoms.weight / pools.weight[place]
        leverage = smoother.diagonal()[place] * own / atoms.rows
        term = own * (atoms.label - fitted[place]) * atoms.without(leverage)
        return _Smooth(pools, smoother, fitted, term)


def _distances(smooth: _Smooth, level: float, random: np.random.Generator) -> list[Estimate]:
    """Return the ICI, E50, E90, and Emax."""
    pools, smoother, fitted, term = smooth
    atoms, place, p, weight = pools.atoms, pools.place, pools.prob, pools.weight
    distance = np.abs(p - fitted)
    ici = float(weight @ distance)
    value = [ici, *(pools.quantile(distance, share) for share in (0.5, 0.9, 1.0))]
    if atoms.n < 2:
        return [Estimate(each, 0.0, 1.0) for each in value]
    own = atoms.weight / weight[place]
    drawn = np.abs(pools.noise(term, _DRAWS, random) @ smoother.T)
    error = np.sqrt((drawn**2).mean(axis=0))
    drawn = np.divide(drawn, error, out=np.zeros_like(drawn), where=error > 0)
    rows = 1 / (smoother**2 @ np.bincount(place, own**2 / atoms.rows))  # behind the curve

    middle = np.clip(fitted, 0.0, 1.0)
    spread = middle * (1 - middle)
    square = atoms.weight**2 / atoms.rows
    whole = float(square @ spread[place])
    dispersion = float(square @ (atoms.label - fitted[place]) ** 2) / whole if whole else 0.0
    variance = np.maximum(error**2, dispersion * spread / rows)

    def band(reach: float) -> tuple[FloatArray, FloatArray]:
        # The labels near a prediction vary even if the curve is 0 or 1 there.
        low, high = score_limits(middle, variance, rows, reach)
        half = reach * np.sqrt(variance)
        return np.minimum(low, middle - half), np.maximum(high, middle + half)

    reach = student_reach(atoms.n, level)
    low, high = band(reach)
    toward = np.where(p > middle, high - middle, middle - low) / max(reach, 1e-300)
    linear = atoms.weight * (distance[place] - ici)
    linear -= ((weight * np.sign(p - fitted)) @ smoother)[place] * term
    half = atoms.half(linear, level)
    found = [(ici - max(float(np.quantile(drawn @ (weight * toward), level)), half), ici + half)]
    shares = np.array([0.5, 0.9, 1.0])
    errors = np.quantile(drawn, shares * (1 - 1e-12), axis=1, weights=weight, method="inverted_cdf")
    n = 1 / atoms.error(atoms.weight) ** 2  # effective
    for share, error in zip(shares.tolist(), errors, strict=True):
        low, high = band(max(float(np.quantile(error, level)), reach))
        more = reach * math.sqrt(share * (1 - share) / n)
        low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
        least, most = np.maximum(low - p, p - high), np.maximum(high - p, p - low)
        found.append((pools.quantile(least, share - more), pools.quantile(most, share + more)))
    return [
        Estimate(each, min(max(low, 0.0), each), max(min(high, 1.0), each))
        for each, (low, high) in zip(value, found, strict=True)
    ]


def _scores(
    smooth: _Smooth, parts: ScoreDecomposition, level: float, random: np.random.Generator
) -> list[Estimate]:
    """Return the Brier score and its parts."""
    value = [parts.score, parts.miscalibration, parts.discrimination, parts.uncertainty]
    pools = smooth.pools
    atoms, place, weight = pools.atoms, pools.place, pools.weight
    if atoms.n < 2:
        return [Estimate(each, 0.0, 1.0) for each in value]
    y, w = atoms.label, atoms.weight
    curve = isotonic(pools.label, weight)[0]
    from_prob, from_curve = (y - atoms.prob) ** 2, (y - curve[place]) ** 2
    mean = np.full(y.size, w @ y)
    from_mean = (y - mean) ** 2

    # The isotonic curve fits its own rows too well. So do isotonic curves of drawn labels, with
    # errors from the smooth curve, which follows single rows less.
    drawn = pools.noise(smooth.term, _DRAWS // 5, random)
    fits = (isotonic(curve + each, weight)[0] for each in drawn)
    better = np.array([
        weight @ (each**2 - (curve + each - fit) ** 2)
        for each, fit in zip(drawn, fits, strict=True)
    ])  # fmt: skip
    probs = atoms.prob, curve[place]
    found = [atoms.limits(from_prob, value[0], *probs, level=level)]
    for v, other, of in zip(value[1:3], (from_prob, from_mean), (probs, [mean]), strict=True):
        error = math.hypot(atoms.error(atoms.term(other - from_curve)), float(better.std()))
        seen = float(w @ (other - from_curve))  # with pools, the curve fits its rows less
        low = seen - float(better.mean()) - atoms.reach(atoms.term(other), level) * error
        high = atoms.limits(other - from_curve, v, *of, level=level)[1]
        found.append((min(max(low, 0.0), v), high))
    found.append(atoms.limits(from_mean, value[3], mean, level=level))
    return [Estimate(v, low, high) for v, (low, high) in zip(value, found, strict=True)]


_SPAN = 0.75  # of the weight, in the window of the curve
_DRAWS = 500
_POOLS = 600  # of predictions


class _NoFitError(Exception):
    """There is no logistic recalibration; the text states why."""


def _recalibration(atoms: _Atoms, level: float) -> tuple[Estimate, Estimate, Estimate]:
    """Return the calibration in the large, the intercept, and the slope."""
    _refuse_no_logit(atoms)
    x = np.log(atoms.prob / (1 - atoms.prob))
    # A label between 0 and 1 is partly a case and partly not.
    cases, others = x[atoms.label > 0], x[atoms.label < 1]
    if others.max() <= cases.min() or cases.max() <= others.min():
        raise _NoFitError(_NO_SOLUTION)
    one = np.ones_like(x)
    try:
        with np.errstate(over="raise", invalid="raise"):
            large = _logistic(atoms, one[:, None], x)
            both = _logistic(atoms, np.stack([one, x], axis=1), np.zeros_like(x))
    except (FloatingPointError, np.linalg.LinAlgError) as error:
        raise _NoFitError(_NO_SOLUTION) from error

    def estimate(fit: tuple[FloatArray, FloatArray], k: int) -> Estimate:
        value, half = float(fit[0][k]), atoms.half(fit[1][:, k], level)
        return Estimate(value, value - half, value + half)

    return estimate(large, 0), estimate(both, 0), estimate(both, 1)


def _ratio(atoms: _Atoms, level: float) -> Estimate:
    """Return observed over expected, with an interval on the scale of its logarithm."""
    observed, expected = float(atoms.weight @ atoms.label), float(atoms.weight @ atoms.prob)
    ratio = observed / expected if expected else math.inf  # predictions of 1e-320 may add up to 0
    if min(observed, expected) < 1e-150:
        return Estimate(ratio, 0.0, math.inf)  # nothing is known of its error
    # The term of a row in the linear approximation of the logarithm.
    exponent = atoms.half(atoms.weight * (atoms.label / observed - atoms.prob / expected), level)
    factor = math.exp(exponent) if exponent < 700 else math.inf
    return Estimate(ratio, ratio / factor, ratio * factor)


def _auroc(atoms: _Atoms, level: float) -> Estimate:
    """Return the AUROC, with an interval on the scale of its logit."""
    place = np.unique(atoms.prob, return_inverse=True)[1]
    # A common factor of the cases cancels. Without it, labels next to 0 or 1 underflow.
    of_case, of_other = atoms.label, 1 - atoms.label
    cases = atoms.weight * (of_case / of_case.max())
    others = atoms.weight * (of_other / of_other.max())
    all_cases, all_others = float(cases.sum()), float(others.sum())
    of_place = np.bincount(place, others)
    others_below = (of_place.cumsum() - of_place / 2)[place]
    of_place = np.bincount(place, cases)
    cases_above = all_cases - (of_place.cumsum() - of_place / 2)[place]
    value = min(max(float((cases / all_cases) @ (others_below / all_others)), 0.0), 1.0)
    # The term of a row in the linear approximation has mean 0.
    term = cases * (others_below / all_others - value) / all_cases
    term += others * (cases_above / all_cases - value) / all_others
    if not 0 < value < 1 or atoms.n < 2:  # nothing is known of its error
        return Estimate(value, 0.0, 1.0)
    # One more case and one more other row, of unknown places: few show little of their spread.
    few = [atoms.error(each) ** 2 for each in (cases / all_cases, others / all_others)]
    more = value * (1 - value) * sum(each**2 / (1 + each) for each in few)
    error = math.sqrt(atoms.error(term) ** 2 + more)
    logit = math.log(value / (1 - value))
    half = atoms.reach(term, level) * error / (value * (1 - value))
    return Estimate(value, float(expit(logit - half)), float(expit(logit + half)))


def _refuse_one_kind(atoms: _Atoms) -> None:
    if not (atoms.label > 0).any() or not (atoms.label < 1).any():
        message = "a calibration summary needs different labels: all labels are 0, or all are 1."
        raise InputError(message)
    if not atoms.prob.any():
        message = "a calibration summary needs predictions above 0: all predictions are 0."
        raise InputError(message)


def _refuse_no_logit(atoms: _Atoms) -> None:
    bad = (atoms.prob <= 0) | (atoms.prob >= 1)
    if bad.any():
        message = (
            "the logistic recalibration needs predictions between 0 and 1, which have a logit: "
            f"{atoms.rows[bad].sum():,.0f} of {atoms.rows.sum():,.0f} are exactly 0 or 1. Leave "
            "those rows out, or clip the predictions."
        )
        raise _NoFitError(message)


def _logistic(atoms: _Atoms, z: FloatArray, offset: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Fit a logistic regression to soft labels; return its parameters and each row's terms.

    The terms of a parameter add up to its error. They have the residual of a row whose own share
    of the fit is left out.
    """
    weight, size = atoms.weight, z.shape[1]
    near = partial(logistic, list(z.T), atoms.label, weight, offset=offset)
    theta = minimum(near, np.zeros(size), np.full(size, -np.inf), ridge=0.0)
    mean = expit(offset + z @ theta)
    spread, left = weight * mean * (1 - mean), weight * (atoms.label - mean)
    inverse = np.linalg.inv(np.einsum("i,ij,ik->jk", spread, z, z))
    step = inverse @ (z.T @ left)
    if not is_short(step, theta):  # predictions separate the labels, except for rounding
        raise _NoFitError(_NO_SOLUTION)
    terms = z @ inverse
    left *= atoms.without(spread / atoms.rows * (terms * z).sum(axis=1))
    return theta + step, left[:, None] * terms


_NO_SOLUTION = (
    "the logistic recalibration has no finite solution: predictions separate the labels, or all "
    "predictions are equal."
)
