"""Public names. `import softcal` loads each one at its first use."""

from . import (
    calibrators as calibrators,
    crowd as crowd,
    datasets as datasets,
    decision as decision,
    inference as inference,
    metrics as metrics,
    planning as planning,
)
from .votes import Votes as Votes
from .bins import Bins as Bins
from .cards import (
    ScoreCard as ScoreCard,
    score as score,
)
from .crowd import dawid_skene as dawid_skene
from .decision import (
    net_benefit as net_benefit,
    net_benefit_difference as net_benefit_difference,
)
from .exceptions import (
    BinMismatchError as BinMismatchError,
    InputError as InputError,
    InputTypeError as InputTypeError,
    SoftcalError as SoftcalError,
    SoftcalWarning as SoftcalWarning,
)
from .inference.checks import (
    assert_calibrated as assert_calibrated,
    check as check,
)
from .inference.comparison import (
    compare as compare,
    compare_many as compare_many,
)
from .inference.gaps import (
    consistency_band as consistency_band,
    gap_intervals as gap_intervals,
)
from .inference.new_group import (
    new_group as new_group,
    new_group_interval as new_group_interval,
)
from .inference.ordinal import (
    cumulative_smece_interval as cumulative_smece_interval,
    score_interval as score_interval,
)
from .inference.raters import (
    rater_difference as rater_difference,
    reliability_by_rater as reliability_by_rater,
)
from .inference.routing import (
    Route as Route,
    RouteOptions as RouteOptions,
    route as route,
)
from .inference.sequential import Watch as Watch
from .inference.smece import smece_interval as smece_interval
from .inference.summary import calibration_summary as calibration_summary
from .inference.tests import calibration_test as calibration_test
from .metrics.binned import (
    bias as bias,
    ece as ece,
    harden as harden,
    max_gap as max_gap,
    rms_gap as rms_gap,
    smece as smece,
    squared_gap_debiased as squared_gap_debiased,
    sweep_bins as sweep_bins,
)
from .metrics.bounds import (
    ReliabilityBounds as ReliabilityBounds,
    reliability_bounds as reliability_bounds,
    smece_bounds as smece_bounds,
)
from .metrics.corp import (
    corp as corp,
    log_loss_decomposition as log_loss_decomposition,
)
from .metrics.cumulative import (
    ecce_mad as ecce_mad,
    ecce_range as ecce_range,
)
from .metrics.kde import kde_ece as kde_ece
from .metrics.multiclass import (
    classwise_reliability as classwise_reliability,
    classwise_smece as classwise_smece,
    dist_ce as dist_ce,
    ent_ce as ent_ce,
    ent_ce_signed as ent_ce_signed,
    rank_cs as rank_cs,
    top_label_reliability as top_label_reliability,
    top_label_smece as top_label_smece,
)
from .metrics.ordinal import (
    cumulative_reliability as cumulative_reliability,
    cumulative_smece as cumulative_smece,
    manhattan as manhattan,
    ranked_probability_score as ranked_probability_score,
    wasserstein as wasserstein,
)
from .metrics.proper import (
    brier as brier,
    calibration_error_bound as calibration_error_bound,
    kl_divergence as kl_divergence,
    label_entropy as label_entropy,
    log_loss as log_loss,
)
from .metrics.smooth import smooth_ece as smooth_ece
from .metrics.vote_noise import (
    brier_without_vote_noise as brier_without_vote_noise,
    vote_noise_floor as vote_noise_floor,
)
from .plot import ReliabilityDisplay as ReliabilityDisplay
from .report import (
    write_report as write_report,
)
from .scanning.auditing import audit as audit
from .scanning.data import (
    Bounds as Bounds,
    Classes as Classes,
    Column as Column,
    Counts as Counts,
    Cut as Cut,
    Days as Days,
    Files as Files,
    Long as Long,
    RawVotes as RawVotes,
    Shares as Shares,
)
from .scanning.query_result import tables_from_query as tables_from_query
from .scanning.scan import scan as scan
from .scanning.sql import sql_query as sql_query
from .table.files import load as load
from .table.joint import JointTable as JointTable
from .table.reliability import (
    Reliability as Reliability,
    reliability as reliability,
)
from .table.tableset import TableSet as TableSet

__all__: list[str]
__version__: str
