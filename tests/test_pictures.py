"""The figures of the documentation are correct, in light and in dark mode."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

import softcal as sc
from pictures import diagram, style, uncertainty, without_bins

ROOT = Path(__file__).parent.parent


@pytest.fixture
def drawn(tmp_path: Path) -> str:
    with mpl.rc_context(style.LOOK | {"backend": "agg"}):
        style.save(diagram.two_labels(), tmp_path / "picture.svg")
    return (tmp_path / "picture.svg").read_text(encoding="utf-8")


def test_every_color_of_a_figure_has_a_second_one_for_dark_mode(drawn: str) -> None:
    sheet, _, body = drawn.partition("</style>")
    used = set(re.findall(r"var\(--([0-9a-f]{6}), #\1\)", body))
    assert len(used) > 3
    assert used == set(re.findall(r"--([0-9a-f]{6}):#", sheet))
    assert re.findall(r"[^ ]#[0-9a-f]{6}", body) == []


def test_dark_mode_inverts_grays() -> None:
    dark = [style._for_dark_mode(color) for color in ("#000000", "#777777", "#ffffff")]
    assert dark == sorted(dark, reverse=True)


def test_readme_figure_is_what_the_build_draws(drawn: str) -> None:
    kept = (ROOT / "docs" / "figures" / "two_labels.svg").read_text(encoding="utf-8")
    number = r"-?\d+\.\d+"
    assert re.sub(number, "0", kept) == re.sub(number, "0", drawn)
    now, then = (np.array(re.findall(number, svg), dtype=float) for svg in (drawn, kept))
    np.testing.assert_allclose(now, then, atol=0.01)


def test_shaded_area_is_the_smooth_ece() -> None:
    share, forest = style.nodules()["soft_malignant"], style.nodules()["prob_rf_all"]
    found = sc.smooth_ece(share, forest)
    at = np.linspace(0, 1, 2001)
    area = np.trapezoid(np.abs(without_bins.smoothed_gap(share, forest, at, found)), at)
    assert area == pytest.approx(found, abs=1e-5)


def test_bootstrap_interval_of_the_figure_contains_its_own_error() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(uncertainty._ROWS)
    low, high = uncertainty._bootstrap(p - 0.2 * (p - 0.5), p, rng)  # exact labels have no noise
    assert low < sc.smece(p - 0.2 * (p - 0.5), p) < high
    assert high - low < 0.01
