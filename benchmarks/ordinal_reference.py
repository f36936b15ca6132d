"""Write tests/reference/ordinal.json: what scoringrules and POT compute for ordered classes.

To write the file again: make a virtual environment, `pip install scoringrules==0.10.0 POT==0.9.7`
into it, and run this there.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import ot
import scoringrules


def main() -> None:
    """Draw labels and predictions of five classes, score each row, and write all of it."""
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.full(5, 0.7), 40)
    shares = rng.multinomial(4, rng.dirichlet(np.ones(5), 40)) / 4
    outcome = rng.integers(0, 5, 40)
    places = np.arange(5.0)
    found = {
        "scoringrules": version("scoringrules"),
        "POT": version("POT"),
        "y_prob": p.tolist(),
        "shares": shares.tolist(),
        "outcome": outcome.tolist(),
        # scoringrules numbers the classes from 1.
        "ranked_probability_score": scoringrules.rps_score(outcome + 1, p).tolist(),
        "wasserstein": [
            float(ot.wasserstein_1d(places, places, y, q)) for y, q in zip(shares, p, strict=True)
        ],
    }
    target = Path(__file__).resolve().parents[1] / "tests" / "reference" / "ordinal.json"
    target.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
