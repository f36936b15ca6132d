"""softcal: every metric of this set except the correction for 0/1 labels."""

from __future__ import annotations

import numpy as np

import softcal as sc
from adapters import Array, Data

NAME = "softcal"
BASIS = "documentation: bins are [low, high), and the last one also contains 1"
CONVENTIONS = {
    "equal-width": "left-closed",
    "equal-mass": "rank-cut",
    "log_loss": "exact",
    "class_brier": "sum",
}


def labels(data: Data) -> sc.Votes | Array:
    """Return votes if the case has them."""
    if "k" in data.case["data"]:
        return sc.Votes(np.stack([data.m - data.k, data.k], axis=1))
    return data.y


def classes(data: Data) -> sc.Votes | Array:
    """Return votes, or one column per class."""
    return sc.Votes(data.votes) if "votes" in data.case["data"] else data.shares


def ece(data: Data) -> float:
    """Outcomes have an ECE, and other labels a SMECE."""
    if data.is_soft:
        return sc.smece(labels(data), data.p, bins=data.n, sample_weight=data.w)
    return sc.ece(labels(data), data.p, bins=data.n, sample_weight=data.w)


def table(data: Data) -> sc.Reliability:
    """Return the table of equal-width bins."""
    return sc.reliability(labels(data), data.p, bins=data.n, sample_weight=data.w)


def mass_table(data: Data) -> sc.Reliability:
    """Return the table of equal-mass bins."""
    return sc.reliability(labels(data), data.p, bins=sc.Bins.quantile(data.p, data.n))


def top_label(data: Data) -> sc.Reliability:
    """Return the table of the predicted class."""
    return sc.top_label_reliability(classes(data), data.p, bins=data.n, sample_weight=data.w)


def curve(data: Data) -> Array:
    """Return mean prediction and mean label of the bins with rows."""
    rel = table(data)
    here = rel.count > 0
    return np.stack([rel.mean_prob[here], rel.mean_label[here]], axis=1)


METRICS = {
    "ece": ece,
    "mce": lambda data: sc.max_gap(table(data)),
    "rms_ce": lambda data: sc.rms_gap(table(data)),
    "curve": curve,
    "bias": lambda data: sc.bias(labels(data), data.p, sample_weight=data.w),
    "brier": lambda data: sc.brier(labels(data), data.p, sample_weight=data.w),
    "log_loss": lambda data: sc.log_loss(labels(data), data.p, sample_weight=data.w),
    "kl_divergence": lambda data: sc.kl_divergence(labels(data), data.p),
    "squared_gap_pairs": lambda data: sc.squared_gap_debiased(table(data)),
    "brier_of_rates": lambda data: sc.brier_without_vote_noise(labels(data), data.p),
    "ece equal-mass": lambda data: sc.smece(mass_table(data)),
    "mce equal-mass": lambda data: sc.max_gap(mass_table(data)),
    "rms_ce equal-mass": lambda data: sc.rms_gap(mass_table(data)),
    "top_label_ece": lambda data: sc.smece(top_label(data)),
    "top_label_mce": lambda data: sc.max_gap(top_label(data)),
    "top_label_rms_ce": lambda data: sc.rms_gap(top_label(data)),
    "classwise_ece": lambda data: sc.classwise_smece(classes(data), data.p, bins=data.n),
    "class_brier": lambda data: sc.brier(classes(data), data.p),
    "class_log_loss": lambda data: sc.log_loss(classes(data), data.p),
}
WEIGHTED = SOFT = set(METRICS)
