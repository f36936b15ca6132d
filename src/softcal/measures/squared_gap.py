"""The mean squared gap, freed of what chance adds to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softcal.table.reliability import Reliability, refuse_no_rows, reliability

if TYPE_CHECKING:
    import numpy.typing as npt

    from softcal.table.bins import BinsLike

_ROUNDING = 1e-9
"""Of what a bin weighs: where all pairs of its rows weigh less, they are but rounding."""


def squared_gap_debiased(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    *,
    bins: BinsLike = 10,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Mean squared gap of the bins, without the bias that chance brings; below 0 at times.

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
        As in `reliability`. Weighted rows bring \(w_i w_j d_i d_j\), divided by the sum of
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
    return squared_gap_debiased_from_table(
        reliability(y_true, y_prob, bins=bins, sample_weight=sample_weight)
    )


def squared_gap_debiased_from_table(rel: Reliability) -> float:
    """Mean squared gap without the bias of chance, of a table; exactly `squared_gap_debiased`.

    Examples
    --------
    >>> rel = reliability([0.0, 0.5, 1.0], [0.2, 0.4, 0.9], bins=2)
    >>> round(squared_gap_debiased_from_table(rel), 4)
    -0.0133
    """
    refuse_no_rows(rel)
    s = rel.sums
    pairs = s.weight**2 - s.weight_sq
    several = pairs > _ROUNDING * s.weight**2
    products = s.residual[several] ** 2 - s.residual_var[several]
    return float((s.weight[several] * products / pairs[several]).sum() / s.weight.sum())
