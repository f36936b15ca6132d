"""kyle: the ECE of one class, of the predicted class, and of all classes."""

from __future__ import annotations

from kyle.evaluation import EvalStats

from adapters import Data

NAME = "kyle-calibration"
BASIS = "code: bins are (low, high], quantiles are interpolated linearly"
CONVENTIONS = {"equal-width": "right-closed", "equal-mass": "linear-quantile-right"}


def ece(data: Data, strategy: str = "uniform") -> float:
    """Return the ECE of class 1."""
    found: float = EvalStats(data.y, data.columns).expected_calibration_error(
        class_label=1, n_bins=data.n, strategy=strategy
    )
    return found


def of_classes(data: Data) -> EvalStats:
    """Return the statistics of several classes."""
    return EvalStats(data.y, data.p)


METRICS = {
    "ece": ece,
    "ece equal-mass": lambda data: ece(data, "quantile"),
    "top_label_ece": lambda data: of_classes(data).expected_calibration_error(n_bins=data.n),
    "top_label_mce": lambda data: of_classes(data).max_calibration_error(n_bins=data.n),
    "classwise_ece": lambda data: of_classes(data).class_wise_expected_calibration_error(
        n_bins=data.n
    ),
}
