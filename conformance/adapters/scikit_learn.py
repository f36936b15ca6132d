"""scikit-learn: reliability diagrams, the Brier score, and the log loss."""

from __future__ import annotations

import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss

from adapters import Array, Data

NAME = "scikit-learn"
BASIS = (
    "documentation: log_loss clips to the machine precision, and the Brier score is summed over "
    "classes with scale_by_half=False. Code: bins are (low, high], quantiles are linear"
)
CONVENTIONS = {
    "equal-width": "right-closed",
    "equal-mass": "linear-quantile-right",
    "log_loss": "clipped",
    "class_brier": "sum",
}


def curve(data: Data) -> Array:
    """Return mean prediction and mean label of the bins with rows."""
    label, prediction = calibration_curve(data.y, data.p, n_bins=data.n)
    return np.stack([prediction, label], axis=1)


def columns(data: Data) -> list[int]:
    """Return the names of all classes."""
    return list(range(data.p.shape[1]))


METRICS = {
    "curve": curve,
    "brier": lambda data: brier_score_loss(data.y, data.p, sample_weight=data.w, labels=[0, 1]),
    "log_loss": lambda data: log_loss(data.y, data.p, sample_weight=data.w, labels=[0, 1]),
    "class_brier": lambda data: brier_score_loss(
        data.y, data.p, labels=columns(data), scale_by_half=False
    ),
    "class_log_loss": lambda data: log_loss(data.y, data.p, labels=columns(data)),
}
WEIGHTED = {"brier", "log_loss"}
OTHERWISE = {"log_loss/classes-infinite": "predictions are clipped"}
