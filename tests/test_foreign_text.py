"""Text files that are not as ours are: refused with a guess at what they are, never guessed at."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

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
]


@pytest.mark.parametrize(("content", "message"), OTHERWISE)
def test_so_does_that_of_every_command_that_reads_text_its_own_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, message: str
) -> None:
    path, saved, out = (tmp_path / name for name in ("x.csv", "map.json", "out.csv"))
    path.write_bytes(content)
    saved.write_text(json.dumps(sc.Temperature().fit([0.2, 0.8], [0.3, 0.7]).to_dict()))
    guess = message.partition("They ")[2] or message
    assert cli.run(["apply", str(saved), str(path), "--pred", "p", "-o", str(out)]) == 2
    assert guess in capsys.readouterr().err
    assert not out.exists()
    columns = ["--label-columns", "y,p", "--pred-columns", "y,p"]
    assert cli.run(["score", str(path), *columns]) == 2
    assert guess in capsys.readouterr().err


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
