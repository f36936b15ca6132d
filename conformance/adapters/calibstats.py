"""calibstats: ECE and MCE of one column and of the predicted class, and the Brier score."""

from __future__ import annotations

import calibstats

NAME = "calibstats"
BASIS = "code: bins are [low, high), quantiles are interpolated linearly; nll clips to [1e-12, 1]"
CONVENTIONS = {
    "equal-width": "left-closed",
    "equal-mass": "linear-quantile-left",
    "class_brier": "sum",
}
METRICS = {
    "ece": lambda data: calibstats.ece(data.p, data.y, n_bins=data.n),
    "mce": lambda data: calibstats.mce(data.p, data.y, n_bins=data.n),
    "top_label_ece": lambda data: calibstats.ece(data.p, data.y, n_bins=data.n),
    "top_label_mce": lambda data: calibstats.mce(data.p, data.y, n_bins=data.n),
    "ece equal-mass": lambda data: calibstats.ace(data.p, data.y, n_bins=data.n),
    "brier": lambda data: calibstats.brier_score(data.p, data.y),
    "class_brier": lambda data: calibstats.brier_score(data.p, data.y),
    "log_loss": lambda data: calibstats.nll(data.p, data.y),
    "class_log_loss": lambda data: calibstats.nll(data.p, data.y),
}
OTHERWISE = {"log_loss/classes-infinite": "predictions are clipped"}
