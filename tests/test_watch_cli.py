"""`softcal watch`: days in files or in a column, exit codes, JSON, the figure and the page."""

from __future__ import annotations

import datetime as dt
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
    assert "Alarm on 2026-03-11 for p, country = FR. Since 2026-03-11" in text
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
        assert card["alarm_date"] == cards[0]["alarm_date"] == "2026-03-11"
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
        sc.scan(part, y_true="y", y_prob="p").save(tmp_path / f"{k}.softcal")
    done = softcal_here("watch", tmp_path / "*.softcal", "--format", "json")
    assert dates_of(done) == [str(k) for k in range(20)]


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
    assert "day must have no missing values: 1 of 6000 are NaN or null" in done.stderr
    dropped = watched(tmp_path / "rows.csv", "--drop-missing")
    assert sum(day["n"] for day in json.loads(dropped.stdout)["days"]) == 5999
    sc.scan(rows, y_true="y", y_prob="p", by="day").save(tmp_path / "all.softcal")
    done = softcal_here("watch", tmp_path / "all.softcal", "--day", "day")
    assert "day must have no missing values: 1 of 6,000 rows have none" in done.stderr


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
    assert "Alarm on 2026-03-11" in text
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


# Days in any spelling


def dates_of(done: Any) -> list[str]:
    """Return the dates that a watch printed as JSON, in its order."""
    assert done.returncode < 2, done.stderr
    return [day["date"] for day in json.loads(done.stdout)["days"]]


def watched(data: Any, *options: object) -> Any:
    columns = ("--label", "y", "--pred", "p", "--day", "day", "--format", "json")
    return softcal_here("watch", data, *columns, *options)


def rows_of_days(rng: np.random.Generator, days: Any, each: int = 40) -> Any:
    """Return rows of each day; predictions are 0.25 too high in the second half."""
    p = rng.uniform(size=each * len(days))
    late = np.repeat(np.arange(len(days)) >= len(days) / 2, each)
    y = rng.binomial(3, np.clip(p - 0.25 * late, 0, 1)) / 3
    return pd.DataFrame({"day": np.repeat(np.array(days, dtype=object), each), "p": p, "y": y})


def calendar(count: int) -> list[dt.date]:
    return [dt.date(2015, 12, 28) + dt.timedelta(days=3 * k) for k in range(count)]


def written(rows: Any, path: Path) -> Path:
    """Write rows as the name ends, with a text column of days in a CSV file."""
    if path.suffix == ".parquet":
        rows.to_parquet(path, index=False)
    else:
        rows.sample(frac=1, random_state=0).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_numbered_days_are_watched_in_the_order_of_their_numbers(
    rng: np.random.Generator, tmp_path: Path, suffix: str
) -> None:
    weeks = [*range(1, 13)]
    rows = rows_of_days(rng, weeks)
    done = watched(written(rows.assign(day=rows["day"].astype(int)), tmp_path / f"rows{suffix}"))
    assert dates_of(done) == [str(week) for week in weeks]
    rows["day"] = [f"{day:05.1f}" if k % 2 else str(day) for k, day in enumerate(rows["day"])]
    text = watched(written(rows, tmp_path / f"text{suffix}"))  # 001.0 is 1
    assert dates_of(text) == dates_of(done)
    assert json.loads(text.stdout)["since"] == json.loads(done.stdout)["since"] == "7"


def test_dates_of_a_stated_format_give_what_iso_dates_give(
    rng: np.random.Generator, tmp_path: Path
) -> None:
    days = calendar(20)
    rows = rows_of_days(rng, days)
    iso = watched(written(rows, tmp_path / "iso.csv"))
    assert dates_of(iso) == [day.isoformat() for day in days]
    for day_format in ("%m/%d/%Y", "%d.%m.%y", "%Y%m%d", "%B %d, %Y", "%G-W%V-%u"):
        rows["day"] = [day.strftime(day_format) for day in days for _ in range(40)]
        data = written(rows, tmp_path / "other.csv")
        assert watched(data, "--day-format", day_format).stdout == iso.stdout
        sc.scan(rows, y_true="y", y_prob="p", by="day").save(tmp_path / "other.softcal")
        saved = softcal_here("watch", tmp_path / "other.softcal", "--day", "day", "--format",
                             "json", "--day-format", day_format)  # fmt: skip
        assert dates_of(saved) == dates_of(iso)
        assert json.loads(saved.stdout)["since"] == json.loads(iso.stdout)["since"]


@pytest.mark.parametrize(
    ("days", "options", "said"),
    [
        (["1/1/2016", "12/21/2016", "2/1/2016"], (),
         "day must be either a number or an ISO date such as 2026-05-31: 120 of 120 values are not "
         "clearly one of the two, the first is '1/1/2016' in rows.csv, row 1. Pass their format, such as --day-format '%m/%d/%Y'."),
        (["2016-01-01", "2016-13-01", "2016-01-02"], (), "40 of 120 values are not clearly one of "
         "the two, the first is '2016-13-01' in rows.csv, row 41."),
        (["20160101", "20160102", "20160103"], (), "120 of 120 values are not clearly one of the "
         "two, the first is '20160101'"),
        (["1/1/2016", "21/12/2016"], ("--day-format", "%m/%d/%Y"), "day must be dates in "
         "the format '%m/%d/%Y': 40 of 80 values are not, the first is '21/12/2016' in rows.csv, row 41."),
        (["monday", "tuesday"], (), "80 of 80 values are not clearly one of the two"),
        (["inf", "1e999", "9" * 400, "1_000"], (), "160 of 160 values are not"),
        (["0001-01-01T00:00+05:00"], (), "40 of 40 values are not"),
        (["1", "2", "2016-01-01"], (), "day must be all numbers, all dates, or all times with an "
         "offset from UTC: 40 are dates, the first '2016-01-01'; 80 are numbers, the first '1'."),
        (["2016-01-01T10:00Z", "2016-01-01"], (), "40 are dates, the first '2016-01-01'; 40 are "
         "times with an offset"),
        (["1", "2"], ("--every", "week"), "--every groups dates, but day has numbers"),
        (["1", "2"], ("--day-format", "%m/%d"), "--day-format must state the year and the month"),
        (["1", "2"], ("--day-format", "%Y-%M-%d"), "--day-format must state the year and the "
                                                   "month"),
        (["1", "2"], ("--day-format", "%Y-%W"), "--day-format must state the year and the month"),
        (["1", "2"], ("--day-format", "%Q"), "--day-format must be a format of Python's strptime"),
        (["1", "2"], ("--day-format", "%Y %Y"), "--day-format must be a format of Python's"),
    ],
)  # fmt: skip
def test_days_that_are_not_clear_are_refused(
    rng: np.random.Generator, tmp_path: Path, days: list[str], options: tuple[str, ...], said: str
) -> None:
    rows_of_days(rng, days).to_csv(tmp_path / "rows.csv", index=False)
    done = watched(tmp_path / "rows.csv", *options)
    assert done.returncode == 2
    assert said in done.stderr.replace(f"{tmp_path}/", "")


def test_times_are_grouped_by_day_week_or_month(rng: np.random.Generator, tmp_path: Path) -> None:
    times = [dt.datetime(2025, 12, 29) + dt.timedelta(hours=7 * k) for k in range(200)]
    rows = rows_of_days(rng, times, each=3)
    groups = {
        "day": sorted({time.date().isoformat() for time in times}),
        "week": sorted(
            {(time.date() - dt.timedelta(days=time.weekday())).isoformat() for time in times}
        ),
        "month": ["2025-12", "2026-01", "2026-02"],
    }
    typed = rows.assign(day=rows["day"].astype("datetime64[ns]"))
    for data in (written(rows, tmp_path / "a.csv"), written(typed, tmp_path / "a.parquet")):
        assert dates_of(watched(data)) == groups["day"]
        for every, dates in groups.items():
            assert dates_of(watched(data, "--every", every)) == dates
    shown = softcal_here("watch", data, "--label", "y", "--pred", "p", "--day", "day", "--every",
                         "week")  # fmt: skip
    assert f"{len(groups['week'])} weeks," in shown.stdout
    assert "2025-12-29" in shown.stdout  # a Monday
    tables = sc.scan(rows, y_true="y", y_prob="p", by="day")
    tables.save(tmp_path / "a.softcal")
    saved = softcal_here("watch", tmp_path / "a.softcal", "--day", "day", "--every", "month",
                         "--format", "json")  # fmt: skip
    assert dates_of(saved) == groups["month"]
    assert json.loads(saved.stdout)["days"][0]["n"] == 33


def test_one_day_in_several_spellings_is_one_day(rng: np.random.Generator, tmp_path: Path) -> None:
    days = ["2026-03-02", "2026-03-02T14:30", "20260302T143000", " 2026-03-02 ", "2026-W10-1"]
    done = watched(written(rows_of_days(rng, days), tmp_path / "rows.csv"))
    assert dates_of(done) == ["2026-03-02"]
    months = ["2026-03", "2026-03-01", "2026-04"]
    done = watched(written(rows_of_days(rng, months), tmp_path / "rows.csv"), "--every", "month")
    assert dates_of(done) == ["2026-03", "2026-04"]


def test_offsets_from_utc_are_converted_to_utc(rng: np.random.Generator, tmp_path: Path) -> None:
    east = dt.timezone(dt.timedelta(hours=9))
    times = [dt.datetime(2026, 3, 2, 3, tzinfo=east), dt.datetime(2026, 3, 1, 23, tzinfo=dt.UTC)]
    rows = rows_of_days(rng, [time.isoformat() for time in times])
    assert dates_of(watched(written(rows, tmp_path / "a.csv"))) == ["2026-03-01"]
    typed = rows.assign(day=pd.to_datetime(rows["day"], utc=True).dt.tz_convert("Asia/Tokyo"))
    assert dates_of(watched(written(typed, tmp_path / "a.parquet"))) == ["2026-03-01"]


def test_saved_tables_are_watched_in_the_order_of_time(
    rng: np.random.Generator, tmp_path: Path
) -> None:
    days = calendar(12)
    for k, (day, part) in enumerate(rows_of_days(rng, days).groupby("day")):
        tables = sc.scan(part, y_true="y", y_prob="p", date=day.strftime("%m/%d/%Y"))
        tables.save(tmp_path / f"{k:02d}.softcal")
    every = tmp_path / "*.softcal"
    done = softcal_here("watch", every)
    assert done.returncode == 2
    assert (
        "the date of a saved table, or else its name, must be either a number or an ISO date such "
        "as 2026-05-31: 12 of 12 values are not clearly one of the two, the first is '12/28/2015' "
        "of " in done.stderr
    )
    stated = ("watch", every, "--day-format", "%m/%d/%Y", "--format", "json")
    assert dates_of(softcal_here(*stated)) == [day.isoformat() for day in days]
    months = softcal_here(*stated, "--every", "month")
    assert dates_of(months) == ["2015-12", "2016-01"]
    assert json.loads(months.stdout)["days"][0]["n"] == 80


def test_one_day_in_two_spellings_of_saved_tables_is_refused(rows: Any, tmp_path: Path) -> None:
    for k, day in enumerate(("2026-03-01", "2026-03-01T00:00")):
        sc.scan(rows, y_true="y", y_prob="p", date=day).save(tmp_path / f"{k}.softcal")
    done = softcal_here("watch", tmp_path / "*.softcal")
    assert done.returncode == 2
    assert "are both of 2026-03-01: merge" in done.stderr


def test_scan_saves_a_date_that_watch_takes(rows: Any, tmp_path: Path) -> None:
    rows.to_csv(tmp_path / "rows.csv", index=False)
    columns = ("--label", "y", "--pred", "p", "-o", tmp_path / "day.softcal")
    softcal_here("scan", tmp_path / "rows.csv", *columns, "--date", "20260302")
    done = softcal_here("watch", tmp_path / "day.softcal", "--format", "json")
    assert dates_of(done) == ["2026-03-02"]


# Days with few rows


def test_terminal_page_and_json_of_days_with_few_rows(
    rng: np.random.Generator, tmp_path: Path
) -> None:
    start = dt.date(2024, 1, 1)  # a Monday
    days = [start + dt.timedelta(k) for k in range(364)]
    data, page = (
        written(rows_of_days(rng, days, each=4), tmp_path / "rows.csv"),
        tmp_path / "w.html",
    )
    columns = ("--label", "y", "--pred", "p", "--day", "day")
    done = softcal_here("watch", data, *columns, "-o", page, "--plot", tmp_path / "w.svg")
    card = json.loads(watched(data).stdout)
    assert (len(card["days"]), len(card["weeks"])) == (364, 52)
    week = card["weeks"][-1]
    assert (week["date"], week["n"]) == ("2024-12-23", 28)
    shown = f"{week['streams'][0]['smece_new']:.4f}"
    html = page.read_text(encoding="utf-8")
    assert shown in done.stdout
    assert f"<td>{shown}</td>" in html
    assert "38 earlier weeks" in html
    for text in (done.stdout, html):
        assert "Days have fewer than 30 rows on average, so weeks are shown." in " ".join(
            text.split()
        )
    since = card["error_since"]
    assert since["low"] < since["smece"] < since["high"]
    error = f"SMECE {since['smece']:.4f} ({since['low']:.4f} to {since['high']:.4f})"
    assert error in " ".join(done.stdout.split())
    assert f"{since['smece']:.4f}" in html
    lines = [line for line in done.stdout.splitlines() if line.startswith("2024-")]
    assert 20 < len(lines) <= 22  # the last weeks, and those of the change and of the alarm
    marked = {dt.date.fromisoformat(card[name]) for name in ("since", "alarm_date")}
    mondays = {line[:10] for line in lines}
    assert {(day - dt.timedelta(day.weekday())).isoformat() for day in marked} <= mondays
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_stated_days_are_shown_although_they_have_few_rows(
    rng: np.random.Generator, tmp_path: Path
) -> None:
    days = [dt.date(2024, 1, 1) + dt.timedelta(k) for k in range(60)]
    data, page = (
        written(rows_of_days(rng, days, each=4), tmp_path / "rows.csv"),
        tmp_path / "w.html",
    )
    columns = ("--label", "y", "--pred", "p", "--day", "day", "--every", "day")
    done = softcal_here("watch", data, *columns, "-o", page)
    assert "60 days," in done.stdout
    assert "weeks" not in done.stdout + page.read_text(encoding="utf-8")
    assert json.loads(watched(data, "--every", "day").stdout)["weeks"] == []
