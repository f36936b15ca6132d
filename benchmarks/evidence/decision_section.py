"""Compare net benefit with the figures that R's dcurves published."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

import softcal as sc
from benchmarks.evidence.markdown import table
from benchmarks.evidence.peers import ROOT

SHOWN = (0.05, 0.1, 0.15, 0.2, 0.3)


def net_benefits() -> dict[str, Any]:
    """Return net benefit at all thresholds of dcurves, from rows and from a table."""
    path = ROOT / "tests" / "reference" / "dcurves.json"
    reference = json.loads(path.read_text(encoding="utf-8"))
    y, p = np.array(reference["y_true"]), np.array(reference["y_prob"])
    at, theirs = np.array(reference["threshold"]), np.array(reference["age"])
    rows = sc.net_benefit(y, p, at)
    rel = sc.reliability(y, p, bins=sc.Bins(np.union1d(sc.Bins.grid().edges, at)))
    of_table = sc.net_benefit(rel, at)
    shown = [int(np.abs(at - t).argmin()) for t in SHOWN]
    return {
        "thresholds": at.size,
        "rows": float(np.abs(rows.value - theirs).max()),
        "table": float(np.abs(of_table.value - theirs).max()),
        "treat all": float(np.abs(rows.treat_all - np.array(reference["all"])).max()),
        "shown": [
            [float(x[k]) for x in (at, theirs, rows.value, rows.low, rows.high)] for k in shown
        ],
    }


def section(found: dict[str, Any]) -> str:
    """Return the differences, and some of the thresholds."""
    lines = [
        [f"{t:.2f}", f"{theirs:.6f}", f"{ours:.6f}", f"{low:.4f} to {high:.4f}"]
        for t, theirs, ours, low, high in found["shown"]
    ]
    largest = max(found[name] for name in ("rows", "table", "treat all"))
    return "\n".join([
        "## Net benefit\n",
        f"softcal's net benefit differs from that of R's dcurves by at most {largest:.0e}. This "
        "holds for results from rows, from a table, and for treating all. dcurves publishes the "
        "net benefit of a model that predicts cancer from age (750 rows) at "
        f"{found['thresholds']} thresholds, without intervals.\n",
        table(("threshold", "dcurves", "softcal", "95% interval"), lines, numbers_from=0),
    ])  # fmt: skip
