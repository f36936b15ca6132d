"""Columns of many classes: find them by names, a pattern, or a prefix, and match them by class."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from softcal._display import did_you_mean, keyword
from softcal._validation.arrays import different_names, listed
from softcal.exceptions import InputError
from softcal.table.tableset import TOP, thresholds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcal.scanning.source import Source

Spec: TypeAlias = "str | Sequence[str]"
"""A specification of columns of classes: `a,b,c`, a pattern `prob_*`, a prefix, or several names.

A specification that equals the name of a column is that one column, even with a star or comma.
"""


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


class ClassSpec(NamedTuple):
    """The columns of the label and of each model, in the order of the classes.

    A single column holds lists or, for the label, class names.
    """

    names: tuple[str, ...]
    named: bool  # whether the label is a column of class names
    label: tuple[str, ...]
    models: tuple[tuple[str, ...], ...]
    ordered: bool = False

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets of the set."""
        return (TOP, *self.names, *(thresholds(self.names) if self.ordered else ()))


def class_spec(
    label: Spec | None,
    models: Sequence[Spec],
    source: Source,
    *,
    counts: bool = False,
    classes: Sequence[object] | None = None,
    ordered: bool = False,
) -> ClassSpec:
    """Find the columns of many classes, and sort those of each model by class.

    Parameters
    ----------
    label : Spec or None
        Columns of shares or vote counts, one column of lists of these, or one column of class
        names. None if the label is not in this source.
    models : sequence of Spec
        The columns, or one column of lists, of each model.
    source : Source
        The source of the columns.
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
    found = [_found(spec, source) for spec in models]
    one = None if label is None else _only(label, source)
    named = one is not None and source.kind(one) != "list"
    if named and counts:
        message = (
            f"vote counts must be in one column per class, or in one column of lists: {one!r} "
            "holds one value per row. For one vote per row, use RawVotes (--vote)."
        )
        raise InputError(message)
    labels = [] if named or label is None else [_found(label, source)]
    aligned = _aligned([*labels, *found])
    labels, found = aligned[: len(labels)], aligned[len(labels) :]
    names, matched = _names(aligned, classes)
    if TOP in names:
        message = (
            f"no class may be named {TOP!r}, which is the target of the predicted class. Pass "
            f"other names, in the order of the columns, as {keyword('classes')}"
            f"{', and rename that class in the column of labels' if named else ''}."
        )
        raise InputError(message)
    if ordered:
        refuse_names_of_thresholds(names)
    given = classes is not None
    columns = [_ordered(each, names, matched=matched, given=given) for each in found]
    own: tuple[str, ...] = (str(one),) if named else ()
    if labels:
        own = _ordered(labels[0], names, matched=matched, given=given)
    return ClassSpec(names, named, own, tuple(columns), ordered)


def chosen_count(
    spec: Spec, positive: str | None, present: Sequence[str]
) -> tuple[str, tuple[str, ...], str]:
    """Return the column whose share of the counts is the label, all columns, and the label's name.

    The column is the one that `positive` names: by its own name, or by the text that the star of a
    pattern matches. Of two columns named in order, it is the last one by default.
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
    return place[chosen], columns, f"share of {chosen} among {', '.join(names)}"


def refuse_names_of_thresholds(names: Sequence[object]) -> None:
    """Refuse ordered classes if one has the name of a threshold between them."""
    taken = sorted(set(map(str, names)) & set(thresholds(names)))
    if taken:
        message = (
            f"no ordered class may be called {taken[0]!r}, which is the target of the classes "
            f"above one. Pass other names, as {keyword('classes')}."
        )
        raise InputError(message)


def _only(spec: Spec, source: Source) -> str | None:
    """Return the column that a specification names exactly, or None."""
    if isinstance(spec, str):
        return spec if spec in source.names else None
    return spec[0] if len(spec) == 1 and spec[0] in source.names else None


def _found(spec: Spec, source: Source) -> _Found:
    text, one = text_of_spec(spec), _only(spec, source)
    if one is None:
        columns, classes = class_columns(spec, source.names)
        return _Found(text, columns, classes, len(columns))
    if source.kind(one) != "list":
        message = (
            f"{one!r} must hold a list of numbers per row, one per class: it holds single values. "
            "Name one column per class, or a pattern such as 'prob_*'."
        )
        raise InputError(message)
    length = source.list_length(one)
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
