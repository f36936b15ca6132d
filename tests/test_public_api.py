from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import softcal as sc

if TYPE_CHECKING:
    from types import ModuleType


def test_public_names() -> None:
    assert sorted(sc.__all__) == [
        "BinMismatchError",
        "Bins",
        "Bounds",
        "Classes",
        "Column",
        "Counts",
        "Cut",
        "Days",
        "Files",
        "InputError",
        "InputTypeError",
        "JointTable",
        "Long",
        "RawVotes",
        "Reliability",
        "ReliabilityBounds",
        "ReliabilityDisplay",
        "Route",
        "RouteOptions",
        "ScoreCard",
        "Shares",
        "SoftcalError",
        "SoftcalWarning",
        "TableSet",
        "Votes",
        "Watch",
        "assert_calibrated",
        "audit",
        "bias",
        "brier",
        "brier_without_vote_noise",
        "calibration_error_bound",
        "calibration_summary",
        "calibration_test",
        "calibrators",
        "check",
        "classwise_reliability",
        "classwise_smece",
        "compare",
        "compare_many",
        "consistency_band",
        "corp",
        "crowd",
        "cumulative_reliability",
        "cumulative_smece",
        "cumulative_smece_interval",
        "datasets",
        "dawid_skene",
        "decision",
        "dist_ce",
        "ecce_mad",
        "ecce_range",
        "ece",
        "ent_ce",
        "ent_ce_signed",
        "gap_intervals",
        "harden",
        "inference",
        "kde_ece",
        "kl_divergence",
        "label_entropy",
        "load",
        "log_loss",
        "log_loss_decomposition",
        "manhattan",
        "max_gap",
        "metrics",
        "net_benefit",
        "net_benefit_difference",
        "new_group",
        "new_group_interval",
        "planning",
        "rank_cs",
        "ranked_probability_score",
        "rater_difference",
        "reliability",
        "reliability_bounds",
        "reliability_by_rater",
        "rms_gap",
        "route",
        "scan",
        "score",
        "score_interval",
        "smece",
        "smece_bounds",
        "smece_interval",
        "smooth_ece",
        "sql_query",
        "squared_gap_debiased",
        "sweep_bins",
        "tables_from_query",
        "top_label_reliability",
        "top_label_smece",
        "vote_noise_floor",
        "wasserstein",
        "write_report",
    ]
    for name in sc.__all__:
        assert hasattr(sc, name)
        assert name in dir(sc)
    with pytest.raises(AttributeError, match="No softcal attribute smoothed"):
        _ = sc.smoothed  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("package", "names"),
    [
        (
            sc.calibrators,
            [
                "BetaCalibrator",
                "CalibrationMap",
                "DirichletCalibrator",
                "HistogramCalibrator",
                "IsotonicCalibrator",
                "PlattCalibrator",
                "RepairPreview",
                "SoftCalibratedClassifier",
                "SoftLabelClassifier",
                "TemperatureCalibrator",
                "Trial",
                "VectorScalingCalibrator",
                "load_calibrator",
                "repair_preview",
            ],
        ),
        (
            sc.inference,
            [
                "Audit",
                "CalibrationSummary",
                "Check",
                "Comparison",
                "Estimate",
                "Explained",
                "GapIntervals",
                "Interval",
                "MeanDifference",
                "NewGroup",
                "NewGroupCalibration",
                "Pair",
                "Ranking",
                "RaterDifference",
                "ScoreInterval",
                "Segment",
                "StreamState",
                "TestResult",
                "WatchState",
            ],
        ),
        (sc.metrics, ["CorpCurve", "CumulativeTest", "ScoreDecomposition", "SmeceBounds"]),
        (
            sc.planning,
            [
                "Assumptions",
                "DifferencePlan",
                "Plan",
                "pilot_correlation",
                "plan",
                "plan_budget",
                "plan_difference",
            ],
        ),
    ],
)
def test_public_names_of_packages(package: ModuleType, names: list[str]) -> None:
    assert sorted(package.__all__) == names
    for name in names:
        assert hasattr(package, name)


def test_dir_shows_public_names_only() -> None:
    sc.smece([0.5], [0.4])  # loads private modules
    assert dir(sc) == sorted(sc.__all__)
    for package in (sc.calibrators, sc.inference, sc.metrics, sc.planning):
        assert dir(package) == sorted(package.__all__)


def test_a_saved_calibrator_is_loaded_without_scikit_learn() -> None:
    saved = {
        "format": "softcal.calibrator", "schema": 2, "method": "temperature",
        "parameters": {"temperature": 2.0, "input": {"kind": "logits"}},
    }  # fmt: skip
    code = f"import softcal; softcal.calibrators.load_calibrator({saved!r}).predict([1.0])"
    assert "sklearn" not in loaded_by(code)


HEAVY = {"scipy", "pandas", "polars", "pyarrow", "torch", "matplotlib", "narwhals",
         "sklearn", "altair", "jinja2"}  # fmt: skip


def loaded_by(code: str) -> set[str]:
    """Run code in a new interpreter and return the modules it has loaded at the end."""
    at_the_end = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('\\n', *{m.partition('.')[0] for m in sys.modules}))\n"
    )
    shown = subprocess.run(  # noqa: S603
        [sys.executable, "-c", at_the_end + code], capture_output=True, text=True, check=True
    ).stdout
    return set(shown.splitlines()[-1].split())


def test_import_and_small_call_load_only_numpy() -> None:
    loaded = loaded_by("import softcal; softcal.smece([0.5], [0.4])")
    assert "numpy" in loaded
    assert not loaded & {*HEAVY, "typer", "rich"}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["score", "--help"]])
def test_help_does_not_import_heavy_modules(arguments: list[str]) -> None:
    loaded = loaded_by(
        f"sys.argv = ['softcal', *{arguments!r}]; from softcal.__main__ import main; main()"
    )
    assert "typer" in loaded
    assert not loaded & {*HEAVY, "numpy"}
