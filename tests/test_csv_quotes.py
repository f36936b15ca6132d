"""Quotes in text files: what `csv` and pandas refuse is refused, and values equal theirs."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from command_line import softcal_here

import softcal as sc
from softcal.calibrators import PlattCalibrator
from test_scanning_files import values

if TYPE_CHECKING:
    from pathlib import Path

ROW = b"1,0.5,b\n"
UNCLOSED = [
    (b'y,p,s\n1,0.5,"a\n' + 1_000 * ROW, 2),
    (b"y,p,s\n" + 9 * ROW + b'1,0.5,"a', 11),
    (b'y,p,"s\n' + 20_000 * ROW, 1),
    (b"\n\ny,p,s\r\n" + ROW + b'0,"0.5,b\r\n' + ROW, 5),
    (b"y,p,s\r1,0.5,b\r1,0.5,\"a\r1,0.5,b\r", 3),
    (b'y,p,s\n1,0.5,"a"b\n' + ROW, 2),
    (b'y,p,s\n1,0.5,"a\n1,0.5,"b"\n' + ROW, 2),
    (b'y,p,s\n1,0.5,5" pipe\n1,0.5,"5" pipe"\n', 3),
    (b"\xef\xbb\xbf\"y\",p,s\n" + 3_000_000 * ROW + b'1,0.5,"a\n' + 10 * ROW, 3_000_002),
]  # fmt: skip


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("content", "line"), UNCLOSED)
def test_unclosed_quote_is_refused_with_its_line(
    tmp_path: Path, content: bytes, line: int, *, packed: bool
) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(gzip.compress(content, 1) if packed else content)
    with pytest.raises(sc.InputError, match=f"x.csv: a cell .* line {line} does not"):
        values(path, "y", "p")


def test_unclosed_quote_is_refused_by_every_command(tmp_path: Path) -> None:
    bad, good = tmp_path / "bad.csv", tmp_path / "good.csv"
    bad.write_bytes(b'y,p,s\n1,0.5,"a\n' + 100 * b"1,0.5,0\n0,0.25,1\n")
    good.write_bytes(b"y,p,s\n" + 100 * b"1,0.5,0\n0,0.25,1\n")
    platt = PlattCalibrator().fit([0.1, 0.4, 0.8, 0.9], [0, 1, 0, 1])
    (tmp_path / "map.json").write_text(json.dumps(platt.to_dict()))
    columns = "--label", "y", "--pred", "p"
    votes = "--item", "s", "--vote", "y", "--positive", "1"
    commands: list[tuple[Any, ...]] = [
        ("score", bad, *columns),
        ("scan", bad, *columns, "-o", tmp_path / "out.softcal"),
        ("score", good, "--pred", "p", "--votes-file", bad, *votes),
        ("apply", tmp_path / "map.json", bad, "--pred", "p", "-o", tmp_path / "o.csv"),
        ("apply", tmp_path / "map.json", bad, "--pred", "p", "-o", tmp_path / "o.parquet"),
    ]  # fmt: skip
    for command in commands:
        found = softcal_here(*command)
        assert (found.returncode, found.stdout) == (2, ""), command
        assert "cell that opens in line 2 does not" in found.stderr, found.stderr
        assert found.stderr.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"bad.csv", "good.csv", "map.json"}


def _record(draw: random.Random) -> str:
    inside = "".join(draw.choices('",\n\rab01', k=draw.randrange(5)))
    text = '"' + inside.replace('"', '""') + '"' if draw.random() < 0.5 else draw.choice("ab01")
    cells = [draw.choice("01"), draw.choice("01"), text]
    quoted = [f'"{cell}"' if draw.random() < 0.1 else cell for cell in cells[:2]]
    return ",".join([*quoted, text])


def _file(seed: int) -> str:
    """Return a small file: a valid one in which some characters are dropped, added, or swapped."""
    draw = random.Random(seed)  # noqa: S311
    end = draw.choice(["\n", "\r\n", "\r"])
    text = "".join(_record(draw) + end for _ in range(draw.randrange(6)))
    for _ in range(draw.randrange(3)):
        at, what = draw.randrange(len(text) + 1), draw.choice('""""",\n\rab01')
        text = text[:at] + what * draw.randrange(2) + text[at + draw.randrange(2) :]
    return text


def _by_csv(text: str) -> Counter[tuple[str, ...]] | None:
    """Return the rows that `csv` reads; None if it refuses, or rows differ in length."""
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except csv.Error:
        return None
    return None if any(len(row) != 3 for row in rows) else Counter(map(tuple, rows))


def _by_pandas(text: str) -> Counter[tuple[str, ...]] | None:
    try:
        rows = pd.read_csv(
            io.BytesIO(text.encode()), dtype=str, keep_default_na=False, index_col=False,
            header=None, names=["y", "p", "s"], on_bad_lines="error",
        )  # fmt: skip
    except (pd.errors.ParserError, pd.errors.EmptyDataError, pd.errors.ParserWarning):
        return None
    return Counter(zip(*(rows[name] for name in rows), strict=True))


def test_rows_equal_those_of_csv_and_pandas(tmp_path: Path) -> None:
    path, seen = tmp_path / "x.csv", Counter[str]()
    for seed in range(600):
        text = _file(seed)
        path.write_bytes(b"y,p,s" + (b"\n", b"\r\n", b"\r")[seed % 3] + text.encode())
        theirs = [_by_csv(text), _by_pandas(text)]
        try:
            found = values(path, "y", "p", "s")
        except sc.InputError as error:
            assert "\n" not in str(error)  # noqa: PT017
            assert theirs[0] is None, text
            seen["refused"] += 1
            continue
        cells = ([cell or "" for cell in column] for column in found.values())
        assert theirs != [None, None], text
        assert theirs[0] in (None, Counter(zip(*cells, strict=True))), text
        seen["accepted"] += 1
    assert min(seen.values()) > 100
