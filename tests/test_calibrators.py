"""Calibrators as scikit-learn estimators, and compared with peers on 0/1 labels."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_expit, log_softmax, logit, softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV, _TemperatureScaling
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted, validate_data

import softcal as sc

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from betacal import BetaCalibration
    from netcal.binning import HistogramBinning
    from netcal.scaling import BetaCalibration as NetcalBeta
    from netcal.scaling import TemperatureScaling

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray

ALL = (
    sc.calibrators.TemperatureCalibrator, sc.calibrators.PlattCalibrator, sc.calibrators.BetaCalibrator, sc.calibrators.IsotonicCalibrator, sc.calibrators.HistogramCalibrator, sc.calibrators.VectorScalingCalibrator, sc.calibrators.DirichletCalibrator,
)  # fmt: skip


@pytest.fixture(scope="module")
def outcomes() -> tuple[FloatArray, FloatArray]:
    """Return (p, y) with 0/1 labels."""
    rng = np.random.default_rng(1)
    p = rng.random(2000)
    return p, (rng.random(2000) < expit(0.6 * logit(p) - 0.4)).astype(float)


@pytest.fixture(scope="module")
def class_outcomes() -> tuple[FloatArray, Any]:
    """Return (p, class numbers) of three classes."""
    rng = np.random.default_rng(2)
    p = rng.dirichlet([1, 1, 1], 2000)
    q = p**0.5 * [1, 2, 1]
    share = (q / q.sum(axis=1, keepdims=True)).cumsum(axis=1)
    return p, (rng.random((2000, 1)) > share).sum(axis=1)


# The estimator interface of scikit-learn


class Squashed:
    """Convert any numbers to probabilities, so that the checks of scikit-learn can run."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        x, y = validate_data(self, X, y)
        p, label = self.prepared(x), expit(y.astype(float) - 1)
        if p.ndim == 2:
            rest = np.repeat((1 - label)[:, None] / x.shape[1], x.shape[1], axis=1)
            label = np.column_stack([label, rest])
        super().fit(p, label, sample_weight)  # type: ignore[misc]
        return self

    def predict(self, X: Any) -> Any:  # noqa: N803
        check_is_fitted(self)
        return super().predict(self.prepared(validate_data(self, X, reset=False)))  # type: ignore[misc]

    def prepared(self, X: Any) -> Any:  # noqa: N803
        return expit(X[:, 0] / 10)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.one_d_array = False
        return tags


class OfClasses(Squashed):
    def prepared(self, X: Any) -> Any:  # noqa: N803
        p = expit(np.column_stack([np.zeros(len(X)), X / 10]))
        return p / p.sum(axis=1, keepdims=True)


class SquashedTemperature(Squashed, sc.calibrators.TemperatureCalibrator): ...


class SquashedPlatt(Squashed, sc.calibrators.PlattCalibrator): ...


class SquashedBeta(Squashed, sc.calibrators.BetaCalibrator): ...


class SquashedIsotonic(Squashed, sc.calibrators.IsotonicCalibrator): ...


class SquashedHistogram(Squashed, sc.calibrators.HistogramCalibrator): ...


class ClassesTemperature(OfClasses, sc.calibrators.TemperatureCalibrator): ...


class ClassesVectorScaling(OfClasses, sc.calibrators.VectorScalingCalibrator): ...


OTHER_WORDS = {
    "check_all_zero_sample_weights_error": "refused, with a message that scikit-learn does not expect",
}


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (SquashedTemperature(), {}),
        (SquashedPlatt(), {}),
        (SquashedBeta(), {}),
        (SquashedIsotonic(), {}),
        (SquashedHistogram(strategy="uniform"), {}),
        (ClassesTemperature(), {}),
        (ClassesVectorScaling(), {}),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_check_estimator_passes_on_probabilities(estimator: Any, expected: dict[str, str]) -> None:
    found = check_estimator(
        estimator, on_skip=None, on_fail=None, expected_failed_checks=OTHER_WORDS | expected
    )
    assert len(found) > 40
    assert [each["check_name"] for each in found if each["status"] == "failed"] == []


@pytest.mark.parametrize("kind", ALL)
def test_check_estimator_passes_checks_without_a_fit(kind: type[Any]) -> None:
    """The other checks pass values outside [0, 1] or rows that do not sum to 1."""
    found = {
        each["check_name"]: each["status"]
        for each in check_estimator(kind(), on_skip=None, on_fail=None)
    }
    passed = {name for name, status in found.items() if status == "passed"}
    assert passed >= {
        "check_estimator_cloneable", "check_estimator_tags_renamed", "check_valid_tag_types",
        "check_estimator_repr", "check_no_attributes_set_in_init", "check_estimators_unfitted",
        "check_do_not_raise_errors_in_init_or_set_params", "check_mixin_order",
        "check_parameters_default_constructible", "check_get_params_invariance", "check_set_params",
    }  # fmt: skip


def test_clone_and_parameters() -> None:
    assert clone(sc.calibrators.HistogramCalibrator(7, strategy="uniform")).get_params() == {
        "bins": 7,
        "strategy": "uniform",
    }
    assert sc.calibrators.PlattCalibrator().get_params() == {"logits": False}
    assert clone(sc.calibrators.PlattCalibrator(logits=True)).logits
    with pytest.raises(sc.InputError, match="strategy must be 'quantile' or 'uniform': got 'mass'"):
        sc.calibrators.HistogramCalibrator().set_params(strategy="mass").fit([0.5], [0.5])
    with pytest.raises(NotFittedError):
        sc.calibrators.IsotonicCalibrator().predict([0.5])
    with pytest.raises(NotFittedError):
        sc.calibrators.IsotonicCalibrator().to_dict()


def test_calibrator_works_in_a_pipeline_and_in_cross_validation(
    outcomes: tuple[FloatArray, FloatArray],
) -> None:
    p, y = outcomes
    pipe = make_pipeline(FunctionTransformer(expit), sc.calibrators.PlattCalibrator())
    fitted = pipe.fit(logit(p), y, plattcalibrator__sample_weight=np.ones_like(y))
    np.testing.assert_allclose(
        fitted.predict(logit(p)), sc.calibrators.PlattCalibrator().fit(p, y).predict(p), atol=1e-12
    )
    held_out = cross_val_predict(sc.calibrators.PlattCalibrator(), p, y, cv=3)
    assert sc.brier(y, held_out) < sc.brier(y, p)


@pytest.mark.parametrize(
    "as_column",
    [
        lambda v: v[:, None],
        lambda v: v[:, None].tolist(),
        lambda v: pd.DataFrame({"p": v}),
        lambda v: pl.DataFrame({"p": v}),
        lambda v: np.ma.masked_array(v[:, None]),
        lambda v: torch.tensor(v[:, None], requires_grad=True),
    ],
)
@pytest.mark.parametrize("kind", ALL[:5])
def test_column_vectors_are_accepted_as_one_column(
    kind: type[Any], as_column: Any, outcomes: tuple[FloatArray, FloatArray]
) -> None:
    p, y = outcomes
    expected = kind().fit(p, y).predict(p)
    fitted = kind().fit(as_column(p), as_column(y))
    np.testing.assert_array_equal(fitted.predict(as_column(p)), expected)
    again = sc.calibrators.load_calibrator(fitted.to_dict())
    np.testing.assert_array_equal(again.predict(as_column(p)), expected)


def test_column_vectors_keep_the_pandas_index_check(
    outcomes: tuple[FloatArray, FloatArray],
) -> None:
    p, y = (pd.DataFrame({"v": values}) for values in outcomes)
    with pytest.raises(sc.InputError, match="must have the same pandas index"):
        sc.calibrators.PlattCalibrator().fit(p, y[::-1])


def named(values: FloatArray, names: str, library: Any) -> Any:
    return library.DataFrame(dict(zip(names, values.T, strict=True)))


@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.parametrize("kind", ALL)
def test_columns_of_frames_must_be_those_of_the_fit(kind: type[Any], library: Any) -> None:
    rng = np.random.default_rng(3)
    classes = 2 in kind._map.dimensions
    p, y = (rng.dirichlet([1, 1, 1] if classes else [1, 1], 50)[:, not classes :] for _ in "py")
    names = "enc"[: p.shape[1]]
    fitted = kind().fit(named(p, names, library), y)
    assert fitted.feature_names_in_.tolist() == list(names)
    loaded = kind.from_dict(fitted.to_dict())
    plain = sc.calibrators.load_calibrator(fitted.to_dict())
    expected = kind().fit(p, y).predict(p)
    for each in (fitted, loaded, plain):
        assert each.predict(named(p, names, library)).tolist() == expected.tolist()
        others = named(p, "xyz"[: p.shape[1]], library)
        with pytest.raises(sc.InputError, match=r"(?s)names should match.*unseen|the fit had 'e'"):
            each.predict(others)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        fitted.predict(p)
    assert plain.predict(p).tolist() == expected.tolist()
    if classes:
        turned = named(p[:, [2, 0, 1]], "cen", library)
        for each in (fitted, loaded):
            with pytest.raises(
                sc.InputError, match="must be in the same order as they were in fit"
            ):
                each.predict(turned)
        order = "has 'c', 'e', 'n', the fit had 'e', 'n', 'c'. Select the columns by name"
        with pytest.raises(sc.InputError, match=order):
            plain.predict(turned)
        with pytest.raises(
            sc.InputError, match="classes in the same order: y_true starts with 'c'"
        ):
            kind().fit(named(p, names, library), named(y, "cen", library))


def test_other_names_of_frames_are_handled_as_scikit_learn_does() -> None:
    p, y = np.array([0.2, 0.5, 0.9]), np.array([0.3, 0.5, 0.7])
    platt = sc.calibrators.PlattCalibrator()
    numbered = pd.DataFrame({0: p})
    assert not hasattr(platt.fit(numbered, y), "feature_names_in_")
    assert "columns" not in platt.to_dict()
    plain = sc.calibrators.load_calibrator(platt.fit(pd.DataFrame({"a": p}), y).to_dict())
    assert plain.predict(numbered).tolist() == plain.predict(pd.Series(p, name="b")).tolist()
    with pytest.raises(sc.InputTypeError, match="only supported if all input features have string"):
        sc.calibrators.VectorScalingCalibrator().fit(
            pd.DataFrame({"a": p, 1: 1 - p}), np.column_stack([y, 1 - y])
        )


@pytest.mark.parametrize(
    "names",
    [
        {"columns": ["a", "a", "b"]}, {"columns": []}, {"columns": "abc"}, {"columns": [1, 2, 3]},
        {"columns": ["a", "b"]}, {"classes": ["a", "b"]},
        {"columns": ["a", "b", "c"], "classes": ["a", "b"]},
        {"columns": ["a"], "classes": ["a", "b"]},
    ],
)  # fmt: skip
def test_saved_names_that_no_fit_has_are_refused(names: dict[str, Any]) -> None:
    p = np.random.default_rng(0).dirichlet([1, 1, 1], 20)
    saved = sc.calibrators.VectorScalingCalibrator().fit(p, p).to_dict()
    assert sc.calibrators.load_calibrator({**saved, "columns": None}).columns is None
    lists = {"columns": ["lists"], "classes": ["a", "b", "c"]}
    of_lists = sc.calibrators.load_calibrator({**saved, **lists})
    assert of_lists.predict(pd.DataFrame(p, columns=["a", "b", "c"])).shape == p.shape
    with pytest.raises(sc.InputError, match="the fit had 'a', 'b', 'c'"):
        of_lists.predict(pd.DataFrame(p, columns=["b", "a", "c"]))
    with pytest.raises(sc.InputError, match=r"a saved calibrator's (columns|classes)"):
        sc.calibrators.load_calibrator({**saved, **names})


def test_one_column_is_refused_by_calibrators_of_classes() -> None:
    with pytest.raises(sc.InputError, match="vector calibration takes one column per class"):
        sc.calibrators.VectorScalingCalibrator().fit([[0.5], [0.4]], [[0.5], [0.4]])


def test_weights_are_routed(outcomes: tuple[FloatArray, FloatArray]) -> None:
    from sklearn import config_context

    p, y = outcomes
    with config_context(enable_metadata_routing=True):
        pipe = make_pipeline(sc.calibrators.PlattCalibrator().set_fit_request(sample_weight=True))
        routed = pipe.fit(p, y, sample_weight=p)
    assert routed[-1].slope_ == sc.calibrators.PlattCalibrator().fit(p, y, p).slope_


def test_maps_and_saved_calibrators_need_no_scikit_learn() -> None:
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import softcal as sc\n"
        "found = sc.calibrators.repair_preview([0.1, 0.2, 0.8, 0.9] * 5, [0.3, 0.4, 0.6, 0.7] * 5)\n"
        "from softcal.calibrators.preview import fit_map\n"
        "saved = fit_map('platt', [0.1, 0.9], [0.3, 0.7]).to_dict()\n"
        "assert sc.calibrators.load_calibrator(saved).predict([0.3]).round(4) == 0.1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603


# Peers, on 0/1 labels


def test_isotonic_equals_scikit_learn(outcomes: tuple[FloatArray, FloatArray]) -> None:
    p, y = outcomes
    p = p.round(2)  # many ties
    grid = np.linspace(0, 1, 1001)
    for weight in (None, np.arange(y.size) % 5):
        theirs = IsotonicRegression(out_of_bounds="clip").fit(p, y, weight).predict(grid)
        np.testing.assert_allclose(
            sc.calibrators.IsotonicCalibrator().fit(p, y, weight).predict(grid), theirs, atol=1e-14
        )


def test_platt_equals_logistic_regression_on_the_logit(
    outcomes: tuple[FloatArray, FloatArray],
) -> None:
    p, y = outcomes
    weight = np.arange(y.size) % 5
    theirs = LogisticRegression(C=np.inf, tol=1e-12, max_iter=1000).fit(
        logit(p)[:, None], y, weight
    )
    ours = sc.calibrators.PlattCalibrator().fit(p, y, weight)
    assert ours.slope_ == pytest.approx(theirs.coef_.item(), abs=1e-6)
    assert ours.intercept_ == pytest.approx(theirs.intercept_.item(), abs=1e-6)


@pytest.mark.parametrize("many", [False, True])
def test_temperature_equals_scikit_learn_and_netcal(
    outcomes: tuple[FloatArray, FloatArray],
    class_outcomes: tuple[FloatArray, Any],
    many: bool,  # noqa: FBT001
) -> None:
    p, y = class_outcomes if many else outcomes
    given = p if many else np.column_stack([1 - p, p])
    classifier = FrozenEstimator(_Fixed().fit(given, y))
    theirs = CalibratedClassifierCV(classifier, method="temperature", ensemble=False).fit(given, y)
    ours = sc.calibrators.TemperatureCalibrator().fit(p, np.eye(3)[y] if many else y)
    mapped = ours.predict(p)
    reached = theirs.predict_proba(given) if many else theirs.predict_proba(given)[:, 1]
    np.testing.assert_allclose(mapped, reached, atol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        netcal = TemperatureScaling().fit(p, y.astype(int)).transform(p)
    np.testing.assert_allclose(mapped, netcal, atol=1e-5)


class _Fixed(LogisticRegression):  # type: ignore[misc]
    """A classifier that returns its input."""

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        return X

    def decision_function(self, X: Any) -> Any:  # noqa: N803
        return np.log(X) if X.shape[1] > 2 else logit(X[:, 1])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_classes", [1, 2, 10, 100])
@pytest.mark.parametrize("factor", [0.2, 1.0, 6.0, 30.0])
def test_temperature_of_logits_minimizes_the_cross_entropy(
    factor: float, n_classes: int, dtype: Any
) -> None:
    rng = np.random.default_rng(3)
    true = 2 * rng.normal(size=(1000, n_classes)).squeeze()
    z = (factor * true).astype(dtype)
    exact = z.astype(np.float64)  # the same numbers in float64
    if n_classes == 1:
        y = (rng.random(1000) < expit(true)).astype(float)
        ours = sc.calibrators.TemperatureCalibrator(logits=True).fit(z, y)

        def loss(slope: float) -> float:
            losses = y * log_expit(slope * exact) + (1 - y) * log_expit(-slope * exact)
            return -float(losses.mean())

    else:
        number = (rng.random((1000, 1)) > softmax(true, axis=1).cumsum(axis=1)).sum(axis=1)
        y = np.eye(n_classes)[number.clip(max=n_classes - 1)]
        ours = sc.calibrators.TemperatureCalibrator(logits=True).fit(z, y)

        def loss(slope: float) -> float:
            return -float((y * log_softmax(slope * exact, axis=1)).sum(axis=1).mean())

        if n_classes > 2:
            theirs = _TemperatureScaling().fit(exact, y.argmax(axis=1))
            assert ours.temperature_ == pytest.approx(1 / float(theirs.beta_), rel=1e-6)
    # The location of a minimum is accurate to about the square root of the precision of values.
    found = minimize_scalar(
        lambda t: loss(np.exp(t)), bounds=(-6, 4), method="bounded", options={"xatol": 1e-12}
    )
    assert ours.temperature_ == pytest.approx(np.exp(-found.x), rel=1e-6)


@pytest.mark.parametrize("factor", [0.2, 6.0, 10.0])
def test_temperature_of_probabilities_equals_that_of_their_logits(factor: float) -> None:
    """Small probabilities, such as 2**-24, are not clipped."""
    rng = np.random.default_rng(4)
    true = 1.5 * rng.normal(size=(1000, 10))
    z, y = factor * true, softmax(true, axis=1)
    of_logits = sc.calibrators.TemperatureCalibrator(logits=True).fit(z, y).temperature_
    assert of_logits == pytest.approx(factor, rel=1e-6)
    assert softmax(z, axis=1).min() > 0
    found = sc.calibrators.TemperatureCalibrator().fit(softmax(z, axis=1), y).temperature_
    assert found == pytest.approx(of_logits, rel=1e-9)
    one = true[:, 0].clip(max=3)
    assert expit(factor * one).max() < 1
    found = sc.calibrators.TemperatureCalibrator().fit(expit(factor * one), expit(one)).temperature_
    assert found == pytest.approx(factor, rel=1e-6)


def test_logits_keep_information_that_probabilities_of_0_lose() -> None:
    rng = np.random.default_rng(5)
    true = 6 * rng.normal(size=(500, 100))
    z, y = 30 * true, softmax(true, axis=1)
    assert (softmax(z, axis=1) == 0).any()
    assert sc.calibrators.TemperatureCalibrator(logits=True).fit(
        z, y
    ).temperature_ == pytest.approx(30, rel=1e-6)


def test_beta_equals_betacal_and_netcal(outcomes: tuple[FloatArray, FloatArray]) -> None:
    p, y = outcomes
    ours = sc.calibrators.BetaCalibrator().fit(p, y).predict(p)
    np.testing.assert_allclose(ours, BetaCalibration("abm").fit(p, y).predict(p), atol=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        netcal = NetcalBeta().fit(p, y.astype(int)).transform(p)
    np.testing.assert_allclose(ours, netcal, atol=1e-4)


def test_histogram_equals_netcal(outcomes: tuple[FloatArray, FloatArray]) -> None:
    p, y = outcomes
    netcal = HistogramBinning(10).fit(p, y.astype(int)).transform(p)
    ours = sc.calibrators.HistogramCalibrator(10, strategy="uniform").fit(p, y).predict(p)
    np.testing.assert_allclose(ours, netcal, atol=1e-12)


def test_dirichlet_equals_multinomial_regression_on_the_logarithms(
    class_outcomes: tuple[FloatArray, Any],
) -> None:
    p, y = class_outcomes
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=5000).fit(np.log(p), y)
    ours = sc.calibrators.DirichletCalibrator().fit(p, np.eye(3)[y])
    np.testing.assert_allclose(ours.predict(p), theirs.predict_proba(np.log(p)), atol=1e-5)


def test_fitting_probabilities_as_logits_gives_a_warning() -> None:
    p, y = [0.2, 0.5, 0.8], [0.25, 0.5, 0.75]
    with pytest.warns(
        sc.SoftcalWarning, match="every value of y_prob is in .0, 1.: leave out logits=True"
    ):
        sc.calibrators.PlattCalibrator(logits=True).fit(p, y)
