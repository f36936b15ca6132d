from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray

# Test machines are shared, so a slow example is not a failure. The examples are the same in every
# run, so that a failure is one of the change under test; `make explore` draws new ones.
settings.register_profile("softcal", deadline=None, max_examples=100, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "softcal"))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def peers_data() -> tuple[FloatArray, FloatArray]:
    """Return (y, p) for which the results of softcal and of its peers are known."""
    x = np.random.default_rng(0).uniform(-3, 3, 5000)
    return 1 / (1 + np.exp(-2 * x)), 1 / (1 + np.exp(-6 * x))
