"""Write tests/reference/groups.json: variances over groups as computed by R.

python -m benchmarks.groups_reference

R's package clubSandwich computes CR2 variances and Satterthwaite's degrees of freedom, and metafor
the interval for a new group. The data are simulated, and the file holds them.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent


def computed(columns: dict[str, Any], groups: dict[str, Any]) -> dict[str, float]:
    """Return what the R script prints."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, table in (("rows", columns), ("groups", groups)):
            lines = zip(*(map(repr, values) for values in table.values()), strict=True)
            path = Path(folder) / f"{name}.csv"
            path.write_text("\n".join([",".join(table), *map(",".join, lines)]) + "\n")
            paths.append(str(path))
        command = ["Rscript", str(HERE / "groups_reference.R"), *paths]
        done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    return {name: float(value) for name, value in map(str.split, done.stdout.splitlines())}


def simulated(groups: int, *, weighted: bool, seed: int) -> dict[str, Any]:
    """Return rows of unequal groups, and what R computes from them."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), rng.integers(4, 25, groups))
    p = rng.random(group.size).round(6)
    y = np.clip(p + 0.1 * rng.standard_normal(groups)[group] - 0.05, 0, 1).round(6)
    w = np.exp(rng.standard_normal(p.size)).round(6) if weighted else np.ones(p.size)
    columns = {"gap": (p - y).tolist(), "bin": np.minimum(p * 3, 2).astype(int).tolist(),
               "group": group.tolist(), "weight": w.tolist()}  # fmt: skip
    of_groups = {
        "estimate": rng.normal(0.02, 0.05, groups).round(6).tolist(),
        "error": rng.uniform(0.01, 0.04, groups).round(6).tolist(),
    }
    rows = {"y_true": y.tolist(), "y_prob": p.tolist(), "groups": group.tolist()}
    return {**rows, "sample_weight": w.tolist(), "of_groups": of_groups,
            "found": computed(columns, of_groups)}  # fmt: skip


def main() -> None:
    """Compute and store the values."""
    found = [simulated(9, weighted=False, seed=1), simulated(14, weighted=True, seed=2)]
    target = HERE.parent / "tests" / "reference" / "groups.json"
    target.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
