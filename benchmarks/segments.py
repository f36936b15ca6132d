"""Simulate the audit: false findings, power, and speed beside Bonferroni and MCGrad.

python -m benchmarks.segments familywise KIND RUNS    false findings on calibrated data
python -m benchmarks.segments power RUNS              how often a planted gap is found
python -m benchmarks.segments mcgrad RUNS             false findings of MCGrad's maximum
python -m benchmarks.segments speed                   a million rows, 500 segments
python -m benchmarks.segments agreement               the statistic of a segment
python -m benchmarks.segments evidence                the part of `make evidence`

All but the first run MCGrad if it can be imported; see `benchmarks.evidence.peers`.
"""

from __future__ import annotations

import json
import math
import sys
import time
from typing import Any

import numpy as np
import pandas as pd

import softcal as sc

KINDS = ("0/1", "rare 0/1", "4 votes", "soft", "mixed")
LEVEL = 0.95


def labels(kind: str, p: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, Any]:
    """Return labels of a calibrated model, and their number of votes if known."""
    if kind == "4 votes":
        return rng.binomial(4, p) / 4, 4
    if kind == "soft":  # a beta distribution with mean p
        return rng.beta(5 * p, 5 * (1 - p)), None
    if kind == "mixed":  # outcomes in half of the rows, vote shares in the others
        m = np.where(rng.uniform(size=p.size) < 0.5, 1, 8)
        return rng.binomial(m, p) / m, None
    return rng.binomial(1, p).astype(float), None


def calibrated(kind: str, rng: np.random.Generator, n: int, columns: int, values: int) -> Any:
    """Return rows of a calibrated model, and the arguments of the audit for their labels."""
    p = rng.beta(0.5, 20, size=n) if kind == "rare 0/1" else rng.beta(1, 2, size=n)
    p = np.clip(p, 1e-9, 1 - 1e-9)
    y, votes = labels(kind, p, rng)
    frame = pd.DataFrame({"p": p, "y": y})
    for k in range(columns):
        frame[f"c{k}"] = rng.integers(0, values, size=n).astype(str)
    return frame, {} if votes is None else {"n_votes": votes}


def familywise(kind: str, runs: int, *, n: int, columns: int, values: int, depth: int) -> None:
    """Print how often anything is found in calibrated data, after every 25 runs."""
    by = [f"c{k}" for k in range(columns)]
    false, tested = 0, 0
    for seed in range(runs):
        rng = np.random.default_rng([1119, KINDS.index(kind), n, seed])
        frame, known = calibrated(kind, rng, n, columns, values)
        found = sc.audit(
            frame, y_true="y", y_prob="p", by=by, depth=depth, level=LEVEL, draws=199, rng=seed,
            **known,
        )  # fmt: skip
        tested += len(found.segments)
        false += min(found.overall.pvalue, found.segments[0].pvalue) <= 1 - LEVEL
        if (seed + 1) % 25 == 0 or seed + 1 == runs:
            rate = false / (seed + 1)
            row = {
                "labels": kind, "rows": n, "segments": round(tested / (seed + 1)),
                "runs": seed + 1, "familywise": round(rate, 4),
                "se": round(math.sqrt(rate * (1 - rate) / (seed + 1)), 4),
                "bound": round(0.05 + 2 * math.sqrt(0.05 * 0.95 / (seed + 1)), 4),
            }  # fmt: skip
            print(json.dumps(row), flush=True)


def planted(rng: np.random.Generator, n: int, columns: int, values: int, gap: float) -> Any:
    """Return rows of a model that is too high by `gap` in one combination of two values."""
    frame, _ = calibrated("0/1", rng, n, columns, values)
    frame["p"] = rng.beta(2, 3, size=n)
    here = (frame.c0 == "0") & (frame.c1 == "0")
    frame["y"] = rng.binomial(1, np.clip(frame.p - gap * here, 0, 1)).astype(float)
    return frame


def power(runs: int, *, n: int, columns: int, values: int, gap: float) -> dict[str, Any]:
    """Return how often each method finds the segment with the planted gap."""
    by = [f"c{k}" for k in range(columns)]
    hits = dict.fromkeys(("audit", "Bonferroni", "Holm", "MCGrad and Bonferroni"), 0)
    where = {"c0": "0", "c1": "0"}
    tested = 0
    for seed in range(runs):
        frame = planted(np.random.default_rng([20, n, values, seed]), n, columns, values, gap)
        found = sc.audit(frame, y_true="y", y_prob="p", by=by, level=LEVEL, draws=1000, rng=seed)
        tested += len(found.segments)
        hits["audit"] += any(each.where == where for each in found.found)
        pvalues = one_by_one(frame, found)
        mine = next(p for p, each in pvalues if each.where == where)
        hits["Bonferroni"] += mine * len(pvalues) <= 1 - LEVEL
        hits["Holm"] += _holm(sorted(p for p, _ in pvalues), mine) <= 1 - LEVEL
        hits["MCGrad and Bonferroni"] += mcgrad_finds(frame, by, where)
    rates = {name: round(count / runs, 4) for name, count in hits.items()}
    return {"gap": gap, "rows": n, "segments": tested // runs, "runs": runs} | rates


def one_by_one(frame: Any, found: Any) -> list[tuple[float, Any]]:
    """Return each segment with the p-value of its own z-test, p(1 - p) as variance."""
    out = []
    for each in found.segments:
        here = np.ones(len(frame), dtype=bool)
        for column, value in each.where.items():
            here &= (frame[column] == value).to_numpy()
        p = frame.p.to_numpy()[here]
        z = (p - frame.y.to_numpy()[here]).sum() / math.sqrt((p * (1 - p)).sum())
        out.append((math.erfc(abs(z) / math.sqrt(2)), each))
    return out


def _holm(ordered: list[float], mine: float) -> float:
    """Return the p-value after Holm's step-down correction."""
    largest = 0.0
    for k, pvalue in enumerate(ordered):
        largest = max(largest, (len(ordered) - k) * pvalue)
        if pvalue >= mine:
            break
    return min(largest, 1.0)


def mcgrad_error(frame: Any, by: list[str], **options: Any) -> Any:
    """Return MCGrad's `MulticalibrationError` with all segments of up to two columns."""
    from mcgrad.metrics import MulticalibrationError

    return MulticalibrationError(
        frame, "y", "p", categorical_segment_columns=by, max_depth=2, max_n_segments=None,
        max_values_per_segment_feature=10**6, min_samples_per_segment=30,
        precision_dtype="float64", **options,
    )  # fmt: skip


def mcgrad_finds(frame: Any, by: list[str], where: dict[str, str]) -> bool:
    """Return whether MCGrad's p-value of the planted segment holds after Bonferroni's correction.

    MCGrad's own p-value of the worst segment does not account for the number of segments.
    """
    error = mcgrad_error(frame, by)
    pvalues = np.asarray(error.segments_ecce_pvalue)
    for number, part in error._segments[1].groupby("idx_segment"):  # noqa: SLF001
        if dict(zip(part.segment_column, part.value.astype(str), strict=True)) == where:
            return bool(pvalues[number] * pvalues.size <= 1 - LEVEL)
    return False


def mcgrad_false(runs: int) -> list[dict[str, Any]]:
    """Return how often MCGrad calls a segment of calibrated 0/1 labels off."""
    out = []
    for kind in KINDS[:2]:
        alone = corrected = 0
        for seed in range(runs):
            rng = np.random.default_rng([19, KINDS.index(kind), 3000, seed])
            frame, _ = calibrated(kind, rng, 3000, 4, 6)
            error = mcgrad_error(frame, [f"c{k}" for k in range(4)])
            pvalues = np.asarray(error.segments_ecce_pvalue)
            alone += error.mce_pvalue <= 1 - LEVEL
            corrected += pvalues.min() * pvalues.size <= 1 - LEVEL
        rates = {"p-value of the worst": alone / runs, "and Bonferroni": corrected / runs}
        out.append({"labels": kind, "runs": runs} | rates)
    return out


def agreement() -> dict[str, Any]:
    """Return the largest difference of the statistic where the definitions agree.

    MCGrad's statistic is the range of the cumulative residuals, in standard errors. In a segment
    whose predictions are all above its labels, or all below, that is our sum of residuals.
    """
    rng = np.random.default_rng(0)
    n = 20_000
    frame = pd.DataFrame({"p": rng.uniform(0.01, 0.99, size=n)})
    frame["sign"] = rng.integers(0, 2, size=n).astype(str)
    frame["y"] = (frame.sign == "1").astype(float)
    for k in range(2):
        frame[f"c{k}"] = rng.integers(0, 10, size=n).astype(str)
    by = ["sign", "c0", "c1"]
    error = mcgrad_error(frame, by)
    theirs: dict[frozenset[Any], float] = {}
    for number, part in error._segments[1].groupby("idx_segment"):  # noqa: SLF001
        key = frozenset(zip(part.segment_column, part.value.astype(str), strict=True))
        theirs[key] = float(np.asarray(error.segments_ecce)[number])
    found = sc.audit(frame, y_true="y", y_prob="p", by=by, draws=1)
    gaps = [
        abs(abs(each.gap) - theirs[frozenset(each.where.items())])
        for each in found.segments
        if "sign" in each.where
    ]
    return {"segments": len(gaps), "largest difference": max(gaps)}


def speed(n: int = 1_000_000, turns: int = 3) -> dict[str, Any]:
    """Return the seconds of all cores for rows and about 500 segments; ours: the minimum."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"p": rng.beta(1, 2, size=n)})
    frame["y"] = rng.binomial(1, frame.p)
    by = ["c0", "c1", "c2"]
    for name in by:
        frame[name] = pd.Categorical(rng.integers(0, 12, size=n).astype(str))
    seconds: dict[str, list[float]] = {"audit": [], "MCGrad": []}
    segments = {}
    for turn in range(turns):
        start = time.process_time()
        found = sc.audit(frame, y_true="y", y_prob="p", by=by)
        seconds["audit"].append(time.process_time() - start)
        segments["audit"] = len(found.segments)
        if turn:
            continue  # MCGrad once: it takes minutes
        start = time.process_time()
        error = mcgrad_error(frame.astype(dict.fromkeys(by, str)), by)
        segments["MCGrad"] = len(np.asarray(error.segments_ecce_pvalue))
        seconds["MCGrad"].append(time.process_time() - start)
    least = {name: round(min(each), 3) for name, each in seconds.items()}
    ratio = round(least["MCGrad"] / least["audit"], 1)
    return {"rows": n, "segments": segments, "seconds": least, "ratio": ratio}


def main() -> None:
    """Run one of the simulations."""
    command, *rest = sys.argv[1:]
    if command == "familywise":
        size = {"n": 5000, "columns": 7, "values": 5, "depth": 3}
        if rest[2:] == ["small"]:
            size = {"n": 3000, "columns": 4, "values": 6, "depth": 2}
        familywise(rest[0], int(rest[1]), **size)
    elif command == "evidence":
        print(json.dumps(evidence()))
    else:
        one = {"power": power_of_one_cell, "mcgrad": mcgrad_false}.get(command)
        found = one(int(rest[0])) if one else {"agreement": agreement, "speed": speed}[command]()
        print(json.dumps(found))


def power_of_one_cell(runs: int) -> dict[str, Any]:
    """Return the power for a gap of 0.2 in one of 36 combinations of two columns."""
    return power(runs, n=3000, columns=4, values=6, gap=0.2)


def evidence() -> dict[str, Any]:
    """Return what `make evidence` shows."""
    return {
        "agreement": agreement(),
        "power": power_of_one_cell(100),
        "MCGrad": mcgrad_false(100),
        "speed": speed(),
    }


if __name__ == "__main__":
    main()
