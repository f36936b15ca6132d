"""Maps without a formula: isotonic regression, and the mean label of bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from softcal._exact import means
from softcal.bins import Bins
from softcal.calibrators.base import CalibrationMap, refuse_unless, saved_numbers

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray
    from softcal.calibrators.base import Data

_TILT = 1e-15  # per prediction: more than rounding moves a mean label


@dataclass(frozen=True, eq=False)
class IsotonicMap(CalibrationMap):
    """Straight lines between points that rise; see `IsotonicCalibrator`."""

    method: ClassVar[str] = "isotonic"
    x: FloatArray
    y: FloatArray

    @classmethod
    def fit(cls, data: Data) -> Self:
        """Find the rising values nearest the labels in weighted squares (PAV)."""
        from scipy.optimize import isotonic_regression

        order = np.argsort(data.p)
        p, y, w = (column[order] for column in data[:3])
        new = np.append(True, p[1:] > p[:-1])
        group, p = np.cumsum(new) - 1, p[new]  # of equal predictions
        label, weight = means(group, y, w, p.size), np.bincount(group, w)
        # scipy rounds, so the labels are tilted: it may leave apart what belongs together, which
        # the loop below finds, and never joins what does not.
        blocks = isotonic_regression(label + _TILT * np.arange(p.size), weights=weight).blocks
        pool = np.repeat(np.arange(blocks.size - 1), np.diff(blocks))
        while True:
            values = means(pool[group], y, w, pool[-1] + 1)
            falls = values[1:] < values[:-1]
            if not falls.any():
                break
            pool = np.append(0, np.cumsum(~falls))[pool]
        values = values[pool]
        # A point between two of its own height changes no line.
        bend = np.ones(values.size, dtype=bool)
        bend[1:-1] = (values[1:-1] != values[:-2]) | (values[1:-1] != values[2:])
        return cls(p[bend], values[bend])

    def apply(self, p: FloatArray) -> FloatArray:
        """Interpolate; outside the fitted range, take the value at its end."""
        if self.x.size == 1:
            return np.full(p.shape, self.y[0])
        inside = np.clip(p, self.x[0], self.x[-1])
        left = np.minimum(self.x.searchsorted(inside, side="right"), self.x.size - 1) - 1
        # Unlike numpy.interp's, this share is in [0, 1] however close two points are.
        share = (inside - self.x[left]) / (self.x[left + 1] - self.x[left])
        low, high = self.y[left], self.y[left + 1]
        q: FloatArray = np.where(share < 1, np.minimum(low + share * (high - low), high), high)
        return q

    @classmethod
    def read(cls, parameters: dict[str, Any]) -> Self:
        """Read points that rise."""
        x, y = (saved_numbers(parameters, name, 1) for name in ("x", "y"))
        refuse_unless(
            x.size == y.size and bool((np.diff(x) > 0).all()) and _in_unit(x),
            "x must rise within [0, 1] and be as long as y",
        )
        refuse_unless(bool((np.diff(y) >= 0).all()) and _in_unit(y), "y must never fall in [0, 1]")
        return cls(x, y)


@dataclass(frozen=True, eq=False)
class HistogramMap(CalibrationMap):
    """The mean label of the bin a prediction is in; see `HistogramCalibrator`."""

    method: ClassVar[str] = "histogram"
    edges: FloatArray
    values: FloatArray

    @classmethod
    def fit(cls, data: Data, bins: Bins | None = None) -> Self:
        """Take weighted means per bin; a bin without rows keeps its middle."""
        bins = equal_mass(data, 10) if bins is None else bins
        values = means(bins.locate(data.p), data.y, data.w, len(bins))
        middle = (bins.edges[:-1] + bins.edges[1:]) / 2
        return cls(bins.edges, np.where(np.isnan(values), middle, values))

    def apply(self, p: FloatArray) -> FloatArray:
        """Look up the bin."""
        q: FloatArray = self.values[Bins(self.edges).locate(p)]
        return q

    @classmethod
    def read(cls, parameters: dict[str, Any]) -> Self:
        """Read edges and one value for each bin."""
        edges, values = (saved_numbers(parameters, name, 1) for name in ("edges", "values"))
        bins = Bins(edges)
        refuse_unless(
            values.size == len(bins) and _in_unit(values), "values must be one per bin, in [0, 1]"
        )
        return cls(bins.edges, values)


def equal_mass(data: Data, n: int) -> Bins:
    """Return at most n bins of equal total weight."""
    alike = bool((data.w == data.w[0]).all())  # then there is no need to sort
    return Bins.quantile(data.p, n, None if alike else data.w)


def _in_unit(values: FloatArray) -> bool:
    return bool(((values >= 0) & (values <= 1)).all())
