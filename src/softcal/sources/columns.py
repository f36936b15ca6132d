"""Columns of a source: which are wanted, their roles, and batches of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from softcal._validation.inputs import Names, Rows
from softcal._validation.rules import LABEL, LARGEST_VOTES, MISSING, UNIT, VOTES, WEIGHT, Rule
from softcal.exceptions import InputError, InputTypeError
from softcal.table.tableset import BOUNDS, TOP
from softcal.table.tableset import LABEL as LABEL_TARGET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from softcal._validation.arrays import Column

Batch: TypeAlias = dict[Any, Any]
"""Columns of one length: NumPy arrays of numbers, Arrow arrays of lists or under `Named`."""


class Named(NamedTuple):
    """Under which a batch keeps a column of names: it may be one of the numbers as well."""

    column: str


class Wanted(NamedTuple):
    """The columns to read: of numbers, of anything, and of lists of numbers, one per class."""

    numbers: tuple[str, ...]
    named: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    list_length: int = 1

    @property
    def names(self) -> list[str]:
        """All of them, each once."""
        return list(dict.fromkeys((*self.numbers, *self.named, *self.lists)))

    @property
    def values_per_row(self) -> int:
        """How many values each row has, which says how many rows fit in memory."""
        return len(self.names) + len(self.lists) * (self.list_length - 1)


class Piece(NamedTuple):
    """A part of the rows: where it is from, the bytes it stands for, and how to get its batches.

    It may be asked for its batches more than once. A frame has no place, and counts no bytes.
    """

    place: str
    size: int
    batches: Callable[[], Iterator[Batch]]


def rows_of(batch: Batch) -> int:
    """Count the rows of a batch."""
    return len(next(iter(batch.values())))


def columns_of(table: Any, wanted: Wanted) -> Batch:
    """Take the wanted columns out of an Arrow table, without a copy where NumPy can do without."""
    columns: Batch = {name: _numbers(table.column(name)) for name in wanted.numbers}
    for name in wanted.named:
        columns[Named(name)] = plain_values(table.column(name), name)
    for name in wanted.lists:
        columns[name] = _one_array(table.column(name))
    return columns


def _numbers(column: Any) -> Column:
    """Read an Arrow column as a NumPy one; a missing value becomes NaN."""
    import pyarrow as pa

    floating = pa.types.is_floating(column.type)
    if not floating and (column.null_count or not pa.types.is_integer(column.type)):
        column = column.cast(pa.float64())
    out: Column = _one_array(column).to_numpy(zero_copy_only=False)
    return out


def plain_values(column: Any, name: str) -> Any:
    """Make one plain Arrow array of a column of names; categories become their values."""
    import pyarrow as pa

    whole = _one_array(column)
    if pa.types.is_dictionary(whole.type):
        whole = whole.dictionary_decode()
    if pa.types.is_nested(whole.type) or isinstance(whole.type, pa.BaseExtensionType):
        message = f"{name} must hold single values: it holds {whole.type}."
        raise InputTypeError(message)
    return whole


def length_of_lists(kind: Any, first: Callable[[], Any]) -> int | None:
    """Say how many values the lists of an Arrow type hold, or its first list; None of no list.

    `first` is asked for some values of the column where the type does not say; 0 if there are none.
    """
    from pyarrow import compute, types

    if types.is_fixed_size_list(kind):
        return int(kind.list_size)
    if not _is_list(kind):
        return None
    lengths = compute.list_value_length(first()).drop_null()
    return lengths[0].as_py() if len(lengths) else 0


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    of_lists = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    return any(is_one(kind) for is_one in of_lists)


def _one_array(column: Any) -> Any:
    import pyarrow as pa

    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def refuse_other_types(wanted: Wanted, schema: Any, place: str) -> None:
    """Refuse an Arrow column that holds something other than numbers."""
    from pyarrow import types

    fits = (types.is_floating, types.is_integer, types.is_boolean, types.is_decimal, types.is_null)
    for name in (*wanted.numbers, *wanted.lists):
        found = inner = schema.field(name).type
        if name in wanted.lists:
            if not _is_list(found):
                refuse_type(name, found, place, "lists of real numbers, one per class")
            inner = found.value_type
        if not any(is_one(inner) for is_one in fits):
            refuse_type(name, found, place)


def refuse_type(name: str, found: Any, place: str, what: str = "real numbers") -> None:
    """Refuse a column because of what it holds."""
    message = f"{name} must hold {what}: in {place} it holds {found}. Convert it to float first."
    raise InputTypeError(message)


def refuse_unknown(wanted: Wanted, present: list[str], place: str, hint: str = "") -> None:
    """Refuse a name that no column has, or several have; the hint may say why."""
    for name in wanted.names:
        if present.count(name) != 1:
            problem = f"more than one column {name!r}" if name in present else f"no column {name!r}"
            names = ", ".join(map(repr, present))
            message = f"{place} has {problem}. Its columns are: {names}.{hint}"
            raise InputError(message)


Rules: TypeAlias = "list[tuple[str | Named, tuple[Rule, ...]]]"
"""Columns, and what their values must be."""


LabelKind: TypeAlias = Literal["shares", "counts", "names"]
"""What a label of many classes holds: a share per class, a count of votes, or a class's name."""


class ClassRoles(NamedTuple):
    """Which columns hold the many classes of labels and predictions, in the order of the classes.

    There are two classes or more, so one column alone holds lists, or is the label's of names.
    """

    names: tuple[str, ...]
    kind: LabelKind
    label: tuple[str, ...]
    models: tuple[tuple[str, ...], ...]

    @property
    def several(self) -> tuple[tuple[str, ...], ...]:
        """The columns of the label and of each model, where these hold a number per class."""
        return self.models if self.kind == "names" else (self.label, *self.models)


class Roles(NamedTuple):
    """Which column plays which part.

    With classes, `y_true` and `y_prob` are what the label and the models are called. With bounds,
    the columns of the lower and the upper ends of the labels, `y_true` is the two of them.
    """

    y_true: str
    y_prob: tuple[str, ...]
    sample_weight: str | None = None
    n_votes: str | int | None = None
    by: tuple[str, ...] = ()
    group: str | None = None
    classes: ClassRoles | None = None
    bounds: tuple[str, str] | None = None

    @property
    def targets(self) -> tuple[str, ...]:
        """What the predictions are compared with, as in `TableSet.targets`."""
        if self.classes is not None:
            return (TOP, *self.classes.names)
        return (LABEL_TARGET,) if self.bounds is None else BOUNDS

    @property
    def wanted(self) -> Wanted:
        """The columns to read."""
        optional = (self.sample_weight, self.n_votes)
        numbers = [name for name in optional if isinstance(name, str)]
        named = self.by if self.group is None else (*self.by, self.group)
        if self.classes is None:
            labels = (self.y_true,) if self.bounds is None else self.bounds
            return Wanted((*labels, *self.y_prob, *numbers), tuple(dict.fromkeys(named)))
        found = self.classes
        lists: list[str] = []
        for columns in found.several:
            (lists if len(columns) == 1 else numbers).extend(columns)
        if found.kind == "names":
            named = (*named, *found.label)
        return Wanted(
            tuple(dict.fromkeys(numbers)),
            tuple(dict.fromkeys(named)),
            tuple(dict.fromkeys(lists)),
            len(found.names),
        )

    @property
    def rules(self) -> Rules:
        """What the values of each column must be, in the order in which they are looked at."""
        found: Rules = [
            (self.y_true, LABEL),
            *((name, UNIT) for name in self.y_prob),
        ]
        if self.sample_weight is not None:
            found.append((self.sample_weight, WEIGHT))
        if isinstance(self.n_votes, str):
            found.append((self.n_votes, VOTES))
        return found if self.group is None else [*found, (Named(self.group), (MISSING,))]

    def rows(self, columns: Mapping[Any, Any], pred: str) -> Rows:
        """Return the columns of one prediction, by the names they have in the source."""
        w, m = self.sample_weight, self.n_votes
        p = columns[pred]
        votes = np.broadcast_to(np.float64(m), p.shape) if isinstance(m, int) else None
        return Rows(
            columns[self.y_true],
            p,
            None if w is None else columns[w],
            columns[m] if isinstance(m, str) else votes,
            Names(self.y_true, pred, w or "", str(m)),
        )

    def refuse_impossible(self) -> None:
        """Refuse parts no column can play: both label and prediction, or one model twice."""
        if not self.y_prob:
            message = "y_prob must name at least one column."
            raise InputError(message)
        if self.classes is None:
            self._refuse_columns()
        else:
            self._refuse_class_columns(self.classes)
        if len(set(self.by)) < len(self.by):
            message = f"each 'by' column must be named once: got {', '.join(map(repr, self.by))}."
            raise InputError(message)
        if isinstance(self.n_votes, int) and not 1 <= self.n_votes < LARGEST_VOTES:
            message = f"n_votes must be 1 or more: got {self.n_votes}."
            raise InputError(message)

    def _refuse_columns(self) -> None:
        labels = (self.y_true,) if self.bounds is None else self.bounds
        if len(set(labels)) < len(labels):
            message = (
                f"the lower and the upper ends of the labels must be different columns: both are "
                f"{labels[0]!r}."
            )
            raise InputError(message)
        for pred in self.y_prob:
            if pred in labels:
                message = f"label and prediction must be different columns: both are {pred!r}."
                raise InputError(message)
            if self.y_prob.count(pred) > 1:
                message = f"each prediction must be named once: {pred!r} is named more often."
                raise InputError(message)
        if self.bounds is not None:
            for what, given in (("n_votes", self.n_votes), ("groups", self.group)):
                if given is not None:
                    message = (
                        f"leave {what} out: labels known as intervals have bounds of SMECE, and "
                        "these have no standard error."
                    )
                    raise InputError(message)

    def _refuse_class_columns(self, found: ClassRoles) -> None:
        for columns in found.models:
            for name in columns:
                if name in found.label:
                    message = f"label and prediction must be different columns: both are {name!r}."
                    raise InputError(message)
            if found.models.count(columns) > 1:
                same = [m for m, c in zip(self.y_prob, found.models, strict=True) if c == columns]
                message = (
                    f"each model must have columns of its own: {same[0]!r} and {same[1]!r} have "
                    "the same."
                )
                raise InputError(message)
        if found.kind == "counts" and self.n_votes is not None:
            message = "leave n_votes out: counts of votes say how many there are."
            raise InputError(message)
