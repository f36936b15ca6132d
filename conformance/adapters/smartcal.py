"""smartcal: ECE and MCE of the predicted class, and the Brier score of classes."""

from __future__ import annotations

import numpy as np
from smartcal.metrics.brier_score import calculate_brier_score
from smartcal.metrics.ece import ECE
from smartcal.metrics.mce import MCE

from adapters import Data

NAME = "smartcal"
BASIS = "code: bins are [low, high)"
CONVENTIONS = {"equal-width": "left-closed", "class_brier": "sum"}


def positive(metric: type[ECE], data: Data) -> float:
    """Return the error of class 1: all rows predict it."""
    found: float = metric(data.n).compute(data.p, np.ones(len(data.p), dtype=int), data.y)
    return found


def top_label(metric: type[ECE], data: Data) -> float:
    """Return the error of the predicted class."""
    found: float = metric(data.n).compute(data.p, data.p.argmax(axis=1), data.y)
    return found


METRICS = {
    "ece": lambda data: positive(ECE, data),
    "mce": lambda data: positive(MCE, data),
    "top_label_ece": lambda data: top_label(ECE, data),
    "top_label_mce": lambda data: top_label(MCE, data),
    "class_brier": lambda data: calculate_brier_score(data.y, data.p),
}
