"""Bugs that reviewers found: each of these failed before it was mended."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import softcal as sc
from softcal import cli

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def votes(rng: np.random.Generator) -> pd.DataFrame:
    m = rng.integers(1, 4, 300)
    p = rng.uniform(0.02, 0.1, 300)
    return pd.DataFrame({"p": p, "m": m, "y": rng.binomial(m, p) / m, "w": m / 2})


def test_reports_and_scores_may_slice_by_the_votes(votes: pd.DataFrame, tmp_path: Path) -> None:
    votes.to_csv(tmp_path / "v.csv", index=False)
    options = [str(tmp_path / "v.csv"), "--label", "y", "--pred", "p", "--votes", "m", "--by", "m"]
    assert cli.run(["report", *options, "-o", str(tmp_path / "r.html")]) == 0
    assert cli.run(["score", *options, "--save", str(tmp_path / "s.json")]) == 0
    saved = json.loads((tmp_path / "s.json").read_text())
    assert sum(saved["models"][0]["table"]["sums"]["votes"]) == votes.m.sum()


def test_slices_from_text_and_from_numbers_are_the_same(
    votes: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    votes.to_csv(tmp_path / "v.csv", index=False)
    votes.to_parquet(tmp_path / "v.parquet")
    options = ["--label", "y", "--pred", "p", "--by", "m", "--format", "json"]
    both = [str(tmp_path / "v.csv"), str(tmp_path / "v.parquet")]
    assert cli.run(["score", *both, *options]) == 0
    found = json.loads(capsys.readouterr().out)["models"][0]["slices"]
    assert [one["value"] for one in found] == ["1", "2", "3"]
    assert [one["n"] for one in found] == [2 * int((votes.m == k).sum()) for k in (1, 2, 3)]


def test_numbers_sort_as_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "n.csv"
    path.write_text("y,p,s\n" + "".join(f"0.5,0.4,{s}\n" for s in ("10", "9", "b", "100")))
    assert (
        cli.run(
            ["score", str(path), "--label", "y", "--pred", "p", "--by", "s", "--format", "json"]
        )
        == 0
    )
    found = json.loads(capsys.readouterr().out)["models"][0]["slices"]
    assert [one["value"] for one in found] == ["9", "10", "100", "b"]


def test_a_file_without_weight_is_as_good_as_absent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    some = pd.DataFrame({"y": [0.5] * 200, "p": [0.4] * 200, "None": [0.3] * 200, "w": 0.0})
    some.to_csv(tmp_path / "a.csv", index=False)
    some.assign(w=1.0).to_csv(tmp_path / "b.csv", index=False)
    options = ["--label", "y", "--pred", "p", "--pred", "None", "--weight", "w"]
    assert cli.run(["compare", str(tmp_path), *options, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["difference"] == pytest.approx(-0.1)
    assert cli.run(["report", str(tmp_path), *options, "-o", str(tmp_path / "r.html")]) == 0
    assert cli.run(["compare", str(tmp_path / "a.csv"), *options]) == 2
    assert "w must have a positive value somewhere" in capsys.readouterr().err


def test_categories_are_their_values_in_reports(tmp_path: Path) -> None:
    kinds = pd.Categorical(["a", "b", "a"], categories=["a", "b", "never"])
    frame = pd.DataFrame({"y": [0.1, 0.9, 0.5], "p": [0.1, 0.9, 0.5], "s": kinds})
    frame.to_parquet(tmp_path / "c.parquet")
    options = ["--label", "y", "--pred", "p", "--by", "s", "-o", str(tmp_path / "r.html")]
    assert cli.run(["report", str(tmp_path / "c.parquet"), *options]) == 0
    kinds_of_python = np.array(["a", None, pd.NA], dtype=object)
    sc.write_report(tmp_path / "r.html", frame.y, {"m": frame.p}, by=kinds_of_python)
    assert "(no value)" in (tmp_path / "r.html").read_text(encoding="utf-8")
    coded = pa.chunked_array([pa.array(["a", "b", "b"]).dictionary_encode()])
    sc.write_report(tmp_path / "r.html", frame.y, {"m": frame.p}, by=coded)


def test_the_data_is_never_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "d.csv"
    path.write_text("y,p\n" + "0.5,0.4\n" * 20)
    before = path.read_text()
    options = [str(path), "--label", "y", "--pred", "p"]
    for command in (["report", "-o"], ["score", "--save"], ["recalibrate", "-o"]):
        assert cli.run([command[0], *options, command[1], str(path)]) == 2
        assert "is the data itself" in capsys.readouterr().err
    assert path.read_text() == before


def test_names_are_never_read_as_markup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.csv"
    path.write_text("y,[red]a[/red],b\n" + "0.5,0.4,0.3\n" * 20)
    options = ["--label", "y", "--pred", "[red]a[/red]", "--pred", "b"]
    assert cli.run(["compare", str(path), *options]) == 0
    assert "[red]a[/red]" in capsys.readouterr().out.splitlines()[2]


_CLASSES = "y_a,y_b,p_a,p_b\n0.5,0.5,0.25,0.75\n1,0,0.75,0.25\n"
_CLASS_OPTIONS = ["--label-columns", "y_*", "--pred-columns", "p_*", "--format", "json"]


@pytest.mark.parametrize("name", ["c.csv.gz", "c.jsonl", "c.arrow"])
def test_classes_in_another_kind_of_file_are_not_taken_for_bad_text(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(b"ARROW1\0\0")
    assert cli.run(["score", str(tmp_path / name), *_CLASS_OPTIONS]) == 2
    expected = f"softcal: error: cannot read {tmp_path / name}: "
    assert capsys.readouterr().err.startswith(expected)


def test_blank_lines_above_the_names_are_skipped_for_classes_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.csv").write_text("\n\n" + _CLASSES)
    assert cli.run(["score", str(tmp_path / "c.csv"), *_CLASS_OPTIONS]) == 0
    assert json.loads(capsys.readouterr().out)["n"] == 2


@pytest.mark.parametrize("closed", [1, 2])
def test_a_stream_the_caller_closed_is_no_trouble(closed: int) -> None:
    command = f'exec "$0" -m softcal --version {closed}>&-'
    found = subprocess.run(  # noqa: S603
        ["/bin/sh", "-c", command, sys.executable], capture_output=True, text=True, check=False
    )
    printed = "" if closed == 1 else f"softcal {sc.__version__}\n"
    assert (found.returncode, found.stdout, found.stderr) == (0, printed, "")


def test_of_several_saved_scores_the_damaged_one_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = sc.reliability([0.5], [0.4]).to_dict()
    (tmp_path / "good.json").write_text(json.dumps(table))
    (tmp_path / "bad.json").write_text(json.dumps({**table, "sums": {"count": [1] * 10}}))
    assert cli.run(["merge", str(tmp_path / "good.json"), str(tmp_path / "bad.json")]) == 2
    expected = f"softcal: error: cannot read {tmp_path / 'bad.json'}: a saved table's sums contra"
    assert capsys.readouterr().err.startswith(expected)


def test_a_slice_named_nan_leaves_the_others_in_order(tmp_path: Path) -> None:
    rows = "".join(f"0.5,0.4,{name}\n" for name in ("10", "nan", "9", "2", "b", "1"))
    (tmp_path / "s.csv").write_text(f"y,p,s\n{rows}")
    options = [str(tmp_path / "s.csv"), "--label", "y", "--pred", "p", "--by", "s"]
    assert cli.run(["score", *options, "--save", str(tmp_path / "s.json")]) == 0
    (model,) = json.loads((tmp_path / "s.json").read_text())["models"]
    assert [part["value"] for part in model["slices"]] == ["1", "2", "9", "10", "b", "nan"]


def test_text_to_apply_a_calibrator_to_is_named_by_its_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calibrator = sc.Platt().fit([0.1, 0.4, 0.6, 0.9], [0.0, 1.0, 0.0, 1.0])
    pl.DataFrame({"risk": ["high", "low"]}).write_parquet(tmp_path / "t.parquet")
    saved, out = tmp_path / "c.json", tmp_path / "o.parquet"
    saved.write_text(json.dumps(calibrator.to_dict()))
    options = [str(saved), str(tmp_path / "t.parquet"), "--pred", "risk", "-o", str(out)]
    assert cli.run(["apply", *options]) == 2
    assert "risk, in the batch from row 1: " in capsys.readouterr().err


def test_rows_of_weight_0_are_told_of_with_classes_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names, *rows = _CLASSES.splitlines()
    lines = [f"{names},w", *(f"{row},{w}" for row in rows for w in (0, 1, 2))]
    (tmp_path / "c.csv").write_text("\n".join(lines))
    options = [str(tmp_path / "c.csv"), *_CLASS_OPTIONS, "--weight", "w"]
    assert cli.run(["score", *options]) == 0
    card = json.loads(capsys.readouterr().out)
    assert (card["n"], card["rows_without_weight"]) == (4, 2)
    assert cli.run(["score", *options[:-4], "--weight", "w"]) == 0
    assert "c.csv: 4 rows (2 more have weight 0), label y_*" in capsys.readouterr().out


def test_an_infinite_log_loss_is_explained_and_no_number_is_made_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("y,p,q\n0.5,0,0.4\n0.2,0.1,0.3\n0.9,0.8,1\n")
    options = ["compare", str(path), "--label", "y", "--pred", "p", "--pred", "q"]
    assert cli.run([*options, "--format", "json"]) == 0
    card = json.loads(capsys.readouterr().out)
    assert card["log_loss"] == dict.fromkeys(("difference", "low", "high", "pvalue"))
    assert card["rows_of_infinite_log_loss"] == {"a": 1, "b": 1}
    assert cli.run(options) == 0
    shown = capsys.readouterr().out
    for name in "pq":
        assert f"In 1 of 3 rows {name} predicts exactly 0 or 1 and the label differs" in shown
