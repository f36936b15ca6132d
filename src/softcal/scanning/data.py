"""The description of data: where the rows are, what the label is, and what predicts it.

Each kind of label is one small object, so that a combination that makes no sense cannot be written.
`scan`, the command line, and TOML files build the same `Data`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeAlias

from softcal._display import keyword
from softcal._validation.days import Every
from softcal._validation.rules import LARGEST_VOTES, SCALES, Scale, is_whole
from softcal.bins import Bins
from softcal.exceptions import InputError, InputTypeError

Aggregate: TypeAlias = Literal["shares", "dawid-skene"]
AGGREGATES = ("shares", "dawid-skene")
FORMATS = ("csv", "tsv", "json", "jsonl", "parquet", "arrow", "xlsx")


class _Stated:
    """Mixin: check what is stated, and print it as the call that makes it, without defaults."""

    def __post_init__(self) -> None:
        for name, rule in _RULES.items():
            if getattr(self, name, None) is not None:
                object.__setattr__(self, name, rule(name, getattr(self, name)))
        self._refuse_impossible()

    def _refuse_impossible(self) -> None:
        """Raise if parts contradict each other."""

    def __repr__(self) -> str:
        fields: Mapping[str, Any] = self.__dataclass_fields__  # type: ignore[attr-defined]
        given = [
            f"{name}={getattr(self, name)!r}"
            for name, own in fields.items()
            if getattr(self, name) != own.default
        ]
        return f"{type(self).__name__}({', '.join(given)})"


@dataclass(frozen=True, repr=False)
class Files(_Stated):
    r"""Files whose content does not determine how to read them. A plain path needs no options.

    Parameters
    ----------
    paths : path, glob pattern, folder, or several of these
        Parquet, CSV, TSV, JSON, JSON lines, Excel (.xlsx), or Arrow files.
    sep, decimal, encoding : str, optional
        For text: the separator of cells ("tab" for tabs), the decimal mark ("." or ","), and the
        encoding if it is not UTF-8.
    format : str, optional
        "csv", "tsv", "json", "jsonl", "parquet", "arrow", or "xlsx", if content and name do not
        determine it.
    sheet : str, optional
        The sheet of an Excel workbook that has several.
    records : str, optional
        For a JSON document: the path of the list of records in it, such as "results.results".

    Examples
    --------
    >>> Files("votes.txt", sep="tab", encoding="latin-1")
    Files(paths='votes.txt', sep='\t', encoding='latin-1')
    """

    paths: Any
    sep: str | None = None
    decimal: str = "."
    encoding: str | None = None
    format: str | None = None
    sheet: str | None = None
    records: str | None = None

    def _refuse_impossible(self) -> None:
        _one_of("input_format", self.format, (None, *FORMATS))
        if not are_paths(self.paths):
            message = (
                f"Files must have a path, or a list of paths, not {type(self.paths).__name__}. "
                "Options for reading files have no meaning for anything else."
            )
            raise InputTypeError(message)


def are_paths(source: Any) -> bool:
    """Return whether a source is a path, or several."""
    several = isinstance(source, list | tuple) and bool(source)
    each = source if several else [source]
    return all(isinstance(one, str | os.PathLike) for one in each)


@dataclass(frozen=True, repr=False)
class Column(_Stated):
    """A column of probabilities or of 0 and 1. A plain name is `Column(name)`.

    Parameters
    ----------
    name : str
        The column.
    scale : {"probability", "percent", "logit", "logprob"}
        The scale of the numbers.
    positive : value, optional
        For labels in words: the value that counts as 1. Every other value counts as 0.

    Examples
    --------
    >>> Column("grade", positive="Correct")
    Column(name='grade', positive='Correct')
    """

    name: str
    scale: Scale = "probability"
    positive: Any = None

    def _refuse_impossible(self) -> None:
        if self.positive is not None and self.scale != "probability":
            message = "a scale is for numbers, and positive for words: leave one of them out."
            raise InputError(message)


@dataclass(frozen=True, repr=False)
class Shares(_Stated):
    """A column of shares of votes, with the number of votes behind each.

    Parameters
    ----------
    name : str
        The column of shares.
    votes : str or int
        The column of numbers of votes, or one number for all rows.
    scale : {"probability", "percent", "logit", "logprob"}
        The scale of the shares.

    Examples
    --------
    >>> Shares("share", votes="n")
    Shares(name='share', votes='n')
    """

    name: str
    votes: str | int
    scale: Scale = "probability"


@dataclass(frozen=True, repr=False)
class Counts(_Stated):
    """Columns of vote counts, one per class, beside one prediction per row.

    Parameters
    ----------
    columns : str or sequence of str
        The columns, as names or as a pattern ("votes_*").
    positive : str, optional
        The column, or the text that the star of a pattern matches, whose share is the label.
        Default: the second of two named columns.

    Examples
    --------
    >>> Counts(["no", "yes"])
    Counts(columns=('no', 'yes'))
    """

    columns: str | Sequence[str]
    positive: str | None = None


@dataclass(frozen=True, repr=False)
class Bounds(_Stated):
    """Labels known as intervals, for `smece_bounds`: columns of their lower and upper ends."""

    low: str
    high: str
    scale: Scale = "probability"


@dataclass(frozen=True, repr=False)
class RawVotes(_Stated):
    """Votes on items, one per row: in another source, or in the rows themselves.

    Parameters
    ----------
    vote : str, optional
        The column of votes. Not with `Votes`, which are counted already.
    item : str
        The column of items, of votes and of predictions.
    source : path, Files, frame, or Votes, optional
        The votes. Default: the rows themselves are votes, and predictions must be the same in all
        rows of an item.
    rater : str, optional
        The column of who voted.
    positive : value, optional
        The vote that counts as 1, beside one prediction per row.
    raters : bool, default=False
        Whether intervals and tests hold for new raters too; needs `rater`.
    kind : str, optional
        The column of the kind of rater, for scores by kind.
    aggregate : {"shares", "dawid-skene"}, default="shares"
        The label of an item: the share of its votes, or the posterior of `dawid_skene`, which
        needs `rater` and assumes one true class per item.
    allow_repeated : bool, default=False
        Whether a rater may have several votes on an item.
    drop_unmatched : bool, default=False
        Whether to leave out items without votes, and votes on items without a prediction.

    Examples
    --------
    >>> RawVotes("answer", item="id", source="votes.csv", positive="yes")
    RawVotes(vote='answer', item='id', source='votes.csv', positive='yes')
    """

    vote: str | None = None
    item: str | None = None
    source: Any = None
    rater: str | None = None
    positive: Any = None
    raters: bool = False
    kind: str | None = None
    aggregate: Aggregate = "shares"
    allow_repeated: bool = False
    drop_unmatched: bool = False

    def _refuse_impossible(self) -> None:
        if self.item is None:
            message = "votes need items: pass item=, the column of the item of each vote."
            raise InputError(message)
        if self.counted and (self.vote or self.rater):
            message = "leave vote and rater out: Votes already have them."
            raise InputError(message)
        if not self.counted and self.vote is None:
            message = "pass vote=, the column of the votes."
            raise InputError(message)
        if self.raters and self.rater is None and not self.counted:
            message = f"{keyword('raters')} needs rater=, the column of who voted."
            raise InputError(message)

    @property
    def counted(self) -> bool:
        """Whether the source is `Votes`, which are counted already."""
        return hasattr(self.source, "effective_totals")


@dataclass(frozen=True, repr=False)
class Classes(_Stated):
    """Many classes: one column of class names, one column per class, or one column of lists.

    Parameters
    ----------
    columns : str or sequence of str
        As a label: a column of class names or numbers, columns of shares as names or as a pattern
        ("share_*"), or a column of lists of shares. As predictions: the latter two.
    names : sequence of str, optional
        Names of the classes in the order of the columns. Default: what the star of the pattern
        matches, else the names of the columns, else 0, 1, ...
    ordered : bool, default=False
        Whether the classes are in order, lowest first, as ratings from 1 to 5 are.
    votes : str or int, optional
        The column of the number of votes behind the shares of each row, or one number.
    counts : bool, default=False
        Whether the columns hold vote counts instead of shares.
    scale : {"probability", "percent", "logit", "logprob"}
        The scale of the numbers. Logits of classes become their softmax.

    Examples
    --------
    >>> Classes("rating", ordered=True)
    Classes(columns='rating', ordered=True)
    """

    columns: str | Sequence[str]
    names: Sequence[Any] | None = None
    ordered: bool = False
    votes: str | int | None = None
    counts: bool = False
    scale: Scale = "probability"

    def _refuse_impossible(self) -> None:
        if self.votes is not None and self.counts:
            message = "leave votes out: the counts determine the number of votes."
            raise InputError(message)


Label: TypeAlias = Column | Shares | Counts | Bounds | RawVotes | Classes


@dataclass(frozen=True, repr=False)
class Long(_Stated):
    """Predictions of several models in one column: one row per item and model, or per model's file.

    Each row has its own label, so each model may have its own: the correctness of its answer.

    Parameters
    ----------
    column : str, Column, or Classes
        The predictions.
    model : str, optional
        The column of the model. Default: the source maps the name of each model to its rows, or is
        several files, each of which is a model of that name.
    item : str, optional
        The column of items, by which models are compared in pairs.
    epochs : bool, default=False
        Whether rows of one item and model are repetitions, whose labels are votes.
    drop_unmatched : bool, default=False
        Whether to leave out items that some model lacks. Otherwise a set with pairs of models
        refuses them.

    Examples
    --------
    >>> Long("confidence", model="model", item="id")
    Long(column='confidence', model='model', item='id')
    """

    column: str | Column | Classes
    model: str | None = None
    item: str | None = None
    epochs: bool = False
    drop_unmatched: bool = False

    def _refuse_impossible(self) -> None:
        if self.epochs and self.item is None:
            message = "epochs need items: pass item=, the column of the item of each row."
            raise InputError(message)


@dataclass(frozen=True, repr=False)
class Cut(_Stated):
    """A column of numbers that is cut into ranges, which define segments.

    Parameters
    ----------
    column : str
        The column.
    at : int or sequence of float
        How many ranges with about the same number of rows, or the numbers to cut at.

    Examples
    --------
    >>> Cut("age", [40, 60])
    Cut(column='age', at=[40, 60])
    """

    column: str
    at: int | Sequence[float]


@dataclass(frozen=True, repr=False)
class Days(_Stated):
    """A column of days or times, grouped by day, week, or month, which define segments.

    Parameters
    ----------
    column : str
        The column.
    every : {"day", "week", "month"}
        What days are grouped by.
    format : str, optional
        The format of text, such as "%m/%d/%Y". Default: ISO dates and times.
    """

    column: str
    every: Every | Literal["day", "week", "month"] = Every.DAY
    format: str | None = None


Segment: TypeAlias = str | Cut | Days


@dataclass(frozen=True)
class Model:
    """The predictions of a model, and its own label, if it has one."""

    pred: Column | Classes
    label: Label | None = None


@dataclass(frozen=True, repr=False)
class Data(_Stated):
    """The whole description, as `scan` receives it."""

    source: Any
    y_true: Label | None
    y_prob: Mapping[str, Model] | Long
    by: tuple[Segment, ...] = ()
    sample_weight: str | None = None
    groups: str | None = None
    bins: Bins = field(default_factory=lambda: Bins.uniform(10))
    pairs: bool = True
    drop_missing: bool = False
    date: str | None = None
    keep_logits: bool = False  # whether predictions that are logits are read as they are

    @staticmethod
    def of(source: Any, **given: Any) -> Data:
        """Return the description of what `scan` is given, or raise if it contradicts itself."""
        given["y_true"] = label_of(given.get("y_true"))
        given["y_prob"] = models_of(given["y_prob"], given["y_true"])
        by = given.get("by", ())
        several = isinstance(by, Sequence) and not isinstance(by, str)
        given["by"] = tuple(by) if several else (by,)
        given["bins"] = Bins.of(given.get("bins", 10))
        date = given.get("date")
        given["date"] = None if date is None else str(date)
        return Data(source, **given)

    @property
    def is_of_classes(self) -> bool:
        """Whether there are many classes."""
        models = self.y_prob
        first = models.column if isinstance(models, Long) else next(iter(models.values())).pred
        return isinstance(first, Classes)

    @property
    def columns_of_segments(self) -> tuple[str, ...]:
        """The columns of segments."""
        return tuple(each if isinstance(each, str) else each.column for each in self.by)

    def with_(self, **changed: Any) -> Data:
        """Return another description."""
        return replace(self, **changed)

    def _refuse_impossible(self) -> None:  # noqa: C901 - one rule after another
        for each in self.by:
            if not isinstance(each, Cut | Days):
                _name("by", each)
        if len(set(self.columns_of_segments)) < len(self.by):
            names = ", ".join(map(repr, self.columns_of_segments))
            message = f"each 'by' column must be named once: got {names}."
            raise InputError(message)
        if not isinstance(self.y_prob, Long) and not self.y_prob:
            message = "y_prob must name at least one column."
            raise InputError(message)
        labels = [self.y_true]
        if not isinstance(self.y_prob, Long):
            labels = [model.label or self.y_true for model in self.y_prob.values()]
        for label in labels:
            self._refuse_label(label)
        if isinstance(self.y_true, RawVotes) and self.y_true.raters and self.groups is not None:
            message = (
                f"{keyword('raters')} cannot be combined with groups: intervals account for one of "
                "the two. Omit one of them."
            )
            raise InputError(message)
        if getattr(self.y_true, "kind", None) is not None and self.sample_weight is not None:
            message = "weights cannot be combined with kinds of raters (--by-rater): omit one."
            raise InputError(message)

    def _refuse_label(self, label: Label | None) -> None:
        if label is None:
            message = "y_true must name the label."
            raise InputError(message)
        several = isinstance(label, Classes)
        if self.is_of_classes and not several and not isinstance(label, RawVotes):
            message = (
                "predictions of many classes need a label of classes: pass "
                'y_true=Classes("share_*") or y_true=Classes("species").'
            )
            raise InputError(message)
        if several and not self.is_of_classes:
            message = (
                "a label of many classes needs predictions of them: pass y_prob as a mapping, "
                'such as y_prob={"model": "prob_*"}.'
            )
            raise InputError(message)
        if not self.is_of_classes and not isinstance(self.y_prob, Long):
            own = {label.name} if isinstance(label, Column | Shares) else set()
            own = {label.low, label.high} if isinstance(label, Bounds) else own
            for model in self.y_prob.values():
                if isinstance(model.pred, Column) and model.pred.name in own:
                    message = (
                        "label and prediction must be different columns: both are "
                        f"{model.pred.name!r}."
                    )
                    raise InputError(message)


def label_of(given: Any) -> Label | None:
    """Return the object of a label; a name is a column."""
    if given is None or isinstance(given, Column | Shares | Counts | Bounds | RawVotes | Classes):
        return given
    if isinstance(given, str):
        return Column(given)
    message = (
        "y_true must be the name of a column, or a Column, Shares, Counts, Bounds, RawVotes, or "
        f"Classes: got {given!r:.60}."
    )
    raise InputTypeError(message)


def models_of(given: Any, label: Label | None) -> Mapping[str, Model] | Long:
    """Return the models of what `scan` is given as `y_prob`."""
    several = isinstance(label, Classes)
    if isinstance(given, Long):
        return replace(given, column=_pred(given.column, several=several))
    if isinstance(given, str | Column | Classes):
        given = [given]
    if isinstance(given, Mapping):
        return {str(name): _model(each, several=several) for name, each in given.items()}
    if not isinstance(given, Sequence):
        message = (
            "y_prob must be the name of a column, several names, a mapping from models to columns, "
            f"or Long: got {given!r:.60}."
        )
        raise InputTypeError(message)
    preds = [_pred(each, several=several) for each in given]
    names = [_text_of(each) for each in preds]
    for name in names:
        if names.count(name) > 1:
            message = f"each prediction must be named once: {name!r} is given twice."
            raise InputError(message)
    return {name: Model(each) for name, each in zip(names, preds, strict=True)}


def _model(given: Any, *, several: bool) -> Model:
    """Return a model of a mapping: its predictions, or these and its own label."""
    if isinstance(given, tuple) and len(given) == 2 and not several:
        return Model(_pred(given[0], several=isinstance(given[1], Classes)), label_of(given[1]))
    return Model(_pred(given, several=several))


def _pred(given: Any, *, several: bool) -> Column | Classes:
    if isinstance(given, Column | Classes):
        return given
    is_pattern = isinstance(given, str) and "*" in given
    if several or is_pattern or not isinstance(given, str):
        return Classes(given)
    return Column(given)


def _text_of(given: Column | Classes) -> str:
    if isinstance(given, Column):
        return given.name
    return given.columns if isinstance(given.columns, str) else ",".join(given.columns)


def _votes(_what: str, given: Any) -> str | int:
    if isinstance(given, str):
        return given
    if not is_whole(given):
        message = f"votes must be a column or a whole number: got {given!r:.60}."
        raise InputTypeError(message)
    if not 1 <= given < LARGEST_VOTES:
        message = f"votes must be 1 or more: got {given}."
        raise InputError(message)
    return int(given)


def _name(what: str, name: Any) -> str:
    if not isinstance(name, str):
        message = f"{what} must be the name of a column: got {name!r:.60}."
        raise InputTypeError(message)
    return name


def _names(what: str, names: Any) -> str | tuple[str, ...]:
    """Return a name, a pattern, or several names, of which the object can then be a key."""
    if isinstance(names, str):
        return names
    if not isinstance(names, Sequence) or not names:
        message = f"{what} must name columns: got {names!r:.60}."
        raise InputTypeError(message)
    return tuple(_name(what, name) for name in names)


def _one_of(what: str, value: Any, known: Sequence[object]) -> Any:
    if value not in known:
        names = ", ".join(str(each) for each in known if each is not None)
        message = f"{what} must be one of {names}: got {value!r:.60}."
        raise InputError(message)
    return value


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        message = f"{name} must be True or False: got {value!r:.60}."
        raise InputTypeError(message)
    return value


def _sep(_what: str, given: str) -> str:
    sep = "\t" if given in ("tab", "\\t") else given
    if len(sep) != 1 or sep in '"\r\n' or not sep.isascii():
        message = f"sep must be one character between cells, or 'tab': got {given!r:.60}."
        raise InputError(message)
    return sep


def _encoding(_what: str, encoding: str) -> str:
    try:
        "".encode(encoding).decode(encoding)
    except (LookupError, TypeError, ValueError) as error:
        message = (
            "encoding must be one that Python knows, such as 'latin-1', 'cp1252', or 'utf-16': "
            f"got {encoding!r:.60}."
        )
        raise InputError(message) from error
    return encoding


_RULES: Mapping[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(
        ("name", "low", "high", "item", "vote", "rater", "kind", "model", "sample_weight",
         "groups"), _name,
    ),
    **dict.fromkeys(
        ("raters", "allow_repeated", "drop_unmatched", "ordered", "counts", "epochs", "pairs",
         "drop_missing"), _flag,
    ),
    "columns": _names,
    "names": lambda _what, names: names if isinstance(names, str) else tuple(names),
    "votes": _votes,
    "positive": lambda _what, value: str(value),
    "scale": partial(_one_of, known=SCALES),
    "aggregate": partial(_one_of, known=AGGREGATES),
    "every": lambda what, every: Every(_one_of(what, every, tuple(Every))),
    "sep": _sep,
    "decimal": partial(_one_of, known=(".", ",")),
    "encoding": _encoding,
}  # fmt: skip
"""What each part of an object must be, by its name; a part has one meaning in all objects."""
