"""Small files that ask for much memory or time are refused with one line, under limits of both."""

from __future__ import annotations

import gzip
import json
import re
import resource
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from command_line import softcal_here

import softcal as sc
from workbooks import write_workbook

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MEMORY = 3 << 30  # of addresses, of which DuckDB reserves more than 1 GB before it reads
SECONDS = 40  # of the processor
SIZE = 7 << 20
ROWS = b"1,0.5\n0,0.25\n"


def limited(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command with limits for memory and time."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))

    return subprocess.run(  # noqa: S603
        [sys.executable, "-m", "softcal", *map(str, arguments)],
        capture_output=True, text=True, check=False, timeout=300, preexec_fn=limit,
    )  # fmt: skip


def repeated(start: bytes, each: bytes, end: bytes, size: int = 3 << 30) -> bytes:
    """Return gzip members of a text with a long middle; members may be concatenated."""
    some = gzip.compress(each * ((1 << 24) // len(each)))
    return gzip.compress(start) + some * (size >> 24) + gzip.compress(end)


def wide(count: int) -> str:
    return ",".join(["y", "p", *(f"c{k}" for k in range(count))]) + "\n"


def objects(count: int) -> list[dict[str, float]]:
    """Return rows with different keys, so that their table has count x count cells."""
    return [{"y": 1, "p": 0.5, f"c{k}": 0} for k in range(count)]


def workbook(path: Path, old: bytes, new: bytes) -> None:
    """Write a workbook of one row, with a part of its sheet replaced."""
    plain = path.with_suffix(".plain")
    write_workbook(plain, {"rows": [["y", "p"], [1, 0.5]]})
    with zipfile.ZipFile(plain) as parts, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name in parts.namelist():
            content = parts.read(name)
            assert old in content or "sheet1" not in name
            out.writestr(name, content.replace(old, new) if "sheet1" in name else content)
    plain.unlink()


DEEP = "nested too deep"
LONG = "lines, with their quoted cells, must have at most 64 MB: line {} is longer"
HOSTILE: dict[str, tuple[bytes | Callable[[Path], None], str]] = {
    "blank.csv": (b"\n" * 200_000 + b"y,p\n" + ROWS, ""),
    "returns.csv": (b"\r" * 200_000 + b"y,p\n" + ROWS, ""),
    "header.csv": (b'y,p,"a\n' + b"1,0.5,b\n" * 40_000, "the cell that opens in line 1 does not"),
    "wide.csv": (
        (wide(100_000) + ("1,0.5" + ",0" * 100_000 + "\n") * 3).encode(),
        "at most 65,536 columns: got 100,002",
    ),
    "wide.jsonl": (
        (json.dumps(dict.fromkeys(wide(100_000).split(","), 0)) + "\n").encode() * 3,
        "at most 65,536 columns: got 100,002",
    ),
    "keys.jsonl": (
        "".join(json.dumps(row) + "\n" for row in objects(50_000)).encode(),
        "",
    ),
    "keys.json": (
        json.dumps(objects(50_000)).encode(), "",
    ),
    "line.csv.gz": (repeated(b"y,p\n1,0.5\n", b"1", b"\n"), LONG.format(3)),
    "header.csv.gz": (repeated(b"y,p,", b"a", b"\n1,0.5,1\n"), LONG.format(1)),
    "quoted.csv.gz": (repeated(b'y,p,s\n1,0.5,"', b"a\n", b'"\n'), LONG.format(2)),
    "line.jsonl.gz": (
        repeated(b'{"y":1,"p":0.5}\n{"y":1,"p":0.5,"s":"', b"a", b'"}\n'), LONG.format(2),
    ),
    "line.json.gz": (
        repeated(b'{"y":[1],"p":[0.5],"s":["', b"a", b'"]}'), "must have at most 64 MB",
    ),
    "array.json.gz": (repeated(b"[{}", b",{}", b"]"), "must have at most 64 MB"),
    "objects.json.gz": (
        repeated(b"[{}", b",{}", b"]", 63 << 20), "there is not enough memory for it",
    ),
    "deep.jsonl": (
        b'{"y":1,"p":0.5,"s":' + b"[" * 64_000 + b"]" * 64_000 + b"}\n", DEEP,
    ),
    "deep objects.jsonl": (
        b'{"y":1,"p":0.5}\n' + b'{"y":1,"p":0.5,"s":' + b'{"a":' * 64_000 + b"1" + b"}" * 64_001,
        DEEP,
    ),
    "deep beside closed.jsonl": (
        b'{"y":1,"p":0.5}\n{"y":1,"p":0.5,"t":"]]]]]\\"]]]","s":' + b"[[]," * 64_000, DEEP,
    ),
    "deep over lines.jsonl": (b'{"y":1,"p":0.5}\n' + b'{"a":\n' * 64_000, "line 2 must be one object"),
    "deep.json": (b'[{"y":1,"p":0.5,"s":' + b"[" * 64_000, DEEP),
    "row.xlsx": (
        lambda path: workbook(path, b'<row r="2">', b'<row r="2000000000">'),
        "a sheet has at most 1,048,576 rows",
    ),
    "packed.xlsx": (
        lambda path: workbook(path, b'</row></sheetData>', b'<c r="C2"><v>1</v></c>' * 10_000_000 + b"</row></sheetData>"),
        "more than 50 times as large as packed",
    ),
}  # fmt: skip


SLOW = pytest.mark.xfail(run=False, reason="copied line by line to the disk before it is refused")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[SLOW] * (name == "quoted.csv.gz")) for name in HOSTILE]
)
def test_small_file_takes_little_memory_and_time(tmp_path: Path, name: str) -> None:
    path, (content, message) = tmp_path / name, HOSTILE[name]
    path.write_bytes(content) if isinstance(content, bytes) else content(path)
    assert path.stat().st_size < SIZE
    found = limited("score", path, "--label", "y", "--pred", "p", "--format", "json")
    if message:
        assert (found.returncode, found.stdout) == (2, ""), found
        assert message in found.stderr, found.stderr
        assert found.stderr.count("\n") == 1
        assert len(found.stderr) < 1_000
    else:
        assert found.returncode == 0, found.stderr
        assert json.loads(found.stdout)["n"] == (50_000 if "keys" in name else 2)


@pytest.mark.parametrize(
    ("name", "target"),
    [("wide.csv", "out.parquet"), ("line.csv.gz", "out.csv"), ("line.jsonl.gz", "out.parquet")],
)
def test_apply_to_a_small_file_takes_little_memory_and_time(
    tmp_path: Path, name: str, target: str
) -> None:
    path, (content, message) = tmp_path / name, HOSTILE[name]
    assert isinstance(content, bytes)
    path.write_bytes(content)
    platt = sc.calibrators.PlattCalibrator().fit([0.2, 0.5, 0.7, 0.3], [0.0, 1.0, 0.5, 0.5])
    (tmp_path / "map.json").write_text(json.dumps(platt.to_dict()))
    found = limited("apply", tmp_path / "map.json", path, "--pred", "p", "-o", tmp_path / target)
    assert (found.returncode, found.stderr.count("\n")) == (2, 1), found
    assert message in found.stderr
    assert not (tmp_path / target).exists()


def test_text_with_carriage_returns_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "returns.csv"
    path.write_bytes(b'"y",p,s\r' + b'0.5,0.25,"a\rb"\r' * 10_000_000)
    found = limited("score", path, "--label", "y", "--pred", "p", "--format", "json")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["n"] == 10_000_000


def saved(tmp_path: Path, **changes: Any) -> Path:
    """Save a set with groups, with some parts of its JSON replaced."""
    rows = {"y": [1.0, 0.0, 0.5], "p": [0.5, 0.25, 0.5], "g": [1, 2, 2], "s": ["a", "b", "a"]}
    path = tmp_path / "x.softcal"
    tables = sc.scan(pd.DataFrame(rows), y_true="y", y_prob="p", groups="g", by="s")
    tables.save(path)
    found = json.loads(path.read_text())
    found.pop("checksum", None)
    path.write_text(json.dumps(found | changes))
    return path


def many(what: str) -> list[str]:
    return [what, *(f"{what}{k}" for k in range(3_000))]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bins": 8_000, "grid": 8_000}, "with groups there can be at most 2000 bins: got 8000"),
        ({"models": many("p"), "targets": many("label")}, "the table has no rows"),
        ({"bins": 2_000, "grid": 2_000, "models": many("p")}, "no rows can have"),
        ({"owners": 10**9}, "missing or invalid: owners"),
    ],
)
def test_small_saved_set_takes_little_memory_and_time(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    path = saved(tmp_path, **changes)
    assert path.stat().st_size < 100_000
    found = limited("score", path)
    assert (found.returncode, found.stderr.count("\n")) == (2, 1), found.stderr
    assert re.search(message, found.stderr), found.stderr
    assert softcal_here("score", saved(tmp_path)).returncode == 0


def test_saved_set_with_a_key_twice_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path)
    path.write_text(path.read_text().replace('"label": "y"', '"label": "y", "label": "z"'))
    with pytest.raises(sc.InputError, match="must have different keys: 'label' occurs twice"):
        sc.load(path)
