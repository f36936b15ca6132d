"""softcal: calibration of probabilistic predictions when the label is itself a probability."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from softcal.errors import BinMismatchError, InputError, InputTypeError, SoftcalError
from softcal.extras import naming_the_extra

if TYPE_CHECKING:
    from softcal.door.votes import Votes
    from softcal.inference.chance import TestResult, calibration_test, consistency_band
    from softcal.inference.comparison import (
        Comparison,
        Ranking,
        compare,
        compare_many,
        compare_tables,
    )
    from softcal.inference.intervals import GapIntervals, Interval, gap_intervals, smece_interval
    from softcal.inference.joint import JointTable, joint_table
    from softcal.inference.top_label_comparison import compare_top_label
    from softcal.measures.class_scores import (
        dist_ce,
        ent_ce,
        ent_ce_signed,
        multiclass_brier,
        multiclass_kl_divergence,
        multiclass_log_loss,
        rank_cs,
    )
    from softcal.measures.cumulative import (
        CumulativeTest,
        ecce_mad,
        ecce_mad_from_table,
        ecce_range,
        ecce_range_from_table,
    )
    from softcal.measures.decomposition import (
        CorpCurve,
        ScoreDecomposition,
        corp,
        corp_from_table,
        log_loss_decomposition,
    )
    from softcal.measures.imprecise import (
        ReliabilityBounds,
        SmeceBounds,
        reliability_bounds,
        smece_bounds,
    )
    from softcal.measures.metrics import (
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
    from softcal.measures.multiclass import (
        classwise_reliability,
        classwise_smece,
        top_label_reliability,
        top_label_smece,
    )
    from softcal.measures.smooth import smooth_ece, smooth_ece_from_table
    from softcal.measures.squared_gap import squared_gap_debiased, squared_gap_debiased_from_table
    from softcal.measures.sweep import sweep_bins
    from softcal.measures.vote_noise import (
        brier_without_vote_noise,
        multiclass_brier_without_vote_noise,
        vote_noise_floor,
    )
    from softcal.measures.worker_skill import DawidSkene, dawid_skene
    from softcal.planning.plans import (
        Assumptions,
        DifferencePlan,
        Plan,
        pilot_correlation,
        plan,
        plan_budget,
        plan_difference,
    )
    from softcal.plot import ReliabilityDisplay
    from softcal.repair.calibrated_classifier import SoftCalibratedClassifier
    from softcal.repair.calibrators import (
        Beta,
        Dirichlet,
        Histogram,
        Isotonic,
        Platt,
        Temperature,
        VectorScaling,
    )
    from softcal.repair.maps.saved import load_calibrator
    from softcal.repair.preview import RepairPreview, repair_preview
    from softcal.repair.soft_classifier import SoftLabelClassifier
    from softcal.report import write_report, write_top_label_report
    from softcal.sources.scanning import scan, scan_by
    from softcal.table.bins import Bins
    from softcal.table.reliability import Reliability, reliability
    from softcal.table.streaming import StreamingReliability

__version__ = "0.1.0"

# Loaded when first asked for: `import softcal`, which `softcal --help` does too, costs next to
# nothing.
_LATER = {
    name: f"softcal.{module}"
    for module, names in {
        "door.votes": ("Votes",),
        "inference.chance": ("TestResult", "calibration_test", "consistency_band"),
        "inference.comparison": (
            "Comparison",
            "Ranking",
            "compare",
            "compare_many",
            "compare_tables",
        ),
        "inference.intervals": ("GapIntervals", "Interval", "gap_intervals", "smece_interval"),
        "inference.joint": ("JointTable", "joint_table"),
        "inference.top_label_comparison": ("compare_top_label",),
        "measures.class_scores": (
            "dist_ce",
            "ent_ce",
            "ent_ce_signed",
            "multiclass_brier",
            "multiclass_kl_divergence",
            "multiclass_log_loss",
            "rank_cs",
        ),
        "measures.cumulative": (
            "CumulativeTest",
            "ecce_mad",
            "ecce_mad_from_table",
            "ecce_range",
            "ecce_range_from_table",
        ),
        "measures.decomposition": (
            "CorpCurve",
            "ScoreDecomposition",
            "corp",
            "corp_from_table",
            "log_loss_decomposition",
        ),
        "measures.imprecise": (
            "ReliabilityBounds",
            "SmeceBounds",
            "reliability_bounds",
            "smece_bounds",
        ),
        "measures.metrics": (
            "bias",
            "brier",
            "ece",
            "harden",
            "kl_divergence",
            "label_entropy",
            "log_loss",
            "max_gap",
            "rms_gap",
            "smece",
        ),
        "measures.multiclass": (
            "classwise_reliability",
            "classwise_smece",
            "top_label_reliability",
            "top_label_smece",
        ),
        "measures.smooth": ("smooth_ece", "smooth_ece_from_table"),
        "measures.squared_gap": ("squared_gap_debiased", "squared_gap_debiased_from_table"),
        "measures.sweep": ("sweep_bins",),
        "measures.vote_noise": (
            "brier_without_vote_noise",
            "multiclass_brier_without_vote_noise",
            "vote_noise_floor",
        ),
        "measures.worker_skill": ("DawidSkene", "dawid_skene"),
        "planning.plans": (
            "Assumptions",
            "DifferencePlan",
            "Plan",
            "pilot_correlation",
            "plan",
            "plan_budget",
            "plan_difference",
        ),
        "plot": ("ReliabilityDisplay",),
        "repair.calibrated_classifier": ("SoftCalibratedClassifier",),
        "repair.calibrators": (
            "Beta",
            "Dirichlet",
            "Histogram",
            "Isotonic",
            "Platt",
            "Temperature",
            "VectorScaling",
        ),
        "repair.maps.saved": ("load_calibrator",),
        "repair.preview": ("RepairPreview", "repair_preview"),
        "repair.soft_classifier": ("SoftLabelClassifier",),
        "report": ("write_report", "write_top_label_report"),
        "sources.scanning": ("scan", "scan_by"),
        "table.bins": ("Bins",),
        "table.reliability": ("Reliability", "reliability"),
        "table.streaming": ("StreamingReliability",),
    }.items()
    for name in names
}


def __getattr__(name: str) -> Any:
    """Load a name of `_LATER` when it is first used."""
    if name not in _LATER:
        message = f"module 'softcal' has no attribute {name!r}"
        raise AttributeError(message)
    with naming_the_extra():
        found = getattr(import_module(_LATER[name]), name)
    globals()[name] = found  # the next use finds it there
    return found


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
