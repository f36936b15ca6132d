"""softcal: calibration of probabilistic predictions when the label is itself a probability."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from softcal.bins import Bins
from softcal.errors import BinMismatchError, InputError, InputTypeError, SoftcalError
from softcal.extras import naming_the_extra
from softcal.metrics import (
    bias,
    brier,
    ece,
    harden,
    kl_divergence,
    label_entropy,
    log_loss,
    max_gap,
    rms_gap,
    smece,
)
from softcal.reliability import Reliability, reliability
from softcal.streaming import StreamingReliability
from softcal.votes import Votes

if TYPE_CHECKING:
    from softcal.calibrated_classifier import SoftCalibratedClassifier
    from softcal.calibrators import (
        Beta,
        Dirichlet,
        Histogram,
        Isotonic,
        Platt,
        Temperature,
        VectorScaling,
    )
    from softcal.chance import TestResult, calibration_test, consistency_band
    from softcal.class_scores import (
        dist_ce,
        ent_ce,
        ent_ce_signed,
        multiclass_brier,
        multiclass_kl_divergence,
        multiclass_log_loss,
        rank_cs,
    )
    from softcal.comparison import Comparison, Ranking, compare, compare_many, compare_tables
    from softcal.cumulative import (
        CumulativeTest,
        ecce_mad,
        ecce_mad_from_table,
        ecce_range,
        ecce_range_from_table,
    )
    from softcal.decomposition import (
        CorpCurve,
        ScoreDecomposition,
        corp,
        corp_from_table,
        log_loss_decomposition,
    )
    from softcal.imprecise import (
        ReliabilityBounds,
        SmeceBounds,
        reliability_bounds,
        smece_bounds,
    )
    from softcal.inference import GapIntervals, Interval, gap_intervals, smece_interval
    from softcal.joint import JointTable, joint_table
    from softcal.maps.saved import load_calibrator
    from softcal.multiclass import (
        classwise_reliability,
        classwise_smece,
        top_label_reliability,
        top_label_smece,
    )
    from softcal.planning import (
        Assumptions,
        DifferencePlan,
        Plan,
        pilot_correlation,
        plan,
        plan_budget,
        plan_difference,
    )
    from softcal.plot import ReliabilityDisplay
    from softcal.repair import RepairPreview, repair_preview
    from softcal.report import write_report, write_top_label_report
    from softcal.scanning import scan, scan_by
    from softcal.smooth import smooth_ece, smooth_ece_from_table
    from softcal.soft_classifier import SoftLabelClassifier
    from softcal.squared_gap import squared_gap_debiased, squared_gap_debiased_from_table
    from softcal.sweep import sweep_bins
    from softcal.top_label_comparison import compare_top_label
    from softcal.vote_noise import (
        brier_without_vote_noise,
        multiclass_brier_without_vote_noise,
        vote_noise_floor,
    )
    from softcal.worker_skill import DawidSkene, dawid_skene

__version__ = "0.1.0"

# Loaded when first asked for: they import scipy, and `import softcal` should cost little.
_LATER = {
    name: f"softcal.{module}"
    for module, names in {
        "calibrated_classifier": ("SoftCalibratedClassifier",),
        "calibrators": (
            "Beta",
            "Dirichlet",
            "Histogram",
            "Isotonic",
            "Platt",
            "Temperature",
            "VectorScaling",
        ),
        "chance": ("TestResult", "calibration_test", "consistency_band"),
        "class_scores": (
            "dist_ce",
            "ent_ce",
            "ent_ce_signed",
            "multiclass_brier",
            "multiclass_kl_divergence",
            "multiclass_log_loss",
            "rank_cs",
        ),
        "multiclass": (
            "classwise_reliability",
            "classwise_smece",
            "top_label_reliability",
            "top_label_smece",
        ),
        "vote_noise": (
            "brier_without_vote_noise",
            "multiclass_brier_without_vote_noise",
            "vote_noise_floor",
        ),
        "worker_skill": ("DawidSkene", "dawid_skene"),
        "comparison": ("Comparison", "Ranking", "compare", "compare_many", "compare_tables"),
        "cumulative": (
            "CumulativeTest",
            "ecce_mad",
            "ecce_mad_from_table",
            "ecce_range",
            "ecce_range_from_table",
        ),
        "decomposition": (
            "CorpCurve",
            "ScoreDecomposition",
            "corp",
            "corp_from_table",
            "log_loss_decomposition",
        ),
        "imprecise": (
            "ReliabilityBounds",
            "SmeceBounds",
            "reliability_bounds",
            "smece_bounds",
        ),
        "inference": ("GapIntervals", "Interval", "gap_intervals", "smece_interval"),
        "joint": ("JointTable", "joint_table"),
        "maps.saved": ("load_calibrator",),
        "scanning": ("scan", "scan_by"),
        "top_label_comparison": ("compare_top_label",),
        "planning": (
            "Assumptions",
            "DifferencePlan",
            "Plan",
            "pilot_correlation",
            "plan",
            "plan_budget",
            "plan_difference",
        ),
        "plot": ("ReliabilityDisplay",),
        "repair": ("RepairPreview", "repair_preview"),
        "report": ("write_report", "write_top_label_report"),
        "soft_classifier": ("SoftLabelClassifier",),
        "smooth": ("smooth_ece", "smooth_ece_from_table"),
        "squared_gap": ("squared_gap_debiased", "squared_gap_debiased_from_table"),
        "sweep": ("sweep_bins",),
    }.items()
    for name in names
}


def __getattr__(name: str) -> Any:
    """Load a name of `_LATER` when it is first used."""
    if name not in _LATER:
        message = f"module 'softcal' has no attribute {name!r}"
        raise AttributeError(message)
    with naming_the_extra():
        return getattr(import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
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
