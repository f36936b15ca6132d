"""model-diagnostics: the bias; its bins of predictions span the data, so it has no ECE of these."""

from __future__ import annotations

from model_diagnostics.calibration import compute_bias

from adapters import Data

NAME = "model-diagnostics"
BASIS = "documentation: bias is the mean of prediction minus observation; bins span the data"
CONVENTIONS: dict[str, str] = {}


def bias(data: Data) -> float:
    """Return the mean bias of all rows."""
    frame = compute_bias(y_obs=data.y, y_pred=data.p, weights=data.w)
    return float(frame["bias_mean"].item())


METRICS = {"bias": bias}
WEIGHTED = SOFT = {"bias"}
