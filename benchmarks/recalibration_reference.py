"""Write tests/reference/recalibration.json: logistic recalibration by statsmodels.

To write the file again: make a virtual environment, `pip install statsmodels==0.14.6` into it, and
run this there. Covariances are statsmodels' HC0, and by clusters without its correction.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import statsmodels.api as sm


def main() -> None:
    """Fit 0/1 labels and shares of four votes, and write data and estimates."""
    rng = np.random.default_rng(5)
    p = rng.beta(1, 2, 200).round(6)
    shares = rng.binomial(4, p**1.3) / 4
    group = rng.integers(0, 40, 200)
    x = np.log(p / (1 - p))
    found: dict[str, Any] = {
        "statsmodels": version("statsmodels"),
        "y_prob": p.tolist(),
        "group": group.tolist(),
    }
    for name, y in (("outcomes", (shares > 0.5).astype(float)), ("shares", shares)):
        model = sm.GLM(y, sm.add_constant(x), family=sm.families.Binomial())
        large = sm.GLM(y, np.ones(200), family=sm.families.Binomial(), offset=x)
        fit, only = model.fit(cov_type="HC0", tol=1e-14), large.fit(cov_type="HC0", tol=1e-14)
        clusters = {"groups": group, "use_correction": False}
        by_group = model.fit(cov_type="cluster", cov_kwds=clusters, tol=1e-14)
        found[name] = {
            "y_true": y.tolist(),
            "parameters": fit.params.tolist(),
            "covariance": fit.cov_params().tolist(),
            "by_group": by_group.cov_params().tolist(),
            "in_the_large": [float(only.params[0]), float(only.cov_params()[0, 0])],
        }
    target = Path(__file__).resolve().parents[1] / "tests" / "reference" / "recalibration.json"
    target.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
