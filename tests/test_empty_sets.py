"""Sources without rows: their sets add as 0, are saved, and are a day without data in a watch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import softcal_here, text_of_page

import softcal as sc

ROWS = pd.DataFrame(
    {"y": [1.0, 0.0, 0.5], "p": [0.5, 0.2, 0.3], "q": [0.9, 0.1, 0.2], "c": ["a", "b", "a"]}
)
EMPTY = ROWS.iloc[:0]


@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas", "polars", "lazy", "stream", "dask"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"y_true": sc.Shares("y", votes=2), "by": "c"},
        {"by": "c", "groups": "c"},
        {"sample_weight": "q"},
    ],
)
def test_empty_set_adds_as_zero_and_is_saved(
    tmp_path: Path, kind: str, options: dict[str, Any]
) -> None:
    source: Any = tmp_path / f"empty.{kind}"
    if kind == "csv":
        EMPTY.to_csv(source, index=False)
    elif kind == "parquet":
        pq.write_table(pa.Table.from_pandas(EMPTY), source)
    elif kind == "dask":
        source = dd.from_pandas(ROWS, npartitions=1).query("p > 2")  # type: ignore[no-untyped-call]
    elif kind == "stream":
        source = pa.Table.from_pandas(EMPTY).to_reader()
    else:
        frame = pl.from_pandas(ROWS).clear()
        source = {"pandas": pd.DataFrame(columns=list(ROWS)), "polars": frame}.get(
            kind, frame.lazy()
        )
    columns: dict[str, Any] = {"y_true": "y", "y_prob": ["p"], **options}
    empty, full = sc.scan(source, **columns), sc.scan(ROWS, **columns)
    empty.save(tmp_path / "empty.softcal")
    loaded = sc.load(tmp_path / "empty.softcal")
    assert loaded == empty
    assert empty.n == (loaded + loaded).n == 0
    assert loaded + full == full + loaded == full
    assert not any(empty.by(column) for column in empty.by_names)
    with pytest.raises(sc.InputError, match="the table has no rows"):
        _ = empty["p"].smece


@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas", "lazy", "stream", "dask"])
@pytest.mark.parametrize("options", [{}, {"by": "c"}, {"by": "c", "groups": "c"}])
def test_set_of_weights_that_are_all_0_adds_as_zero_and_is_saved(
    tmp_path: Path, kind: str, options: dict[str, Any]
) -> None:
    rows = ROWS.assign(w=0.0)
    source: Any = tmp_path / f"zeros.{kind}"
    if kind == "csv":
        rows.to_csv(source, index=False)
    elif kind == "parquet":
        pq.write_table(pa.Table.from_pandas(rows), source)
    else:
        source = {
            "pandas": rows,
            "lazy": pl.from_pandas(rows).lazy(),
            "stream": pa.Table.from_pandas(rows).to_reader(),
            "dask": dd.from_pandas(rows, npartitions=2),  # type: ignore[no-untyped-call]
        }[kind]
    columns: dict[str, Any] = {"y_true": "y", "y_prob": "p", "sample_weight": "w", **options}
    zeros, full = sc.scan(source, **columns), sc.scan(ROWS.assign(w=2.0), **columns)
    zeros.save(tmp_path / "zeros.softcal")
    assert (zeros.n, zeros.about.rows_without_weight) == (0, 3)
    both = sc.load(tmp_path / "zeros.softcal") + full
    assert (both.n, both.about.rows_without_weight) == (3, 3)
    assert both["p"].smece == full["p"].smece
    with pytest.raises(sc.InputError, match="the table has no rows"):
        _ = zeros["p"].smece


def test_day_of_weights_that_are_all_0_is_saved_and_watched(tmp_path: Path) -> None:
    saved = []
    for date, weight in (("2026-05-01", 0), ("2026-05-02", 1)):
        path = tmp_path / f"{date}.csv"
        ROWS.assign(w=weight).to_csv(path, index=False)
        saved.append(path.with_suffix(".softcal"))
        columns = ("--label", "y", "--pred", "p", "--weight", "w")
        done = softcal_here("scan", path, *columns, "-o", saved[-1], "--date", date)
        assert done.returncode == 0, done.stderr
        if not weight:
            assert "0 rows (3 more with weight 0)" in done.stdout
            for line in (("score", path, *columns), ("score", saved[0]), ("merge", saved[0])):
                said = softcal_here(*line).stderr
                assert "w must have a positive value somewhere: all 3 are 0" in said
    found = softcal_here("watch", *saved, "--max-weight", 1, "--format", "json")
    assert [day["n"] for day in json.loads(found.stdout)["days"]] == [0, 3]
    assert "3 rows" in softcal_here("merge", *saved).stdout


def test_rows_that_are_all_dropped_are_still_refused() -> None:
    frame = pd.DataFrame({"y": [None, 1.0], "p": [0.5, None]})
    with pytest.raises(sc.InputError, match="leaves nothing to measure"):
        sc.scan(frame, y_true="y", y_prob="p", drop_missing=True)


@pytest.fixture
def days(tmp_path: Path) -> list[Path]:
    """Save an empty day, a day with rows, and an empty day."""
    saved = []
    for date, rows in (("2026-05-01", EMPTY), ("2026-05-02", ROWS), ("2026-05-03", EMPTY)):
        path = tmp_path / f"{date}.csv"
        rows.to_csv(path, index=False)
        saved.append(path.with_suffix(".softcal"))
        line = ("scan", path, "--label", "y", "--pred", "p", "--by", "c", "-o", saved[-1])
        printed = softcal_here(*line, "--date", date)
        assert f"{len(rows)} rows, 1 model, by c" in printed.stdout, printed.stderr
    return saved


def test_watch_counts_an_empty_day_as_a_look_without_data(days: list[Path]) -> None:
    found = softcal_here("watch", *days, "--by", "c", "--format", "json")
    assert found.returncode == 0, found.stderr
    card = json.loads(found.stdout)
    assert [day["n"] for day in card["days"]] == [0, 3, 0]
    assert [day["streams"][0]["smece_new"] for day in card["days"]][::2] == [None, None]
    first, second, third = (day["log_evidence"] for day in card["days"])
    assert first == 0
    assert second == third


def test_segments_after_an_empty_day_are_not_late(days: list[Path]) -> None:
    late, alone = sc.Watch(by="c"), sc.Watch(by="c")
    late.update(sc.load(days[0]))
    for watch in (late, alone):
        watch.update(sc.load(days[1]))
    assert late._shares == alone._shares


def test_watch_of_empty_days_only(days: list[Path], tmp_path: Path) -> None:
    printed = softcal_here("watch", days[0], days[2], "-o", tmp_path / "page.html")
    assert "No alarm, and no rows so far." in printed.stdout
    assert "nan" not in text_of_page(tmp_path / "page.html")


def test_other_commands_refuse_data_without_rows(days: list[Path]) -> None:
    rows, columns = days[0].with_suffix(".csv"), ("--label", "y", "--pred", "p")
    for line in (
        ("score", rows, *columns),
        ("score", days[0]),
        ("compare", rows, *columns, "--pred", "q"),
        ("recalibrate", rows, *columns, "-o", rows.with_name("map.json")),
        ("watch", rows, *columns, "--day", "c"),
        ("merge", days[0], days[2]),
    ):
        assert "the source has no rows, so there is nothing" in softcal_here(*line).stderr, line
    assert "3 rows" in softcal_here("merge", *days).stdout
