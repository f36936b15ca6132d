"""The content of a file decides how it is read; unreadable files are refused with a remedy."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import re
import zipfile
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import softcal as sc
from softcal.table import files as table_files

if TYPE_CHECKING:
    from pathlib import Path

LATIN = 'must be text in UTF-8, and looks like latin-1. Pass Files(..., encoding="latin-1"), or save it again'
UTF_16 = 'must be text in UTF-8, and looks like utf-16. Pass Files(..., encoding="utf-16"), or save it again'
UTF_16_BE = (
    'looks like utf-16-be. Pass Files(..., encoding="utf-16-be"), or save it again as UTF-8.'
)
SEMICOLONS = 'look separated by semicolons, not commas. Pass Files(..., sep=";").'

SCORED = [
    ("x.csv", b"y;p\n0.5;0.5\n", f"Its columns are: 'y;p'. They {SEMICOLONS}"),
    ("x.csv", b"y;p;a,b\n0,5;0,5;1\n", SEMICOLONS),
    ("x.csv", b"y|p\n0.5|0.5\n", "separated by bars, not commas"),
    ("x.csv", b"y\tp\n0.5\t0.5\n", "separated by tabs, not commas. Pass Files(..., sep=\"tab\")."),
    ("x.tsv", b"y,p\n0.5,0.5\n", "separated by commas, not tabs. Pass Files(..., sep=\",\")."),
    ("x.csv", b"q,r\n0.5,0.5\n", "Its columns are: 'q', 'r'.\n"),
    ("x.csv", b'y,p\n"0,5","0,5"\n', ". If the comma starts the decimals, pass Files(..., decimal=\",\")."),
    ("x.csv", b"y,p\nhalf,0.5\n", "that counts as 1: y_true=Column(..., positive=\"half\").\n"),
    ("x.csv", "y,p\n0.5,0.5\n".encode("utf-16"), UTF_16),
    ("x.csv", "y,p\n0.5,0.5\n".encode("utf-16-be"), UTF_16_BE),
    ("x.jsonl", '{"y": 0.5, "p": 0.5}\n'.encode("utf-16"), UTF_16),
    ("x.csv", "y,p,größe\n0.5,0.5,1\n".encode("latin1"), LATIN),
    ("x.csv", "y,p,by\n0.5,0.5,Köln\n".encode("latin1"), LATIN),
    ("x.jsonl", '{"y": 0.5, "p": 0.5, "by": "Köln"}\n'.encode("latin1"), LATIN),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "message"), SCORED)
def test_message_names_the_likely_cause(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    by = ["by"] if b"by" in content else []
    with pytest.raises(sc.InputError) as caught:
        sc.scan(path, y_true="y", y_prob="p", by=by)
    assert message in f"{caught.value}\n"


TEXT = b"y,p,size\n0.5,0.5,1\n0.5,0.5,2\n"


def _arrow(kind: str) -> bytes:
    table, out = pa.table({"y": [0.5], "p": [0.5]}), io.BytesIO()
    if kind == "parquet":
        pq.write_table(table, out)
    else:
        new = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
        with new(out, table.schema) as writer:
            writer.write_table(table)
    return out.getvalue()


def _zipped(*names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, TEXT)
    return out.getvalue()


LINES = b'{"y": 0.5, "p": 0.5}\n{"y": 0.5, "p": 0.5}\n'
READ = {
    "Parquet": _arrow("parquet"),
    "an Arrow file": _arrow("file"),
    "an Arrow stream": _arrow("stream"),
    "text": TEXT,
    "text after a byte order mark": b"\xef\xbb\xbf" + TEXT,
    "text, gzip": gzip.compress(TEXT),
    "text, bzip2": bz2.compress(TEXT),
    "text, Zstandard": pa.compress(TEXT, "zstd", asbytes=True),
    "JSON lines": LINES,
    "JSON lines after blank ones": b"\n \n" + LINES,
    "JSON lines, gzip": gzip.compress(LINES),
    "names like the first bytes of others": (b"PAR1,ARROW1,BZh9,PK,FEA1,y,p\n1,1,1,1,1,0.5,0.5\n"),
}


@pytest.mark.parametrize(
    "name", ["x.csv", "x.parquet", "x.arrow", "x.jsonl", "x.csv.gz", "x", "x.d"]
)
@pytest.mark.parametrize("kind", READ)
def test_file_format_is_detected_by_content(tmp_path: Path, kind: str, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(READ[kind])
    assert sc.scan(path, y_true="y", y_prob="p")["p"].smece == 0


@pytest.mark.parametrize("name", ["x.tsv", "x.tsv.gz", "X.TSV"])
def test_tsv_suffix_means_tabs(tmp_path: Path, name: str) -> None:
    path, text = tmp_path / name, b"y\tp\n0.5\t0.5\n"
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    assert sc.scan(path, y_true="y", y_prob="p")["p"].smece == 0


REFUSED = {
    "a Feather file of version 1": (b"FEA1" + bytes(20), "Save it again as Parquet."),
    "a LibreOffice workbook": (
        _zipped("mimetype", "content.xml"), "Save the sheet as .xlsx, or as CSV in UTF-8.",
    ),
    "an old Excel workbook (.xls)": (
        bytes.fromhex("D0CF11E0A1B11AE1") + bytes(500), "Save the sheet as .xlsx, or as CSV in UTF-8.",
    ),
    "a zip archive": (_zipped("data.csv"), "Unzip it first."),
    "xz": (lzma.compress(TEXT), "Decompress it first."),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.csv.gz"])
def test_unsupported_content_is_named_with_its_remedy(tmp_path: Path, kind: str, name: str) -> None:
    content, remedy = REFUSED[kind]
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    said = re.escape(f"it holds {kind}. {remedy}")
    with pytest.raises(sc.InputError, match=rf"^cannot read .*{name}: {said}$"):
        sc.scan(path, y_true="y", y_prob="p")


@pytest.mark.parametrize("many", [1, 10**9])
def test_saved_set_is_not_read_as_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    monkeypatch.setattr(table_files, "MANY", many)
    (tmp_path / "rows.csv").write_bytes(TEXT)
    saved = tmp_path / "saved.parquet"
    sc.scan(tmp_path / "rows.csv", y_true="y", y_prob="p").save(saved)
    with pytest.raises(sc.InputError, match=r"this is a saved set: use softcal\.load\.$"):
        sc.scan(saved, y_true="y", y_prob="p")


@pytest.mark.parametrize("mark", [b"SQLite format 3\0", b"\x93NUMPY\x01\0v\0", b"y,p\n0.5,\0"])
def test_zero_byte_is_not_reported_as_utf_16(tmp_path: Path, mark: bytes) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(mark + b"text" * 20)
    with pytest.raises(sc.InputError, match="but has a byte 0"):
        sc.scan(path, y_true="y", y_prob="p")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_detected_with_or_without_bom(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes("y,p,имя\n0.5,0.5,имя\n".encode(encoding))
    with pytest.raises(sc.InputError, match=f'encoding="{encoding}"'):
        sc.scan(path, y_true="y", y_prob="p")


def test_column_name_may_contain_a_semicolon(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("y;1,p;2\n0.5,0.75\n")
    assert sc.scan(path, y_true="y;1", y_prob="p;2")["p;2"].smece == 0.25


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
def test_lines_may_be_longer_than_a_block(tmp_path: Path, name: str) -> None:
    path, text = tmp_path / name, "a" * 5_000_000
    if name == "x.csv":
        path.write_text(f"y,p,text\n0.5,0.75,{text}\n0.5,0.75,{text}\n")
    else:
        path.write_text(2 * (json.dumps({"y": 0.5, "p": 0.75, "text": text}) + "\n"))
    tables = sc.scan(path, y_true="y", y_prob="p")
    assert (tables.n, tables["p"].smece) == (2, 0.25)


def test_json_lines_may_hold_many_short_lists(tmp_path: Path) -> None:
    path, pairs = tmp_path / "x.jsonl", [[[k], [k]] for k in range(200)]
    path.write_text(3 * (json.dumps({"y": 0.5, "p": 0.75, "pairs": pairs, "t": 200 * "["}) + "\n"))
    assert sc.scan(path, y_true="y", y_prob="p").n == 3


def test_an_arrow_stream_without_its_end_is_refused(tmp_path: Path) -> None:
    table, out, ends = pa.table({"y": 8 * [0.5], "p": 8 * [0.5]}), io.BytesIO(), [0]
    with pa.ipc.new_stream(out, table.schema) as writer:
        for batch in table.to_batches(2):
            writer.write_batch(batch)
            ends.append(out.tell())
    whole, path = out.getvalue(), tmp_path / "x.arrow"
    for end in (*ends[1:], ends[1] + 8, len(whole) - 4):
        path.write_bytes(whole[:end])
        with pytest.raises(sc.InputError, match="cannot read"):
            sc.scan(path, y_true="y", y_prob="p")
    path.write_bytes(whole[: ends[2]])
    with pytest.raises(sc.InputError, match="end mark"):
        sc.scan(path, y_true="y", y_prob="p")
    path.write_bytes(2 * whole)
    with pytest.raises(sc.InputError, match="end mark"):
        sc.scan(path, y_true="y", y_prob="p")
    path.write_bytes(whole)
    assert sc.scan(path, y_true="y", y_prob="p").n == 8


@pytest.mark.parametrize("kind", ["gzip", "bzip2", "Zstandard"])
def test_every_part_of_a_compressed_file_is_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(READ[f"text, {kind}"] + READ[f"text, {kind}"])
    with pytest.raises(sc.InputError, match=r"p must hold numbers: 1 of 5 .*x\.csv, row 3"):
        sc.scan(path, y_true="y", y_prob="p")
