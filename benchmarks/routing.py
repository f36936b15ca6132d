"""Check the promise of `route` on real votes. Run as `python benchmarks/routing.py --splits 2000`.

Each split takes a random half of the rows, finds the rule on it, and computes the share of people
who disagree with accepted rows among all rows, which are the population, and in the other half.
The same is done for labels hardened to the majority. The result is docs/routing.csv.

MAPIE controls the precision of predictions above a threshold. With the confidence as the prediction
and "the majority agrees" as the label, that is one minus the risk of accepted rows, so on 0/1
labels both promise the same.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

import softcal as sc
from softcal.inference.routing import RouteOptions, _chosen, _Sums, _test_of

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("SOFTCAL_SHARED_DATA", ROOT.parent / "shared" / "data"))
LEVEL = 0.95
TOP = RouteOptions(top_label=True)
LIMITS = {"cifar10h_vgg16": (0.03, 0.05, 0.08), "multipico": (0.30, 0.32, 0.34)}


class Study(NamedTuple):
    """Confidences, the shares of people who agree with the decisions, and how route reads them."""

    confidence: Any
    agree: Any


def study(name: str) -> Study:
    """Return the decisions of a model on real votes: the top class, or yes from 1/2 on."""
    table = pq.read_table(DATA / name / "items.parquet").to_pandas()
    if name == "multipico":
        p, y = table["prob_ironic_lr"].to_numpy(), table["votes_ironic"] / table["n_votes"]
        return Study(np.maximum(p, 1 - p), np.where(p >= 0.5, y, 1 - y))
    votes, prob = (table.filter(like=start).to_numpy() for start in ("votes_", "prob_"))
    top = prob.argmax(axis=1)
    row = np.arange(top.size)
    return Study(prob[row, top], votes[row, top] / votes.sum(axis=1))


def rule(table: sc.Reliability, limit: float) -> float | None:
    """Return the threshold of `route`, without its curve, which costs more and is not needed."""
    sums = _Sums.of(table, top_label=True)
    found = _chosen(sums, _test_of(table, sums, TOP), limit, LEVEL)
    return found and found.threshold


def refuse_other_rules(table: sc.Reliability, limit: float) -> None:
    """Assert that the rules above are those of `route`."""
    found = sc.route(table, max_disagreement=limit, level=LEVEL, options=TOP)
    expected = [each and each.threshold for each in (found.rule, found.hardened)]
    if expected != [rule(table, limit), rule(table.hardened(), limit)]:
        raise AssertionError(expected)


def risk(of: Study, threshold: float | None, rows: Any) -> tuple[float, float]:
    """Return the share of rows accepted, and how many people disagree with them."""
    if threshold is None:
        return 0.0, 0.0
    accepted = rows[of.confidence[rows] >= threshold]
    return accepted.size / rows.size, float(1 - of.agree[accepted].mean()) if accepted.size else 0.0


def mapie_threshold(of: Study, limit: float, method: str, candidates: Any) -> float | None:
    """Return the threshold of MAPIE with the same promise, among candidates."""
    from mapie.risk_control import BinaryClassificationController

    controller = BinaryClassificationController(
        predict_function=lambda c: np.column_stack((1 - c.ravel(), c.ravel())), risk="precision",
        target_level=1 - limit, confidence_level=LEVEL, fwer_method=method,
        best_predict_param_choice="recall", list_predict_params=candidates,
    )  # fmt: skip
    controller.calibrate(of.confidence[:, None], of.agree.astype(int))
    best = controller.best_predict_param
    return None if best is None else float(best)


def violations(name: str, splits: int, mapie_splits: int) -> list[dict[str, Any]]:
    """Return a line for each limit and kind of rule."""
    soft = study(name)
    hard = Study(soft.confidence, 1.0 * (soft.agree > 0.5))
    rng = np.random.default_rng(31)
    every = np.arange(soft.agree.size)
    found: dict[tuple[float, str, str], list[Any]] = {}
    for number in range(splits):
        order = rng.permutation(every)
        here, there = order[: every.size // 2], order[every.size // 2 :]
        table = sc.reliability(soft.agree[here], soft.confidence[here], bins=sc.Bins.grid())
        binary = Study(hard.confidence[here], hard.agree[here])
        for limit in LIMITS[name]:
            if not number:
                refuse_other_rules(table, limit)
            of_majority = rule(table.hardened(), limit)
            rules = [
                ("route", "people", soft, rule(table, limit)),
                ("route, hardened labels", "people", soft, of_majority),
            ]
            if number < mapie_splits:
                rules.append(("route", "majority", hard, of_majority))
                # A sequence that starts where few rows are accepted stops there, as MAPIE's own
                # candidates can. So it also gets some that start with the surest tenth of the rows.
                own = np.linspace(0, 0.99, 100)
                tenth = np.unique(np.quantile(binary.confidence, np.linspace(0, 0.9, 600)))
                rules += [
                    (f"MAPIE, {name_of}", "majority", hard,
                     mapie_threshold(binary, limit, method, candidates))
                    for name_of, method, candidates in (
                        ("bonferroni_holm", "bonferroni_holm", own),
                        ("fixed_sequence", "fixed_sequence", own),
                        ("fixed_sequence from a tenth", "fixed_sequence", tenth),
                    )
                ]  # fmt: skip
            for kind, labels, truth, threshold in rules:
                accepted, on_all = risk(truth, threshold, every)
                on_rest = risk(truth, threshold, there)[1]
                found.setdefault((limit, kind, labels), []).append(
                    (on_all > limit, on_rest > limit, accepted, on_all, threshold is not None)
                )
    lines = []
    for (limit, kind, labels), each in found.items():
        means = np.mean(np.array(each, dtype=np.float64), axis=0).round(4).tolist()
        names = ("above_limit", "above_limit_in_other_half", "accepted", "disagree", "has_rule")
        lines.append({
            "data": name, "limit": limit, "rule": kind, "labels": labels, "splits": len(each),
            **dict(zip(names, means, strict=True)),
        })  # fmt: skip
    return sorted(lines, key=lambda line: (line["labels"] != "people", line["limit"]))


def seconds(rows: int) -> tuple[float, float]:
    """Return the time to scan rows, and the least time of a rule after that."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.4, 0.4, rows)
    y = rng.binomial(5, p) / 5
    start = time.perf_counter()
    table = sc.reliability(y, p, bins=sc.Bins.grid())
    scanned = time.perf_counter() - start
    times = []
    for _ in range(20):
        start = time.perf_counter()
        sc.route(table)
        times.append(time.perf_counter() - start)
    return scanned, min(times)


def main() -> None:
    """Write docs/routing.csv, and print it with the time of a rule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=2000)
    parser.add_argument("--mapie-splits", type=int, default=100)
    parser.add_argument("--rows", type=int, default=10_000_000, help="to time a rule")
    asked = parser.parse_args()
    lines = [line for name in LIMITS for line in violations(name, asked.splits, asked.mapie_splits)]
    with (ROOT / "docs" / "routing.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    for line in lines:
        print(*line.values())
    scanned, ruled = seconds(asked.rows)
    print(f"{asked.rows:,} rows: scanned in {scanned:.2f} s, then a rule in {1000 * ruled:.2f} ms")


if __name__ == "__main__":
    main()
