"""Write tests/reference/dawid_skene.json, the results of crowd-kit 1.4.2.

crowd-kit needs transformers and nltk, so the tests do not depend on it. To write the file again:
make a virtual environment, `pip install --no-deps crowd-kit==1.4.2 nltk regex` into it, and attrs,
click, joblib, numpy, pandas, pyarrow, scikit-learn, tqdm; then run this there. Given the votes of
MultiPICo (a Parquet file) as an argument, it adds sums over them; they cannot be stored here.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from crowdkit.aggregation.classification.dawid_skene import DawidSkene

ITERATIONS = 30


def synthetic() -> pd.DataFrame:
    """Return 80 items of three classes, each with votes of 2 to 7 of 12 workers who differ."""
    rng = np.random.default_rng(7)
    skill = rng.uniform(0.4, 0.95, 12)
    rows = []
    for item in range(80):
        truth = rng.choice(3, p=[0.5, 0.3, 0.2])
        for worker in rng.choice(12, size=rng.integers(2, 8), replace=False):
            right = rng.random() < skill[worker]
            label = truth if right else (truth + rng.integers(1, 3)) % 3
            rows.append((item, int(worker), int(label)))
    return pd.DataFrame(rows, columns=["task", "worker", "label"])


def sparse() -> pd.DataFrame:
    """Return 60 items with two votes each of 40 workers, most without items of some class."""
    rng = np.random.default_rng(8)
    rows = []
    for item in range(60):
        truth = rng.integers(0, 3)
        for worker in rng.choice(40, size=2, replace=False):
            label = truth if rng.random() < 0.8 else rng.integers(0, 3)
            rows.append((item, int(worker), int(label)))
    return pd.DataFrame(rows, columns=["task", "worker", "label"])


def fitted(votes: pd.DataFrame) -> DawidSkene:
    """Run a fixed number of iterations, so that stopping rules do not matter."""
    return DawidSkene(n_iter=ITERATIONS, tol=-np.inf).fit(votes)


def estimates(votes: pd.DataFrame) -> dict[str, Any]:
    """Fit votes for three classes, and return the votes and the estimates."""
    model = fitted(votes)
    posterior = model.probas_.sort_index()[[0, 1, 2]]
    errors = model.errors_[[0, 1, 2]]
    return {
        "votes": {name: votes[name].tolist() for name in votes},
        "posterior": posterior.to_numpy().tolist(),
        "said_given_true": [
            [int(worker), int(label), *map(float, row)]
            for (worker, label), row in zip(errors.index, errors.to_numpy(), strict=True)
        ],
    }


def main() -> None:
    """Fit, and write the estimates; sums over MultiPICo are kept if its votes are not given."""
    target = Path(__file__).resolve().parents[1] / "tests" / "reference" / "dawid_skene.json"
    found: dict[str, Any] = {
        "crowd-kit": version("crowd-kit"),
        "iterations": ITERATIONS,
        **estimates(synthetic()),
        "sparse": estimates(sparse()),
    }
    before = json.loads(target.read_text()) if target.exists() else {}
    if "multipico" in before:
        found["multipico"] = before["multipico"]
    if len(sys.argv) > 1:
        names = {"item": "task", "annotator": "worker", "vote": "label"}
        model = fitted(pd.read_parquet(sys.argv[1]).rename(columns=names))
        ironic = model.probas_[1]
        found["multipico"] = {
            "mean": float(ironic.mean()),
            "mean_square": float((ironic**2).mean()),
            "above_half": int((ironic > 0.5).sum()),
        }
    target.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
