"""MONAI: ECE and MCE per channel, in float32."""

from __future__ import annotations

from typing import Any

import torch
from monai.metrics import CalibrationErrorMetric

from adapters import Array, Data

NAME = "monai"
BASIS = "documentation: bins are [left, right) by default"
CONVENTIONS = {"equal-width": "left-closed"}


def error(reduction: str) -> Any:
    """Return the error of all channels; a column is one channel."""

    def of(data: Data) -> torch.Tensor:
        metric = CalibrationErrorMetric(data.n, calibration_reduction=reduction)
        metric(y_pred=channels(data.p), y=channels(data.shares if data.p.ndim == 2 else data.y))
        found: torch.Tensor = metric.aggregate()
        return found

    return of


def channels(x: Array) -> torch.Tensor:
    """Return an array of shape (batch, channel, rows)."""
    return torch.as_tensor(x.T if x.ndim == 2 else x[None])[None]


METRICS = {"ece": error("expected"), "mce": error("maximum"), "classwise_ece": error("expected")}
SINGLE = SOFT = set(METRICS)
