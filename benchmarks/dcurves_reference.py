"""Write tests/reference/dcurves.json: net benefit as computed by R's dcurves.

The argument is a folder with `data.csv` and `net_benefit_age.csv` of the public project
MSKCC-Epi-Bio/dcurves (Apache-2.0). The model is an unpenalized logistic regression of cancer on
age.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit


def main(folder: Path) -> None:
    """Fit the model, and store predictions, labels, and the published net benefit."""
    with (folder / "data.csv").open() as file:
        data = list(csv.DictReader(file))
    y = np.array([row["cancer"] == "TRUE" for row in data], dtype=float)
    x = np.array([float(row["age"]) for row in data])
    z = (x - x.mean()) / x.std()

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        eta = theta[0] + theta[1] * z
        d = expit(eta) - y
        return float(np.logaddexp(0, eta).sum() - y @ eta), np.array([d.sum(), d @ z])

    theta = minimize(loss, [0.0, 0.0], jac=True, tol=1e-12).x
    with (folder / "net_benefit_age.csv").open() as file:
        published = list(csv.DictReader(file))
    found = {
        "y_true": y.astype(int).tolist(),
        "y_prob": expit(theta[0] + theta[1] * z).tolist(),
    }
    for name in ("age", "all"):
        rows = [row for row in published if row["variable"] == name]
        found["threshold"] = [float(row["threshold"]) for row in rows]
        found[name] = [float(row["net_benefit"]) for row in rows]
    target = Path(__file__).resolve().parents[1] / "tests" / "reference" / "dcurves.json"
    target.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
