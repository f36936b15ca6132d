"""Load the tables of a command: from rows in files, or from files saved by `softcal scan`."""

from __future__ import annotations

import glob
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from softcal import terminal
from softcal.cli.options import given
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from softcal.sources.collect import Look
    from softcal.table.tableset import TableSet


def load_tables(
    data: list[str],
    *,
    label: str | None,
    preds: Sequence[str] | None,
    weight: str | None = None,
    votes: str | None = None,
    by: Sequence[str] = (),
    group: str | None = None,
    bins: int | None = None,
    pairs: bool = False,
    look: Look | None = None,
) -> TableSet:
    """Return the tables of the data, whether these are rows or saved tables.

    Rows need a label and predictions. Saved tables have their own columns: `preds` selects models,
    and every other column that is named must be the one the tables were made with.

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
    saved = saved_files(data)
    if saved:
        found = load_saved(saved)
        columns = {"--label": label, "--weight": weight, "--votes": votes, "--group": group}
        return _as_asked(found, columns, preds, by, bins)

    from softcal.bins import Bins
    from softcal.sources.collect import collect
    from softcal.sources.columns import Roles
    from softcal.sources.files import all_pieces, files_of, reporter

    paths = files_of(data)
    preds = given(preds, "Missing option '--pred'.")
    label = given(label, "Missing option '--label'.")
    roles = Roles(label, tuple(preds), weight, votes, tuple(by), group)
    roles.refuse_impossible()
    with terminal.reading() as progress:
        return collect(
            all_pieces(paths, roles.wanted), roles, Bins.of(10 if bins is None else bins),
            pairs=pairs, report=reporter(paths, progress.move),
            report_groups=progress.move_groups, look=look,
        )  # fmt: skip


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


def _as_asked(
    tables: TableSet,
    columns: Mapping[str, str | None],
    preds: Sequence[str] | None,
    by: Sequence[str],
    bins: int | None,
) -> TableSet:
    """Return the view of saved tables that the options ask for."""
    group = None if tables.groups is None else tables.groups.column
    have = {
        "--label": tables.label, "--weight": tables.weight, "--votes": tables.votes,
        "--group": group,
    }  # fmt: skip
    for option, asked in columns.items():
        if asked is not None and asked != have[option]:
            with_ = "without one" if have[option] is None else f"with {have[option]!r}"
            message = (
                f"{option} must be as in the saved tables, which were made {with_}: got {asked!r}. "
                f"Leave {option} out, or scan the rows again."
            )
            raise InputError(message)
    for column in by:
        tables.by(column)  # refuses one it does not have
    if preds:
        tables = tables.select(preds)
    return tables if bins is None else tables.coarsen(bins)


def refuse_overwriting(output: Path, data: Sequence[str]) -> None:
    """Refuse to write over the data that is being read."""
    from softcal.sources.files import files_of, refuse_same_file

    refuse_same_file(output, saved_files(data) or files_of(data))
