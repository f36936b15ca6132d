"""Text files that are not as ours are: refused with a guess at what they are, never guessed at."""

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
from softcal import cli

if TYPE_CHECKING:
    from pathlib import Path

LATIN = "must be text in UTF-8, and looks like LATIN1. Save it again as UTF-8 (in a shell, iconv -f"
UTF_16 = (
    "must be text in UTF-8, and looks like UTF-16. Save it again as UTF-8 (in a shell, iconv -f"
)
SEMICOLONS = (
    "look separated by semicolons, not commas. Save it with commas, and decimals with a point"
)

SCORED = [
    ("x.csv", b"y;p\n0.5;0.5\n", f"Its columns are: 'y;p'. They {SEMICOLONS}"),
    ("x.csv", b"y;p;a,b\n0,5;0,5;1\n", SEMICOLONS),
    ("x.csv", b"y|p\n0.5|0.5\n", "separated by bars, not commas"),
    ("x.csv", b"y\tp\n0.5\t0.5\n", "separated by tabs, not commas. Let its name end in .tsv."),
    ("x.tsv", b"y,p\n0.5,0.5\n", "separated by commas, not tabs. Let its name end in .csv."),
    ("x.csv", b"q,r\n0.5,0.5\n", "Its columns are: 'q', 'r'.\n"),
    ("x.csv", b'y,p\n"0,5","0,5"\n', "holds the text '0,5'. Write decimals with a point."),
    ("x.csv", b"y,p\nhalf,0.5\n", "holds the text 'half'.\n"),
    ("x.csv", "y,p\n0.5,0.5\n".encode("utf-16"), UTF_16),
    ("x.csv", "y,p\n0.5,0.5\n".encode("utf-16-be"), UTF_16),
    ("x.jsonl", '{"y": 0.5, "p": 0.5}\n'.encode("utf-16"), UTF_16),
    ("x.csv", "y,p,größe\n0.5,0.5,1\n".encode("latin1"), LATIN),
    ("x.csv", "y,p,by\n0.5,0.5,Köln\n".encode("latin1"), LATIN),
    ("x.jsonl", '{"y": 0.5, "p": 0.5, "by": "Köln"}\n'.encode("latin1"), LATIN),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "message"), SCORED)
def test_the_message_says_what_it_looks_like(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    by = ["--by", "by"] if b"by" in content else []
    assert cli.run(["score", str(path), "--label", "y", "--pred", "p", *by]) == 2
    assert message in capsys.readouterr().err


OTHERWISE = [
    (b"y;p\n0.5;0.5\n", f"They {SEMICOLONS}"),
    ("y,p\n0.5,0.5\n".encode("utf-16"), UTF_16),
    ("y,p,größe\n0.5,0.5,1\n".encode("latin1"), LATIN),
    (gzip.compress(b"y,p\n0.5,0.5\n"), "it holds gzip, though its name says .csv."),
]


@pytest.mark.parametrize(("content", "message"), OTHERWISE)
def test_so_does_that_of_every_command_that_reads_text_its_own_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, message: str
) -> None:
    path, saved, out = (tmp_path / name for name in ("x.csv", "map.json", "out.csv"))
    path.write_bytes(content)
    saved.write_text(
        json.dumps(sc.calibrators.TemperatureCalibrator().fit([0.2, 0.8], [0.3, 0.7]).to_dict())
    )
    guess = message.partition("They ")[2] or message
    assert cli.run(["apply", str(saved), str(path), "--pred", "p", "-o", str(out)]) == 2
    assert guess in capsys.readouterr().err
    assert not out.exists()
    columns = ["--label-columns", "y,p", "--pred-columns", "y,p"]
    assert cli.run(["score", str(path), *columns]) == 2
    assert guess in capsys.readouterr().err


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


CONTENTS = {
    "a Parquet file": (_arrow("parquet"), "Let its name end in .parquet."),
    "an Arrow file": (_arrow("file"), "Let its name end in .arrow, or save it as Parquet."),
    "an Arrow stream": (_arrow("stream"), "Let its name end in .arrow, or save it as Parquet."),
    "a Feather file of version 1": (b"FEA1" + bytes(20), "Save it again as Parquet."),
    "a workbook of Excel or LibreOffice": (
        _zipped("[Content_Types].xml", "xl/workbook.xml"), "Save the sheet as CSV in UTF-8.",
    ),
    "an old workbook of Excel (.xls)": (
        bytes.fromhex("D0CF11E0A1B11AE1") + bytes(500), "Save the sheet as CSV in UTF-8.",
    ),
    "a zip archive": (_zipped("data.csv"), "Unzip it first."),
    "gzip": (gzip.compress(TEXT), "Let its name end in .csv.gz, or decompress it."),
    "bzip2": (bz2.compress(TEXT), "Let its name end in .csv.bz2, or decompress it."),
    "Zstandard": (
        pa.compress(TEXT, "zstd", asbytes=True), "Let its name end in .csv.zst, or decompress it.",
    ),
    "xz": (lzma.compress(TEXT), "Decompress it first."),
}  # fmt: skip


@pytest.mark.parametrize("kind", CONTENTS)
@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.jsonl", "x.csv.gz"])
def test_content_of_another_kind_is_named_with_its_remedy(
    tmp_path: Path, kind: str, name: str
) -> None:
    content, remedy = CONTENTS[kind]
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    said = re.escape(f"it holds {kind}, though its name says {'.' + name.split('.')[1]}. {remedy}")
    with pytest.raises(sc.InputError, match=rf"^cannot read .*{name}: {said}$"):
        sc.scan(path, y_true="y", y_prob="p")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("x.parquet", "an Arrow file"),
        ("x.pq", "gzip"),
        ("x.arrow", "a Parquet file"),
        ("x.feather", "a Feather file of version 1"),
    ],
)
def test_binary_files_of_another_kind_are_named_too(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / name
    path.write_bytes(CONTENTS[kind][0])
    with pytest.raises(sc.InputError, match=f"it holds {kind}, though its name says {path.suffix}"):
        sc.scan(path, y_true="y", y_prob="p")


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "x.csv.gz", "x.csv.zst"])
def test_text_with_the_name_of_another_kind_is_called_text(
    tmp_path: Path, name: str, start: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(start + TEXT)
    said = f"it holds text, though its name says {path.suffix}. Let its name end in .csv"
    with pytest.raises(sc.InputError, match=re.escape(said)):
        sc.scan(path, y_true="y", y_prob="p")


def test_files_that_are_what_their_names_say_are_read(tmp_path: Path) -> None:
    contents = {
        "a.csv": TEXT,
        "a.csv.gz": gzip.compress(TEXT),
        "a.csv.bz2": bz2.compress(TEXT),
        "a.csv.zst": pa.compress(TEXT, "zstd", asbytes=True),
        "a.parquet": _arrow("parquet"),
        "a.pq": _arrow("parquet"),
        "a.arrow": _arrow("file"),
        "a.ipc": _arrow("stream"),
        "a.feather": _arrow("file"),
        "names.csv": b"PAR1,ARROW1,BZh9,PK,FEA1,y,p\n1,1,1,1,1,0.5,0.5\n",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        assert sc.scan(tmp_path / name, y_true="y", y_prob="p").smece == 0


@pytest.mark.parametrize("mark", [b"SQLite format 3\0", b"\x93NUMPY\x01\0v\0", b"y,p\n0.5,\0"])
def test_a_file_with_a_byte_0_is_not_called_utf_16(tmp_path: Path, mark: bytes) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(mark + b"text" * 20)
    with pytest.raises(sc.InputError, match="has a byte 0, which no text has"):
        sc.scan(path, y_true="y", y_prob="p")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_told_with_or_without_its_mark(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes("y,p,имя\n0.5,0.5,имя\n".encode(encoding))
    with pytest.raises(sc.InputError, match="looks like UTF-16"):
        sc.scan(path, y_true="y", y_prob="p")


def test_a_name_with_a_semicolon_is_a_name(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("y;1,p;2\n0.5,0.75\n")
    assert sc.scan(path, y_true="y;1", y_prob="p;2").smece == 0.25


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
def test_lines_may_be_longer_than_a_block(tmp_path: Path, name: str) -> None:
    path, text = tmp_path / name, "a" * 5_000_000
    if name == "x.csv":
        path.write_text(f"y,p,text\n0.5,0.75,{text}\n0.5,0.75,{text}\n")
    else:
        path.write_text(2 * (json.dumps({"y": 0.5, "p": 0.75, "text": text}) + "\n"))
    rel = sc.scan(path, y_true="y", y_prob="p")
    assert (rel.n, rel.smece) == (2, 0.25)
