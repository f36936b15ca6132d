from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray

# Shared, noisy machines: a slow example is no failure.
settings.register_profile("softcal", deadline=None, max_examples=100)
settings.load_profile("softcal")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def peers_data() -> tuple[FloatArray, FloatArray]:
    """(y, p): the data of PEERS.md, where every right and wrong number is known."""
    x = np.random.default_rng(0).uniform(-3, 3, 5000)
    return 1 / (1 + np.exp(-2 * x)), 1 / (1 + np.exp(-6 * x))
