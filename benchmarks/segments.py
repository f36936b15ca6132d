"""Simulate the audit: false findings, power, and speed beside Bonferroni and MCGrad.

python -m benchmarks.segments grid                    false findings: docs/audit_false.csv
python -m benchmarks.segments groups RUNS             the same with groups: docs/audit_groups.csv
python -m benchmarks.segments precise RUNS            gaps of soft labels: docs/audit_power.csv
python -m benchmarks.segments power RUNS              how often a planted gap is found
python -m benchmarks.segments mcgrad RUNS             false findings of MCGrad's maximum
python -m benchmarks.segments speed                   a million rows, 500 segments
python -m benchmarks.segments agreement               the statistic of a segment
python -m benchmarks.segments evidence                the part of `make evidence`

The others run MCGrad if it can be imported; see `benchmarks.evidence.peers`.
"""

from __future__ import annotations

import json
import math
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import ttest_1samp

import softcal as sc

KINDS = (
    "0/1", "rare 0/1", "4 votes", "5 votes, number unknown", "soft", "rare soft", "soft, symmetric",
    "soft, skewed", "nearly exact", "mixed", "other labels in each segment",
)  # fmt: skip
SIZES: dict[str, dict[str, int]] = {  # of about 10, 350, 150, and 4,800 segments
    "few": {"n": 600, "columns": 1, "values": 10, "depth": 1, "min_rows": 5, "runs": 150},
    "small": {"n": 2000, "columns": 3, "values": 10, "depth": 2, "min_rows": 5, "runs": 60},
    "large": {"n": 20_000, "columns": 3, "values": 6, "depth": 2, "min_rows": 30, "runs": 200},
    "many": {"n": 5000, "columns": 7, "values": 5, "depth": 3, "min_rows": 15, "runs": 10},
}
LEVEL = 0.95
DOCS = Path(__file__).parent.parent / "docs"


def labels(kind: str, p: Any, rng: np.random.Generator) -> Any:
    """Return labels of a calibrated model."""
    if kind == "4 votes":
        return rng.binomial(4, p) / 4
    if kind.startswith("5 votes"):
        return rng.binomial(5, p) / 5
    if kind in ("soft", "rare soft"):  # a beta distribution with mean p
        return rng.beta(5 * p, 5 * (1 - p))
    reach = np.minimum(p, 1 - p)
    if kind == "soft, symmetric":
        return p + np.minimum(reach, 0.1) * rng.uniform(-1, 1, p.size)
    if kind == "soft, skewed":  # one in ten is far above p, and the others are just below
        return p + np.minimum(reach, 0.18) * np.where(rng.uniform(size=p.size) < 0.1, 1, -1 / 9)
    if kind == "nearly exact":  # one in fifty is an outcome
        near = p + 0.05 * reach * rng.uniform(-1, 1, p.size)
        return np.where(rng.uniform(size=p.size) < 0.02, rng.binomial(1, p), near)
    if kind == "mixed":  # outcomes in half of the rows, vote shares in the others
        m = np.where(rng.uniform(size=p.size) < 0.5, 1, 8)
        return rng.binomial(m, p) / m
    return rng.binomial(1, p).astype(float)


def calibrated(kind: str, rng: np.random.Generator, n: int, columns: int, values: int) -> Any:
    """Return rows of a calibrated model, and their label.

    The values of the second column are halves of those of the first.
    """
    p = rng.beta(0.5, 20, size=n) if kind.startswith("rare") else rng.beta(1, 2, size=n)
    p = np.clip(p, 1e-6, 1 - 1e-6)
    codes = rng.integers(0, values, size=(columns, n))
    if columns > 1:
        codes[1] = 2 * codes[0] + rng.integers(0, 2, size=n)
    if kind == KINDS[-1]:
        each = [labels(name, p, rng) for name in ("0/1", "soft, symmetric", "soft")]
        y = np.choose(np.minimum(codes[0], 2), each)
    else:
        y = labels(kind, p, rng)
    frame = pd.DataFrame({"p": p, "y": y, "votes": 4} | {f"c{k}": codes[k] for k in range(columns)})
    return frame, sc.Shares("y", votes="votes") if kind == "4 votes" else "y"


def familywise(kind: str, size: str) -> dict[str, Any]:
    """Return how often anything is found in calibrated data."""
    n, columns, values, depth, min_rows, runs = SIZES[size].values()
    false, tested = 0, 0
    for seed in range(runs):
        rng = np.random.default_rng([2727, KINDS.index(kind), n, seed])
        frame, label = calibrated(kind, rng, n, columns, values)
        found = sc.audit(
            frame, y_true=label, y_prob="p", by=[f"c{k}" for k in range(columns)], depth=depth,
            min_rows=min_rows, level=LEVEL, draws=199, rng=seed,
        )  # fmt: skip
        tested += len(found.segments)
        false += min(found.overall.pvalue, found.segments[0].pvalue) <= 1 - LEVEL
    row = {"labels": kind, "rows": n, "segments": round(tested / runs), "runs": runs}
    return row | {"found": round(false / runs, 4)}


def write_csv(name: str, rows: list[dict[str, Any]]) -> None:
    """Write rows to a file of docs."""
    pd.DataFrame(rows).to_csv(DOCS / name, index=False, lineterminator="\n")


def grid() -> None:
    """Write the share of calibrated data sets in which anything is found."""
    rows = []
    for size in SIZES:
        for kind in KINDS:
            rows.append(familywise(kind, size))
            print(json.dumps(rows[-1]), flush=True)
    write_csv("audit_false.csv", rows)


GROUPS = ((6, 60), (9, 50), (20, 25), (50, 10), (200, 5))  # and rows of each


def groups(runs: int) -> None:
    """Write how often anything is found in calibrated data whose rows vary together in groups.

    In half of the groups labels are likelier than predicted, in half they are less likely. Two
    columns vary within groups, one between them. Sizes of groups vary if there are 20 or 200.
    """
    rows = []
    for kind, (n_groups, size) in product(("0/1", "rare 0/1", "soft"), GROUPS):
        found = {"groups": 0, "rows": 0}
        for seed in range(runs):
            rng = np.random.default_rng([3030, n_groups, len(kind), seed])
            sizes = np.full(n_groups, size)
            if n_groups in (20, 200):
                sizes = np.maximum(1, size * rng.exponential(size=n_groups)).astype(int)
            group = np.repeat(np.arange(n_groups), sizes)
            p = rng.uniform(0.02, 0.98, group.size) * (0.1 if kind == "rare 0/1" else 1)
            q = p + 0.6 * rng.choice([-1, 1], n_groups)[group] * np.minimum(p, 1 - p)
            y = rng.beta(10 * q, 10 * (1 - q)) if kind == "soft" else rng.binomial(1, q)
            by = {"a": rng.integers(0, 4, p.size), "b": rng.integers(0, 3, n_groups)[group],
                  "c": rng.integers(0, 3, p.size)}  # fmt: skip
            frame = pd.DataFrame({"y": y, "p": p, "g": group} | by)
            for name, column in (("groups", "g"), ("rows", None)):
                audit = sc.audit(
                    frame, y_true="y", y_prob="p", by=[*by], draws=499, rng=seed, groups=column
                )
                pvalues = [each.pvalue for each in (audit.overall, *audit.segments)]
                found[name] += min(pvalues) <= 1 - LEVEL
        shares = {f"found with {name}": round(n / runs, 4) for name, n in found.items()}
        rows.append(
            {"labels": kind, "groups": n_groups, "rows of each": size, "runs": runs} | shares
        )
        print(json.dumps(rows[-1]), flush=True)
    write_csv("audit_groups.csv", rows)


PLANTED = (  # labels, those of the segment that is off, and its gap
    ("soft", "soft", 0.11), ("4 votes", "4 votes", 0.14), ("0/1", "0/1", 0.27),
    ("soft, symmetric", "soft, symmetric", 0.03), ("soft, skewed", "soft, skewed", 0.03),
    ("soft", "soft, symmetric", 0.03),
)  # fmt: skip


def precise(runs: int) -> None:
    """Write how often the audit and Bonferroni's t-tests find a gap in one of 36 cells."""
    rows = []
    for k, (kind, inside, gap) in enumerate(PLANTED):
        hits = np.zeros(2)
        for seed in range(runs):
            rng = np.random.default_rng([2728, k, seed])
            n, columns = 3000, 4
            frame = pd.DataFrame({f"c{c}": rng.integers(0, 6, n) for c in range(columns)})
            here = ((frame.c0 == 0) & (frame.c1 == 0)).to_numpy()
            frame["p"] = rng.uniform(0.3, 0.9, n)
            mean = frame.p.to_numpy() - gap * here
            frame["y"] = np.where(here, labels(inside, mean, rng), labels(kind, mean, rng))
            label = sc.Shares("y", votes=4) if kind == "4 votes" else "y"
            found = sc.audit(
                frame, y_true=label, y_prob="p", by=[f"c{c}" for c in range(columns)], level=LEVEL,
                draws=399, rng=seed,
            )  # fmt: skip
            residual = (frame.p - frame.y)[here]
            pvalue = ttest_1samp(residual, 0).pvalue * len(found.segments)
            hits += [
                any(each.where == {"c0": "0", "c1": "0"} for each in found.found),
                pvalue <= 1 - LEVEL,
            ]
        audit, bonferroni = (round(float(x), 4) for x in hits / runs)
        row = {"labels": kind, "inside": inside, "gap": gap, "runs": runs, "audit": audit}
        rows.append(row | {"bonferroni_t": bonferroni})
        print(json.dumps(rows[-1]), flush=True)
    write_csv("audit_power.csv", rows)


def with_columns(frame: Any, rng: np.random.Generator, columns: int, values: int) -> Any:
    """Return the rows with columns of texts that are independent of each other."""
    for k in range(columns):
        frame[f"c{k}"] = rng.integers(0, values, size=len(frame)).astype(str)
    return frame


def planted(rng: np.random.Generator, n: int, columns: int, values: int, gap: float) -> Any:
    """Return rows of a model that is too high by `gap` in one combination of two values."""
    frame = with_columns(calibrated("0/1", rng, n, 0, values)[0], rng, columns, values)
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
            frame = with_columns(calibrated(kind, rng, 3000, 0, 6)[0], rng, 4, 6)
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
    if command == "grid":
        grid()
    elif command == "groups":
        groups(int(rest[0]))
    elif command == "precise":
        precise(int(rest[0]))
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
