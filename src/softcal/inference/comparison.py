"""Compare models on the same rows: differences with intervals and p-values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtr, stdtrit

from softcal._validation import inputs
from softcal._validation.inputs import Names
from softcal._validation.multiclass import class_rows
from softcal.bins import Bins
from softcal.exceptions import InputError, InputTypeError
from softcal.inference.intervals import (
    MEAN_AT_0,
    SHARPNESS,
    Gaps,
    debiased,
    kept,
    refuse_bad_level,
    soft_sign,
)
from softcal.metrics.multiclass import top_label_rows
from softcal.table.build import joined_rows, joint_table
from softcal.table.joint import JointTable, PairedSums, refuse_many_bins
from softcal.table.reliability import from_rows

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray
    from softcal.bins import BinsLike
    from softcal.table.groups import Clusters
    from softcal.table.kernel import Sums

# Constants of the two intervals, set by simulation: benchmarks/paired.py.
_DIRECT_SHARPNESS = 0.7  # of soft signs, where they give a folded number its variance
_CHOOSING = 0.95  # the level at which the narrower interval is chosen, whatever is asked for
_ALIKE = 0.05  # widths this close, as a share of the separate one's: the two intervals are mixed


class _Model:
    """One model's bins: gap and its error as shares of all weight, and t, their ratio."""

    def __init__(self, sums: Sums, clusters: Clusters | None) -> None:
        self.gaps = Gaps.of(sums, clusters)
        self.total, self.rows = self.gaps.total, self.gaps.rows
        self.gap = sums.residual / self.total[..., None]
        self.t, self.error = self.gaps.in_errors()
        self.sign = soft_sign(self.t, SHARPNESS)
        self.signed_mean = (self.sign * self.gap).sum(axis=-1)
        square = self.gaps.spread(self.sign)
        seen = self.signed_mean**2 / self.rows * (1 - 1 / self.rows)
        self.variance = kept(square - seen, square)  # with one more row, whose gap is 0
        self._own = sums.residual_var if clusters is None else clusters.residual

    def signed_square(self, sign: FloatArray) -> FloatArray:
        """Give the sum over rows, or groups, of their signed and squared residuals."""
        independent = self.gaps.square is None
        square = (sign**2 * self._own).sum(axis=-1) if independent else sign @ self._own @ sign
        out: FloatArray = square / self.total**2
        return out


class DifferenceIntervals:
    r"""Intervals of all levels for one joint table, or for many along leading axes.

    Two kinds are computed, and the one that is narrower at level 0.95 is used at every level;
    where their widths differ by less than 5%, a mixture of both, so that limits have no jump.

    The separate one bounds what noise adds to each model by itself: from A an estimate that never
    overestimates on average, less from B one that never underestimates, and the other way
    round; their reaches are combined with the correlation of the two (MOVER).

    The direct one is \(\hat\delta \pm (R + t\,\mathrm{se})\). With \(x = \mu/s\) a bin's true gap
    in standard errors, noise adds \(s\,\gamma(|x|)\) to \(|\mu|\), \(\gamma' = -2\Phi(-x)\); and
    as \(2\Phi(-x)\) is convex, what it adds to A more than to B in one bin is, for equal s, at
    most

    \[ \bigl(\Phi(-|x^A|) + \Phi(-|x^B|)\bigr)\, |\mu^A - \mu^B| . \]

    R is the sum of that over bins, with \(e^{-3t^2/2}\) for \(\Phi(-|x|)\), since its mean
    \(\frac12 e^{-3x^2/8}\) is never below, and \(|D^A - D^B|\) for \(|\mu^A - \mu^B|\), whose
    mean is never below either; plus a like term where the standard errors differ. It is small
    for models that are alike and in bins far from 0.
    """

    def __init__(
        self,
        a: Sums,
        b: Sums,
        cross: FloatArray,
        differing: npt.NDArray[np.integer],
        clusters: tuple[Clusters | None, Clusters | None] = (None, None),
    ) -> None:
        self.a, self.b = _Model(a, clusters[0]), _Model(b, clusters[1])
        self.cross = cross
        self.degrees = np.maximum(differing - 1, 1)
        self.correlation = self._correlation()
        self.difference = np.abs(self.a.gap).sum(axis=-1) - np.abs(self.b.gap).sum(axis=-1)
        self.error = self._direct_error()
        self.folding = self._folding()
        low, high = self.separate(1 - _CHOOSING)
        direct_low, direct_high = self.direct(1 - _CHOOSING)
        narrower = 1 - (direct_high - direct_low) / np.maximum(high - low, 1e-300)
        self.direct_share = np.clip((1 + narrower / _ALIKE) / 2, 0.0, 1.0)

    def limits(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Give both limits at level 1 - alpha."""
        low, high = (
            separate + self.direct_share * (direct - separate)
            for direct, separate in zip(self.direct(alpha), self.separate(alpha), strict=True)
        )
        return np.maximum(low, -1.0), np.minimum(high, 1.0)

    def direct(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Give the limits that count on the models being alike; wide when they are not."""
        half = self.folding - stdtrit(self.degrees, alpha / 2) * self.error
        return self.difference - half, self.difference + half

    def _direct_error(self) -> FloatArray:
        """Give the standard error of the difference, signs softened where they are unsure.

        Differences that are all equal leave the rows that were not seen: one more, of difference 0.
        """
        a, b = self.a, self.b
        sign_a, sign_b = soft_sign(a.t, _DIRECT_SHARPNESS), soft_sign(b.t, _DIRECT_SHARPNESS)
        square = a.signed_square(sign_a) + b.signed_square(sign_b)
        shared = 2 * self._between(sign_a, sign_b)
        mean = (sign_a * a.gap - sign_b * b.gap).sum(axis=-1)
        seen = mean**2 / a.rows * (1 - 1 / a.rows)
        out: FloatArray = np.sqrt(kept(square - shared - seen, square))
        return out

    def _folding(self) -> FloatArray:
        """Bound what noise adds to one SMECE and not to the other (R)."""
        a, b = self.a, self.b
        share = np.exp(-1.5 * a.t**2) + np.exp(-1.5 * b.t**2)
        unlike = (share * np.abs(a.gap - b.gap)).sum(axis=-1)
        out: FloatArray = unlike + MEAN_AT_0 * np.abs((share * (a.error - b.error)).sum(axis=-1))
        return out

    def _correlation(self) -> FloatArray:
        """Correlate the models, each with the one more row that its lower limit counts.

        Residuals that are all equal have no variance without that row, nor a covariance: the
        correlation would be a ratio of two roundings.
        """
        a, b = self.a, self.b
        mean_a, mean_b = a.signed_mean, b.signed_mean
        covariance = self._between(a.sign, b.sign) - mean_a * mean_b / a.rows
        error = np.sqrt(a.variance) * np.sqrt(b.variance)
        out: FloatArray = np.clip(covariance / np.maximum(error, 1e-300), -1.0, 1.0)
        return out

    def separate(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Give the limits that count on nothing."""
        z = -float(ndtri(alpha / 2))
        a, b = self.a, self.b
        (most_a, above_a), (most_b, above_b) = a.gaps.generous(z), b.gaps.generous(z)
        (least_a, below_a), (least_b, below_b) = a.gaps.cautious(z), b.gaps.cautious(z)
        low = least_a - most_b - self._together(below_a, above_b)
        high = most_a - least_b + self._together(above_a, below_b)
        return low, high

    def _together(self, x: FloatArray, y: FloatArray) -> FloatArray:
        square = x**2 + y**2 - 2 * self.correlation * x * y
        return np.sqrt(np.maximum(square, 0.0))

    def _between(self, sign_a: FloatArray, sign_b: FloatArray) -> FloatArray:
        """Give the covariance of the signed sums of gaps."""
        product: FloatArray = (sign_a * (self.cross @ sign_b[..., None])[..., 0]).sum(axis=-1)
        return product / self.a.total**2


_SMALLEST_P = 1e-30  # below, the normal approximation says nothing


@dataclass(frozen=True)
class MeanDifference:
    """A mean loss of A minus that of B on the same rows, with its confidence interval.

    Where a loss is infinite the interval is the whole line and the p-value 1; the difference is
    then inf, -inf, or 0 when both losses are infinite.
    """

    difference: float
    low: float
    high: float
    pvalue: float


@dataclass(frozen=True)
class Comparison:
    """Two models on the same rows: below 0 is in favour of A.

    Attributes
    ----------
    smece_a, smece_b : float
        SMECE of each model, as the paper defines it.
    difference : float
        The first minus the second.
    debiased : float
        The same difference with most of what noise adds to either taken off.
    low, high : float
        The confidence interval of the difference of unlimited data.
    level : float
        How often such an interval contains it.
    pvalue : float
        The smallest alpha whose interval, of level 1 - alpha, leaves out 0.
    brier, log_loss : MeanDifference
        Differences of these means; unlike SMECE they also reward telling rows apart.
    """

    smece_a: float
    smece_b: float
    difference: float
    debiased: float
    low: float
    high: float
    level: float
    pvalue: float
    brier: MeanDifference
    log_loss: MeanDifference


class Pair(NamedTuple):
    """Two models of a ranking; `pvalue` is corrected for all pairs, `comparison.pvalue` is not."""

    a: str
    b: str
    comparison: Comparison
    pvalue: float


@dataclass(frozen=True)
class Ranking:
    """Models in order of their SMECE, and which of them the data cannot tell apart.

    Attributes
    ----------
    smece : dict
        The SMECE of each model, best first.
    pairs : tuple of Pair
        Every pair, the better one first, with Holm's correction of its p-value.
    level : float
        At which pairs are told apart: with this probability, no pair is by mistake.
    """

    smece: dict[str, float]
    pairs: tuple[Pair, ...]
    level: float

    @property
    def models(self) -> tuple[str, ...]:
        """The names, best first."""
        return tuple(self.smece)

    @property
    def indistinguishable(self) -> tuple[tuple[str, str], ...]:
        """The pairs whose order may be chance. No pair here, and the order is settled."""
        return tuple((p.a, p.b) for p in self.pairs if p.pvalue >= 1 - self.level)


def compare(
    y_true: npt.ArrayLike,
    y_prob_a: npt.ArrayLike,
    y_prob_b: npt.ArrayLike,
    *,
    bins: BinsLike = 10,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> Comparison:
    r"""Compare the calibration of two models on the same rows.

    The difference is \(\sum_b |D^A_b| - \sum_b |D^B_b|\), with
    \(D_b = \sum_{i \in b} w_i (p_i - y_i) / \sum_i w_i\). Noise pushes both sums up; where the
    models are alike it does so equally, and the interval is narrow. Rows are taken as
    independent, unless `groups` says which belong together.

    Parameters
    ----------
    y_true, y_prob_a, y_prob_b, bins, sample_weight, n_votes, groups
        As in `joint_table`. For shares of votes give `n_votes`.
    level : float
        Between 0 and 1.

    Examples
    --------
    >>> from softcal.datasets import lidc_malignancy
    >>> d = lidc_malignancy()
    >>> forest, logistic = d["prob_rf_all"], d["prob_lr_geometry"]
    >>> found = compare(d["soft_malignant"], forest, logistic, n_votes=d["n_readers"])
    >>> round(found.difference, 3), round(found.low, 3), round(found.high, 3)
    (-0.012, -0.023, -0.003)
    """
    refuse_bad_level(level)
    joint = joint_table(
        y_true, y_prob_a, y_prob_b, bins=bins, sample_weight=sample_weight, n_votes=n_votes,
        groups=groups,
    )  # fmt: skip
    return compare_tables(joint, level)


def compare_tables(joint: JointTable, level: float = 0.95) -> Comparison:
    """Compare two models by their joint table alone, as `compare` does.

    Examples
    --------
    >>> joint = joint_table([0.0, 0.5, 1.0], [0.2, 0.4, 0.9], [0.2, 0.4, 0.9])
    >>> compare_tables(joint).pvalue
    1.0
    """
    refuse_bad_level(level)
    if not isinstance(joint, JointTable):
        message = (
            f"compare_tables takes what joint_table gives: got {type(joint).__name__}. For arrays "
            "use compare."
        )
        raise InputTypeError(message)
    smece_a, smece_b = joint.a.smece, joint.b.smece
    low, high, pvalue = -1.0, 1.0, 1.0  # one row, or group, says nothing about the others
    clusters = joint.a.clusters
    if (joint.n if clusters is None else clusters.count) >= 2:
        family = DifferenceIntervals(
            joint.a.sums, joint.b.sums, joint.cross, np.asarray(joint.differing),
            (clusters, joint.b.clusters),
        )  # fmt: skip
        low, high = (float(x) for x in family.limits(1 - level))
        pvalue = _smallest_excluding(family)
    gaps = Gaps.of(joint.a.sums, clusters)
    return Comparison(
        smece_a=smece_a,
        smece_b=smece_b,
        difference=smece_a - smece_b,
        debiased=debiased(joint.a) - debiased(joint.b),
        low=low,
        high=high,
        level=level,
        pvalue=pvalue,
        brier=_mean_difference(joint.brier, gaps, level, most=1.0),
        log_loss=_log_loss_difference(joint, gaps, level),
    )


def compare_many(
    y_true: npt.ArrayLike,
    predictions: Mapping[str, npt.ArrayLike],
    *,
    bins: BinsLike = 10,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> Ranking:
    r"""Rank models by SMECE, and say which of them the same rows cannot tell apart.

    All pairs are compared. Holm's correction multiplies the k-th smallest of m p-values by
    \(m + 1 - k\) and lets none fall below the one before it: so with probability `level` no two
    models that are equally calibrated are told apart.

    Parameters
    ----------
    predictions : mapping from str to array-like
        The predictions of each model, two models or more.
    y_true, bins, sample_weight, n_votes, groups, level
        As in `compare`.

    Examples
    --------
    >>> y = [0.1, 0.4, 0.6, 0.9] * 50
    >>> models = {"exact": y, "sharp": [0.0, 0.2, 0.8, 1.0] * 50, "also": y}
    >>> ranking = compare_many(y, models)
    >>> ranking.models
    ('exact', 'also', 'sharp')
    >>> ranking.indistinguishable
    (('exact', 'also'),)
    """
    refuse_bad_level(level)
    binned = Bins.of(bins)
    refuse_many_bins(len(binned))
    if not isinstance(predictions, Mapping):
        message = f"predictions must map names to columns: got {type(predictions).__name__}."
        raise InputTypeError(message)
    if len(predictions) < 2:
        message = f"there must be at least two models to compare: got {len(predictions)}."
        raise InputError(message)
    (first, first_prob), *others = predictions.items()
    for name, y_prob in others:
        inputs.rows(first_prob, y_prob, names=Names(first, name))  # do they fit each other?
    rows = {
        name: inputs.rows(y_true, y_prob, sample_weight, n_votes, Names(y_prob=name))
        for name, y_prob in predictions.items()
    }
    inputs.refuse_misaligned_groups(groups, y_true=y_true, y_prob=first_prob)
    group = None if groups is None else inputs.group_numbers(groups, rows[first])
    tables = {name: from_rows(columns, binned, group) for name, columns in rows.items()}
    smece = dict(sorted(((n, t.smece) for n, t in tables.items()), key=lambda item: item[1]))
    found = [
        (a, b, compare_tables(joined_rows(rows[a], rows[b], binned, group), level))
        for a, b in combinations(smece, 2)
    ]
    corrected = holm([comparison.pvalue for _, _, comparison in found])
    pairs = (Pair(*three, p) for three, p in zip(found, corrected, strict=True))
    return Ranking(smece, tuple(pairs), level)


def holm(pvalues: list[float]) -> list[float]:
    """Correct p-values for their number, step by step (Holm)."""
    out = [1.0] * len(pvalues)
    before = 0.0
    for rank, k in enumerate(sorted(range(len(pvalues)), key=pvalues.__getitem__)):
        before = max(before, min(1.0, pvalues[k] * (len(pvalues) - rank)))
        out[k] = before
    return out


def _mean_difference(
    paired: PairedSums, gaps: Gaps, level: float, most: float = math.inf
) -> MeanDifference:
    """Give Student's interval of a weighted mean, with the effective number of rows or groups.

    No loss differs by more than `most`.
    """
    weight, rows = float(gaps.total), float(gaps.rows)
    mean = paired.total / weight
    if rows < 1 + 1e-9:  # of one row anything may be true
        return MeanDifference(mean, -most, most, 1.0)
    whole = paired.square + paired.total**2 / rows
    spread = float(kept(np.asarray(whole - 2 * mean * paired.mixed), np.asarray(whole)))
    error = math.sqrt(spread * rows / (rows - 1)) / weight
    half = -float(stdtrit(rows - 1, (1 - level) / 2)) * error
    t = abs(mean) / error if error else 0.0
    pvalue = min(1.0, 2 * float(stdtr(rows - 1, -t)))
    return MeanDifference(mean, max(mean - half, -most), min(mean + half, most), pvalue)


def _log_loss_difference(joint: JointTable, gaps: Gaps, level: float) -> MeanDifference:
    if not joint.infinite_a and not joint.infinite_b:
        return _mean_difference(joint.log_loss, gaps, level)
    difference = 0.0
    if not (joint.infinite_a and joint.infinite_b):
        difference = math.inf if joint.infinite_a else -math.inf
    return MeanDifference(difference, -math.inf, math.inf, 1.0)


def _smallest_excluding(family: DifferenceIntervals) -> float:
    """Find the smallest alpha whose interval leaves out 0, by bisection of its logarithm."""

    def excludes(alpha: float) -> bool:
        low, high = family.limits(alpha)
        return bool(low > 0 or high < 0)

    if not excludes(1 - 1e-12):
        return 1.0
    if excludes(_SMALLEST_P):
        return _SMALLEST_P
    below, above = math.log(_SMALLEST_P), 0.0
    while above - below > 1e-11:
        middle = (below + above) / 2
        below, above = (below, middle) if excludes(math.exp(middle)) else (middle, above)
    return math.exp(above)


def compare_top_label(
    y_true: npt.ArrayLike,
    y_prob_a: npt.ArrayLike,
    y_prob_b: npt.ArrayLike,
    *,
    bins: BinsLike = 10,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> Comparison:
    """Compare the top-label calibration of two models of many classes on the same items.

    As `compare`, of `top_label_smece`. Each model is judged by the class it predicts, so the two
    may be judged by different classes of one item; the Brier score and the log loss of the result
    are those of the predicted class against all others.

    Parameters
    ----------
    y_true, bins, sample_weight, n_votes
        As in `classwise_reliability`.
    y_prob_a, y_prob_b : array-like of shape (items, classes)
        The predictions of both models.
    level : float
        Between 0 and 1.

    Examples
    --------
    >>> y = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]] * 100
    >>> sharp = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1]] * 100
    >>> found = compare_top_label(y, y, sharp)
    >>> round(found.difference, 3), found.high < 0
    (-0.25, True)
    """
    refuse_bad_level(level)
    binned = Bins.of(bins)
    refuse_many_bins(len(binned))
    inputs.refuse_misaligned(
        [(inputs.index_of(y_prob_a), "y_prob_a"), (inputs.index_of(y_prob_b), "y_prob_b")]
    )
    rows = [
        top_label_rows(class_rows(y_true, y_prob, sample_weight, n_votes))
        for y_prob in (y_prob_a, y_prob_b)
    ]
    return compare_tables(joined_rows(rows[0], rows[1], binned), level)
