"""Saved tables add up: `softcal merge` of days is the score of the week."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import assert_same_card
from command_line import softcal_here as softcal

import softcal as sc

NAMES = ("--label", "y", "--pred", "p", "--pred", "q", "--weight", "w", "--votes", "m")


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven days of rows, as Parquet, and the scores of each, as JSON; the last has a new segment."""
    folder = tmp_path_factory.mktemp("week")
    rng = np.random.default_rng(0)
    for day in range(7):
        n = 400 + 10 * day
        p, m = rng.random(n), rng.integers(1, 5, n)
        columns = {
            "y": rng.binomial(m, rng.random(n)) / m, "p": p, "q": p**2, "w": rng.random(n), "m": m,
            "segment": rng.integers(0, 2 + day // 6, n),
        }  # fmt: skip
        pq.write_table(pa.table(columns), folder / f"{day}.parquet")
        result = softcal("score", folder / f"{day}.parquet", *NAMES, "--by", "segment",
                         "--save", folder / f"{day}.json")  # fmt: skip
        assert result.returncode == 0, result.stderr
        assert result.stderr == ""  # nothing but the answer when piped
    return folder


def scored(*arguments: object) -> dict[str, Any]:
    result = softcal(*arguments, "--format", "json")
    assert result.returncode == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_week_of_days_is_the_whole(week: Path) -> None:
    days = [week / f"{day}.json" for day in range(7)]
    merged = scored("merge", *days, "-o", week / "week.json")
    whole = scored("score", week / "*.parquet", *NAMES, "--by", "segment")
    assert_same_card(merged, whole)
    assert merged["n"] == sum(400 + 10 * day for day in range(7))
    assert [one["value"] for one in merged["models"][0]["segments"]] == ["0", "1", "2"]
    assert_same_card(scored("merge", week / "week.json"), whole)


def test_several_files_on_the_command_line_are_one_source(week: Path) -> None:
    files = sorted(week.glob("*.parquet"))
    assert_same_card(scored("score", *files, *NAMES), scored("score", week, *NAMES))
    shown = softcal("score", *files, *NAMES).stdout
    assert "7 sources: 3,010 rows" in shown


def test_table_shows_every_segment(week: Path) -> None:
    shown = softcal("score", week / "6.parquet", *NAMES, "--by", "segment").stdout
    rows = shown.partition("p, by segment\n")[2].splitlines()[4:8]
    assert [row.split()[0] for row in rows] == ["all", "0", "1", "2"]
    assert max(map(len, shown.splitlines())) <= 80


def test_segment_without_weight_is_omitted_from_json(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("y,p,w,s\n1,0.5,1,a\n0,0.25,1,a\n0,0.5,0,b\n")
    found = scored("score", path, "--label", "y", "--pred", "p", "--weight", "w", "--by", "s")
    assert [one["value"] for one in found["models"][0]["segments"]] == ["a"]


def test_rows_without_weight_are_reported(tmp_path: Path) -> None:
    """All or some rows of a file have weight 0, with and without groups."""
    names = ("--label", "y", "--pred", "p", "--weight", "w")
    for k, weights in enumerate(((0, 0), (1, 0), (2, 3))):
        rows = "".join(f"0.5,0.{k + 3},0.2,{w},{i}\n" for i, w in enumerate(weights))
        (tmp_path / f"{k}.csv").write_text(f"y,p,q,w,g\n{rows}")
    found = scored("score", tmp_path, *names)
    assert (found["n"], found["rows_without_weight"]) == (3, 3)
    grouped = scored("score", tmp_path, *names, "--group", "g")
    assert (grouped["n"], grouped["rows_without_weight"]) == (3, 3)
    assert "3 rows (3 more with weight 0)" in softcal("score", tmp_path, *names).stdout
    assert scored("score", tmp_path, *names[:4])["rows_without_weight"] is None
    for group in ((), ("--group", "g")):
        compared = scored("compare", tmp_path, *names, "--pred", "q", *group)
        assert (compared["n"], compared["rows_without_weight"]) == (3, 3)
    saved = [tmp_path / f"{k}.json" for k in (1, 2)]
    for k, path in enumerate(saved, 1):
        assert softcal("score", tmp_path / f"{k}.csv", *names, "--save", path).returncode == 0
    assert scored("merge", *saved)["rows_without_weight"] == 1
    old = json.loads(saved[0].read_text())
    old["rows_without_weight"] = None  # as files were before they were counted
    del old["checksum"]  # likewise
    saved[0].write_text(json.dumps(old))
    assert scored("merge", *saved)["rows_without_weight"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (NAMES[:6], "cannot add sets with different weights: one has 'w'"),
        (("--label", "w", "--pred", "p"), "cannot add sets with different labels"),
        ((*NAMES, "--bins", "7"), "cannot add sets with different grids"),
        (NAMES, "cannot add sets with different 'by' columns: one has 'segment', another none"),
        ((*NAMES[:4], *NAMES[6:], "--by", "segment"), "cannot add sets with different models"),
    ],
)  # fmt: skip
def test_scores_that_do_not_fit_are_refused(
    week: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    other, total = tmp_path / "other.json", tmp_path / "total.json"
    by = ("--by", "segment") if "--bins" in options else ()
    saved = softcal("score", week / "0.parquet", *options, *by, "--save", other)
    assert saved.returncode == 0, saved.stderr
    result = softcal("merge", week / "0.json", other, "-o", total)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr
    assert not total.exists()


def test_a_file_named_twice_is_refused(week: Path) -> None:
    result = softcal("merge", week / "0.json", week / ".." / week.name / "0.json")
    assert result.returncode == 2
    assert "is named twice: its rows would be counted twice" in result.stderr


def test_a_copy_is_refused_unless_allowed(week: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.json"
    copy.write_bytes((week / "0.json").read_bytes())
    both = (week / "0.json", copy)
    result = softcal("merge", *both, "-o", tmp_path / "sum.json")
    assert result.returncode == 2
    assert f"{both[0]} and {copy} have the same content: rows would be counted twice" in (
        result.stderr
    )
    assert not (tmp_path / "sum.json").exists()
    one, two = scored("merge", both[0]), scored("merge", *both, "--allow-identical")
    assert two["n"] == 2 * one["n"]


def test_a_second_scan_is_recognized_although_sums_differ_by_rounding(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    columns = {"y": rng.random(2000), "p": p, "g": rng.integers(0, 50, 2000), "s": [*"ab"] * 1000}
    order = rng.permutation(2000)
    saved = []
    for name, rows in (("first", pa.table(columns)), ("second", pa.table(columns).take(order))):
        tables = sc.scan(rows, y_true="y", y_prob="p", groups="g", by="s")
        tables.save(tmp_path / f"{name}.json")
        saved.append((tmp_path / f"{name}.json").read_bytes())
    assert saved[0] != saved[1]  # in the last digits, and in the order of groups
    result = softcal("score", tmp_path / "first.json", tmp_path / "second.json")
    assert result.returncode == 2
    assert "have the same content: rows would be counted twice" in result.stderr


def test_groups_are_saved_too(tmp_path: Path) -> None:
    for k in range(2):
        path = tmp_path / f"{k}.csv"
        path.write_text("y,p,g\n" + "".join(f"{i % 2},0.{i},{k}{i // 3}\n" for i in range(9)))
        options = ("--label", "y", "--pred", "p", "--group", "g")
        assert softcal("score", path, *options, "--save", tmp_path / f"{k}.json").returncode == 0
    merged = scored("merge", tmp_path / "0.json", tmp_path / "1.json", "--allow-identical")
    whole = scored("score", tmp_path / "*.csv", *options)
    assert len(merged["notes"]) == 1
    assert_same_card({**merged, "notes": []}, whole)
    assert merged["models"][0]["pvalue"] is not None


def test_merge_notes_that_groups_in_two_files_are_not_detected(tmp_path: Path) -> None:
    for k in range(2):
        (tmp_path / f"{k}.csv").write_text("y,p,g\n" + f"{k},0.5,ann\n1,0.25,{k}\n")
        options = ("--label", "y", "--pred", "p", "--group", "g", "-o", tmp_path / f"{k}.json")
        assert softcal("scan", tmp_path / f"{k}.csv", *options).returncode == 0
    for command in ("merge", "score"):
        result = softcal(command, tmp_path / "0.json", tmp_path / "1.json")
        assert result.returncode == 0
        (line,) = result.stderr.splitlines()
        assert "If a value of g has rows in two files, these rows count as independent" in line
    assert softcal("merge", tmp_path / "0.json").stderr == ""
    assert "ann" not in (tmp_path / "0.json").read_text()  # a name of a patient is never saved


def test_single_saved_tables_can_be_merged_and_used_as_a_pilot(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    parts = [sc.reliability(rng.random(300), rng.random(300)) for _ in range(2)]
    files = [tmp_path / f"{k}.json" for k in range(2)]
    for path, part in zip(files, parts, strict=True):
        part.save(path)
    merged = scored("merge", *files, "-o", tmp_path / "sum.json")
    whole = sum(parts)
    assert merged["models"][0]["smece"] == whole.smece  # type: ignore[union-attr]
    assert merged["models"][0]["ece_hardened"] == whole.hardened().smece  # type: ignore[union-attr]
    planned = [
        softcal("plan", path, "--half-width", "0.05").stdout
        for path in (tmp_path / "sum.json", files[0])
    ]
    assert all("Collect" in text for text in planned)


def test_a_pilot_of_several_models_needs_a_name(week: Path, tmp_path: Path) -> None:
    aim, pilot = ("--half-width", "0.05"), tmp_path / "pilot.json"
    assert softcal("score", week, *NAMES[:6], "--save", pilot).returncode == 0
    refused = softcal("plan", pilot, *aim)
    assert refused.returncode == 2
    assert "pilot.json has several models, 'p', 'q': choose one with --pred." in refused.stderr
    named = softcal("plan", pilot, "--pred", "q", *aim)
    assert named.stdout.startswith("Collect")


def test_models_may_come_in_another_order(week: Path, tmp_path: Path) -> None:
    turned = ("--label", "y", "--pred", "q", "--pred", "p", *NAMES[6:], "--by", "segment")
    saved = softcal("score", week / "1.parquet", *turned, "--save", tmp_path / "1.json")
    assert saved.returncode == 0, saved.stderr
    assert_same_card(
        scored("merge", week / "0.json", tmp_path / "1.json"),
        scored("merge", week / "0.json", week / "1.json"),
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "its 'format' must be 'softcal.tables'"),
        ({"schema": 4}, "this softcal reads schemas up to 3"),
        ({"models": []}, "a model that does not exist"),
        ({"models": 3}, "a part is missing or invalid"),
        ({"blocks": {"tables": {"model": [0]}}}, "a part is missing or invalid"),
    ],
)
def test_damaged_files_are_refused(
    week: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "damaged.json"
    saved = json.loads((week / "0.json").read_text())
    del saved["checksum"]
    path.write_text(json.dumps(saved | change))
    result = softcal("merge", week / "1.json", path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"softcal: error: cannot read {path}: ")
    assert message in result.stderr


def test_missing_file_and_non_json_are_refused(tmp_path: Path) -> None:
    assert "no such file" in softcal("merge", tmp_path / "absent.json").stderr
    path = tmp_path / "text.json"
    for text in ("no json", "[1, 2]"):
        path.write_text(text)
        assert f"cannot read {path}: " in softcal("merge", path).stderr


def test_dates_of_segments_are_text(tmp_path: Path) -> None:
    days = pa.array([date(2026, 1, 2), date(2026, 1, 10)])
    pq.write_table(
        pa.table({"y": [1.0, 0.0], "p": [0.5, 0.25], "day": days}), tmp_path / "d.parquet"
    )
    options = ("--label", "y", "--pred", "p", "--by", "day", "--save", tmp_path / "d.json")
    assert softcal("score", tmp_path / "d.parquet", *options).returncode == 0
    segments = scored("merge", tmp_path / "d.json")["models"][0]["segments"]
    assert [one["value"] for one in segments] == ["2026-01-02", "2026-01-10"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_progress_is_shown_on_a_terminal(week: Path, tmp_path: Path) -> None:
    """Rows, bytes, and time left are on stderr, and the result is on stdout."""
    import pty

    reader, writer = pty.openpty()
    for k in range(40):
        for path in week.glob("*.parquet"):
            (tmp_path / f"{k}_{path.name}").hardlink_to(path)
    command = [sys.executable, "-m", "softcal", "score", str(tmp_path), *NAMES]
    env = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.DEVNULL, stderr=writer, env=env
    ) as running:
        os.close(writer)
        shown = b""
        while True:
            try:
                shown += os.read(reader, 4096)
            except OSError:  # the other end is closed
                break
    os.close(reader)
    assert running.returncode == 0
    assert b"Reading" in shown
    assert b":" in shown  # the time left
