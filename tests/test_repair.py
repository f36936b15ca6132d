"""Held-out evaluation: folds, the preview, and the classifier trained on soft labels."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array
from scipy.special import expit, logit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import softcal as sc
from softcal.calibrators.preview import BINARY_METHODS, CLASS_METHODS, fit_map
from softcal.calibrators.preview import split_folds as folds
from softcal.datasets import lidc_malignancy

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray

# Folds


@pytest.mark.parametrize("groups", [None, np.array([0, 1, 2, 0, 1, 2, 3, 3, 3, 1])])
def test_each_row_is_held_out_once_and_groups_stay_together(groups: Any) -> None:
    held: list[int] = []
    for fit_on, held_out in folds(10, 3, 0, groups):
        assert sorted([*fit_on, *held_out]) == list(range(10))
        if groups is not None:
            assert not set(groups[fit_on]) & set(groups[held_out])
        held.extend(held_out)
    assert sorted(held) == list(range(10))


def test_folds_are_the_same_for_the_same_seed() -> None:
    def dealt(seed: int) -> list[list[int]]:
        return [held_out.tolist() for _, held_out in folds(50, 5, seed)]

    assert dealt(1) == dealt(1) != dealt(2)
    assert [len(part) for part in dealt(1)] == [10] * 5


@pytest.mark.parametrize(
    ("number", "message"),
    [(1, "between 2 and the number of rows, 4: got 1"), (5, "got 5"), (2.0, "whole number: got 2.0"),
     (True, "whole number")],
)  # fmt: skip
def test_invalid_numbers_of_folds_are_refused(number: Any, message: str) -> None:
    with pytest.raises(sc.SoftcalError, match=message):
        next(folds(4, number, 0))
    with pytest.raises(sc.InputError, match="number of groups, 1"):
        next(folds(4, 2, 0, np.zeros(4, dtype=np.intp)))


# The preview


def test_preview_scores_methods_on_held_out_rows(rng: np.random.Generator) -> None:
    """Compare with maps fitted by hand on the other folds."""
    p, y, w = rng.random(60), rng.random(60), rng.integers(1, 4, 60).astype(float)
    found = sc.calibrators.repair_preview(
        y, p, sample_weight=w, methods=["platt", "isotonic"], folds=3, rng=7
    )
    for trial in found.after:
        q = np.empty(60)
        for fit_on, held_out in folds(60, 3, 7):
            mapped = fit_map(trial.method, y[fit_on], p[fit_on], sample_weight=w[fit_on])
            q[held_out] = mapped.apply(p[held_out])
        assert trial.brier == pytest.approx(sc.brier(y, q, sample_weight=w), rel=1e-9)
        assert trial.log_loss == pytest.approx(sc.log_loss(y, q, sample_weight=w), rel=1e-9)
        assert trial.table.smece == pytest.approx(sc.smece(y, q, sample_weight=w), abs=1e-9)
        assert trial.smece.value == trial.table.smece
    assert found.before.smece.value == pytest.approx(sc.smece(y, p, sample_weight=w), rel=1e-12)
    assert [trial.method for trial in found.after] == ["platt", "isotonic"]


STEPS = [0.1, 0.13, 0.1, 0.5, 0.47, 0.52, 0.9, 0.86, 0.91]  # hardly decreases
WAVES = [0.1, 0.5, 0.1, 0.5, 0.9, 0.5, 0.9, 0.5, 0.9]


def nine_levels(levels: list[float]) -> tuple[FloatArray, FloatArray]:
    """Return shares of three votes, and predictions of nine values."""
    rng = np.random.default_rng(1)
    at = rng.integers(9, size=1000)
    return rng.binomial(3, np.array(levels)[at]) / 3, (at + 0.5) / 9


def test_simpler_monotone_method_is_preferred_within_the_noise() -> None:
    y, p = nine_levels(STEPS)
    for methods in (None, ["histogram", "isotonic"]):
        found = sc.calibrators.repair_preview(y, p, methods=methods)
        scores = {trial.method: trial.brier for trial in found.after}
        assert min(scores, key=lambda method: scores[method]) == "histogram"
        assert scores["isotonic"] - scores["histogram"] < 1e-4
        assert (found.best, found.lowest, found.helps) == ("isotonic", "histogram", True)
        assert "isotonic is the simplest method within one standard error" in str(found)
    (note,) = found.notes
    assert note.startswith("isotonic is simpler than histogram and within one standard error")
    waves = sc.calibrators.repair_preview(*nine_levels(WAVES))
    assert (waves.best, waves.lowest, waves.notes) == ("histogram", "histogram", ())


def test_standard_error_of_the_comparison_is_that_of_groups_and_weights() -> None:
    y, p = nine_levels(STEPS)
    rng = np.random.default_rng(7)
    group, w = rng.integers(100, size=1000), rng.integers(3, size=1000)
    found = sc.calibrators.repair_preview(
        y, p, groups=group, sample_weight=w, methods=["isotonic", "histogram"]
    )
    here = w > 0
    y, p, group, w = y[here], p[here], group[here], w[here]
    _, first, number = np.unique(group, return_index=True, return_inverse=True)
    number = first.argsort().argsort()[number]
    losses = {}
    for method in ("isotonic", "histogram"):
        q = np.empty(y.size)
        for fit_on, held_out in folds(y.size, 5, 0, number):
            fitted = fit_map(method, y[fit_on], p[fit_on], sample_weight=w[fit_on])
            q[held_out] = fitted.predict(p[held_out])
        losses[method] = (q - y) ** 2
    worse = losses["isotonic"] - losses["histogram"]
    mean = np.average(worse, weights=w)
    sums = np.array([(w * (worse - mean))[number == k].sum() for k in range(number.max() + 1)])
    error = np.sqrt(sums.size * sums.var(ddof=1)) / w.sum()
    assert (found.best, found.lowest) == ("isotonic", "histogram")
    assert (
        f"is {mean:.2g} higher, and the standard error of this difference is {error:.2g}."
        in str(found.notes[0])
    )


@pytest.mark.parametrize(
    ("seed", "helps", "lowest"),
    [(1, False, "isotonic"), (4, True, "beta"), (5, True, "temperature")],
)
def test_improvement_within_the_noise_is_noted(seed: int, helps: bool, lowest: str) -> None:  # noqa: FBT001
    rng = np.random.default_rng(seed)
    p = rng.random(1000)
    y = (rng.random(1000) < expit(0.93 * logit(p))).astype(float)
    found = sc.calibrators.repair_preview(y, p)
    assert (found.best, found.helps, found.lowest) == ("temperature", helps, lowest)
    simpler = [f"temperature is simpler than {lowest} and within"] * (lowest != "temperature")
    kept = ["Leaving predictions as they are is simpler than temperature and within"] * helps
    for note, start in zip(found.notes, simpler + kept, strict=True):
        assert note.startswith(start)
    assert ("keep the original predictions" in str(found)) is not helps


def test_best_method_improves_the_predictions(rng: np.random.Generator) -> None:
    p = rng.random(3000)
    y = (rng.random(3000) < expit(0.4 * logit(p))).astype(float)
    found = sc.calibrators.repair_preview(y, p)
    assert (found.best, found.helps) == ("temperature", True)
    best = found.after[0]
    assert best.brier < found.before.brier
    assert best.smece.value < found.before.smece.value
    rows = found.as_rows()
    assert [row["method"] for row in rows] == ["none", *BINARY_METHODS]
    assert rows[0]["brier"] == found.before.brier


def test_no_method_helps_calibrated_predictions(rng: np.random.Generator) -> None:
    p = rng.random(500)
    assert not sc.calibrators.repair_preview(p, p, methods=["histogram"]).helps


def test_infinite_log_loss_is_none_in_rows() -> None:
    p = np.repeat([0.1, 0.9], 10)
    found = sc.calibrators.repair_preview(
        [0] * 9 + [1] + [1] * 10, p, methods=["isotonic"], folds=2
    )
    rows = {row["method"]: row["log_loss"] for row in found.as_rows()}
    assert (rows["isotonic"] is None) == math.isinf(found.after[0].log_loss)
    assert rows["none"] == found.before.log_loss


def test_preview_ignores_rows_of_weight_0(rng: np.random.Generator) -> None:
    p, y, votes = rng.random(40), rng.random(40), rng.integers(100, 105, 40)
    groups = rng.integers(0, 20, 40)
    weight = np.ones(40)
    weight[25:] = 0
    with_them = sc.calibrators.repair_preview(
        y, p, sample_weight=weight, n_votes=votes, groups=groups
    )
    without = sc.calibrators.repair_preview(
        y[:25], p[:25], sample_weight=weight[:25], n_votes=votes[:25], groups=groups[:25]
    )
    assert with_them.as_rows() == without.as_rows()


def test_preview_does_not_depend_on_group_names(rng: np.random.Generator) -> None:
    p, y, groups = rng.random(60), rng.random(60), rng.integers(0, 20, 60)
    numbers = sc.calibrators.repair_preview(y, p, groups=groups).as_rows()
    names = np.array([f"patient {97 * g % 23}" for g in groups])
    assert sc.calibrators.repair_preview(y, p, groups=names).as_rows() == numbers
    assert sc.calibrators.repair_preview(y, p, groups=names.astype(object)).as_rows() == numbers


def test_unknown_methods_are_refused() -> None:
    for methods, got in ((["magic"], "'magic'"), (["vector"], "'vector'"), ([], "none")):
        with pytest.raises(
            sc.InputError, match=rf"methods \(--method\) must be some of .*: got {got}"
        ):
            sc.calibrators.repair_preview([0.1, 0.2], [0.1, 0.2], methods=methods)


def test_preview_of_classes_scores_methods_on_held_out_rows(rng: np.random.Generator) -> None:
    """Compare with maps fitted by hand, with weights, votes, and groups."""
    y, p = rng.dirichlet([1, 1, 1], (2, 90))
    w, votes = rng.integers(0, 3, 90).astype(float), rng.integers(100, 106, 90)
    groups = np.array([f"patient {k:02}" for k in np.sort(rng.integers(0, 30, 90))])
    found = sc.calibrators.repair_preview(
        y, p, sample_weight=w, n_votes=votes, groups=groups, folds=3, rng=7, bins=5
    )
    assert [trial.method for trial in found.after] == list(CLASS_METHODS)
    here = w > 0
    number = np.unique(groups[here], return_inverse=True)[1]  # in order of appearance
    about: dict[str, Any] = {"bins": 5, "sample_weight": w[here], "n_votes": votes[here]}
    for trial in (found.before, *found.after):
        q = p[here].copy()
        for fit_on, held_out in folds(int(here.sum()), 3, 7, number):
            assert not set(number[fit_on]) & set(number[held_out])
            if trial is not found.before:
                part = (y[here][fit_on], p[here][fit_on])
                mapped = fit_map(trial.method, *part, sample_weight=w[here][fit_on])
                q[held_out] = mapped.apply(p[here][held_out])
        assert trial.brier == sc.brier(y[here], q, sample_weight=w[here])
        assert trial.log_loss == sc.log_loss(y[here], q, sample_weight=w[here])
        table = sc.top_label_reliability(y[here], q, groups=number, **about)
        assert trial.table == table
        assert trial.smece == sc.smece_interval(table)
    assert found.lowest == min(found.after, key=lambda trial: trial.brier).method


def test_preview_uses_the_vote_counts_of_classes(rng: np.random.Generator) -> None:
    counts, p = rng.integers(1, 6, (60, 3)), rng.dirichlet([1, 1, 1], 60)
    shares, totals = counts / counts.sum(axis=1, keepdims=True), counts.sum(axis=1)
    of_votes = sc.calibrators.repair_preview(sc.Votes(counts), p, methods=["temperature"])
    expected = sc.calibrators.repair_preview(shares, p, n_votes=totals, methods=["temperature"])
    assert of_votes.as_rows() == expected.as_rows()
    assert of_votes.before.table == expected.before.table


@pytest.mark.parametrize("classes", [None, 3])
def test_preview_of_logits_equals_that_of_their_probabilities(
    rng: np.random.Generator, classes: int | None
) -> None:
    """For probabilities far from 0 and 1; methods that do not accept logits are omitted."""
    z = rng.normal(size=80 if classes is None else (80, classes))
    p = expit(z) if classes is None else softmax(z, axis=1)
    y = rng.permutation(p) * 0.5 + p * 0.5
    from_logits = sc.calibrators.repair_preview(y, z, logits=True)
    methods = [trial.method for trial in from_logits.after]
    assert methods == [
        "temperature",
        *(["platt", "beta"] if classes is None else CLASS_METHODS[1:]),
    ]
    of_p = sc.calibrators.repair_preview(y, p, methods=methods)
    assert from_logits.best == of_p.best
    for mine, theirs in zip(from_logits.as_rows(), of_p.as_rows(), strict=True):
        assert mine.pop("method") == theirs.pop("method")
        assert mine == pytest.approx(theirs, abs=1e-7)
    if classes is None:
        with pytest.raises(sc.InputError, match="some of temperature, platt, beta: got 'isotonic'"):
            sc.calibrators.repair_preview(y, z, methods=["isotonic"], logits=True)


def test_methods_of_one_probability_are_refused_for_classes() -> None:
    with pytest.raises(sc.InputError, match="some of temperature, vector, dirichlet: got 'beta'"):
        sc.calibrators.repair_preview([[0.5, 0.5]] * 4, [[0.4, 0.6]] * 4, methods=["beta"])


# The classifier


@pytest.fixture
def soft(rng: np.random.Generator) -> tuple[Any, Any]:
    x = rng.normal(size=(300, 3))
    return x, expit(x @ [1.0, -0.5, 0.2] + 0.3 * rng.normal(size=300))


def test_classifier_is_trained_on_two_weighted_rows_per_soft_label(soft: tuple[Any, Any]) -> None:
    x, y = soft
    found = sc.calibrators.SoftCalibratedClassifier(LogisticRegression(C=10)).fit(x, y)
    by_hand = LogisticRegression(C=10).fit(
        np.r_[x, x], np.repeat([0, 1], 300), sample_weight=np.r_[1 - y, y]
    )
    np.testing.assert_allclose(found.estimator_.coef_, by_hand.coef_, atol=1e-3)
    p = np.empty(300)
    for fit_on, held_out in folds(300, 5, 0):
        model = LogisticRegression(C=10).fit(
            np.r_[x[fit_on], x[fit_on]],
            np.repeat([0, 1], fit_on.size),
            sample_weight=np.r_[1 - y[fit_on], y[fit_on]],
        )
        p[held_out] = model.predict_proba(x[held_out])[:, 1]
    expected = sc.calibrators.TemperatureCalibrator().fit(p, y).temperature_
    assert found.calibrator_.to_dict()["parameters"]["temperature"] == pytest.approx(
        expected, abs=1e-3
    )
    np.testing.assert_allclose(found.predict_proba(x).sum(axis=1), 1)
    np.testing.assert_array_equal(found.predict(x), found.predict_proba(x).argmax(axis=1))


def test_the_same_random_state_gives_the_same_model(soft: tuple[Any, Any]) -> None:
    x, y = soft

    def temperature(state: int) -> float:
        model = sc.calibrators.SoftCalibratedClassifier(GaussianNB(), random_state=state).fit(x, y)
        return float(model.calibrator_.to_dict()["parameters"]["temperature"])

    assert temperature(3) == temperature(3) != temperature(4)


def test_calibrated_classifier_corrects_overconfidence(soft: tuple[Any, Any]) -> None:
    x, y = soft
    copies = np.repeat(x, 4, axis=1)  # naive Bayes treats each copy as new evidence
    raw = GaussianNB().fit(np.r_[copies, copies], np.repeat([0, 1], 300), np.r_[1 - y, y])
    for method in BINARY_METHODS:
        model = sc.calibrators.SoftCalibratedClassifier(GaussianNB(), method=method).fit(copies, y)
        after = sc.brier(y, model.predict_proba(copies)[:, 1])
        assert after < 0.7 * sc.brier(y, raw.predict_proba(copies)[:, 1])


def test_classifier_accepts_frames_sparse_rows_lists_and_pipelines(soft: tuple[Any, Any]) -> None:
    x, y = soft
    plain = sc.calibrators.SoftCalibratedClassifier(LogisticRegression()).fit(x, y).predict_proba(x)
    for given in (csr_array(x), x.tolist(), pd.DataFrame(x, columns=["a", "b", "c"])):
        model = sc.calibrators.SoftCalibratedClassifier(LogisticRegression()).fit(given, y)
        np.testing.assert_allclose(model.predict_proba(given), plain, atol=1e-3)
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    piped = sc.calibrators.SoftCalibratedClassifier(pipe).fit(x, y).predict_proba(x)
    np.testing.assert_allclose(piped, plain, atol=0.02)


def test_classifier_handles_a_class_missing_from_a_fold(rng: np.random.Generator) -> None:
    x = rng.normal(size=(60, 2))
    y = rng.dirichlet([1, 1, 1], 60)
    y[1:, 2] = 0
    y /= y.sum(axis=1, keepdims=True)
    for method in ("temperature", "vector", "dirichlet"):
        model = sc.calibrators.SoftCalibratedClassifier(
            LogisticRegression(), method=method, cv=3
        ).fit(x, y)
        assert model.classes_.tolist() == [0, 1, 2]
        np.testing.assert_allclose(model.predict_proba(x).sum(axis=1), 1)


def test_classifier_ignores_rows_of_weight_0(soft: tuple[Any, Any]) -> None:
    x, y = soft
    weight = np.where(np.arange(300) < 200, 1.0, 0.0)
    weighted = sc.calibrators.SoftCalibratedClassifier(LogisticRegression(tol=1e-10)).fit(
        x, y, weight
    )
    fewer = clone(weighted).fit(x[:200], y[:200])
    np.testing.assert_allclose(weighted.estimator_.coef_, fewer.estimator_.coef_, atol=1e-6)
    with pytest.raises(sc.InputError, match="sample_weight must be 0 or more"):
        clone(weighted).fit(x, y, -weight)


def test_frozen_classifier_is_only_calibrated(soft: tuple[Any, Any]) -> None:
    x, y = soft
    fitted = LogisticRegression().fit(x[:100], np.where(y[:100] > 0.5, "yes", "no"))
    model = sc.calibrators.SoftCalibratedClassifier(FrozenEstimator(fitted), method="platt").fit(
        x[100:], y[100:]
    )
    expected = sc.calibrators.PlattCalibrator().fit(fitted.predict_proba(x[100:])[:, 1], y[100:])
    np.testing.assert_allclose(
        model.predict_proba(x)[:, 1], expected.predict(fitted.predict_proba(x)[:, 1]), atol=1e-12
    )
    assert set(model.predict(x)) == {"no", "yes"}
    with pytest.raises(
        sc.InputError, match="one column per class of the frozen estimator, which has 2"
    ):
        sc.calibrators.SoftCalibratedClassifier(FrozenEstimator(fitted)).fit(x[:2], np.eye(3)[:2])


class _Reversed(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted classifier whose classes are not sorted, and that ignores the names of features."""

    classes_ = np.array(["n", "e", "c"])

    def fit(self, x: Any, y: Any) -> Self:  # noqa: ARG002
        return self

    def predict_proba(self, x: Any) -> Any:
        return np.asarray(x)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def test_classes_of_a_frozen_classifier_are_matched_by_name(rng: np.random.Generator) -> None:
    p = rng.dirichlet([1, 1, 1], 60)
    frame = pd.DataFrame(p, columns=["a", "b", "c"])
    model = sc.calibrators.SoftCalibratedClassifier(FrozenEstimator(_Reversed()), method="vector")
    labels = pd.DataFrame(p, columns=["n", "e", "c"])
    np.testing.assert_allclose(model.fit(frame, labels).predict_proba(frame), p, atol=1e-4)
    assert model.predict(frame).tolist() == labels.idxmax(axis=1).tolist()
    with pytest.raises(sc.InputError, match="y has 'c', 'e', 'n', the estimator has 'n', 'e', 'c'"):
        model.fit(frame, labels[["c", "e", "n"]])
    with pytest.raises(sc.InputError, match="must be in the same order as they were in fit"):
        model.predict(frame[["b", "a", "c"]])
    with pytest.raises(sc.InputError, match="Feature names unseen at fit time"):
        model.predict_proba(frame.rename(columns={"a": "x"}))


def test_classifier_without_sample_weight_accepts_only_hard_labels(soft: tuple[Any, Any]) -> None:
    x, y = soft
    model = sc.calibrators.SoftCalibratedClassifier(KNeighborsClassifier(20), method="isotonic")
    assert model.fit(x, y > 0.5).predict_proba(x).shape == (300, 2)
    pipe = make_pipeline(StandardScaler(), KNeighborsClassifier(20))
    for estimator in (KNeighborsClassifier(20), pipe):
        with pytest.raises(sc.InputError, match="must take sample_weight to be trained"):
            sc.calibrators.SoftCalibratedClassifier(estimator).fit(x, y)


def test_invalid_classifier_arguments_are_refused(soft: tuple[Any, Any]) -> None:
    x, y = soft
    with pytest.raises(sc.InputError, match="method must be one of temperature, platt, beta"):
        sc.calibrators.SoftCalibratedClassifier(GaussianNB(), method="vector").fit(x, y)
    with pytest.raises(
        sc.InputError, match="temperature, vector, dirichlet for labels of one column per"
    ):
        sc.calibrators.SoftCalibratedClassifier(GaussianNB(), method="platt").fit(
            x, np.column_stack([1 - y, y])
        )
    for given in (x[:10], x[:10].tolist()):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            sc.calibrators.SoftCalibratedClassifier(GaussianNB()).fit(given, y)


@pytest.mark.filterwarnings("ignore")
def test_check_estimator_of_the_classifier() -> None:
    """The checks that fail pass class numbers above 1, -1, or names as y, not probabilities."""
    found = {
        each["check_name"]: each["status"]
        for each in check_estimator(
            sc.calibrators.SoftCalibratedClassifier(LogisticRegression()),
            on_skip=None,
            on_fail=None,
        )
    }
    passed = {name for name, status in found.items() if status == "passed"}
    assert passed >= {
        "check_estimator_cloneable", "check_estimator_tags_renamed", "check_valid_tag_types",
        "check_estimator_repr", "check_no_attributes_set_in_init", "check_estimators_unfitted",
        "check_do_not_raise_errors_in_init_or_set_params", "check_mixin_order",
        "check_get_params_invariance", "check_set_params",
    }  # fmt: skip


def test_every_method_helps_on_lidc() -> None:
    d = lidc_malignancy()
    found = sc.calibrators.repair_preview(
        d["soft_malignant"], d["prob_rf_all"], n_votes=d["n_readers"], groups=d["patient"]
    )
    for trial in found.after:
        assert trial.brier < 0.85 * found.before.brier
        assert trial.smece.high < found.before.smece.low


SHARED = Path(os.environ.get("SOFTCAL_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.mark.skipif(
    not (SHARED / "cifar10h_vgg16").is_dir(), reason="shared/data/cifar10h_vgg16 is not here"
)
def test_votes_calibrate_cifar10h_better_than_majorities() -> None:
    """Fit on every other image; compute top-label SMECE on the rest, as docs/recalibration.md."""
    table = pq.read_table(SHARED / "cifar10h_vgg16" / "items.parquet")

    def columns(prefix: str) -> Any:
        names = [name for name in table.column_names if name.startswith(prefix)]
        found = np.column_stack([table[name].to_numpy() for name in names]).astype(float)
        return found / found.sum(axis=1, keepdims=True)

    p, y = columns("prob_"), columns("votes_")
    majority = np.eye(10)[y.argmax(axis=1)]
    old, new = np.arange(len(p)) % 2 == 0, np.arange(len(p)) % 2 == 1

    def top_label_smece(q: Any) -> float:
        top = (np.arange(len(q)), q.argmax(axis=1))
        return sc.smece(y[new][top], q[top])

    found = [top_label_smece(p[new])] + [
        top_label_smece(
            sc.calibrators.TemperatureCalibrator().fit(p[old], labels[old]).predict(p[new])
        )
        for labels in (y, majority)
    ]
    assert [round(each, 3) for each in found] == [0.068, 0.011, 0.035]
