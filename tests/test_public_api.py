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
    ]
    for name in sc.__all__:
        assert hasattr(sc, name)
        assert name in dir(sc)
    with pytest.raises(AttributeError, match="no attribute 'smoothed'"):
        _ = sc.smoothed


HEAVY = {"numba", "scipy", "pandas", "polars", "pyarrow", "torch", "matplotlib", "narwhals",
         "sklearn", "altair", "jinja2"}  # fmt: skip


def loaded_by(code: str) -> set[str]:
    """Run code in a fresh interpreter and say what it has loaded at its end."""
    at_the_end = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('\\n', *{m.partition('.')[0] for m in sys.modules}))\n"
    )
    shown = subprocess.run(  # noqa: S603
        [sys.executable, "-c", at_the_end + code], capture_output=True, text=True, check=True
    ).stdout
    return set(shown.splitlines()[-1].split())


def test_importing_and_a_small_call_load_numpy_alone() -> None:
    loaded = loaded_by("import softcal; softcal.smece([0.5], [0.4])")
    assert "numpy" in loaded
    assert not loaded & {*HEAVY, "typer", "rich"}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["score", "--help"]])
def test_help_is_shown_without_loading_what_only_a_command_needs(arguments: list[str]) -> None:
    loaded = loaded_by(
        f"sys.argv = ['softcal', *{arguments!r}]; from softcal.__main__ import main; main()"
    )
    assert "typer" in loaded
    assert not loaded & {*HEAVY, "numpy"}
