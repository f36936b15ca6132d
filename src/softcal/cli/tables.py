"""Load the tables of a command: from rows in files, or from files saved by `softcal scan`."""

from __future__ import annotations

import glob
import sys
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from softcal import terminal
from softcal._display import printable
from softcal.cli.options import RowOptions, given
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from softcal.sources.collect import Look
    from softcal.sources.columns import Roles, Words
    from softcal.table.tableset import TableSet


class Columns(NamedTuple):
    """What the options say about columns: which to read, or which saved tables must have."""

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

    @property
    def many(self) -> bool:
        """Whether there are many classes."""
        return any((self.label_columns, self.vote_columns, self.pred_columns, self.classes))

    @property
    def bounds(self) -> bool:
        """Whether labels are known as intervals."""
        return self.label_low is not None or self.label_high is not None

    @property
    def models(self) -> Sequence[str] | None:
        """What the options call the models."""
        return self.pred_columns or self.preds

    def refuse_contradictions(self) -> None:
        """Refuse options that do not go together, before anything is read."""
        if self.many:
            self._refuse_beside_classes()
        elif self.bounds:
            others = {"--label": self.label, "--votes": self.votes, "--group": self.group}
            useless = [option for option, value in others.items() if value is not None]
            if useless:
                message = f"--label-low and --label-high cannot go with {' and '.join(useless)}."
                raise InputError(message)

    def _refuse_beside_classes(self) -> None:
        if self.vote_columns and not self.pred_columns and self.preds:
            message = (
                "--vote-columns goes with --pred-columns, one column of predictions per class. For "
                "one prediction per row make a column of the share of votes and one of their "
                "number: --label SHARE --votes NUMBER."
            )
            raise InputError(message)
        single = {"--pred": self.preds, "--label-low": self.label_low}
        for name, value in {**single, "--label-high": self.label_high}.items():
            if value:
                message = f"{name} is for one probability per row: leave it out with many classes."
                raise InputError(message)
        if sum(each is not None for each in self._class_labels) > 1:
            raise InputError(_ONE_LABEL)
        if self.vote_columns and self.votes:
            message = "leave --votes out: --vote-columns say how many votes there are."
            raise InputError(message)
        for spec in self.pred_columns or ():
            if list(self.pred_columns or ()).count(spec) > 1:
                message = f"each model must be named once: --pred-columns {spec!r} is given twice."
                raise InputError(message)

    @property
    def _class_labels(self) -> tuple[str | None, ...]:
        return self.label, self.label_columns, self.vote_columns

    def roles(self, paths: Sequence[Path]) -> Roles:
        """Return the part of each column of rows, refusing what is missing or impossible."""
        from softcal.sources.columns import Roles

        others: dict[str, Any] = {
            "sample_weight": self.weight, "n_votes": self.votes, "by": tuple(self.by),
            "group": self.group, "values": self.how.values,
        }  # fmt: skip
        if self.many:
            found = self._roles_of_classes(paths, others)
        elif self.bounds:
            if self.label_low is None or self.label_high is None:
                message = "give both ends of the labels: --label-low COL and --label-high COL."
                raise InputError(message)
            preds = given(self.preds, "Missing option '--pred'.")
            ends = (self.label_low, self.label_high)
            found = Roles(" to ".join(ends), tuple(preds), bounds=ends, **others)
        else:
            preds = given(self.preds, "Missing option '--pred'.")
            found = Roles(given(self.label, _NO_LABEL), tuple(preds), **others)
        found.refuse_impossible()
        return found

    def _roles_of_classes(self, paths: Sequence[Path], others: Mapping[str, Any]) -> Roles:
        from softcal.sources.class_columns import class_roles, in_file
        from softcal.sources.columns import Roles

        label = next((each for each in self._class_labels if each is not None), None)
        label = given(label, _ONE_LABEL)
        specs = given(self.pred_columns, "Missing option '--pred-columns'.")
        names = None if self.classes is None else [name.strip() for name in self.classes.split(",")]
        classes = class_roles(
            label, {spec: spec for spec in specs}, in_file(paths[0], self.how.reading),
            counts=self.vote_columns is not None, classes=names,
        )  # fmt: skip
        return Roles(label, tuple(specs), classes=classes, **others)

    def refuse_other_tables(self, tables: TableSet) -> None:
        """Refuse columns that are not those the saved tables were made with."""
        for option in self.how.given:
            message = f"{option} is for rows: leave it out with saved tables."
            raise InputError(message)
        label: dict[str, str | None] = {
            "--label": self.label, "--label-columns": self.label_columns,
            "--vote-columns": self.vote_columns,
        }  # fmt: skip
        if self.bounds:
            label["--label-low and --label-high"] = f"{self.label_low} to {self.label_high}"
        group = None if tables.groups is None else tables.groups.column
        have = dict.fromkeys(label, tables.label) | {
            "--weight": tables.weight, "--votes": tables.votes, "--group": group,
            "--classes": ",".join(tables.targets[1:]),
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


_NO_LABEL = "Missing option '--label'."
_ONE_LABEL = (
    "give one of --label-columns (shares), --vote-columns (counts) and --label (a column of class "
    "names or numbers)."
)


def load_tables(
    data: list[str],
    columns: Columns,
    *,
    bins: int | None = None,
    pairs: bool = False,
    look: Look | None = None,
) -> TableSet:
    """Return the tables of the data, whether these are rows or saved tables.

    Rows need a label and predictions. Saved tables have their own columns: predictions select
    models, and every other column that is named must be the one the tables were made with.

    Parameters
    ----------
    data : list of str
        Files, folders or patterns of rows, or saved files, which are recognized by their content
        and added up.
    bins : int, optional
        Number of bins; 10 for rows, those of the file for saved tables.
    pairs : bool
        Whether to add up what each two models have in common, for a comparison; saved tables have
        it or not.
    look : callable, optional
        Called with the number of each piece of the rows and the rows of its models, in threads;
        never for saved tables.
    """
    columns.refuse_contradictions()
    saved = saved_files(data)
    if saved:
        return with_names(_as_asked(load_saved(saved), columns, bins), columns.how.name)

    from softcal.bins import Bins
    from softcal.sources.collect import collect
    from softcal.sources.files import all_pieces, files_of, reporter

    paths = files_of(data)
    roles = columns.roles(paths)
    names = columns.how.name
    if names is not None:
        refuse_other_names(names, roles.y_prob)
        look = None if look is None else _named_look(look, names)
    words: list[Words] = []
    with terminal.reading() as progress:
        tables = collect(
            all_pieces(paths, roles.wanted, columns.how.reading), roles,
            Bins.of(10 if bins is None else bins), pairs=pairs,
            report=reporter(paths, progress.move), report_groups=progress.move_groups, look=look,
            tell_words=words.append,
        )  # fmt: skip
    for each in words:
        note_words(each, roles)
    return with_names(tables, names)


def _named_look(look: Look, names: Sequence[str]) -> Look:
    """Show the rows of models under other names."""

    def named(number: int, rows: Mapping[str, Any], groups: Any) -> None:
        look(number, dict(zip(names, rows.values(), strict=True)), groups)

    return named


def refuse_other_names(names: Sequence[str], models: Sequence[str]) -> None:
    """Refuse names that are not one for each model."""
    if len(names) != len(models):
        message = (
            f"give --name once per model: there are {len(models)}, {', '.join(map(repr, models))}, "
            f"and {len(names)} of --name."
        )
        raise InputError(message)


def with_names(tables: TableSet, names: Sequence[str] | None) -> TableSet:
    """Return tables whose models have the names of `--name`, where it is given."""
    if names is None:
        return tables
    refuse_other_names(names, tables.models)
    return tables.rename(dict(zip(tables.models, names, strict=True)))


def note_words(words: Words, roles: Roles) -> None:
    """Say which words counted as 0, where there are several: one of them may be misspelled."""
    from softcal.sources.columns import plain_word

    positive = roles.values.positive
    zeros = {
        word: count
        for word, count in words.counts.items()
        if positive not in (word, plain_word(word))
    }
    if len(zeros) > 1:
        listed = ", ".join(f"{word!r} ({count:,})" for word, count in zeros.items())
        text = (
            f"softcal: note: {roles.y_true} counts as 1 where it is {positive!r}, and as 0 where "
            f"it is {listed}."
        )
        sys.stderr.write(f"{printable(text)}\n")


def saved_files(data: Sequence[str]) -> list[Path]:
    """List the saved files that the data stand for; none if the data are rows."""
    from softcal.table.files import is_saved

    paths = [path for one in data for path in _matching(one)]
    saved = [path for path in paths if is_saved(path)]
    if saved and len(saved) < len(paths):
        rows = next(path for path in paths if path not in saved)
        message = (
            f"give rows or saved tables, not both: {saved[0]} holds saved tables, {rows} does "
            "not. Turn the rows into tables with `softcal scan`, then name all tables."
        )
        raise InputError(message)
    return saved


def _matching(data: str) -> list[Path]:
    """List the files a path or a pattern stands for."""
    path = Path(data)
    if glob.has_magic(data) and not path.exists():
        return [Path(name) for name in sorted(glob.glob(data, recursive=True))]  # noqa: PTH207
    return [path]


def load_saved(paths: Sequence[Path], *, allow_identical: bool = False) -> TableSet:
    """Return the sum of saved tables, refusing a file that is given twice."""
    from softcal.table.files import load

    for path in paths:
        if sum(path.resolve() == other.resolve() for other in paths) > 1:
            message = f"{path} is named twice: its rows would be counted twice. Name it once."
            raise InputError(message)
    total, *rest = map(load, paths)
    if not allow_identical:
        _refuse_copies(paths)
    if rest and total.groups is not None:
        text = (
            f"softcal: note: saved tables do not name their groups, so whether a value of "
            f"{total.groups.column} has rows in two files is not known; such rows would count as "
            "independent. If in doubt, scan all rows in one command."
        )
        sys.stderr.write(f"{printable(text)}\n")
    return sum(rest, start=total)


def _refuse_copies(paths: Sequence[Path]) -> None:
    """Refuse the same sums twice: different rows almost never have them."""
    seen: dict[bytes, Path] = {}
    for path in paths:
        first = seen.setdefault(sha256(path.read_bytes()).digest(), path)
        if first is not path:
            message = (
                f"{first} and {path} have the same content: rows would be counted twice. Name one "
                "of them, or, if they are of different rows, use `softcal merge --allow-identical`."
            )
            raise InputError(message)


def _as_asked(tables: TableSet, columns: Columns, bins: int | None) -> TableSet:
    """Return the view of saved tables that the options ask for."""
    columns.refuse_other_tables(tables)
    for column in columns.by:
        tables.by(column)  # refuses one it does not have
    if columns.models:
        tables = tables.select(columns.models)
    return tables if bins is None else tables.coarsen(bins)


def refuse_overwriting(output: Path, data: Sequence[str]) -> None:
    """Refuse to write over the data that is being read."""
    from softcal.sources.files import files_of, refuse_same_file

    refuse_same_file(output, saved_files(data) or files_of(data))
