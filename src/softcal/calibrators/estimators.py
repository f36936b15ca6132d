"""Calibrators as scikit-learn estimators: `fit(y_prob, y_true)`, `predict(y_prob)`.

Thin: the numbers come from the maps of `softcal.calibrators`, which needs no scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

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
from softcal.exceptions import InputError

if TYPE_CHECKING:
    import numpy.typing as npt
    from sklearn.utils import Tags

    from softcal._validation.inputs import FloatArray
    from softcal.calibrators.base import CalibrationMap, Data


class _Calibrator(BaseEstimator):  # type: ignore[misc]
    """What all calibrators have in common."""

    # In scikit-learn's words y_prob is X and y_true is y, which are passed by position.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"y_true": UNUSED}

    _map: ClassVar[type[CalibrationMap]]

    map_: CalibrationMap
    """The fitted map, which needs no scikit-learn."""

    logits: bool = False

    def fit(
        self,
        y_prob: npt.ArrayLike,
        y_true: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Fit to predictions and the soft labels they should have had.

        Parameters
        ----------
        y_prob, y_true : array-like of shape (n,) or (n, n_classes)
            Predictions the model made for rows it was not trained on, or their logits, and labels
            in [0, 1].
        sample_weight : array-like of shape (n,), optional
            A weight of k is the row k times, a weight of 0 its absence.
        """
        data = fitting_data(y_prob, y_true, sample_weight, logits=self.logits)
        self._map.refuse_other_dimensions(data.p)
        self.map_ = self._fitted(data)
        return self

    def _fitted(self, data: Data) -> CalibrationMap:
        return self._map.fit(data)

    def predict(self, y_prob: npt.ArrayLike) -> FloatArray:
        """Return calibrated probabilities, in the shape of the predictions, or logits, given."""
        check_is_fitted(self)
        return self.map_.predict(y_prob)

    def to_dict(self) -> dict[str, Any]:
        """Return what was fitted as plain data, ready for JSON."""
        check_is_fitted(self)
        return self.map_.to_dict()

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Self:
        """Read a fitted calibrator of this kind back from what `to_dict` gave."""
        found = load_calibrator(saved)
        if not isinstance(found, cls._map):
            message = (
                f"this is a saved {found.method} calibrator, not {cls._map.method}: read it with "
                "softcal.calibrators.load_calibrator."
            )
            raise InputError(message)
        calibrator = cls()
        calibrator.map_ = found
        return calibrator

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.one_d_array = 1 in self._map.dimensions
        return tags


class _LogCalibrator(_Calibrator):
    """What calibrators that work on logarithms have in common: they take logits as well."""

    def __init__(self, *, logits: bool = False) -> None:
        self.logits = logits

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Self:
        """Read a fitted calibrator of this kind back from what `to_dict` gave."""
        calibrator = super().from_dict(saved)
        calibrator.logits = calibrator.map_.takes_logits
        return calibrator


class TemperatureCalibrator(_LogCalibrator):
    r"""Temperature scaling: one number makes predictions more or less extreme.

    \[ q = \sigma(\mathrm{logit}(p) / T), \qquad q_k \propto p_k^{1/T} \text{ for classes} \]

    with the T > 0 (at most about 22,000) of lowest soft cross-entropy. Strictly rising: order and
    most likely class are kept, and different predictions stay different as far as float64 can
    tell the results apart.

    Parameters
    ----------
    logits : bool, default False
        Whether `y_prob` holds logits: log-odds for one column; for classes the logits themselves,
        of which softmax makes the probabilities. A network has them, and they keep what
        probabilities of exactly 0 and 1 have lost.

    Attributes
    ----------
    temperature_ : float
        T; above 1 the predictions were too extreme.

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
        """T."""
        return self.map_.temperature


class PlattCalibrator(_LogCalibrator):
    r"""Platt scaling on the logit: logistic calibration with a slope and an intercept.

    \[ q = \sigma(a \, \mathrm{logit}(p) + b), \qquad a \ge 0 \]

    The labels are used as they are, without Platt's smoothing of 0 and 1. Rising: order is kept.
    Where labels fall as predictions rise, a is 0 and every prediction becomes the mean label: a
    model that is upside down has to be turned by a person.

    Parameters
    ----------
    logits : bool, default False
        Whether `y_prob` holds log-odds instead of probabilities.

    Attributes
    ----------
    slope_, intercept_ : float
        a and b.

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
        """The factor of the logit."""
        return self.map_.slope

    @property
    def intercept_(self) -> float:
        """What is added to it."""
        return self.map_.intercept


class BetaCalibrator(_LogCalibrator):
    r"""Beta calibration (Kull et al. 2017): low and high predictions are stretched apart.

    \[ q = \sigma(a \log p - b \log(1 - p) + c), \qquad a, b \ge 0 \]

    a = b = 1, c = 0 changes nothing; a = b is Platt scaling. Rising: order is kept.

    Parameters
    ----------
    logits : bool, default False
        Whether `y_prob` holds log-odds instead of probabilities.

    Attributes
    ----------
    a_, b_, c_ : float
        As above.

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
        """The factor of log p."""
        return self.map_.a

    @property
    def b_(self) -> float:
        """The factor of -log(1 - p)."""
        return self.map_.b

    @property
    def c_(self) -> float:
        """What is added."""
        return self.map_.c


class IsotonicCalibrator(_Calibrator):
    r"""Isotonic regression: the rising curve nearest the labels in squared error.

    Between fitted points the curve is a straight line, outside them level. It never falls, but
    makes many different predictions equal, and it may say exactly 0 or 1, where one label that
    differs makes the log loss infinite.

    Attributes
    ----------
    x_, y_ : ndarray
        The points of the curve.

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
        """Predictions at which the curve bends."""
        return self.map_.x

    @property
    def y_(self) -> FloatArray:
        """Its height there."""
        return self.map_.y


class HistogramCalibrator(_Calibrator):
    """Histogram binning: every prediction becomes the mean label of its bin.

    Not rising: two neighboring bins may change places. A bin without rows, which only bins of
    equal width can be, gives its middle.

    Parameters
    ----------
    bins : int, default 10
        How many bins, at most.
    strategy : "quantile" or "uniform", default "quantile"
        Bins that hold the same number of rows, counted by weight, or of equal width.

    Attributes
    ----------
    edges_, values_ : ndarray
        The bins and what each predicts.

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
        """What each bin predicts."""
        return self.map_.values


class VectorScalingCalibrator(_LogCalibrator):
    r"""Vector scaling: a slope and an intercept for each class.

    \[ q = \mathrm{softmax}(a \circ \log p + b) \]

    The logarithms of the probabilities stand for the logits, of which they are one version. The
    most likely class may change.

    Parameters
    ----------
    logits : bool, default False
        Whether `y_prob` holds logits; log p is then their log-softmax.

    Attributes
    ----------
    slopes_, intercepts_ : ndarray of shape (n_classes,)
        a and b.

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
        """The factor of each class."""
        return self.map_.slopes

    @property
    def intercepts_(self) -> FloatArray:
        """What is added to each class."""
        return self.map_.intercepts


class DirichletCalibrator(_LogCalibrator):
    r"""Dirichlet calibration (Kull et al. 2019): a linear map of all log probabilities.

    \[ q = \mathrm{softmax}(W \log p + b) \]

    With C classes it has C (C + 1) numbers, so it needs many rows for many classes; it is not
    regularized. The most likely class may change.

    Parameters
    ----------
    logits : bool, default False
        Whether `y_prob` holds logits; log p is then their log-softmax.

    Attributes
    ----------
    matrix_ : ndarray of shape (n_classes, n_classes)
        W.
    intercepts_ : ndarray of shape (n_classes,)
        b.

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
        """The weights of each class's logarithm in each class."""
        return self.map_.matrix

    @property
    def intercepts_(self) -> FloatArray:
        """What is added to each class."""
        return self.map_.intercepts
