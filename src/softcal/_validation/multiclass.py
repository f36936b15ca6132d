"""Validate many classes: one row per item, one column per class, rows that sum to 1.

As in `inputs`, this module checks type and shape, and the kernel checks the values. If one is
invalid, `refuse` finds the first one and raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from softcal._parallel import in_order
from softcal._validation import arrays, inputs
from softcal._validation.inputs import DEFAULT_NAMES, Names
from softcal._validation.rules import (
    DROP_OR_IMPUTE,
    NOWHERE,
    OUTSIDE,
    ROW_SUM,
    SUM_TOLERANCE,
    Spread,
    class_values,
)
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from softcal._validation.arrays import Column
    from softcal._validation.inputs import FloatArray, Rows

    Result = TypeVar("Result")

_ROWS_AT_ONCE = 1 << 16
_NUMBERS_AT_ONCE = 1 << 17  # fits the cache of a core


class ClassRows(NamedTuple):
    """Labels and predictions of the same shape (items, classes), with values not yet checked.

    Weights and numbers of votes are already checked.
    """

    y_true: Column
    y_prob: Column
    sample_weight: Column | None
    n_votes: Column | None
    classes: tuple[Any, ...]
    names: Names

    def column(self, c: int) -> Rows:
        """Return the rows of one class."""
        y, p = self.y_true[:, c], self.y_prob[:, c]
        return inputs.Rows(y, p, self.sample_weight, self.n_votes, self.names)

    def check(self) -> None:
        """Refuse invalid values."""
        for _ in self.map_blocks(lambda _p, _y: None):
            pass

    def map_blocks(
        self, work: Callable[[FloatArray, FloatArray], Result]
    ) -> Iterator[tuple[slice, Result]]:
        """Apply `work` to blocks (p, y), both of shape (classes, rows), of a bounded size.

        Yield the slice of the rows and the result of each block.
        """
        n, n_classes = self.y_prob.shape
        size = max(1, min(_ROWS_AT_ONCE, _NUMBERS_AT_ONCE // n_classes))
        parts = [slice(start, start + size) for start in range(0, n, size)]

        def checked(part: slice) -> Result:
            p, y = by_class(self.y_prob[part]), by_class(self.y_true[part])
            if not (is_valid(p) and is_valid(y)):
                refuse(self)
            return work(p, y)

        return zip(parts, in_order(checked, parts, at_most=len(parts)), strict=True)


def class_rows(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    names: Names = DEFAULT_NAMES,
) -> ClassRows:
    """Validate the type and shape of labels and predictions of many classes."""
    y, p = _matrix(y_true, names.y_true), _matrix(y_prob, names.y_prob)
    if y.shape[1] != p.shape[1]:
        message = (
            f"{names.y_true} and {names.y_prob} must have the same classes: {names.y_true} has "
            f"{y.shape[1]} columns, {names.y_prob} has {p.shape[1]}."
        )
        raise InputError(message)
    inputs.refuse_misaligned(
        (inputs.index_of(values), name)
        for values, name in zip((y_true, y_prob, sample_weight, n_votes), names[:4], strict=True)
    )
    # Lengths; labels of 0 fit any number of votes.
    zeros = np.broadcast_to(0.0, len(y))
    one = inputs.rows(zeros, p[:, 0], sample_weight, n_votes, names)
    inputs.check_weights_and_votes(one)
    classes = class_names(y_true, y_prob, p.shape[1], names)
    found = ClassRows(y, p, one.sample_weight, one.n_votes, classes, names)
    if arrays.have_votes(y_true):
        inputs.refuse_votes_twice(n_votes, names)
        found = found._replace(n_votes=y_true.effective_totals)
    elif found.n_votes is not None and not inputs.votes_fit(y, found.n_votes):
        fits = [inputs.votes_fit(shares, found.n_votes) for shares in y.T]
        of_class = names._replace(y_true=f"{names.y_true}[:, {fits.index(False)}]")
        inputs.refuse_misfits(found.column(fits.index(False))._replace(names=of_class))
    inputs.warn_if_swapped(y, p, names)
    return found


def class_rows_of_models(
    y_true: npt.ArrayLike,
    y_prob: Mapping[str, npt.ArrayLike],
    sample_weight: npt.ArrayLike | None,
    n_votes: npt.ArrayLike | None,
) -> dict[str, ClassRows]:
    """Validate several models of the same rows, whose classes must have the same order."""
    first = next(iter(y_prob))
    found = {}
    for name, prob in y_prob.items():
        found[name] = class_rows(y_true, prob, sample_weight, n_votes, Names(y_prob=name))
        class_names(y_prob[first], prob, found[name].y_prob.shape[1], Names(first, name))
    return found


def _matrix(values: Any, name: str) -> Column:
    hint = (
        f"For two classes, pass both: numpy.column_stack([1 - {name}, {name}]). If these are class "
        f"numbers, pass numpy.eye(n_classes)[{name}]."
    )
    return arrays.matrix(values, name, hint)


def class_names(
    y_true: Any, y_prob: Any, size: int, names: Names = DEFAULT_NAMES
) -> tuple[Any, ...]:
    """Return the class names of the labels, else of the predictions, else numbers.

    Raises
    ------
    InputError
        If both have the same classes in different orders.
    """
    labels = y_true.classes if arrays.have_votes(y_true) else arrays.column_names(y_true)
    predictions = arrays.column_names(y_prob)
    if labels is None or predictions is None:
        return arrays.different_names(labels or predictions or range(size), size, "classes")
    if set(labels) == set(predictions) and list(labels) != list(predictions):
        message = (
            f"{names.y_true} and {names.y_prob} must have their classes in the same order: "
            f"{names.y_true} starts with {labels[0]!r:.60}, {names.y_prob} with "
            f"{predictions[0]!r:.60}. Reorder the columns."
        )
        raise InputError(message)
    return arrays.different_names(labels, size, "classes")


def is_by_class(y_prob: npt.ArrayLike) -> bool:
    """Return whether predictions have one column per class, rather than a single column."""
    shape = getattr(y_prob, "shape", None) or arrays.to_array(y_prob, "y_prob").shape
    return len(shape) == 2 and shape[1] != 1


def by_class(block: Column) -> FloatArray:
    """Return a block of rows as one contiguous float64 row per class."""
    return np.ascontiguousarray(block.T, dtype=np.float64)


def is_valid(block: FloatArray) -> bool:
    """Return whether a block (classes, rows) holds probabilities that sum to 1 per row."""
    # Written so that NaN, which fails every comparison, is invalid.
    inside = block.min() >= 0 and block.max() <= 1
    return bool(inside and (np.abs(block.sum(axis=0) - 1) <= SUM_TOLERANCE).all())


def refuse(data: ClassRows) -> NoReturn:
    """Raise for the first invalid value. The caller knows that there is one."""
    for array, name in ((data.y_true, data.names.y_true), (data.y_prob, data.names.y_prob)):
        _refuse_values(array, name)
        _refuse_sums(array, name)
    inputs.refuse(data.column(0))


def _refuse_values(array: Column, name: str) -> None:
    outside = inputs.marked(array, OUTSIDE)
    if outside is None:
        return
    first = tuple(map(int, np.unravel_index(outside.argmax(), array.shape)))
    found = f"{outside.sum()} of {array.size} are not, the first is {name}[{first[0]}, {first[1]}]"
    if np.isnan(array[first]):
        message = f"{name} must hold numbers in [0, 1]: {found}, which is missing. {DROP_OR_IMPUTE}"
    else:
        hint = class_values(name, Spread.of(array.ravel()))
        message = f"{name} must be in [0, 1]: {found} = {float(array[first])!r}. {hint}"
    raise InputError(message)


def _refuse_sums(array: Column, name: str) -> None:
    sums = np.concatenate([
        by_class(array[start : start + _ROWS_AT_ONCE]).sum(axis=0)
        for start in range(0, len(array), _ROWS_AT_ONCE)
    ])  # fmt: skip
    off = ROW_SUM.broken(sums)
    if off.any():
        row = int(off.argmax())
        where = f", the first is {name}[{row}], which sums to {sums[row]:.7g}"
        raise InputError(ROW_SUM.message(f"rows of {name}", off.sum(), off.size, where, NOWHERE))
