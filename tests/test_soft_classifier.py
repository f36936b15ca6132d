"""Train and score scikit-learn models on soft labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import softcal as sc

if TYPE_CHECKING:
    from collections.abc import Callable

    from softcal._validation.inputs import FloatArray

Data = tuple["FloatArray", "FloatArray"]


@pytest.fixture
def data(rng: np.random.Generator) -> Data:
    x = rng.normal(size=(300, 2))
    return x, 1 / (1 + np.exp(-x[:, 0] + 0.5 * x[:, 1] + rng.normal(size=300)))


def negative(metric: Callable[..., float]) -> Any:
    return make_scorer(metric, response_method="predict_proba", greater_is_better=False)


def test_soft_classifier_minimizes_soft_cross_entropy(data: Data) -> None:
    x, y = data

    def loss(beta: FloatArray) -> float:
        p = 1 / (1 + np.exp(-(beta[0] + x @ beta[1:])))
        return 300 * sc.log_loss(y, p) + 0.5 * float(beta[1:] @ beta[1:])

    best = minimize(loss, np.zeros(3), tol=1e-10)
    model = sc.calibrators.SoftLabelClassifier(LogisticRegression(tol=1e-10)).fit(x, y)
    found = np.append(model.estimator_.intercept_, model.estimator_.coef_)
    np.testing.assert_allclose(found, best.x, atol=1e-5)
    assert model.classes_.tolist() == [0, 1]
    np.testing.assert_array_equal(model.predict(x), model.predict_proba(x)[:, 1] > 0.5)


def test_soft_classifier_with_outcomes_equals_the_classifier(data: Data) -> None:
    x, y = data
    hard = (y > 0.5).astype(float)
    for plain in (
        LogisticRegression(),
        DecisionTreeClassifier(min_samples_leaf=20, random_state=0),
    ):
        ours = sc.calibrators.SoftLabelClassifier(plain).fit(x, hard).predict_proba(x)
        np.testing.assert_array_equal(ours, clone(plain).fit(x, hard).predict_proba(x))


def test_soft_classifier_weight_two_equals_two_rows_and_zero_none(data: Data) -> None:
    x, y = data
    w = np.arange(300) % 3
    model = sc.calibrators.SoftLabelClassifier(LogisticRegression(tol=1e-10))
    weighted = clone(model).fit(x, y, sample_weight=w).predict_proba(x)
    repeated = clone(model).fit(np.repeat(x, w, axis=0), np.repeat(y, w)).predict_proba(x)
    np.testing.assert_allclose(weighted, repeated, atol=1e-6)


def test_soft_classifier_accepts_frames_and_sparse_matrices(data: Data) -> None:
    x, y = data
    model = sc.calibrators.SoftLabelClassifier(LogisticRegression(tol=1e-10))
    plain = clone(model).fit(x, y).predict_proba(x)
    frame = pd.DataFrame(x, columns=["a", "b"], index=np.arange(300)[::-1])
    fitted = clone(model).fit(frame, pd.Series(y, index=frame.index))
    assert fitted.estimator_.feature_names_in_.tolist() == ["a", "b"]
    assert fitted.feature_names_in_.tolist() == ["a", "b"]
    for predict in (fitted.predict, fitted.predict_proba):
        with pytest.raises(sc.InputError, match="must be in the same order as they were in fit"):
            predict(frame[["b", "a"]])
    # The rounding of BLAS depends on the memory layout, which differs for frames.
    np.testing.assert_allclose(fitted.predict_proba(frame), plain, rtol=1e-12)
    sparse = clone(model).fit(csr_array(x), y).predict_proba(csr_array(x))
    np.testing.assert_allclose(sparse, plain, atol=1e-6)


def test_soft_classifier_refuses_invalid_input(data: Data) -> None:
    x, y = data
    model = sc.calibrators.SoftLabelClassifier(LogisticRegression())
    with pytest.raises(NotFittedError):
        model.predict_proba(x)
    with pytest.raises(NotFittedError):
        model.predict(x)
    with pytest.raises(sc.InputError, match=r"y must be in \[0, 1\]: 300 of 300"):
        model.fit(x, y + 2)
    with pytest.raises(sc.InputError, match="sample_weight must be 0 or more"):
        model.fit(x, y, sample_weight=-y)
    with pytest.raises(sc.InputError, match="sample_weight has 299"):
        model.fit(x, y, sample_weight=y[1:])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(x, y[1:])


def test_training_rows_of_one_class_are_reported() -> None:
    """A tree accepts rows of one class, and a logistic regression does not."""
    x, y = np.arange(10.0)[:, None], np.zeros(10)
    with pytest.raises(sc.InputError, match=r"of these rows are \[0\]. Add rows of another class"):
        sc.calibrators.SoftLabelClassifier(LogisticRegression()).fit(x, y)
    with pytest.raises(sc.InputError, match=r"of these rows are \[\]"):
        sc.calibrators.SoftLabelClassifier(LogisticRegression()).fit(x, y, sample_weight=y)
    y[3] = 1.0  # one row, so the other folds lack its class
    words = r"of the rows outside fold \d of 2 are \[0\]. .* try another cv or random_state"
    with pytest.raises(sc.InputError, match=words):
        sc.calibrators.SoftCalibratedClassifier(LogisticRegression(), cv=2).fit(x, y)
    found = sc.calibrators.SoftCalibratedClassifier(DecisionTreeClassifier(), cv=2).fit(x, y)
    assert found.predict_proba(x).shape == (10, 2)
    with pytest.raises(ValueError, match="NaN"):  # other errors of scikit-learn are unchanged
        sc.calibrators.SoftLabelClassifier(LogisticRegression()).fit(np.full((10, 1), np.nan), y)


@pytest.mark.parametrize("metric", [sc.smece, sc.brier, sc.log_loss])
def test_cross_val_score_takes_soft_labels(data: Data, metric: Callable[..., float]) -> None:
    x, y = data
    model = make_pipeline(
        StandardScaler(), sc.calibrators.SoftLabelClassifier(LogisticRegression())
    )
    ours = cross_val_score(model, x, y, scoring=negative(metric), error_score="raise")
    by_hand = [
        -metric(y[test], model.fit(x[train], y[train]).predict_proba(x[test])[:, 1])
        for train, test in KFold(5).split(x)
    ]
    np.testing.assert_array_equal(ours, by_hand)
    groups = np.arange(300) // 3
    grouped = cross_val_score(
        model, x, y, scoring=negative(metric), cv=GroupKFold(3), groups=groups, error_score="raise"
    )
    assert (grouped < 0).all()


def test_scikit_learn_refuses_soft_labels_without_the_wrapper(data: Data) -> None:
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        cross_val_score(
            LogisticRegression(), *data, scoring=negative(sc.smece), error_score="raise"
        )


def test_grid_search_with_several_scores(data: Data) -> None:
    x, y = data
    search = GridSearchCV(
        sc.calibrators.SoftLabelClassifier(LogisticRegression()),
        {"estimator__C": [1e-4, 1.0]},
        scoring={"smece": negative(sc.smece), "log_loss": negative(sc.log_loss)},
        refit="log_loss",
    ).fit(x, y)
    assert search.best_params_ == {"estimator__C": 1.0}
    assert (search.cv_results_["mean_test_smece"] < 0).all()


def test_weights_are_routed_to_fit_and_score(data: Data) -> None:
    x, y = data
    w = np.arange(300) % 3 + 1.0
    with sklearn.config_context(enable_metadata_routing=True):
        model = sc.calibrators.SoftLabelClassifier(LogisticRegression()).set_fit_request(
            sample_weight=True
        )
        score = negative(sc.smece).set_score_request(sample_weight=True)
        ours = cross_val_score(
            model, x, y, scoring=score, params={"sample_weight": w}, error_score="raise"
        )
    for value, (train, test) in zip(ours, KFold(5).split(x), strict=True):
        p = model.fit(x[train], y[train], w[train]).predict_proba(x[test])[:, 1]
        assert value == -sc.smece(y[test], p, sample_weight=w[test])


def test_regressor_within_the_unit_interval_needs_no_wrapper(data: Data) -> None:
    scorer = make_scorer(sc.smece, greater_is_better=False)
    forest = RandomForestRegressor(20, random_state=0)
    assert (cross_val_score(forest, *data, scoring=scorer, error_score="raise") < 0).all()
