"""Load the tables of a command from rows in files or from files saved by `softcal scan`."""

from __future__ import annotations

import glob
import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softcal import terminal
from softcal._display import counted
from softcal._io import is_copy, place_of, stands_for
from softcal.cli.describe import as_options
from softcal.cli.options import note
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from softcal.bins import BinsLike
    from softcal.cli.describe import Described
    from softcal.scanning.data import Data
    from softcal.scanning.scan import Look, Scanned
    from softcal.scanning.stream import AllRows
    from softcal.table.tableset import TableSet


def load_tables(
    data: list[str],
    how: Described,
    *,
    bins: BinsLike | None = None,
    pairs: bool = False,
    look: Look | None = None,
    may_be_empty: bool = False,
    by: Sequence[Any] | None = None,
) -> TableSet:
    """Return the tables of rows or of saved files.

    Rows need a label and predictions. For saved tables, predictions select models, and every other
    named column must be the one the tables were made with.

    Parameters
    ----------
    data : list of str
        Files, folders, or patterns of rows, or saved files. Saved files are recognized by their
        content and added up.
    how : Described
        The options about the data.
    bins : int or Bins, optional
        The bins. Default: 10 for rows, the bins of the file for saved tables.
    pairs : bool
        Whether to add up joint sums of each pair of models, for a comparison. Ignored for saved
        tables.
    look : callable, optional
        Called with the rows of all models, a bounded number at a time. Not for saved tables.
    may_be_empty : bool
        Whether to accept data without rows.
    by : sequence, optional
        The segments of rows, if they are not those of `--by`.
    """
    saved = saved_files(data)
    if not saved:
        how.refuse_contradictions()
    if saved:
        total = load_saved(saved)
        refuse_empty(total)
        note_dropped(total.about.rows_dropped)
        return with_names(as_asked(total, how, bins), how.name)
    from softcal.scanning.scan import scanned

    asked = described(data, how, bins=10 if bins is None else bins, pairs=pairs, by=by)
    if how.name is not None and look is not None:
        look = _named_look(look, how.name)
    with terminal.working("Reading"):
        found = scanned(asked, look)
    if not may_be_empty:
        refuse_empty(found.tables)
    note_dropped(found.tables.about.rows_dropped)
    note_found(found, how)
    return with_names(_with_options(found.tables, data, how), how.name)


def _with_options(tables: TableSet, data: list[str], how: Described) -> TableSet:
    """Return tables that store the file and the options, for commands on these rows later."""
    source = data[0] if len(data) == 1 and not is_copy(Path(data[0])) else None
    return replace(
        tables, about=tables.about._replace(source=source, options=json.dumps(how.given))
    )


def described(
    data: list[str], how: Described, *, by: Sequence[Any] | None = None, **others: Any
) -> Data:
    """Return the description of rows; raise with the columns if an option is missing."""
    if missing := how.missing:
        error = InputError(f"{missing}{columns_hint(data, how)}")
        if not how.labeled and not how.models:
            from softcal.cli.inspect import suggested_lines

            for line in suggested_lines(data, how):
                error.add_note(line)
        raise error
    chosen = {} if by is None else {"by": tuple(by)}
    return how.data(data if len(data) > 1 else data[0], **others, **chosen)


def columns_hint(data: list[str], how: Described) -> str:
    """Return a sentence with the columns of the first file."""
    from softcal._validation.arrays import listed
    from softcal.scanning.source import Session, opened

    source = opened(how.files(data), Session())
    return f" The columns of {source.place} are: {listed(source.names)}."


def load_rows(data: Path, how: Described, *, logits: bool) -> tuple[TableSet, AllRows]:
    """Return all rows of a file at once, validated, and their tables."""
    from softcal.scanning.scan import collect, planned_and
    from softcal.scanning.stream import all_rows

    how.refuse_contradictions()
    asked = described([str(data)], how)
    found = planned_and(asked, collect)
    refuse_empty(found.tables)
    note_dropped(found.tables.about.rows_dropped)
    note_found(found, how)
    return found.tables, planned_and(asked.with_(keep_logits=logits), all_rows)


def note_found(found: Scanned, how: Described) -> None:
    """Print notes on what was read: the label of counts, votes, raters, and words."""
    if how.vote_columns is not None and found.tables.targets == ("label",):
        note(f"the label is the {found.tables.about.label}; --positive selects another column.")
    for text in found.notes:
        note(as_options(text))
    zeros = {word: n for word, n in found.words.items() if not found.is_positive(word)}
    if len(zeros) > 1:
        often = dict(list(zeros.items())[:_MOST_WORDS])
        listed = ", ".join(f"{word!r} ({count:,})" for word, count in often.items())
        label = found.tables.about.label
        note(f"{label} counts as 1 if it is {how.positive!r}, and as 0 if it is {listed}.")


_MOST_WORDS = 20


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

    if tables.n:
        return
    if tables.about.rows_without_weight:
        refuse_zeros(str(tables.about.weight), tables.about.rows_without_weight)
    message = "the source has no rows, so there is nothing to measure."
    raise InputError(message)


def refuse_bounds(tables: TableSet, what: str) -> None:
    """Raise if the labels of saved tables are known only as intervals."""
    from softcal.table.tableset import BOUNDS

    if tables.targets == BOUNDS:
        message = (
            f"{what} needs labels, but these are known only as intervals: `softcal score` prints "
            "the bounds of SMECE."
        )
        raise InputError(message)


def load_saved(paths: Sequence[Path], *, allow_identical: bool = False) -> TableSet:
    """Return the sum of saved tables; raise if a file is given twice."""
    from softcal.table.files import load

    for path in paths:
        if sum(path.resolve() == other.resolve() for other in paths) > 1:
            message = f"{path} is named twice: its rows would be counted twice. Name it once."
            raise InputError(message)
    total, *rest = found = [load(path) for path in paths]
    if not allow_identical:  # of tables with rows, because all empty ones are equal
        filled = {path: each for path, each in zip(paths, found, strict=True) if each.n}
        _refuse_copies(filled)
    if rest and total.about.group is not None:
        text = (
            f"saved tables do not store the names of groups. If a value of "
            f"{total.about.group} has rows in two files, these rows count as independent. If in "
            "doubt, scan all rows in one command."
        )
        note(text)
    return sum(rest, start=total)


def _refuse_copies(sets: Mapping[Path, TableSet]) -> None:
    """Raise if two sets have the same sums up to rounding: different rows almost never do."""
    import numpy as np

    seen: dict[Any, Path] = {}
    for path, tables in sets.items():
        keys, values = tables.blocks["tables"]
        counts = (tables.axes.cell, keys.tobytes(), values[0].tobytes())
        first = seen.setdefault(counts, path)
        others = sets[first].blocks["tables"].values
        if first is not path and np.allclose(values, others, rtol=1e-9, atol=1e-9):
            message = (
                f"{first} and {path} have the same content: rows would be counted twice. Name one "
                "of them or, if their rows differ, use `softcal merge --allow-identical`."
            )
            raise InputError(message)


def as_asked(tables: TableSet, how: Described, bins: BinsLike | None) -> TableSet:
    """Return the models and bins of saved tables that the options select."""
    how.refuse_other_tables(tables)
    for column in how.by or ():
        tables.by(column)  # raises if there is no such column
    if how.models:
        tables = tables.select(how.models)
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
    from softcal.scanning.files import files_of

    path = Path(source)
    if not (path.is_dir() or glob.has_magic(source)):
        return [path]
    with suppress(InputError):  # the command itself reports it
        return files_of(path)
    return []
