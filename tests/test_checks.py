"""`check`, `assert_calibrated` and `softcal check`: pass, fail, undecided, and their messages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from command_line import assert_same_card, softcal_here
from hypothesis import given
from hypothesis import strategies as st

import softcal as sc

if TYPE_CHECKING:
    from pathlib import Path


def table(rng: np.random.Generator, off: Any, n: int = 4000) -> Any:
    p = rng.uniform(0.1, 0.9, size=n)
    return sc.reliability(rng.uniform(size=n) < np.clip(p - off, 0, 1), p)


@given(st.floats(0.001, 0.999), st.integers(0, 3))
def test_outcome_follows_from_the_interval(limit: float, seed: int) -> None:
    rel = table(np.random.default_rng(seed), 0.05, n=200)
    interval = sc.smece_interval(rel)
    expected = "pass" if interval.high <= limit else "fail" if interval.low > limit else "undecided"
    assert sc.check(rel, max_smece=limit).outcome == expected


def test_rows_and_table_give_the_same_check(rng: np.random.Generator) -> None:
    p = rng.uniform(size=500)
    y = rng.binomial(3, p) / 3
    rel = sc.reliability(y, p, n_votes=3, bins=5)
    limits: dict[str, Any] = {"max_smece": 0.03, "max_gap": 0.1, "min_rows": 50}
    assert sc.check(y, p, n_votes=3, bins=5, **limits) == sc.check(rel, **limits)


def rows_of(rng: np.random.Generator, kind: str, off: float, n: int) -> dict[str, Any]:
    """Return rows that are too high by `off` everywhere, with labels of one kind."""
    p = rng.uniform(0.25, 0.75, size=n)
    share = rng.beta(8 * (p - off), 8 * (1 - p + off))
    if kind == "soft":
        return {"y_true": share, "y_prob": p}
    votes = 5 if kind == "votes" else 1
    return {"y_true": rng.binomial(votes, share) / votes, "y_prob": p, "n_votes": np.full(n, votes)}


@pytest.mark.parametrize("kind", ["0/1", "votes", "soft"])
def test_advised_rows_decide_in_at_least_80_percent_of_cases(kind: str) -> None:
    """More rows are added to those that led to the advice; benchmarks/advice.py has more cases."""
    rng = np.random.default_rng(7)
    n = {"0/1": 3000, "votes": 800, "soft": 400}[kind]
    decided = []
    for off in (0.0, 0.025, 0.04, 0.06, 0.075):
        for _ in range(60):
            first = rows_of(rng, kind, off, n)
            found = sc.check(**first, max_smece=0.05)
            if found.more_rows is not None:
                more = rows_of(rng, kind, off, found.more_rows)
                both: dict[str, Any] = {
                    name: np.concatenate([first[name], more[name]]) for name in first
                }
                decided.append(sc.check(**both, max_smece=0.05).outcome != "undecided")
    assert len(decided) > 15
    assert np.mean(decided) >= 0.8


@pytest.mark.parametrize("limit", [0.01, 0.05, 0.2, 0.5])
def test_three_rows_give_no_number_of_rows(limit: float) -> None:
    for y in ([0.0, 1.0, 0.0], [0.3, 0.4, 0.2], [1.0, 1.0, 1.0]):
        found = sc.check(y, [0.3, 0.6, 0.8], max_smece=limit)
        assert found.outcome == "undecided"
        assert found.more_rows is None
        assert found.reasons[-1] == "These data do not show how many more rows would decide."


def test_error_at_the_limit_seldom_gives_a_number_of_rows(rng: np.random.Generator) -> None:
    found = [sc.check(table(rng, 0.05, n=2000), max_smece=0.05) for _ in range(300)]
    assert sum(each.more_rows is not None for each in found) <= 30


def test_advice_counts_groups_and_raters_where_they_determine_the_interval(
    rng: np.random.Generator,
) -> None:
    p = np.repeat(rng.uniform(0.25, 0.75, size=300), 10)
    moved = np.repeat(rng.normal(0, 0.1, size=300), 10)
    y = (rng.uniform(size=p.size) < np.clip(p - 0.035 - moved, 0, 1)).astype(float)
    of_groups = sc.reliability(y, p, groups=np.repeat(np.arange(300), 10))
    grouped: Any = next(
        each
        for each in (sc.check(of_groups, max_smece=limit / 1000) for limit in range(40, 120))
        if each.more_groups is not None
    )
    assert (grouped.outcome, grouped.more_rows, grouped.more_raters) == ("undecided", None, None)
    assert f"About {grouped.more_groups:,} more groups would decide." == grouped.reasons[-1]
    item, worker = np.repeat(np.arange(600), 5), rng.integers(60, size=3000)
    truth = rng.uniform(0.25, 0.75, size=600)
    lean = rng.normal(0, 0.05, size=60)
    vote = rng.uniform(size=3000) < np.clip(truth[item] - 0.03 + lean[worker], 0, 1)
    frame = {"item": item, "worker": worker, "vote": vote.astype(int)}
    votes = sc.Votes.from_long(
        frame, item="item", label="vote", worker="worker", classes=(0, 1), allow_repeated=True
    )
    rel = sc.reliability(votes, truth, raters=True)
    rated: Any = next(
        each
        for each in (sc.check(rel, max_smece=limit / 1000) for limit in range(40, 120))
        if each.more_raters is not None
    )
    assert rated.more_groups is None
    expected = (
        f"About {rated.more_rows:,} more rows with the votes of {rated.more_raters:,} more raters "
        "would decide."
    )
    assert rated.reasons[-1] == expected


def test_several_undecided_bins_need_more_rows_than_one() -> None:
    y, p = np.tile([0.33, 0.61], 200), np.full(400, 0.45)
    one = sc.check(y, p, max_gap=0.0319)
    both = sc.check([*y, *(y + 0.1)], [*p, *(p + 0.1)], max_gap=0.035)
    assert [each.outcome for each in (one, both)] == ["undecided"] * 2
    assert one.more_rows is not None
    assert both.more_rows is not None
    assert both.more_rows > 2 * one.more_rows
    few = sc.check([*y, 0.5], [*p, 0.95], max_gap=0.035)  # with 100 rows, it is judged too
    assert (few.outcome, few.more_rows) == ("undecided", None)


def test_estimate_at_the_limit_gives_no_number_of_rows(rng: np.random.Generator) -> None:
    rel = table(rng, 0.05)
    at = sc.smece_interval(rel).debiased
    found = sc.check(rel, max_smece=at)
    assert found.outcome == "undecided"
    assert found.more_rows is None
    assert "do not show how many more rows would decide" in str(found).replace("\n", " ")


def test_gap_of_each_bin_with_enough_rows_is_judged(rng: np.random.Generator) -> None:
    p = np.concatenate([np.full(500, 0.15), np.full(500, 0.55), np.full(20, 0.95)])
    mean = np.concatenate([np.full(500, 0.15), np.full(500, 0.2), np.full(20, 0.0)])
    rel = sc.reliability(rng.uniform(size=p.size) < mean, p)
    found = sc.check(rel, max_gap=0.1)
    assert found.outcome == "fail"
    assert found.reasons[0].startswith("The gap of predictions in 0.5 to 0.6, +0.3")
    assert "1 bin has fewer than 100 rows and is not judged." in found.reasons[-1]
    low, high = sc.gap_intervals(rel, simultaneous=True)
    for limit in (0.05, 0.2, 0.35, 0.5):
        judged = sc.check(rel, max_gap=limit).outcome
        largest = np.maximum(np.abs(low), np.abs(high))[[1, 5]].max()
        smallest = np.maximum(low, -high)[[1, 5]].max()
        expected = "pass" if largest <= limit else "fail" if smallest > limit else "undecided"
        assert judged == expected


def test_without_a_bin_of_enough_rows_no_gap_is_judged() -> None:
    found = sc.check([0.5, 0.4], [0.5, 0.4], max_gap=0.1)
    assert found.outcome == "undecided"
    assert found.reasons[0] == "No bin has 100 rows, so no gap is judged."
    assert found.more_rows is None


def test_worst_of_two_limits_decides(rng: np.random.Generator) -> None:
    rel = table(rng, 0.05)
    assert sc.check(rel, max_smece=0.5, max_gap=0.001).outcome == "fail"
    assert repr(sc.check(rel, max_smece=0.5, max_gap=0.5)) == "Check('pass')"


def test_two_limits_hold_together(rng: np.random.Generator) -> None:
    """Each limit is judged at half the probability of an error."""
    rel = table(rng, 0.05)
    both = sc.check(rel, max_smece=0.06, max_gap=0.2, level=0.9)
    alone = (
        sc.check(rel, max_smece=0.06, level=0.95), sc.check(rel, max_gap=0.2, level=0.95)
    )  # fmt: skip
    assert set(both.reasons) == {reason for each in alone for reason in each.reasons}
    wrong = 0
    for _ in range(300):  # the model is at both limits
        found = sc.check(table(rng, 0.05, n=2000), max_smece=0.05, max_gap=0.05, min_rows=1)
        wrong += found.outcome == "fail"
    assert wrong <= 15  # three standard errors above 0.025


def test_model_at_the_limit_seldom_passes_and_seldom_fails(rng: np.random.Generator) -> None:
    """At the margin each wrong outcome has a probability of at most (1 - level) / 2."""
    found = [sc.check(table(rng, 0.05, n=2000), max_smece=0.05).outcome for _ in range(300)]
    # Three standard errors of 300 tries above 0.025.
    assert found.count("pass") <= 15
    assert found.count("fail") <= 15


def test_assert_calibrated_raises_with_the_reasons(rng: np.random.Generator) -> None:
    good, bad = table(rng, 0.0), table(rng, 0.2)
    sc.assert_calibrated(good, max_smece=0.05)
    with pytest.raises(AssertionError, match=r"is above 0\.05"):
        sc.assert_calibrated(bad, max_smece=0.05)
    between = sc.smece_interval(bad).value
    with pytest.raises(AssertionError, match="UNDECIDED"):
        sc.assert_calibrated(bad, max_smece=between)
    sc.assert_calibrated(bad, max_smece=between, undecided="pass")
    with pytest.raises(sc.InputError, match="undecided must be 'pass' or 'fail'"):
        sc.assert_calibrated(good, max_smece=0.05, undecided="maybe")  # type: ignore[arg-type]


def test_missing_and_impossible_limits_are_refused() -> None:
    with pytest.raises(sc.InputError, match="name a limit"):
        sc.check([0.5], [0.5])
    with pytest.raises(sc.InputError, match="max_gap must be above 0 and below 1: got 2"):
        sc.check([0.5], [0.5], max_gap=2)


@pytest.fixture
def rows(rng: np.random.Generator, tmp_path: Path) -> Any:
    p = rng.uniform(size=3000)
    country = rng.choice(["DE", "FR"], 3000)
    y = rng.uniform(size=3000) < np.where(country == "FR", np.clip(p - 0.3, 0, 1), p)
    path = tmp_path / "rows.csv"
    pd.DataFrame({"country": country, "p": p, "y": y.astype(int)}).to_csv(path, index=False)
    return path, "--label", "y", "--pred", "p"


@pytest.mark.parametrize(
    ("options", "outcome", "code"),
    [
        (("--max-smece", 0.3), "pass", 0),
        (("--max-smece", 0.05), "fail", 1),
        (("--max-smece", 0.12), "undecided", 3),
        (("--max-smece", 0.12, "--undecided", "pass"), "undecided", 0),
        (("--max-smece", 0.12, "--undecided", "fail"), "undecided", 1),
        (("--max-smece", 0.2, "--by", "country"), "fail", 1),
    ],
)
def test_exit_code_tells_the_outcome(
    rows: Any, options: tuple[Any, ...], outcome: str, code: int
) -> None:
    done = softcal_here("check", *rows, *options)
    assert done.returncode == code
    assert f"rows.csv: {outcome.upper()}" in done.stdout
    card = json.loads(softcal_here("check", *rows, *options, "--format", "json").stdout)
    assert card["outcome"] == outcome


def test_segments_are_named_and_judged_together(rows: Any, tmp_path: Path) -> None:
    done = softcal_here("check", *rows, "--max-smece", 0.2, "--by", "country")
    assert "p, country = DE" in done.stdout
    assert "p, country = FR" in done.stdout
    assert "98.3333% interval" in done.stdout
    softcal_here("scan", *rows, "--by", "country", "-o", tmp_path / "t.softcal")
    saved = softcal_here(
        "check", tmp_path / "t.softcal", "--max-smece", 0.2, "--by", "country", "--format", "json"
    )
    from_rows = softcal_here(
        "check", *rows, "--max-smece", 0.2, "--by", "country", "--format", "json"
    )
    assert_same_card(json.loads(saved.stdout), json.loads(from_rows.stdout))


def test_rows_without_a_segment_are_a_segment(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("y,p,site\n" + "0.5,0.5,\n0.4,0.5,a\n" * 30, encoding="utf-8")
    done = softcal_here(
        "check", path, "--label", "y", "--pred", "p", "--by", "site", "--max-smece", 0.2
    )
    assert "p, site = (missing), 30 rows: pass" in done.stdout


def test_command_without_a_limit_is_refused(rows: Any) -> None:
    done = softcal_here("check", *rows)
    assert done.returncode == 2
    assert "--max-smece X" in done.stderr


@pytest.mark.parametrize(
    "limits",
    [
        {"max_smece": "x"},
        {"max_smece": 10**400},
        {"max_gap": None, "max_smece": pd.NaT},
        {"max_gap": 0.1, "min_rows": 0},
        {"max_gap": 0.1, "min_rows": "x"},
    ],
)
def test_odd_limits_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(sc.InputError, match="must be"):
        sc.check([0.5, 1.0], [0.4, 0.9], **limits)


def test_odd_outcome_of_an_undecided_check_is_refused() -> None:
    odd: Any = pd.NA
    with pytest.raises(sc.InputError, match="'pass' or 'fail'"):
        sc.assert_calibrated([0.5], [0.4], max_smece=0.1, undecided=odd)
