"""classifier-calibration: the classwise ECE."""

from __future__ import annotations

from classifier_calibration.calibration_error import classwise_ece

NAME = "classifier-calibration"
BASIS = "documentation: bins are [low, high)"
CONVENTIONS = {"equal-width": "left-closed"}
METRICS = {"classwise_ece": lambda data: classwise_ece(data.p, data.y, num_bins=data.n)}
