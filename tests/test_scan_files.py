"""Files of every format and size give the tables of arrays, in bounded memory."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv
from same_tables import assert_same_table

import softcal as sc
from softcal.sources import collect, files
from softcal.sources.class_columns import names_of_columns
from softcal.sources.columns import Piece, Roles
from softcal.sources.files import batches, read_columns
from softcal.table import build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

N = 5_000


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    votes, p = rng.integers(1, 6, N), rng.random(N)
    return {
        "y": rng.integers(0, votes + 1) / votes,
        "p": p,
        "q": p**2,
        "w": rng.random(N),
        "m": votes,
        "segment": np.array(["north", "south", 'the "far", west\n'])[rng.integers(0, 3, N)],
        "who": np.array(["ann", "bob"])[rng.integers(0, 2, N)],
    }


def as_csv(mark: str, table: pa.Table) -> str:
    def cell(value: Any) -> str:
        text = value if isinstance(value, str) else "" if value is None else repr(value)
        quote = any(sign in text for sign in '",\t\n')
        return '"' + text.replace('"', '""') + '"' if quote else text

    rows = [table.column_names, *(row.values() for row in table.to_pylist())]
    return "".join(mark.join(map(cell, row)) + "\n" for row in rows)


def as_json_lines(table: pa.Table) -> str:
    return "".join(json.dumps(row) + "\n" for row in table.to_pylist())


def write_arrow(path: Path, table: pa.Table, *, stream: bool = False) -> None:
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with make(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=700)


WRITERS: dict[str, Callable[[Path, pa.Table], object]] = {
    "parquet": lambda path, table: pq.write_table(table, path, row_group_size=600),
    "pq": lambda path, table: pq.write_table(table, path),
    "csv": lambda path, table: path.write_text(as_csv(",", table)),
    "tsv": lambda path, table: path.write_text(as_csv("\t", table)),
    "jsonl": lambda path, table: path.write_text(as_json_lines(table)),
    "ndjson": lambda path, table: path.write_text(as_json_lines(table)),
    "arrow": write_arrow,
    "feather": lambda path, table: write_arrow(path, table, stream=True),
    "csv.gz": lambda path, table: path.write_bytes(gzip.compress(as_csv(",", table).encode())),
    "jsonl.gz": lambda path, table: path.write_bytes(gzip.compress(as_json_lines(table).encode())),
}


@pytest.fixture(params=WRITERS)
def file(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    data: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """Write a file that is read in many pieces."""
    monkeypatch.setattr(files, "_BLOCK_BYTES", 10_000)
    path = tmp_path / f"data.{request.param}"
    WRITERS[request.param](path, pa.table(data))
    return path


def test_every_file_format_gives_the_table_of_arrays(file: Path, data: dict[str, Any]) -> None:
    found = sc.scan(file, y_true="y", y_prob="p", sample_weight="w", n_votes="m", bins=7)
    expected = sc.reliability(
        data["y"], data["p"], sample_weight=data["w"], n_votes=data["m"], bins=7
    )
    assert_same_table(found["p"], expected)


def test_several_models_and_segments_of_files(file: Path, data: dict[str, Any]) -> None:
    both = sc.scan(str(file), y_true="y", y_prob=["p", "q"], n_votes=60)
    assert_same_table(both["q"], sc.reliability(data["y"], data["q"], n_votes=60))
    segments = sc.scan(file, y_true="y", y_prob="p", by="segment").by("segment")
    assert list(segments) == sorted(set(data["segment"].tolist()))
    for value, tables in segments.items():
        here = data["segment"] == value
        assert_same_table(tables["p"], sc.reliability(data["y"][here], data["p"][here]))


def test_batches_hold_the_columns_and_report_progress(file: Path, data: dict[str, Any]) -> None:
    told: list[tuple[int, int, int]] = []
    found = list(batches(file, ["p"], progress=lambda *now: told.append(now)))
    np.testing.assert_array_equal(np.concatenate([batch["p"] for batch in found]), data["p"])
    size = file.stat().st_size
    assert told == sorted(told)
    assert told[0] == (0, 0, size)
    assert told[-1][0] == N
    assert all(total == size and done <= size for _, done, total in told)
    if file.suffix != ".feather":  # because an Arrow stream has no known length
        assert told[-1][1] == pytest.approx(size, abs=len(told))


def test_read_rows_returns_whole_columns(file: Path, data: dict[str, Any]) -> None:
    found = read_columns(file, ["p", "segment"], "segment")
    np.testing.assert_array_equal(found["p"], data["p"])
    assert found["segment"].to_pylist() == data["segment"].tolist()


BAD = [
    ("p", 3, 1.5, "p must be in [0, 1]: 1 of 5000 values is not, the first is 1.5 in {}, row 4."),
    ("y", 4321, None, "y must have no missing values: 1 of 5000 are NaN or null, the first in {}, row 4322."),
    ("w", 2500, -1.0, "w must be 0 or more: 1 of 5000 values is not, the first is -1.0 in {}, row 2501."),
    ("who", 2500, None, "who must have no missing values: 1 of 5000 are NaN or null, the first in {}, row 2501."),
]  # fmt: skip


@pytest.mark.parametrize(("column", "row", "value", "message"), BAD)
@pytest.mark.parametrize("kind", ["parquet", "arrow", "jsonl", "csv"])
def test_the_first_bad_value_is_named_with_file_and_row(
    kind: str, column: str, row: int, value: Any, message: str, tmp_path: Path,
    data: dict[str, Any], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(files, "_BLOCK_BYTES", 10_000)
    rows = {name: values.tolist() for name, values in data.items()}
    rows[column][row] = value
    path = tmp_path / f"bad.{kind}"
    WRITERS[kind](path, pa.table(rows))
    with pytest.raises(sc.InputError) as caught:
        sc.scan(path, y_true="y", y_prob="p", sample_weight="w", by="segment", groups="who")
    assert message.format(path) in str(caught.value)


def test_bad_values_are_counted_over_all_files(tmp_path: Path) -> None:
    for k in range(5):
        p = [0.5, 0.5, 200.0 if k in (2, 4) else 0.5]
        pq.write_table(pa.table({"y": [0.5] * 3, "p": p}), tmp_path / f"{k}.parquet")
    with pytest.raises(
        sc.InputError,
        match=r"2 of 15 values are not, the first is 200.0 in .*2.parquet, row 3. If these are logits",
    ):
        sc.scan(tmp_path, y_true="y", y_prob="p")


def test_paths_patterns_folders_and_lists_are_accepted(tmp_path: Path) -> None:
    folder = tmp_path / "day=1"
    folder.mkdir()
    for name in ("a.parquet", "b.parquet", "_c.parquet", ".d.parquet"):
        pq.write_table(pa.table({"y": [0.5], "p": [0.5]}), folder / name)
    (folder / "_SUCCESS").touch()
    (tmp_path / "e.csv").write_text("y,p\n1,0.5\n0,0.5\n")
    (tmp_path / "e.csv.gz.bak").write_text("in a folder, only files with known suffixes count")
    (tmp_path / "e.parquet.gz").write_text("nor is this one of them")
    for source, n in (
        (tmp_path, 4),
        (str(tmp_path / "*" / "*.parquet"), 3),  # a pattern does not match a leading dot
        (str(tmp_path / "**" / "a.parquet"), 1),
        (str(tmp_path / "day=*"), 2),
        ([folder / "a.parquet", str(tmp_path / "e.csv")], 3),
    ):
        assert sc.scan(source, y_true="y", y_prob="p").n == n


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.parquet", "no such file"),
        ("*.parquet", "no data in"),
        ("x", "no such file"),
        ("", "no data in .*: it has no file whose name ends in one of .csv"),
    ],
)
def test_missing_files_are_named(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(sc.InputError, match=message):
        sc.scan(tmp_path / name, y_true="y", y_prob="p")


def test_text_late_in_a_file_is_reported_with_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_BLOCK_BYTES", 100)
    path = tmp_path / "late.csv"
    path.write_text("y,p\n" + "0.5,0.5\n" * 500 + "0.5,n/a\n,oops\n" + "1,1\n" * 50)
    with pytest.raises(
        sc.InputError,
        match=r"p must hold numbers: row 501 of late.csv holds the text 'n/a'|row 502",
    ):
        sc.scan(path, y_true="y", y_prob="p")


def test_boolean_text_is_read_as_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("y,p\nTrue,0.5\nFalse,0.5\n")
    (tmp_path / "b.jsonl").write_text('{"y": true, "p": 1}\n{"y": false, "p": 0.5}\n')
    assert sc.scan(tmp_path, y_true="y", y_prob="p")["p"].has_hard_labels


def test_malformed_lines_are_refused(tmp_path: Path) -> None:
    for name, text, message in (
        ("a.csv", "y,p\n1,1\n1\n", "every row of a.csv must have 2 cells.* row 2 has 1 cell"),
        ("b.jsonl", '{"y": 1, "p": 1}\n{"y": \n', "cannot read .*b.jsonl"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(sc.InputError, match=message):
            sc.scan(tmp_path / name, y_true="y", y_prob="p")


def test_reading_columns_of_files_without_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "none.parquet"
    pq.write_table(pa.table({"y": [0.5], "p": [0.5]}).slice(0, 0), path)
    with pytest.raises(sc.InputError, match="no rows"):
        read_columns(path, ["y", "p"])


def test_trailing_blank_lines_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_BLOCK_BYTES", 8)
    (tmp_path / "a.csv").write_text("y,p\n1,0.5\n" + "\n" * 30)
    (tmp_path / "b.jsonl").write_text('{"y": 1, "p": 0.5}\n' + "\n" * 30)
    assert sc.scan(tmp_path, y_true="y", y_prob="p").n == 2


def test_decimals_and_integers_with_missing_values(tmp_path: Path) -> None:
    path = tmp_path / "kinds.parquet"
    y = pa.array([0, 1, 1], pa.decimal128(3, 1))
    pq.write_table(pa.table({"y": y, "p": pa.array([0, 1, None], pa.int8())}), path)
    with pytest.raises(sc.InputError, match="p must have no missing values: 1 of 3"):
        sc.scan(path, y_true="y", y_prob="p")
    pq.write_table(pa.table({"y": y, "p": pa.array([0, 1, 1], pa.int8())}), path)
    assert sc.scan(path, y_true="y", y_prob="p")["p"].smece == 0


def test_last_line_without_newline_is_a_row(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("y,p\n1,0.5\n0,0.5")
    assert sc.scan(tmp_path / "a.csv", y_true="y", y_prob="p").n == 2


def test_malformed_line_in_a_later_block_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_BLOCK_BYTES", 20)
    path = tmp_path / "a.csv"
    path.write_text("y,p\n" + "1,0.5\n" * 30 + "1\n" + "1,0.5\n" * 30)
    with pytest.raises(sc.InputError, match=r"a\.csv must have 2 cells.* row 31 has 1 cell"):
        sc.scan(path, y_true="y", y_prob="p")


def test_python_number_literals_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    # Python reads underscores, and digits of every script.
    for cell, words in (
        ("0.2_5", "p must hold numbers: row 2 of"),
        ("\u0660.\u0665", "cannot read"),
    ):
        path.write_text(f"y,p\n1,0.5\n1,{cell}\n", encoding="utf-8")
        with pytest.raises(sc.InputError, match=rf"{words} .*a\.csv.* '{cell}'"):
            sc.scan(path, y_true="y", y_prob="p")


def test_empty_batches_of_a_file_are_ignored(tmp_path: Path) -> None:
    batch = pa.record_batch({"y": [0.5], "p": [0.5]})
    with pa.ipc.new_file(tmp_path / "a.arrow", batch.schema) as writer:
        for part in (batch.slice(0, 0), batch):
            writer.write_batch(part)
    assert sc.scan(tmp_path / "a.arrow", y_true="y", y_prob="p").n == 1


def test_segments_are_limited_over_all_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "MAX_CELLS", 5)
    for k in range(2):
        rows = {"y": [0.5] * 4, "p": [0.5] * 4, "by": [4 * k + i for i in range(4)]}
        pq.write_table(pa.table(rows), tmp_path / f"{k}.parquet")
    with pytest.raises(sc.InputError, match="by must have at most 5 different values"):
        sc.scan(tmp_path, y_true="y", y_prob="p", by="by")


def test_data_that_changes_while_it_is_read_is_refused() -> None:
    asked = iter([1.5, 0.5])

    def once_bad() -> Iterator[dict[str, Any]]:
        yield {"y": np.array([0.5]), "p": np.array([next(asked)])}

    with pytest.raises(sc.InputError, match="changed while it was being read"):
        collect.collect([Piece("", 0, once_bad)], Roles("y", ("p",)), sc.Bins.uniform(2))


def test_empty_batches_of_a_stream_are_ignored() -> None:
    batch = pa.record_batch({"y": [0.5], "p": [0.5]})
    stream = pa.RecordBatchReader.from_batches(batch.schema, [batch.slice(0, 0), batch])
    assert sc.scan(stream, y_true="y", y_prob="p").n == 1


CELL = st.text(st.sampled_from('a"\n,'), max_size=6)


@given(cells=st.lists(CELL, max_size=20), size=st.integers(1, 12))
def test_blocks_end_at_line_ends(cells: list[str], size: int) -> None:
    rows = [('"' + cell.replace('"', '""') + '"\n').encode() for cell in cells]
    text = b"".join(rows)
    blocks = list(files.whole_lines(io.BytesIO(text).readinto, size, ","))
    assert b"".join(blocks) == text
    starts = np.cumsum([len(row) for row in rows]).tolist()
    assert all(end in starts for end in np.cumsum([len(block) for block in blocks]).tolist())


def test_stray_quote_does_not_load_the_rest_of_the_file() -> None:
    text = b'5" pipe,1\n' + b"x,1\n" * 100
    blocks = list(files.whole_lines(io.BytesIO(text).readinto, 20, ","))
    assert b"".join(blocks) == text
    assert max(map(len, blocks)) < 100


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_reading_numbers_does_not_import_pandas(name: str, tmp_path: Path) -> None:
    rows = pa.table({"y": [0.0, 1.0], "p": [0.25, 0.75]})
    (csv.write_csv if name.endswith("csv") else pq.write_table)(rows, tmp_path / name)
    code = (
        "import sys, softcal; tables = softcal.scan(sys.argv[1], y_true='y', y_prob='p'); "
        "print(tables.n, 'pandas' in sys.modules)"
    )
    found = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code, str(tmp_path / name)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stdout == "2 False\n"


PEAK = """
import re, sys, softcal as sc
n = sc.scan(sys.argv[1], y_true="y", y_prob="p").n
# Not getrusage, which includes the memory of the parent process.
print(n, int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's mark of the peak memory")
@pytest.mark.parametrize("kind", ["one row group", "csv"])
def test_memory_stays_below_500_mb(kind: str, tmp_path: Path) -> None:
    """A row group of 640 MB and a CSV file of 600 MB are both larger than the limit."""
    if kind == "csv":
        path, n = tmp_path / "large.csv", 15_000_000
        block = "".join(f"{k % 997 / 997:.16f},{k % 89 / 89:.16f}\n" for k in range(100_000))
        with path.open("w") as out:
            out.write("y,p\n")
            for _ in range(n // 100_000):
                out.write(block)
    else:
        path, n = tmp_path / "large.parquet", 40_000_000
        p = np.tile(np.random.default_rng(0).random(1_000_000), n // 1_000_000)
        pq.write_table(pa.table({"y": p, "p": p}), path, row_group_size=n, use_dictionary=False)
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-c", PEAK, path], capture_output=True, text=True, check=True
    )
    rows, peak = map(int, ran.stdout.split())
    assert rows == n
    assert peak < 500, f"{peak} MB"
    path.unlink()


@pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")
def test_interrupt_keeps_the_previously_saved_file(tmp_path: Path) -> None:
    parts, saved = tmp_path / "parts", tmp_path / "day.json"
    parts.mkdir()
    rng = np.random.default_rng(0)
    first = parts / "0.parquet"
    pq.write_table(pa.table({"y": rng.random(1_000_000), "p": rng.random(1_000_000)}), first)
    for k in range(1, 3000):
        (parts / f"{k}.parquet").hardlink_to(first)
    saved.write_text("yesterday")
    command = [sys.executable, "-m", "softcal", "score", str(parts), "--label", "y",
               "--pred", "p", "--save", str(saved)]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:  # noqa: S603
        time.sleep(4)  # well within the pass over three billion rows
        running.send_signal(signal.SIGINT)
        out, errors = running.communicate(timeout=60)
    assert (running.returncode, out, errors) == (130, b"", b"softcal: stopped by SIGINT\n")
    assert saved.read_text() == "yesterday"
    assert sorted(os.listdir(tmp_path)) == ["day.json", "parts"]  # noqa: PTH208


@pytest.mark.parametrize("head", ['y,p,monitor 24"', 'y,p,"a\nb"', "\n\ny,p,t"])
def test_no_row_is_lost_after_an_odd_header(tmp_path: Path, head: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(head + "\n" + "0.5,0.25,x\n" * 200)
    assert sc.scan(path, y_true="y", y_prob="p").n == 200


def test_carriage_return_line_ends_are_read(tmp_path: Path) -> None:
    path = tmp_path / "b.csv"
    path.write_bytes(b"y,p\r0.1,0.2\r0.3,0.4\r\n0.5,0.5\r\n")
    assert sc.scan(path, y_true="y", y_prob="p").n == 3


def test_header_without_rows_is_refused(tmp_path: Path) -> None:
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


def test_long_column_names_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x" * 200_000 + ",y_a,y_b\n1,2,3\n")
    assert names_of_columns(path)[1:] == ["y_a", "y_b"]


@pytest.mark.parametrize("line", ["null\n", " \n\tnull", "[]\n", "1\n"])
def test_json_line_that_is_not_an_object_is_refused(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow crashes on a null at the start of a block."""
    path, good = tmp_path / "a.jsonl", '{"y": 1, "p": 0.5}\n'
    monkeypatch.setattr(files, "_BLOCK_BYTES", len(good))
    path.write_text(good + line + good)
    with pytest.raises(sc.InputError, match=r"cannot read|no such file"):
        sc.scan(path, y_true="y", y_prob="p")
    path.write_text(line + good)
    with pytest.raises(sc.InputError, match=r"cannot read|no column"):
        sc.scan(path, y_true="y", y_prob="p")


def test_lines_of_any_length_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"y": 1, "p": 0.5, "text": "x" * 3_000_000}) + "\n")
    assert sc.scan(path, y_true="y", y_prob="p").n == 1


def test_segments_that_are_not_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"y": 1, "p": 0.5, "s": "\xff"}\n')
    no_text = pa.array([b"a", b"\xff", b"b"]).view(pa.string())
    pq.write_table(
        pa.table({"y": [0.1, 0.9, 0.5], "p": [0.2, 0.8, 0.5], "s": no_text}), tmp_path / "a.parquet"
    )
    for name in ("a.jsonl", "a.parquet"):
        with pytest.raises(sc.InputError, match=r"cannot read .*UTF-?8"):
            sc.scan(tmp_path / name, y_true="y", y_prob="p", by="s")


def test_a_damaged_arrow_file_is_refused(tmp_path: Path) -> None:
    """The text offsets point outside the file, so Arrow would read other memory."""
    table, sink = (
        pa.table({"y": [0.1, 0.9, 0.5], "p": [0.2, 0.8, 0.5], "s": ["a", "b", "c"]}),
        io.BytesIO(),
    )
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    offsets = np.arange(4, dtype="<i4")
    assert sink.getvalue().count(offsets.tobytes()) == 1
    damaged = sink.getvalue().replace(offsets.tobytes(), (offsets * 2**24).tobytes())
    (tmp_path / "a.arrow").write_bytes(damaged)
    with pytest.raises(sc.InputError, match="cannot read"):
        sc.scan(tmp_path / "a.arrow", y_true="y", y_prob="p", by="s")


@pytest.mark.parametrize("path", ["a" * 5000 + ".csv", "\ud800.csv"])
def test_impossible_file_name_is_refused(path: str) -> None:
    with pytest.raises(sc.InputError, match=r"cannot read|no such file"):
        sc.scan(path, y_true="y", y_prob="p")


@pytest.mark.parametrize(
    ("name", "bad", "words"),
    [
        (
            "q",
            1.5,
            "q must be in [0, 1]: 2 of 5000 values are not, the first is 1.5 in {}, row 301",
        ),
        ("y", np.nan, "y must have no missing values: 2 of 5000"),
        ("w", -1.0, "2 of 5000"),
        ("m", 0.5, "2 of 5000"),
    ],
)
def test_a_bad_value_of_any_column_is_counted_over_all_files(
    tmp_path: Path, data: dict[str, Any], name: str, bad: float, words: str
) -> None:
    rows = {**data, name: data[name].astype(float)}
    rows[name][[2000, 2500]] = bad
    for k, part in enumerate((slice(0, 1700), slice(1700, None))):
        table = pa.table({column: values[part] for column, values in rows.items()})
        pq.write_table(table, tmp_path / f"{k}.parquet", row_group_size=400)
    with pytest.raises(sc.InputError) as caught:
        sc.scan(tmp_path, y_true="y", y_prob=["p", "q"], sample_weight="w", n_votes="m", by="who")
    assert words.format(tmp_path / "1.parquet") in str(caught.value)


def test_progress_is_reported_and_look_gets_the_rows(tmp_path: Path, data: dict[str, Any]) -> None:
    pq.write_table(pa.table(data), tmp_path / "a.parquet", row_group_size=2000)
    roles = Roles("y", ("p", "q"))
    told: list[int] = []
    seen: dict[int, Any] = {}

    def look(number: int, rows: Any, groups: object) -> None:
        assert groups is None
        seen[number] = rows["q"].y_prob

    pieces = files.all_pieces([tmp_path / "a.parquet"], roles.wanted)
    collect.collect(
        pieces, roles, sc.Bins.uniform(5), report=lambda _, rows: told.append(rows), look=look
    )
    assert told == [2000, 2000, 1000]
    np.testing.assert_array_equal(np.concatenate([seen[k] for k in range(3)]), data["q"])


def test_large_row_group_is_read_in_batches(
    tmp_path: Path, data: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_GROUP_VALUES", 1000)
    monkeypatch.setattr(files, "BATCH_VALUES", 8000)
    pq.write_table(pa.table(data), tmp_path / "a.parquet")
    found = list(batches(tmp_path / "a.parquet", ["p"]))
    assert [batch["p"].size for batch in found] == [1000] * 5
    np.testing.assert_array_equal(np.concatenate([batch["p"] for batch in found]), data["p"])


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("63.7 %", 'Write 0.637. For percentages, pass pred_scale="percent" or label_.*'),
        ("1.234.567", "Write it without thousands separators."),
        ("Yes", 'If .* counts as 1: positive="Yes".'),
        ("No", 'If .* counts as 1: positive="Yes".'),
        ("half", 'If .* counts as 1: positive="half".'),
    ],
)
def test_numeric_text_gets_a_hint(tmp_path: Path, text: str, hint: str) -> None:
    (tmp_path / "a.csv").write_text(f"y,p\n{text},0.5\n")
    with pytest.raises(sc.InputError, match=rf"row 1 of a\.csv holds the text '{text}'\. ?{hint}$"):
        sc.scan(tmp_path / "a.csv", y_true="y", y_prob="p")


def test_group_names_are_text_if_file_types_differ(tmp_path: Path) -> None:
    pq.write_table(pa.table({"p": [0.5], "g": [4]}), tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("p,g\n0.5,4\n")
    assert read_columns(tmp_path, ["p", "g"], "g")["g"].to_pylist() == ["4", "4"]
