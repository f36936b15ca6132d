"""The options that describe the data, once for all commands, and the description they state."""

from __future__ import annotations

import inspect
import json
import math
import re
import shlex
import tomllib
from enum import StrEnum
from functools import partial, wraps
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias, get_type_hints

import typer
from typer.exceptions import TyperException

from softcal._display import ARGUMENTS, did_you_mean, option_of
from softcal.cli.options import as_files, asks, note, show_all
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from softcal.scanning.data import Data, Files, Label
    from softcal.table.tableset import TableSet


Scale = StrEnum("Scale", ["PROBABILITY", "PERCENT", "LOGIT", "LOGPROB"])
"""The scale of labels or predictions."""

InputFormat = StrEnum("InputFormat", ["CSV", "TSV", "JSON", "JSONL", "PARQUET", "ARROW", "XLSX"])
"""The format of a file."""

Aggregate = StrEnum("Aggregate", {"SHARES": "shares", "DAWID_SKENE": "dawid-skene"})
"""The method that computes the label of an item from its votes."""

_FORMATS, _SCALES = ", ".join(InputFormat), "probability, percent, logit, or logprob"
_AS_IS = Scale.PROBABILITY
Text: TypeAlias = str | None
Texts: TypeAlias = list[str] | None
_many, _vote, _row, _read = (
    partial(asks, rare=True, panel=panel)
    for panel in ("Many classes", "Raw votes", "Models", "How to read the rows")
)


class Described(NamedTuple):
    """The options about the data: which columns have which role, and how to read the rows."""

    label: Annotated[Text, asks("Column of labels in [0, 1].", "COL")] = None
    pred: Annotated[Texts, asks("Column of predictions; may be repeated.", "COL")] = None
    by: Annotated[Texts, asks("Column of segments; may be repeated.", "COL")] = None
    weight: Annotated[Text, _read("Column of row weights.", "COL")] = None
    votes: Annotated[Text, asks("Column of the number of votes per label.", "COL")] = None
    group: Annotated[Text, asks("Column of groups of dependent rows.", "COL")] = None
    positive: Annotated[Text, asks("Labels in words: the one that means 1.", "WORD")] = None
    drop_missing: Annotated[bool, asks("Drop rows with a missing value.")] = False
    label_low: Annotated[Text, _read("Labels that are intervals: column of lower ends.", "COL")] = (
        None
    )
    label_high: Annotated[
        Text, _read("Labels that are intervals: column of upper ends.", "COL")
    ] = None
    label_columns: Annotated[Text, _many("Columns of label shares: a,b,c or PREFIX*.", "COLS")] = (
        None
    )
    vote_columns: Annotated[Text, _many("Columns of vote counts: no,yes or PREFIX*.", "COLS")] = (
        None
    )
    pred_columns: Annotated[Texts, _many("Columns of predictions; may be repeated.", "COLS")] = None
    classes: Annotated[Text, _many("Class names in order: a,b,c.", "NAMES")] = None
    ordered: Annotated[bool, _many("Classes are in order, lowest first.")] = False
    votes_file: Annotated[
        Text, _vote("File of votes; default DATA.", "FILE", callback=as_files)
    ] = None
    item: Annotated[Text, _vote("Column of items: of votes, or of rows of models.", "COL")] = None
    vote: Annotated[Text, _vote("Column of votes; --positive names the vote for 1.", "COL")] = None
    worker: Annotated[Text, _vote("Column of the rater who voted.", "COL")] = None
    drop_unmatched: Annotated[bool, _vote("Drop items without votes or predictions.")] = False
    allow_repeated: Annotated[bool, _vote("Allow several votes of a rater on an item.")] = False
    raters: Annotated[bool, _vote("Compute intervals that hold for new raters.")] = False
    by_rater: Annotated[Text, _vote("Column of kinds of raters; implies --raters.", "COL")] = None
    aggregate: Annotated[
        Aggregate, _vote("How votes become labels: shares or dawid-skene.", "NAME")
    ] = Aggregate.SHARES
    model: Annotated[Text, _row("Column of models: a row is of an item and a model.", "COL")] = None
    model_per_file: Annotated[bool, _row("Each file of DATA is a model, with its name.")] = False
    epochs: Annotated[bool, _row("Rows of one item and model are repetitions: votes.")] = False
    name: Annotated[Texts, _row("Name to show for a model; repeat in order.", "NAME")] = None
    sep: Annotated[Text, _read("Separator of cells of text, such as ';' or tab.", "CHAR")] = None
    decimal: Annotated[str, _read("Decimal mark of text: a period or a comma.", "CHAR")] = "."
    encoding: Annotated[Text, _read("Encoding if not UTF-8, such as latin-1.", "NAME")] = None
    input_format: Annotated[InputFormat | None, _read(f"Format: {_FORMATS}.", "KIND")] = None
    sheet: Annotated[Text, _read("Sheet of a workbook that has several.", "NAME")] = None
    records: Annotated[Text, _read("Path of the list of records in JSON.", "PATH")] = None
    pred_scale: Annotated[Scale, _read(f"Scale of predictions: {_SCALES}.", "SCALE")] = _AS_IS
    label_scale: Annotated[Scale, _read(f"Scale of labels: {_SCALES}.", "SCALE")] = _AS_IS
    data_file: Annotated[Path | None, asks("TOML file of options.", "TOML", "--data")] = None

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
    def missing(self) -> str:
        """What to say about the option that rows need and that is not given; empty if none is."""
        if not self.models and self.many:
            return "Missing option '--pred-columns'."
        if not self.models:
            other = ", or '--pred-columns' for many classes" * (self.vote_columns is not None)
            hint = " Pass --label COL --pred COL." * (not self.labeled)
            return f"Missing option '--pred'{other}.{hint}"
        if not self.labeled:
            return _ONE_LABEL if self.many else "Missing option '--label'."
        return ""

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

    def refuse_contradictions(self) -> None:
        """Raise if options contradict each other or lack one, before any data is read."""
        labels = {
            "--label": self.label, "--label-low": self.label_low or self.label_high,
            "--label-columns": self.label_columns, "--vote-columns": self.vote_columns,
            "--vote": self.vote or self.votes_file,
        }  # fmt: skip
        stated = [option for option, value in labels.items() if value is not None]
        models = [*(self.pred_columns or ()), *(self.pred or ())]
        twice = [name for name in models if models.count(name) > 1]
        problems = [
            (len(stated) > 1,
             f"the label is stated twice, by {' and '.join(stated)}: leave one out."),
            (self.many and self.pred,
             "--pred is for one probability per row: leave it out with many classes."),
            (twice, f"each model must be named once: {''.join(twice[:1])!r} is given twice."),
            (self.model is not None and self.model_per_file,
             "pass --model or --model-per-file, not both."),
            (self.is_long and len(self.pred or ()) > 1,
             "rows of one item and model have one column of predictions: pass --pred once."),
            (self.is_long and (self.many or self.raw_votes),
             "models in rows have one prediction and one label per row: leave --model and "
             "--model-per-file out with raw votes or many classes."),
            (self.bounds and None in (self.label_low, self.label_high),
             "pass both ends of the labels: --label-low COL and --label-high COL."),
        ]  # fmt: skip
        for problem, message in problems:
            if problem:
                raise InputError(message)
        self._refuse_needless()

    def _refuse_needless(self) -> None:
        """Raise for options that need another one."""
        saved = not self.labeled
        one = self.label is not None and not self.many
        of_words = (one and self.votes is None) or (self.raw_votes and not self.many)
        of_numbers = bool(self.label or self.bounds or self.label_columns) and not self.positive
        rules = [
            ("raters by_rater aggregate worker allow_repeated", self.raw_votes,
             "raw votes: pass --vote COL"),
            ("raters by_rater aggregate", self.worker, "the rater of each vote: pass --worker COL"),
            ("votes_file vote", self.item, "the item of each vote: pass --item COL"),
            ("votes_file", self.vote, "the column of votes: pass --vote COL"),
            ("item drop_unmatched", self.raw_votes or self.is_long,
             "raw votes or models in rows: pass --vote COL or --model COL"),
            ("classes", self.many, "many classes: pass --pred-columns COLS"),
            ("ordered", self.many and not self.raw_votes,
             "many classes that are not raw votes: pass --pred-columns COLS"),
            ("epochs", self.is_long, "models in rows: pass --model COL"),
            ("epochs", self.item, "items: pass --item COL"),
            ("votes", self.label or self.label_columns or saved,
             "a label that is a share of votes: pass --label COL"),
            ("positive", of_words or self.counts_beside or saved,
             "one label in words, one vote, or counts of votes per row"),
            ("label_scale", of_numbers or saved, "labels that are numbers: pass --label COL"),
        ]  # fmt: skip
        for fields, there, needs in rules:
            for option in map(option_of, fields.split()):
                if option in self.given and there in (None, False):
                    message = f"{option} needs {needs}, or leave it out."
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
                str(columns), self.class_names, self.ordered,
                self.votes,
                counts=self.vote_columns is not None, scale=scale,
            )  # fmt: skip
        if self.vote_columns is not None:
            return Counts(self.vote_columns, self.positive)
        if self.votes is not None:
            return Shares(str(self.label), self.votes, scale)
        return Column(str(self.label), scale, self.positive)

    @property
    def class_names(self) -> list[str] | None:
        """The names of `--classes`."""
        return None if self.classes is None else [each.strip() for each in self.classes.split(",")]

    def _models(self) -> Any:
        from softcal.scanning.data import Classes, Column, Long

        scale: Any = self.pred_scale.value
        if self.many or (self.raw_votes and self.pred_columns):
            specs = self.pred_columns or ()
            return {spec: Classes(spec, self.class_names, scale=scale) for spec in specs}
        preds = self.pred or []
        if self.is_long:
            return Long(
                Column(preds[0], scale), self.model, self.item, self.epochs, self.drop_unmatched
            )
        return [Column(name, scale) for name in preds]

    def refuse_other_tables(self, tables: TableSet) -> None:
        """Raise if an option differs from what saved tables were made with."""
        about, given = tables.about, self.given
        if self.bounds:
            given["--label-low and --label-high"] = f"{self.label_low} to {self.label_high}"
        labels = ("--label", "--label-columns", "--vote-columns", "--label-low and --label-high")
        have: dict[str, Any] = dict.fromkeys(labels, about.label) | {
            "--weight": about.weight, "--votes": about.votes, "--group": about.group,
            "--classes": ",".join(tables.classes), "--ordered": tables.ordered,
        }  # fmt: skip
        for option in (each for each in have if each in given):
            if given[option] != have[option]:
                with_ = f"with {have[option]!r}" if have[option] else "without one"
                got = "" if given[option] is True else f": got {given[option]!r}"
                message = (
                    f"{option} must be as in the saved tables, which were made {with_}{got}. Leave "
                    f"{option} out, or scan the rows again."
                )
                raise InputError(message)
        known = {*have, "--pred", "--pred-columns", "--by", "--name", "--label-low", "--label-high"}
        for option in given:
            if option not in known:
                message = f"{option} is for rows: leave it out with saved tables."
                raise InputError(message)


_ONE_LABEL = (
    "pass one of --label-columns (shares), --vote-columns (counts), and --label (a column of class "
    "names or numbers)."
)


BOUNDS, RATERS = ("label_low", "label_high"), ("raters", "by_rater")
CLASSES = ("label_columns", "pred_columns", "classes", "ordered")
IN_ROWS = ("model", "model_per_file", "epochs")
"""Options that some commands do not have."""


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


def add_toml(command: Any, ctx: Any) -> None:
    """Add the options that a TOML file states to those of the line, which may not contradict it.

    Its keys are options without `--`; `source` names the files. Paths are relative to the file.
    """
    path, ctx.params["data_file"] = ctx.params["data_file"], None
    params = {param.name: param for param in command.params}
    stated = _read_toml(path)
    unused = [field for field in stated if field not in params]
    for field in (field for field in stated if field in params):
        key = "source" if field == "data" else field
        beside = path.parent if field in ("data", "votes_file") else None
        found = _cast(params[field], ctx, f"{key} in {path}", stated[field], beside)
        if ctx.get_parameter_source(field).name != "COMMANDLINE":
            ctx.params[field] = found
        elif field == "data":
            note(f"DATA is read instead of the source in {path}.")
        elif ctx.params[field] != found:
            message = f"{option_of(field)} and {path} state different values: leave one out."
            raise InputError(message)
    if unused:
        note(f"`softcal {command.name}` does not use {', '.join(unused)} in {path}.")
    if not ctx.params.get("data") and command.name != "plan":
        message = f"name the files: pass DATA, or add source to {path}."
        raise InputError(message)


def _read_toml(path: Path) -> dict[str, Any]:
    """Return the values of a TOML file by the field they state; raise for an unknown key."""
    try:
        stated = tomllib.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        message = f"cannot read {path} as TOML: {error!s:.200}"
        raise InputError(message) from error
    fields = {"source": "data"} | {field: field for field in Described._fields[:-1]}
    for key in stated:
        if key.replace("-", "_") not in fields:
            message = (
                f"{path} has the unknown key {key!r:.60}: its keys are options without --, and "
                f"source.{did_you_mean(key, list(fields))}"
            )
            raise InputError(message)
    return {fields[key.replace("-", "_")]: value for key, value in stated.items()}


def _cast(param: Any, ctx: Any, place: str, value: Any, beside: Path | None) -> Any:
    """Return a value of a TOML file as the type of its option; paths are relative to the file."""
    several = getattr(param, "multiple", False) or param.nargs == -1
    each = value if isinstance(value, list) and (several or len(value) == 1) else [value]
    is_flag = getattr(param, "is_flag", False)
    if not all(isinstance(one, bool if is_flag else str) for one in each):
        wanted = "true or false" if is_flag else "a text" + " or a list of texts" * several
        message = f"{place} must be {wanted}: got {value!r:.60}."
        raise InputError(message)
    if beside is not None:
        each = [one if "://" in one else str(beside / one) for one in each]
    try:
        return param.process_value(ctx, each if several else each[0])
    except TyperException as error:
        message = f"{place} is wrong. {error.format_message()}"
        raise InputError(message) from error


def describes(
    command: Callable[..., None] | None = None,
    *,
    only: Sequence[str] = Described._fields,
    without: Sequence[str] = (),
) -> Callable[..., Any]:
    """Add the options of `Described` to a command, which receives them as one argument, `how`.

    `only` names those that the command has, `without` those that it does not have.
    """
    if command is None:
        return partial(describes, only=only, without=without)
    hints = get_type_hints(Described, include_extras=True)
    signature = inspect.signature(command, eval_str=True)
    own = {name: each for name, each in signature.parameters.items() if name != "how"}
    fields = [
        field for field in Described._fields if field in only and field not in (*without, *own)
    ]
    options = [
        inspect.Parameter(
            field, inspect.Parameter.KEYWORD_ONLY, default=Described._field_defaults[field],
            annotation=hints[field],
        )
        for field in fields
    ]  # fmt: skip
    for each in options:
        if each.default is False:  # a switch, without the --no- that typer would add
            each.annotation.__metadata__[0].param_decls = (option_of(each.name),)

    @wraps(command)
    def with_options(**values: Any) -> None:
        del values["help_all"]  # which ends before
        stated = {field: values.pop(field) for field in fields}
        command(**values, how=Described(**stated))

    ordered = [each for each in own.values() if each.default is inspect.Parameter.empty]
    rest = [each for each in own.values() if each.default is not inspect.Parameter.empty]
    main = [each for each in options if not _is_hidden(each)]
    others = [each for each in options if _is_hidden(each)]
    every = [*ordered, *main, *rest, *others, _HELP_ALL]
    with_options.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in every]
    )
    return with_options


_HELP_ALL = inspect.Parameter(
    "help_all", inspect.Parameter.KEYWORD_ONLY, default=False,
    annotation=Annotated[
        bool,
        typer.Option(
            "--help-all", help="Show all options and exit.", is_eager=True, callback=show_all
        ),
    ],
)  # fmt: skip


def _is_hidden(option: inspect.Parameter) -> bool:
    return bool(option.annotation.__metadata__[0].hidden)


_VALUE = r'("(?:[^"\\]|\\.)*"|True\b)'
_OPTIONS = [key.rpartition(":")[2] for key in ARGUMENTS] + list(Described._fields)
_FORMS = [re.escape(form).replace(r"\{\}", _VALUE) for form in ARGUMENTS.values()]
_FORMS += [rf"\b{field}={_VALUE}" for field in Described._fields]
_KEYWORD = re.compile("|".join(f"(?P<o{k}>{form})" for k, form in enumerate(_FORMS)))


def as_options(message: str) -> str:
    r"""Replace the arguments in a message by options of the command line.

    >>> as_options('Pass Files(..., sep=";"), or drop_missing=True.')
    "Pass --sep ';', or --drop-missing."
    """

    def option(found: re.Match[str]) -> str:
        name = option_of(_OPTIONS[int(str(found.lastgroup)[1:])])
        text = next(filter(None, found.groups()[int(found.lastindex or 0) :]), "True")
        if text == "True":
            return name
        try:
            value = json.loads(text)
        except ValueError:  # not a keyword of ours, but part of a name
            return found[0]
        # Quoted even if a shell does not need quotes, as for a comma before a period.
        plain = re.fullmatch(r"[\w-]+", value)
        word = value if plain else shlex.quote(value) if "'" in value else f"'{value}'"
        return f"{name} {word}"

    return _KEYWORD.sub(option, message)
