"""Prediction intervals for a group that is not among the data, such as the next hospital."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from softcal import _display
from softcal._validation.arrays import to_array
from softcal._validation.rules import refuse_bad_level
from softcal.exceptions import InputError
from softcal.inference.intervals import noise_floor, residual_variance, student_reach
from softcal.inference.smece import smece_interval
from softcal.table.owners import MAX_GROUPS, Groups, gaps_of
from softcal.table.reliability import Reliability, refuse_no_rows, table_of

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray
    from softcal.bins import BinsLike

_FEWEST = 3  # groups; Student's distribution has G - 2 degrees of freedom


@dataclass(frozen=True, repr=False)
class NewGroup(_display.Printed):
    """The prediction interval of a value in a group that is not among the data.

    Attributes
    ----------
    value : float
        The mean over groups; for SMECE, that of all rows.
    low, high : float
        The prediction interval.
    tau : float
        The standard deviation of the value between groups; for SMECE, that of the mean gap.
    groups : int
        The number of groups.
    level : float
        How often a new group is within the interval.
    what : str
        What the value is.
    """

    value: float
    low: float
    high: float
    tau: float
    groups: int
    level: float
    what: str

    def __repr__(self) -> str:
        return f"NewGroup({self.value:.4g}, low={self.low:.4g}, high={self.high:.4g})"

    def _shown(self) -> _display.Shown:
        line = (
            f"{self.what} of a new group: {_display.percent(self.level)} interval "
            f"{self.low:.4f} to {self.high:.4f}, center {self.value:.4f}\n"
            f"standard deviation between the {self.groups} groups: tau = {self.tau:.4f}"
        )
        return line, [], []


def new_group_interval(
    estimates: npt.ArrayLike, errors: npt.ArrayLike, *, level: float = 0.95
) -> NewGroup:
    r"""Compute the prediction interval of a value in a new group, from the values of known groups.

    The values may be anything that softcal computes per group with a standard error: net benefits,
    calibration slopes, differences between two models. They are \(\mu + u_g\) plus errors, with
    \(u_g\) of variance \(\tau^2\), estimated as by DerSimonian and Laird. The interval is
    \(\hat\mu \pm t_{G-2} \sqrt{\hat\tau^2 + \mathrm{se}^2}\) (Higgins, Thompson, and Spiegelhalter
    2009), with se the standard error of \(\hat\mu\).

    Parameters
    ----------
    estimates : array-like of shape (groups,)
        The value of each group; three groups or more.
    errors : array-like of shape (groups,)
        The standard error of each value, above 0.
    level : float, default=0.95
        The level of the interval, between 0 and 1.

    Returns
    -------
    NewGroup

    Examples
    --------
    >>> print(new_group_interval([0.02, 0.05, -0.01, 0.04], [0.01, 0.02, 0.01, 0.02]))
    value of a new group: 95% interval -0.0898 to 0.1317, center 0.0209
    standard deviation between the 4 groups: tau = 0.0221
    """
    refuse_bad_level(level)
    value, error = (
        np.asarray(to_array(each, name), dtype=np.float64)
        for each, name in ((estimates, "estimates"), (errors, "errors"))
    )
    if value.ndim != 1 or value.shape != error.shape or value.size < _FEWEST:
        message = (
            "estimates and errors must have one value for each of 3 groups or more: their shapes "
            f"are {value.shape} and {error.shape}."
        )
        raise InputError(message)
    if not (np.isfinite(value).all() and np.isfinite(error).all() and (error > 0).all()):
        message = "estimates must be finite numbers, and errors finite numbers above 0."
        raise InputError(message)
    return _predicted(value, error**2, level, "value")


def _predicted(value: FloatArray, variance: FloatArray, level: float, what: str) -> NewGroup:
    weight = 1 / variance
    total = weight.sum()
    heterogeneity = float(weight @ (value - weight @ value / total) ** 2)
    between = heterogeneity - (value.size - 1)
    tau_sq = max(0.0, between / float(total - weight @ weight / total))
    weight = 1 / (variance + tau_sq)
    mean = float(weight @ value / weight.sum())
    half = student_reach(value.size - 1, level) * float(np.sqrt(tau_sq + 1 / weight.sum()))
    tau = float(np.sqrt(tau_sq))
    return NewGroup(mean, mean - half, mean + half, tau, value.size, level, what)


class NewGroupCalibration(NamedTuple):
    """The prediction intervals of the mean gap and of SMECE in a new group."""

    gap: NewGroup
    smece: NewGroup


def new_group(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    bins: BinsLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> NewGroupCalibration:
    r"""Compute how calibrated the model will be in a new group, such as the next hospital.

    The mean of \(p - y\) in each group goes into `new_group_interval`. The errors come from the
    variance of the rows of each bin, pooled over groups.

    The gaps of all bins are assumed to shift together in a new group, by \(u\). Its SMECE is then
    \(\sum_b W_b |\mathrm{gap}_b + u| / W\), with the bins' weights of all groups. The interval of
    SMECE is the range of that sum over the prediction interval of u, extended to that of
    `smece_interval`, which is for the mean over groups.

    Parameters
    ----------
    y_true, y_prob, bins, sample_weight, n_votes, groups
        As in `reliability`; or a table with groups as the only argument. Three groups or more.
    level : float, default=0.95
        The level of the intervals, between 0 and 1.

    Returns
    -------
    NewGroupCalibration
        `gap` and `smece`.

    Examples
    --------
    >>> hospital = [1, 1, 2, 2, 3, 3, 4, 4]
    >>> p = [0.2, 0.6, 0.3, 0.9, 0.4, 0.8, 0.2, 0.7]
    >>> y = [0.1, 0.7, 0.2, 0.7, 0.5, 0.6, 0.1, 0.8]
    >>> print(new_group(y, p, groups=hospital, bins=2).gap)
    gap of a new group: 95% interval -0.1363 to 0.2363, center 0.0500
    standard deviation between the 4 groups: tau = 0.0000
    """
    refuse_bad_level(level)
    rel = table_of(
        "new_group", y_true, y_prob, bins=bins, sample_weight=sample_weight, n_votes=n_votes,
        groups=groups,
    )  # fmt: skip
    refuse_no_rows(rel)
    if not shows_groups(rel) or not isinstance(rel.groups, Groups):
        message = (
            f"new_group needs the sums of {_FEWEST} groups or more, and of at most {MAX_GROUPS:,}: "
            "pass groups=, or a table or set built with groups by this version of softcal."
        )
        raise InputError(message)
    own = rel.groups
    s = rel.sums
    # The variance of rows around the gap of their bin, per weight.
    alone = np.maximum(residual_variance(s) - s.weight_sq * gaps_of(s) ** 2, noise_floor(s))
    per_weight = alone / np.where(s.weight > 0, s.weight, 1.0)
    residual, weight = own.values
    residual, weight, variance = (
        np.bincount(own.owner, each) for each in (residual, weight, weight * per_weight[own.place])
    )
    least = 1e-6 * max(float(variance.sum() / weight.sum()), 1e-6)  # in a group of exact labels
    gap = _predicted(residual / weight, np.maximum(variance / weight, least) / weight, level, "gap")
    return NewGroupCalibration(gap, _shifted(rel, gap))


def shows_groups(rel: Reliability) -> bool:
    """Return whether a table has the sums of single groups, and enough of them."""
    own = rel.groups
    return isinstance(own, Groups) and own.count >= _FEWEST and not own.share_places


def _shifted(rel: Reliability, gap: NewGroup) -> NewGroup:
    """Return the range of SMECE while all bins shift by what the gap of a new group may differ."""
    s, mean = rel.sums, smece_interval(rel, level=gap.level)
    ends = np.array([gap.low, gap.high]) - gap.value
    # The sum of absolute gaps is convex, so its minimum is at an end, or where a gap is 0.
    at = np.concatenate((ends, np.clip(-gaps_of(s), *ends)))
    found = np.abs(s.residual + at[:, None] * s.weight).sum(axis=1) / s.weight.sum()
    low, high = min(float(found.min()), mean.low), max(float(found[:2].max()), mean.high)
    return replace(gap, value=mean.value, low=low, high=min(high, 1.0), what="SMECE")
