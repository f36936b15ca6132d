"""Public names of `softcal.planning`."""

from .forecast import (
    Assumptions as Assumptions,
    pilot_correlation as pilot_correlation,
)
from .plans import (
    DifferencePlan as DifferencePlan,
    Plan as Plan,
    plan as plan,
    plan_budget as plan_budget,
    plan_difference as plan_difference,
)

__all__: list[str]
