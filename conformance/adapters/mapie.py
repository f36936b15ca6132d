"""MAPIE: the ECE of correctness, and the classwise ECE."""

from __future__ import annotations

from mapie.metrics.calibration import expected_calibration_error

from adapters import Data

NAME = "MAPIE"
BASIS = "documentation: y_true is whether the prediction is right. Code: bins are (low, high]"
CONVENTIONS = {"equal-width": "right-closed"}


def ece(data: Data, strategy: str = "uniform") -> float:
    """Return the ECE of one column; the label is copied, because it may be changed."""
    found: float = expected_calibration_error(data.y.copy(), data.p, data.n, strategy)
    return found


def top_label(data: Data) -> float:
    """Return the confidence ECE: y_true is whether the predicted class is right."""
    right = (data.p.argmax(axis=1) == data.y).astype(int)
    found: float = expected_calibration_error(right, data.p, data.n, "uniform")
    return found


def classwise(data: Data) -> float:
    """Return the mean over classes."""
    found: float = expected_calibration_error(
        data.y, data.p, data.n, "uniform", classwise=True, class_labels=data.y
    )
    return found


METRICS = {
    "ece": ece,
    "ece equal-mass": lambda data: ece(data, "quantile"),
    "top_label_ece": top_label,
    "classwise_ece": classwise,
}
