"""Findings of `tools/fuzz.py` among votes, decisions, checks, audits, alarms, and queries."""

from __future__ import annotations

from typing import Any

import newer_entry_points as newer
import numpy as np
import pandas as pd
import pytest
from entry_points import call_any
from hypothesis import given, settings
from hypothesis import strategies as st

import softcal as sc

SEEDS = st.integers(0, 2**32)


@settings(max_examples=200)
@given(SEEDS)
def test_ordinal_decisions_and_checks(seed: int) -> None:
    call_any(newer.OF_ORDINAL, seed, of_classes=True)
    call_any(newer.OF_DECISIONS, seed)
    call_any(newer.OF_CHECKS, seed)


@settings(max_examples=100)
@given(SEEDS)
def test_votes(seed: int) -> None:
    newer.raters(seed)
    newer.raw_votes(seed)


@settings(max_examples=60)
@given(SEEDS)
def test_audits_and_alarms(seed: int) -> None:
    newer.audited(seed)
    newer.watched(seed)


@settings(max_examples=20)
@given(SEEDS)
def test_queries(seed: int) -> None:
    newer.queried(seed)


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


@pytest.mark.parametrize(
    "settings_",
    [{"tolerance": "x"}, {"max_weight": 10**400}, {"max_weight": 1e300}, {"by": 1.5}, {"by": [3]}],
)
def test_odd_settings_of_a_watch_are_refused(settings_: dict[str, Any]) -> None:
    with pytest.raises(sc.SoftcalError, match="must be"):
        sc.Watch(**settings_)


def test_large_weights_do_not_overflow_the_summary() -> None:
    y, p = [0.0, 1.0, 0.5, 0.25], [0.2, 0.7, 0.5, 0.1]
    plain = sc.calibration_summary(y, p)
    large = sc.calibration_summary(y, p, sample_weight=[1e100] * 4)
    table = sc.calibration_summary(sc.reliability(y, p, bins=10, sample_weight=[1e100] * 4))
    assert large.slope.low == pytest.approx(plain.slope.low)
    assert large.auroc == pytest.approx(plain.auroc)
    assert table.auroc == pytest.approx(plain.auroc)


def test_summary_of_tiny_predictions_has_no_finite_ratio() -> None:
    found = sc.calibration_summary([0.0, 1.0, 1.0], [0.0, 5e-324, 5e-324])
    assert (found.observed_expected.low, found.observed_expected.high) == (0.0, np.inf)


def test_ragged_thresholds_and_unhashable_metrics_are_refused() -> None:
    with pytest.raises(sc.SoftcalError, match="thresholds"):
        sc.net_benefit([0.0, 1.0], [0.2, 0.7], [[0.1], [0.2, 0.3]])
    odd: Any = {}
    with pytest.raises(sc.InputError, match="metric must be one of"):
        sc.score_interval([[1.0, 0.0]], [[0.5, 0.5]], metric=odd)


def test_audit_of_predictions_next_to_0_and_1() -> None:
    rows = pd.DataFrame(
        {"p": [1 - 2**-53, 5e-324] * 20, "y": [1.0, 0.25] * 20, "s": ["a", "b"] * 20}
    )
    found = sc.audit(rows, y_true="y", y_prob="p", by="s", draws=20)
    assert np.isfinite([each.low for each in found.segments]).all()


def test_audit_refuses_odd_columns_and_endless_draws() -> None:
    rows = pd.DataFrame({"p": [0.5], "y": [1.0], "s": ["a"]})
    odd: Any = "x"
    with pytest.raises(sc.InputTypeError, match="features must map"):
        sc.audit(rows, y_true="y", y_prob="p", by="s", features=odd)
    with pytest.raises(sc.InputError, match="draws must be"):
        sc.audit(rows, y_true="y", y_prob="p", by="s", draws=10**400)


def test_flags_must_be_true_or_false() -> None:
    odd: Any = pd.NA
    with pytest.raises(sc.InputTypeError, match="raters must be True or False"):
        sc.scan(pd.DataFrame({"p": [0.5], "y": [1.0]}), y_true="y", y_prob="p", raters=odd)


def test_odd_classes_and_populations_are_refused() -> None:
    votes = sc.Votes.from_long(
        {"i": [0, 0], "w": ["u", "v"], "a": [0, 1]}, item="i", worker="w", label="a"
    )
    odd: Any = 0.5
    with pytest.raises(sc.InputTypeError, match="population must map"):
        votes.weighted(by={"u": "a", "v": "a"}, population=odd)
    for odd in (pd.NA, 10**400, np.float16(0.1)):
        with pytest.raises(sc.InputError, match="there is no class"):
            votes.binary(odd)


def test_votes_that_are_all_missing_are_refused() -> None:
    rows = pd.DataFrame({"i": ["a"], "p": [0.5], "v": [None]})
    with pytest.raises(sc.InputError, match="there are no votes"):
        sc.scan(rows, y_prob="p", item="i", vote="v", positive="yes", drop_missing=True)


def test_a_table_with_raters_and_tiny_residuals_can_be_saved() -> None:
    votes = sc.Votes.from_long(
        {"i": [0, 0, 1], "w": ["u", "v", "u"], "a": [0, 0, 1]}, item="i", worker="w", label="a"
    )
    rel = sc.reliability(votes, [5e-324, 0.5], raters=True)
    assert sc.Reliability.from_dict(rel.to_dict()) == rel


def test_query_counts_nan_and_takes_segments_named_as_sums() -> None:
    import duckdb

    rows = pd.DataFrame({"p": [0.5, 0.25], "y": [1.0, 0.0], "weight": ["a", "b"]})
    query = sc.sql_query("rows", y_true="y", y_prob="p", by="weight")
    ask: Any = duckdb.sql
    tables = sc.tables_from_query(ask(query).to_arrow_table())
    assert list(tables.by("weight")) == ["a", "b"]
    rows["p"] = [np.nan, np.inf]
    result = ask(query).to_arrow_table()
    with pytest.raises(sc.InputError, match="2 rows break a rule"):
        sc.tables_from_query(result)


def test_odd_queries_and_results_are_refused() -> None:
    import duckdb

    odd: Any = 3
    with pytest.raises(sc.InputTypeError, match="by must be the name of a column"):
        sc.sql_query("t", y_true="y", y_prob="p", by=odd)
    with pytest.raises(sc.InputError, match="y_prob is empty"):
        sc.sql_query("t", y_true="y", y_prob=[])
    with pytest.raises(sc.InputError, match="different columns"):
        sc.sql_query("t", y_true="y", y_prob="y")
    rows = pd.DataFrame({"p": [0.5, 0.25], "y": [1.0, 0.0]})  # noqa: F841 - read by DuckDB
    ask: Any = duckdb.sql
    result = ask(sc.sql_query("rows", y_true="y", y_prob="p")).to_df()
    wrong: tuple[tuple[str, Any, str], ...] = (
        ("weight", "x", "finite numbers"),
        ("weight", -1.0, "no query gives"),
        ("weight", 9.0, "contradict"),
        ("count", 1.5, "no query gives"),
        ("count", 0.0, "no rows"),
        ("softcal_model", 3, "must have texts"),
    )
    for name, value, message in wrong:
        with pytest.raises(sc.InputError, match=message):
            sc.tables_from_query(result.assign(**{name: value}))
