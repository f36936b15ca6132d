"""Simulate `Watch` and `check`: false alarms, delay to the alarm, and errors at the margin.

    python benchmarks/monitoring.py [--runs N] [--looks N] [speed] [margins] [delays] [alarms]

Prints tables; docs/watch.md quotes them with the numbers of runs. probcal, which watches 0/1
labels, is measured if it is installed.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from scipy.stats import chi2

import softcal as sc
from softcal.inference import sequential

if TYPE_CHECKING:
    from collections.abc import Callable

    Labels = Callable[[np.random.Generator, np.ndarray], np.ndarray]

LABELS: dict[str, Labels] = {
    "0/1": lambda rng, q: (rng.random(q.size) < q).astype(float),
    "5 votes": lambda rng, q: rng.binomial(5, q) / 5,
    "soft": lambda rng, q: rng.beta(10 * q + 1e-9, 10 * (1 - q) + 1e-9),
}


class Seen(NamedTuple):
    """The day of the alarm of each method in one run; infinite without an alarm."""

    watch: float
    daily: float  # a test of the running table each day, at 5%
    bonferroni: float  # the same at 5% / days
    fresh: float  # a test of the rows since the error began, once a day at 5%: the oracle
    since: float
    probcal: float = np.nan  # probcal's monitor, for 0/1 labels


def probcal_monitor() -> Any:
    """Return a new monitor of probcal at its default settings; None if it is not installed."""
    try:
        from probcal.monitor import CalibrationMonitor
    except ModuleNotFoundError:
        return None
    return CalibrationMonitor(alpha=0.05)


def run(
    rng: np.random.Generator, labels: Labels, *, days: int, rows: int, start: int = 10**9,
    slope: float = 1.0, shift: float = 0.0, other: Any = None,
) -> Seen:  # fmt: skip
    """Watch one stream until the last day, or until every method has raised its alarm."""
    watch = sc.Watch(tolerance=0.0)
    whole, since = sc.Reliability.empty(), sc.Reliability.empty()
    first = dict.fromkeys(("watch", "daily", "bonferroni", "fresh", "probcal"), np.inf)
    began = np.inf
    for day in range(1, days + 1):
        p = rng.beta(1.0, 1.5, rows).clip(1e-9, 1 - 1e-9)
        q = p
        if day >= start:
            q = (1 / (1 + np.exp(-slope * np.log(p / (1 - p)))) + shift).clip(0, 1)
        y = labels(rng, q)
        rel = sc.reliability(y, p)
        state = watch.update(rel)
        whole = whole + rel
        pvalue = sc.calibration_test(whole).pvalue
        found = {"watch": state.alarm, "daily": pvalue < 0.05, "bonferroni": pvalue < 0.05 / days}
        if day >= start:
            since = since + rel
            found["fresh"] = sc.calibration_test(since).pvalue < 0.05
        if other is not None:
            found["probcal"] = other.update(y, p).alarm
        if state.alarm and np.isinf(began):
            began = float(state.since or 0)
        first |= {name: min(first[name], day) for name, alarm in found.items() if alarm}
        if all(np.isfinite(first[name]) for name in found):
            break
    return Seen(**first, since=began)


class Streams:
    """Many runs of `Watch` at once, in ten bins; one of them is compared with `Watch` itself."""

    def __init__(self, runs: int) -> None:
        self.shape = (runs, 10)
        self.bins = np.zeros((3, *self.shape))
        self.patterns = np.zeros((3, runs, 2))
        self.starts: list[tuple[int, np.ndarray]] = []
        self.log_evidence = np.zeros(runs)
        self.of_bins = sequential._Mixture(sequential._BIN_RATES, 0.0)  # noqa: SLF001
        self.of_patterns = sequential._Mixture(sequential._RATES, 0.0)  # noqa: SLF001

    def update(self, day: int, new: np.ndarray) -> None:
        """Add sums of r, of rows, and of r^2 per run and bin."""
        self.starts.append((day, self.patterns))
        if len(self.starts) > 64:
            days = np.array([start for start, _ in self.starts])
            del self.starts[1 + ((days[2:] - days[:-2]) / (days[-1] + 1 - days[1:-1])).argmin()]
        middles = (np.arange(10) + 0.5) / 10
        tilt = np.broadcast_to(((middles - 0.5) / 0.5).clip(-1, 1), self.shape)
        if day > 1:
            weight = self.bins[1].sum(axis=1)
            center = self.bins[1] @ middles / weight
            reach = 2 * (self.bins[1] @ middles**2 / weight - center**2).clip(0) ** 0.5
            tilt = ((middles - center[:, None]) / reach.clip(1e-3)[:, None]).clip(-1, 1)
        tilted = np.array([tilt, np.abs(tilt), tilt**2]) * new
        self.patterns = self.patterns + np.stack([new.sum(axis=2), tilted.sum(axis=2)], axis=2)
        self.bins = self.bins + new
        self.look()

    def look(self) -> None:
        """Compute the evidence of every run."""
        runs, size = self.shape
        terms, signs = self.of_bins.terms(self.bins.reshape(3, -1))
        together = terms.reshape(-1, runs, size).sum(axis=2)
        together += np.log(signs).reshape(-1, runs, size).sum(axis=2) - size * np.log(2)
        one = logsumexp((terms + np.log(signs)).reshape(-1, runs, size), axis=(0, 2))
        days = np.array([day for day, _ in self.starts])
        later = self.patterns[:, None] - np.stack([before for _, before in self.starts], axis=1)
        terms, signs = self.of_patterns.terms(later.reshape(3, -1))
        top = terms.max(axis=0)
        each = np.log((np.exp(terms - top) * signs).sum(axis=0)) + top - np.log(len(signs) * 2)
        each = each.reshape(len(days), runs, 2)
        arms = [
            *each[0].T, logsumexp(together, axis=0) - np.log(len(together)),
            one - np.log(self.of_bins.size * size),
        ]  # fmt: skip
        weights = np.log(2 * days * (days + 1))[:, None]
        of_starts = [*(each.max(axis=2) + np.log1p(np.exp(-np.abs(each[..., 0] - each[..., 1])))
                       - weights), np.full(runs, -np.log(days[-1] + 1))]  # fmt: skip
        self.log_evidence = np.logaddexp(
            logsumexp(arms, axis=0) - np.log(4), logsumexp(of_starts, axis=0)
        ) - np.log(2)


VARIANCE = {"0/1": 1.0, "5 votes": 1 / 5, "soft": 1 / 11}  # of a label, over p(1 - p)


def ever_alarmed(name: str, runs: int, looks: int, *, drift: bool) -> np.ndarray:
    """Return the share of calibrated runs in which each method ever alarms: three numbers.

    The methods are `Watch`, a chi-square test of all rows so far at 5% with the true variance of
    the labels, and the same with Bonferroni's correction.
    """
    rng = np.random.default_rng([20, drift, len(name)])
    streams, watch = Streams(runs), sc.Watch(tolerance=0.0)
    ever = np.zeros((3, runs), dtype=bool)
    variance = np.zeros(streams.shape)
    for day in range(1, looks + 1):
        a = 1 + 2 * day / looks if drift else 1.0
        p = rng.beta(a, 1.5, (runs, 100)).clip(1e-9, 1 - 1e-9)
        y = LABELS[name](rng, p.ravel()).reshape(p.shape)
        at = ((p * 10).astype(int) + 10 * np.arange(runs)[:, None]).ravel()

        def added(what: np.ndarray, at: np.ndarray = at) -> np.ndarray:
            return np.bincount(at, what.ravel(), 10 * runs).reshape(runs, 10)

        streams.update(day, np.array([added(each) for each in (y - p, p**0, (y - p) ** 2)]))
        state = watch.update(sc.reliability(y[0], p[0]))
        assert abs(state.log_evidence - streams.log_evidence[0]) < 1e-8  # noqa: S101
        variance += added(VARIANCE[name] * p * (1 - p))
        statistic = np.divide(streams.bins[0] ** 2, variance, where=variance > 0, out=0 * variance)
        pvalue = chi2.sf(statistic.sum(axis=1), (variance > 0).sum(axis=1))
        ever |= [streams.log_evidence >= np.log(20), pvalue < 0.05, pvalue < 0.05 / looks]
    share: np.ndarray = ever.mean(axis=1)
    return share


def false_alarms(runs: int, looks: int) -> None:
    print(f"\nCalibrated model, {looks} looks of 100 rows, {runs} runs: share that ever alarms")
    print(f"{'labels':>22} {'Watch':>8} {'daily test':>11} {'Bonferroni':>11}")
    for drift in (False, True):
        for name in LABELS:
            share = ever_alarmed(name, runs, looks, drift=drift)
            mix = name + (", drifting mix" if drift else "")
            print(f"{mix:>22} {share[0]:8.4f} {share[1]:11.4f} {share[2]:11.4f}", flush=True)


def delays(runs: int) -> None:
    print(f"\n60 days of 200 rows, {runs} runs: median days from the error to the alarm")
    print(
        f"{'labels':>10} {'error':>18} {'Watch':>7} {'Bonferroni':>11} {'probcal':>8} "
        f"{'oracle':>7} {'since':>6}"
    )
    rng = np.random.default_rng(21)
    for name, labels in LABELS.items():
        for what, setting in ERRORS.items():
            start = int(setting["start"])
            seen = [
                run(
                    rng, labels, days=60, rows=200,
                    other=probcal_monitor() if name == "0/1" else None, **setting,
                )
                for _ in range(runs)
            ]  # fmt: skip
            late = [np.median([getattr(s, m) - start + 1 for s in seen])
                    for m in ("watch", "bonferroni", "probcal", "fresh")]  # fmt: skip
            since = np.median([s.since for s in seen])
            print(
                f"{name:>10} {what:>18} {late[0]:7.1f} {late[1]:11.1f} {late[2]:8.1f} "
                f"{late[3]:7.1f} {since:6.1f}",
                flush=True,
            )


ERRORS: dict[str, Any] = {
    "slope 0.8, day 1": {"slope": 0.8, "start": 1},
    "+0.03, day 1": {"shift": 0.03, "start": 1},
    "+0.08, day 31": {"shift": 0.08, "start": 31},
}


def margins(runs: int) -> None:
    rng = np.random.default_rng(22)
    print(f"\nsoftcal check at the margin, SMECE exactly at the limit, {runs} runs")
    print(f"{'labels':>10} {'rows':>7} {'limit':>7} {'pass':>7} {'fail':>7} {'undecided':>10}")
    for name, labels in LABELS.items():
        for rows in (500, 5000):
            for limit in (0.03, 0.1):
                found = []
                for _ in range(runs):
                    p = rng.uniform(0.1, 0.9, rows)
                    rel = sc.reliability(labels(rng, p - limit), p)
                    found.append(sc.check(rel, max_smece=limit).outcome)
                share = [found.count(word) / runs for word in ("pass", "fail", "undecided")]
                print(
                    f"{name:>10} {rows:>7,} {limit:7.2f} {share[0]:7.3f} {share[1]:7.3f} "
                    f"{share[2]:10.3f}",
                    flush=True,
                )


def speed() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(5000)
    rel = sc.reliability(rng.random(5000) < p, p, bins=600)
    watch, best = sc.Watch(), np.inf
    for _ in range(100):  # the best of many short turns, because other programs run too
        start = time.process_time()
        for _ in range(100):
            watch.update(rel)
        best = min(best, (time.process_time() - start) / 100)
    print(f"\n600 bins: {best * 1e6:.0f} µs per update, {best * 1e4:.2f} s for 10,000 days")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--looks", type=int, default=1000)
    parser.add_argument("parts", nargs="*", default=["speed", "margins", "delays", "alarms"])
    given = parser.parse_args()
    if "speed" in given.parts:
        speed()
    if "margins" in given.parts:
        margins(20 * given.runs)
    if "delays" in given.parts:
        delays(given.runs)
    if "alarms" in given.parts:
        false_alarms(given.runs, given.looks)
