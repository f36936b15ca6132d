"""netcal: ECE and MCE of one column and of the predicted class."""

from __future__ import annotations

from netcal.metrics import ECE, MCE

from adapters import Data

NAME = "netcal"
BASIS = "code: bins are [low, high), quantiles are interpolated linearly"
CONVENTIONS = {"equal-width": "left-closed", "equal-mass": "linear-quantile-left"}


def equal_mass(metric: type[ECE]) -> object:
    """Return a metric with equal-mass bins."""
    return lambda data: metric(data.n, equal_intervals=False).measure(data.p, data.y)


def ece(data: Data) -> float:
    """Return the ECE."""
    found: float = ECE(data.n).measure(data.p, data.y)
    return found


def mce(data: Data) -> float:
    """Return the MCE."""
    found: float = MCE(data.n).measure(data.p, data.y)
    return found


METRICS = {
    "ece": ece,
    "mce": mce,
    "top_label_ece": ece,
    "top_label_mce": mce,
    "ece equal-mass": equal_mass(ECE),
    "mce equal-mass": equal_mass(MCE),
}
