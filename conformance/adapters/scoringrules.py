"""scoringrules: the Brier score and the log score of each row."""

from __future__ import annotations

import numpy as np
import scoringrules

NAME = "scoringrules"
BASIS = "documentation: the log score is -log|f + y - 1|, without clipping"
CONVENTIONS = {"log_loss": "exact"}
METRICS = {
    "brier": lambda data: np.mean(scoringrules.brier_score(data.y, data.p)),
    "log_loss": lambda data: np.mean(scoringrules.log_score(data.y, data.p)),
}
