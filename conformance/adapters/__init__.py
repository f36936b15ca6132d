"""One module per library: how it computes each metric, and which conventions it documents.

A module has

NAME         the name on the package index,
BASIS        where its conventions are from: its documentation, or its code if that is silent,
CONVENTIONS  the convention per kind of bins or metric; without one, only cases with `any` count,
METRICS      a function of `Data` per metric; " equal-mass" after a name means equal-mass bins,
WEIGHTED     the metrics that take weights,
SOFT         the metrics that take labels between 0 and 1,
OTHERWISE    cases about which it documents something else, and what,
SINGLE       the metrics that it computes in float32, whatever the type of the input.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class NotOffered(Exception):  # noqa: N818 - not an error of anybody
    """Raised by an adapter for what its library does not document."""


@dataclass(frozen=True)
class Data:
    """The inputs of a case as arrays, as an adapter hands them to its library."""

    case: dict[str, Any]

    def _column(self, name: str, dtype: Any) -> Array:
        values = np.array(self.case["data"][name], dtype=dtype)
        return np.repeat(values, self.case["data"].get("repeat", 1), axis=0)

    @cached_property
    def p(self) -> Array:
        """Predictions: one per row, or one per class in each row."""
        return self._column("p", self.case["data"].get("dtype", "float64"))

    @cached_property
    def y(self) -> Array:
        """Labels: integers if all are whole, otherwise floats; shares for k of m votes."""
        if "k" in self.case["data"]:
            with np.errstate(all="ignore"):
                return np.asarray(self.k / self.m)
        if "votes" in self.case["data"]:
            votes = self._column("votes", "float64")
            return np.asarray(votes / votes.sum(axis=1, keepdims=True))
        whole = all(isinstance(value, int) for value in self.case["data"]["y"])
        return self._column("y", "int64" if whole else self.p.dtype)

    @property
    def k(self) -> Array:
        """Votes for."""
        return self._column("k", "int64")

    @property
    def m(self) -> Array:
        """All votes."""
        return self._column("m", "int64")

    @property
    def votes(self) -> Array:
        """Votes per class."""
        return self._column("votes", "int64")

    @property
    def w(self) -> Array | None:
        """Weights, or None."""
        return self._column("w", "float64") if "w" in self.case["data"] else None

    @property
    def n(self) -> int:
        """The number of bins."""
        return int(self.case["metric"]["n"])

    @property
    def shares(self) -> Array:
        """Labels of classes as one column per class."""
        if self.y.ndim == 2:
            return self.y
        found: Array = np.eye(self.p.shape[1], dtype=self.p.dtype)[self.y]
        return found

    @property
    def columns(self) -> Array:
        """Both classes of one column of predictions."""
        return np.stack([1 - self.p, self.p], axis=1)

    @property
    def is_soft(self) -> bool:
        """Whether labels are probabilities rather than outcomes or classes."""
        if any(name in self.case["data"] for name in ("k", "votes")):
            return True
        return "must_refuse" not in self.case and self.y.dtype.kind == "f"
