"""Days of segments: grouped by day, week, or month, and refused if a value is not clear."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np

from softcal._validation.days import CLEAR, day_of
from softcal._validation.rules import Rule, Spread
from softcal.exceptions import InputError
from softcal.scanning.ballots import plain_word

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from softcal._validation.inputs import Coded
    from softcal.scanning.data import Days


def text_of_day(days: Days, text: str | None) -> str | None:
    """Return the day, week, or month that a text states; None if it is not clear."""
    day = None if text is None else day_of(plain_word(text), days.format)
    return None if day is None else day.begin(days.every).text


def rule_of(days: Days) -> Rule:
    """Return the rule for values."""
    if days.format is not None:
        must, verdict = f"must be dates in the format {days.format!r}", "values are not"
        remedy = "Correct them, or state another --day-format."
    else:
        must, verdict = f"must be {CLEAR}", "values are not clearly one of the two"
        remedy = "Pass --day-format, such as '%m/%d/%Y' or '%Y%m%d'."
    return Rule(must, lambda values: values == 1, verdict, lambda _name, _spread: remedy)


def refuse_unclear(days: Days, found: Coded, texts: Sequence[str | None], rows: Any) -> NoReturn:
    """Raise because values do not state a day clearly."""
    unclear = np.array([text is None for text in texts])[found.numbers]
    size = np.ones(unclear.size) if rows is None else rows
    first = found.names[int(found.numbers[int(unclear.argmax())])]
    where = f", the first is {first!r:.60}"
    message = rule_of(days).message(
        days.column, int(size[unclear].sum()), int(size.sum()), where, Spread(0, 0, signs=False)
    )
    raise InputError(message)
