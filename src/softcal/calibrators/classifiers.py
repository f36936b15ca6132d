"""Classifiers for soft labels, with the interface of scikit-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils import check_consistent_length, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from softcal._validation import inputs
from softcal._validation.arrays import column, column_names, listed
from softcal._validation.inputs import Names
from softcal.calibrators.base import fitting_data, predictions
from softcal.calibrators.estimators import check_names
from softcal.calibrators.maps import MAPS
from softcal.calibrators.preview import split_folds
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from softcal._validation.inputs import FloatArray
    from softcal.calibrators.base import CalibrationMap


class SoftLabelClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Train a binary scikit-learn classifier on labels that are probabilities.

    The classifiers of scikit-learn refuse such labels. For a weighted loss, a row with label y is
    equivalent to two rows: one of class 1 with weight y, and one of class 0 with weight 1 - y,

    \[ \ell(y, p) = y \, \ell(1, p) + (1 - y) \, \ell(0, p) . \]

    The classifier is trained on these rows, so the log loss becomes soft cross-entropy. Rows of
    weight 0 are omitted: with labels of 0 and 1 the result equals the original classifier.

    `cross_val_score` and `GridSearchCV` then work with soft labels and the scorer
    `make_scorer(softcal.smece, response_method="predict_proba", greater_is_better=False)`.

    Parameters
    ----------
    estimator : scikit-learn classifier
        A classifier whose `fit` accepts `sample_weight`. Scoring needs `predict_proba`. In a
        pipeline the last step receives the weights; the other steps see each row twice.

    Attributes
    ----------
    estimator_ : scikit-learn classifier
        The fitted copy.
    classes_ : ndarray
        The classes 0 and 1: `predict_proba(X)[:, 1]` is the predicted probability.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0]], [0.25, 0.5, 0.75]
    >>> model = SoftLabelClassifier(LogisticRegression(C=1e6)).fit(X, y)
    >>> model.predict_proba(X)[:, 1].round(3)
    array([0.25, 0.5 , 0.75])
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(
        self,
        X: Any,  # noqa: N803
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
    ) -> SoftLabelClassifier:
        """Fit a copy of the classifier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The features, in any form that the classifier accepts.
        y : array-like of shape (n_samples,)
            Labels in [0, 1].
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights.

        Returns
        -------
        self : SoftLabelClassifier
            The fitted classifier.
        """
        check_consistent_length(X, y)
        label = inputs.as_float64(inputs.probabilities(y, "y"))
        weight = (
            np.ones(label.size) if sample_weight is None else _weights(sample_weight, label.size)
        )
        # Both halves of a row are adjacent, so that the order of the rows is kept.
        halves = np.stack((weight * (1 - label), weight * label), axis=1)
        self.estimator_ = trained_on_shares(self.estimator, X, halves)
        self.classes_ = self.estimator_.classes_
        check_names(self, X, reset=True)
        return self

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """Return the probabilities of class 0 and class 1, one column each.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The features.
        """
        check_is_fitted(self)
        check_names(self, X, reset=False)
        return self.estimator_.predict_proba(X)

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Return the more probable class, 0 or 1.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The features.
        """
        check_is_fitted(self)
        check_names(self, X, reset=False)
        return self.estimator_.predict(X)


def trained_on_shares(
    estimator: Any,
    X: Any,  # noqa: N803
    shares: inputs.FloatArray,
    which: str = "these rows",
    remedy: str = "Add rows of another class.",
) -> Any:
    """Fit a copy of a classifier to one copy of each row per class, weighted by its share.

    `which` names the rows, and `remedy` ends the message if all are of one class.

    Raises
    ------
    InputError
        If the classifier does not accept weights and they are not all 1, or if it refuses rows of
        a single class.
    """
    row, class_ = np.nonzero(shares)
    weight = shares[row, class_]
    name = _weight_name(estimator)
    if name is None and not (weight == 1).all():
        message = (
            f"{type(estimator).__name__} must take sample_weight to be trained on soft labels: its "
            "fit does not. Use a classifier that does, or train it on hard labels."
        )
        raise InputError(message)
    weights = {} if name is None else {name: weight}
    try:
        return clone(estimator).fit(take_rows(X, row), class_, **weights)
    except ValueError as error:
        seen = np.unique(class_).tolist()
        if len(seen) > 1:
            raise
        message = (
            f"{type(estimator).__name__} must be trained on labels of two or more classes: the "
            f"classes of {which} are {seen}. {remedy}"
        )
        raise InputError(message) from error


def _weight_name(estimator: Any) -> str | None:
    """Return the name of the weight argument; a pipeline passes it to its last step by name."""
    if isinstance(estimator, Pipeline):
        step, last = estimator.steps[-1]
        name = _weight_name(last)
        return None if name is None else f"{step}__{name}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def _weights(sample_weight: npt.ArrayLike, size: int) -> inputs.FloatArray:
    rows = inputs.rows(np.zeros(size), np.zeros(size), sample_weight)
    weight = inputs.as_float64(np.asarray(rows.sample_weight))
    if not inputs.all_valid(np.zeros(1), np.zeros(1), weight):
        inputs.refuse(rows)
    return weight


class SoftCalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Train a classifier on soft labels, and calibrate it on out-of-fold predictions.

    The classifier is trained as in `SoftLabelClassifier`, on any number of classes: each row is
    repeated per class, weighted by the label's share of that class. The calibration map is fitted
    to out-of-fold predictions and the soft labels. The classifier is then trained on all rows.

    Parameters
    ----------
    estimator : classifier
        A classifier with `predict_proba`, whose `fit` accepts `sample_weight` unless all labels are
        0 or 1. A fitted classifier in scikit-learn's `FrozenEstimator` is only calibrated. Pass
        rows on which it was not trained.
    method : str, default="temperature"
        temperature, platt, beta, histogram, or isotonic for one column of labels; temperature,
        vector, or dirichlet for one column per class.
    cv : int, default=5
        The number of folds.
    random_state : int, default=0
        Assigns rows to folds; the same number gives the same folds.

    Attributes
    ----------
    estimator_ : classifier
        The classifier fitted on all rows.
    calibrator_ : CalibrationMap
        The fitted map. `softcal.calibrators.load_calibrator` reads its `to_dict()`.
    classes_ : ndarray
        The classes of a frozen estimator; otherwise 0, 1, ... in the order of the label columns.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = [[0.0], [1.0], [2.0], [3.0]] * 5
    >>> y = [0.1, 0.4, 0.6, 0.9] * 5
    >>> model = SoftCalibratedClassifier(LogisticRegression()).fit(X, y)
    >>> model.predict_proba([[0.0], [3.0]])[:, 1].round(1)
    array([0.1, 0.9])
    """

    def __init__(
        self,
        estimator: Any,
        *,
        method: str = "temperature",
        cv: int = 5,
        random_state: int | None = 0,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Self:  # noqa: N803
        """Fit the classifier and the calibration map.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The features, in any form that the classifier accepts.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Soft labels: the probability of the second class, or of each class.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights.

        Returns
        -------
        self : SoftCalibratedClassifier
            The fitted classifier.
        """
        labels = predictions(y, "y")
        method = _method(self.method, labels)
        names = Names(y_true="y", y_prob="y")
        fitting_data(labels, labels, sample_weight, names)  # validates weights before training
        check_consistent_length(X, labels)
        self._labels_are_classes = labels.ndim == 2
        shares = labels if labels.ndim == 2 else np.column_stack([1 - labels, labels])
        if sample_weight is not None:
            weight = inputs.as_float64(column(sample_weight, "sample_weight"))
            shares = shares * weight[:, None]
        if isinstance(self.estimator, FrozenEstimator):
            self.estimator_, self.classes_ = self.estimator, np.asarray(self.estimator.classes_)
            _refuse_other_classes(self.classes_, shares.shape[1], column_names(y))
            before = self._uncalibrated(self.estimator_, X)
        else:
            self.classes_ = np.arange(shares.shape[1])
            before = self._out_of_fold(X, shares)
            self.estimator_ = trained_on_shares(self.estimator, X, shares)
        self.calibrator_: CalibrationMap = method.fit(fitting_data(before, labels, sample_weight))
        check_names(self, X, reset=True)
        return self

    def predict_proba(self, X: Any) -> FloatArray:  # noqa: N803
        """Return calibrated class probabilities, of shape (n_samples, n_classes).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The features.
        """
        check_is_fitted(self)
        check_names(self, X, reset=False)
        q = self.calibrator_.predict(self._uncalibrated(self.estimator_, X))
        return q if q.ndim == 2 else np.column_stack([1 - q, q])

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: N803
        """Return the most likely class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The features.
        """
        check_is_fitted(self)
        classes: npt.NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return classes

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags

    def _out_of_fold(self, X: Any, shares: FloatArray) -> FloatArray:  # noqa: N803
        n, n_classes = shares.shape
        found = np.empty((n, n_classes) if self._labels_are_classes else n)
        dealt = split_folds(n, self.cv, self.random_state)
        for number, (fit_on, held_out) in enumerate(dealt, 1):
            model = trained_on_shares(
                self.estimator,
                take_rows(X, fit_on),
                shares[fit_on],
                f"the rows outside fold {number} of {self.cv}",
                "Add rows of another class, or try another cv or random_state.",
            )
            found[held_out] = self._uncalibrated(model, take_rows(X, held_out))
        return found

    def _uncalibrated(self, model: Any, X: Any) -> FloatArray:  # noqa: N803
        """Return the predictions of a classifier, with 0 for a class it has not seen."""
        found = model.predict_proba(X)
        p = np.zeros((found.shape[0], self.classes_.size))
        p[:, (self.classes_[:, None] == model.classes_).argmax(axis=0)] = found
        return p if self._labels_are_classes else p[:, 1]


def _method(name: str, labels: FloatArray) -> type[CalibrationMap]:
    known = [method for method, map_ in MAPS.items() if labels.ndim in map_.dimensions]
    if name not in known:
        shape = "one column per class" if labels.ndim == 2 else "one column"
        message = (
            f"method must be one of {', '.join(known)} for labels of {shape}: got {name!r:.60}."
        )
        raise InputError(message)
    return MAPS[name]


def _refuse_other_classes(
    classes: npt.NDArray[Any], n_labels: int, names: list[Any] | None
) -> None:
    if classes.size != n_labels:
        message = (
            f"y must have one column per class of the frozen estimator, which has {classes.size}: "
            f"y has {n_labels} classes."
        )
        raise InputError(message)
    own = classes.tolist()
    if names is not None and set(names) == set(own) and names != own:
        message = (
            "the columns of y must be in the order of the classes of the frozen estimator: y has "
            f"{listed(names)}, the estimator has {listed(own)}. Reorder the columns of y."
        )
        raise InputError(message)
