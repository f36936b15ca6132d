"""calzone: ECE and MCE of one class."""

from __future__ import annotations

from typing import Any

from calzone.metrics import CalibrationMetrics

from adapters import Data

NAME = "calzone-tool"
BASIS = "code: bins are (low, high]"
CONVENTIONS = {"equal-width": "right-closed"}


def error(name: str) -> Any:
    """Return the error by its name in calzone."""

    def of(data: Data) -> float:
        found = CalibrationMetrics(1, data.n).calculate_metrics(data.y, data.columns, [name])
        return float(found[name])

    return of


METRICS = {
    "ece": error("ECE-H"),
    "mce": error("MCE-H"),
    "ece equal-mass": error("ECE-C"),
    "mce equal-mass": error("MCE-C"),
}
