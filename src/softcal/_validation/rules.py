"""The rules for values, and the error messages for values that break them."""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from softcal._display import keyword
from softcal.exceptions import InputError, InputTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_Values: TypeAlias = npt.NDArray[np.float64]
Marks: TypeAlias = npt.NDArray[np.bool_]

SMALLEST_WEIGHT = 1e-100
LARGEST_WEIGHT = 1e100
"""Between these limits the square of a weight, and sums of squares, are normal float64 numbers."""

LARGEST_LOGIT = 1e100
"""Beyond this, a slope times a logit may leave the range of float64."""

LARGEST_VOTES = 2.0**53
"""Beyond this, a float64 cannot represent every integer."""

SUM_TOLERANCE = 1e-3
"""How far the sum of a row's classes may be from 1: enough for a softmax in half precision.

The largest error among 20,000 rows was 4e-4 in float16, for any number of classes. In float32 it
was 4e-7 for 10 classes, 8e-7 for 1,000, and 5e-6 for 50,000.
"""

DROP_OR_IMPUTE = "Drop or impute those rows first; softcal never drops rows itself."

FROM_LOGITS = "1 / (1 + exp(-{}))"
"""Formula that converts a logit to a probability, unless the caller has a name for it."""


class Spread(NamedTuple):
    """The range of a column's values, from which a message guesses what they may be."""

    low: float
    high: float
    signs: bool  # whether every value is -1 or 1
    from_logits: str = FROM_LOGITS
    whole: bool = False  # whether every value is known to be an integer

    @staticmethod
    def of(values: npt.NDArray[Any], from_logits: str = FROM_LOGITS) -> Spread:
        """Compute the range of a column, without NaN."""
        return Spread(
            float(np.fmin.reduce(values)),
            float(np.fmax.reduce(values)),
            bool(np.isin(values, (-1, 1)).all()),
            from_logits,
            bool((values == np.floor(values)).all()),
        )


NOWHERE = Spread(0, 0, signs=False)
"""For messages that do not depend on the values."""


class Rule(NamedTuple):
    """What must hold, which values break it, and the remedy.

    `broken` takes an array or, except for missing values, an expression of a data frame.
    """

    must: str
    broken: Callable[[Any], Any]
    verdict: str = "values are not"
    remedy: str | Callable[[str, Spread], str] = ""

    def message(self, name: str, count: int, total: int, first: str, spread: Spread) -> str:
        """Return the rule, how many values break it, the first of them, and the remedy.

        `first` starts with a comma. It is empty if the position of the first one is not known.
        """
        verdict = self.verdict.replace("values are", "values is") if count == 1 else self.verdict
        remedy = self.remedy if isinstance(self.remedy, str) else self.remedy(name, spread)
        return f"{name} {self.must}: {count} of {total} {verdict}{first}. {remedy}"


def is_whole(value: object) -> bool:
    """Return whether this is an integer; Booleans and timedeltas are not."""
    if type(value) is int:  # the most frequent type, and the fastest check
        return True
    # Tuples of types, because building a union takes as long as the check.
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def is_bad_weight(w: _Values) -> Marks:
    """Mark weights that are neither 0 nor between the smallest and the largest allowed."""
    bad: Marks = ~(((w >= SMALLEST_WEIGHT) & (w <= LARGEST_WEIGHT)) | (w == 0))
    return bad


def is_bad_vote(m: _Values) -> Marks:
    """Mark values that are not a positive integer number of votes."""
    bad: Marks = ~((m >= 1) & (m < LARGEST_VOTES) & (m == _floor(m)))
    return bad


def _floor(values: Any) -> Any:
    """Round down: an array, or an expression of a data frame, of numbers of 0 or more.

    For expressions without `floor`, with which Spark refuses numbers beyond 64-bit integers.
    """
    return np.floor(values) if isinstance(values, np.ndarray) else values - values % 1


HALF_STEP = 0.005 + 1e-9
"""How far rounding to two digits may move a share."""


def misfit(share: npt.NDArray[Any], votes: npt.NDArray[Any]) -> _Values:
    """Return how far shares are from a whole number of votes, beyond rounding to two digits.

    Above 0 where no whole number of votes gives the share. NaN stays NaN. One vote fits any label,
    because it also states that a posterior has at most the information of one outcome.
    """
    with np.errstate(invalid="ignore", over="ignore"):  # infinity breaks another rule
        number = np.asarray(share, dtype=np.float64) * votes
        off: _Values = np.abs(number - np.rint(number)) - HALF_STEP * votes - (votes == 1)
    return off


def _what_they_may_be(name: str, spread: Spread, scale: str = "") -> str:
    """Return a hint at what values outside [0, 1] may be, and how to convert them.

    The hint uses plain words, or the keyword `scale`, because it may be read on the command line.
    softcal never converts values by itself.
    """
    low, high, signs = spread[:3]
    if low >= -1e-6 and high <= 1 + 1e-6:
        return f"If this is rounding noise, clip {name} to [0, 1]."
    if low == -1 and signs:
        return f"If these are -1/+1 labels, use ({name} + 1) / 2."
    return other_scales(name, spread, scale)


def other_scales(name: str, spread: Spread, scale: str = "") -> str:
    """Return a hint at the scales that the values fit, and how to convert them."""
    percent, logit, logprob = _conversions(name, spread, scale)
    if spread.high <= 0:
        return f"If these are log-probabilities, {logprob}; if logits, {logit}."
    if spread.low >= 0 and spread.high <= 100:
        return f"If these are percentages, {percent}; if logits, {logit}."
    return f"If these are logits, {logit}."


def _conversions(name: str, spread: Spread, scale: str) -> tuple[str, ...]:
    """Return how to convert percentages, logits, and log-probabilities to probabilities."""
    if scale:
        return tuple(f"pass {keyword(scale, each)}" for each in SCALES[1:])
    return f"use {name} / 100", f"use {spread.from_logits.format(name)}", f"use exp({name})"


def _what_labels_may_be(name: str, spread: Spread, scale: str = "") -> str:
    """Return the hint for labels, which may also be vote counts."""
    if spread.whole and spread.low >= 0:
        percent = _conversions(name, spread, scale)[0]
        return (
            f"If these are percentages, {percent}; if vote counts, divide each by the number "
            "of votes on its row, and pass that number too (softcal.Votes, --votes)."
        )
    return _what_they_may_be(name, spread, scale)


def _between(low: float, high: float) -> Callable[[Any], Any]:
    """Return the function that marks values outside a range, and NaN."""
    return lambda values: ~((values >= low) & (values <= high))


MISSING = Rule("must have no missing values", np.isnan, "are NaN or null", DROP_OR_IMPUTE)
OUTSIDE = Rule("must be in [0, 1]", _between(0, 1), remedy=_what_they_may_be)
PERCENT = Rule("must be percentages, in [0, 100]", _between(0, 100))
# Not `> 0`: of NaN, that is false in some databases.
LOGPROB = Rule("must be log-probabilities, of 0 or less", lambda values: ~(values <= 0))
INFINITE = Rule(
    f"must be finite logits, between {-LARGEST_LOGIT:g} and {LARGEST_LOGIT:g}",
    _between(-LARGEST_LOGIT, LARGEST_LOGIT),
    remedy="Where a probability is exactly 0 or 1, pass probabilities instead of logits.",
)
NEGATIVE = Rule(
    "must be 0 or more", lambda values: values < 0, remedy="A weight of 0 leaves a row out."
)
WILD = Rule(
    f"must be 0 or between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}",
    is_bad_weight,
    remedy="Divide the weights by their mean.",
)
NOT_WHOLE = Rule(
    "must be whole numbers of 1 or more",
    is_bad_vote,
    remedy="Pass the number of votes behind each label.",
)


def is_bad_count(values: _Values) -> Marks:
    """Mark values that are not a vote count of one class."""
    bad: Marks = ~((values >= 0) & (values < LARGEST_VOTES) & (values == _floor(values)))
    return bad


def class_values(name: str, spread: Spread, scale: str = "") -> str:
    """Return the hint for values of classes outside [0, 1]."""
    _, logit, logprob = _conversions(name, spread, scale)
    softmax = f"{logit}, which takes the softmax" if scale else "take the softmax"
    if spread.high <= 0:
        return f"If these are log-probabilities, {logprob}; if logits, {softmax} of each row."
    return (
        f"If these are logits, {softmax} of each row; if vote counts, pass them as votes "
        "(softcal.Votes, --vote-columns)."
    )


CLASS_SUMS = (
    "If this is rounding, divide each row by its sum; if the classes are not mutually exclusive, "
    "score each one separately."
)
SHARES = "If these are vote shares, pass them as labels (y_true, --label-columns)."

ROW_SUM = Rule(
    f"must sum to 1 within {SUM_TOLERANCE:g}",
    # Slightly stricter than the kernel, which may add up the row in another order.
    _between(1 - SUM_TOLERANCE + 1e-12, 1 + SUM_TOLERANCE - 1e-12),
    "do not",
    CLASS_SUMS,
)
NO_VOTE = Rule("must have one vote or more", is_bad_vote, "have none", "Omit those rows.")
MISFIT = Rule(  # for the result of `misfit`
    "must be whole numbers of votes, up to rounding of the shares to two digits",
    lambda values: values > 0,
    remedy="Pass the number of votes behind each label, or leave it out if labels are not shares "
    "of votes.",
)
AT_MOST = Rule(  # for the lower end minus the upper one, whose name is filled in
    "must be at most {}",
    lambda values: values > 0,
    "rows are not",
    "Swap the ends of those rows.",
)


def length_rule(classes: int) -> Rule:
    """Return the rule for the lengths of lists with one value per class."""
    return Rule(
        f"must hold lists of {classes} values, one per class",
        lambda lengths: lengths != classes,
        "rows do not",
        "Each row needs a value for every class.",
    )


def known_rule(classes: Sequence[str]) -> Rule:
    """Return the rule for class indices, which are negative where the name is unknown."""
    shown = ", ".join(map(repr, classes[:20])) + ", ..." * (len(classes) > 20)
    return Rule(
        f"must be one of the {len(classes)} classes {shown}",
        lambda numbers: numbers < 0,
        remedy="Pass the names that this column uses, in the order of the prediction columns, as "
        f"{keyword('classes')}; or omit those rows.",
    )


# In the order in which they are checked: a later rule may assume that the earlier ones hold.
UNIT = (MISSING, OUTSIDE)
LOGIT = (MISSING, INFINITE)
LABEL = (MISSING, OUTSIDE._replace(remedy=_what_labels_may_be))
WEIGHT = (MISSING, NEGATIVE, WILD)
VOTES = (MISSING, NOT_WHOLE)
CLASS_SHARE = (MISSING, OUTSIDE._replace(remedy=class_values))
CLASS_COUNT = (
    MISSING,
    Rule("must be whole numbers of 0 or more", is_bad_count, remedy=SHARES),
)


def generator(rng: np.random.Generator | int | None) -> np.random.Generator:
    """Return the generator itself, or a new one from a seed; None gives a random seed."""
    if (
        not isinstance(rng, np.random.Generator)
        and rng is not None
        and not (is_whole(rng) and rng >= 0)
    ):
        message = f"rng must be a numpy.random.Generator or a seed, 0 or more: got {rng!r:.60}."
        raise InputError(message)
    return np.random.default_rng(rng)


_NOT_NUMBERS = (Fraction, np.longdouble, np.timedelta64)


def is_number(value: object) -> bool:
    """Whether a setting is a number that NumPy and SciPy can compute with.

    They do not take fractions; SciPy does not take extended precision; and for NumPy a timedelta64
    is a whole number.
    """
    return isinstance(value, Real) and not isinstance(value, _NOT_NUMBERS)


def real(value: object) -> float:
    """Return a setting as a float; NaN if it is not a number, or too large for one."""
    try:
        return float(value) if is_number(value) else math.nan  # type: ignore[arg-type]
    except OverflowError:
        return math.nan


def refuse_bad_level(level: float) -> None:
    """Refuse a level outside (0, 1)."""
    if not is_number(level):
        message = f"level must be a number between 0 and 1: got {level!r:.60}."
        raise InputTypeError(message)
    if not 0 < level < 1:
        message = f"level must be between 0 and 1, for example 0.95: got {level!r}."
        raise InputError(message)


DROPPED = MISSING._replace(
    remedy=f"Impute them first, or pass {keyword('drop_missing')} to leave those rows out."
)
"""The rule for missing values in columns of a source."""

Scale: TypeAlias = Literal["probability", "percent", "logit", "logprob"]
"""The scales of numbers that stand for probabilities."""

SCALES: tuple[Scale, ...] = ("probability", "percent", "logit", "logprob")


def scaled_rules(rules: tuple[Rule, ...], given: Scale, keyword_: str) -> tuple[Rule, ...]:
    """Return the rules for numbers on a scale, given those for probabilities."""
    missing, outside = rules
    if given == "logit":
        return (missing,)

    def remedy(name: str, spread: Spread) -> str:
        if given != "probability":
            if spread.low >= 0 and spread.high <= 1:
                return f"If these are probabilities, leave out {keyword(keyword_, given)}."
            return other_scales(name, spread, keyword_)
        hint = _what_labels_may_be if keyword_.endswith("label_scale") else _what_they_may_be
        return hint(name, spread, keyword_)

    rule = {"percent": PERCENT, "logprob": LOGPROB}.get(given, outside)
    return missing, rule._replace(remedy=remedy)
