"""probmetrics: torchmetrics' calibration errors, the Brier score, and the log loss of classes."""

from __future__ import annotations

from typing import Any, Literal

import torch
from probmetrics.distributions import CategoricalDistribution, CategoricalProbs
from probmetrics.metrics import BrierLoss, CalibrationError, LogLoss

from adapters import Array, Data

NAME = "probmetrics"
BASIS = "documentation: Brier is summed over classes. Code: bins of torchmetrics, [low, high)"
CONVENTIONS = {"equal-width": "left-closed", "class_brier": "sum"}


def two(x: Array) -> CategoricalDistribution:
    """Return one column as two classes."""
    found = torch.as_tensor(x).to(torch.float64)
    return CategoricalProbs(torch.stack([1 - found, found], dim=1))


def binary(norm: Literal["l1", "l2", "max"]) -> Any:
    """Return the error of one column in a norm."""
    return lambda data: CalibrationError(data.n, norm).compute(
        y_true=two(data.y), y_pred=two(data.p)
    )


def classes(metric: Any, data: Data) -> torch.Tensor:
    """Return a metric of several classes."""
    y, p = torch.as_tensor(data.shares), torch.as_tensor(data.p)
    found: torch.Tensor = metric.compute(y_true=CategoricalProbs(y), y_pred=CategoricalProbs(p))
    return found


METRICS = {
    "ece": binary("l1"),
    "mce": binary("max"),
    "rms_ce": binary("l2"),
    "brier": lambda data: BrierLoss(binary_as_multiclass=False).compute(
        y_true=two(data.y), y_pred=two(data.p)
    ),
    "log_loss": lambda data: LogLoss().compute(y_true=two(data.y), y_pred=two(data.p)),
    "top_label_ece": lambda data: classes(CalibrationError(data.n), data),
    "top_label_mce": lambda data: classes(CalibrationError(data.n, "max"), data),
    "top_label_rms_ce": lambda data: classes(CalibrationError(data.n, "l2"), data),
    "class_brier": lambda data: classes(BrierLoss(), data),
    "class_log_loss": lambda data: classes(LogLoss(), data),
}
SINGLE = {name for name in METRICS if name.endswith("ce")}
SOFT = {"brier", "log_loss", "class_brier", "class_log_loss"}
OTHERWISE = {
    **dict.fromkeys(
        [
            "classes/top-label-worst",
            "classes/edge-top-label",
            "zero_and_one/saturated-top-label",
            "invalid/class-rows",
        ],
        "classes without items are removed, and rows are normalized",
    ),
    "log_loss/classes-infinite": "logits are finite",
}
