"""Files as rows of DuckDB: values, refusals, and limits of every format."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import math
import os
import random
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import softcal as sc
from softcal.scanning.data import Files
from softcal.scanning.source import (
    AT,
    ROW_BITS,
    Session,
    Use,
    answered,
    batches,
    collected,
    opened,
)
from workbooks import write_workbook

if TYPE_CHECKING:
    from collections.abc import Callable


def source_of(paths: Any, **options: Any) -> Any:
    return opened(Files(paths, **options), Session())


def ask(source: Any, uses: list[Use], *, numbered: bool = False) -> dict[str, list[Any]]:
    rows = source.numbered if numbered else source.frame
    found = answered(source.con, lambda: collected(rows(uses)))
    columns: dict[str, list[Any]] = (found.sort_by(AT) if numbered else found).to_pydict()
    return columns


def values(paths: Any, *names: str, as_: Any = "value", **options: Any) -> dict[str, list[Any]]:
    """Return columns of files."""
    source = source_of(paths, **options)
    for name in names:
        source.refuse_unknown(name)
        source.kind(name)
    found = ask(source, [Use(name, as_) for name in names])
    return {name: found[f"c{k}"] for k, name in enumerate(names)}


def numbers(paths: Any, *names: str, as_: Any = "number", **options: Any) -> dict[str, list[Any]]:
    """Return columns of numbers; raise for the first text that is not a number."""
    source = source_of(paths, **options)
    for name in names:
        source.refuse_unknown(name)
        source.kind(name)
    found = ask(source, [Use(name, as_) for name in names], numbered=True)
    for k, name in enumerate(names):
        for row, bad in enumerate(found.get(f"t{k}", ())):
            if bad:
                at = found[AT][row]
                place = source.files[at >> ROW_BITS], at % (1 << ROW_BITS)
                message = f"{name} must hold numbers: {found[f'x{k}'][row]!r} at {place}"
                raise sc.InputError(message)
    return {name: found[f"c{k}"] for k, name in enumerate(names)}


# Every format


ROWS: list[dict[str, Any]] = [
    {"y": 0.5, "p": 0.25, "name": "José", "n": 4},
    {"y": 1.0, "p": 0.75, "name": 'the "far", west\n', "n": 12},
    {"y": 0.0, "p": None, "name": None, "n": 4},
]
COLUMNS = {key: [row[key] for row in ROWS] for key in ROWS[0]}


def as_csv(mark: str = ",", end: str = "\n") -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=mark, lineterminator=end)
    writer.writerow(ROWS[0])
    writer.writerows(row.values() for row in ROWS)
    return text.getvalue()


def as_arrow(new: Callable[..., Any]) -> bytes:
    table, out = pa.table(COLUMNS), io.BytesIO()
    with new(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return out.getvalue()


def as_parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def as_workbook(rows: list[list[Any]]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write_workbook(Path(folder) / "a", {"one": rows})
        return (Path(folder) / "a").read_bytes()


LINES = "".join(json.dumps(row) + "\n" for row in ROWS)
SHEET = as_workbook([[*ROWS[0]], *([*row.values()] for row in ROWS)])
FORMATS: dict[str, tuple[str, bytes, dict[str, str]]] = {
    "csv": ("a.csv", as_csv().encode(), {}),
    "csv, CRLF": ("a.csv", as_csv(end="\r\n").encode(), {}),
    "csv, CR": ("a.csv", as_csv(end="\r").encode(), {}),
    "csv, mixed ends": ("a.csv", as_csv().encode().replace(b"n\n", b"n\r\n"), {}),
    "csv, mark": ("a.csv", as_csv().encode("utf-8-sig"), {}),
    "csv, blank lines": ("a.csv", b"\n\r\n" + as_csv().encode() + b"\n\n", {}),
    "csv, sep line": ("a.csv", b"sep=;\r\n" + as_csv(";", "\r\n").encode(), {}),
    "csv, sep line after mark": ("a.csv", b'\xef\xbb\xbf"sep=|"\n' + as_csv("|").encode(), {}),
    "csv, semicolons": ("a.csv", as_csv(";").replace(".", ",").encode(), {"sep": ";", "decimal": ","}),
    "csv, latin-1": ("a.csv", as_csv().encode("latin-1"), {"encoding": "latin-1"}),
    "csv, utf-16": ("a.csv", as_csv().encode("utf-16"), {"encoding": "utf-16"}),
    "csv, gzip": ("a.csv.gz", gzip.compress(as_csv().encode()), {}),
    "csv, bzip2": ("a.csv.bz2", bz2.compress(as_csv().encode()), {}),
    "csv, Zstandard": ("a", pa.compress(as_csv().encode(), "zstd", asbytes=True), {}),
    "csv, gzip, latin-1": ("a.gz", gzip.compress(as_csv().encode("cp1252")), {"encoding": "cp1252"}),
    "tsv": ("a.tsv", as_csv("\t").encode(), {}),
    "tsv by option": ("a", as_csv("\t").encode(), {"format": "tsv"}),
    "json lines": ("a.jsonl", LINES.encode(), {}),
    "json lines, blank": ("a", b"\n \n" + LINES.replace("\n", "\r\n\n").encode(), {}),
    "json lines, mark": ("a.jsonl", LINES.encode("utf-8-sig"), {}),
    "json lines, utf-16": ("a.jsonl", LINES.encode("utf-16"), {"encoding": "utf-16"}),
    "json lines, gzip": ("a.jsonl.gz", gzip.compress(LINES.encode()), {}),
    "json lines, bzip2": ("a.jsonl.bz2", bz2.compress(LINES.encode()), {}),
    "json array": ("a.json", json.dumps(ROWS, indent=1).encode(), {}),
    "json columns": ("a.json", json.dumps(COLUMNS).encode("utf-16"), {"encoding": "utf-16"}),
    "json records": ("a.json", json.dumps({"a": {"b.c": ROWS}}).encode(), {"records": "a.b.c"}),
    "parquet": ("a.csv", as_parquet(pa.table(COLUMNS)), {}),
    "arrow file": ("a.arrow", as_arrow(pa.ipc.new_file), {}),
    "arrow stream": ("a", as_arrow(pa.ipc.new_stream), {}),
    "excel": ("a.xlsx", SHEET, {}),
}  # fmt: skip


def same_numbers(found: list[Any], expected: list[Any]) -> bool:
    return [None if x is None or math.isnan(x) else x for x in found] == expected


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_the_same_columns(tmp_path: Path, kind: str) -> None:
    name, content, options = FORMATS[kind]
    (tmp_path / name).write_bytes(content)
    found = numbers(tmp_path / name, "y", "p", **options)
    assert same_numbers(found["y"], COLUMNS["y"])
    assert same_numbers(found["p"], COLUMNS["p"])
    texts = values(tmp_path / name, "name", "n", **options)
    assert texts["name"] == COLUMNS["name"]
    assert [int(n) for n in texts["n"]] == COLUMNS["n"]
    assert source_of(tmp_path / name, **options).names == [*ROWS[0]]


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_can_be_part_of_several_files(tmp_path: Path, kind: str) -> None:
    """Numbers compare as numbers, and values as text, whatever each file holds."""
    name, content, options = FORMATS[kind]
    options = {key: value for key, value in options.items() if key not in ("records", "format")}
    if "encoding" in options or kind in ("tsv by option", "json records"):
        pytest.skip("options are for all files")
    (tmp_path / f"1{name}").write_bytes(content)
    mark, point = options.get("sep", ","), options.get("decimal", ".")
    (tmp_path / "2.csv").write_text(f"p{mark}y{mark}n\n0{point}5{mark}1{mark}4\n")
    pq.write_table(pa.table({"n": [4.0], "p": [True], "y": [1]}), tmp_path / "3.parquet")
    paths = [tmp_path / f"1{name}", tmp_path / "2.csv", tmp_path / "3.parquet"]
    found = numbers(paths, "y", "p", **options)
    assert same_numbers(found["y"], [*COLUMNS["y"], 1, 1])
    assert same_numbers(found["p"], [*COLUMNS["p"], 0.5, 1])
    assert values(paths, "n", **options)["n"] == ["4", "12", "4", "4", "4"]


# Text


CELL = st.text(st.sampled_from("a0 '\",;\t\n\r#\\\u00e9"), max_size=5)
TABLE = st.integers(2, 4).flatmap(
    lambda columns: st.lists(st.lists(CELL, min_size=columns, max_size=columns), min_size=1, max_size=6)
)  # fmt: skip


@given(table=TABLE, mark=st.sampled_from(",;\t|"), end=st.sampled_from(["\n", "\r\n", "\r"]))
@example([["a", "b"], ["", ""], ["\n", '"']], ",", "\n")
def test_cells_equal_those_of_the_csv_module(table: list[list[str]], mark: str, end: str) -> None:
    names = [f"{k}" for k in range(len(table[0]))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        with path.open("w", newline="", encoding="utf-8") as out:
            csv.writer(out, delimiter=mark, lineterminator=end).writerows([names, *table])
        with path.open(newline="", encoding="utf-8") as text:  # it does not quote each \\r
            _, *rows = (row for row in csv.reader(text, delimiter=mark, strict=True) if row)
        assume(all(len(row) == len(names) for row in rows))
        found = values(path, *names, sep=mark)
    expected = [[cell or None for cell in column] for column in zip(*rows, strict=True)]
    assert list(found.values()) == expected


@settings(max_examples=30)
@given(names=st.lists(CELL.filter(bool), min_size=2, max_size=5, unique=True))
def test_columns_may_have_any_name(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        row = {name: k for k, name in enumerate(names)}
        with (path / "a.csv").open("w", newline="", encoding="utf-8") as out:
            csv.writer(out, quoting=csv.QUOTE_ALL).writerows([names, range(len(names))])
        (path / "b.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
        pq.write_table(pa.table({name: [k] for name, k in row.items()}), path / "c.parquet")
        found = numbers(sorted(path.iterdir()), *names)
    assert found == {name: [k] * 3 for name, k in row.items()}


def test_blank_line_of_one_column_is_not_a_row(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text('p\n0.5\n\n""\n1\n')
    assert values(tmp_path / "x.csv", "p") == {"p": ["0.5", None, "1"]}


NUMBERS = [
    ("1e-3", 0.001), (" 0.5 ", 0.5), ("+1", 1), (".5", 0.5), ("true", 1), ("False", 0), ("TRUE", 1),
    ("", None), ("NA", None), ("nan", math.nan), ("1_000", "refused"), ("0x1", "refused"),
    ("yes", "refused"), ("t", "refused"), ("1 2", "refused"), ("1,5", "refused"), ("half", "refused"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "number"), NUMBERS)
def test_text_of_numbers(tmp_path: Path, text: str, number: Any) -> None:
    (tmp_path / "x.csv").write_text(f'p,s\n1,a\n"{text}",a\n')
    if number == "refused":
        with pytest.raises(sc.InputError, match=r"p must hold numbers: .*x.csv', 2\)"):
            numbers(tmp_path / "x.csv", "p")
    else:
        assert same_numbers(
            numbers(tmp_path / "x.csv", "p")["p"], [1, number if number == number else None]
        )


def test_percent_signs_and_decimal_commas(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("p;s\n50,5 %;a\n7;a\n")
    found = numbers(tmp_path / "a.csv", "p", as_="percent", sep=";", decimal=",")
    assert found == {"p": [50.5, 7]}
    (tmp_path / "a.jsonl").write_text('{"p": "50.5%"}\n{"p": 7}\n')
    assert numbers(tmp_path / "a.jsonl", "p", as_="percent") == found
    (tmp_path / "a.csv").write_text("p;s\n0.5;a\n")
    with pytest.raises(sc.InputError, match="p must hold numbers"):
        numbers(tmp_path / "a.csv", "p", sep=";", decimal=",")


def test_error_in_a_stream_of_batches_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("y,p\n" + "1,2\n" * 300_000 + "1\n")
    source = source_of(path)

    def rows() -> int:
        return sum(batch.num_rows for batch in batches(source.frame([Use("y", "number")]), 1 << 16))

    with pytest.raises(sc.InputError, match="row 300001 has 1 cell"):
        answered(source.con, rows)
    path.write_text("y,p\n" + "1,2\n" * 300_000 + "1,2\r\n")
    source = source_of(path)
    assert answered(source.con, rows) == 300_001


# Refusals: the rule, the file, the place, and the remedy


OBJECT = b'{"y": 1, "s": "' + b"x" * 1_000 + b'"}\n'
HEX = random.Random(0).randbytes(9_000).hex().encode()  # noqa: S311
LONG = b'"' + b"a" * 70_000_000 + b'"'
REFUSED: list[tuple[str, bytes, dict[str, str], str]] = [
    ("x.csv", b"", {}, "no line of column names"),
    ("x.csv", b"\n\n", {}, "no line of column names"),
    ("x.csv", b"y,p\n1,2\n3\n", {}, "x.csv must have 2 cells.* row 2 has 1 cell. Fix"),
    ("x.csv", b"y,p\n" + 9_000 * b"1,2\n" + b"1,2,3\n", {}, "row 9001 has 3 cells. Fix"),
    ("x.csv", b"y,p\n1,2\n3,\xff\n", {}, 'UTF-8.* Pass Files\\(..., encoding="latin-1"\\)'),
    ("x.csv", "y,p\n1,2\n".encode("utf-16"), {}, 'Pass Files\\(..., encoding="utf-16"\\)'),
    ("x.csv", "y,p\n1,é\n".encode(), {"encoding": "ascii"}, "not text in ascii"),
    ("x.csv", b"y,p\n1," + b"a" * 70_000_000 + b"\n3,4\n", {}, "at most 64 MB: line 2.* Parquet"),
    ("x.csv", b"y,p\n1," + LONG + b"\n", {}, "at most 64 MB: line 2.* Parquet"),
    ("x.csv", b"y,p\n1,a\0b\n", {}, "byte 0"),
    ("x.csv", b"q,p\n1,2\n", {}, "x.csv has no column 'y'.* 'q', 'p'"),
    ("x.csv", b"y,p,y\n1,2,3\n", {}, "more than one column 'y'. Rename one"),
    ("x.csv", b"y;p\n1;2\n", {}, 'separated by semicolons, not commas. Pass Files\\(..., sep=";"\\)'),
    ("x.csv", b"y,p\n1,2\n", {"decimal": ","}, "separate the cells too"),
    ("x.csv", b"sep=;\ny;p\n1;2\n", {"sep": ","}, "first line names ';'"),
    ("x.csv", b"y,p\n1,2\n", {"format": "parquet"}, "content is not parquet"),
    ("x.csv", b"y,p\n1,2\n", {"records": "a"}, "not a JSON document.* Leave"),
    ("x.csv.gz", gzip.compress(b"y,p\n" + HEX)[:2_000], {}, "cannot read"),
    ("x.gz", gzip.compress(as_parquet(pa.table(COLUMNS))), {}, "only text may be compressed"),
    ("x.zip", b"PK\x03\x04" + bytes(40), {}, "a zip archive. Unzip"),
    ("x.jsonl", b'{"y": 1}\n{"y": 1\n', {}, "x.jsonl: line 2 must be one object"),
    ("x.jsonl", OBJECT * 5_000 + b"\nnull\n", {}, "x.jsonl: line 5002 must be one object"),
    ("x.jsonl", b'{"y": 1}\n[1]\n', {}, "x.jsonl: line 2 must be one object"),
    ("x.jsonl", b'{"y": 1}\n{"y": 1, "y": 2}\n', {}, "line 2.* 'y' occurs twice"),
    ("x.jsonl", b'{"y": "\xff"}\n', {}, 'Pass Files\\(..., encoding="latin-1"\\)'),
    ("x.jsonl", b'{"y": 1}\n{"y": ' + b"[" * 10**5 + b"]" * 10**5 + b"}\n", {}, "nested too deep"),
    ("x.jsonl", b'{"p": 1}\n', {}, "x.jsonl has no column 'y'"),
    ("x.json", b'[{"y": 1}, 3]', {}, "must be an array of objects"),
    ("x.json", b'[{"y": 1}', {}, "Expecting"),
    ("x.json", b'[{"y": 1, "y": 2}]', {}, "'y' occurs twice"),
    ("x.json", b'{"y": [1, 2], "p": [1]}', {}, "one length: 'p' has 1, 'y' has 2"),
    ("x.json", b'{"v": 1,\n"r": {"s": [{"y": 1}]}}', {}, "lists of records: 'r.s'.* records=\"r.s\""),
    ("x.json", b'{"v": 1, "r": {"s": [{"y": 1}]}}', {}, "lists of records: 'r.s'.* records=\"r.s\""),
    ("x.json", b'{"r": {"s": [{"y": 1}]}}', {"records": "r.t"}, "no list of records at 'r.t'.* 'r.s'"),
    ("x.json", b'[{"a": ' + b"[" * 10**5 + b"]" * 10**5 + b"}]", {}, "nested too deep"),
    ("x.json", b"[" + b'{"y":1},' * 9_000_000 + b'{"y":1}]', {}, "at most 64 MB.* per line"),
    ("x.arrow", as_arrow(pa.ipc.new_stream)[:-8], {}, "end mark"),
    ("x.arrow", as_arrow(pa.ipc.new_stream) * 2, {}, "end mark"),
    ("x.xlsx", SHEET[: len(SHEET) // 2], {}, "not an Excel workbook"),
    ("x.xlsx", as_workbook([]), {}, "sheet is empty"),
    ("x.xlsx", SHEET, {"sheet": "On"}, "no sheet 'On'. Did you mean 'one'"),
    ("x.parquet", as_parquet(pa.table(COLUMNS))[:-20], {}, "cannot read"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "options", "rule"), REFUSED)
def test_file_is_refused_with_rule_place_and_remedy(
    tmp_path: Path, name: str, content: bytes, options: dict[str, str], rule: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(sc.InputError, match=rule) as found:
        values(tmp_path / name, "y", **options)
    assert name in str(found.value)
    assert "\n" not in str(found.value)
    assert len(str(found.value)) < 1_000


@pytest.mark.parametrize("kind", ["parquet", "arrow file", "arrow stream", "excel", "csv, gzip"])
def test_damaged_file_is_read_or_refused_and_never_crashes(tmp_path: Path, kind: str) -> None:
    name, content, _ = FORMATS[kind]
    draw = random.Random(0)  # noqa: S311
    for _ in range(40):
        damaged = bytearray(content)
        for _ in range(draw.randrange(1, 4)):
            damaged[draw.randrange(8, len(damaged))] = draw.randrange(256)
        path = tmp_path / name
        path.write_bytes(damaged)
        try:
            numbers(path, "y", "p")
            values(path, "name")
        except sc.InputError as error:
            assert "\n" not in str(error)  # noqa: PT017


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "zst": lambda text: pa.compress(text, "zstd", asbytes=True),
    "bz2": bz2.compress,
}


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_truncated_compressed_file_is_refused(tmp_path: Path, name: str, kind: str) -> None:
    draw = random.Random(0)  # noqa: S311
    each = "{},{}\n" if name == "a.csv" else '{{"y": {}, "p": {}}}\n'
    rows = "".join(each.format(draw.random(), draw.random()) for _ in range(100_000))
    packed = PACKED[kind]((("y,p\n" if name == "a.csv" else "") + rows).encode())
    for end in (len(packed) // 2, len(packed) - 4):
        (tmp_path / f"{name}.{kind}").write_bytes(packed[:end])
        with pytest.raises(sc.InputError, match="cannot read"):
            values(tmp_path / f"{name}.{kind}", "y")


def test_unsupported_text_in_parquet_is_refused(tmp_path: Path) -> None:
    bad = pa.array([b"a", b"\xff"]).view(pa.string())
    pq.write_table(pa.table({"s": bad}), tmp_path / "x.parquet")
    with pytest.raises(sc.InputError, match=r"cannot read .*x\.parquet.*UTF-?8"):
        values(tmp_path / "x.parquet", "s")


def test_saved_set_is_not_read_as_rows(tmp_path: Path) -> None:
    rows = pa.table({"y": [0.5], "p": [0.5]})
    sc.scan(rows, y_true="y", y_prob="p").save(tmp_path / "a.softcal")
    with pytest.raises(sc.InputError, match=r"saved set: use softcal\.load"):
        values(tmp_path / "a.softcal", "y")


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, name: str) -> None:
    path, content = tmp_path / name, {"a.csv": as_csv(), "a.jsonl": LINES}.get(name, "")
    path.write_bytes(content.encode() or as_parquet(pa.table(COLUMNS)))
    source = source_of(path)
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(sc.InputError, match=r"changed while it was being read|cannot read"):
        ask(source, [Use("y", "value")])


# Several files


def test_columns_in_another_order_are_matched_by_name(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("y,p\n1,2\n")
    (tmp_path / "2.csv").write_text("p,other,y\n4,x,3\n")
    assert values(tmp_path, "y", "p") == {"y": ["1", "3"], "p": ["2", "4"]}


@pytest.mark.parametrize(
    ("name", "content", "rule"),
    [
        ("2.csv", b"p,other\n4,5\n", "2.csv has no column 'y'"),
        ("2.csv", b"p,y,y\n4,5,6\n", "2.csv has more than one column 'y'"),
        ("2.jsonl", b'{"p": 1}\n', "2.jsonl has no column 'y'"),
        ("2.jsonl", b'{"p": 1, "y": [1]}\n', "y must hold lists in all files, or in none"),
        ("2.csv", b"y,p\n1,2\n3\n", "every row of 2.csv .* row 2"),
        ("2.csv", b'y,p\n1,2\n3,"\n', "2.csv: a cell that opens .* line 3"),
    ],
)
def test_file_without_a_used_column_is_named(
    tmp_path: Path, name: str, content: bytes, rule: str
) -> None:
    (tmp_path / "1.csv").write_text("y,p\n1,2\n")
    (tmp_path / name).write_bytes(content)
    if b"no column" in rule.encode():
        assert len(values(tmp_path, "p")["p"]) == 2
    with pytest.raises((sc.InputError, sc.InputTypeError), match=rule):
        values(tmp_path, "y", "p")


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_many_files_are_read_by_one_query(tmp_path: Path, kind: str) -> None:
    for k in range(200):
        rows = {"y": [k / 200], "p": [0.5]}
        path = tmp_path / f"{k:03}.{kind}"
        if kind == "parquet":
            pq.write_table(pa.table(rows), path)
        else:
            path.write_text(f"y,p\n{k / 200},0.5\n" if kind == "csv" else f'{{"y": {k / 200}}}\n')
    source = source_of(tmp_path)
    assert len(source._joined) == 1
    assert numbers(tmp_path, "y") == {"y": [k / 200 for k in range(200)]}
    assert list(map(float, values(tmp_path, "y")["y"])) == [k / 200 for k in range(200)]
    assert source.files == [str(path) for path in sorted(tmp_path.iterdir())]
    found = ask(source, [Use("y", "number")], numbered=True)
    assert found[AT] == [(k << ROW_BITS) + 1 for k in range(200)]


def test_rows_of_several_files_are_numbered_within_each(tmp_path: Path) -> None:
    for name, rows in (("1.csv", 3), ("2's.csv", 0), ("3.csv", 2), ("5.csv", 1), ("6.csv", 2)):
        (tmp_path / name).write_text("y,p\n" + "1,2\n" * rows)
    (tmp_path / "4.jsonl").write_text('{"y": 1}\n' * 2)
    found = ask(source_of(tmp_path), [Use("y", "number")], numbered=True)
    places = [(at >> ROW_BITS, at % (1 << ROW_BITS)) for at in found[AT]]
    assert places == [
        (0, 1),
        (0, 2),
        (0, 3),
        (2, 1),
        (2, 2),
        (3, 1),
        (3, 2),
        (4, 1),
        (5, 1),
        (5, 2),
    ]


def test_parquet_files_of_other_types_are_not_rounded(tmp_path: Path) -> None:
    pq.write_table(pa.table({"y": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"y": [0.5]}), tmp_path / "2.parquet")
    pq.write_table(pa.table({"y": [True]}), tmp_path / "3.parquet")
    assert values(tmp_path, "y") == {"y": [1, 0.5, 1]}


def test_columns_that_differ_by_case_are_read(tmp_path: Path) -> None:
    table = {"y": [1.0], "Y": [2.0], "y_1": [3.0]}
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    (tmp_path / "b.jsonl").write_text('{"y": 1, "Y": 2, "y_1": 3}\n')
    (tmp_path / "c.csv").write_text("y,Y,y_1\n1,2,3\n")
    for path in tmp_path.iterdir():
        assert numbers(path, "Y", "y", "y_1") == {"Y": [2], "y": [1], "y_1": [3]}


@pytest.mark.parametrize(
    "name",
    [
        "it's.csv",
        "a[b].csv",
        "a*.csv",
        "a?.csv",
        "a\nb.csv",
        "a\\b.csv",
        "é ü.csv",
        "{}.csv",
        "%s.csv",
    ],
)
def test_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("y,p\n1,2\n")
    (tmp_path / "ab.csv").write_text("y,p\n3,4\n")
    assert values(tmp_path / name, "y") == {"y": ["1"]}
    (tmp_path / "ab.csv").unlink()
    (tmp_path / name).write_text("y,p\n1,2\r\n3,4\n")
    assert values(tmp_path, "y") == {"y": ["1", "3"]}


def test_folders_of_partitions_are_columns(tmp_path: Path) -> None:
    days = ["2026-01-01", "__HIVE_DEFAULT_PARTITION__", "a b"]  # in the order of names
    for k, day in enumerate(days):
        folder = tmp_path / f"day={quote(day)}" / "y=none"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"p": [k / 4]}), folder / "part-0.parquet")
    assert values(tmp_path, "p", "day") == {"p": [0.0, 0.25, 0.5], "day": [days[0], None, days[2]]}
    (tmp_path / "day=x" / "y=1").mkdir(parents=True)
    pq.write_table(pa.table({"p": [1.0], "y": [2]}), tmp_path / "day=x" / "y=1" / "a.parquet")
    assert values(tmp_path / "day=x", "p", "y") == {"p": [1.0], "y": [2]}  # its own column


# JSON


def test_nested_values_are_columns_with_dotted_names(tmp_path: Path) -> None:
    rows = [
        {"id": 1, "r": {"c": 0.5, "l": [1, 0.5], "x": {"y": "a"}}, "a.b": 1, "a": {"b": None}},
        {"id": 12345678901234567890, "r": {"c": "0.5"}, "a": {"b": 2}, "r.c": None},
        {},
    ]
    lines, document = tmp_path / "a.jsonl", tmp_path / "a.json"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    document.write_text(json.dumps({"all": rows}))
    for path, options in ((lines, {}), (document, {"records": "all"})):
        found = values(path, "id", "r.c", "r.l", "r.x.y", "a.b", **options)
        assert found["id"] == ["1", "12345678901234567890", None]
        assert found["r.c"] == ["0.5", "0.5", None]
        assert found["r.l"] == [[1, 0.5], None, None]
        assert found["r.x.y"] == ["a", None, None]
        assert found["a.b"] == ["1", "2", None]
        assert numbers(path, "r.c", **options)["r.c"] == [0.5, 0.5, None]


@pytest.mark.parametrize("bad", ["3", '["x"]', '[{"a": 1}]'])
def test_list_of_something_else_is_refused(tmp_path: Path, bad: str) -> None:
    (tmp_path / "a.jsonl").write_text(f'{{"l": [1, 0.5]}}\n{{"l": {bad}}}\n')
    with pytest.raises(sc.InputTypeError, match=r"lists of a\.jsonl must hold real numbers"):
        values(tmp_path / "a.jsonl", "l")


def test_late_keys_and_tokens_of_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    long = json.dumps({"y": 1, "s": "x" * 100_000}) + "\n"
    path.write_text(long * 50 + '{"y": NaN, "late": {"p": -Infinity}, "l": [1]}\n')
    assert numbers(path, "late.p")["late.p"][-1] == -math.inf
    assert math.isnan(numbers(path, "y")["y"][-1])
    assert values(path, "l")["l"][-1] == [1]
    with pytest.raises(sc.InputError, match=r"no column 'late\.q'"):
        values(path, "late.q")


def test_duplicate_names_of_a_sheet_are_refused_if_used(tmp_path: Path) -> None:
    write_workbook(tmp_path / "a.xlsx", {"one": [["y", "p", "y"], [1, 2, 3], [True, "half", None]]})
    assert values(tmp_path / "a.xlsx", "p") == {"p": ["2", "half"]}
    with pytest.raises(sc.InputError, match="more than one column 'y'"):
        values(tmp_path / "a.xlsx", "y")
    with pytest.raises(sc.InputError, match=r"p must hold numbers: 'half' .*, 2\)"):
        numbers(tmp_path / "a.xlsx", "p")


# Other machines, and pipes


@pytest.fixture
def store() -> Any:
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    yield system
    system.rm("/softcal", recursive=True)


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_is_read_from_an_object_store(store: Any, kind: str) -> None:
    name, content, options = FORMATS[kind]
    address = f"memory://softcal/{name}"
    with store.open(address, "wb") as file:
        file.write(content)
    found = numbers(address, "y", **options)
    assert same_numbers(found["y"], COLUMNS["y"])
    assert values(address, "name", **options)["name"] == COLUMNS["name"]


def test_folders_patterns_and_errors_of_an_object_store(store: Any) -> None:
    for k in range(3):
        with store.open(f"memory://softcal/{k}.csv", "wb") as file:
            file.write(b"y,p\n%d,2\n" % k)
    for place in (
        "memory://softcal",
        "memory://softcal/*.csv",
        [f"memory://softcal/{k}.csv" for k in range(3)],
    ):
        assert values(place, "y") == {"y": ["0", "1", "2"]}
    with store.open("memory://softcal/1.csv", "wb") as file:
        file.write(b"y,p\n1\n")
    with pytest.raises(sc.InputError, match=r"1\.csv must have 2 cells"):
        values("memory://softcal", "y")
    with pytest.raises(sc.InputError, match=r"no data in memory://softcal/none\.csv"):
        values("memory://softcal/none.csv", "y")
    with pytest.raises(sc.InputError, match=r"nosuchscheme://a.csv: .* Install them, or copy"):
        values("nosuchscheme://a.csv", "y")


def test_addresses_are_refused_without_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(sc.InputError, match=r"s3://bucket/a\.csv: .* Install"):
        values("s3://bucket/a.csv", "y")


def test_pipe_is_read_under_its_name() -> None:
    read, write = os.pipe()
    os.write(write, b"y,p\n1,2\n3\n")
    os.close(write)
    source = source_of(f"/dev/fd/{read}")
    os.close(read)
    assert source.files == [f"pipe {read}"]
    with pytest.raises(sc.InputError, match=f"every row of pipe {read} .* row 2"):
        ask(source, [Use("y", "value")])
