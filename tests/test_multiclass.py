"""Compare multiclass metrics with single columns, peers on one-hot labels, and plain loops."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softcal as sc
from softcal._validation.multiclass import class_rows, refuse

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch
    from netcal.metrics import ECE
    from torchmetrics.functional.classification import multiclass_calibration_error

    from softcal.torchmetric import ClasswiseSoftCalibrationError, TopLabelSoftCalibrationError

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray

SCORES: list[Any] = [
    sc.dist_ce, sc.ent_ce, sc.ent_ce_signed, sc.rank_cs,
    sc.brier, sc.log_loss, sc.kl_divergence,
]  # fmt: skip
ALL: list[Any] = [*SCORES, sc.classwise_smece, sc.top_label_smece]


def softmax(z: FloatArray) -> FloatArray:
    e = np.exp(z)
    shares: FloatArray = e / e.sum(axis=1, keepdims=True)
    return shares


def rows(n: int, classes: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Return random soft labels and predictions."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, classes))
    return softmax(z + rng.normal(size=(n, classes))), softmax(2 * z)


# Tables: each class equals its column alone; the top label equals that of a plain loop


@pytest.mark.parametrize("n", [300, 70_000, 140_000])
@pytest.mark.parametrize("kind", ["plain", "weights", "votes"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_each_class_equals_its_column_exactly(n: int, kind: str, order: Any) -> None:
    """With the loops in C++ and in NumPy, for any memory layout."""
    y, p = (np.asarray(values, order=order) for values in rows(n, 3))
    rng = np.random.default_rng(1)
    more: dict[str, Any] = {}
    if kind == "weights":
        more = {"sample_weight": rng.integers(0, 3, n) / 2}
    elif kind == "votes":
        more = {"n_votes": rng.integers(100, 106, n)}
    tables = sc.classwise_reliability(y, p, bins=7, **more)
    assert list(tables) == [0, 1, 2]
    for c, table in tables.items():
        assert table == sc.reliability(y[:, c], p[:, c], bins=7, **more)


def test_float32_classes_are_not_rounded() -> None:
    y, p = (values.astype(np.float32) for values in rows(70_000, 4))
    tables = sc.classwise_reliability(y, p)
    assert tables[2] == sc.reliability(y[:, 2], p[:, 2])
    assert sc.top_label_smece(y, p) == sc.top_label_smece(y.astype(float), p.astype(float))


@pytest.mark.parametrize("n", [500, 70_000])
def test_top_label_equals_a_plain_loop(n: int) -> None:
    y, p = rows(n, 5)
    top = p.argmax(axis=1)
    row = np.arange(n)
    m = np.arange(n) % 3 + 100
    expected = sc.reliability(y[row, top], p[row, top], bins=15, n_votes=m)
    assert sc.top_label_reliability(y, p, bins=15, n_votes=m) == expected
    assert sc.top_label_smece(y, p, bins=15) == expected.smece


@pytest.mark.parametrize("n", [1, 70_000])
def test_of_equal_predictions_the_first_is_the_predicted_class(n: int) -> None:
    y, p = [[0.5, 0.2, 0.3]] * n, [[0.1, 0.45, 0.45]] * n
    assert sc.top_label_smece(y, p) == pytest.approx(0.25)


def test_classwise_is_the_unweighted_mean(rng: np.random.Generator) -> None:
    y, p = rows(400, 6)
    w = rng.random(400)
    columns = [sc.smece(y[:, c], p[:, c], sample_weight=w) for c in range(6)]
    assert sc.classwise_smece(y, p, sample_weight=w) == pytest.approx(sum(columns) / 6, rel=1e-14)


def test_one_hot_labels_give_the_usual_confidence_ece(rng: np.random.Generator) -> None:
    _, p = rows(4000, 4)
    truth = rng.integers(0, 4, 4000)
    ours = sc.top_label_smece(np.eye(4)[truth], p, bins=12)
    theirs = multiclass_calibration_error(torch.as_tensor(p), torch.as_tensor(truth), 4, n_bins=12)
    assert ours == pytest.approx(float(theirs), abs=1e-6)  # it computes in float32
    assert ours == pytest.approx(float(ECE(12).measure(p, truth)), abs=1e-13)


@pytest.mark.parametrize(
    ("metric", "score"),
    [
        (ClasswiseSoftCalibrationError, sc.classwise_smece),
        (TopLabelSoftCalibrationError, sc.top_label_smece),
    ],
)
def test_torch_metrics_equal_the_functions(metric: Any, score: Any) -> None:
    y, p = rows(2000, 4)
    theirs = metric(num_classes=4)
    theirs.update(torch.as_tensor(p), torch.as_tensor(y))
    assert float(theirs.compute()) == pytest.approx(score(y, p), rel=1e-12)


def test_votes_set_n_votes() -> None:
    votes = sc.Votes([[3, 1, 0], [0, 1, 1]] * 40, classes=["cat", "dog", "fox"])
    p = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]] * 40
    tables = sc.classwise_reliability(votes, p)
    assert list(tables) == ["cat", "dog", "fox"]
    assert tables["cat"] == sc.reliability(votes.binary("cat"), [0.6, 0.2] * 40)
    assert sc.top_label_reliability(votes, p) == sc.top_label_reliability(
        votes.shares, p, n_votes=votes.totals
    )
    for score in ALL:
        assert score(votes, p) == score(votes.shares, p)
    with pytest.raises(sc.InputError, match="n_votes must be omitted when y_true is Votes"):
        sc.classwise_reliability(votes, p, n_votes=3)


# Scores, compared with plain loops written from the definitions


def plain(name: str, y: list[float], p: list[float]) -> float:
    def entropy(q: list[float]) -> float:
        return -sum(v * math.log(v) for v in q if v > 0)

    pairs = list(zip(y, p, strict=True))
    cross = -sum(a * (math.log(b) if b else -math.inf) for a, b in pairs if a > 0)
    return {
        "dist_ce": sum(abs(a - b) for a, b in pairs) / 2,
        "ent_ce": abs(entropy(p) - entropy(y)),
        "ent_ce_signed": entropy(p) - entropy(y),
        "rank_cs": float(all(b > d for a, b in pairs for c, d in pairs if a > c)),
        "brier": sum((a - b) ** 2 for a, b in pairs),
        "log_loss": cross,
        "kl_divergence": cross - entropy(y),
    }[name]


DISTRIBUTION = st.lists(st.integers(0, 4), min_size=3, max_size=3).filter(any).map(
    lambda k: [v / sum(k) for v in k]
)  # fmt: skip


@given(st.lists(st.tuples(DISTRIBUTION, DISTRIBUTION, st.integers(0, 3)), min_size=1, max_size=8))
def test_scores_equal_plain_loops(
    data: list[tuple[list[float], list[float], int]],
) -> None:
    data = [*data, ([1.0, 0.0, 0.0], [1.0, 0.0, 0.0], 1)]
    y, p, w = (list(column) for column in zip(*data, strict=True))
    for score in SCORES:
        each = [k * plain(score.__name__, a, b) if k else 0.0 for a, b, k in data]
        found = score(y, p, sample_weight=w)
        assert found == pytest.approx(sum(each) / sum(w), abs=1e-12)


def test_scores_of_two_classes_equal_those_of_one_probability() -> None:
    y, p = rows(300, 2)
    both = y[:, 1], p[:, 1]
    assert sc.brier(y, p) == pytest.approx(2 * sc.brier(*both))
    assert sc.log_loss(y, p) == pytest.approx(sc.log_loss(*both))
    assert sc.kl_divergence(y, p) == pytest.approx(sc.kl_divergence(*both))
    assert sc.classwise_smece(y, p, bins=1) == pytest.approx(sc.smece(*both, bins=1))
    assert sc.dist_ce(y, p) == pytest.approx(np.abs(y - p)[:, 1].mean())


@pytest.mark.parametrize("score", ALL)
def test_a_perfect_model_scores_best(score: Any) -> None:
    y, _ = rows(50, 3)
    best = {sc.rank_cs: 1.0, sc.log_loss: sc.log_loss(y, y)}.get(score, 0.0)
    assert score(y, y) == best


@pytest.mark.parametrize("score", ALL)
def test_weight_two_equals_two_copies_of_the_row(score: Any) -> None:
    y, p = rows(60, 4)
    twice = np.arange(60) % 2 + 1
    again = score(np.repeat(y, twice, axis=0), np.repeat(p, twice, axis=0))
    assert score(y, p, sample_weight=twice) == pytest.approx(again, rel=1e-12)


def test_ties_in_the_votes_allow_any_order() -> None:
    """The code of Baan et al. accepts the first order and not the second."""
    votes = sc.Votes([[2, 2, 1]] * 2)
    p = [[0.39, 0.41, 0.2], [0.41, 0.39, 0.2]]
    assert sc.rank_cs(votes, p) == 1
    assert sc.rank_cs(votes, [[0.2, 0.4, 0.4], [0.4, 0.4, 0.2]]) == 0.5


def test_rank_cs_without_ties_equals_the_code_of_baan() -> None:
    y, p = rows(500, 4, seed=3)
    baan = (np.argsort(p, axis=1) == np.argsort(y, axis=1)).all(axis=1).mean()
    assert 0.1 < baan < 0.9
    assert sc.rank_cs(y, p) == baan


def test_scores_do_not_depend_on_blocks() -> None:
    """Use more rows and classes than one block holds."""
    y, p = rows(40_000, 5)
    for score in SCORES:
        halves = [score(y[k : k + 20_000], p[k : k + 20_000]) for k in (0, 20_000)]
        assert score(y, p) == pytest.approx(sum(halves) / 2, rel=1e-12)
    y, p = rows(30, 2000)
    assert sc.dist_ce(y, p) == pytest.approx(np.abs(y - p).sum(axis=1).mean() / 2)


# Input validation


def test_frames_name_the_classes() -> None:
    y, p = rows(20, 3)
    names = ["cat", "dog", "fox"]
    for frame in (pd.DataFrame, pl.DataFrame, pa.table):
        columns = {name: p[:, c] for c, name in enumerate(names)}
        tables = sc.classwise_reliability(y, frame(columns))
        assert list(tables) == names
        assert tables["dog"] == sc.reliability(y[:, 1], p[:, 1])
    named = pd.DataFrame(y, columns=names)
    assert list(sc.classwise_reliability(named, p)) == names
    other = pd.DataFrame(p, columns=["p1", "p2", "p3"])
    assert list(sc.classwise_reliability(named, other)) == names
    with pytest.raises(
        sc.InputError,
        match="classes in the same order: y_true starts with 'cat', y_prob with 'fox'",
    ):
        sc.classwise_reliability(named, pd.DataFrame(p, columns=names[::-1]))
    with pytest.raises(sc.InputError, match="y_true and y_prob must have the same pandas index"):
        sc.dist_ce(named, other[::-1])
    assert sc.dist_ce(torch.as_tensor(y), torch.as_tensor(p)) == sc.dist_ce(y, p)


def test_classes_of_models_must_have_the_same_order(tmp_path: Path) -> None:
    y, p = rows(20, 3)
    names = ["cat", "dog", "fox"]
    models = {
        "a": pd.DataFrame(p, columns=names),
        "b": pd.DataFrame(p[:, ::-1], columns=names[::-1]),
    }
    order = "a and b must have their classes in the same order: a starts with 'cat', b with 'fox'"
    for call in (sc.compare, sc.compare_many):
        with pytest.raises(sc.InputError, match=order):
            call(y, models)
    with pytest.raises(sc.InputError, match=order):
        sc.write_report(tmp_path / "report.html", y, models)


Y, P = rows(4, 3)


def with_value(array: FloatArray, value: float) -> FloatArray:
    changed = array.copy()
    changed[2, 1] = value
    return changed


BAD: list[tuple[Any, Any, str]] = [
    (Y, with_value(P, 1.5), "y_prob must be in [0, 1]: 1 of 12 are not, the first is y_prob[2, 1] = 1.5. If these are logits, take the softmax of each row"),
    (with_value(Y, -0.1), P, "y_true must be in [0, 1]: 1 of 12 are not, the first is y_true[2, 1] = -0.1"),
    (with_value(Y, math.nan), P, "y_true must hold numbers in [0, 1]: 1 of 12 are not, the first is y_true[2, 1], which is missing"),
    (Y, P * 0.99, "rows of y_prob must sum to 1 within 0.001: 4 of 4 do not, the first is y_prob[0], which sums to 0.99"),
    (Y, with_value(P, 0.0), "1 of 4 do not, the first is y_prob[2]"),
    (Y, P[:3], "y_true and y_prob must have the same length: y_true has 4 rows, y_prob has 3"),
    (Y, P[:, :2], "y_true and y_prob must have the same classes: y_true has 3 columns, y_prob has 2"),
    ([0, 1, 2, 1], P, "y_true must have one row per item and one column per class: it has shape (4,). For two classes, pass both: numpy.column_stack([1 - y_true, y_true]). If these are class numbers, pass numpy.eye(n_classes)[y_true]."),
    (Y[:0], P[:0], "y_true is empty"),
]  # fmt: skip


@pytest.mark.parametrize(("y", "p", "message"), BAD)
@pytest.mark.parametrize("score", [sc.classwise_smece, sc.top_label_smece, sc.ent_ce])
def test_bad_data_is_refused(score: Any, y: Any, p: Any, message: str) -> None:
    with pytest.raises(sc.InputError) as error:
        score(y, p)
    assert message in str(error.value)


@pytest.mark.parametrize("score", [sc.classwise_smece, sc.top_label_smece, sc.ent_ce])
@pytest.mark.parametrize("value", [1.5, math.nan, 0.0])
def test_one_bad_value_among_many_is_found(score: Any, value: float) -> None:
    y, p = rows(140_000, 3)
    for which in (y, p):
        kept, which[135_000, 2] = which[135_000, 2], value
        with pytest.raises(
            sc.InputError, match=r"1 of \d+ (are|do) not, the first is y_(true|prob)\[135000"
        ):
            score(y, p)
        which[135_000, 2] = kept
    assert score(y, p) >= 0


@pytest.mark.parametrize("score", ALL)
def test_invalid_weights_of_classes_are_refused(score: Any) -> None:
    with pytest.raises(
        sc.InputError,
        match=r"sample_weight must be 0 or more: 1 of 4 values is not, the first is sample_weight\[1\] = -1.0",
    ):
        score(Y, P, sample_weight=[1, -1, 1, 1])
    with pytest.raises(sc.InputError, match="sample_weight must have a positive value somewhere"):
        score(Y, P, sample_weight=[0, 0, 0, 0])


def test_rounding_of_a_softmax_in_float32_passes() -> None:
    e = np.exp(np.random.default_rng(0).normal(size=(1000, 100)).astype(np.float32) * 5)
    p = e / e.sum(axis=1, keepdims=True)
    assert p.dtype == np.float32
    assert np.abs(p.sum(axis=1, dtype=np.float64) - 1).max() > 1e-9
    assert sc.dist_ce(p, p) == 0


def test_softmax_in_half_precision_is_accepted_by_metrics_and_calibrators() -> None:
    logits = np.random.default_rng(0).normal(size=(2000, 10)) * 3
    p = softmax(logits).astype(np.float16)
    assert np.abs(p.sum(axis=1, dtype=np.float64) - 1).max() > 1e-4
    assert sc.dist_ce(p, p) == 0
    fitted = sc.calibrators.TemperatureCalibrator().fit(p, softmax(logits / 2))
    assert fitted.temperature_ == pytest.approx(2, abs=0.01)


@pytest.mark.parametrize("n", [10, 70_000])
def test_row_sum_at_the_tolerance_is_judged_equally_by_every_kernel(n: int) -> None:
    """Every kernel accepts sums within 0.001 of 1 and refuses others."""
    y = np.full((n, 3), 1 / 3)
    for off, fine in ((9e-4, True), (1.1e-3, False)):
        p = y + np.array([0, 0, off])
        for score in (sc.classwise_smece, sc.top_label_smece, sc.dist_ce):
            if fine:
                assert score(y, p) == pytest.approx(0, abs=1e-3)
            else:
                with pytest.raises(
                    sc.InputError, match=f"rows of y_prob must sum to 1.*{n} of {n} do not"
                ):
                    score(y, p)


def test_class_names_must_differ() -> None:
    twice = pd.DataFrame(P, columns=["cat", "dog", "cat"])
    with pytest.raises(sc.InputError, match="classes must be 3 different names"):
        sc.classwise_reliability(Y, twice)


def test_classes_that_change_while_being_read_are_refused() -> None:
    with pytest.raises(sc.InputError, match="the data changed while it was being read"):
        refuse(class_rows(Y, P))


# Groups


@pytest.mark.parametrize("n", [300, 70_000])
def test_each_class_with_groups_equals_its_column_with_groups(n: int) -> None:
    y, p = rows(n, 3)
    rng = np.random.default_rng(1)
    more: dict[str, Any] = {
        "sample_weight": rng.integers(0, 3, n) / 2,
        "groups": [f"patient {k}" for k in rng.integers(0, n // 4, n)],
    }
    top, row = p.argmax(axis=1), np.arange(n)
    expected = sc.reliability(y[row, top], p[row, top], bins=7, **more)
    assert sc.top_label_reliability(y, p, bins=7, **more) == expected
    tables = sc.classwise_reliability(y, p, bins=7, **more)
    for c, table in tables.items():
        assert table == sc.reliability(y[:, c], p[:, c], bins=7, **more)
    assert (
        sc.smece_interval(tables[1]).low == sc.smece_interval(y[:, 1], p[:, 1], bins=7, **more).low
    )


@pytest.mark.parametrize("build", [sc.classwise_reliability, sc.top_label_reliability])
def test_groups_of_classes_are_validated(build: Any) -> None:
    with pytest.raises(sc.InputError, match="y_true and groups must have the same length"):
        build(Y, P, groups=["ann"])
    with pytest.raises(sc.InputError, match="y_prob and groups must have the same pandas index"):
        build(Y, pd.DataFrame(P), groups=pd.Series(["ann"] * len(P))[::-1])


# Two models


def test_comparison_of_classes_is_that_of_columns_where_both_predict_the_same_class() -> None:
    y, p = rows(600, 3)
    soft = (p + 0.5) / 2.5
    top, row = p.argmax(axis=1), np.arange(600)
    found = sc.compare(y, {"a": p, "b": soft}, n_votes=100)
    assert found == sc.compare(y[row, top], {"a": p[row, top], "b": soft[row, top]}, n_votes=100)


def test_comparison_of_classes_where_models_predict_different_ones() -> None:
    y, p = rows(600, 3)
    other = p[:, [1, 0, 2]]
    found = sc.compare(y, {"a": p, "b": other}, level=0.9)
    a, b = sc.top_label_reliability(y, p), sc.top_label_reliability(y, other)
    assert (found.smece_a, found.smece_b) == (a.smece, b.smece)
    assert found.brier.difference == pytest.approx(a.brier - b.brier)
    assert found.low <= found.difference <= found.high
    turned = sc.compare(y, {"a": other, "b": p}, level=0.9)
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))


def test_interval_of_class_comparison_covers_the_true_difference(rng: np.random.Generator) -> None:
    """One of two models is calibrated: the interval covers the true difference in most runs."""
    missed = 0
    for _ in range(60):
        truth = rng.dirichlet([1, 1, 1], 400)
        sharp = truth**2 / (truth**2).sum(axis=1, keepdims=True)
        counts = rng.multinomial(5, truth)
        exact = sc.compare(truth, {"a": truth, "b": sharp})
        found = sc.compare(sc.Votes(counts), {"a": truth, "b": sharp})
        missed += not found.low <= exact.difference <= found.high
    assert missed <= 6


def test_comparison_of_classes_refuses_rows_in_another_order() -> None:
    a = pd.DataFrame(P)
    with pytest.raises(sc.InputError, match="a and b must have the same pandas index"):
        sc.compare(Y, {"a": a, "b": a[::-1]})


def test_comparison_of_many_models_of_classes_is_that_of_their_top_labels() -> None:
    """Also with groups and weights; the p-values of pairs are corrected by Holm's method."""
    y, p = rows(900, 4)
    models = {"a": p, "b": (p + 0.5) / 3, "c": softmax(np.log(p) / 1.1)}
    top, row = p.argmax(axis=1), np.arange(900)
    more: dict[str, Any] = {"groups": row // 3, "sample_weight": row % 3 + 1}
    found = sc.compare_many(y, models, level=0.9, **more)
    columns = {name: each[row, top] for name, each in models.items()}
    assert found == sc.compare_many(y[row, top], columns, level=0.9, **more)
    pairs = {(pair.a, pair.b): pair for pair in found.pairs}
    for (a, b), pair in pairs.items():
        level = pair.comparison.level
        assert pair.comparison == sc.compare(y, {a: models[a], b: models[b]}, level=level, **more)
    assert sum(pair.pvalue > pair.comparison.pvalue for pair in found.pairs) == 2


@pytest.mark.parametrize("metric", [sc.classwise_smece, sc.classwise_reliability])
def test_classwise_metrics_refuse_invalid_rows_and_weights_of_zero(metric: Any) -> None:
    y, p = np.eye(2), np.full((2, 2), 0.5)
    with pytest.raises(sc.InputError, match="y_prob"):
        metric(y, p * np.nan)
    with pytest.raises(sc.InputError, match="sample_weight"):
        metric(y, p, sample_weight=[0, 0])
