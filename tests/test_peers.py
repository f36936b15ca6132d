"""Peers agree with softcal on 0/1 labels, except for their known bugs, which softcal avoids.

The numbers in comments are measured results of the peers. Wrong results of installed peers are
asserted too, so that a test fails when a peer is fixed.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import calibration_curve

import softcal as sc

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import relplot
    import torch
    from netcal.metrics import ECE
    from torchmetrics.functional.classification import binary_calibration_error

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray


def torchmetrics_ece(y: FloatArray, p: FloatArray, bins: int = 10, norm: Any = "l1") -> float:
    return float(
        binary_calibration_error(
            torch.as_tensor(p), torch.as_tensor(np.asarray(y, dtype=int)), n_bins=bins, norm=norm
        )
    )


@pytest.fixture
def outcomes(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return 0/1 labels and predictions off the edges, where all binning rules agree."""
    p = rng.random(4000)
    return (rng.random(4000) < p**1.5).astype(float), p


@pytest.mark.parametrize("bins", [1, 5, 10, 15, 50])
def test_ece_equals_peers(outcomes: tuple[FloatArray, FloatArray], bins: int) -> None:
    y, p = outcomes
    ours = sc.ece(y, p, bins=bins)
    assert ours == pytest.approx(relplot.metrics.binnedECE(p, y, bins), abs=1e-13)
    assert ours == pytest.approx(torchmetrics_ece(y, p, bins), abs=1e-13)
    assert ours == pytest.approx(ECE(bins).measure(p, y), abs=1e-13)


def test_other_norms_equal_torchmetrics(outcomes: tuple[FloatArray, FloatArray]) -> None:
    y, p = outcomes
    assert sc.max_gap(y, p) == pytest.approx(torchmetrics_ece(y, p, norm="max"), abs=1e-13)
    assert sc.rms_gap(y, p) == pytest.approx(torchmetrics_ece(y, p, norm="l2"), abs=1e-13)


def test_bin_means_equal_scikit_learns_curve(outcomes: tuple[FloatArray, FloatArray]) -> None:
    y, p = outcomes
    rel = sc.reliability(y, p)
    mean_label, mean_prob = calibration_curve(y, p, n_bins=10)
    np.testing.assert_allclose(rel.mean_label, mean_label, rtol=1e-13)
    np.testing.assert_allclose(rel.mean_prob, mean_prob, rtol=1e-13)


# Soft labels


def test_soft_labels_are_not_hardened(peers_data: tuple[FloatArray, FloatArray]) -> None:
    """1, 3, 4: probmetrics returns 0.0368; calzone, kyle, and smartcal 0.498; uq360 0.963."""
    y, p = peers_data
    assert sc.smece(y, p) == pytest.approx(0.0770806465429, abs=1e-13)


def test_soft_labels_are_not_taken_for_classes(peers_data: tuple[FloatArray, FloatArray]) -> None:
    """2: netcal treats more than two label values as classes."""
    y, p = peers_data
    assert float(ECE(10).measure(p, y)) == pytest.approx(0.49798, abs=1e-5)
    with pytest.raises(sc.InputError, match="must be one column"):
        sc.smece(np.c_[1 - y, y], np.c_[1 - p, p])  # netcal: 0.9632


def test_two_soft_values_are_not_taken_for_zero_and_one(rng: np.random.Generator) -> None:
    """8: scikit-learn turns labels 0.2 and 0.8 into 0 and 1 if pos_label is given."""
    p = rng.random(500)
    y = np.where(rng.random(500) < p, 0.8, 0.2)
    wrong, _ = calibration_curve(y, p, n_bins=1, pos_label=0.8)
    assert wrong[0] == pytest.approx(np.mean(y == 0.8))
    assert sc.reliability(y, p, bins=1).mean_label[0] == pytest.approx(y.mean(), rel=1e-14)
    half = sc.reliability(np.full(500, 0.5), p, bins=1)
    assert half.mean_label[0] == 0.5  # scikit-learn, pos_label=1: 0


# Outcomes


@pytest.mark.parametrize("bad", [1 + 1e-7, np.nan])
def test_one_bad_prediction_does_not_change_the_others(
    outcomes: tuple[FloatArray, FloatArray], bad: float
) -> None:
    """9: torchmetrics treats all values as logits if one is above 1 or NaN."""
    y, p = outcomes
    p = p.copy()
    right = sc.ece(y, p)
    p[7] = bad
    assert abs(torchmetrics_ece(y, p) - right) > 0.1
    with pytest.raises(sc.InputError, match=r"y_prob\[7\] = 1.0000001|at position 7"):
        sc.ece(y, p)


def test_counts_do_not_saturate_at_2_to_the_24() -> None:
    """10: float32 counters saturate at 16,777,216 per bin (torchmetrics, MONAI: 0.2612)."""
    n, rare = 20_000_000, 500_000
    p = np.full(n, 0.31, dtype=np.float32)
    y = np.zeros(n, dtype=np.float32)
    y[: round(0.31 * (n - rare))] = 1
    p[n - rare :] = 0.95
    rel = sc.reliability(y, p)
    assert rel.count.tolist() == [0, 0, 0, n - rare, 0, 0, 0, 0, 0, rare]
    expected = rare / n * float(np.float32(0.95))
    assert rel.smece == pytest.approx(expected, abs=1e-8)


def test_a_prediction_of_one_has_no_bin_of_its_own() -> None:
    """11: torchmetrics, torch-uncertainty, and relplot return 0.125."""
    p = np.array([1.0] * 50 + [0.95] * 50)
    y = np.array([1.0] * 40 + [0.0] * 10 + [1.0] * 50)
    assert relplot.metrics.binnedECE(p, y, 10) == pytest.approx(0.125)
    assert torchmetrics_ece(y, p) == pytest.approx(0.125)
    assert sc.ece(y, p) == pytest.approx(0.075)


def test_a_prediction_of_zero_has_no_bin_of_its_own_and_is_not_dropped() -> None:
    """12: calzone drops it (0.050), MAPIE puts it in a bin of its own (0.125)."""
    p = np.array([0.0] * 50 + [0.05] * 50)
    y = np.array([1.0] * 10 + [0.0] * 40 + [0.0] * 50)
    assert sc.ece(y, p) == pytest.approx(0.075)
    assert sc.reliability(y, p).count[0] == 100


def test_ten_bins_give_ten_counts() -> None:
    """13: MAPIE makes nine bins for num_bins=10."""
    assert sc.reliability([1], [0.5], bins=10).count.size == 10


def test_input_labels_are_not_modified() -> None:
    """13: MAPIE overwrites labels {1, 2} in place; softcal refuses them."""
    y = np.array([1, 2, 1])
    with pytest.raises(sc.InputError, match="y_true must be in"):
        sc.ece(y, [0.1, 0.2, 0.3])
    assert y.tolist() == [1, 2, 1]


def test_missing_labels_and_predictions_are_refused(
    outcomes: tuple[FloatArray, FloatArray],
) -> None:
    """14: probmetrics, calzone, MCGrad skip a NaN label; netcal and MAPIE a NaN prediction."""
    y, p = outcomes
    for column in (0, 1):
        data = [y.copy(), p.copy()]
        data[column][3] = np.nan
        with pytest.raises(sc.InputError, match="missing values: 1 of 4000"):
            sc.ece(*data)


@pytest.mark.parametrize("bad", [1.2, -0.1])
def test_predictions_outside_the_range_are_not_clipped(bad: float) -> None:
    """15: nine peers clip, drop, or accept them."""
    with pytest.raises(sc.InputError, match="y_prob must be in"):
        sc.ece([0, 1], [0.5, bad])


def test_labels_of_minus_1_are_refused() -> None:
    """16: six peers return 0.462 for labels -1 and 1."""
    with pytest.raises(sc.InputError, match=r"-1/\+1 labels, use \(y_true \+ 1\) / 2"):
        sc.ece([-1, 1], [0.2, 0.9])


def test_pandas_rows_are_not_silently_realigned(outcomes: tuple[FloatArray, FloatArray]) -> None:
    """17: relplot and MCGrad align by index (0.438 instead of 0.088)."""
    y, p = outcomes
    shuffled = pd.Series(p, index=np.arange(p.size)[::-1])
    with pytest.raises(sc.InputError, match="same pandas index"):
        sc.ece(pd.Series(y), shuffled)


def test_a_single_label_is_not_broadcast() -> None:
    """17: relplot and calzone broadcast a label of length 1."""
    with pytest.raises(sc.InputError, match="same length"):
        sc.ece([1], [0.2, 0.9])


def test_decimals_on_edges_go_to_the_upper_bin() -> None:
    """19: linspace puts 0.3, 0.6, and 0.7 one bin too low in relplot, netcal, and others."""
    p = np.arange(11) / 10
    assert sc.reliability(np.zeros(11), p).count.tolist() == [1] * 9 + [2]
    counts, _ = np.histogram(p, bins=np.linspace(0, 1, 11))
    assert counts.tolist() != [1] * 9 + [2]


def test_the_table_has_counts() -> None:
    """20: scikit-learn's curve returns no counts."""
    p = np.array([0.05, 0.1, 0.15, 0.2])
    rel = sc.reliability([0, 1, 0, 1], p)
    assert rel.count.sum() == 4
    assert rel.count[:3].tolist() == [1, 2, 1]
