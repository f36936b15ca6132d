"""Public names: `import softcal` loads each when it is first used."""

from ._validation.votes import (
    Votes as Votes,
)
from .bins import (
    Bins as Bins,
)
from .calibrators.classifiers import (
    SoftCalibratedClassifier as SoftCalibratedClassifier,
)
from .calibrators.classifiers import (
    SoftLabelClassifier as SoftLabelClassifier,
)
from .calibrators.estimators import (
    Beta as Beta,
)
from .calibrators.estimators import (
    Dirichlet as Dirichlet,
)
from .calibrators.estimators import (
    Histogram as Histogram,
)
from .calibrators.estimators import (
    Isotonic as Isotonic,
)
from .calibrators.estimators import (
    Platt as Platt,
)
from .calibrators.estimators import (
    Temperature as Temperature,
)
from .calibrators.estimators import (
    VectorScaling as VectorScaling,
)
from .calibrators.loading import (
    load_calibrator as load_calibrator,
)
from .calibrators.preview import (
    RepairPreview as RepairPreview,
)
from .calibrators.preview import (
    repair_preview as repair_preview,
)
from .crowd import (
    DawidSkene as DawidSkene,
)
from .crowd import (
    dawid_skene as dawid_skene,
)
from .exceptions import (
    BinMismatchError as BinMismatchError,
)
from .exceptions import (
    InputError as InputError,
)
from .exceptions import (
    InputTypeError as InputTypeError,
)
from .exceptions import (
    SoftcalError as SoftcalError,
)
from .inference.comparison import (
    Comparison as Comparison,
)
from .inference.comparison import (
    Ranking as Ranking,
)
from .inference.comparison import (
    compare as compare,
)
from .inference.comparison import (
    compare_many as compare_many,
)
from .inference.comparison import (
    compare_tables as compare_tables,
)
from .inference.comparison import (
    compare_top_label as compare_top_label,
)
from .inference.intervals import (
    GapIntervals as GapIntervals,
)
from .inference.intervals import (
    Interval as Interval,
)
from .inference.intervals import (
    gap_intervals as gap_intervals,
)
from .inference.intervals import (
    smece_interval as smece_interval,
)
from .inference.tests import (
    TestResult as TestResult,
)
from .inference.tests import (
    calibration_test as calibration_test,
)
from .inference.tests import (
    consistency_band as consistency_band,
)
from .metrics.binned import (
    bias as bias,
)
from .metrics.binned import (
    brier as brier,
)
from .metrics.binned import (
    ece as ece,
)
from .metrics.binned import (
    harden as harden,
)
from .metrics.binned import (
    kl_divergence as kl_divergence,
)
from .metrics.binned import (
    label_entropy as label_entropy,
)
from .metrics.binned import (
    log_loss as log_loss,
)
from .metrics.binned import (
    max_gap as max_gap,
)
from .metrics.binned import (
    rms_gap as rms_gap,
)
from .metrics.binned import (
    smece as smece,
)
from .metrics.binned import (
    squared_gap_debiased as squared_gap_debiased,
)
from .metrics.binned import (
    squared_gap_debiased_from_table as squared_gap_debiased_from_table,
)
from .metrics.binned import (
    sweep_bins as sweep_bins,
)
from .metrics.bounds import (
    ReliabilityBounds as ReliabilityBounds,
)
from .metrics.bounds import (
    SmeceBounds as SmeceBounds,
)
from .metrics.bounds import (
    reliability_bounds as reliability_bounds,
)
from .metrics.bounds import (
    smece_bounds as smece_bounds,
)
from .metrics.corp import (
    CorpCurve as CorpCurve,
)
from .metrics.corp import (
    ScoreDecomposition as ScoreDecomposition,
)
from .metrics.corp import (
    corp as corp,
)
from .metrics.corp import (
    corp_from_table as corp_from_table,
)
from .metrics.corp import (
    log_loss_decomposition as log_loss_decomposition,
)
from .metrics.cumulative import (
    CumulativeTest as CumulativeTest,
)
from .metrics.cumulative import (
    ecce_mad as ecce_mad,
)
from .metrics.cumulative import (
    ecce_mad_from_table as ecce_mad_from_table,
)
from .metrics.cumulative import (
    ecce_range as ecce_range,
)
from .metrics.cumulative import (
    ecce_range_from_table as ecce_range_from_table,
)
from .metrics.multiclass import (
    classwise_reliability as classwise_reliability,
)
from .metrics.multiclass import (
    classwise_smece as classwise_smece,
)
from .metrics.multiclass import (
    dist_ce as dist_ce,
)
from .metrics.multiclass import (
    ent_ce as ent_ce,
)
from .metrics.multiclass import (
    ent_ce_signed as ent_ce_signed,
)
from .metrics.multiclass import (
    multiclass_brier as multiclass_brier,
)
from .metrics.multiclass import (
    multiclass_kl_divergence as multiclass_kl_divergence,
)
from .metrics.multiclass import (
    multiclass_log_loss as multiclass_log_loss,
)
from .metrics.multiclass import (
    rank_cs as rank_cs,
)
from .metrics.multiclass import (
    top_label_reliability as top_label_reliability,
)
from .metrics.multiclass import (
    top_label_smece as top_label_smece,
)
from .metrics.smooth import (
    smooth_ece as smooth_ece,
)
from .metrics.smooth import (
    smooth_ece_from_table as smooth_ece_from_table,
)
from .metrics.vote_noise import (
    brier_without_vote_noise as brier_without_vote_noise,
)
from .metrics.vote_noise import (
    multiclass_brier_without_vote_noise as multiclass_brier_without_vote_noise,
)
from .metrics.vote_noise import (
    vote_noise_floor as vote_noise_floor,
)
from .planning.plans import (
    Assumptions as Assumptions,
)
from .planning.plans import (
    DifferencePlan as DifferencePlan,
)
from .planning.plans import (
    Plan as Plan,
)
from .planning.plans import (
    pilot_correlation as pilot_correlation,
)
from .planning.plans import (
    plan as plan,
)
from .planning.plans import (
    plan_budget as plan_budget,
)
from .planning.plans import (
    plan_difference as plan_difference,
)
from .plot import (
    ReliabilityDisplay as ReliabilityDisplay,
)
from .report import (
    write_report as write_report,
)
from .sources.scanning import (
    scan as scan,
)
from .table.build import (
    joint_table as joint_table,
)
from .table.files import load as load
from .table.joint import (
    JointTable as JointTable,
)
from .table.reliability import (
    Reliability as Reliability,
)
from .table.reliability import (
    StreamingReliability as StreamingReliability,
)
from .table.reliability import (
    reliability as reliability,
)
from .table.tableset import TableSet as TableSet

__version__: str
