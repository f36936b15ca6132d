from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

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


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start Chromium, which the tests of pages share within a module."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        needed = "the tests of pages need Chromium: apt-get install chromium"
        if os.environ.get("CI"):
            pytest.fail(needed)
        pytest.skip(needed)
    with sync_playwright() as play:
        # As root, Chromium runs only without its sandbox.
        started = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()
