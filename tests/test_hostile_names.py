"""Names from the data are text: in the terminal, JSON, files, and plots."""

from __future__ import annotations

import csv
import json
import os
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile import NAMES
from matplotlib.figure import Figure

import softcal as sc
from softcal import cli

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy as np

    Run = Callable[..., str]

ROWS = 3 * len(NAMES)


def escaped(name: str) -> str:
    """Return how a name must be shown, computed independently of softcal."""
    return "".join(
        c if c == " " or c.isprintable() else c.encode("unicode_escape").decode() for c in name
    )


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the terminal wide enough that no name is folded."""
    monkeypatch.setenv("COLUMNS", "9000")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command that must succeed; assert that it prints no control character."""

    def run(*arguments: object) -> str:
        code = cli.run([str(argument) for argument in arguments])
        shown = capsys.readouterr()
        assert code == 0, shown.err
        assert shown.err == "" or shown.err.startswith("softcal: note: the calibrator was fitted")
        assert all(c.isprintable() for c in (shown.out + shown.err).replace("\n", ""))
        return shown.out

    return run


@pytest.fixture
def data(tmp_path: Path, rng: np.random.Generator) -> Path:
    """Return a file whose columns have hostile names, with label 'y' and segments 's'."""
    path = tmp_path / "data.parquet"
    columns: dict[str, Any] = {name: rng.random(ROWS) for name in NAMES}
    slices = [NAMES[k % len(NAMES)] for k in range(ROWS)]
    pq.write_table(pa.table({"y": rng.random(ROWS), **columns, "s": slices}), path)
    return path


EACH = [f"--pred={name}" for name in NAMES]


def test_score_prints_and_saves_hostile_names(data: Path, run: Run, tmp_path: Path) -> None:
    shown = run("score", data, "--label=y", *EACH)
    assert [escaped(name) for name in NAMES if escaped(name) not in shown] == []
    saved = tmp_path / "saved.json"
    card = json.loads(run("score", data, "--label=y", *EACH, "--save", saved, "--format=json"))
    assert [model["pred"] for model in card["models"]] == list(NAMES)
    table = pq.read_table(data)
    for name, model in zip(NAMES, card["models"], strict=True):
        y, p = table["y"].to_numpy(), table[name].to_numpy()
        assert model["smece"] == pytest.approx(sc.smece(y, p), abs=1e-15)
    merged = json.loads(run("merge", saved, "--format=json"))
    assert {model["pred"] for model in merged["models"]} == set(NAMES)
    shown = run("merge", saved)
    assert [escaped(name) for name in NAMES if escaped(name) not in shown] == []
    for name in NAMES:
        run("plan", saved, f"--pred={name}", "--half-width", "0.1")


@pytest.mark.parametrize("name", NAMES)
def test_hostile_name_works_in_every_role(data: Path, run: Run, name: str) -> None:
    other = "count" if name != "count" else "p"
    options = [f"--label={name}", f"--pred={other}", "--format=json"]
    assert json.loads(run("score", data, *options))["label"] == name
    for part in ("--weight", "--by", "--group"):
        run("score", data, "--label=y", f"--pred={other}", f"{part}={name}")
    run("score", data, f"--label-low={name}", f"--label-high={name}", f"--pred={other}")


def test_hostile_segment_values_are_text(data: Path, run: Run) -> None:
    shown = run("score", data, "--label=y", "--pred=p", "--by=s")
    missing = [n for n in NAMES if not re.search(rf"{re.escape(escaped(n))} +3 ", shown)]
    assert missing == []
    card = json.loads(run("score", data, "--label=y", "--pred=p", "--by=s", "--format=json"))
    assert {one["value"] for one in card["models"][0]["segments"]} == set(NAMES)
    assert all(one["n"] == 3 for one in card["models"][0]["segments"])


@pytest.mark.parametrize("name", [name for name in NAMES if name != "p"])
def test_compare_prints_hostile_names(data: Path, run: Run, name: str) -> None:
    shown = run("compare", data, "--label=y", "--pred=p", f"--pred={name}")
    assert shown.count(escaped(name)) >= 2  # in the table, and in the sentence
    found = run("compare", data, "--label=y", "--pred=p", f"--pred={name}", "--format=json")
    assert json.loads(found)["pairs"][0]["b"] == name


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_apply_keeps_hostile_column_names(
    data: Path, run: Run, tmp_path: Path, suffix: str
) -> None:
    calibrator, output = tmp_path / "\x1b[31mc.json", tmp_path / f"\u202eo.{suffix}"
    fit = ("--label=y", "-o", calibrator, "--method=platt")
    assert "x1b[31mc.json" in run("recalibrate", data, *fit, "--pred==cmd|' /C calc'!A0")
    for name in NAMES:
        shown = run("apply", calibrator, data, f"--pred={name}", "-o", output)
        assert f"{escaped(name)}_calibrated" in shown
        if suffix == "parquet":
            present = pq.read_schema(output).names
        else:
            with output.open(encoding="utf-8", newline="") as lines:
                present = next(csv.reader(lines))
        assert f"{name}_calibrated" in present


def test_only_star_is_special_in_class_patterns(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "classes.csv"
    odd = ("[ab]?", "(.*)+", "\x1b[31m")
    with path.open("w", encoding="utf-8", newline="") as out:
        lines = csv.writer(out)
        lines.writerow([f"{kind}_{name}" for kind in "ypq" for name in odd])
        lines.writerows([[0.5, 0.25, 0.25, 0.125, 0.375, 0.5, 0.5, 0.375, 0.125]] * 9)
    columns = ("--label-columns=y_", "--pred-columns=p_*")
    assert json.loads(run("score", path, *columns, "--format=json"))["classes"] == list(odd)
    run("score", path, *columns)
    hostile = ("--label-columns=y_", f"--pred-columns={','.join(f'q_{name}' for name in odd)}")
    assert "q_\\x1b[31m" in run("score", path, *hostile)
    assert "q_\\x1b[31m" in run("compare", path, *columns, hostile[1])


def test_errors_print_hostile_names_on_one_line(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    absent = [f"absent {name}" for name in (*NAMES, "\udcff", r'sep="\q"', r'sep="\ud8"')]
    for name in absent:
        assert cli.run(["score", str(data), "--label=y", f"--pred={name}"]) == 2
        assert cli.run(["score", f"{data}{name}", "--label=y", "--pred=p"]) == 2
        assert cli.run(["report", str(data), "--label=s", f"--pred={name}"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 3 * len(absent)
    assert all(c.isprintable() for c in said.replace("\n", ""))


def test_errors_print_hostile_values_on_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.csv"
    for name in NAMES:
        if "\0" in name:
            continue  # text files cannot have it
        with path.open("w", encoding="utf-8", newline="") as out:
            csv.writer(out).writerows([["y", name], [0.5, name or "x"], [0.5, 2]])
        assert cli.run(["score", str(path), "--label=y", f"--pred={name}"]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert all(c.isprintable() for c in said.replace("\n", ""))


@pytest.mark.skipif(os.name == "nt", reason="file names of Windows are text")
def test_undecodable_file_names_are_read(
    tmp_path: Path, data: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / os.fsdecode(b"\xfe.html")
    assert "\\udcfe.html" in run("report", data, "--label=y", "--pred=p", "-o", page)
    for suffix, content in (("csv", b"y,p\n0.5,0.5\n"), ("parquet", data.read_bytes())):
        path = tmp_path / os.fsdecode(b"\xff." + suffix.encode())
        path.write_bytes(content)
        assert cli.run(["score", str(path), "--label=y", "--pred=p"]) == 2
        said = capsys.readouterr().err
        assert "udcff" in said
        assert said.endswith("its name is not UTF-8. Rename it first.\n")


def test_report_accepts_undecodable_names_and_separates_segments(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    sc.write_report(path, [0.5, 0.25], {"\udcff": [0.25, 0.75]}, title="\udcfe", by=["a", "a\0"])
    page = path.read_text(encoding="utf-8")
    assert "\\udcfe" in page
    assert "a\\x00" in page


@pytest.mark.filterwarnings("ignore:Glyph")  # the font lacks the letter, so a box is drawn
def test_plots_accept_hostile_names(tmp_path: Path) -> None:
    figure = Figure()
    axes = figure.add_subplot()
    rel = sc.reliability([0.5, 0.25], [0.25, 0.75])
    for name in (*NAMES, "\udcff"):
        rel.plot(axes, name=name, histogram=False)
    figure.savefig(tmp_path / "picture.png", dpi=20)
    legend = axes.get_legend()
    assert legend is not None
    drawn = [text.get_text() for text in legend.get_texts()]
    assert all(c.isprintable() for text in drawn for c in text.replace("\n", ""))
    assert len([text for text in drawn if "SMECE" in text]) == len(NAMES) + 1
