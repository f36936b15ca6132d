"""pycalib: ECE and MCE of one column and of the predicted class, and the classwise ECE."""

from __future__ import annotations

from pycalib import metrics

NAME = "pycalib"
BASIS = "code: edges are k/n times 1 + 1e-8, so that a prediction of k/n is in the lower bin"
CONVENTIONS = {"equal-width": "right-closed"}
METRICS = {
    "ece": lambda data: metrics.binary_ECE(data.y, data.p, bins=data.n),
    "mce": lambda data: metrics.binary_MCE(data.y, data.p, bins=data.n),
    "top_label_ece": lambda data: metrics.conf_ECE(data.shares, data.p, bins=data.n),
    "top_label_mce": lambda data: metrics.conf_MCE(data.shares, data.p, bins=data.n),
    "classwise_ece": lambda data: metrics.classwise_ECE(data.shares, data.p, bins=data.n),
}
SOFT = {"ece", "mce", "classwise_ece"}
