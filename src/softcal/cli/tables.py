"""Load the tables of a command from rows in files or from files saved by `softcal scan`."""

from __future__ import annotations

import glob
import math
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from softcal import terminal
from softcal._display import counted
from softcal._io import place_of, stands_for
from softcal.cli.options import RowOptions, T, as_options, given, note
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from softcal.bins import BinsLike
    from softcal.sources.collect import AllRows, Look, Part
    from softcal.sources.columns import Piece, Roles, Words
    from softcal.sources.days import Days
    from softcal.sources.votes import Joined
    from softcal.sources.votes import VoteColumns as RawVotes
    from softcal.table.tableset import TableSet


class Columns(NamedTuple):
    """The columns that the options name: those to read, or those saved tables must have."""

    label: str | None = None
    preds: Sequence[str] | None = None
    weight: str | None = None
    votes: str | None = None
    by: Sequence[str] = ()
    group: str | None = None
    label_columns: str | None = None
    vote_columns: str | None = None
    pred_columns: Sequence[str] | None = None
    classes: str | None = None
    label_low: str | None = None
    label_high: str | None = None
    how: RowOptions = RowOptions()
    ordered: bool = False
    features: Sequence[str] = ()  # such as age:10
    cuts: Sequence[str] = ()  # such as age:40,60
    by_rater: str | None = None
    days: Days | None = None  # of one of the columns in `by`

    @property
    def many(self) -> bool:
        """Whether there are many classes."""
        counts = self.vote_columns and not self.counts_beside
        return any((self.label_columns, counts, self.pred_columns, self.classes))

    @property
    def counts_beside(self) -> bool:
        """Whether labels are vote counts, with one prediction per row."""
        others = (self.label_columns, self.pred_columns, self.classes)
        return bool(self.vote_columns and self.preds) and not any(others)

    @property
    def bounds(self) -> bool:
        """Whether labels are known as intervals."""
        return self.label_low is not None or self.label_high is not None

    @property
    def models(self) -> Sequence[str] | None:
        """The names of the models."""
        return self.pred_columns or self.preds

    @property
    def raw_votes(self) -> RawVotes:
        """Where raw votes are; with kinds of raters, intervals are for new raters too."""
        found = self.how.vote_columns
        if self.by_rater is None:
            return found
        given(found.worker, "pass --worker COL, the column of who voted, with --by-rater.")
        return found._replace(raters=True, kind=self.by_rater)

    def refuse_contradictions(self) -> None:
        """Raise if options contradict each other, before any data is read."""
        if self.how.raw_votes:
            self._refuse_beside_votes()
        elif self.counts_beside:
            others = {"--label": self.label, "--votes": self.votes, "--label-low": self.label_low}
            _refuse_useless(others, "--vote-columns, which determine the labels")
        else:
            without = {
                "--item": self.how.item, "--worker": self.how.worker,
                "--drop-unmatched": self.how.drop_unmatched or None,
                "--allow-repeated": self.how.allow_repeated or None,
                "--raters": self.how.raters or None, "--by-rater": self.by_rater,
                "--aggregate": None if self.how.aggregate == "shares" else self.how.aggregate,
            }  # fmt: skip
            for option, value in without.items():
                if value is not None:
                    message = f"{option} needs raw votes: pass --vote COL, or leave it out."
                    raise InputError(message)
        if self.many:
            self._refuse_beside_classes()
        elif self.bounds:
            others = {"--label": self.label, "--votes": self.votes, "--group": self.group}
            useless = [option for option, value in others.items() if value is not None]
            if useless:
                message = (
                    f"--label-low and --label-high cannot be combined with {' and '.join(useless)}."
                )
                raise InputError(message)

    def _refuse_beside_votes(self) -> None:
        useless = {
            "--label": self.label, "--votes": self.votes, "--label-columns": self.label_columns,
            "--vote-columns": self.vote_columns, "--pred-columns": self.pred_columns,
            "--classes": self.classes, "--label-low": self.label_low,
            "--label-high": self.label_high,
        }  # fmt: skip
        _refuse_useless(useless, "--vote, which determines the labels")
        if self.by_rater is not None:
            others = {"--weight": self.weight, "--group": self.group}
            aggregate = self.how.aggregate == "dawid-skene"
            _refuse_useless(others | {"--aggregate dawid-skene": aggregate}, "--by-rater")
        self.raw_votes  # noqa: B018 - refuses options that are missing

    def _refuse_beside_classes(self) -> None:
        single = {"--pred": self.preds, "--label-low": self.label_low}
        for name, value in {**single, "--label-high": self.label_high}.items():
            if value:
                message = f"{name} is for one probability per row: leave it out with many classes."
                raise InputError(message)
        if sum(each is not None for each in self._class_labels) > 1:
            raise InputError(_ONE_LABEL)
        if self.vote_columns and self.votes:
            message = "leave --votes out: --vote-columns determine the number of votes."
            raise InputError(message)
        for spec in self.pred_columns or ():
            if list(self.pred_columns or ()).count(spec) > 1:
                message = f"each model must be named once: --pred-columns {spec!r} is given twice."
                raise InputError(message)

    @property
    def _class_labels(self) -> tuple[str | None, ...]:
        return self.label, self.label_columns, self.vote_columns

    def source(self, paths: list[Path]) -> tuple[Roles, Callable[[], Iterable[Piece]]]:
        """Return the role of each column, and a function that yields the rows in pieces."""
        from softcal.sources.files import all_pieces, batches_of
        from softcal.sources.votes import long_form, long_wanted

        roles, reading = self.roles(paths), self.how.reading
        if not self.how.raw_votes or self.how.votes_file is not None:
            return roles, partial(all_pieces, paths, roles.wanted, reading)
        columns = self.raw_votes
        batches = list(batches_of(paths, long_wanted(roles, columns), reading))
        roles, pieces = long_form(batches, roles, columns)
        roles.refuse_impossible()
        return roles, lambda: pieces

    def roles(self, paths: Sequence[Path]) -> Roles:
        """Return the role of each column; raise if an option is missing or impossible."""
        from softcal.sources.columns import Roles

        if self.ordered and not self.many:
            message = "--ordered needs many classes: pass --pred-columns too."
            raise InputError(message)
        others: dict[str, Any] = {
            "sample_weight": self.weight, "n_votes": self.votes, "by": tuple(self.by),
            "group": self.group, "values": self.how.values, "days": self.days,
        }  # fmt: skip
        if self.features or self.cuts:
            others |= self._ranges(paths)
        if self.how.raw_votes:
            found = self._roles_of_votes(others)
        elif self.counts_beside:
            found = self._roles_of_counts(paths, others)
        elif self.many:
            found = self._roles_of_classes(paths, others)
        elif self.bounds:
            if self.label_low is None or self.label_high is None:
                message = "pass both ends of the labels: --label-low COL and --label-high COL."
                raise InputError(message)
            preds = self._named(self.preds, "--pred", paths)
            ends = (self.label_low, self.label_high)
            found = Roles(" to ".join(ends), tuple(preds), bounds=ends, **others)
        else:
            preds = self._named(self.preds, "--pred", paths)
            found = Roles(self._named(self.label, "--label", paths), tuple(preds), **others)
        found.refuse_impossible()
        return found

    def _named(self, value: T | None, option: str, paths: Sequence[Path]) -> T:
        """Return the value of an option; raise with the columns of the data if it is missing."""
        if value is not None and value != []:  # an empty string may be the name of a column
            return value
        both = " Pass --label COL --pred COL." if option == "--pred" else ""
        message = f"Missing option '{option}'.{both}{columns_hint(paths, self.how)}"
        raise InputError(message)

    def _ranges(self, paths: Sequence[Path]) -> dict[str, Any]:
        """Return the columns of segments, and the ranges of those that are cut."""
        from softcal.sources.files import batches_of
        from softcal.sources.ranges import Distributions, Features, distributions

        pairs = [_feature(each) for each in self.features] + [_cut(each) for each in self.cuts]
        features = Features.of(dict(pairs))
        found, reading = Distributions.none(features.counts), self.how.reading
        if features.counts:
            batches = batches_of(list(paths), found.wanted, reading)
            found = distributions(batches, found, reading.decimal)
        by = (*self.by, *(name for name, _ in pairs))
        return {"by": by, "ranges": features.ranges(found, reading.decimal)}

    def _roles_of_votes(self, others: Mapping[str, Any]) -> Roles:
        """Return the role of each column, with the votes of a file counted."""
        from softcal.sources.columns import Roles, Wanted
        from softcal.sources.files import batches_of, files_of
        from softcal.sources.votes import votes_of

        columns, how = self.raw_votes, self.how
        preds = given(self.preds, "Missing option '--pred'.")
        roles = Roles("share of votes", tuple(preds), **others)
        if how.votes_file is None:
            return roles
        # The file of votes may have another format than the predictions.
        reading = how.reading._replace(input_format=None, sheet=None)
        batches = batches_of(files_of(how.votes_file), Wanted((), columns.named), reading)
        found = votes_of(list(batches), columns, drop_missing=how.drop_missing)
        return roles._replace(y_true=found.label, votes=found)

    def _roles_of_counts(self, paths: Sequence[Path], others: Mapping[str, Any]) -> Roles:
        """Return the role of each column, for vote counts with one prediction per row."""
        from softcal.sources.class_columns import counts_beside, names_of_columns
        from softcal.sources.columns import Roles

        roles = Roles("", tuple(given(self.preds, "Missing option '--pred'.")), **others)
        roles = roles._replace(values=roles.values._replace(positive=None))
        names = names_of_columns(paths[0], self.how.reading)
        return counts_beside(roles, str(self.vote_columns), names, self.how.positive)

    def _roles_of_classes(self, paths: Sequence[Path], others: Mapping[str, Any]) -> Roles:
        from softcal.sources.class_columns import class_roles, in_file
        from softcal.sources.columns import Roles

        label = next((each for each in self._class_labels if each is not None), None)
        label = given(label, _ONE_LABEL)
        specs = given(self.pred_columns, "Missing option '--pred-columns'.")
        names = None if self.classes is None else [name.strip() for name in self.classes.split(",")]
        classes = class_roles(
            label, {spec: spec for spec in specs}, in_file(paths[0], self.how.reading),
            counts=self.vote_columns is not None, classes=names, ordered=self.ordered,
        )  # fmt: skip
        return Roles(label, tuple(specs), classes=classes, **others)

    def refuse_other_tables(self, tables: TableSet) -> None:
        """Raise if a column differs from the one the saved tables were made with."""
        if self.ordered and not tables.ordered:
            message = (
                "--ordered must be as in the saved tables, which were made without it. Leave "
                "--ordered out, or scan the rows again."
            )
            raise InputError(message)
        ranges = ["--feature"] * bool(self.features) + ["--cut"] * bool(self.cuts)
        for option in [*self.how.given, *ranges]:
            message = f"{option} is for rows: leave it out with saved tables."
            raise InputError(message)
        label: dict[str, str | None] = {
            "--label": self.label, "--label-columns": self.label_columns,
            "--vote-columns": self.vote_columns,
        }  # fmt: skip
        if self.bounds:
            label["--label-low and --label-high"] = f"{self.label_low} to {self.label_high}"
        group = tables.about.group
        have = dict.fromkeys(label, tables.about.label) | {
            "--weight": tables.about.weight, "--votes": tables.about.votes, "--group": group,
            "--classes": ",".join(tables.classes),
        }  # fmt: skip
        asked = label | {
            "--weight": self.weight, "--votes": self.votes, "--group": self.group,
            "--classes": self.classes,
        }  # fmt: skip
        for option, column in asked.items():
            if column is not None and column != have[option]:
                with_ = f"with {have[option]!r}" if have[option] else "without one"
                message = (
                    f"{option} must be as in the saved tables, which were made {with_}: got "
                    f"{column!r}. Leave {option} out, or scan the rows again."
                )
                raise InputError(message)


def _feature(text: str) -> tuple[str, int]:
    """Return the column and the number of ranges of a --feature."""
    name, _, count = text.rpartition(":")
    if not name or not count.isdecimal():
        message = f"--feature must be a column and a number, such as age:10: got {text}."
        raise InputError(message)
    return name, int(count)


def _cut(text: str) -> tuple[str, list[float]]:
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


def _refuse_useless(options: Mapping[str, object], beside: str) -> None:
    for option, value in options.items():
        if value:
            message = f"{option} cannot be combined with {beside}."
            raise InputError(message)


_ONE_LABEL = (
    "pass one of --label-columns (shares), --vote-columns (counts), and --label (a column of class "
    "names or numbers)."
)


def columns_hint(paths: Sequence[Path], how: RowOptions) -> str:
    """Return a sentence with the columns of the first file."""
    from softcal._validation.arrays import listed
    from softcal.sources.files import column_names

    names = listed(column_names(paths[0], how.reading))
    return f" The columns of {paths[0].name} are: {names}."


def load_tables(
    data: list[str],
    columns: Columns,
    *,
    bins: BinsLike | None = None,
    pairs: bool = False,
    look: Look | None = None,
    may_be_empty: bool = False,
) -> TableSet:
    """Return the tables of rows or of saved files.

    Rows need a label and predictions. For saved tables, predictions select models, and every other
    named column must be the one the tables were made with.

    Parameters
    ----------
    data : list of str
        Files, folders, or patterns of rows, or saved files. Saved files are recognized by their
        content and added up.
    bins : int or Bins, optional
        The bins. Default: 10 for rows, the bins of the file for saved tables.
    pairs : bool
        Whether to add up joint sums of each pair of models, for a comparison. Ignored for saved
        tables.
    look : callable, optional
        Called from threads with the number of each piece of the rows and the rows of its models.
        Never called for saved tables.
    may_be_empty : bool
        Whether to accept data without rows.
    """
    columns.refuse_contradictions()
    saved = saved_files(data)
    if saved:
        total = load_saved(saved)
        refuse_empty(total)
        note_dropped(total.about.rows_dropped)
        return with_names(as_asked(total, columns, bins), columns.how.name)

    from softcal.bins import Bins
    from softcal.sources.collect import collect
    from softcal.sources.files import files_of, reporter

    paths = files_of(data)
    roles, rows = columns.source(paths)
    names = columns.how.name
    if names is not None:
        refuse_other_names(names, roles.y_prob)
        look = None if look is None else _named_look(look, names)
    found: list[Part] = []
    with terminal.reading() as move:
        tables = collect(
            rows(), roles, Bins.of(10 if bins is None else bins), pairs=pairs,
            report=reporter(paths, move), look=look, tell=found.append,
        )  # fmt: skip
    if not may_be_empty:
        refuse_empty(tables)
    note_dropped(tables.about.rows_dropped)
    for part in found:
        note_words(part.words, roles)
        note_votes(part.joined, roles)
    return with_names(tables, names)


def load_rows(data: Path, columns: Columns, *, logits: bool) -> tuple[Roles, AllRows]:
    """Return all rows of a file at once, validated, and the role of each column."""
    from softcal.sources.collect import read_rows, validated

    if columns.how.raters:
        message = "--raters is for scores and comparisons: leave it out."
        raise InputError(message)
    roles, pieces = columns.source([data])
    roles = roles._replace(logits=logits)
    if columns.how.raw_votes and columns.how.votes_file is None:
        batches = [batch for piece in pieces() for batch in piece.batches()]
        found = validated(batches, pieces, roles)
    else:
        found = read_rows(data, roles, columns.how.reading)
    note_dropped(found.dropped)
    note_words(found.words, roles)
    note_votes(found.joined, roles, raters=False)
    return roles, found


def _named_look(look: Look, names: Sequence[str]) -> Look:
    """Return the rows with the names of `--name` for the models."""

    def named(number: int, rows: Mapping[str, Any], groups: Any) -> None:
        look(number, dict(zip(names, rows.values(), strict=True)), groups)

    return named


def refuse_other_names(names: Sequence[str], models: Sequence[str]) -> None:
    """Raise if there is not one name per model."""
    if len(names) != len(models):
        message = (
            f"pass --name once per model: there are {len(models)}, {', '.join(map(repr, models))}, "
            f"and {len(names)} of --name."
        )
        raise InputError(message)


def with_names(tables: TableSet, names: Sequence[str] | None) -> TableSet:
    """Return tables with the names of `--name` for the models, if it is given."""
    if names is None:
        return tables
    refuse_other_names(names, tables.models)
    return tables.rename(dict(zip(tables.models, names, strict=True)))


def note_dropped(rows: int | None) -> None:
    """Print how many rows were left out, if any."""
    if rows:
        note(f"{counted(rows, 'row')} {'was' if rows == 1 else 'were'} left out on purpose.")


def note_votes(found: Joined | None, roles: Roles, *, raters: bool = True) -> None:
    """Print notes on dropped votes, on recurring raters, and on the counts that are the label."""
    if roles.counts:
        note(f"the label is the {roles.y_true}; --positive selects another column.")
    votes = roles.votes
    if votes is None or found is None:
        return
    if votes.dropped:
        note(f"left out: {votes.dropped:,} votes with a missing value.")
    for text in filter(None, (votes.note(found), votes.about_raters if raters else "")):
        note(as_options(text))


def note_words(words: Words, roles: Roles) -> None:
    """Print the words that counted as 0 if there are several, because one may be misspelled."""
    from softcal.sources.columns import plain_word

    positive = roles.values.positive
    zeros = {
        word: count
        for word, count in words.counts.items()
        if positive not in (word, plain_word(word))
    }
    if len(zeros) > 1:
        listed = ", ".join(f"{word!r} ({count:,})" for word, count in zeros.items())
        note(f"{roles.y_true} counts as 1 if it is {positive!r}, and as 0 if it is {listed}.")


def saved_files(data: Sequence[str]) -> list[Path]:
    """Return the saved files among the data; none if the data are rows."""
    from softcal.table.files import is_saved

    paths = [path for one in data for path in _matching(one)]
    saved = [path for path in paths if is_saved(path)]
    if saved and len(saved) < len(paths):
        rows = next(path for path in paths if path not in saved)
        message = (
            f"pass rows or saved tables, not both: {saved[0]} holds saved tables, {rows} does "
            "not. Save tables of the rows with `softcal scan`, then name all tables."
        )
        raise InputError(message)
    return saved


def _matching(data: str) -> list[Path]:
    """Return the files that a path or a pattern matches."""
    path = Path(data)
    if glob.has_magic(data) and not path.exists():
        return [Path(name) for name in sorted(glob.glob(data, recursive=True))]  # noqa: PTH207
    return [path]


def refuse_empty(tables: TableSet) -> None:
    """Raise if tables have no rows with weight."""
    from softcal._validation.inputs import refuse_zeros
    from softcal.sources.collect import refuse_no_rows

    if tables.n:
        return
    if tables.about.rows_without_weight:
        refuse_zeros(str(tables.about.weight), tables.about.rows_without_weight)
    refuse_no_rows()


def load_saved(paths: Sequence[Path], *, allow_identical: bool = False) -> TableSet:
    """Return the sum of saved tables; raise if a file is given twice."""
    from softcal.table.files import load

    for path in paths:
        if sum(path.resolve() == other.resolve() for other in paths) > 1:
            message = f"{path} is named twice: its rows would be counted twice. Name it once."
            raise InputError(message)
    total, *rest = found = [load(path) for path in paths]
    if not allow_identical:  # of tables with rows, because all empty ones are equal
        _refuse_copies([path for path, tables in zip(paths, found, strict=True) if tables.n])
    if rest and total.about.group is not None:
        text = (
            f"saved tables do not store the names of groups. If a value of "
            f"{total.about.group} has rows in two files, these rows count as independent. If in "
            "doubt, scan all rows in one command."
        )
        note(text)
    return sum(rest, start=total)


def _refuse_copies(paths: Sequence[Path]) -> None:
    """Raise if two files have identical content: different rows almost never do."""
    from hashlib import sha256  # loads OpenSSL

    seen: dict[bytes, Path] = {}
    for path in paths:
        first = seen.setdefault(sha256(path.read_bytes()).digest(), path)
        if first is not path:
            message = (
                f"{first} and {path} have the same content: rows would be counted twice. Name one "
                "of them or, if their rows differ, use `softcal merge --allow-identical`."
            )
            raise InputError(message)


def as_asked(tables: TableSet, columns: Columns, bins: BinsLike | None) -> TableSet:
    """Return the models and bins of saved tables that the options select."""
    columns.refuse_other_tables(tables)
    for column in columns.by:
        tables.by(column)  # raises if there is no such column
    if columns.models:
        tables = tables.select(columns.models)
    return tables if bins is None else tables.coarsen(bins)


def refuse_overwriting(output: Path, sources: Iterable[str | Path]) -> None:
    """Raise if the output is one of the files that a command reads, by any path or link."""
    for path in (file for source in sources for file in _files_read(str(source))):
        if path.exists() and stands_for(path, output.stat()):
            message = (
                f"{output} must not be a file that the command reads: it is {place_of(path)}. "
                "Choose another name for the output."
            )
            raise InputError(message)


def _files_read(source: str) -> list[Path]:
    """Return the files of a folder or a pattern; a path of a file is unchanged."""
    from softcal.sources.files import files_of

    path = Path(source)
    if not (path.is_dir() or glob.has_magic(source)):
        return [path]
    with suppress(InputError):  # the command itself reports it
        return files_of(path)
    return []
