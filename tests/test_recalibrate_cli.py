"""`softcal recalibrate` and `softcal apply` on the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from scipy.special import expit, softmax

import softcal as sc
from softcal.calibrators.files import write_calibrated
from softcal.calibrators.preview import BINARY_METHODS, CLASS_METHODS, fit_map
from softcal.cli import run

DATA = Path(__file__).parent.parent / "src/softcal/data/lidc_malignancy/items.csv"
NODULES = ("--label", "soft_malignant", "--pred", "prob_rf_all")


def softcal(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    code = run([str(argument) for argument in arguments])
    shown = capsys.readouterr()
    assert (code, shown.err) == (0, "")
    return shown.out


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert run([str(argument) for argument in arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.splitlines()) == 1
    return shown.err


@pytest.fixture
def platt() -> Any:
    return fit_map("platt", [0.2, 0.6], [0.3, 0.9])


@pytest.fixture
def calibrator(tmp_path: Path, platt: Any) -> Path:
    path = tmp_path / "cal.json"
    path.write_text(json.dumps(platt.to_dict()))
    return path


# recalibrate


def test_auto_picks_a_method_by_its_brier_score(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    cal = tmp_path / "cal.json"
    options = ("--votes", "n_readers", "--group", "patient", "-o", cal)
    card = json.loads(softcal(capsys, "recalibrate", DATA, *NODULES, *options, "--format", "json"))
    rows = {row["method"]: row for row in card["held_out"]}
    assert list(rows) == ["none", *BINARY_METHODS]
    assert card["method"] == min(BINARY_METHODS, key=lambda method: rows[method]["brier"])
    assert card["notes"] == []
    assert card["helps"]
    assert card["n"] == 1377
    saved = json.loads(cal.read_text())
    assert len(saved.pop("checksum")) == 64
    assert saved == card["calibrator"]
    assert rows["none"]["log_loss"] is None  # a prediction of 0 whose label is above 0
    shown = softcal(capsys, "recalibrate", DATA, *NODULES, *options)
    assert max(map(len, shown.splitlines())) <= 80 or str(cal) in shown
    for row in rows.values():
        assert f"{row['brier']:.5f}" in shown
        assert f"{row['smece']:.4f}" in shown
    assert f"Saved {card['method']}" in shown


def test_auto_prefers_a_simpler_method_within_the_noise_and_says_so(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    cal = tmp_path / "cal.json"
    line = ("recalibrate", DATA, *NODULES, "-o", cal)  # patients are ignored
    card = json.loads(softcal(capsys, *line, "--format", "json"))
    rows = {row["method"]: row["brier"] for row in card["held_out"]}
    assert min(rows, key=lambda method: rows[method]) == "isotonic"
    assert (card["method"], card["calibrator"]["method"]) == ("beta", "beta")
    (note,) = card["notes"]
    higher = f"its held-out Brier score is {rows['beta'] - rows['isotonic']:.2g} higher"
    assert note.startswith(f"beta is simpler than isotonic and within one standard error: {higher}")
    shown = " ".join(softcal(capsys, *line).split())
    verdict = "beta is the simplest method within one standard error of the lowest held-out Brier"
    assert f"{verdict} score. Note: {note} Saved beta" in shown


def test_changed_digit_or_bit_of_a_calibrator_never_changes_a_prediction(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    cal, out = tmp_path / "cal.json", tmp_path / "out.csv"
    softcal(capsys, "recalibrate", DATA, *NODULES, "--method", "isotonic", "-o", cal)
    saved = cal.read_bytes()
    map_ = sc.calibrators.load_calibrator(json.loads(saved))
    grid, rng = np.linspace(0, 1, 101), np.random.default_rng(0)
    for _ in range(300):
        changed = bytearray(saved)
        changed[rng.integers(len(saved))] ^= 1 << rng.integers(8)
        try:
            found = sc.calibrators.load_calibrator(json.loads(changed))
        except (sc.SoftcalError, ValueError):  # ValueError: of json
            continue
        np.testing.assert_array_equal(found.predict(grid), map_.predict(grid))
    cal.write_bytes(saved.replace(b'"columns": ["prob_rf', b'"columns": ["prob_xf'))
    message = refused(capsys, "apply", cal, DATA, "--pred", "prob_rf_all", "-o", out)
    assert "does not match its checksum" in message
    assert not out.exists()
    odd = json.loads(saved) | {"columns": {1: object()}}
    with pytest.raises(sc.InputError, match="does not match its checksum"):
        sc.calibrators.load_calibrator(odd)


def test_one_method_is_fitted_on_all_rows_with_weights(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    cal = tmp_path / "cal.json"
    softcal(capsys, "recalibrate", DATA, *NODULES, "--method", "platt", "--weight", "n_readers",
            "-o", cal)  # fmt: skip
    d = csv.read_csv(DATA)
    expected = fit_map("platt", d["soft_malignant"], d["prob_rf_all"], sample_weight=d["n_readers"])
    saved = json.loads(cal.read_text())
    del saved["checksum"]
    assert saved == {**expected.to_dict(), "columns": saved["columns"]}


def test_no_improvement_is_reported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = tmp_path / "good.csv"
    p = np.linspace(0.01, 0.99, 50)
    data.write_text("y,p\n" + "".join(f"{x},{x}\n" for x in p))
    shown = softcal(capsys, "recalibrate", data, "--label", "y", "--pred", "p", "--method",
                    "histogram", "-o", tmp_path / "cal.json")  # fmt: skip
    assert "No method improved the held-out Brier score" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*NODULES[:2], "--pred", "soft_malignant"), "must be different columns"),
        ((*NODULES, "--folds", 1), "number of folds must be between 2 and"),
        ((*NODULES, "--method", "magic"), "'magic' is not one of"),
        (("--label", "soft_malignant", "--pred", "n_readers"), "n_readers must be in [0, 1]"),
        ((*NODULES, "--weight", "nope"), "no column 'nope'"),
    ],
)
def test_bad_calls_write_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: tuple[Any, ...], message: str
) -> None:
    found = refused(capsys, "recalibrate", DATA, *arguments, "-o", tmp_path / "cal.json")
    assert message in found
    assert os.listdir(tmp_path) == []  # noqa: PTH208


# apply


def test_apply_keeps_every_byte_of_text_and_appends_a_cell(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, calibrator: Path, platt: Any
) -> None:
    odd = '\ufeff"p",a\r\n0.50, "x"\r\n"0.25","line\nbreak, ""quoted"""\r\n\r\n1e-1,last'
    source, target = tmp_path / "odd.csv", tmp_path / "out.csv"
    source.write_bytes(odd.encode())
    softcal(capsys, "apply", calibrator, source, "--pred", "p", "-o", target)
    half, quarter, tenth = map(repr, platt.predict([0.5, 0.25, 0.1]).tolist())
    expected = (
        f'\ufeff"p",a,p_calibrated\r\n0.50, "x",{half}\r\n'
        f'"0.25","line\nbreak, ""quoted""",{quarter}\r\n\r\n1e-1,last,{tenth}'
    )
    assert target.read_bytes().decode() == expected


def test_apply_to_many_batches_of_text(tmp_path: Path, platt: Any) -> None:
    p = np.linspace(0, 1, 70_000)
    source, target = tmp_path / "many.tsv", tmp_path / "out.tsv"
    source.write_text('p,q"\tn\n' + "".join(f"{x!r}\t{i}\n" for i, x in enumerate(p.tolist())))
    assert write_calibrated(platt, sc.Files(source), ['p,q"'], target) == (70_000, 0, 0)
    header, *lines = target.read_text().splitlines()
    assert header == 'p,q"\tn\t"p,q""_calibrated"'
    assert [float(line.split("\t")[2]) for line in lines] == platt.predict(p).tolist()


def test_apply_keeps_parquet_schema_metadata_and_values(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, calibrator: Path, platt: Any
) -> None:
    table = pa.table(
        {
            "p": pa.array(np.linspace(0, 1, 70_000, dtype=np.float32)),
            "kind": pa.array(["a", None] * 35_000).dictionary_encode(),
            "when": pa.array(range(70_000), pa.timestamp("us", "UTC")),
            "many": pa.array([[1, 2], []] * 35_000),
        }
    ).replace_schema_metadata({"who": "me"})
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(table, source)
    card = json.loads(
        softcal(
            capsys, "apply", calibrator, source, "--pred", "p", "-o", target, "--format", "json"
        )
    )
    assert (card["n"], card["method"], card["columns"]) == (70_000, "platt", ["p_calibrated"])
    assert card["output"] == str(target)
    found = pq.read_table(target)
    assert found.drop_columns("p_calibrated").equals(table)
    assert found.schema.metadata[b"who"] == b"me"
    assert found["p_calibrated"].to_numpy().tolist() == platt.predict(table["p"]).tolist()


def test_apply_converts_text_to_parquet_and_back(tmp_path: Path, platt: Any) -> None:
    source = tmp_path / "in.csv"
    source.write_text("p,name\n0.5,x\n0.25,y\n")
    assert write_calibrated(platt, sc.Files(source), ["p"], tmp_path / "out.parquet") == (2, 0, 0)
    table = pq.read_table(tmp_path / "out.parquet")
    assert table["p_calibrated"].to_pylist() == platt.predict([0.5, 0.25]).tolist()
    renamed = table.drop_columns("p_calibrated")
    pq.write_table(renamed, tmp_path / "again.pq")
    assert write_calibrated(
        platt, sc.Files(tmp_path / "again.pq"), ["p"], tmp_path / "again.tsv"
    ) == (2, 0, 0)
    back = csv.read_csv(tmp_path / "again.tsv", parse_options=csv.ParseOptions(delimiter="\t"))
    assert back.equals(table)


def test_apply_maps_classes_jointly(tmp_path: Path) -> None:
    p = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    vector = fit_map("vector", p[:, ::-1], p)
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("a,b,c\n0.2,0.3,0.5\n0.6,0.3,0.1\n")
    write_calibrated(vector, sc.Files(source), ["a", "b", "c"], target)
    table = csv.read_csv(target)
    found = np.column_stack([table[f"{name}_calibrated"] for name in "abc"])
    np.testing.assert_array_equal(found, vector.predict(p))


@pytest.mark.parametrize(
    ("name", "text", "pred", "message"),
    [
        ("in.csv", "p,p_calibrated\n0.5,1\n", "p", "already has a column 'p_calibrated'"),
        ("in.csv", "p,a\n0.5,1\n", "q", "no column 'q'. Its columns are: 'p', 'a'"),
        ("in.csv", "p,p\n0.5,1\n", "p", "more than one column 'p'"),
        ("in.csv", "", "p", "it has no line of column names"),
        ("in.csv", "p,a\n0.5,1\nhigh,1\n", "p", "p must hold numbers: row 2 holds the text 'high'"),
        ("in.csv", "p,a\n0.5,1\n,1\n", "p", "p must have no missing values: it is missing in row 2"),
        ("in.csv", "p,a\n0.5,1\n0.5\n", "p", "every row of in.csv must have 2 cells, as its header has: row 2 has 1 cell."),
        ("in.csv", "p,a\n0.5,1\n1.5,1\n", "p", "p, in the batch from row 1: y_prob must be in [0, 1]"),
        ("in.csv", 'p,a\n0.5,"1\n', "p", "cannot read"),
        ("in.csv", b"p,a\n0.5,\xff\n", "p", "cannot read"),
        ("in.parquet", "PAR1\0 nonsense PAR1", "p", "cannot read"),
        ("in.xlsx", "", "p", "it has no line of column names"),
        ("in.jsonl", '{"p": 0.5, "a": {"b": 1}}\n', "p", "a holds lists or objects, which a text file cannot store"),
        ("in.json", '[{"p": 0.5}, {"p": "high"}]', "p", "p, in the batch from row 1: y_prob must hold real numbers"),
        ("in.csv", "p,a\n0.5," + "x" * 200_000 + "\n", "p", "field larger than field limit"),
        (None, "", "p", "no such file"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_and_leave_nothing(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    calibrator: Path,
    name: str | None,
    text: str | bytes,
    pred: str,
    message: str,
) -> None:
    source = tmp_path / (name or "absent.csv")
    if name:
        source.write_bytes(text if isinstance(text, bytes) else text.encode())
    before = sorted(os.listdir(tmp_path))  # noqa: PTH208
    target = tmp_path / "out.csv"
    assert message in refused(capsys, "apply", calibrator, source, "--pred", pred, "-o", target)
    assert sorted(os.listdir(tmp_path)) == before  # noqa: PTH208


def test_unknown_output_suffix_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, calibrator: Path
) -> None:
    source = tmp_path / "in.csv"
    source.write_text("p\n0.5\n")
    message = refused(
        capsys, "apply", calibrator, source, "--pred", "p", "-o", tmp_path / "out.xlsx"
    )
    assert "the name must end in .csv, .tsv, or .parquet" in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": "softcal.calibrator", "schema": 1, "meth', "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ('{"format": "softcal.calibrator", "schema": 9}', "Upgrade softcal"),
        ('{"format": "softcal.reliability"}', "not a saved calibrator"),
        (None, "no such file"),
    ],
)
def test_bad_calibrators_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str | None, message: str
) -> None:
    path = tmp_path / "cal.json"
    if text is not None:
        path.write_text(text)
    arguments = (DATA, "--pred", "prob_rf_all", "-o", tmp_path / "out.csv")
    assert message in refused(capsys, "apply", path, *arguments)


def test_recalibrate_then_apply_then_score(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    cal, out = tmp_path / "cal.json", tmp_path / "out.csv"
    softcal(capsys, "recalibrate", DATA, *NODULES, "--method", "beta", "-o", cal)
    assert "prob_rf_all_calibrated by beta" in softcal(
        capsys, "apply", cal, DATA, "--pred", "prob_rf_all", "-o", out
    ).replace("\n", "")
    d = csv.read_csv(out)
    before = sc.smece(d["soft_malignant"], d["prob_rf_all"])
    assert sc.smece(d["soft_malignant"], d["prob_rf_all_calibrated"]) < before / 3


# Many classes


@pytest.fixture
def classes(tmp_path: Path) -> Path:
    """Three classes, in different orders for labels and overconfident predictions."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(600, 3))
    label, sure = (np.exp(k * z) / np.exp(k * z).sum(axis=1, keepdims=True) for k in (1, 2.5))
    votes = rng.multinomial(5, label)
    columns = {"who": np.arange(600) // 3, "w": np.arange(600) % 4}
    columns |= {f"y_{c}": label[:, k] for k, c in enumerate("abc")}
    columns |= {f"n_{c}": votes[:, k] for k, c in enumerate("abc")}
    columns |= {f"p_{c}": sure[:, "abc".index(c)] for c in "cab"}
    path = tmp_path / "classes.csv"
    csv.write_csv(pa.table(columns), path)
    return path


def test_classes_are_recalibrated_applied_and_scored(
    capsys: pytest.CaptureFixture[str], classes: Path, tmp_path: Path
) -> None:
    cal, out = tmp_path / "cal.json", tmp_path / "out.csv"
    names = ("--label-columns", "y_*", "--pred-columns", "p_*")
    json_ = ("--format", "json")
    card = json.loads(softcal(capsys, "recalibrate", classes, *names, "-o", cal, *json_))
    assert (card["method"], card["helps"], card["n"]) == ("temperature", True, 600)
    assert card["columns"] == ["p_a", "p_b", "p_c"]
    assert card["calibrator"]["parameters"]["temperature"] == pytest.approx(2.5, abs=1e-3)
    assert [one["method"] for one in card["held_out"]] == ["none", *CLASS_METHODS]
    before = json.loads(softcal(capsys, "score", classes, *names, *json_))["models"][0]
    assert card["held_out"][0]["brier"] == pytest.approx(before["brier"])
    assert card["held_out"][0]["log_loss"] == pytest.approx(before["log_loss"])
    assert card["held_out"][0]["smece"] == pytest.approx(before["top_label_smece"])
    order = [option for name in card["columns"] for option in ("--pred", name)]
    softcal(capsys, "apply", cal, classes, "--pred-columns", "p_*", "-o", out)
    by_pattern = out.read_bytes()  # in the file p_c comes first
    for by_name in (order, order[2:] + order[:2]):
        softcal(capsys, "apply", cal, classes, *by_name, "-o", out)
        assert by_pattern == out.read_bytes()
    after = ("--label-columns", "y_*", "--pred-columns", "p_*_calibrated")
    scored = json.loads(softcal(capsys, "score", out, *after, *json_))["models"][0]
    assert scored["top_label_smece"] < 0.001 < before["top_label_smece"]


@pytest.fixture
def renamed(tmp_path: Path) -> Path:
    """Predictions rb_e, rb_n, rb_c of three classes, and the same as bt_c, bt_e, bt_n."""
    rng = np.random.default_rng(1)
    off = softmax(rng.normal([1, 0, -1], size=(500, 3)), axis=1)
    label = softmax(np.log(off) * [2, 1, 0.5] + [-1, 0, 1], axis=1)
    columns = {f"h_{c}": label[:, "enc".index(c)] for c in "nce"}
    columns |= {f"rb_{c}": off[:, "enc".index(c)] for c in "enc"}
    columns |= {f"bt_{c}": off[:, "enc".index(c)] for c in "cen"}
    columns |= {f"q{k}": off[:, k] for k in range(3)}
    path = tmp_path / "renamed.csv"
    csv.write_csv(pa.table(columns), path)
    return path


LABELS = [("h_*",), ("h_e,h_n,h_c",), ("h_*", "--classes", "e,n,c")]


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("fitted", ["rb_e,rb_n,rb_c", "rb_*", "rb_c,rb_e,rb_n"])
def test_apply_matches_columns_by_class(
    capsys: pytest.CaptureFixture[str],
    renamed: Path,
    tmp_path: Path,
    label: tuple[str, ...],
    fitted: str,
) -> None:
    cal, old, out = (tmp_path / name for name in ("cal.json", "old.json", "out.csv"))
    options = ("--label-columns", *label, "--pred-columns", fitted, "--method", "vector")
    softcal(capsys, "recalibrate", renamed, *options, "-o", cal)
    saved = json.loads(cal.read_text())
    del saved["classes"], saved["checksum"]  # softcal 0.2 stored the columns only
    old.write_text(json.dumps(saved))
    for applied in ("bt_*", "bt_", "bt_c,bt_e,bt_n", "bt_n,bt_e,bt_c"):
        for saved_by in (cal, old):
            softcal(capsys, "apply", saved_by, renamed, "--pred-columns", applied, "-o", out)
            d = csv.read_csv(out)
            for c in "enc":
                np.testing.assert_allclose(d[f"bt_{c}_calibrated"], d[f"h_{c}"], atol=1e-3)


def test_apply_refuses_columns_of_other_classes(
    capsys: pytest.CaptureFixture[str], renamed: Path, tmp_path: Path
) -> None:
    cal, out = tmp_path / "cal.json", tmp_path / "out.csv"
    options = ("--label-columns", "h_*", "--pred-columns", "rb_*", "--method", "vector")
    softcal(capsys, "recalibrate", renamed, *options, "-o", cal)
    assert json.loads(cal.read_text())["classes"] == ["n", "c", "e"]  # as in the columns of labels
    for applied in ("q*", "q0,q1,q2"):
        said = refused(capsys, "apply", cal, renamed, "--pred-columns", applied, "-o", out)
        assert "fitted on, n, c, e: got q0, q1, q2. Pass a pattern" in said
    saved = json.loads(cal.read_text())
    del saved["columns"], saved["classes"], saved["checksum"]  # as that of a fit on arrays
    cal.write_text(json.dumps(saved))
    said = refused(capsys, "apply", cal, renamed, "--pred-columns", "rb_*", "-o", out)
    assert (
        "stores no names of classes, and a pattern lists columns in the order of the file" in said
    )
    assert (
        run(["apply", str(cal), str(renamed), "--pred-columns", "rb_n,rb_c,rb_e", "-o", str(out)])
        == 0
    )
    said = capsys.readouterr().err
    assert said == (
        "softcal: note: the calibrator stores no names of classes, which are taken in the given "
        "order: rb_n, rb_c, rb_e.\n"
    )
    d = csv.read_csv(out)
    np.testing.assert_allclose(d["rb_e_calibrated"], d["h_e"], atol=1e-3)
    saved = sc.calibrators.TemperatureCalibrator().fit([[0.4, 0.6]], [[0.5, 0.5]]).to_dict()
    cal.write_text(json.dumps(saved))
    softcal(capsys, "apply", cal, renamed, "--pred-columns", "rb_*", "-o", out)  # in any order


def test_apply_to_another_column_says_so(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    cal, out = tmp_path / "cal.json", tmp_path / "out.csv"
    softcal(capsys, "recalibrate", DATA, *NODULES, "--method", "platt", "-o", cal)
    line = [
        "apply",
        str(cal),
        str(DATA),
        "--pred",
        "prob_lr_geometry",
        "-o",
        str(out),
        "--format",
        "json",
    ]
    assert run(line) == 0
    shown = capsys.readouterr()
    note = "the calibrator was fitted on 'prob_rf_all', and is applied to 'prob_lr_geometry'."
    assert shown.err == f"softcal: note: {note}\n"
    assert json.loads(shown.out)["notes"] == [note]


def test_wrong_number_of_columns_is_refused_by_apply(
    capsys: pytest.CaptureFixture[str], classes: Path, tmp_path: Path, calibrator: Path
) -> None:
    fitted, plain, nine = (tmp_path / name for name in ("fitted.json", "plain.json", "nine.csv"))
    names = ("--label-columns", "y_*", "--pred-columns", "p_*", "--method", "vector")
    softcal(capsys, "recalibrate", classes, *names, "-o", fitted)
    saved = json.loads(fitted.read_text())
    del saved["columns"], saved["classes"], saved["checksum"]  # as for a calibrator of arrays
    plain.write_text(json.dumps(saved))
    nine.write_text(",".join(f"q{k}" for k in range(9)) + "\n" + ",".join(["0.3333"] * 9) + "\n")
    out = ("-o", tmp_path / "out.csv")
    nine_named = "names 9: q0, q1, q2, q3, q4, q5, q6, q7, q8. Name one column per class."
    for cal in (fitted, plain):
        said = refused(capsys, "apply", cal, nine, "--pred-columns", "q", *out)
        assert f"was fitted on 3 classes, but --pred-columns {nine_named}" in said
        said = refused(capsys, "apply", cal, nine, "--pred", "q0", "--pred", "q1", *out)
        assert "was fitted on 3 classes, but --pred names 2: q0, q1." in said
    one = json.loads(calibrator.read_text()) | {"columns": ["q0"]}
    calibrator.write_text(json.dumps(one))
    said = refused(capsys, "apply", calibrator, nine, "--pred-columns", "q", *out)
    assert "was fitted on 1 column, but --pred-columns names 9" in said
    assert "Name one column." in said


def test_votes_weights_and_groups_of_classes_are_used(
    capsys: pytest.CaptureFixture[str], classes: Path, tmp_path: Path
) -> None:
    cal = tmp_path / "cal.json"
    names = ("--vote-columns", "n_*", "--pred-columns", "p_*", "--method", "vector", "-o", cal)
    shown = softcal(capsys, "recalibrate", classes, *names, "--weight", "w", "--group", "who")
    assert "450 rows" in shown  # every fourth has weight 0
    assert "top-label" in shown
    assert "`softcal apply` matches columns by class: a, b, c" in shown
    data = csv.read_csv(classes).to_pydict()
    y = sc.Votes(np.column_stack([data[f"n_{c}"] for c in "abc"])).shares
    p = np.column_stack([data[f"p_{c}"] for c in "abc"])
    expected = sc.calibrators.VectorScalingCalibrator().fit(
        p, y, sample_weight=np.array(data["w"], dtype=float)
    )
    saved = json.loads(cal.read_text())
    del saved["checksum"]
    assert saved == {
        **expected.to_dict(), "columns": ["p_a", "p_b", "p_c"], "classes": ["a", "b", "c"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--label-columns", "y_*", "--pred-columns", "p_*", "--method", "platt"), "methods (--method) must be some of temperature, vector, dirichlet: got 'platt'."),
        (("--label-columns", "y_*", "--pred-columns", "p_*", "--pred", "p_a"), "--pred is for one probability per row"),
        (("--label-columns", "y_*"), "Missing option '--pred-columns'."),
        (("--label", "y_a", "--pred", "p_a", "--method", "vector"), "methods (--method) must be some of temperature, platt, beta, isotonic, histogram: got 'vector'."),
        (("--label", "y_a"), "Missing option '--pred'."),
        (("--pred", "p_a"), "Missing option '--label'."),
    ],
)  # fmt: skip
def test_contradicting_options_are_refused(
    capsys: pytest.CaptureFixture[str], classes: Path, options: tuple[str, ...], message: str
) -> None:
    assert message in refused(capsys, "recalibrate", classes, *options, "-o", classes.parent / "x")


def test_apply_refuses_a_text_column_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calibrator = sc.calibrators.PlattCalibrator().fit([0.1, 0.4, 0.6, 0.9], [0.0, 1.0, 0.0, 1.0])
    pq.write_table(pa.table({"risk": ["high", "low"]}), tmp_path / "t.parquet")
    saved, out = tmp_path / "c.json", tmp_path / "o.parquet"
    saved.write_text(json.dumps(calibrator.to_dict()))
    options = [str(saved), str(tmp_path / "t.parquet"), "--pred", "risk", "-o", str(out)]
    assert run(["apply", *options]) == 2
    assert "risk, in the batch from row 1: " in capsys.readouterr().err


# Logits, lists, and names of classes


def test_logits_of_one_column_are_recalibrated_and_applied(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, rng: np.random.Generator
) -> None:
    z = rng.normal(size=300) * 3
    y = expit(z / 3 + rng.normal(size=300) / 4)
    data, cal, out = tmp_path / "z.parquet", tmp_path / "cal.json", tmp_path / "out.parquet"
    pq.write_table(pa.table({"y": y, "z": z, "who": np.arange(300) // 2}), data)
    options = ("--label", "y", "--pred", "z", "--pred-scale", "logit", "--group", "who", "-o", cal)
    card = json.loads(softcal(capsys, "recalibrate", data, *options, "--format", "json"))
    expected = sc.calibrators.repair_preview(y, z, groups=np.arange(300) // 2, logits=True)
    for mine, theirs in zip(card["held_out"], expected.as_rows(), strict=True):
        assert mine.pop("chosen") == (theirs["method"] == expected.best)
        for name, value in mine.items():
            known = (
                name if name in theirs else f"smece_{name}".replace("smece_smece", "smece_value")
            )
            assert value == theirs[known]
    assert [row["method"] for row in card["held_out"]] == ["none", "temperature", "platt", "beta"]
    fitted = fit_map(card["method"], y, z, logits=True)
    assert card["calibrator"] == {**fitted.to_dict(), "columns": ["z"]}
    assert "also takes logits" in softcal(capsys, "recalibrate", data, *options)
    assert "from logits" in softcal(capsys, "apply", cal, data, "--pred", "z", "-o", out)
    assert pq.read_table(out)["z_calibrated"].to_pylist() == fitted.predict(z).tolist()


def test_bad_logits_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = tmp_path / "z.csv"
    data.write_text("y,z\n0.5,0.1\n0.25,inf\n")
    names = ("--label", "y", "--pred", "z", "--pred-scale", "logit", "-o", tmp_path / "cal.json")
    said = refused(capsys, "recalibrate", data, *names)
    assert "z must be finite logits" in said
    assert "1 of 2 values" in said
    assert "pass probabilities instead of logits." in said
    data.write_text("y,z\n0.5,0.1\n0.5,-3\n")
    shares = tmp_path / "shares.csv"
    shares.write_text("y_0,y_1,z_0,z_1\n0.5,0.5,1.5,1\n")
    hint = "If these are logits, pass --pred-scale logit"
    assert hint in refused(capsys, "recalibrate", data, *names[:4], *names[6:])
    classes = ("--label-columns", "y_*", "--pred-columns", "z_*", *names[6:])
    assert hint in refused(capsys, "recalibrate", shares, *classes)
    assert hint in refused(capsys, "score", data, *names[:4])
    said = refused(capsys, "recalibrate", data, *names, "--method", "isotonic")
    assert "methods (--method) must be some of temperature, platt, beta: got 'isotonic'" in said


@pytest.mark.parametrize("label", ["shares", "names"])
def test_logits_of_classes_in_columns_and_in_lists(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, rng: np.random.Generator, label: str
) -> None:
    z = rng.normal(size=(200, 3)) * 2
    number = (z / 2 + rng.gumbel(size=(200, 3))).argmax(axis=1)
    y = np.eye(3)[number] if label == "names" else softmax(z / 2, axis=1)
    columns = {f"z_{c}": z[:, k] for k, c in enumerate("abc")} | {"z": pa.array(list(z))}
    columns |= {"name": np.array(list("abc"))[number], "share": pa.array(list(y))}
    data, cal, out = tmp_path / "z.parquet", tmp_path / "cal.json", tmp_path / "out.parquet"
    pq.write_table(pa.table(columns), data)
    expected = sc.calibrators.repair_preview(y, z, logits=True)
    fitted = fit_map(expected.best, y, z, logits=True)
    about = ("--label", "name") if label == "names" else ("--label-columns", "share")
    for pred in ("z_*", "z"):
        options = (
            *about,
            "--pred-columns",
            pred,
            "--classes",
            "a,b,c",
            "--pred-scale",
            "logit",
            "-o",
            cal,
        )
        card = json.loads(softcal(capsys, "recalibrate", data, *options, "--format", "json"))
        for mine, theirs in zip(card["held_out"], expected.as_rows(), strict=True):
            assert mine["method"] == theirs["method"]
            for name in ("brier", "log_loss"):
                assert mine[name] == pytest.approx(theirs[name], rel=1e-9)
            limits = (theirs["smece_value"], theirs["smece_low"])
            assert (mine["smece"], mine["low"]) == pytest.approx(limits, rel=1e-9)
        assert "top-label" in softcal(capsys, "recalibrate", data, *options)
        softcal(capsys, "apply", cal, data, "--pred-columns", pred, "-o", out)
        found = pq.read_table(out)
        if pred == "z":
            mapped = np.array(found["z_calibrated"].to_pylist())
        else:
            mapped = np.column_stack([found[f"z_{c}_calibrated"] for c in "abc"])
        np.testing.assert_allclose(mapped, fitted.predict(z), rtol=1e-7)


def test_lists_that_cannot_be_mapped_or_written_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    cal = tmp_path / "cal.json"
    saved = fit_map("temperature", [[0.5, 0.5]], [[0.4, 0.6]]).to_dict()
    data, out = tmp_path / "p.parquet", tmp_path / "out.parquet"
    cal.write_text(json.dumps(saved))
    lists = [[0.2, 0.8], None, [0.2, 0.3, 0.5]]
    pq.write_table(pa.table({"p": lists, "q": lists}), data)
    said = refused(capsys, "apply", cal, data, "--pred", "p", "-o", out)
    assert "2 of 3 in the batch from row 1 are not, the first is row 2, which has 0" in said
    said = refused(capsys, "apply", cal, data, "--pred", "p", "-o", tmp_path / "out.csv")
    assert "write to a .parquet file" in said
    said = refused(capsys, "apply", cal, data, "--pred", "p", "--pred", "q", "-o", out)
    assert "name one column of lists" in said
    assert not out.exists()


def test_log_probabilities_are_calibrated_as_probabilities(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    p = np.linspace(0.02, 0.98, 60)
    data = tmp_path / "data.csv"
    np.savetxt(
        data, np.column_stack([p**2, p, np.log(p)]), "%.17g", ",", header="y,p,lp", comments=""
    )
    found = []
    for name, how in (("p", ()), ("lp", ("--pred-scale", "logprob"))):
        cal, out = tmp_path / f"{name}.json", tmp_path / f"{name}.csv"
        line = ("--pred", name, *how, "-o")
        softcal(capsys, "recalibrate", data, "--label", "y", "--method", "beta", *line, cal)
        softcal(capsys, "apply", cal, data, *line, out)
        found.append(np.genfromtxt(out, delimiter=",", names=True)[f"{name}_calibrated"])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rows_without_a_prediction_are_kept_under_a_name_of_choice(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, calibrator: Path, suffix: str
) -> None:
    rows, out = tmp_path / "rows.csv", tmp_path / f"out{suffix}"
    rows.write_text("id,p\n1,0.3\n2,\n3,0.5\n")
    line = ("apply", calibrator, rows, "--pred", "p", "-o", out, "--as", "fixed")
    refused(capsys, *line)
    shown = softcal(capsys, *line, "--keep-missing")
    assert "3 rows (1 without a prediction), fixed by platt" in shown
    table = csv.read_csv(out) if suffix == ".csv" else pq.read_table(out)
    found = table["fixed"].to_pylist()
    assert found[1] is None
    right = sc.calibrators.load_calibrator(json.loads(calibrator.read_text())).predict([0.3, 0.5])
    assert [found[0], found[2]] == right.tolist()
    assert table["id"].to_pylist() == [1, 2, 3]
    both = refused(capsys, *line, "--keep-missing", "--drop-missing")
    assert "contradict each other" in both
    taken = refused(capsys, *line[:-1], "id", "--keep-missing")
    assert "already has a column 'id'" in taken
