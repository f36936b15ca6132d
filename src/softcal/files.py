"""Columns from a CSV or Parquet file, by name; and files that are whole or not there."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softcal.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_PARQUET = {".parquet", ".pq"}


def read_columns(
    path: Path, names: Iterable[str], may_be_text: str | None = None
) -> dict[str, Any]:
    """Read the named columns of a file as Arrow columns, and nothing else of it.

    All must hold numbers, but for the one that may be text (names of groups).

    Raises
    ------
    InputError
        If the file cannot be read, or has no such column; the message lists those it has.
    """
    import pyarrow as pa

    wanted = list(dict.fromkeys(names))
    suffix = path.suffix.lower()
    if suffix not in _SEPARATORS and suffix not in _PARQUET:
        message = (
            f"cannot tell the format of {path.name!r}: the name must end in .csv, .tsv or .parquet."
        )
        raise InputError(message)
    read = _read_parquet if suffix in _PARQUET else _read_text
    try:
        table = read(path, wanted)
    except FileNotFoundError as error:
        message = f"no such file: {path}"
        raise InputError(message) from error
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        message = f"cannot read {path}: {' '.join(str(error).split())}"
        raise InputError(message) from error
    for name in wanted:
        if name != may_be_text:
            _refuse_text(table.column(name), name)
    return {name: table.column(name) for name in wanted}


def _read_parquet(path: Path, wanted: list[str]) -> Any:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as source:
        _refuse_unknown(wanted, source.schema_arrow.names, path)
        return source.read(columns=wanted)


def _read_text(path: Path, wanted: list[str]) -> Any:
    from pyarrow import csv

    parse = csv.ParseOptions(delimiter=_SEPARATORS[path.suffix.lower()], newlines_in_values=True)
    with csv.open_csv(path, parse_options=parse) as head:
        _refuse_unknown(wanted, head.schema.names, path)
    only = csv.ConvertOptions(include_columns=wanted)
    return csv.read_csv(path, parse_options=parse, convert_options=only)


def _refuse_text(column: Any, name: str) -> None:
    """Refuse a column that holds text, and show the first cell that is no number."""
    import pyarrow as pa

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return
    for row, cell in enumerate(column):
        if cell.is_valid and not _is_number(cell.as_py()):
            message = (
                f"{name} must hold numbers: row {row + 1} holds the text {cell.as_py()!r:.60}."
            )
            raise InputError(message)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _refuse_unknown(wanted: list[str], present: list[str], path: Path) -> None:
    for name in wanted:
        if present.count(name) != 1:
            problem = f"more than one column {name!r}" if name in present else f"no column {name!r}"
            names = ", ".join(map(repr, present))
            message = f"{path.name} has {problem}. Its columns are: {names}."
            raise InputError(message)


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a place beside the path to write to; rename it there when all went well.

    Nobody ever sees half a file: an interruption or a full disk leaves what was there before.

    Raises
    ------
    InputError
        If the folder cannot be written to.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(
            prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent
        )
        os.close(handle)
    except OSError as error:
        message = f"cannot write {path}: {error.strerror}"
        raise InputError(message) from error
    beside = Path(name)
    try:
        yield beside
        beside.chmod(0o666 & ~_umask())
        beside.replace(path)
    except OSError as error:
        message = f"cannot write {path}: {error.strerror}"
        raise InputError(message) from error
    finally:
        beside.unlink(missing_ok=True)


def _umask() -> int:
    """Read the process's mask of permissions, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
