"""Check a limit of the calibration error by its interval: pass, fail, or undecided."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, inf
from typing import TYPE_CHECKING, Literal

import numpy as np

from softcal import _display
from softcal._validation.rules import is_whole, real, refuse_bad_level
from softcal.exceptions import InputError
from softcal.inference.gaps import gap_intervals
from softcal.inference.intervals import normal_reach
from softcal.inference.smece import smece_interval
from softcal.table.reliability import refuse_no_rows, table_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from softcal.bins import BinsLike
    from softcal.table.reliability import Reliability

Outcome = Literal["pass", "fail", "undecided"]

_WORST_FIRST: tuple[Outcome, ...] = ("fail", "undecided", "pass")
_MOST_ROWS = 1e12  # that a bin can be asked to have

_FAILS = 0.2  # the largest probability that advised data do not decide
_MOST_TIMES = 100  # the data at hand; a forecast beyond is not credible


@dataclass(frozen=True, repr=False)
class Check(_display.Printed):
    """The result of `check`.

    Attributes
    ----------
    outcome : str
        "pass" if every upper limit is at most its maximum, "fail" if a lower limit is above it,
        else "undecided".
    reasons : tuple of str
        One sentence per judgment, worst first. If undecided, the last one is about more data.
    more_rows, more_groups, more_raters : int or None
        About how many more would decide, if undecided. In simulations, so many decide in at least
        80% of cases; see `check`. With groups, `more_groups` counts, and `more_rows` is None. With
        raters, `more_rows` and `more_raters` are needed together. None if no number is known.
    """

    outcome: Outcome
    reasons: tuple[str, ...]
    more_rows: int | None = None
    more_groups: int | None = None
    more_raters: int | None = None

    def __repr__(self) -> str:
        return f"Check({self.outcome!r})"

    def _shown(self) -> _display.Shown:
        return "\n".join((self.outcome.upper(), *self.reasons)), [], []


@dataclass(frozen=True)
class _Judged:
    """One interval against one limit."""

    outcome: Outcome
    reason: str
    distance: float = 0.0  # of the estimate to the limit, in units of the limit
    reach: float = inf  # of the interval from the estimate, likewise
    z: float = 1.0  # the reach in standard errors


def check(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    max_smece: float | None = None,
    max_gap: float | None = None,
    min_rows: int = 100,
    bins: BinsLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> Check:
    r"""Check whether the calibration error is below a limit, given its uncertainty.

    With the interval \([l, h]\) of SMECE and the limit m: "pass" if \(h \le m\), "fail" if
    \(l > m\), else "undecided". Consider a model whose error equals the limit. If the interval
    keeps its coverage, the model passes with probability at most \((1 - \mathrm{level})/2\), and
    fails with at most the same probability. With two limits, the intervals hold simultaneously:
    each has the level \((1 + \mathrm{level})/2\).

    An undecided check states how many more rows would decide, if the data allow such a forecast. No
    number of rows decides if the true error equals the limit. There is therefore no number if the
    80% interval of the error includes the limit, if the reach of the interval is longer than the
    limit, or if the number is above 100 times the rows at hand.

    Parameters
    ----------
    y_true, y_prob, bins, sample_weight, n_votes, groups, level
        As in `smece_interval`.
    max_smece : float, optional
        The largest acceptable SMECE.
    max_gap : float, optional
        The largest acceptable gap of a bin, in either direction. The intervals of all bins hold
        simultaneously.
    min_rows : int, default=100
        Bins with fewer rows are not judged by `max_gap`.

    Returns
    -------
    Check
        The outcome and the reasons.

    Examples
    --------
    >>> from softcal.datasets import lidc_malignancy
    >>> d = lidc_malignancy()
    >>> y, p, votes = d["soft_malignant"], d["prob_rf_all"], d["n_readers"]
    >>> check(y, p, n_votes=votes, max_smece=0.12)
    Check('pass')
    >>> print(check(y, p, n_votes=votes, max_smece=0.1))
    UNDECIDED
    SMECE 0.0952 (95% interval 0.0812 to 0.1063) may be above or below 0.1.
    These data do not show how many more rows would decide.
    """
    rel = table_of(
        "check", y_true, y_prob, bins=bins, sample_weight=sample_weight, n_votes=n_votes,
        groups=groups,
    )  # fmt: skip
    error = _display.error_name(hard_labels=rel.has_hard_labels)
    return check_table(rel, error, max_smece, max_gap, min_rows=min_rows, level=level)


def check_table(
    rel: Reliability, error: str, max_smece: float | None, max_gap: float | None, *,
    min_rows: int, level: float,
) -> Check:  # fmt: skip
    """Check a table as `check` does; `error` is what the reasons call the error."""
    refuse_no_rows(rel)
    refuse_bad_level(level)
    _refuse_bad_limits(max_smece, max_gap, min_rows)
    if max_smece is not None and max_gap is not None:  # both hold simultaneously (Bonferroni)
        level = (1 + level) / 2
    judged = []
    if max_smece is not None:
        judged.append(_judge_smece(rel, error, real(max_smece), level))
    if max_gap is not None:
        judged += _judge_gaps(rel, real(max_gap), min_rows, level)
    judged.sort(key=lambda each: _WORST_FIRST.index(each.outcome))
    if judged[0].outcome == "undecided":
        return _undecided(rel, judged)
    return Check(judged[0].outcome, tuple(each.reason for each in judged))


def _refuse_bad_limits(max_smece: float | None, max_gap: float | None, min_rows: int) -> None:
    if max_smece is None and max_gap is None:
        message = "name a limit: max_smece, max_gap, or both."
        raise InputError(message)
    for name, limit in (("max_smece", max_smece), ("max_gap", max_gap)):
        if limit is not None and not 0 < real(limit) < 1:
            message = f"{name} must be above 0 and below 1: got {limit!r:.60}."
            raise InputError(message)
    if not is_whole(min_rows) or not 1 <= min_rows <= _MOST_ROWS:
        message = f"min_rows must be a whole number from 1 to {_MOST_ROWS:g}: got {min_rows!r:.60}."
        raise InputError(message)


def _undecided(rel: Reliability, judged: list[_Judged]) -> Check:
    """Return the result of an undecided check, with advice on more data."""
    times = _times_to_decide([each for each in judged if each.outcome == "undecided"])
    more = {} if times is None else amounts(rel, times - 1)
    advice = "These data do not show how many more rows would decide."
    if more:
        advice = f"About {amounts_text(more, 'more ')} would decide."
    named = {f"more_{unit}s": number for unit, number in more.items()}
    return Check("undecided", (*(each.reason for each in judged), advice), **named)


def _times_to_decide(judged: list[_Judged]) -> float | None:
    r"""Return by which factor to enlarge the data so that all judgments are probably decided.

    An interval has the reach z s, with s the standard error, which falls with \(1/\sqrt n\). With a
    probability of 90%, the true error is no nearer to the limit than d = distance - 1.28 s. If it
    is that near, f times the data decide with a probability of 90% if
    \((z + 1.28) s / \sqrt f \le d\). Both hold with a probability of at least 80%. For k
    judgments, the probabilities of an error are divided by k.

    Return None if d is not above 0, or if the factor is above 100. The same holds if the interval
    reaches farther than the limit: errors are mostly of the size of the limit, so that the
    estimate then says little about the distance.
    """
    part = normal_reach(_FAILS / 2 / len(judged))
    times = 0.0
    for each in judged:
        left = each.z * each.distance - part * each.reach
        if each.reach > 1 or left <= 0:
            return None
        times = max(times, ((each.z + part) * each.reach / left) ** 2)
    return times if times <= _MOST_TIMES else None


def amounts(rel: Reliability, times: float) -> dict[str, int]:
    """Return how many rows, groups, or rows and raters are a multiple of those of a table.

    With groups or raters, their number determines the width of intervals. The numbers are rounded
    up to two digits, because they are forecasts.
    """
    own = {"row": rel.n} if rel.clusters is None else {"group": rel.clusters.count}
    if rel.raters is not None and rel.ties is not None:
        own["rater"] = rel.raters.count
    return {unit: _rounded(times * n) for unit, n in own.items()}


def amounts_text(found: dict[str, int], more: str = "") -> str:
    """Write what `amounts` returns.

    >>> amounts_text({"row": 1200, "rater": 1}, "more ")
    '1,200 more rows with the votes of 1 more rater'
    """
    return " with the votes of ".join(_display.counted(n, more + unit) for unit, n in found.items())


def _judge_smece(rel: Reliability, error: str, limit: float, level: float) -> _Judged:
    found = smece_interval(rel, level=level)
    interval = f"{_display.percent(level)} interval {found.low:.4f} to {found.high:.4f}"
    name = f"{error} {found.value:.4f} ({interval})"
    z = normal_reach((1 - level) / 2)
    return _judged(name, (found.low, found.debiased, found.high), limit, z)


def _judge_gaps(rel: Reliability, limit: float, min_rows: int, level: float) -> list[_Judged]:
    """Check each bin with enough rows; bins that pass share one sentence."""
    low, high = gap_intervals(rel, level=level, simultaneous=True)
    enough = rel.count >= min_rows
    z = normal_reach((1 - level) / 2 / int((rel.count > 0).sum()))
    out = []
    for b in np.flatnonzero(enough):
        sign = 1 if rel.gap[b] >= 0 else -1
        least, most = sorted((sign * low[b], sign * high[b]))
        left, right = rel.bins.edges[b : b + 2]
        interval = f"interval {low[b]:+.4f} to {high[b]:+.4f}"
        name = (
            f"The gap of predictions in {left:.4g} to {right:.4g}, {rel.gap[b]:+.4f} ({interval})"
        )
        out.append(_judged(name, (least, abs(rel.gap[b]), max(most, -least)), limit, z))
    few = int((~enough & (rel.count > 0)).sum())
    bins = "1 bin has" if few == 1 else f"{few} bins have"
    verb = "is" if few == 1 else "are"
    said = f" {bins} fewer than {min_rows:,} rows and {verb} not judged." if few else ""
    passed = [each for each in out if each.outcome == "pass"]
    rest = [each for each in out if each.outcome != "pass"]
    if not out:
        return [_Judged("undecided", f"No bin has {min_rows:,} rows, so no gap is judged.")]
    if few:  # with more rows, these bins are judged too
        rest = [replace(each, reach=inf) for each in rest]
    if passed:
        gaps = "gap of 1 bin is" if len(passed) == 1 else f"gaps of {len(passed)} bins are"
        rest.append(_Judged("pass", f"The {gaps} at most {limit:g}.{said}"))
    return rest


def _judged(name: str, interval: tuple[float, float, float], limit: float, z: float) -> _Judged:
    """Compare an interval, which reaches z standard errors from its estimate, with a limit."""
    low, value, high = interval
    if high <= limit:
        return _Judged("pass", f"{name} is at most {limit:g}.")
    if low > limit:
        return _Judged("fail", f"{name} is above {limit:g}.")
    distance, reach = abs(limit - value) / limit, max(high - value, value - low) / limit
    return _Judged("undecided", f"{name} may be above or below {limit:g}.", distance, reach, z)


def _rounded(number: float) -> int:
    """Round up to two digits."""
    step: int = 10 ** max(len(str(ceil(number))) - 2, 0)
    return ceil(number / step) * step


def assert_calibrated(
    y_true: npt.ArrayLike | Reliability,
    y_prob: npt.ArrayLike | None = None,
    *,
    max_smece: float | None = None,
    max_gap: float | None = None,
    min_rows: int = 100,
    undecided: Literal["pass", "fail"] = "fail",
    bins: BinsLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> None:
    """Raise an AssertionError unless `check` passes, for use in tests.

    Parameters
    ----------
    y_true, y_prob, max_smece, max_gap, min_rows, bins, sample_weight, n_votes, groups, level
        As in `check`.
    undecided : {"fail", "pass"}, default="fail"
        The outcome of an undecided check.

    Raises
    ------
    AssertionError
        With the reasons, if the check fails.

    Examples
    --------
    >>> from softcal.datasets import lidc_malignancy
    >>> d = lidc_malignancy()
    >>> assert_calibrated(
    ...     d["soft_malignant"], d["prob_rf_all"], n_votes=d["n_readers"], max_smece=0.12)
    """
    if not isinstance(undecided, str) or undecided not in ("pass", "fail"):
        message = f"undecided must be 'pass' or 'fail': got {undecided!r:.60}."
        raise InputError(message)
    found = check(
        y_true, y_prob, max_smece=max_smece, max_gap=max_gap, min_rows=min_rows, bins=bins,
        sample_weight=sample_weight, n_votes=n_votes, groups=groups, level=level,
    )  # fmt: skip
    if found.outcome == "fail" or (found.outcome == "undecided" and undecided == "fail"):
        raise AssertionError(str(found))
