"""softcal: calibration of probabilistic predictions when the label is itself a probability."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from softcal.bins import Bins
from softcal.errors import BinMismatchError, InputError, InputTypeError, SoftcalError
from softcal.metrics import (
    bias,
    brier,
    ece,
    harden,
    kl_divergence,
    label_entropy,
    log_loss,
    max_gap,
    rms_gap,
    smece,
)
from softcal.reliability import Reliability, reliability

if TYPE_CHECKING:
    from softcal.chance import TestResult, calibration_test
    from softcal.inference import GapIntervals, Interval, gap_intervals, smece_interval

__version__ = "0.1.0"

# Loaded when first asked for: they import scipy, and `import softcal` should cost little.
_LATER = {
    "GapIntervals": "softcal.inference",
    "Interval": "softcal.inference",
    "TestResult": "softcal.chance",
    "calibration_test": "softcal.chance",
    "gap_intervals": "softcal.inference",
    "smece_interval": "softcal.inference",
}


def __getattr__(name: str) -> Any:
    """Load a name of `_LATER` when it is first used."""
    if name not in _LATER:
        message = f"module 'softcal' has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "BinMismatchError",
    "Bins",
    "GapIntervals",
    "InputError",
    "InputTypeError",
    "Interval",
    "Reliability",
    "SoftcalError",
    "TestResult",
    "bias",
    "brier",
    "calibration_test",
    "ece",
    "gap_intervals",
    "harden",
    "kl_divergence",
    "label_entropy",
    "log_loss",
    "max_gap",
    "reliability",
    "rms_gap",
    "smece",
    "smece_interval",
]
