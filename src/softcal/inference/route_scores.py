r"""Compare two scores by which to accept rows, such as confidence and closeness to the crowd.

The areas under both risk-coverage curves are \(E[-r \log S(c)]\). Their difference is a mean over
rows of the difference of two influence functions, each \(r\,h + k\) with constants per bin of its
score. The variance therefore needs sums of 1, r, and r² over the pairs of bins of both scores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import ndtri

from softcal._validation.rules import refuse_bad_level
from softcal.bins import Bins
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray

_GRID = Bins.grid()  # of each score, as of the tables of `route`
_BINS = len(_GRID)


class AreaDifference(NamedTuple):
    """The area of the second score minus that of the first; below 0, the second is better."""

    first: float
    second: float
    difference: float
    low: float
    high: float


class PairedScores:
    """Sums over rows by the bins of two scores in [0, 1], from which areas are compared.

    Rows count as independent.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> good, bad = rng.random((2, 5000))
    >>> pair = PairedScores()
    >>> pair.add(1.0 * (rng.random(5000) > good), bad, good, np.ones(5000))
    >>> pair.difference().high < 0
    True
    """

    def __init__(self) -> None:
        self._sums: FloatArray = np.zeros((4, _BINS, _BINS))

    def add(
        self, risk: FloatArray, first: FloatArray, second: FloatArray, weight: FloatArray
    ) -> None:
        """Add rows: the share of people who disagree, both scores, and weights."""
        place = _GRID.guide.locate(first) * _BINS + _GRID.guide.locate(second)
        terms = (weight, weight * risk, weight * risk**2, weight**2)
        self._sums += [np.bincount(place, each, _BINS**2).reshape(_BINS, _BINS) for each in terms]

    def difference(self, level: float = 0.95) -> AreaDifference:
        """Return both areas, and their difference with its interval."""
        refuse_bad_level(level)
        weight, risk, square, weight_sq = self._sums
        total = weight.sum()
        if not total:
            message = "there are no rows to compare scores on."
            raise InputError(message)
        (area, height, part), (other, high, rest) = (
            _influence(weight.sum(axis=axis), risk.sum(axis=axis)) for axis in (1, 0)
        )
        slope = high[None, :] - height[:, None]
        shift = rest[None, :] - part[:, None]
        variance = (slope**2 * square + 2 * slope * shift * risk + shift**2 * weight).sum() / total
        rows = total**2 / weight_sq.sum()
        reach = float(ndtri((1 + level) / 2) * np.sqrt(max(variance, 0.0) / rows))
        return AreaDifference(area, other, other - area, other - area - reach, other - area + reach)


def _influence(weight: FloatArray, risk: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """Return the area of a score, and its influence r * height + part for rows of each bin."""
    filled = np.flatnonzero(weight)[::-1]  # the surest first
    area, height, rank = area_terms(weight[filled], risk[filled])
    heights, parts = np.zeros_like(weight), np.zeros_like(weight)
    heights[filled], parts[filled] = height, rank - area
    return area, heights, parts


def area_terms(weight: FloatArray, risk: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    r"""Return the area under the curve, the mean of \(-\log S\) in each step, and the rank term.

    Steps are the surest first, with their weight and sum of r. Rows of a step are in random order.
    """
    total = weight.sum()
    share = weight.cumsum() / total
    ends = np.append(0.0, share)
    areas = ends * (1 - np.log(np.where(ends > 0, ends, 1.0)))
    height = np.diff(areas) / np.diff(ends)
    later = np.cumsum((risk / total / share)[::-1])[::-1]
    return float(risk @ height / total), height, risk.sum() / total - later
