"""`softcal watch`: days in files or in a column, exit codes, JSON, the figure and the page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from command_line import softcal_here
from hostile import NAMES

import softcal as sc

if TYPE_CHECKING:
    from pathlib import Path

COUNTRIES = ("DE", "FR", "US")


@pytest.fixture
def rows(rng: np.random.Generator) -> Any:
    """Twenty days of rows; from day 11 on predictions for FR are 0.3 too high."""
    parts = []
    for day in range(1, 21):
        p = rng.uniform(size=300)
        country = rng.choice(COUNTRIES, 300)
        off = 0.3 * (day >= 11) * (country == "FR")
        y = rng.binomial(3, np.clip(p - off, 0, 1)) / 3
        date = f"2026-03-{day:02d}"
        parts.append(pd.DataFrame({"day": date, "country": country, "p": p, "y": y}))
    return pd.concat(parts)


@pytest.fixture
def days(rows: Any, tmp_path: Path) -> Any:
    for date, part in rows.groupby("day"):
        tables = sc.scan(part, y_true="y", y_prob="p", by="country", date=date)
        tables.save(tmp_path / f"{date}.softcal")
    return tmp_path / "*.softcal"


def test_alarm_exits_with_1_and_names_start_and_segment(days: Any) -> None:
    done = softcal_here("watch", days, "--by", "country")
    text = " ".join(done.stdout.split())
    assert done.returncode == 1
    assert "Alarm on 2026-03-12 for p, country = FR. Since 2026-03-11" in text
    assert "predictions are too high" in text
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_calibrated_days_exit_with_0(rows: Any, tmp_path: Path) -> None:
    quiet = rows[rows["country"] != "FR"]
    quiet.to_csv(tmp_path / "rows.csv", index=False)
    done = softcal_here(
        "watch", tmp_path / "rows.csv", "--label", "y", "--pred", "p", "--day", "day"
    )
    assert done.returncode == 0
    assert "No alarm." in done.stdout
    assert "ALARM" not in done.stdout


def test_days_in_a_column_give_what_days_in_files_give(
    rows: Any, days: Any, tmp_path: Path
) -> None:
    rows.to_csv(tmp_path / "rows.csv", index=False)
    columns = ("--label", "y", "--pred", "p", "--day", "day", "--by", "country")
    from_rows = softcal_here("watch", tmp_path / "rows.csv", *columns, "--format", "json")
    from_files = softcal_here("watch", days, "--by", "country", "--format", "json")
    tables = sc.scan(rows, y_true="y", y_prob="p", by=["day", "country"])
    tables.save(tmp_path / "all.tables")
    of_set = softcal_here(
        "watch", tmp_path / "all.tables", "--day", "day", "--by", "country", "--format", "json"
    )
    cards = [json.loads(done.stdout) for done in (from_rows, from_files, of_set)]
    for card in cards[1:]:
        assert card["alarm_date"] == cards[0]["alarm_date"] == "2026-03-12"
        for one, other in zip(card["days"], cards[0]["days"], strict=True):
            assert one["log_evidence"] == pytest.approx(other["log_evidence"], abs=1e-9)


def test_files_may_come_in_any_order_and_days_may_be_missing(days: Any) -> None:
    paths = sorted(days.parent.glob("*.softcal"))
    chosen = paths[::-3]
    done = softcal_here("watch", *chosen, "--format", "json")
    card = json.loads(done.stdout)
    assert [day["date"] for day in card["days"]] == sorted(path.stem for path in chosen)
    watch = sc.Watch()
    state = [watch.update(sc.load(path)) for path in sorted(chosen)][-1]
    assert card["days"][-1]["pvalue"] == pytest.approx(state.pvalue, rel=1e-12)


def test_one_day_in_two_files_is_refused(days: Any) -> None:
    first = min(days.parent.glob("*.softcal"))
    copy = first.with_name("again.softcal")
    copy.write_bytes(first.read_bytes())
    done = softcal_here("watch", first, copy)
    assert done.returncode == 2
    assert "are both of 2026-03-01" in done.stderr
    assert "softcal merge" in done.stderr


def test_files_without_a_date_are_named_by_their_file(rows: Any, tmp_path: Path) -> None:
    for k, (_, part) in enumerate(rows.groupby("day")):
        sc.scan(part, y_true="y", y_prob="p").save(tmp_path / f"week {k:02d}.softcal")
    done = softcal_here("watch", tmp_path / "*.softcal", "--format", "json")
    assert json.loads(done.stdout)["days"][0]["date"] == "week 00"


def test_rows_without_a_column_of_dates_are_refused(rows: Any, tmp_path: Path) -> None:
    rows.to_csv(tmp_path / "rows.csv", index=False)
    done = softcal_here("watch", tmp_path / "rows.csv", "--label", "y", "--pred", "p")
    assert done.returncode == 2
    assert "--day COL" in done.stderr


def test_rows_without_a_date_are_refused(rows: Any, tmp_path: Path) -> None:
    rows.iloc[3, 0] = None
    rows.to_csv(tmp_path / "rows.csv", index=False)
    done = softcal_here(
        "watch", tmp_path / "rows.csv", "--label", "y", "--pred", "p", "--day", "day"
    )
    assert done.returncode == 2
    assert "some rows have no value in 'day'" in done.stderr


def test_many_segments_are_cut_and_counted(rows: Any, tmp_path: Path) -> None:
    rows["site"] = [f"site {k % 14}" for k in range(len(rows))]
    rows.to_csv(tmp_path / "rows.csv", index=False)
    done = softcal_here(
        "watch", tmp_path / "rows.csv", "--label", "y", "--pred", "p", "--day", "day",
        "--by", "site",
    )  # fmt: skip
    assert "4 more have less evidence" in done.stdout


def test_figure_and_page_are_written_and_hold_hostile_names_as_text(
    rows: Any, tmp_path: Path
) -> None:
    name = NAMES[0]
    rows = rows.rename(columns={"p": "<script>alert(1)</script>"})
    rows["country"] = rows["country"].replace("FR", name)
    for date, part in rows.groupby("day"):
        tables = sc.scan(
            part, y_true="y", y_prob="<script>alert(1)</script>", by="country", date=date
        )
        tables.save(tmp_path / f"{date}.softcal")
    page, figure = tmp_path / "watch.html", tmp_path / "trend.svg"
    done = softcal_here(
        "watch", tmp_path / "*.softcal", "--by", "country", "-o", page, "--plot", figure
    )
    assert done.returncode == 1
    text = page.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "Alarm on 2026-03-12" in text
    assert "6 earlier updates" in text
    assert figure.read_text(encoding="utf-8").startswith("<?xml")


def test_page_of_few_days_without_alarm_has_no_fold(rows: Any, tmp_path: Path) -> None:
    rows.head(600).to_csv(tmp_path / "rows.csv", index=False)
    page = tmp_path / "watch.html"
    softcal_here(
        "watch", tmp_path / "rows.csv", "--label", "y", "--pred", "p", "--day", "day", "-o", page
    )
    text = page.read_text(encoding="utf-8")
    assert "No alarm" in text
    assert "earlier updates" not in text
    assert "<h2>Segments</h2>" not in text


def test_page_must_be_named_html(days: Any, tmp_path: Path) -> None:
    done = softcal_here("watch", days, "-o", tmp_path / "watch.pdf")
    assert done.returncode == 2
    assert "must end in .html" in done.stderr


def test_pattern_without_files_is_named(tmp_path: Path) -> None:
    done = softcal_here("watch", tmp_path / "none" / "*.softcal")
    assert done.returncode == 2
    assert "no data in" in done.stderr
