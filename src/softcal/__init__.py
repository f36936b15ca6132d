"""softcal: calibration of probabilistic predictions when the label is itself a probability."""

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

__version__ = "0.1.0"

__all__ = [
    "BinMismatchError",
    "Bins",
    "InputError",
    "InputTypeError",
    "Reliability",
    "SoftcalError",
    "bias",
    "brier",
    "ece",
    "harden",
    "kl_divergence",
    "label_entropy",
    "log_loss",
    "max_gap",
    "reliability",
    "rms_gap",
    "smece",
]
