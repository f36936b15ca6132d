"""The figures of the documentation are correct, in light and in dark mode."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
import pytest

import softcal as sc
from pictures import diagram, monitoring, style, uncertainty, without_bins
from shown_report import COMMAND, fingerprint, write_shown_report

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "docs" / "figures"


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


def test_screenshots_show_the_page_of_the_command(tmp_path: Path) -> None:
    write_shown_report(tmp_path / "report.html")
    page = fingerprint((tmp_path / "report.html").read_text(encoding="utf-8"))
    record = json.loads((FIGURES / "screenshots.json").read_text(encoding="utf-8"))
    assert {*record} == {path.name for path in FIGURES.glob("*.png")}
    for picture, shown in record.items():
        assert shown == {"command": COMMAND, "page": page}, (
            f"{picture} is outdated: run python tools/screenshots.py"
        )


def test_fingerprint_of_a_page_covers_what_its_pictures_show() -> None:
    head = "<style>p {color: red}</style><p>0.095</p><h2 id='where-title'>Where</h2><p>below</p>"
    charts = '<script id="report-charts">{"diagram": {"x": 0.123456789}, "other": 1}</script>'
    date = "<p>created on 2026-01-01</p><script>library()</script>"
    page = head + charts + date
    for hidden in (("below", "beneath"), ("01-01", "01-02"), ("library", "new"), ("789", "788")):
        assert fingerprint(page.replace(*hidden)) == fingerprint(page)
    for seen in (("0.095", "0.096"), ("red", "blue"), ("0.1234", "0.1244")):
        assert fingerprint(page.replace(*seen)) != fingerprint(page)
    with pytest.raises(ValueError, match="where-title"):
        fingerprint(charts)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/report.md"])
def test_pages_show_the_command_of_the_screenshot(page: str) -> None:
    text, _, _ = (ROOT / page).read_text(encoding="utf-8").partition("figures/report.png")
    shown = " ".join(text[text.rindex("    softcal report") :].replace("\\\n", " ").split())
    assert shown.startswith(COMMAND)


def test_alternative_texts_have_the_numbers_of_the_figures() -> None:
    titles = [ax.get_title(loc="left") for ax in _drawn(uncertainty.thirty_studies).axes]
    hits = [re.findall(r": (\d+) of 30", title)[0] for title in titles]  # ours and theirs, twice
    studies = "contain the true error in {0} and {2} of them, the bootstrap's in {1} and {3}]"
    curves = [line.get_ydata() for line in _drawn(diagram.number_of_bins).axes[0].lines[:2]]
    (a, b), (c, d) = ((float(y[0]), float(y[-1])) for y in map(np.asarray, curves))
    rising = f"from {a:.2f} to {b:.2f} and from {c:.2f} to {d:.2f}]"
    with (ROOT / "docs" / "coverage.csv").open(encoding="utf-8") as lines:
        cells = [float(row["coverage"]) for row in csv.DictReader(lines)]
    covered = f"softcal's is between {min(cells):.0%} and {max(cells):.0%}, the plug-in"
    lines_of_watch = _drawn(monitoring.watch).axes[0].lines
    since = next(line for line in lines_of_watch if "since" in str(line.get_label()))
    date = str(since.get_label()).split()[1].rstrip(",")
    error = f"before {date} and {np.asarray(since.get_ydata())[0]:.3f} since; the evidence"
    for page, text in (
        ("gallery.md", studies.format(*hits)),
        ("uncertainty.md", studies.format(*hits)),
        ("gallery.md", rising),
        ("diagram.md", rising),
        ("gallery.md", covered),
        ("simulations.md", covered),
        ("gallery.md", error),
        ("watch.md", error),
    ):
        written = (ROOT / "docs" / page).read_text(encoding="utf-8").replace("\n", " ")
        assert text in written, page


def _drawn(picture: Callable[[], Figure]) -> Figure:
    with mpl.rc_context(style.LOOK | {"backend": "agg"}):
        return picture()


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
