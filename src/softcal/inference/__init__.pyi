"""Public names of `softcal.inference`."""

from .comparison import (
    Comparison as Comparison,
    MeanDifference as MeanDifference,
    Pair as Pair,
    Ranking as Ranking,
)
from .intervals import (
    GapIntervals as GapIntervals,
    Interval as Interval,
)
from .raters import RaterDifference as RaterDifference
from .tests import TestResult as TestResult

__all__: list[str]
