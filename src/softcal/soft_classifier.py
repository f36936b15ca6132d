"""Any scikit-learn classifier trained on soft labels, which scikit-learn itself refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from softcal import inputs

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
        One whose `fit` takes `sample_weight`, with `predict_proba` to be scored. Not a pipeline:
        put this in the pipeline as its last step.

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
        row, class_ = np.nonzero(halves)
        self.estimator_ = clone(self.estimator).fit(
            take_rows(X, row), class_, sample_weight=halves[row, class_]
        )
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


def _weights(sample_weight: npt.ArrayLike, size: int) -> inputs.FloatArray:
    rows = inputs.rows(np.zeros(size), np.zeros(size), sample_weight)
    weight = inputs.as_float64(np.asarray(rows.sample_weight))
    if not inputs.all_valid(np.zeros(1), np.zeros(1), weight):
        inputs.refuse(rows)
    return weight
