"""Write tests/reference/rms.json: calibration summaries as computed by R and its package rms.

python -m benchmarks.rms_reference

Two data sets: simulated outcomes, which the file holds, and the radiologists' labels at 1/2.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from scipy.special import expit, logit

from softcal.datasets import lidc_malignancy

HERE = Path(__file__).resolve().parent


def computed(p: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return what the R script prints."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "data.csv"
        rows = "".join(f"{a!r},{b}\n" for a, b in zip(p.tolist(), y.tolist(), strict=True))
        table.write_text("p,y\n" + rows)
        command = ["Rscript", str(HERE / "rms_reference.R"), str(table)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    return {name: float(value) for name, value in map(str.split, done.stdout.splitlines())}


def main() -> None:
    """Compute and store the values."""
    rng = np.random.default_rng(20261117)
    p = rng.beta(1, 2, 400).round(6)
    y = rng.binomial(1, expit(0.3 + 0.7 * logit(p)))
    nodules = lidc_malignancy()
    hard = (nodules["soft_malignant"] > 0.5).astype(int)
    found = {
        "y_true": y.tolist(),
        "y_prob": p.tolist(),
        "simulated": computed(p, y),
        "nodules": computed(nodules["prob_lr_geometry"], hard),
    }
    target = HERE.parent / "tests" / "reference" / "rms.json"
    target.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
