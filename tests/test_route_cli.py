"""`softcal route`: rules from rows and saved sets, as text, JSON, and figure."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import assert_same_card, softcal, softcal_here
from hostile import NAMES

import softcal as sc
from softcal.inference.routing import RouteOptions

LABELS = ("--label", "y", "--pred", "p")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write rows of two segments with votes, a second model, and a predicted vote share."""
    rng = np.random.default_rng(31)
    path, n = tmp_path_factory.mktemp("route"), 3000
    p = rng.beta(0.4, 0.4, n)
    crowd = np.clip(p + rng.normal(0, 0.1, n), 0, 1)
    rows = {
        "y": rng.binomial(5, p) / 5, "p": p, "q": rng.random(n), "site": np.arange(n) % 2,
        "crowd": crowd, "sure": np.maximum(p, 1 - p), "patient": np.arange(n) // 3,
    }  # fmt: skip
    pd.DataFrame(rows).to_parquet(path / "rows.parquet")
    return path


@pytest.fixture
def rows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")
    return pd.read_parquet(folder / "rows.parquet")


def card(*arguments: object, code: int = 0) -> Any:
    done = softcal_here("route", *arguments, "--format", "json")
    assert (done.returncode, done.stderr) == (code, "")
    return json.loads(done.stdout)


def assert_rule(row: Any, found: sc.Route) -> None:
    assert found.rule is not None
    rule = (row["threshold"], row["accepted"], row["share"], row["risk"], row["risk_high"])
    assert rule == pytest.approx(tuple(found.rule), abs=1e-9)
    area = (found.aurc, found.aurc_low, found.aurc_high)
    assert (row["aurc"], row["aurc_low"], row["aurc_high"]) == pytest.approx(area, abs=1e-9)
    assert (row["n"], row["level"], row["sentence"]) == (found.n, found.level, found.sentence)


def test_json_has_the_numbers_of_the_library(rows: pd.DataFrame) -> None:
    (model,) = card("rows.parquet", *LABELS, "--max-disagreement", 0.06, "--level", 0.9)["models"]
    found = sc.route(rows["y"], rows["p"], max_disagreement=0.06, level=0.9)
    assert_rule(model["overall"], found)
    assert found.hardened is not None
    assert model["overall"]["hardened_share"] == found.hardened.share
    assert model["overall"]["hardened_risk"] == pytest.approx(found.hardened.risk)
    curve = pd.DataFrame(model["curve"])
    for name, expected in found.curve._asdict().items():
        np.testing.assert_allclose(curve[name], expected, atol=1e-9)


def test_text_fits_the_terminal(rows: pd.DataFrame) -> None:
    done = softcal("route", "rows.parquet", *LABELS, "--by", "site", "--crowd", "crowd")
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    shown = " ".join(done.stdout.split())
    assert sc.route(rows["y"], rows["p"]).sentence in shown
    assert "Labels hardened to the majority would promise the same for" in shown
    assert "hold simultaneously" in shown
    assert "by closeness to crowd; difference" in shown


def test_exit_code_is_1_without_a_rule(rows: pd.DataFrame) -> None:
    del rows
    (model,) = card("rows.parquet", "--label", "y", "--pred", "q", code=1)["models"]
    assert model["overall"]["threshold"] is None
    assert model["overall"]["sentence"].startswith("No rule can be promised")
    done = softcal_here("route", "rows.parquet", *LABELS, "--pred", "q")
    assert done.returncode == 1  # one of two models has none
    assert "p: Accept predictions" in done.stdout
    assert "q: No rule can be promised" in done.stdout


def test_segments_hold_jointly(rows: pd.DataFrame) -> None:
    (model,) = card("rows.parquet", *LABELS, "--by", "site")["models"]
    assert [each["segment"] for each in model["segments"]] == ["site = 0", "site = 1"]
    for site, row in enumerate(model["segments"]):
        part = rows[rows["site"] == site]
        assert row["level"] == pytest.approx(0.975)
        assert_rule(row, sc.route(part["y"], part["p"], level=row["level"]))


@pytest.mark.parametrize("options", [(), ("--by", "site"), ("--group", "patient")])
def test_saved_sets_give_the_rule_of_rows(rows: pd.DataFrame, options: tuple[str, ...]) -> None:
    del rows
    scanned = softcal_here("scan", "rows.parquet", *LABELS, *options, "-o", "set.softcal")
    assert scanned.returncode == 0, scanned.stderr
    by = options if "--by" in options else ()
    ours, saved = card("rows.parquet", *LABELS, *options), card("set.softcal", *by)
    assert_same_card(saved["models"], ours["models"])


def test_other_scores(rows: pd.DataFrame) -> None:
    y, p = rows["y"].to_numpy(), rows["p"].to_numpy()
    agree, limit = np.where(p >= 0.5, y, 1 - y), ("--max-disagreement", 0.2)
    for option, column, score in (
        ("--score", "sure", rows["sure"]),
        ("--crowd", "crowd", 1 - np.abs(p - rows["crowd"])),
    ):
        (model,) = card("rows.parquet", *LABELS, option, column, *limit)["models"]
        (row,) = model["scores"]
        found = sc.route(agree, score, max_disagreement=0.2, options=RouteOptions(top_label=True))
        assert found.rule is not None
        assert (row["threshold"], row["share"]) == (found.rule.threshold, found.rule.share)
        assert row["sentence"] == replace(found, by_score=True).sentence
        difference = row["aurc"] - model["overall"]["aurc"]
        assert model["area_difference"] == pytest.approx(difference, abs=2e-4)
        low, high = model["area_difference_low"], model["area_difference_high"]
        assert low <= model["area_difference"] <= high
        # The column is a score, not another model.
        assert_rule(model["overall"], sc.route(y, p, max_disagreement=0.2))


def test_classes_use_the_top_label(rows: pd.DataFrame, tmp_path: Path) -> None:
    p = rows["p"].to_numpy()
    yes = (5 * rows["y"]).round().astype(int)
    frame = pd.DataFrame({"n_a": yes, "n_b": 5 - yes, "p_a": p, "p_b": 1 - p})
    frame.to_csv(tmp_path / "classes.csv", index=False)
    options = ("--vote-columns", "n_*", "--pred-columns", "p_*")
    (model,) = card(tmp_path / "classes.csv", *options)["models"]
    expected = sc.route(rows["y"], p)
    assert expected.rule is not None
    assert model["overall"]["share"] == pytest.approx(expected.rule.share, abs=0.01)


def test_every_look(rows: pd.DataFrame) -> None:
    del rows
    found = card("rows.parquet", *LABELS, "--at-every-look")
    once = card("rows.parquet", *LABELS)
    assert found["at_every_look"]
    assert found["models"][0]["overall"]["share"] < once["models"][0]["overall"]["share"]
    assert "holds at every look" in softcal_here(
        "route", "rows.parquet", *LABELS, "--at-every-look"
    ).stdout.replace("\n", " ")


def test_figures(rows: pd.DataFrame, tmp_path: Path) -> None:
    del rows
    done = softcal_here("route", "rows.parquet", *LABELS, "--plot", tmp_path / "route.svg")
    assert done.returncode == 0, done.stderr
    drawn = ("plot", "rows.parquet", *LABELS, "--kind", "risk-coverage", "--by", "site")
    done = softcal_here(*drawn, "--max-disagreement", 0.1, "-o", tmp_path / "plot.svg")
    assert done.returncode == 0, done.stderr
    for name in ("route", "plot"):
        assert "</svg>" in (tmp_path / f"{name}.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--score", "sure", "--crowd", "crowd"], "pass --score or --crowd, not both"),
        (["--pred", "q", "--score", "sure"], "are for one model"),
        (["--max-disagreement", "0"], "max_disagreement must be between 0 and 1"),
        (["--at-every-look", "--group", "patient"], "needs independent rows"),
    ],
)
def test_refusals(rows: pd.DataFrame, options: list[str], message: str) -> None:
    del rows
    done = softcal_here("route", "rows.parquet", *LABELS, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in " ".join(done.stderr.split())


def test_scores_are_for_rows(rows: pd.DataFrame) -> None:
    sc.scan(rows, y_true="y", y_prob="p").save("plain.softcal")
    done = softcal_here("route", "plain.softcal", "--score", "sure")
    assert done.returncode == 2
    assert "are for rows" in done.stderr


@pytest.mark.filterwarnings("ignore:.*[Gg]lyph")
@pytest.mark.parametrize("name", NAMES)
def test_hostile_names(rows: pd.DataFrame, tmp_path: Path, name: str) -> None:
    frame = rows[["y", "p"]].assign(site=name).rename(columns={"p": name})
    frame.to_parquet(tmp_path / "rows.parquet")
    asked = (tmp_path / "rows.parquet", "--label", "y", "--pred", name, "--by", "site")
    (model,) = card(*asked)["models"]
    assert model["pred"] == name
    assert model["segments"][0]["segment"] == f"site = {name}"
    done = softcal_here("route", *asked, "--plot", tmp_path / "route.svg")
    assert done.returncode == 0, done.stderr
    assert all(c.isprintable() for c in done.stdout.replace("\n", ""))
