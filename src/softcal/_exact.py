"""Weighted means and quantiles that are rounded only once, at the end.

Each number is split into digits of a few bits, whose sums a float64 holds exactly. Python integers
combine the digits. The order of rows therefore cannot matter, and a weight of 3 equals 3 rows.
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

_EXACT_BITS = 53  # a float64 holds every integer up to 2^53


def means(group: Indices, y: FloatArray, w: FloatArray, size: int) -> FloatArray:
    """Return the weighted mean of each group, exactly rounded; NaN for a group without rows.

    Groups are numbered from 0 to `size` - 1, y is in [0, 1], and every weight is positive.
    """
    rows = np.bincount(group, minlength=size)
    found = np.full(size, np.nan)
    found[group] = y  # the mean of one row; the others follow
    several = np.flatnonzero(rows > 1)
    if several.size:
        found[several] = _quotients(group, y, w, several)
    return found


def _quotients(group: Indices, y: FloatArray, w: FloatArray, wanted: Indices) -> FloatArray:
    """Return sum(w y) / sum(w) of the wanted groups."""
    room = _EXACT_BITS - y.size.bit_length()  # bits for the digits of w and y together
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
    # The quotient of two Python integers is exactly rounded.
    quotients: FloatArray = (label / weight).astype(np.float64)
    return quotients


def weighted_starts(w: FloatArray, n: int) -> list[int]:
    """Return, for k = 1 to n - 1, the first row whose cumulative weight exceeds k/n of all."""
    bits = _EXACT_BITS - w.size.bit_length()
    sums = [np.cumsum(digit) for digit in _digits(_scaled(w), bits)]

    def up_to(row: int) -> int:
        return n * int(_whole([int(each[row]) for each in sums], bits))

    total = up_to(w.size - 1) // n
    return [bisect_right(range(w.size), k * total, key=up_to) for k in range(1, n)]


def _digits(x: FloatArray, bits: int) -> Iterator[FloatArray]:
    """Split numbers in [0, 1] into digits of `bits` bits; the first digit may be 2^bits."""
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
    """Divide by a power of 2, which is exact, so that every weight is at most 1."""
    scaled: FloatArray = np.ldexp(w, -np.frexp(w.max())[1])
    return scaled
