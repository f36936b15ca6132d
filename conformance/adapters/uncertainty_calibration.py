"""uncertainty-calibration: the ECE of Guo et al., and the squared error of Kumar et al."""

from __future__ import annotations

from calibration import get_ece, lower_bound_scaling_ce
from calibration.utils import bin as binned
from calibration.utils import get_equal_prob_bins, unbiased_square_ce

from adapters import Data

NAME = "uncertainty-calibration"
BASIS = "documentation: ECE as computed by Guo et al. Code: bins are (low, high]"
CONVENTIONS = {"equal-width": "right-closed"}


def rms(data: Data, mode: str = "marginal") -> float:
    """Return the L2 error without its correction."""
    found: float = lower_bound_scaling_ce(
        data.p, data.y, p=2, debias=False, num_bins=data.n,
        binning_scheme=get_equal_prob_bins, mode=mode,
    )  # fmt: skip
    return found


def squared(data: Data) -> float:
    """Return the corrected squared error."""
    rows = list(zip(data.p, data.y, strict=True))
    found: float = unbiased_square_ce(binned(rows, get_equal_prob_bins(data.p, data.n)))
    return found


METRICS = {
    "ece": lambda data: get_ece(data.p, data.y, num_bins=data.n),
    "rms_ce": rms,
    "top_label_ece": lambda data: get_ece(data.p, data.y, num_bins=data.n),
    "top_label_rms_ce": lambda data: rms(data, "top-label"),
    "classwise_ece": lambda data: get_ece(data.p, data.y, num_bins=data.n, mode="marginal"),
    "squared_gap_outcomes": squared,
}
