"""probcal: calibration errors in three norms, the Brier score, and the log loss."""

from __future__ import annotations

from typing import Any

from probcal.metrics import brier_score, ece, log_loss

NAME = "probcal"
BASIS = "documentation: a score equal to an edge goes to the upper bin"
CONVENTIONS = {"equal-width": "left-closed", "equal-mass": "linear-quantile-left"}


def error(norm: str, strategy: str) -> Any:
    """Return the error in a norm."""
    return lambda data: ece(
        data.y, data.p, n_bins=data.n, strategy=strategy, norm=norm, sample_weight=data.w
    )


METRICS = {
    "ece": error("l1", "width"),
    "mce": error("max", "width"),
    "rms_ce": error("l2", "width"),
    "ece equal-mass": error("l1", "mass"),
    "mce equal-mass": error("max", "mass"),
    "rms_ce equal-mass": error("l2", "mass"),
    "brier": lambda data: brier_score(data.y, data.p, sample_weight=data.w),
    "log_loss": lambda data: log_loss(data.y, data.p, sample_weight=data.w),
}
WEIGHTED = set(METRICS)
