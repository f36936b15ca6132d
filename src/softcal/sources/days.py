"""Columns of days: grouped by day, week, or month, and refused if a value is not clear."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softcal._validation.days import CLEAR, Every, day_of
from softcal._validation.rules import MISSING, Rule, Spread
from softcal.sources.columns import Check, Named, coded, missing_values, plain_word, text_of

if TYPE_CHECKING:
    from softcal._validation.arrays import Column
    from softcal._validation.days import Day
    from softcal.sources.columns import Batch


class Days(NamedTuple):
    """A column of days, the format of its text, and what they are grouped by, at least by day."""

    column: str
    day_format: str | None = None
    every: Every = Every.DAY

    def of(self, text: str) -> Day | None:
        """Return the day or time that a text states."""
        return day_of(plain_word(text), self.day_format)

    def names(self, values: Any) -> Any:
        """Return the day of each value of an Arrow array as text; null if it is not clear."""
        import pyarrow as pa
        from pyarrow import compute

        kind = values.type
        if pa.types.is_timestamp(kind):  # first by day in UTC, which leaves few values to convert
            values = compute.floor_temporal(values.cast(pa.timestamp(kind.unit)), unit="day")
            values = values.cast(pa.timestamp(kind.unit, kind.tz and "UTC"))
        found = coded(values, self.column)
        days = [None if text is None else self.of(text) for text in found.names]
        texts = [None if day is None else day.begin(self.every).text for day in days]
        return pa.array(texts, pa.string()).take(pa.array(found.numbers))

    @property
    def rule(self) -> Rule:
        """The rule for values: 1 stands for one that is not clear."""
        if self.day_format is not None:
            must, verdict = f"must be dates in the format {self.day_format!r}", "values are not"
            remedy = "Correct them, or state another --day-format."
        else:
            must, verdict = f"must be {CLEAR}", "values are not clearly one of the two"
            remedy = "Pass --day-format, such as '%m/%d/%Y' or '%Y%m%d'."
        return Rule(must, lambda values: values == 1, verdict, lambda _name, _spread: remedy)

    def message(self, count: int, total: int, first: str) -> str:
        """Return the error message for values that are not clear."""
        return self.rule.message(self.column, count, total, first, Spread.of(np.zeros(1)))

    @property
    def check(self) -> Check:
        """The check that every row has a clear day."""

        def unclear(batch: Batch) -> Column:
            values = batch[Named(self.column)]
            unknown = missing_values(self.names(values))
            return np.where(missing_values(values), np.nan, unknown.astype(np.float64))

        def shown(batch: Batch, row: int, _unclear: float) -> str:
            return f"is {text_of(batch[Named(self.column)][row].as_py())!r:.60}"

        return Check(self.column, (MISSING, self.rule), unclear, shown)
