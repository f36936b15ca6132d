"""Days of segments: grouped by day, week, or month, and refused if a value is not clear."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np

from softcal._display import keyword
from softcal._validation.days import CLEAR, Every, day_of
from softcal._validation.rules import Rule, Spread
from softcal.exceptions import InputError
from softcal.scanning.texts import plain_word

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from softcal._validation.inputs import Coded
    from softcal.scanning.data import Days
    from softcal.scanning.source import Source


def text_of_day(days: Days, text: str | None) -> str | None:
    """Return the day, week, or month that a text states; None if it is not clear."""
    day = None if text is None else day_of(plain_word(text), days.format)
    return None if day is None else day.begin(Every(days.every)).text


def rule_of(days: Days) -> Rule:
    """Return the rule for values."""
    if days.format is not None:
        must, verdict = f"must be dates in the format {days.format!r}", "values are not"
        remedy = "Correct them, or state another format."
    else:
        must, verdict = f"must be {CLEAR}", "values are not clearly one of the two"
        remedy = f"Pass their format, such as {keyword('day_format', '%m/%d/%Y')}."
    return Rule(must, lambda values: values == 1, verdict, lambda _name, _spread: remedy)


def refuse_unclear(
    days: Days, found: Coded, texts: Sequence[str | None], rows: Any, source: Source
) -> NoReturn:
    """Raise because values do not state a day clearly."""
    unclear = np.array([text is None for text in texts])
    counts = unclear[found.numbers]
    size = np.ones(counts.size) if rows is None else rows
    names = [name for name, bad in zip(found.names, unclear, strict=True) if bad]
    message = rule_of(days).message(
        days.column, int(size[counts].sum()), int(size.sum()), _first(days, names, source),
        Spread(0, 0, signs=False),
    )  # fmt: skip
    raise InputError(message)


def _first(days: Days, names: Sequence[Any], source: Source) -> str:
    """Describe the first row with one of these values, with its file and row if these are known."""
    from softcal.scanning.checks import where_is
    from softcal.scanning.rows import Uses
    from softcal.scanning.source import AT, Here, collected

    if not isinstance(source, Here) or source.kind(days.column) != "text":
        return f", the first is {names[0]!r:.60}"
    uses = Uses(source)
    value = uses.value(days.column)
    rows = source.numbered(uses.all).filter(value.is_in(names)).sort(AT).head(1)
    one = collected(rows.select(value.alias("value"), AT)).to_pylist()[0]
    return f", the first is {one['value']!r:.60} {where_is(source, one[AT])}"
