"""Columns of many classes: find them, and turn batches of them into rows."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from softcal._display import did_you_mean, keyword
from softcal._io import refuse_elsewhere
from softcal._validation.arrays import different_names, listed
from softcal._validation.inputs import as_float64
from softcal._validation.multiclass import ClassRows
from softcal._validation.rules import (
    CLASS_COUNT,
    CLASS_SHARE,
    LOGIT,
    MISSING,
    NO_VOTE,
    ROW_SUM,
    class_values,
    is_bad_count,
    known_rule,
    length_rule,
    scaled_rules,
)
from softcal.exceptions import InputError
from softcal.sources.columns import (
    Check,
    ClassRoles,
    LabelKind,
    Named,
    Wanted,
    coded,
    length_of_lists,
    numbers,
    one_array,
    plain_word,
    rows_of,
    scaled,
)
from softcal.sources.files import (
    AS_IT_IS,
    Reading,
    column_names,
    format_of,
    pieces,
    schema_of,
    separator_hint,
)
from softcal.table.tableset import TOP, thresholds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from softcal._validation.arrays import Column
    from softcal._validation.inputs import FloatArray
    from softcal._validation.rules import Rule, Scale
    from softcal.sources.columns import Batch, Roles


Spec: TypeAlias = "str | Sequence[str]"
"""A specification of columns of classes: `a,b,c`, a pattern `prob_*`, a prefix, or several names.

A specification that equals the name of a column is that one column, even with a star or comma.
"""


class Present(NamedTuple):
    """The columns of a source, known before rows are read."""

    names: Sequence[str]
    list_length: Callable[[str], int | None]
    """Return the length of the lists of a column; None if it holds single values."""


class ClassColumns(NamedTuple):
    """The columns of classes, and the class names from a pattern; None without a pattern."""

    columns: tuple[str, ...]
    classes: tuple[str, ...] | None

    def by_class(self, other: ClassColumns) -> tuple[str, ...] | None:
        """Return the columns in the order of the classes of others; None if the classes differ.

        Without a pattern, the name of a class is the part of a column that differs from the others.

        >>> names = ("rb_e", "rb_n", "rb_c")
        >>> ClassColumns(("bt_c", "bt_e", "bt_n"), None).by_class(ClassColumns(names, None))
        ('bt_e', 'bt_n', 'bt_c')
        """
        own, known = self.classes, other.classes
        if own is None or known is None:
            own, known = (_parts(each.classes or each.columns) for each in (self, other))
        if len(own) < 2 or sorted(own) != sorted(known):
            return None
        place = dict(zip(own, self.columns, strict=True))
        return tuple(place[name] for name in known)


def _parts(names: Sequence[str]) -> tuple[str, ...]:
    """Remove what all names start and end with, up to a separator: p_10, p_11 become 10, 11."""
    for _ in range(2):
        pairs = zip(min(names), max(names), strict=False)
        same = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        start = len(re.sub(r"[^\W_]*\Z", "", same))
        names = [name[start:][::-1] for name in names]  # then the same at the ends
    return tuple(names)


def class_columns(spec: Spec, present: Sequence[str]) -> ClassColumns:
    """Return the columns that match `a,b,c`, a pattern `prob_*_lr`, or the prefix `prob_`.

    With a pattern, the name of a class is the text that the star or the end of the name matches.

    Raises
    ------
    InputError
        If these are not two or more different columns.

    Examples
    --------
    >>> class_columns("prob_*_lr", ["prob_cat_lr", "prob_cat_nb", "prob_dog_lr"])
    ClassColumns(columns=('prob_cat_lr', 'prob_dog_lr'), classes=('cat', 'dog'))
    """
    if not isinstance(spec, str):
        found = ClassColumns(tuple(spec), None)
    elif "," in spec:
        found = ClassColumns(tuple(name.strip() for name in spec.split(",")), None)
    else:
        found = _matching(spec, present)
    columns = found.columns
    if len(columns) < 2 or len(set(columns)) < len(columns):
        alone = "only the column of that name" if spec in present else "none"
        message = (
            f"{text_of_spec(spec)!r} must match two or more different columns: it matches "
            f"{', '.join(map(repr, columns)) or alone}. Pass names separated by commas, a prefix, "
            f"or a pattern with one star. The columns are: {', '.join(map(repr, present))}."
        )
        raise InputError(message)
    return found


def _matching(spec: str, present: Sequence[str]) -> ClassColumns:
    before, _, after = spec.partition("*")
    names = [
        name
        for name in present
        if name.startswith(before) and name.endswith(after) and len(name) > len(before + after)
    ]
    return ClassColumns(
        tuple(names), tuple(name[len(before) : len(name) - len(after)] for name in names)
    )


def text_of_spec(spec: Spec) -> str:
    """Return a specification as one text, as in `TableSet.label`."""
    return spec if isinstance(spec, str) else ",".join(spec)


class _Found(NamedTuple):
    """The columns of a specification, the class names from a pattern, and their number."""

    spec: str
    columns: tuple[str, ...]
    classes: tuple[str, ...] | None
    size: int

    @property
    def named(self) -> ClassColumns:
        """The columns with the names of their classes."""
        return ClassColumns(self.columns, self.classes)


def class_roles(
    label: Spec,
    models: Mapping[str, Spec],
    present: Present,
    *,
    counts: bool = False,
    classes: Sequence[object] | None = None,
    ordered: bool = False,
) -> ClassRoles:
    """Find the columns of many classes, and sort those of each model by class.

    Parameters
    ----------
    label : Spec
        Columns of shares or vote counts, one column of lists of these, or one column of class
        names.
    models : mapping from str to Spec
        The columns, or one column of lists, of each model.
    present : Present
        The columns of the source.
    counts : bool
        Whether the label holds vote counts.
    classes : sequence, optional
        Names of the classes. Columns that name the same classes are sorted in this order; all
        other columns must be in this order.
    ordered : bool
        Whether the classes are in order, lowest first.

    Raises
    ------
    InputError
        If columns are missing, or if they are not of the same classes.
    """
    found = [_found(spec, present) for spec in models.values()]
    one = _only(label, present)
    named = one is not None and present.list_length(one) is None
    if named and counts:
        message = (
            f"vote counts must be in one column per class, or in one column of lists: {one!r} "
            "holds one value per row. For one vote per row, use softcal.Votes.from_long."
        )
        raise InputError(message)
    labels = [] if named else [_found(label, present)]
    aligned = _aligned([*labels, *found])
    labels, found = aligned[: len(labels)], aligned[len(labels) :]
    names, matched = _names(aligned, classes)
    if TOP in names:
        message = (
            f"no class may be named {TOP!r}, which is the target of the predicted class. Pass "
            "other names, in the order of the columns, as classes= (--classes)"
            f"{', and rename that class in the column of labels' if named else ''}."
        )
        raise InputError(message)
    if ordered:
        refuse_names_of_thresholds(names)
    given = classes is not None
    columns = [_ordered(each, names, matched=matched, given=given) for each in found]
    kind: LabelKind = "names" if named else "counts" if counts else "shares"
    own = (str(one),) if named else _ordered(labels[0], names, matched=matched, given=given)
    return ClassRoles(names, kind, own, tuple(columns), ordered)


def refuse_names_of_thresholds(names: Sequence[object]) -> None:
    """Refuse ordered classes if one has the name of a threshold between them."""
    taken = sorted(set(map(str, names)) & set(thresholds(names)))
    if taken:
        message = (
            f"no ordered class may be called {taken[0]!r}, which is the target of the classes "
            "above one. Name the classes otherwise with classes= (--classes)."
        )
        raise InputError(message)


def counts_beside(roles: Roles, spec: Spec, present: Sequence[str], positive: str | None) -> Roles:
    """Return roles whose labels are vote shares from counts, with one prediction per row.

    The share is that of the column that `positive` names: by its own name, or by the text that the
    star of a pattern matches. Of two columns named in order, it is the last one by default.
    """
    columns, classes = class_columns(spec, present)
    names = classes or columns
    place = dict(zip((*columns, *names), (*columns, *columns), strict=True))
    if positive is None and (classes is not None or len(columns) > 2):
        message = (
            f"name the column of counts that counts as 1: {', '.join(map(repr, names))}. Pass one, "
            f"such as {keyword('positive', names[0])}."
        )
        raise InputError(message)
    chosen = names[-1] if positive is None else positive
    if chosen not in place:
        message = (
            f"positive must be one of the columns of counts: got {chosen!r:.60}."
            f"{did_you_mean(chosen, names)} These are: {', '.join(map(repr, names))}."
        )
        raise InputError(message)
    for name in columns:
        if name in roles.y_prob:
            message = f"label and prediction must be different columns: both are {name!r}."
            raise InputError(message)
    label = f"share of {chosen} among {', '.join(names)}"
    found = roles._replace(y_true=label, counts=columns, positive_count=place[chosen])
    found.refuse_impossible()
    return found


def _only(spec: Spec, present: Present) -> str | None:
    """Return the column that a specification names exactly, or None."""
    if isinstance(spec, str):
        return spec if spec in present.names else None
    return spec[0] if len(spec) == 1 and spec[0] in present.names else None


def _found(spec: Spec, present: Present) -> _Found:
    text, one = text_of_spec(spec), _only(spec, present)
    if one is None:
        columns, classes = class_columns(spec, present.names)
        return _Found(text, columns, classes, len(columns))
    length = present.list_length(one)
    if length is None:
        message = (
            f"{one!r} must hold a list of numbers per row, one per class: it holds single values. "
            "Name one column per class, or a pattern such as 'prob_*'."
        )
        raise InputError(message)
    if length < 2:
        message = f"{one!r} must hold lists of two or more classes: the first has {length}."
        raise InputError(message)
    return _Found(text, (one,), None, length)


def _aligned(found: Sequence[_Found]) -> list[_Found]:
    """Sort the columns of the same classes in the order of the first of these."""
    aligned: list[_Found] = []
    for each in found:
        orders = (each.named.by_class(earlier.named) for earlier in aligned)
        columns = next(filter(None, orders), each.columns)
        names = dict(zip(each.columns, each.classes or (), strict=False))
        classes = None if each.classes is None else tuple(names[name] for name in columns)
        aligned.append(each._replace(columns=columns, classes=classes))
    return aligned


def _names(
    found: Sequence[_Found], classes: Sequence[object] | None
) -> tuple[tuple[str, ...], bool]:
    """Return the class names, and whether all patterns must match them."""
    first = found[0]
    if classes is not None:
        given = () if isinstance(classes, str) else tuple(map(str, classes))
        return different_names(given, first.size, "classes"), False
    if first.classes is not None:
        return first.classes, True
    for each in found:
        if len(each.columns) > 1:
            return each.classes or each.columns, False
    return tuple(map(str, range(first.size))), False


def _ordered(
    found: _Found, names: tuple[str, ...], *, matched: bool, given: bool
) -> tuple[str, ...]:
    """Return columns in the order of the classes: by the names of these, or by position."""
    own, columns = found.classes, found.named.by_class(ClassColumns(names, names))
    if columns is not None:
        return columns
    if own is not None and matched:
        missing = sorted(set(names) - set(own)) or ["none"]
        surplus = sorted(set(own) - set(names)) or ["none"]
        message = (
            f"{found.spec!r} must match the classes of the label: missing "
            f"{', '.join(missing)}; unknown {', '.join(surplus)}. Use a narrower pattern, such "
            "as 'prob_*_model'."
        )
        raise InputError(message)
    if found.size != len(names):
        message = (
            f"{found.spec!r} must match one column per class of the label, {len(names)} in total: "
            f"it matches {found.size}."
        )
        raise InputError(message)
    if own is not None and given:
        moved = [name for k, name in enumerate(names) if name in own and own[k] != name]
        if moved:
            message = (
                f"classes must be the names in {found.spec!r} in any order, or new names in the "
                f"order of its columns: {moved[0]!r} is the name of another column. The columns "
                f"are of {listed(own)}."
            )
            raise InputError(message)
    return found.columns


def in_file(path: Path, reading: Reading = AS_IT_IS) -> Present:
    """Return the columns of a file."""
    schema = schema_of(path, reading)

    def list_length(name: str) -> int | None:
        return length_of_lists(schema.field(name).type, lambda: _first_list(path, name, reading))

    return Present(schema.names, list_length)


def _first_list(path: Path, name: str, reading: Reading) -> Any:
    """Return the first rows of a column of lists, which may be long."""
    few = Wanted((), lists=(name,), classes=_MOST_CLASSES)
    for piece in pieces(path, few, reading):
        for batch in piece.batches():
            return batch[name]
    return schema_of(path, reading).empty_table().column(name)


_MOST_CLASSES = 1 << 20  # assumed for the first batch, before the length of lists is known


def names_of_columns(path: Path, reading: Reading = AS_IT_IS) -> list[str]:
    """Return the names of the columns of a file, which must be two or more.

    Raises
    ------
    InputError
        If the file cannot be read or has one column.
    """
    refuse_elsewhere(path)
    names = column_names(path, reading)
    if len(names) == 1:
        message = (
            f"{path.name} has only one column, {names[0]!r:.200}, but classes need two or more."
            f"{separator_hint(names, format_of(path, reading).mark)}"
        )
        raise InputError(message)
    return names


def classes_of_batch(batch: Batch, roles: Roles, found: ClassRoles) -> list[ClassRows] | None:
    """Return the rows of each model; None if a label or the length of a list breaks a rule.

    Whether shares and predictions are in [0, 1] and sum to 1 is validated when they are added up.
    """
    weight, votes = roles.weights_and_votes(batch, rows_of(batch))
    size = len(found.names)
    if found.kind == "names":
        at = _class_numbers(batch[Named(found.label[0])], found.label[0], found.names)
        if not (at >= 0).all():
            return None
        label: Column | None = at[:, None] == np.arange(size)
    else:
        label = matrix(batch, found.label, size)
    if label is not None and found.kind == "counts":
        label, votes = _shares(label)
    predictions = [matrix(batch, columns, size) for columns in found.models]
    if label is None or any(each is None for each in predictions):
        return None
    if found.kind == "shares":
        label = scaled(label, roles.values.label_scale)
    return [
        ClassRows(
            label,
            scaled(p, roles.values.pred_scale),
            weight,
            votes,
            found.names,
            roles.names(roles.y_true, model),
        )
        for model, p in zip(roles.y_prob, predictions, strict=True)
        if p is not None
    ]


def matrix(batch: Batch, columns: tuple[str, ...], size: int) -> Column | None:
    """Return one column per class; None if a list is missing or has another length."""
    if len(columns) > 1:
        # Each class is contiguous in memory.
        return np.stack([batch[name] for name in columns]).T
    found = batch[columns[0]]
    if not (_lengths(found) == size).all():
        return None
    return _values(found).reshape(-1, size)


def _lengths(lists: Any) -> FloatArray:
    """Return the length of each list; NaN if it is missing."""
    from pyarrow import compute

    found: FloatArray = numbers(compute.list_value_length(one_array(lists))).astype(np.float64)
    return found


def _values(lists: Any) -> Column:
    """Return the concatenated values of all lists."""
    return numbers(one_array(lists).flatten())


def _shares(counts: Column) -> tuple[FloatArray | None, FloatArray | None]:
    """Return the shares and the numbers of votes; None if a count breaks a rule."""
    plain = counts.astype(np.float64, copy=False)
    votes: FloatArray = plain.sum(axis=1)
    if is_bad_count(plain).any() or NO_VOTE.broken(votes).any():
        return None, None
    return plain / votes[:, None], votes


def _class_numbers(values: Any, name: str, classes: Sequence[str]) -> FloatArray:
    """Return the class number of each value; -1 for an unknown class, NaN for a missing value."""
    place = {each: float(k) for k, each in enumerate(classes)}
    found = coded(values, name)
    numbers = [np.nan if text is None else _place(text, place) for text in found.names]
    return np.array(numbers, dtype=np.float64)[found.numbers]


def _place(text: str, place: dict[str, float]) -> float:
    """Return the number of a class by its text; 3.0 is also the class 3."""
    return place.get(text, place.get(plain_word(text), -1.0))


def class_checks(roles: Roles, found: ClassRoles) -> list[Check]:
    """Return the checks of labels and predictions of many classes."""
    size = len(found.names)
    checks = []
    if found.kind == "names":
        checks.append(_names_check(found.label[0], found.names))
    elif found.kind == "counts":
        checks += matrix_checks(roles.y_true, found.label, size, CLASS_COUNT, NO_VOTE)
    else:
        rules, of_sums = _class_rules(roles.values.label_scale, "label_scale")
        logs = roles.values.label_scale == "logprob"
        checks += matrix_checks(roles.y_true, found.label, size, rules, of_sums, logs=logs)
    rules, of_sums = _class_rules(roles.values.pred_scale, "pred_scale")
    logs = roles.values.pred_scale == "logprob"
    if roles.logits:
        rules, of_sums = LOGIT, None
    for model, columns in zip(roles.y_prob, found.models, strict=True):
        checks += matrix_checks(model, columns, size, rules, of_sums, logs=logs)
    return checks


def _class_rules(scale: Scale, name: str) -> tuple[tuple[Rule, ...], Rule | None]:
    """Return what the values of classes must be on a scale, and what their sums must be."""
    if scale == "logit":
        return LOGIT, None
    if scale == "logprob":
        return scaled_rules(CLASS_SHARE, scale, name), ROW_SUM
    if scale == "percent":
        of_sums = ROW_SUM._replace(
            must=ROW_SUM.must.replace("1 within", "100% within"),
            broken=lambda sums: ROW_SUM.broken(sums / 100),
        )
        return scaled_rules(CLASS_SHARE, scale, name), of_sums
    missing, outside = CLASS_SHARE
    hint = outside._replace(remedy=lambda column, spread: class_values(column, spread, name))
    return (missing, hint), ROW_SUM


def _names_check(column: str, classes: tuple[str, ...]) -> Check:
    def shown(batch: Batch, row: int, _number: float) -> str:
        return f"is {batch[Named(column)][row].as_py()!r:.60}"

    return Check(
        column,
        (MISSING, known_rule(classes)),
        lambda batch: _class_numbers(batch[Named(column)], column, classes),
        shown,
    )


def matrix_checks(
    name: str,
    columns: tuple[str, ...],
    size: int,
    rules: tuple[Rule, ...],
    of_sums: Rule | None,
    *,
    logs: bool = False,
) -> list[Check]:
    """Return the checks of values and, if there is a rule for it, of the sum of each row.

    Values that are log-probabilities are summed as probabilities.
    """

    def sums(batch: Batch) -> FloatArray:
        if len(columns) > 1:
            parts = np.stack([as_float64(batch[each]) for each in columns], axis=1)
        else:
            parts = _padded(batch[columns[0]], size)
        total: FloatArray = scaled(parts, "logprob" if logs else "probability").sum(axis=1)
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
    """Return one column per class; lists of another length, which another check refuses, are 0."""
    import pyarrow as pa

    fits = _lengths(lists) == size
    found = np.zeros((len(lists), size))
    found[fits] = _values(lists.filter(pa.array(fits))).reshape(-1, size)
    return found
