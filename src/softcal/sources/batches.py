"""Named columns from files of any size, a bounded number of rows at a time."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from softcal.errors import InputError
from softcal.parallel import in_order
from softcal.reading import refuse_elsewhere
from softcal.sources.pieces import Batch, Piece, Wanted, rows_of
from softcal.sources.readers import SUFFIXES, kind, pieces

Paths: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]"
"""A file, a folder, a glob pattern, or several of these."""

Progress: TypeAlias = Callable[[int, int, int], None]
"""Told at the start and after each piece: rows and bytes so far, bytes of all files."""


def batches(
    source: Paths,
    columns: Iterable[str],
    *,
    by: str | None = None,
    progress: Progress | None = None,
) -> Iterator[Batch]:
    """Walk through columns of files as arrays, few rows at a time, decoded on all cores.

    Memory stays bounded whatever the size of the files.

    Parameters
    ----------
    source : path, glob pattern, folder, or several
        Parquet, CSV, TSV, JSON-lines or Arrow files; the text formats may be compressed
        (.gz, .bz2, .zst). Of a folder, every such file in it and below, in the order of the names.
    columns : iterable of str
        The columns to read. They must hold numbers; missing values become NaN.
    by : str, optional
        One more column, of any kind, given as an Arrow array under `softcal.sources.pieces.SLICES`.
    progress : callable, optional
        Called as `progress(rows, bytes, total_bytes)`, at the start and after each piece of a file.

    Yields
    ------
    dict of str to ndarray
        Columns of one length.

    Raises
    ------
    InputError, InputTypeError
        If a file cannot be read, lacks a column, or holds something other than numbers in it.

    Examples
    --------
    >>> from importlib.resources import files
    >>> items = files("softcal") / "data" / "lidc_malignancy" / "items.csv"
    >>> sum(batch["prob_rf_all"].size for batch in batches(items, ["prob_rf_all"]))
    1377
    """
    wanted = Wanted(tuple(columns), by)

    def decode(piece: Piece) -> tuple[Piece, list[Batch]]:
        return piece, list(piece.batches())

    paths = files_of(source)
    report = reporter(paths, progress)
    # Decoded pieces are much larger than what is made of them, so fewer may wait.
    for piece, found in in_order(decode, all_pieces(paths, wanted), ahead=1):
        yield from found
        report(piece, sum(map(rows_of, found)))


def files_of(source: Paths) -> list[Path]:
    """List the files that a path, a pattern, a folder or several of these stand for."""
    several = [source] if isinstance(source, str | os.PathLike) else list(source)
    found: dict[Path, Path] = {}  # by what they really are
    for one in several:
        try:
            for path in _files_of_one(Path(one)):
                _refuse_twice(path, found)
                found[path.resolve()] = path
        except (OSError, UnicodeEncodeError) as error:
            message = f"cannot read {one!s:.100}: {error!s:.100}"
            raise InputError(message) from error
    return list(found.values())


def _refuse_twice(path: Path, found: dict[Path, Path]) -> None:
    """Refuse a file named twice: its rows would count twice, and look surer than they are."""
    if path.resolve() in found:
        message = f"{path} is named twice, so its rows would count twice. Name each file once."
        raise InputError(message)


def _files_of_one(path: Path) -> list[Path]:
    refuse_elsewhere(path)
    if path.is_dir():
        inside = sorted(below for below in path.rglob("*") if _is_data(below, path))
        return inside or _refuse_none(path)
    if glob.has_magic(str(path)) and not path.exists():
        names = glob.glob(str(path), recursive=True)  # noqa: PTH207 - Path has no absolute ones
        found = [Path(name) for name in sorted(names)]
        return [below for one in found for below in _files_of_one(one)] or _refuse_none(path)
    if not kind(path):
        message = (
            f"cannot tell the format of {path.name!r}: the name must end in one of {SUFFIXES}."
        )
        raise InputError(message)
    return [path]


def _is_data(path: Path, folder: Path) -> bool:
    """Leave out what Spark and others put beside the data: _SUCCESS, .crc files."""
    named = path.relative_to(folder).parts
    return bool(kind(path)) and not any(part.startswith(("_", ".")) for part in named)


def _refuse_none(path: Path) -> list[Path]:
    message = f"no data in {path}: it has no file whose name ends in one of {SUFFIXES}."
    raise InputError(message)


def all_pieces(paths: Iterable[Path], wanted: Wanted) -> Iterator[Piece]:
    """Cut all files into pieces, one file after another."""
    for path in paths:
        yield from pieces(path, wanted)


def reporter(paths: list[Path], progress: Progress | None) -> Callable[[Piece, int], None]:
    """Make the function that adds up what is done and tells the caller."""
    total = sum(path.stat().st_size for path in paths if path.is_file())
    rows = done = 0
    if progress is not None:
        progress(0, 0, total)

    def report(piece: Piece, more: int) -> None:
        nonlocal rows, done
        rows += more
        done += piece.size
        if progress is not None:
            progress(rows, min(done, total), total)

    return report
