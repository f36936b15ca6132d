"""Which columns of a file hold the classes: a list of names, or a pattern that names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from softcal._io import refuse_elsewhere
from softcal.exceptions import InputError
from softcal.sources.files import column_names, format_of, separator_hint

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class ClassColumns(NamedTuple):
    """The columns of some classes, and what a pattern calls these; None where it was a list."""

    columns: tuple[str, ...]
    classes: tuple[str, ...] | None


def class_columns(spec: str, present: Sequence[str]) -> ClassColumns:
    """Read `a,b,c` as names of columns, `prob_*_lr` or the prefix `prob_` as a pattern.

    Of a pattern, the class is what the star stands for, or what follows the prefix.

    Raises
    ------
    InputError
        If these are not two columns or more, each of them once.

    Examples
    --------
    >>> class_columns("prob_*_lr", ["prob_cat_lr", "prob_cat_nb", "prob_dog_lr"])
    ClassColumns(columns=('prob_cat_lr', 'prob_dog_lr'), classes=('cat', 'dog'))
    """
    if "," in spec:
        found = ClassColumns(tuple(name.strip() for name in spec.split(",")), None)
    else:
        found = _matching(spec, present)
    columns = found.columns
    if len(columns) < 2 or len(set(columns)) < len(columns):
        alone = "the one column of that name" if spec in present else "none"
        message = (
            f"{spec!r} must stand for two or more different columns: it stands for "
            f"{', '.join(map(repr, columns)) or alone}. Give names with commas between them, a "
            f"prefix or a pattern with one star. The columns are: {', '.join(map(repr, present))}."
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


def in_order_of(labels: ClassColumns, other: ClassColumns, spec: str) -> tuple[str, ...]:
    """Give the other columns in the order of the labels': by class, or by place in a list.

    Raises
    ------
    InputError
        If the classes are not the same.
    """
    if labels.classes is None or other.classes is None:
        if len(labels.columns) == len(other.columns):
            return other.columns
        message = (
            f"{spec!r} must stand for as many columns as there are classes of the label, "
            f"{len(labels.columns)}: it stands for {len(other.columns)}."
        )
        raise InputError(message)
    if set(labels.classes) == set(other.classes):
        place = dict(zip(other.classes, other.columns, strict=True))
        return tuple(place[name] for name in labels.classes)
    missing = sorted(set(labels.classes) - set(other.classes)) or ["none"]
    surplus = sorted(set(other.classes) - set(labels.classes)) or ["none"]
    message = (
        f"{spec!r} must stand for the classes of the label: missing {', '.join(missing)}; "
        f"beside them {', '.join(surplus)}. Use a narrower pattern, such as 'prob_*_model'."
    )
    raise InputError(message)


def names_of_columns(path: Path) -> list[str]:
    """Read the names of a file's columns; there must be two or more.

    Raises
    ------
    InputError
        If the file cannot be read, or has one column.
    """
    refuse_elsewhere(path)
    names = column_names(path)
    if len(names) == 1:
        message = (
            f"{path.name} has one column, {names[0]!r:.200}, and classes need two or more."
            f"{separator_hint(names, format_of(path).mark)}"
        )
        raise InputError(message)
    return names
