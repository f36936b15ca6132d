from __future__ import annotations

import subprocess
import sys

import pytest

import softcal as sc


def test_the_public_names() -> None:
    assert sorted(sc.__all__) == [
        "Assumptions",
        "Beta",
        "BinMismatchError",
        "Bins",
        "Comparison",
        "CorpCurve",
        "CumulativeTest",
        "DawidSkene",
        "DifferencePlan",
        "Dirichlet",
        "GapIntervals",
        "Histogram",
        "InputError",
        "InputTypeError",
        "Interval",
        "Isotonic",
        "JointTable",
        "Plan",
        "Platt",
        "Ranking",
        "Reliability",
        "ReliabilityBounds",
        "ReliabilityDisplay",
        "RepairPreview",
        "ScoreDecomposition",
        "SmeceBounds",
        "SoftCalibratedClassifier",
        "SoftLabelClassifier",
        "SoftcalError",
        "StreamingReliability",
        "Temperature",
        "TestResult",
        "VectorScaling",
        "Votes",
        "bias",
        "brier",
        "brier_without_vote_noise",
        "calibration_test",
        "classwise_reliability",
        "classwise_smece",
        "compare",
        "compare_many",
        "compare_tables",
        "compare_top_label",
        "consistency_band",
        "corp",
        "corp_from_table",
        "dawid_skene",
        "dist_ce",
        "ecce_mad",
        "ecce_mad_from_table",
        "ecce_range",
        "ecce_range_from_table",
        "ece",
        "ent_ce",
        "ent_ce_signed",
        "gap_intervals",
        "harden",
        "joint_table",
        "kl_divergence",
        "label_entropy",
        "load_calibrator",
        "log_loss",
        "log_loss_decomposition",
        "max_gap",
        "multiclass_brier",
        "multiclass_brier_without_vote_noise",
        "multiclass_kl_divergence",
        "multiclass_log_loss",
        "pilot_correlation",
        "plan",
        "plan_budget",
        "plan_difference",
        "rank_cs",
        "reliability",
        "reliability_bounds",
        "repair_preview",
        "rms_gap",
        "scan",
        "scan_by",
        "smece",
        "smece_bounds",
        "smece_interval",
        "smooth_ece",
        "smooth_ece_from_table",
        "squared_gap_debiased",
        "squared_gap_debiased_from_table",
        "sweep_bins",
        "top_label_reliability",
        "top_label_smece",
        "vote_noise_floor",
        "write_report",
        "write_top_label_report",
    ]
    for name in sc.__all__:
        assert hasattr(sc, name)
        assert name in dir(sc)
    with pytest.raises(AttributeError, match="no attribute 'smoothed'"):
        _ = sc.smoothed


def test_importing_and_a_small_call_load_numpy_alone() -> None:
    """In a fresh interpreter: no compiler, no engine, no plotting, no SciPy."""
    code = (
        "import sys, softcal; softcal.smece([0.5], [0.4]); "
        "print(*sorted({m.split('.')[0] for m in sys.modules}))"
    )
    loaded = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "numpy" in loaded
    heavy = {"numba", "scipy", "pandas", "polars", "pyarrow", "torch", "matplotlib", "narwhals",
             "sklearn", "typer", "rich"}  # fmt: skip
    assert not heavy & set(loaded)
