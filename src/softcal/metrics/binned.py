"""Binned metrics: SMECE, ECE, the largest and the root mean squared gap, and their variants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from softcal._validation import inputs
from softcal._validation.rules import is_number
from softcal.bins import Bins
from softcal.exceptions import InputError, InputTypeError
from softcal.table.distinct import distinct
from softcal.table.kernel import SUM_NAMES
from softcal.table.reliability import (
    Reliability,
    checked_totals,
    from_rows,
    refuse_no_rows,
    rows_or_table,
    smece_of,
    table_of,
)

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray
    from softcal.bins import BinsLike


def smece(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    bins: BinsLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Compute SMECE, the soft mean expected calibration error of probabilistic labels.

    Not SmoothECE (`smECE` in relplot): this is the binned error against soft labels,

    \[ \mathrm{SMECE} = \sum_b \frac{n_b}{n} \bigl|\bar p_b - \bar y_b\bigr|
       = \frac1n \sum_b \Bigl|\sum_{i \in b} (p_i - y_i)\Bigr| . \]

    With labels 0 and 1 it is exactly `ece`. Empty bins add nothing. The value depends on the
    bins: report them with it.

    Parameters
    ----------
    y_true : array-like or Reliability
        Labels as in `reliability`, or a table, which is then the only argument.
    y_prob, sample_weight
        As in `reliability`.
    bins : int, Bins or edges, default 10
        As in `reliability`.

    Returns
    -------
    float
        Between 0 and 1; exactly 0 when every label equals its prediction.

    Examples
    --------
    Gaps of 0.05 in a bin of two rows and of 0.1 in a bin of one: (2 * 0.05 + 0.1) / 3.

    >>> round(smece([0.0, 0.5, 1.0], [0.2, 0.4, 0.9], bins=2), 4)
    0.0667
    >>> from softcal import reliability
    >>> round(smece(reliability([0.0, 0.5, 1.0], [0.2, 0.4, 0.9], bins=2)), 4)
    0.0667
    """
    found = rows_or_table("smece", y_true, y_prob, sample_weight=sample_weight, bins=bins)
    if isinstance(found, Reliability):
        return found.smece
    sums = checked_totals(found, Bins.of(10 if bins is None else bins))
    return smece_of(sums[_RESIDUAL], sums[_WEIGHT])


_RESIDUAL, _WEIGHT = map(SUM_NAMES.index, ("residual", "weight"))


def ece(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    bins: BinsLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    threshold: float | None = None,
) -> float:
    r"""Compute ECE, the expected calibration error of outcomes that are 0 or 1.

    \[ \mathrm{ECE} = \sum_b \frac{n_b}{n} \bigl|\bar p_b - \bar y_b\bigr|,
       \qquad y_i \in \{0, 1\} \]

    Parameters
    ----------
    y_true, y_prob, bins, sample_weight
        As in `smece`; the labels must be 0 or 1, unless a threshold is given.
    threshold : float, optional
        Harden the labels on purpose, as in `harden`. This discards what the labels know, and the
        perfect model then has an ECE above 0. A Reliability keeps sums for a threshold of 0.5 only.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    InputError
        If a label is neither 0 nor 1 and no threshold is given.

    Examples
    --------
    >>> round(ece([0, 1, 1], [0.2, 0.4, 0.9], bins=2), 4)
    0.1667
    >>> ece([0.2, 0.4, 0.9], [0.2, 0.4, 0.9])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    softcal.exceptions.InputError: y_true must be 0 or 1 for ece: 3 of 3 values are not, ...
    """
    found = rows_or_table("ece", y_true, y_prob, sample_weight=sample_weight, bins=bins)
    if isinstance(found, Reliability):
        return _ece_of_table(found, threshold)
    if threshold is not None:
        found = found._replace(y_true=harden(found.y_true, threshold))
    rel = from_rows(found, Bins.of(10 if bins is None else bins))
    if not rel.has_hard_labels:
        inputs.refuse_soft_labels(found)
    return rel.smece


def _ece_of_table(rel: Reliability, threshold: float | None) -> float:
    if threshold is not None:
        if threshold != 0.5:
            message = (
                f"ece of a Reliability takes threshold=0.5, because the table keeps sums of labels "
                f"hardened at 0.5 only: got {threshold!r:.60}. Pass the rows for another threshold."
            )
            raise InputError(message)
        return rel.hardened().smece
    if not rel.has_hard_labels:
        message = (
            "labels must be 0 or 1 for ece: the table has soft labels. Use smece, which takes soft "
            "labels, or threshold=0.5 to harden them on purpose."
        )
        raise InputError(message)
    return rel.smece


def harden(y_true: npt.ArrayLike, threshold: float = 0.5) -> npt.NDArray[np.bool_]:
    """Turn probabilistic labels into outcomes: True where the label is above the threshold.

    Parameters
    ----------
    y_true : array-like
        Labels between 0 and 1.
    threshold : float, default 0.5
        At least 0 and below 1. A label equal to the threshold becomes False, so a threshold of 1
        would make every label False; it is refused.

    Examples
    --------
    >>> harden([0.2, 0.5, 0.9])
    array([False, False,  True])
    """
    if not is_number(threshold):
        message = f"threshold must be a number: got {threshold!r:.60}."
        raise InputTypeError(message)
    if not 0 <= threshold < 1:
        message = (
            f"threshold must be at least 0 and below 1, because True means above it: got "
            f"{threshold!r}."
        )
        raise InputError(message)
    # As a float64, so that labels of any dtype are compared with the same number.
    hard: npt.NDArray[np.bool_] = inputs.probabilities(y_true, "y_true") > np.float64(threshold)
    return hard


def max_gap(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    bins: BinsLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Compute the largest absolute gap of any bin (MCE), \(\max_b |\bar p_b - \bar y_b|\).

    Parameters are those of `smece`. A bin of one row counts as much as any other, so look at the
    counts too.

    Examples
    --------
    >>> round(max_gap([0.0, 0.5, 1.0], [0.2, 0.4, 0.9], bins=2), 4)
    0.1
    """
    return table_of("max_gap", y_true, y_prob, bins=bins, sample_weight=sample_weight).max_gap


def rms_gap(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    bins: BinsLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Compute the root mean square gap, \(\sqrt{\sum_b (n_b/n) (\bar p_b - \bar y_b)^2}\).

    Parameters are those of `smece`. Never below SMECE.

    Examples
    --------
    >>> round(rms_gap([0.0, 0.5, 1.0], [0.2, 0.4, 0.9], bins=2), 4)
    0.0707
    """
    return table_of("rms_gap", y_true, y_prob, bins=bins, sample_weight=sample_weight).rms_gap


def bias(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Compute the mean prediction minus the mean label, \(\bar p - \bar y\), without bins.

    Parameters are those of `smece`. Above 0 the predictions are too high overall.

    Examples
    --------
    >>> round(bias([0.0, 0.5, 1.0], [0.2, 0.4, 0.9]), 4)
    0.0
    """
    return table_of("bias", y_true, y_prob, sample_weight=sample_weight, default_bins=1).bias


_ROUNDING = 1e-9
"""Of what a bin weighs: where all pairs of its rows weigh less, they are but rounding."""


def squared_gap_debiased(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    bins: BinsLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Estimate the mean squared gap of the bins without the bias from noise; may be below 0.

    The square of `rms_gap` is too large on average, since a gap that is nothing but chance has a
    square too. Leaving each row's product with itself out of the square leaves no bias:

    \[ \frac1n \sum_b n_b \, \frac{\sum_{i \ne j \in b} d_i d_j}{n_b (n_b - 1)}
       = \frac1n \sum_b \frac{(\sum_{i \in b} d_i)^2 - \sum_{i \in b} d_i^2}{n_b - 1},
       \qquad d_i = p_i - y_i . \]

    Unlike the correction \(\bar y (1 - \bar y) / (n_b - 1)\) of Kumar, Liang and Ma (Verified
    uncertainty calibration, NeurIPS 2019), which is right for labels of 0 and 1, this one is
    unbiased for soft labels and vote shares as well.

    Parameters
    ----------
    y_true, y_prob, bins, sample_weight
        As in `smece`. Weighted rows bring \(w_i w_j d_i d_j\), divided by the sum of
        \(w_i w_j\) over the same pairs.

    Returns
    -------
    float
        An estimate of a square, but itself no square: about 0 for a calibrated model, and then as
        often below as above. A bin of one row, or in which one has all the weight but for
        rounding, says nothing of its gap, and adds 0.

    Examples
    --------
    >>> round(squared_gap_debiased([0.0, 0.5, 1.0], [0.2, 0.4, 0.9], bins=2), 4)
    -0.0133
    """
    rel = table_of("squared_gap_debiased", y_true, y_prob, bins=bins, sample_weight=sample_weight)
    refuse_no_rows(rel)
    s = rel.sums
    pairs = s.weight**2 - s.weight_sq
    several = pairs > _ROUNDING * s.weight**2
    products = s.residual[several] ** 2 - s.residual_var[several]
    return float((s.weight[several] * products / pairs[several]).sum() / s.weight.sum())


def sweep_bins(y_true: npt.ArrayLike, y_prob: npt.ArrayLike, *, most: int = 1000) -> Bins:
    r"""Find the largest number of equal-mass bins whose mean labels never fall.

    Try 2, 3, 4, ... bins of equal mass, and stop before the first number of bins at which a mean
    label is below that of the bin before (Roelofs, Cain, Shlens and Mozer, Mitigating bias in
    calibration error estimation, AISTATS 2022). Equal means count as not falling. Soft labels have
    less noise than 0/1 outcomes, and so get more bins. Constant labels never fall: they get one
    bin per distinct prediction, up to `most`, because labels without noise need no averaging.

    Parameters
    ----------
    y_true, y_prob
        As in `reliability`.
    most : int, default 1000
        Largest number of bins. Labels without noise would have one bin per row.

    Returns
    -------
    Bins
        `Bins.quantile(y_prob, b)` for the b found; equal predictions share a bin. The ECE-sweep of
        the paper is `smece(y_true, y_prob, bins=sweep_bins(y_true, y_prob))`.

    Examples
    --------
    >>> sweep_bins([0.0, 0.3, 0.2, 0.9], [0.1, 0.4, 0.6, 0.8]).edges
    array([0. , 0.4, 0.6, 1. ])
    """
    upper = len(Bins.uniform(most))  # refuses what is no number of bins
    pools = distinct(inputs.rows(y_true, y_prob))
    rows_before = np.append(0, pools.rows.cumsum())
    labels_before = np.append(0.0, pools.label.cumsum())
    found = 1
    most = min(upper, int(rows_before[-1]))
    while found < most and _rises(found + 1, rows_before, labels_before):
        found += 1
    return Bins.quantile(y_prob, found)


def _rises(n_bins: int, rows_before: npt.NDArray[np.int64], labels_before: FloatArray) -> bool:
    """Whether the mean labels of n equal-mass bins never fall. Bins start at a pool each."""
    wanted = np.arange(1, n_bins) * rows_before[-1] // n_bins
    starts = rows_before.searchsorted(wanted, side="right") - 1
    # As `Bins.quantile`: no bin is left empty at the bottom.
    bounds = np.unique(np.concatenate(([0], np.maximum(starts, 1), [rows_before.size - 1])))
    means = np.diff(labels_before[bounds]) / np.diff(rows_before[bounds])
    # Cumulative sums round: equal means may seem to fall by that much.
    return bool((np.diff(means) >= -1e-12).all())
