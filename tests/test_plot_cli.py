"""`softcal plot`: every kind and size, from rows and saved tables; refusals with a remedy."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import softcal_here

import softcal as sc
from softcal.plot import draw_bins, draw_gaps, draw_reliability
from softcal.plot.sheet import save_figure

ITEMS = str(files("softcal") / "data" / "lidc_malignancy" / "items.csv")
COLUMNS = ("--label", "soft_malignant", "--pred", "prob_rf_all", "--pred", "prob_lr_geometry")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "items.softcal"
    models = ["prob_rf_all", "prob_lr_geometry"]
    sc.scan(ITEMS, y_true="soft_malignant", y_prob=models).save(path)
    return path


@pytest.mark.parametrize("kind", ["reliability", "gaps", "decision", "bins"])
def test_rows_and_saved_tables_give_the_same_figure(kind: str, saved: Path, tmp_path: Path) -> None:
    rows, tables = tmp_path / "rows.png", tmp_path / "tables.png"
    for data, columns, output in ((ITEMS, COLUMNS, rows), (saved, (), tables)):
        done = softcal_here("plot", data, *columns, "--kind", kind, "-o", output)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.replace("\n", " ").startswith("Saved ")
        assert " 3.3 by " in done.stdout.replace("\n", " ")
    assert rows.read_bytes() == tables.read_bytes()


@pytest.mark.parametrize("size", ["column", "page", "talk"])
@pytest.mark.parametrize("suffix", ["pdf", "svg"])
def test_every_size_and_format_is_written(
    size: str, suffix: str, saved: Path, tmp_path: Path
) -> None:
    output = tmp_path / f"figure.{suffix}"
    done = softcal_here("plot", saved, "--size", size, "-o", output)
    assert done.returncode == 0
    text = output.read_bytes()
    assert text.startswith(b"%PDF" if suffix == "pdf" else b"<?xml")
    assert [each.name for each in tmp_path.iterdir()] == [output.name]


def test_thresholds_of_rows_may_be_anywhere(tmp_path: Path) -> None:
    marked = ("--threshold", 0.123, "--threshold", 0.4)
    output = tmp_path / "decision.svg"
    line = ("plot", ITEMS, *COLUMNS, "--kind", "decision", "-o", output)
    assert softcal_here(*line, *marked).returncode == 0
    assert output.stat().st_size > 5000


def test_trend_takes_a_column_of_days_or_files_of_days(
    rng: np.random.Generator, tmp_path: Path
) -> None:
    p = rng.uniform(size=900)
    day = np.repeat([f"2026-03-{k:02d}" for k in (1, 2, 3)], 300)
    rows = pd.DataFrame({"y": rng.binomial(3, p) / 3, "p": p, "day": day})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    for date, part in rows.groupby("day"):
        sc.scan(part, y_true="y", y_prob="p", date=date).save(tmp_path / f"{date}.softcal")
    one, two = tmp_path / "one.png", tmp_path / "two.png"
    trend = ("--kind", "trend", "--size", "talk", "--tolerance", 0.03)
    columns = ("--label", "y", "--pred", "p", "--day", "day")
    assert softcal_here("plot", tmp_path / "rows.csv", *columns, *trend, "-o", one).returncode == 0
    assert softcal_here("plot", tmp_path / "*.softcal", *trend, "-o", two).returncode == 0
    assert one.read_bytes() == two.read_bytes()


def test_trend_orders_days_in_time(rng: np.random.Generator, tmp_path: Path) -> None:
    p = rng.uniform(size=1200)
    rows = pd.DataFrame({"y": rng.binomial(3, p) / 3, "p": p, "day": np.repeat(np.arange(12), 100)})
    days = pd.to_datetime("2015-12-28") + pd.to_timedelta(rows["day"], unit="D")
    rows["us"] = days.dt.strftime("%m/%d/%Y")
    rows["iso"] = days.dt.strftime("%Y-%m-%dT%H:%M")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    line = ("plot", tmp_path / "rows.csv", "--label", "y", "--pred", "p", "--kind", "trend")
    one, two, weeks = (tmp_path / f"{name}.png" for name in ("one", "two", "weeks"))
    stated = ("--day", "us", "--day-format", "%m/%d/%Y")
    assert softcal_here(*line, *stated, "-o", one).returncode == 0
    assert softcal_here(*line, "--day", "iso", "-o", two).returncode == 0
    assert one.read_bytes() == two.read_bytes()
    assert softcal_here(*line, "--day", "iso", "--every", "week", "-o", weeks).returncode == 0
    assert weeks.read_bytes() != two.read_bytes()
    refused = softcal_here(*line, "--day", "us", "-o", tmp_path / "three.png")
    assert "the first is '12/28/2015'" in refused.stderr
    assert not (tmp_path / "three.png").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "pass the file to write: -o figure.pdf, or .svg or .png."),
        (("-o", "figure.docx"), "a figure is saved as .svg, .pdf, or .png: got 'figure.docx'. Name "
                                "it 'figure.pdf', for example."),
        (("-o", "f.pdf", "--day", "d"), "--day is for --kind trend: leave it out, or draw that "
                                        "kind."),
        (("-o", "f.pdf", "--every", "week"), "--every is for --kind trend"),
        (("-o", "f.pdf", "--day-format", "%Y"), "--day-format is for --kind trend"),
        (("-o", "f.pdf", "--kind", "gaps", "--threshold", "0.1"), "--threshold is for --kind "
                                                                  "decision"),
        (("-o", "f.pdf", "--kind", "decision", "--bins", "5"), "--bins is for --kind reliability or "
                                                               "gaps or trend or bins: leave it"),
        (("-o", "f.pdf", "--kind", "bins", "--logit"), "--logit is for --kind reliability or gaps"),
        (("-o", "f.pdf", "--kind", "decision", "--no-logit"), "--logit is for --kind reliability"),
        (("-o", "f.pdf", "--kind", "decision", "--ordered"), "--ordered is for --kind reliability"),
        (("-o", "f.pdf", "--ordered"), "--ordered must be as in the saved tables"),
        (("-o", "f.pdf", "--by", "site"), "the set has no segments by 'site'"),
        (("-o", "f.pdf", "--kind", "decision", "--threshold", "0.12345"), "--threshold must be an "
                                                                          "edge"),
        (("-o", "f.pdf", "--level", "95"), "level must be"),
    ],
)  # fmt: skip
def test_refusals_name_the_remedy_and_write_nothing(
    options: tuple[str, ...],
    said: str,
    saved: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = softcal_here("plot", saved, *options)
    assert done.returncode == 2
    assert said in done.stderr
    assert not list(tmp_path.iterdir())


def drawn(tmp_path: Path, data: object, *options: object) -> bytes:
    """Return the figure that a command draws."""
    output = tmp_path / "figure.png"
    done = softcal_here("plot", data, *options, "-o", output)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return output.read_bytes()


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return rows of rare events with segments and groups."""
    rng = np.random.default_rng(3)
    p = rng.beta(0.6, 60, 4000)
    made = {
        "y": rng.binomial(1, p),
        "p": p,
        "site": np.arange(4000) % 3,
        "g": np.arange(4000) // 50,
    }
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    pd.DataFrame(made).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("kind", ["reliability", "gaps", "bins", "decision"])
def test_options_draw_what_python_draws(kind: str, rows: Path, tmp_path: Path) -> None:
    line = ("--label", "y", "--pred", "p", "--kind", kind)
    tables = sc.scan(rows, y_true="y", y_prob="p", by=["site"])
    plain = drawn(tmp_path, rows, *line)
    by_site = drawn(tmp_path, rows, *line, "--by", "site", "--title", "By site")
    assert by_site != plain
    tables.save(tmp_path / "rows.softcal")
    saved = drawn(
        tmp_path, tmp_path / "rows.softcal", "--kind", kind, "--by", "site", "--title", "By site"
    )
    assert by_site == saved
    if kind == "decision":
        return
    draw: Any = {"reliability": draw_reliability, "gaps": draw_gaps, "bins": draw_bins}[kind]
    save_figure(draw(tables, by="site", title="By site", size="column"), tmp_path / "python.png")
    assert (tmp_path / "python.png").read_bytes() == by_site


def test_axes_in_log_odds_are_the_default_for_rare_events(rows: Path, tmp_path: Path) -> None:
    line = ("--label", "y", "--pred", "p")
    default, logit, linear = (
        drawn(tmp_path, rows, *line, *more) for more in ((), ("--logit",), ("--no-logit",))
    )
    assert default == logit != linear
    common = (ITEMS, *COLUMNS)
    default, logit, linear = (
        drawn(tmp_path, *common, *more) for more in ((), ("--logit",), ("--no-logit",))
    )
    assert default == linear != logit


@pytest.mark.parametrize("kind", ["reliability", "gaps", "bins", "decision"])
def test_groups_change_the_intervals_of_each_kind(
    kind: str, rng: np.random.Generator, tmp_path: Path
) -> None:
    p, group = rng.uniform(size=2000), np.repeat(np.arange(40), 50)
    y = np.clip(p + rng.normal(0, 0.2, 40)[group], 0, 1)
    pd.DataFrame({"y": y, "p": p, "g": group}).to_csv(tmp_path / "rows.csv", index=False)
    line = (tmp_path / "rows.csv", "--label", "y", "--pred", "p", "--kind", kind)
    assert drawn(tmp_path, *line, "--group", "g") != drawn(tmp_path, *line)


def test_groups_change_the_decision_curves_of_segments(rows: Path, tmp_path: Path) -> None:
    line = (rows, "--label", "y", "--pred", "p", "--kind", "decision", "--by", "site")
    assert drawn(tmp_path, *line, "--group", "g") != drawn(tmp_path, *line)


def test_ordered_classes_are_drawn_by_threshold(rng: np.random.Generator, tmp_path: Path) -> None:
    shares = rng.dirichlet([1, 1, 1], size=300)
    frame = pd.DataFrame(shares, columns=["p_1", "p_2", "p_3"])
    frame["y"] = [rng.choice([1, 2, 3], p=each) for each in shares]
    frame.to_csv(tmp_path / "rows.csv", index=False)
    line = ("--label", "y", "--pred-columns", "p_*", "--ordered")
    found = drawn(tmp_path, tmp_path / "rows.csv", *line)
    label = sc.Classes("y", ordered=True)
    tables = sc.scan(frame, y_true=label, y_prob={"p_*": "p_*"})
    save_figure(draw_reliability(tables, ordered=True, size="column"), tmp_path / "python.png")
    assert (tmp_path / "python.png").read_bytes() == found


def test_labels_that_are_intervals_are_refused(tmp_path: Path) -> None:
    rows = pd.DataFrame({"a": [0.1, 0.2], "b": [0.3, 0.4], "p": [0.2, 0.5]})
    tables = sc.scan(rows, y_true=sc.Bounds("a", "b"), y_prob="p")
    tables.save(tmp_path / "bounds.softcal")
    done = softcal_here("plot", tmp_path / "bounds.softcal", "-o", tmp_path / "f.pdf")
    assert done.returncode == 2
    assert "known only as intervals: `softcal score` prints the bounds of SMECE" in done.stderr


def test_decide_and_watch_refuse_an_unknown_figure_before_reading(tmp_path: Path) -> None:
    for line in (("decide", "--threshold", 0.1), ("watch",)):
        done = softcal_here(line[0], "no.csv", *line[1:], "--plot", tmp_path / "x.docx")
        assert "a figure is saved as .svg, .pdf, or .png: got 'x.docx'" in done.stderr
