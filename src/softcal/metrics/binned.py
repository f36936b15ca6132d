"""Binned metrics: SMECE, ECE, the largest gap, the root mean squared gap, and variants."""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from softcal._validation import inputs
from softcal._validation.rules import is_number
from softcal.bins import Bins
from softcal.exceptions import InputError, InputTypeError
from softcal.table.distinct import distinct
from softcal.table.reliability import (
    Reliability,
    checked_gaps,
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

    SMECE bins the predictions and averages the absolute gap between mean prediction and mean
    label, weighted by bin size. It is not SmoothECE (`smECE` in relplot), which is `smooth_ece`.

    \[ \mathrm{SMECE} = \sum_b \frac{n_b}{n} \bigl|\bar p_b - \bar y_b\bigr|
       = \frac1n \sum_b \Bigl|\sum_{i \in b} (p_i - y_i)\Bigr| . \]

    With labels of 0 and 1 it equals `ece` exactly. Empty bins add nothing. The value depends on
    the bins, so report the bins with it.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or Reliability
        Labels in [0, 1], as in `reliability`. A table may be passed as the only argument instead.
    y_prob : array-like of shape (n_samples,), optional
        Predicted probabilities in [0, 1]; required with labels.
    bins : int, Bins, or sequence of float, default=10
        A number of equal-width bins, `Bins`, or edges from 0 to 1.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.

    Returns
    -------
    float
        Between 0 and 1; exactly 0 if every label equals its prediction.

    Examples
    --------
    The gap is 0.05 in a bin of two rows and 0.1 in a bin of one row: (2 * 0.05 + 0.1) / 3.

    >>> round(smece([0.0, 0.5, 1.0], [0.2, 0.4, 0.9], bins=2), 4)
    0.0667
    >>> from softcal import reliability
    >>> round(smece(reliability([0.0, 0.5, 1.0], [0.2, 0.4, 0.9], bins=2)), 4)
    0.0667
    """
    found = rows_or_table("smece", y_true, y_prob, sample_weight=sample_weight, bins=bins)
    if isinstance(found, Reliability):
        return found.smece
    gaps = checked_gaps(found, Bins.of(10 if bins is None else bins))
    weight = found.y_prob.size if sample_weight is None else fsum(gaps[0].tolist())
    return smece_of(gaps[1], weight)


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
    y_true : array-like of shape (n_samples,) or Reliability
        Labels, which must be 0 or 1 unless a threshold is given. A table may be passed instead.
    y_prob : array-like of shape (n_samples,), optional
        Predicted probabilities in [0, 1]; required with labels.
    bins : int, Bins, or sequence of float, default=10
        A number of equal-width bins, `Bins`, or edges from 0 to 1.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.
    threshold : float, optional
        Harden the labels on purpose, as in `harden`. This discards information: a perfect model
        then has a positive ECE. A table supports a threshold of 0.5 only.

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
                f"ece of a Reliability takes threshold=0.5, because the table has sums of labels "
                f"hardened at 0.5 only: got {threshold!r:.60}. Pass the rows for another threshold."
            )
            raise InputError(message)
        return rel.hardened().smece
    if not rel.has_hard_labels:
        message = (
            "labels must be 0 or 1 for ece: the table has soft labels. Use smece, which accepts "
            "soft labels, or threshold=0.5 to harden them on purpose."
        )
        raise InputError(message)
    return rel.smece


def harden(y_true: npt.ArrayLike, threshold: float = 0.5) -> npt.NDArray[np.bool_]:
    r"""Convert probabilistic labels to outcomes, \([y_i > t]\), for a threshold t.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels in [0, 1].
    threshold : float, default=0.5
        At least 0 and below 1. A label equal to the threshold becomes False. A threshold of 1
        would make every label False, and is refused.

    Returns
    -------
    ndarray of bool
        True where the label is above the threshold.

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
    # A float64, so that labels of any dtype are compared with the same number.
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

    A bin of one row counts as much as any other, so check the counts as well.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or Reliability
        Labels in [0, 1]. A table may be passed as the only argument instead.
    y_prob : array-like of shape (n_samples,), optional
        Predicted probabilities in [0, 1]; required with labels.
    bins : int, Bins, or sequence of float, default=10
        A number of equal-width bins, `Bins`, or edges from 0 to 1.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.

    Returns
    -------
    float
        Between 0 and 1.

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
    r"""Compute the root mean squared gap, \(\sqrt{\sum_b (n_b/n) (\bar p_b - \bar y_b)^2}\).

    It is never below SMECE.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or Reliability
        Labels in [0, 1]. A table may be passed as the only argument instead.
    y_prob : array-like of shape (n_samples,), optional
        Predicted probabilities in [0, 1]; required with labels.
    bins : int, Bins, or sequence of float, default=10
        A number of equal-width bins, `Bins`, or edges from 0 to 1.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.

    Returns
    -------
    float
        Between 0 and 1.

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

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or Reliability
        Labels in [0, 1]. A table may be passed as the only argument instead.
    y_prob : array-like of shape (n_samples,), optional
        Predicted probabilities in [0, 1]; required with labels.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.

    Returns
    -------
    float
        Between -1 and 1; positive if the predictions are too high on average.

    Examples
    --------
    >>> round(bias([0.0, 0.5, 1.0], [0.2, 0.4, 0.9]), 4)
    0.0
    """
    return table_of("bias", y_true, y_prob, sample_weight=sample_weight, default_bins=1).bias


_ROUNDING = 1e-9
"""The share of a bin's squared weight below which the weight of its pairs is rounding error."""


def squared_gap_debiased(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    bins: BinsLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Estimate the mean squared gap of the bins without the bias from noise; may be negative.

    The square of `rms_gap` is too large on average, because noise adds to every squared gap.
    Excluding each row's product with itself removes this bias:

    \[ \frac1n \sum_b n_b \, \frac{\sum_{i \ne j \in b} d_i d_j}{n_b (n_b - 1)}
       = \frac1n \sum_b \frac{(\sum_{i \in b} d_i)^2 - \sum_{i \in b} d_i^2}{n_b - 1},
       \qquad d_i = p_i - y_i . \]

    The correction \(\bar y (1 - \bar y) / (n_b - 1)\) of Kumar, Liang, and Ma (Verified
    uncertainty calibration, NeurIPS 2019) is valid for labels of 0 and 1 only. This one is
    unbiased for soft labels and vote shares as well.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or Reliability
        Labels in [0, 1]. A table may be passed as the only argument instead.
    y_prob : array-like of shape (n_samples,), optional
        Predicted probabilities in [0, 1]; required with labels.
    bins : int, Bins, or sequence of float, default=10
        A number of equal-width bins, `Bins`, or edges from 0 to 1.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights. The products are then \(w_i w_j d_i d_j\), divided by the sum of
        \(w_i w_j\) over the same pairs.

    Returns
    -------
    float
        An estimate of a squared quantity that can itself be negative. For a calibrated model it is
        0 on average. A bin adds 0 if one row has all its weight, up to rounding.

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
    r"""Find the largest number of equal-mass bins whose mean labels are non-decreasing.

    Try 2, 3, 4, ... bins of equal mass, and stop before the first number of bins at which
    \(\bar y_{b+1} < \bar y_b\) for some bin. See Roelofs, Cain, Shlens, and Mozer, Mitigating bias
    in calibration error estimation, AISTATS 2022. Soft labels have less noise than 0/1 outcomes,
    and therefore allow more bins. Constant labels allow one bin per distinct prediction, up to
    `most`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels in [0, 1].
    y_prob : array-like of shape (n_samples,)
        Predicted probabilities in [0, 1].
    most : int, default=1000
        Largest number of bins. Labels without noise would allow one bin per row.

    Returns
    -------
    Bins
        `Bins.quantile(y_prob, b)` for the number b found; equal predictions share a bin. The
        ECE-sweep of the paper is `smece(y_true, y_prob, bins=sweep_bins(y_true, y_prob))`.

    Examples
    --------
    >>> sweep_bins([0.0, 0.3, 0.2, 0.9], [0.1, 0.4, 0.6, 0.8]).edges
    array([0. , 0.4, 0.6, 1. ])
    """
    upper = len(Bins.uniform(most))  # validates `most`
    pools = distinct(inputs.rows(y_true, y_prob))
    rows_before = np.append(0, pools.rows.cumsum())
    labels_before = np.append(0.0, pools.label.cumsum())
    found = 1
    most = min(upper, int(rows_before[-1]))
    while found < most and _increases(found + 1, rows_before, labels_before):
        found += 1
    return Bins.quantile(y_prob, found)


def _increases(n_bins: int, rows_before: npt.NDArray[np.int64], labels_before: FloatArray) -> bool:
    """Return whether the mean labels of n equal-mass bins are non-decreasing."""
    wanted = np.arange(1, n_bins) * rows_before[-1] // n_bins
    starts = rows_before.searchsorted(wanted, side="right") - 1
    # As in `Bins.quantile`, the first bin is not empty.
    bounds = np.unique(np.concatenate(([0], np.maximum(starts, 1), [rows_before.size - 1])))
    means = np.diff(labels_before[bounds]) / np.diff(rows_before[bounds])
    # Tolerance for the rounding of cumulative sums.
    return bool((np.diff(means) >= -1e-12).all())
