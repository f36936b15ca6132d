"""The report: its text, its tables, and the escaping of data."""

from __future__ import annotations

import itertools
import json
import math
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import pytest
import vl_convert
from command_line import assert_same_card, softcal_here
from same_tables import assert_same_table

import softcal as sc
from softcal import cli
from softcal._validation.inputs import Coded, Names, Rows
from softcal.bins import Bins
from softcal.cards.verdict import verdict
from softcal.datasets import lidc_malignancy
from softcal.inference.routing import RouteOptions
from softcal.report.charts import charts, vega_script
from softcal.report.commands import Commands, commands_of
from softcal.report.page import MAX_SEGMENTS, in_order
from softcal.report.watch import write_watch_page
from softcal.scanning.sample import Sample

HOSTILE = "<script>alert(1)</script>\"'&"


def written(path: Path, *arguments: Any, **options: Any) -> str:
    sc.write_report(path / "report.html", *arguments, **options)
    return (path / "report.html").read_text(encoding="utf-8")


def data_in(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', page)
    assert found is not None
    loaded: dict[str, Any] = json.loads(found[1])
    return loaded


def verdict_of(y: Any, p: Any, bins: int = 10, *, level: float = 0.95, **options: Any) -> Any:
    soft = sc.reliability(y, p, bins=Bins.grid(bins), n_votes=options.pop("n_votes", None))
    return verdict(soft, soft.hardened(), Bins.of(bins), level, **options)


def all_words(found: Any) -> str:
    return " ".join([found.headline, *found.sentences, found.next_step])


class Reader(HTMLParser):
    """Collect the visible text, the tags, and every address a browser might follow."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.tags: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [v or "" for k, v in attrs if k in ("src", "href", "action", "data")]

    def handle_data(self, data: str) -> None:
        self.text += data


def text_of(page: str) -> str:
    reader = Reader()
    reader.feed(page)
    return reader.text


@pytest.fixture
def uniform(rng: np.random.Generator) -> np.ndarray[Any, Any]:
    return rng.random(20_000)


def test_verdict_names_direction_of_error(uniform: np.ndarray[Any, Any]) -> None:
    p = uniform
    toward_the_middle = 0.5 + (p - 0.5) * 0.7
    assert verdict_of(toward_the_middle, p).headline == "overconfident"
    assert verdict_of(p, toward_the_middle).headline == "underconfident"
    assert verdict_of(np.clip(p - 0.1, 0, 1), p).headline == "too high"
    assert verdict_of(np.clip(p + 0.1, 0, 1), p).headline == "too low"


def test_gaps_that_cancel_in_each_half_have_no_direction(uniform: np.ndarray[Any, Any]) -> None:
    p = uniform
    wave = np.clip(p + 0.05 * np.where(np.floor(10 * p) % 2, 1, -1), 0, 1)
    wave[p < 0.1], wave[p > 0.9] = p[p < 0.1], p[p > 0.9]
    found = verdict_of(wave, p)
    assert found.headline == "miscalibrated"
    assert "miscalibrated, in no clear direction" in found.sentences[0]
    assert found.sentences[1].count("no clear direction") == 2
    assert [round(bin_.left, 1) for bin_ in sorted(found.bins)] == [k / 10 for k in range(1, 9)]


def test_opposite_errors_in_both_halves_are_named(rng: np.random.Generator) -> None:
    p = np.repeat([0.3, 0.7], [19_000, 1_000])
    y = p + np.where(p < 0.5, 0.005, -0.095) + rng.uniform(-0.05, 0.05, p.size)
    assert verdict_of(y, p).headline == "too low below 0.5 and too high above 0.5"
    p = np.repeat([0.3, 0.7], [17_000, 3_000])
    y = p + np.where(p < 0.5, 0.0035 + np.tile([-0.29, 0.29], 10_000), -0.03)
    assert verdict_of(y, p).headline == "too high above 0.5"


def test_too_high_top_label_probability_is_overconfident(
    uniform: np.ndarray[Any, Any],
) -> None:
    p = uniform
    found = verdict_of(np.clip(p - 0.1, 0, 1), p, top_label=True)
    assert found.headline == "overconfident"
    assert "Against the majority class" in all_words(found)
    toward_the_middle = 0.5 + (p - 0.5) * 0.7
    p = p[(p > 0.25)]
    found = verdict_of(toward_the_middle[uniform > 0.25], p, top_label=True)
    assert found.headline == "overconfident"
    assert "below 0.5 (33% of the rows), it is" in found.sentences[1]
    assert "percentage points too low on average" in found.sentences[1]


def test_halves_are_named_by_their_dividing_edge() -> None:
    p = np.repeat([0.2, 0.8], 50)
    assert "Where the model predicts below 0.495 (50% of the rows)" in all_words(
        verdict_of(p - 0.1, p, bins=101)
    )


def test_rare_predictions_are_too_high_rather_than_underconfident(
    uniform: np.ndarray[Any, Any],
) -> None:
    p = 0.2 * uniform
    assert verdict_of(p / 2, p).headline == "too high"


def test_undetected_verdict_gives_upper_limit_of_smece(
    rng: np.random.Generator,
) -> None:
    p = rng.random(1000)
    found = verdict_of((rng.random(1000) < p).astype(float), p)
    assert found.state == "undetected"
    assert found.headline == "no miscalibration detected"
    high = f"{found.interval.high:.3f}"
    assert found.sentences[0] == (
        f"No miscalibration detected; SMECE could be as large as {high} with 1,000 rows."
    )
    assert "no reason to recalibrate" in found.next_step


def test_small_error_that_the_test_finds_has_an_interval_above_0() -> None:
    """Issue 13 and 27: the interval must not include 0 if the model is called miscalibrated."""
    rng = np.random.default_rng(125)
    p = rng.random(400)
    found = verdict_of(rng.beta(4 * p, 4 * (1 - p)), p)
    assert round(found.pvalue, 3) == 0.028
    assert (found.state, found.size) == (
        "miscalibrated",
        "SMECE 0.024, 95% interval 0.001 to 0.037",
    )
    words = all_words(found)
    for claim in ("right on average", "before you use them", "too high", "too low"):
        assert claim not in words


def test_few_rows_that_the_test_rejects_have_an_unclear_size() -> None:
    rng = np.random.default_rng(235)
    p = rng.random(60)
    found = verdict_of((rng.random(60) < p).astype(float), p)
    assert found.pvalue < 0.005
    assert 0 < found.interval.low < 0.02
    assert (found.state, found.severity) == ("miscalibrated", "off, size unclear")


def test_opposite_bins_are_named() -> None:
    """Issue 13: both halves were called right, although one bin is 10 points too high."""
    nodules = lidc_malignancy()
    y, p = nodules["soft_malignant"], nodules["prob_lr_geometry"]
    repaired = sc.calibrators.PlattCalibrator().fit(p, y).predict(p)
    found = verdict_of(y, repaired, n_votes=nodules["n_readers"])
    assert "right on average" not in all_words(found)
    assert found.state == "miscalibrated"
    assert {round(bin_.left, 1): round(bin_.mean.gap, 3) for bin_ in found.bins} == {
        0.8: 0.103,
    }  # fmt: skip
    assert found.sentences[1].count("no clear direction") == 2
    assert "1 of 10 bins stands out" in found.sentences[2]


def test_gaps_above_one_half_that_cancel_exactly_are_named() -> None:
    p = np.repeat([0.25, 0.65, 0.75], 400)
    y = p + np.repeat([0.0, 0.143, -0.143], 400) + np.tile([-0.1, 0.1], 600)
    found = verdict_of(y, p)
    assert found.headline == "miscalibrated"
    assert [(bin_.left, round(bin_.mean.gap, 3)) for bin_ in sorted(found.bins)] == [
        (0.6, -0.143), (0.7, 0.143),
    ]  # fmt: skip


def test_interval_without_significant_test_includes_0() -> None:
    rng = np.random.default_rng(742)
    p = rng.random(1000)
    found = verdict_of(rng.binomial(5, p) / 5, p, n_votes=np.full(1000, 5))
    assert (found.interval.low, found.headline) == (0, "no miscalibration detected")
    assert round(found.pvalue, 3) == 0.204


def test_bins_that_smece_does_not_confirm_are_named_as_such() -> None:
    rng = np.random.default_rng(22)
    p = rng.random(400)
    found = verdict_of(rng.beta(4 * p, 4 * (1 - p)), p)
    assert found.state == "borderline"
    assert "o miscalibration detected" not in all_words(found)
    assert "1 of 10 bins stands" in found.sentences[1]
    assert "SMECE as a whole does not confirm" in found.sentences[1]
    assert len(found.bins) == 1


@pytest.mark.parametrize("labels", ["hard", "votes", "soft"])
def test_a_verdict_claims_nothing_its_intervals_do_not_support(
    labels: str, rng: np.random.Generator
) -> None:
    states = set()
    for level, n, shift, slope in itertools.product(
        (0.8, 0.95), (1, 2, 10, 60, 300, 3000), (-0.1, 0, 0.02, 0.1), (0.5, 1, 1.5)
    ):
        p = rng.beta(rng.choice([0.5, 1, 3]), rng.choice([0.5, 1, 3]), n)
        truth = np.clip(0.5 + slope * (p - 0.5) - shift, 0, 1)
        y = {
            "hard": (rng.random(n) < truth).astype(float),
            "votes": rng.binomial(5, truth) / 5,
            "soft": np.clip(truth + rng.normal(0, 0.1, n), 0, 1),
        }[labels]
        n_votes = np.full(n, 5) if labels == "votes" else None
        found = verdict_of(y, p, level=level, n_votes=n_votes)
        fine = sc.reliability(y, p, bins=Bins.grid(10), n_votes=n_votes)
        rel = fine.coarsen(10)
        interval = sc.smece_interval(rel, level=level)
        rejected = sc.calibration_test(rel).pvalue < 1 - level
        states.add(found.state)
        words = all_words(found)
        assert (found.state == "miscalibrated") == (interval.low > 0 and rejected)
        assert (found.state == "undetected") <= (interval.low == 0 and not rejected)
        assert ("No miscalibration detected" in words) <= (interval.low == 0)
        assert (found.state == "undecided") == (interval.low == 0 and interval.high > 0.1)
        urgent = found.state == "miscalibrated" and interval.low >= 0.02
        assert ("before you use them" in words) <= urgent
        assert ("Use these probabilities: " in found.next_step) <= (interval.high <= 0.02)
        assert "right on average" not in words
        # Exactly the bins that stand out are named.
        low, high = sc.gap_intervals(rel, level=level, simultaneous=True)
        excluding = np.flatnonzero((low > 0) | (high < 0))
        if found.state == "undecided":
            excluding = excluding[:0]
        assert sorted((bin_.left, bin_.mean.low, bin_.mean.high) for bin_ in found.bins) == [
            (k / 10, low[k], high[k]) for k in excluding
        ]
        assert ("No single bin stands out" in words) == (
            found.state != "undecided" and not excluding.size
        )
        # Each direction has an interval that excludes 0, and is stated of a miscalibrated model.
        (low,), (high,) = sc.gap_intervals(fine.coarsen(1), level=level)
        halves = sc.gap_intervals(fine.coarsen(2), level=level, simultaneous=True)
        below, above = np.transpose(halves).tolist()
        supported = {
            "too high": low > 0, "too low": high < 0,
            "overconfident": below[1] < 0 < above[0], "underconfident": above[1] < 0 < below[0],
            "too high below 0.5": below[0] > 0, "too low below 0.5": below[1] < 0,
            "too high above 0.5": above[0] > 0, "too low above 0.5": above[1] < 0,
        }  # fmt: skip
        if found.state == "miscalibrated":
            assert found.headline == "miscalibrated" or all(
                supported[claim] for claim in found.headline.split(" and ")
            )
            for name, (lowest, highest) in (("below", below), ("above", above)):
                said = re.search(rf"predicts {name} 0\.5 \([^)]*\), it is .*? too (\w+)", words)
                if said:
                    assert lowest > 0 if said[1] == "high" else highest < 0
        else:
            assert not re.search("too high|too low|overconfident|underconfident", words)
    assert states >= {"miscalibrated", "undecided", "undetected"}


@pytest.mark.parametrize("tolerance", [0.0, 0.005, 0.02, 0.15])
def test_severity_compares_the_interval_with_the_tolerance(
    tolerance: float, rng: np.random.Generator
) -> None:
    found = set()
    for n, shift in itertools.product((3, 30, 300, 3000, 30_000), (0, 0.003, 0.008, 0.03, 0.2)):
        p = rng.uniform(0.25, 0.75, n)
        y = np.clip(p - shift + rng.normal(0, 0.05, n), 0, 1)
        judged = verdict_of(y, p, tolerance=tolerance)
        low, high = judged.interval.low, judged.interval.high
        expected = {
            "material": low > tolerance,
            "small": 0 < low <= tolerance and high <= 2 * tolerance,
            "none shown": low == 0 and high <= tolerance,
        }
        assert sum(expected.values()) <= 1
        otherwise = "off, size unclear" if judged.state == "miscalibrated" else "undecided"
        assert judged.severity == next(
            (name for name, holds in expected.items() if holds), otherwise
        )
        found.add(judged.severity)
        # No words contradict the severity.
        words = all_words(judged)
        assert ("Use these probabilities" in words) <= (0 < high <= tolerance or high == 0)
        assert ("before you use them" in words) <= (low >= tolerance)
        assert (judged.headline == "undecided") <= (judged.severity == "undecided")
        assert judged.severity in judged.title
        assert judged.title.count("undecided") <= 1
        assert "too few" not in words + judged.title
    possible = {"material", "small", "none shown", "undecided", "off, size unclear"}
    assert found >= (possible - {"off, size unclear"} if tolerance else {"material", "undecided"})
    assert found <= possible


@pytest.mark.parametrize("tolerance", [-0.1, 1.0, math.nan])
def test_tolerance_must_be_a_share(tolerance: float, tmp_path: Path) -> None:
    with pytest.raises(sc.InputError, match="tolerance must be at least 0 and below 1"):
        written(tmp_path, [0.2, 0.9], {"p": [0.3, 0.8]}, tolerance=tolerance)


def test_first_page_states_data_and_severity(tmp_path: Path) -> None:
    p = np.array([0.0, 1e-9, 0.2, 0.4, 1.0] * 40)
    y = np.clip(p + 0.2, 0, 1)
    page = written(tmp_path, y, {"model": p}, n_votes=np.full(200, 5), tolerance=0.03)
    first = before_the_diagram(page)
    assert f"200 rows with 1,000 votes, mean label {y.mean():.4f}." in first
    assert f"Mean prediction: {p.mean():.4f}. Predictions of 0 and of 1: 80 and 40" in first
    assert "Material: the interval lies above 0.03." in first
    assert '<strong class="verdict material">material, too low</strong>' in page
    grouped = written(tmp_path, y, {"model": p}, groups=np.arange(200) // 2)
    assert "80 and 40 within 0.000001" in before_the_diagram(grouped)


def before_the_diagram(page: str) -> str:
    """Return the visible text above the reliability diagram."""
    shown = page[page.index("<body>") : page.index('<h2 id="diagram-title">')]
    return " ".join(text_of(shown).split())


def cards_of(page: str) -> list[str]:
    """Return the visible text of each answer card."""
    found = re.findall(r'<article class="card [\w-]+">(.*?)</article>', page, re.DOTALL)
    return [" ".join(text_of(re.sub("</d[dt]>", " ", each)).split()) for each in found]


def commands_in(card: str) -> list[str]:
    return re.findall(r"softcal (?:recalibrate|audit|plan) .*?(?= Why)", card)


def test_each_card_answers_before_the_diagram(tmp_path: Path) -> None:
    nodules = lidc_malignancy()
    y, models = nodules["soft_malignant"], {name: nodules[name] for name in MODELS}
    page = written(tmp_path, y, models)
    assert before_the_diagram(page).startswith("Skip to the answer Calibration report 1,377 rows")
    for card, (name, p) in zip(cards_of(page), models.items(), strict=True):
        found, gaps = sc.smece_interval(y, p), sc.gap_intervals(y, p, simultaneous=True)
        rel = sc.reliability(y, p)
        worst = int(np.abs(rel.gap * rel.count).argmax())
        low, high = sorted([-gaps.low[worst], -gaps.high[worst]])
        benefit = sc.net_benefit(sc.reliability(y, p, bins=Bins.grid()), [0.05])
        for text in (
            f"{name}: material, too low calibrated? no",
            f"SMECE {found.value:.3f} {100 * found.value:.1f} points",
            f"95% interval {100 * found.low:.1f} to {100 * found.high:.1f}",
            f"Predictions of {worst / 10:g} to {(worst + 1) / 10:g} are "
            f"{-100 * rel.gap[worst]:.1f} points too low ({100 * low:.1f} to {100 * high:.1f}), in "
            f"{rel.count[worst]} rows.",
            f"{benefit.sentences[0]} At a threshold of 5%, net benefit is {benefit.value[0]:.4f} "
            f"(acting on all rows: {benefit.treat_all[0]:.4f}); "
            f"the best recalibration would add {benefit.cost[0]:.4f}.",
            "Recalibrate these probabilities before you use them. softcal recalibrate ROWS",
            f"p-value {'<0.001' if found.pvalue < 0.001 else found.pvalue}",
        ):
            assert text in card


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("off", "softcal recalibrate rows.csv --label y --pred p -o calibrator.json"),
        ("fine", None),
        ("few", "softcal plan rows.csv --label y --pred p --half-width 0.02"),
        ("opposite", "softcal audit rows.csv --label y --pred p --by 'the site'"),
    ],
)
def test_card_has_the_command_of_the_next_step_and_it_runs(
    kind: str, command: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    y, p, site = of_opposite_segments()
    if kind != "opposite":
        outcomes = (np.random.default_rng(0).random(p.size) < p).astype(float)
        y, site = {"off": p - 0.1, "fine": p, "few": outcomes}[kind], np.full(p.size, "one")
    rows = pd.DataFrame({"y": y, "p": p, "the site": site})
    rows[:: 30 if kind == "few" else 1].to_csv(tmp_path / "rows.csv", index=False)
    monkeypatch.chdir(tmp_path)
    options = ["--label", "y", "--pred", "p", "--by", "the site"]
    assert cli.run(["report", "rows.csv", *options]) == 0
    (card,) = cards_of((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert commands_in(card) == ([] if command is None else [command])
    if command is not None:
        assert cli.run(shlex.split(command)[1:]) in (0, 1)  # 1: an audit found segments
    rows[::100].to_csv(tmp_path / "rows.csv", index=False)  # too few for a plan
    assert cli.run(["report", "rows.csv", *options]) == 0
    assert "softcal plan" not in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_page_names_the_error_ece_if_labels_are_hard(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    p = rng.random(2000)
    y = (rng.random(2000) < p**2).astype(float)
    options: dict[str, Any] = {"by": np.arange(2000) % 4, "bins": 20}
    models = {"SMECE model": p, "q": p**3}
    page = written(tmp_path, y, models, **options)
    shown = text_of(page[page.index("<body>") : page.index('id="report-data"')])
    assert re.findall(r"SMECE(?! model)", shown) == []
    assert shown.count("SMECE model") > 5
    assert "ECE 0." in shown
    assert data_in(page)["error"] == "ECE"
    soft = written(tmp_path, y * 0.9, models, **options)
    assert data_in(soft)["error"] == "SMECE"


def test_every_link_of_the_contents_leads_to_a_heading(tmp_path: Path) -> None:
    nodules = lidc_malignancy()
    models = {name: nodules[name] for name in MODELS}
    page = written(tmp_path, nodules["soft_malignant"], models, by={"the fold": nodules["fold"]})
    contents = page[page.index('<nav aria-label="Contents">') :].partition("</nav>")[0]
    links = re.findall(r'<a href="#([^"]+)">(.*?)</a>', contents)
    headings = re.findall(r'<h2 id="([^"]+)"[^>]*>(.*?)</h2>', page)
    assert links == headings
    assert [text_of(title) for _, title in links] == [
        "Which model is better calibrated?", "Reliability diagram", "Where the error is",
        "Does the number of bins matter?", "By the fold", "What it costs at a threshold",
        "Accept, or ask a person", "What recalibration would do", "Table of bins",
        "How this was computed",
    ]  # fmt: skip


def line_in(page: str) -> str:
    return " ".join(text_of(page[page.index('id="lines"') :].partition("</table>")[0]).split())


def test_calibration_line_is_that_of_the_summary(tmp_path: Path) -> None:
    nodules = lidc_malignancy()
    y, p, patient = (nodules[k] for k in ("soft_malignant", "prob_lr_geometry", "patient"))
    for groups in (None, patient):
        shown = line_in(written(tmp_path, y, {"m": p}, groups=groups))
        found = sc.calibration_summary(y, p, groups=groups)
        for each in (found.slope, found.calibration_in_the_large):
            assert f"{each.value:.2f}{each.low:.2f} to {each.high:.2f}" in shown
        assert "Slope below 1: predictions are too extreme." in shown
        assert "Intercept above 0: predictions are too low on average." in shown
    assert "Slope above 1" in line_in(written(tmp_path, p, {"m": 0.25 + p / 2}))
    extreme = line_in(written(tmp_path, y, {"m": np.where(p < 0.1, 0, p)}))
    assert "The logistic recalibration needs predictions between 0 and 1" in extreme
    assert 'id="lines"' not in written(tmp_path, [0.3], {"m": [0.4]})


def test_nested_columns_are_folded_under_their_parent(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    p, site = rng.random(1200), np.arange(1200) % 6
    by = {"site": site, "region": site % 2, "age": rng.integers(0, 3, 1200), "same": site * 0}
    page = written(tmp_path, p**2, {"m": p}, by=by)
    titles = re.findall(r'<h2 id="segments-title-\d">By <span class="name">(\w+)</span></h2>', page)
    assert sorted(titles) == ["age", "region", "same"]
    inner = re.findall(r'<details class="inner"><summary>(.*?)</summary>', page)
    assert [text_of(each) for each in inner] == [
        "By site, 6 values: each occurs with one value of region"
    ]
    region = page.partition('By <span class="name">region</span></h2>')[2].partition("</section>")[
        0
    ]
    assert '<details class="inner">' in region
    assert [each["by"] for each in data_in(page)["segments"]] == list(by)


def test_segments_that_repeat_the_whole_say_recalibrate_first(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    p, site = rng.uniform(0.3, 0.7, 4000), np.arange(4000) % 4
    first = "Recalibrate first. a and b are off as a whole"
    models = {"a": p, "b": p + 0.01}
    assert first in text_of(written(tmp_path, p - 0.1, models, by=site))
    worse = np.where(site == 1, p - 0.3, p - 0.05)
    assert "Recalibrate first" not in text_of(written(tmp_path, worse, models, by=site))
    assert "Recalibrate first" not in text_of(written(tmp_path, p, {"a": p}, by=site))


def test_card_names_the_segment_that_is_worse_than_all_rows(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    p, site = rng.uniform(0.4, 0.6, 4000), np.arange(4000) % 4
    y = np.where(site == 1, p - 0.3, p - 0.05)
    page = written(tmp_path, y, {"m": p}, by={"site": site})
    row = data_in(page)["segments"][0]["models"][0]["rows"][0]
    (card,) = cards_of(page)
    assert row["value"] == "1"
    assert (
        f"In site = 1, SMECE is {100 * row['low']:.1f} to {100 * row['high']:.1f} points." in card
    )
    (same,) = cards_of(written(tmp_path, p - 0.1, {"m": p}, by={"site": site}))
    assert "In site" not in same


@pytest.mark.parametrize(
    ("p", "options", "shown"),
    [
        ([0.0, 0.0, 0.3, 1.0], {}, "2 and 1"),
        ([0.0, 1e-9, 0.3, 1.0], {}, "2 and 1 within 0.000001"),
        ([1e-9, 0.3], {"groups": "g"}, "1 and 0 within 0.000001"),
        ([1e-9, 0.3], {"bins": [0, 0.1, 1]}, ""),
        ([0.0, 0.0, 0.3], {"groups": "g"}, "2 and 0"),
    ],
)
def test_report_of_tables_counts_exact_zeros_where_the_sums_tell(
    p: list[float], options: dict[str, Any], shown: str, tmp_path: Path
) -> None:
    rows = pd.DataFrame({"p": p * 10, "y": 0.5, "g": range(10 * len(p))})
    tables = sc.scan(rows, y_true="y", y_prob="p", **options)
    first = before_the_diagram(written(tmp_path, tables))
    times_10 = re.sub(r"(?<!\.)\b[1-9]\b", lambda found: f"{found[0]}0", shown)
    assert ("Predictions of 0 and of 1:" in first) == bool(shown)
    assert times_10 in first


def test_report_of_tables_shows_the_effect_of_a_beta_map(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    p = rng.uniform(0.01, 0.99, 2000)
    y = np.clip(p**1.7 + rng.normal(0, 0.02, p.size), 0, 1)
    rows = pd.DataFrame({"p": p, "y": y, "exact": p})
    for column, words in (
        ("y", r"fitted to these tables changes SMECE from 0\.\d+ to 0\.00\d\."),
        ("exact", r"does not lower SMECE \(0\.000\)\."),
    ):
        page = written(tmp_path, sc.scan(rows, y_true=column, y_prob="p"))
        assert re.search(words, text_of(page))
        assert "Reliability diagram of after beta" in page
        calls = "The verdict does not call for recalibration." in page
        assert calls == (column == "exact")
    before = sc.smece(y, p)
    fitted = sc.calibrators.BetaCalibrator().fit(p, y).predict(p)
    assert f"from {before:.3f} to {sc.smece(y, fitted):.3f}." in text_of(
        written(tmp_path, sc.scan(rows, y_true="y", y_prob="p"))
    )
    few = written(tmp_path, sc.scan(rows[:99], y_true="y", y_prob="p"))
    assert "With fewer than 100 rows" in few


def test_decision_panel_has_the_numbers_of_net_benefit(tmp_path: Path) -> None:
    nodules = lidc_malignancy()
    y, p = nodules["soft_malignant"], nodules["prob_rf_all"]
    panel = data_in(written(tmp_path, y, {"forest": p}))["decision"]
    at = np.arange(1, 100) / 100
    assert panel["thresholds"] == at.tolist()
    assert panel["thresholds"][panel["start"]] == 0.05
    assert panel["source"].startswith("Computed from the 648 bins of the grid.")
    found, (model,) = sc.net_benefit(sc.reliability(y, p, bins=Bins.grid()), at), panel["models"]
    rows = sc.net_benefit(y, p, at)
    assert found.sentences == rows.sentences
    np.testing.assert_allclose([found.low, found.high], [rows.low, rows.high], atol=1e-12)
    np.testing.assert_allclose(found.cost, rows.cost, atol=2e-3)
    assert model["sentences"] == found.sentences
    assert model["sentences"][4] == (
        "At 5%: 706 rows lie below; the model predicts 0.9%, the labels average 8.8%."
    )
    expected = [
        [text.replace("-", "\N{MINUS SIGN}") for text in (f"{v:z.4f}", f"{a:z.4f} to {b:z.4f}")]
        for v, a, b in zip(found.value, found.low, found.high, strict=True)
    ]
    assert model["shown"] == expected
    assert model["cost"] == [f"{cost:.4f}" for cost in found.cost]
    assert model["value"] == pytest.approx(found.value, abs=1e-6)


@pytest.mark.parametrize(("lowest", "start"), [(0.0, 0.06), (0.3, 0.34), (0.96, 0.97), (1.0, 0.05)])
def test_first_threshold_has_rows_below_it(lowest: float, start: float, tmp_path: Path) -> None:
    p = np.linspace(lowest, 1, 1001)
    panel = data_in(written(tmp_path, p, {"m": p}))["decision"]
    at = panel["thresholds"][panel["start"]]
    assert at == start
    if start != 0.05:  # at 5% there are none
        assert np.mean(p < at) >= 0.05 > np.mean(p < at - 0.01)


LIMITS = [0.01, 0.02, 0.05, 0.1, 0.2]


def assert_routes(shown: dict[str, Any], right: list[sc.Route]) -> None:
    assert shown["sentences"] == [each.sentence for each in right]
    for cells, marks, found in zip(shown["shown"], shown["rules"], right, strict=True):
        rules = [rule for rule in (found.rule, found.hardened) if rule is not None]
        assert [(mark["share"], mark["risk"]) for mark in marks] == [
            (rule.share, rule.risk) for rule in rules
        ]
        expected = ["\N{EN DASH}"] * 3
        if (rule := found.rule) is not None:
            expected = [
                f"{rule.threshold:.4g}", f"{rule.share:.1%}",
                f"{rule.risk:.1%} (at most {rule.high:.1%})",
            ]  # fmt: skip
        assert cells[:3] == expected
    curve = right[0].curve
    for name in ("share", "risk", "low", "high"):
        assert shown[name] == pytest.approx(getattr(curve, name)[curve.n >= 30], rel=1e-5)


@pytest.mark.parametrize("level", [0.95, 0.8])
def test_route_panel_has_the_numbers_of_route(level: float, tmp_path: Path) -> None:
    nodules = lidc_malignancy()
    y, p = nodules["soft_malignant"], nodules["prob_lr_geometry"]
    page = written(tmp_path, y, {"geometry": p}, level=level)
    panel = data_in(page)["route"]
    assert panel["limits"] == LIMITS
    right = [sc.route(y, p, max_disagreement=limit, level=level) for limit in LIMITS]
    assert_routes(panel["models"][0], right)
    hardened = [each.hardened for each in right]
    assert any(each is not None for each in hardened)
    assert [cells[3:] for cells in panel["models"][0]["shown"]] == [
        ["\N{EN DASH}", "\N{EN DASH}"]
        if each is None
        else [f"{each.share:.1%}", f"{each.risk:.1%}"]
        for each in hardened
    ]
    assert "hardened labels<br>would accept" in page
    command = "softcal route ROWS --label … --pred …" + " --level 0.8" * (level == 0.8)
    assert f"{command} --max-disagreement " in text_of(page)


def test_route_panel_of_0_1_labels_leaves_hardened_labels_out(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    p = rng.beta(0.1, 0.1, 5000)
    y = (rng.random(5000) < p).astype(float)
    page = written(tmp_path, y, {"m": p})
    panel = data_in(page)["route"]
    right = [sc.route(y, p, max_disagreement=limit) for limit in LIMITS]
    assert_routes(panel["models"][0], right)
    assert {len(cells) for cells in panel["models"][0]["shown"]} == {3}
    assert "would accept" not in page
    # The axis ends above the lowest limit for which all rows are accepted.
    assert [each.rule is not None and each.rule.share == 1 for each in right][-2:] == [True, True]
    assert panel["ends"] == [0, pytest.approx(1.1 * 0.1)]


def test_route_panel_of_classes_is_about_the_predicted_class(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    p = rng.dirichlet([0.1] * 3, 2000)
    y = rng.multinomial(5, p) / 5
    panel = data_in(written(tmp_path, y, {"m": p}))["route"]
    top, rows = p.argmax(axis=1), np.arange(2000)
    right = [
        sc.route(
            y[rows, top], p[rows, top], max_disagreement=limit,
            options=RouteOptions(top_label=True),
        )
        for limit in LIMITS
    ]  # fmt: skip
    assert panel["models"][0]["sentences"] == [each.sentence for each in right]
    assert right[2].rule is not None


@pytest.mark.parametrize(
    ("disagree", "start"), [(0.0, 0.05), (0.03, 0.05), (0.07, 0.1), (0.15, 0.2), (0.4, 0.05)]
)
def test_first_limit_shown_has_a_rule_if_any_limit_has_one(
    disagree: float, start: float, tmp_path: Path
) -> None:
    panel = data_in(written(tmp_path, [1 - disagree] * 2000, {"m": [0.9] * 2000}))["route"]
    assert panel["limits"][panel["start"]] == start
    promised = panel["models"][0]["sentences"][panel["start"]].startswith("Accept every prediction")
    assert promised == (disagree < 0.2)


def test_route_command_of_report_gives_the_sentence_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    items = str(files("softcal") / "data" / "lidc_malignancy" / "items.csv")
    (tmp_path / "items.csv").write_bytes(Path(items).read_bytes())
    monkeypatch.chdir(tmp_path)
    named = [word for model in MODELS for word in ("--pred", model)]
    options = ["--label", "soft_malignant", *named, "--by", "fold", "--level", "0.9"]
    assert cli.run(["report", "items.csv", *options]) == 0
    page = Path("report.html").read_text(encoding="utf-8")
    command = re.search(r"softcal (route .*--max-disagreement )", text_of(page))
    assert command is not None
    capsys.readouterr()
    cli.run([*shlex.split(command[1]), "0.1", "--format", "json"])
    card = json.loads(capsys.readouterr().out)
    panel = data_in(page)["route"]
    assert [each["overall"]["sentence"] for each in card["models"]] == [
        each["sentences"][panel["limits"].index(0.1)] for each in panel["models"]
    ]


def test_decision_chart_cuts_lines_and_never_values(tmp_path: Path) -> None:
    y, p = np.repeat([0.0, 1.0], [180, 20]), np.tile([0.2, 0.95], 100)
    page = written(tmp_path, y, {"bad": p, "good": 0.05 + 0.9 * y})
    panel = data_in(page)["decision"]
    at = np.arange(1, 100) / 100
    for model, prob in zip(panel["models"], (p, 0.05 + 0.9 * y), strict=True):
        found = sc.net_benefit(sc.reliability(y, prob, bins=Bins.grid()), at)
        for name in ("value", "low", "high"):
            assert model[name] == pytest.approx(getattr(found, name), rel=1e-5, abs=1e-9)
    assert panel["all"] == pytest.approx(found.treat_all, rel=1e-5, abs=1e-9)
    assert min(panel["models"][0]["value"]) < -5
    found_charts = re.search(r'id="report-charts">(.*?)</script>', page)
    assert found_charts is not None
    layers = json.loads(found_charts[1])["decision"]["layer"]
    drawn = [each for each in layers if each["data"]["name"] in ("decision", "everyone")]
    assert [each["mark"]["clip"] for each in drawn] == [True, True, True]
    low, high = panel["ends"]
    assert -0.05 < low < 0 < 0.1 < high < 0.2
    assert [low, high] in [each["encoding"]["y"].get("scale", {}).get("domain") for each in drawn]


def test_ordered_segments_are_drawn_in_order(tmp_path: Path, rng: np.random.Generator) -> None:
    p = rng.uniform(size=400)
    day = np.repeat(["2026-10-02", "2026-09-30", "2026-10-01", "2026-10-03"], 100)
    page = written(tmp_path, p**2, {"a": p, "b": p**2}, by={"day": day, "kind": day.astype("U9")})
    trend = page[page.index('<figure class="trend">') :].partition("</figure>")[0]
    assert page.count('<figure class="trend">') == 1
    dates = re.findall(r"<title>a, (\S+): SMECE", trend)
    assert dates == sorted(set(day))
    segments = data_in(page)["segments"][0]["models"][0]["rows"]
    for row in segments:
        assert f"a, {row['value']}: SMECE {row['smece']:.3f}, " in trend


@pytest.mark.parametrize(
    ("values", "gaps"),
    [
        (["2026-03-01", "2026-03-02", "2026-03-12"], (1, 10)),
        (["2026-03-02T01:00+05:00", "2026-03-02T00:00+00:00", "2026-03-01T22:00-05:00"], (4, 3)),
        (["1", "2", "10", "11"], (1, 8, 1)),
        (["below 5", "5 to 10", "10 to 50"], (1, 1)),
    ],
)
def test_trend_is_linear_in_time(
    tmp_path: Path, rng: np.random.Generator, values: list[str], gaps: tuple[float, ...]
) -> None:
    p = rng.uniform(size=100 * len(values))
    page = written(tmp_path, p**2, {"a": p, "b": p**2}, by={"day": np.repeat(values[::-1], 100)})
    trend = page[page.index('<figure class="trend">') :].partition("</figure>")[0]
    assert re.findall(r"<title>a, (.+?): SMECE", trend) == values
    for line in re.findall(r'<polyline points="(.*?) "/>', trend):
        x = np.array([float(point.split(",")[0]) for point in line.split(" ")])
        assert np.diff(x) / (x[-1] - x[0]) == pytest.approx(np.array(gaps) / sum(gaps), abs=1e-3)
    ticks = re.findall(r'<text x="([\d.]+)" y="113" text-anchor="middle">(.*?)</text>', trend)
    assert [text for _, text in ticks] == sorted((text for _, text in ticks), key=values.index)
    assert all(float(x) + 3 * len(text) <= 366 for x, text in ticks)  # else the page cuts them


def test_values_without_an_order_have_no_trend() -> None:
    assert not in_order(["1", "2"])
    assert not in_order(["1", "nan", "3"])
    assert not in_order(["1", "2", "three"])
    assert not in_order(["1/1/2016", "2/1/2016", "12/21/2016"])
    assert list(in_order(["3", "(missing)", "1", "2"])) == ["1", "2", "3"]


@pytest.mark.parametrize("rows", [1, 3])
def test_few_rows_give_no_verdict(rows: int, tmp_path: Path) -> None:
    y, p = [0.2, 1.0, 0.3][:rows], [0.9, 0.5, 0.4][:rows]
    found = verdict_of(y, p)
    assert found.title == "undecided"
    assert found.state == "undecided"
    assert "Label more rows before you draw a conclusion" in found.next_step
    reader = Reader()
    reader.feed(page := written(tmp_path, y, {"model": p}))
    assert '<article class="card undecided">' in page
    assert f"{rows} row{'s' if rows > 1 else ''}, mean label" in reader.text


def test_an_error_of_unclear_size_is_named_with_its_direction() -> None:
    y = (np.arange(400) < 176).astype(float)
    found = verdict_of(y, np.full(400, 0.5))
    assert found.interval.low < 0.02 < found.interval.high
    assert found.severity == "off, size unclear"
    assert found.title == "off, size unclear: too high"


def test_many_rows_are_not_called_too_few(tmp_path: Path, rng: np.random.Generator) -> None:
    """Groups can make an interval wide although there are many rows."""
    groups = np.repeat(np.arange(12), 5000)
    p = rng.uniform(0.2, 0.8, size=groups.size)
    y = np.clip(p + rng.normal(0, 0.2, size=12)[groups], 0, 1)
    page = written(tmp_path, y, {"m": p}, groups=groups)
    assert '<article class="card undecided">' in page
    assert "too few" not in page.partition("<script")[0]
    assert re.search(r"ruling out SMECE above 0\.02 takes roughly [\d,]+ groups\.", page)


def of_opposite_segments() -> tuple[Any, Any, Any]:
    """Return a model that is too high in one segment and as much too low in the other."""
    p = np.tile(np.linspace(0.25, 0.75, 1000), 2)
    site = np.repeat(["north", "south"], 1000)
    return np.where(site == "north", p - 0.1, p + 0.1), p, site


def test_segments_that_are_off_prevent_no_miscalibration_detected(tmp_path: Path) -> None:
    y, p, site = of_opposite_segments()
    whole = text_of(written(tmp_path, y, {"m": p}))
    assert "no miscalibration detected" in whole
    assert "Use these probabilities" in whole
    page = written(tmp_path, y, {"m": p}, by={"site": site})
    text = text_of(page)
    assert "o miscalibration detected" not in text
    assert "Use these probabilities" not in text
    assert "m: off in 2 segments" in text
    assert "2 segments have simultaneous intervals of SMECE above 0: site = " in text
    assert "SMECE is above 0.02 in 2 segments: see below." in text
    assert '<article class="card off-in-part">' in page
    rows = pd.DataFrame({"y": y, "p": p, "site": site})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    options = ["--label", "y", "--pred", "p", "--by", "site", "-o", tmp_path / "r.html"]
    done = softcal_here("report", tmp_path / "rows.csv", *options)
    assert "p: off in 2 segments. SMECE" in done.stdout


def test_classes_that_are_off_prevent_no_miscalibration_detected(tmp_path: Path) -> None:
    p = np.tile([0.6, 0.3, 0.1], (2000, 1))
    y = np.tile([0.6, 0.1, 0.3], (2000, 1))
    text = text_of(written(tmp_path, y, {"m": p}))
    assert "o miscalibration detected" not in text
    assert "m: off in 2 classes" in text


def test_segments_off_by_more_than_the_rows_are_in_the_next_step(tmp_path: Path) -> None:
    p = np.tile(np.linspace(0.25, 0.75, 1000), 20)
    site = np.repeat(["small", "large"], [1000, 19_000])
    y = np.where(site == "small", p - 0.2, p + 0.001)
    text = text_of(written(tmp_path, y, {"m": p}, by={"site": site}))
    assert "Small over all rows, but not everywhere. Recalibrate where the error is." in text
    assert "SMECE is above 0.02 in 1 segment: see below." in text


def test_segments_are_ordered_by_the_error_that_is_sure(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    sizes = {"few": 6, "many": 20_000, "some": 400, "calm": 5000}
    site = np.repeat(list(sizes), list(sizes.values()))
    off = np.repeat([0.5, 0.12, 0.13, 0.0], list(sizes.values()))
    p = rng.uniform(0.55, 0.95, size=site.size)
    y = (rng.uniform(size=p.size) < p - off).astype(float)
    page = written(tmp_path, y, {"m": p}, by={"site": site})
    rows = data_in(page)["segments"][0]["models"][0]["rows"]
    assert rows[0]["value"] == "many"
    assert rows[3]["value"] == "calm"
    assert rows[3]["low"] == 0
    by_value = {row["value"]: row for row in rows}
    assert by_value["few"]["debiased"] > by_value["many"]["debiased"] > by_value["few"]["low"]


def test_columns_are_ordered_by_the_error_that_is_sure(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    p = rng.uniform(0.4, 0.6, 3000)
    by: dict[str, Any] = {
        "none": rng.integers(0, 2, 3000),
        "some": np.arange(3000) % 3,
        "most": p > 0.5,
    }
    y = p - 0.1 * (by["some"] == 1) - 0.3 * by["most"]
    page = written(tmp_path, y, {"m": p}, by=by)
    titles = re.findall(r'<h2 id="segments-title-\d">By <span class="name">(\w+)</span></h2>', page)
    sure = {
        each["by"]: max(row["low"] for row in each["models"][0]["rows"])
        for each in data_in(page)["segments"]
    }
    assert titles == sorted(sure, key=sure.__getitem__, reverse=True) == ["most", "some", "none"]


def test_comparison_with_all_rows_has_no_column_if_all_are_unclear(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    p = rng.uniform(size=600)
    y = (rng.uniform(size=600) < p).astype(float)
    site = np.arange(600) % 3
    assert "compared with<br>" not in written(tmp_path, y, {"m": p}, by=site)
    y, p, site = of_opposite_segments()
    page = written(tmp_path, y, {"m": p}, by=site)
    assert page.count("<td>worse</td>") == 2
    assert "compared with<br>" in page


def test_small_p_value_of_three_rows_has_a_wide_interval() -> None:
    y, p = [0.1, 0.4, 0.95], [0.95, 0.5, 0.1]
    found = verdict_of(y, p)
    assert found.pvalue < 0.05
    assert found.state == "miscalibrated"
    assert found.interval.high - found.interval.low > 0.5


def test_next_step_depends_on_size_of_error(uniform: np.ndarray[Any, Any]) -> None:
    p = uniform
    assert verdict_of(p, p).next_step.startswith("Use these probabilities: ")
    assert "real but small" in verdict_of(np.clip(p - 0.01, 0, 1), p).next_step
    found = verdict_of(np.clip(p - 0.1, 0, 1), p).next_step
    assert "Recalibrate these probabilities before you use them." in found
    noise = np.random.default_rng(1).normal(0, 0.3, 1000)
    found = verdict_of(np.clip(p[:1000] / 2 + 0.23 + noise, 0, 1), p[:1000] / 2 + 0.25)
    assert found.interval.low < 0.02 < found.interval.high
    assert "The error is real, but it may be small" in found.next_step


def test_verdict_contrasts_smece_with_hardened_ece(rng: np.random.Generator) -> None:
    nodules = lidc_malignancy()
    found = all_words(verdict_of(nodules["soft_malignant"], nodules["prob_rf_all"]))
    assert "ECE is 0.022: SMECE is 4.3 times as large. Hardening the labels would hide" in found
    p = rng.random(1000)
    found = all_words(verdict_of(p, p))
    assert re.search(r"ECE is 0\.2\d\d\. Hardening the labels counts their uncertainty", found)
    labels = nodules["soft_malignant"]  # an error of 1e-17 from rounding
    repaired = sc.calibrators.IsotonicCalibrator().fit(labels, labels**2).predict(labels)
    assert "times SMECE" not in all_words(verdict_of(labels**2, repaired))
    near = np.clip(p + 0.01, 0, 1)
    assert re.search(r"\d\.\d times SMECE", all_words(verdict_of(near, p)))
    hard = (p > 0.5).astype(float)
    assert "ardening" not in all_words(verdict_of(hard, p))
    # hardened labels agree exactly, soft ones do not
    extreme = np.repeat([0.0, 1.0], 50)
    assert "no error. Hardening the labels would hide" in all_words(
        verdict_of(np.repeat([0.2, 0.8], 50), extreme)
    )
    # no interpretation
    found = verdict_of(np.repeat([0.3, 0.9], 50), np.repeat([0.1, 0.7], 50))
    assert any(sentence.endswith("the usual ECE is 0.200.") for sentence in found.sentences)


def test_hardening_is_blamed_only_where_the_intervals_differ(rng: np.random.Generator) -> None:
    p = rng.choice([0.02, 0.98], 300)
    y = p + rng.choice([-0.02, 0.02], 300)
    found = verdict_of(y, p)
    hard = sc.smece(sc.harden(y), p)
    assert hard > 2 * found.interval.value
    assert "Hardening" not in all_words(found)


def test_predictions_on_one_side_of_the_middle() -> None:
    found = verdict_of([0.1] * 50, [0.3] * 50)
    assert found.headline == "too high"
    assert "below 0.5 (100% of the rows), it is 20.0 percentage points" in found.sentences[1]
    assert "above" not in found.sentences[1]
    assert "1 of 1 bin stands out" in found.sentences[2]


def test_each_segment_column_is_reported_with_missing_values(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    p = rng.random(600)
    by = {"site": ["a", None, "b"] * 200, "age": np.arange(600) % 4}
    page = written(tmp_path, p**2, {"m": p, "q": p**3}, by=by)
    site, age = data_in(page)["segments"]
    assert (site["by"], age["by"]) == ("site", "age")
    assert {row["value"] for row in site["models"][0]["rows"]} == {"a", "b", "(missing)"}
    missing = next(row for row in site["models"][1]["rows"] if row["value"] == "(missing)")
    at = np.arange(600) % 3 == 1
    rel = sc.reliability((p**2)[at], (p**3)[at])
    interval = sc.smece_interval(rel, level=1 - 0.05 / 14)  # (3 + 4) segments of 2 models
    assert missing["n"] == 200
    assert missing["smece"] == pytest.approx(rel.smece, abs=1e-12)
    assert (missing["low"], missing["high"]) == pytest.approx((interval.low, interval.high))
    assert "all 14, in the tables of all columns, hold, including" in " ".join(page.split())
    assert "Worst first" not in written(tmp_path, p, {"m": p}, by=["a"] * 600)  # one interval
    unnamed = written(tmp_path, p, {"m": p}, by=by["site"])
    assert 'By <span class="name">segment</span>' in unnamed
    series = pd.Series(by["site"], name="hospital")
    assert data_in(written(tmp_path, p, {"m": p}, by=series))["segments"][0]["by"] == "hospital"


def test_segment_without_weight_is_left_out(tmp_path: Path) -> None:
    w = [1.0] * 9 + [0.0]
    page = written(tmp_path, [0.5] * 10, {"p": [0.4] * 10}, sample_weight=w, by=[*"aaaaabbbbc"])
    (segments,) = data_in(page)["segments"]
    assert [row["value"] for row in segments["models"][0]["rows"]] == ["a", "b"]
    assert shown_of(page, "rows") == "9; 1 more with weight 0"


def test_number_of_models_is_limited(tmp_path: Path) -> None:
    for models in (0, 9):
        with pytest.raises(sc.InputError, match=f"a report shows 1 to 8 models: got {models}"):
            written(tmp_path, [0.5], {str(k): [0.5] for k in range(models)})


def test_report_needs_rows_with_weight(tmp_path: Path) -> None:
    with pytest.raises(sc.InputError, match="y_true is empty"):
        written(tmp_path, [], {"p": []})
    with pytest.raises(sc.InputError, match="sample_weight must have a positive value somewhere"):
        written(tmp_path, [0.5], {"p": [0.5]}, sample_weight=[0.0])


def test_report_refuses_values_and_lengths_with_their_names(tmp_path: Path) -> None:
    with pytest.raises(sc.InputError, match=r"two must be in \[0, 1\]: 1 of 2"):
        written(tmp_path, [0.5, 0.5], {"one": [0.5, 0.5], "two": [0.5, 1.5]})
    with pytest.raises(sc.InputError, match="y_true and q must have the same length"):
        written(tmp_path, [0.5, 0.5], {"p": [0.5, 0.5], "q": [0.5]})
    with pytest.raises(sc.InputError, match="by must have one value for each of the 2 rows"):
        written(tmp_path, [0.5, 0.5], {"p": [0.5, 0.5]}, by=["a"])
    with pytest.raises(sc.InputError, match="site must be one column: it has shape"):
        written(tmp_path, [0.5, 0.5], {"p": [0.5, 0.5]}, by={"site": [["a", "b"]] * 2})
    shifted = pd.Series([0.5, 0.5], index=[1, 2])
    with pytest.raises(sc.InputError, match="same pandas index"):
        written(tmp_path, pd.Series([0.5, 0.5]), {"p": [0.5, 0.5]}, by=shifted)
    assert not list(tmp_path.iterdir())


def test_too_many_segments_are_refused(tmp_path: Path) -> None:
    n = MAX_SEGMENTS + 1
    with pytest.raises(
        sc.InputError, match="at most 200 segments per column, but segment has 201 diff"
    ):
        written(tmp_path, [0.5] * n, {"p": [0.5] * n}, by=list(range(n)))
    assert not list(tmp_path.iterdir())


ROWS_TERMS = ("source", "created on")
MODELS = ["prob_rf_all", "prob_lr_geometry"]


def lidc_tables(**options: Any) -> sc.TableSet:
    items = files("softcal") / "data" / "lidc_malignancy" / "items.csv"
    return sc.scan(
        items, y_true=sc.Shares("soft_malignant", votes="n_readers"), y_prob=MODELS, **options
    )


@pytest.mark.parametrize("group", [[], ["--group", "patient"]])
def test_report_of_a_saved_file_has_the_numbers_of_the_report_of_the_rows(
    group: list[str], tmp_path: Path
) -> None:
    items = str(files("softcal") / "data" / "lidc_malignancy" / "items.csv")
    saved, of_rows, of_file = (str(tmp_path / name) for name in ("s.softcal", "a.html", "b.html"))
    preds = [word for model in MODELS for word in ("--pred", model)]
    options = [*preds, "--label", "soft_malignant", "--votes", "n_readers", *group]
    by = ["--by", "fold", "--by", "n_readers"]
    assert cli.run(["scan", items, *options, *by, "-o", saved]) == 0
    assert cli.run(["report", items, *options, *by, "-o", of_rows]) == 0
    assert cli.run(["report", saved, "-o", of_file]) == 0
    rows, file = (Path(path).read_text(encoding="utf-8") for path in (of_rows, of_file))
    ours, other = data_in(rows), data_in(file)
    assert ours["decision"]["models"]
    assert ours["route"]["models"]
    assert 'id="lines"' in rows
    assert ours == other
    assert data_in(rows)["segments"]
    before, _, after = rows.partition("What recalibration would do</h2>")
    assert file.startswith(before.rpartition("<section")[0])
    assert "This report was made from tables" not in rows
    assert "This report was made from tables" in file
    grouped = " --group patient" * bool(group)
    for k, model in enumerate(MODELS, 1):
        given = f"{items} --label soft_malignant --votes n_readers{grouped}"
        command = f"{given} --pred {model} -o calibrator_{k}.json"
        for page in (rows, file):
            assert f"softcal recalibrate {command}" in text_of(page)
            applied = f"softcal apply calibrator_{k}.json {items} --pred {model}"
            assert applied in text_of(page)
        for page in (rows, file):
            routed = f"softcal route {given} {' '.join(preds)} --max-disagreement "
            assert routed in text_of(page)
    tables = '<section aria-labelledby="bins-title">'
    end = '<dl class="how">'
    assert (
        after.partition(tables)[2].partition(end)[0] == file.partition(tables)[2].partition(end)[0]
    )
    # The library gives the same report of the set.
    sc.write_report(tmp_path / "c.html", sc.load(saved))
    assert data_in((tmp_path / "c.html").read_text(encoding="utf-8")) == data_in(
        Path(of_file).read_text(encoding="utf-8")
    )


def test_commands_of_added_sets_name_no_file_that_has_only_some_rows(tmp_path: Path) -> None:
    tables = lidc_tables()
    page = text_of(written(tmp_path, tables))
    assert "softcal recalibrate ROWS --label soft_malignant --pred prob_rf_all" in page
    assert "(replace ROWS with the file that was scanned):" in page
    given = json.dumps({"--label": "soft_malignant", "--pred": MODELS, "--sep": ";"})
    days = [
        replace(tables, about=tables.about._replace(source=source, options=given))
        for source in ("monday.csv", "tuesday.csv")
    ]
    for total, source in ((days[0], "monday.csv"), (days[0] + days[1], "ROWS")):
        found = commands_of(total)
        start = f"softcal recalibrate {source} --label soft_malignant --sep ';' --pred "
        pairs = zip(MODELS, found.recalibrate, strict=True)
        assert all(each.startswith(start + model) for model, each in pairs)
        assert found.apply[0].startswith(f"softcal apply calibrator_1.json {source} --sep ';'")
    other = replace(tables, about=days[1].about._replace(options='{"--label": "y"}'))
    assert (days[0] + other).about.options is None


def test_commands_of_standard_input_name_no_temporary_file(tmp_path: Path) -> None:
    items = files("softcal") / "data" / "lidc_malignancy" / "items.csv"
    options = ["--input-format", "csv", "--label", "soft_malignant", "--pred", "prob_rf_all"]
    to = ["-o", str(tmp_path / "page.html")]
    subprocess.run(  # noqa: S603
        [sys.executable, "-m", "softcal", "report", "-", *options, *to],
        input=items.read_bytes(), capture_output=True, check=True,
    )  # fmt: skip
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "softcal recalibrate ROWS --label soft_malignant" in text_of(page)
    assert "softcal-read-" not in page


@pytest.mark.parametrize("options", ["[1]", '{"--label": 1}', '{"label": "y"}', "{", '"a"'])
def test_options_of_a_strange_file_are_not_shown(options: str) -> None:
    tables = lidc_tables()
    strange = replace(tables, about=tables.about._replace(options=options))
    assert commands_of(strange).recalibrate == commands_of(tables).recalibrate


def test_models_in_rows_or_with_other_names_have_no_wrong_commands() -> None:
    tables = lidc_tables()
    for given in ({"--model": "m", "--pred": ["p"]}, {"--pred": ["a"], "--name": ["b"]}):
        options = json.dumps({"--label": "y"} | given)
        found = commands_of(replace(tables, about=tables.about._replace(options=options)))
        assert found == Commands()
    options = json.dumps({"--label": "y", "--pred": ["a", "b"], "--name": MODELS})
    named = commands_of(replace(tables, about=tables.about._replace(options=options)))
    assert "--pred b" in named.recalibrate[1]


def test_report_of_tables_shows_the_columns_and_bins_asked_for(tmp_path: Path) -> None:
    tables = lidc_tables(
        by=["fold", "n_readers"], pairs=False, date="2026-11-16", sample_weight="soft_confidence"
    )
    page = written(tmp_path, tables, by="n_readers", bins=15, label="share of radiologists")
    assert [each["by"] for each in data_in(page)["segments"]] == ["n_readers"]
    assert "These tables lack the joint sums of each pair of models" in " ".join(page.split())
    assert shown_of(page, "date") == "2026-11-16"
    assert "--label soft_malignant --weight soft_confidence --pred" in text_of(page)
    assert shown_of(page, "label") == "share of radiologists"
    assert shown_of(page, "bins") == "15 of equal width on [0, 1]; the last one includes 1"
    with pytest.raises(sc.InputError, match="no segments by 'sex'"):
        written(tmp_path, tables, by=["sex"])
    for beside in ({"y_prob": {"a": [0.5]}}, {"groups": [1]}, {"n_votes": 3}):
        with pytest.raises(sc.InputError, match=f"{next(iter(beside))} must be omitted"):
            written(tmp_path, tables, **beside)


def test_report_with_custom_edges_offers_no_other_bins(tmp_path: Path) -> None:
    edges = [0, 0.05, 0.2, 0.6, 1]
    page = written(tmp_path, lidc_tables(bins=edges))
    data = data_in(page)
    assert data["route"] is None  # no edge at 0.5
    assert "Accept, or ask a person" not in page
    assert data["choices"] == [4]
    assert data["edges"] == edges
    assert shown_of(page, "bins").startswith("4 of unequal width")
    nodules = lidc_malignancy()
    rel = sc.reliability(
        nodules["soft_malignant"], nodules["prob_rf_all"], bins=edges, n_votes=nodules["n_readers"]
    )
    assert data["models"][0]["soft"][0][0] == pytest.approx(rel.smece)


def test_report_intervals_account_for_groups(tmp_path: Path) -> None:
    nodules = lidc_malignancy()
    y, p, m = nodules["soft_malignant"], nodules["prob_rf_all"], nodules["n_readers"]
    options = {"n_votes": m, "by": nodules["fold"], "groups": nodules["patient"]}
    page = written(tmp_path, y, {"forest": p, "other": nodules["prob_lr_geometry"]}, **options)
    data = data_in(page)
    model = data["models"][0]
    for bins in (2, 10, 60):
        rel = sc.reliability(y, p, bins=bins, n_votes=m, groups=nodules["patient"])
        found, gaps = sc.smece_interval(rel), sc.gap_intervals(rel)
        shown = model["soft"][data["choices"].index(bins)]
        assert shown[:3] == pytest.approx([found.value, found.low, found.high], abs=1e-9)
        assert shown[5] == pytest.approx(gaps.low[rel.count > 0], rel=1e-5)
    usual = sc.smece_interval(sc.reliability(sc.harden(y), p, n_votes=m))
    shown = model["hard"][data["choices"].index(10)]
    assert shown[:3] == pytest.approx([usual.value, usual.low, usual.high], abs=1e-9)
    assert "treat rows as independent: the tables keep groups only for the labels" in page
    assert "Hardening the labels" not in page  # because that needs an interval with groups
    assert shown_of(page, "groups") == "groups"
    row = next(row for row in data["segments"][0]["models"][0]["rows"] if row["value"] == "3")
    at = nodules["fold"] == 3
    rel = sc.reliability(y[at], p[at], n_votes=m[at], groups=nodules["patient"][at])
    assert row["high"] == pytest.approx(sc.smece_interval(rel, level=1 - 0.05 / 20).high, abs=1e-9)
    pair = sc.compare(
        y, {"a": p, "b": nodules["prob_lr_geometry"]}, n_votes=m, groups=nodules["patient"]
    )
    assert f"{pair.low:+.4f} to {pair.high:+.4f}".replace("-", "\N{MINUS SIGN}") in page
    preview = sc.calibrators.repair_preview(y, p, n_votes=m, groups=nodules["patient"])
    assert f'<td class="wide">{preview.after[2].brier:.5f}</td>' in page
    at = np.array(data["decision"]["thresholds"])
    benefit = sc.net_benefit(y, p, at, groups=nodules["patient"])
    shown = data["decision"]["models"][0]
    np.testing.assert_allclose(
        [shown["low"], shown["high"]], [benefit.low, benefit.high], atol=2e-4
    )
    assert not np.allclose(benefit.low, sc.net_benefit(y, p, at).low, atol=1e-4)
    few = written(tmp_path, y, {"forest": p}, groups=np.arange(y.size) % 4)
    assert "What recalibration would do</h2>" not in few  # fewer groups than folds


def test_downloaded_tables_load_and_keep_groups(tmp_path: Path) -> None:
    for groups in (None, "patient"):
        tables = lidc_tables(by="fold", groups=groups)
        saved = data_in(written(tmp_path, tables))["tables"]
        (tmp_path / "tables.softcal").write_text(json.dumps(saved))
        loaded = sc.load(tmp_path / "tables.softcal")
        assert_same_table(loaded["prob_rf_all"], tables["prob_rf_all"])
        assert (loaded["prob_rf_all"].clusters is None) == (groups is None)
        assert len(loaded.grid) == (648 if groups is None else 10)
        assert loaded.by_names == ()
        again = data_in(written(tmp_path, loaded))["models"]
        if groups is None:
            assert_same_card(again, data_in(written(tmp_path, tables))["models"])


@pytest.mark.parametrize("name", ["out.pdf", "out.html.gz", "report.v2"])
def test_report_path_must_end_in_html(name: str, tmp_path: Path) -> None:
    with pytest.raises(sc.InputError, match=r"must end in \.html: got .* For a PDF, .* print it"):
        sc.write_report(tmp_path / name, [0.5], {"m": [0.5]})
    assert not list(tmp_path.iterdir())
    for fine in ("out.HTM", "out"):
        sc.write_report(tmp_path / fine, [0.5], {"m": [0.5]})
        assert (tmp_path / fine).exists()


def test_predictions_must_have_names(tmp_path: Path) -> None:
    with pytest.raises(sc.InputTypeError, match="must map names to columns: got list"):
        sc.write_report(tmp_path / "r.html", [0.5], [0.5])  # type: ignore[arg-type]


def test_the_page_holds_the_tables_it_was_made_from(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    y, p = rng.random(200), rng.random(200)
    w, m = rng.random(200), rng.integers(100, 109, 200)
    page = written(tmp_path, y, {"sample_weight": p}, sample_weight=w, n_votes=m, bins=7)
    data = data_in(page)
    assert data["choices"] == [k for k in range(2, 201) if 840 % k == 0]
    (tmp_path / "saved").write_text(json.dumps(data["tables"]))
    tables = sc.load(tmp_path / "saved")
    assert tables.bins == Bins.uniform(7)
    fine = sc.reliability(y, p, bins=Bins.grid(7), sample_weight=w, n_votes=m)
    assert tables.coarsen(tables.grid)["sample_weight"] == fine


@pytest.mark.parametrize("labels", ["soft", "hard", "votes"])
@pytest.mark.parametrize("weights", ["none", "random"])
def test_every_number_a_reader_can_choose_is_that_of_the_rows(
    labels: str, weights: str, tmp_path: Path, rng: np.random.Generator
) -> None:
    n = 400
    p = rng.beta(0.5, 0.7, n)
    y = {"soft": rng.random(n), "hard": (rng.random(n) < p) * 1.0, "votes": rng.binomial(4, p) / 4}
    options: dict[str, Any] = {"n_votes": np.full(n, 4)} if labels == "votes" else {}
    options |= {"sample_weight": rng.random(n)} if weights == "random" else {}
    data = data_in(written(tmp_path, y[labels], {"m": p}, level=0.9, **options))
    model = data["models"][0]
    assert (model["hard"] is None) == (labels == "hard")
    kinds = {"soft": y[labels]} | ({} if labels == "hard" else {"hard": sc.harden(y[labels])})
    for (kind, label), (k, bins) in itertools.product(kinds.items(), enumerate(data["choices"])):
        rel = sc.reliability(label, p, bins=bins, **options)
        found, filled = sc.smece_interval(rel, level=0.9), rel.count > 0
        smece, low, high, *errors = model[kind][k]
        assert (smece, low, high) == pytest.approx((found.value, found.low, found.high), abs=1e-9)
        places, rows, share, means = model["bins"][k]
        assert places == np.flatnonzero(filled).tolist()
        assert rows == rel.count[filled].tolist()
        weight = rel.sums.weight / rel.sums.weight.sum()
        right = [weight, rel.mean_prob, rel.mean_label, rel.gap, *sc.gap_intervals(rel, level=0.9)]
        for shown, expected in zip([share, means, *errors], right, strict=True):
            assert shown == pytest.approx(expected[filled], rel=1e-5, abs=1e-9)


def test_page_needs_no_network(tmp_path: Path, rng: np.random.Generator) -> None:
    p = rng.random(50)
    page = written(tmp_path, p, {"p": p, "q": p**2})
    reader = Reader()
    reader.feed(page)
    assert all(each.startswith("#") for each in reader.addresses)
    assert {f'id="{each[1:]}"' in page for each in reader.addresses} == {True}
    assert "default-src 'none'; base-uri 'none'; form-action 'none'" in page
    assert len(page) < 1_500_000


def test_page_has_the_licenses_of_its_charts(tmp_path: Path) -> None:
    page = written(tmp_path, [0.2, 0.9], {"p": [0.3, 0.8]})
    for text in (
        "Copyright (c) 2015-2023, University of Washington Interactive Data Lab",
        "Redistributions in binary form must reproduce the above copyright notice",
        "Mike Bostock", "Permission is hereby granted", "Apache License, Version 2.0",
    ):  # fmt: skip
        assert text in page


def test_every_page_blocks_other_addresses_and_forms() -> None:
    pages = list((Path(sc.__file__).parent / "report").glob("*.html.jinja"))
    assert len(pages) == 3
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert "default-src 'none'; base-uri 'none'; form-action 'none'; " in text


def test_hostile_names_are_escaped(tmp_path: Path, rng: np.random.Generator) -> None:
    p = rng.random(60)
    page = written(tmp_path, p, {HOSTILE: p**2, "q": p}, by=[HOSTILE, "b", "c"] * 20, title=HOSTILE)
    reader = Reader()
    reader.feed(page)
    assert reader.tags.count("script") == 4
    assert reader.text.count(HOSTILE) > 5
    assert "<script>alert" not in page
    assert data_in(page)["models"][0]["name"] == HOSTILE


def test_segments_are_ranked_and_their_intervals_hold_together(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    n = 4000
    p, by = rng.random(n), rng.integers(0, 25, n)
    y = np.where(by == 3, np.clip(p - 0.3, 0, 1), p * 0.9)
    page = written(tmp_path, y, {"p": p}, by=by)
    reader = Reader()
    reader.feed(page)
    table = reader.text.partition("the worst 20 of 25 segments")[2]
    first = re.findall(r'<th scope="row" class="name">(\d+)</th>', page)[0]
    rel = sc.reliability(y[by == 3], p[by == 3])
    together = sc.smece_interval(rel, level=1 - 0.05 / 25)
    assert first == "3"
    assert f"{together.low:.3f} to {together.high:.3f}" in table
    assert "worse" in table


def test_every_segment_is_on_the_page(tmp_path: Path, rng: np.random.Generator) -> None:
    p, by = rng.random(2000), np.arange(2000) % 25
    page = written(tmp_path, p**2, {"p": p, "q": p**3}, by=by)
    assert page.count("<summary>The other 5 of 25 segments of") == 2
    shown = re.findall(r'<th scope="row" class="name">(\d+)</th>', page)
    for part in (shown[:25], shown[25:]):
        assert sorted(map(int, part)) == list(range(25))
    for part in data_in(page)["segments"][0]["models"]:
        assert sorted(int(row["value"]) for row in part["rows"]) == list(range(25))
    few = written(tmp_path, p**2, {"p": p}, by=by % 20)
    assert "p: 20 segments</caption>" in few
    assert "The other" not in few.partition('id="segments-title-1"')[2]
    assert "p: 1 segment</caption>" in written(tmp_path, p**2, {"p": p}, by=by * 0)


def test_every_bin_that_stands_out_is_on_the_page(tmp_path: Path) -> None:
    p = np.linspace(0, 1, 4000)
    page = written(tmp_path, p / 2, {"p": p})
    rows = re.findall(r'<tr><th scope="row">(0\.\d|0|1) to (0\.\d|1)</th>', page)
    assert min(rows) == ("0", "0.1")
    assert len(rows) == 10
    assert "<summary>The other 5 of 10 bins that stand out</summary>" in page
    assert "Miscalibrated: the 95% interval of SMECE excludes 0, which it does exactly" in page


def test_a_segment_can_be_better_than_the_whole(tmp_path: Path, rng: np.random.Generator) -> None:
    p, by = rng.random(4000), rng.integers(0, 2, 4000)
    page = written(tmp_path, np.where(by == 1, p, p / 2), {"p": p}, by=by)
    assert re.search(r"<td>better</td>", page)


def test_models_are_compared_with_one_correction(tmp_path: Path) -> None:
    nodules = lidc_malignancy()
    y, m = nodules["soft_malignant"], nodules["n_readers"]
    models = {name: nodules[name] for name in ("prob_rf_all", "prob_lr_geometry")}
    text = written(tmp_path, y, models, n_votes=m)
    assert "prob_rf_all is better calibrated than prob_lr_geometry" in text
    found = sc.compare(y, models, n_votes=m)
    assert f"{found.low:+.4f} to {found.high:+.4f}".replace("-", "\N{MINUS SIGN}") in text
    three = {**models, "again": nodules["prob_rf_all"]}
    text = written(tmp_path, y, three, n_votes=m)
    assert "do not show whether prob_rf_all or again" in text
    assert "corrected for 3 comparisons (Holm)" in text


def rows_of(batch: dict[str, Any], pred: str) -> Rows:
    return Rows(batch["y"], batch[pred], batch["w"], batch["m"], Names("y", pred))


def test_sample_is_uniform_and_the_same_in_any_order_of_pieces(rng: np.random.Generator) -> None:
    y = rng.random(5000)
    columns = {"y": y, "p": y**2, "q": y**3, "w": y + 1, "m": np.arange(5000) + 1.0}
    pieces = []
    for piece, start in enumerate(range(0, 5000, 700)):
        batch = {k: v[start : start + 700] for k, v in columns.items()}
        names = [f"g{k}" for k in range(start, min(start + 700, 5000))]
        groups = Coded(np.arange(len(names)), names)
        pieces.append((piece, {pred: rows_of(batch, pred) for pred in ("p", "q")}, groups))
    for most, kept in ((5000, 5000), (1000, 1000)):
        samples = [Sample(most), Sample(most)]
        for each, other in zip(pieces, reversed(pieces), strict=True):
            samples[0].add(*each)
            samples[1].add(*other)
        (rows, kept_groups), (same, same_groups) = (sample.rows("q", most) for sample in samples)
        for one, two in zip(rows[:4], same[:4], strict=True):
            np.testing.assert_array_equal(one, two)
        assert kept_groups is not None
        np.testing.assert_array_equal(kept_groups, same_groups)
        assert rows.y_true.size == kept
        np.testing.assert_array_equal(rows.y_prob, rows.y_true**3)
        np.testing.assert_array_equal(rows.sample_weight, rows.y_true + 1)
        # In the order of the rows; early and late rows have the same chance.
        assert rows.n_votes is not None
        assert (np.diff(rows.n_votes) > 0).all()
        assert kept_groups.tolist() == [f"g{k - 1:.0f}" for k in rows.n_votes]
        assert abs(rows.n_votes.mean() - 2500.5) < 4 * 5000 / np.sqrt(12 * kept)


def test_sample_of_files_does_not_depend_on_threads(tmp_path: Path) -> None:
    p = np.random.default_rng(0).random(3000)
    for k in range(6):
        frame = pd.DataFrame({"y": p**2, "p": p, "g": np.arange(3000) // 10})[k::6]
        frame.to_csv(tmp_path / f"{k}.csv", index=False)
    options = ["--label", "y", "--pred", "p", "--group", "g", "-o", str(tmp_path / "r.html")]
    pages = []
    for _ in range(3):
        assert cli.run(["report", str(tmp_path / "*.csv"), *options]) == 0
        page = (tmp_path / "r.html").read_text(encoding="utf-8")
        # Sums of groups on an engine differ in their last digits.
        page = re.sub('"checksum":"[0-9a-f]+"', "", page)
        pages.append(re.sub(r"\d+\.\d+(e-\d+)?", lambda found: f"{float(found[0]):.9f}", page))
    assert pages[0] == pages[1] == pages[2]
    frames = pd.concat([pd.read_csv(tmp_path / f"{k}.csv") for k in range(6)])
    found = sc.calibrators.repair_preview(
        frames.y.to_numpy(), frames.p.to_numpy(), groups=frames.g.astype(str).to_numpy()
    )
    for trial in found.after:
        assert f'<td class="wide">{trial.brier:.5f}</td><td>{trial.smece.value:.3f}</td>' in page


def test_recalibration_is_evaluated_on_held_out_rows(tmp_path: Path) -> None:
    nodules = lidc_malignancy()
    y, p = nodules["soft_malignant"], nodules["prob_rf_all"]
    page = written(tmp_path, y, {"forest": p})
    found = sc.calibrators.repair_preview(y, p)
    assert f"{found.verdict}. It changes SMECE from {found.before.smece.value:.3f} to" in page
    assert found.notes[0] in page
    assert f"after {found.best}" in page
    for trial in found.after:
        assert f'<td class="wide">{trial.brier:.5f}</td><td>{trial.smece.value:.3f}</td>' in page
    exact = written(tmp_path, y, {"exact": y})
    assert "No method improved the held-out Brier score" in exact
    few = written(tmp_path, y[:99], {"forest": p[:99]}, sample_weight=np.ones(99))
    assert "What recalibration would do</h2>" not in few


def test_a_report_on_many_classes_is_about_the_predicted_class(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    p = rng.dirichlet(np.ones(4) / 2, 3000)
    y = 0.6 * p + 0.1  # overconfident predictions
    path = tmp_path / "report.html"
    models = {"model": p, "other": 0.5 * p + 0.125}
    sc.write_report(path, y, models, by=np.arange(3000) % 3, title="Four classes")
    page = path.read_text(encoding="utf-8")
    data = data_in(page)
    at = data["choices"].index(10)
    majority = np.eye(4)[y.argmax(axis=1)]
    for kind, label in (("soft", y), ("hard", majority)):
        smece = data["models"][0][kind][at][0]
        assert smece == pytest.approx(sc.top_label_smece(label, p), abs=1e-12)
    assert data["tables"]["targets"] == ["top", "0", "1", "2", "3"]
    sc.write_report(tmp_path / "from.html", saved_and_loaded(data["tables"], tmp_path))
    again = (tmp_path / "from.html").read_text(encoding="utf-8")
    then = data_in(again)
    for ours, whole in zip(then["models"], data["models"], strict=True):
        assert_same_card(ours["soft"][then["choices"].index(10)], whole["soft"][at])
    assert_same_card(then["classes"], data["classes"])
    assert "The probability of the predicted class is compared with" in again
    assert "overconfident" in page
    assert "The probability of the predicted class is compared with" in page
    assert "other is better calibrated than model" in page
    assert "What recalibration would do</h2>" not in page
    assert "softcal recalibrate ROWS --label-columns … --pred-columns …" in text_of(page)


def test_classes_of_a_report_are_listed_worst_first(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    p = rng.dirichlet(np.full(30, 0.3), 2000)
    y = p.copy()
    y[:, 7] *= 0.5
    y[:, 3] += 0.3 * p[:, 7]
    y[:, 4] += 0.2 * p[:, 7]
    path = tmp_path / "report.html"
    sc.write_report(path, y, {"model": p, "exact": y})
    page = path.read_text(encoding="utf-8")
    model, exact = data_in(page)["classes"]
    assert (model["name"], [row[0] for row in model["rows"][:2]]) == ("model", ["7", "3"])
    rel = sc.reliability(y[:, 7], p[:, 7])
    alone = sc.smece_interval(rel, level=1 - 0.05 / 60)
    expected = [y[:, 7].mean(), rel.smece, alone.debiased, alone.low, alone.high, rel.bias]
    assert model["rows"][0][1:] == pytest.approx(expected, rel=1e-5)
    assert [row[2] for row in exact["rows"]] == [0.0] * 30
    assert "The worst 20 of 30 classes" in page
    assert "all 60 hold, including" in " ".join(page.split())
    assert page.count("<figure>") == 12
    assert "DistCE (total variation distance)" in " ".join(page.split())
    assert (
        f"<td>{float((y * (p == p.max(axis=1, keepdims=True))).sum(axis=1).mean()):.4f}</td>"
        in page
    )
    grouped = tmp_path / "grouped.html"
    sc.write_report(grouped, y, {"model": p}, groups=np.arange(2000) // 4)
    found = data_in(grouped.read_text(encoding="utf-8"))["classes"][0]["rows"][0]
    tied = sc.reliability(y[:, 7], p[:, 7], groups=np.arange(2000) // 4)
    interval = sc.smece_interval(tied, level=1 - 0.05 / 30)
    assert found[4:6] == pytest.approx([interval.low, interval.high], rel=1e-5)


def test_report_on_a_thousand_classes_stays_small(tmp_path: Path, rng: np.random.Generator) -> None:
    p = rng.dirichlet(np.full(1000, 0.01), 300)
    path = tmp_path / "report.html"
    sc.write_report(path, p, {"model": p})
    page = path.read_text(encoding="utf-8")
    assert len(data_in(page)["classes"][0]["rows"]) == 1000
    assert "The next 180 of 1,000 classes" in page
    assert data_in(page)["tables"] is None
    assert "Download the tables" not in page
    assert shown_of(page, "classes").startswith("0, 1, 2")
    assert len(page) < 1_500_000


def test_report_from_saved_classes_is_that_of_their_rows(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    p, label = rng.dirichlet([1, 1, 1], 300), rng.integers(0, 3, 300)
    frame = pd.DataFrame(p, columns=["p_a", "p_b", "p_c"])
    frame = frame.assign(y=np.array(["a", "b", "c"])[label], site=np.arange(300) % 2)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    rows, saved = str(tmp_path / "rows.csv"), str(tmp_path / "rows.softcal")
    options = ["--label", "y", "--pred-columns", "p_*", "--by", "site"]
    assert cli.run(["scan", rows, *options, "-o", saved]) == 0
    pages = []
    for source, columns in ((rows, options), (saved, [])):
        assert cli.run(["report", source, *columns, "-o", str(tmp_path / "r.html")]) == 0
        pages.append((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert_same_card(*map(data_in, pages))
    assert f"softcal recalibrate {rows} --label y --pred-columns" in text_of(pages[0])


def test_class_named_like_the_predicted_class_is_refused(tmp_path: Path) -> None:
    y = pd.DataFrame([[0.5, 0.5]], columns=["top", "b"])
    with pytest.raises(sc.InputError, match="no class may be named 'top'"):
        sc.write_report(tmp_path / "r.html", y, {"m": y})
    with pytest.raises(sc.InputError, match="sample_weight"):
        sc.write_report(tmp_path / "r.html", y.to_numpy(), {"m": y.to_numpy()}, sample_weight=[0])


def saved_and_loaded(saved: dict[str, Any], folder: Path) -> sc.TableSet:
    (folder / "tables.softcal").write_text(json.dumps(saved))
    return sc.load(folder / "tables.softcal")


def shown_of(page: str, term: str) -> str:
    """Return the text of a term in the section on the method."""
    method = page[page.index('id="how-title"') :]
    found = re.search(rf"<dt>{term}</dt><dd>(.*?)</dd>", method)
    assert found is not None
    return found[1]


def test_report_on_classes_states_votes(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    shares, predictions = [[0.75, 0.25], [0.5, 0.5]], {"m": [[0.8, 0.2], [0.3, 0.7]]}
    for y, words in ((sc.Votes([[3, 1], [2, 2]]), "counted in the labels"), (shares, "not given")):
        sc.write_report(path, y, predictions)
        assert shown_of(path.read_text(encoding="utf-8"), "votes") == words


def test_report_on_many_classes_takes_groups_and_segments(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    p, patient = rng.dirichlet([1, 1, 1], 300), rng.integers(0, 60, 300)
    frame = pd.DataFrame(
        np.hstack([p[:, ::-1], p]), columns=["l_a", "l_b", "l_c", "p_a", "p_b", "p_c"]
    )
    frame = frame.assign(site=np.where(np.arange(300) % 3, "x", "y"), age=patient % 2, g=patient)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    options = ["--label-columns", "l_*", "--pred-columns", "p_*", "--by", "site", "--by", "age"]
    output = ["--group", "g", "--bins", "5", "-o", str(tmp_path / "r.html")]
    assert cli.run(["report", str(tmp_path / "rows.csv"), *options, *output]) == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert shown_of(page, "groups") == "g"
    assert [each["by"] for each in data_in(page)["segments"]] == ["site", "age"]
    tables = saved_and_loaded(data_in(page)["tables"], tmp_path)
    clusters = tables[tables.models[0]].clusters
    assert clusters is not None
    assert clusters.count == len(set(patient.tolist()))
    top = p.argmax(axis=1)
    mass, probability = p[:, ::-1][np.arange(300), top], p.max(axis=1)
    rel = sc.reliability(mass, probability, bins=5, groups=patient)
    found = sc.smece_interval(rel)
    at = data_in(page)["choices"].index(5)
    assert data_in(page)["models"][0]["soft"][at][:3] == pytest.approx(
        [found.value, found.low, found.high], abs=1e-9
    )


@pytest.mark.parametrize(("kind", "scale"), [("vote", 5), ("label", 1)])
def test_recalibration_command_of_report_on_classes_runs(
    kind: str,
    scale: int,
    tmp_path: Path,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    y = rng.multinomial(5, [0.5, 0.3, 0.2], 60) * scale / 5
    p = rng.dirichlet([0.2, 0.2, 0.2], 60)
    header = "l a,l b,l c,p a,p b,p c"  # a shell would split these names
    np.savetxt(
        tmp_path / "my data.csv", np.hstack([y, p]), delimiter=",", header=header, comments=""
    )
    monkeypatch.chdir(tmp_path)
    columns = [f"--{kind}-columns", "l *", "--pred-columns", "p *"]
    assert cli.run(["report", "my data.csv", *columns]) == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert shown_of(page, "classes") == "a, b, c"
    assert shown_of(page, "votes") == ("counted in the labels" if kind == "vote" else "not given")
    assert "<h1>Calibration of p * (3 classes)</h1>" in page
    command = re.search(r"softcal (recalibrate .*?)\n", text_of(page))
    assert command is not None
    assert cli.run(shlex.split(command[1])) == 0
    assert sc.calibrators.load_calibrator(json.loads((tmp_path / "calibrator.json").read_text()))


def test_segments_of_another_length_are_refused(tmp_path: Path) -> None:
    for by in (["a", "b"], ["a"] * 9):
        with pytest.raises(sc.InputError, match="one value for each of the 3 rows"):
            sc.write_report(tmp_path / "r.html", [0.5] * 3, {"m": [0.5] * 3}, by=by)


def test_verdict_names_the_side_of_the_predictions(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    for bins in (1, 3, 7):
        sc.write_report(path, [0.8] * 300, {"m": [0.45] * 300}, bins=bins)
        text = path.read_text(encoding="utf-8")
        assert "below 0.5 (100% of the rows), it is 35.0 percentage points too low" in text


def test_a_report_on_rows_without_weight_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sc.InputError, match="sample_weight must have a positive value somewhere"):
        sc.write_report(tmp_path / "r.html", [0.5], {"m": [0.5]}, sample_weight=[0.0])


@pytest.mark.parametrize("by", [[["a", "b", "c"]] * 3, np.zeros((3, 2)), 3])
def test_segment_column_must_be_one_dimensional(by: Any, tmp_path: Path) -> None:
    with pytest.raises(sc.InputError, match="by must be one column: it has shape"):
        sc.write_report(tmp_path / "r.html", [0.1, 0.9, 0.5], {"m": [0.2, 0.8, 0.5]}, by=by)


def test_chart_specifications_are_valid_vega_lite() -> None:
    found = charts(["a", "b"], [-0.1, 0.5], [0.0, 0.2])
    assert {"decision", "route"} <= {*found}
    assert not {"decision", "route"} & {*charts(["a", "b"])}
    for spec in found.values():
        alt.Chart.from_dict(spec, validate=True)


def test_vega_script_is_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def bundle(snippet: str) -> str:
        made.append(snippet)
        return "the script"

    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert [vega_script(), vega_script()] == ["the script"] * 2
    assert len(made) == 1
    monkeypatch.setattr("softcal.report.charts.version", lambda _: "another")
    assert vega_script() == "the script"
    assert len(made) == 2


def test_vega_script_is_regenerated_without_a_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda _: "the script")
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert vega_script() == "the script"
    assert (tmp_path / "file").read_text() == "no folder"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "expanduser", no_home)
    assert vega_script() == "the script"


def no_home(_: Path) -> Path:
    message = "Could not determine home directory."
    raise RuntimeError(message)


def watched(path: Path, *, rows: int, dates: list[Any], drift: float = 0.3) -> tuple[str, Any]:
    """Return the page of a watch whose model is off in the second half, and the last state."""
    rng, watch, states = np.random.default_rng(0), sc.Watch(), []
    for k, date in enumerate(dates):
        p = rng.uniform(0.4, 0.9, rows)
        y = rng.random(rows) < p - drift * (k >= len(dates) / 2)
        states.append(watch.update(sc.reliability(y, p), date=date))
    write_watch_page(path / "watch.html", states, tolerance=0.02, level=0.95)
    return (path / "watch.html").read_text(encoding="utf-8"), states


def lines_of(page: str) -> list[list[str]]:
    """Return the cells of the table of updates, newest first."""
    found = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', page, re.DOTALL)
    return [[date, *re.findall(r"<td[^>]*>(.*?)</td>", cells)] for date, cells in found]


def test_watch_page_lists_weeks_if_days_have_few_rows(tmp_path: Path) -> None:
    days = pd.date_range("2026-03-04", periods=60).strftime("%Y-%m-%d").tolist()
    for rows, weekly in ((29, True), (30, False)):
        page, states = watched(tmp_path, rows=rows, dates=days)
        lines = lines_of(page)
        shown = [line[0] for line in lines]
        mondays = sorted({str(pd.Timestamp(day).to_period("W").start_time.date()) for day in days})
        assert shown == (mondays if weekly else days)[::-1]
        assert sum(int(line[1]) for line in lines) == 60 * rows
        assert ("46 earlier updates" in page) == (not weekly)
        # A line of a week is the state at its end, with the largest evidence of the week.
        for line in lines if weekly else []:
            end = str((pd.Timestamp(line[0]) + pd.Timedelta("7D")).date())
            week = [each for each in states if line[0] <= str(each.date) < end]
            assert line[3] == f"{week[-1].worst.smece:.4f}"
            assert line[5] == f"{max(each.evidence for each in week):.3g}"
    numbered, _ = watched(tmp_path, rows=5, dates=list(range(20)))
    assert [line[0] for line in lines_of(numbered)] == [str(k) for k in range(19, -1, -1)]


def test_watch_page_shows_the_error_since_the_change(tmp_path: Path) -> None:
    days = pd.date_range("2026-03-04", periods=40).strftime("%Y-%m-%d").tolist()
    page, states = watched(tmp_path, rows=50, dates=days)
    last = states[-1]
    assert last.alarm
    assert last.since >= days[18]
    text = re.sub("</d[dt]>", " ", page)
    assert f"predictions since {last.since} " in text_of(text)
    assert f"ECE since then {last.worst.smece_since:.4f} " in text_of(text)
    assert f"mean gap since then +{last.worst.gap_since:.3f} " in text_of(text)
    calm, _ = watched(tmp_path, rows=50, dates=days, drift=0.0)
    assert "since then" not in calm
