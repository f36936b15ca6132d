r"""Which of two models is better calibrated? Differences on the same rows, with intervals.

Rows are shared, so errors are: what one model's SMECE owes to chance, the other's owes too. The
joint table keeps what that needs, and everything here is arithmetic on it, with no resampling.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit

from softcal.door import inputs
from softcal.door.inputs import Names
from softcal.errors import InputError, InputTypeError
from softcal.inference.gaps import Gaps, kept
from softcal.inference.intervals import debiased, refuse_bad_level
from softcal.inference.joint import (
    JointTable,
    PairedSums,
    joined_rows,
    joint_table,
    refuse_many_bins,
)
from softcal.inference.paired_interval import DifferenceIntervals
from softcal.table.bins import Bins
from softcal.table.reliability import from_rows

if TYPE_CHECKING:
    from softcal.table.bins import BinsLike

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
        (a, b, compare_tables(joined_rows(rows[a], tables[a], rows[b], tables[b], group), level))
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
