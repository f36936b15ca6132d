"""Means and quantiles by weight without any rounding but the last.

Numbers are split into digits of a few bits, whose sums a float64 holds exactly; Python's integers
put the digits together. So the order of rows cannot matter, and a weight of 3 is the row 3 times.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterator

    FloatArray = npt.NDArray[np.float64]
    Indices = npt.NDArray[np.intp]

_EXACT_BITS = 53  # up to 2^53 a float64 holds every whole number


def means(group: Indices, y: FloatArray, w: FloatArray, size: int) -> FloatArray:
    """Return the weighted mean of each group, exactly rounded; NaN for a group without rows.

    Groups are numbered from 0 to below `size`, y is in [0, 1], and every weight is above 0.
    """
    rows = np.bincount(group, minlength=size)
    found = np.full(size, np.nan)
    found[group] = y  # the mean of one row; the others follow
    several = np.flatnonzero(rows > 1)
    if several.size:
        found[several] = _quotients(group, y, w, several)
    return found


def _quotients(group: Indices, y: FloatArray, w: FloatArray, wanted: Indices) -> FloatArray:
    """Return sum(w y) / sum(w) of the groups wanted."""
    room = _EXACT_BITS - y.size.bit_length()  # of the digits of w and y together
    if (w == w[0]).all():
        w = np.ones(1)
    if w.max() < 2 ** (room // 2) and (w == np.floor(w)).all():
        w_bits, w_digits = int(w.max()).bit_length(), [w]
    else:
        w_bits = room // 2
        w_digits = list(_digits(_scaled(w), w_bits))
    y_bits = room - w_bits

    def sums(terms: FloatArray) -> npt.NDArray[Any]:
        found = np.bincount(group, np.broadcast_to(terms, group.shape))[wanted]
        return found.astype(np.int64).astype(object)

    weight = _whole([sums(digit) for digit in w_digits], w_bits)
    label: npt.NDArray[Any] = np.zeros(wanted.size, dtype=object)
    for digit in _digits(y, y_bits):
        label = label * 2**y_bits + _whole([sums(digit * other) for other in w_digits], w_bits)
        weight = weight * 2**y_bits
    # The quotient of two of Python's integers is exactly rounded.
    quotients: FloatArray = (label / weight).astype(np.float64)
    return quotients


def weighted_starts(w: FloatArray, n: int) -> list[int]:
    """Return, for k = 1 to n - 1, the first row before and with which more than k/n of w lies."""
    bits = _EXACT_BITS - w.size.bit_length()
    sums = [np.cumsum(digit) for digit in _digits(_scaled(w), bits)]

    def up_to(row: int) -> int:
        return n * int(_whole([int(each[row]) for each in sums], bits))

    total = up_to(w.size - 1) // n
    return [bisect_right(range(w.size), k * total, key=up_to) for k in range(1, n)]


def _digits(x: FloatArray, bits: int) -> Iterator[FloatArray]:
    """Split numbers in [0, 1] into digits of so many bits, the first of which may be 2^bits."""
    while x.any():
        x = x * 2.0**bits
        digit = np.floor(x)
        yield digit
        x -= digit


def _whole(digits: list[Any], bits: int) -> Any:
    whole = 0
    for digit in digits:
        whole = whole * 2**bits + digit
    return whole


def _scaled(w: FloatArray) -> FloatArray:
    """Divide by a power of 2, which is exact, so that all are at most 1."""
    scaled: FloatArray = np.ldexp(w, -np.frexp(w.max())[1])
    return scaled
