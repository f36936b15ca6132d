"""Reading options: separators, encodings, JSON, Excel, pipes, and conversion of values."""

from __future__ import annotations

import gzip
import json
import math
import os
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl  # type: ignore[import-untyped]
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import softcal_here, text_of_page

import softcal as sc
from refusals import refusal
from softcal import _io
from softcal.calibrators.preview import fit_map
from softcal.cli.describe import as_options
from softcal.scanning.data import FORMATS
from workbooks import write_workbook

ROWS = [(0.5, 0.25, "José"), (1.0, 0.75, "Ana"), (0.0, 0.125, "José")]
PLAIN = "y,p,name\n" + "".join(f"{y},{p},{name}\n" for y, p, name in ROWS)
SMECE = (0.25 + 0.25 + 0.125) / 3


HOW = ("sep", "decimal", "encoding", "format", "sheet", "records")


def scanned(source: Any, *, scale: Any = "probability", **options: Any) -> sc.TableSet:
    """Scan y and p, with the options of `Files`, and with one scale for both columns."""
    how = {name: options.pop(name) for name in HOW if name in options}
    source = sc.Files(source, **how) if how else source
    y_true, y_prob = sc.Column("y", scale=scale), sc.Column("p", scale=scale)
    return sc.scan(source, **{"y_true": y_true, "y_prob": y_prob} | options)


def semicolons(mark: str = ";") -> str:
    lines = [mark.join(("y", "p", "name"))]
    lines += [mark.join((str(y), str(p), name)).replace(".", ",") for y, p, name in ROWS]
    return "\n".join(lines) + "\n"


READ: list[tuple[str, bytes, dict[str, str]]] = [
    ("a.csv", semicolons().encode(), {"sep": ";", "decimal": ","}),
    ("a.csv", b"sep=;\r\n" + semicolons().encode(), {"decimal": ","}),
    ("a.csv", b'\xef\xbb\xbf"sep=;"\n' + semicolons().encode(), {"decimal": ",", "sep": ";"}),
    ("a.csv", ("sep=;\n" + semicolons()).encode("utf-16"), {"decimal": ",", "encoding": "utf-16"}),
    ("a.csv", PLAIN.encode("latin-1"), {"encoding": "latin-1"}),
    ("a.csv", PLAIN.encode("utf-16"), {"encoding": "utf-16"}),
    ("a.csv", PLAIN.encode("utf-16-le"), {"encoding": "utf-16-le"}),
    ("a.csv", PLAIN.encode("utf-8-sig"), {}),
    ("a.csv.gz", gzip.compress(semicolons("|").encode("cp1252"), mtime=0),
     {"sep": "|", "decimal": ",", "encoding": "cp1252"}),
    ("a.txt", PLAIN.encode(), {}),
    ("a.txt", PLAIN.replace(",", "\t").encode(), {"sep": "tab"}),
    ("a.txt", PLAIN.replace(",", "\t").encode(), {"sep": "\\t"}),
    ("a", PLAIN.replace(",", "\t").encode(), {"format": "tsv"}),
    ("a.tsv", PLAIN.encode(), {"format": "csv"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "options"), READ)
def test_reading_options_for_text_are_applied(
    tmp_path: Path, name: str, content: bytes, options: dict[str, str]
) -> None:
    (tmp_path / name).write_bytes(content)
    tables = scanned(tmp_path / name, by="name", **options)
    assert tables["p"].smece == pytest.approx(SMECE, abs=1e-15)
    assert set(tables.by("name")) == {"José", "Ana"}
    words = [
        word
        for key, value in options.items()
        for word in (f"--{key.replace('format', 'input-format')}", value)
    ]
    line = ("score", tmp_path / name, "--label", "y", "--pred", "p", *words, "--format", "json")
    assert json.loads(softcal_here(*line).stdout)["n"] == 3


OBJECTS = [{"y": y, "p": p, "name": name} for y, p, name in ROWS]
COLUMNS = {key: [row[key] for row in OBJECTS] for key in ("y", "p", "name")}
DOCUMENTS = [
    json.dumps(OBJECTS),
    json.dumps(OBJECTS, indent=2),
    json.dumps(COLUMNS),
    json.dumps(COLUMNS, indent=2),
    "\n".join(map(json.dumps, OBJECTS)),
]


@pytest.mark.parametrize("text", DOCUMENTS)
@pytest.mark.parametrize("encoding", [None, "utf-16"])
def test_json_of_every_layout_is_read(tmp_path: Path, text: str, encoding: str | None) -> None:
    path = tmp_path / "a.json"
    path.write_text(text, encoding=encoding or "utf-8")
    assert scanned(path, encoding=encoding)["p"].smece == pytest.approx(SMECE, abs=1e-15)
    path.with_name("b.json.gz").write_bytes(gzip.compress(text.encode()))
    assert scanned(path.with_name("b.json.gz")).n == 3


def test_one_object_in_a_json_file_is_a_row_unless_all_its_values_are_lists(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"y": 0.5, "p": 0.25}')
    assert scanned(path).n == 1
    lists = '{"y": [0.5, 0.5], "p": [0.25, 0.75]}\n'
    path.write_text(lists)
    assert scanned(path).n == 2
    (tmp_path / "a.jsonl").write_text(lists)
    classes: dict[str, Any] = {"y_true": sc.Classes("y"), "y_prob": {"m": "p"}}
    assert sc.scan(tmp_path / "a.jsonl", **classes).n == 1
    assert sc.scan(sc.Files(path, format="jsonl"), **classes).n == 1
    path.write_text(2 * lists)
    assert sc.scan(path, **classes).n == 2
    path.write_text('[{"y": [0.5, 0.5], "p": [0.25, 0.75]}]')
    assert sc.scan(path, **classes).n == 1


BAD_JSON = [
    ('[{"y": "half", "p": 0.5}]', "y must hold numbers: 1 of 1 .* 'half' .*a.json, row 1"),
    ('[{"y": [1], "p": 0.5}]', "y must "),
    ('[{"y": 1' + 400 * "0" + ', "p": 0.5}]', "y must .* 1 of 1 .*a.json, row 1"),
    ("[]", "a.json has no column"),
    ('{"y": [0.5], "p": [0.5], "y": [1]}', "must have different keys: 'y' occurs twice"),
    ('[{"y": 0.5, "p": null}]', "p must have no missing values: 1 of 1"),
]


@pytest.mark.parametrize(("text", "message"), BAD_JSON)
def test_json_that_is_not_rows_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises((sc.InputError, sc.InputTypeError), match=message):
        scanned(tmp_path / "a.json")


# Workbooks


def test_a_workbook_is_read_with_gaps_and_empty_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    rows = [(None,), ("y", "p", "name", None), *ROWS, (None, None, None), (True, 1, "x", "beside")]
    write_workbook(path, {"one": rows})
    tables = scanned(path, by="name")
    assert tables.n == 4
    assert tables["p"].smece == pytest.approx(3 * SMECE / 4, abs=1e-15)
    assert set(tables.by("name")) == {"José", "Ana", "x"}
    line = ("score", path, "--label", "y", "--pred", "p")
    assert "a.xlsx: 4 rows" in softcal_here(*line).stdout


def test_a_column_of_a_sheet_may_be_numbers_and_names(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    write_workbook(path, {"one": [("y", "p", "w"), (0.5, 0.25, 1), (1, 0.75, 2), (1, 1, 2.5)]})
    tables = scanned(path, by="w", sample_weight="w")
    assert set(tables.by("w")) == {"1", "2", "2.5"}
    assert tables["p"].sums.weight.sum() == 5.5
    write_workbook(path, {"one": [("y", "p", "w"), (0.5, 0.25, "a")]})
    with pytest.raises(sc.InputError, match=r"w must hold numbers: 1 of 1 .*row 1"):
        scanned(path, by="w", sample_weight="w")


def test_sheet_option_selects_a_sheet(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    write_workbook(path, {"first": [("y", "p"), (1, 0)], "rows": [("y", "p"), (0.5, 0.5)]})
    with pytest.raises(
        sc.InputError, match=r"a.xlsx has 2 sheets. Its sheets are: 'first', 'rows'"
    ):
        scanned(path)
    with pytest.raises(sc.InputError, match=r"has no sheet 'Row'. Did you mean 'rows'\?"):
        scanned(path, sheet="Row")
    assert scanned(path, sheet="rows")["p"].smece == 0
    said = softcal_here("score", path, "--label", "y", "--pred", "p").stderr
    assert "Choose one: --sheet first." in said


BAD_BOOKS = [
    ([("y", "p"), (0.5, "half")], "p must hold numbers: 1 of 1 .*'half' .*a.xlsx, row 1"),
    ([("y", "q"), (0.5, 0.5)], "a.xlsx has no column 'p'"),
    ([], "the sheet is empty. Its first row must be names"),
    ([("y", "p"), (0.5,)], "p must have no missing values: 1 of 1"),
]


@pytest.mark.parametrize(("rows", "message"), BAD_BOOKS)
def test_a_sheet_that_is_not_rows_is_refused(tmp_path: Path, rows: Any, message: str) -> None:
    write_workbook(tmp_path / "a.xlsx", {"one": rows})
    with pytest.raises(sc.InputError, match=message):
        scanned(tmp_path / "a.xlsx")


def test_a_damaged_workbook_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    write_workbook(path, {"one": [("y", "p"), (0.5, 0.5)]})
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(sc.InputError, match="not an Excel workbook"):
        scanned(path)
    path.write_bytes(whole.replace(b"<v>0.5</v>", b"<v>x.5</v>").replace(b"</row>", b"</rov>"))
    with pytest.raises(sc.InputError, match=r"cannot read .*a\.xlsx"):
        scanned(path)
    with zipfile.ZipFile(BytesIO(whole)) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w") as file:
        for name, part in parts.items():
            file.writestr(name, part.replace(b"<v>0.5</v>", b"<v>x.5</v>"))
    with pytest.raises(sc.InputError, match=r"the sheet is damaged .*'x\.5'"):
        scanned(path)


# Contradicting options


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"sep": ";;"}, "sep must be one character between cells, or 'tab': got ';;'"),
    ({"sep": "\n"}, "sep must be one character"),
    ({"decimal": "'"}, "decimal must be one of"),
    ({"decimal": ","}, "does ',' separate the cells too.* sep=\";\""),
    ({"encoding": "klingon"}, "encoding must be one that Python knows"),
    ({"encoding": "base64"}, "encoding must be one that Python knows"),
    ({"encoding": "ascii"}, "it is not text in ascii"),
    ({"encoding": "utf-16"}, "cannot read .*a.csv: "),
    ({"format": "xls"}, "input_format must be one of csv, tsv, json"),
    (
        {"format": "parquet"},
        'its content is not parquet. Leave Files\\(..., format="parquet"\\) out',
    ),
    ({"format": "json"}, "cannot read .*a.csv: "),
    ({"scale": "odds"}, "scale must be one of probability, percent, logit, logprob"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_invalid_reading_options_are_refused(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    (tmp_path / "a.csv").write_text(PLAIN, encoding="utf-8")
    with pytest.raises(sc.InputError, match=message):
        scanned(tmp_path / "a.csv", **options)


@pytest.mark.parametrize("source", [pa.table({"y": [0.5], "p": [0.5]}), [], None])
def test_options_of_files_are_refused_for_anything_else(source: Any) -> None:
    with pytest.raises(sc.InputTypeError, match="a path, or a list of paths"):
        scanned(source, sep=";")


def test_binary_content_is_not_read_as_text(tmp_path: Path) -> None:
    pq.write_table(pa.table({"y": [0.5], "p": [0.5]}), tmp_path / "a.csv")
    with pytest.raises(sc.InputError, match="its content is not csv"):
        scanned(tmp_path / "a.csv", format="csv")


def test_input_formats_match_the_command_line() -> None:
    said = softcal_here("score", "x", "--label", "y", "--pred", "p", "--input-format", "no").stderr
    for name in FORMATS:
        assert f"'{name}'" in said


# Pipes


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_standard_input_is_read_in_a_process_of_its_own(name: str) -> None:
    line = [sys.executable, "-m", "softcal", "score", name, "--label", "y", "--pred", "p"]
    done = subprocess.run(  # noqa: S603
        line, input=PLAIN.encode(), capture_output=True, check=False
    )
    assert done.stderr == b""
    assert "standard input: 3 rows" in done.stdout.decode()
    bad = subprocess.run(  # noqa: S603
        line, input=b"y,p\n0.5,0.5\n0.5,7\n", capture_output=True, check=False
    )
    assert "the first is 7.0 in standard input, row 2." in bad.stderr.decode()


def opened(content: bytes) -> Path:
    """Return a pipe as the shell opens it for `<(...)`: the content fits into its buffer."""
    read, write = os.pipe()
    os.write(write, content)
    os.close(write)
    return Path(f"/dev/fd/{read}")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_pipes_of_every_format_are_read(tmp_path: Path, kind: str) -> None:
    source = tmp_path / "a"
    if kind == "csv":
        source.write_text(PLAIN, encoding="utf-8")
    else:
        y, p, _ = zip(*ROWS, strict=True)
        pq.write_table(pa.table({"y": y, "p": p}), source)
    pipe = opened(source.read_bytes())
    assert scanned(pipe)["p"].smece == pytest.approx(SMECE, abs=1e-15)
    os.close(int(pipe.name))


def test_pipe_of_the_shell_has_a_readable_name() -> None:
    pipe = opened(PLAIN.encode())
    done = softcal_here("score", pipe, "--label", "y", "--pred", "p")
    os.close(int(pipe.name))
    assert done.stdout.startswith(f"pipe {pipe.name}: 3 rows")


def test_copies_of_pipes_are_removed_at_once_by_a_program_that_stops() -> None:
    pipe = opened(b"x")
    copy = _io.spooled(pipe)
    os.close(int(pipe.name))
    assert copy.read_bytes() == b"x"
    _io.remove_unfinished()
    assert not copy.parent.exists()


# Values


DATA = """\
y,p,pct,z,word,gap
0.5,0.25,25,-1.5,yes,0.25
1,0.75,75,2,no,
0,0.125,12.5,0.25,No,0.125
"""


SIGNED = (["50%", "12,5 %", "7"], ["100%", "", "40%"])
PERCENT: dict[str, Any] = {"scale": "percent", "drop_missing": True}


@pytest.mark.parametrize("kind", ["csv", "json", "xlsx"])
def test_percent_signs_are_read_in_columns_of_percentages(tmp_path: Path, kind: str) -> None:
    marks: dict[str, Any]
    path, marks = tmp_path / f"a.{kind}", {"sep": ";", "decimal": ","} if kind == "csv" else {}
    p, y = ([cell.replace(",", marks.get("decimal", ".")) for cell in column] for column in SIGNED)
    if kind == "csv":
        path.write_text("p;y\n" + "".join(map("{};{}\n".format, p, y)))
    elif kind == "json":
        path.write_text(json.dumps({"p": [*p[:2], 7], "y": y}))
    else:
        pd.DataFrame({"p": [*p[:2], 7], "y": y}).to_excel(path, index=False)
    found = scanned(path, **marks, **PERCENT)
    right = sc.reliability([1.0, 0.4], [0.5, 0.07])
    assert found["p"].smece == pytest.approx(right.smece)
    assert found.about.rows_dropped == 1
    with pytest.raises(sc.InputError, match=r"p must hold numbers: 2 of 3 .* '50%' .*row 1"):
        scanned(path, y_prob="p", **marks)


TEXTS = {"p": ["50%", "12.5 %", "7"], "y": ["100%", None, "40%"]}


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "pandas", "categories", "polars", "stream"])
def test_percent_signs_are_read_in_typed_columns(tmp_path: Path, kind: str) -> None:
    table, path = pa.table(TEXTS), tmp_path / f"a.{kind}"
    source: Any = path
    if kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    elif kind == "parquet":
        pq.write_table(table, path)
    elif kind == "polars":
        source = pl.DataFrame(TEXTS).with_columns(pl.col("p").cast(pl.Categorical))
    else:
        source = table.to_pandas() if kind == "pandas" else table.to_reader()
    if kind == "categories":
        source = table.to_pandas().astype("category")
    found = scanned(source, **PERCENT)
    assert found["p"].smece == pytest.approx(sc.smece([1.0, 0.4], [0.5, 0.07]))
    assert found.about.rows_dropped == 1


def test_frame_that_mixes_text_and_numbers_is_refused() -> None:
    frame = pd.DataFrame({"y": [1.0, 0.0], "p": pd.Series(["50%", np.int64(7)], dtype=object)})
    with pytest.raises(sc.InputTypeError, match="p must hold values of one simple type"):
        scanned(frame, y_true="y", scale="percent")


def test_text_that_is_not_a_percentage_is_refused_with_a_remedy(tmp_path: Path) -> None:
    texts = {"y": [1.0, 0.0], "p": ["50,5%", "7"]}
    for frame in (pd.DataFrame(texts), pl.DataFrame(texts)):
        found = refusal(scanned, frame, y_true="y", scale="percent")
        assert (found.must, found.count, found.total) == ("must hold numbers", 1, 2)
        assert "Write 50.5%" in found.remedy
    (tmp_path / "a.csv").write_text("y;p\n1;50,5%\n")
    found = refusal(scanned, tmp_path / "a.csv", sep=";", y_true="y", scale="percent")
    assert 'pass Files(..., decimal=",")' in found.remedy
    for text in ("half %", "%", "1_0%"):
        (tmp_path / "a.csv").write_text(f"y,p\n1,{text}\n")
        (tmp_path / "a.json").write_text(json.dumps([{"y": 1, "p": text}]))
        for name in ("a.csv", "a.json"):
            with pytest.raises(sc.InputError, match=f"1 of 1 .* '{text}' in .*{name}, row 1"):
                scanned(tmp_path / name, y_true="y", scale="percent")


@pytest.fixture
def platt(tmp_path: Path) -> Any:
    """Fit a calibrator, and save it as map.json."""
    found = sc.calibrators.PlattCalibrator().fit([0.2, 0.5, 0.7, 0.3], [0.0, 1.0, 0.5, 0.5])
    (tmp_path / "map.json").write_text(json.dumps(found.to_dict()))
    return found


@pytest.mark.parametrize("target", ["b.csv", "b.parquet"])
def test_calibrator_reads_percent_signs(tmp_path: Path, platt: Any, target: str) -> None:
    (tmp_path / "a.csv").write_text("p,y\n50%,1\n20,0\n")
    where = (tmp_path / "map.json", tmp_path / "a.csv", "-o", tmp_path / target)
    line = ("apply", *where, "--pred", "p", "--pred-scale", "percent")
    assert softcal_here(*line).stderr == ""
    read = pd.read_csv if target == "b.csv" else pd.read_parquet
    found = read(tmp_path / target)
    assert found["p"].to_list() == ["50%", "20"]
    assert found["p_calibrated"].to_list() == pytest.approx(platt.predict([0.5, 0.2]).tolist())


def test_calibrator_drops_missing_percentages(tmp_path: Path, platt: Any) -> None:
    (tmp_path / "a.csv").write_text("y,p\n1,50%\n0,\n0,20%\n")
    where = (tmp_path / "map.json", tmp_path / "a.csv", "-o", tmp_path / "b.parquet")
    line = ("apply", *where, "--pred", "p", "--pred-scale", "percent")
    assert (
        "it is missing in row 2. Impute it first, or pass --drop-missing"
        in softcal_here(*line).stderr
    )
    assert card(*line, "--drop-missing")["rows_dropped"] == 1
    mapped = pd.read_parquet(tmp_path / "b.parquet")["p_calibrated"].to_list()
    assert mapped == pytest.approx(platt.predict([0.5, 0.2]).tolist())


CONTENT = {"id": [7, 8], "p": [0.5, 0.25], "mixed": [1, "x"]}
PLAIN_LINES = 'id,p,mixed\n7,0.50,"1\n2"\n8,0.25,x\n'


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.xlsx", "a.arrow", "a.ipc", "a.csv.gz"])
@pytest.mark.parametrize("target", ["b.csv", "b.parquet"])
def test_calibrator_is_applied_to_every_format(
    tmp_path: Path, platt: Any, name: str, target: str
) -> None:
    path = tmp_path / name
    line: tuple[object, ...] = ("apply", tmp_path / "map.json", path, "--pred", "p")
    if name == "a.json":
        path.write_text(json.dumps(CONTENT))
    elif name == "a.jsonl":
        rows = pa.table(CONTENT | {"mixed": ["1", "x"]}).to_pylist()
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8-sig")
    elif name == "a.xlsx":
        write_workbook(
            path, {"other": [["z"]], "data": [list(CONTENT), *zip(*CONTENT.values(), strict=True)]}
        )
        assert "has 2 sheets" in softcal_here(*line, "-o", tmp_path / target).stderr
        line = (*line, "--sheet", "data")
    elif name == "a.csv.gz":
        path.write_bytes(gzip.compress(PLAIN_LINES.encode()))
    else:
        table = pa.table(CONTENT | {"mixed": ["1", "x"]})
        new = pa.ipc.new_file if name == "a.arrow" else pa.ipc.new_stream
        with new(path, table.schema) as out:
            out.write_table(table)
    assert softcal_here(*line, "-o", tmp_path / target).stderr == ""
    found = (pd.read_csv if target == "b.csv" else pd.read_parquet)(tmp_path / target)
    assert found["id"].to_list() == [7, 8]
    assert found["p_calibrated"].to_list() == pytest.approx(platt.predict([0.5, 0.25]).tolist())
    if target == "b.csv" and name == "a.csv.gz":
        assert (tmp_path / target).read_text().startswith('id,p,mixed,p_calibrated\n7,0.50,"1\n2",')


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    path.write_text(DATA)
    return path


def card(*line: object) -> dict[str, Any]:
    found = softcal_here(*line, "--format", "json")
    assert found.returncode == 0, found.stderr
    loaded: dict[str, Any] = json.loads(found.stdout)
    return loaded


def test_scales_are_converted_on_the_command_line(data: Path) -> None:
    plain = card("score", data, "--label", "y", "--pred", "p")
    percent = card("score", data, "--label", "y", "--pred", "pct", "--pred-scale", "percent")
    assert percent["models"][0]["smece"] == plain["models"][0]["smece"]
    logit = card("score", data, "--label", "y", "--pred", "z", "--pred-scale", "logit")
    probs = [1 / (1 + math.exp(-z)) for z in (-1.5, 2, 0.25)]
    data.write_text("y,lp\n0.5,-0.25\n1,0\n0,-inf\n")
    logs = card("score", data, "--label", "y", "--pred", "lp", "--pred-scale", "logprob")
    expected = sc.smece([0.5, 1, 0], [math.exp(-0.25), 1, 0])
    assert logs["models"][0]["smece"] == pytest.approx(expected, rel=1e-14)
    assert logit["models"][0]["smece"] == pytest.approx(sc.smece([0.5, 1, 0], probs), rel=1e-14)


def test_words_are_counted_and_words_for_0_are_noted(data: Path) -> None:
    line = ("score", data, "--label", "word", "--pred", "p", "--positive")
    found = softcal_here(*line, "yes")
    note = "word counts as 1 if it is 'yes', and as 0 if it is 'No' (1), 'no' (1)."
    assert found.stderr == f"softcal: note: {note}\n"
    said = softcal_here(*line, "Yes").stderr
    assert "Did you mean 'yes'?" in said


DROPPED = ("--label", "y", "--pred", "gap", "--drop-missing")


def test_dropped_rows_are_counted_in_text_json_and_saved_tables(data: Path, tmp_path: Path) -> None:
    said = softcal_here("score", data, *DROPPED[:-1]).stderr
    assert "pass --drop-missing to leave those rows out." in said
    assert "2 rows (1 dropped)" in softcal_here("score", data, *DROPPED).stdout
    assert card("score", data, *DROPPED)["rows_dropped"] == 1
    assert card("score", data, "--label", "y", "--pred", "p")["rows_dropped"] is None
    saved = tmp_path / "t.softcal"
    assert "2 rows (1 dropped)" in softcal_here("scan", data, *DROPPED, "-o", saved).stdout
    assert card("score", saved)["rows_dropped"] == 1
    assert (sc.load(saved) + sc.load(saved)).about.rows_dropped == 2
    assert softcal_here("report", data, *DROPPED, "-o", tmp_path / "r.html").returncode == 0
    assert "1, left out on purpose" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_plan_reports_dropped_rows_of_the_pilot(tmp_path: Path) -> None:
    pilot = tmp_path / "pilot.csv"
    rows = [f"{k % 5 / 4},{k % 7 / 6 if k else ''}" for k in range(100)]
    pilot.write_text("\n".join(["y,p", *rows]))
    line = ("plan", pilot, "--label", "y", "--pred", "p", "--half-width", "0.05")
    assert "Rows of the pilot: 1 dropped." in softcal_here(*line, "--drop-missing").stdout
    assert card(*line, "--drop-missing")["rows_dropped"] == 1
    said = softcal_here(*line[:1], "--smece", "0.1", "--label-spread", "0.1", *line[-2:],
                        "--sep", ";").stderr  # fmt: skip
    assert "--sep has no effect without DATA" in said


def test_row_options_are_refused_for_saved_tables(data: Path, tmp_path: Path) -> None:
    saved = tmp_path / "t.softcal"
    softcal_here("scan", data, "--label", "y", "--pred", "p", "-o", saved)
    said = softcal_here("score", saved, "--pred-scale", "percent").stderr
    assert "--pred-scale is for rows: leave it out with saved tables." in said


def test_name_option_renames_models(data: Path, tmp_path: Path) -> None:
    line = (data, "--label", "y", "--pred", "p", "--pred", "gap", "--drop-missing")
    names = ("--name", "Forest", "--name", "Other")
    assert [m["pred"] for m in card("score", *line, *names)["models"]] == ["Forest", "Other"]
    said = softcal_here("score", *line, "--name", "Forest").stderr
    assert "pass --name once per model: there are 2, 'p', 'gap', and 1 of --name." in said
    said = softcal_here("score", *line, "--name", "A", "--name", "A").stderr
    assert "models must have different names: 'A' is given twice" in said
    saved, page = tmp_path / "t.softcal", tmp_path / "r.html"
    softcal_here("scan", *line, *names, "-o", saved)
    assert card("score", saved, "--pred", "Forest", "--name", "F")["models"][0]["pred"] == "F"
    made = softcal_here("report", *line, *names, "-o", page, "--title", "Of <two> models")
    assert made.returncode == 0, made.stderr
    text = page.read_text(encoding="utf-8")
    assert "<h1>Of &lt;two&gt; models</h1>" in text
    assert (
        softcal_here("report", saved, "--pred", "Other", "--name", "B", "-o", page).returncode == 0
    )


def test_commands_in_a_report_repeat_the_row_options(tmp_path: Path) -> None:
    rows = [f"{k % 5 / 4};{99 - k % 7:.1f}" for k in range(400)]
    (tmp_path / "a.csv").write_text("\n".join(["y;p", *rows]))
    page = tmp_path / "r.html"
    line = ("report", tmp_path / "a.csv", "--label", "y", "--pred", "p", "--name", "Forest")
    made = softcal_here(*line, "--sep", ";", "--pred-scale", "percent", "-o", page)
    assert made.returncode == 0, made.stderr
    command = f"softcal recalibrate {tmp_path / 'a.csv'} --label y --sep ';' --pred-scale percent"
    assert f"{command} --pred p -o calibrator.json" in text_of_page(page)


# Calibrators


def test_calibrator_is_fitted_and_applied_with_reading_options(tmp_path: Path) -> None:
    y = [round(k % 11 / 10, 1) for k in range(60)]
    pct = [round(100 * (k * 7 % 60) / 59, 2) for k in range(60)]
    path, plain = tmp_path / "a.csv", tmp_path / "plain.csv"
    rows = [f"{a};{b};é".replace(".", ",") for a, b in zip(y, pct, strict=True)]
    text = "\r\n".join(["sep=;", "y;p;name", *rows, "0,5;;é", ""])
    path.write_bytes(text.encode("latin-1"))
    plain.write_text("\n".join(["y,p", *(f"{a},{b / 100}" for a, b in zip(y, pct, strict=True))]))
    how = ("--decimal", ",", "--encoding", "latin-1", "--pred-scale", "percent", "--drop-missing")
    cal, same = tmp_path / "cal.json", tmp_path / "same.json"
    options = ("--label", "y", "--pred", "p", "--method", "platt")
    found = card("recalibrate", path, *options, *how, "-o", cal)
    assert (found["n"], found["rows_dropped"]) == (60, 1)
    shown = softcal_here("recalibrate", path, *options, *how, "--name", "Forest", "-o", cal).stdout
    assert "a.csv: 60 rows (1 dropped), label y, Forest" in shown
    card("recalibrate", plain, *options, "-o", same)
    assert json.loads(cal.read_text()) == json.loads(same.read_text())
    out = tmp_path / "out.csv"
    made = card("apply", cal, path, "--pred", "p", *how, "--sep", ";", "-o", out)
    assert (made["n"], made["rows_dropped"]) == (60, 1)
    # A name that ends in .csv means commas, so the file is written again.
    softcal_here("apply", cal, plain, "--pred", "p", "-o", tmp_path / "expected.csv")
    expected = (tmp_path / "expected.csv").read_text().splitlines()
    lines = out.read_text(encoding="utf-8").splitlines()
    assert [line.split(",")[-1] for line in lines[1:]] == [e.split(",")[-1] for e in expected[1:]]


PLATT = fit_map("platt", np.array([0.0, 1, 1, 0]), np.array([0.2, 0.8, 0.4, 0.5]))


def test_applying_a_calibrator_keeps_the_bytes_of_text(tmp_path: Path) -> None:
    cal, path, out = tmp_path / "cal.json", tmp_path / "a.tsv", tmp_path / "out.tsv"
    cal.write_text(json.dumps(PLATT.to_dict()))
    text = "sep=\t\nname\tp\né\t0,25\né\tNA\n\né\t0,5\n"
    path.write_bytes(text.encode("latin-1"))
    how = ("--decimal", ",", "--encoding", "latin-1")
    line = ("apply", cal, path, "--pred", "p", *how, "-o", out)
    assert "p must hold numbers: row 2 holds the text 'NA'" in softcal_here(*line).stderr
    assert "2 rows (1 dropped), p_calibrated" in softcal_here(*line, "--drop-missing").stdout
    lines = out.read_bytes().decode("latin-1").split("\n")
    assert lines[:2] == ["sep=\t", "name\tp\tp_calibrated"]
    assert [line.rpartition("\t")[0] for line in lines[2:]] == ["é\t0,25", "", "é\t0,5", ""]
    assert lines[2].split("\t")[2].count(",") == 1


def test_calibrator_of_logits_refuses_percentages(tmp_path: Path) -> None:
    rows = [f"{k % 11 / 10},{k % 13 - 6}" for k in range(60)]
    path, cal = tmp_path / "a.csv", tmp_path / "cal.json"
    path.write_text("\n".join(["y,z", *rows]))
    softcal_here("recalibrate", path, "--label", "y", "--pred", "z", "--pred-scale", "logit",
                 "-o", cal)  # fmt: skip
    line = ("apply", cal, path, "--pred", "z", "-o", tmp_path / "out.csv", "--pred-scale")
    for other in ("percent", "logprob"):
        assert f"pass logits, not --pred-scale {other}" in softcal_here(*line, other).stderr
    assert softcal_here(*line, "logit").returncode == 0


def test_calibrator_errors_name_the_options(tmp_path: Path) -> None:
    cal, path = tmp_path / "cal.json", tmp_path / "a.csv"
    cal.write_text(json.dumps(PLATT.to_dict()))
    path.write_text("p\n40\n")
    line = ("apply", cal, path, "--pred", "p", "-o", tmp_path / "out.csv")
    said = softcal_here(*line).stderr
    assert "pass --pred-scale percent, logit, or logprob; --drop-missing drops rows." in said
    pq.write_table(pa.table({"p": [40.0, None]}), tmp_path / "a.parquet")
    line = ("apply", cal, tmp_path / "a.parquet", "--pred", "p", "-o", tmp_path / "out.parquet")
    assert card(*line, "--pred-scale", "percent", "--drop-missing")["rows_dropped"] == 1
    lists = pa.table({"p": pa.array([[0.5, 0.5], None, [0.25, None]], pa.list_(pa.float64()))})
    pq.write_table(lists, tmp_path / "lists.parquet")


def test_keywords_in_messages_become_quoted_options() -> None:
    assert as_options('positive="it\'s"') == "--positive 'it'\"'\"'s'"
    assert as_options('positive="a b", decimal=",".') == "--positive 'a b', --decimal ','."
    assert as_options("a_sep=1, drop_missing=Truely") == "a_sep=1, drop_missing=Truely"


def test_similar_names_are_suggested_for_saved_tables(data: Path) -> None:
    tables = sc.scan(data, y_true="y", y_prob="p", by="word")
    with pytest.raises(KeyError, match=r"no model 'P'. Did you mean 'p'\?"):
        tables["P"]
    with pytest.raises(sc.InputError, match=r"by 'wrod'. Did you mean 'word'\?"):
        tables.by("wrod")
    with pytest.raises(sc.InputError, match=r"no column 'PCT'. Did you mean 'pct'\?"):
        sc.scan(data, y_true="y", y_prob="PCT")
    with pytest.raises(sc.InputError, match=r"no column 'entirely'. Its columns are"):
        sc.scan(data, y_true="y", y_prob="entirely")


def test_apply_to_rows_that_are_all_dropped_writes_none(tmp_path: Path) -> None:
    cal, path, out = tmp_path / "cal.json", tmp_path / "a.csv", tmp_path / "out.csv"
    cal.write_text(json.dumps(PLATT.to_dict()))
    path.write_text("k,p\n1,\n2,\n")
    line = ("apply", cal, path, "--pred", "p", "-o", out)
    assert card(*line, "--drop-missing")["rows_dropped"] == 2
    assert out.read_text().splitlines()[0] == "k,p,p_calibrated"


def test_apply_with_a_scale_does_not_suggest_scales(tmp_path: Path) -> None:
    cal, path = tmp_path / "cal.json", tmp_path / "a.csv"
    cal.write_text(json.dumps(PLATT.to_dict()))
    path.write_text("p\n400\n")
    line = ("apply", cal, path, "--pred", "p", "-o", tmp_path / "out.csv")
    said = softcal_here(*line, "--pred-scale", "percent").stderr
    assert "the first is y_prob[0] = 4.0" in said
    assert "--pred-scale" not in said


def test_a_point_among_decimal_commas_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("y;p\n0,5;0,25\n0,5;0.5\n")
    with pytest.raises(sc.InputError, match=r"p must hold numbers: 1 of 2 .* '0\.5' .*row 2"):
        scanned(path, sep=";", decimal=",")


def test_counts_of_votes_in_a_workbook(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    write_workbook(path, {"s": [["no", "yes", "p"], [1, 2, 0.5], [3, 0, 0.25]]})
    found = scanned(path, y_true=sc.Counts(["no", "yes"]))
    assert found["p"].smece == sc.smece(sc.Votes([[1, 2], [3, 0]]), [0.5, 0.25])


def test_rows_with_a_gap_in_a_list_are_dropped_on_purpose() -> None:
    shares = [[0.5, 0.5], None, [0.25, 0.75], [None, 1.0]]
    table = pa.table({"y": pa.array(shares), "p": pa.array([[0.5, 0.5], [0.1, 0.9]] * 2)})
    found = sc.scan(table, y_true=sc.Classes("y"), y_prob={"m": "p"}, drop_missing=True)
    whole = sc.scan(table.take([0, 2]), y_true=sc.Classes("y"), y_prob={"m": "p"})
    assert (found.n, found.about.rows_dropped) == (2, 2)
    assert found["m"].smece == whole["m"].smece


def test_workbook_header_may_end_with_empty_cells(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in [("y", "p"), (0.5, 0.25, "x")]:
        book.active.append(row)
    book.active["C1"].font = openpyxl.styles.Font(bold=True)  # only a cell with a style is stored
    book.save(tmp_path / "a.xlsx")
    assert sc.scan(tmp_path / "a.xlsx", y_true="y", y_prob="p")["p"].smece == 0.25


def test_rows_that_all_lack_a_value_leave_nothing_to_fit(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("y,p\n,0.5\n0.5,\n", encoding="utf-8")
    done = softcal_here(
        "recalibrate", path, "--label", "y", "--pred", "p", "--drop-missing", "-o", tmp_path / "c"
    )
    assert "every one of the 2 rows has a missing value" in done.stderr


def test_dates_are_not_predictions() -> None:
    rows = pd.DataFrame({"y": [0.5], "p": pd.to_datetime(["2026-03-01"])})
    with pytest.raises(sc.InputTypeError):
        sc.scan(rows, y_true="y", y_prob="p")


def test_workbook_with_two_sheets_is_not_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "two.xlsx"
    rows: list[list[Any]] = [["y", "p"], [0.5, 0.25]]
    write_workbook(path, {"first": rows, "second": rows})
    with pytest.raises(sc.InputError, match=r"two\.xlsx has 2 sheets") as found:
        sc.scan(path, y_true="y", y_prob="p")
    assert "damaged" not in str(found.value)


def test_workbook_without_its_suffix_is_read(tmp_path: Path) -> None:
    path = tmp_path / "standard input"
    write_workbook(path, {"first": [["y", "p"], [0.5, 0.25]]})
    assert scanned(path, format="xlsx").n == 1


def test_quoted_numbers_with_decimal_commas_between_commas_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('y,p\n"0,5","0,25"\n1,"0,5"\n')
    assert scanned(path, sep=",", decimal=",")["p"].bias == -0.375


def test_names_separated_by_spaces_are_recognized(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("y p\n0.5 0.25\n")
    with pytest.raises(sc.InputError, match="separated by spaces, not commas"):
        sc.scan(path, y_true="y", y_prob="p")


def test_apply_names_the_encoding_and_the_missing_value(tmp_path: Path) -> None:
    saved, path, out = (tmp_path / name for name in ("m.json", "a.csv", "b.csv"))
    map_ = sc.calibrators.HistogramCalibrator(2).fit([0.25, 0.75], [0.5, 0.5])
    saved.write_text(json.dumps(map_.to_dict()))
    path.write_bytes("sep=;\np;s\n0.5;Köln\n".encode("latin-1"))
    done = softcal_here("apply", saved, path, "--pred", "p", "-o", out)
    assert "Pass --encoding latin-1" in done.stderr
    path.write_text("p,s\n,a\n")
    done = softcal_here("apply", saved, path, "--pred", "p", "-o", out)
    assert "pass --drop-missing" in done.stderr


def test_watch_and_plan_read_counts_of_votes(tmp_path: Path, rng: np.random.Generator) -> None:
    yes = rng.binomial(5, 0.4, 60)
    counts = pd.DataFrame({"no": 5 - yes, "yes": yes, "p": 0.4, "day": ["1", "2"] * 30})
    shares = counts.assign(y=yes / 5, m=5)
    counts.to_csv(tmp_path / "counts.csv", index=False)
    shares.to_csv(tmp_path / "shares.csv", index=False)
    both = ("--vote-columns", "no,yes", "--pred", "p")
    one = ("--label", "y", "--pred", "p")
    watched = card("watch", tmp_path / "counts.csv", *both, "--day", "day")
    right = card("watch", tmp_path / "shares.csv", *one, "--votes", "m", "--day", "day")
    goal = ("--half-width", "0.05")
    planned = card("plan", *goal, tmp_path / "counts.csv", *both)
    planned_right = card("plan", *goal, tmp_path / "shares.csv", *one, "--votes", "m")
    for found, expected in ((watched, right), (planned, planned_right)):
        assert "the label is the share of yes" in found["notes"][0]
        assert {**found, "notes": []} == expected
