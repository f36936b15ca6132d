"""`softcal scan`, and every command on rows and on saved tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import assert_same_card
from same_tables import assert_same_set

import softcal as sc
from softcal import cli
from softcal.table import files

MODELS = ("--pred", "p", "--pred", "q", "--pred", "r")
TWO = MODELS[:4]


def written(folder: Path, n: int = 900) -> Path:
    """Write rows of three models as two files with several row groups each."""
    rng = np.random.default_rng(14)
    p = rng.random(n)
    m = rng.integers(1, 6, n)
    columns = {
        "y": rng.binomial(m, p**1.2) / m, "p": p, "q": p**2, "r": p**1.2, "m": m,
        "w": rng.integers(0, 3, n), "g": rng.integers(0, 300, n),
        "site": rng.choice(np.array(["a", "b", None]), n), "day": rng.integers(8, 12, n),
    }  # fmt: skip
    folder.mkdir(exist_ok=True)
    for k, part in enumerate((slice(0, n // 3), slice(n // 3, None))):
        table = pa.table({name: values[part] for name, values in columns.items()})
        pq.write_table(table, folder / f"{k}.parquet", row_group_size=150)
    return folder


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("rows"))


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    code = cli.run([str(each) for each in arguments])
    out, err = capsys.readouterr()
    assert code == 0, err
    return out


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert cli.run([str(each) for each in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    return err


def card(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(capsys, *arguments, "--format", "json"))
    return found


@pytest.mark.parametrize("many", [1, 10**9])  # entries: saved as Parquet, or as JSON
@pytest.mark.parametrize(
    ("command", "columns"),
    [
        (("score",), MODELS),
        (("score", "--bins", "15", "--level", "0.9"), MODELS),
        (("score",), (*MODELS, "--by", "site", "--by", "day", "--votes", "m")),
        (("score",), (*MODELS, "--by", "site", "--group", "g", "--weight", "w")),
        (("compare",), TWO),
        (("compare",), (*TWO, "--by", "site", "--weight", "w")),
        (("compare",), (*MODELS, "--by", "day", "--by", "site", "--votes", "m")),
        (("compare", "--bins", "20"), (*MODELS, "--group", "g", "--by", "site")),
    ],
)
def test_rows_and_saved_tables_give_the_same_result(
    command: tuple[str, ...], columns: tuple[str, ...], many: int, rows: Path,
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(files, "MANY", many)
    saved = tmp_path / "week.softcal"
    run(capsys, "scan", rows, "--label", "y", *columns, "-o", saved)
    assert (saved.read_bytes()[:4] == b"PAR1") == (many == 1)
    name, *options = command
    by = [x for k in range(len(columns)) if columns[k] == "--by" for x in columns[k : k + 2]]
    of_rows = card(capsys, name, rows, "--label", "y", *columns, *options)
    assert_same_card(card(capsys, name, saved, *by, *options), of_rows)
    assert_same_card(card(capsys, name, saved, "--label", "y", *columns, *options), of_rows)


def test_plan_from_rows_equals_plan_from_saved_tables(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "pilot.softcal"
    run(capsys, "scan", rows, "--label", "y", "--pred", "p", "--votes", "m", "-o", saved)
    aim = ("plan", "--half-width", "0.02", "--bins", "15")
    of_rows = (rows, "--label", "y", "--pred", "p", "--votes", "m")
    found = card(capsys, *aim, *of_rows)
    assert_same_card(card(capsys, *aim, saved), found)
    without = card(capsys, *aim, *of_rows[:-2])
    assert without["votes"] != found["votes"] or without["items"] != found["items"]


def test_saved_tables_are_added_up(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for k in range(2):
        options = ("--label", "y", *TWO, "--by", "site", "-o", tmp_path / f"{k}.softcal")
        run(capsys, "scan", rows / f"{k}.parquet", *options)
    whole = card(capsys, "score", rows, "--label", "y", *TWO, "--by", "site")
    for data in (tmp_path / "*.softcal",), (tmp_path / "1.softcal", tmp_path / "0.softcal"):
        assert_same_card(card(capsys, "score", *data, "--by", "site"), whole)
    assert_same_card(
        card(capsys, "compare", tmp_path / "?.softcal"),
        card(capsys, "compare", rows, "--label", "y", *TWO),
    )
    (tmp_path / "copy.softcal").write_bytes((tmp_path / "0.softcal").read_bytes())
    assert "have the same content" in refused(capsys, "score", tmp_path / "*.softcal")


def test_scan_prints_summary(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "s.softcal"
    options = ("--label", "y", *TWO, "--by", "site", "--by", "day", "--date", "2026-05-31")
    said = run(capsys, "scan", rows, *options, "-o", saved)
    assert said == f"{rows.name}: 900 rows, 2 models, by site and day. Saved: {saved}\n"
    tables = sc.load(saved)
    assert (tables.about.date, tables.by_names, tables.models) == (
        "2026-05-31",
        ("site", "day"),
        ("p", "q"),
    )
    said = run(capsys, "scan", rows, "--label", "y", "--pred", "p", "-o", saved)
    assert said == f"{rows.name}: 900 rows, 1 model. Saved: {saved}\n"
    assert sc.load(saved).about.date is None


def test_score_save_equals_scan(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--label", "y", *TWO, "--by", "day")
    run(capsys, "score", rows, *options, "--save", tmp_path / "a.softcal")
    run(capsys, "scan", rows, *options, "-o", tmp_path / "b.softcal")
    assert_same_set(sc.load(tmp_path / "a.softcal"), sc.load(tmp_path / "b.softcal"))
    run(capsys, "score", tmp_path / "a.softcal", "--pred", "q", "--save", tmp_path / "c.softcal")
    assert sc.load(tmp_path / "c.softcal").models == ("q",)


def test_options_select_from_saved_tables(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "s.softcal"
    options = ("--label", "y", *MODELS, "--weight", "w", "--votes", "m", "--by", "day")
    run(capsys, "scan", rows, *options, "-o", saved)
    found = card(capsys, "score", saved, "--pred", "r", "--pred", "p", "--bins", "25")
    assert [model["pred"] for model in found["models"]] == ["r", "p"]
    assert (found["bins"], "by" in found) == (25, False)
    for wrong, message in (
        (("--label", "q"), "--label must be as in the saved tables, which were made with 'y'"),
        (("--weight", "m"), "--weight must be as in the saved tables, which were made with 'w'"),
        (("--group", "g"), "--group must be as in the saved tables, which were made without one"),
        (("--votes", "w"), "--votes must be as in the saved tables, which were made with 'm'"),
        (("--pred", "s"), "the set has no model 's'. It has: 'p', 'q', 'r'"),
        (("--by", "site"), "the set has no segments by 'site'. It has segments by: 'day'"),
        (("--bins", "7"), "Scan the rows again with these bins"),
        (("--level", "2"), "level must be"),
    ):
        assert message in refused(capsys, "score", saved, *wrong)


def test_mixing_rows_and_saved_tables_is_refused(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "s.softcal"
    run(capsys, "scan", rows, "--label", "y", "--pred", "p", "-o", saved)
    said = refused(capsys, "score", saved, rows, "--label", "y", "--pred", "p")
    assert (
        f"pass rows or saved tables, not both: {saved} holds saved tables, {rows} does not" in said
    )
    said = refused(capsys, "scan", saved, "--label", "y", "--pred", "p", "-o", tmp_path / "t")
    assert f"{saved} already holds tables: use `softcal merge` to add up tables" in said
    assert "must not be a file that the command reads" in refused(
        capsys, "score", saved, "--save", saved
    )


def test_invalid_date_is_refused(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--label", "y", "--pred", "p", "-o", tmp_path / "s")
    for date in ("yesterday", "2026-02-30"):
        said = refused(capsys, "scan", rows, *options, "--date", date)
        assert f"--date must be a date such as 2026-05-31: got {date!r}." in said
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("name", ["week.csv", "week.parquet", "week", "week.json"])
@pytest.mark.parametrize("many", [1, 10**9])  # entries: saved as Parquet, or as JSON
def test_saved_tables_are_recognized_by_content(
    name: str, many: int, rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(files, "MANY", many)
    run(capsys, "scan", rows, "--label", "y", "--pred", "p", "-o", tmp_path / name)
    assert card(capsys, "score", tmp_path / name)["n"] == 900


def test_csv_that_starts_with_parquet_magic_is_read_as_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("PAR1,y\n0.5,0.25\n")
    assert card(capsys, "score", path, "--label", "y", "--pred", "PAR1")["n"] == 1


def test_a_saved_table_is_scored_and_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "table.json"
    sc.reliability([0.5, 1.0], [0.25, 0.75]).save(path)
    assert card(capsys, "score", path)["models"][0]["pred"] == "model"
    said = refused(capsys, "compare", path)
    assert "there must be two models or more to compare: got 1." in said


# Segments


def test_missing_segment_values_are_a_segment(
    rows: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--label", "y", *TWO, "--by", "site")
    values = [
        one["value"] for one in card(capsys, "score", rows, *options)["models"][0]["segments"]
    ]
    assert values == ["a", "b", None]
    assert "(missing)" in run(capsys, "score", rows, *options)
    segments = card(capsys, "compare", rows, *options)["segments"]
    assert [one["value"] for one in segments] == values
    assert sum(one["n"] for one in segments) == 900
    assert "site (missing): " in run(capsys, "compare", rows, *options)


def test_several_by_columns_print_one_table_each(
    rows: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--label", "y", *TWO, "--by", "site", "--by", "day")
    found = card(capsys, "score", rows, *options)
    named = [(one["by"], one["value"]) for one in found["models"][0]["segments"]]
    assert named == [
        ("site", "a"), ("site", "b"), ("site", None), ("day", "8"), ("day", "9"), ("day", "10"),
        ("day", "11"),
    ]  # fmt: skip
    shown = run(capsys, "score", rows, *options)
    for title in ("p, by site", "p, by day", "q, by site", "q, by day"):
        assert f"\n{title}\n" in shown
    one = card(capsys, "score", rows, *options[:-2])
    assert_same_card(found["models"][1]["segments"][:3], one["models"][1]["segments"])
    compared = card(capsys, "compare", rows, *options)
    assert [(one["by"], one["value"]) for one in compared["segments"]] == named
    shown = run(capsys, "compare", rows, *options)
    assert "\nday 10: " in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_groups_within_segments_match_library(
    rows: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--label", "y", "--pred", "p", "--group", "g", "--by", "day")
    found = card(capsys, "score", rows, *options)["models"][0]["segments"]
    data = pd.concat([pd.read_parquet(rows / f"{k}.parquet") for k in range(2)])
    for one in found:
        part = data[data.day == int(one["value"])]
        rel = sc.reliability(part.y.to_numpy(), part.p.to_numpy(), groups=part.g.to_numpy())
        interval = sc.smece_interval(rel)
        assert (one["low"], one["high"]) == pytest.approx((interval.low, interval.high), rel=1e-9)


def test_votes_column_can_define_segments(rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = card(capsys, "score", rows, "--label", "y", "--pred", "p", "--votes", "m", "--by", "m")
    assert [one["value"] for one in found["models"][0]["segments"]] == ["1", "2", "3", "4", "5"]


def test_segments_from_text_and_from_numbers_are_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = pd.DataFrame({"y": [0.5] * 6, "p": [0.4] * 6, "m": [1, 2, 3, 3, 2, 3]})
    rows.to_csv(tmp_path / "v.csv", index=False)
    rows.to_parquet(tmp_path / "v.parquet")
    options = ("--label", "y", "--pred", "p", "--by", "m")
    both = (tmp_path / "v.csv", tmp_path / "v.parquet")
    found = card(capsys, "score", *both, *options)["models"][0]["segments"]
    assert [(one["value"], one["n"]) for one in found] == [("1", 2), ("2", 4), ("3", 6)]


def test_segments_are_sorted_numbers_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.csv"
    names = ("10", "nan", "9", "2", "b", "100", "1")
    path.write_text("y,p,s\n" + "".join(f"0.5,0.4,{name}\n" for name in names))
    found = card(capsys, "score", path, "--label", "y", "--pred", "p", "--by", "s")
    values = [one["value"] for one in found["models"][0]["segments"]]
    assert values == ["1", "2", "9", "10", "100", "b", "nan"]


# Comparisons


def test_compare_of_several_files_matches_library(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--label", "y", *TWO, "--weight", "w", "--votes", "m")
    found = card(capsys, "compare", rows, *options)
    data = pd.concat([pd.read_parquet(rows / f"{k}.parquet") for k in range(2)])
    y, p, q, w, m = (data[name].to_numpy() for name in "ypqwm")
    whole = sc.compare(y, {"p": p, "q": q}, sample_weight=w, n_votes=m)
    assert (found["n"], found["rows_without_weight"]) == (np.count_nonzero(w), (w == 0).sum())
    for key in ("difference", "low", "high"):
        assert found["pairs"][0]["smece"][key] == pytest.approx(getattr(whole, key), abs=1e-12)
    empty = tmp_path / "empty.csv"
    empty.write_text("y,p,q,w,m\n")
    assert "no rows" in refused(capsys, "compare", empty, *options)


def test_compare_ranks_more_than_two_models(rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = card(capsys, "compare", rows, "--label", "y", *MODELS)
    assert [model["pred"] for model in found["models"]] == ["r", "p", "q"]
    assert [(pair["a"], pair["b"]) for pair in found["pairs"]] == [
        ("r", "p"),
        ("r", "q"),
        ("p", "q"),
    ]
    pair = dict(found["pairs"][1])
    level = ("--level", str(pair["level"]))
    two = card(capsys, "compare", rows, "--label", "y", "--pred", "r", "--pred", "q", *level)
    assert pair["pvalue_holm"] >= pair["smece"]["pvalue"]
    assert_same_card(pair | {"pvalue_holm": pair["smece"]["pvalue"]}, two["pairs"][0])
    assert found["indistinguishable"] == [["r", "p"]]
    shown = run(capsys, "compare", rows, "--label", "y", *MODELS)
    assert "These data do not show which is better calibrated: r and p." in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_compare_reports_when_all_pairs_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("y,[p],q,r\n" + "0.5,0.6,0.5,0.9\n0.4,0.3,0.5,0.9\n0.6,0.7,0.5,0.9\n" * 300)
    options = ("--label", "y", "--pred", "[p]", "--pred", "q", "--pred", "r")
    assert card(capsys, "compare", path, *options)["indistinguishable"] == []
    shown = run(capsys, "compare", path, *options)
    assert "[p]" in shown
    assert "Every pair of models differs significantly." in shown
