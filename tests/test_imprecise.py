"""Interval labels: the bounds are exact, attained, and additive."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pandas as pd
import pytest
from command_line import assert_same_card
from command_line import softcal_here as softcal
from hypothesis import given
from hypothesis import strategies as st
from strategies import N_BINS, UNIT, WEIGHT

import softcal as sc

INTERVAL = st.tuples(UNIT, UNIT).map(sorted)
Data = list[tuple[list[float], float, float]]


def intervals(max_size: int) -> st.SearchStrategy[Data]:
    """Return lists of ([low, high], prediction, weight) with at least one positive weight."""
    return st.lists(st.tuples(INTERVAL, UNIT, WEIGHT), min_size=1, max_size=max_size).filter(
        lambda found: any(w > 0 for *_, w in found)
    )


def columns(data: Data) -> tuple[list[float], list[float], list[float], list[float]]:
    return (
        [low for (low, _), _, _ in data],
        [high for (_, high), _, _ in data],
        [p for _, p, _ in data],
        [w for *_, w in data],
    )


def table(data: Data, bins: int) -> sc.ReliabilityBounds:
    low, high, p, w = columns(data)
    return sc.reliability_bounds(low, high, p, bins=bins, sample_weight=w)


@given(intervals(6), N_BINS)
def test_bounds_are_the_extremes_over_all_labels(data: Data, n: int) -> None:
    """In exact arithmetic, the maximum is attained at ends, and no grid of labels is lower."""
    low, high, p, w = columns(data)
    bounds = sc.smece_bounds(low, high, p, bins=n, sample_weight=w)
    edges = oracle.exact_bins(n)

    def exact(labels: tuple[float, ...]) -> float:
        return float(oracle.smece(oracle.rows(list(labels), p, w), edges))

    at_ends = [exact(labels) for labels in product(*zip(low, high, strict=True))]
    assert bounds.high == pytest.approx(max(at_ends), abs=1e-12)
    assert bounds.low <= min(at_ends) + 1e-12
    inside = [exact(tuple(np.add(low, t * np.subtract(high, low)))) for t in (0.25, 0.5, 0.75)]
    assert bounds.low - 1e-12 <= min(inside)
    assert max(inside) <= bounds.high + 1e-12


@given(intervals(20), N_BINS)
def test_lower_bound_is_attained(data: Data, n: int) -> None:
    """Move all labels of a bin by the same share, so that the gap is as close to 0 as possible."""
    low, high, p, w = (np.array(column) for column in columns(data))
    bounds = table(data, n)
    least, most = bounds.high.sums.residual, bounds.low.sums.residual
    part = np.clip(most / np.maximum(most - least, 1e-300), 0, 1)
    y = low + part[bounds.bins.locate(p)] * (high - low)
    reached = sc.smece(np.clip(y, 0, 1), p, bins=n, sample_weight=w)
    assert reached == pytest.approx(bounds.smece.low, abs=1e-12)


@given(intervals(20), N_BINS)
def test_bounds_of_known_labels_equal_smece(data: Data, n: int) -> None:
    low, _, p, w = columns(data)
    bounds = sc.smece_bounds(low, low, p, bins=n, sample_weight=w)
    assert bounds.low == bounds.high == sc.smece(low, p, bins=n, sample_weight=w)


def test_bounds_of_unknown_labels() -> None:
    p = np.array([0.2, 0.3, 0.9])
    bounds = sc.smece_bounds(np.zeros(3), np.ones(3), p)
    assert bounds.low == 0
    assert bounds.high == pytest.approx((0.8 + 0.7 + 0.9) / 3)


@given(st.lists(intervals(10), min_size=1, max_size=4), N_BINS)
def test_merged_bounds_equal_the_whole(parts: list[Data], n: int) -> None:
    whole = table([row for part in parts for row in part], n).smece
    merged = sum(table(part, n) for part in parts)
    assert isinstance(merged, sc.ReliabilityBounds)
    assert merged.n == sum(table(part, n).n for part in parts)
    assert merged.smece == pytest.approx(whole, abs=1e-12)


def test_only_bounds_of_the_same_bins_can_be_merged() -> None:
    a = sc.reliability_bounds([0.1], [0.2], [0.3])
    with pytest.raises(sc.BinMismatchError, match="different bins"):
        a + sc.reliability_bounds([0.1], [0.2], [0.3], bins=5)
    with pytest.raises(TypeError):
        a + 1  # type: ignore[operator]
    with pytest.raises(TypeError):
        1 + a
    with pytest.raises(TypeError):
        hash(a)


@given(intervals(10))
def test_coarsened_bounds_equal_coarse_bounds(data: Data) -> None:
    assert table(data, 100).coarsen(10).smece == pytest.approx(table(data, 10).smece, abs=1e-12)


def test_bounds_of_no_rows_are_refused() -> None:
    none = sc.Reliability.empty()
    with pytest.raises(sc.InputError, match="no rows"):
        _ = sc.ReliabilityBounds(none, none).smece


@pytest.mark.parametrize(
    ("low", "high", "rule"),
    [
        ([0.1, 0.7, 0.9], [0.2, 0.6, 0.1], r"y_low must be at most y_high: 2 of 3 rows are not, "
         r"the first is y_low\[1\] = 0.7 with y_high\[1\] = 0.6"),
        ([0.1, np.nan, 0.1], [0.2, 0.6, 0.2], "y_low must have no missing values: 1 of 3"),
        ([0.1, 0.1, 0.1], [0.2, 1.6, 0.2], r"y_high must be in \[0, 1\]: 1 of 3"),
        ([0.1, 0.1], [0.2, 0.2, 0.2], "y_low and y_prob must have the same length"),
    ],
)  # fmt: skip
def test_bad_intervals_are_refused(low: list[float], high: list[float], rule: str) -> None:
    with pytest.raises(sc.InputError, match=rule):
        sc.smece_bounds(low, high, [0.5, 0.5, 0.5])


def test_interval_columns_with_different_indexes_are_refused() -> None:
    low, p = pd.Series([0.1, 0.2]), pd.Series([0.1, 0.2])
    with pytest.raises(sc.InputError, match="y_high and y_prob must have the same pandas index"):
        sc.smece_bounds(low, pd.Series([0.3, 0.4], index=[1, 0]), p)


# The command line


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "intervals.csv"
    path.write_text("lo,hi,p,q,w\n0.1,0.3,0.2,0.9,1\n0.5,0.5,0.8,0.5,2\n0.7,1.0,0.9,0.4,1\n")
    return path


def test_score_prints_bounds_as_json(file: Path) -> None:
    result = softcal(
        "score", file, "--label-low", "lo", "--label-high", "hi", "--pred", "p", "--pred", "q",
        "--weight", "w", "--format", "json",
    )  # fmt: skip
    card = json.loads(result.stdout)
    assert (card["n"], card["label_low"], card["label_high"]) == (3, "lo", "hi")
    found = [(each["pred"], each["smece_low"], each["smece_high"]) for each in card["models"]]
    assert found == [
        ("p", pytest.approx(0.15), pytest.approx(0.225)),
        ("q", pytest.approx(0.225), pytest.approx(0.35)),
    ]


def test_score_prints_bounds_as_a_table(file: Path) -> None:
    result = softcal("score", file, "--label-low", "lo", "--label-high", "hi", "--pred", "p")
    assert result.returncode == 0
    assert "3 rows, labels lo to hi, 10 bins" in result.stdout
    assert ["p", "0.1000", "0.2000"] in [line.split() for line in result.stdout.splitlines()]
    weighted = softcal(
        "score", file, "--label-low", "lo", "--label-high", "hi", "--pred", "p", "--weight", "w"
    )
    assert "10 bins, weighted by w" in weighted.stdout


def test_columns_of_intervals_keep_their_names_in_saved_tables(tmp_path: Path) -> None:
    rows, saved = tmp_path / "rows.csv", tmp_path / "day.softcal"
    rows.write_text("a to b,b to c,p\n0.2,0.4,0.5\n")
    softcal(
        "scan", rows, "--label-low", "a to b", "--label-high", "b to c", "--pred", "p", "-o", saved
    )
    card = json.loads(softcal("score", saved, "--format", "json").stdout)
    assert (card["label_low"], card["label_high"]) == ("a to b", "b to c")


def test_bounds_of_rows_files_and_saved_tables_are_equal(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    y, p, q, w = rng.random((4, 90))
    lines = [f"{a * b},{b},{c},{d},{e},{k % 2}" for k, (a, b, c, d, e) in
             enumerate(zip(rng.random(90), y, p, q, w, strict=True))]  # fmt: skip
    paths = [tmp_path / f"{name}.csv" for name in ("whole", "first", "rest")]
    for path, part in zip(paths, (lines, lines[:40], lines[40:]), strict=True):
        path.write_text("\n".join(["lo,hi,p,q,w,site", *part]) + "\n")
    columns = ["--label-low", "lo", "--label-high", "hi", "--pred", "p", "--pred", "q"]
    options = [*columns, "--weight", "w", "--by", "site"]
    saved = tmp_path / "saved.softcal"
    assert softcal("scan", *paths[1:], *options, "-o", saved).returncode == 0

    def found(*arguments: object) -> Any:
        return json.loads(softcal(*arguments, "--format", "json").stdout)

    card = found("score", paths[0], *options)
    assert_same_card(found("score", *paths[1:], *options), card)
    assert_same_card(found("score", saved, "--by", "site"), card)
    assert_same_card(found("merge", saved), card)
    odd = tmp_path / "odd.csv"
    odd.write_text("\n".join(["lo,hi,p,q,w,site", *lines[1::2]]) + "\n")
    alone = found("score", odd, *columns, "--weight", "w")["models"][1]
    part = card["models"][1]["segments"][1]
    for key in ("smece_low", "smece_high"):
        assert_same_card(part[key], alone[key])
    shown = softcal("score", saved, "--by", "site").stdout
    assert "q, by site" in shown
    assert "cannot be combined with --level" in softcal("score", saved, "--level", "0.9").stderr
    for command in (["compare"], ["report"], ["plan", "--half-width", "0.1"]):
        refused = softcal(*command, saved)
        assert refused.returncode == 2
        assert "known only as intervals" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ("", "Missing option '--label'."),
        ("--label-low lo", "pass both ends of the labels"),
        ("--label-high hi", "pass both ends of the labels"),
        (
            "--label-low lo --label-high hi --label w --votes w",
            "stated twice, by --label and --label-low",
        ),
        ("--label-low hi --label-high lo", "hi must be at most lo: 2 of 3 rows are not"),
        ("--label-low lo --label-high hi --weight q --pred w", "w must be in [0, 1]: 1 of 3"),
    ],
)
def test_score_of_bounds_refuses_bad_options_in_one_line(
    file: Path, arguments: str, rule: str
) -> None:
    result = softcal("score", file, "--pred", "p", *arguments.split())
    assert result.returncode == 2
    assert result.stdout == ""
    assert rule in result.stderr
    assert result.stderr.count("\n") == 1


def test_bounds_of_other_rows_or_bins_are_refused() -> None:
    low, high = sc.reliability([0.2], [0.5]), sc.reliability([0.4], [0.5])
    with pytest.raises(sc.BinMismatchError, match="the same bins"):
        sc.ReliabilityBounds(low, high.coarsen(5))
    with pytest.raises(sc.InputError, match="not those of the lowest and highest labels"):
        sc.ReliabilityBounds(high, low)
