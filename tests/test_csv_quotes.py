"""Quotes in text files: what `csv` and pandas refuse is refused, and values equal theirs."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from command_line import softcal_here

import softcal as sc
from softcal.calibrators import PlattCalibrator
from softcal.sources import files

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
    with pytest.raises(sc.InputError, match=f"cell that opens in line {line} does not"):
        sc.scan(path, y_true="y", y_prob="p")


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


def _sums(rows: Counter[tuple[str, ...]] | None) -> dict[str, tuple[float, ...]] | None:
    """Return number, labels, and predictions of each s; None if a cell is not a probability."""
    found: dict[str, list[tuple[float, float]]] = {}
    for (y, p, s), n in (rows or {}).items():
        try:
            found.setdefault(s, []).extend(n * [(float(y), float(p))])
        except ValueError:
            return None
    if rows is None or not all(
        0 <= v <= 1 for pairs in found.values() for row in pairs for v in row
    ):
        return None
    return {s: (len(pairs), *np.sum(pairs, axis=0).tolist()) for s, pairs in found.items()}


def _by_softcal(path: Path) -> dict[str, tuple[float, ...]] | None:
    try:
        tables = sc.scan(path, y_true="y", y_prob="p", by="s")
    except sc.InputError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return None
    parts = {value or "": part["p"].sums for value, part in tables.by("s").items()}
    return {
        value: (int(sums.count.sum()), sums.label.sum(), (sums.label + sums.residual).sum())
        for value, sums in parts.items()
    }


def test_rows_equal_those_of_csv_and_pandas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = tmp_path / "x.csv", Counter[str]()
    for seed in range(3_000):
        text = _file(seed)
        monkeypatch.setattr(files, "_BLOCK_BYTES", 5 + seed % 60 if seed % 3 else 1 << 22)
        path.write_bytes(b"y,p,s\n" + text.encode())
        ours, theirs = _by_softcal(path), [_by_csv(text), _by_pandas(text)]
        if ours is None:
            seen["refused by all" if theirs == [None, None] else "refused"] += 1
            continue
        assert theirs != [None, None], text
        for found in map(_sums, theirs):
            assert found is None or ours == found, text
        seen["accepted"] += 1
    assert seen["accepted"] > 1_000
    assert seen["refused by all"] > 200


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 21, 1 << 22])
def test_cells_of_one_line_may_all_have_line_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(files, "_BLOCK_BYTES", size)
    path, cell = tmp_path / "x.csv", '"\n1,1,"'
    path.write_text(f"a,y,p,b\n{cell},1,1,{cell}\n")
    assert sc.scan(path, y_true="y", y_prob="p", by="b").n == 1
    for content in ('0,1,"\n1,1,","\n', f"{cell},1,1,{cell}\n" * 3 + f'{cell},"1,1,{cell}\n'):
        path.write_text("a,y,p,b\n" + content)
        with pytest.raises(sc.InputError, match="cell that opens in line"):
            sc.scan(path, y_true="y", y_prob="p", by="b")


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 22])
def test_quotes_inside_cells_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(files, "_BLOCK_BYTES", size)
    cells = ['5" pipe', 'say "hi"', 'a\n"b",\r\nc', '"', "", '""', "x\ny"]
    text = io.StringIO(newline="")
    csv.writer(text).writerows([["y", "p", "s"], *([1, 0.5, cell] for cell in cells)])
    plain = text.getvalue() + '1,0.5,24" wide\n1,0.5,a "quoted" word\n'
    (tmp_path / "x.csv").write_bytes(plain.encode())
    tables = sc.scan(tmp_path / "x.csv", y_true="y", y_prob="p", by="s")
    expected = {*cells, '24" wide', 'a "quoted" word'} - {""}
    assert {*tables.by("s")} == {*expected, None} or {*tables.by("s")} == {*expected, "(missing)"}
    assert tables.n == 9
