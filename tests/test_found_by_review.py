"""Bugs that reviewers found: each of these failed before it was mended."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

import softcal as sc
from softcal import cli
from softcal.sources.class_columns import names_of_columns
from softcal.torchmetric import TopLabelSoftCalibrationError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("y", "p"),
    [
        ([0] * 50 + [1] * 50, [0.99] * 50 + [0.01] * 50),
        ([0] * 500 + [1] * 500, [1.0] * 500 + [0.0] * 500),
        ([0] * 10 + [1] * 10, [0.9] * 10 + [0.1] * 10),
        ([0] * 20 + [1] * 180 + [0] * 180 + [1] * 20, [1.0] * 200 + [0.0] * 200),
    ],
)
def test_errors_that_cancel_are_no_calibration(y: list[int], p: list[float]) -> None:
    assert sc.calibration_test(sc.reliability(y, p)).pvalue < 1e-6
    groups = np.arange(len(y)) // 2
    assert sc.calibration_test(sc.reliability(y, p, groups=groups)).pvalue < 0.01


def test_few_events_keep_the_size_of_the_test(rng: np.random.Generator) -> None:
    """Some 1.5 events in 60 rows: the test must not reject a calibrated model too often."""
    p = np.repeat([0.02, 0.98, 0.03], 20)
    rejected = 0
    for _ in range(400):
        y = (rng.random(60) < p).astype(float)
        rejected += sc.calibration_test(sc.reliability(y, p)).pvalue < 0.05
    assert rejected <= 40


def test_one_group_says_nothing() -> None:
    rel = sc.reliability([0.0, 1.0, 1.0], [0.2, 0.4, 0.9], groups=["a", "a", "a"])
    assert sc.calibration_test(rel).pvalue == 1.0


@pytest.fixture
def votes(rng: np.random.Generator) -> pd.DataFrame:
    m = rng.integers(1, 4, 300)
    p = rng.uniform(0.02, 0.1, 300)
    return pd.DataFrame({"p": p, "m": m, "y": rng.binomial(m, p) / m, "w": m / 2})


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "duckdb", "csv", "parquet"])
def test_the_votes_may_be_what_is_sliced_by(votes: pd.DataFrame, kind: str, tmp_path: Path) -> None:
    votes.to_csv(tmp_path / "v.csv", index=False)
    pl.from_pandas(votes).write_parquet(tmp_path / "v.parquet")
    source: Any = {
        "pandas": votes, "polars": pl.from_pandas(votes), "lazy": pl.from_pandas(votes).lazy(),
        "duckdb": duckdb.sql("SELECT * FROM votes"), "csv": tmp_path / "v.csv",
        "parquet": tmp_path / "v.parquet",
    }[kind]  # fmt: skip
    found = sc.scan_by(source, y_true="y", y_prob="p", n_votes="m", sample_weight="w", by="m")
    for value, table in found.items():
        part = votes[votes.m == int(value)]
        own = sc.reliability(part.y, part.p, n_votes=part.m, sample_weight=part.w)
        assert sc.smece_interval(table).high == pytest.approx(sc.smece_interval(own).high)
    assert len(sc.scan_by(source, y_true="y", y_prob="p", by="y")) == votes.y.nunique()


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
    assert set(sc.scan_by(both, y_true="y", y_prob="p", by="m")) == {1, 2, 3, "1", "2", "3"}


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


def test_groups_in_another_order_are_refused() -> None:
    y, p = pd.Series([0.1, 0.9, 0.5]), pd.Series([0.2, 0.8, 0.5])
    groups = pd.Series([1, 1, 2], index=[2, 1, 0])
    for call in (
        lambda: sc.reliability(y, p, groups=groups),
        lambda: sc.compare(y, {"a": p, "b": p**2}, groups=groups),
        lambda: sc.compare_many(y, {"a": p, "b": p**2}, groups=groups),
        lambda: sc.calibrators.repair_preview(y, p, groups=groups),
    ):
        with pytest.raises(sc.InputError, match="same pandas index"):
            call()


def test_slices_of_another_length_are_refused(tmp_path: Path) -> None:
    for by in (["a", "b"], ["a"] * 9):
        with pytest.raises(sc.InputError, match="one value for each of the 3 rows"):
            sc.write_report(tmp_path / "r.html", [0.5] * 3, {"m": [0.5] * 3}, by=by)


def test_a_verdict_knows_on_which_side_the_rows_are(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    for bins in (1, 3, 7):
        sc.write_report(path, [0.8] * 300, {"m": [0.45] * 300}, bins=bins)
        text = path.read_text(encoding="utf-8")
        assert "below 0.5 (100% of the rows), it is 35.0 percentage points too low" in text


def test_votes_of_any_whole_type(votes: pd.DataFrame) -> None:
    right = sc.scan(votes, y_true="y", y_prob="p", n_votes=2)
    assert sc.scan(votes, y_true="y", y_prob="p", n_votes=np.int64(2)) == right  # type: ignore[call-overload]
    with pytest.raises(sc.InputTypeError, match=r"whole number: got 2\.5"):
        sc.scan(votes, y_true="y", y_prob="p", n_votes=2.5)  # type: ignore[call-overload]


def test_nan_is_no_slice() -> None:
    frame = pl.DataFrame({"y": [0.1, 0.9], "p": [0.1, 0.9], "s": [float("nan"), 1.0]})
    with pytest.raises(sc.InputError, match="s must have no missing values: 1"):
        sc.scan_by(frame.lazy(), y_true="y", y_prob="p", by="s")


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


def test_a_report_on_rows_without_weight_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sc.InputError, match="sample_weight must have a positive value somewhere"):
        sc.write_report(tmp_path / "r.html", [0.5], {"m": [0.5]}, sample_weight=[0.0])


def test_categories_are_their_values(tmp_path: Path) -> None:
    kinds = pd.Categorical(["a", "b", "a"], categories=["a", "b", "never"])
    frame = pd.DataFrame({"y": [0.1, 0.9, 0.5], "p": [0.1, 0.9, 0.5], "s": kinds})
    frame.to_parquet(tmp_path / "c.parquet")
    for source in (frame, tmp_path / "c.parquet"):
        assert list(sc.scan_by(source, y_true="y", y_prob="p", by="s")) == ["a", "b"]
    options = ["--label", "y", "--pred", "p", "--by", "s", "-o", str(tmp_path / "r.html")]
    assert cli.run(["report", str(tmp_path / "c.parquet"), *options]) == 0
    arrow = frame.assign(s=frame.s.astype(str).astype("string[pyarrow]"))
    assert list(sc.scan_by(arrow, y_true="y", y_prob="p", by="s")) == ["a", "b"]
    kinds_of_python = np.array(["a", None, pd.NA], dtype=object)
    sc.write_report(tmp_path / "r.html", frame.y, {"m": frame.p}, by=kinds_of_python)
    assert "(no value)" in (tmp_path / "r.html").read_text(encoding="utf-8")
    coded = pa.chunked_array([pa.array(["a", "b", "b"]).dictionary_encode()])
    sc.write_report(tmp_path / "r.html", frame.y, {"m": frame.p}, by=coded)


@pytest.mark.parametrize("values", [["a", 1, "b"], [(1, 2)] * 3, [[1], [2], [3]]])
def test_values_of_no_plain_kind_are_refused(values: list[Any]) -> None:
    frame = pd.DataFrame({"y": [0.1, 0.9, 0.5], "p": [0.1, 0.9, 0.5], "s": pd.Series(values)})
    with pytest.raises(sc.InputTypeError, match="s must hold"):
        sc.scan_by(frame, y_true="y", y_prob="p", by="s")


@pytest.mark.parametrize("head", ['y,p,monitor 24"', 'y,p,"a\nb"', "\n\ny,p,t"])
def test_no_row_is_lost_after_an_odd_header(tmp_path: Path, head: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(head + "\n" + "0.5,0.25,x\n" * 200)
    assert sc.scan(path, y_true="y", y_prob="p").n == 200


def test_line_ends_of_old_macs(tmp_path: Path) -> None:
    path = tmp_path / "b.csv"
    path.write_bytes(b"y,p\r0.1,0.2\r0.3,0.4\r\n0.5,0.5\r\n")
    assert sc.scan(path, y_true="y", y_prob="p").n == 3


def test_classes_that_do_not_sum_to_1_are_refused_in_torch_too() -> None:
    metric = TopLabelSoftCalibrationError(3)
    with pytest.raises(sc.InputError, match="must sum to 1: 1 of 2 do not"):
        metric.update(torch.tensor([[0.2, 0.7, 0.1], [0.9, 0.8, 0.7]]), torch.tensor([0, 1]))
    for kind in (torch.float16, torch.bfloat16, torch.float32):
        metric.update(
            torch.softmax(torch.randn(500, 3), dim=1).to(kind), torch.zeros(500, dtype=torch.int64)
        )


def test_a_pilot_with_groups_is_no_pilot() -> None:
    rel = sc.reliability([0.5] * 60, [0.4] * 60, groups=np.arange(60) // 2)
    with pytest.raises(sc.InputError, match="rows as independent"):
        sc.planning.Assumptions.from_pilot(rel)


def test_the_data_is_never_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "d.csv"
    path.write_text("y,p\n" + "0.5,0.4\n" * 20)
    before = path.read_text()
    options = [str(path), "--label", "y", "--pred", "p"]
    for command in (["report", "-o"], ["score", "--save"], ["recalibrate", "-o"]):
        assert cli.run([command[0], *options, command[1], str(path)]) == 2
        assert "is the data itself" in capsys.readouterr().err
    assert path.read_text() == before


def test_columns_instead_of_a_table_are_refused_with_the_remedy() -> None:
    for function in (sc.smece_interval, sc.calibration_test):
        with pytest.raises(sc.InputTypeError, match=r"takes a table: got list"):
            function([0.5, 0.4])  # type: ignore[arg-type]
    with pytest.raises(sc.InputTypeError, match=r"json\.load"):
        sc.calibrators.load_calibrator("cal.json")  # type: ignore[arg-type]


def test_names_are_never_read_as_markup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.csv"
    path.write_text("y,[red]a[/red],b\n" + "0.5,0.4,0.3\n" * 20)
    options = ["--label", "y", "--pred", "[red]a[/red]", "--pred", "b"]
    assert cli.run(["compare", str(path), *options]) == 0
    assert "[red]a[/red]" in capsys.readouterr().out.splitlines()[2]


def test_a_header_alone_has_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "h.csv"
    path.write_text("y,p")
    with pytest.raises(sc.InputError, match=r"cannot read .*Empty CSV file"):
        sc.scan(path, y_true="y", y_prob="p")


def test_a_file_named_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("y,p\n0.5,0.4\n")
    (tmp_path / "link.csv").symlink_to(path)
    for twice in (
        [path, path],
        [tmp_path],
        [tmp_path / "*.csv", path],
        [path, f"{tmp_path}/./a.csv"],
    ):
        with pytest.raises(sc.InputError, match="named twice, so its rows would count twice"):
            sc.scan(twice, y_true="y", y_prob="p")


def test_a_header_too_long_for_csv_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x" * 200_000 + ",y_a,y_b\n")
    with pytest.raises(sc.InputError, match=r"cannot read .*a\.csv: field larger than"):
        names_of_columns(path)


def test_several_models_of_a_duckdb_connection_of_ones_own() -> None:
    """narwhals unpivots in the default connection, where such a relation cannot be read."""
    data = pa.table({"y": [0.1, 0.2, 0.9], "p": [0.1, 0.5, 0.8], "q": [0.3, 0.3, 0.3]})
    with duckdb.connect() as connection:
        connection.register("rows", data)
        found = sc.scan(connection.table("rows"), y_true="y", y_prob=["p", "q"])
        for name, table in found.items():
            assert table.smece == pytest.approx(sc.smece(data["y"], data[name]), abs=1e-15)
        connection.register("rows", data.set_column(1, "p", pa.array([0.1, None, 0.8])))
        with pytest.raises(sc.InputError, match=r"p must have no missing values: 1 of 3 are"):
            sc.scan(connection.table("rows"), y_true="y", y_prob=["q", "p"])


_CLASSES = "y_a,y_b,p_a,p_b\n0.5,0.5,0.25,0.75\n1,0,0.75,0.25\n"
_CLASS_OPTIONS = ["--label-columns", "y_*", "--pred-columns", "p_*", "--format", "json"]


@pytest.mark.parametrize("name", ["c.csv.gz", "c.jsonl", "c.arrow"])
def test_classes_in_another_kind_of_file_are_not_taken_for_bad_text(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(b"ARROW1\0\0")
    assert cli.run(["score", str(tmp_path / name), *_CLASS_OPTIONS]) == 2
    expected = f"classes are read from a .csv, .tsv or .parquet file: got {name!r}."
    assert capsys.readouterr().err == f"softcal: error: {expected}\n"


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
    calibrator = sc.calibrators.PlattCalibrator().fit([0.1, 0.4, 0.6, 0.9], [0.0, 1.0, 0.0, 1.0])
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
