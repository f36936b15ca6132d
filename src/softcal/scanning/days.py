"""Days of segments: grouped by day, week, or month, and refused if a value is not clear."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from softcal._display import keyword
from softcal._validation.days import CLEAR, Every, day_of
from softcal._validation.rules import Rule
from softcal.scanning.checks import Check, refuse
from softcal.scanning.expressions import when
from softcal.scanning.rows import Uses
from softcal.scanning.texts import plain_word

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    return Rule(must, lambda values: values == 1, verdict, remedy)


def refuse_unclear(days: Days, unclear: Sequence[str], source: Source) -> NoReturn:
    """Raise because these values do not state a day clearly."""
    uses = Uses(source)
    text = uses.text(days.column)
    marks = when(text.is_in(unclear), 1, 0)
    check = Check(days.column, marks, (rule_of(days),), raw=text, names=True)
    refuse(source, uses.all, [check], drop=False)
