"""Rows kept for what needs rows rather than tables: all of them, or as many at random."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softcal._validation.inputs import as_float64

if TYPE_CHECKING:
    from collections.abc import Mapping

    from softcal._validation.inputs import FloatArray, Rows

MOST_ROWS = 200_000


class Sample:
    """A uniform sample of the rows that go by, of bounded size; the same rows every time."""

    def __init__(self, most: int = MOST_ROWS) -> None:
        self.seen = 0
        self._most = most
        self._rng = np.random.default_rng(0)
        self._kept: dict[str, FloatArray] = {}
        self._last: Mapping[str, Rows] = {}

    def add(self, rows: Mapping[str, Rows]) -> None:
        """Let the rows of all models go by."""
        first = next(iter(rows.values()))
        self._last = rows
        self.seen += first.y_true.size
        # The rows of least key are kept, so every row has the same chance.
        columns = {"key": self._rng.random(first.y_true.size)}
        for name, each in rows.items():
            columns[f"y {name}"] = as_float64(each.y_true)
            columns[f"p {name}"] = as_float64(each.y_prob)
        if first.sample_weight is not None:
            columns["w"] = as_float64(first.sample_weight)
        if first.n_votes is not None:
            columns["m"] = as_float64(first.n_votes)
        if self._kept:
            columns = {k: np.concatenate((self._kept[k], v)) for k, v in columns.items()}
        if columns["key"].size > self._most:
            least = np.sort(columns["key"].argpartition(self._most)[: self._most])
            columns = {k: v[least] for k, v in columns.items()}
        self._kept = columns

    def rows(self, name: str) -> Rows:
        """Give the rows kept, with the predictions of one model."""
        kept = self._kept
        return self._last[name]._replace(
            y_true=kept[f"y {name}"],
            y_prob=kept[f"p {name}"],
            sample_weight=kept.get("w"),
            n_votes=kept.get("m"),
        )
