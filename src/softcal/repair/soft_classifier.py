"""Any scikit-learn classifier trained on soft labels, which scikit-learn itself refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from softcal.door import inputs
from softcal.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt


class SoftLabelClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Train a binary scikit-learn classifier on labels that are probabilities.

    scikit-learn's classifiers refuse such labels. A row with label y is the same to a weighted loss
    as that row twice: once with class 1 and weight y, once with class 0 and weight 1 - y,

    \[ \ell(y, p) = y \, \ell(1, p) + (1 - y) \, \ell(0, p) , \]

    and that is what the classifier is given; so log loss becomes soft cross-entropy. Rows of weight
    0 are left out: with labels 0 and 1 it is the classifier itself.

    With it, `cross_val_score` and `GridSearchCV` work with soft labels, scored by
    `make_scorer(softcal.smece, response_method="predict_proba", greater_is_better=False)`.

    Parameters
    ----------
    estimator : scikit-learn classifier
        One whose `fit` takes `sample_weight`, with `predict_proba` to be scored. Of a pipeline the
        last step gets the weights; the others see both halves of every row.

    Attributes
    ----------
    estimator_ : scikit-learn classifier
        The fitted copy.
    classes_ : ndarray
        0 and 1: `predict_proba(X)[:, 1]` is the predicted probability.

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
        X : array-like of shape (n, features)
            As the classifier takes it.
        y : array-like of shape (n,)
            Labels in [0, 1].
        sample_weight : array-like of shape (n,), optional
            Non-negative weights.

        Returns
        -------
        SoftLabelClassifier
            Itself.
        """
        check_consistent_length(X, y)
        label = inputs.as_float64(inputs.probabilities(y, "y"))
        weight = (
            np.ones(label.size) if sample_weight is None else _weights(sample_weight, label.size)
        )
        # Both halves of a row stand side by side, so that the order of the rows stays theirs.
        halves = np.stack((weight * (1 - label), weight * label), axis=1)
        self.estimator_ = trained_on_shares(self.estimator, X, halves)
        self.classes_ = self.estimator_.classes_
        return self

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """Give the probability of class 0 and of class 1, one column each."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Give the class the classifier holds more probable, 0 or 1."""
        check_is_fitted(self)
        return self.estimator_.predict(X)


def trained_on_shares(
    estimator: Any,
    X: Any,  # noqa: N803
    shares: inputs.FloatArray,
    which: str = "these rows",
    remedy: str = "Add rows of another.",
) -> Any:
    """Fit a copy of a classifier to rows that enter once per class, weighted by its share of them.

    Which rows they are, and what to do when all are of one class, is for the message.

    Raises
    ------
    InputError
        If the classifier takes no weights, and they are not all 1; or if it refuses labels of one
        class only, and there are no others.
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
            f"{type(estimator).__name__} must be trained on labels of two classes or more: of "
            f"{which} they are {seen}. {remedy}"
        )
        raise InputError(message) from error


def _weight_name(estimator: Any) -> str | None:
    """Find what the weights are called; a pipeline passes them to its last step by name."""
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
