"""Validate labels, predictions, weights, and numbers of votes: one column of each.

Validation has two steps. `rows` checks type, shape, and length, which costs nothing. The kernel
checks the values in its one pass over the data, and returns only whether all are valid. If not,
`refuse` searches for the first invalid value and raises. Valid data is therefore read once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from softcal._validation import arrays
from softcal._validation.arrays import REAL, Column, column, numbered, refuse_missing
from softcal._validation.rules import (
    FROM_LOGITS,
    HALF_STEP,
    LABEL,
    LOGIT,
    MISFIT,
    MISSING,
    NOWHERE,
    UNIT,
    VOTES,
    WEIGHT,
    Rule,
    Spread,
    is_bad_vote,
    is_bad_weight,
    is_whole,
    misfit,
)
from softcal.exceptions import InputError, warn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FloatArray: TypeAlias = npt.NDArray[np.float64]

_ROWS_AT_ONCE = 1 << 16
_IN_CACHE = 1 << 13  # numbers


class Names(NamedTuple):
    """The caller's names for the columns, for error messages."""

    y_true: str = "y_true"
    y_prob: str = "y_prob"
    sample_weight: str = "sample_weight"
    n_votes: str = "n_votes"
    from_logits: str = FROM_LOGITS  # how the caller converts a logit to a probability


DEFAULT_NAMES = Names()
"""The names of the parameters, for calls from Python."""


class Rows(NamedTuple):
    """Columns of equal length with valid type and shape; their values are not yet checked."""

    y_true: Column
    y_prob: Column
    sample_weight: Column | None
    n_votes: Column | None
    names: Names

    def taken(self, at: npt.NDArray[np.intp] | slice) -> Rows:
        """Return the rows at these positions."""
        w, m = self.sample_weight, self.n_votes
        return self._replace(
            y_true=self.y_true[at],
            y_prob=self.y_prob[at],
            sample_weight=None if w is None else w[at],
            n_votes=None if m is None else m[at],
        )

    def blocks(
        self, size: int = _ROWS_AT_ONCE
    ) -> Iterator[tuple[FloatArray, FloatArray, FloatArray | None]]:
        """Yield (p, y, w) as float64, a bounded number of rows at a time."""
        for start in range(0, self.y_prob.size, size):
            part = slice(start, start + size)
            weight = self.sample_weight
            yield (
                as_float64(self.y_prob[part]),
                as_float64(self.y_true[part]),
                None if weight is None else as_float64(weight[part]),
            )


def rows(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    names: Names = DEFAULT_NAMES,
) -> Rows:
    """Validate the type, shape, and length of the columns, but not their values.

    `Votes` of two classes are accepted as labels: the share of the second class, with the number
    of votes.
    """
    if (  # two plain arrays, by far the most common case, need no further calls
        type(y_true) is np.ndarray is type(y_prob)
        and sample_weight is None is n_votes
        and y_true.ndim == 1 == y_prob.ndim
        and len(y_true) == len(y_prob) > 0
        and y_true.dtype.kind in REAL
        and y_prob.dtype.kind in REAL
    ):
        return Rows(y_true, y_prob, None, None, names)
    indexes = [index_of(each) for each in (y_true, y_prob, sample_weight, n_votes)]
    stated = n_votes is not None  # not counted
    y_true, n_votes = labels_of_votes(y_true, n_votes, names)
    y = column(y_true, names.y_true)
    p = column(y_prob, names.y_prob)
    w = None if sample_weight is None else column(sample_weight, names.sample_weight)
    m = None if n_votes is None else _votes(n_votes, names.n_votes, p.size)
    for other, name in ((p, names.y_prob), (w, names.sample_weight), (m, names.n_votes)):
        if other is not None and other.size != y.size:
            message = (
                f"{names.y_true} and {name} must have the same length: {names.y_true} has "
                f"{y.size} rows, {name} has {other.size}. Pass one value of each per row."
            )
            raise InputError(message)
    refuse_misaligned(zip(indexes, names[:4], strict=True))
    found = Rows(y, p, w, m, names)
    if stated:
        refuse_misfits(found)
    return found


def labels_of_votes(
    y_true: npt.ArrayLike, n_votes: npt.ArrayLike | None = None, names: Names = DEFAULT_NAMES
) -> tuple[npt.ArrayLike, npt.ArrayLike | None]:
    """Split `Votes` into labels and numbers of votes; return other labels unchanged."""
    if not arrays.have_votes(y_true):
        return y_true, n_votes
    refuse_votes_twice(n_votes, names)
    if y_true.n_classes != 2:
        message = (
            f"{names.y_true} must be votes of two classes: these are of {y_true.n_classes}. Choose "
            f"one with {names.y_true}.binary({y_true.classes[0]!r:.60}), or use a multiclass "
            "metric, such as top_label_smece or classwise_smece."
        )
        raise InputError(message)
    return y_true.shares[:, 1], y_true.effective_totals


def refuse_votes_twice(n_votes: npt.ArrayLike | None, names: Names = DEFAULT_NAMES) -> None:
    """Refuse `n_votes` where the labels are `Votes`, which include it."""
    if n_votes is not None:
        message = f"{names.n_votes} must be omitted when {names.y_true} is Votes."
        raise InputError(message)


def all_valid(
    p: FloatArray, y: FloatArray, w: FloatArray | None, m: FloatArray | None = None
) -> bool:
    """Return whether every value is valid; if not, `refuse` raises with the first one."""
    # Written so that NaN, which fails every comparison, is invalid.
    valid = p.min() >= 0 and p.max() <= 1 and y.min() >= 0 and y.max() <= 1
    if w is not None:
        valid = valid and bool((~is_bad_weight(w)).all())
    if m is not None:
        valid = valid and bool((~is_bad_vote(m)).all())
    return bool(valid)


def valid_rows(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
    name: str = DEFAULT_NAMES.y_prob,
) -> Rows:
    """Validate columns and their values; `name` is that of the predictions."""
    found = rows(y_true, y_prob, sample_weight, names=Names(y_prob=name))
    p, y, w = columns(found)
    if not all_valid(p, y, None if sample_weight is None else w):
        refuse(found)
    if not w.any():
        refuse_no_weight(found)
    warn_if_swapped(y, p, found.names)
    return found


def columns(data: Rows) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return predictions, labels, and weights as float64."""
    weight = data.sample_weight
    w = np.ones(data.y_prob.size) if weight is None else as_float64(weight)
    return as_float64(data.y_prob), as_float64(data.y_true), w


def probabilities(values: npt.ArrayLike, name: str) -> Column:
    """Validate the type and values of one column of probabilities."""
    array = column(labels_of_votes(values)[0], name)
    _refuse_broken(array, name, UNIT)
    return array


def logits(values: npt.ArrayLike, name: str) -> Column:
    """Validate the type and values of one column of logits."""
    array = column(values, name)
    _refuse_broken(array, name, LOGIT)
    return array


def refuse(data: Rows) -> NoReturn:
    """Raise for the first invalid value. The caller knows that there is one."""
    _refuse_broken(data.y_true, data.names.y_true, LABEL, data.names.from_logits)
    _refuse_broken(data.y_prob, data.names.y_prob, UNIT, data.names.from_logits)
    check_weights_and_votes(data)
    refuse_changed()


def refuse_changed() -> NoReturn:
    """Raise because an invalid value has disappeared: the data changed during reading."""
    message = "the data changed while it was being read: try again on a copy of it."
    raise InputError(message)


def check_weights_and_votes(data: Rows) -> None:
    """Refuse invalid weights and numbers of votes."""
    if data.sample_weight is not None:
        _refuse_broken(data.sample_weight, data.names.sample_weight, WEIGHT)
    if data.n_votes is not None:
        _refuse_broken(data.n_votes, data.names.n_votes, VOTES)


def votes_fit(share: Column, votes: Column) -> bool:
    """Return whether shares are whole numbers of votes; shares of classes have two dimensions."""
    votes = votes if share.ndim == 1 else votes[:, None]
    step = max(_IN_CACHE // share[0].size, 1)
    for part in (slice(k, k + step) for k in range(0, len(share), step)):
        with np.errstate(invalid="ignore", over="ignore"):
            number = share[part] * as_float64(votes[part])  # faster than a product with integers
            number -= np.rint(number)
        # Exact shares of two votes or more are within the smallest limit, which is fast to see.
        exact = number.max() <= 2 * HALF_STEP and number.min() >= -2 * HALF_STEP
        if not exact and (misfit(share[part], votes[part]) > 0).any():
            return False
    return True


def refuse_misfits(data: Rows) -> None:
    """Refuse labels that no whole number of the stated votes gives; other rules come first."""
    y, m, names = data.y_true, np.asarray(data.n_votes), data.names
    if votes_fit(y, m):
        return
    _refuse_broken(y, names.y_true, LABEL, names.from_logits)
    check_weights_and_votes(data)
    broken = misfit(y, m) > 0
    first, count = int(broken.argmax()), int(broken.sum())
    where = f", the first is {names.y_true}[{first}] = {float(y[first])!r} times {m[first]}"
    name = f"{names.y_true} times {names.n_votes}"
    raise InputError(MISFIT.message(name, count, y.size, where, NOWHERE))


def warn_if_swapped(y_true: Column, y_prob: Column, names: Names = DEFAULT_NAMES) -> None:
    """Warn if all predictions are 0 or 1 and labels are not."""
    if y_prob.flat[0] not in (0, 1):  # as of almost all models
        return
    parts = [slice(k, k + _ROWS_AT_ONCE) for k in range(0, len(y_prob), _ROWS_AT_ONCE)]
    hard = all(((y_prob[part] == 0) | (y_prob[part] == 1)).all() for part in parts)
    if hard and any(((y_true[part] > 0) & (y_true[part] < 1)).any() for part in parts):
        warn(swapped(names.y_true, names.y_prob))


def swapped(label: str, pred: str) -> str:
    """Return the note on predictions that are all 0 or 1 beside labels that are not."""
    return (
        f"every value of {pred} is 0 or 1, but {label} has values between 0 and 1: check that "
        "labels and predictions are not swapped."
    )


def unlikely_scale(name: str, stated: str) -> str:
    """Return the note on values that are all in [0, 1], although they are stated to be others."""
    return f"every value of {name} is in [0, 1]: leave out {stated} if these are probabilities."


def has_outside(values: Column) -> bool:
    """Return whether numbers without NaN have one outside [0, 1]."""
    return bool(values.size and (values.min() < 0 or values.max() > 1))


def refuse_no_weight(data: Rows) -> NoReturn:
    """Raise because every weight is zero, so no row counts."""
    refuse_zeros(data.names.sample_weight, data.y_prob.size)


def refuse_zeros(name: str, rows: int) -> NoReturn:
    """Raise because all weights of that name are zero."""
    message = (
        f"{name} must have a positive value somewhere: all {rows} are 0, so no row counts. "
        f"Leave {name} out to count every row once."
    )
    raise InputError(message)


def refuse_soft_labels(data: Rows) -> NoReturn:
    """Raise because an outcome metric was given labels other than 0 and 1."""
    y, name = data.y_true, data.names.y_true
    soft = (y != 0) & (y != 1)
    if data.sample_weight is not None:
        soft &= data.sample_weight > 0
    first, rule = int(soft.argmax()), Rule(
        "must be 0 or 1 for ece", lambda _: soft, remedy="Use smece for labels that are "
        "probabilities, or ece(..., threshold=0.5) to harden them on purpose.",
    )  # fmt: skip
    where = f", the first is {name}[{first}] = {float(y[first])!r}"
    raise InputError(rule.message(name, soft.sum(), y.size, where, NOWHERE))


def as_float64(part: Column) -> FloatArray:
    """Return a block as contiguous float64, copied only if necessary."""
    return np.ascontiguousarray(part, dtype=np.float64)


def _votes(n_votes: npt.ArrayLike, name: str, size: int) -> Column:
    if is_whole(n_votes):
        return np.broadcast_to(column([n_votes], name), (size,))
    return column(n_votes, name)


class Coded(NamedTuple):
    """The name of each row, as an index into `names`. Names may be integers in an array."""

    numbers: npt.NDArray[np.int64]
    names: Sequence[Any]


def coded_groups(groups: npt.ArrayLike, data: Rows) -> Coded:
    """Return the names of the groups, and the index of each row's group."""
    names, numbers = numbered(groups, "groups")
    if numbers.size != data.y_true.size:
        message = (
            f"{data.names.y_true} and groups must have the same length: {data.names.y_true} has "
            f"{data.y_true.size} rows, groups has {numbers.size}."
        )
        raise InputError(message)
    return Coded(numbers.astype(np.int64), names)


def group_numbers(groups: npt.ArrayLike, data: Rows) -> npt.NDArray[np.int64]:
    """Return the index of each row's group, from 0. Groups may have names of any type."""
    return coded_groups(groups, data).numbers


def numbers_of_groups(
    groups: npt.ArrayLike | None, data: Rows, y_true: npt.ArrayLike, y_prob: Any
) -> npt.NDArray[np.int64] | None:
    """Return the index of each row's group, or None without groups; pandas indexes must match."""
    refuse_misaligned_groups(groups, y_true=y_true, y_prob=y_prob)
    return None if groups is None else group_numbers(groups, data)


def index_of(values: Any) -> Any:
    """Return the pandas index of a column, or of the frame of `Votes`; None without one."""
    return values.index if hasattr(values, "iloc") or arrays.have_votes(values) else None


def refuse_misaligned_groups(groups: Any, **columns: Any) -> None:
    """Refuse groups whose pandas index differs from that of the columns."""
    refuse_misaligned((index_of(v), k) for k, v in {**columns, "groups": groups}.items())


def refuse_misaligned(indexes: Iterable[tuple[Any, str]]) -> None:
    """Refuse pandas columns whose indexes differ: their rows may not belong together."""
    indexed = [(index, name) for index, name in indexes if index is not None]
    for index, name in indexed[1:]:
        first, first_name = indexed[0]
        if not first.equals(index):
            message = (
                f"{first_name} and {name} must have the same pandas index: they differ, so "
                f"their rows may not belong together. Align them (for example {name} = "
                f"{name}.loc[{first_name}.index]), or pass .to_numpy() to match by position."
            )
            raise InputError(message)


def _refuse_broken(
    array: Column,
    name: str,
    rules: tuple[Rule, ...],
    from_logits: str = DEFAULT_NAMES.from_logits,
) -> None:
    for rule in rules:
        broken = marked(array, rule)
        if broken is None:
            continue
        if rule is MISSING:
            refuse_missing(broken, name)
        count, first = int(broken.sum()), int(broken.argmax())
        where = f", the first is {name}[{first}] = {float(array[first])!r}"
        spread = Spread.of(array, from_logits)
        raise InputError(rule.message(name, count, array.size, where, spread))


def marked(array: Column, rule: Rule) -> npt.NDArray[np.bool_] | None:
    """Mark the values that break a rule, block by block; return None if there are none."""
    marks = np.empty(array.shape, dtype=bool)
    for start in range(0, len(array), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        marks[part] = rule.broken(as_float64(array[part]))
    return marks if marks.any() else None
