"""Monitor calibration over time, with evidence and bands that are valid at all times.

Let r = y - p, in [-1, 1]. The claim to test is that the mean of r, given p and the past, is at most
e in size. For every rate l in (0, 1) and every g in [-1, 1] that is known before the row,

    E exp(l (g r - e |g|) - psi(l) g^2 r^2) <= 1,    psi(l) = -log(1 - l) - l

(Fan, Grama, and Liu 2015; Howard et al. 2021). If r >= -u, psi(l u) / u^2 may replace psi(l). The
labels y, whose convex functions are largest for outcomes of the same mean m, also have

    E exp(h y - log(1 + m (exp(h) - 1))) <= 1    for every h.

The logarithm is concave in m, so the mean m of a bin may replace those of its rows. The product
over rows is a nonnegative supermartingale, whose maximum reaches 1/a with probability at most a
(Ville). Its exponent needs only sums that a table keeps. Averages over rates, signs, patterns g,
and start days keep the property, and so do rates that depend on the days before.

The rows of a group in one update may depend on each other in any way. They are one step, whose
residual is X = sum of g_b R_b over the bins b, with R_b the group's sum of r in the bin. If M is at
least the weight of every group, X / M is in [-1, 1] and takes the place of g r. For a pattern of
signs, which differs from bin to bin, X^2 is at most k times the sum of R_b^2, with k the number of
the group's bins (Cauchy and Schwarz).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, inf, log, nan
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from softcal import _display
from softcal._validation.days import ALIKE, CLEAR, NUMBERS, Day, day_of
from softcal._validation.rules import (
    LARGEST_WEIGHT,
    SMALLEST_WEIGHT,
    real,
    refuse_bad_level,
)
from softcal.exceptions import BinMismatchError, InputError, InputTypeError
from softcal.inference.intervals import mean_prob
from softcal.table.reliability import Reliability
from softcal.table.tableset import MISSING, TableSet

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from softcal._validation.inputs import FloatArray
    from softcal.bins import Bins
    from softcal.table.kernel import Sums
    from softcal.table.owners import Clusters

# The best rate is near excess / variance: 0.7 finds gross errors in few rows, 0.002 small ones in
# millions. Each of the few patterns over all bins has many rates, each of the many bins has few.
_RATES: FloatArray = 0.7 * 1.5 ** -np.arange(16.0)
_BIN_RATES: FloatArray = 0.5 * 3.0 ** -np.arange(6.0)
# An error is to be found within about this number of days. The shorter, the larger the rate.
_DAYS: FloatArray = 2.0 * 4.0 ** np.arange(6.0)
_DAYS_SHARE: FloatArray = 0.5 ** np.arange(6.0) / (0.5 ** np.arange(6.0)).sum()
_SOUGHT = 10.0  # log evidence within these days, in natural units
_LARGEST_RATE = 0.7
_FIRST_VARIANCE = 50.0  # of the residuals of a day, before the first
_MOST_STARTS = 64  # start days kept to date an error; older ones are farther apart
_BINS_SHARE = 0.2  # of the evidence, for errors of bins
_FIRST_SHARE = 0.25  # of the rest, for errors that begin on the first day
_HORIZON = 100.0  # half of the errors that begin later begin after this number of days
_WHOLE_SHARE, _LATE_SHARE = 0.5, 0.25  # of the evidence, if segments are watched too

Date = str | int
"""A number, a date, or a time as text; or the number of the update."""

_WORDS = (("too high", "too low"), ("too extreme", "not extreme enough"))
_LARGEST = 709.0  # the logarithm of the largest float64


class StreamName(NamedTuple):
    """A model and, for a segment, its column and value."""

    model: str
    column: str | None = None
    value: str | None = None


def _costs(rates: FloatArray) -> FloatArray:
    r"""Return \(\psi(\lambda) = -\log(1 - \lambda) - \lambda\)."""
    return -np.log1p(-rates) - rates


def largest_sum(variance: FloatArray, log_evidence: float) -> FloatArray:
    r"""Return the sum at which the mixture over the rates reaches a log evidence.

    With v the sum of \(r^2\), a sum of \(r - E\,r\) ever exceeds it with probability at most
    \(\exp(-\mathrm{log\_evidence})\).
    """
    needed = log_evidence + log(_RATES.size)
    costs = np.multiply.outer(variance, _costs(_RATES))
    at: FloatArray = ((needed + costs) / _RATES).min(axis=-1)
    step = at
    while (np.abs(step) > 1e-12 * at).any():
        # The mixture is convex in the sum: Newton's steps from above stay above.
        terms = np.multiply.outer(at, _RATES) - costs
        value = np.logaddexp.reduce(terms, axis=-1)
        step = (value - needed) / (np.exp(terms - value[..., None]) * _RATES).sum(axis=-1)
        at = at - step
    return at


class _Sums(NamedTuple):
    """Sums of the rows so far, per bin and for two patterns over the bins: level and tilt.

    `bins` has the lines: sum of r, of weights, of r^2. `patterns` has, for each pattern g, the sums
    of g r, of |g| times the weight, and of g^2 r^2.
    """

    bins: FloatArray  #     (3, bins)
    patterns: FloatArray  # (3, 2)

    def since(self, start: _Sums) -> _Sums:
        return _Sums(self.bins - start.bins, self.patterns - start.patterns)


class _Mixture:
    """Rates with equal weights and both signs; `sums` has the lines of `_Sums`."""

    def __init__(self, rates: FloatArray, tolerance: float) -> None:
        self.size = 2 * rates.size  # the number of exponents that are averaged
        self._factors = np.array([rates, -tolerance * rates, -_costs(rates)]).T
        self._twice = -2 * rates[:, None]

    def terms(self, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the exponents of the likelier sign, and 1 + the ratio of the other sign to it.

        Both have a line for each rate and a column for each column of the sums.
        """
        lines = sums.copy()
        np.abs(lines[0], out=lines[0])
        terms: FloatArray = self._factors @ lines
        signs: FloatArray = np.exp(self._twice * lines[0])
        signs += 1
        return terms, signs

    def log_evidence(self, sums: FloatArray) -> FloatArray:
        """Return the log evidence of each column: the mean over rates and both signs."""
        terms, signs = self.terms(sums)
        out: FloatArray = np.logaddexp.reduce(terms + np.log(signs), axis=0) - log(self.size)
        return out

    @staticmethod
    def together(terms: FloatArray, signs: FloatArray) -> FloatArray:
        """Return the log evidence of each rate if every column has a sign of its own."""
        out: FloatArray = (terms + np.log(signs)).sum(axis=1) - terms.shape[1] * log(2)
        return out


def _evidence_of_bins(bins: FloatArray, tolerance: float) -> tuple[FloatArray, float]:
    """Return the log evidence of each bin, and that of all bins with a sign each and one rate."""
    mixture = _Mixture(_BIN_RATES, tolerance)
    together = np.logaddexp.reduce(mixture.together(*mixture.terms(bins))) - log(_BIN_RATES.size)
    return mixture.log_evidence(bins), float(together)


def _evidence_of_arms(sums: _Sums, tolerance: float) -> FloatArray:
    """Return the log evidence of level, tilt, all bins together, and one bin of all."""
    single, together = _evidence_of_bins(sums.bins, tolerance)
    one = float(np.logaddexp.reduce(single)) - log(single.size)
    patterns = _Mixture(_RATES, tolerance).log_evidence(sums.patterns)
    return np.array([*patterns, together, one])


class _Start(NamedTuple):
    """A day on which an error may have begun, and the sums of the rows before it."""

    day: int
    date: Date
    before: _Sums


class _Stream:
    """A growing table: its running sums, its evidence, and possible start days of an error."""

    def __init__(self, bins: Bins, tolerance: float) -> None:
        self.bins = bins
        self._tolerance = tolerance
        self._of_bins = _Mixture(_BIN_RATES, tolerance)
        self._middles = (bins.edges[:-1] + bins.edges[1:]) / 2
        self._moments = np.array([np.ones(len(bins)), self._middles, self._middles**2])
        self.n = self._looks = 0
        self._are_outcomes = False  # all labels so far are 0 or 1, without weights
        self.sums = _Sums(np.zeros((3, len(bins))), np.zeros((3, 2)))
        self.starts: list[_Start] = []
        # The log evidence of each pattern, sign, and rate, over the starts so far.
        self._since = np.full((2, 2, _DAYS.size), log(_FIRST_SHARE))
        self.log_evidence = self.highest = 0.0
        self.alarm: tuple[int, Date] | None = None  # the first update in which it raised one
        self.smece_new = nan
        self.has_hard_labels = True

    def update(self, rel: Reliability, day: int, date: Date, max_weight: float) -> None:
        """Add the rows of a day."""
        n = rel.n
        self.smece_new = nan
        if not n:
            return
        self._add_start(_Start(day, date, self.sums))
        self.has_hard_labels &= rel.has_hard_labels
        s = rel.sums
        patterns = np.array([np.ones_like(self._middles), self._tilt()])
        of_bins, of_patterns = _squares(rel, patterns)
        new = np.array([s.residual, s.weight, of_bins])
        new /= np.array([[-max_weight], [max_weight], [max_weight**2]])
        self.smece_new = _smece(new)
        of_patterns = of_patterns / max_weight**2
        added = np.array([patterns @ new[0], np.abs(patterns) @ new[1], of_patterns])
        gained = self._gained(patterns, s, new, None if rel.ties is None else added)
        self.sums = _Sums(self.sums.bins + new, self.sums.patterns + added)
        are_outcomes = (
            rel.ties is None and not s.label_var.any() and bool((s.weight == s.count).all())
        )
        self._are_outcomes = are_outcomes and (self._are_outcomes or self.n == 0)
        self.n += n
        self._look(gained)

    def _add_start(self, start: _Start) -> None:
        """Keep a start day; if there are too many, drop the nearest to its neighbors by age."""
        self.starts.append(start)
        if len(self.starts) > _MOST_STARTS:
            days = np.array([each.day for each in self.starts])
            crowding = (days[2:] - days[:-2]) / (days[-1] + 1 - days[1:-1])
            del self.starts[1 + int(crowding.argmin())]

    def _tilt(self) -> FloatArray:
        """Return the pattern of predictions that are too extreme, from the days before."""
        weight, total, square = self._moments @ self.sums.bins[1]
        center, reach = 0.5, 0.5
        if weight:
            center = total / weight
            reach = max(2 * max(square / weight - center**2, 0.0) ** 0.5, 1e-3)
        out: FloatArray = ((self._middles - center) / reach).clip(-1.0, 1.0)
        return out

    def _gained(
        self, patterns: FloatArray, s: Sums, new: FloatArray, of_groups: FloatArray | None
    ) -> FloatArray:
        """Return the log evidence that the rows of a day add, per pattern, sign, and rate."""
        variance = (_FIRST_VARIANCE + self.sums.patterns[2, 0]) / (self._looks + 1)
        rates = np.minimum(np.sqrt(2 * _SOUGHT / variance / _DAYS), _LARGEST_RATE)
        if of_groups is not None:
            total, weight, square = of_groups[:, :, None]
            lost = self._tolerance * weight * rates + square * _costs(rates)
            return np.stack([total * rates - lost, -total * rates - lost], axis=1)
        bets = patterns[:, None, None] * np.multiply.outer([1.0, -1.0], rates)[..., None]
        if self._are_outcomes:
            prob = mean_prob(s)
            mean = (prob + self._tolerance * np.sign(bets)).clip(0.0, 1.0)
            label = new[0] + prob * new[1]
            found: FloatArray = bets @ label - np.log1p(mean * np.expm1(bets)) @ new[1]
        else:
            size = np.abs(bets)
            reach = np.where(bets > 0, self.bins.edges[1:], 1 - self.bins.edges[:-1])
            costs = _costs(size * reach) / reach**2
            found = bets @ new[0] - self._tolerance * (size @ new[1]) - costs @ new[2]
        return found

    def _look(self, gained: FloatArray) -> None:
        """Average the evidence of patterns since each start, and of the bins over all rows."""
        # An error begins after day k with probability _HORIZON / (_HORIZON + k).
        before, self._looks = _later(self._looks), self._looks + 1
        self._since = np.logaddexp(self._since, log(before - _later(self._looks))) + gained
        single, signs = self._of_bins.terms(self.sums.bins)
        together = self._of_bins.together(single, signs)
        # All on one scale, relative to the largest exponent.
        top = max(0.0, self._since.max(), single.max(), together.max())
        since = (np.exp(self._since - top) @ _DAYS_SHARE).mean() + _later(self._looks) * exp(-top)
        scaled = np.exp(np.maximum(single - top, -700.0))  # smaller numbers are slow
        one = np.vdot(scaled, signs) / self._of_bins.size / self.sums.bins.shape[1]
        of_bins = (np.exp(together - top).mean() + one) / 2
        mean = _BINS_SHARE * of_bins + (1 - _BINS_SHARE) * since
        self.log_evidence = float(top + log(mean))
        self.highest = max(self.highest, self.log_evidence)


def _squares(rel: Reliability, patterns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return sums of squared residuals, per bin for any signs of the bins, and per pattern."""
    if rel.ties is None or rel.ties.sums is None:
        square = rel.sums.residual_var
        return square, patterns**2 @ square
    groups = rel.ties.sums
    residual = groups.matrix(groups.values[0], len(rel.bins))
    several = np.bincount(groups.owner, minlength=groups.count)
    return residual.power(2).T @ several, ((residual @ patterns.T) ** 2).sum(axis=0)


def _later(day: int) -> float:
    """Return the share of the evidence for errors that begin after a day."""
    return (1 - _FIRST_SHARE) * _HORIZON / (_HORIZON + day)


@dataclass(frozen=True, eq=False, repr=False)
class StreamState(_display.Printed):
    """One model, or one segment of it, as seen by `Watch` after an update.

    Attributes
    ----------
    model, column, value : str or None
        The model, and the column and value of the segment. Column and value are None for all rows.
    n : int
        The number of rows so far.
    log_evidence : float
        Natural logarithm of `evidence`.
    alarm_at : float
        The evidence at which this stream alone raises an alarm. It is larger than that of the
        `Watch`, whose error rate all models and segments share.
    alarm_date : str or int or None
        The date on which this stream alone first raised an alarm.
    smece_new : float
        SMECE of the rows of this update alone; NaN without rows.
    edges : ndarray
        The edges of the bins.
    has_hard_labels : bool
        Whether every label so far is exactly 0 or 1.
    """

    model: str
    column: str | None
    value: str | None
    n: int
    log_evidence: float
    alarm_at: float
    alarm_date: Date | None
    smece_new: float
    edges: FloatArray
    has_hard_labels: bool
    _level: float
    _tolerance: float
    _sums: _Sums
    _starts: tuple[_Start, ...]

    @property
    def alarm(self) -> bool:
        """Whether this stream alone has raised an alarm, now or earlier."""
        return self.alarm_date is not None

    @property
    def evidence(self) -> float:
        """The evidence against calibration within the tolerance; its mean is at most 1 under it."""
        return _exp(self.log_evidence)

    # All rows so far

    @property
    def smece(self) -> float:
        """SMECE of all rows so far; NaN before the first."""
        return _smece(self._sums.bins)

    @property
    def low(self) -> float:
        """Lower end of a band of SMECE that holds simultaneously at all times."""
        return max(self.smece - self._reach, 0.0)

    @property
    def high(self) -> float:
        """Upper end of the band."""
        return min(self.smece + self._reach, 1.0)

    @cached_property
    def _reach(self) -> float:
        return self._reach_of(self._sums) if self.n else nan

    def _reach_of(self, sums: _Sums, share: float = 1.0) -> float:
        """Return the reach of the band of SMECE, which has a share of the probability to miss."""
        # SMECE is the largest sum over all patterns of signs: bound all of them at once.
        _, weight, variance = sums.bins
        needed = (weight > 0).sum() * log(2) - log((1 - self._level) * share)
        return float(largest_sum(variance.sum(), needed) / weight.sum())

    @property
    def gap(self) -> FloatArray:
        """Mean prediction minus mean label in each bin; NaN if a bin has no rows."""
        return _gaps(self._sums)

    @property
    def gap_low(self) -> FloatArray:
        """Lower ends of a band of the gaps that holds for all bins simultaneously at all times."""
        return np.maximum(self.gap - self._gap_reach(self._sums), -1.0)

    @property
    def gap_high(self) -> FloatArray:
        """Upper ends of the band."""
        return np.minimum(self.gap + self._gap_reach(self._sums), 1.0)

    def _gap_reach(self, sums: _Sums, share: float = 1.0) -> FloatArray:
        """Return the reach of the band of each gap, with a share of the probability to miss."""
        _, weight, variance = sums.bins
        needed = log(2 * weight.size) - log((1 - self._level) * share)
        return _per(largest_sum(variance, needed), weight)

    # The rows since the error began

    @cached_property
    def _begin(self) -> tuple[_Start, _Sums]:
        """Return the start with the most evidence since, and the sums since."""
        since = [self._sums.since(start.before) for start in self._starts]
        found = [np.logaddexp.reduce(_evidence_of_arms(each, self._tolerance)) for each in since]
        best = int(np.argmax(found))
        return self._starts[best], since[best]

    @property
    def _start_share(self) -> float:
        """The share of 1 - level of the start, as in `low_since`."""
        day = self._begin[0].day
        return 1 / (day * (day + 1))

    @property
    def since(self) -> Date | None:
        """The date since which the evidence is largest: of an alarm, when the error began.

        Rows up to an alarm raised it, so the error that it found began on its date or earlier: if
        this stream alone has raised one, no later date is considered.
        """
        return self._begin[0].date if self.n else None

    @property
    def direction(self) -> str | None:
        """The direction of the error since then.

        "too high" or "too low" overall, "too extreme", "not extreme enough", or "off in some bins".
        """
        if not self.n:
            return None
        sums = self._begin[1]
        arm = int(_evidence_of_arms(sums, self._tolerance).argmax())
        if arm >= len(_WORDS):
            return "off in some bins"
        return _WORDS[arm][int(sums.patterns[0, arm] > 0)]

    @property
    def gap_since(self) -> float:
        """Mean prediction minus mean label since then."""
        total, weight, _ = self._begin[1].bins.sum(axis=1) if self.n else (nan, nan, nan)
        return float(-total / weight)

    @property
    def smece_since(self) -> float:
        """SMECE of the rows since then."""
        return _smece(self._begin[1].bins) if self.n else nan

    @property
    def low_since(self) -> float:
        r"""Lower end of a band of `smece_since`, valid although the data choose the start.

        The band holds for all starts and at all times simultaneously: the rows since update k have
        the share \(1/(k(k + 1))\) of 1 - level, and these shares add up to at most 1.
        """
        return max(self.smece_since - self._reach_since, 0.0)

    @property
    def high_since(self) -> float:
        """Upper end of the band."""
        return min(self.smece_since + self._reach_since, 1.0)

    @cached_property
    def _reach_since(self) -> float:
        if not self.n:
            return nan
        return self._reach_of(self._begin[1], self._start_share)

    @property
    def bin_gaps_since(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The gap of each bin since then, between the ends of a band as in `low_since`.

        The order is lower end, gap, upper end. The band holds for all bins simultaneously.
        """
        if not self.n:
            return self.gap_low, self.gap, self.gap_high
        gap, reach = _gaps(self._begin[1]), self._gap_reach(self._begin[1], self._start_share)
        return np.maximum(gap - reach, -1.0), gap, np.minimum(gap + reach, 1.0)

    def after(self, earlier: StreamState | None) -> StreamState:
        """Return this state with the SMECE of all rows after an earlier state as `smece_new`."""
        if earlier is None or not earlier.n:
            return replace(self, smece_new=self.smece)
        sums = self._sums.since(earlier._sums)  # noqa: SLF001  of the same class
        return replace(self, smece_new=_smece(sums.bins) if self.n > earlier.n else nan)

    @property
    def bins(self) -> tuple[int, ...]:
        """The bins with the most evidence since then, at most three."""
        if not self.n:
            return ()
        single, _ = _evidence_of_bins(self._begin[1].bins, self._tolerance)
        return tuple(int(b) for b in (-single).argsort(kind="stable")[:3] if single[b] > 0)

    def __repr__(self) -> str:
        return f"StreamState({self.name}, n={self.n}, evidence={self.evidence:.3g})"

    @property
    def name(self) -> str:
        """The name of the model and the segment, for display."""
        if self.column is None:
            return self.model
        return f"{self.model}, {self.column} = {MISSING if self.value is None else self.value}"

    def _shown(self) -> _display.Shown:
        error = _display.error_name(hard_labels=self.has_hard_labels)
        title = (
            f"{_display.printable(self.name)}: {self.n:,} rows, {error} {self.smece:.4f} "
            f"({self.low:.4f} to {self.high:.4f}), evidence {self.evidence:.3g}"
        )
        return title, [], []


@dataclass(frozen=True, eq=False, repr=False)
class WatchState(_display.Printed):
    """The state of a `Watch` after an update.

    Attributes
    ----------
    date : str or int
        The date of the update, or its number.
    n : int
        The number of rows of this update.
    log_evidence : float
        Natural logarithm of `evidence`.
    pvalue : float
        An always-valid p-value: 1 / the largest evidence so far, at most 1. For a model that is
        calibrated within the tolerance, the probability that it ever falls to a is at most a.
    alarm : bool
        Whether the p-value is at most 1 - level. It stays True after the first alarm.
    alarm_date : str or int or None
        The date of the first alarm.
    streams : tuple of StreamState
        Each model, then each segment.
    """

    date: Date
    n: int
    log_evidence: float
    pvalue: float
    alarm: bool
    alarm_date: Date | None
    streams: tuple[StreamState, ...]
    worst: StreamState

    @property
    def evidence(self) -> float:
        """The evidence now, over all streams: 20 means 20 to 1 against calibration."""
        return _exp(self.log_evidence)

    @property
    def error_name(self) -> str:
        """What the error of all streams is called: ECE if every label is 0 or 1, else SMECE."""
        return _display.error_name(hard_labels=all(each.has_hard_labels for each in self.streams))

    @property
    def since(self) -> Date | None:
        """The date on which the error of `worst` most likely began; None without an alarm."""
        return self.worst.since if self.alarm else None

    @property
    def direction(self) -> str | None:
        """The direction of the error of `worst` since then; None without an alarm."""
        return self.worst.direction if self.alarm else None

    @property
    def bins(self) -> tuple[int, ...]:
        """The bins of `worst` with the most evidence since then; none without an alarm."""
        return self.worst.bins if self.alarm else ()

    def __repr__(self) -> str:
        return f"WatchState(date={self.date!r}, evidence={self.evidence:.3g}, alarm={self.alarm})"

    def _shown(self) -> _display.Shown:
        return f"{self.date}: {self.sentence}", [], []

    @property
    def sentence(self) -> str:
        """The state in words."""
        worst, name = self.worst, _display.printable(self.worst.name)
        numbers = f"Evidence {self.evidence:.3g}, p-value {self.pvalue:.3g}."
        if not worst.n:
            return "No alarm, and no rows so far."
        if not self.alarm:
            return (
                f"No alarm. {numbers} {self.error_name} so far {worst.smece:.4f} "
                f"({worst.low:.4f} to {worst.high:.4f})."
            )
        alarm = f"Alarm on {self.alarm_date} for {name}."
        if _later_than(worst.since, self.alarm_date):  # others raised it
            alarm = (
                f"Alarm on {self.alarm_date}. Now {name} has the most evidence, from an error that "
                "began later."
            )
        return (
            f"{alarm} Since {worst.since} its predictions are "
            f"{worst.direction}, with a mean gap of {worst.gap_since:+.4f} and {self.error_name} "
            f"{worst.smece_since:.4f} ({worst.low_since:.4f} to {worst.high_since:.4f}). {numbers}"
            + " The evidence has fallen since the alarm: the error may have ended."
            * (self.log_evidence < 0)
        )


class Watch:
    r"""Watch a model over time, with a probability of at most 1 - level of any false alarm.

    Each update adds the table of new rows. The hypothesis is that every mean label is within the
    tolerance of its prediction. The evidence against it is a nonnegative supermartingale, so it may
    be inspected after every update. A calibrated model ever raises an alarm with probability at
    most 1 - level. Labels may be 0 or 1, vote shares, or any probability.

    The evidence averages over bets on four patterns: all predictions too high or low, predictions
    too extreme or not extreme enough, each bin with its own sign, and a single bin. With a rate
    \(\lambda\) and a pattern g with values in [-1, 1], a day multiplies the evidence by

    \[ \exp\Bigl(\lambda \sum_b (g_b R_b - \varepsilon |g_b| n_b) - \psi(\lambda) \sum_b g_b^2
    Q_b\Bigr) . \]

    Here \(\psi(\lambda) = -\log(1 - \lambda) - \lambda\). R is the sum of label minus prediction
    in a bin, Q the sum of its squares, and n the number of rows. The first two patterns have
    sharper factors, which use the edges of bins, and for 0/1 labels the likelihood of outcomes.
    Their bets begin on the first day with weight 1/4, and otherwise after k updates with weight
    \(100/(100 + k)\). Their rates follow from the variance of the days before. The page "Alarms
    and gates" has the derivation.

    Tables with groups are for rows that vary together within an update, such as those of a
    patient: the sum of a group is then one step. The sizes of groups are taken as given. A group
    that returns in later updates with an error of its own counts as an error. The evidence is not
    valid if rows repeat, or if the same raters vote on many rows. Memory is constant: of the start
    days at most 64 are kept.

    Parameters
    ----------
    tolerance : float, default=0.02
        The acceptable gap between prediction and mean label. With 0, a model that is not perfect
        eventually raises an alarm.
    level : float, default=0.95
        One minus the probability of ever raising a false alarm.
    by : str or sequence of str, optional
        Columns of a `TableSet` whose segments are watched too. The error rate holds for all
        models and segments simultaneously. All rows of the models have half of it, the segments of
        the first update a quarter, and segments that appear later the rest.
    max_weight : float, optional
        An upper bound of a row's weight, needed if the tables have weights. With groups, an upper
        bound of the weight of a group in one update; without weights, of its number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from softcal import reliability
    >>> rng = np.random.default_rng(0)
    >>> watch = Watch(tolerance=0.02)
    >>> for day in range(1, 31):
    ...     p = rng.uniform(size=500)
    ...     drift = 0.1 if day > 15 else 0.0
    ...     y = rng.uniform(size=500) < np.clip(p - drift, 0, 1)
    ...     state = watch.update(reliability(y, p), date=f"2026-03-{day:02d}")
    >>> state.alarm_date, state.since, state.direction
    ('2026-03-17', '2026-03-16', 'too high')
    """

    def __init__(
        self,
        *,
        tolerance: float = 0.02,
        level: float = 0.95,
        by: str | Sequence[str] = (),
        max_weight: float | None = None,
    ) -> None:
        refuse_bad_level(level)
        if not 0 <= real(tolerance) < 1:
            message = f"tolerance must be at least 0 and below 1: got {tolerance!r:.60}."
            raise InputError(message)
        if max_weight is not None and not SMALLEST_WEIGHT <= real(max_weight) <= LARGEST_WEIGHT:
            message = (
                f"max_weight must be between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}: got "
                f"{max_weight!r:.60}."
            )
            raise InputError(message)
        names = (by,) if isinstance(by, str) else by
        if not isinstance(names, list | tuple) or not all(isinstance(each, str) for each in names):
            message = f"by must be the name of a column, or a list of names: got {by!r:.60}."
            raise InputTypeError(message)
        self._tolerance, self._level = real(tolerance), level
        self._max_weight = None if max_weight is None else real(max_weight)
        self._by = tuple(names)
        self._streams: dict[StreamName, _Stream] = {}
        self._shares: dict[StreamName, float] = {}
        self._updates = self._late = 0
        self._date: Date | None = None
        self._day = Day(NUMBERS, 0)  # of the last update
        self._alarm_date: Date | None = None
        self._highest = 0.0

    def __repr__(self) -> str:
        return f"Watch(tolerance={self._tolerance}, level={self._level}, updates={self._updates})"

    def update(
        self, table: Reliability | TableSet, *, date: str | float | dt.date | None = None
    ) -> WatchState:
        """Add the rows of a day, an hour, or a batch, and return the new state.

        Parameters
        ----------
        table : Reliability or TableSet
            The new rows alone, not the sum so far. Every update must have the same bins.
        date : str, float, or datetime.date, optional
            The date of the rows, later than the one before; of a `TableSet`, its own date by
            default. It is a number, an ISO date, or an ISO time; offsets from UTC are converted.
            Without dates, updates are numbered from 1.

        Returns
        -------
        WatchState
            The state after the update.

        Raises
        ------
        InputError
            If the date is not clear, or not later than the previous one. If the tables differ in
            their models or columns, or the method is not valid for them.
        BinMismatchError
            If the bins differ.

        Examples
        --------
        >>> from softcal import reliability
        >>> Watch().update(reliability([0.5, 0.25], [0.5, 0.25]))
        WatchState(date=1, evidence=0.998, alarm=False)
        """
        tables = self._tables(table)
        for name, rel in tables.items():
            self._refuse(name, rel)
        given = table.about.date if date is None and isinstance(table, TableSet) else date
        now = self._next_date(given)
        self._updates += 1
        self._add_streams({name: rel for name, rel in tables.items() if name not in self._streams})
        for name, stream in self._streams.items():
            rel = tables[name] if name in tables else Reliability.empty(stream.bins)
            stream.update(rel, self._updates, now, self._max_weight or 1.0)
        rows = next(rel.n for name, rel in tables.items() if name.column is None)
        return self._state(rows, now)

    def _tables(self, table: Reliability | TableSet) -> dict[StreamName, Reliability]:
        """Return the table of each model, and of each segment."""
        if isinstance(table, Reliability):
            if self._by:
                message = "segments need a TableSet: a Reliability has no column to split by."
                raise InputTypeError(message)
            return {StreamName("predictions"): table}
        if not isinstance(table, TableSet):
            message = f"update takes a Reliability or a TableSet, not {type(table).__name__}."
            raise InputTypeError(message)
        found = {StreamName(model): table[model] for model in table}
        for column in self._by:
            for value, part in table.by(column).items():
                found |= {StreamName(model, column, value): part[model] for model in part}
        return found

    def _refuse(self, name: StreamName, rel: Reliability) -> None:
        """Raise if a table has other bins or models, or if the method is not valid for it."""
        known = next(iter(self._streams.values()), None)
        if known is not None and rel.bins != known.bins:
            message = (
                f"every update must have the same bins: the first has {known.bins!r}, this one "
                f"{rel.bins!r}. Coarsen the finer tables."
            )
            raise BinMismatchError(message)
        if known is not None and name.column is None and name not in self._streams:
            have = ", ".join(repr(each.model) for each in self._streams if each.column is None)
            message = f"every update must have the same models: {name.model!r} is not among {have}."
            raise InputError(message)
        s, most = rel.sums, self._max_weight
        if rel.ties is not None:
            self._refuse_groups(rel.ties)
            return
        if most is None and (s.weight != s.count).any():
            message = "the table has weights: pass max_weight, an upper bound of a row's weight."
            raise InputError(message)
        if most is not None and (s.weight_sq > most * s.weight * (1 + 1e-9)).any():
            message = f"some rows have a weight above max_weight = {most!r}: raise max_weight."
            raise InputError(message)

    def _refuse_groups(self, ties: Clusters) -> None:
        """Raise for raters, for groups without sums, and for a group that weighs too much."""
        if ties.sums is None:
            what = "votes of the same rater" if ties.raters else "groups that softcal 0.2 saved"
            message = (
                f"the evidence is not valid for {what}. Watch tables made without raters, or scan "
                "the rows again."
            )
            raise InputError(message)
        heaviest = ties.sums.heaviest
        if self._max_weight is None or heaviest > self._max_weight * (1 + 1e-9):
            message = (
                f"a group has a weight of {heaviest:g} in one update, and max_weight is "
                f"{self._max_weight}: with groups, pass max_weight, an upper bound of the weight "
                "(or number of rows) of a group in one update."
            )
            raise InputError(message)

    def _next_date(self, given: str | float | dt.date | None) -> Date:
        """Keep and return the date of an update, which must be later than the one before."""
        date: Date = self._updates + 1 if given is None else str(given)
        if self._date is not None and isinstance(date, int) != isinstance(self._date, int):
            message = "either every update has a date, or none has: pass date= each time."
            raise InputError(message)
        day = day_of(str(date))
        if day is None:
            message = (
                f"date must be {CLEAR}: got {date!r:.60}. Pass a datetime.date, for example from "
                "datetime.strptime."
            )
            raise InputError(message)
        if self._date is not None and day.kind != self._day.kind:
            message = f"dates must be {ALIKE}: {date!r} follows {self._date!r}. Write them alike."
            raise InputError(message)
        if self._date is not None and not day > self._day:
            message = f"dates must increase: {date!r} follows {self._date!r}. Sort the days first."
            raise InputError(message)
        self._date, self._day = date, day
        return date

    def _add_streams(self, new: dict[StreamName, Reliability]) -> None:
        """Assign each new stream its share of the evidence; the sum of shares is at most 1."""
        segments = sum(name.column is not None for name in new)
        are_first = not any(name.column is not None for name in self._streams)
        for name, rel in new.items():
            self._streams[name] = _Stream(rel.bins, self._tolerance)
            if name.column is None:
                share = (_WHOLE_SHARE if self._by else 1.0) / (len(new) - segments)
            elif are_first:
                share = (1 - _WHOLE_SHARE - _LATE_SHARE) / segments
            else:
                self._late += 1
                share = _LATE_SHARE / (self._late * (self._late + 1))
            self._shares[name] = share

    def _state(self, n: int, date: Date) -> WatchState:
        alarm_at = -log(1 - self._level)
        streams = {}
        for name, stream in self._streams.items():
            own_alarm_at = alarm_at - log(self._shares[name])
            if stream.alarm is None and stream.highest >= own_alarm_at:
                stream.alarm = self._updates, date
            last_start, alarm_date = stream.alarm or (self._updates, None)
            streams[name] = StreamState(
                *name, stream.n, stream.log_evidence, _exp(own_alarm_at), alarm_date,
                stream.smece_new, stream.bins.edges, stream.has_hard_labels, self._level,
                self._tolerance, stream.sums,
                tuple(each for each in stream.starts if each.day <= last_start),
            )  # fmt: skip
        shared = [log(self._shares[name]) + each.log_evidence for name, each in streams.items()]
        # The unassigned share has an evidence of 1.
        rest = 1 - sum(self._shares.values())
        log_evidence = float(np.logaddexp.reduce(np.array([*shared, log(max(rest, 1e-300))])))
        self._highest = max(self._highest, log_evidence)
        if self._alarm_date is None and self._highest >= alarm_at:
            self._alarm_date = date
        worst = list(streams.values())[int(np.argmax(shared))]
        alarm = self._alarm_date is not None
        return WatchState(
            date, n, log_evidence, _exp(-self._highest), alarm, self._alarm_date,
            tuple(streams.values()), worst,
        )  # fmt: skip


def _later_than(date: Date | None, other: Date | None) -> bool:
    """Return whether the date of an update is later than that of another."""
    return cast("Day", day_of(str(date))) > cast("Day", day_of(str(other)))


def _gaps(sums: _Sums) -> FloatArray:
    """Return the mean prediction minus the mean label of each bin."""
    return -_per(sums.bins[0], sums.bins[1])


def _smece(bins: FloatArray) -> float:
    """Return SMECE from the lines of `_Sums.bins`; NaN without rows."""
    weight = bins[1].sum()
    return float(np.abs(bins[0]).sum() / weight) if weight else nan


def _exp(x: float) -> float:
    """Return exp(x); infinite if it is out of range."""
    return exp(x) if x <= _LARGEST else inf


def _per(sums: FloatArray, weight: FloatArray) -> FloatArray:
    """Divide sums by weights; NaN if the weight is 0."""
    out: FloatArray = np.divide(sums, weight, out=np.full(weight.size, nan), where=weight > 0)
    return out
