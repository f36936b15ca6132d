"""Check a limit of the calibration error by its interval: pass, fail, or undecided."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf
from typing import TYPE_CHECKING, Literal

import numpy as np

from softcal import _display
from softcal._validation.rules import is_whole, real
from softcal.exceptions import InputError
from softcal.inference.intervals import gap_intervals, smece_interval
from softcal.table.reliability import refuse_no_rows, table_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from softcal.bins import BinsLike
    from softcal.table.reliability import Reliability

Outcome = Literal["pass", "fail", "undecided"]

_WORST_FIRST: tuple[Outcome, ...] = ("fail", "undecided", "pass")
_MOST_ROWS = 1e12  # above this, advice on more rows is not useful


@dataclass(frozen=True, repr=False)
class Check(_display.Printed):
    """The result of `check`.

    Attributes
    ----------
    outcome : str
        "pass" if every upper limit is at most its maximum, "fail" if a lower limit is above it,
        else "undecided".
    reasons : tuple of str
        One sentence per judgment, worst first.
    more_rows : int or None
        The approximate number of additional rows that would decide, if undecided; None if unknown.
    """

    outcome: Outcome
    reasons: tuple[str, ...]
    more_rows: int | None

    def __repr__(self) -> str:
        return f"Check({self.outcome!r})"

    def _shown(self) -> _display.Shown:
        return "\n".join((self.outcome.upper(), *self.reasons)), [], []


@dataclass(frozen=True)
class _Judged:
    """One interval against one limit."""

    outcome: Outcome
    reason: str
    more_rows: float


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
    SMECE 0.0952 (95% interval 0.0807 to 0.1063) may be above or below 0.1. About
    4,300 more rows would decide.
    """
    rel = table_of(
        "check", y_true, y_prob, bins=bins, sample_weight=sample_weight, n_votes=n_votes,
        groups=groups,
    )  # fmt: skip
    refuse_no_rows(rel)
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
    if max_smece is not None and max_gap is not None:  # both hold together (Bonferroni)
        level = (1 + level) / 2
    judged = []
    if max_smece is not None:
        judged.append(_judge_smece(rel, real(max_smece), level))
    if max_gap is not None:
        judged += _judge_gaps(rel, real(max_gap), min_rows, level)
    judged.sort(key=lambda each: _WORST_FIRST.index(each.outcome))
    outcome = judged[0].outcome
    more = max(each.more_rows for each in judged)
    decided = outcome != "undecided" or more > _MOST_ROWS
    return Check(outcome, tuple(each.reason for each in judged), None if decided else ceil(more))


def _judge_smece(rel: Reliability, limit: float, level: float) -> _Judged:
    found = smece_interval(rel, level=level)
    interval = f"{_display.percent(level)} interval {found.low:.4f} to {found.high:.4f}"
    name = f"SMECE {found.value:.4f} ({interval})"
    return _judged(name, found.low, found.debiased, found.high, limit, rel.n)


def _judge_gaps(rel: Reliability, limit: float, min_rows: int, level: float) -> list[_Judged]:
    """Check each bin with enough rows; bins that pass share one sentence."""
    low, high = gap_intervals(rel, level=level, simultaneous=True)
    enough = rel.count >= min_rows
    out = []
    for b in np.flatnonzero(enough):
        sign = 1 if rel.gap[b] >= 0 else -1
        least, most = sorted((sign * low[b], sign * high[b]))
        left, right = rel.bins.edges[b : b + 2]
        interval = f"interval {low[b]:+.4f} to {high[b]:+.4f}"
        name = (
            f"The gap of predictions in {left:.4g} to {right:.4g}, {rel.gap[b]:+.4f} ({interval})"
        )
        out.append(_judged(name, least, abs(rel.gap[b]), max(most, -least), limit, rel.n))
    few = int((~enough & (rel.count > 0)).sum())
    bins = "1 bin has" if few == 1 else f"{few} bins have"
    verb = "is" if few == 1 else "are"
    said = f" {bins} fewer than {min_rows:,} rows and {verb} not judged." if few else ""
    passed = [each for each in out if each.outcome == "pass"]
    rest = [each for each in out if each.outcome != "pass"]
    if not out:
        reason = f"No bin has {min_rows:,} rows, so no gap is judged."
        return [_Judged("undecided", reason, float(min_rows * rel.n / rel.count.max() - rel.n))]
    if passed:
        gaps = "gap of 1 bin is" if len(passed) == 1 else f"gaps of {len(passed)} bins are"
        rest.append(_Judged("pass", f"The {gaps} at most {limit:g}.{said}", 0.0))
    return rest


def _judged(name: str, low: float, value: float, high: float, limit: float, n: int) -> _Judged:
    """Compare an interval with a limit, and estimate how many more rows would decide."""
    if high <= limit:
        return _Judged("pass", f"{name} is at most {limit:g}.", 0.0)
    if low > limit:
        return _Judged("fail", f"{name} is above {limit:g}.", 0.0)
    reach = high - value if value <= limit else value - low
    distance = abs(limit - value)
    needed = (
        n * (reach / distance) ** 2 - n if distance > 1e-9 else inf
    )  # width falls with 1/sqrt(n)
    if needed > _MOST_ROWS:
        advice = "The estimate is at the limit, so more rows may not decide."
    else:
        advice = f"About {_rounded(needed):,} more rows would decide."
    return _Judged("undecided", f"{name} may be above or below {limit:g}. {advice}", needed)


def _rounded(rows: float) -> int:
    """Round up to two digits, because the number is a forecast."""
    step: int = 10 ** max(len(str(ceil(rows))) - 2, 0)
    return ceil(rows / step) * step


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
