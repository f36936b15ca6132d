"""torchmetrics: the calibration error of one column and of the predicted class, in three norms."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torchmetrics.functional.classification import (
    binary_calibration_error,
    multiclass_calibration_error,
)

from adapters import Data

NAME = "torchmetrics"
BASIS = "code: bins are [low, high)"
CONVENTIONS = {"equal-width": "left-closed"}


def binary(norm: Literal["l1", "l2", "max"]) -> Any:
    """Return the error of one column in a norm."""
    return lambda data: binary_calibration_error(
        torch.as_tensor(data.p), torch.as_tensor(data.y), n_bins=data.n, norm=norm
    )


def top_label(norm: Literal["l1", "l2", "max"]) -> Any:
    """Return the error of the predicted class in a norm."""

    def of(data: Data) -> torch.Tensor:
        p, y = torch.as_tensor(data.p), torch.as_tensor(data.y)
        return multiclass_calibration_error(p, y, p.shape[1], n_bins=data.n, norm=norm)

    return of


METRICS = {
    "ece": binary("l1"),
    "mce": binary("max"),
    "rms_ce": binary("l2"),
    "top_label_ece": top_label("l1"),
    "top_label_mce": top_label("max"),
    "top_label_rms_ce": top_label("l2"),
}
SINGLE = {"top_label_ece", "top_label_mce", "top_label_rms_ce"}
OTHERWISE = dict.fromkeys(
    ["invalid/above-one", "invalid/negative", "invalid/class-rows", "invalid/infinite-prediction"],
    "predictions outside [0, 1] are documented as logits",
)
