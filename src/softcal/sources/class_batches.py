"""Rows of many classes out of a batch: labels as shares, counts or names, columns or lists."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from softcal._validation.inputs import as_float64
from softcal._validation.multiclass import ClassRows
from softcal._validation.rules import (
    CLASS_COUNT,
    CLASS_SHARE,
    MISSING,
    NO_VOTE,
    ROW_SUM,
    is_bad_count,
    known_rule,
    length_rule,
)
from softcal.sources.columns import Check, Named, coded, numbers, one_array, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcal._validation.arrays import Column
    from softcal._validation.inputs import FloatArray
    from softcal._validation.rules import Rule
    from softcal.sources.columns import Batch, ClassRoles, Roles


def classes_of_batch(batch: Batch, roles: Roles, found: ClassRoles) -> list[ClassRows] | None:
    """Return the rows of each model; None where a label, or the length of a list, breaks a rule.

    Whether shares and predictions lie in [0, 1] and sum to 1 is for whoever adds them up.
    """
    weight, votes = roles.weights_and_votes(batch, rows_of(batch))
    size = len(found.names)
    if found.kind == "names":
        at = _class_numbers(batch[Named(found.label[0])], found.label[0], found.names)
        if not (at >= 0).all():
            return None
        label: Column | None = at[:, None] == np.arange(size)
    else:
        label = _matrix(batch, found.label, size)
    if label is not None and found.kind == "counts":
        label, votes = _shares(label)
    predictions = [_matrix(batch, columns, size) for columns in found.models]
    if label is None or any(each is None for each in predictions):
        return None
    return [
        ClassRows(label, p, weight, votes, found.names, roles.names(roles.y_true, model))
        for model, p in zip(roles.y_prob, predictions, strict=True)
        if p is not None
    ]


def _matrix(batch: Batch, columns: tuple[str, ...], size: int) -> Column | None:
    """Return one column per class; None where a list is missing or has another length."""
    if len(columns) > 1:
        # Classes one after another in memory, each as it is in its column.
        return np.stack([batch[name] for name in columns]).T
    found = batch[columns[0]]
    if not (_lengths(found) == size).all():
        return None
    return _values(found).reshape(-1, size)


def _lengths(lists: Any) -> FloatArray:
    """Return how many values each list has; NaN where it is missing."""
    from pyarrow import compute

    found: FloatArray = numbers(compute.list_value_length(one_array(lists))).astype(np.float64)
    return found


def _values(lists: Any) -> Column:
    """Return the values of all lists one after another."""
    return numbers(one_array(lists).flatten())


def _shares(counts: Column) -> tuple[FloatArray | None, FloatArray | None]:
    """Return shares of votes and how many there are; None where a count breaks a rule."""
    plain = counts.astype(np.float64, copy=False)
    votes: FloatArray = plain.sum(axis=1)
    if is_bad_count(plain).any() or NO_VOTE.broken(votes).any():
        return None, None
    return plain / votes[:, None], votes


def _class_numbers(values: Any, name: str, classes: Sequence[str]) -> FloatArray:
    """Return the number of each value's class; -1 where there is no such class, NaN for missing."""
    place = {each: float(k) for k, each in enumerate(classes)}
    found = coded(values, name)
    numbers = [np.nan if text is None else _place(text, place) for text in found.names]
    return np.array(numbers, dtype=np.float64)[found.numbers]


def _place(text: str, place: dict[str, float]) -> float:
    """Find a class by its text; 3.0 is the class 3 too."""
    whole = re.fullmatch(r"(-?\d+)\.0*", text)
    return place.get(text, place.get(whole[1], -1.0) if whole else -1.0)


def class_checks(roles: Roles, found: ClassRoles) -> list[Check]:
    """List what labels and predictions of many classes must be."""
    size = len(found.names)
    checks = []
    if found.kind == "names":
        checks.append(_names_check(found.label[0], found.names))
    elif found.kind == "counts":
        checks += _matrix_checks(roles.y_true, found.label, size, CLASS_COUNT, NO_VOTE)
    else:
        checks += _matrix_checks(roles.y_true, found.label, size, CLASS_SHARE, ROW_SUM)
    rules, of_sums = roles.rules_of_predictions(CLASS_SHARE), None if roles.logits else ROW_SUM
    for model, columns in zip(roles.y_prob, found.models, strict=True):
        checks += _matrix_checks(model, columns, size, rules, of_sums)
    return checks


def _names_check(column: str, classes: tuple[str, ...]) -> Check:
    def shown(batch: Batch, row: int, _number: float) -> str:
        return f"is {batch[Named(column)][row].as_py()!r:.60}"

    return Check(
        column,
        (MISSING, known_rule(classes)),
        lambda batch: _class_numbers(batch[Named(column)], column, classes),
        shown,
    )


def _matrix_checks(
    name: str, columns: tuple[str, ...], size: int, rules: tuple[Rule, ...], of_sums: Rule | None
) -> list[Check]:
    """Check values, and then the sum of each row where there is a rule for it."""

    def sums(batch: Batch) -> FloatArray:
        if len(columns) > 1:
            total: FloatArray = np.sum([as_float64(batch[each]) for each in columns], axis=0)
        else:
            total = _padded(batch[columns[0]], size).sum(axis=1)
        return total

    def sums_to(_batch: Batch, _row: int, total: float) -> str:
        return f"sums to {total:.7g}"

    if len(columns) > 1:
        checks = [
            Check(each, rules, lambda batch, each=each: as_float64(batch[each]))  # type: ignore[misc]
            for each in columns
        ]
    else:
        of_lengths = (MISSING, length_rule(size))
        checks = [
            Check(columns[0], of_lengths, lambda batch: _lengths(batch[columns[0]])),
            Check(
                f"values of {columns[0]}",
                rules,
                lambda batch: _padded(batch[columns[0]], size).ravel(),
                per_row=size,
            ),
        ]
    return (
        checks
        if of_sums is None
        else [*checks, Check(f"rows of {name}", (of_sums,), sums, sums_to)]
    )


def _padded(lists: Any, size: int) -> FloatArray:
    """Return one column per class; lists of another length, which are refused first, are 0."""
    import pyarrow as pa

    fits = _lengths(lists) == size
    found = np.zeros((len(lists), size))
    found[fits] = _values(lists.filter(pa.array(fits))).reshape(-1, size)
    return found
