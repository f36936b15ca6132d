"""What every value must be, and the words for one that is not."""

from __future__ import annotations

from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from softcal.exceptions import InputError, InputTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_Values: TypeAlias = npt.NDArray[np.float64]
Marks: TypeAlias = npt.NDArray[np.bool_]

SMALLEST_WEIGHT = 1e-100
LARGEST_WEIGHT = 1e100
"""Between these the square of a weight is a normal float64, and so are sums of it."""

LARGEST_LOGIT = 1e100
"""Beyond, a slope times a logit may leave the range of float64."""

LARGEST_VOTES = 2.0**53
"""Beyond, a float64 cannot count."""

SUM_TOLERANCE = 1e-3
"""How far from 1 the classes of a row may sum: room for a softmax in half precision.

The worst sums of 20,000 rows were off by 4e-4 in float16, whatever the number of classes, and in
float32 by 4e-7 for 10 classes, 8e-7 for 1,000 and 5e-6 for 50,000.
"""

DROP_OR_IMPUTE = "Drop or impute those rows first; softcal never drops rows itself."

FROM_LOGITS = "1 / (1 + exp(-{}))"
"""What makes a probability of a logit, in any language, unless the caller has a name for that."""


class Spread(NamedTuple):
    """How far the values of a column reach, for a hint at what they may be."""

    low: float
    high: float
    signs: bool  # whether every one is -1 or 1
    from_logits: str = FROM_LOGITS
    whole: bool = False  # whether every one is known to be a whole number

    @staticmethod
    def of(values: npt.NDArray[Any], from_logits: str = FROM_LOGITS) -> Spread:
        """Measure a column; NaN is left out."""
        return Spread(
            float(np.fmin.reduce(values)),
            float(np.fmax.reduce(values)),
            bool(np.isin(values, (-1, 1)).all()),
            from_logits,
            bool((values == np.floor(values)).all()),
        )

    def with_(self, other: Spread) -> Spread:
        """Join what was found in two parts of a column."""
        return Spread(
            float(np.fmin(self.low, other.low)),
            float(np.fmax(self.high, other.high)),
            self.signs and other.signs,
            whole=self.whole and other.whole,
        )


class Rule(NamedTuple):
    """What must hold, which values break it, and what to do about them."""

    must: str
    broken: Callable[[_Values], Marks]
    verdict: str
    remedy: Callable[[str, Spread], str]

    def message(self, name: str, count: int, total: int, first: str, spread: Spread) -> str:
        """Say the rule, how many values break it, the first of them, and the remedy.

        `first` starts with a comma, or is empty where nobody knows which one is the first.
        """
        verdict = self.verdict.replace("values are", "values is") if count == 1 else self.verdict
        return (
            f"{name} {self.must}: {count} of {total} {verdict}{first}. {self.remedy(name, spread)}"
        )


def is_whole(value: object) -> bool:
    """Whether this is a whole number, which a truth value or a span of time is not."""
    # Tuples of types, because making a union takes as long as the question.
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def is_bad_weight(w: _Values) -> Marks:
    """Mark weights that are neither 0 nor of a size whose square is a normal number."""
    bad: Marks = ~(((w >= SMALLEST_WEIGHT) & (w <= LARGEST_WEIGHT)) | (w == 0))
    return bad


def is_bad_vote(m: _Values) -> Marks:
    """Mark what is no number of votes."""
    bad: Marks = ~((m >= 1) & (m < LARGEST_VOTES) & (m == np.floor(m)))
    return bad


def _outside(values: _Values) -> Marks:
    outside: Marks = ~((values >= 0) & (values <= 1))
    return outside


def _infinite(values: _Values) -> Marks:
    infinite: Marks = ~(np.abs(values) <= LARGEST_LOGIT)
    return infinite


def _negative(values: _Values) -> Marks:
    negative: Marks = values < 0
    return negative


def _what_they_may_be(name: str, spread: Spread) -> str:
    """Say what such values usually are. A hint only: softcal never converts by itself.

    The remedy is in plain words, for it may be read at the command line.
    """
    low, high, signs = spread[:3]
    from_logits = spread.from_logits.format(name)
    if low >= -1e-6 and high <= 1 + 1e-6:
        return f"If this is rounding noise, clip {name} to [0, 1]."
    if low == -1 and signs:
        return f"If these are -1/+1 labels, use ({name} + 1) / 2."
    if low >= 0 and high <= 100:
        return f"If these are percentages, use {name} / 100; if logits, {from_logits}."
    return f"If these are logits, use {from_logits}."


def _what_labels_may_be(name: str, spread: Spread) -> str:
    """Say it of labels, which may be counts as well."""
    if spread.whole and spread.low >= 0:
        return (
            f"If these are percentages, use {name} / 100; if counts of votes, divide each by the "
            "number of votes on its row, and give that number too (softcal.Votes, --votes)."
        )
    return _what_they_may_be(name, spread)


MISSING = Rule(
    "must have no missing values",
    np.isnan,
    "are NaN or null",
    lambda _name, _spread: DROP_OR_IMPUTE,
)
OUTSIDE = Rule("must be in [0, 1]", _outside, "values are not", _what_they_may_be)
INFINITE = Rule(
    f"must be finite logits, between {-LARGEST_LOGIT:g} and {LARGEST_LOGIT:g}",
    _infinite,
    "values are not",
    lambda _name, _spread: (
        "Where a probability is exactly 0, fit on probabilities, without logits=True (--logits)."
    ),
)
NEGATIVE = Rule(
    "must be 0 or more",
    _negative,
    "values are not",
    lambda _name, _spread: "A weight of 0 leaves a row out.",
)
WILD = Rule(
    f"must be 0 or between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}",
    is_bad_weight,
    "values are not",
    lambda _name, _spread: "Divide the weights by their mean.",
)
NOT_WHOLE = Rule(
    "must be whole numbers of 1 or more",
    is_bad_vote,
    "values are not",
    lambda _name, _spread: "Pass how many votes each label is the share of.",
)


def _off_one(sums: _Values) -> Marks:
    # A little stricter, since whoever found a row broken may have added it up in another order.
    off: Marks = ~(np.abs(sums - 1) <= SUM_TOLERANCE - 1e-12)
    return off


def is_bad_count(values: _Values) -> Marks:
    """Mark what is not a count of votes for one class."""
    bad: Marks = ~((values >= 0) & (values < LARGEST_VOTES) & (values == np.floor(values)))
    return bad


def _above_zero(values: _Values) -> Marks:
    above: Marks = values > 0
    return above


CLASS_VALUES = (
    "If these are logits, take the softmax of each row; if counts of votes, give them as such "
    "(softcal.Votes, --vote-columns)."
)
CLASS_SUMS = (
    "If this is rounding, divide each row by its sum; if the classes do not exclude each other, "
    "score each on its own."
)
SHARES = "If these are shares of votes, give them as such (y_true, --label-columns)."

ROW_SUM = Rule(
    f"must sum to 1 within {SUM_TOLERANCE:g}",
    _off_one,
    "do not",
    lambda _name, _spread: CLASS_SUMS,
)
NO_VOTE = Rule(
    "must have one vote or more",
    is_bad_vote,
    "have none",
    lambda _name, _spread: "Leave those rows out.",
)
AT_MOST = Rule(  # of the lower end minus the upper one, whose name is put in
    "must be at most {}",
    _above_zero,
    "rows are not",
    lambda _name, _spread: "Swap the ends of those rows.",
)


def length_rule(classes: int) -> Rule:
    """Return the rule for the lengths of lists of so many classes."""
    return Rule(
        f"must hold lists of {classes} values, one per class",
        lambda lengths: lengths != classes,
        "rows hold others",
        lambda _name, _spread: "Give every class a value in each row.",
    )


def known_rule(classes: Sequence[str]) -> Rule:
    """Return the rule for numbers of classes, which are below 0 where the name is not known."""
    shown = ", ".join(map(repr, classes[:20])) + ", ..." * (len(classes) > 20)
    return Rule(
        f"must be one of the {len(classes)} classes {shown}",
        lambda numbers: numbers < 0,
        "values are not",
        lambda _name, _spread: (
            "Name the classes as this column does with classes= (--classes), in the order of the "
            "columns of predictions; or leave those rows out."
        ),
    )


# In the order in which they are looked at: a later one may suppose that the earlier ones hold.
UNIT = (MISSING, OUTSIDE)
LOGIT = (MISSING, INFINITE)
LABEL = (MISSING, OUTSIDE._replace(remedy=_what_labels_may_be))
WEIGHT = (MISSING, NEGATIVE, WILD)
VOTES = (MISSING, NOT_WHOLE)
CLASS_SHARE = (MISSING, OUTSIDE._replace(remedy=lambda _name, _spread: CLASS_VALUES))
CLASS_COUNT = (
    MISSING,
    Rule(
        "must be whole numbers of 0 or more",
        is_bad_count,
        "values are not",
        lambda _name, _spread: SHARES,
    ),
)


def generator(rng: np.random.Generator | int | None) -> np.random.Generator:
    """Return the generator itself, or the one of a seed; None gives one that differs each time."""
    if (
        not isinstance(rng, np.random.Generator)
        and rng is not None
        and not (is_whole(rng) and rng >= 0)
    ):
        message = f"rng must be a numpy.random.Generator or a seed, 0 or more: got {rng!r:.60}."
        raise InputError(message)
    return np.random.default_rng(rng)


def is_number(value: object) -> bool:
    """Whether a setting is a number that NumPy and SciPy can compute with.

    They do not take fractions; SciPy does not take extended precision; and for NumPy a timedelta64
    is a whole number.
    """
    other = isinstance(value, Fraction | np.longdouble | np.timedelta64)
    return isinstance(value, Real) and not other


def refuse_bad_level(level: float) -> None:
    """Refuse a level outside (0, 1)."""
    if not is_number(level):
        message = f"level must be a float between 0 and 1: got {level!r:.60}."
        raise InputTypeError(message)
    if not 0 < level < 1:
        message = f"level must be between 0 and 1, for example 0.95: got {level!r}."
        raise InputError(message)


def or_logits(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Return rules for probabilities whose remedy names the option that takes logits."""
    *others, outside = rules

    def remedy(name: str, spread: Spread) -> str:
        return f"{outside.remedy(name, spread)} With --logits, logits are taken as they are."

    return (*others, outside._replace(remedy=remedy))
