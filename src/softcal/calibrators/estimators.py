"""Calibrators as scikit-learn estimators: `fit(y_prob, y_true)` and `predict(y_prob)`.

The estimators wrap the maps of `softcal.calibrators.maps`, which need no scikit-learn.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted, validate_data

from softcal._display import keyword
from softcal._validation import inputs
from softcal.bins import Bins
from softcal.calibrators.base import fitting_data
from softcal.calibrators.maps import (
    BetaMap,
    DirichletMap,
    HistogramMap,
    IsotonicMap,
    PlattMap,
    TemperatureMap,
    VectorScalingMap,
    equal_mass,
    load_calibrator,
)
from softcal.exceptions import InputError, InputTypeError, warn

if TYPE_CHECKING:
    import numpy.typing as npt
    from sklearn.utils import Tags

    from softcal._validation.inputs import FloatArray
    from softcal.calibrators.base import CalibrationMap, Data


def check_names(estimator: Any, X: Any, *, reset: bool) -> tuple[str, ...] | None:  # noqa: N803
    """Store or check `feature_names_in_` as scikit-learn does, and return these names."""
    try:
        validate_data(estimator, X, reset=reset, skip_check_array=True, ensure_2d=False)
    except (TypeError, ValueError) as error:
        kind = InputError if isinstance(error, ValueError) else InputTypeError
        raise kind(str(error)) from error
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else tuple(names)


class _Calibrator(BaseEstimator):  # type: ignore[misc]
    """Base class of all calibrators."""

    # For scikit-learn, y_prob is X and y_true is y, which are passed by position.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"y_true": UNUSED}

    _map: ClassVar[type[CalibrationMap]]

    map_: CalibrationMap
    """The fitted map. It needs no scikit-learn."""

    logits: bool = False

    def fit(
        self,
        y_prob: npt.ArrayLike,
        y_true: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Fit the calibrator to held-out predictions and their soft labels.

        Parameters
        ----------
        y_prob : array-like of shape (n_samples,), (n_samples, 1), or (n_samples, n_classes)
            Predictions, or logits, for rows the model was not trained on.
        y_true : array-like of shape (n_samples,), (n_samples, 1), or (n_samples, n_classes)
            Labels in [0, 1].
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights. A weight of k equals k copies of the row.

        Returns
        -------
        self : object
            The fitted calibrator.
        """
        data = fitting_data(y_prob, y_true, sample_weight, logits=self.logits)
        if self.logits and not inputs.has_outside(data.p):
            warn(inputs.unlikely_scale("y_prob", keyword("logits")))
        self._map.refuse_other_dimensions(data.p)
        self.map_ = replace(self._fitted(data), columns=check_names(self, y_prob, reset=True))
        return self

    def _fitted(self, data: Data) -> CalibrationMap:
        return self._map.fit(data)

    def predict(self, y_prob: npt.ArrayLike) -> FloatArray:
        """Return calibrated probabilities.

        Parameters
        ----------
        y_prob : array-like of shape (n_samples,), (n_samples, 1), or (n_samples, n_classes)
            Predictions, or logits if the calibrator was fitted on logits.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The calibrated probabilities. A single column gives shape (n_samples,).
        """
        check_is_fitted(self)
        check_names(self, y_prob, reset=False)
        return self.map_.predict(y_prob)

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted map as plain data, ready for JSON."""
        check_is_fitted(self)
        return self.map_.to_dict()

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Self:
        """Return the fitted calibrator of this class that `to_dict` saved.

        Parameters
        ----------
        saved : dict
            The return value of `to_dict`, possibly read from JSON.
        """
        found = load_calibrator(saved)
        if not isinstance(found, cls._map):
            message = (
                f"this is a saved {found.method} calibrator, not {cls._map.method}: read it with "
                "softcal.calibrators.load_calibrator."
            )
            raise InputError(message)
        calibrator = cls()
        calibrator.map_ = found
        if found.columns is not None:
            calibrator.feature_names_in_ = np.array(found.columns, dtype=object)
        return calibrator

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.one_d_array = 1 in self._map.dimensions
        return tags


class _LogCalibrator(_Calibrator):
    """Base class of calibrators of logarithms, which also accept logits."""

    def __init__(self, *, logits: bool = False) -> None:
        self.logits = logits

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Self:
        """Return the fitted calibrator of this class that `to_dict` saved.

        Parameters
        ----------
        saved : dict
            The return value of `to_dict`, possibly read from JSON.
        """
        calibrator = super().from_dict(saved)
        calibrator.logits = calibrator.map_.takes_logits
        return calibrator


class TemperatureCalibrator(_LogCalibrator):
    r"""Temperature scaling: one parameter makes predictions more or less extreme.

    \[ q = \sigma(\mathrm{logit}(p) / T), \qquad q_k \propto p_k^{1/T} \text{ for classes} \]

    The fit minimizes the soft cross-entropy over T > 0 (at most about 22,000). The map is strictly
    increasing: it keeps the order of predictions and the most likely class. Different predictions
    stay different, up to the precision of float64.

    Parameters
    ----------
    logits : bool, default=False
        Whether `y_prob` contains logits: log-odds for one column, or the input of a softmax for
        classes. Logits keep information that probabilities of exactly 0 and 1 have lost.

    Attributes
    ----------
    temperature_ : float
        T. It is above 1 if the predictions were too extreme.

    Examples
    --------
    >>> y_prob, y_true = [0.1, 0.5, 0.9], [0.25, 0.5, 0.75]
    >>> calibrator = TemperatureCalibrator().fit(y_prob, y_true)
    >>> round(calibrator.temperature_, 4)
    2.0
    >>> calibrator.predict([0.9]).round(4)
    array([0.75])
    >>> from_logits = TemperatureCalibrator(logits=True)
    >>> round(from_logits.fit([-2.0, 0.0, 2.0], [0.25, 0.5, 0.75]).temperature_, 4)
    1.8205
    """

    _map = TemperatureMap
    map_: TemperatureMap

    @property
    def temperature_(self) -> float:
        """The temperature T."""
        return self.map_.temperature


class PlattCalibrator(_LogCalibrator):
    r"""Platt scaling of the logit: logistic calibration with a slope and an intercept.

    \[ q = \sigma(a \, \mathrm{logit}(p) + b), \qquad a \ge 0 \]

    The fit minimizes the soft cross-entropy, without Platt's smoothing of labels of 0 and 1. The
    map is non-decreasing and never inverts a model. If labels decrease with the predictions, a is 0
    and every prediction becomes the mean label.

    Parameters
    ----------
    logits : bool, default=False
        Whether `y_prob` contains log-odds instead of probabilities.

    Attributes
    ----------
    slope_ : float
        The slope a.
    intercept_ : float
        The intercept b.

    Examples
    --------
    >>> calibrator = PlattCalibrator().fit([0.2, 0.5, 0.8], [0.5, 0.8, 16 / 17])
    >>> round(calibrator.slope_, 4), round(calibrator.intercept_, 4)
    (1.0, 1.3863)
    """

    _map = PlattMap
    map_: PlattMap

    @property
    def slope_(self) -> float:
        """The slope a."""
        return self.map_.slope

    @property
    def intercept_(self) -> float:
        """The intercept b."""
        return self.map_.intercept


class BetaCalibrator(_LogCalibrator):
    r"""Beta calibration (Kull et al. 2017): separate slopes for low and high predictions.

    \[ q = \sigma(a \log p - b \log(1 - p) + c), \qquad a, b \ge 0 \]

    The fit minimizes the soft cross-entropy. The map is the identity for a = b = 1 and c = 0, and
    Platt scaling for a = b. It is non-decreasing, so it keeps the order of predictions.

    Parameters
    ----------
    logits : bool, default=False
        Whether `y_prob` contains log-odds instead of probabilities.

    Attributes
    ----------
    a_ : float
        The coefficient of log p.
    b_ : float
        The coefficient of -log(1 - p).
    c_ : float
        The intercept.

    Examples
    --------
    >>> calibrator = BetaCalibrator().fit([0.2, 0.4, 0.6, 0.8], [0.04, 0.16, 0.36, 0.64])
    >>> calibrator.predict([0.4, 0.5]).round(2)
    array([0.16, 0.25])
    """

    _map = BetaMap
    map_: BetaMap

    @property
    def a_(self) -> float:
        """The coefficient of log p."""
        return self.map_.a

    @property
    def b_(self) -> float:
        """The coefficient of -log(1 - p)."""
        return self.map_.b

    @property
    def c_(self) -> float:
        """The intercept."""
        return self.map_.c


class IsotonicCalibrator(_Calibrator):
    r"""Isotonic regression: the non-decreasing curve with the lowest squared error.

    \[ \min_{f \text{ non-decreasing}} \sum_i w_i (f(p_i) - y_i)^2 \]

    The curve is linear between fitted points and constant outside them. It maps many different
    predictions to the same value. It may predict exactly 0 or 1, and one label that differs then
    makes the log loss infinite.

    Attributes
    ----------
    x_ : ndarray
        The predictions at which the slope of the curve changes.
    y_ : ndarray
        The values of the curve at these predictions.

    Examples
    --------
    >>> calibrator = IsotonicCalibrator().fit([0.2, 0.4, 0.6, 0.8], [0.1, 0.5, 0.3, 0.9])
    >>> calibrator.predict([0.2, 0.5, 0.7]).round(2)
    array([0.1 , 0.4 , 0.65])
    """

    _map = IsotonicMap
    map_: IsotonicMap

    @property
    def x_(self) -> FloatArray:
        """The predictions at which the slope of the curve changes."""
        return self.map_.x

    @property
    def y_(self) -> FloatArray:
        """The values of the curve at these predictions."""
        return self.map_.y


class HistogramCalibrator(_Calibrator):
    r"""Histogram binning: every prediction becomes the mean label of its bin.

    \[ q = \bar y_b \quad \text{for } p \in [e_b, e_{b+1}) \]

    The map is not monotone. A bin without rows, which only the strategy "uniform" can produce,
    predicts its midpoint.

    Parameters
    ----------
    bins : int, default=10
        The largest number of bins.
    strategy : {"quantile", "uniform"}, default="quantile"
        Whether bins have equal total weight, or equal width.

    Attributes
    ----------
    edges_ : ndarray
        The edges of the bins.
    values_ : ndarray
        The prediction of each bin.

    Examples
    --------
    >>> calibrator = HistogramCalibrator(bins=2).fit([0.2, 0.4, 0.6, 0.8], [0.1, 0.3, 0.5, 0.9])
    >>> calibrator.predict([0.25, 0.75]).round(2)
    array([0.2, 0.7])
    """

    _map = HistogramMap
    map_: HistogramMap

    def __init__(
        self, bins: int = 10, *, strategy: Literal["quantile", "uniform"] = "quantile"
    ) -> None:
        self.bins = bins
        self.strategy = strategy

    def _fitted(self, data: Data) -> CalibrationMap:
        if self.strategy not in ("quantile", "uniform"):
            message = f"strategy must be 'quantile' or 'uniform': got {self.strategy!r:.60}."
            raise InputError(message)
        uniform = self.strategy == "uniform"
        bins = Bins.uniform(self.bins) if uniform else equal_mass(data, self.bins)
        return HistogramMap.fit(data, bins)

    @property
    def edges_(self) -> FloatArray:
        """The edges of the bins."""
        return self.map_.edges

    @property
    def values_(self) -> FloatArray:
        """The prediction of each bin."""
        return self.map_.values


class VectorScalingCalibrator(_LogCalibrator):
    r"""Vector scaling: a slope and an intercept for each class.

    \[ q = \mathrm{softmax}(a \circ \log p + b) \]

    The fit minimizes the soft cross-entropy. The logarithms of the probabilities serve as logits.
    The most likely class may change.

    Parameters
    ----------
    logits : bool, default=False
        Whether `y_prob` contains logits; log p is then their log-softmax.

    Attributes
    ----------
    slopes_ : ndarray of shape (n_classes,)
        The slope a of each class.
    intercepts_ : ndarray of shape (n_classes,)
        The intercept b of each class.

    Examples
    --------
    >>> y_prob, y_true = [[0.5, 0.5], [0.8, 0.2]], [[0.5, 0.5], [0.7, 0.3]]
    >>> calibrator = VectorScalingCalibrator().fit(y_prob, y_true)
    >>> calibrator.predict([[0.8, 0.2]]).round(4)
    array([[0.7, 0.3]])
    """

    _map = VectorScalingMap
    map_: VectorScalingMap

    @property
    def slopes_(self) -> FloatArray:
        """The slope of each class."""
        return self.map_.slopes

    @property
    def intercepts_(self) -> FloatArray:
        """The intercept of each class."""
        return self.map_.intercepts


class DirichletCalibrator(_LogCalibrator):
    r"""Dirichlet calibration (Kull et al. 2019): a linear map of all log probabilities.

    \[ q = \mathrm{softmax}(W \log p + b) \]

    The fit minimizes the soft cross-entropy, without regularization. With C classes there are
    C (C + 1) parameters, so many classes need many rows. The most likely class may change.

    Parameters
    ----------
    logits : bool, default=False
        Whether `y_prob` contains logits; log p is then their log-softmax.

    Attributes
    ----------
    matrix_ : ndarray of shape (n_classes, n_classes)
        The matrix W.
    intercepts_ : ndarray of shape (n_classes,)
        The intercept b of each class.

    Examples
    --------
    >>> calibrator = DirichletCalibrator().fit([[0.5, 0.5], [0.8, 0.2]], [[0.5, 0.5], [0.7, 0.3]])
    >>> calibrator.predict([[0.8, 0.2]]).round(4)
    array([[0.7, 0.3]])
    """

    _map = DirichletMap
    map_: DirichletMap

    @property
    def matrix_(self) -> FloatArray:
        """The matrix W."""
        return self.map_.matrix

    @property
    def intercepts_(self) -> FloatArray:
        """The intercept of each class."""
        return self.map_.intercepts
