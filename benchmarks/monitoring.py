# ruff: noqa: SLF001
"""Simulate `Watch` and `check`: false alarms, delay to the alarm, and errors at the margin.

    python benchmarks/monitoring.py [--runs N] [--looks N] [PART ...]

The parts are speed, margins, delays, late, alarms, and groups; without any, all of them.

All except `speed` write a table of docs: check_margins.csv, watch_onsets.csv (delays),
watch_delays.csv (late), watch_alarms.csv, and watch_groups.csv.
"""

from __future__ import annotations

import argparse
import csv
import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from scipy.stats import chi2

import softcal as sc
from softcal.inference import sequential as q

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


def run(
    rng: np.random.Generator, labels: Labels, *, days: int, rows: int, start: int = 10**9,
    slope: float = 1.0, shift: float = 0.0,
) -> Seen:  # fmt: skip
    """Watch one stream until the last day, or until every method has raised its alarm."""
    watch = sc.Watch(tolerance=0.0)
    whole, since = sc.Reliability.empty(), sc.Reliability.empty()
    first = dict.fromkeys(("watch", "daily", "bonferroni", "fresh"), np.inf)
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
        if state.alarm and np.isinf(began):
            began = float(state.since or 0)
        first |= {name: min(first[name], day) for name, alarm in found.items() if alarm}
        if all(np.isfinite(first[name]) for name in found):
            break
    return Seen(**first, since=began)


class Streams:
    """Many runs of `Watch` at once, in ten bins; one of them is compared with `Watch` itself."""

    def __init__(self, runs: int, tolerance: float = 0.0) -> None:
        self.tolerance, self.day, self.outcomes = tolerance, 0, False
        self.bins = np.zeros((3, runs, 10))
        self.since = np.full((runs, 24), np.log(q._FIRST_SHARE))
        self.share = np.log(np.tile(q._DAYS_SHARE, 4) / 4)
        self.log_evidence = np.zeros(runs)

    def update(self, new: np.ndarray, prob: np.ndarray, *, outcomes: bool) -> None:
        """Add sums of r, of rows, and of r^2, and of predictions, per run and bin."""
        bets = self._bets()
        size, count = np.abs(bets), np.maximum(new[1], 1e-9)
        if self.outcomes:
            mean = (prob / count)[:, None] + self.tolerance * np.sign(bets)
            costs = np.log1p(mean.clip(0, 1) * np.expm1(bets)) * new[1][:, None]
            gained = bets * (new[0] + prob)[:, None] - costs
        else:
            reach = np.where(bets > 0, EDGES[1:], 1 - EDGES[:-1])
            costs = q._costs(size * reach) / reach**2 * new[2][:, None]
            gained = bets * new[0][:, None] - self.tolerance * size * new[1][:, None] - costs
        self.outcomes = outcomes
        self.bins = self.bins + new
        before, self.day = q._later(self.day), self.day + 1
        later = q._later(self.day)
        self.since = np.logaddexp(self.since, np.log(before - later)) + gained.sum(axis=2)
        single, signs = q._Mixture(q._BIN_RATES, self.tolerance).terms(self.bins.reshape(3, -1))
        single = (single + np.log(signs / 2)).reshape(len(signs), -1, 10)
        arms = [
            np.logaddexp(logsumexp(self.since + self.share, axis=1), np.log(later)),
            logsumexp(single.sum(axis=2), axis=0) - np.log(len(single)),
            logsumexp(single, axis=(0, 2)) - np.log(10 * len(single)),
        ]
        weights = np.array([1 - q._BINS_SHARE, q._BINS_SHARE / 2, q._BINS_SHARE / 2])
        self.log_evidence = logsumexp(arms, axis=0, b=weights[:, None])

    def _bets(self) -> np.ndarray:
        """Return the bets on each bin: runs, (patterns, signs, and rates), bins."""
        middles = (EDGES[1:] + EDGES[:-1]) / 2
        tilt = np.broadcast_to(2 * middles - 1, self.bins.shape[1:])
        if self.day:
            weight = self.bins[1].sum(axis=1)
            center = self.bins[1] @ middles / weight
            reach = 2 * (self.bins[1] @ middles**2 / weight - center**2).clip(0) ** 0.5
            tilt = ((middles - center[:, None]) / reach.clip(1e-3)[:, None]).clip(-1, 1)
        variance = (q._FIRST_VARIANCE + self.bins[2].sum(axis=1)) / (self.day + 1)
        rates = np.sqrt(2 * q._SOUGHT / variance[:, None] / q._DAYS).clip(max=q._LARGEST_RATE)
        signed = np.concatenate([rates, -rates], axis=1)[:, :, None]
        return np.concatenate([signed * np.ones(10), signed * tilt[:, None]], axis=1)


EDGES = np.arange(11) / 10
VARIANCE = {"0/1": 1.0, "5 votes": 1 / 5, "soft": 1 / 11}  # of a label, over p(1 - p)


def day_of_sums(
    rng: np.random.Generator, name: str, p: np.ndarray, shift: Any = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw labels of predictions of shape (runs, rows); return sums per run and bin.

    They are the sums that `Streams` takes, of predictions, and of the labels' variance.
    """
    mean = np.clip(p + shift, 0, 1)
    y = LABELS[name](rng, mean.ravel()).reshape(p.shape)
    at = ((p * 10).astype(int) + 10 * np.arange(len(p))[:, None]).ravel()
    lines = (y - p, np.ones_like(p), (y - p) ** 2, p, VARIANCE[name] * p * (1 - p))
    sums = [np.bincount(at, x.ravel(), 10 * len(p)).reshape(-1, 10) for x in lines]
    return np.array(sums[:3]), sums[3], sums[4]


class Setting(NamedTuple):
    """Calibrated streams: their labels, tolerance, and how days vary."""

    labels: str
    tolerance: float = 0.0
    drift: bool = False  # predictions grow from day to day
    spread: float = 0.0  # standard deviation of a day's own error, which has mean 0


ALARMS = (
    *(Setting(name, drift=drift) for drift in (False, True) for name in LABELS),
    *(Setting(name, 0.02, spread=spread) for spread in (0.01, 0.02) for name in ("0/1", "soft")),
    Setting("soft", 0.02, spread=0.05), Setting("soft", 0.0, spread=0.01),
)  # fmt: skip


def ever_alarmed(name: str, runs: int, looks: int, *, drift: bool) -> np.ndarray:
    """Return the share of calibrated runs in which each method ever alarms, as `alarmed` does."""
    return alarmed(Setting(name, drift=drift), runs, looks)


def alarmed(setting: Setting, runs: int, looks: int) -> np.ndarray:
    """Return the share of runs in which each method ever alarms: three numbers.

    The methods are `Watch`, a chi-square test of all rows so far at 5% with the true variance of
    the labels, and the same with Bonferroni's correction.
    """
    name, tolerance, drift, spread = setting
    rng = np.random.default_rng([2711, ALARMS.index(setting)])
    streams, watch = Streams(runs, tolerance), sc.Watch(tolerance=tolerance)
    ever = np.zeros((3, runs), dtype=bool)
    variance = np.zeros((runs, 10))
    for day in range(1, looks + 1):
        a = 1 + 2 * day / looks if drift else 1.0
        p = rng.beta(a, 1.5, (runs, 100)).clip(1e-9, 1 - 1e-9)
        new, prob, noise = day_of_sums(rng, name, p, spread * rng.normal(size=(runs, 1)))
        streams.update(new, prob, outcomes=name == "0/1")
        if day <= 50:
            state = watch.update(table_of(new[:, 0], prob[0], outcomes=name == "0/1"))
            assert abs(state.log_evidence - streams.log_evidence[0]) < 1e-8  # noqa: S101
        variance += noise
        statistic = np.divide(streams.bins[0] ** 2, variance, where=variance > 0, out=0 * variance)
        pvalue = chi2.sf(statistic.sum(axis=1), (variance > 0).sum(axis=1))
        ever |= [streams.log_evidence >= np.log(20), pvalue < 0.05, pvalue < 0.05 / looks]
    share: np.ndarray = ever.mean(axis=1)
    return share


def table_of(new: np.ndarray, prob: np.ndarray, *, outcomes: bool) -> sc.Reliability:
    """Return a table of ten bins with these sums."""
    total, count, square = new
    empty = sc.Reliability.empty(10)
    named = {
        "count": count.astype(np.int64), "weight": count, "weight_sq": count,
        "label": total + prob, "residual": -total, "residual_sq": square, "residual_var": square,
        "label_var": np.zeros(10) if outcomes else np.ones(10),
    }  # fmt: skip
    return replace(empty, sums=replace(empty.sums, **named))


def write_csv(name: str, rows: list[dict[str, Any]]) -> None:
    """Write rows to a file of docs, and print them."""
    path = Path(__file__).parent.parent / "docs" / name
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(path.read_text(encoding="utf-8"))


def false_alarms(runs: int, looks: int) -> None:
    """Write the share of calibrated streams that ever raise an alarm."""
    rows = []
    for setting in ALARMS:
        share = np.round(alarmed(setting, runs, looks), 4).tolist()
        methods = dict(zip(("watch", "daily", "bonferroni"), share, strict=True))
        rows.append({**setting._asdict(), "looks": looks, "runs": runs, **methods})
        print(rows[-1], flush=True)
    write_csv("watch_alarms.csv", rows)


LATE = (
    ("0/1", 0.05, 100), ("0/1", -0.05, 300), ("0/1", 0.08, 31), ("0/1", 0.03, 200),
    ("5 votes", 0.03, 100), ("soft", 0.02, 100), ("soft", -0.015, 300),
)  # fmt: skip


def late_shifts(runs: int) -> None:
    """Write the delay of `Watch`, and of a CUSUM that knows the shift and the number of days.

    Each day has 200 rows. The threshold of the CUSUM gives a false alarm in 5% of calibrated
    streams of 365 days.
    """
    rows = []
    for k, (name, shift, start) in enumerate(LATE):
        rng = np.random.default_rng([2712, k])
        null, _ = cusum(rng, name, shift, 1000, days=365, start=10**9)
        needed = np.quantile(null.max(axis=0), 0.95)
        path, evidence = cusum(rng, name, shift, runs, days=start + 119, start=start)
        row = {"labels": name, "shift": shift, "day": start, "runs": runs}
        for method, crossed in (("watch", evidence >= np.log(20)), ("cusum", path >= needed)):
            first = np.where(crossed.any(axis=0), crossed.argmax(axis=0) + 1.0, np.inf)
            late = first[first >= start] - start + 1
            row[method] = round(float(np.median(late)), 1)
            row[f"{method}_early"] = round(float((first < start).mean()), 4)
        rows.append(row)
        print(row, flush=True)
    write_csv("watch_delays.csv", rows)


def cusum(
    rng: np.random.Generator, name: str, shift: float, runs: int, *, days: int, start: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the paths of a CUSUM and of the log evidence, of shape (days, runs)."""
    streams, total = Streams(runs), np.zeros(runs)
    paths = np.zeros((2, days, runs))
    for day in range(days):
        p = rng.beta(1.0, 1.5, (runs, 200)).clip(1e-9, 1 - 1e-9)
        new, prob, noise = day_of_sums(rng, name, p, shift if day + 1 >= start else 0.0)
        # The log likelihood ratio of a normal sum with the variance that labels have.
        ratio = shift * (new[0].sum(axis=1) - shift * 200 / 2) * 200 / noise.sum(axis=1)
        total = np.maximum(total, 0.0) + ratio
        if start <= days:
            streams.update(new, prob, outcomes=name == "0/1")
        paths[:, day] = total, streams.log_evidence
    return paths[0], paths[1]


def delays(runs: int) -> None:
    """Write the median days from an error to the alarm, in 60 days of 200 rows."""
    rng = np.random.default_rng(2713)
    rows = []
    for name, labels in LABELS.items():
        for what, setting in ERRORS.items():
            start = int(setting["start"])
            seen = [run(rng, labels, days=60, rows=200, **setting) for _ in range(runs)]
            row = {"labels": name, "error": what, "runs": runs}
            for method in ("watch", "bonferroni", "fresh"):
                late = [getattr(each, method) - start + 1 for each in seen]
                row[method] = round(float(np.median(late)), 1)
            row["since"] = round(float(np.median([each.since for each in seen])), 1)
            rows.append(row)
            print(row, flush=True)
    write_csv("watch_onsets.csv", rows)


ERRORS: dict[str, Any] = {
    "slope 0.8, day 1": {"slope": 0.8, "start": 1},
    "+0.03, day 1": {"shift": 0.03, "start": 1},
    "+0.08, day 31": {"shift": 0.08, "start": 31},
}


def margins(runs: int) -> None:
    """Write how often `check` passes and fails a model whose SMECE is exactly the limit."""
    rng = np.random.default_rng(22)
    rows = []
    for name, labels in LABELS.items():
        for n, limit in product((500, 5000), (0.03, 0.1)):
            found = []
            for _ in range(runs):
                p = rng.uniform(0.1, 0.9, n)
                rel = sc.reliability(labels(rng, p - limit), p)
                found.append(sc.check(rel, max_smece=limit).outcome)
            share = {word: round(found.count(word) / runs, 4) for word in ("pass", "fail")}
            rows.append({"labels": name, "rows": n, "limit": limit, "runs": runs, **share})
            print(rows[-1], flush=True)
    write_csv("check_margins.csv", rows)


def grouped(runs: int) -> None:
    """Write the share of streams of 60 days with an alarm, whose rows vary together in groups.

    Each day has new groups. In half of them labels are likelier than predicted, in half they are
    less likely. With a drift, labels are less likely by 5 percentage points, or 2 if they are rare.
    """
    rows = []
    settings = product(("0/1", "rare 0/1", "soft"), ((100, 5, 0.5), (20, 20, 0.8), (9, 50, 0.8)))
    for kind, (n_groups, size, effect) in settings:
        rng = np.random.default_rng([3030, n_groups, len(kind)])
        group, alarms = np.repeat(np.arange(n_groups), size), dict.fromkeys(("groups", "rows"), 0)
        days = []
        for run_ in range(runs + runs // 4):
            drift = (0.02 if kind == "rare 0/1" else 0.05) * (run_ >= runs)
            watches = {"groups": sc.Watch(tolerance=0.0, max_weight=size),
                       "rows": sc.Watch(tolerance=0.0)}  # fmt: skip
            first = dict.fromkeys(watches, np.inf)
            for day in range(1, 61):
                p = rng.uniform(0.02, 0.98, group.size) * (0.1 if kind == "rare 0/1" else 1)
                q = p + effect * rng.choice([-1, 1], n_groups)[group] * np.minimum(p, 1 - p)
                y = (q - drift).clip(0, 1)
                y = y if kind == "soft" else rng.binomial(1, y)
                for name, watch in watches.items():
                    own = group if name == "groups" else None
                    if watch.update(sc.reliability(y, p, groups=own)).alarm:
                        first[name] = min(first[name], day)
            if drift:
                days.append(first["groups"])
            else:
                alarms = {name: n + (first[name] <= 60) for name, n in alarms.items()}
        row = {"labels": kind, "groups": n_groups, "rows of each": size, "runs": runs}
        row |= {f"false alarms with {name}": round(n / runs, 4) for name, n in alarms.items()}
        rows.append(row | {"median day of a drift's alarm": float(np.median(days))})
        print(rows[-1], flush=True)
    write_csv("watch_groups.csv", rows)


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
    parser.add_argument(
        "parts", nargs="*", default=["speed", "margins", "delays", "late", "alarms", "groups"]
    )
    given = parser.parse_args()
    if "speed" in given.parts:
        speed()
    if "margins" in given.parts:
        margins(20 * given.runs)
    if "delays" in given.parts:
        delays(given.runs)
    if "late" in given.parts:
        late_shifts(given.runs)
    if "alarms" in given.parts:
        false_alarms(given.runs, given.looks)
    if "groups" in given.parts:
        grouped(given.runs)
