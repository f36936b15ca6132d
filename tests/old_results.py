"""Results of a set, for files in tests/tables that contain a saved set and its results.

Run it with the version of softcal whose files must stay readable: `python tests/old_results.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import softcal as sc

FOLDER = Path(__file__).parent / "tables"


def results(tables: sc.TableSet) -> dict[str, Any]:
    """Return numbers that depend on every sum of a set."""
    found: dict[str, Any] = {"n": tables.n}
    for model in tables.models:
        for target in tables.targets:
            rel = tables[model, target]
            found[f"{model}, {target}"] = [rel.smece, rel.brier]
            found[f"{model}, {target}, clusters"] = (
                None
                if rel.clusters is None
                else [rel.clusters.count, *rel.clusters.residual[0].tolist()]
            )
        if tables.classes:
            scores = tables.item_scores(model)._asdict()
            found[f"{model}, scores"] = {k: v for k, v in scores.items() if v is not None}
    if len(tables.targets) != 2:  # bounds have no pairs
        both = tables.pair(*tables.models[::-1])
        raters = [] if both.raters is None else both.raters.products[:, 0].ravel().tolist()
        found["pair"] = [*both.cross[0].tolist(), *both.brier, *both.log_loss, *raters]
    for column in tables.by_names:
        found[column] = {
            str(value): results(part) for value, part in tables.by(column).items() if part.n > 9
        }
    return found


def _examples() -> dict[str, sc.TableSet]:
    rng = np.random.default_rng(3)
    n, edges = 120, [0, 0.25, 0.5, 1]
    rows: dict[str, Any] = {
        "a": rng.integers(1, 100, n) / 100, "b": rng.integers(1, 100, n) / 100,
        "y": rng.integers(0, 5, n) / 4, "w": rng.integers(0, 4, n) / 2,
        "who": [f"name {k}" for k in rng.integers(0, 15, n)],
        "site": rng.choice(["x", "y"], n), "device": rng.choice(["1", "2", "3"], n),
    }  # fmt: skip
    rows["h"] = np.minimum(rows["y"] + 0.25, 1)
    for names, alpha in (("pqr", 1.0), ("stu", 3.0)):
        rows |= dict(zip(names, rng.dirichlet([alpha] * 3, n).round(3).T, strict=True))
    rows["r"], rows["u"] = 1 - rows["p"] - rows["q"], 1 - rows["s"] - rows["t"]
    rows |= dict(zip("ijk", rng.multinomial(3, [0.5, 0.3, 0.2], n).T, strict=True))
    votes: dict[str, Any] = {
        name: np.repeat(values, 3) for name, values in rows.items() if name in ("a", "b", "site")
    }
    votes |= {
        "item": np.repeat(np.arange(n), 3), "vote": rng.integers(0, 2, 3 * n),
        "worker": [f"r{k}" for _ in range(n) for k in rng.permutation(8)[:3]],
    }  # fmt: skip
    two: dict[str, Any] = {"y_true": "y", "y_prob": ["a", "b"], "bins": edges}
    classes = {"a": ["p", "q", "r"], "b": ["s", "t", "u"]}
    return {
        "groups_by": sc.scan(pd.DataFrame(rows), **two, by=["site", "device"], groups="who", sample_weight="w"),
        "raters": sc.scan(
            pd.DataFrame(votes), y_prob=["a", "b"], bins=edges, by="site",
            y_true=sc.RawVotes("vote", item="item", rater="worker", positive=1, raters=True),
        ),
        "ordered": sc.scan(
            pd.DataFrame(rows), y_prob=classes, by="site", groups="who", bins=edges,
            y_true=sc.Classes(["i", "j", "k"], names=["1", "2", "3"], counts=True, ordered=True),
        ),
        "bounds": sc.scan(pd.DataFrame(rows), y_true=sc.Bounds("y", "h"), y_prob=["a", "b"], bins=edges),
    }  # fmt: skip


if __name__ == "__main__":
    from softcal.table.files import content

    for name, tables in _examples().items():
        saved = {"results": results(tables), "set": content(tables)}
        path = FOLDER / f"tables2_{name}.json"
        path.write_text(json.dumps(saved) + "\n", encoding="utf-8")
