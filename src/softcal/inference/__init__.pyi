"""Public names of `softcal.inference`."""

from .checks import Check as Check
from .comparison import (
    Comparison as Comparison,
    MeanDifference as MeanDifference,
    Pair as Pair,
    Ranking as Ranking,
)
from .gaps import GapIntervals as GapIntervals
from .new_group import (
    NewGroup as NewGroup,
    NewGroupCalibration as NewGroupCalibration,
)
from .ordinal import ScoreInterval as ScoreInterval
from .raters import RaterDifference as RaterDifference
from .segments import (
    Audit as Audit,
    Explained as Explained,
    Segment as Segment,
)
from .sequential import (
    StreamState as StreamState,
    WatchState as WatchState,
)
from .smece import Interval as Interval
from .summary import (
    CalibrationSummary as CalibrationSummary,
    Estimate as Estimate,
)
from .tests import TestResult as TestResult

__all__: list[str]
