"""Ordered classes against exact arithmetic, scipy, scoringrules, and POT; properties of the scores."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from itertools import product
from math import comb
from pathlib import Path
from typing import Any, get_args

import numpy as np
import oracle
import pandas as pd
import pytest
from command_line import assert_same_card
from command_line import softcal_here as softcal
from hypothesis import given, settings
from hypothesis import strategies as st
from same_tables import assert_same_table
from scipy.stats import wasserstein_distance

import softcal as sc
from softcal.inference.ordinal import ORDERED_METRICS, ItemMetric
from softcal.metrics import ordinal

REFERENCE = json.loads((Path(__file__).parent / "reference" / "ordinal.json").read_text())
ORDERED: list[Any] = [sc.wasserstein, sc.ranked_probability_score, sc.cumulative_smece]
K = 4


def _distributions(size: int) -> st.SearchStrategy[Any]:
    """Draw 64ths that sum to 1, so that sums of them are exact."""
    cuts = st.lists(st.integers(0, 64), min_size=K - 1, max_size=K - 1).map(sorted)
    each = cuts.map(lambda c: np.diff([0, *c, 64]) / 64)
    return st.lists(each, min_size=size, max_size=size).map(np.array)


@st.composite
def classes(draw: st.DrawFn) -> tuple[Any, Any]:
    size = draw(st.integers(1, 12))
    return draw(_distributions(size)), draw(_distributions(size))


def _votes(rng: np.random.Generator, n: int = 300, **options: Any) -> tuple[sc.Votes, Any]:
    rate = rng.dirichlet(np.ones(5), n)
    counts = np.array(
        [rng.multinomial(m, q) for m, q in zip(rng.integers(2, 6, n), rate, strict=True)]
    )
    p = 0.7 * rate + 0.06
    return sc.Votes(counts, classes=[1, 2, 3, 4, 5], ordered=True, **options), p


# Values


@given(classes())
def test_scores_equal_exact_arithmetic(data: tuple[Any, Any]) -> None:
    y, p = data
    above = [[Fraction(float(q[k + 1 :].sum())) for k in range(K - 1)] for q in (*y, *p)]
    pairs = list(zip(above[: len(y)], above[len(y) :], strict=True))
    d = [b - a for ys, ps in pairs for a, b in zip(ys, ps, strict=True)]
    n = len(y)
    assert sc.wasserstein(y, p) == pytest.approx(float(sum(map(abs, d)) / n), abs=1e-15)
    ranked = float(sum(each**2 for each in d) / n)
    assert sc.ranked_probability_score(y, p) == pytest.approx(ranked, abs=1e-15)
    edges = oracle.exact_bins(10)
    total: Any = Fraction(0)
    for k in range(K - 1):
        rows = [(ys[k], ps[k], Fraction(1)) for ys, ps in pairs]
        total += sum(map(abs, oracle.sums(rows, edges)["residual"])) / n
    assert sc.cumulative_smece(y, p) == pytest.approx(float(total / (K - 1)), abs=1e-15)


@given(classes())
def test_wasserstein_equals_scipy(data: tuple[Any, Any]) -> None:
    y, p = data
    places = range(K)
    each = [wasserstein_distance(places, places, a, b) for a, b in zip(y, p, strict=True)]
    assert sc.wasserstein(y, p) == pytest.approx(np.mean(each), abs=1e-14)
    normalized = sc.wasserstein(y, p, normalized=True)
    assert normalized == pytest.approx(np.mean(each) / (K - 1), abs=1e-14)
    assert 0 <= normalized <= 1


def test_rows_equal_scoringrules_and_pot() -> None:
    p, shares = np.array(REFERENCE["y_prob"]), np.array(REFERENCE["shares"])
    outcome = np.eye(5)[REFERENCE["outcome"]]
    np.testing.assert_allclose(
        ordinal.squared_distance(p.T, outcome.T), REFERENCE["ranked_probability_score"], atol=1e-14
    )
    np.testing.assert_allclose(
        ordinal.distance(p.T, shares.T), REFERENCE["wasserstein"], atol=1e-14
    )
    mean = np.mean(REFERENCE["ranked_probability_score"])
    assert sc.ranked_probability_score(outcome, p) == pytest.approx(mean, abs=1e-14)


@given(classes())
def test_manhattan_is_twice_the_total_variation(data: tuple[Any, Any]) -> None:
    y, p = data
    assert sc.manhattan(y, p) == pytest.approx(np.abs(p - y).sum(axis=1).mean(), abs=1e-15)
    assert sc.manhattan(y, p, normalized=True) == sc.dist_ce(y, p)
    assert sc.wasserstein(y, p) >= sc.dist_ce(y, p) - 1e-15  # mass moves one class or more


@given(classes())
def test_scores_do_not_change_when_the_order_is_reversed(data: tuple[Any, Any]) -> None:
    y, p = data
    for score in ORDERED[:2]:
        assert score(y[:, ::-1], p[:, ::-1]) == pytest.approx(score(y, p), abs=1e-14)
        assert score(p, y) == pytest.approx(score(y, p), abs=1e-14)
    # Reversed, a bin [a, b) becomes (1 - b, 1 - a], so no prediction may be on an edge.
    q = (p + 0.001) / (1 + K * 0.001)
    turned = sc.cumulative_smece(y[:, ::-1], q[:, ::-1], bins=7)
    assert turned == pytest.approx(sc.cumulative_smece(y, q, bins=7), abs=1e-14)


@given(classes())
def test_equal_labels_and_predictions_score_exactly_zero(data: tuple[Any, Any]) -> None:
    y, _ = data
    for score in (*ORDERED, sc.manhattan):
        assert score(y, y) == 0
    assert sc.wasserstein(y[:, [3, 0, 1, 2]], y) <= K - 1


def test_a_farther_class_scores_worse_only_in_ordered_metrics() -> None:
    y = [[1.0, 0.0, 0.0]]
    near, far = [[0.5, 0.5, 0.0]], [[0.5, 0.0, 0.5]]
    assert sc.manhattan(y, near) == sc.manhattan(y, far)
    for score in ORDERED:
        assert score(y, near) < score(y, far)


def test_two_classes_equal_the_scores_of_one_probability(rng: np.random.Generator) -> None:
    y, p = rng.random(50), rng.random(50)
    both = [np.column_stack([1 - q, q]) for q in (y, p)]
    assert sc.cumulative_smece(*both) == pytest.approx(sc.smece(y, p), abs=1e-15)
    assert sc.ranked_probability_score(*both) == pytest.approx(sc.brier(y, p), abs=1e-15)
    assert sc.wasserstein(*both) == pytest.approx(np.abs(y - p).mean(), abs=1e-15)


def test_ranked_probability_score_equals_sum_of_threshold_brier_scores(
    rng: np.random.Generator,
) -> None:
    votes, p = _votes(rng)
    tables = sc.cumulative_reliability(votes, p)
    total = sum(rel.brier for rel in tables.values())
    assert sc.ranked_probability_score(votes, p) == pytest.approx(total, rel=1e-13)
    assert sc.ranked_probability_score(votes, p, normalized=True) == pytest.approx(total / 4)
    for name, rel in tables.items():
        threshold = int(name.removeprefix("> "))
        alone = sc.reliability(votes.above(threshold), p[:, threshold:].sum(axis=1))
        assert_same_table(rel, alone, hardened=False)


def test_rows_that_sum_to_almost_1_give_probabilities_of_at_most_1() -> None:
    p = np.array([[0.0, 0.5, 0.5009], [0.0, 0.0, 0.9995]])
    tables = sc.cumulative_reliability([[0, 0, 1], [0, 0, 1]], p)
    assert tables["> 0"].smece == 0


def test_weights_count_as_repeated_rows(rng: np.random.Generator) -> None:
    votes, p = _votes(rng, 40)
    w = rng.integers(0, 4, 40)
    at = np.repeat(np.arange(40), w)
    for score in (*ORDERED, sc.manhattan):
        found = score(votes, p, sample_weight=w)
        assert found == pytest.approx(score(votes.shares[at], p[at]), rel=1e-12)


# Votes


def test_votes_above_a_threshold_keep_workers_and_items() -> None:
    long = {"i": ["a", "a", "b"], "w": [1, 2, 1], "v": [1, 3, 2]}
    votes = sc.Votes.from_long(long, item="i", worker="w", label="v", ordered=True)
    assert votes.ordered
    above = votes.above(1)
    assert above.counts.tolist() == [[1, 1], [0, 1]]
    assert (above.items, above.classes) == (("a", "b"), ("not > 1", "> 1"))
    assert sc.dawid_skene(above).posterior.shape == (2, 2)
    assert votes.for_items(["b"]).ordered
    assert not above.ordered
    with pytest.raises(sc.InputError, match="no class is above 3: pass one of 1, 2"):
        votes.above(3)


def test_unordered_votes_are_refused_by_ordinal_metrics() -> None:
    votes = sc.Votes([[1, 2, 0]], classes=["low", "mid", "high"])
    said = r"from lowest to highest\. The classes are 'low', 'mid', 'high'"
    for score in ORDERED:
        with pytest.raises(sc.InputError, match=said):
            score(votes, [[0.5, 0.25, 0.25]])
    with pytest.raises(sc.InputError, match=said):
        votes.above("low")
    for metric in ("wasserstein", "ranked_probability_score"):
        with pytest.raises(sc.InputError, match=said):
            sc.vote_noise_floor(votes, [[0.5, 0.25, 0.25]], metric=metric)
        with pytest.raises(sc.InputError, match=said):
            sc.score_interval(votes, [[0.5, 0.25, 0.25]], metric=metric)
    assert sc.manhattan(votes, [[0.5, 0.25, 0.25]]) > 0
    long = {"i": [1, 1, 1], "v": ["low", "mid", "high"]}
    with pytest.raises(sc.InputError, match=r"3 of 3 are not numbers, the first is 'high'. Pass"):
        sc.Votes.from_long(long, item="i", label="v", ordered=True)
    listed = sc.Votes.from_long(
        long, item="i", label="v", classes=["low", "mid", "high"], ordered=True
    )
    assert listed.classes == ("low", "mid", "high")


# Vote noise


@pytest.mark.parametrize("metric", ["wasserstein", "ranked_probability_score", "manhattan"])
def test_floors_equal_the_sum_over_all_outcomes(metric: Any) -> None:
    """Yield each outcome of m votes for three classes, with its multinomial probability."""
    score = getattr(sc, metric)
    p, total = np.array([[0.5, 0.2, 0.3], [0.1, 0.0, 0.9]]), 0.0
    totals = [3, 4]
    for q, m in zip(p, totals, strict=True):
        for a, b in product(range(m + 1), repeat=2):
            if a + b <= m:
                c = m - a - b
                chance = comb(m, a) * comb(m - a, b) * q[0] ** a * q[1] ** b * q[2] ** c
                total += chance * score([[a / m, b / m, c / m]], [q]) / 2
    votes = sc.Votes([[3, 0, 0], [4, 0, 0]], ordered=True)
    assert sc.vote_noise_floor(votes, p, metric=metric) == pytest.approx(total, rel=1e-12)


# Intervals


def test_cumulative_smece_limits_are_means_over_thresholds(rng: np.random.Generator) -> None:
    votes, p = _votes(rng)
    choices: list[dict[str, Any]] = [{}, {"groups": rng.integers(0, 60, 300)}]
    for options in choices:
        tables = sc.cumulative_reliability(votes, p, **options)
        each = [sc.smece_interval(rel, level=0.9) for rel in tables.values()]
        found = sc.cumulative_smece_interval(votes, p, level=0.9, **options)
        assert found.value == sc.cumulative_smece(tables) == sc.cumulative_smece(votes, p)
        strict = [sc.smece_interval(rel, level=1 - 0.1 / 4).low for rel in tables.values()]
        assert found.low == pytest.approx(np.mean(strict), rel=1e-14)
        assert found.high == pytest.approx(np.mean([one.high for one in each]), rel=1e-14)
        assert found == sc.cumulative_smece_interval(tables, level=0.9)
    assert repr(found).startswith("ScoreInterval(0.")
    assert str(found).startswith(f"cumulative_smece {found.value:.4f}, 90% interval ")


def test_cumulative_interval_has_the_note_of_its_thresholds() -> None:
    y, p = np.eye(3)[[0, 1, 2]], np.full((3, 3), 1 / 3)
    one = sc.cumulative_smece_interval(y[:1], p[:1])
    assert (one.low, one.high) == (0, 1)
    assert one.note == "One row does not show how much rows vary."
    many = np.random.default_rng(0).dirichlet(np.ones(3), 3)
    noisy = sc.cumulative_smece_interval(np.eye(3)[[2, 0, 1]], many, bins=1000)
    assert "use fewer bins" in noisy.note or noisy.value <= noisy.high


@pytest.mark.parametrize("metric", ["wasserstein", "ranked_probability_score", "manhattan"])
def test_score_intervals_equal_the_interval_of_a_mean(
    metric: Any, rng: np.random.Generator
) -> None:
    votes, p = _votes(rng)
    score = getattr(sc, metric)
    each = np.array([score(s[None], q[None]) for s, q in zip(votes.shares, p, strict=True)])
    found = sc.score_interval(votes, p, metric=metric)
    half = 1.9679296690653202 * each.std(ddof=1) / np.sqrt(300)  # Student's t, 299 degrees
    assert found.value == pytest.approx(score(votes, p), rel=1e-12)
    assert (found.low, found.high) == pytest.approx((each.mean() - half, each.mean() + half))
    assert found.floor == sc.vote_noise_floor(votes, p, metric=metric)
    assert "floor from vote noise" in " ".join(str(found).split())
    assert sc.score_interval(votes.shares, p, metric=metric).floor is None
    # Repeating a row within its group keeps the interval.
    twice = np.repeat(np.arange(300), 2)
    again = sc.score_interval(votes.shares[twice], p[twice], metric=metric, groups=twice)
    assert (again.low, again.high) == pytest.approx((found.low, found.high), rel=1e-12)
    # A weight of 0 equals an absent row.
    w = (np.arange(300) < 200).astype(float)
    some = sc.score_interval(votes.shares, p, metric=metric, sample_weight=w)
    alone = sc.score_interval(votes.shares[:200], p[:200], metric=metric)
    assert (some.low, some.high) == pytest.approx((alone.low, alone.high), rel=1e-12)


def test_score_interval_of_one_row_or_exact_predictions() -> None:
    one = sc.score_interval([[1, 0, 0]], [[0, 0, 1]], metric="wasserstein")
    assert (one.low, one.high, one.note) == (
        0.0, 2.0, "One row or group does not show how much rows vary."
    )  # fmt: skip
    # The upper limit is at least the share of rows that may be unseen, times the largest score.
    seen = sc.score_interval([[0.5, 0.5]] * 49 + [[0, 1]], [[0.5, 0.5]] * 50, metric="brier")
    assert (seen.value, seen.high) == pytest.approx((0.01, -np.log(0.025) / 50 * 2))
    assert "rule of three" in str(sc.score_interval.__doc__)
    exact = sc.score_interval([[1, 0]] * 50, [[1, 0]] * 50, metric="dist_ce")
    assert (exact.low, exact.high) == pytest.approx((0.0, -np.log(0.025) / 50))
    with pytest.raises(sc.InputError, match=r"metric must be one of wasserstein, .*: got 'ece'"):
        sc.score_interval([[1, 0]], [[1, 0]], metric="ece")  # type: ignore[arg-type]
    with pytest.raises(sc.InputError, match="sample_weight"):
        sc.score_interval([[1, 0]], [[1, 0]], metric="brier", sample_weight=[0])


def test_tables_are_the_only_argument() -> None:
    tables = sc.cumulative_reliability([[0.5, 0.25, 0.25]], [[0.5, 0.5, 0.0]])
    with pytest.raises(sc.InputTypeError, match="of tables does not take y_prob, bins"):
        sc.cumulative_smece(tables, [[1, 0, 0]], bins=3)
    with pytest.raises(sc.InputError, match="the table of one threshold or more: got none"):
        sc.cumulative_smece({})
    with pytest.raises(sc.InputError, match=r"needs y_true and y_prob, or the tables .*: got list"):
        sc.cumulative_smece([[1, 0, 0]])


# Sets, files, and the command line


@pytest.fixture
def file(tmp_path: Path, rng: np.random.Generator) -> Path:
    votes, p = _votes(rng)
    frame = pd.DataFrame(votes.counts, columns=[f"votes_{k}" for k in votes.classes])
    frame[[f"a_{k}" for k in votes.classes]] = p
    frame[[f"b_{k}" for k in votes.classes]] = p[rng.permutation(300)]
    frame["site"] = rng.integers(0, 3, 300)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "rows.csv"


MODELS: dict[str, Any] = {"a": "a_*", "b": "b_*"}
OPTIONS: dict[str, Any] = {"y_true": sc.Classes("votes_*", counts=True), "y_prob": MODELS}
IN_ORDER = OPTIONS | {"y_true": sc.Classes("votes_*", counts=True, ordered=True)}


def test_ordered_set_equals_results_from_rows(file: Path) -> None:
    frame = pd.read_csv(file)
    votes = sc.Votes(frame.filter(like="votes_").to_numpy(), classes=range(1, 6), ordered=True)
    p = frame.filter(like="a_").to_numpy()
    tables = sc.scan(file, **IN_ORDER, by="site")
    tables.save(file.with_name("t.softcal"))
    day = sc.load(file.with_name("t.softcal"))
    parts = [sc.scan(frame[k::2], **IN_ORDER, by="site") for k in (0, 1)]
    sites = tables.by("site")
    for each in (tables, day, parts[0] + parts[1], sites["0"] + sites["1"] + sites["2"]):
        assert each.ordered
        assert each.classes == ("1", "2", "3", "4", "5")
        assert each.thresholds == ("> 1", "> 2", "> 3", "> 4")
        found = each.cumulative("a")
        for name, rel in sc.cumulative_reliability(votes, p).items():
            assert_same_table(found[name], rel)
        assert sc.cumulative_smece(found) == pytest.approx(sc.cumulative_smece(votes, p), rel=1e-12)
        scores = each.item_scores("a")
        floor = sc.vote_noise_floor(votes, p, metric="wasserstein")
        assert scores.wasserstein == pytest.approx(sc.wasserstein(votes, p), rel=1e-12)
        assert scores.wasserstein_floor == pytest.approx(floor, rel=1e-12)
        ranked = sc.ranked_probability_score(votes, p)
        assert scores.ranked_probability_score == pytest.approx(ranked, rel=1e-12)
        without = sum(sc.brier_without_vote_noise(rel) for rel in found.values())
        left = scores.ranked_probability_score_without_vote_noise
        assert left == pytest.approx(without, rel=1e-12)
        assert scores.manhattan == pytest.approx(sc.manhattan(votes, p), rel=1e-12)
        for metric in get_args(ItemMetric):
            own = sc.score_interval(each, "a", metric=metric, level=0.9)
            expected = sc.score_interval(votes, p, metric=metric, level=0.9)
            for name in ("value", "low", "high"):
                assert getattr(own, name) == pytest.approx(getattr(expected, name), rel=1e-12)
            stored = metric in ("wasserstein", "manhattan", "dist_ce")
            assert own.floor == (pytest.approx(expected.floor, rel=1e-12) if stored else None)


def test_intervals_of_a_set_use_the_weights(file: Path, rng: np.random.Generator) -> None:
    frame = pd.read_csv(file).assign(w=rng.integers(0, 4, 300) / 2)
    tables = sc.scan(frame, **IN_ORDER, sample_weight="w")
    shares = sc.Votes(frame.filter(like="votes_").to_numpy()).shares
    p = frame.filter(like="a_").to_numpy()
    for metric in get_args(ItemMetric):
        own = sc.score_interval(tables, "a", metric=metric)
        expected = sc.score_interval(shares, p, metric=metric, sample_weight=frame["w"])
        assert (own.low, own.high) == pytest.approx((expected.low, expected.high), rel=1e-12)


def test_a_set_without_order_or_with_groups_has_no_intervals_of_scores(file: Path) -> None:
    ordered = sc.scan(file, **IN_ORDER)
    with pytest.raises(sc.InputTypeError, match="score_interval of a set does not take groups"):
        sc.score_interval(ordered, "a", metric="manhattan", groups=[1])
    for tables in (
        sc.scan(file, **OPTIONS), sc.scan(file, **IN_ORDER, groups="site")
    ):  # fmt: skip
        with pytest.raises(sc.InputError, match="Pass the rows instead of the set"):
            sc.score_interval(tables, "a", metric="manhattan")
    grouped = _card("score", file, *ARGUMENTS, "--ordered", "--group", "site")["models"][0]
    assert grouped["manhattan"] > 0
    assert grouped["manhattan_low"] is grouped["manhattan_high"] is None
    page = file.with_name("r.html")
    assert softcal("report", file, *ARGUMENTS, "--ordered", "--group", "site", "-o", page).stdout
    assert "Manhattan distance, 95% interval" not in page.read_text(encoding="utf-8")


def test_a_large_ordered_set_is_saved_as_parquet(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("softcal.table.files.MANY", 10)
    tables = sc.scan(file, **IN_ORDER)
    tables.save(file.with_name("t.softcal"))
    assert file.with_name("t.softcal").read_bytes()[:4] == b"PAR1"
    assert sc.load(file.with_name("t.softcal")) == tables


def test_a_set_without_order_has_no_thresholds(file: Path) -> None:
    tables = sc.scan(file, **OPTIONS)
    assert (tables.thresholds, tables.item_scores("a").wasserstein) == ((), None)
    with pytest.raises(
        sc.InputError, match=r"Scan the rows again with Classes\(\.\.\., ordered=True\)"
    ):
        tables.cumulative("a")
    with pytest.raises(sc.InputError, match="cannot add sets with different targets"):
        tables + sc.scan(file, **IN_ORDER)
    assert sc.scan(file, y_true="a_2", y_prob="a_1").classes == ()


def test_ordered_is_refused_without_classes_or_with_colliding_names(file: Path) -> None:
    names = ["x", "> x", "a", "b", "c"]
    label = sc.Classes("votes_*", names=names, counts=True, ordered=True)
    with pytest.raises(sc.InputError, match="no ordered class may be called '> x'"):
        sc.scan(file, y_true=label, y_prob=MODELS)
    with pytest.raises(sc.InputError, match="ordered=True needs many classes"):
        sc.write_report(file.with_name("r.html"), [0.5], {"m": [0.5]}, ordered=True)
    tables = sc.scan(file, **IN_ORDER)
    with pytest.raises(sc.InputError, match="ordered must be omitted"):
        sc.write_report(file.with_name("r.html"), tables, ordered=True)


def test_a_damaged_file_of_ordered_classes_is_refused(file: Path) -> None:
    sc.scan(file, **IN_ORDER).save(file.with_name("t.softcal"))
    saved = json.loads(file.with_name("t.softcal").read_text())
    del saved["checksum"]
    for change in ({"ordered": "yes"}, {"targets": [*saved["targets"][:-1], "other"]}):
        file.with_name("bad.softcal").write_text(json.dumps(saved | change))
        with pytest.raises(sc.InputError, match=r"unknown part|missing or invalid"):
            sc.load(file.with_name("bad.softcal"))


ARGUMENTS = ("--vote-columns", "votes_*", "--pred-columns", "a_*", "--pred-columns", "b_*")


def _card(*arguments: object) -> dict[str, Any]:
    result = softcal(*arguments, "--format", "json")
    assert result.returncode == 0, result.stderr
    card: dict[str, Any] = json.loads(result.stdout)
    return card


def test_ordered_command_line_equals_python(file: Path) -> None:
    frame = pd.read_csv(file)
    votes = sc.Votes(frame.filter(like="votes_").to_numpy(), classes=range(1, 6), ordered=True)
    p = frame.filter(like="a_").to_numpy()
    card = _card("score", file, *ARGUMENTS, "--ordered", "--by", "site")
    interval = sc.cumulative_smece_interval(votes, p)
    tables = sc.cumulative_reliability(votes, p)
    expected = {
        "cumulative_smece": sc.cumulative_smece(votes, p),
        "cumulative_low": interval.low,
        "cumulative_high": interval.high,
        "smece_by_threshold": {name: rel.smece for name, rel in tables.items()},
        "wasserstein": sc.wasserstein(votes, p),
        "manhattan": sc.manhattan(votes, p),
        "manhattan_floor": sc.vote_noise_floor(votes, p, metric="manhattan"),
    }
    for metric in ORDERED_METRICS:
        limits = sc.score_interval(votes, p, metric=metric)
        expected |= {f"{metric}_low": limits.low, f"{metric}_high": limits.high}
    model = card["models"][0]
    assert_same_card({name: model[name] for name in expected}, expected)
    assert model["segments"][0]["wasserstein"] > 0
    saved = file.with_name("t.softcal")
    assert softcal("scan", file, *ARGUMENTS, "--ordered", "--by", "site", "-o", saved).stdout
    assert_same_card(_card("score", saved, "--by", "site"), card)
    assert_same_card(_card("score", saved, "--ordered", "--by", "site"), card)


def test_the_screen_shows_the_order_and_the_scores(file: Path) -> None:
    shown = softcal("score", file, *ARGUMENTS, "--ordered").stdout
    for text in ("5 ordered classes", "1 < 2 < 3 < 4 < 5", "cumulative SMECE", "Wasserstein"):
        assert text in shown
    assert shown.count("95% interval") == 5  # the top label, cumulative SMECE, and three distances
    plain = softcal("score", file, *ARGUMENTS).stdout
    assert "ordered" not in plain
    assert "Wasserstein" not in plain


def test_the_report_has_a_section_of_thresholds(file: Path) -> None:
    page = file.with_name("r.html")
    assert softcal("report", file, *ARGUMENTS, "--ordered", "-o", page).returncode == 0
    text = page.read_text(encoding="utf-8")
    assert "Threshold by threshold" in text
    assert "&gt; 4" in text
    assert re.search(r"Wasserstein</th><td>.*\n.*  95% interval</th>", text)
    low, high = (_card("score", file, *ARGUMENTS, "--ordered")["models"][0][f"manhattan_{end}"]
                 for end in ("low", "high"))  # fmt: skip
    assert f"<td>{low:.3f} to {high:.3f}</td>" in text
    assert softcal("report", file, *ARGUMENTS, "-o", page).returncode == 0
    assert "Threshold by threshold" not in page.read_text(encoding="utf-8")


def test_report_of_arrays_uses_order_of_votes_or_argument(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    votes, p = _votes(rng, 60)
    choices: list[tuple[Any, bool]] = [(votes, False), (votes.shares, True)]
    for labels, ordered in choices:
        sc.write_report(tmp_path / "r.html", labels, {"m": p}, ordered=ordered)
        assert "Threshold by threshold" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_order_on_the_command_line_needs_classes(file: Path) -> None:
    alone = softcal("score", file, "--label", "site", "--pred", "a_1", "--ordered")
    assert (
        "--ordered needs many classes that are not raw votes: pass --pred-columns" in alone.stderr
    )
    saved = file.with_name("t.softcal")
    softcal("scan", file, *ARGUMENTS, "-o", saved)
    other = softcal("score", saved, "--ordered")
    assert "which were made without one. Leave --ordered out" in " ".join(other.stderr.split())


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000))
def test_ordinal_intervals_are_finite_and_contain_the_value(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    y, p = rng.dirichlet(np.full(3, 0.5), n), rng.dirichlet(np.full(3, 0.5), n)
    found = sc.score_interval(y, p, metric="wasserstein")
    assert 0 <= found.low <= found.value <= found.high <= 2
    cumulative = sc.cumulative_smece_interval(y, p)
    assert 0 <= cumulative.low <= cumulative.high <= 1


def test_unhashable_metric_is_refused() -> None:
    odd: Any = {}
    with pytest.raises(sc.InputError, match="metric must be one of"):
        sc.score_interval([[1.0, 0.0]], [[0.5, 0.5]], metric=odd)
