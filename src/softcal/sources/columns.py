"""Columns of a source: which to read, their roles, and batches of them."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from softcal._display import did_you_mean, keyword
from softcal._validation.inputs import Coded, Names, Rows, as_float64, has_outside, unlikely_scale
from softcal._validation.rules import (
    LABEL,
    LARGEST_VOTES,
    LOGIT,
    MISSING,
    SCALES,
    UNIT,
    VOTES,
    WEIGHT,
    Rule,
    Scale,
    is_bad_count,
    scaled_rules,
)
from softcal.bins import Bins
from softcal.exceptions import InputError, InputTypeError
from softcal.table.tableset import BOUNDS, TOP, thresholds
from softcal.table.tableset import LABEL as LABEL_TARGET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from softcal._validation.arrays import Column
    from softcal.sources.days import Days
    from softcal.sources.ranges import Ranges
    from softcal.sources.votes import ItemVotes

_WHOLE = re.compile("-?[0-9]+")

Batch: TypeAlias = dict[Any, Any]
"""Columns of equal length: NumPy arrays of numbers, Arrow arrays of lists or of names."""


class Named(NamedTuple):
    """The key of a column of names in a batch; the same column may also be read as numbers."""

    column: str


class Outcomes(NamedTuple):
    """The key of a part of the labels in a batch."""

    column: str
    part: str = "label"  # or "votes", how many; or "item", the row among the votes


BATCH_VALUES = 1 << 21
"""The maximum of numbers in a batch after splitting: 16 MB as float64."""


class Wanted(NamedTuple):
    """The columns to read: of numbers, of names, and of lists with one number per class."""

    numbers: tuple[str, ...]
    named: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    classes: int = 1  # 1 without many classes
    percents: tuple[str, ...] = ()  # numbers that may have a percent sign

    @property
    def names(self) -> list[str]:
        """The names of all columns, each once."""
        return list(dict.fromkeys((*self.numbers, *self.named, *self.lists)))

    @property
    def signed(self) -> tuple[str, ...]:
        """The columns of numbers that may be text such as 50%."""
        return tuple(name for name in self.percents if name not in (*self.named, *self.lists))

    @property
    def values_per_row(self) -> int:
        """The number of values per row, which bounds the rows of a batch."""
        return len(self.names) + len(self.lists) * (self.classes - 1)

    def cut(self, rows: int) -> Iterator[tuple[int, int]]:
        """Yield the start and the size of each part of a batch.

        Only rows of many classes are split, because adding them up copies them.
        """
        step = max(BATCH_VALUES // self.values_per_row if self.classes > 1 else rows, 1)
        for start in range(0, rows, step):
            yield start, min(step, rows - start)


class Piece(NamedTuple):
    """A part of the rows: its place, its size in bytes, and a function that returns its batches.

    The batches may be requested more than once. The place of a frame is empty, and its size is 0.
    The place of rows on another machine is None, because a position there identifies no row.
    """

    place: str | None
    size: int
    batches: Callable[[], Iterator[Batch]]


def rows_of(batch: Batch) -> int:
    """Return the number of rows of a batch."""
    return len(next(iter(batch.values())))


def columns_of(table: Any, wanted: Wanted) -> Batch:
    """Return the wanted columns of an Arrow table as a batch, without a copy where possible."""
    columns: Batch = {name: numbers(table.column(name)) for name in wanted.numbers}
    for name in wanted.named:
        columns[Named(name)] = plain_values(table.column(name), name)
    for name in wanted.lists:
        columns[name] = one_array(table.column(name))
    return columns


def numbers(column: Any) -> Column:
    """Return an Arrow column as a NumPy array; a missing value becomes NaN."""
    import pyarrow as pa

    floating = pa.types.is_floating(column.type)
    if not floating and (column.null_count or not pa.types.is_integer(column.type)):
        column = column.cast(pa.float64())
    whole = one_array(column)
    if whole.null_count:
        out: Column = whole.to_numpy(zero_copy_only=False)
        return out
    return np.from_dlpack(whole)  # `to_numpy` would import pandas, which takes half a second


def plain_values(column: Any, name: str) -> Any:
    """Return a column of names as one Arrow array; categories become their values."""
    import pyarrow as pa

    whole = one_array(column)
    if pa.types.is_dictionary(whole.type):
        whole = whole.dictionary_decode()
    if pa.types.is_nested(whole.type) or isinstance(whole.type, pa.BaseExtensionType):
        message = f"{name} must hold single values: it holds {whole.type}."
        raise InputTypeError(message)
    return whole


def length_of_lists(kind: Any, first: Callable[[], Any]) -> int | None:
    """Return the length of the lists of an Arrow type, or of the first list; None if not lists.

    `first` returns values of the column; it is called only if the type has no fixed length. The
    result is 0 if there are no values.
    """
    from pyarrow import compute, types

    if types.is_fixed_size_list(kind):
        return int(kind.list_size)
    if not is_list(kind):
        return None
    lengths = compute.list_value_length(first()).drop_null()
    return lengths[0].as_py() if len(lengths) else 0


def is_list(kind: Any) -> bool:
    """Return whether an Arrow type is a list type."""
    from pyarrow import types

    of_lists = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    return any(is_one(kind) for is_one in of_lists)


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type is text, or categories of text."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    of_text = (types.is_string, types.is_large_string, types.is_string_view)
    return any(is_one(kind) for is_one in of_text)


def one_array(column: Any) -> Any:
    """Combine the chunks of an Arrow column."""
    import pyarrow as pa

    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def refuse_other_types(wanted: Wanted, schema: Any, place: str) -> None:
    """Raise if an Arrow column to read as numbers does not hold numbers."""
    from pyarrow import types

    fits = (types.is_floating, types.is_integer, types.is_boolean, types.is_decimal, types.is_null)
    for name in (*wanted.numbers, *wanted.lists):
        found = inner = schema.field(name).type
        if name in wanted.lists:
            if not is_list(found):
                refuse_type(name, found, place, "lists of real numbers, one per class")
            inner = found.value_type
        if not any(is_one(inner) for is_one in fits) and not (
            name in wanted.signed and is_text(found)
        ):
            refuse_type(name, found, place)


def refuse_type(name: str, found: Any, place: str, what: str = "real numbers") -> None:
    """Raise because of the type of a column."""
    message = f"{name} must hold {what}: in {place} it holds {found}. Convert it to float first."
    if str(found) in ("string", "large_string", "string_view"):
        message += text_hint()
    raise InputTypeError(message)


def words_hint(word: str) -> str:
    """Return a hint on how to read labels in words."""
    return f" If labels are words, name the one that counts as 1: {keyword('positive', word)}."


def text_hint() -> str:
    """Return the hint how to read a column of text that is not known further."""
    scales = keyword("pred_scale", "percent"), keyword("label_scale", "percent")
    return f" For text such as 50%, pass {scales[0]} or {scales[1]}.{words_hint('yes')}"


_MOST_COLUMNS = 1 << 16
_MOST_CELLS = 1 << 24


def refuse_wide(columns: int, rows: int = 0) -> None:
    """Raise if a source has too many columns, or too many values that are read at once."""
    if columns > _MOST_COLUMNS:
        message = (
            f"there can be at most {_MOST_COLUMNS:,} columns: got {columns:,}. Leave out columns, "
            "or store many classes as lists."
        )
        raise InputError(message)
    if columns * rows > _MOST_CELLS:
        message = (
            f"there can be at most {_MOST_CELLS:,} values in rows that are read at once: got "
            f"{rows:,} objects with {columns:,} different keys. Use the same keys in all objects."
        )
        raise InputError(message)


def refuse_unknown(wanted: Wanted, present: list[str], place: str, hint: str = "") -> None:
    """Raise if a name matches no column or several; `hint` may explain why."""
    refuse_wide(len(present))
    for name in wanted.names:
        if present.count(name) != 1:
            problem = f"more than one column {name!r}" if name in present else f"no column {name!r}"
            names = f"{', '.join(map(repr, present)):.5000}"
            if "*" in name:
                hint += (
                    " A pattern stands for the columns of many classes: pass it as "
                    f"y_prob={{'model': {name!r}}} (--pred-columns)."
                )
            asked = " Rename one." if name in present else did_you_mean(name, present)
            message = f"{place} has {problem}.{asked} Its columns are: {names}.{hint}"
            raise InputError(message)


def coded(values: Any, name: str) -> Coded:
    """Encode an Arrow column as numbers and different texts; a missing value is None."""
    plain = values.combine_chunks() if hasattr(values, "combine_chunks") else values
    found = plain.dictionary_encode(null_encoding="encode")
    try:
        texts = [text_of(value) for value in found.dictionary.to_pylist()]
    except (OverflowError, ValueError) as error:
        message = f"{name} must hold values that Python can hold: {error}."
        raise InputError(message) from error
    different = {text: k for k, text in enumerate(dict.fromkeys(texts))}
    renumbered = np.array([different[text] for text in texts], dtype=np.int64)
    numbers = np.from_dlpack(found.indices)
    return Coded(renumbered[numbers], list(different))


def coded_groups(values: Any, name: str) -> Coded:
    """Encode an Arrow column without missing values as numbers and different names.

    The names are a NumPy array if they are integers or the text of integers, else an Arrow array
    of text. As Python objects, the names of several batches would take too much memory.
    """
    import pyarrow as pa

    plain = values.combine_chunks() if hasattr(values, "combine_chunks") else values
    is_text = pa.types.is_string(plain.type) or pa.types.is_large_string(plain.type)
    if not is_text and not pa.types.is_integer(plain.type):
        return coded(values, name)
    found = plain.dictionary_encode()
    names: Any = found.dictionary
    if not is_text or _WHOLE.fullmatch(str(names[0])):  # then the others may be integers too
        try:
            whole = names.cast(pa.int64())
        except pa.ArrowInvalid:
            whole = pa.nulls(len(names), pa.int64())
        if whole.cast(names.type).equals(names):  # not so for "007", a different group from "7"
            names = np.from_dlpack(whole)
        elif not is_text:
            return coded(values, name)
    numbers = np.from_dlpack(found.indices).astype(np.int64)
    return Coded(numbers, names)


def text_of(value: Any) -> str | None:
    """Return a value of a segment as text, the same for every engine; None if it is missing."""
    if isinstance(value, str):
        return value
    return None if value is None or str(value) in ("nan", "NaN", "<NA>", "NaT") else str(value)


def plain_word(text: str) -> str:
    """Return a whole number without its decimals, so that 1.0 is 1 too; other text as it is."""
    whole = re.fullmatch(r"(-?\d+)\.0*", text)
    return whole[1] if whole else text


def kept_rows(column: Any, kept: Column) -> Any:
    """Keep some rows of a NumPy or Arrow array."""
    if isinstance(column, np.ndarray):
        return column[kept]
    import pyarrow as pa

    return one_array(column).filter(pa.array(kept))


def missing_values(values: Any) -> Column:
    """Return which values of an Arrow column of any type are missing."""
    import pyarrow as pa

    marks = one_array(values.is_null(nan_is_null=True).cast(pa.uint8()))
    return np.from_dlpack(marks).view(np.bool_)


def missing_in_lists(lists: Any) -> Column:
    """Mark the lists of an Arrow column that are missing, or have a missing value in them."""
    from pyarrow import compute

    whole = one_array(lists)
    marks: Column = whole.is_null().to_numpy(zero_copy_only=False).copy()
    inside = np.isnan(as_float64(numbers(whole.flatten())))
    marks[compute.list_parent_indices(whole).to_numpy()[inside]] = True
    return marks


def _has_outside(values: Any) -> bool:
    """Return whether a column of numbers, or of lists of numbers, has a value outside [0, 1]."""
    return has_outside(
        values if isinstance(values, np.ndarray) else numbers(one_array(values).flatten())
    )


class Check(NamedTuple):
    """The rules for values of each batch, and how a message shows the first that breaks one."""

    name: str
    rules: tuple[Rule, ...]
    values: Callable[[Batch], Column]
    shown: Callable[[Batch, int, float], str] = lambda _batch, _row, value: f"is {value!r}"
    per_row: int = 1


Rules: TypeAlias = "list[tuple[str | Named, tuple[Rule, ...]]]"
"""Columns and the rules for their values."""


MANY_TARGETS = 101
"""With more targets than this, a set uses a coarser grid: 100 classes and the predicted one."""

LabelKind: TypeAlias = Literal["shares", "counts", "names"]
"""The content of a label of many classes: a share or a vote count per class, or a class name."""


class ClassRoles(NamedTuple):
    """The columns of the labels and predictions of many classes, in the order of the classes.

    There are two or more classes, so a single column holds lists or, for the label, class names.
    """

    names: tuple[str, ...]
    kind: LabelKind
    label: tuple[str, ...]
    models: tuple[tuple[str, ...], ...]
    ordered: bool = False

    @property
    def several(self) -> tuple[tuple[str, ...], ...]:
        """The columns of the label and of each model that hold one number per class."""
        return self.models if self.kind == "names" else (self.label, *self.models)


class Values(NamedTuple):
    """How to convert values to probabilities, as the caller states; never guessed."""

    pred_scale: Scale = "probability"
    label_scale: Scale = "probability"
    positive: str | None = None  # the word that counts as 1
    drop_missing: bool = False

    def refuse_unknown(self) -> None:
        """Raise if a scale is unknown, or if options contradict each other."""
        for name, scale in (("pred_scale", self.pred_scale), ("label_scale", self.label_scale)):
            if scale not in SCALES:
                message = f"{name} must be one of {', '.join(SCALES)}: got {scale!r:.60}."
                raise InputError(message)
        if self.positive is not None and self.label_scale != "probability":
            message = "label_scale is for numbers, and positive for words: leave one of them out."
            raise InputError(message)


def scaled(values: Column, scale: Scale) -> Column:
    """Return numbers of a scale as probabilities; several columns are logits of classes."""
    if scale == "probability":
        return values
    if scale == "percent":
        return as_float64(values) / 100
    plain = as_float64(values)
    if scale == "logprob":
        with np.errstate(over="ignore"):  # infinity is refused, as every value above 1 is
            return np.exp(plain)
    from scipy.special import expit, softmax

    found: Column = expit(plain) if plain.ndim == 1 else softmax(plain, axis=1)
    return found


_MOST_WORDS = 20


class Words(NamedTuple):
    """The number of rows of each word of a column of labels: the positive and common others.

    `outside` are the columns of `Roles.rescaled` that have a value outside [0, 1].
    """

    counts: dict[str, int] = {}  # noqa: RUF012 - never changed
    outside: frozenset[str] = frozenset()

    def with_(self, other: Words) -> Words:
        """Add the counts of another part of the rows."""
        total = {
            word: self.counts.get(word, 0) + other.counts.get(word, 0)
            for word in {**self.counts, **other.counts}
        }
        often = sorted(total, key=lambda word: -total[word])[:_MOST_WORDS]
        return Words({word: total[word] for word in often}, self.outside | other.outside)


class Ready(NamedTuple):
    """A batch ready to be added up: rows with missing values dropped, and words converted."""

    batch: Batch
    dropped: int = 0
    words: Words = Words()
    joined: Any = None  # a `Joined`, if votes are looked up


class Roles(NamedTuple):
    """The role of each column.

    With classes, `y_true` and `y_prob` are the names of the label and the models. `bounds` are the
    columns of the lower and upper ends of labels; `y_true` then names both.
    """

    y_true: str
    y_prob: tuple[str, ...]
    sample_weight: str | None = None
    n_votes: str | int | None = None
    by: tuple[str, ...] = ()
    group: str | None = None
    classes: ClassRoles | None = None
    bounds: tuple[str, str] | None = None
    logits: bool = False  # whether predictions stay logits
    values: Values = Values()
    votes: ItemVotes | None = None  # raw votes, which determine the labels
    counts: tuple[str, ...] = ()  # columns of vote counts, with one prediction per row
    positive_count: str = ""  # the column of counts that counts as 1
    ranges: tuple[Ranges, ...] = ()  # of the columns of `by` that are cut
    days: Days | None = None  # the column of `by` that has days

    def segment(self, batch: Batch, name: str) -> Any:
        """Return a column of `by`, cut into ranges or days if it is one of these."""
        values = batch[Named(name)]
        if self.days is not None and name == self.days.column:
            return self.days.names(values)
        ranges = next((each for each in self.ranges if each.column == name), None)
        return values if ranges is None else ranges.names(values)

    @property
    def made(self) -> bool:
        """Whether labels are computed, rather than read from a column of numbers."""
        return self.values.positive is not None or self.votes is not None or bool(self.counts)

    @property
    def rater(self) -> str | None:
        """The column of raters, if intervals are to hold for new raters."""
        if self.votes is None or not self.votes.columns.raters:
            return None
        return self.votes.columns.worker or "raters"

    @property
    def drops_unmatched(self) -> bool:
        """Whether rows without votes are dropped."""
        return self.votes is not None and self.votes.columns.drop_unmatched

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets of the predictions, as in `TableSet.targets`."""
        if self.classes is not None:
            names = self.classes.names
            return (TOP, *names, *(thresholds(names) if self.classes.ordered else ()))
        return (LABEL_TARGET,) if self.bounds is None else BOUNDS

    @property
    def wanted(self) -> Wanted:
        """The columns to read."""
        optional = (self.sample_weight, self.n_votes)
        read = [name for name in optional if isinstance(name, str)]
        named = self.by if self.group is None else (*self.by, self.group)
        if self.classes is None:
            labels = self.label_columns
            if self.made:
                labels = self.counts
                named = (*named, *self._label_names)
            return Wanted(
                (*labels, *self.y_prob, *read),
                tuple(dict.fromkeys(named)),
                percents=self._percents(() if self.made else labels, self.y_prob),
            )
        found = self.classes
        lists: list[str] = []
        for columns in found.several:
            (lists if len(columns) == 1 else read).extend(columns)
        if found.kind == "names":
            named = (*named, *found.label)
        return Wanted(
            tuple(dict.fromkeys(read)),
            tuple(dict.fromkeys(named)),
            tuple(dict.fromkeys(lists)),
            len(found.names),
            self._percents(found.label, tuple(chain.from_iterable(found.models))),
        )

    @property
    def label_columns(self) -> tuple[str, ...]:
        """The columns of labels that are numbers on a scale."""
        if self.classes is not None:
            return self.classes.label if self.classes.kind == "shares" else ()
        return () if self.made else self.bounds or (self.y_true,)

    @property
    def states_votes(self) -> bool:
        """Whether labels are shares with a stated number of votes, which both may contradict."""
        return self.n_votes is not None and bool(self.label_columns)

    @property
    def rescaled(self) -> list[tuple[str, tuple[str, ...]]]:
        """The percentages and logits: the keyword that states it, and the columns of one source."""
        models = [(name,) for name in self.y_prob] if self.classes is None else self.classes.models
        stated = (
            ("label_scale", self.values.label_scale, [self.label_columns]),
            ("pred_scale", "logit" if self.logits else self.values.pred_scale, models),
        )
        return [
            (keyword(name, scale), columns)
            for name, scale, several in stated
            if scale in ("percent", "logit")
            for columns in several
            if columns
        ]

    def notes(self, words: Words) -> list[str]:
        """Return notes on scales that the values make unlikely."""
        return [
            unlikely_scale(", ".join(columns), stated)
            for stated, columns in self.rescaled
            if not words.outside.intersection(columns)
        ]

    def _percents(self, labels: tuple[str, ...], preds: tuple[str, ...]) -> tuple[str, ...]:
        """Return the columns that the caller states to be percentages."""
        scales = (self.values.label_scale, labels), (self.values.pred_scale, preds)
        return tuple(name for scale, names in scales if scale == "percent" for name in names)

    @property
    def rules(self) -> Rules:
        """The rules for the values of each column, in the order in which they are applied."""
        found: Rules = []
        if self.classes is None:  # else `class_checks` has the rules for labels and predictions
            if self.made:  # the rules for counts are applied to all counts together
                found += [(Named(name), (MISSING,)) for name in self._label_names]
            else:
                rules = scaled_rules(LABEL, self.values.label_scale, "label_scale")
                found += [(name, rules) for name in dict.fromkeys(self.label_columns)]
            rules = scaled_rules(UNIT, self.values.pred_scale, "pred_scale")
            found += [(name, LOGIT if self.logits else rules) for name in self.y_prob]
        if self.sample_weight is not None:
            found.append((self.sample_weight, WEIGHT))
        if isinstance(self.n_votes, str):
            found.append((self.n_votes, VOTES))
        return found if self.group is None else [*found, (Named(self.group), (MISSING,))]

    def ready(self, batch: Batch) -> Ready:
        """Return a batch with its labels, without rows of missing values if these are dropped.

        Columns of `by` may have missing values. Their rows are a segment.
        """
        found = self._labeled(batch)
        names = {name for _, columns in self.rescaled for name in columns}
        outside = frozenset(name for name in names if _has_outside(found.batch[name]))
        return found._replace(words=found.words._replace(outside=outside))

    def _labeled(self, batch: Batch) -> Ready:
        """Return a batch with its labels, and the words of labels."""
        dropped = 0
        if self.values.drop_missing:
            missing = self.missing(batch)
            dropped = int(missing.sum())
            if dropped:
                batch = {key: kept_rows(column, ~missing) for key, column in batch.items()}
        if self.counts:
            return Ready({**batch, **self._counted(batch)}, dropped)
        if self.votes is not None:
            ready = self._with_votes(batch, self.votes)
            return ready._replace(dropped=dropped + ready.dropped)
        if self.values.positive is None:
            return Ready(batch, dropped)
        found = coded(batch[Named(self.y_true)], self.y_true)
        outcomes = [
            np.nan if word is None else float(self.values.positive in (word, plain_word(word)))
            for word in found.names
        ]
        labels = np.array(outcomes, dtype=np.float64)[found.numbers]
        counts = np.bincount(found.numbers, minlength=len(found.names)).tolist()
        words = {word: n for word, n in zip(found.names, counts, strict=True) if word is not None}
        return Ready({**batch, Outcomes(self.y_true): labels}, dropped, Words(words))

    def _counted(self, batch: Batch) -> Batch:
        """Return labels and numbers of votes from counts; NaN if a count breaks a rule."""
        columns = np.stack([as_float64(batch[name]) for name in self.counts])
        votes = columns.sum(axis=0)
        bad = is_bad_count(columns).any(axis=0) | (votes < 1)
        own = columns[self.counts.index(self.positive_count)]
        share = np.divide(own, votes, out=np.full_like(own, np.nan), where=~bad)
        return {Outcomes(self.y_true): share, Outcomes(self.y_true, "votes"): votes}

    def _with_votes(self, batch: Batch, votes: ItemVotes) -> Ready:
        """Return the votes on each row's item; rows without votes are omitted and counted."""
        from softcal.sources.votes import Joined

        items = batch[Named(votes.columns.item)]
        known = ~missing_values(items)  # missing items have a rule of their own
        at = votes.at(items)
        alone = (at < 0) & known
        first = str(text_of(items[int(alone.argmax())].as_py())) if alone.any() else ""
        seen = np.bincount(at[at >= 0], minlength=len(votes.place))
        kept = {key: kept_rows(column, ~alone) for key, column in batch.items()}
        at = at[~alone]
        labels, totals = votes.labels
        made = {
            Outcomes(self.y_true): np.where(at < 0, np.nan, labels[at]),
            Outcomes(self.y_true, "votes"): np.where(at < 0, 1.0, totals[at]),
            Outcomes(self.y_true, "item"): at,
        }
        without = int(alone.sum())
        dropped = without if votes.columns.drop_unmatched else 0
        return Ready({**kept, **made}, dropped, joined=Joined(seen, without, first))

    @property
    def _label_names(self) -> tuple[str, ...]:
        """The columns of names from which labels are computed."""
        if self.votes is not None:
            return (self.votes.columns.item,)
        return (self.y_true,) if self.values.positive is not None else ()

    def missing(self, batch: Batch) -> Column:
        """Return which rows have a missing value in a required column."""
        wanted, marks = self.wanted, np.zeros(rows_of(batch), dtype=bool)
        for name in wanted.numbers:
            marks |= np.isnan(as_float64(batch[name]))
        for name in wanted.named:
            day = None if self.days is None else self.days.column
            if name not in self.by or name in (self.group, day, *self._label_names):
                marks |= missing_values(batch[Named(name)])
        for name in wanted.lists:
            marks |= missing_in_lists(batch[name])
        return marks

    def rows(self, columns: Mapping[Any, Any], pred: str, label: str | None = None) -> Rows:
        """Return the rows of one model."""
        label = self.y_true if label is None else label
        weight, votes = self.weights_and_votes(columns, len(columns[pred]))
        if self.made:
            y = columns[Outcomes(label)]
        else:
            y = scaled(columns[label], self.values.label_scale)
        p = scaled(columns[pred], self.values.pred_scale)
        return Rows(y, p, weight, votes, self.names(label, pred))

    def weights_and_votes(
        self, columns: Mapping[Any, Any], size: int
    ) -> tuple[Column | None, Column | None]:
        """Return the weight and the number of votes of each row, or None."""
        w, m = self.sample_weight, self.n_votes
        if self.votes is not None or self.counts:
            counted: Column = columns[Outcomes(self.y_true, "votes")]
            return None if w is None else columns[w], counted
        votes = np.broadcast_to(np.float64(m), (size,)) if isinstance(m, int) else None
        return (
            None if w is None else columns[w],
            columns[m] if isinstance(m, str) else votes,
        )

    def names(self, label: str, pred: str) -> Names:
        """Return the names of the columns in messages."""
        return Names(label, pred, self.sample_weight or "", str(self.n_votes))

    def grid(self, bins: Bins) -> Bins:
        """Return the grid of the set, which is coarser with groups or very many classes.

        The sums of 1,000 classes take 93 MB per model on the standard grid, and as much again
        in each thread. On 118 bins, they take 17 MB.
        """
        if self.group is not None:
            return Bins.tie_grid(bins)
        return Bins.grid(bins, coarse=len(self.targets) > MANY_TARGETS)

    def refuse_impossible(self) -> None:
        """Raise if roles contradict each other: a label as prediction, or one model twice."""
        if not self.y_prob:
            message = "y_prob must name at least one column."
            raise InputError(message)
        self.values.refuse_unknown()
        if self.classes is None:
            self._refuse_columns()
        else:
            self._refuse_class_columns(self.classes)
        if (self.votes is not None or self.counts) and self.n_votes is not None:
            message = "leave n_votes out: the votes determine their number."
            raise InputError(message)
        if self.votes is not None and self.votes.columns.raters and self.group is not None:
            message = (
                "raters=True cannot be combined with groups: intervals account for one of the two. "
                "Omit one of them."
            )
            raise InputError(message)
        if self.values.positive is not None and (self.classes or self.bounds):
            message = (
                "leave positive out: it is for one column of labels in words, with one prediction "
                "per row."
            )
            raise InputError(message)
        if len(set(self.by)) < len(self.by):
            message = f"each 'by' column must be named once: got {', '.join(map(repr, self.by))}."
            raise InputError(message)
        if isinstance(self.n_votes, int) and not 1 <= self.n_votes < LARGEST_VOTES:
            message = f"n_votes must be 1 or more: got {self.n_votes}."
            raise InputError(message)

    def _refuse_columns(self) -> None:
        labels = (self.y_true,) if self.bounds is None else self.bounds
        for pred in self.y_prob:
            if pred in labels:
                message = f"label and prediction must be different columns: both are {pred!r}."
                raise InputError(message)
            if self.y_prob.count(pred) > 1:
                message = f"each prediction must be named once: {pred!r} is named more than once."
                raise InputError(message)
        if self.bounds is not None:
            for what, given in (("n_votes", self.n_votes), ("groups", self.group)):
                if given is not None:
                    message = (
                        f"leave {what} out: labels known as intervals give bounds of SMECE, which "
                        "have no standard error."
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
            message = "leave n_votes out: the vote counts determine the number of votes."
            raise InputError(message)
