"""The diagram of text in the terminal: its bars show the gaps of the table."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest
from command_line import softcal_here
from rich.console import Console

import softcal as sc
from softcal.cli import sketch
from softcal.datasets import lidc_malignancy
from softcal.plot.sheet import COLORS, MARKS


def shown(models: dict[str, sc.Reliability], encoding: str = "utf-8", width: int = 80) -> list[str]:
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding=encoding, errors="backslashreplace") as file:
        sketch.show_sketch(Console(file=file, width=width, highlight=False), models)
        file.flush()
        return raw.getvalue().decode(encoding).splitlines()


def rows_of(lines: list[str]) -> list[str]:
    return [line for line in lines if re.match(r" *\d\.\d+ to \d\.\d+ ", line)]


@pytest.fixture
def rel() -> sc.Reliability:
    """Return four bins with gaps -0.3, +0.2 (certain) and +0.05 (uncertain), and an empty one."""
    p = np.repeat([0.1, 0.4, 0.6], 20)
    noise = np.tile([-1.0, 1.0], 30)
    y = p + np.repeat([0.3, -0.2, -0.05], 20) + noise * np.repeat([0.01, 0.01, 0.3], 20)
    return sc.reliability(y, p, bins=4)


def test_bars_show_sign_and_size_of_the_gap(
    rel: sc.Reliability,
) -> None:
    low, high, unsure, empty = rows_of(shown({"m": rel}))
    assert low.endswith("█" * 16 + "│")
    assert high.endswith(" │" + "█" * 10 + "▌")  # 0.2 / 0.3 of 16 is 10.67
    assert unsure.endswith(" │" + "░" * 3)
    assert empty.endswith("-" + " " * 18 + "│")
    assert low.split()[:7] == ["0.00", "to", "0.25", "20", "0.100", "0.400", "-0.300"]
    assert empty.split()[:7] == ["0.75", "to", "1.00", "0", "-", "-", "-"]
    middles = {row.index("│") for row in (low, high, unsure, empty)}
    assert len(middles) == 1


def test_full_bars_have_intervals_that_exclude_0(rng: np.random.Generator) -> None:
    p = rng.random(400)
    rel = sc.reliability(np.clip(p**1.4 + rng.normal(0, 0.1, 400), 0, 1), p)
    low, high = sc.gap_intervals(rel)
    rows = rows_of(shown({"m": rel}))
    for row, sure in zip(rows, (low > 0) | (high < 0), strict=True):
        if re.search("[█▐▌░]", row):
            assert ("░" in row) != sure


@pytest.mark.parametrize(
    ("label", "bar"),
    [(0.6, "▐█████"), (0.56, "▐████"), (0.55, "████"), (0.402, "")],  # 5.33, 4.27, 4, 0.05
)
def test_left_bars_are_rounded_to_half_a_character(label: float, bar: str) -> None:
    rel = sc.reliability([0.9, 0.9, label, label], [0.3, 0.3, 0.4, 0.4], bins=[0, 0.35, 1])
    assert rows_of(shown({"m": rel}))[1].endswith(f" {bar}│")


def test_all_models_share_one_scale(rel: sc.Reliability) -> None:
    worse = sc.reliability([0.9] * 4, [0.3] * 4, bins=4)
    alone = rows_of(shown({"m": rel}))[0]
    beside = rows_of(shown({"worse": worse, "m": rel}))[4]
    assert alone.count("█") == 2 * beside.count("█") == 16


def test_few_rows_do_not_set_the_scale_and_one_row_has_a_short_bar() -> None:
    p, y = np.repeat([0.1, 0.4], 50), np.repeat([0.3, 0.3], 50)
    for n, bar in ((1, "░"), (2, "█" * 16)):
        rel = sc.reliability(np.append(y, [0.0] * n), np.append(p, [0.9] * n), bins=4)
        first, second, _, few = rows_of(shown({"m": rel}))
        assert first.endswith("█" * 16 + "│")
        assert second.endswith("│" + "█" * 8)
        assert few.endswith("│" + bar)


def test_models_have_the_marks_and_colors_of_figures(rel: sc.Reliability) -> None:
    # As HTML, because rich keeps the escape codes of a style for consoles with other colors.
    console = Console(file=io.StringIO(), width=80, record=True)
    sketch.show_sketch(console, dict.fromkeys("abcdefgh", rel))
    page = console.export_html(inline_styles=True)
    for name, mark, color in zip("abcdefgh", MARKS, COLORS, strict=True):
        start = re.escape(f"color: {color.lower()}")
        assert re.search(f'{start}[^>]*">{mark.character} </span><span[^>]*>{name}</span>', page)
        assert re.search(f'{start}[^>]*">{"█" * 16}', page)
    assert not any(mark.character in line for line in shown({"m": rel}) for mark in MARKS)


def test_small_gaps_make_small_bars() -> None:
    nearly = sc.reliability([0.51, 0.51, 0.49], [0.5, 0.5, 0.5], bins=1)
    assert "█" * 2 not in "".join(rows_of(shown({"m": nearly})))


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1"])
def test_encoding_without_blocks_falls_back_to_ascii(rel: sc.Reliability, encoding: str) -> None:
    lines = shown({"m": rel}, encoding)
    assert all(line.isascii() for line in lines)
    assert rows_of(lines)[0].endswith("#" * 16 + "|")
    assert rows_of(lines)[1].endswith(" |" + "#" * 11)
    assert rows_of(lines)[2].endswith(" |...")


@pytest.mark.parametrize(
    ("bins", "merged"), [(1, 1), (7, 7), (10, 10), (12, 6), (13, 7), (15, 5), (20, 10), (25, 5),
                         (50, 10), (97, 10), (100, 10), (3600, 10)],
)  # fmt: skip
def test_many_bins_are_merged_into_at_most_ten(
    rng: np.random.Generator, bins: int, merged: int
) -> None:
    rel = sc.reliability(rng.random(500), rng.random(500), bins=bins)
    few = sketch.with_few_bins(rel)
    assert len(few.bins) == merged
    assert few.n == rel.n
    assert few.bias == pytest.approx(rel.bias, abs=1e-12)
    lines = shown({"m": rel})
    assert len(rows_of(lines)) == merged
    assert ("merged" in lines[0]) == (bins != merged)
    if bins != merged:
        assert lines[0] == f"m, {bins} bins merged into {merged}"


def test_edges_of_quantile_bins_and_tables_with_groups_are_shown(rng: np.random.Generator) -> None:
    p = rng.random(200)
    bins = sc.Bins.quantile(p, 17)
    rel = sc.reliability(p**2, p, bins=bins, groups=rng.integers(0, 40, 200))
    rows = rows_of(shown({"m": rel}))
    assert 5 <= len(rows) <= 10
    assert rows[0].startswith(f"0.000 to {bins.edges[2]:.3f} ")


def test_sketch_fits_80_columns_with_billions_of_rows() -> None:
    part = sc.reliability([0.0, 1.0] * 50, [0.2, 0.4] * 50, bins=10)
    for _ in range(27):
        part += part
    lines = shown({"m": part})
    assert "6,710,886,400" in "".join(lines)
    assert max(map(len, lines)) <= 80
    assert max(map(len, shown({"m": part}, width=40))) <= 40


def test_control_characters_in_names_are_escaped(rel: sc.Reliability) -> None:
    name = "[red]\x1b[31m\r\n\x07" + "x" * 100
    text = "\n".join(shown({name: rel}))
    assert "\x1b" not in text
    assert r"[red]\x1b[31m\r\n\x07xxx" in text
    assert text.replace("\n", "").count("x" * 100) == 1


def test_diagram_page_shows_printed_sketch() -> None:
    nodules = lidc_malignancy()
    rel = sc.reliability(
        nodules["soft_malignant"], nodules["prob_rf_all"], n_votes=nodules["n_readers"]
    )
    printed = "\n".join(line.rstrip() for line in shown({"prob_rf_all": rel}))
    page = Path(__file__).parent.parent / "docs" / "diagram.md"
    assert printed in page.read_text(encoding="utf-8")


def test_score_prints_a_sketch_per_model_but_not_in_json(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("y,p,q,w,v,g\x1b[2J\n" + "0.5,0.75,0.2,1,4,a\n" * 3 + "1,0.1,0.2,2,4,b\n")
    command = ("score", path, "--label", "y", "--pred", "p", "--pred", "q", "--weight", "w",
               "--votes", "v", "--group", "g\x1b[2J")  # fmt: skip
    table = softcal_here(*command)
    assert table.returncode == 0, table.stderr
    assert "\x1b" not in table.stdout
    assert table.stdout.count("too low too high") == 2
    assert len(rows_of(table.stdout.splitlines())) == 20
    as_json = softcal_here(*command, "--format", "json")
    assert as_json.returncode == 0, as_json.stderr
    assert "too low" not in as_json.stdout
