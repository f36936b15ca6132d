"""Functions of a table accept rows or a Reliability, and return the same for both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import softcal as sc
from softcal.datasets import lidc_malignancy
from softcal.table.build import tables_of_models

if TYPE_CHECKING:
    from collections.abc import Callable

NODULES = lidc_malignancy()
Y, P, Q = NODULES["soft_malignant"], NODULES["prob_rf_all"], NODULES["prob_lr_geometry"]
VOTES, PATIENT = NODULES["n_readers"], NODULES["patient"]

OF_BINS = (sc.smece, sc.max_gap, sc.rms_gap, sc.squared_gap_debiased)
OF_INFERENCE = (sc.smece_interval, sc.gap_intervals, sc.calibration_test, sc.consistency_band)
WITHOUT_BINS = (
    sc.bias,
    sc.brier,
    sc.calibration_error_bound,
    sc.smooth_ece,
    sc.kde_ece,
    sc.corp,
    sc.ecce_mad,
    sc.ecce_range,
)


def numbers(found: Any) -> list[Any]:
    """Return the numbers of a result, with arrays as lists."""
    if isinstance(found, float):
        return [found]
    values = found if isinstance(found, tuple) else vars(found).values()
    return [np.asarray(value).tolist() for value in values]


@pytest.mark.parametrize("function", OF_BINS)
def test_binned_metrics_of_rows_equal_those_of_the_table(function: Callable[..., float]) -> None:
    weight = np.arange(Y.size) % 3
    rel = sc.reliability(Y, P, bins=7, sample_weight=weight)
    assert function(rel) == function(Y, P, bins=7, sample_weight=weight)
    assert function(sc.reliability(Y, P)) == function(Y, P)


@pytest.mark.parametrize("function", OF_INFERENCE)
def test_inference_from_rows_equals_that_from_the_table(function: Callable[..., Any]) -> None:
    rel = sc.reliability(Y, P, bins=7, n_votes=VOTES, groups=PATIENT)
    found = function(Y, P, bins=7, n_votes=VOTES, groups=PATIENT)
    np.testing.assert_equal(numbers(function(rel)), numbers(found))


@pytest.mark.parametrize("function", [each for each in WITHOUT_BINS if each is not sc.corp])
def test_unbinned_metrics_of_a_fine_table_are_close(function: Callable[..., Any]) -> None:
    fine = function(sc.reliability(Y, P, bins=3600))
    whole = function(Y, P)
    assert getattr(fine, "statistic", fine) == pytest.approx(
        getattr(whole, "statistic", whole), abs=1e-4
    )


@pytest.mark.parametrize("function", [*OF_BINS, *OF_INFERENCE, *WITHOUT_BINS, sc.ece])
def test_arguments_that_are_neither_rows_nor_a_table_are_refused(
    function: Callable[..., Any],
) -> None:
    name = function.__name__
    rel = sc.reliability(Y, P)
    with pytest.raises(sc.InputTypeError, match=f"{name} of a Reliability does not take y_prob,"):
        function(rel, P)
    with pytest.raises(sc.InputTypeError, match=f"{name} of a Reliability .* sample_weight,"):
        function(rel, sample_weight=P)
    with pytest.raises(sc.InputTypeError, match=rf"{name}\(y_true, y_prob\), or a Reliability"):
        function(Y)
    with pytest.raises(sc.InputTypeError, match="got TableSet alone"):
        function(sc.scan(pd.DataFrame({"y": Y, "p": P}), y_true="y", y_prob="p"))


def test_bins_votes_and_groups_of_a_table_are_refused() -> None:
    rel = sc.reliability(Y, P)
    with pytest.raises(sc.InputTypeError, match="smece of a Reliability does not take bins,"):
        sc.smece(rel, bins=10)
    with pytest.raises(sc.InputTypeError, match="does not take bins, n_votes, groups"):
        sc.smece_interval(rel, bins=10, n_votes=VOTES, groups=PATIENT)


def test_level_is_keyword_only() -> None:
    with pytest.raises(sc.InputTypeError):
        sc.smece_interval(sc.reliability(Y, P), 0.9)
    with pytest.raises(TypeError):
        sc.smece_interval(Y, P, 0.9)  # type: ignore[call-arg, arg-type]


def test_ece_of_a_table() -> None:
    hard = sc.harden(Y)
    assert sc.ece(sc.reliability(hard, P)) == sc.ece(hard, P)
    rel = sc.reliability(Y, P)
    assert sc.ece(rel, threshold=0.5) == pytest.approx(sc.ece(Y, P, threshold=0.5), abs=1e-12)
    with pytest.raises(sc.InputError, match=r"0 or 1 for ece: the table has soft labels\. Use"):
        sc.ece(rel)
    with pytest.raises(sc.InputError, match=r"takes threshold=0\.5, because .*: got 0\.4\."):
        sc.ece(rel, threshold=0.4)


def test_brier_without_vote_noise_of_a_table() -> None:
    several = VOTES > 1
    y, p, m = Y[several], P[several], VOTES[several]
    rel = sc.reliability(y, p, n_votes=m, bins=7)
    found = sc.brier_without_vote_noise(rel)
    assert found == pytest.approx(sc.brier_without_vote_noise(y, p, n_votes=m), abs=1e-12)
    with pytest.raises(sc.InputError, match="9 of the table's 9 have one, or their votes were not"):
        sc.brier_without_vote_noise(sc.reliability(y[:9], p[:9]))
    with pytest.raises(sc.InputError, match="the table has no rows"):
        sc.brier_without_vote_noise(sc.Reliability.empty())
    with pytest.raises(sc.InputTypeError, match="does not take y_prob"):
        sc.brier_without_vote_noise(rel, [[0.5, 0.5]])


def test_scores_of_one_column_and_of_both_classes_agree() -> None:
    y, p = np.c_[1 - Y, Y], np.c_[1 - P, P]
    assert sc.brier(y, p) == pytest.approx(2 * sc.brier(Y, P))
    inside = (P > 0) & (P < 1)
    for score in (sc.log_loss, sc.kl_divergence):
        one = score(Y[inside], P[inside])
        assert score(y[inside], p[inside]) == pytest.approx(one)
    assert sc.label_entropy(y) == pytest.approx(sc.label_entropy(Y))
    counts = [[3, 1, 0], [1, 1, 2]]
    votes = sc.Votes(counts)
    assert sc.label_entropy(votes) == pytest.approx(sc.label_entropy(votes.shares))
    with pytest.raises(sc.InputTypeError, match="brier of a Reliability does not take y_prob"):
        sc.brier(sc.reliability(Y, P), p)
    with pytest.raises(sc.InputError, match=r"y_true must have a column for each class|column"):
        sc.log_loss(Y, p)
    with pytest.raises(sc.InputError, match="must be one column"):
        sc.log_loss(Y, P[:, None])


# Comparisons


def joined(models: dict[str, Any], **options: Any) -> sc.JointTable:
    return tables_of_models(Y, models, bins=10, **options).pair(*models)


def test_comparisons_of_rows_sets_and_joint_tables_are_equal() -> None:
    models = {"forest": P, "logistic": Q}
    tables = sc.scan(
        pd.DataFrame({"y": Y, "m": VOTES, **models}),
        y_true=sc.Shares("y", votes="m"),
        y_prob=list(models),
        pairs=True,
    )
    whole = sc.compare(Y, models, n_votes=VOTES, level=0.9)
    assert sc.compare(joined(models, n_votes=VOTES), level=0.9) == whole
    found = sc.compare(tables, "forest", "logistic", level=0.9)
    turned = sc.compare(tables, "logistic", "forest", level=0.9)
    assert (found.a, found.b, turned.a, turned.b) == ("forest", "logistic", "logistic", "forest")
    for name in ("smece_a", "difference", "low", "high", "pvalue"):
        assert getattr(found, name) == pytest.approx(getattr(whole, name), rel=1e-6)
    assert turned.difference == -found.difference
    ranking = sc.compare_many(tables, level=0.9)
    assert ranking.models == ("forest", "logistic")
    assert ranking.pairs[0].comparison == found


def test_comparisons_of_tables_refuse_arguments_about_rows() -> None:
    models = {"forest": P, "logistic": Q}
    tables = sc.scan(pd.DataFrame({"y": Y, **models}), y_true="y", y_prob=list(models), pairs=True)
    joint = joined(models)
    wrong: Any = sc
    calls: tuple[tuple[Callable[[], Any], str], ...] = (
        (lambda: wrong.compare(joint, "forest"), "compare of a JointTable does not take y_prob,"),
        (lambda: wrong.compare(joint, bins=5), "compare of a JointTable does not take bins,"),
        (
            lambda: wrong.compare(tables, "forest", "logistic", groups=Y),
            "TableSet does not take gr",
        ),
        (
            lambda: wrong.compare(tables, "forest"),
            "names of two models, .* has 'forest', 'logistic'",
        ),
        (lambda: wrong.compare(tables, models), "takes the names of two models"),
        (lambda: wrong.compare_many(tables, models), "compare_many of a TableSet .* y_prob,"),
    )
    for call, message in calls:
        with pytest.raises(sc.InputTypeError, match=message):
            call()
    one = sc.scan(pd.DataFrame({"y": Y, "p": P}), y_true="y", y_prob="p")
    with pytest.raises(sc.InputError, match="must be two models or more to compare: got 1"):
        sc.compare_many(one)


def test_classes_are_compared_by_the_predicted_class() -> None:
    y, p, q = (np.c_[1 - x, x] for x in (Y, P, Q))
    top = sc.compare(y, {"forest": p, "logistic": q}, groups=PATIENT)
    assert top.smece_a == sc.top_label_smece(y, p)
    assert top.smece_b == sc.top_label_smece(y, q)
    ranking = sc.compare_many(y, {"forest": p, "logistic": q, "again": p}, groups=PATIENT)
    assert ranking.smece["logistic"] == top.smece_b
    with pytest.raises(sc.InputError, match=r"columns|column"):
        sc.compare(y, {"forest": p, "logistic": Q})


# Printed results


def shown_results() -> list[Any]:
    assumed = sc.planning.Assumptions.stated(smece=0.05, label_spread=0.15)
    models = {"forest": P, "logistic": Q, "again": P}
    long = {"i": [1, 1, 2, 2], "l": ["a", "b", "a", "a"], "w": [1, 2, 1, 2]}
    votes = sc.Votes.from_long(long, item="i", label="l", worker="w", positive="b")
    comparison = sc.compare(Y, {"forest": P, "logistic": Q})
    return [
        sc.smece_interval(Y, P),
        sc.smece_interval([0.5], [0.4]),  # with a note
        sc.gap_intervals(Y, P),
        sc.gap_intervals(Y, P, bins=100),
        sc.calibration_test(Y, P),
        comparison,
        comparison.brier,
        sc.compare_many(Y, models),
        sc.corp(Y, P),
        sc.corp([0.0, 1.0], [0.2, 0.7]),
        sc.log_loss_decomposition(Y, np.clip(P, 0.01, 0.99)),
        sc.ecce_mad(Y, P),
        sc.smece_bounds([0.0], [0.2], [0.1]),
        sc.reliability_bounds([0.0], [0.2], [0.1]),
        sc.planning.plan(assumed, half_width=0.05),
        sc.planning.plan(assumed, half_width=0.05, votes=3),
        sc.planning.plan_difference(assumed, difference=0.1, correlation=0.9, votes=3),
        sc.calibrators.repair_preview(Y, P, folds=2, methods=["platt"]),
        sc.calibrators.repair_preview(Y, Y, folds=2, methods=["platt"]),
        sc.dawid_skene(votes),
        sc.calibrators.PlattCalibrator().fit(P, Y).map_,
        sc.calibrators.IsotonicCalibrator().fit(P, Y).map_,
        sc.reliability(Y, P),
        joined({"a": P, "b": Q}),
        assumed,
    ]


def test_results_print_in_a_few_short_lines() -> None:
    for result in shown_results():
        assert "\n" not in repr(result)
        assert len(repr(result)) < 120, repr(result)
        lines = str(result).splitlines()
        assert len(lines) <= 30
        assert max(map(len, lines)) <= 80, str(result)
        assert all(line == line.rstrip() for line in lines)


def test_results_have_html() -> None:
    for result in shown_results()[:-2]:
        page = result._repr_html_()
        assert page.startswith(("<p>", '<table style="'))
        assert page.endswith(("</p>", "</table>"))
        assert "\n" not in page


def test_infinite_log_loss_prints_as_a_dash_with_a_note() -> None:
    label, certain, unsure = [0.5, 0.5, 1.0] * 9, [0.0, 0.4, 0.9] * 9, [0.1, 0.4, 0.9] * 9
    for models, whose in (
        ({"sure": certain, "unsure": unsure}, "sure"),
        ({"unsure": unsure, "sure": certain}, "sure"),
        ({"sure": certain, "again": certain}, "sure and of again"),
    ):
        found = sc.compare(label, models)
        *_, loss, note, rest = str(found).splitlines()
        assert loss.split() == ["log", "loss", "-", "-", "-", "-"]
        assert f"The log loss of {whose} is infinite: there are rows" in f"{note} {rest}"
        assert f"<p>The log loss of {whose} is infinite" in found._repr_html_()
        assert "because a loss is infinite" in str(found.log_loss)
    for other in ([0.3], [0.4]):  # with one row, any finite difference is possible
        found = sc.compare([0.5], {"a": [0.4], "b": other})
        assert "inf" not in str(found)


def test_small_differences_keep_their_digits() -> None:
    found = sc.compare(Y, {"forest": P, "again": P * 0.999})
    assert f"{found.brier.difference:+.1e}" in str(found)


def test_long_lists_of_models_are_truncated() -> None:
    models = {f"model {k}": np.clip(P + 1e-6 * k, 0, 1) for k in range(7)}
    found = sc.compare_many(Y[:9], {name: p[:9] for name, p in models.items()})
    assert len(found.indistinguishable) == 21
    assert all(line.endswith(" and 3 more") for line in str(found).splitlines()[2:])


def test_names_of_models_are_escaped() -> None:
    models = {"a\n\x1b[31m": P, "<b>": Q}
    found = sc.compare(Y, models)
    assert "\x1b" not in str(found) + repr(found) + str(sc.compare_many(Y, models))
    assert "&lt;b&gt;" in found._repr_html_()
    assert "\n" not in repr(joined(models))


def test_generator_and_its_seed_give_the_same_folds() -> None:
    preview = sc.calibrators.repair_preview
    one = preview(Y, P, methods=["platt"], rng=3)
    assert preview(Y, P, methods=["platt"], rng=np.random.default_rng(3)) == one
    assert preview(Y, P, methods=["platt"], rng=4) != one
