"""The options that describe the data, once for all commands, and the description they state."""

from __future__ import annotations

import inspect
import json
import math
import re
import shlex
import tomllib
from copy import copy
from enum import StrEnum
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

from softcal.cli.options import as_files, column_option, given
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from softcal.scanning.data import Data, Files, Label
    from softcal.table.tableset import TableSet


class Scale(StrEnum):
    """The scale of labels or predictions."""

    PROBABILITY = "probability"
    PERCENT = "percent"
    LOGIT = "logit"
    LOGPROB = "logprob"


class InputFormat(StrEnum):
    """The format of a file."""

    CSV = "csv"
    TSV = "tsv"
    JSON = "json"
    JSONL = "jsonl"
    PARQUET = "parquet"
    ARROW = "arrow"
    XLSX = "xlsx"


class Aggregate(StrEnum):
    """The method that computes the label of an item from its votes."""

    SHARES = "shares"
    DAWID_SKENE = "dawid-skene"


def _rare(text: str, metavar: str, panel: str, *names: str) -> Any:
    """Return an option that only `--help-all` lists."""
    return typer.Option(*names, help=text, metavar=metavar, rich_help_panel=panel, hidden=True)


def _rare_column(text: str, panel: str) -> Any:
    found = column_option(text)
    found.rich_help_panel, found.hidden = panel, True
    return found


_CLASSES, _VOTES, _MODELS = "Many classes", "Raw votes", "Models"
_READING = "How to read the rows"
_SCALES = "probability, percent, logit, or logprob"
_COLS = "a,b,c or PREFIX*"


class Described(NamedTuple):
    """The options about the data: which columns have which role, and how to read the rows."""

    label: Annotated[str | None, column_option("Column of labels in [0, 1].")] = None
    pred: Annotated[
        list[str] | None, column_option("Column of predictions in [0, 1]; repeat for each model.")
    ] = None
    by: Annotated[
        list[str] | None,
        column_option("Column of segments: also score each value separately; may be repeated."),
    ] = None
    weight: Annotated[str | None, column_option("Column of row weights.")] = None
    votes: Annotated[
        str | None, column_option("Column of the number of votes behind each label.")
    ] = None
    group: Annotated[
        str | None, column_option("Column of groups: rows of the same group are not independent.")
    ] = None
    positive: Annotated[
        str | None,
        typer.Option(help="Labels in words: the word that counts as 1.", metavar="WORD"),
    ] = None
    drop_missing: Annotated[
        bool,
        typer.Option("--drop-missing", help="Drop rows with a missing value, and say how many."),
    ] = False
    data_file: Annotated[
        Path | None,
        typer.Option(
            "--data", help="TOML file with these options, as `softcal inspect` writes it.",
            metavar="TOML",
        ),
    ] = None  # fmt: skip
    label_low: Annotated[
        str | None, _rare_column("Labels known as intervals: column of lower ends.", _READING)
    ] = None
    label_high: Annotated[
        str | None, _rare_column("Labels known as intervals: column of upper ends.", _READING)
    ] = None
    label_columns: Annotated[
        str | None, _rare(f"Columns of label shares: {_COLS}.", "COLS", _CLASSES)
    ] = None
    vote_columns: Annotated[
        str | None, _rare("Columns of vote counts, one per class: no,yes or PREFIX*.", "COLS", _CLASSES)
    ] = None  # fmt: skip
    pred_columns: Annotated[
        list[str] | None,
        _rare("Columns of predictions; repeat for each model.", "COLS", _CLASSES),
    ] = None
    classes: Annotated[
        str | None, _rare("Class names in order: a,b,c.", "NAMES", _CLASSES, "--classes")
    ] = None
    ordered: Annotated[
        bool, _rare("Classes are in order, lowest first.", "", _CLASSES, "--ordered")
    ] = False
    votes_file: Annotated[
        str | None,
        typer.Option(
            help="File of votes, one per row. Default: the rows of DATA are votes.",
            metavar="FILE", rich_help_panel=_VOTES, callback=as_files, hidden=True,
        ),
    ] = None  # fmt: skip
    item: Annotated[
        str | None, _rare_column("Column of items: of votes, or of rows of several models.", _VOTES)
    ] = None
    vote: Annotated[
        str | None, _rare_column("Column of votes; --positive names the vote for 1.", _VOTES)
    ] = None
    worker: Annotated[str | None, _rare_column("Column of the rater who voted.", _VOTES)] = None
    drop_unmatched: Annotated[
        bool,
        _rare("Drop items without votes or without a prediction.", "", _VOTES, "--drop-unmatched"),
    ] = False
    allow_repeated: Annotated[
        bool, _rare("Allow several votes of a rater on an item.", "", _VOTES, "--allow-repeated")
    ] = False
    raters: Annotated[
        bool, _rare("Compute intervals that also hold for new raters.", "", _VOTES, "--raters")
    ] = False
    by_rater: Annotated[
        str | None,
        _rare_column("Column of kinds of raters: also score each kind. Implies --raters.", _VOTES),
    ] = None
    aggregate: Annotated[
        Aggregate, _rare("Labels from votes: shares, or dawid-skene posteriors.", "METHOD", _VOTES)
    ] = Aggregate.SHARES
    model: Annotated[
        str | None, _rare_column("Column of the model: rows are of one item and model.", _MODELS)
    ] = None
    model_per_file: Annotated[
        bool, _rare("Each file of DATA is a model, with its name.", "", _MODELS, "--model-per-file")
    ] = False
    epochs: Annotated[
        bool, _rare("Rows of one item and model are repetitions: votes.", "", _MODELS, "--epochs")
    ] = False
    name: Annotated[
        list[str] | None,
        _rare("Name to show for a model; repeat for each model, in order.", "NAME", _MODELS),
    ] = None
    sep: Annotated[
        str | None, _rare("Separator of cells of text, such as ';' or tab.", "CHAR", _READING)
    ] = None
    decimal: Annotated[
        str, _rare("Decimal mark of text: a period or a comma.", "CHAR", _READING)
    ] = "."
    encoding: Annotated[
        str | None, _rare("Encoding of text that is not UTF-8, such as latin-1.", "NAME", _READING)
    ] = None
    input_format: Annotated[
        InputFormat | None,
        _rare(f"Format, if not clear from content: {', '.join(InputFormat)}.", "KIND", _READING),
    ] = None
    sheet: Annotated[
        str | None, _rare("Sheet of a workbook that has several.", "NAME", _READING)
    ] = None
    records: Annotated[
        str | None, _rare("Path of the list of records in a JSON document.", "PATH", _READING)
    ] = None
    pred_scale: Annotated[Scale, _rare(f"Scale of predictions: {_SCALES}.", "SCALE", _READING)] = (
        Scale.PROBABILITY
    )
    label_scale: Annotated[Scale, _rare(f"Scale of labels: {_SCALES}.", "SCALE", _READING)] = (
        Scale.PROBABILITY
    )

    @property
    def many(self) -> bool:
        """Whether there are many classes."""
        return bool(self.pred_columns or self.label_columns or self.classes)

    @property
    def raw_votes(self) -> bool:
        """Whether labels are computed from raw votes."""
        return self.votes_file is not None or self.vote is not None

    @property
    def bounds(self) -> bool:
        """Whether labels are known as intervals."""
        return self.label_low is not None or self.label_high is not None

    @property
    def counts_beside(self) -> bool:
        """Whether labels are vote counts, with one prediction per row."""
        return bool(self.vote_columns and self.pred) and not self.many

    @property
    def labeled(self) -> bool:
        """Whether options state a label."""
        return bool(
            self.label is not None or self.bounds or self.raw_votes or self.label_columns
            or self.vote_columns
        )  # fmt: skip

    @property
    def models(self) -> Sequence[str] | None:
        """The columns of the models."""
        return self.pred_columns or self.pred

    @property
    def given(self) -> dict[str, Any]:
        """The given options, by their names on the command line."""
        return {
            option_of(field): value
            for field, value in zip(self._fields, self, strict=True)
            if value != self._field_defaults[field]
        }

    def words(self, *without: str) -> list[str]:
        """Return the given options as words of a shell command, without some."""
        words = []
        for option, value in self.given.items():
            if option in without:
                continue
            for each in value if isinstance(value, list) else [value]:
                words += [option] if each is True else [option, shlex.quote(str(each))]
        return words

    def refuse_contradictions(self) -> None:
        """Raise if options contradict each other or lack one, before any data is read."""
        labels = {
            "--label": self.label, "--label-low": self.label_low or self.label_high,
            "--label-columns": self.label_columns, "--vote-columns": self.vote_columns,
            "--vote": self.vote or self.votes_file,
        }  # fmt: skip
        stated = [option for option, value in labels.items() if value is not None]
        if len(stated) > 1:
            message = f"the label is stated twice, by {' and '.join(stated)}: leave one out."
            raise InputError(message)
        self._refuse_needless()
        if self.many and self.pred:
            message = "--pred is for one probability per row: leave it out with many classes."
            raise InputError(message)
        for name in (*(self.pred_columns or ()), *(self.pred or ())):
            if [*(self.pred_columns or ()), *(self.pred or ())].count(name) > 1:
                message = f"each model must be named once: {name!r} is given twice."
                raise InputError(message)

    def _refuse_needless(self) -> None:
        """Raise for options that need another one."""
        votes = {
            "--worker": self.worker, "--allow-repeated": self.allow_repeated, "--raters": self.raters,
            "--by-rater": self.by_rater,
            "--aggregate": self.aggregate is not Aggregate.SHARES,
        }  # fmt: skip
        rules = [
            (votes, self.raw_votes, "raw votes: pass --vote COL"),
            ({"--item": self.item, "--drop-unmatched": self.drop_unmatched},
             self.raw_votes or self.is_long,
             "raw votes or models in rows: pass --vote COL or --model COL"),
            ({"--ordered": self.ordered, "--classes": self.classes}, self.many,
             "many classes: pass --pred-columns COLS"),
            ({"--epochs": self.epochs}, self.is_long, "models in rows: pass --model COL"),
            ({"--votes": self.votes}, self.label is not None or self.label_columns is not None
             or not self.labeled, "a label that is a share of votes: pass --label COL"),
        ]  # fmt: skip
        for options, there, needs in rules:
            for option, value in options.items():
                if value and not there:
                    message = f"{option} needs {needs}, or leave it out."
                    raise InputError(message)
        if self.raw_votes:
            given(self.item, "pass --item COL, the column of the item of each vote.")
            given(self.vote, "pass --vote COL, the column of the votes.")
            if self.raters or self.by_rater or self.aggregate is not Aggregate.SHARES:
                given(self.worker, "pass --worker COL, the column of who voted.")
        if self.bounds and None in (self.label_low, self.label_high):
            message = "pass both ends of the labels: --label-low COL and --label-high COL."
            raise InputError(message)

    @property
    def is_long(self) -> bool:
        """Whether rows are of one item and model."""
        return self.model is not None or self.model_per_file

    def files(self, paths: Any) -> Files:
        """Return the files with the options for reading them."""
        from softcal.scanning.data import Files

        form = None if self.input_format is None else self.input_format.value
        return Files(paths, self.sep, self.decimal, self.encoding, form, self.sheet, self.records)

    def data(self, paths: Any, **others: Any) -> Data:
        """Return the description of rows in files."""
        from softcal.scanning.data import Data

        return Data.of(
            self.files(paths), y_true=self._label(), y_prob=self._models(),
            sample_weight=self.weight, groups=self.group, drop_missing=self.drop_missing,
            **({"by": tuple(self.by or ())} | others),
        )  # fmt: skip

    def _label(self) -> Label:
        from softcal.scanning.data import Bounds, Classes, Column, Counts, RawVotes, Shares

        scale: Any = self.label_scale.value
        if self.raw_votes:
            source = None
            if self.votes_file is not None:  # its format may be another
                source = self._replace(input_format=None, sheet=None, records=None).files(
                    self.votes_file
                )
            return RawVotes(
                self.vote, self.item, source, self.worker, self.positive,
                raters=self.raters or self.by_rater is not None, kind=self.by_rater,
                aggregate=self.aggregate.value, allow_repeated=self.allow_repeated,
                drop_unmatched=self.drop_unmatched,
            )  # fmt: skip
        if self.bounds:
            return Bounds(str(self.label_low), str(self.label_high), scale)
        if self.many:
            columns = self.label_columns or self.vote_columns or self.label
            return Classes(
                given(columns, _ONE_LABEL), self.class_names, self.ordered,
                None if self.votes is None else whole_or_name(self.votes),
                counts=self.vote_columns is not None, scale=scale,
            )  # fmt: skip
        if self.vote_columns is not None:
            return Counts(self.vote_columns, self.positive)
        label = given(self.label, "Missing option '--label'.")
        if self.votes is not None:
            return Shares(label, whole_or_name(self.votes), scale)
        return Column(label, scale, self.positive)

    @property
    def class_names(self) -> list[str] | None:
        """The names of `--classes`."""
        return None if self.classes is None else [each.strip() for each in self.classes.split(",")]

    def _models(self) -> Any:
        from softcal.scanning.data import Classes, Column, Long

        scale: Any = self.pred_scale.value
        if self.many or (self.raw_votes and self.pred_columns):
            specs = given(self.pred_columns, "Missing option '--pred-columns'.")
            return {spec: Classes(spec, self.class_names, scale=scale) for spec in specs}
        preds = given(self.pred, "Missing option '--pred'.")
        if self.is_long:
            if len(preds) > 1:
                message = (
                    "rows of one item and model have one column of predictions: pass --pred once."
                )
                raise InputError(message)
            return Long(
                Column(preds[0], scale), self.model, self.item, self.epochs, self.drop_unmatched
            )
        return [Column(name, scale) for name in preds]

    def refuse_other_tables(self, tables: TableSet) -> None:
        """Raise if an option differs from what saved tables were made with."""
        about = tables.about
        label = {"--label": self.label, "--label-columns": self.label_columns,
                 "--vote-columns": self.vote_columns}  # fmt: skip
        if self.bounds:
            label["--label-low and --label-high"] = f"{self.label_low} to {self.label_high}"
        have = dict.fromkeys(label, about.label) | {
            "--weight": about.weight, "--votes": about.votes, "--group": about.group,
            "--classes": ",".join(tables.classes),
        }  # fmt: skip
        asked = label | {"--weight": self.weight, "--votes": self.votes, "--group": self.group,
                         "--classes": self.classes}  # fmt: skip
        for option, column in asked.items():
            if column is not None and column != have[option]:
                with_ = f"with {have[option]!r}" if have[option] else "without one"
                message = (
                    f"{option} must be as in the saved tables, which were made {with_}: got "
                    f"{column!r}. Leave {option} out, or scan the rows again."
                )
                raise InputError(message)
        if self.ordered and not tables.ordered:
            message = (
                "--ordered must be as in the saved tables, which were made without it. Leave "
                "--ordered out, or scan the rows again."
            )
            raise InputError(message)
        known = {*asked, "--pred", "--pred-columns", "--by", "--name", "--ordered", "--label-low",
                 "--label-high"}  # fmt: skip
        for option in self.given:
            if option not in known:
                message = f"{option} is for rows: leave it out with saved tables."
                raise InputError(message)


_ONE_LABEL = (
    "pass one of --label-columns (shares), --vote-columns (counts), and --label (a column of class "
    "names or numbers)."
)


def option_of(field: str) -> str:
    """Return the option of a field."""
    return "--data" if field == "data_file" else "--" + field.replace("_", "-")


def whole_or_name(text: str) -> str | int:
    """Return a number of votes, or the name of their column."""
    return text


def feature(text: str) -> tuple[str, int]:
    """Return the column and the number of ranges of a --feature."""
    name, _, count = text.rpartition(":")
    if not name or not count.isdecimal():
        message = f"--feature must be a column and a number, such as age:10: got {text}."
        raise InputError(message)
    return name, int(count)


def cut(text: str) -> tuple[str, list[float]]:
    """Return the column and the numbers of a --cut."""
    name, _, numbers = text.rpartition(":")
    try:
        cuts = [float(each) for each in numbers.split(",")]
    except ValueError:
        cuts = []
    increasing = all(a < b for a, b in pairwise(cuts))
    if not name or not cuts or not increasing or not all(map(math.isfinite, cuts)):
        message = f"--cut must be a column and increasing numbers, such as age:40,60: got {text}."
        raise InputError(message)
    return name, cuts


def read_toml(path: Path) -> dict[str, Any]:
    """Return the options that a TOML file states, and its files under `source`."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        message = f"cannot read {path}: {error!s:.200}"
        raise InputError(message) from error
    hints = get_type_hints(Described, include_extras=False)
    options: dict[str, Any] = {}
    for key, value in found.items():
        field = key.replace("-", "_")
        if field != "source" and (field not in hints or field == "data_file"):
            message = f"{path} has the unknown key {key!r:.60}. Its keys are options without --."
            raise InputError(message)
        options[field] = _typed(path, key, value, hints.get(field))
    return options


def _typed(path: Path, key: str, value: Any, hint: Any) -> Any:
    """Return a value of a TOML file as the type of its option."""
    kinds = [
        k
        for k in (InputFormat, Aggregate, Scale)
        if k is hint or k in getattr(hint, "__args__", ())
    ]
    try:
        if kinds:
            return kinds[0](value)
    except ValueError as error:
        message = f"{key} in {path} must be one of {', '.join(kinds[0])}: got {value!r:.60}."
        raise InputError(message) from error
    several = key in ("pred", "pred-columns", "pred_columns", "by", "name", "source")
    if several:
        return [value] if isinstance(value, str) else value
    if not isinstance(value, bool if hint is bool else str):
        message = f"{key} in {path} must be {'true or false' if hint is bool else 'a text'}."
        raise InputError(message)
    return value


def describes(
    command: Callable[..., None] | None = None, *, without: Sequence[str] = ()
) -> Callable[..., Any]:
    """Add the options of `Described` to a command, which receives them as one argument, `how`.

    `without` names those that the command does not have.
    """
    if command is None:
        return lambda own: describes(own, without=without)
    hints = get_type_hints(Described, include_extras=True)
    signature = inspect.signature(command, eval_str=True)
    own = {name: each for name, each in signature.parameters.items() if name != "how"}
    fields = [field for field in Described._fields if field not in without and field not in own]
    options = [
        inspect.Parameter(
            field, inspect.Parameter.KEYWORD_ONLY, default=Described._field_defaults[field],
            annotation=hints[field],
        )
        for field in fields
    ]  # fmt: skip

    @wraps(command)
    def with_options(**values: Any) -> None:
        stated = {field: values.pop(field) for field in fields}
        how = Described(**stated)
        if how.data_file is not None:
            how, values = _with_toml(how, values, own)
        command(**values, how=how)

    ordered = [each for each in own.values() if each.default is inspect.Parameter.empty]
    rest = [each for each in own.values() if each.default is not inspect.Parameter.empty]
    main = [each for each in options if not _is_hidden(each)]
    others = [each for each in options if _is_hidden(each)]
    every = [*ordered, *main, *rest, *others]
    with_options.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in every]
    )
    return with_options


def _is_hidden(option: inspect.Parameter) -> bool:
    return bool(option.annotation.__metadata__[0].hidden)


def _with_toml(
    how: Described, values: Mapping[str, Any], own: Mapping[str, Any]
) -> tuple[Described, dict[str, Any]]:
    """Return the options with those of a TOML file; the line may not contradict the file."""
    assert how.data_file is not None  # noqa: S101 - it is given
    stated = read_toml(how.data_file)
    source = stated.pop("source", None)
    values = dict(values)
    if source is not None and "data" in own and not values.get("data"):
        values["data"] = [str(how.data_file.parent / each) for each in source]
    for field, value in stated.items():
        if getattr(how, field) not in (Described._field_defaults[field], value):
            message = (
                f"{option_of(field)} and {how.data_file} state different values: leave one out."
            )
            raise InputError(message)
    return how._replace(data_file=None, **stated), values


_KEYWORD = re.compile(r"\b(" + "|".join(Described._fields) + r')=("(?:[^"\\]|\\.)*"|True\b)')


def as_options(message: str) -> str:
    r"""Replace the keywords in a message by options of the command line.

    >>> as_options('Pass sep=";", or drop_missing=True.')
    "Pass --sep ';', or --drop-missing."
    """

    def option(found: re.Match[str]) -> str:
        name = option_of(found[1])
        if found[2] == "True":
            return name
        try:
            value = json.loads(found[2])
        except ValueError:  # not a keyword of ours, but part of a name
            return found[0]
        # Quoted even if a shell does not need quotes, as for a comma before a period.
        plain = re.fullmatch(r"[\w-]+", value)
        word = value if plain else shlex.quote(value) if "'" in value else f"'{value}'"
        return f"{name} {word}"

    return _KEYWORD.sub(option, message)


def only(option: Any, **changed: Any) -> Any:
    """Return an option with other texts."""
    found = copy(option)
    for name, value in changed.items():
        setattr(found, name, value)
    return found
