"""Public names of `softcal.metrics`."""

from .bounds import SmeceBounds as SmeceBounds
from .corp import (
    CorpCurve as CorpCurve,
    ScoreDecomposition as ScoreDecomposition,
)
from .cumulative import CumulativeTest as CumulativeTest

__all__: list[str]
