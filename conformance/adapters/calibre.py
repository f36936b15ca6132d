"""calibre: ECE, MCE, the Brier score, and reliability diagrams."""

from __future__ import annotations

import calibre
import numpy as np

from adapters import Array, Data

NAME = "calibre"
BASIS = "code: bins are [low, high)"
CONVENTIONS = {"equal-width": "left-closed"}


def curve(data: Data) -> Array:
    """Return mean prediction and mean label of the bins with rows."""
    label, prediction, count = calibre.calibration_curve(data.y, data.p, n_bins=data.n)
    return np.asarray(np.stack([prediction, label], axis=1)[count > 0])


METRICS = {
    "ece": lambda data: calibre.expected_calibration_error(data.y, data.p, n_bins=data.n),
    "mce": lambda data: calibre.maximum_calibration_error(data.y, data.p, n_bins=data.n),
    "brier": lambda data: calibre.brier_score(data.y, data.p),
    "curve": curve,
}
SOFT = {"ece", "mce", "curve"}
