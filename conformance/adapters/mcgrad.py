"""MCGrad: the ECE with weights, and the log loss of soft labels."""

from __future__ import annotations

from mcgrad.metrics import expected_calibration_error, soft_label_log_loss

NAME = "MCGrad"
BASIS = "code: bins are [low, high); the log loss clips to [1e-15, 1 - 1e-15]"
CONVENTIONS = {"equal-width": "left-closed"}
METRICS = {
    "ece": lambda data: expected_calibration_error(
        data.y, data.p, sample_weight=data.w, num_bins=data.n
    ),
    "log_loss": lambda data: soft_label_log_loss(data.y, data.p, data.w),
}
WEIGHTED = SOFT = set(METRICS)
