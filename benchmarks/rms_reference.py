"""Write tests/reference/rms.json: calibration summaries as computed by R and its package rms.

python -m benchmarks.rms_reference

The data sets: simulated outcomes, which the file holds, and the radiologists' labels at 1/2. Of the
other numbers of rows, most are not multiples of 4, and two have equal predictions.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit

from softcal.datasets import lidc_malignancy

HERE = Path(__file__).resolve().parent
SIZES = ((30, 6), (33, 6), (102, 6), (401, 6), (33, 1), (102, 2))
"""Rows, and digits of their predictions."""


def computed(p: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return what the R script prints."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "data.csv"
        rows = "".join(f"{a!r},{b}\n" for a, b in zip(p.tolist(), y.tolist(), strict=True))
        table.write_text("p,y\n" + rows)
        command = ["Rscript", str(HERE / "rms_reference.R"), str(table)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    return {name: float(value) for name, value in map(str.split, done.stdout.splitlines())}


def simulated(n: int, digits: int, seed: int) -> dict[str, Any]:
    """Return outcomes, predictions, and what R computes from them."""
    rng = np.random.default_rng(seed)
    p = rng.beta(1, 2, n).round(digits).clip(10**-digits, 1 - 10**-digits)
    y = rng.binomial(1, expit(0.3 + 0.7 * logit(p)))
    return {"y_true": y.tolist(), "y_prob": p.tolist(), "simulated": computed(p, y)}


def main() -> None:
    """Compute and store the values."""
    nodules = lidc_malignancy()
    hard = (nodules["soft_malignant"] > 0.5).astype(int)
    found = {
        **simulated(400, 6, 20261117),
        "nodules": computed(nodules["prob_lr_geometry"], hard),
        "sizes": [simulated(n, digits, n) for n, digits in SIZES],
    }
    target = HERE.parent / "tests" / "reference" / "rms.json"
    target.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
