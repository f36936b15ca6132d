"""Simulate how often each library's calibration test rejects, on data with known rates."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, logit

if TYPE_CHECKING:
    from benchmarks.evidence.peers import Peer

DATA_SETS = 200
LEVEL = 0.05
Draw = Callable[[np.random.Generator, Any], tuple[Any, Any]]


def hard(rng: np.random.Generator, q: Any) -> Any:
    return (rng.random(q.size) < q).astype(float)


def soft(rng: np.random.Generator, q: Any) -> Any:
    return rng.beta(8 * q, 8 * (1 - q))


# The label given its rate q, and the prediction.
KINDS: dict[str, Draw] = {
    "0/1, calibrated": lambda rng, q: (hard(rng, q), q),
    "soft, calibrated": lambda rng, q: (soft(rng, q), q),
    "soft, overconfident by 20%": lambda rng, q: (soft(rng, q), expit(1.2 * logit(q))),
    "0/1, underconfident by 20%": lambda rng, q: (hard(rng, q), expit(0.8 * logit(q))),
}

# The p-value of y and p, by library and test.
TESTS = {
    "softcal": {
        "calibration_test": "sc.calibration_test(sc.reliability(y, p)).pvalue",
        "ecce_range (Kuiper)": "sc.ecce_range(y, p).pvalue",
    },
    "MAPIE": {
        "Kolmogorov-Smirnov": "kolmogorov_smirnov_p_value(y, p)",
        "Kuiper": "kuiper_p_value(y, p)",
        "Spiegelhalter": "spiegelhalter_p_value(y, p)",
    },
    "MCGrad": {
        "ECCE": "ecce_pvalue(y, p)",
        "ECCE, outcome_type='regression'": "MulticalibrationError(pd.DataFrame({'y': y, 'p': p}), "
        "'y', 'p', outcome_type='regression').mce_pvalue",
    },
    "model-diagnostics": {
        "t-tests of ten bins, Bonferroni": "10 * compute_bias(y_obs=y, y_pred=p, feature=p, "
        "n_bins=10, bin_method='quantile')['p_value'].min()",
    },
    "calzone-tool": {
        "Spiegelhalter": "CalibrationMetrics(1, 10).calculate_metrics("
        "y, np.c_[1 - p, p], ['SpiegelhalterZ'])['SpiegelhalterZ p-value']",
    },
    "calibration-belt": {"belt": "CalibrationBelt(y, p).test()[1]"},
}


def rejection_rates(peer: Peer, names: dict[str, Any]) -> dict[str, dict[str, float | str]]:
    """Return the share of data sets that each test rejects, or the name of its error."""
    return {
        test: {kind: rejected(call, names, draw) for kind, draw in KINDS.items()}
        for test, call in TESTS.get(peer.name, {}).items()
    }


def rejected(call: str, names: dict[str, Any], draw: Draw) -> float | str:
    pvalue = eval(f"lambda y, p: {call}", names)  # noqa: S307 - the page shows this text
    rng = np.random.default_rng(0)
    hits = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(DATA_SETS):
            try:
                hits += bool(pvalue(*draw(rng, rng.random(1000))) < LEVEL)
            except Exception as error:  # an error of a library is its answer
                return f"{type(error).__name__}"
    return hits / DATA_SETS
